//! Whole machines: every file here tests one part.
//!
//! Why it exists: one program holds them all, because each program is linked with the whole machine, and while the last test of one program runs
//! alone, no other program begins. What it deliberately does not know: the tests. `cargo test -p bulkhead-machine --test all mesh::` runs one file.

mod common;

mod announced;
mod bandwidth;
mod cluster;
mod cluster_litmus;
mod cluster_prefetchers;
mod cluster_ways;
mod coherent_engines;
mod coupled;
mod dma;
mod dma_order;
mod doorbells;
mod engines;
mod events;
mod guard;
mod harts_on_lines;
mod interrupts;
mod litmus;
mod lost_cycles;
mod memory;
mod memory_types;
mod mesh;
mod moved_windows;
mod ordering;
mod peripherals;
mod pipelines;
mod places;
mod prefetchers;
mod qos;
mod rvwmo;
mod several_clusters;
mod shared_code;
mod traced;
mod translator;
mod units;
mod units_on_lines;
