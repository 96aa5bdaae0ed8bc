//! What TileMux, a pager and a manager must agree on.
//!
//! Why it exists: page faults of an application travel as messages from TileMux to the application's pager, and the manager that
//! starts both places the capabilities that a pager needs for each client. What it deliberately does not know: which page a pager
//! supplies.

use crate::dtu::codes;

/// Name of a pager's receive gate for page faults.
pub const FAULTS: &str = "faults";
/// Most clients of a pager.
pub const CLIENTS: u16 = 16;
/// Where a pager finds its client with number `n`: this plus `3 n` is the activity if its generation is even, the next selector the
/// activity if it is odd, and the one after that the memory for this client's pages. So requests still outstanding for an activity
/// that has ended never reach its successor.
pub const SEL_CLIENTS: u16 = crate::syscall::SEL_SESSIONS - 3 * CLIENTS;
/// Name of a pager's memory gate for unchanged pages of files that its clients share; may be missing.
pub const SHARED: &str = "shared";

/// The label of a client's faults: its number, and how often it had been started before.
pub const fn fault_label(client: u16, generation: u16) -> u64 {
    client as u64 | (generation as u64) << 16
}

/// The client and generation of a fault's label.
pub const fn label_fault(label: u64) -> (u16, u16) {
    (label as u16, (label >> 16) as u16)
}

/// Where a pager finds a client's activity.
pub const fn client_activity(client: u16, generation: u16) -> u16 {
    SEL_CLIENTS + 3 * client + generation % 2
}

/// Where a pager finds the memory for a client's pages.
pub const fn client_memory(client: u16) -> u16 {
    SEL_CLIENTS + 3 * client + 2
}
/// Bytes of addresses after the heap of an application with a pager, in which the pager can place files.
pub const AREA: u64 = 4 << 20;
/// Arguments that describe a pager's clients begin with this, followed by the client's number. The value is four numbers: first
/// address and pages of the heap, first address and pages of the area for files.
pub const CLIENT: &str = "client-";
/// Words of a fault: the address of the page, and a [`PagerAccess`].
pub const FAULT_WORDS: usize = 2;

codes! {
    /// The kind of access to a page that faulted.
    PagerAccess: u64 {
        /// To read it.
        Read = 1,
        /// To write it.
        Write = 2,
        /// To execute it.
        Execute = 4,
    }
}

codes! {
    /// The answer to a fault: one word.
    PagerAnswer: u64 {
        /// The page is mapped: try again.
        Mapped = 0,
        /// There will be no page: the activity is ended.
        Refused = 1,
    }
}
