//! Activities: what the kernel remembers of each.
//!
//! Why it exists: calls are checked against this. What it deliberately does not know: what an activity computes.

use crate::hardware::{Region, Right};
use crate::pending::{Waiting, label_caller};
use crate::post::Post;
use alloc::collections::BTreeMap;
use alloc::collections::btree_map::Entry;
use bulkhead_abi::boot::KERNEL_PURSES_MAX;
use bulkhead_abi::syscall::{LINEAGE_MAX, StopCause};
use bulkhead_abi::tilemux::KERNEL_ACTIVITY;
use bulkhead_abi::words::{NAME, Name};
use bulkhead_capabilities::{HolderId, NODES_MAX, NodeId, Space};
use bulkhead_common::payer::{Creator, Paid, Reserved};
use core::cell::Cell;
use core::fmt;

/// What a stopped activity has already given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Withdrawn {
    /// Nothing.
    No,
    /// Its wait, and its jobs that had not begun.
    Calls,
    /// Also its words, its device and its processor time.
    All,
}

/// Where an activity is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Its TileMux is being informed of it.
    Creating,
    /// Created; memory and gates may be set up.
    Created,
    /// Runs.
    Running,
    /// Its TileMux is asked to stop it.
    Stopping,
    /// Stopped; what it holds is being revoked.
    Stopped(StopCause),
}

/// An activity.
#[derive(Clone, Debug)]
pub struct Activity {
    /// Its number.
    pub id: u16,
    /// The name that its creator gave it; see [`Path`].
    pub name: Name,
    /// Another activity of its creator had the same name when this one was created.
    pub is_namesake: bool,
    /// Its place among the holders of capabilities.
    pub holder: HolderId,
    /// Its node among the capabilities.
    pub node: NodeId,
    /// Index into the kernel's tiles.
    pub tile: usize,
    /// Number of the activity that created it; [`bulkhead_abi::tilemux::KERNEL_ACTIVITY`] for the root manager.
    pub creator: u16,
    /// Whether its creator knows it.
    pub is_known: bool,
    /// How often its number had been used before.
    pub generation: u32,
    /// The creator's selector for it.
    pub selector: u16,
    /// Its priority as a caller.
    pub priority: u8,
    /// Where it is in its life.
    pub(crate) life: Life,
    /// Its memory.
    pub region: Region,
    /// The same memory's tile-physical address.
    pub physical: u64,
    /// The tile capability whose processor time it has for itself, if it is limited.
    pub cpu: Option<NodeId>,
    /// Its token bucket; 0: its traffic is not regulated.
    pub bucket: u8,
    /// First address and pages of the range that a pager serves, and TileMux's endpoint to it.
    pub paged: Option<(u64, u64, u16)>,
    /// Endpoints for system calls: send, receive.
    pub syscalls: (u16, u16),
    /// The right to answer its call, if the call is not answered yet. It has at most one call outstanding.
    pub(crate) parked: Option<Right>,
    /// What its call waits for, if others must do it.
    pub(crate) waits: Option<Waiting>,
    /// The number of the job that its call has become.
    pub(crate) job: u64,
    /// It has stopped, and the line about that has not been printed; until then its path exists.
    pub(crate) is_unsaid: bool,
    /// If it has stopped: what it has already given up.
    pub(crate) withdrawn: Withdrawn,
    /// Whether it can be found by its name.
    pub(crate) is_listed: bool,
}

/// Where an activity is in its life, which only [`Activities::set_state`] changes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Life(State);

impl Default for Life {
    fn default() -> Self {
        Self(State::Creating)
    }
}

impl Activity {
    /// Where it is in its life; see [`Activities::set_state`].
    pub fn state(&self) -> State {
        self.life.0
    }
}

/// Bytes that the kernel keeps for an activity, in addition to its place among the holders. Its creator pays for them.
pub const ACTIVITY_COST: u64 =
    (size_of::<Place>() + size_of::<u16>() + size_of::<(Named, u16)>()) as u64;

/// Total bytes that an activity costs its creator.
pub const PLACE_COST: u64 = Space::NODE_COST + Space::HOLDER_COST + ACTIVITY_COST;
const _: () = assert!(KERNEL_PURSES_MAX <= NODES_MAX as u64 * Space::NODE_COST);
// The heap has two and a half times what purses hold (`abi::boot::kernel_heap`): nodes for all of it, and in one and a half times as much
// the places of all activities that it pays for, with twice their size for how the heap divides memory.
const _: () = assert!(2 * (Space::HOLDER_COST + 2 * ACTIVITY_COST) <= 3 * PLACE_COST);

/// A name and its creator, as a number. Two names of a creator may have the same number, by chance once in 2^48. Then the second
/// activity is treated like a namesake; its path has room for that.
type Named = u64;

/// See [`Named`]: a hash (splitmix64's finalizer over the words of the name).
fn named(creator: u16, name: &Name) -> Named {
    let mut hash = 0u64;
    for word in name.0.chunks(8) {
        let word = word
            .iter()
            .fold(0, |word, byte| word << 8 | u64::from(*byte));
        hash = (hash ^ word).wrapping_add(0x9E37_79B9_7F4A_7C15);
        hash = (hash ^ hash >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        hash = (hash ^ hash >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        hash ^= hash >> 31;
    }
    hash << 16 | u64::from(creator)
}

/// A place for an activity, paid for by its creator, with the same number as its place among the holders. Its contents are never
/// moved.
#[derive(Clone, Debug, Default)]
struct Place {
    activity: Option<Activity>,
    /// The post of the present activity; without an activity, leftovers.
    post: Post,
}

/// All activities; a lookup takes the same time however many there are.
#[derive(Clone)]
pub struct Activities {
    places: Reserved<Creator, Place>,
    /// The place of each number that was ever used; without an activity, the kernel's place, which no activity has.
    numbers: Reserved<Creator, u16>,
    /// A cache of callers, by the lower bits of their labels. Every call begins with a lookup here, and it lies next to the other
    /// data that a call needs.
    callers: [Cell<Caller>; CALLERS],
    /// How many activities have each name of a creator.
    names: Paid<Creator, BTreeMap<Named, u16>>,
}

/// The label of a caller's messages, and the caller's place among the holders.
type Caller = (u64, HolderId);

const CALLERS: usize = 32;
/// No caller has this label: labels have 48 bits.
const NO_CALLER: Caller = (u64::MAX, HolderId(0));

impl fmt::Debug for Activities {
    /// Leftovers of ended activities are not part of the state.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.living())
            .entries([&self.names])
            .finish()
    }
}

/// Most bytes of a path: names, each with the number of a namesake.
pub const PATH: usize = LINEAGE_MAX * (NAME + "/:65535".len());
/// Components of a path that are put together in one piece of work. Each is in memory that no cache may hold, so this bounds the
/// misses of such a piece.
const COMPONENTS: usize = 2;

/// The path of an activity from the root manager: `root/control/actuator`. Each creator gives one component. If a creator uses a
/// name again, the activity's number is appended, as in `actuator:17`, and no name contains `/` or `:`. So no two activities have
/// the same path, and no activity can get the path of one that it did not create.
///
/// It is put together from its last component to its first, a few in each piece of work. An activity's name and creators never
/// change, and its creators outlive it, so a path stays right however much happens meanwhile.
#[derive(Clone, Copy, Debug)]
pub struct Path {
    /// The number of the activity, and how often it had been used before.
    of: (u16, u32),
    /// The next activity whose name is added.
    next: u16,
    bytes: [u8; PATH],
    /// Where the path begins so far.
    at: usize,
}

impl Path {
    /// Of no activity.
    pub const NONE: Self = Self {
        of: (KERNEL_ACTIVITY, 0),
        next: KERNEL_ACTIVITY,
        bytes: [0; PATH],
        at: PATH,
    };

    /// Adds the next components of an activity's path, and forgets any other path. Returns whether none is left.
    pub fn add(&mut self, all: &Activities, id: u16) -> bool {
        let of = (id, all.get(id).map_or(0, |of| of.generation));
        if self.of != of {
            (self.of, self.next, self.at) = (of, of.0, PATH);
        }
        for _ in 0..COMPONENTS {
            let Some(activity) = all.get(self.next) else {
                return true;
            };
            if self.at < PATH {
                self.put(b"/");
            }
            if activity.is_namesake {
                let mut rest = activity.id;
                while rest > 0 {
                    self.put(&[b'0' + (rest % 10) as u8]);
                    rest /= 10;
                }
                self.put(b":");
            }
            self.put(activity.name.as_str().as_bytes());
            self.next = activity.creator;
        }
        all.get(self.next).is_none()
    }

    fn put(&mut self, part: &[u8]) {
        self.at -= part.len();
        self.bytes[self.at..][..part.len()].copy_from_slice(part);
    }
}

/// The components put together so far.
impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        // Only texts come in.
        f.write_str(core::str::from_utf8(&self.bytes[self.at..]).unwrap_or_default())
    }
}

impl Activities {
    /// Whether an activity may create one more: it has fewer creators above it than there may be.
    pub fn may_create(&self, id: u16) -> bool {
        let lineage = core::iter::successors(self.get(id), |below| self.get(below.creator));
        lineage.count() < LINEAGE_MAX
    }

    /// Whether a creator has an activity with this name, or with another name that has the same number.
    pub fn has_namesake(&self, creator: u16, name: &Name) -> bool {
        self.names.contains_key(&named(creator, name))
    }

    /// Lets an activity be found by its name, or no longer; this is a step apart from its creation and removal, which take long
    /// enough. Returns its tile if that is a change.
    pub fn list(&mut self, id: u16, is_listed: bool) -> Option<usize> {
        let activity = self.get_mut(id)?;
        if core::mem::replace(&mut activity.is_listed, is_listed) == is_listed {
            return None;
        }
        let (name, tile) = (named(activity.creator, &activity.name), activity.tile);
        count(&mut self.names, name, is_listed);
        Some(tile)
    }

    /// No activities, and room for `places` of them, whose numbers are below `numbers`.
    pub fn with_room(places: usize, numbers: usize) -> Self {
        let mut all = Self {
            places: Reserved::with_room(places),
            numbers: Reserved::with_room(numbers),
            callers: core::array::from_fn(|_| Cell::new(NO_CALLER)),
            names: Paid::default(),
        };
        all.make_place();
        all
    }

    /// Prepares the next place, which writes much memory. There are as many as among the holders.
    pub fn make_place(&mut self) {
        let _ = self.places.push(Place::default());
    }

    /// An activity.
    #[inline(always)]
    pub fn get(&self, id: u16) -> Option<&Activity> {
        self.at(HolderId(*self.numbers.get(usize::from(id))?))
    }

    /// An activity, to be changed.
    #[inline(always)]
    pub fn get_mut(&mut self, id: u16) -> Option<&mut Activity> {
        let place = *self.numbers.get(usize::from(id))?;
        self.places.get_mut(usize::from(place))?.activity.as_mut()
    }

    /// The activity at a place among the holders.
    #[inline(always)]
    pub fn at(&self, holder: HolderId) -> Option<&Activity> {
        self.places.get(usize::from(holder.0))?.activity.as_ref()
    }

    /// The undelivered words to and from an activity.
    pub fn post(&mut self, id: u16) -> Option<&mut Post> {
        let place = *self.numbers.get(usize::from(id))?;
        let place = self.places.get_mut(usize::from(place))?;
        place.activity.is_some().then_some(&mut place.post)
    }

    /// Numbers of all activities, in order.
    pub fn ids(&self) -> impl Iterator<Item = u16> + '_ {
        let all = self.numbers.iter().zip(0..);
        all.filter_map(|(place, id)| (*place != 0).then_some(id))
    }

    /// All activities with their undelivered words, by place.
    pub fn living(&self) -> impl Iterator<Item = (&Activity, &Post)> {
        let all = self.places.iter();
        all.filter_map(|place| Some((place.activity.as_ref()?, &place.post)))
    }

    /// Adds an activity at its place among the holders.
    pub fn insert(&mut self, activity: Activity) {
        let (id, holder) = (usize::from(activity.id), activity.holder.0);
        while self.numbers.len() <= id && self.numbers.push(0).is_ok() {}
        self.numbers[id] = holder;
        let place = &mut self.places[usize::from(holder)];
        place.post.clear();
        place.activity = Some(activity);
    }

    /// Removes an activity.
    pub fn remove(&mut self, id: u16) -> Option<Activity> {
        self.callers[usize::from(id) % CALLERS].set(NO_CALLER);
        let place = core::mem::take(self.numbers.get_mut(usize::from(id))?);
        self.places.get_mut(usize::from(place))?.activity.take()
    }

    /// The place among the holders of the activity whose messages have this label, if it may make calls.
    #[inline(always)]
    pub fn caller(&self, label: u64) -> Option<HolderId> {
        let (known, holder) = self.callers[label as usize % CALLERS].get();
        match known == label {
            true => Some(holder),
            false => self.find(label),
        }
    }

    #[cold]
    #[inline(never)]
    fn find(&self, label: u64) -> Option<HolderId> {
        let (id, generation) = label_caller(label);
        let found = self.get(id).filter(|a| a.generation == generation)?;
        if !matches!(found.state(), State::Created | State::Running) {
            return None;
        }
        self.callers[label as usize % CALLERS].set((label, found.holder));
        Some(found.holder)
    }

    /// Changes the state of an activity.
    pub(crate) fn set_state(&mut self, id: u16, state: State) {
        self.callers[usize::from(id) % CALLERS].set(NO_CALLER);
        if let Some(activity) = self.get_mut(id) {
            activity.life = Life(state);
        }
    }
}

/// Counts one more or one less of something.
pub(crate) fn count<K: Ord>(all: &mut BTreeMap<K, u16>, key: K, more: bool) {
    match all.entry(key) {
        Entry::Occupied(mut others) => match (more, *others.get()) {
            (true, count) => drop(others.insert(count + 1)),
            (false, 1) => drop(others.remove()),
            (false, count) => drop(others.insert(count - 1)),
        },
        Entry::Vacant(place) if more => drop(place.insert(1)),
        Entry::Vacant(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pending::caller_label;
    use proptest::prelude::*;

    fn activity(id: u16, generation: u32, holder: u16) -> Activity {
        Activity {
            id,
            name: Name::default(),
            is_namesake: false,
            holder: HolderId(holder),
            node: NodeId(0),
            tile: 0,
            creator: 0,
            is_known: false,
            generation,
            selector: 0,
            priority: 0,
            life: Life(State::Created),
            region: Region {
                tile: 0,
                base: 0,
                size: 0,
            },
            physical: 0,
            cpu: None,
            bucket: 0,
            paged: None,
            syscalls: (0, 0),
            parked: None,
            waits: None,
            job: 0,
            is_unsaid: false,
            withdrawn: Withdrawn::No,
            is_listed: false,
        }
    }

    #[test]
    fn nobody_takes_the_path_of_another_one() {
        let mut all = all(40);
        let mut add = |id: u16, creator: u16, name: &str| {
            let name = Name::new(name).unwrap();
            let is_namesake = all.has_namesake(creator, &name);
            all.insert(Activity {
                name,
                creator,
                is_namesake,
                ..activity(id, 0, id)
            });
            all.list(id, true);
        };
        add(1, 0, "root");
        add(2, 1, "control");
        add(3, 2, "actuator");
        // The same name by the same creator, by another one, and by a child of the activity that has it.
        add(4, 2, "actuator");
        add(5, 1, "actuator");
        add(6, 3, "actuator");
        let path = |id| full(&all, id);
        assert_eq!(
            [1, 2, 3, 4, 5, 6].map(path),
            [
                "root",
                "root/control",
                "root/control/actuator",
                "root/control/actuator:4",
                "root/actuator",
                "root/control/actuator/actuator"
            ]
        );
        // Another path comes in between, and a number comes back after its activity ended: nothing of the other one is kept.
        let mut parts = Path::NONE;
        assert!(!parts.add(&all, 6) && parts.add(&all, 2));
        assert_eq!(parts.to_string(), "root/control");
        assert!(!parts.add(&all, 6));
        all.remove(6);
        all.insert(Activity {
            name: Name::new("other").unwrap(),
            creator: 2,
            generation: 1,
            ..activity(6, 0, 6)
        });
        assert!(!parts.add(&all, 6) && parts.add(&all, 6));
        assert_eq!(parts.to_string(), "root/control/other");
        // As deep as it goes.
        for id in 7..7 + LINEAGE_MAX as u16 {
            let creator = id - 1;
            if all.get(creator).is_some() && all.may_create(creator) {
                all.insert(Activity {
                    creator,
                    name: Name::new("x").unwrap(),
                    ..activity(id, 0, id)
                });
            }
        }
        let deepest = all.ids().last().unwrap();
        assert_eq!(full(&all, deepest).split('/').count(), LINEAGE_MAX);
        assert!(!all.may_create(deepest) && all.may_create(deepest - 1));
    }

    fn full(all: &Activities, id: u16) -> String {
        let mut path = Path::NONE;
        while !path.add(all, id) {}
        path.to_string()
    }

    /// No activities, and this many prepared places.
    fn all(places: u16) -> Activities {
        let mut all = Activities::with_room(places.into(), 1000);
        (1..places).for_each(|_| all.make_place());
        all
    }

    proptest! {
        /// Compared with a map: an activity is found by its number and its place, exactly the living activities may call, and a
        /// place begins without words.
        #[test]
        fn activities_are_found_as_in_a_map(steps in proptest::collection::vec((0u8..4, 1u16..60, 1u16..9, 0u32..2), 1..300)) {
            let (mut all, mut plain) = (all(9), std::collections::BTreeMap::<u16, Activity>::new());
            for (what, id, holder, generation) in steps {
                let is_free = plain.values().all(|a| a.holder.0 != holder);
                match what {
                    0 if is_free && !plain.contains_key(&id) => {
                        all.insert(activity(id, generation, holder));
                        plain.insert(id, activity(id, generation, holder));
                        let post = all.post(id).unwrap();
                        prop_assert!(post.told.is_empty() && post.said.is_empty());
                        post.told.put(0, 7);
                    }
                    1 => {
                        let gone = all.remove(id).map(|a| a.holder);
                        prop_assert_eq!(gone, plain.remove(&id).map(|a| a.holder));
                    }
                    what => {
                        let state = if what == 2 { State::Stopping } else { State::Running };
                        all.set_state(id, state);
                        if let Some(activity) = plain.get_mut(&id) {
                            activity.life = Life(state);
                        }
                    }
                }
                prop_assert!(all.ids().eq(plain.keys().copied()));
                prop_assert_eq!(all.living().count(), plain.len());
                for id in 0..70 {
                    let there = plain.get(&id);
                    prop_assert_eq!(all.get(id).map(|a| (a.id, a.holder, a.state())), there.map(|a| (id, a.holder, a.state())));
                    prop_assert_eq!(all.post(id).is_some(), there.is_some());
                    for generation in 0..2 {
                        let may = there.filter(|a| a.generation == generation && a.state() != State::Stopping);
                        prop_assert_eq!(all.caller(caller_label(id, generation)), may.map(|a| a.holder));
                    }
                }
                for holder in 0..9 {
                    let there = plain.values().find(|a| a.holder.0 == holder);
                    prop_assert_eq!(all.at(HolderId(holder)).map(|a| a.id), there.map(|a| a.id));
                }
            }
        }
    }
}
