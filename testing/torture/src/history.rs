//! One history: the whole engine run from a seed, with every moment remembered at which something became
//! durable.
//!
//! What differs from seed to seed: page size, pool, redo log, doublewrite files, what the disk says of atomic
//! writes and when it refuses them, and whether there is a buffer pool extension. One with a tier has a pool
//! that its data does not fit into, so that pages come and go; for some of those the disk under the tier lies
//! all the time, in the history and in what is recovered.

use crate::backups::{BACKUPS, backups};
use crate::check::{STAGE, Wrong, verify_contents};
use crate::coverage::Coverage;
use crate::extension_lies::Account;
use crate::model::{INDEXER, Model, SESSIONS, SharedModel};
use crate::prepared::coordinator;
use crate::rivals::{RIVALS, rival};
use crate::sabotage::Sabotage;
use crate::workload::{
    KEYS, Part, Stage, definer, indexer, large_transactions, log_resizer, maintenance, prepare, session,
    stock_up, tier_mover,
};
use disk::probe::Atomic;
use disk::{
    Environment, FalseRead, Misbehaviour, Moment, Random, SimulatedEnvironment, SimulatedStorage, interleave,
};
use pagestore::PageSize;
use parking_lot::Mutex;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use untorn::asynchronous::Database;
use untorn::engine::Durability;
use untorn::{Error, ExtensionStatus, Options};

/// The buffer pool extension's file; those of its map have the same name and more.
pub const TIER: &str = "/data/extension";
/// Another file that it moves to; what concerns files by the name of the one concerns this too.
pub const OTHER_TIER: &str = "/data/extension_moved";
/// All ways in which the disk under the tier lies.
pub const LIES: [Misbehaviour; 8] = [
    Misbehaviour::LostWrite,
    Misbehaviour::FlippedWrite,
    Misbehaviour::MisdirectedWrite,
    Misbehaviour::DuplicatedWrite,
    Misbehaviour::StaleRead,
    Misbehaviour::TornRead,
    Misbehaviour::FlippedRead,
    Misbehaviour::MisdirectedRead,
];
/// Bytes of the buffer pool extension: the smallest there is.
pub const TIER_BYTES: u64 = 7 * (256 << 10);
/// Keys of a session in a history that is only about the tier: more than the pool has room for.
const TIER_KEYS: usize = 60;
/// A history that is only about the tier is examined once per this number of polls.
const POLLS_PER_LOOK: u64 = 400;
/// One call in this many on the files of a tier goes wrong, where the disk lies.
const TIER_LIES_ONE_IN: usize = 12;

/// The buffer pool extension of a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum TierPlan {
    /// There may be one, and its disk may lie: the seed decides.
    #[default]
    BySeed,
    /// There is one, and nobody moves it while it is used.
    Undisturbed,
    /// There is one, undisturbed, and its disk lies in this way, at this rate.
    Lying(Misbehaviour, usize),
    /// The same, and it is switched, resized and moved while it is used.
    LyingMoved(Misbehaviour, usize),
}

/// What history to run.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Decides everything.
    pub seed: u64,
    /// How long: polls of actors.
    pub polls: u64,
    /// What is broken.
    pub sabotage: Sabotage,
    /// Commits do not wait for the log.
    pub relaxed: bool,
    /// Whether there is a buffer pool extension, and on what.
    pub tier: TierPlan,
}

impl Plan {
    /// The engine as it is.
    pub fn new(seed: u64) -> Plan {
        Plan { seed, polls: 4_000, sabotage: Sabotage::None, relaxed: false, tier: TierPlan::BySeed }
    }

    /// The same with a promise broken.
    pub fn with(mut self, sabotage: Sabotage) -> Plan {
        self.sabotage = sabotage;
        self.relaxed |= sabotage == Sabotage::PagesBeforeLog;
        self
    }

    /// The same with a buffer pool extension as asked for.
    pub fn with_tier(mut self, tier: TierPlan) -> Plan {
        self.tier = tier;
        self
    }

    /// Whether the database has a buffer pool extension.
    pub fn has_tier(&self) -> bool {
        let by_seed = || self.sabotage == Sabotage::None && Random::new(self.seed ^ 0xB9E).one_in(3);
        self.tier != TierPlan::BySeed || by_seed()
    }

    /// Whether several actors fight over the names of tables.
    fn has_rivals(&self) -> bool {
        let plain = self.sabotage == Sabotage::None && !self.relaxed && self.tier == TierPlan::BySeed;
        plain && Random::new(self.seed ^ 0x21_7A15).one_in(2)
    }

    /// Whether backups are made meanwhile.
    pub fn has_backups(&self) -> bool {
        let plain = self.sabotage == Sabotage::None && !self.relaxed && self.tier == TierPlan::BySeed;
        let by_seed = || plain && !self.has_rivals() && Random::new(self.seed ^ 0xBACC).one_in(2);
        self.sabotage == Sabotage::SkippedSyncs(BACKUPS) || by_seed()
    }

    /// Whether there are transactions so large that the undo tablespace grows, and is truncated after them.
    pub fn has_large_transactions(&self) -> bool {
        self.sabotage == Sabotage::None && Random::new(self.seed ^ 0x0DD0).one_in(3)
    }

    /// Whether transactions are prepared and ended later.
    pub fn has_prepared(&self) -> bool {
        let plain = self.sabotage == Sabotage::None && !self.relaxed && self.tier == TierPlan::BySeed;
        let by_seed = || plain && !self.has_backups() && Random::new(self.seed ^ 0x5A).one_in(2);
        self.sabotage == Sabotage::UnsyncedPrepare || by_seed()
    }

    /// Whether the capacity of the redo log changes meanwhile.
    fn resizes_log(&self) -> bool {
        let plain = self.sabotage == Sabotage::None && self.tier == TierPlan::BySeed;
        plain && Random::new(self.seed ^ 0x4E5).one_in(2)
    }

    /// Whether the tier is switched, resized and moved while it is used.
    pub fn moves_tier(&self) -> bool {
        match self.tier {
            TierPlan::BySeed => self.has_tier() && Random::new(self.seed ^ 0x30BE).one_in(2),
            TierPlan::LyingMoved(..) => true,
            TierPlan::Undisturbed | TierPlan::Lying(..) => false,
        }
    }

    /// How the disk under the buffer pool extension lies, if it does: one call in this many.
    fn tier_lie(&self) -> Option<(Misbehaviour, usize)> {
        match self.tier {
            TierPlan::Undisturbed => None,
            TierPlan::Lying(lie, one_in) | TierPlan::LyingMoved(lie, one_in) => Some((lie, one_in)),
            TierPlan::BySeed => {
                let mut random = Random::new(self.seed ^ 0x11E);
                let lies = self.has_tier() && random.one_in(2);
                lies.then(|| (LIES[random.below(LIES.len())], TIER_LIES_ONE_IN))
            }
        }
    }

    /// Lets the disk under the buffer pool extension lie, if it does.
    pub fn set_up_tier(&self, disk: &SimulatedStorage) {
        if let Some((lie, one_in)) = self.tier_lie() {
            disk.misbehave(TIER, lie, one_in);
        }
    }

    /// Settings of the database: tiny, so that a state costs little, and different from seed to seed.
    pub fn options(&self) -> Options {
        let mut random = Random::new(self.seed ^ 0x0971);
        let mut options = Options::new("/data");
        let page = if random.one_in(4) { 16 << 10 } else { 4 << 10 };
        options.unchecked_sizes = true;
        options.page_size = Some(page);
        options.buffer_pool_bytes = u64::from(page) * (64 + random.below(64) as u64);
        // The least that takes every mini-transaction: the log goes round often, and reading it after a crash
        // costs little.
        options.redo_capacity_bytes = if random.one_in(4) { 2 << 20 } else { 5 << 18 };
        options.log_buffer_bytes = 1 << 20;
        options.lock_wait_timeout = Duration::from_millis(300);
        // Whatever undo grows to is too much.
        options.max_undo_log_bytes = 1 << 20;
        options.doublewrite_files = 1 + random.below(3);
        options.doublewrite_pages = 4 + random.below(12);
        options.doublewrite = self.sabotage.doublewrite(&mut random);
        if self.has_tier() {
            // The tier's memory comes out of the pool's; what is left is less than the data.
            let frames = u64::from(page) * (36 + random.below(24) as u64);
            let memory = PageSize::new(page as usize).map_or(0, |size| bpe::memory_bytes(TIER_BYTES, size));
            options.buffer_pool_bytes = frames + memory as u64;
            options = options.extension(TIER, TIER_BYTES);
        }
        options
    }

    /// What the disk says of atomic writes, and after how many of them it refuses all others.
    fn atomic_writes(&self) -> (Atomic, Option<u64>) {
        self.sabotage.atomic_writes(&mut Random::new(self.seed ^ 0xA70))
    }
}

/// A moment, and what the model allowed then.
pub struct Point {
    /// The disk.
    pub moment: Moment,
    /// What must be found after a crash.
    pub model: Model,
}

/// How often the redo log became smaller, among the figures.
const CUTS: &str = "redo log cuts";

/// A history that was run.
pub struct History {
    /// Every moment just before a sync, in order.
    pub points: Vec<Point>,
    /// Digest of every call to the disk with its data.
    pub digest: u64,
    /// I/O calls made.
    pub calls: u64,
    /// What ended it before its time.
    pub failure: Option<String>,
    /// Figures of the engine at its end.
    pub figures: Vec<(&'static str, u64)>,
    /// Those of the buffer pool extension.
    pub tier: Option<ExtensionStatus>,
    /// Reads of its files, where the disk lies, that returned something else than was stored. Until the same
    /// moment.
    pub false_reads: Vec<FalseRead>,
}

impl History {
    /// Counts what came up in it.
    pub fn note(&self, plan: &Plan, coverage: &mut Coverage) {
        coverage.add("histories", 1);
        coverage.add("I/O calls recorded", self.calls);
        for (name, total, histories) in [
            ("Innodb_row_lock_waits", "row lock waits in histories", "histories with row lock waits"),
            ("Innodb_deadlocks", "deadlocks in histories", "histories with deadlocks"),
            ("Untorn_checkpoints", "checkpoints in histories", "histories with checkpoints"),
            (CUTS, "times the redo log became smaller", "histories in which it did"),
            (
                "Untorn_undo_truncations",
                "truncations of undo in histories",
                "histories with truncations of undo",
            ),
        ] {
            coverage.add(total, self.figure(name));
            coverage.add(histories, u64::from(self.figure(name) > 0));
        }
        if let Some(tier) = self.tier.as_ref().filter(|tier| tier.file.is_some()) {
            coverage.add("histories with a buffer pool extension", 1);
            coverage.add("pages taken by the buffer pool extension in histories", tier.admitted);
            coverage.add("pages served from the buffer pool extension in histories", tier.hits);
        }
        coverage.add(
            "histories that switch, resize and move the buffer pool extension",
            u64::from(plan.moves_tier()),
        );
        if let Some(account) = self.account(plan) {
            let false_pages = account.slots.sum();
            coverage.add("false pages that the tier's disk returned in histories, each counted", false_pages);
        }
    }

    /// What the buffer pool extension counted and what its disk did, if that lies; nothing of a history that
    /// failed.
    pub fn account(&self, plan: &Plan) -> Option<Account> {
        let comparable = plan.tier_lie().is_some() && self.failure.is_none();
        if comparable { Account::of(plan, self) } else { None }
    }

    /// A figure of the engine at the end.
    pub fn figure(&self, name: &str) -> u64 {
        self.figures.iter().find(|(known, _)| *known == name).map_or(0, |(_, value)| *value)
    }
}

/// Prepares the disk for a plan.
fn set_up_disk(plan: &Plan, environment: &SimulatedEnvironment) {
    let disk = environment.disk();
    let (offered, good) = plan.atomic_writes();
    disk.offer(offered);
    // What is sabotaged is to be noticed by itself, on a disk as it was.
    if plan.sabotage == Sabotage::None && plan.seed % 2 == 1 {
        disk.offer_allocation();
    }
    if let Some(good) = good {
        disk.refuse_atomic_writes_after(good);
    }
    if !plan.sabotage.break_disk(disk) {
        plan.set_up_tier(disk);
    }
}

/// Runs a history from an empty directory.
pub fn record(plan: &Plan) -> History {
    let environment = SimulatedEnvironment::new(plan.seed);
    let model: SharedModel = Arc::new(Mutex::new(Model::new(plan.relaxed)));
    let points = Arc::new(Mutex::new(Vec::new()));
    if plan.sabotage == Sabotage::None {
        set_up_disk(plan, &environment);
    }
    if plan.tier_lie().is_some() {
        environment.disk().watch_reads(TIER);
    }
    let (to, shared) = (points.clone(), model.clone());
    environment.disk().observe_syncs(move |moment| {
        to.lock().push(Point { moment, model: shared.lock().clone() });
    });
    let shared: Arc<dyn Environment> = environment.clone();
    let outcome = environment.run_until_complete(async {
        let db = Database::open_in(shared, plan.options()).await?;
        prepare(&db, &model).await?;
        if plan.sabotage != Sabotage::None {
            // The directory itself is whole; what is broken breaks from here on.
            set_up_disk(plan, &environment);
        }
        let mut failure = act(&db, &model, plan).await;
        if plan.tier != TierPlan::BySeed && failure.is_none() {
            failure = look_through(&db, &model, plan).await.err().map(|wrong| format!("{wrong:?}"));
        }
        let false_reads = environment.disk().false_reads();
        let mut figures = db.status();
        figures.push((CUTS, db.redo_log_cuts()));
        Ok::<_, Error>((figures, Some(db.extension()), false_reads, failure))
    });
    environment.disk().stop_observing();
    let (figures, tier, false_reads, failure) = match outcome {
        Ok(ended) => ended,
        Err(error) => (Vec::new(), None, Vec::new(), Some(error.to_string())),
    };
    let last = Point { moment: environment.disk().moment(), model: model.lock().clone() };
    let mut points = std::mem::take(&mut *points.lock());
    points.push(last);
    environment.shutdown();
    let disk = environment.disk();
    disk.abandon_requests();
    History { points, digest: disk.history(), calls: disk.calls(), failure, figures, tier, false_reads }
}

/// Reads everything through the tier, again and again: what it serves is what the model knows.
async fn look_through(db: &Database, model: &SharedModel, plan: &Plan) -> Result<(), Wrong> {
    if plan.moves_tier() {
        db.switch_extension(true).over().wait().await;
    }
    for look in 0..plan.polls / POLLS_PER_LOOK {
        if plan.moves_tier() && look % 3 == 2 {
            // In the background, as the pages are read.
            drop(db.resize_extension(TIER_BYTES * (2 + look % 2) / 2));
        }
        let allowed = model.lock().clone();
        verify_contents(db, &allowed).await?;
        // The cleaner offers what it is going to evict, and the tier writes what waits in its buffer.
        db.environment().sleep(Duration::from_millis(1200)).await;
    }
    Ok(())
}

/// Lets all actors act on a prepared database; what ended it, if not the plan.
pub async fn act(db: &Database, model: &SharedModel, plan: &Plan) -> Option<String> {
    STAGE.set("acting");
    let mut random = Random::new(plan.seed ^ 0xAC7);
    let durability = if plan.relaxed { Durability::NoSync } else { Durability::Sync };
    // A tier writes what does not fill its buffer after a second: those histories are longer, by the clock.
    let pace = if plan.has_tier() { 12 } else { 1 };
    let failure = Rc::new(RefCell::new(None));
    let about_tier = plan.tier != TierPlan::BySeed;
    let keys = if about_tier { TIER_KEYS } else { KEYS };
    let stage = Stage { db: db.clone(), model: model.clone(), durability, pace, keys, failure };
    if about_tier && let Err(error) = stock_up(&stage, plan.seed ^ 0x570C).await {
        return Some(format!("stocking up: {error}"));
    }
    let mut parts: Vec<Part> = Vec::new();
    for number in 0..SESSIONS {
        parts.push(Box::pin(session(stage.clone(), number, random.next_u64())));
    }
    debug_assert_eq!(INDEXER, SESSIONS);
    if !plan.relaxed {
        // Definitions make things durable by themselves.
        parts.push(Box::pin(indexer(stage.clone(), random.next_u64())));
        parts.push(Box::pin(definer(stage.clone(), random.next_u64())));
    }
    // A control is about one way of protecting pages; otherwise the ways are switched.
    let switches = plan.sabotage == Sabotage::None;
    parts.push(Box::pin(maintenance(stage.clone(), switches, random.next_u64())));
    let order = random.next_u64();
    if plan.has_rivals() {
        for _ in 0..RIVALS {
            parts.push(Box::pin(rival(stage.clone(), random.next_u64())));
        }
    }
    if plan.moves_tier() {
        parts.push(Box::pin(tier_mover(stage.clone(), random.next_u64())));
    }
    if plan.has_backups() {
        parts.push(Box::pin(backups(stage.clone(), plan.seed ^ 0xBAC0)));
    }
    if plan.resizes_log() {
        parts.push(Box::pin(log_resizer(stage.clone(), plan.seed ^ 0x4E51)));
    }
    if plan.has_prepared() {
        let unsynced = plan.sabotage == Sabotage::UnsyncedPrepare;
        let durability = if unsynced { Durability::NoSync } else { Durability::Sync };
        parts.push(Box::pin(coordinator(stage.clone(), plan.seed ^ 0x5AC, durability)));
    }
    if plan.has_large_transactions() {
        parts.push(Box::pin(large_transactions(stage.clone(), random.next_u64())));
    }
    interleave(parts, order, plan.polls).await;
    stage.failure.borrow().clone()
}
