//! What rivals on a mesh add to an operation on a port, whatever they do. Rivals are cores that a guard keeps out of a system's memories.
//!
//! Why it exists: the analysis of systems counts the accesses that channels make. Where guards refuse all others, a rival still uses the
//! links. Its outstanding accesses are limited (by its store and load buffers; the loader of such a system switches DMA engines off), and
//! links take the next packet of each input port in turn. Together these bound a packet's wait without any assumption about the rival's
//! program. What it deliberately does not know: tasks, and what an operation consists of.
//!
//! A packet that finds k packets ahead of it in its input port of a link, with p other ports in use, lets at most k + (k + 1) p packets
//! pass. For rivals, k is at most the number of outstanding packets of those whose routes pass through this port to this link. Read
//! requests and their answers travel on different planes than stores and acknowledgements.

use crate::one_shot_mesh::{Link, Load, Mesh};
use bulkhead_model::platform::Pipeline;
use std::collections::{BTreeMap, BTreeSet};

/// Attempts of the kernel to take a lock (`software/oneshot/src/port.rs`).
pub(crate) const ATTEMPTS: u64 = 2000;
/// The product of rivals and tiles from which on routes are not distinguished: every rival is everywhere.
const ROUTES: usize = 1 << 16;
/// Maximum input ports of a link besides the one that a packet came through: four neighbours and two tiles.
const PORTS: u64 = 5;

/// Planes of the network.
const READS: u8 = 0;
const DATA: u8 = 1;
const ACKNOWLEDGEMENTS: u8 = 2;

/// A router's or tile's input: where a packet comes from, and the link that it takes there.
type Turn = (u8, u32, (u32, u32));

/// How long an operation of a channel waits for rivals, in cycles of a core.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waits {
    /// A request of the writer to the owner's memory, and its answer.
    pub round: u64,
    /// The answer alone.
    pub answer: u64,
    /// A store.
    pub store: u64,
    /// Its acknowledgement.
    pub acknowledgement: u64,
}

impl Waits {
    /// A row of stores until the last one is acknowledged: `buffer` at a time are outstanding, and those of one batch wait together.
    pub(crate) fn stores(&self, count: u64, buffer: u64) -> u64 {
        count.div_ceil(buffer.max(1)) * (self.store + self.acknowledgement)
    }

    /// A write of `count` words with this many questions, from its beginning until the lock is given back: the first exchange may wait for
    /// the acknowledgement of the previous write's release.
    pub fn write(&self, questions: u64, count: u64, buffer: u64) -> u64 {
        questions * self.round + self.stores(1 + count, buffer) + self.stores(1, 1)
    }

    /// How much longer a writer of `count` words holds a port's lock: from the exchange at the memory to the store that gives the lock back
    /// there.
    pub fn held(&self, count: u64, buffer: u64) -> u64 {
        self.answer + self.stores(count, buffer) + self.store
    }
}

/// Minimum cycles for which an owner asks for a lock on its own core: each attempt takes the value of an exchange, a count, and a branch
/// back.
pub fn patience(pipeline: &Pipeline) -> u64 {
    let back = match pipeline.predictor_entries {
        0 => u64::from(pipeline.branch_penalty),
        _ => 0,
    };
    ATTEMPTS * (u64::from(pipeline.load_to_use) + 1 + 1 + back)
}

/// The rivals' packets.
pub(crate) struct Rivals {
    /// Their outstanding packets that pass through a port to a link; `None`: everything is everywhere.
    through: Option<BTreeMap<Turn, u64>>,
    /// The ports through which they come to a link.
    ports: BTreeMap<Link, BTreeSet<u32>>,
    /// Outstanding loads and stores of all of them.
    loads: u64,
    stores: u64,
    /// There are none, so nothing takes turns with an operation.
    nobody: bool,
}

/// Questions for the locks of one core's ports with one writer that may be under way at once: only its own operation keeps a writer from such a lock, and a core has one
/// operation at a time. The last answer that refused the writer of its previous port may still be on its way.
const AT_ONCE: u64 = 2;

/// A core that waits for a lock at another core, with at most one question or answer under way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asker {
    pub from: u16,
    pub to: u16,
    /// The port has no other writer.
    pub alone: bool,
}

/// All that may wait for a lock.
pub(crate) struct Asking {
    /// For each link behind a router: where those questions and answers come from, and whose they are.
    over: BTreeMap<Link, Vec<(u32, Asker)>>,
    all: Vec<Asker>,
}

impl Asking {
    pub(crate) fn new(mesh: &Mesh<'_>, all: Vec<Asker>) -> Self {
        let mut over: BTreeMap<Link, Vec<(u32, Asker)>> = BTreeMap::new();
        for &one in &all {
            let (there, back) = (mesh.way(one.from, one.to), mesh.way(one.to, one.from));
            for (plane, before, (at, after)) in turns(READS, &there).chain(turns(DATA, &back)) {
                over.entry((plane, at, after))
                    .or_default()
                    .push((before, one));
            }
        }
        Self { over, all }
    }

    /// As they meet an operation of the core `from` on a port of the core `to`, whose packets take the links of `own`.
    pub(crate) fn beside(&self, own: &Load, (from, to): (u16, u16)) -> Rivals {
        let mut through: BTreeMap<Turn, u64> = BTreeMap::new();
        let mut ports: BTreeMap<Link, BTreeSet<u32>> = BTreeMap::new();
        let links = own.links.keys();
        for (&(plane, at, after), asking) in links.filter_map(|link| self.over.get_key_value(link))
        {
            let others = asking.iter().filter(|one| one.1.from != from);
            let mut by_port: BTreeMap<u32, Vec<Asker>> = BTreeMap::new();
            for &(before, one) in others {
                by_port.entry(before).or_default().push(one);
                ports.entry((plane, at, after)).or_default().insert(before);
            }
            for (before, askers) in by_port {
                through.insert((plane, before, (at, after)), at_once(askers.into_iter()));
            }
        }
        let others = self.all.iter().copied().filter(|one| one.from != from);
        Rivals {
            through: Some(through),
            ports,
            loads: at_once(others.clone().filter(|one| one.to == to)),
            stores: 0,
            nobody: others.count() == 0,
        }
    }
}

/// How many questions and answers of these may be under way at once.
fn at_once(askers: impl Iterator<Item = Asker>) -> u64 {
    let mut all = 0;
    let mut of_core: BTreeMap<u16, u64> = BTreeMap::new();
    for one in askers {
        match one.alone {
            true => *of_core.entry(one.to).or_default() += 1,
            false => all += 1,
        }
    }
    all + of_core
        .into_values()
        .map(|one| one.min(AT_ONCE))
        .sum::<u64>()
}

impl Rivals {
    /// The rivals are these cores.
    pub(crate) fn new(mesh: &Mesh<'_>, who: &[u16]) -> Self {
        let platform = mesh.platform;
        let buffers = |core: u16| {
            let pipeline = platform.tile(core).map(|tile| &tile.pipeline);
            pipeline.map_or((1, 1), |one| {
                // A hart has room for at least one access.
                let room = |places: u32| u64::from(places.max(1));
                (room(one.load_buffer), room(one.store_buffer))
            })
        };
        let sum = |one: fn((u64, u64)) -> u64| who.iter().map(|&core| one(buffers(core))).sum();
        let mut all = Self {
            through: None,
            ports: BTreeMap::new(),
            loads: sum(|buffers| buffers.0),
            stores: sum(|buffers| buffers.1),
            nobody: who.is_empty(),
        };
        let ends: Vec<(u16, u16)> = platform
            .tiles
            .iter()
            .map(|tile| (tile.id, tile.router))
            .chain(platform.memories.iter().map(|one| (one.id, one.router)))
            .collect();
        if who.len() * ends.len() > ROUTES {
            return all;
        }
        let mut through: BTreeMap<Turn, u64> = BTreeMap::new();
        for &core in who {
            let Some(tile) = platform.tile(core) else {
                continue;
            };
            let (loads, stores) = buffers(core);
            let here = (core, tile.router);
            // A rival counts once per kind at a turn, however many routes lead there.
            let mut kinds: [BTreeSet<Turn>; 4] = Default::default();
            for &there in ends.iter().filter(|end| end.0 != core) {
                let (to, back) = (mesh.links(here, there), mesh.links(there, here));
                kinds[0].extend(turns(READS, &to));
                kinds[1].extend(turns(DATA, &to));
                kinds[2].extend(turns(DATA, &back));
                kinds[3].extend(turns(ACKNOWLEDGEMENTS, &back));
            }
            let packets = [loads, stores, loads, stores];
            for (kind, packets) in kinds.into_iter().zip(packets) {
                for turn in kind {
                    let (plane, from, (at, to)) = turn;
                    *through.entry(turn).or_default() += packets;
                    all.ports.entry((plane, at, to)).or_default().insert(from);
                }
            }
        }
        all.through = Some(through);
        all
    }

    /// Their loads or questions that may be under way to one memory.
    pub(crate) fn loads(&self) -> u64 {
        self.loads
    }

    /// Network cycles of packets that pass because packets of others are ahead of an operation's on its links. `work`: network cycles of those others on a link.
    pub(crate) fn beside(&self, mesh: &Mesh<'_>, own: &Load, work: impl Fn(&Link) -> u64) -> u64 {
        let links = own.links.keys();
        let passing = links.map(|link| {
            let cycles = mesh.cycles_of(link.0);
            let ports = self.ports.get(link).map_or(0, |ports| ports.len() as u64);
            work(link).div_ceil(cycles) * ports * cycles
        });
        passing.sum()
    }

    /// How long packets between a channel's writer and the owner of its port wait for them. `load`: the load of all channels.
    pub(crate) fn waits(&self, mesh: &Mesh<'_>, (from, to): (u16, u16), load: &Load) -> Waits {
        if self.nobody {
            return Waits::default();
        }
        let (there, back) = (mesh.way(from, to), mesh.way(to, from));
        let core = |cycles: u64| mesh.core_cycles(cycles);
        let request = core(self.path(mesh, READS, &there, 0, load));
        let answer = core(self.path(mesh, DATA, &back, self.loads, load));
        Waits {
            round: request + answer,
            answer,
            store: core(self.path(mesh, DATA, &there, 0, load)),
            acknowledgement: core(self.path(mesh, ACKNOWLEDGEMENTS, &back, self.stores, load)),
        }
    }

    /// Network cycles that a packet waits on its path. `first`: packets to rivals that its tile's memory may have ahead of it.
    fn path(&self, mesh: &Mesh<'_>, plane: u8, way: &[(u32, u32)], first: u64, load: &Load) -> u64 {
        let ahead = |link: (u32, u32)| {
            let work = load.links.get(&(plane, link.0, link.1)).copied();
            work.unwrap_or(0).div_ceil(mesh.cycles_of(plane))
        };
        let mut packets = 0;
        for (number, &link) in way.iter().enumerate() {
            let (before, others) = match number {
                // Requests of the hart and answers of the memory take turns.
                0 => (first, 1),
                _ => self.turn((plane, way[number - 1].0, link)),
            };
            packets += before + (before + ahead(link) + 1) * others;
        }
        packets * mesh.cycles_of(plane)
    }

    /// At a link: packets of rivals in the port that a packet came through, and the other ports that rivals come through.
    fn turn(&self, turn: Turn) -> (u64, u64) {
        let (plane, from, (at, to)) = turn;
        let Some(through) = &self.through else {
            return (self.loads + self.stores, PORTS);
        };
        let before = through.get(&turn).copied().unwrap_or(0);
        let ports = self.ports.get(&(plane, at, to));
        let others = ports.map_or(0, |ports| ports.iter().filter(|one| **one != from).count());
        (before, others as u64)
    }
}

/// Each link of a path with the node before it. The first one has none.
fn turns(plane: u8, way: &[(u32, u32)]) -> impl Iterator<Item = Turn> + '_ {
    let pairs = way.windows(2);
    pairs.map(move |pair| (plane, pair[0].0, pair[1]))
}
