//! Whether compiled procedures need their stack, or registers, behind a call that ends a job.
//!
//! Why it exists: in languages whose tasks wait in the middle of a procedure, only an analysis can refuse a task that needs values that are
//! lost then. It reads the compiler's assembly, which is the assembler's only input. What it deliberately does not know: the language, and
//! the kernel.
//!
//! A value is needed if some path from behind the call reads it before it writes it: a register, or a byte of the procedure's own frame. The paths are those
//! of the control flow, feasible or not, so the analysis may refuse too much and never too little: an instruction that it does not know, a jump to somewhere
//! else, or the address of a variable of the frame in a register are refused, and a return needs the return address and what the caller wants to find again.
//! What other procedures had on the stack cannot be needed: they have not returned, so their return is behind a return of a procedure that was checked.
//!
//! A task's body that calls an entry with parameters, which are in its frame, keeps its frame wherever it waits; then only registers are gone. What may be done
//! with addresses of such a frame is in `addresses`.

mod addresses;
mod bytes;
mod declared;
mod jobs;

pub use declared::{Declared, declared};
pub use jobs::kept;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;

/// Calls that end a job; they return in the next one.
pub const ENDS: &[&str] = &[
    "bulkhead_ada_delay_until",
    "bulkhead_ada_wait",
    "bulkhead_ada_wait_kept",
    "bulkhead_ada_wait_for",
    "bulkhead_ada_next",
    "bulkhead_ada_next_section",
];

/// The call among these that makes a procedure keep its frame.
const KEEPS: &str = "bulkhead_ada_wait_kept";

/// A procedure that is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// File and line that need something, or those of the call.
    pub place: String,
    /// What is wrong there.
    pub what: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: error: {}", self.place, self.what)
    }
}

/// A set of registers: integer registers in the low half, floating point in the high half.
type Registers = u64;

const RA: Registers = 1 << 1;
const SP: Registers = 1 << 2;
/// Zero, and the stack, global and thread pointers: the same in every job.
const FIXED: Registers = 1 | SP | 1 << 3 | 1 << 4;
/// s0 to s11, and fs0 to fs11.
const SAVED: Registers = 0x0ffc_0300 | 0x0ffc_0300 << 32;
/// What a call may change under the calling convention.
const CHANGED: Registers = !SAVED & !FIXED;

const INTEGER: [&str; 32] = [
    "zero", "ra", "sp", "gp", "tp", "t0", "t1", "t2", "s0", "s1", "a0", "a1", "a2", "a3", "a4",
    "a5", "a6", "a7", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "t3", "t4",
    "t5", "t6",
];

fn register(name: &str) -> Option<Registers> {
    if name == "fp" {
        return Some(1 << 8);
    }
    if let Some(number) = INTEGER.iter().position(|one| *one == name) {
        return Some(1 << number);
    }
    let (kind, number) = name.split_at_checked(2)?;
    let number: u32 = number.parse().ok()?;
    let at = match (kind, number) {
        ("ft", 0..=7) => number,
        ("ft", 8..=11) => number + 20,
        ("fs", 0..=1) => number + 8,
        ("fs", 2..=11) => number + 16,
        ("fa", 0..=7) => number + 10,
        _ => return None,
    };
    Some(1 << (32 + at))
}

/// Where control goes after an instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Next {
    Behind,
    Either(String),
    Label(String),
    /// Out of the procedure.
    Out,
}

/// Ranges of bytes of the frame, counted from the stack pointer.
type Bytes = Vec<(i64, i64)>;

/// The bytes, counted from the frame's end.
fn counted(bytes: &Bytes, depth: i64) -> impl Iterator<Item = i64> {
    let ranges = bytes.iter();
    ranges.flat_map(move |&(from, to)| from + depth..to + depth)
}

#[derive(Clone, Debug)]
struct Instruction {
    place: (String, u32),
    reads: Registers,
    writes: Registers,
    reads_frame: Bytes,
    writes_frame: Bytes,
    /// By how much the stack pointer moves.
    moves: i64,
    /// The register whose value is added to this move.
    addend: Option<Registers>,
    next: Next,
    /// Calls something that ends the job.
    ends: bool,
    /// The name of the function that it calls, if it is a call; empty for a call by address.
    calls: Option<String>,
    /// The register with the address to which it jumps.
    jumps_to: Option<Registers>,
    /// The number or name that it puts into a register.
    loaded: Option<String>,
    /// What it does with addresses of the frame.
    effect: addresses::Effect,
    /// It makes an address of the frame, which is wrong if the frame is not kept.
    makes_address: bool,
    /// It is a call whose result is an address of the frame.
    returns_address: bool,
    /// Why it must not appear in a procedure whose job ends there.
    wrong: Option<String>,
}

impl Instruction {
    /// Whether it jumps to the address in a register, but not back to its caller.
    fn jumps_by_register(&self) -> bool {
        self.jumps_to.is_some_and(|to| to != RA)
    }
}

/// Bytes that a load or store moves.
fn width(mnemonic: &str) -> Option<(bool, i64)> {
    Some(match mnemonic {
        "lb" | "lbu" => (true, 1),
        "lh" | "lhu" => (true, 2),
        "lw" | "lwu" | "flw" => (true, 4),
        "ld" | "fld" => (true, 8),
        "sb" => (false, 1),
        "sh" => (false, 2),
        "sw" | "fsw" => (false, 4),
        "sd" | "fsd" => (false, 8),
        _ => return None,
    })
}

/// Operations whose first operand is the result and whose others are arguments.
fn is_operation(mnemonic: &str) -> bool {
    const INTEGER: &str = " li la lla lui auipc mv not neg negw sext.w seqz snez sltz sgtz add addi addw addiw sub subw and andi or ori xor xori sll slli \
         sllw slliw srl srli srlw srliw sra srai sraw sraiw slt slti sltu sltiu sgt sgtu mul mulw mulh mulhu mulhsu div divu divw divuw rem remu remw \
         remuw csrr frflags frcsr ";
    let is_float = mnemonic.starts_with('f') && mnemonic.contains('.') && mnemonic != "fence.i";
    let is_atomic = ["amo", "lr.", "sc."]
        .iter()
        .any(|one| mnemonic.starts_with(one));
    is_float || is_atomic || INTEGER.contains(&format!(" {mnemonic} "))
}

/// Registers in an operand: the operand itself, or in its brackets.
fn registers(operand: &str) -> Registers {
    let inside = operand
        .rsplit_once('(')
        .map(|one| one.1.trim_end_matches(')'));
    register(inside.unwrap_or(operand)).unwrap_or(0)
}

fn instruction(line: &str, place: (String, u32)) -> Instruction {
    let (mnemonic, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let operands: Vec<&str> = rest
        .split(',')
        .map(str::trim)
        .filter(|one| !one.is_empty())
        .collect();
    let operand = |number: usize| operands.get(number).copied().unwrap_or("");
    let all = |from: usize| {
        operands
            .iter()
            .skip(from)
            .fold(0, |all, one| all | registers(one))
    };
    let mut it = Instruction {
        place,
        reads: 0,
        writes: 0,
        reads_frame: Vec::new(),
        writes_frame: Vec::new(),
        moves: 0,
        addend: None,
        next: Next::Behind,
        ends: false,
        calls: None,
        jumps_to: None,
        loaded: ["li", "la", "lla"]
            .contains(&mnemonic)
            .then(|| operand(1).to_owned()),
        effect: addresses::effect(mnemonic, &operands),
        makes_address: false,
        returns_address: false,
        wrong: None,
    };
    let last = operands.last().copied().unwrap_or("").to_owned();
    if let Some((is_load, width)) = width(mnemonic) {
        let base = registers(operand(1));
        let (first, scratch) = (registers(operand(0)), all(2));
        (it.reads, it.writes) = match is_load {
            true => (base, first | scratch),
            false => (base | first, scratch),
        };
        if base == SP {
            it.reads &= !SP;
            let offset = operand(1).split_once('(').and_then(|one| match one.0 {
                "" => Some(0),
                number => number.parse().ok(),
            });
            match (offset, is_load) {
                (Some(at), true) => it.reads_frame = vec![(at, at + width)],
                (Some(at), false) => it.writes_frame = vec![(at, at + width)],
                (None, _) => it.wrong = Some(format!("`{line}` has an unknown place in the frame")),
            }
        }
        if !is_load && first == SP {
            it.makes_address = true;
            it.wrong = Some("the address of a local variable is stored".to_owned());
        }
        return it;
    }
    match mnemonic {
        "addi" if operand(0) == "sp" && operand(1) == "sp" && operand(2).parse::<i64>().is_ok() => {
            it.moves = operand(2).parse().unwrap_or(0);
        }
        "add" if operand(0) == "sp" && operand(1) == "sp" => {
            it.reads = all(1);
            it.writes = SP;
            it.addend = Some(registers(operand(2)));
        }
        "call" => {
            it.writes = CHANGED;
            it.ends = ENDS.contains(&operand(0));
            it.calls = Some(last);
        }
        "jalr" if operands.len() == 1 || operand(0) == "ra" => {
            it.reads = all(usize::from(operands.len() > 1));
            it.writes = CHANGED;
            it.calls = Some(String::new());
        }
        "j" if operand(0).starts_with('.') => it.next = Next::Label(last),
        "ret" | "jr" | "tail" | "j" => {
            it.reads = all(0) | RA | SAVED;
            it.next = Next::Out;
            it.calls = ["tail", "j"].contains(&mnemonic).then_some(last);
            it.jumps_to = (mnemonic == "jr").then(|| registers(operand(0)));
        }
        "beq" | "bne" | "blt" | "bge" | "bltu" | "bgeu" | "bgt" | "ble" | "bgtu" | "bleu"
        | "beqz" | "bnez" | "blez" | "bgez" | "bltz" | "bgtz" => {
            it.reads = all(0);
            it.next = Next::Either(last);
        }
        "nop" | "fence" | "ebreak" | "unimp" => {}
        "csrw" | "csrs" | "csrc" | "fsflags" | "fscsr" if !operands.is_empty() => it.reads = all(0),
        _ if is_operation(mnemonic) => {
            it.reads = all(1);
            it.writes = registers(operand(0));
        }
        _ => it.wrong = Some(format!("`{line}` is not known to this check")),
    }
    if it.reads & SP != 0 {
        it.makes_address = matches!(it.effect, addresses::Effect::Make { .. });
        it.wrong = Some("the address of a local variable is used".to_owned());
    } else if it.writes & SP != 0 {
        it.wrong = Some("the frame has no fixed size".to_owned());
    }
    it
}

/// A procedure, in text order.
#[derive(Debug, Default)]
struct Procedure {
    instructions: Vec<Instruction>,
    labels: BTreeMap<String, usize>,
    /// Instructions that others than the one before them also reach. Most labels are only for debuggers.
    joins: BTreeSet<usize>,
    /// It is the body of a single task.
    is_body: bool,
}

/// What is needed before an instruction: registers, and bytes of the frame counted from its end.
type Needed = (Registers, BTreeSet<i64>);

impl Procedure {
    /// Whether its frame is restored after all calls that end a job.
    fn is_kept(&self) -> bool {
        let mut calls = self.instructions.iter().map(|it| it.calls.as_deref());
        calls.any(|call| call == Some(KEEPS))
    }

    fn next(&self, at: usize) -> Vec<usize> {
        let Some(it) = self.instructions.get(at) else {
            return Vec::new();
        };
        let behind = (at + 1 < self.instructions.len()).then_some(at + 1);
        let label = |name: &String| self.labels.get(name).copied();
        match &it.next {
            Next::Behind => behind.into_iter().collect(),
            Next::Either(name) => behind.into_iter().chain(label(name)).collect(),
            Next::Label(name) => label(name).into_iter().collect(),
            Next::Out => Vec::new(),
        }
    }

    /// Position of the stack pointer before each instruction, relative to the entry; or an instruction where it is not known.
    fn depths(&self) -> Result<Vec<i64>, usize> {
        self.depths_with(&[])
    }

    /// The same, if jumps by a register may go to these instructions.
    fn depths_with(&self, targets: &[usize]) -> Result<Vec<i64>, usize> {
        let mut depths: Vec<Option<i64>> = vec![None; self.instructions.len()];
        let mut open = VecDeque::from([(0, 0)]);
        while let Some((at, depth)) = open.pop_front() {
            // A procedure may be empty, and a label may follow its last instruction if the compiler knows that control never gets there.
            let (Some(known), Some(it)) = (depths.get_mut(at), self.instructions.get(at)) else {
                continue;
            };
            match *known {
                Some(known) if known != depth => return Err(at),
                Some(_) => continue,
                None => *known = Some(depth),
            }
            let behind = depth + it.moves;
            open.extend(self.next(at).into_iter().map(|next| (next, behind)));
            if it.jumps_by_register() {
                open.extend(targets.iter().map(|next| (*next, behind)));
            }
        }
        // What no path reaches needs nothing.
        Ok(depths.into_iter().map(|depth| depth.unwrap_or(0)).collect())
    }

    /// The number or name in a register before an instruction, if an instruction since the last label and jump has loaded it.
    fn loaded(&self, at: usize, register: Registers) -> Option<&str> {
        for before in (0..at).rev() {
            let it = self.instructions.get(before)?;
            if self.joins.contains(&(before + 1)) || it.next != Next::Behind {
                return None;
            }
            if it.writes & register != 0 {
                return it.loaded.as_deref();
            }
        }
        None
    }

    fn constant(&self, at: usize, register: Registers) -> Option<i64> {
        self.loaded(at, register)?.parse().ok()
    }

    fn find_joins(&mut self, named: &BTreeSet<String>) {
        let branches = self.instructions.iter().filter_map(|it| match &it.next {
            Next::Either(label) | Next::Label(label) => self.labels.get(label),
            Next::Behind | Next::Out => None,
        });
        let tables = self.labels.iter().filter(|one| named.contains(one.0));
        self.joins = branches.chain(tables.map(|one| one.1)).copied().collect();
    }

    /// Adds the steps of the stack's pointer by a number that does not fit into an instruction.
    fn add_large_steps(&mut self) {
        for at in 0..self.instructions.len() {
            let addend = self.instructions[at].addend;
            let number = addend.and_then(|register| self.constant(at, register));
            self.instructions[at].moves += number.unwrap_or(0);
        }
    }

    /// What is needed before each instruction.
    fn needed(&self, depths: &[i64]) -> Vec<Needed> {
        let mut needed: Vec<Needed> = vec![(0, BTreeSet::new()); self.instructions.len()];
        loop {
            let mut is_new = false;
            for at in (0..self.instructions.len()).rev() {
                let it = &self.instructions[at];
                let mut now: Needed = (0, BTreeSet::new());
                for next in self.next(at) {
                    now.0 |= needed[next].0;
                    now.1.extend(&needed[next].1);
                }
                now.0 = now.0 & !it.writes | it.reads;
                for byte in counted(&it.writes_frame, depths[at]) {
                    now.1.remove(&byte);
                }
                now.1.extend(counted(&it.reads_frame, depths[at]));
                is_new |= now != needed[at];
                needed[at] = now;
            }
            if !is_new {
                return needed;
            }
        }
    }

    /// The first instruction on a path from `from` that reads what is needed there.
    fn reader(&self, from: usize, depths: &[i64]) -> Option<usize> {
        let is_kept = self.is_kept();
        let mut seen = BTreeSet::new();
        let mut open = VecDeque::from([(from, 0, BTreeSet::new())]);
        while let Some((at, mut written, mut bytes)) = open.pop_front() {
            let it = &self.instructions[at];
            if it.reads & !written & !FIXED != 0
                || !is_kept
                    && counted(&it.reads_frame, depths[at]).any(|byte| !bytes.contains(&byte))
            {
                return Some(at);
            }
            written |= it.writes;
            bytes.extend(counted(&it.writes_frame, depths[at]));
            for next in self.next(at) {
                if seen.insert((next, written, bytes.clone())) {
                    open.push_back((next, written, bytes.clone()));
                }
            }
        }
        None
    }

    fn refusals(&self) -> Vec<Refusal> {
        let ends: Vec<usize> = (0..self.instructions.len())
            .filter(|&at| self.instructions[at].ends)
            .collect();
        let Some(&first) = ends.first() else {
            return Vec::new();
        };
        let refuse = |at: usize, what: String| Refusal {
            place: format!(
                "{}:{}",
                self.instructions[at].place.0, self.instructions[at].place.1
            ),
            what,
        };
        let mut all: Vec<Refusal> = Vec::new();
        let is_kept = self.is_kept();
        if is_kept && !self.is_body {
            let what = "an entry with parameters is called outside of a task's body: call it in the body itself".to_owned();
            return vec![refuse(first, what)];
        }
        for (at, it) in self.instructions.iter().enumerate() {
            let outside = match &it.next {
                Next::Either(name) | Next::Label(name) if !self.labels.contains_key(name) => {
                    Some("a jump out of the procedure".to_owned())
                }
                _ if is_kept && it.makes_address => None,
                _ => it.wrong.clone(),
            };
            if let Some(wrong) = outside {
                let line = self.instructions[first].place.1;
                all.push(refuse(at, format!("{wrong} in a procedure that waits (line {line}): move it into a separate procedure `with No_Inline`, or into the package")));
            }
        }
        let depths = match self.depths() {
            Ok(depths) => depths,
            Err(at) => {
                all.push(refuse(
                    at,
                    "the frame has no fixed size in a procedure that waits".to_owned(),
                ));
                return all;
            }
        };
        if is_kept && all.is_empty() {
            all.extend(
                self.leaks(&depths)
                    .map(|at| refuse(at, "the address of a local variable leaves a task's body that waits: declare the variable in the package".to_owned())),
            );
        }
        let needed = self.needed(&depths);
        for (at, it) in self.instructions.iter().enumerate() {
            if it.returns_address && self.uses_result(at) {
                let what = "the address of a local variable is used in a procedure that waits";
                all.push(refuse(at, what.to_owned()));
            }
        }
        for at in ends {
            let line = self.instructions[at].place.1;
            let Some((registers, bytes)) = needed.get(at + 1) else {
                continue;
            };
            if registers & !FIXED == 0 && (is_kept || bytes.is_empty()) {
                continue;
            }
            let reader = self.reader(at + 1, &depths).unwrap_or(at);
            let it = &self.instructions[reader];
            // A return, or the first of the instructions preceding one.
            let returns = it.next == Next::Out || it.writes == RA;
            all.push(if returns {
                refuse(
                    at,
                    "a procedure waits here and returns later: wait in the task's body itself".to_owned(),
                )
            } else {
                refuse(
                    reader,
                    format!("this needs a local value from before the task waited in line {line}; the value is lost"),
                )
            });
        }
        all.dedup();
        all
    }
}

/// How names of the bodies of single tasks end.
const BODY: &str = "TKB";

/// What is refused in a file of assembly.
pub fn refusals(assembly: &str) -> Vec<Refusal> {
    let mut found = procedures(assembly);
    for (_, procedure) in &mut found.procedures {
        procedure.add_bytes_of_calls();
    }
    let mut all = found.refused;
    all.extend(found.procedures.iter().flat_map(|one| one.1.refusals()));
    all
}

/// The contents of a file of assembly.
struct Found {
    /// Procedures and their names.
    procedures: Vec<(String, Procedure)>,
    /// Refusals outside of procedures.
    refused: Vec<Refusal>,
    /// Names and labels whose addresses are in registers, or in data that is no table of the kernel.
    named: BTreeSet<String>,
}

/// How names of constants begin from which the kernel, and nothing else, takes functions to call.
const TABLES: [&str; 2] = ["bh_task_", "bh_entries_"];

/// Sections that no code reads.
const DEBUG: &str = ".debug";

/// Directives for data that may contain an address.
const DATA: [&str; 9] = [
    ".word", ".dword", ".quad", ".long", ".half", ".short", ".2byte", ".4byte", ".8byte",
];

/// Names in the operands of data, or of an instruction.
fn names(operands: &str) -> impl Iterator<Item = String> {
    let words = operands.split(|c: char| !c.is_ascii_alphanumeric() && !"_.$".contains(c));
    words.filter(|word| !word.is_empty()).map(str::to_owned)
}

fn procedures(assembly: &str) -> Found {
    let mut found = Vec::new();
    let mut files: BTreeMap<u32, String> = BTreeMap::new();
    let mut place = (String::from("?"), 0);
    let mut procedure: Option<(String, Procedure)> = None;
    let mut procedures = BTreeSet::new();
    let mut is_own = false;
    let mut is_debug = false;
    let mut is_table = false;
    let mut named = BTreeSet::new();
    let mut all = Vec::new();
    for line in assembly.lines() {
        let text = line.trim();
        match text {
            "#APP" => is_own = true,
            "#NO_APP" => is_own = false,
            _ => {}
        }
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        let words: Vec<&str> = text.split_whitespace().collect();
        match words.as_slice() {
            [".file", number, name, ..] => {
                if let Ok(number) = number.parse() {
                    let name = name.trim_matches('"').trim_start_matches("./");
                    files.insert(number, name.to_owned());
                }
                continue;
            }
            [".loc", file, line, ..] => {
                let name = file.parse().ok().and_then(|file: u32| files.get(&file));
                // Code inlined from the run time has the place of the statement that calls it.
                if name.is_some_and(|name| name.starts_with("rts/")) {
                    continue;
                }
                place = (name.cloned().unwrap_or_default(), line.parse().unwrap_or(0));
                continue;
            }
            [".type", name, "@function"] => {
                procedures.insert(name.trim_end_matches(',').to_owned());
                continue;
            }
            [".type", both] => {
                procedures.extend(both.strip_suffix(",@function").map(str::to_owned));
                continue;
            }
            [".section", name, ..] => is_debug = name.starts_with(DEBUG),
            [".text" | ".data" | ".bss", ..] => is_debug = false,
            [data, operands @ ..] if DATA.contains(data) && !is_debug && !is_table => {
                named.extend(operands.iter().flat_map(|one| names(one)));
            }
            ["la" | "lla", operands @ ..] => {
                named.extend(operands.iter().flat_map(|one| names(one)));
            }
            [_, operands @ ..] if operands.iter().any(|one| one.contains('%')) => {
                named.extend(operands.iter().flat_map(|one| names(one)));
            }
            [".size", name, ..] => {
                let name = name.split(',').next().unwrap_or(name);
                if procedure.as_ref().is_some_and(|one| one.0 == name) {
                    found.extend(procedure.take());
                }
                continue;
            }
            _ => {}
        }
        let names_an_end = || {
            let mut words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            words.any(|word| ENDS.contains(&word))
        };
        let is_call = matches!(words.as_slice(), ["call", _]);
        let is_text = [".string", ".ascii", ".globl", ".asciz"].contains(&words[0]);
        if !is_call && !is_text && names_an_end() {
            all.push(Refusal {
                place: format!("{}:{}", place.0, place.1),
                what: "what ends a job is called by its name only".to_owned(),
            });
        }
        if let Some(label) = text.strip_suffix(':') {
            is_table = TABLES.iter().any(|one| label.starts_with(one));
            match &mut procedure {
                Some((_, it)) => {
                    it.labels.insert(label.to_owned(), it.instructions.len());
                }
                None if procedures.contains(label) => {
                    let is_body = label.ends_with(BODY);
                    procedure = Some((
                        label.to_owned(),
                        Procedure {
                            is_body,
                            ..Procedure::default()
                        },
                    ));
                }
                None => {}
            }
            continue;
        }
        if text.starts_with('.') {
            continue;
        }
        let mut it = instruction(text, place.clone());
        if is_own {
            it.wrong = Some("an instruction of the source's own".to_owned());
        }
        match &mut procedure {
            Some((_, procedure)) => procedure.instructions.push(it),
            None if it.ends => all.push(Refusal {
                place: format!("{}:{}", place.0, place.1),
                what: "a job ends outside of a procedure".to_owned(),
            }),
            None => {}
        }
    }
    found.extend(procedure);
    for (_, procedure) in &mut found {
        procedure.find_joins(&named);
        procedure.add_large_steps();
    }
    Found {
        procedures: found,
        refused: all,
        named,
    }
}

#[cfg(test)]
#[path = "one_stack_tests.rs"]
mod tests;
