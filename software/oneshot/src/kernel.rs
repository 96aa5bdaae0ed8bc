//! The kernel of a core: starts jobs, counts ticks, and reports failures.
//!
//! Why it exists: joins the policy with the hart. What it deliberately does not know: registers (they are in `arch`).

#[path = "kernel/arch.rs"]
mod entry;

use crate::arch::{self, Core};
use crate::configuration::{Configuration, Descriptor};
use crate::console;
use crate::task::{Done, Job, Start};
use bulkhead_abi::one_shot::marker;
use bulkhead_exec_one_shot::Task;
use bulkhead_exec_one_shot::events::Events;
use bulkhead_exec_one_shot::tasks::Tasks;
use bulkhead_exec_one_shot::watch::Watch;
use bulkhead_hal::{csr, marker::custom};
#[cfg(feature = "c")]
use core::ffi::c_void;

/// Nobody runs.
const NOBODY: Task = Task::MAX;

struct Kernel {
    tasks: Tasks<'static>,
    watch: Watch,
    /// When the timer interrupts next.
    timer: u64,
    running: Task,
    in_interrupt: bool,
    /// Timing events due at a tick; none as long as no event was ever set.
    due: Option<fn(u64)>,
}

static KERNEL: Core<Kernel> = Core::new(Kernel {
    tasks: Tasks::none(),
    watch: Watch::new(),
    timer: 0,
    running: NOBODY,
    in_interrupt: false,
    due: None,
});

static EVENTS: Core<Events<'static, Action>> = Core::new(Events::new());

/// The action of a timing event.
#[derive(Clone, Copy)]
pub(crate) enum Action {
    Rust(fn()),
    #[cfg(feature = "c")]
    C(extern "C" fn()),
    /// Gets the address of its [`crate::sync::TimingEvent`].
    #[cfg(feature = "c")]
    OfEvent(extern "C" fn(*const c_void)),
}

/// The first Rust code of a core.
extern "C" fn start() -> ! {
    arch::prepare();
    let system = arch::system();
    let tick = csr::time() / system.timer;
    let timer = (tick + 1).saturating_mul(system.timer);
    KERNEL.with(|kernel| {
        kernel.tasks = Tasks::new(system.table, tick);
        kernel.timer = timer;
    });
    arch::set_timer(timer);
    arch::allow_interrupts(system.software.is_some(), system.external.is_some());
    call(system.first);
    dispatch()
}

/// Ticks are those of another clock from now on: what it shows is this much more than the core's timer, modulo 2^64. Before the first job only.
#[cfg(feature = "clocks")]
pub(crate) fn follow_clock(correction: u64) {
    let system = arch::system();
    let tick = csr::time().wrapping_add(correction) / system.timer;
    // The timer's own count at the next tick.
    let timer = (tick + 1)
        .wrapping_mul(system.timer)
        .wrapping_sub(correction);
    KERNEL.with(|kernel| {
        kernel.tasks = Tasks::new(system.table, tick);
        kernel.timer = timer;
    });
    arch::set_timer(timer);
}

/// What the clock shows that ticks follow, in counts.
#[cfg(feature = "clocks")]
pub(crate) fn clock() -> u64 {
    let tick = arch::system().timer;
    arch::masked(|| {
        // The timer's own count at the next tick, and what the clock shows then.
        let (next, shows) = KERNEL.masked(|kernel| (kernel.timer, kernel.tasks.now() + 1));
        shows
            .wrapping_mul(tick)
            .wrapping_sub(next)
            .wrapping_add(csr::time())
    })
}

/// Runs jobs, for ever. Called on an empty stack.
extern "C" fn dispatch() -> ! {
    let system = arch::system();
    loop {
        arch::mask();
        let next = KERNEL.masked(|kernel| {
            let task = kernel.tasks.take();
            kernel.running = task.unwrap_or(NOBODY);
            let descriptor = system.tasks.get(usize::from(kernel.running))?;
            if descriptor.budget != 0 {
                kernel.watch.begin(csr::cycle(), descriptor.budget.into());
            }
            Some((kernel.running, descriptor))
        });
        let Some((task, descriptor)) = next else {
            idle(system);
            continue;
        };
        arch::unmask();
        custom::<{ marker::BEGIN }>(task.into());
        let _ = (descriptor.run)(Start::new());
        ended(task, descriptor);
    }
}

/// A job is over.
#[inline(always)]
fn ended(task: Task, descriptor: &Descriptor) {
    custom::<{ marker::END }>(task.into());
    if descriptor.budget != 0 {
        arch::masked(|| look_at_budget(Watch::end, 0));
    }
}

/// Ends the job that runs, for languages in which a job does not return: `end` says what its task waits for, and the stack is empty then. Whatever was
/// on it, and would have been done when the functions there return, is given up.
pub fn leave(end: impl FnOnce(Job) -> Done) -> ! {
    let _ = end(Start::new().job());
    let task = running();
    if let Some(descriptor) = arch::system().tasks.get(usize::from(task)) {
        ended(task, descriptor);
    }
    arch::restart()
}

/// No task is ready; interrupts are masked.
#[inline(always)]
fn idle(system: &'static Configuration) {
    if let Some(idle) = system.idle {
        arch::unmask();
        idle();
        arch::mask();
    }
    if KERNEL.masked(|kernel| kernel.tasks.is_idle()) {
        // An interrupt ends the wait although it is masked.
        csr::wait_for_interrupt();
    }
    arch::unmask();
}

/// Tells, once, if the running job has had more than its budget, and the place that it has reached; 0: it has ended. Interrupts are masked.
fn look_at_budget(look: fn(&mut Watch, u64) -> bool, place: u64) {
    let task = KERNEL.masked(|kernel| {
        let over = look(&mut kernel.watch, csr::cycle());
        over.then_some(kernel.running)
    });
    if let Some(task) = task {
        overrun(task, place);
    }
}

/// A function of its own, whose room on the stack no job needs.
#[cold]
#[inline(never)]
fn overrun(task: Task, place: u64) {
    custom::<{ marker::OVERRUN }>(u64::from(task) | place << 8);
    let (mut number, mut digits) = ([0; 20], [0; 16]);
    let number = console::decimal(task.into(), &mut number);
    let (at, place): (&[u8], &[u8]) = match place {
        0 => (b"", b""),
        place => (b" at 0x", hexadecimal(place, &mut digits)),
    };
    console::pieces(&[b"over its budget: task ", number, at, place]);
}

/// An interrupt. Interrupts are masked.
extern "C" fn interrupt(cause: u64) {
    let system = arch::system();
    const SOFTWARE: u8 = 3;
    const TIMER: u8 = 7;
    KERNEL.masked(|kernel| kernel.in_interrupt = true);
    match cause as u8 {
        TIMER => tick(system),
        SOFTWARE => call(system.software),
        _ => call(system.external),
    }
    KERNEL.masked(|kernel| kernel.in_interrupt = false);
}

fn call(handler: Option<fn()>) {
    if let Some(handler) = handler {
        handler();
    }
}

fn tick(system: &'static Configuration) {
    let (now, due) = KERNEL.masked(|kernel| {
        // Ticks that were masked for too long follow at once, each with an interrupt of its own.
        kernel.timer = kernel.timer.saturating_add(system.timer);
        arch::set_timer(kernel.timer);
        let released = kernel.tasks.tick();
        if released != 0 {
            custom::<{ marker::RELEASE }>(released);
        }
        (kernel.tasks.now(), kernel.due)
    });
    look_at_budget(Watch::overruns, csr::mepc());
    if let Some(due) = due {
        due(now);
    }
}

/// Ticks so far.
#[inline]
pub(crate) fn now() -> u64 {
    KERNEL.with(|kernel| kernel.tasks.now())
}

/// The task whose job runs.
#[inline]
pub(crate) fn running() -> Task {
    KERNEL.with(|kernel| kernel.running)
}

/// Makes a task ready because of what it waits for, and not because of a tick.
#[inline]
pub(crate) fn release(task: Task) {
    custom::<{ marker::EVENT }>(1 << (task % 64));
    KERNEL.with(|kernel| kernel.tasks.release(task));
}

/// Makes a task ready at a tick because of an event: now if the tick has come.
pub(crate) fn delay(task: Task, until: u64) {
    KERNEL.with(|kernel| delay_in::<{ marker::EVENT }>(kernel, task, until));
}

/// The same for the running task.
#[inline]
pub(crate) fn delay_running(until: u64) {
    KERNEL.with(|kernel| delay_in::<{ marker::RELEASE }>(kernel, kernel.running, until));
}

/// Makes a task ready at a tick because of a message: its response begins now if the tick has come. Interrupts are masked.
#[cfg(feature = "notify")]
pub(crate) fn tell(task: Task, at: u64) {
    KERNEL.masked(|kernel| {
        if at <= kernel.tasks.now() {
            custom::<{ marker::TOLD }>(task.into());
        }
        kernel.tasks.delay(task, at);
    });
}

#[inline]
fn delay_in<const KIND: u16>(kernel: &mut Kernel, task: Task, until: u64) {
    if until <= kernel.tasks.now() {
        custom::<KIND>(1 << (task % 64));
    }
    kernel.tasks.delay(task, until);
}

/// Changes the queue of timing events.
pub(crate) fn events<R>(change: impl FnOnce(&mut Events<'static, Action>) -> R) -> R {
    fn due(now: u64) {
        let next = || EVENTS.with(|events| events.due(now));
        let Some(mut event) = next() else {
            return;
        };
        custom::<{ marker::HANDLES }>(now);
        let begin = csr::cycle();
        loop {
            match event.action {
                Action::Rust(action) => action(),
                #[cfg(feature = "c")]
                Action::C(action) => action(),
                #[cfg(feature = "c")]
                Action::OfEvent(action) => action(core::ptr::from_ref(event).cast()),
            }
            match next() {
                Some(another) => event = another,
                None => break,
            }
        }
        // The job that they interrupt does not pay for them.
        let taken = csr::cycle().wrapping_sub(begin);
        custom::<{ marker::HANDLED }>(now);
        KERNEL.masked(|kernel| kernel.watch.leave_out(taken));
    }
    KERNEL.with(|kernel| kernel.due = Some(due));
    EVENTS.with(change)
}

/// A trap that no interrupt caused.
extern "C" fn fault(cause: u64, at: u64, value: u64) -> ! {
    let (mut number, mut place, mut detail) = ([0; 20], [0; 16], [0; 16]);
    let detail = [
        b", cause ",
        console::decimal(cause, &mut number),
        b" at 0x",
        hexadecimal(at, &mut place),
        b", value 0x",
        hexadecimal(value, &mut detail),
    ];
    fail(detail)
}

#[panic_handler]
fn panic(info: &core::panic::PanicInfo) -> ! {
    let (file, line) = info.location().map_or(("", 0), |at| (at.file(), at.line()));
    let mut number = [0; 20];
    let line = console::decimal(line.into(), &mut number);
    fail([b", panic at ", file.as_bytes(), b":", line, b"", b""])
}

/// A protected operation calls its own object, at this address: the same as a trap with a cause of its own.
pub fn nested(at: u64, object: u64) -> ! {
    fault(bulkhead_abi::one_shot::NESTED, at, object)
}

/// A timing event is set to a span after the last time, at this address: the same.
pub fn after_last(at: u64, event: u64) -> ! {
    fault(bulkhead_abi::one_shot::AFTER_LAST, at, event)
}

/// The task whose job runs stops for ever; the reason goes to the console.
pub fn stop(reason: &str) -> ! {
    fail([b", ", reason.as_bytes(), b"", b"", b"", b""])
}

/// The same, with the line of a source.
pub fn stop_at(reason: &str, file: &[u8], line: u64) -> ! {
    let mut number = [0; 20];
    let line = console::decimal(line, &mut number);
    fail([b", ", reason.as_bytes(), b" at ", file, b":", line])
}

/// The same, with a text behind the reason.
pub fn stop_with(reason: &str, text: &[u8]) -> ! {
    fail([b", ", reason.as_bytes(), text, b"", b"", b""])
}

/// Something went wrong: the task whose job runs stops for ever, and the others go on; if it was a handler or the kernel, the core stops.
/// A job that stops leaves nothing behind on the stack. A function of its own: the build looks for it to know whom it calls.
#[inline(never)]
fn fail(detail: [&[u8]; 6]) -> ! {
    arch::mask();
    let (task, in_interrupt) = KERNEL.masked(|kernel| {
        kernel.tasks.stop(kernel.running);
        kernel.watch = Watch::new();
        (kernel.running, kernel.in_interrupt)
    });
    custom::<{ marker::STOPPED }>(task.into());
    let mut number = [0; 20];
    let whole = in_interrupt || task == NOBODY;
    let (who, number): (&[u8], &[u8]) = match whole {
        true => (b"stopped: core", b""),
        false => (
            b"stopped: task ",
            console::decimal(task.into(), &mut number),
        ),
    };
    let [a, b, c, d, e, f] = detail;
    console::pieces(&[who, number, a, b, c, d, e, f]);
    if whole {
        call(arch::system().idle);
        arch::halt();
    }
    call(arch::system().gone);
    arch::restart()
}

fn hexadecimal(number: u64, digits: &mut [u8; 16]) -> &[u8] {
    for (place, digit) in digits.iter_mut().rev().enumerate() {
        let nibble = (number >> (4 * place)) as u8 & 15;
        *digit = nibble + if nibble < 10 { b'0' } else { b'a' - 10 };
    }
    digits
}

/// Ends the run of the whole machine, where the tile has a device for that. What is done when nobody is ready is done once more before.
pub fn exit(code: u16) -> ! {
    if let Some(idle) = arch::system().idle {
        idle();
    }
    arch::mask();
    bulkhead_hal::device::exit(code)
}
