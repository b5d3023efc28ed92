//! Where an index gives the order: no sort for ORDER BY, and no scan for MIN and MAX.
//!
//! Rows of a path come in the order of the columns behind those with one value, as long as the path has one
//! range. Then ORDER BY by these columns, all in one direction, needs no sort, and MIN or MAX of the first of
//! them is the first row. With LIMIT a full scan follows an index that gives the order.

use std::sync::Arc;

use untorn::Table;
use untorn::engine::ScanIndex;
use untorn::types::ColumnType;

use super::access_path::{Alternative, Path, covers, indexes, key_of};
use super::aggregate::AggregateKind;
use super::functional_keys::KeyExpressions;
use super::{Planner, SelectPlan};
use crate::expr::Expr;
use crate::value::{Value, collation};

/// Whether an equality will be a key when it is executed. One that turns out not to be (a number beside a
/// text, a text under another collation) reads the whole index and checks each row: then rows do not come in
/// the order of what stands behind it.
fn has_key_for_certain(kind: &ColumnType, one: &Alternative) -> bool {
    let Alternative::Equal(value) = one else { return true };
    match value {
        Expr::Literal(Value::Text(_, of_value)) if kind.is_string() => {
            let rule = kind.collation();
            let common = collation::common(rule, *of_value);
            common == rule || collation::is_finest(common, rule.pads())
        }
        Expr::Literal(value) if kind.integer().is_some() => {
            !value.is_temporal() && !matches!(value, Value::Float(_) | Value::Double(_))
        }
        _ => !kind.is_string(),
    }
}

/// Whether rows come in the wanted order: `Some(backward)`.
pub(super) fn order_of(
    table: &Table,
    source: u16,
    path: &Path,
    order: &[(Expr, bool)],
    expressions: &KeyExpressions,
) -> Option<bool> {
    if !path.merged.is_empty() {
        return None;
    }
    let key = key_of(table, path.index)?;
    let mut columns: Vec<u16> = Vec::new();
    for part in &key.parts {
        if part.prefix_chars.is_some() {
            break;
        }
        columns.push(part.column);
    }
    if columns.len() == key.parts.len() && path.index != ScanIndex::Clustered {
        columns.extend(table.def.clustered_key().iter().flat_map(|key| &key.parts).map(|part| part.column));
    }
    let backward = order.first()?.1;
    let fixed = path.equal.len();
    let mut equal = path.equal.iter().zip(&columns);
    if !equal.all(|(one, column)| has_key_for_certain(&table.def.columns[usize::from(*column)].kind, one)) {
        return None;
    }
    let single = path.last.len() <= 1 && !matches!(path.last[..], [Alternative::AnyOf(_)]);
    let mut at = fixed;
    for (expr, descending) in order {
        let is_column = |column: &u16| match expr {
            Expr::Column { source: of, column: number } => *of == source && number == column,
            other => expressions.is(other, *column),
        };
        if *descending != backward {
            return None;
        }
        if columns[..fixed.min(columns.len())].iter().any(is_column) {
            continue;
        }
        if !columns.get(at).is_some_and(is_column) {
            return None;
        }
        // Several ranges follow each other in the order of their column; what is behind it starts over in
        // each.
        if at > fixed && !single {
            return None;
        }
        at += 1;
    }
    Some(backward)
}

impl Planner<'_> {
    /// Drops the sort if an index gives the order.
    pub(super) fn use_index_order(&self, plan: &mut SelectPlan) {
        let single = plan.steps.len() == 1 && plan.grouping.is_none() && plan.unions.is_empty();
        if !single || plan.order.is_empty() {
            return;
        }
        let source = plan.steps[0].source;
        let Some(table) = plan.sources[source].engine_table().map(Arc::clone) else { return };
        let number = source as u16;
        let expressions = self.key_expressions(&plan.sources[source], number);
        if let Some(backward) = order_of(&table, number, &plan.steps[0].path, &plan.order, &expressions) {
            plan.steps[0].path.backward = backward;
            plan.order.clear();
            return;
        }
        // With a LIMIT, a full scan may as well follow the index that gives the order.
        if plan.limit.is_some() && plan.steps[0].path.is_full_scan() {
            for index in indexes(&table) {
                let covering = covers(&table, index.index, &plan.needed[source]);
                let path = Path { index: index.index, covering, ..Path::everything() };
                if let Some(backward) = order_of(&table, number, &path, &plan.order, &expressions) {
                    plan.steps[0].path = Path { backward, ..path };
                    plan.order.clear();
                    return;
                }
            }
        }
    }
}

/// MIN or MAX of a column by the first row of an index that has it behind columns with one value.
pub(super) fn use_index_end(plan: &mut SelectPlan) {
    let [step] = &plan.steps[..] else { return };
    let Some(grouping) = plan.grouping.as_ref().filter(|grouping| grouping.keys.is_empty()) else { return };
    let [aggregate] = &grouping.aggregates[..] else { return };
    let descending = match aggregate.kind {
        AggregateKind::Min => false,
        AggregateKind::Max => true,
        _ => return,
    };
    let [argument @ Expr::Column { column, .. }] = &aggregate.arguments[..] else { return };
    let Some(table) = plan.sources[step.source].engine_table().map(Arc::clone) else { return };
    let Some(def) = table.def.columns.get(usize::from(*column)) else { return };
    // Their names are compared, and their numbers are what an index is sorted by.
    if matches!(def.kind, ColumnType::Enum { .. } | ColumnType::Set { .. }) {
        return;
    }
    let source = step.source as u16;
    let wanted = [(argument.clone(), descending)];
    let mut paths = vec![step.path.clone()];
    // Without conditions any index will do; with one that no range expresses, its first row may be far.
    if step.path.is_full_scan() && step.filter.is_empty() {
        paths.extend(indexes(&table).iter().map(|index| Path {
            index: index.index,
            covering: index.index != ScanIndex::Clustered
                && covers(&table, index.index, &plan.needed[step.source]),
            ..Path::everything()
        }));
    }
    for mut path in paths {
        let Some(backward) = order_of(&table, source, &path, &wanted, &KeyExpressions::default()) else {
            continue;
        };
        path.backward = backward;
        if path.last.is_empty() && !path.columns.contains(column) {
            // NULL, which comes first, is no value.
            path.columns.push(*column);
            path.last = vec![Alternative::Range { lower: None, upper: None }];
        }
        plan.steps[0].path = path;
        plan.first_value_decides = true;
        return;
    }
}
