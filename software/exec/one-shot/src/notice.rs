//! Notification of a port by a doorbell: the reader waits for an interrupt instead of polling.
//!
//! Why it exists: the order of a few accesses decides whether a reader sleeps forever despite a new item. What it deliberately does not
//! know: which task waits, and where doorbells are.
//!
//! A doorbell is a level: 1 interrupts the owner's core until it is 0. The writer rings after its item is visible. The handler lowers the
//! doorbell before it checks the port, so a later item finds the doorbell low and raises it again. The handler sets a suspension object
//! only if the port has news: a ring without an item wakes no task. The object remembers that it was set, so a reader that checks the port
//! and then waits misses nothing.

//! A hostile core can only ring forever and put unsolicited items into ports. So the owner accepts a fixed number of rings per tick
//! ([`Rings`]), and a task released by items is released in ticks that are a minimum apart ([`Told`]).

use crate::port::{Failure, Memory, Port, has_news};
use crate::queue::{Queue, waiting};

/// Rings once everything that this core has written is visible.
///
/// # Errors
/// The memory's.
#[inline]
pub fn ring<M: Memory>(memory: &mut M, doorbell: u64) -> Result<(), Failure<M::Error>> {
    memory.order()?;
    Ok(memory.store(doorbell, 1)?)
}

/// Lowers the core's own doorbell, and then returns whether the port has an unread item. For the interrupt handler; with several ports, the
/// others are checked after this one.
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

/// The same for a caller that has already lowered the doorbell.
///
/// # Errors
/// The memory's.
#[inline]
pub fn hear_lowered<M: Memory>(memory: &mut M, port: &Port) -> Result<bool, Failure<M::Error>> {
    memory.order()?;
    has_news(memory, port)
}

/// The same for a queue: whether items wait.
///
/// # Errors
/// The memory's.
#[inline]
pub fn hear_queue<M: Memory>(memory: &mut M, queue: &Queue) -> Result<bool, Failure<M::Error>> {
    memory.order()?;
    Ok(waiting(memory, queue)? > 0)
}

/// A task released by items of a port. Its releases depend only on what is in the port, so no ring is stored and no release comes without
/// an item.
#[derive(Clone, Copy, Debug)]
pub struct Told {
    waits: bool,
    /// No release before this tick.
    next: u64,
}

impl Default for Told {
    fn default() -> Self {
        Self::new()
    }
}

impl Told {
    /// It runs, and has not been released by an item.
    pub const fn new() -> Self {
        Self {
            waits: false,
            next: 0,
        }
    }

    /// Whether it waits for an item.
    #[inline]
    pub fn waits(&self) -> bool {
        self.waits
    }

    /// Its job has ended. Returns the tick of its next release, now or later, if the port has an item.
    #[inline]
    pub fn wait(&mut self, now: u64, minimum: u64, has_news: bool) -> Option<u64> {
        self.waits = true;
        self.hear(now, minimum, has_news)
    }

    /// The doorbell has rung, or its job has ended. Returns the tick of its release, now or later, if it waits and the port has an item.
    #[inline]
    pub fn hear(&mut self, now: u64, minimum: u64, has_news: bool) -> Option<u64> {
        if !self.waits || !has_news {
            return None;
        }
        self.waits = false;
        let at = now.max(self.next);
        self.next = at.saturating_add(minimum);
        Some(at)
    }
}

/// Rings that a core accepts per tick.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rings {
    tick: u64,
    heard: u32,
}

impl Rings {
    /// None so far.
    pub const fn new() -> Self {
        Self { tick: 0, heard: 0 }
    }

    /// Counts one more ring. Returns whether it is the last one of this tick: the next one is accepted after it.
    #[inline]
    #[must_use = "the doorbell is to be masked"]
    pub fn hear(&mut self, now: u64, limit: u32) -> bool {
        if self.tick != now {
            (self.tick, self.heard) = (now, 0);
        }
        self.heard += 1;
        self.heard >= limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::orders::{Action, Bytes, Later, Turn, explore, load, store};
    use crate::port::{Caller, get, write};
    use bulkhead_abi::one_shot::port::{
        DATA_SHIFT, DATA_UNIT, INITIALISED, NEW_DATA, NEWS, STATE, WAS_READ,
    };
    use proptest::prelude::*;

    const DATA: u64 = 32;
    const DOORBELL: u64 = 80;
    /// The suspension object: 1 is true.
    const OBJECT: u64 = 88;

    fn port(news: u32, doorbell: u64) -> Bytes {
        let mut memory = [0; crate::orders::SIZE];
        let state = INITIALISED | 8 | (DATA / DATA_UNIT) << DATA_SHIFT;
        store(&mut memory, (STATE, 8, state));
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
        // Only writers take the lock, each once.
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

    /// Whether the item has arrived, no further interrupt will come, and the reader was not told.
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

    /// A core whose task ends its job, as the kernel does it: checks with interrupts masked, then is interrupted.
    fn reader(_: u32, turn: &mut Turn<'_>) -> Result<bool, Later> {
        let mut task = Told::new();
        let port = later(get(turn, 0))?.expect("initialised");
        let news = later(has_news(turn, &port))?;
        let mut told = task.wait(0, 1, news).is_some();
        if Memory::load(turn, DOORBELL)? != 0 {
            let news = later(hear(turn, DOORBELL, &port))?;
            told |= task.hear(0, 1, news).is_some();
        }
        if told {
            Memory::store(turn, OBJECT, 1)?;
        }
        Ok(told)
    }

    #[test]
    fn a_task_that_looks_and_waits_misses_no_item() {
        for doorbell in [0, 1] {
            let actions: [Action<'_, bool>; 3] = [&writer, &writer, &reader];
            let ends = explore(port(WAS_READ, doorbell), &actions);
            assert!(ends.iter().any(|(who, _)| who[2]) && ends.iter().any(|(who, _)| !who[2]));
            for (who, memory) in &ends {
                assert!(!is_lost(memory), "{who:?}");
            }
        }
    }

    #[test]
    fn releases_are_in_ticks_that_are_a_minimum_apart() {
        let mut task = Told::new();
        // The first job was not released by anything.
        assert_eq!(task.hear(0, 3, true), None);
        assert_eq!(task.wait(0, 3, false), None);
        assert_eq!(task.hear(1, 3, false), None);
        assert_eq!(task.hear(2, 3, true), Some(2));
        // It runs; what arrives now is found when it ends.
        assert_eq!(task.hear(2, 3, true), None);
        assert_eq!(task.wait(2, 3, true), Some(5));
        assert_eq!(task.wait(5, 3, false), None);
        assert_eq!(task.hear(20, 3, true), Some(20));
        assert_eq!(task.wait(30, 3, true), Some(30));
    }

    #[test]
    fn so_many_rings_are_heard_in_a_tick() {
        let mut rings = Rings::new();
        assert_eq!(
            [7, 7, 7].map(|now| rings.hear(now, 3)),
            [false, false, true]
        );
        assert_eq!(
            [8, 9, 9].map(|now| rings.hear(now, 2)),
            [false, false, true]
        );
        assert!(rings.hear(10, 1) && rings.hear(11, 0));
    }

    proptest! {
        /// Messages of a writer with any period and lateness, and jobs that end within a period of their release: no message waits longer
        /// than the latest one may.
        #[test]
        fn a_minimum_distance_delays_no_message(
            period in 1u64..6, shorter in 0u64..3, late in 0u64..12,
            parts in proptest::collection::vec((0u64..12, 0u64..6), 1..40),
        ) {
            let minimum = period.saturating_sub(shorter).max(1);
            let mut task = Told::new();
            // Messages in the port and when each had arrived at the latest; when the running job ends.
            let (mut sent, mut busy, mut taken) = (0, None::<u64>, 0);
            prop_assert_eq!(task.wait(0, minimum, false), None);
            let mut arrived: Vec<u64> = Vec::new();
            let mut release = None::<u64>;
            let last = parts.len() as u64 * period + late + 40;
            for now in 0..last {
                while sent < parts.len() {
                    let earlier = arrived.last().copied().unwrap_or(0);
                    let at = (sent as u64 * period + parts[sent].0 % (late + 1)).max(earlier);
                    if at > now { break; }
                    arrived.push(at);
                    sent += 1;
                }
                let waiting = |taken: usize| arrived.len() > taken;
                if busy.is_some_and(|end| end <= now) {
                    busy = None;
                    release = task.wait(now, minimum, waiting(taken));
                } else if let Some(at) = task.hear(now, minimum, waiting(taken)) {
                    release = Some(at);
                }
                if release.is_some_and(|at| at <= now) {
                    prop_assert!(now <= taken as u64 * period + late, "message {taken} at {now}");
                    busy = Some(now + parts[taken].1.min(minimum));
                    taken += 1;
                    release = None;
                    if busy == Some(now) {
                        busy = None;
                        release = task.wait(now, minimum, arrived.len() > taken);
                    }
                }
            }
            prop_assert_eq!(taken, parts.len());
        }
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
