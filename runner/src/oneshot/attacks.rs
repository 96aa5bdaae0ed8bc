//! The attacks that the check of a one-shot system tries: what each adversary of the chip does.
//!
//! Why it exists: an adversary can only access other cores' windows. So the library has each kind of access to each part of a victim's
//! memory and registers, and a seeded search mixes them. What it deliberately does not know: what an attack leads to.

use super::adversary::{Deed, Pattern, Plan, Step};
use super::attacked::{Place, Stand, window};
use bulkhead_abi::memory_map::{
    EXTERNAL_MEMORY, MEMORY_BASE, TILE_CORE, TILE_DOORBELL, TILE_REGISTERS, TILE_START,
};
use bulkhead_abi::one_shot::port::{QUEUE, WAITING_SHIFT};
use bulkhead_abi::one_shot::{IMAGE_SIZE, PORT_SIZE};
use bulkhead_random::Random;

/// The plans of all attackers of a run.
#[derive(Clone, Debug)]
pub struct Attack {
    /// Its name.
    pub name: String,
    /// In a few words.
    pub about: String,
    /// The plan of each attacker, in the order of the attackers' cores.
    pub plans: Vec<Plan>,
    /// It writes where a victim has data, or would if it were not refused: not only timing may change.
    pub writes: bool,
}

/// An attacker's own memory where it lets others write: after its program.
const OWN: u64 = 0x6000;
/// Groups of accesses at a place before the next one.
const GROUPS: u32 = 64;

/// The library, in its order.
pub fn library(stand: &Stand) -> Vec<Attack> {
    let mut all = timing(stand);
    all.extend(signals(stand));
    all.extend(fellows(stand));
    all.extend(writing(stand));
    all
}

/// What one attacker does to each victim in turn, each attacker beginning with a different victim.
fn each(stand: &Stand, step: impl Fn(u64, u16) -> Option<Step>) -> Vec<Plan> {
    let count = stand.victims.len();
    let of_attacker = |number: usize| {
        let turn = (0..count).map(|place| stand.victims[(number + place) % count]);
        let steps = turn.filter_map(|core| step(window(&stand.system, core), core));
        Plan {
            steps: steps.collect(),
            seed: number as u64 + 1,
        }
    };
    (0..stand.attackers.len()).map(of_attacker).collect()
}

fn step(deed: Deed, address: u64, pattern: Pattern, pause: u32) -> Step {
    Step {
        deed,
        address,
        pattern,
        groups: GROUPS,
        pause,
    }
}

fn attack(name: &str, about: &str, writes: bool, plans: Vec<Plan>) -> Attack {
    Attack {
        name: name.to_owned(),
        about: about.to_owned(),
        plans,
        writes,
    }
}

/// Attacks that change no byte of a victim: floods of the mesh and of the memories' ports.
fn timing(stand: &Stand) -> Vec<Attack> {
    let one = stand.victims.first().copied().unwrap_or(0);
    let hot = window(&stand.system, one);
    let row = |stride| Pattern::Row {
        stride,
        range: IMAGE_SIZE,
    };
    let mut all = vec![
        attack(
            "reads of one memory, all to one bank",
            "loads without a pause from the first bank of one victim, where its code is",
            false,
            each(stand, |_, core| {
                let step = step(Deed::Load, hot, Pattern::One, 0);
                (core == one).then_some(step)
            }),
        ),
        attack(
            "reads of all memories",
            "loads without a pause, row after row, over all banks of each victim in turn",
            false,
            each(stand, |base, _| Some(step(Deed::Load, base, row(256), 0))),
        ),
        attack(
            "stores without effect",
            "stores without a pause to a register of each victim that no store changes",
            false,
            each(stand, |base, _| {
                let register = base + TILE_REGISTERS + TILE_CORE;
                Some(step(Deed::Store(0), register, Pattern::One, 0))
            }),
        ),
        attack(
            "stores across the mesh",
            "stores without a pause from each attacker to the one at the other end of the list",
            false,
            across(stand, Deed::Store(7)),
        ),
        attack(
            "exchanges across the mesh",
            "atomic exchanges without a pause between attackers",
            false,
            across(stand, Deed::Swap(7)),
        ),
    ];
    if let Some(memory) = stand.system.platform.memories.first() {
        let range = memory.size.0.min(1 << 20);
        let plans = (0..stand.attackers.len()).map(|number| Plan {
            steps: vec![step(
                Deed::Store(7),
                EXTERNAL_MEMORY,
                Pattern::Random { range },
                0,
            )],
            seed: number as u64 + 1,
        });
        all.push(attack(
            "stores to external memory",
            "stores without a pause to random addresses of the chip's external memory",
            // There a host core finds what it loads, and whose consoles it reads.
            stand.has_host(),
            plans.collect(),
        ));
    }
    all
}

/// Pairs every attacker with the one at the other end, because neighbours in the list are neighbours on the mesh.
fn across(stand: &Stand, deed: Deed) -> Vec<Plan> {
    let attackers = stand.attackers.iter().rev();
    let plans = attackers.enumerate().map(|(number, &to)| Plan {
        steps: vec![step(
            deed,
            window(&stand.system, to) + OWN,
            Pattern::Row {
                stride: 8,
                range: 1 << 12,
            },
            0,
        )],
        seed: number as u64 + 1,
    });
    plans.collect()
}

/// Attacks through registers and on locks.
fn signals(stand: &Stand) -> Vec<Attack> {
    let register = |deed: Deed, offset: u64, pause: u32| {
        each(stand, |base, _| {
            let address = base + TILE_REGISTERS + offset;
            Some(step(deed, address, Pattern::One, pause))
        })
    };
    let mut rung = register(Deed::Store(1), TILE_DOORBELL, 20);
    for (plan, lowered) in rung
        .iter_mut()
        .zip(register(Deed::Store(0), TILE_DOORBELL, 20))
    {
        plan.steps.extend(lowered.steps);
    }
    let locks = each(stand, |base, core| {
        let records = stand.ports(core);
        let (first, _) = records.iter().min()?;
        let range = (records.len() as u64).next_power_of_two() * PORT_SIZE;
        let pattern = Pattern::Row {
            stride: PORT_SIZE as u32,
            range,
        };
        Some(step(Deed::Swap(1), base + first, pattern, 0))
    });
    vec![
        attack(
            "doorbells",
            "rings each victim's doorbell without a pause",
            true,
            register(Deed::Store(1), TILE_DOORBELL, 0),
        ),
        attack(
            "doorbells, rung and lowered",
            "rings each victim's doorbell, and lowers it again",
            true,
            rung,
        ),
        attack(
            "locks held for ever",
            "takes the lock of each port of the victims, and never gives it back",
            true,
            locks,
        ),
        attack(
            "starts of harts",
            "starts each victim's hart again, from the beginning of its memory",
            true,
            register(Deed::Store(MEMORY_BASE), TILE_START, 1000),
        ),
    ]
}

/// What a writer of a queue does to the others: in each queue that an attacker's core may write, no place is free, and nothing that was put is read.
fn fellows(stand: &Stand) -> Option<Attack> {
    let shared = |core: u16| stand.shared_queues(core).into_iter().next();
    let has_any = stand.victims.iter().any(|&core| shared(core).is_some());
    let fill = |base: u64, core: u16| {
        let (record, slots) = shared(core)?;
        let full = Deed::StoreWord(u32::from(slots) << WAITING_SHIFT);
        Some(step(full, base + record + QUEUE, Pattern::One, 0))
    };
    has_any.then(|| {
        attack(
            "queues filled",
            "says of a queue that victims and others write into that all its places are taken",
            true,
            each(stand, fill),
        )
    })
}

/// Random writes to each part of the victims' memories.
fn writing(stand: &Stand) -> Vec<Attack> {
    let mut names: Vec<&str> = Vec::new();
    for place in stand.victims.iter().flat_map(|&core| stand.places(core)) {
        if !names.contains(&place.name.as_str()) {
            names.push(&place.name);
        }
    }
    let mut all: Vec<Attack> = names
        .into_iter()
        .map(|name| {
            let plans = each(stand, |base, core| {
                let mut places = stand.places(core).iter();
                let place = places.find(|place| place.name == name)?;
                Some(scribble(base, place))
            });
            let about = format!("stores a pattern at random places of the victims' {name}");
            attack(&format!("writes to the {name}"), &about, true, plans)
        })
        .collect();
    let anywhere = each(stand, |base, _| {
        let pattern = Pattern::Random { range: IMAGE_SIZE };
        Some(step(Deed::Store(PATTERN), base, pattern, 10))
    });
    all.push(attack(
        "writes anywhere",
        "stores a pattern at random places of the victims' memories",
        true,
        anywhere,
    ));
    all
}

/// A value that no program would have written: not an address, a small number or an instruction.
const PATTERN: u64 = 0xA5A5_5A5A_A5A5_5A5A;

fn scribble(base: u64, place: &Place) -> Step {
    let begin = place.range.start.next_multiple_of(8);
    let bytes = place.range.end.saturating_sub(begin).max(8);
    // The greatest power of two that fits.
    let range = 1 << bytes.ilog2();
    step(
        Deed::Store(PATTERN),
        base + begin,
        Pattern::Random { range },
        10,
    )
}

/// An attack of the search: each attacker gets one to three random steps.
pub fn drawn(stand: &Stand, number: u32, seed: u64) -> Attack {
    let mut random = Random::new(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ u64::from(number));
    let count = stand.victims.len() as u64;
    let one = |random: &mut Random| {
        let core = stand.victims[random.below(count) as usize];
        let base = window(&stand.system, core);
        let deed = match random.below(4) {
            0 => Deed::Store(random.next()),
            1 => Deed::StoreWord(random.next() as u32),
            2 => Deed::Load,
            _ => Deed::Swap(random.below(2) as u32),
        };
        let places = stand.places(core);
        let (from, bytes) = match random.below(places.len() as u64 + 1) as usize {
            at if at < places.len() => {
                let range = &places[at].range;
                let from = range.start.next_multiple_of(8);
                (from, range.end.saturating_sub(from).max(8))
            }
            _ => (0, IMAGE_SIZE),
        };
        let range = 1 << bytes.ilog2();
        let pattern = match random.below(3) {
            0 => Pattern::One,
            1 => Pattern::Row {
                stride: 8 << random.below(6),
                range,
            },
            _ => Pattern::Random { range },
        };
        Step {
            deed,
            address: base + from,
            pattern,
            groups: 1 << random.below(8),
            pause: if random.chance(50) {
                0
            } else {
                1 << random.below(12)
            },
        }
    };
    let plans = (0..stand.attackers.len()).map(|_| {
        let count = 1 + random.below(3);
        Plan {
            steps: (0..count).map(|_| one(&mut random)).collect(),
            seed: random.next(),
        }
    });
    Attack {
        name: format!("search {number}"),
        about: "accesses of random kinds at random places of the victims".to_owned(),
        plans: plans.collect(),
        writes: true,
    }
}
