//! Ports under every order of accesses.
//!
//! Each operation is run again from its start with the answers that it has got so far, up to its next access. So a state consists
//! of the memory, the answers and the stores under way, and the tests visit all states. Stores are posted as on a chip whose stores
//! to different addresses may arrive in any order; only `order` waits for them.

use super::*;
use std::collections::HashSet;

const RECORD: u64 = 0;
const DATA: u64 = 32;
const SIZE: usize = 16;

/// The operation must wait for its turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Later;

type Memory48 = [u8; 48];

#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
struct Agent {
    /// The answers of its accesses.
    answers: Vec<u64>,
    /// Stores under way: address, length, value.
    stores: Vec<(u64, u8, u64)>,
}

struct Turn<'a> {
    memory: &'a mut Memory48,
    agent: &'a mut Agent,
    at: usize,
    acted: bool,
}

fn load(memory: &Memory48, address: u64, bytes: u8) -> u64 {
    let at = address as usize;
    let mut word = [0; 8];
    word[..bytes.into()].copy_from_slice(&memory[at..at + usize::from(bytes)]);
    u64::from_le_bytes(word)
}

fn store(memory: &mut Memory48, (address, bytes, value): (u64, u8, u64)) {
    let at = address as usize;
    memory[at..at + usize::from(bytes)].copy_from_slice(&value.to_le_bytes()[..bytes.into()]);
}

impl Turn<'_> {
    /// One access: a new one, if this turn had none yet and `ready` says so.
    fn act(
        &mut self,
        ready: impl FnOnce(&Agent) -> bool,
        access: impl FnOnce(&mut Memory48, &mut Agent) -> u64,
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
        let post = |_: &mut Memory48, agent: &mut Agent| {
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
        let exchange = |memory: &mut Memory48, _: &mut Agent| {
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

/// An agent's operation.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Operation {
    Initialise,
    /// Gets the port and writes this value in every byte.
    Write(u8),
    /// Gets the port and reads.
    Read,
}

/// The outcome of an operation.
#[derive(Clone, PartialEq, Eq, Debug, Hash, PartialOrd, Ord)]
enum Outcome {
    Initialised(bool),
    NoPort,
    Written,
    Read(Vec<u8>, bool),
    Failed(&'static str),
}

fn run(operation: Operation, number: u32, turn: &mut Turn<'_>) -> Result<Outcome, Later> {
    let caller = Caller {
        core: number,
        patience: 2,
    };
    let failed = |failure| match failure {
        Failure::Memory(later) => Err(later),
        // The holder is known only after it has had time to write its number.
        Failure::Locked { .. } => Ok(Outcome::Failed("locked")),
        Failure::NoData => Ok(Outcome::Failed("no data")),
        Failure::Size => Ok(Outcome::Failed("size")),
    };
    if operation == Operation::Initialise {
        let own = (number as u16, DATA, SIZE as u32);
        return initialise(turn, RECORD, caller, own)
            .map(|port| Outcome::Initialised(port.is_some()))
            .or_else(failed);
    }
    let port = match get(turn, RECORD) {
        Ok(Some(port)) => port,
        Ok(None) => return Ok(Outcome::NoPort),
        Err(failure) => return failed(failure),
    };
    assert_eq!(
        (port.data, port.size()),
        (DATA, SIZE as u32),
        "a half initialised port"
    );
    let mut room = [0; SIZE];
    match operation {
        Operation::Write(value) => write(turn, &port, caller, &[value; SIZE])
            .map(|()| Outcome::Written)
            .or_else(failed),
        _ => read(turn, &port, caller, &mut room)
            .map(|new| Outcome::Read(room.to_vec(), new))
            .or_else(failed),
    }
}

type State = (Memory48, Vec<Agent>);

/// Visits every state. Returns all ends: the outcomes in the order of the agents, and the memory.
fn explore(memory: Memory48, operations: &[Operation]) -> HashSet<(Vec<Outcome>, Memory48)> {
    let mut ends = HashSet::new();
    let mut seen: HashSet<State> = HashSet::new();
    let mut open: Vec<State> = vec![(memory, vec![Agent::default(); operations.len()])];
    while let Some(state) = open.pop() {
        if !seen.insert(state.clone()) {
            continue;
        }
        let mut outcomes = Vec::new();
        let mut moved = false;
        for (number, operation) in operations.iter().enumerate() {
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
            let end = run(*operation, number as u32, &mut turn);
            if turn.acted {
                moved = true;
                open.push((memory, agents));
            } else if let Ok(outcome) = end {
                outcomes.push(outcome);
            }
        }
        if !moved {
            assert_eq!(
                outcomes.len(),
                operations.len(),
                "nobody can go on: {state:?}"
            );
            ends.insert((outcomes, state.0));
        }
    }
    assert!(
        ends.iter().all(|(_, memory)| load(memory, LOCK, 4) == 0),
        "a lock is left behind"
    );
    ends
}

/// A port that holds this value, or nothing yet.
fn port(news: u32, value: u8) -> Memory48 {
    let mut memory = [0; 48];
    store(&mut memory, (STATE, 8, INITIALISED | SIZE as u64));
    store(&mut memory, (ADDRESS, 8, DATA));
    store(&mut memory, (NEWS, 4, news.into()));
    memory[DATA as usize..].fill(value);
    memory
}

fn outcomes(ends: &HashSet<(Vec<Outcome>, Memory48)>) -> Vec<Vec<Outcome>> {
    let mut all: Vec<_> = ends.iter().map(|(outcomes, _)| outcomes.clone()).collect();
    all.sort();
    all.dedup();
    all
}

fn whole(outcome: &Outcome, values: &[u8]) -> bool {
    match outcome {
        Outcome::Read(data, _) => values
            .iter()
            .any(|value| data.iter().all(|byte| byte == value)),
        _ => true,
    }
}

#[test]
fn a_read_beside_a_write_sees_the_one_or_the_other() {
    let ends = explore(port(WAS_READ, 1), &[Operation::Write(2), Operation::Read]);
    for (outcomes, memory) in &ends {
        assert!(whole(&outcomes[1], &[1, 2]), "{outcomes:?}");
        let news = load(memory, NEWS, 4) as u32;
        match &outcomes[..] {
            // Data that was read as new is the written data, and is no longer new; otherwise it still is.
            [Outcome::Written, Outcome::Read(data, new)] => {
                assert_eq!(*new, data[0] == 2);
                assert_eq!(news, if *new { WAS_READ } else { NEW_DATA });
            }
            [Outcome::Written, Outcome::Failed(_)] => assert_eq!(news, NEW_DATA),
            [Outcome::Failed(_), Outcome::Read(data, new)] => {
                assert!(data[0] == 1 && !new && news == WAS_READ)
            }
            other => panic!("{other:?}"),
        }
    }
    // Both orders happen, and either agent may run out of attempts.
    assert_eq!(outcomes(&ends).len(), 4);
}

#[test]
fn two_writers_leave_one_whole_item() {
    let ends = explore(
        port(NEVER_WRITTEN, 0),
        &[Operation::Write(1), Operation::Write(2)],
    );
    for (outcomes, memory) in &ends {
        let data = &memory[DATA as usize..];
        assert!(data.iter().all(|byte| *byte == data[0]) && data[0] != 0);
        assert_eq!(load(memory, NEWS, 4) as u32, NEW_DATA);
        assert!(outcomes.contains(&Outcome::Written));
    }
}

#[test]
fn two_readers_read_it_as_new_once() {
    let ends = explore(port(NEW_DATA, 7), &[Operation::Read, Operation::Read]);
    for (outcomes, _) in &ends {
        let news = outcomes
            .iter()
            .filter(|o| matches!(o, Outcome::Read(_, true)))
            .count();
        assert_eq!(news, 1, "{outcomes:?}");
        assert!(outcomes.iter().all(|o| whole(o, &[7])));
    }
}

#[test]
fn two_writers_and_a_reader() {
    let operations = [Operation::Write(1), Operation::Write(2), Operation::Read];
    for (outcomes, memory) in explore(port(NEVER_WRITTEN, 0), &operations) {
        assert!(whole(&outcomes[2], &[1, 2]), "{outcomes:?}");
        let value = memory[DATA as usize];
        let expected = match &outcomes[2] {
            // The reader was last, and has the final data.
            Outcome::Read(data, true) if value == data[0] => WAS_READ,
            // Both writers ran out of attempts while the reader found nothing.
            _ if !outcomes.contains(&Outcome::Written) => NEVER_WRITTEN,
            _ => NEW_DATA,
        };
        assert_eq!(load(&memory, NEWS, 4) as u32, expected, "{outcomes:?}");
    }
}

#[test]
fn a_port_is_initialised_once_and_nobody_sees_half_of_it() {
    let operations = [
        Operation::Initialise,
        Operation::Initialise,
        Operation::Write(3),
    ];
    for (outcomes, memory) in explore([0; 48], &operations) {
        let made = outcomes
            .iter()
            .filter(|o| **o == Outcome::Initialised(true))
            .count();
        assert_eq!(made, 1, "{outcomes:?}");
        let written = outcomes[2] == Outcome::Written;
        assert_eq!(
            load(&memory, NEWS, 4) as u32,
            if written { NEW_DATA } else { NEVER_WRITTEN }
        );
    }
}

/// A chip whose accesses are performed one after another.
struct Plain(Memory48);

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

const CALLER: Caller = Caller {
    core: 4,
    patience: 3,
};

#[test]
fn the_life_of_a_port() {
    let mut chip = Plain([0; 48]);
    assert_eq!(get(&mut chip, RECORD), Ok(None));
    let port = initialise(&mut chip, RECORD, CALLER, (9, DATA, 8))
        .expect("free")
        .expect("new");
    assert_eq!(
        initialise(&mut chip, RECORD, CALLER, (9, DATA, 8)),
        Ok(None)
    );
    assert_eq!(get(&mut chip, RECORD), Ok(Some(port)));
    assert_eq!(load(&chip.0, STATE, 8), INITIALISED | 8 | 9 << 48);
    let mut room = [0xEE; 10];
    assert_eq!(
        read(&mut chip, &port, CALLER, &mut room),
        Err(Failure::NoData)
    );
    assert_eq!(has_news(&mut chip, &port), Ok(false));
    assert_eq!(write(&mut chip, &port, CALLER, &[1; 9]), Err(Failure::Size));
    assert_eq!(write(&mut chip, &port, CALLER, &[1; 8]), Ok(()));
    assert_eq!(has_news(&mut chip, &port), Ok(true));
    assert_eq!(
        read(&mut chip, &port, CALLER, &mut room[..7]),
        Err(Failure::Size)
    );
    // A shorter item leaves the rest of the data; a larger buffer keeps its own rest.
    assert_eq!(write(&mut chip, &port, CALLER, &[2; 3]), Ok(()));
    assert_eq!(read(&mut chip, &port, CALLER, &mut room), Ok(true));
    assert_eq!(room, [2, 2, 2, 1, 1, 1, 1, 1, 0xEE, 0xEE]);
    assert_eq!(read(&mut chip, &port, CALLER, &mut room), Ok(false));
}

#[test]
fn waiting_for_a_lock_ends() {
    let mut chip = Plain(port(NEW_DATA, 1));
    let port = get(&mut chip, RECORD).expect("works").expect("is there");
    assert_eq!(
        lock(
            &mut chip,
            LOCK,
            HOLDER,
            Caller {
                core: 7,
                patience: 1
            }
        ),
        Ok(())
    );
    let before = chip.0;
    let locked = Failure::Locked { holder: 7 };
    assert_eq!(write(&mut chip, &port, CALLER, &[2; 8]), Err(locked));
    assert_eq!(read(&mut chip, &port, CALLER, &mut [0; SIZE]), Err(locked));
    assert_eq!(chip.0, before);
    assert_eq!(unlock(&mut chip, LOCK), Ok(()));
    assert_eq!(write(&mut chip, &port, CALLER, &[2; 8]), Ok(()));
}
