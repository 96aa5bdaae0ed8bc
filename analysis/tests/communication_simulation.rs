//! Brute force: small networks simulated event by event, every observed time compared with its bound.
//!
//! The simulator knows queues, arbitration and token buckets, not windows. Sources fill all slots at once, after random pauses.

use bulkhead_analysis::communication::{
    Arbitration, Bound, CommunicationError, Method, NetworkScenario, Outage, Pool, Regulator,
    Resource, Source, Stage, Step, Tandem, TransactionClass, TransactionId, Work, flow_bound,
    transaction_bound,
};
use bulkhead_random::Random;
use proptest::prelude::*;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

mod described;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Refill(usize),
    Issue(usize),
    Step(usize),
    Free(usize),
    Outage(usize),
}

struct Slot {
    id: TransactionId,
    issued: u64,
    /// When its tokens were there.
    released: u64,
    step: usize,
    /// For the victim's sequence: transactions left, and when it began.
    left: u64,
    began: u64,
}

struct Queue {
    /// (input, slots in order of arrival); for arrival order one queue.
    inputs: Vec<(u16, VecDeque<usize>)>,
    /// When the work it served last passes on, if the resource keeps order.
    last: u64,
    next: usize,
    busy: bool,
    outages: u32,
    /// What passed the oldest one.
    passed: u64,
}

struct Simulation<'a> {
    scenario: &'a NetworkScenario,
    random: Random,
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    sequence: u64,
    slots: Vec<Slot>,
    queues: Vec<Queue>,
    /// For each tile the current command, (source, class), its number of transactions, and the slots that wait for it to end.
    units: BTreeMap<u16, (TransactionId, u32, Vec<usize>)>,
    /// Bytes times ticks per second, and waiting slots.
    buckets: Vec<(i128, VecDeque<usize>)>,
    pauses: u64,
    /// For each class the longest wait for tokens and the longest time from then.
    worst: Vec<Vec<(u64, u64)>>,
    /// Slot 0 issues sequences of this many transactions.
    length: u64,
    worst_sequence: u64,
}

impl<'a> Simulation<'a> {
    fn new(scenario: &'a NetworkScenario, seed: u64, length: u64, alone: bool) -> Self {
        let mut slots = Vec::new();
        for (source, s) in scenario.sources.iter().enumerate() {
            for (class, c) in s.classes.iter().enumerate() {
                let count = if alone && source == 0 {
                    u32::from(class == 0)
                } else {
                    c.outstanding
                };
                for _ in 0..count {
                    slots.push(Slot {
                        id: TransactionId { source, class },
                        issued: 0,
                        released: 0,
                        step: 0,
                        left: length,
                        began: 0,
                    });
                }
            }
        }
        let queue = |r: usize| {
            let steps = scenario
                .sources
                .iter()
                .flat_map(|s| &s.classes)
                .flat_map(|c| &c.steps);
            let inputs: std::collections::BTreeSet<u16> = match scenario.resources[r].arbitration {
                Arbitration::RoundRobin => steps
                    .filter(|s| s.resource == Some(r))
                    .map(|s| s.input)
                    .collect(),
                Arbitration::ArrivalOrder | Arbitration::LimitedPassing | Arbitration::AnyOrder => {
                    [0].into()
                }
                Arbitration::Turns { .. } => unreachable!("memory_bounds simulates those"),
            };
            let inputs = inputs.into_iter().map(|i| (i, VecDeque::new())).collect();
            Queue {
                inputs,
                last: 0,
                next: 0,
                busy: false,
                outages: 0,
                passed: 0,
            }
        };
        let mut this = Self {
            scenario,
            random: Random::new(seed | 1),
            events: BinaryHeap::new(),
            sequence: 0,
            queues: (0..scenario.resources.len()).map(queue).collect(),
            units: BTreeMap::new(),
            buckets: scenario
                .sources
                .iter()
                .map(|s| {
                    (
                        s.regulator.map_or(0, |r| {
                            i128::from(r.limit) * i128::from(scenario.ticks_per_second)
                        }),
                        VecDeque::new(),
                    )
                })
                .collect(),
            pauses: seed % 4 * 40,
            worst: scenario
                .sources
                .iter()
                .map(|s| vec![(0, 0); s.classes.len()])
                .collect(),
            slots,
            length,
            worst_sequence: 0,
        };
        for slot in 0..this.slots.len() {
            let at = this.random.below(200);
            this.slots[slot].began = at;
            this.at(at, Event::Issue(slot));
        }
        for (index, source) in scenario.sources.iter().enumerate() {
            if source.regulator.is_some() {
                let at = this.random.below(50);
                this.at(at, Event::Refill(index));
            }
        }
        for (index, resource) in scenario.resources.iter().enumerate() {
            if let Some(outage) = resource.outage {
                let at = this.random.below(outage.period);
                this.at(at, Event::Outage(index));
            }
        }
        this
    }

    fn at(&mut self, at: u64, event: Event) {
        self.sequence += 1;
        self.events.push(Reverse((at, self.sequence, event)));
    }

    fn run(&mut self, end: u64) {
        while let Some(Reverse((now, _, event))) = self.events.pop() {
            if now > end {
                break;
            }
            match event {
                Event::Issue(slot) if !self.begins(slot) => {}
                Event::Issue(slot) => {
                    self.slots[slot].issued = now;
                    if self.slots[slot].left == self.length {
                        self.slots[slot].began = now;
                    }
                    let source = self.slots[slot].id.source;
                    self.buckets[source].1.push_back(slot);
                    self.release(source, now);
                }
                Event::Refill(source) => {
                    let r = self.scenario.sources[source].regulator.unwrap();
                    let full = i128::from(r.limit) * i128::from(self.scenario.ticks_per_second);
                    self.buckets[source].0 = (self.buckets[source].0
                        + i128::from(r.rate) * i128::from(r.period))
                    .min(full);
                    self.at(now + r.period, Event::Refill(source));
                    self.release(source, now);
                }
                Event::Step(slot) => self.step(slot, now),
                Event::Free(resource) => {
                    self.queues[resource].busy = false;
                    self.serve(resource, now);
                }
                Event::Outage(resource) => {
                    self.queues[resource].outages += 1;
                    let outage = self.scenario.resources[resource].outage.unwrap();
                    self.at(now + outage.period, Event::Outage(resource));
                    self.serve(resource, now);
                }
            }
        }
    }

    /// A unit executes one command at a time: transactions of another one wait outside.
    fn begins(&mut self, slot: usize) -> bool {
        let id = self.slots[slot].id;
        let tile = self.scenario.sources[id.source].tile;
        if self.class(slot).pool != Some(Pool::Command) {
            return true;
        }
        let (command, count, waiting) = self.units.entry(tile).or_insert((id, 0, Vec::new()));
        if *count == 0 {
            *command = id;
        }
        if *command != id {
            waiting.push(slot);
            return false;
        }
        *count += 1;
        true
    }

    /// A transaction is over; if it was its command's last, all that wait try to be next, in any order.
    fn ends(&mut self, slot: usize, now: u64) {
        let tile = self.scenario.sources[self.slots[slot].id.source].tile;
        if self.class(slot).pool != Some(Pool::Command) {
            return;
        }
        let Some((_, count, waiting)) = self.units.get_mut(&tile) else {
            return;
        };
        *count -= 1;
        if *count == 0 {
            let mut waiting = std::mem::take(waiting);
            while !waiting.is_empty() {
                let next = self.random.below(waiting.len() as u64);
                self.at(now, Event::Issue(waiting.swap_remove(next as usize)));
            }
        }
    }

    fn release(&mut self, source: usize, now: u64) {
        while let Some(&slot) = self.buckets[source].1.front() {
            if let Some(r) = self.scenario.sources[source].regulator {
                let scale = i128::from(self.scenario.ticks_per_second);
                let charge = i128::from(self.class(slot).charge) * scale;
                let amount = &mut self.buckets[source].0;
                if *amount < charge && *amount < i128::from(r.limit) * scale {
                    return;
                }
                *amount -= charge;
            }
            self.buckets[source].1.pop_front();
            self.slots[slot].released = now;
            self.slots[slot].step = 0;
            self.step(slot, now);
        }
    }

    fn class(&self, slot: usize) -> &'a TransactionClass {
        let id = self.slots[slot].id;
        &self.scenario.sources[id.source].classes[id.class]
    }

    fn step(&mut self, slot: usize, now: u64) {
        let class = self.class(slot);
        let Some(step) = class.steps.get(self.slots[slot].step) else {
            let id = self.slots[slot].id;
            let Slot {
                issued, released, ..
            } = self.slots[slot];
            let worst = &mut self.worst[id.source][id.class];
            *worst = (worst.0.max(released - issued), worst.1.max(now - released));
            self.slots[slot].left -= 1;
            self.ends(slot, now);
            let mut pause = 0;
            if self.slots[slot].left == 0 {
                if slot == 0 {
                    self.worst_sequence = self.worst_sequence.max(now - self.slots[0].began);
                }
                self.slots[slot].left = self.length;
                pause = self.random.below(self.pauses + 1) * self.random.below(5);
            }
            self.at(now + pause, Event::Issue(slot));
            return;
        };
        match step.resource {
            None => {
                self.slots[slot].step += 1;
                self.at(now + step.latency, Event::Step(slot));
            }
            Some(resource) => {
                let input = match self.scenario.resources[resource].arbitration {
                    Arbitration::RoundRobin => step.input,
                    Arbitration::ArrivalOrder
                    | Arbitration::LimitedPassing
                    | Arbitration::Turns { .. }
                    | Arbitration::AnyOrder => 0,
                };
                let queue = &mut self.queues[resource];
                if let Some((_, waiting)) = queue.inputs.iter_mut().find(|(i, _)| *i == input) {
                    waiting.push_back(slot);
                }
                self.serve(resource, now);
            }
        }
    }

    fn serve(&mut self, resource: usize, now: u64) {
        let queue = &mut self.queues[resource];
        if queue.busy {
            return;
        }
        if queue.outages > 0 {
            queue.outages -= 1;
            queue.busy = true;
            let duration = self.scenario.resources[resource].outage.unwrap().duration;
            self.at(now + duration, Event::Free(resource));
            return;
        }
        let inputs = queue.inputs.len();
        let Some(turn) = (0..inputs)
            .map(|k| (queue.next + k) % inputs)
            .find(|&i| !queue.inputs[i].1.is_empty())
        else {
            return;
        };
        let head = queue.inputs[turn].1[0];
        let passed = queue.passed;
        let step = |slot: usize| self.class(slot).steps[self.slots[slot].step];
        let may_pass = |&which: &usize| {
            let slot = self.queues[resource].inputs[turn].1[which];
            passed + step(slot).occupancy <= step(head).passed
        };
        // The youngest that may pass the oldest.
        let passing = (1..self.queues[resource].inputs[turn].1.len())
            .rev()
            .find(may_pass);
        let queue = &mut self.queues[resource];
        let waiting = &mut queue.inputs[turn].1;
        // Any order: the youngest, or any.
        let slot = match self.scenario.resources[resource].arbitration {
            Arbitration::AnyOrder if self.random.chance(50) => waiting.pop_back(),
            Arbitration::AnyOrder => {
                let which = self.random.below(waiting.len() as u64) as usize;
                waiting.remove(which)
            }
            Arbitration::LimitedPassing if passing.is_some() && self.random.chance(90) => {
                passing.and_then(|which| waiting.remove(which))
            }
            _ => waiting.pop_front(),
        }
        .unwrap();
        let passes = slot != head;
        queue.next = (turn + 1) % inputs;
        queue.busy = true;
        let step = self.class(slot).steps[self.slots[slot].step];
        let queue = &mut self.queues[resource];
        queue.passed = if passes { passed + step.occupancy } else { 0 };
        let occupancy = if self.random.chance(80) {
            step.occupancy
        } else {
            1 + self.random.below(step.occupancy)
        };
        self.slots[slot].step += 1;
        self.at(now + occupancy, Event::Free(resource));
        let mut goes_on = now + step.latency;
        if self.scenario.tandems.iter().any(|t| t.first == resource) {
            let last = &mut self.queues[resource].last;
            goes_on = goes_on.max(*last);
            *last = goes_on;
        }
        self.at(goes_on, Event::Step(slot));
    }
}

/// `classes`: for each source its classes as (charge, slots, first resource, resources, occupancy).
type Shape = Vec<(Option<(u64, u64)>, Vec<(u64, u32, usize, usize, u64)>)>;

fn scenario(resources: &[(bool, bool)], shape: &Shape) -> NetworkScenario {
    let last = resources.len();
    NetworkScenario {
        ticks_per_second: 1000,
        tandems: Vec::new(),
        resources: resources
            .iter()
            .enumerate()
            .map(|(i, &(robin, outage))| Resource {
                name: format!("r{i}"),
                arbitration: if robin {
                    Arbitration::RoundRobin
                } else {
                    Arbitration::ArrivalOrder
                },
                backlog: 0,
                outage: outage.then_some(Outage {
                    period: 500,
                    jitter: 40,
                    duration: 30,
                }),
            })
            .collect(),
        sources: shape
            .iter()
            .enumerate()
            .map(|(s, (bucket, classes))| Source {
                name: format!("s{s}"),
                tile: s as u16,
                regulator: bucket.map(|(rate, limit)| Regulator {
                    rate,
                    limit,
                    period: 100,
                    credit: 0,
                    line: u32::MAX,
                }),
                classes: classes
                    .iter()
                    .map(|&(charge, outstanding, first, count, occupancy)| {
                        let path = first..(first + count).min(last);
                        let mut steps: Vec<Step> = std::iter::once(Step::fixed(5))
                            .chain(path.map(|r| Step {
                                resource: Some(r),
                                // Sources 0 and 1 share an input; where the path began earlier, another one.
                                input: (s / 2) as u16 + if r > first { 10 } else { 0 },
                                occupancy,
                                passed: 0,
                                queued: 0,
                                tail: 0,
                                elsewhere: false,
                                latency: if r % 2 == 0 { occupancy } else { 3 },
                            }))
                            .collect();
                        for k in 0..steps.len() {
                            let rest: u64 = steps[k..].iter().map(|s| s.latency).sum();
                            steps[k].tail = steps[k].occupancy.saturating_sub(rest);
                        }
                        TransactionClass {
                            name: "c".into(),
                            charge,
                            charge_most: charge,
                            pool: None,
                            outstanding,
                            demand: None,
                            least_round_trip: steps.iter().map(|s| s.latency).sum(),
                            steps,
                        }
                    })
                    .collect(),
            })
            .collect(),
    }
}

fn shapes(resources: usize) -> impl Strategy<Value = Shape> {
    let class = (1u64..64, 1u32..4, 0..resources, 1..=resources, 1u64..30);
    let bucket = prop::option::weighted(0.6, (20u64..400, 16u64..256));
    prop::collection::vec((bucket, prop::collection::vec(class, 1..3)), 1..5)
}

fn networks() -> impl Strategy<Value = (Vec<(bool, bool)>, Shape)> {
    prop::collection::vec((any::<bool>(), prop::bool::weighted(0.3)), 1..4).prop_flat_map(|r| {
        let n = r.len();
        (Just(r), shapes(n))
    })
}

/// The maximum time of `length` consecutive transactions of the first class of source 0, and its bound.
fn sequences(scenario: &NetworkScenario, seed: u64, length: u64) -> (u64, Bound) {
    let mut simulation = Simulation::new(scenario, seed, length, true);
    simulation.run(60_000);
    let id = TransactionId {
        source: 0,
        class: 0,
    };
    let work = Work {
        stages: vec![Stage {
            name: "work".into(),
            compute: 0,
            transactions: vec![(id, length)],
            measured: false,
        }],
        covers_sources: true,
    };
    let bound = flow_bound(scenario, &work).unwrap().bound;
    (simulation.worst_sequence, bound)
}

/// A transaction that is over for its source still occupies the resource when the next sequence begins.
#[test]
fn an_earlier_sequence_may_still_be_served() {
    let scenario = scenario(&[(false, false); 2], &vec![(None, vec![(1, 1, 1, 1, 17)])]);
    let (seen, bound) = sequences(&scenario, 0, 2);
    assert_eq!((seen, bound.uncontended), (34, 16));
    assert!((34..=47).contains(&bound.path), "{bound:?}");
}

fn keeps_its_bounds(scenario: &NetworkScenario, seed: u64) -> Result<(), TestCaseError> {
    let mut simulation = Simulation::new(scenario, seed, 1, false);
    simulation.run(40_000);
    within(&simulation)
}

fn within(simulation: &Simulation<'_>) -> Result<(), TestCaseError> {
    let scenario = simulation.scenario;
    for (source, s) in scenario.sources.iter().enumerate() {
        for class in 0..s.classes.len() {
            let id = TransactionId { source, class };
            let bound = match transaction_bound(scenario, id) {
                // Nothing bounds how many overtake.
                Err(CommunicationError::Overtaken(_) | CommunicationError::TooLarge) => continue,
                bound => bound.unwrap(),
            };
            let (tokens, seen) = simulation.worst[source][class];
            let words = format!(
                "source {source} class {class}: waited {tokens}, took {seen}, bound {bound:?}"
            );
            prop_assert!(tokens <= bound.own_bucket && seen <= bound.path, "{words}");
            if let Some(lumped) = bound.lumped {
                prop_assert!(bound.path <= lumped);
            }
        }
    }
    Ok(())
}

/// Resources in a row of which two are a tandem, like a memory and its link; the second is often the slower one: (networks, first of the tandem).
fn tandems() -> impl Strategy<Value = (NetworkScenario, usize)> {
    let shape = (2usize..5).prop_flat_map(|n| {
        let resources = prop::collection::vec((any::<bool>(), prop::bool::weighted(0.2)), n);
        (resources, shapes(n), 0..n - 1)
    });
    let services = prop::collection::vec(1u64..30, 16);
    (shape, services).prop_map(|((resources, shape, first), services)| {
        let mut scenario = scenario(&resources, &shape);
        scenario.resources[first].arbitration = Arbitration::ArrivalOrder;
        scenario.resources[first + 1].outage = None;
        scenario.tandems.push(Tandem {
            first,
            behind: vec![first + 1],
        });
        let classes = scenario.sources.iter_mut().flat_map(|s| &mut s.classes);
        for (class, service) in classes.zip(services) {
            let at = |steps: &[Step], r| steps.iter().position(|s| s.resource == Some(r));
            let Some(behind) = at(&class.steps, first + 1) else {
                continue;
            };
            class.steps[behind].input = 0;
            if at(&class.steps, first).is_none() {
                class.steps.remove(behind);
                continue;
            }
            // The two services differ, either way.
            class.steps[behind].occupancy = service;
            class.steps[behind].latency = service.min(class.steps[behind].latency);
            for k in 0..class.steps.len() {
                let rest: u64 = class.steps[k..].iter().map(|s| s.latency).sum();
                class.steps[k].tail = class.steps[k].occupancy.saturating_sub(rest);
            }
            class.least_round_trip = class.steps.iter().map(|s| s.latency).sum();
        }
        (scenario, first)
    })
}

/// A rival's eight transactions at a memory (10) and its link (4), by hand: they have left the link before the victim, which waits 80, not 80 + 32.
#[test]
fn a_tandem_by_hand() {
    let shape = vec![
        (None, vec![(16, 1, 0, 2, 10)]),
        (None, vec![(64, 8, 0, 2, 10)]),
    ];
    let mut scenario = scenario(&[(false, false), (true, false)], &shape);
    let serve = |scenario: &mut NetworkScenario, service| {
        for class in scenario.sources.iter_mut().flat_map(|s| &mut s.classes) {
            let step = &mut class.steps[2];
            (step.input, step.occupancy, step.latency, step.tail) = (0, service, service, 0);
        }
    };
    serve(&mut scenario, 4);
    let (source, class) = (0, 0);
    let id = TransactionId { source, class };
    let apart = transaction_bound(&scenario, id).unwrap();
    assert_eq!((apart.uncontended, apart.path), (19, 19 + 80 + 32));
    scenario.tandems.push(Tandem {
        first: 0,
        behind: vec![1],
    });
    let together = transaction_bound(&scenario, id).unwrap();
    assert_eq!((together.path, together.method), (19 + 80, Method::Tandem));
    // The link is the slower one: seven leave it one after the other once the first has passed the memory.
    serve(&mut scenario, 30);
    let together = transaction_bound(&scenario, id).unwrap();
    assert_eq!(together.path, 5 + 10 + 30 + 8 * 30);
    // If a flow reaches the link without passing the memory, nothing is joined.
    let mut past = scenario.sources[1].classes[0].clone();
    past.steps.remove(1);
    scenario.sources[1].classes.push(past);
    let mixed = transaction_bound(&scenario, id).unwrap();
    assert_ne!(mixed.method, Method::Tandem);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// A memory that answers in order, and its link.
    #[test]
    fn no_observation_through_a_tandem_above_its_bound((scenario, first) in tandems(), seed in any::<u64>(), length in 2u64..30, commands in any::<bool>()) {
        let mut scenario = scenario;
        if commands {
            for class in scenario.sources.iter_mut().filter_map(|source| source.classes.first_mut()) {
                class.pool = Some(Pool::Command);
            }
        }
        keeps_its_bounds(&scenario, seed)?;
        let (seen, bound) = sequences(&scenario, seed, length);
        prop_assert!(seen <= bound.whole(), "seen {seen}, bound {bound:?}, tandem at {first}");
        let mut apart = scenario.clone();
        apart.tandems.clear();
        prop_assert!(bound.whole() <= sequences(&apart, seed, length).1.whole());
    }

    #[test]
    fn no_observation_above_its_bound((resources, shape) in networks(), seed in any::<u64>()) {
        keeps_its_bounds(&scenario(&resources, &shape), seed)?;
    }

    /// Some resource serves whom it likes.
    #[test]
    fn in_any_order_no_observation_above_its_bound((resources, shape) in networks(), seed in any::<u64>(), which in any::<prop::sample::Index>()) {
        let mut scenario = scenario(&resources, &shape);
        let which = which.index(scenario.resources.len());
        scenario.resources[which].arbitration = Arbitration::AnyOrder;
        keeps_its_bounds(&scenario, seed)?;
    }

    /// Younger transactions may pass the oldest one of some resource.
    #[test]
    fn with_limited_passing_no_observation_above_its_bound(
        (resources, shape) in networks(), seed in any::<u64>(), which in any::<prop::sample::Index>(), passed in 0u64..100
    ) {
        let mut scenario = scenario(&resources, &shape);
        let which = which.index(scenario.resources.len());
        scenario.resources[which].arbitration = Arbitration::LimitedPassing;
        let steps = scenario.sources.iter_mut().flat_map(|s| &mut s.classes).flat_map(|c| &mut c.steps);
        for (k, step) in steps.filter(|step| step.resource == Some(which)).enumerate() {
            step.passed = passed * (k as u64 % 3);
        }
        keeps_its_bounds(&scenario, seed)?;
    }

    /// Transactions of units that execute one command at a time, two sources at each.
    #[test]
    fn no_command_above_its_bound((resources, shape) in networks(), seed in any::<u64>(), others in any::<bool>()) {
        let mut scenario = scenario(&resources, &shape);
        for source in &mut scenario.sources {
            source.tile /= 2;
            // The first classes are commands; the second ones are commands or accesses of harts.
            for class in source.classes.iter_mut().take(if others { 1 } else { 2 }) {
                class.pool = Some(Pool::Command);
            }
        }
        keeps_its_bounds(&scenario, seed)?;
    }

    #[test]
    fn no_sequence_above_its_bound((resources, shape) in networks(), seed in any::<u64>(), length in 2u64..30) {
        let scenario = scenario(&resources, &shape);
        let (seen, bound) = sequences(&scenario, seed, length);
        prop_assert!(seen <= bound.whole(), "seen {seen}, bound {bound:?}");
    }

    /// The same beside units whose commands leave when they take their tokens.
    #[test]
    fn no_sequence_beside_commands_above_its_bound((resources, shape) in networks(), seed in any::<u64>(), length in 2u64..30) {
        let mut scenario = scenario(&resources, &shape);
        for class in scenario.sources.iter_mut().skip(1).filter_map(|source| source.classes.first_mut()) {
            class.pool = Some(Pool::Command);
        }
        let (seen, bound) = sequences(&scenario, seed, length);
        prop_assert!(seen <= bound.whole(), "seen {seen}, bound {bound:?}");
    }

    #[test]
    fn more_traffic_never_lowers_a_bound((resources, shape) in networks(), which in any::<prop::sample::Index>()) {
        let base = scenario(&resources, &shape);
        let id = TransactionId { source: 0, class: 0 };
        let before = transaction_bound(&base, id).unwrap().whole();
        let index = which.index(base.sources.len());
        let mut more = base.clone();
        more.sources.push(base.sources[index].clone());
        prop_assert!(transaction_bound(&more, id).unwrap().whole() >= before);
        let mut faster = base.clone();
        if index != 0 && let Some(r) = &mut faster.sources[index].regulator {
            r.rate *= 2;
            prop_assert!(transaction_bound(&faster, id).unwrap().whole() >= before);
            faster.sources[index].regulator = None;
            prop_assert!(transaction_bound(&faster, id).unwrap().whole() >= before);
        }
        let mut slots = base.clone();
        slots.sources[index].classes[0].outstanding += 1;
        prop_assert!(transaction_bound(&slots, id).unwrap().whole() >= before);
    }
}

/// Two sources, one link in round robin, worked by hand. The victim alone in its input: at most one packet of the other
/// input goes first, however many wait: 20 ticks. Then 5 + 8 of its own: 33.
#[test]
fn one_link_by_hand() {
    let shape = vec![
        (None, vec![(16, 1, 0, 1, 8)]),
        (None, vec![]),
        (None, vec![(64, 3, 0, 1, 20)]),
    ];
    let bound = transaction_bound(
        &scenario(&[(true, false)], &shape),
        TransactionId {
            source: 0,
            class: 0,
        },
    )
    .unwrap();
    assert_eq!((bound.uncontended, bound.path), (13, 33));
    // In order of arrival all three go first: 60 ticks.
    let bound = transaction_bound(
        &scenario(&[(false, false)], &shape),
        TransactionId {
            source: 0,
            class: 0,
        },
    )
    .unwrap();
    assert_eq!(bound.path, 73);
}

/// Numbers at the limits of their types.
fn edge() -> impl Strategy<Value = u64> {
    prop_oneof![
        Just(0),
        Just(1),
        Just(u64::MAX),
        Just(u64::MAX - 1),
        0u64..1000,
        any::<u64>()
    ]
}

proptest! {
    /// Whatever a scenario contains: an answer or an error, in finite time, without a panic.
    #[test]
    fn no_scenario_panics(n in prop::collection::vec(edge(), 24), slots in prop::collection::vec(any::<u32>(), 3), flags: [bool; 4]) {
        let resource = |i: usize| Resource {
            name: format!("r{i}"),
            arbitration: match (flags[i], n[5] % 4) {
                (true, _) => Arbitration::RoundRobin,
                (_, 0) => Arbitration::AnyOrder,
                (_, 1) => Arbitration::LimitedPassing,
                (_, 2) => Arbitration::Turns { least: n[4] },
                _ => Arbitration::ArrivalOrder,
            },
            backlog: 0, outage: flags[i + 2].then_some(Outage { period: n[3 * i], jitter: n[3 * i + 1], duration: n[3 * i + 2] }),
        };
        let class = |i: usize| TransactionClass {
            name: "c".into(),
            charge: n[6 + i],
            charge_most: n[6 + i],
            pool: None,
            outstanding: slots[i],
            least_round_trip: n[9 + i],
            demand: None,
            steps: vec![
                Step { resource: Some(0), input: i as u16, occupancy: n[12 + i], passed: n[18 + i], queued: n[15 + i], tail: n[15 + i], elsewhere: false, latency: n[18 + i] },
                Step { resource: Some(1 + i / 2 * 6), input: 0, occupancy: n[12 + i], passed: 0, queued: 0, tail: 0, elsewhere: false, latency: n[18 + i] },
            ],
        };
        let scenario = NetworkScenario {
            ticks_per_second: n[21],
            resources: vec![resource(0), resource(1)],
            tandems: if flags[2] { vec![Tandem { first: 0, behind: vec![1] }] } else { Vec::new() },
            sources: (0..3).map(|i| Source {
                name: "s".into(),
                tile: i as u16,
                regulator: (i == 1).then_some(Regulator { rate: n[22], limit: n[23], period: n[20], credit: 0, line: slots[2] }),
                classes: vec![class(i)],
            }).collect(),
        };
        for source in 0..4 {
            let id = TransactionId { source, class: 0 };
            let _ = transaction_bound(&scenario, id);
            let stage = Stage { name: "w".into(), compute: n[0], transactions: vec![(id, n[1])], measured: flags[1] };
            let _ = flow_bound(&scenario, &Work { stages: vec![stage], covers_sources: flags[0] });
        }
    }
}
