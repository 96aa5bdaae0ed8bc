//! A processing tile with a local memory instead of caches.
//!
//! Why it exists: meshes of small tiles, such as Epiphany, whose harts run from their own memories and read and write each other's
//! memories across the network. The hart's accesses to its own memory are function calls, each at its moment; accesses to other memories
//! are packets that the owner's memory serves. The tile processes its events and its hart's blocks in time order, so all requests for a
//! memory port come in that order. What it deliberately does not know: other tiles; everything that leaves goes through the fabric.

mod bus;
mod guard;
mod map;
mod memory;
mod requests;

pub use crate::dma::{DmaStatistics, owner as dma_owner};
pub use crate::ports::LocalMemoryStatistics;
pub use guard::{Guard, GuardRule, Refusals};
pub use map::{AddressMap, Target, core, core_of};
pub use memory::LocalMemory;

use crate::config::{PlatformConfig, TileConfig};
use crate::device::{Clint, Clock, Htif, Uart};
use crate::dma::Dma;
use crate::engine::EventQueue;
use crate::fabric::Fabric;
use crate::hart::{Hart, InterruptLine, SharedBlocks, Stop};
use crate::noc::{Delivery, Packet};
use crate::observe::{HartState, Marker};
use crate::tile::End;
use crate::types::{Owner, Tick, TileId, align};
use bulkhead_abi::memory_map::{TILE_WINDOW_SHIFT, TILE_WINDOWS};
use bus::LocalBus;
use std::collections::BTreeMap;
use std::sync::Arc;

/// An event of a tile.
#[derive(Debug)]
enum Event {
    /// A packet has arrived completely.
    Packet(Box<Packet>),
    /// A request gets its turn at its own port.
    Turn(Box<Packet>),
}

/// Sources of events of one tick, in their order.
const FROM_PORT: u32 = 0;
/// One number for each network.
const FROM_NETWORK: u32 = 1;

/// A register's effect on the hart, applied while the hart is not running.
#[derive(Clone, Copy, Debug)]
enum Signal {
    Line(InterruptLine, bool),
    Start(u64),
}

/// Writes of a tile to a register with which harts start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Started {
    /// The tile whose hart began anew.
    pub tile: TileId,
    /// The tile that wrote.
    pub by: TileId,
    /// When it first did.
    pub at: Tick,
    /// How often.
    pub count: u64,
}

/// What may still happen on a hart that was started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prospect {
    /// Its tile.
    pub tile: TileId,
    /// When its timer asks or began to ask for an interrupt; [`Tick::MAX`]: never.
    pub timer: Tick,
    /// It waits for an interrupt, or was halted.
    pub rests: bool,
    /// It takes interrupts of its timer.
    pub listens: bool,
    /// Where it is.
    pub pc: u64,
}

/// The tile without its hart.
#[repr(C)] // What each visit of the host touches comes first.
struct Parts {
    owner: Owner,
    started: bool,
    /// The hart must return at the end of its block.
    recall: bool,
    /// Nothing caused by this tile since the window of time began can come back before this tick.
    limit: Tick,
    timer_at: Tick,
    /// The DMA engine, if there is one.
    dma: Option<Box<Dma>>,
    end: Option<(Tick, End)>,
    queue: EventQueue<Event>,
    signals: Vec<Signal>,
    now: Tick,
    /// Address of its window in the chip-global map.
    window: u64,
    /// Bytes of a fetch.
    line: u64,
    /// Ticks from the issue of a load until its value is available.
    hit: Tick,
    htif: Htif,
    memory: LocalMemory,
    /// The number of the core: row and column.
    core: u64,
    /// Minimum time from the hand-over of a packet here to the arrival of an answer.
    back: Tick,
    /// The guard that checks requests of other tiles, if the platform has one.
    guard: Option<Box<Guard>>,
    /// The engine asks for an interrupt, and the hart has been told.
    dma_interrupt: bool,
    map: Arc<AddressMap>,
    /// The token of the last request.
    token: u32,
    /// Bytes that a port moves per cycle.
    width: u64,
    /// Ticks per cycle of the hart.
    cycle: Tick,
    clint: Clint,
    uart: Option<Uart>,
    exit: bool,
    markers: Vec<Marker>,
    markers_lost: u64,
    /// How often each other tile has rung the doorbell.
    rings: BTreeMap<TileId, u64>,
    /// When each tile, this one included, first wrote to the register that starts the hart, and how often.
    starts: BTreeMap<TileId, (Tick, u64)>,
}

/// See the module's documentation.
#[repr(C)] // What each visit of the host touches is together.
pub struct LocalTile {
    runnable: bool,
    state: HartState,
    parts: Parts,
    hart: Hart,
}

impl Parts {
    #[inline]
    fn next_event(&self) -> Tick {
        self.queue.next_time().min(self.timer_at).min(self.dma_at())
    }

    /// When the DMA engine takes its next step.
    #[inline]
    fn dma_at(&self) -> Tick {
        self.dma.as_ref().map_or(Tick::MAX, |dma| dma.next_time())
    }

    /// A tile writes to the register that starts the hart.
    fn note_start(&mut self, by: TileId, at: Tick) {
        self.starts.entry(by).or_insert((at, 0)).1 += 1;
    }

    fn finish(&mut self, at: Tick, end: End) {
        if self.end.is_none() {
            self.end = Some((at, end));
        }
    }

    fn send(&mut self, at: Tick, packet: Packet, fabric: &mut Fabric) {
        match fabric.send(at, Box::new(packet)) {
            Ok(_) => self.limit = self.limit.min(at.saturating_add(self.back)),
            Err(packet) => panic!("the map leads to a tile that does not exist: {packet:?}"),
        }
    }
}

impl LocalTile {
    /// A tile with a halted hart. `None`: the tile has no local memory. `across` is the minimum time from the hand-over of a packet to its
    /// arrival at another tile.
    pub fn new(
        config: &TileConfig,
        platform: &PlatformConfig,
        map: Arc<AddressMap>,
        across: Tick,
    ) -> Option<Self> {
        let memory = config.local_memory.as_ref()?;
        let dma = config.dma.as_ref();
        let core = core(platform.network.topology, config.router);
        let hart = &config.hart;
        Some(Self {
            hart: Hart::new(hart, core),
            runnable: false,
            state: HartState::Halted,
            parts: Parts {
                owner: Owner::new(config.id, 0),
                core,
                window: TILE_WINDOWS + (core << TILE_WINDOW_SHIFT),
                now: 0,
                queue: EventQueue::new(),
                limit: Tick::MAX,
                back: 2 * across,
                signals: Vec::new(),
                memory: LocalMemory::new(memory, config.id),
                guard: (memory.guard > 0).then(|| Box::new(Guard::new(memory.guard))),
                dma: dma.map(|dma| Box::new(Dma::new(dma, config.id))),
                dma_interrupt: false,
                map,
                token: 0,
                line: hart.line.into(),
                width: memory.width.into(),
                cycle: hart.ticks_per_cycle,
                hit: Tick::from(hart.load_to_use) * hart.ticks_per_cycle,
                started: false,
                recall: false,
                clint: Clint::of(Clock::new(
                    platform.ticks_per_second,
                    platform.timebase_hz,
                    config.clock,
                )),
                timer_at: Tick::MAX,
                uart: config.uart.then(Uart::new),
                exit: config.exit,
                htif: Htif::default(),
                end: None,
                markers: Vec::new(),
                markers_lost: 0,
                rings: BTreeMap::new(),
                starts: BTreeMap::new(),
            },
        })
    }

    /// Number on the network.
    pub fn id(&self) -> TileId {
        self.parts.owner.tile
    }

    /// Which other tiles have rung its doorbell, and how often. The hardware does not tell its hart.
    pub fn rings(&self) -> impl Iterator<Item = (TileId, u64)> {
        self.parts.rings.iter().map(|(by, count)| (*by, *count))
    }

    /// Which tiles have started its hart by a write, and when. The hardware does not tell its hart.
    pub fn starts(&self) -> impl Iterator<Item = Started> {
        let tile = self.id();
        let of = move |(by, (at, count)): (&TileId, &(Tick, u64))| Started {
            tile,
            by: *by,
            at: *at,
            count: *count,
        };
        self.parts.starts.iter().map(of)
    }

    /// What may still happen on its hart; `None`: it was never started.
    pub fn prospect(&self) -> Option<Prospect> {
        const MSTATUS: u16 = 0x300;
        const MIE: u16 = 0x304;
        const GLOBAL: u64 = 1 << 3;
        const TIMER: u64 = 1 << 7;
        let csr = |number| self.hart.csr(number).expect("each hart has it");
        self.parts.started.then(|| Prospect {
            tile: self.id(),
            timer: self.parts.clint.deadline(),
            rests: self.state != HartState::Running,
            // A wait ends with an interrupt that is masked, but not with one that is disabled.
            listens: csr(MIE) & TIMER != 0
                && (csr(MSTATUS) & GLOBAL != 0 || self.state == HartState::Idle),
            pc: self.hart.pc(),
        })
    }

    /// The hart.
    pub fn hart(&self) -> &Hart {
        &self.hart
    }

    /// The local memory.
    pub fn memory(&self) -> &LocalMemory {
        &self.parts.memory
    }

    /// The local memory. For tools.
    pub fn memory_mut(&mut self) -> &mut LocalMemory {
        &mut self.parts.memory
    }

    /// The guard, if there is one.
    pub fn guard(&self) -> Option<&Guard> {
        self.parts.guard.as_deref()
    }

    /// The guard, for the loader of the chip.
    pub fn guard_mut(&mut self) -> Option<&mut Guard> {
        self.parts.guard.as_deref_mut()
    }

    /// The offset in the local memory of an address as used by the hart, if it is there.
    pub fn own(&self, physical: u64) -> Option<u64> {
        self.parts.own(physical)
    }

    /// Statistics of the DMA engine, if there is one.
    pub fn dma(&self) -> Option<&DmaStatistics> {
        self.parts.dma.as_deref().map(Dma::statistics)
    }

    /// A register of the DMA engine, by its offset in the tile's page.
    pub fn dma_register(&self, offset: u64) -> Option<u64> {
        self.parts.dma.as_ref()?.read(offset, 8)
    }

    /// The console.
    pub fn uart(&self) -> Option<&Uart> {
        self.parts.uart.as_ref()
    }

    /// The console, to feed it input.
    pub fn uart_mut(&mut self) -> Option<&mut Uart> {
        self.parts.uart.as_mut()
    }

    /// Sets the address of the program's `tohost` word.
    pub fn set_tohost(&mut self, physical: u64) {
        self.parts.htif = Htif::new(physical);
    }

    /// The software's markers, in order of time.
    pub fn markers(&self) -> &[Marker] {
        &self.parts.markers
    }

    /// Number of markers dropped because there were too many.
    pub fn markers_lost(&self) -> u64 {
        self.parts.markers_lost
    }

    /// How the tile ended, if it has.
    pub fn end(&self) -> Option<(Tick, End)> {
        self.parts.end
    }

    /// Forgets how the tile ended so that the next run can continue.
    pub fn clear_end(&mut self) {
        self.parts.end = None;
    }

    /// Starts the hart at `pc` with `a0` and `a1`.
    pub fn start(&mut self, at: Tick, pc: u64, a0: u64, a1: u64) {
        self.hart.reset(pc, at);
        self.hart.set_register(10, a0);
        self.hart.set_register(11, a1);
        self.runnable = true;
        self.parts.started = true;
    }

    /// A started hart abandons its current work and waits, and continues at `pc`, no earlier than `at`.
    pub fn divert(&mut self, at: Tick, pc: u64) {
        self.hart.divert(pc, at);
        self.runnable |= self.parts.started;
    }

    /// Takes a packet that will have arrived.
    pub fn deliver(&mut self, delivery: Delivery) {
        let source = FROM_NETWORK + u32::from(delivery.plane);
        let packet = Event::Packet(delivery.packet);
        self.parts.queue.push(delivery.at, source, packet);
    }

    /// The next moment at which something happens here. A packet may leave then.
    #[inline]
    pub fn next_time(&self) -> Tick {
        self.hart_time().min(self.parts.next_event())
    }

    #[inline]
    fn hart_time(&self) -> Tick {
        if self.runnable {
            self.hart.time()
        } else {
            Tick::MAX
        }
    }

    /// Processes all events and blocks before `horizon`, or fewer, so that it never runs past an answer to its own requests.
    pub fn run(&mut self, horizon: Tick, fabric: &mut Fabric, blocks: &mut SharedBlocks) {
        self.parts.limit = Tick::MAX;
        loop {
            let event = self.parts.next_event();
            let end = horizon.min(self.parts.limit);
            // A tile that ended the run stops at once: without other tiles, its window may be endless.
            if self.parts.end.is_some() {
                return;
            }
            if self.hart_time() < event.min(end) {
                self.run_hart(event.min(end), fabric, blocks);
            } else if event < end {
                self.take_event(fabric);
            } else {
                return;
            }
        }
    }

    fn run_hart(&mut self, horizon: Tick, fabric: &mut Fabric, blocks: &mut SharedBlocks) {
        self.report(self.hart.time(), HartState::Running, fabric);
        let mut bus = LocalBus {
            parts: &mut self.parts,
            fabric,
        };
        match self.hart.run_shared(&mut bus, horizon, blocks) {
            Stop::Horizon | Stop::Device => {}
            Stop::Pending(_) => self.runnable = false,
            Stop::WaitForInterrupt => self.rest(HartState::Idle, fabric),
            Stop::Halted => self.rest(HartState::Halted, fabric),
            Stop::Unhandled(trap) => {
                self.parts.finish(self.hart.time(), End::Unhandled(trap));
                self.rest(HartState::Halted, fabric);
            }
            stop @ (Stop::Tokens | Stop::Sleep) => {
                panic!("nothing regulates a tile with a local memory or lets it sleep: {stop:?}")
            }
        }
        self.parts.recall = false;
        let now = self.parts.now;
        for signal in std::mem::take(&mut self.parts.signals) {
            self.signal(signal, now);
        }
    }

    fn rest(&mut self, state: HartState, fabric: &mut Fabric) {
        self.runnable = false;
        self.report(self.hart.time(), state, fabric);
    }

    fn report(&mut self, at: Tick, state: HartState, fabric: &mut Fabric) {
        if self.state != state {
            self.state = state;
            if let Some(observer) = &mut fabric.observer {
                observer.hart(at, (self.parts.owner.tile, 0), state);
            }
        }
    }

    fn signal(&mut self, signal: Signal, now: Tick) {
        let now = align(now, self.parts.cycle);
        match signal {
            // A hart that was never started has no interrupts.
            Signal::Line(line, level) => {
                self.hart.set_interrupt(line, level, now);
                self.runnable = self.parts.started;
            }
            Signal::Start(pc) => self.start(now, pc, self.parts.core, 0),
        }
    }

    fn take_event(&mut self, fabric: &mut Fabric) {
        // Among events of one tick, the timer comes first and the DMA engine last, so the engine sees what has arrived.
        let (packets, dma) = (self.parts.queue.next_time(), self.parts.dma_at());
        if self.parts.timer_at <= packets.min(dma) {
            let now = std::mem::replace(&mut self.parts.timer_at, Tick::MAX);
            self.parts.now = now;
            return self.signal(Signal::Line(InterruptLine::Timer, true), now);
        }
        if dma < packets {
            self.parts.now = dma;
            return self.step_dma(dma, fabric);
        }
        let Some((now, event)) = self.parts.queue.pop() else {
            return;
        };
        self.parts.now = now;
        match event {
            Event::Packet(packet) => self.packet(now, packet, fabric),
            Event::Turn(packet) => self.serve(now, packet, fabric),
        }
    }
}
