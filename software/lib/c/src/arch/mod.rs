//! The boundary to C: pointers in, numbers out.
//!
//! Why it exists: all `unsafe` of the C library is here. What it deliberately does not know: what gates and messages are.
//!
//! Every function does what `include/bulkhead.h` says. All have these conditions: a pointer with a length points to that many
//! bytes, which nothing else uses during the call; a pointer to a name points to a text that ends with a zero.
#![allow(unsafe_code)]

use crate::tables::{BAD_ARGUMENT, NOT_FOUND, Result, Tables, code};
use bulkhead_lib::{argument, marker, println, time};
use core::alloc::Layout;
use core::cell::RefCell;
use core::ffi::{CStr, c_char, c_int, c_void};

/// For the one hart of the activity.
struct Local(RefCell<Tables>);

// SAFETY: an activity has one hart and no interrupt handlers.
unsafe impl Sync for Local {}

static TABLES: Local = Local(RefCell::new(Tables::new()));

unsafe extern "C" {
    /// The program, written in C.
    safe fn main() -> c_int;
}

extern "C" fn bulkhead_start() -> ! {
    bulkhead_lib::start(|| exit_code(main()))
}
bulkhead_lib::hal::user_entry!(bulkhead_start);

/// The exit code of an activity has 64 bits; a negative one of C stays negative.
fn exit_code(code: c_int) -> u64 {
    i64::from(code) as u64
}

fn with(action: impl FnOnce(&mut Tables) -> Result<i32>) -> c_int {
    // Nothing calls back into C while they are borrowed.
    match action(&mut TABLES.0.borrow_mut()) {
        Ok(value) => value,
        Err(error) => error,
    }
}

/// A required gate or argument that the description does not give; the console names it, because a number cannot.
fn not_given(what: core::fmt::Arguments<'_>) -> i32 {
    println!("no {what} in the description");
    NOT_FOUND
}

/// # Safety
/// `text` points to a text that ends with a zero and lives for `'a`.
unsafe fn text<'a>(text: *const c_char) -> Result<&'a str> {
    if text.is_null() {
        return Err(BAD_ARGUMENT);
    }
    // SAFETY: the caller promises it.
    unsafe { CStr::from_ptr(text) }
        .to_str()
        .map_err(|_| BAD_ARGUMENT)
}

/// # Safety
/// `data` points to `length` bytes that live for `'a`.
unsafe fn bytes<'a>(data: *const c_void, length: usize) -> Result<&'a [u8]> {
    if length == 0 {
        return Ok(&[]);
    }
    if data.is_null() {
        return Err(BAD_ARGUMENT);
    }
    // SAFETY: the caller promises it.
    Ok(unsafe { core::slice::from_raw_parts(data.cast(), length) })
}

/// # Safety
/// `data` points to `length` bytes that live for `'a` and that nothing else uses.
unsafe fn bytes_mut<'a>(data: *mut c_void, length: usize) -> Result<&'a mut [u8]> {
    if length == 0 {
        return Ok(&mut []);
    }
    if data.is_null() {
        return Err(BAD_ARGUMENT);
    }
    // SAFETY: the caller promises it.
    Ok(unsafe { core::slice::from_raw_parts_mut(data.cast(), length) })
}

/// Copies the bytes that fit. Returns the number of bytes of `data`.
fn fill(target: &mut [u8], data: &[u8]) -> i32 {
    let count = data.len().min(target.len());
    target[..count].copy_from_slice(&data[..count]);
    data.len() as i32
}

/// Copies a text and the zero that ends it. Returns its length without the zero.
fn fill_text(target: &mut [u8], text: &str) -> Result<i32> {
    let length = text.len();
    let target = target.get_mut(..=length).ok_or(BAD_ARGUMENT)?;
    target[..length].copy_from_slice(text.as_bytes());
    target[length] = 0;
    Ok(length as i32)
}

macro_rules! functions {
    ($(fn $name:ident($($argument:ident: $kind:ty),*) $(-> $result:ty)? $body:block)*) => {$(
        /// See `include/bulkhead.h`.
        ///
        /// # Safety
        /// The conditions at the head of this module.
        // SAFETY: names with this prefix are this library's.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $kind),*) $(-> $result)? $body
    )*};
}

mod files;
mod handlers;
mod network;
mod pipes;
mod requests;
mod tasks;

functions! {
    fn bh_print(line: *const c_char) {
        // SAFETY: see the head of this module.
        if let Ok(line) = unsafe { text(line) } {
            println!("{line}");
        }
    }

    fn bh_now() -> u64 {
        time::now()
    }

    fn bh_sleep_until(moment: u64) {
        time::sleep_until(moment);
    }

    fn bh_exit(code: c_int) {
        bulkhead_lib::exit(exit_code(code))
    }

    fn bh_argument(name: *const c_char, value: *mut c_char, size: usize) -> c_int {
        with(|_| {
            // SAFETY: see the head of this module.
            let (name, value) = unsafe { (text(name)?, bytes_mut(value.cast(), size)?) };
            fill_text(value, argument::text(name).ok_or(NOT_FOUND)?)
        })
    }

    fn bh_number(name: *const c_char, default: u64) -> u64 {
        // SAFETY: see the head of this module.
        match unsafe { text(name) } {
            Ok(name) => argument::value(name, default),
            Err(_) => default,
        }
    }

    fn bh_send_gate(name: *const c_char) -> c_int {
        with(|tables| {
            // SAFETY: see the head of this module.
            let name = unsafe { text(name) }?;
            tables
                .open_send(name)?
                .ok_or_else(|| not_given(format_args!("<sgate name=\"{name}\">")))
        })
    }

    fn bh_receive_gate(name: *const c_char) -> c_int {
        with(|tables| {
            // SAFETY: see the head of this module.
            let name = unsafe { text(name) }?;
            tables
                .open_receive(name)?
                .ok_or_else(|| not_given(format_args!("<rgate name=\"{name}\">")))
        })
    }

    fn bh_memory_gate(name: *const c_char) -> c_int {
        with(|tables| {
            // SAFETY: see the head of this module.
            let name = unsafe { text(name) }?;
            tables
                .open_memory(name)?
                .ok_or_else(|| not_given(format_args!("<mgate name=\"{name}\">")))
        })
    }

    fn bh_send(gate: c_int, data: *const c_void, length: usize) -> c_int {
        // SAFETY: see the head of this module.
        with(|tables| tables.send(gate, unsafe { bytes(data, length) }?))
    }

    fn bh_call(gate: c_int, data: *const c_void, length: usize, answer: *mut c_void, size: usize) -> c_int {
        with(|tables| {
            // SAFETY: see the head of this module.
            let (data, answer) = unsafe { (bytes(data, length)?, bytes_mut(answer, size)?) };
            let message = tables.call(gate, data)?;
            let message = tables.take(message)?;
            Ok(fill(answer, message.payload()))
        })
    }

    fn bh_receive(gate: c_int) -> c_int {
        with(|tables| Ok(tables.wait(&[gate], 0)?.0))
    }

    fn bh_wait(gates: *const c_int, count: usize, until: u64, which: *mut c_int) -> c_int {
        with(|tables| {
            let size = count.checked_mul(size_of::<c_int>()).ok_or(BAD_ARGUMENT)?;
            // SAFETY: see the head of this module; a `c_int` has no invalid patterns.
            let gates = unsafe {
                bytes(gates.cast(), size)?;
                if count == 0 { &[] } else { core::slice::from_raw_parts(gates, count) }
            };
            let (message, index) = tables.wait(gates, until)?;
            if !which.is_null() {
                // SAFETY: see the head of this module.
                unsafe { which.write(index) };
            }
            Ok(message)
        })
    }

    fn bh_length(message: c_int) -> c_int {
        with(|tables| Ok(tables.message(message)?.payload().len() as i32))
    }

    fn bh_label(message: c_int) -> u64 {
        let tables = TABLES.0.borrow();
        tables.message(message).map_or(u64::MAX, |m| m.label())
    }

    fn bh_awaited(message: c_int) -> c_int {
        with(|tables| Ok(tables.message(message)?.is_awaited().into()))
    }

    fn bh_copy(message: c_int, target: *mut c_void, size: usize) -> c_int {
        with(|tables| {
            // SAFETY: see the head of this module.
            let target = unsafe { bytes_mut(target, size) }?;
            let payload = tables.message(message)?.payload();
            Ok(fill(target, payload).min(target.len() as i32))
        })
    }

    fn bh_reply(message: c_int, data: *const c_void, length: usize) -> c_int {
        // SAFETY: see the head of this module.
        with(|tables| tables.reply(message, unsafe { bytes(data, length) }?))
    }

    fn bh_finish(message: c_int) -> c_int {
        with(|tables| tables.take(message)?.finish().map(|()| 0).map_err(code))
    }

    fn bh_drop(message: c_int) -> c_int {
        with(|tables| tables.take(message).map(|_| 0))
    }

    fn bh_memory_size(gate: c_int) -> u64 {
        let tables = TABLES.0.borrow();
        tables.memory(gate).map_or(0, |gate| gate.size())
    }

    fn bh_read(gate: c_int, offset: u64, target: *mut c_void, length: usize) -> c_int {
        with(|tables| {
            // SAFETY: see the head of this module.
            let target = unsafe { bytes_mut(target, length) }?;
            tables.memory(gate)?.read(offset, target).map_err(code)?;
            Ok(0)
        })
    }

    fn bh_write(gate: c_int, offset: u64, data: *const c_void, length: usize) -> c_int {
        with(|tables| {
            // SAFETY: see the head of this module.
            let data = unsafe { bytes(data, length) }?;
            tables.memory(gate)?.write(offset, data).map_err(code)?;
            Ok(0)
        })
    }

    fn bh_span_begin(id: u64) {
        marker::span_begin(id);
    }

    fn bh_span_end(id: u64) {
        marker::span_end(id);
    }

    fn bh_flow_begin(id: u64) {
        marker::flow_begin(id);
    }

    fn bh_flow_end(id: u64) {
        marker::flow_end(id);
    }

    fn bh_check(value: u64) {
        marker::check(value);
    }

    fn bh_allocate(size: usize) -> *mut c_void {
        let Some(layout) = block(size) else {
            return core::ptr::null_mut();
        };
        // SAFETY: the layout is not empty; its head holds the size for `bh_free`.
        unsafe {
            let head = alloc::alloc::alloc(layout);
            if head.is_null() {
                marker::heap_refused(size as u64);
                return core::ptr::null_mut();
            }
            head.cast::<usize>().write(size);
            head.add(HEAD).cast()
        }
    }

    fn bh_free(memory: *mut c_void) {
        if memory.is_null() {
            return;
        }
        // SAFETY: the caller gives back what `bh_allocate` gave, once.
        unsafe {
            let head = memory.cast::<u8>().sub(HEAD);
            if let Some(layout) = block(head.cast::<usize>().read()) {
                alloc::alloc::dealloc(head, layout);
            }
        }
    }
}

/// Bytes before a block of `bh_allocate`, which keep it aligned for everything that C has.
const HEAD: usize = 16;

fn block(size: usize) -> Option<Layout> {
    Layout::from_size_align(size.checked_add(HEAD)?, HEAD).ok()
}
