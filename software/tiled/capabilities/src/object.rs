//! The objects of capabilities, and the quotas of tiles.
//!
//! Why it exists: one place defines the contents of each kind. What it deliberately does not know: its holders.

use crate::number::NodeId;
pub use bulkhead_abi::quota::{QUOTAS, Quota};
use bulkhead_abi::syscall::PRIORITIES;

/// A rate without a limit; only the capabilities of whole tiles have it, and capabilities that share theirs.
pub const UNREGULATED: u64 = u64::MAX;

/// An amount of each quota. Quotas that are only counted on a tile take two bytes each: they do not make a capability larger.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amounts {
    /// Of time and traffic.
    wide: [u64; 3],
    counts: [u16; 4],
}

impl Amounts {
    /// Of one quota.
    pub fn get(&self, quota: Quota) -> u64 {
        match quota as usize {
            wide @ 1..=3 => self.wide[wide - 1],
            count => self.counts[count.saturating_sub(3)].into(),
        }
    }

    /// Sets the amount of one quota; a counted amount that does not fit becomes the largest that does.
    pub(crate) fn set(&mut self, quota: Quota, amount: u64) {
        match quota as usize {
            wide @ 1..=3 => self.wide[wide - 1] = amount,
            count => {
                let most = u16::try_from(amount).unwrap_or(u16::MAX);
                self.counts[count.saturating_sub(3)] = most;
            }
        }
    }
}

/// The quotas of a tile capability to be derived; where there is none, it shares its parent's.
pub type Request = [Option<u64>; QUOTAS];

/// Processor time, as a tile capability carries it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Time {
    /// Nanoseconds in each period; where the time is shared, those of its owner.
    pub budget: u64,
    /// The period in nanoseconds; [`WHOLE`](bulkhead_abi::time::WHOLE): the whole processor.
    pub period: u64,
    /// The highest priority that activities get.
    pub priority: u8,
    /// Capabilities without a budget may be derived from it; they have the time in which no activity with a budget wants to run.
    pub idle: bool,
    /// When an activity that is gone stopped using it, in nanoseconds since reset; 0 if there was none.
    pub last: u64,
}

/// A tile and its quotas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tile {
    /// Number on the network.
    pub tile: u16,
    /// Its processor time.
    pub time: Time,
    /// What is left of its own quotas.
    pub left: Amounts,
    /// What it took from the capability that it was derived from.
    pub given: Amounts,
    /// The node whose quota it uses: itself, or an ancestor.
    pub owner: [NodeId; QUOTAS],
    /// The fewest endpoints and page tables of its own that were ever left; `u16::MAX` while nothing was taken.
    pub least: [u16; 2],
}

impl Tile {
    /// The amount of a quota that it was given, if the quota is its own; in the quota's unit, for processor time its own period.
    pub fn granted(&self, quota: Quota) -> u64 {
        match quota {
            Quota::Cpu => self.time.budget,
            _ => self.given.get(quota),
        }
    }

    /// The most endpoints and page tables of its own ever in use at one time; 0 where they are not its own.
    pub fn used(&self) -> [u64; 2] {
        let quotas = [Quota::Endpoints, Quota::PageTables].map(|q| self.given.get(q));
        [0, 1].map(|i| quotas[i].saturating_sub(self.least[i].into()))
    }
}

/// A range of a memory tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// The memory tile.
    pub tile: u16,
    /// First byte.
    pub base: u64,
    /// Bytes.
    pub size: u64,
    /// 1: read, 2: write, 4: execute.
    pub rights: u8,
    /// Bytes that are not cut out.
    pub free: u64,
    /// Pieces that are cut out, in the order of their addresses.
    pub(crate) first: NodeId,
    pub(crate) next: NodeId,
    pub(crate) previous: NodeId,
    pub(crate) pieces: u8,
    /// The memory that this was cut out of, if it was.
    pub(crate) cut_from: NodeId,
    /// Whether it, or a part of it, was ever held by others than those that cut it.
    pub(crate) shared: bool,
}

impl Memory {
    /// The whole of a range, with nothing cut out.
    pub(crate) const fn new(tile: u16, base: u64, size: u64, rights: u8) -> Self {
        Self {
            tile,
            base,
            size,
            rights,
            free: size,
            first: NodeId::NONE,
            next: NodeId::NONE,
            previous: NodeId::NONE,
            pieces: 0,
            cut_from: NodeId::NONE,
            shared: false,
        }
    }

    /// Whether it was cut out of other memory.
    pub fn is_piece(&self) -> bool {
        self.cut_from.is_some()
    }

    /// Whether it, or a part of it, was ever held by others than those that cut it.
    pub fn was_shared(&self) -> bool {
        self.shared
    }
}

/// A gate that receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Receive {
    /// Slots of its buffer.
    pub slots: u8,
    /// Bytes of a slot.
    pub slot_size: u16,
    /// The shares that no gate has, a bit for each slot; see [`bulkhead_abi::dtu::SendEndpoint::shares`].
    pub free: u32,
    /// The share that is given next, if it is free.
    pub(crate) next: u32,
    /// The place where it receives, once it is active.
    pub place: Option<(u16, u16)>,
    /// Endpoints from which messages can come to it.
    pub senders: u16,
    /// Endpoints that once led here and are gone since, up to the largest number.
    pub departed: u16,
    /// The node of its endpoints while it is active.
    pub(crate) active: NodeId,
}

/// The object of a capability.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Object {
    /// A server's offer, derived from the gate at which the kernel asks the server.
    Service(Service),
    /// A client's session with a service.
    Session {
        /// The server's own number for it.
        ident: u64,
    },
    /// Memory.
    Memory(Memory),
    /// A gate that receives.
    Receive(Receive),
    /// A gate that sends, derived from the one that receives.
    Send {
        /// What the receiver sees.
        label: u64,
        /// Its shares of the receiver's slots, as many as credits; none if these are unlimited.
        shares: u32,
    },
    /// Pages of an activity, derived from memory.
    Mapping {
        /// First virtual address.
        address: u64,
        /// Pages.
        pages: u64,
        /// Pages of page tables that it took from the tile's quota.
        tables: u64,
    },
    /// An activity.
    Activity {
        /// Its place among the holders.
        holder: u16,
    },
    /// A tile with quotas.
    Tile(Tile),
    /// Endpoints of a tile, derived from the gate or memory for which they were configured.
    Endpoint {
        /// The tile.
        tile: u16,
        /// The first endpoint.
        endpoint: u16,
        /// Number of endpoints: more than one if there are rights to reply.
        count: u16,
    },
    /// Kernel memory: a purse that pays for kernel objects.
    KernelMemory {
        /// The least that was ever left.
        least: u64,
        /// Bytes left.
        left: u64,
        /// Bytes given.
        given: u64,
    },
    /// A semaphore.
    Semaphore {
        /// How often it can be taken without waiting.
        value: u32,
        /// The activities that wait for it.
        waiting: Line,
    },
    /// News that an activity has not taken yet.
    Notice(Notice),
}

impl Object {
    /// A purse with this many bytes.
    pub(crate) const fn purse(bytes: u64) -> Self {
        Self::KernelMemory {
            least: bytes,
            left: bytes,
            given: bytes,
        }
    }
}

/// Activities that wait for something, by priority: the first and the last; 0 means none. Each activity's place has room for the
/// links to its neighbours, so a line cannot become full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Line {
    /// The activity that has waited longest.
    pub first: [u16; PRIORITIES],
    /// The activity that came last.
    pub last: [u16; PRIORITIES],
}

/// What a server is asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Asked {
    /// Nothing yet, or that a session is closed.
    #[default]
    Close,
    /// Whether to open a session.
    Open,
    /// Whether to exchange capabilities.
    Exchange,
}

/// A server's offer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Service {
    /// The kernel's share of the slots of its gate.
    pub shares: u32,
    /// Number of the question that the server has not answered yet; 0: none.
    pub asked: u64,
    /// The kind of the last question.
    pub last: Asked,
    /// The activities that wait for an answer, including the one whose question was asked.
    pub waiting: Line,
    /// Closed sessions of which the server has not been told.
    pub closed: Queue,
}

/// No owner: for a quota that does not exist.
pub const NO_OWNER: NodeId = NodeId(u16::MAX);

/// Words of a notice.
pub const NOTICE_WORDS: usize = 6;

/// News that an activity has not taken yet, and its neighbours in a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notice {
    /// What.
    pub words: [u64; NOTICE_WORDS],
    pub(crate) previous: NodeId,
    pub(crate) next: NodeId,
}

/// Notices in the order in which they were left. Only the nodes take memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queue {
    pub(crate) first: NodeId,
    pub(crate) last: NodeId,
}

impl Default for Queue {
    fn default() -> Self {
        Self {
            first: NodeId::NONE,
            last: NodeId::NONE,
        }
    }
}

impl Queue {
    /// Whether the queue is empty.
    pub fn is_empty(&self) -> bool {
        !self.first.is_some()
    }

    /// A notice of this queue was removed.
    pub fn removed(&mut self, notice: &Notice) {
        if !notice.previous.is_some() {
            self.first = notice.next;
        }
        if !notice.next.is_some() {
            self.last = notice.previous;
        }
    }
}
