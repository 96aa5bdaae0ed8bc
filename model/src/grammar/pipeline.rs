//! The element of a pipeline.

use super::Kind::{Boolean, Choice, Integer, Name};
use super::platform::{CLOCK, CYCLES, ENTRIES, SOURCE};
use super::{ElementRule, any, default, optional, required};

/// Cycles until a result can be used; the machine's schedules hold no more.
const RESULT: super::Kind = Integer { min: 1, max: 1000 };

/// Entries of a queue of loads or stores.
const QUEUE: super::Kind = Integer { min: 1, max: 256 };
/// Instructions per cycle.
const UNITS: super::Kind = Integer { min: 1, max: 16 };

/// See [`super::PLATFORM`].
pub const PIPELINE: ElementRule = ElementRule {
    name: "pipeline",
    about: "How a hart spends time, in cycles of its clock.",
    attributes: &[
        required("name", Name, "Name of the pipeline."),
        CLOCK,
        default(
            "model",
            Choice(&["inorder", "interval"]),
            "inorder",
            "`inorder`: stall on use, one instruction a cycle. `interval`: out of order, with the attributes from `width` to `float-units`.",
        ),
        required(
            "load-to-use",
            RESULT,
            "Time from the issue of a load that hits the first level until an instruction can use the result.",
        ),
        required(
            "multiply",
            RESULT,
            "Latency of an integer multiplication (pipelined).",
        ),
        required(
            "divide",
            RESULT,
            "Latency of an integer division (not pipelined).",
        ),
        required(
            "fp-add",
            RESULT,
            "Latency of floating-point addition, subtraction, comparison and conversion.",
        ),
        required(
            "fp-multiply",
            RESULT,
            "Latency of floating-point multiplication.",
        ),
        required("fp-fma", RESULT, "Latency of fused multiply-add."),
        required("fp-divide", RESULT, "Latency of floating-point division."),
        required("fp-sqrt", RESULT, "Latency of a square root."),
        required(
            "branch-penalty",
            CYCLES,
            "Extra cycles of a mispredicted branch, return or indirect jump.",
        ),
        required(
            "jump-penalty",
            CYCLES,
            "Extra cycles of a correctly predicted taken branch or direct jump.",
        ),
        required(
            "predictor-entries",
            ENTRIES,
            "Two-bit counters of the branch predictor, a power of two; 0: static prediction.",
        ),
        required(
            "return-stack",
            ENTRIES,
            "Entries of the return-address stack; 0: none.",
        ),
        required(
            "store-buffer",
            Integer { min: 1, max: 64 },
            "Stores that may be under way.",
        ),
        required(
            "load-buffer",
            QUEUE,
            "`inorder`: loads that may be under way, 16 at most. `interval`: loads that have been dispatched and have not retired.",
        ),
        optional(
            "width",
            UNITS,
            "Only `interval`: instructions that are dispatched, and that retire, in a cycle.",
        ),
        optional(
            "window",
            Integer { min: 1, max: 1024 },
            "Only `interval`: instructions that have been dispatched and have not retired (entries of the reorder buffer).",
        ),
        optional(
            "store-queue",
            QUEUE,
            "Only `interval`: stores that have been dispatched and have not retired; retired ones are in the store buffer.",
        ),
        optional(
            "alus",
            UNITS,
            "Only `interval`: integer operations and branches that issue in a cycle.",
        ),
        optional(
            "memory-ports",
            UNITS,
            "Only `interval`: loads and stores that issue in a cycle.",
        ),
        optional(
            "float-units",
            UNITS,
            "Only `interval`: floating-point operations that issue in a cycle, divisions and roots apart.",
        ),
        required(
            "trap-entry",
            CYCLES,
            "Extra cycles to enter a trap handler or to return from it.",
        ),
        required(
            "mmio",
            CYCLES,
            "Extra cycles of an access to a device register.",
        ),
        required(
            "tlb-entries",
            Integer {
                min: 4,
                max: 65_536,
            },
            "Entries of each first-level TLB.",
        ),
        required(
            "l2-tlb-entries",
            ENTRIES,
            "Entries of the second-level TLB, a power of two; 0: none.",
        ),
        required(
            "l2-tlb-latency",
            CYCLES,
            "Cycles of a hit in the second-level TLB.",
        ),
        default(
            "page-walk",
            Choice(&["timed"]),
            "timed",
            "`timed`, the only value: page-table walks go through the data cache and take its time.",
        ),
        default(
            "hardware-ad",
            Boolean,
            "true",
            "The walker sets accessed and dirty bits itself; otherwise it faults.",
        ),
        SOURCE,
    ],
    children: &[any("origin")],
};
