//! The kernel's books: what there was at boot, and whether all of it is there again when nobody is left.
//!
//! Why it exists: an activity can die at any moment, and whether everything came back is to be seen on the chip, too, where real servers
//! and units are. With the boot module [`MODULE`] the kernel closes its books when the root manager has ended: it says what everybody who
//! is left has, ends all, takes back what it gave away itself, and compares. What it deliberately does not know: who died and when.

use crate::hardware::Hardware;
use crate::root;
use crate::system::System;
use alloc::vec::Vec;
use bulkhead_capabilities::{Holding, NodeId, Object};
use core::fmt;

/// Name of the boot module whose presence asks for this; no program has such a name.
pub const MODULE: &str = "kernel:books";

/// What there is when nobody is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Books {
    capabilities: Vec<(NodeId, Object)>,
    endpoints: Vec<usize>,
}

/// `NAME has ...`, a line for each activity.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    /// The activity's name.
    pub name: &'a str,
    /// What it has.
    pub holding: Holding,
}

impl fmt::Display for Entry<'_> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Holding {
            capabilities,
            kernel_memory,
            endpoints,
            page_tables,
            memory,
            quotas,
            purses,
        } = self.holding;
        write!(
            f,
            "books: {} has {capabilities} capabilities, {kernel_memory} bytes of kernel memory in use and {purses} in purses, \
             {endpoints} endpoints, {page_tables} page tables, {memory} bytes of memory; quotas {quotas:?}",
            self.name
        )
    }
}

/// What is not as it was at boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// A capability that was there at boot is not, or has not all that it had.
    Less(Object),
    /// A capability that was not there at boot.
    More(Object),
    /// A tile has so many free endpoints less.
    Endpoints(u16, usize),
    /// An activity that did not end.
    Activity(u16),
    /// Somebody still waits, or is to be told something.
    Waiting(usize),
}

impl System {
    /// The books of this moment.
    pub fn books(&mut self) -> Books {
        Books {
            capabilities: self.space().alive().collect(),
            endpoints: self.tiles().map(|tile| tile.endpoints.left()).collect(),
        }
    }

    /// Takes back what the kernel gave the root manager, after the manager's end. Whoever is left is stopped by that.
    pub fn take_back(&mut self, hardware: &mut impl Hardware) {
        root::take_back(self, hardware);
    }

    /// Compares with the books of another moment, when nobody was there.
    pub fn missing(&mut self, then: &Books) -> Vec<Missing> {
        let now = self.books();
        let mut all = Vec::new();
        let only = |left: &Books, right: &Books| -> Vec<Object> {
            let mine = left.capabilities.iter();
            let other = |entry: &&(NodeId, Object)| !right.capabilities.contains(entry);
            mine.filter(other).map(|(_, object)| *object).collect()
        };
        all.extend(only(then, &now).into_iter().map(Missing::Less));
        all.extend(only(&now, then).into_iter().map(Missing::More));
        let tiles = self.tiles().zip(then.endpoints.iter());
        let less = tiles.map(|(tile, left)| (tile.id, left.saturating_sub(tile.endpoints.left())));
        all.extend(
            less.filter(|(_, less)| *less > 0)
                .map(|(id, less)| Missing::Endpoints(id, less)),
        );
        all.extend(self.numbers_in_use().map(Missing::Activity));
        let waiting = self.unfinished();
        if waiting > 0 {
            all.push(Missing::Waiting(waiting));
        }
        all
    }
}
