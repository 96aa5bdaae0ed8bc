//! Processor time: everything derived from a budget together demands no more than the budget, in every window.

use super::{KERNEL, TILE, finish, space};
use crate::{Error, Object, Quota, Request, Space, Terms};
use bulkhead_exec::account::{Account, Budget};
use proptest::prelude::*;

const TOP: u16 = 10;

fn derive(
    space: &mut Space,
    (from, to): (u16, u16),
    (budget, period): (u64, u64),
    priority: u8,
) -> Result<(), Error> {
    let mut request = Request::default();
    request[Quota::Cpu as usize] = Some(budget);
    let terms = Terms {
        period,
        priority,
        idle: false,
    };
    space
        .derive_tile(KERNEL, from, to, request, terms)
        .map(|_| ())
}

fn left(space: &mut Space, selector: u16) -> (u64, u64) {
    match *space.look(KERNEL, selector).unwrap().1 {
        Object::Tile(tile) => (tile.left.get(Quota::Cpu), tile.time.period),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_derivation_narrows_time_and_priority() {
    let mut space = space(32);
    // 10 % in 1 ms.
    derive(&mut space, (TILE, TOP), (100_000, 1_000_000), 7).unwrap();
    let refused = Err(Error::NoQuota);
    let second = 1_000_000_000;
    // The same rate, but a hundred seconds of it at once.
    let long = (100 * second, 1000 * second);
    assert_eq!(derive(&mut space, (TOP, 11), long, 7), refused);
    // The same budget ten times as often is the same rate; slightly more often than divides the period is more.
    let often = (10_000, 100_000);
    assert_eq!(derive(&mut space, (TOP, 11), (10_000, 99_999), 7), refused);
    assert_eq!(derive(&mut space, (TOP, 11), often, 8), refused);
    derive(&mut space, (TOP, 11), often, 7).unwrap();
    assert_eq!(left(&mut space, TOP), (0, 1_000_000));
    assert_eq!(left(&mut space, 11), (10_000, 100_000));
    // Time without a budget is a right of its holder.
    let none = (0, 0);
    assert_eq!(derive(&mut space, (TOP, 12), none, 0), refused);
    derive(&mut space, (TILE, 12), none, 0).unwrap();
    derive(&mut space, (12, 13), none, 0).unwrap();
    assert_eq!(derive(&mut space, (13, 14), (1, 1 << 40), 0), refused);
    assert_eq!(derive(&mut space, (13, 14), none, 1), refused);
    // A longer period pays for everything that may be used at one time.
    space.revoke(0, KERNEL, 11, false).unwrap();
    finish(&mut space, 0);
    derive(&mut space, (TOP, 11), (60_000, second), 1).unwrap();
    assert_eq!(left(&mut space, TOP), (40_000, 1_000_000));
    space.check().unwrap();
}

/// An operation on the time below a capability.
#[derive(Clone, Debug)]
enum Step {
    Derive(usize, u64, u64),
    Revoke(usize),
    /// An activity runs on a capability, for as long as it may, until it ends.
    Begin(usize),
    End(usize),
    Pass(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (0usize..6, 1u64..12, 1u64..40).prop_map(|(from, budget, period)| Step::Derive(from, budget, period)),
        1 => (0usize..6).prop_map(Step::Revoke),
        3 => (0usize..6).prop_map(Step::Begin),
        2 => (0usize..6).prop_map(Step::End),
        3 => (1u64..60).prop_map(Step::Pass),
    ]
}

struct Below {
    space: Space,
    now: u64,
    /// All selectors, each with its activity and the selector that it was derived from.
    all: Vec<(u16, Option<Account>, u16)>,
    next: u16,
    /// Moments of use, one entry for each activity that ran at that moment.
    used: Vec<u64>,
}

impl Below {
    fn new(grant: (u64, u64)) -> Self {
        let mut space = space(400);
        derive(&mut space, (TILE, TOP), grant, 9).unwrap();
        Self {
            space,
            now: 1000,
            all: vec![(TOP, None, TILE)],
            next: TOP + 1,
            used: Vec::new(),
        }
    }

    fn end(&mut self, place: usize) {
        if self.all[place].1.take().is_some() {
            let node = self.space.look(KERNEL, self.all[place].0).unwrap().0;
            self.space.stop_using(node, self.now);
        }
    }

    fn apply(&mut self, step: &Step) {
        let count = self.all.len();
        match *step {
            Step::Derive(from, budget, period) => {
                let (from, account, _) = &self.all[from % count];
                // The kernel does not divide time that an activity has for itself.
                let free = account.is_none();
                let (from, to) = (*from, self.next);
                if free && derive(&mut self.space, (from, to), (budget, period), 9).is_ok() {
                    self.all.push((to, None, from));
                    self.next += 1;
                }
            }
            Step::Revoke(which) => {
                let selector = self.all[which % count].0;
                if selector == TOP {
                    return;
                }
                let mut gone = vec![selector];
                for (at, _, from) in &self.all {
                    if gone.contains(from) {
                        gone.push(*at);
                    }
                }
                for place in 0..count {
                    if gone.contains(&self.all[place].0) {
                        self.end(place);
                    }
                }
                self.all.retain(|(at, ..)| !gone.contains(at));
                self.space.revoke(0, KERNEL, selector, false).unwrap();
                finish(&mut self.space, 0);
            }
            Step::Begin(which) => {
                let place = which % count;
                let selector = self.all[place].0;
                let (amount, period) = left(&mut self.space, selector);
                if self.all[place].1.is_none() && amount > 0 {
                    let node = self.space.look(KERNEL, selector).unwrap().0;
                    let start = self.space.fresh_from(node).max(self.now);
                    self.all[place].1 = Some(Account::new(Budget { amount, period }, 1, start));
                }
            }
            Step::End(which) => self.end(which % count),
            Step::Pass(time) => {
                for _ in 0..time {
                    for (_, account, _) in &mut self.all {
                        let Some(account) = account else { continue };
                        if account.end_of_run(self.now).is_some() {
                            account.charge(1, self.now);
                            self.used.push(self.now);
                        }
                    }
                    self.now += 1;
                }
            }
        }
    }
}

proptest! {
    /// Descendants come and go, with periods of their choice, and use all the time that they get, each on a processor of its own: no
    /// window of the grant's period has more use than the grant, and none of several periods more than that many grants.
    #[test]
    fn no_window_has_more_than_was_granted(
        amount in 1u64..12, spare in 0u64..30, steps in prop::collection::vec(step(), 1..60)
    ) {
        let (budget, period) = (amount, amount + spare);
        let mut below = Below::new((budget, period));
        for step in &steps {
            below.apply(step);
            below.space.check().map_err(|error| TestCaseError::fail(format!("{error:?}")))?;
        }
        for (index, start) in below.used.iter().enumerate() {
            for periods in 1..5 {
                let end = start + periods * period;
                let inside = below.used[index..].iter().take_while(|at| **at < end).count() as u64;
                prop_assert!(inside <= periods * budget, "{inside} in {periods} periods of {period} from {start} on");
            }
        }
    }
}
