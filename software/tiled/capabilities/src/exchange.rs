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
}
