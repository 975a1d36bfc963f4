//! What holds for any transcript.

use proptest::prelude::*;

use super::super::squeeze::Squeeze;
use super::super::tally::Tally;
use super::*;

/// A row of some kind; `from` picks the earlier row it hangs on, `size` what it is about.
fn add(log: &mut Log, uuids: &mut Vec<String>, (kind, from, size): (u8, usize, u64)) {
    if kind % 3 == 0 && !uuids.is_empty() {
        let back = uuids[from % uuids.len()].clone();
        log.back_to(&back);
    }
    let total = 200 + size % 900_000;
    match kind {
        0..40 => log.prompt("text \"and\" more\n"),
        40..90 => log.response(&format!("m{}", from % 50), total, 5),
        90..110 => log.result("t"),
        110..120 => log.compaction(if size % 2 == 0 { "auto" } else { "manual" }, total, total / 9),
        120..125 => log.prompt_at("rewound", 1 + size % 3),
        125..130 => log.api_error("prompt is too long"),
        130..140 => log.row(json!({"type": "assistant", "message": {"id": format!("m{from}"), "usage": {},
            "content": [{"type": "tool_use", "id": format!("t{}", from % 9)}]}})),
        140..150 => log
            .row(json!({"type": "attachment", "attachment": {"type": "queued_command", "humanTurn": true}})),
        150..155 => log.raw(&b"\xff{broken"[..]),
        155..160 => log.raw(huge(size)),
        _ => log.row(json!({"type": "system", "subtype": "turn_duration"})),
    };
    uuids.extend(log.leaf.clone());
}

fn huge(size: u64) -> String {
    let size = usize::try_from(size % 700_000).unwrap();
    json!({"type": "user", "uuid": format!("huge{size}"), "message": {"content": "\"\n".repeat(size / 4)}})
        .to_string()
}

fn log_of(rows: &[(u8, usize, u64)]) -> Log {
    let (mut log, mut uuids) = (Log::new(), Vec::new());
    for row in rows {
        add(&mut log, &mut uuids, *row);
    }
    log
}

fn rows() -> impl Strategy<Value = Vec<(u8, usize, u64)>> {
    prop::collection::vec((any::<u8>(), any::<usize>(), any::<u64>()), 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn read_in_pieces_or_at_once_is_the_same(rows in rows(), cuts in prop::collection::vec(any::<usize>(), 0..8)) {
        let log = log_of(&rows);
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (log.bytes.len() + 1)).collect();
        cuts.push(log.bytes.len());
        cuts.sort_unstable();
        let mut file = tempfile::tempfile().unwrap();
        let (mut progress, mut from) = (Progress::default(), 0);
        for cut in cuts {
            file.write_all(&log.bytes[from..cut]).unwrap();
            from = cut;
            prop_assert!(progress.advance(&file, None).unwrap().complete);
            progress = Progress::from_bytes(&progress.to_bytes()).unwrap();
        }
        prop_assert_eq!(progress.figures(), log.figures());
    }

    #[test]
    fn a_squeezed_row_says_the_same(rows in rows()) {
        let (mut plain, mut squeezed) = (Tally::default(), Tally::default());
        for line in log_of(&rows).bytes.split(|b| *b == b'\n') {
            plain.line(line);
            let mut short = Vec::new();
            Squeeze::default().feed(line, &mut short);
            squeezed.line(&short);
        }
        prop_assert_eq!(plain.figures(), squeezed.figures());
    }

    #[test]
    fn the_stored_form_comes_back_whole_or_not_at_all(rows in rows(), at in any::<usize>(), flip in 1..=255_u8) {
        let log = log_of(&rows);
        let mut progress = Progress::default();
        progress.advance(&log.file(), None).unwrap();
        let mut bytes = progress.to_bytes();
        prop_assert_eq!(Progress::from_bytes(&bytes), Some(progress));
        let at = at % bytes.len();
        prop_assert_eq!(Progress::from_bytes(&bytes[..at]), None);
        bytes[at] ^= flip;
        prop_assert_eq!(Progress::from_bytes(&bytes), None);
    }

    #[test]
    fn rows_of_other_kinds_change_nothing(rows in rows(), at in prop::collection::vec(any::<usize>(), 1..9)) {
        let log = log_of(&rows);
        let want = log.figures();
        let mut lines: Vec<&[u8]> = log.bytes.split_inclusive(|b| *b == b'\n').collect();
        let unknown: [&[u8]; 3] = [
            b"{\"type\":\"new-one\",\"uuid\":\"n1\",\"parentUuid\":null,\"message\":{\"usage\":{\"input_tokens\":5}}}\n",
            b"{\"uuid\":\"n2\",\"parentUuid\":\"uuid-1\",\"timestamp\":\"2030-01-01T00:00:00.000Z\",\"type\":\"progress\"}\n",
            b"{\"type\":\"result\",\"usage\":{\"input_tokens\":900000}}\n",
        ];
        for (n, at) in at.iter().enumerate() {
            lines.insert(at % (lines.len() + 1), unknown[n % 3]);
        }
        let figures = figures_of(&lines.concat());
        prop_assert_eq!(figures, Figures { rows: want.rows + at.len() as u64, ..want });
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..600), max in any::<u64>()) {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&bytes).unwrap();
        let mut progress = Progress::default();
        progress.advance(&file, None).unwrap();
        prop_assert!(progress.figures().rows + progress.figures().damaged <= 1 + bytes.len() as u64);
        super::super::tail(&file, max, None).unwrap();
        prop_assert!(Progress::from_bytes(&bytes).is_none());
    }

    #[test]
    fn no_damage_to_a_row_makes_it_panic(rows in rows(), at in any::<usize>(), with in prop::collection::vec(any::<u8>(), 0..9)) {
        let mut bytes = log_of(&rows).bytes;
        let at = at % bytes.len();
        let end = (at + with.len()).min(bytes.len());
        bytes.splice(at..end, with);
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&bytes).unwrap();
        let mut progress = Progress::default();
        progress.advance(&file, None).unwrap();
        prop_assert!(Progress::from_bytes(&progress.to_bytes()) == Some(progress));
    }
}
