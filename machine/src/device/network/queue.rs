//! A split virtqueue as the device sees it.
//!
//! Why it exists: everything in a queue is written by a driver that may be hostile, so every number is checked here and
//! nowhere else: a chain is never longer than the queue, an index never leads outside of it, a length never overflows. What
//! it deliberately does not know: frames, time.
//!
//! Layout: Virtual I/O Device Version 1.2, section 2.7.

use bulkhead_abi::network::{DESCRIPTOR_NEXT, DESCRIPTOR_WRITE};

/// The driver broke the rules of a queue; the device stops until it is reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broken;

/// Memory as the device may use it, by the driver's addresses.
pub trait Memory {
    /// Reads; false if not all of it may be read.
    fn load(&self, address: u64, buffer: &mut [u8]) -> bool;
    /// Writes; false, and nothing written, if not all of it may be written.
    fn store(&mut self, address: u64, data: &[u8]) -> bool;
}

/// A piece of memory of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// First byte.
    pub address: u64,
    /// Bytes.
    pub bytes: u32,
    /// The device writes it.
    pub writable: bool,
}

/// A chain of descriptors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain {
    /// The first descriptor.
    pub head: u16,
    /// Addresses of the descriptors themselves.
    pub descriptors: Vec<u64>,
    /// What they describe.
    pub segments: Vec<Segment>,
}

/// A queue.
#[derive(Clone, Copy, Debug, Default)]
pub struct Queue {
    /// Entries, a power of two.
    pub size: u16,
    /// The driver lets the device use it.
    pub ready: bool,
    /// Address of the descriptors.
    pub descriptors: u64,
    /// Address of the available ring.
    pub driver: u64,
    /// Address of the used ring.
    pub device: u64,
    /// The next entry of the available ring.
    pub next: u16,
    /// The next entry of the used ring.
    pub used: u16,
}

fn half(memory: &impl Memory, address: u64) -> Result<u16, Broken> {
    let mut bytes = [0; 2];
    match memory.load(address, &mut bytes) {
        true => Ok(u16::from_le_bytes(bytes)),
        false => Err(Broken),
    }
}

fn offset(base: u64, offset: u64) -> Result<u64, Broken> {
    base.checked_add(offset).ok_or(Broken)
}

impl Queue {
    /// Address of the available ring's flags.
    pub fn flags_address(&self) -> u64 {
        self.driver
    }

    /// Address of the available ring's index.
    pub fn index_address(&self) -> u64 {
        self.driver.wrapping_add(2)
    }

    /// Address of the next entry of the available ring.
    pub fn entry_address(&self) -> u64 {
        let entry = u64::from(self.next & (self.size - 1));
        self.driver.wrapping_add(4 + 2 * entry)
    }

    /// Address of the next entry of the used ring.
    pub fn used_entry_address(&self) -> u64 {
        let entry = u64::from(self.used & (self.size - 1));
        self.device.wrapping_add(4 + 8 * entry)
    }

    /// Address of the used ring's index.
    pub fn used_index_address(&self) -> u64 {
        self.device.wrapping_add(2)
    }

    /// Whether the driver wants no interrupts.
    ///
    /// # Errors
    /// [`Broken`] if the ring cannot be read.
    pub fn is_silent(&self, memory: &impl Memory) -> Result<bool, Broken> {
        let flags = half(memory, self.flags_address())?;
        Ok(flags & bulkhead_abi::network::NO_INTERRUPT != 0)
    }

    /// Entries of the available ring that the device has not taken.
    ///
    /// # Errors
    /// [`Broken`] if the ring cannot be read, or promises more than the queue has.
    pub fn available(&self, memory: &impl Memory) -> Result<u16, Broken> {
        let count = half(memory, self.index_address())?.wrapping_sub(self.next);
        match count <= self.size {
            true => Ok(count),
            false => Err(Broken),
        }
    }

    /// The next chain; it is not taken by that.
    ///
    /// # Errors
    /// [`Broken`] if it leads outside of the queue or in a circle, or a descriptor cannot be read.
    pub fn chain(&self, memory: &impl Memory) -> Result<Chain, Broken> {
        let head = half(memory, self.entry_address())?;
        let mut chain = Chain {
            head,
            descriptors: Vec::new(),
            segments: Vec::new(),
        };
        let mut next = head;
        loop {
            // A chain visits each descriptor at most once.
            if next >= self.size || chain.segments.len() >= usize::from(self.size) {
                return Err(Broken);
            }
            let address = offset(self.descriptors, 16 * u64::from(next))?;
            let mut bytes = [0; 16];
            if !memory.load(address, &mut bytes) {
                return Err(Broken);
            }
            let word = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
            let flags = word(12);
            if flags & !(DESCRIPTOR_NEXT | DESCRIPTOR_WRITE) != 0 {
                // Tables of descriptors in memory were not offered.
                return Err(Broken);
            }
            let segment = Segment {
                address: u64::from_le_bytes([
                    bytes[0], bytes[1], bytes[2], bytes[3], bytes[4], bytes[5], bytes[6], bytes[7],
                ]),
                bytes: u32::from_le_bytes([bytes[8], bytes[9], bytes[10], bytes[11]]),
                writable: flags & DESCRIPTOR_WRITE != 0,
            };
            chain.descriptors.push(address);
            chain.segments.push(segment);
            if flags & DESCRIPTOR_NEXT == 0 {
                return Ok(chain);
            }
            next = word(14);
        }
    }

    /// Gives a chain back; `bytes` were written into it.
    ///
    /// # Errors
    /// [`Broken`] if the ring cannot be written.
    pub fn give_back(
        &mut self,
        memory: &mut impl Memory,
        head: u16,
        bytes: u32,
    ) -> Result<(), Broken> {
        let mut entry = [0; 8];
        entry[..4].copy_from_slice(&u32::from(head).to_le_bytes());
        entry[4..].copy_from_slice(&bytes.to_le_bytes());
        let next = self.used.wrapping_add(1);
        let done = memory.store(self.used_entry_address(), &entry)
            && memory.store(self.used_index_address(), &next.to_le_bytes());
        self.used = next;
        match done {
            true => Ok(()),
            false => Err(Broken),
        }
    }
}

impl Chain {
    /// Bytes of all segments, if all of them go in one direction; more than `most` is none either.
    pub fn bytes(&self, writable: bool, most: u64) -> Option<u64> {
        let same = self.segments.iter().all(|s| s.writable == writable);
        let sum = self.segments.iter().map(|s| u64::from(s.bytes)).sum();
        (same && sum <= most).then_some(sum)
    }

    /// The pieces that hold the first `bytes` bytes.
    pub fn pieces(&self, mut bytes: u64) -> Vec<(u64, u64)> {
        let mut pieces = Vec::new();
        for segment in &self.segments {
            let length = u64::from(segment.bytes).min(bytes);
            if length > 0 {
                pieces.push((segment.address, length));
            }
            bytes -= length;
        }
        pieces
    }
}
