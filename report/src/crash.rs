//! A crash as a reader sees it: the address that was accessed, the call chain, and the registers.
//!
//! Why it exists: terminal, pages and data show the same. What it deliberately does not know: how a stack is read.

use serde::{Deserialize, Serialize};

/// Names of the registers in the calling convention.
const NAMES: [&str; 32] = [
    "zero", "ra", "sp", "gp", "tp", "t0", "t1", "t2", "s0", "s1", "a0", "a1", "a2", "a3", "a4",
    "a5", "a6", "a7", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "t3", "t4",
    "t5", "t6",
];

/// A crash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Crash {
    /// The exception in words.
    pub cause: String,
    /// Where it happened.
    pub pc: u64,
    /// The address that was accessed, if the crash was a failed access.
    pub address: Option<u64>,
    /// Integer registers `x0` to `x31`.
    pub registers: Vec<u64>,
    /// Function, file and line of each frame, the innermost first.
    pub backtrace: Vec<String>,
    /// There are more frames.
    pub truncated: bool,
}

/// The stack pointer among the registers.
const SP: usize = 2;
/// An access below this is probably one through a null pointer.
const NULL: u64 = 0x1000;
/// An access this close to the stack pointer may be an access to the stack.
const NEAR: u64 = 1 << 20;

impl Crash {
    /// Whether the address that was accessed is probably on the stack.
    pub fn is_near_stack(&self) -> bool {
        self.address
            .is_some_and(|address| address >= NULL && self.above(address).is_some())
    }

    /// How far above the stack pointer an address is, if it is near.
    fn above(&self, address: u64) -> Option<u64> {
        let above = address.wrapping_sub(*self.registers.get(SP)?);
        (above < NEAR).then_some(above)
    }

    /// The usual cause of an access to such an address.
    fn hint(&self, address: u64) -> String {
        match (address, self.above(address)) {
            (0..NULL, _) => ", near 0: a null pointer?".to_owned(),
            (_, Some(above)) => {
                format!(", {above} bytes above the stack pointer: is the stack too small?")
            }
            _ => String::new(),
        }
    }

    /// For the terminal: a few lines, each indented.
    pub fn text(&self) -> String {
        let mut text = String::new();
        if let Some(address) = self.address {
            text.push_str(&format!("  address {address:#x}{}\n", self.hint(address)));
        }
        text.push_str("  backtrace, the innermost function first:\n");
        let mut index = 0;
        for same in self.backtrace.chunk_by(|one, next| one == next) {
            let times = match same.len() {
                1 => String::new(),
                times => format!(" ({times} times)"),
            };
            text.push_str(&format!("  {index:>4}: {}{times}\n", same[0]));
            index += same.len();
        }
        if self.truncated {
            text.push_str("        and more; does a function call itself without end?\n");
        }
        text.push_str("  registers:\n");
        let named: Vec<String> = NAMES
            .iter()
            .zip(&self.registers)
            .skip(1)
            .map(|(name, value)| format!("{name:>5} {value:016x}"))
            .collect();
        for row in named.chunks(4) {
            text.push_str(&format!("  {}\n", row.join("")));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crash_reads_well() {
        let mut backtrace = vec!["deeper+0xf at deep.c:5".to_owned(); 31];
        backtrace.push("main+0x1d at deep.c:11".to_owned());
        let crash = Crash {
            cause: "store page fault".to_owned(),
            pc: 0x1000_101e,
            address: Some(0x10),
            registers: (0..32).collect(),
            backtrace,
            truncated: true,
        };
        let text = crash.text();
        assert!(
            text.contains("address 0x10, near 0: a null pointer?\n"),
            "{text}"
        );
        assert!(
            text.contains(
                "     0: deeper+0xf at deep.c:5 (31 times)\n    31: main+0x1d at deep.c:11\n"
            ),
            "{text}"
        );
        assert!(
            text.contains("     ra 0000000000000001   sp 0000000000000002"),
            "{text}"
        );
        // The frame is larger than the rest of the stack.
        let large = Crash {
            address: Some(0x2062),
            ..crash.clone()
        };
        let said = "address 0x2062, 8288 bytes above the stack pointer: is the stack too small?\n";
        assert!(large.text().contains(said), "{}", large.text());
        let back: Crash = serde_json::from_str(&serde_json::to_string(&crash).unwrap()).unwrap();
        assert_eq!(back, crash);
    }
}
