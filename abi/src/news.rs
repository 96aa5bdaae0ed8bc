//! What resource managers tell each other about services, as words.
//!
//! Why it exists: services are used across managers, and each manager knows only its own part of the tree. What it deliberately
//! does not know: how the words travel.

use crate::dtu::codes;
use crate::syscall::{ABOUT, SHARED_MAX};

codes! {
    /// The state of the receiver behind an import.
    Standing: u64 {
        /// Its gates exist; it does not run yet.
        Starts = 0,
        /// It runs but offers nothing yet.
        Runs = 1,
        /// It offers its service.
        Offered = 2,
        /// It has ended, and will not be started again.
        Ended = 3,
        /// It failed, and will not be started again, or has no restarts left.
        Failed = 4,
        /// It was not started, and will not be.
        NotStarted = 5,
        /// Its manager has ended, or could not start its applications.
        ManagerGone = 6,
    }
}

impl Standing {
    /// Whether there will be no service any more.
    pub const fn is_final(self) -> bool {
        !matches!(self, Standing::Starts | Standing::Runs | Standing::Offered)
    }
}

/// What managers tell each other about a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct News {
    /// How often it has been restarted: each time, its senders must be connected again.
    pub restarts: u32,
    /// Its state.
    pub standing: Standing,
}

impl News {
    /// The news as a word about the import with this number.
    pub const fn about(self, import: u16) -> u64 {
        (import as u64 + 1) << ABOUT | (self.restarts as u64) << 8 | self.standing as u64
    }

    /// The import and its news. `None` if the word is about the manager itself, or has no meaning.
    pub const fn from_word(word: u64) -> Option<(u16, Self)> {
        let (about, restarts) = (word >> ABOUT, (word >> 8) & ((1 << (ABOUT - 8)) - 1));
        if about == 0 || about > SHARED_MAX as u64 || restarts > u32::MAX as u64 {
            return None;
        }
        match Standing::from_code(word & 0xff) {
            Some(standing) => Some((
                about as u16 - 1,
                Self {
                    restarts: restarts as u32,
                    standing,
                },
            )),
            None => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_understood_as_they_were_meant() {
        for (import, restarts) in [(0, 0), (31, u32::MAX), (7, 1000)] {
            for standing in Standing::ALL {
                let news = News {
                    restarts,
                    standing: *standing,
                };
                assert_eq!(News::from_word(news.about(import)), Some((import, news)));
            }
        }
        // About the manager itself, about an import that cannot exist, and without meaning.
        for word in [
            1 << 32 | 3,
            33 << ABOUT,
            u64::MAX,
            1 << ABOUT | 77,
            1 << ABOUT | 1 << 45,
        ] {
            assert_eq!(News::from_word(word), None, "{word:#x}");
        }
    }
}
