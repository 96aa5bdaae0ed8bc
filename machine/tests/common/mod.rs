//! Small programs and chips for tests of whole machines.
#![allow(dead_code)] // The tests of clusters beside the code use a part of it.

pub mod dma;
pub mod doorbells;
pub mod engines;
pub mod interrupts;
pub mod litmus;
pub mod parts;
pub mod shapes;

use bulkhead_abi::dtu::{
    Command, Endpoint, MemoryEndpoint, NO_ENDPOINT, PRIVILEGED_ARGUMENT, PRIVILEGED_COMMAND,
    PrivilegedOpcode, ReceiveEndpoint, SendEndpoint, TILEMUX_ACTIVITY, TLB_READ, TLB_WRITE,
};
use bulkhead_abi::memory_map::{CORE_BITS, DTU_BASE, MEMORY_BASE, TILE_WINDOW_SHIFT, TILE_WINDOWS};
use bulkhead_machine::config::*;
use bulkhead_machine::dram::controller::{ControllerConfig, Policy, WriteQueue};
use bulkhead_machine::hart::{HartConfig, IntervalConfig};
use bulkhead_machine::machine::{Machine, Outcome, RunLimit};
use bulkhead_machine::types::{Tick, TileId};

/// Registers by their ABI names.
pub const ZERO: u32 = 0;
pub const T0: u32 = 5;
pub const T1: u32 = 6;
pub const T2: u32 = 7;
pub const S0: u32 = 8;
pub const S1: u32 = 9;
pub const A0: u32 = 10;
pub const A1: u32 = 11;
pub const S2: u32 = 18;
pub const S3: u32 = 19;

/// Instructions without operands.
pub const WFI: u32 = 0x1050_0073;
pub const FENCE: u32 = 0x0ff0_000f;
/// Operations on cache blocks (Zicbom, Zicboz).
pub const CBO_INVAL: u32 = 0;
pub const CBO_CLEAN: u32 = 1;
pub const CBO_FLUSH: u32 = 2;
pub const CBO_ZERO: u32 = 4;

/// A place in a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label(usize);

impl Label {
    /// Its place among the words of the program.
    pub fn index(self) -> usize {
        self.0
    }
}

/// An assembler for the few instructions that the tests need (encodings: RISC-V Unprivileged ISA, chapter "RV32/64G Instruction Set
/// Listings").
#[derive(Default)]
pub struct Program {
    words: Vec<u32>,
}

impl Program {
    pub fn here(&self) -> Label {
        Label(self.words.len())
    }
    pub fn word(&mut self, word: u32) -> &mut Self {
        self.words.push(word);
        self
    }
    pub fn addi(&mut self, rd: u32, rs: u32, value: i32) -> &mut Self {
        self.word((value as u32) << 20 | rs << 15 | rd << 7 | 0x13)
    }
    pub fn andi(&mut self, rd: u32, rs: u32, value: i32) -> &mut Self {
        self.word((value as u32) << 20 | rs << 15 | 7 << 12 | rd << 7 | 0x13)
    }
    pub fn slli(&mut self, rd: u32, rs: u32, by: u32) -> &mut Self {
        self.word(by << 20 | rs << 15 | 1 << 12 | rd << 7 | 0x13)
    }
    pub fn srli(&mut self, rd: u32, rs: u32, by: u32) -> &mut Self {
        self.word(by << 20 | rs << 15 | 5 << 12 | rd << 7 | 0x13)
    }
    fn register(&mut self, funct3: u32, rd: u32, rs1: u32, rs2: u32) -> &mut Self {
        self.word(rs2 << 20 | rs1 << 15 | funct3 << 12 | rd << 7 | 0x33)
    }
    pub fn add(&mut self, rd: u32, rs1: u32, rs2: u32) -> &mut Self {
        self.register(0, rd, rs1, rs2)
    }
    pub fn xor(&mut self, rd: u32, rs1: u32, rs2: u32) -> &mut Self {
        self.register(4, rd, rs1, rs2)
    }
    pub fn or(&mut self, rd: u32, rs1: u32, rs2: u32) -> &mut Self {
        self.register(6, rd, rs1, rs2)
    }
    pub fn and(&mut self, rd: u32, rs1: u32, rs2: u32) -> &mut Self {
        self.register(7, rd, rs1, rs2)
    }
    /// Any constant: eight bytes, one after the other.
    pub fn li(&mut self, rd: u32, value: u64) -> &mut Self {
        self.addi(rd, ZERO, 0);
        for byte in value.to_be_bytes() {
            self.slli(rd, rd, 8).addi(rd, rd, byte.into());
        }
        self
    }
    pub fn ld(&mut self, rd: u32, base: u32, offset: u64) -> &mut Self {
        self.load(8, rd, base, offset)
    }
    pub fn sd(&mut self, rs: u32, base: u32, offset: u64) -> &mut Self {
        self.store(8, rs, base, offset)
    }
    pub fn lw(&mut self, rd: u32, base: u32, offset: u64) -> &mut Self {
        self.load(4, rd, base, offset)
    }
    pub fn sw(&mut self, rs: u32, base: u32, offset: u64) -> &mut Self {
        self.store(4, rs, base, offset)
    }
    /// Loads 1, 2, 4 or 8 bytes, with sign.
    pub fn load(&mut self, bytes: u64, rd: u32, base: u32, offset: u64) -> &mut Self {
        let size = bytes.ilog2() << 12;
        self.word((offset as u32 & 0xFFF) << 20 | base << 15 | size | rd << 7 | 0x03)
    }
    /// Stores 1, 2, 4 or 8 bytes.
    pub fn store(&mut self, bytes: u64, rs: u32, base: u32, offset: u64) -> &mut Self {
        let (o, size) = (offset as u32, bytes.ilog2() << 12);
        self.word((o >> 5 & 0x7F) << 25 | rs << 20 | base << 15 | size | (o & 31) << 7 | 0x23)
    }
    /// Branch to a label: `funct3` 0 equal, 1 not equal.
    pub fn branch(&mut self, funct3: u32, rs1: u32, rs2: u32, to: Label) -> &mut Self {
        let word = branch(self.here(), funct3, rs1, rs2, to);
        self.word(word)
    }
    /// The following code begins a 64-byte line, which is fetched when it is jumped to.
    pub fn jump_to_line(&mut self) -> &mut Self {
        let here = self.here().0;
        let line = (here + 1).next_multiple_of(16);
        self.jump(Label(line));
        while self.here().0 < line {
            self.addi(ZERO, ZERO, 0);
        }
        self
    }
    /// Replaces the word at a place.
    pub fn patch(&mut self, at: Label, word: u32) {
        self.words[at.0] = word;
    }
    /// Makes the word at a place a jump to a label that was not known earlier.
    pub fn patch_jump(&mut self, at: Label, to: Label) {
        self.words[at.0] = branch(at, 0, ZERO, ZERO, to);
    }
    /// Makes the word at a place a branch to a label that was not known earlier.
    pub fn patch_branch(&mut self, at: Label, funct3: u32, rs1: u32, rs2: u32, to: Label) {
        self.words[at.0] = branch(at, funct3, rs1, rs2, to);
    }
    /// Jumps within a MiB.
    pub fn jump_far(&mut self, to: Label) -> &mut Self {
        let o = ((to.0 as i64 - self.here().0 as i64) * 4) as u32;
        let low = (o >> 1 & 0x3FF) << 21 | (o >> 11 & 1) << 20;
        self.word((o >> 20 & 1) << 31 | low | (o >> 12 & 0xFF) << 12 | 0x6f)
    }
    pub fn jump(&mut self, to: Label) -> &mut Self {
        self.branch(0, ZERO, ZERO, to)
    }
    /// Writes (1), sets (2) or clears (3) a control register.
    pub fn csr(&mut self, how: u32, csr: u32, rs: u32) -> &mut Self {
        self.word(csr << 20 | rs << 15 | how << 12 | 0x73)
    }
    /// An operation on the cache block at the address in a register.
    pub fn cbo(&mut self, what: u32, rs: u32) -> &mut Self {
        self.word(what << 20 | rs << 15 | 2 << 12 | 0x0f)
    }
    /// Appends another program's words, whose branches are relative.
    pub fn words_of(&mut self, other: &Program) -> &mut Self {
        self.words.extend(&other.words);
        self
    }
    pub fn bytes(&self) -> Vec<u8> {
        self.words.iter().flat_map(|w| w.to_le_bytes()).collect()
    }
    /// An atomic operation of eight bytes (`funct5`, with the acquire and release bits).
    pub fn amo(&mut self, funct5: u32, aqrl: u32, rd: u32, address: u32, rs: u32) -> &mut Self {
        self.word(funct5 << 27 | aqrl << 25 | rs << 20 | address << 15 | 3 << 12 | rd << 7 | 0x2f)
    }
    /// Load-reserved and store-conditional of eight bytes.
    pub fn lr(&mut self, rd: u32, address: u32) -> &mut Self {
        self.amo(2, 0, rd, address, ZERO)
    }
    pub fn sc(&mut self, rd: u32, address: u32, rs: u32) -> &mut Self {
        self.amo(3, 0, rd, address, rs)
    }
    pub fn mret(&mut self) -> &mut Self {
        self.word(0x3020_0073)
    }
    /// The following code runs in user mode, which may access everything. Uses `T0`.
    pub fn user(&mut self) -> &mut Self {
        self.li(T0, u64::MAX >> 10)
            .csr(1, 0x3b0, T0)
            .li(T0, 0x1f)
            .csr(1, 0x3a0, T0);
        // auipc
        self.word(T0 << 7 | 0x17)
            .addi(T0, T0, 16)
            .csr(1, 0x341, T0)
            .mret()
    }
    /// Supervisor mode uses the table at this physical address, with memory types if `types`, and may reach everything. Uses `T0`.
    pub fn translation(&mut self, root: u64, types: bool) -> &mut Self {
        self.li(T0, u64::MAX >> 10)
            .csr(1, 0x3b0, T0)
            .li(T0, 0x1f)
            .csr(1, 0x3a0, T0);
        // `menvcfg` and `satp`.
        self.li(T0, u64::from(types) << 62).csr(1, 0x30a, T0);
        self.li(T0, 8 << 60 | root >> 12).csr(1, 0x180, T0)
    }
    /// Data accesses of what follows are those of supervisor mode: MPRV, and that as the previous mode. Uses `T0`.
    pub fn as_supervisor(&mut self) -> &mut Self {
        self.li(T0, 1 << 17 | 1 << 11).csr(1, 0x300, T0)
    }
    pub fn marker(&mut self, rs: u32, kind: u32) -> &mut Self {
        self.word(kind << 20 | rs << 15 | 2 << 12 | 0x13)
    }
    pub fn spin(&mut self) -> &mut Self {
        let here = self.here();
        self.jump(here)
    }

    /// Starts the tile's second hart at this offset from the start of the tile's memory. Uses `T0` and `T1`.
    pub fn start_second(&mut self, offset: u64) -> &mut Self {
        self.li(T1, DTU_BASE + PRIVILEGED_COMMAND)
            .li(T0, MEMORY_BASE + offset)
            .sd(T0, T1, PRIVILEGED_ARGUMENT - PRIVILEGED_COMMAND)
            .addi(T0, ZERO, PrivilegedOpcode::StartSecond as i32)
            .sd(T0, T1, 0)
    }

    /// `A0` = the unit's registers.
    pub fn unit(&mut self) -> &mut Self {
        self.li(A0, DTU_BASE)
    }
    /// Gives a command and waits for its end; `T0` then holds the register's last value. Uses `T1`.
    pub fn command(
        &mut self,
        command: Command,
        address: u64,
        size: u64,
        argument: u64,
    ) -> &mut Self {
        self.li(T0, address).sd(T0, A0, 0x08);
        self.li(T0, size).sd(T0, A0, 0x10);
        self.li(T0, argument).sd(T0, A0, 0x18);
        self.repeat(command)
    }
    /// Gives a command with the arguments left unchanged, and waits for its end.
    pub fn repeat(&mut self, command: Command) -> &mut Self {
        self.li(T0, command.0).sd(T0, A0, 0);
        let wait = self.here();
        self.ld(T0, A0, 0).andi(T1, T0, 0xFF);
        self.branch(1, T1, ZERO, wait)
    }

    pub fn start(&self, machine: &mut Machine, tile: TileId) {
        self.start_at(machine, tile, 0);
    }
    /// Starts the program at this offset from the start of the tile's memory.
    pub fn start_at(&self, machine: &mut Machine, tile: TileId, offset: u64) {
        let at = MEMORY_BASE + offset;
        machine.load_tile(tile, at, &self.bytes()).expect("memory");
        machine.start_hart(tile, at, tile.into(), 0).expect("tile");
    }
}

fn branch(from: Label, funct3: u32, rs1: u32, rs2: u32, to: Label) -> u32 {
    let o = ((to.0 as i64 - from.0 as i64) * 4) as u32;
    (o >> 12 & 1) << 31
        | (o >> 5 & 0x3F) << 25
        | rs2 << 20
        | rs1 << 15
        | funct3 << 12
        | (o >> 1 & 0xF) << 8
        | (o >> 11 & 1) << 7
        | 0x63
}

/// Number of the memory tile.
pub const MEMORY: TileId = 100;
/// Bytes of memory that each tile has, at its tile number times this.
pub const SHARE: u64 = 1 << 20;

fn cache(size: u64, latency: u64) -> CacheConfig {
    CacheConfig {
        size,
        cycle: 2,
        latency,
        ..CacheConfig::default()
    }
}

/// Ticks of 4 GHz: harts and units at 2 GHz, network at 1 GHz, memory at 800 MHz; a crossbar; one memory; each tile has its share of it
/// in window 0.
pub fn chip(tiles: u16) -> Machine {
    chip_of(&platform(PlatformKind::Tiled, tiles))
}

/// The same for a modified platform.
pub fn chip_of(config: &PlatformConfig) -> Machine {
    let mut machine = Machine::new(config).expect("valid");
    for tile in 0..config.tiles.len() as u16 {
        set(
            &mut machine,
            tile,
            0,
            memory(u64::from(tile) * SHARE, SHARE, TLB_READ | TLB_WRITE),
        );
    }
    machine
}

/// The same chip without units: each tile has the whole memory.
pub fn bare_chip(tiles: u16) -> Machine {
    Machine::new(&platform(PlatformKind::Bare, tiles)).expect("valid")
}

pub fn platform(kind: PlatformKind, tiles: u16) -> PlatformConfig {
    let unit = (kind == PlatformKind::Tiled).then(|| DtuConfig {
        cycle: 2,
        endpoints: 64,
        ..DtuConfig::default()
    });
    let tile = |id| TileConfig {
        l1i: Some(cache(16 << 10, 2)),
        l1d: Some(cache(16 << 10, 2)),
        l2: Some(cache(64 << 10, 12)),
        dtu: unit.clone(),
        privileged: id == 0,
        ..TileConfig::new(
            id,
            HartConfig {
                ticks_per_cycle: 2,
                ..HartConfig::default()
            },
        )
    };
    PlatformConfig {
        name: "test".into(),
        kind,
        ticks_per_second: 4_000_000_000,
        timebase_hz: 10_000_000,
        tiles: (0..tiles).map(tile).collect(),
        memories: vec![MemoryConfig {
            id: MEMORY,
            dram: ControllerConfig::ddr3(5).into(),
            size: 16 << 20,
            router: 0,
            second_port_of: Vec::new(),
            dropped: 0,
        }],
        cables: Vec::new(),
        network: NetworkConfig {
            cycle: 4,
            ..NetworkConfig::default()
        },
        seed: 1,
        engines: Vec::new(),
        peripherals: Vec::new(),
        doorbells: None,
    }
}

/// A pipeline out of order.
pub const OUT_OF_ORDER: IntervalConfig = IntervalConfig {
    width: 2,
    window: 48,
    load_queue: 16,
    store_queue: 16,
    alus: 2,
    memory_ports: 1,
    float_units: 1,
};

/// In order, out of order, and out of order with as little of everything as there can be.
pub const PIPELINES: [Option<IntervalConfig>; 3] = [
    None,
    Some(OUT_OF_ORDER),
    Some(IntervalConfig {
        width: 1,
        window: 2,
        load_queue: 1,
        store_queue: 1,
        alus: 1,
        memory_ports: 1,
        float_units: 1,
    }),
];

/// The same chip, whose harts all have this pipeline.
pub fn pipelined(mut config: PlatformConfig, pipeline: Option<IntervalConfig>) -> PlatformConfig {
    for tile in &mut config.tiles {
        tile.hart.interval = pipeline;
        let cores = tile
            .cluster
            .iter_mut()
            .flat_map(|cluster| &mut cluster.cores);
        for core in cores.flatten() {
            core.hart.interval = pipeline;
        }
    }
    config
}

/// A chip with one tile that has a cluster of this many harts: 2 GHz, first levels of 16 KiB and a second level of 64 KiB.
pub fn cluster(harts: u16) -> PlatformConfig {
    let mut config = platform(PlatformKind::Bare, 1);
    let tile = &mut config.tiles[0];
    tile.cluster = Some(ClusterConfig::of(harts));
    tile.hart.hardware_ad = false;
    (tile.uart, tile.exit) = (true, true);
    config
}

/// A chip of several such tiles with clusters of this many harts each, numbered from 0 on; 0: a tile with one hart and private caches.
pub fn clusters(harts: &[u16]) -> PlatformConfig {
    let mut config = platform(PlatformKind::Bare, harts.len() as u16);
    for (tile, harts) in config.tiles.iter_mut().zip(harts) {
        tile.cluster = (*harts > 0).then(|| ClusterConfig::of(*harts));
        tile.hart.hardware_ad = false;
        (tile.uart, tile.exit) = (true, true);
    }
    config
}

/// The same, where all clusters are coherent with each other.
pub fn coherent(harts: &[u16]) -> PlatformConfig {
    let mut config = clusters(harts);
    for tile in &mut config.tiles {
        if let Some(cluster) = &mut tile.cluster {
            cluster.coherent = true;
        }
    }
    config
}

/// Puts a program into memory at this offset and starts it on the hart at a port of the cluster, with the port in `A0`.
pub fn start_port(machine: &mut Machine, port: usize, program: &Program, offset: u64) {
    start_hart(machine, (0, port), program, offset);
}

/// The same for a tile with a cluster or one hart (port 0).
pub fn start_hart(
    machine: &mut Machine,
    (tile, port): (TileId, usize),
    program: &Program,
    offset: u64,
) {
    let at = MEMORY_BASE + offset;
    machine
        .load_tile(tile, at, &program.bytes())
        .expect("memory");
    let mut config = machine.config().tiles.iter();
    let found = config.find(|one| one.id == tile).expect("a tile");
    let started = match found.cluster {
        Some(_) => machine.start_cluster_hart((tile, port), at, port as u64, 0),
        None => machine.start_hart(tile, at, port as u64, 0),
    };
    started.expect("a hart");
}

/// Every recorded wait appears in the account of a request, and vice versa.
pub fn waits_are_booked(machine: &Machine) {
    let ledger = machine.ledger();
    for (owner, booked) in ledger.totals() {
        let latencies = ledger.latencies();
        let own = latencies.iter().filter(|l| l.owner == owner);
        let waited: Tick = own.map(|l| l.waited).sum();
        assert_eq!(booked, waited, "{owner:?}: {:?}", ledger.bookings());
    }
}

/// Runs a machine up to a tick in windows of many lengths. Nothing ends the run before.
pub fn in_pieces(machine: &mut Machine, until: Tick) {
    let mut length = 1;
    while machine.now() < until {
        length = length * 5 % 97;
        let ticks = (machine.now() + length).min(until);
        assert_eq!(machine.run(RunLimit { ticks }, None), Outcome::Limit);
    }
}

/// A machine that runs in one piece up to a moment and an equal one that runs in pieces do the same.
pub fn pieces_change_nothing(machine: impl Fn() -> Machine, until: Tick) {
    let mut whole = machine();
    assert_eq!(whole.run(RunLimit { ticks: until }, None), Outcome::Limit);
    let mut pieces = machine();
    in_pieces(&mut pieces, until);
    assert_eq!(whole.statistics(), pieces.statistics());
    assert_eq!(whole.ledger().bookings(), pieces.ledger().bookings());
    assert_eq!(whole.digest(), pieces.digest());
}

/// Requests of each instruction, with gem5's defaults.
pub fn by_instruction(degree: u32) -> PrefetcherConfig {
    PrefetcherConfig {
        kind: PrefetcherKind::Stride {
            entries: 64,
            ways: 4,
            bits: 3,
            initial: 4,
            threshold: 50,
        },
        degree,
        page: 4096,
    }
}

/// A chip of one tile with two harts.
pub fn two_harts() -> PlatformConfig {
    let mut config = platform(PlatformKind::Tiled, 1);
    config.tiles[0].second_hart = true;
    config
}

/// Controllers that [`other_controller`] knows: in order, first ready, first ready with a write queue, slots.
pub const CONTROLLERS: usize = 4;

/// A chip of which a test builds thousands: the host clears all of a memory for each, so these have 1 MiB.
pub fn small_memories(config: &mut PlatformConfig) {
    for memory in &mut config.memories {
        memory.size = memory.size.min(1 << 20);
    }
}

/// Gives the chip's memory another controller, DDR3-1600 behind two channels.
pub fn other_controller(config: &mut PlatformConfig, which: usize) {
    let MemoryConfig { dram, size, .. } = &mut config.memories[0];
    let controller = &mut dram.controller;
    controller.map.size = *size;
    controller.map.channels = 2;
    controller.map.channel_interleave = Some(256);
    controller.map.xor = true;
    controller.policy = match which {
        0 => Policy::Fcfs,
        1 | 2 => Policy::FirstReady { cap: 4 },
        _ => Policy::Slots,
    };
    let writes = WriteQueue {
        size: 16,
        high: 12,
        low: 4,
    };
    controller.write_queue = (which == 2).then_some(writes);
}

/// A mesh of tiles with local memories, named by their routers: harts and memories at 600 MHz, a network at 1.2 GHz with three cycles
/// per hop, and an external memory at router 0.
pub fn mesh(columns: u16, rows: u16) -> PlatformConfig {
    let tile = |router| TileConfig {
        local_memory: Some(LocalMemoryConfig {
            cycle: 2,
            ..LocalMemoryConfig::default()
        }),
        router,
        ..TileConfig::new(
            router,
            HartConfig {
                ticks_per_cycle: 2,
                store_buffer: 16,
                load_buffer: 4,
                ..HartConfig::default()
            },
        )
    };
    let network = NetworkConfig {
        topology: Topology::Mesh { columns, rows },
        width: 8,
        header: 8,
        link: 1,
        router: 2,
        interface: 1,
        channels: Channels::Acknowledged { read_interval: 16 },
        ..NetworkConfig::default()
    };
    PlatformConfig {
        kind: PlatformKind::Mesh,
        ticks_per_second: 1_200_000_000,
        timebase_hz: 600_000_000,
        tiles: (0..columns * rows).map(tile).collect(),
        memories: vec![MemoryConfig {
            id: 5000,
            dram: ControllerConfig::ddr3(1).into(),
            size: 1 << 20,
            router: 0,
            second_port_of: Vec::new(),
            dropped: 0,
        }],
        network,
        ..platform(PlatformKind::Bare, 1)
    }
}

/// Start of the window of the tile in this column and row of a mesh.
pub fn window(column: u64, row: u64) -> u64 {
    TILE_WINDOWS + ((row << CORE_BITS | column) << TILE_WINDOW_SHIFT)
}

pub fn set(machine: &mut Machine, tile: TileId, index: u16, endpoint: Endpoint) {
    machine
        .unit_mut(tile)
        .expect("tile")
        .set_endpoint(index, endpoint);
}

pub fn memory(base: u64, size: u64, rights: u64) -> Endpoint {
    Endpoint::Memory(MemoryEndpoint {
        activity: TILEMUX_ACTIVITY,
        target_tile: MEMORY,
        rights: rights as u8,
        base,
        size,
    })
}

pub fn send(tile: TileId, endpoint: u16, credits: u8) -> Endpoint {
    Endpoint::Send(SendEndpoint {
        activity: TILEMUX_ACTIVITY,
        target_tile: tile,
        target_endpoint: endpoint,
        label: 0x77,
        credits,
        credits_max: credits,
        message_size: 256,
        credit_endpoint: NO_ENDPOINT,
        reply: false,
        shares: 0,
        epoch: 0,
    })
}

pub fn receive(activity: u16, offset: u64, slots: u8, reply_endpoints: u16) -> Endpoint {
    Endpoint::Receive(ReceiveEndpoint {
        activity,
        reply_endpoints,
        buffer: MEMORY_BASE + offset,
        slot_size: 256,
        slots,
        ..ReceiveEndpoint::default()
    })
}
