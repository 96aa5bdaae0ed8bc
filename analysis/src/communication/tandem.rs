//! Two consecutive servers that serve in order of arrival, as one server.
//!
//! Why it exists: a memory answers in the order of service, and its answers leave the tile over one link. A transaction that is ahead at
//! the memory is also ahead at the link, so it delays another one only by the longer of its two services: its burst is paid once, as LUDB
//! pays it over a FIFO tandem. This module knows neither windows nor paths: it turns a scenario into one with fewer resources.
//!
//! # Why this holds
//! Let `v` come to the first server at `t` and begin service at the second one at `b`. Let `A` be all that is ahead of it at `t`, at either
//! server or between them, and for each of `A` let `x` be the longer of its services. Let `q` be the one whose arrival at the second server
//! began the busy period in which `v` is served there, and `l` what `q` takes from its service at the first one to its arrival at the second one.
//! - `q` came before `t`: the second server is busy from `t` to `b` with `A`, so `b - t` is at most the sum of all `x`.
//! - `q` is `v`: it waited for services of `A` at the first server, then took `l`.
//! - otherwise the first server is busy from `t` with those of `A` before `q`, `q` takes `l`, and the second server is busy with `q` and those
//!   behind it: at most the sum of all `x`, plus `l`, plus what `q`'s two services exceed its `x` by, less the first one.
//!
//! So one server in order of arrival with services `x` and, for `v`, the greatest of these `l` in place of its own is never faster. (It is the
//! greatest sum over the paths through a grid of jobs and servers: F. Baccelli, G. Cohen, G. J. Olsder, J.-P. Quadrat, *Synchronization and
//! Linearity*, Wiley 1992, section 1.2.5. For token buckets and rates it is LUDB of a sink tree: Lenzini, Mingozzi and Stea 2008.)
//!
//! In a sequence of transactions, what is ahead of one has left the second server before that one is served there, so it is not ahead of
//! the next one. Each transaction of others therefore counts once in a window, too. On one slot, those that count begin their service at
//! the second server a round trip apart, and not earlier than `x` before the window.

use super::scenario::{Arbitration, NetworkScenario, Source, Step, Tandem, Ticks};
use std::collections::BTreeSet;

/// A scenario with all its tandems joined. Sources and classes are those of the scenario, in the same order.
#[derive(Clone, Debug)]
pub(super) struct Joined {
    /// The scenario.
    pub scenario: NetworkScenario,
    /// Resources that now represent a whole tandem.
    pub whole: BTreeSet<usize>,
}

/// The scenario with all its tandems joined; `None` if there are none.
///
/// A tandem stays as it is if a transaction reaches the second server without passing the first one, or if it serves in another order.
pub(super) fn joined(scenario: &NetworkScenario) -> Option<Joined> {
    let mut all = scenario.clone();
    let mut whole = BTreeSet::new();
    for tandem in &scenario.tandems {
        if in_order(&all, tandem)
            && let Some(sources) = sources(&all, tandem)
        {
            all.sources = sources;
            all.resources[tandem.first].name.push_str(" and its link");
            whole.insert(tandem.first);
        }
    }
    (!whole.is_empty()).then_some(Joined {
        scenario: all,
        whole,
    })
}

/// Both serve in order of arrival, and the second one never idles while something waits.
fn in_order(scenario: &NetworkScenario, tandem: &Tandem) -> bool {
    let first = &scenario.resources[tandem.first];
    let steps = || {
        let classes = scenario.sources.iter().flat_map(|s| &s.classes);
        classes.flat_map(|class| &class.steps)
    };
    let one_input = |behind: usize| {
        let mut inputs = steps().filter(|s| s.resource == Some(behind));
        let input = inputs.next().map(|s| s.input);
        inputs.all(|s| Some(s.input) == input)
    };
    let second = |&behind: &usize| {
        let resource = &scenario.resources[behind];
        let order = match resource.arbitration {
            Arbitration::ArrivalOrder => true,
            Arbitration::RoundRobin => one_input(behind),
            Arbitration::LimitedPassing | Arbitration::Turns { .. } | Arbitration::AnyOrder => {
                false
            }
        };
        order && resource.outage.is_none() && resource.backlog == 0
    };
    first.arbitration == Arbitration::ArrivalOrder
        && first.backlog == 0
        && tandem.behind.iter().all(second)
}

/// A transaction at both servers.
struct Passage {
    first: Step,
    second: Step,
    /// The longest time from its service at the first server to its arrival at the second one.
    between: Ticks,
}

impl Passage {
    /// The passage that starts with this step, and its number of steps; `None` if the steps do not lead to the second server.
    fn new(steps: &[Step], tandem: &Tandem) -> Option<(Self, usize)> {
        let (&first, rest) = steps.split_first()?;
        let way = rest.iter().position(|step| step.resource.is_some())?;
        let second = rest[way];
        let leads = first.resource == Some(tandem.first)
            && second
                .resource
                .is_some_and(|behind| tandem.behind.contains(&behind))
            && first.elsewhere == second.elsewhere;
        let fixed = rest[..way].iter().map(|step| step.latency);
        let passage = Self {
            first,
            second,
            between: fixed.fold(first.latency, Ticks::saturating_add),
        };
        leads.then_some((passage, way + 2))
    }

    fn longer(&self) -> Ticks {
        self.first.occupancy.max(self.second.occupancy)
    }

    /// The time that it adds to the services of all transactions ahead, if its arrival begins a busy period of the second server.
    fn corner(&self) -> Ticks {
        let sum = self.between.saturating_add(self.second.occupancy);
        sum.saturating_sub(self.longer())
    }

    fn joined(&self, corner: Ticks) -> Step {
        Step {
            occupancy: self.longer(),
            // At most one finished transaction still occupies one of the servers, and the sum above begins at one of them.
            tail: self.first.tail.max(self.second.tail),
            latency: self.between.max(corner).saturating_add(self.second.latency),
            ..self.first
        }
    }
}

/// A part of a transaction: both servers, or another step.
enum Part {
    Passage(Passage),
    Step(Step),
}

/// `None` if it reaches the second server in another way.
fn parts(mut steps: &[Step], tandem: &Tandem) -> Option<Vec<Part>> {
    let mut all = Vec::new();
    while let Some(step) = steps.first() {
        let length = match Passage::new(steps, tandem) {
            Some((passage, length)) => {
                all.push(Part::Passage(passage));
                length
            }
            None if step.resource.is_some_and(|r| tandem.behind.contains(&r)) => return None,
            None => {
                all.push(Part::Step(*step));
                1
            }
        };
        steps = &steps[length..];
    }
    Some(all)
}

/// All sources with each passage as one step; `None` if one of them reaches the second server by another path.
fn sources(scenario: &NetworkScenario, tandem: &Tandem) -> Option<Vec<Source>> {
    let mut divided = Vec::new();
    let mut corner = 0;
    for class in scenario.sources.iter().flat_map(|s| &s.classes) {
        let parts = parts(&class.steps, tandem)?;
        for part in &parts {
            // A source's work elsewhere is also listed by the source for which it is done.
            if let Part::Passage(passage) = part
                && !passage.first.elsewhere
            {
                corner = corner.max(passage.corner());
            }
        }
        divided.push(parts);
    }
    let mut sources = scenario.sources.clone();
    let classes = sources.iter_mut().flat_map(|s| &mut s.classes);
    for (class, parts) in classes.zip(divided) {
        let steps = parts.into_iter().map(|part| match part {
            Part::Step(step) => step,
            Part::Passage(passage) if passage.first.elsewhere => passage.joined(0),
            Part::Passage(passage) => passage.joined(corner),
        });
        class.steps = steps.collect();
    }
    Some(sources)
}
