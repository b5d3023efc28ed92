//! The servers of a run: ours first, then those that it is compared with; and what is asked of them.

use super::change::MODES;
use super::data::{folded, literal_of};
use super::query::Statement;
use super::schema::Table;
use super::tree::Style;
use crate::peers::{Address, Answer, answer_as, connect};
use crate::suites::judge::{Rows, Verdict, alike, judge};
use anyhow::{Context, Result};
use mysql::consts::ColumnType;
use mysql::prelude::Queryable;
use mysql::{Column, Conn, Value};

/// Rows of a table.
pub type Contents = Vec<Vec<Value>>;

/// By what our answer is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Oracle {
    /// The other servers.
    Peers,
    /// The same query without indexes.
    Indexes,
    /// The rows for which a condition holds, does not, and is unknown, are all rows.
    Partition,
}

/// What came of a statement.
pub struct Outcome {
    pub verdict: Verdict,
    /// What the answers are called, and they; ours first.
    pub answers: Vec<(String, Answer)>,
    /// What a warning count says beside them.
    pub warnings: Vec<u16>,
}

impl Outcome {
    /// What a smaller statement must show as well to be the same finding.
    pub fn signature(&self) -> (Verdict, Vec<u16>) {
        let number = |answer: &Answer| if let Answer::Error(number, _) = answer { *number } else { 0 };
        (self.verdict, self.answers.iter().map(|(_, answer)| number(answer)).collect())
    }
}

/// What makes MySQL plan otherwise, with what each switch has afterwards.
const SWITCHES: [(&str, &str); 2] = [
    (
        "derived_merge=off,semijoin=off,materialization=off,block_nested_loop=off,\
         derived_condition_pushdown=off,index_condition_pushdown=off",
        "default",
    ),
    ("hypergraph_optimizer=on", "default"),
];

pub struct Servers {
    names: Vec<String>,
    connections: Vec<Conn>,
}

impl Servers {
    /// Connections with a new database of this name.
    pub fn new(addresses: &[Address], database: &str) -> Result<Servers> {
        let mut connections = Vec::new();
        for address in addresses {
            let mut connection = connect(address, None)?;
            connection.query_drop(format!("DROP DATABASE IF EXISTS {database}"))?;
            connection.query_drop(format!(
                "CREATE DATABASE {database} CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci"
            ))?;
            connection.query_drop(format!("USE {database}"))?;
            connection.query_drop(format!("SET sql_mode = '{}'", MODES[0]))?;
            connections.push(connection);
        }
        Ok(Servers { names: addresses.iter().map(|address| address.name.clone()).collect(), connections })
    }

    /// What every server says to a statement that only prepares something.
    pub fn all(&mut self, sql: &str) -> Vec<Answer> {
        self.asked(sql, false)
    }

    fn asked(&mut self, sql: &str, representative: bool) -> Vec<Answer> {
        let ask = |connection: &mut Conn| {
            answer_as(connection, sql, |columns, row| comparable(columns, row, representative))
        };
        std::thread::scope(|scope| {
            let mut connections = self.connections.iter_mut();
            let ours = connections.next();
            let others: Vec<_> = connections.map(|connection| scope.spawn(move || ask(connection))).collect();
            let lost = || Answer::Lost("the thread panicked".to_owned());
            let mut answers: Vec<Answer> = ours.into_iter().map(ask).collect();
            answers.extend(others.into_iter().map(|thread| thread.join().unwrap_or_else(|_| lost())));
            answers
        })
    }

    /// What ours says.
    fn ours(&mut self, sql: &str, representative: bool) -> Answer {
        self.said_by(0, sql, representative)
    }

    fn said_by(&mut self, at: usize, sql: &str, representative: bool) -> Answer {
        match self.connections.get_mut(at) {
            Some(connection) => {
                answer_as(connection, sql, |columns, row| comparable(columns, row, representative))
            }
            None => Answer::Lost("no server".to_owned()),
        }
    }

    /// Asks a statement and judges the answer.
    pub fn outcome(&mut self, statement: &Statement, oracle: Oracle, tables: &[Table]) -> Outcome {
        match oracle {
            Oracle::Peers => self.beside_peers(statement, tables),
            Oracle::Indexes => {
                let mut answers = Vec::new();
                for (name, style) in [("ours", Style::Plain), ("without indexes", Style::WithoutIndexes)] {
                    let sql = statement.sql.written(style);
                    answers.push((name.to_owned(), self.ours(&sql, statement.representative)));
                }
                consistent(answers)
            }
            Oracle::Partition => self.partition(0, statement),
        }
    }

    /// All rows of a query beside those of its three parts, at one server.
    fn partition(&mut self, at: usize, statement: &Statement) -> Outcome {
        let whole = self.said_by(at, &statement.sql.written(Style::Whole), statement.representative);
        let mut united = Vec::new();
        for style in [Style::Plain, Style::Negated, Style::Unknown] {
            match self.said_by(at, &statement.sql.written(style), statement.representative) {
                Answer::Rows(rows) => united.extend(rows),
                other => return consistent(vec![("whole".into(), whole), ("a part".into(), other)]),
            }
        }
        consistent(vec![("whole".into(), whole), ("three parts".into(), Answer::Rows(united))])
    }

    /// Why the first peer's rows prove nothing: by another plan it gives ours, or its rows for a condition
    /// that is true, false and unknown are not all rows, where ours are.
    pub fn contradiction(&mut self, statement: &Statement, outcome: &Outcome) -> Option<&'static str> {
        let [(_, ours @ Answer::Rows(_)), (_, Answer::Rows(_)), ..] = &outcome.answers[..] else {
            return None;
        };
        if statement.changes {
            return None;
        }
        let rows = if statement.ordered { Rows::Ordered } else { Rows::Unordered };
        for style in [Style::WithoutIndexes, Style::Hidden] {
            let answer = self.said_by(1, &statement.sql.written(style), statement.representative);
            if alike(ours, &answer, rows) {
                return Some("by another plan MySQL gives our rows");
            }
        }
        for (switches, after) in SWITCHES {
            self.said_by(1, &format!("SET optimizer_switch = '{switches}'"), false);
            let plain = statement.sql.written(Style::Plain);
            let answer = self.said_by(1, &plain, statement.representative);
            self.said_by(1, &format!("SET optimizer_switch = {after}"), false);
            if alike(ours, &answer, rows) {
                return Some("by another plan MySQL gives our rows");
            }
        }
        let parts = |servers: &mut Servers, at| servers.partition(at, statement).verdict == Verdict::Same;
        (statement.partition && !parts(self, 1) && parts(self, 0))
            .then_some("MySQL's rows for a condition that is true, false and unknown are not all rows")
    }

    fn beside_peers(&mut self, statement: &Statement, tables: &[Table]) -> Outcome {
        let answers = self.asked(&statement.sql.written(Style::Plain), statement.representative);
        let warnings = self.connections.iter().map(Conn::warnings).collect();
        let rows = if statement.ordered { Rows::Ordered } else { Rows::Unordered };
        let verdict = judged(&answers, rows);
        let named = self.names.iter().cloned().zip(answers).collect();
        if statement.changes && verdict == Verdict::Same {
            for table in tables {
                let contents = self.asked(&format!("SELECT * FROM {}", table.name), false);
                if judged(&contents, Rows::Unordered) != Verdict::Same {
                    // A server that is gone has no contents.
                    let gone = contents.iter().skip(1).any(|one| matches!(one, Answer::Lost(_)));
                    let verdict = if gone { Verdict::Excluded } else { Verdict::WrongContents };
                    let answers = self.names.iter().cloned().zip(contents).collect();
                    return Outcome { verdict, answers, warnings };
                }
            }
        }
        Outcome { verdict, answers: named, warnings }
    }

    /// The rows of every table: as the peer has them, or ours alone.
    pub fn contents(&mut self, tables: &[Table]) -> Result<Vec<Contents>> {
        let connection = match self.connections.len() {
            1 => self.connections.first_mut(),
            _ => self.connections.get_mut(1),
        };
        let connection = connection.context("no server")?;
        let mut all = Vec::new();
        for table in tables {
            match answer_as(connection, &format!("SELECT * FROM {}", table.name), |_, row| row) {
                Answer::Rows(rows) => all.push(rows),
                other => anyhow::bail!("the rows of {}: {other:?}", table.name),
            }
        }
        Ok(all)
    }

    /// Gives every table these rows, at every server.
    pub fn fill(&mut self, tables: &[Table], contents: &[Contents], mode: &str) {
        self.all(&format!("SET sql_mode = 'ALLOW_INVALID_DATES,{}'", "NO_AUTO_VALUE_ON_ZERO"));
        for (table, rows) in tables.iter().zip(contents) {
            self.all(&format!("DELETE FROM {}", table.name));
            if let Some(insert) = insert(table, rows) {
                self.all(&insert);
            }
        }
        self.all(&format!("SET sql_mode = '{mode}'"));
    }

    /// Ends what the servers may still do for these connections: it would hold their tables.
    pub fn end(&self, addresses: &[Address]) {
        for (address, connection) in addresses.iter().zip(&self.connections) {
            // It may be gone by itself, with the server.
            if let Ok(mut other) = connect(address, None) {
                let _ = other.query_drop(format!("KILL {}", connection.connection_id()));
            }
        }
    }

    pub fn others(&self) -> usize {
        self.connections.len().saturating_sub(1)
    }
}

/// An INSERT of all rows.
pub fn insert(table: &Table, rows: &Contents) -> Option<String> {
    let texts = rows.iter().map(|row| {
        let values = row.iter().zip(&table.columns).map(|(value, column)| literal_of(value, &column.kind));
        format!("({})", values.collect::<Vec<_>>().join(", "))
    });
    let texts: Vec<String> = texts.collect();
    (!texts.is_empty()).then(|| format!("INSERT INTO {} VALUES {}", table.name, texts.join(", ")))
}

fn judged(answers: &[Answer], rows: Rows) -> Verdict {
    match answers {
        [ours, peer] => judge(ours, [peer, peer], rows),
        [ours, peer, other, ..] => judge(ours, [peer, other], rows),
        _ => Verdict::Same,
    }
}

/// The same query in two ways: errors are the plan's, rows are not.
fn consistent(answers: Vec<(String, Answer)>) -> Outcome {
    let verdict = match &answers[..] {
        [(_, Answer::Lost(_)), ..] | [_, (_, Answer::Lost(_)), ..] => Verdict::Lost,
        [(_, one @ Answer::Rows(_)), (_, other @ Answer::Rows(_)), ..]
            if !alike(one, other, Rows::Unordered) =>
        {
            Verdict::WrongRows
        }
        _ => Verdict::Same,
    };
    Outcome { verdict, answers, warnings: Vec::new() }
}

/// A row as it is compared: of doubles the digits that do not depend on the order of a sum, and texts as
/// their collation sees them where they stand for a group.
fn comparable(columns: &[Column], mut row: Vec<Value>, representative: bool) -> Vec<Value> {
    for (column, value) in columns.iter().zip(&mut row) {
        let Value::Bytes(bytes) = value else { continue };
        let kind = column.column_type();
        let Ok(text) = std::str::from_utf8(bytes) else { continue };
        if matches!(kind, ColumnType::MYSQL_TYPE_DOUBLE | ColumnType::MYSQL_TYPE_FLOAT) {
            if let Ok(number) = text.parse::<f64>() {
                let shorter: f64 = format!("{number:.11e}").parse().unwrap_or(number);
                // Zeros of both signs are equal: either may stand for a group.
                let shorter = if shorter == 0.0 { 0.0 } else { shorter };
                *bytes = shorter.to_string().into_bytes();
            }
        } else if representative {
            *bytes = folded(text).into_bytes();
        }
    }
    row
}
