//! No simulated response exceeds its bound: every policy of `check`, with everything that its description may contain.
//!
//! Why it exists: a bound that an execution exceeds is wrong, whatever its proof says. The simulations here know descriptions and
//! what a kernel does, unit by unit: arrivals, releases, decisions, slices, handlers, stalls, sections, slots. They share no
//! formula and no code with the analyses, and only ask them for the bounds.
//!
//! Each policy has a generator of random systems. To show that soundness is not achieved by giving no bounds, it prints how many
//! systems and tasks had a bound, and the median of the bound relative to the longest response seen. 300 systems of each in every
//! test; ten thousand, as in `docs/validation.md`, with
//!
//! ```text
//! BULKHEAD_SYSTEMS=10000 cargo test --release -p bulkhead-analysis --test simulation -- --nocapture
//! ```

mod arrivals;
mod caches;
mod chains;
mod exact;
mod generate;
mod global;
mod levels;
mod measure;
mod mixed;
mod phases;
mod processor;
mod quotas;
mod random;
mod slices;
mod tables;

use measure::Case;

/// A test for each thing that has bounds.
macro_rules! cases {
    ($($name:ident: $one:expr;)*) => {
        $(
            #[test]
            fn $name() {
                Case { name: stringify!($name), one: $one }.check();
            }
        )*
    };
}

/// A test for each policy.
macro_rules! policies {
    ($($name:ident: $generate:expr, $simulate:expr;)*) => {
        cases! { $($name: |random| measure::tasks(random, $generate, $simulate);)* }
    };
}

policies! {
    fixed_priority: generate::fixed_priority, processor::run;
    fixed_priority_overheads: generate::fixed_priority_overheads, processor::run;
    fixed_priority_sections: generate::fixed_priority_sections, processor::run;
    fixed_priority_memguard: generate::fixed_priority_memguard, processor::run;
    fixed_priority_mutex: generate::fixed_priority_mutex, processor::run;
    fixed_priority_everything: generate::fixed_priority_everything, processor::run;
    fixed_priority_offsets: generate::fixed_priority_offsets, processor::run;
    rate_monotonic: generate::rate_monotonic, processor::run;
    threshold: generate::threshold, processor::run;
    non_preemptive: generate::non_preemptive, processor::run;
    one_shot: generate::one_shot, processor::run;
    edf: generate::edf, processor::run;
    edf_offsets: generate::edf_offsets, processor::run;
    edf_memguard: generate::edf_memguard, processor::run;
    time_slice: generate::time_slice, slices::run;
    table: generate::table, tables::run;
    three_phase: generate::three_phase, phases::run;
    global_fixed_priority: generate::global_fixed_priority, global::run;
    global_edf: generate::global_edf, global::run;
    global_edf_soft: generate::global_edf_soft, global::run;
    mc2: generate::mc2, levels::run;
    mixed_fixed_priority: mixed::fixed_priority, processor::run;
    mixed_mutex_with_jitter: mixed::mutex_with_jitter, processor::run;
    mixed_regulated: mixed::regulated, processor::run;
    mixed_without_preemption: mixed::without_preemption, processor::run;
    mixed_edf: mixed::edf, processor::run;
    mixed_time_slice: mixed::time_slice, slices::run;
    mixed_three_phase: mixed::three_phase, phases::run;
    mixed_globally: mixed::globally, global::run;
    channels_and_chains: chains::generate, chains::run;
}

cases! {
    preemption_delay: caches::one;
    quotas_of_a_tile: quotas::one;
    quotas_of_many_jobs: quotas::many;
}
