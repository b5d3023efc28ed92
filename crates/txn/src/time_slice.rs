//! How long a task keeps its thread.
//!
//! Many connections share a runtime thread, and a task that does not return to the runtime keeps all of them
//! waiting, logins and KILL included. So every loop whose length the data decides counts its work in a
//! [`TimeSlice`]: a unit is about a row looked at, compared or copied. The clock is read every
//! [`UNITS_PER_LOOK`] units, and when the task has worked for [`SLICE`] it lets others run and a new slice
//! begins.
//!
//! The slice belongs to the session and outlives a single scan: a join that opens a scan for every outer row,
//! or a caller that pauses its scan after every row, gives way as often as one long scan does. A caller that
//! polls a statement says so with [`TimeSlice::begin`]; a task that nobody announces (a program that embeds
//! the engine) begins a slice whenever it has given way. A statement that ends before its first look never
//! reads the clock.
//!
//! The slice also carries the order to stop: work that one session does through several transactions (an
//! index build reads through one of its own) shares the slice and hence the kill.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use disk::Environment;

use crate::error::Error;
use crate::retry::yield_now;

/// How long a task works before it lets others run.
pub const SLICE: Duration = Duration::from_micros(500);

/// Units of work between looks at the clock.
pub const UNITS_PER_LOOK: u32 = 16;

/// `began` of a slice whose clock has not been read.
const UNREAD: u64 = u64::MAX;

/// See the module's text. One task counts; others may only [stop](TimeSlice::stop) it.
pub struct TimeSlice {
    environment: Arc<dyn Environment>,
    /// When the slice began, nanoseconds of the environment's clock.
    began_nanos: AtomicU64,
    /// Units of this slice.
    units: AtomicU32,
    /// Units at which the clock is looked at next.
    look_at: AtomicU32,
    /// A slice ends after this number of units whatever the clock says; 0: the clock decides. For tests.
    units_max: AtomicU32,
    stopped: AtomicBool,
}

impl TimeSlice {
    /// A slice by the clock of `environment`.
    pub fn new(environment: Arc<dyn Environment>) -> TimeSlice {
        TimeSlice {
            environment,
            began_nanos: AtomicU64::new(UNREAD),
            units: AtomicU32::new(0),
            look_at: AtomicU32::new(UNITS_PER_LOOK),
            units_max: AtomicU32::new(0),
            stopped: AtomicBool::new(false),
        }
    }

    /// A slice begins: the runtime polls the task.
    #[inline]
    pub fn begin(&self) {
        self.began_nanos.store(UNREAD, Ordering::Relaxed);
        self.units.store(0, Ordering::Relaxed);
        self.look_at.store(UNITS_PER_LOOK, Ordering::Relaxed);
    }

    /// Counts work. `true`: the slice is over, or the task is to stop; call [`TimeSlice::give_way`] before
    /// going on.
    #[inline]
    #[must_use]
    pub fn spend(&self, units: u32) -> bool {
        let spent = self.units.load(Ordering::Relaxed).saturating_add(units);
        self.units.store(spent, Ordering::Relaxed);
        spent >= self.look_at.load(Ordering::Relaxed) && self.look(spent)
    }

    #[cold]
    fn look(&self, spent: u32) -> bool {
        self.look_at.store(spent.saturating_add(UNITS_PER_LOOK), Ordering::Relaxed);
        if self.is_stopped() {
            return true;
        }
        match self.units_max.load(Ordering::Relaxed) {
            0 => {}
            units_max => return spent >= units_max,
        }
        let now = self.environment.now().as_nanos() as u64;
        let began = self.began_nanos.load(Ordering::Relaxed);
        if began == UNREAD {
            self.began_nanos.store(now, Ordering::Relaxed);
            return false;
        }
        now.saturating_sub(began) >= SLICE.as_nanos() as u64
    }

    /// Counts heavy work that is about to be done and cannot stop in the middle: the clock starts with it,
    /// and the next
    /// [`spend`](TimeSlice::spend) sees that the slice is over.
    pub fn announce(&self, units: u32) {
        let spent = self.units.load(Ordering::Relaxed).saturating_add(units);
        self.units.store(spent, Ordering::Relaxed);
        if self.began_nanos.load(Ordering::Relaxed) == UNREAD {
            self.began_nanos.store(self.environment.now().as_nanos() as u64, Ordering::Relaxed);
        }
    }

    /// Lets other tasks run; a new slice begins.
    ///
    /// # Errors
    /// [`Error::Killed`] when the task is to stop.
    pub async fn give_way(&self) -> Result<(), Error> {
        yield_now().await;
        self.begin();
        if self.is_stopped() { Err(Error::Killed) } else { Ok(()) }
    }

    /// Counts work and gives way when the slice is over.
    ///
    /// # Errors
    /// [`Error::Killed`] when the task is to stop.
    #[inline]
    pub async fn work(&self, units: u32) -> Result<(), Error> {
        if self.spend(units) { self.give_way().await } else { Ok(()) }
    }

    /// Orders the task to stop: its loops end with [`Error::Killed`].
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
    }

    /// Forgets such an order (the next statement).
    pub fn forget_stop(&self) {
        self.stopped.store(false, Ordering::SeqCst);
    }

    /// Whether the task is to stop.
    #[inline]
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// Lets slices end by units instead of the clock, so that a test can count them; 0: by the clock again.
    pub fn measure_in_units(&self, units_max: u32) {
        self.units_max.store(units_max, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use disk::SimulatedEnvironment;

    #[test]
    fn a_slice_is_over_when_its_time_is_however_many_loops_share_it() {
        let environment = SimulatedEnvironment::new(1);
        let slice = TimeSlice::new(environment.clone());
        slice.begin();
        let mut units = 0;
        // Each unit takes 10 microseconds: the first look starts the clock, so the slice may be longer by
        // that much.
        while !slice.spend(1) {
            units += 1;
            environment.advance(Duration::from_micros(10));
        }
        let due = SLICE.as_micros() as u32 / 10;
        assert!((due..=due + 2 * UNITS_PER_LOOK).contains(&units), "{units} units");
        slice.begin();
        assert!(!slice.spend(1), "a poll begins a slice");
    }

    #[test]
    fn heavy_work_ends_the_slice_with_the_unit_it_is_part_of() {
        let environment = SimulatedEnvironment::new(1);
        let slice = TimeSlice::new(environment.clone());
        slice.begin();
        slice.announce(UNITS_PER_LOOK);
        environment.advance(SLICE);
        assert!(slice.spend(1));
        slice.begin();
        slice.announce(UNITS_PER_LOOK);
        assert!(!slice.spend(1), "it took no time");
    }

    #[test]
    fn work_gives_way_once_a_slice_and_ends_at_a_stop() {
        let slice = TimeSlice::new(SimulatedEnvironment::new(1));
        slice.measure_in_units(64);
        let done = Cell::new(0);
        let mut work = pin!(async {
            for _ in 0..1000 {
                slice.work(1).await?;
                done.set(done.get() + 1);
            }
            Ok::<(), Error>(())
        });
        let mut context = Context::from_waker(Waker::noop());
        let mut polls = 0;
        loop {
            slice.begin();
            polls += 1;
            if polls == 5 {
                slice.stop();
            }
            match work.as_mut().poll(&mut context) {
                Poll::Pending => assert!(polls < 5, "the stop was seen in the slice it came in"),
                Poll::Ready(result) => {
                    assert!(matches!(result, Err(Error::Killed)));
                    break;
                }
            }
        }
        assert_eq!(polls, 5);
        assert_eq!(done.get(), 4 * 64 - 1, "a slice is 64 units");
    }
}
