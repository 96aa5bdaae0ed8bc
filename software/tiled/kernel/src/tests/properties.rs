//! Properties of memory, endpoints and system calls under random use.

use super::{boot, create};
use crate::endpoints::{EndpointTable, Use};
use crate::memory::{PAGE, Range};
use bulkhead_abi::dtu::Endpoint;
use bulkhead_abi::syscall::Syscall;
use bulkhead_abi::tilemux::{FIRST_ENDPOINT, NOTIFY_ENDPOINT, REQUEST_ENDPOINT};
use proptest::prelude::*;

proptest! {
    #[test]
    fn regions_are_disjoint_pages_inside_the_range(start in 0u64..1 << 20, size in 0u64..1 << 20, wants in proptest::collection::vec(0u64..40_000, 0..40)) {
        let mut range = Range::new(start, start + size);
        let mut end = start;
        for want in wants {
            if let Some(base) = range.take(want) {
                prop_assert!(base >= end && base % PAGE == 0);
                end = base + want.next_multiple_of(PAGE);
                prop_assert!(end <= start + size);
            } else {
                prop_assert!(want.next_multiple_of(PAGE) > range.left());
            }
        }
        prop_assert_eq!(range.take(u64::MAX), None);
    }

    #[test]
    fn endpoints_have_one_owner(steps in proptest::collection::vec((0u8..3, 1usize..5, 1u16..4), 1..60)) {
        let mut table = EndpointTable::new(40, FIRST_ENDPOINT);
        let mut received = Vec::new();
        for (step, count, activity) in steps {
            match step {
                0 | 1 => if let Some(first) = table.find(count) {
                    for number in first..first + count as u16 {
                        prop_assert_eq!(table.get(number), Use::Free);
                        prop_assert!(number >= FIRST_ENDPOINT && !received.contains(&number));
                        let entry = if step == 0 { Use::Memory { activity } } else {
                            received.push(number);
                            Use::Receive { activity, slots: 1, slot_size: 64, credits: 0 }
                        };
                        table.set(number, entry);
                    }
                },
                _ => {
                    for number in table.take_back(|e| e.owner() == Some(activity)) {
                        prop_assert!(number >= FIRST_ENDPOINT);
                    }
                    prop_assert!((0..40).all(|n| table.get(n).owner() != Some(activity)));
                }
            }
        }
    }

    #[test]
    fn no_call_harms_the_kernel(calls in proptest::collection::vec((0u64..20, proptest::collection::vec(0u64..70_000, 11), 0u16..4), 0..60)) {
        let (mut system, mut chip) = boot();
        create(&mut system, &mut chip);
        for (number, mut words, caller) in calls {
            words.insert(0, number);
            if let Ok(request) = Syscall::decode(&words) {
                let _ = system.call(&mut chip, caller, request);
            }
        }
        // TileMux's channels and the first window of both tiles are as they were.
        for tile in [1, 2] {
            prop_assert!(matches!(chip.endpoints[&(tile, REQUEST_ENDPOINT)], Endpoint::Receive(_)));
            prop_assert!(matches!(chip.endpoints[&(tile, NOTIFY_ENDPOINT)], Endpoint::Send(_)));
            prop_assert!(matches!(chip.endpoints[&(tile, 0)], Endpoint::Memory(_)));
        }
        // No two windows and no two memory objects of different activities share a byte of what was given away.
        let mut windows: Vec<(u64, u64)> = chip.endpoints.iter().filter(|((_, n), _)| *n < 4).filter_map(|(_, e)| match e {
            Endpoint::Memory(m) => Some((m.base, m.base + m.size)),
            _ => None,
        }).collect();
        windows.sort();
        for pair in windows.windows(2) {
            prop_assert!(pair[0].1 <= pair[1].0);
        }
    }
}
