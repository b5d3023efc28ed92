//! Constants of definitions as MySQL writes them: in a statement that makes the table again, and in COLUMNS.

use untorn::schema::{ColumnDef, Default};
use untorn::types::ColumnType;

/// A text in quotes, with MySQL's escapes. A tab stays what it is.
pub fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('\'');
    for character in text.chars() {
        match character {
            '\\' => out.push_str("\\\\"),
            '\0' => out.push_str("\\0"),
            '\'' => out.push_str("''"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            other => out.push(other),
        }
    }
    out.push('\'');
    out
}

/// What DEFAULT says behind a column in CREATE TABLE, if it is a constant.
pub fn default_clause(column: &ColumnDef) -> Option<String> {
    let Some(Default::Literal(bytes)) = &column.default else { return None };
    Some(match &column.kind {
        ColumnType::Bit { .. } => bits(bytes),
        ColumnType::Binary { bytes: length } => {
            let mut all = bytes.clone();
            all.resize(all.len().max(*length as usize), 0);
            text_or_hex(&all)
        }
        ColumnType::VarBinary { .. } => text_or_hex(bytes),
        _ => quoted(&constant(column, bytes)),
    })
}

/// The default as COLUMNS shows it, if it is a constant.
pub(super) fn shown_default(column: &ColumnDef) -> Option<String> {
    let Some(Default::Literal(bytes)) = &column.default else { return None };
    Some(match &column.kind {
        ColumnType::Bit { .. } => bits(bytes),
        ColumnType::VarBinary { .. } if bytes.is_empty() => String::new(),
        ColumnType::Binary { .. } => {
            let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
            hex(&bytes[..end])
        }
        ColumnType::VarBinary { .. } => hex(bytes),
        _ => constant(column, bytes),
    })
}

/// The characters that ZEROFILL fills up to.
pub(crate) fn filled_width(column: &ColumnDef) -> Option<u32> {
    let said = column.width.map(u32::from);
    said.filter(|_| column.zerofill).or(match column.kind {
        _ if !column.zerofill => None,
        ColumnType::Float => Some(12),
        ColumnType::Double => Some(22),
        ColumnType::Decimal { precision, scale } => Some(u32::from(precision) + u32::from(scale > 0)),
        _ => None,
    })
}

/// What is neither bits nor bytes, as a SELECT would show it.
fn constant(column: &ColumnDef, bytes: &[u8]) -> String {
    let mut text = String::from_utf8_lossy(bytes).into_owned();
    match &column.kind {
        ColumnType::Char { .. } => text.truncate(text.trim_end_matches(' ').len()),
        ColumnType::Year => text = format!("{text:0>4}"),
        ColumnType::Float | ColumnType::Double => {
            if let (Some(digits), Ok(number)) = (column.decimals, text.parse::<f64>()) {
                text = format!("{number:.*}", usize::from(digits));
            }
        }
        _ => {}
    }
    match filled_width(column) {
        Some(width) => format!("{text:0>0$}", width as usize),
        None => text,
    }
}

fn text_or_hex(bytes: &[u8]) -> String {
    std::str::from_utf8(bytes).map_or_else(|_| hex(bytes), quoted)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold("0x".to_owned(), |text, byte| text + &format!("{byte:02X}"))
}

/// As many digits as the number has.
fn bits(bytes: &[u8]) -> String {
    let number = bytes.iter().fold(0u64, |number, byte| number << 8 | u64::from(*byte));
    format!("b'{number:b}'")
}
