//! Collections of trusted software that name the payer of their entries.
//!
//! Why it exists: if a program could fill a table without paying, it could stop all others. So the type of every table names its
//! payer, and `cargo xtask tidy` refuses tables that do not. What it deliberately does not know: how a payer is charged; the page
//! docs/reference/resources.md explains that for each table.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::fmt;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};

/// The payer of an entry.
pub trait Payer {}

/// Declares payers.
macro_rules! payers {
    ($($(#[$doc:meta])* $name:ident)+) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
            pub struct $name;
            impl Payer for $name {}
        )+
    };
}

payers! {
    /// The platform: as many entries as the chip has of something, made at boot.
    Boot
    /// The creator of an activity: the entry is a part of what an activity is charged with.
    Creator
    /// The caller: the entry is the place that every activity has for its one call; its creator paid for it.
    Caller
    /// The holder of the capability that the entry is, or is about: its node was charged to a purse.
    Holder
    /// The program itself, out of its own memory, for what its description told it.
    Own
    /// A client of a service: the entry is one of the places of its share of the table.
    Share
    /// The sender of a message: the entry lasts as long as the gate's slot that its credit paid for, and goes with the answer.
    Credit
}

/// A table that keeps the number of entries with which it was made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fixed<T>(Vec<T>);

impl<T> FromIterator<T> for Fixed<T> {
    fn from_iter<I: IntoIterator<Item = T>>(entries: I) -> Self {
        Self(entries.into_iter().collect())
    }
}

impl<T> From<Vec<T>> for Fixed<T> {
    fn from(entries: Vec<T>) -> Self {
        Self(entries)
    }
}

impl<T> Deref for Fixed<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<T> DerefMut for Fixed<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.0
    }
}

impl<'a, T> IntoIterator for &'a Fixed<T> {
    type Item = &'a T;
    type IntoIter = core::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

impl<'a, T> IntoIterator for &'a mut Fixed<T> {
    type Item = &'a mut T;
    type IntoIter = core::slice::IterMut<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter_mut()
    }
}

/// A table whose room was reserved in advance. It grows up to that room and no further.
pub struct Reserved<P, T> {
    entries: Vec<T>,
    room: usize,
    payer: PhantomData<P>,
}

impl<P: Payer, T> Reserved<P, T> {
    /// Reserves room for this many entries; the memory is not touched before it is used.
    pub fn with_room(room: usize) -> Self {
        Self {
            entries: Vec::with_capacity(room),
            room,
            payer: PhantomData,
        }
    }

    /// Adds an entry.
    ///
    /// # Errors
    /// The entry, if there is no room.
    #[inline]
    pub fn push(&mut self, entry: T) -> Result<(), T> {
        if self.entries.len() >= self.room {
            return Err(entry);
        }
        self.entries.push(entry);
        Ok(())
    }

    /// The number of entries for which there is room in total.
    pub fn room(&self) -> usize {
        self.room
    }

    /// Keeps some entries, in their order.
    pub fn retain(&mut self, keep: impl FnMut(&T) -> bool) {
        self.entries.retain(keep);
    }

    /// Removes a range of entries; those after it move up.
    ///
    /// # Panics
    /// If the range is out of bounds.
    pub fn drain(&mut self, range: core::ops::Range<usize>) {
        self.entries.drain(range);
    }

    /// Removes all entries.
    pub fn clear(&mut self) {
        self.entries.clear();
    }

    /// Removes an entry; those after it move up.
    ///
    /// # Panics
    /// If there is no such entry.
    pub fn remove(&mut self, index: usize) -> T {
        self.entries.remove(index)
    }
}

impl<P, T> Deref for Reserved<P, T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        &self.entries
    }
}

impl<P, T> DerefMut for Reserved<P, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.entries
    }
}

impl<P: Payer, T: Clone> Clone for Reserved<P, T> {
    fn clone(&self) -> Self {
        let mut copy = Self::with_room(self.room);
        copy.entries.extend_from_slice(&self.entries);
        copy
    }
}

impl<P, T: fmt::Debug> fmt::Debug for Reserved<P, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.entries.fmt(f)
    }
}

/// A queue or a map in which every entry is paid for before it is put in. The memory comes from the heap, which holds as much as
/// all payers together can pay for.
#[derive(Clone)]
pub struct Paid<P, C> {
    entries: C,
    payer: PhantomData<P>,
}

impl<P: Payer, C: Default> Default for Paid<P, C> {
    fn default() -> Self {
        Self {
            entries: C::default(),
            payer: PhantomData,
        }
    }
}

impl<P: Payer, C> Paid<P, C> {
    /// A collection of entries that were paid for.
    pub const fn new(entries: C) -> Self {
        Self {
            entries,
            payer: PhantomData,
        }
    }
}

impl<P, C: PartialEq> PartialEq for Paid<P, C> {
    fn eq(&self, other: &Self) -> bool {
        self.entries == other.entries
    }
}

impl<P: Payer, T, C: FromIterator<T>> FromIterator<T> for Paid<P, C> {
    fn from_iter<I: IntoIterator<Item = T>>(entries: I) -> Self {
        Self::new(entries.into_iter().collect())
    }
}

impl<P, C> Deref for Paid<P, C> {
    type Target = C;

    #[inline(always)]
    fn deref(&self) -> &C {
        &self.entries
    }
}

impl<P, C> DerefMut for Paid<P, C> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut C {
        &mut self.entries
    }
}

impl<P, C: fmt::Debug> fmt::Debug for Paid<P, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.entries.fmt(f)
    }
}

impl<P, C: Eq> Eq for Paid<P, C> {}

impl<P, C: IntoIterator> IntoIterator for Paid<P, C> {
    type Item = C::Item;
    type IntoIter = C::IntoIter;

    fn into_iter(self) -> Self::IntoIter {
        self.entries.into_iter()
    }
}

impl<'a, P, C> IntoIterator for &'a Paid<P, C>
where
    &'a C: IntoIterator,
{
    type Item = <&'a C as IntoIterator>::Item;
    type IntoIter = <&'a C as IntoIterator>::IntoIter;

    fn into_iter(self) -> Self::IntoIter {
        (&self.entries).into_iter()
    }
}

impl<'a, P, C> IntoIterator for &'a mut Paid<P, C>
where
    &'a mut C: IntoIterator,
{
    type Item = <&'a mut C as IntoIterator>::Item;
    type IntoIter = <&'a mut C as IntoIterator>::IntoIter;

    fn into_iter(self) -> Self::IntoIter {
        (&mut self.entries).into_iter()
    }
}

/// A list whose entries were paid for.
pub type PaidList<P, T> = Paid<P, Vec<T>>;

/// A queue whose entries were paid for.
pub type PaidQueue<P, T> = Paid<P, VecDeque<T>>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_reserved_does_not_grow() {
        let mut entries: Reserved<Holder, u8> = Reserved::with_room(2);
        assert_eq!(entries.push(1), Ok(()));
        assert_eq!(entries.push(2), Ok(()));
        assert_eq!(entries.push(3), Err(3));
        let copy = entries.clone();
        entries.retain(|entry| *entry != 1);
        assert_eq!((&*entries, &*copy), (&[2][..], &[1, 2][..]));
        assert_eq!(entries.push(4), Ok(()));
        assert_eq!(entries.remove(0), 2);
        assert_eq!((entries.room(), copy.room()), (2, 2));
    }
}
