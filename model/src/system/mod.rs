//! The software of a chip, typed, placed and with every reference resolved.
//!
//! Why it exists: runner, analysis and the canonical description for the chip's resource manager read it. What it
//! deliberately does not know: how programs are built and how the kernel carries the description out.
//!
//! Lists are flat; things refer to each other by index into [`System`]'s lists.

mod cable;
mod check;
mod kernel;
mod needs;
mod read;
mod resolve;
pub mod time;
mod tree;

use serde::Serialize;

pub use cable::lookahead;
pub(crate) use cable::nested;
pub use needs::*;
pub(crate) use read::{read, share_of};

use crate::platform::Platform;
pub use crate::tasks::Task;
use crate::units::{Rate, Size, Time};

/// Bytes of the first memory tile that kernel, boot table and modules keep.
pub const KERNEL_MEMORY: u64 = 16 << 20;
/// Bytes that TileMux keeps for each processing tile that runs something.
pub const TILE_MEMORY: u64 = 1 << 20;
/// Granularity in which memory is given away.
pub const PAGE: u64 = 4096;
/// Messages that an application can have under way over all of its gates: their answers need a slot each in one buffer of 32
/// slots, and one is kept free.
pub const APP_CREDITS: u64 = 31;

/// What runs on a chip.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct System {
    /// Name.
    pub name: String,
    /// What it shows.
    pub about: Option<String>,
    /// The chip.
    pub platform: Platform,
    /// Simulated time of a run at most.
    pub duration: Time,
    /// Number of the kernel's tile.
    pub kernel_tile: u16,
    /// Managers; the first is the root, every other one comes after its parent.
    pub managers: Vec<Manager>,
    /// Domains in the order of the file.
    pub domains: Vec<Domain>,
    /// Applications in the order of the file.
    pub apps: Vec<App>,
    /// Multiplexers that the file sets up; all others are round robin with slices of [`SLICE`].
    pub tilemux: Vec<TileMux>,
    /// Modules in the order of the file.
    pub modules: Vec<Module>,
    /// Cables between network cards.
    pub cables: Vec<Cable>,
    /// Another chip that runs at the same time.
    pub peer: Option<Peer>,
    /// Flows in the order of the file.
    pub flows: Vec<Flow>,
    /// Name of the variant that this is, if it is one.
    pub variant: Option<String>,
    /// What the variant shows.
    pub variant_about: Option<String>,
    /// The variants of the file, complete systems themselves; empty in a variant.
    pub variants: Vec<System>,
}

/// A resource manager.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Manager {
    /// Name; `root` for the root.
    pub name: String,
    /// The manager above; `None` for the root.
    pub parent: Option<usize>,
    /// Its tile.
    pub tile: u16,
    /// Its program.
    pub program: String,
    /// Its memory.
    pub memory: Size,
    /// Its name where it stands; `name` is unique in the system.
    pub local: String,
    /// Bounds of all that is below it, on each tile.
    pub limits: Vec<TileLimit>,
    /// Kernel memory of all that is below it.
    pub kernel_memory: Option<Size>,
    /// Memory of all applications, regions and managers below it.
    pub user_memory: Option<Size>,
    /// Computing time of all that is below it, on each of its tiles.
    pub cpu: Option<Cpu>,
}

/// Bounds of a manager's subtree on a tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct TileLimit {
    /// The tile; `None`: each tile that no other entry names.
    pub tile: Option<u16>,
    /// Traffic.
    pub noc: Option<Limit>,
    /// Endpoints.
    pub endpoints: Option<u64>,
    /// Pages for page tables.
    pub page_tables: Option<u64>,
}

/// Data of the host that applications read.
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
    /// A folder as an image of the file service's format with so many bytes.
    Folder(String, Size),
}

/// Name of the root manager.
pub const ROOT_MANAGER: &str = "root";
/// Program of resource managers.
pub const MANAGER_PROGRAM: &str = "tiled/resmgr";
/// Program of the clients of a streaming unit: the unit itself does the work, so it stands where a unit is, and nothing else does.
pub const UNIT_PROGRAM: &str = "accelerator/unit";

/// Applications of one criticality.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Domain {
    /// Name.
    pub name: String,
    /// Its name where it stands; `name` is unique in the system.
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
    /// Its name where it stands.
    pub local: String,
    /// Its domain.
    pub domain: usize,
    /// Its tile.
    pub tile: u16,
    /// Its program, such as `control/sensor`.
    pub program: String,
    /// Its memory, rounded up to pages.
    pub memory: Size,
    /// Its stack, rounded up to pages, a part of its memory; `None`: what the manager gives everybody.
    pub stack: Option<Size>,
    /// The memory tile that it comes from.
    pub memory_tile: u16,
    /// The run does not wait for it: a run ends when every other application has ended.
    pub background: bool,
    /// It drives its tile's network card.
    pub device: bool,
    /// Pages of its heap are mapped when they are first used.
    pub lazy_heap: bool,
    /// The application that gives it the pages of its heap.
    pub pager: Option<usize>,
    /// Values for it, in the order of the file.
    pub arguments: Vec<Argument>,
    /// Bound of its traffic; `None`: no bound.
    pub limit: Option<Limit>,
    /// Bound of its computing time.
    pub cpu: Option<Cpu>,
    /// Bounds of what it may use beside traffic and time.
    pub quotas: Quotas,
    /// What it does periodically.
    pub task: Option<Task>,
    /// What it offers to others.
    pub services: Vec<Service>,
    /// Receive gates.
    pub rgates: Vec<Rgate>,
    /// Send gates.
    pub sgates: Vec<Sgate>,
    /// Memory gates.
    pub mgates: Vec<Mgate>,
}

impl App {
    /// Whether the streaming unit of its tile works for it, and no hart.
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

/// Bound of an application's traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Limit {
    /// Rate of the token bucket.
    pub noc: Rate,
    /// Size of the token bucket.
    pub burst: Size,
}

/// Bounds of an application beside traffic and computing time; memory is bounded by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
pub struct Quotas {
    /// Endpoints of the tile's unit.
    pub endpoints: Option<u64>,
    /// Pages for page tables.
    pub page_tables: Option<u64>,
    /// Kernel memory.
    pub kernel_memory: Option<Size>,
}

/// What an application offers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Service {
    /// Name; `None` for the one whose gates are `priority-0`, ....
    pub name: Option<String>,
    /// Sessions at each gate at most.
    pub sessions: u32,
    /// Who may open them.
    pub scope: Scope,
    /// How often it is started again after a failure.
    pub restarts: u32,
}

impl Service {
    /// The name of its gate for clients of a priority.
    pub fn gate(&self, priority: impl std::fmt::Display) -> String {
        match &self.name {
            Some(name) => format!("{name}-priority-{priority}"),
            None => format!("priority-{priority}"),
        }
    }

    /// The priority that a gate of it is for; `None` for other gates.
    pub fn priority<'a>(&self, gate: &'a str) -> Option<&'a str> {
        gate.strip_prefix(&self.gate(""))
    }
}

impl App {
    /// The service that a receive gate belongs to.
    pub fn service_of(&self, gate: &str) -> Option<&Service> {
        let mut services = self.services.iter();
        services.find(|service| service.priority(gate).is_some())
    }

    /// How often it is started again after a failure.
    pub fn restarts(&self) -> u32 {
        let restarts = self.services.iter().map(|service| service.restarts);
        restarts.max().unwrap_or(0)
    }
}

/// From where something can be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// From applications of the same manager, and of those below it.
    Manager,
    /// From everywhere.
    System,
}

impl Scope {
    /// The word in descriptions.
    pub const fn name(self) -> &'static str {
        match self {
            Scope::Manager => "manager",
            Scope::System => "system",
        }
    }
}

/// Bound of an application's computing time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Cpu {
    /// Time in each period.
    pub budget: Time,
    /// The period.
    pub period: Time,
    /// Greater is more urgent; 0 on tiles with [`TilePolicy::Throughput`], where it means nothing.
    pub priority: u8,
}

impl Cpu {
    /// How long a job may wait for budgets in all, beside the response time of its last one, if jobs of this cost come at least
    /// `distance` apart. `None`: the quota does not pay for them.
    ///
    /// A budget comes back one period after the work that used it was released. If a job's budgets are all back before the next
    /// job comes, it waits only between them. Otherwise whatever was used before is back within a period, so k jobs in a row have
    /// what they need after as many periods as budgets.
    pub fn waits(self, cost: Time, distance: Time) -> Option<Time> {
        const JOBS: u128 = 10_000;
        let [cost, distance, budget, period] =
            [cost, distance, self.budget, self.period].map(|time| u128::from(time.0));
        if budget == 0 || distance == 0 || cost * period > budget * distance {
            return None;
        }
        let budgets = |jobs: u128| (jobs * cost).div_ceil(budget);
        let waits = if budgets(1) * period <= distance {
            (budgets(1).max(1) - 1) * period
        } else if cost * period.div_ceil(distance) <= budget {
            0
        } else {
            let mut worst = 0;
            let mut jobs = 1;
            loop {
                let there = budgets(jobs) * period;
                worst = worst.max(there - (there.min((jobs - 1) * distance)));
                if there <= jobs * distance {
                    break worst;
                }
                jobs += 1;
                if jobs > JOBS {
                    return None;
                }
            }
        };
        u64::try_from(waits).ok().map(Time)
    }
}

/// How the multiplexer of a tile orders its applications.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum TilePolicy {
    /// Round robin with time slices.
    Throughput,
    /// Fixed priorities; who has no `cpu` comes last.
    Realtime,
}

impl TilePolicy {
    /// The word in descriptions.
    pub const fn name(self) -> &'static str {
        match self {
            TilePolicy::Throughput => "throughput",
            TilePolicy::Realtime => "realtime",
        }
    }
}

/// The multiplexer of a tile that applications may share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct TileMux {
    /// The tile.
    pub tile: u16,
    /// The order.
    pub policy: TilePolicy,
    /// Time slice for those of equal rank.
    pub slice: Time,
}

/// Time slice where the description gives none: 1 ms, as in the tiled OS.
pub const SLICE: Time = Time(1_000_000_000);

/// A receive gate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Rgate {
    /// Name.
    pub name: String,
    /// Messages that it holds.
    pub slots: u32,
    /// Bytes of a message, header included.
    pub slot_size: u32,
    /// A name by which others send to it.
    pub global: Option<String>,
    /// From where.
    pub scope: Scope,
}

/// A send gate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Sgate {
    /// Name.
    pub name: String,
    /// The application that receives.
    pub to: usize,
    /// Its receive gate.
    pub gate: usize,
    /// Messages under way at most; 0: not counted.
    pub credits: u32,
    /// Number that the receiver sees in each message.
    pub label: u64,
    /// The priority, if it is a session.
    pub session: Option<u8>,
    /// How long its application waits, before its start, for whom it leads to.
    pub patience: Time,
}

/// A memory gate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Mgate {
    /// Name.
    pub name: String,
    /// Bytes of the region, rounded up to pages; 0: a whole module.
    pub size: Size,
    /// The region is this module: an index. Then it takes no memory.
    pub module: Option<usize>,
    /// The region begins with the contents of this module: an index.
    pub fill: Option<usize>,
    /// The region belongs to this memory gate of this application: indices.
    pub of: Option<(usize, usize)>,
    /// Who may share the region.
    pub scope: Scope,
    /// The application may read.
    pub read: bool,
    /// The application may write.
    pub write: bool,
    /// The memory tile that holds it.
    pub memory_tile: u16,
}

/// A cable between two network cards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Cable {
    /// The tile whose card is at one end.
    pub from: u16,
    /// The other end.
    pub to: CableEnd,
    /// From the moment when a frame has left to the moment when it has arrived.
    pub delay: Time,
    /// Of a million frames so many are lost.
    pub loss: u32,
    /// Of a million frames so many arrive twice.
    pub duplicate: u32,
    /// Of a million frames so many are late.
    pub reorder: u32,
    /// By how much.
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
    /// What runs there; it has no variants and no peer.
    pub system: Box<System>,
}

/// Name of the receive gate for the interrupts of a device.
pub const INTERRUPT_GATE: &str = "interrupt";

/// A chain of work whose latency is measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Flow {
    /// Name.
    pub name: String,
    /// Where it begins.
    pub from: usize,
    /// Where it ends.
    pub to: usize,
    /// From begin to end at most.
    pub deadline: Option<Time>,
}

impl System {
    /// The application with this name.
    pub fn app(&self, name: &str) -> Option<&App> {
        self.apps.iter().find(|app| app.name == name)
    }

    /// Whether a manager is another one or below it.
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
            .chain(self.peer.iter().flat_map(|peer| peer.system.programs()))
            .collect();
        programs.sort();
        programs.dedup();
        programs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Waits by following the rule unit by unit: a budget is used greedily and each unit comes back a period after its release,
    /// which is the release of the work that used it.
    fn followed(cpu: Cpu, cost: u64, distance: u64, jobs: u64) -> u64 {
        let (budget, period) = (cpu.budget.0, cpu.period.0);
        let mut back: Vec<u64> = Vec::new();
        let mut worst = 0;
        let mut now = 0;
        for job in 0..jobs {
            let arrival = job * distance;
            now = now.max(arrival);
            let mut left = cost;
            while left > 0 {
                back.retain(|&at| at > now);
                if (back.len() as u64) < budget {
                    back.push(now + period);
                    left -= 1;
                    now += 1;
                } else {
                    now += 1;
                }
            }
            worst = worst.max(now - arrival);
        }
        worst
    }

    /// Alone on the tile a job ends within its waits and the response of its last budget, which is at most the budget.
    #[test]
    fn waits_cover_what_a_server_does() {
        for budget in 1..5 {
            for period in budget..9 {
                for cost in 1..8 {
                    for distance in 1..20 {
                        let cpu = Cpu {
                            budget: Time(budget),
                            period: Time(period),
                            priority: 1,
                        };
                        let Some(waits) = cpu.waits(Time(cost), Time(distance)) else {
                            assert!(cost * period > budget * distance);
                            continue;
                        };
                        let worst = followed(cpu, cost, distance, 60);
                        assert!(
                            worst <= waits.0 + budget.min(cost),
                            "{budget} in {period}, {cost} in {distance}: {worst} > {waits:?}"
                        );
                    }
                }
            }
        }
    }
}
