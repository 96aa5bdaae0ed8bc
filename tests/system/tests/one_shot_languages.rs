//! Tasks of the one-shot RTOS in several languages: the same descriptions give the same jobs, and new folders run.

use crate::one_shot_ada::has_gnat;
use crate::one_shot_clocks::ended;
use crate::one_shot_systems::{folder_with, holds, run};
use bulkhead_abi::one_shot::marker;
use bulkhead_model::{LoadOptions, load_system};
use bulkhead_report::result::IncidentKind;
use bulkhead_runner::new;
use bulkhead_runner::oneshot::OneShot;
use bulkhead_runner::oneshot::footprint::Footprint;
use bulkhead_runner::paradigm::Paradigm as _;
use bulkhead_runner::programs::Library;
use std::fmt::Write;
use std::path::Path;

#[test]
fn the_papers_producer_and_consumer_in_c() {
    let finished = run("oneshot/pair".as_ref(), &[]).expect("it runs");
    holds(&finished.result);
    let variant = &finished.result.variants[0];
    let flow = &variant.flows[0];
    assert_eq!((flow.lost, flow.misses), (0, 0));
    let numbers: Vec<u64> = flow.samples.iter().map(|sample| sample.number).collect();
    assert!(numbers.len() >= 18, "{numbers:?}");
    let told: Vec<String> = numbers
        .iter()
        .map(|one| format!("core 5: item {one}"))
        .collect();
    let lines: Vec<&str> = finished.consoles[0].lines().collect();
    assert_eq!(lines[..told.len()], told);
}

/// A timing event in C sets itself and a suspension object, every third tick, until it is cancelled.
#[test]
fn a_timing_event_in_c_releases_a_task() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("timing.xml");
    let text = r#"<system name="timing" paradigm="one-shot" platform="epiphany3" duration="40ms">
        <task name="told" program="one-shot/timing.c::told" core="1" priority="1" period="1ms" cost="10us" handlers="1us" handlers-apart="3ms"/>
        <task name="other" program="one-shot/pair.c::other" core="1" priority="2" period="5ms" cost="210us"/></system>"#;
    std::fs::write(&file, text).expect("it is written");
    let finished = run(&file, &[]).expect("it runs");
    holds(&finished.result);
    let lines = finished.consoles[0].lines();
    let ticks: Vec<u64> = lines
        .filter_map(|line| line.strip_prefix("core 1: told at ")?.parse().ok())
        .collect();
    assert_eq!(ticks.len(), 6, "{}", finished.consoles[0]);
    assert!(
        ticks.windows(2).all(|two| two[1] == two[0] + 3),
        "{ticks:?}"
    );
    assert!(finished.consoles[0].contains("core 1: cancelled, once"));
}

/// Sporadic events in C: a job at most every fourth tick, one event is kept meanwhile, and the others are lost.
#[test]
fn sporadic_events_in_c_keep_their_distance() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("events.xml");
    let text = r#"<system name="events" paradigm="one-shot" platform="epiphany3" duration="40ms">
        <task name="heard" program="one-shot/events.c::heard" core="1" priority="1" period="1ms" cost="10us"/></system>"#;
    std::fs::write(&file, text).expect("it is written");
    let finished = run(&file, &[]).expect("it runs");
    let ticks: Vec<u64> = finished.consoles[0]
        .lines()
        .filter_map(|line| line.strip_prefix("core 1: heard at ")?.parse().ok())
        .collect();
    assert_eq!(ticks.len(), 6, "{}", finished.consoles[0]);
    assert!(
        ticks.windows(2).all(|two| two[1] == two[0] + 4),
        "{ticks:?}"
    );
    let (before, after) = finished.consoles[0]
        .split_once("core 1: lost ")
        .expect("it tells");
    // Of sixteen events until then, five released jobs.
    assert!(
        before.contains("heard at") && after.starts_with("11\n"),
        "{}",
        finished.consoles[0]
    );
}

/// A protected object with three entries, of which one has a parameter and one opens for nobody but who waits for an empty buffer.
#[test]
fn a_protected_buffer_in_each_language_serves_in_the_same_order() {
    let run_of = |program: &str, [getter, putter, watcher]: [&str; 3]| {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("buffer.xml");
        let text = format!(
            r#"<system name="buffer" paradigm="one-shot" platform="epiphany3" duration="100ms">
              <task name="getter" program="{program}::{getter}" core="2" priority="1" period="3ms" cost="20us"/>
              <task name="putter" program="{program}::{putter}" core="2" priority="2" period="14ms" cost="20us"/>
              <task name="watcher" program="{program}::{watcher}" core="2" priority="3" period="7ms" cost="20us"/></system>"#
        );
        std::fs::write(&file, text).expect("it is written");
        let finished = run(&file, &[]).expect("it runs");
        finished.consoles[0].clone()
    };
    let types = ["Getter", "Putter", "Watcher"];
    let rust = run_of("one-shot::buffer", types);
    assert!(
        rust.contains("core 2: got 3\n") && rust.contains("core 2: is empty\n"),
        "{rust}"
    );
    assert!(
        !rust.contains("stopped") && !rust.contains("refused"),
        "{rust}"
    );
    assert_eq!(
        rust,
        run_of("one-shot/buffer.c", ["getter", "putter", "watcher"])
    );
    if has_gnat() {
        // In Ada, a call of an open entry does not end the job, so tasks that become ready wait for longer. What each task says is the same.
        let ada = run_of("one-shot/buffer.adb", types);
        assert!(!ada.contains("stopped"), "{ada}");
        for word in [": got ", ": puts "] {
            let of = |text: &str| -> Vec<String> {
                let lines = text.lines().filter(|line| line.contains(word));
                lines.map(str::to_owned).collect()
            };
            let (rust, ada) = (of(&rust), of(&ada));
            let both = rust.len().min(ada.len());
            assert!(
                both >= 10 && rust.len().abs_diff(ada.len()) <= 3,
                "{rust:?} {ada:?}"
            );
            assert_eq!(rust[..both], ada[..both]);
        }
    }
}

/// Six tasks on a core, and two that are the same on another one. In Ada, `#` is the number of an instance on its core.
fn tellers(program: &str) -> String {
    let mut text = String::from(
        r#"<system name="tellers" paradigm="one-shot" platform="epiphany3" duration="70ms">"#,
    );
    let six = [5, 7, 10, 14, 20, 35].map(|period| (0, period));
    for (number, (core, period)) in six.into_iter().chain([(3, 6), (3, 9)]).enumerate() {
        let program = program.replace('#', &(number % 6).to_string());
        let _ = write!(
            text,
            r#"<task name="t{number}" program="{program}" core="{core}" priority="{period}" period="{period}ms" cost="{}us"/>"#,
            43 * period
        );
    }
    text + "</system>"
}

/// What the kernels of a run did, core by core.
#[derive(Debug, PartialEq, Eq)]
struct Order {
    /// The core, the tick of its kernel, and the set of tasks that it released then.
    releases: Vec<(u16, u64, u64)>,
    /// The core, and the task whose job began.
    begun: Vec<(u16, u64)>,
}

/// The tick of the kernel in which each core released its tasks, and the order of the jobs on each core.
fn releases_and_jobs(file: &Path) -> Order {
    let system = load_system(file, &LoadOptions::default()).expect("valid");
    let root = bulkhead_runner::place::root().expect("a checkout");
    let library = Library::new(&root, file.parent().expect("a folder")).expect("cargo works");
    let programs = OneShot.build(&library, &[&system]).expect("it builds");
    let image = OneShot.image(&system, &programs).expect("it fits");
    let tick = system.platform.ticks_per_second() / 1000;
    let markers = bulkhead_runner::observed::markers(&ended(&system, &image).0);
    let of_kind = |kind| markers.iter().filter(move |one| one.kind == kind);
    let releases = of_kind(marker::RELEASE).map(|one| (one.tile, one.at / tick, one.value));
    let jobs = of_kind(marker::BEGIN).map(|one| (one.tile, one.value));
    let (mut releases, mut jobs): (Vec<_>, Vec<_>) = (releases.collect(), jobs.collect());
    // Only the order on each core is a result.
    releases.sort_by_key(|one| one.0);
    jobs.sort_by_key(|one| one.0);
    Order {
        releases,
        begun: jobs,
    }
}

/// The lines, numbers of jobs, ticks of all releases, and the order in which jobs begin on each core.
#[test]
fn the_same_tasks_in_each_language_run_in_the_same_order() {
    let run_of = |program: &str| {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("tellers.xml");
        std::fs::write(&file, tellers(program)).expect("it is written");
        let finished = run(&file, &[]).expect("it runs");
        holds(&finished.result);
        let variant = &finished.result.variants[0];
        let jobs: Vec<u64> = variant.tasks.iter().map(|task| task.jobs).collect();
        let seen = releases_and_jobs(&file);
        (finished.consoles[0].clone(), jobs, seen)
    };
    let rust = run_of("one-shot::pipeline::Teller");
    assert_eq!(rust, run_of("one-shot/pair.c::teller"));
    if has_gnat() {
        assert_eq!(rust, run_of("one-shot/tellers.adb::T#.Teller"));
    }
    assert_eq!(rust.1, [14, 10, 7, 5, 4, 2, 12, 8]);
    let jobs: u64 = rust.1.iter().sum();
    assert_eq!(rust.0.lines().count() as u64, jobs);
    let Order { releases, begun } = rust.2;
    assert!(
        begun.len() as u64 >= jobs && releases.len() > 30,
        "{releases:?}"
    );
}

#[test]
fn new_folders_run_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = bulkhead_runner::place::root().expect("the checkout is there");
    let mut languages = vec![("in-rust", new::Language::Rust), ("in-c", new::Language::C)];
    if has_gnat() {
        languages.push(("in-ada", new::Language::Ada));
    }
    for (name, language) in languages {
        let own = folder.path().join(name);
        new::create(&own, &root, language, new::Kind::OneShot).expect("the folder is new");
        let finished = run(&own.join("system.xml"), &[]).expect("it runs");
        holds(&finished.result);
        let flow = &finished.result.variants[0].flows[0];
        assert!(flow.latency.count >= 18 && flow.lost == 0, "{flow:?}");
        assert!(finished.consoles[0].starts_with("core 5: got 1\n"));
    }
}

/// What the compiler cannot see stops the task at its job's end, and only it.
#[test]
fn a_job_that_ends_with_nothing_an_operation_made_stops_its_task() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("it is written");
        path
    };
    write(
        "forged.c",
        "#include \"bulkhead_oneshot.h\"\n\
         struct none { int none; };\n\
         static bh_done forge(struct none *self, bh_job job) { (void)self; (void)job; return (bh_done){0, 0}; }\n\
         BH_TASK(forged, struct none, forge, {0})\n",
    );
    let system = write(
        "system.xml",
        r#"<system name="forged" paradigm="one-shot" platform="epiphany3" duration="10ms">
          <task name="forged" program="forged.c::forged" core="0" priority="1" period="1ms" cost="10us"/>
          <task name="honest" program="one-shot/pair.c::teller" core="0" priority="2" period="1ms" cost="50us"/>
        </system>"#,
    );
    let finished = run(&system, &[]).expect("it runs");
    let variant = &finished.result.variants[0];
    let incidents: Vec<_> = variant
        .incidents
        .iter()
        .map(|one| (one.kind, &*one.application, &*one.what))
        .collect();
    let what = "stopped: task 0, its job returned what no operation made";
    assert_eq!(incidents, [(IncidentKind::Crash, "forged", what)]);
    assert_eq!(variant.tasks[1].jobs, 10);
}

/// Names that no part of an image defines are refused with their place; functions that compilers call are there.
#[test]
fn what_an_image_lacks_is_said_and_what_compilers_need_is_there() {
    let source = |job: &str| {
        format!(
            "#include \"bulkhead_oneshot.h\"\nextern uint64_t nowhere(void);\n\
             struct told {{ volatile uint64_t number; bh_releases releases; }};\n\
             static bh_done tell(struct told *self, bh_job job)\n{{\n    bh_print_number(\"it is \", {job});\n    \
             return bh_next(&self->releases, job);\n}}\nBH_TASK(told, struct told, tell, {{.number = 8}})\n"
        )
    };
    let system = r#"<system name="told" paradigm="one-shot" platform="epiphany3" duration="3ms">
        <task name="told" program="told.c::told" core="0" priority="1" period="1ms" cost="10us"/></system>"#;
    let run_with = |job: &str| {
        let folder = folder_with(&[("told.c", &source(job)), ("told.xml", system)]);
        run(&folder.path().join("told.xml"), &[])
    };
    let refused = run_with("nowhere()").err().expect("it is refused");
    let refused = refused.to_string();
    for part in [
        "undefined symbol: nowhere\n  referenced by told.c:",
        "help: an image has the kernel, the files of its core's tasks",
    ] {
        assert!(refused.contains(part), "{refused}");
    }
    // The chip has no instruction for this.
    let finished = run_with("(uint64_t)__builtin_clzll(self->number)").expect("it runs");
    let console = &finished.consoles[0];
    assert!(console.contains("core 0: it is 60\n"), "{console}");
}

/// A trap is told with its task, and with function, file and line of the user's source.
#[test]
fn a_trap_of_a_task_is_told_with_its_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("it is written");
        path
    };
    write(
        "wild.c",
        "#include \"bulkhead_oneshot.h\"\n\
         struct wild { volatile int *at; bh_releases releases; };\n\
         static bh_done poke(struct wild *self, bh_job job)\n\
         {\n\
             *self->at = 1;\n\
             return bh_next(&self->releases, job);\n\
         }\n\
         BH_TASK(wild, struct wild, poke, {.at = (volatile int *)0x40000000})\n",
    );
    let system = write(
        "system.xml",
        r#"<system name="wild" paradigm="one-shot" platform="epiphany3" duration="10ms">
          <task name="wild" program="wild.c::wild" core="7" priority="1" period="1ms" cost="10us"/>
          <task name="honest" program="one-shot/pair.c::teller" core="7" priority="2" period="1ms" cost="50us"/>
        </system>"#,
    );
    let finished = run(&system, &[]).expect("it runs");
    let variant = &finished.result.variants[0];
    let [incident] = &variant.incidents[..] else {
        panic!("{:?}", variant.incidents)
    };
    assert_eq!((incident.tile, &*incident.application), (7, "wild"));
    let what = &incident.what;
    assert!(
        what.starts_with("stopped: task 0, cause 7 at 0x")
            && what.contains(", value 0x0000000040000000: store access fault in poke "),
        "{what}"
    );
    assert!(what.contains("wild.c:5"), "{what}");
    assert_eq!(variant.tasks[1].jobs, 10);
}

/// A folder with a file in C and a description of it.
fn in_c(file: &str, source: &str, description: &str) -> (tempfile::TempDir, std::path::PathBuf) {
    let source = format!("#include \"bulkhead_oneshot.h\"\n{source}");
    let folder = folder_with(&[(file, &source), ("system.xml", description)]);
    let system = folder.path().join("system.xml");
    (folder, system)
}

/// A job over its budget is told with the place at which a tick found it.
#[test]
fn a_job_over_its_budget_is_told_with_the_line_that_it_had_reached() {
    let (_folder, system) = in_c(
        "over.c",
        "struct over { bh_releases releases; };\n\
         static __attribute__((noinline)) void spin(uint64_t cycles)\n\
         {\n\
             uint64_t begin = bh_cycles();\n\
             while (bh_cycles() - begin < cycles) __asm__ volatile(\"\");\n\
         }\n\
         static bh_done go(struct over *self, bh_job job)\n\
         {\n\
             spin(1500000);\n\
             return bh_next(&self->releases, job);\n\
         }\n\
         BH_TASK(over, struct over, go, {0})\n",
        r#"<system name="over" paradigm="one-shot" platform="epiphany3" duration="12ms">
          <task name="over" program="over.c::over" core="7" priority="1" period="4ms" cost="50us"/></system>"#,
    );
    let finished = run(&system, &[]).expect("it runs");
    let variant = &finished.result.variants[0];
    let [incident] = &variant.incidents[..] else {
        panic!("{:?}", variant.incidents)
    };
    assert_eq!((incident.tile, &*incident.application), (7, "over"));
    let what = &incident.what;
    assert!(
        what.starts_with("over its budget: ") && what.contains("; at a tick it was in "),
        "{what}"
    );
    // In `spin`, or in the function that reads the clock for it.
    assert!(
        what.contains("over.c:6") || what.contains("bh_cycles"),
        "{what}"
    );
    assert!(
        finished.consoles[0].contains("core 7: over its budget: task 0 at 0x00000000800"),
        "{}",
        finished.consoles[0]
    );
}

/// A reader that dies closes its ports: whoever writes them learns it at once, on another core, too, and goes on.
#[test]
fn whoever_writes_to_a_dead_reader_is_told() {
    let (_folder, system) = in_c(
        "dies.c",
        "struct writer { bh_output output; bh_releases releases; };\n\
         static bh_done send(struct writer *self, bh_job job)\n\
         {\n\
             uint64_t item = bh_now();\n\
             int result = bh_put(&self->output, &item, sizeof item);\n\
             bh_print(result == BH_CLOSED ? \"closed\" : result == 1 ? \"sent\" : \"not sent\");\n\
             return bh_next(&self->releases, job);\n\
         }\n\
         BH_TASK(writer, struct writer, send, {.output = BH_OUTPUT(0)})\n\
         struct reader { bh_input input; uint64_t items; volatile int *at; bh_releases releases; };\n\
         static bh_done read(struct reader *self, bh_job job)\n\
         {\n\
             uint64_t item;\n\
             if (bh_take(&self->input, &item, sizeof item) > 0)\n\
                 self->items += 1;\n\
             if (self->items == 3)\n\
                 *self->at = 1;\n\
             return bh_next(&self->releases, job);\n\
         }\n\
         BH_TASK(reader, struct reader, read, {.input = BH_INPUT(0), .at = (volatile int *)0x40000000})\n",
        r#"<system name="dies" paradigm="one-shot" platform="epiphany3" duration="40ms">
          <task name="writer" program="dies.c::writer" core="2" priority="1" period="4ms" cost="20us"/>
          <task name="reader" program="dies.c::reader" core="7" priority="1" period="1ms" cost="20us"/>
          <task name="honest" program="one-shot/pair.c::teller" core="7" priority="2" period="2ms" cost="100us"/>
          <channel name="items" from="writer" to="reader" size="8B"/></system>"#,
    );
    let finished = run(&system, &[]).expect("it runs");
    let said: Vec<&str> = finished.consoles[0]
        .lines()
        .filter_map(|line| line.strip_prefix("core 2: "))
        .collect();
    let sent = said.iter().filter(|one| **one == "sent").count();
    let closed = said.iter().filter(|one| **one == "closed").count();
    assert_eq!(sent, 3, "{said:?}");
    assert!(
        closed >= 5
            && said[said.len() - closed..]
                .iter()
                .all(|one| *one == "closed"),
        "{said:?}"
    );
    let variant = &finished.result.variants[0];
    let [incident] = &variant.incidents[..] else {
        panic!("{:?}", variant.incidents)
    };
    assert_eq!((incident.tile, &*incident.application), (7, "reader"));
    let what = &incident.what;
    assert!(
        what.contains("dies.c:18")
            && what.ends_with("; `items` of `writer` on core 2 has no reader any more"),
        "{what}"
    );
    // No write waited for a lock that nobody gives back.
    let write = variant
        .requests
        .iter()
        .find(|one| one.kind == "write")
        .expect("writes");
    assert!(
        write.worst < 1_000 * finished.result.cycle_ticks,
        "{write:?}"
    );
    assert_eq!(variant.tasks[2].jobs, 20);
}

/// Everything that an image allocates except stack and console, in C and Ada; those in Rust are in `one_shot::images_are_small`.
#[test]
fn images_are_small_in_each_language() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = bulkhead_runner::place::root().expect("the checkout is there");
    let library = Library::new(&root, folder.path()).expect("the checkout has programs");
    for (count, ada, paper) in [(6, "six_tasks", 12_686), (2, "two_tasks", 11_678)] {
        for (language, file, task) in [
            ("C", "periodic.c", "p"),
            ("Ada", &*format!("{ada}.adb"), "P"),
        ] {
            if language == "Ada" && !has_gnat() {
                continue;
            }
            let mut text = String::from(
                r#"<system name="small" paradigm="one-shot" platform="epiphany3" duration="10ms">"#,
            );
            for number in 1..=count {
                let worker = if language == "Ada" { ".Worker" } else { "" };
                let _ = write!(
                    text,
                    r#"<task name="t{number}" program="one-shot/{file}::{task}{number}{worker}" core="0" priority="{number}" period="10ms" cost="20us"/>"#
                );
            }
            let path = folder.path().join(format!("{language}-{count}.xml"));
            std::fs::write(&path, text + "</system>").expect("it is written");
            let system = load_system(&path, &LoadOptions::default()).expect("valid");
            let images = OneShot.build(&library, &[&system]).expect("it builds");
            let size = Footprint::of(&images[0].name, &images[0].elf).expect("an image");
            println!(
                "{count} tasks in {language}: text {}, data {}, bss {}: {} bytes; stack {}, ring {}; the paper's {paper}",
                size.text,
                size.data,
                size.bss,
                size.total(),
                size.stack,
                size.ring
            );
            // In C at most half of the paper's; in Ada less than the paper's, since frames are kept and ports are closed.
            let times = if language == "C" { 2 } else { 1 };
            assert!(times * size.total() <= paper, "{language}: {size:?}");
        }
    }
}
