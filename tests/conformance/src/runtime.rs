//! The code around the tests: it prepares each one, handles its traps, and saves what it left behind.
//!
//! Trap handling follows one policy that suits every test: log the trap, then continue after the instruction (interrupts:
//! disable the source and return). It uses no register of the test: `mscratch` and `sscratch` point to frames.
//!
//! An exception whose `mepc` is in the test's code (or its alias) continues after that instruction, whose length is read
//! from physical memory; any other, as after a jump to nowhere, continues at the address in `ra`.

use crate::assembler::{self, Assembler};
use crate::encode::{FENCE_I, MRET, SFENCE, SRET, WFI, word};
use crate::layout::*;

const ZERO: u32 = 0;
const RA: u32 = 1;
const SP: u32 = 2;
const T0: u32 = 5;
const T1: u32 = 6;
const T2: u32 = 7;
const S0: u32 = 8;
const S1: u32 = 9;
const A0: u32 = 10;
const A1: u32 = 11;
const A2: u32 = 12;
const A6: u32 = 16;
const A7: u32 = 17;

/// The nonzero CSRs with which every test starts; the order matters (no `satp` before its tables are gone).
fn reset_csrs(a: &mut Assembler) {
    // FS Initial, everything else off.
    a.li(T0, 0x2000);
    a.csr("csrrw", ZERO, 0x300, T0);
    for csr in [
        0x180, 0x302, 0x303, 0x304, 0x344, 0x306, 0x106, 0x142, 0x141, 0x143, 0x003, 0x3a0, 0x3a2,
    ] {
        a.csr("csrrwi", ZERO, csr, 0);
    }
    for entry in 0..15 {
        a.csr("csrrwi", ZERO, 0x3b0 + entry, 0);
    }
    a.li(T0, u64::MAX >> 10);
    a.csr("csrrw", ZERO, 0x3bf, T0);
    a.li(T0, 0x1f << 56);
    a.csr("csrrw", ZERO, 0x3a2, T0);
    a.li(T0, MACHINE_HANDLER);
    a.csr("csrrw", ZERO, 0x305, T0);
    a.li(T0, SUPERVISOR_HANDLER);
    a.csr("csrrw", ZERO, 0x105, T0);
    a.li(T0, FRAME);
    a.csr("csrrw", ZERO, 0x340, T0);
    a.li(T0, SUPERVISOR_FRAME);
    a.csr("csrrw", ZERO, 0x140, T0);
    a.li(T0, CLINT_SOFTWARE);
    a.memory("sw", ZERO, 0, T0);
    a.li(T0, CLINT_COMPARE);
    a.li(T1, u64::MAX);
    a.memory("sd", T1, 0, T0);
    a.push(word(SFENCE, "sfence.vma"));
}

/// Copies `a2` bytes (a multiple of 8, maybe 0) from `a0` to `a1` and moves both pointers.
fn copy(a: &mut Assembler) {
    let (again, done) = (a.label(), a.label());
    a.r("add", A2, A0, A2);
    a.bind(again);
    a.branch("bgeu", A0, A2, done);
    a.memory("ld", T0, 0, A0);
    a.memory("sd", T0, 0, A1);
    a.i("addi", A0, A0, 8);
    a.i("addi", A1, A1, 8);
    a.jump(ZERO, again);
    a.bind(done);
}

fn save_registers(a: &mut Assembler, scratch: u32) {
    // sp holds the frame and the scratch CSR the test's sp.
    for r in (1..32).filter(|&r| r != SP) {
        a.memory("sd", r, i64::from(r) * 8, SP);
    }
    a.csr("csrrw", T0, scratch, SP);
    a.memory("sd", T0, i64::from(SP) * 8, SP);
}

fn restore_registers(a: &mut Assembler) {
    for r in (1..32).filter(|&r| r != SP) {
        a.memory("ld", r, i64::from(r) * 8, SP);
    }
    a.memory("ld", SP, i64::from(SP) * 8, SP);
}

/// Appends an entry to the log; its previous number is in `t2`, and `s1` keeps the cause.
fn log(a: &mut Assembler, kind: u64, csrs: &[u32]) {
    let full = a.label();
    a.li(T0, LOG);
    a.memory("ld", T2, 0, T0);
    a.li(T1, LOG_LIMIT);
    a.branch("bgeu", T2, T1, full);
    a.i("slli", T1, T2, 6);
    a.r("add", T1, T1, T0);
    a.i("addi", T2, T2, 1);
    a.memory("sd", T2, 0, T0);
    a.li(T0, kind);
    a.memory("sd", T0, 8, T1);
    for (index, &csr) in csrs.iter().enumerate() {
        a.csr("csrrs", T0, csr, ZERO);
        a.memory("sd", T0, 16 + 8 * index as i64, T1);
    }
    a.bind(full);
}

/// Moves the exception's address in `s0` past its instruction, or to the saved `ra`.
fn step_over(a: &mut Assembler) {
    let (outside, done, short) = (a.label(), a.label(), a.label());
    a.li(T0, ALIAS);
    a.i("xori", T0, T0, -1);
    a.r("and", T0, S0, T0);
    a.li(T1, CODE);
    a.r("sub", T0, T0, T1);
    a.li(T1, CODE_BYTES);
    a.branch("bgeu", T0, T1, outside);
    a.li(T1, CODE);
    a.r("add", T0, T0, T1);
    a.memory("lhu", T0, 0, T0);
    a.i("andi", T0, T0, 3);
    a.i("addi", S0, S0, 2);
    a.i("addi", T0, T0, -3);
    a.branch("bne", T0, ZERO, short);
    a.i("addi", S0, S0, 2);
    a.bind(short);
    a.jump(ZERO, done);
    a.bind(outside);
    a.memory("ld", S0, i64::from(RA) * 8, SP);
    a.bind(done);
}

/// Fills up to an address.
fn pad(a: &mut Assembler, address: u64) {
    assert!(
        a.here() as u64 <= address - DRAM,
        "the runtime's parts overlap"
    );
    while (a.here() as u64) < address - DRAM {
        a.i("addi", ZERO, ZERO, 0);
    }
}

/// The runtime's bytes, for address [`DRAM`].
#[must_use]
pub fn image() -> Vec<u8> {
    let mut a = Assembler::new();
    let (start, finish, next) = (a.label(), a.label(), a.label());
    a.jump(ZERO, start);

    // Machine-mode handler; vectored entries follow it, 4 bytes apart.
    pad(&mut a, MACHINE_HANDLER);
    let machine_body = a.label();
    for _ in 0..16 {
        a.jump(ZERO, machine_body);
    }
    a.bind(machine_body);
    a.csr("csrrw", SP, 0x340, SP);
    save_registers(&mut a, 0x340);
    log(&mut a, 1, &[0x342, 0x341, 0x343, 0x300, 0x344, 0x304]);
    let (interrupt, switch, step, leave) = (a.label(), a.label(), a.label(), a.label());
    a.li(T1, LOG_LIMIT);
    a.branch("bgeu", T2, T1, finish);
    a.csr("csrrs", S1, 0x342, ZERO);
    a.csr("csrrs", S0, 0x341, ZERO);
    a.branch("blt", S1, ZERO, interrupt);
    a.i("addi", T0, S1, -8);
    a.li(T1, 4);
    a.branch("bgeu", T0, T1, step);
    a.li(T0, END);
    a.branch("beq", A7, T0, finish);
    a.i("andi", T0, A7, -4);
    a.li(T1, SWITCH);
    a.branch("beq", T0, T1, switch);
    a.bind(step);
    step_over(&mut a);
    a.csr("csrrw", ZERO, 0x341, S0);
    a.jump(ZERO, leave);
    a.bind(interrupt);
    a.li(T0, 1);
    a.r("sll", T0, T0, S1);
    a.csr("csrrc", ZERO, 0x304, T0);
    a.jump(ZERO, leave);
    a.bind(switch);
    // Forwarded by the supervisor-mode handler: the test's ecall is at sepc.
    a.li(T0, CODE);
    let direct = a.label();
    a.branch("bgeu", S0, T0, direct);
    a.csr("csrrs", S0, 0x141, ZERO);
    a.bind(direct);
    // Continue after the ecall in the mode given by a7, at the alias given by a6.
    a.i("addi", S0, S0, 4);
    a.li(T0, ALIAS);
    a.r("or", S0, S0, T0);
    a.r("xor", S0, S0, T0);
    a.r("or", S0, S0, A6);
    a.csr("csrrw", ZERO, 0x341, S0);
    a.li(T0, 0x1800);
    a.csr("csrrc", ZERO, 0x300, T0);
    a.i("andi", T0, A7, 3);
    a.i("slli", T0, T0, 11);
    a.csr("csrrs", ZERO, 0x300, T0);
    a.bind(leave);
    restore_registers(&mut a);
    a.push(word(MRET, "mret"));

    // Supervisor-mode handler.
    pad(&mut a, SUPERVISOR_HANDLER);
    let supervisor_body = a.label();
    for _ in 0..16 {
        a.jump(ZERO, supervisor_body);
    }
    a.bind(supervisor_body);
    a.csr("csrrw", SP, 0x140, SP);
    save_registers(&mut a, 0x140);
    log(&mut a, 2, &[0x142, 0x141, 0x143, 0x100, 0x144, 0x104]);
    let (interrupt, forward, step, leave) = (a.label(), a.label(), a.label(), a.label());
    a.li(T1, LOG_LIMIT);
    a.branch("bgeu", T2, T1, forward);
    a.csr("csrrs", S1, 0x142, ZERO);
    a.csr("csrrs", S0, 0x141, ZERO);
    a.branch("blt", S1, ZERO, interrupt);
    a.i("addi", T0, S1, -8);
    a.branch("bne", T0, ZERO, step);
    a.li(T0, END);
    a.branch("beq", A7, T0, forward);
    a.i("andi", T0, A7, -4);
    a.li(T1, SWITCH);
    a.branch("bne", T0, T1, step);
    a.bind(forward);
    // The machine-mode handler serves these: give it the unchanged registers.
    restore_registers(&mut a);
    a.push(word(crate::encode::ECALL, "ecall"));
    a.jump(ZERO, forward);
    a.bind(step);
    step_over(&mut a);
    a.csr("csrrw", ZERO, 0x141, S0);
    a.jump(ZERO, leave);
    a.bind(interrupt);
    a.li(T0, 1);
    a.r("sll", T0, T0, S1);
    a.csr("csrrc", ZERO, 0x104, T0);
    a.bind(leave);
    restore_registers(&mut a);
    a.push(word(SRET, "sret"));

    // End of a test, in machine mode with sp = frame: the handler saved the integer registers.
    a.bind(finish);
    // The CSRs first, so that the saving does not show in them.
    a.li(A1, FRAME + 0x400);
    for (index, &(_, csr)) in RESULT_CSRS.iter().enumerate() {
        a.csr("csrrs", T0, csr, ZERO);
        a.memory("sd", T0, 8 * index as i64, A1);
        if csr == 0x300 {
            // Reading fcsr needs FS.
            a.li(T0, 0x2000);
            a.csr("csrrs", ZERO, 0x300, T0);
            // Memory as the handler sees it, whatever the test did to MPRV.
            a.li(T0, 1 << 17);
            a.csr("csrrc", ZERO, 0x300, T0);
        }
    }
    // An access that is partly in a region fails in machine mode too.
    a.csr("csrrw", ZERO, 0x3a0, ZERO);
    a.li(A1, FRAME + 0x200);
    for f in 0..32 {
        a.memory("fsd", f, 8 * i64::from(f), A1);
    }
    // x registers, FP registers, CSRs, log, data, tables -> result.
    a.li(S0, FRAME + 0x800);
    a.memory("ld", S0, 0, S0);
    a.memory("ld", A1, 40, S0);
    a.li(A0, FRAME);
    a.li(A2, 256);
    copy(&mut a);
    a.li(A0, FRAME + 0x200);
    a.li(A2, 256);
    copy(&mut a);
    a.li(A0, FRAME + 0x400);
    a.li(A2, RESULT_CSRS.len() as u64 * 8);
    copy(&mut a);
    a.li(A0, LOG);
    a.li(A2, LOG_BYTES);
    copy(&mut a);
    a.li(A0, DATA);
    a.memory("ld", A2, 16, S0);
    copy(&mut a);
    a.li(A0, TABLES);
    a.memory("ld", A2, 24, S0);
    copy(&mut a);
    a.i("addi", S0, S0, 8 * DESCRIPTOR_WORDS as i64);
    a.jump(ZERO, next);

    // Start: the first descriptor, then one test after the other.
    a.bind(start);
    // QEMU has a second hart (see `qemu`); only the first runs tests.
    let (first, park) = (a.label(), a.label());
    a.csr("csrrs", T0, 0xf14, ZERO);
    a.branch("beq", T0, ZERO, first);
    a.bind(park);
    a.push(word(WFI, "wfi"));
    a.jump(ZERO, park);
    a.bind(first);
    a.li(S0, DIRECTORY);
    a.bind(next);
    reset_csrs(&mut a);
    a.li(T0, FRAME + 0x800);
    a.memory("sd", S0, 0, T0);
    let (go, clear) = (a.label(), a.label());
    a.memory("ld", T0, 0, S0);
    a.branch("bne", T0, ZERO, go);
    a.li(T0, EXIT);
    a.li(T1, 0x5555);
    a.memory("sw", T1, 0, T0);
    let stay = a.label();
    a.bind(stay);
    a.jump(ZERO, stay);
    a.bind(go);
    a.memory("ld", A0, 8, S0);
    a.li(A1, CODE);
    a.memory("ld", A2, 0, S0);
    copy(&mut a);
    a.li(A1, DATA);
    a.memory("ld", A2, 16, S0);
    copy(&mut a);
    a.li(A1, TABLES);
    a.memory("ld", A2, 24, S0);
    copy(&mut a);
    // An empty log.
    a.li(A0, LOG);
    a.li(A1, LOG + LOG_BYTES);
    a.bind(clear);
    a.memory("sd", ZERO, 0, A0);
    a.i("addi", A0, A0, 8);
    a.branch("bltu", A0, A1, clear);
    a.push(word(FENCE_I, "fence.i"));
    // FP registers, then the integer ones, then the test.
    a.memory("ld", RA, 32, S0);
    for f in 0..32 {
        a.memory("fld", f, 256 + 8 * i64::from(f), RA);
    }
    a.csr("csrrwi", ZERO, 0x003, 0);
    a.li(T0, CODE);
    a.csr("csrrw", ZERO, 0x341, T0);
    a.li(T0, 0x2000 | 3 << 11);
    a.csr("csrrw", ZERO, 0x300, T0);
    for r in 2..32 {
        a.memory("ld", r, 8 * i64::from(r), RA);
    }
    a.memory("ld", RA, 8, RA);
    a.push(word(MRET, "mret"));
    assembler::bytes(&a.finish())
}
