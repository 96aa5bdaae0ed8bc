//! The clocks of cores that have timers of their own: their errors after synchronisation, and the bounds of these errors.
//!
//! Why it exists: kernels report the correction of their timers and its largest error; only the machine knows the true difference of two
//! clocks. What it deliberately does not know: how kernels agree on the time.
//!
//! The bound is the sum of the kernel's bound at synchronisation, the drift of both clocks since the machine's reset, and one count,
//! because counts of two clocks end at different moments.

use super::layout;
use crate::convert::clock;
use crate::measure::MarkerEvent;
use crate::paradigm::Said;
use bulkhead_abi::one_shot::clock::{DONE, MASTER_PATIENCE, MESSAGES, PATIENCE, RECORD, SENT};
use bulkhead_abi::one_shot::{clock_alone, marker};
use bulkhead_machine::device::Clock;
use bulkhead_model::System;
use bulkhead_model::system::OneShot;
use bulkhead_report::result::{ClockError, ClockResult, Incident, IncidentKind};
use std::collections::BTreeMap;

/// Parts of a drift.
const MILLION: u64 = 1_000_000;

/// The clock of a core.
#[derive(Clone, Copy, Debug)]
struct Own {
    clock: Clock,
    drift: i32,
    /// What the kernel adds, since when, and its largest error then.
    correction: u64,
    since: Option<u64>,
    error: u64,
}

impl Own {
    /// What the kernel takes for the time.
    fn time(&self, at: u64) -> u64 {
        self.clock.time(at).wrapping_add(self.correction)
    }
}

/// The clocks of a run.
#[derive(Debug)]
pub struct Clocks {
    master: u16,
    cores: BTreeMap<u16, Own>,
    /// Counts in a tick of the kernel.
    timer: u64,
    ticks_per_second: u64,
    timebase: u64,
}

impl Clocks {
    /// Reads the markers of a run. `None`: all cores have one timer.
    pub fn read(system: &System, one_shot: &OneShot, markers: &[MarkerEvent]) -> Option<Self> {
        let master = one_shot.master(&system.platform)?;
        let own = |core: u16| {
            let tile = system.platform.tile(core)?;
            let own = Own {
                clock: clock(&system.platform, tile),
                drift: tile.clock_drift,
                correction: 0,
                since: (core == master).then_some(0),
                error: 0,
            };
            Some((core, own))
        };
        let mut cores: BTreeMap<u16, Own> = one_shot.cores().into_iter().filter_map(own).collect();
        for event in markers {
            let Some(own) = cores.get_mut(&event.tile) else {
                continue;
            };
            match event.kind {
                marker::CLOCK => {
                    own.correction = event.value;
                    own.since = Some(event.at);
                }
                marker::CLOCK_ERROR => own.error = event.value,
                marker::CLOCK_ALONE => {
                    own.correction = 0;
                    own.since = None;
                }
                _ => {}
            }
        }
        Some(Self {
            master,
            cores,
            timer: super::images::timer(system),
            ticks_per_second: system.platform.ticks_per_second(),
            timebase: system.platform.timebase.0,
        })
    }

    /// When the tick of a core began in which something happened there.
    pub fn tick(&self, core: u16, at: u64) -> Option<u64> {
        let own = self.cores.get(&core)?;
        let time = own.time(at);
        let begin = time - time % self.timer.max(1);
        Some(own.clock.reaches(begin.wrapping_sub(own.correction)))
    }

    /// Each core's error beside its bound, when it was synchronised and at the end of the run.
    pub fn results(&self, end: u64) -> Vec<ClockResult> {
        let Some(master) = self.cores.get(&self.master) else {
            return Vec::new();
        };
        let others = self.cores.iter().filter(|one| *one.0 != self.master);
        let result = |(core, own): (&u16, &Own)| {
            let since = own.since?;
            let error = |at: u64| {
                let wrong = own.time(at).wrapping_sub(master.time(at)) as i64;
                let apart = u64::from(own.drift.abs_diff(master.drift));
                let counts = self.counts(at);
                let drifted = (counts * u128::from(apart)).div_ceil(u128::from(MILLION));
                ClockError {
                    error: self.ticks(wrong.unsigned_abs()),
                    bound: self.ticks(own.error + drifted as u64 + 1),
                }
            };
            Some(ClockResult {
                core: *core,
                master: self.master,
                correction: own.correction as i64,
                synchronised: error(since),
                end: error(end),
            })
        };
        others.filter_map(result).collect()
    }

    /// Counts of the timebase until a moment.
    fn counts(&self, at: u64) -> u128 {
        (u128::from(at) * u128::from(self.timebase)).div_ceil(u128::from(self.ticks_per_second))
    }

    /// Machine ticks of counts, rounded up.
    fn ticks(&self, counts: u64) -> u64 {
        let ticks = u128::from(counts) * u128::from(self.ticks_per_second);
        ticks.div_ceil(u128::from(self.timebase.max(1))) as u64
    }
}

/// Cores that do not have the master's time, cores for which the master waited in vain, and records that another core wrote over. Each core
/// is reported with its tasks.
pub fn incidents(system: &System, one_shot: &OneShot, seen: &Said<'_>) -> Vec<Incident> {
    let Some(master) = one_shot.master(&system.platform) else {
        return Vec::new();
    };
    let mut all: Vec<Incident> = Vec::new();
    for event in seen.markers {
        let of_number = || {
            let mut cores = one_shot.cores().into_iter();
            cores.find(|core| u64::from(layout::number(system, *core)) == event.value)
        };
        let tile = match event.kind {
            marker::CLOCK_ALONE | marker::CLOCK_FALSE => event.tile,
            marker::CLOCK_ABSENT | marker::CLOCK_DENIED => match of_number() {
                Some(core) => core,
                None => continue,
            },
            _ => continue,
        };
        let what = match event.kind {
            marker::CLOCK_ALONE => alone(event.value, master),
            marker::CLOCK_FALSE => written_over(event.value, master),
            marker::CLOCK_DENIED => format!(
                "it took a time that core {master} did not send: another core wrote over its clock record (+{RECORD:#x}); core {master} does not \
                 tell it when to begin"
            ),
            _ => format!(
                "it was not ready for synchronisation, or did not continue it; core {master} waited at most {MASTER_PATIENCE} ticks"
            ),
        };
        let tasks = one_shot.on_core(tile).into_iter();
        let tasks: Vec<String> = tasks
            .map(|task| format!("`{}`", one_shot.tasks.tasks[task].name))
            .collect();
        let incident = Incident {
            crash: None,
            kind: IncidentKind::Stopped,
            at: Some(event.at),
            tile,
            application: format!("core {tile}"),
            what: format!("{what} (tasks: {})", tasks.join(", ")),
        };
        // A record that is written over again and again is told once.
        let same = |one: &Incident| one.tile == tile && one.what == incident.what;
        if !all.iter().any(same) {
            all.push(incident);
        }
    }
    all
}

/// Why a core keeps its own time.
fn alone(why: u64, master: u16) -> String {
    let why = match why {
        clock_alone::NO_MESSAGE => {
            format!("core {master} did not send it the time within {PATIENCE} ticks")
        }
        clock_alone::NO_TRUE_MESSAGE => {
            format!("core {master} sent none of the {MESSAGES} messages that it found")
        }
        clock_alone::NO_BEGIN => {
            format!("core {master} did not send it the time to begin within {PATIENCE} ticks")
        }
        _ => format!(
            "another core wrote over the list of cores before its clock record (+{RECORD:#x}), so it synchronises no core"
        ),
    };
    format!("its clock is not synchronised: {why}")
}

/// What a core found in its record.
fn written_over(number: u64, master: u16) -> String {
    let (what, then) = match number {
        DONE => ("the time at which all begin", "waits for another one"),
        _ => ("a message with the time", "does not use it"),
    };
    format!(
        "another core wrote over its clock record (+{:#x}): it found {what}, which core {master} did not send for its request, and {then}",
        RECORD + SENT
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use bulkhead_model::load_system_text;

    /// Core 0 has the timebase's clock; core 1 is 1 ms ahead and 100 ppm fast.
    fn clocks(markers: &[MarkerEvent]) -> Clocks {
        let text = r#"<system name="s" paradigm="one-shot" platform="epiphany3-clocks">
            <task name="a" program="p::A" core="0" priority="1" period="1ms" cost="1us"/>
            <task name="b" program="p::B" core="1" priority="1" period="1ms" cost="1us"/></system>"#;
        let mut system = load_system_text("s", text, &Default::default()).expect("valid");
        for (tile, offset, drift) in [(0, 0, 0), (1, 1_000_000_000, 100)] {
            let tile = &mut system.platform.tiles[tile];
            tile.clock_offset.0 = offset;
            tile.clock_drift = drift;
        }
        let one_shot = system.one_shot.clone().expect("it is one");
        Clocks::read(&system, &one_shot, markers).expect("clocks differ")
    }

    #[test]
    fn errors_and_bounds_by_hand() {
        let event = |kind, value| MarkerEvent {
            at: 1_200_000,
            tile: 1,
            activity: 0,
            kind,
            value,
            pc: 0,
        };
        // 600 000 counts ahead, and 60 more after a millisecond; the kernel subtracts 600 050, and says that it may be wrong by 12.
        let correction = 0u64.wrapping_sub(600_050);
        let clocks = clocks(&[
            event(marker::CLOCK, correction),
            event(marker::CLOCK_ERROR, 12),
        ]);
        // A count has 2 ticks.
        let all = clocks.results(12_000_000);
        assert_eq!(all.len(), 1);
        assert_eq!(all[0].correction, -600_050);
        assert_eq!(
            (all[0].synchronised.error, all[0].synchronised.bound),
            (20, 2 * (12 + 60 + 1))
        );
        assert_eq!(
            (all[0].end.error, all[0].end.bound),
            (2 * 550, 2 * (12 + 600 + 1))
        );
        // Its tick 10 began 550 counts early, as it is fast.
        let tick = clocks.tick(1, 12_000_000).expect("it is a core");
        assert!((2 * 549..=2 * 551).contains(&(12_000_000 - tick)), "{tick}");
        assert_eq!(clocks.tick(0, 12_000_001), Some(12_000_000));
    }
}
