//! Threads of control on one message loop: cooperative tasks with fixed memory.
//!
//! Why it exists: an application that serves, waits and asks at the same time reads like three small programs. What it
//! deliberately does not know: priorities and time slices; a thread runs until it waits.
//!
//! Threads are futures in the memory of their starter. They may wait only with the functions of this module: threads are not woken
//! one by one; all are polled again after every event, in their order.

use crate::gate::{Message, ReceiveGate, Result, SendGate, drop_answers};
use crate::repeat::PAUSE;
use crate::time;
use bulkhead_abi::dtu::{DtuError, NO_ENDPOINT};
use core::cell::{Cell, RefCell};
use core::future::{Future, poll_fn};
use core::pin::Pin;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use core::task::{Context, Poll, Waker};

/// The earliest time that a thread waits for.
static EARLIEST: AtomicU64 = AtomicU64::new(u64::MAX);

/// Whether a thread has got what it waited for since the last check.
static PROGRESS: AtomicBool = AtomicBool::new(false);

/// A thread: `core::pin::pin!` of an `async` block.
pub type Thread<'a> = Pin<&'a mut dyn Future<Output = ()>>;

/// Runs threads until the last one has ended.
pub fn run<const N: usize>(threads: [Thread; N]) {
    let mut threads = threads.map(Some);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        EARLIEST.store(u64::MAX, Ordering::Relaxed);
        let mut alive = false;
        let mut moved = false;
        for slot in &mut threads {
            if let Some(thread) = slot {
                match thread.as_mut().poll(&mut context) {
                    Poll::Pending => alive = true,
                    Poll::Ready(()) => {
                        *slot = None;
                        moved = true;
                    }
                }
            }
        }
        if !alive {
            return;
        }
        // A thread that has just ended may have done what another one waits for.
        if !moved && !PROGRESS.swap(false, Ordering::Relaxed) {
            drop_answers();
            let until = EARLIEST.load(Ordering::Relaxed);
            time::wait(NO_ENDPOINT, if until == u64::MAX { 0 } else { until });
        }
    }
}

fn progress<T>(value: T) -> Poll<T> {
    PROGRESS.store(true, Ordering::Relaxed);
    Poll::Ready(value)
}

/// The next message of a gate. Of several threads that wait for one gate, the first gets it.
///
/// # Errors
/// The DTU's error.
pub async fn receive(gate: &ReceiveGate) -> Result<Message> {
    poll_fn(|_| match gate.fetch() {
        Ok(None) => Poll::Pending,
        Ok(Some(message)) => progress(Ok(message)),
        Err(error) => progress(Err(error)),
    })
    .await
}

/// Waits until the clock of [`time::now`] shows `moment` nanoseconds.
pub async fn sleep_until(moment: u64) {
    poll_fn(|_| {
        if time::now() >= moment {
            return progress(());
        }
        EARLIEST.fetch_min(moment, Ordering::Relaxed);
        Poll::Pending
    })
    .await;
}

/// Lets the other threads run.
pub async fn give_way() {
    let mut first = true;
    poll_fn(|_| {
        if core::mem::take(&mut first) {
            PROGRESS.store(true, Ordering::Relaxed);
            Poll::Pending
        } else {
            Poll::Ready(())
        }
    })
    .await;
}

/// Calls of several threads at the same time: each gets its own answer.
///
/// While it exists, [`SendGate::call`] must not be used: it would take the answers of others.
#[derive(Debug, Default)]
pub struct Calls<const N: usize> {
    last: Cell<u64>,
    /// Answers that arrived for threads that have not checked yet.
    answers: RefCell<Answers<N>>,
}

#[derive(Debug)]
struct Answers<const N: usize>([Option<Message>; N]);

impl<const N: usize> Default for Answers<N> {
    fn default() -> Self {
        Self([const { None }; N])
    }
}

impl<const N: usize> Answers<N> {
    /// The answer with this label, if it has arrived.
    fn take(&mut self, label: u64) -> Option<Message> {
        let of = |answer: &Option<Message>| answer.as_ref().is_some_and(|a| a.label() == label);
        if let Some(place) = self.0.iter_mut().find(|answer| of(answer)) {
            return place.take();
        }
        // Takes no more than it has room for: the rest stays in the buffer of the unit.
        while let Some(place) = self.0.iter_mut().find(|answer| answer.is_none()) {
            let answer = crate::gate::fetch_answer()?;
            if answer.label() == label {
                return Some(answer);
            }
            *place = Some(answer);
        }
        None
    }
}

impl<const N: usize> Calls<N> {
    /// Calls of `N` threads.
    pub fn new() -> Self {
        Self::default()
    }

    /// Waits for a slot of the receiver, sends a message and waits for its answer. The message must not cross a page.
    ///
    /// # Errors
    /// As for [`SendGate::send`], except [`DtuError::NoSpace`]; [`DtuError::ReceiverGone`] if the receiver ended before it replied.
    pub async fn call(&self, gate: &SendGate, message: &[u8]) -> Result<Message> {
        let label = self.last.get() + 1;
        self.last.set(label);
        while let Err(error) = gate.send_with_label(message, label) {
            match error {
                DtuError::NoSpace => sleep_until(time::now() + PAUSE).await,
                error => return Err(error),
            }
        }
        let answer = poll_fn(|_| match self.answers.borrow_mut().take(label) {
            Some(answer) => progress(Ok(answer)),
            None => {
                if let Err(error) = gate.check_receiver() {
                    return progress(Err(error));
                }
                // The kernel ends a sleep when the receiver is gone, but this sleep may not have begun by then.
                EARLIEST.fetch_min(time::now() + time::NAP, Ordering::Relaxed);
                Poll::Pending
            }
        });
        answer.await
    }
}
