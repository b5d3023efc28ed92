//! EXPLAIN FORMAT=JSON: the document of `explain_json_format_version = 1`, which tools read, with MySQL's
//! names and their order.
//!
//! Costs are the planner's, in MySQL's unit. A condition that a range or a look-up expresses is not tested
//! again, and so it is not among the attached ones.

use std::fmt::Write;

use sql::ast::{SetOperation, quoted_name};
use sql::expr::Expr;
use sql::plan::access_path::Path;
use sql::plan::multi_table_change::MultiTableChange;
use sql::plan::shown::{Names, Numbers};
use sql::plan::source::{Source, SourceKind};
use sql::plan::{Apply, Condition, Plan, SelectPlan};
use sql::value::json::quote;

use super::access::{Access, Cost, applied, costs, tested};
use super::{numbers_of, result_name};

/// A value of the document.
enum Json {
    Text(String),
    Number(u64),
    Truth(bool),
    List(Vec<Json>),
    Object(Members),
}

type Members = Vec<(&'static str, Json)>;

impl Json {
    fn texts(texts: Vec<String>) -> Json {
        Json::List(texts.into_iter().map(Json::Text).collect())
    }

    fn write(&self, depth: usize, out: &mut String) {
        match self {
            Json::Text(text) => quote(text, out),
            Json::Number(number) => {
                let _ = write!(out, "{number}");
            }
            Json::Truth(truth) => {
                let _ = write!(out, "{truth}");
            }
            Json::List(list) => {
                let each = |item: &Json, out: &mut String| item.write(depth + 1, out);
                write_all(('[', ']'), depth, list, each, out);
            }
            Json::Object(members) => {
                let each = |(name, value): &(&str, Json), out: &mut String| {
                    let _ = write!(out, "\"{name}\": ");
                    value.write(depth + 1, out);
                };
                write_all(('{', '}'), depth, members, each, out);
            }
        }
    }
}

fn write_all<T>(
    (open, close): (char, char),
    depth: usize,
    list: &[T],
    each: impl Fn(&T, &mut String),
    out: &mut String,
) {
    out.push(open);
    for (at, item) in list.iter().enumerate() {
        let _ = write!(out, "{}\n{:2$}", if at > 0 { "," } else { "" }, "", 2 * depth + 2);
        each(item, out);
    }
    if !list.is_empty() {
        let _ = write!(out, "\n{:1$}", "", 2 * depth);
    }
    out.push(close);
}

/// The document for a plan.
pub(super) fn document(plan: &Plan) -> String {
    let members = match plan {
        Plan::Select(select) => Shown { numbers: &numbers_of(select), change: None }.query(select, None),
        Plan::MultiTableChange(change) => {
            Shown { numbers: &numbers_of(&change.query), change: Some(change) }.query(&change.query, None)
        }
        Plan::Update(update) => {
            let target = &update.target;
            of_one_table("update", &target.source, &target.path, &target.filter, target.apply.as_deref())
        }
        Plan::Delete(delete) => {
            let target = &delete.target;
            of_one_table("delete", &target.source, &target.path, &target.filter, target.apply.as_deref())
        }
        Plan::Insert(insert) => {
            let word = if insert.replace { "replace" } else { "insert" };
            let mut block = vec![("select_id", Json::Number(1))];
            let mut from = None;
            if let Some(query) = &insert.query {
                let mut inner = Shown { numbers: &numbers_of(query), change: None }.query(query, None);
                inner.retain(|(name, _)| *name != "select_id");
                if let Some(at) = inner.iter().position(|(name, _)| *name == "cost_info") {
                    block.push(inner.remove(at));
                }
                from = Some(inner);
            }
            let table = vec![
                (word, Json::Truth(true)),
                ("table_name", Json::Text(insert.source.alias.clone())),
                ("access_type", Json::Text("ALL".to_owned())),
            ];
            block.push(("table", Json::Object(table)));
            block.extend(from.map(|from| ("insert_from", Json::Object(from))));
            block
        }
        Plan::Load(_) | Plan::Command(_) => vec![("select_id", Json::Number(1))],
    };
    let mut out = String::new();
    Json::Object(vec![("query_block", Json::Object(members))]).write(0, &mut out);
    out
}

/// A change of one table.
fn of_one_table(
    word: &'static str,
    source: &Source,
    path: &Path,
    filter: &[Condition],
    apply: Option<&Apply>,
) -> Members {
    let names = Names::of_one_table(source);
    let access = Access::new(source, path, &names);
    let mut table = vec![(word, Json::Truth(true))];
    put_access(source, &access, &mut table);
    table.push(("rows_examined_per_scan", Json::Number(access.rows)));
    table.push(("filtered", Json::Text("100.00".to_owned())));
    let applied = apply.into_iter().flat_map(|apply| apply.conditions.iter().map(|(_, of)| of));
    let conditions: Vec<&Expr> = filter.iter().chain(applied).map(|condition| &**condition).collect();
    if !conditions.is_empty() {
        table.push(("attached_condition", Json::Text(names.in_full().show_all(conditions))));
    }
    vec![("select_id", Json::Number(1)), ("table", Json::Object(table))]
}

/// The table's name and how it is read.
fn put_access(source: &Source, access: &Access, table: &mut Members) {
    table.push(("table_name", Json::Text(source.alias.clone())));
    table.push(("access_type", Json::Text(access.kind.to_owned())));
    if !access.possible.is_empty() {
        table.push(("possible_keys", Json::texts(access.possible.clone())));
    }
    match (&access.merged, &access.key) {
        (Some(merged), _) => table.push(("key", Json::Text(merged.clone()))),
        (None, Some(key)) => {
            table.push(("key", Json::Text(key.clone())));
            table.push(("used_key_parts", Json::texts(access.parts.clone())));
        }
        (None, None) => {}
    }
    if let Some(bytes) = access.shown_bytes() {
        table.push(("key_length", Json::Text(bytes)));
    }
    if !access.refs.is_empty() {
        table.push(("ref", Json::texts(access.refs.clone())));
    }
}

fn cost_text(cost: f64) -> Json {
    Json::Text(format!("{cost:.2}"))
}

/// What there is to say of all queries of a statement.
struct Shown<'s> {
    numbers: &'s Numbers,
    change: Option<&'s MultiTableChange>,
}

impl Shown<'_> {
    /// The members of a query block.
    fn query(&self, plan: &SelectPlan, around: Option<&Names<'_>>) -> Members {
        if plan.unions.is_empty() {
            return self.part(plan, around);
        }
        let name = match plan.operation {
            SetOperation::Union => "union_result",
            SetOperation::Except => "except_result",
            SetOperation::Intersect => "intersect_result",
        };
        let others = plan.unions.iter().map(|(_, part)| (self.query(part, around), part));
        let specifications = std::iter::once((self.part(plan, around), plan)).chain(others);
        let mut result = vec![("using_temporary_table", Json::Truth(plan.makes_table()))];
        if plan.makes_table() {
            result.push(("select_id", Json::Number(self.numbers.behind_all())));
            result.push(("table_name", Json::Text(result_name(plan, self.numbers))));
            result.push(("access_type", Json::Text("ALL".to_owned())));
            if !plan.order.is_empty() {
                result.push(("using_filesort", Json::Truth(true)));
            }
        }
        let block = |(members, part): (Members, &SelectPlan)| subquery_of(part, members);
        result.push(("query_specifications", Json::List(specifications.map(block).collect())));
        vec![(name, Json::Object(result))]
    }

    /// One SELECT.
    fn part(&self, plan: &SelectPlan, around: Option<&Names<'_>>) -> Members {
        let input = plan.windowed.as_ref().map_or(plan, |windowed| &windowed.input);
        let names = Names::of(input, around, self.numbers);
        let costs = costs(input);
        let mut block = vec![("select_id", Json::Number(self.numbers.of(plan)))];
        match costs.last() {
            Some(cost) => {
                block.push(("cost_info", Json::Object(vec![("query_cost", cost_text(cost.prefix))])));
            }
            None => block.push(("message", Json::Text("No tables used".to_owned()))),
        }
        let mut inner = self.tables(input, &names, &costs);
        inner.extend(self.subqueries("select_list_subqueries", plan, &names, &items));
        if input.grouping.as_ref().is_some_and(|grouping| !grouping.keys.is_empty()) {
            inner = wrapped("grouping_operation", true, false, inner);
        }
        if let Some(windowed) = &plan.windowed {
            let mut window = vec![("windows", Json::List(windows(windowed, &names)))];
            window.extend(inner);
            inner = vec![("windowing", Json::Object(window))];
        }
        if plan.distinct {
            inner = wrapped("duplicates_removal", true, false, inner);
        }
        if !plan.order.is_empty() && plan.unions.is_empty() {
            inner = wrapped("ordering_operation", false, true, inner);
        }
        block.extend(inner);
        block.extend(self.subqueries("having_subqueries", input, &names, &having));
        block.extend(self.subqueries("order_by_subqueries", plan, &names, &order));
        block
    }

    /// The steps of the join.
    fn tables(&self, plan: &SelectPlan, names: &Names<'_>, costs: &[Cost]) -> Members {
        let mut tables: Vec<Json> =
            (0..plan.steps.len()).map(|at| Json::Object(self.table(plan, at, names, costs[at]))).collect();
        match tables.len() {
            0 => Vec::new(),
            1 => tables.pop().map(|table| ("table", table)).into_iter().collect(),
            _ => {
                let each = tables.into_iter().map(|table| Json::Object(vec![("table", table)]));
                vec![("nested_loop", Json::List(each.collect()))]
            }
        }
    }

    fn table(&self, plan: &SelectPlan, at: usize, names: &Names<'_>, cost: Cost) -> Members {
        let step = &plan.steps[at];
        let (source, path): (&Source, &Path) = (&plan.sources[step.source], &step.path);
        let access = Access::of_step(plan, at, names);
        let mut table = Vec::new();
        if let Some(change) = self.change.filter(|_| plan.changed.contains(&(step.source as u16))) {
            table.push((if change.updates() { "update" } else { "delete" }, Json::Truth(true)));
        }
        put_access(source, &access, &mut table);
        table.push(("rows_examined_per_scan", Json::Number(access.rows)));
        table.push(("rows_produced_per_join", Json::Number(cost.rows as u64)));
        table.push(("filtered", Json::Text("100.00".to_owned())));
        let flags = [("backward_index_scan", path.backward), ("using_index", path.covering)];
        table.extend(flags.into_iter().filter(|(_, is)| *is).map(|(name, _)| (name, Json::Truth(true))));
        if plan.joins_by_hash(step) {
            table.push(("using_join_buffer", Json::Text("hash join".to_owned())));
        }
        let shown = vec![
            ("read_cost", cost_text(cost.read)),
            ("eval_cost", cost_text(cost.eval)),
            ("prefix_cost", cost_text(cost.prefix)),
        ];
        table.push(("cost_info", Json::Object(shown)));
        let mut used = plan.needed.get(step.source).cloned().unwrap_or_default();
        used.sort_unstable();
        let name = |column: u16| source.columns.get(usize::from(column)).map(|of| of.name.clone());
        let used: Vec<String> = used.into_iter().filter_map(name).collect();
        if !used.is_empty() {
            table.push(("used_columns", Json::texts(used)));
        }
        let mut conditions = tested(plan, at);
        if at == 0 {
            conditions.extend(plan.constant_conditions.iter().map(|condition| &**condition));
        }
        if at + 1 == plan.steps.len() {
            conditions.extend(applied(plan));
        }
        if !conditions.is_empty() {
            let shown = names.in_full().show_all(conditions.iter().copied());
            table.push(("attached_condition", Json::Text(shown)));
        }
        if let SourceKind::Derived(inner) = &source.kind {
            let mut made = vec![("using_temporary_table", Json::Truth(true))];
            if let Json::Object(members) = subquery_of(inner, self.query(inner, Some(names))) {
                made.extend(members);
            }
            table.push(("materialized_from_subquery", Json::Object(made)));
        }
        let attached = |_: &SelectPlan| conditions.clone();
        table.extend(self.subqueries("attached_subqueries", plan, names, &attached));
        table
    }

    /// The subqueries that stand in some of the expressions of a query.
    fn subqueries<'p>(
        &self,
        name: &'static str,
        plan: &'p SelectPlan,
        names: &Names<'_>,
        of: &dyn Fn(&'p SelectPlan) -> Vec<&'p Expr>,
    ) -> Option<(&'static str, Json)> {
        let mut found = Vec::new();
        of(plan).into_iter().for_each(|expr| {
            expr.visit_subqueries(&mut |number| {
                if !found.contains(&number) {
                    found.push(number);
                }
            });
        });
        let plans = found.into_iter().filter_map(|number| plan.subqueries.get(usize::from(number)));
        let list: Vec<Json> = plans.map(|inner| subquery_of(inner, self.query(inner, Some(names)))).collect();
        (!list.is_empty()).then_some((name, Json::List(list)))
    }
}

fn items(plan: &SelectPlan) -> Vec<&Expr> {
    plan.items.iter().collect()
}

fn having(plan: &SelectPlan) -> Vec<&Expr> {
    plan.grouping.iter().flat_map(|grouping| &grouping.having).collect()
}

fn order(plan: &SelectPlan) -> Vec<&Expr> {
    plan.order.iter().map(|(expr, _)| expr).collect()
}

/// A query inside another.
fn subquery_of(plan: &SelectPlan, members: Members) -> Json {
    let depends = plan.follows_rows();
    Json::Object(vec![
        ("dependent", Json::Truth(depends)),
        ("cacheable", Json::Truth(!depends)),
        ("query_block", Json::Object(members)),
    ])
}

fn wrapped(name: &'static str, makes_table: bool, sorts: bool, inner: Members) -> Members {
    let mut outer = Vec::new();
    if makes_table {
        outer.push(("using_temporary_table", Json::Truth(true)));
    }
    outer.push(("using_filesort", Json::Truth(sorts)));
    outer.extend(inner);
    vec![(name, Json::Object(outer))]
}

fn windows(windowed: &sql::plan::window::Windowed, names: &Names<'_>) -> Vec<Json> {
    let each = windowed.windows.iter().map(|window| {
        let name = window.calls.first().map_or("", |(_, call)| &call.window);
        let mut members = vec![("name", Json::Text(name.to_owned()))];
        let keys = window.partition.iter().chain(window.order.iter().map(|(expr, _)| expr));
        // What windows are made of are the values of the query inside.
        let column = |source: u16, column: u16| {
            let source = windowed.input.sources.get(usize::from(source));
            let column = source.and_then(|source| source.columns.get(usize::from(column)));
            quoted_name(column.map_or("?", |column| &column.name))
        };
        let keys = keys.filter_map(|key| windowed.value_inside(key)).map(|key| match key {
            Expr::Column { source, column: number } => column(*source, *number),
            other => names.show(other),
        });
        let keys: Vec<String> = keys.collect();
        if !keys.is_empty() {
            members.push(("using_filesort", Json::Truth(true)));
            members.push(("filesort_key", Json::texts(keys)));
        }
        let functions = window.calls.iter().map(|(_, call)| call.function.name().to_owned()).collect();
        members.push(("functions", Json::texts(functions)));
        Json::Object(members)
    });
    each.collect()
}
