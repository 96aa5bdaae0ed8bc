//! The functions that C calls, and the calls into C.
//!
//! Why it exists: pointers of C have no types that Rust could check. What it deliberately does not know: what they point to, beyond what the header
//! says. A task in C that passes something else harms its own core only as any code there could.
#![allow(unsafe_code)]

use bulkhead_oneshot::arch::{constant, uninterrupted};
#[cfg(feature = "notify")]
use bulkhead_oneshot::described::Releases;
use bulkhead_oneshot::described::{RawInput, RawOutput, period};
use bulkhead_oneshot::parallel::Missing;
use bulkhead_oneshot::parallel::raw::{self, Help, Helper, Refused, Section};
use bulkhead_oneshot::port::Failure;
use bulkhead_oneshot::sync::{self, Events, Gate, SuspensionObject, TimingEvent};
use bulkhead_oneshot::{Done, Job, console, core_number, marker, stop, stop_at, time};
use core::ffi::CStr;
use core::mem::MaybeUninit;

/// `bh_task`: what `BH_TASK` defines.
#[repr(C)]
#[derive(Debug)]
pub struct Definition {
    run: unsafe extern "C" fn(*mut u8, CJob) -> CDone,
    fields: *mut u8,
    size: usize,
    copies: usize,
}

// SAFETY: constant; the fields behind the pointer are used by jobs only, one after the other.
unsafe impl Sync for Definition {}

/// `bh_job`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CJob {
    private: u64,
}

/// `bh_done`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CDone {
    kind: u64,
    value: u64,
}

/// `BH_DELAY` and `BH_END`: words that an invalid value is unlikely to contain.
const DELAY: u64 = 0x7961_6c65_645f_6862;
const END: u64 = 0x646e_655f_6862_2121;
/// The mark of an ending: the same.
const MARK: u64 = 0x676e_6964_6e65_6862;

/// `bh_ending`: another way for a job to end. Only the files of an image name these constants, so it contains the code of no other way. The build
/// finds them by the beginning of their names.
#[repr(C)]
#[derive(Debug)]
pub struct Ending {
    end: unsafe fn(u64, Job) -> Done,
    mark: u64,
}

impl Ending {
    const fn new(end: unsafe fn(u64, Job) -> Done) -> Self {
        Self { end, mark: MARK }
    }
}

#[unsafe(no_mangle)]
static bh_ending_wait: Ending = Ending::new(wait);
#[unsafe(no_mangle)]
static bh_ending_await: Ending = Ending::new(await_events);
#[unsafe(no_mangle)]
static bh_ending_call: Ending = Ending::new(call);
#[cfg(feature = "notify")]
#[unsafe(no_mangle)]
static bh_ending_next: Ending = Ending::new(next);
#[unsafe(no_mangle)]
static bh_ending_section: Ending = Ending::new(next_section);

unsafe fn wait(object: u64, job: Job) -> Done {
    // SAFETY: the header makes this end only from a pointer to an object, which must be static and which it has made.
    let object = unsafe {
        (*(object as *const Lazy<SuspensionObject>))
            .object
            .assume_init_ref()
    };
    match object.wait(job) {
        Ok(done) => done,
        Err(_) => stop("another task waits for its suspension object"),
    }
}

unsafe fn await_events(events: u64, job: Job) -> Done {
    // SAFETY: the same for events, which begin with the word that the header's macro puts there.
    let events: &Events = unsafe { shared(events as *mut Lazy<Events>) };
    match events.wait(job) {
        Ok(done) => done,
        Err(_) => stop("another task waits for its events"),
    }
}

unsafe fn call(object: u64, job: Job) -> Done {
    match Object(object as *mut CProtected).call(job) {
        Some(done) => done,
        None => {
            stop("another task waits at its entry, there is no such entry, or its object is in use")
        }
    }
}

#[cfg(feature = "notify")]
unsafe fn next(releases: u64, job: Job) -> Done {
    // SAFETY: the header makes this end only from a pointer to the task's releases, one word that begins as 0 and that only its jobs use.
    unsafe { &mut *(releases as *mut Releases) }.next(job)
}

/// The kernel calls it when the job has returned. So a job that keeps the value of `bh_next_section` and goes on still has used its wait.
fn next_section(_: u64, job: Job) -> Done {
    raw::next(job)
}

/// A task of a C file: `task!(bh_task_NAME, COPY)`.
#[macro_export]
macro_rules! task {
    ($name:ident, $copy:literal) => {{
        unsafe extern "C" {
            static $name: $crate::arch::Definition;
        }
        // SAFETY: the header's macro defines this name for a constant of this type.
        $crate::CTask::new(unsafe { &$name }, $copy)
    }};
}

/// Runs one job.
#[inline]
pub(crate) fn run(task: &Definition, copy: usize, job: Job) -> Done {
    let fields = task
        .fields
        .wrapping_add(task.size * copy.min(task.copies - 1));
    // SAFETY: the header's macro makes the function for fields of this size, and this many of them; only this task's jobs use this one.
    let done = unsafe { (task.run)(fields, CJob { private: 0 }) };
    match done.kind {
        DELAY => job.delay_until(done.value),
        END => job.end(),
        ending => match constant::<Ending>(ending) {
            // SAFETY: these bytes are there, aligned, and constant. With this mark they are an ending, whose function takes the value that the
            // header makes with it.
            Some(ending) if unsafe { (*ending).mark } == MARK => unsafe {
                ((*ending).end)(done.value, job)
            },
            _ => stop("its job returned what no operation made"),
        },
    }
}

/// An object in memory of C: the first call makes it from the word that C gave it.
#[repr(C)]
struct Lazy<T> {
    word: u64,
    is_made: u64,
    object: MaybeUninit<T>,
}

/// Bytes of `bh_input`, `bh_output` and `bh_suspension` in the header.
const INPUT: usize = 72;
const SUSPENSION: usize = 32;
/// Bytes of `bh_timing_event`.
const TIMING_EVENT: usize = 56;
const _: () = assert!(size_of::<Lazy<RawInput>>() <= INPUT && align_of::<Lazy<RawInput>>() == 8);
const _: () = assert!(size_of::<Lazy<RawOutput>>() <= INPUT && align_of::<Lazy<RawOutput>>() == 8);
const _: () = assert!(
    size_of::<Lazy<SuspensionObject>>() <= SUSPENSION && align_of::<Lazy<SuspensionObject>>() == 8
);

/// Bytes of `bh_events`.
const EVENTS: usize = 48;
const _: () = assert!(size_of::<Lazy<Events>>() <= EVENTS && align_of::<Lazy<Events>>() == 8);

const _: () =
    assert!(size_of::<Lazy<TimingEvent>>() <= TIMING_EVENT && align_of::<Lazy<TimingEvent>>() == 8);

/// Bytes of `bh_helper` and `bh_help`, and of the kernel's part of `bh_section`.
const HELPER: usize = 152;
const SECTION: usize = 16;
const _: () = assert!(size_of::<Lazy<Helper>>() <= HELPER && align_of::<Lazy<Helper>>() == 8);
const _: () = assert!(size_of::<Lazy<Help>>() <= HELPER && align_of::<Lazy<Help>>() == 8);
const _: () = assert!(size_of::<Section>() <= SECTION && align_of::<Section>() == 8);

trait Made {
    fn make(word: u64) -> Self;
}

impl Made for RawInput {
    fn make(word: u64) -> Self {
        Self::new(word)
    }
}

impl Made for RawOutput {
    fn make(word: u64) -> Self {
        Self::new(word)
    }
}

/// Two numbers of channels in a word, the first in its lower half.
fn numbers(word: u64) -> (u64, u64) {
    (word & 0xFFFF_FFFF, word >> 32)
}

impl Made for Helper {
    fn make(word: u64) -> Self {
        let (slices, results) = numbers(word);
        Self::new(slices, results)
    }
}

impl Made for Help {
    fn make(word: u64) -> Self {
        let (slices, results) = numbers(word);
        Self::new(slices, results)
    }
}

impl Made for TimingEvent {
    fn make(word: u64) -> Self {
        extern "C" fn nothing() {}
        // SAFETY: the header's macro puts a function of this type there, or null.
        let action =
            unsafe { core::mem::transmute::<usize, Option<extern "C" fn()>>(word as usize) };
        TimingEvent::in_c(action.unwrap_or(nothing))
    }
}

impl Made for Events {
    fn make(word: u64) -> Self {
        Self::sporadic(word)
    }
}

impl Made for SuspensionObject {
    fn make(_: u64) -> Self {
        Self::new()
    }
}

/// The object; made if it does not exist yet.
///
/// # Safety
/// The pointer leads to an object of the header's type, which was initialised as the header says and does not move.
unsafe fn made<T: Made>(lazy: *mut Lazy<T>) -> &'static mut T {
    // SAFETY: as the caller's. Jobs do not preempt each other; objects that actions of timing events also use are made by `shared`.
    let lazy = unsafe { &mut *lazy };
    if lazy.is_made == 0 {
        lazy.object.write(T::make(lazy.word));
        lazy.is_made = 1;
    }
    // SAFETY: the word says that it is initialised.
    unsafe { lazy.object.assume_init_mut() }
}

/// The same for an object that jobs and the actions of timing events use: it is made with interrupts masked, and no reference to it is
/// exclusive.
///
/// # Safety
/// As for [`made`].
unsafe fn shared<T: Made>(lazy: *mut Lazy<T>) -> &'static T {
    // SAFETY: as the caller's; interrupts are masked, so no other code accesses the words meanwhile, and no reference to the object is
    // exclusive.
    uninterrupted(|| unsafe {
        if (*lazy).is_made == 0 {
            (*lazy).object = MaybeUninit::new(T::make((*lazy).word));
            (*lazy).is_made = 1;
        }
        (*lazy).object.assume_init_ref()
    })
}

/// The suspension object that a language keeps in 32 bytes.
///
/// # Safety
/// The pointer leads to the words of a `bh_suspension`, which were zero at first and which no other code uses.
pub unsafe fn suspension(object: *mut u8) -> &'static SuspensionObject {
    // SAFETY: as the caller's.
    unsafe { shared(object.cast::<Lazy<SuspensionObject>>()) }
}

/// `BH_SIZE`, `BH_LOCKED`, `BH_FULL`, `BH_CLOSED`.
fn code(failure: &Failure) -> i32 {
    match failure {
        Failure::Size => -1,
        Failure::Locked { .. } => -2,
        Failure::Full => -3,
        Failure::Closed => -4,
        _ => -5,
    }
}

fn result(result: Result<bool, Failure>) -> i32 {
    match result {
        Ok(is_done) => is_done.into(),
        Err(failure) => code(&failure),
    }
}

/// See the header.
///
/// # Safety
/// See the header, of this and all functions below.
#[unsafe(no_mangle)]
extern "C" fn bh_now() -> u64 {
    time::now()
}

#[unsafe(no_mangle)]
extern "C" fn bh_cycles() -> u64 {
    time::cycles()
}

#[unsafe(no_mangle)]
extern "C" fn bh_core() -> u16 {
    core_number()
}

#[unsafe(no_mangle)]
extern "C" fn bh_period() -> u64 {
    period()
}

#[unsafe(no_mangle)]
unsafe extern "C" fn bh_print(line: *const core::ffi::c_char) {
    // SAFETY: a string of C, as the header asks.
    console::pieces(&[unsafe { CStr::from_ptr(line) }.to_bytes()]);
}

#[unsafe(no_mangle)]
unsafe extern "C" fn bh_print_number(text: *const core::ffi::c_char, number: u64) {
    // SAFETY: as above.
    console::number_behind(unsafe { CStr::from_ptr(text) }.to_bytes(), number);
}

#[unsafe(no_mangle)]
extern "C" fn bh_flow_begin(number: u64) {
    marker::flow_begin(number);
}

#[unsafe(no_mangle)]
extern "C" fn bh_flow_end(number: u64) {
    marker::flow_end(number);
}

#[unsafe(no_mangle)]
extern "C" fn bh_span_begin(number: u64) {
    marker::span_begin(number);
}

#[unsafe(no_mangle)]
extern "C" fn bh_span_end(number: u64) {
    marker::span_end(number);
}

#[unsafe(no_mangle)]
unsafe extern "C" fn bh_take(input: *mut Lazy<RawInput>, item: *mut u8, size: usize) -> i32 {
    // SAFETY: an input of the header, and room for an item of this size.
    unsafe { result(made(input).take(core::slice::from_raw_parts_mut(item, size))) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn bh_open(input: *mut Lazy<RawInput>, size: usize) -> i32 {
    // SAFETY: an input of the header.
    unsafe { result(made(input).open(size)) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn bh_is_ready(output: *mut Lazy<RawOutput>, size: usize) -> i32 {
    // SAFETY: an output of the header.
    unsafe { result(made(output).is_ready(size)) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn bh_put(output: *mut Lazy<RawOutput>, item: *const u8, size: usize) -> i32 {
    // SAFETY: an output of the header, and an item of this size.
    unsafe { result(made(output).put(core::slice::from_raw_parts(item, size))) }
}

/// The helper with this number of an array in C, whose elements may be larger than what Rust has in them.
///
/// # Safety
/// So many helpers of the header are there.
unsafe fn helper_at(helpers: *mut Lazy<Helper>, number: usize) -> &'static mut Helper {
    // SAFETY: as the caller's.
    unsafe { made(helpers.byte_add(number * HELPER)) }
}

/// `bh_section`.
#[repr(C)]
struct CSection {
    helpers: *mut Lazy<Helper>,
    count: usize,
    section: MaybeUninit<[u64; SECTION / 8]>,
}

impl CSection {
    /// The helper with this number, and the section, once it has begun.
    ///
    /// # Safety
    /// A section of the header on which `bh_begin` returned 0 or 1; its helpers are still there.
    unsafe fn parts(
        section: *mut Self,
        helper: usize,
    ) -> Option<(&'static mut Section, &'static mut Helper)> {
        // SAFETY: as the caller's. Only this task's jobs use them, one after the other.
        unsafe {
            let all = &mut *section;
            let helper = (helper < all.count).then(|| helper_at(all.helpers, helper))?;
            Some((&mut *all.section.as_mut_ptr().cast::<Section>(), helper))
        }
    }
}

/// `BH_NOT_ASKED`, `BH_LATE`, `BH_ORDER`.
fn refusal(refused: Refused) -> i32 {
    match refused {
        Refused::Missing(Missing::NotAsked) => 0,
        Refused::Missing(Missing::Late) => -6,
        Refused::Missing(Missing::Port(failure)) => code(&failure),
        Refused::Order => -7,
        // Only what `sole` lets through comes here.
        Refused::Again => code(&Failure::Size),
    }
}

/// Why a task stops that begins a second section in a job.
const AGAIN: &str = "a second section, but bh_next_section has not ended the job of the first one";

/// File and line of a call, found out only when they are told.
type Place = (&'static [u8], u64);

/// A job that begins a second section, or waits for a second slice, stops its task, because its bound counts one wait.
fn sole<T>(
    result: Result<T, Refused>,
    reason: &str,
    place: impl FnOnce() -> Place,
) -> Result<T, Refused> {
    if matches!(result, Err(Refused::Again)) {
        let (file, line) = place();
        stop_at(reason, file, line);
    }
    result
}

/// A place in a file in C.
///
/// # Safety
/// `file` is a string of C that is never changed.
unsafe fn in_c(file: *const core::ffi::c_char, line: u64) -> Place {
    // SAFETY: as the caller's.
    (unsafe { CStr::from_ptr(file) }.to_bytes(), line)
}

fn done(result: Result<(), Refused>) -> i32 {
    result.map_or_else(refusal, |()| 1)
}

/// Begins a section, for a language with its own reason and place of a second one. Returns what `bh_begin` does.
///
/// # Safety
/// The words of a `bh_section` and of so many `bh_helper`s, which no other code uses.
pub unsafe fn begin(
    section: *mut u8,
    helpers: *mut u8,
    count: usize,
    reason: &str,
    place: impl FnOnce() -> Place,
) -> i32 {
    let (section, helpers) = (section.cast::<CSection>(), helpers.cast::<Lazy<Helper>>());
    // SAFETY: as the caller's.
    let all = (0..count).map(|helper| unsafe { helper_at(helpers, helper) });
    // What it says of a section that fails: no helper can be asked.
    let (begun, count) = match sole(Section::begin(all), reason, place) {
        Ok(begun) => (Ok(begun), count),
        Err(refused) => (Err(refused), 0),
    };
    // SAFETY: room for a section.
    unsafe {
        (*section).helpers = helpers;
        (*section).count = count;
        match begun {
            Ok(begun) => {
                (*section)
                    .section
                    .as_mut_ptr()
                    .cast::<Section>()
                    .write(begun);
                1
            }
            Err(refused) => refusal(refused),
        }
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn bh_begin_at(
    section: *mut CSection,
    helpers: *mut Lazy<Helper>,
    count: usize,
    file: *const core::ffi::c_char,
    line: u64,
) -> i32 {
    // SAFETY: a section and helpers of the header, whose macro passes the file's name.
    unsafe {
        begin(section.cast(), helpers.cast(), count, AGAIN, || {
            in_c(file, line)
        })
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn bh_hand(
    section: *mut CSection,
    helper: usize,
    slice: *const u8,
    size: usize,
) -> i32 {
    // SAFETY: a section of the header, and a slice of this size.
    unsafe {
        let Some((section, helper)) = CSection::parts(section, helper) else {
            return code(&Failure::Size);
        };
        let handed = section.hand(helper, core::slice::from_raw_parts(slice, size));
        handed.map_or_else(refusal, i32::from)
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn bh_collect(
    section: *mut CSection,
    helper: usize,
    result: *mut u8,
    size: usize,
) -> i32 {
    // SAFETY: a section of the header, and room for a result of this size.
    unsafe {
        let Some((section, helper)) = CSection::parts(section, helper) else {
            return code(&Failure::Size);
        };
        done(section.collect(helper, core::slice::from_raw_parts_mut(result, size)))
    }
}

/// Waits for a slice, for a language with its own reason and place of a second one. Returns what `bh_slice` does.
///
/// # Safety
/// The words of a `bh_help`, which no other code uses, and room for a slice of this size.
pub unsafe fn slice(
    help: *mut u8,
    slice: *mut u8,
    size: usize,
    reason: &str,
    place: impl FnOnce() -> Place,
) -> i32 {
    // SAFETY: as the caller's.
    unsafe {
        let help = made(help.cast::<Lazy<Help>>());
        let taken = help.slice(core::slice::from_raw_parts_mut(slice, size));
        done(sole(taken, reason, place))
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn bh_slice_at(
    help: *mut Lazy<Help>,
    room: *mut u8,
    size: usize,
    file: *const core::ffi::c_char,
    line: u64,
) -> i32 {
    // SAFETY: a help of the header, room for a slice of this size, and the file's name of the header's macro.
    unsafe { slice(help.cast(), room, size, AGAIN, || in_c(file, line)) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn bh_give(help: *mut Lazy<Help>, result: *const u8, size: usize) -> i32 {
    // SAFETY: a help of the header, and a result of this size.
    let given = unsafe { made(help).give(core::slice::from_raw_parts(result, size)) };
    done(given.map_err(Refused::from))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn bh_set_true(object: *mut Lazy<SuspensionObject>) {
    // SAFETY: an object of the header.
    unsafe { shared(object) }.set_true();
}

#[unsafe(no_mangle)]
unsafe extern "C" fn bh_set_false(object: *mut Lazy<SuspensionObject>) {
    // SAFETY: an object of the header.
    unsafe { shared(object) }.set_false();
}

#[unsafe(no_mangle)]
unsafe extern "C" fn bh_is_true(object: *mut Lazy<SuspensionObject>) -> bool {
    // SAFETY: an object of the header.
    unsafe { shared(object) }.is_true()
}

#[unsafe(no_mangle)]
unsafe extern "C" fn bh_make_suspension(object: *mut Lazy<SuspensionObject>) {
    // SAFETY: an object of the header.
    let _made: &SuspensionObject = unsafe { shared(object) };
}

#[unsafe(no_mangle)]
unsafe extern "C" fn bh_set_event(event: *mut Lazy<TimingEvent>, tick: u64) {
    // SAFETY: an event of the header.
    unsafe { shared(event) }.set(tick);
}

#[unsafe(no_mangle)]
unsafe extern "C" fn bh_cancel_event(event: *mut Lazy<TimingEvent>) -> bool {
    // SAFETY: an event of the header.
    unsafe { shared(event) }.cancel()
}

#[unsafe(no_mangle)]
unsafe extern "C" fn bh_arrive(events: *mut Lazy<Events>) -> bool {
    // SAFETY: events of the header.
    unsafe { shared(events) }.arrive()
}

/// `bh_entry`.
#[repr(C)]
struct CEntry {
    barrier: unsafe extern "C" fn(*const u8) -> bool,
    body: unsafe extern "C" fn(*mut u8, u64),
    /// A task number plus 1; 0 means no task, as in memory that was never written.
    caller: u64,
    parameter: u64,
}

/// Data of an object in C.
struct Data(*mut u8);

impl Gate<Data, u64> for CEntry {
    fn is_open(&self, data: &Data) -> bool {
        // SAFETY: the header's macro has the function for this data, which no other code uses now.
        unsafe { (self.barrier)(data.0) }
    }

    fn perform(&self, data: &mut Data, parameter: u64) {
        // SAFETY: as above.
        unsafe { (self.body)(data.0, parameter) };
    }

    fn has_caller(&self) -> bool {
        self.caller != 0
    }

    fn set_caller(&mut self, task: u8, parameter: u64) {
        (self.caller, self.parameter) = (u64::from(task) + 1, parameter);
    }

    fn take_caller(&mut self) -> Option<(u8, u64)> {
        let task = u8::try_from(self.caller.checked_sub(1)?).ok()?;
        self.caller = 0;
        Some((task, self.parameter))
    }
}

/// `bh_protected`.
#[repr(C)]
pub(crate) struct CProtected {
    data: *mut u8,
    entries: *mut CEntry,
    count: usize,
    is_lent: u64,
    /// The call that the running job returns.
    entry: usize,
    parameter: u64,
}

/// A protected object in C.
pub(crate) struct Object(*mut CProtected);

impl Object {
    /// Works on the object with interrupts masked. None: it is in use, because an action or barrier of its own called it, or stopped in the middle.
    fn with<R>(&self, action: impl FnOnce(&mut Data, &mut [CEntry]) -> R) -> Option<R> {
        // SAFETY: an object of the header, static and initialised by its macro; interrupts are masked, and the word says that no other code
        // works on it.
        uninterrupted(|| unsafe {
            if core::mem::replace(&mut (*self.0).is_lent, 1) != 0 {
                return None;
            }
            let entries = core::slice::from_raw_parts_mut((*self.0).entries, (*self.0).count);
            let result = action(&mut Data((*self.0).data), entries);
            (*self.0).is_lent = 0;
            Some(result)
        })
    }

    /// Performs the call that its job has returned.
    pub(crate) fn call(&self, job: Job) -> Option<Done> {
        // SAFETY: as above; only jobs write these words, and none runs between.
        let (entry, parameter) = unsafe { ((*self.0).entry, (*self.0).parameter) };
        self.with(|data, entries| sync::call(data, entries, entry, parameter, job).ok())
            .flatten()
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn bh_update(
    object: *mut CProtected,
    action: unsafe extern "C" fn(*mut u8, *mut u8),
    argument: *mut u8,
) -> bool {
    let done = Object(object).with(|data, entries| {
        // SAFETY: as the header asks of the action.
        unsafe { action(data.0, argument) };
        sync::serve(data, entries);
    });
    done.is_some()
}
