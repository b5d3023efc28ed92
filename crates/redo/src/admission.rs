//! The promise that there is room: in the circular file and in the log buffer.
//!
//! A mini-transaction is admitted before it changes its first page byte, and from then on it waits for nothing. The
//! books are one sum, the end of the log plus all promises still open, and two limits that only grow (how far the file
//! may be filled, and how much may lie unwritten in memory). Because end and promises are one number, a promise is one
//! compare-and-swap: whatever happened in between, an unchanged sum means unchanged room. An append adds to the sum
//! before its promise is given back, so the sum is never too low.
//!
//! No wake-up is lost: who is refused raises the flag and then looks again; who makes room does so and then looks at
//! the flag. A sequentially consistent fence between the two steps on both sides leaves no third order. The loom model
//! at the end of this file explores them.

use disk::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use disk::sync::{Mutex, Notice};

/// Room kept and promised.
pub(crate) struct Ledger {
    /// End of the log plus the sum of the open promises.
    promised_end: AtomicU64,
    /// End of what has left the buffer.
    written: AtomicU64,
    /// The log may not grow beyond this LSN.
    file_limit: AtomicU64,
    /// Bytes that may lie between `written` and the end.
    buffer_size: u64,
    refused: AtomicBool,
    room: Mutex<Notice>,
}

/// Why there was no room, and what will say that there may be.
pub(crate) enum Refusal {
    /// The file is full up to its limit: the checkpoint must advance.
    File(Notice),
    /// The buffer is full: it must be written.
    Buffer(Notice),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Short {
    File,
    Buffer,
}

impl Ledger {
    pub(crate) fn new(buffer_size: u64) -> Ledger {
        Ledger {
            promised_end: AtomicU64::new(0),
            written: AtomicU64::new(0),
            file_limit: AtomicU64::new(0),
            buffer_size,
            refused: AtomicBool::new(false),
            room: Mutex::new(Notice::new()),
        }
    }

    /// Bytes that may lie unwritten.
    #[cfg(all(test, loom))]
    pub(crate) fn buffer_size(&self) -> u64 {
        self.buffer_size
    }

    /// The end of the log moved on by `bytes`.
    #[inline]
    pub(crate) fn appended(&self, bytes: u64) {
        self.promised_end.fetch_add(bytes, Ordering::AcqRel);
    }

    #[inline]
    pub(crate) fn written(&self) -> u64 {
        self.written.load(Ordering::Acquire)
    }

    /// Everything before `lsn` has left the buffer.
    pub(crate) fn set_written(&self, lsn: u64) {
        self.written.store(lsn, Ordering::Release);
        self.wake();
    }

    pub(crate) fn file_limit(&self) -> u64 {
        self.file_limit.load(Ordering::Acquire)
    }

    /// The log may grow up to `lsn`.
    pub(crate) fn set_file_limit(&self, lsn: u64) {
        self.file_limit.store(lsn, Ordering::Release);
        self.wake();
    }

    /// Promises `bytes`, or says why not and what to wait for.
    #[inline]
    pub(crate) fn promise(&self, bytes: u64) -> Result<(), Refusal> {
        if self.try_promise(bytes).is_ok() { Ok(()) } else { self.refuse(bytes) }
    }

    #[inline]
    fn try_promise(&self, bytes: u64) -> Result<(), Short> {
        let mut seen = self.promised_end.load(Ordering::Acquire);
        loop {
            let end = seen + bytes;
            if end > self.file_limit.load(Ordering::Acquire) {
                return Err(Short::File);
            }
            if end.saturating_sub(self.written()) > self.buffer_size {
                return Err(Short::Buffer);
            }
            match self.promised_end.compare_exchange_weak(seen, end, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return Ok(()),
                Err(now) => seen = now,
            }
        }
    }

    #[cold]
    fn refuse(&self, bytes: u64) -> Result<(), Refusal> {
        let notice = self.room.lock().clone();
        self.refused.store(true, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        match self.try_promise(bytes) {
            Ok(()) => Ok(()),
            Err(Short::File) => Err(Refusal::File(notice)),
            Err(Short::Buffer) => Err(Refusal::Buffer(notice)),
        }
    }

    /// Ends a promise.
    #[inline]
    pub(crate) fn give_back(&self, bytes: u64) {
        let before = self.promised_end.fetch_sub(bytes, Ordering::AcqRel);
        debug_assert!(before >= bytes, "more room given back than promised");
        self.wake();
    }

    /// Tells those who were refused to try again.
    #[inline]
    pub(crate) fn wake(&self) {
        fence(Ordering::SeqCst);
        if self.refused.load(Ordering::SeqCst) {
            self.wake_refused();
        }
    }

    #[cold]
    fn wake_refused(&self) {
        let notice = {
            let mut room = self.room.lock();
            self.refused.store(false, Ordering::SeqCst);
            std::mem::replace(&mut *room, Notice::new())
        };
        notice.set();
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn ledger(start: u64, limit: u64, buffer: u64) -> Ledger {
        let ledger = Ledger::new(buffer);
        ledger.appended(start);
        ledger.set_written(start);
        ledger.set_file_limit(limit);
        ledger
    }

    #[test]
    fn promises_stop_at_the_file_limit_and_go_on_when_it_moves() {
        let ledger = ledger(100, 200, 1000);
        assert!(ledger.promise(60).is_ok());
        let Err(Refusal::File(notice)) = ledger.promise(41) else { panic!("40 bytes are left") };
        assert!(ledger.promise(40).is_ok());
        assert!(!notice.is_set());
        ledger.set_file_limit(241);
        assert!(notice.is_set());
        assert!(ledger.promise(41).is_ok());
        assert!(ledger.promise(1).is_err());
    }

    #[test]
    fn promises_stop_at_the_buffer_and_go_on_when_it_was_written_or_room_is_given_back() {
        let ledger = ledger(100, 10_000, 50);
        assert!(ledger.promise(50).is_ok());
        ledger.appended(30);
        ledger.give_back(50);
        let Err(Refusal::Buffer(notice)) = ledger.promise(21) else { panic!("20 bytes are left") };
        ledger.set_written(130);
        assert!(notice.is_set());
        assert!(ledger.promise(50).is_ok());
        let Err(Refusal::Buffer(notice)) = ledger.promise(1) else { panic!("nothing is left") };
        ledger.give_back(50);
        assert!(notice.is_set());
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use loom::sync::Arc;
    use loom::thread;

    /// Takes a promise the way the log's users do: wait for the notice, try again.
    fn promise_patiently(ledger: &Ledger, bytes: u64) {
        loop {
            match ledger.promise(bytes) {
                Ok(()) => return,
                Err(Refusal::File(notice) | Refusal::Buffer(notice)) => notice.wait(),
            }
        }
    }

    /// Room for one at a time: the second is refused and must be woken by the first giving back (a lost wake-up is a
    /// dead-lock that loom reports), and the limit holds in every interleaving.
    #[test]
    fn loom_no_wake_up_is_lost_between_two_who_share_room_for_one() {
        loom::model(|| {
            let ledger = Arc::new(Ledger::new(100));
            ledger.set_file_limit(15);
            let other = {
                let ledger = ledger.clone();
                thread::spawn(move || {
                    promise_patiently(&ledger, 10);
                    ledger.give_back(10);
                })
            };
            promise_patiently(&ledger, 10);
            ledger.give_back(10);
            other.join().unwrap();
        });
    }

    /// An appender fills the buffer while a writer empties it.
    #[test]
    fn loom_appender_and_writer_hand_over() {
        loom::model(|| {
            let ledger = Arc::new(Ledger::new(10));
            ledger.set_file_limit(1000);
            let writer = {
                let ledger = ledger.clone();
                thread::spawn(move || ledger.set_written(8))
            };
            promise_patiently(&ledger, 8);
            ledger.appended(8);
            ledger.give_back(8);
            promise_patiently(&ledger, 8);
            assert_eq!(ledger.written(), 8);
            writer.join().unwrap();
        });
    }
}
