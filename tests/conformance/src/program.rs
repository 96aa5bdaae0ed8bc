//! A test program: independent chunks of code with initial registers, data and page tables.
//!
//! Chunks can be left out one by one, which makes a mismatch small enough to read.

use crate::assembler::{self, Assembler};
use crate::encode::{ECALL, Instruction, word};
use crate::layout::*;

/// What a program exercises.
#[derive(Clone, Copy, PartialEq, Eq, Debug, PartialOrd, Ord)]
pub enum Category {
    /// RV64IM and the compressed forms that compute.
    Integer,
    /// Loads and stores, aligned or not, compressed or not.
    Memory,
    /// A.
    Atomic,
    /// F and D.
    Float,
    /// Branches and jumps.
    Control,
    /// Jumps and branches of every length.
    Jumps,
    /// CSR instructions in machine mode.
    Csr,
    /// Exceptions in all modes, delegated or not.
    Trap,
    /// Privilege transitions, mstatus fields, WFI.
    Privilege,
    /// Interrupts.
    Interrupt,
    /// Sv39.
    Paging,
    /// Physical memory protection.
    Pmp,
    /// Locked entries of physical memory protection.
    Locked,
    /// Timer interrupts at any moment.
    Asynchronous,
    /// Self-modified code.
    SelfModify,
    /// Random words as instructions.
    Fuzz,
    /// All 16-bit words as instructions.
    Compressed,
}

impl Category {
    /// All categories.
    pub const ALL: [Self; 17] = [
        Self::Integer,
        Self::Memory,
        Self::Atomic,
        Self::Float,
        Self::Control,
        Self::Jumps,
        Self::Csr,
        Self::Trap,
        Self::Privilege,
        Self::Interrupt,
        Self::Paging,
        Self::Pmp,
        Self::Locked,
        Self::Asynchronous,
        Self::SelfModify,
        Self::Fuzz,
        Self::Compressed,
    ];

    /// The name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Integer => "integer",
            Self::Memory => "memory",
            Self::Atomic => "atomic",
            Self::Float => "float",
            Self::Control => "control",
            Self::Jumps => "jumps",
            Self::Csr => "csr",
            Self::Trap => "trap",
            Self::Privilege => "privilege",
            Self::Interrupt => "interrupt",
            Self::Paging => "paging",
            Self::Pmp => "pmp",
            Self::Locked => "locked",
            Self::Asynchronous => "asynchronous",
            Self::SelfModify => "selfmodify",
            Self::Fuzz => "fuzz",
            Self::Compressed => "compressed",
        }
    }

    /// The category of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|category| category.name() == name)
    }
}

/// Instructions that only make sense together.
#[derive(Clone, Debug)]
pub struct Chunk {
    /// The code, position independent.
    pub code: Vec<Instruction>,
    /// The other chunks depend on it: never left out.
    pub fixed: bool,
}

/// One test.
#[derive(Clone, Debug)]
pub struct Program {
    /// What it is about.
    pub category: Category,
    /// The number from which it was made.
    pub seed: u64,
    /// Code in order.
    pub chunks: Vec<Chunk>,
    /// x0 to x31, f0 to f31.
    pub registers: [u64; 64],
    /// Initial contents of the data area; a multiple of 8 bytes.
    pub data: Vec<u8>,
    /// Initial contents of the page tables; a multiple of 8 bytes.
    pub tables: Vec<u8>,
    /// It leaves something behind that only a reset clears: no other program may follow.
    pub alone: bool,
}

impl Program {
    /// All instructions, including those that end the test.
    #[must_use]
    pub fn instructions(&self) -> Vec<Instruction> {
        let mut code: Vec<Instruction> = self
            .chunks
            .iter()
            .flat_map(|chunk| chunk.code.iter().cloned())
            .collect();
        let mut end = Assembler::new();
        end.li(17, END);
        end.push(word(ECALL, "ecall"));
        code.extend(end.finish());
        code
    }

    /// The code's bytes, padded to a multiple of 8.
    #[must_use]
    pub fn code(&self) -> Vec<u8> {
        let mut bytes = assembler::bytes(&self.instructions());
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        assert!(
            bytes.len() as u64 <= CODE_BYTES,
            "the test's code is too long"
        );
        bytes
    }

    /// Addresses, bits and text of all instructions.
    #[must_use]
    pub fn listing(&self) -> String {
        let mut address = CODE;
        let mut text = String::new();
        for instruction in self.instructions() {
            let digits = usize::from(instruction.bytes) * 2;
            text += &format!(
                "  {address:#x}: {:>8}  {}\n",
                format!("{:0digits$x}", instruction.bits),
                instruction.text
            );
            address += u64::from(instruction.bytes);
        }
        text
    }

    /// The instruction at an address, where there is one.
    #[must_use]
    pub fn at(&self, address: u64) -> Option<Instruction> {
        let mut here = CODE;
        self.instructions().into_iter().find(|instruction| {
            let found = here == address & !ALIAS;
            here += u64::from(instruction.bytes);
            found
        })
    }

    /// A short name: category and seed.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{}:{}", self.category.name(), self.seed)
    }
}

/// The memory that a batch of programs starts with.
#[must_use]
pub fn image(programs: &[&Program]) -> (Vec<u8>, Vec<u64>) {
    let mut memory = vec![0; (IMAGES - DRAM) as usize];
    let runtime = crate::runtime::image();
    memory[..runtime.len()].copy_from_slice(&runtime);
    let mut descriptors = Vec::new();
    for program in programs {
        let code = program.code();
        let address = DRAM + memory.len() as u64;
        memory.extend_from_slice(&code);
        memory.extend_from_slice(&program.data);
        memory.extend_from_slice(&program.tables);
        let registers = DRAM + memory.len() as u64;
        memory.extend(program.registers.iter().flat_map(|r| r.to_le_bytes()));
        descriptors.push([
            code.len() as u64,
            address,
            program.data.len() as u64,
            program.tables.len() as u64,
            registers,
            0,
        ]);
    }
    let mut result = (DRAM + memory.len() as u64).next_multiple_of(64);
    let mut results = Vec::new();
    for (index, (descriptor, program)) in descriptors.iter_mut().zip(programs).enumerate() {
        descriptor[5] = result;
        results.push(result);
        result += result_bytes(program.data.len() as u64, program.tables.len() as u64);
        let at = (DIRECTORY - DRAM) as usize + index * DESCRIPTOR_WORDS as usize * 8;
        for (word, value) in descriptor.iter().enumerate() {
            memory[at + word * 8..at + word * 8 + 8].copy_from_slice(&value.to_le_bytes());
        }
    }
    assert!(result <= DRAM + DRAM_BYTES, "too many tests in a batch");
    (memory, results)
}
