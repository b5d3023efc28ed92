//! LOAD DATA.

use super::super::ast::{Assignment, LoadData, LoadedField, Statement, TextFormat};
use super::super::lexer::TokenKind;
use super::{Parsed, Parser};
use crate::errors;

impl Parser<'_> {
    pub(crate) fn load(&mut self) -> Parsed<Statement> {
        self.expect("LOAD")?;
        if !self.accept("DATA") {
            return if self.is_word("XML") { self.refuse("LOAD XML") } else { Err(self.unexpected()) };
        }
        let _ = self.accept_any(&["LOW_PRIORITY", "CONCURRENT"]);
        let local = self.accept("LOCAL");
        self.expect("INFILE")?;
        let file = self.text()?;
        let how = self.accept_any(&["REPLACE", "IGNORE"]);
        self.expect("INTO")?;
        self.expect("TABLE")?;
        let table = self.table_name()?;
        if self.is_word("PARTITION") {
            return Err(errors::unsupported("PARTITION"));
        }
        let charset = self.file_charset()?;
        let format = self.text_format()?;
        let mut ignored_lines = 0;
        if self.accept("IGNORE") {
            ignored_lines = self.integer()?;
            if self.accept_any(&["LINES", "ROWS"]).is_none() {
                return Err(self.unexpected());
            }
        }
        let mut fields = Vec::new();
        if self.accept_symbol(b"(") && !self.accept_symbol(b")") {
            fields = self.list(Self::loaded_field)?;
            self.expect_symbol(b")")?;
        }
        let assignments: Vec<Assignment> = if self.accept("SET") { self.assignments()? } else { Vec::new() };
        let (replace, ignore) = (how == Some("REPLACE"), how == Some("IGNORE"));
        Ok(Statement::LoadData(Box::new(LoadData {
            local,
            file,
            replace,
            ignore,
            table,
            charset,
            format,
            ignored_lines,
            fields,
            assignments,
        })))
    }

    /// `CHARACTER SET …` of a file.
    pub(super) fn file_charset(&mut self) -> Parsed<Option<String>> {
        if self.accept("CHARSET") || self.accept_all(&["CHARACTER", "SET"]) {
            return Ok(Some(self.name_or_text()?));
        }
        Ok(None)
    }

    /// `FIELDS …`, `LINES …`
    pub(super) fn text_format(&mut self) -> Parsed<TextFormat> {
        let mut format = TextFormat::default();
        if self.modes().no_backslash_escapes {
            format.escaped = None;
        }
        if self.accept_any(&["FIELDS", "COLUMNS"]).is_some() {
            let mut any = false;
            loop {
                if self.accept("TERMINATED") {
                    self.expect("BY")?;
                    format.field_end = self.text()?;
                } else if self.is_any_word(&["OPTIONALLY", "ENCLOSED"]) {
                    format.optionally = self.accept("OPTIONALLY");
                    self.expect("ENCLOSED")?;
                    self.expect("BY")?;
                    format.enclosed = self.separator()?;
                } else if self.accept("ESCAPED") {
                    self.expect("BY")?;
                    format.escaped = self.separator()?;
                } else if any {
                    break;
                } else {
                    return Err(self.unexpected());
                }
                any = true;
            }
        }
        if self.accept("LINES") {
            let mut any = false;
            loop {
                if self.accept("STARTING") {
                    self.expect("BY")?;
                    format.line_start = self.text()?;
                } else if self.accept("TERMINATED") {
                    self.expect("BY")?;
                    format.line_end = self.text()?;
                } else if any {
                    break;
                } else {
                    return Err(self.unexpected());
                }
                any = true;
            }
        }
        Ok(format)
    }

    /// One byte, or none.
    fn separator(&mut self) -> Parsed<Option<u8>> {
        match self.text()?.as_slice() {
            [] => Ok(None),
            [byte] => Ok(Some(*byte)),
            _ => Err(errors::error(errors::WRONG_FIELD_TERMINATORS, &[])),
        }
    }

    fn loaded_field(&mut self) -> Parsed<LoadedField> {
        if self.current.kind == TokenKind::UserVariable {
            return Ok(LoadedField::Variable(self.user_variable_operand()?));
        }
        Ok(LoadedField::Column(self.name()?))
    }
}
