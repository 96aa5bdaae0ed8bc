//! The output of `--json` against the schemas in `docs/schemas`: quick commands here, runs and audits in `report`.
//!
//! A schema names every field and allows no others, so a field that is added, removed or retyped fails here until its schema changes, too.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn schema(name: &str) -> jsonschema::Validator {
    let path = root().join(format!("docs/schemas/{name}.json"));
    let text = std::fs::read_to_string(path).expect("the schema is there");
    let schema: Value = serde_json::from_str(&text).expect("the schema is JSON");
    jsonschema::draft202012::meta::validate(&schema).expect("the schema is one");
    jsonschema::validator_for(&schema).expect("the schema is one")
}

/// The output of a command with `--json`.
fn printed(arguments: &[&str]) -> Value {
    let output = Command::new(env!("CARGO_BIN_EXE_bulkhead"))
        .args(arguments)
        .arg("--json")
        .env("BULKHEAD_ROOT", root())
        .output()
        .expect("it runs");
    let text = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(&text).unwrap_or_else(|error| {
        let said = String::from_utf8_lossy(&output.stderr);
        panic!("{arguments:?}: {error}\n{text}\n{said}")
    })
}

#[track_caller]
fn fits(name: &str, arguments: &[&str]) {
    let value = printed(arguments);
    let schema = schema(name);
    let wrong: Vec<String> = schema
        .iter_errors(&value)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .take(5)
        .collect();
    assert!(wrong.is_empty(), "{arguments:?} beside {name}: {wrong:#?}");
}

#[test]
fn lists() {
    for name in ["platforms", "systems", "programs"] {
        fits(name, &[name]);
    }
}

#[test]
fn platforms() {
    for value in printed(&["platforms"]).as_array().expect("a list") {
        let name = value["name"].as_str().expect("a name");
        fits("check-platform", &["check", name]);
    }
}

#[test]
fn task_systems() {
    let names = bulkhead_analysis::plan::files::names();
    assert!(names.len() > 5);
    for name in names {
        fits("check-tasks", &["check", &name]);
        fits("plan-tasks", &["plan", &name]);
    }
    // What fails has repairs.
    fits(
        "check-tasks",
        &["check", "six-tasks", "--set", "radar@cost=500ms"],
    );
    // Nothing is known of its tasks.
    let waits = ["oneshot/pair", "--set", "platform/network@credits=2"];
    fits("check-tasks", &[&["check"], &waits[..]].concat());
    fits("plan-tasks", &[&["plan"], &waits[..]].concat());
}

#[test]
fn systems() {
    for name in ["quickstart", "accelerators", "network/two-chips", "pager"] {
        fits("check-system", &["check", name]);
        fits("plan-system", &["plan", name]);
    }
    // With bounds of tasks and of a flow, on a shared tile, and with a repair.
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("s.xml");
    let text = r#"<system name="s" platform="tiled-gem5" duration="10ms"><domain name="d">
        <app name="sensor" tile="2" program="control/sensor"><cpu quota="2ms" period="10ms" priority="2"/>
          <task period="10ms" cost="COST" accesses="40"/><sgate name="out" to="actuator"/></app>
        <app name="other" tile="2" program="control/sensor"><cpu quota="5ms" period="10ms" priority="1"/></app>
        <app name="actuator" tile="3" program="control/actuator"><task period="10ms" cost="5us" accesses="40"/><rgate name="in"/></app>
      </domain><tilemux tile="2" policy="realtime"/><flow name="f" from="sensor" to="actuator" deadline="5ms"/></system>"#;
    for cost in ["5us", "9ms"] {
        std::fs::write(&file, text.replace("COST", cost)).expect("writes");
        let name = file.display().to_string();
        fits("check-system", &["check", &name]);
        fits("plan-system", &["plan", &name]);
    }
}

/// Why a flow gets no bound is in the value, too, and not on the terminal only.
#[test]
fn a_check_has_its_notes() {
    let value = printed(&["check", "bare/partitions"]);
    let notes = value["notes"].as_array().into_iter().flatten();
    let mut notes = notes.filter_map(|note| note.as_str());
    assert!(notes.any(|note| note.contains("flow `pass` gets no bound")));
    fits("check-system", &["check", "bare/partitions"]);
}

#[test]
fn studies() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("out").display().to_string();
    let few = "C-Light,Short,Heavy,Quick,Lar.,*,*";
    let study = ["study", "mc2", "--quick", "--scenarios", few];
    fits("study-mc2", &[&study[..], &["--out", &out]].concat());
    let placement = ["study", "placement", "--scenarios", few, "--samples", "1"];
    fits("study-placement", &placement);
}

/// A check that accepts everything checks nothing.
#[test]
fn what_is_not_in_the_schema_is_refused() {
    let value = printed(&["check", "quickstart"]);
    let schema = schema("check-system");
    let mut more = value.clone();
    more["surprise"] = 1.into();
    let mut less = value.clone();
    less.as_object_mut().expect("an object").remove("verdict");
    let mut other = value.clone();
    other["applications"] = "seven".into();
    assert!(schema.is_valid(&value));
    for wrong in [more, less, other] {
        assert!(!schema.is_valid(&wrong));
    }
}
