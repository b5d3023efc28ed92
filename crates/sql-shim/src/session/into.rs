//! SELECT … INTO: user variables, and files of this machine.
//!
//! A file is made new and never written over ([`crate::server::files`]); of one that was not finished nothing
//! is left, whether the statement failed or its client has gone.

use std::borrow::Cow;
use std::fs::File;
use std::future::Future;
use std::io::{self, Write};
use std::pin::Pin;

use sql::ast::{Destination, IntoFile, TextFormat};
use sql::errors::{self, error};
use sql::exec::insert::Changed;
use sql::exec::{Executor, NoSink, RowTaker, Target};
use sql::failure::Failure;
use sql::plan::SelectPlan;
use sql::result::{ColumnMeta, column_flag, kind};
use sql::value::{Value, decimal};

use crate::server::files::{self, FileDirectory};
use crate::wire::number_text::put_fixed;

/// Bytes written at once: each write is on another thread.
const PIECE_BYTES: usize = 256 * 1024;

pub(super) async fn run(
    executor: &mut Executor<'_>,
    select: &SelectPlan,
    directory: Option<&FileDirectory>,
) -> Result<Changed, Failure> {
    match &select.into {
        Destination::Client => Ok(Changed::default()),
        Destination::Variables(names) => {
            let rows = executor.first_rows(select, 2).await?;
            if rows.len() > 1 {
                return Err(error(errors::TOO_MANY_ROWS, &[]).into());
            }
            let affected = rows.len() as u64;
            for row in rows.into_rows() {
                for ((name, value), ty) in names.iter().zip(row).zip(&select.types) {
                    // Of bits a variable has the number.
                    let value = if ty.kind == kind::BIT { sql::expr::bits_as_number(&value) } else { value };
                    executor.state.set_user_variable(name, value)?;
                }
            }
            Ok(Changed { affected, ..Changed::default() })
        }
        Destination::File(into) => {
            let (file, new) = files::named(directory)?.create(&into.file)?;
            let mut rows = FileRows {
                into,
                columns: select.columns.metas(),
                bytes: Vec::new(),
                count: 0,
                file: Some(file),
            };
            executor.select(select, &mut Target::<NoSink>::Taker(&mut rows)).await?;
            rows.write(true).await?;
            if let Some(file) = &rows.file {
                new.keep(file)?;
            }
            Ok(Changed { affected: rows.count, ..Changed::default() })
        }
    }
}

/// Rows on their way to a file.
struct FileRows<'a> {
    into: &'a IntoFile,
    columns: &'a [ColumnMeta],
    bytes: Vec<u8>,
    count: u64,
    /// `None` while a write is under way.
    file: Option<File>,
}

impl FileRows<'_> {
    async fn write(&mut self, last: bool) -> Result<(), Failure> {
        let Some(mut file) = self.file.take() else { return Ok(()) };
        let bytes = std::mem::take(&mut self.bytes);
        // The disk may take its time, and others run on this thread.
        let written = tokio::task::spawn_blocking(move || {
            let outcome = file.write_all(&bytes).and_then(|()| if last { file.sync_all() } else { Ok(()) });
            (file, bytes, outcome)
        });
        let (file, mut bytes, outcome) = written.await.map_err(io::Error::other)?;
        let shown = String::from_utf8_lossy(&self.into.file);
        outcome.map_err(|failed| error(errors::ERROR_ON_WRITE, &[&shown, &failed]))?;
        bytes.clear();
        (self.file, self.bytes) = (Some(file), bytes);
        Ok(())
    }
}

impl RowTaker for FileRows<'_> {
    fn take(&mut self, row: Vec<Value<'static>>) -> Result<(), Failure> {
        self.count += 1;
        match &self.into.format {
            Some(format) => put_row(format, &row, self.columns, &mut self.bytes),
            None if self.count > 1 => return Err(error(errors::TOO_MANY_ROWS, &[]).into()),
            None => row.iter().zip(self.columns).for_each(|(value, column)| match value {
                Value::Null => self.bytes.push(0),
                value => self.bytes.extend_from_slice(&text_of(value, column)),
            }),
        }
        Ok(())
    }

    fn is_full(&self) -> bool {
        self.bytes.len() >= PIECE_BYTES
    }

    fn make_room<'a>(
        &'a mut self,
        _executor: &'a Executor<'_>,
    ) -> Pin<Box<dyn Future<Output = Result<(), Failure>> + 'a>> {
        Box::pin(self.write(false))
    }
}

/// Writes a row so that LOAD DATA with the same format reads it back.
fn put_row(format: &TextFormat, row: &[Value<'_>], columns: &[ColumnMeta], out: &mut Vec<u8>) {
    out.extend_from_slice(&format.line_start);
    for (at, (value, column)) in row.iter().zip(columns).enumerate() {
        if at > 0 {
            out.extend_from_slice(&format.field_end);
        }
        put_field(format, value, column, out);
    }
    out.extend_from_slice(&format.line_end);
}

fn put_field(format: &TextFormat, value: &Value<'_>, column: &ColumnMeta, out: &mut Vec<u8>) {
    if value.is_null() {
        match format.escaped {
            Some(escape) => out.extend_from_slice(&[escape, b'N']),
            None => out.extend_from_slice(b"NULL"),
        }
        return;
    }
    let number = matches!(
        value,
        Value::Int(_) | Value::UInt(_) | Value::Float(_) | Value::Double(_) | Value::Decimal(_)
    );
    let quote = format.enclosed.filter(|_| !(format.optionally && number));
    out.extend(quote);
    let text = text_of(value, column);
    match format.escaped {
        Some(escape) if !number => {
            let field_end = format.enclosed.or(format.field_end.first().copied());
            let ends = [field_end, format.line_end.first().copied()];
            for byte in text.iter().copied() {
                match byte {
                    0 => out.extend_from_slice(&[escape, b'0']),
                    byte if byte == escape || ends.contains(&Some(byte)) => {
                        out.extend_from_slice(&[escape, byte])
                    }
                    byte => out.push(byte),
                }
            }
        }
        _ => out.extend_from_slice(&text),
    }
    out.extend(quote);
}

/// A value as its column shows it.
fn text_of<'v>(value: &'v Value<'_>, column: &ColumnMeta) -> Cow<'v, [u8]> {
    let exact = matches!(value, Value::Int(_) | Value::UInt(_) | Value::Decimal(_));
    let number = exact || matches!(value, Value::Float(_) | Value::Double(_));
    let text: Cow<'v, [u8]> = match column.kind {
        kind::NEWDECIMAL if exact => {
            let rounded = decimal::round(&value.to_decimal(), i64::from(column.decimals));
            decimal::format(&rounded).into_bytes().into()
        }
        kind::DOUBLE | kind::FLOAT if number && (1..31).contains(&column.decimals) => {
            let mut text = Vec::new();
            put_fixed(&mut text, value.to_double(), usize::from(column.decimals));
            text.into()
        }
        kind::DOUBLE | kind::FLOAT if exact => Value::Double(value.to_double()).to_text().into_owned().into(),
        kind::YEAR if number && value.to_integer() == 0 => return b"0000".into(),
        _ => value.to_text(),
    };
    if number && column.flags & column_flag::ZEROFILL != 0 {
        let missing = (column.length.min(255) as usize).saturating_sub(text.len());
        return [&vec![b'0'; missing], &*text].concat().into();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use sql::value::Collation;

    fn line(format: &TextFormat, row: &[Value<'_>]) -> String {
        let mut out = Vec::new();
        put_row(format, row, &vec![ColumnMeta::default(); row.len()], &mut out);
        out.escape_ascii().to_string()
    }

    /// The lines are those of MySQL 9.7.
    #[test]
    fn what_would_end_a_field_is_escaped() {
        let text = |text: &'static str| Value::Text(text.as_bytes().into(), Collation::Utf8mb4GeneralCi);
        let row = [Value::Int(-1), Value::Null, text("a\tb\\c\n\0\"")];
        let format = TextFormat::default();
        assert_eq!(line(&format, &row), r#"-1\t\\N\ta\\\tb\\\\c\\\n\\0\"\n"#);
        let format = TextFormat { field_end: b",".to_vec(), enclosed: Some(b'"'), ..TextFormat::default() };
        assert_eq!(line(&format, &row), r#"\"-1\",\\N,\"a\tb\\\\c\\\n\\0\\\"\"\n"#);
        let format = TextFormat { optionally: true, escaped: None, ..format };
        assert_eq!(line(&format, &row), r#"-1,NULL,\"a\tb\\c\n\x00\"\"\n"#);
    }
}
