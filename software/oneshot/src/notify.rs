//! Tasks that messages release: the doorbell's interrupt, and the end of their jobs.
//!
//! Why it exists: a described channel with `notify` releases its reader by an interrupt, and ringing cores must not take more of this core
//! than was planned. What it deliberately does not know: the ringing cores, and the order of accesses (it is in `exec`).
//!
//! Images without such a channel do not contain this module (feature `notify`). The description fixes two limits: rings in a tick, after which
//! the doorbell is masked until the next tick; and the distance between the releases of each task, its period. Nothing is lost while the
//! doorbell is masked: it stays raised, and the ports are checked afterwards.
//!
//! Rings in a tick and the tasks' numbers are filled into the finished image, where the symbol `bulkhead_told` is, so cores that differ in them alone share a
//! build.

use crate::arch::{self, Core};
use crate::kernel;
use crate::port::RawPort;
use crate::sync::TimingEvent;
use crate::time;
use bulkhead_abi::one_shot::{marker, table, told};
use bulkhead_exec_one_shot::Task;
use bulkhead_exec_one_shot::notice::{Rings, Told};
use bulkhead_hal::marker::custom;

/// A task of the image that messages release.
#[repr(C)]
pub struct Reader {
    task: Task,
    state: Core<Told>,
}

impl core::fmt::Debug for Reader {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Reader({})", self.task)
    }
}

impl Reader {
    /// No task yet: the number is filled into the image.
    #[doc(hidden)]
    pub const fn nobody() -> Self {
        Self {
            task: told::NOBODY,
            state: Core::new(Told::new()),
        }
    }

    /// Checks the port, if the task waits for it. Interrupts are masked.
    fn look(&self, step: impl FnOnce(&mut Told, u64, u64, bool) -> Option<u64>) {
        let period = period_of(self.task);
        let has_news = told_by(self.task).is_some_and(|port| {
            // It was never initialised, or it was overwritten: there is nothing to read.
            RawPort::get(arch::core_number(), port)
                .is_ok_and(|port| port.is_some_and(|port| port.has_news() == Ok(true)))
        });
        let at = self
            .state
            .masked(|state| step(state, time::now(), period, has_news));
        if let Some(at) = at {
            kernel::tell(self.task, at);
        }
    }
}

/// What the image says, where others fill it in: see [`crate::told!`].
#[doc(hidden)]
#[repr(C)]
pub struct Filled {
    rings: u32,
    readers: &'static [Reader],
}

/// `FILLED`: room for this many tasks that messages release, where whoever fills in their numbers looks for it.
#[doc(hidden)]
#[macro_export]
macro_rules! told {
    ($readers:literal) => {
        static TOLD: [$crate::notify::Reader; $readers] =
            [const { $crate::notify::Reader::nobody() }; $readers];
        static FILLED: $crate::notify::Filled = $crate::notify::Filled::new(&TOLD);
        ::core::arch::global_asm!(
            ".globl bulkhead_told",
            ".set bulkhead_told, {filled}",
            filled = sym FILLED,
        );
    };
}

const _: () = {
    use core::mem::offset_of;
    assert!(size_of::<Filled>() as u64 == told::SIZE);
    assert!(offset_of!(Filled, rings) as u64 == told::RINGS);
    assert!(offset_of!(Filled, readers) as u64 == told::READERS);
    assert!(size_of::<Reader>() as u64 == told::READER && offset_of!(Reader, task) == 0);
};

impl Filled {
    /// These readers. Rings are filled into the image.
    pub const fn new(readers: &'static [Reader]) -> Self {
        Self { rings: 1, readers }
    }
}

impl core::fmt::Debug for Filled {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Filled({}, {:?})", self.rings, self.readers)
    }
}

/// The same for the kernel. In images without such tasks nobody sets it, so the compiler leaves out all that uses it.
struct Plan {
    readers: &'static [Reader],
    rings: u32,
}

static PLAN: Core<Plan> = Core::new(Plan {
    readers: &[],
    rings: 0,
});
static RINGS: Core<Rings> = Core::new(Rings::new());
static UNMASK: TimingEvent = TimingEvent::new(unmask);

/// Sets the tasks of the image that messages release, and the rings of its doorbell that the core accepts in a tick: those of [`crate::told!`]. Must come before
/// the first job.
pub fn begin(filled: &'static Filled) {
    // The compiler must not look at what is there: it is filled in later.
    let filled = core::hint::black_box(filled);
    let (readers, rings) = (filled.readers, filled.rings);
    PLAN.with(|plan| *plan = Plan { readers, rings });
}

fn readers() -> &'static [Reader] {
    PLAN.with(|plan| plan.readers)
}

fn limit() -> u32 {
    PLAN.with(|plan| plan.rings)
}

/// A word of a task.
fn word(task: Task, word: usize) -> u64 {
    arch::table_word(usize::from(task) * table::TASK_WORDS + word)
}

/// The period of a task in ticks.
pub(crate) fn period_of(task: Task) -> u64 {
    u64::from(word(task, table::PERIOD) as u32)
}

/// Index of the port whose messages release a task.
fn told_by(task: Task) -> Option<usize> {
    let number = (word(task, table::PERIOD) >> table::TOLD_SHIFT).checked_sub(1)?;
    let at = word(task, table::PORTS) + number * table::PORT_WORDS as u64;
    Some(arch::table_word(at as usize + table::NAME) as u16 as usize)
}

/// The running job ends, and its task waits for a message. False: time releases the task.
pub(crate) fn wait() -> bool {
    let task = kernel::running();
    let mut readers = readers().iter();
    let reader = readers.find(|reader| reader.task == task);
    if let Some(reader) = reader {
        arch::masked(|| reader.look(Told::wait));
    }
    reader.is_some()
}

/// The doorbell's interrupt: for [`crate::Configuration::on_software_interrupt`].
pub fn rung() {
    // First, so that any ring from now on interrupts again.
    arch::lower_doorbell();
    for reader in readers() {
        if reader.state.masked(|state| state.waits()) {
            reader.look(Told::hear);
        }
    }
    let now = time::now();
    if RINGS.masked(|rings| rings.hear(now, limit())) {
        arch::hear_doorbell(false);
        UNMASK.put(now + 1);
    }
}

/// The next tick. If the doorbell is raised already, it was rung more often than the description says.
fn unmask() {
    if arch::is_doorbell_raised() {
        custom::<{ marker::RINGS }>(limit().into());
    }
    arch::hear_doorbell(true);
}
