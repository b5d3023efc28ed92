//! An expression as text again, the way MySQL writes the ones that it keeps.
//!
//! Definitions keep the expressions of defaults, generated columns and CHECK constraints as text. It is
//! written from the tree and not copied from the statement: names are in backquotes, every operator has its
//! parentheses, and no SQL mode changes what it means. Read again, it gives the same text.

mod calls;
mod conditions;
mod query;

use std::fmt::Write;

use super::{BinaryOperator, CastType, Expr, IntervalUnit, TemporalKind, TrimSide, UnaryOperator};
use crate::value::Value;

/// What a kept expression may not have in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unkept {
    /// A subquery, a row, a parameter, VALUES().
    Construct,
    /// A user or system variable.
    Variable,
    /// DEFAULT or DEFAULT(column).
    Default,
}

type Written = Result<(), Unkept>;

/// How something is written.
#[derive(Clone, Copy)]
struct Style<'s> {
    /// The text of a view: a query, whose columns say of which table they are.
    whole: bool,
    /// Which databases are named.
    databases: Databases<'s>,
    /// In a subquery, whose columns have a name only where they were given one.
    unnamed: bool,
}

/// See [`Style`].
#[derive(Clone, Copy, PartialEq, Eq)]
enum Databases<'s> {
    All,
    AllBut(&'s str),
    None,
}

impl Databases<'_> {
    fn names(self, database: &str) -> bool {
        match self {
            Databases::All => true,
            Databases::AllBut(here) => database != here,
            Databases::None => false,
        }
    }
}

impl Style<'_> {
    /// An expression in the definition of a table.
    const KEPT: Style<'static> = Style { whole: false, databases: Databases::None, unnamed: false };
}

impl Expr {
    /// The expression as text.
    ///
    /// # Errors
    /// What it has in it that only a statement can have.
    pub fn to_text(&self) -> Result<String, Unkept> {
        let mut out = String::new();
        write(self, Style::KEPT, &mut out)?;
        Ok(out)
    }
}

fn push(out: &mut String, text: std::fmt::Arguments<'_>) {
    // A String takes whatever is written to it.
    let _ = out.write_fmt(text);
}

/// A name in backquotes.
pub fn quoted_name(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

fn write(expr: &Expr, style: Style<'_>, out: &mut String) -> Written {
    match expr {
        Expr::Null => out.push_str("NULL"),
        Expr::Integer(value) => push(out, format_args!("{value}")),
        Expr::Decimal(text) => {
            out.push_str(if text.starts_with('.') { "0" } else { "" });
            out.push_str(text);
        }
        Expr::Float(value) => push(out, format_args!("{value:e}")),
        Expr::Text { bytes, introducer } => write_text(bytes, introducer.as_deref(), style, out),
        Expr::Binary(bytes) => write_hex(bytes, out),
        Expr::Temporal { kind, text } => {
            out.push_str(match kind {
                TemporalKind::Date => "DATE",
                TemporalKind::Time => "TIME",
                TemporalKind::DateTime => "TIMESTAMP",
            });
            write_quoted(text, out);
        }
        column @ Expr::Column { .. } => write_column(column, style, out),
        Expr::Unary(operator, operand) => write_unary(*operator, operand, style, out)?,
        Expr::And(list) => conditions::write_junction(list, true, false, style, out)?,
        Expr::Or(list) => conditions::write_junction(list, false, false, style, out)?,
        // `||` is OR where no mode says otherwise.
        Expr::Binary2(BinaryOperator::Concat, left, right) => {
            out.push_str("concat(");
            write(left, style, out)?;
            out.push(',');
            write(right, style, out)?;
            out.push(')');
        }
        Expr::Binary2(operator, left, right) => {
            // The span stands behind what it is added to.
            let span = *operator == BinaryOperator::Add && matches!(**left, Expr::Interval { .. });
            let (left, right) = if span { (right, left) } else { (left, right) };
            conditions::write_pair(left, *operator, right, style, out)?;
        }
        Expr::Chain(first, links) => {
            for (operator, _) in links.iter().rev() {
                out.push_str(if *operator == BinaryOperator::Concat { "concat(" } else { "(" });
            }
            write(first, style, out)?;
            for (operator, operand) in links {
                match operator {
                    BinaryOperator::Concat => out.push(','),
                    operator => push(out, format_args!(" {} ", symbol(*operator))),
                }
                write(operand, style, out)?;
                out.push(')');
            }
        }
        Expr::IsNull { operand, negated } => {
            write_test(operand, if *negated { "is not null" } else { "is null" }, style, out)?;
        }
        Expr::IsTruth { operand, truth: Some(truth), negated } => {
            conditions::write_truth(operand, *truth, *negated, style, out)?;
        }
        Expr::IsTruth { operand, truth: None, negated } => {
            write_test(operand, if *negated { "is not null" } else { "is null" }, style, out)?;
        }
        Expr::Between { operand, low, high, negated } => {
            out.push('(');
            write(operand, style, out)?;
            out.push_str(if *negated { " not between " } else { " between " });
            write(low, style, out)?;
            out.push_str(" and ");
            write(high, style, out)?;
            out.push(')');
        }
        Expr::InList { operand, list, negated } if list.len() == 1 => {
            let operator = if *negated { BinaryOperator::NotEqual } else { BinaryOperator::Equal };
            conditions::write_pair(operand, operator, &list[0], style, out)?;
        }
        Expr::InList { operand, list, negated } => {
            write_in(operand, *negated, style, out)?;
            write_list("(", list, ",", "))", style, out)?;
        }
        Expr::InConstants { operand, constants, negated } => {
            write_in(operand, *negated, style, out)?;
            let constants: Vec<Expr> = constants.values.iter().map(constant).collect();
            write_list("(", &constants, ",", "))", style, out)?;
        }
        Expr::Like { operand, pattern, escape, negated } => {
            calls::write_like((operand, pattern), escape.as_deref(), *negated, style, out)?;
        }
        Expr::Regexp { operand, pattern, negated } => {
            calls::write_regexp((operand, pattern), *negated, style, out)?;
        }
        Expr::Case { operand, whens, otherwise } => {
            write_case(operand.as_deref(), whens, otherwise.as_deref(), style, out)?;
        }
        call => write_call(call, style, out)?,
    }
    Ok(())
}

fn write_column(column: &Expr, style: Style<'_>, out: &mut String) {
    let Expr::Column { database, table, name } = column else { return };
    // In a definition of a table it is that table's.
    if style.whole {
        let database = database.iter().filter(|database| style.databases.names(database));
        for name in database.chain(table) {
            push(out, format_args!("{}.", quoted_name(name)));
        }
    }
    out.push_str(&quoted_name(name));
}

/// What is written like a call, and what cannot be kept.
fn write_call(expr: &Expr, style: Style<'_>, out: &mut String) -> Written {
    match expr {
        Expr::Function { name, arguments, distinct, star, order_by, separator } => {
            let concatenates = style.whole && name == "GROUP_CONCAT";
            if *distinct || *star || !order_by.is_empty() || separator.is_some() || concatenates {
                return query::write_aggregate(expr, style, out);
            }
            let name = name.to_ascii_lowercase();
            match (name.as_str(), &arguments[..]) {
                ("timestampdiff", [Expr::Interval { unit, .. }, rest @ ..]) => {
                    push(out, format_args!("timestampdiff({},", unit_name(*unit).to_uppercase()));
                    write_list("", rest, ",", ")", style, out)?;
                }
                ("weight_string as char" | "weight_string as binary", [operand, Expr::Integer(length)]) => {
                    out.push_str("weight_string(");
                    write(operand, style, out)?;
                    let kind = if name.ends_with("char") { "char" } else { "binary" };
                    push(out, format_args!(" as {kind}({length}))"));
                }
                ("get_format", [Expr::Text { bytes, .. }, place]) => {
                    push(out, format_args!("get_format({}, ", String::from_utf8_lossy(bytes)));
                    write(place, style, out)?;
                    out.push(')');
                }
                _ => calls::write_function(&name, arguments, style, out)?,
            }
        }
        Expr::Cast { operand, target } => {
            out.push_str("cast(");
            write(operand, style, out)?;
            push(out, format_args!(" as {})", cast_name(target)));
        }
        Expr::ConvertCharset { operand, charset } => {
            out.push_str("convert(");
            write(operand, style, out)?;
            push(out, format_args!(" using {charset})"));
        }
        Expr::Collate { operand, collation } => {
            out.push('(');
            write(operand, style, out)?;
            push(out, format_args!(" collate {collation})"));
        }
        Expr::Interval { amount, unit } => {
            out.push_str("interval ");
            write(amount, style, out)?;
            push(out, format_args!(" {}", unit_name(*unit)));
        }
        Expr::JsonValue(_) => return Err(Unkept::Construct),
        Expr::Extract { unit, operand } => {
            push(out, format_args!("extract({} from ", unit_name(*unit)));
            write(operand, style, out)?;
            out.push(')');
        }
        Expr::Trim { side, what, operand } => {
            out.push_str("trim(");
            if let Some(what) = what {
                out.push_str(match side {
                    TrimSide::Both => "both ",
                    TrimSide::Leading => "leading ",
                    TrimSide::Trailing => "trailing ",
                });
                write(what, style, out)?;
                out.push_str(" from ");
            } else if *side != TrimSide::Both {
                out.push_str(if *side == TrimSide::Leading { "leading from " } else { "trailing from " });
            }
            write(operand, style, out)?;
            out.push(')');
        }
        Expr::Truth(truth) => push(out, format_args!("{truth}")),
        Expr::UserVariable(_) | Expr::Assign(..) | Expr::SystemVariable { .. } => {
            return Err(Unkept::Variable);
        }
        Expr::Default(_) => return Err(Unkept::Default),
        of_query => query::write_part(of_query, style, out)?,
    }
    Ok(())
}

fn write_list(
    open: &str,
    list: &[Expr],
    between: &str,
    close: &str,
    style: Style<'_>,
    out: &mut String,
) -> Written {
    out.push_str(open);
    for (at, item) in list.iter().enumerate() {
        if at > 0 {
            out.push_str(between);
        }
        write(item, style, out)?;
    }
    out.push_str(close);
    Ok(())
}

fn write_test(operand: &Expr, test: &str, style: Style<'_>, out: &mut String) -> Written {
    out.push('(');
    write(operand, style, out)?;
    push(out, format_args!(" {test})"));
    Ok(())
}

fn write_in(operand: &Expr, negated: bool, style: Style<'_>, out: &mut String) -> Written {
    out.push('(');
    write(operand, style, out)?;
    out.push_str(if negated { " not in " } else { " in " });
    Ok(())
}

fn write_unary(operator: UnaryOperator, operand: &Expr, style: Style<'_>, out: &mut String) -> Written {
    let (before, behind) = match operator {
        UnaryOperator::Minus => ("-(", ")"),
        UnaryOperator::Plus => ("", ""),
        UnaryOperator::BitNot => ("~(", ")"),
        UnaryOperator::Not => return conditions::write_not(operand, style, out),
        UnaryOperator::Binary => ("cast(", " as char charset binary)"),
    };
    calls::write_around(before, operand, behind, style, out)
}

fn write_case(
    operand: Option<&Expr>,
    whens: &[(Expr, Expr)],
    otherwise: Option<&Expr>,
    style: Style<'_>,
    out: &mut String,
) -> Written {
    out.push_str("(case");
    if let Some(operand) = operand {
        out.push(' ');
        write(operand, style, out)?;
    }
    for (when, then) in whens {
        out.push_str(" when ");
        write(when, style, out)?;
        out.push_str(" then ");
        write(then, style, out)?;
    }
    if let Some(otherwise) = otherwise {
        out.push_str(" else ");
        write(otherwise, style, out)?;
    }
    out.push_str(" end)");
    Ok(())
}

/// The literal that stands for a constant of a long list.
fn constant(value: &Value<'static>) -> Expr {
    match value {
        Value::Int(value) if *value < 0 => {
            Expr::Unary(UnaryOperator::Minus, Box::new(Expr::Integer(value.unsigned_abs())))
        }
        Value::Int(value) => Expr::Integer(value.unsigned_abs()),
        Value::UInt(value) => Expr::Integer(*value),
        Value::Text(bytes, _) => Expr::Text { bytes: bytes.to_vec(), introducer: None },
        _ => Expr::Null,
    }
}

fn write_text(bytes: &[u8], introducer: Option<&str>, style: Style<'_>, out: &mut String) {
    if std::str::from_utf8(bytes).is_err() {
        // Bytes that are no text have no place in one.
        push(out, format_args!("_{} ", introducer.unwrap_or("binary")));
        return write_hex(bytes, out);
    }
    // Of which collation the literals of a view are stands beside it.
    if let Some(introducer) = introducer.or((!style.whole).then_some("utf8mb4")) {
        push(out, format_args!("_{introducer}"));
    }
    write_quoted(bytes, out);
}

pub(crate) fn write_quoted(bytes: &[u8], out: &mut String) {
    out.push('\'');
    for character in String::from_utf8_lossy(bytes).chars() {
        match character {
            '\'' => out.push_str("\\'"),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\0' => out.push_str("\\0"),
            '\u{1a}' => out.push_str("\\Z"),
            other => out.push(other),
        }
    }
    out.push('\'');
}

fn write_hex(bytes: &[u8], out: &mut String) {
    if bytes.is_empty() {
        return out.push_str("x''");
    }
    out.push_str("0x");
    bytes.iter().for_each(|byte| push(out, format_args!("{byte:02x}")));
}

/// How an operator is written.
pub fn symbol(operator: BinaryOperator) -> &'static str {
    match operator {
        BinaryOperator::Xor => "xor",
        BinaryOperator::Equal => "=",
        BinaryOperator::NullSafeEqual => "<=>",
        BinaryOperator::NotEqual => "<>",
        BinaryOperator::Less => "<",
        BinaryOperator::LessEqual => "<=",
        BinaryOperator::Greater => ">",
        BinaryOperator::GreaterEqual => ">=",
        BinaryOperator::BitOr => "|",
        BinaryOperator::BitAnd => "&",
        BinaryOperator::ShiftLeft => "<<",
        BinaryOperator::ShiftRight => ">>",
        BinaryOperator::Add => "+",
        BinaryOperator::Subtract => "-",
        BinaryOperator::Multiply => "*",
        BinaryOperator::Divide => "/",
        BinaryOperator::IntegerDivide => "DIV",
        BinaryOperator::Modulo => "%",
        BinaryOperator::BitXor => "^",
        BinaryOperator::Concat => "||",
    }
}

pub(crate) fn unit_name(unit: IntervalUnit) -> &'static str {
    match unit {
        IntervalUnit::Microsecond => "microsecond",
        IntervalUnit::Second => "second",
        IntervalUnit::Minute => "minute",
        IntervalUnit::Hour => "hour",
        IntervalUnit::Day => "day",
        IntervalUnit::Week => "week",
        IntervalUnit::Month => "month",
        IntervalUnit::Quarter => "quarter",
        IntervalUnit::Year => "year",
        IntervalUnit::MinuteSecond => "minute_second",
        IntervalUnit::HourMinute => "hour_minute",
        IntervalUnit::HourSecond => "hour_second",
        IntervalUnit::DayHour => "day_hour",
        IntervalUnit::DayMinute => "day_minute",
        IntervalUnit::DaySecond => "day_second",
        IntervalUnit::SecondMicrosecond => "second_microsecond",
        IntervalUnit::MinuteMicrosecond => "minute_microsecond",
        IntervalUnit::HourMicrosecond => "hour_microsecond",
        IntervalUnit::DayMicrosecond => "day_microsecond",
        IntervalUnit::YearMonth => "year_month",
    }
}

/// The digits of a second, where there are any.
fn fraction_shown(fraction: u8) -> Option<u32> {
    (fraction > 0).then(|| u32::from(fraction))
}

pub(crate) fn cast_name(target: &CastType) -> String {
    let length = |name: &str, length: &Option<u32>| match length {
        Some(length) => format!("{name}({length})"),
        None => name.to_owned(),
    };
    match target {
        CastType::Signed => "signed".into(),
        CastType::Unsigned => "unsigned".into(),
        CastType::Char { length: chars, charset, bin } => {
            // Without one it has the connection's collation, which a character set would not say.
            let charset = charset.as_ref().map(|charset| format!(" charset {charset}"));
            let bin = if *bin { " binary" } else { "" };
            length("char", chars) + charset.as_deref().unwrap_or_default() + bin
        }
        CastType::Binary { length: bytes } => length("char", bytes) + " charset binary",
        CastType::Decimal { precision, scale } => format!("decimal({precision},{scale})"),
        CastType::Double => "double".into(),
        CastType::Float => "float".into(),
        CastType::Date => "date".into(),
        CastType::DateTime { fraction } => length("datetime", &fraction_shown(*fraction)),
        CastType::Time { fraction } => length("time", &fraction_shown(*fraction)),
        CastType::Year => "year".into(),
        CastType::Json => "json".into(),
    }
}
