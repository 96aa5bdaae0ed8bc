//! A prefetcher together with the lines that it has brought and that nobody has used yet.
//!
//! Why it exists: every cache that fetches ahead is trained in the same way: by requests that miss, and by the first use of a line that was
//! fetched ahead. What it deliberately does not know: which cache it serves, whether a named line is fetched, and what that costs.

use super::prefetcher::{Prefetcher, Request};
use crate::config::PrefetcherConfig;
use std::collections::VecDeque;

/// Maximum number of lines whose first use is awaited.
const UNUSED_MAX: usize = 64;

/// See the module's documentation. Lines are named by their first address.
#[derive(Clone, Debug)]
pub struct Foresight {
    prefetcher: Prefetcher,
    /// Lines that were fetched ahead and have not been used, the oldest first.
    unused: VecDeque<u64>,
}

impl Foresight {
    /// An untrained one, of a valid configuration, for lines of this many bytes.
    pub fn new(config: &PrefetcherConfig, line: u32) -> Self {
        Self {
            prefetcher: Prefetcher::new(config, line),
            unused: VecDeque::new(),
        }
    }

    /// Learns from a request, and names the lines that it expects next, the nearest first.
    pub fn observe(&mut self, request: Request) -> Vec<u64> {
        self.prefetcher.observe(request).to_vec()
    }

    /// This many of the lines that were named last are not fetched: a stream names them again.
    pub fn not_fetched(&mut self, lines: usize) {
        self.prefetcher.not_fetched(lines);
    }

    /// A line is fetched ahead: its first use is awaited. If too many are, the oldest one is forgotten.
    pub fn fetches(&mut self, line: u64) {
        self.uses(line);
        if self.unused.len() == UNUSED_MAX {
            self.unused.pop_front();
        }
        self.unused.push_back(line);
    }

    /// Whether the first use of a line is awaited.
    pub fn awaits(&self, line: u64) -> bool {
        self.unused.contains(&line)
    }

    /// Whether the first use of any line is awaited.
    pub fn awaits_any(&self) -> bool {
        !self.unused.is_empty()
    }

    /// A line is used, or is known to have gone. Returns whether its first use was awaited; it is not any more.
    pub fn uses(&mut self, line: u64) -> bool {
        let found = self.unused.iter().position(|unused| *unused == line);
        found.is_some_and(|at| self.unused.remove(at).is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::PrefetcherKind;

    fn foresight() -> Foresight {
        let kind = PrefetcherKind::Stream {
            streams: 1,
            stride: 1,
            training: 2,
            distance: 1,
        };
        let config = PrefetcherConfig {
            kind,
            degree: 1,
            page: 4096,
        };
        Foresight::new(&config, 64)
    }

    #[test]
    fn a_first_use_happens_once() {
        let mut all = foresight();
        all.fetches(64);
        // Fetched again before its first use: it was evicted meanwhile.
        all.fetches(64);
        assert!(all.awaits_any() && all.awaits(64));
        assert!(all.uses(64));
        assert!(!all.uses(64) && !all.awaits_any());
    }

    #[test]
    fn as_many_lines_as_there_is_room_for_are_awaited_and_the_oldest_is_forgotten() {
        let mut all = foresight();
        for line in 0..=UNUSED_MAX as u64 {
            all.fetches(64 * line);
        }
        assert!(!all.uses(0));
        for line in 1..=UNUSED_MAX as u64 {
            assert!(all.uses(64 * line), "{line}");
        }
    }
}
