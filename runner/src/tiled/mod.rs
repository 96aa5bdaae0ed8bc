//! The tiled OS: what its systems need besides what every system needs.
//!
//! Why it exists: images with kernel, TileMux and managers, names that the kernel gives, bounds of messages, transfers and cache
//! misses, and runs beside adversaries belong to this paradigm and to no other. What it deliberately does not know: other
//! paradigms; experiments over many runs.

pub mod admission;
pub mod alone;
pub mod attack;
pub mod attacked;
pub mod boot_image;
pub mod bounds;
pub mod catalogue;
pub mod console;
pub mod held;
pub mod lives;
pub mod lonely;
pub mod names;
pub mod promises;
pub mod quiet;
mod refusals;
pub mod requests;
pub mod room;
pub mod unfinished;

use crate::error::Error;
use crate::image::BootImage;
use crate::loadable;
use crate::measure::{Lives, MarkerEvent};
use crate::modules::boot_name;
use crate::names::{Names, Naming};
use crate::observed::Observed;
use crate::paradigm::{BesideRun, Paradigm, Ran, Said};
use crate::programs::{Library, Program};
use alone::Alone;
use bulkhead_abi::dtu::{Endpoint, MemoryEndpoint, TLB_READ, TLB_WRITE};
use bulkhead_abi::memory_map::PMP_WINDOW_SIZE;
use bulkhead_abi::tilemux::KERNEL_ACTIVITY;
use bulkhead_machine::machine::{Machine, Outcome};
use bulkhead_model::{System, canonical};
use bulkhead_report::result::{AddedRun, End, Incident, QuotaUse, VariantResult};
use bulkhead_report::verdict::Promise;

/// Name of the kernel's program.
const KERNEL: &str = "tiled/kernel";
/// Name of TileMux's program.
const TILEMUX: &str = "tiled/tilemux";
/// Kind of the marker with which the kernel begins a piece of work (its module `bounds`).
const WORK_BEGINS: u16 = 0x100;

/// The tiled OS.
pub struct Tiled;

impl Paradigm for Tiled {
    fn admit(&self, name: &str, system: &System) -> Result<(), Error> {
        admission::check(name, system)
    }

    fn fits(&self, system: &System, library: &Library) -> Result<(), Error> {
        let peer = system.peer.iter().map(|peer| &*peer.system);
        for one in peer.chain([system]) {
            room::check(one, &library.finished(&one.programs())?)?;
        }
        Ok(())
    }

    fn unread(&self, system: &System, machine: &Machine) -> Option<(u16, u64)> {
        let tile = self.console_tile(system);
        let lost = machine.console_lost(tile).ok()?;
        (lost > 0).then_some((tile, lost))
    }

    fn programs<'s>(&self, system: &'s System) -> Vec<&'s str> {
        let managers = system.managers.iter();
        let managers = managers.map(|manager| manager.program.as_str());
        let apps = system.apps.iter().map(|app| app.program.as_str());
        [KERNEL, TILEMUX]
            .into_iter()
            .chain(managers)
            .chain(apps)
            .collect()
    }

    fn image(&self, system: &System, programs: &[Program]) -> Result<BootImage, Error> {
        let find = |name: &str| {
            programs
                .iter()
                .find(|program| program.name == name)
                .ok_or_else(|| Error::Machine(format!("the program {name} was not built")))
        };
        let mut modules: Vec<Program> = Vec::new();
        for name in self.programs(system).into_iter().skip(1) {
            if !modules.iter().any(|module| module.name == name) {
                let program = find(name)?;
                // TileMux is the kernel's, which loads it as it is.
                if name != TILEMUX {
                    loadable::check(name, &program.elf)?;
                }
                modules.push(program.clone());
            }
        }
        room::check(system, &modules)?;
        for module in &system.modules {
            modules.push(find(&boot_name(&module.name))?.clone());
        }
        boot_image::assemble(
            system,
            find(KERNEL)?,
            &modules,
            &canonical::for_chip(system),
        )
    }

    /// The kernel's tile sees the start of the first memory tile. The kernel does everything else.
    fn prepare(&self, system: &System, machine: &mut Machine) -> Result<(), Error> {
        let memory = system
            .platform
            .memories
            .first()
            .ok_or_else(|| Error::Machine("the platform has no memory tile".to_owned()))?;
        let window = Endpoint::Memory(MemoryEndpoint {
            activity: KERNEL_ACTIVITY,
            target_tile: memory.id,
            rights: (TLB_READ | TLB_WRITE) as u8,
            base: 0,
            size: memory.size.0.min(PMP_WINDOW_SIZE),
        });
        machine
            .unit_mut(system.kernel_tile)
            .map_err(|error| Error::Machine(error.to_string()))?
            .set_endpoint(0, window);
        Ok(())
    }

    fn console_tile(&self, system: &System) -> u16 {
        system.kernel_tile
    }

    fn described(&self, system: &System, console: &str) -> String {
        names::described(system, console)
    }

    fn names(&self, system: &System, markers: &[MarkerEvent]) -> Names {
        names::of(system, markers)
    }

    fn naming(&self, system: &System) -> Box<dyn Naming> {
        Box::new(names::TiledNames::new(system))
    }

    fn incidents(
        &self,
        system: &System,
        seen: &Said<'_>,
        locate: &dyn Fn(&str, u64) -> Option<String>,
    ) -> Vec<Incident> {
        let mut all = console::incidents(system, seen.console, seen.markers, locate);
        all.extend(console::kernel_stop(system, seen.console, locate));
        let exited = matches!(seen.end, End::Exit { .. });
        all.extend(unfinished::stopped(
            system,
            seen.markers,
            seen.console,
            exited,
        ));
        all.extend(unfinished::incidents(system, seen, locate));
        all
    }

    fn lives(&self, system: &System, seen: &Observed) -> Lives {
        let exited = matches!(seen.outcome, Outcome::Exit { .. });
        let mut lives = lives::of(system, &seen.markers, &seen.console, seen.ticks, exited);
        if matches!(seen.outcome, Outcome::Idle { .. }) {
            lives.is_idle();
        }
        lives
    }

    fn quotas(&self, system: &System, console: &str) -> Vec<QuotaUse> {
        console::quotas(system, console)
    }

    fn work(&self, system: &System, markers: &[MarkerEvent]) -> Vec<(u64, u64)> {
        let kernel = system.kernel_tile;
        let begun = markers
            .iter()
            .filter(|m| m.kind == WORK_BEGINS && m.tile == kernel);
        begun.map(|marker| (marker.at, marker.value)).collect()
    }

    fn serves_bounds(&self, system: &System) -> bool {
        let mut flows = system.flows.iter();
        flows.any(|flow| bounds::is_alone(system, &bounds::members_of(system, flow)))
    }

    fn besides(
        &self,
        chosen: &[(String, System)],
        all: &[(String, System)],
        watched: bool,
    ) -> Vec<BesideRun> {
        lonely::plan(chosen, all, watched)
    }

    fn bound(
        &self,
        runs: &[Ran<'_>],
        besides: &[(BesideRun, Ran<'_>)],
        variants: &mut [VariantResult],
    ) -> Vec<AddedRun> {
        let mut alone: Vec<Alone> = Vec::new();
        for (ran, variant) in runs.iter().zip(variants.iter()) {
            for flow in &variant.flows {
                let members = bounds::members(ran.system, flow);
                if bounds::is_alone(ran.system, &members)
                    && !alone
                        .iter()
                        .any(|known| known.is_of(ran.system, &flow.name))
                {
                    let (ended, log) = (ran.seen.ledger.transactions(), ran.seen.log.as_ref());
                    alone.extend(alone::alone(ran.system, ran.names, flow, ended, log));
                }
            }
        }
        let added = lonely::read(besides);
        alone.extend(added.alone);
        for (ran, variant) in runs.iter().zip(variants) {
            bounds::add(ran.system, variant, &alone, &added.missing);
        }
        added.runs
    }

    fn promises(&self, system: &System, cycle: u64, variant: &VariantResult) -> Vec<Promise> {
        promises::of(system, cycle, variant)
    }
}
