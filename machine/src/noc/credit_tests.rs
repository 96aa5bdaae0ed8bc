//! Credits: closed forms of back pressure, who is blamed for it, and that saturated networks always drain.

use super::tests::*;
use super::*;
use crate::config::Topology;
use proptest::prelude::*;

fn line(routers: u16, credits: Option<u32>) -> Network {
    let config = NetworkConfig {
        credits,
        ..config(Topology::Mesh {
            columns: routers,
            rows: 1,
        })
    };
    Network::new(&config, &tiles(routers))
}

#[test]
fn a_credit_comes_back_when_the_tail_has_left() {
    // Eight packets of 5 cycles over two hops. A link with one credit sends the next packet after its packet's way through the router (link 1, router 2), the
    // packet's time on the next link (5), and the credit's way back (1): 9 cycles. Two credits hide that.
    for (credits, period) in [(None, 5), (Some(1), 9), (Some(2), 5), (Some(8), 5)] {
        let mut network = line(3, credits);
        for _ in 0..8 {
            network.inject(0, write(0, 0, 2, 64)).unwrap();
        }
        let expected: Vec<_> = (0..8).map(|i| ((23 + period * i) * 4, 0)).collect();
        assert_eq!(
            run(&mut network, &mut Ledger::new()),
            expected,
            "{credits:?}"
        );
    }
}

/// Tiles 0 and 2 send to tile 3 as fast as they can; tile 1 sends packets to tile 2, which share only the link between routers 1 and 2. Returns the sum of
/// those packets' times, and what they waited for.
fn beside_a_hot_spot(credits: Option<u32>) -> (Tick, Vec<crate::ledger::Booking>) {
    let mut network = line(4, credits);
    let mut ledger = Ledger::new();
    for _ in 0..20 {
        network.inject(0, write(0, 0, 3, 512)).unwrap();
        network.inject(0, write(0, 2, 3, 512)).unwrap();
    }
    let begins = (0..8).map(|i| 600 + i * 148);
    for begin in begins.clone() {
        network.inject(begin, write(begin, 1, 2, 0)).unwrap();
    }
    let arrivals = run(&mut network, &mut ledger);
    let own = arrivals.iter().filter(|one| one.1 == 1);
    let times = own.map(|one| one.0).sum::<Tick>() - begins.sum::<Tick>();
    let bookings = ledger.bookings().into_iter();
    (times, bookings.filter(|b| b.victim.tile == 1).collect())
}

#[test]
fn a_full_buffer_delays_those_who_go_elsewhere_and_its_holder_is_blamed() {
    let sum = |bookings: &[crate::ledger::Booking]| bookings.iter().map(|b| b.ticks).sum::<Tick>();
    // Alone, a packet needs 4 + 3 + 3 + 1 + 1 + 4 cycles.
    let alone = 8 * 16 * 4;
    // Without a limit, they wait for links only.
    let (free, bookings) = beside_a_hot_spot(None);
    assert!(
        bookings
            .iter()
            .all(|b| matches!(b.resource, Resource::Link(_)))
    );
    assert_eq!(free, alone + sum(&bookings));
    // With one credit, the place behind that link is tile 0's, until tile 3 has taken a packet of it and one of tile 2's.
    let (full, mut bookings) = beside_a_hot_spot(Some(1));
    assert_eq!(full, alone + sum(&bookings));
    bookings.retain(|b| matches!(b.resource, Resource::InputBuffer(_)));
    let of_others = bookings.iter().filter(|b| b.culprit.tile == 0);
    assert!(
        of_others.map(|b| b.ticks).sum::<Tick>() > 8 * 33 * 4,
        "{bookings:?}"
    );
    // Tile 2's packets never have a place behind that link.
    assert!(bookings.iter().all(|b| b.culprit.tile != 2), "{bookings:?}");
}

proptest! {
    /// Random traffic at saturation: all packets are there from the first moment on, and each buffer has one to three places. All packets
    /// arrive; no delay is lost.
    #[test]
    fn saturated_networks_drain(
        columns in 1u16..5,
        rows in 1u16..5,
        credits in 1u32..4,
        acknowledged in any::<bool>(),
        traffic in prop::collection::vec((0u16..16, 0u16..16, 0u32..513, any::<bool>()), 50..300),
    ) {
        let routers = columns * rows;
        let mut c = config(Topology::Mesh { columns, rows });
        c.credits = Some(credits);
        if acknowledged {
            c.channels = Channels::Acknowledged { read_interval: 7 };
        }
        let mut network = Network::new(&c, &tiles(routers));
        let mut ledger = Ledger::new();
        for &(source, destination, bytes, read) in &traffic {
            let mut packet = write(0, source % routers, destination % routers, bytes);
            if read {
                packet.kind = PacketKind::ReadRequest { address: 0, bytes };
            }
            network.inject(0, packet).unwrap();
        }
        let (mut arrived, mut waited) = (0, 0);
        while network.next_time() != Tick::MAX {
            if let Some(d) = network.step(&mut ledger, None) {
                prop_assert_eq!(d.packet.account.accounted(), d.at);
                waited += d.packet.account.waited;
                arrived += 1;
            }
        }
        prop_assert_eq!((arrived, network.under_way()), (traffic.len(), 0));
        prop_assert_eq!(ledger.totals().iter().map(|t| t.1).sum::<u64>(), waited);
        // All credits have come back.
        for link in &network.links {
            let wanted = matches!(link.shape.to, Node::Router(_)).then_some(credits);
            prop_assert_eq!(link.credits, wanted);
        }
    }

    /// Buffers that are never full are as good as buffers without a limit.
    #[test]
    fn many_credits_change_nothing(
        traffic in prop::collection::vec((0u64..40, 0u16..9, 0u16..9, 0u32..513), 1..80),
    ) {
        let run_with = |credits| {
            let mut c = config(Topology::Mesh { columns: 3, rows: 3 });
            c.credits = credits;
            let mut network = Network::new(&c, &tiles(9));
            let mut ledger = Ledger::new();
            let mut now = 0;
            for &(gap, source, destination, bytes) in &traffic {
                now += gap;
                network.inject(now, write(now, source, destination, bytes)).unwrap();
            }
            (run(&mut network, &mut ledger), ledger.bookings())
        };
        prop_assert_eq!(run_with(None), run_with(Some(80)));
    }

    /// Packets from one tile to another one, and back, with room for a way there and back: none waits for room, whatever their lengths and moments are.
    /// Bounds rely on this (`has_room` in `analysis/src/communication/cluster.rs`).
    #[test]
    fn room_for_a_way_there_and_back_is_never_waited_for(
        routers in 1u16..5,
        link in 0u64..4,
        router in 0u64..6,
        traffic in prop::collection::vec((0u64..40, any::<bool>(), 0u32..100), 1..120),
    ) {
        // The shortest packet is a header of a cycle.
        let room = (1 + 2 * link + router) as u32;
        let run_with = |credits| {
            let mut c = config(Topology::Mesh { columns: routers, rows: 1 });
            (c.credits, c.link, c.router) = (credits, link, router);
            let places: Vec<_> = (0..2).map(|tile| (tile, tile * (routers - 1), false)).collect();
            let mut network = Network::new(&c, &places);
            let mut ledger = Ledger::new();
            let mut now = 0;
            for &(gap, back, bytes) in &traffic {
                now += gap;
                let tile = u16::from(back);
                network.inject(now, write(now, tile, 1 - tile, bytes)).unwrap();
            }
            (run(&mut network, &mut ledger), ledger.bookings())
        };
        prop_assert_eq!(run_with(None), run_with(Some(room)));
    }
}

/// The same with one place less: of headers in a row, the last one comes later.
#[test]
fn less_room_than_a_way_there_and_back_is_waited_for() {
    for (link, router) in [(1, 2), (2, 0), (0, 3), (3, 5)] {
        let last = |credits| {
            let mut c = config(Topology::Crossbar);
            (c.credits, c.link, c.router) = (Some(credits), link, router);
            let mut network = Network::new(&c, &[(0, 0, false), (1, 0, false)]);
            for _ in 0..20 {
                network.inject(0, write(0, 0, 1, 0)).unwrap();
            }
            let arrivals = run(&mut network, &mut Ledger::new());
            arrivals.last().map(|last| last.0)
        };
        let room = (1 + 2 * link + router) as u32;
        assert_eq!(last(room), last(64));
        assert!(last(room - 1) > last(64), "{link} {router}");
    }
}
