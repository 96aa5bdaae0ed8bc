//! Several coherent clusters, and a coherent device, against the same model: between them are a network, a home and a memory.
//!
//! Packets from one end to another stay in order within one of two networks, as with reads and writes apart, and nothing else is certain:
//! memory serves what it has in any order.

use super::super::directory::Presence;
use super::*;
use crate::home::{Home, Order};
use crate::noc::{Packet, PacketKind, Transaction, Want};
use crate::types::TileId;

/// The memory tile.
const MEMORY: TileId = 100;
const READS: usize = 0;
const WRITES: usize = 1;

/// The most accesses that the coherent device has under way.
const PIECES: usize = 4;

/// Everything outside the clusters.
pub(super) struct Outside {
    home: Home,
    /// By cluster and network; a coherent device comes last.
    up: Vec<[VecDeque<Packet>; 2]>,
    down: Vec<[VecDeque<Packet>; 2]>,
    /// The packets that memory works on, with their answers.
    serving: Vec<(Box<Packet>, PacketKind)>,
    has_device: bool,
    /// Tags of the device's unanswered accesses, and its next tag.
    pieces: Vec<u32>,
    piece: u32,
}

impl Outside {
    pub fn new(clusters: usize) -> Self {
        let ids: Vec<TileId> = (0..clusters as TileId).collect();
        let ways = || (0..=clusters).map(|_| Default::default()).collect();
        Self {
            home: Home::new(MEMORY, &ids, LINE as u32),
            up: ways(),
            down: ways(),
            serving: Vec::new(),
            has_device: false,
            pieces: Vec::new(),
            piece: 0,
        }
    }

    pub fn is_quiet(&self) -> bool {
        let mut ways = self.up.iter().chain(&self.down).flatten();
        let device = self.pieces.is_empty();
        device && self.home.is_idle() && self.serving.is_empty() && ways.all(VecDeque::is_empty)
    }

    /// Sends what a directory wants from memory.
    pub fn send(&mut self, cluster: usize, directory: &mut Directory) {
        for below in std::mem::take(&mut directory.below) {
            let owner = Owner::new(cluster as TileId, 0);
            let bytes = LINE as u32;
            let (line, way, kind, data) = match below {
                Below::Read { line, alone, .. } => {
                    let want = if alone { Want::Write } else { Want::Read };
                    let kind = PacketKind::Coherent {
                        line: index(line) as u32,
                        address: line,
                        bytes,
                        want,
                    };
                    (line, READS, kind, None)
                }
                Below::Manage { line, what, .. } => {
                    let kind = PacketKind::Coherent {
                        line: index(line) as u32,
                        address: line,
                        bytes,
                        want: Want::Manage(what),
                    };
                    (line, READS, kind, None)
                }
                Below::Write { line, .. } => {
                    let data = *directory.written_bytes(line).expect("it leaves");
                    let kind = PacketKind::WriteRequest {
                        address: line,
                        bytes,
                        data: None,
                    };
                    (line, WRITES, kind, Some(data))
                }
                Below::Surrendered {
                    line, kept, bytes, ..
                } => {
                    let kind = PacketKind::Surrendered {
                        address: line,
                        kept,
                        bytes: if bytes.is_some() { LINE as u32 } else { 0 },
                    };
                    (line, WRITES, kind, bytes.map(|bytes| *bytes))
                }
            };
            let (tag, transaction) = (index(line) as u32, Transaction::CacheRead);
            let source = cluster as TileId;
            let mut packet = Packet::request(0, source, MEMORY, owner, tag, transaction, kind);
            packet.line = data;
            self.up[cluster][way].push_back(packet);
        }
    }
}

impl World {
    /// Many steps, and then as many as end what is under way. Between them, and at the end, all is as it must be.
    pub(super) fn live(&mut self, seed: u64) {
        self.live_and(seed, |_| false);
    }

    /// The same. Instead of a step, something else may happen: the function says whether it did.
    pub(super) fn live_and(&mut self, seed: u64, mut other: impl FnMut(&mut Self) -> bool) {
        for step in 0..20_000 {
            if !other(self) {
                self.step(true);
            }
            if step % 16 == 0 {
                self.check();
            }
        }
        for round in 0.. {
            if self.is_quiet() {
                break;
            }
            assert!(round < 100_000, "seed {seed}: something waits forever");
            self.step(false);
        }
        self.check();
    }

    /// A packet arrives somewhere, or memory completes something.
    pub(super) fn serve_outside(&mut self) {
        let device = u64::from(self.outside().has_device);
        let requesters = self.directories.len() as u64 + device;
        let (cluster, way) = (self.random.below(requesters), self.random.below(2));
        let (cluster, way) = (cluster as usize, way as usize);
        match self.random.below(3) {
            0 => self.arrive_at_memory(cluster, way),
            1 => self.arrive_at_cluster(cluster, way),
            _ => self.end_service(),
        }
        self.obey();
    }

    fn outside(&mut self) -> &mut Outside {
        self.outside.as_mut().expect("several clusters")
    }

    /// A device, if there is one, takes every second turn.
    pub(super) fn is_devices_turn(&mut self) -> bool {
        let outside = self.outside.as_ref();
        outside.is_some_and(|outside| outside.has_device) && self.random.below(2) == 0
    }

    /// The device begins an access to words of a line, as a peripheral or a DMA engine does, if fewer than [`PIECES`] are under way. Its
    /// tags are no lines.
    pub(super) fn access_of_device(&mut self) {
        let line = LINE * self.random.below(self.truth.len() as u64);
        let word = self.random.below(8);
        let words = 1 + self.random.below(8 - word);
        let want = [Want::Fetch, Want::Put][self.random.below(2) as usize];
        self.begin_access(line + 8 * word, 8 * words as u32, want);
    }

    /// The device begins an access to these bytes of a line, if it may.
    fn begin_access(&mut self, address: u64, bytes: u32, want: Want) {
        let device = self.directories.len();
        let outside = self.outside();
        if outside.pieces.len() == PIECES {
            return;
        }
        let tag = outside.piece;
        outside.piece += 1;
        outside.pieces.push(tag);
        let kind = PacketKind::Coherent {
            line: index(address) as u32,
            address,
            bytes,
            want,
        };
        let (id, transaction) = (device as TileId, Transaction::DmaRead);
        let owner = Owner::new(id, 1);
        let packet = Packet::request(0, id, MEMORY, owner, tag, transaction, kind);
        outside.up[device][READS].push_back(packet);
    }

    /// The home lets memory serve the device: it reads what was written last, and later reads return what it writes.
    fn serve_device(&mut self, address: u64, bytes: u32, want: Want) -> PacketKind {
        let (line, first) = (address - address % LINE, (address % LINE / 8) as usize);
        let known = self.is_known(line);
        let length = bytes as usize;
        let there = &mut self.memory[index(line)][8 * first..8 * first + length];
        let truth = &mut self.truth[index(line)];
        for (word, there) in (first..).zip(there.chunks_mut(8)) {
            if want == Want::Put {
                self.value += 1;
                there.copy_from_slice(&self.value.to_le_bytes());
                truth.words[word] = self.value;
            }
            let read = u64::from_le_bytes((&*there).try_into().unwrap());
            let right = !known || read == truth.words[word];
            assert!(right, "a device finds {read} in {line:#x}, not {truth:?}");
        }
        if want == Want::Put {
            truth.writes.push(usize::MAX);
            return PacketKind::WriteResponse { error: false };
        }
        PacketKind::ReadResponse {
            error: false,
            data: Some((&*there).into()),
            bytes,
        }
    }

    fn arrive_at_memory(&mut self, cluster: usize, way: usize) {
        let Some(packet) = self.outside().up[cluster][way].pop_front() else {
            return;
        };
        if let Some(line) = packet.line {
            self.memory[packet.tag as usize] = line;
        }
        let outside = self.outside.as_mut().expect("several clusters");
        match packet.kind {
            PacketKind::Coherent { .. } => outside.home.ask(Box::new(packet)),
            PacketKind::Surrendered { .. } => {
                outside.home.answered(0, &packet, &mut self.ledger);
            }
            _ => {
                let answer = PacketKind::WriteResponse { error: false };
                outside.serving.push((Box::new(packet), answer));
            }
        }
    }

    fn obey(&mut self) {
        for order in std::mem::take(&mut self.outside().home.orders) {
            match order {
                Order::Ask {
                    cluster,
                    tag,
                    surrender,
                    owner,
                } => {
                    let kind = PacketKind::Wanted { surrender };
                    let probe = Transaction::Probe;
                    let packet = Packet::request(0, MEMORY, cluster, owner, tag, probe, kind);
                    self.outside().down[usize::from(cluster)][READS].push_back(packet);
                }
                Order::Serve {
                    mut request, alone, ..
                } => {
                    let PacketKind::Coherent {
                        address,
                        want,
                        bytes,
                        ..
                    } = request.kind
                    else {
                        panic!("{request:?}");
                    };
                    let kind = match want {
                        Want::Manage(_) => PacketKind::Managed,
                        Want::Fetch | Want::Put => self.serve_device(address, bytes, want),
                        Want::Read | Want::Write => {
                            request.line = Some(self.memory[request.tag as usize]);
                            PacketKind::Grant { alone, bytes }
                        }
                    };
                    self.outside().serving.push((request, kind));
                }
            }
        }
    }

    fn end_service(&mut self) {
        let count = self.outside().serving.len() as u64;
        if count == 0 {
            return;
        }
        let at = self.random.below(count) as usize;
        let outside = self.outside.as_mut().expect("several clusters");
        let (mut packet, kind) = outside.serving.swap_remove(at);
        let coherent = matches!(packet.kind, PacketKind::Coherent { .. });
        let way = if coherent { READS } else { WRITES };
        let (tag, source) = (packet.tag, packet.source);
        packet.answer(kind);
        outside.down[usize::from(source)][way].push_back(*packet);
        if coherent {
            outside.home.left(0, (source, tag), &mut self.ledger);
        }
    }

    fn arrive_at_cluster(&mut self, cluster: usize, way: usize) {
        let Some(packet) = self.outside().down[cluster][way].pop_front() else {
            return;
        };
        if cluster == self.directories.len() {
            let pieces = &mut self.outside().pieces;
            let at = pieces.iter().position(|piece| *piece == packet.tag);
            pieces.swap_remove(at.expect("the device has asked"));
            return;
        }
        let (directory, ledger) = (&mut self.directories[cluster], &mut self.ledger);
        let (line, account) = (u64::from(packet.tag) * LINE, packet.account);
        match packet.kind {
            PacketKind::Grant { alone, .. } => {
                let bytes = packet.line.expect("a grant brings a line");
                directory.came(0, line, (&bytes, alone), account, ledger);
            }
            PacketKind::Managed => directory.managed(0, line, account, ledger),
            PacketKind::Wanted { surrender } => {
                let question = (surrender, packet.owner, account);
                directory.want(0, line, question, ledger);
            }
            _ => directory.written(0, line, ledger),
        }
    }
}

const REQUESTS: [&str; 8] = [
    "ahead",
    "clean",
    "fetch",
    "flush",
    "invalidate",
    "read",
    "reclaim",
    "write",
];
const HOME: [&str; 3] = ["home: discard", "home: give up", "home: share"];

/// The directory's table with several clusters, derived from the protocol before the first run: every request and every question of
/// the home can come in every state, with one exception.
fn table() -> BTreeSet<Row> {
    let answers = [
        "answer: clean, kept",
        "answer: gone",
        "answer: modified, gone",
        "answer: modified, kept",
        "put",
    ];
    let states: [(&str, &[&str]); 10] = [
        ("I", &[]),
        ("I, being written", &["written"]),
        ("V", &[]),
        ("V, also elsewhere", &[]),
        ("shared", &["recall"]),
        ("shared, also elsewhere", &["recall"]),
        ("owned", &["recall", "put"]),
        (
            "busy",
            &[
                "answer: clean, kept",
                "answer: gone",
                "answer: modified, gone",
                "answer: modified, kept",
                "put",
                "line from memory",
                "written",
                "home: managed",
            ],
        ),
        (
            "recalled",
            &["answer: gone", "answer: modified, gone", "put"],
        ),
        ("wanted", &["written"]),
    ];
    let mut rows = BTreeSet::new();
    for (state, own) in states {
        rows.extend(own.iter().map(|event| (state, *event)));
        rows.extend(REQUESTS.map(|event| (state, event)));
        match state {
            // The home wants a line once at a time.
            "wanted" => rows.extend(answers.map(|event| (state, event))),
            _ => rows.extend(HOME.map(|event| (state, event))),
        }
    }
    rows
}

#[test]
fn clusters_are_coherent_with_each_other() {
    let accesses = if cfg!(debug_assertions) {
        200_000
    } else {
        5_000_000
    };
    let mut all = Table::new();
    let known: BTreeSet<_> = wanted(FIRST).into_iter().chain(RARE).collect();
    for clusters in [2, 3] {
        let (first, directory) = run(clusters, accesses / 2);
        print(&first, &directory);
        // To a first level, another cluster is another port.
        let unknown: Vec<_> = rows(&first).difference(&known).copied().collect();
        assert!(unknown.is_empty(), "not in the table: {unknown:?}");
        for (row, count) in directory {
            *all.entry(row).or_default() += count;
        }
    }
    let (all, table) = (rows(&all), table());
    let missing: Vec<_> = table.difference(&all).collect();
    let unknown: Vec<_> = all.difference(&table).collect();
    assert!(
        missing.is_empty() && unknown.is_empty(),
        "never seen: {missing:?}; not in the table: {unknown:?}"
    );
}

/// A coherent device reads what was written last, and every hart of every cluster then reads what the device has written.
#[test]
fn a_device_is_coherent_with_clusters() {
    let table = table();
    let (seeds, mut accesses) = (if cfg!(debug_assertions) { 24 } else { 240 }, 0);
    for seed in 1..=seeds {
        let clusters = 2 + (seed % 2) as u8;
        let lines = [3, 6, 12, 24][(seed % 4) as usize];
        let mut world = World::new(seed, (clusters, 2), lines, 2);
        world.outside().has_device = true;
        world.live(seed);
        accesses += world.outside().piece;
        for directory in &world.directories {
            for row in directory.coverage.0.keys() {
                assert!(table.contains(row), "not in the table: {row:?}");
            }
        }
    }
    assert!(u64::from(accesses) > 20 * seeds, "{accesses}");
}

/// A device that writes whole lines replaces whatever clusters have, modified or not, and no byte of it comes back.
#[test]
fn a_device_writes_whole_lines_over_what_clusters_have() {
    let seeds = if cfg!(debug_assertions) { 24 } else { 240 };
    let mut all = Table::new();
    for seed in 1..=seeds {
        let clusters = 2 + (seed % 2) as u8;
        let lines = [3, 6, 12, 24][(seed % 4) as usize];
        let mut world = World::new(seed, (clusters, 2), lines, 2);
        world.outside().has_device = true;
        world.live_and(seed, |world| {
            let whole = world.random.below(12) == 0;
            if whole {
                let line = LINE * world.random.below(world.truth.len() as u64);
                world.begin_access(line, LINE as u32, Want::Put);
            }
            whole
        });
        world.add_to(&mut Table::new(), &mut all);
    }
    let (all, table) = (rows(&all), table());
    let unknown: Vec<_> = all.difference(&table).collect();
    assert!(unknown.is_empty(), "not in the table: {unknown:?}");
    // A line that is recalled at that moment is too rare for the short test.
    let often = |row: &&Row| row.1 == "home: discard" && row.0 != "recalled";
    let states = table.iter().filter(often);
    let missing: Vec<_> = states.filter(|row| !all.contains(*row)).collect();
    assert!(missing.is_empty(), "never seen: {missing:?}");
}

/// Everything that a cluster sends has the identifiers of the request, or of the question, that caused it. A line that is here, but
/// requested again to have it alone, is not on its way.
#[test]
fn identifiers_go_with_what_they_cause() {
    let config = CacheConfig {
        size: 512,
        ways: 2,
        line: LINE as u32,
        mshrs: 2,
        ..CacheConfig::default()
    };
    let mut directory = Directory::new(0, &config);
    directory.coherent = true;
    let mut ledger = Ledger::new();
    let ids = |n| QosIds { rcid: n, mcid: n };
    let account = Account::new(0);
    let ask = |request, n| Ask {
        port: 0,
        line: 0,
        request,
        ids: ids(n),
        account: Account::new(0),
    };
    let gone = || Reply::Answer {
        line: 0,
        dirty: false,
        kept: false,
        held: 0,
    };
    let sent = |directory: &mut Directory| {
        let all = directory.below.drain(..).map(|below| match below {
            Below::Read { ids, alone, .. } => (["read", "alone"][usize::from(alone)], ids.rcid),
            Below::Write { ids, .. } => ("write", ids.rcid),
            Below::Manage { ids, .. } => ("manage", ids.rcid),
            Below::Surrendered { .. } => panic!("nobody has asked for the line"),
        });
        all.collect::<Vec<_>>()
    };
    let bytes = [0; LINE_MAX];
    directory.ask(0, ask(Request::Read, 1), &mut ledger);
    assert_eq!(sent(&mut directory), [("read", 1)]);
    assert_eq!(directory.presence(0), Presence::Coming);
    directory.came(0, 0, (&bytes, false), account, &mut ledger);
    directory.ask(0, ask(Request::Write, 2), &mut ledger);
    assert_eq!(sent(&mut directory), [("alone", 2)]);
    assert_eq!(directory.presence(0), Presence::Here);
    directory.reply(0, 0, gone(), &mut ledger);
    directory.came(0, 0, (&bytes, true), account, &mut ledger);
    let flush = ask(Request::Manage(Management::Flush), 3);
    directory.ask(0, flush, &mut ledger);
    assert_eq!(sent(&mut directory), [("manage", 3)]);
}
