//! Exchange: a capability of one activity becomes one of another.
//!
//! Why it exists: this is how rights spread. What it deliberately does not know: whether the other side agreed; the kernel asks.

use crate::node::NodeId;
use crate::space::{HolderId, Plan, Space};
use crate::{Error, Result};

impl Space {
    /// Gives `to` a copy of what `from` holds under `source`. `payer` pays and must be one of the two. The copy goes when the
    /// original goes.
    ///
    /// # Errors
    /// [`Error::OutOfBounds`] if anyone else is to pay, and the errors that every operation has for its operands.
    pub fn copy(
        &mut self,
        payer: HolderId,
        (from, source): (HolderId, u16),
        (to, target): (HolderId, u16),
    ) -> Result<NodeId> {
        if payer != from && payer != to {
            return Err(Error::OutOfBounds);
        }
        let origin = self.find(from, source)?;
        self.is_free(to, target)?;
        let owner = self.owner(origin);
        let object = self.nodes[owner.index()].object;
        self.make(Plan {
            payer,
            original: Some(owner),
            ..Plan::own(to, origin, target, object)
        })
    }

    /// Checks that `count` selectors of both sides are ready for [`copy`](Self::copy), so an exchange of several is done as a
    /// whole or not at all, as far as kernel memory suffices.
    ///
    /// # Errors
    /// As [`copy`](Self::copy); [`Error::NoKernelMemory`].
    pub fn check_copies(
        &mut self,
        payer: HolderId,
        (from, source): (HolderId, u16),
        (to, target): (HolderId, u16),
        count: u16,
    ) -> Result<()> {
        source.checked_add(count).ok_or(Error::OutOfBounds)?;
        target.checked_add(count).ok_or(Error::OutOfBounds)?;
        for i in 0..count {
            let origin = self.find(from, source + i)?;
            self.is_free(to, target + i)?;
            if !self.is_live(origin) {
                return Err(Error::Revoked);
            }
            if self.nodes[origin.index()].depth >= crate::DEPTH_MAX {
                return Err(Error::TooDeep);
            }
        }
        let cost = Self::NODE_COST * u64::from(count);
        if self.kernel_memory_left(payer)? < cost {
            return Err(Error::NoKernelMemory);
        }
        Ok(())
    }
}
