//! What an application on the way of a flow works on beside the flow's message: messages of others, and earlier ones of the flow.
//!
//! Why it exists: who gets messages is a server. A message waits while its receiver works on those before it, in any order of service. What
//! it deliberately does not know: what a job costs and what delays it on the network.
//!
//! # Method
//! A job for each message, one message through each send gate in each job. Let a bound *P* count, for each application on the way, `N` jobs one
//! after the other. The work that is there at once with the flow's message is one busy period of the application; if at most `N` messages come
//! to it in *P*, it is over within *P*. So a *P* that admits at most its own `N` is a bound of the whole way (the least one is found by
//! iteration from one job each):
//! - of the flow itself those samples count that are not at the end when one begins: `ceil(P / T)`, *P* with the release jitter of who begins it.
//!   They are before it, because a gate keeps the order. With *P* up to *T* that is the sample itself. Where somebody sends through several gates,
//!   later samples may pass it, and as many count;
//! - of another application with period *T* and deadline *D* that sends to somebody on the way, `ceil((P + D) / T)`: its message comes at any time of
//!   its job, which is over by the deadline (the network's bounds assume that, too). Further along the way, its messages may have taken up to
//!   *P* more.

use crate::communication::sends_to;
use crate::plan::PlanError;
use bulkhead_model::System;

/// Rounds of the iteration, and jobs of one application, before the messages are taken to come faster than it works on them.
const ROUNDS: u32 = 100;
const JOBS_MAX: u64 = 10_000;

/// Messages that come to somebody on the way.
#[derive(Clone, Copy)]
struct Stream {
    /// For each job of its first application.
    messages: u64,
    period: u64,
    /// From the begin of a period to when the message is there at most, in nanoseconds.
    late: u64,
    /// It comes along the way, from an application before this one.
    along: bool,
}

/// Everything that applications on the way of a flow get, in the order of the way.
pub(super) struct Arrivals {
    apps: Vec<usize>,
    streams: Vec<Vec<Stream>>,
    /// Period of the flow, and samples of it that each application gets in each.
    period: u64,
    samples: Vec<u64>,
}

impl Arrivals {
    /// The senders to `apps`, and what they send; `known`: whether an application's jobs are known.
    ///
    /// # Errors
    /// Why that is not known.
    pub(super) fn new(
        system: &System,
        apps: &[usize],
        known: impl Fn(usize) -> bool,
    ) -> Result<Self, String> {
        let name = |app: usize| system.apps[app].name.as_str();
        let task = |app: usize| system.apps[app].task.as_ref();
        let mut all: Vec<Vec<Stream>> = Vec::new();
        let mut samples: Vec<u64> = Vec::new();
        for (at, &app) in apps.iter().enumerate() {
            let gates = |from: usize| {
                let gates = system.apps[from].sgates.iter();
                gates.filter(|gate| gate.to == app).count() as u64
            };
            if let Some(pager) = system.apps[app].pager.filter(|one| !apps.contains(one)) {
                return Err(format!(
                    "`{}` gets its pages from `{}`, whose work for others is not bounded here; with pages from the start it would be judged",
                    name(app),
                    name(pager)
                ));
            }
            let before = at.checked_sub(1);
            // Along the way, once for each gate.
            let times = before.map_or(1, |before| gates(apps[before]).max(1));
            let mut here: Vec<Stream> = Vec::new();
            for stream in before.map_or(&[][..], |before| &all[before]) {
                here.push(Stream {
                    messages: stream.messages.saturating_mul(times),
                    along: true,
                    ..*stream
                });
            }
            for from in (0..system.apps.len()).filter(|from| !apps.contains(from)) {
                if gates(from) == 0 {
                    continue;
                }
                let because = |why: &str| {
                    let (from, app) = (name(from), name(app));
                    Err(format!("`{from}` may send to `{app}`, and {why}"))
                };
                let Some(begins) = task(from).filter(|_| known(from)) else {
                    return because("it has no <task> with a cost, or shares its tile");
                };
                if sends_to(system, from) {
                    return because(
                        "it gets messages itself, so its own period does not say how often",
                    );
                }
                here.push(Stream {
                    messages: gates(from),
                    period: begins.period.nanoseconds(),
                    late: begins.deadline.nanoseconds(),
                    along: false,
                });
            }
            all.push(here);
            samples.push(before.map_or(1, |before| samples[before].saturating_mul(times)));
        }
        let first = apps.first().and_then(|&app| task(app));
        Ok(Self {
            apps: apps.to_vec(),
            streams: all,
            period: first.map_or(1, |task| task.period.nanoseconds()).max(1),
            samples,
        })
    }

    /// Jobs of each application that may be there with a sample if that takes `bound` at most, in nanoseconds.
    fn jobs(&self, bound: u64) -> Vec<(usize, u64)> {
        let each = self.apps.iter().zip(self.streams.iter().zip(&self.samples));
        each.map(|(&app, (streams, samples))| {
            let before = bound.div_ceil(self.period).max(1);
            let behind = if *samples > 1 { before - 1 } else { 0 };
            let own = before.saturating_add(behind).saturating_mul(*samples);
            let others = streams.iter().map(|stream| {
                let way = if stream.along { bound } else { 0 };
                let window = bound.saturating_add(stream.late).saturating_add(way);
                let jobs = window.div_ceil(stream.period.max(1));
                jobs.saturating_mul(stream.messages)
            });
            (app, others.fold(own, u64::saturating_add))
        })
        .collect()
    }

    /// The least bound that admits no more jobs than it counts, in nanoseconds, from the bound of so many jobs; `None` if there is none.
    ///
    /// # Errors
    /// Those of `bound`.
    pub(super) fn bound(
        &self,
        bound: impl Fn(&[(usize, u64)]) -> Result<Option<u64>, PlanError>,
    ) -> Result<Option<u64>, PlanError> {
        let mut jobs = self.jobs(0);
        for _ in 0..ROUNDS {
            let Some(found) = bound(&jobs)? else {
                return Ok(None);
            };
            let more = self.jobs(found);
            if more == jobs {
                return Ok(Some(found));
            }
            if more.iter().any(|(_, count)| *count > JOBS_MAX) {
                return Ok(None);
            }
            jobs = more;
        }
        Ok(None)
    }
}
