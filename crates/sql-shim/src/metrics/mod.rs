//! The server's figures over HTTP, for Prometheus.
//!
//! A scrape gets SHOW GLOBAL STATUS, every row that is a number: the engine's from the table in
//! [`untorn::metrics`], the server's from [`status`](crate::status). There is no second count anywhere.

mod endpoint;

use std::net::SocketAddr;
use std::sync::Arc;

use untorn::asynchronous::Database;

use crate::server::shared::Server;
pub use endpoint::{Endpoint, Site};

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
        let figures = database.status().into_iter();
        rows.extend(figures.map(|(name, figure)| (name.into(), figure.to_string())));
        rows.push(("Untorn_page_protection".into(), database.page_protection_summary().join("; ")));
    }));
}
