//! What a card does by itself: it fetches frames, gives descriptors back, stores frames.
//!
//! Why it exists: each of the three goes on its own, step by step, as fast as memory answers; a step begins when the accesses
//! of the one before are done. What it deliberately does not know: registers.
//!
//! Control structures are read one after the other, because each says where the next one lies; the data of a frame in several
//! blocks at once.

use super::queue::{Broken, Chain, Memory, Queue};
use super::{CardEvent, Confined, DropReason, Fate, Frame, NetworkCard, Ports};
use crate::types::Tick;
use bulkhead_abi::network::*;
use std::collections::VecDeque;

/// Bit of a token that tells accesses of the card from those of the data transfer unit.
pub const CARD_TOKEN: u32 = 1 << 31;

/// What an access is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Who {
    Sending,
    Completing,
    Receiving,
}

impl Who {
    fn token(self, generation: u32) -> u32 {
        CARD_TOKEN | (generation & 0xFF_FFFF) << 2 | self as u32
    }

    fn of(token: u32) -> Option<Self> {
        [Who::Sending, Who::Completing, Who::Receiving]
            .into_iter()
            .find(|who| *who as u32 == token & 3)
    }
}

/// Accesses that belong to one step.
#[derive(Clone, Debug, Default)]
pub(super) struct Transfer {
    /// Those that have not begun: tile-physical address, bytes, write.
    blocks: VecDeque<(u64, u32, bool)>,
    under_way: u32,
    parallel: u32,
}

/// What the fetching of frames waits for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Transmit {
    #[default]
    Idle,
    Index,
    Entry,
    Descriptors(Chain),
    Data(Chain),
    /// For the link, since a moment.
    Link(u16, Frame, Tick),
}

/// What the storing of frames waits for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Receive {
    #[default]
    Idle,
    Index,
    Entry,
    Descriptors(Chain),
    Data(u16, Chain),
    Used(u16, u32),
}

impl NetworkCard {
    fn memory<'a>(&self, ports: &'a mut dyn Ports) -> Confined<'a> {
        Confined {
            confinement: self.confinement,
            ports,
        }
    }

    fn transfer(&mut self, who: Who) -> &mut Transfer {
        match who {
            Who::Sending => &mut self.sending,
            Who::Completing => &mut self.completing,
            Who::Receiving => &mut self.receiving,
        }
    }

    /// Begins a step that accesses these ranges. An address that the card may not use stops it.
    fn begin(
        &mut self,
        ports: &mut dyn Ports,
        who: Who,
        parallel: u32,
        ranges: &[(u64, u64, bool)],
    ) -> Result<(), Broken> {
        let line = ports.line();
        let mut blocks = VecDeque::new();
        for &(address, bytes, write) in ranges {
            let physical = self
                .confinement
                .and_then(|c| c.translate(address, bytes))
                .filter(|physical| ports.allowed(*physical, bytes, write))
                .ok_or(Broken)?;
            let mut done = 0;
            while done < bytes {
                let at = physical + done;
                let length = (line - at % line).min(bytes - done);
                blocks.push_back((at, length as u32, write));
                done += length;
            }
        }
        *self.transfer(who) = Transfer {
            blocks,
            under_way: 0,
            parallel,
        };
        self.pump(ports, who);
        Ok(())
    }

    /// Starts as many accesses as may be under way.
    fn pump(&mut self, ports: &mut dyn Ports, who: Who) {
        let token = who.token(self.generation);
        let transfer = self.transfer(who);
        while transfer.under_way < transfer.parallel {
            let Some((physical, bytes, write)) = transfer.blocks.pop_front() else {
                return;
            };
            transfer.under_way += 1;
            if let Some(at) = ports.access(physical, bytes, write, token) {
                ports.schedule(at, CardEvent::Block(token));
            }
        }
    }

    /// An access is done.
    pub fn block(&mut self, ports: &mut dyn Ports, token: u32) {
        let Some(who) = Who::of(token).filter(|who| who.token(self.generation) == token) else {
            return;
        };
        let transfer = self.transfer(who);
        transfer.under_way = transfer.under_way.saturating_sub(1);
        if !transfer.blocks.is_empty() {
            return self.pump(ports, who);
        }
        if transfer.under_way > 0 {
            return;
        }
        let next = match who {
            Who::Sending => self.fetched(ports),
            Who::Completing => self.completed(ports),
            Who::Receiving => self.stored(ports),
        };
        if let Err(broken) = next {
            self.stop(broken);
        }
    }

    /// A step of one or the other, whose failure stops the card.
    fn attempt(
        &mut self,
        ports: &mut dyn Ports,
        step: impl FnOnce(&mut Self, &mut dyn Ports) -> Result<(), Broken>,
    ) {
        if let Err(broken) = step(self, ports) {
            self.stop(broken);
        }
    }

    fn queue(&self, number: u32) -> &Queue {
        &self.queues[number as usize]
    }

    /// Looks for a frame to send, unless it does so already.
    pub(super) fn fetch_frame(&mut self, ports: &mut dyn Ports) {
        if self.transmit == Transmit::Idle && self.queue(TRANSMIT_QUEUE).ready {
            self.transmit = Transmit::Index;
            let index = self.queue(TRANSMIT_QUEUE).index_address();
            self.attempt(ports, |card, ports| {
                card.begin(ports, Who::Sending, 1, &[(index, 2, false)])
            });
        }
    }

    /// A step of the fetching is done.
    fn fetched(&mut self, ports: &mut dyn Ports) -> Result<(), Broken> {
        let queue = *self.queue(TRANSMIT_QUEUE);
        match std::mem::take(&mut self.transmit) {
            Transmit::Index => {
                if queue.available(&self.memory(ports))? == 0 {
                    return Ok(());
                }
                self.transmit = Transmit::Entry;
                let entry = (queue.entry_address(), 2, false);
                self.begin(ports, Who::Sending, 1, &[entry])
            }
            Transmit::Entry => {
                let chain = queue.chain(&self.memory(ports))?;
                let ranges = descriptors(&chain);
                self.transmit = Transmit::Descriptors(chain);
                self.begin(ports, Who::Sending, 1, &ranges)
            }
            Transmit::Descriptors(chain) => {
                // Two descriptors may describe the same memory, so a chain can promise more than there is.
                let most = (FRAME_HEADER + FRAME_MAX) as u64;
                let least = (FRAME_HEADER + FRAME_MIN) as u64;
                let bytes = chain.bytes(false, most).filter(|bytes| *bytes >= least);
                let Some(bytes) = bytes else {
                    self.counters.malformed += 1;
                    ports.fate(&Frame::default(), Fate::Malformed);
                    self.advance(TRANSMIT_QUEUE);
                    self.completed.push_back(chain.head);
                    self.complete(ports);
                    self.fetch_frame(ports);
                    return Ok(());
                };
                let ranges = ranges(&chain, bytes, false);
                self.transmit = Transmit::Data(chain);
                let parallel = self.config.parallel;
                self.begin(ports, Who::Sending, parallel, &ranges)
            }
            Transmit::Data(chain) => {
                let bytes = chain.bytes(false, u64::MAX).unwrap_or(0);
                let mut data = Vec::with_capacity(bytes as usize);
                let memory = self.memory(ports);
                for (address, length) in chain.pieces(bytes) {
                    let start = data.len();
                    data.resize(start + length as usize, 0);
                    if !memory.load(address, &mut data[start..]) {
                        return Err(Broken);
                    }
                }
                let frame = Frame::from(data.split_off(FRAME_HEADER));
                self.advance(TRANSMIT_QUEUE);
                self.transmit = Transmit::Link(chain.head, frame, ports.now());
                if self.link_free > ports.now() {
                    ports.schedule(self.link_free, CardEvent::LinkFree(self.generation));
                } else {
                    self.link_is_free(ports);
                }
                Ok(())
            }
            waiting @ Transmit::Link(..) => {
                self.transmit = waiting;
                Ok(())
            }
            Transmit::Idle => Ok(()),
        }
    }

    fn advance(&mut self, queue: u32) {
        let queue = &mut self.queues[queue as usize];
        queue.next = queue.next.wrapping_add(1);
    }

    /// The link takes the frame that waits for it.
    pub(super) fn link_is_free(&mut self, ports: &mut dyn Ports) {
        match std::mem::take(&mut self.transmit) {
            Transmit::Link(head, mut frame, since) => {
                let now = ports.now();
                ports.waited(now - since, true);
                let bytes = frame.len() as u64;
                let end = now.saturating_add(self.link_time(bytes));
                self.link_free = end;
                frame.number = self.counters.sent;
                self.counters.sent += 1;
                self.counters.sent_bytes += bytes;
                ports.transmit(end, frame);
                ports.schedule(end, CardEvent::Sent(self.generation, head));
                self.fetch_frame(ports);
            }
            other => self.transmit = other,
        }
    }

    /// Gives the descriptor of a frame that has left back, unless it does so already.
    pub(super) fn complete(&mut self, ports: &mut dyn Ports) {
        let idle = self.completing.under_way == 0 && self.completing.blocks.is_empty();
        if idle && !self.completed.is_empty() {
            let ranges = used(self.queue(TRANSMIT_QUEUE));
            self.attempt(ports, |card, ports| {
                card.begin(ports, Who::Completing, 1, &ranges)
            });
        }
    }

    fn completed(&mut self, ports: &mut dyn Ports) -> Result<(), Broken> {
        if let Some(head) = self.completed.pop_front() {
            self.give_back(ports, TRANSMIT_QUEUE, head, 0)?;
        }
        self.complete(ports);
        Ok(())
    }

    fn give_back(
        &mut self,
        ports: &mut dyn Ports,
        number: u32,
        head: u16,
        bytes: u32,
    ) -> Result<(), Broken> {
        let mut memory = self.memory(ports);
        let queue = &mut self.queues[number as usize];
        queue.give_back(&mut memory, head, bytes)?;
        if !queue.is_silent(&memory)? {
            self.interrupt |= INTERRUPT_USED;
        }
        Ok(())
    }

    /// Takes the oldest frame that waits, unless one is being stored already.
    pub(super) fn take_frame(&mut self, ports: &mut dyn Ports) {
        if self.receive != Receive::Idle || !self.queue(RECEIVE_QUEUE).ready {
            return;
        }
        let now = ports.now();
        let Some(waiting) = self.waiting.front_mut() else {
            return;
        };
        ports.waited(now - std::mem::replace(&mut waiting.since, now), false);
        self.receive = Receive::Index;
        let index = self.queue(RECEIVE_QUEUE).index_address();
        self.attempt(ports, |card, ports| {
            card.begin(ports, Who::Receiving, 1, &[(index, 2, false)])
        });
    }

    /// A step of the storing is done.
    fn stored(&mut self, ports: &mut dyn Ports) -> Result<(), Broken> {
        let queue = *self.queue(RECEIVE_QUEUE);
        match std::mem::take(&mut self.receive) {
            Receive::Index => {
                // Without a buffer the frame waits for one.
                if queue.available(&self.memory(ports))? == 0 {
                    return Ok(());
                }
                self.storing = ports.now();
                self.receive = Receive::Entry;
                let entry = (queue.entry_address(), 2, false);
                self.begin(ports, Who::Receiving, 1, &[entry])
            }
            Receive::Entry => {
                let chain = queue.chain(&self.memory(ports))?;
                let ranges = descriptors(&chain);
                self.receive = Receive::Descriptors(chain);
                self.begin(ports, Who::Receiving, 1, &ranges)
            }
            Receive::Descriptors(chain) => {
                let Some(waiting) = self.waiting.front() else {
                    return Ok(());
                };
                let needed = (FRAME_HEADER + waiting.frame.len()) as u64;
                let room = chain.bytes(true, u64::MAX).ok_or(Broken)?;
                if room < needed {
                    // The buffer stays where it is; a smaller frame may fit.
                    self.end_frame(ports, |_| Fate::Dropped(DropReason::SmallBuffer));
                    self.counters.dropped += 1;
                    self.take_frame(ports);
                    return Ok(());
                }
                let ranges = ranges(&chain, needed, true);
                self.receive = Receive::Data(chain.head, chain);
                let parallel = self.config.parallel;
                self.begin(ports, Who::Receiving, parallel, &ranges)
            }
            Receive::Data(head, chain) => {
                let Some(waiting) = self.waiting.front() else {
                    return Ok(());
                };
                // One buffer for the frame; nothing is offloaded.
                let mut data = vec![0; FRAME_HEADER];
                data[10] = 1;
                data.extend_from_slice(&waiting.frame);
                let bytes = data.len() as u64;
                let mut memory = self.memory(ports);
                let mut done = 0;
                for (address, length) in chain.pieces(bytes) {
                    let end = done + length as usize;
                    if !memory.store(address, &data[done..end]) {
                        return Err(Broken);
                    }
                    done = end;
                }
                self.receive = Receive::Used(head, bytes as u32);
                let ranges = used(&queue);
                self.begin(ports, Who::Receiving, 1, &ranges)
            }
            Receive::Used(head, bytes) => {
                self.advance(RECEIVE_QUEUE);
                self.give_back(ports, RECEIVE_QUEUE, head, bytes)?;
                let from = self.storing;
                self.end_frame(ports, |arrived| Fate::Stored { arrived, from });
                self.counters.received += 1;
                self.counters.received_bytes += u64::from(bytes) - FRAME_HEADER as u64;
                self.take_frame(ports);
                Ok(())
            }
            Receive::Idle => Ok(()),
        }
    }

    /// The oldest frame does not wait any more; what became of it may depend on when it had arrived.
    fn end_frame(&mut self, ports: &mut dyn Ports, fate: impl FnOnce(Tick) -> Fate) {
        if let Some(waiting) = self.waiting.pop_front() {
            self.waiting_bytes -= waiting.frame.len() as u64;
            ports.fate(&waiting.frame, fate(waiting.arrived));
        }
    }
}

fn descriptors(chain: &Chain) -> Vec<(u64, u64, bool)> {
    let addresses = chain.descriptors.iter();
    addresses.map(|address| (*address, 16, false)).collect()
}

fn ranges(chain: &Chain, bytes: u64, write: bool) -> Vec<(u64, u64, bool)> {
    let pieces = chain.pieces(bytes).into_iter();
    pieces.map(|(at, bytes)| (at, bytes, write)).collect()
}

/// The accesses that give a chain back.
fn used(queue: &Queue) -> [(u64, u64, bool); 3] {
    [
        (queue.used_entry_address(), 8, true),
        (queue.used_index_address(), 2, true),
        (queue.flags_address(), 2, false),
    ]
}
