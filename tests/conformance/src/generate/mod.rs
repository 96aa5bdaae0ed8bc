//! The generators, one file per group of behaviour. The same category and seed always give the same program.

mod asynchronous;
mod atomic;
mod control;
mod csr;
mod float;
mod fuzz;
mod integer;
mod interrupt;
mod jumps;
mod memory;
mod paging;
mod pmp;
mod privilege;
mod selfmodify;
mod trap;

use crate::assembler::Assembler;
use crate::encode::Instruction;
use crate::layout::*;
use crate::program::{Category, Chunk, Program};
use crate::random::Random;

/// The program of a category and a seed.
#[must_use]
pub fn generate(category: Category, seed: u64) -> Program {
    let mut builder = Builder::new(Random::new(seed ^ (category as u64) << 48));
    match category {
        Category::Integer => integer::generate(&mut builder),
        Category::Memory => memory::generate(&mut builder),
        Category::Atomic => atomic::generate(&mut builder),
        Category::Float => float::generate(&mut builder),
        Category::Control => control::generate(&mut builder),
        Category::Jumps => jumps::generate(&mut builder),
        Category::Csr => csr::generate(&mut builder),
        Category::Trap => trap::generate(&mut builder),
        Category::Privilege => privilege::generate(&mut builder),
        Category::Interrupt => interrupt::generate(&mut builder),
        Category::Paging => paging::generate(&mut builder),
        Category::Pmp => pmp::generate(&mut builder),
        Category::Locked => pmp::generate_locked(&mut builder),
        Category::Asynchronous => asynchronous::generate(&mut builder),
        Category::SelfModify => selfmodify::generate(&mut builder),
        Category::Fuzz => fuzz::generate(&mut builder),
        Category::Compressed => fuzz::generate_compressed(&mut builder, seed),
    }
    Program {
        category,
        seed,
        chunks: builder.chunks,
        registers: builder.registers,
        data: builder.data,
        tables: builder.tables,
        alone: category == Category::Locked,
    }
}

/// Half of the data area: results are written below, operands read above.
const HALF: u64 = 4096;

/// A program under construction.
///
/// By convention `x2` is [`DATA`], `x8` the middle of the first half of the data area, `x9` that of the second; the programs
/// never write these, so that 12-bit offsets reach everything.
struct Builder {
    random: Random,
    chunks: Vec<Chunk>,
    registers: [u64; 64],
    data: Vec<u8>,
    tables: Vec<u8>,
    slot: u64,
}

/// Registers that the programs do not write.
fn kept(register: u32) -> bool {
    matches!(register, 2 | 8 | 9)
}

impl Builder {
    fn new(mut random: Random) -> Self {
        let mut registers = [0; 64];
        for (index, register) in registers.iter_mut().enumerate() {
            *register = if index < 32 {
                random.corner()
            } else {
                random.corner_float()
            };
        }
        registers[0] = 0;
        registers[2] = DATA;
        registers[8] = DATA + HALF / 2;
        registers[9] = DATA + HALF + HALF / 2;
        let mut data = vec![0; 2 * HALF as usize];
        for at in (HALF as usize..2 * HALF as usize).step_by(8) {
            let value = if at % 16 == 0 {
                random.corner()
            } else {
                random.corner_float()
            };
            data[at..at + 8].copy_from_slice(&value.to_le_bytes());
        }
        Self {
            random,
            chunks: Vec::new(),
            registers,
            data,
            tables: Vec::new(),
            slot: 0,
        }
    }

    /// Adds instructions that belong together.
    fn chunk(&mut self, write: impl FnOnce(&mut Assembler, &mut Random)) {
        self.add(false, write);
    }

    /// Adds instructions that all others need.
    fn fixed(&mut self, write: impl FnOnce(&mut Assembler, &mut Random)) {
        self.add(true, write);
    }

    fn add(&mut self, fixed: bool, write: impl FnOnce(&mut Assembler, &mut Random)) {
        let mut assembler = Assembler::new();
        write(&mut assembler, &mut self.random);
        self.chunks.push(Chunk {
            code: assembler.finish(),
            fixed,
        });
    }

    fn single(&mut self, instruction: Instruction) {
        self.chunks.push(Chunk {
            code: vec![instruction],
            fixed: false,
        });
    }

    /// The next place for a result, as an offset from `x8`; starts again when the area is full.
    fn slot(&mut self) -> i64 {
        self.slot = (self.slot + 8) % HALF;
        self.slot as i64 - HALF as i64 / 2
    }

    /// The offset from `x9` of some operand: even slots are integers, odd ones floating-point numbers.
    fn operand(&mut self, float: bool) -> i64 {
        (self.random.below(HALF / 16) * 16 + 8 * u64::from(float)) as i64 - HALF as i64 / 2
    }

    /// A register that may be written (also `x0`).
    fn target(&mut self) -> u32 {
        target(&mut self.random)
    }

    /// Any register to read.
    fn source(&mut self) -> u32 {
        self.random.below(32) as u32
    }
}

/// A register that may be written (also `x0`).
fn target(random: &mut Random) -> u32 {
    loop {
        let register = random.below(32) as u32;
        if !kept(register) {
            return register;
        }
    }
}

/// A register that may be written and holds what was written.
fn scratch(random: &mut Random) -> u32 {
    loop {
        let register = target(random);
        if register != 0 {
            return register;
        }
    }
}

/// Moves the data pointers to the alias at which the code itself runs (see [`ALIAS`]).
fn reload_pointers(a: &mut Assembler) {
    a.i("auipc", 2, 0, 0);
    a.i("srli", 2, 2, 17);
    a.i("slli", 2, 2, 17);
    a.i("lui", 8, 0, ((DATA - CODE) >> 12) as i64);
    a.r("add", 2, 2, 8);
    a.i("lui", 8, 0, 1);
    a.r("add", 9, 2, 8);
    a.i("addi", 8, 2, 1024);
    a.i("addi", 8, 8, 1024);
    a.i("addi", 9, 9, 1024);
    a.i("addi", 9, 9, 1024);
}

/// Continues in `mode` (0 user, 1 supervisor, 3 machine) through the machine-mode handler; `alias` is 0 or [`ALIAS`].
fn switch(a: &mut Assembler, mode: u64, alias: u64) {
    a.li(16, alias);
    a.li(17, SWITCH | mode);
    a.push(crate::encode::word(crate::encode::ECALL, "ecall"));
    reload_pointers(a);
}
