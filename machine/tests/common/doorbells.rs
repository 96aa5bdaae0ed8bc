//! Shared by the tests of doorbells.

use super::interrupts::{CYCLE, MEI, MIE, SEEN, listen, wakes};
use super::*;
use bulkhead_abi::doorbell::{HEARD, RUNG, bell};
use bulkhead_abi::memory_map::DMA_BASE;
use bulkhead_abi::plic::{context, source};
use bulkhead_machine::config::DoorbellsConfig;

pub const BELLS: TileId = 70;
/// Cycles of an access to a register.
pub const REGISTERS: u64 = 5;

/// Tiles as in [`clusters`], with doorbells.
pub fn chip_with_bells(harts: &[u16]) -> PlatformConfig {
    with_doorbells(clusters(harts))
}

pub fn with_doorbells(mut config: PlatformConfig) -> PlatformConfig {
    config.network.channels = Channels::Split;
    config.doorbells = Some(DoorbellsConfig {
        id: BELLS,
        router: 0,
        cycle: CYCLE,
        registers: REGISTERS,
        users: None,
    });
    config
}

/// The hart with a number, as doorbells count them.
pub fn hart(config: &PlatformConfig, number: usize) -> (TileId, usize) {
    let owner = config.bells()[number];
    (owner.tile, usize::from(owner.activity))
}

/// `S0` is the page of the doorbells. The hart at a port hears these harts, and an interrupt of its bell wakes it: `S1` is the register where
/// it claims it.
pub fn hears(p: &mut Program, port: usize, harts: u64) {
    p.li(S0, DMA_BASE);
    if harts != 0 {
        p.li(T0, harts).sd(T0, S0, HEARD);
    }
    p.word(FENCE);
    listen(p, context(port as u32), source(0, port as u32), 1);
    wakes(p, MEI);
}

/// Takes all rings of the own bell into `T0`, with the interrupt's number in `T2`, which is completed behind that.
pub fn takes(p: &mut Program) {
    p.ld(T0, S0, RUNG)
        .sd(T0, S0, RUNG)
        .word(FENCE)
        .sw(T2, S1, 0);
}

/// Each hart rings the next one when its own bell has rung, and the first one begins: `rounds` times each. With `all`, it rings the one
/// behind that, too, so that rings meet.
pub fn ring_round(
    config: &PlatformConfig,
    rounds: i32,
    all: bool,
) -> Vec<((TileId, usize), Program)> {
    let count = config.bells().len();
    let one = |number: usize| {
        let own = hart(config, number);
        let mut p = Program::default();
        hears(&mut p, own.1, u64::MAX);
        p.addi(T1, ZERO, 1).addi(S2, ZERO, rounds);
        let ring = |p: &mut Program| {
            for to in 1..=1 + usize::from(all) {
                p.sw(T1, S0, bell(((number + to) % count) as u64));
            }
        };
        if number == 0 {
            ring(&mut p);
        }
        let sleep = p.here();
        p.word(WFI).lw(T2, S1, 0).branch(0, T2, ZERO, sleep);
        takes(&mut p);
        p.addi(T1, ZERO, 1).marker(T0, SEEN).addi(S2, S2, -1);
        let end = p.here();
        p.word(0);
        ring(&mut p);
        p.jump(sleep);
        let last = p.here();
        p.patch_branch(end, 0, S2, ZERO, last);
        // Another ring may come, which it does not take.
        p.csr(1, MIE, ZERO);
        let rest = p.here();
        p.word(WFI).jump(rest);
        (own, p)
    };
    (0..count).map(one).collect()
}
