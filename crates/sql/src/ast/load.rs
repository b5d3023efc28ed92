//! LOAD DATA and SELECT … INTO.

use super::{Assignment, TableName};

/// `LOAD DATA`
#[derive(Clone, Debug, PartialEq)]
pub struct LoadData {
    /// `LOCAL`: the client's file.
    pub local: bool,
    /// The file's name.
    pub file: Vec<u8>,
    /// `REPLACE`.
    pub replace: bool,
    /// `IGNORE`.
    pub ignore: bool,
    /// Into which table.
    pub table: TableName,
    /// `CHARACTER SET`.
    pub charset: Option<String>,
    /// `FIELDS …`, `LINES …`
    pub format: TextFormat,
    /// `IGNORE n LINES`
    pub ignored_lines: u64,
    /// Where the fields of a line go; empty: to all columns.
    pub fields: Vec<LoadedField>,
    /// `SET …`
    pub assignments: Vec<Assignment>,
}

/// Where a field of a line goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoadedField {
    /// To a column.
    Column(String),
    /// To a user variable.
    Variable(String),
}

/// Where the rows of a SELECT go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Destination {
    /// To the client.
    #[default]
    Client,
    /// The only row to user variables.
    Variables(Vec<String>),
    /// To a file of the server.
    File(Box<IntoFile>),
}

impl Destination {
    /// Whether they go to the client.
    pub fn is_client(&self) -> bool {
        *self == Destination::Client
    }
}

/// `INTO OUTFILE`, `INTO DUMPFILE`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IntoFile {
    /// The file's name.
    pub file: Vec<u8>,
    /// How rows are written; `None`: one row, its values as they are.
    pub format: Option<TextFormat>,
}

/// How rows are written in a text file: `FIELDS …`, `LINES …`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextFormat {
    /// Between fields.
    pub field_end: Vec<u8>,
    /// Around fields.
    pub enclosed: Option<u8>,
    /// When they are written, around texts only.
    pub optionally: bool,
    /// Before characters that would mean something else.
    pub escaped: Option<u8>,
    /// Before the first field of a line.
    pub line_start: Vec<u8>,
    /// Behind the last field of a line.
    pub line_end: Vec<u8>,
}

impl Default for TextFormat {
    fn default() -> TextFormat {
        TextFormat {
            field_end: b"\t".to_vec(),
            enclosed: None,
            optionally: false,
            escaped: Some(b'\\'),
            line_start: Vec::new(),
            line_end: b"\n".to_vec(),
        }
    }
}
