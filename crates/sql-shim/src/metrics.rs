//! The server's figures over HTTP, for Prometheus.
//!
//! A scrape gets SHOW GLOBAL STATUS, every row that is a number: the engine's from the table in
//! [`untorn::metrics`], the server's from [`status`](crate::status). There is no second count anywhere.

use std::net::SocketAddr;
use std::sync::Arc;

use untorn::asynchronous::Database;
use untorn::metrics::{Description, Kind};

use crate::server::shared::Server;

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
    gauge("Untorn_memory_limit", "Memory that all statements together may take."),
    gauge("Untorn_memory_used", "Memory that statements take now."),
    counter("Untorn_slow_log_lost", "Slow statements that could not be written to the log."),
];

/// Where a scrape is answered.
///
/// # Errors
/// What would be an address.
pub fn parse_address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| "give an IP address and a port, as in 127.0.0.1:9104".to_owned())
}

/// Adds the engine's figures and histograms to SHOW GLOBAL STATUS, and with it to what a scrape gets.
pub fn connect(server: &Arc<Server>, database: &Database) {
    let (database, timed) = (database.clone(), database.clone());
    server.status.add_time_source(Box::new(move || timed.times()));
    server.status.add_source(Box::new(move |rows| {
        rows.extend(database.status_rows());
    }));
}
