//! Chooses each file's write path: the probe's verdict, atomic writes that were refused, and the
//! throughput that `path_measurement.rs` found for each (the trial).
//!
//! The verdict is asked for when a file is written for the first time, never stored, because the same name
//! may lie elsewhere after a restore or a move of the volume. A file whose storage refuses an atomic write it
//! had offered goes through the doublewrite from then on, until it is opened again or the mode is set to AUTO
//! again.

use crate::mode::{Mode, WritePath};
use crate::path_measurement::PathMeasurement;
use disk::File;
use disk::probe::{Atomic, Verdict};
use page::{ContiguousRuns, WriteBatch};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::ops::Range;
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

    fn protection(&self, mode: Mode) -> FileProtection {
        let refused = self.refused.lock().clone();
        let facts = &self.verdict.reason;
        let (way, reason) = match (mode, refused, self.verdict.atomic) {
            (Mode::On, ..) => (WritePath::Doublewrite, facts.clone()),
            (Mode::DetectOnly, ..) => (WritePath::Detect, facts.clone()),
            (Mode::Off, ..) => (WritePath::Plain, facts.clone()),
            (Mode::Auto, Some(why), _) => {
                (WritePath::Doublewrite, format!("{facts}, but it refused one: {why}"))
            }
            (Mode::Auto, None, Atomic::Hardware) => (WritePath::Atomic, facts.clone()),
            (Mode::Auto, None, Atomic::None) => (WritePath::Doublewrite, facts.clone()),
            (Mode::Auto, None, Atomic::FileSystem) => {
                let trial = self.trial.lock();
                (trial.chosen(), format!("{facts}; {}", trial.outcome()))
            }
        };
        FileProtection { file: self.path.clone(), verdict: self.verdict.atomic, reason, mode: way }
    }
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
    /// In place at once, each stretch atomically.
    pub(crate) atomic: Vec<Range<usize>>,
    /// Bytes, for each stretch until it is cut.
    longest: Vec<u64>,
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

impl Plan {
    /// Adds a page to be written atomically, together with the one before where that lies before it in the
    /// file. Stretches are cut later, see [`Plan::cut_atomic`].
    fn add_atomic(&mut self, batch: &WriteBatch, index: usize, longest: u64) {
        let pages = batch.pages();
        let size = batch.page_size() as u64;
        if longest > size
            && let Some(last) = self.atomic.last_mut()
            && last.end == index
            && Arc::ptr_eq(&pages[index - 1].file, &pages[index].file)
            && pages[index - 1].offset + size == pages[index].offset
        {
            last.end += 1;
            return;
        }
        self.longest.push(longest.max(size));
        self.atomic.push(index..index + 1);
    }

    /// Cuts stretches of pages into what the kernel takes as one atomic write: a power of two, beginning at a
    /// multiple of its own length, and not longer than the file's longest.
    fn cut_atomic(&mut self, batch: &WriteBatch) {
        let size = batch.page_size() as u64;
        let mut cut = Vec::with_capacity(self.atomic.len());
        for (stretch, longest) in self.atomic.drain(..).zip(self.longest.drain(..)) {
            let mut from = stretch.start;
            while from < stretch.end {
                let number = batch.pages()[from].offset / size;
                let aligned = 1 << number.trailing_zeros().min(16);
                let room = 1 << ((stretch.end - from) as u64).ilog2();
                let pages = (longest / size).min(aligned).min(room).max(1) as usize;
                cut.push(from..from + pages);
                from += pages;
            }
        }
        self.atomic = cut;
    }

    /// The pages written atomically.
    pub(crate) fn atomic_pages(&self) -> impl Iterator<Item = usize> + '_ {
        self.atomic.iter().cloned().flatten()
    }
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
        if mode != Mode::Auto {
            return ContiguousRuns::Merged;
        }
        let state = self.of(file);
        let verdict = &state.verdict;
        let atomic = match verdict.atomic {
            Atomic::None => false,
            Atomic::Hardware => true,
            Atomic::FileSystem => state.trial.lock().next() == WritePath::Atomic,
        };
        let in_pairs = verdict.flagged && verdict.longest >= 2 * self.page_size as u64;
        if atomic && in_pairs && state.refused.lock().is_none() {
            ContiguousRuns::Aligned
        } else {
            ContiguousRuns::Merged
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
                WritePath::Atomic => plan.add_atomic(batch, index, ruling.longest),
                WritePath::Plain => plan.plain.push(index),
                WritePath::Doublewrite | WritePath::Detect if page.recreatable => {
                    plan.plain.push(index);
                    plan.recreatable += 1;
                }
                WritePath::Doublewrite => plan.copied.push(index),
                WritePath::Detect => plan.numbered.push(index),
            }
        }
        plan.cut_atomic(batch);
        plan
    }

    fn rule(&self, file: &Arc<dyn File>, mode: Mode, now: Duration, turns: &mut Vec<Measured>) -> Ruling {
        let plainly = |way| Ruling { way, unflagged: false, longest: 0, turn: None };
        match mode {
            Mode::On => return plainly(WritePath::Doublewrite),
            Mode::DetectOnly => return plainly(WritePath::Detect),
            Mode::Off => return plainly(WritePath::Plain),
            Mode::Auto => {}
        }
        let state = self.of(file);
        if state.refused.lock().is_some() {
            return plainly(WritePath::Doublewrite);
        }
        let (unflagged, longest) = (!state.verdict.flagged, state.verdict.longest);
        match state.verdict.atomic {
            Atomic::None => plainly(WritePath::Doublewrite),
            Atomic::Hardware => Ruling { way: WritePath::Atomic, unflagged, longest, turn: None },
            Atomic::FileSystem => {
                if !state.told.swap(true, Ordering::Relaxed) {
                    file.expect_copy_on_write();
                }
                let known = turns.iter().position(|turn| Arc::ptr_eq(&turn.trial, &state.trial));
                let turn = known.unwrap_or_else(|| {
                    let way = state.trial.lock().begin(now);
                    turns.push(Measured { trial: state.trial.clone(), way, pages: 0 });
                    turns.len() - 1
                });
                Ruling { way: turns[turn].way, unflagged, longest, turn: Some(turn) }
            }
        }
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
