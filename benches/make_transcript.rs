//! Writes a made-up transcript and prints what a reader must find in it: `make-transcript SIZE_MB OUT [--seed N]`.

use std::io::BufWriter;
use std::process::ExitCode;

#[path = "../tests/support/transcripts.rs"]
mod transcripts;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let parsed = match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [size, out] => size.parse().ok().map(|size: u64| (size, out, 1)),
        [size, out, "--seed", seed] => size.parse().ok().zip(seed.parse().ok()).map(|(a, b)| (a, out, b)),
        _ => None,
    };
    let Some((size_mb, out, seed)) = parsed else {
        eprintln!("usage: make-transcript SIZE_MB OUT [--seed N]");
        return ExitCode::from(2);
    };
    let written = std::fs::File::create(out).and_then(|file| {
        transcripts::write(
            &mut BufWriter::with_capacity(1 << 20, file),
            size_mb.saturating_mul(1 << 20),
            seed,
        )
    });
    match written {
        Ok(truth) => {
            println!("{truth:#?}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("could not write {out}: {error}");
            ExitCode::FAILURE
        }
    }
}
