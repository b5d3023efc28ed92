//! How a source is read, in MySQL's words: what the table, the tree and the JSON document of EXPLAIN say.

use sql::expr::Expr;
use sql::plan::access_path::{Alternative, Path, equalities, key_of};
use sql::plan::estimate::cost;
use sql::plan::index_merge::is_in_row_order;
use sql::plan::shown::Names;
use sql::plan::source::Source;
use sql::plan::{Condition, SelectPlan};
use untorn::engine::ScanIndex;
use untorn::schema::{ColumnDef, KeyDef};
use untorn::types::ColumnType;

/// A row read in order, and looked at, costs one in the planner, and a tenth in MySQL.
const COST_UNIT: f64 = 0.1;

/// The key of a derived table that is looked up by a hash.
pub(super) const HASHED: &str = "<auto_key0>";

/// How a source is read.
pub(super) struct Access {
    /// `ALL`, `ref` and so on.
    pub(super) kind: &'static str,
    pub(super) key: Option<String>,
    /// Bytes of the columns of each key that are used.
    pub(super) key_bytes: Vec<u32>,
    /// The columns.
    pub(super) parts: Vec<String>,
    /// What they are compared with.
    pub(super) refs: Vec<String>,
    /// Indexes that the conditions say something of.
    pub(super) possible: Vec<String>,
    /// Rows read at a time.
    pub(super) rows: u64,
    /// The indexes of an index merge, as `union(a,b)`.
    pub(super) merged: Option<String>,
}

impl Access {
    /// The bytes of keys, as they are shown.
    pub(super) fn shown_bytes(&self) -> Option<String> {
        let bytes: Vec<String> = self.key_bytes.iter().map(u32::to_string).collect();
        (!bytes.is_empty()).then(|| bytes.join(","))
    }

    /// Of a stored table; of any other source all rows.
    pub(super) fn new(source: &Source, path: &Path, names: &Names<'_>) -> Access {
        let table = source.engine_table();
        if !path.merged.is_empty() {
            return Access::merged(source, path, names);
        }
        let key = |index: ScanIndex| table.and_then(|table| key_of(table, index));
        let kind = match (path.unique, path.equal.is_empty(), path.last.is_empty()) {
            (true, ..) if path.equal.iter().all(is_constant) => "const",
            (true, ..) => "eq_ref",
            (_, _, false) => "range",
            (_, false, true) => "ref",
            _ if path.index != ScanIndex::Clustered => "index",
            _ => "ALL",
        };
        let read = key(path.index).filter(|_| kind != "ALL");
        let used = if kind == "index" { usize::MAX } else { path.columns.len() };
        let columns = table.map_or(&[][..], |table| &table.def.columns);
        let refs = match kind {
            "const" | "eq_ref" | "ref" => path.equal.iter().map(|one| reference(one, names)).collect(),
            _ => Vec::new(),
        };
        let name = |key: &KeyDef| key.name.to_string();
        let possible = path.possible.iter().filter_map(|index| key(*index)).map(name).collect();
        Access {
            kind,
            key: read.map(name),
            key_bytes: read.iter().map(|key| key_bytes(key, used, columns)).collect(),
            parts: read.map_or_else(Vec::new, |key| part_names(key, used, columns)),
            refs,
            possible,
            rows: rows_of(source, path) as u64,
            merged: None,
        }
    }

    /// By several indexes.
    fn merged(source: &Source, path: &Path, names: &Names<'_>) -> Access {
        let each: Vec<Access> = path.merged.iter().map(|path| Access::new(source, path, names)).collect();
        let keys: Vec<String> = each.iter().filter_map(|one| one.key.clone()).collect();
        let keys = keys.join(",");
        let parts_of = |path: &Path| {
            let key = source.engine_table().and_then(|table| key_of(table, path.index));
            key.map_or(0, |key| key.parts.len())
        };
        let in_row_order = path.merged.iter().all(|path| is_in_row_order(path, parts_of(path)));
        let name = if in_row_order { "union" } else { "sort_union" };
        let everything = Access::new(source, &Path { merged: Vec::new(), ..path.clone() }, names);
        Access {
            kind: "index_merge",
            merged: Some(format!("{name}({keys})")),
            key: Some(keys),
            key_bytes: each.iter().flat_map(|one| one.key_bytes.clone()).collect(),
            ..everything
        }
    }

    /// Of a step of a query.
    pub(super) fn of_step(plan: &SelectPlan, at: usize, names: &Names<'_>) -> Access {
        let step = &plan.steps[at];
        let source = &plan.sources[step.source];
        let mut access = Access::new(source, &step.path, names);
        if at > 0 && source.engine_table().is_none() {
            let looked_up = equalities(&step.all_conditions, step.source as u16);
            if !looked_up.is_empty() {
                access.kind = "ref";
                access.key = Some(HASHED.to_owned());
                access.possible = vec![HASHED.to_owned()];
                let name = |column: u16| source.columns.get(usize::from(column)).map(|of| of.name.clone());
                access.parts = looked_up.iter().filter_map(|(column, _)| name(*column)).collect();
                access.refs = looked_up.iter().map(|(_, wanted)| reference_to(wanted, names)).collect();
            }
        }
        access
    }
}

/// Whether a value is the same for all rows.
fn is_constant(one: &Alternative) -> bool {
    match one {
        Alternative::Equal(expr) => {
            expr.visit(&mut |inner| !matches!(inner, Expr::Column { .. } | Expr::Outer(_)))
        }
        _ => true,
    }
}

fn reference(one: &Alternative, names: &Names<'_>) -> String {
    match one {
        Alternative::Equal(expr) => reference_to(expr, names),
        _ => "const".to_owned(),
    }
}

fn reference_to(expr: &Expr, names: &Names<'_>) -> String {
    match expr {
        Expr::Column { source, column } => {
            let database = names.sources.get(usize::from(*source)).map_or("", |source| &source.database);
            let column = names.column(*source, *column);
            if database.is_empty() { column } else { format!("{database}.{column}") }
        }
        Expr::Outer(number) => match (names.around, names.plan) {
            (Some(around), Some(plan)) => plan
                .captures
                .get(usize::from(*number))
                .map_or_else(|| "func".to_owned(), |capture| reference_to(capture, around)),
            _ => "func".to_owned(),
        },
        Expr::Literal(_) | Expr::Parameter(_) => "const".to_owned(),
        _ => "func".to_owned(),
    }
}

/// What a part of a key is called: a functional one by its expression.
pub(super) fn key_part_name(column: &ColumnDef) -> &str {
    match &column.generated {
        Some(expression) if column.hidden => expression,
        _ => &column.name,
    }
}

fn part_names(key: &KeyDef, used: usize, columns: &[ColumnDef]) -> Vec<String> {
    let parts = key.parts.iter().take(used);
    let columns = parts.filter_map(|part| columns.get(usize::from(part.column)));
    columns.map(|column| key_part_name(column).to_owned()).collect()
}

/// As MySQL counts: the longest values, a byte for NULL, two for a length.
fn key_bytes(key: &KeyDef, used: usize, columns: &[ColumnDef]) -> u32 {
    let of_part = |part: &untorn::schema::KeyPart| {
        let Some(column) = columns.get(usize::from(part.column)) else { return 0 };
        let of_chars = |chars: u32, each: u32| part.prefix_chars.unwrap_or(chars).saturating_mul(each);
        let bytes = match &column.kind {
            ColumnType::Char { chars, collation } => of_chars(*chars, collation.bytes_per_char_max()),
            ColumnType::VarChar { chars, collation } => 2 + of_chars(*chars, collation.bytes_per_char_max()),
            ColumnType::Text { collation, .. } => 2 + of_chars(0, collation.bytes_per_char_max()),
            ColumnType::VarBinary { bytes } => 2 + of_chars(*bytes, 1),
            ColumnType::Binary { bytes } => of_chars(*bytes, 1),
            ColumnType::Blob { .. } | ColumnType::Json => 2 + of_chars(0, 1),
            fixed => fixed.bytes_max(),
        };
        bytes + u32::from(column.nullable)
    };
    key.parts.iter().take(used).map(of_part).sum()
}

/// What a step costs, and how many rows there are behind it.
#[derive(Clone, Copy, Default)]
pub(super) struct Cost {
    pub(super) read: f64,
    pub(super) eval: f64,
    /// With those of the steps before.
    pub(super) prefix: f64,
    pub(super) rows: f64,
}

/// The costs of the steps of a query, in the order of the join.
pub(super) fn costs(plan: &SelectPlan) -> Vec<Cost> {
    let mut before = Cost { rows: 1.0, ..Cost::default() };
    let mut costs = Vec::with_capacity(plan.steps.len());
    for step in &plan.steps {
        let rows = rows_of(&plan.sources[step.source], &step.path);
        let each = cost(&Path { rows, ..step.path.clone() }) * COST_UNIT;
        let times = if plan.joins_by_hash(step) { 1.0 } else { before.rows };
        let eval = before.rows * rows * COST_UNIT;
        let read = (times * each - times * rows * COST_UNIT).max(0.0);
        before = Cost { read, eval, prefix: before.prefix + read + eval, rows: before.rows * rows };
        costs.push(before);
    }
    costs
}

/// Rows that a path reads at a time: where nobody has estimated them, all of the table.
fn rows_of(source: &Source, path: &Path) -> f64 {
    match source.engine_table() {
        _ if path.unique => 1.0,
        Some(_) if path.rows > 0.0 => path.rows.max(1.0),
        table => table.map_or(1.0, |table| table.row_count_estimate().max(1) as f64),
    }
}

/// What the rows of a query are tested for when a step has read one.
pub(super) fn tested<'p>(plan: &'p SelectPlan, at: usize) -> Vec<&'p Expr> {
    let step = &plan.steps[at];
    let own = step.filter.iter().chain(step.applied.iter().map(|(_, condition)| condition));
    let ends = step.inner_ends.iter();
    let ends = ends.flat_map(|end| end.after.iter().chain(end.applied.iter().map(|(_, after)| after)));
    let mut all: Vec<&Expr> = own.chain(ends).map(|condition: &'p Condition| &**condition).collect();
    all.dedup_by(|left, right| std::ptr::eq(*left, *right));
    all
}

/// The conditions with correlated subqueries, which all steps' rows are tested for.
pub(super) fn applied(plan: &SelectPlan) -> impl Iterator<Item = &Expr> {
    let apply = plan.apply.iter().flat_map(|apply| &apply.conditions);
    apply.map(|(_, condition)| &**condition)
}
