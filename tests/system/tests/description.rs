//! What the description promises, on the chip: services before clients, restarts, quotas, modules, images of folders, mounts.

use bulkhead_runner::c_programs;
use bulkhead_system_tests::{Report, boot_text, boot_with};
use std::path::Path;

fn system(inside: &str) -> String {
    format!(
        "<system name=\"described\" platform=\"./shared.xml\" duration=\"100ms\" manager-tile=\"1\">{inside}</system>"
    )
}

fn run(inside: &str) -> Report {
    boot_text(&system(inside), &[]).remove(0)
}

fn host_folder(folder: &Path) {
    std::fs::create_dir_all(folder.join("disk/maps")).unwrap();
    std::fs::write(folder.join("disk/greeting"), "hello from the host").unwrap();
    std::fs::write(folder.join("disk/maps/town"), "x".repeat(9000)).unwrap();
    std::fs::create_dir_all(folder.join("more")).unwrap();
    std::fs::write(folder.join("more/town"), "a small town").unwrap();
    std::fs::write(folder.join("map.txt"), "one map for all\n").unwrap();
}

#[test]
fn a_stack_is_as_large_as_it_says() {
    let report = run(r#"<domain name="d">
      <app name="small" tile="3" program="adversary/stack"><argument name="depth" value="100"/></app>
      <app name="large" tile="4" program="adversary/stack" stack="130000B"><argument name="depth" value="100"/></app>
    </domain>"#);
    let cause = |name: &str| report.stopped(name).unwrap_or("running").to_owned();
    assert!(
        cause("small").starts_with("store page fault"),
        "{}",
        report.console
    );
    assert_eq!(cause("large"), "exit 0", "{}", report.console);
    // No memory is left for the program: the chip's manager says so, too.
    let report = run(
        r#"<domain name="d"><app name="full" tile="3" program="adversary/stack" stack="240KiB"/></domain>"#,
    );
    let said = report.printed("root");
    let refused = |line: &&str| line.starts_with("`full` needs at least ");
    assert!(said.iter().any(refused), "{}", report.console);
}

#[test]
fn clients_start_after_their_services_and_survive_their_restarts() {
    let report = run(r#"<domain name="d">
      <app name="client" tile="4" program="service/persistent"><argument name="stops" value="2"/>
        <session name="service" to="fragile" priority="1"/></app>
      <app name="other" tile="5" program="service/persistent"><argument name="runs" value="3"/><argument name="losses" value="5"/>
        <session name="service" to="fragile"/></app>
      <app name="fragile" tile="3" program="service/fragile" background="true"><service restart="on-failure"/>
        <rgate name="priority-0"/><rgate name="priority-1"/></app>
    </domain>"#);
    assert_eq!(report.code, Some(0), "{}", report.console);
    let sums = |name: &str| {
        report
            .printed(name)
            .last()
            .copied()
            .unwrap_or("")
            .to_owned()
    };
    assert_eq!(
        sums("client"),
        "15 sums in 3 sessions",
        "{}",
        report.console
    );
    let again: Vec<&str> = report.printed("root");
    assert_eq!(
        again[..2],
        [
            "`fragile` is started again (1 of 3)",
            "`fragile` is started again (2 of 3)"
        ],
        "{}",
        report.console
    );
}

#[test]
fn a_service_that_stops_too_often_is_given_up_and_nobody_hangs() {
    let report = run(r#"<domain name="d">
      <app name="client" tile="4" program="service/persistent"><argument name="stops" value="3"/>
        <session name="service" to="fragile"/></app>
      <app name="late" tile="5" program="service/persistent"><session name="service" to="never"/></app>
      <app name="fragile" tile="3" program="service/fragile" background="true">
        <service restart="on-failure" restarts="1"/><rgate name="priority-0"/></app>
      <app name="never" tile="6" program="adversary/stack" background="true"><service/><rgate name="priority-0"/></app>
    </domain>"#);
    assert_eq!(report.code, Some(3), "{}", report.console);
    let said = report.printed("client");
    assert_eq!(said.last(), Some(&"after 2 stops: closed"), "{said:?}");
    let manager = report.printed("root").join("\n");
    assert!(
        manager.contains("`late` is not started: there is no service `never`"),
        "{manager}"
    );
}

#[test]
fn quotas_hold_and_are_reported() {
    let report = run(r#"<tilemux tile="4"/><domain name="d">
      <app name="a" tile="4" program="adversary/witness"><argument name="rounds" value="5"/>
        <limit endpoints="3" page-tables="7" kernel-memory="2KiB"/></app>
      </domain>
      <manager name="m" tile="5"><limit tile="4" endpoints="40" noc="1GB/s" burst="8KiB"/><limit kernel-memory="60KiB"/>
        <domain name="e"><app name="b" tile="4" program="adversary/witness"><argument name="rounds" value="5"/>
          <limit noc="8MiB/s"/></app></domain></manager>"#);
    assert_eq!(report.code, Some(0), "{}", report.console);
    let said = report.printed("root");
    assert!(said.contains(&"quota of `a`: endpoints 2 of 3"), "{said:?}");
    assert!(
        said.contains(&"quota of `a`: page-tables 7 of 7"),
        "{said:?}"
    );
    let kernel = said.iter().find(|line| line.contains("`m`: kernel-memory"));
    let used: u64 = kernel
        .and_then(|line| line.split(' ').nth(4)?.parse().ok())
        .unwrap_or_else(|| panic!("{said:?}"));
    println!("{said:#?}");
    assert!((4 << 10..=60 << 10).contains(&used), "{said:?}");
}

#[test]
fn modules_and_images_of_folders_are_there() {
    let text = system(
        r#"<module name="map" file="map.txt" for="a b"/><module name="disk" folder="disk" size="1MiB"/>
      <module name="more" folder="more" size="1MiB"/>
      <domain name="d">
      <app name="a" tile="4" program="service/reader"><mgate name="map" module="map" rights="r"/>
        <argument name="mounts" value="/:files /maps/new:more"/><argument name="write" value="/maps/new/b"/>
        <argument name="file" value="/greeting maps/new/town /maps/new/b"/>
        <session name="files" to="files"/><session name="more" to="more" priority="1"/></app>
      <app name="b" tile="5" program="service/reader"><mgate name="map" module="map" rights="r"/></app>
      <app name="files" tile="3" program="tiled/files" memory="1MiB" background="true"><service/>
        <rgate name="priority-0" slot-size="320B"/><mgate name="disk" size="1MiB" fill="disk"/></app>
      <app name="more" tile="6" program="tiled/files" memory="1MiB" background="true"><service/>
        <rgate name="priority-1" slot-size="320B"/><rgate name="priority-0" slot-size="320B"/><mgate name="disk" size="1MiB" fill="more"/></app>
    </domain>"#,
    );
    let report = boot_with(&text, &[], host_folder).remove(0);
    assert_eq!(report.code, Some(0), "{}", report.console);
    let map = [
        "map: one map for all",
        "writing the map: Some(NoPermission)",
    ];
    assert_eq!(report.printed("b"), map);
    assert_eq!(
        report.printed("a"),
        [
            map[0],
            map[1],
            "/greeting: hello from the host",
            "maps/new/town: a small town",
            "/maps/new/b: written here"
        ]
    );
}

#[test]
fn files_in_c() {
    if c_programs::compiler().is_none() {
        println!("skipped: no C compiler for RISC-V; apt-get install gcc-riscv64-unknown-elf");
        return;
    }
    let text = system(
        r#"<module name="disk" folder="disk" size="1MiB"/><domain name="d">
      <app name="notes" tile="4" program="c/notes">MOUNTS<session name="files" to="files"/><session name="more" to="more"/></app>
      <app name="more" tile="6" program="tiled/files" memory="1MiB" background="true"><service/>
        <rgate name="priority-0" slot-size="320B"/><mgate name="disk" size="1MiB"/></app>
      <app name="files" tile="3" program="tiled/files" memory="1MiB" background="true"><service/>
        <rgate name="priority-0" slot-size="320B"/><mgate name="disk" size="1MiB" fill="disk"/></app>
    </domain>"#,
    );
    let tree = r#"<argument name="mounts" value="/other:more /:files"/>"#;
    for mounts in ["", tree] {
        let text = text.replace("MOUNTS", mounts);
        let report = boot_with(&text, &[], host_folder).remove(0);
        assert_eq!(report.code, Some(0), "{}", report.console);
        assert_eq!(report.printed("notes"), ["hello from the host"]);
    }
}

#[test]
fn a_service_is_used_across_managers_where_that_is_declared() {
    let report = run(r#"<domain name="d">
      <app name="above" tile="4" program="service/persistent"><session name="service" to="adder"/></app>
      <app name="log" tile="6" program="service/fragile" background="true"><service scope="system"/>
        <rgate name="priority-0"/><rgate name="priority-1"/></app></domain>
      <manager name="m" tile="2"><manager name="n" tile="2"><domain name="e">
        <app name="adder" tile="3" program="service/fragile" background="true"><service scope="system"/><rgate name="priority-0"/></app>
        <app name="deep" tile="4" program="service/persistent"><session name="service" to="log" priority="1"/></app>
      </domain></manager></manager>
      <manager name="other" tile="7"><domain name="f">
        <app name="aside" tile="5" program="service/persistent"><session name="service" to="adder"/></app>
        <app name="near" tile="5" program="service/persistent"><session name="service" to="log"/></app>
      </domain></manager>"#);
    assert_eq!(report.code, Some(0), "{}", report.console);
    for name in ["above", "deep", "aside", "near"] {
        assert_eq!(
            report.printed(name),
            ["5 sums in 1 sessions"],
            "{}",
            report.console
        );
    }
}

#[test]
fn names_are_local_to_managers_and_global_where_that_is_said() {
    // The same subsystem twice; each half has its own `pong`, and both reach the one that the root calls `echo`.
    let half = |name: &str, tile: u32| {
        format!(
            r#"<manager name="{name}" tile="{tile}"><domain name="d">
        <app name="ping" tile="{tile}" program="latency/ping"><argument name="runs" value="20"/><sgate name="pong" to="pong"/></app>
        <app name="pong" tile="3" program="latency/pong" background="true"><rgate name="input"/></app>
        <app name="far" tile="4" program="latency/ping"><argument name="runs" value="20"/><sgate name="pong" global="echo"/></app>
        </domain></manager>"#
        )
    };
    let report = run(&format!(
        r#"{}{}<domain name="d"><app name="echo" tile="5" program="latency/pong" background="true"><rgate name="input" global="echo"/></app></domain>"#,
        half("left", 6),
        half("right", 7)
    ));
    assert_eq!(report.code, Some(0), "{}", report.console);
    for name in ["left.ping", "right.ping", "left.far", "right.far"] {
        assert_eq!(report.stopped(name), Some("exit 0"), "{}", report.console);
    }
}

#[test]
fn a_hostile_manager_harms_only_its_own_subtree() {
    let report = run(r#"<domain name="control" criticality="A">
      <app name="client" tile="4" program="service/persistent"><argument name="runs" value="20000"/><session name="service" to="adder"/></app>
      <app name="adder" tile="3" program="service/fragile" background="true"><service/><rgate name="priority-0"/></app>
      <app name="target" tile="4" program="latency/pong" background="true"><rgate name="input" slots="8" scope="system"/></app></domain>
      <manager name="bad" tile="5" program="adversary/bad-manager"><domain name="lost">
        <app name="victim" tile="6" program="adversary/witness" background="true"><sgate name="x" to="target" credits="2"/></app>
      </domain></manager>
      <manager name="good" tile="2"><domain name="e">
        <app name="worker" tile="6" program="adversary/witness"><argument name="rounds" value="20"/></app>
        <app name="ping" tile="2" program="latency/ping"><argument name="runs" value="100"/><sgate name="pong" to="target"/></app>
      </domain></manager>"#);
    // Nothing in the foreground is below it, so the run ends when the others have ended.
    assert_eq!(report.code, Some(0), "{}", report.console);
    for name in ["client", "worker", "ping"] {
        assert_eq!(report.stopped(name), Some("exit 0"), "{}", report.console);
    }
    let said = report.printed("bad");
    // One window of its own on the tile that it shares, and no more.
    assert_eq!(said[0], "showed 1 windows", "{}", report.console);
    // Of the endpoints of its own tile it has eight, two of which are for its channel to the kernel.
    assert_eq!(said[1], "opened its memory 6 times", "{}", report.console);
    assert_eq!(said[3], "told itself 0 things", "{}", report.console);
}

/// Trees of managers whose limits are exactly what the model computes: they suffice on the chip, too.
#[test]
fn limits_that_are_exactly_enough_are_enough_on_the_chip() {
    use bulkhead_model::{LoadOptions, System, load_system_text};
    let app = |name: &str, tile: u32, more: &str| {
        format!(
            r#"<app name="{name}" tile="{tile}" program="adversary/witness"><argument name="rounds" value="3"/>{more}</app>"#
        )
    };
    let exact = |system: &System, name: &str| {
        let manager = system.managers.iter().position(|m| m.name == name).unwrap();
        let mut text = String::new();
        for tile in system.tiles_below(manager) {
            let sum = system.on_tile(manager, tile);
            let (rate, burst) = (sum.rate + 1, sum.burst + 512);
            text += &format!(
                r#"<limit tile="{tile}" endpoints="{}" page-tables="{}" noc="{}MB/s" burst="{burst}B"/>"#,
                sum.endpoints,
                sum.tables,
                rate / 1_000_000 + 400
            );
        }
        format!(
            r#"{text}<limit kernel-memory="{}B" memory="{}B"/>"#,
            system.kernel_memory_below(manager),
            system.memory_below(manager)
        )
    };
    let tree = |limit: &dyn Fn(&str) -> String| {
        format!(
            r#"<domain name="top">{}</domain>
      <manager name="m" tile="2">{}<domain name="d">{}{}</domain>
        <manager name="n" tile="5">{}<domain name="e">{}{}</domain></manager></manager>
      <manager name="o" tile="7">{}<domain name="f">{}</domain></manager>"#,
            app("a", 4, ""),
            limit("m"),
            app(
                "b",
                4,
                r#"<limit noc="20MB/s"/><rgate name="in" slots="3"/>"#
            ),
            app(
                "c",
                6,
                r#"<sgate name="x" to="b"/><sgate name="y" to="e" gate="in" credits="2"/><mgate name="r" size="12KiB"/>"#
            ),
            limit("n"),
            app("d", 4, ""),
            app(
                "e",
                3,
                r#"<limit kernel-memory="3KiB"/><rgate name="in" slots="2"/><rgate name="more"/>"#
            ),
            limit("o"),
            app("f", 3, r#"<cpu quota="20%"/>"#),
        )
    };
    let muxes: String = (2..8)
        .map(|t| format!(r#"<tilemux tile="{t}"/>"#))
        .collect();
    let plain = system(&(tree(&|_| String::new()) + &muxes)).replace("./shared.xml", "tiled-gem5");
    let known = load_system_text("plain", &plain, &LoadOptions::default()).unwrap();
    let report = run(&tree(&|name| exact(&known, name)));
    assert_eq!(report.code, Some(0), "{}", report.console);
    for name in ["a", "b", "c", "d", "e", "f"] {
        assert_eq!(report.stopped(name), Some("exit 0"), "{}", report.console);
    }
    println!("{}", report.console);
}
