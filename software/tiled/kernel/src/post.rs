//! Words between activities, which wait until they are delivered.
//!
//! Why it exists: a late listener must not cost others memory or time, so the place for every word is reserved before the word can
//! be sent. What it deliberately does not know: what the words mean.
//!
//! An activity has a place for one word about each topic that it reports to its creator, and one for each topic about which its
//! creator tells it something. The creator of an activity pays for them. An activity with pending words is in the list of its
//! listener once, however many words it has.

use bulkhead_abi::syscall::{ABOUT, Event, SHARED_MAX};
use bulkhead_capabilities::Queue;

/// Number of topics: the activity itself, and each import.
pub const TOPICS: usize = SHARED_MAX as usize + 1;

/// One word about each topic.
#[derive(Clone, Debug)]
pub struct Words {
    words: [u64; TOPICS],
    /// A bit for each topic with an undelivered word.
    unheard: u64,
    /// The topic that was delivered last.
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

    /// Whether there is no word.
    pub fn is_empty(&self) -> bool {
        self.unheard == 0
    }

    /// Puts a word into its place, and replaces an older one.
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

/// The undelivered words to an activity, and those from it to its creator.
#[derive(Clone, Debug, Default)]
pub struct Post {
    /// Words to it.
    pub told: Words,
    /// Words from it.
    pub said: Words,
    /// Ends of the activities that it created, and services that they offer.
    pub notices: Queue,
    /// The first and the last of the activities that it created and that have pending words; 0 means none.
    pub(crate) speakers: (u16, u16),
    /// Its neighbours in its creator's list, if it has pending words.
    pub(crate) neighbours: Option<(u16, u16)>,
    /// The kind of word that had its turn last.
    pub(crate) turn: u8,
}

impl Post {
    /// Clears the post for a new owner; delivered words are left in memory.
    pub(crate) fn clear(&mut self) {
        for words in [&mut self.told, &mut self.said] {
            (words.unheard, words.last) = (0, 0);
        }
        (self.notices, self.speakers) = (Queue::default(), (0, 0));
        (self.neighbours, self.turn) = (None, 0);
    }
}

/// Encodes a notice: the creator's selector and the activity, the event, and the activity's last word about itself, if there is
/// one.
pub fn ended(selector: u16, activity: u16, last: Option<u64>, event: Event) -> [u64; 6] {
    let [kind, a, b, c, d] = event.to_words();
    debug_assert!(kind <= 1);
    let who = u64::from(selector) | u64::from(activity) << 16 | kind << 32;
    let who = who | u64::from(last.is_some()) << 40;
    [who, a, b, c, d, last.unwrap_or(0)]
}

/// Decodes a notice: the creator's selector, the activity, its last word, the event.
pub fn read(words: [u64; 6]) -> Option<(u16, u16, Option<u64>, Event)> {
    let [who, a, b, c, d, last] = words;
    let event = Event::from_words([who >> 32 & 0xff, a, b, c, d])?;
    let last = (who >> 40 & 1 != 0).then_some(last);
    Some((who as u16, (who >> 16) as u16, last, event))
}
