use super::*;
use proptest::prelude::*;

const LINE: u64 = 64;

fn stream(training: u32, stride: u32, distance: u32, degree: u32) -> Prefetcher {
    let config = PrefetcherConfig {
        kind: PrefetcherKind::Stream {
            streams: 2,
            stride,
            training,
            distance,
        },
        degree,
        page: 4096,
    };
    Prefetcher::new(&config, LINE as u32)
}

/// The lines of a page that are named after requests for these lines of it.
fn named(prefetcher: &mut Prefetcher, lines: &[u64]) -> Vec<Vec<u64>> {
    let name = |line: &u64| {
        let request = Request {
            address: 0x8000 + line * LINE + 8,
            pc: 0,
        };
        let all = prefetcher.observe(request).iter();
        all.map(|address| (address - 0x8000) / LINE).collect()
    };
    lines.iter().map(name).collect()
}

#[test]
fn a_stream_is_followed_from_its_third_request_on() {
    // Three lines ahead, two per request: it builds up its distance, then names one line per request.
    let mut prefetcher = stream(3, 8, 3, 2);
    let all = named(&mut prefetcher, &[0, 1, 2, 3, 4, 5]);
    let expected: [&[u64]; 6] = [&[], &[], &[3, 4], &[5, 6], &[7], &[8]];
    assert_eq!(all, expected);
    // Downwards, every third line.
    let mut prefetcher = stream(3, 8, 2, 4);
    let all = named(&mut prefetcher, &[40, 37, 34, 31]);
    let expected: [&[u64]; 4] = [&[], &[], &[31, 28], &[25]];
    assert_eq!(all, expected);
    // Two requests are enough where the platform says so.
    let all = named(&mut stream(2, 8, 1, 1), &[0, 1, 2]);
    let expected: [&[u64]; 3] = [&[], &[2], &[3]];
    assert_eq!(all, expected);
}

#[test]
fn steps_that_are_too_long_or_change_make_no_stream() {
    let all = named(&mut stream(3, 4, 2, 2), &[0, 5, 10, 15, 20]);
    assert!(all.iter().all(Vec::is_empty), "{all:?}");
    let all = named(&mut stream(3, 8, 2, 2), &[0, 1, 3, 6, 10]);
    assert!(all.iter().all(Vec::is_empty), "{all:?}");
}

#[test]
fn two_streams_do_not_disturb_each_other_and_a_third_one_does() {
    let two = [0, 32, 1, 34, 2, 36, 3];
    let all = named(&mut stream(3, 8, 1, 1), &two);
    let expected: [&[u64]; 7] = [&[], &[], &[], &[], &[3], &[38], &[4]];
    assert_eq!(all, expected);
    // Three in turn: each takes the place of the one that comes next.
    let three = [0, 20, 40, 1, 21, 41, 2, 22, 42, 3, 23, 43];
    let all = named(&mut stream(3, 8, 1, 1), &three);
    assert!(all.iter().all(Vec::is_empty), "{all:?}");
}

#[test]
fn nothing_beyond_the_page_is_named() {
    let all = named(
        &mut stream(3, 8, 8, 8),
        &[58, 59, 60, 61, 62, 63, 64, 65, 66],
    );
    let expected: [&[u64]; 9] = [
        &[],
        &[],
        &[61, 62, 63],
        &[],
        &[],
        &[],
        &[],
        &[],
        &[67, 68, 69, 70, 71, 72, 73, 74],
    ];
    assert_eq!(all, expected);
}

fn stride(entries: u32, degree: u32) -> Prefetcher {
    let config = PrefetcherConfig {
        kind: PrefetcherKind::Stride {
            entries,
            ways: 4,
            bits: 3,
            initial: 4,
            threshold: 50,
        },
        degree,
        page: 4096,
    };
    Prefetcher::new(&config, LINE as u32)
}

#[test]
fn an_instruction_with_a_stride_is_followed() {
    // gem5's defaults: a new instruction has confidence 4 of 7; the first distance is unknown and lowers it to 3, below half; the
    // second one at the same distance raises it to 4, which is enough.
    let mut prefetcher = stride(64, 2);
    let all: Vec<Vec<u64>> = (0..4)
        .map(|i| {
            let (address, pc) = (0x8000 + 256 * i, 0x100);
            prefetcher.observe(Request { address, pc }).to_vec()
        })
        .collect();
    let expected: [&[u64]; 4] = [&[], &[], &[0x8300, 0x8400], &[0x8400, 0x8500]];
    assert_eq!(all, expected);
    // A stride within a line becomes a line.
    let mut prefetcher = stride(64, 1);
    let last = [0x8000, 0x8008, 0x8010]
        .map(|address| prefetcher.observe(Request { address, pc: 2 }).to_vec());
    assert_eq!(last[2], [0x8040]);
}

proptest! {
    /// Whatever is requested: only lines of the request's page are named, at most as many as the degree, and never the line itself.
    #[test]
    fn names_stay_in_the_page(
        by_instruction in any::<bool>(),
        degree in 1u32..9,
        distance in 1u32..9,
        requests in prop::collection::vec((0u64..512, 0u64..8), 1..300),
    ) {
        let mut prefetcher = match by_instruction {
            true => stride(16, degree),
            false => stream(3, 8, distance, degree),
        };
        for (at, pc) in requests {
            let request = Request { address: at * 32, pc: pc * 2 };
            let named = prefetcher.observe(request);
            prop_assert!(named.len() <= degree as usize);
            for name in named {
                prop_assert_eq!(name % LINE, 0);
                prop_assert_eq!(name / 4096, request.address / 4096);
                prop_assert_ne!(*name, request.address / LINE * LINE);
            }
        }
    }
}
