//! Three servers that play the same statements: ours and two stock ones.
//!
//! A connection of a script is one connection to each. After a statement that writes, the tables that it
//! named are compared as wholes; this waits until the next statement is known, because reading the tables
//! would take away what some statements ask for (`ROW_COUNT()`, `SHOW WARNINGS`).
//!
//! A name whose making ours refused, or whose contents are known to differ, is *spoiled* until it is made
//! again: statements that name it say nothing new and are counted as cascades.

use super::character_sets;
use super::interpreter::Stage;
use super::judge::{Rows, Verdict, alike, judge};
use super::statement::{asks_after_the_last, excluded, makes, names, rows, sent, writes};
use crate::peers::{Address, Answer, answer, connect, shown, text_of};
use anyhow::{Context, Result};
use mysql::Conn;
use mysql::prelude::Queryable;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// A statement that was not the same, or the first of several.
pub struct Difference {
    pub file: String,
    pub line: usize,
    pub verdict: Verdict,
    pub sql: String,
    /// Ours, then the others'.
    pub answers: Vec<String>,
}

/// The last writing statement, and the tables it named.
struct Unchecked {
    file: String,
    line: usize,
    sql: String,
    tables: Vec<String>,
    /// Whether all of them did it, or could have.
    judged: bool,
}

/// Tables with more rows are not compared.
const MOST_ROWS: usize = 5000;

pub struct Servers<'a> {
    addresses: &'a [Address; 3],
    database: String,
    /// Where included files are.
    places: Vec<PathBuf>,
    connections: HashMap<String, [Conn; 3]>,
    current: String,
    ends: Instant,
    /// Statements still to be played, at most.
    left: usize,
    lost: bool,
    tables: BTreeSet<String>,
    databases: BTreeSet<String>,
    spoiled: BTreeSet<String>,
    /// Connections that have been told to use a character set that ours does not have.
    foreign: BTreeSet<String>,
    /// Variables that have been given the name of such a set.
    foreign_variables: BTreeSet<String>,
    /// Prepared statements that describe something.
    describing: BTreeSet<String>,
    unchecked: Option<Unchecked>,
    pub counts: BTreeMap<Verdict, usize>,
    pub differences: Vec<Difference>,
}

impl<'a> Servers<'a> {
    /// A new database on every server, and a connection to each.
    pub fn new(
        addresses: &'a [Address; 3],
        database: &str,
        places: Vec<PathBuf>,
        limit: Duration,
    ) -> Result<Servers<'a>> {
        for address in addresses {
            let mut connection = connect(address, None)?;
            connection.query_drop(format!("DROP DATABASE IF EXISTS {database}"))?;
            connection.query_drop(format!(
                "CREATE DATABASE {database} CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci"
            ))?;
        }
        let mut servers = Servers {
            addresses,
            database: database.to_owned(),
            places,
            connections: HashMap::new(),
            current: String::new(),
            ends: Instant::now() + limit,
            left: 5000,
            lost: false,
            tables: BTreeSet::new(),
            databases: BTreeSet::new(),
            spoiled: BTreeSet::new(),
            foreign: BTreeSet::new(),
            foreign_variables: BTreeSet::new(),
            describing: BTreeSet::new(),
            unchecked: None,
            counts: BTreeMap::new(),
            differences: Vec::new(),
        };
        servers.connection("default")?;
        Ok(servers)
    }

    /// Compares what is left to be compared, and removes what the script made.
    pub fn finish(&mut self) -> Result<()> {
        self.check_contents()?;
        self.connections.clear();
        for address in self.addresses {
            let mut connection = connect(address, None)?;
            for database in self.databases.iter().map(String::as_str).chain([&*self.database]) {
                connection.query_drop(format!("DROP DATABASE IF EXISTS {database}"))?;
            }
        }
        Ok(())
    }

    /// How the rows of a statement are compared. What describes something may have been prepared.
    fn rows(&mut self, sql: &str, sorted: bool) -> Rows {
        let words = names(sql);
        if let [prepare, name, ..] = &words[..] {
            let prepared = sql.split_once(['\'', '"']).map_or("", |(_, text)| text);
            match prepare.as_str() {
                "prepare" if rows(prepared, false) == Rows::Text => _ = self.describing.insert(name.clone()),
                "prepare" => _ = self.describing.remove(name),
                "execute" if self.describing.contains(name) => return Rows::Text,
                _ => {}
            }
        }
        rows(sql, sorted)
    }

    fn answers(&mut self, sql: &str) -> [Answer; 3] {
        let Some(connections) = self.connections.get_mut(&self.current) else {
            return std::array::from_fn(|_| Answer::Lost(format!("no connection {}", self.current)));
        };
        std::thread::scope(|scope| {
            connections
                .each_mut()
                .map(|connection| scope.spawn(move || answer(connection, sql)))
                .map(|thread| thread.join().unwrap_or_else(|_| Answer::Lost("the thread panicked".into())))
        })
    }

    fn note(&mut self, file: &str, line: usize, sql: &str, verdict: Verdict, answers: &[Answer; 3]) {
        *self.counts.entry(verdict).or_default() += 1;
        if ![Verdict::Same, Verdict::Excluded, Verdict::Cascade].contains(&verdict) {
            let answers = answers.iter().map(shown).collect();
            self.differences.push(Difference { file: file.into(), line, verdict, sql: sql.into(), answers });
        }
    }

    /// Compares the tables that the last writing statement named.
    fn check_contents(&mut self) -> Result<()> {
        let Some(Unchecked { file, line, sql, tables, judged }) = self.unchecked.take() else {
            return Ok(());
        };
        for table in tables {
            if self.lost || self.spoiled.contains(&table) || !self.tables.contains(&table) {
                continue;
            }
            let answers = self.answers(&format!("SELECT * FROM `{table}` LIMIT {}", MOST_ROWS + 1));
            let [Answer::Rows(ours), Answer::Rows(one), Answer::Rows(other)] = &answers else { continue };
            let large = [ours, one, other].iter().any(|rows| rows.len() > MOST_ROWS);
            let [ours, one, other] = answers.each_ref();
            let same = [one, other].iter().any(|peer| alike(ours, peer, Rows::Unordered));
            if large || same || !alike(one, other, Rows::Unordered) {
                continue;
            }
            // What one of them alone can do makes no contents that could be held against ours.
            let verdict = if judged { Verdict::WrongContents } else { Verdict::Cascade };
            self.note(&file, line, &format!("{sql} -- {table}"), verdict, &answers);
            self.spoiled.insert(table);
        }
        Ok(())
    }

    /// What the script's own statement did to the names that are known.
    fn keep_names(&mut self, sql: &str, verdict: Verdict, answers: &[Answer; 3]) {
        let made = makes(sql);
        let ours = &answers[0];
        let spoils = match verdict {
            Verdict::Refused | Verdict::NotRefused | Verdict::Unsettled => true,
            // What was done of it differs, so what follows says nothing either.
            Verdict::Cascade => {
                let refused = answers.iter().filter(|answer| matches!(answer, Answer::Error(..))).count();
                (1..answers.len()).contains(&refused)
            }
            // Each server has its own descriptions.
            _ => writes(sql) && rows(sql, false) == Rows::Text,
        };
        if spoils {
            self.spoiled.extend(made.iter().cloned());
            if writes(sql) {
                let named = names(sql).into_iter().filter(|name| self.tables.contains(name));
                self.spoiled.extend(named.collect::<Vec<_>>());
            }
        } else if !matches!(ours, Answer::Error(..)) {
            for name in &made {
                self.spoiled.remove(name);
            }
        }
        let words = names(sql);
        let word = words.first().map_or("", String::as_str);
        if word == "create" {
            self.tables.extend(made);
        }
    }

    /// Whether a statement about databases may be played: only what the script itself makes is touched.
    fn may_touch_databases(&mut self, sql: &str) -> bool {
        let words = names(sql);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let last = words.iter().skip(2).find(|word| !["if", "not", "exists"].contains(*word));
        match (&words[..], last) {
            (["create", "database" | "schema", ..], Some(name)) => {
                let ask = format!("SHOW DATABASES LIKE '{name}'");
                let free = self
                    .answers(&ask)
                    .iter()
                    .all(|answer| matches!(answer, Answer::Rows(rows) if rows.is_empty()));
                if free {
                    self.databases.insert((*name).to_owned());
                }
                free || self.databases.contains(*name)
            }
            (["drop" | "alter", "database" | "schema", ..], Some(name)) => self.databases.contains(*name),
            (["use", name, ..], _) => self.databases.contains(*name) || *name == self.database,
            _ => true,
        }
    }
}

impl Stage for Servers<'_> {
    fn statement(&mut self, file: &str, line: usize, sql: &str, sorted: bool) -> Result<()> {
        if !asks_after_the_last(sql) {
            self.check_contents()?;
        }
        self.left = self.left.saturating_sub(1);
        let sql = sent(sql, &self.database);
        let nothing = [(); 3].map(|()| Answer::Done(0));
        if character_sets::names_another(&sql) {
            let own = |name: &String| name.starts_with('@') && !name.starts_with("@@");
            let variables = makes(&sql).into_iter().filter(own);
            self.foreign_variables.extend(variables.map(|name| name.to_ascii_lowercase()));
        }
        match character_sets::chooses(&sql, &self.foreign_variables) {
            Some(true) => _ = self.foreign.insert(self.current.clone()),
            Some(false) => _ = self.foreign.remove(&self.current),
            None => {}
        }
        let foreign = self.foreign.contains(&self.current) || character_sets::names_another(&sql);
        if excluded(&sql).is_some() || !self.may_touch_databases(&sql) {
            self.note(file, line, &sql, Verdict::Excluded, &nothing);
            return Ok(());
        }
        let answers = self.answers(&sql);
        let mut verdict = judge(&answers[0], [&answers[1], &answers[2]], self.rows(&sql, sorted));
        let spoiled = names(&sql).iter().any(|name| self.spoiled.contains(name));
        if spoiled && ![Verdict::Same, Verdict::Excluded, Verdict::Lost].contains(&verdict) {
            verdict = Verdict::Cascade;
        }
        let counted = match verdict {
            Verdict::Same | Verdict::Lost => verdict,
            _ if foreign => Verdict::Excluded,
            verdict => verdict,
        };
        self.note(file, line, &sql, counted, &answers);
        self.keep_names(&sql, verdict, &answers);
        self.lost |= answers.iter().any(|answer| matches!(answer, Answer::Lost(_)));
        if writes(&sql) && !self.lost {
            let named = names(&sql).into_iter().filter(|name| self.tables.contains(name)).collect();
            match foreign {
                true => self.spoiled.extend::<Vec<_>>(named),
                false => {
                    let judged = ![Verdict::Excluded, Verdict::Cascade].contains(&verdict);
                    self.unchecked =
                        Some(Unchecked { file: file.to_owned(), line, sql, tables: named, judged });
                }
            }
        }
        Ok(())
    }

    fn query(&mut self, sql: &str) -> Result<(Vec<String>, Vec<Vec<String>>)> {
        let sql = sent(sql, &self.database);
        let connections = self.connections.get_mut(&self.current);
        let [_, peer, _] = connections.with_context(|| format!("no connection {}", self.current))?;
        let Ok(mut result) = peer.query_iter(&sql) else { return Ok((Vec::new(), Vec::new())) };
        let columns = result.columns();
        let titles = columns.as_ref().iter().map(|column| column.name_str().into_owned()).collect();
        let mut found = Vec::new();
        for row in result.by_ref().flatten() {
            found.push(row.unwrap().iter().map(text_of).collect());
        }
        Ok((titles, found))
    }

    fn connection(&mut self, name: &str) -> Result<()> {
        if !self.current.is_empty() {
            self.check_contents()?;
        }
        if !self.connections.contains_key(name) {
            let [ours, one, other] = self.addresses;
            let database = Some(&*self.database);
            let made = [connect(ours, database)?, connect(one, database)?, connect(other, database)?];
            self.connections.insert(name.to_owned(), made);
        }
        name.clone_into(&mut self.current);
        Ok(())
    }

    fn disconnect(&mut self, name: &str) {
        // A script may go on without saying where; the first connection is then the one.
        if name != "default" {
            self.connections.remove(name);
        }
        if self.current == name {
            "default".clone_into(&mut self.current);
        }
    }

    fn included(&mut self, name: &str) -> Option<String> {
        let bytes = self.places.iter().find_map(|place| std::fs::read(place.join(name)).ok())?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn stop(&self) -> Option<String> {
        match () {
            () if self.lost => Some("a connection was lost".to_owned()),
            () if Instant::now() > self.ends => Some("time is up".to_owned()),
            () if self.left == 0 => Some("enough statements".to_owned()),
            () => None,
        }
    }
}
