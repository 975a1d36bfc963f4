//! Who went on in whom, reckoned from the registry's entries and from what is known of sessions beside them.
//!
//! A registry may hold anything: rings, a session that is its own parent, the same entry twice. Every walk here
//! ends, and names each session and each entry at most once.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use crate::store::chains::{Entry, Link, State};

/// A lineage, from the oldest member on.
#[derive(Debug, Default)]
pub struct Lineage<'a> {
    /// Its sessions.
    pub sessions: Vec<Member<'a>>,
    /// Its handoffs, those that came to nothing too.
    pub handoffs: Vec<&'a Entry>,
}

/// A session of a lineage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Member<'a> {
    /// Its id.
    pub session: &'a str,
    /// The member that it came from; `None`: nobody knows of one.
    pub from: Option<&'a str>,
    /// Whether that was by a handoff, not by /clear or a fork.
    pub handed_over: bool,
}

/// One session came from another.
#[derive(Debug, Clone, Copy)]
struct Step<'a> {
    from: &'a str,
    to: &'a str,
    by: Option<&'a Entry>,
}

/// The steps by which sessions came from one another.
struct Steps<'a> {
    all: Vec<Step<'a>>,
    into: HashMap<&'a str, Vec<usize>>,
    out_of: HashMap<&'a str, Vec<usize>>,
}

impl<'a> Steps<'a> {
    fn of(entries: &'a [Entry], links: &'a [Link]) -> Self {
        let mut steps = Self { all: Vec::new(), into: HashMap::new(), out_of: HashMap::new() };
        for entry in entries {
            if let Some(child) = &entry.child {
                steps.add(Step { from: &entry.parent.session, to: &child.session, by: Some(entry) });
            }
        }
        for link in entries.iter().flat_map(links_of).chain(links) {
            let line: Vec<&str> =
                [&link.session].into_iter().chain(&link.came_from).map(|id| &**id).collect();
            for pair in line.windows(2) {
                steps.add(Step { from: pair[1], to: pair[0], by: None });
            }
        }
        for line in in_one_process(entries).into_values() {
            for pair in line.windows(2) {
                steps.add(Step { from: pair[0], to: pair[1], by: None });
            }
        }
        steps
    }

    fn add(&mut self, step: Step<'a>) {
        if step.from == step.to || step.from.is_empty() || step.to.is_empty() {
            return;
        }
        self.into.entry(step.to).or_default().push(self.all.len());
        self.out_of.entry(step.from).or_default().push(self.all.len());
        self.all.push(step);
    }

    /// How a session came about, by a step that is not `taken`: by the handoff that came furthest, of those the
    /// newest; else by the first other step.
    fn way_into(&self, session: &str, taken: impl Fn(&str) -> bool) -> Option<Step<'a>> {
        let steps = self.into.get(session)?.iter().rev().map(|at| self.all[*at]);
        let free = steps.filter(|step| !taken(step.from));
        free.max_by_key(|step| step.by.map(|entry| (rank(entry), entry.times.began)))
    }

    fn out_of(&self, session: &str) -> Vec<Step<'a>> {
        let mut steps: Vec<Step> =
            self.out_of.get(session).into_iter().flatten().map(|at| self.all[*at]).collect();
        steps.sort_by_key(|step| (step.by.is_none(), step.by.map(|entry| entry.times.began)));
        steps
    }
}

/// What came about counts before what did not.
fn rank(entry: &Entry) -> u8 {
    match entry.state {
        State::Accepted => 2,
        State::Partial => 1,
        _ => 0,
    }
}

fn links_of(entry: &Entry) -> impl Iterator<Item = &Link> {
    [Some(&entry.parent), entry.child.as_ref()].into_iter().flatten()
}

/// Sessions that handed over in the same process, in that order.
fn in_one_process(entries: &[Entry]) -> BTreeMap<(u32, &str), Vec<&str>> {
    let mut in_order: Vec<&Entry> = entries.iter().collect();
    in_order.sort_by_key(|entry| entry.times.began);
    let mut found: BTreeMap<(u32, &str), Vec<&str>> = BTreeMap::new();
    let mut named = HashSet::new();
    for Link { session, pid, started, .. } in in_order.into_iter().map(|entry| &entry.parent) {
        if let Some(process) = pid.zip(started.as_deref())
            && named.insert((process, session))
        {
            found.entry(process).or_default().push(session);
        }
    }
    found
}

/// The lineage of a session: up to the oldest member, and from there down to everybody. `links` tell of sessions
/// that are not in the registry, or more of those that are.
pub fn lineage<'a>(entries: &'a [Entry], links: &'a [Link], session: &'a str) -> Lineage<'a> {
    let steps = Steps::of(entries, links);
    let mut oldest = session;
    let mut way = HashSet::from([session]);
    while let Some(step) = steps.way_into(oldest, |from| way.contains(from)) {
        way.insert(step.from);
        oldest = step.from;
    }
    let mut lineage = Lineage::default();
    let mut named = HashSet::from([oldest]);
    let mut next = VecDeque::from([Member { session: oldest, from: None, handed_over: false }]);
    while let Some(member) = next.pop_front() {
        lineage.sessions.push(member);
        for step in steps.out_of(member.session) {
            if named.insert(step.to) {
                let (session, from) = (step.to, Some(step.from));
                next.push_back(Member { session, from, handed_over: step.by.is_some() });
            }
        }
    }
    let mut handoffs: Vec<&Entry> =
        entries.iter().filter(|entry| named.contains(&*entry.parent.session)).collect();
    let place: HashMap<&str, usize> =
        lineage.sessions.iter().enumerate().map(|(place, member)| (member.session, place)).collect();
    handoffs.sort_by_key(|entry| (place.get(&*entry.parent.session), entry.times.began));
    let mut once = HashSet::new();
    handoffs.retain(|entry| once.insert(&*entry.id));
    lineage.handoffs = handoffs;
    lineage
}

/// The handoffs whose exports hold the words of the generations before this session, the oldest first, one a
/// generation. `came_from`: the sessions that it was forked from or cleared out of, the nearest first. Only what a
/// child has read counts. The session is of generation one more than there are of them.
pub fn ancestors<'a>(entries: &'a [Entry], session: &str, came_from: &[String]) -> Vec<&'a Entry> {
    let mut found: Vec<&Entry> = Vec::new();
    let mut named = HashSet::from([session]);
    let mut near = with_origins(entries, session, came_from);
    while let Some(entry) = nearest_into(entries, &near, &named) {
        found.push(entry);
        named.insert(&entry.parent.session);
        near = with_origins(entries, &entry.parent.session, &entry.parent.came_from);
    }
    found.reverse();
    found
}

/// The handoff that one of these sessions came about by, the nearest first; not from one that was `named`.
fn nearest_into<'a>(entries: &'a [Entry], near: &[String], named: &HashSet<&str>) -> Option<&'a Entry> {
    let happened = entries.iter().filter(|entry| rank(entry) > 0 && !named.contains(&*entry.parent.session));
    let placed = happened.filter_map(|entry| {
        let child = &entry.child.as_ref()?.session;
        Some((near.iter().position(|session| session == child)?, entry))
    });
    let best = placed.min_by_key(|(place, entry)| (*place, Reverse((rank(entry), entry.times.began))));
    best.map(|(_, entry)| entry)
}

/// A session and those it came from without a handoff, the nearest first.
fn with_origins(entries: &[Entry], session: &str, came_from: &[String]) -> Vec<String> {
    let mut line = vec![session.to_owned()];
    let known = entries.iter().flat_map(links_of).filter(|link| link.session == session);
    for origin in came_from.iter().chain(known.flat_map(|link| &link.came_from)) {
        if !origin.is_empty() && !line.contains(origin) {
            line.push(origin.clone());
        }
    }
    line
}

/// The ids of the exports that a living chain needs: one lives once a child has read an export. Kept are those
/// whose child handed nothing on itself, and the newest of the chain.
pub fn needed(entries: &[Entry]) -> HashSet<&str> {
    let mut kept = HashSet::new();
    for chain in chains(entries) {
        let accepted: Vec<&Entry> =
            chain.iter().copied().filter(|entry| entry.state == State::Accepted).collect();
        let carried_on: HashSet<&str> = accepted.iter().map(|entry| &*entry.parent.session).collect();
        let last = accepted.iter().filter(|entry| {
            let child = entry.child.as_ref().map(|link| &*link.session);
            child.is_none_or(|child| !carried_on.contains(child))
        });
        let last_of_all = chain.iter().filter(|entry| !accepted.is_empty() && entry.state != State::Failed);
        let newest = [newest(accepted.iter()), newest(last_of_all)];
        kept.extend(last.copied().chain(newest.into_iter().flatten()).map(|entry| &*entry.id));
    }
    kept
}

fn newest<'a, 'b>(entries: impl Iterator<Item = &'b &'a Entry>) -> Option<&'a Entry>
where
    'a: 'b,
{
    entries.copied().max_by_key(|entry| entry.times.began)
}

/// The entries by chain: those whose sessions are linked in whatever way.
fn chains(entries: &[Entry]) -> Vec<Vec<&Entry>> {
    let steps = Steps::of(entries, &[]);
    let mut chain_of: HashMap<&str, usize> = HashMap::new();
    let mut chains: Vec<Vec<&Entry>> = Vec::new();
    for entry in entries {
        let chain = chain_of.get(&*entry.parent.session).copied().unwrap_or(chains.len());
        if chain == chains.len() {
            chains.push(Vec::new());
            let mut next = vec![&*entry.parent.session];
            while let Some(session) = next.pop() {
                if chain_of.insert(session, chain).is_none() {
                    next.extend(steps.into.get(session).into_iter().flatten().map(|at| steps.all[*at].from));
                    next.extend(steps.out_of.get(session).into_iter().flatten().map(|at| steps.all[*at].to));
                }
            }
        }
        chains[chain].push(entry);
    }
    chains
}

#[cfg(test)]
mod tests;
