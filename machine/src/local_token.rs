//! Whose an access to a tile's memory is, if it is not a hart's.
//!
//! Why it exists: data transfer unit, network card and streaming unit use the same caches, and each line that arrives must come to the one
//! that asked. What it deliberately does not know: what the access is for.

/// The number of an access to a tile's memory, and whose it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LocalToken(u32);

/// The parts of a tile that access its memory, without the harts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The data transfer unit.
    Unit,
    /// The network card.
    Card,
    /// The streaming unit.
    Stream,
}

/// Bits of a number. Those above are the part.
const BITS: u32 = 30;

impl Part {
    const ALL: [Part; 3] = [Part::Unit, Part::Card, Part::Stream];

    /// The token that follows the one with this number. Numbers begin again after very many.
    pub fn token(self, last: &mut u32) -> LocalToken {
        *last = (*last + 1) % (1 << BITS);
        LocalToken((self as u32) << BITS | *last)
    }
}

impl LocalToken {
    /// Whose it is.
    pub fn part(self) -> Part {
        Part::ALL[(self.0 >> BITS) as usize]
    }

    /// Its number, which is unique among the accesses of its part that are under way.
    pub fn number(self) -> u32 {
        self.0 % (1 << BITS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_says_whose_it_is_even_when_numbers_begin_again() {
        for part in Part::ALL {
            let mut last = (1 << BITS) - 2;
            let tokens = [(); 3].map(|()| part.token(&mut last));
            assert_eq!(tokens.map(LocalToken::part), [part; 3]);
            assert_eq!(tokens.map(LocalToken::number), [(1 << BITS) - 1, 0, 1]);
        }
    }
}
