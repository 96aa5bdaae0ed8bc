//! What the programs that measure by hops share: those for the first core of a mesh of 4 by 4.
//!
//! Why it exists: their figures are compared with each other. What it deliberately does not know: what is measured.

/// Cores by their distance from core 0: along the first row, then down the last column.
pub const TARGETS: [u16; 7] = [0, 1, 2, 3, 67, 131, 195];
/// Runs of each operation at each distance.
pub const RUNS: u64 = 1000;
