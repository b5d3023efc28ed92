//! A small seeded generator (SplitMix64, Steele et al. 2014): the same seed gives the same numbers on every
//! machine.

/// Seeded pseudo-random numbers for simulations and tests; not for secrets.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// A generator started from `seed`.
    pub const fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// The next number.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `bound` (which must not be 0).
    pub fn below(&mut self, bound: usize) -> usize {
        assert!(bound > 0, "no number is below 0");
        // The high half of a 128-bit product: unbiased enough for any bound far below 2^64.
        ((u128::from(self.next_u64()) * bound as u128) >> 64) as usize
    }

    /// True once in `times` on average.
    pub fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn follows_the_published_sequence() {
        // Reference values of SplitMix64 for the seed 1234567 (Rosetta Code, "Pseudo-random
        // numbers/Splitmix64").
        let mut random = Random::new(1_234_567);
        let expected = [
            6457827717110365317,
            3203168211198807973,
            9817491932198370423,
            4593380528125082431,
            16408922859458223821,
        ];
        for value in expected {
            assert_eq!(random.next_u64(), value);
        }
        assert!((0..1000).all(|_| random.below(7) < 7));
    }
}
