//! CHECKSUM TABLE: the sum of the CRC-32s of all rows, equal to MySQL's for the same contents.
//!
//! A row counts as MySQL has it in memory: a bit for each column that may be NULL, then the columns. Where no
//! column has a length of its own, a bit that is always set comes first; bits that belong to nothing are set,
//! too. Texts of a length of their own count with their bytes, and with none where they are NULL; any other
//! column is there in full width, with the value of zero where it is NULL.

use std::io;
use std::sync::Arc;

use untorn::schema::{ColumnDef, TableDef};
use untorn::types::{self, ColumnType, DateTime};

use crate::result::{self, Completion, ResultColumns, ResultSink, SqlError};

/// Takes the rows of a table.
pub struct TableChecksum<'t> {
    table: &'t TableDef,
    /// Of the session, which moments come in.
    time_zone: i32,
    /// No column has a length of its own.
    fixed: bool,
    column: usize,
    nulls: Vec<bool>,
    fields: Vec<u8>,
    sum: u32,
}

fn has_own_length(kind: &ColumnType) -> bool {
    kind.is_blob()
        || matches!(kind, ColumnType::VarChar { .. } | ColumnType::VarBinary { .. } | ColumnType::Json)
}

impl<'t> TableChecksum<'t> {
    /// Before the first row of this table.
    pub fn new(table: &'t TableDef, time_zone: i32) -> TableChecksum<'t> {
        let fixed = !table.visible_columns().iter().any(|column| has_own_length(&column.kind));
        let (nulls, fields) = (Vec::new(), Vec::new());
        TableChecksum { table, time_zone, fixed, column: 0, nulls, fields, sum: 0 }
    }

    /// The checksum.
    pub fn sum(&self) -> u32 {
        self.sum
    }

    fn take(&mut self, value: Option<types::Value<'_>>) {
        let Some(column) = self.table.columns.get(self.column) else { return };
        self.column += 1;
        if column.nullable {
            self.nulls.push(value.is_none());
        }
        match value {
            None if has_own_length(&column.kind) => {}
            None => self.fields.extend(zero(column)),
            Some(value) => image(&value, column, self.time_zone, &mut self.fields),
        }
    }
}

/// A column in full width with the value of zero.
fn zero(column: &ColumnDef) -> Vec<u8> {
    let none = types::Value::Bytes(b"".as_slice().into());
    let mut bytes = Vec::new();
    let zero = match &column.kind {
        ColumnType::Decimal { .. } => types::Value::Int(0),
        ColumnType::DateTime { .. } => types::Value::DateTime(DateTime::default()),
        ColumnType::Time { .. } => types::Value::Time(types::Time::default()),
        ColumnType::Char { .. } | ColumnType::Binary { .. } => none,
        kind => return vec![0; kind.fixed_len().map_or(0, usize::from)],
    };
    image(&zero, column, 0, &mut bytes);
    bytes
}

/// Appends a column as it is in MySQL's memory: numbers, days and members have their lowest byte first.
fn image(value: &types::Value<'_>, column: &ColumnDef, time_zone: i32, out: &mut Vec<u8>) {
    let kind = &column.kind;
    match (kind, value) {
        (kind, types::Value::Bytes(bytes)) if has_own_length(kind) => {
            return out.extend_from_slice(&kind.collation().charset().from_utf8_lossy(bytes));
        }
        (ColumnType::Char { chars, collation }, types::Value::Bytes(bytes)) => {
            let width = *chars as usize * collation.bytes_per_char_max() as usize;
            let bytes = collation.charset().from_utf8_lossy(bytes);
            out.extend_from_slice(&bytes);
            return out.extend(std::iter::repeat_n(b' ', width.saturating_sub(bytes.len())));
        }
        (ColumnType::Bit { bits }, types::Value::Bytes(bytes)) => {
            let width = usize::from(*bits).div_ceil(8);
            out.extend(std::iter::repeat_n(0, width.saturating_sub(bytes.len())));
            return out.extend_from_slice(bytes);
        }
        (ColumnType::Binary { bytes: width }, types::Value::Bytes(bytes)) => {
            out.extend_from_slice(bytes);
            return out.extend(std::iter::repeat_n(0, (*width as usize).saturating_sub(bytes.len())));
        }
        _ => {}
    }
    let mut stored = Vec::new();
    let value = as_stored(value, kind, time_zone);
    if types::encode(&value, kind, &mut stored).is_err() {
        // What cannot be is not there.
        stored = vec![0; kind.fixed_len().map_or(0, usize::from)];
    }
    match kind.integer() {
        // Stored with the sign turned over, so that bytes are in order.
        Some((_, false)) => {
            stored[0] ^= 0x80;
            stored.reverse();
        }
        Some((_, true)) => stored.reverse(),
        None if matches!(kind, ColumnType::Date) => {
            stored[0] ^= 0x80;
            stored.reverse();
        }
        None if matches!(kind, ColumnType::Enum { .. } | ColumnType::Set { .. }) => stored.reverse(),
        None => {}
    }
    out.extend_from_slice(&stored);
}

/// What is shown with zeros before it is a number all the same; a TIMESTAMP is stored in UTC.
fn as_stored<'v>(value: &types::Value<'v>, kind: &ColumnType, time_zone: i32) -> types::Value<'v> {
    match (value, kind) {
        (types::Value::Bytes(text), ColumnType::Float | ColumnType::Double) => {
            types::Value::Double(String::from_utf8_lossy(text).parse().unwrap_or_default())
        }
        (types::Value::Bytes(text), ColumnType::Year) => {
            types::Value::Int(String::from_utf8_lossy(text).parse().unwrap_or_default())
        }
        (types::Value::Bytes(text), kind) if kind.integer().is_some() => {
            let text = String::from_utf8_lossy(text);
            match text.parse::<i64>() {
                Ok(number) => types::Value::Int(number),
                Err(_) => types::Value::UInt(text.parse().unwrap_or_default()),
            }
        }
        (types::Value::DateTime(moment), ColumnType::Timestamp { .. }) if moment.date.month != 0 => {
            let seconds = moment.to_unix() - i64::from(time_zone);
            types::Value::DateTime(DateTime::from_unix(seconds, moment.micros))
        }
        (value, _) => value.clone(),
    }
}

fn day(year: u16, month: u8, day: u8) -> types::Date {
    types::Date { year, month, day }
}

impl ResultSink for TableChecksum<'_> {
    fn is_client(&self) -> bool {
        false
    }

    fn columns(&mut self, _: &Arc<ResultColumns>) {}

    fn row_begin(&mut self) {
        self.column = 0;
        self.nulls.clear();
        self.fields.clear();
    }

    fn null(&mut self) {
        self.take(None);
    }

    fn int(&mut self, value: i64) {
        self.take(Some(types::Value::Int(value)));
    }

    fn uint(&mut self, value: u64) {
        self.take(Some(types::Value::UInt(value)));
    }

    fn float(&mut self, value: f32) {
        self.take(Some(types::Value::Float(value)));
    }

    fn double(&mut self, value: f64) {
        self.take(Some(types::Value::Double(value)));
    }

    fn bytes(&mut self, value: &[u8]) {
        self.take(Some(types::Value::Bytes(value.into())));
    }

    fn date(&mut self, value: result::Date) {
        self.take(Some(types::Value::Date(day(value.year, value.month, value.day))));
    }

    fn datetime(&mut self, value: result::DateTime, _: u8) {
        let result::DateTime { hour, minute, second, .. } = value;
        let date = day(value.year, value.month, value.day);
        let moment = DateTime { date, hour, minute, second, micros: value.microsecond };
        self.take(Some(types::Value::DateTime(moment)));
    }

    fn time(&mut self, value: result::Time, _: u8) {
        self.take(Some(types::Value::Time(types::Time {
            negative: value.negative,
            hours: u16::try_from(value.hours).unwrap_or(u16::MAX),
            minutes: value.minutes,
            seconds: value.seconds,
            micros: value.microseconds,
        })));
    }

    fn row_end(&mut self) {
        let bits = self.fixed.then_some(true).into_iter().chain(self.nulls.iter().copied());
        let mut nulls: Vec<u8> = Vec::new();
        for (at, bit) in bits.enumerate() {
            if at % 8 == 0 {
                nulls.push(0xff);
            }
            if !bit && let Some(last) = nulls.last_mut() {
                *last &= !(1 << (at % 8));
            }
        }
        let mut crc = flate2::Crc::new();
        crc.update(&nulls);
        crc.update(&self.fields);
        self.sum = self.sum.wrapping_add(crc.sum());
    }

    fn rows_end(&mut self, _: &Completion<'_>) {}

    fn ok(&mut self, _: &Completion<'_>) {}

    fn error(&mut self, _: &SqlError) {}

    async fn flush_if_full(&mut self) -> io::Result<()> {
        Ok(())
    }
}
