//! A result set without its last columns, which are kept: the key of its last row.

use std::future::Future;
use std::io;
use std::sync::Arc;

use sql::ast::{Expr, UnaryOperator};
use sql::result::{Completion, Date, DateTime, ResultColumns, ResultSink, SqlError, Time};
use untorn::types::Charset;

/// What the texts of a key's column are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextKind {
    /// Numbers.
    Decimal,
    /// Bytes.
    Bytes,
    /// Characters, days and times.
    Characters,
}

/// See the module's text.
pub(super) struct KeyKeeper<'s, S> {
    out: &'s mut S,
    /// Columns that are sent.
    shown: usize,
    /// Those that are kept.
    kinds: Vec<TextKind>,
    at: usize,
    rows: u64,
    key: Vec<Expr>,
    last: Option<Vec<Expr>>,
}

impl<'s, S: ResultSink> KeyKeeper<'s, S> {
    pub(super) fn new(out: &'s mut S, shown: usize, kinds: Vec<TextKind>) -> Self {
        KeyKeeper { out, shown, kinds, at: 0, rows: 0, key: Vec::new(), last: None }
    }

    /// How many rows there were, and the key of the last one.
    pub(super) fn finish(self) -> (u64, Option<Vec<Expr>>) {
        (self.rows, self.last)
    }

    /// Sends a value, or keeps it.
    fn take(&mut self, send: impl FnOnce(&mut S), keep: impl FnOnce(TextKind) -> Expr) {
        match self.at.checked_sub(self.shown) {
            None => send(&mut *self.out),
            Some(at) => self.key.push(keep(self.kinds.get(at).copied().unwrap_or(TextKind::Characters))),
        }
        self.at += 1;
    }
}

/// A number as it is written.
pub(super) fn integer(value: i64) -> Expr {
    let digits = Expr::Integer(value.unsigned_abs());
    if value < 0 { Expr::Unary(UnaryOperator::Minus, Box::new(digits)) } else { digits }
}

/// The same of an exact number.
pub(super) fn decimal(text: &str) -> Expr {
    match text.strip_prefix('-') {
        Some(digits) => Expr::Unary(UnaryOperator::Minus, Box::new(Expr::Decimal(digits.into()))),
        None => Expr::Decimal(text.into()),
    }
}

/// A text of this kind as it is written.
pub(super) fn text(bytes: &[u8], kind: TextKind) -> Expr {
    match kind {
        TextKind::Decimal => decimal(&String::from_utf8_lossy(bytes)),
        TextKind::Bytes => Expr::Text { bytes: bytes.into(), introducer: Some("binary".into()) },
        TextKind::Characters => Expr::Text { bytes: bytes.into(), introducer: None },
    }
}

fn moment(said: String) -> Expr {
    text(said.as_bytes(), TextKind::Characters)
}

fn shown_date(value: Date) -> String {
    format!("{:04}-{:02}-{:02}", value.year, value.month, value.day)
}

impl<S: ResultSink> ResultSink for KeyKeeper<'_, S> {
    fn is_client(&self) -> bool {
        self.out.is_client()
    }
    fn rows_sent(&self) -> u64 {
        self.out.rows_sent()
    }
    fn charset(&mut self, charset: Charset) {
        self.out.charset(charset);
    }
    fn columns(&mut self, columns: &Arc<ResultColumns>) {
        self.out.columns(&ResultColumns::new(columns.metas().iter().take(self.shown).cloned().collect()));
    }
    fn row_begin(&mut self) {
        self.at = 0;
        self.out.row_begin();
    }
    fn null(&mut self) {
        self.take(S::null, |_| Expr::Null);
    }
    fn int(&mut self, value: i64) {
        self.take(|out| out.int(value), |_| integer(value));
    }
    fn uint(&mut self, value: u64) {
        self.take(|out| out.uint(value), |_| Expr::Integer(value));
    }
    fn float(&mut self, value: f32) {
        self.take(|out| out.float(value), |_| Expr::Float(value.into()));
    }
    fn double(&mut self, value: f64) {
        self.take(|out| out.double(value), |_| Expr::Float(value));
    }
    fn bytes(&mut self, value: &[u8]) {
        self.take(|out| out.bytes(value), |kind| text(value, kind));
    }
    fn date(&mut self, value: Date) {
        self.take(|out| out.date(value), |_| moment(shown_date(value)));
    }
    fn datetime(&mut self, value: DateTime, decimals: u8) {
        let DateTime { year, month, day, hour, minute, second, microsecond } = value;
        let clock = move || format!("{hour:02}:{minute:02}:{second:02}.{microsecond:06}");
        let keep = |_| moment(format!("{} {}", shown_date(Date { year, month, day }), clock()));
        self.take(|out| out.datetime(value, decimals), keep);
    }
    fn time(&mut self, value: Time, decimals: u8) {
        let Time { negative, hours, minutes, seconds, microseconds } = value;
        let sign = if negative { "-" } else { "" };
        let said = format!("{sign}{hours:02}:{minutes:02}:{seconds:02}.{microseconds:06}");
        self.take(|out| out.time(value, decimals), |_| moment(said));
    }
    fn row_end(&mut self) {
        self.rows += 1;
        self.last = Some(std::mem::take(&mut self.key));
        self.out.row_end();
    }
    fn rows_end(&mut self, completion: &Completion<'_>) {
        self.out.rows_end(completion);
    }
    fn ok(&mut self, completion: &Completion<'_>) {
        self.out.ok(completion);
    }
    fn error(&mut self, error: &SqlError) {
        self.out.error(error);
    }
    fn is_full(&self) -> bool {
        self.out.is_full()
    }
    fn flush_if_full(&mut self) -> impl Future<Output = io::Result<()>> {
        self.out.flush_if_full()
    }
}
