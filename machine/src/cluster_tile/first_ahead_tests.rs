//! First levels that fetch any line ahead, against the same model: loads give the value that was written last, a line in a first level of
//! another port stays there, and nothing waits because of such a request.

use super::*;

/// Random worlds of this many clusters in which first levels fetch lines ahead. Returns the transitions of the first levels and of the
/// directories.
fn run(clusters: u8, seeds: u64) -> (Table, Table) {
    let (mut first, mut directory) = (Table::new(), Table::new());
    let (mut begun, mut loads) = (0, 0);
    for seed in 1..=seeds {
        let mut world = World::of(seed, clusters);
        world.live_and(seed, |world| {
            let own = world.random.below(12) == 0;
            begun += u64::from(own && world.fetch_ahead());
            own
        });
        loads += world.loads;
        world.add_to(&mut first, &mut directory);
    }
    assert!(begun > 20 * seeds && loads > 100 * seeds, "{begun} {loads}");
    (first, directory)
}

impl World {
    /// The first level of any hart fetches any line ahead, if it may.
    fn fetch_ahead(&mut self) -> bool {
        let hart = self.random.below(self.first.len() as u64) as usize;
        let line = LINE * self.random.below(self.truth.len() as u64);
        let first = &mut self.first[hart];
        let begun = !first.has(line) && first.fetch_ahead(0, line);
        self.collect();
        begun
    }
}

const COMING: [&str; 3] = [
    "I, asked ahead",
    "I, asked ahead, wants to read",
    "I, asked ahead, wants to write",
];

/// What can happen to a line that is fetched ahead, derived before the first run: whatever can happen to one that is asked for to read, or
/// the request is dropped. (The directory probes a port for a line that the port has dropped silently.)
fn coming() -> BTreeSet<Row> {
    let events = [
        "dropped",
        "grant exclusive",
        "grant shared",
        "load",
        "probe for reading",
        "probe for writing",
        "store",
    ];
    let rows = COMING.iter();
    rows.flat_map(|state| events.map(|event| (*state, event)))
        .collect()
}

/// The rows of a table about lines that first levels fetch ahead.
fn about(table: &Table, wanted: impl Fn(&Row) -> bool) -> BTreeSet<Row> {
    rows(table).into_iter().filter(wanted).collect()
}

#[test]
fn first_levels_that_fetch_ahead_keep_every_value() {
    let seeds = if cfg!(debug_assertions) { 60 } else { 600 };
    let known: BTreeSet<_> = wanted(FIRST)
        .into_iter()
        .chain(RARE)
        .chain(coming())
        .collect();
    let mut all = Table::new();
    for (clusters, states) in [
        (
            1,
            &[
                "I",
                "I, being written",
                "V",
                "busy",
                "owned",
                "recalled",
                "shared",
            ][..],
        ),
        (
            2,
            &["V, also elsewhere", "shared, also elsewhere", "wanted"],
        ),
        (3, &[]),
    ] {
        let (first, directory) = run(clusters, seeds);
        print(&first, &directory);
        let unknown: Vec<_> = rows(&first).difference(&known).copied().collect();
        assert!(unknown.is_empty(), "not in the table: {unknown:?}");
        for (row, count) in first {
            *all.entry(row).or_default() += count;
        }
        let requests = about(&directory, |row| row.1 == "read ahead");
        for state in states {
            assert!(requests.contains(&(*state, "read ahead")), "never: {state}");
        }
    }
    assert_eq!(about(&all, |row| COMING.contains(&row.0)), coming());
}

/// A cluster of two harts with one miss register and two places in each set, in which port 1 has these lines alone.
fn with_owner_of(lines: &[u64]) -> World {
    let mut world = World::new(1, (1, 2), 24, 1);
    for line in lines {
        world.try_access(1, *line, 0, Op::Store);
        world.settle();
        assert_eq!(world.first[1].state(*line), "M");
    }
    world
}

impl World {
    /// Everything that is under way ends, in order.
    fn settle(&mut self) {
        self.collect();
        while !self.is_quiet() {
            for hart in 0..self.first.len() {
                self.deliver_up(hart);
                self.collect();
                self.deliver_down(hart);
                self.collect();
            }
            self.serve_memory();
            self.collect();
        }
    }

    /// Port 0 fetches a line ahead. Returns what the directory says about it at once.
    fn asks_ahead(&mut self, line: u64) -> Vec<(Port, Down)> {
        assert!(self.first[0].fetch_ahead(0, line));
        let ask = self.first[0].out.asks.pop().expect("it asks");
        self.directories[0].ask(0, ask, &mut self.ledger);
        self.directories[0].out.clone()
    }
}

/// What a hart has written is not taken from it: its next store needs no message.
#[test]
fn a_line_fetched_ahead_is_taken_from_no_other_hart() {
    let mut world = with_owner_of(&[0]);
    let said = world.asks_ahead(0);
    assert!(
        matches!(said[..], [(0, Down::Dropped { line: 0, .. })]),
        "{said:?}"
    );
    world.settle();
    assert_eq!(world.first[1].state(0), "M");
    assert_eq!(world.directories[0].state(0), "owned");
    // A set of the second level has two places, and both are that hart's: a third line of the set has none.
    let mut world = with_owner_of(&[0, 4 * LINE]);
    let said = world.asks_ahead(8 * LINE);
    assert!(matches!(said[..], [(0, Down::Dropped { .. })]), "{said:?}");
    world.settle();
    assert_eq!(
        [0, 4 * LINE].map(|line| world.first[1].state(line)),
        ["M"; 2]
    );
    // A line of nobody is granted exclusively, and one that others only read is shared.
    let mut world = with_owner_of(&[0]);
    world.try_access(0, 0, 0, Op::Load);
    world.settle();
    world.first[0].probe(0, false, Owner::new(0, 1), &mut world.directories[0]);
    assert_eq!(world.first[0].state(0), "I");
    let said = world.asks_ahead(0);
    assert!(
        matches!(
            said[..],
            [(
                0,
                Down::Grant {
                    exclusive: false,
                    ..
                }
            )]
        ),
        "{said:?}"
    );
}

/// A line that is fetched ahead may replace lines of its own hart: the directory recalls them, and nobody else waits for that.
#[test]
fn a_line_fetched_ahead_may_replace_lines_of_its_own_hart() {
    let mut world = with_owner_of(&[]);
    for line in [0, 4 * LINE] {
        world.try_access(0, line, 0, Op::Store);
        world.settle();
        assert_eq!(world.first[0].state(line), "M");
    }
    let said = world.asks_ahead(8 * LINE);
    let recalls = said
        .iter()
        .filter(|(port, down)| *port == 0 && matches!(down, Down::Probe { .. }));
    assert_eq!(recalls.count(), 1, "{said:?}");
    world.settle();
    assert_eq!(world.first[0].state(8 * LINE), "E");
}

/// A request that would wait for a miss register, or for another one for the same line, is dropped; an access that has joined it asks again.
#[test]
fn a_request_that_would_wait_is_dropped() {
    let mut world = with_owner_of(&[]);
    world.try_access(1, 0, 0, Op::Load);
    world.collect();
    world.deliver_up(1);
    for line in [0, LINE] {
        let said = world.asks_ahead(line);
        assert!(matches!(said[..], [(0, Down::Dropped { .. })]), "{said:?}");
        world.try_access(0, line, 0, Op::Load);
        assert!(world.first[0].out.asks.is_empty(), "it has joined");
        world.collect();
        world.deliver_down(0);
        let asks = &world.first[0].out.asks;
        assert!(
            matches!(
                asks[..],
                [Ask {
                    request: Request::Read,
                    ..
                }]
            ),
            "{asks:?}"
        );
        world.settle();
        assert!(world.harts[0].late.is_empty());
        // The register is taken again.
        world.try_access(1, 2 * LINE + line, 0, Op::Load);
        world.collect();
        world.deliver_up(1);
    }
}
