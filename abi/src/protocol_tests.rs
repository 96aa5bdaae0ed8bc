//! System calls and requests survive their encoding, and no message can break a decoder.

extern crate std;

use crate::syscall::{Event, Number, ServerRequest, StopCause, Syscall, SyscallError, module_key};
use crate::tilemux::{Request, decode_stopped, encode_stopped};
use crate::words::Name;
use proptest::prelude::*;
use std::string::String;
use std::vec::Vec;

proptest! {
    #[test]
    fn what_is_decoded_encodes_to_the_same_words(number in 0u64..30, words in proptest::collection::vec(any::<u64>(), 0..14), small: bool) {
        let mut all: Vec<u64> = [number].into();
        // Halves and bytes must be small to be accepted.
        all.extend(words.iter().map(|w| if small { w & 0x3f } else { *w }));
        match Syscall::decode(&all) {
            Ok(call) => {
                let encoded = call.encode();
                prop_assert!(all.starts_with(encoded.as_slice()));
                prop_assert_eq!(Syscall::decode(encoded.as_slice()), Ok(call));
            }
            Err(error) => {
                let unknown = Number::from_code(number).is_none();
                prop_assert_eq!(error, if unknown { SyscallError::UnknownCall } else { SyscallError::BadArgument });
            }
        }
        if let Some(request) = Request::decode(&all) {
            prop_assert!(all.starts_with(request.encode().as_slice()));
        }
    }

    #[test]
    fn names_survive(text in "[a-z/]{0,40}") {
        match Name::new(&text) {
            Some(name) => {
                let back = Name::from_words(name.to_words());
                prop_assert_eq!(back.as_str(), text);
            }
            None => prop_assert!(text.len() > 32),
        }
    }

    #[test]
    fn events_and_questions_survive(words: [u64; 7], kind in 0u64..5, small: bool) {
        let mut all = words.map(|w| if small { w & 0x3f } else { w });
        all[0] = kind;
        if let Some(event) = Event::from_words([all[0], all[1], all[2], all[3], all[4]]) {
            prop_assert_eq!(Event::from_words(event.to_words()), Some(event));
        }
        if let Some(request) = ServerRequest::decode(&all) {
            prop_assert!(all.starts_with(request.encode().as_slice()));
        }
    }

    #[test]
    fn causes_survive(activity: u16, words: [u64; 4]) {
        if let Some(cause) = StopCause::from_words(words) {
            prop_assert_eq!(decode_stopped(&encode_stopped(activity, cause)), Some((activity, cause)));
        }
    }
}

#[test]
fn every_number_has_a_call() {
    for number in Number::ALL {
        let words = [*number as u64, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13];
        let call = Syscall::decode(&words).expect("small fields are all valid");
        assert_eq!(call.encode().as_slice()[0], *number as u64);
    }
}

#[test]
fn bad_names_and_keys() {
    assert_eq!(Name::new("a\0b"), None);
    assert_eq!(Name([0xff; 32]).as_str(), String::new());
    // Published values of the FNV-1a hash for these texts.
    assert_eq!(module_key(b""), 0xcbf2_9ce4_8422_2325);
    assert_eq!(module_key(b"a"), 0xaf63_dc4c_8601_ec8c);
    assert_eq!(module_key(b"foobar"), 0x8594_4171_f739_67e8);
}
