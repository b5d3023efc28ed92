//! What a power loss, or the end of the process alone, makes of a disk.
//!
//! A [`Moment`] is the disk at one instant, taken at the cost of some reference counts: for every file what
//! is durable and the writes and lengths that are not (written but not synced, or still under way), and the
//! same for names. Each of those *units* meets its own fate in a crash: lost, kept whole, or torn at 512 or
//! 4096 bytes; units that were not ordered by a sync may be applied in any order. One moment gives as many
//! disks as there are fates to try.

use crate::Random;
use crate::simulated::content::Content;
use crate::simulated::faults::{elsewhere, flip_a_bit};
use crate::simulated::image::{Change, FileImage};
use crate::simulated::names::Names;
use crate::simulated::storage::{AtomicPromise, SimulatedStorage};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A disk at one instant.
#[derive(Clone)]
pub struct Moment {
    pub(crate) files: Vec<FileMoment>,
    pub(crate) names: Names,
    pub(crate) atomic: AtomicPromise,
    /// Number of calls made before it.
    pub(crate) calls: u64,
}

#[derive(Clone)]
pub(crate) struct FileMoment {
    pub(crate) image: FileImage,
    /// Writes of requests under way.
    pub(crate) under_way: Vec<Change>,
}

/// How a crash treats the units that are not durable, which are numbered: changes of names first, then those
/// of each file in the order they were made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Crash {
    /// Unit `i` survives, whole and in order, if bit `i` is set; units from 64 on are lost.
    Exactly(u64),
    /// As [`Crash::Exactly`], but each write that survives may be torn, as the seed decides.
    Torn {
        /// Which units survive.
        survivors: u64,
        /// Decides the tearing.
        seed: u64,
    },
    /// A seed decides everything: which survive, in which order, what is torn.
    Random(u64),
    /// As [`Crash::Random`], and one write to a file whose name contains `files` also does harm: it lands
    /// elsewhere in the file, or with a bit flipped, or at both its place and another. No engine can always
    /// repair that; it must notice.
    Damaged {
        /// Decides everything.
        seed: u64,
        /// Part of the names of the files that may be harmed.
        files: &'static str,
    },
    /// Only the process ends: what it wrote stays visible, durable or not.
    ProcessOnly,
}

/// What a crash did.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct CrashOutcome {
    /// Units that were not durable.
    pub units: usize,
    /// Of them, those that survived (whole or torn).
    pub kept: usize,
    /// Writes of which only some sectors survived.
    pub torn: usize,
    /// Writes that did harm elsewhere or with wrong bytes.
    pub damaged: usize,
    /// Whether units were applied in another order than they were made.
    pub reordered: bool,
}

/// How a crash tears: decided once per crash.
struct Fates {
    random: Random,
    /// Of four unsynced units, this many survive on average.
    keep_of_four: usize,
    /// 512 or 4096 bytes.
    sector: usize,
    tears: bool,
    reorders: bool,
    tear_atomic: bool,
    outcome: CrashOutcome,
}

impl Fates {
    fn new(seed: u64, moment: &Moment) -> Fates {
        let mut random = Random::new(seed);
        Fates {
            keep_of_four: random.below(5),
            sector: if random.one_in(2) { 512 } else { 4096 },
            reorders: random.one_in(2),
            tears: true,
            tear_atomic: moment.atomic.broken,
            outcome: CrashOutcome { units: moment.units(), ..CrashOutcome::default() },
            random,
        }
    }

    fn survives(&mut self) -> bool {
        self.random.below(4) < self.keep_of_four
    }

    /// Applies a surviving change, whole or torn.
    fn keep(&mut self, content: &mut Content, change: &Change) {
        self.outcome.kept += 1;
        let Change::Write { offset, bytes, atomic } = change else { return change.apply(content) };
        let whole = !self.tears || (*atomic && !self.tear_atomic) || !self.random.one_in(3);
        if whole {
            return change.apply(content);
        }
        let (offset, end) = (*offset, offset + bytes.len());
        let sectors = sectors(offset, bytes.len(), self.sector);
        if sectors.len() < 2 {
            return change.apply(content);
        }
        self.outcome.torn += 1;
        // Either a prefix of the sectors reached the medium, or any of them, or only the length of the file.
        if end > content.len() && self.random.one_in(8) {
            return content.set_len(end);
        }
        let prefix = self.random.one_in(2).then(|| self.random.below(sectors.len()));
        for (index, (from, to)) in sectors.into_iter().enumerate() {
            let kept = prefix.map_or_else(|| self.random.one_in(2), |count| index < count);
            if kept {
                content.write(offset + from, &bytes[from..to]);
            }
        }
    }

    /// A write that does harm: elsewhere, damaged, or in two places.
    fn harm(&mut self, content: &mut Content, change: &Change) {
        let Change::Write { offset, bytes, .. } = change else { return change.apply(content) };
        self.outcome.damaged += 1;
        let elsewhere = elsewhere(*offset, bytes.len(), content.len(), &mut self.random).unwrap_or(*offset);
        match self.random.below(3) {
            0 => content.write(elsewhere, bytes),
            1 => {
                content.write(elsewhere, bytes);
                content.write(*offset, bytes);
            }
            _ => {
                let mut damaged = bytes.to_vec();
                flip_a_bit(&mut damaged, &mut self.random);
                content.write(*offset, &damaged);
            }
        }
    }
}

impl Moment {
    /// How many changes of names and files are not durable.
    pub fn units(&self) -> usize {
        self.names.pending() + self.files.iter().map(FileMoment::units).sum::<usize>()
    }

    /// Unsynced writes and lengths per file that has some.
    pub fn unsynced(&self) -> Vec<(PathBuf, usize)> {
        let named = self.names.visible_files();
        let count = |(path, number): (&Path, usize)| (path.to_path_buf(), self.files[number].units());
        named.map(count).filter(|(_, units)| *units > 0).collect()
    }

    /// Number of calls the storage had served.
    pub fn calls(&self) -> u64 {
        self.calls
    }

    /// The disk that a crash at this moment leaves.
    pub fn crash(&self, crash: Crash) -> (Arc<SimulatedStorage>, CrashOutcome) {
        let (files, names, outcome, seed) = match crash {
            Crash::ProcessOnly => return (self.after_process_end(), CrashOutcome::default()),
            Crash::Exactly(survivors) => self.exactly(survivors, None),
            Crash::Torn { survivors, seed } => self.exactly(survivors, Some(seed)),
            Crash::Random(seed) => self.by_seed(seed, None),
            Crash::Damaged { seed, files } => self.by_seed(seed, Some(files)),
        };
        (SimulatedStorage::from_parts(seed, files, names, self.atomic), outcome)
    }

    fn exactly(&self, survivors: u64, tear: Option<u64>) -> (Vec<FileImage>, Names, CrashOutcome, u64) {
        let mut fates = Fates::new(tear.unwrap_or(survivors), self);
        fates.tears = tear.is_some();
        let mut unit = 0;
        let mut survives = || {
            unit += 1;
            unit <= 64 && survivors >> (unit - 1) & 1 == 1
        };
        let (names, kept) = self.names.after_crash(&mut survives);
        fates.outcome.kept += kept;
        let mut files = Vec::with_capacity(self.files.len());
        for file in &self.files {
            let mut left = file.image.durable_content().clone();
            for change in file.changes() {
                if survives() {
                    fates.keep(&mut left, change);
                }
            }
            files.push(FileImage::durable(left));
        }
        (files, names, fates.outcome, fates.random.next_u64())
    }

    fn by_seed(&self, seed: u64, harmed: Option<&str>) -> (Vec<FileImage>, Names, CrashOutcome, u64) {
        let mut fates = Fates::new(seed, self);
        let (names, kept) = self.names.after_crash(&mut || fates.random.one_in(2));
        fates.outcome.kept += kept;
        let named: BTreeSet<usize> = names.files().collect();
        let mut victim = harmed.and_then(|files| self.choose_victim(files, &mut fates.random));
        let mut files = Vec::with_capacity(self.files.len());
        for (number, file) in self.files.iter().enumerate() {
            if !named.contains(&number) {
                files.push(FileImage::default());
                continue;
            }
            let mut left = file.image.durable_content().clone();
            let mut changes: Vec<&Change> = file.changes().collect();
            if fates.reorders && changes.len() > 1 {
                fates.outcome.reordered = true;
                for index in (1..changes.len()).rev() {
                    changes.swap(index, fates.random.below(index + 1));
                }
            }
            for (index, change) in changes.into_iter().enumerate() {
                if victim == Some((number, index)) {
                    victim = None;
                    fates.harm(&mut left, change);
                } else if fates.survives() {
                    fates.keep(&mut left, change);
                }
            }
            files.push(FileImage::durable(left));
        }
        (files, names, fates.outcome, fates.random.next_u64())
    }

    /// A file and the place of one of its changes.
    fn choose_victim(&self, files: &str, random: &mut Random) -> Option<(usize, usize)> {
        let candidates: Vec<(usize, usize)> = self
            .names
            .visible_files()
            .filter(|(path, number)| matches(path, files) && self.files[*number].units() > 0)
            .map(|(_, number)| (number, self.files[number].units()))
            .collect();
        if candidates.is_empty() {
            return None;
        }
        let (number, units) = candidates[random.below(candidates.len())];
        Some((number, random.below(units)))
    }

    fn after_process_end(&self) -> Arc<SimulatedStorage> {
        let image = |file: &FileMoment| {
            let mut image = file.image.clone();
            file.under_way.iter().for_each(|change| image.change(change.clone()));
            image
        };
        let files = self.files.iter().map(image).collect();
        SimulatedStorage::from_parts(self.calls, files, self.names.clone(), self.atomic)
    }
}

impl FileMoment {
    fn units(&self) -> usize {
        self.image.unsynced().count() + self.under_way.len()
    }

    fn changes(&self) -> impl Iterator<Item = &Change> {
        self.image.unsynced().chain(&self.under_way)
    }
}

/// Whether a rule for `part` concerns the file at `path`.
pub(crate) fn matches(path: &Path, part: &str) -> bool {
    path.to_string_lossy().contains(part)
}

/// The parts of a write between sector boundaries, as ranges of its bytes.
fn sectors(offset: usize, length: usize, sector: usize) -> Vec<(usize, usize)> {
    let mut parts = Vec::new();
    let mut from = 0;
    while from < length {
        let to = (from + sector - (offset + from) % sector).min(length);
        parts.push((from, to));
        from = to;
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_are_cut_at_sector_boundaries_of_the_file() {
        assert_eq!(sectors(512, 1024, 512), [(0, 512), (512, 1024)]);
        assert_eq!(sectors(500, 1024, 512), [(0, 12), (12, 524), (524, 1024)]);
        assert_eq!(sectors(0, 100, 4096), [(0, 100)]);
    }
}
