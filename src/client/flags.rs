//! The running client's own command line, as far as it moves the wall.

/// Flags that matter here, as typed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Flags {
    /// `--autocompact TOKENS`.
    pub autocompact: Option<String>,
    /// `--settings FILE-OR-JSON`.
    pub settings: Option<String>,
    /// `--setting-sources LIST`: the scopes of files that are read, `user`, `project`, `local`.
    pub sources: Option<String>,
}

impl Flags {
    /// Whether the settings files of this scope are read.
    pub fn reads(&self, source: &str) -> bool {
        self.sources.as_ref().is_none_or(|list| list.split(',').any(|item| item.trim() == source))
    }

    /// Reads them from an argument list (the program's name first). What follows `--` is prompt.
    pub fn read(arguments: &[String]) -> Self {
        let mut flags = Self::default();
        let mut rest = arguments.iter().skip(1);
        while let Some(argument) = rest.next() {
            if argument == "--" {
                break;
            }
            let (name, inline) = match argument.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (argument.as_str(), None),
            };
            let slot = match name {
                "--autocompact" => &mut flags.autocompact,
                "--settings" => &mut flags.settings,
                "--setting-sources" => &mut flags.sources,
                _ => continue,
            };
            *slot = inline.or_else(|| rest.next().cloned());
        }
        flags
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_read_in_both_forms() {
        let list = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let flags =
            Flags::read(&list("claude -p --autocompact 300000 --setting-sources=user -- --settings x"));
        assert_eq!(
            flags,
            Flags { autocompact: Some("300000".into()), sources: Some("user".into()), ..Flags::default() }
        );
        assert_eq!(Flags::read(&list("claude --settings")), Flags::default());
    }
}
