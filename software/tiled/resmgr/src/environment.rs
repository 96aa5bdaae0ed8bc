//! Fills an environment page.
//!
//! Why it exists: gates and arguments follow the header, and all must fit. What it deliberately does not know: the source of these facts.

use bulkhead_abi::environment::{ArgumentEntry, ENVIRONMENT_SIZE, Environment, GateEntry, VALUE};
use bulkhead_abi::words::{NAME, Name};
use zerocopy::IntoBytes;

/// Why something does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EnvironmentError {
    /// More gates and arguments than the page holds.
    Full,
    /// A name or value is too long or has a zero byte.
    TooLong,
}

/// An argument's entry.
///
/// # Errors
/// [`EnvironmentError::TooLong`] for more than 32 bytes of name or 64 of value.
pub fn argument(name: &str, value: &str) -> Result<ArgumentEntry, EnvironmentError> {
    let name = Name::new(name).ok_or(EnvironmentError::TooLong)?;
    let mut field = [0; VALUE];
    let place = field.get_mut(..value.len());
    place
        .ok_or(EnvironmentError::TooLong)?
        .copy_from_slice(value.as_bytes());
    Ok(ArgumentEntry {
        name: name.0,
        value: field,
    })
}

/// Writes the page: header (whose counts are set here), gates, arguments.
///
/// # Errors
/// [`EnvironmentError::Full`].
pub fn fill(
    page: &mut [u8; ENVIRONMENT_SIZE],
    mut header: Environment,
    gates: &[GateEntry],
    arguments: &[ArgumentEntry],
) -> Result<(), EnvironmentError> {
    header.gates = gates.len().try_into().map_err(|_| EnvironmentError::Full)?;
    let count = arguments.len().try_into();
    header.arguments = count.map_err(|_| EnvironmentError::Full)?;
    page.fill(0);
    let mut at = 0;
    for bytes in [header.as_bytes(), gates.as_bytes(), arguments.as_bytes()] {
        let place = page.get_mut(at..at + bytes.len());
        place.ok_or(EnvironmentError::Full)?.copy_from_slice(bytes);
        at += bytes.len();
    }
    Ok(())
}

const _: () = assert!(NAME == 32);

#[cfg(test)]
mod tests {
    use super::*;
    use zerocopy::FromZeros;

    #[test]
    fn what_is_written_is_where_the_text_says() {
        let header = Environment {
            activity: 7,
            ..Environment::new_zeroed()
        };
        let gate = GateEntry {
            endpoint: 9,
            ..GateEntry::new_zeroed()
        };
        let mut page = [0xff; ENVIRONMENT_SIZE];
        let arguments = [argument("samples", "50").unwrap()];
        fill(&mut page, header, &[gate], &arguments).unwrap();
        let gates_at = size_of::<Environment>();
        assert_eq!(page[gates_at + 36], 9);
        let argument_at = gates_at + size_of::<GateEntry>();
        assert_eq!(&page[argument_at..argument_at + 8], b"samples\0");
        assert_eq!(&page[argument_at + 32..argument_at + 35], b"50\0");
        assert_eq!(page[8], 7);
    }

    #[test]
    fn a_full_page_is_an_error() {
        let mut page = [0; ENVIRONMENT_SIZE];
        let gates = [GateEntry::new_zeroed(); 64];
        assert_eq!(
            fill(&mut page, Environment::new_zeroed(), &gates, &[]),
            Err(EnvironmentError::Full)
        );
        assert_eq!(
            argument("a", &"x".repeat(65)),
            Err(EnvironmentError::TooLong)
        );
        assert_eq!(
            argument(&"x".repeat(33), ""),
            Err(EnvironmentError::TooLong)
        );
    }
}
