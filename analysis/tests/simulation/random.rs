//! Random numbers: a case is its seed.

/// A generator of its own for each case.
pub struct Random(bulkhead_random::Random);

impl Random {
    /// The generator of case `number` under the policy `name`.
    pub fn of(name: &str, number: u64) -> Self {
        let seed = name.bytes().fold(number.wrapping_add(1), |sum, byte| {
            sum.wrapping_mul(0x9e37_79b9_7f4a_7c15)
                .rotate_left(17)
                .wrapping_add(byte.into())
        });
        Self(bulkhead_random::Random::new(seed))
    }

    /// At least 0 and below `bound`; 0 if that is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0.below(bound)
    }

    /// Between both, which may be the same.
    pub fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.below(most.saturating_sub(least) + 1)
    }

    /// True in one of `times` cases.
    pub fn one_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    /// One of them.
    pub fn of_list<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len() as u64) as usize]
    }

    /// The list in another order.
    pub fn shuffled<T>(&mut self, mut list: Vec<T>) -> Vec<T> {
        for index in (1..list.len()).rev() {
            let other = self.below(index as u64 + 1) as usize;
            list.swap(index, other);
        }
        list
    }
}
