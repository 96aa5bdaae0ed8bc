//! Times of streaming units on a whole chip, against closed forms: what overlaps, and what a change of client costs.

use super::*;
use bulkhead_abi::accelerator::PIECE;

/// Bytes of the memory gates in these tests.
const ROOM: u64 = 40 * PIECE;

/// Ticks from the request to the answer of a copy of this many pieces, and the ticks of its data path for one piece. The unit first
/// reads a piece from the second level.
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

/// How much refreshes and open or closed rows can change one of a piece's two transfers, in ticks.
const MEMORY: u64 = 400;

#[test]
fn transfers_hide_behind_a_slow_data_path() {
    // 4096 cycles per piece: reading and writing a piece takes much less. So n pieces take the arrival of the first one, n times the
    // data path, and the departure of the last one.
    let (one, piece) = copy(1, 1);
    let (half, _) = copy(17, 1);
    let (many, _) = copy(33, 1);
    assert!(
        (many - half).abs_diff(16 * piece) <= MEMORY,
        "{many} {half} {piece}"
    );
    // A single piece finds cold caches, so the time outside the data path is at most that of a single piece.
    let rest = many - 33 * piece;
    assert!(
        rest > 0 && rest <= one - piece + MEMORY,
        "{rest} {one} {piece}"
    );
}

#[test]
fn a_fast_data_path_hides_behind_transfers() {
    // 64 cycles per piece: only the transfers count. They do not overlap, because the unit runs one command at a time.
    let (one, piece) = copy(1, 64);
    let (many, _) = copy(33, 64);
    let transfers = (many - one) / 32;
    // A single piece takes its two transfers, the data path, and the request and answer.
    assert!(transfers < one - piece, "{transfers} {one} {piece}");
    let (twice, _) = copy(17, 64);
    // Every additional piece costs the same.
    assert!(
        (many - twice).abs_diff(16 * transfers) <= 16 * MEMORY / 8,
        "{many} {twice} {transfers}"
    );
    // Without overlap, the data path would be added to the transfers.
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
    // Alternating piece by piece: 16 pieces, all but the first from a different client than the piece before.
    assert_eq!((changes, same), (15, 15));
    // A cycle has two ticks.
    assert!(
        (costly - free).abs_diff(15 * 1000 * 2) <= 2 * MEMORY,
        "{costly} {free}"
    );
}

#[test]
fn a_client_with_an_empty_bucket_delays_nobody_else() {
    // The second client makes the same copy alone, beside a client without a limit, and beside one whose bucket is empty most of the
    // time.
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
    // Both transfers of each piece wait for their bytes, except for the bytes initially in the bucket.
    let bytes = 2 * 16 * PIECE - 4096;
    let ticks = |bytes: u64| bytes * 4_000_000_000 / rate;
    assert!(slow >= ticks(bytes) && slow < ticks(bytes + 8192), "{slow}");
    // Beside that client, it occasionally waits for a piece, but never for the other client's tokens.
    assert!(beside < equal, "{alone} {beside} {equal}");
    assert!(beside - alone < ticks(512), "{alone} {beside}");
}
