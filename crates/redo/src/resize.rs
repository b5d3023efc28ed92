//! Another capacity while the log works.
//!
//! **Larger** takes effect at once: the circle may become larger, and does when that is needed
//! ([`crate::growth`]).
//!
//! **Smaller** takes three steps, each of them in the background and none in anybody's way:
//!
//! 1. *The capacity walks down.* [`RedoLog::capacity`], for which the cleaner steers, does not fall to the
//!    new value at once, because all pages that are older than that would have to be written as fast as the
//!    disk can. It stays a little above the age, and follows it down, for which pages are written as ever,
//!    only sooner. Admissions see it as a limit of the age (`admission.rs`).
//! 2. *A place is aimed at.* The log is to pass from the end of the smaller circle to the front, so what is
//!    needed has to lie before that end: in the lap in which the log is, if it is not past that place, or in
//!    the next one. So no promise is given beyond the place. Nobody has to wait for that: the age is less
//!    than the smaller circle by then, so the checkpoint is in the lap before the log is at the place.
//! 3. *The circle is cut* when all that is needed lies in that lap. The same bytes mean the same in the
//!    smaller circle, whose first lap begins where this one did, and nothing is rewritten.
//!
//! ```text
//!   front   kept from    end of the log    aimed at                              end of the lap
//!   ├──────────┼────────────────┼─────────────┼──────────────────────────────────────┤
//!   │                          smaller circle │  cut off
//! ```
//!
//! Or nothing is needed, because the checkpoint is at the end of the log: then a smaller circle may begin
//! anywhere, and begins there, at its front. A log with little to do gets there first; the other one comes
//! round.
//!
//! Cutting is growing in reverse, and as safe. First two checkpoint blocks describe the smaller circle, and
//! until both are durable the log does not go where the two circles differ, which is beyond the place, or
//! anywhere if nothing is needed. Two, because damage to one block must not lead back to a circle in which
//! the end of the log is not found. Only then is the file made shorter. A crash before the first block leaves
//! the larger circle, which the next start cuts in the same way; one after it leaves a file that is longer
//! than its circle, which the next start cuts at once. What is left of the former circle in the smaller one
//! is at other places than its LSNs say, or before what is needed.
//!
//! **The reach** of the blocks becomes smaller, too ([`crate::layout::Layout::reach`]). A new block never
//! promises that the log ends before what has been admitted: [`State::reach_of_next`].
//!
//! **Somebody thinks better of it**: another capacity may be set at any moment. A place that was aimed at is
//! forgotten. Where a circle that was as large as it might be may grow again, promises may have been given
//! beyond the end of its lap; then it is let round once.
//!
//! **After a crash** the log may be larger than the setting says. Recovery needs its room, so nothing begins
//! before the checkpoint has passed what was found.
//!
//! **An archive** holds the log as it is: nothing is aimed at or cut meanwhile.

use crate::growth::GrowthOver;
use crate::layout::{CAPACITY_FLOOR, CHECKPOINT_BLOCK, Layout};
use crate::log::{Phase, RedoLog, State, sizes};
use crate::{Error, Lsn, Options, Result};
use disk::Event;
use std::sync::atomic::Ordering;

/// The walk takes at least this many steps.
const STEPS: u64 = 300;
/// From then on it goes as fast as pages can be written.
const PATIENCE: u32 = 3000;

/// What has become of a change of the capacity.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Resize {
    /// Bytes that were asked for last.
    pub wanted: u64,
    /// Bytes that hold: as many, or more while the log is becoming smaller.
    pub reached: u64,
    /// How often the circle has become smaller since the start.
    pub cuts: u64,
}

impl Resize {
    /// Whether the log is still becoming smaller.
    pub fn is_under_way(&self) -> bool {
        self.wanted < self.reached
    }
}

/// The capacity on its way down.
#[derive(Clone, Copy)]
pub(crate) struct Walk {
    /// What is usable now, in bytes.
    pub usable: u64,
    step: u64,
    steps: u32,
}

impl State {
    /// The circle of the capacity that is wanted.
    pub(crate) fn area_wanted(&self) -> u64 {
        Layout::area_of(self.capacity)
    }

    /// Whether the circle has to become smaller.
    pub(crate) fn is_too_large(&self) -> bool {
        self.layout.area > self.area_wanted()
    }

    /// Whether the checkpoint has not passed what was found at the start.
    fn recovers(&self) -> bool {
        self.block.checkpoint < self.epoch_start
    }

    /// Whether the capacity that is wanted has not been reached.
    pub(crate) fn is_resizing(&self) -> bool {
        self.walk.is_some() || self.is_too_large()
    }

    /// What the capacity walks down to. As long as the circle is too large an eighth less, so that the
    /// checkpoint is in the lap well before the log is at the place aimed at.
    fn usable_wanted(&self) -> u64 {
        let usable = Layout { area: self.area_wanted(), ..self.layout }.usable();
        if self.is_too_large() { usable / 8 * 7 } else { usable }
    }

    /// The reach of the next block: at least up to where anything has been promised, or will be before that
    /// block is in force. That is bounded by the one that is, whatever else becomes of the limits meanwhile.
    pub(crate) fn reach_of_next(&self, options: &Options, flushed: Lsn, promised: u64) -> u64 {
        let reach = self.layout.reach(&Options { capacity: self.capacity, ..options.clone() });
        let whole_circle = self.block.scan_start.plus(self.block.layout.area);
        let promised = self.reach_limit().unwrap_or(whole_circle).0.max(promised);
        let promised = promised.saturating_sub(flushed.0);
        let promised = promised.min(self.layout.area);
        // As in `reach_limit`.
        let covers = |reach: u64| (reach - reach / 32).saturating_sub(4 * self.layout.block) >= promised;
        if reach == 0 || covers(reach) {
            return reach;
        }
        let mut longer = promised / 31 * 32 / CHECKPOINT_BLOCK as u64 * CHECKPOINT_BLOCK as u64;
        while !covers(longer) {
            longer += CHECKPOINT_BLOCK as u64;
        }
        longer.max(reach).min(self.layout.area)
    }

    /// Where the log passes to the front of the smaller circle: in the lap in which it ends, or in the next
    /// one if it is past that place, or has promised to go there.
    fn places_to_aim_at(&self, end: Lsn) -> [Lsn; 2] {
        let laps = end.since(self.layout.origin) / self.layout.area;
        let place = self.layout.origin.plus(laps * self.layout.area + self.area_wanted());
        [place, place.plus(self.layout.area)]
    }

    /// Whether all that is needed lies in the lap in which the circle is to be cut.
    pub(crate) fn can_be_cut(&self) -> bool {
        let aimed_at = self.aimed_at.filter(|_| self.is_too_large() && self.archived.is_none());
        aimed_at.is_some_and(|place| self.kept_from().plus(self.area_wanted()) >= place)
    }
}

impl RedoLog {
    /// Changes the capacity, in bytes (as [`Options::capacity`]), in the background; [`RedoLog::resize`] says
    /// how far it has come. May be called again at any time.
    ///
    /// # Errors
    /// When that is too little, or the log has stopped.
    pub fn set_capacity(&self, bytes: u64) -> Result<()> {
        if bytes < CAPACITY_FLOOR {
            return Err(Error::Setting(format!(
                "innodb_redo_log_capacity is {bytes}; the redo log needs at least {CAPACITY_FLOOR} bytes"
            )));
        }
        let before = self.state.lock().capacity;
        if before != bytes && self.poisoned().is_none() {
            tracing::info!("the capacity of the redo log changes from {before} to {bytes} bytes");
        }
        self.change_capacity(|_| bytes)
    }

    /// Changes it to so many bytes if that is more, without a word in the log: the caller says why.
    ///
    /// # Errors
    /// When the log has stopped.
    pub fn raise_capacity(&self, bytes: u64) -> Result<()> {
        self.change_capacity(|now| now.max(bytes))
    }

    fn change_capacity(&self, to: impl FnOnce(u64) -> u64) -> Result<()> {
        if let Some(error) = self.poisoned() {
            return Err(error);
        }
        let wake = {
            let mut state = self.state.lock();
            let bytes = to(state.capacity);
            if state.capacity == bytes {
                return Ok(());
            }
            state.capacity = bytes;
            self.fit_capacity(&mut state);
            state.growth_hurry.set();
            state.grow_wanted.clone()
        };
        if let Some(wake) = wake {
            wake.set();
        }
        // Who asks for more than it ever can have now is told so.
        self.ends.ledger.wake_all();
        Ok(())
    }

    /// How far the last change of the capacity has come.
    pub fn resize(&self) -> Resize {
        let state = self.state.lock();
        let reached = if state.is_resizing() {
            let walking = state.walk.map_or(0, |walk| state.layout.file_size_for(walk.usable));
            state.layout.file_size().max(walking).max(state.capacity + 1)
        } else {
            state.capacity
        };
        Resize { wanted: state.capacity, reached, cuts: state.cuts }
    }

    /// Takes the capacity that is wanted into account.
    pub(crate) fn fit_capacity(&self, state: &mut State) {
        let could_grow = state.layout.area < state.area_max;
        let largest = state.layout.area.max(if state.recovers() { state.area_found } else { 0 });
        state.area_max = state.area_wanted().max(largest);
        state.aimed_at = None;
        let wanted = state.usable_wanted();
        let now = self.capacity().min(Layout { area: state.area_max, ..state.layout }.usable());
        // At once as far as nothing is in the way.
        let in_the_way = if state.recovers() { u64::MAX } else { above(self.age()) };
        let begin = now.min(in_the_way).max(wanted);
        let walk = Walk { usable: begin, step: ((begin - wanted) / STEPS).max(1), steps: 0 };
        state.walk = (begin > wanted || state.is_too_large()).then_some(walk);
        self.set_usable(state);
        if state.phase == Phase::Ready && !could_grow && state.layout.area < state.area_max {
            self.may_grow_again(state);
        }
        if state.phase == Phase::Ready {
            self.publish_limits(state);
        }
    }

    /// What is usable now.
    fn set_usable(&self, state: &State) {
        let full = Layout { area: state.area_wanted(), ..state.layout }.usable();
        self.usable.store(state.walk.map_or(full, |walk| walk.usable), Ordering::Relaxed);
        self.usable_wanted.store(full, Ordering::Relaxed);
    }

    /// A circle that was as large as it might be may grow. From here on the log must not pass the end of its
    /// lap before that is decided, unless it has promised to.
    fn may_grow_again(&self, state: &mut State) {
        state.wrap_at = None;
        let lap_end = state.lap_end();
        let is_in_lap = self.current().max(state.groups.start) <= lap_end;
        if !is_in_lap || !self.ends.ledger.lower_file_limit(state.file_limit().0) {
            state.wrap_at = Some(lap_end);
        }
    }

    /// One step of a change of the capacity.
    pub(crate) fn resize_step(&self, state: &mut State) {
        if state.phase != Phase::Ready || state.recovers() {
            return;
        }
        if std::mem::take(&mut state.area_found) > state.area_wanted() {
            self.fit_capacity(state);
        }
        if !state.is_resizing() {
            return;
        }
        let (wanted, age) = (state.usable_wanted(), self.age());
        if let Some(mut walk) = state.walk {
            walk.steps += 1;
            let follow = if walk.steps < PATIENCE { above(age) } else { age / 32 * 33 };
            let next = walk.usable.saturating_sub(walk.step).max(follow).min(walk.usable);
            walk.usable = next.max(wanted);
            let over = walk.usable == wanted && !state.is_too_large();
            state.walk = (!over).then_some(walk);
            self.set_usable(state);
        }
        let arrived = state.walk.is_none_or(|walk| walk.usable == wanted) && age <= wanted;
        if arrived && state.is_too_large() && state.aimed_at.is_none() && state.archived.is_none() {
            for place in state.places_to_aim_at(self.current().max(state.groups.start)) {
                state.aimed_at = Some(place);
                if self.ends.ledger.lower_file_limit(state.file_limit().0) {
                    break;
                }
                state.aimed_at = None;
            }
        }
        self.publish_limits(state);
    }

    /// Makes the circle smaller, if it can be now.
    pub(crate) async fn cut(&self) -> Option<()> {
        let _over = {
            let mut state = self.state.lock();
            if state.phase != Phase::Ready || !(self.take_cut(&mut state) || self.take_empty(&mut state)) {
                return Some(());
            }
            let sizes = sizes(&state.layout, &self.options);
            state.groups.resize(sizes);
            (state.wrap_at, state.aimed_at) = (None, None);
            self.fit_capacity(&mut state);
            let over = Event::new();
            state.growing = Some(over.clone());
            GrowthOver { log: self, over }
        };
        self.new_circle_in_force().await?;
        let (length, capacity) = {
            let mut state = self.state.lock();
            state.cuts += 1;
            (state.layout.file_size(), state.capacity)
        };
        self.cut_back(length);
        tracing::info!(
            "the redo log {} has become smaller: {length} of at most {capacity} bytes",
            self.file.path().display()
        );
        Some(())
    }

    /// The smaller circle begins where the lap does.
    fn take_cut(&self, state: &mut State) -> bool {
        let Some(place) = state.aimed_at.filter(|_| state.can_be_cut()) else { return false };
        let area = state.area_wanted();
        if self.current().max(state.groups.start) > place {
            return false;
        }
        state.layout = Layout { area, origin: Lsn(place.0 - area), ..state.layout };
        state.growing_from = Some(place);
        true
    }

    /// Nothing is needed: the smaller circle begins where the log ends.
    fn take_empty(&self, state: &mut State) -> bool {
        let end = state.groups.start;
        let is_empty = state.is_too_large()
            && state.archived.is_none()
            && state.in_flight.is_none()
            && state.checkpoint_over.is_none()
            && state.groups.is_empty()
            && state.block.scan_start == end
            && self.flushed() == end
            && self.current() == end;
        if !is_empty || !self.ends.ledger.take_all(end.0) {
            return false;
        }
        let origin = Lsn(end.0 / CHECKPOINT_BLOCK as u64 * CHECKPOINT_BLOCK as u64);
        state.layout = Layout { area: state.area_wanted(), origin, ..state.layout };
        state.growing_from = Some(end);
        // Before anybody else is promised anything.
        self.publish_limits(state);
        self.ends.ledger.give_back_all();
        true
    }

    /// Whether all is in the data files, and the checkpoint block only has to say that the log is empty.
    pub(crate) fn empties(&self, state: &State) -> Option<Lsn> {
        let end = state.groups.start;
        let is_done = state.is_too_large()
            && state.archived.is_none()
            && state.groups.is_empty()
            && state.block.checkpoint >= state.last_end
            && self.flushed() == end;
        is_done.then_some(end)
    }
}

/// So much capacity leaves the cleaner calm at this age: it hurries from 15/16 on.
fn above(age: u64) -> u64 {
    age / 14 * 15 + 1
}
