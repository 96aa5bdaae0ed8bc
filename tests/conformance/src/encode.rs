//! Instruction encodings of RV64GC with Zicsr and Zifencei, from the tables of "The RISC-V Instruction Set Manual".
//!
//! This is the test's own copy of the encodings, written without reference to the machine's decoder, so that a wrong bit there
//! is not repeated here. It knows how instructions are encoded and printed, not what they do.

use crate::random::Random;

/// An encoded instruction: its bits, its length in bytes, its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// The encoding; only the low 16 bits if `bytes` is 2.
    pub bits: u32,
    /// 2 or 4.
    pub bytes: u8,
    /// Assembly text, for readers of a mismatch.
    pub text: String,
}

/// Which operands an instruction has, and where.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// rd, rs1, rs2.
    R,
    /// rd, rs1, 12-bit immediate.
    I,
    /// rd, rs1, 6-bit shift amount.
    Shift,
    /// rd, rs1, 5-bit shift amount.
    ShiftWord,
    /// rd, 20-bit immediate.
    U,
    /// rd, offset(rs1).
    Load,
    /// rs2, offset(rs1).
    Store,
    /// rd, rs2, (rs1), with aq and rl.
    Atomic,
    /// rd, (rs1), with aq and rl.
    LoadReserved,
    /// f rd, offset(rs1).
    FloatLoad,
    /// f rs2, offset(rs1).
    FloatStore,
    /// f rd, f rs1, f rs2, rm.
    FloatRounded,
    /// f rd, f rs1, f rs2, f rs3, rm.
    FloatFused,
    /// f rd, f rs1, rm.
    FloatUnary,
    /// f rd, f rs1, f rs2.
    FloatPlain,
    /// rd, f rs1, f rs2.
    FloatCompare,
    /// rd, f rs1, rm.
    FloatToInteger,
    /// f rd, rs1, rm.
    IntegerToFloat,
    /// rd, f rs1.
    FloatMove,
    /// f rd, rs1.
    FloatMoveBack,
}

/// A row of the tables: name, fixed bits, operands.
pub type Row = (&'static str, u32, Format);

/// RV64I without jumps, branches, memory and system instructions, and M.
pub const INTEGER: &[Row] = &[
    ("lui", 0x0000_0037, Format::U),
    ("auipc", 0x0000_0017, Format::U),
    ("addi", 0x0000_0013, Format::I),
    ("slti", 0x0000_2013, Format::I),
    ("sltiu", 0x0000_3013, Format::I),
    ("xori", 0x0000_4013, Format::I),
    ("ori", 0x0000_6013, Format::I),
    ("andi", 0x0000_7013, Format::I),
    ("slli", 0x0000_1013, Format::Shift),
    ("srli", 0x0000_5013, Format::Shift),
    ("srai", 0x4000_5013, Format::Shift),
    ("add", 0x0000_0033, Format::R),
    ("sub", 0x4000_0033, Format::R),
    ("sll", 0x0000_1033, Format::R),
    ("slt", 0x0000_2033, Format::R),
    ("sltu", 0x0000_3033, Format::R),
    ("xor", 0x0000_4033, Format::R),
    ("srl", 0x0000_5033, Format::R),
    ("sra", 0x4000_5033, Format::R),
    ("or", 0x0000_6033, Format::R),
    ("and", 0x0000_7033, Format::R),
    ("addiw", 0x0000_001b, Format::I),
    ("slliw", 0x0000_101b, Format::ShiftWord),
    ("srliw", 0x0000_501b, Format::ShiftWord),
    ("sraiw", 0x4000_501b, Format::ShiftWord),
    ("addw", 0x0000_003b, Format::R),
    ("subw", 0x4000_003b, Format::R),
    ("sllw", 0x0000_103b, Format::R),
    ("srlw", 0x0000_503b, Format::R),
    ("sraw", 0x4000_503b, Format::R),
    ("mul", 0x0200_0033, Format::R),
    ("mulh", 0x0200_1033, Format::R),
    ("mulhsu", 0x0200_2033, Format::R),
    ("mulhu", 0x0200_3033, Format::R),
    ("div", 0x0200_4033, Format::R),
    ("divu", 0x0200_5033, Format::R),
    ("rem", 0x0200_6033, Format::R),
    ("remu", 0x0200_7033, Format::R),
    ("mulw", 0x0200_003b, Format::R),
    ("divw", 0x0200_403b, Format::R),
    ("divuw", 0x0200_503b, Format::R),
    ("remw", 0x0200_603b, Format::R),
    ("remuw", 0x0200_703b, Format::R),
];

/// Loads with their access size in bytes.
pub const LOADS: &[(Row, u32)] = &[
    (("lb", 0x0000_0003, Format::Load), 1),
    (("lh", 0x0000_1003, Format::Load), 2),
    (("lw", 0x0000_2003, Format::Load), 4),
    (("ld", 0x0000_3003, Format::Load), 8),
    (("lbu", 0x0000_4003, Format::Load), 1),
    (("lhu", 0x0000_5003, Format::Load), 2),
    (("lwu", 0x0000_6003, Format::Load), 4),
    (("flw", 0x0000_2007, Format::FloatLoad), 4),
    (("fld", 0x0000_3007, Format::FloatLoad), 8),
];

/// Stores with their access size in bytes.
pub const STORES: &[(Row, u32)] = &[
    (("sb", 0x0000_0023, Format::Store), 1),
    (("sh", 0x0000_1023, Format::Store), 2),
    (("sw", 0x0000_2023, Format::Store), 4),
    (("sd", 0x0000_3023, Format::Store), 8),
    (("fsw", 0x0000_2027, Format::FloatStore), 4),
    (("fsd", 0x0000_3027, Format::FloatStore), 8),
];

/// A: bits of the 32-bit form; the 64-bit form has funct3 3 instead of 2.
pub const ATOMICS: &[Row] = &[
    ("amoadd", 0x0000_202f, Format::Atomic),
    ("amoswap", 0x0800_202f, Format::Atomic),
    ("amoxor", 0x2000_202f, Format::Atomic),
    ("amoand", 0x6000_202f, Format::Atomic),
    ("amoor", 0x4000_202f, Format::Atomic),
    ("amomin", 0x8000_202f, Format::Atomic),
    ("amomax", 0xa000_202f, Format::Atomic),
    ("amominu", 0xc000_202f, Format::Atomic),
    ("amomaxu", 0xe000_202f, Format::Atomic),
];

/// Load-reserved and store-conditional, 32-bit forms.
pub const LR: u32 = 0x1000_202f;
/// See [`LR`].
pub const SC: u32 = 0x1800_202f;

/// F and D without loads and stores.
pub const FLOAT: &[Row] = &[
    ("fmadd.s", 0x0000_0043, Format::FloatFused),
    ("fmsub.s", 0x0000_0047, Format::FloatFused),
    ("fnmsub.s", 0x0000_004b, Format::FloatFused),
    ("fnmadd.s", 0x0000_004f, Format::FloatFused),
    ("fadd.s", 0x0000_0053, Format::FloatRounded),
    ("fsub.s", 0x0800_0053, Format::FloatRounded),
    ("fmul.s", 0x1000_0053, Format::FloatRounded),
    ("fdiv.s", 0x1800_0053, Format::FloatRounded),
    ("fsqrt.s", 0x5800_0053, Format::FloatUnary),
    ("fsgnj.s", 0x2000_0053, Format::FloatPlain),
    ("fsgnjn.s", 0x2000_1053, Format::FloatPlain),
    ("fsgnjx.s", 0x2000_2053, Format::FloatPlain),
    ("fmin.s", 0x2800_0053, Format::FloatPlain),
    ("fmax.s", 0x2800_1053, Format::FloatPlain),
    ("fle.s", 0xa000_0053, Format::FloatCompare),
    ("flt.s", 0xa000_1053, Format::FloatCompare),
    ("feq.s", 0xa000_2053, Format::FloatCompare),
    ("fcvt.w.s", 0xc000_0053, Format::FloatToInteger),
    ("fcvt.wu.s", 0xc010_0053, Format::FloatToInteger),
    ("fcvt.l.s", 0xc020_0053, Format::FloatToInteger),
    ("fcvt.lu.s", 0xc030_0053, Format::FloatToInteger),
    ("fcvt.s.w", 0xd000_0053, Format::IntegerToFloat),
    ("fcvt.s.wu", 0xd010_0053, Format::IntegerToFloat),
    ("fcvt.s.l", 0xd020_0053, Format::IntegerToFloat),
    ("fcvt.s.lu", 0xd030_0053, Format::IntegerToFloat),
    ("fmv.x.w", 0xe000_0053, Format::FloatMove),
    ("fclass.s", 0xe000_1053, Format::FloatMove),
    ("fmv.w.x", 0xf000_0053, Format::FloatMoveBack),
    ("fmadd.d", 0x0200_0043, Format::FloatFused),
    ("fmsub.d", 0x0200_0047, Format::FloatFused),
    ("fnmsub.d", 0x0200_004b, Format::FloatFused),
    ("fnmadd.d", 0x0200_004f, Format::FloatFused),
    ("fadd.d", 0x0200_0053, Format::FloatRounded),
    ("fsub.d", 0x0a00_0053, Format::FloatRounded),
    ("fmul.d", 0x1200_0053, Format::FloatRounded),
    ("fdiv.d", 0x1a00_0053, Format::FloatRounded),
    ("fsqrt.d", 0x5a00_0053, Format::FloatUnary),
    ("fsgnj.d", 0x2200_0053, Format::FloatPlain),
    ("fsgnjn.d", 0x2200_1053, Format::FloatPlain),
    ("fsgnjx.d", 0x2200_2053, Format::FloatPlain),
    ("fmin.d", 0x2a00_0053, Format::FloatPlain),
    ("fmax.d", 0x2a00_1053, Format::FloatPlain),
    ("fle.d", 0xa200_0053, Format::FloatCompare),
    ("flt.d", 0xa200_1053, Format::FloatCompare),
    ("feq.d", 0xa200_2053, Format::FloatCompare),
    ("fcvt.s.d", 0x4010_0053, Format::FloatUnary),
    ("fcvt.d.s", 0x4200_0053, Format::FloatUnary),
    ("fcvt.w.d", 0xc200_0053, Format::FloatToInteger),
    ("fcvt.wu.d", 0xc210_0053, Format::FloatToInteger),
    ("fcvt.l.d", 0xc220_0053, Format::FloatToInteger),
    ("fcvt.lu.d", 0xc230_0053, Format::FloatToInteger),
    ("fcvt.d.w", 0xd200_0053, Format::IntegerToFloat),
    ("fcvt.d.wu", 0xd210_0053, Format::IntegerToFloat),
    ("fcvt.d.l", 0xd220_0053, Format::IntegerToFloat),
    ("fcvt.d.lu", 0xd230_0053, Format::IntegerToFloat),
    ("fmv.x.d", 0xe200_0053, Format::FloatMove),
    ("fclass.d", 0xe200_1053, Format::FloatMove),
    ("fmv.d.x", 0xf200_0053, Format::FloatMoveBack),
];

/// Branches: name and bits.
pub const BRANCHES: &[(&str, u32)] = &[
    ("beq", 0x0063),
    ("bne", 0x1063),
    ("blt", 0x4063),
    ("bge", 0x5063),
    ("bltu", 0x6063),
    ("bgeu", 0x7063),
];

/// Operands of an instruction; each format uses some of them.
#[derive(Clone, Copy, Default, Debug)]
pub struct Operands {
    /// Destination register.
    pub rd: u32,
    /// First source register.
    pub rs1: u32,
    /// Second source register.
    pub rs2: u32,
    /// Third source register.
    pub rs3: u32,
    /// Immediate, offset or shift amount.
    pub imm: i64,
    /// Rounding mode; for atomics aq (2) and rl (1).
    pub mode: u32,
}

fn low(value: i64, bits: u32) -> u32 {
    (value as u32) & ((1 << bits) - 1)
}

fn store_offset(offset: i64) -> u32 {
    let offset = low(offset, 12);
    (offset >> 5) << 25 | (offset & 31) << 7
}

const MODES: [&str; 8] = ["rne", "rtz", "rdn", "rup", "rmm", "rm5", "rm6", "dyn"];

/// Encodes a row of the tables.
#[must_use]
pub fn encode(row: Row, o: Operands) -> Instruction {
    let (name, bits, format) = row;
    let (rd, rs1, rs2) = (o.rd << 7, o.rs1 << 15, o.rs2 << 20);
    let mode = MODES[o.mode as usize & 7];
    let (d, a, b, c, imm) = (o.rd, o.rs1, o.rs2, o.rs3, o.imm);
    let (fields, text) = match format {
        Format::R => (rd | rs1 | rs2, format!("x{d}, x{a}, x{b}")),
        Format::I => (rd | rs1 | low(imm, 12) << 20, format!("x{d}, x{a}, {imm}")),
        Format::Shift => (rd | rs1 | low(imm, 6) << 20, format!("x{d}, x{a}, {imm}")),
        Format::ShiftWord => (rd | rs1 | low(imm, 5) << 20, format!("x{d}, x{a}, {imm}")),
        Format::U => (rd | low(imm, 20) << 12, format!("x{d}, {imm:#x}")),
        Format::Load => (rd | rs1 | low(imm, 12) << 20, format!("x{d}, {imm}(x{a})")),
        Format::FloatLoad => (rd | rs1 | low(imm, 12) << 20, format!("f{d}, {imm}(x{a})")),
        Format::Store => (rs1 | rs2 | store_offset(imm), format!("x{b}, {imm}(x{a})")),
        Format::FloatStore => (rs1 | rs2 | store_offset(imm), format!("f{b}, {imm}(x{a})")),
        Format::Atomic => (
            rd | rs1 | rs2 | (o.mode & 3) << 25,
            format!("x{d}, x{b}, (x{a})"),
        ),
        Format::LoadReserved => (rd | rs1 | (o.mode & 3) << 25, format!("x{d}, (x{a})")),
        Format::FloatRounded => (
            rd | rs1 | rs2 | o.mode << 12,
            format!("f{d}, f{a}, f{b}, {mode}"),
        ),
        Format::FloatFused => (
            rd | rs1 | rs2 | o.rs3 << 27 | o.mode << 12,
            format!("f{d}, f{a}, f{b}, f{c}, {mode}"),
        ),
        Format::FloatUnary => (rd | rs1 | o.mode << 12, format!("f{d}, f{a}, {mode}")),
        Format::FloatPlain => (rd | rs1 | rs2, format!("f{d}, f{a}, f{b}")),
        Format::FloatCompare => (rd | rs1 | rs2, format!("x{d}, f{a}, f{b}")),
        Format::FloatToInteger => (rd | rs1 | o.mode << 12, format!("x{d}, f{a}, {mode}")),
        Format::IntegerToFloat => (rd | rs1 | o.mode << 12, format!("f{d}, x{a}, {mode}")),
        Format::FloatMove => (rd | rs1, format!("x{d}, f{a}")),
        Format::FloatMoveBack => (rd | rs1, format!("f{d}, x{a}")),
    };
    Instruction {
        bits: bits | fields,
        bytes: 4,
        text: format!("{name} {text}"),
    }
}

/// An atomic instruction of 4 or 8 bytes.
#[must_use]
pub fn atomic(row: Row, bytes: u32, o: Operands) -> Instruction {
    let mut instruction = encode(row, o);
    instruction.bits |= u32::from(bytes == 8) << 12;
    let suffix = if bytes == 8 { ".d" } else { ".w" };
    instruction.text = instruction.text.replacen(' ', &format!("{suffix} "), 1);
    instruction
}

/// A branch by `offset` bytes (even, 13 bits).
#[must_use]
pub fn branch(row: (&str, u32), rs1: u32, rs2: u32, offset: i64) -> Instruction {
    let o = low(offset, 13);
    let bits = (o >> 12) << 31 | (o >> 5 & 63) << 25 | (o >> 1 & 15) << 8 | (o >> 11 & 1) << 7;
    Instruction {
        bits: row.1 | bits | rs1 << 15 | rs2 << 20,
        bytes: 4,
        text: format!("{} x{rs1}, x{rs2}, .{offset:+}", row.0),
    }
}

/// A jump by `offset` bytes (even, 21 bits).
#[must_use]
pub fn jal(rd: u32, offset: i64) -> Instruction {
    let o = low(offset, 21);
    let bits =
        (o >> 20) << 31 | (o >> 1 & 0x3ff) << 21 | (o >> 11 & 1) << 20 | (o >> 12 & 0xff) << 12;
    Instruction {
        bits: 0x6f | bits | rd << 7,
        bytes: 4,
        text: format!("jal x{rd}, .{offset:+}"),
    }
}

/// An indirect jump.
#[must_use]
pub fn jalr(rd: u32, rs1: u32, offset: i64) -> Instruction {
    Instruction {
        bits: 0x67 | rd << 7 | rs1 << 15 | low(offset, 12) << 20,
        bytes: 4,
        text: format!("jalr x{rd}, {offset}(x{rs1})"),
    }
}

/// A CSR instruction: `funct3` 1 to 3 (register) or 5 to 7 (immediate).
#[must_use]
pub fn csr(funct3: u32, rd: u32, csr: u32, source: u32) -> Instruction {
    const NAMES: [&str; 8] = [
        "?", "csrrw", "csrrs", "csrrc", "?", "csrrwi", "csrrsi", "csrrci",
    ];
    let prefix = if funct3 < 4 { "x" } else { "" };
    Instruction {
        bits: 0x73 | funct3 << 12 | rd << 7 | source << 15 | csr << 20,
        bytes: 4,
        text: format!(
            "{} x{rd}, {csr:#x}, {prefix}{source}",
            NAMES[funct3 as usize & 7]
        ),
    }
}

/// A 32-bit word without operands of its own.
#[must_use]
pub fn word(bits: u32, text: &str) -> Instruction {
    Instruction {
        bits,
        bytes: 4,
        text: text.to_owned(),
    }
}

/// A 16-bit word.
#[must_use]
pub fn half(bits: u32, text: String) -> Instruction {
    Instruction {
        bits: bits & 0xffff,
        bytes: 2,
        text,
    }
}

/// `ecall`.
pub const ECALL: u32 = 0x0000_0073;
/// `ebreak`.
pub const EBREAK: u32 = 0x0010_0073;
/// `sret`.
pub const SRET: u32 = 0x1020_0073;
/// `mret`.
pub const MRET: u32 = 0x3020_0073;
/// `wfi`.
pub const WFI: u32 = 0x1050_0073;
/// `fence.i`.
pub const FENCE_I: u32 = 0x0000_100f;
/// `fence rw, rw`.
pub const FENCE: u32 = 0x0330_000f;
/// `sfence.vma x0, x0`; rs1 and rs2 may be ORed in.
pub const SFENCE: u32 = 0x1200_0073;

/// Takes the bits of `value` from `from` and puts them at `to`.
fn bits(value: i64, from: u32, count: u32, to: u32) -> u32 {
    ((value >> from) as u32 & ((1 << count) - 1)) << to
}

/// A random compressed instruction that only computes; it writes no register for which `keep` is true.
#[must_use]
pub fn compressed_integer(random: &mut Random, keep: &dyn Fn(u32) -> bool) -> Instruction {
    let full = |random: &mut Random| loop {
        let r = random.range(1, 31) as u32;
        if !keep(r) {
            return r;
        }
    };
    let small = |random: &mut Random| loop {
        let r = random.range(8, 15) as u32;
        if !keep(r) {
            return r;
        }
    };
    let imm = random.range(-32, 31);
    let amount = random.range(1, 63);
    match random.below(12) {
        0 => {
            let rd = full(random);
            half(
                0x0001 | bits(imm, 5, 1, 12) | rd << 7 | bits(imm, 0, 5, 2),
                format!("c.addi x{rd}, {imm}"),
            )
        }
        1 => {
            let rd = full(random);
            half(
                0x2001 | bits(imm, 5, 1, 12) | rd << 7 | bits(imm, 0, 5, 2),
                format!("c.addiw x{rd}, {imm}"),
            )
        }
        2 => {
            let rd = full(random);
            half(
                0x4001 | bits(imm, 5, 1, 12) | rd << 7 | bits(imm, 0, 5, 2),
                format!("c.li x{rd}, {imm}"),
            )
        }
        3 => {
            let rd = loop {
                let rd = full(random);
                if rd != 2 {
                    break rd;
                }
            };
            let imm = if imm == 0 { 1 } else { imm };
            half(
                0x6001 | bits(imm, 5, 1, 12) | rd << 7 | bits(imm, 0, 5, 2),
                format!("c.lui x{rd}, {imm}"),
            )
        }
        4 => {
            let rd = small(random);
            let (op, name) = *random.pick(&[(0x8001, "c.srli"), (0x8401, "c.srai")]);
            half(
                op | bits(amount, 5, 1, 12) | (rd - 8) << 7 | bits(amount, 0, 5, 2),
                format!("{name} x{rd}, {amount}"),
            )
        }
        5 => {
            let rd = small(random);
            half(
                0x8801 | bits(imm, 5, 1, 12) | (rd - 8) << 7 | bits(imm, 0, 5, 2),
                format!("c.andi x{rd}, {imm}"),
            )
        }
        6 | 7 => {
            let (rd, rs) = (small(random), random.range(8, 15) as u32);
            let (op, name) = *random.pick(&[
                (0x8c01, "c.sub"),
                (0x8c21, "c.xor"),
                (0x8c41, "c.or"),
                (0x8c61, "c.and"),
                (0x9c01, "c.subw"),
                (0x9c21, "c.addw"),
            ]);
            half(
                op | (rd - 8) << 7 | (rs - 8) << 2,
                format!("{name} x{rd}, x{rs}"),
            )
        }
        8 => {
            let rd = full(random);
            half(
                0x0002 | bits(amount, 5, 1, 12) | rd << 7 | bits(amount, 0, 5, 2),
                format!("c.slli x{rd}, {amount}"),
            )
        }
        9 => {
            let (rd, rs) = (full(random), random.range(1, 31) as u32);
            half(0x8002 | rd << 7 | rs << 2, format!("c.mv x{rd}, x{rs}"))
        }
        10 => {
            let (rd, rs) = (full(random), random.range(1, 31) as u32);
            half(0x9002 | rd << 7 | rs << 2, format!("c.add x{rd}, x{rs}"))
        }
        _ => {
            let rd = small(random);
            let imm = random.range(1, 255) * 4;
            let field =
                bits(imm, 4, 2, 11) | bits(imm, 6, 4, 7) | bits(imm, 2, 1, 6) | bits(imm, 3, 1, 5);
            half(field | (rd - 8) << 2, format!("c.addi4spn x{rd}, {imm}"))
        }
    }
}

/// A random compressed load or store with a base in `x8` or `x9`, or `x2`; loads avoid the registers for which `keep` is true.
#[must_use]
pub fn compressed_memory(random: &mut Random, keep: &dyn Fn(u32) -> bool) -> Instruction {
    let stack = random.one_in(2);
    let (kind, name, double, float, store) = *random.pick(&[
        (2, "lw", false, false, false),
        (3, "ld", true, false, false),
        (1, "fld", true, true, false),
        (6, "sw", false, false, true),
        (7, "sd", true, false, true),
        (5, "fsd", true, true, true),
    ]);
    let letter = if float { "f" } else { "x" };
    if stack {
        let offset = if double {
            random.range(0, 63) * 8
        } else {
            random.range(0, 63) * 4
        };
        let register = loop {
            let r = random.range(i64::from(!store && !float), 31) as u32;
            if float || store || !keep(r) {
                break r;
            }
        };
        let field = match (store, double) {
            (false, false) => {
                bits(offset, 5, 1, 12)
                    | bits(offset, 2, 3, 4)
                    | bits(offset, 6, 2, 2)
                    | register << 7
            }
            (false, true) => {
                bits(offset, 5, 1, 12)
                    | bits(offset, 3, 2, 5)
                    | bits(offset, 6, 3, 2)
                    | register << 7
            }
            (true, false) => bits(offset, 2, 4, 9) | bits(offset, 6, 2, 7) | register << 2,
            (true, true) => bits(offset, 3, 3, 10) | bits(offset, 6, 3, 7) | register << 2,
        };
        half(
            0x0002 | kind << 13 | field,
            format!("c.{name}sp {letter}{register}, {offset}(x2)"),
        )
    } else {
        let base = random.range(8, 9) as u32;
        let offset = if double {
            random.range(0, 31) * 8
        } else {
            random.range(0, 31) * 4
        };
        let register = loop {
            let r = random.range(8, 15) as u32;
            if float || store || !keep(r) {
                break r;
            }
        };
        let field = if double {
            bits(offset, 3, 3, 10) | bits(offset, 6, 2, 5)
        } else {
            bits(offset, 3, 3, 10) | bits(offset, 2, 1, 6) | bits(offset, 6, 1, 5)
        };
        half(
            kind << 13 | field | (base - 8) << 7 | (register - 8) << 2,
            format!("c.{name} {letter}{register}, {offset}(x{base})"),
        )
    }
}

/// `c.j` by `offset` bytes (even, 12 bits).
#[must_use]
pub fn compressed_jump(offset: i64) -> Instruction {
    let field = bits(offset, 11, 1, 12)
        | bits(offset, 4, 1, 11)
        | bits(offset, 8, 2, 9)
        | bits(offset, 10, 1, 8)
        | bits(offset, 6, 1, 7)
        | bits(offset, 7, 1, 6)
        | bits(offset, 1, 3, 3)
        | bits(offset, 5, 1, 2);
    half(0xa001 | field, format!("c.j .{offset:+}"))
}

/// `c.beqz` or `c.bnez` on `x8` to `x15` by `offset` bytes (even, 9 bits).
#[must_use]
pub fn compressed_branch(not: bool, rs1: u32, offset: i64) -> Instruction {
    let field = bits(offset, 8, 1, 12)
        | bits(offset, 3, 2, 10)
        | bits(offset, 6, 2, 5)
        | bits(offset, 1, 2, 3)
        | bits(offset, 5, 1, 2);
    let (op, name) = if not {
        (0xe001, "c.bnez")
    } else {
        (0xc001, "c.beqz")
    };
    half(
        op | field | (rs1 - 8) << 7,
        format!("{name} x{rs1}, .{offset:+}"),
    )
}

/// `c.jr` or `c.jalr`.
#[must_use]
pub fn compressed_indirect(link: bool, rs1: u32) -> Instruction {
    let (op, name) = if link {
        (0x9002, "c.jalr")
    } else {
        (0x8002, "c.jr")
    };
    half(op | rs1 << 7, format!("{name} x{rs1}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str) -> Row {
        *INTEGER
            .iter()
            .chain(FLOAT)
            .find(|row| row.0 == name)
            .expect("a known name")
    }

    /// Encodings as printed by GNU objdump in well-known code.
    #[test]
    fn known_encodings() {
        let operands = Operands {
            rd: 2,
            rs1: 2,
            imm: -16,
            ..Operands::default()
        };
        assert_eq!(encode(row("addi"), operands).bits, 0xff01_0113); // addi sp,sp,-16
        assert_eq!(jalr(0, 1, 0).bits, 0x0000_8067); // ret
        assert_eq!(jal(0, 0).bits, 0x0000_006f); // j .
        assert_eq!(branch(BRANCHES[0], 10, 0, -4).bits, 0xfe05_0ee3); // beqz a0,.-4
        assert_eq!(csr(2, 10, 0xf14, 0).bits, 0xf140_2573); // csrr a0,mhartid
        assert_eq!(compressed_indirect(false, 1).bits, 0x8082); // ret
        assert_eq!(compressed_jump(0).bits, 0xa001); // j .
        let store = Operands {
            rs1: 2,
            rs2: 1,
            imm: 8,
            ..Operands::default()
        };
        assert_eq!(encode(STORES[3].0, store).bits, 0x0011_3423); // sd ra,8(sp)
    }
}
