//! Tasks that messages release: the doorbell's interrupt, and the end of their jobs.
//!
//! Why it exists: a described channel with `notify` releases its reader by an interrupt, and whoever rings must not take more of this core than was
//! planned. What it deliberately does not know: who rings, and the order of accesses (it is in `exec`).
//!
//! Images without such a channel do not contain this module (feature `notify`). Two limits are fixed by the build: rings in a tick, after which the
//! doorbell is masked until the next tick; and the distance of the releases of each task, its period. Nothing is lost while the doorbell is masked: it
//! stays raised, and after it the ports are looked at.

use crate::arch::{self, Core};
use crate::kernel;
use crate::port::RawPort;
use crate::sync::TimingEvent;
use crate::{described, time};
use bulkhead_abi::one_shot::marker;
use bulkhead_exec_one_shot::Task;
use bulkhead_exec_one_shot::notice::{Rings, Told};
use bulkhead_hal::marker::custom;

/// A task of the image that messages release.
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
    /// The task with this number; 0 is the most urgent one.
    pub const fn new(task: Task) -> Self {
        Self {
            task,
            state: Core::new(Told::new()),
        }
    }

    /// Looks at the port, if the task waits for it. Interrupts are masked.
    fn look(&self, step: impl FnOnce(&mut Told, u64, u64, bool) -> Option<u64>) {
        let period = described::period_of(self.task);
        let has_news = described::told_by(self.task).is_some_and(|port| {
            // Nobody has initialised it yet, or wrote over it: there is nothing to read.
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

static RINGS: Core<Rings> = Core::new(Rings::new());
static UNMASK: TimingEvent = TimingEvent::new(unmask);

/// The job that runs ends, and its task waits for a message. False: time releases the task.
pub(crate) fn wait() -> bool {
    let task = kernel::running();
    let mut readers = arch::system().readers.iter();
    let reader = readers.find(|reader| reader.task == task);
    if let Some(reader) = reader {
        arch::masked(|| reader.look(Told::wait));
    }
    reader.is_some()
}

/// The doorbell's interrupt. Interrupts are masked.
pub(crate) fn rung() {
    // First, so that whoever rings from now on interrupts again.
    arch::lower_doorbell();
    let system = arch::system();
    for reader in system.readers {
        if reader.state.masked(|state| state.waits()) {
            reader.look(Told::hear);
        }
    }
    let now = time::now();
    if RINGS.masked(|rings| rings.hear(now, system.rings)) {
        arch::hear_doorbell(false);
        UNMASK.set(now + 1);
    }
}

/// The next tick. If the doorbell is raised already, somebody rang more often than the description says.
fn unmask() {
    if arch::is_doorbell_raised() {
        custom::<{ marker::RINGS }>(arch::system().rings.into());
    }
    arch::hear_doorbell(true);
}
