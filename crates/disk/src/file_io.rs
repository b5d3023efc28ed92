//! What was done with each file: how many operations of a kind, of how many bytes, and how long they took.
//!
//! A file counts for itself as long as it is open. What it has counted is then kept with that of the other
//! closed files of its kind (one extension, or one name up to its number), so that a sum over all files never
//! shrinks, and what is kept has no more rows than there are kinds.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

/// Operations of one kind.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Operations {
    /// How many, those that failed too.
    pub count: u64,
    /// What they transferred.
    pub bytes: u64,
    /// How long they took together.
    pub sum: Duration,
    /// The shortest; zero without any.
    pub least: Duration,
    /// The longest.
    pub most: Duration,
}

impl Operations {
    /// These and others.
    #[must_use]
    pub fn and(self, other: Operations) -> Operations {
        let least = match (self.count, other.count) {
            (0, _) => other.least,
            (_, 0) => self.least,
            _ => self.least.min(other.least),
        };
        Operations {
            count: self.count + other.count,
            bytes: self.bytes + other.bytes,
            sum: self.sum + other.sum,
            least,
            most: self.most.max(other.most),
        }
    }
}

/// What was done with a file, or with several.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct FileOperations {
    /// Reads.
    pub reads: Operations,
    /// Writes. One that is made durable by the same request has the time of its sync in it.
    pub writes: Operations,
    /// Syncs that were asked for by themselves.
    pub syncs: Operations,
}

impl FileOperations {
    /// These and others.
    #[must_use]
    pub fn and(self, other: FileOperations) -> FileOperations {
        FileOperations {
            reads: self.reads.and(other.reads),
            writes: self.writes.and(other.writes),
            syncs: self.syncs.and(other.syncs),
        }
    }

    /// All kinds together.
    pub fn all(self) -> Operations {
        self.reads.and(self.writes).and(self.syncs)
    }
}

/// A file, and what was done with it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileIo {
    /// Of all files that were opened, which one; of closed files nothing.
    pub number: Option<u64>,
    /// Its present name; of closed files that of one of them.
    pub name: PathBuf,
    /// Since it was opened.
    pub done: FileOperations,
}

/// Which kind of operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Operation {
    Read,
    Write,
    Sync,
}

#[derive(Default)]
struct Counters {
    count: AtomicU64,
    bytes: AtomicU64,
    nanoseconds: AtomicU64,
    /// One more than the least, so that 0 is none.
    least: AtomicU64,
    most: AtomicU64,
}

impl Counters {
    fn record(&self, bytes: u64, took: Duration) {
        let nanoseconds = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX - 1);
        self.count.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.nanoseconds.fetch_add(nanoseconds, Ordering::Relaxed);
        // Most operations are neither, and then only read what is hardly ever written.
        let least = self.least.load(Ordering::Relaxed);
        if least == 0 || nanoseconds + 1 < least {
            let lower = |known| (known == 0 || nanoseconds + 1 < known).then_some(nanoseconds + 1);
            let _ = self.least.fetch_update(Ordering::Relaxed, Ordering::Relaxed, lower);
        }
        if nanoseconds > self.most.load(Ordering::Relaxed) {
            self.most.fetch_max(nanoseconds, Ordering::Relaxed);
        }
    }

    fn now(&self) -> Operations {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Operations {
            count: get(&self.count),
            bytes: get(&self.bytes),
            sum: Duration::from_nanos(get(&self.nanoseconds)),
            least: Duration::from_nanos(get(&self.least).saturating_sub(1)),
            most: Duration::from_nanos(get(&self.most)),
        }
    }
}

#[derive(Default)]
struct Counts {
    reads: Counters,
    writes: Counters,
    syncs: Counters,
}

impl Counts {
    fn now(&self) -> FileOperations {
        FileOperations { reads: self.reads.now(), writes: self.writes.now(), syncs: self.syncs.now() }
    }
}

/// The counts of one open file.
pub(crate) struct FileCounts {
    all: Arc<AllFiles>,
    number: u64,
    counts: Arc<Counts>,
}

impl FileCounts {
    /// Of a file that was just opened.
    pub(crate) fn new(all: &Arc<AllFiles>, name: &Path) -> FileCounts {
        let counts = Arc::<Counts>::default();
        let mut files = all.0.lock();
        files.number += 1;
        let number = files.number;
        files.open.insert(number, (name.to_owned(), counts.clone()));
        FileCounts { all: all.clone(), number, counts }
    }

    /// Counts an operation that is over.
    pub(crate) fn record(&self, operation: Operation, bytes: usize, took: Duration) {
        let counters = match operation {
            Operation::Read => &self.counts.reads,
            Operation::Write => &self.counts.writes,
            Operation::Sync => &self.counts.syncs,
        };
        counters.record(bytes as u64, took);
    }
}

impl Drop for FileCounts {
    fn drop(&mut self) {
        let mut files = self.all.0.lock();
        let Some((name, counts)) = files.open.remove(&self.number) else { return };
        let done = counts.now();
        if done.all().count > 0 {
            let (_, before) = files.closed.entry(kind_of(&name)).or_insert((name, FileOperations::default()));
            *before = before.and(done);
        }
    }
}

/// What files of one kind have in common: the extension, or the name without its number.
fn kind_of(name: &Path) -> OsString {
    if let Some(extension) = name.extension() {
        return extension.to_owned();
    }
    let name = name.file_name().unwrap_or_default().to_string_lossy();
    name.trim_end_matches(|c: char| c.is_ascii_digit()).into()
}

/// The files of one storage.
#[derive(Default)]
pub(crate) struct AllFiles(Mutex<Files>);

#[derive(Default)]
struct Files {
    number: u64,
    open: HashMap<u64, (PathBuf, Arc<Counts>)>,
    closed: BTreeMap<OsString, (PathBuf, FileOperations)>,
}

impl AllFiles {
    /// A file has another name now. Nobody renames so often that it would pay to find it by its name.
    pub(crate) fn renamed(&self, from: &Path, to: &Path) {
        for (name, _) in self.0.lock().open.values_mut().filter(|(name, _)| name == from) {
            *name = to.to_owned();
        }
    }

    /// Those that are open, in the order of their opening, and then what was done with those that were.
    pub(crate) fn list(&self) -> Vec<FileIo> {
        let files = self.0.lock();
        let open = files.open.iter().map(|(number, (name, counts))| FileIo {
            number: Some(*number),
            name: name.clone(),
            done: counts.now(),
        });
        let mut all: Vec<FileIo> = open.collect();
        all.sort_by_key(|file| file.number);
        let closed = files.closed.values();
        all.extend(closed.map(|(name, done)| FileIo { number: None, name: name.clone(), done: *done }));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn closed_files_are_kept_by_kind() {
        let all = Arc::<AllFiles>::default();
        let open = |name: &str| FileCounts::new(&all, Path::new(name));
        for name in ["d/a.ibd", "d/b.ibd", "#sort-1", "#sort-2", "unused"] {
            let file = open(name);
            if name != "unused" {
                file.record(Operation::Write, 10, 2 * MS);
                file.record(Operation::Sync, 0, 3 * MS);
            }
        }
        let kept = open("d/c.ibd");
        kept.record(Operation::Read, 7, MS);
        kept.record(Operation::Read, 7, 4 * MS);
        all.renamed(Path::new("d/c.ibd"), Path::new("d/d.ibd"));
        let list = all.list();
        let names: Vec<_> = list.iter().map(|file| file.name.to_str().unwrap()).collect();
        assert_eq!(names, ["d/d.ibd", "#sort-1", "d/a.ibd"]);
        assert_eq!((list[0].number.is_some(), list[1].number), (true, None));
        let reads = Operations { count: 2, bytes: 14, sum: 5 * MS, least: MS, most: 4 * MS };
        assert_eq!(list[0].done, FileOperations { reads, ..FileOperations::default() });
        let writes = Operations { count: 2, bytes: 20, sum: 4 * MS, least: 2 * MS, most: 2 * MS };
        assert_eq!((list[1].done.writes, list[2].done.writes), (writes, writes));
        let both = list[0].done.and(list[1].done).all();
        assert_eq!((both.count, both.bytes, both.least, both.most), (6, 34, MS, 4 * MS));
    }
}
