//! Built-in functions that need nothing but the values of their arguments and the session.
//!
//! One table: name, how many arguments, the result's type, the code. NULL arguments give NULL unless the function says
//! otherwise. Functions of a session that wait (SLEEP, GET_LOCK) are the executor's.

use std::borrow::Cow;

use untorn::types::{Collation, Date, DateTime, Time};

use super::super::ast::{IntervalUnit, TrimSide};
use super::super::value::{Value, collation, compare, decimal, temporal};
use super::types::Type;
use super::{Context, Evaluated};
use crate::errors;

/// A function.
pub struct Function {
    /// Upper-case name.
    pub name: &'static str,
    /// Fewest arguments.
    pub least: u8,
    /// Most arguments.
    pub most: u8,
    /// Not the same for all rows of a statement (RAND, UUID).
    pub volatile: bool,
    /// Its type from those of the arguments.
    pub result: fn(&[Type]) -> Type,
    /// Its value.
    pub eval: for<'a> fn(&[Value<'a>], &Context<'a>) -> Evaluated<'a>,
}

impl std::fmt::Debug for Function {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// The function of this (upper-case) name.
pub fn find(name: &str) -> Option<&'static Function> {
    FUNCTIONS.iter().chain(super::session_functions::FUNCTIONS).find(|function| function.name == name)
}

macro_rules! function {
    ($name:literal, $least:literal..=$most:literal, $result:expr, $eval:expr) => {
        Function { name: $name, least: $least, most: $most, volatile: false, result: $result, eval: $eval }
    };
}

pub(crate) use function;

/// Longest text of a list of types.
fn text_like(types: &[Type]) -> Type {
    let rule = types.first().map_or(Collation::Utf8mb4GeneralCi, |t| {
        if t.is_text() { t.collation } else { Collation::Utf8mb4GeneralCi }
    });
    Type { collation: rule, ..Type::text(types.first().map_or(0, |t| t.length)) }
}

fn text_sum(types: &[Type]) -> Type {
    let binary = types.iter().any(|t| t.is_text() && t.collation == Collation::Binary);
    let length = types.iter().fold(0u32, |sum, t| sum.saturating_add(t.length));
    if binary { Type::bytes(length) } else { Type::text(length) }
}

fn number_like(types: &[Type]) -> Type {
    match types.first() {
        Some(t) if t.is_integer() || t.kind == crate::result::kind::NEWDECIMAL => *t,
        _ => Type::DOUBLE,
    }
}

fn widest(types: &[Type]) -> Type {
    types.iter().copied().reduce(Type::union).unwrap_or(Type::NULL)
}

fn any_null(values: &[Value<'_>]) -> bool {
    values.iter().any(Value::is_null)
}

fn owned_text<'a>(text: Vec<u8>, rule: Collation) -> Value<'a> {
    Value::Text(Cow::Owned(text), rule)
}

/// A function of one double.
fn double(values: &[Value<'_>], apply: impl Fn(f64) -> f64) -> Evaluated<'static> {
    match values {
        [Value::Null] => Ok(Value::Null),
        [value] => {
            let result = apply(value.to_double());
            Ok(if result.is_finite() { Value::Double(result) } else { Value::Null })
        }
        _ => Ok(Value::Null),
    }
}

/// A function of one text that makes a text.
fn text<'a>(values: &[Value<'a>], apply: impl Fn(&[u8]) -> Vec<u8>) -> Evaluated<'a> {
    match values {
        [Value::Null] | [] => Ok(Value::Null),
        [value, ..] => Ok(owned_text(apply(&value.to_text()), value.collation())),
    }
}

/// A function of one moment that makes a number.
fn of_date<'a>(values: &[Value<'a>], cx: &Context<'a>, apply: impl Fn(DateTime) -> i64) -> Evaluated<'a> {
    match values.first() {
        None | Some(Value::Null) => Ok(Value::Null),
        Some(value) => Ok(match value.to_datetime(super::today(cx)) {
            Some((moment, _)) => Value::Int(apply(moment)),
            None => Value::Null,
        }),
    }
}

fn of_time<'a>(values: &[Value<'a>], apply: impl Fn(Time) -> i64) -> Evaluated<'a> {
    match values.first() {
        None | Some(Value::Null) => Ok(Value::Null),
        Some(value) => Ok(value.to_time().map_or(Value::Null, |(span, _)| Value::Int(apply(span)))),
    }
}

fn index(values: &[Value<'_>], at: usize) -> i64 {
    values.get(at).map_or(0, Value::to_i64)
}

const TEXT_MAX: u64 = 64 << 20;

static FUNCTIONS: &[Function] = &[
    // Numbers
    function!("ABS", 1..=1, number_like, |v, _| Ok(match &v[0] {
        Value::Null => Value::Null,
        Value::Int(n) =>
            return match n.checked_abs() {
                Some(n) => Ok(Value::Int(n)),
                None => Err(errors::error(errors::DATA_OUT_OF_RANGE, &[&"BIGINT", &format!("abs({n})")])),
            },
        Value::UInt(n) => Value::UInt(*n),
        Value::Decimal(n) => Value::Decimal(n.abs()),
        other => Value::Double(other.to_double().abs()),
    })),
    function!("SIGN", 1..=1, |_| Type::INT, |v, _| Ok(match v[0].is_null() {
        true => Value::Null,
        false => Value::Int(v[0].to_double().partial_cmp(&0.0).map_or(0, |o| o as i64)),
    })),
    function!("CEILING", 1..=1, number_like, |v, _| ceil_floor(&v[0], f64::ceil)),
    function!("CEIL", 1..=1, number_like, |v, _| ceil_floor(&v[0], f64::ceil)),
    function!("FLOOR", 1..=1, number_like, |v, _| ceil_floor(&v[0], f64::floor)),
    function!("ROUND", 1..=2, number_like, |v, _| round(v)),
    function!("TRUNCATE", 2..=2, number_like, |v, _| truncate(v)),
    function!("MOD", 2..=2, widest, |v, cx| {
        super::arithmetic::binary(
            super::super::ast::BinaryOperator::Modulo,
            v[0].clone(),
            v[1].clone(),
            cx.state,
        )
    }),
    function!("POW", 2..=2, |_| Type::DOUBLE, |v, _| power(v)),
    function!("POWER", 2..=2, |_| Type::DOUBLE, |v, _| power(v)),
    function!("SQRT", 1..=1, |_| Type::DOUBLE, |v, _| double(v, f64::sqrt)),
    function!("EXP", 1..=1, |_| Type::DOUBLE, |v, _| double(v, f64::exp)),
    function!("LN", 1..=1, |_| Type::DOUBLE, |v, _| double(v, f64::ln)),
    function!("LOG", 1..=2, |_| Type::DOUBLE, |v, _| match v {
        [base, value] if !any_null(v) => Ok(Value::Double(value.to_double().log(base.to_double()))),
        [_, _] => Ok(Value::Null),
        _ => double(v, f64::ln),
    }),
    function!("LOG2", 1..=1, |_| Type::DOUBLE, |v, _| double(v, f64::log2)),
    function!("LOG10", 1..=1, |_| Type::DOUBLE, |v, _| double(v, f64::log10)),
    function!("SIN", 1..=1, |_| Type::DOUBLE, |v, _| double(v, f64::sin)),
    function!("COS", 1..=1, |_| Type::DOUBLE, |v, _| double(v, f64::cos)),
    function!("TAN", 1..=1, |_| Type::DOUBLE, |v, _| double(v, f64::tan)),
    function!("ATAN", 1..=1, |_| Type::DOUBLE, |v, _| double(v, f64::atan)),
    function!("PI", 0..=0, |_| Type::DOUBLE, |_, _| Ok(Value::Double(std::f64::consts::PI))),
    function!("CRC32", 1..=1, |_| Type::UINT, |v, _| Ok(match v[0].is_null() {
        true => Value::Null,
        false => Value::UInt(u64::from(crc32(&v[0].to_text()))),
    })),
    function!("GREATEST", 2..=255, widest, |v, _| extreme(v, std::cmp::Ordering::Greater)),
    function!("LEAST", 2..=255, widest, |v, _| extreme(v, std::cmp::Ordering::Less)),
    function!("BIT_COUNT", 1..=1, |_| Type::INT, |v, _| Ok(match v[0].is_null() {
        true => Value::Null,
        false => Value::Int(i64::from(v[0].to_bits().count_ones())),
    })),
    function!("ISNULL", 1..=1, |_| Type::BOOL, |v, _| Ok(Value::truth_value(v[0].is_null()))),
    function!("INTERVAL", 2..=255, |_| Type::INT, |v, _| {
        if v[0].is_null() {
            return Ok(Value::Int(-1));
        }
        let below =
            v[1..].iter().take_while(|x| compare::compare(x, &v[0]).is_some_and(|o| o.is_le())).count();
        Ok(Value::Int(below as i64))
    }),
    // Text
    function!("LENGTH", 1..=1, |_| Type::INT, |v, _| Ok(length(&v[0], <[u8]>::len))),
    function!("OCTET_LENGTH", 1..=1, |_| Type::INT, |v, _| Ok(length(&v[0], <[u8]>::len))),
    function!("CHAR_LENGTH", 1..=1, |_| Type::INT, |v, _| {
        let rule = v[0].collation();
        Ok(length(&v[0], |text| collation::char_count(text, rule)))
    }),
    function!("CHARACTER_LENGTH", 1..=1, |_| Type::INT, |v, _| {
        let rule = v[0].collation();
        Ok(length(&v[0], |text| collation::char_count(text, rule)))
    }),
    function!("BIT_LENGTH", 1..=1, |_| Type::INT, |v, _| Ok(length(&v[0], |text| text.len() * 8))),
    function!("LOWER", 1..=1, text_like, |v, _| text(v, collation::lower)),
    function!("LCASE", 1..=1, text_like, |v, _| text(v, collation::lower)),
    function!("UPPER", 1..=1, text_like, |v, _| text(v, collation::upper)),
    function!("UCASE", 1..=1, text_like, |v, _| text(v, collation::upper)),
    function!("REVERSE", 1..=1, text_like, |v, _| text(v, |t| {
        String::from_utf8_lossy(t).chars().rev().collect::<String>().into_bytes()
    })),
    function!("LTRIM", 1..=1, text_like, |v, _| text(v, |t| t
        [t.iter().take_while(|b| **b == b' ').count()..]
        .to_vec())),
    function!("RTRIM", 1..=1, text_like, |v, _| text(v, |t| {
        t[..t.iter().rposition(|b| *b != b' ').map_or(0, |last| last + 1)].to_vec()
    })),
    function!("CONCAT", 1..=255, text_sum, |v, _| {
        if any_null(v) {
            return Ok(Value::Null);
        }
        let rule =
            v.iter().map(Value::collation).reduce(collation::common).unwrap_or(Collation::Utf8mb4GeneralCi);
        Ok(owned_text(v.iter().flat_map(|value| value.to_text().into_owned()).collect(), rule))
    }),
    function!("CONCAT_WS", 2..=255, text_sum, |v, _| {
        if v[0].is_null() {
            return Ok(Value::Null);
        }
        let parts: Vec<_> =
            v[1..].iter().filter(|x| !x.is_null()).map(|x| x.to_text().into_owned()).collect();
        Ok(owned_text(parts.join(&v[0].to_text()[..]), v[0].collation()))
    }),
    function!("LEFT", 2..=2, text_like, |v, _| substring(v, 1, |v| Some(index(v, 1)))),
    function!("RIGHT", 2..=2, text_like, |v, _| {
        let count = collation::char_count(&v[0].to_text(), v[0].collation()) as i64;
        let wanted = index(v, 1).clamp(0, count);
        substring(v, count - wanted + 1, |_| None)
    }),
    function!("SUBSTRING", 2..=3, text_like, |v, _| {
        substring(v, index(v, 1), |v| v.get(2).map(Value::to_i64))
    }),
    function!("SUBSTRING_INDEX", 3..=3, text_like, |v, _| substring_index(v)),
    function!("LOCATE", 2..=3, |_| Type::INT, |v, _| locate(v)),
    function!("INSTR", 2..=2, |_| Type::INT, |v, _| locate(&[v[1].clone(), v[0].clone()])),
    function!("REPLACE", 3..=3, text_sum, |v, _| {
        if any_null(v) {
            return Ok(Value::Null);
        }
        let (text, from, to) = (v[0].to_text(), v[1].to_text(), v[2].to_text());
        Ok(owned_text(replace(&text, &from, &to), v[0].collation()))
    }),
    function!("REPEAT", 2..=2, |_| Type::text(65_535), |v, _| {
        if any_null(v) {
            return Ok(Value::Null);
        }
        let (text, count) = (v[0].to_text(), index(v, 1).max(0) as u64);
        if (text.len() as u64).saturating_mul(count) > TEXT_MAX {
            return Ok(Value::Null);
        }
        Ok(owned_text(text.repeat(count as usize), v[0].collation()))
    }),
    function!("SPACE", 1..=1, |_| Type::text(65_535), |v, _| {
        let count = index(v, 0).max(0) as u64;
        let null = v[0].is_null() || count > TEXT_MAX;
        Ok(if null {
            Value::Null
        } else {
            owned_text(vec![b' '; count as usize], Collation::Utf8mb4GeneralCi)
        })
    }),
    function!("LPAD", 3..=3, |_| Type::text(65_535), |v, _| pad(v, true)),
    function!("RPAD", 3..=3, |_| Type::text(65_535), |v, _| pad(v, false)),
    function!("INSERT", 4..=4, text_sum, |v, _| insert(v)),
    function!("ASCII", 1..=1, |_| Type::INT, |v, _| {
        Ok(length(&v[0], |text| usize::from(text.first().copied().unwrap_or(0))))
    }),
    function!("ORD", 1..=1, |_| Type::INT, |v, _| {
        Ok(length(&v[0], |text| {
            text.iter().take(if text.is_ascii() { 1 } else { 4 }).fold(0, |n, b| n << 8 | usize::from(*b))
        }))
    }),
    function!("CHAR", 1..=255, |t| Type::bytes(4 * t.len() as u32), |v, _| {
        let mut bytes = Vec::new();
        for value in v.iter().filter(|value| !value.is_null()) {
            let code = (value.to_bits() as u32).to_be_bytes();
            let first = code.iter().position(|b| *b != 0).unwrap_or(3);
            bytes.extend_from_slice(&code[first..]);
        }
        Ok(owned_text(bytes, Collation::Binary))
    }),
    function!("HEX", 1..=1, |t| Type::text(t.first().map_or(0, |t| t.length.saturating_mul(8))), |v, _| Ok(
        match &v[0] {
            Value::Null => Value::Null,
            Value::Text(text, _) => Value::text(text.iter().map(|b| format!("{b:02X}")).collect::<String>()),
            number => Value::text(format!("{:X}", number.to_bits())),
        }
    )),
    function!("UNHEX", 1..=1, |t| Type::bytes(t.first().map_or(0, |t| t.length / 2)), |v, _| {
        let mut token = b"0x".to_vec();
        token.extend_from_slice(&v[0].to_text());
        let bytes = if v[0].is_null() { None } else { super::super::lexer::hex_value(&token) };
        Ok(bytes.map_or(Value::Null, |bytes| owned_text(bytes, Collation::Binary)))
    }),
    function!("BIN", 1..=1, |_| Type::text(64), |v, _| Ok(match v[0].is_null() {
        true => Value::Null,
        false => Value::text(format!("{:b}", v[0].to_bits())),
    })),
    function!("CONV", 3..=3, |_| Type::text(64), |v, _| conv(v)),
    function!("STRCMP", 2..=2, |_| Type::INT, |v, _| {
        let (a, b) =
            (Value::Text(v[0].to_text(), v[0].collation()), Value::Text(v[1].to_text(), v[1].collation()));
        Ok(if any_null(v) {
            Value::Null
        } else {
            compare::compare(&a, &b).map_or(Value::Null, |o| Value::Int(o as i64))
        })
    }),
    function!("ELT", 2..=255, |t| text_sum(&t[1..]), |v, _| {
        let at = index(v, 0);
        Ok(usize::try_from(at)
            .ok()
            .filter(|at| *at > 0)
            .and_then(|at| v.get(at))
            .cloned()
            .unwrap_or(Value::Null))
    }),
    function!("FIELD", 2..=255, |_| Type::INT, |v, _| {
        let at = v[1..].iter().position(|x| compare::compare(&v[0], x) == Some(std::cmp::Ordering::Equal));
        Ok(Value::Int(at.map_or(0, |at| at as i64 + 1)))
    }),
    function!("FIND_IN_SET", 2..=2, |_| Type::INT, |v, _| {
        if any_null(v) {
            return Ok(Value::Null);
        }
        let (wanted, list) = (v[0].to_text(), v[1].to_text());
        let rule = collation::common(v[0].collation(), v[1].collation());
        let at = list.split(|b| *b == b',').position(|item| collation::compare(item, &wanted, rule).is_eq());
        Ok(Value::Int(at.map_or(0, |at| at as i64 + 1)))
    }),
    function!("QUOTE", 1..=1, |t| Type::text(t.first().map_or(0, |t| t.length * 2 + 2)), |v, _| Ok(
        match v[0].is_null() {
            true => Value::text("NULL"),
            false => owned_text(quote(&v[0].to_text()), v[0].collation()),
        }
    )),
    function!("FORMAT", 2..=3, |_| Type::text(64), |v, _| Ok(match v[0].is_null() {
        true => Value::Null,
        false => Value::text(grouped(&decimal::format(&decimal::round(
            &v[0].to_decimal(),
            index(v, 1).clamp(0, 30)
        )))),
    })),
    function!("JSON_EXTRACT", 2..=255, |_| Type::text(65_535), |_, _| Ok(Value::Null)),
    function!("JSON_UNQUOTE", 1..=1, |_| Type::text(65_535), |v, _| Ok(v[0].clone())),
    // Dates
    function!("YEAR", 1..=1, |_| Type::INT, |v, cx| of_date(v, cx, |d| d.date.year.into())),
    function!("MONTH", 1..=1, |_| Type::INT, |v, cx| of_date(v, cx, |d| d.date.month.into())),
    function!("DAY", 1..=1, |_| Type::INT, |v, cx| of_date(v, cx, |d| d.date.day.into())),
    function!("DAYOFMONTH", 1..=1, |_| Type::INT, |v, cx| of_date(v, cx, |d| d.date.day.into())),
    function!("QUARTER", 1..=1, |_| Type::INT, |v, cx| of_date(v, cx, |d| (i64::from(d.date.month) + 2) / 3)),
    function!("DAYOFYEAR", 1..=1, |_| Type::INT, |v, cx| of_date(v, cx, |d| temporal::day_of_year(d.date))),
    function!("DAYOFWEEK", 1..=1, |_| Type::INT, |v, cx| of_date(v, cx, |d| (temporal::weekday(d.date) + 1)
        % 7
        + 1)),
    function!("WEEKDAY", 1..=1, |_| Type::INT, |v, cx| of_date(v, cx, |d| temporal::weekday(d.date))),
    function!("WEEK", 1..=2, |_| Type::INT, |v, cx| {
        let mode = index(v, 1) as u8;
        of_date(v, cx, |d| temporal::week(d.date, mode).0)
    }),
    function!("WEEKOFYEAR", 1..=1, |_| Type::INT, |v, cx| of_date(v, cx, |d| temporal::week(d.date, 3).0)),
    function!("YEARWEEK", 1..=2, |_| Type::INT, |v, cx| {
        let mode = index(v, 1) as u8 | 2;
        of_date(v, cx, |d| {
            let (week, year) = temporal::week(d.date, mode);
            year * 100 + week
        })
    }),
    function!("TO_DAYS", 1..=1, |_| Type::INT, |v, cx| of_date(v, cx, |d| temporal::day_number(d.date))),
    function!("TO_SECONDS", 1..=1, |_| Type::INT, |v, cx| of_date(v, cx, |d| d.to_unix() + 62_167_219_200)),
    function!("FROM_DAYS", 1..=1, |_| Type::DATE, |v, _| {
        let date = if v[0].is_null() { None } else { temporal::from_day_number(index(v, 0)) };
        Ok(date.map_or(Value::Null, Value::Date))
    }),
    function!("HOUR", 1..=1, |_| Type::INT, |v, _| of_time(v, |t| t.hours.into())),
    function!("MINUTE", 1..=1, |_| Type::INT, |v, _| of_time(v, |t| t.minutes.into())),
    function!("SECOND", 1..=1, |_| Type::INT, |v, _| of_time(v, |t| t.seconds.into())),
    function!("MICROSECOND", 1..=1, |_| Type::INT, |v, _| of_time(v, |t| t.micros.into())),
    function!("TIME_TO_SEC", 1..=1, |_| Type::INT, |v, _| of_time(v, |t| temporal::time_micros(t)
        / 1_000_000)),
    function!("SEC_TO_TIME", 1..=1, |_| Type::time(0), |v, _| Ok(match v[0].is_null() {
        true => Value::Null,
        false => Value::Time(temporal::time_from_micros(index(v, 0).saturating_mul(1_000_000)), 0),
    })),
    function!("DATE", 1..=1, |_| Type::DATE, |v, cx| Ok(match v[0].to_datetime(super::today(cx)) {
        Some((moment, _)) => Value::Date(moment.date),
        None => Value::Null,
    })),
    function!("TIME", 1..=1, |_| Type::time(6), |v, _| Ok(match v[0].to_time() {
        Some((span, digits)) => Value::Time(span, digits),
        None => Value::Null,
    })),
    function!("TIMESTAMP", 1..=2, |_| Type::datetime(6), |v, cx| {
        let Some((moment, digits)) = v[0].to_datetime(super::today(cx)) else { return Ok(Value::Null) };
        let Some(span) = v.get(1) else { return Ok(Value::DateTime(moment, digits)) };
        let Some((span, more)) = span.to_time() else { return Ok(Value::Null) };
        let sum = temporal::datetime_micros(moment) + temporal::time_micros(span);
        Ok(temporal::datetime_from_micros(sum)
            .map_or(Value::Null, |sum| Value::DateTime(sum, digits.max(more))))
    }),
    function!("DATEDIFF", 2..=2, |_| Type::INT, |v, cx| {
        let day = |value: &Value<'_>| {
            value.to_datetime(super::today(cx)).map(|(m, _)| temporal::day_number(m.date))
        };
        Ok(day(&v[0]).zip(day(&v[1])).map_or(Value::Null, |(a, b)| Value::Int(a - b)))
    }),
    function!("TIMEDIFF", 2..=2, |_| Type::time(6), |v, cx| time_diff(v, cx)),
    function!("ADDTIME", 2..=2, |t| t[0], |v, _| add_time(v, 1)),
    function!("SUBTIME", 2..=2, |t| t[0], |v, _| add_time(v, -1)),
    function!("LAST_DAY", 1..=1, |_| Type::DATE, |v, cx| Ok(match v[0].to_datetime(super::today(cx)) {
        Some((moment, _)) if moment.date.month > 0 => {
            let day = temporal::days_in_month(moment.date.year, moment.date.month);
            Value::Date(Date { day, ..moment.date })
        }
        _ => Value::Null,
    })),
    function!("MAKEDATE", 2..=2, |_| Type::DATE, |v, _| {
        let first = Date { year: index(v, 0).clamp(0, 9999) as u16, month: 1, day: 1 };
        let date = temporal::from_day_number(temporal::day_number(first) + index(v, 1) - 1);
        Ok(if any_null(v) || index(v, 1) < 1 { Value::Null } else { date.map_or(Value::Null, Value::Date) })
    }),
    function!("DAYNAME", 1..=1, |_| Type::text(9), |v, cx| Ok(match v[0].to_datetime(super::today(cx)) {
        Some((moment, _)) => Value::text(DAYS[temporal::weekday(moment.date) as usize]),
        None => Value::Null,
    })),
    function!("MONTHNAME", 1..=1, |_| Type::text(9), |v, cx| Ok(match v[0].to_datetime(super::today(cx)) {
        Some((moment, _)) if moment.date.month > 0 => Value::text(MONTHS[usize::from(moment.date.month) - 1]),
        _ => Value::Null,
    })),
    function!("DATE_FORMAT", 2..=2, |_| Type::text(255), |v, cx| {
        if any_null(v) {
            return Ok(Value::Null);
        }
        let Some((moment, _)) = v[0].to_datetime(super::today(cx)) else { return Ok(Value::Null) };
        Ok(Value::text(date_format(moment, &v[1].to_string_lossy())))
    }),
    function!("TIME_FORMAT", 2..=2, |_| Type::text(255), |v, cx| {
        if any_null(v) {
            return Ok(Value::Null);
        }
        let Some((moment, _)) = v[0].to_datetime(super::today(cx)) else { return Ok(Value::Null) };
        Ok(Value::text(date_format(moment, &v[1].to_string_lossy())))
    }),
    function!("UNIX_TIMESTAMP", 0..=1, |_| Type::INT, |v, cx| match v.first() {
        None => Ok(Value::Int(cx.state.now_utc().to_unix())),
        Some(Value::Null) => Ok(Value::Null),
        Some(value) => Ok(match value.to_datetime(super::today(cx)) {
            Some((moment, _)) =>
                Value::Int((moment.to_unix() - i64::from(cx.state.time_zone_offset())).max(0)),
            None => Value::Int(0),
        }),
    }),
    function!(
        "FROM_UNIXTIME",
        1..=2,
        |t| if t.len() == 2 { Type::text(255) } else { Type::datetime(0) },
        |v, cx| {
            if any_null(v) || v[0].to_double() < 0.0 {
                return Ok(Value::Null);
            }
            let micros =
                (v[0].to_double() * 1e6).round() as i64 + i64::from(cx.state.time_zone_offset()) * 1_000_000;
            let Some(moment) = temporal::datetime_from_micros(micros) else { return Ok(Value::Null) };
            Ok(match v.get(1) {
                Some(format) => Value::text(date_format(moment, &format.to_string_lossy())),
                None => Value::DateTime(moment, if moment.micros > 0 { 6 } else { 0 }),
            })
        }
    ),
    function!("CONVERT_TZ", 3..=3, |_| Type::datetime(6), |v, cx| {
        let Some((moment, digits)) = v[0].to_datetime(super::today(cx)) else { return Ok(Value::Null) };
        let offset = |zone: &Value<'_>| crate::session::state::zone_offset(&zone.to_string_lossy());
        let (Some(from), Some(to)) = (offset(&v[1]), offset(&v[2])) else { return Ok(Value::Null) };
        let micros = temporal::datetime_micros(moment) + i64::from(to - from) * 1_000_000;
        Ok(temporal::datetime_from_micros(micros).map_or(Value::Null, |m| Value::DateTime(m, digits)))
    }),
];

const DAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

fn length<'a>(value: &Value<'_>, count: impl Fn(&[u8]) -> usize) -> Value<'a> {
    if value.is_null() { Value::Null } else { Value::Int(count(&value.to_text()) as i64) }
}

fn ceil_floor<'a>(value: &Value<'_>, apply: fn(f64) -> f64) -> Evaluated<'a> {
    Ok(match value {
        Value::Null => Value::Null,
        Value::Int(v) => Value::Int(*v),
        Value::UInt(v) => Value::UInt(*v),
        Value::Decimal(v) => {
            let whole = v.with_scale(0);
            let up = apply(0.5) > 0.5;
            let adjusted = if up && whole < *v {
                whole + 1
            } else if !up && whole > *v {
                whole - 1
            } else {
                whole
            };
            Value::Int(decimal::to_integer(&adjusted).clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64)
        }
        other => Value::Double(apply(other.to_double())),
    })
}

fn round<'a>(values: &[Value<'a>]) -> Evaluated<'a> {
    if any_null(values) {
        return Ok(Value::Null);
    }
    let digits = index(values, 1).clamp(-65, 30);
    Ok(match &values[0] {
        Value::Int(_) | Value::UInt(_) if digits >= 0 => values[0].clone(),
        value @ (Value::Int(_) | Value::UInt(_)) => {
            Value::Int(decimal::to_integer(&decimal::round(&value.to_decimal(), digits)) as i64)
        }
        Value::Decimal(v) if digits >= i64::from(decimal::scale(v)) => Value::Decimal(v.clone()),
        Value::Decimal(v) => Value::Decimal(decimal::round(v, digits)),
        value => {
            let scale = 10f64.powi(digits as i32);
            let scaled = value.to_double() * scale;
            Value::Double(if scaled.is_finite() { scaled.round() / scale } else { value.to_double() })
        }
    })
}

fn truncate<'a>(values: &[Value<'a>]) -> Evaluated<'a> {
    if any_null(values) {
        return Ok(Value::Null);
    }
    let digits = index(values, 1).clamp(-65, 30);
    Ok(match &values[0] {
        Value::Int(_) | Value::UInt(_) if digits >= 0 => values[0].clone(),
        value @ (Value::Int(_) | Value::UInt(_)) => {
            Value::Int(decimal::to_integer(&value.to_decimal().with_scale(digits)) as i64)
        }
        Value::Decimal(v) if digits >= i64::from(decimal::scale(v)) => Value::Decimal(v.clone()),
        Value::Decimal(v) => Value::Decimal(v.with_scale(digits)),
        value => {
            let scale = 10f64.powi(digits as i32);
            Value::Double((value.to_double() * scale).trunc() / scale)
        }
    })
}

fn power<'a>(values: &[Value<'a>]) -> Evaluated<'a> {
    if any_null(values) {
        return Ok(Value::Null);
    }
    let result = values[0].to_double().powf(values[1].to_double());
    if result.is_finite() {
        return Ok(Value::Double(result));
    }
    let text = format!("pow({},{})", values[0].to_string_lossy(), values[1].to_string_lossy());
    Err(errors::error(errors::DATA_OUT_OF_RANGE, &[&"DOUBLE", &text]))
}

fn extreme<'a>(values: &[Value<'a>], wanted: std::cmp::Ordering) -> Evaluated<'a> {
    let mut best = values[0].clone();
    for value in values {
        match compare::compare(value, &best) {
            None => return Ok(Value::Null),
            Some(ordering) if ordering == wanted => best = value.clone(),
            Some(_) => {}
        }
    }
    Ok(best)
}

/// CRC-32 of zlib (the crc32c crate has another polynomial).
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0u32, |crc, byte| {
        (0..8).fold(
            crc ^ u32::from(*byte),
            |crc, _| if crc & 1 == 1 { crc >> 1 ^ 0xEDB8_8320 } else { crc >> 1 },
        )
    })
}

/// `from` counts characters from 1, or from the end when negative.
fn substring<'a>(
    values: &[Value<'a>],
    from: i64,
    count: impl Fn(&[Value<'a>]) -> Option<i64>,
) -> Evaluated<'a> {
    if any_null(values) {
        return Ok(Value::Null);
    }
    let rule = values[0].collation();
    let text = values[0].to_text();
    let characters = collation::char_count(&text, rule) as i64;
    let start = if from < 0 { characters + from } else { from - 1 };
    let wanted = count(values).unwrap_or(i64::MAX);
    if from == 0 || start < 0 || start >= characters || wanted <= 0 {
        return Ok(owned_text(Vec::new(), rule));
    }
    let end = start.saturating_add(wanted).min(characters);
    let from = collation::char_offset(&text, start as usize, rule);
    let to = collation::char_offset(&text, end as usize, rule);
    Ok(owned_text(text[from..to].to_vec(), rule))
}

fn find_bytes(text: &[u8], needle: &[u8], from: usize) -> Option<usize> {
    if needle.is_empty() {
        return (from <= text.len()).then_some(from);
    }
    text.get(from..)?.windows(needle.len()).position(|window| window == needle).map(|at| at + from)
}

fn substring_index<'a>(values: &[Value<'a>]) -> Evaluated<'a> {
    if any_null(values) {
        return Ok(Value::Null);
    }
    let (text, delimiter, count) = (values[0].to_text(), values[1].to_text(), index(values, 2));
    let rule = values[0].collation();
    if delimiter.is_empty() || count == 0 {
        return Ok(owned_text(Vec::new(), rule));
    }
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(next) = find_bytes(&text, &delimiter, at) {
        found.push(next);
        at = next + delimiter.len();
    }
    let wanted = count.unsigned_abs() as usize;
    let part = if wanted > found.len() {
        &text[..]
    } else if count > 0 {
        &text[..found[wanted - 1]]
    } else {
        &text[found[found.len() - wanted] + delimiter.len()..]
    };
    Ok(owned_text(part.to_vec(), rule))
}

fn locate<'a>(values: &[Value<'a>]) -> Evaluated<'a> {
    if any_null(values) {
        return Ok(Value::Null);
    }
    let rule = collation::common(values[0].collation(), values[1].collation());
    let fold = |text: &[u8]| {
        if rule == Collation::Utf8mb4GeneralCi { collation::lower(text) } else { text.to_vec() }
    };
    let (needle, text) = (fold(&values[0].to_text()), fold(&values[1].to_text()));
    let from = values.get(2).map_or(1, Value::to_i64);
    if from < 1 {
        return Ok(Value::Int(0));
    }
    let from = collation::char_offset(&text, from as usize - 1, rule);
    let found = find_bytes(&text, &needle, from);
    Ok(Value::Int(found.map_or(0, |at| collation::char_count(&text[..at], rule) as i64 + 1)))
}

fn replace(text: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    if from.is_empty() {
        return text.to_vec();
    }
    let mut result = Vec::with_capacity(text.len());
    let mut at = 0;
    while let Some(next) = find_bytes(text, from, at) {
        result.extend_from_slice(&text[at..next]);
        result.extend_from_slice(to);
        at = next + from.len();
    }
    result.extend_from_slice(&text[at..]);
    result
}

fn pad<'a>(values: &[Value<'a>], left: bool) -> Evaluated<'a> {
    if any_null(values) || index(values, 1) < 0 || index(values, 1) as u64 > TEXT_MAX {
        return Ok(Value::Null);
    }
    let rule = values[0].collation();
    let (text, padding, wanted) = (values[0].to_text(), values[2].to_text(), index(values, 1) as usize);
    let have = collation::char_count(&text, rule);
    if have >= wanted {
        return Ok(owned_text(text[..collation::char_offset(&text, wanted, rule)].to_vec(), rule));
    }
    if padding.is_empty() {
        return Ok(owned_text(Vec::new(), rule));
    }
    let unit = collation::char_count(&padding, rule);
    let missing = wanted - have;
    let mut filler = padding.repeat(missing / unit);
    filler.extend_from_slice(&padding[..collation::char_offset(&padding, missing % unit, rule)]);
    let whole = if left { [&filler[..], &text[..]].concat() } else { [&text[..], &filler[..]].concat() };
    Ok(owned_text(whole, rule))
}

fn insert<'a>(values: &[Value<'a>]) -> Evaluated<'a> {
    if any_null(values) {
        return Ok(Value::Null);
    }
    let rule = values[0].collation();
    let text = values[0].to_text();
    let characters = collation::char_count(&text, rule) as i64;
    let (at, count) = (index(values, 1), index(values, 2));
    if at < 1 || at > characters {
        return Ok(owned_text(text.to_vec(), rule));
    }
    let rest = if count < 0 { characters } else { (at - 1).saturating_add(count).min(characters) };
    let from = collation::char_offset(&text, at as usize - 1, rule);
    let to = collation::char_offset(&text, rest as usize, rule);
    Ok(owned_text([&text[..from], &values[3].to_text()[..], &text[to..]].concat(), rule))
}

fn conv<'a>(values: &[Value<'a>]) -> Evaluated<'a> {
    let (from, to) = (index(values, 1), index(values, 2));
    if any_null(values) || !(2..=36).contains(&from.abs()) || !(2..=36).contains(&to.abs()) {
        return Ok(Value::Null);
    }
    let text = values[0].to_string_lossy();
    let text = text.trim();
    let negative = text.starts_with('-');
    let base = from.unsigned_abs() as u32;
    let digits = text.trim_start_matches('-').chars().map_while(|c| c.to_digit(base));
    let number = digits.fold(0u64, |n, d| n.saturating_mul(u64::from(base)).saturating_add(u64::from(d)));
    let mut number = if negative { (number as i64).wrapping_neg() as u64 } else { number };
    let minus = to < 0 && (number as i64) < 0;
    if minus {
        number = (number as i64).unsigned_abs();
    }
    let base = to.unsigned_abs();
    let mut result = Vec::new();
    while number > 0 || result.is_empty() {
        let digit = char::from_digit((number % base) as u32, 36).unwrap_or('0');
        result.push(digit.to_ascii_uppercase());
        number /= base;
    }
    if minus {
        result.push('-');
    }
    Ok(Value::text(result.into_iter().rev().collect::<String>()))
}

fn quote(text: &[u8]) -> Vec<u8> {
    let mut result = vec![b'\''];
    for &byte in text {
        match byte {
            b'\'' | b'\\' => result.extend_from_slice(&[b'\\', byte]),
            0 => result.extend_from_slice(b"\\0"),
            26 => result.extend_from_slice(b"\\Z"),
            _ => result.push(byte),
        }
    }
    result.push(b'\'');
    result
}

/// Commas between groups of three digits.
fn grouped(number: &str) -> String {
    let (sign, rest) = number.strip_prefix('-').map_or(("", number), |rest| ("-", rest));
    let (whole, fraction) = rest.split_once('.').map_or((rest, None), |(w, f)| (w, Some(f)));
    let mut result = sign.to_owned();
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            result.push(',');
        }
        result.push(digit);
    }
    if let Some(fraction) = fraction {
        result.push('.');
        result.push_str(fraction);
    }
    result
}

/// TRIM.
pub fn trim<'a>(side: TrimSide, what: Option<Value<'a>>, operand: Value<'a>) -> Value<'a> {
    if operand.is_null() || what.as_ref().is_some_and(Value::is_null) {
        return Value::Null;
    }
    let what = what.map_or(Cow::Borrowed(&b" "[..]), |what| Cow::Owned(what.to_text().into_owned()));
    let rule = operand.collation();
    let text = operand.to_text();
    let mut rest: &[u8] = &text;
    if what.is_empty() {
        return owned_text(rest.to_vec(), rule);
    }
    if side != TrimSide::Trailing {
        while let Some(shorter) = rest.strip_prefix(&what[..]) {
            rest = shorter;
        }
    }
    if side != TrimSide::Leading {
        while let Some(shorter) = rest.strip_suffix(&what[..]) {
            rest = shorter;
        }
    }
    owned_text(rest.to_vec(), rule)
}

/// Microseconds cut to so many digits, rounded half up; may carry.
pub fn round_datetime(value: DateTime, digits: u8) -> DateTime {
    let unit = 10i64.pow(6 - u32::from(digits.min(6)));
    if i64::from(value.micros) % unit == 0 || value.date.month == 0 || value.date.day == 0 {
        let micros = i64::from(value.micros) / unit * unit;
        return DateTime { micros: micros as u32, ..value };
    }
    let micros = (temporal::datetime_micros(value) + unit / 2).div_euclid(unit) * unit;
    temporal::datetime_from_micros(micros).unwrap_or(value)
}

/// As [`round_datetime`], for spans.
pub fn round_time(value: Time, digits: u8) -> Time {
    let unit = 10i64.pow(6 - u32::from(digits.min(6)));
    let micros = temporal::time_micros(Time { negative: false, ..value });
    let rounded = (micros + unit / 2) / unit * unit;
    temporal::time_from_micros(if value.negative { -rounded } else { rounded })
}

/// `date ± INTERVAL amount unit`: text stays text, a DATE stays one unless the unit is finer than a day.
pub fn date_shift<'a>(
    date: Value<'a>,
    amount: &Value<'_>,
    unit: IntervalUnit,
    subtract: bool,
    cx: &Context<'a>,
) -> Evaluated<'a> {
    if date.is_null() || amount.is_null() {
        return Ok(Value::Null);
    }
    let (months, micros) = temporal::interval(&amount.to_string_lossy(), unit);
    let sign = if subtract { -1 } else { 1 };
    if let Value::Time(span, digits) = date
        && months == 0
    {
        let sum = temporal::time_micros(span) + sign * micros;
        return Ok(Value::Time(temporal::time_from_micros(sum), digits));
    }
    let Some((moment, digits)) = date.to_datetime(super::today(cx)) else { return Ok(Value::Null) };
    let moved = if months == 0 { Some(moment) } else { temporal::add_months(moment, sign * months) };
    let moved = moved.and_then(|moment| {
        let sum = temporal::datetime_micros(moment).checked_add(sign * micros)?;
        temporal::datetime_from_micros(sum)
    });
    let Some(moved) = moved else {
        cx.state.warn(errors::error(errors::DATETIME_FUNCTION_OVERFLOW, &[&"datetime"]));
        return Ok(Value::Null);
    };
    let whole_days = micros % 86_400_000_000 == 0 && !finer_than_day(unit);
    let digits = if moved.micros > 0 { 6 } else { digits };
    let text_is_date = matches!(&date, Value::Text(text, _) if text.len() <= 10);
    Ok(match date {
        Value::Date(_) if whole_days => Value::Date(moved.date),
        Value::Text(..) if whole_days && text_is_date => Value::text(moved.date.to_string()),
        Value::Text(..) => Value::text(temporal::format_datetime(moved, digits)),
        _ => Value::DateTime(moved, digits),
    })
}

/// Whether an interval of this unit changes the time of day.
pub fn finer_than_day(unit: IntervalUnit) -> bool {
    use IntervalUnit::*;
    !matches!(unit, Day | Week | Month | Quarter | Year | YearMonth)
}

/// EXTRACT.
pub fn extract(unit: IntervalUnit, value: &Value<'_>) -> Value<'static> {
    use IntervalUnit::*;
    let moment = value.to_datetime(Date::default()).map(|(moment, _)| moment);
    let span = || value.to_time().map(|(span, _)| span).unwrap_or_default();
    let date = |f: fn(Date) -> i64| moment.map_or(Value::Null, |moment| Value::Int(f(moment.date)));
    if value.is_null() {
        return Value::Null;
    }
    match unit {
        Year => date(|d| d.year.into()),
        Month => date(|d| d.month.into()),
        Quarter => date(|d| (i64::from(d.month) + 2) / 3),
        Day => date(|d| d.day.into()),
        Week => date(|d| temporal::week(d, 0).0),
        YearMonth => date(|d| i64::from(d.year) * 100 + i64::from(d.month)),
        Hour => Value::Int(span().hours.into()),
        Minute => Value::Int(span().minutes.into()),
        Second => Value::Int(span().seconds.into()),
        Microsecond => Value::Int(span().micros.into()),
        MinuteSecond => Value::Int(temporal::time_number(span()) % 10_000),
        HourMinute => Value::Int(temporal::time_number(span()) / 100),
        HourSecond => Value::Int(temporal::time_number(span())),
        DayHour | DayMinute | DaySecond => moment.map_or(Value::Null, |moment| {
            let whole = temporal::datetime_number(moment) % 100_000_000;
            Value::Int(match unit {
                DayHour => whole / 10_000,
                DayMinute => whole / 100,
                _ => whole,
            })
        }),
    }
}

/// TIMESTAMPDIFF.
pub fn timestamp_diff(unit: IntervalUnit, from: &Value<'_>, to: &Value<'_>) -> Value<'static> {
    use IntervalUnit::*;
    let moment = |value: &Value<'_>| value.to_datetime(Date::default()).map(|(moment, _)| moment);
    let (Some(from), Some(to)) = (moment(from), moment(to)) else { return Value::Null };
    let micros = temporal::datetime_micros(to) - temporal::datetime_micros(from);
    const SECOND: i64 = 1_000_000;
    let months = || {
        let (early, late, sign) = if micros >= 0 { (from, to, 1) } else { (to, from, -1) };
        let whole = (i64::from(late.date.year) - i64::from(early.date.year)) * 12
            + i64::from(late.date.month)
            - i64::from(early.date.month);
        let rest = |m: DateTime| (m.date.day, m.hour, m.minute, m.second, m.micros);
        sign * if rest(late) < rest(early) { whole - 1 } else { whole }
    };
    Value::Int(match unit {
        Microsecond => micros,
        Second => micros / SECOND,
        Minute => micros / (60 * SECOND),
        Hour => micros / (3600 * SECOND),
        Day => micros / (86_400 * SECOND),
        Week => micros / (7 * 86_400 * SECOND),
        Month => months(),
        Quarter => months() / 3,
        Year => months() / 12,
        _ => return Value::Null,
    })
}

fn time_diff<'a>(values: &[Value<'a>], cx: &Context<'a>) -> Evaluated<'a> {
    let moments = values.iter().any(|v| matches!(v, Value::DateTime(..) | Value::Date(_)));
    let date_text = |v: &Value<'_>| matches!(v, Value::Text(t, _) if t.contains(&b'-') && t.len() >= 10);
    if moments || values.iter().all(date_text) {
        let moment = |v: &Value<'_>| v.to_datetime(super::today(cx));
        let (Some((a, da)), Some((b, db))) = (moment(&values[0]), moment(&values[1])) else {
            return Ok(Value::Null);
        };
        let micros = temporal::datetime_micros(a) - temporal::datetime_micros(b);
        return Ok(Value::Time(temporal::time_from_micros(micros), da.max(db)));
    }
    let (Some((a, da)), Some((b, db))) = (values[0].to_time(), values[1].to_time()) else {
        return Ok(Value::Null);
    };
    let micros = temporal::time_micros(a) - temporal::time_micros(b);
    Ok(Value::Time(temporal::time_from_micros(micros), da.max(db)))
}

fn add_time<'a>(values: &[Value<'a>], sign: i64) -> Evaluated<'a> {
    let Some((span, digits)) = values[1].to_time() else { return Ok(Value::Null) };
    let micros = sign * temporal::time_micros(span);
    Ok(match &values[0] {
        Value::DateTime(moment, shown) => {
            temporal::datetime_from_micros(temporal::datetime_micros(*moment) + micros)
                .map_or(Value::Null, |moment| Value::DateTime(moment, digits.max(*shown)))
        }
        value => match value.to_time() {
            Some((base, shown)) => Value::Time(
                temporal::time_from_micros(temporal::time_micros(base) + micros),
                digits.max(shown),
            ),
            None => Value::Null,
        },
    })
}

/// DATE_FORMAT's specifiers.
fn date_format(moment: DateTime, format: &str) -> String {
    use std::fmt::Write as _;
    let date = moment.date;
    let day_name = DAYS[temporal::weekday(date).clamp(0, 6) as usize];
    let month_name = MONTHS.get(usize::from(date.month).wrapping_sub(1)).copied().unwrap_or("");
    let hour12 = (moment.hour + 11) % 12 + 1;
    let half = if moment.hour < 12 { "AM" } else { "PM" };
    let mut result = String::new();
    let mut chars = format.chars();
    while let Some(c) = chars.next() {
        if c != '%' {
            result.push(c);
            continue;
        }
        // Writing to a String cannot fail.
        let _ = match chars.next() {
            Some('Y') => write!(result, "{:04}", date.year),
            Some('y') => write!(result, "{:02}", date.year % 100),
            Some('m') => write!(result, "{:02}", date.month),
            Some('c') => write!(result, "{}", date.month),
            Some('d') => write!(result, "{:02}", date.day),
            Some('e') => write!(result, "{}", date.day),
            Some('H') => write!(result, "{:02}", moment.hour),
            Some('k') => write!(result, "{}", moment.hour),
            Some('h' | 'I') => write!(result, "{hour12:02}"),
            Some('l') => write!(result, "{hour12}"),
            Some('i') => write!(result, "{:02}", moment.minute),
            Some('s' | 'S') => write!(result, "{:02}", moment.second),
            Some('f') => write!(result, "{:06}", moment.micros),
            Some('p') => write!(result, "{half}"),
            Some('T') => write!(result, "{:02}:{:02}:{:02}", moment.hour, moment.minute, moment.second),
            Some('r') => write!(result, "{hour12:02}:{:02}:{:02} {half}", moment.minute, moment.second),
            Some('W') => write!(result, "{day_name}"),
            Some('a') => write!(result, "{}", &day_name[..3]),
            Some('M') => write!(result, "{month_name}"),
            Some('b') => write!(result, "{}", month_name.get(..3).unwrap_or("")),
            Some('j') => write!(result, "{:03}", temporal::day_of_year(date)),
            Some('w') => write!(result, "{}", (temporal::weekday(date) + 1) % 7),
            Some('u') => write!(result, "{:02}", temporal::week(date, 1).0),
            Some('U') => write!(result, "{:02}", temporal::week(date, 0).0),
            Some('v') => write!(result, "{:02}", temporal::week(date, 3).0),
            Some('V') => write!(result, "{:02}", temporal::week(date, 2).0),
            Some('x') => write!(result, "{:04}", temporal::week(date, 3).1),
            Some('X') => write!(result, "{:04}", temporal::week(date, 2).1),
            Some('D') => write!(result, "{}{}", date.day, ordinal(date.day)),
            Some(other) => write!(result, "{other}"),
            None => write!(result, "%"),
        };
    }
    result
}

fn ordinal(day: u8) -> &'static str {
    match (day % 10, day / 10) {
        (1, 0 | 2 | 3) => "st",
        (2, 0 | 2) => "nd",
        (3, 0 | 2) => "rd",
        _ => "th",
    }
}

/// Reads a number for LIMIT and the like.
pub fn as_count(value: &Value<'_>) -> u64 {
    value.to_integer().clamp(0, i128::from(u64::MAX)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_upper_case() {
        let mut names: Vec<_> = FUNCTIONS.iter().map(|f| f.name).collect();
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]));
        assert!(names.iter().all(|name| name.to_ascii_uppercase() == *name));
    }

    #[test]
    fn checksums_and_formats() {
        assert_eq!(crc32(b"MySQL"), 3_259_397_556);
        assert_eq!(grouped("-1234567.50"), "-1,234,567.50");
        let moment =
            DateTime { date: Date { year: 2024, month: 2, day: 3 }, hour: 13, ..DateTime::default() };
        assert_eq!(date_format(moment, "%W %D %M %Y %h%p"), "Saturday 3rd February 2024 01PM");
    }
}
