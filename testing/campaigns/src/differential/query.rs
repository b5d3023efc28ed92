//! Queries of chance: joins, subqueries, groups, windows, set operations, common table expressions.
//!
//! What a query does not determine is not asked for: LIMIT and numbered rows follow an order that only
//! identical rows are equal in, and where a text stands for a group of equal ones, the statement says so
//! (`representative`), and texts are compared as their collations do.

use super::expression::{Generator, Known};
use super::schema::{Class, Table, Type, pick};
use super::templates::{AGGREGATES, FRAMES, TEXT_AGGREGATES, WINDOW_FUNCTIONS};
use super::tree::{Kind, Sql, Style};
use std::collections::BTreeSet;

/// A statement with what must be known to judge its answers.
#[derive(Clone, Debug)]
pub struct Statement {
    pub sql: Sql,
    /// Rows come in the order that is asked for.
    pub ordered: bool,
    /// A text may stand for others that are equal.
    pub representative: bool,
    /// Which rows are looked at is the plan's choice, and with it which errors are met.
    pub planned: bool,
    /// Changes rows.
    pub changes: bool,
    /// It has a condition by which it may be cut into three.
    pub partition: bool,
}

/// An item of a select list.
struct Item {
    sql: Sql,
    class: Class,
}

/// A query without its order.
struct Query {
    sql: Sql,
    classes: Vec<Class>,
    representative: bool,
}

/// What comes of FROM.
struct From {
    sql: Sql,
    columns: Vec<Known>,
}

impl Generator<'_> {
    /// A query as a statement.
    pub fn query_statement(&mut self) -> Statement {
        match self.random.below(20) {
            0 => self.plain_values(),
            1..=9 => self.partitioned(),
            _ => self.ordered_query(),
        }
    }

    /// Expressions of every row of a table: all are looked at, so errors are certain.
    fn plain_values(&mut self) -> Statement {
        let from = self.table();
        self.scopes.push(from.columns);
        let items = self.items(1, 3);
        self.scopes.pop();
        let list = Sql::list(items.into_iter().map(|item| item.sql).collect());
        let sql = Sql::all(vec![Sql::text("SELECT "), list, Sql::text(" FROM "), from.sql]);
        let mut statement = Statement::of(sql);
        statement.planned = false;
        statement
    }

    /// A query of one level with a condition.
    fn partitioned(&mut self) -> Statement {
        let from = self.from(3);
        self.scopes.push(from.columns);
        let items = self.items(1, 4);
        let condition = self.condition(4);
        self.scopes.pop();
        let list = Sql::list(items.into_iter().map(|item| item.sql).collect());
        let condition = Sql::Part(Kind::Partition, vec![condition]);
        let sql = Sql::all(vec![Sql::text("SELECT "), list, Sql::text(" FROM "), from.sql, condition]);
        let mut statement = Statement::of(sql);
        statement.partition = true;
        statement
    }

    fn ordered_query(&mut self) -> Statement {
        let (before, query) = match self.random.below(8) {
            0 | 1 => self.with_common_table(),
            2 | 3 => (Sql::text(""), self.set_operation()),
            _ => (Sql::text(""), self.any_query(true)),
        };
        let mut pieces = vec![before, query.sql];
        let mut ordered = false;
        if self.random.one_in(2) && !query.representative {
            let keys = query.classes.iter().enumerate().map(|(at, _)| {
                let descending = if self.random.one_in(3) { " DESC" } else { "" };
                Sql::text(format!("{}{descending}", at + 1))
            });
            let keys: Vec<Sql> = keys.collect();
            // Texts that are equal and look different have no order among them.
            let total = !query.classes.contains(&Class::Text);
            pieces.push(Sql::text(" ORDER BY "));
            pieces.push(Sql::list(keys));
            ordered = total;
            if total && self.random.one_in(2) {
                let limit =
                    [" LIMIT 1", " LIMIT 3", " LIMIT 5", " LIMIT 2, 3", " LIMIT 0", " LIMIT 4 OFFSET 1"];
                pieces.push(Sql::optional(vec![Sql::text(pick(self.random, &limit))]));
            }
        }
        let mut statement = Statement::of(Sql::all(pieces));
        statement.ordered = ordered;
        statement.representative = query.representative;
        statement
    }

    /// A query of any form; `outermost` ones may show texts that stand for others.
    fn any_query(&mut self, outermost: bool) -> Query {
        match self.random.below(12) {
            0..=2 => self.grouped_query(outermost),
            3 => self.aggregated_query(outermost),
            4 | 5 => self.distinct_query(outermost),
            6 | 7 if outermost => self.window_query(),
            _ => self.simple_query(1, 4),
        }
    }

    fn simple_query(&mut self, least: usize, most: usize) -> Query {
        let from = self.from(3);
        self.scopes.push(from.columns);
        let items = self.items(least, most);
        let condition = self.optional_condition(" WHERE ");
        self.scopes.pop();
        query("SELECT ", items, vec![Sql::text(" FROM "), from.sql, condition])
    }

    fn distinct_query(&mut self, outermost: bool) -> Query {
        let from = self.from(2);
        self.scopes.push(from.columns);
        let items = self.items(1, 3);
        let items = if outermost { items } else { without_texts(items) };
        let condition = self.optional_condition(" WHERE ");
        self.scopes.pop();
        let mut query = query("SELECT DISTINCT ", items, vec![Sql::text(" FROM "), from.sql, condition]);
        query.representative = query.classes.contains(&Class::Text);
        query
    }

    fn aggregated_query(&mut self, outermost: bool) -> Query {
        let from = self.from(3);
        self.scopes.push(from.columns);
        let count = 1 + self.random.below(3);
        let items = (0..count).map(|_| self.aggregate(outermost)).collect();
        let condition = self.optional_condition(" WHERE ");
        self.scopes.pop();
        let mut query = query("SELECT ", items, vec![Sql::text(" FROM "), from.sql, condition]);
        query.representative = query.classes.contains(&Class::Text);
        query
    }

    fn aggregate(&mut self, texts: bool) -> Item {
        if texts && self.random.one_in(5) {
            let form = pick(self.random, &TEXT_AGGREGATES);
            return Item { sql: self.filled(form, 1), class: Class::Text };
        }
        let (form, letter) = pick(self.random, &AGGREGATES);
        let class = match letter {
            'i' => Class::Integer,
            'd' => Class::Date,
            't' => Class::DateTime,
            'm' => Class::Time,
            _ => Class::Number,
        };
        let depth = if self.random.one_in(3) { 1 } else { 0 };
        Item { sql: self.filled(form, depth), class }
    }

    fn grouped_query(&mut self, outermost: bool) -> Query {
        let from = self.from(3);
        self.scopes.push(from.columns);
        let keys = self.items(1, 2);
        let keys = if outermost { keys } else { without_texts(keys) };
        // A constant among the keys is a position, or a matter of its own with ROLLUP.
        let keys: Vec<Item> =
            keys.into_iter().filter(|item| item.sql.written(Style::Plain).contains(".c")).collect();
        if keys.is_empty() {
            self.scopes.pop();
            return self.aggregated_query(outermost);
        }
        let groups: Vec<Sql> = keys.iter().map(|item| item.sql.clone()).collect();
        let count = 1 + self.random.below(2);
        let aggregates: Vec<Item> = (0..count).map(|_| self.aggregate(outermost)).collect();
        let condition = self.optional_condition(" WHERE ");
        let rollup = if self.random.one_in(6) { " WITH ROLLUP" } else { "" };
        let having = if self.random.one_in(3) {
            let Item { sql, .. } = self.aggregate(false);
            let order = pick(self.random, &[" > 1", " < 3", " IS NULL", " IS NOT NULL", " <> 2", " >= 1"]);
            Sql::optional(vec![Sql::text(" HAVING "), sql, Sql::text(order)])
        } else {
            Sql::text("")
        };
        self.scopes.pop();
        let items = keys.into_iter().chain(aggregates).collect();
        let tail = vec![
            Sql::text(" FROM "),
            from.sql,
            condition,
            Sql::text(" GROUP BY "),
            Sql::list(groups),
            Sql::optional(vec![Sql::text(rollup)]),
            having,
        ];
        let mut query = query("SELECT ", items, tail);
        query.representative = query.classes.contains(&Class::Text);
        query
    }

    /// Windows whose order only identical rows are equal in, or whose functions do not see it. At most one of
    /// the first kind: identical rows are numbered by chance, and two functions would show how.
    fn window_query(&mut self) -> Query {
        let from = self.from(2);
        let total = total_order(&from.columns);
        self.scopes.push(from.columns);
        let mut items = self.items(1, 2);
        items.push(self.window_of_rows(&total));
        if self.random.one_in(2) {
            let class = self.class();
            let key = self.value(class, 0);
            let function = pick(self.random, &["RANK()", "DENSE_RANK()", "SUM({i})", "COUNT(*)", "MAX({n})"]);
            let pieces = vec![self.filled(function, 0), Sql::text(" OVER (ORDER BY "), key, Sql::text(")")];
            items.push(Item { sql: Sql::all(pieces), class: Class::Number });
        }
        let condition = self.optional_condition(" WHERE ");
        self.scopes.pop();
        query("SELECT ", items, vec![Sql::text(" FROM "), from.sql, condition])
    }

    /// A window function over rows in their total order.
    fn window_of_rows(&mut self, total: &str) -> Item {
        let partition = if self.random.one_in(2) {
            let class = self.class();
            vec![Sql::text("PARTITION BY "), self.value(class, 0), Sql::text(" ")]
        } else {
            Vec::new()
        };
        let function = pick(self.random, &WINDOW_FUNCTIONS);
        let frame = pick(self.random, &FRAMES);
        let pieces = vec![
            self.filled(function, 0),
            Sql::text(" OVER ("),
            Sql::optional(partition),
            Sql::text(format!("ORDER BY {total}")),
            Sql::optional(vec![Sql::text(frame)]),
            Sql::text(")"),
        ];
        Item { sql: Sql::all(pieces), class: Class::Text }
    }

    fn set_operation(&mut self) -> Query {
        let classes: Vec<Class> = (0..1 + self.random.below(3))
            .map(|_| {
                pick(self.random, &[Class::Integer, Class::Number, Class::Text, Class::Date, Class::Integer])
            })
            .collect();
        let mut pieces = vec![self.query_of(&classes, 2)];
        let mut representative = false;
        for _ in 0..1 + self.random.below(2) {
            let all = self.random.one_in(2);
            let operation = if all {
                " UNION ALL "
            } else {
                pick(self.random, &[" UNION ", " INTERSECT ", " EXCEPT ", " INTERSECT ALL ", " EXCEPT ALL "])
            };
            representative |= !all;
            let next = self.query_of(&classes, 2);
            pieces.push(Sql::optional(vec![Sql::text(operation), next]));
        }
        representative &= classes.contains(&Class::Text);
        Query { sql: Sql::Part(Kind::Query, pieces), classes, representative }
    }

    /// A simple query of these classes.
    pub fn query_of(&mut self, classes: &[Class], most_tables: usize) -> Sql {
        let from = self.from(most_tables);
        self.scopes.push(from.columns);
        self.depth += 1;
        let items = classes.iter().map(|class| self.value(*class, 1)).collect();
        let condition = self.optional_condition(" WHERE ");
        self.depth -= 1;
        self.scopes.pop();
        let pieces = vec![Sql::text("SELECT "), Sql::list(items), Sql::text(" FROM "), from.sql, condition];
        Sql::Part(Kind::Query, pieces)
    }

    /// WITH and a query that reads it.
    fn with_common_table(&mut self) -> (Sql, Query) {
        let name = self.alias('w');
        let (inner, columns) = self.named_columns(&name);
        let alias = self.alias('a');
        let known: Vec<Known> = columns
            .iter()
            .map(|known| Known { sql: known.sql.replace(&name, &alias), ..known.clone() })
            .collect();
        let with = vec![Sql::text(format!("WITH {name} AS (")), inner, Sql::text(") ")];
        let mut from = From { sql: Sql::text(format!("{name} AS {alias}")), columns: known };
        if self.random.one_in(2) {
            let other = self.table();
            from = self.joined(from, other);
        }
        self.scopes.push(from.columns);
        let items = self.items(1, 3);
        let condition = self.optional_condition(" WHERE ");
        self.scopes.pop();
        let query = query("SELECT ", items, vec![Sql::text(" FROM "), from.sql, condition]);
        (Sql::all(with), query)
    }

    /// A query whose columns are named c1, c2 … and known below an alias.
    fn named_columns(&mut self, alias: &str) -> (Sql, Vec<Known>) {
        let outer = std::mem::take(&mut self.scopes);
        self.depth += 1;
        let query = match self.random.below(4) {
            0 => self.grouped_query(false),
            1 => self.distinct_query(false),
            _ => {
                let from = self.from(2);
                self.scopes.push(from.columns);
                let items = self.items(1, 3);
                let condition = self.optional_condition(" WHERE ");
                self.scopes.pop();
                query("SELECT ", items, vec![Sql::text(" FROM "), from.sql, condition])
            }
        };
        self.depth -= 1;
        self.scopes = outer;
        let known = query.classes.iter().enumerate().map(|(at, class)| Known {
            sql: format!("{alias}.c{}", at + 1),
            class: *class,
            kind: None,
        });
        (query.sql, known.collect())
    }

    fn items(&mut self, least: usize, most: usize) -> Vec<Item> {
        let count = least + self.random.below(most - least + 1);
        (0..count)
            .map(|_| {
                let class = self.class();
                let depth = if self.random.one_in(3) { 2 } else { 0 };
                Item { sql: self.value(class, depth), class }
            })
            .collect()
    }

    fn optional_condition(&mut self, word: &str) -> Sql {
        if self.random.one_in(3) {
            return Sql::text("");
        }
        let condition = self.condition(3);
        Sql::optional(vec![Sql::text(word), condition])
    }

    /// One table.
    fn table(&mut self) -> From {
        let table: Table = pick(self.random, self.tables);
        let alias = self.alias('a');
        let columns = table.columns.iter().map(|column| Known {
            sql: format!("{alias}.{}", column.name),
            class: column.kind.class(),
            kind: Some(column.kind.clone()),
        });
        let pieces = [table.name.clone(), format!(" AS {alias}"), table.index_names()];
        From { columns: columns.collect(), sql: Sql::Part(Kind::Table, pieces.map(Sql::text).to_vec()) }
    }

    /// One to some tables and derived tables, joined.
    fn from(&mut self, most: usize) -> From {
        let count = 1 + self.random.below(most);
        let mut from = self.table();
        for _ in 1..count {
            let other = if self.depth < 2 && self.random.one_in(5) { self.derived() } else { self.table() };
            from = self.joined(from, other);
        }
        from
    }

    fn derived(&mut self) -> From {
        let alias = self.alias('d');
        let (inner, columns) = self.named_columns(&alias);
        let sql = Sql::all(vec![Sql::text("("), inner, Sql::text(format!(") AS {alias}"))]);
        From { sql, columns }
    }

    fn joined(&mut self, one: From, other: From) -> From {
        let columns = [one.columns.clone(), other.columns.clone()].concat();
        let word = pick(
            self.random,
            &[
                " JOIN ",
                " JOIN ",
                " LEFT JOIN ",
                " LEFT JOIN ",
                " RIGHT JOIN ",
                " CROSS JOIN ",
                " STRAIGHT_JOIN ",
            ],
        );
        let mut pieces = vec![one.sql.clone(), Sql::text(word), other.sql.clone()];
        if word != " CROSS JOIN " {
            pieces.push(Sql::text(" ON "));
            pieces.push(self.join_condition(&one.columns, &other.columns, columns.clone()));
        }
        From { sql: Sql::all(pieces), columns }
    }

    fn join_condition(&mut self, one: &[Known], other: &[Known], all: Vec<Known>) -> Sql {
        let pairs: Vec<(&Known, &Known)> = one
            .iter()
            .flat_map(|left| other.iter().map(move |right| (left, right)))
            .filter(|(left, right)| {
                left.class == right.class && [left, right].iter().all(|one| one.kind != Some(Type::Year))
            })
            .collect();
        self.scopes.push(all);
        self.depth += 1;
        let sql = if pairs.is_empty() || self.random.one_in(6) {
            self.condition(1)
        } else {
            let (left, right) = pick(self.random, &pairs);
            let order = pick(self.random, &["=", "=", "=", "=", "<=>", "<", ">="]);
            let equal = Sql::text(format!("{} {order} {}", left.sql, right.sql));
            if self.random.one_in(3) {
                Sql::all(vec![equal, Sql::optional(vec![Sql::text(" AND "), self.condition(1)])])
            } else {
                equal
            }
        };
        self.depth -= 1;
        self.scopes.pop();
        sql
    }

    /// A subquery of one value.
    pub fn scalar_query(&mut self, class: Class) -> Sql {
        let from = self.from(2);
        let around = aliases(self.scopes.iter().flatten());
        let own = aliases(from.columns.iter());
        self.scopes.push(from.columns);
        self.depth += 1;
        let letter = match class {
            Class::Integer | Class::Number => "n",
            Class::Text => "s",
            Class::Date => "d",
            Class::DateTime => "t",
            Class::Time => "m",
        };
        let function = if class == Class::Text {
            "MAX(HEX({s}))".to_owned()
        } else {
            format!("{}({{{letter}}})", pick(self.random, &["MIN", "MAX"]))
        };
        // It is the subquery's own: of a query that becomes one group by it, the other columns are any row's.
        let made = (0..8).map(|_| {
            let pieces = vec![self.filled(&function, 0), Sql::text(own.as_str()), Sql::text(around.as_str())];
            Sql::Part(Kind::Aggregate, pieces)
        });
        let value = { made }.find(|value| !value.has_outer_aggregate());
        let value = value.unwrap_or_else(|| Sql::text("MAX(NULL)"));
        let condition = self.optional_condition(" WHERE ");
        self.depth -= 1;
        self.scopes.pop();
        let pieces =
            vec![Sql::text("(SELECT "), value, Sql::text(" FROM "), from.sql, condition, Sql::text(")")];
        Sql::Part(Kind::Value, pieces)
    }

    /// A condition with a subquery.
    pub fn query_condition(&mut self) -> Sql {
        let not = if self.random.one_in(3) { "NOT " } else { "" };
        if self.random.one_in(3) {
            let inner = self.query_of(&[Class::Integer], 2);
            return Sql::Part(
                Kind::Value,
                vec![Sql::text(format!("({not}EXISTS (")), inner, Sql::text("))")],
            );
        }
        let class = self.class();
        let left = self.value(class, 0);
        let operator = match self.random.below(6) {
            0..=2 => format!(" {not}IN ("),
            3 => format!(" {} ANY (", pick(self.random, &["=", "<", ">", "<>", ">="])),
            _ => format!(" {} ALL (", pick(self.random, &["=", "<", ">", "<>", "<="])),
        };
        if self.random.one_in(5) {
            let other_class = self.class();
            let other = self.value(other_class, 0);
            let inner = self.query_of(&[class, other_class], 1);
            let pieces = vec![
                Sql::text("(("),
                left,
                Sql::text(", "),
                other,
                Sql::text(format!(") {not}IN (")),
                inner,
                Sql::text("))"),
            ];
            return Sql::Part(Kind::Value, pieces);
        }
        let inner = self.query_of(&[class], 2);
        Sql::Part(Kind::Value, vec![Sql::text("("), left, Sql::text(operator), inner, Sql::text("))")])
    }
}

impl Statement {
    pub fn of(sql: Sql) -> Statement {
        Statement {
            sql,
            ordered: false,
            representative: false,
            planned: true,
            changes: false,
            partition: false,
        }
    }
}

fn query(word: &str, items: Vec<Item>, tail: Vec<Sql>) -> Query {
    let classes = items.iter().map(|item| item.class).collect();
    let named = |(at, item): (usize, Item)| Sql::all(vec![item.sql, Sql::text(format!(" AS c{}", at + 1))]);
    let list = Sql::list(items.into_iter().enumerate().map(named).collect());
    let pieces = [vec![Sql::text(word), list], tail].concat();
    Query { sql: Sql::Part(Kind::Query, pieces), classes, representative: false }
}

/// The aliases of columns, with the point behind each.
fn aliases<'k>(columns: impl Iterator<Item = &'k Known>) -> String {
    let of = |known: &'k Known| known.sql.split_once('.').map(|(alias, _)| format!("{alias}."));
    columns.filter_map(of).collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>().join(" ")
}

/// Texts as their bytes: nothing then stands for anything else.
fn without_texts(items: Vec<Item>) -> Vec<Item> {
    items
        .into_iter()
        .map(|item| match item.class {
            Class::Text => Item {
                sql: Sql::Part(Kind::Value, vec![Sql::text("HEX("), item.sql, Sql::text(")")]),
                ..item
            },
            _ => item,
        })
        .collect()
}

/// All columns, texts by their bytes.
pub fn total_order(columns: &[Known]) -> String {
    let keys = columns.iter().map(|known| match known.class {
        Class::Text => format!("HEX({})", known.sql),
        _ => known.sql.clone(),
    });
    keys.collect::<Vec<_>>().join(", ")
}
