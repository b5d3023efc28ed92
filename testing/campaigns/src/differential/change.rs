//! Changes of chance: INSERT, REPLACE, UPDATE, DELETE, of one table or of a join.
//!
//! The order in which rows are changed decides which one meets a key in its way, so it is given wherever it
//! may matter; in a join no row is given two values.

use super::data;
use super::expression::{Generator, Known};
use super::query::{Statement, total_order};
use super::schema::{Class, Column, Table, pick};
use super::tree::{Kind, Sql};

/// What statements run in: strict as by default, not strict at all, and the part of it that MariaDB has.
pub const MODES: [&str; 3] = [
    "ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO,\
     NO_ENGINE_SUBSTITUTION",
    "",
    "STRICT_TRANS_TABLES",
];

impl Generator<'_> {
    /// The rows that a table begins with.
    pub fn first_rows(&mut self, table: &Table, rows: usize) -> Statement {
        let mut members = Vec::new();
        for _ in 0..rows {
            let values = table.columns.iter().map(|column| Sql::text(self.good_value(column))).collect();
            members.push(Sql::all(vec![Sql::text("("), Sql::list(values), Sql::text(")")]));
        }
        let head = Sql::text(format!("INSERT IGNORE INTO {} VALUES ", table.name));
        changing(vec![head, Sql::list(members)])
    }

    fn good_value(&mut self, column: &Column) -> String {
        if column.nullable && self.random.one_in(5) {
            return "NULL".to_owned();
        }
        data::stored(self.random, &column.kind)
    }

    pub fn change(&mut self) -> Statement {
        self.scopes.clear();
        match self.random.below(12) {
            0..=2 => self.insert(),
            3 => self.insert_query(),
            4 => self.upsert(),
            5..=8 => self.update(),
            9 => self.delete(),
            10 => self.joined_update(),
            _ => self.joined_delete(),
        }
    }

    fn some_table(&mut self) -> Table {
        pick(self.random, self.tables)
    }

    /// A value for a column in an INSERT: mostly a good one.
    fn new_value(&mut self, column: &Column) -> Sql {
        // No subqueries: MySQL's see the rows that were inserted before.
        self.depth = 2;
        match self.random.below(20) {
            0 => Sql::text("DEFAULT"),
            1 => Sql::text("NULL"),
            2 | 3 => Sql::text(data::odd(self.random)),
            4 => self.value(column.kind.class(), 2),
            _ => Sql::text(self.good_value(column)),
        }
    }

    fn values(&mut self, table: &Table) -> Vec<Sql> {
        let left_out =
            if self.random.one_in(4) { self.random.below(table.columns.len()) } else { usize::MAX };
        let columns: Vec<&Column> = table
            .columns
            .iter()
            .enumerate()
            .filter(|(at, _)| *at != left_out || table.columns.len() == 1)
            .map(|(_, column)| column)
            .collect();
        let names = columns.iter().map(|column| column.name.as_str()).collect::<Vec<_>>().join(", ");
        let mut rows = Vec::new();
        for _ in 0..1 + self.random.below(3) {
            let values = columns.iter().map(|column| self.new_value(column)).collect();
            rows.push(Sql::all(vec![Sql::text("("), Sql::list(values), Sql::text(")")]));
        }
        vec![Sql::text(format!(" INTO {} ({names}) VALUES ", table.name)), Sql::list(rows)]
    }

    fn insert(&mut self) -> Statement {
        let table = self.some_table();
        let word = pick(self.random, &["INSERT", "INSERT", "INSERT IGNORE", "REPLACE"]);
        let values = self.values(&table);
        changing([vec![Sql::text(word)], values].concat())
    }

    fn insert_query(&mut self) -> Statement {
        let table = self.some_table();
        let other = self.some_table();
        let (alias, known) = self.known(&other);
        let total = total_order(&known);
        self.scopes.push(known);
        let class_of = |column: &Column| column.kind.class();
        let items = table.columns.iter().map(|column| self.value(class_of(column), 1)).collect();
        let condition = self.condition(2);
        self.scopes.pop();
        let word = pick(self.random, &["INSERT", "INSERT IGNORE", "REPLACE"]);
        changing(vec![
            Sql::text(format!("{word} INTO {} SELECT ", table.name)),
            Sql::list(items),
            Sql::text(format!(" FROM {} AS {alias}", other.name)),
            Sql::optional(vec![Sql::text(" WHERE "), condition]),
            Sql::text(format!(" ORDER BY {total} LIMIT 3")),
        ])
    }

    fn upsert(&mut self) -> Statement {
        let table = self.some_table();
        let values = self.values(&table);
        let known = table.columns.iter().map(|column| Known {
            sql: column.name.clone(),
            class: column.kind.class(),
            kind: Some(column.kind.clone()),
        });
        self.scopes.push(known.collect());
        let mut assignments = Vec::new();
        for _ in 0..1 + self.random.below(2) {
            let column = pick(self.random, &table.columns);
            let value = match self.random.below(3) {
                0 => Sql::text(format!("VALUES({})", column.name)),
                1 => Sql::text(self.good_value(&column)),
                _ => self.value(column.kind.class(), 1),
            };
            assignments.push(Sql::all(vec![Sql::text(format!("{} = ", column.name)), value]));
        }
        self.scopes.pop();
        let tail = vec![Sql::text(" ON DUPLICATE KEY UPDATE "), Sql::list(assignments)];
        changing([vec![Sql::text("INSERT")], values, tail].concat())
    }

    fn known(&mut self, table: &Table) -> (String, Vec<Known>) {
        let alias = self.alias('a');
        let columns = table.columns.iter().map(|column| Known {
            sql: format!("{alias}.{}", column.name),
            class: column.kind.class(),
            kind: Some(column.kind.clone()),
        });
        let columns = columns.collect();
        (alias, columns)
    }

    fn assignment(&mut self, table: &Table, alias: &str) -> Sql {
        let column = pick(self.random, &table.columns);
        let value = match self.random.below(4) {
            0 => Sql::text(self.good_value(&column)),
            1 => Sql::text(data::odd(self.random)),
            2 if column.kind.class() == Class::Integer => {
                Sql::text(format!("{alias}.{} {} 1", column.name, pick(self.random, &["+", "-", "*"])))
            }
            _ => self.value(column.kind.class(), 1),
        };
        Sql::all(vec![Sql::text(format!("{alias}.{} = ", column.name)), value])
    }

    fn update(&mut self) -> Statement {
        let table = self.some_table();
        let (alias, known) = self.known(&table);
        let total = total_order(&known);
        self.scopes.push(known);
        let count = 1 + self.random.below(2);
        let assignments = (0..count).map(|_| self.assignment(&table, &alias)).collect();
        let condition = self.condition(2);
        self.scopes.pop();
        let word = pick(self.random, &["UPDATE", "UPDATE", "UPDATE IGNORE"]);
        let limit = pick(self.random, &["", " LIMIT 1", " LIMIT 3"]);
        changing(vec![
            Sql::text(format!("{word} {} AS {alias} SET ", table.name)),
            Sql::list(assignments),
            Sql::optional(vec![Sql::text(" WHERE "), condition]),
            Sql::text(format!(" ORDER BY {total}")),
            Sql::optional(vec![Sql::text(limit)]),
        ])
    }

    fn delete(&mut self) -> Statement {
        let table = self.some_table();
        let (alias, known) = self.known(&table);
        let total = total_order(&known);
        self.scopes.push(known);
        let condition = self.condition(2);
        self.scopes.pop();
        let limit = pick(self.random, &[" LIMIT 1", " LIMIT 2", " LIMIT 4"]);
        changing(vec![
            Sql::text(format!("DELETE FROM {} AS {alias}", table.name)),
            Sql::optional(vec![Sql::text(" WHERE "), condition]),
            Sql::text(format!(" ORDER BY {total}{limit}")),
        ])
    }

    /// The other table only chooses rows: each gets the value that its own columns give.
    fn joined_update(&mut self) -> Statement {
        let table = self.some_table();
        let other = self.some_table();
        let (alias, known) = self.known(&table);
        let (other_alias, other_known) = self.known(&other);
        self.scopes.push(known.clone());
        let keyed = table.primary.iter().chain(&table.indexes).filter(|index| index.unique);
        let keys: Vec<String> =
            keyed.flat_map(|index| index.parts.iter().map(|(name, _)| name.clone())).collect();
        let free: Vec<Column> =
            table.columns.iter().filter(|column| !keys.contains(&column.name)).cloned().collect();
        if free.is_empty() {
            self.scopes.pop();
            return self.update();
        }
        let column = pick(self.random, &free);
        let value = Sql::text(self.good_value(&column));
        let assignment = Sql::all(vec![Sql::text(format!("{alias}.{} = ", column.name)), value]);
        self.scopes.pop();
        self.scopes.push([known, other_known].concat());
        let (on, condition) = (self.condition(1), self.condition(1));
        self.scopes.pop();
        let word = pick(self.random, &[" JOIN ", " LEFT JOIN "]);
        changing(vec![
            Sql::text(format!("UPDATE {} AS {alias}{word}{} AS {other_alias} ON ", table.name, other.name)),
            on,
            Sql::text(" SET "),
            assignment,
            Sql::optional(vec![Sql::text(" WHERE "), condition]),
        ])
    }

    fn joined_delete(&mut self) -> Statement {
        let table = self.some_table();
        let other = self.some_table();
        let (alias, known) = self.known(&table);
        let (other_alias, other_known) = self.known(&other);
        self.scopes.push([known, other_known].concat());
        let (on, condition) = (self.condition(1), self.condition(2));
        self.scopes.pop();
        let gone = if self.random.one_in(4) { format!("{alias}, {other_alias}") } else { alias.clone() };
        let word = pick(self.random, &[" JOIN ", " LEFT JOIN "]);
        changing(vec![
            Sql::text(format!(
                "DELETE {gone} FROM {} AS {alias}{word}{} AS {other_alias} ON ",
                table.name, other.name
            )),
            on,
            Sql::text(" WHERE "),
            condition,
        ])
    }
}

fn changing(pieces: Vec<Sql>) -> Statement {
    Statement { changes: true, ..Statement::of(Sql::Part(Kind::All, pieces)) }
}
