//! The client's own figures, read through a module of the tests' own.

use serde_json::{Value, json};

use crate::bench::{Bench, write_json};

/// What the client says of its window and its trigger, in tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Figures {
    /// The model's window.
    pub window: u64,
    /// The window that counts for compaction.
    pub raw: u64,
    pub enabled: bool,
    /// Where compaction would fire but for the percentage; none while it is off.
    pub threshold: Option<i64>,
    pub source: String,
}

const MODULE: &str = r"
export const register = on => {
  on('session.measure', async ($, e, next) => {
    const result = await next(e)
    const { context } = await $.session.usage({ breakdown: 'summary' })
    await $.fs.write(await $.env.get('E2E_FIGURES'), JSON.stringify(context))
    return result
  })
}
";

/// Puts the module into a bench.
pub fn install(bench: Bench) -> Bench {
    let dir = bench.path("probe");
    for part in [".claude-plugin", "hooks"] {
        std::fs::create_dir_all(dir.join(part)).unwrap();
    }
    let manifest = json!({ "name": "probe", "version": "0.0.1", "description": "tests only" });
    write_json(&dir.join(".claude-plugin/plugin.json"), &manifest);
    write_json(&dir.join("hooks/hooks.json"), &json!({ "modules": ["./register.ts"], "hooks": {} }));
    std::fs::write(dir.join("hooks/register.ts"), MODULE).unwrap();
    let file = bench.path("figures.json");
    bench.env("E2E_FIGURES", file.to_str().unwrap()).plugin(&dir)
}

/// What the module wrote in the last turn, once it has.
pub fn read(bench: &Bench) -> Option<Figures> {
    let text = std::fs::read(bench.path("figures.json")).ok()?;
    let context: Value = serde_json::from_slice(&text).ok()?;
    let of = &context["breakdown"];
    Some(Figures {
        window: context["window"].as_u64()?,
        raw: of["rawMaxTokens"].as_u64()?,
        enabled: of["isAutoCompactEnabled"].as_bool()?,
        threshold: of["autoCompactThreshold"].as_i64(),
        source: of["autocompactSource"].as_str()?.to_owned(),
    })
}
