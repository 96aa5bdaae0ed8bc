//! Applications that had not finished when a run ended.
//!
//! Why it exists: a program that loops, waits forever or prints forever must not look like one that did its work. The system ends by itself
//! when every foreground application has ended. A run that ends otherwise was cut off, and this module says which applications that
//! interrupted and what they did last. A manager may also end, or stop an activity below it, before that activity has finished. A
//! background application has finished when the system is over. What it deliberately does not know: why they did not finish.

use super::console::BY_ITS_MANAGER;
use super::lives;
use super::names::{Notice, TiledNames, notice};
use crate::collect;
use crate::measure::MarkerEvent;
use crate::measure::lives::Ending;
use crate::names::Naming;
use crate::paradigm::Said;
use bulkhead_machine::crash::Running;
use bulkhead_machine::types::Owner;
use bulkhead_model::System;
use bulkhead_model::system::{App, Limit};
use bulkhead_model::units::Time;
use bulkhead_report::format::span;
use bulkhead_report::result::{End, Incident, IncidentKind};
use std::collections::{BTreeMap, BTreeSet};

/// An incident for each foreground application that has not ended by itself when the run has. If all of them have and the system has not,
/// the root manager is named. Without foreground applications there is nothing to finish. `locate` says where in an application a program
/// counter is.
pub fn incidents(
    system: &System,
    said: &Said<'_>,
    locate: &dyn Fn(&str, u64) -> Option<String>,
) -> Vec<Incident> {
    let when = match said.end {
        End::Duration | End::Limit => {
            format!(
                "has not finished after {}, the duration of the run",
                system.duration
            )
        }
        End::Idle => "has not finished and never will: nothing more can happen".to_owned(),
        // The root manager waits for the managers below it, but not for what is below those.
        End::Exit { code: 0 } => "has not finished, and the system has ended".to_owned(),
        // The kernel stopped or a program failed, so nothing could finish.
        End::Exit { .. } | End::Trap { .. } => return Vec::new(),
    };
    let notices = said.console.lines().filter_map(notice);
    let notices = notices.filter(|notice| notice.what.starts_with("stopped"));
    let (stopped, ended): (Vec<_>, Vec<_>) =
        notices.partition(|notice| notice.what.ends_with(BY_ITS_MANAGER));
    let names = |notices: Vec<Notice>| -> BTreeSet<String> {
        notices.into_iter().map(|notice| notice.name).collect()
    };
    let (stopped, ended) = (names(stopped), names(ended));
    // Hardware logic has nothing to finish.
    let foreground = system.apps.iter();
    let foreground = foreground.filter(|app| !app.background && !app.is_unit());
    let open = foreground.filter(|app| !ended.contains(&app.name));
    let of = |application: &str, tile: u16, what: String| Incident {
        crash: None,
        kind: IncidentKind::Unfinished,
        at: None,
        tile,
        application: application.to_owned(),
        what,
    };
    let mut all: Vec<Incident> = open
        .map(|app| {
            let last = last(system, said, &app.name);
            if stopped.contains(&app.name) {
                let what = format!("{STOPPED}it had finished; {last}");
                return of(&app.name, app.tile, what);
            }
            let mut what = format!("{when}; {last}");
            what += &at_the_end(system, said, &app.name, app.tile, locate);
            if !app.rgates.is_empty() {
                what += "; if it serves others until the end, write background=\"true\"";
            }
            of(&app.name, app.tile, what)
        })
        .collect();
    let root = system.managers.iter().find(|one| one.parent.is_none());
    // If all applications are in the background, the system serves for as long as it is allowed to.
    let works = system.apps.iter().any(|app| !app.background);
    let over = matches!(said.end, End::Exit { .. });
    if let (true, Some(root)) = (all.is_empty() && works && !over, root)
        && !ended.contains(&root.name)
    {
        let what = format!(
            "{when}, although every application in the foreground has finished; {}",
            last(system, said, &root.name)
        );
        all.push(of(&root.name, root.tile, what));
    }
    all
}

/// The text about an application that may not even have started.
pub const NOTHING: &str = "it printed nothing and set no marker";

/// The beginning of an incident of an application that its manager stopped too early.
pub const STOPPED: &str = "was stopped by its manager before ";

/// An incident for each background application that its manager stopped before the system was over and did not restart. `exited`: the
/// system ended by itself.
pub fn stopped(
    system: &System,
    markers: &[MarkerEvent],
    console: &str,
    exited: bool,
) -> Vec<Incident> {
    let mut names = TiledNames::new(system);
    let heard = markers.iter();
    let begun = heard.filter_map(|one| names.hear(one.tile, one.kind, one.value));
    // The last activity of each.
    let last: BTreeMap<String, Owner> = begun.map(|(owner, name)| (name, owner)).collect();
    let mut all = Vec::new();
    for (notice, how) in lives::ends(system, console, exited) {
        let owner = Owner::new(notice.tile, notice.activity);
        let again = last.get(&notice.name).is_some_and(|last| *last != owner);
        let in_the_middle = how == Ending::Gone && notice.what.ends_with(BY_ITS_MANAGER);
        let app = system.apps.iter().find(|app| app.name == notice.name);
        if let (true, false, Some(app)) = (in_the_middle, again, app)
            && app.background
        {
            all.push(Incident {
                crash: None,
                kind: IncidentKind::Stopped,
                at: None,
                tile: app.tile,
                application: app.name.clone(),
                what: format!("{STOPPED}the system was over"),
            });
        }
    }
    all
}

/// Where an application was when the run ended: an endless loop shows its place. If the application has its own tile and nothing ran there,
/// it was waiting.
fn at_the_end(
    system: &System,
    said: &Said<'_>,
    name: &str,
    tile: u16,
    locate: &dyn Fn(&str, u64) -> Option<String>,
) -> String {
    let mut here = said.running.iter().filter(|one| one.owner.tile == tile);
    let shares = system.apps.iter().filter(|app| app.tile == tile).count() > 1;
    match here.next() {
        Some(one) if said.names.owner(one.owner) == name => {
            let pc = one.pc;
            let place = locate(name, pc).unwrap_or_else(|| format!("{pc:#x}"));
            let spent = spent(system, &one.spent);
            let awaited = awaited(system, said, one, locate);
            format!("; at the end it was in {place}{awaited}{spent}")
        }
        None if !shares => format!("; at the end it waited{}", starved(system, name)),
        _ => String::new(),
    }
}

/// The bytes that an application's limit lets through in the whole run, if they are fewer than its memory: it may be waiting for tokens.
fn starved(system: &System, name: &str) -> String {
    let mut apps = system.apps.iter();
    let limited = apps.find_map(|app| Some((app.limit?, app)).filter(|one| one.1.name == name));
    let Some((limit, app)) = limited else {
        return String::new();
    };
    let most = lets_through(limit, system.duration);
    match most < u128::from(app.memory.0) {
        true => format!(
            "; its <limit> lets at most {most} bytes through in {}",
            system.duration
        ),
        false => String::new(),
    }
}

/// Maximum bytes that a limit lets through in a time.
pub fn lets_through(limit: Limit, time: Time) -> u128 {
    u128::from(limit.noc.0) * u128::from(time.0) / 1_000_000_000_000 + u128::from(limit.burst.0)
}

/// Bytes that the smallest programs read from memory before they do anything useful: the receiver of `bulkhead new --tiles 2` in C, which
/// finishes twenty messages, reads 9440, of program, stack and data.
const FIRST_BYTES: u128 = 8192;

/// Applications whose limits let fewer bytes through in the whole run than any program needs to begin.
pub fn too_limited(system: &System) -> Vec<String> {
    let limited = system.apps.iter().filter_map(|app| {
        let most = lets_through(app.limit?, system.duration);
        (most < FIRST_BYTES).then(|| {
            format!(
                "the <limit> of `{}` lets at most {most} bytes through in {}, the duration of the run; the smallest program reads about {FIRST_BYTES} \
                 bytes from memory before it does anything",
                app.name, system.duration
            )
        })
    });
    limited.collect()
}

/// The applications whose messages an application waits for, and the places of those that run in the background and so have no line of
/// their own.
fn awaited(
    system: &System,
    said: &Said<'_>,
    one: &Running,
    locate: &dyn Fn(&str, u64) -> Option<String>,
) -> String {
    let owners = one.awaits.iter().flatten();
    // The kernel sends answers, and is not waited for in this way.
    let apps = owners.filter_map(|owner| {
        let name = said.names.owner(*owner);
        let app = system.apps.iter().find(|app| app.name == name)?;
        Some((owner, app))
    });
    let does = |(owner, app): (&Owner, &App)| {
        let own = |other: &&Running| other.owner == *owner;
        let running = said.running.iter().find(own);
        let place = running.filter(|other| app.background && other.awaits.is_none());
        match place.and_then(|other| locate(&app.name, other.pc)) {
            Some(place) => format!("`{}` (which was in {place})", app.name),
            None => format!("`{}`", app.name),
        }
    };
    let all: Vec<String> = apps.map(does).collect();
    match all.is_empty() {
        true => String::new(),
        false => format!("; it waited for a message from {}", all.join(" or ")),
    }
}

/// The applications to which an application cannot send before its earlier messages are answered.
fn spent(system: &System, tiles: &[u16]) -> String {
    let apps = system.apps.iter().filter(|app| tiles.contains(&app.tile));
    let names: Vec<String> = apps.map(|app| format!("`{}`", app.name)).collect();
    match names.is_empty() {
        true => String::new(),
        false => format!(
            "; it had no credits left to send to {}: each message must be answered or finished there",
            names.join(" or ")
        ),
    }
}

/// The last known action of an application.
fn last(system: &System, said: &Said<'_>, name: &str) -> String {
    let own = format!("[{name}] ");
    let mut lines = said.console.lines().filter_map(|l| l.strip_prefix(&own));
    let line = lines
        .next_back()
        .map(|line| format!("it said last: {line}"));
    let mut markers = said.markers.iter().rev();
    let marker = markers.find(|marker| {
        let owner = Owner::new(marker.tile, marker.activity);
        said.names.owner(owner) == name
    });
    let marker = marker.map(|marker| {
        let per_second = system.platform.ticks_per_second().max(1) as f64;
        format!(
            "its last marker: {} at {}",
            collect::marker_words(marker),
            span(marker.at as f64 * 1e6 / per_second)
        )
    });
    match (line, marker) {
        (Some(line), Some(marker)) => format!("{line}; {marker}"),
        (Some(one), None) | (None, Some(one)) => one,
        (None, None) => NOTHING.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bulkhead_abi::marker::MarkerKind;
    use bulkhead_model::{LoadOptions, load_system};

    fn told(console: &str, markers: &[MarkerEvent], end: &End) -> Vec<(String, String)> {
        seen(console, markers, &[], end)
    }

    fn seen(
        console: &str,
        markers: &[MarkerEvent],
        running: &[Running],
        end: &End,
    ) -> Vec<(String, String)> {
        let system = load_system("quickstart", &LoadOptions::default()).expect("valid");
        let names = crate::tiled::names::of(&system, &crate::tiled::names::all_as(&system, 3));
        let said = Said {
            names: &names,
            console,
            markers,
            running,
            rings: &[],
            starts: &[],
            prospects: &[],
            until: 0,
            refused: &[],
            end,
            ended_by: None,
        };
        let locate = |name: &str, pc| (pc == 0x1000).then(|| format!("{name}'s loop"));
        let all = incidents(&system, &said, &locate).into_iter();
        all.map(|one| (one.application, one.what)).collect()
    }

    const SENSOR: &str = "kernel: activity 2 (sensor) on tile 2 stopped: exit 0\n";
    const ACTUATOR: &str = "kernel: activity 4 (actuator) on tile 4 stopped: exit 0\n";

    #[test]
    fn who_is_in_the_foreground_must_finish() {
        let release = MarkerEvent {
            at: 4_000_000,
            tile: 3,
            activity: 3,
            kind: MarkerKind::JobRelease as u16,
            value: 7,
            pc: 0,
        };
        let console = format!("{SENSOR}{ACTUATOR}[controller] waits\n");
        // Hogs are in the background.
        assert_eq!(
            told(&console, &[release], &End::Duration),
            [(
                "controller".to_owned(),
                "has not finished after 60ms, the duration of the run; it said last: waits; its last marker: begin of job 7 at 1.00 ms; at the end it waited; if it serves others until the end, write background=\"true\""
                    .to_owned()
            )]
        );
        let idle = told(SENSOR, &[], &End::Idle);
        assert_eq!(idle.len(), 2);
        assert_eq!(
            idle[0].1,
            "has not finished and never will: nothing more can happen; it printed nothing and set no marker; at the end it waited; if it serves others until the end, write background=\"true\""
        );
        // An application that loses the kernel is not such a case.
        assert_eq!(told("", &[], &End::Exit { code: 2 }), []);
        let what = "x".to_owned();
        assert_eq!(told("", &[], &End::Trap { what }), []);
    }

    #[test]
    fn who_serves_in_the_background_is_there_until_the_system_is_over() {
        let system = load_system("quickstart", &LoadOptions::default()).expect("valid");
        let controller = "kernel: activity 3 (controller) on tile 3 stopped: exit 0\n";
        let hog = "kernel: activity 3 (hog-1) on tile 5 stopped by its manager\n";
        let begun = crate::tiled::names::all_as(&system, 3);
        let of = |lines: &[&str], markers: &[MarkerEvent]| {
            let all = stopped(&system, markers, &lines.concat(), true).into_iter();
            all.map(|one| (one.application, one.what))
                .collect::<Vec<_>>()
        };
        let all = [SENSOR, controller, ACTUATOR];
        assert_eq!(of(&[&all[..], &[hog]].concat(), &begun), []);
        let early = of(&[SENSOR, hog, controller, ACTUATOR], &begun);
        let what = "was stopped by its manager before the system was over";
        assert_eq!(early, [("hog-1".to_owned(), what.to_owned())]);
        // It was started again.
        let again = [&begun[..], &crate::tiled::names::all_as(&system, 4)].concat();
        assert_eq!(of(&[SENSOR, hog, controller, ACTUATOR], &again), []);
    }

    #[test]
    fn a_loop_without_end_has_a_place() {
        let console = format!("{SENSOR}{ACTUATOR}");
        let spending = |activity, pc, spent: &[u16]| {
            let running = [Running {
                owner: Owner::new(3, activity),
                pc,
                registers: [0; 32],
                stack: Vec::new(),
                spent: spent.to_vec(),
                awaits: None,
            }];
            seen(&console, &[], &running, &End::Duration).remove(0).1
        };
        let at = |activity, pc| spending(activity, pc, &[]);
        let looped = at(3, 0x1000);
        assert!(
            looped.contains("; at the end it was in controller's loop; if it serves"),
            "{looped}"
        );
        let unknown = at(3, 0x2000);
        assert!(
            unknown.contains("; at the end it was in 0x2000;"),
            "{unknown}"
        );
        // The actuator is on tile 4; the kernel, on tile 0, is waited for in other ways.
        let spent = spending(3, 0x1000, &[0, 4]);
        assert!(
            spent.contains("loop; it had no credits left to send to `actuator`: each message"),
            "{spent}"
        );
        // The sensor is in the foreground and the hog is not, so only the hog's place is told here.
        let waiting = |owner, awaits: Option<&[Owner]>| Running {
            owner,
            pc: 0x1000,
            registers: [0; 32],
            stack: Vec::new(),
            spent: Vec::new(),
            awaits: awaits.map(<[Owner]>::to_vec),
        };
        let (sensor, hog) = (Owner::new(2, 3), Owner::new(5, 3));
        let running = [
            waiting(Owner::new(3, 3), Some(&[Owner::new(0, 1), sensor, hog])),
            waiting(sensor, None),
            waiting(hog, None),
        ];
        let waits = seen(&console, &[], &running, &End::Duration).remove(0).1;
        assert!(
            waits.contains(
                "loop; it waited for a message from `sensor` or `hog-1` (which was in hog-1's loop); if it"
            ),
            "{waits}"
        );
        // Another application runs on its tile, so it is not known what it does.
        let other = at(9, 0x1000);
        assert!(!other.contains("at the end it"), "{other}");
    }

    #[test]
    fn a_manager_that_ends_first_is_no_way_to_finish() {
        let console = format!(
            "{SENSOR}{ACTUATOR}kernel: activity 3 (controller) on tile 3 stopped: exit 0\n"
        );
        let end = End::Exit { code: 0 };
        assert_eq!(told(&console, &[], &end), []);
        let never = told(&format!("{SENSOR}{ACTUATOR}"), &[], &end);
        let nothing = "it printed nothing and set no marker";
        let what = format!("has not finished, and the system has ended; {nothing}");
        assert_eq!((never.len(), never[0].0.as_str()), (1, "controller"));
        assert!(never[0].1.starts_with(&what), "{never:?}");
        let stopped = console.replace("exit 0\n", "stopped by its manager\n");
        let found = told(&stopped, &[], &end);
        assert_eq!(found.len(), 3, "{found:?}");
        let what = format!("was stopped by its manager before it had finished; {nothing}");
        assert!(found.iter().all(|one| one.1 == what), "{found:?}");
    }

    #[test]
    fn a_system_that_does_not_end_has_a_culprit() {
        let console = format!(
            "{SENSOR}{ACTUATOR}kernel: activity 3 (controller) on tile 3 stopped: exit 0\n"
        );
        let found = told(&console, &[], &End::Duration);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].0, "root");
        assert!(found[0].1.contains("though every application"), "{found:?}");
        // An application that only serves never finishes.
        let mut serves = load_system("quickstart", &LoadOptions::default()).expect("valid");
        for app in &mut serves.apps {
            app.background = true;
        }
        let names = crate::tiled::names::of(&serves, &[]);
        for end in [End::Duration, End::Idle] {
            let said = Said {
                names: &names,
                console: "",
                markers: &[],
                running: &[],
                rings: &[],
                starts: &[],
                prospects: &[],
                until: 0,
                refused: &[],
                end: &end,
                ended_by: None,
            };
            assert_eq!(incidents(&serves, &said, &|_, _| None), []);
        }
        // No program can end under another's name: applications' lines begin with their own.
        let lie = format!("[controller] {}", &console[..]);
        assert_eq!(told(&lie, &[], &End::Duration).len(), 1);
    }
}
