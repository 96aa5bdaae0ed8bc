//! Results of an in-order pipeline that are not ready when their block ends.
//!
//! Why it exists: a block's schedule is decided when it is decoded, so it knows nothing of the blocks before it. An operation that needs a
//! result of one of them, or the divider that one of them uses, waits here. What it deliberately does not know: what misses are
//! ([`super::pending`]), and anything of an out-of-order pipeline.
//!
//! A wait delays all later operations of its block, as a wait for a miss does. An operation that would have waited inside the block anyway,
//! for an operation before the delayed one, then issues too late, by that delay at most.

use super::block::{Block, BlockCache};
use super::core::Core;
use crate::types::Tick;

/// Registers whose values are on their way, as bits ([`Op::masks`](super::Op::masks)); bit 0 is the dividers, of which one works at a time.
#[derive(Clone)]
pub struct Results {
    waiting: u64,
    /// When all of them are ready.
    last: Tick,
    ready: [Tick; 64],
}

/// The dividers, in a set of registers.
pub const DIVIDERS: u64 = 1;

impl Results {
    /// Everything is ready.
    pub const NONE: Self = Self {
        waiting: 0,
        last: 0,
        ready: [0; 64],
    };

    /// Whether everything is ready, as far as it was looked at.
    #[inline(always)]
    pub fn are_ready(&self) -> bool {
        self.waiting == 0
    }

    /// Whether an operation on these registers has to wait `now`, as far as it was looked at. Forgets everything if all is ready.
    #[inline(always)]
    pub fn concern(&mut self, registers: u64, now: Tick) -> bool {
        if now >= self.last {
            self.waiting = 0;
        }
        self.waiting & registers != 0
    }

    /// These registers get their values at `at`.
    #[inline(always)]
    fn note(&mut self, mut registers: u64, at: Tick) {
        self.waiting |= registers;
        self.last = self.last.max(at);
        while registers != 0 {
            self.ready[registers.trailing_zeros() as usize] = at;
            registers &= registers - 1;
        }
    }

    /// When all of these registers have their values; forgets what is ready `now`.
    fn take(&mut self, registers: u64, now: Tick) -> Tick {
        let (mut left, mut at) = (self.waiting, now);
        while left != 0 {
            let register = left.trailing_zeros() as usize;
            let bit = 1 << register;
            left &= !bit;
            if self.ready[register] <= now {
                self.waiting &= !bit;
            } else if registers & bit != 0 {
                at = at.max(self.ready[register]);
            }
        }
        at
    }
}

impl Core {
    /// Leaves a block at its end. Notes what is not ready then.
    #[inline(never)]
    pub fn end_results(&mut self, blocks: &BlockCache, block: &Block) {
        for &(registers, done) in blocks.late(block) {
            let at = self.base + Tick::from(done) * self.costs.cycle;
            self.results.note(registers, at);
            self.under_way = true;
        }
    }

    /// Leaves a block before the operation `count`, whose cycle is `cycle`. Notes what is not ready then.
    #[cold]
    #[inline(never)]
    pub fn leave_results(&mut self, blocks: &BlockCache, block: &Block, count: usize, cycle: u16) {
        let results = blocks.results(block).iter().take(count);
        for &(registers, done) in results.filter(|one| one.1 > u32::from(cycle)) {
            let at = self.base + Tick::from(done) * self.costs.cycle;
            self.results.note(registers, at);
            self.under_way = true;
        }
    }

    /// Before an operation on these registers, at `offset` ticks: waits until earlier blocks' results are ready.
    #[cold]
    #[inline(never)]
    pub fn wait_results(&mut self, registers: u64, offset: Tick) {
        let at = self.results.take(registers, self.base + offset);
        self.delay_until(at, offset);
    }
}

#[cfg(test)]
mod tests {
    use super::super::HartConfig;
    use super::super::test_support::*;
    use crate::types::Tick;
    use proptest::prelude::*;

    /// What an operation of a random program is, for a plain scoreboard: latency, sources, destination, whether it divides or jumps.
    struct Step {
        latency: u32,
        sources: Vec<u32>,
        destination: Option<u32>,
        divides: bool,
        jumps: bool,
    }

    /// The cycle in which each operation issues: in order, one a cycle, when its registers and the divider are free.
    fn scoreboard(steps: &[Step], config: &HartConfig) -> Vec<Tick> {
        let (mut ready, mut divider, mut next) = ([0; 32], 0, 0);
        let mut all = Vec::new();
        for step in steps {
            let registers = step.sources.iter().chain(&step.destination);
            let mut issue = registers
                .map(|&one| ready[one as usize])
                .fold(next, Tick::max);
            if step.divides {
                issue = issue.max(divider);
                divider = issue + Tick::from(step.latency);
            }
            if let Some(register) = step.destination {
                ready[register as usize] = issue + Tick::from(step.latency);
            }
            next = issue + 1;
            if step.jumps {
                next += Tick::from(config.jump_penalty);
            }
            all.push(issue);
        }
        all
    }

    /// A program without misses, whose last operation needs everything, and the cycle in which that one issues.
    fn measured(a: &mut Assembler) -> Tick {
        for register in 8..16 {
            a.add(16, 16, register);
        }
        a.marker(16, 0x100).word(WFI);
        let (_, bus, _) = run(a);
        bus.markers[0].0
    }

    /// Each choice: the operation, and three of eight registers.
    fn program(choices: &[(u8, u32, u32, u32)]) -> (Assembler, Vec<Step>) {
        let config = HartConfig::default();
        let mut a = Assembler::default();
        let mut steps = Vec::new();
        let mut step = |latency, sources: &[u32], destination, divides, jumps| {
            steps.push(Step {
                latency,
                sources: sources.to_vec(),
                destination,
                divides,
                jumps,
            });
        };
        a.r(0x17, 0, 0, 7, 0, 0); // x7: where it begins
        step(1, &[], Some(7), false, false);
        for &(kind, rd, one, other) in choices {
            match kind {
                0..4 => {
                    a.add(rd, one, other);
                    step(1, &[one, other], Some(rd), false, false);
                }
                4..6 => {
                    a.r(0x33, 0, 1, rd, one, other);
                    step(config.multiply, &[one, other], Some(rd), false, false);
                }
                6 => {
                    a.r(0x33, 4, 1, rd, one, other);
                    step(config.divide, &[one, other], Some(rd), true, false);
                }
                7 => {
                    a.jal(0, a.here() + 1);
                    step(1, &[], None, false, true);
                }
                8 => {
                    a.branch(6, one, 0, a.here() + 1); // less than 0, unsigned: never
                    step(1, &[one], None, false, false);
                }
                _ => {
                    a.ld(rd, 7, 0);
                    step(config.load_to_use, &[7], Some(rd), false, false);
                }
            }
        }
        for register in 8..16 {
            step(1, &[16, register], Some(16), false, false);
        }
        step(1, &[16], None, false, false);
        (a, steps)
    }

    proptest! {
        #[test]
        fn random_programs_take_what_a_scoreboard_says(
            choices in prop::collection::vec((0..10_u8, 8..16_u32, 8..16_u32, 8..16_u32), 120)
        ) {
            let (mut a, steps) = program(&choices);
            let expected = *scoreboard(&steps, &HartConfig::default()).last().expect("steps");
            let took = measured(&mut a);
            // Never too fast. Too slow where the head of this module says; in most programs not at all.
            prop_assert!(took >= expected && took <= expected + expected / 20, "{took}, {expected}");
        }
    }

    /// Chains go on from line to line, and through jumps.
    #[test]
    fn a_chain_takes_its_latencies_wherever_blocks_end() {
        let config = HartConfig::default();
        for (funct3, latency) in [(0, config.multiply), (4, config.divide)] {
            for jumps in [false, true] {
                let choices: Vec<_> = (0..40)
                    .map(|number| match (funct3, jumps && number % 2 == 1) {
                        (_, true) => (7, 8, 8, 8),
                        (0, _) => (4, 8, 8, 8),
                        _ => (6, 8, 8, 8),
                    })
                    .collect();
                let (mut a, steps) = program(&choices);
                let expected = *scoreboard(&steps, &config).last().expect("steps");
                let chain = if jumps { 20 } else { 40 } * Tick::from(latency);
                assert_eq!(measured(&mut a), expected);
                // One cycle before the chain; behind it additions, of which the first one waits for the last link.
                assert_eq!(expected, 1 + chain + 8, "{funct3} {jumps}");
            }
        }
    }

    /// A division in one line, and one that needs nothing of it in the next one: one after the other.
    #[test]
    fn there_is_one_divider() {
        let (mut a, steps) = program(&[(6, 8, 9, 10), (7, 8, 8, 8), (6, 11, 12, 13)]);
        let config = HartConfig::default();
        let expected = *scoreboard(&steps, &config).last().expect("steps");
        assert_eq!(measured(&mut a), expected);
        assert!(expected > 2 * Tick::from(config.divide));
    }

    /// A handler of a trap may use a register that a result is under way to. Nothing is under way at the end of the second block, whose last operation waits for
    /// the quotient; but a trap leaves it before.
    #[test]
    fn a_trap_does_not_make_results_ready() {
        for in_the_middle in [false, true] {
            let mut a = Assembler::default();
            a.jal(5, 3); // x5: the handler
            a.add(3, 2, 2).marker(3, 0x100); // the handler uses the quotient
            a.csrw(0x305, 5).r(0x33, 4, 1, 2, 5, 5);
            match in_the_middle {
                false => a.word(ECALL),
                true => a.ld(6, 0, 8).add(7, 2, 2),
            };
            let (mut hart, mut bus) = start(&a);
            hart.run(&mut bus, 100);
            let config = HartConfig::default();
            // jal, csrw, and the division in cycle 1 + penalty + 1.
            let divides = 2 + Tick::from(config.jump_penalty);
            let quotient = divides + Tick::from(config.divide);
            assert_eq!(bus.markers[0], (quotient + 1, 0x100, 2));
        }
    }
}
