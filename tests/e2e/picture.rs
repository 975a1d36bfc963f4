//! The README's picture: what real sessions show in a terminal, drawn from the terminal's own cells.
//!
//! The test holds the picture against the sessions; `sh .ci/picture` draws it anew.

use std::fmt::Write as _;
use std::path::Path;

use vt100::Color;

use crate::bench::{Bench, LONG, wait};
use crate::live::{session, used};
use crate::longhaul::plugged;
use crate::saga::{self, Saga};
use crate::terminal::{CTRL_U, Terminal};

const PICTURE: &str = "docs/statusline.svg";

const COLUMNS: u16 = 108;
/// A cell, in the picture's units.
const WIDE: f32 = 8.4;
const HIGH: f32 = 18.0;
const MARGIN: f32 = 14.0;

const PAPER: &str = "#1b1d23";
const INK: &str = "#d8dae0";
/// The sixteen colours that terminals choose themselves; these are close to many a terminal's own.
const PALETTE: [&str; 16] = [
    "#2b2e37", "#f0616d", "#7fc37a", "#e3bd5f", "#6ea7f2", "#c586e0", "#56b8c2", "#d8dae0", "#7a7f8c",
    "#ff7a85", "#98d992", "#f5d27a", "#8bbcff", "#d9a2f0", "#74d0d9", "#ffffff",
];

/// Rows of cells.
type Strip = Vec<Vec<vt100::Cell>>;

#[test]
fn the_readmes_picture_is_what_sessions_show() {
    let Some(strips) = [fresh(), old()].into_iter().collect::<Option<Vec<_>>>() else { return };
    let drawn = draw(&strips.concat());
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(PICTURE);
    if std::env::var_os("LONGHAUL_DRAW_PICTURE").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, drawn).unwrap();
        return;
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept == drawn,
        "sessions show something else than {PICTURE}: run `sh .ci/picture`, and look at it"
    );
}

/// A session that is on its way: early, and when a handoff comes near.
fn fresh() -> Option<Vec<Strip>> {
    let mut saga = Saga::new();
    works(&mut saga, 83, 38_000);
    let (bench, mut terminal) = resumed(&saga)?;
    let early = strip(&bench, &mut terminal, (301_000, 85), "now the error messages, please");
    let later = strip(&bench, &mut terminal, (652_000, 86), "and the same for the writer");
    Some(vec![early, later])
}

/// A session that has come far: three times compacted, and near its wall again.
fn old() -> Option<Vec<Strip>> {
    let mut saga = Saga::new();
    for _ in 0..3 {
        works(&mut saga, 126, 47_000);
        saga.compaction(true, 967_000, &[]);
    }
    works(&mut saga, 69, 47_000);
    let (bench, mut terminal) = resumed(&saga)?;
    Some(vec![strip(&bench, &mut terminal, (845_000, 452), "what is left to do?")])
}

/// So many steps, each of which takes so long.
fn works(saga: &mut Saga, steps: u32, each_ms: i64) {
    saga.typed("Go on with the parser.");
    for _ in 0..steps {
        let id = format!("toolu_{}", saga.lines.len());
        saga.later(each_ms).bash(&id);
    }
    saga.answer("Done so far.");
}

/// The session, gone on with by the real client with the plugin.
fn resumed(saga: &Saga) -> Option<(Bench, Terminal)> {
    let bench = plugged(Bench::open()?);
    // The client names a project's directory by its path, each other sign a dash.
    let work = bench.work().to_str().unwrap().replace(|sign: char| !sign.is_ascii_alphanumeric(), "-");
    let project = bench.config().join("projects").join(work);
    std::fs::create_dir_all(&project).unwrap();
    let rows = String::from_utf8(saga.bytes()).unwrap();
    let rows = rows.replace("/home/someone/work", bench.work().to_str().unwrap());
    std::fs::write(project.join(format!("{}.jsonl", saga::SESSION)), rows).unwrap();
    let terminal = session(&bench, &["--resume", saga::SESSION]);
    terminal.resize(45, COLUMNS);
    Some((bench, terminal))
}

/// A turn that leaves so many tokens in use, after so many responses; then the box with what is typed next, and our line.
fn strip(bench: &Bench, terminal: &mut Terminal, (tokens, responses): (u64, u32), typed: &str) -> Strip {
    bench.api.usual(used(tokens));
    terminal.say("go on");
    terminal.wait_for(&format!("ANSWER-AT-{tokens}"));
    // The client writes an answer's row up to a second after it: then it is counted.
    let (share, counted) = (format!(" {}k/", tokens / 1000), format!("| {responses}t "));
    terminal.wait_until("the whole line", |screen| {
        screen.lines().any(|row| row.contains(&share) && row.contains(&counted)).then_some(())
    });
    terminal.key(typed);
    terminal.wait_for(typed);
    let at = |rows: &[Vec<vt100::Cell>], wanted: &str| {
        rows.iter().rposition(|row| text(row).contains(wanted)).unwrap()
    };
    // The sign before the box is dim as long as the turn runs.
    let rows = wait("the end of the turn", LONG, || {
        let rows = terminal.cells();
        (rows[at(&rows, typed)][0].fgcolor() == Color::Default).then_some(rows)
    });
    // From the rule above the box: what the client says of its own stays out.
    let strip = rows[at(&rows, typed) - 1..=at(&rows, &share)].to_vec();
    terminal.key(CTRL_U);
    terminal.wait_for_end_of(typed);
    strip
}

fn text(row: &[vt100::Cell]) -> String {
    let sign = |cell: &vt100::Cell| match cell.contents() {
        "" if cell.is_wide_continuation() => String::new(),
        "" => " ".to_owned(),
        sign => sign.to_owned(),
    };
    row.iter().map(sign).collect()
}

fn draw(strips: &[Strip]) -> String {
    let rows: usize = strips.iter().map(Vec::len).sum::<usize>() + strips.len() - 1;
    let (width, height) = (f32::from(COLUMNS) * WIDE + 2.0 * MARGIN, cells(rows) * HIGH + 2.0 * MARGIN);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.1} {height:.1}\" width=\"{width:.1}\" \
         height=\"{height:.1}\" font-family=\"ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace\" \
         font-size=\"14\">\n<rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"{PAPER}\"/>\n"
    );
    let mut row = 0;
    for strip in strips {
        for line in strip {
            draw_row(&mut svg, line, MARGIN + cells(row) * HIGH);
            row += 1;
        }
        row += 1;
    }
    svg + "</svg>\n"
}

/// Words of one look each; blocks are drawn, since fonts do not agree on their size.
fn draw_row(svg: &mut String, line: &[vt100::Cell], top: f32) {
    let mut at = 0;
    while let Some(first) = line.get(at) {
        let kind =
            |cell: &vt100::Cell| (cell.has_contents() && cell.contents() != " ", block(cell), look(cell));
        let (seen, block, (ink, bold)) = kind(first);
        let same = |cell: &&vt100::Cell| cell.is_wide_continuation() || kind(cell) == kind(first);
        let length = line[at..].iter().take_while(same).count();
        let (left, width) = (MARGIN + cells(at) * WIDE, cells(length) * WIDE);
        if let Some((strength, from, high)) = block {
            let _ = writeln!(
                svg,
                "<rect x=\"{left:.1}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"{:.1}\" fill=\"{ink}\" \
                 fill-opacity=\"{strength}\"/>",
                top + from * HIGH,
                high * HIGH
            );
        } else if seen {
            let words = escaped(&text(&line[at..at + length]));
            let weight = if bold { " font-weight=\"bold\"" } else { "" };
            let _ = writeln!(
                svg,
                "<text x=\"{left:.1}\" y=\"{:.1}\" textLength=\"{width:.1}\" fill=\"{ink}\"{weight}>{words}</text>",
                top + 13.5
            );
        }
        at += length;
    }
}

/// How strongly, from where and how high a cell that is drawn is filled.
fn block(cell: &vt100::Cell) -> Option<(f32, f32, f32)> {
    match cell.contents() {
        "█" => Some((1.0, 0.05, 0.9)),
        "░" => Some((0.25, 0.05, 0.9)),
        "─" => Some((1.0, 0.5, 0.06)),
        _ => None,
    }
}

/// Its colour, and whether it is bold.
fn look(cell: &vt100::Cell) -> (String, bool) {
    let colour = match cell.fgcolor() {
        Color::Default => INK.to_owned(),
        Color::Idx(number @ 0..16) => PALETTE[usize::from(number)].to_owned(),
        // Six steps of each of the three colours, then greys.
        Color::Idx(number @ 16..232) => {
            let step = |part: u8| if part == 0 { 0 } else { 55 + part * 40 };
            let number = number - 16;
            hex([step(number / 36), step(number / 6 % 6), step(number % 6)])
        }
        Color::Idx(number) => hex([8 + (number - 232) * 10; 3]),
        Color::Rgb(red, green, blue) => hex([red, green, blue]),
    };
    (colour, cell.bold())
}

fn hex([red, green, blue]: [u8; 3]) -> String {
    format!("#{red:02x}{green:02x}{blue:02x}")
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

fn cells(count: usize) -> f32 {
    f32::from(u16::try_from(count).unwrap())
}
