//! What clients of one service can do to each other: nobody takes the sockets, the memory, the last words or the first words of another.

use super::*;

/// Nobody has this address.
const NOBODY: [u8; 4] = [10, 0, 0, 77];

impl Pair {
    /// A client leaves a connection that tells an absent peer that it is over.
    fn leave_one(&mut self, activity: u16) {
        self.ask(0, activity, to(CONNECT, 0, NOBODY, 80), &[], 2000);
        let now = self.now;
        self.stacks[0].forget(activity, now);
    }
}

/// A closed connection belonged to nobody, and the oldest of all made room: a client that left enough of them cut off what another had said last.
#[test]
fn nobody_cuts_off_the_last_words_of_another() {
    let mut pair = Pair::new(0);
    let (client, server) = connected(&mut pair);
    pair.loss = 100;
    pair.call(0, 3, request(SEND, client), b"last words");
    pair.call(0, 3, request(CLOSE, client), &[]);
    for _ in 0..40 {
        pair.leave_one(5);
        pair.tick();
    }
    pair.loss = 0;
    let receive = Request {
        length: 100,
        until: pair.now + 10_000_000_000,
        ..request(RECEIVE, server)
    };
    let heard = pair.call(1, 7, receive, &[]);
    assert_eq!(heard.data.as_slice(), b"last words");
}

/// The protocols ask for one hardware address a second. A client that sends to addresses which nobody has always asked first.
#[test]
fn nobody_keeps_another_from_his_first_word() {
    let mut pair = Pair::new(0);
    let hostile = pair.call(0, 5, to(BIND, 0, HERE, 0), &[]).reply.value;
    let listening = pair.call(1, 7, to(LISTEN, 0, HERE, 80), &[]).reply.value;
    pair.ask(1, 7, request(ACCEPT, listening), &[], 1);
    let send = |pair: &mut Pair, number: u32| {
        let address = [10, 0, 0, 100 + (number % 100) as u8];
        pair.ask(0, 5, to(SEND_TO, hostile, address, 9), b"?", 3000);
        pair.tick();
        pair.answers[0].retain(|answer| answer.0 != 3000);
    };
    (0..20).for_each(|number| send(&mut pair, number));
    let connect = Request {
        until: pair.now + 5_000_000_000,
        ..to(CONNECT, 0, THERE, 80)
    };
    pair.ask(0, 3, connect, &[], 2);
    let begun = pair.now;
    for number in 0..60_000 {
        send(&mut pair, number);
        if let Some((_, answer)) = pair.answers[0].pop() {
            assert_eq!(status(&answer), None);
            let took = pair.now - begun;
            assert!(took < 10_000_000, "after {took} ns");
            return;
        }
    }
    panic!("no connection");
}

/// Every client has sockets that no other gets, however many come before it.
#[test]
fn nobody_takes_the_sockets_of_another() {
    let mut pair = Pair::new(0);
    let mut taken = 0;
    // Some have channels that the description did not number.
    for hostile in 1..40 {
        loop {
            let bound = pair.call(0, hostile, to(BIND, 0, HERE, 0), &[]);
            if bound.reply.status != 0 {
                break;
            }
            taken += 1;
        }
    }
    // Half of 32 for the sixteen clients that the description numbers, the rest for all.
    assert_eq!(taken, 31);
    let own = pair.call(0, 0, to(BIND, 0, HERE, 0), &[]);
    assert_eq!(status(&own), None);
}

/// The card takes frames of one socket after the other: a socket with much to send takes turns with the others.
#[test]
fn nobody_keeps_the_card_for_himself() {
    let mut pair = Pair::new(0);
    pair.stacks[0].greet(THERE);
    pair.tick();
    pair.tick();
    let sockets: Vec<u64> = (0..6)
        .map(|n| {
            let bound = pair.call(0, 5 + n / 4, to(BIND, 0, HERE, 0), &[]);
            bound.reply.value
        })
        .collect();
    let say = |pair: &mut Pair, n: usize, data: &[u8]| {
        let (whose, now) = (owner(5 + n as u16 / 4), pair.now);
        let asked = to(SEND_TO, sockets[n], THERE, 7);
        pair.stacks[0].request(whose, asked, data, 3000, now);
    };
    // The card sends one frame in each tick, and more than that is said.
    let mut heard = 0;
    for round in 0..200 {
        (0..5).for_each(|n| say(&mut pair, n, b"loud"));
        if round == 20 {
            say(&mut pair, 5, b"quiet");
        }
        pair.now += 100_000;
        let now = pair.now;
        pair.stacks[0].step(now, 4);
        while pair.stacks[0].take().is_some() {}
        let frame = pair.stacks[0].card().left.pop_front().expect("a frame");
        heard += u32::from(frame.windows(5).any(|bytes| bytes == b"quiet"));
    }
    assert_eq!(heard, 1);
}
