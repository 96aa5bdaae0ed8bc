//! The one-shot RTOS: non-preemptive tasks by priority on one stack, one image for each core.
//!
//! Why it exists: many small cores have so little memory that a stack for each task is a luxury. A task's job runs from its first line to
//! its end, where it says what the task waits for; nothing on the stack survives, so all tasks share it, and a switch saves nothing. What
//! it deliberately does not know: decisions (they are in `exec`), other cores' programs, and who reads its console.
//!
//! In Rust, the type of a task enforces the rule that nothing on the stack survives: a job is a function that returns [`Done`], and only
//! operations that end a job make a [`Done`]. Data that must survive is in the attributes of the task, the fields of its type.
//!
//! ```ignore
//! #![no_std]
//! #![no_main]
//! use bulkhead_oneshot::{Configuration, Done, Job, Task, console, system, time};
//!
//! struct Blink { next: u64 }
//! impl Task for Blink {
//!     fn run(&mut self, job: Job) -> Done {
//!         console::line("blink");
//!         self.next += 100;
//!         job.delay_until(self.next)
//!     }
//! }
//! system! {
//!     Configuration::new(10_000); // counts of the timer in a tick
//!     stack 1024; ring 512;
//!     tasks { Blink: Blink { next: 0 }, priority 1; }
//! }
//! ```
#![no_std]
#![warn(missing_docs)]

pub mod arch;
#[cfg(feature = "clocks")]
pub mod clock;
mod configuration;
pub mod console;
pub mod described;
pub mod host;
mod kernel;
#[cfg(feature = "notify")]
pub mod notify;
pub mod parallel;
pub mod port;
pub mod sync;
mod task;
pub mod time;

pub use arch::{align_code, core_number};
/// Markers for measurements; they cost nothing on the model.
pub use bulkhead_hal::marker;
pub use configuration::{Configuration, Descriptor, ordered};
pub use described::Described;
pub use kernel::{after_last, exit, leave, nested, stop, stop_at, stop_with};
pub use task::{Done, Job, Start, Task};

#[doc(hidden)]
pub use bulkhead_abi::one_shot::STACK as LEAST_STACK;
#[doc(hidden)]
pub use core::sync::atomic::AtomicU64;

/// Makes tasks an image: the configuration, bytes of stack and console ring, and the tasks in any order.
///
/// A greater priority is more urgent; among equals, the first one here is. A budget, in cycles, is optional: the kernel reports a job that
/// runs longer.
#[macro_export]
macro_rules! system {
    (
        $configuration:expr; stack $stack:literal; ring $ring:literal;
        tasks { $($task:ty: $value:expr, priority $priority:literal $(, budget $budget:literal)?;)* }
    ) => {
        const COUNT: usize = [$($priority),*].len();
        static TASKS: [$crate::Descriptor; COUNT] = $crate::ordered([$(
            $crate::Descriptor::new({
                fn run(start: $crate::Start) -> $crate::Done {
                    static ATTRIBUTES: $crate::arch::Attributes<$task> = $crate::arch::Attributes::new($value);
                    ATTRIBUTES.run(start)
                }
                run
            }, $priority, 0 $(+ $budget)?),
        )*]);
        static TABLE: [$crate::AtomicU64; COUNT] = [const { $crate::AtomicU64::new(0) }; COUNT];
        static SYSTEM: $crate::Configuration = $configuration.with(&TASKS, &TABLE);
        $crate::image!(SYSTEM, $stack, $ring);
    };
}
