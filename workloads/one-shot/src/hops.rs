//! What the programs that measure by hops share, for the first core of a mesh.
//!
//! Why it exists: their figures are compared with each other. What it deliberately does not know: what is measured.

/// Cores of a mesh of 4 by 4 by their distance from core 0: along the first row, then down the last column.
pub const TARGETS: [u16; 7] = [0, 1, 2, 3, 67, 131, 195];
/// Cores of a mesh of 32 by 32, 0, 1, 2, 4, 8, 16, 31, 46 and 62 hops from core 0: along the first row, then down the last column.
pub const FAR: [u16; 9] = [0, 1, 2, 4, 8, 16, 31, 15 << 6 | 31, 31 << 6 | 31];
/// Runs of each operation at each distance.
pub const RUNS: u64 = 1000;
