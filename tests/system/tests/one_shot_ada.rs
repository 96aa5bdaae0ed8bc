//! Tasks of the one-shot RTOS in Ada: the language's own tasks, delays and protected objects; and what the build refuses.

use crate::one_shot_systems::{folder_with, holds, run};
use bulkhead_report::result::IncidentKind;
use bulkhead_report::verdict::Judgement::{Held, NotJudged};
use bulkhead_runner::ada_programs;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Whether the machine has GNAT for the chip; says so if it does not.
pub fn has_gnat() -> bool {
    let found = ada_programs::is_there();
    if !found {
        eprintln!(
            "skipped: there is no GNAT 12 for RISC-V (apt-get install gnat-12-riscv64-linux-gnu)"
        );
    }
    found
}

/// A task of a description: name, program, period in ticks; in the order of urgency, on core 0.
fn described(tasks: &[(&str, &str, u64)]) -> String {
    let mut text = String::from(
        r#"<system name="ada" paradigm="one-shot" platform="epiphany3" duration="100ms">"#,
    );
    for (number, (name, program, period)) in tasks.iter().enumerate() {
        let _ = write!(
            text,
            r#"<task name="{name}" program="{program}" core="0" priority="{}" period="{period}ms" cost="20us"/>"#,
            number + 1
        );
    }
    text + "</system>"
}

/// A folder with a unit and a description of its tasks.
fn folder(files: &[(&str, &str)], tasks: &[(&str, &str, u64)]) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("it is written");
        path
    };
    for (name, text) in files {
        write(name, text);
    }
    let system = write("system.xml", &described(tasks));
    (folder, system)
}

/// What is said of a file that does not build.
fn refusal(system: &Path) -> String {
    run(system, &[]).err().expect("it is refused").to_string()
}

const BLINK_SPEC: &str = "package Blink is\n   task Worker;\nend Blink;\n";

/// A unit whose task has these declarations and statements.
fn blink(package: &str, own: &str, statements: &str) -> String {
    format!(
        "with Ada.Real_Time; use Ada.Real_Time;\nwith Bulkhead.Console;\npackage body Blink is\n{package}\n   task body Worker is\n{own}\n   begin\n\
         {statements}\n   end Worker;\nend Blink;\n"
    )
}

const NEXT: &str = "   Next : Time := Clock;\n   Count : Long_Long_Integer := 0;";
const LOOP: &str = "      loop\n         Count := Count + 1;\n         Bulkhead.Console.Put_Line (\"blink \", Count);\n         \
                    Next := Next + Milliseconds (10);\n         delay until Next;\n      end loop;";
const WORKER: [(&str, &str, u64); 1] = [("worker", "blink.adb::Worker", 10)];

#[test]
fn a_task_delays_until_instants() {
    if !has_gnat() {
        return;
    }
    let body = blink(NEXT, "", LOOP);
    let (_folder, system) = folder(&[("blink.ads", BLINK_SPEC), ("blink.adb", &body)], &WORKER);
    let finished = run(&system, &[]).expect("it runs");
    holds(&finished.result);
    let lines: Vec<&str> = finished.consoles[0].lines().collect();
    let expected: Vec<String> = (1..=10).map(|n| format!("core 0: blink {n}")).collect();
    assert_eq!(lines, expected);
    assert_eq!(finished.result.variants[0].tasks[0].jobs, 10);
}

/// The line of the source that needs what is gone, whatever the compiler made of it.
#[test]
fn a_task_that_needs_its_stack_behind_a_delay_is_refused() {
    if !has_gnat() {
        return;
    }
    let local = blink("", NEXT, LOOP);
    let array = blink(
        NEXT,
        "      Seen : array (1 .. 40) of Long_Long_Integer := (others => 0) with Volatile;",
        &LOOP.replace(
            "Count := Count + 1",
            "Seen (1) := Seen (1) + 1; Count := Seen (1)",
        ),
    );
    let length = blink(
        NEXT,
        "",
        &LOOP.replace(
            "Count := Count + 1;",
            "declare\n            Text : String (1 .. Integer (Count + 1)) := (others => 'x');\n         begin\n            \
             Bulkhead.Console.Put_Line (Text);\n         end;\n         Count := Count + 1;",
        ),
    );
    let procedure = blink(
        &format!(
            "{NEXT}\n   procedure Pause with No_Inline;\n   procedure Pause is\n   begin\n      Next := Next + Milliseconds (10);\n      delay until Next;\n   end Pause;"
        ),
        "",
        "      loop\n         Pause;\n         Count := Count + 1;\n         Bulkhead.Console.Put_Line (\"n\", Count);\n      end loop;",
    );
    for (case, line, what) in [
        (
            &local,
            "blink.adb:",
            "this needs a local value from before the task waited",
        ),
        (&array, "blink.adb:", "local v"),
        (
            &length,
            "blink.adb:",
            "a local variable whose length is known only at run time",
        ),
        (
            &procedure,
            "blink.adb:10: ",
            "a procedure waits here and returns later",
        ),
    ] {
        let (_folder, system) = folder(&[("blink.ads", BLINK_SPEC), ("blink.adb", case)], &WORKER);
        let said = refusal(&system);
        assert!(
            said.contains(line) && said.contains(what),
            "{what}: {said}\n{case}"
        );
    }
}

/// A local value that a job writes before it reads it is none that survives.
#[test]
fn local_values_within_a_job_are_fine() {
    if !has_gnat() {
        return;
    }
    let body = blink(
        NEXT,
        "      Twice : Long_Long_Integer;",
        &LOOP.replace(
            "Bulkhead.Console.Put_Line (\"blink \", Count);",
            "Twice := 2 * Count;\n         Bulkhead.Console.Put_Line (\"before \", Twice);\n         Bulkhead.Console.Put_Line (\"after \", Twice - Count);",
        ),
    );
    let (_folder, system) = folder(&[("blink.ads", BLINK_SPEC), ("blink.adb", &body)], &WORKER);
    let finished = run(&system, &[]).expect("it runs");
    holds(&finished.result);
    assert!(
        finished.consoles[0].starts_with("core 0: before 2\ncore 0: after 1\ncore 0: before 4\n")
    );
}

#[test]
fn an_exception_stops_its_task_with_file_and_line() {
    if !has_gnat() {
        return;
    }
    let body = blink(
        NEXT,
        "",
        &LOOP.replace(
            "Count + 1;",
            "Count + 1;\n         if Count = 3 then raise Program_Error; end if;",
        ),
    );
    let (_folder, system) = folder(&[("blink.ads", BLINK_SPEC), ("blink.adb", &body)], &WORKER);
    let finished = run(&system, &[]).expect("it runs");
    let incidents: Vec<_> = finished.result.variants[0]
        .incidents
        .iter()
        .map(|one| (one.kind, &*one.what))
        .collect();
    assert_eq!(
        incidents,
        [(
            IncidentKind::Crash,
            "stopped: task 0, exception at blink.adb:11"
        )]
    );
}

/// A protected object with an entry, and a suspension object: the more urgent task waits first at the one, then at the other.
#[test]
fn tasks_wait_at_entries_and_suspension_objects() {
    if !has_gnat() {
        return;
    }
    let spec = "package Guard is\n   task Worker with Priority => 5;\n   task Giver with Priority => 4;\nend Guard;\n";
    let body = include_str!("data/guard.adb.in");
    let tasks = [
        ("worker", "guard.adb::Worker", 10),
        ("giver", "guard.adb::Giver", 10),
    ];
    let files = [("guard.ads", spec), ("guard.adb", body)];
    let (_one, system) = folder(&files, &tasks);
    let finished = run(&system, &[]).expect("it runs");
    let variant = &finished.result.variants[0];
    assert_eq!(variant.incidents, []);
    // It waits twice in each period, so it has two jobs in each, which no bound counts. Everything else holds.
    let twice = "a job of `worker` was released in the same tick as the one before it, and bounds count one job in 10ms";
    for promise in finished.result.verdict.promises() {
        let because = promise.because.as_deref();
        match promise.what.contains("a bound") {
            true => assert_eq!(
                (promise.judgement, because),
                (NotJudged, Some(twice)),
                "{promise:?}"
            ),
            false => assert_eq!(promise.judgement, Held, "{promise:?}"),
        }
    }
    let late: Vec<u64> = variant.tasks.iter().map(|task| task.misses).collect();
    assert_eq!(late, [0, 0]);
    let lines: Vec<&str> = finished.consoles[0].lines().collect();
    let round = |n: u64| [format!("core 0: gives {n}"), format!("core 0: got {n}")];
    let expected: Vec<String> = (1..=10).flat_map(round).collect();
    assert_eq!(lines, expected);
    // The description and the source disagree about urgency.
    let (_two, system) = folder(&files, &[tasks[1], tasks[0]]);
    let said = refusal(&system);
    assert!(
        said.starts_with(
            "guard.adb::Worker has the priority 5 in its source and guard.adb::Giver has 4, but the description has Giver as the more urgent one"
        ),
        "{said}"
    );
}

#[test]
fn a_leaking_address_an_entry_in_a_procedure_and_a_task_twice_are_refused() {
    if !has_gnat() {
        return;
    }
    let spec = "package Guard is\n   task Worker;\nend Guard;\n";
    let body = |entry: &str, call: &str| {
        format!(
            "package body Guard is\n   N : Integer := 0;\n   protected Box is\n      procedure Open;\n      {entry};\n   private\n      Full : Boolean := False;\n   \
             end Box;\n   protected body Box is\n      procedure Open is\n      begin\n         Full := True;\n      end Open;\n      {entry} when Full is\n      \
             begin\n         Full := False;\n      end Get;\n   end Box;\n   task body Worker is\n   begin\n      loop\n         {call};\n         \
             N := N + 1;\n      end loop;\n   end Worker;\nend Guard;\n"
        )
    };
    let tasks = [("worker", "guard.adb::Worker", 10)];
    let fine = body("entry Get", "Box.Get");
    let parameter = body("entry Get (M : out Integer)", "Box.Get (L)").replace(
        "   task body Worker is\n",
        "   task body Worker is\n      L : Integer;\n",
    );
    let parameter = parameter.replace(
        "Full := False;\n      end Get",
        "Full := False; M := 1;\n      end Get",
    );
    // Somebody else could use it while the task waits.
    let leaking = parameter.replace(
        "   begin\n      loop\n",
        "   begin\n      loop\n         Kept := L'Address;\n",
    );
    let leaking = leaking.replace(
        "   N : Integer := 0;\n",
        "   N : Integer := 0;\n   Kept : System.Address with Volatile;\n",
    );
    let leaking = format!("with System;\n{leaking}");
    let (_one, system) = folder(&[("guard.ads", spec), ("guard.adb", &leaking)], &tasks);
    let said = refusal(&system);
    assert!(
        said.contains("error: the address of a local variable leaves a task's body that waits"),
        "{said}"
    );
    let below = parameter
        .replace("Box.Get (L)", "Ask")
        .replace(
            "   task body Worker is\n      L : Integer;\n",
            "   procedure Ask with No_Inline;\n   procedure Ask is\n      L : Integer;\n   begin\n      Box.Get (L);\n   end Ask;\n   task body Worker is\n",
        );
    let (_two, system) = folder(&[("guard.ads", spec), ("guard.adb", &below)], &tasks);
    let said = refusal(&system);
    assert!(
        said.contains("an entry with parameters is called outside of a task's body"),
        "{said}"
    );
    let twice = [tasks[0], ("again", "guard.adb::Worker", 10)];
    let (_three, system) = folder(&[("guard.ads", spec), ("guard.adb", &fine)], &twice);
    assert!(refusal(&system).contains("guard.adb::Worker is on a core twice"));
    let unknown = [("worker", "guard.adb::Other", 10)];
    let (_four, system) = folder(&[("guard.ads", spec), ("guard.adb", &fine)], &unknown);
    assert!(refusal(&system).contains("declares no task Other"));
}

/// The paper's example, over two cores.
#[test]
fn the_papers_producer_and_consumer_in_ada() {
    if !has_gnat() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("pair.xml");
    std::fs::write(
        &file,
        r#"<system name="pair" paradigm="one-shot" platform="epiphany3" duration="200ms">
          <task name="producer" program="one-shot/pair.adb::Producer" core="0" priority="1" period="10ms" cost="10us"/>
          <task name="consumer" program="one-shot/pair.adb::Consumer" core="5" priority="1" period="1ms" cost="10us"/>
          <task name="other" program="one-shot/pair.c::other" core="5" priority="2" period="5ms" cost="210us"/>
          <channel name="items" from="producer" to="consumer" size="16B"/>
          <flow name="item" from="producer" to="consumer" deadline="3ms"/>
        </system>"#,
    )
    .expect("it is written");
    let finished = run(&file, &[]).expect("it runs");
    holds(&finished.result);
    let flow = &finished.result.variants[0].flows[0];
    assert_eq!((flow.lost, flow.misses), (0, 0));
    let told: Vec<String> = flow
        .samples
        .iter()
        .map(|sample| format!("core 5: item {}", sample.number))
        .collect();
    assert!(told.len() >= 18, "{told:?}");
    let lines: Vec<&str> = finished.consoles[0].lines().collect();
    assert_eq!(lines[..told.len()], told);
}

/// Tasks over two cores, told by doorbells, in Ada.
#[test]
fn a_task_in_ada_is_told_by_a_channel() {
    if !has_gnat() {
        return;
    }
    let description = r#"<system name="told" paradigm="one-shot" platform="epiphany3" duration="200ms">
          <task name="sender" program="told.adb::Sender" core="0" priority="1" period="20ms" cost="15us"/>
          <task name="receiver" program="told.adb::Receiver" core="5" priority="1" period="20ms" cost="15us"/>
          <channel name="items" from="sender" to="receiver" size="8B" notify="true"/>
          <flow name="item" from="sender" to="receiver" deadline="3ms"/>
        </system>"#;
    let spec = "package Told is\n   task Sender;\n   task Receiver;\nend Told;\n";
    let folder = folder_with(&[
        ("told.ads", spec),
        ("told.adb", include_str!("data/told.adb.in")),
        ("system.xml", description),
    ]);
    let system = folder.path().join("system.xml");
    let finished = run(&system, &[]).expect("it runs");
    holds(&finished.result);
    let variant = &finished.result.variants[0];
    let flow = &variant.flows[0];
    assert!(flow.lost == 0 && flow.latency.count >= 8, "{flow:?}");
    // A polling reader would have waited for a tick of 1 ms.
    let tenth = finished.result.ticks_per_second / 10_000;
    assert!(
        flow.samples.iter().all(|one| one.latency < tenth),
        "{flow:?}"
    );
    assert!(variant.tasks[1].jobs <= 11, "{:?}", variant.tasks[1]);
}

/// A protected operation that calls its own object from outside (directly, from a function, over another object, or in the body of an entry that it serves)
/// stops its task. Tasks that use such an object afterwards, and nested calls of other objects, go on with interrupts allowed.
#[test]
fn a_protected_operation_that_calls_its_own_object_is_told() {
    if !has_gnat() {
        return;
    }
    let spec = "package Nested is\n   task Caller;\n   task Reader;\n   task Chain;\n   task Waiter;\n   task Opener;\n   task Other;\nend Nested;\n";
    let body = include_str!("data/nested.adb.in");
    let tasks = ["Caller", "Reader", "Chain", "Waiter", "Opener", "Other"]
        .map(|name| (name.to_lowercase(), format!("nested.adb::{name}")));
    let tasks: Vec<(&str, &str, u64)> = tasks
        .iter()
        .map(|(name, program)| (&**name, &**program, 10))
        .collect();
    let (folder, system) = folder(&[("nested.ads", spec), ("nested.adb", body)], &tasks);
    // In an entry's body, such a call looks like a recursion, so the build refuses it unless the stack is stated.
    let said = refusal(&system);
    assert!(
        said.contains("a stack without a bound: recursion:") && said.contains("nested__c__get"),
        "{said}"
    );
    let stated = described(&tasks).replace("cost=\"20us\"", "cost=\"3ms\" stack=\"1KiB\"");
    let stated_system = folder.path().join("stated.xml");
    std::fs::write(&stated_system, stated).expect("it is written");
    let finished = run(&stated_system, &[]).expect("it runs");
    let line = |of: &str| {
        let before = body.split(of).next().expect("a text");
        format!("nested.adb:{}", before.lines().count() + 1)
    };
    let own = "      procedure Add is\n      begin\n         Count := Count + 1;\n      end Add;\n      function";
    let a = "      procedure Add is\n      begin\n         Count := Count + 1;\n         B.Add;";
    let c = "      procedure Add is\n      begin\n         Count := Count + 1;\n      end Add;\n      entry Get";
    let mut told: Vec<(&str, String)> = Vec::new();
    for one in &finished.result.variants[0].incidents {
        assert_eq!(one.kind, IncidentKind::Crash, "{one:?}");
        assert!(
            one.what.contains(", cause 25 at 0x")
                && one
                    .what
                    .contains("a protected operation calls its own object"),
            "{one:?}"
        );
        let place = &one.what[one.what.find("nested.adb:").expect("a line")..];
        let end = place.find(|one: char| one == ',' || one.is_whitespace());
        let place = &place[..end.unwrap_or(place.len())];
        told.push((&one.application, place.to_owned()));
    }
    told.sort();
    let expected = [
        ("caller", line(own)),
        ("chain", line(a)),
        ("opener", line(c)),
        ("reader", line(own)),
    ];
    assert_eq!(told, expected);
    let console = &finished.consoles[0];
    assert!(
        console.matches("core 0: others go on\n").count() >= 9,
        "{console}"
    );
    for wrong in [
        "caller goes",
        "reader got",
        "chain goes",
        "opener goes",
        "waiter got",
    ] {
        assert!(!console.contains(wrong), "{console}");
    }
}

/// A unit of the folder `data` with these tasks, and how its run of 100 ms ended.
fn tried(unit: &str, body: &str, tasks: &[&str]) -> bulkhead_runner::run::Finished {
    let name = unit.to_lowercase();
    let declared: String = tasks
        .iter()
        .map(|task| format!("   task {task};\n"))
        .collect();
    let spec = format!("package {unit} is\n{declared}end {unit};\n");
    let all: Vec<(String, String)> = tasks
        .iter()
        .map(|task| (task.to_lowercase(), format!("{name}.adb::{task}")))
        .collect();
    let all: Vec<(&str, &str, u64)> = all.iter().map(|one| (&*one.0, &*one.1, 10)).collect();
    let files = [
        (&*format!("{name}.ads"), &*spec),
        (&*format!("{name}.adb"), body),
    ];
    let (_folder, system) = folder(&files, &all);
    run(&system, &[]).expect("it runs")
}

/// A body that ends at once, after a delay, after a call of an entry with parameters, and out of a loop: the task never runs again, and others go on.
#[test]
fn a_task_whose_body_ends_never_runs_again() {
    if !has_gnat() {
        return;
    }
    let tasks = ["Once", "Twice", "Nothing", "After"];
    let finished = tried("Ends", include_str!("data/ends.adb.in"), &tasks);
    let variant = &finished.result.variants[0];
    assert_eq!(variant.incidents, []);
    let jobs: Vec<u64> = variant.tasks.iter().map(|task| task.jobs).collect();
    assert_eq!(jobs, [1, 3, 1, 6]);
    let lines: Vec<&str> = finished.consoles[0].lines().collect();
    let expected = [
        "once",
        "first",
        "second",
        "after 1",
        "after 2",
        "after 3",
        "third 7",
        "after 4",
        "after 5",
        "after all",
    ];
    let expected = expected.map(|line| format!("core 0: {line}"));
    assert_eq!(lines, expected);
}

/// Exceptions of the language and of the program are handled in the block that raises them, also by a handler that waits; one of a procedure that the block calls stops the task.
#[test]
fn an_exception_is_handled_where_it_is_raised() {
    if !has_gnat() {
        return;
    }
    let body = include_str!("data/handled.adb.in");
    let tasks = ["Handles", "Waits", "Checks", "Calls", "Any"];
    let finished = tried("Handled", body, &tasks);
    let variant = &finished.result.variants[0];
    let mut lines = body.lines();
    let line =
        lines.position(|line| line.starts_with("   procedure Raises") && line.ends_with("is"));
    // The raise statement is three lines below.
    let raised = line.expect("a procedure") + 4;
    let incidents: Vec<_> = variant.incidents.iter().map(|one| &*one.what).collect();
    assert_eq!(
        incidents,
        [format!(
            "stopped: task 3, exception at handled.adb:{raised}"
        )]
    );
    let count = |what: &str| {
        finished.consoles[0]
            .matches(&format!("core 0: {what}\n"))
            .count()
    };
    assert_eq!(count("handles: constraint error"), 1);
    assert_eq!(count("waits: handled"), 3);
    assert!(count("waits: waited in a handler") >= 3);
    assert_eq!(
        (count("check: none"), count("check: constraint error")),
        (3, 7)
    );
    assert_eq!((count("others: none"), count("others: handled")), (9, 1));
    assert_eq!((count("calls: none"), count("calls: handled")), (1, 0));
}

/// An exception of the program that nobody handles is told with its place, or with its message. Another raise of what a handler got is refused.
#[test]
fn an_exception_of_the_program_stops_its_task() {
    if !has_gnat() {
        return;
    }
    let case = |statement: &str| {
        let body = blink(
            &format!("{NEXT}\n   Mine : exception;"),
            "",
            &LOOP.replace("Count + 1;", &format!("Count + 1;\n         {statement}")),
        );
        folder(&[("blink.ads", BLINK_SPEC), ("blink.adb", &body)], &WORKER)
    };
    for (raise, told) in [
        ("raise Mine", "exception at blink.adb:12"),
        (
            "raise Mine with \"the third one\"",
            "exception: the third one",
        ),
    ] {
        let (_folder, system) = case(&format!("if Count = 3 then {raise}; end if;"));
        let finished = run(&system, &[]).expect("it runs");
        let incidents = finished.result.variants[0].incidents.iter();
        let incidents: Vec<_> = incidents.map(|one| (one.kind, &*one.what)).collect();
        let told = format!("stopped: task 0, {told}");
        assert_eq!(incidents, [(IncidentKind::Crash, &*told)]);
        assert!(
            finished.consoles[0].starts_with("core 0: blink 1\ncore 0: blink 2\ncore 0: stopped")
        );
    }
    let (_folder, system) =
        case("begin if Count = 3 then raise Mine; end if; exception when Mine => raise; end;");
    let said = refusal(&system);
    assert!(
        said.contains("blink.adb:12:") && said.contains("No_Exception_Propagation"),
        "{said}"
    );
}

/// Two tasks compute with floating point in turn; each goes on with its own values. A local one that a task needs behind a delay is refused, as others are.
#[test]
fn tasks_compute_with_floating_point() {
    if !has_gnat() {
        return;
    }
    let finished = tried(
        "Floats",
        include_str!("data/floats.adb.in"),
        &["One", "Two"],
    );
    holds(&finished.result);
    // Newton's method, an iteration in each job.
    let told = |what: &str| -> Vec<i64> {
        let lines = finished.consoles[0].lines();
        lines
            .filter_map(|line| line.strip_prefix(what)?.parse().ok())
            .collect()
    };
    for (what, number) in [("core 0: two ", 2.0), ("core 0: three ", 3.0)] {
        let mut value = 1.0_f64;
        let expected: Vec<i64> = (0..10)
            .map(|_| {
                value = (value + number / value) / 2.0;
                (value * 1.0e15).round() as i64
            })
            .collect();
        assert_eq!(told(what), expected, "{what}");
    }
    let local = blink(
        NEXT,
        "      Half : Long_Float := 0.5;",
        &LOOP.replace(
            "Count := Count + 1;",
            "Half := Half * 1.5;\n         Count := Long_Long_Integer (Half);",
        ),
    );
    let (_folder, system) = folder(&[("blink.ads", BLINK_SPEC), ("blink.adb", &local)], &WORKER);
    let said = refusal(&system);
    assert!(
        said.contains("this needs a local value from before the task waited"),
        "{said}"
    );
}

#[test]
fn a_protected_operation_that_waits_is_refused() {
    if !has_gnat() {
        return;
    }
    let package = format!(
        "{NEXT}\n   protected Box is\n      procedure Waits;\n   end Box;\n   protected body Box is\n      procedure Waits is\n      begin\n         \
         delay until Next;\n      end Waits;\n   end Box;"
    );
    let body = blink(&package, "", &LOOP.replace("delay until Next", "Box.Waits"));
    let (_folder, system) = folder(&[("blink.ads", BLINK_SPEC), ("blink.adb", &body)], &WORKER);
    let said = refusal(&system);
    assert!(
        said.contains("blink.adb:12:") && said.contains("potentially blocking operation"),
        "{said}"
    );
}
