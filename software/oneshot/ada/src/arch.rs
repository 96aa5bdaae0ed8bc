//! The beginning and end of jobs in Ada, and the functions that the run time's units call.
//!
//! Why it exists: a job begins and ends in the middle of a procedure, which only assembly can express. What it deliberately does not know:
//! the language.
#![allow(unsafe_code)]

use bulkhead_oneshot::described::Releases;
use bulkhead_oneshot::parallel::raw;
use bulkhead_oneshot::sync::{SuspensionObject, TimingEvent};
use bulkhead_oneshot::{Job, console, leave, stop, stop_at, stop_with};
use core::arch::{asm, global_asm};
use core::cell::{Cell, UnsafeCell};
use core::ffi::c_void;
use core::mem::MaybeUninit;

/// What is kept of a task.
#[repr(C)]
pub struct Record {
    /// Where its next job continues: at first the procedure of its body, by which a declaration finds it.
    at: Cell<unsafe extern "C" fn(*mut c_void)>,
    /// Where its frame is kept while it waits; null for a task whose frame is not needed.
    kept: *mut Frame,
    /// For a task that waits for its next release.
    releases: UnsafeCell<Releases>,
    /// The stack pointer where its next job continues: the end of the stack less the frame of the task's body. While units are elaborated: 0 until
    /// the task's declaration is, and then its priority and [`DECLARED`].
    stack: Cell<u64>,
    /// The argument of the body: the address of the task's discriminants. Addresses of an image are below 4 GiB (`bulkhead-oneshot.x`).
    argument: Cell<u32>,
    /// What it waits for at an entry.
    entry: SuspensionObject,
}

/// Greater than minus the least priority of a source, -1, which says that it gives none.
const DECLARED: i32 = 2;

const AT: usize = core::mem::offset_of!(Record, at);
const STACK: usize = core::mem::offset_of!(Record, stack);
const KEPT: usize = core::mem::offset_of!(Record, kept);

/// What is kept of a frame: before its words.
#[repr(C)]
struct Frame {
    /// Bytes kept now.
    length: u64,
    /// The most bytes.
    capacity: u64,
}

const LENGTH: usize = core::mem::offset_of!(Frame, length);
const CAPACITY: usize = core::mem::offset_of!(Frame, capacity);
const WORDS: usize = size_of::<Frame>();

/// Room for the frame of a task that calls entries with parameters: they are in it.
#[doc(hidden)]
pub struct Kept<const WORDS: usize>(UnsafeCell<Room<WORDS>>);

#[repr(C)]
struct Room<const WORDS: usize> {
    frame: Frame,
    words: [u64; WORDS],
}

// SAFETY: one hart; it is used where jobs begin and end, and with interrupts masked.
unsafe impl<const WORDS: usize> Sync for Kept<WORDS> {}

impl<const WORDS: usize> Default for Kept<WORDS> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const WORDS: usize> Kept<WORDS> {
    /// With this many words of 8 bytes.
    pub const fn new() -> Self {
        let frame = Frame {
            length: 0,
            capacity: 8 * WORDS as u64,
        };
        Self(UnsafeCell::new(Room {
            frame,
            words: [0; WORDS],
        }))
    }
}

// SAFETY: one hart; where a task continues is written where a job ends and read where one begins, the rest where declarations are
// elaborated.
unsafe impl Sync for Record {}

impl core::fmt::Debug for Record {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Record")
    }
}

impl Record {
    /// For the task with this body.
    #[doc(hidden)]
    pub const fn new<const WORDS: usize>(
        body: unsafe extern "C" fn(*mut c_void),
        kept: &'static Kept<WORDS>,
    ) -> Self {
        Self {
            at: Cell::new(body),
            kept: match WORDS {
                0 => core::ptr::null_mut(),
                _ => kept.0.get().cast(),
            },
            releases: UnsafeCell::new(Releases::new()),
            argument: Cell::new(0),
            stack: Cell::new(0),
            entry: SuspensionObject::new(),
        }
    }
}

/// An image's tasks in Ada, the most urgent one first, by the names of their bodies: a constant with their records. In brackets: the number
/// of 8-byte words in a task's frame, if the frame must be kept.
#[macro_export]
macro_rules! tasks {
    ($name:ident: $($body:ident [$words:literal])*) => {
        static $name: [$crate::arch::Record; [$(stringify!($body)),*].len()] = {
            unsafe extern "C" {
                $(fn $body(argument: *mut ::core::ffi::c_void);)*
            }
            [$({
                static KEPT: $crate::arch::Kept<$words> = $crate::arch::Kept::new();
                $crate::arch::Record::new($body, &KEPT)
            }),*]
        };
    };
}

/// The image's tasks, for declarations.
static ALL: List = List(Cell::new(&[]));

struct List(Cell<&'static [Record]>);

// SAFETY: written once, before the first job.
unsafe impl Sync for List {}

// A function for code that keeps its saved registers over calls. It calls units in Ada, which do not keep s1 to s11 (`-fcall-used`), nor fs0 to fs11, which the
// kernel does not use. The frame has room for those and, from 96 on, for what the instructions before and behind the call need.
macro_rules! keeping {
    ($name:literal, align $align:literal, frame $frame:literal, [$($before:literal),*], $call:literal, [$($behind:literal),*]) => {
        global_asm!(
            concat!(".section .text.", $name, ", \"ax\""),
            concat!(".balign ", $align),
            concat!(".globl ", $name),
            concat!($name, ":"),
            concat!("    addi sp, sp, -", $frame),
            "    sd ra, 0(sp)",
            "    sd s1, 8(sp)",
            "    sd s2, 16(sp)",
            "    sd s3, 24(sp)",
            "    sd s4, 32(sp)",
            "    sd s5, 40(sp)",
            "    sd s6, 48(sp)",
            "    sd s7, 56(sp)",
            "    sd s8, 64(sp)",
            "    sd s9, 72(sp)",
            "    sd s10, 80(sp)",
            "    sd s11, 88(sp)",
            $($before,)*
            concat!("    call ", $call),
            $($behind,)*
            "    ld ra, 0(sp)",
            "    ld s1, 8(sp)",
            "    ld s2, 16(sp)",
            "    ld s3, 24(sp)",
            "    ld s4, 32(sp)",
            "    ld s5, 40(sp)",
            "    ld s6, 48(sp)",
            "    ld s7, 56(sp)",
            "    ld s8, 64(sp)",
            "    ld s9, 72(sp)",
            "    ld s10, 80(sp)",
            "    ld s11, 88(sp)",
            concat!("    addi sp, sp, ", $frame),
            "    ret",
        );
    };
}

// Calls the binder's procedure.
keeping!("bulkhead_ada_elaborate", align 2, frame 96, [], "adainit", []);

/// Elaborates the image's units; all of its tasks must be declared there, with priorities that agree with their order.
pub fn elaborate(tasks: &'static [Record]) {
    unsafe extern "C" {
        safe fn bulkhead_ada_elaborate();
    }
    ALL.0.set(tasks);
    bulkhead_ada_elaborate();
    let mut last = i32::MAX;
    for task in tasks {
        let declared = task.stack.get() as i32;
        if declared == 0 {
            stop("a task in Ada of the description is not declared where its file is elaborated");
        }
        let priority = declared - DECLARED;
        if priority >= 0 {
            if priority > last {
                stop("priorities of tasks in Ada are in another order than in the description");
            }
            last = priority;
        }
        task.stack.set((&raw const __stack_top).addr() as u64);
    }
}

unsafe extern "C" {
    static __stack_bottom: u8;
    static __stack_top: u8;
}

/// A declaration of a task is elaborated. Tasks that this image does not run are declared, too.
#[unsafe(no_mangle)]
extern "C" fn bulkhead_ada_create(
    body: unsafe extern "C" fn(*mut c_void),
    argument: u64,
    priority: i32,
) {
    for task in ALL.0.get() {
        if task.at.get() as usize == body as usize && task.stack.get() == 0 {
            task.argument.set(argument as u32);
            task.stack.set((priority + DECLARED) as u64);
            return;
        }
    }
}

/// The record of the task whose job runs, for assembly and for units of the run time.
#[unsafe(no_mangle)]
static bulkhead_ada_current: Current = Current(Cell::new(core::ptr::null()));

struct Current(Cell<*const Record>);

// SAFETY: one hart; jobs use it, one after the other.
unsafe impl Sync for Current {}

/// Continues a task. The contents of the stack are abandoned: the kernel needs nothing of them. There is one copy for all tasks of an image.
#[inline(never)]
pub(crate) fn resume(record: &'static Record) -> ! {
    bulkhead_ada_current.0.set(record);
    // SAFETY: `at` is a task's body, or follows a call of an operation below, where the body needs no register, and nothing of its frame
    // that was not kept: the build refuses others. The stack pointer has the value that it had there, so the kept frame is again between it
    // and the stack's end.
    unsafe {
        asm!(
            "ld sp, {STACK}(t0)",
            "ld t2, {KEPT}(t0)",
            "beqz t2, 3f",
            "ld t1, {LENGTH}(t2)",
            "beqz t1, 3f",
            "sd zero, {LENGTH}(t2)",
            "addi t2, t2, {WORDS}",
            "add t1, t1, sp",
            "mv t3, sp",
            "2:",
            "ld t4, 0(t2)",
            "sd t4, 0(t3)",
            "addi t2, t2, 8",
            "addi t3, t3, 8",
            "bltu t3, t1, 2b",
            "3:",
            "ld t0, {AT}(t0)",
            "jr t0",
            STACK = const STACK,
            LENGTH = const LENGTH,
            WORDS = const WORDS,
            KEPT = const KEPT,
            AT = const AT,
            in("t0") record,
            in("a0") u64::from(record.argument.get()),
            options(noreturn)
        )
    }
}

// The end of a job: the task continues after the call, and the rest happens on an empty stack. The frame of a task with room for it is
// kept.
macro_rules! ends {
    ($name:literal, $then:path) => {
        global_asm!(
            concat!(".section .text.", $name, ", \"ax\""),
            concat!(".globl ", $name),
            concat!($name, ":"),
            "    ld t1, bulkhead_ada_current",
            "    sd ra, {AT}(t1)",
            "    sd sp, {STACK}(t1)",
            "    ld t2, {KEPT}(t1)",
            "    bnez t2, 2f",
            "    la sp, __stack_top",
            "    j {then}",
            "2:  call t0, bulkhead_ada_keep",
            "    la sp, __stack_top",
            "    j {then}",
            then = sym $then,
            AT = const AT,
            STACK = const STACK,
            KEPT = const KEPT,
        );
    };
}

// Keeps the frame of the running task where t2 says; returns to t0. The argument in a0 does not change.
global_asm!(
    ".section .text.bulkhead_ada_keep, \"ax\"",
    ".globl bulkhead_ada_keep",
    "bulkhead_ada_keep:",
    "    la t3, __stack_top",
    "    sub t4, t3, sp",
    "    ld t5, {CAPACITY}(t2)",
    "    bltu t5, t4, 3f",
    "    sd t4, {LENGTH}(t2)",
    "    addi t5, t2, {WORDS}",
    "    mv t6, sp",
    "2:  ld t2, 0(t6)",
    "    sd t2, 0(t5)",
    "    addi t6, t6, 8",
    "    addi t5, t5, 8",
    "    bltu t6, t3, 2b",
    "    jr t0",
    "3:  la sp, __stack_top",
    "    j {too_large}",
    LENGTH = const LENGTH,
    CAPACITY = const CAPACITY,
    WORDS = const WORDS,
    too_large = sym too_large,
);

extern "C" fn too_large() -> ! {
    stop("it waits in a procedure below its body, whose frame is kept")
}

// `bulkhead_ada_serve(record, action, object, parameters, entry)`: performs an entry's body for a waiting task, whose parameters are in its
// frame. So it has called `bulkhead_ada_wait_kept`, and has room for that frame. The frame is swapped with the present contents of its place, twice. Interrupts
// are masked. The stack is used from below both frames.
global_asm!(
    ".section .text.bulkhead_ada_serve, \"ax\"",
    ".globl bulkhead_ada_serve",
    "bulkhead_ada_serve:",
    "    ld t0, {STACK}(a0)",
    "    mv t1, sp",
    "    bgeu t0, t1, 2f",
    "    mv t1, t0",
    "2:  addi t1, t1, -32",
    "    sd sp, 0(t1)",
    "    sd ra, 8(t1)",
    "    sd a0, 16(t1)",
    "    mv sp, t1",
    "    call t0, bulkhead_ada_exchange",
    "    mv t1, a1",
    "    mv a0, a2",
    "    mv a1, a3",
    "    mv a2, a4",
    "    jalr t1",
    "    ld a0, 16(sp)",
    "    call t0, bulkhead_ada_exchange",
    "    ld ra, 8(sp)",
    "    ld sp, 0(sp)",
    "    ret",
    // For the record in a0; returns to t0.
    "bulkhead_ada_exchange:",
    "    ld t1, {STACK}(a0)",
    "    ld t2, {KEPT}(a0)",
    "    ld t3, {LENGTH}(t2)",
    "    addi t2, t2, {WORDS}",
    "    add t3, t3, t1",
    "3:  bgeu t1, t3, 4f",
    "    ld t4, 0(t1)",
    "    ld t5, 0(t2)",
    "    sd t5, 0(t1)",
    "    sd t4, 0(t2)",
    "    addi t1, t1, 8",
    "    addi t2, t2, 8",
    "    j 3b",
    "4:  jr t0",
    STACK = const STACK,
    KEPT = const KEPT,
    LENGTH = const LENGTH,
    WORDS = const WORDS,
);

ends!("bulkhead_ada_delay_until", delay_until);
ends!("bulkhead_ada_wait", wait);
ends!("bulkhead_ada_wait_kept", wait);
ends!("bulkhead_ada_wait_for", wait_for);
ends!("bulkhead_ada_next", next);
ends!("bulkhead_ada_next_section", next_section);
ends!("bulkhead_ada_end", end);

/// Nanoseconds of a tick.
const TICK: i64 = 1_000_000;

/// The first tick that is not before an instant.
#[inline(always)]
fn tick(nanoseconds: u64) -> u64 {
    nanoseconds.div_ceil(TICK as u64)
}

extern "C" fn delay_until(nanoseconds: i64) -> ! {
    let since_start = nanoseconds.max(0) as u64;
    leave(|job| job.delay_until(tick(since_start)))
}

extern "C" fn next() -> ! {
    // SAFETY: a job of a task in Ada runs, so this is its record, and only its jobs use the releases.
    let releases = unsafe { &mut *(*bulkhead_ada_current.0.get()).releases.get() };
    leave(|job| releases.next(job))
}

extern "C" fn next_section() -> ! {
    leave(raw::next)
}

fn wait_at(object: &'static SuspensionObject) -> ! {
    leave(|job: Job| match object.wait(job) {
        Ok(done) => done,
        Err(_) => stop("another task waits for its suspension object"),
    })
}

extern "C" fn wait() -> ! {
    // SAFETY: a job of a task in Ada runs, so this is its record.
    wait_at(unsafe { &(*bulkhead_ada_current.0.get()).entry })
}

extern "C" fn wait_for(object: *mut c_void) -> ! {
    // SAFETY: the calling unit has a type for such objects, whose values are as the header for C says.
    wait_at(unsafe { bulkhead_oneshot_c::arch::suspension(object.cast()) })
}

extern "C" fn end() -> ! {
    leave(Job::end)
}

/// A task that waits at an entry is ready again.
///
/// # Safety
/// The record of a task.
#[unsafe(no_mangle)]
unsafe extern "C" fn bulkhead_ada_wake(record: *const Record) {
    // SAFETY: as the caller's.
    unsafe { &(*record).entry }.set_true();
}

// `bulkhead_ada_seize(status)`: masks interrupts and locks a protected object. Its status has the record of the task that locked it, or 0, and in bit 0 whether
// interrupts were unmasked. Only a call from the object's own operation finds it locked by the running task: jobs do not preempt each other, handlers do not
// get in, and a job that has ended has unlocked it. A lock of a task that stopped counts for nothing. Assembly, because the return address says who called.
global_asm!(
    ".section .text.bulkhead_ada_seize, \"ax\"",
    ".globl bulkhead_ada_seize",
    "bulkhead_ada_seize:",
    "    csrrci t0, mstatus, 8",
    "    ld t1, bulkhead_ada_current",
    "    ld t2, 0(a0)",
    "    andi t2, t2, -2",
    "    bnez t2, 3f",
    "2:  srli t0, t0, 3",
    "    andi t0, t0, 1",
    "    or t0, t0, t1",
    "    sd t0, 0(a0)",
    "    ret",
    "3:  bne t1, t2, 2b",
    "    mv a1, a0",
    "    addi a0, ra, -4",
    // The job is over, so it costs no stack.
    "    la sp, __stack_top",
    "    j {nested}",
    nested = sym nested,
);

extern "C" fn nested(at: u64, object: u64) -> ! {
    bulkhead_oneshot::nested(at, object)
}

// `bulkhead_ada_release(status)`: takes that back.
global_asm!(
    ".section .text.bulkhead_ada_release, \"ax\"",
    ".globl bulkhead_ada_release",
    "bulkhead_ada_release:",
    "    ld t0, 0(a0)",
    "    sd zero, 0(a0)",
    "    andi t0, t0, 1",
    "    slli t0, t0, 3",
    "    csrs mstatus, t0",
    "    ret",
);

/// What the beginning of a `Timing_Event` keeps; zeros at first.
#[repr(C)]
struct Event {
    event: MaybeUninit<TimingEvent>,
    is_made: u64,
}

/// Bytes of `Words` in `Ada.Real_Time.Timing_Events`.
const EVENT: usize = 48;
const _: () = assert!(size_of::<Event>() <= EVENT && align_of::<Event>() == 8);
// The handler gets the address of the one, and the unit knows that of the other.
const _: () = assert!(core::mem::offset_of!(Event, event) == 0);

// Calls the unit that calls the handler. Meanwhile the record of the running task is this function itself: it cannot be written, so a handler that waits traps,
// and no task has it, so a protected operation of a handler that calls its own object is told.
keeping!(
    "bulkhead_ada_fire",
    align 4,
    frame 112,
    [
        "    ld t0, bulkhead_ada_current",
        "    sd t0, 96(sp)",
        "    la t0, bulkhead_ada_fire",
        "    sd t0, bulkhead_ada_current, t1"
    ],
    "bulkhead_ada_call_handler",
    [
        "    ld t0, 96(sp)",
        "    sd t0, bulkhead_ada_current, t1"
    ]
);

unsafe extern "C" {
    // Only the kernel calls it, with such an event.
    safe fn bulkhead_ada_fire(event: *const c_void);
}

/// `Ada.Real_Time.Timing_Events`: the event happens at the first tick that is not before this instant, or at the next one. Interrupts are masked.
///
/// # Safety
/// The words of a `Timing_Event`.
#[unsafe(no_mangle)]
unsafe extern "C" fn bulkhead_ada_set_event(event: *mut Event, nanoseconds: i64) {
    let stack = (&raw const __stack_bottom).addr()..(&raw const __stack_top).addr();
    if stack.contains(&event.addr()) {
        stop("a timing event is a local variable; declare it in the package");
    }
    // SAFETY: as the caller's; the event is in a package, so it stays, and nobody uses the words meanwhile.
    let event: &'static TimingEvent = unsafe {
        if (*event).is_made == 0 {
            (*event).event = MaybeUninit::new(TimingEvent::of_many(bulkhead_ada_fire));
            (*event).is_made = 1;
        }
        (*event).event.assume_init_ref()
    };
    event.set(tick(nanoseconds.max(0) as u64));
}

/// `Ada.Real_Time.Timing_Events`: the end of a span is after the last time. `behind`: the instruction behind the program's call.
#[unsafe(no_mangle)]
extern "C" fn bulkhead_ada_after_last(behind: u64, event: u64) -> ! {
    bulkhead_oneshot::after_last(behind - 4, event)
}

/// `Ada.Real_Time.Timing_Events`: the event does not happen. Interrupts are masked.
///
/// # Safety
/// The words of a `Timing_Event`.
#[unsafe(no_mangle)]
unsafe extern "C" fn bulkhead_ada_clear_event(event: *mut Event) {
    // SAFETY: as the caller's. A made event was set, so it is in a package, and stays.
    let event: Option<&'static TimingEvent> =
        unsafe { ((*event).is_made != 0).then(|| (*event).event.assume_init_ref()) };
    if let Some(event) = event {
        event.cancel();
    }
}

/// A text of Ada.
///
/// # Safety
/// This many bytes exist, and do not change while the value is used.
unsafe fn text<'t>(text: *const u8, length: i64) -> &'t [u8] {
    let length = usize::try_from(length).unwrap_or(0);
    // SAFETY: as the caller's.
    unsafe { core::slice::from_raw_parts(text, length) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn bulkhead_ada_print(line: *const u8, length: i64) {
    // SAFETY: a string of Ada.
    console::pieces(&[unsafe { text(line, length) }]);
}

#[unsafe(no_mangle)]
unsafe extern "C" fn bulkhead_ada_print_number(line: *const u8, length: i64, number: i64) {
    let mut digits = [0; 20];
    let sign: &[u8] = if number < 0 { b"-" } else { b"" };
    let digits = console::decimal(number.unsigned_abs(), &mut digits);
    // SAFETY: a string of Ada.
    console::pieces(&[unsafe { text(line, length) }, sign, digits]);
}

/// Why a task stops that begins a second section in a job.
const AGAIN: &str = "a second section, but Next_Section has not ended the job of the first one";

/// `Bulkhead.Sections`: begins a section; what `bh_begin` returns.
///
/// # Safety
/// The words of a `bh_section` and of so many `bh_helper`s, and a constant string of Ada.
#[unsafe(no_mangle)]
unsafe extern "C" fn bulkhead_ada_begin_section(
    section: *mut u8,
    helpers: *mut u8,
    count: usize,
    file: *const u8,
    length: i64,
    line: u64,
) -> i32 {
    // SAFETY: as the caller's.
    unsafe {
        bulkhead_oneshot_c::arch::begin(section, helpers, count, AGAIN, || {
            (text(file, length), line)
        })
    }
}

/// `Bulkhead.Sections`: waits for a slice; what `bh_slice` returns.
///
/// # Safety
/// The words of a `bh_help`, room for a slice of this size, and a constant string of Ada.
#[unsafe(no_mangle)]
unsafe extern "C" fn bulkhead_ada_slice(
    help: *mut u8,
    slice: *mut u8,
    size: usize,
    file: *const u8,
    length: i64,
    line: u64,
) -> i32 {
    // SAFETY: as the caller's.
    unsafe {
        bulkhead_oneshot_c::arch::slice(help, slice, size, AGAIN, || (text(file, length), line))
    }
}

#[unsafe(no_mangle)]
extern "C" fn bulkhead_ada_second_caller() -> ! {
    stop("another task waits at its entry")
}

/// An exception that nobody handles: the language's checks, and `raise`.
///
/// # Safety
/// The compiler passes a string of C.
#[unsafe(no_mangle)]
unsafe extern "C" fn __gnat_last_chance_handler(file: *const core::ffi::c_char, line: i32) -> ! {
    // SAFETY: as above.
    let file = unsafe { core::ffi::CStr::from_ptr(file) };
    stop_at(
        "exception",
        file.to_bytes(),
        u64::try_from(line).unwrap_or(0),
    )
}

/// An exception with a name of its own that nobody handles.
///
/// # Safety
/// The compiler passes a string: its bytes, and its first and last index.
#[unsafe(no_mangle)]
unsafe extern "C" fn bulkhead_ada_raise(
    _: *const c_void,
    message: *const u8,
    ends: *const [i32; 2],
) -> ! {
    // SAFETY: as above.
    let [first, last] = unsafe { ends.read() };
    let length = i64::from(last) - i64::from(first) + 1;
    // SAFETY: as above.
    let message = unsafe { text(message, length) };
    // The place of a statement without a message ends with a zero.
    match message.strip_suffix(b"\0") {
        Some(place) => stop_with("exception at ", place),
        None => stop_with("exception: ", message),
    }
}

// What the binder's elaboration sets and calls: tasks begin when the kernel does.
#[unsafe(no_mangle)]
extern "C" fn __gnat_activate_all_tasks() {}
#[unsafe(no_mangle)]
static __gnat_partition_elaboration_policy: Word = Word(Cell::new(0));
#[unsafe(no_mangle)]
static __gnat_binder_ss_count: Word = Word(Cell::new(0));

struct Word(#[expect(dead_code, reason = "Ada writes it, and nobody reads it")] Cell<u64>);

// SAFETY: nobody reads it.
unsafe impl Sync for Word {}
