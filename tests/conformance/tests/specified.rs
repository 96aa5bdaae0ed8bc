//! Where QEMU deviates from the specification, the programs leave the case out (`compare::LEFT_OUT`); here only our side runs it,
//! and the expectation comes from the specification's text.

use bulkhead_conformance::assembler::Assembler;
use bulkhead_conformance::compare::{self, Outcome};
use bulkhead_conformance::encode::{self, Format, LR, MRET, Operands, SC, SRET, word};
use bulkhead_conformance::layout::*;
use bulkhead_conformance::ours;
use bulkhead_conformance::program::Category;
use bulkhead_conformance::program::{self, Chunk, Program};

/// Runs code in machine mode, with `x8` at the data area.
fn run(write: impl FnOnce(&mut Assembler)) -> Outcome {
    let mut assembler = Assembler::new();
    assembler.li(8, DATA);
    write(&mut assembler);
    let program = Program {
        category: Category::Trap,
        seed: 0,
        chunks: vec![Chunk {
            code: assembler.finish(),
            fixed: true,
        }],
        registers: [0; 64],
        data: vec![0; 4096],
        tables: Vec::new(),
        alone: false,
    };
    let (image, results) = program::image(&[&program]);
    let memory = ours::run(&image, 1, None, None).expect("the program ends");
    compare::read(&memory, results[0], &program)
}

/// Causes and values of the traps before the one that ends the program.
fn traps(outcome: &Outcome) -> Vec<(u64, u64)> {
    let (_, traps) = outcome.log.split_last().expect("the end");
    traps.iter().map(|entry| (entry[1], entry[3])).collect()
}

fn enter(a: &mut Assembler, mode: u64, ret: u32) {
    let here = a.label();
    a.address(6, here);
    a.csr("csrrw", 0, if ret == MRET { 0x341 } else { 0x141 }, 6);
    a.li(6, mode);
    a.csr("csrrs", 0, 0x300, 6);
    a.push(word(ret, "return"));
    a.bind(here);
}

/// Volume II, "Memory Privilege in mstatus Register": an MRET or SRET that leaves machine mode clears MPRV.
#[test]
fn sret_clears_mprv() {
    let outcome = run(|a| {
        a.li(5, 1 << 17);
        a.csr("csrrs", 0, 0x300, 5);
        enter(a, 1 << 8, SRET);
    });
    assert_eq!(outcome.log[0][1], 9, "in supervisor mode");
    assert_eq!(outcome.log[0][4] & 1 << 17, 0);
}

/// Volume I, "CSR Instructions": whether a set or clear writes depends on the register's number, not on its value.
#[test]
fn set_of_read_only_csr_by_a_register_that_is_zero() {
    let outcome = run(|a| {
        a.li(5, 0);
        a.csr("csrrs", 6, 0xf14, 5);
        a.csr("csrrs", 6, 0xf14, 0);
        a.csr("csrrsi", 6, 0xf14, 0);
        a.csr("csrrc", 6, 0xc00, 5);
    });
    assert_eq!(
        traps(&outcome)
            .iter()
            .map(|trap| trap.0)
            .collect::<Vec<_>>(),
        [2, 2]
    );
}

/// Volume I, "Load-Reserved/Store-Conditional Instructions": a misaligned address is an exception, whatever is reserved.
#[test]
fn misaligned_reservations() {
    let outcome = run(|a| {
        a.i("addi", 5, 8, 2);
        let operands = Operands {
            rd: 6,
            rs1: 5,
            rs2: 7,
            ..Operands::default()
        };
        a.push(encode::atomic(
            ("lr", LR, Format::LoadReserved),
            4,
            operands,
        ));
        a.push(encode::atomic(("sc", SC, Format::Atomic), 4, operands));
    });
    assert_eq!(traps(&outcome), [(4, DATA + 2), (6, DATA + 2)]);
}

/// Volume I: an AMO to an address where nothing is raises a store/AMO access fault; the value is the address, also for a
/// misaligned load.
#[test]
fn faults_where_nothing_is() {
    let outcome = run(|a| {
        a.li(5, HOLE);
        let operands = Operands {
            rd: 6,
            rs1: 5,
            rs2: 7,
            ..Operands::default()
        };
        a.push(encode::atomic(encode::ATOMICS[0], 8, operands));
        a.memory("lw", 6, 1, 5);
    });
    assert_eq!(traps(&outcome), [(7, HOLE), (5, HOLE + 1)]);
}

/// Volume II, "Priority and Matching Logic": an entry that matches some bytes of an access must match all, in every mode.
#[test]
fn a_small_region_in_the_middle_of_an_access() {
    let outcome = run(|a| {
        a.li(5, (DATA + 8) >> 2);
        a.csr("csrrw", 0, 0x3b0, 5);
        // NA4, everything allowed.
        a.li(5, 0x17);
        a.csr("csrrw", 0, 0x3a0, 5);
        a.memory("ld", 6, 6, 8);
        a.memory("lw", 6, 8, 8);
        a.memory("lw", 6, 12, 8);
    });
    assert_eq!(traps(&outcome), [(5, DATA + 6)]);
}

/// Volume II, "Physical Memory Protection": without a matching entry the lower modes may do nothing.
#[test]
fn no_entry_no_access() {
    let outcome = run(|a| {
        a.csr("csrrw", 0, 0x3a2, 0);
        // The fetch fails; its handler continues here, in the same mode, and fails until the program has had too many traps.
        enter(a, 0, MRET);
    });
    assert!(outcome.log.iter().all(|entry| entry[1] == 1));
    assert_eq!(outcome.log.len() as u64, LOG_LIMIT);
}

/// Volume II: bit 0 of `mepc` is zero; `pmpaddr` has 54 bits.
#[test]
fn read_only_bits() {
    let outcome = run(|a| {
        a.li(5, u64::MAX);
        a.csr("csrrw", 0, 0x341, 5);
        a.csr("csrrs", 20, 0x341, 0);
        a.csr("csrrw", 0, 0x3b0, 5);
        a.csr("csrrs", 21, 0x3b0, 0);
        a.csr("csrrw", 0, 0x141, 5);
        a.csr("csrrs", 22, 0x141, 0);
    });
    assert_eq!(
        outcome.words[20..23],
        [u64::MAX - 1, u64::MAX >> 10, u64::MAX - 1]
    );
}
