//! A FIR filter over blocks of samples: each core filters a part of the block.
//!
//! Why it exists and what it does not know: see the parent module.

use super::{IN_WORD, done, draw, tell};
use bulkhead_hal::marker::{span_begin, span_end};
use bulkhead_oneshot::described::Described;
use bulkhead_oneshot::parallel::{Help, Helpers, Waited};
use bulkhead_oneshot::{Done, Job, Task};
use zerocopy::{FromBytes, IntoBytes};

/// Samples of a block.
pub const SAMPLES: usize = 2048;
/// Coefficients.
pub const TAPS: usize = 32;

/// Words of a part's result, for this many cores.
pub(super) const fn result(cores: usize) -> usize {
    SAMPLES / cores / IN_WORD
}

/// Words of a part's samples, including the earlier ones that its first results need.
pub(super) const fn slice(cores: usize) -> usize {
    TAPS / IN_WORD + result(cores)
}

/// The coefficients: a triangle, in units of 2^-15, whose sum is below one.
const COEFFICIENTS: [i16; TAPS] = {
    let mut all = [0; TAPS];
    let mut at = 0;
    while at < TAPS {
        let edge = if at < TAPS / 2 { at } else { TAPS - 1 - at };
        all[at] = 120 * (edge as i16 + 1);
        at += 1;
    }
    all
};

/// Filters samples; the first ones only serve as history. One piece of code, so its time per result is the same for all numbers of cores.
#[inline(never)]
pub(super) fn filter(samples: &[u64], results: &mut [u64]) {
    let (Ok(samples), Ok(results)) = (
        <[i16]>::ref_from_bytes(samples.as_bytes()),
        <[i16]>::mut_from_bytes(results.as_mut_bytes()),
    ) else {
        return;
    };
    for (window, result) in samples[1..].windows(TAPS).zip(results) {
        let pairs = window.iter().rev().zip(&COEFFICIENTS);
        let sum: i32 = pairs.map(|(s, c)| i32::from(*s) * i32::from(*c)).sum();
        *result = (sum >> 15) as i16;
    }
}

/// The task that owns the work, with `HELPERS` helpers; `SLICE` and `RESULT`: words.
pub struct Filter<const HELPERS: usize, const SLICE: usize, const RESULT: usize> {
    helpers: Helpers<[u64; SLICE], [u64; RESULT], HELPERS>,
    /// The history, and a block.
    samples: [u64; slice(1)],
    results: [u64; result(1)],
    random: u64,
    number: u64,
}

impl<const HELPERS: usize, const SLICE: usize, const RESULT: usize> Described
    for Filter<HELPERS, SLICE, RESULT>
{
    const FIRST: Self = Self {
        helpers: Helpers::new(0, 0),
        samples: [0; slice(1)],
        results: [0; result(1)],
        random: 1,
        number: 0,
    };
}

impl<const HELPERS: usize, const SLICE: usize, const RESULT: usize> Filter<HELPERS, SLICE, RESULT> {
    /// Takes the next block, after the end of the last one.
    fn sample(&mut self) {
        let history = TAPS / IN_WORD;
        self.samples.copy_within(result(1).., 0);
        for word in &mut self.samples[history..] {
            *word = draw(&mut self.random);
        }
        self.number += 1;
    }

    /// Returns whether all parts are there.
    fn work(&mut self, job: Job) -> (Waited, bool) {
        let (waited, section) = self.helpers.begin(job);
        let Ok(mut section) = section else {
            return (waited, false);
        };
        for helper in 0..HELPERS {
            let from = (helper + 1) * RESULT;
            if let Some(slice) = self.samples[from..].first_chunk()
                && let Err(failure) = section.hand(helper, slice)
            {
                tell("no slice for ", helper, failure.into());
            }
        }
        let mut section = section.handed();
        filter(&self.samples[..SLICE], &mut self.results[..RESULT]);
        let mut is_whole = true;
        for helper in 0..HELPERS {
            let from = (helper + 1) * RESULT;
            if let Some(result) = self.results[from..].first_chunk_mut()
                && let Err(missing) = section.collect(helper, result)
            {
                is_whole = false;
                tell("no result of ", helper, missing);
            }
        }
        (waited, is_whole)
    }
}

impl<const HELPERS: usize, const SLICE: usize, const RESULT: usize> Task
    for Filter<HELPERS, SLICE, RESULT>
{
    fn run(&mut self, job: Job) -> Done {
        self.sample();
        span_begin(self.number);
        let (waited, is_whole) = self.work(job);
        span_end(self.number);
        if is_whole {
            done(self.number, &self.results);
        }
        waited.next()
    }
}

/// A helper.
pub struct Part<const SLICE: usize, const RESULT: usize> {
    help: Help<[u64; SLICE], [u64; RESULT]>,
    samples: [u64; SLICE],
    results: [u64; RESULT],
}

impl<const SLICE: usize, const RESULT: usize> Described for Part<SLICE, RESULT> {
    const FIRST: Self = Self {
        help: Help::new(0, 0),
        samples: [0; SLICE],
        results: [0; RESULT],
    };
}

impl<const SLICE: usize, const RESULT: usize> Task for Part<SLICE, RESULT> {
    fn run(&mut self, job: Job) -> Done {
        let (waited, answer) = self.help.slice(job, &mut self.samples);
        match answer {
            Ok(answer) => {
                filter(&self.samples, &mut self.results);
                if let Err(failure) = answer.give(&self.results) {
                    tell("no result went out of ", 0, failure.into());
                }
            }
            Err(missing) => tell("no slice came to ", 0, missing),
        }
        waited.next()
    }
}

macro_rules! sizes {
    ($($cores:literal: $whole:ident $part:ident;)+) => { $(
        /// The task, for this many cores in all.
        pub type $whole = Filter<{ $cores - 1 }, { slice($cores) }, { result($cores) }>;
        /// Its helpers.
        pub type $part = Part<{ slice($cores) }, { result($cores) }>;
    )+ };
}

sizes! {
    1: Filter1 Part1;
    2: Filter2 Part2;
    4: Filter4 Part4;
    8: Filter8 Part8;
    16: Filter16 Part16;
}
