//! Services and the library's threads on the machine.

use bulkhead_system_tests::{Report, boot_text};

fn run(text: &str) -> Report {
    let mut reports = boot_text(text, &[]);
    assert_eq!(reports.len(), 1);
    reports.remove(0)
}

#[test]
fn threads_serve_ring_and_ask_at_the_same_time() {
    let report = run(
        r#"<system name="threads" platform="tiled-gem5" duration="100ms" manager-tile="1">
  <domain name="d">
    <app name="threads" tile="2" program="service/threads">
      <rgate name="priority-0"/><sgate name="adder" to="adder"/><sgate name="timer" to="timer"/>
    </app>
    <app name="adder" tile="3" program="service/example" background="true"><rgate name="priority-0"/></app>
    <app name="timer" tile="4" program="tiled/timer" background="true"><rgate name="priority-0"/></app>
    <app name="client" tile="5" program="service/client"><argument name="runs" value="20"/><argument name="pause" value="30us"/>
      <sgate name="service" to="threads" gate="priority-0"/></app>
  </domain>
</system>"#,
    );
    assert_eq!(report.code, Some(0), "{}", report.console);
    assert_eq!(
        report.printed("threads"),
        ["20 served, 20 rung, 20 added, 20 woken"]
    );
}

#[test]
fn the_timer_wakes_in_time_and_the_important_client_first() {
    let report = run(
        r#"<system name="timer" platform="tiled-gem5" duration="100ms" manager-tile="1">
  <domain name="d">
    <app name="timer" tile="3" program="tiled/timer" background="true">
      <argument name="budget" value="100us"/><argument name="period" value="1ms"/>
      <rgate name="priority-0"/><rgate name="priority-1" slots="8"/></app>
    <app name="high" tile="2" program="service/clock"><sgate name="timer" to="timer" gate="priority-0"/></app>
    <app name="low-1" tile="4" program="service/clock"><sgate name="timer" to="timer" gate="priority-1"/></app>
    <app name="low-2" tile="5" program="service/clock"><sgate name="timer" to="timer" gate="priority-1"/></app>
    <app name="low-3" tile="6" program="service/clock"><sgate name="timer" to="timer" gate="priority-1"/></app>
  </domain>
</system>"#,
    );
    assert_eq!(report.code, Some(0), "{}", report.console);
    let late = |name: &str| -> u64 {
        let line = report.printed(name)[0].to_owned();
        let number = line.split(' ').nth(2).map(str::parse);
        number.and_then(Result::ok).expect("at most N ns late")
    };
    println!(
        "late: {} ns, {} {} {}",
        late("high"),
        late("low-1"),
        late("low-2"),
        late("low-3")
    );
    assert!(late("high") < 4_000, "{} ns", late("high"));
    for name in ["low-1", "low-2", "low-3"] {
        assert!(late(name) < 10_000, "{name}: {} ns", late(name));
    }
}

/// A client that is started again waits for what its predecessor left at a server that keeps requests, but no longer than until the server
/// looks whether the predecessor still waits. Before the mend it waited for the predecessor's moment (10 s) with the timer, and in vain for
/// another period of the budget with the framework's delayed requests.
#[test]
fn whoever_is_started_again_does_not_wait_for_what_its_predecessor_left() {
    let client = |how: &str, tile: u16| {
        format!(
            r#"<app name="{how}" tile="{tile}" program="service/successor"><argument name="how" value="{how}"/>
      <service restart="on-failure"/><rgate name="priority-0"/><mgate name="note" size="4KiB"/>
      <sgate name="server" to="{}" credits="1"/></app>"#,
            if how == "work" { "worker" } else { "timer" }
        )
    };
    let report = run(&format!(
        r#"<system name="successors" platform="tiled-gem5" duration="100ms" manager-tile="1">
  <domain name="d">
    <app name="timer" tile="2" program="tiled/timer" background="true"><rgate name="priority-0"/></app>
    <app name="worker" tile="3" program="service/example" background="true">
      <argument name="budget" value="18us"/><argument name="period" value="30ms"/><rgate name="priority-0"/></app>
    {}{}{}{}
  </domain>
</system>"#,
        client("call", 4),
        client("until", 5),
        client("threads", 6),
        client("work", 7),
    ));
    assert_eq!(report.code, Some(0), "{}", report.console);
    for (name, most) in [
        ("call", 25_000_000),
        ("until", 25_000_000),
        ("threads", 25_000_000),
        ("work", 35_000_000),
    ] {
        let said = report.printed(name);
        let waited = said.iter().find_map(|line| line.strip_prefix("waited "));
        let waited = waited.and_then(|rest| rest.strip_suffix(" ns")?.parse().ok());
        let waited: u64 = waited.unwrap_or_else(|| panic!("{name}: {said:?}\n{}", report.console));
        println!("{name}: {waited} ns");
        assert!(waited < most, "{name}: {waited} ns");
    }
}

#[test]
fn lines_of_the_console_are_whole_and_its_clients_bounded() {
    let report = run(
        r#"<system name="console" platform="tiled-gem5" duration="100ms" manager-tile="1">
  <domain name="d">
    <app name="console" tile="3" program="tiled/console" background="true">
      <argument name="limit" value="100us"/><argument name="budget" value="200us"/><argument name="period" value="1ms"/>
      <rgate name="priority-0"/><rgate name="priority-1" slots="8" slot-size="320B"/></app>
    <app name="a" tile="4" program="service/writer"><argument name="text" value="first"/><sgate name="console" to="console" gate="priority-1"/></app>
    <app name="b" tile="5" program="service/writer"><argument name="text" value="second"/><sgate name="console" to="console" gate="priority-1"/></app>
  </domain>
</system>"#,
    );
    assert_eq!(report.code, Some(0), "{}", report.console);
    let lines = report.printed("console");
    for (label, text) in [(0, "first"), (1, "second")] {
        let of = |line: &&&str| line.starts_with(&format!("1.{label}: "));
        let printed: Vec<&str> = lines.iter().filter(of).copied().collect();
        let expected: Vec<String> = (0..10).map(|n| format!("1.{label}: {text} {n}")).collect();
        assert_eq!(printed, expected);
    }
    assert_eq!(lines.len(), 20);
}

const FILES: &str = r#"<system name="files" platform="tiled-gem5" duration="200ms" manager-tile="1">
  <domain name="d">
    <app name="files" tile="3" program="tiled/files" memory="1MiB" background="true">
      <argument name="limit" value="1ms"/>
      <rgate name="priority-0" slot-size="320B"/><rgate name="priority-1" slots="8" slot-size="320B"/><mgate name="disk" size="1MiB"/></app>
    <app name="a" tile="4" program="service/file-client"><argument name="folder" value="one"/><argument name="bytes" value="2000"/><sgate name="files" to="files" gate="priority-0"/></app>
    <app name="b" tile="5" program="service/file-client"><argument name="folder" value="two"/><argument name="bytes" value="2000"/><sgate name="files" to="files" gate="priority-1"/></app>
  </domain>
  <domain name="hostile">
    <app name="hostile" tile="6" program="service/hostile" background="true"><argument name="messages" value="100000"/><sgate name="service" to="files" gate="priority-1"/></app>
    <app name="hostile-2" tile="7" program="service/hostile" background="true"><argument name="messages" value="100000"/><argument name="seed" value="77"/><sgate name="service" to="files" gate="priority-1"/></app>
  </domain>
  <variant name="alone"><without domain="hostile"/></variant>
  <variant name="beside"/>
</system>"#;

#[test]
fn files_of_two_clients_beside_hostile_ones() {
    let reports = boot_text(FILES, &[]);
    assert_eq!(reports.len(), 2);
    for report in &reports {
        assert_eq!(report.code, Some(0), "{}", report.console);
        for name in ["a", "b"] {
            assert_eq!(report.printed(name), ["6000 bytes compared"]);
        }
        assert_eq!(report.stopped("files"), None);
    }
}

/// A client that rewrites a short file next to two hostile clients with sessions, gates and names of their own. `others` are in its domain.
fn beside(program: &str, disk: &str, limit: &str, others: &str) -> String {
    let hostile = |name: &str, tile: u16, seed: u64| {
        format!(
            r#"<app name="{name}" tile="{tile}" program="{program}" memory="512KiB" background="true">
      <session name="files" to="files" priority="1"/><argument name="private" value="yes"/><argument name="seed" value="{seed}"/><argument name="name" value="{name}"/>
      <limit kernel-memory="64KiB" endpoints="60"/></app>"#
        )
    };
    format!(
        r#"<system name="beside" platform="tiled-gem5" duration="40ms" manager-tile="1">
  <domain name="main" criticality="A">
    <app name="files" tile="2" program="tiled/files" memory="1MiB" background="true"><argument name="limit" value="1ms"/>
      <service/><rgate name="priority-0" slots="4" slot-size="320B"/><rgate name="priority-1" slots="8" slot-size="320B"/>
      <mgate name="disk" size="{disk}"/>{limit}</app>
    <app name="client" tile="3" program="service/file-loop"><session name="files" to="files" priority="0"/></app>{others}
  </domain>
  <domain name="noise" criticality="E">
    {}
    {}
  </domain>
</system>"#,
        hostile("first", 4, 1),
        hostile("second", 5, 777)
    )
}

#[test]
fn who_fills_the_file_service_takes_nothing_that_belongs_to_another() {
    let limit = r#"<limit kernel-memory="64KiB"/>"#;
    // A small image and a large one; the usual kernel memory, and much.
    for (disk, limit) in [("1MiB", ""), ("1MiB", limit), ("16MiB", "")] {
        let report = run(&beside("attack/squatter", disk, limit, ""));
        assert_eq!(
            report.printed("client"),
            ["0 of 100 rounds failed"],
            "{disk} {limit}: {}",
            report.console
        );
        assert_eq!(report.stopped("files"), None, "{}", report.console);
        // They ran, and were refused often.
        for name in ["first", "second"] {
            assert!(report.printed(name).len() > 2, "{}", report.console);
        }
    }
}

/// The most cycles of a round of the client: six requests, each of which waits for another client's request and a question of the kernel.
const LEAVING: u64 = 2_000_000;
/// The most cycles of an empty request: it waits for another client's request, which its limit bounds to 1 ms, or for a question, and for
/// one piece of what another client left. When all of that was one piece of work, the worst one took 297 985.
const ASKED: u64 = 200_000;

/// What a client leaves behind is given back in pieces of work that make nobody wait long.
#[test]
fn who_leaves_with_all_files_open_keeps_nobody_waiting() {
    let asker = r#"
    <app name="asker" tile="6" program="service/client"><argument name="runs" value="1200"/><argument name="pause" value="15us"/>
      <session name="service" to="files" priority="0"/></app>"#;
    let report = run(&beside("attack/leaver", "16MiB", "", asker));
    assert_eq!(report.printed("client"), ["0 of 100 rounds failed"]);
    assert_eq!(report.stopped("files"), None, "{}", report.console);
    let worst = report.spans(3).into_iter().max().unwrap_or(0);
    let mut asked = report.spans(6);
    asked.sort_unstable();
    let said = |name| report.printed(name).last().copied().unwrap_or_default();
    println!(
        "{worst} cycles; empty requests {:?}; {}, {}",
        asked.iter().rev().take(5).collect::<Vec<_>>(),
        said("first"),
        said("second")
    );
    assert!(worst < LEAVING, "{worst} cycles");
    assert!(
        asked.len() == 1200 && asked[1199] < ASKED,
        "{}",
        asked[1199]
    );
}

#[test]
fn hostile_messages_stop_no_service() {
    for program in ["tiled/timer", "tiled/console"] {
        let text = format!(
            r#"<system name="hostile" platform="tiled-gem5" duration="60ms" manager-tile="1">
  <domain name="d">
    <app name="server" tile="3" program="{program}" background="true"><argument name="limit" value="100us"/>
      <rgate name="priority-0" slot-size="320B"/><rgate name="priority-1" slots="8" slot-size="320B"/></app>
    <app name="client" tile="2" program="service/client"><argument name="runs" value="100"/><argument name="pause" value="20us"/><sgate name="service" to="server" gate="priority-0"/></app>
    <app name="h1" tile="4" program="service/hostile" background="true"><sgate name="service" to="server" gate="priority-1"/></app>
    <app name="h2" tile="5" program="service/hostile" background="true"><argument name="seed" value="5"/><sgate name="service" to="server" gate="priority-1"/></app>
  </domain>
</system>"#
        );
        let report = run(&text);
        assert_eq!(report.code, Some(0), "{program}: {}", report.console);
        assert_eq!(report.stopped("server"), None, "{program}");
        let worst = report.spans(2)[1..].iter().max().copied().unwrap_or(0);
        println!("{program}: worst null request {worst} cycles");
        // At most one request of another client, which its limit bounds to 100 us.
        assert!(worst < 210_000, "{program}: {worst} cycles");
    }
}

/// A client whose requests are never answered, one that ends with a request outstanding, and a well-behaved one.
const LEFT: &str = r#"<system name="left" platform="tiled-gem5" duration="60ms" manager-tile="1">
  <domain name="d">
    <app name="server" tile="3" program="service/example" background="true"><rgate name="priority-0"/><rgate name="priority-1" slots="8"/></app>
    <app name="impatient" tile="4" program="service/impatient"><sgate name="service" to="server" gate="priority-1" credits="2"/></app>
    <app name="quitter" tile="5" program="service/impatient"><argument name="patience" value="0"/><sgate name="service" to="server" gate="priority-1"/></app>
    <app name="good" tile="2" program="service/client"><argument name="request" value="add"/><argument name="pause" value="5us"/><sgate name="service" to="server" gate="priority-0"/></app>
  </domain>
</system>"#;

#[test]
fn requests_that_are_not_answered_and_clients_that_have_gone() {
    let report = run(LEFT);
    assert_eq!(report.code, Some(0), "{}", report.console);
    assert_eq!(
        report.printed("impatient"),
        ["no answer in 100000 ns, and the service lives"]
    );
    assert_eq!(report.printed("quitter"), ["gone"]);
    assert_eq!(report.stopped("server"), None);
    // One of a thousand waits for a request of the kernel to the TileMux of the server's tile, whose code is cold then: 7833 cycles on 2026-11-28, and less than
    // 6000 with other orders of code before. The next longest is 1039.
    let mut spans = report.spans(2)[1..].to_vec();
    spans.sort_unstable();
    let worst = spans.pop().unwrap_or(0);
    assert!(worst < 10_000, "{worst} cycles");
    let others = spans.pop().unwrap_or(0);
    assert!(others < 2_000, "{others} cycles");
}
