//! How fast and in how much memory a transcript is exported: `measure-export FILE [copy|redact]`. Alone it is
//! the export without the compressed copy. Processor time (Linux) leaves out what other programs took.
#![allow(clippy::disallowed_methods)] // A benchmark reads the clock.

use std::io;
use std::path::PathBuf;
use std::time::Instant;

use longhaul::handoff::{Request, export};
use longhaul::host::Host;
use longhaul::store::Store;

fn main() -> io::Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let Some(path) = args.first() else {
        eprintln!("usage: measure-export FILE [copy|redact]");
        return Ok(());
    };
    let how = args.get(1).map_or("", String::as_str);
    let length = std::fs::metadata(path)?.len();
    let root = tempfile::tempdir()?;
    let home = root.path().to_string_lossy().into_owned();
    let store = Store::locate(&Host::fixed(&[("HOME", &home)], 0), &[]).ok_or(io::ErrorKind::NotFound)?;
    let (mut best, mut memory) = (f64::INFINITY, 0);
    for _ in 0..5 {
        let request = Request {
            transcript: PathBuf::from(path),
            budget: 241_750,
            redact: how == "redact",
            no_copy: how != "copy",
            ..Request::default()
        };
        let (start, before) = (Instant::now(), processor_seconds());
        let done = export(&request, &store, &mut ()).map_err(io::Error::other)?;
        let (took, processor) = (start.elapsed().as_secs_f64(), processor_seconds() - before);
        memory = if memory == 0 { peak_kb() } else { memory };
        best = best.min(processor);
        println!("{:.0} ms, processor {:.0} ms", took * 1e3, processor * 1e3);
        std::fs::remove_dir_all(done.dir)?;
    }
    println!(
        "best: {:.0} MB/s of processor time; peak memory of the first run {memory} kB",
        length as f64 / best / 1e6
    );
    Ok(())
}

/// Time this program has run on a processor so far (Linux), not a number elsewhere.
fn processor_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    stat.split(' ').next().and_then(|text| text.parse::<f64>().ok()).map_or(f64::NAN, |ns| ns / 1e9)
}

/// The process's peak memory so far (Linux), 0 elsewhere.
fn peak_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
    line.trim().trim_end_matches(" kB").parse().unwrap_or(0)
}
