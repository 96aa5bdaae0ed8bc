//! Decoded operations: the one form in which instructions are executed and timed.
//!
//! Each extension has a file that turns its encodings into [`Op`]s and holds the semantics that need more than one
//! expression. Timing models look at an operation's registers and unit only; they never see an encoding.

pub mod a;
pub mod c;
pub mod float;
pub mod integer;
pub mod m;
pub mod rv64i;
pub mod system;
pub mod zicbo;
pub mod zicsr;
pub mod zifencei;

pub(crate) use integer::integer_operations;

/// Register number that replaces `x0` as a destination: writes go to a cell that is never read.
pub const SINK: u8 = 32;

/// The kind of an operation. The operands are in [`Op`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
#[allow(missing_docs)] // The names are the instructions' names.
pub enum Kind {
    // RV64I
    Lui,
    Auipc,
    Jal,
    Jalr,
    Beq,
    Bne,
    Blt,
    Bge,
    Bltu,
    Bgeu,
    Lb,
    Lh,
    Lw,
    Ld,
    Lbu,
    Lhu,
    Lwu,
    Sb,
    Sh,
    Sw,
    Sd,
    Addi,
    Slti,
    Sltiu,
    Xori,
    Ori,
    Andi,
    Slli,
    Srli,
    Srai,
    Add,
    Sub,
    Sll,
    Slt,
    Sltu,
    Xor,
    Srl,
    Sra,
    Or,
    And,
    Addiw,
    Slliw,
    Srliw,
    Sraiw,
    Addw,
    Subw,
    Sllw,
    Srlw,
    Sraw,
    Fence,
    Marker,
    // Zicbom, Zicboz: `imm` says which; Zicbop: `imm` is the hint's
    CacheBlock,
    Prefetch,
    // M
    Mul,
    Mulh,
    Mulhsu,
    Mulhu,
    Div,
    Divu,
    Rem,
    Remu,
    Mulw,
    Divw,
    Divuw,
    Remw,
    Remuw,
    // A: `imm` holds the function
    Lr,
    Sc,
    Amo,
    // F and D: `imm` holds a `float::Code`
    Flw,
    Fld,
    Fsw,
    Fsd,
    /// rd, rs1, rs2 (and rs3 inside `imm`) are FP registers.
    FpArithmetic,
    /// FP registers to an integer register.
    FpToInteger,
    /// An integer register to an FP register.
    FpFromInteger,
    // Zifencei, Zicsr, privileged; all end a block
    FenceI,
    Csrrw,
    Csrrs,
    Csrrc,
    Csrrwi,
    Csrrsi,
    Csrrci,
    Ecall,
    Ebreak,
    Mret,
    Sret,
    Wfi,
    SfenceVma,
    /// `imm` holds the bits of the instruction.
    Illegal,
}

/// The functional unit that executes an operation; it decides the latency.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// One cycle.
    Alu,
    /// Loads and atomics.
    Load,
    /// Integer multiplier.
    Multiply,
    /// Integer divider, not pipelined.
    Divide,
    /// FP adder and everything simple.
    FpAdd,
    /// FP multiplier.
    FpMultiply,
    /// Fused multiply-add.
    FpFma,
    /// FP divider, not pipelined.
    FpDivide,
    /// FP square root, not pipelined.
    FpSqrt,
}

/// A decoded operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct Op {
    /// Its kind.
    pub kind: Kind,
    /// Destination; [`SINK`] instead of `x0`.
    pub rd: u8,
    /// First source.
    pub rs1: u8,
    /// Second source, or the function of an atomic.
    pub rs2: u8,
    /// Sign-extended immediate or operation-specific details.
    pub imm: i32,
    /// Cycles from the start of the block to the issue if everything hits.
    pub cycle: u16,
    /// Bytes from the start of the block.
    pub offset: u8,
    /// Bytes of the instruction: 2 or 4.
    pub length: u8,
    /// What it waits for in order: the registers that it reads or writes ([`Op::masks`]), and the dividers if it needs one.
    pub registers: u64,
}

/// The bit of an integer register ([`Op::masks`]).
#[inline]
fn integer_bit(register: u8) -> u64 {
    if register == 0 || register >= 32 {
        0
    } else {
        1 << register
    }
}

/// The bit of an FP register.
#[inline]
fn float_bit(register: u8) -> u64 {
    1 << (32 + (register & 31))
}

impl Op {
    /// An operation with its operands; [`SINK`] replaces `x0` where the destination is an integer register.
    pub const fn new(kind: Kind, rd: u32, rs1: u32, rs2: u32, imm: i32) -> Self {
        Self {
            kind,
            rd: rd as u8,
            rs1: rs1 as u8,
            rs2: rs2 as u8,
            imm,
            cycle: 0,
            offset: 0,
            length: 4,
            registers: 0,
        }
    }

    const fn illegal(bits: u32) -> Self {
        Self::new(Kind::Illegal, SINK as u32, 0, 0, bits as i32)
    }

    /// Whether the block ends after this operation.
    pub fn ends_block(&self) -> bool {
        use Kind::*;
        matches!(self.kind, Jal | Jalr | Beq | Bne | Blt | Bge | Bltu | Bgeu)
            || self.kind as u8 >= FenceI as u8
    }

    /// Registers read and written as bits: 0 to 31 integer (bit 0 never set), 32 to 63 FP.
    pub fn masks(&self) -> (u64, u64) {
        use Kind::*;
        let (x, f) = (integer_bit, float_bit);
        match self.kind {
            Lui | Auipc | Jal => (0, x(self.rd)),
            Beq | Bne | Blt | Bge | Bltu | Bgeu | Sb | Sh | Sw | Sd => {
                (x(self.rs1) | x(self.rs2), 0)
            }
            Lb | Lh | Lw | Ld | Lbu | Lhu | Lwu | Flw | Fld => {
                (x(self.rs1), self.load_destination())
            }
            Fsw | Fsd => (x(self.rs1) | f(self.rs2), 0),
            FpArithmetic => (float::sources(self), f(self.rd)),
            FpToInteger => (float::sources(self), x(self.rd)),
            FpFromInteger => (x(self.rs1), f(self.rd)),
            Fence | FenceI | Ecall | Ebreak | Mret | Sret | Wfi | Illegal => (0, 0),
            Csrrwi | Csrrsi | Csrrci => (0, x(self.rd)),
            SfenceVma => (x(self.rs1) | x(self.rs2), 0),
            CacheBlock | Prefetch | Marker => (x(self.rs1), 0),
            Jalr | Lr | Csrrw | Csrrs | Csrrc => (x(self.rs1), x(self.rd)),
            Addi | Slti | Sltiu | Xori | Ori | Andi | Slli | Srli | Srai | Addiw | Slliw
            | Srliw | Sraiw => (x(self.rs1), x(self.rd)),
            _ => (x(self.rs1) | x(self.rs2), x(self.rd)),
        }
    }

    /// The register that a load writes ([`Self::masks`]).
    #[inline]
    pub fn load_destination(&self) -> u64 {
        match self.kind {
            Kind::Flw | Kind::Fld => float_bit(self.rd),
            _ => integer_bit(self.rd),
        }
    }

    /// The unit that decides the latency of the result.
    pub fn unit(&self) -> Unit {
        use Kind::*;
        match self.kind {
            Lb | Lh | Lw | Ld | Lbu | Lhu | Lwu | Lr | Sc | Amo | Flw | Fld => Unit::Load,
            Mul | Mulh | Mulhsu | Mulhu | Mulw => Unit::Multiply,
            Div | Divu | Rem | Remu | Divw | Divuw | Remw | Remuw => Unit::Divide,
            FpArithmetic | FpToInteger | FpFromInteger => float::unit(self),
            _ => Unit::Alu,
        }
    }
}

/// Fields of a 32-bit encoding.
pub(crate) mod field {
    pub const fn bits(word: u32, low: u32, count: u32) -> u32 {
        (word >> low) & ((1 << count) - 1)
    }
    pub const fn rd(word: u32) -> u32 {
        bits(word, 7, 5)
    }
    /// Destination in the integer file; the sink replaces `x0`.
    pub const fn rd_or_sink(word: u32) -> u32 {
        let rd = rd(word);
        if rd == 0 { super::SINK as u32 } else { rd }
    }
    pub const fn rs1(word: u32) -> u32 {
        bits(word, 15, 5)
    }
    pub const fn rs2(word: u32) -> u32 {
        bits(word, 20, 5)
    }
    pub const fn funct3(word: u32) -> u32 {
        bits(word, 12, 3)
    }
    pub const fn funct7(word: u32) -> u32 {
        word >> 25
    }
    pub const fn imm_i(word: u32) -> i32 {
        word as i32 >> 20
    }
    pub const fn imm_s(word: u32) -> i32 {
        ((word as i32 >> 25) << 5) | bits(word, 7, 5) as i32
    }
    pub const fn imm_b(word: u32) -> i32 {
        ((word as i32 >> 31) << 12)
            | (bits(word, 7, 1) << 11) as i32
            | (bits(word, 25, 6) << 5) as i32
            | (bits(word, 8, 4) << 1) as i32
    }
    pub const fn imm_u(word: u32) -> i32 {
        (word & 0xffff_f000) as i32
    }
    pub const fn imm_j(word: u32) -> i32 {
        ((word as i32 >> 31) << 20)
            | (bits(word, 12, 8) << 12) as i32
            | (bits(word, 20, 1) << 11) as i32
            | (bits(word, 21, 10) << 1) as i32
    }
}

/// Decodes the instruction whose first half-word is the low half of `bits`. A compressed instruction uses the low half only. Never
/// fails: invalid bits become [`Kind::Illegal`], which keeps them for `xtval`.
pub fn decode(bits: u32) -> Op {
    if bits & 3 != 3 {
        let mut op = match c::expand(bits as u16) {
            Some(word) => decode_word(word).unwrap_or_else(|| Op::illegal(bits & 0xffff)),
            None => Op::illegal(bits & 0xffff),
        };
        if op.kind == Kind::Illegal {
            op.imm = (bits & 0xffff) as i32;
        }
        op.length = 2;
        return op;
    }
    decode_word(bits).unwrap_or_else(|| Op::illegal(bits))
}

fn decode_word(word: u32) -> Option<Op> {
    match word & 0x7f {
        0x33 | 0x3b if field::funct7(word) == 1 => m::decode(word),
        0x2f => a::decode(word),
        0x07 | 0x27 | 0x43 | 0x47 | 0x4b | 0x4f | 0x53 => float::decode(word),
        0x0f if field::funct3(word) == 1 => zifencei::decode(word),
        0x0f if field::funct3(word) == 2 => zicbo::decode(word),
        0x73 if field::funct3(word) != 0 => zicsr::decode(word),
        0x73 => system::decode(word),
        _ => rv64i::decode(word),
    }
}
