//! Performance events: what `mhpmevent3` to `mhpmevent31` select, and the fields of Sscofpmf.
//!
//! The numbers are this machine's own; `docs/reference/events.md` says what each counts and when. Numbers without a name count
//! nothing.

/// Bits 7 to 0 of `mhpmevent`: the event.
pub const EVENT_MASK: u64 = 0xff;
/// The counter has overflowed; while it is set, the counter asks for no interrupt.
pub const OVERFLOW: u64 = 1 << 63;
/// The counter does not count in machine mode.
pub const NOT_MACHINE: u64 = 1 << 62;
/// The counter does not count in supervisor mode.
pub const NOT_SUPERVISOR: u64 = 1 << 61;
/// The counter does not count in user mode.
pub const NOT_USER: u64 = 1 << 60;
/// Number of the local counter-overflow interrupt (LCOFI) in `mip`, `mie`, `sip`, `sie` and `mideleg`.
pub const OVERFLOW_INTERRUPT: u32 = 13;
/// The CSR `scountovf`: bit i is the overflow bit of `mhpmevent` i.
pub const SCOUNTOVF: u16 = 0xda0;

macro_rules! events {
    ($($(#[$doc:meta])* $name:ident = $number:literal,)*) => {
        /// An event.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub enum Event { $($(#[$doc])* $name = $number,)* }

        impl Event {
            /// All events.
            pub const ALL: &[Event] = &[$(Event::$name),*];

            /// The event of a number.
            #[must_use]
            pub const fn of(number: u64) -> Option<Self> {
                match number {
                    $($number => Some(Event::$name),)*
                    _ => None,
                }
            }
        }
    };
}

events! {
    /// Fetches that are no hits of the first level.
    FetchMiss = 1,
    /// Loads and stores that are no hits of the first level.
    DataMiss = 2,
    /// Mispredicted branches, returns and indirect jumps.
    Misprediction = 3,
    /// Fetches that the first-level instruction TLB does not translate.
    FetchTlbMiss = 4,
    /// Loads and stores that the first-level data TLB does not translate.
    DataTlbMiss = 5,
    /// Conditional branches.
    Branch = 6,
    /// Loads, load-reserved and atomic operations: accesses of the first-level data cache that read, and of devices.
    Load = 7,
    /// Stores, successful store-conditionals and atomic operations.
    Store = 8,
    /// Traps, interrupts included.
    Trap = 9,
    /// Page-table walks.
    Walk = 10,
    /// Accesses to device registers.
    DeviceAccess = 11,
    /// Cycles since the hart was started, also those in WFI.
    Cycle = 12,
    /// Retired instructions.
    Instruction = 13,
    /// Interrupts among the traps.
    Interrupt = 14,
    /// Lines that came into the first-level instruction cache.
    FetchRefill = 15,
    /// Lines that came into the first-level data cache.
    DataRefill = 16,
    /// Modified lines that left the first-level data cache.
    DataWriteBack = 17,
    /// Requests of the first levels that the second level has looked up.
    SecondAccess = 18,
    /// Those among them whose line was not there.
    SecondMiss = 19,
    /// Lines that came into the second level from memory.
    SecondRefill = 20,
    /// Modified lines that the second level wrote to memory to make room.
    SecondWriteBack = 21,
    /// Cycles without instructions.
    StallFetch = 22,
    /// Cycles in which an instruction waited for the result of a miss.
    StallLoad = 23,
    /// Cycles in which a store waited for a place in the store buffer, or a fence for the buffer to drain.
    StallStore = 24,
    /// Cycles of TLB misses.
    StallTranslation = 25,
    /// Cycles lost by mispredictions and jumps.
    StallBranch = 26,
    /// Cycles of device accesses beyond one for each.
    StallDevice = 27,
    /// Cycles of trap entries and returns.
    StallTrap = 28,
    /// Cycles in WFI or asleep.
    Sleep = 29,
    /// Lines that the first-level data cache fetched ahead by itself.
    DataPrefetch = 30,
    /// Lines that the second level fetched ahead by itself.
    SecondPrefetch = 31,
    /// Lines among those of [`Event::SecondPrefetch`] that a request has used.
    SecondPrefetchUsed = 32,
    /// Lines among those of [`Event::SecondPrefetchUsed`] that had not come when the first request wanted them.
    SecondPrefetchLate = 33,
}
