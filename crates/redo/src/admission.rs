//! The promise that there is room: in the circular file and in the log buffer.
//!
//! A mini-transaction is admitted ([`RedoLog::admit`]) before it changes its first page byte, and from then
//! on it waits for nothing. One that is larger than the log or its buffer can take is refused for good.
//! [`Ledger`] keeps the accounts and knows nothing of the log. They are one sum, the end of the log plus all
//! promises still open, and two limits (how far the file may be filled, and how much may lie unwritten in
//! memory). Because end and promises are one number, a promise is one compare-and-swap: whatever
//! happened in between, an unchanged sum means unchanged room. An append adds to the sum before its promise
//! is given back, so the sum is never too low.
//!
//! How far the file may be filled becomes less where the log is to become smaller ([`crate::resize`]), or is
//! closed. Nobody may have been promised more then, nor be promised it by a limit that was read before. So a
//! promise looks at the limit again when it has been entered, and the one who lowers the limit looks at the
//! promises after that ([`Ledger::lower_file_limit`]): one of the two sees the other.
//!
//! A third limit is soft, and may be lowered ([`RedoLog::set_age_limit`]): it is not what the log has room
//! for, but how far it should run ahead of its checkpoint. Who finds the sum below it is let in, however
//! large it is; so the log goes past it by one mini-transaction at most, and the largest one is let in at the
//! latest when everything before it is in the data files. Promises that were given are kept.
//!
//! **Waking.** A refused mini-transaction waits in a queue. When room appears, those at its front are woken
//! whose promises fit it, and at least one: each mini-transaction gives back some room, and if all of a
//! thousand were woken for it, all but one would have been woken for nothing. A woken one tries again like a
//! newcomer. If it is refused again it goes to the end, with what it lacks now; so nobody at the front
//! blocks those behind it for good.
//!
//! No wake-up is lost: a refused one enters the queue, raises the flag and then looks again; the one that
//! makes room does so and then looks at the flag. A sequentially consistent fence between the two steps on
//! both sides leaves no third order. A waiter that gives up leaves the queue, and passes its wake-up on if
//! it had one ([`Ledger::leave`]). The loom models at the end of this file explore all of it.
//!
//! **Closing** takes all room there is, in one step that succeeds only while no promise is open. So a
//! mini-transaction is either admitted before the end of the log is settled, or refused.

#[cfg(not(loom))]
use {
    crate::log::{Phase, RedoLog, State},
    crate::{Error, Flush, Interrupt},
    disk::{Wait, WaitKind},
    std::sync::Arc,
};

use disk::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use disk::sync::{Mutex, Notice};
use std::collections::VecDeque;

/// Room kept and promised.
pub(crate) struct Ledger {
    /// End of the log plus the sum of the open promises.
    promised_end: AtomicU64,
    /// End of what has left the buffer.
    written: AtomicU64,
    /// The log may not grow beyond this LSN.
    file_limit: AtomicU64,
    /// Nobody is let in while the sum is at or past this LSN.
    age_limit: AtomicU64,
    /// Bytes that may lie between `written` and the end.
    buffer_size: u64,
    /// Somebody may be in the queue.
    refused: AtomicBool,
    waiting: Mutex<Waiting>,
}

/// Those who were refused, in their order.
#[derive(Default)]
struct Waiting {
    queue: VecDeque<Waiter>,
    next_number: u64,
}

struct Waiter {
    number: u64,
    bytes: u64,
    notice: Notice,
}

/// More than a log ever has: what closing adds to the promises.
const EVERYTHING: u64 = 1 << 62;

/// A promise that could not be given.
pub(crate) struct Refusal {
    pub(crate) short: Short,
    /// Set when there may be room.
    pub(crate) notice: Notice,
    /// The place in the queue, for [`Ledger::leave`].
    pub(crate) number: u64,
}

/// What there is too little of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Short {
    /// The file is full up to its limit: the checkpoint must advance.
    File,
    /// The log runs as far ahead of its checkpoint as it should: that must advance.
    Age,
    /// The buffer is full: it must be written.
    Buffer,
}

impl Ledger {
    pub(crate) fn new(buffer_size: u64) -> Ledger {
        Ledger {
            promised_end: AtomicU64::new(0),
            written: AtomicU64::new(0),
            file_limit: AtomicU64::new(0),
            age_limit: AtomicU64::new(u64::MAX),
            buffer_size,
            refused: AtomicBool::new(false),
            waiting: Mutex::new(Waiting::default()),
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

    /// The log may grow up to `file`, and should not be past `age` when somebody is let in.
    pub(crate) fn set_limits(&self, file: u64, age: u64) {
        self.age_limit.store(age, Ordering::Release);
        self.set_file_limit(file);
    }

    /// Whether the first of those who were refused waits for room in the file.
    pub(crate) fn is_file_wanted(&self) -> bool {
        let waiting = self.waiting.lock();
        let end = self.promised_end.load(Ordering::Acquire);
        waiting.queue.front().is_some_and(|waiter| end + waiter.bytes > self.file_limit())
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
            if seen >= self.age_limit.load(Ordering::Acquire) {
                return Err(Short::Age);
            }
            if end.saturating_sub(self.written()) > self.buffer_size {
                return Err(Short::Buffer);
            }
            match self.promised_end.compare_exchange_weak(seen, end, Ordering::SeqCst, Ordering::Acquire) {
                Ok(_) => return self.confirm(bytes, end),
                Err(now) => seen = now,
            }
        }
    }

    /// The promise has been entered: is there a limit that has been lowered meanwhile?
    #[inline]
    fn confirm(&self, bytes: u64, end: u64) -> Result<(), Short> {
        // The exchange and this load are sequentially consistent; loom takes only fences as such.
        #[cfg(loom)]
        fence(Ordering::SeqCst);
        if end <= self.file_limit.load(Ordering::SeqCst) {
            return Ok(());
        }
        self.give_back(bytes);
        Err(Short::File)
    }

    /// The log may not grow beyond `lsn` from now on. False, and as before, if somebody has been promised to.
    pub(crate) fn lower_file_limit(&self, lsn: u64) -> bool {
        let before = self.file_limit.swap(lsn, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        let is_kept = self.promised_end.load(Ordering::SeqCst) <= lsn;
        if !is_kept {
            self.set_file_limit(before);
        }
        is_kept
    }

    /// End of the log and all promises.
    pub(crate) fn promised_end(&self) -> u64 {
        self.promised_end.load(Ordering::Acquire)
    }

    #[cold]
    fn refuse(&self, bytes: u64) -> Result<(), Refusal> {
        let (number, notice) = self.enter_queue(bytes);
        match self.try_promise(bytes) {
            Ok(()) => {
                self.remove(number);
                Ok(())
            }
            Err(short) => Err(Refusal { short, notice, number }),
        }
    }

    /// A refused caller has tried again, or has given up waiting. Must follow each refusal.
    pub(crate) fn leave(&self, number: u64) {
        if !self.remove(number) {
            // Woken for room that may still be there.
            self.wake();
        }
    }

    /// Takes a waiter out of the queue. False when it is not in it any more.
    fn remove(&self, number: u64) -> bool {
        let queue = &mut self.waiting.lock().queue;
        let place = queue.binary_search_by_key(&number, |waiter| waiter.number);
        place.is_ok_and(|place| queue.remove(place).is_some())
    }

    /// After this, look again: what happened before is seen then, what happens later sets the notice.
    fn enter_queue(&self, bytes: u64) -> (u64, Notice) {
        let notice = Notice::new();
        let number = {
            let mut waiting = self.waiting.lock();
            let number = waiting.next_number;
            waiting.next_number += 1;
            waiting.queue.push_back(Waiter { number, bytes, notice: notice.clone() });
            self.refused.store(true, Ordering::SeqCst);
            number
        };
        fence(Ordering::SeqCst);
        (number, notice)
    }

    /// Ends all promising while the log ends at `end`; before, the file limit was set to 0. When promises are
    /// open, the notice is set as they are given back: try again then.
    pub(crate) fn close(&self, end: u64) -> Result<(), Notice> {
        if self.take_all(end) {
            return Ok(());
        }
        let (_, notice) = self.enter_queue(0);
        if self.take_all(end) { Ok(()) } else { Err(notice) }
    }

    /// Keeps everybody from being promised anything, if nobody is while the log ends at `end`.
    pub(crate) fn take_all(&self, end: u64) -> bool {
        let all = end + EVERYTHING;
        self.promised_end.compare_exchange(end, all, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// Ends that.
    pub(crate) fn give_back_all(&self) {
        self.give_back(EVERYTHING);
    }

    /// Ends a promise.
    #[inline]
    pub(crate) fn give_back(&self, bytes: u64) {
        let before = self.promised_end.fetch_sub(bytes, Ordering::AcqRel);
        debug_assert!(before >= bytes, "more room given back than promised");
        self.wake();
    }

    /// Tells those who were refused to try again, as many as there may be room for.
    #[inline]
    pub(crate) fn wake(&self) {
        fence(Ordering::SeqCst);
        if self.refused.load(Ordering::SeqCst) {
            self.wake_those_who_fit();
        }
    }

    #[cold]
    fn wake_those_who_fit(&self) {
        let mut woken = Vec::new();
        {
            let mut waiting = self.waiting.lock();
            let mut end = self.promised_end.load(Ordering::SeqCst);
            let file_limit = self.file_limit.load(Ordering::SeqCst);
            let age_limit = self.age_limit.load(Ordering::SeqCst);
            let buffer_limit = self.written.load(Ordering::SeqCst) + self.buffer_size;
            while let Some(front) = waiting.queue.front() {
                let fits = end + front.bytes <= file_limit.min(buffer_limit) && end < age_limit;
                if !woken.is_empty() && !fits {
                    break;
                }
                end += front.bytes;
                woken.extend(waiting.queue.pop_front().map(|waiter| waiter.notice));
            }
            if waiting.queue.is_empty() {
                self.refused.store(false, Ordering::SeqCst);
            }
        }
        woken.iter().for_each(Notice::set);
    }

    /// Tells all of them, whether there is room or not.
    #[cold]
    pub(crate) fn wake_all(&self) {
        fence(Ordering::SeqCst);
        let all = {
            let mut waiting = self.waiting.lock();
            self.refused.store(false, Ordering::SeqCst);
            std::mem::take(&mut waiting.queue)
        };
        all.iter().for_each(|waiter| waiter.notice.set());
    }
}

#[cfg(not(loom))]
impl RedoLog {
    /// Promises room in the file and in the buffer for one mini-transaction of at most `bytes_max` bytes of
    /// records. The promise is kept until the [`Admission`] is dropped, which must be after the append.
    #[inline]
    pub fn admit(&self, bytes_max: usize) -> std::result::Result<Admission<'_>, Interrupt> {
        if let Some(error) = self.poisoned() {
            return Err(Interrupt::Error(error));
        }
        let bytes = bytes_max as u64 + self.overhead.load(Ordering::Relaxed);
        match self.ends.ledger.promise(bytes) {
            Ok(()) => Ok(Admission { log: self, bytes }),
            Err(refusal) => Err(self.refused(bytes_max, bytes, refusal)),
        }
    }

    #[cold]
    fn refused(&self, bytes_max: usize, bytes: u64, refusal: Refusal) -> Interrupt {
        let Refusal { short, notice, number } = refusal;
        let Some(log) = self.me.upgrade() else { unreachable!("called through a living log") };
        // Left with the wait, or on the way out of here.
        let place = Arc::new(QueuePlace { log, number });
        if self.state.lock().phase >= Phase::Closing {
            return Interrupt::Error(Error::Closed);
        }
        let most = self.mini_transaction_bytes_max();
        if bytes_max > most {
            return Interrupt::Error(Error::TooLarge { bytes: bytes_max, bytes_max: most });
        }
        let waits = if matches!(short, Short::Buffer) { &self.buffer_waits } else { &self.room_waits };
        waits.fetch_add(1, Ordering::Relaxed);
        match short {
            Short::File => {
                self.want_space(bytes);
                self.hurry_mark();
                let grow = {
                    let state = self.state.lock();
                    state.growth_hurry.set();
                    self.growth_if_due(&state, true)
                };
                if let Some(grow) = grow {
                    grow.set();
                }
                Interrupt::Wait(Wait::in_place(notice, place).of(WaitKind::LogRoom))
            }
            Short::Age => {
                self.want_space(bytes);
                Interrupt::Wait(Wait::in_place(notice, place).of(WaitKind::LogRoom))
            }
            Short::Buffer => match self.flush(self.current(), Flush::Write) {
                Err(Interrupt::Error(error)) => Interrupt::Error(error),
                // The writer that was faster has set the notice.
                _ => Interrupt::Wait(Wait::in_place(notice, place).of(WaitKind::LogRoom)),
            },
        }
    }

    /// From now on the log runs at most this many bytes ahead of its checkpoint, beside what its capacity
    /// allows: those who find it there wait, as for room, and the cleaner is told
    /// ([`RedoLog::space_wanted`], [`RedoLog::room_wanted`]). May be raised and lowered at any time. Who has
    /// been admitted stays so; the log goes past the limit by the mini-transaction that reaches it.
    /// `u64::MAX` for no such limit. A few KiB at least, so that a log without content is below it.
    pub fn set_age_limit(&self, bytes: u64) {
        let mut state = self.state.lock();
        state.age_limit = bytes;
        self.publish_limits(&state);
    }

    /// What [`RedoLog::set_age_limit`] has set.
    pub fn age_limit(&self) -> u64 {
        self.state.lock().age_limit
    }

    /// Tells the admissions how far the log may go now, and others what a start would search.
    pub(crate) fn publish_limits(&self, state: &State) {
        let area = state.block.layout.area;
        self.circle.store(area, Ordering::Relaxed);
        self.searched.store(state.reach().unwrap_or(area), Ordering::Relaxed);
        self.ends.ledger.set_limits(state.file_limit().0, state.age_limit_at().0);
    }

    /// The most one mini-transaction may ask [`RedoLog::admit`] for, in bytes.
    pub fn mini_transaction_bytes_max(&self) -> usize {
        (self.usable_wanted.load(Ordering::Relaxed) / 4).min(self.options.buffer_size as u64 / 2) as usize
    }
}

/// The place of a waiter in the queue for room.
#[cfg(not(loom))]
struct QueuePlace {
    log: Arc<RedoLog>,
    number: u64,
}

#[cfg(not(loom))]
impl Drop for QueuePlace {
    fn drop(&mut self) {
        self.log.ends.ledger.leave(self.number);
    }
}

/// Promised room for one mini-transaction; given back on drop.
#[cfg(not(loom))]
pub struct Admission<'l> {
    log: &'l RedoLog,
    bytes: u64,
}

#[cfg(not(loom))]
impl Drop for Admission<'_> {
    #[inline]
    fn drop(&mut self) {
        self.log.ends.ledger.give_back(self.bytes);
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
        let notice = refused(&ledger, 41, Short::File);
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
        let notice = refused(&ledger, 21, Short::Buffer);
        ledger.set_written(130);
        assert!(notice.is_set());
        assert!(ledger.promise(50).is_ok());
        let notice = refused(&ledger, 1, Short::Buffer);
        ledger.give_back(50);
        assert!(notice.is_set());
    }

    fn refused(ledger: &Ledger, bytes: u64, why: Short) -> Notice {
        match ledger.promise(bytes) {
            Err(Refusal { short, notice, .. }) if short == why => notice,
            _ => panic!("there is no room for {bytes} bytes"),
        }
    }

    #[test]
    fn as_many_are_woken_as_there_is_room_for_and_those_who_came_first() {
        let ledger = ledger(0, 100, 1000);
        assert!(ledger.promise(100).is_ok());
        let waiting: Vec<Notice> = (0..1000).map(|_| refused(&ledger, 10, Short::File)).collect();
        let woken = || waiting.iter().take_while(|notice| notice.is_set()).count();
        let mut expected = 0;
        for (given_back, wakes) in [(35, 3), (5, 1), (1, 1)] {
            ledger.give_back(given_back);
            expected += wakes;
            assert_eq!(
                (woken(), waiting.iter().filter(|notice| notice.is_set()).count()),
                (expected, expected)
            );
            assert!(ledger.promise(given_back).is_ok(), "somebody else takes the room");
        }
        ledger.wake_all();
        assert_eq!(woken(), 1000);
    }

    #[test]
    fn who_goes_away_is_passed_over_and_passes_on_what_it_was_woken_for() {
        let ledger = ledger(0, 100, 1000);
        assert!(ledger.promise(100).is_ok());
        let places: Vec<Refusal> = (0..5).filter_map(|_| ledger.promise(60).err()).collect();
        ledger.leave(places[0].number);
        ledger.leave(places[2].number);
        let woken = || places.iter().map(|place| place.notice.is_set()).collect::<Vec<_>>();
        ledger.give_back(60);
        assert_eq!(woken(), [false, true, false, false, false]);
        ledger.leave(places[1].number);
        assert_eq!(woken(), [false, true, false, true, false]);
        // It has used the room before.
        assert!(ledger.promise(60).is_ok());
        ledger.leave(places[3].number);
        assert_eq!(woken(), [false, true, false, true, true], "at least one looks again");
    }

    #[test]
    fn the_age_limit_lets_in_whoever_finds_it_free_and_holds_back_the_next() {
        let ledger = ledger(100, 10_000, 10_000);
        ledger.set_limits(10_000, 150);
        assert!(ledger.promise(40).is_ok() && ledger.promise(5000).is_ok(), "however large it is");
        let waiting: Vec<Notice> = (0..3).map(|_| refused(&ledger, 20, Short::Age)).collect();
        let woken = || waiting.iter().filter(|notice| notice.is_set()).count();
        // Raised, but not above what is promised: one looks again, as after every change.
        ledger.set_limits(10_000, 5000);
        assert_eq!(woken(), 1);
        assert!(ledger.promise(1).is_err());
        ledger.set_limits(10_000, 5200);
        assert_eq!(woken(), 3);
        assert!(ledger.promise(20).is_ok());
        // Lowered: what was promised is kept.
        ledger.set_limits(10_000, 120);
        refused(&ledger, 1, Short::Age);
        ledger.appended(5020);
        ledger.give_back(5060);
        refused(&ledger, 1, Short::Age);
        ledger.set_limits(10_000, 5121);
        assert!(ledger.promise(4800).is_ok(), "larger than the limit, and there is nothing before it");
        refused(&ledger, 500, Short::File);
    }

    #[test]
    fn closing_waits_for_open_promises_and_refuses_new_ones() {
        let ledger = ledger(100, 1000, 1000);
        assert!(ledger.promise(50).is_ok());
        ledger.set_file_limit(0);
        let Err(notice) = ledger.close(100) else { panic!("a promise is open") };
        assert!(ledger.promise(1).is_err() && !notice.is_set());
        // It is kept: the log ends later than it did.
        ledger.appended(20);
        ledger.give_back(50);
        assert!(notice.is_set() && ledger.close(100).is_err() && ledger.close(120).is_ok());
        ledger.set_file_limit(1 << 40);
        assert!(ledger.promise(1).is_err());
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use loom::sync::Arc;
    use loom::thread;

    /// Takes a promise the way the log's users do: wait for the notice, try again.
    fn promise_patiently(ledger: &Ledger, bytes: u64) {
        let mut places = Vec::new();
        loop {
            match ledger.promise(bytes) {
                Ok(()) => break,
                Err(refusal) => {
                    refusal.notice.wait();
                    places.push(refusal.number);
                }
            }
        }
        places.into_iter().for_each(|place| ledger.leave(place));
    }

    /// Room for one at a time: the second is refused and must be woken by the first giving back (a lost
    /// wake-up is a dead-lock that loom reports), and the limit holds in every interleaving.
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

    /// Three who need different room share what is enough for the largest alone; one of them goes away when
    /// refused.
    #[test]
    fn loom_the_queue_moves_on_when_somebody_goes_away() {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(3);
        builder.check(|| {
            let ledger = Arc::new(Ledger::new(100));
            ledger.set_file_limit(15);
            let start = |ledger: &Arc<Ledger>, bytes: u64, patient: bool| {
                let ledger = ledger.clone();
                thread::spawn(move || {
                    if patient {
                        promise_patiently(&ledger, bytes);
                    } else if let Err(refusal) = ledger.promise(bytes) {
                        return ledger.leave(refusal.number);
                    }
                    ledger.give_back(bytes);
                })
            };
            let others = [start(&ledger, 6, false), start(&ledger, 10, true)];
            promise_patiently(&ledger, 15);
            ledger.give_back(15);
            others.into_iter().for_each(|other| other.join().unwrap());
            assert!(ledger.promise(15).is_ok(), "everything was given back");
        });
    }

    /// The limit is lowered while somebody is promised room: either the one who lowers it hears of the
    /// promise, or the promise is within the limit.
    #[test]
    fn loom_a_limit_that_is_lowered_holds_for_every_promise() {
        loom::model(|| {
            let ledger = Arc::new(Ledger::new(100));
            ledger.set_file_limit(30);
            let other = {
                let ledger = ledger.clone();
                thread::spawn(move || {
                    ledger.promise(20).map_err(|refusal| ledger.leave(refusal.number)).is_ok()
                })
            };
            let lowered = ledger.lower_file_limit(10);
            let promised = other.join().unwrap();
            assert!(!(lowered && promised), "promised beyond the limit");
            // Given back by the one who came too late: nothing else is left of it.
            assert_eq!(ledger.promised_end(), if promised { 20 } else { 0 });
        });
    }

    /// The limit of the age is lowered and raised while two want room: nobody is forgotten.
    #[test]
    fn loom_no_wake_up_is_lost_when_the_age_limit_moves() {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(3);
        builder.check(|| {
            let ledger = Arc::new(Ledger::new(100));
            ledger.set_limits(50, 5);
            let start = |run: fn(&Ledger)| {
                let ledger = ledger.clone();
                thread::spawn(move || run(&ledger))
            };
            let other = start(|ledger| {
                promise_patiently(ledger, 10);
                ledger.give_back(10);
            });
            let mover = start(|ledger| {
                ledger.set_limits(50, 0);
                ledger.set_limits(50, 1);
            });
            promise_patiently(&ledger, 10);
            ledger.give_back(10);
            other.join().unwrap();
            mover.join().unwrap();
        });
    }

    /// A promise is either kept before the end is settled, or refused.
    #[test]
    fn loom_closing_is_after_each_promise_or_before_it() {
        loom::model(|| {
            let ledger = Arc::new(Ledger::new(100));
            ledger.set_file_limit(50);
            let end = Arc::new(Mutex::new(0u64));
            let other = {
                let (ledger, end) = (ledger.clone(), end.clone());
                thread::spawn(move || {
                    if ledger.promise(10).is_ok() {
                        *end.lock() += 5;
                        ledger.appended(5);
                        ledger.give_back(10);
                        return 5;
                    }
                    0
                })
            };
            let settled = loop {
                let end = end.lock();
                ledger.set_file_limit(0);
                match ledger.close(*end) {
                    Ok(()) => break *end,
                    Err(notice) => {
                        drop(end);
                        notice.wait();
                    }
                }
            };
            assert_eq!(other.join().unwrap(), settled);
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
