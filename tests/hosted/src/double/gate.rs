//! Memory: reads return the one program that the double knows, and writes are forgotten.

use super::kernel;
use bulkhead_abi::dtu::DtuError;

/// Access to memory.
#[derive(Debug)]
pub struct MemoryGate {
    endpoint: u16,
    size: u64,
}

impl MemoryGate {
    /// A gate on an endpoint.
    pub fn new(endpoint: u16, size: u64) -> Self {
        Self { endpoint, size }
    }

    /// Number of the endpoint.
    pub fn endpoint(&self) -> u16 {
        self.endpoint
    }

    /// Bytes of the region.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Reads from `offset` on.
    ///
    /// # Errors
    /// Of the unit, if the test wants one.
    pub fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<(), DtuError> {
        kernel::transfer()?;
        let program = kernel::PROGRAM;
        for (index, byte) in buffer.iter_mut().enumerate() {
            let at = usize::try_from(offset)
                .ok()
                .and_then(|at| at.checked_add(index));
            *byte = at.and_then(|at| program.get(at)).copied().unwrap_or(0);
        }
        Ok(())
    }

    /// Writes from `offset` on.
    ///
    /// # Errors
    /// Of the unit, if the test wants one.
    pub fn write(&self, _offset: u64, _data: &[u8]) -> Result<(), DtuError> {
        kernel::transfer()
    }
}
