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

    /// Predicts the branch at `pc`, learns its outcome, and says whether the prediction was right.
    #[inline(always)]
    pub fn branch(&mut self, pc: u64, taken: bool, backward: bool) -> bool {
        // An empty table predicts statically: backward branches are loops.
        match self.counters.get_mut((pc >> 1) as usize & self.mask) {
            Some(counter) => {
                let right = (*counter >= 2) == taken;
                *counter = moved(*counter, taken);
                right
            }
            None => backward == taken,
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
            *counter = moved(*counter, taken);
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

/// A two-bit counter after an outcome: by that, and the counter. (A table, because a branch of the host would be as hard to predict.)
#[inline(always)]
fn moved(counter: u8, taken: bool) -> u8 {
    const MOVED: [[u8; 4]; 2] = [[0, 0, 1, 2], [1, 2, 3, 3]];
    MOVED[usize::from(taken)][usize::from(counter & 3)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_branch_is_mispredicted_twice_at_the_start_and_once_at_the_end() {
        let mut predictor = Predictor::new(&HartConfig::default());
        // From "weakly not taken": wrong once, then right until the exit.
        let wrong = (0..100)
            .filter(|i| !predictor.branch(0x80, *i != 99, true))
            .count();
        assert_eq!(wrong, 2);
        // The exit only weakens the counter: the second run of the loop is wrong only at its exit.
        let wrong = (0..100)
            .filter(|i| !predictor.branch(0x80, *i != 99, true))
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
        assert!(predictor.branch(0, true, true) && predictor.branch(0, false, false));
        assert!(!predictor.branch(0, false, true) && !predictor.branch(0, true, false));
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
