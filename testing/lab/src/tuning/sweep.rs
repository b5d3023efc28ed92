//! A sweep over settings: one setting after the other, each of its values beside the best of what was tried
//! before.
//!
//! All combinations would be hundreds of runs. Going along one setting at a time finds what a person finds
//! who tunes, and misses what only helps together.

/// A value of a setting.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Choice {
    pub label: String,
    pub settings: Vec<String>,
}

impl Choice {
    pub fn new(label: String, settings: impl IntoIterator<Item = String>) -> Choice {
        Choice { label, settings: settings.into_iter().collect() }
    }
}

/// A setting with the values to be tried beside its default.
#[derive(Clone, Debug)]
pub struct Knob(Vec<Choice>);

impl Knob {
    pub fn new(choices: Vec<Choice>) -> Knob {
        Knob(choices)
    }
}

/// Where the sweep is.
pub struct Sweep {
    knobs: Vec<Knob>,
    /// Of each knob the chosen value, or the default.
    best: Vec<Option<usize>>,
    best_rate: Option<f64>,
    /// Those told of, the defaults among them.
    tried: usize,
}

impl Sweep {
    pub fn new(knobs: Vec<Knob>) -> Sweep {
        let best = vec![None; knobs.len()];
        Sweep { knobs, best, best_rate: None, tried: 0 }
    }

    /// How many runs it takes: the defaults, and each value once.
    pub fn runs(&self) -> usize {
        1 + self.knobs.iter().map(|knob| knob.0.len()).sum::<usize>()
    }

    /// Knob and value whose turn it is; `None` at the defaults and at the end.
    fn turn(&self) -> Option<(usize, usize)> {
        let mut value = self.tried.checked_sub(1)?;
        for (at, knob) in self.knobs.iter().enumerate() {
            if value < knob.0.len() {
                return Some((at, value));
            }
            value -= knob.0.len();
        }
        None
    }

    fn with_turn(&self) -> Vec<Option<usize>> {
        let mut chosen = self.best.clone();
        if let Some((knob, value)) = self.turn() {
            chosen[knob] = Some(value);
        }
        chosen
    }

    fn together(&self, chosen: &[Option<usize>]) -> Choice {
        let choices: Vec<&Choice> = self
            .knobs
            .iter()
            .zip(chosen)
            .filter_map(|(knob, chosen)| chosen.and_then(|value| knob.0.get(value)))
            .collect();
        let labels: Vec<&str> = choices.iter().map(|choice| choice.label.as_str()).collect();
        let label = if labels.is_empty() { super::DEFAULTS.to_owned() } else { labels.join(", ") };
        Choice { label, settings: choices.iter().flat_map(|choice| choice.settings.clone()).collect() }
    }

    /// What is to be measured next, whose rate is then to be told; `None` at the end.
    pub fn candidate(&self) -> Option<Choice> {
        (self.tried < self.runs()).then(|| self.together(&self.with_turn()))
    }

    /// The rate of the candidate.
    pub fn tell(&mut self, rate: f64) {
        if self.best_rate.is_none_or(|best| rate > best) {
            self.best = self.with_turn();
            self.best_rate = Some(rate);
        }
        self.tried += 1;
    }

    /// The best so far.
    pub fn best(&self) -> Choice {
        self.together(&self.best)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn knob(labels: &[&str]) -> Knob {
        Knob::new(labels.iter().map(|&label| Choice::new(label.to_owned(), [format!("--{label}")])).collect())
    }

    /// Sweeps with a rate for each label; returns what was tried and what was chosen.
    fn sweep(knobs: Vec<Knob>, rate: impl Fn(&str) -> f64) -> (Vec<String>, Choice) {
        let (mut sweep, mut tried) = (Sweep::new(knobs), Vec::new());
        while let Some(candidate) = sweep.candidate() {
            sweep.tell(rate(&candidate.label));
            tried.push(candidate.label);
        }
        assert_eq!(tried.len(), sweep.runs());
        (tried, sweep.best())
    }

    #[test]
    fn each_value_is_tried_beside_the_best_of_the_settings_before_it() {
        let (tried, best) = sweep(vec![knob(&["a1", "a2"]), knob(&["b1", "b2"])], |label| {
            f64::from(u8::from(label.contains("a2"))) * 2.0 + f64::from(u8::from(label.contains("b1")))
        });
        assert_eq!(tried, ["defaults", "a1", "a2", "a2, b1", "a2, b2"]);
        assert_eq!(best, Choice::new("a2, b1".to_owned(), ["--a2".to_owned(), "--b1".to_owned()]));
    }

    #[test]
    fn where_nothing_is_faster_the_defaults_stay() {
        let (_, best) = sweep(vec![knob(&["a1"]), knob(&["b1"])], |label| {
            if label == "defaults" { 100.0 } else { 100.0 - label.len() as f64 }
        });
        assert_eq!((best.label.as_str(), best.settings.len()), ("defaults", 0));
    }

    #[test]
    fn a_server_without_a_rate_is_not_the_best() {
        let (_, best) = sweep(vec![knob(&["a1"])], |label| if label == "a1" { f64::NAN } else { 1.0 });
        assert_eq!(best.label, "defaults");
    }
}
