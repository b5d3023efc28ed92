//! What becomes of the tier after an error: any error of its file or its map switches it off, once and with
//! one line in the log, and the data files serve every page again. Nothing is lost by it, because what it
//! held was clean. `SET GLOBAL untorn_bpe=ON` tries again (`maintenance.rs`).

use crate::counters::Counter;
use crate::tier::Tier;

impl Tier {
    /// Switches the tier off after an error of the store with this number: once, with one log line.
    pub(crate) fn fail(&self, id: u64, why: &str) {
        let store = {
            let mut current = self.current.write();
            if current.store.as_ref().is_none_or(|store| store.id != id) {
                return;
            }
            current.next = None;
            current.store.take()
        };
        self.counters.count(Counter::Failures);
        self.control.lock().failure = Some(why.to_owned());
        tracing::error!(
            "the buffer pool extension is off: {why}; the server continues without it, SET GLOBAL untorn_bpe=ON tries again"
        );
        if let Some(store) = store {
            if let Some(journal) = &store.journal {
                journal.stop();
            }
            store.lock.release();
        }
    }
}
