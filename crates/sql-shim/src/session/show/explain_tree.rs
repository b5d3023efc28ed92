//! EXPLAIN FORMAT=TREE of a query: a line for each operation, those that it reads from indented below it, in
//! MySQL's words, with the rows that are estimated.
//!
//! It says less than MySQL's: no costs, and of conditions only what a hash join looks for.

use std::fmt::Write;

use sql::expr::Expr;
use sql::plan::access_path::{Path, equalities};
use sql::plan::source::{Source, SourceKind};
use sql::plan::{SelectPlan, Step};

/// The text for a query.
pub(super) fn tree_of(plan: &SelectPlan) -> String {
    let mut text = String::new();
    query(plan, 0, &mut text);
    text
}

fn line(depth: usize, what: &str, text: &mut String) {
    let _ = writeln!(text, "{:1$}-> {what}", "", 4 * depth);
}

fn query(plan: &SelectPlan, depth: usize, text: &mut String) {
    if let Some(windowed) = &plan.windowed {
        line(depth, "Window aggregate", text);
        return query(&windowed.input, depth + 1, text);
    }
    let mut depth = depth;
    let mut around = |what: &str, text: &mut String| {
        line(depth, what, text);
        depth += 1;
    };
    if plan.limit.is_some() {
        around("Limit", text);
    }
    if !plan.unions.is_empty() {
        around("Union materialize", text);
    }
    if !plan.order.is_empty() {
        around("Sort", text);
    }
    if plan.distinct {
        around("Deduplicate", text);
    }
    match &plan.grouping {
        Some(grouping) if grouping.keys.is_empty() => around("Aggregate", text),
        Some(_) => around("Aggregate using temporary table", text),
        None => {}
    }
    match plan.steps.len().checked_sub(1) {
        Some(last) => join(plan, last, depth, text),
        None => line(depth, "Rows fetched before execution", text),
    }
    for (_, other) in &plan.unions {
        query(other, depth, text);
    }
    for subquery in &plan.subqueries {
        line(depth, "Select (subquery in condition or projection)", text);
        query(subquery, depth + 1, text);
    }
}

/// The steps up to this one.
fn join(plan: &SelectPlan, at: usize, depth: usize, text: &mut String) {
    let step = &plan.steps[at];
    let Some(before) = at.checked_sub(1) else { return access(plan, step, depth, text) };
    let left = step.inner_last == Some(at);
    if plan.joins_by_hash(step) {
        let kind = if left { "Left hash join" } else { "Inner hash join" };
        line(depth, &format!("{kind} ({})", looked_for(plan, step)), text);
        join(plan, before, depth + 1, text);
        line(depth + 1, "Hash", text);
        return access(plan, step, depth + 2, text);
    }
    let kind = if left { "Nested loop left join" } else { "Nested loop inner join" };
    line(depth, kind, text);
    join(plan, before, depth + 1, text);
    access(plan, step, depth + 1, text);
}

/// The equalities of a hash join.
fn looked_for(plan: &SelectPlan, step: &Step) -> String {
    let name = |source: &Source, column: u16| {
        let column = source.columns.get(usize::from(column)).map_or("?", |column| &column.name);
        format!("{}.{column}", source.alias)
    };
    let own = &plan.sources[step.source];
    let mut parts = Vec::new();
    for (column, wanted) in equalities(&step.all_conditions, step.source as u16) {
        if let Expr::Column { source, column: of } = wanted {
            let other = &plan.sources[usize::from(*source)];
            parts.push(format!("{} = {}", name(own, column), name(other, *of)));
        }
    }
    parts.join(", ")
}

fn access(plan: &SelectPlan, step: &Step, depth: usize, text: &mut String) {
    let source = &plan.sources[step.source];
    let filtered = !step.filter.is_empty();
    if filtered {
        line(depth, "Filter", text);
    }
    let depth = depth + usize::from(filtered);
    let rows = |path: &Path| format!("(rows={})", (path.rows as u64).max(1));
    match &source.kind {
        SourceKind::Table(_) => {
            line(depth, &format!("{}  {}", scan(source, &step.path), rows(&step.path)), text);
        }
        SourceKind::Derived(inner) => {
            line(depth, &format!("Table scan on {}", source.alias), text);
            line(depth + 1, "Materialize", text);
            query(inner, depth + 2, text);
        }
        _ => line(depth, &format!("Table scan on {}", source.alias), text),
    }
}

fn scan(source: &Source, path: &Path) -> String {
    let key = source.engine_table().and_then(|table| match path.index {
        untorn::engine::ScanIndex::Clustered => table.def.clustered_key(),
        untorn::engine::ScanIndex::Secondary(n) => table.def.secondary_keys().get(n),
    });
    let covering = if path.covering { "Covering index " } else { "Index " };
    let using = key.map_or(String::new(), |key| format!(" using {}", key.name));
    let back = if path.backward { " (reverse)" } else { "" };
    let alias = &source.alias;
    match (path.unique, path.last.is_empty(), path.equal.is_empty()) {
        (true, ..) => format!("Single-row index lookup on {alias}{using}"),
        (_, false, _) => format!("{covering}range scan on {alias}{using}{back}"),
        (_, true, false) => format!("{covering}lookup on {alias}{using}{back}"),
        (_, true, true) if path.covering || path.backward => {
            format!("{covering}scan on {alias}{using}{back}")
        }
        _ => format!("Table scan on {alias}"),
    }
}
