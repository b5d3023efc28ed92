//! Rows that are there, filtered by a condition: SHOW … WHERE.

use std::sync::Arc;

use super::finish::Pending;
use super::query::push_conjuncts;
use super::source::SourceKind;
use super::{Plan, Planner, SelectPlan};
use crate::ast;
use crate::exec::Rows;
use crate::expr::Expr;
use crate::expr::bind::Binder;
use crate::expr::types::Type;
use crate::result::{ResultColumns, SqlError};

impl Planner<'_> {
    /// A query of all columns of `rows`, those that meet the condition.
    ///
    /// # Errors
    /// What is wrong with the condition.
    pub fn given_rows(
        &self,
        columns: &[(String, Type)],
        rows: &Arc<Rows>,
        condition: &ast::Expr,
    ) -> Result<Plan, SqlError> {
        let source = self.derived("", columns.iter().cloned(), SourceKind::Given(rows.clone()))?;
        let sources = self.elsewhere(vec![source]);
        let mut binder = Binder::new(self, &sources);
        binder.clause = "where clause";
        let mut conjuncts = Vec::new();
        push_conjuncts(binder.condition(condition)?, &mut conjuncts);
        let subqueries = std::mem::take(&mut binder.subqueries);
        drop(binder);
        let (names, types): (Vec<&String>, Vec<Type>) = columns.iter().map(|(name, ty)| (name, *ty)).unzip();
        let metas = names.into_iter().zip(&types).map(|(name, ty)| ty.meta(name)).collect();
        let items = (0..types.len()).map(|at| Expr::Column { source: 0, column: at as u16 }).collect();
        let mut plan = SelectPlan {
            sources: sources.into_inner(),
            subqueries,
            ..SelectPlan::of_items(items, types, ResultColumns::new(metas))
        };
        let pending = Pending { conjuncts, outer: Vec::new(), hints: vec![Vec::new()], straight: false };
        self.finish(&mut plan, pending)?;
        Ok(Plan::Select(self.charged_plan(plan)?))
    }
}
