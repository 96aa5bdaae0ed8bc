//! A request is checked before it changes anything: after a refusal nothing has changed.
//!
//! Every request of a random story is first tried without memory for buffers. A refused request may wait nowhere, take no place, port
//! or number, and leaves every socket unchanged.

use super::*;
use crate::tests::{HERE, Wire, cases, options, request};
use crate::tests_fuzz::{Step, owner, step};
use alloc::format;
use alloc::string::String;
use proptest::prelude::*;

/// The whole state except the card's, and the answers.
fn digest(stack: &Stack<Wire, u32>) -> String {
    let waiting = stack.waiting.iter();
    let waiting: Vec<_> = waiting
        .map(|w| (w.owner, w.request, &w.data[..], w.item))
        .collect();
    let sockets: Vec<_> = stack
        .sockets
        .iter()
        .map(|(handle, s)| format!("{handle:?} {s:?}"))
        .collect();
    let mut shares = stack.shares.clone();
    shares.sort();
    let tables = (
        &stack.entries,
        shares,
        stack.generation,
        waiting,
        stack.next_port,
        &stack.backlog,
    );
    format!(
        "{tables:?} {sockets:?} {:?} {:?}",
        stack.counts, stack.accounts
    )
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn what_is_refused_changes_nothing(steps in prop::collection::vec(step(), 1..60), most in 1usize..6) {
        let options = Options { sockets: most, buffer: 512, ..options(HERE) };
        let mut stack = Stack::new(Wire::default(), options, 0);
        let (mut now, mut handles) = (1_000_000, Vec::new());
        for (item, step) in steps.into_iter().enumerate() {
            match step {
                Step::Ask(activity, operation, socket, port, length, bytes) => {
                    let socket = handles.get(socket).copied().unwrap_or(socket as u64 * 0x101);
                    let until = if port % 2 == 0 { 0 } else { now + 1_000_000 };
                    // An unused address and port are among them.
                    let address = [[10, 0, 0, 2], [0; 4]][usize::from(length % 5 == 0)];
                    let asked = Request { port, length, until, address, ..request(operation, socket) };
                    let data = alloc::vec![7; bytes];
                    for buffer in [usize::MAX >> 1, 512] {
                        let before = digest(&stack);
                        stack.options.buffer = buffer;
                        stack.request(owner(activity), asked, &data, item as u32, now);
                        stack.options.buffer = 512;
                        let Some((_, answer)) = stack.take() else { break };
                        if answer.reply.status != 0 {
                            let after = digest(&stack);
                            prop_assert!(before == after, "{asked:?}: {:?}\n{before}\n{after}", answer.reply);
                            continue;
                        }
                        if matches!(operation, BIND | LISTEN) {
                            handles.push(answer.reply.value);
                        }
                        break;
                    }
                }
                Step::Forget(activity) => stack.forget(activity, now),
                Step::Wait(time) => now += time,
            }
            stack.step(now, 3);
            stack.card().left.clear();
            while stack.take().is_some() {}
        }
    }
}
