//! How many links, ports and buffers a chip's networks have.
//!
//! Why it exists: the network numbers them with few bits, so a chip with too many must be refused before it is built.

use super::{Channels, NetworkConfig, Topology};

/// Bits of a port's number.
pub const PORT_BITS: u32 = 14;
/// Maximum number of input ports of a router.
pub const PORTS_MAX: usize = 1 << PORT_BITS;
/// Maximum number of links of all networks of a chip.
const LINKS_MAX: usize = 1 << 16;
/// Maximum number of neighbours of a router besides tiles.
const NEIGHBOURS: usize = 4;

impl NetworkConfig {
    /// Networks of the chip.
    pub fn planes(&self) -> usize {
        match self.channels {
            Channels::Shared => 1,
            Channels::Split => 2,
            Channels::Acknowledged { .. } => 3,
        }
    }

    /// Whether the numbers of links and ports suffice for this many tiles, and buffers hold a packet.
    ///
    /// # Errors
    /// What is too much.
    pub fn has_room(&self, tiles: usize) -> Result<(), String> {
        if self.credits == Some(0) {
            return Err("without credits, nothing is ever sent".into());
        }
        let between = match self.topology {
            Topology::Crossbar => 0,
            Topology::StarMesh { columns, rows } | Topology::Mesh { columns, rows } => {
                let (columns, rows) = (usize::from(columns), usize::from(rows));
                2 * ((columns - 1) * rows + columns * (rows - 1))
            }
        };
        let links = self.planes() * (between + 2 * tiles);
        if links > LINKS_MAX {
            return Err(format!(
                "{tiles} tiles need {links} links, at most {LINKS_MAX} are possible"
            ));
        }
        let most = PORTS_MAX - NEIGHBOURS;
        match tiles > most {
            true => Err(format!("at most {most} tiles are possible, not {tiles}")),
            false => Ok(()),
        }
    }
}
