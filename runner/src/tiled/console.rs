//! Reads what the kernel and the managers of the tiled OS print.
//!
//! Why it exists: only the console says how applications ended and how much of their quotas they used. Only the kernel begins a line
//! with `kernel:`, and it names the writer of every other line, so no program can speak for another. What it deliberately does not
//! know: what was measured.

use super::names::{Notice, notice};
use super::refusals;
use crate::collect::of_kind;
use crate::measure::MarkerEvent;
use crate::trap::cause;
use bulkhead_abi::marker::MarkerKind;
use bulkhead_model::System;
use bulkhead_report::result::{Incident, IncidentKind, QuotaUse};
use std::collections::BTreeMap;

/// Applications that did not end with exit code 0.
pub fn incidents(
    system: &System,
    console: &str,
    markers: &[MarkerEvent],
    locate: &dyn Fn(&str, u64) -> Option<String>,
) -> Vec<Incident> {
    // Several applications may share a tile.
    let fault_times: BTreeMap<(u16, u16), u64> = of_kind(markers, MarkerKind::ActivityFault)
        .map(|marker| ((marker.tile, marker.activity), marker.at))
        .collect();
    let stopped = console
        .lines()
        .filter_map(notice)
        .filter(|notice| notice.what.starts_with("stopped") && notice.what != "stopped: exit 0")
        .filter(|notice| !(notice.what.ends_with(BY_ITS_MANAGER)))
        .map(|notice| {
            let place = address(&notice.what).and_then(|pc| locate(&notice.name, pc));
            let why = match overflowed(system, console, &notice) {
                true => ": stack overflow; give the application a larger `stack`",
                false => "",
            };
            Incident {
                crash: None,
                kind: match notice.what.starts_with("stopped: exit ") {
                    true => IncidentKind::Stopped,
                    false => IncidentKind::Crash,
                },
                at: fault_times.get(&(notice.tile, notice.activity)).copied(),
                tile: notice.tile,
                application: notice.name.clone(),
                what: match (place, panic_message(console, &notice.name)) {
                    (Some(place), _) => {
                        let refused = refused(markers, &notice).unwrap_or_default();
                        format!("{} in {place}{why}{refused}", notice.what)
                    }
                    (None, Some(message)) if notice.what.ends_with("panic") => {
                        let about = refusals::meaning(system, &notice.name, &message);
                        format!("{}: {message}{}", notice.what, about.unwrap_or_default())
                    }
                    (None, _) => {
                        let mut what = notice.what.clone();
                        if what == "stopped: heap exhausted" {
                            // The place is that of the allocator's handler.
                            let message = panic_message(console, &notice.name);
                            let said = message.as_deref().and_then(|one| one.rsplit_once(" at "));
                            what += &said.map_or(String::new(), |(said, _)| format!(": {said}"));
                            what += "; give the application more `memory`";
                        }
                        what += &meaning(system, &notice).unwrap_or_default();
                        what += &refused(markers, &notice).unwrap_or_default();
                        if let Some(said) = last_line(console, &notice) {
                            what += &format!("; it said last: {said}");
                            let about = refusals::meaning(system, &notice.name, said);
                            what += &about.unwrap_or_default();
                        }
                        what
                    }
                },
            }
        });
    stopped.chain(given_up(system, console)).collect()
}

/// The kernel's message if it panicked or trapped. Only the kernel can begin a line this way.
pub fn kernel_stop(
    system: &System,
    console: &str,
    locate: &dyn Fn(&str, u64) -> Option<String>,
) -> Option<Incident> {
    let mut lines = console.lines();
    let panicked = |line: &str, next: Option<&str>| {
        let place = line.strip_prefix("kernel: panicked at ")?;
        Some(format!("panicked at {place} {}", next.unwrap_or_default()))
    };
    let trapped = |line: &str| {
        let said = line.strip_prefix("kernel: trap 0x")?;
        let (number, said) = said.split_once(' ')?;
        let name = cause(u64::from_str_radix(number, 16).ok()?);
        let place = address(line).and_then(|pc| locate("kernel", pc));
        let place = place.map_or(String::new(), |place| format!(" in {place}"));
        Some(format!(
            "trap that it does not handle: {name} {said}{place}"
        ))
    };
    let what = loop {
        let line = lines.next()?;
        if let Some(what) = panicked(line, lines.clone().next()).or_else(|| trapped(line)) {
            break what;
        }
    };
    Some(Incident {
        crash: None,
        kind: IncidentKind::KernelStopped,
        at: None,
        tile: system.kernel_tile,
        application: "kernel".to_owned(),
        what,
    })
}

/// Lines of managers, with the manager's index. Lines of others are ignored.
fn of_managers<'a>(system: &System, console: &'a str) -> impl Iterator<Item = (usize, &'a str)> {
    let line = |line: &'a str| {
        let (who, line) = line.strip_prefix('[')?.split_once("] ")?;
        let mut managers = system.managers.iter();
        let manager = managers.position(|manager| manager.name == who)?;
        Some((manager, line))
    };
    console.lines().filter_map(line)
}

/// Whether an application or manager of this name is below a manager, which is believed only about those.
fn is_below(system: &System, name: &str, manager: usize) -> bool {
    let mut apps = system.apps.iter();
    if let Some(app) = apps.position(|app| app.name == name) {
        return system.is_within(system.manager_of(app), manager);
    }
    let mut managers = system.managers.iter();
    let found = managers.find(|one| one.name == name);
    let parent = found.and_then(|one| one.parent);
    parent.is_some_and(|parent| system.is_within(parent, manager))
}

/// Applications that their manager failed to restart, and why.
fn given_up(system: &System, console: &str) -> Vec<Incident> {
    let one = |(manager, line): (usize, &str)| {
        let (name, why) = line
            .strip_prefix('`')?
            .split_once("` is not started again: ")?;
        let app = system.apps.iter().find(|app| app.name == name)?;
        is_below(system, name, manager).then(|| Incident {
            crash: None,
            kind: IncidentKind::Stopped,
            at: None,
            tile: app.tile,
            application: name.to_owned(),
            what: format!("{NOT_AGAIN}: {why}"),
        })
    };
    of_managers(system, console).filter_map(one).collect()
}

/// The beginning of an incident of an application that was not restarted.
const NOT_AGAIN: &str = "not started again";

/// Whether the application itself is not the cause of an incident: it lost its tile, or was not restarted.
pub fn is_done_to(incident: &Incident) -> bool {
    let ended = matches!(incident.kind, IncidentKind::Crash | IncidentKind::Stopped);
    ended && (incident.what.starts_with(NOT_AGAIN) || incident.what == TILE_LOST)
}

/// The end of the kernel's line about an application that its manager stopped.
pub const BY_ITS_MANAGER: &str = "stopped by its manager";

/// The kernel's text about an application whose tile was lost.
const TILE_LOST: &str = "stopped: its tile was lost";

/// Whether its manager, which knows where its stack ends, reports that an activity overran it.
fn overflowed(system: &System, console: &str, stopped: &Notice) -> bool {
    let line = format!(
        "activity {} ({}): stack overflow",
        stopped.activity, stopped.name
    );
    of_managers(system, console)
        .any(|(manager, said)| said == line && is_below(system, &stopped.name, manager))
}

/// The managers' reports about quotas.
pub fn quotas(system: &System, console: &str) -> Vec<QuotaUse> {
    let one = |(manager, line): (usize, &str)| {
        let (of, line) = line.strip_prefix("quota of `")?.split_once("`: ")?;
        if !is_below(system, of, manager) {
            return None;
        }
        let (quota, line) = line.split_once(' ')?;
        let (used, limit) = line.split_once(" of ")?;
        let (quota, tile) = match quota.split_once('@') {
            Some((quota, tile)) => (quota, Some(tile.parse().ok()?)),
            None => (quota, None),
        };
        Some(QuotaUse {
            of: of.into(),
            quota: quota.into(),
            tile,
            used: used.parse().ok()?,
            limit: limit.parse().ok()?,
        })
    };
    of_managers(system, console).filter_map(one).collect()
}

/// The last output of an application that ended with an error.
fn last_line<'a>(console: &'a str, ended: &Notice) -> Option<&'a str> {
    if !ended.what.starts_with("stopped: exit ") {
        return None;
    }
    let own = format!("[{}] ", ended.name);
    let is_end = |line: &&str| {
        notice(line).is_some_and(|n| n.activity == ended.activity && n.what == ended.what)
    };
    let before = console.lines().take_while(|line| !is_end(line));
    before.filter_map(|line| line.strip_prefix(&own)).last()
}

/// The request that the heap refused last. A program in C gets a null pointer then, and fails later.
fn refused(markers: &[MarkerEvent], ended: &Notice) -> Option<String> {
    let all = of_kind(markers, MarkerKind::HeapRefused);
    let own = all.filter(|one| (one.tile, one.activity) == (ended.tile, ended.activity));
    let bytes = own.last()?.value;
    Some(format!(
        "; before that, its heap had no block of {bytes} bytes, so `bh_allocate` returned null; give the application more `memory`"
    ))
}

/// The text of the C header about an exit code, if it is one of its error codes.
fn meaning(system: &System, ended: &Notice) -> Option<String> {
    const HEADER: &str = include_str!("../../../software/lib/c/include/bulkhead.h");
    let app = system.apps.iter().find(|app| app.name == ended.name)?;
    if !(app.program.ends_with(".c") || app.program.starts_with("c/")) {
        return None;
    }
    // Errors are negative.
    let code = ended.what.strip_prefix("stopped: exit ")?;
    let code = Some(code).filter(|code| code.starts_with('-'))?;
    let mut lines = HEADER.lines().map(str::trim);
    let wanted = format!(" = {code},");
    let line = lines.find(|line| line.starts_with("BH_") && line.contains(&wanted))?;
    let (name, rest) = line.split_once(" = ")?;
    let about = rest
        .split_once("/* ")
        .map(|(_, about)| about.trim_end_matches(" */"));
    Some(match about {
        Some(about) => format!(" ({name}: {about})"),
        None => format!(" ({name})"),
    })
}

/// A program's panic message.
fn panic_message(console: &str, name: &str) -> Option<String> {
    let own = format!("[{name}] ");
    let mut lines = console.lines().filter_map(|line| line.strip_prefix(&own));
    let place = lines.find_map(|line| line.strip_prefix("panicked at "))?;
    let message = lines.next().unwrap_or_default();
    Some(format!("{message} at {}", place.trim_end_matches(':')))
}

/// The program counter in `... at 0x1234, ...`.
fn address(text: &str) -> Option<u64> {
    let digits = &text[text.find(" at 0x")? + " at 0x".len()..];
    let end = digits
        .find(|c: char| !c.is_ascii_hexdigit())
        .unwrap_or(digits.len());
    u64::from_str_radix(&digits[..end], 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use bulkhead_model::{LoadOptions, load_system, load_system_text};

    fn system() -> System {
        load_system("quickstart", &LoadOptions::default()).expect("valid")
    }

    #[test]
    fn quotas_are_what_managers_say() {
        let system = load_system_text(
            "s",
            "<system name='s' platform='tiled-gem5'><manager name='m'><domain name='d'><app name='a' program='p'/></domain></manager>\
             <domain name='e'><app name='b' program='p'/></domain></system>",
            &LoadOptions::default(),
        )
        .unwrap();
        // A manager is believed about those below it, but not about others or itself.
        let console = "[m] quota of `b`: endpoints 99 of 100\n[m] quota of `m`: endpoints 99 of 100\n[root] quota of `x`: endpoints 1 of 2\n[root] quota of `m`: endpoints@4 9 of 12\n[a] quota of `m`: endpoints 1 of 2\n\
             [m] quota of `a`: kernel-memory 880 of 4096\n[root] quota of `m`: half a line";
        let found = quotas(&system, console);
        let all: Vec<_> = found
            .iter()
            .map(|q| (q.of.as_str(), q.quota.as_str(), q.tile, q.used, q.limit))
            .collect();
        assert_eq!(
            all,
            [
                ("m", "endpoints", Some(4), 9, 12),
                ("a", "kernel-memory", None, 880, 4096)
            ]
        );
    }

    #[test]
    fn a_null_pointer_of_an_exhausted_heap_has_its_cause() {
        let system = system();
        let console = "kernel: activity 7 (hog-1) on tile 5 stopped: store page fault at 0x10000040, value 0x0\n\
                       kernel: activity 8 (hog-2) on tile 6 stopped: store page fault at 0x10000040, value 0x0\n";
        let refused = |bytes| MarkerEvent {
            at: 1,
            tile: 5,
            activity: 7,
            kind: MarkerKind::HeapRefused as u16,
            value: bytes,
            pc: 0,
        };
        let locate = |_: &str, _| Some("main (a.c:5)".to_owned());
        let found = incidents(&system, console, &[refused(64), refused(4096)], &locate);
        assert_eq!(
            found[0].what,
            "stopped: store page fault at 0x10000040, value 0x0 in main (a.c:5); before that, its heap had no block of 4096 bytes, \
             so `bh_allocate` returned null; give the application more `memory`"
        );
        assert!(found[1].what.ends_with("in main (a.c:5)"), "{found:?}");
    }

    #[test]
    fn who_is_not_started_again_is_an_incident() {
        let system = system();
        let console = "[hog-1] `sensor` is not started again: a lie\n[root] `sensor` is not started again: the kernel refused\n\
                       kernel: activity 7 (hog-1) on tile 5 stopped: its tile was lost\n\
                       kernel: activity 8 (hog-2) on tile 6 stopped: exit 1\n";
        let found = incidents(&system, console, &[], &|_, _| None);
        let told: Vec<_> = found
            .iter()
            .map(|one| (one.application.as_str(), one.what.as_str(), is_done_to(one)))
            .collect();
        assert_eq!(
            told,
            [
                ("hog-1", "stopped: its tile was lost", true),
                ("hog-2", "stopped: exit 1", false),
                ("sensor", "not started again: the kernel refused", true),
            ]
        );
    }

    #[test]
    fn an_error_stands_beside_what_was_said_before_it() {
        let system = system();
        let console = "[hog-1] one\n[hog-2] no such file\n\
                       kernel: activity 8 (hog-2) on tile 6 stopped: exit 1\n[hog-2] again\n\
                       kernel: activity 7 (hog-1) on tile 5 stopped: load page fault at 0x10000040, value 0x10000ff8\n\
                       [hog-1] activity 7 (hog-1): stack overflow\n";
        let told = |console: &str| {
            let locate = |_: &str, _| Some("main".to_owned());
            let found = incidents(&system, console, &[], &locate);
            found.into_iter().map(|i| i.what).collect::<Vec<_>>()
        };
        let fault = "stopped: load page fault at 0x10000040, value 0x10000ff8 in main";
        let error = "stopped: exit 1; it said last: no such file";
        assert_eq!(told(console), [error, fault]);
        // Only managers know about a full stack.
        let console = console.replace("[hog-1] act", "[root] act");
        let more = ": stack overflow; give the application a larger `stack`";
        assert_eq!(told(&console), [error.into(), format!("{fault}{more}")]);
    }

    #[test]
    fn exit_codes_of_programs_in_c_have_names() {
        let text = "<system name='s' platform='tiled-gem5'><domain name='d'><app name='a' program='x.c'/><app name='b' program='control/sensor'/></domain></system>";
        let system = load_system_text("s", text, &LoadOptions::default()).unwrap();
        let ended = |name: &str, code: i64| {
            let line = format!("kernel: activity 8 ({name}) on tile 6 stopped: exit {code}\n");
            incidents(&system, &line, &[], &|_, _| None).remove(0).what
        };
        assert_eq!(
            ended("a", -101),
            "stopped: exit -101 (BH_NOT_FOUND: the description does not contain it)"
        );
        assert_eq!(
            ended("a", -15),
            "stopped: exit -15 (BH_BUSY: the unit performs another command)"
        );
        assert_eq!(ended("a", 1), "stopped: exit 1");
        assert_eq!(ended("b", -101), "stopped: exit -101");
    }

    #[test]
    fn a_panic_of_the_kernel_is_an_incident_and_nobody_else_can_say_so() {
        let system = system();
        let said = "[hog-1] kernel: panicked at a lie\nkernel: panicked at src/unit.rs:481:5:\nendpoint 3 of the kernel\n";
        let nowhere = |_: &str, _| None;
        let found = kernel_stop(&system, said, &nowhere).expect("it panicked");
        assert_eq!(found.kind, IncidentKind::KernelStopped);
        assert_eq!(
            (found.tile, found.application.as_str(), found.what.as_str()),
            (
                system.kernel_tile,
                "kernel",
                "panicked at src/unit.rs:481:5: endpoint 3 of the kernel"
            )
        );
        assert_eq!(
            kernel_stop(&system, "[hog-1] kernel: panicked at a lie\n", &nowhere),
            None
        );
        let said = "[hog-1] kernel: trap 0x2 at a lie\nkernel: trap 0x1 at 0x0, value 0x0\n";
        let somewhere = |of: &str, pc| Some(format!("{of}'s {pc}"));
        let found = kernel_stop(&system, said, &somewhere).expect("it stopped");
        assert_eq!(
            (found.kind, found.what.as_str()),
            (
                IncidentKind::KernelStopped,
                "trap that it does not handle: instruction access fault at 0x0, value 0x0 in kernel's 0"
            )
        );
    }

    #[test]
    fn faults_are_located() {
        let system = system();
        let console = "kernel: activity 7 (hog-1) on tile 5 stopped: load page fault at 0x10000040, value 0x0\n\
                       kernel: activity 8 (hog-2) on tile 6 stopped: exit 0\n";
        let found = incidents(&system, console, &[], &|name: &str, pc| {
            (name == "hog-1" && pc == 0x1000_0040).then(|| "main at src/main.rs:7".to_owned())
        });
        assert_eq!(found.len(), 1);
        assert!(
            found[0].what.ends_with("in main at src/main.rs:7"),
            "{}",
            found[0].what
        );
    }
}
