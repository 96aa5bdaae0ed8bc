//! Activities: what the kernel remembers of each.
//!
//! Why it exists: calls are checked against this. What it deliberately does not know: what an activity computes.

use crate::hardware::{Region, Right};
use crate::post::Post;
use crate::system::{Waiting, label_caller};
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::collections::btree_map::Entry;
use bulkhead_abi::boot::KERNEL_PURSES_MAX;
use bulkhead_abi::syscall::{LINEAGE_MAX, StopCause};
use bulkhead_abi::words::Name;
use bulkhead_capabilities::{HolderId, NODES_MAX, NodeId, Space};
use bulkhead_common::payer::{Creator, Paid};
use core::cell::Cell;
use core::fmt;
use core::ops::{Deref, DerefMut};

/// What an activity that has stopped has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Withdrawn {
    /// Nothing.
    No,
    /// It neither waits nor has jobs that have not begun.
    Calls,
    /// It has nothing to say, no device and no processor time either.
    All,
}

/// Where an activity is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Its TileMux is being told of it.
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
    /// What its creator calls it; see [`Activities::path`].
    pub name: Name,
    /// Another one of its creator had that name when it came.
    pub is_namesake: bool,
    /// Its place among the holders of capabilities.
    pub holder: HolderId,
    /// Its node among the capabilities.
    pub node: NodeId,
    /// Index into the kernel's tiles.
    pub tile: usize,
    /// Number of the activity that created it; [`bulkhead_abi::tilemux::KERNEL_ACTIVITY`] for the root manager.
    pub creator: u16,
    /// Its creator knows of it.
    pub is_known: bool,
    /// How often its number had been given away before.
    pub generation: u32,
    /// The creator's selector for it.
    pub selector: u16,
    /// Its priority as a caller.
    pub priority: u8,
    /// Where it is in its life.
    pub state: State,
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
    /// What it has not heard, and what nobody has heard of it.
    pub post: Box<Post>,
    /// The right to answer its call, if that is not answered yet. It has one call under way at most.
    pub(crate) parked: Option<Right>,
    /// What its call waits for, if that is something that others do.
    pub(crate) waits: Option<Waiting>,
    /// It has stopped, and that is still to be said: its path is there as long.
    pub(crate) is_unsaid: bool,
    /// What it has left already, when it has stopped.
    pub(crate) withdrawn: Withdrawn,
    /// Its name is looked up.
    pub(crate) is_listed: bool,
}

/// Bytes that the kernel keeps of an activity, beside its place among the holders. Whoever creates it pays for them.
pub const ACTIVITY_COST: u64 = (size_of::<(u16, Box<Activity>)>()
    + size_of::<Activity>()
    + size_of::<Post>()
    + size_of::<(Named, u16)>()) as u64;

/// Bytes that an activity costs its creator in all.
pub const PLACE_COST: u64 = Space::NODE_COST + Space::HOLDER_COST + ACTIVITY_COST;
const _: () = assert!(KERNEL_PURSES_MAX <= NODES_MAX as u64 * Space::NODE_COST);
// The heap has two and a half times what purses hold (`abi::boot::kernel_heap`): nodes for all of it, and in one and a half times as much
// the places of all activities that it pays for, with twice their size for how the heap divides memory.
const _: () = assert!(2 * (Space::HOLDER_COST + 2 * ACTIVITY_COST) <= 3 * PLACE_COST);

/// A name and who gave it, as a number. Two names of a creator may have the same one, by chance once in 2^48: the second activity is
/// called like a namesake then, which its path has room for.
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

/// All activities by their numbers.
///
/// Every call begins with a look for its caller, so what was found is remembered, until anything about any activity may have changed.
#[derive(Clone, Debug, Default)]
pub struct Activities {
    /// Each in a place of its own: what the tree moves is small.
    all: Paid<Creator, BTreeMap<u16, Box<Activity>>>,
    /// How many there are of each name that a creator gave, so that a new one is looked up fast however many activities there are.
    names: Paid<Creator, BTreeMap<Named, u16>>,
    /// Callers that were found, by the lower bits of their labels.
    callers: Callers,
}

/// What was found; it says nothing that the activities do not say.
#[derive(Clone, Default)]
struct Callers([Cell<Caller>; CALLERS]);

impl fmt::Debug for Callers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Callers")
    }
}

/// The label of a caller's messages, and his place among the holders.
#[derive(Clone, Copy, Debug)]
struct Caller {
    label: u64,
    holder: HolderId,
}

impl Default for Caller {
    /// Nobody has this label: it has 48 bits.
    fn default() -> Self {
        Self {
            label: u64::MAX,
            holder: HolderId(0),
        }
    }
}

const CALLERS: usize = 32;

/// Who an activity is, from the root manager on: `root/control/actuator`. Each creator gives one component; of those that it calls
/// alike, each but the first has its number behind it, as in `actuator:17`, and no name holds `/` or `:`. So no two activities have the
/// same path, and nobody can take that of somebody whom he did not create.
#[derive(Clone, Copy, Debug)]
pub struct Path<'a> {
    all: &'a Activities,
    id: u16,
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        for (depth, (id, activity)) in self
            .all
            .ancestry(self.id)
            .into_iter()
            .rev()
            .flatten()
            .enumerate()
        {
            if depth > 0 {
                f.write_str("/")?;
            }
            f.write_str(activity.name.as_str())?;
            if activity.is_namesake {
                write!(f, ":{id}")?;
            }
        }
        Ok(())
    }
}

impl Activities {
    /// Who an activity is.
    pub fn path(&self, id: u16) -> Path<'_> {
        Path { all: self, id }
    }

    /// An activity, who created it, and so on. A creator lives longer than what it created.
    fn ancestry(&self, id: u16) -> [Option<(u16, &Activity)>; LINEAGE_MAX] {
        let mut next = Some(id);
        core::array::from_fn(|_| {
            let id = next?;
            let found = self.all.get(&id).map(AsRef::as_ref);
            next = found.map(|activity: &Activity| activity.creator);
            Some((id, found?))
        })
    }

    /// Whether an activity may create one more: it has fewer creators above it than there may be.
    pub fn may_create(&self, id: u16) -> bool {
        self.ancestry(id).last().is_none_or(Option::is_none)
    }

    /// Whether a creator has an activity of this name, or perhaps of another one with the same number.
    pub fn has_namesake(&self, creator: u16, name: &Name) -> bool {
        self.names.contains_key(&named(creator, name))
    }

    /// An activity is looked for from now on, or no more: apart from its coming and going, which take long enough. If that is new, its
    /// tile.
    pub fn list(&mut self, id: u16, is_listed: bool) -> Option<usize> {
        let activity = self.all.get_mut(&id)?;
        if core::mem::replace(&mut activity.is_listed, is_listed) == is_listed {
            return None;
        }
        let (name, tile) = (named(activity.creator, &activity.name), activity.tile);
        self.count(name, is_listed);
        Some(tile)
    }

    /// An activity that was looked for is gone.
    pub fn unlist(&mut self, activity: &Activity) {
        self.count(named(activity.creator, &activity.name), false);
    }

    fn count(&mut self, name: Named, more: bool) {
        match self.names.entry(name) {
            Entry::Occupied(mut others) => match (more, *others.get()) {
                (true, count) => drop(others.insert(count + 1)),
                (false, 1) => drop(others.remove()),
                (false, count) => drop(others.insert(count - 1)),
            },
            Entry::Vacant(place) => drop(place.insert(1)),
        }
    }

    /// The place among the holders of the activity whose messages have this label, if it may make calls.
    #[inline(always)]
    pub fn caller(&self, label: u64) -> Option<HolderId> {
        let caller = self.callers.0[label as usize % CALLERS].get();
        match caller.label == label {
            true => Some(caller.holder),
            false => self.find(label),
        }
    }

    #[cold]
    #[inline(never)]
    fn find(&self, label: u64) -> Option<HolderId> {
        let (id, generation) = label_caller(label);
        let found = self.all.get(&id)?;
        let holder = found.holder;
        let lives = matches!(found.state, State::Created | State::Running);
        if found.generation != generation || !lives {
            return None;
        }
        self.callers.0[label as usize % CALLERS].set(Caller { label, holder });
        Some(holder)
    }
}

impl Activities {
    /// An activity, for what does not change whether it may call.
    pub(crate) fn quiet(&mut self, id: u16) -> Option<&mut Activity> {
        self.all.get_mut(&id).map(AsMut::as_mut)
    }
}

impl Deref for Activities {
    type Target = BTreeMap<u16, Box<Activity>>;

    fn deref(&self) -> &Self::Target {
        &self.all
    }
}

impl DerefMut for Activities {
    /// Whoever changes anything may change who can call.
    fn deref_mut(&mut self) -> &mut Self::Target {
        self.callers = Default::default();
        &mut self.all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::caller_label;
    use proptest::prelude::*;

    fn activity(generation: u32, holder: u16) -> Activity {
        Activity {
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
            state: State::Created,
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
            post: Box::default(),
            parked: None,
            waits: None,
            is_unsaid: false,
            withdrawn: Withdrawn::No,
            is_listed: false,
        }
    }

    #[test]
    fn nobody_takes_the_path_of_another_one() {
        let mut all = Activities::default();
        let mut add = |id: u16, creator: u16, name: &str| {
            let name = Name::new(name).unwrap();
            let is_namesake = all.has_namesake(creator, &name);
            let new = Activity {
                name,
                creator,
                is_namesake,
                ..activity(0, id)
            };
            all.insert(id, Box::new(new));
            all.list(id, true);
        };
        add(1, 0, "root");
        add(2, 1, "control");
        add(3, 2, "actuator");
        // The same name by the same creator, by somebody else, and by a child of the one that has it.
        add(4, 2, "actuator");
        add(5, 1, "actuator");
        add(6, 3, "actuator");
        let path = |id| format!("{}", all.path(id));
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
        // As deep as it goes.
        for id in 7..7 + LINEAGE_MAX as u16 {
            let creator = id - 1;
            if all.contains_key(&creator) && all.may_create(creator) {
                all.insert(
                    id,
                    Box::new(Activity {
                        creator,
                        name: Name::new("x").unwrap(),
                        ..activity(0, id)
                    }),
                );
            }
        }
        let deepest = all.keys().last().copied().unwrap();
        assert_eq!(
            format!("{}", all.path(deepest)).split('/').count(),
            LINEAGE_MAX
        );
        assert!(!all.may_create(deepest) && all.may_create(deepest - 1));
    }

    proptest! {
        /// Who may call is who lives, whatever was found before.
        #[test]
        fn callers_are_those_that_live(steps in proptest::collection::vec((0u8..4, 0u16..4, 0u16..3, 0u32..2), 1..300)) {
            let mut all = Activities::default();
            for (count, (what, low, high, generation)) in steps.into_iter().enumerate() {
                let id = 1 + low + high * CALLERS as u16;
                match what {
                    0 => drop(all.insert(id, Box::new(activity(generation, count as u16)))),
                    1 => drop(all.remove(&id)),
                    2 => all.iter_mut().for_each(|(_, a)| a.state = State::Stopping),
                    _ => {
                        if let Some(found) = all.get_mut(&id) {
                            found.state = State::Running;
                        }
                    }
                }
                for id in 0..3 * CALLERS as u16 {
                    for generation in 0..2 {
                        let plain = all.get(&id).filter(|a| a.generation == generation && a.state != State::Stopping);
                        let plain = plain.map(|a| a.holder);
                        let label = caller_label(id, generation);
                        prop_assert_eq!(all.caller(label), plain);
                        prop_assert_eq!(all.caller(label), plain);
                    }
                }
            }
        }
    }
}
