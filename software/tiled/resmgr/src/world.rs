//! Everything that a manager has started, and what it knows about services.
//!
//! Why it exists: starting applications and passing services on are two sets of rules over one state. What it deliberately does not
//! know: these rules.

use crate::draft::Draft;
use crate::gates::Selectors;
use crate::load::{Filling, Modules};
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use bulkhead_abi::news::News;
use bulkhead_lib::common::payer::{Fixed, Own, Paid};
use bulkhead_resmgr::description::{Source, Subsystem};
use bulkhead_resmgr::progress::{Phase, Progress};

/// A manager below.
pub struct Below {
    pub draft: Draft,
    pub(crate) name: Box<str>,
    pub foreground: bool,
    pub phase: Phase,
    /// It was already reported for offering something that does not exist.
    pub has_lied: bool,
}

/// An application.
pub struct State {
    /// How far it is.
    pub progress: Progress,
    /// How often it was restarted.
    pub restarts: u32,
    /// It has a new activity, and nobody has been told that it is back.
    pub(crate) is_unsaid: bool,
    /// Its memory is being filled.
    pub(crate) filling: Option<Filling>,
    /// It was already reported for offering something that is not one of its services: it may do so as often as it likes.
    pub has_lied: bool,
    /// How often it has offered something since its start.
    pub offers: u32,
    /// The pager of this activity of it has ended, and its pages with that: it is to end.
    pub(crate) orphan: Option<u16>,
}

/// Everything that a manager has started.
pub struct World<'a> {
    pub(crate) system: &'a Subsystem,
    pub(crate) drafts: Fixed<Draft>,
    pub(crate) states: Fixed<State>,
    pub(crate) below: Fixed<Below>,
    pub(crate) selectors: Selectors,
    pub(crate) modules: Modules,
    /// What is known about applications that offer services or receive.
    pub(crate) known: Paid<Own, BTreeMap<Source, Known>>,
    /// Of which services something is new, and how many of those have heard it whom it concerns.
    pub(crate) unsaid: Paid<Own, BTreeMap<Source, usize>>,
    /// Where this manager keeps the services of what it started: one selector each, however often they are offered.
    pub(crate) places: Paid<Own, BTreeMap<Source, u16>>,
    /// When all gates existed and every application that could start had started: earlier reports by others start nothing.
    pub(crate) began: Option<u64>,
    /// The exit code so far: 3 once a foreground application has failed.
    pub code: u64,
}

/// Exit code of a manager when one of its applications has failed.
pub const FAILED: u64 = 3;

/// What is known about a service.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    /// The newest.
    pub news: News,
    /// Where this manager holds it, or held it before its application was restarted.
    pub selector: Option<u16>,
    /// When the report arrived, in nanoseconds since reset.
    pub at: u64,
}

impl Known {
    /// Whether a report is news compared with what is known.
    pub(crate) fn is_followed_by(&self, news: News) -> bool {
        let is_later = news.restarts > self.news.restarts;
        let is_further =
            news.restarts == self.news.restarts && news.standing as u64 > self.news.standing as u64;
        !self.news.standing.is_final() && (is_later || is_further)
    }
}
