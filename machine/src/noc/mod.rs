//! The network on chip: packets, links, routers and topologies.

pub mod network;
pub mod packet;
pub mod topology;

pub use network::{Delivery, LinkActivity, LinkStatistics, Network, PLANES_MAX};
pub use packet::{Account, Packet, PacketKind, Surrender, Transaction, Want, past_caches};
pub use topology::{LinkShape, Node};
