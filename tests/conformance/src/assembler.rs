//! A small assembler: instructions in sequence, labels, and the few pseudo-instructions that the programs need.
//!
//! It exists because the tests must not depend on an external toolchain. It does not know what a test is.

use crate::encode::{self, Format, Instruction, Operands};

/// A place in the code, usable before it is bound.
#[derive(Clone, Copy, Debug)]
pub struct Label(usize);

#[derive(Clone, Debug)]
enum Fixup {
    Branch(&'static str, u32, u32),
    Jump(u32),
    Address(u32),
}

/// Code under construction, position independent.
#[derive(Clone, Debug, Default)]
pub struct Assembler {
    code: Vec<Instruction>,
    /// Byte offset of the next instruction.
    here: i64,
    labels: Vec<Option<i64>>,
    fixups: Vec<(usize, i64, Label, Fixup)>,
}

impl Assembler {
    /// Empty code.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends an instruction.
    pub fn push(&mut self, instruction: Instruction) {
        self.here += i64::from(instruction.bytes);
        self.code.push(instruction);
    }

    /// A fresh label.
    pub fn label(&mut self) -> Label {
        self.labels.push(None);
        Label(self.labels.len() - 1)
    }

    /// Binds a label to the next instruction.
    pub fn bind(&mut self, label: Label) {
        self.labels[label.0] = Some(self.here);
    }

    /// Bytes so far.
    #[must_use]
    pub fn here(&self) -> i64 {
        self.here
    }

    fn row(&mut self, name: &str, operands: Operands) {
        let row = encode::INTEGER
            .iter()
            .chain(encode::FLOAT)
            .find(|row| row.0 == name);
        let row = row.or_else(|| {
            encode::LOADS
                .iter()
                .chain(encode::STORES)
                .map(|(row, _)| row)
                .find(|row| row.0 == name)
        });
        let row = row.unwrap_or_else(|| panic!("no instruction {name}"));
        self.push(encode::encode(*row, operands));
    }

    /// An instruction with rd, rs1, rs2.
    pub fn r(&mut self, name: &str, rd: u32, rs1: u32, rs2: u32) {
        self.row(
            name,
            Operands {
                rd,
                rs1,
                rs2,
                ..Operands::default()
            },
        );
    }

    /// An instruction with rd, rs1, immediate.
    pub fn i(&mut self, name: &str, rd: u32, rs1: u32, imm: i64) {
        self.row(
            name,
            Operands {
                rd,
                rs1,
                imm,
                ..Operands::default()
            },
        );
    }

    /// A load, or a store of `register`.
    pub fn memory(&mut self, name: &str, register: u32, offset: i64, base: u32) {
        self.row(
            name,
            Operands {
                rd: register,
                rs1: base,
                rs2: register,
                imm: offset,
                ..Operands::default()
            },
        );
    }

    /// A CSR instruction on a register: `csrrw`, `csrrs` or `csrrc`.
    pub fn csr(&mut self, name: &str, rd: u32, csr: u32, rs1: u32) {
        let funct3 = match name {
            "csrrw" => 1,
            "csrrs" => 2,
            "csrrc" => 3,
            "csrrwi" => 5,
            "csrrsi" => 6,
            "csrrci" => 7,
            _ => panic!("no instruction {name}"),
        };
        self.push(encode::csr(funct3, rd, csr, rs1));
    }

    /// A branch to a label.
    pub fn branch(&mut self, name: &'static str, rs1: u32, rs2: u32, label: Label) {
        self.fixups.push((
            self.code.len(),
            self.here,
            label,
            Fixup::Branch(name, rs1, rs2),
        ));
        self.push(encode::word(0, ""));
    }

    /// `jal rd, label`.
    pub fn jump(&mut self, rd: u32, label: Label) {
        self.fixups
            .push((self.code.len(), self.here, label, Fixup::Jump(rd)));
        self.push(encode::word(0, ""));
    }

    /// The address of a label within two kilobytes, by `auipc` and `addi`.
    pub fn address(&mut self, rd: u32, label: Label) {
        self.i("auipc", rd, 0, 0);
        self.fixups
            .push((self.code.len(), self.here, label, Fixup::Address(rd)));
        self.push(encode::word(0, ""));
    }

    /// Any constant.
    pub fn li(&mut self, rd: u32, value: u64) {
        let value = value as i64;
        let low = value << 52 >> 52;
        if value == low {
            self.i("addi", rd, 0, low);
        } else if i64::from(value as i32) == value {
            self.i("lui", rd, 0, (value - low) >> 12 & 0xf_ffff);
            if low != 0 {
                self.i("addiw", rd, rd, low);
            }
        } else {
            let high = value.wrapping_sub(low) >> 12;
            let zeros = high.trailing_zeros();
            self.li(rd, (high >> zeros) as u64);
            self.i("slli", rd, rd, i64::from(zeros) + 12);
            if low != 0 {
                self.i("addi", rd, rd, low);
            }
        }
    }

    /// Resolves the labels.
    ///
    /// # Panics
    /// If a label is not bound: a mistake in the caller's code.
    #[must_use]
    pub fn finish(mut self) -> Vec<Instruction> {
        for (index, at, label, fixup) in self.fixups {
            let offset = self.labels[label.0].expect("every label is bound") - at;
            self.code[index] = match fixup {
                Fixup::Branch(name, rs1, rs2) => {
                    let row = encode::BRANCHES
                        .iter()
                        .find(|row| row.0 == name)
                        .expect("a branch");
                    encode::branch(*row, rs1, rs2, offset)
                }
                Fixup::Jump(rd) => encode::jal(rd, offset),
                Fixup::Address(rd) => {
                    let operands = Operands {
                        rd,
                        rs1: rd,
                        imm: offset + 4,
                        ..Operands::default()
                    };
                    encode::encode(("addi", 0x13, Format::I), operands)
                }
            };
        }
        self.code
    }
}

/// The bytes of the code.
#[must_use]
pub fn bytes(code: &[Instruction]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for instruction in code {
        bytes.extend_from_slice(&instruction.bits.to_le_bytes()[..usize::from(instruction.bytes)]);
    }
    bytes
}
