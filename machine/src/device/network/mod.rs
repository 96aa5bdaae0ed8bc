//! A network card: a virtio network device over virtio-mmio, with split queues.
//!
//! Why it exists: systems on this machine exchange frames with others, through drivers that also run elsewhere. The card reads and writes
//! memory by itself, in blocks of one cache line through the tile's second level, and only within the memory that the kernel gave it.
//! What it deliberately does not know: caches, windows, the other end of its cable. Its [`Ports`] do that.
//!
//! A frame of n bytes occupies the link for n * 8 / rate; preamble, check sequence and gap are not counted. One frame is on the link
//! while the next one is fetched. Arriving frames wait in the card's memory for buffers of the driver; frames that do not fit are dropped
//! and counted. No offloads, no merged buffers, no control queue, no promiscuity: every frame of the cable is received.
//!
//! A driver that breaks the rules of its queues stops the card (status `NEEDS_RESET`) until it resets it.

mod engine;
mod frame;
pub mod queue;
mod registers;
#[cfg(test)]
mod tests;

use crate::local_token::LocalToken;
use crate::types::{Block, Owner, Tick};
use bulkhead_abi::network::*;
use engine::{Receive, Transfer, Transmit};
pub use frame::{DropReason, Fate, Frame};
use queue::{Broken, Queue};
use std::collections::VecDeque;

/// The parameters of a card.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetworkCardConfig {
    /// Bytes per second on the link, not 0.
    pub rate: u64,
    /// Hardware address.
    pub mac: [u8; 6],
    /// Maximum entries of a queue: a power of two, 2 to 1024.
    pub queue: u16,
    /// Bytes for frames that wait for buffers of the driver, at least [`FRAME_MAX`].
    pub buffer: u32,
    /// Maximum outstanding memory accesses for the data of a frame: 1 to 16.
    pub parallel: u32,
}

/// An event that a card asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CardEvent {
    /// The driver rang for a queue.
    Notified(u32, u32),
    /// A block was accessed.
    Block(LocalToken),
    /// The link is free.
    LinkFree(u32),
    /// A frame has left; this is its descriptor.
    Sent(u32, u16),
    /// A frame arrived completely. Boxed to keep a tile's events small, because few of them are frames.
    Frame(Box<Frame>),
}

/// The interface of a card to its tile. Addresses are tile-physical.
pub trait Ports {
    /// Now.
    fn now(&self) -> Tick;
    /// Bytes of a cache line.
    fn line(&self) -> u64;
    /// Whether the range may be accessed.
    fn allowed(&self, physical: u64, bytes: u64, write: bool) -> bool;
    /// An access within a line. If it returns a moment, its bytes have moved, and it is done at that moment. If `None`,
    /// [`NetworkCard::arrived`] is called with the token when they move.
    ///
    /// # Errors
    /// If no window of the tile allows the access.
    fn access(
        &mut self,
        physical: u64,
        block: Block<'_>,
        token: LocalToken,
    ) -> Result<Option<Tick>, Broken>;
    /// Cancels an access that has not moved its bytes.
    fn forget(&mut self, token: LocalToken);
    /// Asks for a call of [`NetworkCard::event`].
    fn schedule(&mut self, at: Tick, event: CardEvent);
    /// A frame leaves the card at this moment, which may be in the future.
    fn transmit(&mut self, at: Tick, frame: Frame);
    /// A frame waited for another frame of the card.
    fn waited(&mut self, ticks: Tick, link: bool);
    /// The fate of a frame. For traces.
    fn fate(&mut self, frame: &Frame, fate: Fate);
}

/// The memory that a card may use, and its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Confinement {
    /// First address that the driver uses.
    pub address: u64,
    /// Tile-physical address behind it.
    pub physical: u64,
    /// Bytes.
    pub size: u64,
    /// The holder of the card.
    pub owner: Owner,
}

impl Confinement {
    /// All of memory, at its own addresses, because without a data transfer unit there is no one to say otherwise.
    pub const fn open(owner: Owner) -> Self {
        let base = bulkhead_abi::memory_map::MEMORY_BASE;
        Self {
            address: base,
            physical: base,
            size: u64::MAX - base,
            owner,
        }
    }

    /// The tile-physical address of a range, if the card may use it.
    fn translate(&self, address: u64, bytes: u64) -> Option<u64> {
        let offset = address.checked_sub(self.address)?;
        let end = offset.checked_add(bytes)?;
        (end <= self.size).then(|| self.physical.wrapping_add(offset))
    }
}

/// The counters of a card.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CardCounters {
    /// Frames that left.
    pub sent: u64,
    /// Their bytes.
    pub sent_bytes: u64,
    /// Frames delivered to the driver.
    pub received: u64,
    /// Their bytes.
    pub received_bytes: u64,
    /// Frames that arrived without room for them or without a listener, or that were still waiting when the card was stopped.
    pub dropped: u64,
    /// Invalid frames of the driver: too short or too long.
    pub malformed: u64,
    /// How often the driver broke the rules.
    pub broken: u64,
}

/// A network card.
#[derive(Clone, Debug)]
pub struct NetworkCard {
    config: NetworkCardConfig,
    ticks_per_second: u64,
    confinement: Option<Confinement>,
    status: u32,
    device_features_select: u32,
    driver_features_select: u32,
    driver_features: u64,
    queue_select: u32,
    queues: [Queue; 2],
    interrupt: u32,
    /// The interrupt line at the last query.
    line: bool,
    /// Counts resets: requests from before the last one are void.
    generation: u32,
    /// The number of the last access.
    token: u32,
    /// Tokens of cancelled accesses.
    abandoned: Vec<LocalToken>,
    /// The driver rang for a queue while its index was being read.
    rung: [bool; 2],
    transmit: Transmit,
    sending: Transfer,
    /// Frames that have left, whose descriptors must be returned.
    completed: VecDeque<u16>,
    completing: Transfer,
    receive: Receive,
    receiving: Transfer,
    /// Frames that wait.
    waiting: VecDeque<Waiting>,
    waiting_bytes: u64,
    /// When storing the first of them began.
    storing: Tick,
    /// Frames that waited when the card was stopped. For traces.
    forgotten: Vec<Frame>,
    link_free: Tick,
    /// Its counters.
    pub counters: CardCounters,
}

/// A frame waiting to be stored.
#[derive(Clone, Debug)]
struct Waiting {
    /// When it had arrived completely.
    arrived: Tick,
    /// The moment up to which its wait has been booked.
    since: Tick,
    frame: Frame,
}

impl NetworkCard {
    /// A card after reset. Without confinement it reaches no memory.
    pub fn new(
        config: &NetworkCardConfig,
        ticks_per_second: u64,
        confinement: Option<Confinement>,
    ) -> Self {
        Self {
            config: config.clone(),
            ticks_per_second,
            confinement,
            status: 0,
            device_features_select: 0,
            driver_features_select: 0,
            driver_features: 0,
            queue_select: 0,
            queues: [Queue::default(); 2],
            interrupt: 0,
            line: false,
            generation: 0,
            token: 0,
            abandoned: Vec::new(),
            rung: [false; 2],
            transmit: Transmit::default(),
            sending: Transfer::default(),
            completed: VecDeque::new(),
            completing: Transfer::default(),
            receive: Receive::default(),
            receiving: Transfer::default(),
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            storing: 0,
            forgotten: Vec::new(),
            link_free: 0,
            counters: CardCounters::default(),
        }
    }

    /// Gives the card to an activity or takes it away. Resets the card.
    pub fn confine(&mut self, confinement: Option<Confinement>) {
        self.confinement = confinement;
        self.reset();
    }

    /// The holder of the card.
    pub fn owner(&self) -> Option<Owner> {
        self.confinement.map(|c| c.owner)
    }

    /// Ticks that a frame of this many bytes occupies the link.
    pub fn link_time(&self, bytes: u64) -> Tick {
        let ticks = u128::from(bytes) * u128::from(self.ticks_per_second);
        Tick::try_from(ticks.div_ceil(self.config.rate.into())).unwrap_or(Tick::MAX)
    }

    /// Forgets everything that the driver set. The link finishes the frame it is sending.
    fn reset(&mut self) {
        self.halt();
        let fresh = Self::new(&self.config, self.ticks_per_second, self.confinement);
        *self = Self {
            generation: self.generation,
            token: self.token,
            abandoned: std::mem::take(&mut self.abandoned),
            link_free: self.link_free,
            counters: self.counters,
            line: self.line,
            forgotten: std::mem::take(&mut self.forgotten),
            ..fresh
        };
    }

    /// Whether the interrupt line has changed since the last call, and its new level.
    pub fn take_line(&mut self) -> Option<bool> {
        let line = self.interrupt != 0;
        (std::mem::replace(&mut self.line, line) != line).then_some(line)
    }

    fn is_live(&self) -> bool {
        self.status & STATUS_DRIVER_READY != 0 && self.status & STATUS_NEEDS_RESET == 0
    }

    /// The driver broke the rules.
    fn stop(&mut self, _: Broken) {
        self.counters.broken += 1;
        self.status |= STATUS_NEEDS_RESET;
        self.interrupt |= INTERRUPT_CHANGED;
        self.halt();
    }

    /// Stops everything in progress except a frame on the link.
    fn halt(&mut self) {
        self.generation = self.generation.wrapping_add(1);
        (self.transmit, self.receive) = (Transmit::default(), Receive::default());
        self.rung = [false; 2];
        for transfer in [&mut self.sending, &mut self.completing, &mut self.receiving] {
            self.abandoned.extend(transfer.tokens());
            *transfer = Transfer::default();
        }
        self.completed.clear();
        self.forget();
    }

    /// Waiting frames no longer have a receiver.
    fn forget(&mut self) {
        self.counters.dropped += self.waiting.len() as u64;
        self.forgotten
            .extend(self.waiting.drain(..).map(|waiting| waiting.frame));
        self.waiting_bytes = 0;
    }

    /// Frames that the card has forgotten since the last call.
    pub fn take_forgotten(&mut self) -> Vec<Frame> {
        std::mem::take(&mut self.forgotten)
    }

    /// Tokens of accesses cancelled since the last call.
    pub fn take_abandoned(&mut self) -> Vec<LocalToken> {
        std::mem::take(&mut self.abandoned)
    }

    /// An event that the card asked for has occurred.
    pub fn event(&mut self, ports: &mut dyn Ports, event: CardEvent) {
        let current = |generation: u32| generation == self.generation;
        match event {
            CardEvent::Block(token) => self.block(ports, token),
            CardEvent::LinkFree(generation) if current(generation) => self.link_is_free(ports),
            CardEvent::Sent(generation, head) if current(generation) => {
                self.completed.push_back(head);
                self.complete(ports);
            }
            CardEvent::Notified(generation, queue) if current(generation) => {
                self.rung[queue as usize] = true;
                match queue {
                    RECEIVE_QUEUE => self.take_frame(ports),
                    _ => self.fetch_frame(ports),
                }
            }
            CardEvent::LinkFree(_) | CardEvent::Sent(..) | CardEvent::Notified(..) => {}
            CardEvent::Frame(frame) => self.arrive(ports, *frame),
        }
    }

    fn arrive(&mut self, ports: &mut dyn Ports, frame: Frame) {
        let bytes = frame.len() as u64;
        let fits = self.waiting_bytes + bytes <= u64::from(self.config.buffer);
        let listens = self.is_live() && self.queues[RECEIVE_QUEUE as usize].ready;
        ports.fate(&frame, Fate::Arrived);
        let reason = match (listens, fits) {
            (false, _) => DropReason::Deaf,
            (true, false) => DropReason::Full,
            (true, true) => {
                self.waiting_bytes += bytes;
                let now = ports.now();
                self.waiting.push_back(Waiting {
                    arrived: now,
                    since: now,
                    frame,
                });
                return self.take_frame(ports);
            }
        };
        self.counters.dropped += 1;
        ports.fate(&frame, Fate::Dropped(reason));
    }
}
