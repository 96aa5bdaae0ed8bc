//! How systems without a kernel are built, booted and read.
//!
//! Why it exists: it implements the seam [`Paradigm`] for this kind of system. What it deliberately does not know: other paradigms. The
//! description decides where programs are placed.

use super::{bounds, layout, mesh, promises};
use crate::error::Error;
use crate::image::BootImage;
use crate::measure::lives::{End as Ended, Ending};
use crate::measure::{Lives, MarkerEvent};
use crate::names::{Names, Naming};
use crate::observed::Observed;
use crate::paradigm::{BesideRun, Paradigm, Ran, Said};
use crate::programs::Program;
use bulkhead_abi::dtu::{Endpoint, MemoryEndpoint, TLB_READ, TLB_WRITE};
use bulkhead_abi::memory_map::PMP_WINDOW_SIZE;
use bulkhead_abi::tilemux::KERNEL_ACTIVITY;
use bulkhead_machine::machine::{Machine, Outcome};
use bulkhead_machine::types::Owner;
use bulkhead_model::System;
use bulkhead_model::platform::PlatformKind;
use bulkhead_model::system::{App, Bare as Described};
use bulkhead_report::result::{AddedRun, End, Incident, IncidentKind, VariantResult};
use bulkhead_report::verdict::Promise;

/// Programs without a kernel.
pub struct Bare;

/// Systems of other paradigms do not get here.
pub(super) fn described(system: &System) -> Result<&Described, Error> {
    let bare = system.bare.as_ref();
    bare.ok_or_else(|| Error::Machine(format!("{} has a kernel", system.name)))
}

impl Paradigm for Bare {
    fn admit(&self, _: &str, _: &System) -> Result<(), Error> {
        Ok(())
    }

    fn programs<'s>(&self, system: &'s System) -> Vec<&'s str> {
        system.apps.iter().map(|app| &*app.program).collect()
    }

    fn image(&self, system: &System, programs: &[Program]) -> Result<BootImage, Error> {
        layout::image(system, described(system)?, programs)
    }

    /// Behind a data transfer unit, a program sees only its own part of the first memory tile.
    fn prepare(&self, system: &System, machine: &mut Machine) -> Result<(), Error> {
        if system.platform.kind != PlatformKind::Tiled {
            return Ok(());
        }
        let bare = described(system)?;
        for (app, placed) in system.apps.iter().zip(&bare.programs) {
            let window = Endpoint::Memory(MemoryEndpoint {
                activity: KERNEL_ACTIVITY,
                target_tile: app.memory_tile,
                rights: (TLB_READ | TLB_WRITE) as u8,
                base: placed.offset,
                size: placed.size.min(PMP_WINDOW_SIZE),
            });
            let unit = machine.unit_mut(app.tile);
            unit.map_err(|error| Error::Machine(error.to_string()))?
                .set_endpoint(0, window);
        }
        Ok(())
    }

    fn console_tile(&self, system: &System) -> u16 {
        system.kernel_tile
    }

    /// The output of all tiles.
    fn console(&self, system: &System, _: &BootImage, machine: &Machine) -> Result<String, Error> {
        let tiles: Vec<u16> = system.platform.tiles.iter().map(|tile| tile.id).collect();
        mesh::consoles(machine, &tiles).map_err(|error| Error::Machine(error.to_string()))
    }

    fn described(&self, _: &System, console: &str) -> String {
        console.to_owned()
    }

    fn names(&self, system: &System, _: &[MarkerEvent]) -> Names {
        Names::of(Harts::of(system))
    }

    fn naming(&self, system: &System) -> Box<dyn Naming> {
        Box::new(Harts::of(system))
    }

    /// A program that ended the run with an error. Traps are reported for every paradigm.
    fn incidents(
        &self,
        system: &System,
        seen: &Said<'_>,
        _: &dyn Fn(&str, u64) -> Option<String>,
    ) -> Vec<Incident> {
        let (End::Exit { code: code @ 1.. }, Some(owner)) = (seen.end, seen.ended_by) else {
            return Vec::new();
        };
        vec![Incident {
            crash: None,
            kind: IncidentKind::Stopped,
            at: None,
            tile: owner.tile,
            application: Harts::of(system).owner(owner),
            what: format!("ended the run with exit code {code}"),
        }]
    }

    /// An unhandled trap ends the run. It belongs to the program of the hart.
    fn outside(&self, system: &System, owner: Owner) -> Option<String> {
        Harts::of(system).app(owner).map(|app| app.name.clone())
    }

    fn moved(&self, system: &System, name: &str, program: &Program) -> u64 {
        let Ok(bare) = described(system) else {
            return 0;
        };
        let mut all = system.apps.iter().zip(&bare.programs);
        let found = all.find(|(app, _)| app.name == name);
        // Every program that ran was moved before.
        let moved = found.and_then(|(app, placed)| layout::moved(app, placed, program).ok());
        moved.map_or(0, |moved| moved.by)
    }

    /// The first exit ends the run for all programs; a program counts as gone only if it ended the run with an error.
    fn lives(&self, system: &System, seen: &Observed) -> Lives {
        let mut lives = Lives::until(seen.ticks);
        let Ok(bare) = described(system) else {
            return lives;
        };
        for (app, placed) in system.apps.iter().zip(&bare.programs) {
            for &hart in &placed.harts {
                lives.begins(&app.name, Owner::new(app.tile, hart));
            }
        }
        match (seen.outcome, seen.ended_by) {
            (Outcome::Idle { .. }, _) => lives.is_idle(),
            (Outcome::Exit { code: 1.., at, .. } | Outcome::Unhandled { at, .. }, Some(owner)) => {
                lives.ends(
                    owner,
                    Ended {
                        at,
                        how: Ending::Gone,
                    },
                );
            }
            _ => {}
        }
        lives
    }

    fn serves_bounds(&self, system: &System) -> bool {
        bounds::serves(system)
    }

    fn compared(&self, system: &System) -> Vec<Owner> {
        bounds::compared(system)
    }

    fn besides(
        &self,
        chosen: &[(String, System)],
        _: &[(String, System)],
        watched: bool,
    ) -> Vec<BesideRun> {
        bounds::plan(chosen, watched)
    }

    fn bound(
        &self,
        runs: &[Ran<'_>],
        besides: &[(BesideRun, Ran<'_>)],
        variants: &mut [VariantResult],
    ) -> Vec<AddedRun> {
        bounds::add(runs, besides, variants)
    }

    fn promises(&self, system: &System, cycle: u64, variant: &VariantResult) -> Vec<Promise> {
        promises::of(system, cycle, variant)
    }
}

/// Names: a hart has the name of its program.
#[derive(Clone, Debug)]
struct Harts {
    bare: Option<Described>,
    apps: Vec<App>,
    /// Tiles whose harts are distinguished; elsewhere everything the tile does belongs to its program.
    clusters: Vec<u16>,
    /// DMA engines beside the tiles.
    engines: Vec<u16>,
}

impl Harts {
    fn of(system: &System) -> Self {
        let tiles = system.platform.tiles.iter();
        let clusters = tiles.filter(|tile| tile.cluster.is_some());
        Self {
            bare: system.bare.clone(),
            apps: system.apps.clone(),
            clusters: clusters.map(|tile| tile.id).collect(),
            engines: system.platform.engines.iter().map(|one| one.id).collect(),
        }
    }

    fn app(&self, owner: Owner) -> Option<&App> {
        // The work of a peripheral belongs to the program that uses it.
        let bare = self.bare.as_ref()?;
        let mut all = self.apps.iter().zip(&bare.programs);
        let uses = all.find(|(_, placed)| {
            let mut attached = placed.attached.iter();
            attached.any(|attached| attached.peripheral == owner.tile)
        });
        if let Some((app, _)) = uses {
            return Some(app);
        }
        let hart = match self.clusters.contains(&owner.tile) {
            true => owner.activity,
            false => 0,
        };
        let app = self.bare.as_ref()?.at(&self.apps, owner.tile, hart)?;
        self.apps.get(app)
    }
}

impl Naming for Harts {
    fn hear(&mut self, _: u16, _: u16, _: u64) -> Option<(Owner, String)> {
        None
    }

    fn on_tile(&self, tile: u16) -> Vec<String> {
        let here = self.apps.iter().filter(|app| app.tile == tile);
        here.map(|app| app.name.clone()).collect()
    }

    fn owner(&self, owner: Owner) -> String {
        match self.app(owner) {
            Some(app) => app.name.clone(),
            // The first channel is activity 1.
            None if self.engines.contains(&owner.tile) => {
                format!("channel {} of engine {}", owner.activity - 1, owner.tile)
            }
            None => format!("hart {} of tile {}", owner.activity, owner.tile),
        }
    }
}
