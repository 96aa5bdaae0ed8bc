//! Timing events of tasks in Ada: what their handlers do and when, as in C; and what handlers must not do, which the build or the run says.

use crate::one_shot_ada::has_gnat;
use crate::one_shot_systems::{described, folder_with, holds, run};
use bulkhead_report::result::{Incident, IncidentKind};
use bulkhead_runner::Error;
use bulkhead_runner::run::Finished;
use std::fmt::Write;

/// The same program in C and Ada: a handler sets its own event and releases a task, until the task cancels the event.
#[test]
fn a_timing_event_in_ada_does_as_in_c() {
    if !has_gnat() {
        return;
    }
    let [c, ada] = ["timing.c::told", "timing.adb::Told"].map(|told| {
        let text = format!(
            r#"<system name="timing" paradigm="one-shot" platform="epiphany3" duration="40ms">
            <task name="told" program="one-shot/{told}" core="1" priority="1" period="1ms" cost="10us" handlers="3us" handlers-apart="3ms"/>
            <task name="other" program="one-shot/pair.c::other" core="1" priority="2" period="5ms" cost="210us"/></system>"#
        );
        let finished = described("timing", &text).expect("it runs");
        holds(&finished.result);
        let jobs = finished.result.variants[0].tasks[0].jobs;
        (finished.consoles[0].clone(), jobs)
    });
    assert_eq!(ada, c);
    assert!(ada.0.ends_with("core 1: cancelled, once\n"), "{}", ada.0);
}

/// Each operation and each kind of handler, in one unit: see its source.
fn events() -> Finished {
    let mut text = String::from(
        r#"<system name="events" paradigm="one-shot" platform="epiphany3" duration="100ms">"#,
    );
    let mut spec = String::from("package Events is\n");
    let tasks = [
        ("Script", "150us"),
        ("Waits", "20us"),
        ("Gets", "20us"),
        ("Takes", "20us"),
        ("Computes", "9ms"),
    ];
    for (number, (task, cost)) in tasks.into_iter().enumerate() {
        let (name, priority) = (task.to_lowercase(), number + 1);
        let handlers = match number {
            0 => r#"handlers="20us" arrivals="sporadic""#,
            _ if task == "Computes" => r#"arrivals="sporadic""#,
            _ => "",
        };
        let _ = writeln!(spec, "   task {task};");
        let _ = write!(
            text,
            r#"<task name="{name}" program="events.adb::{task}" core="0" priority="{priority}" period="10ms" cost="{cost}" {handlers}/>"#
        );
    }
    let folder = folder_with(&[
        ("events.ads", &(spec + "end Events;\n")),
        ("events.adb", include_str!("data/events.adb.in")),
        ("system.xml", &(text + "</system>")),
    ]);
    run(&folder.path().join("system.xml"), &[]).expect("it runs")
}

#[test]
fn events_happen_when_and_in_the_order_in_which_they_are_set() {
    if !has_gnat() {
        return;
    }
    let finished = events();
    holds(&finished.result);
    let console = &finished.consoles[0];
    assert!(!console.contains("wrong"), "{console}");
    for said in ["clear", "set", "replaced", "cancelled", "clear again"] {
        let line = format!("core 0: {said}\n");
        assert_eq!(console.matches(&line).count(), 1, "{said}: {console}");
    }
    let told = |what: &str| -> Vec<i64> {
        let lines = console.lines();
        let told = lines.filter_map(|line| line.strip_prefix("core 0: ")?.strip_prefix(what));
        told.filter_map(|one| one.parse().ok()).collect()
    };
    let happened: Vec<(i64, i64)> = told("when ").into_iter().zip(told("who ")).collect();
    let expected = [
        // Times that have passed.
        (1, 1),
        (1, 2),
        // The later setting has the earlier time.
        (2, 4),
        // 2.001 ms.
        (3, 3),
        (5, 6),
        // Two of one tick.
        (6, 7),
        (6, 6),
        // The later setting has the later time.
        (7, 5),
        // One that sets itself again, twice.
        (10, 9),
        (13, 9),
        (16, 9),
        // One that sets two others.
        (18, 10),
        (19, 5),
        (20, 4),
    ];
    assert_eq!(happened, expected);
    assert_eq!(told("ticks "), [40]);
    // Barriers that handlers open, and bodies of entries that they execute with parameters of two tasks.
    assert_eq!(told("opened "), [20, 30, 40, 50, 60, 70, 80, 90]);
    let sums: Vec<i64> = (1..=8).map(|n| 1000 + 7 * n * (n + 1) / 2).collect();
    assert_eq!(told("sum "), sums);
    let others: Vec<i64> = (1..=8).map(|n| -7 * n).collect();
    assert_eq!(told("other "), others);
    // Jobs of 2 ms that handlers interrupt, with integers and floating point.
    let (mut a, mut b, mut c, mut d, mut sum) = (1_u64, 1_u64, 1_u64, 1_u64, 0.0_f64);
    for number in 1..=60_000 {
        a = a
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(number);
        b = b.wrapping_add(a >> 33);
        c = c.wrapping_add(b).wrapping_mul(3);
        d = d.wrapping_add(c >> 40);
        sum += number as f64;
    }
    assert_eq!(told("computed "), [(d / 2) as i64; 2]);
    assert_eq!(told("added "), [sum as i64; 2]);
    let longest = finished.result.variants[0].requests.iter();
    let longest = longest
        .filter(|one| one.kind == "response")
        .map(|one| one.worst);
    let tick = finished.result.ticks_per_second / 1000;
    assert!(longest.max() > Some(tick), "no job lasts for a tick");
}

/// A unit with a handler, a procedure that it may call, and a procedure that sets its event: their statements.
struct Wrong {
    handler: &'static str,
    below: &'static str,
    local: &'static str,
    sets: &'static str,
    /// Of the description.
    stack: &'static str,
}

const HANDLER: &str = "Set_Handler (Event, Milliseconds (2), Bell.Ring'Access);";

/// The line of the handler's statement.
const LINE: &str = "wrong.adb:16";

impl Default for Wrong {
    fn default() -> Self {
        Self {
            handler: "null;",
            below: "null;",
            local: "",
            sets: HANDLER,
            stack: "",
        }
    }
}

impl Wrong {
    fn run(&self) -> Result<Finished, Error> {
        let Self {
            handler,
            below,
            local,
            sets,
            stack,
        } = self;
        let body = format!(
            "with Ada.Real_Time; use Ada.Real_Time;
with Ada.Real_Time.Timing_Events; use Ada.Real_Time.Timing_Events;
with Bulkhead.Console;
package body Wrong is
   Event : Timing_Event;
   Next  : Time := Clock;
   Half  : Long_Float := 0.5 with Volatile;
   procedure Below with No_Inline;
   protected Bell is
      procedure Ring (Event : in out Timing_Event);
      procedure Add;
   end Bell;
   protected body Bell is
      procedure Ring (Event : in out Timing_Event) is
      begin
         {handler}
      end Ring;
      procedure Add is
      begin
         Half := Half + 1.0;
      end Add;
   end Bell;
   procedure Below is
   begin
      {below}
   end Below;
   procedure Set with No_Inline;
   procedure Set is
      {local}
   begin
      {sets}
   end Set;
   task body Worker is
   begin
      loop
         Set;
         Next := Next + Milliseconds (5);
         delay until Next;
         Bulkhead.Console.Put_Line (\"goes on\");
      end loop;
   end Worker;
end Wrong;
"
        );
        let system = format!(
            r#"<system name="wrong" paradigm="one-shot" platform="epiphany3" duration="20ms">
            <task name="worker" program="wrong.adb::Worker" core="0" priority="1" period="5ms" cost="4ms" {stack}/></system>"#
        );
        let folder = folder_with(&[
            (
                "wrong.ads",
                "package Wrong is\n   task Worker;\nend Wrong;\n",
            ),
            ("wrong.adb", &body),
            ("system.xml", &system),
        ]);
        run(&folder.path().join("system.xml"), &[])
    }

    fn refused(&self) -> String {
        self.run().err().expect("it is refused").to_string()
    }

    /// The only incident.
    fn told(&self) -> Incident {
        let finished = self.run().expect("it runs");
        match &finished.result.variants[0].incidents[..] {
            [one] => one.clone(),
            others => panic!("{others:?}"),
        }
    }
}

/// The compiler refuses a handler that waits, the build one that waits in a procedure that it calls; if its stack is stated and so not examined, the core says it.
#[test]
fn a_handler_that_waits_is_refused() {
    if !has_gnat() {
        return;
    }
    let direct = Wrong {
        handler: "delay until Next;",
        ..Wrong::default()
    };
    let said = direct.refused();
    assert!(
        said.contains(LINE) && said.contains("potentially blocking operation"),
        "{said}"
    );
    let returns = Wrong {
        handler: "Below;",
        below: "delay until Next;",
        ..Wrong::default()
    };
    let said = returns.refused();
    let what = "wrong.adb:25: error: a procedure waits here and returns later";
    assert!(said.contains(what), "{said}");
    let never = |stack| Wrong {
        handler: "Below;",
        below: "loop delay until Next; end loop;",
        stack,
        ..Wrong::default()
    };
    let said = never("").refused();
    let what = "a handler of a timing event waits: wrong__bell__ringP, wrong__below, bulkhead_ada_delay_until";
    assert!(said.contains(what), "{said}");
    let told = never(r#"stack="2KiB""#).told();
    assert_eq!(
        (told.kind, &*told.application),
        (IncidentKind::Crash, "core 0")
    );
    let what = ": a handler of a timing event waits in bulkhead_ada_delay_until";
    assert!(told.what.contains(what), "{told:?}");
}

/// The core stops, and not the task that the handler interrupts.
#[test]
fn a_handler_that_does_something_wrong_stops_the_core_with_its_place() {
    if !has_gnat() {
        return;
    }
    // The event happens in the middle of a job, or while there is none.
    const BUSY: &str = "Set_Handler (Event, Milliseconds (2), Bell.Ring'Access); while Clock < Next + Milliseconds (3) loop null; end loop;";
    let float = |sets| Wrong {
        handler: "Half := Half * 1.5;",
        sets,
        ..Wrong::default()
    };
    let nested = Wrong {
        handler: "Below;",
        below: "Bell.Add;",
        sets: BUSY,
        stack: r#"stack="2KiB""#,
        ..Wrong::default()
    };
    let raises = Wrong {
        handler: "if Next > Time_First then raise Program_Error; end if;",
        ..Wrong::default()
    };
    for (case, what, place) in [
        (float(HANDLER), "cause 2 at 0x", LINE),
        (float(BUSY), "cause 2 at 0x", LINE),
        (
            nested,
            ": a protected operation calls its own object in ",
            "wrong.adb:18",
        ),
        (raises, "stopped: core, exception at ", LINE),
    ] {
        let told = case.told();
        assert_eq!(
            (told.kind, &*told.application),
            (IncidentKind::Crash, "core 0")
        );
        assert!(
            told.what.contains(what) && told.what.contains(place),
            "{what} {place}: {told:?}"
        );
    }
}

/// An event in a procedure would be gone when it happens, and the sum of a time and a very long span would be in the past.
#[test]
fn a_local_event_and_a_span_beyond_the_last_time_stop_the_task() {
    if !has_gnat() {
        return;
    }
    for (local, sets, what) in [
        (
            "Event : Timing_Event;",
            HANDLER,
            "stopped: task 0, a timing event is a local variable; declare it in the package",
        ),
        (
            "",
            // Not in tick 0, where the sum is the last time.
            "Set_Handler (Event, Time_Span_Last, Bell.Ring'Access);",
            "Constraint_Error: the time of a timing event is after Time_Last in wrong__set+",
        ),
    ] {
        let case = Wrong {
            local,
            sets,
            ..Wrong::default()
        };
        let told = case.told();
        assert_eq!(
            (told.kind, &*told.application),
            (IncidentKind::Crash, "worker")
        );
        assert!(told.what.contains(what), "{told:?}");
        // The caller's line.
        let is_after = what.contains("Time_Last");
        assert_eq!(told.what.contains(" at wrong.adb:31"), is_after, "{told:?}");
    }
}
