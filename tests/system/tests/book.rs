//! The programs of the book's chapters, taken from their text, built and run.

use bulkhead_analysis::plan::one_shot::bounds;
use bulkhead_analysis::plan::{Kind, plan};
use bulkhead_model::{LoadOptions, load_system};
use bulkhead_runner::progress::Silent;
use bulkhead_runner::run::{Options, run};
use bulkhead_runner::{c_programs, new, place};
use bulkhead_system_tests::boot_with;

/// The blocks of a language in a chapter, in their order.
fn blocks(chapter: &str, language: &str) -> Vec<String> {
    let path = format!("{}/../../docs/{chapter}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).expect("the chapter is there");
    let mark = format!("```{language}\n");
    let blocks = text.split(&mark).skip(1);
    let block = |rest: &str| rest.split("```").next().unwrap_or_default().to_owned();
    blocks.map(block).collect()
}

#[test]
fn the_chapter_on_services() {
    let (program, system) = (blocks("service.md", "rust"), blocks("service.md", "xml"));
    let root = place::root().expect("the checkout is there");
    // Exactly as printed: `new adder`, both files, `run adder/system.xml`.
    let folder = tempfile::tempdir().expect("a folder can be made");
    let adder = folder.path().join("adder");
    new::create(&adder, &root, new::Language::Rust, new::Kind::One).expect("the folder is new");
    std::fs::write(adder.join("src/main.rs"), &program[0]).expect("it can be written");
    std::fs::write(adder.join("system.xml"), &system[0]).expect("it can be written");
    let options = Options {
        system: adder.join("system.xml"),
        ..Options::default()
    };
    let finished = match run(&options, &Silent) {
        Ok(finished) => finished,
        Err(error) => panic!("{error}"),
    };
    let console = &finished.consoles[0];
    assert_eq!(
        finished.code(),
        0,
        "{:?}\n{console}",
        finished.result.happened()
    );
    for name in ["important", "other", "greedy"] {
        let mark = format!("({name}) on tile ");
        let mut lines = console.lines().filter(|line| line.contains(&mark));
        assert!(
            lines.any(|line| line.ends_with("stopped: exit 0")),
            "{console}"
        );
    }
    let printed = blocks("service.md", "text");
    assert!(console.contains(&printed[0]), "{console}");
}

#[test]
fn the_chapter_on_descriptions() {
    let systems = blocks("description.md", "xml");
    let reports = boot_with(&systems[0], &[], |_| {});
    assert_eq!(reports[0].code, Some(0), "{}", reports[0].console);
    assert_eq!(reports[0].flows().len(), 10);
    // The service and its client, in a system of their own.
    let system = format!(
        "<system name=\"files\" platform=\"tiled-gem5\"><domain name=\"d\">{}</domain></system>",
        systems[1]
    );
    let reports = boot_with(&system, &[], |_| {});
    assert_eq!(reports[0].code, Some(0), "{}", reports[0].console);
    assert_eq!(reports[0].printed("logger"), ["15000 bytes compared"]);
}

#[test]
fn the_chapter_on_programs_in_c() {
    if c_programs::compiler().is_none() {
        println!("skipped: no C compiler for RISC-V; apt-get install gcc-riscv64-unknown-elf");
        return;
    }
    let (programs, system) = (blocks("c-programs.md", "c"), blocks("c-programs.md", "xml"));
    let reports = boot_with(&system[0], &[], |folder| {
        for (name, text) in ["doubler.c", "asker.c"].iter().zip(&programs) {
            std::fs::write(folder.join(name), text).expect("it can be written");
        }
    });
    let report = &reports[0];
    assert_eq!(report.code, Some(0), "{}", report.console);
    let printed = blocks("c-programs.md", "text");
    assert!(report.console.contains(&printed[0]), "{}", report.console);
}

#[test]
fn the_chapters_on_ports_and_flows() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let ran = |name: &str, text: &str| {
        let system = folder.path().join(name);
        std::fs::write(&system, text).expect("it can be written");
        let options = Options {
            system,
            ..Options::default()
        };
        match run(&options, &Silent) {
            Ok(finished) => finished,
            Err(error) => panic!("{error}"),
        }
    };
    let event = ran("event.xml", &blocks("flows.md", "xml")[0]);
    assert_eq!(event.code(), 0, "{:?}", event.result.happened());
    let flow = &event.result.variants[0].flows[0];
    assert!(flow.lost == 0 && flow.samples.len() >= 9, "{flow:?}");
    // What `check` prints.
    let event = load_system(folder.path().join("event.xml"), &LoadOptions::default());
    let event = event.expect("valid");
    let one_shot = event.one_shot.as_ref().expect("it is one");
    let plan = plan(&bounds(one_shot, &event.platform).tasks).expect("it has bounds");
    let flow = plan.constraints.iter().find(|one| one.kind == Kind::Flow);
    let bound = flow.and_then(|flow| flow.bound).expect("a bound");
    assert!((2_000_000..4_000_000).contains(&bound), "{bound} ns");
    if c_programs::compiler().is_none() {
        println!("skipped: no C compiler for RISC-V; apt-get install gcc-riscv64-unknown-elf");
        return;
    }
    let tasks = folder.path().join("tasks.c");
    std::fs::write(tasks, &blocks("ports.md", "c")[0]).expect("it can be written");
    let ports = ran("system.xml", &blocks("ports.md", "xml")[0]);
    assert_eq!(ports.code(), 0, "{:?}", ports.result.happened());
    let console = &ports.consoles[0];
    let of = |text: &str| -> Vec<u64> {
        let mark = format!("core 5: {text} ");
        let lines = console.lines().filter_map(|line| line.strip_prefix(&mark));
        lines
            .map(|number| number.parse().expect("a number"))
            .collect()
    };
    let [readings, positions, alarms] = ["reading", "position", "alarm"].map(of);
    let first = readings[0];
    let all: Vec<u64> = (first..first + readings.len() as u64).collect();
    assert!(readings == all && readings.len() >= 17, "{readings:?}");
    assert!((4..=6).contains(&positions.len()), "{positions:?}");
    assert_eq!(alarms, [4, 8, 12, 16, 20]);
}
