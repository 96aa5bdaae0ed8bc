//! Traces of a run (their owner publishes them here).
