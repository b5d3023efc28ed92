//! InnoDB's codes for column types, as they stand in `.cfg` files.
//!
//! A column has a *main type* (how InnoDB compares and stores it), a *precise type* (MySQL's type code in the
//! low byte, flags, and the collation in the upper half), a length and the widths of a character. Both
//! servers compute them alike; they compare every one of them on import.

use super::cfg::Column;
use crate::schema::ColumnDef;
use crate::types::{Collation, ColumnType};

// Main types.
/// VARCHAR in `latin1_swedish_ci`, which was once all there was.
const VAR_SWEDISH: u32 = 1;
/// CHAR in `latin1_swedish_ci`.
const SWEDISH: u32 = 2;
const FIXED_BINARY: u32 = 3;
const BINARY: u32 = 4;
const BLOB: u32 = 5;
const INT: u32 = 6;
const SYSTEM: u32 = 8;
const FLOAT: u32 = 9;
const DOUBLE: u32 = 10;
/// VARCHAR in any other collation.
const VAR_MYSQL: u32 = 12;
/// CHAR in any other collation.
const MYSQL: u32 = 13;

// Flags of the precise type, above MySQL's type code.
const NOT_NULL: u32 = 256;
const UNSIGNED: u32 = 512;
const BINARY_TYPE: u32 = 1024;
const LONG_VARCHAR: u32 = 4096;
const COLLATION_SHIFT: u32 = 16;

/// `latin1_swedish_ci`, which both servers give to DECIMAL and the temporal types of main type 3.
const COLLATION_NUMERIC: u16 = 8;
/// `mbmaxlen * 5 + mbminlen` of a single-byte character set.
const SINGLE_BYTE: u32 = 6;

/// The codes of a type without nullability.
struct Code {
    mtype: u32,
    /// Type code and flags.
    prtype: u32,
    len: u32,
    /// Only main types of strings have one.
    collation: Option<u16>,
    mbminmaxlen: u32,
}

/// A numeric type: it has no collation.
fn number(mtype: u32, prtype: u32, len: u32) -> Code {
    Code { mtype, prtype, len, collation: None, mbminmaxlen: 0 }
}

/// A type stored as bytes of a fixed length with a collation of its own.
fn fixed_bytes(prtype: u32, len: u32, collation: u16) -> Code {
    Code { mtype: FIXED_BINARY, prtype, len, collation: Some(collation), mbminmaxlen: SINGLE_BYTE }
}

/// A string type; `mtype` and `mtype_binary` are its main types for text and for bytes.
fn string(mtype: u32, mtype_binary: u32, prtype: u32, len: u32, collation: Collation) -> Code {
    let binary = collation == Collation::Binary;
    Code {
        mtype: if binary { mtype_binary } else { mtype },
        prtype: if binary { prtype | BINARY_TYPE } else { prtype },
        len,
        collation: Some(collation.id()),
        mbminmaxlen: collation.bytes_per_char_max() * 5 + 1,
    }
}

/// VARCHAR and VARBINARY of up to `bytes` bytes.
fn varchar(bytes: u32, collation: Collation) -> Code {
    let prtype = if bytes > 255 { 15 | LONG_VARCHAR } else { 15 };
    let mtype = if collation == Collation::Latin1SwedishCi { VAR_SWEDISH } else { VAR_MYSQL };
    string(mtype, BINARY, prtype, bytes, collation)
}

fn code(kind: &ColumnType) -> Code {
    // The length of fixed types is that of their values, the same as in MySQL's own row format.
    let len = kind.bytes_max();
    let integer =
        |prtype, unsigned| number(INT, prtype | BINARY_TYPE | if unsigned { UNSIGNED } else { 0 }, len);
    match kind {
        ColumnType::TinyInt { unsigned } => integer(1, *unsigned),
        ColumnType::SmallInt { unsigned } => integer(2, *unsigned),
        ColumnType::MediumInt { unsigned } => integer(9, *unsigned),
        ColumnType::Int { unsigned } => integer(3, *unsigned),
        ColumnType::BigInt { unsigned } => integer(8, *unsigned),
        ColumnType::Year => integer(13, true),
        ColumnType::Date => integer(10, false),
        ColumnType::Float => number(FLOAT, 4 | BINARY_TYPE, len),
        ColumnType::Double => number(DOUBLE, 5 | BINARY_TYPE, len),
        ColumnType::Decimal { .. } => fixed_bytes(246 | BINARY_TYPE, len, COLLATION_NUMERIC),
        ColumnType::DateTime { .. } => fixed_bytes(12 | BINARY_TYPE, len, COLLATION_NUMERIC),
        ColumnType::Timestamp { .. } => fixed_bytes(7 | UNSIGNED | BINARY_TYPE, len, COLLATION_NUMERIC),
        ColumnType::Time { .. } => fixed_bytes(11 | BINARY_TYPE, len, COLLATION_NUMERIC),
        ColumnType::Bit { .. } => fixed_bytes(16 | UNSIGNED | BINARY_TYPE, len, Collation::Binary.id()),
        // Enumerations are CHAR to MySQL (254) and numbers to InnoDB.
        ColumnType::Enum { .. } | ColumnType::Set { .. } => number(INT, 254 | UNSIGNED, len),
        ColumnType::Char { collation, .. } => {
            let mtype = if *collation == Collation::Latin1SwedishCi { SWEDISH } else { MYSQL };
            string(mtype, FIXED_BINARY, 254, len, *collation)
        }
        ColumnType::Binary { .. } => string(MYSQL, FIXED_BINARY, 254, len, Collation::Binary),
        ColumnType::VarChar { collation, .. } => varchar(len, *collation),
        ColumnType::VarBinary { .. } => varchar(len, Collation::Binary),
        // All sizes are one type to InnoDB; in MySQL's row format they are a length and a pointer of 8 bytes.
        ColumnType::Text { size, collation } => string(BLOB, BLOB, 252, size.length_bytes() + 8, *collation),
        ColumnType::Blob { size } => string(BLOB, BLOB, 252, size.length_bytes() + 8, Collation::Binary),
        ColumnType::Json => string(BLOB, BLOB, 245, 4 + 8, Collation::Binary),
    }
}

/// A column of the user. Its position and its part in indexes are for the caller to fill in.
pub(super) fn column(def: &ColumnDef) -> Column {
    let Code { mtype, prtype, len, collation, mbminmaxlen } = code(&def.kind);
    let null = if def.nullable { 0 } else { NOT_NULL };
    let unsigned = if def.unsigned { UNSIGNED } else { 0 };
    let collation = u32::from(collation.unwrap_or(0)) << COLLATION_SHIFT;
    let prtype = prtype | null | unsigned | collation;
    Column { prtype, mtype, len, mbminmaxlen, ind: 0, ord_part: 0, max_prefix: 0, name: def.name.clone() }
}

/// The three columns every table has.
pub(super) fn system_columns() -> impl Iterator<Item = Column> {
    [("DB_ROW_ID", 6), ("DB_TRX_ID", 6), ("DB_ROLL_PTR", 7)].into_iter().zip(0..).map(
        |((name, len), number)| Column {
            prtype: NOT_NULL | number,
            mtype: SYSTEM,
            len,
            mbminmaxlen: 0,
            ind: 0,
            ord_part: 0,
            max_prefix: 0,
            name: name.to_owned(),
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::SizeClass;

    fn column(name: &str, kind: &ColumnType, nullable: bool) -> Column {
        super::column(&ColumnDef { nullable, ..ColumnDef::new(name, kind.clone()) })
    }

    #[test]
    fn documented_precise_types() {
        let not_null = |kind: ColumnType| column("c", &kind, false).prtype;
        assert_eq!(not_null(ColumnType::int()), 1283);
        assert_eq!(not_null(ColumnType::bigint()), 1288);
        assert_eq!(not_null(ColumnType::BigInt { unsigned: true }), 1800);
        assert_eq!(not_null(ColumnType::Double), 1285);
        assert_eq!(not_null(ColumnType::Decimal { precision: 10, scale: 2 }), 246 | 256 | 1024 | 8 << 16);
        assert_eq!(not_null(ColumnType::DateTime { fraction: 0 }), 12 | 256 | 1024 | 8 << 16);
        let members = vec!["a".to_owned()];
        assert_eq!(not_null(ColumnType::Enum { members, collation: Collation::Utf8mb4Bin }), 254 | 256 | 512);
    }

    #[test]
    fn a_varchar_counts_two_length_bytes_above_255_bytes() {
        let code = |chars| column("c", &ColumnType::varchar(chars), true).prtype;
        assert_eq!((code(63), code(64)), (46 << 16 | 15, 46 << 16 | 4096 | 15));
    }

    #[test]
    fn bytes_are_not_text() {
        let of = |kind: ColumnType| {
            let column = column("c", &kind, true);
            (column.mtype, column.prtype, column.len, column.mbminmaxlen)
        };
        let binary = 63 << 16 | 1024;
        assert_eq!(of(ColumnType::Binary { bytes: 16 }), (3, binary | 254, 16, 6));
        assert_eq!(of(ColumnType::VarBinary { bytes: 16 }), (4, binary | 15, 16, 6));
        assert_eq!(of(ColumnType::Blob { size: SizeClass::Tiny }), (5, binary | 252, 9, 6));
    }
}
