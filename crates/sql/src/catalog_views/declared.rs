//! Columns of views that are declared as MySQL declares them: the type in its words, NOT NULL, the key and
//! the default that DESCRIBE shows.

use untorn::types::{Collation, ColumnType, SizeClass};

use super::ViewType;
use crate::expr::types::Type;

/// A column as DESCRIBE shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Declared {
    /// The type, as `int unsigned` or `enum('N','Y')`.
    pub shown: &'static str,
    /// NOT NULL.
    pub required: bool,
    /// `PRI`, `UNI`, `MUL` or nothing.
    pub key: &'static str,
    /// The default, if there is one.
    pub default: Option<&'static str>,
}

/// A column that may be NULL.
pub const fn nullable(shown: &'static str) -> ViewType {
    ViewType::Declared(Declared { shown, required: false, key: "", default: None })
}

/// A NOT NULL column.
pub const fn required(shown: &'static str) -> ViewType {
    ViewType::Declared(Declared { shown, required: true, key: "", default: None })
}

/// The same with a default.
pub(super) const fn preset(default: &'static str, of: ViewType) -> ViewType {
    match of {
        ViewType::Declared(declared) => ViewType::Declared(Declared { default: Some(default), ..declared }),
        other => other,
    }
}

/// The same in a key.
pub(super) const fn keyed(key: &'static str, of: ViewType) -> ViewType {
    match of {
        ViewType::Declared(declared) => ViewType::Declared(Declared { key, ..declared }),
        other => other,
    }
}

/// Columns, and behind them for each thing that is timed: how often (under this name), the sum, the least,
/// the mean and the longest of its times, and its bytes where they are counted.
macro_rules! timed_columns {
    ([$($column:expr),* $(,)?]; $($count:literal, $of:literal $(, $bytes:expr)?);*) => {
        &[
            $($column,)*
            $(
                ($count, required("bigint unsigned")),
                (concat!("SUM_TIMER_", $of), required("bigint unsigned")),
                (concat!("MIN_TIMER_", $of), required("bigint unsigned")),
                (concat!("AVG_TIMER_", $of), required("bigint unsigned")),
                (concat!("MAX_TIMER_", $of), required("bigint unsigned")),
                $($bytes,)?
            )*
        ]
    };
}
pub(super) use timed_columns;

impl Declared {
    /// The name of the type alone.
    pub(super) fn data_type(&self) -> &'static str {
        self.shown.split(['(', ' ']).next().unwrap_or_default()
    }

    /// The number in brackets; 0 without one.
    fn length(&self) -> u32 {
        let inside = self.shown.split(['(', ')']).nth(1).unwrap_or_default();
        inside.parse().unwrap_or_default()
    }

    /// What a client is told of its values.
    pub(super) fn value_type(&self) -> Type {
        let collation = Collation::Utf8mb4GeneralCi;
        let unsigned = self.shown.ends_with("unsigned");
        let fraction = self.length() as u8;
        let kind = match self.data_type() {
            "tinyint" => ColumnType::TinyInt { unsigned },
            "smallint" => ColumnType::SmallInt { unsigned },
            "int" => ColumnType::Int { unsigned },
            "bigint" => ColumnType::BigInt { unsigned },
            "double" => ColumnType::Double,
            "timestamp" => ColumnType::Timestamp { fraction },
            "char" => ColumnType::Char { chars: self.length(), collation },
            // Values are texts: what MySQL does with the numbers of members is of no use here.
            "enum" => {
                let longest = self.shown.split('\'').skip(1).step_by(2).map(str::len).max();
                ColumnType::Char { chars: longest.unwrap_or_default() as u32, collation }
            }
            "set" => ColumnType::Char { chars: self.shown.len() as u32, collation },
            "varbinary" => ColumnType::VarBinary { bytes: self.length().max(1) },
            "decimal" => ColumnType::Decimal { precision: 9, scale: 6 },
            "datetime" => ColumnType::DateTime { fraction },
            "mediumtext" => ColumnType::Text { size: SizeClass::Medium, collation },
            "text" => ColumnType::Text { size: SizeClass::Normal, collation },
            "longtext" => ColumnType::Text { size: SizeClass::Long, collation },
            "blob" => ColumnType::Blob { size: SizeClass::Normal },
            "json" => ColumnType::Json,
            _ => ColumnType::VarChar { chars: self.length(), collation },
        };
        Type::of_column(&kind, !self.required)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::kind;

    #[test]
    fn types_are_what_they_say() {
        let of = |column: ViewType| match column {
            ViewType::Declared(declared) => declared.value_type(),
            other => unreachable!("{other:?}"),
        };
        let number = of(required("int unsigned"));
        assert_eq!((number.kind, number.unsigned, number.nullable), (kind::LONG, true, false));
        assert!(!of(nullable("bigint")).unsigned);
        assert_eq!(
            (of(nullable("timestamp(6)")).kind, of(nullable("timestamp(6)")).decimals),
            (kind::TIMESTAMP, 6)
        );
        assert_eq!(of(required("enum('','ANY','SPECIFIED')")).length, 9);
        assert_eq!(of(required("varchar(655)")).length, 655);
        // A type that nobody has taught it would be a VARCHAR of no length.
        for view in super::super::views() {
            for (name, column) in view.columns {
                let known = !matches!(column, ViewType::Declared(_)) || of(*column).length > 0;
                assert!(known, "{view:?}.{name}");
            }
        }
    }
}
