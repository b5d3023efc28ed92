//! The sink that writes MySQL replies: text rows for COM_QUERY, binary rows for COM_STMT_EXECUTE.
//!
//! A reply gathers in the connection's [`PacketOutput`] and leaves in one write when the command is complete,
//! or early when it grows beyond [`super::output::FLUSH_BYTES`]. The sink is one concrete type for all
//! transports, so the executor above it is compiled once.
//!
//! The packets around the rows (OK, its status flags and counts, errors, column definitions) are in
//! [`super::response_packets`]. What the flags are comes from the session (`session/transaction.rs`);
//! affected rows under CLIENT_FOUND_ROWS are counted by `exec/change.rs`, `exec/multi_table_change.rs` and
//! `exec/insert.rs` of `crates/sql`.

use std::borrow::Cow;
use std::future::Future;
use std::io;
use std::sync::Arc;

use sql::result::{
    ColumnMeta, Completion, Date, DateTime, ResultColumns, ResultSink, SqlError, Time, charset, column_flag,
    kind, status_flag,
};
use sql::value::collation::fitted;
use untorn::types::Charset;

use super::number_text::{put_f32, put_f64, put_fixed, put_i64, put_u64};
use super::output::PacketOutput;
use super::response_packets::{
    self, DEFINITIONS_SEQUENCE, encode_definitions, encode_definitions_as_kept, encode_definitions_in_latin1,
    put_error_in, put_ok, put_rows_end,
};
use super::temporal::{
    parse_datetime, parse_time, put_date_text, put_datetime_binary, put_datetime_text, put_time_binary,
    put_time_text,
};

/// Row encoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// COM_QUERY.
    Text,
    /// COM_STMT_EXECUTE.
    Binary,
}

/// Lets gathered bytes go to the client.
pub trait Flush {
    /// Writes everything in `output` and waits until the client has taken it.
    fn flush(&mut self, output: &mut PacketOutput) -> impl Future<Output = io::Result<()>>;
    /// Whether the client may be asked for a file.
    fn has_files(&self) -> bool;
    /// Waits for the client's next packet of this exchange and appends its payload to `into`; its length.
    fn receive(
        &mut self,
        output: &mut PacketOutput,
        into: &mut Vec<u8>,
    ) -> impl Future<Output = io::Result<usize>>;
}

#[derive(Debug, Clone, Copy)]
struct ColumnShape {
    kind: u8,
    unsigned: bool,
    decimals: u8,
    /// Digits that ZEROFILL fills up to.
    filled: u8,
    /// Text, in the client's character set.
    text: bool,
    /// Text that is kept in `latin1`.
    latin1: bool,
}

/// What a reply remembers between commands, so that it need not allocate again.
#[derive(Debug, Default)]
pub struct ReplyScratch {
    shapes: Vec<ColumnShape>,
}

/// A reply in progress.
pub struct Reply<'a, F> {
    output: &'a mut PacketOutput,
    scratch: &'a mut ReplyScratch,
    flush: &'a mut F,
    capabilities: u32,
    encoding: Encoding,
    status_at_columns: u16,
    /// Of texts.
    charset: Charset,
    /// Column of the next value.
    column: usize,
    in_row: bool,
    /// Rows of this result set.
    rows: u64,
    /// The client sends a file.
    file_open: bool,
}

impl<'a, F: Flush> Reply<'a, F> {
    /// A reply into `output`. `status` are the session's flags, for the end of the column definitions.
    pub fn new(
        output: &'a mut PacketOutput,
        scratch: &'a mut ReplyScratch,
        flush: &'a mut F,
        capabilities: u32,
        encoding: Encoding,
        status: u16,
    ) -> Self {
        Self {
            output,
            scratch,
            flush,
            capabilities,
            encoding,
            status_at_columns: status,
            charset: Charset::Utf8mb4,
            column: 0,
            in_row: false,
            rows: 0,
            file_open: false,
        }
    }

    #[inline]
    fn shape(&mut self) -> ColumnShape {
        let shape = self.scratch.shapes.get(self.column).copied();
        debug_assert!(shape.is_some(), "more values than columns in a row");
        self.column += 1;
        shape.unwrap_or(ColumnShape {
            kind: kind::VAR_STRING,
            unsigned: false,
            decimals: 0,
            filled: 0,
            text: false,
            latin1: false,
        })
    }

    fn binary_int(&mut self, value: i64, unsigned_value: bool) {
        let shape = self.shape();
        match shape.kind {
            kind::TINY => self.output.u8(value as u8),
            kind::SHORT | kind::YEAR => self.output.u16(value as u16),
            kind::LONG | kind::INT24 => self.output.u32(value as u32),
            kind::LONGLONG => self.output.u64(value as u64),
            kind::FLOAT => self.output.u32(widen(value, unsigned_value).to_bits_f32()),
            kind::DOUBLE => self.output.u64(widen(value, unsigned_value).0.to_bits()),
            _ if unsigned_value => self.output.short_text(|out| put_u64(out, value as u64)),
            _ => self.output.short_text(|out| put_i64(out, value)),
        }
    }

    fn binary_double(&mut self, value: f64, single: bool) {
        let shape = self.shape();
        match shape.kind {
            kind::FLOAT => self.output.u32((value as f32).to_bits()),
            kind::DOUBLE => self.output.u64(value.to_bits()),
            kind::TINY => self.output.u8(value.round() as i64 as u8),
            kind::SHORT | kind::YEAR => self.output.u16(value.round() as i64 as u16),
            kind::LONG | kind::INT24 => self.output.u32(value.round() as i64 as u32),
            kind::LONGLONG if shape.unsigned => self.output.u64(value.round() as u64),
            kind::LONGLONG => self.output.u64(value.round() as i64 as u64),
            _ => self.put_text_float(value, single, shape),
        }
    }

    fn put_text_float(&mut self, value: f64, single: bool, shape: ColumnShape) {
        let ColumnShape { decimals, filled, .. } = shape;
        let mut text = Vec::new();
        if decimals < 31 && (decimals > 0 || value.abs() >= 1e15) {
            put_fixed(&mut text, value, usize::from(decimals));
        } else if filled == 0 && single {
            return self.output.short_text(|out| put_f32(out, value as f32));
        } else if filled == 0 {
            return self.output.short_text(|out| put_f64(out, value));
        } else if single {
            put_f32(&mut text, value as f32);
        } else {
            put_f64(&mut text, value);
        }
        self.output.length_encoded_bytes(&zero_filled(&text, filled));
    }

    /// A value in text form for a column whose binary form may be something else.
    fn binary_bytes(&mut self, value: &[u8]) {
        let shape = self.shape();
        match shape.kind {
            kind::TINY | kind::SHORT | kind::YEAR | kind::LONG | kind::INT24 | kind::LONGLONG => {
                self.column -= 1;
                let text = std::str::from_utf8(value).unwrap_or_default();
                match text.parse::<i64>() {
                    Ok(number) => self.binary_int(number, false),
                    Err(_) => self.binary_int(text.parse::<u64>().unwrap_or_default() as i64, true),
                }
            }
            kind::FLOAT | kind::DOUBLE => {
                self.column -= 1;
                let number =
                    std::str::from_utf8(value).ok().and_then(|text| text.parse().ok()).unwrap_or_default();
                self.binary_double(number, false);
            }
            kind::DATE | kind::DATETIME | kind::TIMESTAMP | kind::NEWDATE => {
                self.put_binary(|out| put_datetime_binary(out, parse_datetime(value).unwrap_or_default()));
            }
            kind::TIME => self.put_binary(|out| put_time_binary(out, parse_time(value).unwrap_or_default())),
            _ => self.output.length_encoded_bytes(value),
        }
    }

    fn put_binary(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let mut bytes = Vec::with_capacity(16);
        write(&mut bytes);
        self.output.put(&bytes);
    }

    #[inline]
    fn put_bytes(&mut self, value: &[u8]) {
        if self.is_text() {
            self.column += 1;
            self.output.length_encoded_bytes(value)
        } else {
            self.binary_bytes(value)
        }
    }

    fn is_text(&self) -> bool {
        self.encoding == Encoding::Text
    }
}

struct Widened(f64);

impl Widened {
    fn to_bits_f32(&self) -> u32 {
        (self.0 as f32).to_bits()
    }
}

fn widen(value: i64, unsigned: bool) -> Widened {
    Widened(if unsigned { value as u64 as f64 } else { value as f64 })
}

/// A number as ZEROFILL shows it.
fn zero_filled(number: &[u8], width: u8) -> Cow<'_, [u8]> {
    match usize::from(width).saturating_sub(number.len()) {
        0 => number.into(),
        missing => [&vec![b'0'; missing], number].concat().into(),
    }
}

fn shape_of(meta: &ColumnMeta) -> ColumnShape {
    ColumnShape {
        kind: meta.kind,
        unsigned: meta.flags & column_flag::UNSIGNED != 0,
        decimals: meta.decimals,
        filled: if meta.flags & column_flag::ZEROFILL != 0 { meta.length.min(255) as u8 } else { 0 },
        // Documents are said to be bytes, and are converted all the same.
        text: meta.charset != charset::BINARY || meta.kind == kind::JSON,
        latin1: meta.latin1,
    }
}

impl<F: Flush> ResultSink for Reply<'_, F> {
    fn rows_sent(&self) -> u64 {
        self.rows
    }

    fn charset(&mut self, charset: Charset) {
        self.charset = charset;
    }

    fn another_follows(&mut self, more: bool) {
        let flag = if more { status_flag::MORE_RESULTS_EXISTS } else { 0 };
        self.status_at_columns = self.status_at_columns & !status_flag::MORE_RESULTS_EXISTS | flag;
    }

    fn columns(&mut self, columns: &Arc<ResultColumns>) {
        self.rows = 0;
        self.scratch.shapes.clear();
        self.scratch.shapes.extend(columns.metas().iter().map(shape_of));
        self.output.begin();
        self.output.length_encoded(columns.len() as u64);
        self.output.end();
        let own = match self.charset {
            Charset::Latin1 => Some(encode_definitions_in_latin1(columns.metas())),
            Charset::Binary if columns.metas().iter().any(|meta| meta.latin1) => {
                Some(encode_definitions_as_kept(columns.metas()))
            }
            _ => None,
        };
        let encoded = own.as_ref().unwrap_or_else(|| columns.encoded(encode_definitions));
        self.output.put_packets(&encoded.bytes, &encoded.ends, DEFINITIONS_SEQUENCE);
        if self.capabilities & super::capability::DEPRECATE_EOF == 0 {
            response_packets::put_eof(self.output, 0, self.status_at_columns);
        }
    }

    #[inline]
    fn row_begin(&mut self) {
        self.in_row = true;
        self.column = 0;
        self.output.begin();
        if self.encoding == Encoding::Binary {
            self.output.u8(0);
            for _ in 0..(self.scratch.shapes.len() + 9) / 8 {
                self.output.u8(0);
            }
        }
    }

    #[inline]
    fn null(&mut self) {
        if self.is_text() {
            self.column += 1;
            return self.output.u8(0xfb);
        }
        // The first two bits of the bitmap are reserved; the byte before it is the row's header.
        let bit = self.column + 2;
        self.column += 1;
        if let Some(byte) = self.output.payload_mut().get_mut(1 + bit / 8) {
            *byte |= 1 << (bit % 8);
        }
    }

    #[inline]
    fn int(&mut self, value: i64) {
        if self.is_text() {
            self.column += 1;
            self.output.short_text(|out| put_i64(out, value))
        } else {
            self.binary_int(value, false)
        }
    }

    #[inline]
    fn uint(&mut self, value: u64) {
        if self.is_text() {
            let shape = self.scratch.shapes.get(self.column);
            self.column += 1;
            match shape {
                Some(ColumnShape { kind: kind::YEAR, .. }) if value == 0 => {
                    self.output.length_encoded_bytes(b"0000");
                }
                Some(ColumnShape { filled: width @ 1.., .. }) => {
                    let text = format!("{value:0width$}", width = usize::from(*width));
                    self.output.length_encoded_bytes(text.as_bytes());
                }
                _ => self.output.short_text(|out| put_u64(out, value)),
            }
        } else {
            self.binary_int(value as i64, true);
        }
    }

    fn float(&mut self, value: f32) {
        if self.is_text() {
            let shape = self.shape();
            self.put_text_float(f64::from(value), true, shape);
        } else {
            self.binary_double(f64::from(value), true);
        }
    }

    fn double(&mut self, value: f64) {
        if self.is_text() {
            let shape = self.shape();
            self.put_text_float(value, false, shape);
        } else {
            self.binary_double(value, false);
        }
    }

    #[inline]
    fn bytes(&mut self, value: &[u8]) {
        if let Some(ColumnShape { kind: kind::NEWDECIMAL, filled: filled @ 1.., .. }) =
            self.scratch.shapes.get(self.column)
        {
            let text = zero_filled(value, *filled);
            self.column += 1;
            return self.output.length_encoded_bytes(&text);
        }
        // What is kept in it stays in it where the client wants nothing converted, as mydumper does.
        let in_latin1 = match self.charset {
            Charset::Latin1 => self.scratch.shapes.get(self.column).is_some_and(|shape| shape.text),
            Charset::Binary => self.scratch.shapes.get(self.column).is_some_and(|shape| shape.latin1),
            _ => false,
        };
        if in_latin1 {
            return self.put_bytes(&Charset::Latin1.from_utf8_lossy(value));
        }
        let smaller = matches!(self.charset, Charset::Ascii | Charset::Utf8mb3);
        if smaller && self.scratch.shapes.get(self.column).is_some_and(|shape| shape.text) {
            return self.put_bytes(&fitted(value.into(), self.charset));
        }
        self.put_bytes(value);
    }

    fn date(&mut self, value: Date) {
        let Date { year, month, day } = value;
        if self.is_text() {
            self.column += 1;
            return self.output.short_text(|out| put_date_text(out, value));
        }
        match self.shape().kind {
            kind::DATE | kind::DATETIME | kind::TIMESTAMP | kind::NEWDATE => {
                self.put_binary(|out| {
                    put_datetime_binary(out, DateTime { year, month, day, ..DateTime::default() })
                });
            }
            _ => self.output.short_text(|out| put_date_text(out, value)),
        }
    }

    fn datetime(&mut self, value: DateTime, decimals: u8) {
        if self.is_text() {
            self.column += 1;
            return self.output.short_text(|out| put_datetime_text(out, value, decimals));
        }
        match self.shape().kind {
            kind::DATE | kind::DATETIME | kind::TIMESTAMP | kind::NEWDATE => {
                self.put_binary(|out| put_datetime_binary(out, value));
            }
            _ => self.output.short_text(|out| put_datetime_text(out, value, decimals)),
        }
    }

    fn time(&mut self, value: Time, decimals: u8) {
        if self.is_text() {
            self.column += 1;
            return self.output.short_text(|out| put_time_text(out, value, decimals));
        }
        match self.shape().kind {
            kind::TIME => self.put_binary(|out| put_time_binary(out, value)),
            _ => self.output.short_text(|out| put_time_text(out, value, decimals)),
        }
    }

    #[inline]
    fn row_end(&mut self) {
        debug_assert!(self.in_row, "row_end without row_begin");
        self.in_row = false;
        self.rows += 1;
        self.output.end();
    }

    fn rows_end(&mut self, completion: &Completion<'_>) {
        put_rows_end(self.output, self.capabilities, completion);
    }

    fn ok(&mut self, completion: &Completion<'_>) {
        put_ok(self.output, 0, completion);
    }

    fn error(&mut self, error: &SqlError) {
        if std::mem::take(&mut self.in_row) {
            self.output.abandon();
        }
        put_error_in(self.output, true, error, self.charset);
    }

    #[inline]
    fn is_full(&self) -> bool {
        self.output.is_full()
    }

    async fn flush_if_full(&mut self) -> io::Result<()> {
        if !self.output.is_full() {
            return Ok(());
        }
        debug_assert!(!self.in_row, "a flush between rows only");
        self.flush.flush(self.output).await
    }

    async fn ask_for_file(&mut self, name: &[u8]) -> io::Result<bool> {
        if !self.flush.has_files() {
            return Ok(false);
        }
        self.output.begin();
        self.output.u8(0xfb);
        self.output.put(name);
        self.output.end();
        self.flush.flush(self.output).await?;
        self.file_open = true;
        Ok(true)
    }

    async fn file_piece(&mut self, into: &mut Vec<u8>) -> io::Result<bool> {
        if self.file_open {
            self.file_open = self.flush.receive(self.output, into).await? > 0;
        }
        Ok(self.file_open)
    }

    async fn skip_file(&mut self) -> io::Result<()> {
        let mut skipped = Vec::new();
        while self.file_open {
            skipped.clear();
            self.file_open = self.flush.receive(self.output, &mut skipped).await? > 0;
        }
        Ok(())
    }
}
