//! Times whole programs against each other in one run, as a client meets them: started anew each time, a
//! payload on a pipe, the answer on a pipe. `benches/run` and `benches/peers` build what it needs.
//!
//!     bench ours  PROGRAMS FLOOR LAUNCHER WORK    the figures of the project's own targets
//!     bench peers PROGRAMS FLOOR PEERS WORK       the same payloads through other status lines
//!     bench compactions PROGRAMS FLOOR WORK       the export before a compaction
//!     bench handoffs PROGRAMS PEERS WORK          the same transcripts written out by others
//!     bench fleet PROGRAMS WORK                   a sweep over a thousand sessions, which is part of ours
//!     bench watchers PROGRAMS WORK                what idle watchers cost in a minute
//!     bench export FILE                           `longhaul export` without its compressed copy
//!     bench peak  COMMAND...                      peak memory of one command, in KiB
//!
//! Programs take turns, so that a slower minute of the machine meets all of them.
#![allow(clippy::disallowed_methods, clippy::unwrap_used)] // A benchmark reads the clock, starts programs, and stops at the first surprise.

#[cfg(unix)]
mod compactions;
#[cfg(unix)]
mod fleet;
#[cfg(unix)]
mod handoffs;
#[cfg(unix)]
mod ours;
#[cfg(unix)]
mod peers;
#[cfg(unix)]
mod scene;
#[cfg(unix)]
mod timing;
#[cfg(unix)]
#[path = "../../tests/support/transcripts.rs"]
mod transcripts;
#[cfg(unix)]
mod watchers;

#[cfg(unix)]
fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["ours", programs, floor, launcher, work] => ours::run(programs, floor, launcher, work),
        ["peers", programs, floor, peers, work] => peers::run(programs, floor, peers, work),
        ["compactions", programs, floor, work] => compactions::run(programs, floor, work),
        ["handoffs", programs, peers, work] => handoffs::run(programs, peers, work),
        ["fleet", programs, work] => fleet::run(&scene::Scene::new(work.as_ref()), programs.as_ref()),
        ["watchers", programs, work] => watchers::run(programs, work),
        ["export", transcript] => handoffs::without_copy(transcript),
        ["peak", program, ref arguments @ ..] => println!("{}", timing::peak_here(program, arguments)),
        _ => {
            eprintln!(
                "usage: bench ours|peers|compactions|handoffs|fleet|watchers|export|peak ... (see benches/run)"
            );
            std::process::exit(2);
        }
    }
}

#[cfg(not(unix))]
fn main() {
    println!("the benchmarks need a Unix system");
}
