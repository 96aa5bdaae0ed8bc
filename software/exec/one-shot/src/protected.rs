//! Protected objects: data that tasks share, and entries that open when the data says so.
//!
//! Why it exists: a task waits for a condition over shared data, and the task that makes the condition true performs the request
//! (Ada reference manual, 9.5.3). What it deliberately does not know: how mutual exclusion is obtained; it takes `&mut`.
//!
//! Each entry holds at most one caller, with its parameter. A caller's stack does not survive, so nothing may point into it. If
//! several entries are open, they are served in their order.

use crate::Task;

/// An entry as an object sees it: the condition that must hold, the action that follows, and the waiting caller.
pub trait Gate<T, P> {
    /// The barrier. Short; it waits for nothing.
    fn is_open(&self, data: &T) -> bool;
    /// The body, for a caller with a parameter. Equally short.
    fn perform(&self, data: &mut T, parameter: P);
    /// Whether a caller waits.
    fn has_caller(&self) -> bool;
    /// A caller waits, with a parameter.
    fn set_caller(&mut self, task: Task, parameter: P);
    /// It waits no longer.
    fn take_caller(&mut self) -> Option<(Task, P)>;
}

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

impl<T, P: Copy> Gate<T, P> for Entry<T, P> {
    fn is_open(&self, data: &T) -> bool {
        (self.barrier)(data)
    }

    fn perform(&self, data: &mut T, parameter: P) {
        (self.body)(data, parameter);
    }

    fn has_caller(&self) -> bool {
        self.caller.is_some()
    }

    fn set_caller(&mut self, task: Task, parameter: P) {
        self.caller = Some((task, parameter));
    }

    fn take_caller(&mut self) -> Option<(Task, P)> {
        self.caller.take()
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
        serve(&mut self.data, &mut self.entries, wake);
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
        call(
            &mut self.data,
            &mut self.entries,
            task,
            entry,
            parameter,
            wake,
        )
    }
}

/// A task calls an entry of an object that consists of data and entries; [`Protected`] is one such object. `wake` is called for each other
/// task that continues because of it.
#[inline]
pub fn call<T, P>(
    data: &mut T,
    entries: &mut [impl Gate<T, P>],
    task: Task,
    entry: usize,
    parameter: P,
    wake: impl FnMut(Task),
) -> Called {
    let Some(entry) = entries.get_mut(entry) else {
        return Called::Refused;
    };
    if entry.has_caller() {
        return Called::Refused;
    }
    if !entry.is_open(data) {
        entry.set_caller(task, parameter);
        return Called::Waits;
    }
    entry.perform(data, parameter);
    serve(data, entries, wake);
    Called::Done
}

/// After a change of the data: serves the callers of open entries. Each turn serves one caller, and no other can arrive in between: there are at most as many
/// turns as entries.
#[inline]
pub fn serve<T, P>(data: &mut T, entries: &mut [impl Gate<T, P>], mut wake: impl FnMut(Task)) {
    loop {
        let open = |entry: &&mut _| Gate::has_caller(*entry) && Gate::is_open(*entry, data);
        let Some(entry) = entries.iter_mut().find(open) else {
            return;
        };
        if let Some((task, parameter)) = entry.take_caller() {
            entry.perform(data, parameter);
            wake(task);
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
