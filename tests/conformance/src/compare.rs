//! Reads results and compares them.
//!
//! One table, [`DIFFERENCES`], lists what may differ between two correct harts, each line with its reason.

use crate::layout::*;
use crate::program::Category;
use crate::program::Program;

/// What a test left behind.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// Integer registers, FP registers, CSRs as in [`RESULT_CSRS`].
    pub words: Vec<u64>,
    /// Log entries: kind (1 machine, 2 supervisor), cause, epc, tval, status, ip, ie.
    pub log: Vec<[u64; LOG_WORDS as usize]>,
    /// The data area.
    pub data: Vec<u8>,
    /// The page tables.
    pub tables: Vec<u8>,
}

fn trap(program: &Program, entry: &[u64; LOG_WORDS as usize]) -> String {
    let at = program
        .at(entry[2])
        .map_or(String::new(), |i| format!(" ({})", i.text));
    format!(
        "handler {} cause {:#x} epc {:#x}{at} tval {:#x} status {:#x} ip {:#x} ie {:#x}",
        entry[0], entry[1], entry[2], entry[3], entry[4], entry[5], entry[6]
    )
}

impl Outcome {
    /// The traps and CSRs as text.
    #[must_use]
    pub fn text(&self, program: &Program) -> String {
        let mut text = String::new();
        for entry in &self.log {
            text += &format!("  {}\n", trap(program, entry));
        }
        for (index, word) in self.words.iter().enumerate() {
            text += &format!("  {}={word:#x}", item(index));
        }
        text + "\n"
    }
}

fn item(index: usize) -> String {
    match index {
        0..32 => format!("x{index}"),
        32..64 => format!("f{}", index - 32),
        _ => RESULT_CSRS[index - 64].0.to_owned(),
    }
}

/// Reads the result of a program at an address of the memory.
#[must_use]
pub fn read(memory: &[u8], result: u64, program: &Program) -> Outcome {
    let mut at = (result - DRAM) as usize;
    let mut take = |bytes: u64| {
        let slice = &memory[at..at + bytes as usize];
        at += bytes as usize;
        slice
    };
    let words_of = |bytes: &[u8]| -> Vec<u64> {
        bytes
            .chunks_exact(8)
            .map(|word| u64::from_le_bytes(word.try_into().expect("eight bytes")))
            .collect()
    };
    let words = words_of(take(RESULT_WORDS * 8));
    let log = words_of(take(LOG_BYTES));
    let entries = log[0].min(LOG_LIMIT) as usize;
    let log = log[1..]
        .chunks_exact(LOG_WORDS as usize)
        .take(entries)
        .map(|entry| entry.try_into().expect("an entry"))
        .collect();
    let data = take(program.data.len() as u64).to_vec();
    let tables = take(program.tables.len() as u64).to_vec();
    Outcome {
        words,
        log,
        data,
        tables,
    }
}

/// Legitimate differences: the category (`None`: all), the item of the result, the bits that are not compared, and the
/// reason.
pub const DIFFERENCES: &[(Option<Category>, &str, u64, &str)] = &[
    (
        Some(Category::Asynchronous),
        "ip",
        0x80,
        "whether the timer is due at a trap depends on the host's time",
    ),
    (
        Some(Category::Asynchronous),
        "mip",
        0x80,
        "the same at the end of a program that had too many traps",
    ),
];

/// What the generators leave out because the two sides may behave differently (or do, in QEMU 7.2), and the reason.
pub const LEFT_OUT: &[(&str, &str)] = &[
    (
        "SC at a misaligned or unmapped address after a failed LR",
        "it faults (volume I, \"Load-Reserved/Store-Conditional Instructions\"); in QEMU it fails before it looks at the address",
    ),
    (
        "a set or clear of a CSR by a register (not x0) that holds zero",
        "it is a write (volume I, \"CSR Instructions\"); QEMU takes it for a read: no exception for read-only CSRs, FS not dirty",
    ),
    (
        "bit 0 of mepc and sepc, bits of pmpaddr above 53, bits of mip and mie without an interrupt",
        "they are read-only zero (volume II); QEMU keeps what is written",
    ),
    (
        "MPP = 2, PMP entries that can be written but not read",
        "reserved values of WARL fields: each side may keep or change them",
    ),
    (
        "SRET with MPRV set",
        "it clears MPRV (volume II, \"Memory Privilege in mstatus Register\"); QEMU 7.2 forgets that",
    ),
    (
        "misaligned accesses to addresses where nothing is, atomic operations there",
        "mtval tells the failing part of the access and the cause is that of a store; QEMU splits them into accesses of its own",
    ),
    (
        "less than 4-byte aligned accesses at the edges of PMP regions, accesses across pages under PMP",
        "a partial match fails (volume II, \"Physical Memory Protection\"); QEMU looks at the first and the last byte only, and at \
         the next physical instead of the next virtual page",
    ),
    (
        "PMP entries that only deny the writing of page tables",
        "setting A and D needs the right to write; QEMU does not check it",
    ),
    (
        "a jump in supervisor mode to a user page that was read with SUM, without SFENCE.VMA between",
        "it is a page fault; QEMU finds the right to execute in its TLB",
    ),
    (
        "the first half of a 4-byte instruction at the end of memory",
        "an access fault; QEMU stops with a failed assertion",
    ),
    (
        "values of cycle, time, instret, hpmcounters, mvendorid, marchid, mimpid",
        "they are the implementation's own; whether they can be read is compared",
    ),
];

fn mask(category: Category, item: &str) -> u64 {
    !DIFFERENCES
        .iter()
        .filter(|(only, name, ..)| *name == item && only.is_none_or(|only| only == category))
        .fold(0, |mask, (_, _, bits, _)| mask | bits)
}

/// The first item in which two results differ; `None` if they agree.
#[must_use]
pub fn difference(program: &Program, qemu: &Outcome, ours: &Outcome) -> Option<String> {
    const FIELDS: [&str; LOG_WORDS as usize] =
        ["handler", "cause", "epc", "tval", "status", "ip", "ie", ""];
    let unequal =
        |item: &str, left: u64, right: u64| (left ^ right) & mask(program.category, item) != 0;
    let pair = |left: u64, right: u64| format!("QEMU {left:#x}, ours {right:#x}");
    for (index, (left, right)) in qemu.log.iter().zip(&ours.log).enumerate() {
        for field in 0..FIELDS.len() {
            if unequal(FIELDS[field], left[field], right[field]) {
                let name = FIELDS[field];
                let mut text = format!("trap {index}: {name}: {}", pair(left[field], right[field]));
                for (who, entry) in [("QEMU", left), ("ours", right)] {
                    text += &format!("\n    {who}: {}", trap(program, entry));
                }
                return Some(text);
            }
        }
    }
    if qemu.log.len() != ours.log.len() {
        let mut text = format!(
            "number of traps: QEMU {}, ours {}",
            qemu.log.len(),
            ours.log.len()
        );
        let (who, log) = if qemu.log.len() > ours.log.len() {
            ("QEMU", &qemu.log)
        } else {
            ("ours", &ours.log)
        };
        let entry = log[qemu.log.len().min(ours.log.len())];
        text += &format!("\n    only {who}: {}", trap(program, &entry));
        return Some(text);
    }
    for (index, (&left, &right)) in qemu.words.iter().zip(&ours.words).enumerate() {
        let name = item(index);
        if unequal(&name, left, right) {
            return Some(format!("{name}: {}", pair(left, right)));
        }
    }
    for (name, base, left, right) in [
        ("data", DATA, &qemu.data, &ours.data),
        ("tables", TABLES, &qemu.tables, &ours.tables),
    ] {
        if let Some(at) = left
            .chunks(8)
            .zip(right.chunks(8))
            .position(|(left, right)| left != right)
        {
            let word = |bytes: &[u8]| {
                u64::from_le_bytes(bytes[at * 8..at * 8 + 8].try_into().expect("eight bytes"))
            };
            return Some(format!(
                "{name} at {:#x}: {}",
                base + at as u64 * 8,
                pair(word(left), word(right))
            ));
        }
    }
    None
}
