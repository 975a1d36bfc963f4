//! An export under way, in the registry from the moment it has an id.

use std::io;
use std::ops::ControlFlow;
use std::path::Path;

use super::continuation::{Order, Step, Work};
use super::export::{Done, Follow};
use super::name::name;
use crate::store::chains::{self, Entry, State};
use crate::store::lock::Held;

/// Follows the export: registers it when it has an id and when it is written, and stops it when that is asked.
pub struct Exporting<'a, 'b> {
    /// Keeps and tells.
    pub work: &'a mut Work<'b>,
    /// What is handed over.
    pub order: &'a Order,
    /// The child's depth in its chain.
    pub generation: u64,
    /// The attempt before, until this one is in its place.
    pub again: Option<(Entry, Held)>,
    /// The entry, once it has one, and the hold on it.
    pub begun: Option<(Entry, Option<Held>)>,
}

impl Exporting<'_, '_> {
    fn entry(&self, id: &str, dir: &Path) -> Entry {
        let order = self.order;
        Entry {
            id: id.to_owned(),
            state: State::Exporting,
            parent: order.parent.clone(),
            child: None,
            generation: self.generation,
            parent_name: None,
            name: order.name.clone().unwrap_or_default(),
            directory: dir.to_path_buf(),
            transcript: order.transcript.clone(),
            cwd: order.cwd.clone(),
            model: order.model.clone(),
            wall: order.wall,
            budget: order.budget,
            brief: order.brief.clone(),
            redact: order.redact,
            weight: order.weight.clone(),
            proof: None,
            outlook: None,
            times: chains::Times { began: self.work.host.now_ms(), ..chains::Times::default() },
            client_version: None,
            retries: 0,
            ids_in_use: Vec::new(),
            failure: None,
            rest: serde_json::Map::new(),
        }
    }
}

impl Follow for Exporting<'_, '_> {
    fn begun(&mut self, id: &str, dir: &Path) -> io::Result<()> {
        let mut entry = self.entry(id, dir);
        let mut held = None;
        let before = self.again.take().map(|(before, its)| {
            (entry.retries, entry.times.began) = (before.retries, before.times.began);
            if before.id == id {
                held = Some(its);
            }
            before.id
        });
        if held.is_none() {
            held = self.work.store.hold_export(id)?;
        }
        self.begun = Some((entry.clone(), held));
        let replaced = |have: &Entry| Some(&have.id) == before.as_ref();
        let kept = self.work.change(|all| match all.iter_mut().find(|have| replaced(have)) {
            Some(have) => *have = entry,
            None => all.push(entry),
        });
        kept.map_err(io::Error::other)
    }

    fn written(&mut self, done: &Done) -> io::Result<()> {
        let Some((entry, _)) = &mut self.begun else { return Ok(()) };
        let (order, generation, now) = (self.order, self.generation, self.work.host.now_ms());
        let here = self.work.host.current_dir();
        let kept = self.work.keep(entry, |entry| {
            entry.name = order
                .name
                .clone()
                .unwrap_or_else(|| name(done.title.as_deref().unwrap_or_default(), generation));
            entry.parent_name.clone_from(&done.title);
            // Where nobody knows where the parent worked, the child works here.
            entry.cwd = order.cwd.clone().or_else(|| done.cwd.clone()).or(here);
            entry.times.exported = Some(now);
        });
        *entry = kept.map_err(io::Error::other)?;
        Ok(())
    }

    fn at(&mut self, share: u64) -> ControlFlow<()> {
        (self.work.tell)(Step::Exporting(share));
        if self.work.stop.asked().is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}
