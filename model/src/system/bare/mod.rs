//! Systems without a kernel: several programs, each on its harts and in its own part of memory.
//!
//! Why it exists: on a chip whose harts share caches and memory, interference depends on where programs are placed and which ways and banks
//! they use; a description specifies that. What it deliberately does not know: how programs are built, loaded and started.
//!
//! Domains, applications and flows are those of the tiled OS, so results name and judge them in the same way; managers, gates and limits do
//! not exist.

mod attach;
mod check;
mod colour;
mod place;
mod read;
mod rings;
mod write;

pub(crate) use check::tiled;
pub(crate) use read::read;
pub(crate) use write::write;

use crate::platform::Share;
use serde::Serialize;

/// Alignment and granularity of a program's memory in bytes.
pub const GRANULE: u64 = 4096;

/// The additional needs of applications here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Bare {
    /// For each application of the system: where it is.
    pub programs: Vec<Placed>,
}

/// Where a program is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Placed {
    /// Positions of its harts in its tile, in order; 0 is the only one on a tile without a cluster.
    pub harts: Vec<u16>,
    /// Address of its memory as seen by its harts.
    pub base: u64,
    /// Bytes of its memory from `base` on, a multiple of [`GRANULE`].
    pub size: u64,
    /// The part of it in the tightly coupled memories of its tile, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tcm: Option<Coupled>,
    /// Further ranges of its memory, as addresses and bytes: behind an address translator, memory of one colour is not contiguous.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub more: Vec<(u64, u64)>,
    /// Offset of its memory in the window of its memory tile; 0 in a local memory.
    pub offset: u64,
    /// First way and number of ways of the second level that its harts may fill, if the description says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ways: Option<(u32, u32)>,
    /// The share of each of its harts of each memory with a bandwidth controller, if the description says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share: Option<Share>,
    /// The peripherals that it uses.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub attached: Vec<Attached>,
    /// The programs whose harts it may interrupt, by their places among the applications.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rings: Vec<usize>,
}

/// A peripheral of a program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Attached {
    /// Its number on the network.
    pub peripheral: u16,
    /// The file with its content, relative to the description.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
}

/// The part of a program in the tightly coupled memories of its tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Coupled {
    /// Everything: its memory is there.
    Program,
    /// Its stacks, which end where the memories end.
    Stack {
        /// First address.
        base: u64,
        /// Bytes.
        size: u64,
    },
}

impl Bare {
    /// Whether a program uses doorbells: it rings another one, or another one may ring it.
    pub fn has_bells(&self, program: usize) -> bool {
        let rung = self.programs.iter().any(|one| one.rings.contains(&program));
        rung || !self.programs[program].rings.is_empty()
    }

    /// The application that runs on the hart at a position of a tile; `apps` are the tiles of the applications.
    pub fn at(&self, apps: &[super::App], tile: u16, hart: u16) -> Option<usize> {
        let mut all = apps.iter().zip(&self.programs);
        all.position(|(app, placed)| app.tile == tile && placed.harts.contains(&hart))
    }
}
