//! The console: a ring in the core's own memory that others read.
//!
//! Why it exists: most cores have no console of their own. What it deliberately does not know: its readers, and
//! when they read.

use crate::arch;
use bulkhead_exec_one_shot::ring;
use core::sync::atomic::{AtomicU16, Ordering::Relaxed};

/// Writes a line. The oldest lines make room for it.
#[inline]
pub fn line(text: &str) {
    pieces(&[text.as_bytes()]);
}

/// Writes a line: a text, followed by a number in decimal.
pub fn number(text: &str, number: u64) {
    number_behind(text.as_bytes(), number);
}

/// The same behind bytes.
pub fn number_behind(text: &[u8], number: u64) {
    let mut digits = [0; 20];
    pieces(&[text, decimal(number, &mut digits)]);
}

/// Writes a line that comes in pieces. Bytes are not examined.
#[inline(never)]
pub fn pieces(pieces: &[&[u8]]) {
    arch::masked(|| {
        let (header, area) = arch::ring();
        ring::write(header, area, pieces);
    });
}

/// A number in decimal, at the end of the digits.
pub fn decimal(mut number: u64, digits: &mut [u8; 20]) -> &[u8] {
    let mut first = 20;
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
        first -= 1;
        if number == 0 {
            break;
        }
    }
    digits.get(first..).unwrap_or(&[])
}

static SHOWN: AtomicU16 = AtomicU16::new(0);

/// Copies new lines to the console device of the tile, for platforms where each core has one: for
/// [`crate::Configuration::when_idle`].
pub fn drain() {
    let mut shown = SHOWN.load(Relaxed);
    loop {
        let mut line = [0; bulkhead_abi::one_shot::ring::LINE];
        let length = arch::masked(|| {
            let (header, area) = arch::ring();
            let text = ring::unread(header, area, &mut shown)?;
            for (to, from) in line.iter_mut().zip(text) {
                *to = *from;
            }
            Some(text.len())
        });
        let Some(length) = length else { break };
        for byte in line.iter().take(length).chain(b"\n") {
            bulkhead_hal::device::put(*byte);
        }
    }
    SHOWN.store(shown, Relaxed);
}
