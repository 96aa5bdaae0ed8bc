//! Tests of plans as text and as pages: what a user reads, and that no task is missing from a picture.

use crate::book::Book;
use crate::placement::Placement;
use crate::plan::{judged, repairs};
use crate::plan_page;
use crate::table::{nobody, placement_grid};
use bulkhead_analysis::plan::repair::{Number, Repair};
use bulkhead_analysis::plan::system::complete::runs;
use bulkhead_analysis::plan::{Plan, Unit, plan, repair};
use bulkhead_model::{LoadOptions, catalog, load_system_text, load_tasks, load_tasks_text};

const FIT: &str = "<task-system name=\"fit\" about=\"Six tasks that do not fit.\">\
    <processors count=\"2\" policy=\"fixed-priority\"/>\
    <task name=\"brake\" period=\"5ms\" deadline=\"3ms\" cost=\"1ms\"/>\
    <task name=\"steering\" period=\"12ms\" cost=\"4ms\"/><task name=\"radar\" period=\"20ms\" cost=\"8ms\"/>\
    <task name=\"camera\" period=\"33ms\" cost=\"17ms\"/><task name=\"planner\" period=\"50ms\" cost=\"21ms\"/>\
    <task name=\"logger\" period=\"100ms\" cost=\"12ms\"/></task-system>";

fn planned(text: &str) -> (Plan, Vec<Repair>) {
    let system = load_tasks_text("case", text, &LoadOptions::default()).expect("valid");
    let plan = plan(&system).expect("covered");
    let found = repair::repairs(&system, &plan);
    (plan, found)
}

/// The words of a page, one element per line, without pictures and style; and the words of each picture.
fn words(page: &str) -> (String, Vec<String>) {
    let mut rest = page.split_once("</style>").expect("a style").1;
    let (mut text, mut pictures) = (String::new(), Vec::new());
    while let Some((before, after)) = rest.split_once("<svg ") {
        let (picture, after) = after.split_once("</svg>").expect("closed");
        text.push_str(before);
        text.push_str("<p>[picture]</p>");
        pictures.push(plain(picture));
        rest = after;
    }
    text.push_str(rest);
    (plain(&text), pictures)
}

fn plain(markup: &str) -> String {
    let blocks = [
        "</p>",
        "</h1>",
        "</h2>",
        "</h3>",
        "</li>",
        "</tr>",
        "</summary>",
        "</text>",
    ];
    let broken = blocks
        .iter()
        .fold(markup.replace('\n', " "), |text, block| {
            text.replace(block, "\n")
        });
    let cells = broken.replace("</td>", " | ").replace("</th>", " | ");
    let (mut out, mut inside) = (String::new(), false);
    for letter in cells.chars() {
        match letter {
            '<' => inside = true,
            '>' => inside = false,
            letter if !inside => out.push(letter),
            _ => {}
        }
    }
    let lines = out.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn the_page_of_a_failing_system_reads_well() {
    let (plan, found) = planned(FIT);
    let page = plan_page::tasks(&plan, Some(&found), &Book::default()).expect("draws");
    let (text, pictures) = words(&page);
    insta::assert_snapshot!(text);
    for expected in [
        "planner",
        "logger",
        "29.00 ms of 33.00 ms",
        "57.00 ms seen of 50.00 ms",
        "no bound: processor 1 has a load of 102 % of 100 %",
        "time from arrival in ms",
    ] {
        assert!(
            pictures[0].contains(expected),
            "{expected}: {}",
            pictures[0]
        );
    }
    // Planner is on the second processor, and runs after its deadline.
    let late = &pictures[2];
    assert!(
        late.contains("runs after its deadline") && late.contains("planner"),
        "{late}"
    );
}

#[test]
fn every_task_of_the_catalog_is_in_the_pictures() {
    for (name, _) in catalog::TASKS {
        let system = load_tasks(name, &LoadOptions::default()).expect("valid");
        let plan = plan(&system).expect("covered");
        let page = plan_page::tasks(&plan, None, &Book::default()).expect("draws");
        for loading in ["src=", "href=", "<script", "<link", "url("] {
            assert!(!page.contains(loading), "{name} loads something: {loading}");
        }
        let (_, pictures) = words(&page);
        for task in &plan.system.tasks {
            let judged = plan.constraints.iter().any(|c| c.subject == task.name);
            let lane = pictures[0].lines().any(|line| line == task.name);
            assert!(lane || !judged, "{name}: {}", task.name);
        }
    }
}

/// A long name is shortened in a picture and complete in the table, spans over six decades get a logarithmic axis, and a long
/// schedule is truncated.
#[test]
fn names_and_odd_systems_are_drawn() {
    let (plan, _) = planned(
        "<task-system name=\"odd\"><processors count=\"3\" policy=\"global-edf\"/>\
         <task name=\"a-name-longer-than-most-lanes\" period=\"1s\" cost=\"1us\"/>\
         <task name=\"b\" period=\"4us\" cost=\"3us\"/></task-system>",
    );
    let page = plan_page::tasks(&plan, None, &Book::default()).expect("draws");
    let (text, pictures) = words(&page);
    assert!(
        pictures[0].contains("a-name-longer-than-most…"),
        "{}",
        pictures[0]
    );
    assert!(pictures[0].contains("(logarithmic)"), "{}", pictures[0]);
    assert!(text.contains("Cut off: "), "{text}");
}

#[test]
fn the_page_of_a_chip_shows_each_variant() {
    let text = "<system name=\"loop\" platform=\"tiled-gem5\"><domain name=\"control\" criticality=\"A\">\
        <app name=\"sensor\" program=\"control/sensor\"><task period=\"1ms\" cost=\"5us\" accesses=\"40\"/><sgate name=\"out\" to=\"actuator\"/></app>\
        <app name=\"actuator\" program=\"control/actuator\"><task period=\"1ms\" cost=\"5us\" accesses=\"40\"/><rgate name=\"in\"/></app>\
        </domain><domain name=\"logger\"><app name=\"hog\" program=\"adversary/memcpy\"><limit noc=\"300MiB/s\" burst=\"4KiB\"/></app></domain>\
        <flow name=\"loop\" from=\"sensor\" to=\"actuator\" deadline=\"150us\"/></system>";
    let system = load_system_text("loop.xml", text, &LoadOptions::default()).expect("valid");
    let runs = runs(&system).expect("covered");
    let placement = Placement::of(&system);
    let placed = plan_page::Section {
        title: "Placement",
        grid: placement_grid(&placement),
        note: nobody(&placement),
    };
    let page = plan_page::system(&system.name, &runs, &[], &[], &[placed], &Book::default());
    let (text, pictures) = words(&page.expect("draws"));
    insta::assert_snapshot!(text);
    assert!(pictures.iter().any(|picture| picture.contains("sensor")));
}

/// One repair of each kind, eight at a time, as many as are shown.
#[test]
fn each_number_has_its_words() {
    let time = |number, subject: &str| Repair {
        number,
        subject: subject.to_owned(),
        from: 3_000_000,
        to: 2_000_000,
        unit: Unit::Nanoseconds,
        relative: 333_334,
        with_deadline: false,
        anew: false,
    };
    let more = |number, subject: &str, unit| Repair {
        from: 2,
        to: 3,
        unit,
        relative: 500_000,
        ..time(number, subject)
    };
    let all = [
        time(Number::Cost, "radar"),
        time(Number::Estimate, "radar at level C"),
        Repair {
            with_deadline: true,
            ..time(Number::Period, "radar")
        },
        time(Number::Deadline, "radar"),
        time(Number::Tardiness, "radar"),
        time(Number::Jitter, "radar"),
        time(Number::Sections, "radar"),
        time(Number::Load, "radar"),
        time(Number::Unload, "radar"),
        time(Number::Slot, "processor 1"),
        time(Number::Overhead, "schedule"),
        time(Number::ChannelDeadline, "frames"),
        time(Number::FlowDeadline, "loop"),
        Repair {
            from: 1_000_000,
            to: 961_165,
            unit: Unit::Millionths,
            relative: 38_835,
            ..time(Number::AllCosts, "")
        },
        Repair {
            with_deadline: false,
            anew: true,
            ..more(Number::Processors, "", Unit::Count)
        },
        more(Number::QueueSlots, "frames", Unit::Count),
        more(Number::Buffer, "camera", Unit::Bytes),
        more(Number::Bandwidth, "memory", Unit::BytesPerSecond),
        more(Number::Ways, "last-level cache", Unit::Count),
        more(Number::Colours, "last-level cache", Unit::Count),
        more(Number::Banks, "memory", Unit::Count),
        more(Number::Accesses, "memory", Unit::Count),
    ];
    let text: String = all.chunks(8).map(repairs).collect();
    insta::assert_snapshot!(text);
}

#[test]
fn a_verdict_with_repairs_reads_well() {
    let (plan, found) = planned(
        "<task-system name=\"slots\"><processors count=\"2\" policy=\"three-phase\"/><tdma overhead=\"1us\"/>\
         <task name=\"a\" period=\"400us\" deadline=\"30us\" cost=\"20us\" load=\"4us\" unload=\"4us\" jitter=\"2us\" core=\"0\"/>\
         <task name=\"b\" period=\"400us\" cost=\"20us\" load=\"4us\" core=\"1\"/></task-system>",
    );
    insta::assert_snapshot!(judged(&plan, &found));
}
