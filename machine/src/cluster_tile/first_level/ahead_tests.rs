//! What a first level that fetches ahead learns from, and which lines it asks for: one case for each rule.

use super::*;
use crate::cluster_tile::first_level::Found;
use crate::config::{PrefetcherConfig, PrefetcherKind};
use crate::hart::Management;
use crate::types::Owner;

const LINE: u64 = 64;

/// A first level with this many miss registers, whose prefetcher names as many as four lines after the third one of a stream.
fn level(mshrs: u32) -> FirstLevel {
    let data = CacheConfig {
        size: 4096,
        ways: 2,
        line: LINE as u32,
        mshrs,
        prefetcher: Some(PrefetcherConfig {
            kind: PrefetcherKind::Stream {
                streams: 2,
                stride: 2,
                training: 3,
                distance: 4,
            },
            degree: 4,
            page: 4096,
        }),
        ..CacheConfig::default()
    };
    let instructions = CacheConfig {
        prefetcher: None,
        ..data.clone()
    };
    FirstLevel::new(0, Owner::new(0, 0), &instructions, &data)
}

impl FirstLevel {
    /// A line comes, and others may have it.
    fn comes(&mut self, line: u64) {
        let (owner, bytes) = (self.owner, [0; LINE as usize]);
        self.data.fill_absent(line, false, owner, &bytes);
        let at = self.data_miss(line).expect("it was asked for");
        if !self.came_ahead(at) {
            self.misses.remove(at);
        }
    }

    /// The lines that were asked for since the last call, with the requests.
    fn asked(&mut self) -> Vec<(u64, Request)> {
        let asks = self.out.asks.drain(..);
        asks.map(|ask| (ask.line / LINE, ask.request)).collect()
    }
}

/// A store to a line that is here and that others may have asks for the line, but is no miss of a stream.
#[test]
fn a_store_to_a_line_that_is_here_trains_nothing() {
    let mut first = level(8);
    for line in 0..4 {
        let (owner, bytes) = (first.owner, [0; LINE as usize]);
        first.data.fill_absent(LINE * line, false, owner, &bytes);
        assert!(matches!(
            first.data(0, LINE * line, true),
            Found::Pending(_)
        ));
        assert_eq!(first.asked(), [(line, Request::Write)]);
    }
}

/// A line that was fetched ahead and has left before its first use is awaited no more: an access that brings it again is a miss, and the next
/// one no first use.
#[test]
fn a_line_that_left_before_its_first_use_is_not_awaited() {
    let mut first = level(8);
    assert!(first.fetch_ahead(0, LINE));
    first.comes(LINE);
    let awaits = |first: &FirstLevel| first.ahead.as_ref().unwrap().foresight.awaits(LINE);
    assert!(awaits(&first));
    first.data.invalidate(LINE);
    assert!(matches!(first.data(0, LINE, false), Found::Pending(_)));
    assert!(!awaits(&first));
}

/// Lines that find no free miss register are named again at the next line of the stream, in order, and none is left out.
#[test]
fn lines_that_find_no_register_are_named_again() {
    let mut first = level(2);
    for line in 0..2 {
        first.data(0, LINE * line, false);
        first.comes(LINE * line);
    }
    first.asked();
    first.data(0, 2 * LINE, false);
    // One register is the access's own.
    assert_eq!(first.asked(), [(2, Request::Read), (3, Request::ReadAhead)]);
    first.comes(2 * LINE);
    first.comes(3 * LINE);
    assert!(matches!(first.data(0, 3 * LINE, false), Found::Hit));
    assert_eq!(
        first.asked(),
        [(4, Request::ReadAhead), (5, Request::ReadAhead)]
    );
}

/// The time until a request was dropped is in that request's account, so that of the access which had joined it begins then.
#[test]
fn an_access_that_asks_again_counts_no_time_twice() {
    let mut first = level(2);
    assert!(first.fetch_ahead(5, LINE));
    assert!(matches!(first.data(9, LINE, false), Found::Pending(_)));
    first.out.asks.clear();
    first.dropped(20, LINE);
    let ask = first.out.asks.pop().expect("it asks again");
    assert_eq!((ask.request, ask.account.service), (Request::Read, 0));
    assert_eq!(ask.account.accounted(), 20);
}

/// A line that no access has wanted yet ends its request when it comes, and wakes nobody; an access that has joined it is answered.
#[test]
fn a_line_that_nobody_waits_for_wakes_nobody() {
    for joined in [false, true] {
        let mut first = level(8);
        assert!(first.fetch_ahead(0, LINE));
        if joined {
            assert!(matches!(first.data(0, LINE, false), Found::Pending(_)));
        }
        let at = first.data_miss(LINE).expect("it was asked for");
        assert_eq!(first.came_ahead(at), !joined);
        assert_eq!(first.data_miss(LINE).is_some(), joined);
    }
}

/// Only its hart holds the registers of a first level, so nobody else is the culprit of a wait for one: it is service.
#[test]
fn a_wait_for_a_register_of_the_own_first_level_is_service() {
    let mut first = level(1);
    first
        .manage(0, 0, Management::Clean)
        .expect("nothing is under way");
    first.data(10, LINE, false);
    assert_eq!(first.out.asks.len(), 1);
    first.managed(100, 0);
    let account = first.out.asks[1].account;
    let mut expected = Account::new(10);
    expected.service = 90;
    assert_eq!(account, expected);
}
