//! The background task of a tier: puts settings into force, writes buffers that do not fill up, judges the
//! latencies, removes the pages of dropped tablespaces, keeps the map short, and notices a file that has
//! vanished.
//!
//! It runs apart from the page cleaner, because opening, cutting and removing files may take their time. It
//! holds the tier only while it works, so that the tier can be dropped.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::task::Poll;
use std::time::Duration;

use disk::Event;

use crate::counters::Counter;
use crate::fill::PARTIAL_AFTER;
use crate::journal::{Journal, PENDING_MAX};
use crate::latency_suspension::Verdict;
use crate::record::Record;
use crate::store::{Parts, Store};
use crate::table::{Inserted, Table};
use crate::tier::{Change, Control, Settings, Tier};

/// Time between looks.
const PERIOD: Duration = Duration::from_millis(100);
/// Looks between judgements of the latencies, and between looks for the file.
const LOOKS_PER_JUDGEMENT: u64 = 10;
/// Records gathered beyond which they are written without being asked for.
const PENDING_WRITE: usize = 64 << 10;
/// Slots looked at between two chances for others.
const SLOTS_PER_STEP: u32 = 8192;
/// Bytes of a rewrite that are written together.
const REWRITE_STEP_BYTES: usize = 256 << 10;

impl Tier {
    /// Notes a wish and wakes the keeper.
    pub(crate) fn change(&self, act: impl FnOnce(&mut Settings)) -> Change {
        let change = Change::new();
        let mut control = self.control.lock();
        act(&mut control.wanted);
        control.version += 1;
        let version = control.version;
        control.waiting.push((version, change.clone()));
        control.wake.set();
        drop(control);
        change
    }

    pub(crate) fn start_keeper(&self) {
        let over = SetOnDrop(self.keeper_over.clone());
        self.env.spawn_worker("buffer pool extension", Box::pin(run(self.me.clone(), over)));
    }

    /// The settings, if they have changed since they were last put into force.
    fn new_settings(&self) -> Option<(u64, Settings)> {
        let control = self.control.lock();
        (control.version != control.done).then(|| (control.version, control.wanted.clone()))
    }

    async fn apply(&self, version: u64, wanted: Settings) {
        let outcome = self.make_it_so(&wanted).await;
        let finished = {
            let mut control = self.control.lock();
            control.done = version;
            let Control { waiting, .. } = &mut *control;
            let (finished, still): (Vec<_>, Vec<_>) =
                std::mem::take(waiting).into_iter().partition(|(wanted, _)| *wanted <= version);
            *waiting = still;
            finished
        };
        for (_, change) in finished {
            change.finish(outcome.clone());
        }
    }

    async fn make_it_so(&self, wanted: &Settings) -> Result<(), String> {
        let path = wanted.file.as_ref().filter(|_| wanted.enabled);
        let store = self.store();
        let Some(path) = path else {
            self.control.lock().failure = None;
            self.take_down();
            return Ok(());
        };
        match store {
            Some(store) if store.path == *path && wanted.size > 0 => {
                self.resize_store(&store, wanted.size).await;
                let failure = self.control.lock().failure.clone();
                return failure.map_or(Ok(()), Err);
            }
            _ => self.take_down(),
        }
        match self.open_store(path, wanted.size, false) {
            Ok(store) => {
                self.install(store);
                Ok(())
            }
            Err(error) => {
                self.could_not_open(&error);
                Err(error.to_string())
            }
        }
    }

    /// Copies the entries to a table of the new size, shard by shard, and then exchanges the two.
    async fn resize_store(&self, old: &Arc<Store>, size: u64) {
        let part = self.keeps_part();
        let geometry = self.geometry_in_use(size, old.geometry.region_bytes, part);
        if geometry == old.geometry {
            return;
        }
        self.close_filler(old).wait().await;
        let order = old.filler.lock().order();
        let fifo = order.into_iter().filter(|region| *region < geometry.regions).collect();
        let new = Arc::new(Store::new(Parts {
            id: self.new_id(),
            path: old.path.clone(),
            file: old.file.clone(),
            geometry,
            part,
            table: Table::new(geometry.slots(), geometry.slots_per_region()),
            fifo,
            journal: old.journal.clone(),
            loaded_from: old.loaded_from,
            kept: None,
            lock: old.lock.clone(),
        }));
        {
            let mut current = self.current.write();
            if current.store.as_ref().is_none_or(|store| store.id != old.id) {
                return;
            }
            current.next = Some(new.clone());
        }
        // From here on every change drops its page from both. What does not fit is recorded as dropped before
        // the old table, which would record it, goes.
        for region in geometry.regions..old.geometry.regions {
            old.record(&Record::DropRegion { region });
        }
        for shard in 0..old.table.shards() {
            old.table.each_of_shard(shard, |entry| {
                if entry.slot < geometry.slots() && new.table.insert(entry, true) != Inserted::Done {
                    // No place in its shard: the page is lost to the tier, and must be lost to the map.
                    old.record(&Record::Drop { slot: entry.slot });
                }
            });
            if shard % 16 == 15 {
                let_others_run().await;
            }
        }
        {
            let mut current = self.current.write();
            if current.store.as_ref().is_none_or(|store| store.id != old.id) {
                return;
            }
            (current.store, current.next) = (current.next.take(), None);
        }
        let (slots, before, memory) = (geometry.slots(), old.geometry.slots(), self.memory_of(&new));
        if part {
            tracing::info!(
                "the buffer pool extension, suspended for long, has {slots} pages now (before: {before}), {memory} bytes of memory; it regains its size when it is used again"
            );
        } else {
            tracing::info!(
                "the buffer pool extension has {slots} pages now (before: {before}), {memory} bytes of memory"
            );
        }
        if geometry.regions < old.geometry.regions {
            // Reads of the part that goes are of the old store, whose errors nobody minds.
            let cut = |len: u64| {
                if len > geometry.file_bytes() { new.file.set_len(geometry.file_bytes()) } else { Ok(()) }
            };
            if let Err(error) = new.file.len().and_then(cut) {
                self.fail(new.id, &error.to_string());
            }
        }
    }

    /// Removes the pages of dropped tablespaces.
    async fn bury_spaces(&self) {
        let dead = self.dead.all();
        if dead.is_empty() {
            return;
        }
        if let Some(store) = self.store() {
            for slot in 0..store.table.slots() {
                if store.table.peek(slot).is_some_and(|(entry, _)| dead.contains(&entry.page.space))
                    && store.table.remove_slot(slot, || {}).is_some()
                {
                    self.counters.count(Counter::Invalidated);
                }
                if slot % SLOTS_PER_STEP == SLOTS_PER_STEP - 1 {
                    let_others_run().await;
                }
            }
        }
        self.dead.remove(&dead);
    }

    /// Writes records that have gathered; begins a new stream when there is none or the old one is too long.
    async fn tend_journal(&self, store: &Arc<Store>) -> disk::Result<()> {
        let Some(journal) = &store.journal else { return Ok(()) };
        let pending = journal.pending_bytes();
        if pending > PENDING_MAX {
            let error = std::io::Error::other("the disk is too slow for the map");
            return Err(disk::Error::new("write", store.path.clone(), error));
        }
        if pending > PENDING_WRITE {
            journal.write_pending().await?;
        }
        if let Some(side) = journal.rewrite_due(store.table.len(), store.loaded_from) {
            self.rewrite(store, journal, side).await?;
        }
        Ok(())
    }

    /// Writes the whole map into the file of the other side.
    pub(crate) async fn rewrite(
        &self,
        store: &Arc<Store>,
        journal: &Arc<Journal>,
        side: usize,
    ) -> disk::Result<()> {
        let file = self.open_map(&store.path, side)?;
        self.env.storage().sync_dir(store.path.parent().unwrap_or(std::path::Path::new("")))?;
        journal.begin_rewrite(file, side);
        for slot in 0..store.table.slots() {
            store.table.visit(slot, |entry| {
                journal.append_swept(entry, || self.dead.contains(entry.page.space));
            });
            if slot % SLOTS_PER_STEP == SLOTS_PER_STEP - 1 {
                if journal.pending_bytes() > REWRITE_STEP_BYTES {
                    journal.write_rewrite().await?;
                }
                let_others_run().await;
            }
        }
        journal.end_rewrite().await
    }

    /// One look. What fails switches the tier off.
    async fn look(&self, looks: u64) {
        self.bury_spaces().await;
        let Some(store) = self.store() else { return };
        self.write_partial(&store, PARTIAL_AFTER);
        self.report(self.adapt.look_at_trial(self.env.now()));
        if self.adapt.is_suspended() {
            // At every look: what was on its way comes back later. An open chunk is written when it is a
            // second old.
            store.filler.lock().give_back_spare();
        }
        if looks.is_multiple_of(LOOKS_PER_JUDGEMENT) {
            self.report(self.adapt.look(self.env.now()));
            match self.env.storage().exists(&store.path) {
                Ok(true) => {}
                Ok(false) => self.fail(store.id, &format!("its file {} has vanished", store.path.display())),
                Err(error) => self.fail(store.id, &error.to_string()),
            }
        }
        if let Err(error) = self.tend_journal(&store).await {
            self.fail(store.id, &error.to_string());
        }
        if self.keeps_part() != store.part {
            let size = self.control.lock().wanted.size;
            self.resize_store(&store, size).await;
        }
    }

    /// Counts and logs what was decided of the tier.
    fn report(&self, verdict: Verdict) {
        if verdict == Verdict::Unchanged {
            return;
        }
        let (tier, data) = self.adapt.latencies();
        let microseconds = |seconds: Option<f64>| seconds.unwrap_or_default() * 1e6;
        let (tier, data) = (microseconds(tier), microseconds(data));
        match verdict {
            Verdict::Unchanged => {}
            Verdict::Trial => self.counters.count(Counter::Trials),
            Verdict::Acquitted => {
                tracing::debug!(
                    "the buffer pool extension stays in use after a trial without it: it reads in {tier:.0} us"
                );
            }
            Verdict::Suspended => {
                self.counters.count(Counter::Suspensions);
                tracing::info!(
                    "the buffer pool extension is suspended: it reads in {tier:.0} us, the data files in {data:.0} us"
                );
            }
            Verdict::Resumed => {
                self.counters.count(Counter::Resumptions);
                tracing::info!(
                    "the buffer pool extension is used again: it reads in {tier:.0} us, the data files in {data:.0} us"
                );
            }
        }
    }
}

/// Says that the task has ended, also when it is dropped.
struct SetOnDrop(Event);

impl Drop for SetOnDrop {
    fn drop(&mut self) {
        self.0.set();
    }
}

/// The task.
async fn run(tier: Weak<Tier>, _over: SetOnDrop) {
    let mut looks = 0;
    loop {
        let (sleep, wake) = {
            let Some(tier) = tier.upgrade() else { return };
            if tier.closed.load(Ordering::Acquire) {
                return;
            }
            let wake = {
                let mut control = tier.control.lock();
                control.wake = Event::new();
                control.wake.clone()
            };
            if let Some((version, wanted)) = tier.new_settings() {
                tier.apply(version, wanted).await;
            }
            looks += 1;
            tier.look(looks).await;
            (tier.env.sleep(PERIOD), wake)
        };
        first_of(sleep, wake).await;
    }
}

async fn first_of(mut sleep: disk::TaskFuture, wake: Event) {
    let mut wake = wake.wait();
    std::future::poll_fn(|context| {
        let done = Pin::new(&mut wake).poll(context).is_ready() || sleep.as_mut().poll(context).is_ready();
        if done { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

/// Goes to the end of the queue of the thread's tasks.
async fn let_others_run() {
    let mut yielded = false;
    std::future::poll_fn(|context| {
        if yielded {
            return Poll::Ready(());
        }
        yielded = true;
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
