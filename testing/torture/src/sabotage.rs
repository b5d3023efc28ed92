//! Negative controls: promises that are broken on purpose, and must be found out (`must_be_noticed` in
//! `tests/controls.rs`).
//!
//! This file says how each is broken: by the options of the engine, by what the disk says and does during the
//! history, and by what it has lost after the crash.

use disk::probe::Atomic;
use disk::{Misbehaviour, Random, SimulatedStorage};
use std::path::Path;
use untorn::Doublewrite;

/// A negative control: one promise broken on purpose. A checker that does not notice is worth nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Sabotage {
    /// None: the engine as it is.
    #[default]
    None,
    /// Doublewrite off, on a disk that tears.
    NoDoublewrite,
    /// A disk that promises atomic writes and tears them.
    BrokenAtomicWrites,
    /// A disk that says it synced files of this name and has not.
    SkippedSyncs(&'static str),
    /// Pages reach the disk before their log: syncs of the log are skipped, and nobody waits for a commit, so
    /// that no acknowledged transaction is lost by that alone.
    PagesBeforeLog,
    /// Recovery finds no doublewrite files.
    NoDoublewriteFiles,
    /// A transaction is said to be prepared before the log is durable.
    UnsyncedPrepare,
}

impl Sabotage {
    /// How pages are protected; without sabotage the seed chooses.
    pub(crate) fn doublewrite(self, random: &mut Random) -> Doublewrite {
        match self {
            Sabotage::NoDoublewrite => Doublewrite::Off,
            Sabotage::BrokenAtomicWrites => Doublewrite::Auto,
            Sabotage::None if random.one_in(2) => Doublewrite::Auto,
            _ => Doublewrite::On,
        }
    }

    /// What the disk says of atomic writes, and after how many of them it refuses all others; without
    /// sabotage the seed chooses.
    pub(crate) fn atomic_writes(self, random: &mut Random) -> (Atomic, Option<u64>) {
        match self {
            Sabotage::None => {
                let offered = [Atomic::None, Atomic::Hardware, Atomic::FileSystem][random.below(3)];
                (offered, random.one_in(4).then(|| random.below(60) as u64))
            }
            Sabotage::BrokenAtomicWrites => (Atomic::Hardware, None),
            _ => (Atomic::None, None),
        }
    }

    /// Makes the disk break its promise during the history; whether it is the disk that does.
    pub(crate) fn break_disk(self, disk: &SimulatedStorage) -> bool {
        match self {
            Sabotage::BrokenAtomicWrites => disk.break_atomic_writes(),
            Sabotage::SkippedSyncs(files) => disk.misbehave(files, Misbehaviour::SkippedSync, 1),
            Sabotage::PagesBeforeLog => disk.misbehave("#untorn_redo", Misbehaviour::SkippedSync, 1),
            Sabotage::None
            | Sabotage::NoDoublewrite
            | Sabotage::NoDoublewriteFiles
            | Sabotage::UnsyncedPrepare => return false,
        }
        true
    }

    /// Takes from the crashed disk what recovery is to miss.
    pub(crate) fn break_crashed(self, disk: &SimulatedStorage, page_bytes: u32) {
        if self == Sabotage::NoDoublewriteFiles {
            for number in 0..8 {
                disk.lose_file(Path::new(&format!("/data/#ib_{page_bytes}_{number}.dblwr")));
            }
        }
    }
}
