//! The text of SHOW ENGINE INNODB STATUS, in the layout that tools take apart: headings framed by lines of dashes of the
//! heading's length, fixed sentences, figures of this engine in them.

use std::fmt::Write as _;

use crate::session::state::SessionState;

fn heading(text: &mut String, name: &str) {
    let dashes = "-".repeat(name.len());
    let _ = writeln!(text, "{dashes}\n{name}\n{dashes}");
}

/// The whole text.
pub fn text(state: &SessionState) -> String {
    let database = &state.database;
    let (transactions, pool, redo) =
        (database.transaction_system().status(), database.store().status(), database.redo().status());
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = writeln!(out, "\n=====================================");
    let _ = writeln!(out, "{} 0x0 INNODB MONITOR OUTPUT", state.now_utc());
    let _ = writeln!(out, "=====================================");
    let _ = writeln!(out, "Per second averages calculated from the last 1 seconds");
    heading(&mut out, "BACKGROUND THREAD");
    let _ = writeln!(out, "srv_master_thread loops: 0 srv_active, 0 srv_shutdown, 0 srv_idle");
    let _ = writeln!(out, "srv_master_thread log flush and writes: 0");
    heading(&mut out, "SEMAPHORES");
    if let Some(deadlock) = database.transaction_system().latest_deadlock() {
        heading(&mut out, "LATEST DETECTED DEADLOCK");
        let _ = writeln!(out, "{}", deadlock.trim_end());
    }
    heading(&mut out, "TRANSACTIONS");
    let _ = writeln!(out, "Trx id counter {}", transactions.next_trx_id);
    let _ = writeln!(
        out,
        "Purge done for trx's n:o < {} undo n:o < 0 state: running but idle",
        transactions.next_trx_id
    );
    let _ = writeln!(out, "History list length {}", transactions.history_length);
    if transactions.unfinished_transactions > 0 {
        let _ = writeln!(
            out,
            "Rolling back in the background what had not committed before the last stop: {} transactions, {} undo log entries left",
            transactions.unfinished_transactions, transactions.unfinished_records
        );
    }
    let _ = writeln!(out, "LIST OF TRANSACTIONS FOR EACH SESSION:");
    let now = database.environment().unix_time();
    for info in database.transaction_system().transactions() {
        let age = now.saturating_sub(info.started).as_secs();
        let _ = writeln!(out, "---TRANSACTION {}, ACTIVE {age} sec", info.id);
        let waiting = if info.waiting { "LOCK WAIT " } else { "" };
        let _ = writeln!(
            out,
            "{waiting}{} lock struct(s), heap size 0, {} row lock(s), undo log entries {}",
            info.locks, info.locks, info.undo_records
        );
        let _ = writeln!(out, "MySQL thread id {}, OS thread handle 0, query id 0", info.tag);
    }
    heading(&mut out, "FILE I/O");
    let _ = writeln!(out, "Pending flushes (fsync): 0");
    let _ = writeln!(
        out,
        "{} OS file reads, {} OS file writes, {} OS fsyncs",
        pool.pages_read,
        pool.pages_written + redo.groups_written,
        redo.syncs
    );
    let _ = writeln!(out, "0.00 reads/s, 0 avg bytes/read, 0.00 writes/s, 0.00 fsyncs/s");
    heading(&mut out, "INSERT BUFFER AND ADAPTIVE HASH INDEX");
    let _ = writeln!(out, "Ibuf: size 0, free list len 0, seg size 0, 0 merges");
    let _ = writeln!(out, "0.00 hash searches/s, 0.00 non-hash searches/s");
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
    let _ = writeln!(out, "0 pending log flushes, 0 pending chkp writes");
    let _ = writeln!(out, "{} log i/o's done, 0.00 log i/o's/second", redo.groups_written);
    heading(&mut out, "BUFFER POOL AND MEMORY");
    let _ = writeln!(out, "Total large memory allocated {}", pool.pages_total * pool.page_size);
    let _ = writeln!(out, "Dictionary memory allocated 0");
    let _ = writeln!(out, "Buffer pool size   {}", pool.pages_total);
    let _ = writeln!(out, "Free buffers       {}", pool.pages_free);
    let _ = writeln!(out, "Database pages     {}", pool.pages_data);
    let _ = writeln!(out, "Old database pages {}", pool.pages_old);
    let _ = writeln!(out, "Modified db pages  {}", pool.pages_dirty);
    let _ = writeln!(out, "Pending reads      {}", pool.pending_reads);
    let _ = writeln!(out, "Pending writes: LRU 0, flush list {}, single page 0", pool.pages_in_flight);
    let _ =
        writeln!(out, "Pages made young {}, not young {}", pool.pages_made_young, pool.pages_made_not_young);
    let _ = writeln!(out, "0.00 youngs/s, 0.00 non-youngs/s");
    let _ = writeln!(
        out,
        "Pages read {}, created {}, written {}",
        pool.pages_read, pool.pages_created, pool.pages_written
    );
    let _ = writeln!(out, "0.00 reads/s, 0.00 creates/s, 0.00 writes/s");
    let misses = (pool.reads * 1000).checked_div(pool.read_requests);
    let _ = match misses {
        None => writeln!(out, "No buffer pool page gets since the last printout"),
        Some(misses) => {
            let hits = 1000 - misses.min(1000);
            writeln!(out, "Buffer pool hit rate {hits} / 1000, young-making rate 0 / 1000 not 0 / 1000")
        }
    };
    let _ = writeln!(out, "Pages read ahead 0.00/s, evicted without access 0.00/s, Random read ahead 0.00/s");
    let _ = writeln!(out, "LRU len: {}, unzip_LRU len: 0", pool.pages_data);
    let _ = writeln!(out, "I/O sum[0]:cur[0], unzip sum[0]:cur[0]");
    heading(&mut out, "ROW OPERATIONS");
    let _ = writeln!(out, "0 queries inside InnoDB, 0 queries in queue");
    let _ = writeln!(out, "0 read views open inside InnoDB");
    let _ = writeln!(out, "Process ID={}, Main thread ID=0 , state=sleeping", std::process::id());
    let _ = writeln!(
        out,
        "Number of rows inserted {}, updated {}, deleted {}, read {}",
        transactions.rows_inserted,
        transactions.rows_updated,
        transactions.rows_deleted,
        transactions.rows_read
    );
    let _ = writeln!(out, "0.000 inserts/s, 0.000 updates/s, 0.000 deletes/s, 0.000 reads/s");
    let _ = writeln!(out, "----------------------------");
    let _ = writeln!(out, "END OF INNODB MONITOR OUTPUT");
    let _ = writeln!(out, "============================");
    out
}
