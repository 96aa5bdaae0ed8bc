//! Task systems in SchedCAT's XML format, which the field's tools read.
//!
//! Format: B. Brandenburg's SchedCAT toolkit: a `taskset` with `task` elements, each with `period`, `wcet` and optionally
//! `deadline`, `id`, `partition` and `wss`; a `testpoint` may hold several of them with a `config`. Numbers may be
//! written as `10.0`; this library's times are integers, so a fraction is refused rather than rounded. Resource
//! requirements are refused too, because no test here takes them from a file.

use super::task::{LIMIT, Task, Time, validate};
use bulkhead_model::source::{Source, Span};
use bulkhead_model::tree::{Attribute, Element, parse};
use std::fmt::Write;
use std::sync::Arc;
use thiserror::Error;

/// A task as the format has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Cost, period, deadline.
    pub task: Task,
    /// Its number, if it has one.
    pub id: Option<u64>,
    /// Its processor, if it has one.
    pub partition: Option<u64>,
    /// Its working set, if it is given.
    pub working_set: Option<u64>,
}

impl From<Task> for Entry {
    fn from(task: Task) -> Self {
        Self {
            task,
            id: None,
            partition: None,
            working_set: None,
        }
    }
}

/// A mistake in a file: place, cause and remedy in one message.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{place}: {what}; {remedy}")]
pub struct SchedcatError {
    /// File, line and column.
    pub place: String,
    /// The cause.
    pub what: String,
    /// The remedy.
    pub remedy: String,
}

fn wrong(span: &Span, what: impl Into<String>, remedy: impl Into<String>) -> SchedcatError {
    SchedcatError {
        place: span.place(),
        what: what.into(),
        remedy: remedy.into(),
    }
}

/// Reads a text; `name` appears in messages. Gives each task set in the order of the file.
///
/// # Errors
/// The first thing that is wrong.
pub fn read(name: &str, text: &str) -> Result<Vec<Vec<Entry>>, SchedcatError> {
    let source = Arc::new(Source {
        name: name.into(),
        text: text.into(),
    });
    let root = parse(&source).map_err(|e| {
        let (line, column) = e.position().unwrap_or((1, 1));
        SchedcatError {
            place: format!("{name}:{line}:{column}"),
            what: e.message(),
            remedy: "write well-formed XML".into(),
        }
    })?;
    match root.name.as_str() {
        "taskset" => Ok(vec![task_set(&root)?]),
        "testpoint" => {
            let mut all = Vec::new();
            for child in &root.children {
                match child.name.as_str() {
                    "config" => {}
                    "taskset" => all.push(task_set(child)?),
                    other => {
                        return Err(wrong(
                            &child.span,
                            format!("unknown element `{other}`"),
                            "use config or taskset",
                        ));
                    }
                }
            }
            Ok(all)
        }
        "task" => Ok(vec![vec![entry(&root)?]]),
        other => Err(wrong(
            &root.span,
            format!("unknown element `{other}`"),
            "begin with taskset, testpoint or task",
        )),
    }
}

fn task_set(element: &Element) -> Result<Vec<Entry>, SchedcatError> {
    let mut all = Vec::new();
    for child in &element.children {
        match child.name.as_str() {
            "properties" => {}
            "task" => all.push(entry(child)?),
            other => {
                return Err(wrong(
                    &child.span,
                    format!("unknown element `{other}`"),
                    "use properties or task",
                ));
            }
        }
    }
    Ok(all)
}

fn entry(element: &Element) -> Result<Entry, SchedcatError> {
    // SchedCAT writes an empty list of resources for a task that needs none.
    let needs = |child: &&Element| child.name != "resources" || !child.children.is_empty();
    if let Some(child) = element.children.iter().find(needs) {
        let what = format!("`{}` of a task is not supported", child.name);
        return Err(wrong(
            &child.span,
            what,
            "leave resource requirements out, or add blocking times to the tasks",
        ));
    }
    let needed = |name: &str| match element.attribute(name) {
        Some(attribute) => number(attribute),
        None => Err(wrong(
            &element.span,
            format!("a task has no `{name}`"),
            format!("add {name}=\"...\""),
        )),
    };
    let optional = |name: &str| element.attribute(name).map(number).transpose();
    let (cost, period) = (needed("wcet")?, needed("period")?);
    let deadline = optional("deadline")?.unwrap_or(period);
    let task = Task::constrained(cost, period, deadline);
    validate(&[task]).map_err(|e| {
        let what = e.to_string();
        let what = what.strip_prefix("task 0: ").unwrap_or(&what).to_string();
        wrong(
            &element.span,
            what,
            format!("use integers from 1 to {LIMIT}"),
        )
    })?;
    Ok(Entry {
        task,
        id: optional("id")?,
        partition: optional("partition")?,
        working_set: optional("wss")?,
    })
}

/// An integer, also if written with a fraction of zeros.
fn number(attribute: &Attribute) -> Result<Time, SchedcatError> {
    let text = attribute.value.trim();
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
    let name = &attribute.name;
    if !digits(whole) || !digits(fraction) {
        let what = format!("`{text}` is not a number for `{name}`");
        return Err(wrong(
            &attribute.value_span,
            what,
            "write a decimal number that is not negative",
        ));
    }
    if fraction.bytes().any(|b| b != b'0') {
        let what = format!("`{name}` has a fraction: `{text}`");
        return Err(wrong(
            &attribute.value_span,
            what,
            "use a finer unit of time, so that every value is an integer",
        ));
    }
    whole.parse().map_err(|_| {
        wrong(
            &attribute.value_span,
            format!("`{text}` is too large"),
            format!("use at most {LIMIT}"),
        )
    })
}

/// Writes one task set.
pub fn write(entries: &[Entry]) -> String {
    let mut text = format!("<taskset>\n  <properties count=\"{}\" />\n", entries.len());
    for entry in entries {
        text.push_str("  <task");
        let Task {
            cost,
            period,
            deadline,
            ..
        } = entry.task;
        let fields = [
            ("id", entry.id),
            ("period", Some(period)),
            ("wcet", Some(cost)),
            ("deadline", (deadline != period).then_some(deadline)),
            ("partition", entry.partition),
            ("wss", entry.working_set),
        ];
        for (name, value) in fields {
            if let Some(value) = value {
                // Writing to a string cannot fail.
                let _ = write!(text, " {name}=\"{value}\"");
            }
        }
        text.push_str(" />\n");
    }
    text.push_str("</taskset>\n");
    text
}

/// Writes one task set as comma-separated values with a heading.
pub fn write_csv(entries: &[Entry]) -> String {
    let mut text = String::from("id,period,wcet,deadline,partition,wss\n");
    for entry in entries {
        let optional = |value: Option<u64>| value.map(|v| v.to_string()).unwrap_or_default();
        let Task {
            cost,
            period,
            deadline,
            ..
        } = entry.task;
        let (id, partition, wss) = (
            optional(entry.id),
            optional(entry.partition),
            optional(entry.working_set),
        );
        let _ = writeln!(text, "{id},{period},{cost},{deadline},{partition},{wss}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_what_the_toolkit_writes() {
        let text = "<testpoint><config cpus=\"4\" /><taskset><properties utilization=\"0.5\" count=\"2\" />\
            <task id=\"1\" period=\"10\" wcet=\"2.0\" /><task period=\"20\" wcet=\"4\" deadline=\"15\" partition=\"1\" wss=\"64\" \
            response_time=\"4\" /></taskset></testpoint>";
        let sets = read("a.xml", text).unwrap();
        assert_eq!(sets.len(), 1);
        assert_eq!(
            sets[0][0],
            Entry {
                id: Some(1),
                ..Task::new(2, 10).into()
            }
        );
        let second = Entry {
            partition: Some(1),
            working_set: Some(64),
            ..Task::constrained(4, 20, 15).into()
        };
        assert_eq!(sets[0][1], second);
        assert_eq!(
            write_csv(&sets[0]),
            "id,period,wcet,deadline,partition,wss\n1,10,2,10,,\n,20,4,15,1,64\n"
        );
    }

    #[test]
    fn says_what_is_wrong_and_where() {
        let message = |text: &str| read("a.xml", text).unwrap_err().to_string();
        assert_eq!(
            message("<taskset>\n <task period=\"10\" wcet=\"2.5\"/>\n</taskset>"),
            "a.xml:2:26: `wcet` has a fraction: `2.5`; use a finer unit of time, so that every value is an integer"
        );
        assert_eq!(
            message("<taskset><task period=\"10\"/></taskset>"),
            "a.xml:1:11: a task has no `wcet`; add wcet=\"...\""
        );
        assert_eq!(
            message("<taskset><task period=\"10\" wcet=\"0\"/></taskset>"),
            "a.xml:1:11: cost must be positive; use integers from 1 to 4503599627370496"
        );
        assert!(
            message("<taskset><task period=\"-1\" wcet=\"1\"/></taskset>")
                .contains("is not a number")
        );
        assert!(
            message("<taskset><task period=\"99999999999999999999\" wcet=\"1\"/></taskset>")
                .contains("too large")
        );
        assert!(
            message("<taskset><task period=\"9\" wcet=\"1\"><resources><requirement res_id=\"1\"/></resources></task></taskset>")
                .contains("not supported")
        );
        // The toolkit's task without requirements may have an empty list of them.
        let none = "<taskset><task period=\"9\" wcet=\"1\"><resources /></task></taskset>";
        assert_eq!(read("a.xml", none).unwrap()[0].len(), 1);
        assert!(message("<tasks/>").contains("begin with taskset"));
        assert!(message("<taskset>").starts_with("a.xml:1:"));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(parts in prop::collection::vec(
            (1u64..LIMIT, 1u64..LIMIT, 1u64..LIMIT, prop::option::of(0u64..9), prop::option::of(0u64..9)), 0..6)) {
            let entries: Vec<_> = parts.iter().map(|&(c, t, d, id, p)| Entry {
                id, partition: p, ..Task::constrained(c, t, d).into()
            }).collect();
            prop_assert_eq!(read("a", &write(&entries)).unwrap(), vec![entries]);
        }

        #[test]
        fn no_text_panics(text in "\\PC*") {
            let _ = read("a", &text);
            let _ = read("a", &format!("<taskset><task period=\"{text}\" wcet=\"1\"/></taskset>"));
        }
    }
}
