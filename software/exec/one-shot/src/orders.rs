//! Every order of accesses of several agents, for the tests of what cores share.
//!
//! Each operation is run again from its start with the answers that it has got so far, up to its next access. So a state consists
//! of the memory, the answers and the stores under way, and the tests visit all states. Stores are posted as on a chip whose stores
//! to different addresses may arrive in any order; only `order` waits for them.

use crate::port::Memory;
use bulkhead_abi::one_shot::port::LOCK;
use std::collections::HashSet;
use std::hash::Hash;

/// The operation must wait for its turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Later;

/// Bytes of memory.
pub const SIZE: usize = 96;
/// All memory.
pub type Bytes = [u8; SIZE];

#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Agent {
    /// The answers of its accesses.
    answers: Vec<u64>,
    /// Stores under way: address, length, value.
    stores: Vec<(u64, u8, u64)>,
}

pub struct Turn<'a> {
    memory: &'a mut Bytes,
    agent: &'a mut Agent,
    at: usize,
    acted: bool,
}

pub fn load(memory: &Bytes, address: u64, bytes: u8) -> u64 {
    let at = address as usize;
    let mut word = [0; 8];
    word[..bytes.into()].copy_from_slice(&memory[at..at + usize::from(bytes)]);
    u64::from_le_bytes(word)
}

pub fn store(memory: &mut Bytes, (address, bytes, value): (u64, u8, u64)) {
    let at = address as usize;
    memory[at..at + usize::from(bytes)].copy_from_slice(&value.to_le_bytes()[..bytes.into()]);
}

impl Turn<'_> {
    /// One access: a new one, if this turn had none yet and `ready` says so.
    fn act(
        &mut self,
        ready: impl FnOnce(&Agent) -> bool,
        access: impl FnOnce(&mut Bytes, &mut Agent) -> u64,
    ) -> Result<u64, Later> {
        if let Some(answer) = self.agent.answers.get(self.at) {
            self.at += 1;
            return Ok(*answer);
        }
        if self.acted || !ready(self.agent) {
            return Err(Later);
        }
        self.acted = true;
        self.at += 1;
        let answer = access(self.memory, self.agent);
        self.agent.answers.push(answer);
        Ok(answer)
    }

    /// No older store of the same agent to the same eight bytes is under way.
    fn settled(address: u64) -> impl FnOnce(&Agent) -> bool {
        move |agent| agent.stores.iter().all(|s| s.0 / 8 != address / 8)
    }

    fn load(&mut self, address: u64, bytes: u8) -> Result<u64, Later> {
        self.act(Self::settled(address), |memory, _| {
            load(memory, address, bytes)
        })
    }

    fn store(&mut self, address: u64, bytes: u8, value: u64) -> Result<(), Later> {
        let post = |_: &mut Bytes, agent: &mut Agent| {
            agent.stores.push((address, bytes, value));
            0
        };
        self.act(Self::settled(address), post).map(|_| ())
    }
}

impl Memory for Turn<'_> {
    type Error = Later;

    fn load(&mut self, address: u64) -> Result<u32, Later> {
        self.load(address, 4).map(|value| value as u32)
    }
    fn load_double(&mut self, address: u64) -> Result<u64, Later> {
        self.load(address, 8)
    }
    fn store(&mut self, address: u64, value: u32) -> Result<(), Later> {
        self.store(address, 4, value.into())
    }
    fn store_double(&mut self, address: u64, value: u64) -> Result<(), Later> {
        self.store(address, 8, value)
    }
    fn swap(&mut self, address: u64, value: u32) -> Result<u32, Later> {
        let exchange = |memory: &mut Bytes, _: &mut Agent| {
            let old = load(memory, address, 4);
            store(memory, (address, 4, value.into()));
            old
        };
        self.act(Self::settled(address), exchange)
            .map(|old| old as u32)
    }
    fn order(&mut self) -> Result<(), Later> {
        self.act(|agent| agent.stores.is_empty(), |_, _| 0)
            .map(|_| ())
    }
    fn copy_to(&mut self, address: u64, bytes: &[u8]) -> Result<(), Later> {
        for (index, word) in bytes.chunks_exact(8).enumerate() {
            let value = u64::from_le_bytes(word.try_into().expect("eight bytes"));
            self.store(address + 8 * index as u64, 8, value)?;
        }
        Ok(())
    }
    fn copy_from(&mut self, address: u64, bytes: &mut [u8]) -> Result<(), Later> {
        for (index, word) in bytes.chunks_exact_mut(8).enumerate() {
            word.copy_from_slice(&self.load(address + 8 * index as u64, 8)?.to_le_bytes());
        }
        Ok(())
    }
}

type State = (Bytes, Vec<Agent>);

/// What an agent does, with its number.
pub type Action<'a, O> = &'a dyn Fn(u32, &mut Turn<'_>) -> Result<O, Later>;

/// Visits every state. Returns all ends: the outcomes in the order of the agents, and the memory.
pub fn explore<O: Clone + Eq + Hash>(
    memory: Bytes,
    actions: &[Action<'_, O>],
) -> HashSet<(Vec<O>, Bytes)> {
    let mut ends = HashSet::new();
    let mut seen: HashSet<State> = HashSet::new();
    let mut open: Vec<State> = vec![(memory, vec![Agent::default(); actions.len()])];
    while let Some(state) = open.pop() {
        if !seen.insert(state.clone()) {
            continue;
        }
        let mut outcomes = Vec::new();
        let mut moved = false;
        for (number, action) in actions.iter().enumerate() {
            // A store arrives: any one that is under way.
            for index in 0..state.1[number].stores.len() {
                let (mut memory, mut agents) = state.clone();
                store(&mut memory, agents[number].stores.remove(index));
                moved = true;
                open.push((memory, agents));
            }
            let (mut memory, mut agents) = state.clone();
            let mut turn = Turn {
                memory: &mut memory,
                agent: &mut agents[number],
                at: 0,
                acted: false,
            };
            let end = action(number as u32, &mut turn);
            if turn.acted {
                moved = true;
                open.push((memory, agents));
            } else if let Ok(outcome) = end {
                outcomes.push(outcome);
            }
        }
        if !moved {
            assert_eq!(outcomes.len(), actions.len(), "nobody can go on: {state:?}");
            ends.insert((outcomes, state.0));
        }
    }
    assert!(
        ends.iter().all(|(_, memory)| load(memory, LOCK, 4) != 1),
        "a lock is left behind"
    );
    ends
}

/// A chip whose accesses are performed one after another.
pub struct Plain(pub Bytes);

impl Memory for Plain {
    type Error = core::convert::Infallible;
    fn load(&mut self, address: u64) -> Result<u32, Self::Error> {
        Ok(load(&self.0, address, 4) as u32)
    }
    fn load_double(&mut self, address: u64) -> Result<u64, Self::Error> {
        Ok(load(&self.0, address, 8))
    }
    fn store(&mut self, address: u64, value: u32) -> Result<(), Self::Error> {
        store(&mut self.0, (address, 4, value.into()));
        Ok(())
    }
    fn store_double(&mut self, address: u64, value: u64) -> Result<(), Self::Error> {
        store(&mut self.0, (address, 8, value));
        Ok(())
    }
    fn swap(&mut self, address: u64, value: u32) -> Result<u32, Self::Error> {
        let old = self.load(address);
        store(&mut self.0, (address, 4, value.into()));
        old
    }
    fn order(&mut self) -> Result<(), Self::Error> {
        Ok(())
    }
    fn copy_to(&mut self, address: u64, bytes: &[u8]) -> Result<(), Self::Error> {
        self.0[address as usize..][..bytes.len()].copy_from_slice(bytes);
        Ok(())
    }
    fn copy_from(&mut self, address: u64, bytes: &mut [u8]) -> Result<(), Self::Error> {
        bytes.copy_from_slice(&self.0[address as usize..][..bytes.len()]);
        Ok(())
    }
}
