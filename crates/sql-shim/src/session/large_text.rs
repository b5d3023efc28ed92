//! Statements of megabytes.
//!
//! Reading a dump's INSERT of 64 MB into a tree takes a second, and so does giving the tree back. Both happen on a thread of their
//! own, so that the connections of this thread do not wait; what needs the session (names, privileges) is done here, in slices
//! of time like everything else ([`resumable`]). The tree may be many times as large as the text: `(1),(1),…` is a token for
//! every byte. So the tokens are counted beforehand, and charged like any other buffer while the statement lasts.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use tokio::sync::Semaphore;
use untorn::engine::TimeSlice;

use super::failure::Failure;
use super::memory::{StatementCharge, refused};
use super::resumable::resumable;
use super::watch::Ended;
use super::{Session, Watch};
use crate::discard::discard;
use crate::errors;
use crate::sql::ast::Statement;
use crate::sql::lexer::{Lexer, LexicalModes, TokenKind};
use crate::sql::parser::{self, ParsedStatement};
use crate::sql::plan::{Plan, Planner};

/// Texts from this length on are parsed apart.
const BYTES_APART: usize = 256 << 10;

/// Texts from this length on are planned by steps: a megabyte takes 20 to 150 ms.
const BYTES_RESUMABLE: usize = 16 << 10;

/// Bytes that the tree, and the plan made of it, take for a token.
const TOKEN_BYTES: usize = 80;

/// Bytes of a text that are copied in one go.
const COPIED_AT_ONCE: usize = 1 << 20;

/// Threads that parse at a time.
static PARSERS: Semaphore = Semaphore::const_new(8);

/// Bytes that reading a text takes, about.
async fn weight(sql: &[u8], modes: LexicalModes, slice: &TimeSlice) -> Result<usize, Failure> {
    let mut lexer = Lexer::new(sql, modes);
    let mut tokens = 0;
    while lexer.next_token().kind != TokenKind::End {
        tokens += 1;
        slice.work(1).await?;
    }
    // The text is copied for the thread that parses, and once more into the literals.
    Ok(tokens * TOKEN_BYTES + 2 * sql.len())
}

/// Awaits what others do, unless the task is to stop: then nobody waits for them any more.
async fn unless_stopped<T>(slice: &TimeSlice, work: impl Future<Output = T>) -> Result<T, Failure> {
    let mut work = pin!(work);
    poll_fn(|context| match work.as_mut().poll(context) {
        Poll::Ready(done) => Poll::Ready(Ok(done)),
        Poll::Pending if slice.is_stopped() => {
            Poll::Ready(Err(errors::error(errors::QUERY_INTERRUPTED, &[]).into()))
        }
        Poll::Pending => Poll::Pending,
    })
    .await
}

/// What is read of a statement that somebody killed meanwhile is not used, though the kill came too late to be seen there:
/// the statement's next part would not hear of it.
fn unless_killed<T>((read, ended): (Result<T, Failure>, Ended)) -> Result<T, Failure> {
    match (read, ended) {
        (Ok(_), Ended::Killed) => Err(errors::error(errors::QUERY_INTERRUPTED, &[]).into()),
        (read, _) => read,
    }
}

/// Parses the first statement of a text on a thread apart, which keeps the charge for as long as it works.
async fn parse_apart(
    sql: &[u8],
    modes: LexicalModes,
    slice: &TimeSlice,
    charge: Arc<StatementCharge>,
    stack_bytes: usize,
) -> Result<ParsedStatement, Failure> {
    let permit = unless_stopped(slice, PARSERS.acquire()).await?;
    let mut text = Vec::with_capacity(sql.len());
    for part in sql.chunks(COPIED_AT_ONCE) {
        text.extend_from_slice(part);
        slice.give_way().await?;
    }
    let (answer, parsed) = tokio::sync::oneshot::channel();
    let thread = std::thread::Builder::new().name("parser".to_owned()).stack_size(stack_bytes);
    let spawned = thread.spawn(move || {
        let parsed = parser::parse(&text, modes);
        // Who listens has the charge as well. Nobody does when the connection has ended, or the statement was killed.
        drop((permit, charge));
        let _ = answer.send(parsed);
    });
    if spawned.is_err() {
        // Read here, it would keep every connection of this thread waiting.
        return Err(refused().into());
    }
    let stopped = |_| errors::error(errors::INTERNAL_ERROR, &[&"the parser stopped"]);
    Ok(unless_stopped(slice, parsed).await?.map_err(stopped)??)
}

/// Gives back the plan of a text of so many bytes.
pub(super) fn discard_plan<P: Send + 'static>(plan: P, bytes: usize) {
    if bytes >= BYTES_APART {
        discard(plan);
    }
}

impl Session {
    /// Charges what a text, its tree and its plan take; `small` ones too.
    pub(super) async fn charge_text(
        &mut self,
        sql: &[u8],
        small: bool,
    ) -> Result<Option<Arc<StatementCharge>>, Failure> {
        let large = sql.len() >= BYTES_APART;
        if !large && !small {
            return Ok(None);
        }
        self.transaction.rows().clear_kill();
        let watch = Watch::new(&self.state, &self.transaction, None);
        let weight = weight(sql, self.modes(), self.transaction.state().slice());
        let bytes = unless_killed(watch.over(pin!(weight)).await)?;
        Ok(Some(Arc::new(self.state.memory.statement(bytes)?)))
    }

    /// Parses the first statement of a text.
    pub(super) async fn parse_text(
        &mut self,
        sql: &[u8],
        modes: LexicalModes,
        charge: Option<&Arc<StatementCharge>>,
    ) -> Result<ParsedStatement, Failure> {
        let Some(charge) = charge.filter(|_| sql.len() >= BYTES_APART) else {
            return Ok(parser::parse(sql, modes)?);
        };
        self.transaction.rows().clear_kill();
        let watch = Watch::new(&self.state, &self.transaction, None);
        let slice = self.transaction.state().slice();
        let parsed = parse_apart(sql, modes, slice, charge.clone(), parser::STACK_BYTES);
        unless_killed(watch.over(pin!(parsed)).await)
    }

    /// Plans a statement that came as text of so many bytes.
    pub(super) async fn plan_text(&mut self, statement: Statement, bytes: usize) -> Result<Plan, Failure> {
        if bytes < BYTES_RESUMABLE {
            return Ok(self.plan(statement, &[])?);
        }
        self.transaction.rows().clear_kill();
        let watch = Watch::new(&self.state, &self.transaction, None);
        let state = self.state.clone();
        let planned = resumable(self.transaction.state().slice(), parser::STACK_BYTES, move |give_way| {
            Planner { give_way: Some(give_way), ..Planner::new(&state) }.plan(statement)
        });
        Ok(unless_killed(watch.over(pin!(planned)).await)??)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use untorn::engine::{RealEnvironment, RealOptions};

    use super::*;
    use crate::session::memory::{Account, ServerMemory};

    #[test]
    fn without_a_thread_a_long_text_is_refused() {
        let environment = RealEnvironment::new(RealOptions::default()).unwrap();
        let slice = TimeSlice::new(Arc::new(environment));
        let charge = Arc::new(Account::new(Arc::new(ServerMemory::default())).statement(1000).unwrap());
        let parse = |stack_bytes| {
            let work = parse_apart(b"SELECT 1", LexicalModes::default(), &slice, charge.clone(), stack_bytes);
            untorn::engine::block_on(work)
        };
        assert!(parse(parser::STACK_BYTES).is_ok());
        // No machine has room for such a stack.
        let refused = parse(1 << 60).err().map(|failure| match failure {
            Failure::Sql(error) => error.code,
            _ => 0,
        });
        assert_eq!(refused, Some(1041));
    }
}
