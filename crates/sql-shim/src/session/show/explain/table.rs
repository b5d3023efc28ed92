//! EXPLAIN as a table: a row for each step of the join, with MySQL's columns; then those of derived tables
//! and subqueries.

use sql::catalog_views::declared::{nullable, required};
use sql::catalog_views::{number as number_of, text};
use sql::exec::Rows;
use sql::plan::access_path::Path;
use sql::plan::multi_table_change::MultiTableChange;
use sql::plan::shown::{Names, Numbers};
use sql::plan::source::Source;
use sql::plan::{Plan, SelectPlan};
use sql::value::Value;

use super::super::Answer;
use super::access::{Access, tested};
use super::{derived, numbers_of, result_name};

/// The table for a plan.
pub(super) fn answer(plan: Option<&Plan>) -> Answer {
    let mut rows = Vec::new();
    let change = |kind, source: &Source, path: &Path, extra: &str, rows: &mut Rows| {
        let access = Access::new(source, path, &Names::of_one_table(source));
        rows.push(row(1, kind, source, access, extra));
    };
    match plan {
        None | Some(Plan::Command(_) | Plan::Load(_)) => {}
        Some(Plan::Select(select)) => {
            Shown::new(&numbers_of(select), &mut rows).query(select, None, None);
        }
        Some(Plan::Update(update)) => {
            change("UPDATE", &update.target.source, &update.target.path, "Using where", &mut rows);
        }
        Some(Plan::Delete(delete)) => {
            change("DELETE", &delete.target.source, &delete.target.path, "Using where", &mut rows);
        }
        Some(Plan::MultiTableChange(change)) => {
            multi_table_change(change, &numbers_of(&change.query), &mut rows);
        }
        Some(Plan::Insert(insert)) => {
            change("INSERT", &insert.source, &Path::everything(), "", &mut rows);
            if let Some(query) = &insert.query {
                Shown::new(&numbers_of(query), &mut rows).query(query, None, None);
            }
        }
    }
    let columns = [
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
    ];
    Answer::texts(&columns, rows).typed(&[(0, required("bigint unsigned")), (9, nullable("bigint unsigned"))])
}

/// The rows that are made.
struct Shown<'r> {
    numbers: &'r Numbers,
    rows: &'r mut Rows,
}

impl<'r> Shown<'r> {
    fn new(numbers: &'r Numbers, rows: &'r mut Rows) -> Shown<'r> {
        Shown { numbers, rows }
    }

    /// The steps of a query, then those of its derived tables and subqueries.
    fn query(&mut self, plan: &SelectPlan, kind: Option<&str>, around: Option<&Names<'_>>) {
        if let Some(windowed) = &plan.windowed {
            self.query(&windowed.input, kind, around);
            return self.others(plan, around);
        }
        let alone = plan.subqueries.is_empty() && plan.unions.is_empty() && derived(plan).next().is_none();
        let kind = kind.unwrap_or(if alone { "SIMPLE" } else { "PRIMARY" });
        let names = Names::of(plan, around, self.numbers);
        for (at, step) in plan.steps.iter().enumerate() {
            let extra = extras(plan, at).join("; ");
            let access = Access::of_step(plan, at, &names);
            self.rows.push(row(self.numbers.of(plan), kind, &plan.sources[step.source], access, &extra));
        }
        if plan.steps.is_empty() {
            let mut row = vec![number_of(self.numbers.of(plan)), text(kind)];
            row.extend(std::iter::repeat_n(Value::Null, 9));
            row.push(text("No tables used"));
            self.rows.push(row);
        }
        for derived in derived(plan) {
            self.query(derived, Some("DERIVED"), Some(&names));
        }
        self.others(plan, around);
    }

    /// Its subqueries, and the other parts of a UNION.
    fn others(&mut self, plan: &SelectPlan, around: Option<&Names<'_>>) {
        let names = Names::of(plan, around, self.numbers);
        for subquery in &plan.subqueries {
            let kind = if subquery.follows_rows() { "DEPENDENT SUBQUERY" } else { "SUBQUERY" };
            self.query(subquery, Some(kind), Some(&names));
        }
        let word = plan.operation.word().to_ascii_uppercase();
        for (_, part) in &plan.unions {
            self.query(part, Some(word.as_str()), around);
        }
        if plan.unions.is_empty() || !plan.makes_table() {
            return;
        }
        let mut row = vec![Value::Null; 12];
        row[0] = number_of(self.numbers.behind_all());
        row[1] = text(format!("{word} RESULT"));
        row[2] = text(result_name(plan, self.numbers));
        row[4] = text("ALL");
        let sorts = if plan.order.is_empty() { "" } else { "; Using filesort" };
        row[11] = text(format!("Using temporary{sorts}"));
        self.rows.push(row);
    }
}

/// What else there is to say of a step.
fn extras(plan: &SelectPlan, at: usize) -> Vec<&'static str> {
    let step = &plan.steps[at];
    let mut extra = Vec::new();
    let is_last = at + 1 == plan.steps.len();
    if !tested(plan, at).is_empty() || (is_last && super::access::applied(plan).next().is_some()) {
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
    if at == 0 && plan.grouping.as_ref().is_some_and(|grouping| !grouping.keys.is_empty()) {
        extra.push("Using temporary");
    }
    if at == 0 && !plan.order.is_empty() && plan.unions.is_empty() {
        extra.push("Using filesort");
    }
    extra
}

/// The tables that are changed are shown as such.
fn multi_table_change(change: &MultiTableChange, numbers: &Numbers, rows: &mut Rows) {
    let first = rows.len();
    Shown::new(numbers, rows).query(&change.query, None, None);
    for (step, row) in change.query.steps.iter().zip(&mut rows[first..]) {
        if change.query.changed.contains(&(step.source as u16)) {
            row[1] = text(if change.updates() { "UPDATE" } else { "DELETE" });
        }
    }
}

fn row(id: u64, kind: &str, source: &Source, access: Access, extra: &str) -> Vec<Value<'static>> {
    let bytes = access.shown_bytes();
    let using = access.merged.as_ref().map(|merged| format!("Using {merged}"));
    let extra = match (&using, extra) {
        (None, extra) => extra.to_owned(),
        (Some(using), "") => using.clone(),
        (Some(using), extra) => format!("{using}; {extra}"),
    };
    let list = |list: &[String]| if list.is_empty() { Value::Null } else { text(list.join(",")) };
    vec![
        number_of(id),
        text(kind),
        text(&*source.alias),
        Value::Null,
        text(access.kind),
        list(&access.possible),
        access.key.map_or(Value::Null, text),
        bytes.map_or(Value::Null, text),
        list(&access.refs),
        number_of(access.rows),
        text("100.00"),
        if extra.is_empty() { Value::Null } else { text(extra) },
    ]
}
