//! Progress of the work, for whatever displays it.
//!
//! What it deliberately does not know: terminals.

/// The current stage.
#[derive(Clone, Copy, Debug)]
pub enum Stage<'a> {
    /// Work of unknown length begins.
    Work {
        /// The work.
        what: &'a str,
    },
    /// A simulation has reached this point.
    Simulation {
        /// Name of the run.
        name: &'a str,
        /// Simulated microseconds.
        microseconds: u64,
        /// Simulated microseconds at the end.
        of: u64,
    },
    /// The work or run with this name is over.
    Done {
        /// Its name.
        name: &'a str,
    },
    /// Something that the user should know, although it stops nothing.
    Warning {
        /// The warning; it may have several lines.
        text: &'a str,
    },
}

/// Shows progress.
pub trait Progress: Sync {
    /// Called at every change, from any thread.
    fn stage(&self, stage: Stage<'_>);
}

/// Shows nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Progress for Silent {
    fn stage(&self, _: Stage<'_>) {}
}
