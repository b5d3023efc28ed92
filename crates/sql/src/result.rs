//! What a statement answers, and the sink it goes to.
//!
//! SQL turns statements into calls on a [`ResultSink`]; it makes no packet. The sink is generic,
//! not `dyn`, so that a row goes from the page to the socket buffer through inlined calls. One response is
//!
//! ```text
//!   ok | error | columns (row_begin value* row_end)* rows_end | columns ... error
//! ```
//!
//! and a command with several statements is several responses, all but the last with `more_results` set.
//! Values arrive in the order of the columns, one call for each; the sink decides between the text and the
//! binary encoding, so integers and temporal values stay typed up to the last moment. A value whose call does
//! not match the declared column type is converted by the sink where MySQL's protocol needs it (binary rows),
//! so that any column may be answered with `bytes`, but typed calls are the fast way.

use std::borrow::Cow;
use std::fmt;
use std::future::Future;
use std::io;
use std::sync::{Arc, OnceLock};
use untorn::types::Charset;

/// Column types as the protocol numbers them (`MYSQL_TYPE_*`).
pub mod kind {
    #![allow(missing_docs)]
    pub const DECIMAL: u8 = 0;
    pub const TINY: u8 = 1;
    pub const SHORT: u8 = 2;
    pub const LONG: u8 = 3;
    pub const FLOAT: u8 = 4;
    pub const DOUBLE: u8 = 5;
    pub const NULL: u8 = 6;
    pub const TIMESTAMP: u8 = 7;
    pub const LONGLONG: u8 = 8;
    pub const INT24: u8 = 9;
    pub const DATE: u8 = 10;
    pub const TIME: u8 = 11;
    pub const DATETIME: u8 = 12;
    pub const YEAR: u8 = 13;
    pub const NEWDATE: u8 = 14;
    pub const VARCHAR: u8 = 15;
    pub const BIT: u8 = 16;
    pub const JSON: u8 = 245;
    pub const NEWDECIMAL: u8 = 246;
    pub const ENUM: u8 = 247;
    pub const SET: u8 = 248;
    pub const TINY_BLOB: u8 = 249;
    pub const MEDIUM_BLOB: u8 = 250;
    pub const LONG_BLOB: u8 = 251;
    pub const BLOB: u8 = 252;
    pub const VAR_STRING: u8 = 253;
    pub const STRING: u8 = 254;
    pub const GEOMETRY: u8 = 255;
}

/// Column flags of a column definition.
pub mod column_flag {
    #![allow(missing_docs)]
    pub const NOT_NULL: u16 = 1;
    pub const PRIMARY_KEY: u16 = 2;
    pub const UNIQUE_KEY: u16 = 4;
    pub const MULTIPLE_KEY: u16 = 8;
    pub const BLOB: u16 = 16;
    pub const UNSIGNED: u16 = 32;
    pub const ZEROFILL: u16 = 64;
    pub const BINARY: u16 = 128;
    pub const ENUM: u16 = 256;
    pub const AUTO_INCREMENT: u16 = 512;
    pub const TIMESTAMP: u16 = 1024;
    pub const SET: u16 = 2048;
    pub const NO_DEFAULT_VALUE: u16 = 4096;
    pub const ON_UPDATE_NOW: u16 = 8192;
    pub const PART_KEY: u16 = 16384;
}

/// Server status bits, sent in the greeting, every OK and every end of rows.
pub mod status_flag {
    #![allow(missing_docs)]
    pub const IN_TRANS: u16 = 0x0001;
    pub const AUTOCOMMIT: u16 = 0x0002;
    pub const MORE_RESULTS_EXISTS: u16 = 0x0008;
    pub const NO_GOOD_INDEX_USED: u16 = 0x0010;
    pub const NO_INDEX_USED: u16 = 0x0020;
    pub const CURSOR_EXISTS: u16 = 0x0040;
    pub const LAST_ROW_SENT: u16 = 0x0080;
    pub const DB_DROPPED: u16 = 0x0100;
    pub const NO_BACKSLASH_ESCAPES: u16 = 0x0200;
    pub const METADATA_CHANGED: u16 = 0x0400;
    pub const QUERY_WAS_SLOW: u16 = 0x0800;
    pub const PS_OUT_PARAMS: u16 = 0x1000;
    pub const IN_TRANS_READONLY: u16 = 0x2000;
    pub const SESSION_STATE_CHANGED: u16 = 0x4000;
}

/// Character set (collation) ids that columns are labelled with.
pub mod charset {
    /// `utf8mb4_general_ci`, the default of this server.
    pub const UTF8MB4_GENERAL_CI: u16 = 45;
    /// `utf8mb4_bin`.
    pub const UTF8MB4_BIN: u16 = 46;
    /// `binary`: numbers, dates, BLOB and BINARY columns.
    pub const BINARY: u16 = 63;
    /// `utf8mb3_general_ci`.
    pub const UTF8MB3_GENERAL_CI: u16 = 33;
    /// `latin1_swedish_ci`, for clients that want it.
    pub const LATIN1_SWEDISH_CI: u16 = 8;
}

/// What the client is told of one result column.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ColumnMeta {
    /// Database of the table, empty for an expression.
    pub schema: String,
    /// Table or alias as written in the statement.
    pub table: String,
    /// Name of the table itself.
    pub org_table: String,
    /// Column name or alias; for an expression its text as typed.
    pub name: String,
    /// Name of the column in its table.
    pub org_name: String,
    /// One of [`charset`]; `BINARY` for everything that is not text.
    pub charset: u16,
    /// Longest display length in bytes.
    pub length: u32,
    /// One of [`kind`].
    pub kind: u8,
    /// Bits of [`column_flag`].
    pub flags: u16,
    /// Digits after the point; 31 for FLOAT and DOUBLE without a fixed scale.
    pub decimals: u8,
    /// It is kept in `latin1`, and so it goes to clients that want nothing converted.
    pub latin1: bool,
    /// Default as text; sent only in answers to COM_FIELD_LIST.
    pub default: Option<Vec<u8>>,
}

impl ColumnMeta {
    /// A nullable text column of an expression, `length` in characters.
    pub fn text(name: &str, length_chars: u32) -> Self {
        Self {
            name: name.into(),
            charset: charset::UTF8MB4_GENERAL_CI,
            length: length_chars.saturating_mul(4),
            kind: kind::VAR_STRING,
            ..Self::default()
        }
    }

    /// A BIGINT column of an expression.
    pub fn bigint(name: &str) -> Self {
        Self {
            name: name.into(),
            charset: charset::BINARY,
            length: 21,
            kind: kind::LONGLONG,
            flags: column_flag::BINARY,
            ..Self::default()
        }
    }
}

/// The columns of a result, with a place for their encoded form so that a cached plan encodes them once.
#[derive(Debug, Default)]
pub struct ResultColumns {
    metas: Vec<ColumnMeta>,
    encoded: OnceLock<EncodedColumns>,
}

/// Column definition packets with their headers, back to back, each with its end offset.
#[derive(Debug, Default)]
pub struct EncodedColumns {
    /// All packets; their sequence ids start with 2, where a result set has them.
    pub bytes: Vec<u8>,
    /// End of each packet in `bytes`.
    pub ends: Vec<u32>,
}

impl ResultColumns {
    /// Columns ready to be shared.
    pub fn new(metas: Vec<ColumnMeta>) -> Arc<Self> {
        Arc::new(Self { metas, encoded: OnceLock::new() })
    }

    /// The columns.
    pub fn metas(&self) -> &[ColumnMeta] {
        &self.metas
    }

    /// How many columns.
    pub fn len(&self) -> usize {
        self.metas.len()
    }

    /// Whether the statement returns no rows at all.
    pub fn is_empty(&self) -> bool {
        self.metas.is_empty()
    }

    /// The encoded definitions, made by `encode` on first use.
    pub fn encoded(&self, encode: impl FnOnce(&[ColumnMeta]) -> EncodedColumns) -> &EncodedColumns {
        self.encoded.get_or_init(|| encode(&self.metas))
    }
}

/// How a statement ended well.
#[derive(Debug, Clone, Default)]
pub struct Completion<'a> {
    /// Affected rows (matched rows for an UPDATE when the client set FOUND_ROWS).
    pub affected: u64,
    /// First generated AUTO_INCREMENT value, or 0.
    pub last_insert_id: u64,
    /// Number of warnings that SHOW WARNINGS would give.
    pub warnings: u16,
    /// Bits of [`status_flag`]; `MORE_RESULTS_EXISTS` is added by the sink when `more_results` is set.
    pub status: u16,
    /// `Records: 3  Duplicates: 0  Warnings: 0` and the like.
    pub info: Cow<'a, str>,
    /// Another response of the same command follows.
    pub more_results: bool,
    /// What has changed of the session, as the protocol writes it, for a client that asks for it. It goes
    /// with an OK: ends of rows in the old form have no place for it.
    pub session_changes: Option<Box<[u8]>>,
}

/// An error as the client sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqlError {
    /// MySQL error number.
    pub code: u16,
    /// Five-character SQLSTATE.
    pub sqlstate: [u8; 5],
    /// The message, never empty.
    pub message: Cow<'static, str>,
}

impl SqlError {
    /// An error with an explicit SQLSTATE.
    pub fn new(code: u16, sqlstate: &[u8; 5], message: impl Into<Cow<'static, str>>) -> Self {
        Self { code, sqlstate: *sqlstate, message: message.into() }
    }
}

impl fmt::Display for SqlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ERROR {} ({}): {}", self.code, String::from_utf8_lossy(&self.sqlstate), self.message)
    }
}

impl std::error::Error for SqlError {}

/// A calendar date; zero parts are allowed as in MySQL.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)]
pub struct Date {
    pub year: u16,
    pub month: u8,
    pub day: u8,
}

/// A date and time of day.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)]
pub struct DateTime {
    pub year: u16,
    pub month: u8,
    pub day: u8,
    pub hour: u8,
    pub minute: u8,
    pub second: u8,
    pub microsecond: u32,
}

/// A signed span of time, up to 838:59:59.999999.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Time {
    pub negative: bool,
    /// Whole hours, days included (0..=838).
    pub hours: u32,
    pub minutes: u8,
    pub seconds: u8,
    pub microseconds: u32,
}

/// Where a statement's answer is written. See the module text for the order of calls.
pub trait ResultSink {
    /// Whether the rows are what the client has asked for: `sql_select_limit` and `max_execution_time` are
    /// for these.
    fn is_client(&self) -> bool {
        true
    }
    /// Rows of the result set so far, if they are counted.
    fn rows_sent(&self) -> u64 {
        0
    }
    /// The character set in which the client wants the texts of what follows.
    fn charset(&mut self, _charset: Charset) {}
    /// Whether the result of another statement follows the one that comes: some clients look for that where
    /// the column definitions end, and not where the rows do.
    fn another_follows(&mut self, _more: bool) {}
    /// Starts a result set.
    fn columns(&mut self, columns: &Arc<ResultColumns>);
    /// Starts a row.
    fn row_begin(&mut self);
    /// SQL NULL.
    fn null(&mut self);
    /// A signed integer.
    fn int(&mut self, value: i64);
    /// An unsigned integer.
    fn uint(&mut self, value: u64);
    /// A FLOAT.
    fn float(&mut self, value: f32);
    /// A DOUBLE.
    fn double(&mut self, value: f64);
    /// Text, binary, DECIMAL text, or any value already in text form.
    fn bytes(&mut self, value: &[u8]);
    /// A date.
    fn date(&mut self, value: Date);
    /// A date and time; `decimals` digits of a second are shown in text.
    fn datetime(&mut self, value: DateTime, decimals: u8);
    /// A time; `decimals` digits of a second are shown in text.
    fn time(&mut self, value: Time, decimals: u8);
    /// Ends a row.
    fn row_end(&mut self);
    /// Ends the rows.
    fn rows_end(&mut self, completion: &Completion<'_>);
    /// Answers a statement without rows.
    fn ok(&mut self, completion: &Completion<'_>);
    /// Ends the response with an error; what was begun of a row is withdrawn.
    fn error(&mut self, error: &SqlError);
    /// Whether so much has gathered that it is time for [`ResultSink::flush_if_full`].
    fn is_full(&self) -> bool {
        false
    }
    /// Lets the bytes gathered so far go to the client once there are many; awaits the client taking them
    /// (back-pressure). Call it between rows with no latch held. An error means the client is gone: stop the
    /// statement.
    fn flush_if_full(&mut self) -> impl Future<Output = io::Result<()>>;
    /// Asks the client for a file of its own; false: this client cannot be asked.
    fn ask_for_file(&mut self, _name: &[u8]) -> impl Future<Output = io::Result<bool>> {
        std::future::ready(Ok(false))
    }
    /// Appends what comes next of the file that was asked for; false at its end.
    fn file_piece(&mut self, _into: &mut Vec<u8>) -> impl Future<Output = io::Result<bool>> {
        std::future::ready(Ok(false))
    }
    /// Takes what the client still sends of that file, if anything, and forgets it.
    fn skip_file(&mut self) -> impl Future<Output = io::Result<()>> {
        std::future::ready(Ok(()))
    }
}
