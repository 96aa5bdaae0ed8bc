//! A budget of cache misses for each period, which a hart keeps by itself: the regulation of MemGuard (Yun et al., RTAS 2013).
//!
//! Why it exists: a program that disturbs others through memory can be limited without any support of the memory, if its hart counts the misses of its
//! second level and an overflow of the counter interrupts it. The hart then sleeps until its period ends. What it deliberately does not know: modified
//! lines that leave the caches (they are no misses), other harts, and how long a miss takes.

use super::Registers;
use crate::Program;
use bulkhead_hal::abi::hpm::{Event, OVERFLOW_INTERRUPT};
use bulkhead_hal::abi::memory_map::{CLINT_BASE, CLINT_MTIMECMP};
use bulkhead_hal::csr;
use core::sync::atomic::{AtomicU64, Ordering};

/// Harts of a cluster.
const HARTS: usize = 8;
/// Machine timer interrupt in `mie` and `mip`.
const TIMER: u64 = 1 << 7;
/// Local counter-overflow interrupt in `mie` and `mip`.
const OVERFLOW: u64 = 1 << OVERFLOW_INTERRUPT;
/// Machine interrupts in `mstatus`.
const ENABLE: u64 = 1 << 3;

/// What the handler knows, in words: two saved registers, the address of the hart's timer, its next alarm, the period, and the counter's first value.
const WORDS: usize = 6;
const COMPARE: usize = 2;
const ALARM: usize = 3;
const PERIOD: usize = 4;
const FIRST: usize = 5;

static STATES: [[AtomicU64; WORDS]; HARTS] =
    [const { [const { AtomicU64::new(0) }; WORDS] }; HARTS];

// An overflow sleeps until the timer is due. A timer, or the end of that sleep, begins the next period. If several periods are over, they are begun one
// after the other, because the timer is still due. An exception is not this handler's: it happens again without one, so the run ends there.
core::arch::global_asm!(
    ".section .text.regulator, \"ax\"",
    ".balign 4",
    "regulator:",
    "    csrrw t0, mscratch, t0",
    "    sd t1, 0(t0)",
    "    sd t2, 8(t0)",
    "    csrr t1, mcause",
    "    bgez t1, 4f",
    "    andi t1, t1, 0xff",
    "    addi t1, t1, -{overflow_interrupt}",
    "    li t2, {overflow}",
    "    csrc mip, t2",
    "    bnez t1, 3f",
    "1:",
    "    csrr t1, mip",
    "    andi t1, t1, {timer}",
    "    bnez t1, 3f",
    "    wfi",
    "    j 1b",
    "3:",
    "    ld t1, {alarm}(t0)",
    "    ld t2, {period}(t0)",
    "    add t1, t1, t2",
    "    sd t1, {alarm}(t0)",
    "    ld t2, {compare}(t0)",
    "    sd t1, 0(t2)",
    "    ld t1, {first}(t0)",
    "    csrw mhpmcounter3, t1",
    "    li t1, {event}",
    "    csrw mhpmevent3, t1",
    "    j 5f",
    "4:",
    "    csrw mtvec, zero",
    "5:",
    "    ld t1, 0(t0)",
    "    ld t2, 8(t0)",
    "    csrrw t0, mscratch, t0",
    "    mret",
    overflow_interrupt = const OVERFLOW_INTERRUPT,
    overflow = const OVERFLOW,
    timer = const TIMER,
    compare = const 8 * COMPARE,
    alarm = const 8 * ALARM,
    period = const 8 * PERIOD,
    first = const 8 * FIRST,
    event = const Event::SecondMiss as u64,
);

unsafe extern "C" {
    /// The handler above.
    fn regulator();
}

/// From now on, the hart may miss its second level so often (`budget` > 0) in each `period` of this many counts of the timer (`time`); then it sleeps until
/// the period is over. Misses that are under way when the budget is used up still come. The hart has no other interrupts.
///
/// # Panics
/// If the program has more than eight harts, or the budget or the period is 0.
pub fn regulate(program: &Program, budget: u64, period: u64) {
    assert!(
        budget > 0 && period > 0,
        "{budget} misses in {period} counts of the timer"
    );
    let state = &STATES[program.rank];
    let timer = CLINT_BASE + CLINT_MTIMECMP + 8 * program.hart;
    let alarm = csr::time() + period;
    // The counter overflows with the last miss of the budget.
    let first = budget.wrapping_neg();
    let values = [
        (COMPARE, timer),
        (ALARM, alarm),
        (PERIOD, period),
        (FIRST, first),
    ];
    for (at, value) in values {
        state[at].store(value, Ordering::Relaxed);
    }
    Registers::at(timer).set(0, alarm);
    csr::set_mhpmcounter3(first);
    csr::set_mhpmevent3(Event::SecondMiss as u64);
    csr::set_mscratch(state.as_ptr() as u64);
    csr::set_mtvec(regulator as *const () as u64);
    csr::set_mie(TIMER | OVERFLOW);
    csr::set_mstatus(csr::mstatus() | ENABLE);
}
