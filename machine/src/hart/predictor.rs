//! Branch prediction: two-bit counters and a return-address stack.
//!
//! There is no branch target buffer: direct targets are known when the instruction is decoded, and indirect jumps other
//! than returns always pay the penalty. The predictor affects only time, never results.

use super::config::HartConfig;

/// Bimodal predictor (J. E. Smith, "A study of branch prediction strategies", 1981) with a circular return stack.
#[derive(Clone)]
pub struct Predictor {
    counters: Vec<u8>,
    mask: usize,
    returns: Vec<u64>,
    top: usize,
    depth: usize,
}

impl Predictor {
    /// All counters weakly "not taken", the stack empty.
    pub fn new(config: &HartConfig) -> Self {
        let entries = config.predictor_entries as usize;
        let entries = if entries == 0 {
            0
        } else {
            entries.next_power_of_two()
        };
        Self {
            counters: vec![1; entries],
            mask: entries.wrapping_sub(1),
            returns: vec![0; config.return_stack as usize],
            top: 0,
            depth: 0,
        }
    }

    /// Predicts the branch at `pc`, and learns its outcome. (Tables say what follows, because a branch of the host would be as hard to predict.)
    #[inline(always)]
    pub fn branch(&mut self, pc: u64, taken: bool, backward: bool) -> Outcome {
        // An empty table predicts statically: backward branches are loops.
        match self.counters.get_mut((pc >> 1) as usize & self.mask) {
            Some(counter) => {
                let outcome = Outcome::new(*counter, taken);
                *counter = outcome.counter();
                outcome
            }
            None => Outcome::new(if backward { 3 } else { 0 }, taken),
        }
    }

    /// The prediction for the branch at `pc`. Learns nothing.
    pub fn predict(&self, pc: u64, backward: bool) -> bool {
        let counter = self.counters.get((pc >> 1) as usize & self.mask);
        counter.map_or(backward, |counter| *counter >= 2)
    }

    /// Learns the outcome of the branch at `pc`.
    pub fn learn(&mut self, pc: u64, taken: bool) {
        if let Some(counter) = self.counters.get_mut((pc >> 1) as usize & self.mask) {
            *counter = Outcome::new(*counter, taken).counter();
        }
    }

    /// The position of the return-address stack, for [`Predictor::restore`].
    pub fn position(&self) -> (u32, u32) {
        (self.top as u32, self.depth as u32)
    }

    /// Undoes the calls and returns since `position`. Entries that they overwrote are lost.
    pub fn restore(&mut self, position: (u32, u32)) {
        (self.top, self.depth) = (position.0 as usize, position.1 as usize);
    }

    /// A return: its predicted target.
    pub fn pop(&mut self) -> Option<u64> {
        if self.depth == 0 {
            return None;
        }
        let predicted = self.returns[self.top];
        self.top = if self.top == 0 {
            self.returns.len() - 1
        } else {
            self.top - 1
        };
        self.depth -= 1;
        Some(predicted)
    }

    /// A call: remembers its return address. The oldest entry is lost when the stack is full.
    #[inline(never)]
    pub fn call(&mut self, return_address: u64) {
        let size = self.returns.len();
        if size > 0 {
            self.top = if self.top + 1 >= size {
                0
            } else {
                self.top + 1
            };
            self.returns[self.top] = return_address;
            self.depth = (self.depth + 1).min(size);
        }
    }

    /// A return to `target`. Returns whether the stack had predicted it.
    pub fn returns_to(&mut self, target: u64) -> bool {
        self.pop() == Some(target)
    }
}

/// What a branch did, and what its counter had predicted: twice the counter, and one if the branch is taken.
#[derive(Clone, Copy)]
pub struct Outcome(u8);

impl Outcome {
    /// How many there are.
    pub const COUNT: usize = 8;
    /// All, by their numbers.
    pub const ALL: [Self; Self::COUNT] = [
        Self(0),
        Self(1),
        Self(2),
        Self(3),
        Self(4),
        Self(5),
        Self(6),
        Self(7),
    ];

    #[inline(always)]
    fn new(counter: u8, taken: bool) -> Self {
        Self((counter & 3) << 1 | u8::from(taken))
    }

    /// Its number.
    #[inline(always)]
    pub fn number(self) -> usize {
        usize::from(self.0) & (Self::COUNT - 1)
    }

    /// Whether the branch is taken.
    pub fn is_taken(self) -> bool {
        self.0 & 1 != 0
    }

    /// Whether the prediction was wrong: 1 if so.
    #[inline(always)]
    pub fn wrong(self) -> u8 {
        const WRONG: [u8; Outcome::COUNT] = [0, 1, 0, 1, 1, 0, 1, 0];
        WRONG[self.number()]
    }

    /// The counter after it.
    #[inline(always)]
    fn counter(self) -> u8 {
        const COUNTER: [u8; Outcome::COUNT] = [0, 1, 0, 2, 1, 3, 2, 3];
        COUNTER[self.number()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_branch_is_mispredicted_twice_at_the_start_and_once_at_the_end() {
        let mut predictor = Predictor::new(&HartConfig::default());
        // From "weakly not taken": wrong once, then right until the exit.
        let wrong = (0..100)
            .filter(|i| predictor.branch(0x80, *i != 99, true).wrong() != 0)
            .count();
        assert_eq!(wrong, 2);
        // The exit only weakens the counter: the second run of the loop is wrong only at its exit.
        let wrong = (0..100)
            .filter(|i| predictor.branch(0x80, *i != 99, true).wrong() != 0)
            .count();
        assert_eq!(wrong, 1);
    }

    #[test]
    fn without_counters_backward_branches_are_predicted_taken() {
        let config = HartConfig {
            predictor_entries: 0,
            ..HartConfig::default()
        };
        let mut predictor = Predictor::new(&config);
        for (taken, backward) in [(true, true), (false, false), (false, true), (true, false)] {
            let outcome = predictor.branch(0, taken, backward);
            assert_eq!(outcome.wrong() == 0, taken == backward);
            assert_eq!(outcome.is_taken(), taken);
        }
    }

    #[test]
    fn return_stack_forgets_the_oldest() {
        let config = HartConfig {
            return_stack: 2,
            ..HartConfig::default()
        };
        let mut predictor = Predictor::new(&config);
        (1..=3).for_each(|address| predictor.call(address));
        assert!(predictor.returns_to(3) && predictor.returns_to(2) && !predictor.returns_to(1));
    }
}
