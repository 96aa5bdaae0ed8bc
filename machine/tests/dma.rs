//! DMA engines of a mesh: closed forms of their transfers, descriptors, errors, interrupts, and what they leave untouched on other tiles.
//! (Order and independence of windows: `dma_order.rs`.)

use crate::common::dma::*;
use crate::common::*;
use bulkhead_abi::dma::*;
use bulkhead_abi::memory_map::{EXTERNAL_MEMORY, MEMORY_BASE, TILE_REGISTERS, TILE_START};
use bulkhead_machine::config::{DmaConfig, PlatformConfig};
use bulkhead_machine::ledger::{Ended, Resource};
use bulkhead_machine::local_tile::{GuardRule, dma_owner};
use bulkhead_machine::machine::Machine;
use bulkhead_machine::noc::Transaction;
use bulkhead_machine::types::{Tick, TileId};

/// Ticks of a packet with this many bytes after its header over this many hops, as in `mesh.rs`.
const fn trip(hops: u64, payload: u64) -> Tick {
    1 + 3 * (1 + hops) + (8 + payload).div_ceil(8) + 1 + 1
}

/// Ticks from the beginning of a request to the arrival of its answer, at a memory with a cycle of two ticks.
const fn there_and_back(there: Tick, back: Tick) -> Tick {
    there.next_multiple_of(2) + 2 + back
}

/// A machine whose tile 0 has made these transfers, one on each channel, started one after the other; also returns all accesses of its
/// engine.
fn transferred(config: &PlatformConfig, transfers: &[[u64; 8]]) -> (Machine, Vec<Ended>) {
    let mut machine = Machine::new(config).expect("valid");
    machine.keep_transactions();
    let mut p = Program::default();
    for (channel, words) in transfers.iter().enumerate() {
        p.describe(channel as u64, words);
    }
    p.addi(S2, ZERO, START as i32).jump_to_line();
    for channel in 0..transfers.len() as u64 {
        p.sd(S2, S0, CHANNEL_SIZE * channel + CONTROL);
    }
    p.word(WFI).start(&mut machine, 0);
    finish(&mut machine);
    let own = |one: &&Ended| one.owner.tile == 0 && one.owner.activity > 0;
    let all = machine.ledger().transactions();
    let all: Vec<Ended> = all.iter().filter(own).copied().collect();
    (machine, all)
}

/// Begins and ends of the accesses of one kind, in the order of their begins.
fn times(all: &[Ended], transaction: Transaction) -> Vec<(Tick, Tick)> {
    let of = all.iter().filter(|one| one.transaction == transaction);
    let mut times: Vec<_> = of.map(|one| (one.begin, one.end)).collect();
    times.sort_unstable();
    times
}

fn reads(all: &[Ended]) -> Vec<(Tick, Tick)> {
    times(all, Transaction::DmaRead)
}

fn writes(all: &[Ended]) -> Vec<(Tick, Tick)> {
    times(all, Transaction::DmaWrite)
}

#[test]
fn a_transfer_to_another_tile_moves_an_element_a_cycle() {
    for (column, row) in [(1, 0), (0, 2), (3, 3)] {
        for elements in [1, 2, 7, 100] {
            let to = window(column, row) + DATA;
            let words = contiguous(3, MEMORY_BASE + DATA, to, elements);
            let (machine, all) = transferred(&with_dma(4, 4), &[words]);
            let begin = reads(&all)[0].0;
            let back = there_and_back(trip(column + row, 8), trip(column + row, 0));
            for (number, (read, write)) in reads(&all).iter().zip(writes(&all)).enumerate() {
                let at = begin + 2 * number as u64;
                // The port and a cycle of the memory; then the write.
                assert_eq!(*read, (at, at + 2));
                assert_eq!(write, (at + 2, at + 2 + back));
            }
            assert_eq!(writes(&all).len(), elements as usize);
            assert_eq!(status(&machine, 0, 0), (State::Done as u64, 0));
        }
    }
}

#[test]
fn reads_of_another_tile_leave_one_in_eight_cycles() {
    let words = contiguous(3, window(2, 1) + DATA, MEMORY_BASE + DATA, 20);
    let (_, all) = transferred(&with_dma(4, 4), &[words]);
    let begin = reads(&all)[0].0;
    let back = there_and_back(trip(3, 0), trip(3, 8));
    for (number, (read, write)) in reads(&all).iter().zip(writes(&all)).enumerate() {
        // The engine asks in every cycle of two ticks; the link accepts one request per 16 ticks.
        let asked = begin + 2 * number as u64;
        let came = begin + 16 * number as u64 + back;
        assert_eq!(*read, (asked, came));
        let at = came.next_multiple_of(2);
        assert_eq!(write, (at, at + 2));
    }
}

#[test]
fn one_port_serves_reads_and_writes_in_turn() {
    let local = |to: u64, ports: u32| {
        let mut config = with_dma(2, 2);
        for tile in &mut config.tiles {
            tile.local_memory.as_mut().unwrap().ports = ports;
        }
        let words = contiguous(3, MEMORY_BASE + DATA, MEMORY_BASE + to, 50);
        let (machine, all) = transferred(&config, &[words]);
        for i in 0..50 {
            let word = word(&machine, MEMORY_BASE + to + 8 * i);
            assert_eq!(word, 0, "memory is zero");
        }
        let (first, last) = (reads(&all)[0].0, writes(&all)[49].1);
        last - first
    };
    // Another bank: one element per cycle. Read, cycle, write, cycle.
    assert_eq!(local(DATA + 0x2000, 1), 2 * 49 + 4);
    // The same bank: two turns per element; the last one waits for no other.
    assert_eq!(local(DATA + 0x400, 1), 4 * 49 + 4);
    // Two ports help the hart, not the engine, which uses only one of them.
    assert_eq!(local(DATA + 0x400, 2), 4 * 49 + 4);
}

#[test]
fn accesses_under_way_are_bounded() {
    for outstanding in [1, 2, 4] {
        let mut config = with_dma(4, 4);
        config.tiles[0].dma.as_mut().unwrap().outstanding = outstanding;
        let words = contiguous(3, MEMORY_BASE + DATA, window(3, 3) + DATA, 40);
        let (_, all) = transferred(&config, &[words]);
        let (reads, writes) = (reads(&all), writes(&all));
        let round = 2 + there_and_back(trip(6, 8), trip(6, 0));
        let round = round.next_multiple_of(2);
        for (number, read) in reads.iter().enumerate() {
            let (lap, place) = (
                number as u64 / u64::from(outstanding),
                number as u64 % u64::from(outstanding),
            );
            assert_eq!(read.0, reads[0].0 + lap * round + 2 * place);
        }
        for at in writes.iter().map(|write| write.1) {
            let under_way = reads
                .iter()
                .zip(&writes)
                .filter(|(r, w)| r.0 < at && at <= w.1);
            assert!(under_way.count() <= outstanding as usize);
        }
    }
}

#[test]
fn starting_costs_what_the_configuration_says() {
    let first = |startup: u64, cycle: Tick| {
        let mut config = with_dma(2, 2);
        *config.tiles[0].dma.as_mut().unwrap() = DmaConfig {
            cycle,
            startup,
            ..DmaConfig::default()
        };
        let mut machine = Machine::new(&config).unwrap();
        machine.keep_transactions();
        let mut p = Program::default();
        p.describe(
            0,
            &contiguous(3, MEMORY_BASE + DATA, window(1, 0) + DATA, 1),
        );
        p.addi(S2, ZERO, START as i32).jump_to_line();
        p.marker(ZERO, BEFORE).sd(S2, S0, CONTROL).word(WFI);
        p.start(&mut machine, 0);
        finish(&mut machine);
        let all = machine.ledger().transactions();
        let read = all
            .iter()
            .find(|one| one.transaction == Transaction::DmaRead);
        (read.unwrap().begin, marked(&machine, 0, BEFORE).unwrap())
    };
    for startup in [1, 4, 30] {
        // The marker takes a cycle of the hart.
        let (begin, marker) = first(startup, 2);
        assert_eq!(begin, marker + 2 + 2 * startup);
        let (begin, marker) = first(startup, 6);
        assert_eq!(begin, (marker + 2).next_multiple_of(6) + 6 * startup);
    }
}

#[test]
fn a_descriptor_in_memory_is_read_word_by_word() {
    let mut config = with_dma(2, 2);
    config.tiles[0].dma.as_mut().unwrap().startup = 5;
    let elements = 3;
    let second = contiguous(3, MEMORY_BASE + DATA, window(1, 0) + DATA, elements);
    let mut first = contiguous(3, MEMORY_BASE + DATA, window(0, 1) + DATA, elements);
    first[NEXT as usize / 8] = MEMORY_BASE + DATA + 0x800;
    let mut machine = Machine::new(&config).unwrap();
    machine.keep_transactions();
    load_words(&mut machine, 0, MEMORY_BASE + DATA + 0x800, &second);
    let mut p = Program::default();
    p.describe(0, &first).addi(S2, ZERO, START as i32);
    p.sd(S2, S0, CONTROL).word(WFI).start(&mut machine, 0);
    finish(&mut machine);
    let all = machine.ledger().transactions().to_vec();
    let all: Vec<Ended> = all
        .into_iter()
        .filter(|one| one.owner.activity > 0)
        .collect();
    let (reads, writes) = (reads(&all), writes(&all));
    // Three elements, eight words, three elements.
    assert_eq!((reads.len(), writes.len()), (14, 6));
    let end = writes[2].1.next_multiple_of(2);
    for word in 0..8 {
        assert_eq!(reads[3 + word].0, end + 2 * word as u64);
    }
    // The last word has arrived after a cycle; then the startup.
    assert_eq!(reads[11].0, reads[10].1 + 2 * 5);
    assert_eq!(register(&machine, 0, 0, COMPLETED), 2);
    assert_eq!(
        register(&machine, 0, 0, DESCRIPTOR),
        MEMORY_BASE + DATA + 0x800
    );
}

#[test]
fn channels_take_turns_and_wait_for_each_other() {
    let mut config = with_dma(4, 4);
    config.tiles[0].dma.as_mut().unwrap().channels = 3;
    let to = |row| contiguous(3, MEMORY_BASE + DATA, window(1, row) + DATA, 60);
    let (machine, all) = transferred(&config, &[to(0), to(1), to(2)]);
    // The engine begins one read per cycle, whichever channel it is for.
    let begins: Vec<Tick> = {
        let waits = machine.dma(0).unwrap().waited;
        assert!(waits > 0);
        let mut ends: Vec<Tick> = reads(&all).iter().map(|read| read.1).collect();
        ends.sort_unstable();
        ends
    };
    assert!(
        begins.windows(2).all(|pair| pair[1] >= pair[0] + 2),
        "{begins:?}"
    );
    // While all three work, each has every third turn.
    let of = |channel: u16| {
        let own: Vec<Ended> = all
            .iter()
            .filter(|one| one.owner == dma_owner(0, channel))
            .copied()
            .collect();
        reads(&own).iter().map(|read| read.1).collect::<Vec<_>>()
    };
    let [first, second, third] = [of(0), of(1), of(2)];
    for i in 20..40 {
        assert_eq!(first[i + 1] - first[i], 6);
        assert_eq!(second[i + 1] - second[i], 6);
        assert_eq!(third[i + 1] - third[i], 6);
    }
    let bookings = machine.ledger().bookings();
    let turns = bookings
        .iter()
        .filter(|one| one.resource == Resource::DmaEngine(0));
    let booked: Tick = turns.map(|one| one.ticks).sum();
    assert_eq!(booked, machine.dma(0).unwrap().waited);
    assert!(
        bookings
            .iter()
            .all(|one| one.resource != Resource::DmaEngine(0) || one.victim != one.culprit)
    );
}

/// Every wait is recorded exactly once: by accesses of harts and engines at ports, links and turns.
#[test]
fn all_waits_are_booked_exactly() {
    let mut config = with_dma(3, 3);
    for tile in &mut config.tiles {
        tile.local_memory.as_mut().unwrap().banks = 1;
    }
    let mut machine = Machine::new(&config).unwrap();
    for tile in 0..9 {
        let mut p = Program::default();
        let next = u64::from((tile + 1) % 9);
        p.describe(
            0,
            &contiguous(
                3,
                MEMORY_BASE + DATA,
                window(next % 3, next / 3) + DATA,
                200,
            ),
        );
        p.describe(
            1,
            &contiguous(2, window(1, 1) + DATA, MEMORY_BASE + DATA + 0x800, 100),
        );
        p.addi(S2, ZERO, START as i32)
            .sd(S2, S0, CONTROL)
            .sd(S2, S0, CHANNEL_SIZE + CONTROL);
        p.li(S1, MEMORY_BASE + DATA).addi(T2, ZERO, 150);
        let again = p.here();
        p.ld(T0, S1, 0).sd(T0, S1, 0x400);
        p.addi(T2, T2, -1).branch(1, T2, ZERO, again).word(WFI);
        p.start(&mut machine, tile);
    }
    finish(&mut machine);
    let booked: Tick = machine
        .ledger()
        .bookings()
        .iter()
        .map(|one| one.ticks)
        .sum();
    let requests: Tick = machine
        .ledger()
        .latencies()
        .iter()
        .map(|one| one.waited)
        .sum();
    let harts: Tick = machine
        .local_memories()
        .iter()
        .map(|(_, memory)| memory.own_waited)
        .sum();
    assert_eq!(booked, requests + harts);
    assert!(harts > 0 && requests > 0);
    // The harts waited for their own engines, and the ledger says for which channel.
    let of_engine = machine
        .ledger()
        .bookings()
        .into_iter()
        .any(|one| one.victim.activity == 0 && one.culprit == dma_owner(one.victim.tile, 0));
    assert!(of_engine);
}

/// Random descriptors against a loop over their elements, from and to every kind of memory.
#[test]
fn random_transfers_move_what_their_descriptors_say() {
    let mut random = 0x1234_5678_9ABC_DEF1u64;
    let mut next = |below: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random % below
    };
    let places = [
        MEMORY_BASE,
        window(0, 0),
        window(1, 0),
        window(1, 1),
        EXTERNAL_MEMORY,
    ];
    for round in 0..60 {
        let mut machine = Machine::new(&with_dma(2, 2)).unwrap();
        let (source, target) = (places[next(5) as usize], places[next(5) as usize]);
        let (log2, columns, rows) = (next(4), next(9), next(7));
        let unit = 1 << log2;
        // A source of at most 0x800 bytes around 0x3000, and a destination around 0x5000.
        let stride = |next: &mut dyn FnMut(u64) -> u64, most: u64| {
            let wide = next(2 * most + 1) as i64 - most as i64;
            wide * unit as i64
        };
        let strides: [i64; 4] = [12, 12, 12, 12].map(|most| stride(&mut next, most));
        let both = |low: i64, high: i64| u64::from(low as u32) | u64::from(high as u32) << 32;
        let (from, to) = (source + 0x3000, target + 0x5000);
        let words = [
            log2 | 0xABCD << 32,
            from,
            to,
            columns | rows << 32,
            both(strides[0], strides[1]),
            both(strides[2], strides[3]),
            0,
            MEMORY_BASE + 0x1800,
        ];
        let mut wanted: std::collections::BTreeMap<u64, u8> = Default::default();
        for at in 0..0x400 {
            let bytes: [u8; 8] = next(u64::MAX).to_le_bytes();
            machine
                .load_tile(0, source + 0x2000 + 8 * at, &bytes)
                .unwrap();
        }
        for row in 0..rows as i64 {
            for place in 0..columns as i64 {
                let mut bytes = vec![0; unit as usize];
                let read = from.wrapping_add((place * strides[0] + row * strides[2]) as u64);
                machine.peek(0, read, &mut bytes).unwrap();
                let write = to.wrapping_add((place * strides[1] + row * strides[3]) as u64);
                wanted.extend(
                    bytes
                        .iter()
                        .enumerate()
                        .map(|(i, b)| (write + i as u64, *b)),
                );
            }
        }
        let mut p = Program::default();
        p.describe(0, &words).addi(S2, ZERO, START as i32);
        p.sd(S2, S0, CONTROL).word(WFI).start(&mut machine, 0);
        finish(&mut machine);
        assert_eq!(status(&machine, 0, 0), (State::Done as u64, 0), "{round}");
        assert_eq!(word(&machine, MEMORY_BASE + 0x1800), 0xABCD);
        for (at, byte) in wanted {
            let mut got = [0];
            machine.peek(0, at, &mut got).unwrap();
            assert_eq!(got[0], byte, "{round}: {words:x?} at {at:#x}");
        }
    }
}

#[test]
fn what_does_not_exist_ends_a_transfer_with_its_address() {
    let good = MEMORY_BASE + DATA;
    let size = 32 << 10;
    let registers = window(0, 0) + TILE_REGISTERS;
    let words = |source, target| contiguous(3, source, target, 4);
    for (words, cause, address) in [
        (words(window(5, 0), good), Cause::ReadNothing, window(5, 0)),
        (words(good, window(0, 9)), Cause::WriteNothing, window(0, 9)),
        (
            words(good, MEMORY_BASE + size),
            Cause::WriteNothing,
            MEMORY_BASE + size,
        ),
        // The third element is beyond the end.
        (
            words(window(1, 0) + size - 16, good),
            Cause::ReadNothing,
            window(1, 0) + size,
        ),
        (
            words(good, EXTERNAL_MEMORY + (1 << 20) - 8),
            Cause::WriteNothing,
            EXTERNAL_MEMORY + (1 << 20),
        ),
        (words(0x4000, good), Cause::ReadNothing, 0x4000),
        // The tile's own registers are not across the network, and another tile's must exist.
        (words(good, registers), Cause::WriteNothing, registers),
        (
            words(good, window(1, 0) + TILE_REGISTERS + 0x18),
            Cause::WriteNothing,
            window(1, 0) + TILE_REGISTERS + 0x18,
        ),
        (words(good + 4, good), Cause::Descriptor, 0),
    ] {
        let (machine, all) = transferred(&with_dma(2, 2), &[words]);
        assert_eq!(status(&machine, 0, 0), (State::Error as u64, cause as u64));
        assert_eq!(register(&machine, 0, 0, ERROR_ADDRESS), address);
        assert_eq!(
            register(&machine, 0, 0, INTERRUPT),
            1,
            "an error interrupts"
        );
        assert_eq!(register(&machine, 0, 0, COMPLETED), 0);
        assert_eq!(machine.dma(0).unwrap().errors, 1);
        assert!(all.len() <= 8, "{all:?}");
    }
    // The next descriptor.
    let mut first = words(good, good + 0x100);
    for (next, cause) in [
        (window(9, 9), Cause::ReadNothing),
        (good + 4, Cause::Descriptor),
    ] {
        first[NEXT as usize / 8] = next;
        let (machine, _) = transferred(&with_dma(2, 2), &[first]);
        // An address that is not a multiple of eight is an error of the descriptor that contains it.
        match cause {
            Cause::Descriptor => assert_eq!(register(&machine, 0, 0, COMPLETED), 0),
            _ => assert_eq!(register(&machine, 0, 0, ERROR_ADDRESS), next),
        }
        assert_eq!(status(&machine, 0, 0), (State::Error as u64, cause as u64));
    }
}

#[test]
fn a_busy_channel_takes_no_orders_but_stop() {
    // Two descriptors that lead to each other never end.
    let place = MEMORY_BASE + DATA + 0x800;
    let mut one = contiguous(3, MEMORY_BASE + DATA, window(1, 0) + DATA, 5);
    let mut other = one;
    (one[NEXT as usize / 8], other[NEXT as usize / 8]) = (place + 64, place);
    let mut machine = Machine::new(&with_dma(2, 2)).unwrap();
    load_words(&mut machine, 0, place, &one);
    load_words(&mut machine, 0, place + 64, &other);
    let mut p = Program::default();
    let mut start = [0; 8];
    start[NEXT as usize / 8] = place;
    p.describe(0, &start).addi(S2, ZERO, START_CHAIN as i32);
    p.sd(S2, S0, CONTROL).li(T2, 300);
    let wait = p.here();
    p.addi(T2, T2, -1).branch(1, T2, ZERO, wait);
    // None of these writes has an effect.
    p.sd(ZERO, S0, NEXT)
        .sd(ZERO, S0, SOURCE)
        .sd(S2, S0, CONTROL);
    p.ld(24, S0, STATUS).ld(25, S0, NEXT).ld(26, S0, COMPLETED);
    p.addi(S2, ZERO, STOP as i32).sd(S2, S0, CONTROL);
    let wait = p.here();
    p.ld(27, S0, STATUS)
        .addi(T0, ZERO, State::Busy as i32)
        .branch(0, 27, T0, wait);
    p.word(WFI).start(&mut machine, 0);
    finish(&mut machine);
    let hart = machine.hart(0).unwrap();
    assert_eq!(hart.register(24), State::Busy as u64);
    assert!(hart.register(25) >= place, "{:#x}", hart.register(25));
    assert!(hart.register(26) > 5);
    assert_eq!(hart.register(27), State::Stopped as u64);
    assert_eq!(register(&machine, 0, 0, INTERRUPT), 0);
}

#[test]
fn an_interrupt_comes_at_the_end_and_goes_when_it_is_taken_back() {
    let mut machine = Machine::new(&with_dma(2, 2)).unwrap();
    let mut words = contiguous(3, MEMORY_BASE + DATA, EXTERNAL_MEMORY + 0x100, 10);
    words[0] |= INTERRUPT_AT_END;
    let mut p = Program::default();
    // mie.MEIE
    p.li(T0, 1 << 11).csr(1, 0x304, T0);
    p.describe(0, &words)
        .addi(S2, ZERO, START as i32)
        .li(S1, MEMORY_BASE + DATA);
    p.sd(S2, S0, CONTROL).word(WFI);
    p.marker(ZERO, SEEN).ld(24, S0, STATUS);
    // csrr s3, mip
    p.word(0x3440_2073 | S3 << 7);
    p.addi(T0, ZERO, 1).sd(T0, S0, INTERRUPT);
    let line = p.here();
    p.word(0x3440_2073 | T1 << 7)
        .srli(T1, T1, 11)
        .andi(T1, T1, 1);
    p.branch(1, T1, ZERO, line);
    p.word(WFI).start(&mut machine, 0);
    finish(&mut machine);
    let hart = machine.hart(0).unwrap();
    assert_eq!(hart.register(24), State::Done as u64);
    assert_eq!(hart.register(19) >> 11 & 1, 1);
    assert!(marked(&machine, 0, SEEN).is_some());
}

/// An engine may do to another tile what its hart may: without a guard everything, with one what the rules say.
#[test]
fn a_guard_refuses_an_engine_as_it_refuses_a_hart() {
    let rules = [GuardRule {
        tile: 0,
        from: DATA,
        to: DATA + 16,
        read: true,
        write: true,
    }];
    let attack = |guarded: bool, words: [u64; 8]| {
        let mut config = with_dma(2, 2);
        config.tiles[1].local_memory.as_mut().unwrap().guard = 4;
        let mut machine = Machine::new(&config).unwrap();
        if guarded {
            machine.set_guard(1, &rules).unwrap();
        }
        load_words(
            &mut machine,
            0,
            MEMORY_BASE + DATA,
            &[1, 2, 3, 4, 5, 6, 7, 8],
        );
        load_words(&mut machine, 1, MEMORY_BASE + DATA, &[0x11; 16]);
        // Where an attacker would start the other hart.
        load_words(&mut machine, 0, MEMORY_BASE + DATA + 0x100, &[MEMORY_BASE]);
        load_words(&mut machine, 1, MEMORY_BASE, &[WFI.into()]);
        let mut p = Program::default();
        p.describe(0, &words).addi(S2, ZERO, START as i32);
        p.sd(S2, S0, CONTROL).word(WFI).start(&mut machine, 0);
        finish(&mut machine);
        machine
    };
    let victim =
        |machine: &Machine| [0, 8, 16, 24].map(|at| word(machine, window(1, 0) + DATA + at));
    let write = contiguous(3, MEMORY_BASE + DATA, window(1, 0) + DATA, 4);
    let open = attack(false, write);
    assert_eq!(victim(&open), [1, 2, 3, 4]);
    assert_eq!(status(&open, 0, 0), (State::Done as u64, 0));
    let shut = attack(true, write);
    assert_eq!(victim(&shut), [1, 2, 0x11, 0x11]);
    let refused = Cause::WriteRefused as u64;
    assert_eq!(status(&shut, 0, 0), (State::Error as u64, refused));
    assert_eq!(
        register(&shut, 0, 0, ERROR_ADDRESS),
        window(1, 0) + DATA + 16
    );
    assert_eq!(shut.refused()[0].1.from, 0);
    // It reads nothing outside the rules, not even as all bits set.
    let read = contiguous(3, window(1, 0) + DATA + 8, MEMORY_BASE + DATA, 2);
    let shut = attack(true, read);
    let got = [0, 8].map(|at| word(&shut, MEMORY_BASE + DATA + at));
    assert_eq!(got, [0x11, 2]);
    let refused = Cause::ReadRefused as u64;
    assert_eq!(status(&shut, 0, 0), (State::Error as u64, refused));
    // The start of the other hart.
    let start = window(1, 0) + TILE_REGISTERS + TILE_START;
    let started = contiguous(3, MEMORY_BASE + DATA + 0x100, start, 1);
    for (guarded, halted) in [(false, false), (true, true)] {
        let machine = attack(guarded, started);
        assert_eq!(machine.hart(1).unwrap().is_halted(), halted);
    }
}

/// Another tile's engine, programmed from outside, would write its own tile's memory past the guard, which does not check the tile's own
/// engine.
#[test]
fn nobody_orders_a_guarded_tile_to_copy() {
    for guarded in [false, true] {
        let mut config = with_dma(2, 2);
        config.tiles[1].local_memory.as_mut().unwrap().guard = 4;
        let mut machine = Machine::new(&config).unwrap();
        if guarded {
            machine.set_guard(1, &[]).unwrap();
        }
        load_words(&mut machine, 1, MEMORY_BASE + DATA, &[1, 2, 3, 4]);
        let mut p = Program::default();
        let words = contiguous(3, MEMORY_BASE + DATA, window(0, 0) + DATA, 4);
        p.describe_at(window(1, 0), 0, &words)
            .addi(S2, ZERO, START as i32);
        p.word(FENCE).sd(S2, S0, CONTROL).word(FENCE).word(WFI);
        p.start(&mut machine, 0);
        finish(&mut machine);
        let got = word(&machine, window(0, 0) + DATA);
        assert_eq!(got, if guarded { 0 } else { 1 });
        assert_eq!(machine.dma(1).unwrap().reads > 0, !guarded);
    }
}

#[test]
fn registers_exist_for_the_channels_that_there_are() {
    let access = |tile: TileId, channel: u64, offset: u64| {
        let mut config = with_dma(2, 2);
        config.tiles[1].dma = None;
        let mut machine = Machine::new(&config).unwrap();
        let mut h = Program::default();
        h.word(WFI).spin();
        machine
            .load_tile(0, MEMORY_BASE + 0x1000, &h.bytes())
            .unwrap();
        let mut p = Program::default();
        p.li(T0, MEMORY_BASE + 0x1000).csr(1, 0x305, T0);
        let window = window(u64::from(tile), 0);
        p.li(
            S0,
            window + TILE_REGISTERS + FIRST_CHANNEL + CHANNEL_SIZE * channel + offset,
        );
        p.ld(S1, S0, 0)
            .word(FENCE)
            .sd(S1, S0, 0)
            .word(FENCE)
            .word(WFI);
        p.start(&mut machine, 0);
        finish(&mut machine);
        machine.hart(0).unwrap().csr(0x342).unwrap()
    };
    for (tile, channel, offset, cause) in [
        (0, 0, STATUS, 0),
        (0, 1, DESCRIPTOR, 0),
        (0, 1, REGISTERS_END, 5),
        (0, 2, 0, 5),
        (1, 0, STATUS, 5),
    ] {
        assert_eq!(
            access(tile, channel, offset),
            cause,
            "{tile} {channel} {offset:#x}"
        );
    }
}
