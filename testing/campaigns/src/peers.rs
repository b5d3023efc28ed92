//! Servers that are asked the same: how they are reached, and what they answer.

use anyhow::{Context, Result};
use mysql::prelude::Queryable;
use mysql::{Column, Conn, OptsBuilder, Value};
use std::time::Duration;

/// How a server is reached.
#[derive(Clone, Debug)]
pub struct Address {
    pub name: String,
    pub port: u16,
    pub user: String,
    pub password: String,
}

/// The accounts of a campaign that asks several servers the same.
#[derive(clap::Args, Clone)]
pub struct Accounts {
    #[arg(long, default_value = "root")]
    user: String,
    #[arg(long, default_value = "")]
    password: String,
    /// The account at the peers, if it is another.
    #[arg(long)]
    peer_user: Option<String>,
    #[arg(long)]
    peer_password: Option<String>,
}

impl Accounts {
    /// Ours, and the peers given as NAME:PORT, behind it.
    pub fn addresses(&self, port: u16, peers: &[String]) -> Result<Vec<Address>> {
        let (user, password) = (self.user.clone(), self.password.clone());
        let mut addresses = vec![Address { name: "ours".to_owned(), port, user, password }];
        for peer in peers {
            let (name, port) = peer.split_once(':').with_context(|| format!("{peer:?} is not NAME:PORT"))?;
            addresses.push(Address {
                name: name.to_owned(),
                port: port.parse().with_context(|| format!("{port:?} is not a port"))?,
                user: self.peer_user.as_ref().unwrap_or(&self.user).clone(),
                password: self.peer_password.as_ref().unwrap_or(&self.password).clone(),
            });
        }
        Ok(addresses)
    }
}

/// What a server answered to a statement.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    Rows(Vec<Vec<Value>>),
    /// Rows affected.
    Done(u64),
    Error(u16, String),
    /// The connection ended, or the server did not answer in time.
    Lost(String),
}

/// How long a statement may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// How long a server is waited for that takes no connections.
const RESTART_SECONDS: u32 = 60;

/// What every session begins with, so that defaults do not make a difference.
const SETTINGS: [&str; 4] = [
    "SET NAMES utf8mb4 COLLATE utf8mb4_general_ci",
    "SET sql_mode = 'STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION'",
    "SET innodb_lock_wait_timeout = 1",
    "SET time_zone = '+03:00'",
];

/// A connection with the settings that all sessions begin with.
pub fn connect(address: &Address, database: Option<&str>) -> Result<Conn> {
    let options = OptsBuilder::new()
        .ip_or_hostname(Some("127.0.0.1"))
        .tcp_port(address.port)
        .user(Some(&address.user))
        .pass(Some(&address.password))
        .db_name(database)
        .prefer_socket(false)
        .read_timeout(Some(PATIENCE))
        .tcp_connect_timeout(Some(Duration::from_secs(5)));
    // A script can crash a stock server, too; somebody or something starts it again.
    let mut tries = 0..RESTART_SECONDS;
    let mut connection = loop {
        match Conn::new(options.clone()) {
            Err(mysql::Error::DriverError(mysql::DriverError::CouldNotConnect(_)))
                if tries.next().is_some() =>
            {
                std::thread::sleep(Duration::from_secs(1));
            }
            made => {
                let what = || format!("cannot connect to {} as {}", address.name, address.user);
                break made.with_context(what)?;
            }
        }
    };
    for setting in SETTINGS {
        connection.query_drop(setting).with_context(|| format!("{}: {setting}", address.name))?;
    }
    Ok(connection)
}

/// What a server answers.
pub fn answer(connection: &mut Conn, sql: &str) -> Answer {
    answer_as(connection, sql, |_, row| row)
}

/// What a server answers, with each row as `row` leaves it.
pub fn answer_as(
    connection: &mut Conn,
    sql: &str,
    row_as: impl Fn(&[Column], Vec<Value>) -> Vec<Value>,
) -> Answer {
    let mut result = match connection.query_iter(sql) {
        Ok(result) => result,
        Err(error) => return failed(error),
    };
    if result.columns().as_ref().is_empty() {
        return Answer::Done(result.affected_rows());
    }
    let mut rows = Vec::new();
    let columns = result.columns().as_ref().to_vec();
    for row in result.by_ref() {
        match row {
            Ok(row) => rows.push(row_as(&columns, row.unwrap())),
            Err(error) => return failed(error),
        }
    }
    Answer::Rows(rows)
}

fn failed(error: mysql::Error) -> Answer {
    match error {
        mysql::Error::MySqlError(error) => Answer::Error(error.code, error.message),
        other => Answer::Lost(other.to_string()),
    }
}

/// A value as the client shows it.
pub fn text_of(value: &Value) -> String {
    match value {
        Value::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Value::NULL => "NULL".to_owned(),
        other => other.as_sql(true),
    }
}

/// A row as one text that no other row has: the library's own one for debugging cuts what is longer than
/// eight bytes.
pub fn whole(row: &[Value]) -> String {
    let cell = |value: &Value| match value {
        Value::Bytes(bytes) => format!("'{}'", bytes.escape_ascii()),
        other => other.as_sql(true),
    };
    row.iter().map(cell).collect::<Vec<_>>().join("|")
}

/// An answer in one line.
pub fn shown(answer: &Answer) -> String {
    let text = match answer {
        Answer::Rows(rows) => {
            let lines = rows.iter().map(|row| row.iter().map(text_of).collect::<Vec<_>>().join("|"));
            format!("{} rows: {}", rows.len(), lines.collect::<Vec<_>>().join(" / "))
        }
        Answer::Done(affected) => format!("ok, {affected} affected"),
        Answer::Error(number, message) => format!("error {number}: {message}"),
        Answer::Lost(reason) => format!("lost: {reason}"),
    };
    text.replace('\n', " ").chars().take(300).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_differ_behind_eight_bytes_are_told_apart() {
        let row = |text: &str| whole(&[Value::Bytes(text.into()), Value::NULL]);
        assert_ne!(row("2020-01-01 00:00:00"), row("2020-01-01 00:00:01"));
        assert_ne!(whole(&[Value::Bytes("NULL".into())]), whole(&[Value::NULL]));
        assert_ne!(row("a'|'b"), whole(&[Value::Bytes("a".into()), Value::Bytes("b".into()), Value::NULL]));
    }
}
