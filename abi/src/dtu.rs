//! Registers, commands, endpoints and error codes of the data transfer unit (DTU).
//!
//! The unit is that of the tiled OS (m3-rtas24, sections II-B to IV-B), with our own register positions. Four 4-KiB pages and the endpoint
//! file lie at [`crate::memory_map::DTU_BASE`]:
//!
//! | page | used by | contents |
//! |---|---|---|
//! | [`UNPRIVILEGED_PAGE`] | the running activity | command registers |
//! | [`PRIVILEGED_PAGE`] | TileMux | current activity, TLB, timer, core requests |
//! | [`EXTERNAL_PAGE`] | the kernel, through the network | features, buckets, hart control |
//! | [`ENDPOINTS`] | the kernel writes, the tile reads | endpoint registers |
//!
//! A tile's own hart may read everything, and may write the first two pages. External registers and endpoints are
//! written through the network by a unit whose [`FEATURE_PRIVILEGED`] bit is set (the kernel's), or locally on such a
//! tile. Everything else is ignored (writes) or faults (accesses that are not 8 bytes wide and aligned).

/// Offset of the page that applications may use.
pub const UNPRIVILEGED_PAGE: u64 = 0x0000;
/// Command register: see [`Command`]. A write starts the command; a read gives opcode 0 and the error when it is done.
pub const COMMAND: u64 = 0x00;
/// Address of the data in the activity's address space: virtual, translated by the unit's TLB; but tile-physical while
/// the current activity is [`TILEMUX_ACTIVITY`] (as after reset), because TileMux and the kernel run untranslated.
pub const ADDRESS: u64 = 0x08;
/// Number of bytes of the transfer.
pub const SIZE: u64 = 0x10;
/// Argument: offset into a memory endpoint (read, write), reply label (send), timeout in nanoseconds (sleep);
/// after a fetch, the offset of the fetched message in the receive buffer or [`NO_MESSAGE`].
pub const ARGUMENT: u64 = 0x18;
/// Nanoseconds since reset (read only).
pub const TIME: u64 = 0x20;

/// Offset of the page for the tile's multiplexer.
pub const PRIVILEGED_PAGE: u64 = 0x1000;
/// Current activity: see [`CurrentActivity`]. Read only; changed by [`PrivilegedOpcode::ExchangeActivity`].
pub const CURRENT_ACTIVITY: u64 = 0x1000;
/// Privileged command: an opcode of [`PrivilegedOpcode`] in bits 7..0. Reads give 0 in bits 7..0 and the
/// [`DtuError`] in bits 31..24. Privileged commands complete before the next instruction.
pub const PRIVILEGED_COMMAND: u64 = 0x1008;
/// First argument and result of a privileged command.
pub const PRIVILEGED_ARGUMENT: u64 = 0x1010;
/// Second argument of a privileged command.
pub const PRIVILEGED_ARGUMENT2: u64 = 0x1018;
/// Core request: see [`CoreRequest`]. Non-zero while a message for an activity that does not run is announced and the
/// external interrupt is pending. Any write acknowledges it.
pub const CORE_REQUEST: u64 = 0x1020;
/// Reads 1 while the unit's timer has expired; any write acknowledges it. Expiry raises the external interrupt.
pub const TIMER_EXPIRED: u64 = 0x1028;

/// First of [`AWAITED_COUNT`] registers, 8 bytes each: the messages that may interrupt, see [`Awaited`].
pub const AWAITED: u64 = 0x1040;
/// Registers from [`AWAITED`] on: one for each activity of a tile, and one for TileMux.
pub const AWAITED_COUNT: usize = 17;
/// Nanoseconds in a unit of an [`Awaited`] register's delay.
pub const AWAITED_DELAY: u64 = 256;
/// The longest delay in nanoseconds: 23 bits of units, a little more than two seconds.
pub const AWAITED_DELAY_MAX: u64 = ((1 << 23) - 1) * AWAITED_DELAY;

/// Offset of the page that only the kernel may write.
pub const EXTERNAL_PAGE: u64 = 0x2000;
/// Feature bits of the unit: [`FEATURE_PRIVILEGED`].
pub const FEATURES: u64 = 0x2000;
/// Argument of an external command. Write it before the command, or with it in one packet.
pub const EXTERNAL_ARGUMENT: u64 = 0x2008;
/// External command: an opcode of [`ExternalOpcode`] in bits 7..0, an endpoint in bits 23..8 and a number (of endpoints, of lines) in bits 39..24.
/// Executed when written; see [`external_command`].
pub const EXTERNAL_COMMAND: u64 = 0x2010;
/// The send or memory endpoint with an unanswered packet in transit, or [`NO_ENDPOINT`] (read only). Nothing leaves through an endpoint
/// that was invalidated. So once this register does not show such an endpoint, no packet of its former user is in transit.
pub const UNDER_WAY: u64 = 0x2020;
/// 1 while an [`ExternalOpcode::WriteBack`] runs: memory has not yet received all of its lines (read only).
pub const WRITING_BACK: u64 = 0x2028;
/// First token bucket: bucket `i` lies at `BUCKETS + i * BUCKET_STRIDE`.
pub const BUCKETS: u64 = 0x2040;
/// Distance between two buckets in bytes.
pub const BUCKET_STRIDE: u64 = 0x20;
/// Refill rate in bytes per second; 0 means that the bucket does not regulate.
pub const BUCKET_RATE: u64 = 0x00;
/// Bytes that may be sent at once (read and write).
pub const BUCKET_AMOUNT: u64 = 0x08;
/// Bound of the amount in bytes.
pub const BUCKET_LIMIT: u64 = 0x10;
/// Bytes that machine mode may borrow from the bucket of the current activity; 0 after reset.
pub const BORROWED: u64 = 0x2018;
/// The value of [`BORROWED`] on a tile that activities share, so that TileMux can switch while a bucket is empty: 144 lines of 64
/// bytes, each of which evicts at most two others. The activity does not continue before it has paid.
pub const PRIVILEGED_CREDIT: u32 = 3 * 144 * 64;
/// The most lines that a tile has in transit back to memory (its write-back buffer).
pub const WRITE_BACKS: u32 = 16;
/// The most lines that one [`ExternalOpcode::WriteBack`] takes: a page of 64-byte lines.
pub const WRITE_BACK_LINES: u16 = 64;
/// Number of token buckets in a unit (m3-rtas24, section V-D).
pub const BUCKET_COUNT: usize = 4;

/// First virtual address of the memory that the tile's device may use.
pub const DEVICE_ADDRESS: u64 = 0x2100;
/// Tile-physical address behind [`DEVICE_ADDRESS`].
pub const DEVICE_PHYSICAL: u64 = 0x2108;
/// Bytes of that memory; 0: none.
pub const DEVICE_SIZE: u64 = 0x2110;
/// The owner of the tile's device: its activity in bits 15..0, the receive endpoint for the device's interrupts in bits 31..16. A
/// write resets the device, which then obeys the three registers above.
pub const DEVICE_OWNER: u64 = 0x2118;

/// Offset of the endpoint file: endpoint `i` lies at `ENDPOINTS + i * ENDPOINT_STRIDE`.
pub const ENDPOINTS: u64 = 0x4000;
/// Bytes of an endpoint: four 64-bit words.
pub const ENDPOINT_STRIDE: u64 = 32;
/// Words of an endpoint.
pub const ENDPOINT_WORDS: usize = 4;

/// The unit may write external registers and endpoints of its own and of other tiles.
pub const FEATURE_PRIVILEGED: u64 = 1;
/// Result of a fetch that found no message.
pub const NO_MESSAGE: u64 = u64::MAX;
/// "No endpoint", where an endpoint is optional; also "any endpoint" for sleep.
pub const NO_ENDPOINT: u16 = 0xFFFF;
/// Activity identifier of TileMux itself; it is regulated like any activity.
pub const TILEMUX_ACTIVITY: u16 = 0xFFFF;
/// Activity identifier while nothing runs.
pub const IDLE_ACTIVITY: u16 = 0xFFFE;
/// Timeout of a sleep without a timeout.
pub const NO_TIMEOUT: u64 = 0;
/// Most bytes of a message slot, header included.
pub const MESSAGE_MAX: usize = 2048;
/// Most slots of a receive endpoint.
pub const SLOTS_MAX: usize = 32;
/// A transfer travels in chunks of at most this many bytes (m3-rtas24, section IV-B).
pub const CHUNK_MAX: usize = 512;
/// Granularity of the unit's TLB in bytes. A command must not cross such a page.
pub const PAGE_SIZE: u64 = 4096;

/// Defines an enum with `from_code`, so that a code is written once.
macro_rules! codes {
    ($(#[$meta:meta])* $name:ident: $repr:ty { $($(#[$doc:meta])* $variant:ident = $value:expr,)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr($repr)]
        pub enum $name { $($(#[$doc])* $variant = $value,)+ }
        impl $name {
            /// Every value, in the order of the codes.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];
            /// The value with this code, if there is one.
            pub const fn from_code(code: $repr) -> Option<Self> {
                match code { $($value => Some(Self::$variant),)+ _ => None }
            }
        }
    };
}
pub(crate) use codes;

codes! {
    /// Commands of the unprivileged page.
    Opcode: u8 {
        /// No command runs. Writing it starts nothing and stores the written value, so that TileMux can put back the
        /// outcome of a command that the activity which it preempted has not read yet.
        Idle = 0,
        /// Send `SIZE` bytes from `ADDRESS` through send endpoint `ep`; argument: reply endpoint; `ARGUMENT`: reply label.
        Send = 1,
        /// Reply to the message at offset argument of receive endpoint `ep`, and acknowledge it.
        Reply = 2,
        /// Read `SIZE` bytes at `ARGUMENT` of memory endpoint `ep` to `ADDRESS`.
        Read = 3,
        /// Write `SIZE` bytes from `ADDRESS` to `ARGUMENT` of memory endpoint `ep`.
        Write = 4,
        /// Fetch the next unread message of receive endpoint `ep`, round robin over the slots.
        Fetch = 5,
        /// Acknowledge (free) the message at offset argument of receive endpoint `ep`.
        Acknowledge = 6,
        /// Sleep until a message for the current activity is unread (for `ep`, or any if [`NO_ENDPOINT`]), an
        /// interrupt is pending, or `ARGUMENT` nanoseconds have passed ([`NO_TIMEOUT`]: never).
        Sleep = 7,
    }
}

codes! {
    /// Commands of the privileged page.
    PrivilegedOpcode: u8 {
        /// Nothing.
        Idle = 0,
        /// Make `PRIVILEGED_ARGUMENT` the current activity; the old value is left in `PRIVILEGED_ARGUMENT`. Atomic.
        ExchangeActivity = 1,
        /// Insert a TLB entry: argument = virtual page | [`TLB_WRITE`] | [`TLB_READ`]; argument 2 = physical page |
        /// activity in bits 63..48.
        InsertTlb = 2,
        /// Invalidate one TLB entry: argument = virtual page, argument 2 = activity in bits 63..48.
        InvalidatePage = 3,
        /// Invalidate the whole TLB.
        InvalidateTlb = 4,
        /// Arm the timer: argument = nanoseconds from now, 0 disarms it.
        SetTimer = 5,
        /// Abort the running unprivileged command, if it can still be undone; its error becomes `Aborted`.
        AbortCommand = 6,
        /// Start the tile's second hart at the physical address in the argument, in machine mode. From now on core requests
        /// interrupt it, and only the timer interrupts the first one. Nothing happens on a tile with one hart.
        StartSecond = 7,
    }
}

codes! {
    /// Commands of the external page.
    ExternalOpcode: u8 {
        /// Nothing.
        Idle = 0,
        /// Invalidate this many endpoints of any type, from the named one on, and drop their unread messages.
        InvalidateEndpoint = 1,
        /// Reset the tile's hart and start it at the tile-physical address in the argument, in machine mode.
        StartHart = 2,
        /// Stop the tile's hart for good; running commands of its unit are aborted.
        StopHart = 3,
        /// Write this many lines (not endpoints; at most [`WRITE_BACK_LINES`]) of the tile's caches back to the memory that they came from
        /// and evict them, starting at the line with the tile-physical address in the argument. [`WRITING_BACK`] says when memory has them
        /// all. The command is refused while another such command runs. A tile's own hart cannot issue it.
        WriteBack = 4,
    }
}

codes! {
    /// Outcome of a command, in bits 31..24 of [`COMMAND`].
    DtuError: u8 {
        /// Done.
        None = 0,
        /// The endpoint does not exist, is invalid or has another type.
        InvalidEndpoint = 1,
        /// The endpoint belongs to another activity.
        ForeignEndpoint = 2,
        /// The unit's TLB has no entry with the needed rights for `ADDRESS`; insert it and try again.
        TranslationFault = 3,
        /// The transfer crosses a page, is larger than a message may be, or is empty.
        BadSize = 4,
        /// The send endpoint has no credits.
        NoCredits = 5,
        /// The receiver has no free slot, or its slots of this gate are all occupied (see [`SendEndpoint::shares`]).
        NoSpace = 6,
        /// The receiver's endpoint is invalid or not a receive endpoint.
        ReceiverGone = 7,
        /// The offset is outside the memory endpoint's region.
        OutOfBounds = 8,
        /// The endpoint does not allow this direction.
        NoPermission = 9,
        /// The offset is not the start of a fetched message.
        BadMessage = 10,
        /// The message gives no right to reply, or the right is used up.
        NoReply = 11,
        /// The command was aborted.
        Aborted = 12,
        /// The opcode is unknown.
        UnknownCommand = 13,
        /// The target is not a tile, or refused the access.
        TargetRefused = 14,
        /// A command is still running; the new one was ignored.
        Busy = 15,
        /// The sleep ended by its timeout or by an interrupt, not by a message.
        Woken = 16,
    }
}

/// The value of [`EXTERNAL_COMMAND`] for `count` endpoints from `endpoint` on.
pub const fn external_command(opcode: ExternalOpcode, endpoint: u16, count: u16) -> u64 {
    opcode as u64 | (endpoint as u64) << 8 | (count as u64) << 24
}

/// Right to read through a TLB entry or memory endpoint.
pub const TLB_READ: u64 = 1;
/// Right to write through a TLB entry or memory endpoint.
pub const TLB_WRITE: u64 = 2;

/// Contents of [`COMMAND`]: opcode 7..0, endpoint 23..8, error 31..24 (when read), argument 63..32.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command(pub u64);

impl Command {
    /// A command to be written.
    pub const fn new(opcode: Opcode, endpoint: u16, argument: u32) -> Self {
        Self(opcode as u64 | (endpoint as u64) << 8 | (argument as u64) << 32)
    }
    /// Code of the operation; 0 when the unit is idle.
    pub const fn opcode(self) -> u8 {
        self.0 as u8
    }
    /// The endpoint.
    pub const fn endpoint(self) -> u16 {
        (self.0 >> 8) as u16
    }
    /// Code of the error of the last command.
    pub const fn error(self) -> u8 {
        (self.0 >> 24) as u8
    }
    /// The argument.
    pub const fn argument(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

/// Contents of [`CURRENT_ACTIVITY`]: activity 15..0, unread messages 31..16, token bucket 33..32; in the argument of
/// [`PrivilegedOpcode::ExchangeActivity`] also its urgency 47..40, see [`Awaited`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CurrentActivity(pub u64);

impl CurrentActivity {
    /// Packs the fields.
    pub const fn new(activity: u16, messages: u16, bucket: u8) -> Self {
        Self(activity as u64 | (messages as u64) << 16 | ((bucket & 3) as u64) << 32)
    }
    /// The same with an urgency: only messages for activities that are at least as urgent interrupt.
    pub const fn with_urgency(self, urgency: u8) -> Self {
        Self(self.0 | (urgency as u64) << 40)
    }
    /// How urgent the activity is.
    pub const fn urgency(self) -> u8 {
        (self.0 >> 40) as u8
    }
    /// The activity.
    pub const fn activity(self) -> u16 {
        self.0 as u16
    }
    /// Unread messages of the activity.
    pub const fn messages(self) -> u16 {
        (self.0 >> 16) as u16
    }
    /// The token bucket that pays for its traffic.
    pub const fn bucket(self) -> u8 {
        (self.0 >> 32) as u8 & 3
    }
}

/// Contents of [`CORE_REQUEST`]: activity 15..0, endpoint 31..16, valid bit 63.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoreRequest(pub u64);

impl CoreRequest {
    /// A valid request.
    pub const fn new(activity: u16, endpoint: u16) -> Self {
        Self(activity as u64 | (endpoint as u64) << 16 | 1 << 63)
    }
    /// Whether there is a request.
    pub const fn is_valid(self) -> bool {
        self.0 >> 63 != 0
    }
    /// The receiver of the message.
    pub const fn activity(self) -> u16 {
        self.0 as u16
    }
    /// The endpoint that holds the message.
    pub const fn endpoint(self) -> u16 {
        (self.0 >> 16) as u16
    }
}

/// Contents of a register from [`AWAITED`] on: activity 15..0, endpoint 31..16 ([`NO_ENDPOINT`]: any), urgency 39..32, delay 62..40 in
/// units of [`AWAITED_DELAY`], valid bit 63. Until the delay after the write is over, the register covers nothing. Acknowledging the
/// announcement of a message that it covers clears it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Awaited(pub u64);

impl Awaited {
    /// The largest delay, in units.
    const UNITS: u64 = AWAITED_DELAY_MAX / AWAITED_DELAY;

    /// A message for the endpoint may interrupt an activity that is not more urgent.
    pub const fn new(activity: u16, endpoint: u16, urgency: u8) -> Self {
        Self(activity as u64 | (endpoint as u64) << 16 | (urgency as u64) << 32 | 1 << 63)
    }
    /// The same after a delay in nanoseconds, rounded up to units; at most [`AWAITED_DELAY_MAX`].
    pub const fn after(self, nanoseconds: u64) -> Self {
        let units = nanoseconds.div_ceil(AWAITED_DELAY);
        let units = if units > Self::UNITS {
            Self::UNITS
        } else {
            units
        };
        Self(self.0 & !(Self::UNITS << 40) | units << 40)
    }
    /// The delay in nanoseconds.
    pub const fn delay(self) -> u64 {
        let units = self.0 >> 40;
        (units & Self::UNITS) * AWAITED_DELAY
    }
    /// Whether this covers a message for an endpoint of an activity, once its delay is over.
    pub const fn is_for(self, activity: u16, endpoint: u16) -> bool {
        let wanted = (self.0 >> 16) as u16;
        self.0 >> 63 != 0
            && self.0 as u16 == activity
            && (wanted == endpoint || wanted == NO_ENDPOINT)
    }
    /// How urgent the activity is.
    pub const fn urgency(self) -> u8 {
        (self.0 >> 32) as u8
    }
}

/// An endpoint in unpacked form. [`Endpoint::pack`] and [`Endpoint::unpack`] convert it to and from its register words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Endpoint {
    /// Nothing; every use fails.
    #[default]
    Invalid,
    /// Sends messages to one receive endpoint.
    Send(SendEndpoint),
    /// Receives messages into a buffer of equal slots.
    Receive(ReceiveEndpoint),
    /// Reads and writes a region of another tile's memory.
    Memory(MemoryEndpoint),
}

/// See [`Endpoint::Send`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct SendEndpoint {
    /// Owner.
    pub activity: u16,
    /// Tile of the receiver.
    pub target_tile: u16,
    /// Receive endpoint there.
    pub target_endpoint: u16,
    /// Number that the receiver sees in each message and the sender cannot forge.
    pub label: u64,
    /// Messages that may be sent now.
    pub credits: u8,
    /// Bound of `credits`; [`UNLIMITED_CREDITS`]: never counted.
    pub credits_max: u8,
    /// Most bytes of a message, header included.
    pub message_size: u16,
    /// For a reply endpoint: the send endpoint at the target whose credit the reply returns, or [`NO_ENDPOINT`].
    pub credit_endpoint: u16,
    /// Whether this is a one-shot right to reply, made by the unit itself.
    pub reply: bool,
    /// Each slot of the receiver has a share, and each share belongs to one gate: bit `i` says that share `i` belongs to this
    /// endpoint's gate. The receiver's unit stores a message only with a free share of its gate, so all endpoints of a gate together
    /// never occupy more slots than the gate has shares. 0: not limited, as every right to reply.
    pub shares: u32,
    /// For a right to reply: how many configurations of endpoints the sender's unit had counted when the message left. Otherwise 0.
    pub epoch: u64,
}

impl SendEndpoint {
    /// A channel of `activity` to a tile's receive endpoint, with all of its credits.
    pub const fn new(
        activity: u16,
        (target_tile, target_endpoint): (u16, u16),
        label: u64,
        credits: u8,
        message_size: u16,
    ) -> Self {
        Self {
            activity,
            target_tile,
            target_endpoint,
            label,
            credits,
            credits_max: credits,
            message_size,
            credit_endpoint: NO_ENDPOINT,
            reply: false,
            shares: 0,
            epoch: 0,
        }
    }

    /// The same for a gate with these shares of the receiver's slots: as many credits as shares, or unlimited ones without shares.
    pub const fn of_gate(
        activity: u16,
        to: (u16, u16),
        (label, shares): (u64, u32),
        message_size: u16,
    ) -> Self {
        let credits = match shares {
            0 => UNLIMITED_CREDITS,
            shares => shares.count_ones() as u8,
        };
        Self {
            shares,
            ..Self::new(activity, to, label, credits, message_size)
        }
    }
}

/// Value of [`SendEndpoint::credits_max`] for a channel without credits.
pub const UNLIMITED_CREDITS: u8 = 0xFF;

/// See [`Endpoint::Receive`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct ReceiveEndpoint {
    /// Owner.
    pub activity: u16,
    /// First of `slots` endpoints in which the unit keeps the rights to reply, or [`NO_ENDPOINT`].
    pub reply_endpoints: u16,
    /// Tile-physical address of the buffer; a multiple of 64.
    pub buffer: u64,
    /// Bytes of a slot, header included: a multiple of 64, at most [`MESSAGE_MAX`].
    pub slot_size: u16,
    /// Number of slots: 1 to [`SLOTS_MAX`].
    pub slots: u8,
    /// Slot where the next fetch starts to look.
    pub position: u8,
    /// Bit i: slot i holds a message that is not acknowledged.
    pub occupied: u32,
    /// Bit i: the message in slot i has not been fetched.
    pub unread: u32,
}

impl From<SendEndpoint> for Endpoint {
    fn from(endpoint: SendEndpoint) -> Self {
        Endpoint::Send(endpoint)
    }
}

impl From<ReceiveEndpoint> for Endpoint {
    fn from(endpoint: ReceiveEndpoint) -> Self {
        Endpoint::Receive(endpoint)
    }
}

impl ReceiveEndpoint {
    /// An endpoint of `activity` with a buffer of empty slots: bytes of each, and how many. `reply_endpoints` as in the field.
    pub fn new(
        activity: u16,
        buffer: u64,
        (slot_size, slots): (u16, u8),
        reply_endpoints: u16,
    ) -> Self {
        Self {
            activity,
            reply_endpoints,
            buffer,
            slot_size,
            slots,
            ..Self::default()
        }
    }
}

/// See [`Endpoint::Memory`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct MemoryEndpoint {
    /// Owner.
    pub activity: u16,
    /// A memory tile; or, for the kernel, a processing tile, whose DTU registers are then addressed from offset 0.
    pub target_tile: u16,
    /// [`TLB_READ`] and [`TLB_WRITE`].
    pub rights: u8,
    /// First byte of the region in the target.
    pub base: u64,
    /// Bytes of the region.
    pub size: u64,
}

impl Endpoint {
    /// The register words of the endpoint.
    pub const fn pack(&self) -> [u64; ENDPOINT_WORDS] {
        match self {
            Endpoint::Invalid => [0; ENDPOINT_WORDS],
            Endpoint::Send(s) => [
                1 | (s.reply as u64) << 8
                    | (s.activity as u64) << 16
                    | (s.target_endpoint as u64) << 32
                    | (s.target_tile as u64) << 48,
                s.label,
                s.credits as u64
                    | (s.credits_max as u64) << 8
                    | (s.message_size as u64) << 16
                    | (s.credit_endpoint as u64) << 32,
                // Only rights to reply have an epoch, and they have no shares.
                if s.reply { s.epoch } else { s.shares as u64 },
            ],
            Endpoint::Receive(r) => [
                2 | (r.activity as u64) << 16 | (r.reply_endpoints as u64) << 32,
                r.buffer,
                r.slot_size as u64 | (r.slots as u64) << 16 | (r.position as u64) << 24,
                r.occupied as u64 | (r.unread as u64) << 32,
            ],
            Endpoint::Memory(m) => [
                3 | (m.activity as u64) << 16
                    | (m.rights as u64) << 32
                    | (m.target_tile as u64) << 48,
                m.base,
                m.size,
                0,
            ],
        }
    }

    /// The endpoint that these register words describe; unknown types are invalid.
    pub const fn unpack(words: [u64; ENDPOINT_WORDS]) -> Self {
        let [head, w1, w2, w3] = words;
        let activity = (head >> 16) as u16;
        match head as u8 {
            1 => Endpoint::Send(SendEndpoint {
                activity,
                target_tile: (head >> 48) as u16,
                target_endpoint: (head >> 32) as u16,
                label: w1,
                credits: w2 as u8,
                credits_max: (w2 >> 8) as u8,
                message_size: (w2 >> 16) as u16,
                credit_endpoint: (w2 >> 32) as u16,
                reply: head >> 8 & 1 != 0,
                shares: if head >> 8 & 1 != 0 { 0 } else { w3 as u32 },
                epoch: if head >> 8 & 1 != 0 { w3 } else { 0 },
            }),
            2 => Endpoint::Receive(ReceiveEndpoint {
                activity,
                reply_endpoints: (head >> 32) as u16,
                buffer: w1,
                slot_size: w2 as u16,
                slots: (w2 >> 16) as u8,
                position: (w2 >> 24) as u8,
                occupied: w3 as u32,
                unread: (w3 >> 32) as u32,
            }),
            3 => Endpoint::Memory(MemoryEndpoint {
                activity,
                target_tile: (head >> 48) as u16,
                rights: (head >> 32) as u8,
                base: w1,
                size: w2,
            }),
            _ => Endpoint::Invalid,
        }
    }
}
