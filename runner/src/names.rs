//! Names for what the machine numbers.
//!
//! Why it exists: a report says `hog-1`, not `tile 5, activity 7`. What it deliberately does not know: where names come from; each
//! paradigm decides that.

use bulkhead_machine::types::Owner;
use std::fmt::Debug;
use std::sync::Arc;

/// Gives names to owners.
pub trait Naming: Debug + Send + Sync {
    /// Takes a marker. Returns a name if the marker completes one.
    fn hear(&mut self, tile: u16, kind: u16, value: u64) -> Option<(Owner, String)>;
    /// Applications and managers on a tile.
    fn on_tile(&self, tile: u16) -> Vec<String>;
    /// The name of an owner.
    fn owner(&self, owner: Owner) -> String;
}

/// Names of a system's parts.
#[derive(Clone, Debug)]
pub struct Names(Arc<dyn Naming>);

impl Names {
    /// Names provided by `naming`.
    pub fn of(naming: impl Naming + 'static) -> Self {
        Self(Arc::new(naming))
    }

    /// Applications and managers on a tile.
    pub fn on_tile(&self, tile: u16) -> Vec<String> {
        self.0.on_tile(tile)
    }

    /// The name of an owner.
    pub fn owner(&self, owner: Owner) -> String {
        self.0.owner(owner)
    }
}
