//! Where the time of sessions goes: their waits, by kind, and the processor.
//!
//! The engine notes what a task waits for ([`WaitKind`]). A connection's task is polled through
//! [`Waits::over`], which finds the note when a poll has ended without an answer, reads the clock, and reads
//! it again at the next poll: what is between was spent in a wait of that kind, with the time until the
//! thread came back to it. A statement that stands still for another reason (others have their turn, the
//! client does not take its rows) is away as well, for none of the kinds. A task that waits for nothing of
//! the engine, between statements, reads no clock.
//!
//! A wait goes on over several polls where the future says so: woken to look up, or by a kill that it does
//! not listen to, a task waits for the same thing as before. Two waits of one kind, for one page and then for
//! another, are two.
//!
//! **Processor time** is what is left of a statement's time: it has had the thread then. Of a statement that
//! has several turns each turn's is counted when it ends, so that a long one is seen while it runs. How much
//! of that time a thread really has a core is measured at one turn in `TURNS`, by the thread's own clock, and
//! the rest is taken to be alike. Reading that clock is a system call; at each statement it would cost more
//! than all that is counted of it.
//!
//! The total of each kind is a histogram of the connection's thread, which is its only writer. Sleeps for a
//! latch are the thread's: those of one turn count as one.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use untorn::engine::{NotedWait, WaitKind, thread_cpu_time};

use super::clock::CoarseClock;
use crate::status::Counters;

/// Kinds of waits.
pub const KINDS: usize = WaitKind::ALL.len();

/// Nanoseconds by kind, in the order of [`WaitKind::ALL`].
pub type ByKind = [u64; KINDS];

/// One in this many turns of a thread is measured by its own clock.
const TURNS: u32 = 256;
/// Of the time that measured turns took, so much is remembered.
const REMEMBERED: Duration = Duration::from_millis(20);
/// All of a thread's time.
const WHOLE: u32 = 1 << 10;

/// How much of the time in which tasks have a thread it has a core. Written by the thread alone.
#[derive(Debug)]
pub struct CoreShare {
    turns_left: AtomicU32,
    /// Nanoseconds of turns that were measured.
    measured: AtomicU64,
    /// And what the thread had a core of them.
    on_core: AtomicU64,
    /// Of [`WHOLE`].
    share: AtomicU32,
}

impl Default for CoreShare {
    fn default() -> CoreShare {
        CoreShare {
            turns_left: AtomicU32::new(0),
            measured: AtomicU64::new(0),
            on_core: AtomicU64::new(0),
            share: AtomicU32::new(WHOLE),
        }
    }
}

/// A turn that is measured.
struct MeasuredTurn {
    began: Instant,
    on_core: Duration,
}

impl CoreShare {
    #[inline]
    fn begin_turn(&self) -> Option<MeasuredTurn> {
        let left = self.turns_left.load(Ordering::Relaxed);
        self.turns_left.store(left.wrapping_sub(1), Ordering::Relaxed);
        if left == 0 { self.begin_measuring() } else { None }
    }

    #[cold]
    fn begin_measuring(&self) -> Option<MeasuredTurn> {
        self.turns_left.store(TURNS - 1, Ordering::Relaxed);
        Some(MeasuredTurn { began: Instant::now(), on_core: thread_cpu_time()? })
    }

    #[cold]
    fn end_measuring(&self, turn: &MeasuredTurn) {
        let Some(on_core) = thread_cpu_time() else { return };
        self.add(turn.began.elapsed(), on_core.saturating_sub(turn.on_core));
    }

    fn add(&self, took: Duration, on_core: Duration) {
        let sum = |counter: &AtomicU64, time: Duration| {
            let nanoseconds = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
            counter.load(Ordering::Relaxed).saturating_add(nanoseconds)
        };
        let (mut measured, mut core) = (sum(&self.measured, took), sum(&self.on_core, on_core));
        let share = u128::from(core) * u128::from(WHOLE) / u128::from(measured.max(1));
        self.share.store(u32::try_from(share).unwrap_or(WHOLE).min(WHOLE), Ordering::Relaxed);
        if measured > REMEMBERED.as_nanos() as u64 {
            (measured, core) = (measured / 2, core / 2);
        }
        self.measured.store(measured, Ordering::Relaxed);
        self.on_core.store(core, Ordering::Relaxed);
    }

    /// The processor time in these nanoseconds of the thread.
    #[inline]
    fn of(&self, nanoseconds: u64) -> u64 {
        let share = self.share.load(Ordering::Relaxed);
        if share >= WHOLE { nanoseconds } else { nanoseconds / u64::from(WHOLE) * u64::from(share) }
    }
}

/// The waits of one connection.
#[derive(Debug, Default)]
pub struct Waits {
    /// Of the statement that runs.
    spent_nanoseconds: [AtomicU64; KINDS],
    /// Of it, for whatever reason: it did not have its thread, or the thread slept.
    away_nanoseconds: AtomicU64,
    /// Of its processor time, what the thread's sum has already.
    cpu_counted: AtomicU64,
    /// Whether a statement runs, and since when: [`IDLE`], [`FIRST_TURN`], [`LATER_TURN`].
    runs: AtomicU8,
    /// What it waits for now: the milliseconds of the coarse clock at which that began, above the number of
    /// the kind and one; 0 when it does not wait.
    now: AtomicU64,
}

/// No statement runs.
const IDLE: u8 = 0;
/// One has begun in this turn, nobody knows when.
const FIRST_TURN: u8 = 1;
/// One had begun when this turn did.
const LATER_TURN: u8 = 2;

/// Bits of [`Waits::now`] for the kind.
const KIND_BITS: u32 = 3;

/// Where a statement's time has gone.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Spent {
    /// On the processor, nanoseconds.
    pub cpu: u64,
    /// In waits.
    pub waited: ByKind,
}

impl Waits {
    /// A statement begins.
    #[inline]
    pub fn begin_statement(&self) {
        self.runs.store(FIRST_TURN, Ordering::Relaxed);
        if self.away_nanoseconds.load(Ordering::Relaxed) != 0 {
            self.forget();
        }
        // Of others, before.
        WaitKind::take_latch_sleep();
    }

    #[cold]
    fn forget(&self) {
        self.spent_nanoseconds.iter().for_each(|spent| spent.store(0, Ordering::Relaxed));
        self.away_nanoseconds.store(0, Ordering::Relaxed);
        self.cpu_counted.store(0, Ordering::Relaxed);
    }

    /// The statement has ended; it took this long.
    #[inline]
    pub fn end_statement(&self, counters: &Counters, took: Duration) -> Spent {
        self.runs.store(IDLE, Ordering::Relaxed);
        // A wait that was given up is no reason for what the session waits for next.
        WaitKind::take_noted();
        self.take_latch_sleep(counters);
        let took = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        let away = self.away_nanoseconds.load(Ordering::Relaxed);
        let cpu = counters.core_share.of(took.saturating_sub(away));
        if away == 0 {
            // One turn.
            counters.add_cpu(cpu);
            return Spent { cpu, waited: ByKind::default() };
        }
        // The share may have changed since the first turns.
        let counted = self.cpu_counted.load(Ordering::Relaxed);
        counters.add_cpu(cpu.saturating_sub(counted));
        Spent { cpu: cpu.max(counted), waited: self.spent() }
    }

    /// A turn of a statement that goes on has ended; it had the thread for `took`.
    fn end_turn(&self, counters: &Counters, took: Duration) {
        let took = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        let cpu = counters.core_share.of(took);
        counters.add_cpu(cpu);
        self.cpu_counted.fetch_add(cpu, Ordering::Relaxed);
    }

    #[cold]
    fn spent(&self) -> ByKind {
        std::array::from_fn(|kind| self.spent_nanoseconds[kind].load(Ordering::Relaxed))
    }

    /// What it waits for now, and since when on the coarse clock.
    pub fn current(&self) -> Option<(WaitKind, u64)> {
        let now = self.now.load(Ordering::Relaxed);
        let kind = (now & ((1 << KIND_BITS) - 1)).checked_sub(1)?;
        Some((*WaitKind::ALL.get(kind as usize)?, now >> KIND_BITS))
    }

    /// Polls the task of a connection to its end, and keeps account of its waits.
    pub async fn over<T>(
        &self,
        counters: &Counters,
        clock: &CoarseClock,
        mut task: Pin<&mut impl Future<Output = T>>,
    ) -> T {
        let mut pause: Option<Pause> = None;
        poll_fn(|context| {
            // Before the poll, in which the statement may end and ask what it waited.
            let before = pause.take().map(|pause| self.goes_on_from(pause));
            // Another task of this thread may have noted something.
            WaitKind::take_noted();
            WaitKind::take_latch_sleep();
            let turn = counters.core_share.begin_turn();
            let polled = task.as_mut().poll(context);
            if let Some(turn) = turn {
                counters.core_share.end_measuring(&turn);
            }
            let slept = self.take_latch_sleep(counters);
            let noted = if polled.is_pending() { WaitKind::take_noted() } else { None };
            let runs = self.runs.load(Ordering::Relaxed);
            if polled.is_pending() && (noted.is_some() || runs != IDLE) {
                let now = Instant::now();
                match before {
                    Some(before) if runs == LATER_TURN => {
                        let took = now.saturating_duration_since(before.counted_until);
                        self.end_turn(counters, took.saturating_sub(slept));
                    }
                    _ if runs == FIRST_TURN => self.runs.store(LATER_TURN, Ordering::Relaxed),
                    _ => {}
                }
                let goes_on = before.filter(|before| {
                    before.kind.is_some_and(|kind| noted.is_some_and(|noted| noted.goes_on_with(kind)))
                });
                let waited = goes_on.map_or(Duration::ZERO, |before| before.waited);
                pause = Some(Pause { kind: noted.map(|noted| noted.kind), waited, counted_until: now });
                if goes_on.is_some() {
                    return polled;
                }
            }
            if let Some(Pause { kind: Some(kind), waited, .. }) = before {
                self.now.store(0, Ordering::Relaxed);
                counters.wait_times[kind as usize].record_alone(waited);
            }
            if let Some(NotedWait { kind, .. }) = noted {
                self.now.store(clock.now_ms() << KIND_BITS | (kind as u64 + 1), Ordering::Relaxed);
            }
            polled
        })
        .await
    }

    /// Counts the time of a pause until now.
    fn goes_on_from(&self, pause: Pause) -> Pause {
        let now = Instant::now();
        let more = now.saturating_duration_since(pause.counted_until);
        self.add(pause.kind, u64::try_from(more.as_nanos()).unwrap_or(u64::MAX));
        Pause { waited: pause.waited + more, counted_until: now, ..pause }
    }

    fn add(&self, kind: Option<WaitKind>, nanoseconds: u64) {
        self.away_nanoseconds.fetch_add(nanoseconds, Ordering::Relaxed);
        if let Some(kind) = kind {
            self.spent_nanoseconds[kind as usize].fetch_add(nanoseconds, Ordering::Relaxed);
        }
    }

    /// Counts what the thread has slept for latches.
    #[inline]
    fn take_latch_sleep(&self, counters: &Counters) -> Duration {
        let slept = WaitKind::take_latch_sleep();
        if slept > 0 {
            self.slept_for_latch(counters, slept);
        }
        Duration::from_nanos(slept)
    }

    #[cold]
    fn slept_for_latch(&self, counters: &Counters, nanoseconds: u64) {
        self.add(Some(WaitKind::Latch), nanoseconds);
        counters.wait_times[WaitKind::Latch as usize].record_alone(Duration::from_nanos(nanoseconds));
    }
}

/// The task has no turn, over as many polls as it takes.
#[derive(Clone, Copy)]
struct Pause {
    /// What it waits for, if the engine has said so.
    kind: Option<WaitKind>,
    /// How long, without the turns between.
    waited: Duration,
    /// Until when it is counted.
    counted_until: Instant,
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use untorn::engine::{Event, Wait};

    use super::*;

    #[test]
    fn a_wait_counts_for_its_kind_and_one_for_the_client_for_none() {
        let (waits, counters, clock) = (Waits::default(), Counters::default(), CoarseClock::default());
        let (page, client) = (Event::new(), Event::new());
        let (page_read, from_client) =
            (Wait::new(page.clone()).of(WaitKind::PageRead), Wait::new(client.clone()));
        let task = pin!(async {
            page_read.await;
            from_client.await;
        });
        let mut over = pin!(waits.over(&counters, &clock, task));
        let mut context = Context::from_waker(Waker::noop());
        // What another task of the thread waits for is not this one's.
        WaitKind::RowLock.note(false);
        assert!(over.as_mut().poll(&mut context).is_pending());
        assert_eq!(waits.current(), Some((WaitKind::PageRead, 0)));
        page.set();
        assert!(over.as_mut().poll(&mut context).is_pending());
        assert_eq!(waits.current(), None);
        client.set();
        assert_eq!(over.as_mut().poll(&mut context), Poll::Ready(()));
        let counts: Vec<u64> = counters.wait_times.iter().map(|times| times.times().count()).collect();
        assert_eq!(counts, [1, 0, 0, 0, 0, 0, 0]);
        assert!(waits.spent()[WaitKind::PageRead as usize] > 0);
    }

    #[test]
    fn a_wait_that_is_looked_at_is_one_wait_and_its_time_is_there_when_it_ends() {
        let (waits, counters, clock) = (Waits::default(), Counters::default(), CoarseClock::default());
        let page = Event::new();
        let read = Wait::new(page.clone()).of(WaitKind::PageRead);
        let spent = |waits: &Waits| waits.spent()[WaitKind::PageRead as usize];
        let task = pin!(async {
            read.await;
            spent(&waits)
        });
        let mut over = pin!(waits.over(&counters, &clock, task));
        let mut context = Context::from_waker(Waker::noop());
        for _ in 0..3 {
            assert!(over.as_mut().poll(&mut context).is_pending());
            assert_eq!(waits.current(), Some((WaitKind::PageRead, 0)));
        }
        page.set();
        let Poll::Ready(seen) = over.as_mut().poll(&mut context) else { panic!("it still waits") };
        assert_eq!((seen, seen > 0), (spent(&waits), true));
        let times = counters.wait_times[WaitKind::PageRead as usize].times();
        assert_eq!(times.count(), 1);
        assert_eq!(waits.current(), None);
    }

    #[test]
    fn pages_one_after_the_other_are_waits_of_their_own_and_the_work_between_is_processor_time() {
        let (waits, counters, clock) = (Waits::default(), Counters::default(), CoarseClock::default());
        let pages = [Event::new(), Event::new()];
        let began = Instant::now();
        let task = pin!(async {
            waits.begin_statement();
            for page in &pages {
                Wait::new(page.clone()).of(WaitKind::PageRead).await;
                work(Duration::from_millis(4));
            }
            let took = began.elapsed();
            (waits.end_statement(&counters, took), took)
        });
        let mut over = pin!(waits.over(&counters, &clock, task));
        let mut context = Context::from_waker(Waker::noop());
        assert!(over.as_mut().poll(&mut context).is_pending());
        pages[0].set();
        assert!(over.as_mut().poll(&mut context).is_pending());
        let times = |counters: &Counters| counters.wait_times[WaitKind::PageRead as usize].times().count();
        assert_eq!(times(&counters), 1, "the first is over");
        let counted = Duration::from_nanos(counters.cpu_nanoseconds());
        assert!(counted >= Duration::from_millis(1), "{counted:?} while it runs");
        pages[1].set();
        let Poll::Ready((spent, took)) = over.as_mut().poll(&mut context) else { panic!("it still waits") };
        assert_eq!((times(&counters), counters.cpu_nanoseconds()), (2, spent.cpu));
        let (cpu, waited) = (spent.cpu, spent.waited[WaitKind::PageRead as usize]);
        assert!(Duration::from_nanos(cpu + waited) <= took, "{cpu} + {waited} of {took:?}");
        assert!(cpu >= 2_000_000 && waited > 0, "{cpu}, {waited}");
    }

    /// Polls a statement, which begins and ends in the task, to its end: one poll before `between` and one
    /// after it. Returns what it was told, and how long all of it took.
    fn statement<F: Future<Output = ()>>(during: F, between: impl FnOnce()) -> (Spent, Duration) {
        let (waits, counters, clock) = (Waits::default(), Counters::default(), CoarseClock::default());
        let began = Instant::now();
        let task = pin!(async {
            waits.begin_statement();
            during.await;
            let took = began.elapsed();
            (waits.end_statement(&counters, took), took)
        });
        let mut over = pin!(waits.over(&counters, &clock, task));
        let mut context = Context::from_waker(Waker::noop());
        let mut between = Some(between);
        loop {
            if let Poll::Ready(spent) = over.as_mut().poll(&mut context) {
                assert_eq!(counters.cpu_nanoseconds(), spent.0.cpu);
                return spent;
            }
            if let Some(between) = between.take() {
                between();
            }
        }
    }

    /// Has the core for this time, however many others want it.
    fn work(time: Duration) {
        let began = thread_cpu_time();
        while thread_cpu_time().zip(began).is_some_and(|(now, began)| now - began < time) {
            std::hint::spin_loop();
        }
    }

    const LONG: Duration = Duration::from_millis(40);

    #[test]
    fn the_time_of_others_and_of_the_client_is_no_processor_time() {
        let client = Event::new();
        let answered = client.clone();
        let during = async move {
            work(Duration::from_millis(4));
            Wait::new(client).await;
        };
        let (spent, took) = statement(during, || {
            std::thread::sleep(LONG);
            answered.set();
        });
        let cpu = Duration::from_nanos(spent.cpu);
        assert!(took >= LONG && cpu <= took - LONG, "{cpu:?} of {took:?}");
        assert!(cpu >= Duration::from_millis(1), "{cpu:?}");
        assert_eq!(spent.waited, ByKind::default());
    }

    #[test]
    fn sleep_for_a_latch_counts_for_the_statement_that_runs_and_not_for_the_next() {
        let slept = Duration::from_millis(3);
        let during = async {
            work(Duration::from_millis(4));
            WaitKind::add_latch_sleep(slept);
        };
        // Of a task that had the thread before.
        WaitKind::add_latch_sleep(LONG);
        let (spent, took) = statement(during, || {});
        assert_eq!(spent.waited[WaitKind::Latch as usize], slept.as_nanos() as u64);
        assert!(Duration::from_nanos(spent.cpu) <= took - slept);

        let (waits, counters) = (Waits::default(), Counters::default());
        waits.begin_statement();
        WaitKind::add_latch_sleep(slept);
        waits.end_statement(&counters, LONG);
        assert_eq!(counters.wait_times[WaitKind::Latch as usize].times().count(), 1);
        waits.begin_statement();
        let next = waits.end_statement(&counters, LONG);
        assert_eq!(next, Spent { cpu: LONG.as_nanos() as u64, waited: ByKind::default() });
    }

    #[test]
    fn a_thread_that_shares_its_core_has_less_processor_time() {
        let share = CoreShare::default();
        assert_eq!(share.of(4096), 4096);
        for _ in 0..1000 {
            share.add(Duration::from_micros(100), Duration::from_micros(50));
        }
        assert_eq!(share.of(4096), 2048);
        for _ in 0..5000 {
            share.add(Duration::from_micros(100), Duration::from_micros(100));
        }
        assert!(share.of(4096) > 4000, "{}", share.of(4096));
        let measured = (0..2 * TURNS).filter(|_| share.begin_turn().is_some()).count();
        assert_eq!(measured, 2);
    }
}
