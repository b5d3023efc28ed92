//! Statements of megabytes: measured, and parsed on a thread apart. The way of every text is in `text.rs`.
//!
//! Reading a dump's INSERT of 64 MB into a tree takes a second, and so does giving the tree back. Both happen
//! on a thread of their own, so that the connections of this thread do not wait; what needs the session
//! (names, privileges) is done here, in slices of time like everything else (`resumable.rs`). The tree may
//! be many times as large as the text: `(1),(1),…` is a token for every byte. So the tokens are counted
//! beforehand, and charged like any other buffer while the statement lasts.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use sql::background_drop::{Elsewhere, discard};
use sql::errors;
use sql::failure::Failure;
use sql::lexer::{Lexer, LexicalModes, TokenKind};
use sql::memory::{StatementCharge, refused};
use sql::parser::{self, ParsedStatement};
use sql::result::SqlError;
use tokio::sync::Semaphore;
use untorn::engine::TimeSlice;

use super::Session;
use super::watch::Ended;
use super::watch::Watch;

/// Texts from this length on are parsed apart.
pub(super) const BYTES_APART: usize = 256 << 10;

/// Texts from this length on are long: the end of their first statement is looked for before it is parsed,
/// they are planned by steps from the beginning, and their trees and plans are dropped elsewhere.
pub(super) const BYTES_LONG: usize = 16 << 10;

/// Bytes that the tree, and the plan made of it, take for a token.
const TOKEN_BYTES: usize = 80;

/// Tokens that are as much work as a row.
const TOKENS_PER_UNIT: usize = 16;

/// Bytes of a text that are copied in one go.
const COPIED_AT_ONCE: usize = 1 << 20;

/// Threads that parse at a time.
static PARSERS: Semaphore = Semaphore::const_new(8);

/// How far the first statement of a text goes, and how much it is.
pub(super) struct Extent {
    /// Where it ends, behind its `;`.
    pub end: usize,
    tokens: usize,
}

impl Extent {
    /// Bytes that reading it takes, about. The text is copied for the thread that parses, and once more into
    /// the literals.
    fn weight(&self) -> usize {
        self.tokens * TOKEN_BYTES + 2 * self.end
    }
}

async fn first_statement(sql: &[u8], modes: LexicalModes, slice: &TimeSlice) -> Result<Extent, Failure> {
    let mut lexer = Lexer::new(sql, modes);
    let mut tokens = 0;
    loop {
        let token = lexer.next_token();
        match token.kind {
            TokenKind::End => return Ok(Extent { end: sql.len(), tokens }),
            TokenKind::Symbol if lexer.slice(token) == b";" => {
                return Ok(Extent { end: token.end as usize, tokens });
            }
            _ => tokens += 1,
        }
        if tokens % TOKENS_PER_UNIT == 0 {
            slice.work(1).await?;
        }
    }
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

/// What is read of a statement that somebody killed meanwhile is not used, though the kill came too late to
/// be seen there: the statement's next part would not hear of it.
pub(super) fn unless_killed<T: Send + 'static>(
    (read, ended): (Result<T, Failure>, Ended),
) -> Result<T, Failure> {
    match (read, ended) {
        (Ok(unused), Ended::Killed) => {
            discard(unused);
            Err(errors::error(errors::QUERY_INTERRUPTED, &[]).into())
        }
        (read, _) => read,
    }
}

/// Parses the first statement of a text on a thread apart, which keeps the charge for as long as it works.
pub(super) async fn parse_apart(
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
        // Who listens has the charge as well. Nobody does when the connection has ended, or the statement was
        // killed.
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

/// What is made of a text of this length. It is dropped elsewhere when the text is long.
pub(super) fn made_of_text<T: Send + 'static>(what: T, bytes: usize) -> Elsewhere<T> {
    Elsewhere::new(what, bytes >= BYTES_LONG)
}

impl Session {
    /// How far the first statement of a text goes; `None` for a short text, which is not worth the look.
    pub(super) async fn extent(&mut self, sql: &[u8]) -> Result<Option<Extent>, Failure> {
        if sql.len() < BYTES_LONG { Ok(None) } else { self.measure(sql).await.map(Some) }
    }

    async fn measure(&mut self, sql: &[u8]) -> Result<Extent, Failure> {
        self.transaction.engine_mut().clear_kill();
        let watch = Watch::new(&self.state, &self.transaction, None);
        let extent = first_statement(sql, self.state.lexical_modes(), self.transaction.engine().slice());
        unless_killed(watch.over(pin!(extent)).await)
    }

    /// Charges what a long statement, its tree and its plan take.
    pub(super) fn charge_text(
        &self,
        extent: Option<&Extent>,
    ) -> Result<Option<Arc<StatementCharge>>, SqlError> {
        let Some(extent) = extent.filter(|extent| extent.end >= BYTES_APART) else { return Ok(None) };
        Ok(Some(Arc::new(self.state.memory.statement(extent.weight())?)))
    }

    /// Charges what a text of any length that stays takes, with its plan.
    pub(super) async fn charge_kept_text(&mut self, sql: &[u8]) -> Result<Arc<StatementCharge>, Failure> {
        let extent = self.measure(sql).await?;
        Ok(Arc::new(self.state.memory.statement(extent.weight())?))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use sql::memory::{Account, ServerMemory};
    use untorn::engine::{RealEnvironment, RealOptions};

    use super::*;

    #[test]
    fn without_a_thread_a_long_text_is_refused() {
        let environment = RealEnvironment::new(RealOptions::default()).unwrap();
        let slice = TimeSlice::new(Arc::new(environment));
        let charge = Arc::new(Account::new(Arc::new(ServerMemory::new(1 << 20))).statement(1000).unwrap());
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
