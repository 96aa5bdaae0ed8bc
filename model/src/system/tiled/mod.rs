//! What only the tiled OS has: managers, gates, shared tiles, quotas, services.
//!
//! Why it exists: every kind of system has applications, domains, flows and memory; this module holds what one kind adds to them. What
//! it deliberately does not know: other kinds; how the kernel carries it out.

mod kernel;
mod lineage;
pub mod needs;
pub mod time;
pub(super) mod tree;
pub(super) mod write;

use crate::cpu::Cpu;
use crate::units::{Rate, Size, Time};
use serde::Serialize;

/// Bytes of the first memory tile used by kernel, boot table and modules.
pub const KERNEL_MEMORY: u64 = 16 << 20;

/// Bytes used by TileMux for each processing tile that runs something.
pub const TILE_MEMORY: u64 = 1 << 20;

/// Maximum outstanding messages of an application over all of its gates: each answer needs a slot in one buffer of 32 slots, and one is
/// kept free.
pub const APP_CREDITS: u64 = 31;

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
    /// Its name in the file; `name` is unique in the system.
    pub local: String,
    /// Limits for everything below it, on each tile.
    pub limits: Vec<TileLimit>,
    /// Kernel memory for everything below it.
    pub kernel_memory: Option<Size>,
    /// Memory of all applications, regions and managers below it.
    pub user_memory: Option<Size>,
    /// Computing time for everything below it, on each of its tiles.
    pub cpu: Option<Cpu>,
}

/// Limits of a manager's subtree on a tile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TileLimit {
    /// The tile; `None`: each tile that no other entry names.
    pub tile: Option<u16>,
    /// Traffic.
    pub noc: Option<Limit>,
    /// Endpoints.
    pub endpoints: Option<u64>,
    /// Pages for page tables.
    pub page_tables: Option<u64>,
    /// Places for activities.
    pub activities: Option<u64>,
}

/// Name of the root manager.
pub const ROOT_MANAGER: &str = "root";

/// Program of resource managers.
pub const MANAGER_PROGRAM: &str = "tiled/resmgr";

/// Bound of an application's traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Limit {
    /// Rate of the token bucket.
    pub noc: Rate,
    /// Size of the token bucket.
    pub burst: Size,
}

/// Limits of an application besides traffic and computing time; memory is limited separately.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
pub struct Quotas {
    /// Endpoints of the tile's unit.
    pub endpoints: Option<u64>,
    /// Pages for page tables.
    pub page_tables: Option<u64>,
    /// Places for activities on the tile: its own and those that it creates.
    pub activities: Option<u64>,
    /// Kernel memory.
    pub kernel_memory: Option<Size>,
}

/// A service of an application.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Service {
    /// Name; `None` for the service with gates `priority-0`, ....
    pub name: Option<String>,
    /// Maximum sessions at each gate.
    pub sessions: u32,
    /// The applications that may open them.
    pub scope: Scope,
    /// How often it is restarted after a failure.
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

/// How the multiplexer of a tile orders its applications.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum TilePolicy {
    /// Round robin with time slices.
    Throughput,
    /// Fixed priorities; applications without a `cpu` come last.
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
    /// Time slice for activities of equal rank.
    pub slice: Time,
}

/// Time slice if the description gives none: 1 ms, as in the tiled OS.
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
    /// A name under which others send to it.
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
    /// Maximum outstanding messages; 0: not counted.
    pub credits: u32,
    /// Number that the receiver sees in each message.
    pub label: u64,
    /// The priority, if it is a session.
    pub session: Option<u8>,
    /// How long its application waits for the receiver before starting.
    pub patience: Time,
}

/// A memory gate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Mgate {
    /// Name.
    pub name: String,
    /// Bytes of the region, rounded up to pages; 0: a whole module.
    pub size: Size,
    /// The region is this module (an index) and takes no memory.
    pub module: Option<usize>,
    /// The region initially contains this module (an index).
    pub fill: Option<usize>,
    /// The region belongs to this memory gate of this application: indices.
    pub of: Option<(usize, usize)>,
    /// The applications that may share the region.
    pub scope: Scope,
    /// The application may read.
    pub read: bool,
    /// The application may write.
    pub write: bool,
    /// The memory tile that holds it.
    pub memory_tile: u16,
}

/// Name of the receive gate for a device's interrupts.
pub const INTERRUPT_GATE: &str = "interrupt";

#[cfg(test)]
mod tests {
    use super::*;

    /// Waits found by following the rule unit by unit: a budget is used greedily, and each unit comes back one period after its
    /// release, which is the release of the work that used it.
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

    /// Alone on the tile, a job ends within its waits plus the response of its last budget, which is at most the budget.
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
