//! Markers: hints that the machine records and that cost one no-op elsewhere.
//!
//! Why it exists: the immediate of the instruction must be a constant. What it deliberately does not know: how
//! measurements are paired.

use bulkhead_abi::marker::MarkerKind;
use core::arch::asm;

macro_rules! markers {
    ($($(#[$doc:meta])* $name:ident $kind:ident;)+) => { $(
        $(#[$doc])*
        #[inline(always)]
        pub fn $name(value: u64) {
            // SAFETY: a hint without effect; it counts as touching memory so that measured code stays on its side.
            unsafe { asm!("slti x0, {0}, {1}", in(reg) value, const MarkerKind::$kind as u16, options(nostack)) };
        }
    )+ };
}

/// A marker of a kind that is only recorded; `KIND` is 0x100 to 0x7FF.
#[inline(always)]
pub fn custom<const KIND: u16>(value: u64) {
    // SAFETY: as for the others.
    unsafe { asm!("slti x0, {0}, {1}", in(reg) value, const KIND, options(nostack)) };
}

markers! {
    /// A flow of work begins.
    flow_begin FlowBegin;
    /// A flow of work ends.
    flow_end FlowEnd;
    /// A measured span begins.
    span_begin SpanBegin;
    /// A measured span ends.
    span_end SpanEnd;
    /// The next job is released at this moment.
    job_due JobDue;
    /// A job begins.
    job_release JobRelease;
    /// A job is complete.
    job_complete JobComplete;
    /// A deadline was missed.
    deadline_miss DeadlineMiss;
    /// Warm-up is over.
    measure_begin MeasureBegin;
    /// Measurements are over.
    measure_end MeasureEnd;
    /// An activity stopped because of a fault.
    activity_fault ActivityFault;
    /// A value to compare between runs.
    check Check;
    /// The kernel creates an activity.
    activity_begins ActivityBegins;
    /// A word of its name.
    activity_name ActivityName;
    /// TileMux works because of an interrupt.
    mux_interrupts MuxInterrupts;
    /// TileMux chose which activity runs next.
    mux_runs MuxRuns;
    /// An activity enters the tile or leaves it.
    mux_member MuxMember;
    /// An activity is ready from a moment on.
    mux_ready MuxReady;
    /// A budget can be used from a moment on.
    mux_budget MuxBudget;
    /// TileMux works for an activity, because the kernel asked.
    mux_works MuxWorks;
    /// The unit's next message is a kernel request that an activity asked for.
    kernel_asks KernelAsks;
    /// The heap has no block of this size.
    heap_refused HeapRefused;
}
