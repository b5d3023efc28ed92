//! WITH: common table expressions, each planned where it is named, as a derived table.
//!
//! A recursive one has parts that read its own rows ([`SourceKind::Recursion`]). The other parts say what
//! columns it has and give its first rows; then the parts that name it are executed again and again, each
//! time for the rows that came new the last time, until there are none. Their values become what INSERT would
//! store in the columns.

use std::cell::{Cell, RefCell};

use untorn::schema::ColumnDef;

use super::created_columns::typed;
use super::order_by_members::read_members;
use super::source::{Source, SourceColumn, SourceKind};
use super::{Planner, SelectPlan};
use crate::ast;
use crate::errors;
use crate::expr::Expr;
use crate::expr::bind::common_type::number_of_bits;
use crate::expr::bind::scope::Scope;
use crate::expr::types::Type;
use crate::result::{ColumnMeta, SqlError, kind};
use crate::value::Value;

/// The parts of a recursive common table that read it.
#[derive(Debug)]
pub struct Recursion {
    /// Its number in the statement.
    pub number: u32,
    /// They read the rows that came new the last time.
    pub parts: Vec<SelectPlan>,
    /// UNION: a row that is there already is not new.
    pub distinct: bool,
    /// What their rows are stored in: the first rows decide what it holds.
    pub columns: Vec<ColumnDef>,
    /// LIMIT and OFFSET: with that number of rows it ends.
    pub limit: Option<(Expr, Option<Expr>)>,
}

/// What is around a query: the queries whose columns it may read, and the common tables that it may name.
#[derive(Clone, Copy, Default)]
pub struct Around<'s> {
    /// The query that it is a subquery of.
    pub outer: Option<&'s Scope<'s>>,
    /// The innermost WITH.
    pub with: Option<&'s With<'s>>,
    /// It is a subquery of EXISTS, IN, ANY or ALL: how often rows come and in which order does not matter.
    pub of_members: bool,
    /// It is the subquery of an EXISTS: its `*` reads no columns, where nothing else does with them.
    pub of_existence: bool,
    /// It is the query of a view: its columns are only read where the view's are.
    pub of_view: bool,
}

/// Common tables that can be named.
pub struct With<'s> {
    tables: &'s [ast::CommonTable],
    /// That are around them.
    around: Around<'s>,
    /// The table that is being planned, which its own parts name.
    itself: Option<&'s Itself<'s>>,
}

/// A recursive common table while it is planned.
struct Itself<'s> {
    table: &'s ast::CommonTable,
    number: u32,
    /// It has several parts, and they are added to each other.
    is_union: bool,
    /// Once they are known.
    columns: RefCell<Option<Vec<(String, Type)>>>,
    /// How often it has been named.
    named: Cell<u32>,
}

impl<'s> With<'s> {
    /// The tables of a WITH.
    pub fn new(tables: &'s [ast::CommonTable], around: Around<'s>) -> With<'s> {
        With { tables, around, itself: None }
    }

    /// What is around a statement that stands behind it.
    pub fn within(&self) -> Around<'_> {
        Around { with: Some(self), ..self.around }
    }
}

impl Planner<'_> {
    /// The common table of this name, if there is one, as a source.
    pub(super) fn common_table(
        &self,
        name: &ast::TableName,
        alias: &str,
        around: Around<'_>,
    ) -> Result<Option<Source>, SqlError> {
        if name.database.is_some() {
            return Ok(None);
        }
        let mut next = around.with;
        while let Some(with) = next {
            if let Some(itself) = with.itself
                && itself.table.name == name.name
            {
                return itself.source(alias).map(Some);
            }
            let named = |table: &ast::CommonTable| table.name == name.name;
            if let Some(at) = with.tables.iter().position(named) {
                // Columns of a query around it are numbered by the subquery that names them: one from another
                // place cannot have them.
                let same = match (around.outer, with.around.outer) {
                    (Some(here), Some(there)) => std::ptr::eq(here, there),
                    (None, None) => true,
                    _ => false,
                };
                let outer = if same { around.outer } else { None };
                let (before, rest) = with.tables.split_at(at);
                let before = With { tables: before, around: with.around, itself: with.itself };
                let around = Around { outer, with: Some(&before), ..Around::default() };
                return self.planned(&rest[0], alias, around).map(Some);
            }
            next = with.around.with;
        }
        Ok(None)
    }

    fn planned(&self, table: &ast::CommonTable, alias: &str, around: Around<'_>) -> Result<Source, SqlError> {
        let plan = match table.recursive {
            true => self.recursive(table, around)?,
            false => self.query(&table.query, around)?,
        };
        let names = self.column_names(&table.columns, &plan)?;
        let columns: Vec<(String, Type)> = names.into_iter().zip(plan.types.iter().copied()).collect();
        self.derived(alias, columns.into_iter(), SourceKind::Derived(Box::new(plan)))
    }

    /// The names of the columns of a query in FROM: those that are said behind its alias, or its own.
    pub(super) fn column_names(&self, said: &[String], plan: &SelectPlan) -> Result<Vec<String>, SqlError> {
        if said.is_empty() {
            return Ok(plan.columns.metas().iter().map(|ColumnMeta { name, .. }| name.clone()).collect());
        }
        if said.len() != plan.items.len() {
            return Err(errors::error(errors::VIEW_WRONG_LIST, &[]));
        }
        Ok(said.to_vec())
    }

    /// Plans a common table that may name itself.
    fn recursive(&self, table: &ast::CommonTable, around: Around<'_>) -> Result<SelectPlan, SqlError> {
        let number = self.recursions.get();
        self.recursions.set(number + 1);
        let query = &table.query;
        let is_union = query.selects.len() > 1 && query.operation == ast::SetOperation::Union;
        let itself = Itself { table, number, is_union, columns: RefCell::new(None), named: Cell::new(0) };
        let with = With { tables: &[], around, itself: Some(&itself) };
        let inside = Around { with: Some(&with), ..around };
        if !is_union {
            return self.query(query, inside);
        }
        let of_selects = |selects: &[(bool, ast::Select)]| ast::Query {
            with: query.with.clone(),
            operation: ast::SetOperation::Union,
            selects: selects.to_vec(),
            order_by: Vec::new(),
            limit: None,
            locking: None,
            into: ast::Destination::Client,
        };
        let (mut plan, mut parts) = (None::<SelectPlan>, Vec::new());
        for (at, (_, select)) in query.selects.iter().enumerate() {
            let before = itself.named.get();
            let part = self.query(&of_selects(&query.selects[at..=at]), inside)?;
            match itself.named.get() - before {
                0 if parts.is_empty() => {
                    itself.add_columns(self.column_names(&table.columns, &part)?, &part.types);
                    plan = Some(part);
                }
                0 => return Err(itself.error(errors::CTE_RECURSIVE_REQUIRES_NONRECURSIVE_FIRST)),
                named => {
                    itself.check_part(select, &part, named)?;
                    parts.push(part);
                }
            }
        }
        if parts.is_empty() {
            return self.query(query, around);
        }
        if !query.order_by.is_empty() {
            return Err(errors::unsupported("ORDER BY over UNION in recursive Common Table Expression"));
        }
        let (leading, recursive) = query.selects.split_at(query.selects.len() - parts.len());
        let mut plan = match plan {
            Some(plan) if leading.len() == 1 => plan,
            _ => self.query(&of_selects(leading), around)?,
        };
        plan.types.iter_mut().for_each(|ty| *ty = column_type(*ty));
        for part in &mut parts {
            if part.items.len() != plan.items.len() {
                return Err(errors::error(errors::WRONG_NUMBER_OF_COLUMNS_IN_SELECT, &[]));
            }
            let own = std::mem::replace(&mut part.types, plan.types.clone());
            for ((item, ty), _) in
                part.items.iter_mut().zip(own).zip(&plan.types).filter(|(_, to)| !to.is_text())
            {
                read_numbers(item, ty, &part.sources);
            }
        }
        let mut flags = recursive.iter().map(|(all, _)| *all).skip_while(|all| *all);
        let distinct = flags.next().is_some();
        if flags.any(|all| all) {
            return Err(errors::unsupported(
                "recursive query blocks with UNION DISTINCT then UNION ALL, in recursive Common Table \
                 Expression",
            ));
        }
        let names = self.column_names(&table.columns, &plan)?.into_iter();
        let columns = names.zip(&plan.types).map(|(name, ty)| ColumnDef { name, ..typed(*ty) }).collect();
        let limit = self.limit(query.limit.as_ref())?;
        plan.recursion = Some(Box::new(Recursion { number, parts, distinct, columns, limit }));
        Ok(plan)
    }

    /// A derived table with these columns.
    pub(super) fn derived(
        &self,
        alias: &str,
        columns: impl ExactSizeIterator<Item = (String, Type)>,
        kind: SourceKind,
    ) -> Result<Source, SqlError> {
        let mut names = std::collections::HashSet::with_capacity(columns.len());
        let mut made = Vec::with_capacity(columns.len());
        for (name, ty) in columns {
            self.expand_by(1, SourceColumn::bytes(&name))?;
            // One without a name is a part of the statement: nobody names its columns.
            if !alias.is_empty() && !names.insert(name.to_ascii_lowercase()) {
                return Err(errors::error(errors::DUP_FIELDNAME, &[&name]));
            }
            let filled = u16::try_from(made.len()).ok().and_then(|column| kind.filled(column));
            let (flags, shown_length) = filled.unwrap_or_default();
            made.push(SourceColumn { name, ty, flags, shown_length, merged: false, invisible: false });
        }
        Ok(Source::new(String::new(), alias.to_owned(), alias.to_owned(), made, kind))
    }
}

/// The type of a column whose first rows have this one. An integer is a BIGINT, however few digits it has.
fn column_type(ty: Type) -> Type {
    let length = if ty.kind == kind::LONGLONG { Type::INT.length } else { ty.length };
    Type { nullable: true, length, ..ty }
}

/// Where the column is no text, bits and the members of an ENUM or SET are their numbers, as in INSERT.
fn read_numbers(item: &mut Expr, ty: Type, sources: &[Source]) {
    if ty.kind == kind::BIT {
        let bits = std::mem::replace(item, Expr::Literal(Value::Null));
        *item = number_of_bits((bits, ty)).0;
    } else {
        read_members(item, sources);
    }
}

impl Itself<'_> {
    fn error(&self, code: u16) -> SqlError {
        errors::error(code, &[&self.table.name])
    }

    /// What a part that does not name the table adds to its columns: the first one names them.
    fn add_columns(&self, names: Vec<String>, types: &[Type]) {
        let mut columns = self.columns.borrow_mut();
        match &mut *columns {
            Some(columns) => {
                for ((_, before), ty) in columns.iter_mut().zip(types) {
                    *before = column_type(before.union(*ty));
                }
            }
            None => *columns = Some(names.into_iter().zip(types.iter().copied().map(column_type)).collect()),
        }
    }

    /// Whether a part may be computed for the new rows alone: it names the table this many times.
    fn check_part(&self, select: &ast::Select, part: &SelectPlan, named: u32) -> Result<(), SqlError> {
        if part.grouping.is_some() || part.windowed.is_some() {
            return Err(self.error(errors::CTE_RECURSIVE_FORBIDDEN));
        }
        // What sorts and limits its rows is a derived table without a name.
        let cut = match &select.from {
            Some(ast::TableRef::Derived { query, alias, .. }) if alias.is_empty() => {
                !query.order_by.is_empty() || query.limit.is_some()
            }
            _ => false,
        };
        if cut || part.distinct {
            return Err(errors::unsupported(
                "ORDER BY / LIMIT / SELECT DISTINCT in recursive query block of Common Table Expression",
            ));
        }
        let is_self = |source: &Source| matches!(source.kind, SourceKind::Recursion(n) if n == self.number);
        if named != 1 || !part.sources.iter().any(is_self) {
            return Err(self.error(errors::CTE_RECURSIVE_SINGLE_REFERENCE));
        }
        let missing = part.steps.iter().filter_map(|step| Some(step.source..=step.inner_last?)).flatten();
        if missing.into_iter().any(|source| is_self(&part.sources[source])) {
            return Err(self.error(errors::CTE_RECURSIVE_NOT_FIRST_IN_JOIN));
        }
        Ok(())
    }

    fn source(&self, alias: &str) -> Result<Source, SqlError> {
        if !self.is_union {
            return Err(self.error(errors::CTE_RECURSIVE_REQUIRES_UNION));
        }
        self.named.set(self.named.get() + 1);
        let columns = self.columns.borrow();
        let Some(columns) = &*columns else {
            return Err(self.error(errors::CTE_RECURSIVE_REQUIRES_NONRECURSIVE_FIRST));
        };
        let columns = columns
            .iter()
            .map(|(name, ty)| SourceColumn {
                name: name.clone(),
                ty: *ty,
                flags: 0,
                shown_length: None,
                merged: false,
                invisible: false,
            })
            .collect();
        let kind = SourceKind::Recursion(self.number);
        Ok(Source::new(String::new(), alias.to_owned(), alias.to_owned(), columns, kind))
    }
}
