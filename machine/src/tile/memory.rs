//! A tile's memory as used by the unit and the network card.
//!
//! Why it exists: both move their bytes block by block through the same caches and windows, each block when its line is present. It
//! does not know what they do with the bytes.

use super::{Below, Local};
use crate::cache::Hierarchy;
use crate::dtu::{Dtu, LocalFault};
use crate::fabric::Fabric;
use crate::local_token::LocalToken;
use crate::types::{Block, Owner, Tick};

/// A way into the tile's memory.
pub(super) struct Port<'a> {
    /// `None` while the unit itself is the caller, or without a unit.
    pub unit: Option<&'a mut Dtu>,
    pub caches: &'a mut Hierarchy,
    pub local: &'a mut Local,
    pub fabric: &'a mut Fabric,
}

impl Port<'_> {
    /// An access within a line. `Some`: its bytes have moved, and it is done at that moment. Otherwise they move when the line with the
    /// token arrives.
    pub fn access(
        &mut self,
        physical: u64,
        mut block: Block<'_>,
        owner: Owner,
        token: LocalToken,
    ) -> Result<Option<Tick>, LocalFault> {
        let (bytes, write) = (block.len(), block.is_write());
        let fault = LocalFault { address: physical };
        let window = self.local.window(physical, bytes as u64, write);
        window.ok_or(fault)?;
        let written = match &block {
            Block::Read(_) => None,
            Block::Write(data) => Some(*data),
        };
        let name = self.local.name(physical);
        self.caches.carry(token, name, bytes, written);
        let mut lower = Below {
            unit: self.unit.as_deref_mut(),
            local: self.local,
            fabric: self.fabric,
        };
        let (now, bytes) = (lower.local.now, bytes as u32);
        let at = self
            .caches
            .unit_access(now, name, bytes, write, owner, token, &mut lower);
        if at.is_some() {
            let carried = self.caches.take_carried(token).ok_or(fault)?;
            if let Block::Read(buffer) = &mut block {
                buffer.copy_from_slice(carried.bytes());
            }
        }
        Ok(at)
    }
}
