//! INTO: where the rows of a statement go.
//!
//! It can stand in several places of a SELECT and belongs to the statement, not to the SELECT: it is said
//! once, in no query inside another, and in no part of a UNION but the last. Ignoring an INTO anywhere
//! else would send the client rows that were meant for a file.

use super::super::ast::{CommonTable, Destination, IntoFile, Query, Statement};
use super::{Parsed, Parser};
use crate::errors;

/// What is known of the INTO of the statement at work.
#[derive(Default)]
pub(super) struct Into {
    /// The query at work is the statement, in parentheses or not.
    allowed: bool,
    found: Option<Destination>,
}

impl Parser<'_> {
    /// A query that is a statement.
    pub(super) fn select_statement(&mut self) -> Parsed<Statement> {
        self.select_with(Vec::new())
    }

    /// The same behind a WITH.
    pub(super) fn select_with(&mut self, with: Vec<CommonTable>) -> Parsed<Statement> {
        self.into.allowed = true;
        let mut query = self.query_behind(with)?;
        self.into.allowed = false;
        query.into = self.into.found.take().unwrap_or_default();
        Ok(Statement::Select(Box::new(query)))
    }

    /// A query inside a statement.
    pub(crate) fn query(&mut self) -> Parsed<Query> {
        let allowed = std::mem::take(&mut self.into.allowed);
        let query = self.query_expression()?;
        self.into.allowed = allowed;
        Ok(query)
    }

    /// INTO, if it stands here.
    pub(super) fn accept_into(&mut self) -> Parsed<()> {
        if !self.accept("INTO") {
            return Ok(());
        }
        if !self.into.allowed {
            return Err(errors::error(errors::MISPLACED_INTO, &[]));
        }
        let destination = self.destination()?;
        match self.into.found.replace(destination) {
            None => Ok(()),
            Some(_) => Err(errors::error(errors::MULTIPLE_INTO, &[])),
        }
    }

    /// Behind UNION and its like: INTO belongs behind the last part.
    pub(super) fn no_into_before(&mut self) -> Parsed<()> {
        match self.into.allowed && self.into.found.is_some() {
            true => Err(errors::error(errors::MISPLACED_INTO, &[])),
            false => Ok(()),
        }
    }

    fn destination(&mut self) -> Parsed<Destination> {
        if self.accept("DUMPFILE") {
            return Ok(Destination::File(Box::new(IntoFile { file: self.text()?, format: None })));
        }
        if self.accept("OUTFILE") {
            let file = self.text()?;
            if let Some(name) = self.file_charset()?
                && !matches!(name.to_ascii_lowercase().as_str(), "utf8mb4" | "binary")
            {
                return Err(errors::unsupported("INTO OUTFILE in this character set"));
            }
            let mut format = self.text_format()?;
            if format.field_end.is_empty() && format.enclosed.is_none() {
                return Err(errors::unsupported("INTO OUTFILE of fields with fixed widths"));
            }
            if format.line_end.is_empty() {
                // As in MySQL.
                format.line_end.clone_from(&format.field_end);
            }
            return Ok(Destination::File(Box::new(IntoFile { file, format: Some(format) })));
        }
        self.list(Self::user_variable_operand).map(Destination::Variables)
    }
}
