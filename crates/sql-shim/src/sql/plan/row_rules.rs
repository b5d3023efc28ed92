//! What a table's definition computes and checks of each row: DEFAULT expressions, generated columns, CHECK
//! constraints.
//!
//! The definition keeps them as text. A plan that writes into the table binds them once, and the executor
//! applies them to rows in storage encoding (`exec/row_rules.rs`). A table without any has no rules at all,
//! and costs its plans nothing.
//!
//! A definition that is made passes [`Planner::check_expressions`] first. So what is bound later cannot fail
//! but for lack of memory, and never waits: it reads columns of the row and nothing else.

use untorn::schema::{ColumnDef, Default, TableDef};

use super::change::ColumnDefault;
use super::source::{Source, SourceKind};
use super::{Condition, Planner};
use crate::errors;
use crate::result::SqlError;
use crate::sql::ast;
use crate::sql::expr::bind::Binder;
use crate::sql::expr::{Expr, session_functions};
use crate::sql::lexer::LexicalModes;
use crate::sql::parser;

/// The rules of a table.
#[derive(Debug)]
pub struct RowRules {
    /// Columns with a DEFAULT expression and generated ones, each behind those that its expression reads.
    pub order: Vec<u16>,
    /// Constraints that are enforced, with their names.
    pub checks: Vec<(String, Condition)>,
    /// Columns that a change of a row must have at hand: what generated columns and constraints read, and the
    /// generated ones themselves.
    pub needed: Vec<u16>,
}

/// The columns that an expression reads.
fn reads(expr: &Expr) -> Vec<u16> {
    let mut found = Vec::new();
    expr.visit(&mut |inner| {
        if let Expr::Column { column, .. } = inner
            && !found.contains(column)
        {
            found.push(*column);
        }
        true
    });
    found
}

/// Columns in an order in which each comes behind those of them that it reads. What refers to itself in a
/// circle stays out.
fn ordered(mut open: Vec<(u16, Vec<u16>)>) -> Vec<u16> {
    let mut order = Vec::with_capacity(open.len());
    while let Some(ready) =
        open.iter().position(|(_, reads)| !open.iter().any(|(other, _)| reads.contains(other)))
    {
        order.push(open.remove(ready).0);
    }
    order
}

impl Planner<'_> {
    /// The defaults of a table's columns, and its rules if it has any.
    pub(super) fn defaults_and_rules(
        &self,
        def: &TableDef,
        sources: &[Source],
    ) -> Result<(Vec<ColumnDefault>, Option<Box<RowRules>>), SqlError> {
        let defaults: Vec<ColumnDefault> =
            def.columns.iter().map(|column| self.default_of(column, sources)).collect::<Result<_, _>>()?;
        let expression = |default: &ColumnDefault| match default {
            ColumnDefault::Expression(expr) | ColumnDefault::Generated(expr) => Some(reads(expr)),
            _ => None,
        };
        let computed: Vec<(u16, Vec<u16>)> = defaults
            .iter()
            .enumerate()
            .filter_map(|(at, default)| Some((at as u16, expression(default)?)))
            .collect();
        if computed.is_empty() && !def.evaluates_rows() {
            return Ok((defaults, None));
        }
        let mut needed = Vec::new();
        let mut need = |columns: &[u16]| {
            for column in columns {
                if !needed.contains(column) {
                    needed.push(*column);
                }
            }
        };
        for (column, reads) in &computed {
            if matches!(defaults[usize::from(*column)], ColumnDefault::Generated(_)) {
                need(&[*column]);
                need(reads);
            }
        }
        let mut checks = Vec::new();
        for check in def.checks.iter().filter(|check| check.enforced) {
            let expr = self.bind_kept(&check.expression, sources)?;
            need(&reads(&expr));
            checks.push((check.name.clone(), Condition::from(expr)));
        }
        Ok((defaults, Some(Box::new(RowRules { order: ordered(computed), checks, needed }))))
    }

    /// An expression that a definition keeps, bound to the table.
    pub(super) fn bind_kept(&self, text: &str, sources: &[Source]) -> Result<Expr, SqlError> {
        self.work(text.len())?;
        let expr = parser::parse_expression(text.as_bytes(), LexicalModes::default())?;
        Ok(Binder::new(self, sources).bind(&expr)?.0)
    }

    /// Whether the expressions of a table that is to be made are such as can be kept.
    ///
    /// # Errors
    /// The first thing that is wrong, as MySQL says it.
    pub fn check_expressions(&self, database: &str, table: &str, def: &TableDef) -> Result<(), SqlError> {
        let sources = [Source::of_definition(database, table, def)];
        let mut computed = Vec::new();
        for (at, column) in def.columns.iter().enumerate() {
            let at = at as u16;
            if let Some(text) = &column.generated {
                computed.push((at, self.check_generated(text, column, at, def, &sources)?));
            } else if let Some(Default::Expression(text)) = &column.default {
                computed.push((at, self.check_default(text, column, at, def, &sources)?));
            }
        }
        if ordered(computed.clone()).len() < computed.len() {
            return Err(errors::error(errors::GENERATED_COLUMN_NON_PRIOR, &[]));
        }
        def.checks.iter().try_for_each(|check| self.check_constraint(check, def, &sources))
    }

    fn bind_new(&self, text: &str, clause: &'static str, sources: &[Source]) -> Result<Expr, SqlError> {
        let expr = parser::parse_expression(text.as_bytes(), LexicalModes::default())?;
        let mut binder = Binder::new(self, sources);
        binder.clause = clause;
        Ok(binder.bind(&expr)?.0)
    }

    fn check_generated(
        &self,
        text: &str,
        column: &ColumnDef,
        at: u16,
        def: &TableDef,
        sources: &[Source],
    ) -> Result<Vec<u16>, SqlError> {
        let expr = self.bind_new(text, "generated column function", sources)?;
        if let Some(function) = function_of_moment(&expr) {
            return Err(errors::error(errors::GENERATED_COLUMN_FUNCTION, &[&column.name, &function]));
        }
        let reads = reads(&expr);
        for read in &reads {
            let other = &def.columns[usize::from(*read)];
            if other.auto_increment {
                return Err(errors::error(errors::GENERATED_COLUMN_REF_AUTO_INC, &[&column.name]));
            }
            if other.generated.is_some() && *read >= at {
                return Err(errors::error(errors::GENERATED_COLUMN_NON_PRIOR, &[]));
            }
        }
        Ok(reads)
    }

    fn check_default(
        &self,
        text: &str,
        column: &ColumnDef,
        at: u16,
        def: &TableDef,
        sources: &[Source],
    ) -> Result<Vec<u16>, SqlError> {
        let expr = self.bind_new(text, "default value expression", sources)?;
        if let Some(function) = waiting_function(&expr) {
            return Err(errors::error(errors::DEFAULT_EXPRESSION_FUNCTION, &[&column.name, &function]));
        }
        let reads = reads(&expr);
        for read in &reads {
            let other = &def.columns[usize::from(*read)];
            if other.auto_increment {
                return Err(errors::error(errors::DEFAULT_EXPRESSION_REF_AUTO_INC, &[&column.name]));
            }
            let computed = other.generated.is_some() || matches!(other.default, Some(Default::Expression(_)));
            if computed && *read >= at {
                return Err(errors::error(errors::DEFAULT_EXPRESSION_NON_PRIOR, &[&column.name]));
            }
        }
        Ok(reads)
    }

    fn check_constraint(
        &self,
        check: &untorn::schema::Check,
        def: &TableDef,
        sources: &[Source],
    ) -> Result<(), SqlError> {
        let name = &check.name;
        let parsed = parser::parse_expression(check.expression.as_bytes(), LexicalModes::default())?;
        let mut unknown = None;
        let expr = match Binder::new(self, sources).bind(&parsed) {
            Ok((expr, _)) => expr,
            Err(error) if error.code == errors::BAD_FIELD => {
                // The first word in quotes is the column.
                unknown = error.message.split('\'').nth(1).map(str::to_owned);
                Expr::Literal(crate::sql::value::Value::Null)
            }
            Err(error) => return Err(error),
        };
        if let Some(column) = unknown {
            return Err(errors::error(errors::CHECK_UNKNOWN_COLUMN, &[name, &column]));
        }
        if !is_truth(&parsed) {
            return Err(errors::error(errors::CHECK_NOT_BOOLEAN, &[name]));
        }
        if let Some(function) = function_of_moment(&expr) {
            return Err(errors::error(errors::CHECK_FUNCTION, &[name, &function]));
        }
        for read in reads(&expr) {
            let other = &def.columns[usize::from(read)];
            if other.auto_increment {
                return Err(errors::error(errors::CHECK_REF_AUTO_INC, &[name]));
            }
            if check.column.as_ref().is_some_and(|own| !own.eq_ignore_ascii_case(&other.name)) {
                return Err(errors::error(errors::CHECK_OTHER_COLUMN, &[name]));
            }
        }
        Ok(())
    }
}

/// Whether an expression is a condition, as far as its outermost operator says.
fn is_truth(expr: &ast::Expr) -> bool {
    match expr {
        ast::Expr::Column { .. }
        | ast::Expr::Text { .. }
        | ast::Expr::Binary(_)
        | ast::Expr::Decimal(_)
        | ast::Expr::Float(_)
        | ast::Expr::Temporal { .. }
        | ast::Expr::Chain(..) => false,
        ast::Expr::Binary2(operator, ..) => !operator.is_arithmetic(),
        _ => true,
    }
}

fn first_call(expr: &Expr, wanted: impl Fn(&'static str, bool) -> bool) -> Option<String> {
    let mut found = None;
    expr.visit(&mut |inner| {
        if let Expr::Call(function, arguments) = inner {
            // Without an argument it is the time of the statement.
            let clock = function.name == "UNIX_TIMESTAMP" && arguments.is_empty();
            if clock || wanted(function.name, function.volatile) {
                found = Some(function.name.to_ascii_lowercase());
            }
        }
        found.is_none()
    });
    found
}

/// A function whose value is not the same whenever and by whomever it is called.
fn function_of_moment(expr: &Expr) -> Option<String> {
    first_call(expr, |name, volatile| volatile || session_functions::is_of_session(name))
}

/// A function that waits, or changes the session.
fn waiting_function(expr: &Expr) -> Option<String> {
    const WAITING: [&str; 5] = ["SLEEP", "GET_LOCK", "RELEASE_LOCK", "BENCHMARK", "LAST_INSERT_ID"];
    let mut found = None;
    expr.visit(&mut |inner| {
        if let Expr::Call(function, _) = inner
            && WAITING.contains(&function.name)
        {
            found = Some(function.name.to_ascii_lowercase());
        }
        found.is_none()
    });
    found
}

impl Source {
    /// A table that is to be made: there is nothing of it but its columns.
    fn of_definition(database: &str, table: &str, def: &TableDef) -> Source {
        let columns = Source::columns_of(def);
        Source::new(database.to_owned(), table.to_owned(), table.to_owned(), columns, SourceKind::Definition)
    }
}
