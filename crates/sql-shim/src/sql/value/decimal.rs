//! Exact decimals with MySQL's rules for digits: `+ -` keep the larger scale, `*` adds the scales, `/` adds four digits
//! to the dividend's; 30 digits behind the point at most. Rounding is half away from zero.

use bigdecimal::num_bigint::BigInt;
use bigdecimal::{BigDecimal, RoundingMode, ToPrimitive, Zero};
use std::str::FromStr;

/// Most digits behind the point.
pub const SCALE_MAX: i64 = 30;

/// `div_precision_increment`.
pub const DIVISION_DIGITS: i64 = 4;

/// Digits behind the point.
pub fn scale(value: &BigDecimal) -> u8 {
    value.fractional_digit_count().clamp(0, SCALE_MAX) as u8
}

/// Parses a literal (digits, point, sign). `None` when it is no number.
pub fn parse(text: &str) -> Option<BigDecimal> {
    let text = text.trim();
    let text = text.strip_suffix('.').unwrap_or(text);
    BigDecimal::from_str(text)
        .ok()
        .map(|value| if value.fractional_digit_count() < 0 { value.with_scale(0) } else { value })
}

/// Rounded to `digits` behind the point (negative: before it), half away from zero.
pub fn round(value: &BigDecimal, digits: i64) -> BigDecimal {
    let rounded = value.with_scale_round(digits, RoundingMode::HalfUp);
    if digits < 0 { rounded.with_scale(0) } else { rounded }
}

/// As MySQL prints it: plain digits, as many behind the point as the scale says.
pub fn format(value: &BigDecimal) -> String {
    let text = if value.fractional_digit_count() < 0 {
        value.with_scale(0).to_plain_string()
    } else {
        value.to_plain_string()
    };
    if value.is_zero() && text.starts_with('-') { text.trim_start_matches('-').to_owned() } else { text }
}

/// Quotient with four digits more than the dividend; `None` for a division by zero.
pub fn divide(left: &BigDecimal, right: &BigDecimal) -> Option<BigDecimal> {
    if right.is_zero() {
        return None;
    }
    let scale = (left.fractional_digit_count() + DIVISION_DIGITS).clamp(0, SCALE_MAX);
    let (numerator, left_scale) = left.as_bigint_and_exponent();
    let (denominator, right_scale) = right.as_bigint_and_exponent();
    // One digit more than wanted decides the rounding.
    let shift = scale + 1 + right_scale - left_scale;
    let (numerator, denominator) = if shift >= 0 {
        (numerator * BigInt::from(10).pow(shift.min(1000) as u32), denominator)
    } else {
        (numerator, denominator * BigInt::from(10).pow((-shift).min(1000) as u32))
    };
    Some(round(&BigDecimal::new(numerator / denominator, scale + 1), scale))
}

/// Whole part of the quotient.
pub fn divide_whole(left: &BigDecimal, right: &BigDecimal) -> Option<BigDecimal> {
    if right.is_zero() {
        return None;
    }
    let scale = left.fractional_digit_count().max(right.fractional_digit_count()).max(0);
    let (numerator, _) = left.with_scale(scale).as_bigint_and_exponent();
    let (denominator, _) = right.with_scale(scale).as_bigint_and_exponent();
    Some(BigDecimal::new(numerator / denominator, 0))
}

/// Remainder with the sign of the dividend.
pub fn modulo(left: &BigDecimal, right: &BigDecimal) -> Option<BigDecimal> {
    if right.is_zero() { None } else { Some(left % right) }
}

/// Product, its scale capped.
pub fn multiply(left: &BigDecimal, right: &BigDecimal) -> BigDecimal {
    let product = left * right;
    if product.fractional_digit_count() > SCALE_MAX { round(&product, SCALE_MAX) } else { product }
}

/// Nearest integer within 128 bits, half away from zero.
pub fn to_integer(value: &BigDecimal) -> i128 {
    let rounded = round(value, 0);
    rounded.to_i128().unwrap_or(if rounded.sign() == bigdecimal::num_bigint::Sign::Minus {
        i128::MIN
    } else {
        i128::MAX
    })
}

/// Nearest double.
pub fn to_double(value: &BigDecimal) -> f64 {
    // Through text: BigDecimal's own conversion loses digits for large scales.
    format(value).parse().unwrap_or(f64::NAN)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn of(text: &str) -> BigDecimal {
        parse(text).unwrap()
    }

    #[test]
    fn scales_follow_mysql() {
        assert_eq!(format(&divide(&of("1"), &of("3")).unwrap()), "0.3333");
        assert_eq!(format(&divide(&of("2.50"), &of("4")).unwrap()), "0.625000");
        assert_eq!(format(&divide(&of("-2"), &of("3")).unwrap()), "-0.6667");
        assert_eq!(format(&multiply(&of("1.50"), &of("2.0"))), "3.000");
        assert_eq!(format(&(of("1.5") + of("2.25"))), "3.75");
        assert_eq!(divide(&of("1"), &of("0.0")), None);
        assert_eq!(format(&modulo(&of("-7.5"), &of("2")).unwrap()), "-1.5");
        assert_eq!(format(&divide_whole(&of("7.9"), &of("-2")).unwrap()), "-3");
    }

    #[test]
    fn rounding_is_half_away_from_zero() {
        assert_eq!(format(&round(&of("2.5"), 0)), "3");
        assert_eq!(format(&round(&of("-2.5"), 0)), "-3");
        assert_eq!(format(&round(&of("1234.567"), -2)), "1200");
        assert_eq!(to_integer(&of("-0.5")), -1);
        assert_eq!(to_double(&of("0.1")), 0.1);
    }
}
