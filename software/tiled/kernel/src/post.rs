//! What activities say and hear: words that wait until they are heard.
//!
//! Why it exists: a late listener must not cost others memory or time, so everything that may be said to it has its place before it is
//! said. What it deliberately does not know: what the words mean.
//!
//! An activity has a place for one word about each topic that it says to its creator, and one for each that its creator tells it. The
//! creator of an activity pays for them. An activity with something to say is in the list of its listener once, however much it has to say.

use bulkhead_abi::syscall::{ABOUT, Event, SHARED_MAX};
use bulkhead_capabilities::Queue;

/// Topics that there are: the activity itself, and each import.
pub const TOPICS: usize = SHARED_MAX as usize + 1;

/// One word about each topic.
#[derive(Clone, Debug)]
pub struct Words {
    words: [u64; TOPICS],
    /// A bit for each topic with a word that was not heard.
    unheard: u64,
    /// The topic that was heard last.
    last: u32,
}

impl Default for Words {
    fn default() -> Self {
        Self {
            words: [0; TOPICS],
            unheard: 0,
            last: 0,
        }
    }
}

/// The topic of a word, if there is such a topic.
pub fn topic(word: u64) -> Option<usize> {
    let topic = (word >> ABOUT) as usize;
    (topic < TOPICS).then_some(topic)
}

impl Words {
    /// Whether there is a word about a topic.
    pub fn has(&self, topic: usize) -> bool {
        self.unheard >> topic & 1 != 0
    }

    /// Whether there is nothing to hear.
    pub fn is_empty(&self) -> bool {
        self.unheard == 0
    }

    /// Puts a word into its place, instead of an older one.
    pub fn put(&mut self, topic: usize, word: u64) {
        if let Some(place) = self.words.get_mut(topic) {
            *place = word;
            self.unheard |= 1 << topic;
        }
    }

    /// The next word: every topic has its turn.
    pub fn take(&mut self) -> Option<u64> {
        let later = self.unheard & u64::MAX.checked_shl(self.last + 1).unwrap_or(0);
        let from = if later != 0 { later } else { self.unheard };
        let topic = from.trailing_zeros();
        let word = *self.words.get(topic as usize)?;
        self.unheard &= !(1 << topic);
        self.last = topic;
        Some(word)
    }

    /// The word about a topic, if there is one.
    pub fn take_about(&mut self, topic: usize) -> Option<u64> {
        let word = self.has(topic).then(|| self.words[topic]);
        self.unheard &= !(1 << topic);
        word
    }
}

/// What an activity has not heard, and what its creator has not heard of it.
#[derive(Clone, Debug, Default)]
pub struct Post {
    /// It is told.
    pub told: Words,
    /// It says.
    pub said: Words,
    /// Ends of those that it created, and services that they offer.
    pub notices: Queue,
    /// The first and the last of those that it created and that have something to say; 0 is nobody.
    pub(crate) speakers: (u16, u16),
    /// Its neighbours among those of its creator, if it has something to say.
    pub(crate) neighbours: Option<(u16, u16)>,
    /// Whose turn it is.
    pub(crate) turn: u8,
}

impl Post {
    /// For a new owner: words that were heard are left where they are.
    pub(crate) fn clear(&mut self) {
        for words in [&mut self.told, &mut self.said] {
            (words.unheard, words.last) = (0, 0);
        }
        (self.notices, self.speakers) = (Queue::default(), (0, 0));
        (self.neighbours, self.turn) = (None, 0);
    }
}

/// A notice as words: the creator's selector and the activity; then a word about itself that it said last, if any; then what happened.
pub fn ended(selector: u16, activity: u16, last: Option<u64>, event: Event) -> [u64; 6] {
    let [kind, a, b, c, d] = event.to_words();
    debug_assert!(kind <= 1);
    let who = u64::from(selector) | u64::from(activity) << 16 | kind << 32;
    let who = who | u64::from(last.is_some()) << 40;
    [who, a, b, c, d, last.unwrap_or(0)]
}

/// What a notice says: the creator's selector, the activity, its last word, what happened.
pub fn read(words: [u64; 6]) -> Option<(u16, u16, Option<u64>, Event)> {
    let [who, a, b, c, d, last] = words;
    let event = Event::from_words([who >> 32 & 0xff, a, b, c, d])?;
    let last = (who >> 40 & 1 != 0).then_some(last);
    Some((who as u16, (who >> 16) as u16, last, event))
}
