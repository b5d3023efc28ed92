//! Transactions that are run again: after what, how often, and after which pause.
//!
//! The closure of `transact` may return any error, so what it returns says nothing. What counts is how the
//! last operation of its transaction ended: the transaction remembers that, and forgets it when the next one
//! begins. A closure that goes on after a failure, and then fails for a reason of its own, is not run again.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Duration;

use disk::Environment;
use parking_lot::Mutex;
use txn::Durability;

use crate::database::Database;
use crate::error::Error;
use crate::transaction::Transaction;

/// How often `transact` begins before it gives up.
const RUNS_MAX: u32 = 100;

/// How often it begins again after a wait for a lock that timed out.
const TIMEOUTS_MAX: u32 = 1;

/// Up to this long it waits before it begins for the second time, and twice as long before each time after,
/// up to the other.
const PAUSE: Duration = Duration::from_micros(50);
const PAUSE_MAX: Duration = Duration::from_millis(20);

/// Why an operation failed that may well succeed in a transaction begun again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Conflict {
    /// The transaction was the victim, or its view is older than a table: it is worth nothing any more.
    Over,
    /// A lock was not granted in time.
    Timeout,
}

/// The runs of one `transact`.
#[derive(Default)]
pub(crate) struct Runs {
    failed: u32,
    timeouts: u32,
}

impl Runs {
    /// How long to pause before the next run when one has failed; `None` if there is no next run.
    pub fn pause_after(
        &mut self,
        conflict: Option<Conflict>,
        environment: &dyn Environment,
    ) -> Option<Duration> {
        let conflict = conflict?;
        self.failed += 1;
        self.timeouts += u32::from(conflict == Conflict::Timeout);
        if self.failed >= RUNS_MAX || self.timeouts > TIMEOUTS_MAX {
            return None;
        }
        // Those who met each other would meet again: each waits for a time of its own.
        let most = PAUSE_MAX.min(PAUSE * 2u32.saturating_pow(self.failed - 1));
        Some(most.mul_f64((environment.random_u64() >> 11) as f64 / (1u64 << 53) as f64))
    }
}

/// The transaction of one run of [`Database::transact`], which gets it back when this is dropped. It belongs
/// to the future of that run, so that the future may be sent to other threads and borrow what it likes.
#[must_use = "it is the transaction that the closure is to work in"]
pub struct Run {
    /// Gone only while it is dropped.
    transaction: Option<Transaction>,
    home: Arc<Mutex<Option<Transaction>>>,
}

impl Deref for Run {
    type Target = Transaction;

    fn deref(&self) -> &Transaction {
        match &self.transaction {
            Some(transaction) => transaction,
            None => unreachable!("it is given back when this is dropped"),
        }
    }
}

impl DerefMut for Run {
    fn deref_mut(&mut self) -> &mut Transaction {
        match &mut self.transaction {
            Some(transaction) => transaction,
            None => unreachable!("it is given back when this is dropped"),
        }
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        *self.home.lock() = self.transaction.take();
    }
}

impl Database {
    /// Runs `work` in a transaction and commits it durably. After a deadlock everything is rolled back and
    /// `work` runs again after a pause, which grows, up to 100 times. When a lock was not granted in time it
    /// runs once more. What decides is how the last operation of the transaction failed
    /// ([`Error::is_retryable`], except for NOWAIT), not what `work` makes of it: its error may be of any
    /// type that is made from [`Error`].
    ///
    /// **Dropped**, the future leaves nothing of the transaction, unless it was cut in the commit's wait for
    /// durability: then the commit holds.
    ///
    /// ```
    /// # fn main() -> untorn::Result<()> {
    /// # untorn::asynchronous::block_on(async {
    /// use untorn::asynchronous::Database;
    ///
    /// let db = Database::in_memory().await?;
    /// let visits = db.key_value::<String, u64>("visits").await?;
    /// let add = |count: Option<u64>| Some(count.unwrap_or(0) + 1);
    /// let count = db.transact(async |mut t| visits.change(&mut t, "Ada", add).await).await?;
    /// assert_eq!(count, Some(1));
    /// # Ok(())
    /// # })
    /// # }
    /// ```
    ///
    /// # Errors
    /// The error of `work` as it is, or that of the commit; nothing is changed then. [`Error::Setting`] when
    /// `work` has kept its [`Run`].
    pub async fn transact<T, E, F>(&self, mut work: impl FnMut(Run) -> F) -> Result<T, E>
    where
        E: From<Error>,
        F: Future<Output = Result<T, E>>,
    {
        let mut runs = Runs::default();
        loop {
            let home = Arc::default();
            let run = Run { transaction: Some(self.begin()), home: Arc::clone(&home) };
            let outcome = work(run).await;
            let Some(mut transaction) = home.lock().take() else {
                let why = "the closure has kept its transaction".to_owned();
                return Err(outcome.err().unwrap_or(Error::Setting { setting: "transact", why }.into()));
            };
            let (error, conflict) = match outcome {
                Ok(done) => match transaction.commit(Durability::Sync).await {
                    Ok(()) => return Ok(done),
                    Err(error) => {
                        let conflict = error.conflict();
                        (error.into(), conflict)
                    }
                },
                Err(error) => (error, transaction.conflict()),
            };
            if let Err(error) = transaction.rollback().await {
                tracing::warn!(%error, "a transaction that failed is rolled back in the background");
            }
            match runs.pause_after(conflict, &**self.environment()) {
                Some(pause) => self.environment().sleep(pause).await,
                None => return Err(error),
            }
        }
    }
}
