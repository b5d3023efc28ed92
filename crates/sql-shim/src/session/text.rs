//! Statements that come as text: through the plan cache, or parsed and planned for this once.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use sql::ast::Statement;
use sql::digest::Shape;
use sql::discard::Elsewhere;
use sql::errors;
use sql::failure::Failure;
use sql::lexer::LexicalModes;
use sql::memory::StatementCharge;
use sql::parser::{self, ParsedStatement};
use sql::plan::{Plan, Planner};
use sql::result::{ResultSink, SqlError};

use super::com_counters;
use super::large_text::{BYTES_APART, BYTES_LONG, made_of_text, parse_apart, unless_killed};
use super::plan_cache::{self, Fingerprint};
use super::resumable::resumable;
use super::watch::Watch;
use super::{Changed, REPLANS_MAX, Session, keeps_warnings};

/// What a syntax error quotes may reach into the next statement.
const NEAR_BYTES: usize = 128;

impl Session {
    /// Runs the first statement of a trimmed text that is not in the cache; returns the bytes it took.
    pub(super) async fn run_text<S: ResultSink>(
        &mut self,
        sql: &[u8],
        many: bool,
        out: &mut S,
    ) -> Result<usize, Failure> {
        let extent = self.extent(sql).await?;
        let charge = self.charge_text(extent.as_ref())?;
        let end = extent.map_or(sql.len(), |extent| extent.end);
        self.run_charged_text(sql, end, many, charge.as_ref(), out).await
    }

    /// Runs the statement that ends at `end` or before.
    async fn run_charged_text<S: ResultSink>(
        &mut self,
        sql: &[u8],
        end: usize,
        many: bool,
        charge: Option<&Arc<StatementCharge>>,
        out: &mut S,
    ) -> Result<usize, Failure> {
        let modes = self.modes();
        let text = &sql[..sql.len().min(end + NEAR_BYTES)];
        let parsed = self.parse_text(text, modes, charge).await?;
        let consumed = parsed.consumed;
        let rest = sql.get(consumed..).unwrap_or_default();
        let more = many && !rest.is_empty();
        if !many && !parser::is_blank(rest, modes) {
            return Err(errors::syntax(rest.trim_ascii_start(), 1).into());
        }
        if parsed.parameters > 0 {
            return Err(errors::syntax(b"?", 1).into());
        }
        if matches!(parsed.statement, Statement::Empty) {
            // MySQL answers OK to a comment, 1065 to nothing at all.
            if sql.is_empty() {
                return Err(errors::error(errors::EMPTY_QUERY, &[]).into());
            }
            out.ok(&self.completion(&Changed::default(), more));
            return Ok(consumed);
        }
        let mut statement = parsed.statement;
        self.statement_is_parsed();
        self.count(com_counters::of_statement(&statement));
        for attempt in 0..=REPLANS_MAX {
            let plan = self.plan_text(statement, end).await?;
            if !keeps_warnings(&plan) {
                self.state.clear_warnings();
            }
            match self.run(&plan, &[], out, more).await {
                Err(Failure::Stale) if attempt < REPLANS_MAX => {}
                Err(failure) => return Err(failure),
                Ok(()) => break,
            }
            statement = self.parse_text(text, modes, charge).await?.statement;
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
        let found = fingerprint.of(sql, modes, self.state.settings().sql.plan_modes());
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
        for _ in 0..REPLANS_MAX {
            let plan = match self.cache.find(&fingerprint.key, version, database.as_deref()) {
                Some(plan) => plan?,
                None => {
                    let plan = plan_cache::plan(fingerprint, self.modes(), &self.state);
                    let plan = self.cache.add(fingerprint.key.clone(), version, database.clone(), plan);
                    plan?
                }
            };
            let mut digest = plan.digest;
            if self.lacks_digest(digest.as_ref()) {
                digest = self.digest_of(fingerprint.text(), Shape::Whole, database.clone());
                self.cache.set_digest(&fingerprint.key, digest.clone());
            }
            self.state.clear_warnings();
            self.keep_digest(digest);
            let parameters = fingerprint.parameters(self.state.settings().sql.connection_collation);
            match self.run(&plan.plan, &parameters, out, false).await {
                Err(Failure::Stale) => self.cache.remove(&fingerprint.key),
                result => return Some(result),
            }
        }
        Some(Err(Failure::Stale))
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
        self.transaction.engine_mut().clear_kill();
        let watch = Watch::new(&self.state, &self.transaction, None);
        let slice = self.transaction.engine().slice();
        let parsed = parse_apart(sql, modes, slice, charge.clone(), parser::STACK_BYTES);
        unless_killed(watch.over(pin!(parsed)).await)
    }

    /// Plans a statement that came as text of this length.
    pub(super) async fn plan_text(
        &mut self,
        statement: Statement,
        bytes: usize,
    ) -> Result<Elsewhere<Plan>, Failure> {
        let limit = match &statement {
            Statement::Select(_) => self.time_limit(),
            Statement::Insert(_) | Statement::Update(_) | Statement::Delete(_) | Statement::LoadData(_) => {
                None
            }
            _ => return Ok(made_of_text(Plan::Command(statement), bytes)),
        };
        let (tree, long) = (made_of_text(statement, bytes), bytes >= BYTES_LONG);
        let planned = self.planned_in(limit, long, move |planner| planner.data(&tree)).await?;
        match planned.take() {
            (Some(plan), large) => Ok(Elsewhere::new(plan, large)),
            (None, _) => Err(errors::error(errors::INTERNAL_ERROR, &[&"no plan"]).into()),
        }
    }

    /// What `plan` makes with a planner: at once where that takes little time, by steps where it takes more.
    pub(super) async fn planned<T: Send + 'static>(
        &mut self,
        plan: impl Fn(&Planner<'_>) -> Result<T, SqlError> + 'static,
    ) -> Result<Elsewhere<T>, Failure> {
        self.planned_in(None, false, plan).await
    }

    /// [`Session::planned`] within the time that the statement may take; by steps at once where it will be
    /// `long`.
    async fn planned_in<T: Send + 'static>(
        &mut self,
        limit: Option<Duration>,
        long: bool,
        plan: impl Fn(&Planner<'_>) -> Result<T, SqlError> + 'static,
    ) -> Result<Elsewhere<T>, Failure> {
        if !long {
            let brief = Planner::brief(&self.state);
            match plan(&brief) {
                Err(_) if brief.is_too_long() => {}
                planned => return Ok(Elsewhere::new(planned?, false)),
            }
        }
        self.transaction.engine_mut().clear_kill();
        let watch = Watch::new(&self.state, &self.transaction, None);
        let state = self.state.clone();
        let deadline = limit.map(|limit| state.database.environment().now() + limit);
        self.state.evaluation.set_deadline(deadline);
        let planned = resumable(self.transaction.engine().slice(), parser::STACK_BYTES, move |give_way| {
            plan(&Planner::by_steps(&state, give_way))
        });
        let planned = watch.over(pin!(planned)).await;
        self.state.evaluation.set_deadline(None);
        // What is made by steps is large, however short its text.
        Ok(Elsewhere::new(unless_killed(planned)??, true))
    }
}
