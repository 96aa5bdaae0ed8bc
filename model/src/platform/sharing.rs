//! How harts and tiles share a resource.
//!
//! Why it exists: bounds depend on whether a hart has its own part of a resource or what others leave of it. What it deliberately does not
//! know: how large the resources are.

use super::Cluster;
use serde::Serialize;

/// The requesters that take turns under [`super::MemoryPolicy::Slots`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Turns {
    /// Each tile.
    #[default]
    Tile,
    /// Each hart of a cluster, and each tile without one.
    Hart,
}

impl Turns {
    /// Whether it is the default of descriptions.
    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// How harts share the miss registers of their second level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum MissRegisters {
    /// Any hart takes any free one.
    #[default]
    Shared,
    /// Each hart has an equal part of its own.
    Hart,
}

impl MissRegisters {
    /// Whether it is the default of descriptions.
    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl Cluster {
    /// Miss registers of a second level of `all` that one hart may take at once.
    pub fn registers(&self, all: u32) -> u32 {
        match self.miss_registers {
            MissRegisters::Shared => all,
            MissRegisters::Hart => all / self.harts.max(1),
        }
    }
}
