//! Statements of the protocol, from the client's bytes to the answer.

use std::io;
use std::time::Instant;

use sql::digest::Shape;
use sql::failure::Failure;
use sql::parser;
use sql::result::ResultSink;
use sql::value::Value;

use super::{PlannedStatement, REPLANS_MAX, Session, keeps_warnings, value_of};
use crate::service::{Param, Prepared};
use crate::status::Counter;

impl Session {
    pub(super) async fn run_query(&mut self, sql: &[u8], out: &mut impl ResultSink) -> io::Result<()> {
        let mut begun = Instant::now();
        self.statement_begins();
        self.state.connection.clear_query_kill();
        self.state.begin_statement();
        let sql = parser::trimmed(sql);
        if let Some(result) = self.run_cached(sql, out).await {
            self.statement_ends(begun, sql, result.is_err());
            return match result {
                Ok(()) => Ok(()),
                Err(failure) => self.answer_failure(failure, out),
            };
        }
        let many = self.state.connection.client_flags().multi_statements;
        let mut rest = sql;
        loop {
            let result = self.run_text(rest, many, out).await;
            let consumed = result.as_ref().ok().and_then(|consumed| rest.get(..*consumed));
            begun = self.statement_ends(begun, consumed.unwrap_or(rest), result.is_err());
            self.statement_begins();
            match result {
                Ok(consumed) => {
                    rest = rest.get(consumed..).unwrap_or_default();
                    if !many || rest.is_empty() {
                        return Ok(());
                    }
                    // Many short ones are together as long as a long one. A kill meets the next of them.
                    let slice = self.transaction.engine().slice().clone();
                    _ = slice.give_way().await;
                    self.state.begin_statement();
                    if !parser::is_blank(rest, self.modes()) {
                        self.state.connection.counters.add(Counter::Questions, 1);
                    }
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
        self.statement_begins();
        let result = self.run_planned(statement, params, out).await;
        self.statement_ends(begun, &statement.sql, result.is_err());
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
            let planned = &mut statement.plan;
            if self.lacks_digest(planned.digest.as_ref()) {
                planned.digest = self.digest_of(&planned.sql, Shape::Whole, planned.database.clone());
            }
            self.keep_digest(planned.digest.clone());
            let plan = planned.plan.clone();
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
