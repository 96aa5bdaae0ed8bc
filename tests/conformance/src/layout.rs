//! Where everything is in memory: the contract between the runtime, the programs and the reader of the results.
//!
//! Each test is copied to the same addresses before it runs, so its behaviour does not depend on its neighbours.

/// First byte of memory; the runtime starts here.
pub const DRAM: u64 = 0x8000_0000;
/// Bytes of memory; untouched pages cost nothing.
pub const DRAM_BYTES: u64 = 64 << 20;
/// The machine-mode trap handler: 16 entries of 4 bytes, as in vectored mode.
pub const MACHINE_HANDLER: u64 = DRAM + 0x40;
/// The supervisor-mode trap handler.
pub const SUPERVISOR_HANDLER: u64 = DRAM + 0x400;
/// The machine-mode handler's frame: 32 integer registers, then the log.
pub const FRAME: u64 = DRAM + 0x1_0000;
/// The supervisor-mode handler's frame.
pub const SUPERVISOR_FRAME: u64 = DRAM + 0x1_1000;
/// Number of log entries so far, then the entries.
pub const LOG: u64 = DRAM + 0x1_2000;
/// Words of a log entry.
pub const LOG_WORDS: u64 = 8;
/// Traps after which a test ends.
pub const LOG_LIMIT: u64 = 120;
/// Code of the running test.
pub const CODE: u64 = DRAM + 0x2_0000;
/// Bytes that code may have.
pub const CODE_BYTES: u64 = 0x1_0000;
/// Data of the running test.
pub const DATA: u64 = DRAM + 0x3_0000;
/// Page tables of the running test (the first page is the root).
pub const TABLES: u64 = DRAM + 0x4_0000;
/// Memory that belongs to nothing else.
pub const SPARE: u64 = DRAM + 0x5_0000;
/// Bit that differs between an address and its alias for user mode.
pub const ALIAS: u64 = 0x4000_0000;
/// Table of the batch's tests: one [`DESCRIPTOR_WORDS`] entry each, ended by a zero word.
pub const DIRECTORY: u64 = DRAM + 0x10_0000;
/// Code length, image address (code, data, tables one after the other), data length, table length, registers, result.
pub const DESCRIPTOR_WORDS: u64 = 6;
/// The tests' images.
pub const IMAGES: u64 = DRAM + 0x20_0000;
/// Value of `a7` that ends a test.
pub const END: u64 = 0x700;
/// Value of `a7` that returns in mode `a7 & 3`, at the alias given by `a6`.
pub const SWITCH: u64 = 0x600;
/// The core-local interruptor's software interrupt register.
pub const CLINT_SOFTWARE: u64 = 0x0200_0000;
/// Its timer compare register.
pub const CLINT_COMPARE: u64 = 0x0200_4000;
/// Its timer.
pub const CLINT_TIME: u64 = 0x0200_bff8;
/// The device that ends the run.
pub const EXIT: u64 = 0x10_0000;
/// An address where nothing is.
pub const HOLE: u64 = 0x1800_0000;

/// CSRs that a result holds, in this order.
pub const RESULT_CSRS: &[(&str, u32)] = &[
    ("mstatus", 0x300),
    ("misa", 0x301),
    ("medeleg", 0x302),
    ("mideleg", 0x303),
    ("mie", 0x304),
    ("mtvec", 0x305),
    ("mcounteren", 0x306),
    ("mip", 0x344),
    ("mepc", 0x341),
    ("mcause", 0x342),
    ("mtval", 0x343),
    ("satp", 0x180),
    ("scause", 0x142),
    ("sepc", 0x141),
    ("stval", 0x143),
    ("sscratch", 0x140),
    ("stvec", 0x105),
    ("scounteren", 0x106),
    ("fcsr", 0x003),
    ("pmpcfg0", 0x3a0),
    ("pmpcfg2", 0x3a2),
    ("pmpaddr0", 0x3b0),
    ("pmpaddr1", 0x3b1),
    ("pmpaddr2", 0x3b2),
    ("pmpaddr3", 0x3b3),
    ("pmpaddr4", 0x3b4),
    ("pmpaddr5", 0x3b5),
    ("pmpaddr6", 0x3b6),
    ("pmpaddr7", 0x3b7),
    ("pmpaddr15", 0x3bf),
];

/// Words of a result before the copies of log, data and tables: integer registers, FP registers, CSRs.
pub const RESULT_WORDS: u64 = 64 + RESULT_CSRS.len() as u64;
/// Bytes of the log as it is copied.
pub const LOG_BYTES: u64 = 8 + LOG_LIMIT * LOG_WORDS * 8;

/// Bytes of a test's result.
#[must_use]
pub const fn result_bytes(data: u64, tables: u64) -> u64 {
    RESULT_WORDS * 8 + LOG_BYTES + data + tables
}
