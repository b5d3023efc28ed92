//! What a server says of a database: every row of every table, and everything about their definitions.

use super::dialect;
use super::{DATABASE, Kind, Server};
use crate::peers::connect;
use anyhow::{Context, Result};
use mysql::prelude::Queryable;
use mysql::{Conn, Row, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Display};

/// A table of information_schema: what its rows are of, and the columns that are compared.
struct Source {
    table: &'static str,
    /// Whose value names the database.
    database: &'static str,
    /// Which together name a row.
    of: &'static [&'static str],
    columns: &'static [&'static str],
}

/// What MySQL has and MariaDB does not, is not asked for there.
const ONLY_MYSQL: [&str; 3] = ["IS_VISIBLE", "EXPRESSION", "ENFORCED"];

const SOURCES: [Source; 7] = [
    Source {
        table: "TABLES",
        database: "TABLE_SCHEMA",
        of: &["TABLE_NAME"],
        columns: &["TABLE_TYPE", "ENGINE", "ROW_FORMAT", "TABLE_COLLATION", "TABLE_COMMENT"],
    },
    Source {
        table: "COLUMNS",
        database: "TABLE_SCHEMA",
        of: &["TABLE_NAME", "COLUMN_NAME"],
        columns: &[
            "ORDINAL_POSITION",
            "COLUMN_DEFAULT",
            "IS_NULLABLE",
            "DATA_TYPE",
            "CHARACTER_MAXIMUM_LENGTH",
            "CHARACTER_OCTET_LENGTH",
            "NUMERIC_PRECISION",
            "NUMERIC_SCALE",
            "DATETIME_PRECISION",
            "CHARACTER_SET_NAME",
            "COLLATION_NAME",
            "COLUMN_TYPE",
            "COLUMN_KEY",
            "EXTRA",
            "COLUMN_COMMENT",
            "GENERATION_EXPRESSION",
        ],
    },
    Source {
        table: "STATISTICS",
        database: "TABLE_SCHEMA",
        of: &["TABLE_NAME", "INDEX_NAME", "SEQ_IN_INDEX"],
        columns: &[
            "NON_UNIQUE",
            "COLUMN_NAME",
            "COLLATION",
            "SUB_PART",
            "NULLABLE",
            "INDEX_TYPE",
            "COMMENT",
            "INDEX_COMMENT",
            "IS_VISIBLE",
            "EXPRESSION",
        ],
    },
    Source {
        table: "KEY_COLUMN_USAGE",
        database: "TABLE_SCHEMA",
        of: &["TABLE_NAME", "CONSTRAINT_NAME", "ORDINAL_POSITION"],
        columns: &[
            "COLUMN_NAME",
            "POSITION_IN_UNIQUE_CONSTRAINT",
            "REFERENCED_TABLE_NAME",
            "REFERENCED_COLUMN_NAME",
        ],
    },
    Source {
        table: "REFERENTIAL_CONSTRAINTS",
        database: "CONSTRAINT_SCHEMA",
        of: &["TABLE_NAME", "CONSTRAINT_NAME"],
        columns: &[
            "UNIQUE_CONSTRAINT_NAME",
            "MATCH_OPTION",
            "UPDATE_RULE",
            "DELETE_RULE",
            "REFERENCED_TABLE_NAME",
        ],
    },
    Source {
        table: "TABLE_CONSTRAINTS",
        database: "TABLE_SCHEMA",
        of: &["TABLE_NAME", "CONSTRAINT_NAME"],
        columns: &["CONSTRAINT_TYPE", "ENFORCED"],
    },
    Source {
        table: "CHECK_CONSTRAINTS",
        database: "CONSTRAINT_SCHEMA",
        of: &["CONSTRAINT_NAME"],
        columns: &["CHECK_CLAUSE"],
    },
];

const VIEWS: Source = Source {
    table: "VIEWS",
    database: "TABLE_SCHEMA",
    of: &["TABLE_NAME"],
    columns: &["CHECK_OPTION", "IS_UPDATABLE", "SECURITY_TYPE", "CHARACTER_SET_CLIENT"],
};

/// What a fact is about.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Fact {
    /// `rows`, `SHOW CREATE`, or a table of information_schema.
    pub source: &'static str,
    /// The names of what it is of.
    pub of: String,
    /// The column of information_schema, or nothing.
    pub column: &'static str,
}

/// Something that is not the same.
#[derive(Debug)]
pub struct Difference {
    fact: Fact,
    was: Option<String>,
    is: Option<String>,
}

/// All facts of a database at a server.
#[derive(Clone)]
pub struct State {
    facts: BTreeMap<Fact, String>,
    /// Views, whose columns servers describe in their own ways.
    views: BTreeSet<String>,
}

impl Difference {
    pub fn is_contents(&self) -> bool {
        self.fact.source == "rows"
    }
}

impl Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Fact { source, of, column } = &self.fact;
        write!(f, "{source} {of} {column}: ")?;
        let (was, is) = (self.was.as_deref().unwrap_or("nothing"), self.is.as_deref().unwrap_or("nothing"));
        // The first line, or the part of it, that is another.
        let lines = was.lines().zip(is.lines()).find(|(was, is)| was != is);
        let (was, is) = lines.unwrap_or((was, is));
        let cut = |text: &str| text.chars().take(400).collect::<String>();
        write!(f, "{:?} became {:?}", cut(was), cut(is))
    }
}

impl State {
    /// Asks a server.
    pub fn read(server: &Server) -> Result<State> {
        let mut connection = connect(&server.address, Some(DATABASE))?;
        // Rows are as they are on every server.
        connection.query_drop("SET time_zone = '+00:00'")?;
        let mut state = State { facts: BTreeMap::new(), views: BTreeSet::new() };
        for source in SOURCES.iter().chain([&VIEWS]) {
            state.read_source(&mut connection, source, server.kind)?;
        }
        let tables: Vec<(String, String)> = connection.query(format!(
            "SELECT TABLE_NAME, TABLE_TYPE FROM information_schema.TABLES WHERE TABLE_SCHEMA = '{DATABASE}'"
        ))?;
        for (name, kind) in tables {
            state.read_table(&mut connection, &name).with_context(|| name.clone())?;
            if kind == "VIEW" {
                state.views.insert(name);
            }
        }
        Ok(state)
    }

    fn put(&mut self, source: &'static str, of: impl Into<String>, column: &'static str, value: String) {
        self.facts.insert(Fact { source, of: of.into(), column }, value);
    }

    fn read_source(&mut self, connection: &mut Conn, source: &Source, kind: Kind) -> Result<()> {
        let known = |column: &&&str| kind != Kind::MariaDb || !ONLY_MYSQL.contains(*column);
        let columns: Vec<&'static str> = source.columns.iter().filter(known).copied().collect();
        let list: Vec<&str> = source.of.iter().chain(&columns).copied().collect();
        let rows: Vec<Row> = connection.query(format!(
            "SELECT {} FROM information_schema.{} WHERE {} = '{DATABASE}'",
            list.join(", "),
            source.table,
            source.database
        ))?;
        for row in rows {
            let values: Vec<String> = row.unwrap().iter().map(shown).collect();
            let (of, values) = values.split_at(source.of.len());
            for (column, value) in columns.iter().zip(values) {
                self.put(source.table, of.join("."), column, value.clone());
            }
        }
        Ok(())
    }

    /// Its rows, in the order of their values, and how it is made.
    fn read_table(&mut self, connection: &mut Conn, name: &str) -> Result<()> {
        let quoted = format!("`{}`", name.replace('`', "``"));
        let made: Row = connection
            .query_first(format!("SHOW CREATE TABLE {quoted}"))?
            .context("SHOW CREATE TABLE says nothing")?;
        self.put("SHOW CREATE", name, "", made.unwrap().get(1).map(shown).unwrap_or_default());
        let rows: Vec<Row> = connection.query(format!("SELECT * FROM {quoted}"))?;
        let mut rows: Vec<String> = rows
            .into_iter()
            .map(|row| row.unwrap().iter().map(shown).collect::<Vec<_>>().join("\u{241f}"))
            .collect();
        rows.sort();
        self.put("rows", name, "", rows.join("\n"));
        Ok(())
    }

    /// What is not the same in another state, but for known differences of dialect between two such servers.
    pub fn differences(
        &self,
        other: &State,
        between: (Kind, Kind),
        known: &mut BTreeSet<&'static str>,
    ) -> Vec<Difference> {
        let facts: BTreeSet<&Fact> = self.facts.keys().chain(other.facts.keys()).collect();
        let mut differences = Vec::new();
        for fact in facts {
            let (was, is) = (self.facts.get(fact), other.facts.get(fact));
            if was == is {
                continue;
            }
            let of_view = self.views.contains(fact.of.split('.').next().unwrap_or_default())
                && fact.source == "COLUMNS";
            match dialect::reason(fact, of_view, (was, is), between) {
                Some(reason) => drop(known.insert(reason)),
                None => {
                    let fact = fact.clone();
                    differences.push(Difference { fact, was: was.cloned(), is: is.cloned() });
                }
            }
        }
        differences
    }
}

/// A value; bytes that are no text, or have rare control characters, in hexadecimal.
fn shown(value: &Value) -> String {
    match value {
        Value::NULL => "NULL".to_owned(),
        Value::Bytes(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) if !text.contains(|c: char| c.is_control() && !['\n', '\r', '\t'].contains(&c)) => {
                text.to_owned()
            }
            _ => bytes.iter().fold("0x".to_owned(), |text, byte| text + &format!("{byte:02X}")),
        },
        other => other.as_sql(true),
    }
}
