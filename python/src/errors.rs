//! Exceptions of the package.
//!
//! Why it exists: each error type of the library has one exception here, with the library's own text as its message. All
//! but [`InternalError`] are `ValueError`s, so that code which knows nothing of this package can handle them.

use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::{PyTypeInfo, create_exception};

create_exception!(
    bulkhead,
    BulkheadError,
    PyValueError,
    "What was handed over cannot be worked with; the message says what is wrong."
);
create_exception!(
    bulkhead,
    TaskError,
    BulkheadError,
    "A parameter of a task system is out of range, or the test does not cover it."
);
create_exception!(
    bulkhead,
    TableError,
    BulkheadError,
    "A time-triggered table is wrong, or there is none."
);
create_exception!(
    bulkhead,
    FileError,
    BulkheadError,
    "A file is wrong; the message says where, and what would be right."
);
create_exception!(
    bulkhead,
    DescriptionError,
    BulkheadError,
    "A description is wrong; the message says where, and what would be right."
);
create_exception!(
    bulkhead,
    StudyError,
    BulkheadError,
    "A study was asked for what there is not, or its stored state does not belong to it."
);
create_exception!(
    bulkhead,
    InternalError,
    PyRuntimeError,
    "A bug of this package."
);

/// Makes a [`TaskError`].
pub fn task(text: String) -> PyErr {
    TaskError::new_err(text)
}

/// Makes a [`TableError`].
pub fn table(text: String) -> PyErr {
    TableError::new_err(text)
}

/// Makes a [`FileError`].
pub fn file(text: String) -> PyErr {
    FileError::new_err(text)
}

/// Makes a [`StudyError`].
pub fn study(text: String) -> PyErr {
    StudyError::new_err(text)
}

/// Adds all of them to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("BulkheadError", BulkheadError::type_object(py))?;
    module.add("TaskError", TaskError::type_object(py))?;
    module.add("TableError", TableError::type_object(py))?;
    module.add("FileError", FileError::type_object(py))?;
    module.add("DescriptionError", DescriptionError::type_object(py))?;
    module.add("StudyError", StudyError::type_object(py))?;
    module.add("InternalError", InternalError::type_object(py))
}
