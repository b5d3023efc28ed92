//! Plans: what is made of a statement once, and executed many times.
//!
//! A plan belongs to one version of the catalog and owns handles to its tables. It holds no values: parameters, the
//! clock and variables are looked at when it is executed. A single-table query streams from the scan through
//! the plan's filter and output; joins are nested loops over index look-ups.

pub mod access;
pub mod aggregate;
pub mod change;
mod query;
pub mod source;

use std::sync::Arc;

use untorn::Table;
use untorn::types::Collation;

use crate::auth::privilege::Privileges;
use crate::discard::discard;
use crate::errors;
use crate::result::{ResultColumns, SqlError};
use crate::session::state::SessionState;
use crate::sql::ast;
use crate::sql::expr::bind::value_type;
use crate::sql::expr::types::Type;
use crate::sql::expr::{Expr, NODE_BYTES};
use access::Path;
use aggregate::Aggregate;
use source::Source;

/// A condition of a query. It may be megabytes, and stands in several places of a plan.
pub type Condition = Arc<Expr>;

/// One source of a query in the order of the join.
#[derive(Debug)]
pub struct Step {
    /// Which source.
    pub source: usize,
    /// How it is read.
    pub path: Path,
    /// Conditions that the path does not express.
    pub filter: Vec<Condition>,
    /// All conditions, for when a key could not be made exactly.
    pub all_conditions: Vec<Condition>,
    /// LEFT JOIN: a row without match is joined with NULLs.
    pub outer: bool,
    /// LEFT JOIN: conditions of WHERE, checked after that.
    pub after: Vec<Condition>,
}

/// Grouping.
#[derive(Debug)]
pub struct Grouping {
    /// GROUP BY; empty: one group of all rows.
    pub keys: Vec<Expr>,
    /// The aggregates.
    pub aggregates: Vec<Aggregate>,
    /// HAVING.
    pub having: Option<Expr>,
    /// WITH ROLLUP.
    pub rollup: bool,
}

/// A planned SELECT.
#[derive(Debug)]
pub struct SelectPlan {
    /// Sources, as the statement names them.
    pub sources: Vec<Source>,
    /// The join.
    pub steps: Vec<Step>,
    /// Columns needed of each source.
    pub needed: Vec<Vec<u16>>,
    /// Conditions without columns, checked first.
    pub constant_conditions: Vec<Condition>,
    /// Grouping.
    pub grouping: Option<Grouping>,
    /// Output.
    pub items: Vec<Expr>,
    /// Their types.
    pub types: Vec<Type>,
    /// Their definitions for the client.
    pub columns: Arc<ResultColumns>,
    /// DISTINCT.
    pub distinct: bool,
    /// What is still to be sorted by (true: descending).
    pub order: Vec<(Expr, bool)>,
    /// LIMIT: count and offset.
    pub limit: Option<(Expr, Option<Expr>)>,
    /// Locking clause.
    pub locking: Option<ast::Locking>,
    /// Subqueries, executed first.
    pub subqueries: Vec<SelectPlan>,
    /// INTO variables.
    pub into: Vec<String>,
    /// The other SELECTs of a UNION (true: ALL).
    pub unions: Vec<(bool, SelectPlan)>,
    /// Source columns of the items, when all are plain columns of one stored table.
    pub plain_columns: Option<Vec<u16>>,
}

impl SelectPlan {
    /// All tables it reads, for metadata locks.
    pub fn tables(&self, found: &mut Vec<Arc<Table>>) {
        for source in &self.sources {
            match &source.kind {
                source::SourceKind::Table(table) => found.push(table.0.clone()),
                source::SourceKind::Derived(plan) => plan.tables(found),
                source::SourceKind::View(_) => {}
            }
        }
        self.subqueries.iter().for_each(|plan| plan.tables(found));
        self.unions.iter().for_each(|(_, plan)| plan.tables(found));
    }
}

/// A planned statement.
#[derive(Debug)]
pub enum Plan {
    /// SELECT.
    Select(SelectPlan),
    /// INSERT, REPLACE.
    Insert(change::InsertPlan),
    /// UPDATE.
    Update(change::UpdatePlan),
    /// DELETE.
    Delete(change::DeletePlan),
    /// Everything else is executed from its syntax tree.
    Command(ast::Statement),
}

impl Plan {
    /// The table it changes.
    pub fn target(&self) -> Option<&Arc<Table>> {
        match self {
            Plan::Insert(plan) => plan.source.engine_table(),
            Plan::Update(plan) => plan.target.source.engine_table(),
            Plan::Delete(plan) => plan.target.source.engine_table(),
            Plan::Select(_) | Plan::Command(_) => None,
        }
    }

    /// Tables it uses.
    pub fn tables(&self) -> Vec<Arc<Table>> {
        let mut found = Vec::new();
        match self {
            Plan::Select(plan) => plan.tables(&mut found),
            Plan::Insert(plan) => plan.tables(&mut found),
            Plan::Update(plan) => plan.tables(&mut found),
            Plan::Delete(plan) => plan.tables(&mut found),
            Plan::Command(_) => {}
        }
        found
    }
}

/// Makes plans.
pub struct Planner<'a> {
    /// The session.
    pub state: &'a SessionState,
    /// Types of parameters that are known (literals lifted from a text statement).
    pub parameter_types: &'a [Type],
    /// Called when the slice of time is over; who plans in one go has none.
    pub give_way: Option<&'a dyn Fn()>,
}

impl<'a> Planner<'a> {
    /// Plans for this session, in one go.
    pub fn new(state: &'a SessionState) -> Planner<'a> {
        Planner { state, parameter_types: &[], give_way: None }
    }
}

impl Planner<'_> {
    /// Says that so many bytes of a statement are about to be worked on, and lets others run when it has been long enough.
    ///
    /// # Errors
    /// When the statement is to stop.
    pub fn work(&self, bytes: usize) -> Result<(), SqlError> {
        self.state.work(bytes)?;
        if let Some(give_way) = self.give_way
            && self.state.slice_is_over()
        {
            give_way();
        }
        Ok(())
    }

    /// Plans a statement.
    pub fn plan(&self, statement: ast::Statement) -> Result<Plan, SqlError> {
        Ok(match statement {
            ast::Statement::Select(query) => Plan::Select(self.planned(query, |tree| self.select(tree))?),
            ast::Statement::Insert(insert) => Plan::Insert(self.planned(insert, |tree| self.insert(tree))?),
            ast::Statement::Update(update) => Plan::Update(self.planned(update, |tree| self.update(tree))?),
            ast::Statement::Delete(delete) => Plan::Delete(self.planned(delete, |tree| self.delete(tree))?),
            other => Plan::Command(other),
        })
    }

    /// A step of a walk through a bound tree: lets others run when it has been long enough.
    fn walk(&self) {
        if let Some(give_way) = self.give_way
            && self.state.walked(NODE_BYTES)
        {
            give_way();
        }
    }

    /// What is made of a tree, which is not needed any more.
    fn planned<T: Send + 'static, P>(
        &self,
        tree: T,
        plan: impl FnOnce(&T) -> Result<P, SqlError>,
    ) -> Result<P, SqlError> {
        let planned = plan(&tree);
        if self.give_way.is_some() {
            discard(tree);
        }
        planned
    }

    /// What a parameter counts as before it is known.
    pub fn parameter_type(&self, index: u16) -> Type {
        self.parameter_types.get(usize::from(index)).copied().unwrap_or(Type::text(65_535 / 4))
    }

    /// The type of a user variable as it is now.
    pub fn user_variable_type(&self, name: &str) -> Type {
        let value = self.state.user_variable(name);
        if value.is_null() { Type::text(65_535 / 4) } else { Type { nullable: true, ..value_type(&value) } }
    }

    /// The collation of this name.
    pub fn collation(&self, name: &str) -> Result<Collation, SqlError> {
        collation_named(name).ok_or_else(|| errors::error(errors::UNKNOWN_COLLATION, &[&name]))
    }

    /// The default collation of a character set.
    pub fn charset_collation(&self, name: &str) -> Result<Collation, SqlError> {
        charset_collation(name).ok_or_else(|| errors::error(errors::UNKNOWN_CHARACTER_SET, &[&name]))
    }

    /// The database meant where none is named.
    pub fn database_of(&self, name: &ast::TableName) -> Result<String, SqlError> {
        match &name.database {
            Some(database) => Ok(database.clone()),
            None => match self.state.current_database() {
                Some(database) => Ok(database.to_string()),
                None => Err(errors::error(errors::NO_DB, &[])),
            },
        }
    }

    /// Requires privileges on a table, whether it exists or not.
    pub fn require_on(&self, name: &ast::TableName, wanted: Privileges) -> Result<(), SqlError> {
        self.state.require_on_table(&self.database_of(name)?, &name.name, wanted)
    }

    /// Requires what reading a table needs, FOR UPDATE or without.
    fn require_reading(&self, name: &ast::TableName, locks: bool) -> Result<(), SqlError> {
        self.require_on(name, Privileges::SELECT)?;
        if locks {
            self.state.require_locking_reads(&self.database_of(name)?, &name.name)?;
        }
        Ok(())
    }

    /// A table of the engine.
    pub fn engine_table(&self, name: &ast::TableName) -> Result<Arc<Table>, SqlError> {
        let database = self.database_of(name)?;
        self.state
            .database
            .table(&database, &name.name)
            .map_err(|error| crate::session::failure::engine(&error))
    }
}

/// A collation by its name; those of utf8mb4 that this server does not have stand for the nearest that it has.
pub fn collation_named(name: &str) -> Option<Collation> {
    let name = name.to_ascii_lowercase();
    if let Some(found) = Collation::from_name(&name) {
        return Some(found);
    }
    let known =
        ["utf8mb4_", "utf8mb3_", "utf8_", "latin1_", "ascii_"].iter().any(|prefix| name.starts_with(prefix));
    if !known {
        return None;
    }
    Some(if name.ends_with("_bin") { Collation::Utf8mb4Bin } else { Collation::Utf8mb4GeneralCi })
}

/// The default collation of a character set; text is kept as utf8mb4 whatever ASCII-compatible set was named.
pub fn charset_collation(name: &str) -> Option<Collation> {
    match name.to_ascii_lowercase().as_str() {
        "binary" => Some(Collation::Binary),
        "utf8mb4" | "utf8mb3" | "utf8" | "latin1" | "ascii" => Some(Collation::Utf8mb4GeneralCi),
        _ => None,
    }
}
