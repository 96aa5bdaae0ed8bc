//! The same work on many inputs, on all processors.
//!
//! Why it exists: variants, attacks and runs of flows alone execute in parallel. What it deliberately does not know: what is done.

use crate::error::Error;
use rayon::prelude::*;

/// Does the same for all inputs, on all processors. Results are in the order of the inputs. Each run is deterministic by itself,
/// so the order in which runs end does not matter. For few inputs with long work: each is handed out individually.
pub fn in_parallel<T: Sync, R: Send>(
    inputs: &[T],
    work: impl Fn(&T) -> Result<R, Error> + Sync + Send,
) -> Vec<Result<R, Error>> {
    inputs.par_iter().with_max_len(1).map(work).collect()
}
