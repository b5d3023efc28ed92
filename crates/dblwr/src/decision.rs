//! Chooses each file's write path: the probe's verdict, atomic writes that were refused, and the
//! throughput that `path_measurement.rs` found for each (the trial).
//!
//! The verdict is asked for when a file is first looked at, and kept in memory only, because the same name
//! may lie elsewhere after a restore or a move of the volume. A file whose storage refuses an atomic write it
//! had offered goes through the doublewrite from then on, until it is opened again or the mode is set to AUTO
//! again.

use crate::mode::{Mode, WritePath};
use crate::path_measurement::PathMeasurement;
use crate::requests::AtomicPage;
use disk::File;
use disk::probe::{Atomic, Verdict};
use page::{ContiguousRuns, WriteBatch};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// How a file is protected, and why.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileProtection {
    /// The file, by the name it was opened by.
    pub file: PathBuf,
    /// Who could write its pages atomically.
    pub verdict: Atomic,
    /// The facts the verdict and the way rest on, a sentence.
    pub reason: String,
    /// How its pages are written now.
    pub mode: WritePath,
}

/// What is known of one open file.
pub(crate) struct FileState {
    /// Keeps the address from being used for another file as long as this entry is there.
    file: Weak<dyn File>,
    path: PathBuf,
    verdict: Verdict,
    trial: Arc<Mutex<PathMeasurement>>,
    refused: Mutex<Option<String>>,
    /// The file system was told what is to come.
    told: AtomicBool,
}

impl FileState {
    /// The storage refused an atomic write. Whether that is news.
    pub(crate) fn refuse(&self, why: String) -> bool {
        let mut refused = self.refused.lock();
        let is_news = refused.is_none();
        refused.get_or_insert(why);
        is_news
    }

    /// Who decides how the file is written where the mode leaves it open.
    fn choice(&self) -> Choice {
        match self.verdict.atomic {
            _ if self.refused.lock().is_some() => Choice::Path(WritePath::Doublewrite),
            Atomic::None => Choice::Path(WritePath::Doublewrite),
            Atomic::Hardware => Choice::Path(WritePath::Atomic),
            Atomic::FileSystem => Choice::Measured,
        }
    }

    fn protection(&self, mode: Mode) -> FileProtection {
        let facts = &self.verdict.reason;
        let refused = self.refused.lock().clone();
        let (path, reason) = match (mode.path(), refused, self.choice()) {
            (Some(path), ..) => (path, facts.clone()),
            (None, Some(why), _) => (WritePath::Doublewrite, format!("{facts}, but it refused one: {why}")),
            (None, None, Choice::Path(path)) => (path, facts.clone()),
            (None, None, Choice::Measured) => {
                let trial = self.trial.lock();
                (trial.chosen(), format!("{facts}; {}", trial.outcome()))
            }
        };
        FileProtection { file: self.path.clone(), verdict: self.verdict.atomic, reason, mode: path }
    }
}

/// How the path of a file is chosen in the mode AUTO.
enum Choice {
    /// It is this one.
    Path(WritePath),
    /// The faster of two, as measured.
    Measured,
}

/// The files known.
pub(crate) struct Decisions {
    page_size: usize,
    files: Mutex<HashMap<usize, Arc<FileState>>>,
    /// One measurement for all files of a device.
    trials: Mutex<HashMap<u64, Arc<Mutex<PathMeasurement>>>>,
}

/// How the pages of a batch are written: indices in the batch, ascending.
#[derive(Default)]
pub(crate) struct Plan {
    /// In place at once, atomically.
    pub(crate) atomic: Vec<AtomicPage>,
    /// In place at once, each by a write of its own, which the device never tears.
    pub(crate) single: Vec<usize>,
    /// In place at once.
    pub(crate) plain: Vec<usize>,
    /// Copied first.
    pub(crate) copied: Vec<usize>,
    /// Number written first.
    pub(crate) numbered: Vec<usize>,
    /// Of `plain`, those that need no copy.
    pub(crate) recreatable: usize,
    /// The measurements the batch takes part in, with the way it goes and the pages it has there.
    pub(crate) turns: Vec<Measured>,
}

/// A batch's part in a measurement.
pub(crate) struct Measured {
    pub(crate) trial: Arc<Mutex<PathMeasurement>>,
    pub(crate) way: WritePath,
    pub(crate) pages: usize,
}

impl Decisions {
    pub(crate) fn new(page_size: usize) -> Decisions {
        Decisions { page_size, files: Mutex::default(), trials: Mutex::default() }
    }

    /// Forgets everything, so that storages are asked again.
    pub(crate) fn forget(&self) {
        self.files.lock().clear();
        self.trials.lock().clear();
    }

    /// What is known of a file.
    pub(crate) fn of(&self, file: &Arc<dyn File>) -> Arc<FileState> {
        let address = Arc::as_ptr(file).cast::<()>() as usize;
        let mut files = self.files.lock();
        if let Some(state) = files.get(&address)
            && state.file.strong_count() > 0
        {
            return state.clone();
        }
        // Files that were closed are forgotten now and then: looking for them each time would take all files
        // for each new one.
        if files.len() >= 64 && files.len().is_power_of_two() {
            files.retain(|_, state| state.file.strong_count() > 0);
        }
        let verdict = file.protection(self.page_size);
        let trial = self.trials.lock().entry(file.device()).or_default().clone();
        let state = Arc::new(FileState {
            file: Arc::downgrade(file),
            path: file.path().to_owned(),
            verdict,
            trial,
            refused: Mutex::default(),
            told: AtomicBool::new(false),
        });
        files.insert(address, state.clone());
        state
    }

    /// How one file is protected.
    pub(crate) fn protection(&self, file: &Arc<dyn File>, mode: Mode) -> FileProtection {
        self.of(file).protection(mode)
    }

    /// How pages of a file that lie side by side are going to be cut into requests.
    pub(crate) fn contiguous_runs(&self, file: &Arc<dyn File>, mode: Mode) -> ContiguousRuns {
        if mode.path().is_some() {
            return ContiguousRuns::Merged;
        }
        let state = self.of(file);
        let path = match state.choice() {
            Choice::Path(path) => path,
            Choice::Measured => state.trial.lock().next(),
        };
        let in_pairs = state.verdict.flagged && state.verdict.longest >= 2 * self.page_size as u64;
        match path {
            WritePath::Atomic if in_pairs => ContiguousRuns::Aligned,
            _ => ContiguousRuns::Merged,
        }
    }

    /// How a batch is written in this mode.
    pub(crate) fn plan(&self, batch: &WriteBatch, mode: Mode, now: Duration) -> Plan {
        let mut plan = Plan::default();
        let mut last: Option<(&Arc<dyn File>, Ruling)> = None;
        for (index, page) in batch.pages().iter().enumerate() {
            let ruling = match last {
                Some((file, ruling)) if Arc::ptr_eq(file, &page.file) => ruling,
                _ => self.rule(&page.file, mode, now, &mut plan.turns),
            };
            last = Some((&page.file, ruling));
            if let Some(turn) = ruling.turn {
                plan.turns[turn].pages += 1;
            }
            match ruling.way {
                WritePath::Atomic if ruling.unflagged => plan.single.push(index),
                WritePath::Atomic => plan.atomic.push(AtomicPage { index, longest: ruling.longest }),
                WritePath::Plain => plan.plain.push(index),
                WritePath::Doublewrite | WritePath::Detect if page.recreatable => {
                    plan.plain.push(index);
                    plan.recreatable += 1;
                }
                WritePath::Doublewrite => plan.copied.push(index),
                WritePath::Detect => plan.numbered.push(index),
            }
        }
        plan
    }

    fn rule(&self, file: &Arc<dyn File>, mode: Mode, now: Duration, turns: &mut Vec<Measured>) -> Ruling {
        if let Some(way) = mode.path() {
            return Ruling { way, unflagged: false, longest: 0, turn: None };
        }
        let state = self.of(file);
        let (way, turn) = match state.choice() {
            Choice::Path(path) => (path, None),
            Choice::Measured => {
                if !state.told.swap(true, Ordering::Relaxed) {
                    file.expect_copy_on_write();
                }
                let known = turns.iter().position(|turn| Arc::ptr_eq(&turn.trial, &state.trial));
                let turn = known.unwrap_or_else(|| {
                    let way = state.trial.lock().begin(now);
                    turns.push(Measured { trial: state.trial.clone(), way, pages: 0 });
                    turns.len() - 1
                });
                (turns[turn].way, Some(turn))
            }
        };
        Ruling { way, unflagged: !state.verdict.flagged, longest: state.verdict.longest, turn }
    }
}

/// How the pages of one file go in one batch.
#[derive(Clone, Copy)]
struct Ruling {
    way: WritePath,
    /// Written by one plain write for each page, because the storage does not know the flag and keeps them
    /// whole.
    unflagged: bool,
    /// Bytes that may be written atomically together.
    longest: u64,
    /// The measurement it takes part in: index in the batch's list.
    turn: Option<usize>,
}
