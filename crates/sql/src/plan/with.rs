//! WITH: common table expressions, each planned where it is named, as a derived table.
//!
//! A recursive one has parts that read its own rows ([`SourceKind::Recursion`]). The other parts say what
//! columns it has and give its first rows; then the parts that name it are executed again and again, each
//! time for the rows that came new the last time, until there are none.

use std::cell::{Cell, RefCell};

use super::source::{Source, SourceColumn, SourceKind};
use super::{Planner, SelectPlan};
use crate::ast;
use crate::errors;
use crate::expr::bind::scope::Scope;
use crate::expr::types::Type;
use crate::result::{ColumnMeta, SqlError};

/// The parts of a recursive common table that read it.
#[derive(Debug)]
pub struct Recursion {
    /// Its number in the statement.
    pub number: u32,
    /// They read the rows that came new the last time.
    pub parts: Vec<SelectPlan>,
    /// UNION: a row that is there already is not new.
    pub distinct: bool,
}

/// What is around a query: the queries whose columns it may read, and the common tables that it may name.
#[derive(Clone, Copy, Default)]
pub struct Around<'s> {
    /// The query that it is a subquery of.
    pub outer: Option<&'s Scope<'s>>,
    /// The innermost WITH.
    pub with: Option<&'s With<'s>>,
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
    /// Once they are known.
    columns: RefCell<Option<Vec<(String, Type)>>>,
    is_named: Cell<bool>,
}

impl<'s> With<'s> {
    /// The tables of a WITH.
    pub fn new(tables: &'s [ast::CommonTable], around: Around<'s>) -> With<'s> {
        With { tables, around, itself: None }
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
                && itself.table.name.eq_ignore_ascii_case(&name.name)
            {
                return itself.source(alias).map(Some);
            }
            let named = |table: &ast::CommonTable| table.name.eq_ignore_ascii_case(&name.name);
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
                let around = Around { outer, with: Some(&before) };
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
        let names = self.column_names(table, &plan)?;
        let columns: Vec<(String, Type)> = names.into_iter().zip(plan.types.iter().copied()).collect();
        self.derived(alias, columns.into_iter(), SourceKind::Derived(Box::new(plan)))
    }

    fn column_names(&self, table: &ast::CommonTable, plan: &SelectPlan) -> Result<Vec<String>, SqlError> {
        if table.columns.is_empty() {
            return Ok(plan.columns.metas().iter().map(|ColumnMeta { name, .. }| name.clone()).collect());
        }
        if table.columns.len() != plan.items.len() {
            return Err(errors::error(errors::VIEW_WRONG_LIST, &[]));
        }
        Ok(table.columns.clone())
    }

    /// Plans a common table that may name itself.
    fn recursive(&self, table: &ast::CommonTable, around: Around<'_>) -> Result<SelectPlan, SqlError> {
        let number = self.recursions.get();
        self.recursions.set(number + 1);
        let itself = Itself { table, number, columns: RefCell::new(None), is_named: Cell::new(false) };
        let with = With { tables: &[], around, itself: Some(&itself) };
        let inside = Around { outer: around.outer, with: Some(&with) };
        let query = &table.query;
        let mut first = 0;
        let (mut plan, mut parts) = (None::<SelectPlan>, Vec::new());
        for (at, (_, select)) in query.selects.iter().enumerate() {
            let part = ast::Query {
                with: query.with.clone(),
                operation: ast::SetOperation::Union,
                selects: vec![(true, select.clone())],
                order_by: Vec::new(),
                limit: None,
                locking: None,
                into: ast::Destination::Client,
            };
            let part = self.query(&part, inside)?;
            if itself.is_named.get() {
                parts.push(part);
                continue;
            }
            first = at + 1;
            let names = self.column_names(table, &part)?;
            let types = part.types.iter().map(|ty| Type { nullable: true, ..*ty });
            let columns: Vec<(String, Type)> = names.into_iter().zip(types).collect();
            itself.columns.borrow_mut().get_or_insert(columns);
            plan = Some(part);
        }
        if parts.is_empty() {
            return self.query(query, around);
        }
        if query.operation != ast::SetOperation::Union {
            return Err(errors::unsupported("EXCEPT or INTERSECT of a recursive common table with itself"));
        }
        let refused = !query.order_by.is_empty() || query.limit.is_some() || query.locking.is_some();
        if refused || parts.len() + first != query.selects.len() {
            return Err(errors::unsupported(
                "ORDER BY, LIMIT or FOR UPDATE of a recursive common table, or a part of it that does not read it \
                 behind one that does",
            ));
        }
        let leading = ast::Query {
            with: query.with.clone(),
            operation: ast::SetOperation::Union,
            selects: query.selects[..first].to_vec(),
            order_by: Vec::new(),
            limit: None,
            locking: None,
            into: ast::Destination::Client,
        };
        let mut plan = match plan {
            Some(plan) if first == 1 => plan,
            _ => self.query(&leading, around)?,
        };
        for ty in &mut plan.types {
            ty.nullable = true;
        }
        for part in &mut parts {
            if part.items.len() != plan.items.len() {
                return Err(errors::error(errors::WRONG_NUMBER_OF_COLUMNS_IN_SELECT, &[]));
            }
            let own = std::mem::replace(&mut part.types, plan.types.clone());
            part.convert_items(&own);
            let computed = part.grouping.is_some() || part.windowed.is_some();
            if computed || part.distinct || !part.order.is_empty() || part.limit.is_some() {
                return Err(errors::error(errors::CTE_RECURSIVE_FORBIDDEN, &[&table.name]));
            }
        }
        let distinct = query.selects[first..].iter().any(|(all, _)| !all);
        plan.recursion = Some(Box::new(Recursion { number, parts, distinct }));
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
            made.push(SourceColumn { name, ty, flags: 0, shown_length: None, merged: false });
        }
        Ok(Source::new(String::new(), alias.to_owned(), alias.to_owned(), made, kind))
    }
}

impl Itself<'_> {
    fn source(&self, alias: &str) -> Result<Source, SqlError> {
        self.is_named.set(true);
        let columns = self.columns.borrow();
        let Some(columns) = &*columns else {
            return Err(errors::error(
                errors::CTE_RECURSIVE_REQUIRES_NONRECURSIVE_FIRST,
                &[&self.table.name],
            ));
        };
        let columns = columns
            .iter()
            .map(|(name, ty)| SourceColumn {
                name: name.clone(),
                ty: *ty,
                flags: 0,
                shown_length: None,
                merged: false,
            })
            .collect();
        let kind = SourceKind::Recursion(self.number);
        Ok(Source::new(String::new(), alias.to_owned(), alias.to_owned(), columns, kind))
    }
}
