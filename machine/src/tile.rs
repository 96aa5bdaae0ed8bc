//! A processing tile: a hart, its caches, its data transfer unit and its small devices.
//!
//! Why it exists: it is the glue between parts that do not know each other. It implements the hart's [`Bus`] and the unit's
//! [`Env`], and processes the tile's events in order. What it deliberately does not know: other tiles. Everything that leaves
//! goes through the fabric's network.

mod accelerator;
mod arrivals;
mod below;
mod bus;
mod card;
mod crash;
mod env;
mod home;
mod interrupts;
mod local;
mod memory;
mod moments;
mod outside;
mod port;
mod second;

use crate::accelerator::Accelerator;
use crate::beside::EngineMap;
use crate::cache::{Done, Hierarchy};
use crate::config::{MemoryMap, PlatformConfig, PlatformKind, TileConfig};
use crate::crash::Crashed;
use crate::device::network::{CardEvent, Confinement, NetworkCard};
use crate::device::{Clint, Htif, Uart};
use crate::dtu::{Alarms, Dtu, DtuEvent, TileKind};
use crate::engine::EventQueue;
use crate::fabric::Fabric;
use crate::hart::{Hart, InterruptLine, Stop, UnhandledTrap};
use crate::ledger::{Ledger, Processor};
use crate::noc::{Delivery, PLANES_MAX, Packet, PacketKind};
use crate::observe::{HartState, Marker};
use crate::tcm::{Tcm, TcmMap};
use crate::timeline::{Event, Timeline};
use crate::types::{Owner, Tick, TileId, align, later};
use accelerator::Accesses;
use below::Below;
use bulkhead_abi::memory_map::{MEMORY_BASE, PMP_WINDOW_SIZE, PMP_WINDOWS};
use bus::{TileBus, UNNAMED};
use card::CardPlace;
use env::TileEnv;
use home::Homes;
use interrupts::Interrupts;
pub use moments::{Announced, Moments};
use moments::{acceptance, command_lookahead, message_lookahead, miss_lookahead};
use second::{Second, Used};
use std::sync::Arc;

/// An event of a tile.
#[derive(Debug)]
pub enum TileEvent {
    /// A packet has arrived completely.
    Packet(Box<Packet>),
    /// The unit asked for it.
    Unit(DtuEvent),
    /// The network card asked for this event, or a frame has arrived.
    Card(CardEvent),
    /// A request for a tightly coupled memory gets its turn at a port that the hart does not use.
    Turn(Box<Packet>),
}

/// Markers kept per tile (40 bytes each), because a program may make marks forever.
const MARKERS_MAX: usize = 1 << 22;
/// Room reserved among them for kinds of the chip's own interface, which identify activities: no other markers use it.
const MARKERS_KEPT: usize = MARKERS_MAX / 4;

/// Sources of events of one tick, in their order.
const FROM_NETWORK: u32 = 0;
/// Refusals by the tile's own interface to the networks; those have one number each.
const FROM_INTERFACE: u32 = FROM_NETWORK + PLANES_MAX as u32;
const FROM_UNIT: u32 = FROM_INTERFACE + 1;
const FROM_CARD: u32 = FROM_UNIT + 1;
const FROM_CABLE: u32 = FROM_CARD + 1;
const FROM_PORT: u32 = FROM_CABLE + 1;

/// An effect of a device on the hart. Applied while the hart is not running.
#[derive(Clone, Copy, Debug)]
enum Signal {
    Line(InterruptLine, bool),
    /// An interrupt line of the second hart.
    Second(InterruptLine, bool),
    StartSecond(u64),
    Wake,
    Start(u64),
    Stop,
}

/// A protection window, ready for use.
#[derive(Clone, Copy, Debug, Default)]
struct Window {
    /// Bytes from the start of the window that may be read.
    readable: u64,
    /// Bytes from the start of the window that may be written.
    writable: u64,
    memory: usize,
    base: u64,
    /// Home of its first byte.
    home: u64,
}

impl Window {
    /// Bytes that may be read or written.
    #[inline]
    fn size(&self) -> u64 {
        self.readable.max(self.writable)
    }
}

/// How a run may end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The program asked for it.
    Exit(u32),
    /// A hart cannot continue.
    Unhandled(UnhandledTrap),
}

/// The tile without its hart, caches and unit.
#[derive(Debug)]
struct Local {
    id: TileId,
    owner: Owner,
    now: Tick,
    queue: EventQueue<TileEvent>,
    windows: [Window; PMP_WINDOWS as usize],
    homes: Homes,
    /// The DMA engines of the chip.
    engines: EngineMap,
    /// The tightly coupled memories of the chip.
    tcms: TcmMap,
    /// The tightly coupled memories of this tile.
    tcm: Tcm,
    /// Where memories are, on a chip without units.
    map: MemoryMap,
    epoch: u32,
    /// Nothing caused by this tile since the window of time began can come back before this tick.
    limit: Tick,
    /// Least time from an instruction to the packet that leaves because of it.
    hart_lookahead: Tick,
    /// What the tile has announced of the packets that it hands to the network.
    announced: Announced,
    /// Everything before this tick has happened here.
    past: Tick,
    /// [`Dtu::rights`] of the unit.
    rights: u64,
    /// The unit executes a sleep command.
    sleeping: bool,
    signals: Vec<Signal>,
    /// Lines and requests for lines caused by the unit. They leave once the unit has acted and can charge them.
    deferred: Vec<(Tick, Packet)>,
    /// For each hart: since when an access has waited for tokens, and when it asks again.
    asked: [Option<(Tick, Tick)>; 2],
    /// The bucket of the current activity regulates, or a hart waits for tokens.
    holds_back: bool,
    line: u32,
    /// Ticks of a cycle of the hart.
    cycle: Tick,
    regulated: bool,
    /// There is a second hart.
    second_hart: bool,
    /// The second hart's software interrupt register.
    second_software: bool,
    /// Outstanding misses that the second hart waits for.
    second_tokens: Vec<u32>,
    /// The lines that the last running hart has used, so that the other one must ask for them again.
    used: Used,
    /// The reads and writes of a streaming unit.
    accesses: Accesses,
    /// The hart must return at the end of its block.
    recall: bool,
    clint: Clint,
    /// If other parts interrupt this one.
    interrupts: Option<Interrupts>,
    /// When the timer reaches its compare register. Not in the queue, so that a program that keeps writing the register does not
    /// fill the queue.
    timer_at: Tick,
    /// The unit's alarms, which are not in the queue for the same reason.
    alarms: Alarms,
    uart: Option<Uart>,
    card: CardPlace,
    exit: bool,
    htif: Htif,
    end: Option<(Tick, End)>,
    markers: Vec<Marker>,
    markers_lost: u64,
    /// Programs that crashed here.
    crashes: Vec<Crashed>,
    /// The owner of the hart and the activities waiting for it, as reported by TileMux.
    processor: Processor,
    /// The events that the tile sees, if they are to be compared.
    timeline: Option<Box<Timeline>>,
}

/// A processing tile.
pub struct Tile {
    hart: Hart,
    second: Option<Box<Second>>,
    /// Replaces the hart, which is then never started.
    accelerator: Option<Box<Accelerator>>,
    unit: Option<Dtu>,
    caches: Hierarchy,
    local: Local,
    runnable: bool,
    state: HartState,
    done: Vec<Done>,
    /// Least time from an instruction to a packet for another processing tile.
    command_lookahead: Tick,
    /// The same to a message.
    message_lookahead: Tick,
    /// [`Moments::hears`].
    hears: Tick,
}

impl Tile {
    /// A tile whose hart is halted, at a place of the network (router and port). The configuration is valid. `None`: the tile has
    /// other parts.
    pub fn new(
        config: &TileConfig,
        place: (u16, u16),
        platform: &PlatformConfig,
        kinds: Arc<[TileKind]>,
    ) -> Option<Self> {
        let (l1i, l1d) = (config.l1i.as_ref()?, config.l1d.as_ref()?);
        if config.cluster.is_some() {
            return None;
        }
        // Numbers of tiles change no tick, so what is random depends on the place.
        let place = u64::from(place.0) << 16 | u64::from(place.1);
        let seed = platform.seed ^ (place + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let unit = match platform.kind {
            PlatformKind::Bare | PlatformKind::Mesh => None,
            PlatformKind::Tiled => Some(Dtu::new(
                config.dtu.as_ref()?,
                config.id,
                platform.ticks_per_second,
                kinds,
                config.privileged,
            )),
        };
        let owner = unit
            .as_ref()
            .map_or(Owner::new(config.id, 0), |u| u.current_owner());
        let port = config
            .dtu
            .as_ref()
            .map_or_else(Default::default, |d| d.port);
        let mut caches = Hierarchy::new(l1i, l1d, config.l2.as_ref(), port, seed);
        caches.set_owner(owner);
        let tcms = TcmMap::new(platform);
        let beside = config.tcm.iter().map(|memory| memory.size).sum::<u64>();
        let tcm = Tcm::new(config, &tcms, caches.add_beside(beside as usize));
        if platform.tiles.len() == 1 && unit.is_none() {
            caches.expect_own_bytes();
        }
        let homes = Homes::new(&platform.memories);
        let mut windows = [Window::default(); PMP_WINDOWS as usize];
        if unit.is_none() {
            let map = MemoryMap::new(platform);
            for (window, i) in windows.iter_mut().zip(0..) {
                let Some((memory, base)) = map.find(MEMORY_BASE + i * PMP_WINDOW_SIZE) else {
                    continue;
                };
                let size = (platform.memories[memory].window() - base).min(PMP_WINDOW_SIZE);
                *window = Window {
                    readable: size,
                    writable: size,
                    memory,
                    base,
                    home: homes.of(memory, base),
                };
            }
        }
        let mut hart = Hart::new(&config.hart, 0);
        let card = config.network_card.as_ref().map(|card| {
            let open = unit.is_none().then(|| Confinement::open(owner));
            NetworkCard::new(card, platform.ticks_per_second, open)
        });
        let sets = (l1d.size / (l1d.ways as u64 * l1d.line as u64)) as u32;
        hart.set_data_sets(sets);
        if unit.is_none() {
            hart.set_memory_types();
        }
        Some(Self {
            hart,
            accelerator: config
                .accelerator
                .as_ref()
                .map(|unit| Box::new(Accelerator::new(unit, seed))),
            second: config
                .second_hart
                .then(|| Box::new(Second::new(&config.hart, sets))),
            local: Local {
                id: config.id,
                owner,
                now: 0,
                queue: EventQueue::new(),
                windows,
                homes,
                engines: EngineMap::new(platform),
                tcms,
                tcm,
                map: MemoryMap::new(platform),
                epoch: 0,
                limit: Tick::MAX,
                hart_lookahead: miss_lookahead(config).min(command_lookahead(config)),
                announced: Announced::default(),
                past: 0,
                rights: 0,
                sleeping: false,
                signals: Vec::new(),
                deferred: Vec::new(),
                asked: [None; 2],
                holds_back: false,
                line: caches.line(),
                cycle: config.hart.ticks_per_cycle,
                regulated: unit.is_some(),
                second_hart: config.second_hart,
                second_software: false,
                second_tokens: Vec::new(),
                used: Used::default(),
                accesses: Accesses::default(),
                recall: false,
                clint: Clint::new(platform.ticks_per_second, platform.timebase_hz),
                interrupts: platform.is_interrupted(config.id).then(Interrupts::default),
                timer_at: Tick::MAX,
                alarms: Alarms::default(),
                uart: config.uart.then(Uart::new),
                card: CardPlace::new(card),
                exit: config.exit,
                htif: Htif::default(),
                end: None,
                markers: Vec::new(),
                markers_lost: 0,
                crashes: Vec::new(),
                processor: Processor::new(config.id, platform.ticks_per_second),
                timeline: None,
            },
            unit,
            caches,
            runnable: false,
            state: HartState::Halted,
            done: Vec::new(),
            command_lookahead: command_lookahead(config),
            message_lookahead: message_lookahead(config),
            hears: acceptance(config) + command_lookahead(config),
        })
    }

    /// Number on the network.
    pub fn id(&self) -> TileId {
        self.local.id
    }

    /// The hart.
    pub fn hart(&self) -> &Hart {
        &self.hart
    }

    /// The caches.
    pub fn caches(&self) -> &Hierarchy {
        &self.caches
    }

    /// The caches, to restrict their ways.
    pub fn caches_mut(&mut self) -> &mut Hierarchy {
        &mut self.caches
    }

    /// The unit.
    pub fn unit(&self) -> Option<&Dtu> {
        self.unit.as_ref()
    }

    /// [`Dtu::rights`] of the unit, if there is one.
    #[inline]
    pub fn rights(&self) -> u64 {
        self.local.rights
    }

    /// The unit, to configure it before a run.
    pub fn unit_mut(&mut self) -> Option<&mut Dtu> {
        self.unit.as_mut()
    }

    /// The console.
    pub fn uart(&self) -> Option<&Uart> {
        self.local.uart.as_ref()
    }

    /// The console, to feed it input.
    pub fn uart_mut(&mut self) -> Option<&mut Uart> {
        self.local.uart.as_mut()
    }

    /// Sets the address of the program's `tohost` word.
    pub fn set_tohost(&mut self, physical: u64) {
        self.local.htif = Htif::new(physical);
    }

    /// The software's markers, in time order.
    pub fn markers(&self) -> &[Marker] {
        &self.local.markers
    }

    /// Number of markers dropped because there were too many.
    pub fn markers_lost(&self) -> u64 {
        self.local.markers_lost
    }

    /// The kept state of crashed programs, in time order.
    pub fn crashes(&self) -> &[Crashed] {
        &self.local.crashes
    }

    /// Records all waits for the hart or for a service up to now.
    pub fn settle_waits(&mut self, now: Tick, ledger: &mut Ledger) {
        self.local.processor.settle(now, ledger);
        if let Some(unit) = &mut self.unit {
            unit.settle_requests(now, &mut |wait| ledger.unfetched(&wait));
        }
    }

    /// Restarts the times of the hart and the waits for services at this moment.
    pub fn forget_waits(&mut self, now: Tick) {
        self.local.processor.forget();
        if let Some(unit) = &mut self.unit {
            unit.forget_requests(now);
        }
    }

    /// The owner of the hart, and the activities that waited for it.
    pub fn processor(&self) -> &Processor {
        &self.local.processor
    }

    /// Starts a new timeline of the tile. Records every event of one stride, if wanted.
    pub fn watch(&mut self, record: Option<u64>) {
        self.local.timeline = Some(Box::new(Timeline::new(record)));
    }

    /// The tile's timeline since [`Tile::watch`].
    pub fn timeline(&self) -> Option<&Timeline> {
        self.local.timeline.as_deref()
    }

    /// How the tile ended, if it has.
    pub fn end(&self) -> Option<(Tick, End)> {
        self.local.end
    }

    /// Forgets how the tile ended so that the next run can continue.
    pub fn clear_end(&mut self) {
        self.local.end = None;
    }

    /// Starts the hart at `pc` with `a0` and `a1`.
    pub fn start(&mut self, at: Tick, pc: u64, a0: u64, a1: u64) {
        if let Some(accelerator) = &mut self.accelerator {
            return accelerator.start();
        }
        self.hart.reset(pc, at);
        self.hart.set_register(10, a0);
        self.hart.set_register(11, a1);
        self.runnable = true;
    }

    /// A started hart abandons its current work and waits, and continues at `pc`, no earlier than `at`.
    pub fn divert(&mut self, at: Tick, pc: u64) {
        self.hart.divert(pc, at);
        self.runnable |= !self.hart.is_halted();
    }

    /// Takes a packet that will have arrived.
    pub fn deliver(&mut self, delivery: Delivery) {
        let Delivery {
            mut at,
            plane,
            mut packet,
            ..
        } = delivery;
        debug_assert!(
            at >= self.local.past,
            "tile {} is at {}, and at {at} comes {packet:?}",
            self.local.id,
            self.local.past
        );
        if let PacketKind::Interrupt { .. } = packet.kind {
            // The controller takes it at the next edge of its clock.
            let edge = align(at, self.local.cycle);
            packet.account.service += edge - at;
            at = edge;
        }
        if self.local.tcm.takes(&packet.kind) {
            self.local.tcm.holds();
        }
        let source = FROM_NETWORK + u32::from(plane);
        self.local.queue.push(at, source, TileEvent::Packet(packet));
    }

    /// Applies what changed in the unit: windows, owner.
    pub fn synchronise(&mut self, fabric: &Fabric) {
        let Some(unit) = &self.unit else { return };
        self.local.synchronise(unit, &mut self.caches, fabric);
    }

    /// The next moment at which something happens here.
    #[inline]
    pub fn next_time(&self) -> Tick {
        self.hart_time().min(self.local.next_event())
    }

    /// The next moment at which a hart acts.
    #[inline]
    fn hart_time(&self) -> Tick {
        let first = if self.runnable {
            self.hart.time()
        } else {
            Tick::MAX
        };
        first.min(self.second_time())
    }

    #[inline]
    fn second_time(&self) -> Tick {
        self.second.as_ref().map_or(Tick::MAX, |s| s.next_time())
    }

    /// Processes all events and blocks before `horizon`, or fewer, so that the tile never overtakes anything that it asked for
    /// itself. It has announced when its packets leave at the earliest. Returns when it acts next.
    pub fn run(&mut self, horizon: Tick, announced: Announced, fabric: &mut Fabric) -> Moments {
        self.local.limit = Tick::MAX;
        self.local.announced = announced;
        loop {
            let event = self.local.next_event();
            let end = horizon.min(self.local.limit);
            if cfg!(debug_assertions) {
                // This is what the tile would have announced, had its window ended here.
                self.local.announced = self.moments().announced;
            }
            // A tile that ended the run stops at once: without other tiles, its window may be endless.
            if self.local.end.is_some() {
                return self.moments();
            }
            let first = if self.runnable {
                self.hart.time()
            } else {
                Tick::MAX
            };
            let second = self.second_time();
            if first < event.min(end) && first <= second {
                // Within one tick, the first hart goes first.
                let other = later(second, 1);
                self.run_hart(event.min(end).min(other), other, fabric);
            } else if second < event.min(end) {
                self.run_second(event.min(end), fabric);
            } else if event < end {
                self.take_event(fabric);
            } else {
                self.local.past = end;
                return self.moments_of(first.min(second), event);
            }
        }
    }

    fn run_hart(&mut self, horizon: Tick, other: Tick, fabric: &mut Fabric) {
        if self.state != HartState::Running && self.is_watched(fabric) {
            self.report(self.hart.time(), HartState::Running, fabric);
        }
        let stop = match self.local.tcm.exists() {
            false => self.run_bus::<false>(horizon, other, fabric),
            true => self.run_bus::<true>(horizon, other, fabric),
        };
        let idle = match stop {
            Stop::Horizon | Stop::Device | Stop::Tokens => None,
            Stop::Pending(_) => {
                self.runnable = false;
                None
            }
            Stop::WaitForInterrupt | Stop::Sleep => Some(HartState::Idle),
            Stop::Halted => Some(HartState::Halted),
            Stop::Unhandled(trap) => {
                self.local.finish(self.hart.time(), End::Unhandled(trap));
                Some(HartState::Halted)
            }
        };
        if let Some(state) = idle {
            self.runnable = false;
            if self.is_watched(fabric) {
                self.report(self.hart.time(), state, fabric);
            }
        }
        self.local.recall = false;
        if let Some(second) = &mut self.second {
            self.local.used.tell(&mut second.hart);
        }
        self.after_caches();
        if self.local.sleeping || !self.local.signals.is_empty() {
            self.settle(self.local.now, fabric);
        }
    }

    /// Lets the hart run with its view of the tile.
    #[inline]
    fn run_bus<const TCM: bool>(
        &mut self,
        horizon: Tick,
        other: Tick,
        fabric: &mut Fabric,
    ) -> Stop {
        let mut bus = TileBus::<TCM> {
            unit: self.unit.as_mut(),
            caches: &mut self.caches,
            local: &mut self.local,
            fabric,
            second: false,
            other,
            named: UNNAMED,
        };
        self.hart.run(&mut bus, horizon)
    }

    /// Tells the harts if a line left the first level.
    fn after_caches(&mut self) {
        if self.caches.take_first_level_changed() {
            self.hart.forget_lines();
            if let Some(second) = &mut self.second {
                second.hart.forget_lines();
            }
        }
    }

    /// Hands the devices' requests to the hart, and tells the unit if the hart is awake.
    fn settle(&mut self, now: Tick, fabric: &mut Fabric) {
        loop {
            self.apply_signals(now);
            debug_assert_eq!(
                self.local.sleeping,
                self.unit.as_ref().is_some_and(Dtu::is_sleeping)
            );
            if !self.local.sleeping || !self.hart.interrupt_pending() {
                return;
            }
            self.with_unit(fabric, |unit, env| unit.interrupted(env));
        }
    }

    fn is_watched(&self, fabric: &Fabric) -> bool {
        fabric.observer.is_some() || self.local.timeline.is_some()
    }

    fn report(&mut self, at: Tick, state: HartState, fabric: &mut Fabric) {
        if self.state != state {
            self.state = state;
            self.local.saw(at, Event::Hart(state));
            if let Some(observer) = &mut fabric.observer {
                observer.hart(at, (self.local.id, 0), state);
            }
        }
    }

    fn take_event(&mut self, fabric: &mut Fabric) {
        // Within one tick, the timer comes first, then the unit's alarms.
        let (alarm, queue) = (self.local.alarms.next_time(), self.local.queue.next_time());
        if self.local.timer_at <= alarm.min(queue) {
            let now = std::mem::replace(&mut self.local.timer_at, Tick::MAX);
            self.local.now = now;
            self.local.saw(now, Event::Timer);
            if self.accelerator.is_some() {
                return self.run_accelerator(fabric);
            }
            let signal = Signal::Line(InterruptLine::Timer, true);
            self.local.signals.push(signal);
            return self.settle(now, fabric);
        }
        let Some((now, event)) = self.local.next(alarm <= queue) else {
            return;
        };
        self.local.now = now;
        if let Some(timeline) = &mut self.local.timeline {
            let seen = match &event {
                TileEvent::Packet(packet) | TileEvent::Turn(packet) => Event::of(packet),
                TileEvent::Unit(event) => Event::Unit(*event),
                TileEvent::Card(event) => Event::of_card(event),
            };
            timeline.add(now, seen);
        }
        match event {
            TileEvent::Packet(packet) if self.local.tcm.takes(&packet.kind) => {
                self.ask_port(now, packet, fabric);
            }
            TileEvent::Packet(packet) => self.packet(now, packet, fabric),
            TileEvent::Turn(packet) => self.serve_port(now, packet, fabric),
            TileEvent::Unit(event) => {
                self.with_unit(fabric, |unit, env| unit.event(env, event));
            }
            TileEvent::Card(event) => self.card_event(event, fabric),
        }
        if self.accelerator.is_some() {
            self.apply_signals(now);
            return self.run_accelerator(fabric);
        }
        self.settle(now, fabric);
    }

    fn with_unit(&mut self, fabric: &mut Fabric, act: impl FnOnce(&mut Dtu, &mut TileEnv<'_>)) {
        let Some(unit) = &mut self.unit else { return };
        let mut env = TileEnv {
            caches: &mut self.caches,
            local: &mut self.local,
            fabric,
        };
        act(unit, &mut env);
        self.local.after_unit(unit, &mut self.caches, fabric);
        self.after_caches();
    }

    fn apply_signals(&mut self, now: Tick) {
        if self.local.signals.is_empty() {
            return;
        }
        for signal in std::mem::take(&mut self.local.signals) {
            if let Some(accelerator) = &mut self.accelerator {
                if let Signal::Start(_) | Signal::Stop = signal {
                    self.local.accesses.forget(&mut self.caches);
                }
                match signal {
                    Signal::Start(_) => accelerator.start(),
                    Signal::Stop => accelerator.stop(),
                    // It looks by itself.
                    _ => {}
                }
                continue;
            }
            match signal {
                Signal::Second(line, level) => {
                    self.signal_second(|hart| hart.set_interrupt(line, level, now));
                    continue;
                }
                Signal::StartSecond(pc) => {
                    self.signal_second(|hart| hart.reset(pc, now));
                    continue;
                }
                Signal::Line(line, level) => self.hart.set_interrupt(line, level, now),
                Signal::Wake => self.hart.wake(now),
                Signal::Start(pc) => {
                    self.local.forget_asked();
                    self.local.processor.stop(now);
                    self.hart.reset(pc, now);
                    self.stop_second();
                }
                Signal::Stop => {
                    self.local.forget_asked();
                    self.local.processor.stop(now);
                    self.hart.stop();
                    self.stop_second();
                }
            }
            self.runnable = true;
        }
    }
}
