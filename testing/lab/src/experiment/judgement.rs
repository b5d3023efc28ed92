//! What a stretch of seconds comes to; what several runs of the same come to; when a difference is one.

use super::seconds::Second;
use crate::statistics::{coefficient_of_variation, geometric_mean, mean, median};

/// What a stretch of seconds comes to.
#[derive(Clone, Copy, Debug)]
pub struct Judged {
    /// Transactions per second.
    pub mean: f64,
    /// Of the transactions of a second.
    pub variation: f64,
    /// The worst second, as a part of the mean.
    pub worst: f64,
    /// The median of the seconds' p99.
    pub p99_ms: f64,
    /// Least and most age, as parts of its maximum.
    pub age: (f64, f64),
    /// Pages written per second.
    pub pages: f64,
    /// Bytes of log for a transaction.
    pub log_bytes_each: f64,
    /// How the processors' own speed varied in the same seconds.
    pub processor_variation: f64,
    /// Their slowest second, as a part of the mean.
    pub processor_worst: f64,
}

/// Judges all the seconds.
pub fn judge(seconds: &[Second]) -> Judged {
    let of = |figure: fn(&Second) -> f64| seconds.iter().map(figure).collect::<Vec<_>>();
    let rates = of(|second| second.transactions);
    let mean_rate = mean(&rates);
    let ages = of(|second| second.age / second.age_max);
    let least = |values: &[f64]| values.iter().copied().fold(f64::INFINITY, f64::min);
    let processors = of(|second| second.processor);
    Judged {
        mean: mean_rate,
        variation: coefficient_of_variation(&rates),
        worst: least(&rates) / mean_rate,
        p99_ms: median(of(|second| second.p99_ms)),
        age: (least(&ages), ages.iter().copied().fold(f64::NEG_INFINITY, f64::max)),
        pages: mean(&of(|second| second.pages)),
        log_bytes_each: mean(&of(|second| second.log_bytes)) / mean_rate,
        processor_variation: coefficient_of_variation(&processors),
        processor_worst: least(&processors) / mean(&processors),
    }
}

/// Warm is this part of the rate that there was before.
const WARM: f64 = 0.9;
/// Seconds that must be warm together, against chance.
const TOGETHER: usize = 3;

/// Seconds of load until it is warm: the middle of the first warm second of the first stretch that is warm.
pub fn warm_after(rates: &[f64], steady: f64) -> Option<f64> {
    let warm = WARM * steady;
    let stretch =
        rates.windows(TOGETHER).position(|stretch| stretch.iter().sum::<f64>() >= TOGETHER as f64 * warm)?;
    let second = rates[stretch..].iter().position(|&rate| rate >= warm)?;
    Some((stretch + second) as f64 + 0.5)
}

/// How far runs of the same thing lie apart, as a part of their median: what a difference must exceed to be
/// one. `None` of a single run, which does not tell.
pub fn noise(rates: &[f64]) -> Option<f64> {
    let (least, most) = (
        rates.iter().copied().fold(f64::INFINITY, f64::min),
        rates.iter().copied().fold(f64::NEG_INFINITY, f64::max),
    );
    let noise = (most - least) / median(rates.to_vec());
    (rates.len() > 1 && noise.is_finite()).then_some(noise)
}

/// One to the other, within each round; not a number where a round has no rate of both.
pub fn ratio(rates: &[f64], to: &[f64]) -> f64 {
    let ratios: Vec<f64> = rates.iter().zip(to).map(|(rate, to)| rate / to).collect();
    geometric_mean(&ratios).unwrap_or(f64::NAN)
}

/// A figure beside its goal, in words: `1.52 (goal at least 1.48: reached)`.
pub fn at_least(figure: f64, goal: f64) -> String {
    format!("{figure:.2} (goal at least {goal:.2}: {})", reached(figure >= goal))
}

/// The same of one that must not be more.
pub fn at_most(figure: f64, goal: f64) -> String {
    format!("{figure:.2} (goal at most {goal:.2}: {})", reached(figure <= goal))
}

/// What is said of a goal. A figure that is not a number has reached none.
pub fn reached(is: bool) -> &'static str {
    if is { "reached" } else { "missed" }
}

/// `3.1 %`, or what stands for it where nobody knows.
pub fn percent(part: Option<f64>) -> String {
    part.map_or_else(|| "unknown".to_owned(), |part| format!("{:.1} %", part * 100.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_second_is_a_part_of_the_mean() {
        let second = |transactions| Second { transactions, age: 9.0, age_max: 10.0, ..Second::default() };
        let judged = judge(&[second(10.0), second(10.0), second(4.0)]);
        assert_eq!((judged.mean, judged.worst, judged.age), (8.0, 0.5, (0.9, 0.9)));
    }

    #[test]
    fn a_goal_is_reached_or_missed() {
        assert_eq!(at_least(1.5, 1.48), "1.50 (goal at least 1.48: reached)");
        assert_eq!(at_least(1.2, 1.48), "1.20 (goal at least 1.48: missed)");
        assert_eq!(at_most(0.04, 0.05), "0.04 (goal at most 0.05: reached)");
        assert!(at_least(f64::NAN, 1.0).ends_with("missed)") && at_most(f64::NAN, 1.0).ends_with("missed)"));
    }

    #[test]
    fn noise_is_the_distance_of_equals() {
        assert_eq!(noise(&[100.0, 110.0, 90.0]), Some(0.2));
        assert_eq!(noise(&[100.0]), None);
        assert_eq!(noise(&[0.0, 0.0]), None);
        assert_eq!((percent(Some(0.031)), percent(None)), ("3.1 %".to_owned(), "unknown".to_owned()));
    }

    #[test]
    fn warm_is_the_first_warm_second_that_lasts() {
        assert_eq!(warm_after(&[95.0, 99.0, 101.0], 100.0), Some(0.5));
        assert_eq!(warm_after(&[20.0, 100.0, 20.0, 89.0, 91.0, 95.0, 100.0], 100.0), Some(4.5));
        assert_eq!(warm_after(&[20.0, 100.0, 20.0], 100.0), None);
    }

    #[test]
    fn a_ratio_is_taken_within_a_round() {
        // The machine is half as fast in the second round.
        assert!((ratio(&[200.0, 100.0], &[100.0, 50.0]) - 2.0).abs() < 1e-9);
        assert!(ratio(&[], &[]).is_nan());
    }
}
