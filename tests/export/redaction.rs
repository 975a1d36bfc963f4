//! Masked credentials.

use serde_json::json;

use super::{export, place};
use crate::saga::{SESSION, Saga, decision};
use crate::sandbox::Sandbox;

/// Twenty credentials that are none, in the shapes of their issuers; put together here so that no scanner
/// finds one in this file.
fn planted() -> Vec<(String, String)> {
    let run = |n: usize| "q7Rk2mXw9Lp4Tz8Vb3Nc6Hd1Jf5Gs0Ya".chars().cycle().take(n).collect::<String>();
    let hex = |n: usize| "0a1b2c3d4e5f6789".chars().cycle().take(n).collect::<String>();
    let upper = |n: usize| run(n).to_uppercase();
    let bare = [
        format!("sk-{}-api03-{}", "ant", run(40)),
        format!("sk-{}-{}", "proj", run(48)),
        format!("AK{}{}", "IA", upper(16)),
        format!("gh{}_{}", "p", run(36)),
        format!("github_{}_{}", "pat", run(60)),
        format!("gl{}-{}", "pat", run(20)),
        format!("xo{}-{}", "xb", run(30)),
        format!("AI{}{}", "za", run(35)),
        format!("sk_{}_{}", "live", run(24)),
        format!("np{}_{}", "m", run(36)),
        format!("py{}-{}", "pi", run(60)),
        format!("h{}_{}", "f", run(34)),
        format!("S{}.{}.{}", "G", run(22), run(43)),
        format!("ey{0}{1}.ey{0}{1}.{1}", "J", run(30)),
        format!("12345678:{}", run(35)),
        format!("do{}_v1_{}", "p", hex(64)),
    ];
    let mut all: Vec<(String, String)> = bare.into_iter().map(|secret| (secret.clone(), secret)).collect();
    for (before, after) in
        [("AWS_SECRET_ACCESS_KEY=", ""), ("postgres://me:", "@db.local/x"), ("\"password\": \"", "\"")]
    {
        let secret = run(30 + all.len());
        all.push((format!("{before}{secret}{after}"), secret));
    }
    let body = format!("{}\n{}", run(64), run(50));
    all.push((format!("-----BEGIN {0} KEY-----\n{body}\n-----END {0} KEY-----", "OPENSSH PRIVATE"), body));
    all
}

#[test]
fn redaction_finds_every_planted_credential_in_every_file() {
    let planted = planted();
    assert_eq!(planted.len(), 20);
    let mut saga = Saga::new();
    for (n, (text, _)) in planted.iter().enumerate() {
        let id = format!("c{n}");
        match n % 5 {
            0 => saga.typed(&format!("use\n{text}\nthere")).answer("ok"),
            1 => saga.typed("what is it").answer(&format!("{} {text} it is", decision("D"))),
            2 => saga.call(&id, "Bash", json!({ "command": format!("curl\n{text}\n") })).result(
                &id,
                "ok",
                false,
                json!({}),
            ),
            3 => saga.call(&id, "Read", json!({})).result(&id, &format!("a\n{text}\nb"), false, json!({})),
            _ => saga.mid_turn(&format!("{}{text}", "x ".repeat(290)), n % 2 == 0).answer(text),
        };
    }
    saga.raw(json!({ "type": "custom-title", "customTitle": planted[0].0 }).to_string());
    let sandbox = Sandbox::new();
    let path = place(&sandbox, &saga.bytes());
    let agents = path.with_extension("").join("subagents");
    fs_err::create_dir_all(&agents).unwrap();
    let row = json!({ "type": "assistant", "message": { "id": "m", "content": [{ "type": "text", "text": planted[3].0 }] } });
    fs_err::write(agents.join("agent-a.jsonl"), row.to_string()).unwrap();
    let redacted = export(&sandbox, &["--redact"]);
    assert!(!redacted.files().contains(&"parent.jsonl.zst".to_owned()), "{:?}", redacted.files());
    for name in redacted.files() {
        let text = fs_err::read_to_string(redacted.dir.join(&name)).unwrap();
        for (_, secret) in &planted {
            for piece in secret.lines() {
                assert!(!text.contains(piece), "{name}: {piece}");
            }
        }
    }
    assert!(redacted.index["redaction"]["masked"].as_u64().unwrap() >= 20);
    let open = export(&sandbox, &[]);
    let all: String = open
        .files()
        .iter()
        .filter(|name| !name.ends_with("zst"))
        .map(|name| fs_err::read_to_string(open.dir.join(name)).unwrap())
        .collect();
    assert!(
        planted.iter().all(|(text, _)| all.contains(text.lines().next().unwrap())),
        "they were there to find"
    );
    let said = sandbox.longhaul(&["export", "--session", SESSION, "--redact"]);
    assert!(
        said.stdout.contains("masked ") && said.stdout.contains("there is no compressed copy"),
        "{said:?}"
    );
}
