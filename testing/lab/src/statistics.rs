//! What several measurements of the same thing come to.

/// The middle value, the mean of the two middle ones of an even number; not a number without values.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    let above = values.get(middle).copied().unwrap_or(f64::NAN);
    match middle.checked_sub(1).and_then(|below| values.get(below)) {
        Some(below) if values.len().is_multiple_of(2) => f64::midpoint(*below, above),
        _ => above,
    }
}

/// The arithmetic mean; not a number without values.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// How much values scatter: standard deviation over mean; not a number without values.
pub fn coefficient_of_variation(values: &[f64]) -> f64 {
    let mean = mean(values);
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (squares / values.len() as f64).sqrt() / mean
}

/// The mean for ratios: twice as much and half as much come to 1. `None` without values, or when one is not
/// positive.
pub fn geometric_mean(values: &[f64]) -> Option<f64> {
    let usable = !values.is_empty() && values.iter().all(|value| value.is_finite() && *value > 0.0);
    usable.then(|| (values.iter().map(|value| value.ln()).sum::<f64>() / values.len() as f64).exp())
}

#[cfg(test)]
mod tests {
    use super::{coefficient_of_variation, geometric_mean, median};

    #[test]
    fn a_median_is_the_middle_or_between_the_two_middle_values() {
        assert_eq!(median(vec![9.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![4.0, 1.0, 9.0, 2.0]), 3.0);
        assert_eq!(median(vec![7.0]), 7.0);
        assert!(median(Vec::new()).is_nan());
    }

    #[test]
    fn what_does_not_scatter_has_no_variation() {
        assert_eq!(coefficient_of_variation(&[5.0, 5.0, 5.0]), 0.0);
        assert_eq!(coefficient_of_variation(&[1.0, 3.0]), 0.5);
        assert!(coefficient_of_variation(&[]).is_nan());
    }

    #[test]
    fn a_geometric_mean_of_a_ratio_and_its_inverse_is_one() {
        let close = |values: &[f64], expected: f64| {
            geometric_mean(values).is_some_and(|mean| (mean - expected).abs() < 1e-12)
        };
        assert!(close(&[2.0, 0.5], 1.0));
        assert!(close(&[1.0, 2.0, 4.0], 2.0));
        assert!(close(&[1.7], 1.7));
    }

    #[test]
    fn there_is_no_geometric_mean_of_nothing_or_with_zero() {
        assert_eq!(geometric_mean(&[]), None);
        assert_eq!(geometric_mean(&[1.0, 0.0]), None);
        assert_eq!(geometric_mean(&[1.0, f64::NAN]), None);
    }
}
