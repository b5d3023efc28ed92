//! EXPLAIN: a row for each step of the join, with MySQL's columns; then those of derived tables and
//! subqueries.

use std::sync::Arc;

use sql::ast::{ExplainFormat, Statement};
use sql::catalog_views::{number, text};
use sql::errors;
use sql::exec::Rows;
use sql::failure::Failure;
use sql::plan::access_path::{Path, equalities};
use sql::plan::multi_table_change::MultiTableChange;
use sql::plan::source::{Source, SourceKind};
use sql::plan::{Plan, SelectPlan};
use sql::privilege::Privileges;
use sql::value::Value;

use super::super::Session;
use super::Answer;
use super::explain_tree::tree_of;

impl Session {
    /// EXPLAIN of a query: a row for each step of the join.
    pub(super) async fn explain(
        &mut self,
        statement: Arc<Statement>,
        format: ExplainFormat,
    ) -> Result<Answer, Failure> {
        let plan = self.planned(move |planner| {
            planner.explains.set(true);
            planner.data(&statement)
        });
        let plan = plan.await?;
        for view in plan.iter().flat_map(Plan::views) {
            let rights = self.state.rights();
            if !rights.on_table(&view.database, &view.name).has(Privileges::SHOW_VIEW) {
                return Err(errors::error(errors::VIEW_NO_EXPLAIN, &[]).into());
            }
        }
        if let (ExplainFormat::Tree, Some(Plan::Select(select))) = (format, &*plan) {
            return Ok(Answer::texts(&[("EXPLAIN", 1 << 20)], vec![vec![text(tree_of(select))]]));
        }
        let mut rows = Vec::new();
        match &*plan {
            None | Some(Plan::Command(_) | Plan::Load(_)) => {}
            Some(Plan::Select(select)) => explain_select(select, None, &mut 1, &mut rows),
            Some(Plan::Update(update)) => rows.push(explain_path(
                1,
                "UPDATE",
                &update.target.source,
                &update.target.path,
                "Using where",
            )),
            Some(Plan::Delete(delete)) => rows.push(explain_path(
                1,
                "DELETE",
                &delete.target.source,
                &delete.target.path,
                "Using where",
            )),
            Some(Plan::MultiTableChange(change)) => explain_multi_table_change(change, &mut rows),
            Some(Plan::Insert(insert)) => {
                rows.push(explain_path(1, "INSERT", &insert.source, &Path::everything(), ""))
            }
        }
        let answer = Answer::texts(
            &[
                ("id", 3),
                ("select_type", 19),
                ("table", 64),
                ("partitions", 64),
                ("type", 10),
                ("possible_keys", 4096),
                ("key", 64),
                ("key_len", 4096),
                ("ref", 1024),
                ("rows", 21),
                ("filtered", 5),
                ("Extra", 255),
            ],
            rows,
        );
        Ok(answer.number(0).number(9))
    }
}

/// The steps of a query, then those of its derived tables and subqueries; `next` is its number.
fn explain_select(plan: &SelectPlan, kind: Option<&str>, next: &mut u64, rows: &mut Rows) {
    if let Some(windowed) = &plan.windowed {
        return explain_select(&windowed.input, kind, next, rows);
    }
    let id = *next;
    *next += 1;
    let derived = plan.sources.iter().filter_map(|source| match &source.kind {
        SourceKind::Derived(inner) => Some(inner),
        _ => None,
    });
    let inner: Vec<_> = derived.collect();
    let alone = plan.subqueries.is_empty() && plan.unions.is_empty() && inner.is_empty();
    let kind = kind.unwrap_or(if alone { "SIMPLE" } else { "PRIMARY" });
    for (at, step) in plan.steps.iter().enumerate() {
        let source = &plan.sources[step.source];
        let mut extra = Vec::new();
        if !step.filter.is_empty() {
            extra.push("Using where");
        }
        if step.path.covering {
            extra.push("Using index");
        }
        if plan.joins_by_hash(step) {
            extra.push("Using join buffer (hash join)");
        }
        if step.path.backward {
            extra.push("Backward index scan");
        }
        if plan.first_value_decides {
            extra.push("First value decides");
        }
        if plan.grouping.as_ref().is_some_and(|grouping| !grouping.keys.is_empty()) {
            extra.push("Using temporary");
        }
        if !plan.order.is_empty() {
            extra.push("Using filesort");
        }
        let mut row = explain_path(id, kind, source, &step.path, &extra.join("; "));
        let looked_up = at > 0
            && source.engine_table().is_none()
            && !equalities(&step.all_conditions, step.source as u16).is_empty();
        if looked_up {
            (row[4], row[5], row[6]) = (text("ref"), text("<auto_key0>"), text("<auto_key0>"));
        }
        rows.push(row);
    }
    if plan.steps.is_empty() {
        let mut row = vec![number(id), text(kind)];
        row.extend(std::iter::repeat_n(Value::Null, 9));
        row.push(text("No tables used"));
        rows.push(row);
    }
    for derived in inner {
        explain_select(derived, Some("DERIVED"), next, rows);
    }
    for subquery in &plan.subqueries {
        explain_select(subquery, Some("SUBQUERY"), next, rows);
    }
}

/// The tables that are changed are shown as such.
fn explain_multi_table_change(change: &MultiTableChange, rows: &mut Rows) {
    let first = rows.len();
    explain_select(&change.query, None, &mut 1, rows);
    for (step, row) in change.query.steps.iter().zip(&mut rows[first..]) {
        if change.query.changed.contains(&(step.source as u16)) {
            row[1] = text(if change.updates() { "UPDATE" } else { "DELETE" });
        }
    }
}

fn explain_path(id: u64, kind: &str, source: &Source, path: &Path, extra: &str) -> Vec<Value<'static>> {
    let access = match (path.unique, path.equal.is_empty(), path.last.is_empty()) {
        (true, ..) => "const",
        (_, false, true) => "ref",
        (_, _, false) => "range",
        (_, true, true) if path.covering => "index",
        _ => "ALL",
    };
    let key = source.engine_table().and_then(|table| match path.index {
        untorn::engine::ScanIndex::Clustered => table.def.clustered_key().filter(|_| access != "ALL"),
        untorn::engine::ScanIndex::Secondary(n) => table.def.secondary_keys().get(n),
    });
    let key = key.map_or(Value::Null, |key| text(&*key.name));
    let estimate = match source.engine_table() {
        Some(_) if path.rows > 0.0 => path.rows as u64,
        table => table.map_or(0, |table| table.row_count_estimate()),
    };
    vec![
        number(id),
        text(kind),
        text(&*source.alias),
        Value::Null,
        text(access),
        key.clone(),
        key,
        Value::Null,
        Value::Null,
        number(if path.unique { 1 } else { estimate.max(1) }),
        text("100.00"),
        if extra.is_empty() { Value::Null } else { text(extra) },
    ]
}
