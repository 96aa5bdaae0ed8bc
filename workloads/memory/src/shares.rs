//! Gives the requests of harts their shares of a memory's bandwidth (CBQRI), and then sleeps.
//!
//! Arguments: `reserved` and `weight` of the harts with ways of their own, from hart 1 on, with commas between them: `reserved="16,1,1"` and
//! `weight="0,3,1"` give hart 1 sixteen blocks of each window and no more. The RCID of such a hart is its number plus 1. `controller`: the address
//! of the registers, if it is not that of the first memory. The program runs on the hart that reaches them. After reset, RCID 0 has
//! everything; it keeps one block, for those that have no share.
#![no_std]
#![no_main]

use bulkhead_bare::arch::{Registers, fence};
use bulkhead_bare::hal::abi::bandwidth::{
    BC_ALLOC_CTL, BC_BW_ALLOC, CONFIG_LIMIT, CONTROL_IDENTIFIER, CONTROL_STATUS, LIMIT_WEIGHT,
    SUCCESS,
};
use bulkhead_bare::hal::abi::memory_map::BANDWIDTH_BASE;
use bulkhead_bare::{Program, entry};

entry!(main);

/// The RCID of hart 1, if it has ways of its own.
const FIRST: u64 = 2;

fn main(program: &Program) {
    if program.rank > 0 {
        return;
    }
    let registers = Registers::at(program.value("controller", BANDWIDTH_BASE));
    let set = |rcid: u64, reserved: u64, weight: u64| {
        registers.set(BC_BW_ALLOC, reserved | weight << LIMIT_WEIGHT);
        registers.set(BC_ALLOC_CTL, CONFIG_LIMIT | rcid << CONTROL_IDENTIFIER);
        fence();
        let status = registers.get(BC_ALLOC_CTL) >> CONTROL_STATUS & 0x7F;
        assert_eq!(status, SUCCESS, "RCID {rcid}: {reserved} blocks");
    };
    set(0, 1, 1);
    let numbers = |name| {
        let all = program.argument(name).unwrap_or_default();
        let parsed = all.split(',').map(str::parse);
        parsed.map(move |number| number.unwrap_or_else(|_| panic!("{name}: {all}")))
    };
    for (rcid, (reserved, weight)) in (FIRST..).zip(numbers("reserved").zip(numbers("weight"))) {
        set(rcid, reserved, weight);
    }
}
