//! The frames of a pool: which are free, and which of those hold zeros.
//!
//! What it deliberately does not know: the contents of the others.

use alloc::vec;
use bulkhead_common::payer::Fixed;

/// Frames in a bit map.
#[derive(Clone, Debug)]
pub struct Frames {
    free: Fixed<u64>,
    zeros: Fixed<u64>,
    count: u64,
    used: u64,
}

impl Frames {
    /// This many frames, all free.
    pub fn new(count: u64) -> Self {
        let words = count.div_ceil(64) as usize;
        let mut free = vec![u64::MAX; words];
        if !count.is_multiple_of(64)
            && let Some(last) = free.last_mut()
        {
            *last = (1 << (count % 64)) - 1;
        }
        Self {
            free: free.into(),
            zeros: vec![0; words].into(),
            count,
            used: 0,
        }
    }

    /// All frames, and those in use.
    pub const fn count(&self) -> (u64, u64) {
        (self.count, self.used)
    }

    fn is_free(&self, frame: u64) -> bool {
        let word = self.free.get((frame / 64) as usize);
        word.is_some_and(|word| word >> (frame % 64) & 1 == 1)
    }

    /// Whether a frame holds zeros.
    fn is_zero(&self, frame: u64) -> bool {
        let word = self.zeros.get((frame / 64) as usize);
        word.is_some_and(|word| word >> (frame % 64) & 1 == 1)
    }

    /// The first free frame that holds zeros, or that does not.
    fn first(&self, zeros: bool) -> Option<u64> {
        let words = self.free.iter().zip(&self.zeros);
        let mut found = words.map(|(free, zero)| free & if zeros { *zero } else { !zero });
        let word = found.position(|word| word != 0)?;
        let zero = if zeros {
            self.zeros[word]
        } else {
            !self.zeros[word]
        };
        Some(word as u64 * 64 + u64::from((self.free[word] & zero).trailing_zeros()))
    }

    /// Takes a frame, with or without zeros as `zeros` says if possible. Returns whether it holds zeros.
    pub fn take(&mut self, zeros: bool) -> Option<(u64, bool)> {
        let frame = self.first(zeros).or_else(|| self.first(!zeros))?;
        self.take_this(frame).map(|zero| (frame, zero))
    }

    /// Takes this frame if it is free. Returns whether it holds zeros.
    pub fn take_this(&mut self, frame: u64) -> Option<bool> {
        self.is_free(frame).then_some(())?;
        let zero = self.is_zero(frame);
        self.free[(frame / 64) as usize] &= !(1 << (frame % 64));
        self.zeros[(frame / 64) as usize] &= !(1 << (frame % 64));
        self.used += 1;
        Some(zero)
    }

    /// Gives a frame back.
    pub fn free(&mut self, frame: u64) {
        if !self.is_free(frame)
            && let Some(word) = self.free.get_mut((frame / 64) as usize)
        {
            *word |= 1 << (frame % 64);
            self.used -= 1;
        }
    }

    /// The free frame to fill with zeros next, if fewer than `enough` free ones hold zeros.
    pub fn wants_zeros(&self, enough: u64) -> Option<u64> {
        let mut there = 0;
        for (free, zero) in self.free.iter().zip(&self.zeros) {
            there += u64::from((free & zero).count_ones());
            if there >= enough {
                return None;
            }
        }
        self.first(false)
    }

    /// This free frame holds zeros now.
    pub fn zeroed(&mut self, frame: u64) {
        if self.is_free(frame)
            && let Some(word) = self.zeros.get_mut((frame / 64) as usize)
        {
            *word |= 1 << (frame % 64);
        }
    }
}
