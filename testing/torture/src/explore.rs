//! Trying the states that crashes leave: recovering each, checking it, and crashing its recovery in turn.

use crate::backups::check_copies;
use crate::check::{Found, STAGE, Wrong, check_files, go_on, verify, verify_contents};
use crate::coverage::Coverage;
use crate::history::{History, Plan, Point, TIER};
use crate::model::Model;
use crate::prepared::end_all;
use disk::{Crash, CrashOutcome, Environment, Moment, Random, SimulatedEnvironment};
use parking_lot::Mutex;
use std::cell::Cell;
use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Once};
use untorn::asynchronous::Database;
use untorn::{ExtensionRestart, ExtensionStatus, Options};

/// How deep crashes of recoveries are crashed again.
pub const DEPTH: u32 = 3;

/// Virtual steps after which a recovery counts as hanging.
const STEPS_MAX: u64 = 3_000_000;

/// How thoroughly to explore.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Moments with at most this number of unsynced units are tried with every subset.
    pub exhaustive_units: usize,
    /// Subsets tried where there are more.
    pub samples: usize,
    /// Torn, reordered, damaged states besides, per moment.
    pub torn_samples: usize,
    /// One state in this many is used further, recovered twice, and its recovery crashed.
    pub deep_one_in: usize,
    /// A moment that was begun is tried to its end, so that "every subset" is true of it, whatever was set
    /// aside for its history.
    pub whole_moments: bool,
}

impl Effort {
    /// All subsets up to 12 units.
    pub const LONG: Effort =
        Effort { exhaustive_units: 12, samples: 64, torn_samples: 12, deep_one_in: 8, whole_moments: true };
    /// A sample of all of it.
    pub const QUICK: Effort =
        Effort { exhaustive_units: 5, samples: 24, torn_samples: 6, deep_one_in: 8, whole_moments: false };
}

/// A campaign of more states than this is a long one.
pub const LONG_FROM: u64 = 200_000;

/// States that may still be tried, by all explorers together.
pub struct Budget(AtomicU64);

impl Budget {
    /// A budget of this number of states.
    pub fn new(states: u64) -> Budget {
        Budget(AtomicU64::new(states))
    }

    /// How many are left.
    pub fn left(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn take(&self) -> bool {
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok()
    }
}

/// A state that was not recovered as it must be.
#[derive(Clone, Debug)]
pub struct Failure {
    /// How to try this state again.
    pub replay: String,
    /// What is wrong.
    pub what: Wrong,
}

/// Parts of the names of the files that a crash may damage.
const DAMAGED: [&str; 4] = [".ibd", "undo_001", ".dblwr", TIER];

/// What explores one history.
pub struct Explorer<'h> {
    plan: &'h Plan,
    history: &'h History,
    effort: Effort,
    options: Options,
    /// What was come across.
    pub coverage: Coverage,
    /// What failed.
    pub failures: Vec<Failure>,
    /// States set aside for this history that are left.
    left: u64,
    budget: Option<&'h Budget>,
    failures_max: usize,
}

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Runs something that may panic, without the panic's noise (unless `UNTORN_LOUD` is set); its message is the
/// error.
pub fn catch<T>(run: impl FnOnce() -> T) -> Result<T, String> {
    static HOOK: Once = Once::new();
    thread_local! {
        static MESSAGE: Cell<Option<String>> = const { Cell::new(None) };
    }
    HOOK.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if QUIET.get() {
                MESSAGE.set(Some(info.to_string()));
            } else {
                usual(info);
            }
        }));
    });
    let before = QUIET.replace(std::env::var_os("UNTORN_LOUD").is_none());
    let outcome = std::panic::catch_unwind(AssertUnwindSafe(run));
    QUIET.set(before);
    outcome.map_err(|_| {
        format!("while {}: {}", STAGE.get(), MESSAGE.take().unwrap_or_else(|| "a panic".to_owned()))
    })
}

impl<'h> Explorer<'h> {
    /// For a limited number of states; stops at a limit of failures.
    pub fn new(plan: &'h Plan, history: &'h History, effort: Effort, states: u64, failures: usize) -> Self {
        Explorer {
            plan,
            history,
            effort,
            options: plan.options(),
            coverage: Coverage::default(),
            failures: Vec::new(),
            left: states,
            budget: None,
            failures_max: failures,
        }
    }

    /// Lets it end, too, when this is used up.
    pub fn within(mut self, budget: &'h Budget) -> Self {
        self.budget = Some(budget);
        self
    }

    /// Whether the campaign is over for this explorer, wherever it is.
    fn is_over(&self) -> bool {
        self.failures.len() >= self.failures_max || self.budget.is_some_and(|budget| budget.left() == 0)
    }

    /// Takes one of the states that are left.
    fn take_state(&mut self) -> bool {
        let own = self.left > 0 || self.effort.whole_moments;
        let taken = own && !self.is_over() && self.budget.is_none_or(Budget::take);
        self.left = self.left.saturating_sub(u64::from(taken));
        taken
    }

    /// Explores every moment of the history.
    pub fn run(&mut self) {
        let mut random = Random::new(self.plan.seed ^ 0xE8);
        // Where states are few they are spread over the whole history.
        let mut order: Vec<usize> = (0..self.history.points.len()).collect();
        for at in (1..order.len()).rev() {
            order.swap(at, random.below(at + 1));
        }
        for point in order {
            if self.left == 0 || self.is_over() {
                return;
            }
            self.try_moment(point, random.next_u64());
        }
    }

    /// Tries the crashes of one moment.
    fn try_moment(&mut self, point: usize, seed: u64) {
        let moment = &self.history.points[point];
        let units = moment.moment.units();
        let (crashes, exhaustive) = self.crashes(moment, seed);
        self.coverage.add("moments", 1);
        for crash in crashes {
            if !self.try_one(point, crash) {
                return self.coverage.add("moments: broken off, the states were used up", 1);
            }
        }
        self.coverage.add(
            match (exhaustive, units) {
                (true, 0) => "moments: nothing unsynced",
                (true, 1..=12) => "moments: every subset of up to 12 unsynced writes tried",
                (false, 0..=12) => "moments: subsets sampled, up to 12 unsynced writes",
                (_, _) => "moments: subsets sampled, more than 12 unsynced writes",
            },
            1,
        );
    }

    /// The crashes to try at a moment, and whether every subset of its units is among them.
    fn crashes(&self, point: &Point, seed: u64) -> (Vec<Crash>, bool) {
        let units = point.moment.units();
        let mut random = Random::new(seed);
        let mut crashes = Vec::new();
        // One moment in sixteen is tried with all subsets, also where the effort is small.
        let exhaustive = if random.one_in(16) {
            8.max(self.effort.exhaustive_units)
        } else {
            self.effort.exhaustive_units
        };
        if units <= exhaustive {
            crashes.extend((0..1_u64 << units).map(Crash::Exactly));
        } else {
            let mask = if units >= 64 { u64::MAX } else { (1 << units) - 1 };
            crashes.extend([Crash::Exactly(0), Crash::Exactly(mask)]);
            crashes.extend((0..self.effort.samples).map(|_| Crash::Exactly(random.next_u64() & mask)));
        }
        if units > 0 {
            let kinds = if self.plan.has_tier() { DAMAGED.len() } else { DAMAGED.len() - 1 };
            for at in 0..self.effort.torn_samples {
                let seed = random.next_u64();
                crashes.push(match at % 4 {
                    0 => Crash::Torn { survivors: u64::MAX, seed },
                    1 => Crash::Damaged { seed, files: DAMAGED[random.below(kinds)] },
                    _ => Crash::Random(seed),
                });
            }
        }
        if random.one_in(4) {
            crashes.push(Crash::ProcessOnly);
        }
        (crashes, units <= exhaustive)
    }

    /// Tries one state and all that follows from it; false when it is not to be tried any more.
    pub fn try_one(&mut self, point: usize, crash: Crash) -> bool {
        let Point { moment, model } = &self.history.points[point];
        let replay = format!("{}/{point}/{}", self.plan.seed, describe(crash));
        let tried = self.try_state(moment, model, crash, replay, 1);
        if tried {
            self.note_point(model, crash);
        }
        tried
    }

    fn note_point(&mut self, model: &Model, crash: Crash) {
        let coverage = &mut self.coverage;
        if !model.prepared {
            coverage.add("states while the directory is being made", 1);
        }
        coverage.add("states with rivals' definitions under way", u64::from(model.rivals.is_busy()));
        if model.journals.iter().any(|journal| !journal.possible.is_empty()) {
            coverage.add("states with steps under way", 1);
        }
        coverage.add(
            match crash {
                Crash::Exactly(_) => "states: a subset of unsynced writes, whole",
                Crash::Torn { .. } => "states: torn",
                Crash::Random(_) => "states: random subset, order and tearing",
                Crash::Damaged { .. } => "states: with a damaged, misdirected or duplicated write",
                Crash::ProcessOnly => "states: end of the process only",
            },
            1,
        );
    }

    /// Recovers a state and checks it; false when it is not to be tried any more.
    fn try_state(
        &mut self,
        moment: &Moment,
        model: &Model,
        crash: Crash,
        replay: String,
        depth: u32,
    ) -> bool {
        if !self.take_state() {
            return false;
        }
        let (disk, outcome) = moment.crash(crash);
        self.plan.sabotage.break_crashed(&disk, self.options.page_size.unwrap_or_default());
        let seed = seed_of(&replay);
        let mut random = Random::new(seed);
        // A process that is killed and a power cut while the next one recovers: what was visible was not yet
        // durable.
        let killed = crash == Crash::ProcessOnly;
        let deep = model.prepared && (killed || random.one_in(self.effort.deep_one_in));
        let environment = SimulatedEnvironment::with_storage(seed, disk);
        environment.limit_steps(STEPS_MAX);
        self.plan.set_up_tier(environment.disk());
        self.note_disk(&environment, &outcome, depth);
        let inner = Arc::new(Mutex::new(Vec::new()));
        if deep && depth <= DEPTH {
            let to = inner.clone();
            environment.disk().observe_syncs(move |moment| to.lock().push(moment));
        }
        let options = self.options_of(&mut random, deep);
        // By this crash, or by one before it, which the state's name tells.
        let is_damaged = replay.contains("damaged:");
        let recovered = catch(|| {
            self.recover(&environment, (options, seed), model, (deep && depth == 1, !deep), is_damaged)
        });
        environment.disk().stop_observing();
        environment.shutdown();
        let again = deep.then(|| environment.disk().moment());
        environment.disk().abandon_requests();
        let harmless = matches!(crash, Crash::Damaged { .. }) && outcome.damaged > 0;
        let found = match recovered {
            Ok(Ok(found)) => found,
            Ok(Err(Wrong::Reported(_))) if harmless => {
                self.coverage.add("damage that was noticed and reported", 1);
                return true;
            }
            Ok(Err(what)) => return self.fail(replay, what),
            Err(panic) => return self.fail(replay, Wrong::Silent(panic)),
        };
        if harmless {
            self.coverage.add("damage that was repaired or did not matter", 1);
        }
        self.coverage.most("most pages lost to a crash in one database", found.lost_pages);
        if let Some(again) = again.filter(|_| !found.states.is_empty()) {
            let moments = std::mem::take(&mut *inner.lock());
            // What was found is what must be found again, however recovery is disturbed.
            let settled = Model::exactly(found.states, found.rivals, found.lanes);
            self.coverage.add("states: recovered a second time", 1);
            self.try_state(&again, &settled, Crash::Random(seed), format!("{replay}+again"), DEPTH + 1);
            if !harmless && !moments.is_empty() && depth <= DEPTH {
                // What only the process's end left unsynced may still be lost while recovery makes it
                // durable.
                let allowed = if crash == Crash::ProcessOnly { model } else { &settled };
                self.crash_recovery(&moments, allowed, &replay, &mut random, depth);
            }
        }
        true
    }

    /// How a state is opened. One that is crashed and opened again after that is opened without the clean
    /// tier now and then, or with one that keeps nothing: the next start must not believe what the files from
    /// before say.
    fn options_of(&mut self, random: &mut Random, deep: bool) -> Options {
        let mut options = self.options.clone();
        if deep && self.plan.has_tier() {
            match random.below(4) {
                0 => {
                    options.extension.enabled = false;
                    self.coverage.add("states opened without the buffer pool extension", 1);
                }
                1 => {
                    options.extension.restart = ExtensionRestart::Discard;
                    self.coverage.add("states whose buffer pool extension discards what was kept", 1);
                }
                _ => {}
            }
        }
        options
    }

    fn fail(&mut self, replay: String, what: Wrong) -> bool {
        self.failures.push(Failure { replay, what });
        true
    }

    /// Crashes a recovery at some of its syncs.
    fn crash_recovery(
        &mut self,
        moments: &[Moment],
        allowed: &Model,
        replay: &str,
        random: &mut Random,
        depth: u32,
    ) {
        for _ in 0..2 {
            let at = random.below(moments.len());
            let seed = random.next_u64();
            let crash = [Crash::Random(seed), Crash::Torn { survivors: seed, seed }][random.below(2)];
            let replay = format!("{replay}+{at}/{}", describe(crash));
            self.try_state(&moments[at], allowed, crash, replay, depth + 1);
        }
    }

    /// Opens and checks.
    fn recover(
        &mut self,
        environment: &Arc<SimulatedEnvironment>,
        (options, seed): (Options, u64),
        model: &Model,
        (use_it, is_last): (bool, bool),
        is_damaged: bool,
    ) -> Result<Found, Wrong> {
        let shared: Arc<dyn Environment> = environment.clone();
        STAGE.set("opening");
        environment.run_until_complete(async {
            let db = Database::open_in(shared.clone(), options).await?;
            environment.disk().stop_observing();
            let report = db.report();
            self.coverage
                .add("states with torn pages restored", u64::from(!report.restored_pages.is_empty()));
            self.coverage.add("torn pages restored", report.restored_pages.len() as u64);
            self.coverage.add("states with transactions rolled back", u64::from(report.rolled_back > 0));
            let report_prepared = report.prepared;
            self.coverage.add("states with prepared transactions", u64::from(report_prepared > 0));
            self.coverage.add("states with redo applied", u64::from(report.redo_applied > 0));
            let history = db.transaction_system().status().history_length;
            self.coverage.add("states with history to purge", u64::from(history > 0));
            // A file whose beginning is damaged cannot be recognised as a leftover, and stays.
            let found = match is_damaged {
                true => verify_contents(&db, model).await?,
                false => verify(&db, model).await?,
            };
            if use_it && !found.states.is_empty() {
                self.coverage.add("states: gone on with", 1);
                go_on(&db, &found).await?;
                if !is_damaged {
                    check_files(&db)?;
                }
            }
            if is_last && found.lanes.is_some() {
                self.coverage.add("states: prepared transactions ended", u64::from(report_prepared > 0));
                end_all(&db, &found.lanes).await?;
            }
            self.note_tier(&db.extension());
            // A settled model, of a recovery that was crashed, has none.
            check_copies(&shared, &self.options, model, seed, &mut self.coverage).await?;
            Ok(found)
        })
    }

    fn note_tier(&mut self, tier: &ExtensionStatus) {
        let coverage = &mut self.coverage;
        coverage.add("states with pages of the buffer pool extension kept", u64::from(tier.restored > 0));
        coverage.add("pages of the buffer pool extension kept in recovered states", tier.restored);
        coverage.add("states with pages served from the buffer pool extension", u64::from(tier.hits > 0));
        coverage.add("pages served from the buffer pool extension in recovered states", tier.hits);
        for (what, count) in [
            ("pages of the buffer pool extension refused: another page", tier.mismatches_misdirected),
            ("pages of the buffer pool extension refused: another version", tier.mismatches_stale),
            ("pages of the buffer pool extension refused: damaged", tier.mismatches_corrupt),
        ] {
            coverage.add(what, count);
        }
    }

    fn note_disk(&mut self, environment: &SimulatedEnvironment, outcome: &CrashOutcome, depth: u32) {
        let coverage = &mut self.coverage;
        coverage.add("states", 1);
        coverage.add("states: crash of a recovery, depth 2", u64::from(depth == 2));
        coverage.add("states: crash of a recovery, depth 3", u64::from(depth == 3));
        coverage.add("states: crash of a recovery, depth 4", u64::from(depth == 4));
        coverage.add("unsynced writes lost", (outcome.units - outcome.kept.min(outcome.units)) as u64);
        coverage.add("unsynced writes kept", outcome.kept as u64);
        coverage.add("writes torn", outcome.torn as u64);
        coverage.add("states with reordered writes", u64::from(outcome.reordered));
        coverage.most("most unsynced units at a crash", outcome.units as u64);
        let storage: &dyn disk::Storage = &**environment.disk();
        let inspected = untorn::catalog::inspect(storage, Path::new("/data"));
        let text = inspected.map(|found| found.json).unwrap_or_default();
        for (kind, name) in [
            ("\"create\"", "states with CREATE TABLE pending"),
            ("\"drop\"", "states with DROP TABLE pending"),
            ("\"replace\"", "states with TRUNCATE pending"),
            ("\"rename\"", "states with RENAME pending"),
            ("\"build_index\"", "states with an index half made or dropped"),
        ] {
            coverage.add(name, u64::from(text.contains(kind)));
        }
    }
}

/// A crash in words that [`parse`] understands.
pub fn describe(crash: Crash) -> String {
    match crash {
        Crash::Exactly(bits) => format!("exactly:{bits}"),
        Crash::Torn { survivors, seed } => format!("torn:{survivors}:{seed}"),
        Crash::Random(seed) => format!("random:{seed}"),
        Crash::Damaged { seed, files } => format!("damaged:{seed}:{files}"),
        Crash::ProcessOnly => "process".to_owned(),
    }
}

/// The crash that [`describe`] described.
pub fn parse(text: &str) -> Option<Crash> {
    let mut parts = text.split(':');
    let kind = parts.next()?;
    let mut number = || parts.next().and_then(|part| part.parse::<u64>().ok());
    Some(match kind {
        "exactly" => Crash::Exactly(number()?),
        "torn" => Crash::Torn { survivors: number()?, seed: number()? },
        "random" => Crash::Random(number()?),
        "damaged" => {
            let seed = number()?;
            let file = parts.next()?;
            let files = DAMAGED.into_iter().find(|known| *known == file)?;
            Crash::Damaged { seed, files }
        }
        "process" => Crash::ProcessOnly,
        _ => return None,
    })
}

/// Every state has a seed of its own, which follows from how it is reached.
fn seed_of(replay: &str) -> u64 {
    let mix = |seed: u64, byte: u8| Random::new(seed ^ u64::from(byte)).next_u64();
    replay.bytes().fold(0x7057, mix)
}
