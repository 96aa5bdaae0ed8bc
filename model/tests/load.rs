//! Loading: includes, overrides with variants, catalogs on disk, placement, and attacks with damaged texts.

use std::fs;

use bulkhead_model::system::{APP_ENDPOINTS, KERNEL_MEMORY, PAGE, TILE_ENDPOINTS, TILE_MEMORY};
use bulkhead_model::units::{Rate, Size, Time};
use bulkhead_model::{
    LoadOptions, canonical, catalog, grammar, load_platform, load_system, load_system_text,
    platform_names, system_names,
};
use proptest::prelude::*;

fn with(overrides: &[&str]) -> LoadOptions<'static> {
    LoadOptions {
        overrides: overrides.iter().map(|&text| text.to_owned()).collect(),
        ..LoadOptions::default()
    }
}

#[test]
fn overrides_come_before_variants() {
    let system = load_system("quickstart", &with(&["logger/*/limit@noc=4MiB/s"])).unwrap();
    let limit = |run: usize| system.variants[run].app("hog-1").unwrap().limit;
    // The variant `unregulated` still says `none`; the variant `regulated` takes the value of the command line.
    assert_eq!(limit(1), None);
    assert_eq!(limit(2).map(|limit| limit.noc), Some(Rate(4 << 20)));
}

#[test]
fn overrides_reach_the_platform_and_change_it() {
    let system = load_system(
        "quickstart",
        &with(&["platform/clock[core]@frequency=1GHz"]),
    )
    .unwrap();
    for run in system.runs() {
        assert_eq!(
            run.platform.tiles[0].pipeline.clock.frequency.0,
            1_000_000_000
        );
    }
    let system = load_system(
        "quickstart",
        &with(&["@platform=tiled-fpga", "@duration=5ms"]),
    )
    .unwrap();
    // By its former name.
    assert_eq!(system.platform.name, "tiled-star");
    assert_eq!(system.variants[0].duration, Time(5_000_000_000));
    let platform = load_platform("single", &with(&["memory@size=64MiB"])).unwrap();
    assert_eq!(platform.memories[0].size, Size(64 << 20));
}

#[test]
fn overrides_reach_variants() {
    let options = with(&["unregulated/set@value=16MiB/s"]);
    let system = load_system("quickstart", &options).unwrap();
    let limit = system.variants[1].app("hog-2").unwrap().limit;
    assert_eq!(limit.map(|limit| limit.noc), Some(Rate(16 << 20)));
    let error = load_system("quickstart", &with(&["unregluated/set@value=1"])).unwrap_err();
    assert!(
        error.to_string().contains("did you mean `unregulated`?"),
        "{error}"
    );
}

#[test]
fn an_override_for_something_that_a_variant_leaves_out_is_no_error() {
    let system = load_system("quickstart", &with(&["hog-3@memory=8MiB"])).unwrap();
    assert!(system.variants[0].app("hog-3").is_none());
    assert_eq!(
        system.variants[1].app("hog-3").unwrap().memory,
        Size(8 << 20)
    );
}

/// Forty small files, each of which includes the next one twice, would be a tree of 2^40 elements.
#[test]
fn includes_are_bounded_in_number_and_depth() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: String, text: String| fs::write(folder.path().join(name), text).unwrap();
    let top = |first: &str| {
        format!(r#"<system name="m" platform="tiled-gem5"><include file="{first}"/></system>"#)
    };
    let fails = |name: &str| {
        let path = folder.path().join(name);
        let errors = load_system(&path, &LoadOptions::default()).unwrap_err();
        errors.to_string() + &format!("{errors:?}")
    };
    for at in 0..20 {
        let next = format!(r#"<include file="{}.xml"/>"#, at + 1);
        write(
            format!("{at}.xml"),
            format!(r#"<manager name="m{at}">{next}{next}</manager>"#),
        );
    }
    write("20.xml".into(), r#"<manager name="m20"/>"#.into());
    write("wide.xml".into(), top("0.xml"));
    assert!(
        fails("wide.xml").contains("more than 1000 files"),
        "{}",
        fails("wide.xml")
    );
    for at in 0..100 {
        let next = format!(r#"<include file="deep-{}.xml"/>"#, at + 1);
        write(
            format!("deep-{at}.xml"),
            format!(r#"<manager name="m{at}">{next}</manager>"#),
        );
    }
    write("deep.xml".into(), top("deep-0.xml"));
    assert!(
        fails("deep.xml").contains("more than 32 deep"),
        "{}",
        fails("deep.xml")
    );
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("/dev/zero", folder.path().join("zero.xml")).unwrap();
        write("device.xml".into(), top("zero.xml"));
        assert!(fails("device.xml").contains("not a regular file"));
        assert!(fails("zero.xml").contains("not a regular file"));
    }
}

#[test]
fn includes_nest_and_cycles_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    fs::create_dir(folder.path().join("parts")).unwrap();
    write(
        "main.xml",
        r#"<system name="m" platform="tiled-gem5"><include file="parts/camera.xml"/></system>"#,
    );
    write(
        "parts/camera.xml",
        r#"<manager name="camera"><include file="vision.xml"/></manager>"#,
    );
    write(
        "parts/vision.xml",
        r#"<domain name="vision"><app name="filter" program="p/q"/></domain>"#,
    );
    let path = folder.path().join("main.xml");
    let system = load_system(&path, &LoadOptions::default()).unwrap();
    assert_eq!(system.managers.len(), 2);
    assert_eq!(
        (system.managers[1].parent, system.domains[0].manager),
        (Some(0), 1)
    );
    // Tile 0 is the kernel's; root manager, nested manager and application take the next three.
    assert_eq!(
        (
            system.managers[0].tile,
            system.managers[1].tile,
            system.apps[0].tile
        ),
        (1, 2, 3)
    );

    write(
        "parts/vision.xml",
        r#"<manager name="v"><include file="camera.xml"/></manager>"#,
    );
    let error = load_system(&path, &LoadOptions::default()).unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("camera.xml includes vision.xml includes camera.xml"),
        "{text}"
    );
    assert_eq!(error.list[0].position(), Some((1, 34)));
}

#[test]
fn a_catalog_on_disk_comes_before_the_built_in_one() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir_all(folder.path().join("platforms")).unwrap();
    fs::create_dir_all(folder.path().join("systems/mine")).unwrap();
    let platform = load_platform("tiled-2ghz", &with(&["@name=bigger"])).unwrap();
    let text = canonical::platform(&platform);
    fs::write(folder.path().join("platforms/tiled-2ghz.xml"), text).unwrap();
    fs::write(
        folder.path().join("systems/mine/one.xml"),
        r#"<system name="one" platform="tiled-2ghz"><domain name="d"/></system>"#,
    )
    .unwrap();
    let options = LoadOptions {
        catalogs: vec![folder.path().to_path_buf()],
        ..LoadOptions::default()
    };
    assert_eq!(
        load_system("mine/one", &options).unwrap().platform.name,
        "bigger"
    );
    assert!(system_names(&options).contains(&"mine/one".to_owned()));
    assert_eq!(
        platform_names(&options),
        [
            "epiphany3",
            "epiphany3-clocks",
            "epiphany5",
            "imx6",
            "imx6-devices",
            "imx6-ooo",
            "imx6-solo",
            "linux-pair",
            "single",
            "single-ooo",
            "tiled-256",
            "tiled-2ghz",
            "tiled-2ghz-ooo",
            "tiled-64",
            "tiled-accelerated",
            "tiled-ddr3",
            "tiled-star",
            "tiled-star-ooo",
            "tx2",
            "tx2-coherent",
            "virt",
            "virt-qos",
            "virt-shares",
            "zcu102",
            "zcu102-colours"
        ]
    );
    // A system of the built-in catalog uses the platform on disk, too.
    assert_eq!(
        load_system("quickstart", &options).unwrap().platform.name,
        "bigger"
    );
}

#[test]
fn a_name_of_another_kind_says_which() {
    for (name, what) in [("mc2", "is a task system"), ("tiled-64", "is a platform")] {
        let error = load_system(name, &LoadOptions::default()).expect_err("no system");
        assert!(error.to_string().contains(what), "{error}");
    }
    let error = load_platform("quickstart", &LoadOptions::default()).expect_err("no platform");
    assert!(error.to_string().contains("is a system"), "{error}");
}

#[test]
fn unreadable_things_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let message = |path: &str| {
        load_system(path, &LoadOptions::default())
            .unwrap_err()
            .to_string()
    };
    assert!(message("nothing.xml").starts_with("cannot read `nothing.xml`"));
    insta::assert_snapshot!(message("quickstrat"), @r"
    there is no system `quickstrat`
      help: did you mean `quickstart`? known: accelerators, accelerators-files, bare/clusters, bare/coherent, bare/colours, bare/devices, bare/doorbells, bare/guarded, bare/handover, bare/partitions, bare/ports, bare/shares, bare/streams, bare/tcm, m3/attack-buffers, m3/attack-endpoints and 25 more; name a file with its ending .xml
    ");
    let binary = folder.path().join("binary.xml");
    fs::write(&binary, [0xFF, 0xFE, 0x00]).unwrap();
    assert!(message(binary.to_str().unwrap()).contains("not UTF-8"));
    let error = load_system(
        folder.path().join("x").join("y.xml"),
        &LoadOptions::default(),
    );
    assert_eq!(error.unwrap_err().list[0].code(), "model::unreadable");
}

#[test]
fn what_is_not_counted_takes_no_slots() {
    let text = |credits: &str| {
        format!(
            r#"<system name="s" platform="tiled-gem5"><domain name="d">
               <app name="a" program="p"><rgate name="in" slots="1"/></app>
               <app name="b" program="p"><sgate name="out" to="a" credits="{credits}"/></app>
               <app name="c" program="p"><sgate name="out" to="a"/></app></domain></system>"#
        )
    };
    let folder = tempfile::tempdir().unwrap();
    let load = |credits: &str| {
        let path = folder.path().join("s.xml");
        fs::write(&path, text(credits)).unwrap();
        load_system(&path, &LoadOptions::default())
    };
    let system = load("unlimited").unwrap();
    assert_eq!(system.apps[1].sgates[0].credits, 0);
    assert!(canonical::for_chip(&system).contains("credits=\"unlimited\""));
    // Two senders with one credit each are one too many; 0 is not a number of credits.
    assert_eq!(load("1").unwrap_err().list[0].code(), "model::credits");
    let error = load("0").unwrap_err().to_string();
    assert!(error.contains("1 to 32, or `unlimited`"), "{error}");
}

#[test]
fn the_description_for_the_chip_is_plain() {
    let system = load_system("quickstart", &LoadOptions::default()).unwrap();
    insta::assert_snapshot!(canonical::for_chip(&system.variants[2]));
}

/// A small random system as text: applications with gates between them on random tiles.
fn random_system() -> impl Strategy<Value = String> {
    let app = (
        prop::option::weighted(0.7, 0u16..10),
        1u64..40_000,
        prop::option::of(1u64..20_000),
        prop::collection::vec((0usize..5, 1u32..5), 0..4),
        1u32..7,
        prop::option::of(1u64..20_000),
    );
    prop::collection::vec(app, 1..6).prop_map(|apps| {
        let count = apps.len();
        let mut text = String::from("<system name='r' platform='tiled-gem5'><domain name='d'>");
        for (index, (tile, memory, limit, gates, slots, region)) in apps.into_iter().enumerate() {
            let tile = tile.map_or(String::new(), |tile| format!(" tile='{tile}'"));
            text += &format!("<app name='a{index}' program='p/q' memory='{memory}kB'{tile}>");
            text += &format!("<rgate name='in' slots='{slots}'/>");
            for (number, (to, credits)) in gates.into_iter().enumerate() {
                let to = to % count;
                text += &format!("<sgate name='s{number}' to='a{to}' credits='{credits}'/>");
            }
            if let Some(limit) = limit {
                text += &format!("<limit noc='{limit}MB/s'/>");
            }
            if let Some(region) = region {
                text += &format!("<mgate name='m' size='{region}kB'/>");
            }
            text += "</app>";
        }
        text + "</domain></system>"
    })
}

proptest! {
    /// Every accepted system obeys every rule, checked here from the finished model by brute force.
    #[test]
    fn accepted_systems_keep_the_rules(text in random_system()) {
        let Ok(system) = load_system_text("random", &text, &LoadOptions::default()) else {
            return Ok(());
        };
        let mut tiles: Vec<u16> = system.apps.iter().map(|app| app.tile).collect();
        tiles.push(system.managers[0].tile);
        tiles.sort_unstable();
        prop_assert!(tiles.windows(2).all(|pair| pair[0] != pair[1]));
        prop_assert!(tiles.iter().all(|tile| (1..8).contains(tile)));
        let mut memory = KERNEL_MEMORY + TILE_MEMORY * tiles.len() as u64 + system.managers[0].memory.0;
        for (index, app) in system.apps.iter().enumerate() {
            prop_assert_eq!(app.memory.0 % PAGE, 0);
            memory += app.memory.0 + app.mgates.iter().map(|gate| gate.size.0).sum::<u64>();
            let mut endpoints = TILE_ENDPOINTS + APP_ENDPOINTS;
            endpoints += (app.sgates.len() + app.mgates.len()) as u64;
            for (number, gate) in app.rgates.iter().enumerate() {
                endpoints += 1 + u64::from(gate.slots);
                let senders = system.apps.iter().flat_map(|sender| &sender.sgates);
                let to_here = senders.filter(|sender| (sender.to, sender.gate) == (index, number));
                prop_assert!(to_here.map(|sender| sender.credits).sum::<u32>() <= gate.slots);
            }
            prop_assert!(endpoints <= 192);
            prop_assert!(app.limit.is_none_or(|limit| limit.noc.0 <= 16_000_000_000));
        }
        prop_assert!(memory <= 256 << 20);
        let text = canonical::complete(&system);
        let again = load_system_text("canonical", &text, &LoadOptions::default());
        prop_assert_eq!(again.as_ref().ok(), Some(&system), "{}", text);
    }

    /// Damaged files give errors with places inside the text, never a panic.
    #[test]
    fn damaged_files_never_panic(
        which in 0usize..3,
        cuts in prop::collection::vec((0.0f64..1.0, 0usize..6, "[ -~é]{0,4}"), 1..4),
    ) {
        let texts = [catalog::SYSTEMS[3].1, catalog::SYSTEMS[0].1, catalog::SYSTEMS[2].1];
        let mut text: Vec<char> = texts[which].chars().collect();
        for (place, length, insert) in cuts {
            let start = (place * text.len() as f64) as usize;
            let end = (start + length).min(text.len());
            text.splice(start..end, insert.chars());
        }
        let text: String = text.into_iter().collect();
        if let Err(errors) = load_system_text("damaged", &text, &LoadOptions::default()) {
            prop_assert!(!errors.list.is_empty());
            for error in errors.list {
                let (text, range) = (error.text().unwrap_or(""), error.range().unwrap_or(0..0));
                prop_assert!(text.get(range).is_some(), "{}", error);
            }
        }
    }

    /// Any attribute of any element set to any extreme value: an error or a system, never a panic or an overflow.
    #[test]
    fn extreme_values_never_panic(
        element in 0usize..64,
        attribute in 0usize..64,
        value in prop::sample::select(vec![
            "0", "1", "4095", "4096", "65536", "18446744073709551615", "18446744073709551616", "0B", "1B", "64B", "512B",
            "2KiB", "512MiB", "1048576MiB", "16777215TiB", "1ns", "18446744073709551ns", "213s", "18446744s", "1Hz",
            "18446744073709551615Hz", "9999999999999Hz", "1B/s", "16GB/s", "18446744073709551615B/s", "none", "true",
            "false", "100%", "0.0001%", "1cycles", "18446744073709551615cycles", "r", "w", "mesh", "star-mesh", "bare",
            "tree-plru", "a", "hog-1", "controller", "input", "split", "single", "../x", "é",
        ]),
        platform: bool,
    ) {
        let rules: Vec<_> = grammar::SYSTEM.iter().chain(grammar::PLATFORM).collect();
        let rule = rules[element % rules.len()];
        let attribute = rule.attributes[attribute % rule.attributes.len()].name;
        let options = LoadOptions {
            overrides: vec![format!("{}@{attribute}={value}", rule.name)],
            ..LoadOptions::default()
        };
        if platform {
            let _ = load_platform("tiled-fpga", &options);
        } else if let Ok(system) = load_system("quickstart", &options) {
            for run in system.runs() {
                let _ = (canonical::complete(run), run.platform.ticks_per_second());
            }
        }
    }
}

/// A service has kernel memory for each possible client, unless its description specifies the amount; the manager on the chip is told.
#[test]
fn a_service_has_kernel_memory_for_its_clients() {
    let app = |inside: &str| {
        let text = format!(
            r#"<system name="s" platform="tiled-gem5" duration="1ms" manager-tile="1"><domain name="d">
  <app name="files" tile="2" program="tiled/files">{inside}<rgate name="priority-0" slots="4"/><rgate name="priority-1" slots="8"/><rgate name="else" slots="8"/></app>
</domain></system>"#
        );
        let system = load_system_text("service", &text, &LoadOptions::default()).unwrap();
        let read = canonical::for_chip(&system);
        (
            system.apps[0].kernel_memory(),
            read.matches("kernel-memory").count(),
        )
    };
    assert_eq!(app(""), (4 << 10, 0));
    assert_eq!(app("<service/>"), ((4 << 10) + 12 * 512, 1));
    let limit = r#"<service/><limit kernel-memory="64KiB"/>"#;
    assert_eq!(app(limit), (64 << 10, 1));
}

/// A finished program that lies anywhere (`-pie`) is one for a system without a kernel, and none for a manager.
#[test]
fn only_managers_refuse_what_they_cannot_load() {
    struct Anywhere;
    impl bulkhead_model::Programs for Anywhere {
        fn contains(&self, _name: &str) -> bool {
            true
        }
        fn names(&self) -> Vec<String> {
            Vec::new()
        }
        fn application_refusal(&self, name: &str) -> Option<(String, String)> {
            let why = format!("{name}: it is not linked to fixed addresses");
            Some((why, "link it as an application".to_owned()))
        }
    }
    let loaded = |start: &str| {
        let options = LoadOptions {
            programs: Some(&Anywhere),
            ..LoadOptions::default()
        };
        let text = format!(
            r#"<system name="s" {start}><domain name="d"><app name="a" program="./a"/></domain></system>"#
        );
        load_system_text("s.xml", &text, &options)
    };
    loaded(r#"paradigm="bare" platform="single""#).expect("a program without a kernel");
    let refused = loaded(r#"platform="tiled-2ghz""#).expect_err("no manager loads it");
    assert!(refused.to_string().contains("fixed addresses"), "{refused}");
}
