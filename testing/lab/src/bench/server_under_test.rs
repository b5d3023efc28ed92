//! A server that takes part in a comparison: ours, or a peer that is running already.
//!
//! A peer is an address and, for figures of its process, a process id. How it was started is nobody's
//! business here; what it was started with is read from its system variables into the record.

use super::record::Server;
use crate::sysbench::Account;
use anyhow::{Context, Result, ensure};
use mysql::prelude::Queryable;
use mysql::{Conn, OptsBuilder};
use std::collections::BTreeMap;
use std::str::FromStr;
use std::time::Duration;

/// What this server is called in records.
pub const OURS: &str = "Untorn";

/// System variables that matter for speed and durability, under every name they have.
const SETTINGS: [&str; 14] = [
    "innodb_buffer_pool_size",
    "innodb_doublewrite",
    "innodb_flush_log_at_trx_commit",
    "innodb_flush_method",
    "innodb_flush_neighbors",
    "innodb_io_capacity",
    "innodb_io_capacity_max",
    "innodb_log_file_size",
    "innodb_redo_log_capacity",
    "log_bin",
    "performance_schema",
    "sync_binlog",
    "untorn_bpe",
    "untorn_threads",
];

/// `NAME:PORT` or `NAME:PORT:PID`.
#[derive(Clone, PartialEq, Debug)]
pub struct Peer {
    /// What it is called in tables.
    pub name: String,
    /// TCP port, on 127.0.0.1.
    pub port: u16,
    /// Its process, whose processor time and written bytes are read from /proc.
    pub process: Option<u32>,
}

impl FromStr for Peer {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Peer> {
        let parts: Vec<&str> = text.split(':').collect();
        let (name, port, process) = match parts[..] {
            [name, port] => (name, port, None),
            [name, port, process] => (name, port, Some(process)),
            _ => anyhow::bail!("{text:?} is not NAME:PORT or NAME:PORT:PID"),
        };
        // Names stand in CSV and in Markdown tables.
        let plain = |letter: char| letter.is_ascii_alphanumeric() || " ._-".contains(letter);
        ensure!(!name.trim().is_empty() && name.chars().all(plain), "{name:?} is not a plain name");
        ensure!(name != OURS, "{OURS} is the server that the peers are compared with");
        Ok(Peer {
            name: name.to_owned(),
            port: port.parse().with_context(|| format!("{port:?} is not a port"))?,
            process: process
                .map(|process| process.parse().with_context(|| format!("{process:?} is not a process id")))
                .transpose()?,
        })
    }
}

/// A server that answers, and a connection for its counters.
pub struct ServerUnderTest {
    pub name: String,
    port: u16,
    pub process: Option<u32>,
    user: String,
    password: String,
    database: String,
    connection: Conn,
}

impl ServerUnderTest {
    /// Connects to a server of this machine as somebody, and makes the database where it is missing.
    pub fn new(peer: &Peer, user: &str, password: &str, database: &str) -> Result<ServerUnderTest> {
        let options = OptsBuilder::new()
            .ip_or_hostname(Some("127.0.0.1"))
            .tcp_port(peer.port)
            .user(Some(user))
            .pass(Some(password))
            .prefer_socket(false)
            .tcp_connect_timeout(Some(Duration::from_secs(5)));
        let mut connection =
            Conn::new(options).with_context(|| format!("cannot connect to {} as {user}", peer.name))?;
        connection.query_drop(format!("CREATE DATABASE IF NOT EXISTS `{}`", database.replace('`', "``")))?;
        Ok(ServerUnderTest {
            name: peer.name.clone(),
            port: peer.port,
            process: peer.process,
            user: user.to_owned(),
            password: password.to_owned(),
            database: database.to_owned(),
            connection,
        })
    }

    /// What sysbench needs to connect.
    pub fn account(&self) -> Account<'_> {
        Account { port: self.port, user: &self.user, password: &self.password, database: &self.database }
    }

    /// Version and settings.
    pub fn describe(&mut self) -> Result<Server> {
        let version =
            self.connection.query_first("SELECT CONCAT(VERSION(), ' (', @@version_comment, ')')")?;
        let mut settings = self.named_values("SHOW GLOBAL VARIABLES")?;
        settings.retain(|name, _| SETTINGS.contains(&name.as_str()));
        Ok(Server { name: self.name.clone(), version: version.context("no version")?, settings })
    }

    /// A status variable, when the server has it.
    pub fn status(&mut self, name: &str) -> Result<Option<String>> {
        Ok(self.named_values(&format!("SHOW GLOBAL STATUS LIKE '{name}'"))?.remove(name))
    }

    /// Those of some status variables that the server has and that are numbers.
    pub fn counters(&mut self, names: &[&str]) -> Result<BTreeMap<String, u64>> {
        let values = self.named_values("SHOW GLOBAL STATUS LIKE 'Innodb%'")?;
        let counters = values.into_iter().filter(|(name, _)| names.contains(&name.as_str()));
        Ok(counters.filter_map(|(name, value)| Some((name, value.parse().ok()?))).collect())
    }

    fn named_values(&mut self, sql: &str) -> Result<BTreeMap<String, String>> {
        let rows: Vec<(String, String)> =
            self.connection.query(sql).with_context(|| format!("{}: {sql}", self.name))?;
        Ok(rows.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::Peer;

    #[test]
    fn a_peer_has_a_name_a_port_and_perhaps_a_process() {
        let peer = |process| Peer { name: "MariaDB 10.11".to_owned(), port: 4111, process };
        assert_eq!("MariaDB 10.11:4111".parse::<Peer>().ok(), Some(peer(None)));
        assert_eq!("MariaDB 10.11:4111:123".parse::<Peer>().ok(), Some(peer(Some(123))));
    }

    #[test]
    fn other_peers_are_refused() {
        for text in [
            "",
            "MariaDB",
            ":4111",
            "MariaDB:",
            "A:70000",
            "A:4111:x",
            "A:4111:1:2",
            "A,B:4111",
            "Untorn:4111",
        ] {
            assert!(text.parse::<Peer>().is_err(), "{text:?}");
        }
    }
}
