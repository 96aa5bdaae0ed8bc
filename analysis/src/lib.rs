//! Placeholder module text is replaced by the first commit of this crate.
