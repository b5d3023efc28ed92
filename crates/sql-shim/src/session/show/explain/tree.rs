//! EXPLAIN FORMAT=TREE of a query: a line for each operation, those that it reads from indented below it, in
//! MySQL's words, with what is estimated and, for EXPLAIN ANALYZE, what was measured.

use std::fmt::Write;

use sql::ast::SetOperation;
use sql::exec::measure::{Measured, Part};
use sql::expr::Expr;
use sql::plan::access_path::{Alternative, Path, key_of, lookup_equalities};
use sql::plan::shown::{Names, Numbers};
use sql::plan::source::{Source, SourceKind};
use sql::plan::{Grouping, SelectPlan};
use untorn::engine::ScanIndex;

use super::Found;
use super::access::{Cost, HASHED, applied, costs, key_part_name, tested};
use super::readable::readable;

/// Of more ranges only the number is said.
const RANGES_SHOWN: usize = 3;

/// Writes trees.
pub(super) struct Tree<'t> {
    numbers: &'t Numbers,
    found: Option<&'t Found>,
    text: String,
}

/// What was measured of an operation: it begins, gives rows, and ends.
#[derive(Clone, Copy)]
struct Actual {
    loops: u64,
    rows: u64,
    first: f64,
    total: f64,
}

impl Actual {
    fn of(measured: &Measured, rows: u64) -> Actual {
        let ms = |time: std::time::Duration| time.as_secs_f64() * 1000.0;
        Actual { loops: measured.loops, rows, first: ms(measured.first), total: ms(measured.total) }
    }
}

/// A query and what was found of it.
struct Query<'q> {
    plan: &'q SelectPlan,
    names: Names<'q>,
    costs: Vec<Cost>,
}

impl<'t> Tree<'t> {
    pub(super) fn new(numbers: &'t Numbers, found: Option<&'t Found>) -> Tree<'t> {
        Tree { numbers, found, text: String::new() }
    }

    /// The tree of a statement.
    pub(super) fn of_query(mut self, plan: &SelectPlan) -> String {
        self.query(plan, None, 0);
        self.text
    }

    fn line(&mut self, depth: usize, what: &str, cost: Option<Cost>, actual: Option<Actual>) {
        let _ = write!(self.text, "{:1$}-> {what}", "", 4 * depth);
        let mut space = "  ";
        if let Some(Cost { prefix, rows, .. }) = cost {
            let _ = write!(self.text, "  (cost={} rows={})", readable(prefix), readable(rows.max(1.0)));
            space = " ";
        }
        if self.found.is_some() {
            let _ = match actual.filter(|actual| actual.loops > 0) {
                Some(Actual { loops, rows, first, total }) => {
                    let each = |sum: f64| readable(sum / loops as f64);
                    let (first, total, rows) = (each(first), each(total), each(rows as f64));
                    write!(self.text, "{space}(actual time={first}..{total} rows={rows} loops={loops})")
                }
                None => write!(self.text, "{space}(never executed)"),
            };
        }
        self.text.push('\n');
    }

    fn measured(&self, plan: &SelectPlan, part: Part) -> Option<&'t Measured> {
        self.found?.get(&(std::ptr::from_ref(plan), part))
    }

    /// What was measured of all that stands above the join.
    fn whole(&self, plan: &SelectPlan, rows: impl Fn(&Measured) -> u64) -> Option<Actual> {
        let whole = self.measured(plan, Part::Whole)?;
        let mut actual = Actual::of(whole, rows(whole));
        let waits = plan.grouping.is_some() || !plan.order.is_empty() || plan.windowed.is_some();
        if !waits && let Some(joined) = self.joined(plan) {
            actual.first = joined.first.as_secs_f64() * 1000.0;
        }
        Some(actual)
    }

    /// What was measured of the join; one step is one too.
    fn joined(&self, plan: &SelectPlan) -> Option<&'t Measured> {
        self.measured(plan, Part::Joined(plan.steps.len().checked_sub(1)?))
    }

    /// What was measured of all that stands above the parts of a set operation, or above the only SELECT.
    fn united(&self, plan: &SelectPlan, rows: impl Fn(&Measured) -> u64) -> Option<Actual> {
        match plan.unions.is_empty() {
            true => self.whole(plan, rows),
            false => self.measured(plan, Part::United).map(|united| Actual::of(united, rows(united))),
        }
    }

    /// A query.
    fn query(&mut self, plan: &SelectPlan, around: Option<&Names<'_>>, depth: usize) {
        let input = plan.windowed.as_ref().map_or(plan, |windowed| &windowed.input);
        let query = Query { plan, names: Names::of(input, around, self.numbers), costs: costs(input) };
        let mut below = depth;
        self.limited(&query, &mut below);
        if plan.unions.is_empty() {
            self.part(&query, around, below);
        } else {
            self.parts(&query, around, below);
        }
        for subquery in &plan.subqueries {
            let number = self.numbers.of(subquery);
            let when = if subquery.follows_rows() { "dependent" } else { "run only once" };
            let place = if is_shown(plan, subquery) { "projection" } else { "condition" };
            let indent = 4 * depth;
            let _ = writeln!(self.text, "{:indent$}-> Select #{number} (subquery in {place}; {when})", "");
            self.query(subquery, Some(&query.names), depth + 1);
        }
    }

    /// LIMIT and ORDER BY.
    fn limited(&mut self, query: &Query<'_>, depth: &mut usize) {
        let plan = query.plan;
        let mut most = String::new();
        if let Some((count, offset)) = &plan.limit {
            let number = |expr: &Expr| match expr {
                Expr::Literal(value) => u64::try_from(value.to_integer()).ok(),
                _ => None,
            };
            let count_shown = query.names.show(count);
            let (what, skipped) = match offset {
                Some(offset) => {
                    let shown = query.names.show(offset);
                    (format!("Limit/Offset: {count_shown}/{shown} row(s)"), number(offset))
                }
                None => (format!("Limit: {count_shown} row(s)"), Some(0)),
            };
            if let (Some(count), Some(skipped)) = (number(count), skipped) {
                most = format!(", limit input to {} row(s) per chunk", count.saturating_add(skipped));
            }
            let (count, skipped) = (number(count).unwrap_or(u64::MAX), skipped.unwrap_or(0));
            let actual = self.united(plan, |whole| {
                let seen = whole.rows.saturating_sub(skipped.saturating_mul(whole.loops));
                seen.min(count.saturating_mul(whole.loops))
            });
            let cost = self.cost_of_whole(query);
            let cost = cost.map(|cost| Cost { rows: cost.rows.min(count as f64), ..cost });
            self.line(*depth, &what, cost, actual);
            *depth += 1;
        }
        if !plan.order.is_empty() {
            let keys = plan.order.iter().map(|(expr, descending)| {
                let direction = if *descending { " DESC" } else { "" };
                format!("{}{direction}", self.of_output(query, expr))
            });
            let keys: Vec<String> = keys.collect();
            let actual = self.united(plan, |whole| whole.rows);
            let cost = self.cost_of_whole(query);
            self.line(*depth, &format!("Sort: {}{most}", keys.join(", ")), cost, actual);
            *depth += 1;
        }
    }

    /// An expression above the windows, or of the result of a union.
    fn of_output(&self, query: &Query<'_>, expr: &Expr) -> String {
        match (&query.plan.windowed, expr) {
            (Some(windowed), expr) => windowed
                .value_inside(expr)
                .map_or_else(|| "<window function>".to_owned(), |value| query.names.show(value)),
            (None, Expr::Column { source: 0, column }) if !query.plan.unions.is_empty() => {
                let columns = query.plan.columns.metas();
                columns.get(usize::from(*column)).map_or("?", |meta| meta.name.as_str()).to_owned()
            }
            (None, expr) => query.names.show(expr),
        }
    }

    /// Groups are not estimated, nor is what follows them.
    fn cost_of_whole(&self, query: &Query<'_>) -> Option<Cost> {
        let plain = query.plan.grouping.is_none() && query.plan.unions.is_empty();
        query.costs.last().copied().filter(|_| plain && query.plan.windowed.is_none())
    }

    /// The parts of a set operation.
    fn parts(&mut self, query: &Query<'_>, around: Option<&Names<'_>>, depth: usize) {
        let plan = query.plan;
        let is_union_all = plan.operation == SetOperation::Union && plan.unions.iter().all(|(all, _)| *all);
        let word = plan.operation.word();
        let (first, rest) = word.split_at(1);
        let name = first.to_ascii_uppercase() + rest;
        let what = if is_union_all { " all materialize" } else { " materialize with deduplication" };
        let mut depth = depth;
        let actual = self.united(plan, |united| united.rows);
        if plan.makes_table() {
            self.line(depth, &format!("Table scan on <{word} temporary>"), None, actual);
            self.line(depth + 1, &(name + what), None, actual);
            depth += 2;
        } else {
            self.line(depth, "Append", None, actual);
            depth += 1;
        }
        self.part(query, around, depth);
        for (_, part) in &plan.unions {
            self.query(part, around, depth);
        }
    }

    /// One SELECT without its ORDER BY and LIMIT.
    fn part(&mut self, query: &Query<'_>, around: Option<&Names<'_>>, depth: usize) {
        let plan = query.plan;
        let mut depth = depth;
        if plan.distinct {
            let actual = self.whole(plan, |whole| whole.rows);
            self.line(depth, "Table scan on <temporary>", None, actual);
            self.line(depth + 1, "Temporary table with deduplication", None, actual);
            depth += 2;
        }
        if let Some(windowed) = &plan.windowed {
            let functions = windowed.windows.iter().flat_map(|window| &window.calls);
            let functions: Vec<&str> = functions.map(|(_, call)| call.function.name()).collect();
            let input = self.measured(&windowed.input, Part::Whole);
            let actual = self.whole(plan, |whole| input.map_or(whole.rows, |input| input.rows));
            self.line(depth, &format!("Window aggregate: {}", functions.join(", ")), None, actual);
            return self.query(&windowed.input, around, depth + 1);
        }
        if let Some(grouping) = &plan.grouping {
            self.groups(query, grouping, &mut depth);
        }
        let conditions: Vec<&Expr> = applied(plan).collect();
        if !conditions.is_empty() {
            let rows = self.measured(plan, Part::Applied).map_or(0, |applied| applied.rows);
            let actual = self.whole(plan, |_| rows);
            let shown = query.names.show_all(conditions);
            self.line(depth, &format!("Filter: {shown}"), query.costs.last().copied(), actual);
            depth += 1;
        }
        if !plan.constant_conditions.is_empty() {
            let rows = self.joined(plan).map_or(0, |joined| joined.rows);
            let actual = self.whole(plan, |_| rows);
            let shown = plan.constant_conditions.iter().map(|condition| &**condition);
            self.line(depth, &format!("Filter: {}", query.names.show_all(shown)), None, actual);
            depth += 1;
        }
        match plan.steps.len().checked_sub(1) {
            Some(last) => self.join(query, last, depth),
            None => {
                let cost = Cost { rows: 1.0, ..Cost::default() };
                let actual = self.whole(plan, |whole| whole.loops);
                self.line(depth, "Rows fetched before execution", Some(cost), actual);
            }
        }
    }

    fn groups(&mut self, query: &Query<'_>, grouping: &Grouping, depth: &mut usize) {
        let plan = query.plan;
        let groups = self.measured(plan, Part::Groups);
        if let Some(having) = &grouping.having {
            let actual = self.whole(plan, |_| groups.map_or(0, |groups| groups.kept));
            self.line(*depth, &format!("Filter: {}", query.names.show(having)), None, actual);
            *depth += 1;
        }
        let functions: Vec<String> =
            grouping.aggregates.iter().map(|aggregate| query.names.aggregate(aggregate)).collect();
        let functions = functions.join(", ");
        let actual = self.whole(plan, |_| groups.map_or(0, |groups| groups.rows));
        if grouping.keys.is_empty() {
            self.line(*depth, &format!("Aggregate: {functions}"), None, actual);
        } else if grouping.rollup {
            self.line(*depth, &format!("Group aggregate with rollup: {functions}"), None, actual);
        } else {
            self.line(*depth, "Table scan on <temporary>", None, actual);
            *depth += 1;
            self.line(*depth, "Aggregate using temporary table", None, actual);
        }
        *depth += 1;
    }

    /// The steps up to this one.
    fn join(&mut self, query: &Query<'_>, at: usize, depth: usize) {
        let plan = query.plan;
        let step = &plan.steps[at];
        let Some(before) = at.checked_sub(1) else { return self.access(query, at, depth) };
        let left = step.inner_last.is_some();
        let joined = self.measured(plan, Part::Joined(at)).map(|joined| Actual::of(joined, joined.rows));
        let cost = query.costs.get(at).copied();
        if plan.joins_by_hash(step) {
            let kind = if left { "Left hash join" } else { "Inner hash join" };
            let looked_for = looked_for(query, at);
            self.line(depth, &format!("{kind} ({looked_for})"), cost, joined);
            self.join(query, before, depth + 1);
            let _ = writeln!(self.text, "{:1$}-> Hash", "", 4 * (depth + 1));
            return self.access(query, at, depth + 2);
        }
        let kind = if left { "Nested loop left join" } else { "Nested loop inner join" };
        self.line(depth, kind, cost, joined);
        self.join(query, before, depth + 1);
        self.access(query, at, depth + 1);
    }

    fn access(&mut self, query: &Query<'_>, at: usize, depth: usize) {
        let plan = query.plan;
        let step = &plan.steps[at];
        let source = &plan.sources[step.source];
        let hashed = self.measured(plan, Part::Hashed(step.source));
        let measured = hashed.or_else(|| self.measured(plan, Part::Step(at)));
        let cost = query.costs.get(at).map(|cost| {
            let before = at.checked_sub(1).map_or(1.0, |before| query.costs[before].rows.max(1.0));
            let loops = if plan.joins_by_hash(step) { 1.0 } else { before };
            Cost { prefix: (cost.read + cost.eval) / loops, rows: cost.rows / before, ..*cost }
        });
        let mut depth = depth;
        let conditions = tested(plan, at);
        if !conditions.is_empty() {
            let actual = measured.map(|measured| Actual::of(measured, measured.kept));
            let shown = query.names.show_all(conditions);
            self.line(depth, &format!("Filter: {shown}"), cost, actual);
            depth += 1;
        }
        let actual = measured.map(|measured| Actual::of(measured, measured.rows));
        match &source.kind {
            SourceKind::Table(_) if !step.path.merged.is_empty() => {
                self.line(depth, "Deduplicate rows sorted by row ID", cost, actual);
                for path in &step.path.merged {
                    let indent = 4 * depth + 4;
                    let _ =
                        writeln!(self.text, "{:indent$}-> {}", "", scan(source, path, &query.names, true));
                }
            }
            SourceKind::Table(_) => {
                self.line(depth, &scan(source, &step.path, &query.names, false), cost, actual)
            }
            SourceKind::Derived(inner) => {
                self.line(depth, &derived_scan(query, at), None, actual);
                let what =
                    if inner.recursion.is_some() { "Materialize recursive CTE" } else { "Materialize" };
                // Of a recursive one the rows of all rounds.
                let rows = measured.filter(|_| inner.recursion.is_some()).map(|measured| measured.rows);
                let whole = self.united(inner, |whole| rows.unwrap_or(whole.rows));
                let whole = whole.map(|whole| Actual { first: whole.total, ..whole });
                self.line(depth + 1, what, None, whole);
                self.query(inner, Some(&query.names), depth + 2);
                if let Some(recursion) = &inner.recursion {
                    let indent = 4 * depth + 8;
                    let _ = writeln!(self.text, "{:indent$}-> Repeat until convergence", "");
                    recursion.parts.iter().for_each(|part| self.query(part, Some(&query.names), depth + 3));
                }
            }
            _ => self.line(depth, &format!("Table scan on {}", source.alias), None, actual),
        }
    }
}

/// Whether a subquery stands in the output.
fn is_shown(plan: &SelectPlan, subquery: &SelectPlan) -> bool {
    let mut found = false;
    for item in &plan.items {
        item.visit_subqueries(&mut |number| {
            let at = plan.subqueries.get(usize::from(number));
            found |= at.is_some_and(|at| std::ptr::eq(at, subquery));
        });
    }
    found
}

/// The equalities of a hash join.
fn looked_for(query: &Query<'_>, at: usize) -> String {
    let step = &query.plan.steps[at];
    let source = step.source as u16;
    let own = |column| query.names.column(source, column);
    let pairs = lookup_equalities(&step.all_conditions, source).into_iter();
    let parts: Vec<String> =
        pairs.map(|(column, wanted)| format!("{} = {}", own(column), query.names.show(wanted))).collect();
    if parts.is_empty() { "no condition".to_owned() } else { parts.join(", ") }
}

fn derived_scan(query: &Query<'_>, at: usize) -> String {
    let step = &query.plan.steps[at];
    let source = &query.plan.sources[step.source];
    let equal = lookup_equalities(&step.all_conditions, step.source as u16);
    if at == 0 || equal.is_empty() {
        return format!("Table scan on {}", source.alias);
    }
    let name = |column: u16| source.columns.get(usize::from(column)).map_or("?", |of| of.name.as_str());
    let parts: Vec<String> = equal
        .into_iter()
        .map(|(column, wanted)| format!("{} = {}", name(column), query.names.show(wanted)))
        .collect();
    format!("Index lookup on {} using {HASHED} ({})", source.alias, parts.join(", "))
}

/// How a stored table is read; `is_leg`: by one index of several, where MySQL says of a look-up too that it
/// is a range.
fn scan(source: &Source, path: &Path, names: &Names<'_>, is_leg: bool) -> String {
    let key = source.engine_table().and_then(|table| key_of(table, path.index));
    let covering = if path.covering { "Covering index " } else { "Index " };
    let using = key.map_or(String::new(), |key| format!(" using {}", key.name));
    let back = if path.backward { " (reverse)" } else { "" };
    let alias = &source.alias;
    let def = source.engine_table().map(|table| &table.def);
    let column = |at: usize| {
        let column = path.columns.get(at).and_then(|at| def?.columns.get(usize::from(*at)));
        column.map_or("?", key_part_name)
    };
    let equal: Vec<String> = path
        .equal
        .iter()
        .enumerate()
        .map(|(at, one)| match one {
            Alternative::Equal(expr) => format!("{} = {}", column(at), names.show(expr)),
            _ => format!("{} = NULL", column(at)),
        })
        .collect();
    let all_equal = || format!("({})", equal.join(", "));
    let over = match (path.last.is_empty(), equal.is_empty()) {
        (false, _) => Some(ranges(path, &equal, &column, names)),
        (true, false) => is_leg.then(all_equal),
        (true, true) => None,
    };
    if let Some(over) = over {
        return format!("{covering}range scan on {alias}{using} over {over}{back}");
    }
    let reads_index = path.covering || path.backward || path.index != ScanIndex::Clustered;
    match (path.unique, equal.is_empty()) {
        (true, _) => format!("Single-row index lookup on {alias}{using} {}", all_equal()),
        (false, false) => format!("{covering}lookup on {alias}{using} {}{back}", all_equal()),
        (false, true) if reads_index => format!("{covering}scan on {alias}{using}{back}"),
        (false, true) => format!("Table scan on {alias}"),
    }
}

/// The ranges of a path.
fn ranges<'c>(path: &Path, equal: &[String], column: &dyn Fn(usize) -> &'c str, names: &Names<'_>) -> String {
    let last = path.equal.len();
    let before: String = equal.iter().map(|one| format!("{one} AND ")).collect();
    let mut shown = Vec::new();
    let mut count = 0;
    for one in &path.last {
        if let Alternative::AnyOf(constants) = one {
            count += constants.values.len();
            let values = constants.values.iter().take(RANGES_SHOWN.saturating_sub(shown.len()));
            shown.extend(values.map(|value| {
                format!("({before}{} = {})", column(last), names.show(&Expr::Literal(value.clone())))
            }));
            continue;
        }
        count += 1;
        if shown.len() < RANGES_SHOWN {
            shown.push(format!("({before}{})", range(one, last, column, names)));
        }
    }
    if count > shown.len() {
        shown.push(format!("({} more)", count - shown.len()));
    }
    shown.join(" OR ")
}

fn range<'c>(one: &Alternative, last: usize, column: &dyn Fn(usize) -> &'c str, names: &Names<'_>) -> String {
    let sign = |whole: &bool| if *whole { "<=" } else { "<" };
    let name = column(last);
    match one {
        Alternative::Equal(expr) => format!("{name} = {}", names.show(expr)),
        Alternative::Null => format!("{name} = NULL"),
        Alternative::Range { lower: None, upper: None } => format!("NULL < {name}"),
        Alternative::Range { lower, upper } => {
            let mut text = String::new();
            if let Some((value, whole)) = lower {
                text = format!("{} {} ", names.show(value), sign(whole));
            }
            text.push_str(name);
            if let Some((value, whole)) = upper {
                let _ = write!(text, " {} {}", sign(whole), names.show(value));
            }
            text
        }
        Alternative::Like { pattern, .. } => format!("{name} like {}", names.show(pattern)),
        Alternative::Row(values) => {
            let parts = values.iter().enumerate();
            let parts: Vec<String> =
                parts.map(|(at, value)| format!("{} = {}", column(last + at), names.show(value))).collect();
            parts.join(" AND ")
        }
        Alternative::AnyOf(_) => name.to_owned(),
    }
}
