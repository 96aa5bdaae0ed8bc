//! The interface through which the machine reports events, for traces.
//!
//! Why it exists: traces must cost nothing when they are not wanted and must never change a tick. Components report facts; an
//! [`Observer`] (see [`crate::trace`]) turns them into a file. What it deliberately does not know: file formats.
//!
//! The reports of each tile, of the links and of the banks are each in time order, but reports of different sources are not
//! ordered relative to each other, because tiles run in windows.

use crate::device::network::{Fate, Frame};
use crate::dram::BankActivity;
use crate::dtu::Observation;
use crate::noc::LinkActivity;
use crate::types::{Owner, Tick, TileId};

/// A mark that software made with a hint instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Marker {
    /// The moment.
    pub tick: Tick,
    /// The tile.
    pub tile: TileId,
    /// The current activity.
    pub activity: u16,
    /// A code of `abi::marker::MarkerKind`, or an application's own.
    pub kind: u16,
    /// The value of the hint's register.
    pub value: u64,
    /// The address of the hint.
    pub pc: u64,
}

/// The state of a hart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HartState {
    /// It executes.
    Running,
    /// It waits for an interrupt or sleeps.
    Idle,
    /// It is stopped.
    Halted,
}

/// The events for which a trace had no room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Missing {
    /// Events.
    pub events: u64,
    /// The time of the first missing event; before it, the trace is complete.
    pub from: Option<Tick>,
}

/// Receives reports. It cannot influence the machine.
pub trait Observer: Send {
    /// A tile's data transfer unit makes a report.
    fn unit(&mut self, at: Tick, tile: TileId, observation: &Observation);
    /// A link sent a packet.
    fn link(&mut self, activity: &LinkActivity);
    /// A bank of a memory tile did work.
    fn bank(&mut self, memory: TileId, activity: &BankActivity);
    /// The state of the hart at a port of a tile changed. A tile without a cluster has port 0.
    fn hart(&mut self, at: Tick, hart: (TileId, usize), state: HartState);
    /// Another activity became current on a tile.
    fn activity(&mut self, at: Tick, owner: Owner);
    /// Software made a mark.
    fn marker(&mut self, marker: &Marker);
    /// The fate of a frame at a tile's network card or on the cable behind it. Observers need not implement this.
    fn frame(&mut self, _at: Tick, _tile: TileId, _frame: &Frame, _fate: Fate) {}
    /// The machine has stopped at this moment; it may go on later. Observers need not implement this.
    fn stopped(&mut self, _at: Tick) {}
    /// The trace as bytes, for the file and for the run's digest. The machine calls it after the run.
    fn bytes(&self) -> Vec<u8>;
    /// Events missing from the trace because there was no room.
    fn missing(&self) -> Missing {
        Missing::default()
    }
}
