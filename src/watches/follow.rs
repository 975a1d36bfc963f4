//! Follows the lines of a file: through rotation by renaming or by copying, replacement, deletion and return, and
//! through times in which nobody looked.
//!
//! A file is known by its number and by the bytes around the place that was reached, so that neither a number that
//! is used again nor a file that was emptied and has grown passes for the old one. What a file still holds that has
//! lost its name is read before the one that has it now.

mod find;
mod judge;
#[cfg(test)]
mod tests;

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use self::find::Witness;
use self::judge::{Look, Verdict, judge};
use super::lines::{self, LINE_MOST, Line};
use crate::host::files;
use crate::store::watches::{FilePlace, Inside, Mark};

/// A beginning of a line that nothing followed for so long is told as it is, ms.
const STILL_MS: i64 = 5_000;
/// A file that lost its name is read on for so long, ms: its writer may not know yet.
const LINGERS_MS: i64 = 60_000;
/// Of so many at once.
const BEFORE_MOST: usize = 16;
/// Bytes that are read at once.
const PIECE: usize = 64 << 10;

/// A file and the place in it.
#[derive(Debug)]
struct Source {
    mark: Mark,
    open: Option<(File, Witness)>,
    /// The beginning of a line that was found at its end, and since when: its size and the time.
    still: Option<(usize, i64)>,
}

/// What one step came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Step {
    /// There is more to read at once.
    pub more: bool,
    /// A file was gone or emptied before it was known to be read to its end.
    pub lost: bool,
}

/// What may still be read in this step, and who gets it.
struct Room<'a> {
    left: u64,
    each: &'a mut dyn FnMut(Line),
}

/// Follows one name.
#[derive(Debug)]
pub struct Follower {
    path: PathBuf,
    now: Option<Source>,
    before: Vec<Source>,
    turned_ms: i64,
    /// Nothing was looked at yet: what happened until then nobody saw.
    first: bool,
}

impl Source {
    fn at(mark: Mark) -> Self {
        Self { mark, open: None, still: None }
    }

    /// A file from its beginning.
    fn start(file: File, path: &Path) -> io::Result<Self> {
        let (device, inode) = files::identity(&file.metadata()?);
        let path = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
        let mut mark = Mark { device, inode, path, ..Mark::default() };
        let witness = Witness::default();
        witness.mark(&mut mark);
        Ok(Self { mark, open: Some((file, witness)), still: None })
    }

    fn is(&self, identity: (u64, u64)) -> bool {
        (self.mark.device, self.mark.inode) == identity
    }

    /// Opens it again, wherever it is; whether that is done.
    fn reopen(&mut self, watched: &Path) -> bool {
        if self.open.is_none()
            && let Some((file, _, witness)) = find::again(watched, &self.mark)
        {
            self.open = Some((file, witness));
        }
        self.open.is_some()
    }

    /// Whether another file begins as this one: with all of it where that can still be seen, else with what was
    /// read of it.
    fn goes_on_in(&self, other: &File) -> io::Result<bool> {
        if let Some((file, _)) = &self.open {
            let size = file.metadata()?.len();
            let whole = Witness::of(file, size)?;
            if size > 0 && whole.is_some() && whole == Witness::of(other, size)? {
                return Ok(true);
            }
        }
        let read = Witness::of(other, self.mark.offset)?;
        Ok(self.mark.offset > 0 && read.is_some_and(|witness| witness.is(&self.mark)))
    }

    /// Reads on to its end, or as far as there is room; whether there is more.
    fn read(&mut self, now_ms: i64, ended: bool, room: &mut Room) -> io::Result<bool> {
        let Some((file, witness)) = &mut self.open else { return Ok(false) };
        let mut begun = self.still.map_or(0, |(length, _)| length);
        let meta = file.metadata()?;
        if meta.len() != self.mark.offset + begun as u64 || ended {
            self.mark.changed_ms = find::changed_ms(&meta);
            let mut piece = vec![0; PIECE];
            loop {
                if room.left == 0 {
                    return Ok(true);
                }
                let got = files::read_at(file, self.mark.offset, &mut piece)?;
                let (done, inside) = lines::split(&piece[..got], self.mark.inside, room.each);
                if done == 0 {
                    self.still = self.still.filter(|(length, _)| *length == got);
                    begun = got;
                    break;
                }
                witness.go_on(&piece[..done]);
                self.mark.offset += done as u64;
                self.mark.inside = inside;
                self.still = None;
                room.left = room.left.saturating_sub(done as u64);
            }
            witness.mark(&mut self.mark);
        }
        if begun == 0 {
            self.still = None;
            return Ok(false);
        }
        let (_, since) = *self.still.get_or_insert((begun, now_ms));
        let still = now_ms.saturating_sub(since) >= STILL_MS || now_ms < since;
        if (still || ended) && self.mark.offset + begun as u64 > self.mark.seen {
            let mut left = vec![0; begun.min(LINE_MOST)];
            let got = files::read_at(file, self.mark.offset, &mut left)?;
            lines::rest(&left[..got], self.mark.inside, room.each);
            witness.go_on(&left[..got]);
            witness.mark(&mut self.mark);
            self.mark.offset += got as u64;
            self.mark.inside = Inside::Begun;
            self.still = None;
        }
        Ok(false)
    }
}

impl Follower {
    /// Goes on from a place.
    pub fn at(path: &Path, place: FilePlace) -> Self {
        let FilePlace { now, before, turned_ms } = place;
        Self {
            path: path.to_path_buf(),
            now: now.map(Source::at),
            before: before.into_iter().map(Source::at).collect(),
            turned_ms,
            first: true,
        }
    }

    /// The place before the first step: at the end of the file as it is, or at its beginning. A file that is not
    /// there is waited for, and is new when it comes.
    pub fn begin(path: &Path, from_start: bool) -> io::Result<FilePlace> {
        let Some(file) = open(path)? else { return Ok(FilePlace::default()) };
        let mut source = Source::start(file, path)?;
        if let (Some((file, _)), false) = (&source.open, from_start) {
            let size = file.metadata()?.len();
            // The line that is being written is told whole once it has its end.
            let back = size.min(LINE_MOST as u64 - 1);
            let mut end = vec![0; usize::try_from(back).unwrap_or(0)];
            let got = files::read_at(file, size - back, &mut end)?;
            let begun = memchr::memrchr(b'\n', &end[..got]).map(|at| got - at - 1);
            let (begun, inside) = match begun {
                Some(begun) => (begun, Inside::No),
                None if size == back => (got, Inside::No),
                None => (0, Inside::Long),
            };
            let offset = size - begun as u64;
            source.mark = Mark { offset, inside, seen: size, ..source.mark };
            Witness::of(file, offset)?.unwrap_or_default().mark(&mut source.mark);
        }
        Ok(FilePlace { now: Some(source.mark), ..FilePlace::default() })
    }

    /// The place that is reached. What has no name cannot be found again, but its number may be.
    pub fn place(&self) -> FilePlace {
        let named = |source: &&Source| source.open.as_ref().is_none_or(|(file, _)| !files::is_nameless(file));
        FilePlace {
            now: self.now.as_ref().map(|source| source.mark.clone()),
            before: self.before.iter().filter(named).map(|source| source.mark.clone()).collect(),
            turned_ms: self.turned_ms,
        }
    }

    /// Looks once, and gives every new line to `each`, of at most about `budget` bytes. An error says why the file
    /// cannot be read; the place stays.
    pub fn step(&mut self, now_ms: i64, budget: u64, each: &mut dyn FnMut(Line)) -> io::Result<Step> {
        let mut step = Step::default();
        let mut room = Room { left: budget, each };
        for _ in 0..4 {
            step.more = self.read_before(now_ms, &mut room)?;
            if step.more || self.look(now_ms, &mut step, &mut room)? {
                break;
            }
        }
        self.first = false;
        Ok(step)
    }

    /// Looks at the name; whether everything is as it was, and read.
    fn look(&mut self, now_ms: i64, step: &mut Step, room: &mut Room) -> io::Result<bool> {
        let found = open_other(&self.path, self.now.as_ref())?;
        let Some(mut source) = self.now.take() else {
            if let Found::File(file) = found {
                self.now = Some(self.take_up(file)?);
            }
            return Ok(self.now.is_none());
        };
        let known = source.reopen(&self.path);
        if !matches!(found, Found::Same(_)) {
            self.turn_away_emptied(&mut source)?;
        }
        let offset = source.mark.offset;
        let look = match (&found, &source.open) {
            (Found::None, _) => None,
            (Found::Same(size), Some((file, witness))) => Some(Look {
                same: true,
                size: *size,
                agrees: *size >= offset && witness.holds(file, offset)?,
            }),
            // It has the number that the old one had, and is another.
            (Found::Same(size), None) => Some(Look { same: true, size: *size, agrees: false }),
            (Found::File(file), _) => {
                Some(Look { same: false, size: file.metadata()?.len(), agrees: source.goes_on_in(file)? })
            }
        };
        let nameless = source.open.as_ref().is_none_or(|(file, _)| files::is_nameless(file));
        let verdict = judge(look, offset, nameless);
        if verdict == Verdict::GoOn {
            let more = source.read(now_ms, false, room);
            self.now = Some(source);
            step.more = more?;
            return Ok(true);
        }
        self.turned_ms = now_ms;
        match (verdict, found) {
            (Verdict::Rewritten, Found::File(file)) => {
                let mark = source.mark;
                let mut next = Source::start(file, &self.path)?;
                let (file, _) = next.open.take().ok_or_else(|| io::Error::other("a file without itself"))?;
                let witness = Witness::of(&file, offset)?.unwrap_or_default();
                let Mark { device, inode, path, .. } = next.mark;
                self.now = Some(Source {
                    mark: Mark { device, inode, path, ..mark },
                    open: Some((file, witness)),
                    still: None,
                });
            }
            (Verdict::Emptied, _) => {
                if let Some((file, path)) = find::copy(&self.path, &source.mark) {
                    self.turn_away(Self::copied(&source.mark, file, &path)?)?;
                } else if self.first {
                    step.lost = true;
                }
                self.now = open(&self.path)?.map(|file| Source::start(file, &self.path)).transpose()?;
            }
            (_, found) => {
                if known {
                    self.turn_away(source)?;
                } else {
                    step.lost = true;
                }
                if let Found::File(file) = found {
                    self.now = Some(self.take_up(file)?);
                }
            }
        }
        Ok(false)
    }

    /// The place of an emptied file, in a copy of what it was.
    fn copied(mark: &Mark, file: File, path: &Path) -> io::Result<Source> {
        let witness = Witness::of(&file, mark.offset)?.unwrap_or_default();
        let start = Source::start(file, path)?;
        let Mark { device, inode, path, .. } = start.mark;
        let open = start.open.map(|(file, _)| (file, witness));
        Ok(Source { mark: Mark { device, inode, path, ..mark.clone() }, open, still: None })
    }

    /// A file that was emptied before it lost its name: what it was then, and itself from its beginning.
    fn turn_away_emptied(&mut self, source: &mut Source) -> io::Result<()> {
        let Some((file, witness)) = &source.open else { return Ok(()) };
        if witness.holds(file, source.mark.offset)? {
            return Ok(());
        }
        let anew = Source::start(file.try_clone()?, &source.mark.path)?;
        let was = std::mem::replace(source, anew);
        if let Some((file, path)) = find::copy(&self.path, &was.mark) {
            self.before.push(Self::copied(&was.mark, file, &path)?);
        }
        Ok(())
    }

    /// Puts a file that lost its name among those before, and those that had the name since then.
    fn turn_away(&mut self, source: Source) -> io::Result<()> {
        let was = source.mark.clone();
        let went = find::again(&self.path, &was).map(|(_, path, _)| path);
        self.before.push(source);
        for (file, path) in went.map(|path| find::between(&self.path, &was, &path)).unwrap_or_default() {
            let next = Source::start(file, &path)?;
            let identity = (next.mark.device, next.mark.inode);
            if !self.before.iter().any(|source| source.is(identity)) {
                self.before.push(next);
            }
        }
        Ok(())
    }

    /// A file that has the name now: where it was left, if it had it before.
    fn take_up(&mut self, file: File) -> io::Result<Source> {
        let identity = files::identity(&file.metadata()?);
        let at = self.before.iter().position(|source| source.is(identity));
        if let Some(mut source) = at.map(|at| self.before.remove(at))
            && let Some(witness) = Witness::of(&file, source.mark.offset)?
            && witness.is(&source.mark)
        {
            source.open = Some((file, witness));
            return Ok(source);
        }
        Source::start(file, &self.path)
    }

    /// Reads what the files before still have; whether there is more of it.
    fn read_before(&mut self, now_ms: i64, room: &mut Room) -> io::Result<bool> {
        let over = now_ms.saturating_sub(self.turned_ms) >= LINGERS_MS || now_ms < self.turned_ms;
        let crowd = self.before.len().saturating_sub(BEFORE_MOST);
        let mut at = 0;
        while at < self.before.len() {
            let source = &mut self.before[at];
            let there = source.reopen(&self.path);
            let ends = over || at < crowd;
            // Emptied, it is nothing any more: whoever does that to it reuses it.
            let agrees = source.open.as_ref().map(|(file, witness)| witness.holds(file, source.mark.offset));
            if there && agrees.transpose()?.unwrap_or(false) && source.read(now_ms, ends, room)? {
                return Ok(true);
            }
            at += 1;
        }
        self.before.drain(..if over { self.before.len() } else { crowd });
        Ok(false)
    }
}

/// What has the name.
enum Found {
    None,
    /// The file that is read, of this size.
    Same(u64),
    /// Another one.
    File(File),
}

/// Looks at the name, and opens what has it where that is another file.
fn open_other(path: &Path, now: Option<&Source>) -> io::Result<Found> {
    match std::fs::metadata(path) {
        Ok(meta) if meta.is_file() && now.is_some_and(|now| now.is(files::identity(&meta))) => {
            Ok(Found::Same(meta.len()))
        }
        Ok(_) => Ok(open(path)?.map_or(Found::None, Found::File)),
        Err(error) if is_absent(&error) => Ok(Found::None),
        Err(error) => Err(error),
    }
}

/// The file of this name, if there is one.
fn open(path: &Path) -> io::Result<Option<File>> {
    match files::open_regular(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if is_absent(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}
