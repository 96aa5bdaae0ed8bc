//! Protected objects: data that tasks share, and entries that open when the data says so.
//!
//! Why it exists: a task waits for a condition over shared data, and the task that makes the condition true performs the request
//! (Ada reference manual, 9.5.3). What it deliberately does not know: how mutual exclusion is obtained; it takes `&mut`.
//!
//! Each entry holds at most one caller, with its parameter. A caller's stack does not survive, so nothing may point into it. If
//! several entries are open, they are served in their order.

use crate::Task;

/// An entry of the object: the condition that must hold, and the action that follows, for a caller with a parameter.
#[derive(Clone, Copy, Debug)]
pub struct Entry<T, P> {
    barrier: fn(&T) -> bool,
    body: fn(&mut T, P),
    caller: Option<(Task, P)>,
}

impl<T, P: Copy> Entry<T, P> {
    /// An entry whose `body` runs once `barrier` holds. Both are short and wait for nothing.
    pub const fn new(barrier: fn(&T) -> bool, body: fn(&mut T, P)) -> Self {
        Self {
            barrier,
            body,
            caller: None,
        }
    }
}

/// The result of a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Called {
    /// The call is done; the caller continues.
    Done,
    /// The caller waits.
    Waits,
    /// Another caller waits at this entry, or there is no such entry: nothing was done.
    Refused,
}

/// Data with entries.
#[derive(Clone, Copy, Debug)]
pub struct Protected<T, P, const E: usize> {
    data: T,
    entries: [Entry<T, P>; E],
}

impl<T, P: Copy, const E: usize> Protected<T, P, E> {
    /// An object with these entries; no task waits.
    pub const fn new(data: T, entries: [Entry<T, P>; E]) -> Self {
        Self { data, entries }
    }

    /// The data.
    pub fn data(&self) -> &T {
        &self.data
    }

    /// Changes the data, and then serves the callers of entries that are open now; `wake` is called for each task that continues.
    #[inline]
    pub fn update<R>(&mut self, action: impl FnOnce(&mut T) -> R, wake: impl FnMut(Task)) -> R {
        let result = action(&mut self.data);
        self.serve(wake);
        result
    }

    /// A task calls an entry. `wake` is called for each other task that continues because of it.
    #[inline]
    pub fn call(
        &mut self,
        task: Task,
        entry: usize,
        parameter: P,
        wake: impl FnMut(Task),
    ) -> Called {
        let Some(entry) = self.entries.get_mut(entry) else {
            return Called::Refused;
        };
        if entry.caller.is_some() {
            return Called::Refused;
        }
        if !(entry.barrier)(&self.data) {
            entry.caller = Some((task, parameter));
            return Called::Waits;
        }
        (entry.body)(&mut self.data, parameter);
        self.serve(wake);
        Called::Done
    }

    /// Each turn serves one caller, and no other can arrive in between: there are at most as many turns as entries.
    fn serve(&mut self, mut wake: impl FnMut(Task)) {
        loop {
            let data = &self.data;
            let open = |entry: &&mut Entry<T, P>| entry.caller.is_some() && (entry.barrier)(data);
            let Some(entry) = self.entries.iter_mut().find(open) else {
                return;
            };
            if let Some((task, parameter)) = entry.caller.take() {
                (entry.body)(&mut self.data, parameter);
                wake(task);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const CAPACITY: usize = 2;
    type Buffer = Protected<Vec<u32>, u32, 3>;

    /// Puts (entry 0), takes one and discards it (1), takes all once it is full (2).
    fn buffer() -> Buffer {
        Protected::new(
            Vec::new(),
            [
                Entry::new(|data| data.len() < CAPACITY, |data, value| data.push(value)),
                Entry::new(
                    |data| !data.is_empty(),
                    |data, _| {
                        data.remove(0);
                    },
                ),
                Entry::new(|data| data.len() == CAPACITY, |data, _| data.clear()),
            ],
        )
    }

    #[test]
    fn a_caller_waits_until_its_entry_opens() {
        let mut buffer = buffer();
        let mut awake = Vec::new();
        assert_eq!(buffer.call(5, 1, 0, |_| panic!()), Called::Waits);
        assert_eq!(buffer.call(6, 1, 0, |_| panic!()), Called::Refused);
        assert_eq!(buffer.call(6, 3, 0, |_| panic!()), Called::Refused);
        assert_eq!(buffer.call(1, 0, 7, |task| awake.push(task)), Called::Done);
        assert_eq!((buffer.data().len(), awake), (0, vec![5]));
    }

    #[test]
    fn one_caller_may_open_the_way_for_another() {
        let mut buffer = buffer();
        buffer.update(|data| data.extend([1, 2]), |_| panic!());
        assert_eq!(buffer.call(1, 0, 3, |_| panic!()), Called::Waits);
        let mut awake = Vec::new();
        assert_eq!(buffer.call(2, 1, 0, |task| awake.push(task)), Called::Done);
        assert_eq!((buffer.data(), awake), (&vec![2, 3], vec![1]));
    }

    #[derive(Clone, Debug)]
    struct Caller {
        task: Task,
        entry: usize,
        value: u32,
    }

    proptest! {
        /// Against a model that tries every caller again after every change, in the order of entries.
        #[test]
        fn as_a_plain_model(calls in proptest::collection::vec((0usize..4, any::<u32>()), 0..60)) {
            let mut buffer = buffer();
            let mut data: Vec<u32> = Vec::new();
            let mut waiting: Vec<Caller> = Vec::new();
            let attempt = |data: &mut Vec<u32>, entry: usize, value: u32| match entry {
                0 if data.len() < CAPACITY => { data.push(value); true }
                1 if !data.is_empty() => { data.remove(0); true }
                2 if data.len() == CAPACITY => { data.clear(); true }
                _ => false,
            };
            for (number, (entry, value)) in calls.into_iter().enumerate() {
                let task = number as Task;
                let mut awake = Vec::new();
                let expected = if entry > 2 || waiting.iter().any(|c| c.entry == entry) {
                    Called::Refused
                } else if attempt(&mut data, entry, value) {
                    Called::Done
                } else {
                    waiting.push(Caller { task, entry, value });
                    Called::Waits
                };
                let mut expected_awake = Vec::new();
                loop {
                    waiting.sort_by_key(|c| c.entry);
                    let Some(at) = waiting.iter().position(|c| attempt(&mut data, c.entry, c.value)) else { break };
                    expected_awake.push(waiting.remove(at).task);
                }
                prop_assert_eq!(buffer.call(task, entry, value, |task| awake.push(task)), expected);
                prop_assert_eq!(awake, expected_awake);
                prop_assert_eq!(buffer.data(), &data);
            }
        }
    }
}
