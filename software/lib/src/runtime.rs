//! Start, end, panic and console of an application.
//!
//! Why it exists: these run before and after the program. What it deliberately does not know: gates.

use bulkhead_abi::environment::{ENVIRONMENT_MAGIC, Environment};
use bulkhead_abi::tilemux::{Ecall, PRINT_TEXT};
use bulkhead_abi::words;
use bulkhead_user::heap::LocalHeap;
use bulkhead_user::user;
use core::fmt::Write;

#[cfg_attr(target_os = "none", global_allocator)]
static HEAP: LocalHeap = LocalHeap::empty();

/// The environment page.
#[inline(always)]
pub fn environment() -> &'static Environment {
    user::environment()
}

/// The activity's name in the description.
pub fn name() -> &'static str {
    words::text(&environment().name)
}

/// First Rust code of every application.
pub fn start(main: fn() -> u64) -> ! {
    let environment = environment();
    assert_eq!(environment.magic, ENVIRONMENT_MAGIC, "no environment");
    user::give_heap(&HEAP, environment);
    exit(main())
}

/// Ends the activity.
pub fn exit(code: u64) -> ! {
    loop {
        user::ecall(Ecall::Exit, code, 0);
    }
}

/// Text for the system's console, which puts the activity's name before each line; text longer than the buffer is printed in
/// pieces.
pub struct Console {
    buffer: [u8; PRINT_TEXT],
    length: usize,
}

impl Console {
    /// Prints one line.
    pub fn line(text: core::fmt::Arguments) {
        let mut console = Self {
            buffer: [0; PRINT_TEXT],
            length: 0,
        };
        // A console that cannot be written must not stop the program.
        let _ = writeln!(console, "{text}");
        console.flush();
    }

    fn flush(&mut self) {
        user::print(&self.buffer[..self.length]);
        self.length = 0;
    }
}

impl Write for Console {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        for character in text.chars() {
            if self.length + character.len_utf8() > self.buffer.len() {
                self.flush();
            }
            let rest = &mut self.buffer[self.length..];
            self.length += character.encode_utf8(rest).len();
        }
        Ok(())
    }
}

#[cfg(target_os = "none")]
#[panic_handler]
fn panic(info: &core::panic::PanicInfo) -> ! {
    Console::line(format_args!("{info}"));
    loop {
        user::ecall(Ecall::Panic, HEAP.is_exhausted().into(), 0);
    }
}
