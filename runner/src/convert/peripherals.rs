//! Peripherals of a chip, and their assignment to a system's programs.
//!
//! Why it exists: a peripheral belongs to a program. Its users are the harts of that program, and its windows are that program's memory.
//! What it deliberately does not know: registers, and what is in a file.

use bulkhead_machine::config::{PeripheralConfig, PeripheralKind, PlatformConfig};
use bulkhead_machine::types::{Owner, Tick};
use bulkhead_model::System;
use bulkhead_model::platform::{self, Peripheral, Platform};
use bulkhead_model::system::App;
use bulkhead_model::system::bare::Placed;
use bulkhead_model::units::Time;

/// A peripheral that every hart may use for all of memory: on a chip without a system.
pub(super) fn peripheral(
    platform: &Platform,
    one: &Peripheral,
    ticks_per_second: u64,
    cycle: Tick,
) -> PeripheralConfig {
    // Periods and gaps end at the next tick.
    let span = |time: Time| {
        let ticks = u128::from(time.0) * u128::from(ticks_per_second);
        ticks.div_ceil(1_000_000_000_000) as Tick
    };
    let windows = platform.memories.iter().filter_map(|memory| {
        let base = platform.memory_base(memory.id)?;
        Some((base, memory.size.0))
    });
    PeripheralConfig {
        id: one.id,
        router: one.router,
        cycle,
        registers: one.registers.into(),
        interrupts: one.interrupts,
        burst: one.burst,
        outstanding: one.outstanding,
        startup: one.startup.into(),
        rate: one.rate.0,
        bucket: one.bucket.0,
        queue: one.queue,
        kind: match one.kind {
            platform::PeripheralKind::Storage { block, size } => PeripheralKind::Storage {
                block: block.0 as u32,
                size: size.0,
                seed: one.seed,
            },
            platform::PeripheralKind::Camera {
                period,
                lines,
                packet,
                gap,
            } => PeripheralKind::Camera {
                period: span(period),
                lines,
                packet: packet.0 as u32,
                gap: span(gap),
                seed: one.seed,
            },
            platform::PeripheralKind::Accelerator { compute } => {
                PeripheralKind::Accelerator { compute: compute.0 }
            }
        },
        users: None,
        windows: windows.collect(),
        coherent: one.coherent,
    }
}

/// Gives each peripheral to the program that has attached it. A peripheral that no program has attached does nothing.
pub(super) fn give(system: &System, config: &mut PlatformConfig) {
    for one in &mut config.peripherals {
        (one.users, one.windows) = (Some(Vec::new()), Vec::new());
        let Some(bare) = &system.bare else { continue };
        let all = system.apps.iter().zip(&bare.programs);
        let mut uses = all.filter(|(_, placed)| {
            let mut attached = placed.attached.iter();
            attached.any(|attached| attached.peripheral == one.id)
        });
        if let Some((app, placed)) = uses.next() {
            let harts = placed.harts.iter();
            one.users = Some(harts.map(|hart| Owner::new(app.tile, *hart)).collect());
            one.windows = vec![(placed.base, placed.size)];
            one.windows.extend(&placed.more);
        }
    }
}

/// Gives the doorbells to the programs that ring or are rung for. They ring only the harts of the programs that they may.
pub(super) fn give_doorbells(system: &System, config: &mut PlatformConfig) {
    let bells = config.bells();
    let Some(doorbells) = &mut config.doorbells else {
        return;
    };
    let all = || {
        system
            .apps
            .iter()
            .zip(system.bare.iter().flat_map(|bare| &bare.programs))
    };
    let harts = |(app, placed): (&App, &Placed)| -> Vec<Owner> {
        let harts = placed.harts.iter();
        harts.map(|hart| Owner::new(app.tile, *hart)).collect()
    };
    let mask = |harts: Vec<Owner>| {
        let bits = bells.iter().enumerate();
        let bits = bits.filter(|(_, one)| harts.contains(one));
        bits.fold(0, |mask, (number, _)| mask | 1 << number)
    };
    let programs: Vec<Vec<Owner>> = all().map(harts).collect();
    let mut users = Vec::new();
    for (place, (_, placed)) in all().enumerate() {
        if !system
            .bare
            .as_ref()
            .is_some_and(|bare| bare.has_bells(place))
        {
            continue;
        }
        let rung = placed.rings.iter();
        let may = mask(rung.flat_map(|one| programs[*one].clone()).collect());
        users.extend(programs[place].iter().map(|hart| (*hart, may)));
    }
    doorbells.users = Some(users);
}
