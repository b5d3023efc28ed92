//! What the line must be, and what it was.
//!
//! A load that stays the same: even from second to second, the age of the log near its maximum (or a restart
//! within its target), and a multiple of what the first stock server does. A load that changes: no second far
//! below the mean of its minute.

use super::Run;
use super::report::counted;
use crate::experiment::judgement::{Judged, at_least, at_most, judge, reached};
use crate::experiment::seconds::Phase;

/// Standard deviation of the transactions of a second over their mean.
const VARIATION: f64 = 0.05;
/// The worst second, as a part of the mean.
const WORST: f64 = 0.85;
/// The same within a phase of a changing load.
const WORST_OF_PHASE: f64 = 0.7;
/// The age, as a part of its maximum.
const AGE: (f64, f64) = (0.85, 0.97);
/// Transactions, as a multiple of the first stock server's.
const FACTOR: f64 = 2.5;

/// A run is ours.
fn is_ours(run: &Run) -> bool {
    run.name.starts_with("Untorn")
}

/// Each of our runs beside its goals, a sentence for each; without protection nothing is promised.
pub fn conclusion(phases: &[Phase], runs: &[Run], settle: u32) -> String {
    let theirs = runs.iter().find(|run| !is_ours(run));
    let judged = |run: &Run| judge(&counted(run, phases, settle).concat());
    let ours = runs.iter().filter(|run| is_ours(run) && !run.name.ends_with("OFF"));
    let sentences: Vec<String> = ours
        .map(|run| {
            let told = match phases {
                [_] | [] => even(run, &judged(run)),
                _ => changing(run, phases, settle),
            };
            let factor = theirs.map(|other| {
                let factor = judged(run).mean / judged(other).mean;
                format!("; transactions as a multiple of {}'s {}", other.name, at_least(factor, FACTOR))
            });
            format!("{}: {told}{}.", run.name, factor.unwrap_or_default())
        })
        .collect();
    sentences.join(" ")
}

fn even(run: &Run, judged: &Judged) -> String {
    let (least, most) = judged.age;
    let (restart, target) = (run.restart.seconds, run.restart.target_seconds);
    let is_high = least >= AGE.0 && most <= AGE.1;
    let is_quick = target.is_some_and(|target| restart <= target);
    let target = target.map_or_else(|| "unknown".to_owned(), |target| format!("{target:.1} s"));
    format!(
        "CoV {}, worst second of the mean {} (the processors' own: {:.2} and {:.2}), age {:.0}–{:.0} % of its maximum and a restart of {restart:.1} s, target {target} (goal \
         {:.0}–{:.0} %, or within the target: {})",
        at_most(judged.variation, VARIATION),
        at_least(judged.worst, WORST),
        judged.processor_variation,
        judged.processor_worst,
        least * 100.0,
        most * 100.0,
        AGE.0 * 100.0,
        AGE.1 * 100.0,
        reached(is_high || is_quick)
    )
}

fn changing(run: &Run, phases: &[Phase], settle: u32) -> String {
    let worst = counted(run, phases, settle)
        .into_iter()
        .filter(|seconds| !seconds.is_empty())
        .map(|seconds| judge(seconds).worst)
        .fold(f64::INFINITY, f64::min);
    format!("worst second of its phase's mean {}", at_least(worst, WORST_OF_PHASE))
}

#[cfg(test)]
mod tests {
    use super::super::Restart;
    use super::*;
    use crate::experiment::seconds::Second;

    fn run(name: &str, rates: &[f64], age: f64) -> Run {
        let second = |&transactions: &f64| Second { transactions, age, age_max: 100.0, ..Second::default() };
        let restart = Restart { seconds: 20.0, target_seconds: Some(12.0), ..Restart::default() };
        Run { name: name.to_owned(), phases: vec![rates.iter().map(second).collect()], restart }
    }

    fn phase() -> Phase {
        Phase { script: "oltp_write_only", threads: 1, distribution: "uniform", time: 4 }
    }

    #[test]
    fn each_run_of_ours_is_judged_by_each_goal() {
        let mut late = run("Untorn AUTO", &[300.0, 300.0, 300.0, 200.0], 50.0);
        let runs = [
            run("Untorn ON", &[250.0; 4], 90.0),
            run("Untorn OFF", &[1.0; 4], 90.0),
            run("MariaDB ON", &[100.0; 4], 90.0),
        ];
        let told = conclusion(&[phase()], &runs, 0);
        assert_eq!((told.matches("reached").count(), told.matches("missed").count()), (4, 0), "{told}");
        let told = conclusion(&[phase()], std::slice::from_ref(&late), 0);
        assert_eq!((told.matches("reached").count(), told.matches("missed").count()), (0, 3), "{told}");
        late.restart.target_seconds = Some(25.0);
        let told = conclusion(&[phase()], &[late], 0);
        assert!(told.contains("within the target: reached"), "{told}");
    }

    #[test]
    fn a_load_that_changes_is_judged_phase_by_phase() {
        let mut run = run("Untorn AUTO", &[0.0; 5], 50.0);
        let phase_of = |rates: &[f64]| -> Vec<Second> {
            let seconds = [vec![0.0; 5], rates.to_vec()].concat();
            seconds.iter().map(|&transactions| Second { transactions, ..Second::default() }).collect()
        };
        // Half of the rate is a phase of its own.
        run.phases = vec![phase_of(&[200.0; 4]), phase_of(&[100.0; 4])];
        let told = conclusion(&[phase(), phase()], std::slice::from_ref(&run), 30);
        assert!(told.contains("1.00 (goal at least 0.70: reached)"), "{told}");
        run.phases = vec![phase_of(&[200.0, 200.0, 200.0, 60.0])];
        let told = conclusion(&[phase(), phase()], &[run], 30);
        assert!(told.contains("missed"), "{told}");
    }
}
