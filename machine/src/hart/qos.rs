//! Ssqosid 1.0: the register `srmcfg`, which names the shares that the hart's requests use.
//!
//! Why it exists: controllers of shared resources limit and count by two identifiers, which software chooses here and which go with each
//! request. They apply in all modes of the hart. What it deliberately does not know: what a controller does with them.

use super::bus::Bus;
use super::core::Core;
use bulkhead_abi::cbqri::{SRMCFG_MCID, SRMCFG_RCID};

/// The identifiers of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QosIds {
    /// The limits that it uses (RCID).
    pub rcid: u16,
    /// The counters that count it (MCID).
    pub mcid: u16,
}

/// The values that `srmcfg` of a hart may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QosRange {
    /// RCIDs below this one are legal; a power of two, at most 4096.
    pub rcids: u16,
    /// The same for MCIDs.
    pub mcids: u16,
    /// The only legal RCID of this hart, if it cannot choose.
    pub only: Option<u16>,
}

/// The register and its range.
#[derive(Clone, Copy, Debug)]
pub(super) struct Qos {
    range: QosRange,
    pub ids: QosIds,
}

impl Qos {
    /// The value after a reset: as the specification suggests, RCID 0 and MCID 0; or the only legal RCID.
    pub fn new(range: QosRange) -> Self {
        let rcid = range.only.unwrap_or(0);
        Self {
            range,
            ids: QosIds { rcid, mcid: 0 },
        }
    }

    pub fn read(&self) -> u64 {
        u64::from(self.ids.rcid) << SRMCFG_RCID | u64::from(self.ids.mcid) << SRMCFG_MCID
    }

    /// Both fields take any value and keep a legal one: as many low bits as the legal identifiers have.
    pub fn write(&mut self, value: u64) {
        let field = |at: u32, count: u16| (value >> at) as u16 & (count - 1);
        self.ids = QosIds {
            rcid: self
                .range
                .only
                .unwrap_or_else(|| field(SRMCFG_RCID, self.range.rcids)),
            mcid: field(SRMCFG_MCID, self.range.mcids),
        };
    }
}

impl Core {
    /// Tells the bus which identifiers the following requests carry.
    #[cold]
    pub(super) fn identify<B: Bus>(&self, bus: &mut B) {
        if let Some(qos) = &self.csr.qos {
            bus.identify(qos.ids);
        }
    }
}
