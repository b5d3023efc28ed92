//! How the circle grows: a new log is small, and becomes as large as the age of the checkpoint asks for.
//!
//! ```text
//!   front   start of the lap                                              end of the lap
//!   ├───────┼──────────┬───────────────────────┬────────────────────────────┼──────────────┄
//!           │          kept from               end of the log               │  added
//! ```
//!
//! Behind the end of the circle the log either goes on at its front, or the circle becomes larger and the log
//! goes on where it is. The second is possible as long as everything that is still needed lies in one
//! lap: then the same bytes mean the same in the larger circle, whose first lap begins where this one did.
//! So while the circle may still grow, no promise goes beyond the end of the lap
//! ([`State::file_limit`]), until one of the two is decided. That is done early, so that writers need not
//! wait: from the middle of the lap on the circle grows if more than a quarter of it is needed, and shortly
//! before its end the log wraps around if less is. A log whose checkpoint keeps up never grows.
//!
//! **Nobody waits for it.** The zeros that make the file longer are begun early enough for the rate at which
//! the log grows and the rate at which the device took zeros the last time ([`crate::rates`]), three times
//! over. (Where a large transaction has the log written in large pieces, they are only reserved, see
//! [`RedoLog::allocate_for_large_groups`].) They are written in small pieces, with rests between them: in
//! half of the time that the log takes to the end of its lap. If the log comes near the end before they are
//! all written, what has been written is taken into use, and the rest follows; and if that is next to nothing
//! and half of the circle is free, the log goes round after all, and the zeros wait behind the circle until
//! it grows in a later lap.
//!
//! A small circle becomes twice as large at a time, so that a log that is to be large is so soon. A large one
//! grows by half, and later in its lap: what is added is written once for nothing, and of a log that ends in
//! the middle of its last lap that is more than all it has.
//!
//! **Steps of growing.** The file is made longer, with zeros (a commit then overwrites blocks that the file
//! system has allocated, and its sync has no metadata to write), and synced. From then on checkpoint blocks
//! describe the larger circle. Two of them are written, and only then does the log go beyond the old end. A
//! crash before the first leaves the old circle, with a file that is too long, which the next opening cuts.
//! Two, because damage to one block must not lead back to a circle in which the end of the log is not found.
//!
//! **A full disk**, or one that does not take the zeros for another reason. Nothing depends on the zeros yet:
//! they are truncated, since others need the room as well, and the log wraps within the file it has. For a
//! second growing is not tried again, and what would have asked for it lets the log wrap or asks for a
//! checkpoint. Then it is tried with the next lap, and at once if somebody waits for room. A sync that fails
//! stops the log: it may have been told of the loss of a commit.
//!
//! **Wrapped.** Until the checkpoint has followed to the new lap the circle cannot grow. The cleaner judges
//! by the size that the log may have, and would see no urgency; so it steers for less than half of the circle
//! ([`RedoLog::age_goal`]), and is asked to hurry where more than half is in use or somebody waits. No page
//! is flushed for log that only an archive still needs.
//!
//! **Closing** waits for a growth under way, which ends before its next step. The file is cut after that.

use crate::Lsn;
use crate::layout::{CHECKPOINT_BLOCK, FRONT, Layout};
use crate::log::{Phase, RedoLog, State, sizes};
use disk::{AlignedBuf, Event, IoBuf, TaskFuture, allocate_zeros_async, write_async};
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::Poll;
use std::time::Duration;

/// From this size on a circle grows by half. The first one is a little less than 1 MiB, and doubles.
const LARGE: u64 = 31 << 20;
/// Written at once: a commit or a read that comes meanwhile waits behind no more.
const ZEROS: usize = 256 << 10;
/// So much is written without rests: it is little.
const UNPACED: u64 = 1 << 20;
/// The longest rest: what is to be done may have become urgent.
const REST_MAX: Duration = Duration::from_millis(200);
/// The circle begins to grow when the log may be at the end of its lap in this multiple of the time that the
/// zeros take.
const EARLY: u64 = 3;
/// If so much time is left until the end of the lap, what has been written is taken into use.
const PRESSING: Duration = Duration::from_millis(250);
/// That much at least, or a 16th of the circle, so that there are not too many steps.
const PART: u64 = 8 << 20;
/// How long a disk that had no room is left alone before the file is made longer again.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// What the place of the log in its circle asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Due {
    Grow,
    Wrap,
    /// The checkpoint has to come into the lap in which the log ends.
    Checkpoint,
    /// The circle has to become smaller, and can.
    Cut,
}

impl State {
    /// Whether the circle may become larger.
    fn may_grow(&self) -> bool {
        self.layout.area < self.area_max
    }

    /// The lap in which what is needed begins ends here.
    pub(crate) fn lap_end(&self) -> Lsn {
        let laps = self.kept_from().since(self.layout.origin) / self.layout.area;
        self.layout.origin.plus((laps + 1) * self.layout.area)
    }

    /// Whether the log has been allowed to wrap, and not all that is needed has followed.
    pub(crate) fn is_wrapping(&self) -> bool {
        self.may_grow() && self.wrap_at == Some(self.lap_end())
    }

    /// Where the log must not go beyond before it is decided how.
    pub(crate) fn undecided_from(&self) -> Option<Lsn> {
        let lap = (self.may_grow() && !self.is_wrapping()).then(|| self.lap_end());
        lap.into_iter().chain(self.growing_from).chain(self.aimed_at).min()
    }

    /// Lets the log wrap where it has wrapped already, at an opening.
    pub(crate) fn settle_wrap(&mut self, end: Lsn) {
        let lap_end = self.lap_end();
        self.wrap_at = (end > lap_end).then_some(lap_end);
    }

    fn growth_pauses(&self, now: Duration) -> bool {
        self.grow_after.is_some_and(|after| now < after)
    }

    /// `waits`: somebody waits for room in the file; `short`: the most that one of them asks for.
    fn due(&self, waits: bool, short: u64, now: Duration) -> Option<Due> {
        if self.phase != Phase::Ready {
            return None;
        }
        if self.can_be_cut() {
            return Some(Due::Cut);
        }
        if !self.may_grow() {
            return None;
        }
        let (area, end, lap_end) = (self.layout.area, self.groups.start, self.lap_end());
        let age = end.since(self.kept_from());
        if self.is_wrapping() {
            let helps = self.block.scan_start < lap_end || end <= lap_end;
            return (helps && (waits || age > area / 2)).then_some(Due::Checkpoint);
        }
        let left = lap_end.since(end);
        let is_small = age <= area / 4 && self.archived.is_none();
        let (circle, wrap) = (self.circle_limit(), self.wrap_limit().unwrap_or(Lsn(u64::MAX)));
        // Where it is the reach that is used up, a mark gives room.
        let waits = waits && self.reach_limit().is_none_or(|reach| reach >= circle.min(wrap));
        let pauses = self.growth_pauses(now);
        let due = match () {
            // Letting it wrap would give them nothing.
            () if waits && circle < wrap => Due::Grow,
            () if left <= area / 8 || waits => {
                // What is asked for must fit the circle with what is needed besides.
                if is_small && short <= area / 4 { Due::Wrap } else { Due::Grow }
            }
            () if left <= self.growth_begins() && age > area / 4 && !pauses => Due::Grow,
            () => return None,
        };
        Some(if pauses { Due::Wrap } else { due })
    }

    /// What may be left of a lap when the circle begins to grow, so that nobody waits for it.
    fn growth_begins(&self) -> u64 {
        let area = self.layout.area;
        let least = if area < LARGE { area / 2 } else { area / 4 };
        let to = self.layout.grown(self.area_max);
        let zeros = (FRONT + to).saturating_sub(self.zeros_upto.max(FRONT + area));
        least.max(EARLY.saturating_mul(self.rates.log_while_zeros(zeros)))
    }

    /// The file has zeros up to `at` of `to`. What to do next; `waits`: somebody waits for room in the file,
    /// `short`: the most that one of them asks for.
    fn go_on_growing(&self, at: u64, to: u64, took: Duration, waits: bool, short: u64) -> GoOn {
        let (area, end, lap_end) = (self.layout.area, self.groups.start, self.lap_end());
        let done = at - self.layout.file_size();
        if at >= to {
            return GoOn::TakeIntoUse;
        }
        if to - self.layout.file_size() <= UNPACED {
            return GoOn::Write(Duration::ZERO);
        }
        let left = lap_end.since(end.min(lap_end));
        let pressing = waits || left <= self.rates.log_in(PRESSING);
        if !pressing {
            let rest = self.rates.rest_after(ZEROS as u64, took, to - at, left);
            return GoOn::Write(rest.min(REST_MAX));
        }
        let part = PART.min(area / 16).max(2 * short);
        let age = end.since(self.kept_from());
        match () {
            () if done >= part => GoOn::TakeIntoUse,
            () if age <= area / 2 && short <= area / 4 && self.archived.is_none() => GoOn::Wrap,
            () => GoOn::Write(Duration::ZERO),
        }
    }
}

/// What to do after a piece of zeros.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum GoOn {
    /// The next piece, after this rest.
    Write(Duration),
    /// The circle grows by what there is.
    TakeIntoUse,
    /// The log goes round in the circle there is.
    Wrap,
}

impl RedoLog {
    pub(crate) fn start_growing(&self) {
        self.state.lock().grow_wanted = Some(Event::already_set());
        self.env.spawn("redo log growth", Box::pin(grow_when_due(self.me.clone())));
    }

    /// The event to set when there is something to do.
    pub(crate) fn growth_if_due(&self, state: &State, waits: bool) -> Option<Event> {
        state.due(waits, self.space_short(), self.now_for(state)).and(state.grow_wanted.clone())
    }

    /// The time, for [`State::due`]: asked for where it matters. Every group write ends with a look.
    fn now_for(&self, state: &State) -> Duration {
        state.grow_after.map_or(Duration::ZERO, |_| self.env.now())
    }

    /// What to wait for before the next look, and how long at most: somebody may wait for a disk that is
    /// left alone, and a change of the capacity goes on by itself. `None` when the log is being closed.
    fn next_look(&self) -> Option<(Event, Option<TaskFuture>)> {
        let (wanted, after, resizes) = {
            let state = self.state.lock();
            (state.grow_wanted.clone()?, state.grow_after, state.is_resizing())
        };
        let pause = after.map(|after| after.saturating_sub(self.env.now())).filter(|pause| !pause.is_zero());
        let pause = pause.into_iter().chain(resizes.then_some(self.options.resize_step)).min();
        Some((wanted, pause.map(|pause| self.env.sleep(pause))))
    }

    /// Does what is due. `None` when there will be nothing more to do.
    async fn growth_step(&self) -> Option<()> {
        let (due, empties) = {
            let mut state = self.state.lock();
            self.resize_step(&mut state);
            let due = state.due(self.ends.ledger.is_file_wanted(), self.space_short(), self.env.now());
            if due == Some(Due::Wrap) {
                self.allow_wrap(&mut state);
            }
            (due, self.empties(&state))
        };
        self.cut_zeros();
        if let Some(end) = empties {
            self.move_checkpoint(end).await.ok()?;
            self.cut().await?;
        }
        match due {
            Some(Due::Cut) => self.cut().await?,
            Some(Due::Grow) => self.grow().await?,
            Some(Due::Checkpoint) => self.ask_for_checkpoint().await?,
            Some(Due::Wrap) | None => {}
        }
        (self.state.lock().phase == Phase::Ready).then_some(())
    }

    /// How far the cleaner should let the log run ahead of its checkpoint, where that is less than its
    /// capacity says: while it goes round in a circle that can become larger once the checkpoint has
    /// followed.
    pub fn age_goal(&self) -> Option<u64> {
        let state = self.state.lock();
        state.is_wrapping().then(|| state.layout.area / 32 * 15)
    }

    fn allow_wrap(&self, state: &mut State) {
        state.wrap_at = Some(state.lap_end());
        self.publish_limits(state);
    }

    async fn grow(&self) -> Option<()> {
        let (from, to, _over) = {
            let mut state = self.state.lock();
            if state.phase != Phase::Ready {
                return None;
            }
            let over = Event::new();
            state.growing = Some(over.clone());
            state.growth_hurry = Event::new();
            let from = state.layout.file_size();
            let to = FRONT + state.layout.grown(state.area_max);
            (from, to, GrowthOver { log: self, over })
        };
        if to <= from {
            // The capacity became smaller a moment ago.
            return self.goes_on().then_some(());
        }
        let upto = match self.lengthen(from, to).await {
            Ok(upto) => upto,
            Err(error) => {
                self.refuse_growth(from, &error);
                return self.poisoned().is_none().then_some(());
            }
        };
        let Some(upto) = upto else { return self.goes_on().then_some(()) };
        if self.goes_on() {
            // By itself, because a sync of this file that fails is the log's end whatever the reason: it may
            // have been told of the loss of a commit.
            if let Err(error) = disk::sync_async(&**self.env.storage(), &self.file).await {
                self.stop(&error.to_string());
                return None;
            }
        }
        if !self.enlarge(upto - FRONT) {
            self.cut_back(from);
            return self.goes_on().then_some(());
        }
        self.new_circle_in_force().await
    }

    /// Makes durable what the state says of the circle, and lets the log use it.
    pub(crate) async fn new_circle_in_force(&self) -> Option<()> {
        for _ in 0..2 {
            self.write_mark().await?;
        }
        let mut state = self.state.lock();
        state.growing_from = None;
        self.publish_limits(&state);
        Some(())
    }

    /// Whether there is still a log that may grow.
    fn goes_on(&self) -> bool {
        self.poisoned().is_none() && self.state.lock().phase == Phase::Ready
    }

    /// Takes the larger circle into use, whose bytes are durable. False when the log is being closed, is not
    /// to become so large any more, or has been allowed to wrap: while the zeros were synced the capacity may
    /// have been lowered, which lets writers past the end of the lap, and raised again.
    fn enlarge(&self, area: u64) -> bool {
        let grows_again = {
            let mut state = self.state.lock();
            let lap_end = state.lap_end();
            let may = state.may_grow() && !state.is_wrapping() && area > state.layout.area;
            if state.phase != Phase::Ready || !may || area > state.area_max {
                return false;
            }
            state.growing_from = Some(lap_end);
            // What lies in the lap that ends there is where it was.
            state.layout = Layout { area, origin: Lsn(lap_end.0 - state.layout.area), ..state.layout };
            let sizes = sizes(&state.layout, &self.options);
            state.groups.resize(sizes);
            state.grow_after.take().is_some()
        };
        if grows_again {
            tracing::info!("the redo log {} grows again", self.file.path().display());
        }
        true
    }

    fn refuse_growth(&self, from: u64, error: &disk::Error) {
        self.cut_back(from);
        let first = {
            let mut state = self.state.lock();
            let before = state.grow_after.replace(self.env.now() + RETRY_AFTER);
            self.allow_wrap(&mut state);
            before.is_none()
        };
        if first && self.poisoned().is_none() {
            tracing::error!("{}", cannot_grow(error));
        }
    }

    /// Zeros that wait behind the circle are cut off if the file may not have that many any more.
    fn cut_zeros(&self) {
        let (zeros, length, most) = {
            let state = self.state.lock();
            (state.zeros_upto, state.layout.file_size(), FRONT + state.area_max)
        };
        if zeros > most {
            self.cut_back(length);
        }
    }

    /// Gives back what was added past the circle. What stays is cut off by the next opening.
    pub(crate) fn cut_back(&self, from: u64) {
        self.state.lock().zeros_upto = 0;
        if self.poisoned().is_none()
            && let Err(error) = self.file.set_len(from)
        {
            tracing::debug!("{error}: the redo log file stays longer than its circle until the next start");
        }
    }

    /// Waits for a growth under way, which a log that is being closed soon ends.
    pub(crate) async fn growth_over(&self) {
        let growing = {
            let state = self.state.lock();
            state.growth_hurry.set();
            state.growing.clone()
        };
        if let Some(over) = growing {
            over.wait().await;
        }
    }

    /// Writes zeros past the circle. Returns up to where, a place where the circle may end; `None` when it is
    /// not to grow now.
    async fn lengthen(&self, from: u64, to: u64) -> disk::Result<Option<u64>> {
        let zeros = Arc::new(AlignedBuf::zeroed(ZEROS.min((to - from) as usize)));
        // Those of an earlier try are still there.
        let mut at = self.state.lock().zeros_upto.clamp(from, to);
        let mut took = Duration::ZERO;
        if self.allocate_for_large_groups(at, to).await? {
            return Ok(Some(to));
        }
        while self.goes_on() {
            let next = {
                let waits = self.ends.ledger.is_file_wanted();
                let mut state = self.state.lock();
                if to > FRONT + state.area_max {
                    // As far as it goes is nowhere: the capacity has become smaller.
                    drop(state);
                    self.cut_back(from);
                    return Ok(None);
                }
                let next = state.go_on_growing(at, to, took, waits, self.space_short());
                if next == GoOn::Wrap {
                    self.allow_wrap(&mut state);
                }
                next
            };
            match next {
                GoOn::TakeIntoUse => return Ok(Some(at)),
                GoOn::Wrap => return Ok(None),
                GoOn::Write(rest) if !rest.is_zero() => {
                    let hurry = self.state.lock().growth_hurry.clone();
                    wait_or_pause(hurry, Some(self.env.sleep(rest))).await;
                    // One piece is hurried, not all that follow.
                    let mut state = self.state.lock();
                    if state.growth_hurry.is_set() {
                        state.growth_hurry = Event::new();
                    }
                }
                GoOn::Write(_) => {}
            }
            let bytes = (to - at).min(zeros.len() as u64);
            let buf = IoBuf::Shared(zeros.clone(), 0..bytes as usize);
            let started = self.env.now();
            write_async(&**self.env.storage(), &self.file, buf, at, false).await?;
            took = self.env.now().saturating_sub(started);
            at += bytes;
            let mut state = self.state.lock();
            state.zeros_upto = at;
            state.rates.zeros_written(bytes, took);
        }
        Ok(Some(at))
    }

    /// Has the file system reserve the zeros where the log is written in large pieces: it is at the end of
    /// them soon, and each of its syncs is for so many bytes that metadata do not matter. False where zeros
    /// have to be written.
    async fn allocate_for_large_groups(&self, at: u64, to: u64) -> disk::Result<bool> {
        {
            let state = self.state.lock();
            let may = state.phase == Phase::Ready && to <= FRONT + state.area_max;
            if !may || at >= to || !state.rates.has_large_groups() {
                return Ok(false);
            }
        }
        let allocated = allocate_zeros_async(&**self.env.storage(), &self.file, at, to).await?;
        if allocated {
            self.state.lock().zeros_upto = to;
        }
        Ok(allocated)
    }

    /// Writes a checkpoint block that says nothing new but the layout; `None` when there is no more need.
    async fn write_mark(&self) -> Option<()> {
        loop {
            let (wait, written) = {
                let mut state = self.state.lock();
                if state.phase != Phase::Ready || self.poisoned().is_some() {
                    return None;
                }
                match &state.checkpoint_over {
                    Some(event) => (event.clone(), false),
                    None => {
                        let checkpoint = state.block.checkpoint;
                        let block = self.next_block(&mut state, checkpoint);
                        (self.write_block(state, block), true)
                    }
                }
            };
            wait.wait().await;
            if written {
                return self.poisoned().is_none().then_some(());
            }
        }
    }

    /// Asks the cleaner for a checkpoint in the lap in which the log ends. Where no page is in the way, the
    /// block only has to say so: what is between the last mini-transaction and the end is padding.
    async fn ask_for_checkpoint(&self) -> Option<()> {
        let all_done = {
            let mut state = self.state.lock();
            let (end, lap_end) = (state.groups.start, state.lap_end());
            // The open group must end in the lap as well.
            if self.current() <= lap_end && !state.growth_pauses(self.env.now()) {
                self.forbid_wrap(&mut state);
                return Some(());
            }
            let done = (state.block.checkpoint >= state.last_end).then_some(end);
            // Who waits goes on when the circle has room for it, or when it can grow.
            let waits = self.ends.ledger.is_file_wanted();
            let room = 2 * self.space_short() + state.layout.area / 16;
            let has_room = state.layout.usable().saturating_sub(room);
            let can_grow = end.since(lap_end.min(end));
            done.ok_or(if waits { has_room.max(can_grow) } else { state.layout.area / 2 })
        };
        match all_done {
            Ok(end) => self.move_checkpoint(end).await.ok(),
            Err(age) => {
                self.want_age(age);
                Some(())
            }
        }
    }

    /// The log has been allowed to wrap but is still in its lap, and somebody waits for more room than the
    /// circle has: as long as nobody has been promised any, it can grow after all.
    fn forbid_wrap(&self, state: &mut State) {
        let ledger = &self.ends.ledger;
        if ledger.take_all(self.current().0) {
            state.wrap_at = None;
            self.publish_limits(state);
            ledger.give_back_all();
            if let Some(wanted) = &state.grow_wanted {
                wanted.set();
            }
        }
    }
}

impl Layout {
    /// Bytes of the next larger circle.
    fn grown(&self, area_max: u64) -> u64 {
        let more = if self.area < LARGE { self.area } else { self.area / 2 };
        area_max.min(self.area + (more & !(CHECKPOINT_BLOCK as u64 - 1)))
    }
}

/// A growth under way; a close that waits for its end is told of it, also when it is dropped.
pub(crate) struct GrowthOver<'l> {
    pub(crate) log: &'l RedoLog,
    pub(crate) over: Event,
}

impl Drop for GrowthOver<'_> {
    fn drop(&mut self) {
        self.log.state.lock().growing = None;
        self.over.set();
    }
}

fn cannot_grow(error: &disk::Error) -> String {
    format!(
        "the redo log {} cannot grow ({}): until there is room, changes may have to wait for checkpoints; it grows by itself when there is room",
        error.path().display(),
        error.io()
    )
}

/// The task: waits until something is due, and does it.
async fn grow_when_due(log: Weak<RedoLog>) {
    let _guard = crate::background_sync::stop_on_panic(&log, "its growth");
    loop {
        // Only the event is held while waiting, so that the log can be dropped.
        let Some((wanted, pause)) = log.upgrade().and_then(|log| log.next_look()) else { return };
        wait_or_pause(wanted, pause).await;
        let Some(log) = log.upgrade() else { return };
        if log.poisoned().is_some() {
            return;
        }
        // A fresh event first: what becomes due during the step is seen.
        log.state.lock().grow_wanted = Some(Event::new());
        let more = log.growth_step().await;
        let mut state = log.state.lock();
        if more.is_none() {
            state.grow_wanted = None;
        }
    }
}

async fn wait_or_pause(event: Event, mut pause: Option<TaskFuture>) {
    let mut event = event.wait();
    poll_fn(move |context| {
        let is_over = pause.as_mut().is_some_and(|pause| pause.as_mut().poll(context).is_ready());
        if is_over { Poll::Ready(()) } else { Pin::new(&mut event).poll(context) }
    })
    .await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_reads_that_the_log_cannot_grow_learns_which_why_and_that_nothing_is_to_be_restarted() {
        let full = std::io::Error::from_raw_os_error(28);
        let text = cannot_grow(&disk::Error::at("write", "/data/#untorn_redo", 0, 4096, full));
        for part in ["/data/#untorn_redo", "No space left on device", "grows by itself when there is room"] {
            assert!(text.contains(part), "{text}");
        }
        assert!(!text.contains("start the database again"), "{text}");
    }
}
