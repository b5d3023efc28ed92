//! The engine's types of types as they are written, in CREATE TABLE and wherever else columns are defined.

use untorn::types::{Collation, ColumnType, SizeClass};

use crate::ast::DataType;
use crate::errors;
use crate::plan::{charset_collation, collation_named};
use crate::result::SqlError;

/// The collation that CHARACTER SET and COLLATE say, or `default`.
///
/// # Errors
/// 1115, 1273, 1253 for names that are unknown or do not belong together.
pub fn chosen(
    charset: Option<&str>,
    collation: Option<&str>,
    default: Collation,
) -> Result<Collation, SqlError> {
    if let Some(collation) = collation {
        let rule = collation_named(collation)
            .ok_or_else(|| errors::error(errors::UNKNOWN_COLLATION, &[&collation]))?;
        let Some(charset) = charset else { return Ok(rule) };
        let named = charset_collation(charset)
            .ok_or_else(|| errors::error(errors::UNKNOWN_CHARACTER_SET, &[&charset]))?;
        if named.charset() != rule.charset() {
            let names = (rule.name(), named.charset().name());
            return Err(errors::error(errors::COLLATION_CHARSET_MISMATCH, &[&names.0, &names.1]));
        }
        return Ok(rule);
    }
    match charset {
        Some(charset) => charset_collation(charset)
            .ok_or_else(|| errors::error(errors::UNKNOWN_CHARACTER_SET, &[&charset])),
        None => Ok(default),
    }
}

fn size_class(name: &str) -> SizeClass {
    match name.as_bytes().first() {
        Some(b'T') if name.len() == 8 => SizeClass::Tiny,
        Some(b'M') => SizeClass::Medium,
        Some(b'L') => SizeClass::Long,
        _ => SizeClass::Normal,
    }
}

/// A member of an ENUM or SET. Blanks at its end are nothing to a text's comparison.
fn member(text: &[u8], rule: Collation) -> Result<String, SqlError> {
    let blanks = text.iter().rev().take_while(|byte| **byte == b' ').count();
    let cut = if rule == Collation::Binary { 0 } else { blanks };
    String::from_utf8(text[..text.len() - cut].to_vec()).map_err(|_| {
        let shown = String::from_utf8_lossy(text);
        errors::error(errors::INVALID_CHARACTER_STRING, &[&"utf8mb4", &shown])
    })
}

/// The engine's type of a type as written, for the column `name`.
///
/// # Errors
/// MySQL's for a type that there cannot be.
pub fn column_type(name: &str, said: &DataType, default: Collation) -> Result<ColumnType, SqlError> {
    let unsigned = said.unsigned;
    let argument = said.arguments.first().copied();
    let rule = chosen(said.charset.as_deref(), said.collation.as_deref(), default)?;
    let fraction = || match argument.unwrap_or(0) {
        digits @ 0..=6 => Ok(digits as u8),
        digits => Err(errors::error(errors::TOO_BIG_PRECISION, &[&digits, &name, &6])),
    };
    let too_long = |max: u32| errors::error(errors::TOO_BIG_FIELDLENGTH, &[&name, &max]);
    let members = || said.members.iter().map(|text| member(text, rule)).collect::<Result<Vec<_>, _>>();
    Ok(match said.name.as_str() {
        "TINYINT" => ColumnType::TinyInt { unsigned },
        "SMALLINT" => ColumnType::SmallInt { unsigned },
        "MEDIUMINT" => ColumnType::MediumInt { unsigned },
        "INT" => ColumnType::Int { unsigned },
        "BIGINT" => ColumnType::BigInt { unsigned },
        "FLOAT" => match argument {
            Some(54..) if said.arguments.len() == 1 => {
                return Err(errors::error(errors::WRONG_FIELD_SPEC, &[&name]));
            }
            Some(25..) if said.arguments.len() == 1 => ColumnType::Double,
            _ => ColumnType::Float,
        },
        "DOUBLE" => ColumnType::Double,
        "DECIMAL" => decimal(name, &said.arguments)?,
        "DATE" => ColumnType::Date,
        "DATETIME" => ColumnType::DateTime { fraction: fraction()? },
        "TIMESTAMP" => ColumnType::Timestamp { fraction: fraction()? },
        "TIME" => ColumnType::Time { fraction: fraction()? },
        "YEAR" => ColumnType::Year,
        "CHAR" => {
            let chars = argument.unwrap_or(1);
            if chars > 255 {
                return Err(too_long(255));
            }
            if rule == Collation::Binary {
                ColumnType::Binary { bytes: chars }
            } else {
                ColumnType::Char { chars, collation: rule }
            }
        }
        "VARCHAR" => {
            let chars = argument.ok_or_else(|| errors::syntax(b"", 1))?;
            if chars > 65_535 / rule.bytes_per_char_max() {
                return Err(too_long(65_535 / rule.bytes_per_char_max()));
            }
            if rule == Collation::Binary {
                ColumnType::VarBinary { bytes: chars }
            } else {
                ColumnType::VarChar { chars, collation: rule }
            }
        }
        "BINARY" => match argument.unwrap_or(1) {
            bytes @ 0..=255 => ColumnType::Binary { bytes },
            _ => return Err(too_long(255)),
        },
        "VARBINARY" => match argument.unwrap_or(0) {
            bytes @ 0..=65_535 => ColumnType::VarBinary { bytes },
            _ => return Err(too_long(65_535)),
        },
        text @ ("TINYTEXT" | "TEXT" | "MEDIUMTEXT" | "LONGTEXT") => {
            let size = sized(text, argument, rule.bytes_per_char_max());
            if rule == Collation::Binary {
                ColumnType::Blob { size }
            } else {
                ColumnType::Text { size, collation: rule }
            }
        }
        blob @ ("TINYBLOB" | "BLOB" | "MEDIUMBLOB" | "LONGBLOB") => {
            ColumnType::Blob { size: sized(blob, argument, 1) }
        }
        "JSON" => ColumnType::Json,
        "ENUM" => ColumnType::Enum { members: members()?, collation: rule },
        "SET" if said.members.iter().any(|member| member.contains(&b',')) => {
            let member = said.members.iter().find(|member| member.contains(&b',')).cloned();
            let member = String::from_utf8_lossy(&member.unwrap_or_default()).into_owned();
            return Err(errors::error(errors::ILLEGAL_VALUE_FOR_TYPE, &[&"set", &member]));
        }
        "SET" if said.members.len() <= 64 => ColumnType::Set { members: members()?, collation: rule },
        "BIT" => match argument.unwrap_or(1) {
            bits @ 1..=64 => ColumnType::Bit { bits: bits as u8 },
            bits => return Err(errors::error(errors::TOO_BIG_DISPLAYWIDTH, &[&name, &bits])),
        },
        other => return Err(errors::unsupported(other)),
    })
}

fn decimal(name: &str, arguments: &[u32]) -> Result<ColumnType, SqlError> {
    let argument = |at: usize| arguments.get(at).copied().unwrap_or(0);
    let (precision, scale) = (argument(0), argument(1));
    let precision = if precision == 0 { 10 } else { precision };
    if precision > 65 {
        return Err(errors::error(errors::TOO_BIG_PRECISION, &[&precision, &name, &65]));
    }
    if scale > 30 {
        return Err(errors::error(errors::TOO_BIG_SCALE, &[&scale, &name, &30]));
    }
    // Ten digits are what is meant where none are said, and no digits behind the point.
    if scale > precision || scale > 0 && argument(0) == 0 {
        return Err(errors::error(errors::M_BIGGER_THAN_D, &[&name]));
    }
    Ok(ColumnType::Decimal { precision: precision as u8, scale: scale as u8 })
}

/// `TEXT(1000)` is the smallest class that holds this number of characters, whatever they are.
fn sized(name: &str, argument: Option<u32>, bytes_per_char: u32) -> SizeClass {
    match argument {
        Some(characters) if matches!(name, "TEXT" | "BLOB") => {
            match characters.saturating_mul(bytes_per_char) {
                0..=255 => SizeClass::Tiny,
                256..=65_535 => SizeClass::Normal,
                65_536..=16_777_215 => SizeClass::Medium,
                _ => SizeClass::Long,
            }
        }
        _ => size_class(name),
    }
}
