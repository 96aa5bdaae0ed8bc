//! Pipeline parameters of a hart.
//!
//! A plain structure, so that the hart does not know where its parameters come from (the runner fills it from a
//! platform description). All latencies are cycles of the hart's own clock.

use crate::types::LINE_MAX;

/// How the hart spends time. Latencies are in cycles; `1` as a latency means that the next instruction can use the
/// result without a bubble.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HartConfig {
    /// Ticks of the machine in one cycle of the hart; at least 1.
    pub ticks_per_cycle: u64,
    /// Bytes of an instruction or data cache line; a power of two from 16 to 128.
    pub line: u32,
    /// From the issue of a load that hits the first level to the issue of an instruction that uses the result.
    pub load_to_use: u32,
    /// Latency of a pipelined integer multiplication.
    pub multiply: u32,
    /// Latency of an integer division, during which no other division starts.
    pub divide: u32,
    /// Latency of FP addition, subtraction, comparison, conversion and sign operations.
    pub fp_add: u32,
    /// Latency of FP multiplication.
    pub fp_multiply: u32,
    /// Latency of fused multiply-add.
    pub fp_fma: u32,
    /// Latency of FP division.
    pub fp_divide: u32,
    /// Latency of FP square root.
    pub fp_sqrt: u32,
    /// Extra cycles of a mispredicted branch, return or indirect jump.
    pub branch_penalty: u32,
    /// Extra cycles of a correctly predicted taken branch or direct jump.
    pub jump_penalty: u32,
    /// Two-bit counters of the branch predictor, a power of two; 0: static prediction (backward taken).
    pub predictor_entries: u32,
    /// Entries of the return-address stack; 0: none.
    pub return_stack: u32,
    /// Maximum number of outstanding stores; at least 1.
    pub store_buffer: u32,
    /// Maximum number of outstanding loads; 1 to 16.
    pub load_buffer: u32,
    /// Extra cycles to enter a trap handler or return from it (pipeline flush and redirect).
    pub trap_entry: u32,
    /// Extra cycles of an access to a device register, in addition to the device's own.
    pub mmio: u32,
    /// Entries of the fully associative first-level TLB (one for instructions, one for data); at least 4.
    pub tlb_entries: u32,
    /// Entries of the unified direct-mapped second-level TLB, a power of two; 0: none.
    pub l2_tlb_entries: u32,
    /// Cycles of a second-level TLB hit.
    pub l2_tlb_latency: u32,
    /// The walker sets the accessed and dirty bits itself (as QEMU 7.2 and Svadu do); otherwise it faults.
    pub hardware_ad: bool,
    /// Parameters of out-of-order execution, in which `load_buffer` has no meaning; `None`: in order, stall on use.
    pub interval: Option<IntervalConfig>,
}

/// The limits of an out-of-order pipeline besides latencies, the predictor and the store buffer. Zero counts as 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IntervalConfig {
    /// Instructions dispatched, and retired, per cycle.
    pub width: u32,
    /// Instructions between dispatch and retirement (entries of the reorder buffer).
    pub window: u32,
    /// Loads among them.
    pub load_queue: u32,
    /// Stores among them.
    pub store_queue: u32,
    /// Integer operations and branches that issue per cycle.
    pub alus: u32,
    /// Load and store addresses computed per cycle.
    pub memory_ports: u32,
    /// FP operations that issue per cycle. There is one FP divider and one integer divider, neither pipelined, and one multiplier.
    pub float_units: u32,
}

/// Most cycles of an operation. The schedule of straight-line code counts in 16 bits, and a line holds at most this many instructions.
pub const LATENCY_MAX: u32 = 1000;
const _: () = assert!(LATENCY_MAX as usize * (LINE_MAX / 2) < u16::MAX as usize);

impl HartConfig {
    /// What the machine relies on.
    ///
    /// # Errors
    /// What is wrong, and what would be right.
    pub(crate) fn check(&self) -> Result<(), String> {
        if self.ticks_per_cycle == 0 {
            return Err("the hart's clock has no ticks".into());
        }
        let most = self.latencies().into_iter().fold(0, u32::max);
        match most > LATENCY_MAX {
            true => Err(format!(
                "an operation of the pipeline takes {most} cycles, and {LATENCY_MAX} are the most"
            )),
            false => Ok(()),
        }
    }

    /// Latencies in cycles, at least 1, in the order of [`Unit`](super::isa::Unit).
    pub(super) fn latencies(&self) -> [u32; 9] {
        let latency = [
            1,
            self.load_to_use,
            self.multiply,
            self.divide,
            self.fp_add,
            self.fp_multiply,
            self.fp_fma,
            self.fp_divide,
            self.fp_sqrt,
        ];
        latency.map(|cycles| cycles.max(1))
    }
}

impl Default for HartConfig {
    /// A generic five-stage core, with latencies close to Rocket's. They come from no paper; each platform states its own.
    fn default() -> Self {
        Self {
            ticks_per_cycle: 1,
            line: 64,
            load_to_use: 2,
            multiply: 4,
            divide: 34,
            fp_add: 4,
            fp_multiply: 4,
            fp_fma: 4,
            fp_divide: 20,
            fp_sqrt: 25,
            branch_penalty: 3,
            jump_penalty: 1,
            predictor_entries: 512,
            return_stack: 6,
            store_buffer: 4,
            load_buffer: 2,
            trap_entry: 5,
            mmio: 6,
            tlb_entries: 32,
            l2_tlb_entries: 128,
            l2_tlb_latency: 2,
            hardware_ad: true,
            interval: None,
        }
    }
}
