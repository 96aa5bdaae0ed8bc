//! A memory that performs requests: loads, stores, and atomic operations with reservations.
//!
//! Why it exists: local memories and external memory perform the same requests of harts on a mesh, each request at one moment. What it
//! deliberately does not know: when that moment is, and what the request costs.

use crate::hart::{LineBytes, RemoteOperation, modify};
use crate::types::Owner;

/// Reservations of eight bytes, at most one per owner: a hart is one.
#[derive(Clone, Debug, Default)]
pub struct Reservations(Vec<(Owner, u64)>);

/// The eight bytes around an offset.
const fn word(offset: u64) -> u64 {
    offset & !7
}

impl Reservations {
    /// At least one byte is written: reservations there end.
    #[inline]
    pub fn end(&mut self, offset: u64, bytes: u64) {
        if !self.0.is_empty() {
            let written = word(offset)..=word(offset + bytes - 1);
            self.0.retain(|(_, at)| !written.contains(at));
        }
    }

    /// An owner reserves the eight bytes around an offset.
    pub fn reserve(&mut self, owner: Owner, offset: u64) {
        self.0.retain(|(by, _)| *by != owner);
        self.0.push((owner, word(offset)));
    }

    /// Whether an owner's reservation is valid for an offset.
    pub fn has(&self, owner: Owner, offset: u64) -> bool {
        self.0.contains(&(owner, word(offset)))
    }

    /// Ends an owner's reservation. Returns whether it was still valid for this offset.
    pub fn take(&mut self, owner: Owner, offset: u64) -> bool {
        let kept = self.has(owner, offset);
        self.0.retain(|(by, _)| *by != owner);
        kept
    }

    /// Writes the low bytes of a value. Reservations there end.
    #[inline]
    pub fn write(&mut self, memory: &mut [u8], offset: u64, bytes: u8, value: u64) {
        self.end(offset, bytes.into());
        LineBytes::write(memory, offset, bytes, value);
    }

    /// Performs an owner's request on a memory. Returns the value for the answer.
    pub fn perform(
        &mut self,
        memory: &mut [u8],
        owner: Owner,
        offset: u64,
        bytes: u8,
        operation: RemoteOperation,
    ) -> u64 {
        match operation {
            RemoteOperation::Load => LineBytes::read(memory, offset, bytes),
            RemoteOperation::Store(value) => {
                self.write(memory, offset, bytes, value);
                0
            }
            RemoteOperation::Reserve => {
                self.reserve(owner, offset);
                LineBytes::read(memory, offset, bytes)
            }
            RemoteOperation::Conditional(value) => {
                let kept = self.take(owner, offset);
                if kept {
                    self.write(memory, offset, bytes, value);
                }
                u64::from(!kept)
            }
            RemoteOperation::Modify(function, operand) => {
                let old = LineBytes::read(memory, offset, bytes);
                let value = modify(function, bytes, old, operand);
                self.write(memory, offset, bytes, value);
                old
            }
        }
    }
}
