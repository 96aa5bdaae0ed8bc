//! Random operations against the model: both refuse the same operations and have the same left of everything.

use super::model::{Kind, Model, Person};
use super::{KERNEL, MEMORY, PURSE, SMALL_TILE, TILE, space};
use crate::{
    Error, HolderId, NO_OWNER, NodeId, Object, Progress, QUOTAS, Quota, Request, Space, Terms,
};
use bulkhead_abi::dtu::UNLIMITED_CREDITS;
use proptest::prelude::*;
use std::collections::BTreeSet;

/// Selectors that the operations use.
const NAMES: u16 = 14;
const PLACES: u16 = 8;
/// Kinds of operations.
const OPERATIONS: u8 = 20;

/// A step: an operation and its operands, all of them any numbers.
type Step = (u8, [u16; 4], [u64; 3]);

fn model(space: &Space) -> Model {
    let mut model = Model {
        node_cost: Space::NODE_COST,
        holder_cost: Space::HOLDER_COST,
        places: PLACES,
        ..Model::default()
    };
    let given = space.kernel_memory_left(KERNEL).unwrap() + 4 * Space::NODE_COST;
    // The kernel's own purse, which paid for the tests' purse, both tiles and the memory.
    let whole = given
        + match space.find_shared(PURSE) {
            Object::KernelMemory { given, .. } => given,
            other => panic!("{other:?}"),
        };
    let add = |model: &mut Model, kind, origin, selector, cost| {
        let id = model.next;
        model.next += 1;
        model.all.insert(
            id,
            super::model::Capability {
                kind,
                original: None,
                origin,
                holder: 0,
                needs: vec![],
                selector,
                purse: 0,
                cost,
            },
        );
        id
    };
    let cost = Space::NODE_COST;
    let own = add(&mut model, Kind::Purse { given: whole }, None, None, 0);
    let node = add(&mut model, Kind::Activity { holder: 0 }, None, None, 0);
    model.people.insert(
        0,
        Person {
            node,
            purse: own,
            tile: usize::MAX,
        },
    );
    let tile = |quota: [Option<u64>; QUOTAS]| Kind::Tile {
        own: quota,
        taken: None,
        terms: Terms {
            period: 0,
            priority: 255,
            idle: true,
        },
    };
    let second = Some(1_000_000_000);
    add(
        &mut model,
        tile([Some(100), second, None, None, Some(1000), Some(16), Some(4)]),
        None,
        Some(TILE),
        cost,
    );
    add(
        &mut model,
        tile([
            Some(20),
            second,
            Some(4_000_000_000),
            Some(65536),
            Some(50),
            Some(16),
            Some(4),
        ]),
        None,
        Some(SMALL_TILE),
        cost,
    );
    add(
        &mut model,
        Kind::Memory {
            base: 0x1000,
            size: 1 << 20,
            rights: 7,
            cut: None,
        },
        None,
        Some(MEMORY),
        cost,
    );
    add(
        &mut model,
        Kind::Purse {
            given: whole - given,
        },
        Some(own),
        Some(PURSE),
        cost,
    );
    model
}

impl Space {
    fn find_shared(&self, selector: u16) -> Object {
        *self.object(self.holders[0].table[usize::from(selector)])
    }
}

fn start(nodes: usize) -> (Space, Model) {
    let mut space = space(nodes);
    let left = space.kernel_memory_left(KERNEL).unwrap();
    space.add_kernel_memory(PURSE, left * 3 / 4).unwrap();
    let model = model(&space);
    (space, model)
}

fn request(mask: u64, value: u64) -> Request {
    let amounts = [
        value % 40,
        value % 7,
        value % 5_000_000_000,
        value % 70_000,
        value % 60,
        value % 5,
        value % 3,
    ];
    let mut request: Request = core::array::from_fn(|i| (mask >> i & 1 == 1).then_some(amounts[i]));
    if mask & 1 << QUOTAS == 0 {
        // Usually rate and burst together.
        request[3] = request[2].map(|_| amounts[3]);
    }
    request
}

fn terms(value: u64) -> Terms {
    Terms {
        period: value % 8,
        // The kernel's tiles have the highest priority: usually lower priorities, one after the other.
        priority: (255 - value / 8 % 3 * (value / 24 % 100)) as u8,
        idle: value / 2400 % 2 == 1,
    }
}

/// Applies a step to both; an error if one accepted what the other refused, otherwise whether both accepted it.
fn apply(space: &mut Space, model: &mut Model, step: Step) -> Result<bool, String> {
    let (operation, [caller, source, target, other], [a, b, c]) = step;
    let (caller, other_holder) = (caller % PLACES, other % PLACES);
    let (source, target, other) = (source % NAMES, target % NAMES, other % NAMES);
    let holder = HolderId(caller);
    let sizes = [1, 16, 4096, 8192, 65536, 1 << 19, 0];
    let size = sizes[(a % 7) as usize];
    let (ours, theirs) = match operation % OPERATIONS {
        0 | 1 => (
            space
                .derive_tile(holder, source, target, request(a, b), terms(c))
                .is_ok(),
            model
                .derive_tile(caller, source, target, request(a, b), terms(c))
                .is_some(),
        ),
        2 => {
            let bytes = a % 40_000;
            (
                space
                    .derive_kernel_memory(holder, source, target, bytes)
                    .is_ok(),
                model.derive_purse(caller, source, target, bytes).is_some(),
            )
        }
        3 => {
            let align = 1 << (b % 14);
            (
                space
                    .cut_memory(holder, source, target, size, align)
                    .is_ok(),
                model.cut(caller, source, target, size, align).is_some(),
            )
        }
        4 => {
            let part = (b % 9000, size);
            let rights = (c % 9) as u8;
            (
                space
                    .derive_memory(holder, source, target, part, rights)
                    .is_ok(),
                model
                    .derive_memory(caller, source, target, part, rights)
                    .is_some(),
            )
        }
        5 | 6 => {
            // Usually operands that can succeed: those that the kernel has from the start.
            let (tile, purse, memory) = match b % 3 {
                0 => (source, other, (c % u64::from(NAMES)) as u16),
                1 => (TILE, PURSE, MEMORY),
                _ => (SMALL_TILE, PURSE, MEMORY),
            };
            let ours = space.create_activity(holder, target, tile, purse, memory);
            let place = ours.as_ref().ok().map(|(_, holder)| holder.0);
            let theirs = model.create_activity(caller, target, tile, purse, memory, place);
            if ours.ok().map(|(_, holder)| holder.0) != theirs {
                return Err(format!("activity: {ours:?} {theirs:?}"));
            }
            (theirs.is_some(), theirs.is_some())
        }
        7 => {
            let slots = (a % 5) as u8;
            (
                space.create_receive(holder, target, slots, 64).is_ok(),
                slots > 0
                    && model
                        .derive(caller, None, target, |_, _| true, Kind::Receive { slots })
                        .is_some(),
            )
        }
        8 => {
            let credits = match a % 5 {
                4 => UNLIMITED_CREDITS,
                few => few as u8,
            };
            let fits = |m: &Model, id| {
                matches!(m.kind(id), Kind::Receive { .. })
                    && credits > 0
                    && (credits == UNLIMITED_CREDITS || m.credits_left(id) >= credits)
            };
            (
                space
                    .create_send(holder, source, target, b, credits)
                    .is_ok(),
                model
                    .derive(caller, Some(source), target, fits, Kind::Send { credits })
                    .is_some(),
            )
        }
        9 => (
            space.create_service(holder, source, target).is_ok(),
            model
                .derive(
                    caller,
                    Some(source),
                    target,
                    |m, id| matches!(m.kind(id), Kind::Receive { .. }) && m.credits_left(id) > 0,
                    Kind::Service,
                )
                .is_some(),
        ),
        10 => (
            space.create_session(holder, source, target, a).is_ok(),
            model
                .derive(
                    caller,
                    Some(source),
                    target,
                    |m, id| *m.kind(id) == Kind::Service,
                    Kind::Session(a),
                )
                .is_some(),
        ),
        11 => (
            space.create_semaphore(holder, target, 1).is_ok(),
            model
                .derive(
                    caller,
                    None,
                    target,
                    |_, _| true,
                    Kind::Semaphore { value: 1 },
                )
                .is_some(),
        ),
        12 | 13 => {
            if other_holder == 0 {
                // The kernel has no tile capability.
                return Ok(false);
            }
            let count = 1 + (a % 3) as u16;
            let buffer = (b % 2 == 0).then_some(target);
            let node = match buffer {
                Some(buffer) => match space.find(holder, buffer) {
                    Ok(node) => Some(node),
                    Err(_) => return Ok(false),
                },
                None => None,
            };
            // The model's number serves to find the endpoint again.
            let place = (model.next as u16, count);
            (
                space
                    .activate(holder, source, HolderId(other_holder), place, node)
                    .is_ok(),
                model
                    .activate(caller, source, other_holder, count, buffer)
                    .is_some(),
            )
        }
        14 => {
            if other_holder == 0 {
                return Ok(false);
            }
            let tables = a % 40;
            (
                space
                    .map(
                        holder,
                        source,
                        HolderId(other_holder),
                        (b, c),
                        tables,
                        NodeId::NONE,
                    )
                    .is_ok(),
                model.map(caller, source, other_holder, tables).is_some(),
            )
        }
        15 | 16 => {
            let (from, to) = match a % 2 {
                0 => ((caller, source), (other_holder, target)),
                _ => ((other_holder, source), (caller, target)),
            };
            (
                space
                    .copy(holder, (HolderId(from.0), from.1), (HolderId(to.0), to.1))
                    .is_ok(),
                model.copy(caller, from, to).is_some(),
            )
        }
        19 => (
            space.show(holder, source, other, (a % 4) as u16).is_ok(),
            model.show(caller, source, other).is_some(),
        ),
        18 => {
            let lost = model.disconnected();
            let Some(lost) = lost.get(a as usize % lost.len().max(1)) else {
                return Ok(false);
            };
            let known = disconnected(space);
            let Some((_, node)) = known.iter().find(|(at, _)| *at == *lost as u16) else {
                return Err(format!("endpoint {lost} is not disconnected"));
            };
            (space.connect(*node).is_ok(), model.connect(*lost))
        }
        _ => {
            let keep = a % 4 == 0;
            let ours = match b % 4 {
                0 if other_holder != 0 => space.end_activity(0, HolderId(other_holder)),
                // What the kernel has from the start stays, or every run would end soon.
                _ if caller == 0 && source <= SMALL_TILE => return Ok(false),
                _ => space.revoke(0, holder, source, keep),
            };
            let (root, keep) = match b % 4 {
                0 if other_holder != 0 => (model.people.get(&other_holder).map(|p| p.node), false),
                _ => (model.find(caller, source), keep),
            };
            match (ours, root) {
                (Ok(()), Some(root)) => {
                    let mut removed = 0;
                    loop {
                        match space.step(0) {
                            Progress::Removed(_) => removed += 1,
                            Progress::Working | Progress::Disconnected(_) => {}
                            Progress::Done => break,
                        }
                    }
                    let expected = model.revoke(root, keep);
                    if removed != expected {
                        return Err(format!("{removed} removed, {expected} expected"));
                    }
                    (true, true)
                }
                (ours, root) => (ours.is_ok(), root.is_some()),
            }
        }
    };
    if ours != theirs {
        return Err(format!("{step:?}: done {ours}, in the model {theirs}"));
    }
    Ok(ours)
}

/// Endpoints without a receiver, with their numbers.
fn disconnected(space: &Space) -> Vec<(u16, NodeId)> {
    let endpoints = space.alive().filter_map(|(id, object)| match object {
        Object::Endpoint { endpoint, .. } => Some((endpoint, id)),
        _ => None,
    });
    endpoints
        .filter(|(_, id)| space.is_disconnected(*id))
        .collect()
}

/// Everything that can be observed is the same.
fn compare(space: &mut Space, model: &Model) -> Result<(), String> {
    for holder in 0..PLACES {
        for selector in 0..NAMES {
            let theirs = model.find(holder, selector);
            let ours = space
                .look(HolderId(holder), selector)
                .map(|(id, object)| (id, *object));
            let (object, id) = match (ours, theirs) {
                (Ok((_, object)), Some(id)) => (object, id),
                (Err(Error::NoCapability | Error::NoHolder), None) => continue,
                (ours, theirs) => return Err(format!("{holder} {selector}: {ours:?} {theirs:?}")),
            };
            let same = match (object, model.kind(id)) {
                (Object::Tile(tile), Kind::Tile { terms, .. }) => {
                    (tile.time.priority, tile.time.idle) == (terms.priority, terms.idle)
                        && Quota::ALL.iter().copied().all(|quota| {
                            let q = quota as usize;
                            if tile.owner[q] == NO_OWNER {
                                return false;
                            }
                            let Object::Tile(owner) = *space.object(tile.owner[q]) else {
                                return false;
                            };
                            owner.left.get(quota) == model.quota_left(id, q).unwrap_or(u64::MAX)
                        })
                }
                (Object::KernelMemory { left, .. }, Kind::Purse { .. }) => {
                    left == model.purse_left(id)
                }
                (Object::Receive(gate), Kind::Receive { .. }) => {
                    gate.free.count_ones() == model.credits_left(id).into()
                        && gate.place.is_some() == model.is_active(id)
                }
                (
                    Object::Memory(m),
                    Kind::Memory {
                        base, size, rights, ..
                    },
                ) => (m.base, m.size, m.rights) == (*base, *size, *rights),
                (Object::Activity { holder: a }, Kind::Activity { holder: b }) => a == *b,
                (Object::Session { ident }, Kind::Session(b)) => ident == *b,
                (Object::Send { shares, .. }, Kind::Send { credits }) => match *credits {
                    UNLIMITED_CREDITS => shares == 0,
                    credits => shares.count_ones() == credits.into(),
                },
                (Object::Service(service), Kind::Service) => service.shares.is_power_of_two(),
                (Object::Semaphore { value, .. }, Kind::Semaphore { value: b }) => value == *b,
                _ => false,
            };
            if !same {
                return Err(format!(
                    "{holder} {selector}: {object:?} {:?}",
                    model.all[&id]
                ));
            }
        }
    }
    let ours: BTreeSet<u16> = disconnected(space).iter().map(|(at, _)| *at).collect();
    let theirs: BTreeSet<u16> = model.disconnected().iter().map(|id| *id as u16).collect();
    if ours != theirs {
        return Err(format!("disconnected: {ours:?} {theirs:?}"));
    }
    let people: BTreeSet<u16> = model.people.keys().copied().collect();
    for place in 0..PLACES {
        if space.kernel_memory_left(HolderId(place)).is_ok() != people.contains(&place) {
            return Err(format!("place {place}"));
        }
    }
    space
        .check()
        .map_err(|(law, node)| format!("{law}: {node:?}"))
}

/// A small generator of its own, for long runs without memory: SplitMix64 (Steele, Lea, Flood 2014).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn step(&mut self) -> Step {
        let [a, b] = [self.next(), self.next()];
        let names = core::array::from_fn(|i| (a >> (16 * i)) as u16);
        // The kernel, which has something to give, is the caller half of the time.
        let mut names: [u16; 4] = names;
        if b & 256 == 0 {
            names[0] = 0;
        }
        (b as u8, names, [self.next(), self.next(), self.next()])
    }
}

/// Makes most steps sensible: a living caller, operands of the right kind, a free name for the result.
fn sensible(model: &Model, random: &mut Random, step: Step) -> Step {
    let (mut operation, mut names, mut values) = step;
    if operation % OPERATIONS == 18 && random.next().is_multiple_of(2) {
        // There must be receivers again.
        operation = 12;
    }
    if random.next().is_multiple_of(8) {
        return step;
    }
    let mut pick = |list: Vec<u16>| match list.len() as u64 {
        0 => None,
        n => Some(list[(random.next() % n) as usize]),
    };
    let kind = operation % OPERATIONS;
    let fits = |kind_of: &Kind| match kind {
        0 | 1 => matches!(kind_of, Kind::Tile { .. }),
        2 => matches!(kind_of, Kind::Purse { .. }),
        3 | 4 | 14 => matches!(kind_of, Kind::Memory { .. }),
        8 | 9 => matches!(kind_of, Kind::Receive { .. }),
        10 => *kind_of == Kind::Service,
        12 | 13 => matches!(
            kind_of,
            Kind::Receive { .. } | Kind::Send { .. } | Kind::Memory { .. }
        ),
        _ => true,
    };
    let held = |holder: u16, fits: &dyn Fn(&Kind) -> bool| -> Vec<u16> {
        let all = model.all.iter();
        all.filter(|(id, c)| c.holder == holder && fits(model.kind(**id)))
            .filter_map(|(_, c)| c.selector)
            .collect()
    };
    let callers = model.people.keys().copied();
    let callers = callers.filter(|h| !held(*h, &fits).is_empty());
    let Some(caller) = pick(callers.collect()) else {
        return step;
    };
    let everybody: Vec<u16> = model.people.keys().copied().collect();
    let others: Vec<u16> = everybody.iter().copied().filter(|h| *h != 0).collect();
    names[0] = caller;
    if let Some(source) = pick(held(caller, &fits)) {
        names[1] = source;
    }
    if let Some(other) = pick(others) {
        names[3] = other;
    }
    // A copy goes to another activity; everything else is for the caller.
    let target = match kind {
        15 | 16 => {
            values[0] &= !1;
            names[3]
        }
        _ => caller,
    };
    let free = (0..NAMES).filter(|s| model.find(target, *s).is_none());
    if let Some(free) = pick(free.collect()) {
        names[2] = free;
    }
    match kind {
        // The buffer of a receive gate.
        12 | 13 => {
            if let Some(buffer) = pick(held(caller, &|k| matches!(k, Kind::Memory { .. }))) {
                names[2] = buffer;
                values[1] &= !1;
            }
        }
        // Revocations that leave some work to do.
        17 if !random.next().is_multiple_of(3) => return (6, names, values),
        _ => {}
    }
    (operation, names, values)
}

/// Runs `steps` random operations; compares both sides after every one, and completely after every `every`.
fn run(seed: u64, nodes: usize, steps: usize, every: usize) -> u32 {
    let (mut space, mut model) = start(nodes);
    let mut random = Random(seed);
    let mut done = [0; OPERATIONS as usize];
    for number in 0..steps {
        let step = random.step();
        let step = sensible(&model, &mut random, step);
        match apply(&mut space, &mut model, step) {
            Ok(taken) => done[usize::from(step.0 % OPERATIONS)] += u32::from(taken),
            Err(error) => panic!("seed {seed}, step {number}: {error}"),
        }
        if number % every == 0
            && let Err(error) = compare(&mut space, &model)
        {
            panic!("seed {seed}, after step {number}, {step:?}: {error}");
        }
    }
    // Each kind of operation was carried out at least once, not only refused.
    assert!(
        steps < 1000
            || done
                .iter()
                .enumerate()
                .all(|(kind, count)| kind == 18 || *count > 0),
        "{done:?}"
    );
    // In the end everything has been given back.
    for holder in 1..PLACES {
        if space.end_activity(0, HolderId(holder)).is_ok() {
            super::finish(&mut space, 0);
        }
    }
    for selector in 0..NAMES {
        if selector > SMALL_TILE || selector == 0 {
            if space.revoke(0, KERNEL, selector, false).is_ok() {
                super::finish(&mut space, 0);
            }
        } else if space.revoke(0, KERNEL, selector, true).is_ok() {
            super::finish(&mut space, 0);
        }
    }
    let (space_left, model_left) = (
        space.kernel_memory_left(KERNEL),
        start(nodes).0.kernel_memory_left(KERNEL),
    );
    assert_eq!(space_left, model_left);
    assert!(
        matches!(space.find_shared(PURSE), Object::KernelMemory { left, given, .. } if left == given)
    );
    assert!(matches!(space.find_shared(TILE), Object::Tile(tile) if tile.left == tile.given));
    assert!(
        matches!(space.find_shared(MEMORY), Object::Memory(memory) if memory.free == memory.size)
    );
    space.check().unwrap();
    done[18]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 2 } else { 96 }, ..ProptestConfig::default() })]
    #[test]
    fn the_crate_is_the_model(steps in proptest::collection::vec((any::<u8>(), any::<[u16; 4]>(), any::<[u64; 3]>()), 0..200)) {
        let (mut space, mut model) = start(400);
        for step in steps {
            let applied = apply(&mut space, &mut model, step);
            prop_assert!(applied.is_ok(), "{:?}", applied);
            prop_assert_eq!(compare(&mut space, &model), Ok(()));
        }
    }
}

#[test]
fn thousands_of_operations() {
    let (seeds, steps) = if cfg!(miri) { (1, 300) } else { (4, 10_000) };
    let mut connected = 0;
    for seed in 0..seeds {
        // Hardly any memory, and then enough of it.
        connected += run(seed, 160, steps, 16);
        connected += run(seed, 700, steps, 16);
    }
    println!("{connected} endpoints were connected again");
    assert!(cfg!(miri) || connected > 0);
}

/// Takes minutes in the release profile: `cargo test --release -p bulkhead-capabilities -- --ignored`.
#[test]
#[ignore = "millions of steps"]
fn millions_of_operations() {
    for seed in 100..110 {
        run(seed, 200, 100_000, 64);
        run(seed, 700, 100_000, 64);
    }
}

/// Other operations come between the steps of up to four revocations; the laws hold after each, and all revocations end.
#[test]
fn operations_between_the_steps_of_revocations() {
    let rounds = if cfg!(miri) { 200 } else { 60_000 };
    let (mut space, mut model) = start(500);
    let mut random = Random(7);
    let mut largest = 0;
    for number in 0..rounds {
        let (operation, names, values) = random.step();
        if operation % OPERATIONS == 17 {
            let level = (values[2] % 4) as usize;
            let holder = HolderId(names[0] % PLACES);
            let source = names[1] % NAMES;
            if holder == KERNEL && source <= SMALL_TILE {
                continue;
            }
            let _ = match values[1] % 3 {
                0 => space.end_activity(level, HolderId(names[3] % PLACES)),
                _ => space.revoke(level, holder, source, values[0] % 4 == 0),
            };
        } else if operation % OPERATIONS == 18 {
            for (_, lost) in disconnected(&space) {
                let _ = space.connect(lost);
            }
        } else {
            let step = (operation, names, values);
            let (operation, names, values) = sensible(&model, &mut random, step);
            // The model only supplies sensible operations; its answers do not count here.
            let _ = apply(&mut space, &mut model, (operation, names, values));
            if number % 50 == 0 {
                model = start(500).1;
            }
        }
        for _ in 0..values[0] % 3 {
            let level = (values[1] % 4) as usize;
            let before = space.steps();
            space.step(level);
            largest = largest.max(space.steps() - before);
        }
        if number % 8 == 0 {
            space.check().unwrap();
        }
    }
    assert!(largest <= crate::REVOKE_STEPS.into());
    for level in 0..4 {
        super::finish(&mut space, level);
    }
    space.check().unwrap();
}
