//! The network on chip: packets, links, routers and topologies.

pub mod packet;

pub use packet::{Account, Packet, PacketKind, Transaction};
