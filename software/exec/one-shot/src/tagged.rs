//! Items of parallel sections: a sampling port whose data begins with a tag, so that no job takes what belongs to an earlier one.
//!
//! Why it exists: a slice, or its result, is useful only in the job for which it was handed out, but a port keeps the last item until the
//! next one arrives. What it deliberately does not know: the meaning of a tag, and how long its users wait.
//!
//! The port's data is a tag of 8 bytes and then the item; locks and states are those of [`crate::port`].

use crate::port::{Caller, Failure, Memory, Port, lock, unlock};
use bulkhead_abi::one_shot::TAG;
use bulkhead_abi::one_shot::port::{HOLDER, LOCK, NEW_DATA, NEWS, WAS_READ};

/// Whether a port has room for a tag and an item of exactly this many bytes.
fn fits(port: &Port, item: usize) -> bool {
    u64::from(port.size()) == item as u64 + TAG
}

/// Writes a tag and an item, whether or not the last ones were read.
///
/// # Errors
/// [`Failure::Size`] if the port is for items of another size, [`Failure::Locked`], or the memory's.
pub fn write<M: Memory>(
    memory: &mut M,
    port: &Port,
    caller: Caller,
    tag: u64,
    item: &[u8],
) -> Result<(), Failure<M::Error>> {
    if !fits(port, item.len()) {
        return Err(Failure::Size);
    }
    let record = port.record();
    lock(memory, record + LOCK, record + HOLDER, caller)?;
    memory.store_double(port.data(), tag)?;
    memory.copy_to(port.data() + TAG, item)?;
    memory.store(record + NEWS, NEW_DATA)?;
    unlock(memory, record + LOCK)
}

/// Takes the item if it is new. Returns which of the wanted tags it has, if any. An unwanted item is old and counts as read.
///
/// # Errors
/// [`Failure::Size`] if the port is for items of another size, [`Failure::Locked`], or the memory's.
pub fn take<M: Memory>(
    memory: &mut M,
    port: &Port,
    caller: Caller,
    wants: impl FnOnce(u64) -> bool,
    room: &mut [u8],
) -> Result<Option<u64>, Failure<M::Error>> {
    if !fits(port, room.len()) {
        return Err(Failure::Size);
    }
    let record = port.record();
    lock(memory, record + LOCK, record + HOLDER, caller)?;
    let mut taken = None;
    if memory.load(record + NEWS)? == NEW_DATA {
        let tag = memory.load_double(port.data())?;
        if wants(tag) {
            memory.copy_from(port.data() + TAG, room)?;
            taken = Some(tag);
        }
        memory.store(record + NEWS, WAS_READ)?;
    }
    unlock(memory, record + LOCK)?;
    Ok(taken)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::orders::{Action, Later, Plain, Turn, explore};
    use crate::port::initialise;

    const RECORD: u64 = 0;
    const DATA: u64 = 32;
    const ITEM: usize = 8;

    fn caller(core: u32) -> Caller {
        Caller { core, patience: 2 }
    }

    fn opened() -> (Plain, Port) {
        let mut memory = Plain([0; crate::orders::SIZE]);
        let own = (DATA, 8 + ITEM as u32);
        let port = initialise(&mut memory, RECORD, caller(0), own);
        let port = port.expect("it is free").expect("it is the first");
        (memory, port)
    }

    #[test]
    fn an_old_item_is_given_up_and_a_wanted_one_comes_with_its_tag() {
        let (mut memory, port) = opened();
        let mut room = [9; ITEM];
        let take = |memory: &mut Plain, least: u64, room: &mut [u8]| {
            take(memory, &port, caller(0), |tag| tag >= least, room)
        };
        assert_eq!(take(&mut memory, 0, &mut room), Ok(None), "nothing yet");
        write(&mut memory, &port, caller(1), 5, &[1; ITEM]).expect("it is free");
        assert_eq!(take(&mut memory, 6, &mut room), Ok(None));
        assert_eq!(room, [9; ITEM], "what nobody wants is not copied");
        assert_eq!(take(&mut memory, 5, &mut room), Ok(None), "it was given up");
        write(&mut memory, &port, caller(1), 7, &[2; ITEM]).expect("it is free");
        assert_eq!(take(&mut memory, 6, &mut room), Ok(Some(7)));
        assert_eq!(room, [2; ITEM]);
        assert_eq!(take(&mut memory, 6, &mut room), Ok(None), "each once");
        let other = [0; ITEM + 1];
        assert_eq!(
            write(&mut memory, &port, caller(1), 8, &other),
            Err(Failure::Size)
        );
        assert_eq!(take(&mut memory, 6, &mut [0; ITEM - 1]), Err(Failure::Size));
    }

    /// A writer whose items have tags 1 and then 2, and a reader that wants only 2: whatever the order of accesses, it never gets the item
    /// of tag 1, or a mixture of both.
    #[test]
    fn in_every_order_an_item_is_that_of_its_tag() {
        let (memory, port) = opened();
        let writer = move |number: u32, turn: &mut Turn<'_>| -> Result<Option<Vec<u8>>, Later> {
            for tag in [1, 2] {
                let result = write(turn, &port, caller(number), tag, &[tag as u8; ITEM]);
                if let Err(Failure::Memory(later)) = result {
                    return Err(later);
                }
            }
            Ok(None)
        };
        let reader = move |number: u32, turn: &mut Turn<'_>| -> Result<Option<Vec<u8>>, Later> {
            let mut room = [0; ITEM];
            match take(turn, &port, caller(number), |tag| tag == 2, &mut room) {
                Err(Failure::Memory(later)) => Err(later),
                Ok(Some(_)) => Ok(Some(room.to_vec())),
                Ok(None) | Err(_) => Ok(None),
            }
        };
        let actions: [Action<'_, Option<Vec<u8>>>; 2] = [&writer, &reader];
        let ends = explore(memory.0, &actions);
        let read: Vec<_> = ends.iter().filter_map(|(all, _)| all[1].clone()).collect();
        assert!(!read.is_empty());
        assert!(read.iter().all(|item| *item == [2; ITEM]), "{read:?}");
    }
}
