//! The data transfer unit (its owner publishes it here).
