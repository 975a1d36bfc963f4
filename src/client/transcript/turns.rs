//! Turns: which rows begin one, whether a person did, and the context that they begin on.

use super::branch::{Mark, hash};
use super::row::{Parent, Row};
use super::tally::Tally;

impl Tally {
    pub(super) fn user(&mut self, row: &Row) -> Mark {
        let begins = self.begins_turn(row);
        let person = begins && is_person(row);
        let mark = if begins { self.turn_mark(row, person) } else { self.parents(row) };
        if begins {
            self.figures.turns += 1;
            self.since.turns += 1;
            self.figures.refused = false;
            if let Parent::Row(parent) = row.parent {
                let parent = hash(parent);
                self.branches.set_fork(parent, self.branches.as_of(parent).unwrap_or(mark));
            }
        }
        if person {
            self.person_spoke(row.at_ms);
            self.prompt_index = row.prompt_index.unwrap_or(self.prompt_index);
            if row.prompt_index == Some(1) {
                self.first_turn = Some(turn_id(row));
            }
        }
        self.move_to(mark, row.at_ms);
        mark
    }

    pub(super) fn person_spoke(&mut self, at_ms: Option<i64>) {
        self.figures.prompts += 1;
        self.figures.last_prompt_at = at_ms.or(self.figures.last_prompt_at);
    }

    /// Whether a row begins a turn. New rows say so (`turnOrigin`); older ones are told by what they are not.
    fn begins_turn(&mut self, row: &Row) -> bool {
        let message = &row.message;
        if row.summary || message.has_result {
            return false;
        }
        if row.turn_origin.is_some() {
            self.says_origin = true;
            // Two rows can belong to one turn; copies of a fork all carry one promptId.
            let turn = turn_id(row);
            let same = turn == self.turn;
            self.turn = turn;
            return if row.prompt_id.is_some() { !same } else { !row.meta };
        }
        let text = message.text.unwrap_or_default();
        let of_client =
            [&b"<local-command-"[..], b"<command-name>", b"<bash-", b"[Request interrupted by user"];
        let said = message.text.map_or(message.content.len() > 2, |text| !text.is_empty());
        !self.says_origin && !row.meta && said && !of_client.iter().any(|mark| text.starts_with(mark))
    }

    /// The context that a turn begins on.
    fn turn_mark(&self, row: &Row, person: bool) -> Mark {
        let unknown = Mark { tokens: None, estimated: false, model: self.mark.model, epoch: self.epoch };
        let again = row.prompt_index == Some(1) && self.first_turn.is_some_and(|turn| turn != turn_id(row));
        let stepped_back = row.prompt_index.is_some_and(|index| (1..=self.prompt_index).contains(&index));
        if person && again {
            return unknown;
        }
        match row.parent {
            Parent::Absent => self.mark,
            Parent::Root => unknown,
            Parent::Row(parent) => match self.branches.as_of(hash(parent)) {
                Some(mark) => mark,
                None if person && stepped_back => unknown,
                None => self.mark,
            },
        }
    }
}

fn turn_id(row: &Row) -> u64 {
    let index = row.turn_index.unwrap_or(0);
    hash(row.prompt_id.unwrap_or_default()) ^ index.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Whether a person began the turn. Rows without marks are older than marks, and taken for a person's
/// unless they carry a notification.
fn is_person(row: &Row) -> bool {
    match (row.turn_origin, row.origin, row.prompt_source) {
        (Some(origin), _, _) | (None, Some(origin), _) => origin == b"human",
        (None, None, Some(source)) => matches!(source, b"typed" | b"queued"),
        (None, None, None) => !row.message.text.unwrap_or_default().starts_with(b"<task-notification>"),
    }
}
