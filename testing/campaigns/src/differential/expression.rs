//! Expressions of chance over the columns in scope.

use super::data;
use super::schema::{Class, Table, Type, pick};
use super::templates::{CONDITIONS, DATE_TIMES, DATES, MIXED, NUMBERS, TEXTS, TIMES};
use super::tree::{Kind, Sql};
use disk::Random;

/// A column that expressions can name.
#[derive(Clone, Debug)]
pub struct Known {
    pub sql: String,
    pub class: Class,
    /// Of a table's column.
    pub kind: Option<Type>,
}

const ORDERS: [&str; 8] = ["=", "=", "=", "<", ">", "<=", ">=", "<>"];

pub struct Generator<'a> {
    pub random: &'a mut Random,
    pub tables: &'a [Table],
    /// Columns in scope, the outermost query's first.
    pub scopes: Vec<Vec<Known>>,
    /// Aliases given so far.
    pub aliases: usize,
    /// Queries around what is made.
    pub depth: usize,
}

impl<'a> Generator<'a> {
    pub fn new(random: &'a mut Random, tables: &'a [Table]) -> Generator<'a> {
        Generator { random, tables, scopes: Vec::new(), aliases: 0, depth: 0 }
    }

    pub fn alias(&mut self, letter: char) -> String {
        self.aliases += 1;
        format!("{letter}{}", self.aliases)
    }

    /// A column that fits: mostly of the innermost query.
    fn column(&mut self, fits: impl Fn(&Known) -> bool) -> Option<Known> {
        let outer = self.random.one_in(5);
        let scopes: Vec<&Vec<Known>> = if outer && self.scopes.len() > 1 {
            self.scopes.iter().collect()
        } else {
            self.scopes.iter().rev().take(1).collect()
        };
        let found: Vec<&Known> = scopes.into_iter().flatten().filter(|known| fits(known)).collect();
        if found.is_empty() { None } else { Some(pick(self.random, &found).clone()) }
    }

    /// An expression of a class.
    pub fn value(&mut self, class: Class, depth: usize) -> Sql {
        if depth == 0 || self.random.one_in(3) {
            return self.leaf(class);
        }
        if self.depth < 2 && self.random.one_in(25) {
            return self.scalar_query(class);
        }
        let forms: &[&str] = match class {
            Class::Integer => return self.leaf(class),
            Class::Number => &NUMBERS,
            Class::Text => &TEXTS,
            Class::Date => &DATES,
            Class::DateTime => &DATE_TIMES,
            Class::Time => &TIMES,
        };
        let form = pick(self.random, forms);
        self.filled(form, depth - 1)
    }

    fn leaf(&mut self, class: Class) -> Sql {
        let fits =
            |known: &Known| known.class == class || (class == Class::Number && known.class == Class::Integer);
        let column = if self.random.one_in(4) { None } else { self.column(fits) };
        let text = match column {
            // A BIT is bytes where nothing wants a number, and beside a YEAR numbers become years in MySQL,
            // which finds other rows then by other plans.
            Some(Known { sql, kind: Some(Type::Bit(_) | Type::Year), .. }) => format!("({sql} + 0)"),
            Some(known) => known.sql,
            None => data::literal(self.random, class),
        };
        Sql::Part(Kind::Value, vec![Sql::text(text)])
    }

    /// A condition.
    pub fn condition(&mut self, depth: usize) -> Sql {
        if depth == 0 || self.random.one_in(3) {
            return self.column_condition();
        }
        if self.depth < 2 && self.random.one_in(9) {
            return self.query_condition();
        }
        if self.random.one_in(15) {
            let form = pick(self.random, &MIXED);
            return self.filled(form, depth - 1);
        }
        let form = pick(self.random, &CONDITIONS);
        self.filled(form, depth - 1)
    }

    /// A column beside constants: what an index may answer.
    fn column_condition(&mut self) -> Sql {
        let column = self.column(|known| known.kind.is_some());
        let Some(Known { sql, kind: Some(kind), .. }) = column else {
            let form = pick(self.random, &["({n} {o} {n})", "({a} IS NULL)", "({n} IN ({n}, {n}))"]);
            return self.filled(form, 0);
        };
        let mut literal = || Sql::text(data::compared(self.random, &kind));
        let (one, other, third) = (literal(), literal(), literal());
        let order = pick(self.random, &ORDERS);
        let pieces = match self.random.below(14) {
            0..=4 => vec![Sql::text(format!("{sql} {order} ")), one],
            5 | 6 => vec![Sql::text(format!("{sql} BETWEEN ")), one, Sql::text(" AND "), other],
            7 => {
                let not = if self.random.one_in(3) { "NOT " } else { "" };
                let list = Sql::list(vec![one, other, third]);
                vec![Sql::text(format!("{sql} {not}IN (")), list, Sql::text(")")]
            }
            8 => vec![Sql::text(format!("{sql} <=> ")), one],
            9 => vec![Sql::text(format!("{sql} IS NULL"))],
            10 => vec![Sql::text(format!("{sql} IS NOT NULL"))],
            11 if kind.class() == Class::Text => {
                vec![Sql::text(format!("{sql} LIKE {}", data::pattern(self.random)))]
            }
            12 => return self.row_condition(),
            _ => vec![one, Sql::text(format!(" {order} {sql}"))],
        };
        let pieces = [vec![Sql::text("(")], pieces, vec![Sql::text(")")]].concat();
        Sql::Part(Kind::Value, pieces)
    }

    /// Two columns at a time beside constants.
    fn row_condition(&mut self) -> Sql {
        // In a row MySQL compares spans with texts as texts, members by their names only where several rows
        // are listed, and years by the plan.
        let plain = |known: &Known| {
            let special = |kind: &Type| {
                matches!(kind, Type::Time(_) | Type::Enum(_) | Type::Set(_) | Type::Year | Type::Bit(_))
            };
            known.kind.as_ref().is_some_and(|kind| !special(kind))
        };
        let columns = [self.column(plain), self.column(plain)];
        let [Some(one), Some(other)] = columns else { return Sql::text("(1 = 1)") };
        let mut row = || {
            let values = [&one, &other].map(|known| match &known.kind {
                Some(kind) => data::stored(self.random, kind),
                None => "NULL".to_owned(),
            });
            Sql::text(format!("({}, {})", values[0], values[1]))
        };
        let (first, second) = (row(), row());
        let left = format!("(({}, {})", one.sql, other.sql);
        let pieces = if self.random.one_in(2) {
            let list = Sql::list(vec![first, second]);
            vec![Sql::text(format!("{left} IN (")), list, Sql::text("))")]
        } else {
            let order = pick(self.random, &["=", "=", "<=>", "<>"]);
            vec![Sql::text(format!("{left} {order} ")), first, Sql::text(")")]
        };
        Sql::Part(Kind::Value, pieces)
    }

    /// A form with its places filled.
    pub fn filled(&mut self, form: &str, depth: usize) -> Sql {
        let mut pieces = Vec::new();
        let mut rest = form;
        while let Some((before, after)) = rest.split_once('{') {
            pieces.push(Sql::text(before));
            let Some((place, after)) = after.split_once('}') else { break };
            rest = after;
            let piece = match place {
                "n" => self.value(Class::Number, depth),
                "i" => self.value(Class::Integer, depth),
                "s" => self.value(Class::Text, depth),
                "d" => self.value(Class::Date, depth),
                "t" => self.value(Class::DateTime, depth),
                "m" => self.value(Class::Time, depth),
                "p" => self.condition(depth),
                "k" => Sql::text((pick(self.random, &["0", "1", "2", "3", "-1", "5"])).to_owned()),
                "o" => Sql::text(pick(self.random, &ORDERS)),
                "l" => Sql::text(data::pattern(self.random)),
                _ => {
                    let class = self.class();
                    self.value(class, depth)
                }
            };
            pieces.push(piece);
        }
        pieces.push(Sql::text(rest));
        Sql::Part(Kind::Value, pieces)
    }

    /// Any class: mostly one that a column in scope has.
    pub fn class(&mut self) -> Class {
        match self.column(|_| true) {
            Some(known) => known.class,
            None => Class::Number,
        }
    }
}
