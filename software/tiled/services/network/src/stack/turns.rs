//! Sockets that take turns at the card.
//!
//! Why it exists: the protocols send one frame of each socket of a set, in the order of the set, until the card is full. So whoever is first in
//! a set and always has something to say silences all behind him. Here each socket is a set of its own, and when the card is full the next one
//! begins. What it deliberately does not know: owners, ports.

use crate::card::Port;
use alloc::vec::Vec;
use bulkhead_common::network::Card;
use bulkhead_common::payer::{PaidList, Share};
use smoltcp::iface::{Interface, SocketHandle, SocketSet};
use smoltcp::phy::Device;
use smoltcp::socket::{AnySocket, Socket};
use smoltcp::time::Instant;

/// The place of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Handle(usize);

/// A set of one socket.
#[derive(Debug)]
struct Slot {
    set: SocketSet<'static>,
    handle: SocketHandle,
}

/// All sockets.
#[derive(Debug, Default)]
pub(super) struct Sockets {
    slots: PaidList<Share, Option<Slot>>,
    /// The one that may send first.
    next: usize,
}

impl Sockets {
    fn slot(&self, handle: Handle) -> &Slot {
        match self.slots.get(handle.0) {
            Some(Some(slot)) => slot,
            _ => unreachable!("a handle leads to a socket until that is removed"),
        }
    }

    fn slot_mut(&mut self, handle: Handle) -> &mut Slot {
        match self.slots.get_mut(handle.0) {
            Some(Some(slot)) => slot,
            _ => unreachable!("a handle leads to a socket until that is removed"),
        }
    }

    /// Adds a socket.
    pub fn add(&mut self, socket: impl AnySocket<'static>) -> Handle {
        let mut set = SocketSet::new(Vec::with_capacity(1));
        let handle = set.add(socket);
        let slot = Some(Slot { set, handle });
        match self.slots.iter().position(Option::is_none) {
            Some(free) => {
                self.slots[free] = slot;
                Handle(free)
            }
            None => {
                self.slots.push(slot);
                Handle(self.slots.len() - 1)
            }
        }
    }

    /// Takes a socket out.
    pub fn remove(&mut self, handle: Handle) -> Socket<'static> {
        let inner = self.slot(handle).handle;
        let socket = self.slot_mut(handle).set.remove(inner);
        self.slots[handle.0] = None;
        socket
    }

    /// A socket.
    pub fn get<T: AnySocket<'static>>(&self, handle: Handle) -> &T {
        let slot = self.slot(handle);
        slot.set.get(slot.handle)
    }

    /// The same, to change it.
    pub fn get_mut<T: AnySocket<'static>>(&mut self, handle: Handle) -> &mut T {
        let slot = self.slot_mut(handle);
        slot.set.get_mut(slot.handle)
    }

    /// All of them.
    #[cfg(test)]
    pub fn iter(&self) -> impl Iterator<Item = (Handle, &Socket<'static>)> {
        let slots = self.slots.iter().enumerate();
        slots.filter_map(|(index, slot)| {
            let (_, socket) = slot.as_ref()?.set.iter().next()?;
            Some((Handle(index), socket))
        })
    }

    /// Sends a frame of each that has one, beginning where the card was full the last time.
    pub fn send<C: Card>(&mut self, interface: &mut Interface, now: Instant, port: &mut Port<C>) {
        if let [Some(only)] = &mut self.slots[..] {
            interface.poll_egress(now, port, &mut only.set);
            return;
        }
        let (count, first) = (self.slots.len(), self.next);
        for turn in 0..count {
            let index = (first + turn) % count;
            let Some(slot) = &mut self.slots[index] else {
                continue;
            };
            if port.transmit(now).is_none() {
                // Its turn comes when there is room.
                self.next = index;
                return;
            }
            interface.poll_egress(now, port, &mut slot.set);
        }
    }

    /// Gives the frame that the port has to a socket, or to none: then the protocols say so to its sender.
    pub fn receive<C: Card>(
        &mut self,
        interface: &mut Interface,
        now: Instant,
        port: &mut Port<C>,
        to: Option<Handle>,
    ) {
        match to {
            Some(handle) => {
                let set = &mut self.slot_mut(handle).set;
                interface.poll_ingress_single(now, port, set);
            }
            None => {
                interface.poll_ingress_single(now, port, &mut SocketSet::new(Vec::new()));
            }
        }
    }

    /// When the first of them has something to do.
    pub fn poll_at(&self, interface: &mut Interface, now: Instant) -> Option<Instant> {
        let slots = self.slots.iter().flatten();
        let times = slots.filter_map(|slot| interface.poll_at(now, &slot.set));
        times.min()
    }
}
