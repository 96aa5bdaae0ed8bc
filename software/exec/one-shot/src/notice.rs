//! News of a port by a doorbell: the reader waits for an interrupt instead of polling.
//!
//! Why it exists: the order of a few accesses decides whether a reader sleeps beside a new item for ever. What it deliberately does not know: which
//! task waits, and where doorbells are.
//!
//! A doorbell is a level: 1 interrupts the owner's core until it is 0. The writer rings after its item is visible. The handler lowers the doorbell
//! before it looks at the port, so a later item finds the doorbell low and raises it again. The handler sets a suspension object only if the port has
//! news: a ring without an item wakes nobody. The object keeps what it is told, so a reader that looks at the port and then waits misses nothing.

use crate::port::{Failure, Memory, Port, has_news};

/// Rings, after everything that this core has written is visible.
///
/// # Errors
/// The memory's.
#[inline]
pub fn ring<M: Memory>(memory: &mut M, doorbell: u64) -> Result<(), Failure<M::Error>> {
    memory.order()?;
    Ok(memory.store(doorbell, 1)?)
}

/// Lowers the own doorbell, and then says whether the port has an item that nobody has read. For the handler of the interrupt; of several ports, the
/// others are looked at after this one.
///
/// # Errors
/// The memory's.
#[inline]
pub fn hear<M: Memory>(
    memory: &mut M,
    doorbell: u64,
    port: &Port,
) -> Result<bool, Failure<M::Error>> {
    memory.store(doorbell, 0)?;
    hear_lowered(memory, port)
}

/// The same of a caller who has lowered the doorbell.
///
/// # Errors
/// The memory's.
#[inline]
pub fn hear_lowered<M: Memory>(memory: &mut M, port: &Port) -> Result<bool, Failure<M::Error>> {
    memory.order()?;
    has_news(memory, port)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::orders::{Action, Bytes, Later, Turn, explore, load, store};
    use crate::port::{Caller, get, write};
    use bulkhead_abi::one_shot::port::{ADDRESS, INITIALISED, NEW_DATA, NEWS, STATE, WAS_READ};

    const DATA: u64 = 32;
    const DOORBELL: u64 = 80;
    /// The suspension object: 1 is true.
    const OBJECT: u64 = 88;

    fn port(news: u32, doorbell: u64) -> Bytes {
        let mut memory = [0; crate::orders::SIZE];
        store(&mut memory, (STATE, 8, INITIALISED | 8));
        store(&mut memory, (ADDRESS, 8, DATA));
        store(&mut memory, (NEWS, 4, news.into()));
        store(&mut memory, (DOORBELL, 4, doorbell));
        memory
    }

    fn later<T>(result: Result<T, Failure<Later>>) -> Result<T, Later> {
        match result {
            Ok(value) => Ok(value),
            Err(Failure::Memory(later)) => Err(later),
            Err(failure) => panic!("{failure:?}"),
        }
    }

    fn writer(core: u32, turn: &mut Turn<'_>) -> Result<bool, Later> {
        let port = later(get(turn, 0))?.expect("initialised");
        // Nobody but writers takes the lock, each once.
        let caller = Caller { core, patience: 8 };
        match write(turn, &port, caller, &[7; 8]) {
            Err(Failure::Locked { .. }) => return Ok(false),
            written => later(written)?,
        }
        later(ring(turn, DOORBELL))?;
        Ok(true)
    }

    /// The interrupt, at any moment at which the doorbell is raised.
    fn handler(_: u32, turn: &mut Turn<'_>) -> Result<bool, Later> {
        if Memory::load(turn, DOORBELL)? == 0 {
            return Ok(false);
        }
        let port = later(get(turn, 0))?.expect("initialised");
        let news = later(hear(turn, DOORBELL, &port))?;
        if news {
            Memory::store(turn, OBJECT, 1)?;
        }
        Ok(news)
    }

    /// Looks before it lowers.
    fn wrong(_: u32, turn: &mut Turn<'_>) -> Result<bool, Later> {
        if Memory::load(turn, DOORBELL)? == 0 {
            return Ok(false);
        }
        let port = later(get(turn, 0))?.expect("initialised");
        let news = later(has_news(turn, &port))?;
        turn.order()?;
        Memory::store(turn, DOORBELL, 0)?;
        if news {
            Memory::store(turn, OBJECT, 1)?;
        }
        Ok(news)
    }

    /// Whether the item is there, nothing will interrupt again, and the reader was not told.
    fn is_lost(memory: &Bytes) -> bool {
        load(memory, NEWS, 4) as u32 == NEW_DATA
            && load(memory, DOORBELL, 4) == 0
            && load(memory, OBJECT, 4) == 0
    }

    #[test]
    fn no_item_is_without_an_interrupt_or_a_told_reader() {
        for doorbell in [0, 1] {
            let actions: [Action<'_, bool>; 3] = [&writer, &writer, &handler];
            let ends = explore(port(WAS_READ, doorbell), &actions);
            assert!(ends.iter().any(|(who, _)| who[0] && who[1]));
            assert!(ends.iter().any(|(who, _)| who[2]), "the handler hears it");
            for (who, memory) in &ends {
                assert!(!is_lost(memory), "{who:?}");
            }
        }
    }

    #[test]
    fn a_handler_that_looks_first_loses_an_item() {
        let actions: [Action<'_, bool>; 2] = [&writer, &wrong];
        let ends = explore(port(WAS_READ, 1), &actions);
        assert!(ends.iter().any(|(_, memory)| is_lost(memory)));
    }

    #[test]
    fn a_ring_without_an_item_tells_nobody() {
        let actions: [Action<'_, bool>; 1] = [&handler];
        for (who, memory) in explore(port(WAS_READ, 1), &actions) {
            assert!(!who[0] && load(&memory, DOORBELL, 4) == 0);
            assert_eq!(load(&memory, OBJECT, 4), 0);
        }
    }
}
