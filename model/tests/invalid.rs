//! One tiny bad file for each rule. The expected message is at the end of the file itself.
//!
//! `BLESS=1 cargo test -p bulkhead-model --test invalid` rewrites the messages; read them before committing.

use std::path::{Path, PathBuf};

use bulkhead_model::{Errors, LoadOptions, load_platform, load_system, load_tasks};

const MARK: &str = "<!-- expected\n";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../catalog/invalid")
}

fn programs() -> Vec<String> {
    [
        "control/sensor",
        "control/controller",
        "control/actuator",
        "tiled/resmgr",
        "one-shot::pipeline::Other",
        "one-shot/pair.adb::Consumer",
    ]
    .map(String::from)
    .into()
}

fn load(path: &Path, text: &str) -> Result<(), Errors> {
    let programs = programs();
    let overrides = text
        .lines()
        .filter_map(|line| line.strip_prefix("<!-- override: ")?.strip_suffix(" -->"))
        .map(str::to_owned)
        .collect();
    let options = LoadOptions {
        overrides,
        programs: Some(&programs),
        // As `plan` reads it.
        open: text.contains("<!-- open -->"),
        ..LoadOptions::default()
    };
    if text.starts_with("<platform") {
        load_platform(path, &options).map(drop)
    } else if text.starts_with("<task-system") {
        load_tasks(path, &options).map(drop)
    } else {
        load_system(path, &options).map(drop)
    }
}

#[test]
fn every_bad_file_gives_its_message() {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    assert!(files.len() > 50);
    let mut wrong = Vec::new();
    for path in files {
        let text = std::fs::read_to_string(&path).unwrap();
        let Err(errors) = load(&path, &text) else {
            panic!("{} is accepted", path.display());
        };
        // Messages use the file's name, not the repository's path; comments may not contain two hyphens.
        let prefix = format!("{}/", folder().display());
        let message = errors.to_string().replace(&prefix, "").replace("--", "- -");
        let (body, expected) = text.split_once(MARK).unwrap_or((&text, ""));
        let found = format!("{message}\n-->\n");
        if expected != found {
            if std::env::var_os("BLESS").is_some() {
                std::fs::write(&path, format!("{body}{MARK}{found}")).unwrap();
            } else {
                wrong.push(format!("{}:\n{found}expected:\n{expected}", path.display()));
            }
        }
        for diagnostic in &errors.list {
            assert!(!diagnostic.help.is_empty(), "{diagnostic}");
            let (text, range) = (diagnostic.text().unwrap(), diagnostic.range().unwrap());
            assert!(
                range.start <= range.end && range.end <= text.len(),
                "{diagnostic}"
            );
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
