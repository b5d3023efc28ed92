//! Breaking the engine on purpose, more often than anything else does.
//!
//! A [`history`] runs the whole engine (sessions, definitions, cleaner, checkpoint, purge) on one thread from
//! a seed, on the simulated disk, and remembers every moment at which something becomes durable. [`explore`]
//! takes each moment, builds the disks that a crash then may leave (every subset of the unsynced writes where
//! they are few, samples where they are many, torn, reordered, damaged), recovers each, and [`check`]s it
//! against the [`model`]: what was acknowledged is there, what was not is there whole or not at all, every
//! index is sound, nothing is left over; and so is every backup ([`backups`]). Some recoveries are crashed in
//! turn, three deep, and must come to the same contents.
//!
//! The same seed is the same history to the byte, so a state has a name (`history/moment/crash`) by which it
//! can be tried again. [`faults`] lets every single call to the disk fail once. [`extension_lies`] holds what
//! the clean tier counts against what the disk under it did. [`sabotage::Sabotage`] breaks one promise at a
//! time; the tests demand that each is noticed.

pub mod backups;
pub mod check;
pub mod coverage;
pub mod explore;
pub mod extension_lies;
pub mod faults;
pub mod history;
pub mod model;
pub mod prepared;
pub mod rivals;
pub mod sabotage;
pub mod workload;
