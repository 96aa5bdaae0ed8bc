//! A memory controller in plain structures.
//!
//! Why it exists: as the rest of a configuration. What it deliberately does not know: how a controller works (`crate::dram`).

use crate::types::Tick;

/// Which request is served first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Policy {
    /// First come, first served.
    Fcfs,
    /// Accesses to open rows first, then the oldest.
    FirstReady {
        /// How many bursts may pass the oldest access of the channel while only its bank's hits or the data bus hold it back.
        cap: u32,
    },
    /// Round robin over the requesters ([`Turns`]); each burst has a slot of fixed length.
    Slots,
}

/// The requesters that take turns under [`Policy::Slots`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Turns {
    /// Each tile.
    Tile,
    /// Each hart of a cluster, and each tile without one.
    Hart,
}

/// Bounds of a write queue, in bursts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WriteQueue {
    /// How many it holds.
    pub size: u32,
    /// A drain begins at this many.
    pub high: u32,
    /// A drain ends at this many.
    pub low: u32,
}

/// A bandwidth controller ([`bulkhead_abi::bandwidth`]) of a memory whose controller serves in slots. A block is a slot; so is a burst.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BandwidthConfig {
    /// Blocks of a window, that is, its length in slots: 2 to 65535.
    pub blocks: u16,
    /// RCIDs, numbered from 0.
    pub rcids: u16,
    /// MCIDs, numbered from 0.
    pub mcids: u16,
}

/// What an RCID of a bandwidth controller has when the machine starts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InitialShare {
    /// The RCID.
    pub rcid: u16,
    /// Slots of each window that it gets before all others.
    pub reserved: u16,
    /// Its weight for further slots; 0: it gets no further slots.
    pub weight: u8,
}

/// The parameters of a controller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ControllerConfig {
    /// Constraints between commands.
    pub timing: Timing,
    /// Addresses.
    pub map: AddressMap,
    /// Bytes of a burst.
    pub burst_bytes: u64,
    /// Arrival to the queue; at least one cycle.
    pub frontend: Tick,
    /// Which request is served first.
    pub policy: Policy,
    /// The requesters that have turns under [`Policy::Slots`].
    pub turns: Turns,
    /// Whether a row is closed when no waiting request needs it.
    pub closed_page: bool,
    /// How many segments of requests the policy sees at once; younger ones wait outside. With slots, each requester has its own queue,
    /// which no other requester can fill, and this is not used.
    pub queue: u32,
    /// The queue of writes, if they may be late.
    pub write_queue: Option<WriteQueue>,
}

impl ControllerConfig {
    /// DDR3-1600 in order of arrival, with `cycle` ticks per cycle of the command clock (JEDEC JESD79-3F, 11-11-11; tRFC of chips of 1 Gbit is
    /// 110 ns, of 2 Gbit 160 ns: 128 cycles): one channel of 64 bits, eight banks, rows of 8 KiB to the banks in turn.
    pub const fn ddr3(cycle: Tick) -> Self {
        Self {
            timing: Timing {
                cycle,
                burst: 4 * cycle,
                cas: 11 * cycle,
                write_cas: 8 * cycle,
                activate: 11 * cycle,
                precharge: 11 * cycle,
                row_active: 28 * cycle,
                read_to_precharge: 6 * cycle,
                write_recovery: 12 * cycle,
                column: 4 * cycle,
                activate_gap: 5 * cycle,
                four_activates: 24 * cycle,
                write_to_read: 6 * cycle,
                read_to_write: 2 * cycle,
                refresh_interval: 6240 * cycle,
                refresh: 128 * cycle,
            },
            map: AddressMap {
                size: 1 << 32,
                channels: 1,
                channel_interleave: Some(8192),
                banks: 8,
                bank_interleave: Some(8192),
                row: 8192,
                xor: false,
            },
            burst_bytes: 64,
            frontend: 8 * cycle,
            policy: Policy::Fcfs,
            turns: Turns::Tile,
            closed_page: false,
            queue: 32,
            write_queue: None,
        }
    }

    /// Whether there can be such a controller.
    ///
    /// # Errors
    /// What cannot be.
    pub fn check(&self) -> Result<(), String> {
        let (t, map) = (&self.timing, &self.map);
        let wrong = if t.cycle == 0 || t.burst == 0 || map.banks == 0 || map.channels == 0 {
            "cycle, burst, banks and channels must be at least 1"
        } else if !map.row.is_power_of_two()
            || !self.burst_bytes.is_power_of_two()
            || self.burst_bytes > map.row
        {
            "row and burst must be powers of two, and a burst at most a row"
        } else if t.refresh_interval != 0 && t.refresh >= t.refresh_interval {
            "a refresh must be shorter than the interval"
        } else if self.frontend < t.cycle || self.queue == 0 {
            "the front end takes a cycle, and the queue has a place"
        } else if self.policy == Policy::Slots && self.write_queue.is_some() {
            "slots have no write queue"
        } else {
            return Ok(());
        };
        Err(format!("dram: {wrong}"))
    }
}

/// Times in ticks, each a multiple of `cycle`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timing {
    /// A cycle of the command clock.
    pub cycle: Tick,
    /// Data of a burst on the bus.
    pub burst: Tick,
    /// Read to first data (tCL).
    pub cas: Tick,
    /// Write to first data (tCWL).
    pub write_cas: Tick,
    /// Activate to column access (tRCD).
    pub activate: Tick,
    /// Precharge to activate (tRP).
    pub precharge: Tick,
    /// Activate to precharge (tRAS).
    pub row_active: Tick,
    /// Read to precharge (tRTP).
    pub read_to_precharge: Tick,
    /// End of write data to precharge (tWR).
    pub write_recovery: Tick,
    /// Column access to column access (tCCD).
    pub column: Tick,
    /// Activate to activate of another bank (tRRD).
    pub activate_gap: Tick,
    /// Window of at most four activates (tFAW).
    pub four_activates: Tick,
    /// End of write data to read (tWTR).
    pub write_to_read: Tick,
    /// Gap on the data bus between a read's data and a write's (tRTW).
    pub read_to_write: Tick,
    /// Refresh to refresh (tREFI); 0: no refresh.
    pub refresh_interval: Tick,
    /// Length of a refresh (tRFC).
    pub refresh: Tick,
}

/// How the addresses of a memory are spread over its channels and banks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressMap {
    /// Bytes of the memory; a multiple of channels x banks x row.
    pub size: u64,
    /// Channels.
    pub channels: u32,
    /// Consecutive bytes in one channel; `None`: each channel is one contiguous part of the memory.
    pub channel_interleave: Option<u64>,
    /// Banks of a channel.
    pub banks: u32,
    /// Consecutive bytes of a channel in one bank, at most a row; `None`: each bank is one contiguous part of its channel.
    pub bank_interleave: Option<u64>,
    /// Bytes of a row.
    pub row: u64,
    /// The bank's number is combined with the low bits of the row's by exclusive or, so that strides of whole rows spread over the
    /// banks (permutation-based interleaving: Zhang, Zhu, Zhang, MICRO 2000). Banks must be a power of two.
    pub xor: bool,
}
