//! Statements of the protocol, from the client's bytes to the answer, and how long each took.
//!
//! The clock is read when the first statement of a command begins and when each ends: what stands in between
//! (waiting for the client that takes a long answer, too) is the statement's.

use std::io;
use std::time::Instant;

use sql::failure::Failure;
use sql::parser;
use sql::result::ResultSink;
use sql::value::Value;

use super::{PlannedStatement, REPLANS_MAX, Session, keeps_warnings, value_of};
use crate::service::{Param, Prepared};

impl Session {
    /// A statement has been answered; returns when.
    fn statement_ends(&self, begun: Instant) -> Instant {
        let now = Instant::now();
        self.state.connection.counters.statement_times.record_alone(now.saturating_duration_since(begun));
        now
    }

    pub(super) async fn run_query(&mut self, sql: &[u8], out: &mut impl ResultSink) -> io::Result<()> {
        let mut begun = Instant::now();
        self.state.connection.clear_query_kill();
        self.state.begin_statement();
        let sql = parser::trimmed(sql);
        if let Some(result) = self.run_cached(sql, out).await {
            self.statement_ends(begun);
            return match result {
                Ok(()) => Ok(()),
                Err(failure) => self.answer_failure(failure, out),
            };
        }
        let many = self.state.connection.client_flags().multi_statements;
        let mut rest = sql;
        loop {
            let result = self.run_text(rest, many, out).await;
            begun = self.statement_ends(begun);
            match result {
                Ok(consumed) => {
                    rest = rest.get(consumed..).unwrap_or_default();
                    if !many || rest.is_empty() {
                        return Ok(());
                    }
                    // Many short ones are together as long as a long one. A kill meets the next of them.
                    let slice = self.transaction.state().slice().clone();
                    _ = slice.give_way().await;
                    self.state.begin_statement();
                }
                Err(failure) => {
                    self.state.clear_warnings();
                    return self.answer_failure(failure, out);
                }
            }
        }
    }

    pub(super) async fn run_prepared(
        &mut self,
        statement: &mut Prepared<PlannedStatement>,
        params: &[Param<'_>],
        out: &mut impl ResultSink,
    ) -> io::Result<()> {
        let begun = Instant::now();
        let result = self.run_planned(statement, params, out).await;
        self.statement_ends(begun);
        match result {
            Ok(()) => Ok(()),
            Err(failure) => self.answer_failure(failure, out),
        }
    }

    async fn run_planned(
        &mut self,
        statement: &mut Prepared<PlannedStatement>,
        params: &[Param<'_>],
        out: &mut impl ResultSink,
    ) -> Result<(), Failure> {
        self.state.connection.clear_query_kill();
        self.state.begin_statement();
        let values: smallvec::SmallVec<[Value<'_>; 8]> = params.iter().map(value_of).collect();
        for _ in 0..REPLANS_MAX {
            if statement.plan.version != self.plan_version() {
                let (sql, database) = (statement.plan.sql.clone(), statement.plan.database.clone());
                let fresh = self.prepare_in(database, &sql).await?;
                statement.plan = fresh.plan;
                statement.columns = fresh.columns;
            }
            let plan = statement.plan.plan.clone();
            if !keeps_warnings(&plan) {
                self.state.clear_warnings();
            }
            match self.run(&plan, &values, out, false).await {
                Err(Failure::Stale) => statement.plan.version = u64::MAX,
                result => return result,
            }
        }
        Err(Failure::Stale)
    }
}
