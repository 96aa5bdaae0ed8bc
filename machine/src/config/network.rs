//! How many links and ports a chip's networks may have.
//!
//! Why it exists: the order of a network's events holds their numbers in a few bits. What it deliberately does not know: routes.

use super::{Channels, NetworkConfig, Topology};

/// Bits of an event's order that have the port.
pub(crate) const PORT_BITS: u32 = 14;
/// Most links of all networks of a chip.
const LINKS_MAX: usize = 1 << 16;
/// Most input ports of a router.
pub(crate) const PORTS_MAX: usize = 1 << PORT_BITS;

/// Networks of a chip.
pub(crate) fn planes(config: &NetworkConfig) -> usize {
    match config.channels {
        Channels::Shared => 1,
        Channels::Split => 2,
        Channels::Acknowledged { .. } => 3,
    }
}

/// Whether the numbers of links and ports have room for so many tiles.
///
/// # Errors
/// What is too much.
pub(crate) fn validate(config: &NetworkConfig, tiles: usize) -> Result<(), String> {
    let between = match config.topology {
        Topology::Crossbar => 0,
        Topology::StarMesh { columns, rows } | Topology::Mesh { columns, rows } => {
            let (columns, rows) = (usize::from(columns), usize::from(rows));
            2 * ((columns - 1) * rows + columns * (rows - 1))
        }
    };
    let links = planes(config) * (between + 2 * tiles);
    if links > LINKS_MAX {
        return Err(format!(
            "{tiles} tiles need {links} links, at most {LINKS_MAX} are possible"
        ));
    }
    // A router has up to four neighbours besides tiles.
    let most = PORTS_MAX - 4;
    match tiles > most {
        true => Err(format!("at most {most} tiles are possible, not {tiles}")),
        false => Ok(()),
    }
}
