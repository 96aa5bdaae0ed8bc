//! How wrong the clocks of a one-shot system may be, before it runs.
//!
//! Why it exists: notification and parallel sections compare ticks of two cores, so their bounds need the error of clocks; and a reader of a description
//! wants to know it. What it deliberately does not know: what kernels measure, and what bounds do with an error.
//!
//! A core knows the difference of its clock and the master's from a message: it lies in a window as wide as the message was under way at most, by the
//! master's counts, and two looks of the core, by its own counts (`bulkhead_exec_one_shot::clock`). The core takes the middle, so it is
//! wrong by half of the width at most, and afterwards by what both clocks drift apart.
//!
//! No job runs meanwhile, so a message waits for nobody: the master sends one after the other. Only a host core may read consoles. A core with tasks
//! that starts later than the master waits for it runs without its time, which the run says. Nothing here holds beside floods of rivals.

use crate::one_shot_mesh::{ACCESS, Mesh};
use bulkhead_model::platform::Platform;
use bulkhead_model::system::OneShot;
use bulkhead_model::units::Time;
use serde::Serialize;
use std::collections::BTreeMap;

/// Cycles of the master from the count before a message to the one after its acknowledgement, without its way: two counts (5 each), a store and a fence
/// with their operands (8), and their instructions' lines (6), rounded up.
const SEND: u64 = 40;
/// Cycles of a core from the count before a look that finds nothing to the one after the next look: three counts (5 each), two loads, the comparison
/// with its patience and three taken branches (30), their lines (10), rounded up.
const LOOKS: u64 = 80;
/// Parts of a drift.
const MILLION: u128 = 1_000_000;
/// Picoseconds of a second.
const SECOND: u128 = 1_000_000_000_000;

/// By how much the clock of a core may be wrong, compared with the one that it follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ClockBound {
    /// The core.
    pub core: u16,
    /// The core that it follows.
    pub master: u16,
    /// When the message came from which it knows the time.
    pub synchronised: Time,
    /// When the system's duration is over.
    pub end: Time,
}

/// The bounds of all cores that follow another one; none if all have one timer.
pub fn clock_bounds(system: &OneShot, platform: &Platform) -> Vec<ClockBound> {
    let Some(master) = system.master(platform) else {
        return Vec::new();
    };
    let mesh = Mesh::new(platform);
    let drift = |core: u16| platform.tile(core).map_or(0, |tile| tile.clock_drift);
    let timebase = u128::from(platform.timebase.0);
    // Two counts of a timer show one more than the time between them.
    let counts = |time: Time, drift: i32| {
        let speed = MILLION.saturating_add_signed(drift.into());
        (u128::from(time.0) * timebase * speed).div_ceil(SECOND * MILLION) + 1
    };
    let time = |counts: u128| {
        let time = (counts * SECOND).div_ceil(timebase.max(1));
        Time(u64::try_from(time).unwrap_or(u64::MAX))
    };
    let mut all = Vec::new();
    for core in system.cores().into_iter().filter(|core| *core != master) {
        let round = mesh.round(mesh.hops(master, core));
        let (links, turns) = looks(system, &mesh, (master, core));
        let way = counts(mesh.time(SEND + round + links + turns), drift(master));
        let looks = counts(mesh.time(LOOKS + turns), drift(core));
        let error = (way + looks).div_ceil(2) + 1;
        let apart = u128::from(drift(core).abs_diff(drift(master)));
        let drifted = (counts(system.duration, 0) * apart).div_ceil(MILLION);
        all.push(ClockBound {
            core,
            master,
            synchronised: time(error),
            end: time(error + drifted),
        });
    }
    all
}

/// Cycles for which a host core's loads may delay a message, on links and at the memory: as many as it has under way.
fn looks(system: &OneShot, mesh: &Mesh<'_>, (master, core): (u16, u16)) -> (u64, u64) {
    let host = system.host.and_then(|host| mesh.platform.tile(host));
    let Some(host) = host else { return (0, 0) };
    let under_way = u64::from(host.pipeline.load_buffer).max(1);
    let links = mesh.way(master, core).len() + mesh.way(core, master).len();
    let work = links as u64 * under_way * mesh.cycles_of(0).max(mesh.cycles_of(1));
    (mesh.core_cycles(work), under_way * ACCESS)
}

/// The errors of a system's clocks during its whole duration.
#[derive(Clone, Debug, Default)]
pub(crate) struct Errors(BTreeMap<u16, Time>);

impl Errors {
    pub(crate) fn of(system: &OneShot, platform: &Platform) -> Self {
        let all = clock_bounds(system, platform).into_iter();
        Self(all.map(|one| (one.core, one.end)).collect())
    }

    /// By how much the clocks of two cores may differ.
    pub(crate) fn apart(&self, one: u16, other: u16) -> Time {
        let of = |core| self.0.get(&core).map_or(0, |time| time.0);
        match one == other {
            true => Time(0),
            false => Time(of(one).saturating_add(of(other))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Vec<ClockBound> {
        let system = bulkhead_model::load_system_text("s", text, &Default::default());
        let system = system.expect("valid");
        let one_shot = system.one_shot.as_ref().expect("it is one");
        clock_bounds(one_shot, &system.platform)
    }

    fn pair(platform: &str, more: &str) -> Vec<ClockBound> {
        of(&format!(
            r#"<system name="s" paradigm="one-shot" platform="{platform}" duration="100ms"{more}>
            <task name="a" program="p::A" core="0" priority="1" period="1ms" cost="1us"/>
            <task name="b" program="p::B" core="3" priority="1" period="1ms" cost="1us"/></system>"#
        ))
    }

    /// By hand: three hops. Core 3 is 100 ppm faster than core 0, whose clock is the timebase's: 6000 counts of 60 million after 100 ms.
    #[test]
    fn an_error_is_half_a_window_and_the_drift() {
        assert_eq!(pair("epiphany3", ""), []);
        let all = pair("epiphany3-clocks", "");
        let [one] = all[..] else { panic!("{all:?}") };
        assert_eq!((one.core, one.master), (3, 0));
        // A cycle is a count. A round over three hops takes 18 cycles to 24 (docs/reference/mesh.md).
        let counts = |time: Time| time.0 * 600 / 1_000_000;
        let half = (SEND + LOOKS) / 2;
        assert!(
            (half + 9..=half + 17).contains(&counts(one.synchronised)),
            "{one:?}"
        );
        assert_eq!(counts(one.end) - counts(one.synchronised), 6_000);
    }

    #[test]
    fn a_host_makes_windows_wider() {
        let (alone, beside) = (
            pair("epiphany3-clocks", ""),
            pair("epiphany3-clocks", r#" host="15""#),
        );
        assert!(beside[0].synchronised > alone[0].synchronised);
    }
}
