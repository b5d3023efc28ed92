//! What the samples of a record come to: medians over the rounds, and ratios to the peers.
//!
//! A ratio is taken within each round, whose samples lie minutes apart at most, and then averaged over the
//! rounds: a machine that is slower in one round than in another moves both sides.

use super::record::{Record, Sample};
use crate::statistics::{geometric_mean, median};

/// The status variable that counts every sync of a file, those of the redo log included.
pub const SYNCS: &str = "Innodb_data_fsyncs";

/// Medians of a script on a server. What was not measured in every round is `None`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Typical {
    pub queries_per_second: f64,
    pub p99_ms: f64,
    /// Processor time per query.
    pub processor_us: Option<f64>,
    /// KiB given to the block layer per query.
    pub kib_written: Option<f64>,
    /// Syncs of files per query.
    pub syncs: Option<f64>,
}

/// Ours divided by a peer's.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Ratios {
    /// Queries per second: above 1 is faster.
    pub speed: Option<f64>,
    /// Processor time per query: below 1 is more frugal.
    pub processor: Option<f64>,
}

impl Ratios {
    /// Each side of several, made one. A side that one of them lacks is `None`.
    fn combined(
        all: &[Ratios],
        speed: impl Fn(&[f64]) -> Option<f64>,
        processor: impl Fn(&[f64]) -> Option<f64>,
    ) -> Ratios {
        let side = |of: fn(&Ratios) -> Option<f64>| all.iter().map(of).collect::<Option<Vec<f64>>>();
        Ratios {
            speed: side(|ratios| ratios.speed).and_then(|values| speed(&values)),
            processor: side(|ratios| ratios.processor).and_then(|values| processor(&values)),
        }
    }
}

impl Sample {
    /// A count of the sample for each of its queries.
    fn per_query(&self, count: u64) -> Option<f64> {
        (self.queries > 0).then(|| count as f64 / self.queries as f64)
    }

    /// Processor time per query in microseconds.
    pub fn processor_us_per_query(&self) -> Option<f64> {
        self.per_query(self.processor_us?)
    }

    /// KiB written per query.
    pub fn kib_written_per_query(&self) -> Option<f64> {
        Some(self.per_query(self.bytes_written?)? / 1024.0)
    }

    /// Syncs per query.
    pub fn syncs_per_query(&self) -> Option<f64> {
        self.per_query(*self.status.get(SYNCS)?)
    }
}

impl Record {
    fn samples_of<'r>(&'r self, script: &'r str, server: &'r str) -> impl Iterator<Item = &'r Sample> {
        self.samples.iter().filter(move |sample| sample.script == script && sample.server == server)
    }

    /// Medians over the rounds.
    pub fn typical(&self, script: &str, server: &str) -> Typical {
        let of = |figure: fn(&Sample) -> Option<f64>| {
            let values: Option<Vec<f64>> = self.samples_of(script, server).map(figure).collect();
            values.filter(|values| !values.is_empty()).map(median)
        };
        Typical {
            queries_per_second: of(|sample| Some(sample.queries_per_second)).unwrap_or(f64::NAN),
            p99_ms: of(|sample| Some(sample.p99_ms)).unwrap_or(f64::NAN),
            processor_us: of(Sample::processor_us_per_query),
            kib_written: of(Sample::kib_written_per_query),
            syncs: of(Sample::syncs_per_query),
        }
    }

    /// Ours to a peer in one script.
    pub fn ratios(&self, script: &str, peer: &str) -> Ratios {
        let Some(ours) = self.servers.first() else { return Ratios { speed: None, processor: None } };
        let mean = |figure: fn(&Sample) -> Option<f64>| {
            let rounds: Option<Vec<f64>> = self
                .samples_of(script, &ours.name)
                .map(|mine| {
                    let theirs = self.samples_of(script, peer).find(|theirs| theirs.round == mine.round)?;
                    Some(figure(mine)? / figure(theirs)?)
                })
                .collect();
            geometric_mean(&rounds?)
        };
        Ratios {
            speed: mean(|sample| Some(sample.queries_per_second)),
            processor: mean(Sample::processor_us_per_query),
        }
    }

    /// Geometric means over all scripts of the ratios to one peer.
    pub fn mean_ratios(&self, peer: &str) -> Ratios {
        self.mean_over_scripts(|script| self.ratios(script, peer))
    }

    /// Geometric means over all scripts of the ratios to the peer that is the fastest in the script, and to
    /// the one that is the most frugal in it.
    pub fn mean_ratios_to_the_best(&self) -> Ratios {
        self.mean_over_scripts(|script| {
            let ratios: Vec<Ratios> =
                self.peers().iter().map(|peer| self.ratios(script, &peer.name)).collect();
            let least = |ratios: &[f64]| ratios.iter().copied().reduce(f64::min);
            let most = |ratios: &[f64]| ratios.iter().copied().reduce(f64::max);
            Ratios::combined(&ratios, least, most)
        })
    }

    fn mean_over_scripts(&self, of: impl Fn(&str) -> Ratios) -> Ratios {
        let ratios: Vec<Ratios> = self.load.scripts.iter().map(|script| of(script)).collect();
        Ratios::combined(&ratios, geometric_mean, geometric_mean)
    }
}

#[cfg(test)]
#[allow(clippy::expect_used)]
mod tests {
    use super::Ratios;
    use crate::bench::record::tests::example;

    fn close(left: Option<f64>, right: f64) -> bool {
        left.is_some_and(|left| (left - right).abs() < 1e-9)
    }

    #[test]
    fn medians_are_over_the_rounds_and_per_query() {
        let typical = example().typical("oltp_point_select", "Untorn");
        assert_eq!(typical.queries_per_second, 75.0);
        assert_eq!(typical.p99_ms, 2.5);
        assert_eq!(typical.processor_us, Some(10.0));
        assert_eq!(typical.kib_written, Some(4.0));
        assert_eq!(typical.syncs, Some(0.5));
    }

    #[test]
    fn what_was_not_measured_has_no_figure() {
        let typical = example().typical("oltp_point_select", "B");
        assert_eq!((typical.processor_us, typical.kib_written), (None, None));
        let Ratios { speed, processor } = example().ratios("oltp_point_select", "B");
        assert!(close(speed, 4.0) && processor.is_none());
    }

    #[test]
    fn ratios_are_taken_within_a_round() {
        let mut record = example();
        // The peer is measured in the slow round only: there is nothing to compare the first round with.
        record.samples.retain(|sample| sample.server != "A" || sample.round == 2);
        assert_eq!(record.ratios("oltp_point_select", "A").speed, None);
        assert!(close(example().ratios("oltp_point_select", "A").speed, 2.0));
    }

    #[test]
    fn means_are_geometric_over_the_scripts() {
        let record = example();
        let a = record.mean_ratios("A");
        assert!(close(a.speed, 2.0_f64.sqrt()) && close(a.processor, 0.5));
        // 4 and 1/2.
        assert!(close(record.mean_ratios("B").speed, 2.0_f64.sqrt()));
        // The better is A with 2 in the first script, B with 1/2 in the second.
        let best = record.mean_ratios_to_the_best();
        assert!(close(best.speed, 1.0));
        // B may be the more frugal one: nobody knows.
        assert_eq!(best.processor, None);
    }
}
