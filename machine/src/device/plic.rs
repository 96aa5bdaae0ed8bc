//! Platform-level interrupt controller: which interrupts of other parts of the chip are pending, and which contexts get them.
//!
//! Why it exists: parts interrupt each other by messages. Software must identify the source of an interrupt, and choose which sources may
//! interrupt it and in which order. Registers ([`bulkhead_abi::plic`]) and rules are those of the RISC-V PLIC Specification 1.0.0. A
//! message is an edge. A gateway passes one request on at a time; a message that comes between claim and completion is kept, once, and
//! becomes a request at the completion. (The specification lets a gateway count such edges; this one counts to 1.) What it deliberately
//! does not know: when a line reaches its hart, and the senders of messages.

use bulkhead_abi::plic::{
    CLAIM, CONTEXT_SIZE, ENABLE, ENABLE_SIZE, PENDING, PRIORITY_MAX, SOURCES, THRESHOLD,
};

/// Words of a bit for each source.
const WORDS: usize = SOURCES as usize / 32 + 1;

/// Bits by source; bit 0 is never set.
type Bits = [u32; WORDS];

/// See the module's documentation.
#[derive(Clone, Debug)]
pub struct Plic {
    priorities: [u32; SOURCES as usize + 1],
    pending: Bits,
    /// Claimed, and not completed.
    served: Bits,
    /// A message has come since the claim.
    again: Bits,
    contexts: Vec<Context>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Context {
    enabled: Bits,
    threshold: u32,
}

/// The kind of a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Register {
    Priority(usize),
    Pending(usize),
    Enable(usize, usize),
    Threshold(usize),
    Claim(usize),
    /// It reads 0 and ignores writes: a source or a context that is not there.
    None,
}

fn bit(source: u32) -> (usize, u32) {
    (source as usize / 32, 1 << (source % 32))
}

fn has(bits: &Bits, source: u32) -> bool {
    let (word, bit) = bit(source);
    bits[word] & bit != 0
}

fn set(bits: &mut Bits, source: u32, value: bool) {
    let (word, bit) = bit(source);
    match value {
        true => bits[word] |= bit,
        false => bits[word] &= !bit,
    }
}

/// The enable bits of a word that belong to sources.
fn mask(word: usize) -> u32 {
    let sources = (1..=SOURCES).filter(|source| bit(*source).0 == word);
    sources.fold(0, |mask, source| mask | bit(source).1)
}

impl Plic {
    /// After reset: nothing is pending or enabled, and all priorities and thresholds are 0.
    pub fn new(contexts: usize) -> Self {
        Self {
            priorities: [0; SOURCES as usize + 1],
            pending: [0; WORDS],
            served: [0; WORDS],
            again: [0; WORDS],
            contexts: vec![Context::default(); contexts],
        }
    }

    /// Number of contexts.
    pub fn contexts(&self) -> usize {
        self.contexts.len()
    }

    /// A message of a source has come.
    pub fn message(&mut self, source: u32) {
        assert!(
            (1..=SOURCES).contains(&source),
            "the interrupt controller has no source {source}"
        );
        match has(&self.served, source) {
            true => set(&mut self.again, source, true),
            false => set(&mut self.pending, source, true),
        }
    }

    /// The pending and enabled source of the highest priority, and of these the lowest number; 0: none.
    fn best(&self, context: usize) -> u32 {
        let enabled = &self.contexts[context].enabled;
        let mut best = 0;
        for (word, (pending, enabled)) in (0..).zip(self.pending.iter().zip(enabled)) {
            let mut bits = pending & enabled;
            while bits != 0 {
                let source = word * 32 + bits.trailing_zeros();
                bits &= bits - 1;
                // Source 0 has priority 0, so what never interrupts is never better.
                if self.priorities[source as usize] > self.priorities[best as usize] {
                    best = source;
                }
            }
        }
        best
    }

    /// The level of a context's line.
    pub fn level(&self, context: usize) -> bool {
        let best = self.best(context);
        self.priorities[best as usize] > self.contexts[context].threshold
    }

    fn register(&self, offset: u64, bytes: u8) -> Option<Register> {
        if bytes != 4 || !offset.is_multiple_of(4) {
            return None;
        }
        let contexts = self.contexts.len() as u64;
        Some(match offset {
            ..PENDING if offset / 4 <= u64::from(SOURCES) => {
                Register::Priority(offset as usize / 4)
            }
            PENDING..ENABLE if offset - PENDING < 4 * WORDS as u64 => {
                Register::Pending((offset - PENDING) as usize / 4)
            }
            ENABLE..THRESHOLD => {
                let (context, within) = (
                    (offset - ENABLE) / ENABLE_SIZE,
                    (offset - ENABLE) % ENABLE_SIZE,
                );
                match context < contexts && within < 4 * WORDS as u64 {
                    true => Register::Enable(context as usize, within as usize / 4),
                    false => Register::None,
                }
            }
            THRESHOLD.. => {
                let offset = offset - THRESHOLD;
                let (context, within) = (offset / CONTEXT_SIZE, offset % CONTEXT_SIZE);
                match (context < contexts, within) {
                    (true, 0) => Register::Threshold(context as usize),
                    (true, CLAIM) => Register::Claim(context as usize),
                    _ => Register::None,
                }
            }
            _ => Register::None,
        })
    }

    /// Reads a register; a read of a claim register claims. `None`: nothing answers an access of this length there.
    pub fn read(&mut self, offset: u64, bytes: u8) -> Option<u64> {
        let value = match self.register(offset, bytes)? {
            Register::Priority(source) => self.priorities[source],
            Register::Pending(word) => self.pending[word],
            Register::Enable(context, word) => self.contexts[context].enabled[word],
            Register::Threshold(context) => self.contexts[context].threshold,
            Register::Claim(context) => self.claim(context),
            Register::None => 0,
        };
        Some(value.into())
    }

    /// The threshold has no effect on claims.
    fn claim(&mut self, context: usize) -> u32 {
        let best = self.best(context);
        if best != 0 {
            set(&mut self.pending, best, false);
            set(&mut self.served, best, true);
        }
        best
    }

    /// Writes a register. `None`: nothing answers an access of this length there.
    pub fn write(&mut self, offset: u64, bytes: u8, value: u64) -> Option<()> {
        let value = value as u32;
        match self.register(offset, bytes)? {
            Register::Priority(0) | Register::Pending(_) | Register::None => {}
            Register::Priority(source) => self.priorities[source] = value & PRIORITY_MAX,
            Register::Enable(context, word) => {
                self.contexts[context].enabled[word] = value & mask(word);
            }
            Register::Threshold(context) => {
                self.contexts[context].threshold = value & PRIORITY_MAX;
            }
            Register::Claim(context) => self.complete(context, value),
        }
        Some(())
    }

    /// A completion counts if the context has enabled the source, whichever context has claimed it.
    fn complete(&mut self, context: usize, source: u32) {
        let enabled = &self.contexts[context].enabled;
        if !(1..=SOURCES).contains(&source) || !has(enabled, source) || !has(&self.served, source) {
            return;
        }
        set(&mut self.served, source, false);
        if has(&self.again, source) {
            set(&mut self.again, source, false);
            set(&mut self.pending, source, true);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const CLAIM_0: u64 = THRESHOLD + CLAIM;
    const CLAIM_1: u64 = CLAIM_0 + CONTEXT_SIZE;

    /// Two contexts; both have enabled all sources, which have priority 1.
    fn open() -> Plic {
        let mut plic = Plic::new(2);
        for source in 1..=SOURCES {
            plic.write(4 * u64::from(source), 4, 1).unwrap();
        }
        for context in 0..2 {
            for word in 0..WORDS as u64 {
                let at = ENABLE + context * ENABLE_SIZE + 4 * word;
                plic.write(at, 4, u64::MAX).unwrap();
            }
        }
        plic
    }

    #[test]
    fn a_claim_takes_the_highest_priority_and_then_the_lowest_number() {
        let mut plic = open();
        for source in [9, 40, 3, 128] {
            plic.message(source);
        }
        plic.write(4 * 40, 4, 5).unwrap();
        plic.write(4 * 128, 4, 5).unwrap();
        for expected in [40, 128, 3, 9, 0] {
            assert_eq!(plic.level(0), expected != 0);
            assert_eq!(plic.read(CLAIM_0, 4), Some(expected));
        }
    }

    #[test]
    fn a_threshold_masks_its_own_priority_and_no_claim() {
        let mut plic = open();
        plic.message(7);
        plic.write(THRESHOLD, 4, 1).unwrap();
        assert_eq!((plic.level(0), plic.level(1)), (false, true));
        plic.write(4 * 7, 4, 2).unwrap();
        assert!(plic.level(0));
        plic.write(THRESHOLD, 4, 7).unwrap();
        assert!(!plic.level(0));
        assert_eq!(plic.read(CLAIM_0, 4), Some(7));
        assert!(!plic.level(1));
    }

    #[test]
    fn priority_0_never_interrupts_and_only_enabled_sources_do() {
        let mut plic = open();
        plic.message(5);
        plic.write(4 * 5, 4, 0).unwrap();
        assert!(!plic.level(0));
        assert_eq!(plic.read(CLAIM_0, 4), Some(0));
        assert_eq!(plic.read(PENDING, 4), Some(1 << 5));
        plic.write(4 * 5, 4, 1).unwrap();
        plic.write(ENABLE, 4, 0).unwrap();
        assert_eq!((plic.level(0), plic.level(1)), (false, true));
        assert_eq!(plic.read(CLAIM_0, 4), Some(0));
    }

    #[test]
    fn what_comes_while_an_interrupt_is_served_comes_once_more() {
        let mut plic = open();
        plic.message(2);
        plic.message(2);
        assert_eq!(plic.read(CLAIM_0, 4), Some(2));
        plic.message(2);
        plic.message(2);
        assert!(!plic.level(0));
        assert_eq!(plic.read(CLAIM_1, 4), Some(0));
        // Another context may complete it; one that has not enabled it, and other numbers, may not.
        plic.write(ENABLE + ENABLE_SIZE, 4, 0).unwrap();
        for (at, number) in [(CLAIM_1, 2), (CLAIM_0, 3), (CLAIM_0, 0), (CLAIM_0, 5000)] {
            plic.write(at, 4, number).unwrap();
            assert!(!plic.level(0), "{at:#x} {number}");
        }
        plic.write(CLAIM_0, 4, 2).unwrap();
        assert!(plic.level(0));
        assert_eq!(plic.read(CLAIM_0, 4), Some(2));
        plic.write(CLAIM_0, 4, 2).unwrap();
        assert!(!plic.level(0));
    }

    #[test]
    fn what_is_not_there_reads_0_and_other_lengths_fault() {
        let mut plic = open();
        for at in [
            0,
            4 * 129,
            PENDING + 0x40,
            THRESHOLD + 2 * CONTEXT_SIZE,
            ENABLE + 2 * ENABLE_SIZE,
            THRESHOLD + 8,
        ] {
            plic.write(at, 4, u64::MAX).unwrap();
            assert_eq!(plic.read(at, 4), Some(0), "{at:#x}");
        }
        // Source 0 cannot be enabled.
        assert_eq!(plic.read(ENABLE, 4), Some(0xFFFF_FFFE));
        assert_eq!(plic.read(ENABLE + 16, 4), Some(1));
        assert_eq!(plic.read(4, 8), None);
        assert_eq!(plic.write(6, 4, 1), None);
    }

    proptest! {
        /// A message is never lost: at the end, each source that sent one after its last claim is pending, or kept until its completion.
        #[test]
        fn no_message_is_lost(steps in prop::collection::vec((1u32..6, 0u8..3), 0..60)) {
            let mut plic = open();
            let mut owed = [false; 6];
            let mut served = [false; 6];
            for (source, what) in steps {
                match what {
                    0 => {
                        plic.message(source);
                        owed[source as usize] = true;
                    }
                    1 => {
                        let got = plic.read(CLAIM_0, 4).unwrap() as usize;
                        let first = (1..6).find(|s| owed[*s] && !served[*s]);
                        prop_assert_eq!(got, first.unwrap_or(0));
                        if got != 0 {
                            (owed[got], served[got]) = (false, true);
                        }
                    }
                    _ => {
                        plic.write(CLAIM_0, 4, source.into()).unwrap();
                        served[source as usize] = false;
                    }
                }
            }
        }
    }
}
