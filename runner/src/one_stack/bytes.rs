//! Calls of functions for bytes, of which the analysis knows what they do with addresses of the frame.
//!
//! Why it exists: the compiler compares and copies its own values in the frame with such calls, for example the result of a function that is compared with `null`.
//! The address goes nowhere else, and the bytes are known, so they count as those of a load or store. What it deliberately does not know: what the bytes are.

use super::addresses::{Effect, FIRST};
use super::{Next, Procedure, Registers};
use std::collections::BTreeSet;

/// Functions that the compiler itself calls for bytes at an address, and that do not keep it: which of a0 and a1 they read and write. The third argument is the
/// number of bytes. C reserves these names.
const OF_BYTES: [(&str, &[u32], &[u32]); 4] = [
    ("memcmp", &[0, 1], &[]),
    ("memcpy", &[1], &[0]),
    ("memmove", &[1], &[0]),
    ("memset", &[], &[0]),
];

/// Most bytes of a call that the analysis follows: the stack is in an image of at most so many.
const LARGEST: i64 = bulkhead_abi::one_shot::IMAGE_SIZE as i64;

impl Procedure {
    /// The instruction that puts an address of the frame into this argument of a call, and its offset, if nothing else has the address: no path goes around it,
    /// and nothing reads the register before the call.
    fn passes(&self, call: usize, argument: Registers) -> Option<(usize, i64)> {
        for before in (0..call).rev() {
            let it = &self.instructions[before];
            let is_straight = it.next == Next::Behind && it.calls.is_none() && it.moves == 0;
            if self.joins.contains(&(before + 1)) || !is_straight {
                return None;
            }
            match it.effect {
                Effect::Make { to, offset } if to == argument && it.makes_address => {
                    return Some((before, offset));
                }
                _ if (it.reads | it.writes) & argument != 0 => return None,
                _ => {}
            }
        }
        None
    }

    /// Whether something reads the result of a call, or a further call may get it.
    pub(super) fn uses_result(&self, call: usize) -> bool {
        let result: Registers = 1 << FIRST;
        let mut seen = BTreeSet::new();
        let mut open = self.next(call);
        while let Some(at) = open.pop() {
            let it = &self.instructions[at];
            if it.reads & result != 0 || it.calls.is_some() {
                return true;
            }
            if it.writes & result == 0 && seen.insert(at) {
                open.extend(self.next(at));
            }
        }
        false
    }

    /// Calls of functions for bytes use known bytes of the frame, so addresses that only they get are none that are kept.
    pub(super) fn add_bytes_of_calls(&mut self) {
        for call in 0..self.instructions.len() {
            let name = self.instructions[call].calls.as_deref();
            let known = OF_BYTES.iter().find(|one| Some(one.0) == name);
            let Some(&(_, reads, writes)) = known else {
                continue;
            };
            let argument = |number: u32| 1 << (FIRST + number);
            let count = self.constant(call, argument(2));
            let Some(count) = count.filter(|count| (0..=LARGEST).contains(count)) else {
                continue;
            };
            for (number, is_write) in reads
                .iter()
                .map(|one| (*one, false))
                .chain(writes.iter().map(|one| (*one, true)))
            {
                let Some((makes, offset)) = self.passes(call, argument(number)) else {
                    continue;
                };
                let bytes = (offset, offset + count);
                let it = &mut self.instructions[call];
                match is_write {
                    true => it.writes_frame.push(bytes),
                    false => it.reads_frame.push(bytes),
                }
                // The result is the address again.
                it.returns_address |= is_write;
                let makes = &mut self.instructions[makes];
                makes.makes_address = false;
                makes.wrong = None;
            }
        }
    }
}
