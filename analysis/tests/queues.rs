//! Queues with several writers, against a simulation independent of the analysis: no queue and no message exceeds its bound, and no term of the bound can be left out.
//!
//! Jobs are released once in each period and end within the responses that the analysis gives; where in between they write and read, and how long a message is under
//! way, a seed decides, mostly one of the extremes. Time advances in nanoseconds.

use bulkhead_analysis::plan::{Kind, plan};
use bulkhead_model::tasks::{Channel, ChannelKind, Policy, Task, TaskFlow, TaskSystem};
use bulkhead_model::units::{Size, Time};
use proptest::prelude::*;
use std::collections::VecDeque;

/// Numbers from a seed: proptest draws the seed, so that a failing case can be reproduced.
struct Draw(u64);

impl Draw {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit.max(1)
    }

    /// 0 or the limit, and sometimes a number between.
    fn extreme(&mut self, limit: u64) -> u64 {
        match self.below(5) {
            0 | 1 => 0,
            2 | 3 => limit,
            _ => self.below(limit + 1),
        }
    }
}

fn nanoseconds(time: Time) -> u64 {
    time.0 / 1000
}

/// A reader on core 0 and two to four writers on others, each beside a task that blocks it, so that responses differ from costs.
fn generate(draw: &mut Draw) -> TaskSystem {
    let writers = 2 + draw.below(3) as usize;
    let reader = 8 + draw.below(5);
    // Together at most as fast as the reader.
    let periods = (0..writers).map(|_| reader * writers as u64 + draw.below(3) * reader);
    let all: Vec<u64> = std::iter::once(reader).chain(periods).collect();
    let mut tasks = Vec::new();
    for (index, period) in all.iter().enumerate() {
        let other = draw.below(*period - 3);
        for (name, cost, period, priority) in [
            (format!("t{index}"), 1, *period, 1),
            (format!("o{index}"), 1 + other, 1000, 2),
        ] {
            let mut task = Task::new(name, Time(1000 * cost), Time(1000 * period));
            (task.core, task.priority) = (Some(index as u32), Some(priority));
            tasks.push(task);
        }
    }
    let mut system = TaskSystem::new("drawn", all.len() as u32, Policy::OneShot, tasks);
    system.periodic = true;
    for writer in 1..=writers {
        system.channels.push(Channel {
            name: format!("c{writer}"),
            from: 2 * writer,
            to: 0,
            size: Size(8),
            kind: ChannelKind::Queue,
            slots: 100,
            notify: false,
            parallel: None,
            joins: (writer > 1).then_some(0),
            transfer: Time(1000 * draw.below(reader)),
            unbounded: None,
            deadline: None,
        });
        system.flows.push(TaskFlow {
            name: format!("f{writer}"),
            from: 2 * writer,
            to: 0,
            deadline: None,
        });
    }
    system
}

/// What the analysis says: of each task its response, of the queue its items, and of each flow its time.
struct Said {
    responses: Vec<u64>,
    items: u64,
    flows: Vec<u64>,
}

fn said(system: &TaskSystem) -> Said {
    let plan = plan(system).expect("it has bounds");
    let of = |kind: Kind, name: &str| {
        let mut all = plan.constraints.iter();
        let found = all.find(|one| one.kind == kind && one.subject == name);
        found.and_then(|one| one.bound).expect("a bound")
    };
    let queues = plan
        .constraints
        .iter()
        .filter(|one| one.kind == Kind::Queue);
    assert_eq!(queues.count(), 1);
    Said {
        responses: system
            .tasks
            .iter()
            .map(|one| of(Kind::Response, &one.name))
            .collect(),
        items: of(Kind::Queue, "c1"),
        flows: system
            .flows
            .iter()
            .map(|one| of(Kind::Flow, &one.name))
            .collect(),
    }
}

/// The most items that waited, and the longest time of each writer's items.
fn simulate(system: &TaskSystem, said: &Said, draw: &mut Draw) -> (u64, Vec<u64>) {
    const END: u64 = 3000;
    let period = |task: usize| nanoseconds(system.tasks[task].period);
    // Each write: when it begins, when its item can be taken, its writer and the release of its job.
    let mut writes = Vec::new();
    for (writer, channel) in system.channels.iter().enumerate() {
        let mut release = draw.below(period(channel.from));
        let mut before = 0;
        while release < END {
            let written = (release + draw.extreme(said.responses[channel.from])).max(before);
            let seen = written + draw.extreme(nanoseconds(channel.transfer));
            before = seen;
            writes.push((written, seen, writer, release));
            release += period(channel.from);
        }
    }
    let mut order: VecDeque<_> = {
        writes.sort_by_key(|one| one.1);
        writes.iter().copied().collect()
    };
    let (mut most, mut longest) = (0, vec![0; system.channels.len()]);
    let mut taken = 0;
    let mut release = draw.below(period(0));
    let mut last = 0;
    while release < END {
        let reads = (release + draw.extreme(said.responses[0])).max(last);
        last = reads;
        // The item counts until it is taken, from the moment at which its writer began to write.
        let begun = writes.iter().filter(|one| one.0 <= reads).count() as u64;
        most = most.max(begun - taken);
        if order.front().is_some_and(|one| one.1 < reads) {
            let (_, _, writer, from) = order.pop_front().expect("there is one");
            longest[writer] = longest[writer].max(reads - from);
            taken += 1;
        }
        release += period(0);
    }
    (most, longest)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn queues_of_several_writers_keep_their_bounds(seed: u64) {
        let mut draw = Draw(seed);
        let system = generate(&mut draw);
        let said = said(&system);
        for _ in 0..4 {
            let (most, longest) = simulate(&system, &said, &mut draw);
            prop_assert!(most <= said.items, "{most} of {}", said.items);
            for (seen, bound) in longest.iter().zip(&said.flows) {
                prop_assert!(seen <= bound, "{seen} of {bound}");
            }
        }
    }
}

/// For each term of the bound but the reader's response, some execution has more items than the bound without it.
#[test]
fn no_term_of_the_bound_can_be_left_out() {
    let mut needed = [0; 4];
    for seed in 0..4000 {
        let mut draw = Draw(seed);
        let system = generate(&mut draw);
        let said = said(&system);
        let period = |task: usize| nanoseconds(system.tasks[task].period) as f64;
        let response = |task: usize| said.responses[task] as f64;
        let reader = response(0) / period(0);
        let of_writers =
            |part: &dyn Fn(&Channel) -> f64| system.channels.iter().map(part).sum::<f64>();
        let late = of_writers(&|one| response(one.from) / period(one.from));
        let under_way = of_writers(&|one| nanoseconds(one.transfer) as f64 / period(one.from));
        let writers = system.channels.len() as f64;
        let whole = 1.0 + reader + writers + late + under_way;
        // The reader's job, an item of the second writer, the writers' responses, the transfers.
        let terms = [1.0, 1.0, late, under_way];
        let (most, _) = simulate(&system, &said, &mut draw);
        for (count, term) in needed.iter_mut().zip(terms) {
            *count += usize::from(most as f64 > (whole - term).floor());
        }
    }
    println!("executions that need each term: {needed:?}");
    assert!(needed.iter().all(|count| *count > 0), "{needed:?}");
}

/// A reader and two writers on cores of their own, each with its period and its cost.
fn by_hand(all: [(u64, u64); 3]) -> TaskSystem {
    let task = |(core, (period, cost)): (usize, (u64, u64))| {
        let mut task = Task::new(format!("t{core}"), Time(1000 * cost), Time(1000 * period));
        (task.core, task.priority) = (Some(core as u32), Some(1));
        task
    };
    let tasks = all.into_iter().enumerate().map(task).collect();
    let mut system = TaskSystem::new("s", 3, Policy::OneShot, tasks);
    system.periodic = true;
    for (name, from, joins) in [("q", 1, None), ("j", 2, Some(0))] {
        system.channels.push(Channel {
            name: name.into(),
            from,
            to: 0,
            size: Size(8),
            kind: ChannelKind::Queue,
            slots: 9,
            notify: false,
            parallel: None,
            joins,
            transfer: Time(0),
            unbounded: None,
            deadline: None,
        });
    }
    system
}

/// By hand: the reader looks at 0 and, late, at 19. Both writers write late at 0, just behind it, and early at 18. So four items wait, and without the reader's response of
/// 9 in 10 the bound would be 1 + 2 (1 + 2 / 20) = 3.2.
#[test]
fn the_readers_response_cannot_be_left_out() {
    let system = by_hand([(10, 9), (20, 2), (20, 2)]);
    let plan = plan(&system).expect("it has bounds");
    let queue = plan.constraints.iter().find(|one| one.kind == Kind::Queue);
    assert_eq!(queue.and_then(|one| one.bound), Some(4));
}

/// By hand: writers of 6 and 9 and a reader of 4 have 4 / 6 + 4 / 9 = 10 / 9 jobs of writers in a job of the reader; with 12 instead of 9 it is exactly 1.
#[test]
fn writers_that_are_together_too_fast_have_no_bound() {
    let of = |second: u64| {
        let system = by_hand([(4, 1), (6, 1), (second, 1)]);
        let plan = plan(&system).expect("it is judged");
        let queue = plan.constraints.iter().find(|one| one.kind == Kind::Queue);
        let queue = queue.expect("there is one").clone();
        (queue.bound, queue.holds(), queue.note)
    };
    let note = "the reader is slower than its writers together";
    assert_eq!(of(9), (None, false, Some(note.to_owned())));
    // 1 + 1 / 4 + (1 + 1 / 6) + (1 + 1 / 12) = 3.5.
    assert_eq!(of(12), (Some(3), true, None));
}
