//! One small random number generator for programs on the chip, simulations and tests.
//!
//! Why it exists: a seed must reproduce a failing case for years, in a simulation and in a program without an allocator; so the
//! sequence is fixed here and not by a library's version. What it deliberately does not know: the use of the numbers. Studies, whose
//! statistics depend on the generator, use a library's (`rand_pcg`); a cache's random replacement is hardware and stays in the cache.
#![no_std]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

/// xorshift64* (Vigna, "An experimental exploration of Marsaglia's xorshift generators, scrambled", ACM Transactions on Mathematical
/// Software 42, 2016; shifts 12, 25, 27): every number but 0 once in 2^64 - 1 steps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Random(u64);

impl Random {
    /// The sequence of a seed. 0 has none; it gets that of 1.
    pub fn new(seed: u64) -> Self {
        Self(seed.max(1))
    }

    /// The next 64 bits.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// A number below `bound`; 0 if `bound` is 0. Not exactly uniform: off by at most `bound` in 2^64.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }

    /// True in this many of a hundred cases.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From an implementation in another language.
    #[test]
    fn the_sequence_is_fixed() {
        let mut random = Random::new(1);
        assert_eq!(random.next(), 0x47E4_CE4B_896C_DD1D);
        assert_eq!(random.next(), 0xABCF_A6A8_E079_651D);
        assert_eq!(Random::new(0), Random::new(1));
    }

    #[test]
    fn numbers_are_below_their_bound_and_spread() {
        let mut random = Random::new(7);
        let mut seen = [0u32; 10];
        for _ in 0..10_000 {
            seen[random.below(10) as usize] += 1;
        }
        assert!(seen.iter().all(|&n| (900..1100).contains(&n)), "{seen:?}");
        assert_eq!(random.below(0), 0);
    }
}
