//! What crosses the borders of managers: services that come back, services that never come, several services of one application,
//! modules, and shared regions.

use bulkhead_system_tests::shared_tiles::{boot, system as described, variant};
use bulkhead_system_tests::{Report, boot_text, boot_with};

fn system(inside: &str) -> String {
    format!(
        "<system name=\"managed\" platform=\"./shared.xml\" duration=\"100ms\" manager-tile=\"1\">{inside}</system>"
    )
}

fn run(inside: &str) -> Report {
    boot_text(&system(inside), &[]).remove(0)
}

fn last<'a>(report: &'a Report, name: &str) -> &'a str {
    report.printed(name).last().copied().unwrap_or("")
}

/// A manager that was alone on its tile when it began to wait for the kernel's answer keeps the hart from nobody who comes later.
#[test]
fn a_manager_that_waits_leaves_the_hart_to_its_tile() {
    let talker = |name| {
        format!(
            r#"<app name="{name}" tile="2" program="attack/talker"><argument name="runs" value="40"/></app>"#
        )
    };
    let report = run(&format!(
        r#"<manager name="m" tile="2"><manager name="n" tile="3"><domain name="d">{}{}</domain></manager></manager>"#,
        talker("one"),
        talker("two")
    ));
    assert_eq!(report.code, Some(0), "{}", report.console);
    // A line takes some 2 us. A manager that sleeps on the unit for its time slice makes it 1 ms.
    let lines = report.spans(2);
    assert_eq!(lines.len(), 80);
    let worst = lines.iter().copied().max().unwrap_or(0);
    assert!(worst < 100_000, "{worst} cycles");
}

#[test]
fn a_service_comes_back_for_clients_below_any_manager() {
    let report = run(r#"<domain name="d">
      <app name="above" tile="4" program="service/persistent"><argument name="stops" value="1"/><argument name="losses" value="5"/>
        <session name="service" to="deep"/></app>
      <app name="top" tile="6" program="service/fragile" background="true"><service scope="system" restart="on-failure"/>
        <rgate name="priority-0" slots="4"/></app></domain>
      <manager name="m" tile="2"><manager name="n" tile="2"><domain name="e">
        <app name="deep" tile="3" program="service/fragile" background="true">
          <service scope="system" restart="on-failure"/><rgate name="priority-0" slots="4"/></app>
        <app name="inner" tile="4" program="service/persistent"><argument name="stops" value="1"/><argument name="losses" value="5"/>
          <session name="service" to="top"/></app>
      </domain></manager></manager>
      <manager name="other" tile="7"><domain name="f">
        <app name="aside" tile="5" program="service/persistent"><argument name="stops" value="1"/><argument name="runs" value="100"/><argument name="losses" value="5"/>
          <session name="service" to="deep"/></app>
        <app name="near" tile="5" program="service/persistent"><argument name="stops" value="1"/><argument name="runs" value="100"/><argument name="losses" value="5"/>
          <session name="service" to="top"/></app>
      </domain></manager>"#);
    assert_eq!(report.code, Some(0), "{}", report.console);
    // The two of `other` ask for longer, so two clients never tell the same start of a service to stop.
    for (name, sums) in [("above", 10), ("inner", 10), ("aside", 200), ("near", 200)] {
        let all = format!("{sums} sums in 2 sessions");
        assert_eq!(last(&report, name), all, "{}", report.console);
    }
    for manager in ["root", "n"] {
        let said = report.printed(manager).join("\n");
        assert!(said.contains("is started again (2 of 3)"), "{said}");
    }
}

/// The longest time between two failures of the critical service of a system, in microseconds; prints what the others did meanwhile.
fn longest_restart(system: &str, name: &str) -> (f64, usize) {
    let result = boot(described(system), &[]);
    let failures = variant(&result, name).incidents.iter();
    let failures = failures.filter(|incident| incident.application == "server");
    let at: Vec<u64> = failures.filter_map(|incident| incident.at).collect();
    assert_eq!(at.len(), 81, "{name}");
    let between = at.windows(2).map(|pair| pair[1] - pair[0]);
    let others = variant(&result, name).incidents.iter();
    let others = others.filter(|incident| incident.application.starts_with("hog"));
    let longest = result.microseconds(between.max().unwrap_or(0));
    println!(
        "{system}, {name}: {longest} us, {} restarts of others",
        others.clone().count()
    );
    (longest, others.count())
}

#[test]
fn the_less_critical_delay_a_restart_by_one_piece_of_theirs() {
    let (alone, _) = longest_restart("restarts", "alone");
    let (beside, others) = longest_restart("restarts", "beside");
    assert!(others > 30);
    // A restart has some fifty pieces, and each waits for at most one piece of a less critical one: a system call or a page, at most 8000 cycles of
    // the kernel (4 us). Four restarts, one after the other, were five times as long, and halves of them twice as long.
    let most = alone + 50.0 * 4.0;
    assert!(beside < most, "{beside} us, {alone} us alone");
}

/// Ten managers below hear of each start of four services that fail over and over: a critical restart waits for a word to one of them, not for all.
#[test]
fn words_to_many_managers_delay_a_restart_by_one_of_them() {
    let (alone, _) = longest_restart("restarts", "alone");
    let (beside, others) = longest_restart("words", "beside");
    assert!(others > 30);
    let most = alone + 50.0 * 4.0;
    assert!(beside < most, "{beside} us, {alone} us alone");
}

#[test]
fn clients_below_other_managers_hear_of_services_that_will_not_come() {
    let report = run(r#"<domain name="d">
      <app name="above" tile="4" program="service/persistent"><session name="service" to="never"/></app>
      <app name="top" tile="6" program="adversary/stack" background="true"><service scope="system"/>
        <rgate name="priority-0" slots="4"/></app></domain>
      <manager name="m" tile="2"><domain name="e">
        <app name="never" tile="3" program="adversary/stack" background="true">
          <service scope="system" restart="on-failure" restarts="2"/><rgate name="priority-0" slots="4"/></app>
        <app name="below" tile="5" program="service/persistent"><session name="service" to="top"/></app>
        <app name="tired" tile="3" program="service/fragile" background="true">
          <service scope="system" restart="on-failure" restarts="1"/><rgate name="priority-0" slots="4"/></app>
      </domain></manager>
      <manager name="other" tile="7"><manager name="n" tile="7"><domain name="f">
        <app name="aside" tile="5" program="service/persistent"><session name="service" to="never"/></app>
        <app name="busy" tile="6" program="service/persistent"><argument name="stops" value="3"/>
          <session name="service" to="tired"/></app>
      </domain></manager></manager>"#);
    // It ends long before its time: nobody waits for what will not come.
    assert_eq!(report.code, Some(3), "{}", report.console);
    let said = |manager: &str, text: &str| {
        let all = report.printed(manager).join("\n");
        assert!(all.contains(text), "{manager}: {text}\n{}", report.console);
    };
    let twice = "there is no service `never`: it failed, and was started again 2 times";
    said("root", &format!("`above` is not started: {twice}"));
    said("n", &format!("`aside` is not started: {twice}"));
    said(
        "m",
        "`below` is not started: there is no service `top`: it failed",
    );
    // An application that already runs hears at once that there is no other session.
    assert_eq!(last(&report, "busy"), "after 2 stops: closed");
}

#[test]
fn an_application_has_several_services() {
    let report = run(r#"<domain name="d">
      <app name="one" tile="4" program="service/persistent"><argument name="stops" value="1"/>
        <session name="service" to="pair" service="second"/></app>
      <app name="pair" tile="3" program="service/pair" background="true">
        <service scope="system" restart="on-failure"/><service name="second" scope="system" restart="on-failure"/>
        <rgate name="priority-0" slots="4"/><rgate name="second-priority-0" slots="4"/></app></domain>
      <manager name="m" tile="2"><domain name="e">
        <app name="two" tile="5" program="service/persistent"><argument name="losses" value="5"/><session name="service" to="pair"/></app>
        <app name="three" tile="6" program="service/persistent"><argument name="runs" value="2000"/>
          <argument name="losses" value="5"/><session name="service" to="pair" service="second"/></app>
      </domain></manager>"#);
    assert_eq!(
        last(&report, "one"),
        "10 sums in 2 sessions",
        "{}",
        report.console
    );
    let said = report.printed("pair");
    for line in ["first: session 1", "second: session 1", "second: session 2"] {
        assert!(said.contains(&line), "{said:?}");
    }
}

/// What it offers beyond its description is given to nobody, and harms nobody.
#[test]
fn a_service_that_the_description_does_not_have_is_given_to_nobody() {
    let report = run(r#"<domain name="d">
      <app name="one" tile="4" program="service/persistent"><session name="service" to="pair"/></app>
      <app name="pair" tile="3" program="service/pair" background="true"><service/>
        <rgate name="priority-0" slots="4"/><rgate name="second-priority-0" slots="4"/></app></domain>"#);
    // Both try to be the only service that there is; the second is refused.
    assert!(
        report.console.contains("cannot be offered"),
        "{}",
        report.console
    );
}

#[test]
fn a_manager_reads_only_the_modules_of_its_own_part() {
    let text = system(
        r#"<module name="secret" file="secret.txt" for="safe"/><module name="own" file="own.txt" for="thief"/>
      <domain name="d">
      <app name="safe" tile="4" program="service/reader"><mgate name="map" module="secret" rights="r"/>
        <mgate name="more" size="8KiB" fill="secret" scope="system"/></app></domain>
      <manager name="thief" tile="5" program="adversary/thief-manager"><domain name="lost">
        <app name="victim" tile="6" program="service/reader"><mgate name="map" module="own" rights="r"/></app>
      </domain></manager>
      <manager name="m" tile="2"><manager name="n" tile="2"><domain name="e">
        <app name="honest" tile="7" program="service/reader"><mgate name="map" module="own" rights="r"/></app>
      </domain></manager></manager>"#
        .replace("for=\"thief\"", "for=\"thief m\"")
        .as_str(),
    );
    let report = boot_with(&text, &[], |folder| {
        std::fs::write(folder.join("secret.txt"), "only for others\n").unwrap();
        std::fs::write(folder.join("own.txt"), "for all below\n").unwrap();
    })
    .remove(0);
    assert_eq!(report.code, Some(0), "{}", report.console);
    assert_eq!(report.printed("honest")[0], "map: for all below");
    assert_eq!(report.printed("safe")[0], "map: only for others");
    assert_eq!(
        report.printed("thief"),
        [
            "system.xml: opened 0 times",
            "data:secret: opened 0 times",
            "data:own: opened 1 times",
            "tiled/resmgr: opened 0 times",
            "tiled/tilemux: opened 0 times",
            "tiled/kernel: opened 0 times",
            "read 3 memories",
            "found 0, wrote 0, derived 0",
        ],
        "{}",
        report.console
    );
}

#[test]
fn regions_are_shared_across_managers() {
    let text = system(
        r#"<module name="map" file="map.txt"/>
      <domain name="d">
      <app name="top" tile="4" program="service/reader"><mgate name="map" of="deep/map" size="4KiB" rights="r"/></app>
      <app name="owner" tile="4" program="service/reader"><mgate name="map" size="8KiB" fill="map" scope="system" rights="r"/></app></domain>
      <manager name="m" tile="2"><limit memory="4MiB"/><domain name="c">
        <app name="middle" tile="3" program="service/reader"><mgate name="map" of="deep/map" size="4KiB" rights="r"/></app></domain>
      <manager name="n" tile="2"><domain name="e">
        <app name="deep" tile="3" program="service/reader"><mgate name="map" size="8KiB" fill="map" scope="system" rights="r"/></app>
      </domain></manager></manager>
      <manager name="other" tile="7"><domain name="f">
        <app name="aside" tile="5" program="service/reader"><mgate name="map" of="deep/map" size="4KiB" rights="r"/></app>
        <app name="below" tile="5" program="service/reader"><mgate name="map" of="owner/map" size="4KiB" rights="r"/></app>
      </domain></manager>
      <manager name="thief" tile="6" program="adversary/thief-manager"><domain name="lost">
        <app name="victim" tile="6" program="service/reader"><mgate name="map" of="deep/map" size="4KiB" rights="r"/></app>
      </domain></manager>"#,
    );
    let report = boot_with(&text, &[], |folder| {
        std::fs::write(folder.join("map.txt"), "one map for all\n").unwrap();
    })
    .remove(0);
    assert_eq!(report.code, Some(0), "{}", report.console);
    for name in ["top", "owner", "middle", "deep", "aside", "below"] {
        assert_eq!(
            report.printed(name),
            [
                "map: one map for all",
                "writing the map: Some(NoPermission)"
            ],
            "{}",
            report.console
        );
    }
    assert_eq!(
        last(&report, "thief"),
        "found 0, wrote 0, derived 0",
        "{}",
        report.console
    );
}

#[test]
fn a_manager_that_lies_about_its_services_harms_only_those_who_depend_on_it() {
    let report = run(r#"<domain name="d" criticality="A">
      <app name="client" tile="4" program="service/persistent"><argument name="stops" value="2"/>
        <argument name="runs" value="500"/><session name="service" to="adder"/></app>
      <app name="adder" tile="3" program="service/fragile" background="true">
        <service restart="on-failure"/><rgate name="priority-0" slots="4"/></app>
      <app name="fooled" tile="4" program="service/persistent" background="true"><session name="service" to="lost"/></app></domain>
      <manager name="bad" tile="5" program="adversary/liar-manager"><domain name="e">
        <app name="lost" tile="6" program="service/fragile" background="true"><service scope="system" restart="on-failure"/>
          <rgate name="priority-0" slots="4"/></app>
      </domain></manager>
      <manager name="good" tile="2"><domain name="f">
        <app name="other" tile="6" program="service/persistent" background="true"><session name="service" to="lost"/></app>
        <app name="worker" tile="6" program="adversary/witness"><argument name="rounds" value="20"/></app>
      </domain></manager>"#);
    assert_eq!(report.code, Some(0), "{}", report.console);
    assert_eq!(last(&report, "client"), "1500 sums in 3 sessions");
    assert_eq!(report.stopped("worker"), Some("exit 0"));
    // Of a service that is not there it is said once.
    let said = report.printed("root");
    let said = said.iter().filter(|l| l.contains("the service of `lost`"));
    assert!(said.count() <= 1, "{}", report.console);
}
