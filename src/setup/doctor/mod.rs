//! What `longhaul doctor` finds: one line a check, and a fix where something is wrong.
//!
//! [`gather`] alone reads the machine; it writes nothing and starts nothing but `claude --version` and our own
//! `longhaul --version`, each with a deadline. Every check is a pure function from its facts to a line.

pub mod gather;
pub mod line;
pub mod places;
pub mod plugin;
pub mod programs;
pub mod sessions;
pub mod settings;
pub mod statusline;

use line::Line;

/// All that is looked at.
#[derive(Debug)]
pub struct Facts {
    /// The client's program.
    pub client: plugin::Client,
    /// Our programs, and who would start them.
    pub programs: programs::Programs,
    /// The plugin as the client has it.
    pub plugin: plugin::Plugin,
    /// What sessions left and what of ours runs beside them.
    pub sessions: sessions::Sessions,
    /// Who draws the gauge.
    pub statusline: statusline::StatusLine,
    /// The wall of one session.
    pub wall: statusline::Wall,
    /// Settings of every scope, and our own configuration.
    pub settings: settings::Settings,
    /// Where our files are.
    pub places: places::Places,
}

/// Every check's line, in the order in which a person reads them.
pub fn examine(facts: &Facts) -> Vec<Line> {
    let lines = [
        places::state(&facts.places),
        plugin::client(&facts.client),
        programs::present(&facts.programs),
        programs::version(&facts.programs),
        programs::runnable(&facts.programs),
        places::path(&facts.places),
        plugin::plugin(&facts.plugin, &facts.client),
        settings::readable(&facts.settings),
        settings::project(&facts.settings),
        settings::config(&facts.settings),
        sessions::hooks(&facts.sessions),
        sessions::monitor(&facts.sessions),
        sessions::background(&facts.sessions),
        sessions::timer(&facts.sessions),
        statusline::drawn(&facts.statusline),
        statusline::wall(&facts.wall),
        places::run_dir(&facts.places),
        places::transcripts(&facts.places),
        places::leftovers(&facts.places),
    ];
    let typed = |line: Line| Line { fix: line.fix.map(|fix| places::typed(&facts.places, fix)), ..line };
    lines.into_iter().map(typed).collect()
}
