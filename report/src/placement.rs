//! Where everything is: each tile of the chip with what runs on it, as data.
//!
//! Why it exists: a description may leave tiles and memories open, and a reader must see where everything was placed to understand which
//! parts delay each other. What it deliberately does not know: how the places were chosen, and how they are shown.

use bulkhead_model::System;
use bulkhead_model::platform::Topology;
use bulkhead_model::system::OneShot;
use serde::{Deserialize, Serialize};

/// The chip, and what is where on it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placement {
    /// Routers in a row of the network; 1 for a crossbar.
    pub columns: u16,
    /// Rows of routers.
    pub rows: u16,
    /// Tiles with harts or units, then memory tiles.
    pub tiles: Vec<Place>,
}

/// A tile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// Its number.
    pub tile: u16,
    /// The router that it is attached to.
    pub router: u16,
    /// Bytes, if it is a memory tile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<u64>,
    /// Its residents: kernel, managers, applications.
    pub residents: Vec<Resident>,
}

/// A kernel, manager or application on a tile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resident {
    /// `kernel`, or the name of a manager or application.
    pub name: String,
    /// `DOMAIN (CRITICALITY)` of an application.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domain: Option<String>,
    /// Program of an application.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// The memory tile that its memory comes from, and the number of bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<(u16, u64)>,
    /// Bound of its traffic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<String>,
}

impl Resident {
    fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            domain: None,
            program: None,
            memory: None,
            limit: None,
        }
    }
}

/// A task of the one-shot RTOS.
fn task_of(one_shot: &OneShot, task: usize) -> Resident {
    Resident {
        program: Some(one_shot.programs[task].name.clone()),
        ..Resident::named(&one_shot.tasks.tasks[task].name)
    }
}

impl Placement {
    /// Reads the placement from a system.
    pub fn of(system: &System) -> Self {
        let (columns, rows) = match system.platform.network.topology {
            Topology::Crossbar => (1, 1),
            Topology::StarMesh { columns, rows } | Topology::Mesh { columns, rows } => {
                (columns, rows)
            }
        };
        let residents = |tile: u16| {
            if let Some(one_shot) = &system.one_shot {
                return one_shot
                    .on_core(tile)
                    .into_iter()
                    .map(|task| task_of(one_shot, task))
                    .collect();
            }
            let is_kernels = system.bare.is_none() && tile == system.kernel_tile;
            let kernel = is_kernels.then(|| Resident::named("kernel"));
            let managers = system.managers.iter().filter(|one| one.tile == tile);
            let apps = system.apps.iter().filter(|app| app.tile == tile);
            let apps = apps.map(|app| {
                let domain = &system.domains[app.domain];
                Resident {
                    domain: Some(format!("{} ({})", domain.name, domain.criticality)),
                    program: Some(app.program.clone()),
                    memory: (!app.is_unit()).then_some((app.memory_tile, app.memory.0)),
                    limit: app.limit.as_ref().map(|limit| limit.noc.to_string()),
                    ..Resident::named(&app.name)
                }
            });
            let managers = managers.map(|one| Resident::named(&one.name));
            kernel.into_iter().chain(managers).chain(apps).collect()
        };
        let tiles = system.platform.tiles.iter().map(|tile| Place {
            tile: tile.id,
            router: tile.router,
            memory: None,
            residents: residents(tile.id),
        });
        let memories = system.platform.memories.iter().map(|memory| Place {
            tile: memory.id,
            router: memory.router,
            memory: Some(memory.size.0),
            residents: Vec::new(),
        });
        Self {
            columns,
            rows,
            tiles: tiles.chain(memories).collect(),
        }
    }
}
