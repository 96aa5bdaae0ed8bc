//! Activities die at any moment of sessions with real services: those that depend on them are told, all others finish their work, and
//! nothing is missing.
//!
//! A test strikes the hart of a tile at a moment: its activity jumps to an address where nothing is. Every activity of the systems is a
//! victim: clients, servers, both ends of pipes, a manager and its applications, the root manager. When the run ends, the kernel prints the
//! holdings of all remaining activities, and whether everything that existed at boot came back (`kernel:books`). The matrix over every
//! point of a script is in the kernel's own tests; here are real servers, clients and units.

use bulkhead_system_tests::{Blow, Report, Strike, boot_booked, boot_struck};
use std::collections::{BTreeMap, BTreeSet};

/// A file service and its client over a session, a server and its client, and a pipe, on two tiles each.
const SESSIONS: Scene = Scene {
    text: r#"<system name="kills" platform="tiled-gem5" duration="100ms" manager-tile="1"><domain name="d">
  <app name="files" tile="2" program="tiled/files" memory="1MiB" background="true"><argument name="limit" value="1ms"/>
    <rgate name="priority-0" slot-size="320B"/><rgate name="priority-1" slots="8" slot-size="320B"/><mgate name="disk" size="2MiB"/></app>
  <app name="file-client" tile="3" program="service/file-client"><argument name="folder" value="a"/><argument name="session" value="yes"/><sgate name="files" to="files" gate="priority-0"/></app>
  <app name="server" tile="4" program="service/example" background="true"><rgate name="priority-0"/><rgate name="priority-1"/></app>
  <app name="client" tile="5" program="service/client"><argument name="runs" value="2000"/><sgate name="service" to="server" gate="priority-0"/></app>
  <app name="writer" tile="6" program="service/pipe-writer"><argument name="bytes" value="403200"/><sgate name="pipe" to="reader" credits="4"/></app>
  <app name="reader" tile="7" program="service/pipe-reader"><argument name="bytes" value="403200"/><rgate name="pipe" slots="4" slot-size="2KiB"/></app>
</domain></system>"#,
    ending: &["file-client", "client", "writer", "reader"],
    needs: &[
        ("file-client", "files"),
        ("client", "server"),
        ("writer", "reader"),
        ("reader", "writer"),
    ],
};

/// The timer and the console, each with a client; a manager with a server and a client of its own, which share a tile; a pipe through a
/// region on one tile.
const SERVICES: Scene = Scene {
    text: r#"<system name="kills" platform="./shared.xml" duration="100ms" manager-tile="1"><domain name="d">
  <app name="timer" tile="2" program="tiled/timer" background="true"><rgate name="priority-0"/><rgate name="priority-1"/></app>
  <app name="clock" tile="3" program="service/clock"><argument name="runs" value="10"/><sgate name="timer" to="timer" gate="priority-0"/></app>
  <app name="console" tile="4" program="tiled/console" background="true"><rgate name="priority-0" slot-size="320B"/></app>
  <app name="lines" tile="5" program="service/writer"><argument name="lines" value="200"/><sgate name="console" to="console" gate="priority-0"/></app>
  <app name="writer" tile="5" program="service/pipe-writer"><argument name="bytes" value="403200"/><sgate name="pipe" to="reader" credits="4"/><mgate name="pipe-region" size="160KiB"/></app>
  <app name="reader" tile="3" program="service/pipe-reader"><argument name="bytes" value="403200"/><rgate name="pipe" slots="4" slot-size="64B"/><mgate name="pipe-region" of="writer/pipe-region" size="160KiB" rights="r"/></app>
</domain>
<manager name="below" tile="6"><domain name="e">
  <app name="ping" tile="7" program="latency/ping"><argument name="runs" value="400"/><sgate name="pong" to="pong"/></app>
  <app name="pong" tile="7" program="latency/pong" background="true"><rgate name="input"/></app>
</domain></manager></system>"#,
    ending: &["clock", "lines", "writer", "reader", "ping"],
    needs: &[
        ("clock", "timer"),
        ("lines", "console"),
        ("writer", "reader"),
        ("reader", "writer"),
        ("ping", "pong"),
        ("ping", "below"),
        ("pong", "below"),
    ],
};

/// A system and its dependencies.
struct Scene {
    text: &'static str,
    /// Applications that end by themselves.
    ending: &'static [&'static str],
    /// Which applications cannot continue without which others.
    needs: &'static [(&'static str, &'static str)],
}

/// The holdings that the kernel prints for all remaining activities, by name, as numbers.
fn books(report: &Report) -> BTreeMap<String, Vec<u64>> {
    let lines = report.console.lines();
    let entries =
        lines.filter_map(|line| line.strip_prefix("kernel: books: ")?.split_once(" has "));
    let numbers = |text: &str| {
        let parts = text.split(|c: char| !c.is_ascii_digit());
        parts.filter_map(|part| part.parse().ok()).collect()
    };
    entries
        .map(|(name, text)| (name.to_owned(), numbers(text)))
        .collect()
}

impl Scene {
    /// All applications that cannot continue without this one, and itself.
    fn depending(&self, victim: &str) -> BTreeSet<String> {
        let mut all = BTreeSet::from([victim.to_owned()]);
        loop {
            let more = self.needs.iter().filter(|(_, on)| all.contains(*on));
            let more: Vec<String> = more.map(|(who, _)| (*who).to_owned()).collect();
            let before = all.len();
            all.extend(more);
            if all.len() == before {
                return all;
            }
        }
    }

    /// Strikes a tile at a moment; returns the activities that died of it.
    fn kill(&self, tile: u16, at: u64, undisturbed: &BTreeMap<String, Vec<u64>>) -> Option<String> {
        let how = Blow::Crash;
        let report = boot_struck(self.text, Strike { at, tile, how });
        let console = &report.console;
        let case = format!("tile {tile} at {at} ns:\n{console}");
        // An activity that slept until the end was ended by the end of the run.
        let run = console.split("kernel: books: ").next().unwrap_or_default();
        let died = run.lines().find(|line| {
            line.starts_with("kernel: ")
                && line.ends_with(" stopped: instruction page fault at 0x0, value 0x0")
        });
        let victim = died.and_then(|line| Some(line.split_once('(')?.1.split_once(')')?.0));
        // Everything comes back, whoever died.
        let closed = "kernel: books: all is there that was there at boot";
        assert!(console.contains(closed), "{case}");
        if victim == Some("root") {
            // The system's owner is gone.
            assert_eq!(report.code, Some(1), "{case}");
            return victim.map(str::to_owned);
        }
        // Nobody waits for ever: the run comes to its end.
        assert!(matches!(report.code, Some(0 | 3)), "{case}");
        let lost = victim
            .map(|victim| self.depending(victim))
            .unwrap_or_default();
        let manager = victim.is_some_and(|victim| self.needs.contains(&("pong", victim)));
        for name in self.ending {
            let ended = report.stopped(name);
            if !lost.contains(*name) {
                assert_eq!(ended, Some("exit 0"), "{name}, {case}");
            } else if victim != Some(name) {
                // It had finished, or ended by itself and said why, or was stopped because its manager died.
                let said = !report.printed(name).is_empty();
                let right = match ended {
                    Some("exit 0") => true,
                    Some("exit 1") => said,
                    Some("stopped by its manager") => manager,
                    _ => false,
                };
                assert!(right, "{name}, {case}");
            }
        }
        // Those that are left have the same holdings as without a death.
        let left = books(&report);
        for (name, without) in undisturbed {
            let Some(have) = left.get(name) else {
                assert!(lost.contains(name), "{name} is gone, {case}");
                continue;
            };
            assert!(!lost.contains(name), "{name} is there, {case}");
            // A manager has lost its capability for an activity that would still exist, and everything derived from it.
            let lacks = ["root", "below"].contains(&name.as_str())
                && victim.is_some_and(|v| !self.ending.contains(&v));
            match lacks {
                true => {
                    let mut pairs = have.iter().zip(without);
                    assert!(
                        pairs.all(|(have, without)| have <= without),
                        "{name}, {case}"
                    );
                }
                false => assert_eq!(have, without, "{name}, {case}"),
            }
        }
        victim.map(str::to_owned)
    }

    fn sweep(&self, points: u64) {
        let alone = &boot_booked(self.text);
        assert_eq!(alone.code, Some(0), "{}", alone.console);
        let undisturbed = books(alone);
        let begin = (2..8)
            .filter_map(|tile| alone.began(tile))
            .min()
            .unwrap_or(0)
            / 2;
        // In nanoseconds; the end is that of the activity that measures on the tile, or of the last one of all that measure.
        let last = (1..8).filter_map(|tile| alone.last(tile)).max();
        let last = last.unwrap_or(0);
        let (mut runs, mut deaths) = (0, BTreeMap::<String, u64>::new());
        for tile in 1..8 {
            let end = alone.last(tile).unwrap_or(last) / 2;
            for point in 0..points {
                let at = begin + (end - begin) * (2 * point + u64::from(tile % 2)) / (2 * points);
                runs += 1;
                if let Some(victim) = self.kill(tile, at, &undisturbed) {
                    *deaths.entry(victim).or_default() += 1;
                }
            }
        }
        println!(
            "{runs} moments from {begin} to {} ns, deaths {deaths:?}; nobody else harmed, nothing missing",
            last / 2
        );
        for (name, numbers) in undisturbed {
            println!("{name} has {numbers:?} at the end");
        }
        let victims: BTreeSet<&str> = self.ending.iter().copied().collect();
        let others = self.needs.iter().flat_map(|(a, b)| [*a, *b]);
        let all = victims.into_iter().chain(others).chain(["root"]);
        let missing: BTreeSet<&str> = all.filter(|name| !deaths.contains_key(*name)).collect();
        println!("never hit: {missing:?}");
        if points > 10 {
            assert!(missing.is_empty(), "{missing:?}");
        }
    }
}

#[test]
fn nobody_else_is_harmed_when_an_activity_of_a_session_dies() {
    SESSIONS.sweep(2);
}

#[test]
fn nobody_else_is_harmed_when_a_service_or_a_manager_dies() {
    SERVICES.sweep(2);
}

/// `cargo test --release -p bulkhead-system-tests kills:: -- --ignored --nocapture`.
#[test]
#[ignore = "many runs"]
fn nobody_else_is_harmed_whenever_an_activity_dies() {
    SESSIONS.sweep(40);
    SERVICES.sweep(40);
}
