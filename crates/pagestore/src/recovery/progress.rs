//! How far a recovery is: said in the log every few seconds, and to be asked for from another thread.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::store::PageStore;

/// Time between messages.
const EVERY: Duration = Duration::from_secs(5);

/// What is done with the redo log now.
#[derive(Debug, Clone, Copy)]
#[repr(u64)]
pub(super) enum Phase {
    Reading = 1,
    Applying = 2,
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Phase::Reading => "reading",
            Phase::Applying => "applying",
        })
    }
}

#[derive(Debug, Default)]
struct Stand {
    /// 0: none yet.
    phase: AtomicU64,
    done: AtomicU64,
    most: AtomicU64,
}

/// Shows how far a recovery is: given to what opens a database, a clone of it tells. All are equal, because
/// none is a setting.
#[derive(Debug, Clone, Default)]
pub struct RecoveryProgress(Arc<Stand>);

impl PartialEq for RecoveryProgress {
    fn eq(&self, _: &RecoveryProgress) -> bool {
        true
    }
}

impl Eq for RecoveryProgress {}

impl RecoveryProgress {
    fn set(&self, phase: Phase, done: u64, most: u64) {
        self.0.phase.store(phase as u64, Ordering::Relaxed);
        self.0.done.store(done, Ordering::Relaxed);
        self.0.most.store(most, Ordering::Relaxed);
    }

    /// Where it is, in words; `None` before it has begun.
    #[must_use]
    pub fn text(&self) -> Option<String> {
        let phase = match self.0.phase.load(Ordering::Relaxed) {
            0 => return None,
            1 => Phase::Reading,
            _ => Phase::Applying,
        };
        let mebibytes = |of: &AtomicU64| of.load(Ordering::Relaxed) >> 20;
        let (done, most) = (mebibytes(&self.0.done), mebibytes(&self.0.most));
        Some(format!("{phase} the redo log, {done} MiB of at most {most} MiB"))
    }
}

/// Of one pass over the log.
pub(super) struct Pass {
    phase: Phase,
    last: Duration,
}

impl Pass {
    pub(super) fn new(store: &PageStore, phase: Phase) -> Self {
        Self { phase, last: store.env.now() }
    }

    pub(super) fn report(&mut self, store: &PageStore, done: u64, most: u64) {
        let progress = &store.options.recovery_progress;
        progress.set(self.phase, done, most);
        let now = store.env.now();
        if now.saturating_sub(self.last) >= EVERY {
            self.last = now;
            tracing::info!("recovery: {}", progress.text().unwrap_or_default());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clone_tells_how_far_it_is() {
        let progress = RecoveryProgress::default();
        let watched = progress.clone();
        assert_eq!(watched.text(), None);
        progress.set(Phase::Reading, 3 << 20, 200 << 20);
        assert_eq!(watched.text().as_deref(), Some("reading the redo log, 3 MiB of at most 200 MiB"));
        progress.set(Phase::Applying, 7 << 20, 200 << 20);
        assert_eq!(watched.text().as_deref(), Some("applying the redo log, 7 MiB of at most 200 MiB"));
    }
}
