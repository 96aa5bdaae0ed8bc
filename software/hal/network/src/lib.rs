//! A network card, for the activity that owns it.
//!
//! Why it exists: a card reads and writes memory by itself, invisibly to the language; here it gets buffers that no code touches
//! until the card is done with them. Queues and registers are the crate `virtio-drivers`'. What it deliberately does not know:
//! protocols.
//!
//! The kernel lets the card use the activity's heap, at the activity's own addresses, so the card gets the buffer's own address and
//! reaches nothing at any other address. This is a separate crate because it needs a heap, which not all users of the surrounding
//! crate have.
#![no_std]
#![warn(missing_docs)]

extern crate alloc;

use alloc::alloc::{Layout, alloc_zeroed, dealloc};
use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use bulkhead_abi::memory_map::NETWORK_CARD_SIZE;
use bulkhead_abi::network::{CARD_ADDRESS, FRAME_HEADER, FRAME_MAX};
use bulkhead_common::network::{Card, Received};
use core::ptr::NonNull;
use virtio_drivers::device::net::VirtIONetRaw;
use virtio_drivers::transport::mmio::MmioTransport;
use virtio_drivers::{BufferDirection, Hal, PAGE_SIZE, PhysAddr};

/// Entries of each queue.
const QUEUE: usize = 32;
/// Bytes of a buffer: a header and a frame. Whole cache lines.
const BUFFER: usize = (FRAME_HEADER + FRAME_MAX).next_multiple_of(64);

/// The heap as the card's memory.
struct Heap;

fn pages(count: usize) -> Option<Layout> {
    Layout::from_size_align(count.checked_mul(PAGE_SIZE)?, PAGE_SIZE).ok()
}

// SAFETY: memory comes from the allocator, in pages, zeroed and for the caller alone; the card reaches the heap at the addresses
// that the activity uses, so to share a buffer is to name its address.
unsafe impl Hal for Heap {
    fn dma_alloc(count: usize, _: BufferDirection) -> (PhysAddr, NonNull<u8>) {
        // SAFETY: the size is not 0, since a queue has entries.
        let memory = pages(count).map(|layout| unsafe { alloc_zeroed(layout) });
        match memory.and_then(NonNull::new) {
            Some(memory) => (memory.as_ptr() as u64, memory),
            // The driver treats address 0 as a failure.
            None => (0, NonNull::dangling()),
        }
    }

    unsafe fn dma_dealloc(_: PhysAddr, memory: NonNull<u8>, count: usize) -> i32 {
        if let Some(layout) = pages(count) {
            // SAFETY: the caller gives back what `dma_alloc` gave, with its size.
            unsafe { dealloc(memory.as_ptr(), layout) };
        }
        0
    }

    unsafe fn mmio_phys_to_virt(address: PhysAddr, _: usize) -> NonNull<u8> {
        // Called for PCI only.
        NonNull::new(address as *mut u8).unwrap_or(NonNull::dangling())
    }

    unsafe fn share(buffer: NonNull<[u8]>, _: BufferDirection) -> PhysAddr {
        buffer.cast::<u8>().as_ptr() as u64
    }

    unsafe fn unshare(_: PhysAddr, _: NonNull<[u8]>, _: BufferDirection) {}
}

/// Why a card cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CardError {
    /// There is no card, or one of another kind or version.
    NoCard,
    /// The card or the heap refused the queues.
    Refused,
}

/// A card with its buffers.
pub struct NetworkCard {
    queues: VirtIONetRaw<Heap, MmioTransport<'static>, QUEUE>,
    /// Buffers that the card has, by token.
    receiving: Vec<Option<Box<[u8]>>>,
    sending: Vec<Option<(Box<[u8]>, usize)>>,
    /// Buffers to send from.
    spare: Vec<Box<[u8]>>,
}

impl NetworkCard {
    /// The card of this activity, with buffers to receive into. Once.
    ///
    /// # Errors
    /// See [`CardError`].
    pub fn new() -> Result<Self, CardError> {
        let registers = NonNull::new(CARD_ADDRESS as *mut _).ok_or(CardError::NoCard)?;
        // SAFETY: the kernel has mapped the card's registers there, for this activity alone and for as long as it lives; without
        // a card the access ends the activity.
        let transport = unsafe { MmioTransport::new(registers, NETWORK_CARD_SIZE as usize) };
        let transport = transport.map_err(|_| CardError::NoCard)?;
        let queues = VirtIONetRaw::new(transport).map_err(|_| CardError::Refused)?;
        let mut card = Self {
            queues,
            receiving: (0..QUEUE).map(|_| None).collect(),
            sending: (0..QUEUE).map(|_| None).collect(),
            spare: Vec::with_capacity(QUEUE),
        };
        for _ in 0..QUEUE {
            card.give_back(vec![0; BUFFER].into());
            card.spare.push(vec![0; BUFFER].into());
        }
        Ok(card)
    }

    /// Hardware address.
    pub fn mac(&self) -> [u8; 6] {
        self.queues.mac_address()
    }

    /// Acknowledges the card's interrupt. The caller then checks for frames that have arrived or left.
    pub fn acknowledge(&mut self) {
        self.queues.ack_interrupt();
    }

    /// Takes back the buffers of frames that have left.
    fn reclaim(&mut self) {
        while let Some(token) = self.queues.poll_transmit() {
            let Some(place) = self.sending.get_mut(usize::from(token)) else {
                return;
            };
            let Some((buffer, bytes)) = place.take() else {
                return;
            };
            // SAFETY: this is the buffer that was given with this token, and as much of it.
            let done = unsafe { self.queues.transmit_complete(token, &buffer[..bytes]) };
            self.spare.push(buffer);
            if done.is_err() {
                return;
            }
        }
    }
}

impl Card for NetworkCard {
    fn receive(&mut self) -> Option<Received> {
        loop {
            let token = self.queues.poll_receive()?;
            let mut buffer = self.receiving.get_mut(usize::from(token))?.take()?;
            // SAFETY: this is the buffer that was given with this token.
            let received = unsafe { self.queues.receive_complete(token, &mut buffer) };
            match received {
                Ok((start, bytes)) if start + bytes <= buffer.len() => {
                    return Some((buffer, start, bytes));
                }
                _ => self.give_back(buffer),
            }
        }
    }

    fn give_back(&mut self, mut buffer: Box<[u8]>) {
        // SAFETY: the buffer stays in `receiving`, untouched, until the card is done with it.
        let token = unsafe { self.queues.receive_begin(&mut buffer) };
        if let Ok(token) = token
            && let Some(place) = self.receiving.get_mut(usize::from(token))
        {
            *place = Some(buffer);
        }
    }

    fn can_send(&mut self) -> bool {
        if self.spare.is_empty() || !self.queues.can_send() {
            self.reclaim();
        }
        !self.spare.is_empty() && self.queues.can_send()
    }

    fn has_room(&mut self, frames: usize) -> bool {
        let frames = frames.min(QUEUE);
        if self.spare.len() < frames {
            self.reclaim();
        }
        self.spare.len() >= frames
    }

    fn send(&mut self, bytes: usize, fill: &mut dyn FnMut(&mut [u8])) -> bool {
        if bytes > FRAME_MAX || !self.can_send() {
            return false;
        }
        let Some(mut buffer) = self.spare.pop() else {
            return false;
        };
        let Ok(header) = self.queues.fill_buffer_header(&mut buffer) else {
            return false;
        };
        fill(&mut buffer[header..header + bytes]);
        // SAFETY: the buffer stays in `sending`, untouched, until the card is done with it.
        let token = unsafe { self.queues.transmit_begin(&buffer[..header + bytes]) };
        match token {
            Ok(token) if usize::from(token) < QUEUE => {
                self.sending[usize::from(token)] = Some((buffer, header + bytes));
                true
            }
            _ => {
                self.spare.push(buffer);
                false
            }
        }
    }
}
