//! Statements of megabytes.
//!
//! Reading a dump's INSERT of 64 MB into a tree takes a second, and so does giving the tree back. Both happen on a thread of their
//! own, so that the connections of this thread do not wait; what needs the session (names, privileges) is done here, row by
//! row, in slices of time like everything else. The tree may be many times as large as the text: `(1),(1),…` is a token for every
//! byte. So the tokens are counted beforehand, and charged like any other buffer while the statement lasts.

use std::pin::pin;

use untorn::engine::TimeSlice;

use super::failure::Failure;
use super::{Session, Watch};
use crate::errors;
use crate::result::SqlError;
use crate::sql::ast::{InsertSource, Statement};
use crate::sql::lexer::{Lexer, LexicalModes, TokenKind};
use crate::sql::parser::{self, ParsedStatement};
use crate::sql::plan::Plan;

/// Texts from this length on are parsed apart.
const BYTES_APART: usize = 256 << 10;
/// Rows from this number on are bound in slices, and discarded apart.
const ROWS_APART: usize = 2048;

/// Bytes that the tree, and the plan made of it, take for a token.
const TOKEN_BYTES: usize = 80;

/// Bytes that reading a text takes, about; 0 for a text that is not large.
pub(super) async fn weight(sql: &[u8], modes: LexicalModes, slice: &TimeSlice) -> Result<usize, Failure> {
    if sql.len() < BYTES_APART {
        return Ok(0);
    }
    let mut lexer = Lexer::new(sql, modes);
    let mut tokens = 0;
    while lexer.next_token().kind != TokenKind::End {
        tokens += 1;
        slice.work(1).await?;
    }
    // The text is copied for the thread that parses, and once more into the literals.
    Ok(tokens * TOKEN_BYTES + 2 * sql.len())
}

/// Parses the first statement of a text.
pub(super) async fn parse(sql: &[u8], modes: LexicalModes) -> Result<ParsedStatement, SqlError> {
    if sql.len() < BYTES_APART {
        return parser::parse(sql, modes);
    }
    let text = sql.to_vec();
    let (answer, parsed) = tokio::sync::oneshot::channel();
    let thread = std::thread::Builder::new().name("parser".to_owned()).stack_size(parser::STACK_BYTES);
    let spawned = thread.spawn(move || {
        // Nobody listens any more when the connection has ended.
        let _ = answer.send(parser::parse(&text, modes));
    });
    if spawned.is_err() {
        return parser::parse(sql, modes);
    }
    parsed.await.unwrap_or_else(|_| Err(errors::error(errors::INTERNAL_ERROR, &[&"the parser stopped"])))
}

/// Gives a plan back.
pub(super) fn discard(plan: Plan) {
    if let Plan::Insert(insert) = &plan
        && insert.rows.len() >= ROWS_APART
    {
        // Where there is no thread to be had the closure, and the plan in it, is dropped here.
        let thread = std::thread::Builder::new().name("discard".to_owned()).stack_size(parser::STACK_BYTES);
        let _ = thread.spawn(move || drop(plan));
    }
}

impl Session {
    /// Plans a statement that came as text.
    pub(super) async fn plan_text(&mut self, statement: Statement) -> Result<Plan, Failure> {
        let Statement::Insert(mut insert) = statement else { return Ok(self.plan(statement, &[])?) };
        let rows = match &mut insert.source {
            InsertSource::Values(rows) if rows.len() >= ROWS_APART => std::mem::take(rows),
            _ => return Ok(self.plan(Statement::Insert(insert), &[])?),
        };
        let named = !insert.columns.is_empty();
        self.transaction.rows().clear_kill();
        let watch = Watch::new(&self.state, &self.transaction, None);
        let planner = self.planner();
        let slice = self.transaction.state().slice();
        let bound = async {
            let mut plan = planner.insert(*insert)?;
            plan.rows.reserve(rows.len());
            for row in rows {
                planner.insert_row(&mut plan, named, &row)?;
                slice.work(1).await?;
            }
            Ok(Plan::Insert(plan))
        };
        watch.over(pin!(bound)).await.0
    }
}
