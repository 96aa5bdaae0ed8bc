//! IEEE 754 arithmetic of the F and D extensions, on raw bits.
//!
//! The host's floating-point unit cannot simply be used: RISC-V requires canonical NaNs, five rounding modes, tininess detected
//! after rounding, saturating conversions and exact accrued flags, and the result may not depend on the host. So every operation
//! has an integer implementation; the host's arithmetic is only a fast path where it provably gives the same result (see
//! `host`). These functions know nothing of registers, instructions or the dynamic rounding mode: the caller passes a resolved
//! [`Rounding`] and ORs into its own `fflags`.
//!
//! Sources: "The RISC-V Instruction Set Manual, Volume I", chapters "F" and "D" (version 2.2 of both); IEEE 754-2019.

mod arithmetic;
mod compare;
mod convert;
mod format;
mod host;
mod operations;
#[cfg(test)]
mod tests;

pub use operations::*;

/// Accrued exception flags as encoded in `fflags` (volume I, "Floating-Point Control and Status Register").
pub mod flag {
    /// Inexact (NX).
    pub const INEXACT: u8 = 1;
    /// Underflow (UF): tiny after rounding, and inexact.
    pub const UNDERFLOW: u8 = 2;
    /// Overflow (OF).
    pub const OVERFLOW: u8 = 4;
    /// Divide by zero (DZ).
    pub const DIVIDE_BY_ZERO: u8 = 8;
    /// Invalid operation (NV).
    pub const INVALID: u8 = 16;
}

/// Rounding mode of one operation, already resolved (the caller resolves the dynamic mode, 7).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Rounding {
    /// RNE: to nearest, ties to even.
    NearestEven = 0,
    /// RTZ: towards zero.
    TowardZero = 1,
    /// RDN: towards minus infinity.
    Down = 2,
    /// RUP: towards plus infinity.
    Up = 3,
    /// RMM: to nearest, ties to the larger magnitude.
    NearestAway = 4,
}

impl Rounding {
    /// All modes, in the order of their encoding.
    pub const ALL: [Self; 5] = [
        Self::NearestEven,
        Self::TowardZero,
        Self::Down,
        Self::Up,
        Self::NearestAway,
    ];

    /// The mode with encoding `bits` (0 to 4); `None` for the reserved ones and for 7 (dynamic).
    #[must_use]
    pub const fn from_bits(bits: u8) -> Option<Self> {
        match bits {
            0 => Some(Self::NearestEven),
            1 => Some(Self::TowardZero),
            2 => Some(Self::Down),
            3 => Some(Self::Up),
            4 => Some(Self::NearestAway),
            _ => None,
        }
    }
}

/// The canonical NaN of binary32.
pub const CANONICAL_NAN_32: u32 = 0x7fc0_0000;
/// The canonical NaN of binary64.
pub const CANONICAL_NAN_64: u64 = 0x7ff8_0000_0000_0000;

/// A binary32 value as held in a 64-bit register: the upper half is all ones.
#[must_use]
pub const fn nan_box(value: u32) -> u64 {
    0xffff_ffff_0000_0000 | value as u64
}

/// The binary32 operand in a 64-bit register: the canonical NaN if the register is not a valid NaN-boxed value. (Stores, moves
/// to integer registers and sign injection's *transfer* forms use the raw bits instead.)
#[must_use]
pub const fn nan_unbox(register: u64) -> u32 {
    if register >> 32 == 0xffff_ffff {
        register as u32
    } else {
        CANONICAL_NAN_32
    }
}
