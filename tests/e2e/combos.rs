//! Every input at once, at random: what `explain` reckons against the client's own figures.
//!
//! `LONGHAUL_E2E_SEED=N cargo test --test e2e combos` tries other ones; a failure names its own.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use crate::bench::{Bench, LONG, wait};
use crate::climb::{Ending, climb};
use crate::headless::Headless;
use crate::longhaul::explain_payload;
use crate::probe::{self, Figures};
use crate::rows::{BLOCKING, CONTEXT, NO_1M, NOT_AUTO, OFF, OUTPUT, PCT, WINDOW};

/// Combinations in one test; two tests run at a time.
const BATCH: u64 = 10;
/// Of so many combinations one is also held by whole sessions on either side of the wall.
const CLIMBED: u64 = 5;
const NEAR: u64 = 60;
const SEED: u64 = 20_260_801;

macro_rules! batches {
    ($($name:ident: $number:expr;)*) => {$(
        #[test]
        fn $name() {
            agree($number);
        }
    )*};
}

batches! {
    combinations_0_to_9: 0;
    combinations_10_to_19: 1;
    combinations_20_to_29: 2;
    combinations_30_to_39: 3;
    combinations_40_to_49: 4;
    combinations_50_to_59: 5;
    combinations_60_to_69: 6;
    combinations_70_to_79: 7;
    combinations_80_to_89: 8;
    combinations_90_to_99: 9;
}

/// SplitMix64: all that a list of choices needs.
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn in_100(&mut self, share: u64) -> bool {
        self.roll() % 100 < share
    }

    fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        let at = self.roll() % from.len() as u64;
        from[usize::try_from(at).unwrap()].clone()
    }
}

const MODELS: [&str; 12] = [
    "claude-opus-5-5",
    "claude-opus-5-5[1m]",
    "claude-sonnet-5-5",
    "claude-opus-4-8",
    "claude-opus-4-6",
    "claude-opus-4-6[1m]",
    "claude-haiku-4-5",
    "claude-haiku-4-5-20251001",
    "claude-sonnet-4-5",
    "claude-sonnet-4-5[1m]",
    "some-other-model",
    "some-other-model[1m]",
];

const WINDOWS: [&str; 20] = [
    "200000",
    "150000",
    "50000",
    "500k",
    "0.3m",
    "300,000",
    "300 000",
    "3e5",
    "1e6",
    "5000000",
    "300000.7",
    "250.5k ",
    "300ktok",
    "300kb",
    "+400000",
    "abc",
    "",
    "-5",
    "0x493e0",
    "20000000000000000000",
];
const FLAGS: [&str; 7] = ["300000", "200", "400k", "auto", "5000000", "150000", "1e6"];
const SWITCHES: [&str; 7] = ["1", "true", "Yes", "0", "off", "", "2"];
const OUTPUTS: [&str; 8] = ["8000", "1", "64000", "8k", "8e3", "abc", "0", "16000"];
const CONTEXTS: [&str; 6] = ["300000", "150000", "2000000", "250,000", "junk", "0"];
const PERCENTS: [&str; 9] = ["50", "12.5", "33.333", "99", "101", "0", "50%", "abc", "75"];
const LIMITS: [&str; 5] = ["300000", "120000", "junk", "0", "1500000"];

/// One combination.
#[derive(Debug, Default)]
struct Combination {
    model: &'static str,
    env: BTreeMap<&'static str, String>,
    flag: Option<&'static str>,
    /// User, project, local.
    scopes: [Map<String, Value>; 3],
    global: Map<String, Value>,
}

impl Combination {
    fn of(seed: u64) -> Self {
        let mut dice = Dice(seed);
        let mut it = Self { model: dice.pick(&MODELS), ..Self::default() };
        it.env = variables(&mut dice, 22).into_iter().collect();
        if dice.in_100(25) {
            it.flag = Some(dice.pick(&FLAGS));
        }
        for at in 0..it.scopes.len() {
            it.scopes[at] = scope(&mut dice, it.model);
        }
        if dice.in_100(8) {
            it.global.insert("autoCompactEnabled".to_owned(), json!(dice.in_100(40)));
        }
        it
    }

    fn bench(&self) -> Option<Bench> {
        let [user, project, local] = &self.scopes;
        let mut bench = Bench::open()?.model(self.model).user(&json!(user)).global(&json!(self.global));
        if !project.is_empty() {
            bench = bench.project(&json!(project));
        }
        if !local.is_empty() {
            bench = bench.local(&json!(local));
        }
        for (name, value) in &self.env {
            bench = bench.env(name, value);
        }
        if let Some(flag) = self.flag {
            bench = bench.arg("--autocompact").arg(flag);
        }
        Some(bench)
    }
}

fn variables(dice: &mut Dice, share: u64) -> Vec<(&'static str, String)> {
    let all: [(&str, &[&str], u64); 8] = [
        (WINDOW, &WINDOWS, share),
        (PCT, &PERCENTS, share),
        (OUTPUT, &OUTPUTS, share),
        (CONTEXT, &CONTEXTS, share),
        (NO_1M, &SWITCHES, share / 2),
        (OFF, &SWITCHES, share / 2),
        (NOT_AUTO, &SWITCHES, share / 2),
        (BLOCKING, &LIMITS, share / 3),
    ];
    let mut chosen = Vec::new();
    for (name, values, share) in all {
        if dice.in_100(share) {
            chosen.push((name, dice.pick(values).to_owned()));
        }
    }
    chosen
}

fn scope(dice: &mut Dice, model: &str) -> Map<String, Value> {
    let mut scope = Map::new();
    let windows = [
        json!(400_000),
        json!(300_000),
        json!(150_000),
        json!(1_500_000),
        json!("300k"),
        json!(50_000),
        json!(250_000.5),
        json!(350_000.0),
    ];
    if dice.in_100(20) {
        scope.insert("autoCompactWindow".to_owned(), dice.pick(&windows));
    }
    if dice.in_100(15) {
        let bare = model.trim_end_matches("[1m]");
        let keys =
            [bare, model, &bare.to_uppercase(), "opus", "haiku", "claude-sonnet-4-5", "x"].map(str::to_owned);
        let entry = json!({ "autoCompactWindow": dice.pick(&windows) });
        scope.insert("modelSettings".to_owned(), json!({ dice.pick(&keys).as_str(): entry }));
    }
    if dice.in_100(6) {
        scope.insert("autoCompactEnabled".to_owned(), json!(dice.in_100(50)));
    }
    if dice.in_100(25) {
        let block: Map<String, Value> =
            variables(dice, 15).into_iter().map(|(name, text)| (name.to_owned(), json!(text))).collect();
        scope.insert("env".to_owned(), json!(block));
    }
    scope
}

fn agree(batch: u64) {
    let base = std::env::var("LONGHAUL_E2E_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(SEED);
    let mut wrong = String::new();
    for number in batch * BATCH..(batch + 1) * BATCH {
        let seed = base.wrapping_add(number);
        let it = Combination::of(seed);
        let Some(bench) = it.bench() else { return };
        if let Err(why) = compare(&it, bench, number % CLIMBED == 0) {
            writeln!(wrong, "seed {seed}: {why}\n    {it:?}").unwrap();
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

fn compare(it: &Combination, bench: Bench, climbed: bool) -> Result<(), String> {
    let bench = probe::install(bench);
    let mut client = Headless::start(&bench);
    client.say("hello");
    let figures = wait("the module's figures", LONG, || probe::read(&bench));
    let told = explain_payload(&bench, it.model, figures.window, client.pid());
    client.end();
    differences(&figures, &told)?;
    drop(bench);
    if climbed { hold(it, &told) } else { Ok(()) }
}

fn differences(figures: &Figures, told: &Value) -> Result<(), String> {
    let steps = &told["arithmetic"];
    let reactive = figures.enabled && figures.source == "auto";
    let raw = raw_max(told);
    let expected = [
        ("rawMaxTokens", json!(figures.raw), &raw),
        ("isAutoCompactEnabled", json!(figures.enabled), &told["compaction_enabled"]),
        ("no trigger", json!(reactive), &json!(told["wall"]["kind"] == "reactive")),
        // Where the client has no trigger its threshold is a number that nothing happens at.
        ("autoCompactThreshold", json!(figures.threshold.filter(|_| !reactive)), &steps["threshold"]),
    ];
    let wrong: Vec<String> = expected
        .iter()
        .filter(|(_, theirs, ours)| theirs != *ours)
        .map(|(name, theirs, ours)| format!("{name} is {theirs}, we say {ours}"))
        .collect();
    if wrong.is_empty() { Ok(()) } else { Err(format!("{} of {figures:?}\n{told:#}", wrong.join("; "))) }
}

/// What the client would call `rawMaxTokens`. With compaction off the variable's window still stands there, and
/// moves nothing; another place's does not even do that.
fn raw_max(told: &Value) -> Value {
    let steps = &told["arithmetic"];
    let inputs = told["inputs"].as_array().into_iter().flatten();
    let read = |input: &&Value| input["name"] == WINDOW && input["effect"] == "no effect";
    let explicit = inputs.into_iter().find(read).and(steps["explicit"].as_u64());
    match (told["compaction_enabled"] == true, explicit, steps["model_window"].as_u64()) {
        (false, Some(explicit), Some(model)) => json!(explicit.min(model)),
        _ => steps["window"].clone(),
    }
}

/// Whole sessions on either side of the wall.
fn hold(it: &Combination, told: &Value) -> Result<(), String> {
    let wall = told["wall"]["tokens"].as_u64().ok_or("no wall")?;
    let kind = told["wall"]["kind"].as_str().unwrap_or_default();
    let open = || it.bench().ok_or("the client is gone");
    if kind == "reactive" {
        let beyond = climb(&open()?, wall + wall / 4);
        return if beyond == Ending::None {
            Ok(())
        } else {
            Err(format!("{beyond:?} where nothing triggers"))
        };
    }
    let under = climb(&open()?, wall - NEAR);
    if under != Ending::None {
        return Err(format!("{under:?} {NEAR} tokens under {told:#}"));
    }
    let over = climb(&open()?, wall + NEAR);
    let there = match over {
        Ending::Compaction(_) => kind == "compaction",
        Ending::Refusal => kind == "refusal",
        Ending::None => false,
    };
    if there { Ok(()) } else { Err(format!("{over:?} {NEAR} tokens over {told:#}")) }
}
