//! Whole systems: every file here tests one part.
//!
//! Why it exists: one program holds them all, because each program is linked and optimised with the whole simulator. What it
//! deliberately does not know: the tests. `cargo test --release -p bulkhead-system-tests calls::` runs one file.

mod accelerators;
mod attacks;
mod audit;
mod bare;
mod bare_audit;
mod beside;
mod book;
mod c_programs;
mod calls;
mod capacity;
mod catalog;
mod cluster_bounds;
mod coherent;
mod crashes;
mod description;
mod determinism;
mod failures;
mod faults;
mod firmware;
mod flows;
mod folders;
mod guard;
mod hostile;
mod isolation;
mod kills;
mod lines;
mod managers;
mod many_cores;
mod memory_bounds;
mod network;
mod one_shot;
mod one_shot_ada;
mod one_shot_clock_attacks;
mod one_shot_clocks;
mod one_shot_host;
mod one_shot_languages;
mod one_shot_notify;
mod one_shot_parallel;
mod one_shot_queues;
mod one_shot_stack;
mod one_shot_systems;
mod pager;
mod patience;
mod pipes;
mod quickstart;
mod rights;
mod server;
mod services;
mod sessions;
mod shared_tiles;
mod timing;
mod turns;
mod verdicts;
