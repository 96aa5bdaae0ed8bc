//! Work shared between cores: a filter and a matrix product, each done by a task and its helpers.
//!
//! Why it exists: a parallel section must be faster than one core and give the same numbers. What it deliberately does not know: the cores
//! of the helpers; the program fixes their number, for example `Filter4` for four cores in all.

pub mod filter;
pub mod matrix;
pub mod unfit;

use bulkhead_oneshot::console;
use bulkhead_oneshot::parallel::Missing;

/// Numbers of 16 bits in a word.
pub const IN_WORD: usize = 4;

/// The next pseudo-random number (a linear congruential generator; D. E. Knuth, *The Art of Computer Programming*, vol. 2, MMIX).
pub fn draw(state: &mut u64) -> u64 {
    *state = state
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    *state
}

/// A number that a change of any word changes (FNV-1a over words).
pub fn digest(words: &[u64]) -> u64 {
    let step = |hash: u64, word: &u64| (hash ^ word).wrapping_mul(0x0100_0000_01B3);
    words.iter().fold(0xCBF2_9CE4_8422_2325, step)
}

/// Prints on the console what is missing.
fn tell(what: &str, helper: usize, missing: Missing) {
    match missing {
        // The first job asks no helper.
        Missing::NotAsked => {}
        Missing::Late => console::number(what, helper as u64),
        Missing::Port(_) => {
            console::number(what, helper as u64);
            console::line("its port fails");
        }
    }
}

/// The output of a job whose parts are all there.
fn done(number: u64, words: &[u64]) {
    console::number("block ", number);
    console::number("digest ", digest(words));
}
