//! How long others can keep a resource from one transaction: the order bound and the window function.
//!
//! Works on occupancies seen from one resource (or from the lumped link, where a transaction occupies everything). It does
//! not know paths or flows.

use super::scenario::{
    Arbitration, NetworkScenario, Outage, Pool, Regulator, Source, Step, TransactionClass,
    TransactionId,
};
use std::collections::{BTreeMap, BTreeSet};

/// The transaction whose rivals are examined.
#[derive(Clone, Copy)]
pub(super) struct Victim {
    id: TransactionId,
    /// The tile whose unit executes the command that it belongs to.
    command: Option<u16>,
}

impl Victim {
    /// `None` if there is no such transaction.
    pub fn new(scenario: &NetworkScenario, id: TransactionId) -> Option<Self> {
        let (source, class) = scenario.class(id).ok()?;
        let command = (class.pool == Some(Pool::Command)).then_some(source.tile);
        Some(Self { id, command })
    }

    /// Slots of `class` that cannot be outstanding together with it: its own; and, because a unit executes one command at a time, all slots
    /// of other commands of the same unit, whichever activity of the tile issued them. Chunks of one command are of one class.
    fn excludes(&self, id: TransactionId, tile: u16, class: &TransactionClass) -> u64 {
        match self.command {
            _ if self.id == id => 1,
            Some(unit) if unit == tile && class.pool == Some(Pool::Command) => u64::MAX,
            _ => 0,
        }
    }
}

/// A source as one resource sees it.
pub(super) struct Rival<'a> {
    tile: u16,
    pub regulator: Option<&'a Regulator>,
    pub users: Vec<User<'a>>,
}

/// A class of a rival that uses the resource.
pub(super) struct User<'a> {
    pub class: &'a TransactionClass,
    /// Slots that are not the victim's own.
    pub outstanding: u64,
    /// Ticks of the resource for one transaction.
    pub occupancy: u128,
    /// The part of it that is outstanding in its own slots.
    pub own: u128,
    /// Maximum cost of younger transactions that pass its own steps, where the order allows that.
    pub passed: u128,
    /// (input, occupancy) of each of its own steps at the resource.
    pub inputs: Vec<(u16, u128)>,
    /// Longest time from when one has its tokens to its end, if it leaves its tile at the moment when it takes them, and does here what it
    /// does itself.
    pub stay: Option<u128>,
}

/// The longest stay of each unit command in the network: all steps, and before each what the order of service lets others do.
///
/// A chunk or packet of a command is known to leave its tile when it takes its tokens. Other transactions are not: a hart pays for a line
/// before the line passes the caches.
pub(super) struct Stays(BTreeMap<TransactionId, u128>);

impl Stays {
    /// No stays are known.
    pub fn unknown() -> Self {
        Self(BTreeMap::new())
    }

    /// The stays of all commands that pass a token bucket.
    pub fn new(scenario: &NetworkScenario) -> Self {
        let mut waits: BTreeMap<(usize, u16, [u64; 3]), Option<u128>> = BTreeMap::new();
        let mut stays = BTreeMap::new();
        let regulated = scenario.sources.iter().enumerate();
        for (index, source) in regulated.filter(|(_, source)| source.regulator.is_some()) {
            for (number, class) in source.classes.iter().enumerate() {
                if class.pool != Some(Pool::Command) {
                    continue;
                }
                let own = class.steps.iter().filter(|step| !step.elsewhere);
                let mut stay = Some(class.uncontended());
                for step in own {
                    let Some(resource) = step.resource else {
                        continue;
                    };
                    let wait = *waits
                        .entry((
                            resource,
                            step.input,
                            [step.passed, step.queued, step.occupancy],
                        ))
                        .or_insert_with(|| longest_by_order(scenario, resource, step));
                    stay = stay.zip(wait).map(|(a, b)| a.saturating_add(b));
                }
                let id = TransactionId {
                    source: index,
                    class: number,
                };
                stays.extend(stay.map(|stay| (id, stay)));
            }
        }
        Self(stays)
    }
}

/// Maximum wait at `resource` of anything that arrives there for `step`, by the order of service alone.
fn longest_by_order(scenario: &NetworkScenario, resource: usize, step: &Step) -> Option<u128> {
    let unknown = Stays::unknown();
    let all = scenario.sources.iter().enumerate();
    let rivals: Vec<_> = all
        .map(|(index, source)| {
            Rival::new(
                source,
                index,
                None,
                &unknown,
                |c| c.at(resource),
                |s| u128::from(s.occupancy),
            )
        })
        .collect();
    let shared = &scenario.resources[resource];
    let order = order_bound(shared.arbitration, &rivals, step);
    let order = order.saturating_add(scenario.tail(resource));
    least_window(u128::MAX, |w| {
        order.saturating_add(outages(shared.outage.as_ref(), w))
    })
}

impl<'a> Rival<'a> {
    /// The source with this index in its scenario. What excludes the victim, or is the victim, is not counted.
    pub fn new(
        source: &'a Source,
        index: usize,
        victim: Option<Victim>,
        stays: &Stays,
        mut steps: impl FnMut(&'a TransactionClass) -> Vec<&'a Step>,
        occupancy: impl Fn(&Step) -> u128,
    ) -> Self {
        let users = source
            .classes
            .iter()
            .enumerate()
            .filter_map(|(number, class)| {
                let used = steps(class);
                let all = used.iter().map(|s| occupancy(s)).sum();
                let own = used.iter().filter(|s| !s.elsewhere);
                let passed = own.clone().map(|s| u128::from(s.passed)).sum();
                let inputs: Vec<_> = own.map(|s| (s.input, occupancy(s))).collect();
                let id = TransactionId {
                    source: index,
                    class: number,
                };
                let excluded = victim.map_or(0, |v| v.excludes(id, source.tile, class));
                // At any moment, only unfinished jobs have anything outstanding.
                let demanded = class.demand.map_or(u128::MAX, |d| d.in_window(0));
                let most = u128::from(class.outstanding).min(demanded) as u64;
                let outstanding = most.saturating_sub(excluded);
                (!used.is_empty() && outstanding > 0).then(|| User {
                    class,
                    outstanding,
                    occupancy: all,
                    own: inputs.iter().map(|(_, o)| o).sum(),
                    passed,
                    inputs,
                    stay: stays
                        .0
                        .get(&id)
                        .copied()
                        .filter(|_| used.iter().all(|s| !s.elsewhere)),
                })
            });
        Self {
            tile: source.tile,
            regulator: source.regulator.as_ref(),
            users: users.collect(),
        }
    }

    /// The largest total outstanding at one moment.
    pub fn under_way(&self) -> u128 {
        at_once(std::slice::from_ref(self), |u| {
            u128::from(u.outstanding) * u.own
        })
    }

    /// Maximum service of the resource for this source in a window of length `window`.
    pub fn in_window(&self, window: u128, ticks_per_second: u64) -> u128 {
        let by_slots = self.served(window, ticks_per_second, None);
        let stays = self.users.iter().filter_map(|user| user.stay);
        stays.max().map_or(by_slots, |stay| {
            by_slots.min(self.served(window, ticks_per_second, Some(stay)))
        })
    }

    /// The same, ignoring how long its commands stay.
    pub fn in_window_by_slots(&self, window: u128, ticks_per_second: u64) -> u128 {
        self.served(window, ticks_per_second, None)
    }

    /// With `stay`: every part of a command that is served in the window has taken its tokens in the window, or up to `stay` before it: the
    /// arrival curve of the bucket, delayed, as total flow analysis propagates it (Le Boudec and Thiran, section 1.4.3). Without: what was
    /// under way at the start may have taken its tokens at any time, and is as much as slots allow.
    fn served(&self, window: u128, ticks_per_second: u64, stay: Option<u128>) -> u128 {
        let mut tokens = self.regulator.map(|r| {
            let charges = self.users.iter().map(|u| u.class.charge_most);
            let largest = charges.max().unwrap_or(0);
            let paid = window.saturating_add(stay.unwrap_or(0));
            tokens(r, paid, ticks_per_second)
                .saturating_add(u128::from(r.limit.max(largest)))
                .saturating_add(r.credit.into())
        });
        // What was outstanding at the start, then as much as slots and demand allow of whatever costs the others most for each token: the
        // fractional knapsack, which is never below the best choice of whole transactions.
        let mut order: Vec<&User> = self.users.iter().collect();
        order.sort_by(|a, b| {
            let left = a.occupancy.saturating_mul(b.class.charge.into());
            let right = b.occupancy.saturating_mul(a.class.charge.into());
            right.cmp(&left)
        });
        let mut parts = Vec::new();
        for user in order {
            let most = user.most_in_window(window);
            let started = match stay.and(user.stay) {
                Some(_) => 0,
                None => u128::from(user.outstanding).min(most),
            };
            // Of classes that share slots, those of one were under way at the start; any of the others may all come later.
            let shared = tokens.is_some() && user.class.pool.is_some();
            let mut later = if shared && user.class.demand.is_none() {
                most
            } else {
                most - started
            };
            let mut part = 0;
            if let (Some(left), charge @ 1..) = (&mut tokens, u128::from(user.class.charge)) {
                let affordable = *left / charge;
                if affordable < later {
                    part = (*left % charge)
                        .saturating_mul(user.occupancy)
                        .div_ceil(charge);
                    later = affordable;
                    *left = 0;
                } else {
                    *left -= later * charge;
                }
            }
            let later = later.saturating_mul(user.occupancy).saturating_add(part);
            parts.push((user, started.saturating_mul(user.occupancy), later));
        }
        let pools: BTreeSet<_> = self.users.iter().map(|u| u.class.pool).collect();
        pools.iter().fold(0u128, |sum, pool| {
            let here = parts.iter().filter(|(user, ..)| user.class.pool == *pool);
            let all = here.clone().fold(0u128, |sum, part| {
                sum.saturating_add(part.1).saturating_add(part.2)
            });
            let first = here.clone().map(|part| part.1);
            let least = match pool {
                Some(_) if here.clone().any(|part| part.0.class.demand.is_some()) => all,
                Some(_) if self.regulator.is_some() => here
                    .map(|part| part.2)
                    .fold(first.max().unwrap_or(0), u128::saturating_add),
                // Commands do not overlap: at most one class all the time, and what is under way at both ends. (The last chunk of a
                // command, which may be small, counts as one of the others.)
                Some(Pool::Command) => {
                    let longest = here.map(|part| part.1.saturating_add(part.2)).max();
                    let ends = first.max().unwrap_or(0).saturating_mul(2);
                    all.min(longest.unwrap_or(0).saturating_add(ends))
                }
                _ => all,
            };
            sum.saturating_add(least)
        })
    }
}

impl User<'_> {
    /// Maximum number of transactions that the resource serves in a window, whatever the token bucket.
    ///
    /// On one slot they are a round trip apart, and one may have begun before the window.
    fn most_in_window(&self, window: u128) -> u128 {
        let slots = u128::from(self.outstanding);
        let trips = match u128::from(self.class.least_round_trip) {
            0 => u128::MAX,
            trip => slots.saturating_mul(window.saturating_add(self.occupancy) / trip + 1),
        };
        let demand = self.class.demand.map_or(u128::MAX, |d| d.in_window(window));
        trips.min(demand)
    }
}

/// Bytes that refills add in a closed window: at most `floor(window / period) + 1` refills.
fn tokens(regulator: &Regulator, window: u128, ticks_per_second: u64) -> u128 {
    let refills = window / u128::from(regulator.period) + 1;
    let scaled = refills
        .saturating_mul(u128::from(regulator.period))
        .saturating_mul(u128::from(regulator.rate));
    scaled.div_ceil(u128::from(ticks_per_second))
}

/// The longest that a regulator holds back transactions, given as (count, charge), where `largest` is the largest charge
/// of anything that passes the bucket. At the start it may be empty (or in debt, if a transaction may exceed its limit), may owe
/// all of its credit, and has just been refilled.
///
/// Each transaction by itself waits for `ceil(charge / refill)` refills at most. All together they wait only for what they
/// take, if the limit has room for a refill above the largest charge, so that no refill is lost while one waits.
pub(super) fn own_bucket(
    regulator: &Regulator,
    transactions: &[(u128, u64)],
    largest: u64,
    ticks_per_second: u64,
) -> u128 {
    let second = u128::from(ticks_per_second);
    let gain = u128::from(regulator.rate) * u128::from(regulator.period);
    let debt = u128::from(largest.saturating_sub(regulator.limit));
    let refills = |bytes: u128| bytes.saturating_mul(second).div_ceil(gain);
    let each = transactions.iter().fold(0u128, |sum, &(count, charge)| {
        sum.saturating_add(count.saturating_mul(refills(u128::from(charge) + debt)))
    });
    let each = each.saturating_add(refills(regulator.credit.into()));
    let room = (u128::from(regulator.limit).saturating_sub(u128::from(largest))) * second >= gain;
    let together = if room && debt == 0 {
        refills(
            transactions
                .iter()
                .fold(regulator.credit.into(), |sum: u128, &(count, charge)| {
                    sum.saturating_add(count.saturating_mul(charge.into()))
                }),
        )
    } else {
        u128::MAX
    };
    each.min(together)
        .saturating_mul(u128::from(regulator.period))
}

/// Time without service in a window of length `window`.
pub(super) fn outages(outage: Option<&Outage>, window: u128) -> u128 {
    outage.map_or(0, |o| {
        let starts = window.saturating_add(o.jitter.into()) / u128::from(o.period.max(1)) + 1;
        starts.saturating_mul(o.duration.into())
    })
}

/// The sum over all classes that may have something outstanding at one time: of those that share slots, the most.
fn at_once(rivals: &[Rival], amount: impl Fn(&User) -> u128) -> u128 {
    let mut pools: BTreeMap<(u16, Pool), u128> = BTreeMap::new();
    let mut sum = 0u128;
    for (rival, user) in rivals
        .iter()
        .flat_map(|r| r.users.iter().map(move |u| (r, u)))
    {
        match user.class.pool {
            Some(pool) => {
                let most = pools.entry((rival.tile, pool)).or_default();
                *most = amount(user).max(*most);
            }
            None => sum = sum.saturating_add(amount(user)),
        }
    }
    pools
        .values()
        .fold(sum, |sum, most| sum.saturating_add(*most))
}

/// The order bound for one transaction at `step`, without outages.
pub(super) fn order_bound(arbitration: Arbitration, rivals: &[Rival], step: &Step) -> u128 {
    let input = step.input;
    match arbitration {
        Arbitration::ArrivalOrder => at_once(rivals, |u| u128::from(u.outstanding) * u.own),
        // Each of those ahead may be passed, and so may this transaction.
        Arbitration::LimitedPassing => {
            let before = at_once(rivals, |u| {
                u128::from(u.outstanding) * u.own.saturating_add(u.passed)
            });
            before.saturating_add(step.passed.into())
        }
        // The same for those in its own queue. With each of them, and with this transaction, as much of the acknowledged work is served, in
        // turns.
        Arbitration::Turns { least } => {
            let beside = |own: u128| own.saturating_add(own.div_ceil(u128::from(least.max(1))));
            let before = at_once(rivals, |u| {
                let own = u.inputs.iter().filter(|(i, _)| *i == input);
                let own = own.fold(0u128, |sum, (_, o)| sum.saturating_add(*o));
                let all = match own {
                    0 => 0,
                    _ => own.saturating_add(beside(own)).saturating_add(u.passed),
                };
                u128::from(u.outstanding).saturating_mul(all)
            });
            [step.passed, step.queued]
                .iter()
                .fold(before, |sum, &part| sum.saturating_add(part.into()))
                .saturating_add(beside(step.occupancy.into()))
        }
        Arbitration::AnyOrder if rivals.iter().all(|r| r.users.is_empty()) => 0,
        Arbitration::AnyOrder => u128::MAX,
        Arbitration::RoundRobin => {
            let steps = || {
                rivals
                    .iter()
                    .flat_map(|r| &r.users)
                    .flat_map(|u| u.inputs.iter().copied())
            };
            let own = |user: &User, amount: fn(u128) -> u128| {
                let here = user.inputs.iter().filter(|(port, _)| *port == input);
                here.map(|&(_, occupancy)| u128::from(user.outstanding) * amount(occupancy))
                    .sum()
            };
            let own_packets = at_once(rivals, |u| own(u, |_| 1));
            let own_service = at_once(rivals, |u| own(u, |o| o));
            let mut others: BTreeMap<u16, u128> = Default::default();
            for (port, occupancy) in steps().filter(|(port, _)| *port != input) {
                let most = others.entry(port).or_default();
                *most = occupancy.max(*most);
            }
            // One packet of each other input precedes each packet of the own input, and the victim.
            others.values().fold(own_service, |sum, most| {
                sum.saturating_add((own_packets + 1).saturating_mul(*most))
            })
        }
    }
}

/// The least `w` with `w >= fixed + interference(w)`, if it is found before `cap`; else `None`.
///
/// `interference` must not decrease. Starting below the least solution and stepping to what is needed never jumps over it.
pub(super) fn least_window(cap: u128, interference: impl Fn(u128) -> u128) -> Option<u128> {
    /// Steps after which the caller's other bound must suffice: a safe answer that is late is no answer.
    const STEPS: u32 = 100_000;
    let mut window = 0;
    for _ in 0..STEPS {
        let needed = interference(window);
        if needed >= cap {
            return None;
        }
        if needed <= window {
            return Some(window);
        }
        window = needed;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(
        charge: u64,
        outstanding: u32,
        trip: u64,
        occupancy: u64,
        input: u16,
    ) -> TransactionClass {
        TransactionClass {
            name: "c".into(),
            charge,
            charge_most: charge,
            outstanding,
            least_round_trip: trip,
            pool: None,
            demand: None,
            steps: vec![Step {
                resource: Some(0),
                input,
                occupancy,
                passed: 0,
                queued: 0,
                tail: 0,
                elsewhere: false,
                latency: occupancy,
            }],
        }
    }

    fn rival(source: &Source) -> Rival<'_> {
        Rival::new(
            source,
            0,
            None,
            &Stays::unknown(),
            |c| c.steps.iter().collect(),
            |s| u128::from(s.occupancy),
        )
    }

    fn source(regulator: Option<Regulator>, classes: Vec<TransactionClass>) -> Source {
        Source {
            name: "s".into(),
            tile: 0,
            regulator,
            classes,
        }
    }

    #[test]
    fn closed_loop_window() {
        // 2 slots, round trip 100, occupancy 10: in a window of 190 a slot starts at most (190 + 10) / 100 + 1 = 3.
        let s = source(None, vec![class(64, 2, 100, 10, 0)]);
        assert_eq!(rival(&s).in_window(190, 1), 2 * 3 * 10);
    }

    #[test]
    fn regulated_window() {
        // One refill of 64 bytes every 1000 ticks (rate 64 a second of 1000 ticks), limit 128. Window 0: 1 outstanding, limit 128 + refill
        // 64 = 3 transactions more; but the slot alone admits (0 + 10) / 1 + 1 = 11. Together 4 of 10 ticks.
        let regulator = Regulator {
            rate: 64,
            limit: 128,
            period: 1000,
            credit: 0,
            line: u32::MAX,
        };
        let s = source(Some(regulator), vec![class(64, 1, 1, 10, 0)]);
        assert_eq!(rival(&s).in_window(0, 1000), 40);
        assert_eq!(rival(&s).in_window(1000, 1000), 50);
        // On credit, one line more.
        let regulator = Regulator {
            credit: 64,
            ..regulator
        };
        let s = source(Some(regulator), vec![class(64, 1, 1, 10, 0)]);
        assert_eq!(rival(&s).in_window(0, 1000), 50);
    }

    #[test]
    fn commands_have_taken_their_tokens_not_long_ago() {
        // 4 outstanding slots, and 128 + 64 bytes more: 7 transactions. All of them took their tokens in the 500 ticks before or in the
        // window: of one refill and the limit, 3.
        let regulator = Regulator {
            rate: 64,
            limit: 128,
            period: 1000,
            credit: 0,
            line: u32::MAX,
        };
        let mut command = class(64, 4, 1, 10, 0);
        command.pool = Some(Pool::Command);
        let scenario = NetworkScenario {
            ticks_per_second: 1000,
            resources: vec![super::super::scenario::Resource {
                name: "r".into(),
                arbitration: Arbitration::ArrivalOrder,
                outage: None,
                backlog: 0,
            }],
            sources: vec![source(Some(regulator), vec![command])],
            tandems: Vec::new(),
        };
        // Itself and its like: 10 ticks, and 4 times 10 of waiting.
        let stays = Stays::new(&scenario);
        assert_eq!(stays.0.values().collect::<Vec<_>>(), [&50]);
        let seen = Rival::new(
            &scenario.sources[0],
            0,
            None,
            &stays,
            |c| c.at(0),
            |s| u128::from(s.occupancy),
        );
        assert_eq!(seen.in_window_by_slots(0, 1000), 70);
        assert_eq!(seen.in_window(0, 1000), 30);
        // Over 1950 ticks with the 50 before: 3 refills and the limit, 5, against 4 and 2 refills and the limit, 8.
        assert_eq!(seen.in_window(1950, 1000), 50);
        assert_eq!(seen.in_window_by_slots(1950, 1000), 80);
    }

    #[test]
    fn round_robin_order() {
        // Own input: 1 packet ahead (5 ticks). Other input with longest packet 7: once before each of the two.
        let own = source(None, vec![class(1, 1, 0, 5, 0)]);
        let other = source(None, vec![class(1, 8, 0, 7, 1), class(1, 8, 0, 3, 1)]);
        let rivals = [rival(&own), rival(&other)];
        assert_eq!(
            order_bound(Arbitration::RoundRobin, &rivals, &Step::fixed(0)),
            5 + 2 * 7
        );
        assert_eq!(
            order_bound(Arbitration::ArrivalOrder, &rivals, &Step::fixed(0)),
            5 + 8 * 7 + 8 * 3
        );
    }

    #[test]
    fn classes_that_share_slots_are_not_under_way_together() {
        let mut classes = vec![
            class(1, 8, 0, 5, 0),
            class(1, 1, 0, 30, 0),
            class(1, 2, 0, 1, 0),
        ];
        let bound = |classes: &[TransactionClass]| {
            let s = source(None, classes.to_vec());
            let fifo = order_bound(Arbitration::ArrivalOrder, &[rival(&s)], &Step::fixed(0));
            (
                fifo,
                order_bound(Arbitration::RoundRobin, &[rival(&s)], &Step::fixed(0)),
            )
        };
        assert_eq!(bound(&classes), (72, 72));
        classes[0].pool = Some(Pool::Command);
        classes[1].pool = Some(Pool::Command);
        // The greater of 8 * 5 and 30, and the third.
        assert_eq!(bound(&classes), (42, 42));
        // Two sources on one tile give the same; on two tiles, each has its own.
        let mut sources = [source(None, classes.clone()), source(None, classes)];
        let both = |sources: &[Source]| {
            let rivals: Vec<_> = sources.iter().map(rival).collect();
            order_bound(Arbitration::ArrivalOrder, &rivals, &Step::fixed(0))
        };
        assert_eq!(both(&sources), 44);
        sources[1].tile = 1;
        assert_eq!(both(&sources), 84);
    }

    #[test]
    fn empty_bucket_holds_back() {
        // 10 bytes every 100 ticks; 64 bytes need 7 refills. Two of them 13 if nothing is lost, else 7 each.
        let mut regulator = Regulator {
            rate: 100,
            limit: 64,
            period: 100,
            credit: 0,
            line: u32::MAX,
        };
        assert_eq!(own_bucket(&regulator, &[(1, 64)], 64, 1000), 700);
        assert_eq!(own_bucket(&regulator, &[(2, 64)], 64, 1000), 1400);
        regulator.limit = 74;
        assert_eq!(own_bucket(&regulator, &[(2, 64)], 64, 1000), 1300);
        // 36 bytes owed: 164 in all.
        regulator.credit = 36;
        assert_eq!(own_bucket(&regulator, &[(2, 64)], 64, 1000), 1700);
    }
}
