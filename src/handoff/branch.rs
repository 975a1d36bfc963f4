//! Which rows are on the live branch, and which were taken back by a rewind. Pure: links in, states out.
//!
//! The chain of `parentUuid` from the last leaf alone does not tell: results of calls made side by side,
//! and messages queued before an Esc, hang beside it and were sent all the same; and where a row is lost,
//! the chain ends early. So a row counts as taken back on evidence only:
//! * a prompt off the chain that has a sibling prompt of another turn (Esc before any output, /rewind), and
//!   no sibling result of its own turn (a message queued before an Esc);
//! * a message sent mid-turn off the chain in whose place a later prompt stands that the client marks as a rewind;
//! * everything that hangs on such a prompt;
//! * what stands before a prompt with `promptIndex` 1 that the client marks as a rewind, compactions too: going
//!   back to the very first prompt, it hangs the new one on the abandoned leaf.

/// One row of the conversation, 24 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Link {
    /// Hash of `uuid`; never 0.
    pub uuid: u64,
    /// Hash of `parentUuid`, of `logicalParentUuid` for a compaction; 0 for none.
    pub parent: u64,
    /// Hash of `promptId`; 0 for none.
    pub turn: u32,
    /// [`PROMPT`] and the others.
    pub flags: u32,
}

/// A person's prompt.
pub const PROMPT: u32 = 1;
/// A tool's result.
pub const RESULT: u32 = 2;
/// Moves the leaf.
pub const MOVES: u32 = 4;
/// A compaction.
pub const BOUNDARY: u32 = 8;
/// A prompt with `promptIndex` 1.
pub const FIRST: u32 = 16;
/// The client noted right after it that the conversation was taken back.
pub const TAKEN_BACK: u32 = 32;
/// Begins a chain.
pub const ROOT: u32 = 64;
/// A person's message sent while a turn ran.
pub const MID_TURN: u32 = 128;

/// What became of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum State {
    /// Not decided.
    #[default]
    Open,
    /// In the conversation.
    Live,
    /// Taken back by a rewind.
    Rewound,
    /// The same row again.
    Copy,
}

/// Decides for every row.
pub fn states(links: &[Link]) -> Vec<State> {
    Branches::new(links).decide()
}

struct Branches<'a> {
    links: &'a [Link],
    /// Rows by uuid, the earliest first among copies.
    order: Vec<u32>,
    states: Vec<State>,
}

fn place(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

impl<'a> Branches<'a> {
    fn new(links: &'a [Link]) -> Self {
        let mut order: Vec<u32> = (0..place(links.len())).collect();
        order.sort_unstable_by_key(|at| (links[*at as usize].uuid, *at));
        Self { links, order, states: vec![State::Open; links.len()] }
    }

    fn find(&self, uuid: u64) -> Option<usize> {
        let first = self.order.partition_point(|at| self.links[*at as usize].uuid < uuid);
        let at = *self.order.get(first)? as usize;
        (uuid != 0 && self.links[at].uuid == uuid).then_some(at)
    }

    fn parent(&self, at: usize) -> Option<usize> {
        self.find(self.links[at].parent).filter(|parent| *parent != at)
    }

    fn decide(mut self) -> Vec<State> {
        for pair in 1..self.order.len() {
            let (one, two) = (self.order[pair - 1] as usize, self.order[pair] as usize);
            if self.links[one].uuid == self.links[two].uuid {
                self.states[two] = State::Copy;
            }
        }
        self.chain();
        self.prompts();
        self.order_of_descent();
        self.states
    }

    /// From the last leaf to the root.
    fn chain(&mut self) {
        let is_leaf = |at: &usize| self.links[*at].flags & MOVES != 0 && self.states[*at] == State::Open;
        let mut next = (0..self.links.len()).rev().find(is_leaf);
        let mut state = State::Live;
        while let Some(at) = next {
            if self.states[at] != State::Open {
                break;
            }
            self.states[at] = state;
            let again = PROMPT | FIRST | TAKEN_BACK;
            if self.links[at].flags & again == again && !self.is_counted_anew(at) {
                state = State::Rewound;
            }
            next = self.parent(at);
        }
    }

    /// Whether the last compaction before a prompt made the client count prompts from 1 again. 2.1.332 goes on
    /// counting; one that does not goes back to the compaction and no further.
    fn is_counted_anew(&self, prompt: usize) -> bool {
        let mut at = prompt;
        for _ in 0..self.links.len() {
            if self.links[at].flags & BOUNDARY != 0 {
                let first = |link: &Link| link.flags & (PROMPT | FIRST | TAKEN_BACK) == PROMPT | FIRST;
                return self.links.get(at..prompt).is_some_and(|links| links.iter().any(first));
            }
            match self.parent(at) {
                Some(parent) => at = parent,
                None => return false,
            }
        }
        false
    }

    /// What was said beside the chain.
    fn prompts(&mut self) {
        let links = self.links;
        let mut family: Vec<u32> = (0..place(links.len()))
            .filter(|at| {
                let link = &links[*at as usize];
                link.flags & (PROMPT | MID_TURN | RESULT) != 0 && self.states[*at as usize] != State::Copy
            })
            .collect();
        family.sort_unstable_by_key(|at| (links[*at as usize].parent, *at));
        for siblings in family.chunk_by(|a, b| links[*a as usize].parent == links[*b as usize].parent) {
            // Of very many only the next few are asked, so that no file makes this slow.
            for (n, at) in siblings.iter().enumerate() {
                let at = *at as usize;
                if links[at].flags & (PROMPT | MID_TURN) == 0 || self.states[at] != State::Open {
                    continue;
                }
                let near = &siblings[n.saturating_sub(64)..siblings.len().min(n + 65)];
                let last = siblings.last().into_iter();
                let others =
                    near.iter().chain(last).map(|other| *other as usize).filter(|other| *other != at);
                self.states[at] = self.judge(at, others);
            }
        }
    }

    fn judge(&self, at: usize, siblings: impl Iterator<Item = usize>) -> State {
        let link = &self.links[at];
        let mut state = State::Open;
        for other in siblings {
            let sibling = &self.links[other];
            let same_turn = link.turn != 0 && sibling.turn == link.turn;
            if sibling.flags & RESULT != 0 && same_turn && link.parent != 0 {
                return State::Live;
            }
            let replaces = other > at || self.states[other] == State::Live;
            // Without a parent in common nothing but the count of prompts tells a rewind from a lost row.
            let kin =
                link.parent != 0 || (link.flags & sibling.flags & ROOT != 0 && sibling.flags & FIRST != 0);
            // It belongs to a turn, and others may hang where it does: only the client's word counts.
            let told = link.flags & MID_TURN == 0 || (other > at && sibling.flags & TAKEN_BACK != 0);
            if sibling.flags & PROMPT != 0 && !same_turn && replaces && kin && told {
                state = State::Rewound;
            }
        }
        state
    }

    /// All others are what their parents are.
    fn order_of_descent(&mut self) {
        let mut way = Vec::new();
        for start in 0..self.links.len() {
            let mut at = start;
            let found = loop {
                match self.states[at] {
                    State::Open => {}
                    State::Copy => break State::Live,
                    state => break state,
                }
                way.push(at);
                match self.parent(at) {
                    // A ring has no root; its rows were never taken back.
                    Some(parent) if way.len() <= self.links.len() => at = parent,
                    _ => break State::Live,
                }
            };
            for at in way.drain(..) {
                self.states[at] = found;
            }
        }
    }
}
