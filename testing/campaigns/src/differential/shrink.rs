//! Makes a finding small: of the statement, the rows, the columns, the keys and the tables, what the
//! difference does not need.

use super::query::Statement;
use super::schema::Table;
use super::servers::{Contents, Oracle, Outcome, Servers, insert};
use super::tree::Style;
use crate::peers::shown;
use crate::suites::judge::{VERDICTS, Verdict};

/// Statements that are tried for one finding, and definitions of tables, which cost more.
const TRIES: usize = 1500;
const DEFINITIONS: usize = 60;

/// Everything that a finding needs to show itself.
#[derive(Clone)]
pub struct Case {
    pub tables: Vec<Table>,
    pub contents: Vec<Contents>,
    pub mode: String,
    pub statement: Statement,
    pub oracle: Oracle,
}

pub struct Shrinker<'a> {
    servers: &'a mut Servers,
    case: Case,
    signature: (Verdict, Vec<u16>),
    tries: usize,
    definitions: usize,
}

impl<'a> Shrinker<'a> {
    pub fn new(servers: &'a mut Servers, case: Case, outcome: &Outcome) -> Shrinker<'a> {
        Shrinker { servers, case, signature: outcome.signature(), tries: TRIES, definitions: DEFINITIONS }
    }

    /// The smallest case that was found, and whether the difference shows on tables made again.
    pub fn shrunk(mut self) -> (Case, Option<Outcome>) {
        let case = self.case.clone();
        self.define(&case);
        if !self.shows(&case) {
            return (self.case, None);
        }
        self.statement();
        self.tables();
        self.rows();
        self.columns();
        self.statement();
        self.rows();
        let case = self.case.clone();
        self.define(&case);
        let outcome = self.outcome(&case);
        (self.case, Some(outcome))
    }

    /// Makes the tables again.
    fn define(&mut self, case: &Case) {
        for number in 1..=9 {
            self.servers.all(&format!("DROP TABLE IF EXISTS t{number}"));
        }
        for table in &case.tables {
            self.servers.all(&table.definition());
        }
        self.servers.fill(&case.tables, &case.contents, &case.mode);
    }

    fn outcome(&mut self, case: &Case) -> Outcome {
        if !case.statement.changes {
            return self.servers.outcome(&case.statement, case.oracle, &case.tables);
        }
        self.servers.all("BEGIN");
        let outcome = self.servers.outcome(&case.statement, case.oracle, &case.tables);
        self.servers.all("ROLLBACK");
        outcome
    }

    fn shows(&mut self, case: &Case) -> bool {
        // What it makes of the query around is not determined.
        if case.statement.sql.has_outer_aggregate() {
            return false;
        }
        self.tries = self.tries.saturating_sub(1);
        self.outcome(case).signature() == self.signature
    }

    fn statement(&mut self) {
        loop {
            let smaller = self.case.statement.sql.reductions();
            let size = self.case.statement.sql.size();
            let found = smaller.into_iter().filter(|sql| sql.size() < size).find(|sql| {
                if self.tries == 0 {
                    return false;
                }
                let mut case = self.case.clone();
                case.statement.sql = sql.clone();
                self.shows(&case)
            });
            match found {
                Some(sql) => self.case.statement.sql = sql,
                None => return,
            }
        }
    }

    /// Tables that the statement does not name.
    fn tables(&mut self) {
        let text = self.case.statement.sql.written(Style::Plain);
        let named = |table: &Table| text.contains(&table.name);
        let kept: Vec<bool> = self.case.tables.iter().map(named).collect();
        let mut case = self.case.clone();
        let mut keep = kept.iter();
        case.tables.retain(|_| *keep.next().unwrap_or(&true));
        let mut keep = kept.iter();
        case.contents.retain(|_| *keep.next().unwrap_or(&true));
        if self.shows(&case) {
            self.case = case;
        }
    }

    /// Rows: halves, quarters, at last single ones.
    fn rows(&mut self) {
        for at in 0..self.case.tables.len() {
            let mut step = self.case.contents[at].len().div_ceil(2);
            while step > 0 {
                let mut from = 0;
                while from < self.case.contents[at].len() && self.tries > 0 {
                    let mut case = self.case.clone();
                    let to = (from + step).min(case.contents[at].len());
                    case.contents[at].drain(from..to);
                    self.servers.fill(&case.tables, &case.contents, &case.mode);
                    if self.shows(&case) {
                        self.case = case;
                    } else {
                        from = to;
                    }
                }
                step = if step == 1 { 0 } else { step.div_ceil(2) };
            }
        }
        let case = self.case.clone();
        self.servers.fill(&case.tables, &case.contents, &case.mode);
    }

    /// Columns and keys.
    fn columns(&mut self) {
        for at in 0..self.case.tables.len() {
            for index in (0..self.case.tables[at].indexes.len()).rev() {
                let mut case = self.case.clone();
                case.tables[at].indexes.remove(index);
                self.defined(case);
            }
            let mut case = self.case.clone();
            if case.tables[at].primary.take().is_some() {
                self.defined(case);
            }
            for column in (0..self.case.tables[at].columns.len()).rev() {
                let mut case = self.case.clone();
                if let Some(table) = case.tables[at].without_column(column) {
                    case.tables[at] = table;
                    for row in &mut case.contents[at] {
                        row.remove(column);
                    }
                    self.defined(case);
                }
            }
        }
    }

    /// Keeps a case with other tables if the difference shows there.
    fn defined(&mut self, case: Case) {
        if self.definitions == 0 {
            return;
        }
        self.definitions -= 1;
        self.define(&case);
        if self.shows(&case) {
            self.case = case;
        }
    }
}

impl Case {
    /// A script for the mysql client, with the answers behind it.
    pub fn script(&self, outcome: &Outcome) -> String {
        let name = VERDICTS.iter().find(|(known, _)| *known == outcome.verdict).map_or("", |(_, name)| name);
        let mut text = format!("-- {name}, {:?}\nSET sql_mode = 'ALLOW_INVALID_DATES';\n", self.oracle);
        for (table, rows) in self.tables.iter().zip(&self.contents) {
            text += &format!("{};\n", table.definition());
            text += &insert(table, rows).map(|sql| format!("{sql};\n")).unwrap_or_default();
        }
        text += &format!("SET sql_mode = '{}';\n", self.mode);
        let styles: &[Style] = match self.oracle {
            Oracle::Peers => &[Style::Plain],
            Oracle::Indexes => &[Style::Plain, Style::WithoutIndexes],
            Oracle::Partition => &[Style::Whole, Style::Plain, Style::Negated, Style::Unknown],
        };
        for style in styles {
            text += &format!("{};\n", self.statement.sql.written(*style));
        }
        for (name, answer) in &outcome.answers {
            text += &format!("-- {name}: {}\n", shown(answer));
        }
        text
    }

    /// The statement without names and values: findings that share it are most likely one.
    pub fn form(&self) -> String {
        let text = self.statement.sql.written(Style::Plain);
        let mut quoted = false;
        let letters = text.chars().filter(|letter| {
            quoted ^= *letter == '\'';
            !quoted && !letter.is_ascii_digit() && *letter != '-' && *letter != '.'
        });
        letters.collect()
    }
}
