//! Numbers as text, the way MySQL prints them.

const PAIRS: &[u8; 200] = b"0001020304050607080910111213141516171819\
2021222324252627282930313233343536373839\
4041424344454647484950515253545556575859\
6061626364656667686970717273747576777879\
8081828384858687888990919293949596979899";

/// Appends an unsigned integer in decimal.
#[inline]
pub fn put_u64(out: &mut Vec<u8>, mut value: u64) {
    let mut digits = [0u8; 20];
    let mut at = digits.len();
    while value >= 100 {
        let pair = (value % 100) as usize * 2;
        value /= 100;
        at -= 2;
        digits[at] = PAIRS[pair];
        digits[at + 1] = PAIRS[pair + 1];
    }
    if value >= 10 {
        let pair = value as usize * 2;
        at -= 2;
        digits[at] = PAIRS[pair];
        digits[at + 1] = PAIRS[pair + 1];
    } else {
        at -= 1;
        digits[at] = b'0' + value as u8;
    }
    out.extend_from_slice(&digits[at..]);
}

/// Appends a signed integer in decimal.
#[inline]
pub fn put_i64(out: &mut Vec<u8>, value: i64) {
    if value < 0 {
        out.push(b'-');
    }
    put_u64(out, value.unsigned_abs());
}

/// Appends `value` with at least `width` digits.
#[inline]
pub fn put_padded(out: &mut Vec<u8>, value: u32, width: usize) {
    let mut divisor = 10u32.pow(width.saturating_sub(1).min(9) as u32);
    while divisor > 1 && value < divisor {
        out.push(b'0');
        divisor /= 10;
    }
    put_u64(out, u64::from(value));
}

/// Appends a DOUBLE: the shortest digits that read back the same, plain between 1e-15 and 1e15, else with an
/// exponent.
pub fn put_f64(out: &mut Vec<u8>, value: f64) {
    if value == 0.0 {
        return out.extend_from_slice(if value.is_sign_negative() { b"-0" } else { b"0" });
    }
    put_scientific(out, &format!("{value:e}"));
}

/// Appends a FLOAT: like a DOUBLE, but at most six significant digits, as MySQL shows FLOAT columns.
pub fn put_f32(out: &mut Vec<u8>, value: f32) {
    if value == 0.0 {
        return out.extend_from_slice(if value.is_sign_negative() { b"-0" } else { b"0" });
    }
    let shortest = format!("{value:e}");
    let digits = shortest.bytes().take_while(|byte| *byte != b'e').filter(u8::is_ascii_digit).count();
    if digits <= 6 {
        return put_scientific(out, &shortest);
    }
    put_scientific(out, &format!("{:.5e}", f64::from(value)));
}

/// Turns Rust's `1.5e-7` into MySQL's layout.
fn put_scientific(out: &mut Vec<u8>, text: &str) {
    let Some((mantissa, exponent)) = text.split_once('e') else {
        // inf and NaN do not occur in MySQL; whatever comes is passed on.
        return out.extend_from_slice(text.as_bytes());
    };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let negative = mantissa.starts_with('-');
    let mut digits: Vec<u8> = mantissa.bytes().filter(u8::is_ascii_digit).collect();
    while digits.len() > 1 && digits.last() == Some(&b'0') {
        digits.pop();
    }
    if negative {
        out.push(b'-');
    }
    let (first, rest) = digits.split_at(1.min(digits.len()));
    if !(-15..15).contains(&exponent) {
        out.extend_from_slice(first);
        if !rest.is_empty() {
            out.push(b'.');
            out.extend_from_slice(rest);
        }
        out.push(b'e');
        return put_i64(out, i64::from(exponent));
    }
    if exponent < 0 {
        out.extend_from_slice(b"0.");
        out.resize(out.len() + (-exponent - 1) as usize, b'0');
        return out.extend_from_slice(&digits);
    }
    let whole = exponent as usize + 1;
    if digits.len() <= whole {
        out.extend_from_slice(&digits);
        out.resize(out.len() + whole - digits.len(), b'0');
    } else {
        let (integer, fraction) = digits.split_at(whole);
        out.extend_from_slice(integer);
        out.push(b'.');
        out.extend_from_slice(fraction);
    }
}

/// Doubles from here on have nothing behind the point.
const WHOLE_FROM: f64 = 1e17;

/// Appends a number with exactly `decimals` digits after the point (FLOAT(m,d), DOUBLE(m,d)).
pub fn put_fixed(out: &mut Vec<u8>, value: f64, decimals: usize) {
    if value.abs() < WHOLE_FROM {
        return out.extend_from_slice(format!("{value:.decimals$}").as_bytes());
    }
    // The digits that read back the same, and zeros.
    out.extend_from_slice(format!("{value}").as_bytes());
    if decimals > 0 {
        out.push(b'.');
        out.resize(out.len() + decimals, b'0');
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn text(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn integers() {
        for value in [0, 9, 10, 99, 100, 101, 12345, u64::MAX] {
            assert_eq!(text(|out| put_u64(out, value)), value.to_string());
        }
        for value in [i64::MIN, -1, 0, i64::MAX] {
            assert_eq!(text(|out| put_i64(out, value)), value.to_string());
        }
        assert_eq!(text(|out| put_padded(out, 7, 2)), "07");
        assert_eq!(text(|out| put_padded(out, 120, 2)), "120");
        assert_eq!(text(|out| put_padded(out, 0, 6)), "000000");
    }

    #[test]
    fn doubles_print_as_mysql_prints_them() {
        for (value, expected) in [
            (0.0, "0"),
            (0.1, "0.1"),
            (1.0, "1"),
            (-2.5, "-2.5"),
            (100.0, "100"),
            (1e14, "100000000000000"),
            (1e15, "1e15"),
            (1e20, "1e20"),
            (1.5e300, "1.5e300"),
            (0.00001, "0.00001"),
            (1e-20, "1e-20"),
            (123456.789, "123456.789"),
        ] {
            assert_eq!(text(|out| put_f64(out, value)), expected);
        }
    }

    #[test]
    fn digits_behind_the_point_keep_large_numbers_plain() {
        assert_eq!(text(|out| put_fixed(out, 1e22, 2)), "10000000000000000000000.00");
        assert_eq!(text(|out| put_fixed(out, f64::from(1e29f32), 0)), "100000001504746620000000000000");
        assert_eq!(text(|out| put_fixed(out, 1.005, 1)), "1.0");
    }

    #[test]
    fn floats_show_six_digits() {
        for (value, expected) in
            [(0.1f32, "0.1"), (16777216.0, "16777200"), (2.7654321, "2.76543"), (1.5, "1.5")]
        {
            assert_eq!(text(|out| put_f32(out, value)), expected);
        }
    }
}
