//! Runs one small loop, so that its instructions per cycle are known.
//!
//! Arguments: `kernel` (a name of `bulkhead_bare::arch::kernels`), measured `turns`. Before them, a tenth as many turns fill caches and predictors.
//! The markers `MeasureBegin` and `MeasureEnd` carry the number of turns and of the instructions that the hart retired in between.
#![no_std]
#![no_main]

use bulkhead_bare::arch::{fence, kernels};
use bulkhead_bare::hal::{csr, device, marker};
use bulkhead_bare::{Program, entry};

entry!(main);

fn main(program: &Program) {
    // The other harts of a program with several harts have nothing to do.
    if program.rank > 0 {
        return;
    }
    let Some(kernel) = program.argument("kernel") else {
        panic!("a kernel must be named");
    };
    let turns: u64 = program.value("turns", 1000);
    let base = program.memory.part(0, 64).base();
    assert!(kernels::run(kernel, turns / 10, base), "no kernel {kernel}");
    fence();
    marker::measure_begin(turns);
    let before = csr::instret();
    kernels::run(kernel, turns, base);
    let retired = csr::instret() - before;
    marker::measure_end(retired);
    marker::check(turns);
    device::exit(0);
}
