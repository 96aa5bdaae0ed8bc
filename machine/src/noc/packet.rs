//! Packets on the network, and the account of each transaction's time.
//!
//! A packet does not know the route or the state of any queue. It carries an [`Account`] from the first request of a
//! transaction to the end of its last response, so that the ledger can be checked against the request itself.

use crate::config::MemoryMap;
use crate::hart::{Management, QosIds, RemoteOperation};
pub use crate::ledger::{Account, Transaction};
use crate::types::{Line, Owner, Tick, TileId};
use bulkhead_abi::message::Header;

/// The request of a cluster or a coherent device for a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Want {
    /// A cluster wants the line's bytes, to read them.
    Read,
    /// A cluster wants the line's bytes, and no other cluster may have the line.
    Write,
    /// A cache-management operation in all other clusters.
    Manage(Management),
    /// A device wants bytes of the line as they are now. It keeps no copy.
    Fetch,
    /// A device changes bytes of the line, and no cluster may keep the old ones.
    Put,
}

/// How a cluster must treat a line that another one wants.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Surrender {
    /// Keep it shared, and give its bytes if memory has others.
    Share,
    /// Give it up, and its bytes if memory has others.
    Give,
    /// Give it up; its bytes are lost.
    Discard,
}

impl Want {
    /// How the other clusters must treat the line then.
    pub fn surrender(self) -> Surrender {
        match self {
            Want::Read | Want::Fetch | Want::Manage(Management::Clean) => Surrender::Share,
            Want::Write | Want::Put | Want::Manage(Management::Flush) => Surrender::Give,
            Want::Manage(Management::Invalidate) => Surrender::Discard,
        }
    }
}

/// The kind of a packet, with its contents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PacketKind {
    /// Read `bytes` at `address` of the destination (memory, or registers of a processing tile's DTU).
    ReadRequest {
        /// Address in the destination.
        address: u64,
        /// Bytes, at most a chunk.
        bytes: u32,
    },
    /// Answer to a read.
    ReadResponse {
        /// The destination refused the access.
        error: bool,
        /// The data, or `None` for cache lines: see [`Packet::line`].
        data: Option<Box<[u8]>>,
        /// Bytes on the wire.
        bytes: u32,
    },
    /// Write `bytes` at `address` of the destination.
    WriteRequest {
        /// Address in the destination.
        address: u64,
        /// Bytes, at most a chunk.
        bytes: u32,
        /// The data, or `None` for cache lines: see [`Packet::line`].
        data: Option<Box<[u8]>>,
    },
    /// Answer to a write.
    WriteResponse {
        /// The destination refused the access.
        error: bool,
    },
    /// A message for a receive endpoint of the destination's DTU, or a reply.
    Message {
        /// Receive endpoint at the destination.
        endpoint: u16,
        /// The header that the receiver's DTU stores before the payload.
        header: Header,
        /// Position of `payload` in the message's payload: a message of more than a chunk travels in several packets,
        /// in order, and only the last one is answered.
        offset: u16,
        /// The payload, or this packet's part of it.
        payload: Box<[u8]>,
        /// Send endpoint at the destination that gets a credit back (replies), or `NO_ENDPOINT`.
        credit_endpoint: u16,
        /// How many configurations of endpoints the requester's unit had counted when its message left; a reply brings the number
        /// back. It travels in the packet's header, where requests for memory have their address.
        epoch: u64,
    },
    /// An access of at most eight aligned bytes to a local memory or a register of the destination.
    Remote {
        /// Address in the memory, or in the page of registers.
        address: u64,
        /// Bytes of the access.
        bytes: u8,
        /// The access is to a register.
        register: bool,
        /// The operation to perform.
        operation: RemoteOperation,
    },
    /// Does not travel: the second access of an atomic operation, which a memory tile makes when its first one has ended.
    AtomicWrite {
        /// Address in the memory.
        address: u64,
        /// Bytes of the access.
        bytes: u8,
        /// The value of the answer.
        value: u64,
    },
    /// The result of a remote access.
    RemoteAnswer {
        /// The value; 0 for a store.
        value: u64,
        /// Bytes on the wire: 0 for the acknowledgement of a store.
        bytes: u8,
        /// A guard refused the access. A hart does not see that.
        refused: bool,
    },
    /// An interrupt for the controller of the destination. Nobody answers it.
    Interrupt {
        /// The source, as the controller numbers it ([`bulkhead_abi::plic::source`]).
        source: u16,
    },
    /// The request of a coherent cluster or device for a line, to the memory's home agent.
    Coherent {
        /// The line, as all clusters number it.
        line: u32,
        /// Address in the memory.
        address: u64,
        /// Number of bytes: the whole line, or those that a device accesses. [`Packet::line`] begins with the bytes of a [`Want::Put`].
        bytes: u32,
        /// The request.
        want: Want,
    },
    /// Answer to a coherent read: see [`Packet::line`].
    Grant {
        /// No other cluster has the line.
        alone: bool,
        /// Bytes on the wire.
        bytes: u32,
    },
    /// Answer to a coherent cache-management operation: the other clusters and memory have performed it.
    Managed,
    /// A home agent wants a line from a cluster. [`PacketKind::Surrendered`] answers it.
    Wanted {
        /// How the cluster must treat the line.
        surrender: Surrender,
    },
    /// A cluster answers a home agent.
    Surrendered {
        /// Address in the memory.
        address: u64,
        /// The line is still there, and shared.
        kept: bool,
        /// Bytes on the wire: the line ([`Packet::line`]), if memory had others.
        bytes: u32,
    },
    /// Does not travel: bytes that a home agent has got, which a memory writes to its chips.
    Stored,
    /// Acknowledgement of a message.
    MessageResponse {
        /// A code of `abi::dtu::DtuError`; 0 when the message was stored.
        error: u8,
    },
}

/// The request of an access to memory past the caches: the memory, the packet, and how its time is booked. `None`: there is no memory at
/// the address.
pub fn past_caches(
    map: &MemoryMap,
    physical: u64,
    bytes: u8,
    operation: RemoteOperation,
) -> Option<(TileId, PacketKind, Transaction)> {
    let (index, address) = map.find(physical)?;
    let kind = PacketKind::Remote {
        address,
        bytes,
        operation,
        register: false,
    };
    let transaction = match operation {
        RemoteOperation::Load => Transaction::RemoteLoad,
        RemoteOperation::Store(_) => Transaction::RemoteStore,
        _ => Transaction::RemoteAtomic,
    };
    Some((map.id(index), kind, transaction))
}

impl PacketKind {
    /// Bytes after the packet's header on a link.
    pub fn payload_bytes(&self) -> u32 {
        match self {
            PacketKind::ReadResponse {
                bytes,
                error: false,
                ..
            }
            | PacketKind::WriteRequest { bytes, .. } => *bytes,
            PacketKind::Remote {
                bytes, operation, ..
            } => match operation {
                RemoteOperation::Load | RemoteOperation::Reserve => 0,
                _ => u32::from(*bytes),
            },
            PacketKind::RemoteAnswer { bytes, .. } => u32::from(*bytes),
            PacketKind::Grant { bytes, .. }
            | PacketKind::Surrendered { bytes, .. }
            | PacketKind::Coherent {
                bytes,
                want: Want::Put,
                ..
            } => *bytes,
            // A message-signalled interrupt is a write of four bytes.
            PacketKind::Interrupt { .. } => 4,
            PacketKind::Message {
                payload, offset: 0, ..
            } => (bulkhead_abi::message::HEADER_SIZE + payload.len()) as u32,
            PacketKind::Message { payload, .. } => payload.len() as u32,
            _ => 0,
        }
    }

    /// Whether the packet gets an answer: interrupts and the parts of a message but its last one do not.
    pub const fn is_answered(&self) -> bool {
        match self {
            PacketKind::Interrupt { .. } => false,
            PacketKind::Message {
                header,
                offset,
                payload,
                ..
            } => *offset as usize + payload.len() >= header.length as usize,
            _ => !self.is_response(),
        }
    }

    /// Whether the packet answers another one.
    pub const fn is_response(&self) -> bool {
        matches!(
            self,
            PacketKind::ReadResponse { .. }
                | PacketKind::WriteResponse { .. }
                | PacketKind::MessageResponse { .. }
                | PacketKind::RemoteAnswer { .. }
                | PacketKind::Grant { .. }
                | PacketKind::Managed
                | PacketKind::Surrendered { .. }
        )
    }
}

/// A packet on the network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Sender of this packet.
    pub source: TileId,
    /// Receiver of this packet.
    pub destination: TileId,
    /// The owner of the transaction (also in a response).
    pub owner: Owner,
    /// Chosen by the requester; the response carries it back.
    pub tag: u32,
    /// Kind of the transaction, for latency statistics.
    pub transaction: Transaction,
    /// Contents.
    pub kind: PacketKind,
    /// The bytes of a cache line.
    pub line: Option<Line>,
    /// The identifiers of the hart's request (Ssqosid); 0 elsewhere.
    pub ids: QosIds,
    /// The activity that asked the kernel for the request that this carries, for the ledger alone.
    pub asker: Option<Owner>,
    /// The account of the transaction's time. A component that delays a packet outside the network (a DTU's latency) adds to it.
    pub account: Account,
}

impl Packet {
    /// A request that starts its transaction at `now`.
    pub fn request(
        now: Tick,
        source: TileId,
        destination: TileId,
        owner: Owner,
        tag: u32,
        transaction: Transaction,
        kind: PacketKind,
    ) -> Self {
        Self {
            source,
            destination,
            owner,
            tag,
            transaction,
            kind,
            line: None,
            ids: QosIds::default(),
            asker: None,
            account: Account::new(now),
        }
    }

    /// Turns the packet into its own answer; a line stays in it.
    pub fn answer(&mut self, kind: PacketKind) {
        std::mem::swap(&mut self.source, &mut self.destination);
        self.kind = kind;
    }

    /// The packet that answers this one. It continues the account.
    pub fn response(&self, kind: PacketKind) -> Self {
        Self {
            source: self.destination,
            destination: self.source,
            owner: self.owner,
            tag: self.tag,
            transaction: self.transaction,
            kind,
            line: None,
            ids: self.ids,
            asker: None,
            account: self.account,
        }
    }
}
