//! Every I/O call fails once.
//!
//! A scene (making a directory, running on one, recovering one) is played once to count its calls to the
//! disk, and then again and again with call 0, 1, 2, … failing: EIO, no space, a transfer in two steps.
//! Whatever the engine answers must be true: an error somewhere, or none, but no acknowledged commit may be
//! missing after a restart on a sound disk, nothing may panic and nothing may wait for ever. Afterwards the
//! process ends, or the power goes: at the scene's end, or (with one fault in four) soon after the failing
//! call, while the engine still deals with it.

use crate::backups::check_copies;
use crate::check::{STAGE, Wrong, verify, verify_contents};
use crate::coverage::Coverage;
use crate::explore::{Failure, catch};
use crate::history::{Plan, act, record};
use crate::model::{Model, SharedModel};
use crate::workload::prepare;
use disk::{Crash, Environment, Fault, FaultKind, Moment, Random, SimulatedEnvironment, SimulatedStorage};
use parking_lot::Mutex;
use std::sync::Arc;
use untorn::asynchronous::Database;

/// The ways in which a call is made to fail.
pub const KINDS: [FaultKind; 3] = [FaultKind::Eio, FaultKind::Enospc, FaultKind::Short];

/// Faults that are tried with each call: each kind, and one of them with a power loss soon after.
pub const FAULTS_PER_CALL: usize = KINDS.len() + 1;

/// Calls between a failure and the power loss that follows it, at most.
const POWER_LOSS_WITHIN: usize = 30;

/// What goes wrong in a scene.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// The call that fails, and how.
    pub fault: Fault,
    /// The call from which on there is no power, if that comes to it.
    pub power_loss: Option<u64>,
}

impl Trouble {
    /// One call that fails.
    pub fn one(call: u64, kind: FaultKind) -> Trouble {
        Trouble { fault: Fault { call, kind }, power_loss: None }
    }

    /// In words that [`Trouble::parse`] understands.
    fn describe(&self) -> String {
        let Fault { call, kind } = self.fault;
        let power_loss = self.power_loss.map(|call| format!(":{call}"));
        format!("{call}:{kind:?}{}", power_loss.unwrap_or_default())
    }

    /// The one that was described so.
    pub fn parse(text: &str) -> Option<Trouble> {
        let mut parts = text.split(':');
        let call = parts.next()?.parse().ok()?;
        let name = parts.next()?;
        let kind = KINDS.into_iter().find(|known| format!("{known:?}") == name)?;
        let power_loss = match parts.next() {
            Some(call) => Some(call.parse().ok()?),
            None => None,
        };
        Some(Trouble { fault: Fault { call, kind }, power_loss })
    }
}

/// Virtual steps after which a scene counts as hanging.
const STEPS_MAX: u64 = 3_000_000;

/// What is going on while a call fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scene {
    /// A directory is made, with its first tables.
    Create,
    /// A database is opened, used (changes, definitions, checkpoints, purge) and closed.
    Run,
    /// A database is opened after a crash.
    Recover,
}

/// All scenes.
pub const SCENES: [Scene; 3] = [Scene::Create, Scene::Run, Scene::Recover];

/// Where a scene begins.
struct Start {
    disk: Moment,
    crash: Crash,
    model: Model,
}

/// A scene with what its calls are.
pub struct Play {
    plan: Plan,
    scene: Scene,
    start: Start,
    /// I/O calls of the scene when nothing fails.
    pub calls: u64,
}

/// What a performance of a scene came to.
struct Outcome {
    disk: Arc<SimulatedStorage>,
    model: Model,
    /// The error that ended it.
    error: Option<String>,
}

impl Play {
    /// Prepares a scene.
    ///
    /// # Errors
    /// When it fails without a fault.
    pub fn new(scene: Scene, seed: u64) -> Result<Play, Failure> {
        let mut plan = Plan::new(seed);
        plan.polls = 800;
        let start = match scene {
            Scene::Create => Start {
                disk: SimulatedStorage::new(seed).moment(),
                crash: Crash::ProcessOnly,
                model: Model::new(false),
            },
            Scene::Run | Scene::Recover => {
                let mut history = record(&plan);
                // A run begins on a directory that was left by a crash right after its first tables were
                // made, a recovery on one that was in full use.
                let ready = history.points.iter().position(|point| point.model.prepared).unwrap_or(0);
                let at = if scene == Scene::Run { ready } else { history.points.len() - 1 };
                let point = history.points.swap_remove(at);
                Start { disk: point.moment, crash: Crash::Random(seed), model: point.model }
            }
        };
        let mut play = Play { plan, scene, start, calls: 0 };
        let sound = catch(|| play.perform(None)).map_err(|panic| play.failure(None, Wrong::Silent(panic)))?;
        if let Some(error) = sound.error {
            return Err(play.failure(None, Wrong::Silent(error)));
        }
        play.calls = sound.disk.calls();
        Ok(play)
    }

    /// What is tried with a call.
    pub fn faults(&self, call: u64) -> Vec<Trouble> {
        let mut random = Random::new(self.plan.seed ^ call << 8 ^ 0xFA17);
        let mut faults: Vec<Trouble> = KINDS.into_iter().map(|kind| Trouble::one(call, kind)).collect();
        let power_loss = Some(call + 1 + random.below(POWER_LOSS_WITHIN) as u64);
        faults.push(Trouble { power_loss, ..faults[random.below(KINDS.len())] });
        faults
    }

    fn failure(&self, trouble: Option<Trouble>, what: Wrong) -> Failure {
        let fault = trouble.map_or_else(|| "none".to_owned(), |trouble| trouble.describe());
        Failure { replay: format!("{}/{:?}/{fault}", self.plan.seed, self.scene), what }
    }

    /// Plays the scene with a fault.
    fn perform(&self, trouble: Option<Trouble>) -> Outcome {
        let (disk, _) = self.start.disk.crash(self.start.crash);
        if let Some(Trouble { fault, power_loss }) = trouble {
            disk.plan(fault);
            if let Some(call) = power_loss {
                disk.plan(Fault { call, kind: FaultKind::PowerLoss });
            }
        }
        let environment = SimulatedEnvironment::with_storage(self.plan.seed, disk.clone());
        environment.limit_steps(STEPS_MAX);
        let model: SharedModel = Arc::new(Mutex::new(self.start.model.clone()));
        let shared: Arc<dyn Environment> = environment.clone();
        STAGE.set("playing the scene");
        let error = environment.run_until_complete(async {
            let db = match Database::open_in(shared, self.plan.options()).await {
                Ok(db) => db,
                Err(error) => return Some(error.to_string()),
            };
            let mut failure = match self.scene {
                Scene::Create => prepare(&db, &model).await.err().map(|error| error.to_string()),
                Scene::Run | Scene::Recover => match self.settle(&db, &model, trouble.is_some()).await {
                    Ok(()) if self.scene == Scene::Run => act(&db, &model, &self.plan).await,
                    Ok(()) => None,
                    Err(Wrong::Reported(why)) => Some(why),
                    // A lie needs no restart to be one.
                    Err(Wrong::Silent(why)) => Some(format!("SILENT: {why}")),
                },
            };
            STAGE.set("closing");
            // Closing must end, whatever state the engine is in.
            if let Err(error) = db.close().await {
                failure.get_or_insert(error.to_string());
            }
            failure
        });
        environment.shutdown();
        let model = model.lock().clone();
        Outcome { disk, model, error }
    }

    /// Learns which of the allowed states was found, so that the actors go on from it. Where a call has
    /// failed (`is_disturbed`), the start may have left a file for the next one to remove.
    async fn settle(&self, db: &Database, model: &SharedModel, is_disturbed: bool) -> Result<(), Wrong> {
        let allowed = model.lock().clone();
        let found = match is_disturbed {
            true => verify_contents(db, &allowed).await?,
            false => verify(db, &allowed).await?,
        };
        if allowed.prepared {
            *model.lock() = Model::exactly(found.states, found.rivals, found.lanes);
        }
        Ok(())
    }

    /// Lets one call fail, restarts on a sound disk and compares.
    ///
    /// # Errors
    /// What was wrong.
    pub fn try_fault(&self, trouble: Trouble, coverage: &mut Coverage) -> Result<(), Failure> {
        coverage.add(
            match self.scene {
                Scene::Create => "calls failed while a directory is made",
                Scene::Run => "calls failed while running",
                Scene::Recover => "calls failed while recovering",
            },
            1,
        );
        let outcome = catch(|| self.perform(Some(trouble)))
            .map_err(|panic| self.failure(Some(trouble), Wrong::Silent(panic)))?;
        match &outcome.error {
            Some(error) if error.contains("SILENT") || error.contains("internal error") => {
                return Err(self.failure(Some(trouble), Wrong::Silent(error.clone())));
            }
            Some(_) => coverage.add("faults that ended in an error", 1),
            None => coverage.add("faults that were got over", 1),
        }
        let mut random = Random::new(self.plan.seed ^ trouble.fault.call);
        let power_loss = Crash::Random(random.next_u64());
        let crash = match trouble.power_loss {
            Some(_) => power_loss,
            None => [Crash::ProcessOnly, power_loss][random.below(2)],
        };
        coverage.add(
            match (trouble.power_loss, crash) {
                (Some(_), _) => "faults with a power loss soon after",
                (None, Crash::ProcessOnly) => "faults with the end of the process after the scene",
                (None, _) => "faults with a power loss after the scene",
            },
            1,
        );
        let (disk, _) = outcome.disk.moment().crash(crash);
        let environment = SimulatedEnvironment::with_storage(self.plan.seed, disk);
        environment.limit_steps(STEPS_MAX);
        let checked = catch(|| {
            let shared: Arc<dyn Environment> = environment.clone();
            STAGE.set("opening after the fault");
            environment.run_until_complete(async {
                let db = Database::open_in(shared.clone(), self.plan.options()).await?;
                verify(&db, &outcome.model).await?;
                check_copies(&shared, &self.plan.options(), &outcome.model, trouble.fault.call, coverage)
                    .await
            })
        });
        environment.shutdown();
        let after = |what: Wrong| match what {
            Wrong::Silent(why) => {
                Wrong::Silent(format!("after a restart ({crash:?}; the run said {:?}): {why}", outcome.error))
            }
            Wrong::Reported(why) => Wrong::Reported(format!(
                "after a restart ({crash:?}; the run said {:?}): {why}",
                outcome.error
            )),
        };
        match checked {
            Ok(Ok(())) => Ok(()),
            Ok(Err(what)) => Err(self.failure(Some(trouble), after(what))),
            Err(panic) => Err(self.failure(Some(trouble), after(Wrong::Silent(panic)))),
        }
    }
}
