//! Maps an address to its channel, bank and row.
//!
//! Why it exists: only this map decides whether two programs meet in a bank, and every partitioning by banks needs it. What
//! it deliberately does not know: time, queues, bytes.

pub use crate::config::dram::AddressMap;

/// Where an address lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The channel.
    pub channel: u32,
    /// The bank within the channel.
    pub bank: u32,
    /// The row of the bank.
    pub row: u64,
    /// The byte of the row.
    pub column: u64,
}

/// Divides `address` among `parts`. Returns the part, and the address within it.
fn divide(address: u64, parts: u32, interleave: Option<u64>, size: u64) -> (u32, u64) {
    let parts = u64::from(parts);
    match interleave {
        Some(bytes) => {
            let block = address / bytes;
            (
                (block % parts) as u32,
                block / parts * bytes + address % bytes,
            )
        }
        None => {
            let each = size / parts;
            ((address / each) as u32, address % each)
        }
    }
}

impl AddressMap {
    /// Where an address below `size` lies.
    pub fn place(&self, address: u64) -> Place {
        let (channel, address) = divide(address, self.channels, self.channel_interleave, self.size);
        let (bank, address) = divide(
            address,
            self.banks,
            self.bank_interleave,
            self.size / u64::from(self.channels),
        );
        let row = address / self.row;
        let mixed = if self.xor {
            bank ^ (row as u32 & (self.banks - 1))
        } else {
            bank
        };
        Place {
            channel,
            bank: mixed,
            row,
            column: address % self.row,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rustc_hash::FxHashSet;

    const PLAIN: AddressMap = AddressMap {
        size: 1 << 20,
        channels: 1,
        channel_interleave: None,
        banks: 8,
        bank_interleave: Some(8192),
        row: 8192,
        xor: false,
    };

    fn at(channel: u32, bank: u32, row: u64, column: u64) -> Place {
        Place {
            channel,
            bank,
            row,
            column,
        }
    }

    #[test]
    fn rows_go_round_the_banks() {
        // 8192 bytes per row: the next 8192 bytes are in the next bank, and after eight banks comes the next row.
        assert_eq!(PLAIN.place(8191), at(0, 0, 0, 8191));
        assert_eq!(PLAIN.place(8192), at(0, 1, 0, 0));
        assert_eq!(PLAIN.place(8 * 8192 + 5), at(0, 0, 1, 5));
    }

    #[test]
    fn without_interleaving_a_bank_is_one_part_of_the_memory() {
        let map = AddressMap {
            bank_interleave: None,
            ..PLAIN
        };
        // 1 MiB in 8 banks: 128 KiB each, 16 rows.
        assert_eq!(map.place(8192), at(0, 0, 1, 0));
        assert_eq!(map.place((128 << 10) + 3), at(0, 1, 0, 3));
    }

    #[test]
    fn lines_go_round_channels_and_banks() {
        let map = AddressMap {
            channels: 2,
            channel_interleave: Some(256),
            bank_interleave: Some(64),
            ..PLAIN
        };
        // 256 bytes per channel; within a channel 64 bytes per bank, so a row of 8192 has 128 such pieces.
        assert_eq!(map.place(256), at(1, 0, 0, 0));
        assert_eq!(map.place(64), at(0, 1, 0, 0));
        assert_eq!(map.place(512), at(0, 4, 0, 0));
        assert_eq!(map.place(1024), at(0, 0, 0, 64));
    }

    #[test]
    fn exclusive_or_spreads_a_stride_of_rows() {
        let map = AddressMap { xor: true, ..PLAIN };
        // Without the exclusive or, a stride of 8 rows stays in bank 0; with it, row k is in bank 0 xor k.
        let banks: Vec<u32> = (0..8).map(|k| map.place(k * 65536).bank).collect();
        assert_eq!(banks, [0, 1, 2, 3, 4, 5, 6, 7]);
        assert!((0..8).all(|k| PLAIN.place(k * 65536).bank == 0));
    }

    proptest! {
        /// No two addresses share a place, and every place is inside the memory: the map is a bijection.
        #[test]
        fn every_byte_has_its_own_place(channels in 0u32..2, banks in 0u32..4, row in 6u32..9, channel in prop::option::of(4u32..9), bank in prop::option::of(4u32..9), xor: bool) {
            let (channels, banks, row) = (1 << channels, 1 << banks, 1u64 << row);
            let map = AddressMap {
                size: u64::from(channels * banks) * row * 4,
                channels,
                channel_interleave: channel.map(|c| 1 << c),
                banks,
                bank_interleave: bank.map(|b| (1u64 << b).min(row)),
                row,
                xor,
            };
            let mut seen = FxHashSet::default();
            for address in 0..map.size {
                let place = map.place(address);
                prop_assert!(place.channel < channels && place.bank < banks && place.row < 4 && place.column < row);
                prop_assert!(seen.insert(place));
            }
        }
    }
}
