//! What a backup holds of the database while it copies: changes of definitions are kept out, files stay as
//! long as they are, and the redo log keeps what was not copied.
//!
//! None of it may depend on the backup's disk. That disk may be slow or hang for ever. So the hold is kept
//! outside the copying task, and whichever comes first releases it: the task, the caller who goes away, or
//! the [`watch`], which looks how long others have waited for the log. What is let go too early makes the
//! backup fail at its next step; it never makes it wrong.
//!
//! How the log is kept from overwriting what was not copied is in `crates/redo/src/archive.rs`
//! ([`ArchiveHold`]).

use std::future::{Future, poll_fn};
use std::path::Path;
use std::pin::{Pin, pin};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::task::Poll;
use std::time::Duration;

use disk::{Environment, Event};
use parking_lot::Mutex;
use redo::ArchiveHold;

use super::failed;
use super::gate::BackupPass;
use crate::database::Inner;
use crate::error::{Error, Result};
use crate::export::Still;

/// How often is looked whether somebody waits.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Why it was let go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Over {
    /// Everything is copied.
    Copied,
    /// The database is being closed.
    Closed,
    /// Its caller has gone away.
    Cancelled,
    /// Changes waited this long, in total, for the log to be copied.
    TooSlow(Duration),
}

impl Over {
    /// What the backup fails with.
    pub fn error(self, target: &Path) -> Error {
        match self {
            Over::Closed => Error::Closed,
            Over::TooSlow(waited) => failed(
                target,
                format!(
                    "changes had waited {} s for redo log that was not copied yet, so it was let go: the backup's disk takes less than \
                 the log grows. Write to a faster one or at a quieter time, or raise innodb_redo_log_capacity",
                    waited.as_secs_f64().ceil()
                ),
            ),
            Over::Cancelled | Over::Copied => failed(target, "nobody waits for it any more"),
        }
    }
}

#[derive(Default)]
pub(super) struct Holds(Mutex<Held>);

#[derive(Default)]
struct Held {
    pass: Option<BackupPass>,
    still: Vec<Still>,
    log: Option<ArchiveHold>,
    over: Option<Over>,
    /// Set when it is broken.
    broken: Event,
}

impl Holds {
    /// Holds this, too, unless everything was let go.
    pub fn keep_pass(&self, pass: BackupPass) {
        let mut held = self.0.lock();
        if held.over.is_none() {
            held.pass = Some(pass);
        }
    }

    pub fn keep_still(&self, still: Vec<Still>) {
        let mut held = self.0.lock();
        if held.over.is_none() {
            held.still = still;
        }
    }

    pub fn keep_log(&self, log: ArchiveHold) {
        let mut held = self.0.lock();
        if held.over.is_none() {
            held.log = Some(log);
        } else {
            log.let_go();
        }
    }

    /// Why the copy cannot be finished any more.
    pub fn broken(&self) -> Option<Over> {
        self.0.lock().over.filter(|over| *over != Over::Copied)
    }

    /// Lets everything go; the first reason counts, but for the good one.
    pub fn let_go(&self, why: Over) {
        let held = {
            let mut held = self.0.lock();
            let over = held.over.filter(|over| *over != Over::Copied).unwrap_or(why);
            let broken = held.broken.clone();
            std::mem::replace(&mut *held, Held { over: Some(over), broken, ..Held::default() })
        };
        // Outside the lock: it wakes others.
        if let Some(log) = held.log {
            log.let_go();
        }
        if self.broken().is_some() {
            held.broken.set();
        }
    }

    /// The outcome of the work, or that it is broken: the task may be in a call that does not end.
    pub async fn or_broken<T>(&self, target: &Path, work: impl Future<Output = Result<T>>) -> Result<T> {
        let event = self.0.lock().broken.clone();
        let (mut work, mut broken) = (pin!(work), event.wait());
        poll_fn(|context| {
            if let Poll::Ready(outcome) = work.as_mut().poll(context) {
                return Poll::Ready(outcome);
            }
            match Pin::new(&mut broken).poll(context).is_ready().then(|| self.broken()).flatten() {
                Some(why) => Poll::Ready(Err(why.error(target))),
                None => Poll::Pending,
            }
        })
        .await
    }

    fn keeps_waiting(&self) -> bool {
        self.0.lock().log.as_ref().is_some_and(ArchiveHold::keeps_waiting)
    }

    #[cfg(test)]
    pub fn let_definitions_in(&self) {
        self.0.lock().pass = None;
    }
}

/// Lets go when others have waited for this long in total, or the database is being closed. Ends with what it
/// watches, and keeps nothing open.
pub(super) async fn watch(
    watched: Watched,
    environment: Arc<dyn Environment>,
    database: Weak<Inner>,
    most: Duration,
) {
    let (mut waited, mut last) = (Duration::ZERO, environment.now());
    loop {
        environment.sleep(LOOK_EVERY).await;
        let Some(holds) = watched.holds() else { return };
        let now = environment.now();
        let since = now.saturating_sub(std::mem::replace(&mut last, now));
        if database.upgrade().is_none_or(|database| database.closed.load(Ordering::Acquire)) {
            holds.let_go(Over::Closed);
        } else if holds.keeps_waiting() {
            waited += since;
            if waited > most {
                holds.let_go(Over::TooSlow(waited));
            }
        }
    }
}

/// What [`watch`] watches, until it is broken or done with. The end of the watch lets go of it: where the
/// database was closed and the environment shut down, the task may still be in a call that does not end.
pub(super) struct Watched(Weak<Holds>);

impl Watched {
    pub fn new(holds: &Arc<Holds>) -> Watched {
        Watched(Arc::downgrade(holds))
    }

    fn holds(&self) -> Option<Arc<Holds>> {
        // What is copied may still hang in its last syncs.
        self.0.upgrade().filter(|holds| holds.broken().is_none())
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        if let Some(holds) = self.holds() {
            holds.let_go(Over::Closed);
        }
    }
}
