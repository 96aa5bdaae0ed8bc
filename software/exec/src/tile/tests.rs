//! Both policies against members whose behaviour is random.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

type Run = (usize, u64, u64);

/// Runs the policy for members that are always ready. Returns which member ran when.
fn simulate(policy: &mut Scheduler<8>, end: u64) -> Vec<Run> {
    let mut now = 0;
    let mut log = Vec::new();
    while now < end {
        match policy.decide(now) {
            Decision::Run { member: id, until } => {
                let until = until.unwrap_or(end).min(end);
                assert!(until > now, "the policy must let time pass");
                log.push((id, now, until));
                policy.charge(id, Cost::Run, now, until);
                now = until;
            }
            Decision::Idle { until } => now = until.unwrap_or(end).max(now + 1),
        }
    }
    log
}

fn budget(amount: u64, period: u64) -> Budget {
    Budget { amount, period }
}

/// Nanoseconds of a unit in these tests: far above the least run.
const UNIT: u64 = 100_000;

#[test]
fn one_member_is_never_interrupted() {
    for policy in [Policy::Throughput, Policy::Realtime] {
        let mut policy = Scheduler::<8>::new(policy, 10);
        assert_eq!(policy.decide(5), Decision::Idle { until: None });
        assert!(policy.add(7));
        assert!(!policy.add(7));
        assert_eq!(policy.decide(5), Decision::Idle { until: None });
        policy.set_ready(7, true, 5);
        assert_eq!(
            policy.decide(5),
            Decision::Run {
                member: 7,
                until: None
            }
        );
    }
}

#[test]
fn slices_alternate() {
    let mut policy = Scheduler::<8>::new(Policy::Throughput, 10);
    for id in [1, 2, 3] {
        policy.add(id);
        policy.set_ready(id, true, 0);
    }
    let log = simulate(&mut policy, 50);
    let expected = [
        (1, 0, 10),
        (2, 10, 20),
        (3, 20, 30),
        (1, 30, 40),
        (2, 40, 50),
    ];
    assert_eq!(log, expected);
    policy.remove(3);
    policy.set_ready(2, false, 50);
    assert_eq!(
        policy.decide(50),
        Decision::Run {
            member: 1,
            until: None
        }
    );
}

#[test]
fn a_budget_ends_a_run_and_comes_back() {
    let mut policy = Scheduler::<8>::new(Policy::Throughput, 100 * UNIT);
    policy.add(1);
    policy.set_ready(1, true, 0);
    assert!(!policy.set_budget(1, budget(5, 4), 0, 0));
    assert!(policy.set_budget(1, budget(4 * UNIT, 20 * UNIT), 0, 0));
    let runs = [(1, 0, 4), (1, 20, 24), (1, 40, 44)];
    let runs = runs.map(|(id, a, b)| (id, a * UNIT, b * UNIT));
    assert_eq!(simulate(&mut policy, 60 * UNIT), runs);
}

#[test]
fn the_most_urgent_runs_and_is_stopped_by_its_budget() {
    let mut policy = Scheduler::<8>::new(Policy::Realtime, 100 * UNIT);
    for (id, priority) in [(1, 1), (2, 9)] {
        policy.add(id);
        policy.set_budget(id, budget(4 * UNIT, 10 * UNIT), priority, 0);
        policy.set_ready(id, true, 0);
    }
    policy.add(3);
    policy.set_ready(3, true, 0);
    let runs = [
        (2, 0, 4),
        (1, 4, 8),
        (3, 8, 10),
        (2, 10, 14),
        (1, 14, 18),
        (3, 18, 20),
    ];
    let runs = runs.map(|(id, a, b)| (id, a * UNIT, b * UNIT));
    assert_eq!(simulate(&mut policy, 20 * UNIT), runs);
    assert_eq!([1, 2, 3].map(|id| policy.urgency(id)), [1, 9, 0]);
}

#[test]
fn the_queue_is_bounded() {
    let mut policy = Scheduler::<2>::new(Policy::Realtime, 1);
    assert!(policy.add(1) && policy.add(0) && !policy.add(1) && !policy.add(2));
    policy.remove(1);
    assert!(policy.add(1) && !policy.add(0));
}

/// A member of a random tile.
#[derive(Clone, Debug)]
struct Random {
    budget: Option<Budget>,
    priority: u8,
    /// Works for the first time, then pauses for the second, again and again.
    pattern: Vec<(u64, u64)>,
}

fn member() -> impl Strategy<Value = Random> {
    let budget = proptest::option::of((1u64..20, 0u64..60));
    let pattern = proptest::collection::vec((1u64..30, 0u64..40), 1..6);
    (budget, 0u8..4, pattern).prop_map(|(shares, priority, pattern)| Random {
        budget: shares.map(|(amount, spare)| budget_of(amount, spare)),
        priority,
        pattern: pattern
            .into_iter()
            .map(|(a, b)| (a * UNIT / 7, b * UNIT / 7))
            .collect(),
    })
}

fn budget_of(amount: u64, spare: u64) -> Budget {
    budget(amount * UNIT, (amount + spare) * UNIT)
}

/// The record of a simulation.
struct Seen {
    runs: Vec<Run>,
    /// The ready members whenever one ran: (moment, the running one, those ready with a budget).
    ready: Vec<(u64, usize, Vec<usize>)>,
}

/// Members follow their patterns; at the end of every run the caller asks `late` too late.
fn behave(policy: Policy, members: &[Random], slice: u64, late: u64, end: u64) -> Seen {
    let mut scheduler = Scheduler::<8>::new(policy, slice);
    // For each: step, work left of it, or when it ends its pause.
    let mut states: Vec<(usize, u64, Option<u64>)> = Vec::new();
    for (id, member) in members.iter().enumerate() {
        scheduler.add(id);
        if let Some(budget) = member.budget {
            assert!(scheduler.set_budget(id, budget, member.priority, 0));
        }
        scheduler.set_ready(id, true, 0);
        states.push((0, member.pattern[0].0, None));
    }
    let (mut now, mut seen) = (
        0,
        Seen {
            runs: vec![],
            ready: vec![],
        },
    );
    while now < end {
        let mut wake = end;
        for (id, state) in states.iter_mut().enumerate() {
            match state.2 {
                Some(until) if until <= now => {
                    state.2 = None;
                    scheduler.set_ready(id, true, now);
                }
                Some(until) => wake = wake.min(until),
                None => {}
            }
        }
        match scheduler.decide(now) {
            Decision::Run { member: id, until } => {
                let able = scheduler
                    .members()
                    .filter(|(_, m)| m.end_of_run(now).is_some());
                seen.ready.push((now, id, able.map(|(id, _)| id).collect()));
                let state = &mut states[id];
                let asked = until.unwrap_or(end).min(wake);
                assert!(asked > now);
                // A finished member asks by itself; others are interrupted late.
                let run = (asked + late - now).min(state.1);
                seen.runs.push((id, now, now + run));
                scheduler.charge(id, Cost::Run, now, now + run);
                now += run;
                state.1 -= run;
                if state.1 == 0 {
                    let pattern = &members[id].pattern;
                    let pause = pattern[state.0].1;
                    state.0 = (state.0 + 1) % pattern.len();
                    state.1 = pattern[state.0].0;
                    if pause > 0 {
                        state.2 = Some(now + pause);
                        scheduler.set_ready(id, false, now);
                    }
                }
            }
            Decision::Idle { until } => {
                assert!(
                    scheduler
                        .members()
                        .all(|(_, m)| m.end_of_run(now).is_none())
                );
                now = until.unwrap_or(end).min(wake).max(now + 1);
            }
        }
    }
    seen
}

fn used_in(runs: &[Run], id: usize, from: u64, to: u64) -> u64 {
    let own = runs.iter().filter(|(who, ..)| *who == id);
    own.map(|(_, a, b)| (*b).min(to).saturating_sub((*a).max(from)))
        .sum()
}

proptest! {
    /// Throughput: in no window of one period does a member get more than its budget and one late interrupt; a member without a budget
    /// waits for at most one slice (and its lateness) of each other member.
    #[test]
    fn throughput_keeps_budgets_and_starves_nobody(
        members in proptest::collection::vec(member(), 1..7), slice in 1u64..10, late in 0u64..3000
    ) {
        let slice = slice * UNIT / 3;
        let seen = behave(Policy::Throughput, &members, slice, late, 2000 * UNIT);
        for (id, member) in members.iter().enumerate() {
            let own: Vec<_> = seen.runs.iter().filter(|(who, ..)| *who == id).collect();
            if let Some(budget) = member.budget {
                for (_, start, end) in &own {
                    for from in [*start, end.saturating_sub(budget.period)] {
                        let used = used_in(&seen.runs, id, from, from + budget.period);
                        prop_assert!(used <= budget.amount + late, "{id}: {used} of {} from {from}", budget.amount);
                    }
                }
            } else {
                let mut waited: BTreeMap<usize, u64> = BTreeMap::new();
                for (at, who, able) in &seen.ready {
                    if *who == id || !able.contains(&id) {
                        waited.clear();
                    } else if let Some((_, a, b)) = seen.runs.iter().find(|(_, a, _)| a == at) {
                        let all = waited.entry(*who).or_default();
                        *all += b - a;
                        prop_assert!(*all <= slice + late, "{id} waits for {who}: {all}");
                    }
                }
            }
        }
    }

    /// Realtime: no member runs while a more urgent one could, and the work that was released in a window of a period's
    /// length uses no more than the budget and the late interrupts of the window.
    #[test]
    fn realtime_keeps_the_order_and_the_budgets(
        members in proptest::collection::vec(member(), 1..7), slice in 1u64..10, late in 0u64..3000
    ) {
        let seen = behave(Policy::Realtime, &members, slice * UNIT / 3, late, 2000 * UNIT);
        let priority = |id: usize| members[id].budget.map_or(0, |_| members[id].priority);
        for (at, who, able) in &seen.ready {
            let most = able.iter().map(|id| priority(*id)).max();
            prop_assert!(Some(priority(*who)) == most, "{who} at {at}: {able:?}");
        }
        for (id, member) in members.iter().enumerate() {
            let Some(budget) = member.budget else { continue };
            // In the long run the share holds, whatever was withheld at the window's start.
            let total = used_in(&seen.runs, id, 0, 2000 * UNIT);
            let periods = (2000 * UNIT).div_ceil(budget.period);
            prop_assert!(total <= periods * budget.amount + late, "{id}: {total}");
            // The most urgent member gets its whole budget, if its equals have no work.
            let alone = (0..members.len()).all(|other| other == id || priority(other) < priority(id));
            if alone {
                for (_, start, _) in seen.runs.iter().filter(|(who, ..)| *who == id) {
                    let used = used_in(&seen.runs, id, *start, start + budget.period);
                    prop_assert!(used <= budget.amount + 2 * late, "{id}: {used} of {}", budget.amount);
                }
            }
        }
    }
}

/// The member that leaves pays for the switch, unless a more urgent one displaces it or it has no account.
#[test]
fn who_leaves_pays_unless_displaced() {
    let mut policy = Scheduler::<8>::new(Policy::Realtime, 100 * UNIT);
    for (id, priority) in [(1, 1), (2, 9), (3, 1)] {
        policy.add(id);
        policy.set_budget(id, budget(4 * UNIT, 10 * UNIT), priority, 0);
    }
    policy.add(4);
    assert!(!policy.gives_back(1, Some(2)));
    for next in [Some(1), Some(4), None] {
        assert!(policy.gives_back(2, next), "{next:?}");
    }
    assert!(policy.gives_back(1, Some(3)) && !policy.gives_back(4, Some(1)));
    assert!(!policy.gives_back(4, None) && !policy.gives_back(7, None));
}

/// Time paid after a job comes back with the job's budget; time paid while a member waits comes back a period after the payment.
#[test]
fn what_others_are_owed_comes_back_with_the_work_or_after_the_interrupt() {
    let mut policy = Scheduler::<8>::new(Policy::Realtime, 100 * UNIT);
    policy.add(1);
    policy.set_budget(1, budget(4 * UNIT, 10 * UNIT), 1, 0);
    policy.set_ready(1, true, 0);
    assert_eq!(policy.charge(1, Cost::Run, 0, 2 * UNIT), None);
    policy.set_ready(1, false, 2 * UNIT);
    assert_eq!(policy.charge(1, Cost::Back, 2 * UNIT, 3 * UNIT), None);
    assert_eq!(
        policy.charge(1, Cost::Interrupt, 5 * UNIT, 6 * UNIT),
        Some(10 * UNIT)
    );
    // It is used up until the work's part is back; the interrupt's comes later.
    assert_eq!(policy.start(1, 7 * UNIT), 10 * UNIT);
    policy.set_ready(1, true, 10 * UNIT);
    let until = Some(13 * UNIT);
    assert_eq!(policy.decide(10 * UNIT), Decision::Run { member: 1, until });
    assert_eq!(policy.start(1, 10 * UNIT), 10 * UNIT);
}
