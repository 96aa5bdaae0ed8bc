//! Where addresses of a preserved frame may go.
//!
//! Why it exists: parameters of an entry are passed by their addresses, so a body that calls one makes addresses of its own frame. While
//! its task waits, the frame is elsewhere, so no other code may have such an address: it may be in registers and in the frame itself, and
//! go to the run time's calls of entries, which know that the frame is elsewhere. What it deliberately does not know: the rules for
//! registers and values.

use super::{CHANGED, Procedure, Registers, register, width};
use std::collections::{BTreeMap, VecDeque};

/// Calls that may have addresses of the frame, besides those that end a job.
const ENTRIES: [&str; 2] = [
    "system__tasking__protected_objects__operations__waits",
    "system__tasking__protected_objects__single_entry__waits",
];

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
    /// Memory is changed in one step with something of registers.
    Atomic { from: Registers },
    /// Nothing of that, or what the procedure's own analysis knows.
    Other,
}

const SP: &str = "sp";

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
        // What is read there is tested, and nothing is made of it.
        _ if mnemonic.starts_with('b') || operands.is_empty() => Effect::Other,
        _ => {
            let rest = operands.iter().skip(1);
            let from = rest.fold(0, |all, operand| all | super::registers(operand));
            match mnemonic.starts_with("amo") || mnemonic.starts_with("sc.") {
                true => Effect::Atomic { from },
                false => Effect::Compute { to: one(0), from },
            }
        }
    }
}

/// An address of the frame, from its end on; or one whose place is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Address {
    At(i64),
    Somewhere,
}

/// What registers and bytes of the frame have: addresses, by the bit of the register and the place in the frame.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct State {
    registers: BTreeMap<Registers, Address>,
    frame: BTreeMap<i64, Address>,
    /// Registers that some way has written since the last call.
    written: Registers,
}

/// Joins what two ways have; whether that is more than the first had.
fn join<K: Ord + Copy>(into: &mut BTreeMap<K, Address>, from: &BTreeMap<K, Address>) -> bool {
    let mut is_more = false;
    for (key, address) in from {
        match into.get(key) {
            Some(Address::Somewhere) => {}
            Some(known) if known == address => {}
            Some(_) => {
                into.insert(*key, Address::Somewhere);
                is_more = true;
            }
            None => {
                into.insert(*key, *address);
                is_more = true;
            }
        }
    }
    is_more
}

impl State {
    fn set(&mut self, register: Registers, address: Option<Address>) {
        match address {
            Some(address) => self.registers.insert(register, address),
            None => self.registers.remove(&register),
        };
    }

    /// The place that an access has in the frame; none if it is not there.
    fn place(&self, base: Registers, offset: Option<i64>, depth: i64) -> Option<Address> {
        if base == super::SP {
            return Some(offset.map_or(Address::Somewhere, |offset| Address::At(depth + offset)));
        }
        Some(match (self.registers.get(&base)?, offset) {
            (Address::At(at), Some(offset)) => Address::At(at + offset),
            _ => Address::Somewhere,
        })
    }

    /// What follows an instruction. False: an address leaves the frame.
    fn step(&mut self, effect: &Effect, depth: i64) -> bool {
        match *effect {
            Effect::Make { to, .. } if to == super::SP => {}
            Effect::Make { to, offset } => self.set(to, Some(Address::At(depth + offset))),
            Effect::Copy { to, from, more } => {
                let address = self.registers.get(&from).map(|address| match address {
                    Address::At(at) => Address::At(at + more),
                    Address::Somewhere => Address::Somewhere,
                });
                self.set(to, address);
            }
            Effect::Load {
                to,
                base,
                offset,
                width,
            } => {
                let address = match self.place(base, offset, depth) {
                    Some(Address::At(at)) if width == 8 => self.frame.get(&at).copied(),
                    Some(Address::Somewhere) if width == 8 && !self.frame.is_empty() => {
                        Some(Address::Somewhere)
                    }
                    _ => None,
                };
                self.set(to, address);
            }
            Effect::Store {
                value,
                base,
                offset,
                width,
            } => {
                let address = match value {
                    super::SP => Some(Address::At(depth)),
                    _ => self.registers.get(&value).copied(),
                };
                match (self.place(base, offset, depth), address) {
                    (Some(Address::At(at)), address) => {
                        self.frame
                            .retain(|place, _| *place + 8 <= at || at + width <= *place);
                        if let Some(address) = address {
                            self.frame.insert(at, address);
                        }
                    }
                    (_, None) => {}
                    (_, Some(_)) => return false,
                }
            }
            Effect::Compute { to, from } => {
                let is_made = self.registers.keys().any(|one| one & from != 0);
                self.set(to, is_made.then_some(Address::Somewhere));
            }
            Effect::Atomic { from } => {
                return !self.registers.keys().any(|one| one & from != 0);
            }
            Effect::Other => {}
        }
        true
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
                    has_some &= !ENTRIES.contains(&name.as_str()) && !it.ends;
                    state.registers.retain(|one, _| one & CHANGED == 0);
                    // Its results.
                    state.written = 0b11 << FIRST;
                    !has_some
                }
                None => {
                    state.written |= it.writes;
                    state.step(&it.effect, depths[at])
                }
            };
            if !is_fine {
                leaking = Some(leaking.map_or(at, |first: usize| first.min(at)));
            }
            for next in self.next(at) {
                let is_more = match before.get_mut(next) {
                    Some(Some(known)) => {
                        let before = known.written;
                        known.written |= state.written;
                        join(&mut known.registers, &state.registers)
                            | join(&mut known.frame, &state.frame)
                            | (before != known.written)
                    }
                    Some(unseen) => {
                        *unseen = Some(state.clone());
                        true
                    }
                    None => false,
                };
                if is_more {
                    open.push_back(next);
                }
            }
        }
        leaking
    }
}

/// The bit of a0.
const FIRST: u32 = 10;

/// Registers that may be arguments of a call: from a0 on, as far as they were written since the last call. One behind a gap is left over from something else.
fn passed(written: Registers) -> Registers {
    let count = (written >> FIRST).trailing_ones().min(8);
    ((1 << count) - 1) << FIRST
}
