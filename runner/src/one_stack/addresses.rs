//! Which registers and places in memory have addresses of a frame, instruction by instruction; and where addresses of a preserved frame may go.
//!
//! Why it exists: parameters of an entry are passed by their addresses, so a body that calls one makes addresses of its own frame. While
//! its task waits, the frame is elsewhere, so no other code may have such an address: it may be in registers and in the frame itself, and
//! go to the run time's calls of entries, which know that the frame is elsewhere. What it deliberately does not know: the rules for
//! registers and values, and those for jobs that return (`jobs`).

use super::{CHANGED, Procedure, Registers, register, width};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Calls that may have addresses of the frame, besides those that end a job.
const ENTRIES: [&str; 2] = [
    "system__tasking__protected_objects__operations__waits",
    "system__tasking__protected_objects__single_entry__waits",
];

/// The compiler's function that only reads what it gets the address of.
const COMPARES: &str = "memcmp";

/// What an instruction does with addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// An address of the frame, so far from the stack's pointer.
    Make { to: Registers, offset: i64 },
    /// A register, and a number more.
    Copy {
        to: Registers,
        from: Registers,
        more: i64,
    },
    Load {
        to: Registers,
        base: Registers,
        offset: Option<i64>,
        width: i64,
    },
    Store {
        value: Registers,
        base: Registers,
        offset: Option<i64>,
        width: i64,
    },
    /// Something that it computes from registers.
    Compute { to: Registers, from: Registers },
    /// Changes memory in one step; the register gets the old contents.
    Exchange {
        to: Registers,
        value: Registers,
        base: Registers,
    },
    /// The distance between two registers. The distance of two addresses is not an address.
    Subtract {
        to: Registers,
        from: Registers,
        less: Registers,
    },
    /// Nothing of that, or what the procedure's own analysis knows.
    Other,
}

const SP: &str = "sp";

/// Operations whose result is never an address.
const COMPARISONS: [&str; 10] = [
    "slt", "slti", "sltu", "sltiu", "sgt", "sgtu", "seqz", "snez", "sltz", "sgtz",
];

/// Of an instruction.
pub(super) fn effect(mnemonic: &str, operands: &[&str]) -> Effect {
    let one = |number: usize| {
        operands
            .get(number)
            .and_then(|operand| register(operand))
            .unwrap_or(0)
    };
    let text = |number: usize| operands.get(number).copied().unwrap_or("");
    if let Some((is_load, width)) = width(mnemonic) {
        let (offset, base) = match text(1).split_once('(') {
            Some(("", base)) => (Some(0), base),
            Some((number, base)) => (number.parse().ok(), base),
            None => (None, ""),
        };
        let base = register(base.trim_end_matches(')')).unwrap_or(0);
        return match is_load {
            true => Effect::Load {
                to: one(0),
                base,
                offset,
                width,
            },
            false => Effect::Store {
                value: one(0),
                base,
                offset,
                width,
            },
        };
    }
    let number = text(2).parse::<i64>().ok();
    match (mnemonic, text(1), number) {
        ("addi", SP, Some(offset)) => Effect::Make { to: one(0), offset },
        ("mv", SP, _) => Effect::Make {
            to: one(0),
            offset: 0,
        },
        ("addi", _, Some(more)) => Effect::Copy {
            to: one(0),
            from: one(1),
            more,
        },
        ("mv", _, _) => Effect::Copy {
            to: one(0),
            from: one(1),
            more: 0,
        },
        ("sub", _, _) => Effect::Subtract {
            to: one(0),
            from: one(1),
            less: one(2),
        },
        // 0 or 1.
        _ if COMPARISONS.contains(&mnemonic) => Effect::Compute {
            to: one(0),
            from: 0,
        },
        // What is read there is tested, and nothing is made of it.
        _ if mnemonic.starts_with('b') || operands.is_empty() => Effect::Other,
        _ if mnemonic.starts_with("lr.") => Effect::Load {
            to: one(0),
            base: super::registers(text(1)),
            offset: Some(0),
            width: WORD,
        },
        _ if mnemonic.starts_with("amo") || mnemonic.starts_with("sc.") => Effect::Exchange {
            to: one(0),
            value: one(1),
            base: super::registers(text(2)),
        },
        _ => {
            let rest = operands.iter().skip(1);
            let from = rest.fold(0, |all, operand| all | super::registers(operand));
            Effect::Compute { to: one(0), from }
        }
    }
}

/// The register that is always 0.
const ZERO: Registers = 1;

/// Bytes of an address.
const WORD: i64 = 8;

/// A place that is not known.
pub(super) const ANYWHERE: i64 = i64::MIN;

/// The analysis tells this many bytes of what an argument points to apart, and no others. Without a limit, a recursion that passes an address further on would
/// have a new place in each round.
const TOLD_APART: i64 = 512;

/// The place itself, if it is told apart.
pub(super) fn told_apart(place: i64) -> i64 {
    match (0..TOLD_APART).contains(&place) {
        true => place,
        false => ANYWHERE,
    }
}

/// What an address points into.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Base {
    /// The procedure's own frame. Its places are counted from its end.
    Own,
    /// What this argument points to.
    Given(u32),
    /// The target of the word at this place of what an argument points to, or of something that was reached from there.
    Loaded(u32, i64),
}

/// An address: one of these places. It is never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Address(BTreeSet<(Base, i64)>);

/// The analysis follows this many places of one base; if there are more, the address may be any place of the base.
const PLACES: usize = 4;

impl Address {
    pub(super) fn at(base: Base, place: i64) -> Self {
        Self(BTreeSet::from([(base, place)]))
    }

    /// In the own frame, at a place that is not known.
    pub(super) fn own() -> Self {
        Self::at(Base::Own, ANYWHERE)
    }

    pub(super) fn places(&self) -> impl Iterator<Item = (Base, i64)> {
        self.0.iter().copied()
    }

    pub(super) fn is_own(&self) -> bool {
        self.0.iter().any(|one| one.0 == Base::Own)
    }

    /// The place, if there is only one.
    fn exact(&self) -> Option<(Base, i64)> {
        let place = self.0.first().filter(|one| one.1 != ANYWHERE)?;
        (self.0.len() == 1).then_some(*place)
    }

    /// The address moved by this many bytes; `ANYWHERE` if the number is not known.
    pub(super) fn further(&self, more: i64) -> Self {
        let moved = self.0.iter().map(|&(base, place)| match more {
            ANYWHERE => (base, ANYWHERE),
            _ if place == ANYWHERE => (base, ANYWHERE),
            _ => (base, place + more),
        });
        Self(moved.collect())
    }

    /// This or the other one.
    pub(super) fn or(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        let bases: BTreeSet<Base> = self.0.iter().map(|one| one.0).collect();
        for base in bases {
            let of = |one: &(Base, i64)| one.0 == base;
            let count = self.0.iter().filter(|one| of(one)).count();
            if count > PLACES || count > 1 && self.0.contains(&(base, ANYWHERE)) {
                self.0.retain(|one| !of(one));
                self.0.insert((base, ANYWHERE));
            }
        }
        self
    }
}

/// The one, the other, or either.
pub(super) fn either(one: Option<Address>, other: Option<Address>) -> Option<Address> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.or(other)),
        (one, other) => one.or(other),
    }
}

/// The addresses in registers, by the register's bit, and in memory, by the place in a base.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct State {
    pub(super) registers: BTreeMap<Registers, Address>,
    memory: BTreeMap<(Base, i64), Address>,
    /// Places that were set to 0 on all paths, and not changed since.
    zeros: BTreeSet<(Base, i64)>,
    /// Registers that some way has written since the last call.
    written: Registers,
    /// The argument that contains the words behind the own frame, if arguments count.
    behind: Option<u32>,
}

/// An address that is stored elsewhere than at a known place of the own frame.
#[derive(Debug)]
pub(super) struct Stored {
    /// Where; `None` if that memory has no base.
    pub(super) to: Option<Address>,
    pub(super) what: Address,
}

/// Joins what two ways have; whether that is more than the first had.
fn join<K: Ord + Copy>(into: &mut BTreeMap<K, Address>, from: &BTreeMap<K, Address>) -> bool {
    let mut is_more = false;
    for (key, address) in from {
        let known = into.get(key);
        let both = known.map_or(address.clone(), |known| known.clone().or(address.clone()));
        if known != Some(&both) {
            into.insert(*key, both);
            is_more = true;
        }
    }
    is_more
}

impl State {
    /// The state at the beginning of a procedure whose arguments count.
    pub(super) fn with_arguments() -> Self {
        let arguments = (0..ARGUMENTS).map(|argument| {
            let address = Address::at(Base::Given(argument), 0);
            (1 << (FIRST + argument), address)
        });
        Self {
            registers: arguments.collect(),
            behind: Some(ARGUMENTS),
            ..Self::default()
        }
    }

    pub(super) fn set(&mut self, register: Registers, address: Option<Address>) {
        match address {
            Some(address) => self.registers.insert(register, address),
            None => self.registers.remove(&register),
        };
    }

    /// The address in a register. `depth`: the position of the stack's pointer, if it is known.
    fn value(&self, register: Registers, depth: Option<i64>) -> Option<Address> {
        match register {
            super::SP => Some(depth.map_or(Address::own(), |depth| Address::at(Base::Own, depth))),
            _ => self.registers.get(&register).cloned(),
        }
    }

    /// The address that any of these registers may have, at a place that is not known.
    fn any(&self, registers: Registers) -> Option<Address> {
        let sp = (registers & super::SP != 0).then(Address::own);
        let known = self.registers.iter();
        let known = known.filter(|(one, _)| **one & registers != 0);
        known.fold(sp, |all, (_, address)| {
            either(all, Some(address.further(ANYWHERE)))
        })
    }

    /// The address that may be in memory there.
    pub(super) fn load(&self, from: &Address) -> Option<Address> {
        let loaded = |(base, place): (Base, i64)| match base {
            Base::Given(argument) | Base::Loaded(argument, _) => {
                Some(Address::at(Base::Loaded(argument, told_apart(place)), 0))
            }
            Base::Own if place >= 0 => {
                let argument = self.behind?;
                Some(Address::at(Base::Loaded(argument, told_apart(place)), 0))
            }
            Base::Own => None,
        };
        let mut all = None;
        for (base, place) in from.places() {
            let one = match place {
                ANYWHERE => {
                    let stored = self.memory.iter().filter(|(key, _)| key.0 == base);
                    let stored = stored.map(|(_, address)| address.clone());
                    let stored = stored.chain(loaded((base, place)));
                    stored.fold(None, |all, one| either(all, Some(one)))
                }
                _ => {
                    let known = self.memory.get(&(base, place)).cloned();
                    let known = known.or_else(|| loaded((base, place)));
                    either(known, self.memory.get(&(base, ANYWHERE)).cloned())
                }
            };
            all = either(all, one);
        }
        all
    }

    /// The addresses that may be in the next `count` bytes; `None`: in all bytes from there on.
    pub(super) fn load_bytes(&self, from: &Address, count: Option<i64>) -> Option<Address> {
        let Some((Base::Own, place)) = from.exact() else {
            return self.load(&from.further(ANYWHERE));
        };
        let end = count.map_or(i64::MAX, |count| place.saturating_add(count));
        let known = self.memory.range((Base::Own, place)..(Base::Own, end));
        let known = known.map(|(_, address)| address);
        let known = known.chain(self.memory.get(&(Base::Own, ANYWHERE)));
        known.fold(None, |all, one| either(all, Some(one.clone())))
    }

    /// An address may be in memory there from now on.
    pub(super) fn lend(&mut self, to: &Address, what: &Address) {
        for key in to.places() {
            let both = either(self.memory.remove(&key), Some(what.clone()));
            self.memory.extend(both.map(|both| (key, both)));
        }
    }

    /// Whether the word there is certainly 0.
    pub(super) fn is_zero(&self, at: &Address) -> bool {
        at.exact().is_some_and(|place| self.zeros.contains(&place))
    }

    /// Other code may have changed all memory whose address it has.
    pub(super) fn forget_zeros(&mut self) {
        self.zeros.clear();
    }

    fn store(&mut self, to: Option<Address>, what: Option<Address>, width: i64) -> Option<Stored> {
        for (base, at) in to.iter().flat_map(Address::places) {
            self.zeros.retain(|(one, place)| {
                *one != base || at != ANYWHERE && (place + WORD <= at || at + width <= *place)
            });
        }
        if let Some((base, at)) = to.as_ref().and_then(Address::exact) {
            self.memory.retain(|(one, place), _| {
                *one != base || *place == ANYWHERE || *place + WORD <= at || at + width <= *place
            });
        }
        let what = what?;
        if let Some(to) = &to {
            self.lend(to, &what);
        }
        match to.as_ref().and_then(Address::exact) {
            Some((Base::Own, _)) => None,
            _ => Some(Stored { to, what }),
        }
    }

    /// Applies an instruction. Returns the address that it stores elsewhere, if any. `depth`: the position of the stack's pointer, if it is known.
    pub(super) fn step(&mut self, effect: &Effect, depth: Option<i64>) -> Option<Stored> {
        let place = |state: &Self, base: Registers, offset: Option<i64>| {
            let address = state.value(base, depth)?;
            Some(address.further(offset.unwrap_or(ANYWHERE)))
        };
        match *effect {
            Effect::Make { to, .. } if to == super::SP => {}
            Effect::Make { to, offset } => {
                let address = place(self, super::SP, Some(offset));
                self.set(to, address);
            }
            Effect::Copy { to, from, more } => {
                let address = self.registers.get(&from).map(|one| one.further(more));
                self.set(to, address);
            }
            Effect::Load {
                to,
                base,
                offset,
                width,
            } => {
                let from = place(self, base, offset).filter(|_| width == WORD);
                let address = from.and_then(|from| self.load(&from));
                self.set(to, address);
            }
            Effect::Store {
                value,
                base,
                offset,
                width,
            } => {
                let what = self.value(value, depth);
                let to = place(self, base, offset);
                let exact = to.as_ref().and_then(Address::exact);
                let zero = exact.filter(|_| value == ZERO && width == WORD);
                let stored = self.store(to, what, width);
                self.zeros.extend(zero);
                return stored;
            }
            Effect::Exchange { to, value, base } => {
                let at = place(self, base, Some(0));
                let was = at.as_ref().and_then(|at| self.load(at));
                let what = self.value(value, depth);
                let stored = self.store(at, what, WORD);
                self.set(to, was);
                return stored;
            }
            Effect::Compute { to, .. } if to == super::SP => {}
            Effect::Compute { to, from } => {
                let address = self.any(from);
                self.set(to, address);
            }
            Effect::Subtract { to, from, less } => {
                let address = self.any(from).filter(|_| self.any(less).is_none());
                self.set(to, address);
            }
            Effect::Other => {}
        }
        None
    }

    /// Joins the state of another path. Returns whether this adds anything.
    pub(super) fn join(&mut self, other: &Self) -> bool {
        let (before, zeros) = (self.written, self.zeros.len());
        self.written |= other.written;
        self.zeros.retain(|place| other.zeros.contains(place));
        join(&mut self.registers, &other.registers)
            | join(&mut self.memory, &other.memory)
            | (before != self.written)
            | (zeros != self.zeros.len())
    }
}

/// Joins a state into the one before an instruction. Returns whether this adds anything.
pub(super) fn reach(before: &mut [Option<State>], at: usize, state: &State) -> bool {
    match before.get_mut(at) {
        Some(Some(known)) => known.join(state),
        Some(unseen) => {
            *unseen = Some(state.clone());
            true
        }
        None => false,
    }
}

impl Procedure {
    /// The first instruction at which an address of the frame may leave it.
    pub(super) fn leaks(&self, depths: &[i64]) -> Option<usize> {
        let mut before: Vec<Option<State>> = vec![None; self.instructions.len()];
        let mut open = VecDeque::from([0]);
        if let Some(first) = before.first_mut() {
            *first = Some(State::default());
        }
        let mut leaking = None;
        while let Some(at) = open.pop_front() {
            let Some(mut state) = before.get(at).cloned().flatten() else {
                continue;
            };
            let it = &self.instructions[at];
            let is_fine = match &it.calls {
                Some(name) => {
                    let passed = passed(state.written);
                    let mut has_some = state.registers.keys().any(|one| one & passed != 0);
                    has_some &= !ENTRIES.contains(&name.as_str()) && !it.ends && name != COMPARES;
                    state.registers.retain(|one, _| one & CHANGED == 0);
                    // Its results.
                    state.written = 0b11 << FIRST;
                    !has_some
                }
                None => {
                    state.written |= it.writes;
                    state.step(&it.effect, Some(depths[at])).is_none()
                }
            };
            if !is_fine {
                leaking = Some(leaking.map_or(at, |first: usize| first.min(at)));
            }
            for next in self.next(at) {
                if reach(&mut before, next, &state) {
                    open.push_back(next);
                }
            }
        }
        leaking
    }
}

/// The bit of a0.
pub(super) const FIRST: u32 = 10;

/// How many registers may be arguments.
pub(super) const ARGUMENTS: u32 = 8;

/// Registers that may be arguments of a call: from a0 on, as far as they were written since the last call. One behind a gap is left over from something else.
fn passed(written: Registers) -> Registers {
    let count = (written >> FIRST).trailing_ones().min(ARGUMENTS);
    ((1 << count) - 1) << FIRST
}
