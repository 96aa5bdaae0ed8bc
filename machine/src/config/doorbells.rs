//! The doorbells of a chip: by which harts of different tiles interrupt each other.
//!
//! What it deliberately does not know: the registers ([`bulkhead_abi::doorbell`]).

use super::{ConfigError, PlatformConfig, PlatformKind};
use crate::types::{Owner, Tick, TileId};
use bulkhead_abi::doorbell::HARTS;
use bulkhead_abi::memory_map::DMA_ENGINES;

/// The doorbells of a bare chip: a part of their own, whose registers all harts reach over the network. Every tile then has an interrupt
/// controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DoorbellsConfig {
    /// Number on the network.
    pub id: TileId,
    /// Router that it is attached to (ignored by a crossbar).
    pub router: u16,
    /// Ticks a cycle.
    pub cycle: Tick,
    /// Cycles from the arrival of an access to its effect and its answer; at least 1.
    pub registers: u64,
    /// The harts that reach the registers, each with those that it may ring: bit `h` is hart `h` of [`PlatformConfig::bells`]. `None`: all
    /// harts ring all.
    pub users: Option<Vec<(Owner, u64)>>,
}

impl PlatformConfig {
    /// The harts of the chip, in the order in which doorbells number them: by tile, and in a tile by port.
    pub fn bells(&self) -> Vec<Owner> {
        let ports = self.tiles.iter().map(|tile| {
            let cluster = tile.cluster.as_ref();
            let harts = cluster.map_or(1, |cluster| cluster.harts.len() as u16);
            (tile.id, harts)
        });
        let harts = ports.flat_map(|(tile, harts)| (0..harts).map(move |port| (tile, port)));
        harts.map(|(tile, port)| Owner::new(tile, port)).collect()
    }

    /// Doorbells: on bare chips with few enough harts.
    pub(super) fn validate_doorbells(&self) -> Result<(), ConfigError> {
        let fail = |what: String| {
            Err(ConfigError {
                platform: self.name.clone(),
                what,
            })
        };
        let Some(doorbells) = &self.doorbells else {
            return Ok(());
        };
        let (id, harts) = (doorbells.id, self.bells().len());
        if self.kind != PlatformKind::Bare {
            return fail(format!("doorbells {id} need a bare platform"));
        }
        if doorbells.cycle == 0 || doorbells.registers == 0 {
            return fail(format!(
                "doorbells {id}: cycle and registers must be at least 1"
            ));
        }
        if harts > HARTS {
            return fail(format!(
                "doorbells {id}: at most {HARTS} harts are possible, not {harts}"
            ));
        }
        let pages = self.beside().count();
        if pages as u64 > DMA_ENGINES {
            return fail(format!(
                "doorbells {id}: engines, peripherals and doorbells have at most {DMA_ENGINES} pages, not {pages}"
            ));
        }
        Ok(())
    }
}
