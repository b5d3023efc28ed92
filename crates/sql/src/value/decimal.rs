//! Exact decimals with MySQL's rules for digits: `+ -` keep the larger scale, `*` adds the scales, `/` adds
//! `div_precision_increment` digits to the dividend's; 30 digits behind the point at most. Rounding is half
//! away from zero.

use bigdecimal::num_bigint::{BigInt, Sign};
use bigdecimal::{BigDecimal, RoundingMode, ToPrimitive, Zero};
use std::str::FromStr;

/// Whether it is less than zero.
pub fn is_negative(value: &BigDecimal) -> bool {
    value.sign() == Sign::Minus
}

/// Most digits behind the point.
pub const SCALE_MAX: i64 = 30;

/// `div_precision_increment`, unless it is set.
pub const DIVISION_DIGITS: i64 = 4;

/// Digits behind the point.
pub fn scale(value: &BigDecimal) -> u8 {
    value.fractional_digit_count().clamp(0, SCALE_MAX) as u8
}

/// Most digits before the point; larger numbers become the largest there is.
const WHOLE_MAX: i64 = 65;

/// The total number of digits that are kept, as many as MySQL's own buffer has. What lies behind is cut off,
/// so that no number takes more time or memory than this, whatever its text or exponent.
const DIGITS_MAX: i64 = 81;

/// Parses a number (sign, digits, point, exponent). `None` when it is none. One pass, whatever its length.
pub fn parse(text: &str) -> Option<BigDecimal> {
    let text = text.trim().as_bytes();
    let (negative, text) = match text.split_first() {
        Some((b'-', rest)) => (true, rest),
        Some((b'+', rest)) => (false, rest),
        _ => (false, text),
    };
    let (mantissa, exponent) = match text.iter().position(|byte| matches!(byte, b'e' | b'E')) {
        Some(at) => (&text[..at], parse_exponent(&text[at + 1..])?),
        None => (text, 0),
    };
    let point = mantissa.iter().position(|byte| *byte == b'.').unwrap_or(mantissa.len());
    let (whole, fraction) = (&mantissa[..point], mantissa.get(point + 1..).unwrap_or_default());
    let digits = whole.iter().chain(fraction);
    if whole.len() + fraction.len() == 0 || !digits.clone().all(u8::is_ascii_digit) {
        return None;
    }
    let zeros = digits.clone().take_while(|digit| **digit == b'0').count();
    // Digits behind the point, and before it once the leading zeros are gone.
    let scale = (fraction.len() as i64).saturating_sub(exponent).max(0);
    let significant = (whole.len() + fraction.len() - zeros) as i64;
    if significant == 0 {
        return Some(BigDecimal::new(0.into(), scale.min(SCALE_MAX)));
    }
    let before = (whole.len() as i64).saturating_add(exponent).saturating_sub(zeros as i64);
    if before > WHOLE_MAX {
        let limit = BigDecimal::from(BigInt::from(10).pow(WHOLE_MAX as u32) - 1);
        return Some(if negative { -limit } else { limit });
    }
    let scale = scale.min(DIGITS_MAX - before.max(0));
    // The digits up to there, with zeros where an exponent says so.
    let wanted = usize::try_from(before.saturating_add(scale)).unwrap_or(0);
    let mut kept = String::with_capacity(wanted + 1);
    kept.push('0');
    kept.extend(digits.skip(zeros).take(wanted).map(|digit| char::from(*digit)));
    let missing = (wanted + 1).saturating_sub(kept.len());
    kept.extend(std::iter::repeat_n('0', missing));
    let number = BigInt::from_str(&kept).ok()?;
    Some(BigDecimal::new(if negative { -number } else { number }, scale))
}

/// The digits behind `e`; very large ones are as good as a million.
fn parse_exponent(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text.split_first() {
        Some((b'-', rest)) => (true, rest),
        Some((b'+', rest)) => (false, rest),
        _ => (false, text),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let value = digits.iter().fold(0i64, |n, digit| (n * 10 + i64::from(digit - b'0')).min(1_000_000_000));
    Some(if negative { -value } else { value })
}

/// Whether a result is a number that can be shown and stored: not more digits than are kept.
pub fn fits(value: &BigDecimal) -> bool {
    let (digits, scale) = value.as_bigint_and_exponent();
    // A digit is 3.3 bits: the bound is in bits, because counting digits means dividing.
    let bits = (DIGITS_MAX as u64 * 10).div_ceil(3);
    digits.bits() <= bits && (-DIGITS_MAX..=DIGITS_MAX).contains(&scale)
}

/// Rounded to `digits` behind the point (negative: before it), half away from zero.
pub fn round(value: &BigDecimal, digits: i64) -> BigDecimal {
    let digits = digits.clamp(-DIGITS_MAX, DIGITS_MAX);
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

/// Quotient with this many digits more than the dividend; `None` for a division by zero.
pub fn divide(left: &BigDecimal, right: &BigDecimal, more: i64) -> Option<BigDecimal> {
    if right.is_zero() {
        return None;
    }
    let scale = (left.fractional_digit_count() + more).clamp(0, SCALE_MAX);
    let (numerator, left_scale) = left.as_bigint_and_exponent();
    let (denominator, right_scale) = right.as_bigint_and_exponent();
    // One digit more than wanted decides the rounding. A quotient without digits is cut.
    let shift = scale + 1 + right_scale - left_scale;
    let (numerator, denominator) = if shift >= 0 {
        (numerator * BigInt::from(10).pow(shift.min(1000) as u32), denominator)
    } else {
        (numerator, denominator * BigInt::from(10).pow((-shift).min(1000) as u32))
    };
    let quotient = BigDecimal::new(numerator / denominator, scale + 1);
    Some(if scale == 0 { quotient.with_scale(0) } else { round(&quotient, scale) })
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
    // A factor of 1 leaves the other one as it is, with its digits.
    let digits = (left.fractional_digit_count() + right.fractional_digit_count()).min(SCALE_MAX);
    if product.fractional_digit_count() == digits { product } else { round(&product, digits) }
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
        assert_eq!(format(&divide(&of("1"), &of("3"), 4).unwrap()), "0.3333");
        assert_eq!(format(&divide(&of("2.50"), &of("4"), 4).unwrap()), "0.625000");
        assert_eq!(format(&divide(&of("-2"), &of("3"), 4).unwrap()), "-0.6667");
        assert_eq!(format(&multiply(&of("1.50"), &of("2.0"))), "3.000");
        assert_eq!(format(&(of("1.5") + of("2.25"))), "3.75");
        assert_eq!(format(&divide(&of("-7"), &of("2"), 0).unwrap()), "-3");
        assert_eq!(format(&divide(&of("1.5"), &of("1"), 0).unwrap()), "1.5");
        assert_eq!(divide(&of("1"), &of("0.0"), 4), None);
        assert_eq!(format(&modulo(&of("-7.5"), &of("2")).unwrap()), "-1.5");
        assert_eq!(format(&divide_whole(&of("7.9"), &of("-2")).unwrap()), "-3");
    }

    #[test]
    fn numbers_in_all_forms() {
        for (text, wanted) in [
            ("0", "0"),
            ("-0.00", "0.00"),
            ("5.", "5"),
            (".5", "0.5"),
            ("+007.50", "7.50"),
            ("1e3", "1000"),
            ("1.5e3", "1500"),
            ("1.2345e2", "123.45"),
            ("12e-3", "0.012"),
            ("-12e-1", "-1.2"),
            ("000.0001", "0.0001"),
        ] {
            assert_eq!(format(&of(text)), wanted, "{text}");
        }
        for text in ["", ".", "-", "e5", "1e", "1e+", "1.2.3", "1x", "--1", "1_000"] {
            assert!(parse(text).is_none(), "{text:?}");
        }
    }

    /// Exponents and lengths that once took gigabytes and hours.
    #[test]
    fn no_number_is_larger_than_the_buffer() {
        let nines = "9".repeat(65);
        assert_eq!(format(&of("1e1000000000")), nines);
        assert_eq!(format(&of("-1e99999999999999999999999")), format!("-{nines}"));
        assert_eq!(format(&of(&"7".repeat(10_000_000))), nines);
        assert!(of("1e-1000000000").is_zero());
        let long = of(&("0.".to_owned() + &"3".repeat(10_000_000)));
        assert_eq!(format(&long).len(), 2 + 81);
        assert_eq!(format(&of(&("1".to_owned() + &"0".repeat(64)))).len(), 65);
        for text in ["1e1000000000", "1e-1000000000", "1e-80", "123456789012345678901234567890.5e30"] {
            assert!(fits(&of(text)), "{text}");
            assert!(format(&round(&of(text), i64::MAX)).len() < 200, "{text}");
            assert!(format(&round(&of(text), i64::MIN)).len() < 200, "{text}");
        }
        assert!(!fits(&(of(&nines) * of(&nines))));
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
