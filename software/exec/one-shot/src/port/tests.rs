//! Sampling ports under every order of accesses ([`crate::orders`]).

use super::*;
use crate::orders::{Action, Bytes, Later, Plain, Turn, explore, load, store};
use std::collections::HashSet;

const RECORD: u64 = 0;
const DATA: u64 = 32;
const SIZE: usize = 16;
/// Where the data ends.
const END: usize = DATA as usize + SIZE;

/// An agent's operation.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Operation {
    Initialise,
    /// Gets the port and writes this value in every byte.
    Write(u8),
    /// Gets the port and reads.
    Read,
    /// The reader is gone.
    Close,
}

/// The outcome of an operation.
#[derive(Clone, PartialEq, Eq, Debug, Hash, PartialOrd, Ord)]
enum Outcome {
    Initialised(bool),
    NoPort,
    Written,
    Read(Vec<u8>, bool),
    Failed(&'static str),
    Closed(bool),
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
        Failure::Closed => Ok(Outcome::Failed("closed")),
        Failure::Size | Failure::Full => Ok(Outcome::Failed("size")),
    };
    if operation == Operation::Close {
        return close(turn, RECORD, caller)
            .map(Outcome::Closed)
            .or_else(failed);
    }
    if operation == Operation::Initialise {
        let own = (DATA, SIZE as u32);
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

/// All ends of these operations.
fn ends(memory: Bytes, operations: &[Operation]) -> HashSet<(Vec<Outcome>, Bytes)> {
    let actions: Vec<_> = operations
        .iter()
        .map(|&operation| move |number, turn: &mut Turn<'_>| run(operation, number, turn))
        .collect();
    let actions: Vec<Action<'_, Outcome>> = actions
        .iter()
        .map(|one| one as Action<'_, Outcome>)
        .collect();
    explore(memory, &actions)
}

/// A port that holds this value, or nothing yet.
fn port(news: u32, value: u8) -> Bytes {
    let mut memory = [0; crate::orders::SIZE];
    let state = INITIALISED | SIZE as u64 | (DATA / DATA_UNIT) << DATA_SHIFT;
    store(&mut memory, (STATE, 8, state));
    store(&mut memory, (NEWS, 4, news.into()));
    memory[DATA as usize..END].fill(value);
    memory
}

fn outcomes(ends: &HashSet<(Vec<Outcome>, Bytes)>) -> Vec<Vec<Outcome>> {
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
    let ends = ends(port(WAS_READ, 1), &[Operation::Write(2), Operation::Read]);
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
    let ends = ends(
        port(NEVER_WRITTEN, 0),
        &[Operation::Write(1), Operation::Write(2)],
    );
    for (outcomes, memory) in &ends {
        let data = &memory[DATA as usize..END];
        assert!(data.iter().all(|byte| *byte == data[0]) && data[0] != 0);
        assert_eq!(load(memory, NEWS, 4) as u32, NEW_DATA);
        assert!(outcomes.contains(&Outcome::Written));
    }
}

/// With living writers, every one that has not reached the end of the port is told, and nobody gets in afterwards.
#[test]
fn a_closed_port_stays_closed_whoever_writes_meanwhile() {
    let closed = |memory: &Bytes| {
        let mut chip = Plain(*memory);
        let port = get(&mut chip, RECORD).expect("works").expect("is there");
        assert_eq!(
            write(&mut chip, &port, CALLER, &[9; SIZE]),
            Err(Failure::Closed)
        );
        assert_eq!(chip.0, *memory);
    };
    let writes = [Operation::Write(1), Operation::Write(2)];
    for (outcomes, memory) in ends(port(NEVER_WRITTEN, 0), &[writes[0], Operation::Close]) {
        let written = load(&memory, NEWS, 4) as u32 == NEW_DATA;
        assert_eq!(outcomes[0] == Outcome::Written, written, "{outcomes:?}");
        match outcomes[1] {
            Outcome::Closed(true) => closed(&memory),
            // Only a writer that held the lock for too long opens it.
            Outcome::Closed(false) => assert!(written || load(&memory, LOCK, 4) == 2),
            _ => panic!("{outcomes:?}"),
        }
    }
    let mut gone = port(NEVER_WRITTEN, 0);
    store(&mut gone, (LOCK, 4, CLOSED.into()));
    for (outcomes, memory) in ends(gone, &writes) {
        // Each sees that it is closed, or that another one checks the lock.
        let told = |one: &Outcome| matches!(one, Outcome::Failed("closed" | "locked"));
        assert!(outcomes.iter().all(told), "{outcomes:?}");
        assert!(outcomes.contains(&Outcome::Failed("closed")));
        closed(&memory);
    }
}

/// A writer that stopped in the middle has the lock; the port is closed all the same.
#[test]
fn a_port_is_closed_although_nobody_gives_its_lock_back() {
    let mut chip = Plain(port(NEVER_WRITTEN, 0));
    assert_eq!(lock(&mut chip, LOCK, HOLDER, CALLER), Ok(()));
    assert_eq!(close(&mut chip, RECORD, CALLER), Ok(false));
    let port = get(&mut chip, RECORD).expect("works").expect("is there");
    assert_eq!(
        write(&mut chip, &port, CALLER, &[1; 8]),
        Err(Failure::Closed)
    );
    assert_eq!(
        write(&mut chip, &port, CALLER, &[1; 8]),
        Err(Failure::Closed)
    );
}

#[test]
fn two_readers_read_it_as_new_once() {
    let ends = ends(port(NEW_DATA, 7), &[Operation::Read, Operation::Read]);
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
    for (outcomes, memory) in ends(port(NEVER_WRITTEN, 0), &operations) {
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
    for (outcomes, memory) in ends([0; crate::orders::SIZE], &operations) {
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

const CALLER: Caller = Caller {
    core: 4,
    patience: 3,
};

#[test]
fn the_life_of_a_port() {
    let mut chip = Plain([0; crate::orders::SIZE]);
    assert_eq!(get(&mut chip, RECORD), Ok(None));
    let port = initialise(&mut chip, RECORD, CALLER, (DATA, 8))
        .expect("free")
        .expect("new");
    assert_eq!(initialise(&mut chip, RECORD, CALLER, (DATA, 8)), Ok(None));
    assert_eq!(get(&mut chip, RECORD), Ok(Some(port)));
    assert_eq!(load(&chip.0, STATE, 8), INITIALISED | 8 | 4 << 48);
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

/// Data is in its record's own core, in the map in which the record's address is.
#[test]
fn a_record_leads_to_no_other_core() {
    for window in [0x8000_0000, 0x1_0000_0000, 0x1_0000_0000 + (0xFFF << 20)] {
        let record = window + 0x7E20;
        assert_eq!(data_of(record, 0x123 << DATA_SHIFT), window + 0x918);
        for state in [0, u64::MAX, INITIALISED | 8] {
            let data = data_of(record, state);
            assert!((window..window + (1 << TILE_WINDOW_SHIFT)).contains(&data));
        }
    }
    let mut chip = Plain([0; crate::orders::SIZE]);
    for data in [DATA + 4, 1 << 19, 1 << 20] {
        let made = initialise(&mut chip, RECORD, CALLER, (data, 8));
        assert_eq!(made, Err(Failure::Size));
    }
    assert_eq!(chip.0, [0; crate::orders::SIZE]);
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
