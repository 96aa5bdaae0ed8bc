//! Whole machines with small programs, assembled here by hand.

use super::*;
use crate::config::dram::ControllerConfig;
use crate::config::*;
use crate::hart::HartConfig;
use crate::ledger::{Level, Resource};
use crate::noc::Transaction;
use crate::types::Owner;
use bulkhead_abi::dtu::{
    self, Command, Endpoint, MemoryEndpoint, Opcode, ReceiveEndpoint, SendEndpoint,
};
use bulkhead_abi::memory_map::{DTU_BASE, EXIT_BASE, UART_BASE};

/// Integer registers by their ABI names.
const ZERO: u32 = 0;
const T0: u32 = 5;
const T1: u32 = 6;
const T2: u32 = 7;
const S0: u32 = 8;
const S1: u32 = 9;
const A0: u32 = 10;
const A1: u32 = 11;

/// A program as instruction words; labels are word indices.
#[derive(Default)]
struct Program(Vec<u32>);

impl Program {
    fn here(&self) -> usize {
        self.0.len()
    }
    fn addi(&mut self, rd: u32, rs: u32, value: i32) -> &mut Self {
        self.word((value as u32) << 20 | rs << 15 | rd << 7 | 0x13)
    }
    fn word(&mut self, word: u32) -> &mut Self {
        self.0.push(word);
        self
    }
    fn op(&mut self, funct7: u32, funct3: u32, rd: u32, rs1: u32, rs2: u32) -> &mut Self {
        self.word(funct7 << 25 | rs2 << 20 | rs1 << 15 | funct3 << 12 | rd << 7 | 0x33)
    }
    fn slli(&mut self, rd: u32, rs: u32, by: u32) -> &mut Self {
        self.word(by << 20 | rs << 15 | 1 << 12 | rd << 7 | 0x13)
    }
    fn srli(&mut self, rd: u32, rs: u32, by: u32) -> &mut Self {
        self.word(by << 20 | rs << 15 | 5 << 12 | rd << 7 | 0x13)
    }
    /// Any constant, 11 bits at a time.
    fn li(&mut self, rd: u32, value: u64) -> &mut Self {
        self.addi(rd, ZERO, 0);
        for i in (0..6).rev() {
            let part = (value >> (11 * i) & 0x7FF) as i32;
            if i < 5 {
                self.slli(rd, rd, 11);
            }
            self.addi(rd, rd, part >> 1)
                .addi(rd, rd, part - (part >> 1));
        }
        self
    }
    fn load(&mut self, rd: u32, base: u32, offset: i32) -> &mut Self {
        self.word((offset as u32 & 0xFFF) << 20 | base << 15 | 3 << 12 | rd << 7 | 0x03)
    }
    fn store(&mut self, rs: u32, base: u32, offset: i32) -> &mut Self {
        self.store_width(3, rs, base, offset)
    }
    fn store_width(&mut self, width: u32, rs: u32, base: u32, offset: i32) -> &mut Self {
        let o = offset as u32;
        self.word(
            (o >> 5 & 0x7F) << 25 | rs << 20 | base << 15 | width << 12 | (o & 0x1F) << 7 | 0x23,
        )
    }
    /// Branch to an earlier label: `funct3` 0 equal, 1 not equal, 4 less.
    fn branch(&mut self, funct3: u32, rs1: u32, rs2: u32, label: usize) -> &mut Self {
        let o = (label as i64 - self.here() as i64) as i32 * 4;
        let o = o as u32;
        self.word(
            (o >> 12 & 1) << 31
                | (o >> 5 & 0x3F) << 25
                | rs2 << 20
                | rs1 << 15
                | funct3 << 12
                | (o >> 1 & 0xF) << 8
                | (o >> 11 & 1) << 7
                | 0x63,
        )
    }
    fn marker(&mut self, rs: u32, kind: u32) -> &mut Self {
        self.word(kind << 20 | rs << 15 | 2 << 12 | 0x13)
    }
    /// Ends the run through the exit device.
    fn exit(&mut self, code: u32) -> &mut Self {
        let value = if code == 0 {
            0x5555
        } else {
            code << 16 | 0x3333
        };
        self.li(T0, EXIT_BASE)
            .li(T1, value as u64)
            .store_width(2, T1, T0, 0);
        let here = self.here();
        self.branch(0, ZERO, ZERO, here)
    }
    fn wfi_forever(&mut self) -> &mut Self {
        let here = self.here();
        self.word(0x1050_0073).branch(0, ZERO, ZERO, here)
    }
    fn bytes(&self) -> Vec<u8> {
        self.0.iter().flat_map(|w| w.to_le_bytes()).collect()
    }
}

fn cache(size: u64, latency: u64) -> CacheConfig {
    CacheConfig {
        size,
        cycle: 2,
        latency,
        ..CacheConfig::default()
    }
}

fn tile(id: TileId, tiled: bool) -> TileConfig {
    TileConfig {
        l1i: Some(cache(4096, 2)),
        l1d: Some(cache(4096, 2)),
        l2: Some(cache(65536, 12)),
        dtu: tiled.then_some(DtuConfig {
            cycle: 2,
            endpoints: 64,
            ..DtuConfig::default()
        }),
        privileged: id == 0,
        exit: true,
        uart: true,
        ..TileConfig::new(
            id,
            HartConfig {
                ticks_per_cycle: 2,
                ..HartConfig::default()
            },
        )
    }
}

fn memory(id: TileId) -> MemoryConfig {
    MemoryConfig {
        id,
        dram: ControllerConfig::ddr3(5).into(),
        size: 16 << 20,
        router: 0,
        second_port_of: Vec::new(),
        dropped: 0,
    }
}

/// Ticks of 4 GHz: harts 2 GHz, network 1 GHz, memory 800 MHz.
fn platform(kind: PlatformKind, tiles: u16, memories: u16) -> PlatformConfig {
    PlatformConfig {
        name: "test".into(),
        kind,
        ticks_per_second: 4_000_000_000,
        timebase_hz: 10_000_000,
        tiles: (0..tiles)
            .map(|t| tile(t, kind == PlatformKind::Tiled))
            .collect(),
        memories: (0..memories).map(|m| memory(100 + m)).collect(),
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

const LIMIT: RunLimit = RunLimit { ticks: 400_000_000 };

/// Gives a tile one megabyte of a memory tile as its first window.
fn give_memory(machine: &mut Machine, tile: TileId, memory: TileId, base: u64) {
    let endpoint = MemoryEndpoint {
        activity: dtu::TILEMUX_ACTIVITY,
        target_tile: memory,
        rights: (dtu::TLB_READ | dtu::TLB_WRITE) as u8,
        base,
        size: 1 << 20,
    };
    machine
        .unit_mut(tile)
        .unwrap()
        .set_endpoint(0, Endpoint::Memory(endpoint));
}

fn start(machine: &mut Machine, tile: TileId, program: &Program) {
    machine
        .load_tile(tile, MEMORY_BASE, &program.bytes())
        .unwrap();
    machine
        .start_hart(tile, MEMORY_BASE, tile as u64, 0)
        .unwrap();
}

#[test]
fn prints_and_exits() {
    let mut machine = Machine::new(&platform(PlatformKind::Bare, 1, 1)).unwrap();
    let mut p = Program::default();
    p.li(A0, UART_BASE);
    for byte in b"hello" {
        p.addi(A1, ZERO, *byte as i32).store_width(0, A1, A0, 0);
    }
    p.exit(7);
    start(&mut machine, 0, &p);
    assert!(matches!(
        machine.run(LIMIT, None),
        Outcome::Exit {
            tile: 0,
            code: 7,
            ..
        }
    ));
    assert_eq!(machine.console(0).unwrap(), b"hello");
    let stats = machine.statistics();
    // Straight-line code: every instruction once; the branch after the store belongs to the store's block.
    assert_eq!(stats.harts[0].counters.instructions as usize, p.here());
}

/// Of two hints in a loop, whichever pipeline executes them, each has its own address.
#[test]
fn markers_have_the_address_of_their_instruction() {
    let window = crate::hart::IntervalConfig {
        width: 2,
        window: 16,
        load_queue: 4,
        store_queue: 4,
        alus: 2,
        memory_ports: 1,
        float_units: 1,
    };
    for interval in [None, Some(window)] {
        let mut config = platform(PlatformKind::Bare, 1, 1);
        config.tiles[0].hart.interval = interval;
        let mut machine = Machine::new(&config).unwrap();
        let mut p = Program::default();
        p.addi(A0, ZERO, 3);
        let first = p.here();
        p.marker(A0, 0x100).addi(A0, A0, -1);
        let second = p.here();
        p.marker(A0, 0x101);
        p.branch(1, A0, ZERO, first).exit(0);
        start(&mut machine, 0, &p);
        let outcome = machine.run(LIMIT, None);
        assert!(
            matches!(outcome, Outcome::Exit { code: 0, .. }),
            "{outcome:?}"
        );
        let at = |number: usize| MEMORY_BASE + 4 * number as u64;
        let seen: Vec<(u16, u64)> = machine.markers().iter().map(|m| (m.kind, m.pc)).collect();
        let turn = [(0x100, at(first)), (0x101, at(second))];
        assert_eq!(seen, turn.repeat(3), "{interval:?}");
    }
}

#[test]
fn tohost_ends_the_run_at_the_store() {
    let mut machine = Machine::new(&platform(PlatformKind::Bare, 1, 1)).unwrap();
    let mut p = Program::default();
    p.li(A0, MEMORY_BASE + 0x2000).addi(A1, ZERO, 7);
    // First a neighbour of the word, so that the line is in the cache and dirty.
    p.store(A1, A0, 8)
        .store(A1, A0, 16)
        .marker(A1, 0x100)
        .store(A1, A0, 0);
    let here = p.here();
    p.branch(0, ZERO, ZERO, here);
    machine.set_tohost(0, MEMORY_BASE + 0x2000).unwrap();
    start(&mut machine, 0, &p);
    let outcome = machine.run(LIMIT, None);
    let Outcome::Exit { at, code: 3, .. } = outcome else {
        panic!("{outcome:?}")
    };
    // One cycle after the marker, or a few while the line arrives.
    assert!(at - machine.markers()[0].tick < 1000);
}

#[test]
fn unhandled_traps_are_reported() {
    let mut machine = Machine::new(&platform(PlatformKind::Bare, 1, 1)).unwrap();
    let mut p = Program::default();
    p.word(0);
    start(&mut machine, 0, &p);
    let outcome = machine.run(LIMIT, None);
    let Outcome::Unhandled { trap, .. } = outcome else {
        panic!("{outcome:?}")
    };
    // mtvec is 0: the handler cannot be fetched. The first cause is an illegal instruction or that fetch.
    assert!(trap.pc == MEMORY_BASE || trap.pc == 0, "{trap:?}");
}

#[test]
fn nothing_to_do_is_idle_and_time_is_limited() {
    let mut machine = Machine::new(&platform(PlatformKind::Bare, 1, 1)).unwrap();
    assert_eq!(machine.run(LIMIT, None), Outcome::Idle { at: 0 });
    let mut p = Program::default();
    p.wfi_forever();
    start(&mut machine, 0, &p);
    assert!(matches!(machine.run(LIMIT, None), Outcome::Idle { .. }));
    let mut p = Program::default();
    p.branch(0, ZERO, ZERO, 0);
    start(&mut machine, 0, &p);
    assert_eq!(
        machine.run(RunLimit { ticks: 1_000_000 }, None),
        Outcome::Limit
    );
    assert_eq!(machine.now(), 1_000_000);
}

/// A tile that nobody can send to runs ahead of another one. Whichever would end the run first ends it, with windows of any length.
#[test]
fn the_first_end_ends_the_run() {
    let ready = |loops: [u64; 2]| {
        let mut config = platform(PlatformKind::Tiled, 2, 2);
        config.tiles[0].privileged = false;
        let mut machine = Machine::new(&config).unwrap();
        for tile in 0..2 {
            give_memory(&mut machine, tile, 100 + tile, 0);
        }
        // The first tile can send to the second one, and nobody to the first one.
        let endpoint = Endpoint::Memory(MemoryEndpoint {
            activity: 1,
            target_tile: 1,
            rights: dtu::TLB_READ as u8,
            base: 0,
            size: 4096,
        });
        machine.unit_mut(0).unwrap().set_endpoint(10, endpoint);
        for (tile, loops) in (0..2).zip(loops) {
            let mut program = Program::default();
            let value = (1 + u64::from(tile)) << 16 | 0x3333;
            program.li(S0, loops).li(T0, EXIT_BASE).li(T1, value);
            program.addi(S1, ZERO, 0);
            // What ends the run is in the cache, in the line of the loop: a miss would end the window.
            while program.here() % 16 != 0 {
                program.addi(ZERO, ZERO, 0);
            }
            let label = program.here();
            program.addi(S1, S1, 1).branch(4, S1, S0, label);
            program.store_width(2, T1, T0, 0);
            let here = program.here();
            program.branch(0, ZERO, ZERO, here);
            start(&mut machine, tile, &program);
        }
        machine
    };
    let mut ends = [0; 2];
    for number in 0..200 {
        let first = 1000 + number * 7;
        let loops = [first, first - 20 + number % 30];
        let mut whole = ready(loops);
        let outcome = whole.run(RunLimit { ticks: u64::MAX }, None);
        let mut pieces = ready(loops);
        let mut ticks = 0;
        let truth = loop {
            ticks += 3;
            match pieces.run(RunLimit { ticks }, None) {
                Outcome::Limit => {}
                outcome => break outcome,
            }
        };
        assert_eq!(outcome, truth, "{loops:?}");
        if let Outcome::Exit { code, at, .. } = outcome {
            ends[code as usize - 1] += 1;
            assert_eq!(whole.now(), at);
        }
    }
    assert!(ends[0] > 5 && ends[1] > 5, "{ends:?}");
}

#[test]
fn timer_interrupt_wakes() {
    let mut machine = Machine::new(&platform(PlatformKind::Bare, 1, 1)).unwrap();
    let mut p = Program::default();
    // mtimecmp = 50 (5 us = 20000 ticks); mie.MTIE; wfi; marker.
    p.li(A0, 0x0200_4000).addi(A1, ZERO, 50).store(A1, A0, 0);
    p.li(A0, 0x80)
        .word(0x304 << 20 | A0 << 15 | 1 << 12 | 0x73)
        .word(0x1050_0073)
        .marker(A1, 0x100);
    p.exit(0);
    start(&mut machine, 0, &p);
    assert!(matches!(
        machine.run(LIMIT, None),
        Outcome::Exit { code: 0, .. }
    ));
    let at = machine.markers()[0].tick;
    assert!((20_000..20_100).contains(&at), "{at}");
}

/// Loads in a dependent chain, so that each latency is seen separately.
fn chain(offsets: &[u64]) -> Program {
    let mut p = Program::default();
    // Every word of memory is zero, so adding a loaded value to an address only makes the address wait.
    p.li(S0, MEMORY_BASE).addi(T1, ZERO, 0);
    // One round first, to bring the code of the measured part into the instruction cache.
    p.addi(S1, ZERO, 0);
    p.addi(T2, ZERO, 2);
    let mut q = Program::default();
    for (i, offset) in offsets.iter().enumerate() {
        q.marker(T1, 0x100 + i as u32);
        q.li(T0, *offset);
        q.op(0, 0, T0, T0, S0).op(0, 0, T0, T0, T1);
        q.load(T1, T0, 0).op(0, 0, T1, T1, ZERO);
    }
    q.marker(T1, 0x200);
    p.0.extend(q.0);
    p.exit(0);
    p
}

/// Ticks between markers of the chain, minus those of a hit.
fn latencies(kind: PlatformKind, offsets: &[u64]) -> Vec<Tick> {
    let mut config = platform(kind, 1, 1);
    // Refresh would disturb the measurement, and so would the instruction side.
    config.memories[0].dram.controller.timing.refresh_interval = 0;
    config.tiles[0].l1i = Some(cache(65536, 2));
    let mut machine = Machine::new(&config).unwrap();
    if kind == PlatformKind::Tiled {
        give_memory(&mut machine, 0, 100, 0);
    }
    let program = chain(offsets);
    // Warm instruction cache: run once, then again.
    start(&mut machine, 0, &program);
    assert!(matches!(
        machine.run(LIMIT, None),
        Outcome::Exit { code: 0, .. }
    ));
    let first = machine.markers().len();
    start(&mut machine, 0, &program);
    assert!(matches!(
        machine.run(LIMIT, None),
        Outcome::Exit { code: 0, .. }
    ));
    let markers: Vec<Tick> = machine.markers()[first..].iter().map(|m| m.tick).collect();
    markers.windows(2).map(|w| w[1] - w[0]).collect()
}

#[test]
fn load_latencies_of_the_levels() {
    // After the first run line 0x40000 is in both levels (hit), 0x50000 too. The 4-KiB 4-way first level has 16 sets, so
    // lines 0x400 apart share a set: four fills of 0x60000.. push 0x50000 out of it but not out of the 64-KiB second one.
    let mut offsets = vec![0x40000, 0x50040];
    offsets.extend((1..=4).map(|i| 0x50040 + i * 0x1000));
    offsets.push(0x50040);
    for kind in [PlatformKind::Bare, PlatformKind::Tiled] {
        let ticks = latencies(kind, &offsets);
        let hit = ticks[0];
        // In the second run, 0x50040, the last address used in the first run, is still in the first level. Every further
        // access to the set misses there (five lines in four ways, LRU) and hits the second level: 12 cycles instead of 2
        // until the dependent instruction can issue, of 2 ticks each.
        assert_eq!(ticks[1], hit, "{kind:?}");
        for (i, t) in ticks[2..].iter().enumerate() {
            assert_eq!(*t, hit + (12 - 2) * 2, "{kind:?} {i}: {ticks:?}");
        }
    }
}

#[test]
fn miss_latency_is_the_sum_of_its_parts() {
    let mut config = platform(PlatformKind::Tiled, 1, 1);
    config.memories[0].dram.controller.timing.refresh_interval = 0;
    let mut machine = Machine::new(&config).unwrap();
    give_memory(&mut machine, 0, 100, 0);
    let mut p = Program::default();
    p.wfi_forever();
    start(&mut machine, 0, &p);
    assert!(matches!(machine.run(LIMIT, None), Outcome::Idle { .. }));
    // One fetch of a line. It leaves the second level at 24 ticks. Network, request: interface 4, link 1 + router 2, link 1
    // + 1 (16 bytes of header) + interface 4 = 13 cycles of 4 ticks: 24 + 52 = 76. Memory clock edge at 80; frontend 8,
    // activate 11, cas 11, burst 4 = 34 cycles of 5: 250; network edge at 252; response: 4 + 3 + 1 + 5 (80 bytes) + 4 = 17
    // cycles: 320. The latency counts from the departure from the second level: 296.
    let owner = Owner::new(0, dtu::TILEMUX_ACTIVITY);
    let latency = machine
        .ledger()
        .latency(owner, Transaction::CacheRead)
        .unwrap();
    assert_eq!(
        (
            latency.total.count(),
            latency.total.maximum(),
            latency.waited
        ),
        (1, 296, 0)
    );
}

/// Endless streams over `bytes` of memory with a store to every line and a marker for each pass.
fn stream(bytes: u64) -> Program {
    let mut p = Program::default();
    p.li(S0, MEMORY_BASE + 0x10000)
        .li(S1, MEMORY_BASE + 0x10000 + bytes);
    let pass = p.here();
    p.marker(S0, 0x100).addi(T0, S0, 0);
    let again = p.here();
    p.load(T1, T0, 0)
        .addi(T1, T1, 1)
        .store(T1, T0, 0)
        .addi(T0, T0, 64);
    p.branch(4, T0, S1, again);
    p.branch(0, ZERO, ZERO, pass);
    p
}

fn timeline(machine: &Machine, tile: TileId) -> Vec<(Tick, u64)> {
    machine
        .markers()
        .iter()
        .filter(|m| m.tile == tile)
        .map(|m| (m.tick, m.value))
        .collect()
}

/// A machine on which tile t streams over the given memory tiles, run for 600 us.
fn streams(memories: u16, of: &[u16]) -> Machine {
    let mut machine = Machine::new(&platform(PlatformKind::Tiled, 4, memories)).unwrap();
    for (tile, memory) in of.iter().enumerate() {
        if *memory == u16::MAX {
            continue;
        }
        give_memory(
            &mut machine,
            tile as u16,
            100 + memory,
            tile as u64 * (1 << 20),
        );
        start(&mut machine, tile as u16, &stream(0x14000));
    }
    assert_eq!(
        machine.run(RunLimit { ticks: 2_400_000 }, None),
        Outcome::Limit
    );
    machine
}

#[test]
fn way_masks_are_kept() {
    let mut machine = Machine::new(&platform(PlatformKind::Tiled, 1, 1)).unwrap();
    machine.set_way_mask(0, Level::L2, 1).unwrap();
    assert_eq!(
        machine.set_way_mask(9, Level::L2, 1),
        Err(MachineError::NoTile(9))
    );
}

/// Tile 0 sends three messages to tile 1, which answers with the payload + 1.
fn messages() -> Machine {
    let mut machine = Machine::new(&platform(PlatformKind::Tiled, 2, 1)).unwrap();
    for tile in 0..2u16 {
        give_memory(&mut machine, tile, 100, tile as u64 * (1 << 20));
    }
    let receive = |buffer, replies| {
        Endpoint::Receive(ReceiveEndpoint {
            activity: dtu::TILEMUX_ACTIVITY,
            reply_endpoints: replies,
            buffer: MEMORY_BASE + buffer,
            slot_size: 128,
            slots: 4,
            position: 0,
            occupied: 0,
            unread: 0,
        })
    };
    let send = Endpoint::Send(SendEndpoint {
        activity: dtu::TILEMUX_ACTIVITY,
        target_tile: 1,
        target_endpoint: 8,
        label: 0x77,
        credits: 1,
        credits_max: 1,
        message_size: 128,
        credit_endpoint: dtu::NO_ENDPOINT,
        reply: false,
        shares: 0,
        epoch: 0,
    });
    let a = machine.unit_mut(0).unwrap();
    a.set_endpoint(8, receive(0x20000, dtu::NO_ENDPOINT));
    a.set_endpoint(9, send);
    machine
        .unit_mut(1)
        .unwrap()
        .set_endpoint(8, receive(0x20000, 16));
    let identity = |p: &mut Program| {
        // The unit's TLB: one page for the payload, read and write.
        let page = MEMORY_BASE + 0x21000;
        p.li(A0, DTU_BASE + 0x1000);
        p.li(T0, page | 3).store(T0, A0, 0x10);
        p.li(T0, page | (dtu::TILEMUX_ACTIVITY as u64) << 48)
            .store(T0, A0, 0x18);
        p.addi(T0, ZERO, 2).store(T0, A0, 8);
        p.li(A0, DTU_BASE).li(S0, page);
    };
    // Runs a command given by opcode, endpoint, and argument in the upper half, and waits until it is done.
    let command = |p: &mut Program, command: Command| {
        p.li(T0, command.0).store(T0, A0, 0);
        let wait = p.here();
        p.load(T0, A0, 0)
            .word(0xFF << 20 | T0 << 15 | 7 << 12 | T1 << 7 | 0x13);
        p.branch(1, T1, ZERO, wait);
    };
    let fetch = |p: &mut Program, command_fetch: Command| {
        let again = p.here();
        command(p, command_fetch);
        p.load(S1, A0, 0x18)
            .addi(T2, ZERO, -1)
            .branch(0, S1, T2, again);
    };
    let mut client = Program::default();
    identity(&mut client);
    client.li(T0, 41).store(T0, S0, 0);
    for _ in 0..3 {
        client.marker(ZERO, 0x100);
        client
            .store(S0, A0, 8)
            .addi(T0, ZERO, 8)
            .store(T0, A0, 0x10)
            .store(ZERO, A0, 0x18);
        command(&mut client, Command::new(Opcode::Send, 9, 8));
        client
            .srli(T0, T0, 24)
            .word(0xFF << 20 | T0 << 15 | 7 << 12 | T0 << 7 | 0x13)
            .marker(T0, 0x101);
        fetch(&mut client, Command::new(Opcode::Fetch, 8, 0));
        client
            .li(T0, MEMORY_BASE + 0x20000)
            .op(0, 0, T0, T0, S1)
            .load(T1, T0, 32)
            .marker(T1, 0x102);
        client.slli(T0, S1, 32).addi(T0, T0, 0);
        // Acknowledge: opcode 6, endpoint 8, argument = offset.
        client
            .li(T1, Command::new(Opcode::Acknowledge, 8, 0).0)
            .op(0, 0, T0, T0, T1)
            .store(T0, A0, 0);
        let wait = client.here();
        client
            .load(T0, A0, 0)
            .word(0xFF << 20 | T0 << 15 | 7 << 12 | T1 << 7 | 0x13);
        client.branch(1, T1, ZERO, wait);
    }
    client.exit(0);
    let mut server = Program::default();
    identity(&mut server);
    let serve = server.here();
    fetch(&mut server, Command::new(Opcode::Fetch, 8, 0));
    server
        .li(T0, MEMORY_BASE + 0x20000)
        .op(0, 0, T0, T0, S1)
        .load(T1, T0, 32)
        .addi(T1, T1, 1)
        .store(T1, S0, 0);
    server
        .store(S0, A0, 8)
        .addi(T0, ZERO, 8)
        .store(T0, A0, 0x10);
    server
        .slli(T0, S1, 32)
        .li(T1, Command::new(Opcode::Reply, 8, 0).0)
        .op(0, 0, T0, T0, T1)
        .store(T0, A0, 0);
    let wait = server.here();
    server
        .load(T0, A0, 0)
        .word(0xFF << 20 | T0 << 15 | 7 << 12 | T1 << 7 | 0x13);
    server.branch(1, T1, ZERO, wait);
    server.branch(0, ZERO, ZERO, serve);
    start(&mut machine, 0, &client);
    start(&mut machine, 1, &server);
    machine
}

#[test]
fn two_tiles_exchange_messages() {
    let mut machine = messages();
    let outcome = machine.run(LIMIT, None);
    assert!(
        matches!(
            outcome,
            Outcome::Exit {
                tile: 0,
                code: 0,
                ..
            }
        ),
        "{outcome:?} {:?}",
        machine.markers()
    );
    let values: Vec<(u16, u64)> = machine
        .markers()
        .iter()
        .map(|m| (m.kind, m.value))
        .collect();
    // Each send ends without an error (0) and the answer is 42.
    assert_eq!(values, [(0x100, 0), (0x101, 0), (0x102, 42)].repeat(3));
    let client = Owner::new(0, dtu::TILEMUX_ACTIVITY);
    let latency = machine
        .ledger()
        .latency(client, Transaction::Message)
        .unwrap();
    assert_eq!(latency.total.count(), 3);
}

#[path = "machine_isolation_tests.rs"]
mod isolation;
#[path = "machine_regulation_tests.rs"]
mod regulation;

#[path = "second_hart_tests.rs"]
mod second_hart;

#[path = "accelerator_tests.rs"]
mod accelerator;

#[test]
fn memories_that_the_host_cannot_hold_are_refused() {
    let mut config = platform(PlatformKind::Bare, 1, 1);
    config.memories[0].size = 1 << 62;
    let refused = config.check_room().map_err(|error| error.what);
    let told = "its memories have 4398046511104 MiB, and this computer has no room for them; choose smaller ones";
    assert_eq!(refused, Err(told.to_owned()));
}

/// A block's schedule is counted in 16 bits.
#[test]
fn longer_latencies_than_a_schedule_holds_are_refused() {
    let mut config = platform(PlatformKind::Bare, 1, 1);
    config.tiles[0].hart.fp_sqrt = 1000;
    assert!(config.validate().is_ok());
    config.tiles[0].hart.fp_sqrt = 1001;
    let refused = config.validate().map_err(|error| error.what);
    let told = "tile 0: an operation of the pipeline takes 1001 cycles, and 1000 are the most";
    assert_eq!(refused, Err(told.to_owned()));
}
