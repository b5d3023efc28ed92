//! What runs in the background: the sync once a second, and the growth of the file.
//!
//! With `innodb_flush_log_at_trx_commit` 0 and 2 a commit does not wait until the log is durable. A task
//! syncs the log at every `innodb_flush_log_at_timeout` instead, so a power cut takes the last of them at
//! most. Nobody waits for that sync. An error stops the log, and the next one who asks is told.

use crate::Flush;
use crate::log::{Phase, RedoLog};
use disk::Environment;
use std::sync::{Arc, Weak};

impl RedoLog {
    /// Starts what runs in the background, once the end of the log is known.
    pub(crate) fn start_tasks(&self) {
        self.start_growing();
        let pause = self.options.background_sync;
        if !pause.is_zero() {
            self.env.spawn(
                "redo log sync",
                Box::pin(sync_now_and_then(self.me.clone(), self.env.clone(), pause)),
            );
        }
    }
}

/// A task that panics must not leave its waiters waiting for ever.
pub(crate) fn stop_on_panic(log: &Weak<RedoLog>, what: &'static str) -> impl Drop + Send + use<> {
    let log = log.clone();
    disk::OnPanic::new(move || {
        if let Some(log) = log.upgrade() {
            log.stop(&format!("{what} ended by a panic"));
        }
    })
}

/// Bounds what a power cut may take from those who do not wait for durability.
async fn sync_now_and_then(log: Weak<RedoLog>, env: Arc<dyn Environment>, pause: std::time::Duration) {
    let _guard = stop_on_panic(&log, "its sync in the background");
    loop {
        env.sleep(pause).await;
        let Some(log) = log.upgrade() else { return };
        if log.poisoned().is_some() || log.state.lock().phase >= Phase::Closing {
            return;
        }
        // Nothing waits for it: an error stops the log, and the next one who asks hears of it.
        drop(log.flush(log.current(), Flush::Sync));
    }
}
