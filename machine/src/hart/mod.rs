//! The hart (its owner publishes it here).

/// Placeholder until the hart's owner publishes the real structure.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct HartConfig {
    /// Ticks a cycle.
    pub ticks_per_cycle: crate::types::Tick,
}
