//! Sequences of RAND(seed), and of RAND() after SET rand_seed1: MySQL's own generator, so that a seed gives
//! the numbers that it gives there.

use std::cell::{Cell, RefCell};

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

/// What RAND() draws from once the session has said a seed.
#[derive(Debug, Default)]
pub struct SeededNumbers(Cell<Option<Generator>>);

impl SeededNumbers {
    /// `SET rand_seed1`, or `rand_seed2`.
    pub fn set(&self, is_first: bool, seed: u64) {
        let mut generator = self.0.get().unwrap_or(Generator { first: 0, second: 0 });
        let seed = (seed % u64::from(MODULUS)) as u32;
        *if is_first { &mut generator.first } else { &mut generator.second } = seed;
        self.0.set(Some(generator));
    }

    /// The next number, if a seed has been said.
    pub fn next(&self) -> Option<f64> {
        let mut generator = self.0.get()?;
        let number = generator.next();
        self.0.set(Some(generator));
        Some(number)
    }

    /// Back to numbers that nobody can know.
    pub fn forget(&self) {
        self.0.set(None);
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

    #[test]
    fn a_session_draws_from_its_own_seeds() {
        let numbers = SeededNumbers::default();
        assert_eq!(numbers.next(), None);
        numbers.set(true, 10_000_000);
        numbers.set(false, 1_000_000);
        assert_eq!(numbers.next(), Some(0.028870999839968048));
        assert!(numbers.next().is_some_and(|number| number != 0.028870999839968048));
        numbers.forget();
        assert_eq!(numbers.next(), None);
    }
}
