//! Arguments and gates of the environment page, by name.
//!
//! Why it exists: the description names them, programs look them up once. What it deliberately does not know: units;
//! the manager writes every quantity as a plain number of bytes, nanoseconds, hertz or bytes a second.

use bulkhead_abi::environment::{ArgumentEntry, Environment, GateEntry, GateKind};
use bulkhead_abi::words;
use bulkhead_user::user;
use core::str::FromStr;
use zerocopy::FromBytes;

fn tables() -> (&'static [GateEntry], &'static [ArgumentEntry]) {
    let environment = user::environment();
    let bytes = &user::environment_bytes()[size_of::<Environment>()..];
    let gates = <[GateEntry]>::ref_from_prefix_with_elems(bytes, environment.gates.into());
    let (gates, rest) = gates.unwrap_or_default();
    let arguments =
        <[ArgumentEntry]>::ref_from_prefix_with_elems(rest, environment.arguments.into());
    (gates, arguments.unwrap_or_default().0)
}

/// The text of an argument, if the description gives it.
pub fn text(name: &str) -> Option<&'static str> {
    let entry = tables().1.iter().find(|a| words::text(&a.name) == name)?;
    Some(words::text(&entry.value))
}

/// The value of an argument, or the default if the description does not give it.
///
/// # Panics
/// If it is given but is not such a value, which is an error in the description.
pub fn value<T: FromStr>(name: &str, default: T) -> T {
    match text(name) {
        None => default,
        Some(text) => match text.parse() {
            Ok(value) => value,
            Err(_) => panic!("argument `{name}`: `{text}` is not a value of the right kind"),
        },
    }
}

/// A time such as `20us` in nanoseconds, or the default if the description does not give it.
///
/// # Panics
/// If it is given but is not a time.
pub fn time(name: &str, default: u64) -> u64 {
    match text(name) {
        None => default,
        Some(text) => match bulkhead_common::quantity::time(text) {
            Some(time) => time,
            None => panic!("argument `{name}`: `{text}` is not a time such as `20us`"),
        },
    }
}

/// A size such as `64KiB` in bytes, if the description gives it.
///
/// # Panics
/// If it is given but is not a size.
pub fn size(name: &str) -> Option<u64> {
    let text = text(name)?;
    match bulkhead_common::quantity::size(text) {
        Some(size) => Some(size),
        None => panic!("argument `{name}`: `{text}` is not a size such as `64KiB`"),
    }
}

/// The entry of a gate, if the activity has it.
pub(crate) fn gate(name: &str, kind: GateKind) -> Option<&'static GateEntry> {
    let mut gates = tables().0.iter();
    gates.find(|g| g.kind == kind as u32 && words::text(&g.name) == name)
}

/// Maximum bytes of a message over a send gate, header included; 0 if there is no such gate.
pub(crate) fn message_size(name: &str) -> u16 {
    gate(name, GateKind::Send).map_or(0, |entry| entry.slot_size)
}

/// Credits of a send gate; 0 if there is no such gate.
pub(crate) fn credits(name: &str) -> u64 {
    gate(name, GateKind::Send).map_or(0, |entry| entry.size)
}
