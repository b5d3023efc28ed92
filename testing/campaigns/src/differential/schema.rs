//! Tables of chance: columns of every type, keys of every kind.

use super::data;
use disk::Random;

/// One of several.
pub fn pick<T: Clone>(random: &mut Random, from: &[T]) -> T {
    from[random.below(from.len())].clone()
}

/// Collations of text, by whether equal texts may look different.
const COLLATIONS: [&str; 3] = ["utf8mb4_bin", "utf8mb4_general_ci", "utf8mb4_0900_ai_ci"];

/// The names of an ENUM's or SET's members.
pub const MEMBERS: &str = "'a','b','c x','B2','é'";

#[derive(Clone, Debug, PartialEq)]
pub enum Type {
    Integer { bits: u32, unsigned: bool },
    Decimal { digits: u32, scale: u32, unsigned: bool },
    Double,
    Char(u32, &'static str),
    VarChar(u32, &'static str),
    Text(&'static str),
    VarBinary(u32),
    Date,
    DateTime(u32),
    Time(u32),
    Year,
    Enum(&'static str),
    Set(&'static str),
    Bit(u32),
}

/// What expressions know of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    Integer,
    Number,
    Text,
    Date,
    DateTime,
    Time,
}

impl Type {
    pub fn class(&self) -> Class {
        match self {
            Type::Integer { .. } | Type::Year | Type::Bit(_) => Class::Integer,
            Type::Decimal { .. } | Type::Double => Class::Number,
            Type::Date => Class::Date,
            Type::DateTime(_) => Class::DateTime,
            Type::Time(_) => Class::Time,
            _ => Class::Text,
        }
    }

    /// As a definition names it.
    pub fn written(&self) -> String {
        let sign = |unsigned: bool| if unsigned { " UNSIGNED" } else { "" };
        let collated = |collation: &str| format!(" CHARACTER SET utf8mb4 COLLATE {collation}");
        match self {
            Type::Integer { bits, unsigned } => {
                let name = match bits {
                    8 => "TINYINT",
                    16 => "SMALLINT",
                    24 => "MEDIUMINT",
                    32 => "INT",
                    _ => "BIGINT",
                };
                format!("{name}{}", sign(*unsigned))
            }
            Type::Decimal { digits, scale, unsigned } => {
                format!("DECIMAL({digits},{scale}){}", sign(*unsigned))
            }
            Type::Double => "DOUBLE".to_owned(),
            Type::Char(length, collation) => format!("CHAR({length}){}", collated(collation)),
            Type::VarChar(length, collation) => format!("VARCHAR({length}){}", collated(collation)),
            Type::Text(collation) => format!("TEXT{}", collated(collation)),
            Type::VarBinary(length) => format!("VARBINARY({length})"),
            Type::Date => "DATE".to_owned(),
            Type::DateTime(decimals) => format!("DATETIME({decimals})"),
            Type::Time(decimals) => format!("TIME({decimals})"),
            Type::Year => "YEAR".to_owned(),
            Type::Enum(collation) => format!("ENUM({MEMBERS}){}", collated(collation)),
            Type::Set(collation) => format!("SET({MEMBERS}){}", collated(collation)),
            Type::Bit(length) => format!("BIT({length})"),
        }
    }

    fn some(random: &mut Random, collations: &[&'static str]) -> Type {
        let collation = pick(random, collations);
        let unsigned = random.one_in(3);
        match random.below(22) {
            0..=5 => Type::Integer { bits: pick(random, &[8, 16, 24, 32, 32, 64]), unsigned },
            6 => Type::Decimal { digits: 10, scale: 2, unsigned: false },
            7 => Type::Decimal {
                digits: 5 + random.below(20) as u32,
                scale: random.below(5) as u32,
                unsigned: false,
            },
            8 => Type::Double,
            9 => Type::Char(pick(random, &[1, 4, 8]), collation),
            10..=12 => Type::VarChar(pick(random, &[1, 5, 20, 40]), collation),
            13 => Type::Text(collation),
            14 => Type::VarBinary(pick(random, &[4, 20])),
            15 => Type::Date,
            16 => Type::DateTime(pick(random, &[0, 3, 6])),
            17 => Type::Time(pick(random, &[0, 2, 6])),
            18 => Type::Year,
            19 => Type::Enum(collation),
            20 => Type::Set(collation),
            _ => Type::Bit(pick(random, &[1, 7, 12])),
        }
    }

    /// The longest prefix of it that an index may have, when it may have one.
    fn prefix(&self) -> Option<u32> {
        match self {
            Type::Char(length, _) | Type::VarChar(length, _) | Type::VarBinary(length) => Some(*length),
            Type::Text(_) => Some(12),
            _ => None,
        }
    }
}

#[derive(Clone, Debug)]
pub struct Column {
    pub name: String,
    pub kind: Type,
    pub nullable: bool,
    pub default: Option<String>,
}

#[derive(Clone, Debug)]
pub struct Index {
    pub name: String,
    pub unique: bool,
    /// Names of columns, and how much of each.
    pub parts: Vec<(String, Option<u32>)>,
}

#[derive(Clone, Debug)]
pub struct Table {
    pub name: String,
    pub columns: Vec<Column>,
    pub primary: Option<Index>,
    pub indexes: Vec<Index>,
}

impl Table {
    fn some(random: &mut Random, name: String, collations: &[&'static str]) -> Table {
        let columns: Vec<Column> = (1..=2 + random.below(5))
            .map(|number| {
                let kind = Type::some(random, collations);
                let default =
                    (!matches!(kind, Type::Text(_)) && random.one_in(3)).then(|| data::stored(random, &kind));
                // IS NULL finds the zero dates of a day that may not be NULL: no condition like others.
                let day = matches!(kind, Type::Date | Type::DateTime(_));
                Column { name: format!("c{number}"), kind, nullable: day || !random.one_in(3), default }
            })
            .collect();
        let mut table = Table { name, columns, primary: None, indexes: Vec::new() };
        if !random.one_in(4) {
            table.primary = table.index(random, "PRIMARY".to_owned(), true);
            if let Some(primary) = &table.primary {
                let keys: Vec<String> = primary.parts.iter().map(|(name, _)| name.clone()).collect();
                for column in table.columns.iter_mut().filter(|column| keys.contains(&column.name)) {
                    column.nullable = false;
                }
            }
        }
        for number in 1..=random.below(4) {
            let unique = random.one_in(4);
            let index = table.index(random, format!("k{number}"), unique);
            table.indexes.extend(index);
        }
        table
    }

    /// An index; a primary key is of whole columns.
    fn index(&self, random: &mut Random, name: String, unique: bool) -> Option<Index> {
        let primary = name == "PRIMARY";
        let mut parts: Vec<(String, Option<u32>)> = Vec::new();
        for _ in 0..1 + random.below(3) {
            let column = pick(random, &self.columns);
            let text = matches!(column.kind, Type::Text(_));
            let day = matches!(column.kind, Type::Date | Type::DateTime(_));
            if parts.iter().all(|(name, _)| *name != column.name) && !(primary && (text || day)) {
                let whole = primary || !text && !random.one_in(3);
                let prefix = column.kind.prefix().filter(|_| !whole);
                let prefix = prefix.map(|most| 1 + random.below(most as usize) as u32);
                parts.push((column.name.clone(), prefix));
            }
        }
        (!parts.is_empty()).then_some(Index { name, unique, parts })
    }

    /// The names of all its indexes, for a hint.
    pub fn index_names(&self) -> String {
        let names = self.primary.iter().chain(&self.indexes).map(|index| index.name.as_str());
        names.collect::<Vec<_>>().join(", ")
    }

    /// CREATE TABLE.
    pub fn definition(&self) -> String {
        let mut lines: Vec<String> = Vec::new();
        for Column { name, kind, nullable, default } in &self.columns {
            let null = if *nullable { "" } else { " NOT NULL" };
            let default = default.as_ref().map(|value| format!(" DEFAULT {value}")).unwrap_or_default();
            lines.push(format!("{name} {}{null}{default}", kind.written()));
        }
        let parts = |index: &Index| {
            let part = |(name, prefix): &(String, Option<u32>)| match prefix {
                Some(length) => format!("{name}({length})"),
                None => name.clone(),
            };
            index.parts.iter().map(part).collect::<Vec<_>>().join(", ")
        };
        lines.extend(self.primary.iter().map(|index| format!("PRIMARY KEY ({})", parts(index))));
        for index in &self.indexes {
            let unique = if index.unique { "UNIQUE " } else { "" };
            lines.push(format!("{unique}KEY {} ({})", index.name, parts(index)));
        }
        format!("CREATE TABLE {} ({})", self.name, lines.join(", "))
    }

    /// Without a column, its places in keys included; `None` when nothing would be left.
    pub fn without_column(&self, at: usize) -> Option<Table> {
        let mut table = self.clone();
        let gone = table.columns.remove(at).name;
        for index in table.indexes.iter_mut().chain(&mut table.primary) {
            index.parts.retain(|(name, _)| *name != gone);
        }
        table.indexes.retain(|index| !index.parts.is_empty());
        table.primary = table.primary.filter(|index| !index.parts.is_empty());
        (!table.columns.is_empty()).then_some(table)
    }
}

/// One to four tables. Their texts mostly have two collations, which may be compared: one and its bytes'.
pub fn tables(random: &mut Random) -> Vec<Table> {
    let one = pick(random, &COLLATIONS);
    let all = [one, one, if random.one_in(8) { pick(random, &COLLATIONS) } else { COLLATIONS[0] }];
    (1..=1 + random.below(4)).map(|number| Table::some(random, format!("t{number}"), &all)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_makes_the_same_tables() {
        let made = |seed| {
            let tables = tables(&mut Random::new(seed));
            tables.iter().map(Table::definition).collect::<Vec<_>>()
        };
        assert_eq!(made(7), made(7));
        assert_ne!(made(7), made(8));
    }

    #[test]
    fn a_column_leaves_with_its_keys() {
        let integer = Type::Integer { bits: 32, unsigned: false };
        let column =
            |name: &str| Column { name: name.into(), kind: integer.clone(), nullable: true, default: None };
        let key = |parts: &[&str]| Index {
            name: "k".into(),
            unique: false,
            parts: parts.iter().map(|name| ((*name).to_owned(), None)).collect(),
        };
        let table = Table {
            name: "t".into(),
            columns: vec![column("a"), column("b")],
            primary: None,
            indexes: vec![key(&["a", "b"]), key(&["b"])],
        };
        let left = table.without_column(1).map(|table| table.definition());
        assert_eq!(left.as_deref(), Some("CREATE TABLE t (a INT, KEY k (a))"));
        assert!(table.without_column(0).and_then(|table| table.without_column(0)).is_none());
    }
}
