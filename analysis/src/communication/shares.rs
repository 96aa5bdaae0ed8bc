//! How many slots of others go before the accesses of a requester, where memory serves requesters by their shares.
//!
//! Why it exists: a bandwidth controller (CBQRI 1.0) gives each identifier (RCID) reserved slots of each window, and divides the other slots by
//! weight. Then an access may wait longer than one slot of each other requester, and how long follows from the shares alone. What it
//! deliberately does not know: links, caches, and who has which share.
//!
//! # What the controller does
//! Time is cut into windows of `N` slots of `s` ticks. At each slot, a requester with an unused reserved slot of this window goes first; among
//! several, the one that was served least recently. Else the slot is free, and start-time fair queueing gives it away (Goyal, Vin and Cheng,
//! SIGCOMM 1996): requester `i` has a cost `c_i`, the inverse of its weight; its next start is `f_i`, and the time of free slots is `v`. The
//! least `max(f_i, v)` is next; among equals, the one that was served least recently. Then `v` is that number, and `f_i` is `v + c_i`.
//! Reserved slots change neither. A requester of weight 0 has no free slots. No share changes.
//!
//! # Slots of others before `a` slots of requester `i`
//! A requester's accesses are served in order of arrival. Each waits from when it is the oldest and ready, and meets then the rest of a slot
//! in progress. There are two bounds; the least counts ([`Shares::before`]).
//!
//! **By weight**, if `i` has one. Let `v` be the time of free slots when the access begins to wait, and `S = max(f_i, v)`. As `f_i` is a former time of
//! free slots plus `c_i`, `S - v` is at most `c_i`. Until the access is served, a free slot goes to another one only with a start from `v` to
//! `S`, and `S` stays. The starts of one requester are at least `c_j` apart. A start equal to `S` is served before the access only if `j` was
//! served less recently than `i`, so neither in this wait nor in the slot in progress. A free slot in progress had the start `v`. So `j` has at most
//! `max(1, ceil(c_i / c_j))` free slots here, the one in progress included: one if its weight is not larger, else `floor(w_j / w_i) + 1`
//! (a machine rounds costs, and may then give one more where `w_j / w_i` is a whole number). Besides, there are reserved slots. All that delay
//! a job of length `T` begin within `T` or are in progress at its start: within `T + s`, which touches at most `floor((T + s) / (N s)) + 2` windows.
//! Each of these has at most `r_j` for each `j`.
//!
//! **By reservation**, if `i` has `r_i > 0` slots. While one of them is unused, only others with unused reserved slots go first, each once, because
//! then it has been served more recently. The slot in progress may be anybody's; if `j` has it and a reservation, it counts for `j`. So an access
//! that is served by a reserved slot waits for at most `f` slots: one for each other with a reservation, and one more if any has none. All of
//! these count for the window in which it is served. An access that finds all of them used waits by weight: at most `g` free slots, as above,
//! and at most `R` reserved slots of others in this window in all; but at most until the next window, where it is served as just said. Consider a window in which
//! `i` has `k` slots. If `k < r_i`, all of them are reserved: `k f`. Else at most `k + 1 - r_i` accesses wait by weight in it, and all waits
//! within it and own slots (of which the last may reach out of it) fit into it: the least of `r_i f + (k + 1 - r_i) g + R` (if `i` has a weight) and
//! `N + 1 - k + f`. Let `q(k)` be this. The windows have at most `a` slots in all, so `q` is at most `a` times the largest `q(k) / k` in all of them; but in the first one,
//! slots of earlier jobs count, too, so it has at most `N + 1 - r_i + f` besides. This needs no promise that reservations fit the window.
//!
//! Refreshes are counted by the caller: no slot begins in one, and both bounds count slots and ends of windows only.

use super::scenario::Ticks;

/// What a requester has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Share {
    /// Slots of each window that it has before others (`Rbwb`).
    pub reserved: u64,
    /// Its weight for free slots (`Mweight`); 0: it has none.
    pub weight: u64,
}

/// The shares of all that may access a memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Shares {
    /// Slots of a window.
    pub blocks: u64,
    /// Each requester's.
    pub all: Vec<Share>,
}

/// The terms of [`Shares::before`], in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Terms {
    /// By weight: free slots of others, and reserved slots of others.
    pub by_weight: Option<[u128; 2]>,
    /// By reservation: waits in all windows by the accesses in them, and in the first window because of earlier accesses.
    pub by_reservation: Option<[u128; 2]>,
}

impl Shares {
    /// Ticks before `accesses` slots of requester `who` that are slots of others, or waits for its own share, in a job of `window` ticks.
    ///
    /// # Panics
    /// If the requester has neither weight nor reservation. The description refuses that.
    pub fn before(&self, who: usize, accesses: u128, window: u128, slot: Ticks) -> u128 {
        let terms = self.terms(who, accesses, window, slot);
        let all = [terms.by_weight, terms.by_reservation].into_iter();
        let least = all.flatten().map(|terms| terms.iter().sum()).min();
        least.unwrap_or_else(|| panic!("{who} has no slot at all: {self:?}"))
    }

    /// Whether each access of requester `who` counts at least one slot of another one, whatever the window is.
    pub fn pays(&self, who: usize) -> bool {
        let others = || {
            let all = self.all.iter().enumerate();
            all.filter(|(index, _)| *index != who)
        };
        // By weight, only those that have one go before each access; a reservation meets at least the slot in progress.
        let by_weight = self.all[who].weight == 0 || others().any(|(_, one)| one.weight > 0);
        others().next().is_some() && by_weight
    }

    /// The terms by themselves.
    pub fn terms(&self, who: usize, accesses: u128, window: u128, slot: Ticks) -> Terms {
        let own = self.all[who];
        let others = || {
            let all = self.all.iter().enumerate();
            all.filter(|(index, _)| *index != who)
                .map(|(_, share)| *share)
        };
        if accesses == 0 {
            return Terms {
                by_weight: Some([0; 2]),
                by_reservation: None,
            };
        }
        let slot = u128::from(slot);
        let length = u128::from(self.blocks) * slot;
        let windows = (window + slot) / length.max(1) + 2;
        let reserved = windows * others().map(|one| u128::from(one.reserved)).sum::<u128>();
        // Free slots of others before one access.
        let free = (own.weight > 0).then(|| {
            let free = others().map(|one| match one.weight {
                0 => 0,
                weight if weight <= own.weight => 1,
                weight => u128::from(weight / own.weight) + 1,
            });
            free.sum::<u128>()
        });
        let by_weight = free.map(|free| [accesses * free * slot, reserved * slot]);
        let by_reservation = (own.reserved > 0).then(|| {
            let count = |keep: &dyn Fn(&Share) -> bool| others().filter(keep).count() as u128;
            let kept = count(&|one| one.reserved > 0);
            let fast = kept + count(&|one| one.reserved == 0).min(1);
            let [blocks, own_reserved] = [self.blocks, own.reserved].map(u128::from);
            let rivals: u128 = others().map(|one| u128::from(one.reserved)).sum();
            let within = |slots: u128| {
                if slots < own_reserved {
                    return slots * fast;
                }
                let whole = blocks + 1 - slots + fast;
                let waiting = slots + 1 - own_reserved;
                free.map_or(whole, |free| {
                    whole.min(own_reserved * fast + waiting * free + rivals)
                })
            };
            let all = (1..=blocks).map(|slots| (within(slots) * accesses).div_ceil(slots));
            let most = all.max().unwrap_or(0);
            [most * slot, (blocks + 1 - own_reserved + fast) * slot]
        });
        Terms {
            by_weight,
            by_reservation,
        }
    }
}

#[cfg(test)]
#[path = "shares_tests.rs"]
mod tests;
