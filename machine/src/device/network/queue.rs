//! A split virtqueue as the device sees it.
//!
//! Why it exists: everything in a queue is written by a driver that may be hostile, so every number is checked here and
//! nowhere else: a chain is never longer than the queue, an index never leads outside it, and a length never overflows.
//! What it deliberately does not know: frames, time, memory.
//!
//! Layout: Virtual I/O Device Version 1.2, section 2.7.

use bulkhead_abi::network::{DESCRIPTOR_NEXT, DESCRIPTOR_WRITE};

/// The driver broke the rules of a queue; the device stops until it is reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broken;

/// One memory segment of a chain.
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
    /// The memory that they describe.
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

/// Bytes of a descriptor.
pub const DESCRIPTOR: usize = 16;

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

    /// Entries of the available ring that the device has not taken, if its index is `index`.
    ///
    /// # Errors
    /// [`Broken`] if the ring promises more than the queue has.
    pub fn available(&self, index: u16) -> Result<u16, Broken> {
        let count = index.wrapping_sub(self.next);
        match count <= self.size {
            true => Ok(count),
            false => Err(Broken),
        }
    }

    /// The chain that begins with the descriptor `head`, whose contents are not known yet.
    ///
    /// # Errors
    /// [`Broken`] if that is outside the queue.
    pub fn chain(&self, head: u16) -> Result<Chain, Broken> {
        let mut chain = Chain {
            head,
            descriptors: Vec::new(),
            segments: Vec::new(),
        };
        self.follow(&mut chain, head)?;
        Ok(chain)
    }

    /// Adds the descriptor `next` to a chain.
    fn follow(&self, chain: &mut Chain, next: u16) -> Result<(), Broken> {
        // A chain visits each descriptor at most once.
        if next >= self.size || chain.descriptors.len() >= usize::from(self.size) {
            return Err(Broken);
        }
        let address = offset(self.descriptors, DESCRIPTOR as u64 * u64::from(next))?;
        chain.descriptors.push(address);
        Ok(())
    }

    /// Processes the last descriptor of a chain. Returns whether there is another one.
    ///
    /// # Errors
    /// [`Broken`] if it leads outside the queue or in a circle.
    pub fn take(&self, chain: &mut Chain, bytes: &[u8; DESCRIPTOR]) -> Result<bool, Broken> {
        let word = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        let flags = word(12);
        if flags & !(DESCRIPTOR_NEXT | DESCRIPTOR_WRITE) != 0 {
            // Indirect descriptor tables were not offered.
            return Err(Broken);
        }
        chain.segments.push(Segment {
            address: u64::from_le_bytes([
                bytes[0], bytes[1], bytes[2], bytes[3], bytes[4], bytes[5], bytes[6], bytes[7],
            ]),
            bytes: u32::from_le_bytes([bytes[8], bytes[9], bytes[10], bytes[11]]),
            writable: flags & DESCRIPTOR_WRITE != 0,
        });
        let another = flags & DESCRIPTOR_NEXT != 0;
        if another {
            self.follow(chain, word(14))?;
        }
        Ok(another)
    }

    /// The data that returns a chain with `bytes` written: the entry of the used ring, and its index.
    pub fn giving_back(&self, head: u16, bytes: u32) -> ([u8; 8], [u8; 2]) {
        let mut entry = [0; 8];
        entry[..4].copy_from_slice(&u32::from(head).to_le_bytes());
        entry[4..].copy_from_slice(&bytes.to_le_bytes());
        (entry, self.used.wrapping_add(1).to_le_bytes())
    }
}

impl Chain {
    /// Bytes of all segments if they all have the same direction and do not exceed `most`; otherwise `None`.
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
