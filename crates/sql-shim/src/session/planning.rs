//! Parsing a text, and planning a statement: at once where that takes little time, by steps that let others
//! run where it takes more.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use sql::ast::Statement;
use sql::background_drop::Elsewhere;
use sql::errors;
use sql::expr::bind::value_type;
use sql::expr::types::Type;
use sql::failure::Failure;
use sql::lexer::LexicalModes;
use sql::memory::StatementCharge;
use sql::parser::{self, ParsedStatement};
use sql::plan::estimate::Wanted;
use sql::plan::{Plan, Planner};
use sql::result::SqlError;
use sql::value::Value;

use super::Session;
use super::large_text::{BYTES_APART, BYTES_LONG, made_of_text, parse_apart, unless_killed};
use super::resumable::resumable;
use super::watch::{Ended, Watch};

/// How often a statement is planned again with more known about its tables: their statistics first, then
/// ranges of the paths that these suggest.
pub(super) const FETCHES_MAX: usize = 3;

impl Session {
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

    /// Fetches what planning was in want of for its estimates, within the time that the statement may take;
    /// `false` when nothing was found.
    pub(super) async fn fetch_for_plan(
        &mut self,
        wanted: &[Wanted],
        limit: Option<Duration>,
    ) -> Result<bool, Failure> {
        if wanted.is_empty() {
            return Ok(false);
        }
        let watch = Watch::new(&self.state, &self.transaction, limit);
        let database = self.state.database.clone();
        let fetch = async move {
            let mut fetched = false;
            for one in wanted {
                fetched |= one.fetch(&database).await;
            }
            fetched
        };
        watch.unless_ended(pin!(fetch)).await.map_err(|ended| {
            let number = match ended {
                Ended::TimedOut => errors::QUERY_TIMEOUT,
                Ended::Itself | Ended::Killed => errors::QUERY_INTERRUPTED,
            };
            errors::error(number, &[]).into()
        })
    }

    /// [`Session::planned`] within the time that the statement may take; by steps at once where it will be
    /// `long`.
    async fn planned_in<T: Send + 'static>(
        &mut self,
        limit: Option<Duration>,
        long: bool,
        plan: impl Fn(&Planner<'_>) -> Result<T, SqlError> + 'static,
    ) -> Result<Elsewhere<T>, Failure> {
        let begun = self.state.database.environment().now();
        let deadline = limit.map(|limit| begun + limit);
        let types = types_of(&self.current.parameters);
        for round in 0.. {
            if long {
                break;
            }
            let (planned, wanted) = {
                let mut brief = Planner::brief(&self.state);
                brief.parameter_types = &types;
                let planned = plan(&brief);
                if planned.is_err() && brief.is_too_long() {
                    break;
                }
                (planned, brief.take_wanted())
            };
            // Once more with what it was in want of.
            let now = self.state.database.environment().now();
            let left = deadline.map(|deadline| deadline.saturating_sub(now));
            let is_last = planned.is_err() || round >= FETCHES_MAX;
            if is_last || !self.fetch_for_plan(&wanted, left).await? {
                return Ok(Elsewhere::new(planned?, false));
            }
        }
        self.transaction.engine_mut().clear_kill();
        let watch = Watch::new(&self.state, &self.transaction, None);
        let state = self.state.clone();
        self.state.evaluation.set_deadline(deadline);
        let planned = resumable(self.transaction.engine().slice(), parser::STACK_BYTES, move |give_way| {
            let mut planner = Planner::by_steps(&state, give_way);
            planner.parameter_types = &types;
            plan(&planner)
        });
        let planned = watch.over(pin!(planned)).await;
        self.state.evaluation.set_deadline(None);
        // What is made by steps is large, however short its text.
        Ok(Elsewhere::new(unless_killed(planned)??, true))
    }
}

/// What the columns are that these values are in.
fn types_of(values: &[Value<'_>]) -> Vec<Type> {
    let type_of = |value: &Value<'_>| match value {
        Value::Null => Type::text(65_535 / 4),
        value => Type { nullable: true, ..value_type(value) },
    };
    values.iter().map(type_of).collect()
}
