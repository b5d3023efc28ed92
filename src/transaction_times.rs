//! How long transactions take, from their beginning to the end of their commit.
//!
//! Two looks at the clock are little beside a statement of a client, and much beside a read of a program that
//! has the engine in itself: transactions are timed once somebody has asked for the times.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use disk::{ShardedHistogram, Times};

use crate::database::Database;

/// How long those took that were committed.
#[derive(Default)]
pub(crate) struct TransactionTimes {
    wanted: AtomicBool,
    times: ShardedHistogram,
}

impl TransactionTimes {
    /// A transaction begins.
    #[inline]
    pub(crate) fn begin(&self) -> Option<Instant> {
        self.wanted.load(Ordering::Relaxed).then(Instant::now)
    }

    /// One that began then has been committed.
    #[inline]
    pub(crate) fn committed(&self, began: Option<Instant>) {
        if let Some(began) = began {
            self.times.record(began.elapsed());
        }
    }

    /// What was recorded; from now on transactions are timed.
    pub(crate) fn times(&self) -> Times {
        self.wanted.store(true, Ordering::Relaxed);
        self.times.times()
    }
}

impl Database {
    /// A transaction of one statement took this long: who runs it knows its beginning.
    #[doc(hidden)]
    #[inline]
    pub fn record_transaction(&self, took: Duration) {
        self.0.transaction_times.times.record(took);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use crate::Database;

    #[test]
    fn what_is_committed_is_timed_once_somebody_looks() {
        let database = Database::in_memory().unwrap();
        let counts = database.key_value::<u32, u32>("counts").unwrap();
        let timed = || {
            let times = database.asynchronous().times();
            times.into_iter().find(|series| series.family == "Untorn_transaction").unwrap().times
        };
        database.transact(|t| counts.put(t, 1, 1)).unwrap();
        assert_eq!(timed().count(), 0, "nobody has asked");
        let before = std::time::Instant::now();
        database.transact(|t| counts.put(t, 1, 2)).unwrap();
        let took = before.elapsed();
        assert_eq!(timed().count(), 1);
        assert!(timed().sum() <= took && !timed().sum().is_zero());
        let rolled_back = database.transact(|t| {
            counts.put(t, 1, 3)?;
            Err::<(), crate::Error>(crate::Error::ReadOnly)
        });
        assert!(rolled_back.is_err());
        assert_eq!(timed().count(), 1, "it was not committed");
        database.close().unwrap();
    }
}
