//! The data of peripherals: the blocks of a storage device, the packets of a camera, the results of an accelerator.
//!
//! Why it exists: the transfer moves bytes, whatever they mean. What it deliberately does not know: times.

use bulkhead_abi::peripheral::PACKET_HEADER;

/// A word that depends on a seed and a number: the finaliser of SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number
/// generators", OOPSLA 2014).
pub fn word(seed: u64, number: u64) -> u64 {
    let mut z = seed.wrapping_add((number + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// Bytes generated from a seed; their number is a multiple of eight.
pub fn seeded(seed: u64, bytes: u64) -> Vec<u8> {
    (0..bytes / 8)
        .flat_map(|number| word(seed, number).to_le_bytes())
        .collect()
}

/// Bytes of a packet from `offset` on: the frame's number and the packet's, then words made from seed, frame and packet.
pub fn packet(seed: u64, (frame, line): (u32, u32), offset: u64, bytes: u32) -> Box<[u8]> {
    let name = u64::from(frame) | u64::from(line) << 32;
    let all = (offset..offset + u64::from(bytes)).map(|at| {
        let of = match at < PACKET_HEADER {
            true => name,
            false => word(seed ^ name, at / 8),
        };
        of.to_le_bytes()[(at % 8) as usize]
    });
    all.collect()
}

/// A word again and again; the bytes are a multiple of eight.
pub fn repeated(word: u64, bytes: u32) -> Box<[u8]> {
    word.to_le_bytes().repeat(bytes as usize / 8).into()
}

/// The result of an accelerator: the complement of the bytes, so that a program sees that it has computed.
pub fn computed(mut bytes: Box<[u8]>) -> Box<[u8]> {
    for byte in &mut bytes {
        *byte = !*byte;
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_is_the_same_in_any_pieces() {
        let whole = packet(9, (3, 4), 0, 64);
        assert_eq!(whole[..8], [3, 0, 0, 0, 4, 0, 0, 0]);
        let pieces: Vec<u8> = [(0, 5), (5, 11), (16, 48)]
            .into_iter()
            .flat_map(|(offset, bytes)| packet(9, (3, 4), offset, bytes).into_vec())
            .collect();
        assert_eq!(pieces, *whole);
        assert_ne!(packet(9, (3, 5), 8, 8), packet(9, (3, 4), 8, 8));
        // The first word of SplitMix64 from 0.
        assert_eq!(word(0, 0), 0xE220_A839_7B1D_CDAF);
    }
}
