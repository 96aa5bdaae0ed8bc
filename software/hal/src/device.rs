//! The console and the exit device of a tile.
//!
//! Why it exists: device registers need volatile accesses. What it deliberately does not know: what is printed.

use bulkhead_abi::memory_map::{
    CLINT_BASE, CLINT_MSIP, EXIT_BASE, EXIT_FAIL, EXIT_PASS, UART_BASE,
};

/// Offset of the line status register of a 16550.
const LINE_STATUS: u64 = 5;
/// The transmitter takes another byte.
const TRANSMITTER_EMPTY: u8 = 0x20;

/// Writes one byte to the console. For code in machine mode.
pub fn put(byte: u8) {
    // SAFETY: the window of the console is no Rust memory.
    unsafe {
        while ((UART_BASE + LINE_STATUS) as *const u8).read_volatile() & TRANSMITTER_EMPTY == 0 {}
        (UART_BASE as *mut u8).write_volatile(byte);
    }
}

/// Sets or clears the software interrupt of the tile's first hart. For code in machine mode.
pub fn set_software_interrupt(level: bool) {
    // SAFETY: the window of the interruptor is no Rust memory.
    unsafe { ((CLINT_BASE + CLINT_MSIP) as *mut u32).write_volatile(level.into()) };
}

/// The console as a formatter.
pub struct Console;

impl core::fmt::Write for Console {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        text.bytes().for_each(put);
        Ok(())
    }
}

/// Ends the run of the whole machine with an exit code.
pub fn exit(code: u16) -> ! {
    let value = match code {
        0 => EXIT_PASS,
        code => EXIT_FAIL | u32::from(code) << 16,
    };
    // SAFETY: the exit device is no Rust memory, and nothing runs afterwards.
    unsafe { (EXIT_BASE as *mut u32).write_volatile(value) };
    loop {
        crate::csr::wait_for_interrupt();
    }
}
