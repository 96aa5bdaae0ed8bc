//! Shares in closed forms, without a memory; and the registers by the specification's text.

use super::*;
use crate::config::dram::{InitialShare, Policy};

const SLOT: Tick = 10;

/// The class that gets each of the slots, if these classes always want one.
fn served(shares: &mut Shares, wanting: &[u16], slots: u64) -> Vec<Option<u16>> {
    let slot = |number| {
        let at = number * SLOT;
        let may = wanting.iter().copied().filter(|r| shares.may(*r, at) == at);
        let next = may.min_by(|one, other| shares.compare(at, *one, *other));
        if let Some(rcid) = next {
            shares.serve(rcid, at);
        }
        next
    };
    (0..slots).map(slot).collect()
}

fn shares(limits: &[(u16, u8)]) -> Shares {
    let limits: Vec<_> = limits
        .iter()
        .map(|&(reserved, weight)| Limit { reserved, weight })
        .collect();
    Shares::new(20 * SLOT, &limits)
}

fn count(all: &[Option<u16>], rcid: u16) -> usize {
    all.iter().filter(|one| **one == Some(rcid)).count()
}

/// In each window, every class gets its reserved slots, whatever the weights; the other slots are divided as the weights are.
#[test]
fn reserved_slots_come_first_and_the_others_go_by_weight() {
    let mut all = shares(&[(3, 1), (5, 3), (0, 6)]);
    let got = served(&mut all, &[0, 1, 2], 2000);
    for window in got.chunks(20) {
        assert!(count(window, 0) >= 3 && count(window, 1) >= 5);
    }
    // 12 of 20 slots are free: 1 to 3 to 6.
    let counts = [0, 1, 2].map(|rcid| count(&got, rcid) as i64);
    let expected = [300 + 120, 500 + 360, 720];
    for (got, expected) in counts.into_iter().zip(expected) {
        assert!((got - expected).abs() <= 1, "{counts:?}");
    }
}

/// Weight 0 is a hard limit, even if nobody else wants anything.
#[test]
fn without_a_weight_a_limit_is_hard() {
    let mut all = shares(&[(4, 0), (0, 1)]);
    let got = served(&mut all, &[0], 200);
    for window in got.chunks(20) {
        assert_eq!(window[..4], [Some(0); 4]);
        assert_eq!(window[4..], [None; 16]);
    }
}

/// Slots that others do not use go to those that have a weight.
#[test]
fn unused_slots_are_used_by_others() {
    let mut all = shares(&[(10, 1), (5, 1), (3, 0)]);
    let got = served(&mut all, &[1], 200);
    assert_eq!(count(&got, 1), 200);
}

/// A class with a small weight among large ones gets its share even if each window has only a few free slots.
#[test]
fn the_smallest_weight_is_not_starved() {
    let mut all = shares(&[(18, 0), (0, 255), (0, 1), (0, 255)]);
    let got = served(&mut all, &[0, 1, 2, 3], 20 * 511 * 2);
    assert_eq!(count(&got, 0), 18 * 511 * 2);
    let small = count(&got, 2);
    assert!((3..=5).contains(&small), "4 of 2044: {small}");
}

/// A class that has wanted nothing for long does not make the others wait for it.
#[test]
fn silence_gains_nothing() {
    let mut all = shares(&[(0, 1), (0, 1)]);
    served(&mut all, &[0], 100);
    let got = served(&mut all, &[0, 1], 100);
    assert!((50..=51).contains(&count(&got, 1)));
}

fn config() -> ControllerConfig {
    let mut config = super::super::controller::tests::config(Policy::Slots);
    (config.timing.refresh_interval, config.timing.refresh) = (6240, 208);
    config
}

fn registers() -> Bandwidth {
    let config_of = BandwidthConfig {
        blocks: 64,
        rcids: 4,
        mcids: 2,
    };
    Bandwidth::new(&config_of, &config(), &[])
}

/// RCID 0 has what can be reserved and the initial shares do not take.
#[test]
fn initial_shares_are_there_and_taken_from_the_first_one() {
    let config_of = BandwidthConfig {
        blocks: 64,
        rcids: 4,
        mcids: 2,
    };
    let all = config_of.reservable(&config()).expect("something");
    let shares = [(2, 8, 0), (3, 0, 9)].map(|(rcid, reserved, weight)| InitialShare {
        rcid,
        reserved,
        weight,
    });
    let registers = Bandwidth::new(&config_of, &config(), &shares);
    let limit = |reserved, weight| Limit { reserved, weight };
    let expected = [limit(all - 8, 255), limit(0, 1), limit(8, 0), limit(0, 9)];
    assert_eq!(registers.limits(), expected);
}

fn load(all: &mut Bandwidth, register: u64) -> u64 {
    all.access((register, 8), RemoteOperation::Load).0
}

fn store(all: &mut Bandwidth, register: u64, value: u64) -> Option<u16> {
    all.access((register, 8), RemoteOperation::Store(value)).1
}

fn status(all: &mut Bandwidth, register: u64) -> u64 {
    load(all, register) >> CONTROL_STATUS & 0x7F
}

#[test]
fn refreshes_leave_what_can_be_reserved() {
    let slot = config().slot();
    let reservable = |blocks| {
        let config_of = BandwidthConfig {
            blocks,
            rcids: 1,
            mcids: 1,
        };
        config_of.reservable(&config())
    };
    let each = 208u64.div_ceil(slot) + 1;
    // A window of 64 slots is shorter than the distance of refreshes, so it has one at most.
    assert!(64 * slot < 6240);
    assert_eq!(reservable(64), Some(64 - 1 - each as u16));
    assert_eq!(reservable(each as u16 + 1), None);
    assert_eq!(reservable(each as u16 + 2), Some(1));
}

#[test]
fn limits_are_set_and_read_as_the_specification_says() {
    let mut all = registers();
    let capabilities = load(&mut all, BC_CAPABILITIES);
    let most = capabilities >> CAPABILITIES_RESERVABLE & 0xFFFF;
    assert_eq!(capabilities & 0xFF_FFFF, 0x10 | 64 << 8);
    let set = |all: &mut Bandwidth, rcid: u64, reserved: u64, weight: u64| {
        store(all, BC_BW_ALLOC, reserved | weight << LIMIT_WEIGHT);
        let changed = store(all, BC_ALLOC_CTL, CONFIG_LIMIT | rcid << CONTROL_IDENTIFIER);
        (status(all, BC_ALLOC_CTL), changed)
    };
    // After reset, RCID 0 has everything.
    assert_eq!(set(&mut all, 1, 1, 1), (INVALID_BLOCKS, None));
    assert_eq!(set(&mut all, 0, most - 10, 2), (SUCCESS, Some(0)));
    assert_eq!(set(&mut all, 1, 11, 1), (INVALID_BLOCKS, None));
    assert_eq!(set(&mut all, 1, 10, 0), (SUCCESS, Some(1)));
    assert_eq!(set(&mut all, 1, 0, 0), (INVALID_BLOCKS, None));
    assert_eq!(set(&mut all, 4, 1, 0), (INVALID_IDENTIFIER, None));
    store(&mut all, BC_ALLOC_CTL, READ_LIMIT | 1 << CONTROL_IDENTIFIER);
    assert_eq!(status(&mut all, BC_ALLOC_CTL), SUCCESS);
    assert_eq!(load(&mut all, BC_BW_ALLOC), 10);
    store(&mut all, BC_ALLOC_CTL, 3);
    assert_eq!(status(&mut all, BC_ALLOC_CTL), INVALID_OPERATION);
    // Halves of a register.
    all.access(
        (BC_BW_ALLOC, 4),
        RemoteOperation::Store(7 | 9 << LIMIT_WEIGHT),
    );
    all.access((BC_BW_ALLOC + 4, 4), RemoteOperation::Store(u64::MAX));
    assert_eq!(load(&mut all, BC_BW_ALLOC), 7 | 9 << LIMIT_WEIGHT);
    let (before, _) = all.access((BC_ALLOC_CTL + 4, 4), RemoteOperation::Load);
    assert_eq!(before, INVALID_OPERATION);
    all.access((BC_ALLOC_CTL + 4, 4), RemoteOperation::Store(0));
    assert_eq!(status(&mut all, BC_ALLOC_CTL), INVALID_OPERATION);
}

#[test]
fn counters_count_bytes_of_their_event() {
    let mut all = registers();
    let one = QosIds { rcid: 0, mcid: 1 };
    let monitor = |all: &mut Bandwidth, operation: u64, mcid: u64, event: u64| {
        let value = operation | mcid << CONTROL_IDENTIFIER | event << MONITOR_EVENT;
        store(all, BC_MON_CTL, value);
        (status(all, BC_MON_CTL), load(all, BC_MON_CTR_VAL))
    };
    for (event, expected) in [(EVENT_ALL, 96), (EVENT_READS, 64), (EVENT_WRITES, 32)] {
        assert_eq!(monitor(&mut all, CONFIG_EVENT, 1, event).0, SUCCESS);
        all.count(one, 64, false);
        all.count(one, 32, true);
        all.count(QosIds::default(), 32, true);
        assert_eq!(monitor(&mut all, READ_COUNTER, 1, 0), (SUCCESS, expected));
    }
    // A counter that stops keeps its value.
    assert_eq!(monitor(&mut all, CONFIG_EVENT, 1, EVENT_NONE).0, SUCCESS);
    all.count(one, 64, true);
    assert_eq!(monitor(&mut all, READ_COUNTER, 1, 0), (SUCCESS, 32));
    assert_eq!(monitor(&mut all, READ_COUNTER, 2, 0).0, INVALID_IDENTIFIER);
    assert_eq!(monitor(&mut all, CONFIG_EVENT, 0, 4).0, INVALID_EVENT);
    assert_eq!(monitor(&mut all, 0, 0, 1).0, INVALID_OPERATION);
}

#[test]
#[should_panic(expected = "there is no register at 40")]
fn a_register_that_does_not_exist_is_not_read() {
    load(&mut registers(), BC_END);
}

#[test]
#[should_panic(expected = "there is no register at 40")]
fn a_register_that_does_not_exist_is_not_written() {
    store(&mut registers(), BC_END, 1);
}

#[test]
#[should_panic(expected = "Reserve of 8 bytes at 0")]
fn a_register_is_only_loaded_and_stored() {
    registers().access((BC_CAPABILITIES, 8), RemoteOperation::Reserve);
}

#[test]
#[should_panic(expected = "Load of 2 bytes at 0")]
fn a_register_is_accessed_in_words_or_as_a_whole() {
    registers().access((BC_CAPABILITIES, 2), RemoteOperation::Load);
}

/// Stores to registers that can only be read have no effect, as the specification says.
#[test]
fn what_can_only_be_read_keeps_its_value() {
    let mut all = registers();
    for register in [BC_CAPABILITIES, BC_MON_CTR_VAL] {
        let before = load(&mut all, register);
        assert_eq!(store(&mut all, register, u64::MAX), None);
        assert_eq!(load(&mut all, register), before);
    }
}
