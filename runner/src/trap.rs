//! Traps in words.
//!
//! What it deliberately does not know: where in the source a program counter is.

use bulkhead_machine::hart::UnhandledTrap;

/// Name of an exception or interrupt (RISC-V privileged architecture, table of `mcause` values).
pub fn cause(cause: u64) -> String {
    let interrupt = cause >> 63 != 0;
    let code = cause & !(1 << 63);
    let name = match (interrupt, code) {
        (false, 0) => "instruction address misaligned",
        (false, 1) => "instruction access fault",
        (false, 2) => "illegal instruction",
        (false, 3) => "breakpoint",
        (false, 4) => "load address misaligned",
        (false, 5) => "load access fault",
        (false, 6) => "store address misaligned",
        (false, 7) => "store access fault",
        (false, 8) => "environment call from user mode",
        (false, 9) => "environment call from supervisor mode",
        (false, 11) => "environment call from machine mode",
        (false, 12) => "instruction page fault",
        (false, 13) => "load page fault",
        (false, 15) => "store page fault",
        (true, 1) => "supervisor software interrupt",
        (true, 3) => "machine software interrupt",
        (true, 5) => "supervisor timer interrupt",
        (true, 7) => "machine timer interrupt",
        (true, 9) => "supervisor external interrupt",
        (true, 11) => "machine external interrupt",
        (true, _) => return format!("interrupt {code}"),
        (false, _) => return format!("exception {code}"),
    };
    name.to_owned()
}

/// `illegal instruction at 0x80000004, value 0x0`.
pub fn describe(trap: &UnhandledTrap) -> String {
    format!(
        "{} at {:#x}, value {:#x}",
        cause(trap.cause),
        trap.pc,
        trap.value
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_have_their_names() {
        assert_eq!(cause(2), "illegal instruction");
        assert_eq!(cause(1 << 63 | 7), "machine timer interrupt");
        assert_eq!(cause(24), "exception 24");
    }
}
