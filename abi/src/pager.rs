//! What TileMux, a pager and a manager must agree on.
//!
//! Why it exists: page faults of an application travel as messages from TileMux to the pager of the application, and what a
//! pager needs for each client is placed by the manager that starts both. What it deliberately does not know: which page a
//! pager gives.

use crate::dtu::codes;

/// Name of a pager's receive gate for page faults.
pub const FAULTS: &str = "faults";
/// Clients of a pager at most.
pub const CLIENTS: u16 = 16;
/// Where a pager finds its client with number `n`: the activity at this plus `2 n`, and behind it the memory that pages for this
/// client come from. The number is the label of the client's faults.
pub const SEL_CLIENTS: u16 = crate::syscall::SEL_SESSIONS - 2 * CLIENTS;
/// Bytes of addresses behind the heap of an application with a pager, in which the pager can place files.
pub const AREA: u64 = 4 << 20;
/// Arguments of a pager that tell of its clients begin so; then comes the client's number. The value is five numbers: the activity,
/// first address and pages of the heap, first address and pages of the area for files.
pub const CLIENT: &str = "client-";
/// Words of a fault: the address of the page, and a [`PagerAccess`].
pub const FAULT_WORDS: usize = 2;

codes! {
    /// What somebody wanted of a page.
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
        /// The page is there: try again.
        Mapped = 0,
        /// It will not come: the activity is ended.
        Refused = 1,
    }
}
