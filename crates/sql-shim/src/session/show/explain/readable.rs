//! Numbers as MySQL's trees have them: three digits, and more only where they stand before the point.

/// A number that is not negative.
pub(super) fn readable(number: f64) -> String {
    if number <= 0.0 || !number.is_finite() {
        return "0".to_owned();
    }
    // The number has this many digits before the point; none: that many zeros behind it, as a negative.
    let mut digits = number.log10().floor() as i32 + 1;
    // Rounding may give it one more.
    if (number / 10f64.powi(digits - 3)).round() >= 1000.0 {
        digits += 1;
    }
    if (-2..=6).contains(&digits) {
        return trimmed(format!("{number:.*}", usize::try_from(3 - digits).unwrap_or(0)));
    }
    let exponent = (digits - 1).div_euclid(3) * 3;
    let mantissa = number / 10f64.powi(exponent);
    let places = usize::try_from(3 - (digits - exponent)).unwrap_or(0);
    let sign = if exponent > 0 { "+" } else { "" };
    format!("{}e{sign}{exponent}", trimmed(format!("{mantissa:.places$}")))
}

fn trimmed(number: String) -> String {
    match number.contains('.') {
        true => number.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => number,
    }
}

#[cfg(test)]
mod tests {
    use super::readable;

    /// As they stand in trees of MySQL 9.7.
    #[test]
    fn three_digits_are_enough() {
        let shown: Vec<String> = [
            0.0,
            0.000884,
            0.00004,
            0.00122,
            0.0374,
            0.947,
            1.0,
            1.16,
            10.7,
            29.0,
            999.6,
            4020.6,
            40000.0,
            1_234_567.0,
        ]
        .into_iter()
        .map(readable)
        .collect();
        let wanted = [
            "0", "884e-6", "40e-6", "0.00122", "0.0374", "0.947", "1", "1.16", "10.7", "29", "1000", "4021",
            "40000", "1.23e+6",
        ];
        assert_eq!(shown, wanted);
    }
}
