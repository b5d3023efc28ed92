//! Periods (`YYYYMM`), and times from their parts.

use untorn::types::Time;

use super::{Function, any_null, function, index};
use crate::errors;
use crate::expr::Evaluated;
use crate::expr::types::Type;
use crate::result::SqlError;
use crate::value::{Value, decimal, temporal};

/// The functions.
pub(super) static FUNCTIONS: &[Function] = &[
    function!("PERIOD_ADD", 2..=2, |_| Type::INT, |v, _| {
        if any_null(v) {
            return Ok(Value::Null);
        }
        let months = months_of(index(v, 0), "period_add")?.saturating_add(index(v, 1));
        Ok(Value::Int(period_of(months)))
    }),
    function!("PERIOD_DIFF", 2..=2, |_| Type::INT, |v, _| {
        if any_null(v) {
            return Ok(Value::Null);
        }
        let [one, other] = [0, 1].map(|at| months_of(index(v, at), "period_diff"));
        Ok(Value::Int(one? - other?))
    }),
    function!("MAKETIME", 3..=3, |t| Type::time(seconds_digits(t[2])), |v, _| make_time(v)),
];

/// Months since the year 0 of a period; years of two digits are of this time.
fn months_of(period: i64, function: &str) -> Result<i64, SqlError> {
    let (year, month) = (period / 100, period % 100);
    if period < 0 || !(1..=12).contains(&month) {
        return Err(errors::error(errors::WRONG_ARGUMENTS, &[&function]));
    }
    let year = match year {
        0..=69 => 2000 + year,
        70..=99 => 1900 + year,
        year => year,
    };
    Ok(year * 12 + month - 1)
}

fn period_of(months: i64) -> i64 {
    let year = match months.div_euclid(12) {
        year @ 0..=69 => 2000 + year,
        year @ 70..=99 => 1900 + year,
        year => year,
    };
    year.saturating_mul(100).saturating_add(months.rem_euclid(12) + 1)
}

fn seconds_digits(ty: Type) -> u8 {
    if ty.is_integer() { 0 } else { ty.decimals.min(6) }
}

/// The hour's sign is the time's; minutes and seconds must be those of a clock.
fn make_time<'a>(v: &[Value<'a>]) -> Evaluated<'a> {
    let (hour, minute) = (index(v, 0), index(v, 1));
    let seconds = v[2].to_decimal();
    let micros = decimal::to_integer(&decimal::multiply(&seconds, &1_000_000.into()));
    // Rounding may make a whole minute of the seconds.
    let of_clock = (0..=60_000_000).contains(&micros) && decimal::to_integer(&seconds.with_scale(0)) < 60;
    if any_null(v) || !(0..60).contains(&minute) || !of_clock {
        return Ok(Value::Null);
    }
    let digits = match &v[2] {
        Value::Int(_) | Value::UInt(_) => 0,
        Value::Decimal(number) => decimal::scale(number).min(6),
        _ => 6,
    };
    let negative = hour < 0;
    let whole = i128::from(hour.unsigned_abs()) * 3_600_000_000 + i128::from(minute) * 60_000_000 + micros;
    let most = i128::from(temporal::time_micros(temporal::TIME_MAX));
    let span = temporal::time_from_micros(whole.min(most) as i64);
    Ok(Value::Time(Time { negative, ..span }, digits))
}
