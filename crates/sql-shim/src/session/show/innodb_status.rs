//! The text of SHOW ENGINE INNODB STATUS.
//!
//! Headings, their order and the shapes of lines are InnoDB's, for tools that take the text apart and eyes
//! that know it. Every figure is measured: of the same counters as SHOW STATUS, so the two agree. A line of
//! InnoDB's that this engine has no figure for is left out, and a section of which nothing would be left
//! (BACKGROUND THREAD, SEMAPHORES, the insert buffer and the adaptive hash index). Sections of what InnoDB
//! does not have come last. The text of the latest deadlock is
//! `src/deadlock_report.rs`. Rates are averages since somebody last asked
//! ([`Averages`](crate::status::averages::Averages)).

use std::collections::HashMap;
use std::fmt::{self, Write as _};
use std::sync::Arc;
use std::time::Duration;

use untorn::engine::TransactionInfo;

use crate::server::registry::Connection;
use crate::session::state::SessionState;
use crate::status::averages::Interval;

/// The whole text.
pub fn text(state: &SessionState) -> String {
    let database = &state.database;
    let figures = state.server.averages.since_last(database.environment().now(), database.status());
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = Printout { state, figures }.print(&mut out);
    out
}

struct Printout<'a> {
    state: &'a SessionState,
    figures: Interval,
}

fn heading(out: &mut String, name: &str) -> fmt::Result {
    let dashes = "-".repeat(name.len());
    writeln!(out, "{dashes}\n{name}\n{dashes}")
}

impl Printout<'_> {
    fn print(&self, out: &mut String) -> fmt::Result {
        writeln!(out, "\n=====================================")?;
        writeln!(out, "{} INNODB MONITOR OUTPUT", self.state.now_utc())?;
        writeln!(out, "=====================================")?;
        let seconds = self.figures.seconds();
        writeln!(out, "Per second averages calculated from the last {seconds:.0} seconds")?;
        self.latest_deadlock(out)?;
        self.transactions(out)?;
        self.file_io(out)?;
        self.log(out)?;
        self.buffer_pool(out)?;
        self.row_operations(out)?;
        self.flushing(out)?;
        self.page_protection(out)?;
        self.extension(out)?;
        writeln!(out, "----------------------------")?;
        writeln!(out, "END OF INNODB MONITOR OUTPUT")?;
        writeln!(out, "============================")
    }

    fn total(&self, name: &str) -> u64 {
        self.figures.total(name)
    }

    /// Growth per second of counters, each with its unit: `1.00 reads/s, 0.50 writes/s`.
    fn rates(&self, out: &mut String, counters: &[(&str, &str)]) -> fmt::Result {
        for (index, (unit, name)) in counters.iter().enumerate() {
            let comma = if index > 0 { ", " } else { "" };
            write!(out, "{comma}{:.2} {unit}/s", self.figures.rate(name))?;
        }
        writeln!(out)
    }

    fn latest_deadlock(&self, out: &mut String) -> fmt::Result {
        let Some(deadlock) = self.state.database.latest_deadlock() else { return Ok(()) };
        heading(out, "LATEST DETECTED DEADLOCK")?;
        write!(out, "{deadlock}")
    }

    fn transactions(&self, out: &mut String) -> fmt::Result {
        heading(out, "TRANSACTIONS")?;
        writeln!(out, "Trx id counter {}", self.total("Innodb_max_trx_id"))?;
        writeln!(out, "History list length {}", self.total("Innodb_history_list_length"))?;
        writeln!(
            out,
            "{} active transaction(s), {} row lock(s), {} lock wait(s)",
            self.total("Untorn_transactions_active"),
            self.total("Untorn_row_locks"),
            self.total("Innodb_row_lock_current_waits"),
        )?;
        let (unfinished, records) =
            (self.total("Untorn_unfinished_transactions"), self.total("Untorn_unfinished_undo_records"));
        if unfinished > 0 {
            writeln!(
                out,
                "Rolling back in the background what had not committed before the last stop: {unfinished} transaction(s), \
                 {records} undo log entries left"
            )?;
        }
        writeln!(out, "LIST OF TRANSACTIONS FOR EACH SESSION:")?;
        let connections = self.state.server.connections.all().into_iter();
        let connections: HashMap<u64, Arc<Connection>> =
            connections.map(|connection| (u64::from(connection.id), connection)).collect();
        for info in self.state.database.transaction_system().transactions() {
            let Some(started) = info.started else { continue };
            self.transaction(out, &info, started, connections.get(&info.tag))?;
        }
        Ok(())
    }

    fn transaction(
        &self,
        out: &mut String,
        info: &TransactionInfo,
        started: Duration,
        connection: Option<&Arc<Connection>>,
    ) -> fmt::Result {
        let age = self.state.database.environment().unix_time().saturating_sub(started).as_secs();
        writeln!(out, "---TRANSACTION {}, ACTIVE {age} sec", info.id)?;
        let waiting = if info.waits.is_some() { "LOCK WAIT " } else { "" };
        writeln!(out, "{waiting}{} row lock(s), undo log entries {}", info.locks, info.undo_records)?;
        let Some(connection) = connection else { return Ok(()) };
        connection.with_activity(|now| {
            writeln!(out, "MySQL thread id {}, {} {} {}", info.tag, now.host, now.user, now.state)?;
            match &*now.statement() {
                [] => Ok(()),
                statement => writeln!(out, "{}", String::from_utf8_lossy(statement)),
            }
        })
    }

    fn file_io(&self, out: &mut String) -> fmt::Result {
        heading(out, "FILE I/O")?;
        writeln!(
            out,
            "{} OS file reads, {} OS file writes, {} OS fsyncs",
            self.total("Innodb_data_reads"),
            self.total("Innodb_data_writes"),
            self.total("Innodb_data_fsyncs"),
        )?;
        let of = &self.figures;
        let bytes = of.growth("Innodb_data_read").checked_div(of.growth("Innodb_data_reads")).unwrap_or(0);
        writeln!(
            out,
            "{:.2} reads/s, {bytes} avg bytes/read, {:.2} writes/s, {:.2} fsyncs/s",
            of.rate("Innodb_data_reads"),
            of.rate("Innodb_data_writes"),
            of.rate("Innodb_data_fsyncs"),
        )
    }

    fn log(&self, out: &mut String) -> fmt::Result {
        heading(out, "LOG")?;
        let log = self.state.database.redo().status();
        let flushed_pages = self.state.database.store().status().oldest_modification.unwrap_or(log.current.0);
        writeln!(out, "Log sequence number          {}", log.current)?;
        writeln!(out, "Log written up to            {}", log.written)?;
        writeln!(out, "Log flushed up to            {}", log.flushed)?;
        writeln!(out, "Pages flushed up to          {flushed_pages}")?;
        writeln!(out, "Last checkpoint at           {}", log.checkpoint)?;
        writeln!(out, "Checkpoint age               {}", self.total("Innodb_checkpoint_age"))?;
        writeln!(out, "Max checkpoint age           {}", self.total("Innodb_checkpoint_max_age"))?;
        let (writes, rate) = (self.total("Innodb_log_writes"), self.figures.rate("Innodb_log_writes"));
        writeln!(out, "{writes} log i/o's done, {rate:.2} log i/o's/second")
    }

    fn buffer_pool(&self, out: &mut String) -> fmt::Result {
        heading(out, "BUFFER POOL AND MEMORY")?;
        let pages = self.total("Innodb_buffer_pool_pages_total");
        writeln!(out, "Total large memory allocated {}", pages * self.total("Innodb_page_size"))?;
        writeln!(out, "Buffer pool size   {pages}")?;
        writeln!(out, "Free buffers       {}", self.total("Innodb_buffer_pool_pages_free"))?;
        writeln!(out, "Database pages     {}", self.total("Innodb_buffer_pool_pages_data"))?;
        writeln!(out, "Old database pages {}", self.total("Innodb_buffer_pool_pages_old"))?;
        writeln!(out, "Modified db pages  {}", self.total("Innodb_buffer_pool_pages_dirty"))?;
        writeln!(out, "Pending reads      {}", self.total("Innodb_data_pending_reads"))?;
        writeln!(out, "Pending writes     {}", self.total("Innodb_data_pending_writes"))?;
        const YOUNG: &str = "Innodb_buffer_pool_pages_made_young";
        const NOT_YOUNG: &str = "Innodb_buffer_pool_pages_made_not_young";
        writeln!(out, "Pages made young {}, not young {}", self.total(YOUNG), self.total(NOT_YOUNG))?;
        self.rates(out, &[("youngs", YOUNG), ("non-youngs", NOT_YOUNG)])?;
        const READ: &str = "Innodb_pages_read";
        const CREATED: &str = "Innodb_pages_created";
        const WRITTEN: &str = "Innodb_pages_written";
        let (read, created, written) = (self.total(READ), self.total(CREATED), self.total(WRITTEN));
        writeln!(out, "Pages read {read}, created {created}, written {written}")?;
        self.rates(out, &[("reads", READ), ("creates", CREATED), ("writes", WRITTEN)])?;
        const GETS: &str = "Innodb_buffer_pool_read_requests";
        let of = |part| self.figures.per_mille(part, GETS);
        match (of("Innodb_buffer_pool_reads"), of(YOUNG), of(NOT_YOUNG)) {
            (Some(missed), Some(young), Some(not_young)) => writeln!(
                out,
                "Buffer pool hit rate {} / 1000, young-making rate {young} / 1000 not {not_young} / 1000",
                1000 - missed.min(1000)
            )?,
            _ => writeln!(out, "No buffer pool page gets since the last printout")?,
        }
        writeln!(
            out,
            "Pages read ahead {:.2}/s, evicted without access {:.2}/s, Random read ahead {:.2}/s",
            self.figures.rate("Innodb_buffer_pool_read_ahead"),
            self.figures.rate("Innodb_buffer_pool_read_ahead_evicted"),
            self.figures.rate("Innodb_buffer_pool_read_ahead_rnd"),
        )?;
        writeln!(out, "LRU len: {}", self.total("Innodb_buffer_pool_pages_data"))
    }

    fn row_operations(&self, out: &mut String) -> fmt::Result {
        heading(out, "ROW OPERATIONS")?;
        writeln!(out, "Process ID={}", std::process::id())?;
        const INSERTED: &str = "Innodb_rows_inserted";
        const UPDATED: &str = "Innodb_rows_updated";
        const DELETED: &str = "Innodb_rows_deleted";
        const READ: &str = "Innodb_rows_read";
        let [inserted, updated, deleted, read] =
            [INSERTED, UPDATED, DELETED, READ].map(|name| self.total(name));
        writeln!(
            out,
            "Number of rows inserted {inserted}, updated {updated}, deleted {deleted}, read {read}"
        )?;
        self.rates(out, &[("inserts", INSERTED), ("updates", UPDATED), ("deletes", DELETED), ("reads", READ)])
    }

    fn flushing(&self, out: &mut String) -> fmt::Result {
        heading(out, "FLUSHING AND PURGE")?;
        const FLUSHED: &str = "Innodb_buffer_pool_pages_flushed";
        const EVICTED: &str = "Untorn_buffer_pool_pages_evicted";
        const PURGED: &str = "Untorn_purged_records";
        writeln!(
            out,
            "Pages flushed by the page cleaner {}, evicted {}",
            self.total(FLUSHED),
            self.total(EVICTED)
        )?;
        writeln!(out, "Undo records purged {}", self.total(PURGED))?;
        self.rates(out, &[("flushes", FLUSHED), ("evictions", EVICTED), ("purges", PURGED)])?;
        writeln!(out, "Checkpoints {}", self.total("Untorn_checkpoints"))?;
        writeln!(
            out,
            "Waits for a free page {}, for room in the log {}, in its buffer {}",
            self.total("Innodb_buffer_pool_wait_free"),
            self.total("Untorn_log_room_waits"),
            self.total("Innodb_log_waits"),
        )
    }

    fn page_protection(&self, out: &mut String) -> fmt::Result {
        heading(out, "PAGE PROTECTION")?;
        writeln!(out, "innodb_doublewrite {}", self.state.database.doublewrite())?;
        for line in self.state.database.page_protection_summary() {
            writeln!(out, "{line}")?;
        }
        writeln!(
            out,
            "Pages written to the doublewrite files {}, in {} writes; atomic writes {}",
            self.total("Innodb_dblwr_pages_written"),
            self.total("Innodb_dblwr_writes"),
            self.total("Untorn_atomic_writes"),
        )?;
        self.rates(
            out,
            &[("doublewrite pages", "Innodb_dblwr_pages_written"), ("atomic writes", "Untorn_atomic_writes")],
        )?;
        writeln!(
            out,
            "Bytes written to data files {}, doublewrite {}, redo {}, undo {}",
            self.total("Untorn_bytes_written_data"),
            self.total("Untorn_bytes_written_doublewrite"),
            self.total("Untorn_bytes_written_redo"),
            self.total("Untorn_bytes_written_undo"),
        )
    }

    fn extension(&self, out: &mut String) -> fmt::Result {
        let extension = self.state.database.extension();
        let Some(file) = &extension.file else { return Ok(()) };
        heading(out, "BUFFER POOL EXTENSION")?;
        writeln!(out, "{} in {}", extension.state.name(), file.display())?;
        writeln!(out, "Size in pages      {}", self.total("Untorn_bpe_pages_max"))?;
        writeln!(out, "Database pages     {}", self.total("Untorn_bpe_pages_data"))?;
        writeln!(out, "Memory             {}", self.total("Untorn_bpe_memory"))?;
        const HITS: &str = "Untorn_bpe_hits";
        const MISSES: &str = "Untorn_bpe_misses";
        const ADMITTED: &str = "Untorn_bpe_admitted";
        const EVICTED: &str = "Untorn_bpe_evicted";
        let [hits, misses, admitted, evicted] =
            [HITS, MISSES, ADMITTED, EVICTED].map(|name| self.total(name));
        writeln!(out, "Hits {hits}, misses {misses}; pages admitted {admitted}, evicted {evicted}")?;
        self.rates(
            out,
            &[("hits", HITS), ("misses", MISSES), ("admissions", ADMITTED), ("evictions", EVICTED)],
        )
    }
}
