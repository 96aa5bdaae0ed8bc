//! System calls of the tiled OS: messages to the kernel and their replies, as words.
//!
//! Every activity has a channel to the kernel; the label of the channel identifies the caller and cannot be forged. Rights are
//! capabilities; an activity names its own by selectors, numbers below [`SELECTORS`] that it chooses itself. A request is its
//! number and its fields in the order of their declaration, one word each (a name: four). A reply is a [`SyscallError`] code and,
//! if that is 0, the results.

use crate::calls::calls;
use crate::dtu::codes;
use crate::field::Field;
use crate::words::{Aligned, Name, Reader, Words};

/// Most words of a request or reply.
pub const SYSCALL_WORDS: usize = 16;
/// Most words of a reply: the error code and the results.
pub const REPLY_WORDS: usize = 8;
/// Bytes of a slot for requests and replies, header included.
pub const SYSCALL_SLOT: u16 = 192;

/// Selectors of an activity: `0..SELECTORS`.
pub const SELECTORS: u16 = 1024;
/// Where every activity finds its own capability.
pub const SEL_ACTIVITY: u16 = 0;
/// Where every activity finds the purse that pays for its kernel objects.
pub const SEL_KERNEL_MEMORY: u16 = 1;
/// Where every activity finds the tile capability that it was started with.
pub const SEL_TILE: u16 = 2;
/// Where every activity finds its own memory, which begins with its environment page.
pub const SEL_MEMORY: u16 = 3;
/// Where a manager finds the memory that holds the boot modules.
pub const SEL_MODULES: u16 = 4;
/// First of the selectors, up to [`SEL_SESSIONS`], where no other activity places anything.
pub const SEL_FREE: u16 = 16;
/// First selector at which a manager places capabilities that the description gives to an activity, such as sessions.
pub const SEL_SESSIONS: u16 = 448;
/// Where a manager finds tile `t`: at this plus `t`.
pub const SEL_TILES: u16 = 512;
/// Where a manager finds memory tile `m`: at this plus `m`.
pub const SEL_MEMORIES: u16 = 768;
/// The number of tiles that such selectors can name.
pub const SEL_TILES_MAX: u16 = SEL_MEMORIES - SEL_TILES;
/// Most activities in a chain in which each created the next one, beginning with the root manager.
pub const LINEAGE_MAX: usize = 12;
/// No selector.
pub const NO_SELECTOR: u16 = u16::MAX;
/// In [`Syscall::Activate`]: any endpoint that is free.
pub const ANY_ENDPOINT: u16 = u16::MAX;
/// In [`Syscall::DeriveTile`]: this quota is shared with the source.
pub const SHARE: u64 = u64::MAX;
/// Priorities of callers: a waiting call of a greater one is served first.
pub const PRIORITIES: usize = 3;
/// [`Syscall::Report`] of a nested manager: all applications that were expected to end have ended; its exit code is in the lower bits.
pub const REPORT_DONE: u64 = 1 << 32;
/// [`Syscall::Report`] and [`Syscall::Tell`] between managers: the subject of the word, from this bit on. 0: the manager itself;
/// otherwise one more than the number of an import, and the word is a [`News`].
pub const ABOUT: u32 = 58;
/// Where a nested manager finds the service behind an import (this plus the import's number, once it has been told that number),
/// and where it offers services itself.
pub const SEL_SHARED: u16 = SEL_SESSIONS - SHARED_MAX;
/// Most imports of a nested manager.
pub const SHARED_MAX: u16 = 32;
/// Where an application other than a manager offers its services: this plus the number of the service. The environment states it at each
/// receive gate of a service.
pub const SEL_OFFERED: u16 = SEL_TILES;
/// Most services of an application.
pub const SERVICES_MAX: u16 = 4;
/// Where a nested manager finds its part of the description.
pub const SEL_DESCRIPTION: u16 = 5;
/// Most pieces cut out of one memory; this bounds the search for a gap. Pieces can be cut further.
pub const PIECES_MAX: u8 = 64;
/// Most pages of one [`Syscall::Map`] or [`Syscall::MapFrom`]: TileMux maps them in one piece, even if a more urgent activity wants the
/// hart.
pub const MAP_PAGES_MAX: u64 = 64;
/// Most pages of one [`Syscall::SetPager`].
pub const PAGED_PAGES_MAX: u64 = 0x3_E000;
/// Most capabilities of one [`Syscall::Exchange`]. A copy is a piece of the kernel's work; whoever needs several asks several times.
pub const EXCHANGE_MAX: u16 = 1;

codes! {
    /// Outcome of a system call; the first word of a reply.
    SyscallError: u64 {
        /// Done.
        None = 0,
        /// The number of the call is unknown.
        UnknownCall = 1,
        /// A field is missing or out of its range.
        BadArgument = 2,
        /// The caller is being ended.
        NotManager = 3,
        /// No such activity.
        NoActivity = 4,
        /// The tile is the kernel's, or not a processing tile.
        NoTile = 5,
        /// Not enough memory.
        NoMemory = 6,
        /// The tile's unit has no free endpoint.
        NoEndpoint = 7,
        /// The tile's unit has no free token bucket.
        NoBucket = 8,
        /// No such module.
        NoModule = 9,
        /// The call does not fit the state of the object (started already, active already, ...).
        WrongState = 10,
        /// The offset and size lie outside the region, or the rights exceed those of the source.
        OutOfBounds = 11,
        /// The gate does not receive.
        NotReceiver = 12,
        /// TileMux or a server refused, or the channel is broken.
        Refused = 13,
        /// As many operations of this kind are in progress as there may be.
        Busy = 14,
        /// The tile's memory windows are used up.
        NoWindow = 15,
        /// The selector names nothing.
        NoCapability = 16,
        /// The selector for the result is in use or invalid.
        SelectorTaken = 17,
        /// The capability is of another kind.
        WrongKind = 18,
        /// The capability, or what it was derived from, is being revoked.
        Revoked = 19,
        /// The request exceeds the rest of the quota.
        NoQuota = 20,
        /// The caller's purse is empty.
        NoKernelMemory = 21,
        /// The chain of derivations is too long.
        TooDeep = 22,
        /// More credits than the gate has slots left.
        NoCredits = 23,
        /// The server, or the object that was waited for, is gone.
        Gone = 24,
        /// The server did not answer in time.
        Timeout = 25,
        /// The tile did not answer the kernel, or lied to it; it was stopped.
        TileLost = 26,
    }
}

/// Carries out a request, see [`Syscall::dispatch`].
pub trait Handler {
    /// The outcome of a request.
    type Output;
    /// Carries out the request.
    ///
    /// # Errors
    /// The reason for a refusal.
    fn handle(self, call: Call) -> Result<Self::Output, SyscallError>;
}

/// Gives the request itself.
struct Given;

impl Handler for Given {
    type Output = Syscall;
    fn handle(self, call: Call) -> Result<Syscall, SyscallError> {
        Ok(call.into())
    }
}

calls! {
    /// Does nothing; measures a call.
    Nothing = 0 {}
    /// Derives a tile capability with quotas of its own, moved out of the source; [`SHARE`] shares a quota with the source. Rate and burst
    /// come together. Processor time can only decrease: a budget takes its [`charge`](crate::time::charge) from each period of the source's
    /// budget, and no priority is above the source's.
    DeriveTile = 1 {
        /// A tile.
        source: u16,
        /// Where the new one goes.
        target: u16,
        /// Endpoints, or [`SHARE`].
        endpoints: u64,
        /// Nanoseconds of execution in each period, at least [`LEAST_BUDGET`](crate::time::LEAST_BUDGET), or [`SHARE`]. 0: none;
        /// activities run when no activity with a budget wants the hart.
        budget: u64,
        /// The period in nanoseconds.
        period: u64,
        /// Bytes per second on the network, or [`SHARE`].
        rate: u64,
        /// Bytes at once, or [`SHARE`].
        burst: u64,
        /// Pages for page tables, or [`SHARE`].
        tables: u64,
        /// The highest priority on the tile that activities get from it, not above the source's.
        priority: u8,
        /// Not zero: capabilities without a budget may be derived from it. Only if the source allows it.
        idle: u8,
        /// Places for activities on the tile, or [`SHARE`].
        activities: u64,
        /// Windows of the tile onto memory, or [`SHARE`].
        windows: u64,
    }
    /// Moves kernel memory from a purse to a new one.
    DeriveKernelMemory = 2 {
        /// A purse.
        source: u16,
        /// Where the new one goes.
        target: u16,
        /// Bytes.
        bytes: u64,
    }
    /// Cuts whole pages out of memory for exclusive use. Results: first byte in the memory tile.
    CutMemory = 3 {
        /// Memory.
        source: u16,
        /// Where the piece goes.
        target: u16,
        /// Bytes, rounded up to pages.
        size: u64,
    }
    /// Derives access to a part of memory; the source keeps its own.
    DeriveMemory = 4 {
        /// Memory.
        source: u16,
        /// Where the part goes.
        target: u16,
        /// Its first byte, counted from the source's.
        offset: u64,
        /// Bytes.
        size: u64,
        /// [`MAP_READ`], [`MAP_WRITE`], [`MAP_EXECUTE`].
        rights: u8,
    }
    /// Shows memory to a tile, whose activities can then live in it, and starts TileMux there if it does not run; TileMux then
    /// takes [`crate::tilemux::TILEMUX_MEMORY`] bytes of it, and page tables their part: nothing may be cut from it before. Memory
    /// that can only be read ([`MAP_READ`]) is shown read-only, to a tile whose TileMux runs: its pages can be mapped with
    /// [`MapFrom`](Self::MapFrom). Memory that the tile sees already is refused ([`SyscallError::BadArgument`]). Before the window
    /// closes, every activity that uses it ends.
    ConfigureTile = 5 {
        /// The tile.
        tile: u16,
        /// The memory.
        memory: u16,
        /// Pages for the page tables of all activities that will live there at the same time; no activity can reach them. Only the activity
        /// that started TileMux may give some (or the root manager, if the kernel did); when their window closes, the tile is lost.
        tables: u64,
    }
    /// Creates an activity and places [`SEL_ACTIVITY`], [`SEL_KERNEL_MEMORY`], [`SEL_TILE`] and [`SEL_MEMORY`] for it. It gets the
    /// bucket and the processor time of its tile capability. Results: its number, its send and receive endpoint for
    /// system calls, the clock of its tile in hertz.
    CreateActivity = 6 {
        /// Where its capability goes.
        target: u16,
        /// The tile, with its quotas.
        tile: u16,
        /// The purse that pays for its kernel objects.
        purse: u16,
        /// Its memory, shown to the tile. Pages for its page tables ([`crate::tilemux::table_pages`]) come from the tile.
        memory: u16,
        /// Offset of the buffer for replies to its system calls: one slot of [`SYSCALL_SLOT`] bytes, aligned to 64.
        reply: u64,
        /// Its priority as a caller of the kernel, below [`PRIORITIES`] and not above its creator's.
        priority: u8,
        /// Its priority on a tile with fixed priorities, not above that of the tile capability; has a meaning only if that has
        /// processor time of its own.
        tile_priority: u8,
        /// Name for reports.
        name: Name,
    }
    /// Maps pages of an activity's memory into its address space before it starts.
    Map = 7 {
        /// The activity.
        activity: u16,
        /// First virtual address, page aligned.
        address: u64,
        /// Offset into its memory, page aligned.
        offset: u64,
        /// Number of pages, at most [`MAP_PAGES_MAX`]; with [`MAP_LAZY`], any number.
        pages: u64,
        /// [`MAP_READ`], [`MAP_WRITE`], [`MAP_EXECUTE`], and [`MAP_LAZY`].
        rights: u8,
    }
    /// Starts an activity.
    Start = 8 {
        /// The activity.
        activity: u16,
        /// Virtual address of its first instruction.
        entry: u64,
        /// Initial stack pointer.
        stack: u64,
    }
    /// Ends an activity with all its capabilities and everything that depends on them.
    Stop = 9 {
        /// The activity.
        activity: u16,
    }
    /// Waits until something has happened to an activity that the caller created. Results: its selector, its number, [`Event`]
    /// words. [`SyscallError::Timeout`] if nothing has happened by the time that the caller names.
    WaitEvent = 10 {
        /// Nanoseconds since reset; 0: no end.
        until: u64,
    }
    /// Creates a gate that receives.
    CreateReceive = 11 {
        /// Where it goes.
        target: u16,
        /// Slots, 1 to 32.
        slots: u8,
        /// Bytes of a slot, header included, a multiple of 64 up to 2048.
        slot_size: u16,
    }
    /// Creates a gate that sends, with credits for some slots of a receive gate.
    CreateSend = 12 {
        /// The receive gate.
        source: u16,
        /// Where it goes.
        target: u16,
        /// Label that the receiver sees.
        label: u64,
        /// Most messages outstanding.
        credits: u8,
    }
    /// Makes a gate or memory usable by an activity through an endpoint of its tile. Results: endpoint, bytes (the most of a
    /// message, or the memory's).
    Activate = 13 {
        /// The gate or memory.
        gate: u16,
        /// The activity; [`SEL_ACTIVITY`] for the caller itself.
        activity: u16,
        /// For a receive gate: the memory with its buffer, within the activity's own ([`SyscallError::OutOfBounds`]). Otherwise
        /// [`NO_SELECTOR`].
        memory: u16,
        /// For a receive gate: offset of the buffer in it, a multiple of 64.
        offset: u64,
        /// For a receive gate: not zero: with rights to reply.
        replies: u8,
        /// The endpoint to use, which is the first one of a receive gate with rights to reply; [`ANY_ENDPOINT`] for any. An activity that
        /// knows a number from before need not try until it gets that number. [`SyscallError::NoEndpoint`] if it is taken by anything else;
        /// if it is this gate's already, nothing changes, and the bytes are 0. When the receiver of a gate to send goes, the number stays
        /// the gate's, on the activity's quota, and the same call connects it to the receiver that is active then.
        endpoint: u16,
    }
    /// Undoes `Activate`.
    Deactivate = 14 {
        /// The gate or memory.
        gate: u16,
        /// The endpoint.
        endpoint: u16,
    }
    /// Gives an activity a copy of a capability of the caller, which must have created the activity.
    Delegate = 15 {
        /// The activity.
        activity: u16,
        /// The caller's capability.
        source: u16,
        /// The activity's selector.
        target: u16,
    }
    /// Takes a copy of a capability of an activity that the caller created.
    Obtain = 16 {
        /// The activity.
        activity: u16,
        /// The activity's capability.
        source: u16,
        /// The caller's selector.
        target: u16,
    }
    /// Revokes a capability and everything that depends on it. When the reply comes, every endpoint that depended on it is invalid.
    Revoke = 17 {
        /// The capability.
        selector: u16,
        /// Not zero: the capability itself stays.
        keep: u8,
    }
    /// Offers a service. The kernel's questions (see [`ServerRequest`]) come through the receive gate and take one of its slots.
    /// The creator of the caller gets an [`Event`].
    CreateService = 18 {
        /// An active receive gate of the caller with rights to reply.
        gate: u16,
        /// Where the service goes.
        target: u16,
    }
    /// Opens a session if the server agrees.
    OpenSession = 19 {
        /// The service.
        service: u16,
        /// Where the session goes.
        target: u16,
        /// For the server.
        argument: u64,
    }
    /// Exchanges a capability with the server of a session if it agrees. Results: two words of the server, and how many there were.
    Exchange = 20 {
        /// The session.
        session: u16,
        /// 0: obtain; 1: delegate.
        delegate: u8,
        /// First of the caller's selectors.
        own: u16,
        /// Capabilities, 0 to [`EXCHANGE_MAX`].
        count: u16,
        /// For the server.
        argument0: u64,
        /// For the server.
        argument1: u64,
        /// For the server.
        argument2: u64,
    }
    /// Creates a semaphore.
    CreateSemaphore = 21 {
        /// Where it goes.
        target: u16,
        /// How often it can be taken without waiting.
        value: u32,
    }
    /// Takes a semaphore; waits until that is possible. [`SyscallError::Gone`] if an activity that could have raised the semaphore
    /// loses it meanwhile, because it ends or for another reason; the waiting activity may try again.
    SemaphoreDown = 22 {
        /// The semaphore.
        semaphore: u16,
    }
    /// Gives a semaphore.
    SemaphoreUp = 23 {
        /// The semaphore.
        semaphore: u16,
    }
    /// Finds a boot module and derives memory to read it. Results: bytes.
    OpenModule = 24 {
        /// The memory that holds the modules.
        modules: u16,
        /// Where the module's memory goes.
        target: u16,
        /// Hash of the module's name: [`module_key`], because the names are longer than a message's fields.
        key: u64,
    }
    /// Sends a word to the creator of the caller, as an [`Event`]. A later report about the same topic (see [`ABOUT`]) replaces one
    /// that has not been delivered. There are [`SHARED_MAX`] topics besides the caller itself. If the caller ends, only its last
    /// word about itself is delivered, before its end.
    Report = 26 {
        /// The word, whose meaning is agreed: see [`REPORT_DONE`].
        value: u64,
    }
    /// Gives an activity a pager, before it starts: page faults in a range of its addresses go to the pager as messages of its TileMux.
    /// Page tables for the range come from its tile, as for its memory. Once the gate's receiver is gone, the activity ends at its next
    /// fault in the range.
    SetPager = 27 {
        /// The activity.
        activity: u16,
        /// A send gate to the pager with one credit.
        gate: u16,
        /// First address of the range, page aligned.
        address: u64,
        /// Its pages, at most [`PAGED_PAGES_MAX`].
        pages: u64,
    }
    /// Maps memory of the caller into the range for which an activity has a pager, and replaces the pages that are mapped there;
    /// without rights, unmaps them. When the memory is revoked, the activity ends.
    MapFrom = 30 {
        /// The activity.
        activity: u16,
        /// The memory; its tile must see it.
        memory: u16,
        /// First address, page aligned.
        address: u64,
        /// Offset into the memory, page aligned.
        offset: u64,
        /// Pages, at most [`MAP_PAGES_MAX`]; at most one of them may be mapped already, because the client's tile writes back its lines.
        pages: u64,
        /// [`MAP_READ`], [`MAP_WRITE`], [`MAP_EXECUTE`], not more than the memory's; 0 takes a page back.
        rights: u8,
    }
    /// Gives the device of a tile, its network card, to an activity of that tile that has not been started: maps its registers at
    /// [`crate::network::CARD_ADDRESS`], lets it use a part of the activity's memory, and sends its interrupts to a receive endpoint. The
    /// activity keeps it until it ends. Only the activity that started the tile's TileMux can give it.
    GiveDevice = 31 {
        /// The tile.
        tile: u16,
        /// The activity.
        activity: u16,
        /// An active receive endpoint of the activity.
        endpoint: u16,
        /// First virtual address of the memory that the device may use, page aligned.
        address: u64,
        /// Its offset in the activity's memory, page aligned.
        offset: u64,
        /// Its bytes, whole pages, at least one.
        size: u64,
    }
    /// Counts the senders of a receive endpoint of the caller. Results: endpoints that lead there, and those that did and no longer
    /// exist. If none is left and some existed, no further message will arrive unless the caller's manager connects a sender again.
    /// An activity that waits at the endpoint is woken when this becomes true.
    Senders = 32 {
        /// The endpoint.
        endpoint: u16,
    }
    /// Returns what is left of the quotas of a capability. Results: an [`ObjectKind`], and of a tile: endpoints, nanoseconds per period (of
    /// a whole tile: per second), bytes per second, bytes at once, page tables, and whether capabilities without a budget can be derived
    /// from it; of a purse: bytes; of memory: bytes not cut, bytes, memory tile; of a receive gate: free slots, slots; of an activity: its
    /// number.
    Query = 25 {
        /// The capability.
        selector: u16,
    }
    /// Returns the peak use of the quotas of a capability. Results: of a tile its own endpoints and page tables (0 if it shares
    /// another's), of a purse bytes; of others nothing.
    Usage = 28 {
        /// The capability.
        selector: u16,
    }
    /// Sends a word to an activity that the caller created, as an [`Event`]. A later word about an import (see [`ABOUT`]) replaces
    /// one that has not been delivered. Of words about the activity itself, one waits at a time: [`SyscallError::Busy`] for a
    /// further one. There are no other topics.
    Tell = 29 {
        /// The activity.
        activity: u16,
        /// The word, whose meaning is agreed: see [`SEL_SHARED`].
        value: u64,
    }
}

codes! {
    /// Kinds of objects.
    ObjectKind: u64 {
        /// A service.
        Service = 1,
        /// A session.
        Session = 2,
        /// Memory.
        Memory = 3,
        /// A gate that receives.
        Receive = 4,
        /// A gate that sends.
        Send = 5,
        /// A mapping.
        Mapping = 6,
        /// An activity.
        Activity = 7,
        /// A tile with quotas.
        Tile = 8,
        /// An endpoint.
        Endpoint = 9,
        /// A purse.
        KernelMemory = 10,
        /// A semaphore.
        Semaphore = 11,
    }
}

/// Label of the kernel's messages to servers. A server that gives this label to others harms only itself.
pub const KERNEL_LABEL: u64 = u64::MAX;

/// A question of the kernel to a server. The answer is a word, 0 for yes; then for `Open` the server's number of the session, for
/// `Exchange` the first of the server's selectors, how many it gives or takes (at most as many as requested), and two words for the
/// client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerRequest {
    /// Asks to open a session.
    Open {
        /// The client's argument.
        argument: u64,
        /// Number of the activity that opens it.
        activity: u16,
    },
    /// Asks to exchange capabilities.
    Exchange {
        /// The server's number of the session.
        ident: u64,
        /// 0: the client obtains; 1: the client delegates.
        delegate: u8,
        /// Capabilities.
        count: u16,
        /// The client's arguments.
        arguments: [u64; 3],
    },
    /// A session is closed; the answer has no meaning.
    Close {
        /// The server's number of the session.
        ident: u64,
    },
}

impl ServerRequest {
    /// The request as words.
    pub fn encode(&self) -> Words<8> {
        let mut words = Words::new();
        match *self {
            ServerRequest::Open { argument, activity } => {
                words.push(&[1, argument, activity.into()]);
            }
            ServerRequest::Exchange {
                ident,
                delegate,
                count,
                arguments: [a, b, c],
            } => {
                words.push(&[2, ident, delegate.into(), count.into(), a, b, c]);
            }
            ServerRequest::Close { ident } => {
                words.push(&[3, ident]);
            }
        }
        words
    }

    /// Decodes a request; `None` if the words are not one.
    pub fn decode(words: &[u64]) -> Option<Self> {
        let mut r = Reader(words);
        Some(match r.word()? {
            1 => ServerRequest::Open {
                argument: r.word()?,
                activity: r.half()?,
            },
            2 => ServerRequest::Exchange {
                ident: r.word()?,
                delegate: r.byte()?,
                count: r.half()?,
                arguments: [r.word()?, r.word()?, r.word()?],
            },
            3 => ServerRequest::Close { ident: r.word()? },
            _ => return None,
        })
    }
}

/// An event about an activity, the result of [`Syscall::WaitEvent`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// It stopped; everything that it had has been returned.
    Stopped(StopCause),
    /// It offers a service under this selector of its own.
    Service(u16),
    /// It sent a word.
    Reported(u64),
    /// The creator of the waiting activity sent it a word.
    Told(u64),
}

impl Event {
    /// Kind, and four words that depend on it.
    pub const fn to_words(self) -> [u64; 5] {
        match self {
            Event::Stopped(cause) => {
                let [a, b, c, d] = cause.to_words();
                [0, a, b, c, d]
            }
            Event::Service(selector) => [1, selector as u64, 0, 0, 0],
            Event::Reported(value) => [2, value, 0, 0, 0],
            Event::Told(value) => [3, value, 0, 0, 0],
        }
    }

    /// Decodes an event.
    pub const fn from_words(words: [u64; 5]) -> Option<Self> {
        match words {
            [0, a, b, c, d] => match StopCause::from_words([a, b, c, d]) {
                Some(cause) => Some(Event::Stopped(cause)),
                None => None,
            },
            [1, selector, ..] if selector < SELECTORS as u64 => {
                Some(Event::Service(selector as u16))
            }
            [2, value, ..] => Some(Event::Reported(value)),
            [3, value, ..] => Some(Event::Told(value)),
            _ => None,
        }
    }
}

/// The pages may be read.
pub const MAP_READ: u8 = 1;
/// The pages may be written.
pub const MAP_WRITE: u8 = 2;
/// The pages may be executed.
pub const MAP_EXECUTE: u8 = 4;
/// TileMux maps each page when it is first used; one region of an activity.
pub const MAP_LAZY: u8 = 8;

/// The key of a module's name (64-bit FNV-1a), by which the kernel finds the module.
pub const fn module_key(name: &[u8]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    let mut i = 0;
    while i < name.len() {
        hash = (hash ^ name[i] as u64).wrapping_mul(0x0000_0100_0000_01b3);
        i += 1;
    }
    hash
}

impl Syscall {
    /// Decodes a request.
    ///
    /// # Errors
    /// [`SyscallError::UnknownCall`] for an unknown number, [`SyscallError::BadArgument`] if a field is missing or does not fit its
    /// type. The kernel checks whether the values make sense.
    pub fn decode(words: &[u64]) -> Result<Self, SyscallError> {
        Self::dispatch(words, Given)
    }
}

/// Why an activity stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopCause {
    /// It ended by itself with this code.
    Exit(u64),
    /// A trap: RISC-V cause, program counter, trap value.
    Fault {
        /// Value of `mcause`.
        cause: u64,
        /// Address of the instruction.
        pc: u64,
        /// Value of `mtval`.
        value: u64,
    },
    /// Its program panicked.
    Panic,
    /// Its heap was exhausted.
    OutOfMemory,
    /// Its manager stopped it.
    Killed,
    /// Its tile did not answer the kernel, or lied to it, and was stopped.
    TileLost,
}

impl StopCause {
    /// Kind, and three words that depend on it.
    pub const fn to_words(self) -> [u64; 4] {
        match self {
            StopCause::Exit(code) => [0, code, 0, 0],
            StopCause::Fault { cause, pc, value } => [1, cause, pc, value],
            StopCause::Panic => [2, 0, 0, 0],
            StopCause::OutOfMemory => [3, 0, 0, 0],
            StopCause::Killed => [4, 0, 0, 0],
            StopCause::TileLost => [5, 0, 0, 0],
        }
    }

    /// Decodes a cause.
    pub const fn from_words(words: [u64; 4]) -> Option<Self> {
        Some(match words {
            [0, code, ..] => StopCause::Exit(code),
            [1, cause, pc, value] => StopCause::Fault { cause, pc, value },
            [2, ..] => StopCause::Panic,
            [3, ..] => StopCause::OutOfMemory,
            [4, ..] => StopCause::Killed,
            [5, ..] => StopCause::TileLost,
            _ => return None,
        })
    }
}
