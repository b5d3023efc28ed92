//! Which doublewrite segments of one purpose are free.
//!
//! A segment is taken before its batch is written and given back only when every page of the batch is durable
//! in its place. If a batch fails, or its future is dropped midway, its copies may be the only whole ones:
//! the segment is never given back, and the writer refuses all further work, because the engine above cannot
//! go on either.

use disk::{Error, Event, Result};
use parking_lot::Mutex;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// The segments, over all files of the purpose.
pub(crate) struct Segments {
    state: Mutex<State>,
}

struct State {
    free: Vec<usize>,
    /// Set, and replaced by a fresh one, whenever something changes.
    changed: Event,
    failed: bool,
}

/// A segment in use.
pub(crate) struct Taken {
    segments: Arc<Segments>,
    /// Its number.
    pub(crate) number: usize,
    durable: bool,
}

impl Segments {
    pub(crate) fn new(count: usize) -> Arc<Segments> {
        let state = State { free: (0..count).rev().collect(), changed: Event::new(), failed: false };
        Arc::new(Segments { state: Mutex::new(state) })
    }

    pub(crate) fn has_free(&self) -> bool {
        !self.state.lock().free.is_empty()
    }

    /// Waits for a free segment. `file` is for the error.
    pub(crate) async fn take(self: &Arc<Segments>, file: &Path) -> Result<Taken> {
        loop {
            let changed = {
                let mut state = self.state.lock();
                if state.failed {
                    return Err(Error::new("use", file, failed_before()));
                }
                if let Some(number) = state.free.pop() {
                    return Ok(Taken { segments: self.clone(), number, durable: false });
                }
                state.changed.clone()
            };
            changed.wait().await;
        }
    }
}

impl Taken {
    /// The batch is durable in its places: the segment may be used again.
    pub(crate) fn give_back(mut self) {
        self.durable = true;
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        let changed = {
            let mut state = self.segments.state.lock();
            if self.durable {
                state.free.push(self.number);
            } else {
                state.failed = true;
            }
            std::mem::take(&mut state.changed)
        };
        changed.set();
    }
}

fn failed_before() -> io::Error {
    io::Error::other(
        "an earlier batch of pages failed or was dropped, so its copies must not be overwritten; restart the database to recover them",
    )
}
