//! Plans of INSERT, UPDATE and DELETE.
//!
//! An UPDATE that changes a column of the index it scans, or of the clustered one, could meet its rows again
//! (the Halloween problem): its plan says so, and execution gathers them before the first change.

use std::collections::HashSet;

use untorn::schema::{ColumnDef, Default};

use super::access_path::{Choice, Path, PathChooser, key_of};
use super::apply::{self, Apply};
use super::finish::without;
use super::index_order::order_of;
use super::query::push_conjuncts;
use super::row_rules::{self, RowRules};
use super::selected_too::{self, SelectedToo};
use super::source::Source;
use super::target_read::refuse_reading_target;
use super::with::{Around, With};
use super::{Condition, Planner, SelectPlan, Tables};
use crate::ast::{self, HintKind, InsertSource, TableRef};
use crate::errors;
use crate::expr::bind::{Binder, Bound, InsertedAs, is_type_of_numbers, literal_as_number};
use crate::expr::types::Type;
use crate::expr::{Expr, NODE_BYTES};
use crate::privilege::Privileges;
use crate::result::{SqlError, kind};
use crate::sql_mode;
use crate::stored_values::Storing;
use crate::value::Value;

/// What a column gets when nothing is said.
#[derive(Clone, Debug)]
pub enum ColumnDefault {
    /// These stored bytes.
    Stored(Vec<u8>),
    /// NULL.
    Null,
    /// The time of the statement.
    Now,
    /// The next AUTO_INCREMENT value.
    AutoIncrement,
    /// The value of an expression.
    Expression(Expr),
    /// The value of a generated column, whatever is said.
    Generated(Expr),
    /// Nothing: error 1364.
    Missing,
}

/// A value in VALUES or SET.
#[derive(Clone, Debug)]
pub enum Assigned {
    /// An expression.
    Value(Expr),
    /// DEFAULT.
    Default,
}

/// INSERT, REPLACE.
#[derive(Debug)]
pub struct InsertPlan {
    /// The table.
    pub source: Source,
    /// Columns that values are given for, in the order of the values.
    pub columns: Vec<u16>,
    /// VALUES.
    pub rows: Vec<Vec<Assigned>>,
    /// SELECT.
    pub query: Option<Box<SelectPlan>>,
    /// IGNORE.
    pub ignore: bool,
    /// REPLACE.
    pub replace: bool,
    /// ON DUPLICATE KEY UPDATE.
    pub on_duplicate: Vec<(u16, Assigned)>,
    /// What that reads of the query's rows.
    pub selected_too: SelectedToo,
    /// Generated columns whose values are passed over, which is told when it runs.
    pub passed_over: Vec<SqlError>,
    /// Defaults of all columns.
    pub defaults: Vec<ColumnDefault>,
    /// What is computed and checked of each row.
    pub rules: Option<Box<RowRules>>,
    /// Values read columns of their own row.
    pub reads_itself: bool,
    /// Subqueries.
    pub subqueries: Vec<SelectPlan>,
}

/// Which rows an UPDATE or DELETE is about.
#[derive(Debug)]
pub struct Target {
    /// The table.
    pub source: Source,
    /// How it is read.
    pub path: Path,
    /// Conditions the path does not express.
    pub filter: Vec<Condition>,
    /// All conditions.
    pub all_conditions: Vec<Condition>,
    /// Columns that the conditions, the order and new values look at, and those that are changed.
    pub needed: Vec<u16>,
    /// ORDER BY that the path does not give.
    pub order: Vec<(Expr, bool)>,
    /// LIMIT.
    pub limit: Option<Expr>,
    /// Subqueries.
    pub subqueries: Vec<SelectPlan>,
    /// Subqueries that are executed for each row.
    pub apply: Option<Box<Apply>>,
}

/// UPDATE.
#[derive(Debug)]
pub struct UpdatePlan {
    /// Which rows.
    pub target: Target,
    /// SET.
    pub assignments: Vec<(u16, Assigned)>,
    /// Defaults of all columns.
    pub defaults: Vec<ColumnDefault>,
    /// What is computed and checked of each row.
    pub rules: Option<Box<RowRules>>,
    /// An assignment reads a column that one before it assigns.
    pub reads_assigned: bool,
    /// A change could make the scan meet the row again.
    pub moves_rows: bool,
    /// IGNORE.
    pub ignore: bool,
}

/// DELETE.
#[derive(Debug)]
pub struct DeletePlan {
    /// Which rows.
    pub target: Target,
    /// Errors of expressions are warnings.
    pub ignore: bool,
}

fn push_tables(source: &Source, subqueries: &[SelectPlan], found: &mut Tables) {
    found.extend(source.engine_table().cloned());
    subqueries.iter().for_each(|plan| plan.tables(found));
}

impl InsertPlan {
    /// Tables used.
    pub fn tables(&self, found: &mut Tables) {
        push_tables(&self.source, &self.subqueries, found);
        self.query.iter().for_each(|plan| plan.tables(found));
    }
}

impl UpdatePlan {
    /// Tables used.
    pub fn tables(&self, found: &mut Tables) {
        push_tables(&self.target.source, &self.target.subqueries, found);
    }
}

impl DeletePlan {
    /// Tables used.
    pub fn tables(&self, found: &mut Tables) {
        push_tables(&self.target.source, &self.target.subqueries, found);
    }
}

/// What is stored in a column of this type: hexadecimal literals are numbers there.
fn counted_in(target: Type, bound: Bound) -> Bound {
    let counts = is_type_of_numbers(target) && target.kind != kind::BIT;
    if counts { literal_as_number(bound) } else { bound }
}

impl Planner<'_> {
    pub(crate) fn default_of(
        &self,
        column: &ColumnDef,
        sources: &[Source],
    ) -> Result<ColumnDefault, SqlError> {
        if let Some(text) = &column.generated {
            return Ok(ColumnDefault::Generated(self.bind_stored(text, column, sources)?));
        }
        Ok(match &column.default {
            Some(Default::Expression(text)) => {
                ColumnDefault::Expression(self.bind_stored(text, column, sources)?)
            }
            _ if column.auto_increment => ColumnDefault::AutoIncrement,
            Some(Default::CurrentTimestamp) => ColumnDefault::Now,
            Some(Default::Literal(text)) => {
                let value = Value::Text(text.into(), column.kind.collation());
                let mut bytes = Vec::new();
                let storing = Storing { state: self.state, table: "", row: 1, lenient: true };
                storing.encode(&value, column, &mut bytes)?;
                ColumnDefault::Stored(bytes)
            }
            None if column.nullable && !column.without_default => ColumnDefault::Null,
            None => ColumnDefault::Missing,
        })
    }

    /// A kept expression whose values are stored in this column.
    fn bind_stored(&self, text: &str, column: &ColumnDef, sources: &[Source]) -> Result<Expr, SqlError> {
        let target = Type::of_column(&column.kind, column.nullable);
        Ok(counted_in(target, self.bind_kept_typed(text, sources)?).0)
    }

    /// The table of a change, or the view that stands for one.
    fn changed_source(
        &self,
        name: &ast::TableName,
        wanted: Privileges,
        statement: &str,
    ) -> Result<Source, SqlError> {
        let access = self.require_on_some_columns(name, wanted, wanted)?;
        let Some(view) = self.view_named(name)? else {
            return Ok(self.table_source(name, None)?.with_access(access));
        };
        let refused = || errors::error(errors::NON_UPDATABLE_TABLE, &[&name.name, &statement]);
        let source = self.view_target(&view)?.ok_or_else(refused)?;
        self.require_below(&source, wanted)?;
        Ok(source.with_access(access))
    }

    /// The table that rows are inserted into. A view stands for one if each of its columns is another column
    /// of the table.
    pub(super) fn inserted_source(
        &self,
        name: &ast::TableName,
        wanted: Privileges,
        columns: &[String],
    ) -> Result<Source, SqlError> {
        let refused = || errors::error(errors::NON_INSERTABLE_TABLE, &[&name.name, &"INSERT"]);
        let source = match self.changed_source(name, wanted, "INSERT") {
            Err(error) if error.code == errors::NON_UPDATABLE_TABLE => return Err(refused()),
            source => source?,
        };
        let Some(mask) = &source.mask else { return Ok(source) };
        let is_said =
            |name: &str| columns.is_empty() || columns.iter().any(|said| said.eq_ignore_ascii_case(name));
        if let Some((name, _)) =
            mask.shown.iter().find(|(name, number)| source.is_computed(*number) && is_said(name))
        {
            return Err(errors::error(errors::NONUPDATEABLE_COLUMN, &[name]));
        }
        let mut seen = HashSet::new();
        if !mask.computed.is_empty() || !source.shown().all(|number| seen.insert(number)) {
            return Err(refused());
        }
        Ok(source)
    }

    /// Plans INSERT and REPLACE.
    pub fn insert(&self, insert: &ast::Insert) -> Result<InsertPlan, SqlError> {
        let mut wanted = Privileges::INSERT;
        if insert.replace {
            wanted |= Privileges::DELETE;
        }
        if !insert.on_duplicate.is_empty() {
            wanted |= Privileges::UPDATE;
        }
        let source = self.inserted_source(&insert.table, wanted, &insert.columns)?;
        self.insert_rows(source, insert)
    }

    /// Plans INSERT into a source that may be written.
    pub(super) fn insert_rows(&self, source: Source, insert: &ast::Insert) -> Result<InsertPlan, SqlError> {
        let unknown = |name: &str| self.unknown_column(&name, "field list");
        let mut columns = Vec::new();
        for name in &insert.columns {
            let column = source.column_number(name).ok_or_else(|| unknown(name))?;
            if columns.contains(&column) {
                return Err(errors::error(errors::FIELD_SPECIFIED_TWICE, &[name]));
            }
            self.require_change_of_column(&source, name, Privileges::INSERT)?;
            columns.push(column);
        }
        let all: Vec<u16> = source.shown().collect();
        let named = !columns.is_empty();
        if !named {
            self.require_insert_of_all_columns(&source)?;
            columns = all;
        }
        let mut rows = self.elsewhere(Vec::new());
        let (mut query, mut sources) = self.inserted_query(source, &columns, insert)?;
        let mut binder = Binder::new(self, &sources);
        match &insert.source {
            InsertSource::Values(values) => {
                rows.reserve(values.len());
                for (number, row) in values.iter().enumerate() {
                    self.work(NODE_BYTES)?;
                    let empty = row.is_empty() && !named;
                    if row.len() != columns.len() && !empty {
                        return Err(errors::error(errors::WRONG_VALUE_COUNT_ON_ROW, &[&(number + 1)]));
                    }
                    rows.push(
                        row.iter()
                            .zip(&columns)
                            .map(|(value, column)| assigned(&mut binder, value, 0, *column))
                            .collect::<Result<_, _>>()?,
                    );
                }
            }
            InsertSource::Query(_) => {}
        }
        binder.inserted = sources.first();
        if let Some(alias) = &insert.row_alias {
            binder.inserted_as = Some(InsertedAs::new(alias, &sources[0], &columns)?);
        }
        let mut on_duplicate = Vec::new();
        for (name, value) in &insert.on_duplicate {
            let column = sources[0].column_number(name).ok_or_else(|| unknown(name))?;
            self.require_change_of_column(&sources[0], name, Privileges::UPDATE)?;
            on_duplicate.push((column, assigned(&mut binder, value, 0, column)?));
        }
        let subqueries = std::mem::take(&mut binder.subqueries);
        let reads_itself = rows.iter().flatten().any(|value: &Assigned| match value {
            Assigned::Value(expr) => expr.reads(0),
            Assigned::Default => false,
        });
        if subqueries.iter().any(SelectPlan::follows_rows) {
            return Err(errors::unsupported("a correlated subquery in ON DUPLICATE KEY UPDATE"));
        }
        drop(binder);
        if query.is_none() {
            refuse_reading_target(&sources[0], "INSERT", &subqueries)?;
        }
        let readable = sources.split_off(1);
        let selected_too = match (&insert.source, &mut query) {
            (InsertSource::Query(select), Some(plan)) => {
                self.select_too(select, plan, readable, &on_duplicate)?
            }
            _ => SelectedToo::default(),
        };
        let (defaults, mut rules) = match sources[0].engine_table() {
            Some(table) => self.defaults_and_rules(&table.def, &sources, None)?,
            None => (Vec::new(), None),
        };
        if let Some(rules) = &mut rules {
            rules.refuses_null = rows.len() == 1 && !insert.ignore;
        }
        let source = sources.swap_remove(0);
        let given = (&source, &columns[..], &defaults[..]);
        let passed_over = self.pass_over_generated(given, query.is_some(), &mut rows)?;
        // `generated = DEFAULT` says nothing, but that a duplicate is no error.
        refuse_generated(&on_duplicate, &defaults, &source)?;
        Ok(InsertPlan {
            source,
            columns,
            rows: rows.into_inner(),
            query,
            ignore: insert.ignore,
            replace: insert.replace,
            on_duplicate,
            selected_too,
            passed_over,
            defaults,
            rules,
            reads_itself,
            subqueries,
        })
    }

    /// The SELECT of an INSERT into these columns, and what the assignments of ON DUPLICATE KEY
    /// UPDATE may read: the table, and behind it the sources of that query.
    fn inserted_query(
        &self,
        source: Source,
        columns: &[u16],
        insert: &ast::Insert,
    ) -> Result<(Option<Box<SelectPlan>>, Vec<Source>), SqlError> {
        let mut sources = vec![source];
        let InsertSource::Query(select) = &insert.source else { return Ok((None, sources)) };
        let mut plan = self.select(select)?;
        if plan.items.len() != columns.len() {
            return Err(errors::error(errors::WRONG_VALUE_COUNT_ON_ROW, &[&1]));
        }
        if plan.unions.is_empty() {
            let SelectPlan { items, types, .. } = &mut plan;
            for ((item, ty), column) in items.iter_mut().zip(types).zip(columns) {
                let target = sources[0].columns[usize::from(*column)].ty;
                let said = std::mem::replace(item, Expr::Literal(Value::Null));
                (*item, *ty) = counted_in(target, (said, *ty));
            }
        }
        if !insert.on_duplicate.is_empty() {
            sources.append(&mut selected_too::readable(&mut plan));
        }
        Ok((Some(Box::new(plan)), sources))
    }

    /// Refuses what is said of generated columns (3105), but for the VALUES of a dump: mariadb-dump writes
    /// them. A dump is known by its SQL mode, which is NO_AUTO_VALUE_ON_ZERO and not strict. There they are
    /// passed over, as in MariaDB, and the warnings for that are returned: one for each column.
    fn pass_over_generated(
        &self,
        (source, columns, defaults): (&Source, &[u16], &[ColumnDefault]),
        of_query: bool,
        rows: &mut [Vec<Assigned>],
    ) -> Result<Vec<SqlError>, SqlError> {
        let of_dump = !of_query
            && !self.state.is_strict()
            && self.state.settings().sql_mode & sql_mode::NO_AUTO_VALUE_ON_ZERO != 0;
        let mut passed_over = Vec::new();
        for (position, column) in columns.iter().enumerate() {
            if !matches!(defaults.get(usize::from(*column)), Some(ColumnDefault::Generated(_))) {
                continue;
            }
            let is_given = |row: &Vec<Assigned>| matches!(row.get(position), Some(Assigned::Value(_)));
            if !of_query && !rows.iter().any(is_given) {
                continue;
            }
            if !of_dump {
                return Err(of_generated(errors::NON_DEFAULT_FOR_GENERATED_COLUMN, source, *column));
            }
            passed_over.push(of_generated(errors::WARN_GENERATED_COLUMN_IGNORED, source, *column));
            rows.iter_mut().filter(|row| is_given(row)).for_each(|row| row[position] = Assigned::Default);
        }
        Ok(passed_over)
    }

    /// Plans UPDATE.
    pub fn update(&self, update: &ast::Update) -> Result<UpdatePlan, SqlError> {
        let with = With::new(&update.with, Around::default());
        let around = with.within();
        let (sources, hints) = self.single_table(&update.table, Privileges::UPDATE, "UPDATE", around)?;
        let mut binder = Binder { around, ..Binder::new(self, &sources) };
        let mut assignments = Vec::new();
        for ast::Assignment { database, table, column: name, value } in &update.assignments {
            let column = sources[0]
                .answers_to(database.as_deref(), table.as_deref())
                .then(|| sources[0].column_number(name))
                .flatten()
                .ok_or_else(|| self.unknown_column(name, "field list"))?;
            self.require_change_of_column(&sources[0], name, Privileges::UPDATE)?;
            if sources[0].is_computed(column) {
                return Err(errors::error(errors::NONUPDATEABLE_COLUMN, &[name]));
            }
            assignments.push((column, assigned(&mut binder, value, 0, column)?));
        }
        let mut parts =
            self.conditions(&mut binder, update.filter.as_ref(), &update.order_by, update.limit.as_ref())?;
        drop(binder);
        let mut before = HashSet::new();
        for (column, value) in &assignments {
            if let Assigned::Value(expr) = value {
                for number in apply::following(expr, &parts.subqueries) {
                    let captures = &parts.subqueries[usize::from(number)].captures;
                    let reads =
                        |column| matches!(column, &Expr::Column { column, .. } if before.contains(&column));
                    if captures.iter().any(reads) {
                        return Err(errors::unsupported(
                            "a correlated subquery that reads a column assigned before",
                        ));
                    }
                    parts.applied.push(number);
                }
            }
            before.insert(*column);
        }
        let mut needed = vec![Vec::new()];
        for (_, value) in &assignments {
            if let Assigned::Value(expr) = value {
                self.note_columns(expr, &mut needed);
            }
        }
        let mut target = self.target(sources, "UPDATE", &hints, parts, needed)?;
        for (column, _) in &assignments {
            if !target.needed.contains(column) {
                target.needed.push(*column);
            }
        }
        let Some(table) = target.source.engine_table().cloned() else {
            return Err(errors::error(errors::NON_UPDATABLE_TABLE, &[&target.source.alias, &"UPDATE"]));
        };
        let stamped: Vec<u16> = table.def.columns_on_update().collect();
        let set: Vec<u16> = assignments.iter().map(|(column, _)| *column).chain(stamped.clone()).collect();
        let (defaults, rules) =
            self.defaults_and_rules(&table.def, std::slice::from_ref(&target.source), Some(&set))?;
        refuse_generated(&assignments, &defaults, &target.source)?;
        assignments.retain(|(column, _)| table.def.columns[usize::from(*column)].generated.is_none());
        let of_defaults: Vec<u16> = assignments
            .iter()
            .filter_map(|(column, assigned)| defaulted(*column, assigned, &defaults))
            .flat_map(row_rules::reads)
            .collect();
        for column in rules.iter().flat_map(|rules| &rules.needed).chain(&of_defaults) {
            if !target.needed.contains(column) {
                target.needed.push(*column);
            }
        }
        let changed = |column: u16| assignments.iter().any(|(c, _)| *c == column);
        let generated = |column: u16| table.def.columns[usize::from(column)].generated.is_some();
        let moves_rows = !target.path.unique && {
            let scanned = std::iter::once(&target.path).chain(&target.path.merged);
            let scanned = scanned.filter_map(|path| key_of(&table, path.index));
            let clustered = table.def.clustered_key();
            scanned
                .chain(clustered)
                .flat_map(|key| &key.parts)
                .any(|part| changed(part.column) || stamped.contains(&part.column) || generated(part.column))
        };
        let reads_assigned = self.reads_assigned(&assignments, &defaults);
        self.outcome()?;
        Ok(UpdatePlan {
            defaults,
            rules,
            target,
            reads_assigned,
            assignments,
            moves_rows,
            ignore: update.ignore,
        })
    }

    /// Whether an assignment reads a column that one before it assigns.
    fn reads_assigned(&self, assignments: &[(u16, Assigned)], defaults: &[ColumnDefault]) -> bool {
        let mut assigned = HashSet::new();
        assignments.iter().any(|(column, value)| {
            let mut reads = false;
            let expr = match value {
                Assigned::Value(expr) => Some(expr),
                Assigned::Default => defaulted(*column, value, defaults),
            };
            if let Some(expr) = expr {
                expr.visit(&mut |inner| {
                    reads |= matches!(inner, Expr::Column { column, .. } if assigned.contains(column));
                    !reads && self.walk()
                });
            }
            assigned.insert(*column);
            reads
        })
    }

    /// Plans DELETE.
    pub fn delete(&self, delete: &ast::Delete) -> Result<DeletePlan, SqlError> {
        delete.targets.iter().try_for_each(|name| self.database_of(name).map(drop))?;
        let with = With::new(&delete.with, Around::default());
        let around = with.within();
        let (sources, hints) = self.single_table(&delete.table, Privileges::DELETE, "DELETE", around)?;
        for name in &delete.targets {
            self.deleted_source(&sources, &delete.table, name)?;
        }
        let mut binder = Binder { around, ..Binder::new(self, &sources) };
        let parts =
            self.conditions(&mut binder, delete.filter.as_ref(), &delete.order_by, delete.limit.as_ref())?;
        drop(binder);
        let target = self.target(sources, "DELETE", &hints, parts, vec![Vec::new()])?;
        Ok(DeletePlan { target, ignore: delete.ignore })
    }

    #[allow(clippy::type_complexity)]
    fn single_table(
        &self,
        table: &TableRef,
        wanted: Privileges,
        statement: &str,
        around: Around<'_>,
    ) -> Result<([Source; 1], Vec<(HintKind, Vec<String>)>), SqlError> {
        let TableRef::Table { name, alias, hints } = table else {
            return Err(errors::error(errors::INTERNAL_ERROR, &[&"a join was planned as a table"]));
        };
        let called = alias.as_ref().unwrap_or(&name.name);
        if self.common_table(name, called, around)?.is_some() {
            return Err(errors::error(errors::NON_UPDATABLE_TABLE, &[called, &statement]));
        }
        let mut source = self.changed_source(name, wanted, statement)?;
        if let Some(alias) = alias {
            source.alias.clone_from(alias);
        }
        let said = self.hinted(&source, hints)?;
        let of_view = source.mask.as_ref().map(|mask| mask.hints.clone()).unwrap_or_default();
        Ok(([source], of_view.into_iter().chain(said).collect()))
    }

    fn conditions(
        &self,
        binder: &mut Binder<'_, '_>,
        filter: Option<&ast::Expr>,
        order_by: &[ast::OrderItem],
        limit: Option<&ast::Limit>,
    ) -> Result<Conditions, SqlError> {
        let mut conjuncts = Vec::new();
        binder.clause = "where clause";
        if let Some(filter) = filter {
            push_conjuncts(binder.filter(filter)?, &mut conjuncts);
        }
        binder.clause = "order clause";
        let mut order = Vec::new();
        for item in order_by {
            order.push((binder.bind(&item.expr)?.0, item.descending));
        }
        let limit = self.limit(limit)?.map(|(count, _)| count);
        let subqueries = std::mem::take(&mut binder.subqueries);
        if order.iter().any(|(expr, _)| !apply::following(expr, &subqueries).is_empty()) {
            return Err(errors::unsupported("a correlated subquery in ORDER BY of a change"));
        }
        Ok(Conditions { conjuncts, order, limit, subqueries, applied: Vec::new() })
    }

    fn target(
        &self,
        sources: [Source; 1],
        operation: &str,
        hints: &[(HintKind, Vec<String>)],
        mut parts: Conditions,
        mut needed: Vec<Vec<u16>>,
    ) -> Result<Target, SqlError> {
        let [source] = sources;
        parts
            .subqueries
            .iter()
            .flat_map(|plan| &plan.captures)
            .for_each(|expr| self.note_columns(expr, &mut needed));
        refuse_reading_target(&source, operation, &parts.subqueries)?;
        let (mut applied, others) = apply::split(parts.conjuncts, &parts.subqueries);
        parts.conjuncts = others;
        for (_, condition) in applied.iter().flat_map(|apply| &apply.conditions) {
            self.note_columns(condition, &mut needed);
        }
        if !parts.applied.is_empty() {
            applied.get_or_insert_default().rows = parts.applied;
        }
        let conjuncts = parts.conjuncts.iter().map(|condition| &**condition);
        for expr in conjuncts.chain(parts.order.iter().map(|(expr, _)| expr)) {
            self.note_columns(expr, &mut needed);
        }
        for condition in source.mask.iter().flat_map(|mask| &mask.conditions) {
            self.note_columns(condition, &mut needed);
            parts.conjuncts.push(condition.clone());
        }
        self.outcome()?;
        let mut path = Path::everything();
        let mut order = parts.order;
        if let Some(table) = source.engine_table() {
            let expressions = self.key_expressions(&source, 0);
            let chooser = PathChooser {
                planner: self,
                table,
                source: 0,
                conjuncts: &parts.conjuncts,
                bound: &[],
                needed: &needed[0],
                expressions: &expressions,
                hints,
                choice: Choice { by_cost: parts.limit.is_none(), whole_rows: true, ..Choice::default() },
            };
            path = chooser.best();
            self.outcome()?;
            if path.is_full_scan() {
                path = Path::everything();
            }
            if !order.is_empty()
                && let Some(backward) = order_of(table, 0, &path, &order, &expressions)
            {
                path.backward = backward;
                order.clear();
            }
        }
        Ok(Target {
            filter: without(&parts.conjuncts, &path.consumed),
            needed: needed.pop().unwrap_or_default(),
            all_conditions: parts.conjuncts,
            source,
            path,
            order,
            limit: parts.limit,
            subqueries: parts.subqueries,
            apply: applied,
        })
    }
}

struct Conditions {
    conjuncts: Vec<Condition>,
    order: Vec<(Expr, bool)>,
    limit: Option<Expr>,
    subqueries: Vec<SelectPlan>,
    /// Correlated subqueries of the assignments.
    applied: Vec<u16>,
}

/// The expression that `column = DEFAULT` stands for, if it stands for one.
pub(super) fn defaulted<'d>(
    column: u16,
    assigned: &Assigned,
    defaults: &'d [ColumnDefault],
) -> Option<&'d Expr> {
    match (assigned, defaults.get(usize::from(column))) {
        (Assigned::Default, Some(ColumnDefault::Expression(expr))) => Some(expr),
        _ => None,
    }
}

/// Error 3105: only DEFAULT may be said of a generated column.
/// What there is to say of a value for a generated column.
fn of_generated(code: u16, source: &Source, column: u16) -> SqlError {
    // The table's own names, whatever a view calls them.
    let (name, table) = match source.engine_table() {
        Some(table) => (&table.def.columns[usize::from(column)].name, &table.name),
        None => (&source.columns[usize::from(column)].name, &source.table),
    };
    errors::error(code, &[name, table])
}

/// Error 3105 for a generated column that is assigned anything but DEFAULT.
pub(super) fn refuse_generated(
    assignments: &[(u16, Assigned)],
    defaults: &[ColumnDefault],
    source: &Source,
) -> Result<(), SqlError> {
    let is_generated =
        |column: u16| matches!(defaults.get(usize::from(column)), Some(ColumnDefault::Generated(_)));
    if let Some((column, _)) = assignments
        .iter()
        .find(|(column, value)| is_generated(*column) && matches!(value, Assigned::Value(_)))
    {
        return Err(of_generated(errors::NON_DEFAULT_FOR_GENERATED_COLUMN, source, *column));
    }
    Ok(())
}

/// What a column of a source is assigned.
pub(super) fn assigned(
    binder: &mut Binder<'_, '_>,
    value: &ast::Expr,
    source: u16,
    column: u16,
) -> Result<Assigned, SqlError> {
    let ty = binder.sources[usize::from(source)].columns[usize::from(column)].ty;
    match value {
        ast::Expr::Default(None) => Ok(Assigned::Default),
        value => Ok(Assigned::Value(binder.stored(value, ty)?)),
    }
}
