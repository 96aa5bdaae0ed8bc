//! `plan` and `check` of systems with a chip: open parameters are chosen, what is written holds, and repairs work.

use std::path::Path;
use std::process::{Command, Output};

fn bulkhead(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_bulkhead"))
        .args(arguments)
        .current_dir(folder)
        .output()
        .expect("the command starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn json(output: &Output) -> serde_json::Value {
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", text(&output.stderr)))
}

/// A loop over three tiles, with unlimited hogs.
fn control(deadline: &str) -> String {
    let task = r#"<task period="1ms" cost="5us" accesses="40"/>"#;
    format!(
        r#"<system name="loop" platform="tiled-gem5">
  <domain name="control" criticality="A">
    <app name="sensor" program="control/sensor">{task}<sgate name="out" to="controller"/></app>
    <app name="controller" program="control/controller">{task}<rgate name="in"/><sgate name="out" to="actuator"/></app>
    <app name="actuator" program="control/actuator">{task}<rgate name="in"/></app>
  </domain>
  <domain name="logger" criticality="D">
    <app name="hog-1" program="adversary/memcpy" background="true"/>
    <app name="hog-2" program="adversary/memcpy" background="true"/>
  </domain>
  <flow name="loop" from="sensor" to="actuator" deadline="{deadline}"/>
</system>
"#
    )
}

/// Limits follow from the flow's deadline. What is written passes the check and plans to itself, and a larger rate would
/// fail.
#[test]
fn limits_follow_from_deadlines() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("loop.xml"), control("200us")).expect("writes");
    let open = json(&bulkhead(folder.path(), &["check", "loop.xml", "--json"]));
    let flow = open["verdict"]["promises"]
        .as_array()
        .expect("a list")
        .iter()
        .find(|promise| promise["judgement"] == "not-judged")
        .expect("the flow");
    assert_eq!(flow["what"], "flow loop", "{open}");
    let why = flow["because"].as_str().unwrap_or_default();
    assert!(why.contains("not judged ("), "{open}");
    let plan = bulkhead(
        folder.path(),
        &["plan", "loop.xml", "--out", "planned.xml", "--json"],
    );
    assert_eq!(plan.status.code(), Some(0), "{}", text(&plan.stderr));
    let plan = json(&plan);
    let set: Vec<&str> = plan["set"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|one| one.as_str())
        .collect();
    let rate = set
        .iter()
        .find_map(|one| one.strip_prefix("app[hog-1]/limit@noc="))
        .expect("a limit");
    let flow = |planned: &serde_json::Value| {
        let all = planned["constraints"][0]["constraints"].clone();
        all[0].clone()
    };
    let checked = bulkhead(folder.path(), &["check", "planned.xml", "--json"]);
    assert_eq!(checked.status.code(), Some(0));
    let holds = flow(&json(&checked));
    assert_eq!(
        (holds["kind"].as_str(), holds["holds"].as_bool()),
        (Some("flow"), Some(true))
    );
    // With slightly more for the hogs, the loop is late.
    let kib: u64 = rate.trim_end_matches("KiB/s").parse().expect("in KiB/s");
    let more: Vec<String> = ["hog-1", "hog-2"]
        .iter()
        .map(|hog| format!("{hog}/limit@noc={}KiB/s", kib + 64))
        .collect();
    let late = bulkhead(
        folder.path(),
        &["check", "planned.xml", "--set", &more[0], "--set", &more[1]],
    );
    assert_eq!(late.status.code(), Some(3), "{}", text(&late.stdout));
    let said = text(&late.stdout);
    assert!(said.contains("flow latency of loop"), "{said}");
    assert!(said.contains("--set 'flow[loop]@deadline="), "{said}");
    // A complete description plans to itself.
    let again = bulkhead(folder.path(), &["plan", "planned.xml", "--export", "xml"]);
    let planned = std::fs::read_to_string(folder.path().join("planned.xml")).expect("is there");
    assert_eq!(text(&again.stdout), planned);
    // No limit helps against a deadline that the loop misses even alone.
    std::fs::write(folder.path().join("loop.xml"), control("20us")).expect("writes");
    let failing = bulkhead(folder.path(), &["plan", "loop.xml", "--out", "other.xml"]);
    assert_eq!(failing.status.code(), Some(3));
    assert!(!folder.path().join("other.xml").exists());
    assert!(text(&failing.stdout).contains("flows are late even so"));
}

/// What was not judged is never called good: not by exit code 0, not in the text, not for machines.
#[test]
fn a_system_without_costs_is_not_called_good() {
    let folder = tempfile::tempdir().expect("a folder");
    for command in ["check", "plan"] {
        let said = bulkhead(folder.path(), &[command, "quickstart"]);
        assert_eq!(said.status.code(), Some(0), "{}", text(&said.stderr));
        let said = text(&said.stdout);
        assert!(said.contains("Nothing was judged, of "), "{said}");
        assert!(
            said.contains("because its <task> has no cost, from which `check` would bound it"),
            "{said}"
        );
        assert!(!said.contains("holds"), "{said}");
        let judged = json(&bulkhead(folder.path(), &[command, "quickstart", "--json"]));
        assert_eq!(judged["verdict"]["outcome"], "nothing-judged", "{judged}");
        assert!(judged.get("schedulable").is_none(), "{judged}");
    }
}

fn shared(mux: &str, radar: &str) -> String {
    format!(
        r#"<system name="shared" platform="tiled-gem5">
  <domain name="control" criticality="A">
    <app name="brake" program="p" tile="2"><task period="5ms" deadline="2ms" cost="500us"/></app>
    <app name="radar" program="p" tile="2"><task period="10ms" deadline="6ms" cost="{radar}"/></app>
    <app name="route" program="p" tile="2"><task period="20ms" cost="5ms"/></app>
    <app name="bulk" program="p" tile="2" background="true"/>
  </domain>
  {mux}
</system>
"#
    )
}

/// Time slices are too coarse for the radar: fixed priorities with quotas are chosen and admitted.
#[test]
fn shared_tiles_get_policies_slices_and_quotas() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |text: String| std::fs::write(folder.path().join("s.xml"), text).expect("writes");
    write(shared(r#"<tilemux tile="2"/>"#, "2ms"));
    let plan = bulkhead(folder.path(), &["plan", "s.xml", "--out", "planned.xml"]);
    assert_eq!(plan.status.code(), Some(0), "{}", text(&plan.stdout));
    insta::assert_snapshot!(text(&plan.stdout));
    let planned = std::fs::read_to_string(folder.path().join("planned.xml")).expect("is there");
    assert!(
        planned.contains(r#"<tilemux tile="2" policy="realtime""#),
        "{planned}"
    );
    assert!(
        // The switches that its jobs pay for are included.
        planned.contains(r#"<cpu quota="2024284ns" period="10000000ns"/>"#),
        "{planned}"
    );
    // What was written holds by itself.
    let again = json(&bulkhead(folder.path(), &["plan", "planned.xml", "--json"]));
    assert_eq!(again["verdict"]["outcome"], "held", "{again}");
    // A given policy is kept: with time slices nothing holds, and the repairs are changes that do.
    write(shared(
        r#"<tilemux tile="2" policy="throughput"/>"#,
        "1500us",
    ));
    let failing = bulkhead(
        folder.path(),
        &[
            "check",
            "s.xml",
            "--set",
            "tilemux[2]@slice=1ms",
            "--set",
            "bulk@tile=3",
            "--json",
        ],
    );
    assert_eq!(
        failing.status.code(),
        Some(2),
        "programs are checked: {}",
        text(&failing.stderr)
    );
}

/// Each repair named by `check` makes it hold, and one unit less does not.
#[test]
fn repairs_repair() {
    let folder = tempfile::tempdir().expect("a folder");
    let text_of = shared(
        r#"<tilemux tile="2" policy="throughput" slice="400us"/>"#,
        "1500us",
    )
    .replace("program=\"p\"", "program=\"control/sensor\"");
    std::fs::write(folder.path().join("s.xml"), text_of).expect("writes");
    let found = bulkhead(folder.path(), &["check", "s.xml", "--json"]);
    assert_eq!(found.status.code(), Some(3), "{}", text(&found.stderr));
    let found = json(&found);
    let repairs = found["repairs"].as_array().expect("a list").clone();
    assert!(!repairs.is_empty(), "{found}");
    for repair in repairs {
        let set = repair["set"].as_str().expect("a change").to_owned();
        let good = bulkhead(folder.path(), &["check", "s.xml", "--set", &set]);
        assert_eq!(good.status.code(), Some(0), "{set}");
        let (path, value) = set.split_once('=').expect("a change");
        let to: u64 = value
            .trim_end_matches(|c: char| !c.is_ascii_digit())
            .parse()
            .expect("a number");
        let from: u64 = repair["from"]
            .as_str()
            .map(|from| from.trim_end_matches(|c: char| !c.is_ascii_digit()))
            .and_then(|from| from.parse().ok())
            .expect("a number");
        let less = if to > from { to - 1 } else { to + 1 };
        let unit = value.trim_start_matches(|c: char| c.is_ascii_digit());
        let less = format!("{path}={less}{unit}");
        let bad = bulkhead(folder.path(), &["check", "s.xml", "--set", &less]);
        assert_eq!(bad.status.code(), Some(3), "{less}");
    }
}

/// More applications than tiles: those without a tile share what may be shared.
#[test]
fn applications_share_what_may_be_shared() {
    let folder = tempfile::tempdir().expect("a folder");
    let apps: String = (0..12)
        .map(|i| {
            format!(
                r#"<app name="a{i}" program="p"><task period="{}ms" cost="{}ms"/></app>"#,
                10 + i,
                1 + i % 3
            )
        })
        .collect();
    let system = |mux: &str| {
        format!(
            r#"<system name="many" platform="tiled-gem5"><domain name="d">{apps}</domain>{mux}</system>"#
        )
    };
    let write = |text: String| std::fs::write(folder.path().join("m.xml"), text).expect("writes");
    write(system(r#"<tilemux tile="6"/><tilemux tile="7"/>"#));
    let plan = json(&bulkhead(folder.path(), &["plan", "m.xml", "--json"]));
    assert_eq!(plan["verdict"]["outcome"], "held", "{plan}");
    write(system(""));
    let refused = bulkhead(folder.path(), &["plan", "m.xml"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        text(&refused.stderr).contains("no tile is free for"),
        "{}",
        text(&refused.stderr)
    );
    // Formats for task sets cannot hold a system.
    write(system(r#"<tilemux tile="7"/>"#));
    let csv = bulkhead(folder.path(), &["plan", "m.xml", "--export", "csv"]);
    assert_eq!(csv.status.code(), Some(2));
    let policy = bulkhead(folder.path(), &["plan", "m.xml", "--policy", "edf"]);
    assert_eq!(policy.status.code(), Some(2));
}

#[test]
fn quotas_that_do_not_fit_are_said_of_the_tile() {
    let folder = tempfile::tempdir().unwrap();
    let app = |name: &str, cpu: &str, cost: &str| {
        format!(
            "<app name=\"{name}\" tile=\"6\" program=\"adversary/memcpy\" background=\"true\">{cpu}<task period=\"10ms\" cost=\"{cost}\"/></app>"
        )
    };
    let description = format!(
        "<system name=\"q\" platform=\"tiled-gem5\"><tilemux tile=\"6\" policy=\"realtime\"/><domain name=\"d\">{}{}</domain></system>",
        app("a", "<cpu quota=\"9500us\" period=\"10ms\"/>", "9ms"),
        app("c", "", "5ms")
    );
    std::fs::write(folder.path().join("system.xml"), description).unwrap();
    let checked = text(&bulkhead(folder.path(), &["check", "system.xml"]).stdout);
    assert!(
        checked.contains("task c, because it has no <cpu>"),
        "{checked}"
    );
    let planned = bulkhead(folder.path(), &["plan", "system.xml"]);
    assert_eq!(planned.status.code(), Some(2));
    let said = text(&planned.stderr);
    assert!(!said.contains("--set"), "{said}");
    assert!(
        said.contains("tile 6: the needs of its tasks without a <cpu>"),
        "{said}"
    );
}

/// A program for the chip whose bytes are at a fixed address.
fn linked_to(address: u64) -> Vec<u8> {
    let mut elf = b"\x7fELF\x02\x01\x01".to_vec();
    elf.resize(16, 0);
    let (kind, machine, version, header, program) = (2u16, 243u16, 1u32, 64u64, 56u16);
    elf.extend(kind.to_le_bytes());
    elf.extend(machine.to_le_bytes());
    elf.extend(version.to_le_bytes());
    // Entry, program headers, no sections; flags: double floats, compressed instructions.
    elf.extend([address, header, 0].map(u64::to_le_bytes).concat());
    elf.extend(5u32.to_le_bytes());
    elf.extend([64, program, 1, 0, 0, 0].map(u16::to_le_bytes).concat());
    // To be loaded, readable and executable: four bytes after the headers, which jump to themselves.
    elf.extend([1u32, 5].map(u32::to_le_bytes).concat());
    let numbers = [120, address, address, 4, 4, 4];
    elf.extend(numbers.map(u64::to_le_bytes).concat());
    elf.extend(0x6fu32.to_le_bytes());
    elf
}

/// What cannot run without a kernel is a mistake of the description: `check` and `run` say so, with the place and what would be right.
#[test]
fn programs_without_a_kernel_that_cannot_be_there_are_bad_input() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, bytes: &[u8]| {
        std::fs::write(folder.path().join(name), bytes).expect("writes");
    };
    write("low.elf", &linked_to(0x8000_0000));
    write("m.c", b"int main(void) { return 0; }\n");
    let system = |attributes: &str| {
        format!(
            r#"<system name="s" paradigm="bare" platform="single" duration="1ms">
  <domain name="d">
    <app name="a" memory="64KiB" {attributes}/>
  </domain>
  <variant name="v"/>
</system>
"#
        )
    };
    let refused = |attributes: &str, parts: &[&str]| {
        write("s.xml", system(attributes).as_bytes());
        for command in ["check", "run"] {
            let output = bulkhead(folder.path(), &[command, "s.xml"]);
            let said = text(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{command}: {said}");
            // Lines are broken between words.
            let words = said.split_whitespace().filter(|word| *word != "│");
            let words = words.collect::<Vec<_>>().join(" ");
            for part in parts {
                assert!(words.contains(part), "{command}: {part}: {said}");
            }
        }
    };
    refused(
        r#"at="0x80100000" program="low.elf""#,
        &[
            "s.xml:3:59: low.elf: ",
            "link it with -pie (docs/reference/bare.md), so that it runs anywhere; or write at=",
        ],
    );
    refused(
        r#"program="m.c""#,
        &[
            "s.xml:3:43: m.c: programs in C are compiled for the tiled OS, and this system has no kernel",
            "name the ELF file",
        ],
    );
    // Where it is linked to, it is right.
    write(
        "s.xml",
        system(r#"at="0x80000000" program="low.elf""#).as_bytes(),
    );
    let checked = bulkhead(folder.path(), &["check", "s.xml"]);
    assert_eq!(checked.status.code(), Some(0), "{}", text(&checked.stderr));
}

/// Too large reservations of programs are said of their attributes, also where a variant or the command line changes them, and those of the platform of the platform.
#[test]
fn reservations_that_do_not_fit_have_their_place() {
    let folder = tempfile::tempdir().expect("a folder");
    let system = |first: &str| {
        format!(
            r#"<system name="s" paradigm="bare" platform="virt-shares" duration="1ms">
  <domain name="d">
    <app name="a" harts="0" program="memory/measure" memory="1MiB" ways="0-3" reserved="{first}"/>
    <app name="b" harts="1-2" program="memory/measure" memory="1MiB" ways="4-7" reserved="20"/>
  </domain>
</system>
"#
        )
    };
    let refused = |first: &str, more: &[&str]| {
        std::fs::write(folder.path().join("s.xml"), system(first)).expect("writes");
        let output = bulkhead(folder.path(), &[&["check", "s.xml"], more].concat());
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        let words = said.split_whitespace().filter(|word| *word != "│");
        words.collect::<Vec<_>>().join(" ")
    };
    let help = "help: write less as `reserved` of these programs";
    let cases = [
        refused("100", &[]),
        refused("1", &["--set", "a@reserved=100"]),
    ];
    for (said, place) in cases.iter().zip(["s.xml:3:89: ", "--set:1:12: "]) {
        let why = "memory tile 1: 140 slots of each window are reserved, but beside refreshes only 57 of 64 can be: `a` reserves 100 for each of its harts (1), `b` reserves 20 for each of its harts (2)";
        for part in [place, why, help] {
            assert!(said.contains(part), "{part}: {said}");
        }
    }
}

/// Where nobody knows what tasks of the one-shot RTOS take, `check` and `plan` judge no more than `run`, and say why.
#[test]
fn what_nobody_knows_is_not_judged() {
    let folder = tempfile::tempdir().expect("a folder");
    let unknown = [
        (
            "platform/network@credits=2",
            "nothing bounds waits for room",
        ),
        (
            "platform/pipeline@branch-penalty=1000",
            "has branch-penalty=\"1000\", more than 3",
        ),
    ];
    for (change, why) in unknown {
        for command in ["check", "plan"] {
            let arguments = [command, "oneshot/pair", "--set", change];
            let output = bulkhead(folder.path(), &arguments);
            let said = text(&output.stdout);
            assert_eq!(output.status.code(), Some(0), "{said}");
            assert!(said.contains("one-shot: nothing was judged\n"), "{said}");
            assert!(!said.contains("FAILS"), "{said}");
            let reason = said
                .lines()
                .find(|line| line.starts_with("  response of producer"));
            assert!(reason.is_some_and(|line| line.contains(why)), "{said}");
            let value = json(&bulkhead(
                folder.path(),
                &[&arguments[..], &["--json"]].concat(),
            ));
            assert_eq!(value["schedulable"], serde_json::Value::Null);
            assert_eq!(value["verdict"]["outcome"], "nothing-judged");
            for promise in value["verdict"]["promises"].as_array().expect("a list") {
                assert_eq!(promise["judgement"], "not-judged", "{promise}");
                let because = promise["because"].as_str().unwrap_or_default();
                assert!(because.contains(why), "{promise}");
            }
            for constraint in value["constraints"].as_array().expect("a list") {
                assert_eq!(constraint["holds"], serde_json::Value::Null, "{constraint}");
                assert_eq!(constraint["bound"], serde_json::Value::Null, "{constraint}");
            }
            let cost = &value["system"]["tasks"][0]["cost"];
            assert_eq!(*cost, serde_json::Value::Null);
        }
    }
    // A format that has a cost for each task cannot have it.
    let exported = [
        "plan",
        "oneshot/pair",
        "--set",
        unknown[0].0,
        "--export",
        "csv",
    ];
    let output = bulkhead(folder.path(), &exported);
    let said = text(&output.stderr);
    assert_eq!(
        (output.status.code(), text(&output.stdout)),
        (Some(2), String::new())
    );
    assert!(
        said.contains("nothing bounds the cost of `producer`"),
        "{said}"
    );
    // Handlers that are stated to take a whole tick leave no time: that is known.
    let full = ["check", "oneshot/pair", "--set", "other@handlers=1ms"];
    let output = bulkhead(folder.path(), &full);
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("one-shot: not schedulable\n"), "{said}");
    assert!(
        said.contains("  response of other: no bound within 5ms (on core 5, handlers of timing events may take"),
        "{said}"
    );
}

/// An analysis needs no programs, so `check` judges without them and says which a run would not find.
#[test]
fn check_names_programs_of_tasks_that_are_not_there() {
    let folder = tempfile::tempdir().expect("a folder");
    let task = |name: &str, program: &str, core: u16| {
        format!(
            r#"<task name="{name}" program="{program}" core="{core}" priority="1" period="5ms" cost="10us"/>"#
        )
    };
    let tasks = [
        task("one", "tasks.c::plain", 0),
        task("two", "tasks.c::other", 1),
        task("three", "own::Task", 2),
        task("four", "tasks.c::plain", 3),
        task("five", "one-shot::pipeline::Other", 4),
    ];
    let system = format!(
        r#"<system name="s" paradigm="one-shot" platform="epiphany3" duration="20ms">{}</system>"#,
        tasks.concat()
    );
    std::fs::write(folder.path().join("s.xml"), system).expect("writes");
    let notes = || {
        let checked = bulkhead(folder.path(), &["check", "s.xml"]);
        assert_eq!(checked.status.code(), Some(0), "{}", text(&checked.stderr));
        let said = text(&checked.stdout);
        let notes = said.lines().filter(|line| line.contains("cannot build"));
        notes.map(str::to_owned).collect::<Vec<String>>()
    };
    assert_eq!(
        notes(),
        [
            "Note: `run` cannot build the program `own::Task` of three: there is no own next to the description or in workloads",
            "Note: `run` cannot build the program `tasks.c::other` of two: there is no tasks.c next to the description or in workloads",
            "Note: `run` cannot build the program `tasks.c::plain` of one, four: there is no tasks.c next to the description or in workloads",
        ]
    );
    std::fs::write(folder.path().join("tasks.c"), "").expect("writes");
    assert_eq!(notes().len(), 1);
}

/// A file or folder that is not there is a mistake of the description: each command names the place, the path and what would be right. Before,
/// `check` accepted it, and `run` failed with exit code 1 and without a place.
#[test]
fn host_files_that_are_not_there_are_bad_input() {
    let tiled = |module: &str| {
        format!(
            r#"<system name="s" platform="tiled-2ghz" duration="1ms">
  {module}
  <domain name="d"><app name="a" program="control/sensor"/></domain>
</system>
"#
        )
    };
    let attached = r#"<system name="s" paradigm="bare" platform="imx6-devices">
  <domain name="d">
    <app name="a" program="memory/measure"><attach peripheral="disk" file="nosuch.bin"/></app>
  </domain>
</system>
"#;
    let cases = [
        (
            tiled(r#"<module name="m" file="nosuch.bin"/>"#),
            ":2:26: ",
            "file",
        ),
        (
            tiled(r#"<module name="m" folder="nosuch.bin" size="1MiB"/>"#),
            ":2:28: ",
            "folder",
        ),
        (attached.to_owned(), ":3:76: ", "file"),
        // A link in a folder that is there.
        (
            tiled(r#"<module name="m" folder="maps" size="1MiB"/>"#),
            ":2:28: ",
            "folder",
        ),
    ];
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(folder.path().join("maps")).expect("made");
    let link = folder.path().join("maps").join("link");
    std::os::unix::fs::symlink("nowhere", &link).expect("made");
    for (description, place, kind) in cases {
        let looked_at = match description.contains("maps") {
            true => link.clone(),
            false => folder.path().join("nosuch.bin"),
        };
        std::fs::write(folder.path().join("s.xml"), description).expect("writes");
        for command in ["check", "run", "audit"] {
            let output = bulkhead(folder.path(), &[command, "s.xml"]);
            let said = text(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{command}: {said}");
            // Lines are broken between words.
            let words = said.split_whitespace().filter(|word| *word != "│");
            let words = words.collect::<Vec<_>>().join(" ");
            let help = format!("name a {kind} by its path from the folder of the description");
            for part in [
                &format!("s.xml{place}"),
                &looked_at.display().to_string(),
                &help,
            ] {
                assert!(words.contains(part), "{command}: {part}: {said}");
            }
            assert!(
                output.stdout.is_empty(),
                "{command}: {}",
                text(&output.stdout)
            );
        }
    }
}

/// Options about task systems would change nothing of a system or a platform.
#[test]
fn options_about_task_systems_are_refused_elsewhere() {
    let folder = tempfile::tempdir().expect("a folder");
    for (what, options) in [
        ("quickstart", &["--policy", "edf"][..]),
        ("bare/partitions", &["--processors", "1"]),
        ("virt", &["--unit", "ns"]),
        ("quickstart", &["--task-set", "7"]),
    ] {
        let commands = if what == "virt" {
            &["check"][..]
        } else {
            &["check", "plan"]
        };
        for command in commands {
            let output = bulkhead(folder.path(), &[&[*command, what], options].concat());
            let said = text(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{command} {what}: {said}");
            let refusal = format!("{} is about task systems", options[0]);
            assert!(said.contains(&refusal), "{command} {what}: {said}");
        }
    }
}

/// Costs of TileMux were measured on the catalog's tiles. On slower ones `check` and `plan` judge no response, and say why; an application's priority is what the description says.
#[test]
fn a_tile_slower_than_those_that_were_measured_is_not_judged() {
    let folder = tempfile::tempdir().expect("a folder");
    let system = r#"<system name="two" platform="tiled-2ghz" duration="40ms">
  <domain name="d" criticality="A">
    <app name="a" tile="2" program="sharing/periodic"><cpu quota="127us" period="1ms" priority="7"/><task period="1ms" cost="101us"/></app>
    <app name="b" tile="2" program="sharing/periodic"><cpu quota="228us" period="2ms" priority="3"/><task period="2ms" cost="201us"/></app>
  </domain>
  <tilemux tile="2" policy="realtime"/>
</system>
"#;
    std::fs::write(folder.path().join("two.xml"), system).expect("writes");
    let check = |more: &[&str]| bulkhead(folder.path(), &[&["check", "two.xml"], more].concat());
    let judged = check(&[]);
    let said = text(&judged.stdout);
    assert_eq!(judged.status.code(), Some(0), "{said}");
    let row = said.lines().find(|line| line.starts_with("a "));
    let words = row.map(|row| row.split_whitespace().take(3).collect::<Vec<_>>());
    assert_eq!(words, Some(vec!["a", "2", "7"]), "{said}");
    assert!(said.contains("admitted"), "{said}");
    for slow in [
        "cache[l1]@size=4KiB",
        "pipeline@mmio=1200",
        "pipeline@trap-entry=14000",
    ] {
        let more = ["--set", &format!("platform/{slow}")];
        let output = check(&more);
        let said = text(&output.stdout);
        assert_eq!(output.status.code(), Some(0), "{said}");
        assert!(
            said.contains("not judged") && !said.contains("admitted"),
            "{said}"
        );
        assert!(
            said.contains("the costs of TileMux and the kernel are those of"),
            "{said}"
        );
        let value = json(&check(&[&more[..], &["--json"]].concat()));
        let tile = &value["shared_tiles"]["two"][0]["reservations"][0];
        assert!(
            tile["unknown"].is_string() && tile["response"].is_null(),
            "{tile}"
        );
        assert_eq!(value["verdict"]["outcome"], "nothing-judged", "{value}");
    }
}
