//! Executing plans.

pub mod change;
pub mod cursor;
pub mod insert;
pub mod join;
pub mod keys;
pub mod output;
pub mod select;
pub mod sort;

use std::future::Future;
use std::io;
use std::pin::Pin;

use untorn::engine::{Isolation, ReadMode, WaitPolicy};

use crate::result::ResultSink;
use crate::session::failure::Failure;
use crate::session::state::SessionState;
use crate::sql::ast;
use crate::sql::expr::{Context, SubqueryResult};
use crate::sql::plan::SelectPlan;
use crate::sql::value::Value;

/// Executes one statement.
pub struct Executor<'e> {
    /// The session.
    pub state: &'e SessionState,
    /// Its transaction.
    pub transaction: &'e mut untorn::Transaction,
    /// The statement's parameters.
    pub parameters: &'e [Value<'e>],
}

/// Where rows of a SELECT go.
pub enum Target<'s, S> {
    /// To the client.
    Sink(&'s mut S),
    /// Into memory.
    Rows(Vec<Vec<Value<'static>>>),
}

impl<S: ResultSink> Target<'_, S> {
    /// Lets the client take what it has been given.
    pub async fn flush(&mut self) -> io::Result<()> {
        match self {
            Target::Sink(sink) => sink.flush_if_full().await,
            Target::Rows(_) => Ok(()),
        }
    }
}

/// A sink for executions that answer nobody.
pub struct NoSink;

impl ResultSink for NoSink {
    fn columns(&mut self, _: &std::sync::Arc<crate::result::ResultColumns>) {}
    fn row_begin(&mut self) {}
    fn null(&mut self) {}
    fn int(&mut self, _: i64) {}
    fn uint(&mut self, _: u64) {}
    fn float(&mut self, _: f32) {}
    fn double(&mut self, _: f64) {}
    fn bytes(&mut self, _: &[u8]) {}
    fn date(&mut self, _: crate::result::Date) {}
    fn datetime(&mut self, _: crate::result::DateTime, _: u8) {}
    fn time(&mut self, _: crate::result::Time, _: u8) {}
    fn row_end(&mut self) {}
    fn rows_end(&mut self, _: &crate::result::Completion<'_>) {}
    fn ok(&mut self, _: &crate::result::Completion<'_>) {}
    fn error(&mut self, _: &crate::result::SqlError) {}
    async fn flush_if_full(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Rows in memory.
pub type Rows = Vec<Vec<Value<'static>>>;

impl<'e> Executor<'e> {
    /// The context of expressions without rows.
    pub fn context<'c>(&'c self, subqueries: &'c [SubqueryResult]) -> Context<'c> {
        Context { subqueries, ..Context::constant(self.state, self.parameters) }
    }

    /// How a SELECT with this locking clause reads.
    pub fn read_mode(&self, locking: Option<ast::Locking>) -> ReadMode {
        match locking {
            Some(ast::Locking { exclusive, wait }) => ReadMode::Locking {
                exclusive,
                wait: match wait {
                    ast::LockWait::Wait => WaitPolicy::Wait,
                    ast::LockWait::NoWait => WaitPolicy::NoWait,
                    ast::LockWait::SkipLocked => WaitPolicy::SkipLocked,
                },
            },
            None => {
                let state = self.transaction.state();
                // SERIALIZABLE: a transaction of more than this statement locks what it reads.
                if state.isolation() == Isolation::Serializable && self.transaction.is_active() {
                    ReadMode::Locking { exclusive: false, wait: WaitPolicy::Wait }
                } else {
                    ReadMode::Consistent
                }
            }
        }
    }

    /// Executes a query into memory.
    pub fn rows<'a>(
        &'a mut self,
        plan: &'a SelectPlan,
    ) -> Pin<Box<dyn Future<Output = Result<Rows, Failure>> + 'a>> {
        Box::pin(async move {
            let mut target: Target<'_, NoSink> = Target::Rows(Vec::new());
            self.select(plan, &mut target).await?;
            match target {
                Target::Rows(rows) => Ok(rows),
                Target::Sink(_) => Ok(Vec::new()),
            }
        })
    }

    /// Executes the subqueries of a statement.
    pub async fn subqueries(&mut self, plans: &[SelectPlan]) -> Result<Vec<SubqueryResult>, Failure> {
        let mut results = Vec::with_capacity(plans.len());
        for plan in plans {
            let rows = self.rows(plan).await?;
            let values = rows.into_iter().filter_map(|row| row.into_iter().next()).collect();
            results.push(SubqueryResult { values });
        }
        Ok(results)
    }
}
