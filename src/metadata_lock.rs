//! Metadata locks: who uses a table, and who may change its definition.
//!
//! A transaction *uses* every table it touches until it ends, so that the definition cannot change under it;
//! DDL takes the table *exclusively*. A waiting exclusive request stops new uses, so that it gets its turn.
//! Taking a use is one atomic addition; only where DDL is about is a mutex taken and a wait returned.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use disk::{Event, Wait};
use parking_lot::Mutex;

/// Set while DDL holds the lock or waits for it.
const DDL: u32 = 1 << 31;

/// A table's metadata lock.
#[derive(Default)]
pub struct MetadataLock {
    /// Number of uses, and [`DDL`].
    state: AtomicU32,
    slow: Mutex<Slow>,
}

#[derive(Default)]
struct Slow {
    /// Exclusive requests that hold or wait.
    exclusive: u32,
    /// Is one of them granted?
    granted: bool,
    /// Set whenever a use or an exclusive hold ends while somebody waits.
    changed: Option<Event>,
}

impl Slow {
    fn wait(&mut self) -> Wait {
        Wait::new(self.changed.get_or_insert_with(Event::new).clone())
    }

    fn wake(&mut self) {
        if let Some(event) = self.changed.take() {
            event.set();
        }
    }
}

/// A use of a table; ends when dropped.
pub struct MetadataUse(Arc<MetadataLock>);

/// The right to change a table's definition; ends when dropped.
pub struct MetadataExclusive(Arc<MetadataLock>);

/// An exclusive request that waits; it keeps new uses out until it is granted or dropped.
pub struct ExclusiveRequest(Option<Arc<MetadataLock>>);

impl MetadataLock {
    /// Begins a use, or says what to wait for before the next try.
    pub fn share(self: &Arc<Self>) -> Result<MetadataUse, Wait> {
        if self.state.fetch_add(1, Ordering::Acquire) & DDL == 0 {
            return Ok(MetadataUse(self.clone()));
        }
        let mut slow = self.slow.lock();
        if slow.exclusive == 0 {
            // It ended in between; the use counted above stands.
            return Ok(MetadataUse(self.clone()));
        }
        self.state.fetch_sub(1, Ordering::Release);
        // A waiting exclusive request may have seen the count that was just taken back.
        let wait = if slow.granted {
            slow.wait()
        } else {
            slow.wake();
            slow.wait()
        };
        Err(wait)
    }

    /// Asks for the table alone. No new use begins from now on.
    pub fn request_exclusive(self: &Arc<Self>) -> ExclusiveRequest {
        let mut slow = self.slow.lock();
        slow.exclusive += 1;
        self.state.fetch_or(DDL, Ordering::AcqRel);
        ExclusiveRequest(Some(self.clone()))
    }

    fn end_exclusive(&self, granted: bool) {
        let mut slow = self.slow.lock();
        slow.exclusive -= 1;
        if granted {
            slow.granted = false;
        }
        if slow.exclusive == 0 {
            self.state.fetch_and(!DDL, Ordering::AcqRel);
        }
        slow.wake();
    }
}

impl ExclusiveRequest {
    /// Takes the lock if nobody uses the table; `own` uses (of the same session) do not count.
    pub fn grant(&mut self, own: u32) -> Result<MetadataExclusive, Wait> {
        let lock = self.0.as_ref().map(Arc::clone);
        let Some(lock) = lock else { return Err(Wait::new(Event::new())) };
        let mut slow = lock.slow.lock();
        if !slow.granted && lock.state.load(Ordering::Acquire) & !DDL <= own {
            slow.granted = true;
            drop(slow);
            self.0 = None;
            return Ok(MetadataExclusive(lock));
        }
        Err(slow.wait())
    }
}

impl Drop for ExclusiveRequest {
    fn drop(&mut self) {
        if let Some(lock) = self.0.take() {
            lock.end_exclusive(false);
        }
    }
}

impl Drop for MetadataExclusive {
    fn drop(&mut self) {
        self.0.end_exclusive(true);
    }
}

impl Drop for MetadataUse {
    fn drop(&mut self) {
        let before = self.0.state.fetch_sub(1, Ordering::Release);
        assert!(before & !DDL > 0, "a metadata use ended that had not begun");
        if before & DDL != 0 {
            self.0.slow.lock().wake();
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn ddl_waits_for_uses_and_keeps_new_ones_out() {
        let lock = Arc::new(MetadataLock::default());
        let first = lock.share().ok().unwrap();
        let mut request = lock.request_exclusive();
        assert!(request.grant(0).is_err());
        assert!(lock.share().is_err());
        drop(first);
        let exclusive = request.grant(0).ok().unwrap();
        assert!(lock.share().is_err());
        let mut second = lock.request_exclusive();
        assert!(second.grant(0).is_err());
        drop(exclusive);
        drop(second);
        assert!(lock.share().is_ok());
    }

    #[test]
    fn a_request_given_up_lets_uses_in_again() {
        let lock = Arc::new(MetadataLock::default());
        let _first = lock.share().ok().unwrap();
        let request = lock.request_exclusive();
        assert!(lock.share().is_err());
        drop(request);
        assert!(lock.share().is_ok());
    }
}
