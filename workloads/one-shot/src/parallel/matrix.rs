//! The product of two square matrices: each core multiplies some rows of the first one by the second one.
//!
//! Why it exists and what it does not know: see the parent module.

use super::{IN_WORD, done, draw, tell};
use bulkhead_hal::marker::{span_begin, span_end};
use bulkhead_oneshot::described::Described;
use bulkhead_oneshot::parallel::{Help, Helpers, Waited};
use bulkhead_oneshot::{Done, Job, Task};
use zerocopy::{FromBytes, IntoBytes};

/// Rows and columns.
pub const SIZE: usize = 48;
/// Words of a matrix of 16 bits.
const WHOLE: usize = SIZE * SIZE / IN_WORD;

/// Words of a part's rows, for this many cores.
const fn rows(cores: usize) -> usize {
    WHOLE / cores
}

/// Words of a slice: its rows, and the second matrix.
const fn slice(cores: usize) -> usize {
    rows(cores) + WHOLE
}

/// Multiplies rows by a matrix, in units of 2^-15. A slice is the rows, followed by the matrix. One piece of code, like the filter.
#[inline(never)]
fn multiply(slice: &[u64], results: &mut [u64]) {
    let (Ok(slice), Ok(results)) = (
        <[i16]>::ref_from_bytes(slice.as_bytes()),
        <[i16]>::mut_from_bytes(results.as_mut_bytes()),
    ) else {
        return;
    };
    let (rows, matrix) = slice.split_at(results.len());
    let of_rows = rows.chunks_exact(SIZE);
    for (row, results) in of_rows.zip(results.chunks_exact_mut(SIZE)) {
        for (column, result) in results.iter_mut().enumerate() {
            let pairs = row.iter().zip(matrix[column..].iter().step_by(SIZE));
            let sum: i64 = pairs.map(|(a, b)| i64::from(*a) * i64::from(*b)).sum();
            *result = (sum >> 15) as i16;
        }
    }
}

/// The task that owns the work, with `HELPERS` helpers; `SLICE` and `ROWS`: words.
pub struct Matrix<const HELPERS: usize, const SLICE: usize, const ROWS: usize> {
    helpers: Helpers<[u64; SLICE], [u64; ROWS], HELPERS>,
    first: [u64; WHOLE],
    /// Some rows of the first matrix, and the second matrix.
    slice: [u64; SLICE],
    product: [u64; WHOLE],
    random: u64,
    number: u64,
}

impl<const HELPERS: usize, const SLICE: usize, const ROWS: usize> Described
    for Matrix<HELPERS, SLICE, ROWS>
{
    const FIRST: Self = Self {
        helpers: Helpers::new(0, 0),
        first: [0; WHOLE],
        slice: [0; SLICE],
        product: [0; WHOLE],
        random: 1,
        number: 0,
    };
}

impl<const HELPERS: usize, const SLICE: usize, const ROWS: usize> Matrix<HELPERS, SLICE, ROWS> {
    /// The next two matrices.
    fn sample(&mut self) {
        for word in self.first.iter_mut().chain(&mut self.slice[ROWS..]) {
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
            let from = (helper + 1) * ROWS;
            self.slice[..ROWS].copy_from_slice(&self.first[from..from + ROWS]);
            if let Err(failure) = section.hand(helper, &self.slice) {
                tell("no slice for ", helper, failure.into());
            }
        }
        let mut section = section.handed();
        self.slice[..ROWS].copy_from_slice(&self.first[..ROWS]);
        multiply(&self.slice, &mut self.product[..ROWS]);
        let mut is_whole = true;
        for helper in 0..HELPERS {
            let from = (helper + 1) * ROWS;
            if let Some(result) = self.product[from..].first_chunk_mut()
                && let Err(missing) = section.collect(helper, result)
            {
                is_whole = false;
                tell("no result of ", helper, missing);
            }
        }
        (waited, is_whole)
    }
}

impl<const HELPERS: usize, const SLICE: usize, const ROWS: usize> Task
    for Matrix<HELPERS, SLICE, ROWS>
{
    fn run(&mut self, job: Job) -> Done {
        self.sample();
        span_begin(self.number);
        let (waited, is_whole) = self.work(job);
        span_end(self.number);
        if is_whole {
            done(self.number, &self.product);
        }
        waited.next()
    }
}

/// A helper.
pub struct Rows<const SLICE: usize, const ROWS: usize> {
    help: Help<[u64; SLICE], [u64; ROWS]>,
    slice: [u64; SLICE],
    results: [u64; ROWS],
}

impl<const SLICE: usize, const ROWS: usize> Described for Rows<SLICE, ROWS> {
    const FIRST: Self = Self {
        help: Help::new(0, 0),
        slice: [0; SLICE],
        results: [0; ROWS],
    };
}

impl<const SLICE: usize, const ROWS: usize> Task for Rows<SLICE, ROWS> {
    fn run(&mut self, job: Job) -> Done {
        let (waited, answer) = self.help.slice(job, &mut self.slice);
        match answer {
            Ok(answer) => {
                multiply(&self.slice, &mut self.results);
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
        pub type $whole = Matrix<{ $cores - 1 }, { slice($cores) }, { rows($cores) }>;
        /// Its helpers.
        pub type $part = Rows<{ slice($cores) }, { rows($cores) }>;
    )+ };
}

sizes! {
    1: Matrix1 Rows1;
    2: Matrix2 Rows2;
    4: Matrix4 Rows4;
    8: Matrix8 Rows8;
    16: Matrix16 Rows16;
}
