//! Values on their way from a session to the row writer of `opensrv-mysql`.
//!
//! A cell keeps the value typed until the writer asks for its text or its binary form, as this crate's own
//! reply does; a value that does not fit the declared column is converted in binary rows.

use std::io::{self, Write};

use ::opensrv_mysql::{Column, ColumnType, ToMysqlValue};

use sql::result::{Date, DateTime, Time};

use crate::wire::number_text::{put_f32, put_f64, put_fixed, put_i64, put_u64};
use crate::wire::output::put_length_encoded;
use crate::wire::temporal::{
    parse_datetime, parse_time, put_date_text, put_datetime_binary, put_datetime_text, put_time_binary,
    put_time_text,
};

/// One value of a row.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Cell {
    Null,
    Int(i64),
    UInt(u64),
    /// With the decimals of its column.
    Float(f32, u8),
    /// With the decimals of its column.
    Double(f64, u8),
    Bytes(Box<[u8]>),
    Date(Date),
    /// With the digits of a second shown in text.
    DateTime(DateTime, u8),
    /// With the digits of a second shown in text.
    Time(Time, u8),
}

impl Cell {
    /// Bytes it holds, about; for the size of a batch.
    pub(super) fn weight(&self) -> usize {
        size_of::<Self>() + if let Cell::Bytes(bytes) = self { bytes.len() } else { 0 }
    }

    fn text(&self) -> Vec<u8> {
        let mut out = Vec::new();
        match self {
            Cell::Null => {}
            Cell::Int(value) => put_i64(&mut out, *value),
            Cell::UInt(value) => put_u64(&mut out, *value),
            // 31 decimals mean "as many as it takes".
            Cell::Float(value, decimals @ 1..31) => {
                put_fixed(&mut out, f64::from(*value), usize::from(*decimals))
            }
            Cell::Double(value, decimals @ 1..31) => put_fixed(&mut out, *value, usize::from(*decimals)),
            Cell::Float(value, _) => put_f32(&mut out, *value),
            Cell::Double(value, _) => put_f64(&mut out, *value),
            Cell::Bytes(bytes) => out.extend_from_slice(bytes),
            Cell::Date(value) => put_date_text(&mut out, *value),
            Cell::DateTime(value, decimals) => put_datetime_text(&mut out, *value, *decimals),
            Cell::Time(value, decimals) => put_time_text(&mut out, *value, *decimals),
        }
        out
    }

    /// Two's complement of the integer it is or stands for; 0 for what is no number.
    fn integer(&self) -> u64 {
        match self {
            Cell::Int(value) => *value as u64,
            Cell::UInt(value) => *value,
            other => {
                let text = String::from_utf8(other.text()).unwrap_or_default();
                let whole = text.parse::<i64>().map(|value| value as u64).or_else(|_| text.parse::<u64>());
                whole.unwrap_or_else(|_| self.real().round() as i64 as u64)
            }
        }
    }

    fn real(&self) -> f64 {
        match self {
            Cell::Int(value) => *value as f64,
            Cell::UInt(value) => *value as f64,
            Cell::Float(value, _) => f64::from(*value),
            Cell::Double(value, _) => *value,
            other => {
                String::from_utf8(other.text()).ok().and_then(|text| text.parse().ok()).unwrap_or_default()
            }
        }
    }

    fn point_in_time(&self) -> DateTime {
        match self {
            Cell::DateTime(value, _) => *value,
            Cell::Date(Date { year, month, day }) => {
                DateTime { year: *year, month: *month, day: *day, ..DateTime::default() }
            }
            other => parse_datetime(&other.text()).unwrap_or_default(),
        }
    }

    fn span(&self) -> Time {
        if let Cell::Time(value, _) = self { *value } else { parse_time(&self.text()).unwrap_or_default() }
    }

    fn binary(&self, kind: ColumnType) -> Vec<u8> {
        let mut out = Vec::new();
        match kind {
            ColumnType::MYSQL_TYPE_TINY => out.push(self.integer() as u8),
            ColumnType::MYSQL_TYPE_SHORT | ColumnType::MYSQL_TYPE_YEAR => {
                out.extend_from_slice(&(self.integer() as u16).to_le_bytes());
            }
            ColumnType::MYSQL_TYPE_LONG | ColumnType::MYSQL_TYPE_INT24 => {
                out.extend_from_slice(&(self.integer() as u32).to_le_bytes());
            }
            ColumnType::MYSQL_TYPE_LONGLONG => out.extend_from_slice(&self.integer().to_le_bytes()),
            ColumnType::MYSQL_TYPE_FLOAT => out.extend_from_slice(&(self.real() as f32).to_le_bytes()),
            ColumnType::MYSQL_TYPE_DOUBLE => out.extend_from_slice(&self.real().to_le_bytes()),
            ColumnType::MYSQL_TYPE_DATE
            | ColumnType::MYSQL_TYPE_NEWDATE
            | ColumnType::MYSQL_TYPE_DATETIME
            | ColumnType::MYSQL_TYPE_TIMESTAMP => put_datetime_binary(&mut out, self.point_in_time()),
            ColumnType::MYSQL_TYPE_TIME => put_time_binary(&mut out, self.span()),
            _ => put_text(&mut out, &self.text()),
        }
        out
    }
}

fn put_text(out: &mut Vec<u8>, text: &[u8]) {
    put_length_encoded(out, text.len() as u64);
    out.extend_from_slice(text);
}

impl ToMysqlValue for Cell {
    fn to_mysql_text<W: Write>(&self, out: &mut W) -> io::Result<()> {
        if self.is_null() {
            return out.write_all(&[0xfb]);
        }
        let mut encoded = Vec::new();
        put_text(&mut encoded, &self.text());
        out.write_all(&encoded)
    }

    fn to_mysql_bin<W: Write>(&self, out: &mut W, column: &Column) -> io::Result<()> {
        out.write_all(&self.binary(column.coltype))
    }

    fn is_null(&self) -> bool {
        matches!(self, Cell::Null)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use ::opensrv_mysql::ColumnFlags;

    use super::*;

    fn text(cell: &Cell) -> Vec<u8> {
        let mut out = Vec::new();
        cell.to_mysql_text(&mut out).unwrap();
        out
    }

    fn binary(cell: &Cell, coltype: ColumnType) -> Vec<u8> {
        let column =
            Column { table: String::new(), column: String::new(), coltype, colflags: ColumnFlags::empty() };
        let mut out = Vec::new();
        cell.to_mysql_bin(&mut out, &column).unwrap();
        out
    }

    #[test]
    fn text_rows_are_length_encoded() {
        assert_eq!(text(&Cell::Null), [0xfb]);
        assert_eq!(text(&Cell::Int(-12)), b"\x03-12");
        assert_eq!(text(&Cell::Double(1.5, 2)), b"\x041.50");
        assert_eq!(text(&Cell::Date(Date { year: 2024, month: 2, day: 29 })), b"\x0a2024-02-29");
        let long = text(&Cell::Bytes(vec![b'x'; 300].into()));
        assert_eq!((&long[..3], long.len()), (&[0xfc, 44, 1][..], 303));
    }

    #[test]
    fn binary_rows_follow_the_declared_column() {
        assert_eq!(binary(&Cell::Int(-2), ColumnType::MYSQL_TYPE_LONG), [0xfe, 0xff, 0xff, 0xff]);
        assert_eq!(binary(&Cell::Bytes((*b"258").into()), ColumnType::MYSQL_TYPE_SHORT), [2, 1]);
        assert_eq!(binary(&Cell::UInt(u64::MAX), ColumnType::MYSQL_TYPE_LONGLONG), [0xff; 8]);
        assert_eq!(binary(&Cell::Int(7), ColumnType::MYSQL_TYPE_VAR_STRING), b"\x017");
        let day = Cell::Bytes((*b"2024-02-29").into());
        assert_eq!(binary(&day, ColumnType::MYSQL_TYPE_DATE), [4, 0xe8, 7, 2, 29]);
    }
}
