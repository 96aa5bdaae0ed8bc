//! How one function of an image uses the stack: its depth, and the functions that it calls at each depth.
//!
//! Why it exists: the compilers of three languages, and assembly, have one thing in common, the instructions. So the walk decodes those of the linked file.
//! What it deliberately does not know: what functions mean, and how the depths of several add up.

use super::Unbounded;
use bulkhead_machine::hart::{Kind, Op, SINK, decode};
use object::{Object as _, ObjectSection as _, ObjectSymbol as _, SectionKind};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The function of the run time of Ada that exchanges frames: no walk follows its stack's pointer.
pub(super) const EXCHANGES: &str = "bulkhead_ada_serve";

/// The function of the run time of Ada that the kernel, and nothing else, calls for each timing event.
pub(super) const FIRES: &str = "bulkhead_ada_fire";
/// The function that the former calls: it calls the event's handler.
pub(super) const CALLS_HANDLER: &str = "bulkhead_ada_call_handler";

/// From where a depth counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Base {
    /// From where the stack's pointer was when the function began.
    Entry,
    /// From the end of the stack, which the function has set it to.
    Top,
}

/// Whom a call reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Target {
    /// A function by its number.
    Known(usize),
    /// Whatever is in a register.
    Unknown,
}

/// A call: its target, and the depth of the stack there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call {
    pub target: Target,
    pub base: Base,
    pub depth: u64,
}

/// What a walk through a function finds.
#[derive(Clone, Debug, Default)]
pub(super) struct Walk {
    pub calls: Vec<Call>,
    /// Bytes of the function's own frame.
    pub depth: u64,
    pub returns: bool,
    /// Functions whose addresses it makes and does not only call.
    pub taken: BTreeSet<usize>,
    pub wrong: Option<Unbounded>,
}

/// A function: everything up to the next one.
#[derive(Clone, Debug)]
pub(super) struct Function {
    pub name: String,
    pub start: u64,
    pub end: u64,
}

/// The code of an image.
pub(super) struct Code {
    pub functions: Vec<Function>,
    by_start: BTreeMap<u64, usize>,
    /// Sections with contents, by their addresses.
    sections: Vec<(u64, Vec<u8>)>,
    stack_top: u64,
    global_pointer: u64,
    /// The run time of Ada sets the stack's pointer to where a task's body had it.
    has_ada: bool,
}

/// What a register has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Value {
    Unknown,
    Number(u64),
    /// An address of the stack, this many bytes below its base.
    Stack(Base, i64),
}

const RA: usize = 1;
const SP: usize = 2;
const GP: usize = 3;
const T0: usize = 5;
/// What calls keep: the stack's, global and thread's pointer, and s0 to s11.
const KEPT: u32 = 0x0ffc_031c;

type Registers = [Value; 32];

impl Code {
    /// Of a linked file.
    pub(super) fn of(file: &object::File<'_>) -> Option<Self> {
        let mut starts: BTreeMap<u64, String> = BTreeMap::new();
        let text: Vec<_> = file
            .sections()
            .filter(|one| one.kind() == SectionKind::Text)
            .map(|one| (one.index(), one.address() + one.size()))
            .collect();
        for symbol in file.symbols() {
            let (Ok(name), Some(index)) = (symbol.name(), symbol.section_index()) else {
                continue;
            };
            let is_code = text
                .iter()
                .any(|one| one.0 == index && symbol.address() < one.1);
            if !is_code
                || name.is_empty()
                || name.starts_with(['$', '.'])
                || name.starts_with("__") && name.ends_with("_start")
            {
                continue;
            }
            starts
                .entry(symbol.address())
                .or_insert_with(|| name.to_owned());
        }
        let ends = text.iter().map(|one| one.1);
        let last = ends.max()?;
        let next: Vec<u64> = starts.keys().copied().skip(1).chain([last]).collect();
        let functions: Vec<Function> = starts
            .into_iter()
            .zip(next)
            .map(|((start, name), end)| Function { name, start, end })
            .collect();
        let numbered = functions.iter().enumerate();
        let by_start = numbered.map(|(number, one)| (one.start, number)).collect();
        let sections = file
            .sections()
            .filter(|one| one.address() != 0)
            .filter_map(|one| Some((one.address(), one.data().ok()?.to_vec())))
            .collect();
        let symbol = |name: &str| {
            let mut all = file.symbols();
            all.find(|one| one.name() == Ok(name))
                .map(|one| one.address())
        };
        Some(Self {
            functions,
            by_start,
            sections,
            stack_top: symbol("__stack_top")?,
            global_pointer: symbol("__global_pointer$").unwrap_or(0),
            has_ada: symbol("bulkhead_ada_current").is_some(),
        })
    }

    /// The number of the function that begins at an address.
    pub(super) fn at(&self, address: u64) -> Option<usize> {
        self.by_start.get(&address).copied()
    }

    /// The number of the function that an address is in.
    fn around(&self, address: u64) -> Option<usize> {
        let (_, &number) = self.by_start.range(..=address).next_back()?;
        (address < self.functions[number].end).then_some(number)
    }

    /// The number of the function with a name.
    pub(super) fn named(&self, name: &str) -> Option<usize> {
        self.functions.iter().position(|one| one.name == name)
    }

    fn bytes(&self, address: u64, count: usize) -> Option<&[u8]> {
        let section = self
            .sections
            .iter()
            .find(|(start, bytes)| (*start..start + bytes.len() as u64).contains(&address))?;
        let from = usize::try_from(address - section.0).ok()?;
        section.1.get(from..from + count)
    }

    /// A word of the file.
    pub(super) fn word(&self, address: u64) -> Option<u64> {
        let bytes = self.bytes(address, 8)?;
        Some(u64::from_le_bytes(bytes.try_into().ok()?))
    }

    /// Words of data that are addresses of functions, with where they are.
    pub(super) fn pointers(&self) -> Vec<(u64, usize)> {
        let mut all = Vec::new();
        for (start, bytes) in &self.sections {
            // Pointers are aligned, and sections need not be.
            let skip = start.wrapping_neg() % 8;
            let aligned = bytes.get(skip as usize..).unwrap_or_default();
            for (number, word) in aligned.chunks_exact(8).enumerate() {
                let word = u64::from_le_bytes(word.try_into().unwrap_or_default());
                if let Some(function) = self.at(word) {
                    all.push((start + skip + 8 * number as u64, function));
                }
            }
        }
        all
    }

    fn decoded(&self, address: u64) -> Op {
        let half = |at: u64| {
            let bytes = self.bytes(at, 2).and_then(|two| two.try_into().ok());
            u32::from(u16::from_le_bytes(bytes.unwrap_or_default()))
        };
        decode(half(address) | half(address + 2) << 16)
    }

    /// Walks all ways through a function. `returns`: whether each function may return, as far as is known.
    pub(super) fn walk(&self, number: usize, returns: &[bool]) -> Walk {
        let function = &self.functions[number];
        let mut walk = Walk {
            returns: function.name == EXCHANGES,
            ..Walk::default()
        };
        let mut first = [Value::Unknown; 32];
        first[0] = Value::Number(0);
        first[SP] = Value::Stack(Base::Entry, 0);
        first[GP] = Value::Number(self.global_pointer);
        let mut seen: BTreeMap<u64, Registers> = BTreeMap::new();
        let mut open = VecDeque::from([(function.start, first)]);
        // Jumps to where a register says, within the function.
        let mut tables: Vec<Registers> = Vec::new();
        loop {
            while let Some((at, registers)) = open.pop_front() {
                let Some(registers) = self.meet(at, registers, &mut seen, &mut walk) else {
                    continue;
                };
                let step = self.step(function, at, registers, returns, &mut walk);
                tables.extend(step.table);
                open.extend(step.next.into_iter().map(|next| (next, step.registers)));
            }
            // The targets of a table of jumps: what no other way reaches. Instructions follow each other without gaps.
            let Some(registers) = tables.pop() else {
                break;
            };
            let mut at = function.start;
            while at < function.end {
                let op = self.decoded(at);
                if !seen.contains_key(&at) && op.kind != Kind::Illegal {
                    open.push_back((at, registers));
                    tables.push(registers);
                    break;
                }
                at += u64::from(op.length);
            }
        }
        walk
    }

    /// What is known at an instruction, if that is more general than before.
    fn meet(
        &self,
        at: u64,
        registers: Registers,
        seen: &mut BTreeMap<u64, Registers>,
        walk: &mut Walk,
    ) -> Option<Registers> {
        let Some(known) = seen.get_mut(&at) else {
            seen.insert(at, registers);
            return Some(registers);
        };
        let mut is_new = false;
        for (register, (known, now)) in known.iter_mut().zip(registers).enumerate() {
            if *known != now && *known != Value::Unknown {
                if register == SP {
                    walk.wrong.get_or_insert(Unbounded::Frame(at));
                    continue;
                }
                *known = Value::Unknown;
                is_new = true;
            }
        }
        is_new.then_some(*known)
    }

    fn step(
        &self,
        function: &Function,
        at: u64,
        mut registers: Registers,
        returns: &[bool],
        walk: &mut Walk,
    ) -> Step {
        use Kind::*;
        let op = self.decoded(at);
        let behind = at + u64::from(op.length);
        let mut step = Step {
            next: Vec::new(),
            registers,
            table: None,
        };
        let (base, depth) = match registers[SP] {
            Value::Stack(base, depth) => (base, u64::try_from(depth).unwrap_or(0)),
            _ => (Base::Entry, 0),
        };
        let source = |register: u8| registers[usize::from(register) % 32];
        let is_inside = |to: u64| (function.start..function.end).contains(&to);
        let call = |walk: &mut Walk, to: Option<u64>| {
            let target = match to {
                Some(to) => self.around(to).map(Target::Known),
                None => Some(Target::Unknown),
            };
            match target {
                Some(target) => walk.calls.push(Call {
                    target,
                    base,
                    depth,
                }),
                None => drop(walk.wrong.get_or_insert(Unbounded::Frame(at))),
            }
            match target {
                Some(Target::Known(number)) => returns[number],
                _ => true,
            }
        };
        let mut result = Value::Unknown;
        match op.kind {
            Beq | Bne | Blt | Bge | Bltu | Bgeu => {
                let to = at.wrapping_add_signed(op.imm.into());
                for to in [to, behind] {
                    match is_inside(to) {
                        true => step.next.push(to),
                        false => walk.returns |= call(walk, Some(to)),
                    }
                }
                return step;
            }
            Jal | Jalr => {
                let to = match op.kind {
                    Jal => Some(at.wrapping_add_signed(op.imm.into())),
                    _ => match source(op.rs1) {
                        Value::Number(number) => {
                            Some(number.wrapping_add_signed(op.imm.into()) & !1)
                        }
                        _ => None,
                    },
                };
                if op.rd == SINK {
                    match to {
                        Some(to) if is_inside(to) => step.next.push(to),
                        Some(to) => walk.returns |= call(walk, Some(to)),
                        None if [RA, T0].contains(&usize::from(op.rs1)) => walk.returns = true,
                        // Within a frame it is a table; without one, it may be both.
                        None => {
                            step.table = Some(registers);
                            if depth == 0 {
                                walk.returns |= call(walk, None);
                            }
                        }
                    }
                    return step;
                }
                if call(walk, to) {
                    step.next.push(behind);
                }
                for (register, value) in step.registers.iter_mut().enumerate().skip(1) {
                    if KEPT & 1 << register == 0 {
                        *value = Value::Unknown;
                    }
                }
                return step.inside(function, walk, returns, self, (base, depth));
            }
            Mret | Sret | Ebreak | Illegal => {
                walk.returns |= matches!(op.kind, Mret | Sret);
                return step;
            }
            Lui => result = Value::Number(i64::from(op.imm) as u64),
            Auipc => result = Value::Number(at.wrapping_add_signed(op.imm.into())),
            Addi => {
                result = match source(op.rs1) {
                    Value::Number(number) => {
                        Value::Number(number.wrapping_add_signed(op.imm.into()))
                    }
                    Value::Stack(base, depth) => Value::Stack(base, depth - i64::from(op.imm)),
                    Value::Unknown => Value::Unknown,
                }
            }
            Addiw => {
                if let Value::Number(number) = source(op.rs1) {
                    result = Value::Number(i64::from((number as i32).wrapping_add(op.imm)) as u64);
                }
            }
            Slli => {
                if let Value::Number(number) = source(op.rs1) {
                    result = Value::Number(number << (op.imm & 63));
                }
            }
            Add => {
                result = match (source(op.rs1), source(op.rs2)) {
                    (Value::Number(one), Value::Number(other)) => {
                        Value::Number(one.wrapping_add(other))
                    }
                    (Value::Stack(base, depth), Value::Number(number))
                    | (Value::Number(number), Value::Stack(base, depth)) => {
                        Value::Stack(base, depth.wrapping_sub(number as i64))
                    }
                    _ => Value::Unknown,
                }
            }
            Sub => {
                if let (Value::Stack(base, depth), Value::Number(number)) =
                    (source(op.rs1), source(op.rs2))
                {
                    result = Value::Stack(base, depth.wrapping_add(number as i64));
                }
            }
            _ => {}
        }
        let written = op.masks().1 as u32;
        if let Value::Number(number) = result
            && let Some(taken) = self.at(number)
            && op.kind != Auipc
        {
            walk.taken.insert(taken);
        }
        for (number, register) in registers.iter_mut().enumerate().skip(1) {
            if written & 1 << number != 0 {
                *register = result;
            }
        }
        if written & 1 << SP != 0 {
            registers[SP] = match result {
                Value::Number(number) if number == self.stack_top => Value::Stack(Base::Top, 0),
                Value::Stack(base, depth) => {
                    if base == Base::Entry {
                        walk.depth = walk.depth.max(u64::try_from(depth).unwrap_or(0));
                    }
                    Value::Stack(base, depth)
                }
                // `la` takes two instructions.
                Value::Number(number) => Value::Number(number),
                Value::Unknown => {
                    // A task's body continues; its own depth is counted elsewhere.
                    if !(self.has_ada && op.kind == Ld) {
                        walk.wrong.get_or_insert(Unbounded::Frame(at));
                    }
                    return step;
                }
            };
        }
        step.registers = registers;
        step.next.push(behind);
        step.inside(function, walk, returns, self, (base, depth))
    }
}

/// What follows an instruction.
struct Step {
    next: Vec<u64>,
    registers: Registers,
    table: Option<Registers>,
}

impl Step {
    /// Code that runs past its end continues in the next function.
    fn inside(
        mut self,
        function: &Function,
        walk: &mut Walk,
        returns: &[bool],
        code: &Code,
        (base, depth): (Base, u64),
    ) -> Self {
        let is_over = self.next.contains(&function.end);
        self.next.retain(|&next| next != function.end);
        if is_over && let Some(next) = code.at(function.end) {
            walk.calls.push(Call {
                target: Target::Known(next),
                base,
                depth,
            });
            walk.returns |= returns[next];
        }
        self
    }
}
