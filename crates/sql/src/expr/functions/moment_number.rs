//! The number of a date that a function answers as text.
//!
//! `'2001-01-01' + INTERVAL 2 DAY` and ADDTIME of a text are texts to see, but where a number is wanted they
//! count as dates do: 20010103, and not 2001, which is how the text begins.

use untorn::types::Collation;

use super::temporal::loose_moment;
use super::{FITTED_TO_LATIN1, Function, any_null, function};
use crate::expr::types::Type;
use crate::expr::{Context, Evaluated, Expr, strict};
use crate::result::SqlError;
use crate::value::{Time, Value, temporal};

/// The moment that a text is, the zero one if it is none: a text beside others and a moment. Not of SQL's.
pub static MOMENT_OF_TEXT: Function = function!("MOMENT_OF_TEXT", 1..=1, |_| Type::datetime(6), |v, cx| {
    Ok(moment(&v[0], cx)?.unwrap_or_else(|| Value::DateTime(Default::default(), 0)))
});

/// The same, NULL if it is none. Not of SQL's.
pub static MOMENT_OR_NONE: Function = function!("MOMENT_OR_NONE", 1..=1, |_| Type::datetime(6), |v, cx| {
    Ok(moment(&v[0], cx)?.unwrap_or(Value::Null))
});

fn moment(text: &Value<'_>, cx: &Context<'_>) -> Result<Option<Value<'static>>, SqlError> {
    strict::check_text_of_moment(text, "datetime", cx.state)?;
    Ok(match text {
        Value::Null => Some(Value::Null),
        text => {
            text.to_datetime(crate::expr::today(cx)).map(|(moment, digits)| Value::DateTime(moment, digits))
        }
    })
}

/// What no day or span equals, and not what stands for the other side either. Both are numbers that spell
/// none.
const SOUGHT_NONE: Value<'static> = Value::Int(i64::MIN);
const LISTED_NONE: Value<'static> = Value::Int(i64::MIN + 1);

fn day<'v>(value: &Value<'v>, cx: &Context<'_>, whole: bool, none: Value<'static>) -> Evaluated<'v> {
    strict::check_text_of_moment(value, "date", cx.state)?;
    Ok(match value {
        Value::Null => Value::Null,
        text => match text.to_datetime(crate::expr::today(cx)) {
            Some((moment, _)) if !whole => Value::Date(moment.date),
            Some((moment, digits)) => Value::DateTime(moment, digits),
            None => none,
        },
    })
}

fn span<'v>(value: &Value<'v>, cx: &Context<'_>, none: Value<'static>) -> Evaluated<'v> {
    strict::check_text_of_span(value, cx.state)?;
    Ok(match value {
        Value::Null => Value::Null,
        text => text.to_time(crate::expr::today(cx)).map_or(none, |(span, digits)| Value::Time(span, digits)),
    })
}

/// The day of a text that is looked for in a list of days. None of SQL's, nor are the following.
pub static DAY_SOUGHT: Function =
    function!("DAY SOUGHT", 1..=1, |_| Type::DATE, |v, cx| day(&v[0], cx, false, SOUGHT_NONE));

/// A text in a list of days.
pub static DAY_IN_LIST: Function =
    function!("DAY IN LIST", 1..=1, |_| Type::datetime(6), |v, cx| day(&v[0], cx, true, LISTED_NONE));

/// The span of a text that is looked for in a list of spans.
pub static SPAN_SOUGHT: Function =
    function!("SPAN SOUGHT", 1..=1, |_| Type::time(6), |v, cx| span(&v[0], cx, SOUGHT_NONE));

/// A text in a list of spans.
pub static SPAN_IN_LIST: Function = function!("SPAN IN LIST", 1..=1, |_| Type::time(6), |v, cx| {
    span(&v[0], cx, Value::Time(Time::default(), 0))
});

/// Stands around such a function where a number is wanted.
pub static MOMENT_NUMBER: Function = function!("MOMENT NUMBER", 1..=1, |_| Type::DOUBLE, |v, _| {
    if any_null(v) {
        return Ok(Value::Null);
    }
    Ok(Value::Double(digits_of(&v[0].to_text())))
});

/// A number beside days or moments, as the moment that its digits are: 1 is the first of no month of 2000.
pub static MOMENT_OF_NUMBER: Function =
    function!("MOMENT OF NUMBER", 1..=1, |_| Type::datetime(6), |v, cx| {
        Ok(match loose_moment(&v[0], cx) {
            Some(moment) if !v[0].is_null() => Value::DateTime(moment, 6),
            _ => Value::Null,
        })
    });

/// The digits of a column's day or moment, which is compared with a number that is no constant. Not of SQL's.
pub static MOMENT_DIGITS: Function = function!("MOMENT DIGITS", 1..=1, |t| t[0], |v, _| {
    Ok(match &v[0] {
        Value::Null => Value::Null,
        Value::Date(date) => Value::Int(temporal::date_number(*date)),
        Value::DateTime(moment, 0) => Value::Int(temporal::datetime_number(*moment)),
        other => Value::Decimal(other.to_decimal()),
    })
});

/// A constant beside a column of days: the day that its digits say, if they say a clock, too. Not of SQL's.
pub static DAY_OF_NUMBER: Function = function!("DAY OF NUMBER", 1..=1, |t| t[0], |v, cx| {
    Ok(match v[0].to_datetime(crate::expr::today(cx)) {
        Some((moment, _)) if v[0].is_number() && temporal::has_clock(moment) => Value::Date(moment.date),
        _ => v[0].clone(),
    })
});

/// What is shown of a span, beside a text. Not of SQL's.
pub static SPAN_TEXT: Function = function!("SPAN TEXT", 1..=1, |t| t[0], |v, _| {
    Ok(match &v[0] {
        Value::Null => Value::Null,
        span => Value::Text(span.to_text().into_owned().into(), Collation::Utf8mb4GeneralCi),
    })
});

/// A text beside a span: one that is a day is what the span's digits would be. Not of SQL's.
pub static SPAN_OF_TEXT: Function = function!("SPAN OF TEXT", 1..=1, |t| t[0], |v, cx| {
    let day = matches!(&v[0], Value::Text(text, _) if temporal::is_only_day(text));
    let read = if day { v[0].to_time(crate::expr::today(cx)) } else { None };
    Ok(read.map_or_else(|| v[0].clone(), |(span, digits)| Value::Time(span, digits)))
});

/// A subquery's text beside a span: one with a day is none. Not of SQL's.
pub static SPAN_OR_NONE: Function = function!("SPAN OR NONE", 1..=1, |t| t[0], |v, _| {
    let has_day = matches!(&v[0], Value::Text(text, _) if text.iter().skip(1).any(|byte| *byte == b'-'));
    Ok(if has_day { Value::Null } else { v[0].clone() })
});

/// Whether it answers dates, as texts if its type is one.
pub fn answers_moments(expr: &Expr) -> bool {
    match expr {
        Expr::DateShift { .. } => true,
        Expr::Collate(text, _) | Expr::NullIf(text, _) => answers_moments(text),
        Expr::Case { whens, otherwise, .. } => {
            whens.iter().any(|(_, then)| answers_moments(then)) || answers_moments(otherwise)
        }
        // Whatever the text is in, it is the same date.
        Expr::Call(function, text) if function.name == FITTED_TO_LATIN1.name => {
            text.iter().any(answers_moments)
        }
        Expr::Call(function, _) => ["ADDTIME", "SUBTIME"].contains(&function.name),
        _ => false,
    }
}

/// The numbers of the dates that it answers; another answer of a CASE stays what it is.
pub fn moment_number(expr: Expr) -> Expr {
    match expr {
        Expr::Case { operand, mut whens, mut otherwise } => {
            for answer in whens.iter_mut().map(|(_, then)| then).chain([&mut *otherwise]) {
                *answer = moment_number(std::mem::replace(answer, Expr::Literal(Value::Null)));
            }
            Expr::Case { operand, whens, otherwise }
        }
        Expr::Collate(text, _) if matches!(*text, Expr::Case { .. }) => moment_number(*text),
        expr if answers_moments(&expr) => Expr::Call(&MOMENT_NUMBER, vec![expr]),
        expr => expr,
    }
}

/// `2001-01-03 10:00:00.5` is 20010103100000.5.
fn digits_of(text: &[u8]) -> f64 {
    let digits = text.iter().filter(|byte| byte.is_ascii_digit() || **byte == b'.');
    let digits: String = digits.map(|byte| char::from(*byte)).collect();
    let number = digits.parse().unwrap_or(0.0);
    if text.first() == Some(&b'-') { -number } else { number }
}

#[cfg(test)]
mod tests {
    use super::digits_of;

    #[test]
    fn a_moment_is_the_number_of_its_digits() {
        assert_eq!(digits_of(b"2001-01-03"), 20_010_103.0);
        assert_eq!(digits_of(b"2001-01-03 10:00:00.5"), 20_010_103_100_000.5);
        assert_eq!(digits_of(b"-01:02:03"), -10_203.0);
    }
}
