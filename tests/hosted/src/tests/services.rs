//! A request that the timer or the console refuses changes nothing: later requests are answered as if nobody had made it.
//!
//! Their state is private, so the test compares everything that depends on it. It runs the same story twice, the second time without the
//! requests that were refused. Every other answer must be the same, at the same time and in the same order, and so must every line.

use crate::kernel;
use crate::server::{Answer, Client, Step, answers};
use bulkhead_common::console::Write;
use bulkhead_common::message::{Buffer, Request};
use bulkhead_common::status::Status;
use bulkhead_common::timer::{Next, Sleep, Start};
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;

fn message(request: &impl Request) -> Vec<u8> {
    Buffer::new().request(request).to_vec()
}

/// A sender: two gates, two clients at each, and two activities that share each client. They are few, so that they meet often.
fn who() -> impl Strategy<Value = (Client, u16)> {
    (0usize..2, 0u64..2, 1u16..3)
        .prop_map(|(priority, label, activity)| (Client { priority, label }, activity))
}

/// A request that is whole, cut off, or of no operation.
fn damaged(whole: impl Strategy<Value = Vec<u8>>) -> impl Strategy<Value = Vec<u8>> {
    let noise = prop::collection::vec(any::<u8>(), 0..24);
    prop_oneof![
        8 => whole.prop_map(|bytes| (bytes, usize::MAX)),
        1 => (noise, Just(usize::MAX)),
        1 => (0u64..6, any::<u64>()).prop_map(|(operation, word)| {
            ([operation.to_le_bytes(), word.to_le_bytes()].concat(), 15)
        }),
    ]
    .prop_map(|(mut bytes, length)| {
        bytes.truncate(length);
        bytes
    })
}

fn step(requests: impl Strategy<Value = Vec<u8>>) -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (who(), damaged(requests)).prop_map(|((client, activity), bytes)| Step::Ask(client, activity, bytes)),
        1 => (0usize..40).prop_map(Step::Gone),
        // Some waits are long enough for the service to look at the requests that wait.
        4 => prop_oneof![4 => 0u64..2_000, 1 => 0u64..30_000_000].prop_map(Step::Wait),
    ]
}

fn timer_step() -> impl Strategy<Value = Step> {
    let moment = || prop_oneof![6 => 0u64..6_000, 1 => 0u64..40_000_000, 1 => any::<u64>()];
    let period = prop_oneof![3 => Just(0u64), 6 => 1u64..3_000, 1 => any::<u64>()];
    step(prop_oneof![
        4 => moment().prop_map(|moment| message(&Sleep { moment })),
        3 => (moment(), period).prop_map(|(first, period)| message(&Start { first, period })),
        4 => Just(message(&Next {})),
    ])
}

fn console_step() -> impl Strategy<Value = Step> {
    let length = prop_oneof![6 => 0u64..8, 1 => 230u64..260, 1 => any::<u64>()];
    let text = prop::collection::vec(prop_oneof![8 => 97u8..123, 1 => any::<u8>()], 0..8);
    step((length, text).prop_map(|(length, text)| {
        let mut write = Write::new("");
        write.text[..text.len()].copy_from_slice(&text);
        message(&Write { length, ..write })
    }))
}

/// What an answer says: 0, or why the request failed.
fn word(answer: &Answer) -> u64 {
    let bytes = answer.2.first_chunk().expect("a word");
    u64::from_le_bytes(*bytes)
}

/// Whether the service refused a request. It drops a request whose sender was gone, which is no refusal.
fn is_refused(answer: &Answer) -> bool {
    word(answer) != 0 && word(answer) != Status::Closed.code()
}

/// Runs a story. Returns the answers, and what was printed.
fn told(program: fn() -> u64, steps: &[Option<Step>]) -> (Vec<Answer>, Vec<String>) {
    kernel::reset(None);
    let answers = answers(program, steps.to_vec());
    (answers, kernel::with(|kernel| kernel.lines.clone()))
}

/// Returns how many requests were refused.
fn story(program: fn() -> u64, steps: Vec<Step>) -> Result<usize, TestCaseError> {
    let mut steps: Vec<Option<Step>> = steps.into_iter().map(Some).collect();
    let (all, lines) = told(program, &steps);
    let mut numbers: Vec<usize> = all.iter().map(|answer| answer.1).collect();
    numbers.sort_unstable();
    // At its end the service drops the requests that it still keeps, so every request is answered once.
    let asked = steps
        .iter()
        .enumerate()
        .filter(|(_, step)| matches!(step, Some(Step::Ask(..))));
    let asked: Vec<usize> = asked.map(|(number, _)| number).collect();
    prop_assert_eq!(numbers, asked);
    let (refused, kept): (Vec<Answer>, Vec<Answer>) = all.into_iter().partition(is_refused);
    for (_, number, _) in &refused {
        steps[*number] = None;
    }
    prop_assert_eq!(told(program, &steps), (kept, lines));
    Ok(refused.len())
}

fn timer(steps: Vec<Step>) -> TestCaseResult {
    story(crate::timer::program, steps).map(drop)
}

proptest! {
    #[test]
    fn what_the_timer_refuses_changes_nothing(steps in prop::collection::vec(timer_step(), 1..60)) {
        timer(steps)?;
    }

    #[test]
    fn what_the_console_refuses_changes_nothing(steps in prop::collection::vec(console_step(), 1..60)) {
        story(crate::console::program, steps)?;
    }
}

#[test]
fn guided_timer() {
    bulkhead_fuzz::target("timer", |bytes| timer(bytes.story(&timer_step(), 60)));
}

/// Each kind of refusal of the timer, and the answers of the rest.
#[test]
fn the_timer_refuses_and_goes_on() {
    let client = |label| Client { priority: 0, label };
    let ask = |label, activity, request: Vec<u8>| Step::Ask(client(label), activity, request);
    let mut steps = vec![
        ask(
            0,
            1,
            message(&Start {
                first: 2_000,
                period: 500,
            }),
        ),
        // A period of 0 does not stop the timer that runs.
        ask(
            0,
            1,
            message(&Start {
                first: 9_000,
                period: 0,
            }),
        ),
        // Another activity of the same client has no timer, and another client none.
        ask(0, 2, message(&Next {})),
        ask(1, 1, message(&Next {})),
        ask(1, 1, vec![1]),
        ask(0, 1, message(&Next {})),
    ];
    // With the timer, which has one slot, this is one request more than the gates have slots.
    steps.extend((0..6).map(|_| ask(2, 3, message(&Sleep { moment: 5_000 }))));
    steps.push(Step::Wait(1_500));
    let refused = story(crate::timer::program, steps.clone()).expect("the same");
    assert_eq!(refused, 5);
    let steps: Vec<Option<Step>> = steps.into_iter().map(Some).collect();
    let (all, _) = told(crate::timer::program, &steps);
    let of = |number: usize| {
        let answer = all
            .iter()
            .find(|answer| answer.1 == number)
            .expect("answered");
        (answer.0, Status::from_code(word(answer)))
    };
    assert_eq!(of(1), (1_000, Some(Status::BadRequest)));
    assert_eq!(of(2), (1_000, Some(Status::NotFound)));
    assert_eq!(of(3), (1_000, Some(Status::NotFound)));
    assert_eq!(of(4), (1_000, Some(Status::UnknownOperation)));
    assert_eq!(of(5), (2_000, None));
    assert_eq!(of(11), (1_000, Some(Status::TooMany)));
}
