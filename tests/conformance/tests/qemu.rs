//! The fixed set: the same programs in every run, some of each category. The long form is the command of this crate.

use bulkhead_conformance::check;
use bulkhead_conformance::generate::generate;
use bulkhead_conformance::program::Category;
use bulkhead_conformance::qemu;

/// Programs of each category.
const SEEDS: std::ops::Range<u64> = 0..60;
/// Programs that need a start of QEMU each.
const SEEDS_ALONE: std::ops::Range<u64> = 0..5;

#[test]
fn same_results_as_qemu() {
    if !qemu::available() {
        eprintln!(
            "SKIPPED: {} is not installed (Debian package qemu-system-misc), and it is the reference of this test",
            qemu::PROGRAM
        );
        return;
    }
    let mut programs = check::programs(&Category::ALL, SEEDS);
    programs.retain(|program| !program.alone || SEEDS_ALONE.contains(&program.seed));
    let mismatches = check::run(&programs, 2, |_| {}).expect("QEMU runs");
    if let Some(first) = mismatches.first() {
        let small = check::shrink(first.clone(), 50).expect("QEMU runs");
        panic!(
            "{} of {} programs differ; the first, made small:\n{}: {}\n{}",
            mismatches.len(),
            programs.len(),
            small.program.name(),
            small.difference,
            small.program.listing()
        );
    }
}

/// A seed means the same program in every run.
#[test]
fn programs_are_reproducible() {
    for category in Category::ALL {
        let (first, second) = (generate(category, 7), generate(category, 7));
        assert_eq!(first.code(), second.code());
        assert_eq!(
            (first.data, first.tables, first.registers),
            (second.data, second.tables, second.registers)
        );
        assert_ne!(first.registers, generate(category, 8).registers);
    }
}
