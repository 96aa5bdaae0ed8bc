//! Waits at a directory have their culprits and exact lengths.

use super::*;
use crate::cluster_tile::messages::Reply;
use crate::types::LINE_MAX;

const LINE: u64 = 64;
/// Lines of a set are this far apart.
const SETS: u64 = 4 * LINE;

/// A directory of two ways by itself, and what it has asked memory for.
struct Bench {
    directory: Directory,
    ledger: Ledger,
}

impl Bench {
    fn new(registers: u32) -> Self {
        let config = CacheConfig {
            size: 512,
            ways: 2,
            line: LINE as u32,
            mshrs: registers,
            ..CacheConfig::default()
        };
        Self {
            directory: Directory::new(7, &config),
            ledger: Ledger::new(),
        }
    }

    fn ask(&mut self, now: Tick, port: Port, line: u64, request: Request) {
        let ask = Ask {
            port,
            line,
            request,
            ids: QosIds::default(),
            account: Account::new(now),
        };
        self.directory.ask(now, ask, &mut self.ledger);
    }

    /// A line comes from memory.
    fn comes(&mut self, now: Tick, line: u64) {
        let mut below = self.directory.below.iter();
        let account = below.find_map(|below| match below {
            Below::Read {
                line: asked,
                account,
                ..
            } if *asked == line => Some(*account),
            _ => None,
        });
        let mut account = account.expect("memory was asked");
        account.service += now - account.accounted();
        let bytes = (&[0; LINE_MAX], true);
        self.directory
            .came(now, line, bytes, account, &mut self.ledger);
    }

    /// Whether memory was asked for a line.
    fn asked(&self, line: u64) -> bool {
        let mut below = self.directory.below.iter();
        below.any(|below| matches!(below, Below::Read { line: asked, .. } if *asked == line))
    }

    /// The ports for which a port waited, and how long.
    fn waits(&self, victim: Port) -> Vec<(Port, Tick)> {
        let all = self.ledger.bookings().into_iter();
        let own = all.filter(|booking| booking.victim == self.directory.owner(victim));
        let waits = own.map(|booking| {
            assert_eq!(booking.resource, Resource::Directory(7));
            (booking.culprit.activity as Port, booking.ticks)
        });
        let mut waits: Vec<_> = waits.collect();
        waits.sort_unstable();
        waits
    }
}

#[test]
fn each_stretch_of_a_wait_for_a_register_is_booked_to_whom_ended_it() {
    let mut b = Bench::new(2);
    b.ask(0, 0, 0, Request::Read);
    b.ask(10, 1, LINE, Request::Read);
    b.ask(20, 2, 2 * LINE, Request::Read);
    b.ask(30, 3, 3 * LINE, Request::Read);
    // The younger one's line comes first, and the first of the two that wait begins.
    b.comes(100, LINE);
    assert!(b.asked(2 * LINE) && !b.asked(3 * LINE));
    assert_eq!(b.waits(2), [(1, 80)]);
    b.comes(150, 0);
    assert!(b.asked(3 * LINE));
    assert_eq!(b.waits(3), [(0, 50), (1, 70)]);
    b.comes(300, 2 * LINE);
    b.comes(300, 3 * LINE);
    assert!(b.directory.is_idle());
    assert_eq!([b.waits(0), b.waits(1)], [[], []]);
}

/// The line is brought for the port that foresaw it.
#[test]
fn a_wait_for_a_line_that_is_fetched_ahead_is_booked_to_whom_it_serves() {
    let ahead = |b: &mut Bench| {
        let ask = Ask {
            port: 1,
            line: LINE,
            request: Request::Ahead(Fill::Data),
            ids: QosIds::default(),
            account: Account::new(0),
        };
        let begun = b.directory.fetch_ahead(0, ask, &mut b.ledger);
        assert_eq!(begun, Foreseeing::Begun);
    };
    // Another port needs its register, or the line itself.
    for (line, registers) in [(2 * LINE, 1), (LINE, 4)] {
        let mut b = Bench::new(registers);
        ahead(&mut b);
        b.ask(20, 0, line, Request::Read);
        b.comes(100, LINE);
        assert_eq!(b.waits(0), [(1, 80)], "{line:#x}");
        assert_eq!(b.waits(1), [], "{line:#x}");
    }
    // Of a first level, too: the request that joins is the port's own, and others wait for the port.
    let mut b = Bench::new(4);
    b.ask(0, 1, LINE, Request::ReadAhead);
    b.ask(20, 0, LINE, Request::Read);
    b.comes(100, LINE);
    assert_eq!(b.waits(0), [(1, 80)]);
}

#[test]
fn a_wait_for_a_line_is_booked_to_whom_had_it_before() {
    let mut b = Bench::new(4);
    b.ask(0, 0, LINE, Request::Write);
    b.ask(20, 1, LINE, Request::Read);
    b.ask(30, 2, LINE, Request::Read);
    b.comes(100, LINE);
    // Port 1 begins, and asks port 0 for the line. Port 2 is behind port 1 in the queue all the time.
    assert_eq!(b.waits(1), [(0, 80)]);
    assert_eq!(b.waits(2), []);
    let answer = Reply::Answer {
        line: LINE,
        dirty: false,
        kept: true,
        held: 0,
    };
    b.directory.reply(130, 0, answer, &mut b.ledger);
    assert_eq!(b.waits(2), [(1, 100)]);
    assert!(b.directory.is_idle());
}

/// Both places of a set are taken by lines on their way. The first that comes gives its place.
#[test]
fn a_wait_for_a_way_is_booked_to_whose_line_gives_it() {
    for (first, port) in [(0, 0), (SETS, 1)] {
        let mut b = Bench::new(4);
        b.ask(0, 0, 0, Request::Read);
        b.ask(0, 1, SETS, Request::Read);
        b.ask(0, 3, LINE, Request::Read);
        b.ask(20, 2, 2 * SETS, Request::Read);
        assert!(!b.asked(2 * SETS));
        // Another set does not matter: the way is still missing, and the oldest request holds one.
        b.comes(60, LINE);
        assert!(!b.asked(2 * SETS));
        b.comes(100, first);
        assert!(b.asked(2 * SETS));
        assert_eq!(b.waits(2), [(port, 80)], "{first:#x}");
    }
}

/// What ends in ways that a request may not fill gives it nothing.
#[test]
fn a_wait_for_a_way_is_booked_to_who_gives_one_that_the_request_may_fill() {
    let mut b = Bench::new(4);
    for (port, ways) in [(0, 0b01), (1, 0b10), (2, 0b01)] {
        b.directory.capacity.lock(port, Fill::Data, ways);
    }
    b.ask(0, 1, SETS, Request::Read);
    b.ask(10, 0, 0, Request::Read);
    b.ask(20, 2, 2 * SETS, Request::Read);
    b.comes(60, SETS);
    b.ask(70, 1, 3 * SETS, Request::Read);
    assert!(!b.asked(2 * SETS));
    b.comes(100, 0);
    assert!(b.asked(2 * SETS));
    assert_eq!(b.waits(2), [(0, 80)]);
}

/// A line that memory acknowledges has lost its place before.
#[test]
fn what_memory_acknowledges_gives_no_place() {
    let mut b = Bench::new(4);
    b.ask(0, 3, 0, Request::Write);
    b.comes(10, 0);
    let put = Reply::Put { line: 0 };
    b.directory.reply(20, 3, put, &mut b.ledger);
    b.ask(30, 0, SETS, Request::Read);
    // It takes the place of the modified line.
    b.ask(30, 1, 2 * SETS, Request::Read);
    b.ask(40, 2, 3 * SETS, Request::Read);
    assert!(!b.asked(3 * SETS));
    b.directory.written(60, 0, &mut b.ledger);
    b.comes(100, SETS);
    assert_eq!(b.waits(2), [(0, 60)]);
}

/// Cache management needs no miss register, even if it has waited for its line.
#[test]
fn cache_management_never_waits_for_a_register() {
    let mut b = Bench::new(1);
    b.ask(0, 0, LINE, Request::Write);
    b.comes(10, LINE);
    let put = Reply::Put { line: LINE };
    b.directory.reply(20, 0, put, &mut b.ledger);
    let flush = Request::Manage(Management::Flush);
    b.ask(30, 1, LINE, flush);
    b.ask(40, 2, LINE, flush);
    b.ask(50, 3, 2 * LINE, Request::Read);
    // The line is gone, and the register taken.
    b.directory.written(100, LINE, &mut b.ledger);
    b.comes(300, 2 * LINE);
    assert_eq!(b.waits(2), [(1, 60)]);
    assert!(b.directory.is_idle());
}
