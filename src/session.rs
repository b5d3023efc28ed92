//! What a transaction works with, and where that rests between two transactions.
//!
//! Programs make a transaction for each read, and a read of one row takes less time than to make what a
//! transaction consists of. So who drops a transaction object leaves its parts to the next who begins one: in
//! shards that threads are spread over, so that beginning is no queue, and no thread writes to what others
//! read meanwhile. A session at rest uses no table and has no view open. It remembers the table that it used
//! last, because the next one mostly uses it too; should that have been dropped, what is left of it in memory
//! stays until another one takes its place.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use disk::{SHARDS, thread_shard};
use parking_lot::Mutex;
use smallvec::SmallVec;

use crate::metadata_deadlock::MetadataOwner;
use crate::metadata_lock::{Access, MetadataUse};
use crate::table::Table;
use crate::transaction::usable;
use crate::write::EncodedRow;

/// Sessions of a shard that rest, at most.
const RESTING_MAX: usize = 8;
/// Tables that one at rest keeps room for, at most.
const KEPT_MAX: usize = 16;
/// Bytes that one at rest keeps for keys, at most.
const KEY_BYTES_MAX: usize = 4096;

/// The parts of a transaction that outlast it.
pub(crate) struct Session {
    pub inner: txn::Transaction,
    /// In whose name it takes metadata locks.
    pub owner: Arc<MetadataOwner>,
    /// Tables that it uses.
    pub uses: SmallVec<[(Arc<Table>, MetadataUse); 4]>,
    /// One that it has used, and does no more.
    pub last: Option<(Arc<Table>, MetadataUse)>,
    /// Where reads encode their keys.
    pub key: EncodedRow,
}

impl Session {
    pub fn new(inner: txn::Transaction, owner: Arc<MetadataOwner>) -> Session {
        Session { inner, owner, uses: SmallVec::new(), last: None, key: EncodedRow::default() }
    }

    /// Uses a table that it does not use yet, to read and change its rows, if there is nothing to wait for.
    pub fn use_at_once(&mut self, table: &Arc<Table>) -> bool {
        let last = self.last.take().filter(|(last, _)| Arc::ptr_eq(last, table));
        let (table, mut used) =
            last.unwrap_or_else(|| (table.clone(), MetadataUse::not_begun(&table.metadata, &self.owner)));
        let begun = used.begin(Access::Write).is_ok() && usable(&table).is_ok();
        if begun {
            self.uses.push((table, used));
        }
        begun
    }

    /// Ends the uses of tables.
    pub fn end_uses(&mut self) {
        if let Some((table, mut used)) = self.uses.pop() {
            used.end();
            self.last = Some((table, used));
        }
        self.uses.clear();
    }

    /// Becomes as new, for another transaction object; false where it cannot.
    ///
    /// Row locks and the view end first: who gets the table alone must not find them.
    fn renew(&mut self) -> bool {
        // Its owner of metadata locks is one of those of row locks, and the use that has ended one of it.
        if !self.inner.renew(1) {
            return false;
        }
        self.end_uses();
        let known = Arc::strong_count(&self.owner) > 1 + usize::from(self.last.is_some());
        // What others did before they gave up theirs is seen from here on.
        fence(Ordering::Acquire);
        if known || self.owner.has_definitions() {
            return false;
        }
        self.owner.renew();
        if self.uses.capacity() > KEPT_MAX {
            self.uses.shrink_to_fit();
        }
        if self.key.capacity() > KEY_BYTES_MAX {
            self.key = EncodedRow::default();
        }
        true
    }
}

/// A session that somebody has.
pub(crate) struct OwnSession(Option<Box<Session>>);

impl OwnSession {
    pub fn new(session: Session) -> OwnSession {
        OwnSession(Some(Box::new(session)))
    }

    /// Takes it away for good: its holder is being dropped.
    pub fn take(&mut self) -> Option<Box<Session>> {
        self.0.take()
    }
}

impl Deref for OwnSession {
    type Target = Session;

    #[inline]
    fn deref(&self) -> &Session {
        match &self.0 {
            Some(session) => session,
            None => unreachable!("a session is used after its holder was dropped"),
        }
    }
}

impl DerefMut for OwnSession {
    #[inline]
    fn deref_mut(&mut self) -> &mut Session {
        match &mut self.0 {
            Some(session) => session,
            None => unreachable!("a session is used after its holder was dropped"),
        }
    }
}

#[derive(Default)]
#[repr(align(128))]
struct Shard(Mutex<Vec<OwnSession>>);

/// Sessions that rest.
pub(crate) struct RestingSessions(Box<[Shard]>);

impl Default for RestingSessions {
    fn default() -> RestingSessions {
        RestingSessions((0..SHARDS).map(|_| Shard::default()).collect())
    }
}

impl RestingSessions {
    /// One that has rested, as new.
    pub fn take(&self) -> Option<OwnSession> {
        self.0[thread_shard()].0.lock().pop()
    }

    /// Lets a session rest, if it can and there are not many.
    pub fn give(&self, mut session: Box<Session>) {
        let shard = &self.0[thread_shard()].0;
        if session.renew() {
            let mut resting = shard.lock();
            if resting.len() < RESTING_MAX {
                resting.push(OwnSession(Some(session)));
                return;
            }
        }
        drop(session);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::future::Future;
    use std::sync::atomic::AtomicUsize;
    use std::task::{Context, Wake, Waker};

    use txn::Isolation;

    use super::*;
    use crate::database::Database;
    use crate::metadata_lock::Blocked;

    fn resting(db: &Database) -> usize {
        db.0.resting.0.iter().map(|shard| shard.0.lock().len()).sum()
    }

    #[test]
    fn what_a_session_was_is_not_seen_by_the_next() {
        disk::block_on(async {
            let db = Database::in_memory().await.unwrap();
            let pairs = db.key_value::<u32, u32>("pairs").await.unwrap();
            db.transact(async |mut t| pairs.put(&mut t, 1, 1).await).await.unwrap();
            let mut t = db.begin_at(Isolation::ReadCommitted);
            let (patience, address) = (t.engine().lock_wait_timeout(), std::ptr::from_ref(t.engine()));
            t.set_lock_wait_timeout(std::time::Duration::ZERO);
            t.savepoint("s");
            assert_eq!(pairs.get_for_update(&mut t, 1).await.unwrap(), Some(1));
            t.engine_mut().kill_handle().kill();
            drop(t);
            let mut other = db.begin();
            other.set_lock_wait_timeout(std::time::Duration::ZERO);
            assert!(pairs.put(&mut other, 1, 2).await.is_ok(), "a row lock has stayed");
            other.commit(txn::Durability::NoSync).await.unwrap();
            drop(other);

            let mut t = db.begin();
            assert_eq!(std::ptr::from_ref(t.engine()), address, "a session has not rested");
            assert_eq!((t.engine().isolation(), t.engine().rows_read()), (Isolation::RepeatableRead, 0));
            assert_eq!(t.engine().lock_wait_timeout(), patience);
            assert!(!t.engine().has_savepoint("s"));
            assert_eq!(pairs.get(&mut t, 1).await.unwrap(), Some(2), "a kill, or a view, has stayed");
        });
    }

    #[test]
    fn who_is_known_to_others_does_not_rest() {
        disk::block_on(async {
            let db = Database::in_memory().await.unwrap();
            let pairs = db.key_value::<u32, u32>("pairs").await.unwrap();
            drop(db.begin());
            let rest = resting(&db);
            let t = db.begin();
            let handle = t.engine().kill_handle();
            drop(t);
            assert_eq!(resting(&db), rest - 1, "a kill would meet the next session");
            drop(handle);
            let mut t = db.begin();
            t.set_session(7);
            drop(t);
            assert_eq!(resting(&db), (rest - 1).saturating_sub(1), "it is listed");
            let mut t = db.begin();
            pairs.put(&mut t, 1, 1).await.unwrap();
            drop(t);
            assert_eq!(resting(&db), (rest - 1).saturating_sub(2), "its changes are to be rolled back");
            let many: Vec<_> = (0..2 * RESTING_MAX).map(|_| db.begin()).collect();
            drop(many);
            assert_eq!(resting(&db), RESTING_MAX);
        });
    }

    #[test]
    fn a_session_at_rest_uses_no_table() {
        disk::block_on(async {
            let db = Database::in_memory().await.unwrap();
            let pairs = db.key_value::<u32, u32>("pairs").await.unwrap();
            let table = db.table("untorn", "pairs").unwrap();
            for _ in 0..2 {
                assert_eq!(pairs.get(&mut db.begin(), 1).await.unwrap(), None);
                let mut request = table.metadata.request_exclusive(&db.0.tables.graph.owner());
                assert!(request.grant(0).is_ok(), "the table is in use");
            }
            // And not the one that has taken its place.
            db.truncate_table("untorn", "pairs").await.unwrap();
            assert!(!table.current.load(Ordering::Relaxed));
            let mut t = db.begin();
            assert!(!t.uses_at_once(&table));
            let mut request = table.metadata.request_exclusive(&db.0.tables.graph.owner());
            assert!(request.grant(0).is_ok(), "a table that is no more is used");
        });
    }

    #[test]
    fn that_a_wait_had_to_end_is_not_told_to_the_next() {
        disk::block_on(async {
            let db = Database::in_memory().await.unwrap();
            db.key_value::<u32, u32>("a").await.unwrap();
            db.key_value::<u32, u32>("b").await.unwrap();
            let [a, b] = ["a", "b"].map(|name| db.table("untorn", name).unwrap());
            let definition = db.0.tables.graph.owner();
            let _has_b = b.metadata.request_exclusive(&definition).grant(0).ok().unwrap();
            let mut t = db.begin();
            assert!(t.uses_at_once(&a));
            let Err(Blocked::Wait(wait)) = b.metadata.share(Access::Write, t.metadata_owner()) else {
                panic!("b is another's")
            };
            let closes_the_cycle = a.metadata.request_exclusive(&definition).grant(0);
            assert!(wait.is_done(), "the transaction is woken to give up");
            drop((wait, closes_the_cycle));
            let address = std::ptr::from_ref(t.engine());
            drop(t);
            let t = db.begin();
            assert_eq!(std::ptr::from_ref(t.engine()), address, "a session has not rested");
            let outcome = b.metadata.share(Access::Write, t.metadata_owner());
            assert!(matches!(outcome, Err(Blocked::Wait(_))), "a deadlock that was another transaction's");
        });
    }

    /// Notes how many row locks there are when it is woken.
    struct LocksWhenWoken(Database, AtomicUsize);

    impl Wake for LocksWhenWoken {
        fn wake(self: Arc<Self>) {
            self.1.store(self.0.locks().count(), Ordering::Relaxed);
        }
    }

    #[test]
    fn row_locks_end_before_the_use_of_their_table() {
        disk::block_on(async {
            let db = Database::in_memory().await.unwrap();
            let pairs = db.key_value::<u32, u32>("pairs").await.unwrap();
            db.transact(async |mut t| pairs.put(&mut t, 1, 1).await).await.unwrap();
            let table = db.table("untorn", "pairs").unwrap();
            let mut t = db.begin();
            assert_eq!(pairs.get_for_update(&mut t, 1).await.unwrap(), Some(1));
            assert_ne!(db.locks().count(), 0);
            let mut request = table.metadata.request_exclusive(&db.0.tables.graph.owner());
            let Err(Blocked::Wait(wait)) = request.grant(0) else { panic!("the table is in use") };
            let woken = Arc::new(LocksWhenWoken(db.clone(), AtomicUsize::new(usize::MAX)));
            let waker = Waker::from(woken.clone());
            let mut wait = std::pin::pin!(wait);
            assert!(wait.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
            drop(t);
            assert_eq!(woken.1.load(Ordering::Relaxed), 0, "the table was free before its rows");
        });
    }
}
