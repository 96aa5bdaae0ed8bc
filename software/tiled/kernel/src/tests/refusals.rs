//! A call is checked before it changes anything: after a refusal everything is as before, wherever the refusal happened.

use super::bounds::{Random, sensible};
use super::*;
use bulkhead_abi::syscall::{Number, SYSCALL_WORDS};
use std::collections::BTreeSet;

/// Counters that only record how often something was done, and marks of minimums or of past events: no decision depends on them. Also whose
/// turn it is in work done in steps. Memory of an activity that could not be made was in other hands: it is cleared once more.
const HISTORY: [&str; 11] = [
    "births: ",
    "steps: Cell { value: ",
    "requests: ",
    "question: ",
    "next_activity: ",
    "least: ",
    "until: ",
    "turn: ",
    "job: ",
    "numbered: ",
    " shared: ",
];

/// The whole state of the kernel as text, without [`HISTORY`].
fn digest(system: &System) -> String {
    let mut text = format!("{system:?}");
    for name in HISTORY {
        let mut rest = text.as_str();
        let mut kept = String::with_capacity(text.len());
        while let Some(at) = rest.find(name) {
            let end = at + name.len();
            kept.push_str(&rest[..end]);
            rest = &rest[end..];
            // An array, a number, or a Boolean.
            let length = match rest.starts_with('[') {
                true => rest.find(']'),
                false => rest.find(|c: char| !c.is_ascii_alphanumeric()),
            };
            rest = &rest[length.unwrap_or(rest.len())..];
        }
        kept.push_str(rest);
        text = kept;
    }
    text
}

/// Where two texts begin to differ.
fn difference(a: &str, b: &str) -> String {
    let at = a.bytes().zip(b.bytes()).position(|(a, b)| a != b);
    let at = at.unwrap_or(a.len().min(b.len()));
    let part = |text: &str| {
        let start = at.saturating_sub(300);
        let bytes = &text.as_bytes()[start..text.len().min(at + 120)];
        String::from_utf8_lossy(bytes).into_owned()
    };
    format!("\n  before: {}\n  after:  {}", part(a), part(b))
}

/// All work in progress comes to its end.
fn calm_down(system: &mut System, chip: &mut Chip) {
    finish(system, chip);
    while system.take_reply().is_some() {}
    while system.reported().is_some() {}
}

/// A system with a history: it has free places and nodes that were in use.
fn used() -> (System, Chip) {
    let (mut system, mut chip) = boot();
    for at in [APP, 200, 400, 500, 600] {
        create(&mut system, &mut chip, at, SEL_TILES + 2);
    }
    for request in [
        Syscall::Revoke {
            selector: 401,
            keep: 0,
        },
        Syscall::Revoke {
            selector: 501,
            keep: 0,
        },
        Syscall::Revoke {
            selector: 601,
            keep: 0,
        },
        Syscall::CutMemory {
            source: 99,
            target: 301,
            size: 1 << 16,
        },
        Syscall::DeriveKernelMemory {
            source: SEL_KERNEL_MEMORY,
            target: 302,
            bytes: 4096,
        },
    ] {
        call(&mut system, &mut chip, 1, request).unwrap();
    }
    // More than any call makes, in addition to what random calls leave.
    let many = 310..350;
    for target in many.clone() {
        let make = Syscall::CreateSemaphore { target, value: 0 };
        call(&mut system, &mut chip, 1, make).unwrap();
    }
    for selector in many.rev() {
        let back = Syscall::Revoke { selector, keep: 0 };
        call(&mut system, &mut chip, 1, back).unwrap();
    }
    hear_all(&mut system, &mut chip, 1);
    calm_down(&mut system, &mut chip);
    (system, chip)
}

/// Random calls in random states. Each is tried before with a failure at every place where a node is made, and with a TileMux that refuses.
/// Seeds come from the environment variable `BULKHEAD_STORM_SEED` (1).
#[test]
fn what_is_refused_changes_nothing() {
    let seed = std::env::var("BULKHEAD_STORM_SEED").map_or(1, |seed| seed.parse().unwrap());
    let refused = storm(seed);
    assert!(refused.len() > 60, "{refused:?}");
}

/// This seed refuses a service for want of a notice after its gate has gone round its shares. Before the fix, the gate then began with another one.
#[test]
fn a_refused_service_leaves_the_order_of_its_gates_shares() {
    storm(40);
}

/// Returns the kinds of refusals.
fn storm(seed: u64) -> BTreeSet<String> {
    let mut random = Random(seed);
    let mut refused = BTreeSet::new();
    let mut trials = 0;
    for _ in 0..12 {
        let (mut system, mut chip) = used();
        for _ in 0..60 {
            let mut words: [u64; SYSCALL_WORDS] = core::array::from_fn(|_| random.word());
            words[0] = random.next() % 33;
            let caller = [1, 1, 2, 3][random.next() as usize % 4];
            // A waiting activity makes no other call.
            if system.activity(caller).is_some_and(|a| a.waits.is_some()) {
                continue;
            }
            if !random.next().is_multiple_of(4) {
                let sensible = sensible(&mut random, caller).encode();
                words[..sensible.as_slice().len()].copy_from_slice(sensible.as_slice());
            }
            let Ok(request) = Syscall::decode(&words) else {
                continue;
            };
            let mine = |selector: u16| (16..32).contains(&selector) || selector == 300;
            let ends = match request {
                Syscall::Revoke { selector, .. } => !mine(selector),
                Syscall::Stop { activity } => !mine(activity),
                Syscall::Deactivate { gate, .. } => !mine(gate),
                _ => false,
            };
            if ends {
                continue;
            }
            let name = format!("{:?}", Number::from_code(words[0]).unwrap());
            let before = digest(&system);
            for refuses in [false, true] {
                for fails in 0..20 {
                    let (mut trial, mut hands) = (system.clone(), chip.clone());
                    trial.space().fail_in = Some(fails);
                    hands.refuse = refuses;
                    let outcome = later(&mut trial, &mut hands, caller, request);
                    calm_down(&mut trial, &mut hands);
                    let all_made = trial.space().fail_in.take() != Some(0);
                    trials += 1;
                    if let Err(error) = outcome {
                        let after = digest(&trial);
                        assert!(
                            before == after,
                            "{request:?} of {caller} was refused: {error:?}; node {fails} was not made; TileMux refuses: {refuses}{}",
                            difference(&before, &after)
                        );
                        refused.insert(format!("{name}: {error:?}"));
                    }
                    if all_made {
                        break;
                    }
                }
            }
            let _ = later(&mut system, &mut chip, caller, request);
            if let Some((.., number)) = chip.asked.last().cloned() {
                (words[0], words[1], words[2]) = (random.next() % 2, 16 + words[1] % 8, 1);
                system.answered(&mut chip, number, &words);
            }
            chip.now += 1;
            expire_all(&mut system, u64::MAX - 1);
            calm_down(&mut system, &mut chip);
        }
        check(&mut system);
    }
    println!("{trials} trials; {} kinds of refusals", refused.len());
    refused
}
