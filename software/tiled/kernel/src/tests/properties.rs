//! Properties of endpoints and of all system calls under random use.

use super::*;
use crate::endpoints::EndpointTable;
use bulkhead_abi::syscall::StopCause;
use bulkhead_abi::tilemux::{FIRST_ENDPOINT, NOTIFY_ENDPOINT, REQUEST_ENDPOINT};
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;

/// Numbers with a meaning: selectors in use, sizes, rights.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![
        0u64..8,
        Just(20),
        Just(21),
        Just(99),
        Just(100),
        Just(101),
        Just(102),
        Just(200),
        512u64..516,
        Just(776),
        Just(64),
        Just(4096),
        Just(65536),
        Just(u64::MAX),
        any::<u64>(),
    ]
}

/// A system call: its number, its words, the caller, and what else happens.
type Call = (u64, Vec<u64>, u16, u8);

fn any_call() -> impl Strategy<Value = Call> {
    (
        0u64..33,
        proptest::collection::vec(number(), 13),
        1u16..4,
        0u8..8,
    )
}

/// Random calls of three activities, one of which is the manager.
fn story(calls: Vec<Call>) -> TestCaseResult {
    let (mut system, mut chip) = boot();
    create(&mut system, &mut chip, 100, SEL_TILES + 2);
    create(&mut system, &mut chip, 200, SEL_TILES + 2);
    for (number, mut words, caller, other) in calls {
        words.insert(0, number);
        if let Ok(request) = Syscall::decode(&words) {
            // The manager may end the system's activities, but then nothing is left to try.
            let ends = matches!(
                request,
                Syscall::Stop { .. } | Syscall::Revoke { .. } | Syscall::Deactivate { .. }
            );
            if caller == 1 && ends && other > 0 {
                continue;
            }
            let _ = later(&mut system, &mut chip, caller, request);
        }
        match other {
            1 => {
                if let Some((.., number)) = chip.asked.last().cloned() {
                    system.answered(&mut chip, number, &words);
                }
            }
            2 => {
                chip.now += 10_000_000;
                expire_all(&mut system, chip.now);
            }
            3 if words[1] % 16 == 0 => {
                system.notified(&mut chip, 2, caller, StopCause::Panic);
                finish(&mut system, &mut chip);
            }
            _ => {}
        }
        while system.take_reply().is_some() {}
        while system.reported().is_some() {}
        prop_assert_eq!(system.space().check(), Ok(()));
    }
    // Each endpoint belongs to an activity that exists.
    for ((tile, number), endpoint) in &chip.endpoints {
        let owner = match endpoint {
            Endpoint::Send(e) => e.activity,
            Endpoint::Receive(e) => e.activity,
            Endpoint::Memory(e) => e.activity,
            Endpoint::Invalid => continue,
        };
        let place = system.tile_of(owner).map(|t| t.id);
        prop_assert!(*number < FIRST_ENDPOINT || place == Some(*tile));
    }
    // Tile 1 is unchanged, if the manager lives.
    if system.activity(1).is_some() && chip.stopped.is_empty() {
        prop_assert!(matches!(
            chip.endpoints[&(1, REQUEST_ENDPOINT)],
            Endpoint::Receive(_)
        ));
        prop_assert!(matches!(
            chip.endpoints[&(1, NOTIFY_ENDPOINT)],
            Endpoint::Send(_)
        ));
    }
    Ok(())
}

proptest! {
    #[test]
    fn endpoints_are_given_once(steps in proptest::collection::vec((0u8..2, 1u16..5), 1..60)) {
        let mut table = EndpointTable::new(40, FIRST_ENDPOINT);
        let mut taken: Vec<(u16, u16)> = Vec::new();
        for (step, count) in steps {
            if step == 0 && let Some(first) = table.find(count) {
                for number in first..first + count {
                    prop_assert!(number >= FIRST_ENDPOINT);
                    prop_assert!(taken.iter().all(|(f, n)| number < *f || number >= f + n));
                }
                table.take(first, count);
                taken.push((first, count));
            } else if let Some((first, count)) = taken.pop() {
                (first..first + count).for_each(|number| table.free(number));
            }
        }
        prop_assert_eq!(table.find(41), None);
    }

    #[test]
    fn no_call_harms_the_kernel_or_its_laws(calls in proptest::collection::vec(any_call(), 0..80)) {
            story(calls)?;
        }
}

#[test]
fn guided_calls() {
    bulkhead_fuzz::target("calls", |bytes| story(bytes.story(&any_call(), 80)));
}
