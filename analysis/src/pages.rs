//! The examples from the book's pages on analyses, as documentation tests: they compile, and what they say
//! is true.
//!
//! It deliberately holds nothing else, and exists in documentation tests only.

#[doc = include_str!("../../docs/analyses/edf-demand.md")]
pub struct EdfDemand;
#[doc = include_str!("../../docs/analyses/edf-response.md")]
pub struct EdfResponse;
#[doc = include_str!("../../docs/analyses/fixed-priority.md")]
pub struct FixedPriority;
#[doc = include_str!("../../docs/analyses/global-edf.md")]
pub struct GlobalEdf;
#[doc = include_str!("../../docs/analyses/global-fixed-priority.md")]
pub struct GlobalFixedPriority;
#[doc = include_str!("../../docs/analyses/harmonic.md")]
pub struct Harmonic;
#[doc = include_str!("../../docs/analyses/mc2-buffers.md")]
pub struct Mc2Buffers;
#[doc = include_str!("../../docs/analyses/mc2-levels.md")]
pub struct Mc2Levels;
#[doc = include_str!("../../docs/analyses/mc2-ways.md")]
pub struct Mc2Ways;
#[doc = include_str!("../../docs/analyses/memguard.md")]
pub struct Memguard;
#[doc = include_str!("../../docs/analyses/memory-banks.md")]
pub struct MemoryBanks;
#[doc = include_str!("../../docs/analyses/memory-mutex.md")]
pub struct MemoryMutex;
#[doc = include_str!("../../docs/analyses/network-calculus.md")]
pub struct NetworkCalculus;
#[doc = include_str!("../../docs/analyses/one-shot.md")]
pub struct OneShot;
#[doc = include_str!("../../docs/analyses/partitioning.md")]
pub struct Partitioning;
#[doc = include_str!("../../docs/analyses/periodic.md")]
pub struct Periodic;
#[doc = include_str!("../../docs/analyses/preemption-delay.md")]
pub struct PreemptionDelay;
#[doc = include_str!("../../docs/analyses/table.md")]
pub struct Table;
#[doc = include_str!("../../docs/analyses/tardiness.md")]
pub struct Tardiness;
#[doc = include_str!("../../docs/analyses/three-phase.md")]
pub struct ThreePhase;
#[doc = include_str!("../../docs/analyses/threshold.md")]
pub struct Threshold;
