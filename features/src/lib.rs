//! Nothing: this package exists for its dependencies.
//!
//! Why it exists: Cargo compiles a package again for each set of features. The command, the tests of whole systems, conformance, the optimiser's tests and the
//! Python package ask different features of a few packages at the bottom, so machine, model, analysis and runner were compiled two to four times. All
//! of these programs depend on this package, so they ask the same. What it deliberately does not know: who needs a feature, and why.
#![forbid(unsafe_code)]
