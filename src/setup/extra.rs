//! What setup brings beside programs and status line (a link, a timer, the plugin): whether to, decided from
//! facts without files. What a person took away is not brought again unasked.

use super::{About, Question};
use crate::store::setup::Extra;

/// What a person said of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Wish {
    /// Nothing, and nobody is to be asked.
    #[default]
    Leave,
    /// Nothing: it is offered.
    Offer,
    /// That they want it.
    Bring,
    /// That they do not, now and later.
    Refuse,
}

/// What is in its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum There {
    /// Nothing.
    Absent,
    /// Ours, as it is brought today.
    Current,
    /// Ours, as another longhaul or another place of the programs brought it.
    Old,
    /// Somebody else's.
    Foreign,
}

/// What to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Bring it, where the person agrees.
    Offer,
    /// Bring it.
    Bring,
    /// Take it away.
    Take,
    /// Leave things as they are.
    Keep(Why),
}

/// Why nothing is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// It is there.
    Current,
    /// Somebody else's is there.
    Foreign,
    /// The person took it away, or said no before.
    Removed,
    /// They say no now.
    Refused,
    /// Nobody asked for it.
    NotAsked,
}

/// Decides.
pub fn step(wish: Wish, there: There, record: &Extra) -> Step {
    match (there, wish) {
        (There::Current | There::Old, Wish::Refuse) => Step::Take,
        (There::Current, _) => Step::Keep(Why::Current),
        (There::Old, _) | (There::Absent, Wish::Bring) => Step::Bring,
        (_, Wish::Refuse) => Step::Keep(Why::Refused),
        (There::Foreign, _) => Step::Keep(Why::Foreign),
        (There::Absent, _) if record.brought || record.declined => Step::Keep(Why::Removed),
        (There::Absent, Wish::Offer) => Step::Offer,
        (There::Absent, Wish::Leave) => Step::Keep(Why::NotAsked),
    }
}

/// What comes of the step once the person was asked, where it is an offer. On a dry run nobody is.
pub fn agreed(
    step: Step,
    dry_run: bool,
    confirm: &mut dyn FnMut(&Question<'_>) -> bool,
    about: About,
    diff: impl FnOnce() -> String,
) -> Step {
    if step != Step::Offer || dry_run {
        return step;
    }
    let agrees = confirm(&Question { about, diff: &diff() });
    if agrees { Step::Bring } else { Step::Keep(Why::Refused) }
}

/// What is remembered once nothing was done.
pub fn kept(why: Why, record: &mut Extra) {
    match why {
        Why::Removed => *record = Extra { declined: true, ..Extra::default() },
        Why::Refused => record.declined = true,
        Why::Current => record.declined = false,
        Why::Foreign | Why::NotAsked => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WISHES: [Wish; 4] = [Wish::Leave, Wish::Offer, Wish::Bring, Wish::Refuse];

    fn extra(brought: bool, declined: bool) -> Extra {
        Extra { brought, declined, ..Extra::default() }
    }

    #[test]
    fn nothing_of_somebody_elses_is_ever_touched() {
        for wish in WISHES {
            for record in [extra(false, false), extra(true, false), extra(true, true)] {
                assert!(matches!(step(wish, There::Foreign, &record), Step::Keep(_)), "{wish:?}");
            }
        }
    }

    #[test]
    fn what_was_taken_away_comes_back_only_by_its_name() {
        for record in [extra(true, false), extra(false, true)] {
            for wish in [Wish::Leave, Wish::Offer] {
                assert_eq!(step(wish, There::Absent, &record), Step::Keep(Why::Removed), "{wish:?}");
            }
            assert_eq!(step(Wish::Bring, There::Absent, &record), Step::Bring);
        }
        assert_eq!(step(Wish::Offer, There::Absent, &extra(false, false)), Step::Offer);
        let mut record = extra(true, false);
        kept(Why::Removed, &mut record);
        assert_eq!(record, extra(false, true));
    }

    #[test]
    fn what_is_there_is_brought_up_to_date_or_taken_away_on_request() {
        let record = extra(true, false);
        for wish in [Wish::Leave, Wish::Offer, Wish::Bring] {
            assert_eq!(step(wish, There::Current, &record), Step::Keep(Why::Current));
            assert_eq!(step(wish, There::Old, &record), Step::Bring);
        }
        assert_eq!(step(Wish::Refuse, There::Current, &record), Step::Take);
        assert_eq!(step(Wish::Refuse, There::Old, &record), Step::Take);
        assert_eq!(step(Wish::Refuse, There::Absent, &record), Step::Keep(Why::Refused));
    }
}
