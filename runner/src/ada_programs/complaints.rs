//! What GNAT refuses for lack of a run time, said in words of the page: what is wrong, and what would be right.
//!
//! Why it exists: GNAT names units of its own run time and restrictions of a profile, which a reader of the page knows nothing of. What it
//! deliberately does not know: the sources, and constructs of the language; a complaint is known by the unit or restriction that it names.

use std::collections::BTreeSet;
use std::fmt::Write;

/// A part of GNAT's run time that tasks do not have.
struct Row {
    /// Names of restrictions (`System.Rident`).
    restrictions: &'static [&'static str],
    /// How full names of units, or of what they declare, begin.
    units: &'static [&'static str],
    /// Parts of GNAT's other words.
    says: &'static [&'static str],
    /// What is wrong, and what would be right.
    words: &'static str,
}

impl Row {
    fn is_said(&self, words: &str) -> bool {
        self.says.iter().any(|one| words.contains(one))
    }
}

/// Restrictions of `gnat.adc` and `system.ads`, and units that the compiler, or a program, asks for.
const TABLE: &[Row] = &[
    Row {
        restrictions: &["No_Relative_Delay"],
        units: &["System.Relative_Delays", "Ada.Calendar.Delays"],
        says: &[],
        words: "a delay by a duration is not supported: use `delay until` with a time of Ada.Real_Time",
    },
    Row {
        restrictions: &["No_Calendar"],
        units: &["Ada.Calendar"],
        says: &[],
        words: "there is no calendar: use the times of Ada.Real_Time",
    },
    Row {
        restrictions: &[],
        units: &[
            "System.Img_",
            "System.Image_",
            "System.Put_Images",
            "System.Unsigned_Types",
            "Ada.Strings.Text_Buffers",
        ],
        says: &[],
        words: "there is no `'Image`: print a number with Put_Line (TEXT, NUMBER) of Bulkhead.Console; for other types, choose a text with `case`",
    },
    Row {
        restrictions: &[],
        units: &[
            "System.Val_",
            "System.Value_",
            "System.Wid_",
            "System.Width_",
            "System.WWd_",
            "System.WCh_",
        ],
        says: &[],
        words: "there is no `'Value` or `'Width`: compute the value in the package",
    },
    Row {
        restrictions: &["No_IO"],
        units: &[
            "Ada.Text_IO",
            "Ada.Wide_Text_IO",
            "Ada.Wide_Wide_Text_IO",
            "Ada.Integer_Text_IO",
            "Ada.Long_Integer_Text_IO",
            "Ada.Float_Text_IO",
            "Ada.Long_Float_Text_IO",
            "GNAT.IO",
        ],
        says: &[],
        words: "there is no Text_IO: print with Put_Line of Bulkhead.Console",
    },
    Row {
        restrictions: &[
            "No_Dispatch",
            "No_Dispatching_Calls",
            "No_Tagged_Type_Registration",
        ],
        units: &["Ada.Tags"],
        says: &["type derived from untagged type cannot have extension"],
        words: "there are no tagged types or interfaces: use a record with a discriminant, or a generic package",
    },
    Row {
        restrictions: &["No_Finalization", "No_Nested_Finalization"],
        units: &["Ada.Finalization", "System.Finalization_"],
        says: &[],
        words: "there are no controlled types: call procedures of your own where the use of an object begins and ends",
    },
    Row {
        restrictions: &[
            "No_Allocators",
            "No_Anonymous_Allocators",
            "No_Coextensions",
            "No_Implicit_Heap_Allocations",
            "No_Implicit_Protected_Object_Allocations",
            "No_Implicit_Task_Allocations",
            "No_Local_Allocators",
            "No_Protected_Type_Allocators",
            "No_Standard_Storage_Pools",
            "No_Task_Allocators",
            "No_Unchecked_Deallocation",
        ],
        units: &[
            "Ada.Unchecked_Deallocat",
            "System.Checked_Pools",
            "System.Memory",
            "System.Pool_",
            "System.Storage_Pools",
        ],
        says: &[],
        words: "there is no heap, so no `new`: declare the object, or an array of such objects, in the package",
    },
    Row {
        restrictions: &[],
        units: &["Ada.Containers"],
        says: &[],
        words: "there are no containers, as there is no heap: declare an array of fixed length in the package",
    },
    Row {
        restrictions: &["No_Secondary_Stack"],
        units: &["System.Secondary_Stack"],
        says: &[],
        words: "the length of this result is known only at run time, and there is no secondary stack for it: return a type with a fixed length, or use a \
                procedure that writes into a variable of the caller",
    },
    Row {
        restrictions: &[],
        units: &["Ada.Strings", "Ada.Characters"],
        says: &[],
        words: "there are no packages for strings and characters: use a String of fixed length and a number of used characters",
    },
    Row {
        restrictions: &[],
        units: &["Ada.Numerics", "Ada.Decimal"],
        says: &[],
        words: "there are no packages for numerics: compute the function in the package, as a series or with a table",
    },
    Row {
        restrictions: &[],
        units: &["System.Exn_", "System.Exp_"],
        says: &[],
        words: "`**` with this exponent is not supported: multiply in a loop",
    },
    Row {
        restrictions: &[],
        units: &["System.Fat_"],
        says: &[],
        words: "this attribute of a floating-point type is not supported: convert to an integer type, which rounds to the nearest",
    },
    Row {
        restrictions: &[],
        units: &[
            "System.Bit_Ops",
            "System.Pack_",
            "System.Unsigned_Types.Packed_",
        ],
        says: &[],
        words: "this packed array is not supported: leave out Pack, or use components of 8, 16, 32 or 64 bits",
    },
    Row {
        restrictions: &[],
        units: &["System.Assertions"],
        says: &[],
        words: "assertions are not checked here: write `if not CONDITION then raise Program_Error; end if;`",
    },
    Row {
        restrictions: &["No_Streams", "No_Default_Stream_Attributes"],
        units: &["Ada.Streams", "System.Stream", "System.Strings.Stream_Ops"],
        says: &[],
        words: "there are no streams: pass data over a channel, with Bulkhead.Ports",
    },
    Row {
        restrictions: &["Max_Task_Entries"],
        units: &[
            "System.Soft_Links.Get_Gnat_Exception",
            "System.Tasking.Rendezvous",
        ],
        says: &[],
        words: "tasks have no entries, so there is no rendezvous: use an entry of a protected object",
    },
    Row {
        restrictions: &[
            "No_Select_Statements",
            "No_Terminate_Alternatives",
            "Max_Asynchronous_Select_Nesting",
            "Max_Select_Alternatives",
        ],
        units: &["System.Tasking.Async_Delays"],
        says: &[],
        words: "there is no `select`: call the entry without it; for a timeout, let a timing event open the entry; to poll, ask a function of the protected \
                object",
    },
    Row {
        restrictions: &["No_Requeue_Statements"],
        units: &[],
        says: &[],
        words: "there is no `requeue`: let the task call the second entry behind the first one",
    },
    Row {
        restrictions: &["Pure_Barriers", "Simple_Barriers"],
        units: &[],
        says: &[],
        words: "a barrier has only components of its object, constants, comparisons, `not`, `and then`, `or else` and 'Count: compute the condition in the \
                object's procedures, into a Boolean component",
    },
    Row {
        restrictions: &["No_Local_Protected_Objects"],
        units: &[],
        says: &[],
        words: "a protected object is not local: declare it in the package",
    },
    Row {
        restrictions: &["No_Local_Timing_Events"],
        units: &[],
        says: &[],
        words: "a timing event is not local: declare it in the package",
    },
    Row {
        restrictions: &["No_Task_Hierarchy"],
        units: &["System.Tasking.Stages"],
        says: &[],
        words: "a task is not local to a task or procedure: declare it in the package, and name it in the description",
    },
    Row {
        restrictions: &["No_Abort_Statements"],
        units: &[],
        says: &[],
        words: "there is no `abort`: let the task read a Boolean of the package, and end its body",
    },
    Row {
        restrictions: &["No_Exception_Propagation"],
        units: &[
            "Ada.Exceptions",
            "System.Exception_Table",
            "System.Exceptions_Debug",
        ],
        says: &[],
        words: "a handler knows the exception only by its name: write `when E =>` instead of `when X : E =>`, and `raise E` instead of `raise`",
    },
    Row {
        restrictions: &["No_Dynamic_Priorities"],
        units: &["Ada.Dynamic_Priorities"],
        says: &[],
        words: "priorities do not change: state them in the description",
    },
    Row {
        restrictions: &["No_Task_Attributes_Package"],
        units: &["Ada.Task_Attributes"],
        says: &[],
        words: "there are no attributes of tasks: use a variable of the package, as each core has its own",
    },
    Row {
        restrictions: &["No_Specific_Termination_Handlers", "No_Task_Termination"],
        units: &["Ada.Task_Termination"],
        says: &[],
        words: "there are no handlers for the end of a task: `run` says which task stopped, and why",
    },
    Row {
        restrictions: &[],
        units: &[
            "Ada.Task_Identification",
            "System.Tasking.Restricted.Stages.Restricted_Terminated",
        ],
        says: &[],
        words: "tasks have no identification and no state to ask for: use a variable of the package that the task writes",
    },
    Row {
        restrictions: &["No_Dynamic_Attachment"],
        units: &["Ada.Interrupts", "System.Interrupts"],
        says: &[],
        words: "there are no handlers of interrupts: use Ada.Real_Time.Timing_Events, or a channel with `notify`",
    },
    Row {
        restrictions: &["No_Dynamic_CPU_Assignment", "No_Tasks_Unassigned_To_CPU"],
        units: &["System.Multiprocessors", "Ada.Dispatching"],
        says: &[],
        words: "cores and priorities of tasks are not in the source: state them in the description",
    },
    Row {
        restrictions: &[],
        units: &["Ada.Execution_Time"],
        says: &[],
        words: "there are no clocks of execution time: use Cycles of Bulkhead",
    },
    Row {
        restrictions: &[],
        units: &["Interfaces.C"],
        says: &[],
        words: "there is no Interfaces.C: use the types of Interfaces",
    },
    Row {
        restrictions: &["No_Implicit_Dynamic_Code"],
        units: &[],
        says: &[],
        words: "the address of a procedure within a procedure needs code on the stack: declare the inner procedure in the package",
    },
    Row {
        restrictions: &[],
        units: &[],
        says: &["prefixed call is only allowed for objects of a tagged type"],
        words: "a type that is not tagged has no calls as `OBJECT.PROCEDURE`: write `PROCEDURE (OBJECT, ...)`",
    },
    Row {
        restrictions: &[],
        units: &[],
        says: &["does not match \"Timing_Event_Handler\""],
        words: "the handler of a timing event is a procedure of a protected object: write `OBJECT.PROCEDURE'Access`",
    },
    // `gnat.adc` makes an error of this warning.
    Row {
        restrictions: &[],
        units: &[],
        says: &["potentially blocking operation"],
        words: "a protected operation does not wait: wait in the task's body, before or after the call",
    },
];

/// How the compiler says that a procedure needs a second pointer to its frame.
const SECOND_POINTER: &str = "s0 cannot be used in";

/// How GNAT says where it failed itself, in a box.
const FAILED: &str = "| Error detected at ";

/// For a complaint about a part of the run time that the table does not have.
fn unknown(what: &str) -> String {
    format!("{what} is not in the run time of tasks: leave the construct out that needs it")
}

/// What a complaint is about.
enum About<'t> {
    Restriction(&'t str),
    Unit(&'t str),
    /// GNAT's words.
    Said(&'t str),
}

impl<'t> About<'t> {
    /// Of GNAT's words behind `error:`, if they are about the run time.
    fn of(words: &'t str) -> Option<Self> {
        let quoted = |before: &str| {
            words
                .strip_prefix(before)?
                .strip_prefix('"')?
                .split('"')
                .next()
        };
        if let Some(restriction) = quoted("violation of restriction ") {
            // With the limit: `Max_Task_Entries = 0`.
            return restriction.split_whitespace().next().map(Self::Restriction);
        }
        if words.ends_with("not available") || words.ends_with("not defined") {
            return quoted("entity ").map(Self::Unit);
        }
        if words.ends_with("is not a predefined library unit") {
            return quoted("").map(Self::Unit);
        }
        if words == "file \"gnat.ads\" not found" {
            return Some(Self::Unit("GNAT.IO"));
        }
        TABLE
            .iter()
            .any(|row| row.is_said(words))
            .then_some(Self::Said(words))
    }

    fn words(&self) -> Option<&'static str> {
        let row = match self {
            Self::Said(words) => TABLE.iter().find(|row| row.is_said(words)),
            Self::Restriction(name) => TABLE.iter().find(|row| {
                row.restrictions
                    .iter()
                    .any(|one| one.eq_ignore_ascii_case(name))
            }),
            Self::Unit(name) => {
                let begins = |one: &str| {
                    let begin = name.get(..one.len());
                    begin.is_some_and(|begin| begin.eq_ignore_ascii_case(one))
                };
                // The longest one says most.
                let length = |row: &&Row| {
                    let known = row.units.iter().filter(|one| begins(one));
                    known.map(|one| one.len()).max()
                };
                TABLE
                    .iter()
                    .filter(|row| length(row).is_some())
                    .max_by_key(length)
            }
        };
        row.map(|row| row.words)
    }

    fn name(&self) -> &'t str {
        match self {
            Self::Restriction(name) | Self::Unit(name) | Self::Said(name) => name,
        }
    }
}

/// File, line and column of an error, and GNAT's words for it.
fn error(line: &str) -> Option<(&str, &str)> {
    let (place, words) = line.split_once(": error: ")?;
    let (_, column) = place.rsplit_once(':')?;
    column.parse::<u32>().ok()?;
    Some((place, words.trim_end()))
}

/// Without what is behind the last colon: the column of a place, or the line.
fn less(place: &str) -> &str {
    place.rsplit_once(':').map_or(place, |one| one.0)
}

/// What GNAT said, below a sentence for each place at which it misses a part of the run time.
pub fn explained(said: &str) -> String {
    let mut places: Vec<&str> = Vec::new();
    let mut found: Vec<(&str, About<'_>)> = Vec::new();
    let mut sentences: Vec<String> = Vec::new();
    let mut function = None;
    for line in said.lines() {
        if let Some((_, name)) = line.split_once(": In function ") {
            function = Some(name.trim_matches(|one: char| !one.is_alphanumeric()));
        }
        if let Some(place) = line.strip_prefix(FAILED) {
            let place = less(place.trim_end_matches(['|', ' ']));
            sentences.push(format!(
                "{place}: error: GNAT itself failed here. It is known to fail for a protected object with several entries whose barriers are all `True` or \
                 `False`: use a component of the object in one of them"
            ));
        }
        let Some((place, words)) = error(line) else {
            continue;
        };
        if words.starts_with(SECOND_POINTER) {
            let file = less(less(place));
            let file = file.rsplit('/').next().unwrap_or(file);
            sentences.push(format!(
                "{file}: error: {} waits, and it, or a procedure that the compiler has inserted into it, has a local variable whose length is known only at \
                 run time: give the variable a fixed length, and keep the used length beside it",
                function.unwrap_or("a procedure")
            ));
        }
        if let Some(about) = About::of(words) {
            if !places.contains(&place) {
                places.push(place);
            }
            found.push((place, about));
        }
    }
    for place in places {
        let mut here = found.iter().filter(|one| one.0 == place).map(|one| &one.1);
        let known = here.clone().find_map(About::words);
        let words = known.map(str::to_owned);
        let words = words.or_else(|| here.next().map(|about| unknown(about.name())));
        sentences.extend(words.map(|words| format!("{}: error: {words}", less(place))));
    }
    let mut told = BTreeSet::new();
    sentences.retain(|one| told.insert(one.clone()));
    if sentences.is_empty() {
        return said.to_owned();
    }
    let mut all = sentences.join("\n");
    // Writing to a string cannot fail.
    let _ = write!(
        all,
        "\nhelp: what tasks in Ada may use is in docs/reference/one-shot-ada.md\nGNAT says:\n{said}"
    );
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(said: &str) -> String {
        let all = explained(said);
        assert!(all.ends_with(said), "{all}");
        all.lines().next().expect("a line").to_owned()
    }

    #[test]
    fn a_unit_and_a_restriction_are_known_by_their_names() {
        let unit = "t.adb:10:12: error: construct not allowed in configurable run-time mode\nt.adb:10:12: error: file s-reldel.ads not found\n\
                    t.adb:10:12: error: entity \"System.Relative_Delays.Delay_For\" not available\n";
        assert_eq!(
            first(unit),
            "t.adb:10: error: a delay by a duration is not supported: use `delay until` with a time of Ada.Real_Time"
        );
        let limit = "t.ads:2:14: error: violation of restriction \"Max_Task_Entries = 0\"\nt.ads:2:14: error: from profile \"Jorvik\" at gnat.adc:1\n";
        assert!(first(limit).starts_with("t.ads:2: error: tasks have no entries"));
        let with = "t.adb:4:06: error: \"Ada.Text_Io\" is not a predefined library unit\n";
        assert!(first(with).contains("Put_Line of Bulkhead.Console"));
    }

    /// `System.Unsigned_Types` has types for several constructs.
    #[test]
    fn the_longest_name_counts() {
        let entity = |name: &str| format!("t.adb:1:1: error: entity \"{name}\" not available\n");
        let packed = first(&entity("System.Unsigned_Types.Packed_Bytes1"));
        assert!(packed.contains("packed array"), "{packed}");
        let image = first(&entity("System.Unsigned_Types.Unsigned"));
        assert!(image.contains("'Image"), "{image}");
    }

    #[test]
    fn what_the_table_does_not_have_is_named() {
        assert_eq!(
            first("t.adb:1:1: error: entity \"System.Bignums.Big_Add\" not available\n"),
            "t.adb:1: error: System.Bignums.Big_Add is not in the run time of tasks: leave the construct out that needs it"
        );
    }

    #[test]
    fn errors_of_the_language_are_left_to_gnat() {
        for said in [
            "t.adb:11:10: error: \"Put_Lne\" is undefined\n",
            "t.adb:4:06: error: file \"helpers.ads\" not found\n",
            "",
        ] {
            assert_eq!(explained(said), said);
        }
    }

    #[test]
    fn one_sentence_for_each_place() {
        let said = "t.adb:7:39: error: violation of restriction \"No_Secondary_Stack\" at gnat.adc:6\nt.adb:7:39: error: entity \
                    \"System.Secondary_Stack.Ss_Pool\" not defined\nt.adb:7:50: error: entity \"System.Secondary_Stack.Ss_Mark\" not defined\n\
                    t.adb:12:10: error: entity \"System.Secondary_Stack.Ss_Mark\" not defined\n";
        let all = explained(said);
        assert_eq!(
            all.matches("there is no secondary stack").count(),
            2,
            "{all}"
        );
    }

    #[test]
    fn two_complaints_in_one_line_are_both_told() {
        let said = "t.adb:7:10: error: violation of restriction \"No_Requeue_Statements\"\nt.adb:7:40: error: violation of restriction \"Pure_Barriers\"\n";
        let all = explained(said);
        assert!(
            all.starts_with("t.adb:7: error: there is no `requeue`")
                && all.contains("\nt.adb:7: error: a barrier has only"),
            "{all}"
        );
    }

    #[test]
    fn a_failure_of_gnat_is_told_with_its_place() {
        let said = "+====GNAT BUG DETECTED====+\n| 12.2.0 (riscv64-linux-gnu) Storage_Error stack overflow |\n| Error detected at t.adb:6:158                      |\n";
        assert!(first(said).starts_with("t.adb:6: error: GNAT itself failed here."));
    }

    #[test]
    fn a_length_of_run_time_is_told_once() {
        let said = "/d/t.adb: In function ‘Tasks.T’:\n/d/t.adb:18:8: error: s0 cannot be used in ‘asm’ here\n/d/t.adb:18:8: error: s0 cannot be used in ‘asm’ \
                    here\n";
        let all = explained(said);
        assert!(
            all.starts_with("t.adb: error: Tasks.T waits, and it, or"),
            "{all}"
        );
        assert_eq!(
            all.matches("give the variable a fixed length").count(),
            1,
            "{all}"
        );
    }
}
