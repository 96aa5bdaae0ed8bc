//! Which endpoints of a tile's unit are in use.
//!
//! Why it exists: numbers are given out and come back. What it deliberately does not know: to whom and for what; the
//! capabilities know that.

use alloc::vec::Vec;

/// The endpoints of one unit.
#[derive(Clone, Debug)]
pub struct EndpointTable(Vec<bool>);

impl EndpointTable {
    /// `count` endpoints of which the first `reserved` are the system's.
    pub fn new(count: u16, reserved: u16) -> Self {
        let mut used = Vec::new();
        used.resize(count.into(), false);
        for entry in used.iter_mut().take(reserved.into()) {
            *entry = true;
        }
        Self(used)
    }

    /// First of `count` free endpoints in a row; they stay free until [`take`](Self::take).
    pub fn find(&self, count: u16) -> Option<u16> {
        let mut rows = self.0.windows(usize::from(count.max(1)));
        let first = rows.position(|row| row.iter().all(|used| !used))?;
        u16::try_from(first).ok()
    }

    /// Takes endpoints.
    pub fn take(&mut self, first: u16, count: u16) {
        for endpoint in first..first.saturating_add(count) {
            self.set(endpoint, true);
        }
    }

    /// Gives an endpoint back.
    pub fn free(&mut self, endpoint: u16) {
        self.set(endpoint, false);
    }

    fn set(&mut self, endpoint: u16, used: bool) {
        if let Some(place) = self.0.get_mut(usize::from(endpoint)) {
            *place = used;
        }
    }

    /// Whether an endpoint is in use; one that does not exist is.
    pub fn is_used(&self, endpoint: u16) -> bool {
        self.0.get(usize::from(endpoint)).copied().unwrap_or(true)
    }

    /// Free endpoints.
    pub fn left(&self) -> usize {
        self.0.iter().filter(|used| !**used).count()
    }
}
