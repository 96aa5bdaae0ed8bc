//! How wrong the clocks of a one-shot system may be, before it runs.
//!
//! Why it exists: notification and parallel sections compare ticks of two cores, so their bounds need the error of clocks; and a reader of a description
//! wants to know it. What it deliberately does not know: what kernels measure, and what bounds do with an error.
//!
//! A core knows the difference of its clock and the master's from a message: it lies in a window as wide as the message was under way at most, by the
//! master's counts, and two looks of the core, by its own counts (`bulkhead_exec_one_shot::clock`). The core takes the middle, so it is
//! wrong by half of the width at most, and afterwards by what both clocks drift apart.
//!
//! No job runs meanwhile, so a message waits for nobody: the master sends one at a time. Only a host core may read consoles. A core with
//! tasks that starts later than the master waits for it runs without its time, and the run says so.
//!
//! Beside rivals that guards keep out ([`beside`]), a message also waits for their packets, and they have no other way to a clock. The master gives a core
//! only a tick, and waits only some ticks for all, so there is a bound only if all messages fit into these, whatever rivals send and however slowly those
//! in the master's list ask for the time themselves.

use crate::one_shot_kernel::unbounded;
use crate::one_shot_mesh::{Load, Mesh};
use crate::one_shot_rivals::Rivals;
use bulkhead_abi::one_shot::clock::{BEGIN, MASTER_PATIENCE, MESSAGES};
use bulkhead_model::platform::Platform;
use bulkhead_model::system::OneShot;
use bulkhead_model::system::oneshot::TICK;
use bulkhead_model::units::Time;
use serde::Serialize;
use std::collections::BTreeMap;

/// Cycles of the master from the count before a message to the one after its acknowledgement, without its way: two counts (5 each), a store and a fence
/// with their operands (8), and their instructions' lines (6), rounded up.
const SEND: u64 = 40;
/// Cycles of a core from the count before a look that finds nothing to the one after the next look: three counts (5 each), two loads, the comparison
/// with its patience and three taken branches (30), their lines (10), rounded up.
const LOOKS: u64 = 80;
/// Cycles of the master and a core for a message besides its way: two values of four multiplications each, some 60 other instructions of each side, and their
/// lines; below 500, and doubled.
const MESSAGE: u64 = 1000;
/// Stores of the master that may be under way together: of a message, and the last word of the one before.
const TOGETHER: u64 = 2;
/// Parts of a drift.
const MILLION: u128 = 1_000_000;
/// Picoseconds of a second.
const SECOND: u128 = 1_000_000_000_000;

/// The possible error of a core's clock, compared with the one that it follows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ClockBound {
    /// The core.
    pub core: u16,
    /// The core that it follows.
    pub master: u16,
    /// The error.
    #[serde(flatten)]
    pub error: ErrorBound,
}

/// A bound of an error, or why there is none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum ErrorBound {
    /// At most this.
    Within(ClockError),
    /// Any.
    Unbounded {
        /// Why.
        unbounded: String,
    },
}

impl ErrorBound {
    /// The error if there is a bound.
    pub fn within(&self) -> Option<ClockError> {
        match self {
            Self::Within(error) => Some(*error),
            Self::Unbounded { .. } => None,
        }
    }
}

/// How wrong a clock may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ClockError {
    /// When the message arrived that gives the core the time.
    pub synchronised: Time,
    /// When the system's duration is over.
    pub end: Time,
}

/// The bounds of all cores that follow another one; none if all have one timer.
pub fn clock_bounds(system: &OneShot, platform: &Platform) -> Vec<ClockBound> {
    let Some(master) = system.master(platform) else {
        return Vec::new();
    };
    let of_master = unbounded(platform, master);
    let all = bounds_with(system, platform, |_| 0).into_iter();
    let all = all.map(|(core, error)| ClockBound {
        core,
        master,
        error: match of_master.clone().or_else(|| unbounded(platform, core)) {
            Some(unbounded) => ErrorBound::Unbounded { unbounded },
            None => ErrorBound::Within(error),
        },
    });
    all.collect()
}

/// For each core that follows another one, its error if both are like `epiphany3`'s, and the way of a message to it takes so many cycles longer.
fn bounds_with(
    system: &OneShot,
    platform: &Platform,
    longer: impl Fn(u16) -> u64,
) -> Vec<(u16, ClockError)> {
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
        let way = counts(
            mesh.time(SEND + round + links + turns + longer(core)),
            drift(master),
        );
        let looks = counts(mesh.time(LOOKS + turns), drift(core));
        let error = (way + looks).div_ceil(2) + 1;
        let apart = u128::from(drift(core).abs_diff(drift(master)));
        let whole = (u128::from(system.duration.0) * timebase).div_ceil(SECOND);
        let drifted = (whole * apart).div_ceil(MILLION);
        let error = ClockError {
            synchronised: time(error),
            end: time(error + drifted),
        };
        all.push((core, error));
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
    (mesh.core_cycles(work), under_way * mesh.access)
}

/// The errors of clocks beside rivals of a domain with these cores. `load`: the load of all channels, of which nothing is under way meanwhile, so it is more than
/// there is.
///
/// # Errors
/// Why rivals may keep a core of the domain from its time.
pub(crate) fn beside(
    system: &OneShot,
    mesh: &Mesh<'_>,
    (rivals, own): (&Rivals, &[u16]),
    load: &Load,
) -> Result<Errors, String> {
    let Some(master) = system.master(mesh.platform) else {
        return Ok(Errors::default());
    };
    // A timer is at most a hundredth faster than the core's clock.
    let tick = mesh.cycles(TICK) / 100 * 99;
    let buffer = mesh.platform.tile(master);
    let buffer = u64::from(buffer.map_or(1, |tile| tile.pipeline.store_buffer));
    let mut longer = BTreeMap::new();
    let (mut served, mut told) = (0, 0);
    for core in system.cores().into_iter().filter(|core| *core != master) {
        let waits = rivals.waits(
            mesh,
            (master, core),
            &with_messages(mesh, (master, core), load),
        );
        let message = waits.stores(TOGETHER, buffer);
        longer.insert(core, message);
        let alone = mesh.round(mesh.hops(master, core));
        let (look, send) = (alone + waits.round, alone + message);
        // A look just before the request, and one that finds it; the message, and the word with its way.
        let all = MESSAGES * (2 * look + 2 * send + MESSAGE) + 2 * look;
        if own.contains(&core) && all > tick {
            return Err(format!(
                "floods of the mesh may make the messages with the time for core {core} longer than the tick that core {master} has for them"
            ));
        }
        // A core outside the domain asks as slowly as it likes, and the last message may begin at the end of its tick.
        let most = if own.contains(&core) {
            all
        } else {
            mesh.cycles(TICK) + look + 2 * send + MESSAGE
        };
        served += most + 2 * look;
        told += look + 2 * send + MESSAGE;
    }
    // Cores start together; a tick is more than a kernel takes until it asks.
    if served > (MASTER_PATIENCE - 1) * tick || told > (BEGIN - 1) * tick {
        return Err(format!(
            "floods of the mesh, and cores of other domains that ask slowly, may keep cores from the time of core {master}"
        ));
    }
    let all = bounds_with(system, mesh.platform, |core| {
        longer.get(&core).copied().unwrap_or(0)
    });
    Ok(Errors(
        all.into_iter()
            .map(|(core, error)| (core, error.end))
            .collect(),
    ))
}

/// A load, and what the master and a core send each other.
fn with_messages(mesh: &Mesh<'_>, (master, core): (u16, u16), load: &Load) -> Load {
    let mut all = load.clone();
    let mut put = |plane: u8, way: Vec<(u32, u32)>, count: u64| {
        for (begin, end) in way {
            *all.links.entry((plane, begin, end)).or_default() += count * mesh.cycles_of(plane);
        }
    };
    let (there, back) = (mesh.way(master, core), mesh.way(core, master));
    put(0, there.clone(), 1);
    put(1, there, TOGETHER);
    put(1, back.clone(), 1);
    put(2, back, TOGETHER);
    all
}

/// The errors of a system's clocks during its whole duration. Tasks that need one that nothing bounds are without bounds (`one_shot::lost`).
#[derive(Clone, Debug, Default)]
pub(crate) struct Errors(BTreeMap<u16, Time>);

impl Errors {
    pub(crate) fn of(system: &OneShot, platform: &Platform) -> Self {
        let all = bounds_with(system, platform, |_| 0).into_iter();
        Self(all.map(|(core, error)| (core, error.end)).collect())
    }

    /// The amount by which the clocks of two cores may differ.
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
        let [one] = &all[..] else { panic!("{all:?}") };
        assert_eq!((one.core, one.master), (3, 0));
        let one = one.error.within().expect("a bound");
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
        let wide = |all: &[ClockBound]| all[0].error.within().map(|error| error.synchronised);
        assert!(wide(&alone).is_some() && wide(&beside) > wide(&alone));
    }

    /// A section of core 0 and core 5, with guards, and what its domain's bounds assume; `more`: further tasks.
    fn assumed(more: &str) -> (Vec<(Option<String>, String)>, Time) {
        let text = format!(
            r#"<system name="s" paradigm="one-shot" platform="epiphany3-clocks" duration="20ms">
            <task name="a" domain="d" program="p::A" core="0" priority="1" period="5ms" cost="50us" wait="2ms"/>
            <task name="b" domain="d" program="p::B" core="5" priority="1" period="5ms" cost="50us" wait="2ms"/>{more}
            <channel name="slice" from="a" to="b" size="8B"/>
            <channel name="result" from="b" to="a" size="8B" answers="slice"/></system>"#
        );
        let changes = |guard: &str| bulkhead_model::LoadOptions {
            overrides: vec![format!("platform/local-memory[sram]@guard={guard}")],
            ..Default::default()
        };
        let of = |guard: &str| {
            let system = bulkhead_model::load_system_text("s", &text, &changes(guard));
            let system = system.expect("valid");
            let one_shot = system.one_shot.as_ref().expect("it is one");
            crate::plan::one_shot::bounds(one_shot, &system.platform)
        };
        let (open, guarded) = (of("0"), of("64"));
        let [open_slice, slice] = [&open, &guarded].map(|one| one.tasks.channels[0].transfer.0);
        (guarded.assumes, Time(slice - open_slice))
    }

    /// Floods make windows wider, and the bound of a slice counts that; where rivals may keep a core from its time, there is no bound.
    #[test]
    fn floods_make_windows_wider_and_may_keep_cores_from_their_time() {
        let (assumes, longer) = assumed("");
        assert_eq!(assumes, []);
        assert!(longer > Time(0), "{longer:?}");
        // Nine cores of another domain may take a tick each, and the master waits for ten.
        let others: String = (6..15)
            .map(|core| {
                format!(
                    r#"<task name="t{core}" domain="e" program="p::C" core="{core}" priority="1" period="1ms" cost="1us"/>"#
                )
            })
            .collect();
        let (assumes, longer) = assumed(&others);
        assert_eq!(longer, Time(0));
        let why = "floods of the mesh, and cores of other domains that ask slowly, may keep cores from the time of core 0";
        let own: Vec<&str> = assumes
            .iter()
            .filter(|one| one.0.as_deref() == Some("d"))
            .map(|one| one.1.as_str())
            .collect();
        assert_eq!(
            own,
            [
                format!("{why}, and both ends of slice compare their clocks"),
                format!("{why}, and both ends of result compare their clocks")
            ]
        );
    }
}
