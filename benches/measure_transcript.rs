//! How fast and in how much memory a transcript is measured, against serde_json on the same bytes in the
//! same run: `measure-transcript FILE [--no-serde]`. Processor time (Linux) leaves out what other programs
//! on the machine took.
#![allow(clippy::disallowed_methods)] // A benchmark reads the clock.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader};
use std::time::Instant;

use longhaul::client::transcript::Progress;
use serde::Deserialize;

fn main() -> io::Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let Some(path) = args.first() else {
        eprintln!("usage: measure-transcript FILE [--no-serde]");
        return Ok(());
    };
    let file = File::open(path)?;
    let length = file.metadata()?.len();
    report("measured", length, 5, || {
        let mut progress = Progress::default();
        progress.advance(&file, None)?;
        std::hint::black_box(&progress);
        Ok(())
    })?;
    println!("peak memory {} kB", peak_kb());

    let mut progress = Progress::default();
    progress.advance(&file, None)?;
    let stored = progress.to_bytes();
    let mut times = Vec::new();
    for _ in 0..101 {
        let start = Instant::now();
        let mut again = Progress::from_bytes(&stored).unwrap_or_default();
        again.advance(&file, None)?;
        std::hint::black_box(again.figures());
        times.push(start.elapsed().as_secs_f64());
    }
    println!("nothing added: {:.1} us with {} stored bytes", median(&mut times) * 1e6, stored.len());
    let mut times = Vec::new();
    for _ in 0..21 {
        let start = Instant::now();
        std::hint::black_box(longhaul::client::transcript::tail(&file, 32 << 20, None)?);
        times.push(start.elapsed().as_secs_f64());
    }
    println!("tail: {:.2} ms", median(&mut times) * 1e3);
    if args.get(1).is_none() {
        report("serde_json, typed and borrowed, the same prefilter", length, 3, || {
            std::hint::black_box(with_serde(&file)?);
            Ok(())
        })?;
    }
    println!("{:#?}", progress.figures());
    Ok(())
}

/// Runs it some times and prints the medians.
fn report(what: &str, length: u64, runs: u32, mut run: impl FnMut() -> io::Result<()>) -> io::Result<()> {
    let (mut times, mut processor) = (Vec::new(), Vec::new());
    for _ in 0..runs {
        let (start, before) = (Instant::now(), processor_seconds());
        run()?;
        times.push(start.elapsed().as_secs_f64());
        processor.push(processor_seconds() - before);
    }
    let (time, processor, gigabytes) = (median(&mut times), median(&mut processor), length as f64 / 1e9);
    println!(
        "{what}: {:.0} ms, {:.2} GB/s (processor {:.0} ms, {:.2} GB/s)",
        time * 1e3,
        gigabytes / time,
        processor * 1e3,
        gigabytes / processor
    );
    Ok(())
}

/// Time this program has run on a processor so far (Linux), not a number elsewhere.
fn processor_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    stat.split(' ').next().and_then(|text| text.parse::<f64>().ok()).map_or(f64::NAN, |ns| ns / 1e9)
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// The process's peak memory so far (Linux), 0 elsewhere.
fn peak_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
    line.trim().trim_end_matches(" kB").parse().unwrap_or(0)
}

#[derive(Deserialize)]
struct Row<'a> {
    uuid: Option<&'a str>,
    #[serde(rename = "parentUuid")]
    parent: Option<&'a str>,
    timestamp: Option<&'a str>,
    message: Option<Message<'a>>,
}

#[derive(Deserialize)]
struct Message<'a> {
    id: Option<&'a str>,
    model: Option<&'a str>,
    usage: Option<Usage>,
}

#[derive(Deserialize)]
struct Usage {
    input_tokens: u64,
    output_tokens: u64,
}

/// What the least thing done with serde_json costs: the members of a row that any measurement needs.
fn with_serde(file: &File) -> io::Result<u64> {
    use std::io::Seek as _;
    let mut file = file;
    file.rewind()?;
    let mut reader = BufReader::with_capacity(256 * 1024, file);
    let (mut line, mut sum) = (Vec::new(), 0);
    while reader.read_until(b'\n', &mut line)? > 0 {
        if line.starts_with(b"{\"parentUuid\"")
            && let Ok(row) = serde_json::from_slice::<Row>(&line)
        {
            sum += [row.uuid, row.parent, row.timestamp]
                .iter()
                .flatten()
                .map(|text| text.len() as u64)
                .sum::<u64>();
            if let Some(message) = row.message {
                sum += message.usage.map_or(0, |usage| usage.input_tokens + usage.output_tokens);
                sum += message.id.or(message.model).map_or(0, |text| text.len() as u64);
            }
        }
        line.clear();
    }
    Ok(sum)
}
