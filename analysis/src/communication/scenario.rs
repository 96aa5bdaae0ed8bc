//! The input of the analysis: resources, sources of traffic, and the steps of their transactions.
//!
//! Why it exists: the analysis must not depend on how a chip is described or simulated. The builder of a [`NetworkScenario`] vouches for
//! its meaning: occupancies and latencies are upper bounds, round trips lower bounds.

use serde::Serialize;
use thiserror::Error;

/// A moment or a span, in the platform's tick.
pub type Ticks = u64;

/// Everything that shares resources.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NetworkScenario {
    /// Ticks per second, positive.
    pub ticks_per_second: u64,
    /// Links, memory controllers, receive units.
    pub resources: Vec<Resource>,
    /// The senders, including the victim.
    pub sources: Vec<Source>,
    /// Resources that follow each other in order.
    pub tandems: Vec<Tandem>,
}

/// A resource that passes on its transactions in the order of service, and the resources that it passes them on to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tandem {
    /// The resource.
    pub first: usize,
    /// Everything that arrives at these comes from that resource, in that order.
    pub behind: Vec<usize>,
}

/// Something that serves one transaction at a time and never idles while one waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resource {
    /// Name for reports, such as `link router0 -> memory8`.
    pub name: String,
    /// How it chooses the next transaction.
    pub arbitration: Arbitration,
    /// Time in which it serves nothing.
    pub outage: Option<Outage>,
    /// Maximum work that it has acknowledged but not done yet (a write queue): a new arrival may find all of it.
    pub backlog: Ticks,
}

/// Order of service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arbitration {
    /// Round robin over inputs, in order of arrival within an input, not preemptive.
    RoundRobin,
    /// In order of arrival, not preemptive.
    ArrivalOrder,
    /// In arrival order, except for [`Step::passed`] of later arrivals; not preemptive.
    LimitedPassing,
    /// As [`Arbitration::LimitedPassing`] within a queue; whenever work of one input has been served, at most as much of the work
    /// acknowledged before follows, in turns of at least `least` units of it.
    Turns {
        /// Each turn costs at most one unit more.
        least: u64,
    },
    /// In any order, not preemptive: only limits on what others send bound a wait.
    AnyOrder,
}

/// Regular time without service, such as the refresh of a memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outage {
    /// Distance between two starts, positive.
    pub period: Ticks,
    /// How late it may start, because it lets the transaction in progress end.
    pub jitter: Ticks,
    /// Length, including its cost for the next transaction.
    pub duration: Ticks,
}

/// A source of traffic: what one tile (or one activity on it) may send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// Name for reports.
    pub name: String,
    /// Tile.
    pub tile: u16,
    /// Token bucket that all its transactions pass, if it is regulated.
    pub regulator: Option<Regulator>,
    /// Kinds of transactions that it may send.
    pub classes: Vec<TransactionClass>,
}

/// A token bucket of hardware: every `period` it gains `rate * period / ticks_per_second` bytes (fractions are kept) up to `limit`; a
/// transaction leaves when its bytes are available, or when the bucket is full, and takes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Regulator {
    /// Bytes per second, positive.
    pub rate: u64,
    /// Maximum bytes in the bucket.
    pub limit: u64,
    /// Ticks between two refills, positive.
    pub period: Ticks,
    /// Bytes that may leave before they are paid for, in addition to `limit`; while that much is owed, nothing else leaves.
    pub credit: u64,
    /// The most transactions that wait in its line, in order; any others wait before they enter it.
    pub line: u32,
}

/// Transactions of a kind: the same steps, the same size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransactionClass {
    /// Name for reports, such as `line read`.
    pub name: String,
    /// The fewest bytes that one takes from the token bucket.
    pub charge: u64,
    /// The most bytes that one takes from it.
    pub charge_most: u64,
    /// Maximum outstanding transactions of this class of the source. 0: no other transaction meets them as such, because other classes
    /// represent their parts (the packets of a message); they can nevertheless be bounded.
    pub outstanding: u32,
    /// Least time from the end of one to the end of the next one on the same slot: the least time of one without contention, and the least rest
    /// before it; 0 if unknown. A least distance between starts is no such time, because one that waited long may end just before the next one
    /// begins ([`Demand`] is for these).
    pub least_round_trip: Ticks,
    /// The owner of their slots, if classes of the same tile share them.
    pub pool: Option<Pool>,
    /// The known limits of their number, beyond the token bucket.
    pub demand: Option<Demand>,
    /// The steps of one, in order.
    pub steps: Vec<Step>,
}

/// Parts of a tile whose slots are shared by all of its classes of that kind, whichever application on the tile they belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pool {
    /// Miss registers.
    Reads,
    /// The write-back buffer.
    WriteBacks,
    /// The one command of the data transfer unit: transfers or a message. While a transaction of one command is outstanding, none of
    /// another one is.
    Command,
}

/// At most `count` transactions belong to each period, and each of them is over (including the resources that it used) at most `jitter`
/// after the start of its period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    /// Transactions.
    pub count: u64,
    /// Ticks, positive.
    pub period: Ticks,
    /// Ticks.
    pub jitter: Ticks,
}

impl Demand {
    /// Maximum number of transactions outstanding at some moment of a window of this length: those of the periods that began in it or up to
    /// `jitter` before it.
    pub(super) fn in_window(&self, window: u128) -> u128 {
        let periods =
            window.saturating_add(self.jitter.into()) / u128::from(self.period.max(1)) + 1;
        u128::from(self.count).saturating_mul(periods)
    }
}

/// One step of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The resource that must be won, if any: an index into [`NetworkScenario::resources`].
    pub resource: Option<usize>,
    /// The resource's input through which the transaction comes (round robin, turns); any number, equal for the same queue.
    pub input: u16,
    /// Longest time for which the resource then serves nobody else.
    pub occupancy: Ticks,
    /// Where younger transactions may pass ([`Arbitration::LimitedPassing`]): the longest time that this costs a transaction after all
    /// older ones have left.
    pub passed: Ticks,
    /// Under [`Arbitration::Turns`]: the longest time that goes to others before it in any case, in addition to the backlog.
    pub queued: Ticks,
    /// How much of the occupancy may lie after the end of the whole transaction, when its source may issue the next
    /// (such as the recovery of a memory bank after a write). 0 if the resource is always left before.
    pub tail: Ticks,
    /// It is another source's work (lines that storing a message moves at its receiver), whose slots it occupies: it counts where tokens
    /// limit how often it happens, and no wait for it is attributed to this transaction.
    pub elsewhere: bool,
    /// Longest time from winning the resource (or reaching the step) to reaching the next step.
    pub latency: Ticks,
}

impl Step {
    /// Time that passes in any case.
    pub const fn fixed(latency: Ticks) -> Self {
        Self {
            resource: None,
            input: 0,
            occupancy: 0,
            passed: 0,
            queued: 0,
            tail: 0,
            elsewhere: false,
            latency,
        }
    }
}

/// A class of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct TransactionId {
    /// Index into [`NetworkScenario::sources`].
    pub source: usize,
    /// Index into [`Source::classes`].
    pub class: usize,
}

/// Why there is no bound.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CommunicationError {
    /// An index points nowhere.
    #[error("{what} {index} does not exist")]
    Missing {
        /// The missing thing.
        what: &'static str,
        /// Its index.
        index: usize,
    },
    /// A number that must be positive is 0.
    #[error("{what} of {name} must be positive")]
    NotPositive {
        /// The number.
        what: &'static str,
        /// The name of its owner.
        name: String,
    },
    /// The resource has no service time left.
    #[error("{0} is never in service: its outages fill its time")]
    NeverInService(String),
    /// Younger transactions may overtake, and nothing bounds how many.
    #[error(
        "{0} serves in any order, and its users together may send more than it serves: nothing bounds how many requests overtake"
    )]
    Overtaken(String),
    /// The bound is larger than what a 64-bit tick can hold.
    #[error("the bound does not fit into 64 bits of ticks")]
    TooLarge,
}

impl NetworkScenario {
    /// Checks what the analysis relies on.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn validate(&self) -> Result<(), CommunicationError> {
        let positive = |value: u64, what, name: &str| {
            if value == 0 {
                Err(CommunicationError::NotPositive {
                    what,
                    name: name.into(),
                })
            } else {
                Ok(())
            }
        };
        positive(self.ticks_per_second, "ticks a second", "the scenario")?;
        for resource in &self.resources {
            if let Some(outage) = resource.outage {
                positive(outage.period, "outage period", &resource.name)?;
                if outage.duration >= outage.period {
                    return Err(CommunicationError::NeverInService(resource.name.clone()));
                }
            }
        }
        for tandem in &self.tandems {
            let all = std::iter::once(&tandem.first).chain(&tandem.behind);
            if let Some(&index) = all.into_iter().find(|&&r| r >= self.resources.len()) {
                return Err(CommunicationError::Missing {
                    what: "resource",
                    index,
                });
            }
        }
        for source in &self.sources {
            if let Some(regulator) = source.regulator {
                positive(regulator.rate, "rate", &source.name)?;
                positive(regulator.period, "refill period", &source.name)?;
            }
            for class in &source.classes {
                if let Some(demand) = class.demand {
                    positive(demand.period, "demand period", &source.name)?;
                }
                for step in &class.steps {
                    if let Some(index) = step.resource.filter(|&r| r >= self.resources.len()) {
                        return Err(CommunicationError::Missing {
                            what: "resource",
                            index,
                        });
                    }
                }
            }
        }
        Ok(())
    }

    /// The source and class of a transaction.
    ///
    /// # Errors
    /// [`CommunicationError::Missing`].
    pub fn class(
        &self,
        id: TransactionId,
    ) -> Result<(&Source, &TransactionClass), CommunicationError> {
        let source = self
            .sources
            .get(id.source)
            .ok_or(CommunicationError::Missing {
                what: "source",
                index: id.source,
            })?;
        let class = source
            .classes
            .get(id.class)
            .ok_or(CommunicationError::Missing {
                what: "class",
                index: id.class,
            })?;
        Ok((source, class))
    }
}

impl NetworkScenario {
    /// The longest time for which work that its sources no longer count may still occupy `resource`: at most one finished transaction, and
    /// the work acknowledged early.
    pub(super) fn tail(&self, resource: usize) -> u128 {
        let classes = self.sources.iter().flat_map(|s| &s.classes);
        let steps = classes
            .flat_map(|c| &c.steps)
            .filter(|s| s.resource == Some(resource));
        let over = steps.map(|s| u128::from(s.tail)).max().unwrap_or(0);
        over + u128::from(self.resources[resource].backlog)
    }
}

impl TransactionClass {
    /// The transaction's own steps at a resource.
    pub(super) fn own_steps(&self, resource: usize) -> impl Iterator<Item = &Step> {
        let here = self.steps.iter();
        here.filter(move |s| s.resource == Some(resource) && !s.elsewhere)
    }

    /// All steps at a resource, including those of others that it causes.
    pub(super) fn at(&self, resource: usize) -> Vec<&Step> {
        let here = self.steps.iter();
        here.filter(|s| s.resource == Some(resource)).collect()
    }

    /// Time without any contention.
    pub fn uncontended(&self) -> u128 {
        self.steps.iter().map(|s| u128::from(s.latency)).sum()
    }
}
