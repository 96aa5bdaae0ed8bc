//! Any text as a description: it is refused, with the places of its errors, or its contents can be written down and read again.
//!
//! Why it exists: texts come from anybody, and an accepted text is written again for the chip. What it deliberately does not know: which
//! texts are right.

use crate::{LoadOptions, canonical, load_platform_text, load_system_text, load_tasks_text};
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;

/// Reads a text as each kind of description.
fn holds(text: &str) -> TestCaseResult {
    let options = LoadOptions::default();
    match load_system_text("text", text, &options) {
        Err(errors) => prop_assert!(!errors.to_string().is_empty()),
        Ok(system) => {
            let written = canonical::complete(&system);
            let again = load_system_text("again", &written, &options);
            prop_assert!(
                again.is_ok(),
                "{}\n{}",
                again.expect_err("refused"),
                written
            );
            let again = again.map(|again| canonical::complete(&again));
            prop_assert_eq!(again.expect("accepted"), written);
        }
    }
    match load_platform_text("text", text, &options) {
        Err(errors) => prop_assert!(!errors.to_string().is_empty()),
        Ok(platform) => {
            let written = canonical::platform(&platform);
            let again = load_platform_text("again", &written, &options);
            prop_assert!(
                again.is_ok(),
                "{}\n{}",
                again.expect_err("refused"),
                written
            );
            let again = again.map(|again| canonical::platform(&again));
            prop_assert_eq!(again.expect("accepted"), written);
        }
    }
    if let Err(errors) = load_tasks_text("text", text, &options) {
        prop_assert!(!errors.to_string().is_empty());
    }
    Ok(())
}

#[test]
fn guided_descriptions() {
    bulkhead_fuzz::text("descriptions", |bytes| {
        std::str::from_utf8(bytes).map_or(Ok(()), holds)
    });
}
