//! The catalog: everything in it loads, the built-in copy is complete, and canonical output has the same
//! meaning.

use std::path::{Path, PathBuf};

use bulkhead_model::{
    LoadOptions, canonical, catalog, load_platform, load_platform_text, load_system,
    load_system_text, load_tasks, load_tasks_text, tasks,
};

fn catalog_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../catalog")
}

fn files(folder: &Path, prefix: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let stem = path.file_stem().unwrap().to_str().unwrap().to_owned();
        if path.is_dir() {
            found.extend(files(&path, &format!("{prefix}{stem}/")));
        } else {
            found.push(format!("{prefix}{stem}"));
        }
    }
    found.sort();
    found
}

fn names(table: &[(&'static str, &str)]) -> Vec<&'static str> {
    table.iter().map(|entry| entry.0).collect()
}

#[test]
fn the_built_in_catalog_is_the_folder() {
    assert_eq!(
        files(&catalog_folder().join("platforms"), ""),
        names(catalog::PLATFORMS)
    );
    assert_eq!(
        files(&catalog_folder().join("systems"), ""),
        names(catalog::SYSTEMS)
    );
    assert_eq!(
        files(&catalog_folder().join("tasks"), ""),
        names(catalog::TASKS)
    );
}

#[test]
fn every_task_system_loads_and_what_is_written_means_the_same() {
    for (name, _) in catalog::TASKS {
        let system = load_tasks(name, &LoadOptions::default()).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(system.name, *name);
        assert!(system.about.is_some(), "{name} says what it shows");
        let text = tasks::write(&system);
        let again = load_tasks_text("written", &text, &LoadOptions::default())
            .unwrap_or_else(|e| panic!("{e}\n{text}"));
        assert_eq!(again, system);
    }
}

#[test]
fn every_platform_loads_and_its_canonical_form_means_the_same() {
    for (name, _) in catalog::PLATFORMS {
        let platform =
            load_platform(name, &LoadOptions::default()).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(platform.name, *name);
        let text = canonical::platform(&platform);
        let again = load_platform_text("canonical", &text, &LoadOptions::default())
            .unwrap_or_else(|e| panic!("{e}\n{text}"));
        assert_eq!(again, platform);
    }
}

#[test]
fn every_parameter_of_a_platform_says_where_it_comes_from() {
    for (name, text) in catalog::PLATFORMS {
        let document = roxmltree::Document::parse(text).unwrap();
        for node in document
            .root_element()
            .children()
            .filter(roxmltree::Node::is_element)
        {
            // Tiles refer to parts with sources; what remains is the floor plan.
            if node.attribute("source").is_some() || node.tag_name().name() == "tile" {
                continue;
            }
            let sourced: Vec<&str> = node
                .children()
                .filter_map(|child| child.attribute("of"))
                .flat_map(str::split_whitespace)
                .collect();
            for attribute in node.attributes() {
                let attribute = attribute.name();
                assert!(
                    attribute == "name" || sourced.contains(&attribute),
                    "{name}: {}@{attribute} has no source",
                    node.tag_name().name()
                );
            }
        }
    }
}

#[test]
fn every_system_loads_and_its_canonical_form_means_the_same() {
    for (name, _) in catalog::SYSTEMS {
        let system = load_system(name, &LoadOptions::default()).unwrap_or_else(|e| panic!("{e}"));
        for run in system.runs() {
            let text = canonical::complete(run);
            let again = load_system_text("canonical", &text, &LoadOptions::default())
                .unwrap_or_else(|e| panic!("{e}\n{text}"));
            let mut plain = run.clone();
            (plain.variant, plain.variant_about, plain.variants) = (None, None, Vec::new());
            plain.misses_expected = false;
            assert_eq!(again, plain);
            assert_eq!(canonical::complete(&again), text);
        }
    }
}

#[test]
fn the_quickstart_is_what_it_says() {
    let system = load_system("quickstart", &LoadOptions::default()).unwrap();
    let runs = system.runs();
    let names: Vec<_> = runs
        .iter()
        .filter_map(|run| run.variant.as_deref())
        .collect();
    assert_eq!(names, ["alone", "unregulated", "regulated"]);
    assert_eq!(
        runs.iter().map(|run| run.apps.len()).collect::<Vec<_>>(),
        [3, 6, 6]
    );
    assert!(runs[1].apps.iter().all(|app| app.limit.is_none()));
    assert!(
        runs[2].apps[3..]
            .iter()
            .all(|app| app.limit.is_some_and(|l| l.noc.0 == 8 << 20))
    );
    // 2 GHz, 1 GHz, 800 MHz and 10 MHz have the common multiple 4 GHz.
    assert_eq!(system.platform.ticks_per_second(), 4_000_000_000);
}

#[test]
fn every_system_also_loads_on_the_other_tiled_platform() {
    for (name, _) in catalog::SYSTEMS {
        let options = LoadOptions {
            overrides: vec!["@platform=tiled-star".into()],
            ..LoadOptions::default()
        };
        match load_system(name, &options) {
            Ok(system) => assert_eq!(system.platform.name, "tiled-star"),
            // It has no streaming units.
            Err(error) if name.starts_with("accelerators") => assert!(
                error.to_string().contains("has no streaming unit, which `"),
                "{error}"
            ),
            // Its memory has no queue whose policy could change.
            Err(error) if name == &"memory-policies" => assert!(
                error
                    .to_string()
                    .contains("<controller> has no attribute `write-cas`"),
                "{error}"
            ),
            // Its tiles have one hart each, and its memory has no separate banks.
            Err(error) if name.starts_with("bare/") => {
                assert!(
                    error.to_string().contains("does not have the harts"),
                    "{error}"
                );
            }
            Err(error) if name.starts_with("oneshot/") => {
                assert!(error.to_string().contains("is not a mesh"), "{error}");
            }
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn what_has_no_tile_goes_where_a_hart_is() {
    let system = |apps: usize| {
        let app = |i| format!(r#"<app name="a{i}" program="control/sensor"/>"#);
        let apps: String = (0..apps).map(app).collect();
        format!(
            r#"<system name="s" platform="tiled-accelerated"><domain name="d">{apps}<app name="u" program="accelerator/unit"/></domain></system>"#
        )
    };
    let load =
        |text: &str| bulkhead_model::load_system_text("s.xml", text, &LoadOptions::default());
    let fits = load(&system(3)).unwrap();
    let tiles: Vec<u16> = fits.apps.iter().map(|app| app.tile).collect();
    let has_unit = |tile: &u16| fits.platform.tile(*tile).unwrap().accelerator.is_some();
    assert!(!tiles[..3].iter().any(has_unit) && has_unit(&tiles[3]));
    let full = load(&system(4)).unwrap_err().to_string();
    assert!(full.contains("no tile is free for `a3`"), "{full}");
}

#[test]
fn the_interference_experiment_has_every_pair() {
    let workloads = ["compute", "accesses", "messages", "transfers"];
    let load = |name: &str, overrides: &[&str]| {
        let overrides = overrides.iter().map(|&text| text.to_owned()).collect();
        load_system(
            name,
            &LoadOptions {
                overrides,
                ..LoadOptions::default()
            },
        )
        .unwrap()
    };
    // A sweep over limits affects only the regulated variants.
    let sweep = ["background/*/limit@noc=32MiB/s"];
    let mut runs = load("m3/interference", &sweep).variants;
    runs.extend(load("m3/interference-messages", &sweep).variants);
    let mut names: Vec<_> = runs.iter().filter_map(|run| run.variant.clone()).collect();
    names.sort();
    let mut expected = Vec::new();
    for foreground in workloads {
        expected.push(foreground.to_owned());
        for background in workloads {
            expected.push(format!("{foreground}-{background}"));
            expected.push(format!("{foreground}-{background}-regulated"));
        }
    }
    expected.sort();
    assert_eq!(names, expected);
    for run in &runs {
        let name = run.variant.as_deref().unwrap();
        let copies: Vec<_> = run
            .apps
            .iter()
            .filter(|app| app.name.contains('-') || app.name == "single")
            .filter(|app| app.name != "foreground-sink")
            .collect();
        let foreground = if name.starts_with("messages") { 2 } else { 1 };
        let background = name.split('-').nth(1);
        // Six tiles remain besides the kernel and the manager; messages need two tiles each.
        let expected = match background {
            None => 0,
            Some("messages") => (6 - foreground) / 2 * 2,
            Some(_) => 6 - foreground,
        };
        assert_eq!(copies.len(), expected, "{name}");
        let limit = name.ends_with("regulated").then_some(32 << 20);
        assert!(
            copies
                .iter()
                .all(|app| app.limit.map(|limit| limit.noc.0) == limit),
            "{name}"
        );
        assert!(copies.iter().all(|app| app.background), "{name}");
    }
}

#[test]
fn platforms_are_found_by_the_names_that_they_had_before() {
    let options = LoadOptions::default();
    for (before, now) in [("tiled-gem5", "tiled-2ghz"), ("tiled-fpga", "tiled-star")] {
        assert_eq!(load_platform(before, &options).unwrap().name, now);
        let text = format!(
            "<system name='s' platform='{before}'><domain name='d'><app name='a' program='p'/></domain></system>"
        );
        let system = load_system_text("s", &text, &options).unwrap();
        assert_eq!(system.platform.name, now);
        // Nothing on the chip may reveal which name was used.
        let again = load_system_text("s", &text.replace(before, now), &options).unwrap();
        assert_eq!(canonical::for_chip(&system), canonical::for_chip(&again));
        let changed = LoadOptions {
            overrides: vec![format!("@platform={before}")],
            ..LoadOptions::default()
        };
        let system = load_system("quickstart", &changed).unwrap();
        assert_eq!(system.platform.name, now);
    }
    assert!(!bulkhead_model::platform_names(&options).contains(&"tiled-gem5".to_owned()));
}
