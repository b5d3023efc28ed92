//! Rolling back, while clients are served, what had not committed when the engine stopped.
//!
//! Such a transaction goes on as if its session had just left: its id is active, so nobody sees its changes
//! and a transaction that wants a row it changed waits for it, until its rollback has come to that row's end.
//! The tables it changed are [held](TableSource::hold), so that their definitions stay until then.
//!
//! Which tables those are stands in its log. Short logs are gone through before the first client comes; for a
//! long one (a killed UPDATE of everything) that is done in the background as well, and all tables are held
//! meanwhile. Transactions with short logs are rolled back first: their rows are free soon.
//!
//! A stop in between loses little: the log is cut after what has been undone, again and again, and the next
//! start goes on there. A log that is damaged leaves its transaction as it is, and the others go on.
//!
//! What may be different another time is **tried again**, for as long as the engine runs and at each start: a
//! full disk, a read that failed, a table whose file is not there. Such a transaction stays unfinished, so
//! that nobody takes what it left in that table for committed when the file is put back. Its other tables are
//! rolled back meanwhile. That table is not held, so that it can be dropped or discarded, which ends the
//! matter too.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use disk::Event;
use parking_lot::Mutex;

use crate::error::Error;
use crate::lock::{Owner, either};
use crate::purge::is_damage;
use crate::retry::yield_now;
use crate::rollback::{RETRY, RollBack, hold_again, is_final};
use crate::system::System;
use crate::table::{TableHold, TableSource};
use crate::transaction::UndoMark;
use crate::undo::UndoLog;
use crate::undo::recovery::{Survey, Unfinished};

/// Pages of undo logs read before clients are served.
const PAGES_AT_START: usize = 256;
/// Progress is written to the log as often.
const REPORT: Duration = Duration::from_secs(10);

/// How far it is.
#[derive(Default)]
pub(crate) struct CrashRollback {
    /// Transactions that have not been rolled back.
    pub transactions: AtomicU64,
    /// Their undo records, as far as counted.
    pub records: AtomicU64,
    stopped: AtomicBool,
    stopping: Event,
    /// Set when the task has ended; `None`: there was nothing to do.
    ended: Mutex<Option<Event>>,
}

/// Holds of all tables, by table id.
type All = BTreeMap<u64, TableHold>;

/// One unfinished transaction.
struct Job {
    survey: Survey,
    owner: Arc<Owner>,
    /// Its tables, with their ids.
    holds: BTreeMap<u64, TableHold>,
    /// A failure was reported.
    complained: bool,
}

/// Sets the event when the task ends, also when it is dropped at a shutdown.
struct Ends(Event);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.set();
    }
}

impl CrashRollback {
    /// Begins. The transactions are active already.
    pub async fn start(
        system: &Arc<System>,
        tables: Arc<dyn TableSource>,
        unfinished: Vec<(Unfinished, Arc<Owner>)>,
    ) -> Result<(), Error> {
        if unfinished.is_empty() {
            return Ok(());
        }
        let progress = &system.crash_rollback;
        progress.transactions.store(unfinished.len() as u64, Ordering::Relaxed);
        let mut pages = PAGES_AT_START;
        let mut jobs = Vec::new();
        for (log, owner) in unfinished {
            let mut survey = Survey::new(log);
            while pages > 0 {
                pages -= 1;
                match survey.step(&system.undo).await {
                    Ok(false) => {}
                    Ok(true) => break,
                    // The task meets it again, and says so or finds it gone.
                    Err(_) => break,
                }
            }
            jobs.push(Job { survey, owner, holds: BTreeMap::new(), complained: false });
        }
        let unknown = jobs.iter().any(|job| job.survey.end.is_none());
        let all = All::from_iter(if unknown { tables.hold_all() } else { Vec::new() });
        for job in &mut jobs {
            job.hold(|table| all.get(&table).cloned().or_else(|| tables.hold(table).ok().flatten()));
            progress.records.fetch_add(job.survey.records, Ordering::Relaxed);
        }
        let event = Event::new();
        *progress.ended.lock() = Some(event.clone());
        let task = run(system.clone(), tables, jobs, all, Ends(event));
        system.env.spawn_worker("rollback after start", Box::pin(task));
        Ok(())
    }

    /// Waits for the end.
    pub async fn ended(&self) {
        let ended = self.ended.lock().clone();
        if let Some(event) = ended {
            event.wait().await;
        }
    }

    /// Stops it where it is; the next start goes on.
    pub async fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
        self.stopping.set();
        self.ended().await;
    }

    fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::SeqCst)
    }

    /// Waits before another try, unless it is to stop.
    async fn pause(&self, system: &System, pause: Duration) {
        either(system.env.sleep(pause), self.stopping.wait()).await;
    }
}

impl Job {
    /// Holds its tables, if they are known.
    fn hold(&mut self, hold: impl Fn(u64) -> Option<TableHold>) {
        if self.survey.end.is_some() {
            let tables = self.survey.tables.iter();
            self.holds = tables.filter_map(|table| Some((*table, hold(*table)?))).collect();
        }
    }
}

/// Whether another try may end otherwise.
fn may_pass(error: &Error) -> bool {
    !is_damage(error) && !is_final(error)
}

async fn run(system: Arc<System>, tables: Arc<dyn TableSource>, jobs: Vec<Job>, mut all: All, ends: Ends) {
    let progress = &system.crash_rollback;
    let (mut known, unknown): (Vec<Job>, Vec<Job>) =
        jobs.into_iter().partition(|job| job.survey.end.is_some());
    // Kept until a restart: what failed still has its changes in the tables.
    let mut failed: Vec<TableHold> = Vec::new();
    let mut unknown = unknown.into_iter();
    let mut surveyed = Vec::new();
    // To be tried again.
    let mut later = Vec::new();
    let (mut pause, mut before) = (RETRY.0 / 2, progress.transactions.load(Ordering::Relaxed));
    tracing::info!(
        transactions = progress.transactions.load(Ordering::Relaxed),
        records = progress.records.load(Ordering::Relaxed),
        "rolling back in the background what had not committed before the last stop"
    );
    loop {
        known.sort_by_key(|job| std::cmp::Reverse(job.survey.records));
        while let Some(mut job) = known.pop() {
            let Err(error) = roll_back(&system, &*tables, &mut job).await else { continue };
            if progress.is_stopped() {
                break;
            }
            let transaction = job.survey.log.trx_id;
            if may_pass(&error) {
                if !job.complained {
                    tracing::error!(
                        transaction, %error,
                        "an unfinished transaction cannot be rolled back as a whole and will be tried again; what is left of it stays locked"
                    );
                    job.complained = true;
                }
                later.push(job);
                continue;
            }
            tracing::error!(
                transaction, %error,
                "an unfinished transaction cannot be rolled back; its rows stay locked and its tables as they are until a restart"
            );
            failed.extend(std::mem::take(&mut job.holds).into_values());
        }
        let Some(mut job) = unknown.next() else {
            if progress.is_stopped() || surveyed.is_empty() && later.is_empty() {
                break;
            }
            if surveyed.is_empty() {
                all.clear();
                let unfinished = progress.transactions.load(Ordering::Relaxed);
                pause = if unfinished < before { RETRY.0 } else { (pause * 2).min(RETRY.1) };
                before = unfinished;
                progress.pause(&system, pause).await;
                known = std::mem::take(&mut later);
                continue;
            }
            // Now that all tables are known, those that none of the logs is about are free.
            all.clear();
            known = std::mem::take(&mut surveyed);
            continue;
        };
        match survey(&system, &mut job).await {
            Ok(()) if progress.is_stopped() => break,
            Ok(()) => {
                job.hold(|table| all.get(&table).cloned());
                surveyed.push(job);
            }
            Err(error) => {
                tracing::error!(
                    transaction = job.survey.log.trx_id, %error,
                    "the undo log of an unfinished transaction is damaged; its rows stay locked and all tables as they are until a restart"
                );
                failed.extend(all.values().cloned());
            }
        }
    }
    drop(all);
    if !progress.is_stopped() && failed.is_empty() {
        tracing::info!("all that had not committed before the last stop has been rolled back");
    }
    system.crash_rollback_holds.lock().append(&mut failed);
    drop(system);
    drop(ends);
}

async fn survey(system: &System, job: &mut Job) -> Result<(), Error> {
    let progress = &system.crash_rollback;
    let (survey, mut pause) = (&mut job.survey, RETRY.0);
    while !progress.is_stopped() {
        let before = survey.records;
        match survey.step(&system.undo).await {
            Ok(done) => {
                progress.records.fetch_add(survey.records - before, Ordering::Relaxed);
                if done {
                    return Ok(());
                }
                yield_now().await;
            }
            Err(error) if may_pass(&error) => {
                if !job.complained {
                    let transaction = survey.log.trx_id;
                    tracing::error!(transaction, %error, "the undo log of an unfinished transaction is tried again");
                    job.complained = true;
                }
                progress.pause(system, pause).await;
                pause = (pause * 2).min(RETRY.1);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

async fn roll_back(system: &Arc<System>, tables: &dyn TableSource, job: &mut Job) -> Result<(), Error> {
    let progress = &system.crash_rollback;
    let Unfinished { slot, trx_id, header, prepared: _ } = job.survey.log;
    let Some(end) = job.survey.end else { return Ok(()) };
    let mut log = UndoLog::resurrect(slot, trx_id, header, end, job.survey.records);
    job.owner.undo_records.store(log.records, Ordering::Relaxed);
    let find = |id: u64| tables.table_to_undo(id);
    let slot = system.views.register();
    let mut rollback = RollBack::new(&log, UndoMark::START.0);
    if job.complained {
        let ids = job.survey.tables.iter().copied();
        hold_again(tables, ids, &mut job.holds, &mut rollback.unreached);
    }
    let mut reported = system.env.now();
    let result = loop {
        let before = rollback.undone;
        let turn = rollback.turn(system, &mut log, &find, &slot).await;
        let undone = rollback.undone - before;
        progress.records.fetch_sub(undone, Ordering::Relaxed);
        job.owner.undo_records.fetch_sub(undone, Ordering::Relaxed);
        match turn {
            Ok(true) => break Ok(()),
            Ok(false) if progress.is_stopped() => break Err(Error::Killed),
            Ok(false) => yield_now().await,
            Err(error) => break Err(error),
        }
        let now = system.env.now();
        if now.saturating_sub(reported) > REPORT {
            reported = now;
            tracing::info!(
                transaction = trx_id,
                undone = rollback.undone,
                left = progress.records.load(Ordering::Relaxed),
                "rolling back in the background"
            );
        }
    };
    drop(slot);
    if let Err(error) = result {
        // Another try begins where the log was cut last.
        progress.records.fetch_add(rollback.undone - rollback.cut, Ordering::Relaxed);
        job.owner.undo_records.store(log.records, Ordering::Relaxed);
        (job.survey.end, job.survey.records) = (log.end(), log.records);
        job.holds.retain(|table, _| !rollback.unreached.tables.contains(table));
        return Err(error);
    }
    system.active.end(trx_id, None, |_| ());
    log.release(&system.undo);
    system.locks.release_all(&job.owner);
    job.holds.clear();
    progress.transactions.fetch_sub(1, Ordering::Relaxed);
    Ok(())
}
