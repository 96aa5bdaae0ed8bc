//! How activities of the tiled OS ended: by themselves, because their manager stopped them, or because the system was over.
//!
//! Why it exists: when a system is over, the kernel stops all background activities, and prints the same about them as about an activity
//! that a manager stops early. The order of the console's lines distinguishes them: no foreground activity ends after the end of the
//! system. Moments come from TileMux's markers. What it deliberately does not know: what follows for jobs and samples ([`Lives`]).

use super::console::BY_ITS_MANAGER;
use super::names::{Notice, TiledNames, notice};
use crate::measure::MarkerEvent;
use crate::measure::lives::{End, Ending, Lives};
use crate::names::Naming;
use bulkhead_abi::marker::{MarkerKind, Since};
use bulkhead_machine::types::Owner;
use bulkhead_model::System;
use std::collections::{BTreeMap, BTreeSet};

/// Lives of all activities of a run that ended at `end`, in ticks. `exited`: the system ended by itself.
pub fn of(
    system: &System,
    markers: &[MarkerEvent],
    console: &str,
    end: u64,
    exited: bool,
) -> Lives {
    let mut lives = Lives::until(end);
    let mut names = TiledNames::new(system);
    let mut removed: BTreeMap<Owner, u64> = BTreeMap::new();
    for marker in markers {
        if let Some((owner, name)) = names.hear(marker.tile, marker.kind, marker.value) {
            lives.begins(&name, owner);
        }
        let since = Since::unpack(marker.value);
        if marker.kind == MarkerKind::MuxMember as u16 && since.moment == Since::NEVER {
            removed.insert(Owner::new(marker.tile, since.activity), marker.at);
        }
    }
    for (notice, how) in ends(system, console, exited) {
        let owner = Owner::new(notice.tile, notice.activity);
        let at = removed.get(&owner).copied().unwrap_or(end);
        lives.ends(owner, End { at, how });
    }
    lives
}

/// The kernel's notices of ends, in order.
pub(super) fn ends(system: &System, console: &str, exited: bool) -> Vec<(Notice, Ending)> {
    let all = console.lines().filter_map(notice);
    let all: Vec<Notice> = all
        .filter(|notice| notice.what.starts_with("stopped"))
        .collect();
    let is_stopped = |notice: &Notice| notice.what.ends_with(BY_ITS_MANAGER);
    // Hardware logic has nothing to finish.
    let foreground = system.apps.iter();
    let foreground = foreground.filter(|app| !app.background && !app.is_unit());
    let foreground: BTreeSet<&str> = foreground.map(|app| app.name.as_str()).collect();
    let by_itself = |notice: &Notice| foreground.contains(&*notice.name) && !is_stopped(notice);
    let last = all.iter().rposition(by_itself);
    let mut open = foreground.clone();
    let mut found = Vec::new();
    for (at, notice) in all.iter().enumerate() {
        open.remove(&*notice.name);
        // If all applications are in the background, the system is never over.
        let over = last.is_some_and(|last| at > last) && (exited || open.is_empty());
        let how = match is_stopped(notice) && over {
            true => Ending::Over,
            false => Ending::Gone,
        };
        found.push((notice.clone(), how));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use bulkhead_model::{LoadOptions, load_system};

    const SENSOR: &str = "kernel: activity 2 (sensor) on tile 2 stopped: exit 0\n";
    const CONTROLLER: &str = "kernel: activity 3 (controller) on tile 3 stopped: exit 0\n";
    const ACTUATOR: &str = "kernel: activity 4 (actuator) on tile 4 stopped: exit 0\n";
    const HOG: &str = "kernel: activity 5 (hog-1) on tile 5 stopped by its manager\n";

    fn system() -> System {
        load_system("quickstart", &LoadOptions::default()).expect("valid")
    }

    fn of_hog(lines: &[&str], exited: bool) -> Ending {
        let all = ends(&system(), &lines.concat(), exited);
        let mut all = all.iter().filter(|(notice, _)| notice.name == "hog-1");
        all.next_back().expect("it ended").1
    }

    #[test]
    fn who_is_stopped_before_the_last_program_ends_is_stopped_in_the_middle() {
        let all = [SENSOR, CONTROLLER, ACTUATOR];
        for exited in [false, true] {
            assert_eq!(
                of_hog(&[&all[..], &[HOG]].concat(), exited),
                Ending::Over,
                "{exited}"
            );
            assert_eq!(
                of_hog(&[SENSOR, HOG, CONTROLLER, ACTUATOR], exited),
                Ending::Gone
            );
        }
        // The actuator hangs: the system has not ended unless it says so.
        assert_eq!(of_hog(&[SENSOR, CONTROLLER, HOG], false), Ending::Gone);
        assert_eq!(of_hog(&[SENSOR, CONTROLLER, HOG], true), Ending::Over);
        assert_eq!(of_hog(&[HOG], true), Ending::Gone, "nobody has ended");
        let crash = HOG.replace("stopped by its manager", "stopped: load page fault");
        assert_eq!(
            of_hog(&[SENSOR, CONTROLLER, ACTUATOR, &crash], true),
            Ending::Gone
        );
    }

    #[test]
    fn moments_are_those_of_the_tiles() {
        let system = system();
        let console = [SENSOR, CONTROLLER, ACTUATOR, HOG].concat();
        let gone = MarkerEvent {
            at: 700,
            tile: 5,
            activity: 0,
            kind: MarkerKind::MuxMember as u16,
            value: Since {
                activity: 5,
                moment: Since::NEVER,
            }
            .pack(),
            pc: 0,
        };
        let of = |markers: &[MarkerEvent]| {
            let lives = of(&system, markers, &console, 1000, true);
            lives.over(Owner::new(5, 5))
        };
        assert_eq!((of(&[gone]), of(&[])), (700, 1000));
        let comes = MarkerEvent {
            value: Since {
                activity: 5,
                moment: Since::NOW,
            }
            .pack(),
            ..gone
        };
        assert_eq!(of(&[comes]), 1000);
    }
}
