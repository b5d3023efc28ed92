//! TIME_FORMAT: of a span, and of the date that a value may have beside it.

use super::temporal::{Formatted, date_piece, specifier, time_part};
use crate::expr::{Context, Evaluated};
use crate::value::{Date, DateTime, Time, Value, temporal};

/// What TIME_FORMAT shows of a value: the span, and the date that it is written with.
pub(super) fn span_and_date(value: &Value<'_>, cx: &Context<'_>) -> Option<(Time, Date)> {
    let today = crate::expr::today(cx);
    let has_date = match value {
        Value::Date(_) | Value::DateTime(..) => true,
        Value::Text(text, _) => temporal::is_only_day(text) || temporal::is_moment_for_span(text),
        number => number.is_number() && number.to_whole() > LARGEST_SPAN,
    };
    if has_date {
        let (moment, _) = value.to_datetime(today)?;
        return Some((temporal::time_of_day(moment), moment.date));
    }
    value.to_time(today).map(|(span, _)| (span, Date::default()))
}

/// 838:59:59 as a number.
const LARGEST_SPAN: i128 = 8_385_959;

/// TIME_FORMAT: hours go beyond 23, and parts of a date that there is none of are zero. NULL for what only a
/// whole date has.
pub(super) fn time_format<'a>(
    span: Time,
    date: Date,
    format: &Value<'_>,
    made: &mut Formatted<'_>,
) -> Evaluated<'a> {
    let format = made.begin(format)?;
    if format.is_empty() {
        return Ok(Value::Null);
    }
    if span.negative {
        made.text.push('-');
    }
    let mut rest = &*format;
    while let Some((specifier, next)) = specifier(rest, &mut made.text).filter(|_| !rest.is_empty()) {
        rest = next;
        let result = &mut made.text;
        match specifier {
            None => {}
            Some('Y' | 'y' | 'm' | 'd' | 'c' | 'e') => {
                let moment = DateTime { date, ..DateTime::default() };
                let names = made.cx.state.settings().time_names;
                let piece = format!("%{}", specifier.unwrap_or_default());
                let _ = date_piece(moment, &piece, names, result);
            }
            Some(name @ ('M' | 'b')) if date.month > 0 => {
                let names = made.cx.state.settings().time_names;
                result.push_str(names.month(date.month, name == 'b').unwrap_or_default());
            }
            Some('W' | 'a' | 'M' | 'b' | 'j' | 'w' | 'u' | 'U' | 'v' | 'V' | 'x' | 'X' | 'D') => {
                return Ok(Value::Null);
            }
            Some(other) => time_part(span, other, result),
        }
        if !made.has_grown()? {
            return Ok(Value::Null);
        }
    }
    Ok(made.finish())
}
