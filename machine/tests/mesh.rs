//! Tiles with local memories on a mesh: closed forms of their accesses, ports, faults, doorbells, and the order in which tiles see each
//! other's stores. (Which outcomes are allowed: `litmus.rs`.)

use crate::common::*;
use bulkhead_abi::memory_map::{
    CLINT_BASE, CLINT_MSIP, EXTERNAL_MEMORY, MEMORY_BASE, TILE_CORE, TILE_DOORBELL, TILE_REGISTERS,
    TILE_START,
};
use bulkhead_machine::config::PlatformConfig;
use bulkhead_machine::ledger::Resource;
use bulkhead_machine::machine::{Machine, Outcome, RunLimit};
use bulkhead_machine::types::{Owner, Tick, TileId};

const BEFORE: u32 = 0x100;
const SEEN: u32 = 0x101;
const LIMIT: RunLimit = RunLimit { ticks: 1_000_000 };
/// Where programs keep data: in a different bank than their code.
const DATA: u64 = 0x2000;

fn marked(machine: &Machine, tile: TileId, kind: u32) -> Option<Tick> {
    let markers = machine.markers();
    let mut own = markers
        .iter()
        .filter(|m| m.tile == tile && u32::from(m.kind) == kind);
    own.next().map(|marker| marker.tick)
}

fn word(machine: &Machine, physical: u64) -> u64 {
    let mut word = [0; 8];
    machine.peek(0, physical, &mut word).expect("memory");
    u64::from_le_bytes(word)
}

/// Ticks of a packet with this many bytes after its header over this many hops between routers, as configured by [`mesh`]: interface,
/// injection and hops of three cycles each, the tail, link and interface.
const fn trip(hops: u64, payload: u64) -> Tick {
    1 + 3 * (1 + hops) + (8 + payload).div_ceil(8) + 1 + 1
}

/// Ticks until the answer to a request is taken: the memory and the hart take what arrives at the next edge of their clocks, of two ticks.
const fn there_and_back(there: Tick, back: Tick) -> Tick {
    (there.next_multiple_of(2) + 2 + back).next_multiple_of(2)
}

/// Ticks between the markers of a program on tile 0 of a 4 x 4 mesh.
fn took(build: impl Fn(&mut Program)) -> Tick {
    took_on(&mesh(4, 4), build)
}

fn took_on(config: &PlatformConfig, build: impl Fn(&mut Program)) -> Tick {
    let mut machine = Machine::new(config).unwrap();
    let mut p = Program::default();
    build(&mut p);
    p.word(WFI).start(&mut machine, 0);
    let end = machine.run(LIMIT, None);
    assert!(matches!(end, Outcome::Idle { .. }), "{end:?}");
    marked(&machine, 0, SEEN).unwrap() - marked(&machine, 0, BEFORE).unwrap()
}

#[test]
fn the_own_memory_takes_what_the_pipeline_says() {
    // In one line of code; the addresses are set up beforehand.
    for address in [MEMORY_BASE + DATA, window(0, 0) + DATA] {
        let between = |build: &dyn Fn(&mut Program)| {
            took(|p| {
                p.li(S0, address).li(S2, address + 0x2000);
                p.addi(S1, ZERO, 1).jump_to_line();
                p.marker(ZERO, BEFORE);
                build(p);
                p.marker(ZERO, SEEN);
            })
        };
        let nothing = between(&|_| {});
        // A store takes a cycle of 2 ticks; a load until its use two.
        assert_eq!(
            between(&|p| {
                p.sd(S1, S0, 0);
            }),
            nothing + 2
        );
        let used = between(&|p| {
            p.ld(T0, S0, 0).addi(T0, T0, 1);
        });
        assert_eq!(used, nothing + 6);
        // Reading and writing occupies the port for two cycles, and the next access waits for it.
        let after = between(&|p| {
            p.amo(0, 0, T0, S0, S1).ld(T1, S0, 8).addi(T1, T1, 1);
        });
        let apart = between(&|p| {
            p.amo(0, 0, T0, S0, S1).ld(T1, S2, 8).addi(T1, T1, 1);
        });
        assert_eq!(after, apart + 2);
    }
}

#[test]
fn a_remote_access_takes_its_hops() {
    for (column, row) in [(1, 0), (0, 1), (2, 1), (3, 3)] {
        let hops = column + row;
        let between = |build: &dyn Fn(&mut Program)| {
            took(|p| {
                p.li(S0, window(column, row) + DATA).addi(S1, ZERO, 1);
                p.jump_to_line();
                p.marker(ZERO, BEFORE);
                build(p);
                p.marker(ZERO, SEEN);
            })
        };
        // A store is posted: it costs the hart one cycle.
        assert_eq!(
            between(&|p| {
                p.sd(S1, S0, 0);
            }),
            4,
            "{hops} hops"
        );
        // A fence waits for the store: the way there, a memory cycle, and the acknowledgement. The marker before takes a cycle, and the
        // fence one.
        let fence = between(&|p| {
            p.sd(S1, S0, 0).word(FENCE);
        });
        let answer = there_and_back(trip(hops, 8), trip(hops, 0));
        assert_eq!(fence, 2 + answer + 2, "{hops} hops");
        // A load returns eight bytes.
        let load = between(&|p| {
            p.ld(T0, S0, 0).addi(T0, T0, 1);
        });
        let answer = there_and_back(trip(hops, 0), trip(hops, 8));
        assert_eq!(load, 2 + answer + 2, "{hops} hops");
        let atomic = between(&|p| {
            p.amo(0, 0, T0, S0, S1).addi(T0, T0, 1);
        });
        let answer = there_and_back(trip(hops, 8), trip(hops, 8));
        assert_eq!(atomic, 2 + answer + 2, "{hops} hops");
    }
}

#[test]
fn stores_follow_each_other_eight_times_as_fast_as_loads() {
    let more = |config: &PlatformConfig, build: &dyn Fn(&mut Program, u64)| {
        let [few, many] = [32, 64].map(|count| {
            took_on(config, |p| {
                p.li(S0, window(3, 0) + DATA).addi(S1, ZERO, 1);
                p.jump_to_line();
                p.marker(ZERO, BEFORE);
                for i in 0..count {
                    build(p, i);
                }
                p.word(FENCE).marker(ZERO, SEEN);
            })
        });
        many - few
    };
    let store = |p: &mut Program, i| _ = p.sd(S1, S0, 8 * i);
    let load = |p: &mut Program, i| _ = p.ld(S2 + (i as u32 & 7), S0, 8 * i);
    // A packet takes a cycle of the hart, of two ticks, or 16 ticks. The buffer has room for all stores that are on their way.
    let mut config = mesh(4, 4);
    config.tiles[0].hart.store_buffer = 32;
    let (stores, loads) = (more(&config, &store), more(&config, &load));
    assert_eq!((stores, loads), (32 * 2, 8 * stores));
    // With half of it, 16 stores leave in the time of one there and back.
    let alone = took(|p| {
        p.li(S0, window(3, 0) + DATA).jump_to_line();
        p.marker(ZERO, BEFORE)
            .sd(S1, S0, 0)
            .word(FENCE)
            .marker(ZERO, SEEN);
    });
    // The markers and the fence take a cycle each.
    assert_eq!(more(&mesh(4, 4), &store), 2 * (alone - 2 * 2));
}

/// Two tiles next to tile 5 of a 4 x 4 mesh store to its memory at the same time, with a port that takes 20 ticks.
#[test]
fn two_writers_at_one_port() {
    let mut config = mesh(4, 4);
    let memory = config.tiles[5].local_memory.as_mut().unwrap();
    memory.cycle = 20;
    let run = |writers: &[TileId]| {
        let mut machine = Machine::new(&config).unwrap();
        for &tile in writers {
            let mut p = Program::default();
            p.li(S0, window(1, 1) + DATA + 8 * u64::from(tile));
            p.sd(S0, S0, 0).word(FENCE).marker(ZERO, SEEN).word(WFI);
            p.start(&mut machine, tile);
        }
        assert!(matches!(machine.run(LIMIT, None), Outcome::Idle { .. }));
        machine
    };
    let seen = |machine: &Machine, tile| marked(machine, tile, SEEN).unwrap();
    // West and east of it.
    let both = run(&[4, 6]);
    let alone = [4, 6].map(|tile| seen(&run(&[tile]), tile));
    assert_eq!(alone[0], alone[1]);
    let late = [4, 6].map(|tile| seen(&both, tile) - alone[0]);
    let bookings = both.ledger().bookings();
    let (first, second) = if late[0] == 0 { (4, 6) } else { (6, 4) };
    // The link into the tile takes two ticks for each, and the port 20 until its next turn.
    assert_eq!(late.iter().sum::<Tick>(), 20, "{late:?}");
    let waits: Vec<_> = bookings
        .iter()
        .filter(|b| b.victim.tile == second)
        .map(|b| (b.culprit, b.ticks))
        .collect();
    assert!(
        waits.iter().all(|w| w.0 == Owner::new(first, 0)),
        "{waits:?}"
    );
    let port = Resource::LocalMemory { tile: 5, bank: 1 };
    assert!(bookings.iter().any(|b| b.resource == port), "{bookings:?}");
    assert!(bookings.iter().all(|b| b.victim.tile == second));
}

/// The owner's hart and a tile next to it both read its memory all the time: with one port they wait for each other, with two they do not.
#[test]
fn the_owner_shares_a_single_port() {
    let run = |ports: u32| {
        let mut config = mesh(2, 1);
        for tile in &mut config.tiles {
            let memory = tile.local_memory.as_mut().unwrap();
            (memory.ports, memory.banks) = (ports, 1);
        }
        let mut machine = Machine::new(&config).unwrap();
        for tile in [0, 1] {
            let mut p = Program::default();
            p.li(S0, window(0, 0) + DATA).addi(T2, ZERO, 200);
            let again = p.here();
            for i in 0..4 {
                p.ld(S2 + i, S0, 0);
            }
            p.addi(T2, T2, -1).branch(1, T2, ZERO, again);
            p.word(FENCE).marker(ZERO, SEEN).word(WFI);
            p.start(&mut machine, tile);
        }
        assert!(matches!(machine.run(LIMIT, None), Outcome::Idle { .. }));
        let of = |victim, culprit| {
            let all = machine.ledger().bookings();
            let own = all.iter().filter(|b| {
                b.victim.tile == victim
                    && b.culprit.tile == culprit
                    && matches!(b.resource, Resource::LocalMemory { tile: 0, .. })
            });
            own.map(|b| b.ticks).sum::<Tick>()
        };
        let memory = machine.local_memories()[0].1;
        assert_eq!(memory.own_waited, of(0, 0) + of(0, 1));
        assert_eq!(memory.remote_waited, of(1, 0) + of(1, 1));
        (of(0, 1), of(1, 0))
    };
    let (owner, other) = run(1);
    assert!(owner > 0 && other > 0, "{owner} {other}");
    assert_eq!(run(2), (0, 0));
}

/// The cause and the value of a trap of a program on tile 0 of a 2 x 2 mesh; the program ends in a handler.
fn trap(build: impl Fn(&mut Program)) -> (u64, u64) {
    let mut machine = Machine::new(&mesh(2, 2)).unwrap();
    let handler = 0x1000;
    let mut h = Program::default();
    h.word(WFI).spin();
    machine
        .load_tile(0, MEMORY_BASE + handler, &h.bytes())
        .unwrap();
    let mut p = Program::default();
    p.li(T0, MEMORY_BASE + handler).csr(1, 0x305, T0);
    build(&mut p);
    p.word(FENCE).word(WFI).start(&mut machine, 0);
    let end = machine.run(LIMIT, None);
    assert!(matches!(end, Outcome::Idle { .. }), "{end:?}");
    let hart = machine.hart(0).unwrap();
    (hart.csr(0x342).unwrap(), hart.csr(0x343).unwrap())
}

#[test]
fn what_is_not_there_traps_with_its_address() {
    let (load, store, fetch) = (5, 7, 1);
    let (load_misaligned, store_misaligned) = (4, 6);
    let registers = window(1, 0) + TILE_REGISTERS;
    let size = 32 << 10;
    for (address, aligned) in [
        // No such tile; beyond the size of a memory, including the tile's own; between memory and registers; no such register; beyond the
        // registers; beyond external memory; nothing at all.
        (window(2, 0), true),
        (window(0, 2), true),
        (window(63, 63), true),
        (window(1, 0) + size, true),
        (window(0, 0) + size, true),
        (MEMORY_BASE + size, true),
        (registers - 8, true),
        (registers + 0x18, true),
        (registers + 0x1000, true),
        (EXTERNAL_MEMORY + (1 << 20), true),
        (EXTERNAL_MEMORY << 20, true),
        (0x4000, true),
        // A misaligned access to another tile is reported as misaligned.
        (window(1, 0) + 4, false),
    ] {
        let causes = match aligned {
            true => (load, store),
            false => (load_misaligned, store_misaligned),
        };
        assert_eq!(
            trap(|p| {
                p.li(S0, address).ld(T1, S0, 0);
            }),
            (causes.0, address)
        );
        assert_eq!(
            trap(|p| {
                p.li(S0, address).sd(T1, S0, 0);
            }),
            (causes.1, address)
        );
        let atomic = trap(|p| {
            p.li(S0, address).amo(0, 0, T1, S0, T1);
        });
        assert_eq!(atomic, (causes.1, address), "{address:#x}");
    }
    // Registers do not support atomic operations.
    let atomic = trap(|p| {
        p.li(S0, registers + TILE_DOORBELL).amo(0, 0, T1, S0, T1);
    });
    assert_eq!(atomic, (store, registers + TILE_DOORBELL));
    // Instructions come from the tile's own memory.
    for address in [window(1, 0), EXTERNAL_MEMORY, registers] {
        // jalr
        let jump = trap(|p| {
            p.li(S0, address).word(S0 << 15 | 0x67);
        });
        assert_eq!(jump, (fetch, address));
    }
    // The tile's own window is its own memory.
    assert_eq!(
        trap(|p| {
            p.li(S0, window(0, 0) + DATA + 1).ld(T1, S0, 0);
        }),
        (0, 0)
    );
}

#[test]
fn a_tile_starts_another_and_both_ring() {
    let mut machine = Machine::new(&mesh(2, 2)).unwrap();
    // Tile 3 reports its number, rings tile 0 and waits for a ring.
    let mut other = Program::default();
    // csrr t0, mhartid
    other.li(S0, window(0, 0) + DATA).sd(A0, S0, 0);
    other.word(0xf140_2073 | T0 << 7);
    other.sd(T0, S0, 8).word(FENCE);
    other.li(S1, window(0, 0) + TILE_REGISTERS + TILE_DOORBELL);
    other.addi(T0, ZERO, 1).sd(T0, S1, 0);
    other.addi(T0, ZERO, 8).csr(1, 0x304, T0).word(WFI);
    other.li(S1, CLINT_BASE + CLINT_MSIP).ld(T0, S1, 0);
    other.sd(T0, S0, 16).sd(ZERO, S1, 0);
    // The line falls when the block ends.
    let rest = other.here();
    other.word(WFI).jump(rest);
    machine
        .load_tile(3, MEMORY_BASE + 0x400, &other.bytes())
        .unwrap();
    let registers = window(1, 1) + TILE_REGISTERS;
    let mut p = Program::default();
    p.li(S0, registers)
        .ld(S2, S0, TILE_START)
        .ld(S3, S0, TILE_CORE);
    p.li(T0, MEMORY_BASE + 0x400).sd(T0, S0, TILE_START);
    p.addi(T0, ZERO, 8).csr(1, 0x304, T0).word(WFI);
    p.ld(24, S0, TILE_START);
    p.li(S1, window(0, 0) + TILE_REGISTERS + TILE_DOORBELL);
    p.sd(ZERO, S1, 0)
        .addi(T0, ZERO, 1)
        .sd(T0, S0, TILE_DOORBELL);
    p.word(FENCE);
    let rest = p.here();
    p.word(WFI).jump(rest);
    p.start(&mut machine, 0);
    // Tile 0's second WFI never ends, because its doorbell was lowered.
    let end = machine.run(LIMIT, None);
    assert!(matches!(end, Outcome::Idle { .. }), "{end:?}");
    let hart = machine.hart(0).unwrap();
    let core = 1 << 6 | 1;
    assert_eq!((hart.register(18), hart.register(19)), (0, core));
    assert_eq!(hart.register(24), 1);
    assert_eq!(machine.core(3), Some(core));
    let of = |offset| word(&machine, window(0, 0) + DATA + offset);
    assert_eq!((of(0), of(8), of(16)), (core, core, 1));
}

#[test]
fn atomics_of_all_tiles_at_one_memory_lose_nothing() {
    let mut queues = vec![mesh(4, 4); 1 + CONTROLLERS];
    for (which, config) in queues[1..].iter_mut().enumerate() {
        other_controller(config, which);
    }
    atomics_of_all_tiles(&queues[0], window(2, 1) + DATA);
    for config in &queues {
        atomics_of_all_tiles(config, EXTERNAL_MEMORY + 0x100);
    }
}

fn atomics_of_all_tiles(config: &PlatformConfig, sum: u64) {
    let mut machine = Machine::new(config).unwrap();
    let locked = sum + 64;
    for tile in 0..16 {
        let mut p = Program::default();
        p.li(S0, sum).li(S1, locked).addi(T2, ZERO, 50);
        p.addi(S2, ZERO, 1);
        let again = p.here();
        p.amo(0, 0, T0, S0, S2);
        let retry = p.here();
        // lr.d, addi, sc.d
        p.amo(2, 0, T0, S1, 0).addi(T0, T0, 1).amo(3, 0, T1, S1, T0);
        p.branch(1, T1, ZERO, retry);
        p.addi(T2, T2, -1).branch(1, T2, ZERO, again).word(WFI);
        p.start(&mut machine, tile);
    }
    assert!(matches!(machine.run(LIMIT, None), Outcome::Idle { .. }));
    assert_eq!(word(&machine, sum), 16 * 50);
    assert_eq!(word(&machine, locked), 16 * 50);
}

/// The controller of external memory performs atomic operations like the port of a local memory: a read of its chips, then a write, which
/// finds the row open.
#[test]
fn an_atomic_operation_of_external_memory_is_a_read_and_a_write() {
    let between = |build: &dyn Fn(&mut Program)| {
        took(|p| {
            p.li(S0, EXTERNAL_MEMORY + 0x100).addi(S1, ZERO, 1);
            // The row is open, and a store has ended the hart's reservation.
            p.amo(2, 0, T0, S0, 0).word(FENCE);
            p.sd(S1, S0, 0).word(FENCE).jump_to_line();
            p.marker(ZERO, BEFORE);
            build(p);
            p.marker(ZERO, SEEN);
        })
    };
    let load = between(&|p| {
        p.ld(T0, S0, 0).addi(T0, T0, 1);
    });
    let store = between(&|p| {
        p.sd(S1, S0, 0).word(FENCE);
    });
    let atomic = between(&|p| {
        p.amo(0, 0, T0, S0, S1).addi(T0, T0, 1);
    });
    let reserve = between(&|p| {
        p.amo(2, 0, T0, S0, 0).addi(T0, T0, 1);
    });
    let failed = between(&|p| {
        p.amo(3, 0, T0, S0, S1).addi(T0, T0, 1);
    });
    // Tile 0 and the memory share router 0. All have in common: two instructions of two ticks each.
    let empty = there_and_back(trip(0, 0), trip(0, 0)) - 2;
    let near = |a: Tick, b: Tick| a.abs_diff(b) <= 2;
    // An answer is taken at the next edge of the hart's clock.
    assert!(
        near(atomic, load + store - 4 - empty),
        "{load} {store} {atomic} {empty}"
    );
    assert_eq!(reserve, load);
    // A store-conditional that fails comes back at once.
    let way = trip(0, 8) + trip(0, 8);
    assert!(near(failed, 4 + way), "{failed} {way}");
}

#[test]
fn external_memory_is_read_and_written() {
    let mut machine = Machine::new(&mesh(2, 2)).unwrap();
    let mut p = Program::default();
    p.li(S0, EXTERNAL_MEMORY + 0x100).li(S1, 0x1234);
    p.sd(S1, S0, 0).ld(S2, S0, 0).ld(S3, S0, 8).word(WFI);
    machine
        .load_tile(3, EXTERNAL_MEMORY + 0x108, &7u64.to_le_bytes())
        .unwrap();
    p.start(&mut machine, 3);
    assert!(matches!(machine.run(LIMIT, None), Outcome::Idle { .. }));
    let hart = machine.hart(3).unwrap();
    assert_eq!((hart.register(18), hart.register(19)), (0x1234, 7));
    assert_eq!(word(&machine, EXTERNAL_MEMORY + 0x100), 0x1234);
}

/// A writer stores to a flag after this many rounds, a reader polls it, and a third tile spins or sleeps.
struct Flag {
    config: PlatformConfig,
    rounds: i32,
    writing: TileId,
    reading: TileId,
    third: TileId,
    busy: bool,
    home: u64,
}

impl Flag {
    fn new(rounds: i32, home: u64) -> Self {
        Self {
            config: mesh(2, 2),
            rounds,
            writing: 0,
            reading: 1,
            third: 2,
            busy: false,
            home,
        }
    }

    /// When the flag was stored, when it was seen, and whether the data before it had arrived.
    fn times(&self, run: impl FnOnce(&mut Machine)) -> [Tick; 2] {
        let flag = self.home + DATA;
        let mut machine = Machine::new(&self.config).expect("valid");
        let mut p = Program::default();
        p.li(S0, flag).addi(S1, ZERO, 1).addi(T2, ZERO, self.rounds);
        let wait = p.here();
        p.addi(T2, T2, -1).branch(1, T2, ZERO, wait);
        p.marker(ZERO, BEFORE).sd(S1, S0, 0).spin();
        p.start(&mut machine, self.writing);
        let mut p = Program::default();
        p.li(S0, flag);
        let look = p.here();
        p.ld(T0, S0, 0).branch(0, T0, ZERO, look);
        p.marker(T0, SEEN).spin();
        p.start(&mut machine, self.reading);
        let mut p = Program::default();
        p.word(if self.busy { 0x13 } else { WFI }).spin();
        p.start(&mut machine, self.third);
        run(&mut machine);
        let marker = |tile, kind| marked(&machine, tile, kind).expect("the program came there");
        [marker(self.writing, BEFORE), marker(self.reading, SEEN)]
    }
}

const FLAG_LIMIT: RunLimit = RunLimit { ticks: 20_000 };

fn at_once(machine: &mut Machine) {
    machine.run(FLAG_LIMIT, None);
}

#[test]
fn nothing_is_seen_before_it_is_stored() {
    for rounds in 100..120 {
        // In the writer's, the reader's, the third tile's, and an unused tile's memory; beside a third tile that spins or not.
        for (column, row) in [(0, 0), (1, 0), (0, 1), (1, 1)] {
            let flag = Flag::new(rounds, window(column, row));
            let [stored, seen] = flag.times(at_once);
            let way = match (column, row) {
                (0, 0) => 2 + trip(1, 8),
                (1, 0) => trip(1, 8),
                _ => trip(1 + column, 8) + trip(2 - column, 8),
            };
            assert!(seen > stored + way, "{column} {row}: {stored} {seen}");
            let busy = Flag { busy: true, ..flag };
            assert_eq!(busy.times(at_once), [stored, seen]);
        }
    }
}

#[test]
fn the_length_of_a_window_changes_nothing() {
    for rounds in 100..110 {
        for home in [window(0, 0), window(1, 0), window(1, 1)] {
            let flag = Flag::new(rounds, home);
            let whole = flag.times(at_once);
            let pieces = flag.times(|machine| {
                let mut length = 1;
                while machine.now() < FLAG_LIMIT.ticks {
                    length = length * 5 % 97;
                    let ticks = (machine.now() + length).min(FLAG_LIMIT.ticks);
                    assert_eq!(machine.run(RunLimit { ticks }, None), Outcome::Limit);
                }
            });
            assert_eq!(whole, pieces);
        }
    }
}

#[test]
fn the_order_of_visits_and_the_numbers_of_tiles_change_nothing() {
    for rounds in 100..110 {
        let flag = Flag::new(rounds, window(1, 1));
        let expected = flag.times(at_once);
        for order in [[1, 0, 2, 3], [3, 2, 1, 0], [2, 3, 0, 1]] {
            let mut flag = Flag::new(rounds, window(1, 1));
            let tiles = &flag.config.tiles;
            flag.config.tiles = order.map(|i| tiles[i].clone()).to_vec();
            assert_eq!(flag.times(at_once), expected, "{order:?}");
        }
        let mut renamed = Flag::new(rounds, window(1, 1));
        for tile in &mut renamed.config.tiles {
            tile.id = 100 - tile.id;
        }
        (renamed.writing, renamed.reading, renamed.third) = (100, 99, 98);
        assert_eq!(renamed.times(at_once), expected);
    }
}

#[test]
fn idle_tiles_change_nothing() {
    // The same three tiles among 4 and among 1024.
    let few = Flag::new(100, window(1, 1));
    let expected = few.times(at_once);
    let mut many = Flag::new(100, window(1, 1));
    many.config = mesh(32, 32);
    many.third = 32;
    assert_eq!(many.times(at_once), expected);
}
