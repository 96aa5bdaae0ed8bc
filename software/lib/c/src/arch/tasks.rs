//! Periodic tasks for C.
//!
//! What it deliberately does not know: what a job does.

use super::{not_given, with};
use bulkhead_lib::task::PeriodicTask;
use core::ffi::c_int;

functions! {
    fn bh_task() -> c_int {
        with(|tables| {
            let task = PeriodicTask::find();
            let task = task.ok_or_else(|| not_given(format_args!("<task>")))?;
            tables.tasks.put(task)
        })
    }

    fn bh_next_job(task: c_int) -> i64 {
        let mut job = 0;
        // The number of a job does not fit the type that other functions return.
        let error = with(|tables| {
            job = tables.tasks.get_mut(task)?.next_job() as i64;
            Ok(0)
        });
        if error < 0 { error.into() } else { job }
    }

    fn bh_complete(task: c_int) -> c_int {
        with(|tables| Ok(tables.tasks.get_mut(task)?.complete().into()))
    }

    fn bh_release(task: c_int) -> u64 {
        let tables = super::TABLES.0.borrow();
        tables.tasks.get(task).map_or(0, PeriodicTask::release)
    }
}
