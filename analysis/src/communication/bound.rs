//! The bound over the actual path, of one transaction or of a whole sequence.
//!
//! Adds what [`super::interference`] bounds at each resource to the time without contention. Knows nothing about where a scenario comes
//! from.

use super::interference::{Rival, Stays, Victim, least_window, order_bound, outages, own_bucket};
use super::lumped::lumped;
use super::scenario::{CommunicationError, NetworkScenario, Step, Ticks, TransactionId};
use super::tandem::{self, Joined};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// One part of a sequence: computation and transactions in any order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stage {
    /// Name for reports.
    pub name: String,
    /// Ticks that pass without the network.
    pub compute: Ticks,
    /// The transactions, and how often each is done.
    pub transactions: Vec<(TransactionId, u64)>,
    /// `compute` was measured without others, and included the transactions' own time (it may be in another measured stage). Then each
    /// transaction counts only the time by which it may exceed its minimum, for example because its row was open.
    pub measured: bool,
}

/// A sequence whose end-to-end time is to be bounded: stages in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Work {
    /// The stages.
    pub stages: Vec<Stage>,
    /// The stages list every transaction of their source while they run. Otherwise other transactions of the source may be outstanding,
    /// as many as its slots allow.
    pub covers_sources: bool,
}

impl Work {
    /// This many equal transactions; nothing else is known of their source.
    pub fn of(id: TransactionId, count: u64) -> Self {
        let stage = Stage {
            name: String::new(),
            compute: 0,
            transactions: vec![(id, count)],
            measured: false,
        };
        Self {
            stages: vec![stage],
            covers_sources: false,
        }
    }
}

/// The method that decided a bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// Order of service and a bounded number of outstanding transactions; needs no regulation.
    Order,
    /// The amount that token buckets, demand and round trips admit in a window.
    Window,
    /// The same, where what was outstanding at the start of the window is bounded by when it must have taken its tokens.
    Propagated,
    /// Any of these, with a memory and the link behind it as one server in arrival order.
    Tandem,
    /// One slot of each other requester before each access.
    Turns,
    /// The slots that shares of a memory's bandwidth give to others before each access.
    Shares,
    /// The lumped link; only where it happens to be the smallest.
    LumpedLink,
}

impl Method {
    /// The name of the method, and where it is described.
    pub const fn source(self) -> &'static str {
        match self {
            Method::Order => {
                "order of service: Rahmati et al., IEEE Transactions on Computers 62(3), 2013 (best-effort networks)"
            }
            Method::Window => {
                "window, network calculus for any order (SFA): Le Boudec and Thiran, Network Calculus, 2001, sections 1.4 and 6.2; Boyer et al., ERTS 2018"
            }
            Method::Propagated => {
                "window with propagated arrival curves (as TFA): Cruz, IEEE Transactions on Information Theory 37(1), 1991; Le Boudec and Thiran, Network Calculus, 2001, sections 1.4.3 and 6.2"
            }
            Method::Tandem => {
                "FIFO tandem, a memory and its link as one server (as LUDB): Lenzini, Mingozzi, Stea, Performance Evaluation 65, 2008; Baccelli et al., Synchronization and Linearity, 1992, section 1.2.5"
            }
            Method::Turns => {
                "turns: one slot of each other hart before each access (round robin over requesters, after Paolieri et al., ECRTS 2009)"
            }
            Method::Shares => {
                "shares: reserved slots of each window, and start-time fair queueing of the others (Goyal, Vin and Cheng, SIGCOMM 1996)"
            }
            Method::LumpedLink => "lumped link: Balakrishnan and Ozguner, IEEE TPDS 9(7), 1998",
        }
    }
}

/// Waiting at one resource.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ResourceWait {
    /// Name of the resource.
    pub resource: String,
    /// Longest wait in all, in ticks.
    pub wait: Ticks,
    /// The method that decided it.
    pub method: Method,
}

/// A bound in ticks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Bound {
    /// The bound over the actual path, from when the tokens are available: no observation may exceed it.
    pub path: Ticks,
    /// The lumped-link bound of the same; `None` if it is not finite (or beyond 64 bits).
    pub lumped: Option<Ticks>,
    /// Part of `path` without any contention.
    pub uncontended: Ticks,
    /// Longest wait for tokens in the victim's own bucket, not in `path`.
    pub own_bucket: Ticks,
    /// Part of `path` at each resource, in the scenario's order.
    pub breakdown: Vec<ResourceWait>,
    /// The method that decided most of the waiting.
    pub method: Method,
}

impl Bound {
    /// The path and the wait for tokens.
    pub fn whole(&self) -> Ticks {
        self.path.saturating_add(self.own_bucket)
    }

    /// `path` in picoseconds, rounded up.
    pub fn picoseconds(&self, ticks_per_second: u64) -> u128 {
        to_picoseconds(self.path, ticks_per_second)
    }
}

/// Ticks in picoseconds, rounded up; 0 for a clock without ticks.
fn to_picoseconds(ticks: Ticks, ticks_per_second: u64) -> u128 {
    match ticks_per_second {
        0 => 0,
        rate => (u128::from(ticks) * 1_000_000_000_000).div_ceil(u128::from(rate)),
    }
}

/// A bound with the part of each stage that needs no network resource.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FlowBound {
    /// The bound of the whole.
    pub bound: Bound,
    /// Name, computation and uncontended transactions of each stage, in ticks.
    pub stages: Vec<(String, Ticks, Ticks)>,
}

/// Longest time of one transaction, from the moment when its source has the tokens for it to its last step, beside everything that the
/// scenario's sources may do, including other transactions of its own source; and before that, the longest wait for tokens.
///
/// # Errors
/// [`CommunicationError`] if the scenario is wrong.
pub fn transaction_bound(
    scenario: &NetworkScenario,
    id: TransactionId,
) -> Result<Bound, CommunicationError> {
    Ok(flow_bound(scenario, &Work::of(id, 1))?.bound)
}

/// Longest time of a sequence of stages. Its transactions may overlap within a stage; the bound takes them one by one.
///
/// # Errors
/// [`CommunicationError`] if the scenario is wrong.
pub fn flow_bound(
    scenario: &NetworkScenario,
    work: &Work,
) -> Result<FlowBound, CommunicationError> {
    scenario.validate()?;
    beside(scenario, tandem::joined(scenario).as_ref(), work)
}

/// The same for a valid scenario, whose joined tandems ([`tandem::joined`]) are given.
pub(super) fn beside(
    scenario: &NetworkScenario,
    joined: Option<&Joined>,
    work: &Work,
) -> Result<FlowBound, CommunicationError> {
    let mut least = over_resources(scenario, work, &BTreeSet::new())?;
    if let Some(Joined { scenario, whole }) = joined
        && let Ok(other) = over_resources(scenario, work, whole)
        && other.bound.path < least.bound.path
    {
        least.bound = Bound {
            uncontended: least.bound.uncontended,
            ..other.bound
        };
    }
    let bucket = u128::from(least.bound.own_bucket);
    let fixed = u128::from(least.bound.uncontended).saturating_add(bucket);
    // It began with the wait for tokens.
    let lump = lumped(scenario, work, fixed)?.map(|lump| lump.saturating_sub(bucket));
    if lump.is_some_and(|lump| lump < u128::from(least.bound.path)) {
        least.bound.method = Method::LumpedLink;
    }
    least.bound.lumped = lump.and_then(|lump| Ticks::try_from(lump).ok());
    let path = least.bound.path;
    least.bound.path = least.bound.lumped.map_or(path, |lump| lump.min(path));
    Ok(least)
}

/// The sum over the resources. `whole`: those that are a whole tandem.
fn over_resources(
    scenario: &NetworkScenario,
    work: &Work,
    whole: &BTreeSet<usize>,
) -> Result<FlowBound, CommunicationError> {
    let mut stages = Vec::new();
    let mut uncontended = 0u128;
    let mut counts: BTreeMap<TransactionId, u128> = BTreeMap::new();
    for stage in &work.stages {
        let mut network = 0u128;
        for &(id, count) in &stage.transactions {
            let (_, class) = scenario.class(id)?;
            let known = match stage.measured {
                true => u128::from(class.least_round_trip),
                false => 0,
            };
            let each = class.uncontended().saturating_sub(known);
            network = network.saturating_add(u128::from(count).saturating_mul(each));
            *counts.entry(id).or_default() += u128::from(count);
        }
        uncontended = uncontended
            .saturating_add(u128::from(stage.compute))
            .saturating_add(network);
        stages.push((stage.name.clone(), stage.compute, fit(network)?));
    }
    counts.retain(|_, count| *count > 0);
    let bucket = bucket_waits(scenario, &counts, work.covers_sources)?;
    let fixed = uncontended.saturating_add(bucket);

    let stays = Stays::new(scenario);
    let mut resources = Vec::new();
    for index in 0..scenario.resources.len() {
        if let Some(seen) = Contended::new(scenario, &stays, work.covers_sources, &counts, index)? {
            resources.push(seen);
        }
    }
    let most = resources
        .iter()
        .fold(fixed, |sum, r| sum.saturating_add(r.cap));
    let path = least_window(most, |w| {
        resources
            .iter()
            .fold(fixed, |sum, r| sum.saturating_add(r.wait(w).0))
    })
    .unwrap_or(most);
    let mut breakdown = Vec::new();
    for seen in &resources {
        let (wait, method) = seen.wait(path);
        let method = match whole.contains(&seen.index) {
            true => Method::Tandem,
            false => method,
        };
        let resource = scenario.resources[seen.index].name.clone();
        breakdown.push(ResourceWait {
            resource,
            wait: fit(wait)?,
            method,
        });
    }
    let longest = breakdown.iter().max_by_key(|r| r.wait);
    let method = longest.map_or(Method::Order, |r| r.method);
    // All began with the wait for tokens.
    let path = path.saturating_sub(bucket);
    Ok(FlowBound {
        bound: Bound {
            path: fit(path)?,
            lumped: None,
            uncontended: fit(uncontended)?,
            own_bucket: fit(bucket)?,
            breakdown,
            method,
        },
        stages,
    })
}

fn fit(ticks: u128) -> Result<Ticks, CommunicationError> {
    Ticks::try_from(ticks).map_err(|_| CommunicationError::TooLarge)
}

/// Time in the victims' own token buckets, which serve in order. Unless the sequence is everything that its sources do, whatever else
/// they may have outstanding is charged first.
fn bucket_waits(
    scenario: &NetworkScenario,
    counts: &BTreeMap<TransactionId, u128>,
    covers: bool,
) -> Result<u128, CommunicationError> {
    let mut charged: BTreeMap<usize, Vec<(u128, u64)>> = BTreeMap::new();
    for (&id, &count) in counts {
        let (_, class) = scenario.class(id)?;
        charged
            .entry(id.source)
            .or_default()
            .push((count, class.charge_most));
    }
    let mut sum = 0u128;
    for (index, mut transactions) in charged {
        let source = &scenario.sources[index];
        let Some(regulator) = &source.regulator else {
            continue;
        };
        let largest = source
            .classes
            .iter()
            .map(|c| c.charge_most)
            .max()
            .unwrap_or(0);
        if !covers {
            // What is ahead of one transaction may be ahead of each of them again, and so may its credit.
            let number: u128 = transactions.iter().map(|(count, _)| count).sum();
            let classes = source.classes.iter();
            let all = classes
                .clone()
                .map(|c| (number * u128::from(c.outstanding), c.charge_most));
            let places = u128::from(regulator.line.saturating_sub(1));
            let waiting: u128 = classes.map(|c| u128::from(c.outstanding)).sum();
            if places < waiting {
                transactions.push((number * places, largest));
                transactions.push((number, regulator.credit));
            } else {
                transactions.extend(all);
            }
        }
        sum = sum.saturating_add(own_bucket(
            regulator,
            &transactions,
            largest,
            scenario.ticks_per_second,
        ));
    }
    Ok(sum)
}

/// A resource on the path, with everything that can keep it from the sequence.
struct Contended<'a> {
    scenario: &'a NetworkScenario,
    index: usize,
    /// Sum over the transactions of each one's own bound here.
    cap: u128,
    cap_method: Method,
    /// Sum over the transactions of what the order of service lets others do before each, without outages, which count once, in the
    /// window of the whole sequence.
    order: u128,
    /// The sources whose traffic counts in the window of the whole sequence.
    rivals: Vec<Rival<'a>>,
    /// Service of the sequence's own transactions, each of which may keep another one waiting.
    own: u128,
}

impl<'a> Contended<'a> {
    fn new(
        scenario: &'a NetworkScenario,
        stays: &Stays,
        covers: bool,
        counts: &BTreeMap<TransactionId, u128>,
        index: usize,
    ) -> Result<Option<Self>, CommunicationError> {
        let mut users = BTreeSet::new();
        for id in counts.keys() {
            let (_, class) = scenario.class(*id)?;
            if class.own_steps(index).next().is_some() {
                users.insert(id.source);
            }
        }
        let demanded = |source: usize| {
            let mut classes = scenario.sources[source].classes.iter();
            classes.any(|class| class.demand.is_some())
        };
        // What these do here is the sequence's own, because it lists everything. With a demand, jobs before and after this one count,
        // unless nothing else of the sequence passes here.
        let listed: BTreeSet<usize> = match covers {
            true => counts.keys().map(|id| id.source).collect(),
            false => BTreeSet::new(),
        };
        let mine: BTreeSet<usize> = listed
            .into_iter()
            .filter(|&source| (users.len() == 1 && users.contains(&source)) || !demanded(source))
            .collect();
        let (mut cap, mut own, mut order) = (0u128, 0u128, 0u128);
        let mut of_others = 0u128;
        let mut least = u128::MAX;
        let mut cap_method = Method::Order;
        for (&id, &count) in counts {
            let (_, class) = scenario.class(id)?;
            for step in class.own_steps(index) {
                let (wait, method) = single(scenario, stays, id, index, step, &BTreeSet::new())?;
                let rivals = rivals(scenario, stays, index, Some(id));
                let before = order_bound(scenario.resources[index].arbitration, &rivals, step)
                    .saturating_add(scenario.tail(index));
                order = order.saturating_add(count.saturating_mul(before));
                if !mine.is_empty() {
                    let (wait, _) = single(scenario, stays, id, index, step, &mine)?;
                    of_others = of_others.saturating_add(count.saturating_mul(wait));
                }
                cap = cap.saturating_add(count.saturating_mul(wait));
                cap_method = method;
                own = own.saturating_add(count.saturating_mul(u128::from(step.occupancy)));
                least = least.min(step.occupancy.into());
            }
        }
        if users.is_empty() {
            return Ok(None);
        }
        // The others do not wait for the transaction served last.
        own = own.saturating_sub(least);
        let mut rivals: Vec<_> = rivals(scenario, stays, index, None)
            .into_iter()
            .map(Some)
            .collect();
        // What was outstanding when the sequence began reaches it, once.
        for &source in &mine {
            let begun = rivals.get_mut(source).and_then(Option::take);
            own = own.saturating_add(begun.map_or(0, |rival| rival.under_way()));
        }
        // While one of its transactions waits for another one, that one is served: once, because it is the sequence's own. Everything
        // else that it waits for belongs to others and is counted for the transaction that is ahead of all others of the sequence in its
        // queue.
        if !mine.is_empty() {
            cap = cap.min(of_others.saturating_add(own));
        }
        let own = if covers { own } else { 0 };
        let rivals = rivals.into_iter().flatten().collect();
        Ok(Some(Self {
            scenario,
            index,
            cap,
            cap_method,
            order,
            rivals,
            own,
        }))
    }

    /// Longest wait here if the whole sequence takes `window`.
    fn wait(&self, window: u128) -> (u128, Method) {
        let resource = &self.scenario.resources[self.index];
        let down = outages(resource.outage.as_ref(), window);
        // Work that was over before the sequence began, such as an earlier sequence of the same source, may still be in service.
        let start = self
            .own
            .saturating_add(self.scenario.tail(self.index))
            .saturating_add(down);
        let (sum, method) = others(&self.rivals, start, window, self.scenario.ticks_per_second);
        let order = self.order.saturating_add(down);
        if sum < self.cap.min(order) {
            (sum, method)
        } else if order < self.cap {
            (order, Method::Order)
        } else {
            (self.cap, self.cap_method)
        }
    }
}

/// The maximum service of others in a window, on top of `start`, and what decided it.
fn others(
    rivals: &[Rival<'_>],
    start: u128,
    window: u128,
    ticks_per_second: u64,
) -> (u128, Method) {
    let mut method = Method::Window;
    let sum = rivals.iter().fold(start, |sum, rival| {
        let least = rival.in_window(window, ticks_per_second);
        if least < rival.in_window_by_slots(window, ticks_per_second) {
            method = Method::Propagated;
        }
        sum.saturating_add(least)
    });
    (sum, method)
}

/// All sources as `resource` sees them; what cannot be under way together with `victim` is not counted.
fn rivals<'a>(
    scenario: &'a NetworkScenario,
    stays: &Stays,
    resource: usize,
    victim: Option<TransactionId>,
) -> Vec<Rival<'a>> {
    let victim = victim.and_then(|id| Victim::new(scenario, id));
    let all = scenario.sources.iter().enumerate();
    all.map(|(index, source)| {
        Rival::new(
            source,
            index,
            victim,
            stays,
            |c| c.at(resource),
            |s| u128::from(s.occupancy),
        )
    })
    .collect()
}

/// Longest wait of one transaction at one resource for others, without those of the sources `except`.
fn single(
    scenario: &NetworkScenario,
    stays: &Stays,
    id: TransactionId,
    resource: usize,
    step: &Step,
    except: &BTreeSet<usize>,
) -> Result<(u128, Method), CommunicationError> {
    let rivals = rivals(scenario, stays, resource, Some(id))
        .into_iter()
        .enumerate();
    let rivals: Vec<_> = rivals
        .filter(|(index, _)| !except.contains(index))
        .map(|(_, rival)| rival)
        .collect();
    let shared = &scenario.resources[resource];
    let tail = scenario.tail(resource);
    let down = |w| outages(shared.outage.as_ref(), w).saturating_add(tail);
    let order = order_bound(shared.arbitration, &rivals, step);
    let any = order == u128::MAX;
    let order = least_window(u128::MAX, |w| order.saturating_add(down(w)));
    let second = scenario.ticks_per_second;
    let cap = order.unwrap_or(u128::MAX);
    let window = least_window(cap, |w| others(&rivals, down(w), w, second).0);
    match (window, order) {
        (Some(w), _) => Ok((w, others(&rivals, down(w), w, second).1)),
        (None, Some(order)) => Ok((order, Method::Order)),
        (None, None) if any => Err(CommunicationError::Overtaken(shared.name.clone())),
        (None, None) => Err(CommunicationError::TooLarge),
    }
}
