//! Sequences of RAND(seed): MySQL's own generator, so that a seed gives the numbers that it gives there.

use std::cell::RefCell;

/// What the generator counts modulo.
const MODULUS: u32 = 0x3FFF_FFFF;

#[derive(Clone, Copy, Debug)]
struct Generator {
    first: u32,
    second: u32,
}

impl Generator {
    fn new(seed: u32) -> Generator {
        let first = seed.wrapping_mul(0x1_0001).wrapping_add(55_555_555) % MODULUS;
        let second = seed.wrapping_mul(0x1000_0001) % MODULUS;
        Generator { first, second }
    }

    fn next(&mut self) -> f64 {
        let modulus = u64::from(MODULUS);
        let first = (u64::from(self.first) * 3 + u64::from(self.second)) % modulus;
        let second = (first + u64::from(self.second) + 33) % modulus;
        (self.first, self.second) = (first as u32, second as u32);
        first as f64 / f64::from(MODULUS)
    }
}

/// Those of a statement, by where they stand in it.
#[derive(Debug, Default)]
pub struct RandomSequences(RefCell<Vec<(usize, Generator)>>);

impl RandomSequences {
    /// Begins all from the start.
    #[inline]
    pub fn reset(&self) {
        self.0.borrow_mut().clear();
    }

    /// The next number at a place; the first one if it does not go on with what it has begun.
    pub fn next(&self, place: usize, seed: u32, goes_on: bool) -> f64 {
        if !goes_on {
            return Generator::new(seed).next();
        }
        let mut begun = self.0.borrow_mut();
        if let Some((_, generator)) = begun.iter_mut().find(|(at, _)| *at == place) {
            return generator.next();
        }
        let mut generator = Generator::new(seed);
        let number = generator.next();
        begun.push((place, generator));
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_those_of_mysql() {
        let sequences = RandomSequences::default();
        assert_eq!(sequences.next(1, 3, true), 0.9057697559760601);
        assert_eq!(sequences.next(2, 2, true), 0.6555866465490187);
        assert_ne!(sequences.next(1, 3, true), 0.9057697559760601);
        assert_eq!(sequences.next(3, 3, false), sequences.next(3, 3, false));
        sequences.reset();
        assert_eq!(sequences.next(1, 3, true), 0.9057697559760601);
    }
}
