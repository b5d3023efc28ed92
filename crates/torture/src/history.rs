//! One history: the whole engine run from a seed, with every moment remembered at which something became durable.

use crate::model::{INDEXER, Model, SESSIONS, SharedModel};
use crate::workload::{Part, Stage, definer, indexer, interleave, maintenance, prepare, session};
use disk::probe::Atomic;
use disk::{Environment, Misbehaviour, Moment, Random, SimulatedEnvironment};
use parking_lot::Mutex;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use untorn::engine::Durability;
use untorn::{Database, Doublewrite, Error, Options};

/// A negative control: one promise broken on purpose. A checker that does not notice is worth nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Sabotage {
    /// None: the engine as it is.
    #[default]
    None,
    /// Doublewrite off, on a disk that tears.
    NoDoublewrite,
    /// A disk that promises atomic writes and tears them.
    BrokenAtomicWrites,
    /// A disk that says it synced files of this name and has not.
    SkippedSyncs(&'static str),
    /// Pages reach the disk before their log: syncs of the log are skipped, and nobody waits for a commit, so that no
    /// acknowledged transaction is lost by that alone.
    PagesBeforeLog,
    /// Recovery finds no doublewrite files.
    NoDoublewriteFiles,
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
}

impl Plan {
    /// The engine as it is.
    pub fn new(seed: u64) -> Plan {
        Plan { seed, polls: 4_000, sabotage: Sabotage::None, relaxed: false }
    }

    /// The same with a promise broken.
    pub fn with(mut self, sabotage: Sabotage) -> Plan {
        self.sabotage = sabotage;
        self.relaxed |= sabotage == Sabotage::PagesBeforeLog;
        self
    }

    /// Settings of the database: tiny, so that a state costs little, and different from seed to seed.
    pub fn options(&self) -> Options {
        let mut random = Random::new(self.seed ^ 0x0971);
        let mut options = Options::new("/data");
        let page = if random.one_in(4) { 16 << 10 } else { 4 << 10 };
        options.unchecked_sizes = true;
        options.page_size = Some(page);
        options.buffer_pool_bytes = u64::from(page) * (64 + random.below(64) as u64);
        options.redo_capacity_bytes = 2 << 20;
        options.log_buffer_bytes = 1 << 20;
        options.lock_wait_timeout = Duration::from_millis(300);
        options.doublewrite_files = 1 + random.below(3);
        options.doublewrite_pages = 4 + random.below(12);
        options.doublewrite = match self.sabotage {
            Sabotage::NoDoublewrite => Doublewrite::Off,
            Sabotage::BrokenAtomicWrites => Doublewrite::Auto,
            Sabotage::None if random.one_in(2) => Doublewrite::Auto,
            _ => Doublewrite::On,
        };
        options
    }

    /// What the disk says of atomic writes, and after how many of them it refuses all others.
    fn atomic_writes(&self) -> (Atomic, Option<u64>) {
        let mut random = Random::new(self.seed ^ 0xA70);
        match self.sabotage {
            Sabotage::None => {
                let offered = [Atomic::None, Atomic::Hardware, Atomic::FileSystem][random.below(3)];
                (offered, random.one_in(4).then(|| random.below(60) as u64))
            }
            Sabotage::BrokenAtomicWrites => (Atomic::Hardware, None),
            _ => (Atomic::None, None),
        }
    }
}

/// A moment, and what the model allowed then.
pub struct Point {
    /// The disk.
    pub moment: Moment,
    /// What must be found after a crash.
    pub model: Model,
}

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
}

/// Prepares the disk for a plan.
fn set_up_disk(plan: &Plan, environment: &SimulatedEnvironment) {
    let disk = environment.disk();
    let (offered, good) = plan.atomic_writes();
    disk.offer(offered);
    if let Some(good) = good {
        disk.refuse_atomic_writes_after(good);
    }
    match plan.sabotage {
        Sabotage::BrokenAtomicWrites => disk.break_atomic_writes(),
        Sabotage::SkippedSyncs(files) => disk.misbehave(files, Misbehaviour::SkippedSync, 1),
        Sabotage::PagesBeforeLog => disk.misbehave("#untorn_redo", Misbehaviour::SkippedSync, 1),
        Sabotage::None | Sabotage::NoDoublewrite | Sabotage::NoDoublewriteFiles => {}
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
        let failure = act(&db, &model, plan).await;
        Ok::<_, Error>((db.status(), failure))
    });
    environment.disk().stop_observing();
    let (figures, failure) = match outcome {
        Ok((figures, failure)) => (figures, failure),
        Err(error) => (Vec::new(), Some(error.to_string())),
    };
    let last = Point { moment: environment.disk().moment(), model: model.lock().clone() };
    let mut points = std::mem::take(&mut *points.lock());
    points.push(last);
    let disk = environment.disk();
    History { points, digest: disk.history(), calls: disk.calls(), failure, figures }
}

/// Lets all actors act on a prepared database; what ended it, if not the plan.
pub async fn act(db: &Database, model: &SharedModel, plan: &Plan) -> Option<String> {
    let mut random = Random::new(plan.seed ^ 0xAC7);
    let durability = if plan.relaxed { Durability::NoSync } else { Durability::Sync };
    let stage =
        Stage { db: db.clone(), model: model.clone(), durability, failure: Rc::new(RefCell::new(None)) };
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
    interleave(parts, random.next_u64(), plan.polls).await;
    stage.failure.borrow().clone()
}
