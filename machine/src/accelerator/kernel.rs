//! The kernel's requests to a streaming unit.
//!
//! Why it exists: the unit answers them as TileMux does, so the kernel needs to know nothing new. What it deliberately does
//! not know: what clients ask for.

use super::context::{Context, Mapping};
use super::{Accelerator, Later, Ports};
use bulkhead_abi::accelerator::Request;
use bulkhead_abi::tilemux::{Request as R, TileMuxError};

/// Maximum number of clients.
const CONTEXTS: usize = 4;

impl Accelerator {
    /// Carries out what the kernel asks, as TileMux would.
    ///
    /// # Errors
    /// It must wait for memory, and has done nothing yet.
    pub(super) fn obey(
        &mut self,
        ports: &mut dyn Ports,
        request: R,
    ) -> Result<TileMuxError, Later> {
        if let R::Create { activity, .. } = request {
            if self.contexts.len() == CONTEXTS {
                return Ok(TileMuxError::Full);
            }
            self.contexts.push(Context::new(activity));
            return Ok(TileMuxError::None);
        }
        let (R::Map { activity, .. }
        | R::SetBucket { activity, .. }
        | R::Start { activity, .. }
        | R::Wake { activity }
        | R::Stop { activity, .. }) = request
        else {
            // Budgets and everything else that concerns harts do not exist here.
            return Ok(TileMuxError::None);
        };
        let (operation, row) = (self.config.operation, self.config.row);
        let Some(context) = self.context(activity) else {
            return Ok(TileMuxError::NoActivity);
        };
        match request {
            R::Map {
                address,
                physical,
                pages,
                ..
            } => context.mappings.push(Mapping {
                address,
                physical,
                pages,
            }),
            R::SetBucket { bucket, .. } => context.bucket = bucket,
            R::Wake { .. } => context.woken = true,
            R::Start { .. } => {
                let Some((gates, paths)) = context.gates_of(ports)? else {
                    return Ok(TileMuxError::WrongState);
                };
                (context.gates, context.paths) = (Some(gates), paths);
                if gates.requests.is_none() {
                    let all = Request::until_end(gates.width);
                    context.take(operation, row, Some(all), None);
                }
                self.insert_pages(ports, activity);
            }
            _ => self.remove(activity),
        }
        Ok(TileMuxError::None)
    }
}
