//! Systems without a kernel: several programs, each on its harts and in its own part of memory.
//!
//! Why it exists: on a chip whose harts share caches and memory, who disturbs whom depends on where programs lie and which ways and banks they
//! use; a description says that. What it deliberately does not know: how programs are built, loaded and started.
//!
//! Domains, applications and flows are those of the tiled OS, so that results name and judge them in the same way; managers, gates and limits
//! do not exist.

mod check;
mod place;
mod read;
mod write;

pub(crate) use check::tiled;
pub(crate) use read::read;
pub(crate) use write::write;

use serde::Serialize;

/// Alignment and granularity of a program's memory in bytes.
pub const GRANULE: u64 = 4096;

/// What applications need besides what every application has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Bare {
    /// For each application of the system: where it is.
    pub programs: Vec<Placed>,
}

/// Where a program is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Placed {
    /// Places of its harts in its tile, in order; 0 is the only one of a tile without a cluster.
    pub harts: Vec<u16>,
    /// Address of its memory as its harts have it.
    pub base: u64,
    /// Bytes of its memory, a multiple of [`GRANULE`].
    pub size: u64,
    /// Offset of its memory in its memory tile; 0 in a local memory.
    pub offset: u64,
    /// First way and number of ways of the second level that fills for its harts may take, if the description says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ways: Option<(u32, u32)>,
}

impl Bare {
    /// The application that runs on the hart at a place of a tile; `apps` are the tiles of the applications.
    pub fn at(&self, apps: &[super::App], tile: u16, hart: u16) -> Option<usize> {
        let mut all = apps.iter().zip(&self.programs);
        all.position(|(app, placed)| app.tile == tile && placed.harts.contains(&hart))
    }
}
