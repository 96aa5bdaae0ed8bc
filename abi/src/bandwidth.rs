//! Registers of a bandwidth controller.
//!
//! Source: RISC-V Capacity and Bandwidth Controller QoS Register Interface (CBQRI) 1.0, chapter "Bandwidth-controller QoS Register
//! Interface". The names of the registers are its names. Controls have operation, identifier and status where those of a [capacity
//! controller](crate::cbqri) have them; this controller knows no access types.

pub use crate::cbqri::{
    CAPABILITIES_BLOCKS, CAPABILITIES_VERSION, CONTROL_IDENTIFIER, CONTROL_OPERATION,
    CONTROL_STATUS, MONITOR_EVENT,
};

/// Offset of the read-only capabilities, in bytes as all offsets.
pub const BC_CAPABILITIES: u64 = 0;
/// Offset of the control of monitoring.
pub const BC_MON_CTL: u64 = 8;
/// Offset of the counter's value, read-only.
pub const BC_MON_CTR_VAL: u64 = 16;
/// Offset of the control of allocation.
pub const BC_ALLOC_CTL: u64 = 24;
/// Offset of the limit that an allocation sets or has read.
pub const BC_BW_ALLOC: u64 = 32;
/// End of the registers.
pub const BC_END: u64 = 40;

/// `bc_capabilities`: lowest bit of the most blocks that can be reserved (`MRBWB`, 16 bits).
pub const CAPABILITIES_RESERVABLE: u32 = 32;
/// An identifier in a control register.
pub const IDENTIFIER_MASK: u64 = 0xFFF;
/// Fields of `bc_mon_ctl` that software can write.
pub const MONITOR_FIELDS: u64 =
    CONTROL_OPERATION | IDENTIFIER_MASK << CONTROL_IDENTIFIER | 0xFF << MONITOR_EVENT;
/// Fields of `bc_alloc_ctl` that software can write.
pub const ALLOCATION_FIELDS: u64 = CONTROL_OPERATION | IDENTIFIER_MASK << CONTROL_IDENTIFIER;
/// `bc_mon_ctr_val`: the count, in bytes.
pub const COUNTER_MASK: u64 = (1 << 62) - 1;
/// `bc_bw_alloc`: reserved blocks (`Rbwb`).
pub const LIMIT_RESERVED: u64 = 0xFFFF;
/// `bc_bw_alloc`: lowest bit of the weight (`Mweight`, 8 bits).
pub const LIMIT_WEIGHT: u32 = 20;
/// Fields of `bc_bw_alloc`.
pub const LIMIT_FIELDS: u64 = LIMIT_RESERVED | 0xFF << LIMIT_WEIGHT;

/// `bc_mon_ctl`: sets what a counter counts.
pub const CONFIG_EVENT: u64 = 1;
/// `bc_mon_ctl`: reads a counter into `bc_mon_ctr_val`.
pub const READ_COUNTER: u64 = 2;
/// `bc_alloc_ctl`: sets the limit of an RCID to `bc_bw_alloc`.
pub const CONFIG_LIMIT: u64 = 1;
/// `bc_alloc_ctl`: reads that limit into `bc_bw_alloc`.
pub const READ_LIMIT: u64 = 2;

/// Event: the counter does not count.
pub const EVENT_NONE: u64 = 0;
/// Event: bytes read and written.
pub const EVENT_ALL: u64 = 1;
/// Event: bytes read.
pub const EVENT_READS: u64 = 2;
/// Event: bytes written.
pub const EVENT_WRITES: u64 = 3;

/// Status: done.
pub const SUCCESS: u64 = 1;
/// Status: there is no such operation.
pub const INVALID_OPERATION: u64 = 2;
/// Status: there is no such RCID or MCID.
pub const INVALID_IDENTIFIER: u64 = 3;
/// Status of monitoring: there is no such event.
pub const INVALID_EVENT: u64 = 4;
/// Status of an allocation: no block, or more than can be reserved.
pub const INVALID_BLOCKS: u64 = 5;

#[cfg(test)]
mod tests {
    use super::*;

    /// Table "Bandwidth-controller QoS Register Layout", and the figures of the registers: widths from bit 0 on.
    #[test]
    fn registers_and_fields_are_where_the_specification_has_them() {
        let offsets = [
            BC_CAPABILITIES,
            BC_MON_CTL,
            BC_MON_CTR_VAL,
            BC_ALLOC_CTL,
            BC_BW_ALLOC,
        ];
        assert_eq!((offsets, BC_END), ([0, 8, 16, 24, 32], 32 + 8));
        // VER 8, NBWBLKS 16, RPFX 1, P 4, WPRI 3, MRBWB 16.
        assert_eq!(CAPABILITIES_BLOCKS, 8);
        assert_eq!(CAPABILITIES_RESERVABLE, 8 + 16 + 1 + 4 + 3);
        // OP 5, AT 3, MCID or RCID 12, EVT_ID 8.
        assert_eq!(MONITOR_FIELDS, 0x1F | 0xFFF << 8 | 0xFF << 20);
        assert_eq!(ALLOCATION_FIELDS, 0x1F | 0xFFF << 8);
        // Rbwb 16, WPRI 4, Mweight 8.
        assert_eq!((LIMIT_RESERVED, LIMIT_WEIGHT), ((1 << 16) - 1, 16 + 4));
        // CTR 62, INV 1, OVF 1.
        assert_eq!(COUNTER_MASK, u64::MAX >> 2);
    }
}
