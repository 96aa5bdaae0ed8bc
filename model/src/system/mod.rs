//! The software of a chip, typed, placed and with every reference resolved.
//!
//! Why it exists: runner, analysis and the canonical description for the chip's resource manager read it. What it
//! deliberately does not know: how programs are built and how the kernel carries the description out.
//!
//! Lists are flat; things refer to each other by index into [`System`]'s lists.

pub mod bare;
mod cable;
mod check;
pub mod oneshot;
mod parts;
mod read;
mod resolve;
mod task_systems;
pub mod tiled;

use serde::Serialize;

pub use bare::Bare;
pub use cable::lookahead;
pub(crate) use cable::nested;
pub use oneshot::OneShot;
pub(crate) use read::read;
pub use task_systems::{priority_of_tile, task_systems};
pub use tiled::needs::*;
pub use tiled::{time, *};

pub use crate::cpu::Cpu;
pub use crate::platform::PAGE;
use crate::platform::Platform;
pub use crate::tasks::Task;
use crate::units::{Size, Time};
use crate::writer::Writer;

/// Writes a system. `complete`: with the platform, so that no other file is needed.
pub(crate) fn write(writer: &mut Writer, system: &System, complete: bool) {
    match (&system.one_shot, &system.bare) {
        (Some(one_shot), _) => oneshot::write(writer, system, one_shot),
        (None, Some(bare)) => bare::write(writer, system, bare),
        (None, None) => tiled::write::write(writer, system, complete),
    }
}

/// A system: the software of a chip.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct System {
    /// Name.
    pub name: String,
    /// What it shows.
    pub about: Option<String>,
    /// The chip.
    pub platform: Platform,
    /// Maximum simulated time of a run.
    pub duration: Time,
    /// Number of the kernel's tile.
    pub kernel_tile: u16,
    /// Managers; the first is the root, and every other one comes after its parent.
    pub managers: Vec<Manager>,
    /// Domains in the order of the file.
    pub domains: Vec<Domain>,
    /// Applications in the order of the file.
    pub apps: Vec<App>,
    /// Multiplexers configured in the file; all others are round robin with slices of [`SLICE`].
    pub tilemux: Vec<TileMux>,
    /// Modules in the order of the file.
    pub modules: Vec<Module>,
    /// Cables between network cards.
    pub cables: Vec<Cable>,
    /// Another chip that runs at the same time.
    pub peer: Option<Peer>,
    /// Flows in the order of the file.
    pub flows: Vec<Flow>,
    /// The tasks, if this is a one-shot RTOS system; managers, domains, applications and their parts are then empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub one_shot: Option<OneShot>,
    /// The additional needs of the applications of a system without a kernel; managers, gates and their parts are then empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bare: Option<Bare>,
    /// Name of the variant, if this is one.
    pub variant: Option<String>,
    /// What the variant shows.
    pub variant_about: Option<String>,
    /// The variant demonstrates how deadlines are missed: misses are not failures.
    pub misses_expected: bool,
    /// The variants of the file, complete systems themselves; empty in a variant.
    pub variants: Vec<System>,
}

/// Host data that applications read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Module {
    /// Name.
    pub name: String,
    /// Where it comes from.
    pub source: ModuleSource,
}

/// Where a module comes from; paths are relative to the description.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ModuleSource {
    /// A file as it is.
    File(String),
    /// A folder, as an image of this size in bytes in the file service's format.
    Folder(String, Size),
}

/// Program of the clients of a streaming unit. The unit itself does the work, so this program, and no other, belongs on tiles with a
/// unit.
pub const UNIT_PROGRAM: &str = "accelerator/unit";

/// Applications of one criticality.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Domain {
    /// Name.
    pub name: String,
    /// Its name in the file; `name` is unique in the system.
    pub local: String,
    /// `A` (most critical) to `E`.
    pub criticality: char,
    /// Its manager.
    pub manager: usize,
}

/// An application.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct App {
    /// Name, unique in the system: `MANAGER.APP` if several managers have an application of this name.
    pub name: String,
    /// Its name in the file.
    pub local: String,
    /// Its domain.
    pub domain: usize,
    /// Its tile.
    pub tile: u16,
    /// Its program, such as `control/sensor`.
    pub program: String,
    /// Its memory, rounded up to pages.
    pub memory: Size,
    /// Its stack, rounded up to pages, part of its memory; `None`: the manager's default.
    pub stack: Option<Size>,
    /// The memory tile that it comes from.
    pub memory_tile: u16,
    /// The run does not wait for it: a run ends when every foreground application has ended.
    pub background: bool,
    /// It drives its tile's network card.
    pub device: bool,
    /// Pages of its heap are mapped on first use.
    pub lazy_heap: bool,
    /// The application that provides the pages of its heap.
    pub pager: Option<usize>,
    /// Values for it, in the order of the file.
    pub arguments: Vec<Argument>,
    /// Bound of its traffic; `None`: no bound.
    pub limit: Option<Limit>,
    /// Bound of its computing time.
    pub cpu: Option<Cpu>,
    /// Limits of what it may use besides traffic and time.
    pub quotas: Quotas,
    /// Its periodic work.
    pub task: Option<Task>,
    /// Its services for others.
    pub services: Vec<Service>,
    /// Receive gates.
    pub rgates: Vec<Rgate>,
    /// Send gates.
    pub sgates: Vec<Sgate>,
    /// Memory gates.
    pub mgates: Vec<Mgate>,
}

impl App {
    /// Whether its tile's streaming unit, rather than a hart, works for it.
    pub fn is_unit(&self) -> bool {
        self.program == UNIT_PROGRAM
    }
}

/// A value for an application.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Argument {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: String,
}

impl App {
    /// The service that a receive gate belongs to.
    pub fn service_of(&self, gate: &str) -> Option<&Service> {
        let mut services = self.services.iter();
        services.find(|service| service.priority(gate).is_some())
    }

    /// How often it is restarted after a failure.
    pub fn restarts(&self) -> u32 {
        let restarts = self.services.iter().map(|service| service.restarts);
        restarts.max().unwrap_or(0)
    }
}

/// A cable between two network cards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Cable {
    /// The tile whose card is at one end.
    pub from: u16,
    /// The other end.
    pub to: CableEnd,
    /// Time from a frame's departure until its arrival.
    pub delay: Time,
    /// Frames lost, per million.
    pub loss: u32,
    /// Frames that arrive twice, per million.
    pub duplicate: u32,
    /// Late frames, per million.
    pub reorder: u32,
    /// The delay of late frames.
    pub late: Time,
    /// Seed of the chance.
    pub seed: u32,
}

/// Where a cable ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum CableEnd {
    /// At a tile of this chip.
    Here(u16),
    /// At a tile of the peer's chip.
    Peer(u16),
}

/// Another chip with its software.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Peer {
    /// Name.
    pub name: String,
    /// The system that runs there; it has no variants and no peer.
    pub system: Box<System>,
}

/// A chain of work whose latency is measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Flow {
    /// Name.
    pub name: String,
    /// Where it begins.
    pub from: usize,
    /// Where it ends.
    pub to: usize,
    /// Longest time from begin to end.
    pub deadline: Option<Time>,
}

impl System {
    /// The application with this name.
    pub fn app(&self, name: &str) -> Option<&App> {
        self.apps.iter().find(|app| app.name == name)
    }

    /// Whether a manager is another one or is below it.
    pub fn is_within(&self, manager: usize, above: usize) -> bool {
        let mut at = Some(manager);
        while let Some(index) = at {
            if index == above {
                return true;
            }
            at = self.managers[index].parent;
        }
        false
    }

    /// The manager of an application.
    pub fn manager_of(&self, app: usize) -> usize {
        self.domains[self.apps[app].domain].manager
    }

    /// The multiplexer of a tile.
    pub fn tilemux(&self, tile: u16) -> TileMux {
        let found = self.tilemux.iter().find(|mux| mux.tile == tile).copied();
        found.unwrap_or(TileMux {
            tile,
            policy: TilePolicy::Throughput,
            slice: SLICE,
        })
    }

    /// The systems to run, in order: the variants, or the system itself if there are none.
    pub fn runs(&self) -> Vec<&System> {
        if self.variants.is_empty() {
            vec![self]
        } else {
            self.variants.iter().collect()
        }
    }

    /// Every program that the system needs, managers included, sorted and without duplicates.
    pub fn programs(&self) -> Vec<String> {
        let mut programs: Vec<String> = self
            .apps
            .iter()
            .map(|app| app.program.clone())
            .chain(self.managers.iter().map(|manager| manager.program.clone()))
            .chain(self.variants.iter().flat_map(System::programs))
            .chain(
                self.one_shot
                    .iter()
                    .flat_map(|one_shot| one_shot.programs.iter().map(|one| one.name.clone())),
            )
            .chain(self.peer.iter().flat_map(|peer| peer.system.programs()))
            .collect();
        programs.sort();
        programs.dedup();
        programs
    }
}
