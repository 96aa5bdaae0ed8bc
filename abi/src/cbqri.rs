//! Registers of a capacity controller, and the register of a hart that names its shares.
//!
//! Sources: RISC-V Capacity and Bandwidth Controller QoS Register Interface (CBQRI) 1.0, chapter "Capacity-controller QoS Register
//! Interface"; "Ssqosid" extension 1.0 of the privileged architecture. The names are theirs.

/// The CSR `srmcfg` (supervisor resource management configuration).
pub const SRMCFG: u16 = 0x181;
/// Lowest bit of the resource-control identifier (RCID) in `srmcfg`.
pub const SRMCFG_RCID: u32 = 0;
/// Lowest bit of the monitoring-counter identifier (MCID) in `srmcfg`.
pub const SRMCFG_MCID: u32 = 16;
/// Bits of either identifier, at most.
pub const IDENTIFIER_BITS: u32 = 12;

/// Offset of the read-only capabilities, in bytes as all offsets.
pub const CC_CAPABILITIES: u64 = 0;
/// Offset of the control of monitoring.
pub const CC_MON_CTL: u64 = 8;
/// Offset of the counter's value, read-only.
pub const CC_MON_CTR_VAL: u64 = 16;
/// Offset of the control of allocation.
pub const CC_ALLOC_CTL: u64 = 24;
/// Offset of the mask of capacity blocks; 64 bits for up to 64 blocks.
pub const CC_BLOCK_MASK: u64 = 32;
/// Offset of the limit of capacity units behind a mask of 64 bits.
pub const CC_CUNITS: u64 = 40;
/// End of the registers.
pub const CC_END: u64 = 48;

/// `cc_capabilities`: version 1.0 in bits 7 to 0.
pub const CAPABILITIES_VERSION: u64 = 0x10;
/// `cc_capabilities`: lowest bit of the number of capacity blocks (16 bits).
pub const CAPABILITIES_BLOCKS: u32 = 8;
/// `cc_capabilities`: the operation [`allocation::FLUSH_RCID`] exists.
pub const CAPABILITIES_FLUSH: u64 = 1 << 24;

/// Controls: bits 4 to 0 have the operation.
pub const CONTROL_OPERATION: u64 = 0x1F;
/// Controls: lowest bit of the access type (3 bits).
pub const CONTROL_TYPE: u32 = 5;
/// Controls: lowest bit of the identifier (12 bits): RCID of an allocation, MCID of monitoring.
pub const CONTROL_IDENTIFIER: u32 = 8;
/// `cc_mon_ctl`: lowest bit of the event (8 bits).
pub const MONITOR_EVENT: u32 = 20;
/// `cc_mon_ctl`: the access type counts.
pub const MONITOR_TYPE_VALID: u64 = 1 << 28;
/// Controls: lowest bit of the read-only status (7 bits).
pub const CONTROL_STATUS: u32 = 32;
/// Controls: the read-only bit that says that the operation is under way.
pub const CONTROL_BUSY: u64 = 1 << 39;
/// `cc_mon_ctr_val`: the counter is not valid.
pub const COUNTER_INVALID: u64 = 1 << 63;

/// Access type of loads, stores and walks.
pub const TYPE_DATA: u64 = 0;
/// Access type of fetches.
pub const TYPE_CODE: u64 = 1;

/// `cc_mon_ctl.EVT_ID`: the counter does not count.
pub const EVENT_NONE: u64 = 0;
/// `cc_mon_ctl.EVT_ID`: capacity units that requests with this MCID have allocated and that are still allocated.
pub const EVENT_OCCUPANCY: u64 = 1;

/// Operations of `cc_alloc_ctl`.
pub mod allocation {
    /// Sets the limit of an RCID and access type to `cc_block_mask`.
    pub const CONFIG_LIMIT: u64 = 1;
    /// Reads that limit into `cc_block_mask`.
    pub const READ_LIMIT: u64 = 2;
    /// Writes back and deallocates what an RCID has allocated for an access type.
    pub const FLUSH_RCID: u64 = 3;
    /// Status: done.
    pub const SUCCESS: u64 = 1;
    /// Status: there is no such operation.
    pub const INVALID_OPERATION: u64 = 2;
    /// Status: there is no such RCID.
    pub const INVALID_RCID: u64 = 3;
    /// Status: there is no such access type.
    pub const INVALID_TYPE: u64 = 4;
    /// Status: the mask names no capacity block.
    pub const INVALID_MASK: u64 = 5;
}

/// Operations of `cc_mon_ctl`.
pub mod monitoring {
    /// Sets what a counter counts.
    pub const CONFIG_EVENT: u64 = 1;
    /// Reads a counter into `cc_mon_ctr_val`.
    pub const READ_COUNTER: u64 = 2;
    /// Status: done.
    pub const SUCCESS: u64 = 1;
    /// Status: there is no such operation.
    pub const INVALID_OPERATION: u64 = 2;
    /// Status: there is no such MCID.
    pub const INVALID_MCID: u64 = 3;
    /// Status: there is no such event.
    pub const INVALID_EVENT: u64 = 4;
    /// Status: there is no such access type.
    pub const INVALID_TYPE: u64 = 5;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Table "Capacity-controller QoS Register Layout" of CBQRI 1.0: a mask of up to 64 blocks has BMW = 64, so `cc_cunits` is at
    /// N = 32 + BMW/8.
    #[test]
    fn registers_are_where_the_specification_has_them() {
        assert_eq!(CC_CAPABILITIES, 0);
        assert_eq!(CC_MON_CTL, 8);
        assert_eq!(CC_MON_CTR_VAL, 16);
        assert_eq!(CC_ALLOC_CTL, 24);
        assert_eq!(CC_BLOCK_MASK, 32);
        assert_eq!(CC_CUNITS, 32 + 64 / 8);
    }

    /// The figures of the registers give widths from bit 0 on; positions are sums of the widths before.
    #[test]
    fn fields_are_where_the_figures_have_them() {
        // VER 8, NCBLKS 16, FRCID 1, CUNITS 1, RPFX 1, P 4.
        assert_eq!(CAPABILITIES_BLOCKS, 8);
        assert_eq!(CAPABILITIES_FLUSH, 1 << (8 + 16));
        assert_eq!(CAPABILITIES_VERSION, 0x10, "major 1 in the high nibble");
        // cc_mon_ctl: OP 5, AT 3, MCID 12, EVT_ID 8, ATV 1, WPRI 3, STATUS 7, BUSY 1.
        assert_eq!(CONTROL_OPERATION, (1 << 5) - 1);
        assert_eq!(CONTROL_TYPE, 5);
        assert_eq!(CONTROL_IDENTIFIER, 5 + 3);
        assert_eq!(MONITOR_EVENT, 5 + 3 + 12);
        assert_eq!(MONITOR_TYPE_VALID, 1 << (5 + 3 + 12 + 8));
        assert_eq!(CONTROL_STATUS, 5 + 3 + 12 + 8 + 1 + 3);
        assert_eq!(CONTROL_BUSY, 1 << (32 + 7));
        // cc_alloc_ctl: OP 5, AT 3, RCID 12, WPRI 12, STATUS 7, BUSY 1.
        assert_eq!(CONTROL_STATUS, 5 + 3 + 12 + 12);
        // cc_mon_ctr_val: CTR 63, INV 1.
        assert_eq!(COUNTER_INVALID, 1 << 63);
        // srmcfg: RCID 12, WPRI 4, MCID 12.
        assert_eq!((SRMCFG_RCID, SRMCFG_MCID, IDENTIFIER_BITS), (0, 12 + 4, 12));
        assert_eq!(SRMCFG, 0x181);
    }
}
