//! A chip of units with fixed latencies: every packet takes `HOP` ticks, memory answers after `MEMORY`, a local block
//! takes `LOCAL`. Four processing tiles (0 to 3) and one memory tile (8); tile t owns `SHARE` bytes at `t * SHARE`.

use super::super::*;

use crate::local_token::LocalToken;
use crate::noc::Transaction;
use crate::types::Block;
use bulkhead_abi::dtu::*;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

pub const TILES: u16 = 4;
pub const MEMORY_TILE: u16 = 8;
pub const SHARE: u64 = 0x1_0000;
pub const HOP: Tick = 10;
pub const MEMORY: Tick = 100;
pub const LOCAL: Tick = 20;
/// Ticks per second; a cycle of the unit is 2 ticks (2 GHz).
pub const TICKS: u64 = 4_000_000_000;
/// Tile-physical start of memory.
pub const BASE: u64 = MEMORY_BASE;

pub fn config() -> DtuConfig {
    DtuConfig {
        cycle: 2,
        endpoints: 32,
        tlb_entries: 8,
        ..DtuConfig::default()
    }
}

#[derive(Debug)]
#[allow(clippy::large_enum_variant)] // Packets have room for a line, and there are few of them.
enum Action {
    Event(u16, DtuEvent),
    /// A pending access of a tile: token, place in memory, bytes to write.
    Local(u16, LocalToken, Range<usize>, Option<Vec<u8>>),
    Arrive(Packet),
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Hart {
    pub interrupt: bool,
    pub interrupt_enabled: bool,
    pub wakes: u32,
    pub started: Option<u64>,
    pub stopped: bool,
    pub second: Option<u64>,
    pub second_line: bool,
}

/// Everything but the units, so that a unit and its surroundings can be borrowed separately.
#[derive(Debug)]
pub struct Chip {
    pub now: Tick,
    queue: BTreeMap<(Tick, u64), Action>,
    /// Where the alarms of each tile are in the queue.
    alarms: BTreeMap<(u16, Alarm), (Tick, u64)>,
    sequence: u64,
    pub memory: Vec<u8>,
    pub harts: Vec<Hart>,
    pub log: Vec<(Tick, u16, Observation)>,
    /// Every packet sent, and when.
    pub sent: Vec<(Tick, Packet)>,
    /// Local accesses answer through `local_done` instead of at once.
    pub pending: bool,
    /// Local accesses: moment, tile, address, bytes, write.
    pub accesses: Vec<(Tick, u16, u64, u32, bool)>,
    /// Lines to be written back, and when.
    pub written_back: Vec<(Tick, u64)>,
    /// Pending accesses that were cancelled.
    forgotten: BTreeSet<(u16, LocalToken)>,
}

impl Chip {
    /// What is still to come.
    pub fn pending(&self) -> usize {
        self.queue.len()
    }

    fn push(&mut self, at: Tick, action: Action) {
        self.sequence += 1;
        self.queue.insert((at, self.sequence), action);
    }

    fn index(tile: u16, physical: u64) -> usize {
        (u64::from(tile) * SHARE + (physical - BASE)) as usize
    }
}

struct Side<'a> {
    chip: &'a mut Chip,
    tile: u16,
}

impl Env for Side<'_> {
    fn now(&self) -> Tick {
        self.chip.now
    }
    fn schedule(&mut self, at: Tick, event: DtuEvent) {
        assert!(at >= self.chip.now, "an event in the past");
        self.chip.push(at, Action::Event(self.tile, event));
    }
    fn set_alarm(&mut self, alarm: Alarm, at: Tick) {
        assert!(at >= self.chip.now, "an alarm in the past");
        let old = self.chip.alarms.remove(&(self.tile, alarm));
        if let Some(key) = old {
            self.chip.queue.remove(&key);
        }
        if at < Tick::MAX / 2 {
            self.chip
                .push(at, Action::Event(self.tile, DtuEvent::Due(alarm)));
            let key = (at, self.chip.sequence);
            self.chip.alarms.insert((self.tile, alarm), key);
        }
    }
    fn send(&mut self, packet: Packet) {
        assert_eq!(packet.source, self.tile);
        // A message to itself is answered by the same unit.
        let to_itself = packet.source == packet.destination;
        let is_own = packet.owner.tile == self.tile;
        assert!(to_itself || is_own != packet.kind.is_response());
        self.chip.sent.push((self.chip.now, packet.clone()));
        self.chip.push(self.chip.now + HOP, Action::Arrive(packet));
    }
    fn local_access(
        &mut self,
        physical: u64,
        block: Block<'_>,
        _owner: Owner,
        token: LocalToken,
    ) -> Result<LocalTiming, LocalFault> {
        let bytes = block.len();
        assert!(bytes != 0 && physical / 64 == (physical + bytes as u64 - 1) / 64);
        let (now, write) = (self.chip.now, block.is_write());
        self.chip
            .accesses
            .push((now, self.tile, physical, bytes as u32, write));
        let start = Chip::index(self.tile, physical);
        let place = start..start + bytes;
        if self.chip.pending {
            let written = match block {
                Block::Read(_) => None,
                Block::Write(data) => Some(data.to_vec()),
            };
            let action = Action::Local(self.tile, token, place, written);
            self.chip.push(now + LOCAL, action);
            return Ok(LocalTiming::Pending);
        }
        match block {
            Block::Read(buffer) => buffer.copy_from_slice(&self.chip.memory[place]),
            Block::Write(data) => self.chip.memory[place].copy_from_slice(data),
        }
        Ok(LocalTiming::Ready(now + LOCAL))
    }
    fn local_forget(&mut self, token: LocalToken) {
        self.chip.forgotten.insert((self.tile, token));
    }
    fn line(&self) -> u64 {
        64
    }
    fn local_write_back(
        &mut self,
        line: u64,
        owner: Owner,
        token: LocalToken,
    ) -> Result<LocalTiming, Later> {
        self.chip.written_back.push((self.chip.now, line));
        assert_eq!(owner, Owner::new(0, TILEMUX_ACTIVITY));
        if self.chip.pending {
            // Each line is in transit the first time.
            let before = self
                .chip
                .written_back
                .iter()
                .filter(|w| w.1 == line)
                .count();
            let action = Action::Local(self.tile, token, 0..0, None);
            self.chip.push(self.chip.now + LOCAL, action);
            return match before {
                1 => Err(Later),
                _ => Ok(LocalTiming::Pending),
            };
        }
        Ok(LocalTiming::Ready(self.chip.now + LOCAL))
    }
    fn interrupt(&mut self, level: bool) {
        self.hart().interrupt = level;
    }
    fn interrupt_pending(&self) -> bool {
        let hart = self.chip.harts[usize::from(self.tile)];
        hart.interrupt && hart.interrupt_enabled
    }
    fn wake_hart(&mut self) {
        self.hart().wakes += 1;
    }
    fn start_hart(&mut self, pc: u64) {
        self.hart().started = Some(pc);
    }
    fn start_second(&mut self, pc: u64) -> bool {
        self.chip.harts[self.tile as usize].second = Some(pc);
        true
    }
    fn interrupt_second(&mut self, level: bool) {
        self.chip.harts[self.tile as usize].second_line = level;
    }
    fn stop_hart(&mut self) {
        self.hart().stopped = true;
    }
    fn observe(&mut self, observation: Observation) {
        self.chip.log.push((self.chip.now, self.tile, observation));
    }
}

impl Side<'_> {
    fn hart(&mut self) -> &mut Hart {
        &mut self.chip.harts[usize::from(self.tile)]
    }
}

#[derive(Debug)]
pub struct World {
    pub chip: Chip,
    pub units: Vec<Dtu>,
}

impl World {
    /// Tile 0 is privileged. Window 0 of each tile is its share of the memory.
    pub fn new(config: &DtuConfig) -> Self {
        let mut kinds = vec![TileKind::Absent; 9];
        kinds[..usize::from(TILES)].fill(TileKind::Processing);
        kinds[usize::from(MEMORY_TILE)] = TileKind::Memory;
        let kinds: Arc<[TileKind]> = kinds.into();
        let units = (0..TILES)
            .map(|tile| {
                let mut unit = Dtu::new(config, tile, TICKS, kinds.clone(), tile == 0);
                unit.set_endpoint(0, share(tile));
                unit
            })
            .collect();
        let hart = Hart {
            interrupt_enabled: true,
            ..Hart::default()
        };
        Self {
            chip: Chip {
                now: 0,
                queue: BTreeMap::new(),
                alarms: BTreeMap::new(),
                sequence: 0,
                memory: vec![0; SHARE as usize * usize::from(TILES)],
                harts: vec![hart; TILES.into()],
                log: Vec::new(),
                sent: Vec::new(),
                pending: false,
                accesses: Vec::new(),
                written_back: Vec::new(),
                forgotten: BTreeSet::new(),
            },
            units,
        }
    }

    pub fn read(&mut self, tile: u16, offset: u64) -> u64 {
        let mut side = Side {
            chip: &mut self.chip,
            tile,
        };
        let unit = &mut self.units[usize::from(tile)];
        unit.read_register(&mut side, offset, 8).expect("aligned")
    }

    pub fn write(&mut self, tile: u16, offset: u64, value: u64) -> WriteEffect {
        let mut side = Side {
            chip: &mut self.chip,
            tile,
        };
        let unit = &mut self.units[usize::from(tile)];
        unit.write_register(&mut side, offset, 8, value)
            .expect("aligned")
    }

    /// Delivers a packet to a unit, now.
    pub fn deliver(&mut self, packet: Packet) {
        let tile = packet.destination;
        let mut side = Side {
            chip: &mut self.chip,
            tile,
        };
        self.units[usize::from(tile)].packet(&mut side, packet);
    }

    /// The kernel writes a register of a tile, now.
    pub fn external(&mut self, tile: u16, offset: u64, value: u64) {
        let kind = PacketKind::WriteRequest {
            address: offset,
            bytes: 8,
            data: Some(value.to_le_bytes().into()),
        };
        let owner = Owner::new(0, TILEMUX_ACTIVITY);
        let (now, transaction) = (self.chip.now, Transaction::Register);
        let packet = Packet::request(now, 0, tile, owner, 0, transaction, kind);
        self.deliver(packet);
    }

    /// Runs one action; false if there is none.
    pub fn step(&mut self) -> bool {
        let Some(((at, _), action)) = self.chip.queue.pop_first() else {
            return false;
        };
        self.chip.now = at;
        match action {
            Action::Event(tile, event) => {
                if let DtuEvent::Due(alarm) = event {
                    self.chip.alarms.remove(&(tile, alarm));
                }
                let mut side = Side {
                    chip: &mut self.chip,
                    tile,
                };
                self.units[usize::from(tile)].event(&mut side, event);
            }
            Action::Local(tile, token, place, written) => {
                let forgotten = self.chip.forgotten.remove(&(tile, token));
                if let Some(data) = written.filter(|_| !forgotten) {
                    self.chip.memory[place.clone()].copy_from_slice(&data);
                }
                let bytes = self.chip.memory[place].to_vec();
                let mut side = Side {
                    chip: &mut self.chip,
                    tile,
                };
                let unit = &mut self.units[usize::from(tile)];
                unit.local_done(&mut side, token, Some(&bytes));
            }
            Action::Arrive(packet) if packet.destination == MEMORY_TILE => self.memory(&packet),
            Action::Arrive(packet) => self.deliver(packet),
        }
        true
    }

    fn memory(&mut self, packet: &Packet) {
        let size = self.chip.memory.len() as u64;
        let fits = |address: u64, bytes: u32| {
            (address
                .checked_add(bytes.into())
                .is_some_and(|end| end <= size))
            .then(|| address as usize..address as usize + bytes as usize)
        };
        let kind = match &packet.kind {
            PacketKind::ReadRequest { address, bytes } => {
                let range = fits(*address, *bytes);
                PacketKind::ReadResponse {
                    error: range.is_none(),
                    data: range.map(|range| self.chip.memory[range].into()),
                    bytes: *bytes,
                }
            }
            PacketKind::WriteRequest {
                address,
                bytes,
                data,
            } => {
                let range = fits(*address, *bytes);
                let error = range.is_none();
                if let (Some(range), Some(data)) = (range, data) {
                    self.chip.memory[range].copy_from_slice(data);
                }
                PacketKind::WriteResponse { error }
            }
            _ => panic!("memory got {packet:?}"),
        };
        let response = packet.response(kind);
        let at = self.chip.now + MEMORY + HOP;
        self.chip.push(at, Action::Arrive(response));
    }

    pub fn run(&mut self) {
        while self.step() {}
    }

    /// Runs at most `actions` actions, because a hostile hart can leave centuries of work.
    pub fn drain(&mut self, actions: u32) {
        for _ in 0..actions {
            self.step();
        }
    }

    /// Runs everything before `at`, and sets the clock to it.
    pub fn run_until(&mut self, at: Tick) {
        while self
            .chip
            .queue
            .first_key_value()
            .is_some_and(|(key, _)| key.0 < at)
        {
            self.step();
        }
        self.chip.now = at;
    }

    /// Starts a command of the unprivileged page.
    pub fn command(
        &mut self,
        tile: u16,
        command: Command,
        address: u64,
        size: u64,
        argument: u64,
    ) -> WriteEffect {
        self.write(tile, ADDRESS, address);
        self.write(tile, SIZE, size);
        self.write(tile, ARGUMENT, argument);
        self.write(tile, COMMAND, command.0)
    }

    /// Runs a command to its end. Returns its error and the ticks it took.
    pub fn execute(
        &mut self,
        tile: u16,
        command: Command,
        address: u64,
        size: u64,
        argument: u64,
    ) -> (DtuError, Tick) {
        let start = self.chip.now;
        self.command(tile, command, address, size, argument);
        while self.chip.log.iter().rev().all(|&(at, t, o)| {
            t != tile || at < start || !matches!(o, Observation::CommandEnd { .. })
        }) || self.units[usize::from(tile)].running.is_some()
        {
            assert!(self.step(), "the command never ends");
        }
        (self.error(tile), self.chip.now - start)
    }

    /// Error of the last command.
    pub fn error(&mut self, tile: u16) -> DtuError {
        let command = Command(self.read(tile, COMMAND));
        DtuError::from_code(command.error()).expect("known code")
    }

    pub fn fetch(&mut self, tile: u16, endpoint: u16) -> Option<u64> {
        let command = Command::new(Opcode::Fetch, endpoint, 0);
        assert_eq!(self.execute(tile, command, 0, 0, 0).0, DtuError::None);
        let offset = self.read(tile, ARGUMENT);
        (offset != NO_MESSAGE).then_some(offset)
    }

    /// Makes an activity current on a tile. Returns the old value of the register.
    pub fn switch(&mut self, tile: u16, activity: u16, bucket: u8) -> CurrentActivity {
        let new = CurrentActivity::new(activity, 0, bucket).0;
        self.write(tile, PRIVILEGED_ARGUMENT, new);
        self.write(
            tile,
            PRIVILEGED_COMMAND,
            PrivilegedOpcode::ExchangeActivity as u64,
        );
        CurrentActivity(self.read(tile, PRIVILEGED_ARGUMENT))
    }

    /// Maps a virtual page of an activity to this offset in the tile's memory.
    pub fn map(&mut self, tile: u16, activity: u16, page: u64, offset: u64, rights: u64) {
        self.write(tile, PRIVILEGED_ARGUMENT, page | rights);
        let physical = (BASE + offset) | u64::from(activity) << 48;
        self.write(tile, PRIVILEGED_ARGUMENT2, physical);
        self.write(tile, PRIVILEGED_COMMAND, PrivilegedOpcode::InsertTlb as u64);
    }

    pub fn bytes(&mut self, tile: u16, offset: u64, length: u64) -> &mut [u8] {
        let start = Chip::index(tile, BASE + offset);
        &mut self.chip.memory[start..start + length as usize]
    }

    pub fn endpoint(&self, tile: u16, index: u16) -> Endpoint {
        self.units[usize::from(tile)].endpoint(index)
    }

    pub fn set(&mut self, tile: u16, index: u16, endpoint: Endpoint) {
        self.units[usize::from(tile)].set_endpoint(index, endpoint);
    }
}

/// A tile's own share of the memory.
pub fn share(tile: u16) -> Endpoint {
    Endpoint::Memory(MemoryEndpoint {
        activity: TILEMUX_ACTIVITY,
        target_tile: MEMORY_TILE,
        rights: (TLB_READ | TLB_WRITE) as u8,
        base: u64::from(tile) * SHARE,
        size: SHARE,
    })
}

pub fn send_to(tile: u16, endpoint: u16, credits: u8, message_size: u16) -> Endpoint {
    Endpoint::Send(SendEndpoint {
        activity: TILEMUX_ACTIVITY,
        target_tile: tile,
        target_endpoint: endpoint,
        label: 0x1234_5678_9abc_def0,
        credits,
        credits_max: credits,
        message_size,
        credit_endpoint: NO_ENDPOINT,
        reply: false,
        shares: 0,
        epoch: 0,
    })
}

pub fn receive_at(offset: u64, slots: u8, slot_size: u16, reply_endpoints: u16) -> Endpoint {
    Endpoint::Receive(ReceiveEndpoint {
        activity: TILEMUX_ACTIVITY,
        reply_endpoints,
        buffer: BASE + offset,
        slot_size,
        slots,
        ..ReceiveEndpoint::default()
    })
}

pub fn memory_at(tile: u16, base: u64, size: u64, rights: u64) -> Endpoint {
    Endpoint::Memory(MemoryEndpoint {
        activity: TILEMUX_ACTIVITY,
        target_tile: tile,
        rights: rights as u8,
        base,
        size,
    })
}
