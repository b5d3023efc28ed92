//! Prepared statements: those of the protocol (COM_STMT_PREPARE) and those of SQL (PREPARE).
//!
//! One of the protocol keeps its plan. Before each run the plan's version is compared with the session's
//! ([`Session::plan_version`]): when a definition, a grant, a temporary table, or a setting that plans depend
//! on has changed since, the text is planned again (`planning.rs`), and as often as its tables change before
//! it runs, up to `REPLANS_MAX` times. One of PREPARE keeps its text only and is planned at each EXECUTE. How
//! many there may be is counted in [`crate::server::prepared_statements`].

use std::borrow::Cow;
use std::io;
use std::sync::Arc;
use std::time::Instant;

use sql::ast::{self, Statement};
use sql::background_drop::Elsewhere;
use sql::digest::Shape;
use sql::errors;
use sql::expr::types::Type;
use sql::failure::Failure;
use sql::lexer::LexicalModes;
use sql::memory::StatementCharge;
use sql::parameters::Typed;
use sql::parser;
use sql::plan::Plan;
use sql::result::{self, ResultColumns, ResultSink, SqlError, kind};
use sql::value::{Collation, Value, decimal};
use untorn::types::{self, Charset};

use super::commands::done;
use super::{Changed, Outcome, REPLANS_MAX, Session, com_counters};
use crate::server::prepared_statements::CountedStatement;
use crate::session_interface::{Param, Prepared};
use crate::statement_stats::digests::DigestRow;
use crate::status::Counter;

/// A planned statement with what it was planned for.
pub struct PlannedStatement {
    plan: Arc<Elsewhere<Plan>>,
    version: u64,
    /// What the session's settings had a say in, when it was planned.
    plan_modes: u64,
    sql: Arc<[u8]>,
    prepared_in: PreparedIn,
    /// The parameters that have the type that is bound, and the types of all that it was planned with.
    typed: Vec<Typed>,
    types: Vec<Option<Type>>,
    /// Where its runs are counted.
    digest: Option<Arc<DigestRow>>,
    /// Charged until the client closes it.
    _charge: Arc<StatementCharge>,
}

impl PlannedStatement {
    /// Takes the types of the values of parameters that have them: whether they are others than those it was
    /// planned with, so that it must be planned again.
    fn take_types(&mut self, values: &[Value<'_>]) -> bool {
        let mut others = false;
        for typed in &self.typed {
            let index = typed.index();
            let Some(value) = values.get(index).filter(|value| !value.is_null()) else { continue };
            let ty = typed.type_of(value);
            let shape = |ty: Option<Type>| ty.map(|ty| (ty.kind, ty.unsigned, ty.decimals));
            if shape(self.types.get(index).copied().flatten()) != shape(ty) {
                self.types.resize(values.len(), None);
                self.types[index] = ty;
                others = true;
            }
        }
        if others {
            self.version = u64::MAX;
        }
        others
    }
}

/// What the session had when a statement was prepared. It stays the statement's: its text is parsed again
/// when anybody changes a definition, and means the same then.
#[derive(Clone)]
pub(super) struct PreparedIn {
    /// The current database.
    database: Option<Arc<str>>,
    modes: LexicalModes,
    /// ONLY_FULL_GROUP_BY.
    held_to_groups: bool,
}

/// A statement of PREPARE.
pub(super) struct NamedStatement {
    text: Vec<u8>,
    prepared_in: PreparedIn,
    /// It counts like one of the protocol's.
    _counted: CountedStatement,
}

impl Session {
    pub(super) async fn run_prepared(
        &mut self,
        statement: &mut Prepared<PlannedStatement>,
        params: &[Param<'_>],
        out: &mut impl ResultSink,
    ) -> io::Result<()> {
        let begun = Instant::now();
        self.begin_stats();
        out.charset(self.state.settings().results_charset);
        let result = self.run_planned(statement, params, out).await;
        self.end_stats(begun, &statement.sql, result.is_err());
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
        self.state.begin_statement();
        self.admit_plan(&statement.plan.plan)?;
        let (collation, charset) = {
            let settings = self.state.settings();
            (settings.sql.connection_collation, settings.sql.client_charset)
        };
        let values: smallvec::SmallVec<[Value<'_>; 4]> =
            params.iter().map(|param| value_of(param, collation, charset)).collect();
        statement.plan.take_types(&values);
        for _ in 0..REPLANS_MAX {
            let (version, plan_modes) = (self.plan_version(), self.state.settings().sql.plan_modes());
            if (statement.plan.version, statement.plan.plan_modes) != (version, plan_modes) {
                // An error of this is the statement's own: nothing of the one before is beside it.
                self.state.clear_warnings();
                let (sql, prepared_in) = (statement.plan.sql.clone(), statement.plan.prepared_in.clone());
                let types = std::mem::take(&mut statement.plan.types);
                let fresh = self.prepare_for(prepared_in, &sql, types.clone()).await?;
                debug_assert_eq!(fresh.params.len(), statement.params.len());
                statement.plan = PlannedStatement { types, ..fresh.plan };
                statement.columns = fresh.columns;
            }
            let planned = &mut statement.plan;
            if self.lacks_digest(planned.digest.as_ref()) {
                planned.digest =
                    self.digest_of(&planned.sql, Shape::Whole, planned.prepared_in.database.clone());
            }
            self.keep_digest(planned.digest.clone());
            let plan = planned.plan.clone();
            let elsewhere = self.enter(&statement.plan.prepared_in);
            self.state.sent_parameters.set(true);
            let ran = self.run(&plan, &values, out, false).await;
            self.leave(elsewhere);
            match ran {
                Err(Failure::Stale) => statement.plan.version = u64::MAX,
                result => return result,
            }
        }
        Err(Failure::Stale)
    }

    /// [`Session::prepare_in`] for parameters of these types.
    async fn prepare_for(
        &mut self,
        prepared_in: PreparedIn,
        sql: &[u8],
        types: Vec<Option<Type>>,
    ) -> Result<Prepared<PlannedStatement>, Failure> {
        self.state.parameters.bind(types);
        let prepared = self.prepare_in(prepared_in, sql).await;
        self.state.parameters.bind(Vec::new());
        prepared
    }

    /// Prepares a text as it was when the session had this.
    async fn prepare_in(
        &mut self,
        prepared_in: PreparedIn,
        sql: &[u8],
    ) -> Result<Prepared<PlannedStatement>, Failure> {
        let elsewhere = self.enter(&prepared_in);
        self.state.held_to_groups.set(Some(prepared_in.held_to_groups));
        let prepared = self.prepare_with(sql, prepared_in.modes).await;
        self.state.held_to_groups.set(None);
        self.leave(elsewhere);
        prepared
    }

    pub(super) async fn prepare_text(&mut self, sql: &[u8]) -> Result<Prepared<PlannedStatement>, Failure> {
        let modes = self.state.lexical_modes();
        self.prepare_with(sql, modes).await
    }

    async fn prepare_with(
        &mut self,
        sql: &[u8],
        modes: LexicalModes,
    ) -> Result<Prepared<PlannedStatement>, Failure> {
        let sql = parser::trimmed(sql);
        let charge = self.charge_kept_text(sql).await?;
        let parsed = self.parse_text(sql, modes, Some(&charge)).await?;
        if !parser::is_blank(sql.get(parsed.consumed..).unwrap_or_default(), modes) {
            return Err(errors::syntax(sql.get(parsed.consumed..).unwrap_or_default(), 1).into());
        }
        // Some would run each other, and themselves, without end.
        if matches!(
            parsed.statement,
            Statement::Prepare { .. }
                | Statement::Execute { .. }
                | Statement::Deallocate(_)
                | Statement::Handler(_)
                | Statement::LoadData(_)
                | Statement::Xa(_)
        ) {
            return Err(errors::error(errors::UNSUPPORTED_PS, &[]).into());
        }
        let (version, plan_modes) = (self.plan_version(), self.state.settings().sql.plan_modes());
        self.state.parameters.watch(parsed.parameters);
        let planned = self.plan_text(parsed.statement, sql.len()).await;
        let wanted = self.state.parameters.take();
        let plan = planned?;
        if let Plan::Select(select) = &*plan {
            select.check_texts_of_days(&self.state)?;
        }
        let columns = match &*plan {
            Plan::Select(select) if select.into.is_client() => select.columns.clone(),
            _ => ResultColumns::new(Vec::new()),
        };
        let any = Type { kind: kind::VAR_STRING, ..Type::text(0) };
        let params = ResultColumns::new(wanted.iter().map(|ty| ty.unwrap_or(any).meta("?")).collect());
        let sql: Arc<[u8]> = sql.into();
        Ok(Prepared {
            sql: sql.clone(),
            params,
            columns,
            plan: PlannedStatement {
                typed: self.state.parameters.typed(&plan),
                types: Vec::new(),
                plan: Arc::new(plan),
                version,
                plan_modes,
                sql,
                prepared_in: PreparedIn {
                    database: self.state.current_database(),
                    modes,
                    held_to_groups: self.state.is_held_to_groups(),
                },
                digest: None,
                _charge: charge,
            },
        })
    }

    pub(super) async fn prepare_named(&mut self, name: &str, source: &ast::Expr) -> Result<Outcome, Failure> {
        self.state.connection.counters.add(Counter::ComStmtPrepare, 1);
        let text = self.constant(source)?.to_text().into_owned();
        // One of the same name goes, whether or not the new one can be prepared, as in MySQL.
        let name = name.to_ascii_lowercase();
        if let Some(old) = self.named_statements.remove(&name) {
            self.state.memory.keep(name.len() + old.text.len(), 0)?;
        }
        let prepared_in = self.prepare_text(&text).await?.plan.prepared_in;
        let _counted = CountedStatement::new(&self.state.server)?;
        self.state.memory.keep(0, name.len() + text.len())?;
        self.named_statements.insert(name, NamedStatement { text, prepared_in, _counted });
        self.state_is_changed();
        Ok(Outcome::Done(Changed { info: "Statement prepared".to_owned(), ..Changed::default() }))
    }

    pub(super) async fn execute_named<S: ResultSink>(
        &mut self,
        name: &str,
        using: &[String],
        out: &mut S,
        more: bool,
    ) -> Result<Outcome, Failure> {
        let named = self.named_statements.get(&name.to_ascii_lowercase());
        let Some((text, prepared_in)) = named.map(|named| (named.text.clone(), named.prepared_in.clone()))
        else {
            return Err(errors::error(errors::UNKNOWN_STMT_HANDLER, &[&name, &"EXECUTE"]).into());
        };
        self.state.connection.counters.add(Counter::ComStmtExecute, 1);
        self.state.sent_parameters.set(true);
        let mut prepared = self.prepare_in(prepared_in.clone(), &text).await?;
        if prepared.params.len() != using.len() {
            return Err(errors::error(errors::WRONG_ARGUMENTS, &[&"EXECUTE"]).into());
        }
        // A parameter is a text of the connection, whatever collation its variable has.
        let rule = self.state.settings().sql.connection_collation;
        let of_connection = |value| match value {
            Value::Text(text, of) if of != Collation::Binary => Value::Text(text, rule),
            value => value,
        };
        let values: Vec<Value<'static>> =
            using.iter().map(|name| of_connection(self.state.user_variable(name))).collect();
        self.state.parameters.limits().into_iter().try_for_each(|index| check_limit(&values, index))?;
        if prepared.plan.take_types(&values) {
            prepared = self.prepare_for(prepared_in, &text, prepared.plan.types).await?;
        }
        let plan = prepared.plan.plan.clone();
        self.admit_within(&plan)?;
        self.count_inside(com_counters::of_plan(&plan));
        let elsewhere = self.enter(&prepared.plan.prepared_in);
        let ran = Box::pin(self.run_inside(&plan, &values, out, more)).await;
        self.leave(elsewhere);
        ran?;
        Ok(Outcome::Answered)
    }

    /// A statement runs in the database that was the current one when it was prepared, in none if that is
    /// gone. Returns the current one, if that is another.
    fn enter(&mut self, prepared_in: &PreparedIn) -> Option<Option<Arc<str>>> {
        let current = self.state.current_database();
        if current == prepared_in.database {
            return None;
        }
        let there = prepared_in.database.as_deref().filter(|name| self.is_database(name));
        self.state.set_current_database(there);
        Some(current)
    }

    /// Back to the database that was the current one. If it has been dropped meanwhile there is none, and a
    /// note says so.
    fn leave(&mut self, elsewhere: Option<Option<Arc<str>>>) {
        let Some(current) = elsewhere else { return };
        let current = current.as_deref();
        let there = current.filter(|name| self.is_database(name));
        self.state.set_current_database(there);
        if let Some(gone) = current.filter(|_| there.is_none()) {
            self.state.note(errors::error(errors::BAD_DB, &[&gone]));
            self.schema_is_changed();
        }
    }

    pub(super) fn deallocate(&mut self, name: &str) -> Result<Outcome, Failure> {
        let Some(old) = self.named_statements.remove(&name.to_ascii_lowercase()) else {
            return Err(errors::error(errors::UNKNOWN_STMT_HANDLER, &[&name, &"DEALLOCATE PREPARE"]).into());
        };
        self.state.connection.counters.add(Counter::ComStmtClose, 1);
        self.state.memory.keep(name.len() + old.text.len(), 0)?;
        self.state_is_changed();
        Ok(done())
    }
}

/// A parameter of the protocol as a value, of a client with this character set.
fn value_of<'p>(param: &Param<'p>, collation: Collation, charset: Charset) -> Value<'p> {
    let date = |date: result::Date| types::Date { year: date.year, month: date.month, day: date.day };
    match *param {
        Param::Null => Value::Null,
        Param::Int(v) => Value::Int(v),
        Param::UInt(v) => Value::UInt(v),
        Param::Float(v) => Value::Float(v),
        Param::Double(v) => Value::Double(v),
        Param::Decimal(text) => {
            std::str::from_utf8(text).ok().and_then(decimal::parse).map_or(Value::Null, Value::Decimal)
        }
        Param::Bytes { value, binary } => {
            if binary {
                return Value::Text(Cow::Borrowed(value), Collation::Binary);
            }
            Value::Text(charset.to_utf8(value), collation)
        }
        Param::Date(v) => Value::Date(date(v)),
        Param::DateTime(v) => Value::DateTime(
            types::DateTime {
                date: types::Date { year: v.year, month: v.month, day: v.day },
                hour: v.hour,
                minute: v.minute,
                second: v.second,
                micros: v.microsecond,
            },
            if v.microsecond > 0 { 6 } else { 0 },
        ),
        Param::Time(v) => Value::Time(
            types::Time {
                negative: v.negative,
                hours: v.hours.min(838) as u16,
                minutes: v.minutes,
                seconds: v.seconds,
                micros: v.microseconds,
            },
            if v.microseconds > 0 { 6 } else { 0 },
        ),
    }
}

/// A variable that EXECUTE has for a LIMIT is an integer.
///
/// # Errors
/// 1210, and 1690 for a negative one.
fn check_limit(values: &[Value<'_>], index: u16) -> Result<(), SqlError> {
    match values.get(usize::from(index)) {
        None | Some(Value::Null | Value::UInt(_) | Value::Int(0..)) => Ok(()),
        Some(Value::Int(_)) => {
            Err(errors::error(errors::DATA_OUT_OF_RANGE, &[&"unsigned integer", &"EXECUTE"]))
        }
        Some(_) => Err(errors::error(errors::WRONG_ARGUMENTS, &[&"EXECUTE"])),
    }
}
