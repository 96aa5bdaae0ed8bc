//! Every call, step and agreement costs at most what [`crate::bounds`] states.

use super::*;
use crate::costs::{self as bounds, Bound};
use bulkhead_abi::syscall::{Number, SYSCALL_WORDS};
use bulkhead_abi::tilemux::FIRST_ENDPOINT;
use std::collections::BTreeMap;

/// SplitMix64.
pub(super) struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Selectors in use, sizes, small numbers, or any number.
    pub fn word(&mut self) -> u64 {
        match self.next() % 10 {
            0..4 => 16 + self.next() % 8,
            4 => self.next() % 4,
            5 => 1 << (self.next() % 20),
            6 => self.next() % 32,
            7 => [99, 100, 200, 513, 514, 776][self.next() as usize % 6],
            8 => u64::MAX,
            _ => self.next(),
        }
    }
}

/// A call that is likely to succeed. All activities use the selectors 16 to 23; the root manager has 300 prepared.
pub(super) fn sensible(random: &mut Random, caller: u16) -> Syscall {
    let mut some = || 16 + (random.next() % 8) as u16;
    let (a, b, c) = (some(), some(), some());
    let own = if c.is_multiple_of(2) { 3 } else { c };
    let other = [0, 100, 200][usize::from(c) % 3];
    let pick = random.next();
    match pick % 23 {
        0 | 1 => Syscall::CreateReceive {
            target: a,
            slots: 1 + c as u8 % 8,
            slot_size: 256,
        },
        2 | 3 => Syscall::CreateSend {
            source: a,
            target: b,
            label: 7,
            credits: 1,
        },
        4 | 5 => activate(a, 0, Some((3, 64 * u64::from(b)))),
        6 => activate(a, 0, None),
        // Perhaps where it was before its receiver went.
        21 => Syscall::Activate {
            gate: a,
            activity: 0,
            memory: NO_SELECTOR,
            offset: 0,
            replies: 0,
            endpoint: FIRST_ENDPOINT + (pick / 32 % 16) as u16,
        },
        22 => Syscall::Deactivate {
            gate: a,
            endpoint: FIRST_ENDPOINT + (pick / 32 % 16) as u16,
        },
        7 => Syscall::DeriveMemory {
            source: own,
            target: b,
            offset: 0,
            size: 64,
            rights: 3,
        },
        8 => Syscall::CutMemory {
            source: if caller == 1 { 99 } else { own },
            target: b,
            size: 4096,
        },
        9 => Syscall::Delegate {
            activity: other,
            source: a,
            target: b,
        },
        10 => Syscall::Obtain {
            activity: other,
            source: a,
            target: b,
        },
        11 | 12 => Syscall::CreateService { gate: a, target: b },
        13 => Syscall::OpenSession {
            service: a,
            target: b,
            argument: 0,
        },
        14 => Syscall::Exchange {
            session: a,
            delegate: (b % 2) as u8,
            own: b,
            count: 1 + c % 3,
            argument0: 0,
            argument1: 0,
            argument2: 0,
        },
        15 => creation(
            300,
            if pick.is_multiple_of(3) {
                a
            } else {
                SEL_TILES + 2
            },
            0,
        ),
        16 => limited(a, 1_000_000, 8192),
        17 if caller == 1 => Syscall::ConfigureTile {
            tile: SEL_TILES + 1 + c % 2,
            memory: a,
            tables: 0,
        },
        17 => Syscall::CreateSemaphore {
            target: a,
            value: 0,
        },
        20 if caller == 1 => Syscall::GiveDevice {
            tile: SEL_TILES + 2,
            activity: [100, 200, 300][usize::from(c) % 3],
            endpoint: (pick / 32 % 40) as u16,
            address: PROGRAM_BASE + 4096,
            offset: 4096,
            size: 4096,
        },
        20 => Syscall::Senders {
            endpoint: (pick / 32 % 64) as u16,
        },
        18 => Syscall::OpenModule {
            modules: bulkhead_abi::syscall::SEL_MODULES,
            target: a,
            key: module_key(b"app"),
        },
        _ => Syscall::Revoke {
            selector: if caller == 1 && c.is_multiple_of(2) {
                300
            } else {
                a
            },
            keep: 0,
        },
    }
}

#[derive(Default)]
struct Seen {
    times: u64,
    nodes: u64,
    effects: u32,
}

impl Seen {
    fn add(&mut self, nodes: u64, effects: u32, bound: Bound, what: &str) {
        self.times += 1;
        self.nodes = self.nodes.max(nodes);
        self.effects = self.effects.max(effects);
        assert!(nodes <= bound.nodes.into(), "{what}: {nodes} nodes");
        assert!(effects <= bound.effects, "{what}: {effects} effects");
    }
}

/// 30 000 random calls; seeds from the environment variable `BULKHEAD_STORM_SEED` (1).
#[test]
fn every_call_keeps_its_stated_cost() {
    let seed = std::env::var("BULKHEAD_STORM_SEED").map_or(1, |seed| seed.parse().unwrap());
    let mut random = Random(seed);
    let mut seen: BTreeMap<String, Seen> = BTreeMap::new();
    let mut given = 0;
    for _ in 0..100 {
        let (mut system, mut chip) = boot();
        create(&mut system, &mut chip, 100, SEL_TILES + 2);
        create(&mut system, &mut chip, 200, SEL_TILES + 2);
        for request in [
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
        // A service that the manager knows.
        for (caller, request) in [
            (
                3,
                Syscall::CreateReceive {
                    target: 16,
                    slots: 8,
                    slot_size: 256,
                },
            ),
            (3, activate(16, 0, Some((3, 0)))),
            (
                3,
                Syscall::CreateService {
                    gate: 16,
                    target: 17,
                },
            ),
            (
                1,
                Syscall::Obtain {
                    activity: 200,
                    source: 17,
                    target: 17,
                },
            ),
        ] {
            call(&mut system, &mut chip, caller, request).unwrap();
        }
        for _ in 0..300 {
            let mut words: [u64; SYSCALL_WORDS] = core::array::from_fn(|_| random.word());
            words[0] = random.next() % 33;
            let caller = [1, 1, 2, 3][random.next() as usize % 4];
            if !random.next().is_multiple_of(4) {
                let sensible = sensible(&mut random, caller).encode();
                words[..sensible.as_slice().len()].copy_from_slice(sensible.as_slice());
            }
            let Ok(request) = Syscall::decode(&words) else {
                continue;
            };
            let mine = |selector: u16| (16..32).contains(&selector) || selector == 300;
            let own = |selector: u16| caller == 1 && !mine(selector);
            let ends = match request {
                Syscall::Revoke { selector, .. } => own(selector),
                Syscall::Stop { activity } => own(activity),
                Syscall::Deactivate { gate, .. } => own(gate),
                _ => false,
            };
            if ends {
                continue;
            }
            let number = Number::from_code(words[0]).unwrap();
            let name = format!("{number:?}");
            let who = ticket(&system, caller);
            (chip.effects, chip.refuse) = (0, random.next().is_multiple_of(16));
            let before = system.space().steps();
            let _ = system.call(&mut chip, who, request);
            let nodes = system.space().steps() - before;
            let (effects, bound) = (chip.effects, bounds::of(number));
            seen.entry(name.clone())
                .or_default()
                .add(nodes, effects, bound, &name);
            // A call that became a job, step by step.
            loop {
                while let Some((number, answer)) = chip.answer() {
                    system.tile_answered(&mut chip, number, answer);
                }
                let Some(level) = (0..3).rev().find(|level| system.has_step(*level)) else {
                    break;
                };
                chip.effects = 0;
                let before = system.space().steps();
                system.step(&mut chip, level);
                let nodes = system.space().steps() - before;
                let largest = match request {
                    Syscall::ConfigureTile { .. } | Syscall::CreateActivity { .. } => {
                        bounds::MAKING
                    }
                    Syscall::CutMemory { .. } => bounds::CLEARING,
                    _ => bounds::REVOCATION,
                };
                // A revocation may continue meanwhile.
                let largest = Bound {
                    nodes: largest.nodes.max(bounds::REVOCATION.nodes),
                    effects: largest.effects.max(bounds::REVOCATION.effects),
                };
                seen.entry("a step".into()).or_default().add(
                    nodes,
                    chip.effects,
                    largest,
                    "a step",
                );
            }
            if let Some((.., number)) = chip.asked.last().cloned()
                && random.next().is_multiple_of(2)
            {
                (words[0], words[1], words[2]) = (0, 16 + words[1] % 8, 1);
                chip.effects = 0;
                let before = system.space().steps();
                system.answered(&mut chip, number, &words);
                let nodes = system.space().steps() - before;
                seen.entry("an agreement".into()).or_default().add(
                    nodes,
                    chip.effects,
                    bounds::AGREEMENT,
                    "an agreement",
                );
            }
            while system.reply_level().is_some() {
                let before = system.space().steps();
                system.send_reply(&mut chip);
                let nodes = system.space().steps() - before;
                seen.entry("a reply".into())
                    .or_default()
                    .add(nodes, 0, bounds::REPLY, "a reply");
            }
            while system.reported().is_some() {}
        }
        check(&mut system);
        given += chip.devices.iter().filter(|d| d.1 != (0, 0)).count();
    }
    assert!(given > 0, "no device was given");
    for number in (0..33).filter_map(Number::from_code) {
        let bound = bounds::of(number);
        let name = format!("{number:?}");
        let of = &seen[&name];
        println!(
            "| `{name}` | {} | {} | {} | {} | {} |",
            bound.nodes, of.nodes, bound.effects, of.effects, of.times
        );
    }
    println!(
        "steps {}, agreements {}, late replies {} (at most {} nodes)",
        seen["a step"].times,
        seen["an agreement"].times,
        seen["a reply"].times,
        seen["a reply"].nodes
    );
}

#[test]
fn a_large_tree_delays_a_higher_priority_by_one_step() {
    // As many capabilities as one activity can name, all derived from one; every second one is derived from its
    // predecessor.
    let (mut system, mut chip) = boot();
    for request in [
        Syscall::CutMemory {
            source: SEL_MEMORIES + MEMORY,
            target: 99,
            size: 1 << 22,
        },
        Syscall::ConfigureTile {
            tile: SEL_TILES + 2,
            memory: 99,
            tables: 100,
        },
        Syscall::CutMemory {
            source: 99,
            target: APP + 1,
            size: 1 << 16,
        },
        Syscall::DeriveKernelMemory {
            source: SEL_KERNEL_MEMORY,
            target: APP + 2,
            bytes: 1 << 18,
        },
    ] {
        call(&mut system, &mut chip, 1, request).unwrap();
    }
    let made = call(&mut system, &mut chip, 1, creation(APP, SEL_TILES + 2, 0)).unwrap();
    let id = made[0] as u16;
    start(&mut system, &mut chip, APP);
    let mut count = 0;
    loop {
        let target = 16 + count;
        let source = match count {
            0 => 3,
            count if count % 2 == 1 || count % 40 == 0 => 16,
            _ => target - 1,
        };
        let derive = Syscall::DeriveMemory {
            source,
            target,
            offset: 0,
            size: 64,
            rights: 3,
        };
        if target >= 1024 || later(&mut system, &mut chip, id, derive).is_err() {
            break;
        }
        if count % 20 == 0 {
            let _ = later(&mut system, &mut chip, id, activate(target, 0, None));
        }
        count += 1;
    }
    assert!(count > 900, "{count}");
    check(&mut system);
    let owner = ticket(&system, id);
    let all = Syscall::Revoke {
        selector: 16,
        keep: 0,
    };
    assert!(matches!(system.call(&mut chip, owner, all), Ok(None)));
    let mut steps = 0;
    while system.has_step(0) {
        chip.effects = 0;
        let before = system.space().steps();
        system.step(&mut chip, 0);
        assert!(system.space().steps() - before <= bounds::REVOCATION.nodes.into());
        assert!(chip.effects <= bounds::REVOCATION.effects);
        steps += 1;
        // A more important caller is served between any two steps.
        let high = ticket(&system, 1);
        let served = system.call(&mut chip, high, Syscall::Nothing {});
        assert!(matches!(served, Ok(Some(_))));
    }
    println!("{count} capabilities, {steps} steps");
    assert!(system.take_reply().is_some());
    check(&mut system);
}
