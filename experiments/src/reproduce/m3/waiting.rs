//! Figure 6: falling asleep and waking up, by the unit's sleep command, by a system call with `wfi`, and by polling.
//!
//! What it deliberately does not know: how the methods work. Software marks where a wait begins and where it has its
//! message; the times at which the hart stopped and the message arrived are observed from outside.

use super::beside::{self, Beside};
use super::pipelines::ALL;
use super::{Claim, Wanted};
use bulkhead_report::result::Sample;
use bulkhead_report::verdict::relation;
use bulkhead_runner::error::Error;
use bulkhead_runner::progress::Progress;
use bulkhead_runner::run::{self, Look, Options};
use bulkhead_runner::watch::Event;
use serde::Serialize;

/// The ways to wait, as the variants are named.
pub const METHODS: [&str; 3] = ["sleep", "syscall", "poll"];
/// Measured runs, and the warm-up runs before.
const RUNS: (u64, u64) = (100, 20);

/// One way to wait: averages over all runs, in cycles.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Waiting {
    /// Platform.
    pub platform: String,
    /// Name of the variant.
    pub method: String,
    /// From the beginning of the wait until the hart stops; `None` if it never does.
    pub suspend: Option<f64>,
    /// From the arrival of the message until the application has it.
    pub wake: f64,
    /// The longest of these.
    pub wake_worst: u64,
    /// Bound of the longest.
    pub bound: Beside,
    /// Cycles during which the hart was clocked, of a hundred between the beginning of the wait and the message.
    pub clocked: f64,
}

/// Runs the experiment.
pub fn run(wanted: Wanted, progress: &dyn Progress) -> Result<Vec<Waiting>, Error> {
    let mut all = Vec::new();
    for platform in wanted.pipelines.platforms() {
        let options = Options {
            system: "m3/sleep".into(),
            overrides: vec![format!("@platform={platform}")],
            ..Options::default()
        };
        let look = Look {
            harts: true,
            slices: Some((super::SHORT_SLICE, &METHODS)),
            ..Look::default()
        };
        let (finished, seen) = run::looked_at(&options, look, progress)?;
        let result = finished.result;
        let incomplete = |what: &str| Error::Machine(format!("m3/sleep on {platform}: {what}"));
        for (variant, seen) in result.variants.iter().zip(&seen) {
            let log = seen.log.as_ref();
            let log = log.ok_or_else(|| incomplete("no hart was watched"))?;
            let mut spans = variant.spans.iter();
            let span = spans.find(|span| span.application == "waiter");
            let span = span.ok_or_else(|| incomplete("the waiter measured nothing"))?;
            let tiles = variant.tiles.iter();
            let mut tiles = tiles.filter(|tile| tile.applications.iter().any(|a| a == "waiter"));
            let tile = tiles.next().map(|tile| tile.tile);
            let tile = tile.ok_or_else(|| incomplete("the waiter has no tile"))?;
            let (mut suspend, mut suspended, mut wake, mut worst) = (0, 0, 0, 0);
            let (mut slept, mut waited) = (0, 0);
            let mut count = 0;
            // A bound starts from all wake-ups, including the first ones with cold caches.
            let mut wakes = Vec::new();
            for sample in &span.samples {
                let (begin, end) = (sample.begin, sample.begin + sample.latency);
                let inside = || {
                    let events = log.of(tile);
                    events.filter(|(at, _)| (begin..=end).contains(at))
                };
                let mut messages = inside().filter(|(_, e)| matches!(e, Event::Message(_)));
                let (at, _) = messages
                    .next()
                    .ok_or_else(|| incomplete("a wait without a message"))?;
                wakes.push(Sample {
                    begin: at,
                    latency: end - at,
                    ..*sample
                });
                if sample.number < RUNS.1 {
                    continue;
                }
                count += 1;
                if let Some((at, _)) = inside().find(|(_, event)| *event == Event::Asleep) {
                    suspend += at - begin;
                    suspended += 1;
                }
                wake += end - at;
                worst = worst.max(end - at);
                slept += log.slept(tile, begin, end);
                waited += sample.latency;
            }
            if count != RUNS.0 {
                return Err(incomplete("runs are missing"));
            }
            let work = beside::work_in(seen, &wakes, &["waiter", "waker"]);
            let bound = beside::disturbed(&seen.system, &work);
            let bound = bound.map(|ticks| result.cycles(ticks));
            let cycles = |ticks: u64| ticks as f64 / result.cycle_ticks.max(1) as f64;
            all.push(Waiting {
                platform: platform.to_owned(),
                method: variant.name.clone(),
                suspend: (suspended == count).then(|| cycles(suspend) / count as f64),
                wake: cycles(wake) / count as f64,
                wake_worst: result.cycles(worst),
                bound: beside::scaled(bound, 1.0),
                clocked: 100.0 * (waited - slept) as f64 / waited.max(1) as f64,
            });
        }
    }
    Ok(all)
}

/// The paper's claims about the figure.
pub fn claims(all: &[Waiting]) -> Vec<Claim> {
    let mut claims = Vec::new();
    let of = |platform: &str, method: &str| {
        let mut found = all.iter();
        found.find(|one| one.platform == platform && one.method == method)
    };
    for platform in ALL {
        let methods = METHODS.map(|method| of(platform, method));
        let [Some(sleep), Some(syscall), Some(poll)] = methods else {
            continue;
        };
        let (Some(command), Some(call)) = (sleep.suspend, syscall.suspend) else {
            claims.push(Claim {
                of: None,
                what: format!("on {platform} the hart falls asleep in every run"),
                held: false,
            });
            continue;
        };
        // "Negligible" in the paper's plot: an order of magnitude.
        claims.push(Claim {
            of: None,
            what: format!("suspending on {platform}: {command:.0} cycles by the sleep command, {call:.0} by a system call; ten times less"),
            held: command * 10.0 <= call,
        });
        claims.push(Claim {
            of: None,
            what: format!(
                "waking on {platform}: {:.0} cycles by the sleep command, {:.0} by a system call, {:.0} by polling; sleep is at most twice polling",
                sleep.wake, syscall.wake, poll.wake
            ),
            held: sleep.wake <= 2.0 * poll.wake && sleep.wake < syscall.wake,
        });
        claims.push(Claim {
            of: None,
            what: format!(
                "clocked while waiting on {platform}: {:.2} % by the sleep command, {:.2} % by a system call, {:.0} % by polling",
                sleep.clocked, syscall.clocked, poll.clocked
            ),
            held: sleep.clocked < syscall.clocked && poll.clocked == 100.0,
        });
    }
    for one in all {
        if let Some(most) = one.bound.most() {
            claims.push(Claim {
                of: None,
                what: format!(
                    "waking on {} ({}): worst {} cycles {} the bound of {most:.0}",
                    one.platform,
                    one.method,
                    one.wake_worst,
                    relation(one.wake_worst as f64, most)
                ),
                held: one.wake_worst as f64 <= most,
            });
        }
    }
    claims
}
