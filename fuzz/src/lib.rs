//! Stories of hostile operations, drawn from bytes. A tool observes which code a story reaches, changes the bytes, and keeps the stories that
//! reach more.
//!
//! Why it exists: a random test draws each story anew and forgets it, so it seldom gets past several rare steps. Here
//! the same strategies and checks serve libFuzzer, a tool that builds on what it has reached. What it deliberately does not
//! know: the operations, and what must hold after them; both belong to the random tests.
//!
//! A *target* is a test that calls [`target`] or [`text`]. Normally it replays the kept stories of its folder in `fuzz/corpus`, in the order
//! of their names. `./bulkhead test --fuzz` builds the test with counters in its code and lets the tool run it.
//!
//! # The form of a story
//! A story is a sequence of records of any length. A byte below [`END`] ends its record. Each record is the seed of one draw, so a byte that is
//! changed, removed or inserted changes one step and no other; the tool moves, doubles and exchanges whole steps. A record that ends with
//! [`MANY`] or more is a run of steps: the tool prefers short stories, and without runs they would have few steps, too. Strategies cannot draw
//! from the bytes themselves: `proptest` gives half of the remaining bytes to each alternative of a choice that it does not take.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

use bulkhead_random::Random;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{
    Config, RngAlgorithm, TestCaseError, TestCaseResult, TestRng, TestRunner,
};
use std::path::PathBuf;

/// A byte below this ends a record. One byte in four does, so records of random bytes have four bytes on average.
pub const END: u8 = 64;
/// A record that ends with this byte or a greater one is a run of [`RUN`] steps instead of one step. One end in four is.
pub const MANY: u8 = 48;
/// Steps of a run.
pub const RUN: usize = 16;

/// A story in its raw form.
#[derive(Clone, Copy, Debug)]
pub struct Bytes<'a> {
    rest: &'a [u8],
}

impl<'a> Bytes<'a> {
    /// The story of these bytes.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// The next record, without the byte that ends it, and its number of steps; `None` if no byte is left.
    fn record(&mut self) -> Option<(&'a [u8], usize)> {
        if self.rest.is_empty() {
            return None;
        }
        let end = self.rest.iter().position(|byte| *byte < END);
        let (record, rest, steps) = match end {
            Some(end) => (
                &self.rest[..end],
                &self.rest[end + 1..],
                if self.rest[end] < MANY { 1 } else { RUN },
            ),
            None => (self.rest, &[][..], 1),
        };
        self.rest = rest;
        Some((record, steps))
    }

    /// A value of a strategy, drawn from the next record; from an empty one if no byte is left.
    ///
    /// # Panics
    /// If the strategy rejects more values than `proptest` allows.
    pub fn draw<S: Strategy>(&mut self, strategy: &S) -> S::Value {
        let record = self.record().map_or(&[][..], |(record, _)| record);
        drawn(strategy, &mut runner(record))
    }

    /// A value for each step of each record that is left, but at most this many.
    ///
    /// # Panics
    /// As [`draw`](Self::draw).
    pub fn story<S: Strategy>(&mut self, strategy: &S, most: usize) -> Vec<S::Value> {
        let mut story = Vec::new();
        while story.len() < most
            && let Some((record, steps)) = self.record()
        {
            let mut runner = runner(record);
            let steps = steps.min(most - story.len());
            story.extend((0..steps).map(|_| drawn(strategy, &mut runner)));
        }
        story
    }
}

/// FNV-1a (Fowler, Noll, Vo; RFC 9923, 64 bits): records that differ in one bit have different seeds.
fn seed(record: &[u8]) -> u64 {
    let mix = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    record.iter().fold(0xcbf2_9ce4_8422_2325, mix)
}

/// What draws the values of a record.
fn runner(record: &[u8]) -> TestRunner {
    let mut random = Random::new(seed(record));
    let mut bytes = [0; 16];
    for word in bytes.chunks_mut(8) {
        word.copy_from_slice(&random.next().to_le_bytes());
    }
    let config = Config {
        failure_persistence: None,
        ..Config::default()
    };
    let rng = TestRng::from_seed(RngAlgorithm::XorShift, &bytes);
    TestRunner::new_with_rng(config, rng)
}

fn drawn<S: Strategy>(strategy: &S, runner: &mut TestRunner) -> S::Value {
    match strategy.new_tree(runner) {
        Ok(tree) => tree.current(),
        Err(reason) => panic!("the strategy draws no value: {reason}"),
    }
}

/// Where a target keeps its stories: `fuzz/corpus` and its name.
fn corpus(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "corpus", name]
        .iter()
        .collect()
}

/// A target whose input is a story of operations.
///
/// # Panics
/// If the property does not hold for a story (names the story's file), or if the target has no stories.
pub fn target(name: &str, property: impl Fn(&mut Bytes) -> TestCaseResult) {
    text(name, |bytes| property(&mut Bytes::new(bytes)));
}

/// A target whose input is the bytes themselves, such as a file or a record that somebody else wrote.
///
/// # Panics
/// As [`target`].
pub fn text(name: &str, property: impl Fn(&[u8]) -> TestCaseResult) {
    let holds = |bytes: &[u8]| match property(bytes) {
        // A value that the test rejects is no failure.
        Ok(()) | Err(TestCaseError::Reject(_)) => None,
        Err(TestCaseError::Fail(reason)) => Some(reason),
    };
    #[cfg(fuzzing_libfuzzer)]
    if guided::is_wanted(name) {
        return guided::explore(name, |bytes| {
            if let Some(reason) = holds(bytes) {
                panic!("{reason}");
            }
        });
    }
    let folder = corpus(name);
    let kept = std::fs::read_dir(&folder).unwrap_or_else(|error| {
        panic!(
            "{}: {error}; each target keeps at least one story there",
            folder.display()
        )
    });
    let mut files: Vec<PathBuf> = kept.map(|file| file.expect("readable").path()).collect();
    files.sort();
    assert!(!files.is_empty(), "{}: no story", folder.display());
    for file in files {
        // The tests' output names the story that panics inside.
        println!("{}", file.display());
        let bytes =
            std::fs::read(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        if let Some(reason) = holds(&bytes) {
            panic!("{}: {reason}", file.display());
        }
    }
}

/// What the tool adds.
#[cfg(fuzzing_libfuzzer)]
mod guided {
    use bolero_engine::Engine;
    use bolero_engine::driver::Options;
    use bolero_libfuzzer::LibFuzzerEngine;
    use bulkhead_random::Random;
    use std::panic::AssertUnwindSafe;

    /// The target to explore, from `./bulkhead test --fuzz`.
    const WANTED: &str = "BULKHEAD_FUZZ_TARGET";
    /// A file that says that the target was found.
    const BEGUN: &str = "BULKHEAD_FUZZ_BEGUN";
    /// A folder of random stories with which the tool begins, in addition to the kept stories.
    const FIRST: &str = "BULKHEAD_FUZZ_FIRST";
    /// If set, the tool does not steer: each run has a new random story. For comparisons.
    const BLIND: &str = "BULKHEAD_FUZZ_BLIND";
    /// Random stories with which the tool begins. It lengthens stories slowly, and any long story does most of what other long ones do.
    const STORIES: usize = 64;
    /// Maximum bytes of a random story: about 250 steps.
    const LENGTH: u64 = 1024;

    pub fn is_wanted(name: &str) -> bool {
        std::env::var(WANTED).is_ok_and(|wanted| wanted == name)
    }

    /// Any bytes.
    fn story(random: &mut Random) -> Vec<u8> {
        let length = random.below(LENGTH);
        (0..length).map(|_| random.next() as u8).collect()
    }

    /// Lets the tool run the property. It ends the process, with 0 if the property held.
    pub fn explore(name: &str, property: impl Fn(&[u8])) {
        if let Ok(begun) = std::env::var(BEGUN) {
            std::fs::write(&begun, name).unwrap_or_else(|error| panic!("{begun}: {error}"));
        }
        let mut random = Random::new(1);
        if let Ok(first) = std::env::var(FIRST) {
            for number in 0..STORIES {
                let file = std::path::Path::new(&first).join(format!("random-{number:02}"));
                let written = std::fs::write(&file, story(&mut random));
                written.unwrap_or_else(|error| panic!("{}: {error}", file.display()));
            }
        }
        let blind = std::env::var_os(BLIND).is_some();
        let mut test = AssertUnwindSafe(|bytes: &[u8]| {
            if !blind {
                return property(bytes);
            }
            property(&story(&mut random));
        });
        LibFuzzerEngine::default().run(move |bytes: &[u8]| (test)(bytes), Options::default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::any;

    #[test]
    fn a_change_in_one_record_changes_one_value() {
        let all = |bytes: &[u8]| Bytes::new(bytes).story(&any::<u64>(), 9);
        let before = all(b"aaa\0bbb\0ccc\0");
        assert_eq!(before.len(), 3);
        for changed in [
            &b"aaa\0b\0ccc\0"[..],
            b"aaa\0bbbbb\x01ccc\0",
            b"aaa\0bxb\0ccc",
        ] {
            let after = all(changed);
            assert_eq!((after[0], after[2]), (before[0], before[2]));
            assert_ne!(after[1], before[1]);
        }
        // A doubled record gives the same value twice.
        let twice = all(b"aaa\0aaa\0");
        assert_eq!(twice, [before[0]; 2]);
    }

    #[test]
    fn a_story_ends_with_its_bytes_or_its_length() {
        let mut bytes = Bytes::new(b"a\0b\0c\0");
        assert_eq!(bytes.story(&any::<u8>(), 2).len(), 2);
        assert_eq!(bytes.story(&any::<u8>(), 2).len(), 1);
        assert_eq!(bytes.draw(&any::<u8>()), Bytes::new(b"").draw(&any::<u8>()));
        // Each byte below the limit ends a record, even an empty one.
        assert_eq!(
            Bytes::new(&[0, 1, MANY - 1, END])
                .story(&any::<u8>(), 9)
                .len(),
            4
        );
    }

    /// A run begins with the value of its record, and its values differ.
    #[test]
    fn a_run_is_many_steps() {
        let one = Bytes::new(b"abc\0").story(&any::<u64>(), 99);
        let mut run = Bytes::new(&[b'a', b'b', b'c', MANY]).story(&any::<u64>(), 99);
        assert_eq!((one.len(), run.len(), run[0]), (1, RUN, one[0]));
        run.sort_unstable();
        run.dedup();
        assert_eq!(run.len(), RUN);
        let cut = Bytes::new(&[b'a', MANY, b'b', MANY]).story(&any::<u64>(), RUN + 3);
        assert_eq!(cut.len(), RUN + 3);
    }

    #[test]
    #[should_panic(expected = "each target keeps at least one story")]
    fn a_target_without_stories_is_refused() {
        target("of no name", |_| Ok(()));
    }
}
