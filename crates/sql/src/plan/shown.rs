//! A bound expression as text, for EXPLAIN: as MySQL shows the conditions that it tests.
//!
//! It shows what is evaluated, with the conversions that binding has put in, and not what the statement says.

use std::collections::HashMap;
use std::fmt::Write;

use super::SelectPlan;
use super::aggregate::Aggregate;
use super::source::{Source, SourceKind};
use crate::ast::text::{cast_name, symbol, unit_name, write_quoted};
use crate::ast::{BinaryOperator, TrimSide, quoted_name};
use crate::expr::Expr;
use crate::value::Value;

/// Longer texts are cut: a condition may be megabytes.
const BYTES_MAX: usize = 16 << 10;

/// The numbers that EXPLAIN gives the SELECTs of a statement, by where their plans are.
#[derive(Default)]
pub struct Numbers(HashMap<*const SelectPlan, u64>);

impl Numbers {
    /// The number of a SELECT; before it has one, the first.
    pub fn of(&self, plan: &SelectPlan) -> u64 {
        self.0.get(&std::ptr::from_ref(plan)).copied().unwrap_or(1)
    }

    /// The number behind the last one: of the next SELECT, or of what a set operation makes.
    pub fn behind_all(&self) -> u64 {
        self.0.values().max().copied().unwrap_or(0) + 1
    }

    /// Gives a SELECT its number.
    pub fn give(&mut self, plan: &SelectPlan, number: u64) {
        self.0.insert(plan, number);
    }
}

/// What the names in an expression stand for.
#[derive(Clone, Copy)]
pub struct Names<'n> {
    /// The sources of the query that it belongs to.
    pub sources: &'n [Source],
    /// That query; `None` for a change of one table.
    pub plan: Option<&'n SelectPlan>,
    /// The query around that.
    pub around: Option<&'n Names<'n>>,
    /// The numbers of all SELECTs; `None` for a change of one table.
    pub numbers: Option<&'n Numbers>,
    /// Names in backquotes, with their databases.
    pub in_full: bool,
}

impl<'n> Names<'n> {
    /// The names of a query.
    pub fn of(plan: &'n SelectPlan, around: Option<&'n Names<'n>>, numbers: &'n Numbers) -> Names<'n> {
        Names { sources: &plan.sources, plan: Some(plan), around, numbers: Some(numbers), in_full: false }
    }

    /// The names of a change of one table.
    pub fn of_one_table(table: &'n Source) -> Names<'n> {
        let sources = std::slice::from_ref(table);
        Names { sources, plan: None, around: None, numbers: None, in_full: false }
    }

    /// The same, with names as a JSON document has them.
    #[must_use]
    pub fn in_full(self) -> Names<'n> {
        Names { in_full: true, ..self }
    }

    /// An expression as text.
    pub fn show(&self, expr: &Expr) -> String {
        let mut out = String::new();
        self.write(expr, &mut out);
        out
    }

    /// Conditions that hold together, as one.
    pub fn show_all<'c>(&self, conditions: impl IntoIterator<Item = &'c Expr>) -> String {
        let parts: Vec<String> = conditions.into_iter().map(|condition| self.show(condition)).collect();
        match &parts[..] {
            [one] => one.clone(),
            parts => format!("({})", parts.join(" and ")),
        }
    }

    /// A column of a source.
    pub fn column(&self, source: u16, column: u16) -> String {
        let Some(of) = self.sources.get(usize::from(source)) else { return "?".to_owned() };
        let name = of.columns.get(usize::from(column)).map_or("?", |column| &column.name);
        if !self.in_full {
            return format!("{}.{name}", of.alias);
        }
        let mut shown = String::new();
        if matches!(of.kind, SourceKind::Table(_)) {
            let _ = write!(shown, "{}.", quoted_name(&of.database));
        }
        let _ = write!(shown, "{}.{}", quoted_name(&of.alias), quoted_name(name));
        shown
    }

    /// An aggregate.
    pub fn aggregate(&self, aggregate: &Aggregate) -> String {
        let name = aggregate.kind.name();
        let distinct = if aggregate.distinct { "distinct " } else { "" };
        let arguments: Vec<String> = aggregate.arguments.iter().map(|argument| self.show(argument)).collect();
        let arguments = if arguments.is_empty() { "0".to_owned() } else { arguments.join(",") };
        format!("{name}({distinct}{arguments})")
    }

    /// The number of a subquery of this query.
    fn number(&self, subquery: u16) -> String {
        let plan = self.plan.and_then(|plan| plan.subqueries.get(usize::from(subquery)));
        match (plan, self.numbers) {
            (Some(plan), Some(numbers)) => format!("(select #{})", numbers.of(plan)),
            _ => "(select)".to_owned(),
        }
    }

    fn write(&self, expr: &Expr, out: &mut String) {
        if out.len() > BYTES_MAX {
            if !out.ends_with("...") {
                out.push_str("...");
            }
            return;
        }
        match expr {
            Expr::Literal(value) => write_value(value, out),
            Expr::Parameter(_) => out.push('?'),
            Expr::Column { source, column } => out.push_str(&self.column(*source, *column)),
            Expr::Outer(number) => self.write_outer(*number, out),
            Expr::Aggregate(number) => {
                let aggregate = self.plan.and_then(|plan| plan.grouping.as_ref()).and_then(|grouping| {
                    grouping.aggregates.get(usize::from(*number)).map(|aggregate| self.aggregate(aggregate))
                });
                out.push_str(aggregate.as_deref().unwrap_or("?"));
            }
            Expr::Window(number) => push(out, format_args!("<window {number}>")),
            Expr::Subquery(number) => out.push_str(&self.number(*number)),
            Expr::OfOnlyRow { subquery, column, .. } => {
                push(out, format_args!("{}.{}", self.number(*subquery), column + 1));
            }
            Expr::Exists(number) => push(out, format_args!("exists{}", self.number(*number))),
            Expr::InSubquery { operand, subquery, negated } => {
                let not = if *negated { " not in " } else { " in " };
                self.write_around("(", operand, not, out);
                push(out, format_args!("{})", self.number(*subquery)));
            }
            Expr::Quantified { operator, operand, subquery, all } => {
                self.write_around("(", operand, " ", out);
                let which = if *all { "all" } else { "any" };
                push(out, format_args!("{} {which} {})", symbol(*operator), self.number(*subquery)));
            }
            Expr::UserVariable(name) => push(out, format_args!("(@{})", quoted_name(name))),
            Expr::Assign(name, value) => {
                push(out, format_args!("(@{}:=", quoted_name(name)));
                self.write_around("", value, ")", out);
            }
            Expr::SystemVariable { name, .. } => push(out, format_args!("@@{name}")),
            Expr::Inserted(column) => push(out, format_args!("values({})", self.column(0, *column))),
            Expr::Shared(inner) => self.write(inner, out),
            Expr::MemberNumber(inner, _) | Expr::RolledUp { value: inner, .. } => self.write(inner, out),
            other => self.write_operator(other, out),
        }
    }

    /// What a subquery reads of the query around it.
    fn write_outer(&self, number: u16, out: &mut String) {
        let capture = self.plan.and_then(|plan| plan.captures.get(usize::from(number)));
        match (capture, self.around) {
            (Some(capture), Some(around)) => Names { in_full: self.in_full, ..*around }.write(capture, out),
            _ => out.push('?'),
        }
    }

    fn write_around(&self, open: &str, expr: &Expr, close: &str, out: &mut String) {
        out.push_str(open);
        self.write(expr, out);
        out.push_str(close);
    }

    fn write_list(&self, open: &str, list: &[Expr], between: &str, close: &str, out: &mut String) {
        out.push_str(open);
        for (at, item) in list.iter().enumerate() {
            if at > 0 {
                out.push_str(between);
            }
            if out.len() > BYTES_MAX {
                out.push_str("...");
                break;
            }
            self.write(item, out);
        }
        out.push_str(close);
    }

    fn write_binary(&self, left: &Expr, operator: &str, right: &Expr, out: &mut String) {
        self.write_around("(", left, "", out);
        push(out, format_args!(" {operator} "));
        self.write_around("", right, ")", out);
    }

    fn write_operator(&self, expr: &Expr, out: &mut String) {
        match expr {
            Expr::And(list) => self.write_list("(", list, " and ", ")", out),
            Expr::Or(list) => self.write_list("(", list, " or ", ")", out),
            Expr::Xor(left, right) => self.write_binary(left, "xor", right, out),
            Expr::Not(operand) => self.write_around("(not(", operand, "))", out),
            Expr::Negate(operand) => self.write_around("-(", operand, ")", out),
            Expr::BitNot(operand) => self.write_around("~(", operand, ")", out),
            Expr::Compare(operator, left, right) => self.write_binary(left, symbol(*operator), right, out),
            Expr::Arithmetic(BinaryOperator::Concat, left, right) => {
                self.write_around("concat(", left, ",", out);
                self.write_around("", right, ")", out);
            }
            Expr::Arithmetic(operator, left, right) => {
                self.write_binary(left, symbol(*operator), right, out);
            }
            Expr::Chain(first, links) => {
                out.push_str(&"(".repeat(links.len().min(BYTES_MAX)));
                self.write(first, out);
                for (operator, operand) in links {
                    push(out, format_args!(" {} ", symbol(*operator)));
                    self.write_around("", operand, ")", out);
                }
            }
            Expr::IsNull(operand, negated) => {
                self.write_around("(", operand, if *negated { " is not null)" } else { " is null)" }, out);
            }
            Expr::IsTruth { operand, truth, negated } => {
                let truth = truth.map_or("unknown", |truth| if truth { "true" } else { "false" });
                let not = if *negated { "not " } else { "" };
                self.write_around("(", operand, &format!(" is {not}{truth})"), out);
            }
            Expr::Between { operand, low, high, negated } => {
                self.write_around("(", operand, if *negated { " not between " } else { " between " }, out);
                self.write_around("", low, " and ", out);
                self.write_around("", high, ")", out);
            }
            Expr::InList { operand, list, negated } => {
                self.write_around("(", operand, if *negated { " not in " } else { " in " }, out);
                self.write_list("(", list, ",", "))", out);
            }
            Expr::InConstants { operand, constants, negated } => {
                self.write_around("(", operand, if *negated { " not in (" } else { " in (" }, out);
                for (at, value) in constants.values.iter().enumerate() {
                    out.push_str(if at > 0 { "," } else { "" });
                    if out.len() > BYTES_MAX {
                        out.push_str("...");
                        break;
                    }
                    write_value(value, out);
                }
                out.push_str("))");
            }
            Expr::Like { operand, pattern, negated, .. } => {
                self.write_around("(", operand, if *negated { " not like " } else { " like " }, out);
                self.write_around("", pattern, ")", out);
            }
            call => self.write_call(call, out),
        }
    }

    fn write_call(&self, expr: &Expr, out: &mut String) {
        match expr {
            Expr::Case { operand, whens, otherwise } => {
                out.push_str("(case");
                if let Some(operand) = operand {
                    self.write_around(" ", operand, "", out);
                }
                for (when, then) in whens {
                    self.write_around(" when ", when, " then ", out);
                    self.write(then, out);
                }
                self.write_around(" else ", otherwise, " end)", out);
            }
            Expr::Coalesce(list) => self.write_list("coalesce(", list, ",", ")", out),
            Expr::NullIf(left, right) => {
                self.write_around("nullif(", left, ",", out);
                self.write_around("", right, ")", out);
            }
            Expr::Cast(operand, target) => {
                self.write_around("cast(", operand, &format!(" as {})", cast_name(target)), out);
            }
            Expr::Collate(operand, rule) => {
                self.write_around("(", operand, &format!(" collate {})", rule.name()), out);
            }
            Expr::DateShift { date, amount, unit, subtract } => {
                self.write_around("(", date, if *subtract { " - interval " } else { " + interval " }, out);
                self.write_around("", amount, &format!(" {})", unit_name(*unit)), out);
            }
            Expr::Extract(unit, operand) => {
                self.write_around(&format!("extract({} from ", unit_name(*unit)), operand, ")", out);
            }
            Expr::TimestampDiff(unit, from, to) => {
                self.write_around(&format!("timestampdiff({},", unit_name(*unit)), from, ",", out);
                self.write_around("", to, ")", out);
            }
            Expr::Trim { side, what, operand } => {
                out.push_str(match side {
                    TrimSide::Both => "trim(both ",
                    TrimSide::Leading => "trim(leading ",
                    TrimSide::Trailing => "trim(trailing ",
                });
                if let Some(what) = what {
                    self.write_around("", what, " ", out);
                }
                self.write_around("from ", operand, ")", out);
            }
            Expr::Random { seed, .. } => self.write_around("rand(", seed, ")", out),
            // A name of several words is no function of SQL: a comparison has put it around its operand.
            Expr::Call(function, arguments) if arguments.len() == 1 && function.name.contains(' ') => {
                self.write(&arguments[0], out);
            }
            Expr::Call(function, arguments) => {
                out.push_str(&function.name.to_ascii_lowercase());
                self.write_list("(", arguments, ",", ")", out);
            }
            // All of the only row of a subquery.
            Expr::Row(list) if let Some(Expr::OfOnlyRow { subquery, .. }) = list.first() => {
                out.push_str(&self.number(*subquery));
            }
            Expr::Row(list) => self.write_list("(", list, ",", ")", out),
            Expr::Grouping(list) => self.write_list("grouping(", list, ",", ")", out),
            _ => out.push('?'),
        }
    }
}

fn push(out: &mut String, text: std::fmt::Arguments<'_>) {
    // A String takes whatever is written to it.
    let _ = out.write_fmt(text);
}

/// A value as a literal.
fn write_value(value: &Value<'_>, out: &mut String) {
    match value {
        Value::Null => out.push_str("NULL"),
        Value::Text(bytes, _) if std::str::from_utf8(bytes).is_err() => {
            out.push_str("0x");
            bytes.iter().take(BYTES_MAX / 2).for_each(|byte| push(out, format_args!("{byte:02x}")));
        }
        Value::Date(_) | Value::DateTime(..) | Value::Time(..) => {
            out.push_str(match value {
                Value::Date(_) => "DATE",
                Value::Time(..) => "TIME",
                _ => "TIMESTAMP",
            });
            write_quoted(&value.to_text(), out);
        }
        Value::Text(bytes, _) => write_quoted(bytes.get(..BYTES_MAX).unwrap_or(bytes), out),
        Value::Json(_) => write_quoted(&value.to_text(), out),
        number => out.push_str(&String::from_utf8_lossy(&number.to_text())),
    }
}
