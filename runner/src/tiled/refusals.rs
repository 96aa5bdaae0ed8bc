//! What an error of the data transfer unit means for a program in Rust, which prints only its name.
//!
//! Why it exists: `BadSize` says neither which sizes there are nor what else may be wrong. What it deliberately does not know: how a program
//! came to its text, so it explains every error that is named there.

use bulkhead_abi::message::HEADER_SIZE;
use bulkhead_model::System;
use bulkhead_model::system::App;

/// Names of errors ([`bulkhead_abi::dtu::DtuError`]) that a program can cause, and what they mean.
const MEANINGS: [(&str, &str); 9] = [
    (
        "BadSize",
        "a message cannot be empty, larger than a slot of its receiver, or across a page, which `Aligned` and `MessageBuffer` prevent",
    ),
    (
        "NoCredits",
        "as many messages of the gate are unanswered as it has `credits`; `send_waiting` waits for an answer",
    ),
    ("NoSpace", "the receiver has no free slot"),
    (
        "ReceiverGone",
        "the application with the receive gate has ended",
    ),
    ("OutOfBounds", "the access ends beyond the memory gate"),
    (
        "NoPermission",
        "the memory gate's `rights` do not allow this direction",
    ),
    (
        "InvalidEndpoint",
        "the gate is closed, because its receiver has ended or its right was revoked",
    ),
    ("NoReply", "the message wants no answer, or has one already"),
    (
        "TranslationFault",
        "the program may not read or write that memory",
    ),
];

/// The meaning of an error that an application named in a text.
pub fn meaning(system: &System, application: &str, text: &str) -> Option<String> {
    let words = || text.split(|c: char| !c.is_ascii_alphanumeric());
    let mut all = MEANINGS.iter();
    let (name, about) = all.find(|(name, _)| words().any(|word| word == *name))?;
    let mut said = format!("; {name}: {about}");
    if *name == "BadSize" {
        let mut apps = system.apps.iter();
        let sizes = apps.find(|app| app.name == application);
        said += &sizes.map_or(String::new(), |app| sizes_of(system, app));
    }
    Some(said)
}

/// How many bytes each send gate carries.
fn sizes_of(system: &System, app: &App) -> String {
    let gates = app.sgates.iter().filter_map(|gate| {
        let slot = system.apps.get(gate.to)?.rgates.get(gate.gate)?.slot_size;
        let most = slot.checked_sub(HEADER_SIZE as u32)?;
        Some(format!("; `{}` carries {most} bytes", gate.name))
    });
    gates.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use bulkhead_abi::dtu::DtuError;
    use bulkhead_model::{LoadOptions, load_system_text};

    #[test]
    fn a_size_that_does_not_fit_comes_with_those_that_do() {
        let system = load_system_text(
            "s",
            "<system name='s' platform='tiled-2ghz'><domain name='d'>\
             <app name='a' program='p'><sgate name='out' to='b'/></app>\
             <app name='b' program='p'><rgate name='in' slot-size='256B'/></app></domain></system>",
            &LoadOptions::default(),
        )
        .expect("valid");
        let text = "called `Result::unwrap()` on an `Err` value: BadSize at src/main.rs:3:1";
        let said = meaning(&system, "a", text).expect("explained");
        assert!(
            said.starts_with("; BadSize: a message cannot be empty"),
            "{said}"
        );
        assert!(said.ends_with("; `out` carries 224 bytes"), "{said}");
        assert_eq!(meaning(&system, "a", "a BadSizeOfMine"), None);
        // The place of a panic is what follows the last ` at `.
        for (name, about) in MEANINGS {
            assert!(!about.contains(" at "), "{name}");
            let is_it = |error: &&DtuError| format!("{error:?}") == name;
            assert!(DtuError::ALL.iter().any(|error| is_it(&error)), "{name}");
        }
    }
}
