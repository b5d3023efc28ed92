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
use crate::expr::bind::{Binder, Bound};
use crate::expr::functions::Function;
use crate::expr::{Expr, session_functions};
use crate::lexer::LexicalModes;
use crate::parser;
use crate::result::SqlError;

/// The rules of a table.
#[derive(Debug)]
pub struct RowRules {
    /// Columns with a DEFAULT expression and generated ones, each behind those that its expression reads. An
    /// UPDATE has only the generated ones that read what it assigns: the others stay as they are, whatever
    /// they would be now, in another time zone or SQL mode.
    pub order: Vec<u16>,
    /// Constraints that are enforced, with their names. An UPDATE has only those that read what it changes.
    pub checks: Vec<(String, Condition)>,
    /// Columns that a change of a row must have at hand: what generated columns and constraints read, and the
    /// generated ones themselves.
    pub needed: Vec<u16>,
    /// NULL for a column that may not be NULL is an error in every SQL mode: the statement inserts one row.
    pub refuses_null: bool,
    /// CHECK OPTION of the view that is written through.
    pub view: Option<ViewCheck>,
}

/// What a row that is written through a view must be like.
#[derive(Debug)]
pub struct ViewCheck {
    /// The view's database.
    pub database: String,
    /// Its name.
    pub name: String,
    /// What must be true, and not unknown.
    pub conditions: Vec<Condition>,
}

impl ViewCheck {
    fn of(sources: &[Source]) -> Option<ViewCheck> {
        let source = sources.first()?;
        let conditions =
            source.mask.as_ref().map(|mask| mask.check.clone()).filter(|check| !check.is_empty())?;
        Some(ViewCheck { database: source.database.clone(), name: source.table.clone(), conditions })
    }
}

/// The columns that an expression reads.
pub(super) fn reads(expr: &Expr) -> Vec<u16> {
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
    /// The defaults of a table's columns, and its rules if it has any. `assigned` are the columns that UPDATE
    /// sets by itself.
    pub(super) fn defaults_and_rules(
        &self,
        def: &TableDef,
        sources: &[Source],
        assigned: Option<&[u16]>,
    ) -> Result<(Vec<ColumnDefault>, Option<Box<RowRules>>), SqlError> {
        let defaults: Vec<ColumnDefault> =
            def.columns.iter().map(|column| self.default_of(column, sources)).collect::<Result<_, _>>()?;
        let expression = |default: &ColumnDefault| match default {
            ColumnDefault::Expression(expr) | ColumnDefault::Generated(expr) => Some(reads(expr)),
            _ => None,
        };
        let generated = |column: u16| matches!(defaults[usize::from(column)], ColumnDefault::Generated(_));
        let mut computed: Vec<(u16, Vec<u16>)> = defaults
            .iter()
            .enumerate()
            .filter_map(|(at, default)| Some((at as u16, expression(default)?)))
            .collect();
        let view = ViewCheck::of(sources);
        if computed.is_empty() && !def.evaluates_rows() && view.is_none() {
            return Ok((defaults, None));
        }
        let order = ordered(computed.clone());
        computed.sort_by_key(|(column, _)| order.iter().position(|ordered| ordered == column));
        let mut changed = assigned.map(<[u16]>::to_vec);
        if let Some(changed) = &mut changed {
            computed.retain(|(column, reads)| {
                let recomputed = generated(*column) && reads.iter().any(|read| changed.contains(read));
                changed.extend(recomputed.then_some(*column));
                recomputed
            });
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
            if generated(*column) {
                need(&[*column]);
                need(reads);
            }
        }
        let mut checks = Vec::new();
        for check in def.checks.iter().filter(|check| check.enforced) {
            let expr = self.bind_kept(&check.expression, sources)?;
            let reads = reads(&expr);
            if changed.as_ref().is_none_or(|changed| reads.iter().any(|read| changed.contains(read))) {
                need(&reads);
                checks.push((check.name.clone(), Condition::from(expr)));
            }
        }
        view.iter().flat_map(|view| &view.conditions).for_each(|condition| need(&reads(condition)));
        let order: Vec<u16> = computed.into_iter().map(|(column, _)| column).collect();
        let rules = RowRules { order, checks, needed, refuses_null: false, view };
        let applies =
            assigned.is_none() || !rules.order.is_empty() || !rules.checks.is_empty() || rules.view.is_some();
        Ok((defaults, applies.then(|| Box::new(rules))))
    }

    /// An expression that a definition keeps, bound to the table.
    pub(super) fn bind_kept(&self, text: &str, sources: &[Source]) -> Result<Expr, SqlError> {
        Ok(self.bind_kept_typed(text, sources)?.0)
    }

    /// The same, with its type.
    pub(super) fn bind_kept_typed(&self, text: &str, sources: &[Source]) -> Result<Bound, SqlError> {
        self.work(text.len())?;
        if sources.iter().all(|source| source.mask.is_none() && source.access.is_none()) {
            return self.bind_new(text, "field list", sources);
        }
        // It knows the columns by the names that they have in the table, and is nobody's reading of them.
        let unmasked = |source: &Source| {
            let def = source.engine_table().map(|table| &table.def)?;
            Some(Source::of_definition(&source.database, &source.alias, def))
        };
        let sources: Vec<Source> = sources.iter().filter_map(unmasked).collect();
        self.bind_new(text, "field list", &sources)
    }

    /// Whether the expressions of a table that is to be made are such as can be kept.
    ///
    /// # Errors
    /// The first thing that is wrong, as MySQL says it.
    pub fn check_expressions(&self, database: &str, table: &str, def: &TableDef) -> Result<(), SqlError> {
        let sources = [Source::of_definition(database, table, def)];
        let mut computed = Vec::new();
        // Those that are hidden have been looked at where they were made, and nothing reads them.
        for (at, column) in def.visible_columns().iter().enumerate() {
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

    /// The defaults of the columns of a definition that no table has yet, and its rules.
    pub fn rules_of(
        &self,
        database: &str,
        table: &str,
        def: &TableDef,
    ) -> Result<(Vec<ColumnDefault>, Option<Box<RowRules>>), SqlError> {
        self.defaults_and_rules(def, &[Source::of_definition(database, table, def)], None)
    }

    /// The columns that an expression of a definition reads.
    pub fn columns_read(
        &self,
        database: &str,
        table: &str,
        def: &TableDef,
        text: &str,
    ) -> Result<Vec<u16>, SqlError> {
        let sources = [Source::of_definition(database, table, def)];
        Ok(reads(&self.bind_kept(text, &sources)?))
    }

    pub(super) fn bind_new(
        &self,
        text: &str,
        clause: &'static str,
        sources: &[Source],
    ) -> Result<Bound, SqlError> {
        let expr = parser::parse_expression(text.as_bytes(), LexicalModes::of_kept())?;
        let mut binder = Binder { clause, is_kept: true, ..Binder::new(self, sources) };
        binder.bind(&expr)
    }

    fn check_generated(
        &self,
        text: &str,
        column: &ColumnDef,
        at: u16,
        def: &TableDef,
        sources: &[Source],
    ) -> Result<Vec<u16>, SqlError> {
        let (expr, _) = self.bind_new(text, "generated column function", sources)?;
        if let Some(function) = function_of_moment(&expr) {
            return Err(errors::error(errors::GENERATED_COLUMN_FUNCTION, &[&column.name, &function]));
        }
        reads_in_reach(&expr, at, def, |refused| match refused {
            Refused::AutoIncrement => errors::error(errors::GENERATED_COLUMN_REF_AUTO_INC, &[&column.name]),
            Refused::Later => errors::error(errors::GENERATED_COLUMN_NON_PRIOR, &[]),
        })
    }

    fn check_default(
        &self,
        text: &str,
        column: &ColumnDef,
        at: u16,
        def: &TableDef,
        sources: &[Source],
    ) -> Result<Vec<u16>, SqlError> {
        let (expr, _) = self.bind_new(text, "default value expression", sources)?;
        if let Some(function) = waiting_function(&expr) {
            return Err(errors::error(errors::DEFAULT_EXPRESSION_FUNCTION, &[&column.name, &function]));
        }
        reads_in_reach(&expr, at, def, |refused| match refused {
            Refused::AutoIncrement => errors::error(errors::DEFAULT_EXPRESSION_REF_AUTO_INC, &[&column.name]),
            Refused::Later => errors::error(errors::DEFAULT_EXPRESSION_NON_PRIOR, &[&column.name]),
        })
    }

    fn check_constraint(
        &self,
        check: &untorn::schema::Check,
        def: &TableDef,
        sources: &[Source],
    ) -> Result<(), SqlError> {
        let name = &check.name;
        let parsed = parser::parse_expression(check.expression.as_bytes(), LexicalModes::of_kept())?;
        let mut binder = Binder { is_kept: true, ..Binder::new(self, sources) };
        let expr = match binder.bind(&parsed) {
            Ok((expr, _)) => expr,
            Err(error) => {
                return Err(match self.unknown_name(&error) {
                    Some(column) => errors::error(errors::CHECK_UNKNOWN_COLUMN, &[name, &column]),
                    None => error,
                });
            }
        };
        if !parsed.is_condition() {
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

/// What a computed column may not read.
enum Refused {
    /// The AUTO_INCREMENT column: its value comes after all others.
    AutoIncrement,
    /// A computed column that is not defined before it.
    Later,
}

/// The columns that the expression of column `at` reads.
fn reads_in_reach(
    expr: &Expr,
    at: u16,
    def: &TableDef,
    error: impl Fn(Refused) -> SqlError,
) -> Result<Vec<u16>, SqlError> {
    let reads = reads(expr);
    for read in &reads {
        let other = &def.columns[usize::from(*read)];
        if other.auto_increment {
            return Err(error(Refused::AutoIncrement));
        }
        let computed = other.generated.is_some() || matches!(other.default, Some(Default::Expression(_)));
        if computed && *read >= at {
            return Err(error(Refused::Later));
        }
    }
    Ok(reads)
}

fn first_call(expr: &Expr, wanted: impl Fn(&Function, &[Expr]) -> bool) -> Option<String> {
    let mut found = None;
    expr.visit(&mut |inner| {
        if let Expr::Call(function, arguments) = inner
            && wanted(function, arguments)
        {
            found = Some(function.name.to_ascii_lowercase());
        }
        found.is_none()
    });
    found
}

/// A function whose value is not the same whenever and by whomever it is called.
pub(super) fn function_of_moment(expr: &Expr) -> Option<String> {
    // UNIX_TIMESTAMP is the time of the statement, or depends on the time zone; digests are by the mode, and
    // the roles by who asks.
    const OF_MOMENT: [&str; 5] =
        ["ROLES_GRAPHML", "STATEMENT_DIGEST", "STATEMENT_DIGEST_TEXT", "UNIX_TIMESTAMP", "UPDATEXML"];
    // A path into XML may read variables.
    let reads_variables = |path: &Expr| match path {
        Expr::Literal(path) => path.to_text().contains(&b'$'),
        _ => true,
    };
    first_call(expr, |function, arguments| match function.name {
        "EXTRACTVALUE" => arguments.get(1).is_some_and(reads_variables),
        name => function.volatile || OF_MOMENT.contains(&name) || session_functions::is_of_session(name),
    })
}

/// A function that waits, changes the session, or says what the last statement did or who the server is.
fn waiting_function(expr: &Expr) -> Option<String> {
    const WAITING: [&str; 12] = [
        "LOAD_FILE",
        "SLEEP",
        "GET_LOCK",
        "IS_FREE_LOCK",
        "IS_USED_LOCK",
        "RELEASE_ALL_LOCKS",
        "RELEASE_LOCK",
        "BENCHMARK",
        "LAST_INSERT_ID",
        "ROW_COUNT",
        "FOUND_ROWS",
        "VERSION",
    ];
    first_call(expr, |function, _| WAITING.contains(&function.name))
}

impl Source {
    /// A table that is to be made: there is nothing of it but its columns.
    pub(super) fn of_definition(database: &str, table: &str, def: &TableDef) -> Source {
        let columns = Source::columns_of(def);
        let kind = SourceKind::Definition(def.visible_columns().to_vec());
        Source::new(database.to_owned(), table.to_owned(), table.to_owned(), columns, kind)
    }
}
