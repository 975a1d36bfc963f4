//! Nothing is lost: not by a watcher that is killed, not by a client that drops what comes too fast, and now and
//! then what does not.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use longhaul::store::inbox::{Mark, New};
use rustix::process::Signal;

use super::{Client, Watcher, inbox, store};
use crate::sandbox::{SESSION, Sandbox};

/// How much faster time goes.
const HASTE: u64 = 200;

/// The client's own limit, measured: ten notifications at once, then one in two seconds; the rest is dropped for
/// good. Lines within 200 ms are one notification.
struct Bucket {
    tokens: f64,
    filled: Instant,
    last_line: Option<(Instant, bool)>,
}

impl Bucket {
    fn takes(&mut self, at: Instant) -> bool {
        if let Some((last, taken)) = self.last_line
            && at - last < Duration::from_millis(200 / HASTE)
        {
            self.last_line = Some((at, taken));
            return taken;
        }
        let fast = HASTE as f64;
        self.tokens = (self.tokens + (at - self.filled).as_secs_f64() * fast / 2.0).min(10.0);
        self.filled = at;
        let taken = self.tokens >= 1.0;
        if taken {
            self.tokens -= 1.0;
        }
        self.last_line = Some((at, taken));
        taken
    }
}

/// `LONGHAUL_LOSS=10000,200` is the whole run: events, and how often the watcher is killed.
fn size() -> (usize, usize) {
    let given = std::env::var("LONGHAUL_LOSS").unwrap_or_else(|_| "2000,40".into());
    let (events, kills) = given.split_once(',').unwrap();
    (events.parse().unwrap(), kills.parse().unwrap())
}

/// A random number below this, from a seed that is told where the test fails.
fn below(seed: &mut u64, most: u64) -> u64 {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    *seed % most
}

#[test]
fn every_event_is_acknowledged_whatever_is_killed_or_dropped() {
    let (events, kills) = size();
    let sandbox = Sandbox::new().env("LONGHAUL_TEST_HASTE", &HASTE.to_string());
    let client = Client::start();
    client.says(&sandbox, SESSION, "idle");
    let mut seed = std::env::var("LONGHAUL_SEED").map_or(7, |seed| seed.parse().unwrap());
    let all_killed = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut seed = 99;
            let mut writer = inbox(&sandbox, SESSION);
            let mut next = 0;
            while next < events {
                // The last of it comes when nothing is killed any more.
                if next > events / 10 * 9 && !all_killed.load(Ordering::Relaxed) {
                    std::thread::sleep(Duration::from_millis(5));
                    continue;
                }
                let count = usize::try_from(1 + below(&mut seed, 60)).unwrap().min(events - next);
                let ids: Vec<String> = (next..next + count).map(|n| format!("e{n}")).collect();
                let new: Vec<New> =
                    ids.iter().map(|id| New { source: "watch 1", id, text: id, at_ms: 0 }).collect();
                writer.append_all(&new).unwrap();
                next += count;
                std::thread::sleep(Duration::from_millis(below(&mut seed, 12)));
            }
        });
        let mut bucket = Bucket { tokens: 10.0, filled: Instant::now(), last_line: None };
        let mut ear = inbox(&sandbox, SESSION);
        // Numbers that were acknowledged, and the last that was new.
        let (mut heard, mut newest) = (HashSet::new(), 0);
        let (mut repeats, mut dropped) = (0, 0);
        let began = Instant::now();
        let mut killed = 0;
        let mut watcher = Watcher::start(&sandbox, &client);
        let mut next_kill = Instant::now();
        while heard.len() < events {
            assert!(
                began.elapsed() < Duration::from_secs(600),
                "seed {seed}: {} of {events} were heard",
                heard.len()
            );
            if killed < kills && Instant::now() >= next_kill {
                watcher.signal(Signal::KILL);
                killed += 1;
                all_killed.store(killed == kills, Ordering::Relaxed);
                // What it has printed and the client has not read is gone.
                watcher = Watcher::start(&sandbox, &client);
                next_kill = Instant::now() + Duration::from_millis(20 + below(&mut seed, 100));
            }
            let Ok(line) = watcher.lines.recv_timeout(Duration::from_millis(5)) else { continue };
            let mark = Mark::leading(&line).unwrap_or_else(|| panic!("{line}"));
            let (first, last) = mark.numbers();
            for number in first..=last {
                if heard.contains(&number) {
                    continue;
                }
                // What is new comes in order; all else says that it is repeated.
                if number <= newest {
                    let marked = if first == last { " repeated, " } else { " of them repeated, " };
                    assert!(line.contains(marked), "{number} after {newest}, seed {seed}: {line}");
                    repeats += 1;
                }
                newest = newest.max(number);
            }
            if bucket.takes(Instant::now()) && below(&mut seed, 5) > 0 {
                for number in ear.acknowledge_marks(&[mark]).unwrap() {
                    assert!(heard.insert(number), "{number} was heard twice");
                }
            } else {
                dropped += 1;
            }
        }
        eprintln!(
            "{events} events, {killed} kills, {dropped} dropped, {repeats} repeats, {:?}",
            began.elapsed()
        );
        assert!(killed == kills && dropped > 0 && repeats > 0, "nothing was tried");
    });
    let mut left = inbox(&sandbox, SESSION);
    left.refresh().unwrap();
    assert_eq!(left.unacknowledged().count(), 0);
    assert_eq!(left.acknowledged_up_to(), u64::try_from(events).unwrap());
    let damaged = store(&sandbox).dir().join("inbox").join(SESSION).join("damaged");
    assert!(
        !damaged.exists()
            || fs_err::read_to_string(damaged).unwrap().lines().all(|line| !line.contains("\"event\""))
    );
}
