//! Task systems on the command line: the tutorial's commands with their output, exit codes, formats and bad input.
//!
//! `BLESS=1 cargo test -p bulkhead --test tasks` rewrites the outputs in `docs/tasks.md`; read them before committing.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn page() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/tasks.md")
}

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

/// Runs every "```console shown" block of the page, whose first line is the command. Returns the page with the outputs.
fn replay(page: &str, folder: &Path) -> String {
    let mut out = String::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        out.push_str(line);
        out.push('\n');
        if let Some(file) = line.strip_prefix("```xml ") {
            let body: Vec<&str> = lines.by_ref().take_while(|l| *l != "```").collect();
            let body = body.join("\n") + "\n";
            std::fs::write(folder.join(file), &body).expect("writes");
            out.push_str(&body);
            out.push_str("```\n");
        } else if line == "```console shown" {
            let mut block = lines.by_ref().take_while(|l| *l != "```");
            let command = block.next().expect("a command");
            block.for_each(drop);
            let arguments: Vec<&str> = command
                .strip_prefix("$ bulkhead ")
                .expect("a command of ours")
                .split_whitespace()
                .collect();
            let output = bulkhead(folder, &arguments);
            assert!(
                matches!(output.status.code(), Some(0 | 3)),
                "{command}: {}",
                text(&output.stderr)
            );
            out.push_str(&format!("{command}\n{}```\n", text(&output.stdout)));
        }
    }
    out
}

#[test]
fn the_tutorial_shows_what_the_commands_print() {
    let folder = tempfile::tempdir().expect("a folder");
    let written = std::fs::read_to_string(page()).expect("readable");
    let replayed = replay(&written, folder.path());
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(page(), &replayed).expect("writes");
    } else {
        assert_eq!(written, replayed, "BLESS=1 writes the outputs anew");
    }
    assert!(written.matches("```console shown").count() >= 4);
}

#[test]
fn the_catalog_holds_and_round_trips_through_files() {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, _) in bulkhead_model::catalog::TASKS {
        let first = bulkhead(folder.path(), &["plan", name, "--out", "p.xml", "--json"]);
        assert_eq!(
            first.status.code(),
            Some(0),
            "{name}: {}",
            text(&first.stderr)
        );
        let again = bulkhead(folder.path(), &["plan", "p.xml", "--export", "xml"]);
        let file = std::fs::read_to_string(folder.path().join("p.xml")).expect("written");
        assert_eq!(text(&again.stdout), file, "{name} plans to itself");
        let json: serde_json::Value = serde_json::from_slice(&first.stdout).expect("JSON");
        assert_eq!(json["schedulable"], true);
    }
}

#[test]
fn schedcat_goes_in_and_out() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| {
        std::fs::write(folder.path().join(name), text).expect("writes");
    };
    write(
        "set.xml",
        "<taskset><task period=\"10\" wcet=\"2.0\"/><task period=\"20\" wcet=\"4\" deadline=\"15\"/></taskset>",
    );
    let output = bulkhead(
        folder.path(),
        &[
            "check", "set.xml", "--policy", "edf", "--unit", "ms", "--json",
        ],
    );
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(json["system"]["policy"], "edf");
    assert_eq!(json["constraints"][0]["limit"], 10_000_000);
    let output = bulkhead(folder.path(), &["plan", "set.xml", "--export", "schedcat"]);
    insta::assert_snapshot!(text(&output.stdout), @r#"
    <taskset>
      <properties count="2" />
      <task id="1" period="10" wcet="2" partition="0" />
      <task id="2" period="20" wcet="4" deadline="15" partition="0" />
    </taskset>
    "#);
    write(
        "two.xml",
        "<testpoint><taskset><task period=\"1\" wcet=\"1\"/></taskset><taskset><task period=\"2\" wcet=\"3\"/></taskset></testpoint>",
    );
    let code = |arguments: &[&str]| bulkhead(folder.path(), arguments).status.code();
    assert_eq!(code(&["check", "two.xml"]), Some(2));
    assert_eq!(code(&["check", "two.xml", "--task-set", "0"]), Some(0));
    assert_eq!(code(&["check", "two.xml", "--task-set", "1"]), Some(3));
    assert_eq!(code(&["check", "two.xml", "--task-set", "2"]), Some(2));
}

#[test]
fn bad_input_is_explained() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| {
        std::fs::write(folder.path().join(name), text).expect("writes");
    };
    let system = |policy: &str, tasks: &str| {
        format!("<task-system name=\"t\"><processors policy=\"{policy}\"/>{tasks}</task-system>\n")
    };
    write(
        "primes.xml",
        &system(
            "table",
            "<task name=\"a\" period=\"999983us\" cost=\"1us\"/><task name=\"b\" period=\"999979us\" cost=\"1us\"/>",
        ),
    );
    write(
        "unicode.xml",
        &system("edf", "<task name=\"größe\" period=\"1ms\" cost=\"1us\"/>"),
    );
    write(
        "zero.xml",
        &system("edf", "<task name=\"a\" period=\"0ms\" cost=\"1us\"/>"),
    );
    write(
        "fraction.xml",
        &system("edf", "<task name=\"a\" period=\"1ms\" cost=\"1.5us\"/>"),
    );
    write("set.xml", "<taskset><task period=\"10\"/></taskset>");
    let cases: [(&[&str], &str); 11] = [
        (&["plan", "primes.xml"], "common multiple"),
        (&["check", "unicode.xml"], "is not a name"),
        (&["check", "zero.xml"], "1ns"),
        (&["check", "set.xml"], "has no `wcet`"),
        (
            &["check", "six-tasks", "--policy", "fifo"],
            "no policy `fifo`",
        ),
        (&["check", "six-tasks", "--processors", "0"], "out of range"),
        (&["check", "six-tasks", "--set", "rador@cost=1ms"], "radar"),
        (&["plan", "fraction.xml", "--export", "csv"], "--unit"),
        (
            &["plan", "quickstart", "--export", "csv"],
            "only our own format can hold it",
        ),
        (&["check", "no-such-tasks"], "no-such-tasks"),
        (
            &["plan", "six-tasks", "--unit", "parsec", "--export", "csv"],
            "not a unit of time",
        ),
    ];
    for (arguments, expected) in cases {
        let output = bulkhead(folder.path(), arguments);
        let errors = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {errors}");
        assert!(errors.contains(expected), "{arguments:?}: {errors}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
    }
    assert_eq!(
        bulkhead(folder.path(), &["check", "fraction.xml"])
            .status
            .code(),
        Some(0)
    );
}

#[test]
fn a_failing_plan_is_not_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = bulkhead(
        folder.path(),
        &["plan", "six-tasks", "--processors", "1", "--out", "p.xml"],
    );
    assert_eq!(output.status.code(), Some(3));
    assert!(text(&output.stdout).contains("p.xml is not written"));
    assert!(!folder.path().join("p.xml").exists());
}

/// A system's applications with costs, alone on their tiles and sharing one.
#[test]
fn tasks_of_a_system_are_judged() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = |cost: &str| {
        let text = format!(
            "<system name=\"s\" platform=\"tiled-gem5\">\n  <domain name=\"d\" criticality=\"A\">\n    \
             <app name=\"a\" program=\"control/sensor\"><task period=\"1ms\" cost=\"{cost}\"/></app>\n  </domain>\n</system>\n"
        );
        std::fs::write(folder.path().join("s.xml"), text).expect("writes");
    };
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let check = || {
        let output = Command::new(env!("CARGO_BIN_EXE_bulkhead"))
            .args(["check", "s.xml"])
            .current_dir(folder.path())
            .env("BULKHEAD_ROOT", root.canonicalize().expect("there"))
            .output()
            .expect("the command starts");
        (
            output.status.code(),
            text(&output.stdout),
            text(&output.stderr),
        )
    };
    file("400us");
    let (code, out, errors) = check();
    assert_eq!(code, Some(0), "{errors}");
    assert!(out.contains("400us") && out.contains("holds"), "{out}");
    // A cost beyond the deadline even alone is a mistake in the description, as always.
    file("1100us");
    assert_eq!(check().0, Some(2));
}

/// Everything that can be divided, given away twice: what fails, by how much, and what helps.
#[test]
fn each_kind_of_constraint_says_by_how_much_it_fails() {
    let folder = tempfile::tempdir().expect("a folder");
    let system = r#"<task-system name="everything">
  <processors count="2" policy="fixed-priority" arrivals="periodic"/>
  <llc ways="8" colours="4" colour-size="64KiB"/>
  <ram banks="4" bandwidth="100MB/s"/>
  <memguard period="1ms" access="50ns" accesses="1000"/>
  <share core="0" ways="6" colours="2" banks="3" budget="800"/>
  <share core="1" ways="4" colours="3" banks="2" budget="300"/>
  <task name="writer" period="10ms" cost="2ms" core="0" working-set="200KiB"><cost ways="7" time="1ms"/></task>
  <task name="reader" period="20ms" cost="3ms" core="1" accesses="500"/>
  <channel name="queue" from="reader" to="writer" kind="queue" slots="1" deadline="30ms"/>
  <channel name="slow" from="writer" to="reader" kind="queue" slots="9"/>
  <flow name="chain" from="writer" to="reader" deadline="20ms"/>
  <device name="camera" rate="60MB/s" direction="in" copied="true" task="reader" buffer="1MiB"/>
</task-system>
"#;
    std::fs::write(folder.path().join("e.xml"), system).expect("writes");
    let output = bulkhead(folder.path(), &["check", "e.xml"]);
    assert_eq!(output.status.code(), Some(3), "{}", text_of(&output));
    insta::assert_snapshot!(text(&output.stdout));
    // Without the parts that cannot be repaired, the rest can be repaired one by one.
    let output = bulkhead(
        folder.path(),
        &["check", "six-tasks", "--set", "brake@deadline=900us"],
    );
    insta::assert_snapshot!(text(&output.stdout));
}

/// Cores whose timers differ: how wrong their clocks may be, before a run.
#[test]
fn clocks_of_cores_have_a_table() {
    let output = bulkhead(Path::new("."), &["check", "oneshot/clocks"]);
    assert_eq!(output.status.code(), Some(0), "{}", text_of(&output));
    let all = text(&output.stdout);
    let table = all
        .split_once("Bounds of the error of clocks")
        .expect("a table")
        .1;
    insta::assert_snapshot!(table);
}

/// The bounds' cycles are counted for cores like epiphany3's.
#[test]
fn a_clock_of_a_slower_core_is_not_judged() {
    let slow = [
        "check",
        "oneshot/clocks",
        "--set",
        "platform/pipeline[ecore]@branch-penalty=200",
    ];
    let all = text(&bulkhead(Path::new("."), &slow).stdout);
    let (_, table) = all
        .split_once("Bounds of the error of clocks")
        .expect("a table");
    let first = "   1         0     not judged   not judged\n";
    assert!(table.contains(first), "{table}");
    let why = "The clock of core 1: the kernel's costs are those of a core like epiphany3's, and on core 0, pipeline `ecore` has branch-penalty=\"200\", more than 3";
    assert!(table.contains(why), "{table}");
    let output = bulkhead(Path::new("."), &[&slow[..], &["--json"]].concat());
    let value: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let one = &value["clocks"][0];
    assert_eq!((&one["core"], one.get("end")), (&1.into(), None));
    assert!(
        one["unbounded"]
            .as_str()
            .is_some_and(|why| why.contains("branch-penalty"))
    );
}

fn text_of(output: &Output) -> String {
    text(&output.stdout) + &text(&output.stderr)
}
