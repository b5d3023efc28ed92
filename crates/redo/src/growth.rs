//! How the circle grows: a new log is small, and becomes as large as the age of the checkpoint asks for.
//!
//! ```text
//!   front   start of the lap                                              end of the lap
//!   ├───────┼──────────┬───────────────────────┬────────────────────────────┼──────────────┄
//!           │          kept from               end of the log               │  added
//! ```
//!
//! Behind the end of the circle the log either goes on at its front, or the circle becomes twice as large and
//! the log goes on where it is. The second is possible as long as everything that is still needed lies in one
//! lap: then the same bytes mean the same in the larger circle, whose first lap begins where this one did
//! ([`Layout::grown`]). So while the circle may still grow, no promise goes beyond the end of the lap
//! ([`State::file_limit`]), until one of the two is decided. That is done early, so that writers need not
//! wait: from the middle of the lap on the circle grows if more than a quarter of it is needed, and shortly
//! before its end the log is let round if less is. A log whose checkpoint keeps up stays small for ever.
//!
//! **Steps of growing.** The file is made longer, with zeros (a commit then overwrites blocks that the file
//! system has allocated, and its sync has no metadata to write), and synced. From then on checkpoint blocks
//! describe the larger circle. Two of them are written, and only then does the log go beyond the old end. A
//! crash before the first leaves the old circle, with a file that is too long, which the next opening cuts.
//! Two, because damage to one block must not lead back to a circle in which the end of the log is not found.
//!
//! **A full disk.** The log is let round in the circle there is, and growing is tried again with the next lap
//! or when somebody waits for room.
//!
//! **Gone round.** Until the checkpoint has followed to the new lap the circle cannot grow. If more than half
//! of it is in use, or somebody waits, the cleaner is asked for that; it judges by the size that the log may
//! have, and would see no hurry.

use crate::Lsn;
use crate::layout::Layout;
use crate::log::{Phase, RedoLog, State, sizes};
use disk::{AlignedBuf, Event, IoBuf, write_async};
use std::sync::{Arc, Weak};

/// Written at once.
const ZEROS: usize = 1 << 20;
/// How long a full file system is left alone before the file is made longer again.
const FULL_RETRY: std::time::Duration = std::time::Duration::from_secs(1);

/// What the place of the log in its circle asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Due {
    Grow,
    GoRound,
    /// The checkpoint has to come into the lap in which the log ends.
    Checkpoint,
}

impl State {
    /// Whether the circle may become larger.
    fn may_grow(&self) -> bool {
        self.layout.area < self.area_max
    }

    /// The lap in which what is needed begins ends here.
    fn lap_end(&self) -> Lsn {
        let laps = self.kept_from().since(self.layout.origin) / self.layout.area;
        self.layout.origin.plus((laps + 1) * self.layout.area)
    }

    /// Whether the log has been let round, and not all that is needed has followed.
    pub(crate) fn goes_round(&self) -> bool {
        self.may_grow() && self.round_at == Some(self.lap_end())
    }

    /// Where the log must not go beyond before it is decided how.
    pub(crate) fn turn(&self) -> Option<Lsn> {
        let lap = (self.may_grow() && !self.goes_round()).then(|| self.lap_end());
        lap.into_iter().chain(self.growing_from).min()
    }

    /// Lets the log round where it has gone round already, at an opening.
    pub(crate) fn settle_lap(&mut self, end: Lsn) {
        let lap_end = self.lap_end();
        self.round_at = (end > lap_end).then_some(lap_end);
    }

    fn due(&self, wanted: bool) -> Option<Due> {
        if !self.may_grow() || self.phase != Phase::Ready {
            return None;
        }
        let (area, end) = (self.layout.area, self.groups.start);
        let age = end.since(self.kept_from());
        if self.goes_round() {
            return (wanted || age > area / 2).then_some(Due::Checkpoint);
        }
        let left = self.lap_end().0.saturating_sub(end.0);
        let is_small = age <= area / 4 && self.archived.is_none();
        match () {
            () if left <= area / 8 || wanted => Some(if is_small { Due::GoRound } else { Due::Grow }),
            () if left <= area / 2 && age > area / 4 => Some(Due::Grow),
            () => None,
        }
    }

    /// The event to set when there is something to do.
    pub(crate) fn growth_if_due(&self, wanted: bool) -> Option<Event> {
        self.due(wanted).and(self.grow_wanted.clone())
    }
}

impl RedoLog {
    pub(crate) fn start_growing(&self) {
        let wanted = {
            let mut state = self.state.lock();
            state.grow_wanted = state.may_grow().then(Event::already_set);
            state.grow_wanted.is_some()
        };
        if wanted {
            self.env.spawn("redo log growth", Box::pin(grow_when_due(self.me.clone())));
        }
    }

    /// Does what is due. `None` when there will be nothing more to do.
    async fn growth_step(&self) -> Option<()> {
        let due = {
            let mut state = self.state.lock();
            let mut due = state.due(self.ends.ledger.is_file_wanted());
            // What is asked for must fit the circle with what is needed besides.
            if due == Some(Due::GoRound) && self.space_short() > state.layout.area / 4 {
                due = Some(Due::Grow);
            }
            if due == Some(Due::GoRound) {
                self.let_round(&mut state);
            }
            due
        };
        match due {
            Some(Due::Grow) => self.grow().await?,
            Some(Due::Checkpoint) => self.ask_for_checkpoint().await?,
            Some(Due::GoRound) | None => {}
        }
        let state = self.state.lock();
        (state.may_grow() && state.phase == Phase::Ready).then_some(())
    }

    fn let_round(&self, state: &mut State) {
        state.round_at = Some(state.lap_end());
        self.ends.ledger.set_file_limit(state.file_limit().0);
    }

    async fn grow(&self) -> Option<()> {
        let (from, to) = {
            let state = self.state.lock();
            (state.layout.file_size(), state.layout.grown(state.lap_end(), state.area_max).file_size())
        };
        if let Err(error) = self.lengthen(from, to).await {
            if !is_full(&error) {
                self.stop(&error.to_string());
                return None;
            }
            {
                let mut state = self.state.lock();
                if !std::mem::replace(&mut state.growth_refused, true) {
                    tracing::error!(%error, "the redo log file cannot grow; changes may have to wait for checkpoints");
                }
                self.let_round(&mut state);
            }
            self.env.sleep(FULL_RETRY).await;
            return self.poisoned().is_none().then_some(());
        }
        // By itself, because a sync of this file that fails is the log's end whatever the reason: it may have
        // been told of the loss of a commit.
        if let Err(error) = disk::sync_async(&**self.env.storage(), &self.file).await {
            self.stop(&error.to_string());
            return None;
        }
        {
            let mut state = self.state.lock();
            let lap_end = state.lap_end();
            state.growth_refused = false;
            state.growing_from = Some(lap_end);
            state.layout = state.layout.grown(lap_end, state.area_max);
            let sizes = sizes(&state.layout, &self.options);
            state.groups.resize(sizes);
        }
        for _ in 0..2 {
            self.write_mark().await?;
        }
        let mut state = self.state.lock();
        state.growing_from = None;
        self.ends.ledger.set_file_limit(state.file_limit().0);
        Some(())
    }

    /// Writes zeros behind the circle.
    async fn lengthen(&self, from: u64, to: u64) -> disk::Result<()> {
        let zeros = Arc::new(AlignedBuf::zeroed(ZEROS.min((to - from) as usize)));
        let mut at = from;
        while at < to {
            let bytes = (to - at).min(zeros.len() as u64);
            let buf = IoBuf::Shared(zeros.clone(), 0..bytes as usize);
            write_async(&**self.env.storage(), &self.file, buf, at, false).await?;
            at += bytes;
        }
        Ok(())
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
            let end = state.groups.start;
            if end <= state.lap_end() {
                self.let_round_no_more(&mut state);
                return Some(());
            }
            (state.block.checkpoint >= state.last_end).then_some(end)
        };
        match all_done {
            Some(end) => self.set_checkpoint(end).await.ok(),
            None => {
                // However large the log may become, in this circle the checkpoint has to move.
                self.want_space(self.capacity());
                Some(())
            }
        }
    }

    /// The log has been let round but is still in its lap, and somebody waits for more room than the circle
    /// has: as long as nobody has been promised any, it can grow after all.
    fn let_round_no_more(&self, state: &mut State) {
        let ledger = &self.ends.ledger;
        if ledger.take_all(self.current().0) {
            state.round_at = None;
            state.growing_from = None;
            ledger.set_file_limit(state.file_limit().0);
            ledger.give_back_all();
            if let Some(wanted) = &state.grow_wanted {
                wanted.set();
            }
        }
    }
}

impl Layout {
    /// The larger circle, in which what lies in the lap that ends at `lap_end` is where it was.
    fn grown(&self, lap_end: Lsn, area_max: u64) -> Layout {
        let origin = Lsn(lap_end.0 - self.area);
        Layout { area: area_max.min(2 * self.area), origin, ..*self }
    }
}

fn is_full(error: &disk::Error) -> bool {
    use std::io::ErrorKind::{QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded)
}

/// The task: waits until something is due, and does it.
async fn grow_when_due(log: Weak<RedoLog>) {
    let _guard = crate::open::stop_on_panic(&log, "its growth");
    loop {
        // Only the event is held while waiting, so that the log can be dropped.
        let Some(wanted) = log.upgrade().and_then(|log| log.state.lock().grow_wanted.clone()) else {
            return;
        };
        wanted.wait().await;
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
