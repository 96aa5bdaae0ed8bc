//! The lock on a core's code: no job of the core writes there, whichever of its addresses it uses, and no job removes the lock.

use crate::one_shot_systems::{folder_with, run};
use bulkhead_report::result::IncidentKind;

/// Each task writes into the code in its second job, after it has tried to remove the lock or to put an entry of its own before it; one says what is there.
const TASKS: &str = r#"#include "bulkhead_oneshot.h"
extern char __text_start[], __text_end[];
struct writes { bh_releases releases; uint64_t jobs; };

static volatile uint64_t *own_window(const volatile void *local)
{
    uint64_t core;
    __asm__ volatile("csrr %0, mhartid" : "=r"(core));
    uintptr_t at = (uintptr_t)local;
    /* The linker cannot reach the sum from the code. */
    __asm__("" : "+r"(at));
    return (volatile uint64_t *)(at - 0x80000000u + 0x100000000u + (core << 20));
}

/* Read, write, execute: naturally aligned, naturally aligned 4 bytes, top of range, off. */
static void unlock(void)
{
    static const uint64_t kinds[] = {0x1f, 0x17, 0x0f, 0};
    for (int kind = 0; kind < 4; kind++) {
        __asm__ volatile("csrw pmpaddr0, %0; csrw pmpaddr1, %0; csrw pmpaddr2, %0; csrw pmpaddr3, %0" : : "r"(-1ull));
        __asm__ volatile("csrw pmpcfg0, %0" : : "r"(kinds[kind] * 0x0101010101010101u));
    }
    /* A kind that reaches from the first entry's address, and the third one's. */
    __asm__ volatile("csrw pmpcfg0, %0" : : "r"(0x001f001ful));
}

#define WRITES(name, place)                                                 \
    static bh_done name##_job(struct writes *self, bh_job job)              \
    {                                                                       \
        if (++self->jobs == 2) {                                            \
            unlock();                                                       \
            volatile uint64_t *at = (volatile uint64_t *)(place);           \
            *at = 0;                                                        \
            bh_print("wrote");                                              \
        }                                                                   \
        return bh_next(&self->releases, job);                               \
    }                                                                       \
    BH_TASK(name, struct writes, name##_job, {0})

WRITES(window_first, own_window(__text_start))
WRITES(window_middle, own_window(__text_start + 256))
WRITES(window_last, own_window(__text_end - 8))
WRITES(local_first, __text_start)
WRITES(local_last, __text_end - 8)

static bh_done sums_job(struct writes *self, bh_job job)
{
    uint64_t sum = 0;
    for (const volatile uint32_t *at = (const volatile uint32_t *)__text_start; (const char *)at < __text_end; at++)
        sum = sum * 31 + *at;
    bh_print_number("sum ", sum);
    return bh_next(&self->releases, job);
}
BH_TASK(sums, struct writes, sums_job, {0})
"#;

#[test]
fn no_job_writes_into_the_code_of_its_core_wherever_it_reaches_it() {
    let writers = [
        "window_first",
        "window_middle",
        "window_last",
        "local_first",
        "local_last",
    ];
    let mut text = String::from(
        r#"<system name="code" paradigm="one-shot" platform="epiphany3" duration="50ms">
        <task name="sums" program="tasks.c::sums" core="5" priority="99" period="10ms" cost="900us"/>"#,
    );
    for (number, name) in writers.iter().enumerate() {
        let xml = format!(
            r#"<task name="t{number}" program="tasks.c::{name}" core="5" priority="{}" period="10ms" cost="50us"/>"#,
            number + 1
        );
        text += &xml;
    }
    let folder = folder_with(&[("tasks.c", TASKS), ("system.xml", &(text + "</system>"))]);
    let finished = run(&folder.path().join("system.xml"), &[]).expect("it runs");
    let incidents = &finished.result.variants[0].incidents;
    for (number, writer) in writers.iter().enumerate() {
        let own = incidents
            .iter()
            .filter(|one| one.application == format!("t{number}"));
        let own: Vec<_> = own.collect();
        assert_eq!(own.len(), 1, "{writer}: {incidents:#?}");
        assert_eq!(own[0].kind, IncidentKind::Crash);
        assert!(own[0].what.contains("cause 7 at 0x"), "{own:?}");
    }
    let console = &finished.consoles[0];
    assert!(!console.contains("wrote"), "{console}");
    let sums = console.lines().filter(|line| line.contains("sum "));
    let mut sums: Vec<&str> = sums.collect();
    assert_eq!(sums.len(), 5, "{console}");
    sums.dedup();
    assert_eq!(sums.len(), 1, "{console}");
}
