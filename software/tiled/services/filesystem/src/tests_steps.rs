//! Random requests of several clients, full of tricky cases.
//!
//! Why it exists: two tests make random stories of them, one against a model and one with failures everywhere. What it deliberately does
//! not know: the right outcome.

use crate::*;
use bulkhead_common::file::{CREATE, PATH, READ, TRUNCATE, WRITE};
use proptest::prelude::*;
use std::string::String;
use std::vec;
use std::vec::Vec;

/// Labels and activities: two activities share a label, and one has two.
pub const OWNERS: [(u64, u16); 5] = [(0, 1), (0, 2), (1, 3), (2, 3), (3, 4)];

#[derive(Clone, Debug)]
pub enum Step {
    Begin(u16),
    End(u16),
    Open(usize, Vec<u8>, u64),
    Close(usize, u64),
    Stat(Vec<u8>),
    List(Vec<u8>, u64),
    MakeFolder(Vec<u8>),
    Remove(Vec<u8>),
    Commit(usize, u64, u64),
    Read(usize, u64, u64, u64),
    Write(usize, u64, u64, u64, u8),
    /// Asks for a piece and, if it may be written, writes at an offset in it.
    Grant(u16, u64, u64, bool, u64),
    /// A turn of the service between requests.
    Clean,
    /// From now on pieces cannot be taken back, or can again.
    Stuck(bool),
    /// The next bytes that the store writes are its last.
    Power(u64),
}

fn name() -> impl Strategy<Value = String> {
    let traps = [
        "a",
        "b",
        "f",
        "v..",
        "a..",
        "..",
        ".",
        "",
        "...",
        "..a",
        "é",
        "é..",
        "\u{202e}x",
        "a\n",
        "\u{85}",
        " ",
    ];
    prop_oneof![
        8 => prop::sample::select(&["a", "b", "f", "v.."][..]).prop_map(String::from),
        4 => prop::sample::select(traps.to_vec()).prop_map(String::from),
        1 => (54usize..59).prop_map(|length| "n".repeat(length)),
        1 => "[^/]{0,20}",
    ]
}

/// A path as a request carries it; a few are not text.
fn path() -> impl Strategy<Value = Vec<u8>> {
    let joined = prop_oneof![
        8 => prop::collection::vec(name(), 1..4),
        1 => prop::collection::vec(name(), 0..12),
    ];
    prop_oneof![
        20 => joined.prop_map(|names| names.join("/").into_bytes()),
        1 => ".{0,240}".prop_map(String::into_bytes),
        1 => prop::collection::vec(any::<u8>(), 0..40),
    ]
}

fn number() -> impl Strategy<Value = u64> {
    prop_oneof![20 => Just(0), 10 => 0u64..4, 1 => any::<u64>()]
}

fn offset() -> impl Strategy<Value = u64> {
    prop_oneof![8 => 0u64..300, 4 => 0u64..30_000, 8 => (0u64..24).prop_map(|n| n * BLOCK as u64), 1 => any::<u64>()]
}

pub fn step() -> impl Strategy<Value = Step> {
    let who = || 0usize..OWNERS.len();
    let flags = prop_oneof![
        4 => Just(READ | WRITE | CREATE),
        3 => prop::sample::select([READ, WRITE, READ | WRITE, WRITE | CREATE | TRUNCATE].to_vec()),
        1 => any::<u64>().prop_map(|flags| flags % 64),
    ];
    prop_oneof![
        2 => (0u16..6).prop_map(Step::Begin),
        1 => (0u16..6).prop_map(Step::End),
        8 => (who(), path(), flags).prop_map(|(w, p, f)| Step::Open(w, p, f)),
        3 => (who(), number()).prop_map(|(w, n)| Step::Close(w, n)),
        2 => path().prop_map(Step::Stat),
        2 => (path(), prop_oneof![Just(0u64), 0u64..70, any::<u64>()]).prop_map(|(p, n)| Step::List(p, n)),
        4 => path().prop_map(Step::MakeFolder),
        4 => path().prop_map(Step::Remove),
        2 => (who(), number(), offset()).prop_map(|(w, n, size)| Step::Commit(w, n, size)),
        3 => (who(), number(), offset(), prop_oneof![0u64..220, any::<u64>()]).prop_map(|(w, n, o, l)| Step::Read(w, n, o, l)),
        4 => (who(), number(), offset(), prop_oneof![10 => 0u64..220, 1 => any::<u64>()], any::<u8>()).prop_map(|(w, n, o, l, b)| Step::Write(w, n, o, l, b)),
        6 => (0u16..6, number(), offset(), any::<bool>(), offset()).prop_map(|(a, n, o, w, at)| Step::Grant(a, n, o, w, at)),
        2 => Just(Step::Clean),
        1 => any::<bool>().prop_map(Step::Stuck),
        1 => (0u64..12_000).prop_map(Step::Power),
    ]
}

pub fn padded(path: &[u8]) -> Option<[u8; PATH]> {
    let mut bytes = [0; PATH];
    bytes.get_mut(..path.len())?.copy_from_slice(path);
    Some(bytes)
}
