//! Applications that wait for a service that never comes: how long they wait, and what their manager then
//! reports.

use bulkhead_system_tests::{Report, boot_booked};

fn run(inside: &str) -> Report {
    boot_booked(&format!(
        "<system name=\"patience\" platform=\"./shared.xml\" duration=\"100ms\" manager-tile=\"1\">{inside}</system>"
    ))
}

/// What a manager reported about applications that were not started.
fn refused<'a>(report: &'a Report, manager: &str) -> Vec<&'a str> {
    let all = report.printed(manager).into_iter();
    all.filter(|line| line.contains("is not started")).collect()
}

fn books_close(report: &Report) {
    let closed = "books: all is there that was there at boot";
    assert!(report.console.contains(closed), "{}", report.console);
}

#[test]
fn a_service_that_is_never_offered_is_waited_for_as_long_as_is_written() {
    let report = run(r#"<domain name="d">
      <app name="silent" tile="3" program="adversary/spin" background="true"><service/><service name="log"/>
        <rgate name="priority-0"/><rgate name="log-priority-0"/></app>
      <app name="middle" tile="4" program="service/fragile" background="true"><service/><rgate name="priority-0" slots="4"/>
        <session name="s" to="silent" service="log" patience="7ms"/></app>
      <app name="outer" tile="5" program="service/persistent"><session name="service" to="middle" patience="1ms"/></app>
      <app name="client" tile="6" program="service/persistent"><session name="service" to="silent" patience="5ms"/></app>
      <app name="adder" tile="7" program="service/fragile" background="true"><service/><rgate name="priority-0" slots="4"/></app>
      <app name="other" tile="4" program="service/persistent"><argument name="runs" value="20"/>
        <session name="service" to="adder" patience="5ms"/></app>
      </domain>"#);
    // It ends long before its time, and nobody else is affected.
    assert_eq!(report.code, Some(3), "{}", report.console);
    assert_eq!(
        refused(&report, "root"),
        [
            "`client` is not started: it waited 5 ms for the service of `silent`, which runs but has not offered it",
            "`middle` is not started: it waited 7 ms for the service `log` of `silent`, which runs but has not offered it",
            // The wait for it starts only when it runs.
            "`outer` is not started: there is no service `middle`: it was not started itself",
        ]
    );
    assert_eq!(report.printed("other"), ["20 sums in 1 sessions"]);
    books_close(&report);
}

fn assert_served(report: &Report, name: &str) {
    let said = report.printed(name);
    assert_eq!(said, ["5 sums in 1 sessions"], "{}", report.console);
}

#[test]
fn a_service_that_is_offered_late_is_there_for_those_who_wait_so_long() {
    let report = run(r#"<domain name="d">
      <app name="late" tile="3" program="service/fragile" background="true"><argument name="delay" value="8ms"/><service/>
        <rgate name="priority-0" slots="4"/></app>
      <app name="patient" tile="4" program="service/persistent"><session name="service" to="late" patience="9ms"/></app>
      <app name="default" tile="5" program="service/persistent"><session name="service" to="late"/></app>
      <app name="hasty" tile="6" program="service/persistent"><session name="service" to="late" patience="7ms"/></app>
      </domain>"#);
    assert_eq!(report.code, Some(3), "{}", report.console);
    for name in ["patient", "default"] {
        assert_served(&report, name);
    }
    assert_eq!(
        refused(&report, "root"),
        [
            "`hasty` is not started: it waited 7 ms for the service of `late`, which runs but has not offered it"
        ]
    );
    books_close(&report);
}

#[test]
fn services_below_other_managers_are_waited_for_in_the_same_way() {
    let report = run(r#"<domain name="d">
      <app name="above" tile="4" program="service/persistent"><session name="service" to="silent" patience="5ms"/></app>
      <app name="glad" tile="4" program="service/persistent"><session name="service" to="late" patience="9ms"/></app></domain>
      <manager name="m" tile="2"><domain name="e">
        <app name="silent" tile="3" program="adversary/spin" background="true"><service scope="system"/><rgate name="priority-0"/></app>
        <app name="late" tile="2" program="service/fragile" background="true"><argument name="delay" value="8ms"/>
          <service scope="system"/><rgate name="priority-0" slots="4"/></app>
        <app name="chained" tile="4" program="service/fragile" background="true"><session name="late" to="late" patience="9ms"/>
          <service scope="system"/><rgate name="priority-0" slots="4"/></app>
      </domain></manager>
      <manager name="other" tile="7"><manager name="n" tile="7"><domain name="f">
        <app name="aside" tile="5" program="service/persistent"><session name="service" to="silent" patience="6ms"/></app>
        <app name="beyond" tile="5" program="service/persistent"><session name="service" to="chained"/></app>
        <app name="hopeful" tile="5" program="service/persistent"><session name="service" to="lost" patience="4ms"/></app>
      </domain></manager></manager>
      <manager name="mute" tile="6" program="adversary/spin"><domain name="g">
        <app name="lost" tile="6" program="service/fragile" background="true"><service scope="system"/>
          <rgate name="priority-0" slots="4"/></app>
      </domain></manager>
      <domain name="h">
        <app name="sender" tile="5" program="service/client"><sgate name="service" to="lost" gate="priority-0" patience="3ms"/></app>
      </domain>"#);
    assert_eq!(report.code, Some(3), "{}", report.console);
    for name in ["glad", "beyond"] {
        assert_served(&report, name);
    }
    assert_eq!(
        refused(&report, "root"),
        [
            "`sender` is not started: it waited 3 ms for the gates of `lost`, of which its manager has said nothing",
            "`above` is not started: it waited 5 ms for the service of `silent`, which runs but has not offered it",
        ]
    );
    assert_eq!(
        refused(&report, "n"),
        [
            "`hopeful` is not started: it waited 4 ms for the service of `lost`, of which its manager has said nothing",
            "`aside` is not started: it waited 6 ms for the service of `silent`, which runs but has not offered it",
        ]
    );
    books_close(&report);
}

/// A receiver with senders from outside is known before the gates of its neighbours are made.
#[test]
fn nobody_is_started_before_its_gates_are_there() {
    let report = run(r#"<domain name="d">
      <app name="outside" tile="4" program="service/client"><sgate name="service" to="adder" gate="priority-0"/></app></domain>
      <manager name="m" tile="2"><domain name="e">
        <app name="adder" tile="3" program="service/example" background="true"><rgate name="priority-0" slots="4" scope="system"/></app>
        <app name="inside" tile="5" program="service/client"><sgate name="service" to="adder" gate="priority-0"/></app>
      </domain></manager>"#);
    assert_eq!(report.code, Some(0), "{}", report.console);
    books_close(&report);
}

#[test]
fn a_manager_that_always_has_something_to_say_keeps_nobody_waiting() {
    let report = run(r#"<domain name="d">
      <app name="silent" tile="3" program="adversary/spin" background="true"><service/><rgate name="priority-0"/></app>
      <app name="client" tile="4" program="service/persistent"><session name="service" to="silent" patience="3ms"/></app>
      <app name="fooled" tile="4" program="service/persistent" background="true"><session name="service" to="lost"/></app></domain>
      <manager name="bad" tile="5" program="adversary/liar-manager"><domain name="e">
        <app name="lost" tile="6" program="service/fragile" background="true"><service scope="system" restart="on-failure"/>
          <rgate name="priority-0" slots="4"/></app>
      </domain></manager>"#);
    assert_eq!(report.code, Some(3), "{}", report.console);
    assert_eq!(
        refused(&report, "root"),
        [
            "`client` is not started: it waited 3 ms for the service of `silent`, which runs but has not offered it"
        ]
    );
    books_close(&report);
}
