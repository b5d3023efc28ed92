//! Functions of numbers.

use untorn::types::Collation;

use super::{Function, any_null, chunks, function, index, owned_text, widest};
use crate::errors;
use crate::expr::types::Type;
use crate::expr::{Context, Evaluated, strict};
use crate::result::kind;
use crate::value::{BigDecimal, Value, compare, decimal};

/// As wide as the argument is shown; integers are BIGINT, as results of small ones may be larger.
fn number_like(types: &[Type]) -> Type {
    match types.first() {
        Some(t) if t.is_integer() => Type { kind: kind::LONGLONG, ..*t },
        Some(t) if t.kind == kind::NEWDECIMAL => *t,
        _ => Type::DOUBLE,
    }
}

/// The same for what is rounded, which is as wide as a BIGINT.
fn rounded(types: &[Type]) -> Type {
    match number_like(types) {
        like if like.is_integer() => Type { length: Type::INT.length, ..like },
        like => like,
    }
}

/// The year of this time that a number of two digits means: not of SQL's, but what comparing with a YEAR
/// makes of a constant.
pub static FULL_YEAR: Function = function!("YEAR", 1..=1, |_| Type::INT, |v, cx| {
    strict::check_year(&v[0], cx.state)?;
    let rounded = match &v[0] {
        Value::Decimal(number) => decimal::to_integer(&decimal::round(number, 0)),
        Value::Float(_) | Value::Double(_) => v[0].to_double().round() as i128,
        number if number.is_number() => number.to_integer(),
        // As it would be stored: a zero of less than four digits is the year 2000.
        Value::Text(text, _) => match v[0].to_double().round() as i128 {
            0 if text.first().is_some_and(u8::is_ascii_digit) && text.len() < 4 => 2000,
            number => number,
        },
        _ => return Ok(v[0].clone()),
    };
    Ok(match i64::try_from(rounded) {
        Ok(year @ 1..=69) => Value::Int(2000 + year),
        Ok(year @ 70..=99) => Value::Int(1900 + year),
        Ok(year) => Value::Int(year),
        Err(_) => v[0].clone(),
    })
});

/// The exact number that a text begins with: not of SQL's, but what comparing with a DECIMAL makes of a
/// constant.
pub static EXACT_NUMBER: Function = function!("EXACT", 1..=1, |_| exact_number_type(), |v, cx| {
    strict::check_exact(&v[0], cx.state)?;
    Ok(if v[0].is_null() { Value::Null } else { Value::Decimal(v[0].to_decimal()) })
});

/// The same of what a function answers, which strict mode takes.
pub static EXACT_NUMBER_MADE: Function = function!("EXACT NUMBER", 1..=1, |_| exact_number_type(), |v, _| {
    Ok(if v[0].is_null() { Value::Null } else { Value::Decimal(v[0].to_decimal()) })
});

/// A text in the place of a number, as it is: strict mode refuses one that is none.
pub static NUMBER_IN_TEXT: Function = function!("NUMBER IN TEXT", 1..=1, widest, |v, cx| {
    strict::check_number(&v[0], "DOUBLE", cx.state)?;
    Ok(v[0].clone())
});

/// The same in the place of an integer.
pub static INTEGER_IN_TEXT: Function = function!("INTEGER IN TEXT", 1..=1, widest, |v, cx| {
    strict::check_number(&v[0], "INTEGER", cx.state)?;
    Ok(v[0].clone())
});

/// Any exact number.
pub fn exact_number_type() -> Type {
    Type::decimal(65, 30)
}

/// A number as ZEROFILL shows it: what functions of text are given of such a column.
pub static ZERO_FILLED: Function = function!("ZEROFILL", 2..=2, |_| Type::text(255), |v, _| {
    if any_null(v) {
        return Ok(Value::Null);
    }
    let text = v[0].to_text();
    let missing = usize::try_from(v[1].to_i64()).unwrap_or(0).saturating_sub(text.len());
    Ok(owned_text([&vec![b'0'; missing], &*text].concat(), Collation::Utf8mb4GeneralCi))
});

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

/// A function of one double that is an error where it has no value.
fn finite(value: &Value<'_>, name: &str, apply: impl Fn(f64) -> f64) -> Evaluated<'static> {
    if value.is_null() {
        return Ok(Value::Null);
    }
    let result = apply(value.to_double());
    if result.is_finite() {
        return Ok(Value::Double(result));
    }
    let text = format!("{name}({})", value.to_string_lossy());
    Err(errors::error(errors::DATA_OUT_OF_RANGE, &[&"DOUBLE", &text]))
}

/// A logarithm; of what has none NULL, with a warning.
fn logarithm(values: &[Value<'_>], cx: &Context<'_>, apply: impl Fn(f64) -> f64) -> Evaluated<'static> {
    if any_null(values) {
        return Ok(Value::Null);
    }
    let of = values[values.len() - 1].to_double();
    let base = if values.len() == 2 { values[0].to_double() } else { 10.0 };
    if of <= 0.0 || base <= 0.0 || base == 1.0 {
        cx.state.warn(errors::error(errors::INVALID_ARGUMENT_FOR_LOGARITHM, &[]));
        return Ok(Value::Null);
    }
    Ok(Value::Double(if values.len() == 2 { of.log(base) } else { apply(of) }))
}

/// The angle of a slope, or of the point (x, y) that is given as y, x.
fn arc_tangent(values: &[Value<'_>]) -> Evaluated<'static> {
    match values {
        [y, x] if !y.is_null() && !x.is_null() => Ok(Value::Double(y.to_double().atan2(x.to_double()))),
        values => double(values, f64::atan),
    }
}

/// The functions.
pub(super) static FUNCTIONS: &[Function] = &[
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
    function!("CEILING", 1..=1, rounded, |v, _| ceil_floor(&v[0], f64::ceil)),
    function!("CEIL", 1..=1, rounded, |v, _| ceil_floor(&v[0], f64::ceil)),
    function!("FLOOR", 1..=1, rounded, |v, _| ceil_floor(&v[0], f64::floor)),
    function!("ROUND", 1..=2, rounded, |v, _| round(v)),
    function!("TRUNCATE", 2..=2, rounded, |v, _| truncate(v)),
    function!("MOD", 2..=2, widest, |v, cx| {
        crate::expr::arithmetic::binary(
            crate::ast::BinaryOperator::Modulo,
            v[0].clone(),
            v[1].clone(),
            cx.state,
        )
    }),
    function!("POW", 2..=2, |_| Type::DOUBLE, |v, _| power(v)),
    function!("POWER", 2..=2, |_| Type::DOUBLE, |v, _| power(v)),
    function!("SQRT", 1..=1, |_| Type::DOUBLE, |v, _| double(v, f64::sqrt)),
    function!("EXP", 1..=1, |_| Type::DOUBLE, |v, _| finite(&v[0], "exp", f64::exp)),
    function!("LN", 1..=1, |_| Type::DOUBLE, |v, cx| logarithm(v, cx, f64::ln)),
    function!("LOG", 1..=2, |_| Type::DOUBLE, |v, cx| logarithm(v, cx, f64::ln)),
    function!("LOG2", 1..=1, |_| Type::DOUBLE, |v, cx| logarithm(v, cx, f64::log2)),
    function!("LOG10", 1..=1, |_| Type::DOUBLE, |v, cx| logarithm(v, cx, f64::log10)),
    function!("SIN", 1..=1, |_| Type::DOUBLE, |v, _| double(v, f64::sin)),
    function!("COS", 1..=1, |_| Type::DOUBLE, |v, _| double(v, f64::cos)),
    function!("TAN", 1..=1, |_| Type::DOUBLE, |v, _| double(v, f64::tan)),
    function!("ATAN", 1..=2, |_| Type::DOUBLE, |v, _| arc_tangent(v)),
    function!("ATAN2", 1..=2, |_| Type::DOUBLE, |v, _| arc_tangent(v)),
    function!("ACOS", 1..=1, |_| Type::DOUBLE, |v, _| double(v, f64::acos)),
    function!("ASIN", 1..=1, |_| Type::DOUBLE, |v, _| double(v, f64::asin)),
    function!("DEGREES", 1..=1, |_| Type::DOUBLE, |v, _| finite(&v[0], "degrees", f64::to_degrees)),
    function!("RADIANS", 1..=1, |_| Type::DOUBLE, |v, _| double(v, f64::to_radians)),
    function!("COT", 1..=1, |_| Type::DOUBLE, |v, _| finite(&v[0], "cot", |angle| 1.0 / angle.tan())),
    function!("PI", 0..=0, |_| Type { decimals: 6, length: 8, ..Type::DOUBLE }, |_, _| Ok(Value::Double(
        std::f64::consts::PI
    ))),
    function!("CRC32", 1..=1, |_| Type::UINT, |v, cx| {
        if v[0].is_null() {
            return Ok(Value::Null);
        }
        // Of zlib (the crc32c crate has another polynomial).
        let mut sum = flate2::Crc::new();
        chunks::each_chunk(&v[0].to_text(), &|bytes| cx.state.work(bytes), |piece| sum.update(piece))?;
        Ok(Value::UInt(u64::from(sum.sum())))
    }),
    function!("GREATEST", 2.., widest, |v, _| extreme(v, std::cmp::Ordering::Greater)),
    function!("LEAST", 2.., widest, |v, _| extreme(v, std::cmp::Ordering::Less)),
    function!("BIT_COUNT", 1..=1, |_| Type::INT, |v, _| Ok(match v[0].is_null() {
        true => Value::Null,
        false => Value::Int(i64::from(v[0].to_bits().count_ones())),
    })),
    function!("ISNULL", 1..=1, |_| Type::BOOL, |v, _| Ok(Value::truth_value(v[0].is_null()))),
    function!("INTERVAL", 2.., |_| Type::INT, |v, _| {
        if v[0].is_null() {
            return Ok(Value::Int(-1));
        }
        // Texts are numbers here. NULL is less than anything.
        let number = |value: &Value<'_>| match value {
            Value::Text(..) => Value::Double(value.to_double()),
            other => other.borrowed().into_owned(),
        };
        let wanted = number(&v[0]);
        let below = |x: &&Value<'_>| compare::compare(&number(x), &wanted).is_none_or(|o| o.is_le());
        let below = v[1..].iter().take_while(below).count();
        Ok(Value::Int(below as i64))
    }),
];

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
            match i64::try_from(decimal::to_integer(&adjusted)) {
                Ok(whole) => Value::Int(whole),
                Err(_) => Value::Decimal(adjusted),
            }
        }
        other => Value::Double(apply(other.to_double())),
    })
}

fn round<'a>(values: &[Value<'a>]) -> Evaluated<'a> {
    if any_null(values) {
        return Ok(Value::Null);
    }
    let said = index(values, 1);
    let digits = said.clamp(-65, 30);
    Ok(match &values[0] {
        Value::Int(_) | Value::UInt(_) if digits >= 0 => values[0].clone(),
        value @ (Value::Int(_) | Value::UInt(_)) => {
            return integer_of(&decimal::round(&value.to_decimal(), digits), value, "round", digits);
        }
        Value::Decimal(v) if digits >= i64::from(decimal::scale(v)) => Value::Decimal(v.clone()),
        Value::Decimal(v) => Value::Decimal(decimal::round(v, digits)),
        value => Value::Double(round_double(value.to_double(), said, f64::round_ties_even)),
    })
}

/// A double without the digits behind this one.
pub(super) fn round_double(value: f64, digits: i64, whole: fn(f64) -> f64) -> f64 {
    // Powers of ten are exact up to 10^22; beyond, the nearest double there is.
    let scale = match digits.unsigned_abs() {
        power @ 0..=22 => 10f64.powi(power as i32),
        power => format!("1e{}", power.min(1_000)).parse().unwrap_or(f64::INFINITY),
    };
    if digits < 0 && scale.is_infinite() {
        return 0.0;
    }
    let scaled = if digits < 0 { value / scale } else { value * scale };
    match (scaled.is_finite(), digits < 0) {
        (false, _) => value,
        (true, true) => {
            // The largest double rounded up is none.
            let rounded = whole(scaled) * scale;
            if rounded.is_finite() { rounded } else { 0.0 }
        }
        (true, false) => whole(scaled) / scale,
    }
}

/// What a function has made of an integer, with that one's sign.
fn integer_of<'a>(made: &BigDecimal, of: &Value<'_>, name: &str, digits: i64) -> Evaluated<'a> {
    let (wide, unsigned) = (decimal::to_integer(made), matches!(of, Value::UInt(_)));
    let fitted = match unsigned {
        true => u64::try_from(wide).ok().map(Value::UInt),
        false => i64::try_from(wide).ok().map(Value::Int),
    };
    fitted.ok_or_else(|| {
        let kind = if unsigned { "BIGINT UNSIGNED" } else { "BIGINT" };
        let text = format!("{name}({},{digits})", of.to_string_lossy());
        errors::error(errors::DATA_OUT_OF_RANGE, &[&kind, &text])
    })
}

fn truncate<'a>(values: &[Value<'a>]) -> Evaluated<'a> {
    if any_null(values) {
        return Ok(Value::Null);
    }
    let said = index(values, 1);
    let digits = said.clamp(-65, 30);
    Ok(match &values[0] {
        Value::Int(_) | Value::UInt(_) if digits >= 0 => values[0].clone(),
        value @ (Value::Int(_) | Value::UInt(_)) => {
            return integer_of(&value.to_decimal().with_scale(digits), value, "truncate", digits);
        }
        Value::Decimal(v) if digits >= i64::from(decimal::scale(v)) => Value::Decimal(v.clone()),
        Value::Decimal(v) => Value::Decimal(v.with_scale(digits)),
        value => Value::Double(round_double(value.to_double(), said, f64::trunc)),
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
            // Of texts that are equal GREATEST gives the last and LEAST the first.
            Some(ordering) if ordering == wanted || wanted.is_gt() && ordering.is_eq() => {
                best = value.clone();
            }
            Some(_) => {}
        }
    }
    Ok(best)
}
