//! The messages between TileMux and the kernel, and the calls of applications to TileMux.
//!
//! On every user tile the kernel sets up the endpoints of this module before it starts TileMux, and places a [`TileMuxConfig`]. Requests
//! of the kernel arrive as messages for [`crate::dtu::TILEMUX_ACTIVITY`]; a reply is one word, a [`TileMuxError`]. TileMux sends
//! notifications to the kernel and gets no reply. Applications use `ecall` with the number of an [`Ecall`] in `a7`.

use crate::dtu::codes;
use crate::field::Field;
use crate::memory_map::MEMORY_BASE;
use crate::syscall::StopCause;
use crate::words::{Reader, Words};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Activity number of the kernel.
pub const KERNEL_ACTIVITY: u16 = 0;
/// Receive endpoint of TileMux for requests.
pub const REQUEST_ENDPOINT: u16 = 4;
/// First of the endpoints for the rights to reply, one for each of [`REQUEST_SLOTS`].
pub const REQUEST_REPLIES: u16 = 5;
/// Slots of [`REQUEST_ENDPOINT`].
pub const REQUEST_SLOTS: u8 = 2;
/// Bytes of such a slot.
pub const REQUEST_SLOT: u16 = 128;
/// Send endpoint of TileMux to the kernel for notifications.
pub const NOTIFY_ENDPOINT: u16 = 7;
/// Send endpoint of TileMux to the kernel for text of its activities, one message at a time.
pub const PRINT_ENDPOINT: u16 = 8;
/// Receive endpoint of TileMux for the kernel's answers to text and for pagers' answers: [`PRINT_REPLY_SLOTS`] slots of
/// [`PRINT_REPLY_SLOT`] bytes. The label of the kernel's answers is 0.
pub const PRINT_REPLY: u16 = 9;
/// Slots of [`PRINT_REPLY`]: for text one more than the messages outstanding, because an answer, and with it the credit for the next
/// message, may come between TileMux's check of the buffer and that message; and one for a fault of each activity.
pub const PRINT_REPLY_SLOTS: u8 = 18;
/// Most bytes of text in a message.
pub const PRINT_TEXT: usize = 128;
/// Bytes before the text in a message: the activity that printed it.
pub const PRINT_HEAD: usize = 8;
/// Bytes of a slot for text, header included.
pub const PRINT_SLOT: u16 = 192;
/// Bytes of the slot of [`PRINT_REPLY`].
pub const PRINT_REPLY_SLOT: u16 = 64;
/// First endpoint of a user tile that is free for activities.
pub const FIRST_ENDPOINT: u16 = 10;

/// Nanoseconds between two requests of the kernel that a TileMux carries out while an activity with a priority wants its hart,
/// whichever activities caused them: two million cycles of the hart (`hertz`), some tens of times the length of a request.
pub const fn request_distance(hertz: u64) -> u64 {
    (2_000_000 * 1_000_000_000_u64).div_ceil(if hertz == 0 { 1 } else { hertz })
}

/// On a tile with time slices, after a request of the kernel, the activities get the hart for this many times the duration of that request,
/// if they want it, before the next request.
pub const REQUEST_REST: u64 = 9;

/// The most pieces of a request: one for each page table that it makes. Pages around a boundary of the top level need four.
pub const REQUEST_PIECES: u64 = 4;

/// Most activities of a TileMux.
pub const ACTIVITIES: usize = 16;

/// Bytes at the start of a tile's memory that belong to TileMux: code, data, stack, request buffer.
pub const TILEMUX_MEMORY: u64 = 0x2_0000;
/// Tile-physical address at which TileMux is linked and starts.
pub const TILEMUX_BASE: u64 = MEMORY_BASE;
/// Tile-physical address of the [`TileMuxConfig`].
pub const TILEMUX_CONFIG: u64 = TILEMUX_BASE + TILEMUX_MEMORY - 0x1000;
/// Tile-physical address of the buffer of [`REQUEST_ENDPOINT`].
pub const TILEMUX_BUFFER: u64 = TILEMUX_BASE + TILEMUX_MEMORY - 0x800;

/// Tile-physical address of the buffer of [`PRINT_REPLY`].
pub const TILEMUX_PRINT_BUFFER: u64 = TILEMUX_CONFIG + 0x100;

/// Placed by the kernel at [`TILEMUX_CONFIG`].
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct TileMuxConfig {
    /// The tile.
    pub tile: u64,
    /// Frequency of the `time` CSR in hertz.
    pub timebase: u64,
    /// Time slice in nanoseconds.
    pub slice: u64,
    /// A [`TilePolicy`].
    pub policy: u64,
    /// Harts of the tile: with 2, the second takes the interrupts for messages to activities that do not run.
    pub harts: u64,
    /// [`request_distance`] of the tile.
    pub distance: u64,
    /// Bytes of a line of its caches, if these hold data.
    pub line: u64,
}

codes! {
    /// How TileMux orders the activities of its tile.
    TilePolicy: u64 {
        /// Round robin with time slices.
        Throughput = 0,
        /// Fixed priorities.
        Realtime = 1,
    }
}

/// Time slice in nanoseconds where the description gives none: 1 ms, as in the tiled OS.
pub const DEFAULT_SLICE: u32 = 1_000_000;

codes! {
    /// Outcome of a request; the one word of a reply.
    TileMuxError: u64 {
        /// Done.
        None = 0,
        /// The request is malformed.
        BadRequest = 1,
        /// No such activity on this tile.
        NoActivity = 2,
        /// All places for activities are taken.
        Full = 3,
        /// No page left for a page table.
        NoTable = 4,
        /// The activity's state does not allow it.
        WrongState = 5,
        /// TileMux does not answer; only the kernel uses this code. Its tile is lost, the others continue.
        NoAnswer = 6,
        /// A page table was made, and more is left to do; only TileMux uses this code. It carries out the same request again as the next
        /// one.
        Again = 7,
    }
}

/// Declares the requests: the enumeration, the fields of each, and both directions of their encoding.
macro_rules! requests {
    ($($(#[$doc:meta])* $name:ident = $number:literal { $($(#[$field_doc:meta])* $field:ident: $kind:ty,)* })+) => {
        /// A request of the kernel.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Request { $($(#[$doc])* $name { $($(#[$field_doc])* $field: $kind,)* },)+ }

        /// The arguments of each request, for the code that carries it out.
        pub mod orders {
            $(
                $(#[$doc])*
                #[derive(Clone, Copy, Debug, PartialEq, Eq)]
                pub struct $name { $($(#[$field_doc])* pub $field: $kind,)* }
            )+
        }

        /// A request for the code that carries it out: its arguments together.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Order { $($(#[$doc])* $name(orders::$name),)+ }

        impl From<Request> for Order {
            fn from(request: Request) -> Self {
                match request {
                    $(Request::$name { $($field,)* } => Order::$name(orders::$name { $($field,)* }),)+
                }
            }
        }

        impl Request {
            /// The activity that the request is about.
            pub const fn activity(&self) -> u16 {
                match *self {
                    $(Request::$name { activity, .. } => activity,)+
                }
            }

            /// The request as words.
            pub fn encode(&self) -> Words<8> {
                let mut words = Words::new();
                match *self {
                    $(Request::$name { $($field,)* } => words.push(&[$number, $($field.into(),)*]),)+
                };
                words
            }

            /// Decodes a request; `None` if the words are not one.
            pub fn decode(words: &[u64]) -> Option<Self> {
                let mut reader = Reader(words);
                match reader.word()? {
                    $($number => Some(Request::$name { $($field: Field::get(&mut reader)?,)* }),)+
                    _ => None,
                }
            }
        }
    };
}

requests! {
    /// Makes an activity known.
    Create = 1 {
        /// Its number.
        activity: u16,
        /// Pages that it may have for page tables.
        table_pages: u64,
    }
    /// Maps pages.
    Map = 2 {
        /// The activity.
        activity: u16,
        /// Virtual address.
        address: u64,
        /// Tile-physical address.
        physical: u64,
        /// Number of pages.
        pages: u64,
        /// Rights as in [`crate::syscall::MAP_READ`] and so on.
        rights: u8,
    }
    /// Sets the token bucket that pays for its traffic.
    SetBucket = 3 {
        /// The activity.
        activity: u16,
        /// Bucket of the tile's unit.
        bucket: u8,
    }
    /// Sets its budget in nanoseconds per period, and its priority. Activities with a budget come before those without.
    SetBudget = 4 {
        /// The activity.
        activity: u16,
        /// Nanoseconds of execution.
        budget: u64,
        /// Nanoseconds.
        period: u64,
        /// Greater is more urgent; has a meaning only on tiles with [`TilePolicy::Realtime`]. 0 if it has no budget.
        priority: u8,
        /// The time from which it may use the budget, in nanoseconds since reset; before that, another activity may have used it.
        start: u64,
    }
    /// Starts it.
    Start = 5 {
        /// The activity.
        activity: u16,
        /// First instruction.
        entry: u64,
        /// Stack pointer.
        stack: u64,
    }
    /// Removes it.
    Stop = 6 {
        /// The activity.
        activity: u16,
    }
    /// Ends its wait, because something that it may wait for can no longer arrive.
    Wake = 7 {
        /// The activity.
        activity: u16,
    }
    /// Sends page faults in a range to a pager.
    SetPager = 8 {
        /// The activity.
        activity: u16,
        /// Send endpoint of TileMux that leads to the pager.
        endpoint: u16,
        /// First address.
        address: u64,
        /// Pages.
        pages: u64,
        /// More pages that it may have for page tables.
        table_pages: u64,
    }
    /// Maps pages in the range of its pager, and replaces the pages that are mapped there, whether it runs or not; without rights,
    /// unmaps them.
    MapPages = 9 {
        /// The activity.
        activity: u16,
        /// Virtual address.
        address: u64,
        /// Tile-physical address.
        physical: u64,
        /// Number of pages.
        pages: u64,
        /// Rights as in [`crate::syscall::MAP_READ`] and so on.
        rights: u8,
    }
    /// Gives pages for page tables, of any activity.
    Tables = 10 {
        /// The activity that gives them.
        activity: u16,
        /// Tile-physical address.
        physical: u64,
        /// Number of pages.
        pages: u64,
    }
}

/// TileMux tells the kernel that an activity stopped: the activity and the words of the cause.
pub fn encode_stopped(activity: u16, cause: StopCause) -> [u64; 5] {
    let [kind, a, b, c] = cause.to_words();
    [activity.into(), kind, a, b, c]
}

/// Reads a notification.
pub fn decode_stopped(words: &[u64]) -> Option<(u16, StopCause)> {
    let &[activity, kind, a, b, c] = words else {
        return None;
    };
    Some((
        activity.try_into().ok()?,
        StopCause::from_words([kind, a, b, c])?,
    ))
}

codes! {
    /// Calls of an application to TileMux: the number in `a7`, arguments in `a0` to `a2`, the result in `a0`.
    Ecall: u64 {
        /// Ends the activity; `a0`: exit code.
        Exit = 0,
        /// Makes the page at virtual address `a0` usable for the DTU with rights `a1` ([`crate::dtu::TLB_READ`],
        /// [`crate::dtu::TLB_WRITE`]). Result: 0, or 1 if the activity has no such right.
        Translate = 1,
        /// Gives the hart to others until a message for endpoint `a0` ([`crate::dtu::NO_ENDPOINT`]: any) is unread or the
        /// DTU's time reaches `a1` nanoseconds (0: no end).
        Wait = 2,
        /// Gives up the rest of the time slice.
        Yield = 3,
        /// Prints `a1` bytes, at most [`PRINT_TEXT`], at `a0` on the system's console. Result: 0; 1 if they cannot be read; 2 if
        /// the tile's earlier text is still on its way: try again.
        Print = 4,
        /// Ends the activity after a panic; `a0` is 1 if the heap was exhausted.
        Panic = 5,
    }
}

/// A message with text: the activity that printed it, then the text.
pub fn encode_print(activity: u16, text: &[u8; PRINT_TEXT]) -> [u8; PRINT_HEAD + PRINT_TEXT] {
    let mut message = [0; PRINT_HEAD + PRINT_TEXT];
    message[..PRINT_HEAD].copy_from_slice(&u64::from(activity).to_le_bytes());
    message[PRINT_HEAD..].copy_from_slice(text);
    message
}

/// The activity and the text of a message, if it is one.
pub fn decode_print(message: &[u8]) -> Option<(u16, &[u8])> {
    let (activity, text) = message.split_first_chunk::<PRINT_HEAD>()?;
    let activity = u16::try_from(u64::from_le_bytes(*activity)).ok()?;
    Some((activity, text))
}

/// Pages for the page tables of an activity with `memory` bytes: the root, for a contiguous range one table of the last
/// level for each 2 MiB and one of the middle level for each GiB (and one more of each, as the range may straddle), and
/// one of each for the page of the DTU.
pub const fn table_pages(memory: u64) -> u64 {
    // A few pages more than the memory, for the guard pages.
    let pages = memory.div_ceil(4096) + 8;
    1 + (pages / 512 + 2) + (pages / (512 * 512) + 2) + 2
}
