//! What a program without a kernel finds when it starts.
//!
//! Each of its harts starts at the program's entry in machine mode, with its number (`mhartid`) in `a0` and the address of a flattened device tree
//! in `a1`, as on QEMU's `virt` machine. The tree's `/memory` is the program's part of memory, its `/cpus` are the program's harts, and
//! `/chosen/bootargs` has the arguments as `name=value` with spaces between. The [`Environment`] directly below the tree says the same to programs
//! that have no room to read trees. Below it, down to the program, memory is zero and the program's; at least [`STACK`] bytes for each hart are
//! there, or below [`Environment::stacks`]. Tightly coupled memories of its tile are in the tree as on-chip memory (`mmio-sram`).

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// The fewest bytes below the environment for each hart.
pub const STACK: u64 = 4096;
/// Alignment of the device tree, and so of the environment.
pub const TREE_ALIGNMENT: u64 = 64;
/// [`Environment::magic`]: "BAREPROG".
pub const MAGIC: u64 = 0x474f_5250_4552_4142;
/// The most bytes of arguments.
pub const ARGUMENTS: usize = 480;

/// What a program knows about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct Environment {
    /// [`MAGIC`].
    pub magic: u64,
    /// Harts that run the program.
    pub harts: u32,
    /// 1: there is a console (`memory_map::UART_BASE`).
    pub console: u32,
    /// Bytes of `arguments` that are used.
    pub length: u64,
    /// Where the stacks end, if they are in another memory; 0: directly below this.
    pub stacks: u64,
    /// `name=value`, with spaces between.
    pub arguments: [u8; ARGUMENTS],
}

/// Bytes of an environment.
pub const ENVIRONMENT: u64 = 512;

const _: () = assert!(core::mem::size_of::<Environment>() as u64 == ENVIRONMENT);
const _: () = assert!(ENVIRONMENT.is_multiple_of(TREE_ALIGNMENT));

#[cfg(test)]
mod tests {
    use super::*;
    use core::mem::offset_of;

    #[test]
    fn fields_are_where_programs_of_others_expect_them() {
        assert_eq!(MAGIC.to_le_bytes(), *b"BAREPROG");
        assert_eq!(offset_of!(Environment, harts), 8);
        assert_eq!(offset_of!(Environment, console), 12);
        assert_eq!(offset_of!(Environment, length), 16);
        assert_eq!(offset_of!(Environment, stacks), 24);
        assert_eq!(offset_of!(Environment, arguments), 32);
    }
}
