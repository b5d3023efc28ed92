//! Packed decimals, as MySQL stores DECIMAL(precision, scale).
//!
//! The digits before and behind the point are packed apart, nine to four bytes, the group that is left over
//! (the most significant before the point, the least significant behind it) into as few bytes as its digits
//! need. A negative value has all bytes inverted; the top bit of the first byte is flipped last, so that the
//! bytes compare as the values do.

/// Bytes for 0 to 8 left-over digits.
const BYTES: [usize; 10] = [0, 1, 1, 2, 2, 3, 3, 4, 4, 4];

/// Bytes of a packed DECIMAL(precision, scale).
pub fn packed_len(precision: u8, scale: u8) -> usize {
    let int = usize::from(precision.saturating_sub(scale));
    let frac = usize::from(scale);
    int / 9 * 4 + BYTES[int % 9] + frac / 9 * 4 + BYTES[frac % 9]
}

/// Why a text could not be packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DecimalError {
    /// Not `[+-]digits[.digits]`.
    Malformed,
    /// More digits before the point than the type has.
    OutOfRange,
}

fn group(digits: &[u8], out: &mut Vec<u8>) {
    let value = digits.iter().fold(0u32, |sum, d| sum * 10 + u32::from(*d));
    out.extend_from_slice(&value.to_be_bytes()[4 - BYTES[digits.len()]..]);
}

/// Packs decimal text. Digits behind the point beyond `scale` are rounded half away from zero.
///
/// Returns whether rounding dropped something.
pub fn encode(text: &str, precision: u8, scale: u8, out: &mut Vec<u8>) -> Result<bool, DecimalError> {
    let (negative, digits) = match text.as_bytes() {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        rest => (false, rest),
    };
    let (int, frac) = match digits.iter().position(|b| *b == b'.') {
        Some(point) => (&digits[..point], &digits[point + 1..]),
        None => (digits, &digits[..0]),
    };
    if int.len() + frac.len() == 0 || !int.iter().chain(frac).all(u8::is_ascii_digit) {
        return Err(DecimalError::Malformed);
    }
    let int_len = usize::from(precision - scale);
    let frac_len = usize::from(scale);
    let significant = int.iter().position(|d| *d != b'0').map_or(&int[..0], |first| &int[first..]);
    if significant.len() > int_len {
        return Err(DecimalError::OutOfRange);
    }
    // One row of digits with room for a carry in front.
    let mut row = vec![0u8; 1 + int_len + frac_len];
    for (to, from) in row[1 + int_len - significant.len()..].iter_mut().zip(significant) {
        *to = from - b'0';
    }
    for (to, from) in row[1 + int_len..].iter_mut().zip(frac) {
        *to = from - b'0';
    }
    let dropped = frac.get(frac_len..).is_some_and(|rest| rest.iter().any(|d| *d != b'0'));
    if frac.get(frac_len).is_some_and(|d| *d >= b'5') {
        for digit in row.iter_mut().rev() {
            *digit += 1;
            if *digit < 10 {
                break;
            }
            *digit = 0;
        }
    }
    if row[0] != 0 {
        return Err(DecimalError::OutOfRange);
    }
    let start = out.len();
    let (int, frac) = row[1..].split_at(int_len);
    let (head, groups) = int.split_at(int_len % 9);
    group(head, out);
    groups.chunks(9).for_each(|digits| group(digits, out));
    frac.chunks(9).for_each(|digits| group(digits, out));
    if negative && row.iter().any(|d| *d != 0) {
        out[start..].iter_mut().for_each(|b| *b = !*b);
    }
    if let Some(first) = out.get_mut(start) {
        *first ^= 0x80;
    }
    Ok(dropped)
}

/// The text of a packed decimal: always `scale` digits behind the point, no leading zeros but one.
pub fn decode(packed: &[u8], precision: u8, scale: u8, text: &mut String) -> Option<()> {
    if packed.len() != packed_len(precision, scale) || packed.is_empty() {
        return None;
    }
    let negative = packed[0] & 0x80 == 0;
    let flip = if negative { 0xff } else { 0 };
    let byte = |i: usize| (packed[i] ^ if i == 0 { 0x80 } else { 0 }) ^ flip;
    let mut at = 0;
    let mut read = |digits: usize| {
        let mut value = 0u32;
        for _ in 0..BYTES[digits] {
            value = value << 8 | u32::from(byte(at));
            at += 1;
        }
        value
    };
    let int_len = usize::from(precision - scale);
    if negative {
        text.push('-');
    }
    let start = text.len();
    let push = |text: &mut String, digits: usize, value: u32, leading: bool| {
        use std::fmt::Write;
        if digits == 0 || leading && value == 0 && text.len() == start {
            return;
        }
        let width = if leading && text.len() == start { 0 } else { digits };
        // Writing to a String cannot fail.
        let _ = write!(text, "{value:0width$}");
    };
    let head = read(int_len % 9);
    push(text, int_len % 9, head, true);
    for _ in 0..int_len / 9 {
        let value = read(9);
        push(text, 9, value, true);
    }
    if text.len() == start {
        text.push('0');
    }
    if scale > 0 {
        text.push('.');
        for _ in 0..scale / 9 {
            let value = read(9);
            push(text, 9, value, false);
        }
        let rest = usize::from(scale % 9);
        let value = read(rest);
        push(text, rest, value, false);
    }
    Some(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn packed(text: &str, precision: u8, scale: u8) -> Vec<u8> {
        let mut out = Vec::new();
        encode(text, precision, scale, &mut out).unwrap();
        out
    }

    #[test]
    fn documented_bytes() {
        assert_eq!(packed("1234.56", 10, 2), [0x80, 0x00, 0x04, 0xd2, 0x38]);
        assert_eq!(packed("-1234.56", 10, 2), [0x7f, 0xff, 0xfb, 0x2d, 0xc7]);
    }

    #[test]
    fn round_trips_and_orders() {
        let texts = ["-99999999.99", "-1.50", "-0.01", "0.00", "0.01", "1.00", "12.30", "1234567.00"];
        let all: Vec<_> = texts.iter().map(|t| packed(t, 10, 2)).collect();
        assert!(all.is_sorted());
        for (text, bytes) in texts.iter().zip(&all) {
            let mut back = String::new();
            decode(bytes, 10, 2, &mut back).unwrap();
            assert_eq!(*text, back);
        }
    }

    #[test]
    fn rounds_half_away_and_refuses_what_is_too_large() {
        assert_eq!(packed("1.005", 5, 2), packed("1.01", 5, 2));
        assert_eq!(packed("-1.005", 5, 2), packed("-1.01", 5, 2));
        let mut out = Vec::new();
        assert_eq!(encode("999.995", 5, 2, &mut out), Err(DecimalError::OutOfRange));
        assert_eq!(encode("1.2.3", 5, 2, &mut out), Err(DecimalError::Malformed));
    }
}
