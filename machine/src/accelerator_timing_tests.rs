//! Times of streaming units on a whole chip, against closed forms: what overlaps, and what a change of clients costs.

use super::*;
use bulkhead_abi::accelerator::PIECE;

/// Bytes of the memory gates here.
const ROOM: u64 = 40 * PIECE;

/// Ticks from the request to the answer of a copy of this many pieces, and those of its data path for one piece, which it first reads
/// from the second level.
fn copy(pieces: u64, bytes_per_cycle: u32) -> (Tick, Tick) {
    let mut config = platform(PlatformKind::Tiled, 2, 1);
    let unit = AcceleratorConfig {
        bytes_per_cycle,
        ..unit(Operation::Copy)
    };
    let second = config.tiles[1].l2.as_ref().expect("a second level");
    let piece = unit.duration(PIECE) + second.latency * second.cycle;
    config.tiles[1].accelerator = Some(unit);
    let mut machine = Machine::new(&config).unwrap();
    for tile in 0..2 {
        give_memory(&mut machine, tile, 100, u64::from(tile) << 20);
    }
    let client_of = Client {
        number: 0,
        input: (IN, ROOM),
        output: Some((OUT, ROOM)),
        next: None,
    };
    adopt(&mut machine, 1, &client_of);
    let request = Request::whole(pieces * PIECE, 1);
    client(&mut machine, 0, 1, 0, &request);
    machine.run(RunLimit { ticks: 40_000_000 }, None);
    let (end, answer) = answer(&machine, 0);
    assert_eq!((answer.status, answer.bytes), (0, pieces * PIECE));
    let markers = machine.markers();
    let begin = markers.iter().find(|m| m.kind == 0x100);
    (end - begin.expect("it asked").tick, piece)
}

/// Refreshes and rows of the memory that a transfer finds so or otherwise, in ticks, for one of its two transfers.
const MEMORY: u64 = 400;

#[test]
fn transfers_hide_behind_a_slow_data_path() {
    // 4096 cycles a piece: reading and writing one takes much less. So n pieces take what the first one needs to come, n times
    // the data path, and what the last one needs to go.
    let (one, piece) = copy(1, 1);
    let (half, _) = copy(17, 1);
    let (many, _) = copy(33, 1);
    assert!(
        (many - half).abs_diff(16 * piece) <= MEMORY,
        "{many} {half} {piece}"
    );
    // One piece alone finds cold caches, so what is not data path is at most as much as there.
    let rest = many - 33 * piece;
    assert!(
        rest > 0 && rest <= one - piece + MEMORY,
        "{rest} {one} {piece}"
    );
}

#[test]
fn a_fast_data_path_hides_behind_transfers() {
    // 64 cycles a piece: the transfers are all that counts, one after the other, for the unit has one command at a time.
    let (one, piece) = copy(1, 64);
    let (many, _) = copy(33, 64);
    let transfers = (many - one) / 32;
    // What one piece takes alone is its two transfers, the data path, and what request and answer take.
    assert!(transfers < one - piece, "{transfers} {one} {piece}");
    let (twice, _) = copy(17, 64);
    // Every piece more costs the same.
    assert!(
        (many - twice).abs_diff(16 * transfers) <= 16 * MEMORY / 8,
        "{many} {twice} {transfers}"
    );
    // Without overlap the data path would come on top of them.
    let (slower, other) = copy(33, 32);
    let grown = slower.abs_diff(many);
    assert!(grown < 32 * (other - piece) / 4, "{grown} {other} {piece}");
}

#[test]
fn a_change_of_clients_costs_what_the_description_says() {
    let both = |switch: u64| {
        let mut config = platform(PlatformKind::Tiled, 3, 1);
        config.tiles[2].accelerator = Some(AcceleratorConfig {
            switch,
            bytes_per_cycle: 1,
            ..unit(Operation::Copy)
        });
        let mut machine = Machine::new(&config).unwrap();
        for tile in 0..3 {
            give_memory(&mut machine, tile, 100, u64::from(tile) << 20);
        }
        for number in 0..2 {
            let shift = u64::from(number) * ROOM;
            let client_of = Client {
                number,
                input: (IN + shift, ROOM),
                output: Some((OUT + shift, ROOM)),
                next: None,
            };
            adopt(&mut machine, 2, &client_of);
            client(
                &mut machine,
                number,
                2,
                number,
                &Request::whole(8 * PIECE, 1),
            );
        }
        machine.run(RunLimit { ticks: 40_000_000 }, None);
        let ends = [0, 1].map(|tile| answer(&machine, tile).0);
        let switches = machine.tiles[2].accelerator().expect("a unit").switches;
        (ends[0].max(ends[1]), switches)
    };
    let (free, changes) = both(0);
    let (costly, same) = both(1000);
    // Piece by piece in turn: 16 pieces, all but the first of another client than the one before.
    assert_eq!((changes, same), (15, 15));
    // A cycle has two ticks.
    assert!(
        (costly - free).abs_diff(15 * 1000 * 2) <= 2 * MEMORY,
        "{costly} {free}"
    );
}

#[test]
fn a_client_with_an_empty_bucket_delays_nobody_else() {
    // The second client copies the same alone, beside one without a limit, and beside one whose bucket is empty most of the time.
    let run = |rival: Option<u8>, rate: u64| {
        let mut config = platform(PlatformKind::Tiled, 3, 1);
        config.tiles[2].accelerator = Some(unit(Operation::Copy));
        let mut machine = Machine::new(&config).unwrap();
        for tile in 0..3 {
            give_memory(&mut machine, tile, 100, u64::from(tile) << 20);
        }
        let limited = machine.unit_mut(2).unwrap();
        limited.set_bucket(0, 1, rate, 4096, 4096);
        for number in rival.map(|_| 0).into_iter().chain([1]) {
            let shift = u64::from(number) * ROOM;
            let client_of = Client {
                number,
                input: (IN + shift, ROOM),
                output: Some((OUT + shift, ROOM)),
                next: None,
            };
            let bucket = if number == 0 { rival.unwrap_or(0) } else { 0 };
            adopt_in(&mut machine, 2, &client_of, bucket);
            let request = Request::whole(16 * PIECE, 1);
            client(&mut machine, number, 2, number, &request);
        }
        machine.run(RunLimit { ticks: 400_000_000 }, None);
        [0, 1].map(|tile| match rival.is_none() && tile == 0 {
            true => 0,
            false => answer(&machine, tile).0,
        })
    };
    let rate = 8 << 20;
    let [_, alone] = run(None, 0);
    let [_, equal] = run(Some(0), 0);
    let [slow, beside] = run(Some(1), rate);
    // Both transfers of each piece wait for their bytes, but for what is in the bucket at first.
    let bytes = 2 * 16 * PIECE - 4096;
    let ticks = |bytes: u64| bytes * 4_000_000_000 / rate;
    assert!(slow >= ticks(bytes) && slow < ticks(bytes + 8192), "{slow}");
    // Beside it the other client waits for a piece in its way now and then, never for its tokens.
    assert!(beside < equal, "{alone} {beside} {equal}");
    assert!(beside - alone < ticks(512), "{alone} {beside}");
}
