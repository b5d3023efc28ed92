//! The text of SHOW ENGINE INNODB STATUS, in the layout that tools take apart: headings framed by lines of dashes of the
//! heading's length, fixed sentences. Every figure is measured; a line of InnoDB's that this engine has no figure for is left
//! out. Rates are averages since the last time somebody asked.

use std::fmt::Write as _;
use std::time::Duration;

use parking_lot::Mutex;

use crate::session::state::SessionState;

/// Counters as they were when somebody last asked, in this process.
static EARLIER: Mutex<Option<Counters>> = Mutex::new(None);

/// What rates are made of.
#[derive(Clone, Copy, Default)]
struct Counters {
    at: Duration,
    reads: u64,
    writes: u64,
    syncs: u64,
    log_writes: u64,
    young: u64,
    not_young: u64,
    created: u64,
    pages_written: u64,
    requests: u64,
    misses: u64,
    inserted: u64,
    updated: u64,
    deleted: u64,
    rows_read: u64,
}

fn heading(text: &mut String, name: &str) {
    let dashes = "-".repeat(name.len());
    let _ = writeln!(text, "{dashes}\n{name}\n{dashes}");
}

/// The whole text.
pub fn text(state: &SessionState) -> String {
    let database = &state.database;
    let (transactions, pool, redo) =
        (database.transaction_system().status(), database.store().status(), database.redo().status());
    let now = Counters {
        at: database.environment().now(),
        reads: pool.pages_read,
        writes: pool.pages_written + redo.groups_written,
        syncs: redo.syncs,
        log_writes: redo.groups_written,
        young: pool.pages_made_young,
        not_young: pool.pages_made_not_young,
        created: pool.pages_created,
        pages_written: pool.pages_written,
        requests: pool.read_requests,
        misses: pool.reads,
        inserted: transactions.rows_inserted,
        updated: transactions.rows_updated,
        deleted: transactions.rows_deleted,
        rows_read: transactions.rows_read,
    };
    let before = EARLIER.lock().replace(now).unwrap_or_default();
    let seconds = now.at.saturating_sub(before.at).as_secs_f64().max(0.001);
    let rate = |count: fn(&Counters) -> u64| count(&now).saturating_sub(count(&before)) as f64 / seconds;
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = writeln!(out, "\n=====================================");
    let _ = writeln!(out, "{} INNODB MONITOR OUTPUT", state.now_utc());
    let _ = writeln!(out, "=====================================");
    let _ = writeln!(out, "Per second averages calculated from the last {seconds:.0} seconds");
    if let Some(deadlock) = database.transaction_system().latest_deadlock() {
        heading(&mut out, "LATEST DETECTED DEADLOCK");
        let _ = writeln!(out, "{}", deadlock.trim_end());
    }
    heading(&mut out, "TRANSACTIONS");
    let _ = writeln!(out, "Trx id counter {}", transactions.next_trx_id);
    let _ = writeln!(out, "History list length {}", transactions.history_length);
    if transactions.unfinished_transactions > 0 {
        let _ = writeln!(
            out,
            "Rolling back in the background what had not committed before the last stop: {} transactions, {} undo log entries left",
            transactions.unfinished_transactions, transactions.unfinished_records
        );
    }
    let _ = writeln!(out, "LIST OF TRANSACTIONS FOR EACH SESSION:");
    let clock = database.environment().unix_time();
    for info in database.transaction_system().transactions() {
        let age = clock.saturating_sub(info.started).as_secs();
        let _ = writeln!(out, "---TRANSACTION {}, ACTIVE {age} sec", info.id);
        let waiting = if info.waiting { "LOCK WAIT " } else { "" };
        let _ = writeln!(out, "{waiting}{} row lock(s), undo log entries {}", info.locks, info.undo_records);
        let _ = writeln!(out, "MySQL thread id {}", info.tag);
    }
    heading(&mut out, "FILE I/O");
    let _ =
        writeln!(out, "{} OS file reads, {} OS file writes, {} OS fsyncs", now.reads, now.writes, now.syncs);
    let _ = writeln!(
        out,
        "{:.2} reads/s, {:.2} writes/s, {:.2} fsyncs/s",
        rate(|c| c.reads),
        rate(|c| c.writes),
        rate(|c| c.syncs)
    );
    heading(&mut out, "LOG");
    let _ = writeln!(out, "Log sequence number          {}", redo.current);
    let _ = writeln!(out, "Log flushed up to            {}", redo.flushed);
    let _ = writeln!(
        out,
        "Pages flushed up to          {}",
        pool.oldest_modification.map_or_else(|| redo.current.to_string(), |lsn| lsn.to_string())
    );
    let _ = writeln!(out, "Last checkpoint at           {}", redo.checkpoint);
    let _ =
        writeln!(out, "Checkpoint age               {}", redo.current.0.saturating_sub(redo.checkpoint.0));
    let _ = writeln!(out, "Max checkpoint age           {}", redo.capacity);
    let _ = writeln!(
        out,
        "{} log i/o's done, {:.2} log i/o's/second",
        redo.groups_written,
        rate(|c| c.log_writes)
    );
    heading(&mut out, "BUFFER POOL AND MEMORY");
    let _ = writeln!(out, "Total large memory allocated {}", pool.pages_total * pool.page_size);
    let _ = writeln!(out, "Buffer pool size   {}", pool.pages_total);
    let _ = writeln!(out, "Free buffers       {}", pool.pages_free);
    let _ = writeln!(out, "Database pages     {}", pool.pages_data);
    let _ = writeln!(out, "Old database pages {}", pool.pages_old);
    let _ = writeln!(out, "Modified db pages  {}", pool.pages_dirty);
    let _ = writeln!(out, "Pending reads      {}", pool.pending_reads);
    let _ = writeln!(out, "Pending writes: {}", pool.pages_in_flight);
    let _ = writeln!(out, "Pages made young {}, not young {}", now.young, now.not_young);
    let _ = writeln!(out, "{:.2} youngs/s, {:.2} non-youngs/s", rate(|c| c.young), rate(|c| c.not_young));
    let _ = writeln!(
        out,
        "Pages read {}, created {}, written {}",
        pool.pages_read, pool.pages_created, pool.pages_written
    );
    let _ = writeln!(
        out,
        "{:.2} reads/s, {:.2} creates/s, {:.2} writes/s",
        rate(|c| c.reads),
        rate(|c| c.created),
        rate(|c| c.pages_written)
    );
    let (requests, misses) =
        (now.requests.saturating_sub(before.requests), now.misses.saturating_sub(before.misses));
    let _ = match (misses * 1000).checked_div(requests) {
        None => writeln!(out, "No buffer pool page gets since the last printout"),
        Some(missed) => writeln!(out, "Buffer pool hit rate {} / 1000", 1000 - missed.min(1000)),
    };
    let _ = writeln!(out, "LRU len: {}", pool.pages_data);
    heading(&mut out, "ROW OPERATIONS");
    let _ = writeln!(out, "Process ID={}", std::process::id());
    let _ = writeln!(
        out,
        "Number of rows inserted {}, updated {}, deleted {}, read {}",
        now.inserted, now.updated, now.deleted, now.rows_read
    );
    let _ = writeln!(
        out,
        "{:.2} inserts/s, {:.2} updates/s, {:.2} deletes/s, {:.2} reads/s",
        rate(|c| c.inserted),
        rate(|c| c.updated),
        rate(|c| c.deleted),
        rate(|c| c.rows_read)
    );
    let _ = writeln!(out, "----------------------------");
    let _ = writeln!(out, "END OF INNODB MONITOR OUTPUT");
    let _ = writeln!(out, "============================");
    out
}
