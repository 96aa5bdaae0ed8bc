//! `bulkhead study` as users meet it: killed and resumed, invalid patterns, results for machines.

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bulkhead"));
    command.arg("study").args(arguments).current_dir(folder);
    command
}

fn study(folder: &Path, arguments: &[&str]) -> Output {
    command(folder, arguments)
        .output()
        .expect("the command starts")
}

fn counts(folder: &Path) -> String {
    let text = std::fs::read_to_string(folder.join("counts.csv")).expect("counts are there");
    // Everything except how the study was requested.
    text.lines()
        .filter(|l| !l.starts_with("# command"))
        .collect::<Vec<_>>()
        .join("\n")
}

/// Killed without warning as soon as something is counted, and resumed: the same digits as in one run, with one thread or
/// two.
#[test]
fn killed_and_resumed() {
    let folder = tempfile::tempdir().expect("a folder");
    let of = |out| {
        [
            "mc2",
            "--quick",
            "--scenarios",
            "*,*,Medium,Quick,Large,High,Many",
            "--out",
            out,
        ]
    };
    assert!(study(folder.path(), &of("whole")).status.success());
    let mut child = command(folder.path(), &of("killed"))
        .args(["--threads", "1"])
        .stdout(Stdio::null())
        .spawn()
        .expect("the command starts");
    let begin = Instant::now();
    let kept = folder.path().join("killed").join("counts");
    while std::fs::read_dir(&kept).map_or(0, Iterator::count) == 0
        && begin.elapsed() < Duration::from_secs(60)
    {
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().expect("kills");
    child.wait().expect("ends");
    let resumed = study(folder.path(), &["mc2", "--resume", "killed", "--json"]);
    assert!(
        resumed.status.success(),
        "{}",
        String::from_utf8_lossy(&resumed.stderr)
    );
    assert_eq!(
        counts(&folder.path().join("killed")),
        counts(&folder.path().join("whole"))
    );
    let summary: serde_json::Value = serde_json::from_slice(&resumed.stdout).expect("is JSON");
    assert_eq!(summary["scenarios"], 9);
    assert_eq!(summary["comparisons"].as_array().map(Vec::len), Some(11));
    assert!(folder.path().join("killed/index.html").exists());
}

#[test]
fn wrong_questions_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    for (arguments, text) in [
        (
            &["mc2", "--scenarios", "C-Light,Tiny"][..],
            "choices: Short, Moderate, Long",
        ),
        (&["mc2", "--schemes", "C|C,X|Y"], "`X|Y` is not a scheme"),
        (&["mc2", "--resume", "nothing"], "nothing holds no study"),
        (&["mc2", "--variant", "third"], "`third` is not a variant"),
        (
            &["variants", "--variant", "third"],
            "variants: first, second",
        ),
    ] {
        let output = study(folder.path(), arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(error.contains(text), "{error}");
    }
}

/// A study resumed with another pattern: the folder records the command and scenarios of the last request, and a quick study
/// stays quick.
#[test]
fn resumed_with_another_pattern() {
    let folder = tempfile::tempdir().expect("a folder");
    let first = [
        "mc2",
        "--quick",
        "--scenarios",
        "C-Light,Short,Light,Quick,Small,Low,Few",
        "--schemes",
        "C|C",
        "--out",
        "s",
    ];
    assert!(study(folder.path(), &first).status.success());
    let other = "C-Light,Short,Light,Quick,Large,Low,Few";
    let again = study(
        folder.path(),
        &["mc2", "--resume", "s", "--scenarios", other, "--json"],
    );
    assert!(
        again.status.success(),
        "{}",
        String::from_utf8_lossy(&again.stderr)
    );
    let identity = std::fs::read(folder.path().join("s/study.json")).expect("is there");
    let identity: serde_json::Value = serde_json::from_slice(&identity).expect("is JSON");
    let summary: serde_json::Value = serde_json::from_slice(&again.stdout).expect("is JSON");
    assert_eq!(identity, summary["identity"]);
    assert_eq!(
        identity["command"],
        format!("bulkhead study mc2 --scenarios '{other}' --schemes 'C|C' --quick")
    );
    assert_eq!(identity["scenarios"].as_array().map(Vec::len), Some(1));
}

/// A study of a variant says so, is resumed as one, and is not a study of the frozen model.
#[test]
fn variants_stay_variants() {
    let folder = tempfile::tempdir().expect("a folder");
    let one = "C-Light,Short,Light,Quick,Small,Low,Few";
    let begin = |out, more: &[&str]| {
        let mut all = vec!["mc2", "--quick", "--scenarios", one, "--out", out];
        all.extend(more);
        assert!(study(folder.path(), &all).status.success());
        let identity = std::fs::read(folder.path().join(out).join("study.json")).expect("is there");
        serde_json::from_slice::<serde_json::Value>(&identity).expect("is JSON")
    };
    let frozen = begin("frozen", &[]);
    let variant = begin("variant", &["--variant", "second"]);
    assert_ne!(frozen["parameters_hash"], variant["parameters_hash"]);
    let text = format!("bulkhead study mc2 --scenarios '{one}' --quick --variant second");
    assert_eq!(variant["command"], text);
    let again = study(folder.path(), &["mc2", "--resume", "variant", "--json"]);
    let summary: serde_json::Value = serde_json::from_slice(&again.stdout).expect("is JSON");
    assert_eq!(summary["identity"], variant);
    let other = study(
        folder.path(),
        &[
            "mc2",
            "--resume",
            "frozen",
            "--quick",
            "--variant",
            "second",
        ],
    );
    assert_eq!(other.status.code(), Some(2));
}
