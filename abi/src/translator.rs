//! An address translator in front of a memory: it drops bits of the address.
//!
//! With cache colours, a program has only every n-th group of pages of a memory, and the others would be lost. The translator makes a memory appear in a
//! larger window, in which each byte has a name for each value of the dropped bits. A program that uses one value has one colour, and no byte of
//! the memory is lost (mpsoc-ecrts19, Section 6.4).

/// The address behind the translator: without the bits of `dropped`; those above move down.
pub const fn drop_bits(address: u64, dropped: u64) -> u64 {
    let (mut address, mut rest) = (address, dropped);
    while rest != 0 {
        let bit = 1 << (63 - rest.leading_zeros());
        address = address & (bit - 1) | (address >> 1) & !(bit - 1);
        rest &= !bit;
    }
    address
}

/// The name of an address behind the translator whose dropped bits have this value (its lowest bit is that of the lowest dropped bit).
pub const fn insert_bits(address: u64, dropped: u64, value: u64) -> u64 {
    let (mut address, mut rest, mut value) = (address, dropped, value);
    while rest != 0 {
        let bit = 1 << rest.trailing_zeros();
        let above = (address & !(bit - 1)) << 1;
        address = address & (bit - 1) | above | ((value & 1) * bit);
        (rest, value) = (rest & !bit, value >> 1);
    }
    address
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_those_of_the_paper() {
        // mpsoc-ecrts19, Section 6.4 and Figure 7: bits 14 and 15 of 0x023456.
        assert_eq!(drop_bits(0x02_3456, 0b11 << 14), 0x0_B456);
    }

    #[test]
    fn each_byte_has_a_name_for_each_value() {
        for dropped in [0, 0b11 << 12, 1 << 12 | 1 << 15, 0b1011 << 13] {
            let values = 1u64 << u64::count_ones(dropped);
            for address in (0..1 << 18).step_by(0x7F1) {
                for value in 0..values {
                    let name = insert_bits(address, dropped, value);
                    assert_eq!(drop_bits(name, dropped), address);
                    assert_eq!(name & ((1 << 12) - 1), address & ((1 << 12) - 1));
                    let mut bits = (0..64).filter(|bit| dropped >> bit & 1 != 0).enumerate();
                    assert!(bits.all(|(i, bit)| name >> bit & 1 == value >> i & 1));
                }
            }
        }
    }
}
