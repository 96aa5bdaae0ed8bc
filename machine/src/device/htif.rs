//! Host-target interface: the `tohost` word through which bare-metal test programs end.
//!
//! The image says where the word is. An odd value ends the run with exit code `value >> 1`; device 1, command 1 prints a
//! byte, as on Spike's console. Everything else is ignored.

/// The request of a write to the word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HtifEffect {
    /// Nothing.
    None,
    /// End of the run.
    Exit(u32),
    /// A byte for the console. The word must be cleared so that the program sees that the byte was taken.
    Print(u8),
}

/// The word's place.
#[derive(Clone, Copy, Debug)]
pub struct Htif {
    tohost: u64,
}

impl Default for Htif {
    fn default() -> Self {
        Self { tohost: !7 }
    }
}

impl Htif {
    /// The word is at this physical address of the tile.
    pub fn new(tohost: u64) -> Self {
        Self { tohost }
    }

    /// Whether a store goes to the word.
    #[inline]
    pub fn is_at(&self, physical: u64) -> bool {
        physical == self.tohost
    }

    /// Whether an access goes to the 64 bytes around the word.
    #[inline]
    pub fn is_in_line(&self, physical: u64) -> bool {
        (physical ^ self.tohost) < 64
    }

    /// The physical address of the word.
    pub fn word(&self) -> u64 {
        self.tohost
    }

    /// The meaning of the stored value.
    pub fn effect(&self, value: u64) -> HtifEffect {
        let (device, command) = (value >> 56, value >> 48 & 0xFF);
        match (device, command) {
            (0, 0) if value & 1 != 0 => HtifEffect::Exit((value >> 1) as u32),
            (1, 1) => HtifEffect::Print(value as u8),
            _ => HtifEffect::None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_the_test_environment() {
        // riscv-tests: 1 is success, (n << 1) | 1 failure of test n.
        let htif = Htif::new(0x8000_1000);
        assert!(htif.is_at(0x8000_1000) && !htif.is_at(0x8000_1008));
        assert_eq!(htif.effect(1), HtifEffect::Exit(0));
        assert_eq!(htif.effect(7 << 1 | 1), HtifEffect::Exit(7));
        assert_eq!(htif.effect(1 << 56 | 1 << 48 | 65), HtifEffect::Print(65));
        assert_eq!(htif.effect(0), HtifEffect::None);
    }
}
