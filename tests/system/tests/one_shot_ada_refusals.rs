//! What the build says of Ada that tasks cannot use: each time where, what, and what would be right; and code of the compiler's own that it must not refuse.

use crate::one_shot_ada::has_gnat;
use crate::one_shot_systems::{folder_with, holds, run};
use bulkhead_runner::Error;
use bulkhead_runner::run::Finished;

/// A unit with one task: what is before it, its declarations, and a statement of its loop.
#[derive(Clone, Copy, Default)]
struct Unit {
    with: &'static str,
    package: &'static str,
    task: &'static str,
    statement: &'static str,
    /// The declaration of the task in the specification.
    spec: &'static str,
}

/// The line of the statement, if what is before it has one line each.
const LINE: &str = "tried.adb:12: error: ";

impl Unit {
    fn run(&self) -> Result<Finished, Error> {
        let Self {
            with,
            package,
            task,
            statement,
            spec,
        } = self;
        let spec = if spec.is_empty() { "task T;" } else { spec };
        let body = format!(
            "with Ada.Real_Time; use Ada.Real_Time;\nwith Bulkhead.Console; use Bulkhead.Console;\n{with}\npackage body Tried is\n   Next : Time := Clock;\n   \
             N    : Integer := 0;\n   {package}\n   task body T is\n      {task}\n   begin\n      loop\n         {statement}\n         \
             Next := Next + Milliseconds (5);\n         delay until Next;\n         N := N + 1;\n      end loop;\n   end T;\nend Tried;\n"
        );
        let folder = folder_with(&[
            (
                "tried.ads",
                &format!("package Tried is\n   {spec}\nend Tried;\n"),
            ),
            ("tried.adb", &body),
            (
                "system.xml",
                r#"<system name="tried" paradigm="one-shot" platform="epiphany3" duration="20ms">
                <task name="t" program="tried.adb::T" core="0" priority="1" period="5ms" cost="100us" handlers="5us"/></system>"#,
            ),
        ]);
        run(&folder.path().join("system.xml"), &[])
    }

    fn refused(&self) -> String {
        self.run().err().expect("it is refused").to_string()
    }

    fn served(&self) -> Finished {
        let finished = self.run().expect("it runs");
        holds(&finished.result);
        finished
    }
}

/// GNAT names a unit of its run time, or a restriction.
#[test]
fn what_is_not_in_the_run_time_is_said_with_what_would_be_right() {
    if !has_gnat() {
        return;
    }
    let does = |statement| Unit {
        statement,
        ..Unit::default()
    };
    let has = |package| Unit {
        package,
        ..Unit::default()
    };
    let needs = |with| Unit {
        with,
        ..Unit::default()
    };
    let gate = "protected G is entry W; private O : Boolean := False; end G; protected body G is entry W when O is begin null; end W; end G;";
    let calls = |statement| Unit {
        package: gate,
        statement,
        ..Unit::default()
    };
    for (unit, place, right) in [
        (does("delay 0.1;"), LINE, "use `delay until`"),
        (
            does("Put_Line (Integer'Image (N));"),
            LINE,
            "Put_Line (TEXT, NUMBER)",
        ),
        (
            does("N := Integer'Value (\"3\");"),
            LINE,
            "compute the value in the package",
        ),
        (does("N := 3 ** N;"), LINE, "multiply in a loop"),
        (
            has("type B is tagged record X : Integer; end record;"),
            "tried.adb:7: error: ",
            "a record with a discriminant",
        ),
        (
            has("type B is interface;"),
            "tried.adb:7: error: ",
            "no tagged types or interfaces",
        ),
        (
            has("type A is access Integer; X : A := new Integer;"),
            "tried.adb:7: error: ",
            "declare the object, or an array of such objects, in the package",
        ),
        (
            has("function F return String is ((1 .. N => 'x'));"),
            "tried.adb:7: error: ",
            "return a type with a fixed length",
        ),
        (
            has(
                "protected G is entry W; end G; protected body G is entry W when N + 1 = 2 is begin null; end W; end G;",
            ),
            "tried.adb:7: error: ",
            "into a Boolean component",
        ),
        (
            has(
                "protected G is entry V; entry W; end G; protected body G is entry V when True is begin requeue W; end V; entry W when N > 0 is begin null; end W; end G;",
            ),
            "tried.adb:7: error: ",
            "let the task call the second entry",
        ),
        (
            has(
                "protected G is procedure P; end G; protected body G is procedure P is begin delay until Next; end P; end G;",
            ),
            "tried.adb:7: error: ",
            "wait in the task's body",
        ),
        (
            calls("select G.W; else N := 2; end select;"),
            LINE,
            "to poll, ask a function",
        ),
        (
            calls("select G.W; or delay until Next; end select;"),
            LINE,
            "for a timeout, let a timing event",
        ),
        (does("abort T;"), LINE, "read a Boolean of the package"),
        (
            does("begin raise Program_Error; exception when others => raise; end;"),
            LINE,
            "`raise E` instead of `raise`",
        ),
        (
            does(
                "declare protected L is procedure P; end L; protected body L is procedure P is null; end L; begin L.P; end;",
            ),
            LINE,
            "declare it in the package",
        ),
        (
            Unit {
                task: "task I; task body I is begin null; end I;",
                ..Unit::default()
            },
            "tried.adb:9: error: ",
            "name it in the description",
        ),
        (
            Unit {
                spec: "task T is entry E; end T;",
                statement: "accept E;",
                ..Unit::default()
            },
            LINE,
            "use an entry of a protected object",
        ),
        (
            needs("with Ada.Text_IO;"),
            "tried.adb:3: error: ",
            "print with Put_Line",
        ),
        (
            needs("with Ada.Calendar;"),
            "tried.adb:3: error: ",
            "the times of Ada.Real_Time",
        ),
        (
            needs("with Ada.Containers.Vectors;"),
            "tried.adb:3: error: ",
            "an array of fixed length",
        ),
        (
            needs("with Ada.Finalization;"),
            "tried.adb:3: error: ",
            "no controlled types",
        ),
        (
            needs("with Ada.Numerics.Elementary_Functions;"),
            "tried.adb:3: error: ",
            "as a series or with a table",
        ),
        (
            needs("with Ada.Unchecked_Deallocation;"),
            "tried.adb:3: error: ",
            "there is no heap",
        ),
        (
            needs("with Ada.Task_Identification;"),
            "tried.adb:3: error: ",
            "a variable of the package",
        ),
        (
            needs("with Ada.Directories;"),
            "tried.adb:3: error: ",
            "Ada.Directories is not in the run time of tasks",
        ),
    ] {
        let said = unit.refused();
        let is_told = said
            .lines()
            .any(|line| line.starts_with(place) && line.contains(right));
        assert!(
            is_told && said.contains("\nGNAT says:\n"),
            "{place}{right}: {said}"
        );
    }
    // What is wrong in the language itself is GNAT's to say.
    let said = does("Put_Lne (\"x\");").refused();
    assert!(
        said.contains("\"Put_Lne\" is undefined") && !said.contains("GNAT says"),
        "{said}"
    );
}

/// The compiler inserts the procedure into the body, so the statement is in the body, whatever the source says.
#[test]
fn advice_for_a_procedure_that_the_compiler_inserts_is_no_circle() {
    if !has_gnat() {
        return;
    }
    let joins = Unit {
        package: "procedure Q (S : String) is begin Put_Line (\"<\" & S & \">\"); end Q;",
        statement: "Q (\"x\");",
        ..Unit::default()
    };
    let said = joins.refused();
    assert!(
        said.contains("the address of a local variable") && said.contains("`with No_Inline`"),
        "{said}"
    );
    let advised = Unit {
        package: "procedure Q (S : String) with No_Inline; procedure Q (S : String) is begin Put_Line (\"<\" & S & \">\"); end Q;",
        ..joins
    };
    assert!(advised.served().consoles[0].starts_with("core 0: <x>\n"));
    let length = Unit {
        package: "procedure Q (K : Integer) is A : array (1 .. K) of Integer := (others => 1); begin Put_Line (\"n\", Long_Long_Integer (A (1))); end Q;",
        statement: "Q (N + 1);",
        ..Unit::default()
    };
    let said = length.refused();
    assert!(said.contains("Tried.T waits, and it, or a procedure that the compiler has inserted into it, has a local variable whose length is known only at run"), "{said}");
}

/// The compiler compares the handler in the body's frame.
#[test]
fn the_handler_of_an_event_is_compared_in_a_body() {
    if !has_gnat() {
        return;
    }
    let unit = Unit {
        with: "with Ada.Real_Time.Timing_Events; use Ada.Real_Time.Timing_Events;",
        package: "Event : Timing_Event; protected Bell is procedure Ring (Event : in out Timing_Event); end Bell; protected body Bell is procedure Ring (Event : \
                  in out Timing_Event) is begin null; end Ring; end Bell;",
        statement: "if Current_Handler (Event) = null then Put_Line (\"clear\"); Set_Handler (Event, Milliseconds (7), Bell.Ring'Access); end if;",
        ..Unit::default()
    };
    let console = &unit.served().consoles[0];
    assert_eq!(console.matches("core 0: clear\n").count(), 2, "{console}");
}

/// `System.Storage_Elements` is there.
#[test]
fn addresses_are_numbers() {
    if !has_gnat() {
        return;
    }
    let unit = Unit {
        with: "with System.Storage_Elements; use System.Storage_Elements;",
        statement: "if To_Integer (N'Address) mod 4 = 0 then Put_Line (\"aligned\"); end if;",
        ..Unit::default()
    };
    assert!(unit.served().consoles[0].starts_with("core 0: aligned\n"));
}
