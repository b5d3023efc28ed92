//! YCSB's Zipfian distribution, after Gray et al., "Quickly Generating Billion-Record Synthetic Databases"
//! (SIGMOD 1994): the item of rank `r` is drawn in proportion to `1 / (r + 1)^0.99`.

const THETA: f64 = 0.99;

pub struct Zipf {
    items: f64,
    zeta: f64,
    alpha: f64,
    eta: f64,
}

impl Zipf {
    pub fn new(items: u64) -> Zipf {
        let zeta = |items: u64| (1..=items).map(|item| (item as f64).powf(-THETA)).sum::<f64>();
        let all = zeta(items);
        Zipf {
            items: items as f64,
            zeta: all,
            alpha: 1.0 / (1.0 - THETA),
            eta: (1.0 - (2.0 / items as f64).powf(1.0 - THETA)) / (1.0 - zeta(2) / all),
        }
    }

    /// The rank that a random number chooses, from 0 on.
    pub fn rank(&self, random: u64) -> u64 {
        let uniform = (random >> 11) as f64 / (1u64 << 53) as f64;
        let scaled = uniform * self.zeta;
        if scaled < 1.0 {
            return 0;
        }
        if scaled < 1.0 + 0.5f64.powf(THETA) {
            return 1;
        }
        let rank = self.items * (self.eta * uniform - self.eta + 1.0).powf(self.alpha);
        rank.clamp(0.0, self.items - 1.0) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::Zipf;
    use crate::pairs::mixed;

    /// The shares of the first ranks are those of the formula, to a twentieth.
    #[test]
    fn ranks_are_drawn_in_proportion() {
        let (items, draws) = (1000u64, 1_000_000u64);
        let zipf = Zipf::new(items);
        let mut counts = vec![0u64; items as usize];
        for n in 0..draws {
            counts[zipf.rank(mixed(1, n)) as usize] += 1;
        }
        let sum: f64 = (1..=items).map(|item| (item as f64).powf(-0.99)).sum();
        for rank in [0usize, 1] {
            let expected = ((rank + 1) as f64).powf(-0.99) / sum * draws as f64;
            let ratio = counts[rank] as f64 / expected;
            assert!(
                (0.95..1.05).contains(&ratio),
                "rank {rank} came {} times, not {expected:.0}",
                counts[rank]
            );
        }
        let (first_half, all) = (counts[..500].iter().sum::<u64>(), counts.iter().sum::<u64>());
        assert_eq!(all, draws);
        assert!(first_half > draws * 8 / 10, "{first_half}");
        assert!(counts[999] > 0, "the last item is never drawn");
    }
}
