//! Statements that come as text: through the statement cache, or parsed and planned for this once.

use std::sync::Arc;

use super::cache::{self, Fingerprint};
use super::failure::Failure;
use super::memory::StatementCharge;
use super::{Changed, Session, keeps_warnings, large_text};
use crate::errors;
use crate::result::ResultSink;
use crate::sql::ast::Statement;
use crate::sql::parser;

impl Session {
    /// Runs one statement of text that is not in the cache; returns the bytes it took.
    pub(super) async fn run_text<S: ResultSink>(
        &mut self,
        sql: &[u8],
        many: bool,
        out: &mut S,
    ) -> Result<usize, (Failure, usize)> {
        let charge = self.charge_text(sql, false).await.map_err(|failure| (failure, sql.len()))?;
        self.run_charged_text(sql, many, charge.as_ref(), out).await
    }

    async fn run_charged_text<S: ResultSink>(
        &mut self,
        sql: &[u8],
        many: bool,
        charge: Option<&Arc<StatementCharge>>,
        out: &mut S,
    ) -> Result<usize, (Failure, usize)> {
        let modes = self.modes();
        let parsed = self.parse_text(sql, modes, charge).await.map_err(|failure| (failure, sql.len()))?;
        let consumed = parsed.consumed;
        let rest = sql.get(consumed..).unwrap_or_default();
        let more = !parser::is_blank(rest, modes);
        let fail = |failure: Failure| (failure, sql.len());
        if more && !many {
            return Err(fail(errors::syntax(rest.trim_ascii_start(), 1).into()));
        }
        if parsed.parameters > 0 {
            return Err(fail(errors::syntax(b"?", 1).into()));
        }
        if matches!(parsed.statement, Statement::Empty) {
            // Only a comment: MySQL answers OK to a comment that was executable, 1065 to nothing at all.
            if sql.trim_ascii().is_empty() {
                return Err(fail(errors::error(errors::EMPTY_QUERY, &[]).into()));
            }
            out.ok(&self.completion(&Changed::default(), more));
            return Ok(consumed);
        }
        let mut statement = parsed.statement;
        for attempt in 0..8 {
            let plan = self.plan_text(statement, sql.len()).await.map_err(fail)?;
            if !keeps_warnings(&plan) {
                self.state.clear_warnings();
            }
            let result = self.run(&plan, &[], out, more).await;
            large_text::discard_plan(plan, sql.len());
            match result {
                Err(Failure::Stale) if attempt < 7 => {}
                Err(failure) => return Err(fail(failure)),
                Ok(()) => break,
            }
            statement = self.parse_text(sql, modes, charge).await.map_err(fail)?.statement;
        }
        Ok(consumed)
    }

    /// Runs a text statement through the cache. `None`: it does not belong there.
    pub(super) async fn run_cached<S: ResultSink>(
        &mut self,
        sql: &[u8],
        out: &mut S,
    ) -> Option<Result<(), Failure>> {
        let modes = self.modes();
        let mut fingerprint = self.cache.take_scratch();
        let found = fingerprint.of(sql, modes);
        let result = if found { self.run_fingerprint(&fingerprint, out).await } else { None };
        self.cache.put_scratch(fingerprint);
        result
    }

    async fn run_fingerprint<S: ResultSink>(
        &mut self,
        fingerprint: &Fingerprint,
        out: &mut S,
    ) -> Option<Result<(), Failure>> {
        let version = self.plan_version();
        let database = self.state.current_database();
        for _ in 0..8 {
            let plan = match self.cache.find(&fingerprint.key, version, database.as_deref()) {
                Some(plan) => plan?,
                None => {
                    let plan = cache::plan(fingerprint, self.modes(), &self.state);
                    let plan = self.cache.add(fingerprint.key.clone(), version, database.clone(), plan);
                    plan?
                }
            };
            self.state.clear_warnings();
            let parameters = fingerprint.parameters();
            match self.run(&plan, &parameters, out, false).await {
                Err(Failure::Stale) => self.cache.remove(&fingerprint.key),
                result => return Some(result),
            }
        }
        Some(Err(Failure::Stale))
    }
}
