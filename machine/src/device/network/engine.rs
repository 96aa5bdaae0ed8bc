//! What a card does by itself: it fetches frames, returns descriptors, and stores frames.
//!
//! Why it exists: each of the three advances independently, step by step, as fast as memory answers. A step begins when the accesses
//! of the previous one are done. What it deliberately does not know: registers.
//!
//! Control structures are read one at a time, because each says where the next one is. The data of a frame is read in several blocks
//! at once. The bytes of a step move block by block.

use super::queue::{Broken, Chain, DESCRIPTOR, Queue};
use super::{CardEvent, DropReason, Fate, Frame, NetworkCard, Ports};
use crate::local_token::{LocalToken, Part};
use crate::types::{Block, Tick};
use bulkhead_abi::network::*;
use std::collections::VecDeque;
use std::ops::Range;

/// The purpose of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Who {
    Sending,
    Completing,
    Receiving,
}

impl Who {
    const ALL: [Who; 3] = [Who::Sending, Who::Completing, Who::Receiving];
}

/// Accesses that belong to one step.
#[derive(Clone, Debug, Default)]
pub(super) struct Transfer {
    /// The data that they write and read, in order.
    data: Vec<u8>,
    /// Accesses not begun: tile-physical address, write, their part of the data.
    blocks: VecDeque<(u64, bool, Range<usize>)>,
    /// Accesses begun: token, and the same.
    under_way: Vec<(LocalToken, bool, Range<usize>)>,
    parallel: usize,
}

impl Transfer {
    /// Tokens of outstanding accesses.
    pub fn tokens(&self) -> impl Iterator<Item = LocalToken> {
        self.under_way.iter().map(|block| block.0)
    }

    fn is_over(&self) -> bool {
        self.under_way.is_empty() && self.blocks.is_empty()
    }

    /// Two bytes that were read.
    fn half(&self, at: usize) -> u16 {
        u16::from_le_bytes([self.data[at], self.data[at + 1]])
    }
}

/// Bytes of memory: first address, count, whether they are written.
type Place = (u64, u64, bool);

/// The event for which the frame-fetching side waits.
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

/// The event for which the frame-storing side waits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Receive {
    #[default]
    Idle,
    Index,
    Entry,
    Descriptors(Chain),
    /// Head of the chain, and bytes.
    Data(u16, u32),
    /// Bytes.
    Used(u32),
}

impl NetworkCard {
    fn transfer(&mut self, who: Who) -> &mut Transfer {
        match who {
            Who::Sending => &mut self.sending,
            Who::Completing => &mut self.completing,
            Who::Receiving => &mut self.receiving,
        }
    }

    /// The step that an access under way belongs to.
    fn who(&mut self, token: LocalToken) -> Option<Who> {
        let has = |who: &Who| self.transfer(*who).tokens().any(|one| one == token);
        Who::ALL.into_iter().find(has)
    }

    /// Begins a step that accesses these places. Data is written to them in order; for places that are read, it is the room. An
    /// address that the card may not use stops the card.
    fn begin(
        &mut self,
        ports: &mut dyn Ports,
        who: Who,
        parallel: u32,
        places: &[Place],
        data: Vec<u8>,
    ) -> Result<(), Broken> {
        let line = ports.line();
        let mut blocks = VecDeque::new();
        let mut from = 0;
        for &(address, bytes, write) in places {
            let physical = self
                .confinement
                .and_then(|c| c.translate(address, bytes))
                .filter(|physical| ports.allowed(*physical, bytes, write))
                .ok_or(Broken)?;
            let mut done = 0;
            while done < bytes {
                let at = physical + done;
                let length = (line - at % line).min(bytes - done);
                let end = from + length as usize;
                blocks.push_back((at, write, from..end));
                (done, from) = (done + length, end);
            }
        }
        assert_eq!(from, data.len(), "a step of a network card has other data");
        *self.transfer(who) = Transfer {
            data,
            blocks,
            under_way: Vec::new(),
            parallel: parallel as usize,
        };
        self.pump(ports, who)
    }

    /// Begins a step that reads these places, one access at a time.
    fn begin_read(
        &mut self,
        ports: &mut dyn Ports,
        who: Who,
        at: u64,
        bytes: u64,
    ) -> Result<(), Broken> {
        let room = vec![0; bytes as usize];
        self.begin(ports, who, 1, &[(at, bytes, false)], room)
    }

    /// Starts as many accesses as may be outstanding.
    fn pump(&mut self, ports: &mut dyn Ports, who: Who) -> Result<(), Broken> {
        loop {
            let mut last = self.token;
            let token = Part::Card.token(&mut last);
            let transfer = self.transfer(who);
            if transfer.under_way.len() >= transfer.parallel {
                return Ok(());
            }
            let Some((physical, write, part)) = transfer.blocks.pop_front() else {
                return Ok(());
            };
            transfer.under_way.push((token, write, part.clone()));
            let block = match write {
                true => Block::Write(&transfer.data[part]),
                false => Block::Read(&mut transfer.data[part]),
            };
            // A window of the tile may have been closed since the step began.
            if let Some(at) = ports.access(physical, block, token)? {
                ports.schedule(at, CardEvent::Block(token));
            }
            self.token = last;
        }
    }

    /// The line of an access has arrived, with the bytes of a read, or without bytes if the tile may no longer make the access.
    pub fn arrived(&mut self, ports: &mut dyn Ports, token: LocalToken, bytes: Option<&[u8]>) {
        let Some(who) = self.who(token) else { return };
        let transfer = self.transfer(who);
        let block = transfer.under_way.iter().find(|block| block.0 == token);
        let Some((_, write, part)) = block.cloned() else {
            return;
        };
        match bytes {
            Some(bytes) if !write => transfer.data[part].copy_from_slice(bytes),
            Some(_) => {}
            None => return self.stop(Broken),
        }
        self.block(ports, token);
    }

    /// An access is done. Unknown tokens are ignored.
    pub(super) fn block(&mut self, ports: &mut dyn Ports, token: LocalToken) {
        let Some(who) = self.who(token) else { return };
        let transfer = self.transfer(who);
        let position = transfer.under_way.iter().position(|block| block.0 == token);
        let Some(position) = position else { return };
        transfer.under_way.remove(position);
        let next = if !transfer.blocks.is_empty() {
            self.pump(ports, who)
        } else if !transfer.under_way.is_empty() {
            Ok(())
        } else {
            match who {
                Who::Sending => self.fetched(ports),
                Who::Completing => self.completed(ports),
                Who::Receiving => self.stored(ports),
            }
        };
        if let Err(broken) = next {
            self.stop(broken);
        }
    }

    /// Runs a step of either side. A failure stops the card.
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

    /// Starts looking for a frame to send, unless it already does.
    pub(super) fn fetch_frame(&mut self, ports: &mut dyn Ports) {
        if self.transmit == Transmit::Idle && self.queue(TRANSMIT_QUEUE).ready {
            self.transmit = Transmit::Index;
            self.rung[TRANSMIT_QUEUE as usize] = false;
            let index = self.queue(TRANSMIT_QUEUE).index_address();
            self.attempt(ports, |card, ports| {
                card.begin_read(ports, Who::Sending, index, 2)
            });
        }
    }

    /// A step of the fetching is done.
    fn fetched(&mut self, ports: &mut dyn Ports) -> Result<(), Broken> {
        let queue = *self.queue(TRANSMIT_QUEUE);
        match std::mem::take(&mut self.transmit) {
            Transmit::Index => {
                if queue.available(self.sending.half(0))? == 0 {
                    // The driver may have filled the ring after its index was read.
                    if self.rung[TRANSMIT_QUEUE as usize] {
                        self.fetch_frame(ports);
                    }
                    return Ok(());
                }
                self.transmit = Transmit::Entry;
                self.begin_read(ports, Who::Sending, queue.entry_address(), 2)
            }
            Transmit::Entry => {
                let chain = queue.chain(self.sending.half(0))?;
                let first = chain.descriptors[0];
                self.transmit = Transmit::Descriptors(chain);
                self.begin_read(ports, Who::Sending, first, DESCRIPTOR as u64)
            }
            Transmit::Descriptors(mut chain) => {
                if let Some(next) = self.descriptor(Who::Sending, &queue, &mut chain)? {
                    self.transmit = Transmit::Descriptors(chain);
                    return self.begin_read(ports, Who::Sending, next, DESCRIPTOR as u64);
                }
                // Two descriptors may describe the same memory, so a chain can promise more bytes than exist.
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
                let places = places(&chain, bytes, false);
                self.transmit = Transmit::Data(chain);
                let (parallel, room) = (self.config.parallel, vec![0; bytes as usize]);
                self.begin(ports, Who::Sending, parallel, &places, room)
            }
            Transmit::Data(chain) => {
                let mut data = std::mem::take(&mut self.sending.data);
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

    /// Returns the descriptor of a departed frame, unless it is already doing so.
    pub(super) fn complete(&mut self, ports: &mut dyn Ports) {
        if self.completing.is_over()
            && let Some(head) = self.completed.front()
        {
            let (places, data) = used(self.queue(TRANSMIT_QUEUE), *head, 0);
            self.attempt(ports, |card, ports| {
                card.begin(ports, Who::Completing, 1, &places, data)
            });
        }
    }

    fn completed(&mut self, ports: &mut dyn Ports) -> Result<(), Broken> {
        self.completed.pop_front();
        self.given_back(Who::Completing, TRANSMIT_QUEUE);
        self.complete(ports);
        Ok(())
    }

    /// A chain is in the used ring, and the driver's flags were read after it.
    fn given_back(&mut self, who: Who, number: u32) {
        let flags = self.transfer(who).half(USED_FLAGS);
        let queue = &mut self.queues[number as usize];
        queue.used = queue.used.wrapping_add(1);
        if flags & NO_INTERRUPT == 0 {
            self.interrupt |= INTERRUPT_USED;
        }
    }

    /// Processes a chain's descriptor. Returns the address of the next one, if any.
    fn descriptor(
        &mut self,
        who: Who,
        queue: &Queue,
        chain: &mut Chain,
    ) -> Result<Option<u64>, Broken> {
        let bytes = self.transfer(who).data.first_chunk().ok_or(Broken)?;
        let another = queue.take(chain, bytes)?;
        Ok(chain.descriptors.last().copied().filter(|_| another))
    }

    /// Takes the oldest waiting frame, unless one is already being stored.
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
        self.rung[RECEIVE_QUEUE as usize] = false;
        let index = self.queue(RECEIVE_QUEUE).index_address();
        self.attempt(ports, |card, ports| {
            card.begin_read(ports, Who::Receiving, index, 2)
        });
    }

    /// A step of the storing is done.
    fn stored(&mut self, ports: &mut dyn Ports) -> Result<(), Broken> {
        let queue = *self.queue(RECEIVE_QUEUE);
        match std::mem::take(&mut self.receive) {
            Receive::Index => {
                // Without a buffer, the frame waits for one.
                if queue.available(self.receiving.half(0))? == 0 {
                    if self.rung[RECEIVE_QUEUE as usize] {
                        self.take_frame(ports);
                    }
                    return Ok(());
                }
                self.storing = ports.now();
                self.receive = Receive::Entry;
                self.begin_read(ports, Who::Receiving, queue.entry_address(), 2)
            }
            Receive::Entry => {
                let chain = queue.chain(self.receiving.half(0))?;
                let first = chain.descriptors[0];
                self.receive = Receive::Descriptors(chain);
                self.begin_read(ports, Who::Receiving, first, DESCRIPTOR as u64)
            }
            Receive::Descriptors(mut chain) => {
                if let Some(next) = self.descriptor(Who::Receiving, &queue, &mut chain)? {
                    self.receive = Receive::Descriptors(chain);
                    return self.begin_read(ports, Who::Receiving, next, DESCRIPTOR as u64);
                }
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
                // One buffer for the frame; nothing is offloaded.
                let mut data = vec![0; FRAME_HEADER];
                data[10] = 1;
                data.extend_from_slice(&waiting.frame);
                let places = places(&chain, needed, true);
                self.receive = Receive::Data(chain.head, needed as u32);
                let parallel = self.config.parallel;
                self.begin(ports, Who::Receiving, parallel, &places, data)
            }
            Receive::Data(head, bytes) => {
                self.receive = Receive::Used(bytes);
                let (places, data) = used(&queue, head, bytes);
                self.begin(ports, Who::Receiving, 1, &places, data)
            }
            Receive::Used(bytes) => {
                self.advance(RECEIVE_QUEUE);
                self.given_back(Who::Receiving, RECEIVE_QUEUE);
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

    /// The oldest frame no longer waits. Its fate may depend on when it arrived.
    fn end_frame(&mut self, ports: &mut dyn Ports, fate: impl FnOnce(Tick) -> Fate) {
        if let Some(waiting) = self.waiting.pop_front() {
            self.waiting_bytes -= waiting.frame.len() as u64;
            ports.fate(&waiting.frame, fate(waiting.arrived));
        }
    }
}

fn places(chain: &Chain, bytes: u64, write: bool) -> Vec<Place> {
    let pieces = chain.pieces(bytes).into_iter();
    pieces.map(|(at, bytes)| (at, bytes, write)).collect()
}

/// Where the flags are in the data of a returned chain.
const USED_FLAGS: usize = 10;

/// The accesses that return a chain, and their data.
fn used(queue: &Queue, head: u16, bytes: u32) -> ([Place; 3], Vec<u8>) {
    let (entry, index) = queue.giving_back(head, bytes);
    let places = [
        (queue.used_entry_address(), 8, true),
        (queue.used_index_address(), 2, true),
        (queue.flags_address(), 2, false),
    ];
    (places, [&entry[..], &index, &[0; 2]].concat())
}
