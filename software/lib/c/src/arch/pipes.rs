//! Pipes: streams of bytes between applications.
//!
//! Why it exists: see the parent module. What it deliberately does not know: how the bytes travel.

use super::{bytes, bytes_mut, not_given, text, with};
use crate::tables::status;
use bulkhead_lib::gate::{ReceiveGate, SendGate};
use bulkhead_lib::pipe::{Reader, Writer};
use core::ffi::{c_char, c_int, c_void};

functions! {
    fn bh_pipe_writer(name: *const c_char) -> c_int {
        with(|tables| {
            // SAFETY: see the head of the parent module.
            let name = unsafe { text(name) }?;
            SendGate::find(name)
                .ok_or_else(|| not_given(format_args!("<sgate name=\"{name}\">")))?;
            tables.writers.put(Writer::named(name))
        })
    }

    fn bh_pipe_write(pipe: c_int, data: *const c_void, length: usize) -> c_int {
        with(|tables| {
            // SAFETY: see the head of the parent module.
            let data = unsafe { bytes(data, length) }?;
            tables.writers.get_mut(pipe)?.write(data).map_err(status)?;
            Ok(0)
        })
    }

    fn bh_pipe_flush(pipe: c_int) -> c_int {
        with(|tables| {
            tables.writers.get_mut(pipe)?.flush().map_err(status)?;
            Ok(0)
        })
    }

    fn bh_pipe_close(pipe: c_int) -> c_int {
        with(|tables| {
            tables.writers.take(pipe)?.close().map_err(status)?;
            Ok(0)
        })
    }

    fn bh_pipe_reader(name: *const c_char) -> c_int {
        with(|tables| {
            // SAFETY: see the head of the parent module.
            let name = unsafe { text(name) }?;
            ReceiveGate::find(name)
                .ok_or_else(|| not_given(format_args!("<rgate name=\"{name}\">")))?;
            tables.readers.put(Reader::named(name))
        })
    }

    fn bh_pipe_read(pipe: c_int, target: *mut c_void, size: usize) -> c_int {
        with(|tables| {
            // SAFETY: see the head of the parent module.
            let target = unsafe { bytes_mut(target, size.min(c_int::MAX as usize)) }?;
            let count = tables.readers.get_mut(pipe)?.read(target).map_err(status)?;
            Ok(count as i32)
        })
    }
}
