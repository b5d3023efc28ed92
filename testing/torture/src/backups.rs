//! Backups as an actor, and their oracle.
//!
//! An actor makes one backup after the other while all others act, whole ones and such that add to an earlier
//! one. A crash may come at any moment of one. Afterwards every copy is asked for: what
//! [`untorn::restore_in`] makes a data directory of must be complete, sound, and one moment between the call
//! of the backup and its end; a backup that was acknowledged must be among that; and what is refused must be
//! refused as a data directory too.
//!
//! A [`struct@Copy`] knows what may be found in it: each actor's states from the one that was acknowledged
//! at the call, up to the copy's end. That they are of one moment for all is seen by the accounts, whose
//! balances follow from the rows of all sessions.

use crate::check::{Found, STAGE, Wrong, verify};
use crate::coverage::Coverage;
use crate::model::{ActorState, Journal, Model};
use crate::rivals::Worlds;
use crate::workload::{PATIENCE, Stage, is_conflict};
use disk::{Environment, Random};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use untorn::asynchronous::Database;
use untorn::{BackupOptions, Error, Options};

/// Where backups are made.
pub const BACKUPS: &str = "/backups";

/// A finished copy is restored in one state in this many: its files do not change any more.
const FINISHED_ONE_IN: usize = 6;

/// A backup of a history.
#[derive(Clone, Debug)]
pub struct Copy {
    /// By actor, what it may hold.
    allowed: Vec<Vec<Arc<ActorState>>>,
    /// It was acknowledged: from now on it is there, and nothing is added to it.
    finished: bool,
    /// The copy that it adds to.
    since: Option<usize>,
}

impl Copy {
    /// A copy that is begun now.
    pub fn of(journals: &[Journal]) -> Copy {
        let now = |journal: &Journal| {
            std::iter::once(&journal.acknowledged).chain(&journal.possible).cloned().collect()
        };
        Copy { allowed: journals.iter().map(now).collect(), finished: false, since: None }
    }

    /// What it may hold, as a model.
    fn model(&self) -> Model {
        let journals = self.allowed.iter().map(|states| Journal {
            acknowledged: states.first().cloned().unwrap_or_default(),
            possible: states.get(1..).unwrap_or_default().to_vec(),
        });
        Model { journals: journals.collect(), ..Model::exactly(Vec::new(), Worlds::default(), None) }
    }
}

impl Model {
    /// A backup is called for, which may add to another; its number.
    fn begin_copy(&mut self, since: Option<usize>) -> usize {
        self.copies.push(Arc::new(Copy { since, ..Copy::of(&self.journals) }));
        self.copies.len() - 1
    }

    /// A finished copy, if there is one.
    fn any_copy(&self, random: &mut Random) -> Option<usize> {
        let finished: Vec<usize> =
            (0..self.copies.len()).filter(|copy| self.copies[*copy].finished).collect();
        (!finished.is_empty()).then(|| finished[random.below(finished.len())])
    }

    /// A step that may get into the copies under way.
    pub(crate) fn note_in_copies(&mut self, actor: usize, state: &Arc<ActorState>) {
        for copy in self.copies.iter_mut().filter(|copy| !copy.finished) {
            Arc::make_mut(copy).allowed[actor].push(state.clone());
        }
    }

    /// The backup was acknowledged.
    fn end_copy(&mut self, number: usize) {
        Arc::make_mut(&mut self.copies[number]).finished = true;
    }

    /// The backup was refused before it made anything.
    fn cancel_copy(&mut self) {
        self.copies.pop();
    }
}

fn directory_of(number: usize) -> PathBuf {
    Path::new(BACKUPS).join(number.to_string())
}

/// Makes backups, over and over; some are given up on the way.
pub async fn backups(stage: Stage, seed: u64) {
    let mut random = Random::new(seed);
    loop {
        stage.sleep(Duration::from_micros(random.below(6_000) as u64)).await;
        let mut options = BackupOptions::default().timeout(PATIENCE);
        let number = {
            let mut model = stage.model.lock();
            let since = if random.one_in(2) { model.any_copy(&mut random) } else { None };
            if let Some(base) = since {
                options = options.since(directory_of(base));
            }
            model.begin_copy(since)
        };
        if random.one_in(2) {
            // So that there is more time for things to happen meanwhile.
            options = options.bytes_per_second(4 << 20 << random.below(6));
        }
        match stage.db.backup_with(directory_of(number), options).await {
            Ok(_) => stage.model.lock().end_copy(number),
            Err(error) if is_conflict(&error) => stage.model.lock().cancel_copy(),
            Err(error) => return stage.fail("backup", &error),
        }
    }
}

/// Asks for the copies in a state that a crash has left.
///
/// # Errors
/// What is wrong.
pub async fn check_copies(
    environment: &Arc<dyn Environment>,
    options: &Options,
    model: &Model,
    seed: u64,
    coverage: &mut Coverage,
) -> Result<(), Wrong> {
    let mut random = Random::new(seed ^ 0xBAC);
    for (number, copy) in model.copies.iter().enumerate() {
        if copy.finished && !random.one_in(FINISHED_ONE_IN) {
            continue;
        }
        STAGE.set("restoring a backup");
        let (source, target) = (directory_of(number), Path::new("/restored").join(number.to_string()));
        let mut options = options.clone();
        options.extension.enabled = false;
        let restored = untorn::restore_in(&**environment.storage(), &source, &target, |_| {});
        match restored {
            Ok(_) => {
                options.directory = target;
                let db = Database::open_in(environment.clone(), options).await?;
                let Found { rows, .. } =
                    verify(&db, &copy.model()).await.map_err(|what| of_copy(number, what))?;
                coverage.add("backups restored", 1);
                coverage.add("backups restored that add to others", u64::from(copy.since.is_some()));
                coverage.add("backups restored that were not acknowledged", u64::from(!copy.finished));
                coverage.most("most rows in a restored backup", rows);
            }
            Err(error) if copy.finished => {
                let lost = format!("it was acknowledged, and is not restored: {error}");
                return Err(of_copy(number, Wrong::Silent(lost)));
            }
            Err(_) => {
                coverage.add("backups cut by a crash", 1);
                refuse_as_data(environment, options, &source, coverage).await?;
            }
        }
    }
    Ok(())
}

/// A copy that is not whole is no data directory, if there is anything of it.
async fn refuse_as_data(
    environment: &Arc<dyn Environment>,
    mut options: Options,
    directory: &Path,
    coverage: &mut Coverage,
) -> Result<(), Wrong> {
    let storage = environment.storage();
    let there = |error: disk::Error| Wrong::Reported(error.to_string());
    if !storage.exists(directory).map_err(there)? || storage.list(directory).map_err(there)?.is_empty() {
        return Ok(());
    }
    coverage.add("backups cut by a crash that left files", 1);
    options.directory = directory.to_owned();
    match Database::open_in(environment.clone(), options).await {
        Err(Error::Backup { .. }) => Ok(()),
        Err(error) => Err(Wrong::Silent(format!("half a backup is refused as something else: {error}"))),
        Ok(_) => Err(Wrong::Silent(format!("half a backup, {}, is opened", directory.display()))),
    }
}

fn of_copy(number: usize, what: Wrong) -> Wrong {
    let name = |why: String| format!("backup {number}: {why}");
    match what {
        Wrong::Silent(why) => Wrong::Silent(name(why)),
        // It was complete: whatever is wrong with it, nobody has said so in time.
        Wrong::Reported(why) => Wrong::Silent(name(why)),
    }
}
