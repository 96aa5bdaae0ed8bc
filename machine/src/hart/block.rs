//! Decoded blocks: straight-line code within one instruction line, with its static schedule.
//!
//! A block ends at a jump, at an instruction that may change what follows (CSR, fences of translation or code, returns from traps),
//! or at the end of its line. One fetch therefore covers a block, and only the last instruction of a block can straddle a page
//! boundary. Blocks are kept in a direct-mapped table by physical address; operations are relative to the program counter, so all
//! mappings share them.
//!
//! Tiles of a mesh run the same code at the same addresses, and decoded code takes ten times the room of its bytes. So such tiles share
//! blocks ([`BlockCache::shared`]): each tile compares a block with the bytes in its own memory before its first use and after each
//! `fence.i`, and remembers the result in one bit ([`Verified`]). A shared block is never replaced; a tile whose bytes differ leaves.

use super::bus::Bus;
use super::config::HartConfig;
use super::fetch::{FetchBuffer, Missing};
use super::isa::{self, Op, Unit};
use super::results::DIVIDERS;

const TABLE: usize = 8192;
/// Operations kept before the whole cache is dropped; bounds the memory of a simulated hart.
const OPERATIONS: usize = 1 << 18;
/// Shared blocks for instructions that reach into another page. Code of n pages has at most n - 1 of them.
const SHARED_ACROSS: usize = 64;
const BITS: usize = TABLE + SHARED_ACROSS;

/// The place in the table of the block at a physical address.
#[inline(always)]
pub fn slot(physical: u64) -> usize {
    (physical >> 1) as usize & (TABLE - 1)
}

/// A decoded block.
#[derive(Clone, Copy, Debug)]
pub struct Block {
    /// Physical address; bit 0 marks a block of a single operation (see [`BlockCache::get`]). `u64::MAX`: none.
    tag: u64,
    first: u32,
    /// Cycles until the next block can start, if everything hits.
    pub cycles: u16,
    count: u8,
    /// Operations whose results are not ready when the block ends.
    late: u8,
    /// The first of their results.
    late_first: u32,
    /// Cycles from the end of the block until all of them are ready.
    pub beyond: u16,
    /// Bytes of code.
    pub bytes: u8,
    /// The last instruction reaches into the next line.
    pub straddles: bool,
}

impl Block {
    /// Whether this is the block at a physical address.
    #[inline(always)]
    pub fn is_at(&self, physical: u64) -> bool {
        self.tag == physical
    }

    /// Whether the block begins in this line.
    pub fn is_in(&self, line: u64, line_mask: u64) -> bool {
        self.tag & line_mask == line
    }

    /// Whether a result is not ready when the block ends.
    #[inline(always)]
    pub fn is_late(&self) -> bool {
        self.beyond != 0
    }

    fn range(&self) -> std::ops::Range<usize> {
        self.first as usize..self.first as usize + usize::from(self.count)
    }
}

/// No block. It takes no time.
pub const NONE: Block = Block {
    tag: u64::MAX,
    first: 0,
    cycles: 0,
    count: 0,
    late: 0,
    late_first: 0,
    beyond: 0,
    bytes: 0,
    straddles: false,
};

/// The shared blocks whose bytes are those in the memory of this hart, as far as it knows: a bit for each index.
#[derive(Clone)]
pub struct Verified(Box<[u64; BITS.div_ceil(64)]>);

impl Verified {
    /// No block.
    pub fn new() -> Self {
        Self(Box::new([0; BITS.div_ceil(64)]))
    }

    /// Forgets all blocks.
    pub fn clear(&mut self) {
        self.0.fill(0);
    }

    /// Whether the hart may use a block.
    #[inline(always)]
    pub fn has(&self, index: usize) -> bool {
        let word = self.0.get(index / 64);
        word.is_some_and(|word| word >> (index % 64) & 1 != 0)
    }

    fn add(&mut self, index: usize) {
        self.0[index / 64] |= 1 << (index % 64);
    }
}

/// Decoded blocks of a hart, or shared by the harts of several tiles.
#[derive(Clone)]
pub struct BlockCache {
    table: Vec<Block>,
    operations: Vec<Op>,
    /// What each operation occupies beyond its issue, and until which cycle of its block.
    results: Vec<(u64, u32)>,
    /// The same of those that are not done at their block's end.
    late: Vec<(u64, u32)>,
    /// The bits of each instruction.
    bits: Vec<u32>,
    latency: [u32; 9],
    line: u64,
    /// The pipeline decides when an operation issues; blocks have no static schedule and cost no time.
    dynamic: bool,
    /// Blocks are never replaced.
    shared: bool,
}

impl BlockCache {
    /// A cache for a pipeline. The first [`Self::clear`] allocates its memory, so a hart that never runs needs none.
    pub fn new(config: &HartConfig) -> Self {
        Self {
            table: Vec::new(),
            operations: Vec::new(),
            results: Vec::new(),
            late: Vec::new(),
            bits: Vec::new(),
            latency: config.latencies(),
            dynamic: config.interval.is_some(),
            line: config.line.clamp(16, 128).next_power_of_two() as u64,
            shared: false,
        }
    }

    /// An empty cache for all harts with the pipeline of this one.
    pub fn shared(&self) -> Self {
        let mut shared = Self {
            table: Vec::new(),
            operations: Vec::new(),
            results: Vec::new(),
            late: Vec::new(),
            bits: Vec::new(),
            shared: true,
            ..*self
        };
        shared.clear();
        shared
    }

    /// Whether a block that is decoded here is the block that is decoded there.
    pub fn fits(&self, other: &Self) -> bool {
        (self.latency, self.line, self.dynamic) == (other.latency, other.line, other.dynamic)
    }

    /// Drops all blocks. All indices become invalid.
    pub fn clear(&mut self) {
        self.table.clear();
        self.table.resize(TABLE + 1, NONE);
    }

    /// The block with an index that [`Self::get`] or [`Self::across_pages`] returned.
    #[inline(always)]
    pub fn block(&self, index: usize) -> &Block {
        &self.table[index]
    }

    /// The blocks by their places ([`slot`]), without those across pages.
    #[inline(always)]
    pub fn table(&self) -> &[Block; TABLE] {
        let table = self.table.first_chunk();
        table.expect("a block was found, so there is memory for all")
    }

    /// The operations of a block.
    #[inline(always)]
    pub fn operations(&self, block: &Block) -> &[Op] {
        &self.operations[block.first as usize..block.first as usize + block.count as usize]
    }

    /// What each operation of a block occupies beyond its issue, and until which cycle of the block. In order only.
    pub fn results(&self, block: &Block) -> &[(u64, u32)] {
        &self.results[block.range()]
    }

    /// The same of those that are not done when the block ends.
    #[inline(always)]
    pub fn late(&self, block: &Block) -> &[(u64, u32)] {
        let first = block.late_first as usize;
        &self.late[first..first + usize::from(block.late)]
    }

    /// The bits of the instruction of an operation.
    pub fn bits(&self, block: &Block, index: usize) -> u64 {
        self.bits[block.first as usize + index].into()
    }

    /// The index of the decoded block at a physical address, if there is one.
    #[inline(always)]
    pub fn find(&self, physical: u64) -> Option<usize> {
        let index = slot(physical);
        (self.table[index].tag == physical).then_some(index)
    }

    /// The index of the block at a physical address, decoded now if necessary. `single` asks for one operation only (where the next
    /// instruction may have other rights). The index is valid until the next call.
    ///
    /// # Errors
    /// The line that must be fetched first; or there is no memory, or the instruction reaches into another page; or the shared blocks are
    /// not those of this hart's memory.
    #[inline(always)]
    pub fn get<B: Bus>(
        &mut self,
        bus: &mut B,
        fetched: &mut FetchBuffer,
        (physical, single): (u64, bool),
        verified: &mut Option<Verified>,
    ) -> Result<usize, Missing> {
        let tag = physical | single as u64;
        let index = slot(physical);
        let known = verified.as_ref().is_none_or(|all| all.has(index));
        if self.table[index].tag == tag && known {
            return Ok(index);
        }
        let block = self.decode(bus, fetched, physical, single)?;
        if let Some(verified) = verified {
            if self.table[index].tag == u64::MAX {
                self.table[index] = block;
            } else {
                let same = self.is_same(&self.table[index], &block);
                self.forget_from(&block);
                if !same {
                    return Err(Missing::Elsewhere);
                }
            }
            verified.add(index);
        } else {
            self.table[index] = block;
        }
        Ok(index)
    }

    /// Whether two blocks have the same address and the same instructions.
    fn is_same(&self, one: &Block, other: &Block) -> bool {
        one.tag == other.tag && self.bits[one.range()] == self.bits[other.range()]
    }

    /// Copies known blocks from a cache for the same pipeline. False, and nothing is copied: it has other blocks at their places.
    pub fn take_along(&mut self, from: &Self, known: &Verified) -> bool {
        let all = (0..TABLE).filter(|index| known.has(*index));
        let fits = all.clone().all(|index| {
            let (here, there) = (&self.table[index], &from.table[index]);
            let same = here.tag == there.tag && self.bits[here.range()] == from.bits[there.range()];
            here.tag == u64::MAX || same
        });
        if !fits {
            return false;
        }
        for index in all {
            if self.table[index].tag == u64::MAX {
                let block = from.table[index];
                let first = self.operations.len() as u32;
                self.operations.extend(&from.operations[block.range()]);
                self.results.extend(&from.results[block.range()]);
                self.bits.extend(&from.bits[block.range()]);
                let late_first = self.late.len() as u32;
                self.late.extend(from.late(&block));
                self.table[index] = Block {
                    first,
                    late_first,
                    ..block
                };
            }
        }
        true
    }

    fn forget_from(&mut self, block: &Block) {
        let first = block.first as usize;
        self.operations.truncate(first);
        self.results.truncate(first);
        self.late.truncate(block.late_first as usize);
        self.bits.truncate(first);
    }

    /// Whether the shared cache is full: code that changes again and again must not fill the host's memory.
    fn is_full(&self) -> bool {
        self.shared && self.operations.len() > OPERATIONS
    }

    fn make_room(&mut self) {
        if self.operations.len() > OPERATIONS && !self.shared {
            self.clear();
            self.operations.clear();
            self.results.clear();
            self.late.clear();
            self.bits.clear();
        }
    }

    #[cold]
    fn decode<B: Bus>(
        &mut self,
        bus: &mut B,
        fetched: &mut FetchBuffer,
        physical: u64,
        single: bool,
    ) -> Result<Block, Missing> {
        if self.is_full() {
            return Err(Missing::Elsewhere);
        }
        self.make_room();
        fetched.begin(physical);
        let line_end = (physical | (self.line - 1)) + 1;
        let first = self.operations.len();
        let mut block = Block {
            tag: physical | single as u64,
            first: first as u32,
            ..NONE
        };
        let mut at = physical;
        while at < line_end {
            let bits = match fetched.instruction(bus, at) {
                Ok(bits) => bits,
                Err(Missing::Nothing) => break,
                Err(line) => {
                    // The caller calls again once that line has arrived.
                    self.operations.truncate(first);
                    self.bits.truncate(first);
                    return Err(line);
                }
            };
            let mut op = isa::decode(bits);
            if op.length == 4 && at + 2 == line_end {
                if (at + 2) & 0xfff == 0 {
                    // The second half is in another page; the caller makes a separate block for this instruction.
                    if block.count > 0 {
                        break;
                    }
                    return Err(Missing::Nothing);
                }
                block.straddles = true;
            }
            op.offset = (at - physical) as u8;
            at += op.length as u64;
            self.push(op, bits);
            block.count += 1;
            if op.ends_block() || single {
                break;
            }
        }
        if block.count == 0 {
            return Err(Missing::Nothing);
        }
        fetched.clear();
        block.bytes = (at - physical) as u8;
        Ok(self.schedule(block))
    }

    fn push(&mut self, op: Op, bits: u32) {
        self.operations.push(op);
        self.bits
            .push(if op.length == 2 { bits & 0xffff } else { bits });
    }

    /// A block for one instruction whose halves are in different pages. It is not kept in the table because the second page may be
    /// remapped. Shared ones are kept, because another hart may be in the middle of one; `None`: there are too many.
    #[cold]
    pub fn across_pages(&mut self, bits: u32) -> Option<usize> {
        if self.shared {
            let known = |block: &Block| self.bits.get(block.first as usize) == Some(&bits);
            if let Some(at) = self.table[TABLE + 1..].iter().position(known) {
                return Some(TABLE + 1 + at);
            }
            if self.table.len() == BITS || self.is_full() {
                return None;
            }
        }
        self.make_room();
        let first = self.operations.len();
        self.push(isa::decode(bits), bits);
        let block = self.schedule(Block {
            first: first as u32,
            count: 1,
            bytes: 4,
            straddles: true,
            ..NONE
        });
        if self.shared {
            self.table.push(block);
            return Some(self.table.len() - 1);
        }
        self.table[TABLE] = block;
        Some(TABLE)
    }

    /// Gives each new operation its issue cycle: single issue in order, once its sources are ready and no earlier write to its
    /// destination is outstanding; dividers are not pipelined. What earlier blocks left under way is added when the block runs
    /// ([`Results`](super::results::Results)). Returns the block with its cycles until the next one, and with what is not ready then.
    fn schedule(&mut self, block: Block) -> Block {
        let narrow = |cycles: u32| match u16::try_from(cycles) {
            Ok(cycles) => cycles,
            Err(_) => panic!(
                "a block at {:#x} takes {cycles} cycles with latencies of {:?}",
                block.tag, self.latency
            ),
        };
        let first = block.first as usize;
        let late_first = self.late.len();
        let mut ready = [0u32; 64];
        let mut next = 0u32;
        for op in &mut self.operations[first..] {
            let (sources, destination) = op.masks();
            let unit = op.unit();
            let divides = if is_divider(unit) { DIVIDERS } else { 0 };
            let all = sources | destination | divides;
            op.registers = all;
            if self.dynamic {
                op.cycle = 0;
                self.results.push((0, 0));
                continue;
            }
            let mut issue = next;
            for_each_bit(all, |register| issue = issue.max(ready[register]));
            let done = issue + self.latency[unit as usize];
            for_each_bit(destination | divides, |register| ready[register] = done);
            self.results.push((destination | divides, done));
            op.cycle = narrow(issue);
            next = issue + 1;
        }
        if !self.dynamic {
            let results = self.results[first..].iter();
            let late = results.filter(|(occupied, done)| *occupied != 0 && *done > next);
            self.late.extend(late);
        }
        let late = &self.late[late_first..];
        // 0 if nothing is late.
        let beyond = late.iter().fold(0, |most, (_, done)| most.max(done - next));
        Block {
            cycles: narrow(next),
            late: late.len() as u8,
            late_first: late_first as u32,
            beyond: narrow(beyond),
            ..block
        }
    }
}

fn is_divider(unit: Unit) -> bool {
    matches!(unit, Unit::Divide | Unit::FpDivide | Unit::FpSqrt)
}

fn for_each_bit(mut bits: u64, mut action: impl FnMut(usize)) {
    while bits != 0 {
        action(bits.trailing_zeros() as usize);
        bits &= bits - 1;
    }
}
