//! Cables that lose, double and delay a large part of what they carry: a stream arrives, however long it takes, and never stands still.

use super::*;
use std::string::String;
use std::{format, println};

/// A stream of 60 000 bytes over a cable that loses and doubles a tenth and delays a fifth; seconds that it took. What a small buffer is full
/// of the reader takes in its own time, so the window closes again and again.
fn stream_over_very_bad_cable(seed: u64) -> Result<u64, String> {
    let mut pair = Pair::new(0);
    pair.stacks = [HERE, THERE].map(|address| {
        let options = Options {
            buffer: 2048,
            ..options(address)
        };
        Stack::new(Wire::default(), options, 0)
    });
    let (client, server) = connected(&mut pair);
    pair.random = bulkhead_random::Random::new(seed);
    (pair.loss, pair.late) = (10, 20);
    let (mut left, mut missing, mut reads_at) = (60_000usize, 60_000usize, 0);
    let (mut sending, mut receiving) = (false, false);
    let (begun, mut progress) = (pair.now, pair.now);
    while missing > 0 {
        if left > 0 && !sending {
            pair.ask(0, 3, request(SEND, client), &[7; 700][..left.min(700)], 2);
            sending = true;
        }
        if !receiving && reads_at <= pair.now {
            let length = 1000;
            let receive = Request {
                length,
                ..request(RECEIVE, server)
            };
            pair.ask(1, 7, receive, &[], 3);
            receiving = true;
        }
        let waits = pair
            .stacks
            .each_ref()
            .iter()
            .all(|stack| stack.waiting() > 0);
        let calm = pair.held.iter().all(Vec::is_empty);
        let now = pair.now;
        let idle = pair
            .stacks
            .iter_mut()
            .all(|stack| stack.next(now).is_none() && stack.card().arrived.is_empty());
        if sending && receiving && waits && calm && idle {
            return Err(format!(
                "seed {seed}: stands still with {missing} bytes missing"
            ));
        }
        pair.tick();
        if let Some((_, answer)) = pair.answers[0].pop() {
            assert_eq!(answer.reply.status, 0);
            left -= answer.reply.value as usize;
            sending = false;
        }
        if let Some((_, answer)) = pair.answers[1].pop() {
            assert_eq!(answer.reply.status, 0);
            missing -= answer.data.len();
            receiving = false;
            reads_at = pair.now + 200_000 * (pair.draw() % 30);
            progress = pair.now;
        }
        if pair.now > progress + 300_000_000_000 {
            return Err(format!("seed {seed}: {missing} bytes missing for 300 s"));
        }
    }
    Ok((pair.now - begun) / 1_000_000_000)
}

/// `BULKHEAD_CABLES=1000` tries this many cables.
#[test]
fn a_stream_never_stands_still() {
    let cables =
        std::env::var("BULKHEAD_CABLES").map_or(20, |text| text.parse().expect("a number"));
    let took: Vec<_> = (1..=cables).map(stream_over_very_bad_cable).collect();
    let wrong: Vec<_> = took.iter().filter_map(|one| one.as_ref().err()).collect();
    let mut seconds: Vec<_> = took.iter().flatten().collect();
    seconds.sort_unstable();
    println!(
        "{cables} cables: {:?} s, {} wrong",
        seconds.last(),
        wrong.len()
    );
    assert!(wrong.is_empty(), "{} of {cables}: {wrong:?}", wrong.len());
}
