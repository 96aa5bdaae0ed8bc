//! An adversary on a core of a mesh: a program that, from a given moment on, does nothing but access other cores' memories and registers.
//!
//! Why it exists: the check of non-interference needs programs that do what no compiler would: stores in every cycle, to any address. This
//! module generates such a program for each plan, instruction by instruction, so no time is spent on reading a plan. What it deliberately
//! does not know: what is at the addresses, and which core is attacked.
//!
//! The program sleeps until its moment comes and then runs until the end. An access to something that the chip does not have ends it.

use bulkhead_abi::memory_map::{CLINT_BASE, CLINT_MTIMECMP};

/// What is done at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deed {
    /// A store of eight bytes.
    Store(u64),
    /// A store of four bytes.
    StoreWord(u32),
    /// A load of eight bytes.
    Load,
    /// An exchange of four bytes, as used to take locks.
    Swap(u32),
}

/// Which addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// Always the same.
    One,
    /// One after another, this many bytes apart, in a range of a power of two.
    Row {
        /// Distance from one to the next: a multiple of 8, at most 1024.
        stride: u32,
        /// Bytes of the range.
        range: u64,
    },
    /// Anywhere in a range of a power of two, at multiples of 8.
    Random {
        /// Bytes of the range.
        range: u64,
    },
}

/// A part of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// What.
    pub deed: Deed,
    /// Chip-global address of the range.
    pub address: u64,
    /// Where in it.
    pub pattern: Pattern,
    /// Groups of [`GROUP`] accesses.
    pub groups: u32,
    /// Rounds of an empty loop after each group.
    pub pause: u32,
}

/// What an adversary does: the steps repeatedly, or nothing if there are none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// In their order.
    pub steps: Vec<Step>,
    /// Seed of the random addresses; not 0.
    pub seed: u64,
}

/// Accesses between two checks of a step's count.
pub const GROUP: usize = 8;
/// No moment at all.
pub const NEVER: u64 = u64::MAX;

const ZERO: u32 = 0;
const T0: u32 = 5;
const T1: u32 = 6;
const T2: u32 = 7;
const ADDRESS: u32 = 8;
const VALUE: u32 = 9;
const OFFSET: u32 = 18;
const MASK: u32 = 19;
const STATE: u32 = 20;
const COUNT: u32 = 21;
/// Loads rotate over four registers, so that four are outstanding.
const LOADED: u32 = 28;

/// Consecutive instructions.
#[derive(Default)]
struct Code(Vec<u32>);

impl Code {
    fn word(&mut self, word: u32) -> &mut Self {
        self.0.push(word);
        self
    }

    fn immediate(&mut self, opcode: u32, funct3: u32, rd: u32, rs: u32, value: i32) -> &mut Self {
        self.word((value as u32 & 0xFFF) << 20 | rs << 15 | funct3 << 12 | rd << 7 | opcode)
    }

    fn addi(&mut self, rd: u32, rs: u32, value: i32) -> &mut Self {
        self.immediate(0x13, 0, rd, rs, value)
    }

    fn shift(&mut self, left: bool, rd: u32, rs: u32, by: i32) -> &mut Self {
        self.immediate(0x13, if left { 1 } else { 5 }, rd, rs, by)
    }

    fn register(&mut self, funct3: u32, rd: u32, a: u32, b: u32) -> &mut Self {
        self.word(b << 20 | a << 15 | funct3 << 12 | rd << 7 | 0x33)
    }

    fn add(&mut self, rd: u32, a: u32, b: u32) -> &mut Self {
        self.register(0, rd, a, b)
    }

    fn xor(&mut self, rd: u32, a: u32, b: u32) -> &mut Self {
        self.register(4, rd, a, b)
    }

    fn and(&mut self, rd: u32, a: u32, b: u32) -> &mut Self {
        self.register(7, rd, a, b)
    }

    /// Any number, byte by byte.
    fn load_number(&mut self, rd: u32, value: u64) -> &mut Self {
        self.addi(rd, ZERO, 0);
        for byte in value.to_be_bytes() {
            self.shift(true, rd, rd, 8).addi(rd, rd, byte.into());
        }
        self
    }

    fn store(&mut self, funct3: u32, value: u32, at: u32) -> &mut Self {
        self.word(value << 20 | at << 15 | funct3 << 12 | 0x23)
    }

    /// A branch back to an instruction if a register is not zero; within 4 KiB.
    fn again_unless_zero(&mut self, register: u32, to: usize) -> &mut Self {
        let o = ((to as i64 - self.0.len() as i64) * 4) as u32;
        let high = (o >> 12 & 1) << 31 | (o >> 5 & 0x3F) << 25;
        let low = (o >> 1 & 0xF) << 8 | (o >> 11 & 1) << 7;
        self.word(high | register << 15 | 1 << 12 | low | 0x63)
    }

    /// A jump back to an instruction, within 1 MiB.
    fn jump(&mut self, to: usize) -> &mut Self {
        let o = ((to as i64 - self.0.len() as i64) * 4) as u32;
        let low = (o >> 1 & 0x3FF) << 21 | (o >> 11 & 1) << 20;
        self.word((o >> 20 & 1) << 31 | low | (o >> 12 & 0xFF) << 12 | 0x6F)
    }

    /// `csrrw zero, csr, rs`.
    fn set_control(&mut self, csr: u32, rs: u32) -> &mut Self {
        self.word(csr << 20 | rs << 15 | 1 << 12 | 0x73)
    }

    /// Nothing more happens.
    fn rest(&mut self) -> &mut Self {
        let here = self.0.len();
        self.word(WFI).jump(here)
    }

    fn deed(&mut self, deed: Deed, at: u32, number: usize) -> &mut Self {
        match deed {
            Deed::Store(_) => self.store(3, VALUE, at),
            Deed::StoreWord(_) => self.store(2, VALUE, at),
            Deed::Load => self.immediate(0x03, 3, LOADED + number as u32 % 4, at, 0),
            // amoswap.w
            Deed::Swap(_) => self.word(1 << 27 | VALUE << 20 | at << 15 | 2 << 12 | T2 << 7 | 0x2F),
        }
    }

    fn step(&mut self, step: &Step) {
        let value = match step.deed {
            Deed::Store(value) => value,
            Deed::StoreWord(value) | Deed::Swap(value) => value.into(),
            Deed::Load => 0,
        };
        self.load_number(ADDRESS, step.address);
        self.load_number(VALUE, value);
        if let Pattern::Row { range, .. } | Pattern::Random { range } = step.pattern {
            // Aligned to eight bytes.
            self.load_number(MASK, range.next_power_of_two().max(8) - 8);
            self.addi(OFFSET, ZERO, 0);
        }
        self.load_number(COUNT, step.groups.max(1).into());
        let group = self.0.len();
        for number in 0..GROUP {
            match step.pattern {
                Pattern::One => {
                    self.deed(step.deed, ADDRESS, number);
                }
                Pattern::Row { stride, .. } => {
                    self.add(T0, ADDRESS, OFFSET).deed(step.deed, T0, number);
                    self.addi(OFFSET, OFFSET, stride.min(1024) as i32);
                    self.and(OFFSET, OFFSET, MASK);
                }
                Pattern::Random { .. } => {
                    // A xorshift generator of 64 bits (Marsaglia 2003, 13, 7, 17).
                    for (left, by) in [(true, 13), (false, 7), (true, 17)] {
                        self.shift(left, T1, STATE, by).xor(STATE, STATE, T1);
                    }
                    self.and(T0, STATE, MASK).add(T0, T0, ADDRESS);
                    self.deed(step.deed, T0, number);
                }
            }
        }
        if step.pause > 0 {
            self.load_number(T1, step.pause.into());
            let wait = self.0.len();
            self.addi(T1, T1, -1).again_unless_zero(T1, wait);
        }
        self.addi(COUNT, COUNT, -1).again_unless_zero(COUNT, group);
    }
}

const WFI: u32 = 0x1050_0073;
const MIE: u32 = 0x304;
const MTVEC: u32 = 0x305;
const MIP: u32 = 0x344;
const TIMER: i32 = 1 << 7;

/// The program of a plan for a core, placed at the start of the core's memory. `begin`: the moment, in timer counts. `base`: the address of
/// the start of the memory.
pub fn program(plan: &Plan, begin: u64, base: u64) -> Vec<u8> {
    let mut code = Code::default();
    // The first instructions jump over the place where every trap ends.
    code.word(0x0100_006F).word(ZERO_WORD).rest();
    // A handler must be aligned to four bytes.
    code.load_number(T0, base + 8).set_control(MTVEC, T0);
    code.load_number(T0, CLINT_BASE + CLINT_MTIMECMP);
    code.load_number(T1, begin).store(3, T1, T0);
    code.addi(T1, ZERO, TIMER).set_control(MIE, T1);
    // Interrupts are masked, so a pending one only ends the sleep.
    let sleep = code.0.len();
    code.word(WFI).word(MIP << 20 | 2 << 12 | T1 << 7 | 0x73);
    code.immediate(0x13, 7, T1, T1, TIMER);
    // sltiu: 1 if it is zero.
    code.immediate(0x13, 3, T1, T1, 1);
    code.again_unless_zero(T1, sleep).set_control(MIE, ZERO);
    code.load_number(STATE, plan.seed.max(1));
    if plan.steps.is_empty() {
        code.rest();
    }
    let first = code.0.len();
    for step in &plan.steps {
        code.step(step);
    }
    code.jump(first);
    code.0.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// No instruction.
const ZERO_WORD: u32 = 0;

#[cfg(test)]
mod tests {
    use super::*;
    use bulkhead_abi::memory_map::{MEMORY_BASE, TILE_DOORBELL, TILE_REGISTERS, TILE_WINDOWS};
    use bulkhead_machine::machine::{Machine, RunLimit};
    use bulkhead_model::{LoadOptions, load_platform};

    /// From the specification's tables, produced by an assembler.
    #[test]
    fn instructions_are_those_of_an_assembler() {
        let one = |build: &dyn Fn(&mut Code)| {
            let mut code = Code::default();
            build(&mut code);
            code.0[0]
        };
        // addi t0, t1, -1; sd s1, 0(t0); sw s1, 0(s0); ld t3, 0(t0); amoswap.w t2, s1, (s0); csrw mtvec, t0; slli t1, s4, 13; srli t1, s4, 7;
        // xor s4, s4, t1; and t0, s4, s3
        assert_eq!(
            one(&|c| {
                c.addi(T0, T1, -1);
            }),
            0xFFF3_0293
        );
        assert_eq!(
            one(&|c| {
                c.store(3, VALUE, T0);
            }),
            0x0092_B023
        );
        assert_eq!(
            one(&|c| {
                c.store(2, VALUE, ADDRESS);
            }),
            0x0094_2023
        );
        assert_eq!(
            one(&|c| {
                c.deed(Deed::Load, T0, 0);
            }),
            0x0002_BE03
        );
        assert_eq!(
            one(&|c| {
                c.deed(Deed::Swap(0), ADDRESS, 0);
            }),
            0x0894_23AF
        );
        assert_eq!(
            one(&|c| {
                c.set_control(MTVEC, T0);
            }),
            0x3052_9073
        );
        assert_eq!(
            one(&|c| {
                c.shift(true, T1, STATE, 13);
            }),
            0x00DA_1313
        );
        assert_eq!(
            one(&|c| {
                c.shift(false, T1, STATE, 7);
            }),
            0x007A_5313
        );
        assert_eq!(
            one(&|c| {
                c.xor(STATE, STATE, T1);
            }),
            0x006A_4A33
        );
        assert_eq!(
            one(&|c| {
                c.and(T0, STATE, MASK);
            }),
            0x013A_72B3
        );
    }

    fn ran(plan: &Plan, begin: u64, until: u64) -> Machine {
        let platform = load_platform("epiphany3", &LoadOptions::default()).expect("valid");
        let config = crate::convert::convert(&platform);
        let mut machine = Machine::new(&config).expect("valid");
        machine
            .load_tile(0, MEMORY_BASE, &program(plan, begin, MEMORY_BASE))
            .expect("it fits");
        machine.start_hart(0, MEMORY_BASE, 0, 0).expect("a hart");
        machine.run(RunLimit { ticks: until }, None);
        machine
    }

    fn window(core: u64) -> u64 {
        TILE_WINDOWS + (core << 20)
    }

    #[test]
    fn it_does_nothing_before_its_moment_and_its_steps_then() {
        let platform = load_platform("epiphany3", &LoadOptions::default()).expect("valid");
        let second = platform.ticks_per_second();
        let step = |deed, address, pattern| Step {
            deed,
            address,
            pattern,
            groups: 1,
            pause: 3,
        };
        let row = Pattern::Row {
            stride: 8,
            range: 32,
        };
        let random = Pattern::Random { range: 1 << 12 };
        let plan = Plan {
            steps: vec![
                step(Deed::Store(0x1234_5678_9ABC_DEF0), window(1) + 0x4000, row),
                step(Deed::StoreWord(7), window(1) + 0x4100, Pattern::One),
                step(Deed::Swap(9), window(2) + 0x4104, Pattern::One),
                step(Deed::Store(u64::MAX), window(3) + 0x5000, random),
                step(Deed::Load, window(2), random),
                step(
                    Deed::Store(1),
                    window(1) + TILE_REGISTERS + TILE_DOORBELL,
                    Pattern::One,
                ),
            ],
            seed: 5,
        };
        // Half a millisecond of the 600 MHz timer.
        let begin = 300_000;
        let half = second / 2000;
        let before = ran(&plan, begin, half);
        assert!(
            before
                .local_memories()
                .iter()
                .all(|(_, memory)| memory.remote == 0)
        );
        let asleep = ran(&plan, NEVER, 4 * half);
        assert!(
            asleep
                .local_memories()
                .iter()
                .all(|(_, memory)| memory.remote == 0)
        );
        let machine = ran(&plan, begin, 4 * half);
        let word = |tile, offset| {
            let mut word = [0; 8];
            machine
                .peek(tile, MEMORY_BASE + offset, &mut word)
                .expect("memory");
            u64::from_le_bytes(word)
        };
        for place in 0..4 {
            assert_eq!(word(1, 0x4000 + 8 * place), 0x1234_5678_9ABC_DEF0);
        }
        assert_eq!(
            (word(1, 0x4020), word(1, 0x4100), word(2, 0x4100)),
            (0, 7, 9 << 32)
        );
        let hit = (0..512)
            .filter(|place| word(3, 0x5000 + 8 * place) == u64::MAX)
            .count();
        assert!(hit > 400, "{hit}");
        assert_eq!((word(3, 0x4FF8), word(3, 0x6000)), (0, 0));
        let mut bell = [0; 8];
        machine.peek(1, MEMORY_BASE, &mut bell).expect("memory");
        assert_eq!(bell, [0; 8]);
    }

    #[test]
    fn an_address_that_is_not_there_ends_it() {
        let plan = Plan {
            steps: vec![Step {
                deed: Deed::Load,
                address: window(60),
                pattern: Pattern::One,
                groups: 1,
                pause: 0,
            }],
            seed: 1,
        };
        let machine = ran(&plan, 0, 100_000);
        let hart = machine.hart(0).expect("a hart");
        assert_eq!(hart.csr(0x342), Some(5), "an access fault");
        assert!(hart.statistics().instructions < 400);
    }
}
