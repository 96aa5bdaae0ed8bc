//! What a message with the time of another clock says about the own one, and whether it is a message of the master at all.
//!
//! Why it exists: cores start one after the other and their timers differ, so a master tells them its time (m2os-mc-ngres21, section 4.3), and
//! the way of its message must be added. How long that was nobody knows exactly, but both ends know between which of their own counts it was.
//! What it deliberately does not know: messages, memory, and timers.
//!
//! The message arrives after it was sent and before its acknowledgement, both counts of the master; and after the last look of the other core
//! that did not find it and before the one that did, both counts of that core. So the difference of the clocks at the arrival is in a
//! [`Window`], whatever delayed the message, its acknowledgement or the looks: a delay makes the window wider.
//!
//! Every core of a chip can write every other one's memory. So a message contains a value that follows from the request that it answers ([`check`]), and
//! the master compares what a core took with what it sent ([`Receipt`], [`Sent`]). This finds messages of others, not others that read requests and
//! receipts and answer in place of both sides: nothing on such a chip says who wrote a word.

use bulkhead_abi::one_shot::clock::{CHECK_SHIFT, DIGEST_SHIFT, DONE, MESSAGES, NUMBER_BITS};

/// Room of a message's way.
const WAY_BITS: u32 = CHECK_SHIFT - NUMBER_BITS;

/// One value from two: each bit of both changes about half of its bits. The multiplier is 2^64 divided by the golden ratio, as in SplitMix64
/// (Steele, Lea, Flood 2014, "Fast splittable pseudorandom number generators").
#[inline]
fn fold(so_far: u64, word: u64) -> u64 {
    let mixed = (so_far ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    mixed ^ (mixed >> 32)
}

/// The value of a message: of the core that it is for, the word of the request that it answers, the word with the time, and the way.
#[inline]
pub fn check(core: u16, request: u64, sent: u64, way: u64) -> u64 {
    let of = fold(fold(fold(fold(1, core.into()), request), sent), way);
    of >> CHECK_SHIFT
}

/// The word with a way, a message's number and its value; none if the way has no room.
#[inline]
pub fn way_word(number: u64, way: u64, check: u64) -> Option<u64> {
    let word = (check << CHECK_SHIFT) | (way << NUMBER_BITS) | number;
    (way >> WAY_BITS == 0).then_some(word)
}

/// The way and the value in a word of [`way_word`].
#[inline]
pub fn way_of(word: u64) -> (u64, u64) {
    let way = (word >> NUMBER_BITS) & ((1 << WAY_BITS) - 1);
    (way, word >> CHECK_SHIFT)
}

/// The value of a master's list.
pub fn list(cores: impl Iterator<Item = u16>) -> u64 {
    cores.fold(1, |so_far, core| fold(so_far, core.into())) >> 32
}

/// What a core took: a bit for each message, and their values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Receipt {
    taken: u64,
    digest: u64,
}

impl Receipt {
    /// A message with this number and value.
    #[inline]
    pub fn add(&mut self, number: u64, check: u64) {
        self.taken |= 1 << number;
        self.digest = fold(self.digest, check);
    }

    /// For the master.
    #[inline]
    pub fn word(&self) -> u64 {
        (self.digest << DIGEST_SHIFT) | ((self.taken >> 1) << NUMBER_BITS) | DONE
    }
}

/// What a master sent to a core: the value of each message that it has sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent([Option<u64>; MESSAGES as usize]);

impl Sent {
    /// A message with this number, at least 1, and value.
    #[inline]
    pub fn add(&mut self, number: u64, check: u64) {
        if let Some(sent) = self.0.get_mut((number as usize).wrapping_sub(1)) {
            *sent = Some(check);
        }
    }

    /// Whether a core's receipt is of such messages only, and of one at least.
    pub fn agrees(&self, word: u64) -> bool {
        let mut receipt = Receipt::default();
        for (place, check) in self.0.iter().enumerate() {
            if (word >> NUMBER_BITS) >> place & 1 == 1 {
                let Some(check) = check else { return false };
                receipt.add(place as u64 + 1, *check);
            }
        }
        receipt.taken != 0 && receipt.word() == word
    }
}

/// Between which values the difference of two clocks was: what the own clock lacks, modulo 2^64.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    least: u64,
    width: u64,
}

impl Window {
    /// Of a message sent at a count of the master and acknowledged `way` later, which arrived between two counts of the own clock.
    #[inline]
    pub fn of(sent: u64, way: u64, earliest: u64, latest: u64) -> Self {
        let width = way.saturating_add(latest.wrapping_sub(earliest));
        Self {
            least: sent.wrapping_sub(latest),
            width,
        }
    }

    /// The narrower of two.
    #[inline]
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        match other.width < self.width {
            true => other,
            false => self,
        }
    }

    /// What to add to the own clock: the middle.
    #[inline]
    pub fn correction(self) -> u64 {
        self.least.wrapping_add(self.width / 2)
    }

    /// By how many counts that is wrong at most, at the arrival.
    #[inline]
    pub fn error(self) -> u64 {
        self.width.div_ceil(2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn by_hand() {
        // Sent at 1000, acknowledged 30 later; seen between 5 and 15: between 985 and 1025 is missing.
        let window = Window::of(1000, 30, 5, 15);
        assert_eq!((window.correction(), window.error()), (1005, 20));
        // The own clock is ahead: the correction is negative.
        let window = Window::of(5, 1, 1000, 1002);
        assert_eq!(window.correction() as i64, -996);
        assert_eq!(window.error(), 2);
        assert_eq!(window.or(Window::of(7, 90, 7, 8)), window);
    }

    #[test]
    fn a_receipt_is_of_what_was_sent() {
        let (mut sent, mut receipt) = (Sent::default(), Receipt::default());
        assert!(!sent.agrees(receipt.word()), "it took nothing");
        for number in 1..=MESSAGES {
            sent.add(number, 100 + number);
        }
        // The third one was lost.
        for number in [1, 2, 4] {
            receipt.add(number, 100 + number);
        }
        assert!(sent.agrees(receipt.word()));
        receipt.add(3, 7);
        assert!(!sent.agrees(receipt.word()), "the third one was another");
        assert!(!Sent::default().agrees(receipt.word()));
        // A message that was not sent has no value, not the value 0: words with that value are easy to find.
        let (mut sent, mut receipt) = (Sent::default(), Receipt::default());
        sent.add(1, 101);
        for (number, check) in [(1, 101), (2, 0)] {
            receipt.add(number, check);
        }
        assert!(!sent.agrees(receipt.word()));
        assert_eq!(way_of(way_word(3, 77, 5).expect("it has room")), (77, 5));
        assert_eq!(way_word(3, 1 << 32, 5), None);
        assert_ne!(list([1, 2].into_iter()), list([2, 1].into_iter()));
    }

    proptest! {
        /// A message with another word, for another request or core: 28 bits do not tell one of 2^28.
        #[test]
        fn another_message_has_another_value(
            core: u16, request: u64, sent: u64, way in 0u64..1 << 32, bit in 0u32..64, which in 0usize..3,
        ) {
            let mut all = [request, sent, way];
            all[which] ^= 1 << bit;
            let [other_request, other_sent, other_way] = all;
            let value = check(core, request, sent, way);
            prop_assert_ne!(value, check(core, other_request, other_sent, other_way));
            prop_assert_ne!(value, check(core ^ 1, request, sent, way));
            prop_assert_eq!(way_word(1, way, value).map(way_of), Some((way, value)));
        }

        /// Clocks with any counts and speeds, and a message that takes any time: the true difference at its arrival is within the error.
        #[test]
        fn the_error_is_bounded(
            master: u64, own: u64, speeds in (1u64..5, 1u64..5), phases in (0u64..4, 0u64..4),
            way in 0u64..10_000, back in 0u64..10_000, before in 0u64..1000, after in 0u64..1000,
        ) {
            // Counts at a moment: several moments may have the same one.
            let of = |at: u64, from: u64, speed: u64, phase: u64| from.wrapping_add((at + phase) / speed);
            let master = |at| of(at, master, speeds.0, phases.0);
            let own = |at| of(at, own, speeds.1, phases.1);
            let send = 1000;
            let arrival = send + way;
            let sent = master(send);
            let window = Window::of(
                sent,
                master(arrival + back).wrapping_sub(sent),
                own(arrival.saturating_sub(before)),
                own(arrival + after),
            );
            let truth = master(arrival).wrapping_sub(own(arrival));
            let wrong = window.correction().wrapping_sub(truth) as i64;
            prop_assert!(wrong.unsigned_abs() <= window.error(), "{} of {}", wrong, window.error());
        }
    }
}
