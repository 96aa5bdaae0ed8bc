//! Processor time by hand, and against a count of every single tick.

use super::*;
use MarkerKind::{
    MuxBudget, MuxEnters, MuxInterrupts, MuxLeaves, MuxMember, MuxReady, MuxRuns, MuxWorks,
};
use proptest::prelude::*;

const TILE: TileId = 4;
const A: u16 = 1;
const B: u16 = 2;
const C: u16 = 3;

/// A tick is a nanosecond.
struct Hart {
    processor: Processor,
    ledger: Ledger,
}

impl Hart {
    fn with(members: &[u16]) -> Self {
        let mut hart = Self {
            processor: Processor::new(TILE, 1_000_000_000),
            ledger: Ledger::new(),
        };
        for id in members {
            hart.say(0, MuxMember, *id, Since::NOW);
        }
        hart
    }

    /// A and B want the hart from the beginning, and this one has it.
    fn ready_pair(runs: u16) -> Self {
        let mut hart = Self::with(&[A, B]);
        let said = [
            (MuxReady, A, 0),
            (MuxReady, B, 0),
            (MuxRuns, runs, 0),
            (MuxLeaves, 0, 0),
        ];
        hart.all(0, &said);
        hart
    }

    fn say(&mut self, now: Tick, kind: MarkerKind, activity: u16, moment: u64) {
        let value = Since { activity, moment }.pack();
        self.processor.hear(now, kind, value, &mut self.ledger);
    }

    fn all(&mut self, now: Tick, said: &[(MarkerKind, u16, u64)]) {
        for (kind, activity, moment) in said {
            self.say(now, *kind, *activity, *moment);
        }
    }

    /// Victim, culprit, resource, ticks.
    fn booked(&mut self, now: Tick) -> Vec<(u16, u16, Resource, Tick)> {
        self.processor.settle(now, &mut self.ledger);
        let all = self.ledger.bookings().into_iter();
        all.map(|b| (b.victim.activity, b.culprit.activity, b.resource, b.ticks))
            .collect()
    }

    fn times(&self) -> Vec<(u16, Tick, Tick)> {
        let times = self.processor.times();
        times.map(|t| (t.owner.activity, t.ran, t.waited)).collect()
    }
}

#[test]
fn two_in_turns_wait_for_each_other_and_for_the_switch() {
    let mut hart = Hart::ready_pair(A);
    // Slices of 100, a switch of 7 after each.
    for turn in 0..10 {
        let next = if turn % 2 == 0 { B } else { A };
        let end = 100 + 107 * turn;
        hart.all(end, &[(MuxEnters, 0, 0), (MuxInterrupts, 0, 0)]);
        hart.say(end + 3, MuxRuns, next, 0);
        hart.say(end + 7, MuxLeaves, 0, 0);
    }
    use Resource::Processor;
    assert_eq!(
        hart.booked(10 * 107),
        [
            (A, B, Processor, 500),
            (A, TILEMUX_ACTIVITY, Processor, 70),
            (B, A, Processor, 500),
            (B, TILEMUX_ACTIVITY, Processor, 70),
        ]
    );
    assert_eq!(hart.times(), [(A, 500, 570), (B, 500, 570)]);
}

#[test]
fn a_call_is_work_of_the_caller_and_an_interrupt_is_not() {
    let mut hart = Hart::ready_pair(A);
    hart.say(10, MuxEnters, 0, 0);
    hart.say(15, MuxLeaves, 0, 0);
    hart.all(30, &[(MuxEnters, 0, 0), (MuxInterrupts, 0, 0)]);
    hart.say(31, MuxLeaves, 0, 0);
    use Resource::Processor;
    assert_eq!(
        hart.booked(40),
        [
            (A, TILEMUX_ACTIVITY, Processor, 1),
            (B, A, Processor, 10 + 15 + 9),
            (B, TILEMUX_ACTIVITY, Processor, 5 + 1),
        ]
    );
    assert_eq!(hart.times(), [(A, 34, 1), (B, 0, 40)]);
}

#[test]
fn what_the_kernel_asks_is_the_fault_of_whom_it_is_for() {
    let mut hart = Hart::ready_pair(A);
    hart.all(10, &[(MuxEnters, 0, 0), (MuxInterrupts, 0, 0)]);
    hart.say(12, MuxWorks, C, 0);
    hart.say(20, MuxRuns, A, 0);
    hart.say(21, MuxLeaves, 0, 0);
    // In a call of A, and for B, which waits no longer than it would anyway.
    hart.say(30, MuxEnters, 0, 0);
    hart.say(31, MuxWorks, B, 0);
    hart.say(35, MuxRuns, A, 0);
    hart.say(36, MuxLeaves, 0, 0);
    use Resource::Processor;
    assert_eq!(
        hart.booked(40),
        [
            (A, B, Processor, 4),
            (A, C, Processor, 8),
            (A, TILEMUX_ACTIVITY, Processor, 3),
            (B, A, Processor, 10 + 9 + 4),
            (B, C, Processor, 8),
            (B, TILEMUX_ACTIVITY, Processor, 2 + 1 + 1 + 1),
        ]
    );
}

#[test]
fn what_the_kernel_asks_is_the_fault_of_who_asked() {
    let mut hart = Hart::ready_pair(A);
    let pager = Owner::new(TILE + 1, B);
    hart.all(10, &[(MuxEnters, 0, 0), (MuxInterrupts, 0, 0)]);
    // A pager on another tile maps pages of C; the pager has the number that B has here.
    hart.processor.asked_by(Some(pager));
    hart.say(12, MuxWorks, C, 0);
    hart.say(20, MuxRuns, A, 0);
    hart.say(21, MuxLeaves, 0, 0);
    // The next request is on no one's behalf, and the one after it on behalf of A itself.
    hart.say(30, MuxEnters, 0, 0);
    hart.say(31, MuxWorks, C, 0);
    hart.processor.asked_by(Some(Owner::new(TILE, A)));
    hart.say(34, MuxWorks, C, 0);
    hart.say(39, MuxRuns, A, 0);
    hart.say(40, MuxLeaves, 0, 0);
    let booked = hart.booked(40);
    use Resource::Processor;
    assert_eq!(
        booked,
        [
            (A, C, Processor, 3),
            (A, TILEMUX_ACTIVITY, Processor, 2 + 1),
            (A, B, Processor, 8),
            (B, A, Processor, 10 + 9 + 5),
            (B, C, Processor, 3),
            (B, TILEMUX_ACTIVITY, Processor, 2 + 1 + 1 + 1),
            (B, B, Processor, 8),
        ]
    );
    let named = hart.ledger.bookings();
    let mut named = named.iter().filter(|one| one.culprit.activity == B);
    assert!(named.all(|one| one.culprit == pager));
}

#[test]
fn a_used_up_budget_is_nobody_elses_fault() {
    let mut hart = Hart::with(&[A, B]);
    hart.all(
        0,
        &[
            (MuxReady, A, 0),
            (MuxBudget, A, 60),
            (MuxReady, B, 0),
            (MuxRuns, B, 0),
            (MuxLeaves, 0, 0),
        ],
    );
    use Resource::{Processor, ProcessorBudget};
    assert_eq!(
        hart.booked(100),
        [(A, A, ProcessorBudget, 60), (A, B, Processor, 40)]
    );
}

#[test]
fn whose_moment_comes_is_ready_though_tilemux_looks_later() {
    let mut hart = Hart::with(&[A, B]);
    hart.all(
        0,
        &[
            (MuxReady, A, 70),
            (MuxReady, B, 0),
            (MuxRuns, B, 0),
            (MuxLeaves, 0, 0),
        ],
    );
    // B is more urgent, and the timer was not set for A.
    hart.say(100, MuxEnters, 0, 0);
    hart.all(104, &[(MuxReady, B, Since::NEVER), (MuxReady, A, 0)]);
    hart.say(105, MuxRuns, A, 0);
    hart.say(106, MuxLeaves, 0, 0);
    use Resource::Processor;
    assert_eq!(
        hart.booked(200),
        [(A, B, Processor, 30), (A, TILEMUX_ACTIVITY, Processor, 6)]
    );
}

#[test]
fn whoever_is_gone_waits_for_nobody() {
    let mut hart = Hart::ready_pair(B);
    hart.say(10, MuxMember, A, Since::NEVER);
    // No activity has this number; if TileMux is believed, a stranger has the hart.
    hart.say(20, MuxReady, A, 0);
    hart.say(20, MuxReady, C, 0);
    assert_eq!(hart.booked(50), [(A, B, Resource::Processor, 10)]);
    // The tile is restarted.
    hart.processor.stop(60);
    assert_eq!(hart.booked(100).len(), 1);
    assert_eq!(hart.times(), [(A, 0, 10), (B, 60, 0)]);
}

#[test]
fn looking_at_it_divides_no_wait() {
    let wait = |looks: &[Tick]| {
        let mut hart = Hart::with(&[A, B]);
        hart.all(
            0,
            &[
                (MuxReady, A, 0),
                (MuxBudget, A, 30),
                (MuxReady, B, 0),
                (MuxRuns, B, 0),
                (MuxLeaves, 0, 0),
            ],
        );
        for &look in looks {
            hart.processor.settle(look, &mut hart.ledger);
        }
        hart.processor.settle(100, &mut hart.ledger);
        format!("{:?}", hart.ledger.bookings())
    };
    let once = wait(&[]);
    assert_eq!(once, wait(&[10, 30, 31, 77, 77]));
    assert!(
        once.contains("count: 1") && !once.contains("count: 2"),
        "{once}"
    );
}

/// A reference that counts every single tick.
#[derive(Clone, Copy, Default)]
struct Counted {
    ready_at: Option<Tick>,
    budget_at: Tick,
}

proptest! {
    /// For each activity, ready = had + booked, and each booking equals a count of single ticks, whatever TileMux reports and
    /// when.
    #[test]
    fn every_tick_is_somebodys(
        said in proptest::collection::vec((0u64..30, 0u8..9, 1u16..5, 0u64..60), 1..60)
    ) {
        let ids = [1u16, 2, 3, 4];
        let mut hart = Hart::with(&ids);
        let mut counted = [Counted::default(); 5];
        let (mut chosen, mut works, mut asked) = (IDLE_ACTIVITY, true, false);
        let mut expected: BTreeMap<(u16, u16, bool), Tick> = BTreeMap::new();
        let mut waited = [0; 5];
        let mut now = 0;
        for (pause, what, id, later) in said {
            for tick in now..now + pause {
                for victim in ids {
                    let own = counted[usize::from(victim)];
                    let is_ready = own.ready_at.is_some_and(|at| at <= tick);
                    let has = victim == chosen && (!works || asked);
                    if !is_ready || has {
                        continue;
                    }
                    let budget = tick < own.budget_at;
                    let holder = if works || chosen == IDLE_ACTIVITY { TILEMUX_ACTIVITY } else { chosen };
                    let culprit = if budget { victim } else { holder };
                    *expected.entry((victim, culprit, budget)).or_default() += 1;
                    waited[usize::from(victim)] += 1;
                }
            }
            now += pause;
            let own = &mut counted[usize::from(id)];
            match what {
                0 => { hart.say(now, MuxEnters, 0, 0); (works, asked) = (true, true) }
                1 => { hart.say(now, MuxInterrupts, 0, 0); asked = false }
                2 | 3 => { hart.say(now, MuxLeaves, 0, 0); works = false }
                4 => {
                    hart.say(now, MuxRuns, id, 0);
                    asked &= chosen == id;
                    chosen = id;
                }
                5 => { hart.say(now, MuxReady, id, Since::NEVER); own.ready_at = None }
                6 => { hart.say(now, MuxReady, id, 0); own.ready_at = Some(now) }
                7 => { hart.say(now, MuxReady, id, now + later); own.ready_at = Some(now + later) }
                _ => { hart.say(now, MuxBudget, id, now + later); own.budget_at = now + later }
            }
        }
        let booked: BTreeMap<_, _> = hart
            .booked(now)
            .into_iter()
            .map(|(victim, culprit, resource, ticks)| {
                ((victim, culprit, resource == Resource::ProcessorBudget), ticks)
            })
            .collect();
        prop_assert_eq!(&booked, &expected);
        for (id, _, wait) in hart.times() {
            prop_assert_eq!(wait, waited[usize::from(id)]);
        }
    }
}
