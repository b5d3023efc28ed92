//! Plans of LOAD DATA: an INSERT whose rows come from a file.

use super::Planner;
use super::change::InsertPlan;
use crate::ast::{self, InsertSource, LoadedField, TextFormat};
use crate::errors;
use crate::privilege::Privileges;
use crate::result::SqlError;
use crate::value::Value;
use untorn::types::{Charset, Collation};

/// LOAD DATA.
#[derive(Debug)]
pub struct LoadPlan {
    /// Its one row has NULL for the columns that get fields, in the order of their fields, and behind them
    /// what SET says.
    pub insert: InsertPlan,
    /// The file is the client's.
    pub local: bool,
    /// Its name.
    pub file: Vec<u8>,
    /// How lines are written.
    pub format: TextFormat,
    /// Lines before the first row.
    pub ignored_lines: u64,
    /// Where each field of a line goes.
    pub fields: Vec<Field>,
    /// What bytes of the file mean.
    pub encoding: Encoding,
}

/// Where a field goes.
#[derive(Debug)]
pub enum Field {
    /// To the next column.
    Column,
    /// To a user variable.
    Variable(String),
    /// Nowhere: its column is a generated one.
    Nothing,
}

/// What bytes of a file mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// UTF-8.
    Utf8,
    /// What MySQL calls latin1: code page 1252.
    Latin1,
    /// Bytes.
    Binary,
}

/// Longest separator: where one may begin the text is compared with all of it.
const SEPARATOR_BYTES_MAX: usize = 255;

impl Planner<'_> {
    /// Plans LOAD DATA.
    pub fn load(&self, load: &ast::LoadData) -> Result<LoadPlan, SqlError> {
        if !load.local {
            self.state.require_any(Privileges::FILE)?;
        }
        let encoding = self.encoding(load.charset.as_deref())?;
        let mut format = load.format.clone();
        if format.field_end.is_empty() && format.enclosed.is_none() {
            return Err(errors::unsupported("LOAD DATA of fields with fixed widths"));
        }
        let separators = [&format.field_end, &format.line_start, &format.line_end];
        if separators.iter().any(|separator| separator.len() > SEPARATOR_BYTES_MAX) {
            return Err(errors::error(errors::WRONG_FIELD_TERMINATORS, &[]));
        }
        if format.line_end == format.field_end {
            // Lines end with the last field that is wanted, and nothing else.
            format.line_end.clear();
        }
        let delete = if load.replace { Privileges::DELETE } else { Privileges::NONE };
        let said: Vec<String> = load.fields.iter().filter_map(column_of).cloned().collect();
        let source = self.inserted_source(&load.table, Privileges::INSERT | delete, &said)?;
        let mut fields = Vec::with_capacity(load.fields.len());
        let mut columns = Vec::with_capacity(load.fields.len());
        let mut before = Vec::new();
        for field in &load.fields {
            match field {
                LoadedField::Column(name) => {
                    columns.push(name.clone());
                    fields.push(Field::Column);
                }
                LoadedField::Variable(name) => {
                    // So that expressions know what it will be, while they are bound.
                    before.push((name, self.state.user_variable(name)));
                    self.state.set_user_variable(name, text(Vec::new()))?;
                    fields.push(Field::Variable(name.clone()));
                }
            }
        }
        if load.fields.is_empty() {
            let defined = source.engine_table().map_or(&[][..], |table| &table.def.columns);
            for (number, name) in source.shown().zip(source.shown_names()) {
                if defined.get(usize::from(number)).is_some_and(|column| column.generated.is_some()) {
                    fields.push(Field::Nothing);
                    continue;
                }
                columns.push(name.to_owned());
                fields.push(Field::Column);
            }
        }
        let mut row = vec![ast::Expr::Null; columns.len()];
        for assignment in &load.assignments {
            columns.push(assignment.column.clone());
            row.push(assignment.value.clone());
        }
        let insert = ast::Insert {
            table: load.table.clone(),
            columns,
            source: InsertSource::Values(vec![row]),
            // Nobody can tell a client to stop sending: what is wrong with its rows is a warning.
            ignore: load.ignore || load.local && !load.replace,
            replace: load.replace,
            on_duplicate: Vec::new(),
            row_alias: None,
        };
        let insert = self.insert_rows(source, &insert);
        // One that is read twice was the same before both.
        for (name, value) in before.into_iter().rev() {
            self.state.set_user_variable(name, value)?;
        }
        let insert = insert?;
        if !insert.subqueries.is_empty() {
            return Err(errors::unsupported("a subquery in LOAD DATA"));
        }
        let (local, file, ignored_lines) = (load.local, load.file.clone(), load.ignored_lines);
        Ok(LoadPlan { insert, local, file, format, ignored_lines, fields, encoding })
    }

    fn encoding(&self, charset: Option<&str>) -> Result<Encoding, SqlError> {
        let Some(name) = charset else { return Ok(Encoding::Utf8) };
        Ok(match self.charset_collation(name)?.charset() {
            Charset::Binary => Encoding::Binary,
            Charset::Latin1 => Encoding::Latin1,
            _ => Encoding::Utf8,
        })
    }
}

fn column_of(field: &LoadedField) -> Option<&String> {
    match field {
        LoadedField::Column(name) => Some(name),
        LoadedField::Variable(_) => None,
    }
}

/// A text of a file.
pub(crate) fn text(bytes: Vec<u8>) -> Value<'static> {
    Value::Text(bytes.into(), Collation::Utf8mb4GeneralCi)
}
