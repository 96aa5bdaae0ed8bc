//! Everything that a manager has started, and what it knows of services.
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
    /// It was said already that it offers what is not there.
    pub has_lied: bool,
}

/// An application.
pub struct State {
    /// How far it is.
    pub progress: Progress,
    /// How often it was started again.
    pub restarts: u32,
    /// It has appeared again, and nobody has been told that it is back.
    pub(crate) is_unsaid: bool,
    /// Its memory is being filled.
    pub(crate) filling: Option<Filling>,
    /// It was said already that what it offers is not one of its services: it may offer as often as it likes.
    pub has_lied: bool,
    /// How often it has offered something since it was started.
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
    /// What is known of applications that offer services, or receive.
    pub(crate) known: Paid<Own, BTreeMap<Source, Known>>,
    /// Of which services something is new, and how many of those have heard it whom it concerns.
    pub(crate) unsaid: Paid<Own, BTreeMap<Source, usize>>,
    /// Where this manager takes services from whom it started: a selector each, however often they are offered.
    pub(crate) places: Paid<Own, BTreeMap<Source, u16>>,
    /// When all gates were there and all that could start had started: nothing is started because of what others say before.
    pub(crate) began: Option<u64>,
    /// The exit code so far: 3 once something in the foreground has failed.
    pub code: u64,
}

/// Exit code of a manager one of whose applications failed.
pub const FAILED: u64 = 3;

/// What is known of a service.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    /// The newest.
    pub news: News,
    /// Where this manager holds it, or held it before it was started again.
    pub selector: Option<u16>,
    /// When it was heard, in nanoseconds since reset.
    pub at: u64,
}

impl Known {
    /// Whether a word is news after what is known.
    pub(crate) fn is_followed_by(&self, news: News) -> bool {
        let is_later = news.restarts > self.news.restarts;
        let is_further =
            news.restarts == self.news.restarts && news.standing as u64 > self.news.standing as u64;
        !self.news.standing.is_final() && (is_later || is_further)
    }
}
