//! The server's figures over HTTP, for Prometheus.
//!
//! A scrape gets SHOW GLOBAL STATUS, every row that is a number: the engine's from the table in
//! [`untorn::metrics`], the server's from [`status`](crate::status). There is no second count anywhere.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use untorn::asynchronous::Database;
use untorn::engine::WaitKind;
use untorn::metrics::{Description, Kind};

use crate::server::clock::TICK;
use crate::server::shared::Server;
use crate::server::waits::ByKind;

const fn gauge(name: &'static str, help: &'static str) -> Description {
    Description { name, kind: Kind::Gauge, help }
}

const fn counter(name: &'static str, help: &'static str) -> Description {
    Description { name, kind: Kind::Counter, help }
}

/// What the server's own rows mean.
pub(crate) const OWN: &[Description] = &[
    gauge(
        "Untorn_bpe_drive_writes_per_day",
        "Times that the extension's file is written whole in a day, at this rate.",
    ),
    gauge("Untorn_bpe_hit_ratio", "Estimated share of reads that the extension answers."),
    gauge("Untorn_bpe_hit_ratio_half_size", "The same for an extension of half the size."),
    gauge("Untorn_bpe_hit_ratio_twice_size", "The same for an extension of twice the size."),
    counter("Untorn_connection_panics", "Connections that an internal fault ended."),
    counter("Untorn_time_cpu_us", "Time of statements on the processor."),
    counter("Untorn_time_free_page_us", "Time of sessions in waits for a free page of the buffer pool."),
    counter("Untorn_time_latch_us", "Time of sessions asleep until they had a page latch."),
    counter("Untorn_time_log_room_us", "Time of sessions in waits for room in the redo log or its buffer."),
    counter(
        "Untorn_time_log_sync_us",
        "Time of sessions in waits for the redo log to be written and synced.",
    ),
    counter("Untorn_time_metadata_lock_us", "Time of sessions in waits for the use of a table or view."),
    counter("Untorn_time_page_read_us", "Time of sessions in waits for pages that are read."),
    counter("Untorn_time_row_lock_us", "Time of sessions in waits for row locks."),
    gauge("Untorn_memory_limit", "Memory that all statements together may take."),
    gauge("Untorn_memory_used", "Memory that statements take now."),
    counter("Untorn_slow_log_lost", "Slow statements that could not be written to the log."),
];

/// Where the time of sessions goes, by the rows of SHOW GLOBAL STATUS.
pub(crate) fn where_time_goes(server: &Server) -> impl Iterator<Item = (String, String)> {
    let row = |name: &str, microseconds: u64| (name.to_owned(), microseconds.to_string());
    let cpu = row("Untorn_time_cpu_us", server.status.cpu_nanoseconds() / 1000);
    let waits = WaitKind::ALL.into_iter().zip(waited(server));
    waits.map(move |(kind, waited)| row(time_row(kind), waited)).chain([cpu])
}

/// Microseconds in waits of each kind: of those that are over, and of long ones that last: during a stall
/// that is where it shows. Of these it is known at which tick of the coarse clock they began, so two ticks
/// are left out: a short wait may span one.
fn waited(server: &Server) -> ByKind {
    // First: a wait that ends meanwhile is in neither then, and not in both.
    let over = server.status.waits();
    let mut lasting = ByKind::default();
    let now_ms = server.clock.now_ms();
    server.connections.for_each(|connection| {
        if let Some((kind, since_ms)) = connection.waits.current() {
            let lasted = Duration::from_millis(now_ms.saturating_sub(since_ms)).saturating_sub(2 * TICK);
            lasting[kind as usize] += u64::try_from(lasted.as_micros()).unwrap_or(u64::MAX);
        }
    });
    std::array::from_fn(|kind| {
        let over = u64::try_from(over[kind].sum().as_micros()).unwrap_or(u64::MAX);
        server.status.never_less(kind, over.saturating_add(lasting[kind]))
    })
}

fn time_row(kind: WaitKind) -> &'static str {
    match kind {
        WaitKind::PageRead => "Untorn_time_page_read_us",
        WaitKind::FreeFrame => "Untorn_time_free_page_us",
        WaitKind::LogRoom => "Untorn_time_log_room_us",
        WaitKind::LogSync => "Untorn_time_log_sync_us",
        WaitKind::RowLock => "Untorn_time_row_lock_us",
        WaitKind::MetadataLock => "Untorn_time_metadata_lock_us",
        WaitKind::Latch => "Untorn_time_latch_us",
    }
}

/// Where a scrape is answered.
///
/// # Errors
/// What would be an address.
pub fn parse_address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| "give an IP address and a port, as in 127.0.0.1:9104".to_owned())
}

/// Adds the engine's figures and histograms to SHOW GLOBAL STATUS, and with it to what a scrape gets.
pub fn connect(server: &Arc<Server>, database: &Database) {
    // Transactions are timed from the first one on, not from when somebody asks.
    database.times();
    let (database, timed) = (database.clone(), database.clone());
    server.status.add_time_source(Box::new(move || timed.times()));
    server.status.add_source(Box::new(move |rows| {
        rows.extend(database.status_rows());
    }));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::accounts::Accounts;
    use crate::variables::GlobalVariables;

    #[test]
    fn each_place_where_time_goes_has_a_row_and_a_description() {
        let server = Server::new(Accounts::in_memory(), GlobalVariables::default());
        let thread = server.status.thread();
        thread.add_cpu(7_000);
        thread.wait_times[WaitKind::Latch as usize].record_alone(Duration::from_micros(3));
        let rows: Vec<_> = where_time_goes(&server).collect();
        assert_eq!(rows.len(), WaitKind::ALL.len() + 1);
        for (name, value) in &rows {
            assert!(OWN.iter().any(|own| own.name == name && own.kind == Kind::Counter), "{name}");
            let wanted = match name.as_str() {
                "Untorn_time_cpu_us" => "7",
                "Untorn_time_latch_us" => "3",
                _ => "0",
            };
            assert_eq!(value, wanted, "{name}");
        }
    }

    #[test]
    fn a_sum_of_waits_that_was_told_never_becomes_smaller() {
        let server = Server::new(Accounts::in_memory(), GlobalVariables::default());
        let kind = WaitKind::LogSync as usize;
        assert_eq!([9, 7, 10].map(|sum| server.status.never_less(kind, sum)), [9, 9, 10]);
        assert_eq!(server.status.never_less(WaitKind::Latch as usize, 1), 1);
    }
}
