//! Numbers of bytes and of picoseconds in units that people read, and how words sound.

use super::{Function, TextOf, function};
use crate::expr::Evaluated;
use crate::expr::types::Type;
use crate::value::Value;

/// The functions.
pub(super) static FUNCTIONS: &[Function] = &[
    function!("FORMAT_BYTES", 1..=1, |_| Type::text(11), |v, _| {
        const UNITS: &[(f64, &str)] = &[
            (EXA, "EiB"),
            (EXA / 1024.0, "PiB"),
            (EXA / 1_048_576.0, "TiB"),
            (1_073_741_824.0, "GiB"),
            (1_048_576.0, "MiB"),
            (1024.0, "KiB"),
        ];
        in_units(&v[0], UNITS, |bytes| format!("{bytes:4.0} bytes"))
    })
    .with_text_of(TextOf::Connection),
    function!("FORMAT_PICO_TIME", 1..=1, |_| Type::text(11), |v, _| {
        const UNITS: &[(f64, &str)] = &[
            (86_400e12, "d"),
            (3_600e12, "h"),
            (60e12, "min"),
            (1e12, "s"),
            (1e9, "ms"),
            (1e6, "us"),
            (1e3, "ns"),
        ];
        in_units(&v[0], UNITS, |time| format!("{time:3.0} ps"))
    }),
];

const EXA: f64 = 1_152_921_504_606_846_976.0;

/// In the largest unit that there is one of; what is less than any is written by `small`.
fn in_units<'a>(value: &Value<'_>, units: &[(f64, &str)], small: fn(f64) -> String) -> Evaluated<'a> {
    if value.is_null() {
        return Ok(Value::Null);
    }
    let number = value.to_double();
    let unit = units.iter().find(|(size, _)| number.abs() >= *size);
    Ok(Value::text(match unit {
        None => small(number),
        Some((size, name)) => match number / size {
            many if many.abs() >= 100_000.0 => format!("{} {name}", scientific(many)),
            some => format!("{some:4.2} {name}"),
        },
    }))
}

/// Two digits behind the point, and an exponent of two at least.
fn scientific(number: f64) -> String {
    let text = format!("{number:.2e}");
    match text.split_once('e') {
        Some((digits, exponent)) => format!("{digits}e+{exponent:0>2}"),
        None => text,
    }
}
