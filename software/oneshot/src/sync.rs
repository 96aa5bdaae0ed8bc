//! What tasks wait for: ticks, suspension objects, events, protected objects; and timing events.
//!
//! Why it exists: the policy's objects, where tasks and handlers of interrupts can reach them. What it deliberately does not know: decisions.
//!
//! All of the objects are `static`. An operation masks interrupts for its length, so handlers may use them, too.

use crate::arch::{Core, Lent};
use crate::kernel::{self, Action};
use crate::task::{Done, Job};
use bulkhead_exec_one_shot::arrivals::{Arrival, Arrivals, Awaiting};
use bulkhead_exec_one_shot::events;
use bulkhead_exec_one_shot::protected::{self, Called};
use bulkhead_exec_one_shot::suspension::{Suspension, Waiting};
#[cfg(feature = "c")]
use core::ffi::c_void;

pub use bulkhead_exec_one_shot::protected::Entry;
#[cfg(feature = "c")]
pub use bulkhead_exec_one_shot::protected::Gate;

impl Job {
    /// The task is ready again at a tick, or at once if that has come; more urgent ones go first.
    #[inline]
    pub fn delay_until(self, tick: u64) -> Done {
        kernel::delay_running(tick);
        self.done()
    }
}

/// A condition that one task waits for.
pub struct SuspensionObject(Core<Suspension>);

impl Default for SuspensionObject {
    fn default() -> Self {
        Self::new()
    }
}

impl SuspensionObject {
    /// False.
    pub const fn new() -> Self {
        Self(Core::new(Suspension::new()))
    }

    /// Releases the task that waits, or lets the next one continue.
    #[inline]
    pub fn set_true(&self) {
        self.0.with(|object| {
            if let Some(task) = object.set_true() {
                kernel::release(task);
            }
        });
    }

    /// Takes that back.
    pub fn set_false(&self) {
        self.0.with(Suspension::set_false);
    }

    /// Whether it is true.
    pub fn is_true(&self) -> bool {
        self.0.with(|object| object.is_true())
    }

    /// The task waits until it is true.
    ///
    /// # Errors
    /// Another task waits here already; the job continues.
    #[inline]
    pub fn wait(&self, job: Job) -> Result<Done, Job> {
        let waiting = self.0.with(|object| {
            let task = kernel::running();
            let waiting = object.wait(task);
            if waiting == Waiting::Goes {
                kernel::release(task);
            }
            waiting
        });
        match waiting {
            Waiting::Taken => Err(job),
            _ => Ok(job.done()),
        }
    }
}

/// Events that release the jobs of one task.
pub struct Events(Core<Arrivals>);

impl Events {
    /// Each event releases a job at once.
    pub const fn aperiodic() -> Self {
        Self::sporadic(0)
    }

    /// Jobs are released at least this many ticks apart, however fast events come.
    pub const fn sporadic(minimum: u64) -> Self {
        Self(Core::new(Arrivals::new(minimum)))
    }

    /// An event. False: it is lost, because one is waiting already.
    pub fn arrive(&self) -> bool {
        self.0.with(|events| {
            let arrival = events.arrive(kernel::now());
            if let Arrival::Releases(task, at) = arrival {
                kernel::delay(task, at);
            }
            arrival != Arrival::Lost
        })
    }

    /// The task waits for the next event.
    ///
    /// # Errors
    /// Another task waits here already; the job continues.
    pub fn wait(&self, job: Job) -> Result<Done, Job> {
        let awaiting = self.0.with(|events| {
            let task = kernel::running();
            let awaiting = events.wait(task, kernel::now());
            if let Awaiting::Until(at) = awaiting {
                kernel::delay(task, at);
            }
            awaiting
        });
        match awaiting {
            Awaiting::Taken => Err(job),
            _ => Ok(job.done()),
        }
    }
}

/// Data that tasks and handlers share, with entries whose parameter has the type `P` (`()`: none).
pub struct Protected<T, P, const E: usize>(Lent<protected::Protected<T, P, E>>);

impl<T, P: Copy, const E: usize> Protected<T, P, E> {
    /// With data, and entries in the order in which they are served.
    pub const fn new(data: T, entries: [Entry<T, P>; E]) -> Self {
        Self(Lent::new(protected::Protected::new(data, entries)))
    }

    /// Changes the data with interrupts masked, and serves the tasks that wait at open entries. `None`: the object is in use, because an
    /// action or barrier of its own called it, or stopped in the middle.
    #[inline]
    pub fn update<R>(&self, action: impl FnOnce(&mut T) -> R) -> Option<R> {
        self.0.with(|object| object.update(action, kernel::release))
    }

    /// The task calls an entry: it is ready again once its call is done.
    ///
    /// # Errors
    /// Another task waits at this entry, there is no such entry, or the object is in use; the job continues.
    #[inline]
    pub fn call(&self, entry: usize, parameter: P, job: Job) -> Result<Done, Job> {
        let called = self.0.with(|object| {
            let task = kernel::running();
            let called = object.call(task, entry, parameter, kernel::release);
            if called == Called::Done {
                kernel::release(task);
            }
            called
        });
        match called {
            Some(Called::Done | Called::Waits) => Ok(job.done()),
            Some(Called::Refused) | None => Err(job),
        }
    }
}

/// A call of an entry whose object is in memory of another language. Interrupts are masked, and nobody else uses the object.
///
/// # Errors
/// As of [`Protected::call`].
#[cfg(feature = "c")]
pub fn call<T, P>(
    data: &mut T,
    entries: &mut [impl protected::Gate<T, P>],
    entry: usize,
    parameter: P,
    job: Job,
) -> Result<Done, Job> {
    let task = kernel::running();
    match protected::call(data, entries, task, entry, parameter, kernel::release) {
        Called::Done => kernel::release(task),
        Called::Waits => {}
        Called::Refused => return Err(job),
    }
    Ok(job.done())
}

/// Serves the tasks that wait at such an object's open entries, after a change of its data. Interrupts are masked, and nobody else uses the
/// object.
#[cfg(feature = "c")]
pub fn serve<T, P>(data: &mut T, entries: &mut [impl protected::Gate<T, P>]) {
    protected::serve(data, entries, kernel::release);
}

/// An action that the timer's interrupt performs at a tick, without a task. Its handler runs under the rules of
/// [`crate::Configuration::on_software_interrupt`].
#[repr(transparent)]
pub struct TimingEvent(pub(crate) Core<events::Event<'static, Action>>);

impl TimingEvent {
    /// Not set.
    pub const fn new(handler: fn()) -> Self {
        Self(Core::new(events::Event::new(Action::Rust(handler))))
    }

    /// The same with a handler in C.
    #[cfg(feature = "c")]
    pub const fn in_c(handler: extern "C" fn()) -> Self {
        Self(Core::new(events::Event::new(Action::C(handler))))
    }

    /// The same with a handler of many events: it gets the address of the one that happens.
    #[cfg(feature = "c")]
    pub const fn of_many(handler: extern "C" fn(*const c_void)) -> Self {
        Self(Core::new(events::Event::new(Action::OfEvent(handler))))
    }

    /// Sets it for a tick; if that has come, for the next one. Replaces a former tick. A function of its own: the build looks for it to know which images set events, whose
    /// handlers bounds must count.
    #[inline(never)]
    pub fn set(&'static self, tick: u64) {
        self.put(tick);
    }

    /// The same for the kernel's own events, which are in the bounds anyway.
    #[inline]
    pub(crate) fn put(&'static self, tick: u64) {
        // Not this tick: a handler that sets its own event would never end.
        let tick = tick.max(kernel::now() + 1);
        kernel::events(|queue| queue.set(self.0.shared(), tick));
    }

    /// Takes it back. Returns whether it was set.
    pub fn cancel(&'static self) -> bool {
        kernel::events(|queue| queue.cancel(self.0.shared()))
    }
}
