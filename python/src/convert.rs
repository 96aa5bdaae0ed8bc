//! From Python's values to the library's and back.
//!
//! Why it exists: callers hand over anything (negative and huge integers, floats, text), and every one of these must become
//! an exception that says which value of which task is wrong. Numbers stay exact: Python's integers on both sides, never
//! a float. What it deliberately does not know: any analysis.

use crate::errors::{InternalError, TaskError};
use bulkhead_analysis::exact::Exact;
use bulkhead_analysis::schedulability::{Task, Time};
use num_bigint::BigInt;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyInt, PyString};
use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Most tasks of a system: the library's arithmetic is proved for this many (see its `LIMIT`).
pub const TASKS_MAX: usize = 100_000;

/// Most processors or cores of a system; each costs memory in some tests.
pub const PROCESSORS_MAX: u64 = 1 << 16;

/// Name of a value's type, for messages.
fn kind(value: &Bound<'_, PyAny>) -> String {
    value
        .get_type()
        .name()
        .map_or_else(|_| "this".to_owned(), |name| name.to_string())
}

/// A natural number up to `most`. `what` names it in messages.
///
/// # Errors
/// `TypeError` for what is no integer (a `bool` is none), [`TaskError`] for what is out of range.
pub fn natural(value: &Bound<'_, PyAny>, what: &dyn Fn() -> String, most: u64) -> PyResult<u64> {
    let not_integer = || {
        PyTypeError::new_err(format!(
            "{} must be an integer, not {}",
            what(),
            kind(value)
        ))
    };
    if value.is_instance_of::<PyBool>() {
        return Err(not_integer());
    }
    // The integers of NumPy and the like say what they are by `__index__`; a float has none.
    let number = value
        .call_method0("__index__")
        .map_err(|_| not_integer())?
        .cast_into::<PyInt>()
        .map_err(|_| not_integer())?;
    match number.extract::<u64>() {
        Ok(number) if number <= most => Ok(number),
        Err(_) if number.lt(0)? => Err(TaskError::new_err(format!(
            "{} must not be negative",
            what()
        ))),
        _ => Err(TaskError::new_err(format!("{} is above {most}", what()))),
    }
}

/// A moment, span or count without a limit of its own.
pub fn time(value: &Bound<'_, PyAny>, what: &str) -> PyResult<Time> {
    natural(value, &|| what.to_owned(), u64::MAX)
}

/// A number of processors.
pub fn processors(value: &Bound<'_, PyAny>) -> PyResult<u64> {
    natural(
        value,
        &|| "the number of processors".to_owned(),
        PROCESSORS_MAX,
    )
}

/// A `fractions.Fraction` or an integer: what has a numerator and a denominator.
///
/// # Errors
/// `TypeError` for what is neither, [`TaskError`] for a denominator of 0.
pub fn rational(value: &Bound<'_, PyAny>, what: &str) -> PyResult<Exact> {
    let refuse = |_| PyTypeError::new_err(format!("{what} must be a Fraction or an integer"));
    let part = |name: &str| -> PyResult<BigInt> { value.getattr(name)?.extract() };
    let numerator = part("numerator").map_err(refuse)?;
    let denominator = part("denominator").map_err(refuse)?;
    bulkhead_analysis::exact::ratio(numerator, denominator)
        .ok_or_else(|| TaskError::new_err(format!("{what} has the denominator 0")))
}

/// The index of a processor, core or task.
pub fn index(value: &Bound<'_, PyAny>, what: &str) -> PyResult<usize> {
    Ok(natural(value, &|| what.to_owned(), PROCESSORS_MAX)? as usize)
}

/// Items of any iterable but text; each is converted with its position.
///
/// # Errors
/// `TypeError` if it is not iterable, [`TaskError`] if there are more than [`TASKS_MAX`], and those of the items.
pub fn each<'py, T>(
    items: &Bound<'py, PyAny>,
    what: &str,
    mut item: impl FnMut(usize, &Bound<'py, PyAny>) -> PyResult<T>,
) -> PyResult<Vec<T>> {
    let refuse = || PyTypeError::new_err(format!("{what} must be a sequence, not {}", kind(items)));
    if items.is_instance_of::<PyString>() {
        return Err(refuse());
    }
    let mut all = Vec::new();
    for (position, value) in items.try_iter().map_err(|_| refuse())?.enumerate() {
        if position == TASKS_MAX {
            return Err(TaskError::new_err(format!("{what}: more than {TASKS_MAX}")));
        }
        all.push(item(position, &value?)?);
    }
    Ok(all)
}

/// An attribute of a task.
pub fn field(task: &Bound<'_, PyAny>, position: usize, name: &str) -> PyResult<Time> {
    let value = task.getattr(name).map_err(|_| {
        PyTypeError::new_err(format!("task {position} is no Task but {}", kind(task)))
    })?;
    natural(&value, &|| format!("task {position}: {name}"), u64::MAX)
}

/// A [`Task`] from anything with its attributes.
pub fn task(position: usize, task: &Bound<'_, PyAny>) -> PyResult<Task> {
    let get = |name| field(task, position, name);
    Ok(Task {
        cost: get("cost")?,
        period: get("period")?,
        deadline: get("deadline")?,
        jitter: get("jitter")?,
        blocking: get("blocking")?,
    })
}

/// A task system.
pub fn tasks(items: &Bound<'_, PyAny>) -> PyResult<Vec<Task>> {
    each(items, "tasks", task)
}

/// Natural numbers.
pub fn naturals(items: &Bound<'_, PyAny>, what: &str) -> PyResult<Vec<u64>> {
    each(items, what, |position, value| {
        natural(value, &|| format!("{what}[{position}]"), u64::MAX)
    })
}

/// Pairs of natural numbers.
pub fn pairs(items: &Bound<'_, PyAny>, what: &str) -> PyResult<Vec<(u64, u64)>> {
    each(items, what, |position, value| {
        let pair = naturals(value, &format!("{what}[{position}]"))?;
        match pair[..] {
            [first, second] => Ok((first, second)),
            _ => Err(TaskError::new_err(format!(
                "{what}[{position}] must have two numbers, not {}",
                pair.len()
            ))),
        }
    })
}

/// Does `work` while other threads of Python run. Its error becomes an exception with the same text, made by `raise`; a
/// panic, which would be a bug of ours, becomes [`InternalError`].
pub fn run<T: Send, E: Display + Send>(
    py: Python<'_>,
    raise: fn(String) -> PyErr,
    work: impl FnOnce() -> Result<T, E> + Send,
) -> PyResult<T> {
    match py.detach(|| catch_unwind(AssertUnwindSafe(work))) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(raise(error.to_string())),
        Err(panic) => {
            let text = panic
                .downcast_ref::<String>()
                .map(String::as_str)
                .or_else(|| panic.downcast_ref::<&str>().copied())
                .unwrap_or("no message");
            Err(InternalError::new_err(format!(
                "a bug in Bulkhead, please report it: {text}"
            )))
        }
    }
}
