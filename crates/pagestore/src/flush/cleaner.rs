//! The page cleaner: the task that decides when dirty pages are written and when the checkpoint moves. (A
//! sharp checkpoint and FOR EXPORT write [until nothing is left](crate::flush::until_clean).)
//!
//! It looks every 20 ms (50 when all is clean, 5 while someone waits, at once when frames or log space run
//! short). Each look feeds the extension, keeps a reserve of free frames for page misses (from the LRU tail
//! it evicts clean pages and starts writing dirty ones), writes the oldest changes, as many as the
//! [controller](crate::flush::adaptive_flushing) says, moves the checkpoint if that is due, and takes a
//! resize of the pool one step further. Batches run as tasks of their own; the cleaner never waits for one.
//! User tasks never write a page: they wait. With time to spare it writes more than it has to, so that a
//! restart is short.

use std::future::Future;
use std::pin::Pin;
use std::sync::Weak;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::Duration;

use disk::Event;
use redo::Lsn;

use crate::flush::adaptive_flushing::{Controller, Decision, Load, Room, Urgency, async_age};
use crate::flush::age_bounds::{AgeBounds, ReadsShown};
use crate::flush::batch::BATCHES_MAX;
use crate::flush::collect::Which;
use crate::flush::feeder;
use crate::flush::log_growth::{LogGrowth, Seen, Started};
use crate::flush::reason::WriteReason;
use crate::pool::frame::FrameRef;
use crate::pool::page_memory::FirstUses;
use crate::pool::resize::Resizer;
use crate::store::PageStore;

/// Time between looks when there is work.
const PERIOD: Duration = Duration::from_millis(20);
/// Time between looks while somebody waits.
const PERIOD_URGENT: Duration = Duration::from_millis(5);
/// Time between looks when everything is clean.
const PERIOD_CLEAN: Duration = Duration::from_millis(50);
/// Pages looked at for those who wait for a frame, at most.
const DEPTH_WANTED: usize = 16 << 10;
/// While pages are being written and an extension reads, clean ones are taken from so small a part of the old
/// ones: from the oldest.
const CLEAN_PART: usize = 16;
/// Batches under way beyond which paced work waits.
const BATCHES_PACED: usize = 3;

/// After a batch written ahead the device is left alone for this multiple of the time it took.
const AHEAD_REST: u32 = 3;
/// This multiple of it where those who wait for reads wait long.
const AHEAD_REST_SLOWLY: u32 = 8;
/// But no longer than this, however long the disk took for one.
const AHEAD_REST_MAX: Duration = Duration::from_secs(10);
/// What writing ahead is believed to manage before it was tried, in pages per second.
const AHEAD_RATE: f64 = 1000.0;

/// One that is under way.
struct StartedAhead {
    at: Duration,
    pages: usize,
    over: Vec<Event>,
}

/// Batches written although nobody needs them yet: one at a time, then a rest.
struct Ahead {
    /// The one under way.
    started: Option<StartedAhead>,
    /// Not before this.
    next: Duration,
    /// Pages per second, rests included.
    rate: f64,
}

impl Ahead {
    /// Looks whether the batch under way is over, whatever else is being written; true when it is by now.
    /// `slow`: whether those who wait for reads wait long.
    fn is_over_now(&mut self, now: Duration, slow: impl FnOnce() -> bool) -> bool {
        let Some(batch) = self.started.take_if(|batch| batch.over.iter().all(Event::is_set)) else {
            return false;
        };
        let took = now.saturating_sub(batch.at).max(Duration::from_millis(1));
        let times = if slow() { AHEAD_REST_SLOWLY } else { 1 };
        self.next = now + took.saturating_mul(times * AHEAD_REST).min(AHEAD_REST_MAX);
        let rate = batch.pages as f64 / took.saturating_mul(1 + AHEAD_REST).as_secs_f64();
        self.rate += (rate - self.rate) / 4.0;
        true
    }

    /// The rate, if the next one may start.
    fn may_start(&self, now: Duration, all_over: bool) -> Option<f64> {
        (all_over && self.started.is_none() && now >= self.next).then_some(self.rate)
    }
}

/// What the cleaner remembers between looks.
struct Cleaner {
    ahead: Ahead,
    controller: Controller,
    bounds: AgeBounds,
    reads: ReadsShown,
    growth: LogGrowth,
    started: Started,
    last_look: Duration,
    last_checkpoint: Duration,
    /// Frames taken per look: the recent maximum.
    demand: f64,
    first_uses: FirstUses,
    resizer: Resizer,
}

impl PageStore {
    pub(crate) fn start_cleaner(&self) {
        let cleaner = Cleaner {
            ahead: Ahead { started: None, next: Duration::ZERO, rate: AHEAD_RATE },
            controller: Controller::new(self.options.io_capacity_max),
            bounds: AgeBounds::default(),
            reads: ReadsShown::default(),
            growth: LogGrowth::default(),
            started: Started::default(),
            last_look: self.env.now(),
            last_checkpoint: self.env.now(),
            demand: 0.0,
            first_uses: FirstUses::default(),
            resizer: Resizer::default(),
        };
        self.env.spawn("page cleaner", Box::pin(run(self.weak(), cleaner)));
    }

    /// Makes the cleaner look now.
    pub(crate) fn wake_cleaner(&self) {
        self.cleaner_wanted.notify();
    }
}

/// The task. It holds the store only while it works, so that the store can be closed.
async fn run(store: Weak<PageStore>, mut cleaner: Cleaner) {
    // Without it no page is written any more: those who wait for a frame or for room in the log would wait
    // for ever.
    let _guard = disk::OnPanic::new({
        let store = store.clone();
        move || {
            if let Some(store) = store.upgrade() {
                const WHY: &str = "the page cleaner ended by a panic";
                store.poison(WHY);
                store.resizing.give_up(WHY);
            }
        }
    });
    loop {
        let (sleep, mut events) = {
            let Some(store) = store.upgrade() else { return };
            if store.stopping.load(Ordering::Acquire) {
                store.resizing.give_up("the store was closed");
                return;
            }
            // Before the look: what is wanted during it is seen, or wakes.
            let wanted = store.cleaner_wanted.event();
            let over = store.batch_over.event();
            let period = cleaner.look(&store);
            let mut events = vec![wanted];
            let space = store.redo.space_wanted();
            // Once set it stays set until the checkpoint has moved: then the period and the batches set the
            // pace.
            if space.is_set() || store.free.is_wanted() {
                events.push(over);
            }
            if !space.is_set() {
                events.push(space);
            }
            (store.env.sleep(period), events)
        };
        first_of(sleep, &mut events).await;
    }
}

/// Completes with the sleep or the first event, but not before the other tasks of this thread have had their
/// turn: the batches that were just started are among them, and nothing becomes free without them.
async fn first_of(mut sleep: disk::TaskFuture, events: &mut [Event]) {
    let mut waits: Vec<_> = events.iter().map(Event::wait).collect();
    let mut others_had_their_turn = false;
    std::future::poll_fn(move |context| {
        if !std::mem::replace(&mut others_had_their_turn, true) {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let done = waits.iter_mut().any(|wait| Pin::new(wait).poll(context).is_ready());
        if done || sleep.as_mut().poll(context).is_ready() { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

impl Cleaner {
    /// One look; returns the time to the next.
    fn look(&mut self, store: &PageStore) -> Duration {
        store.tick_clock();
        #[cfg(test)]
        assert!(!store.broken.cleaner.load(Ordering::Relaxed), "broken by a test");
        let now = store.env.now();
        let elapsed = now.saturating_sub(self.last_look);
        self.last_look = now;
        if store.poisoned().is_some() || store.recovering.load(Ordering::Acquire) {
            // Recovery needs free frames; the log is durable as far as it goes.
            match store.poisoned() {
                None => drop(self.refill(store)),
                Some(why) => store.resizing.give_up(&why),
            }
            return PERIOD;
        }
        self.reads.look(store, now);
        // First: what is evicted for the frames that are missing has been offered then.
        let fed = feeder::feed(store, self.demand);
        let refilled = self.refill(store) + fed.taken;
        let (decision, load) = self.flush_by_age(store, now, elapsed);
        store.move_checkpoint_if_due(&mut self.last_checkpoint, now, &load);
        let resizing = self.resizer.step(store);
        if store.free.waiting() > 0
            || fed.tier_busy
            || resizing
            || decision.urgency == Urgency::Sync
            || store.redo.space_wanted().is_set()
        {
            PERIOD_URGENT
        } else if load.dirty == 0 && refilled == 0 {
            PERIOD_CLEAN
        } else {
            PERIOD
        }
    }

    fn flush_by_age(&mut self, store: &PageStore, now: Duration, elapsed: Duration) -> (Decision, Load) {
        let lsn = store.redo.current().0;
        let (capacity, circle) = (store.redo.capacity(), store.redo.circle_bytes());
        let (batches, batch_pages) = (store.batches_under_way(), store.batch_pages());
        if self.ahead.is_over_now(now, || store.foreground_comes_first()) {
            store.foreground.ahead_is_over();
        }
        let ahead = self.ahead.may_start(now, batches.all() == 0);
        let room = Room {
            paced: batches.checkpoint_room(BATCHES_PACED, false) * batch_pages,
            urgent: batches.checkpoint_room(BATCHES_MAX, true) * batch_pages,
        };
        let room_wanted = store.redo.room_wanted();
        // Before the list is locked: the log's mutex comes first.
        let capacity_asked = store.redo.resize().wanted;
        let age_goal = store.redo.age_goal().unwrap_or(u64::MAX);
        let (load, seen) = {
            let mut list = store.flush_list.lock();
            let found = store.found_by_restart(&list);
            let allowed = self.bounds.look(store, &found, capacity);
            let (limit, bound) = (allowed.limit(capacity), allowed.bound(capacity));
            list.fit_ages(circle, limit);
            let (goal, goal_of_full) =
                (self.controller.goal(limit.min(age_goal)), self.controller.goal(limit));
            let oldest = list.oldest_unwritten().map_or(lsn, |oldest| oldest.0);
            store.age_aims.set(goal, limit);
            let target = store.recovery_target();
            let load = Load {
                elapsed,
                lsn,
                age: lsn.saturating_sub(oldest),
                room_wanted,
                capacity,
                limit,
                bound,
                pressure: list.ages().pressure(lsn, goal),
                overdue: list.ages().older_than(lsn, async_age(bound)),
                dirty: list.len(),
                hot: list.ages().hot(),
                dirty_max: allowed.dirty,
                restart: store.restart_time.estimate(&found).div_duration_f64(target),
                ahead,
                room,
            };
            let seen = Seen {
                now,
                lsn,
                age: load.age,
                goal: goal_of_full,
                capacity: capacity_asked,
                allowed: allowed.age,
                started: self.started,
                rewrites: list.rewrites(),
            };
            (load, seen)
        };
        self.bounds.tell(store, &load);
        self.controller.set_io_capacity_max(store.io_capacity_max());
        let decision = self.controller.decide(load);
        self.bounds.tell_of_cap(store, self.controller.is_passed_over(decision));
        if decision.urgency >= Urgency::Async || store.free.waiting() > 0 {
            store.hurry_batches();
        }
        let mut started = 0;
        // Too many are dirty: a longer log would not save these writes.
        let surplus = self.controller.is_mostly_surplus(&load);
        // Until somebody waits for room.
        let reads_first = load.room_wanted == 0 && store.reads_for_recovery_first();
        if decision.pages > 0 && !reads_first {
            let which = Which::OlderThan(Lsn(u64::MAX));
            let reason = WriteReason::of(decision.urgency, surplus);
            let collected = store.start_flush(which, decision.pages, reason, decision.spread);
            started = collected.pages;
            if decision.urgency == Urgency::Ahead && collected.pages > 0 {
                store.foreground.ahead_begins();
                let (pages, over) = (collected.pages, collected.over);
                self.ahead.started = Some(StartedAhead { at: now, pages, over });
            }
        }
        match decision.urgency {
            Urgency::Paced | Urgency::Async | Urgency::Sync if !surplus => {
                self.started.for_age += started as u64;
            }
            _ => self.started.otherwise += started as u64,
        }
        store.grow_log_if_it_pays(&mut self.growth, seen);
        self.controller.give_back(decision, decision.pages.saturating_sub(started));
        (decision, load)
    }

    /// Keeps frames free. Returns how many pages were evicted or are being written for that.
    fn refill(&mut self, store: &PageStore) -> usize {
        // Before the queue is looked at: those who enter it from here on call again.
        store.free.cleaner_looks();
        let missing = self.frames_missing(store);
        let mut done = 0;
        if missing > 0 {
            let mut victims = find_victims(store, missing);
            done = victims.clean.len();
            for frame in victims.clean {
                store.free.put(frame);
            }
            if !victims.dirty.is_empty() {
                store.add_neighbours(&mut victims.dirty);
                let started = store.start_batches(victims.dirty, WriteReason::Frames, Duration::ZERO).pages;
                self.controller.charge(started);
                self.started.otherwise += started as u64;
                done += started;
            }
        }
        // Some of those who were woken may have gone away since.
        store.free.wake(usize::MAX);
        let demand = self.demand as usize;
        let soon = self.first_uses.next(store.free.never_used(), demand, store.page_size.bytes());
        if !store.frames.back(soon) {
            self.first_uses.refused();
        }
        done
    }

    /// How many frames should become free now.
    fn frames_missing(&mut self, store: &PageStore) -> usize {
        self.demand = (store.free.take_count() as f64).max(self.demand * 0.9);
        let (frames, reserve) = (store.frame_count(), store.free.reserve());
        let least = (frames / 256).max(reserve + 4);
        let target = ((2.0 * self.demand) as usize).min(frames / 8).max(least);
        let waiting = store.free.waiting();
        // Two full batches, so that the device has one to do when the other is over.
        let batches = (2 * store.batch_pages()).min(frames / 8);
        let for_waiting = if waiting > 0 { (reserve + waiting.max(batches)).min(frames / 4) } else { 0 };
        let missing = target.max(for_waiting).saturating_sub(store.free.len());
        if waiting > 0 { missing.max(1) } else { missing }
    }
}

/// Pages whose frames shall become free.
#[derive(Default)]
struct Victims {
    /// Evicted already.
    clean: Vec<FrameRef>,
    /// Reserved for writing.
    dirty: Vec<FrameRef>,
}

/// Takes pages from the LRU tail: `missing` of them, counting those that are being written for this already.
/// While somebody waits, enough clean ones for those who wait even if dirty ones come first, but only from
/// the very end of the list as long as frames will come from what is being written: where writing is what
/// everything waits for, the few clean pages are those just read, whose readers wait for another frame.
/// Taking them means reading them again, and the list turns faster. That is so with a buffer pool extension,
/// which reads much faster than a capped disk writes (a transaction read 7.1 pages instead of 3.7). Without
/// one, pages come in no faster than others go out, and passing clean pages over only has dirty ones written
/// that lie much deeper and may change again before their turn. What that costs was lost in the noise.
fn find_victims(store: &PageStore, missing: usize) -> Victims {
    let mut victims = Victims::default();
    let waiting = store.free.waiting();
    // How far from the tail to look: not into what is in use, unless it has to be.
    // Recovery pins many pages at a time, and there is nobody else in whose way a longer look would be.
    let deepest = if store.recovering.load(Ordering::Acquire) { store.frame_count() } else { DEPTH_WANTED };
    let mut depth = deepest;
    let depth_far = deepest.saturating_sub(4 * missing + 256);
    let writing = store.in_flight.load(Ordering::Relaxed) > 0;
    let keeps_clean = writing && store.tier_to_use().is_some();
    let coming = store.victims_in_flight.load(Ordering::Relaxed);
    let wanted = missing.saturating_sub(coming);
    // Each batch costs its syncs: a small one waits for more as long as frames are coming.
    let too_few = coming > 0 && wanted < store.batch_pages() / 2;
    let dirty_max = if too_few { 0 } else { wanted.min(2 * store.batch_pages()).min(store.lru_room(0)) };
    let mut lru = store.lru.lock();
    let depth_clean = if keeps_clean { deepest.saturating_sub(lru.old_len() / CLEAN_PART) } else { 0 };
    let mut next = lru.tail();
    while let Some(index) = next
        && depth > 0
        && (depth > depth_far
            || (waiting > 0 && !writing && victims.clean.is_empty() && victims.dirty.is_empty()))
        && victims.clean.len() < missing
        && (victims.clean.len() < waiting || victims.clean.len() + victims.dirty.len() + coming < missing)
    {
        next = lru.younger(index);
        depth -= 1;
        let frame = store.frames.get(index);
        if store.free.is_leaving(frame) {
            // Nobody is served by it; the resizer deals with it.
            continue;
        }
        if depth >= depth_clean && store.evict(&mut lru, frame) {
            victims.clean.push(frame);
        } else if victims.dirty.len() < dirty_max && store.reserve_for_flush(frame) {
            frame.victim.store(true, Ordering::Relaxed);
            victims.dirty.push(frame);
        }
    }
    victims
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn ahead() -> (Ahead, Event) {
        let over = Event::new();
        let started = Some(StartedAhead { at: Duration::ZERO, pages: 100, over: vec![over.clone()] });
        (Ahead { started, next: Duration::ZERO, rate: AHEAD_RATE }, over)
    }

    #[test]
    fn a_batch_ahead_that_takes_for_ever_is_no_reason_to_rest_for_ever() {
        const HOUR: Duration = Duration::from_secs(3600);
        let (mut ahead, over) = ahead();
        over.set();
        assert!(ahead.is_over_now(HOUR, || false));
        assert_eq!(ahead.may_start(HOUR, true), None);
        assert!(ahead.may_start(HOUR + Duration::from_secs(60), true).is_some());
    }

    #[test]
    fn a_batch_ahead_is_followed_by_a_long_rest_where_others_wait() {
        for (slow, rest) in [(false, 300 * MS), (true, 2400 * MS)] {
            let (mut ahead, over) = ahead();
            assert!(!ahead.is_over_now(99 * MS, || slow));
            assert_eq!(ahead.may_start(99 * MS, true), None);
            over.set();
            assert!(ahead.is_over_now(100 * MS, || slow) && !ahead.is_over_now(100 * MS, || slow));
            assert_eq!(ahead.may_start(99 * MS + rest, true), None);
            assert!(ahead.may_start(100 * MS + rest, true).is_some());
        }
    }

    /// What is ahead of need is marked as under way no longer than it is.
    #[test]
    fn a_batch_ahead_is_over_while_others_are_under_way() {
        let (mut ahead, over) = ahead();
        over.set();
        let others = false;
        assert!(ahead.is_over_now(100 * MS, || false), "whatever else is written");
        assert_eq!(
            ahead.may_start(Duration::from_secs(9), others),
            None,
            "the next one waits for the others"
        );
    }
}
