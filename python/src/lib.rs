//! The native part of the Python package `bulkhead`.
//!
//! Why it exists: analyses and studies are the library's; this crate only converts values, lets other threads run meanwhile and turns
//! errors into exceptions. Documentation and types for users are in the Python sources beside it (`package/bulkhead`). What it deliberately
//! does not know: any method, and Dask.

mod convert;
mod errors;
mod files;
mod multiprocessor;
mod plan;
mod study;
mod study_files;
mod systems;
mod traffic;
mod uniprocessor;

use pyo3::prelude::*;

#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("LIMIT", bulkhead_analysis::schedulability::task::LIMIT)?;
    errors::register(module)?;
    uniprocessor::register(module)?;
    multiprocessor::register(module)?;
    systems::register(module)?;
    files::register(module)?;
    plan::register(module)?;
    study::register(module)?;
    study_files::register(module)?;
    traffic::register(module)
}
