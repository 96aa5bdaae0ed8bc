//! The terms by hand; and a model of a memory with shares beside random rivals, whose accesses never wait longer than each bound.

use super::*;
use crate::communication::interference::least_window;
use bulkhead_random::Random;

/// Ticks of a slot.
const SLOT: Ticks = 10;

fn share(reserved: u64, weight: u64) -> Share {
    Share { reserved, weight }
}

#[test]
fn the_terms_by_hand() {
    let shares = Shares {
        blocks: 64,
        all: vec![share(0, 2), share(0, 1), share(0, 2), share(3, 9)],
    };
    // One slot each of the first two, five of the weight of nine beside two; a window of 640 ticks is touched thrice in 700 ticks and a slot.
    let terms = shares.terms(0, 100, 700, SLOT);
    assert_eq!(terms.by_weight, Some([100 * 7 * 10, 3 * 3 * 10]));
    assert_eq!(terms.by_reservation, None);
    // Nobody else has a reservation, so only the slot in progress is ahead of a reserved slot, and three before a free one. The most for each access
    // is in windows with 17 of them: 3 + 15 * 3 = 48, and no more than 64 + 1 - 17 + 1.
    let terms = shares.terms(3, 100, 700, SLOT);
    assert_eq!(terms.by_weight, Some([100 * 3 * 10, 0]));
    assert_eq!(
        terms.by_reservation,
        Some([(100 * 48u128).div_ceil(17) * 10, 63 * 10])
    );
    assert_eq!(shares.before(3, 100, 700, SLOT), 3000);
    // Without others and with a weight, nothing is ahead.
    let alone = Shares {
        blocks: 64,
        all: vec![share(0, 1)],
    };
    assert_eq!(alone.before(0, 100, 700, SLOT), 0);
    assert_eq!(shares.before(0, 0, 700, SLOT), 0);
}

/// Equal weights without reservations are turns: one slot of each other one.
#[test]
fn equal_weights_are_turns() {
    let shares = Shares {
        blocks: 64,
        all: vec![share(0, 7); 4],
    };
    assert_eq!(shares.before(2, 5, 1_000_000, SLOT), 5 * 3 * 10);
}

/// A request: when it is ready, its requester, and whether the program waits for it.
type Ready = (Ticks, usize, bool);

/// The controller, written after the documentation of the module.
struct Model<'a> {
    shares: &'a Shares,
    used: Vec<u64>,
    window: u64,
    next: Vec<u64>,
    now: u64,
    /// The one that was served last is the last.
    served: Vec<usize>,
    free_from: Ticks,
    waiting: Vec<Ready>,
    /// The rivals' requests that are still to come, the first one last.
    coming: Vec<Ready>,
}

impl Model<'_> {
    fn has_reserved(&self, who: usize, at: Ticks) -> bool {
        let window = at / (self.shares.blocks * SLOT);
        let used = if window == self.window {
            self.used[who]
        } else {
            0
        };
        used < self.shares.all[who].reserved
    }

    /// When a request may have a slot, from this moment on.
    fn may(&self, who: usize, from: Ticks) -> Ticks {
        let length = self.shares.blocks * SLOT;
        match self.shares.all[who].weight > 0 || self.has_reserved(who, from) {
            true => from,
            false => (from / length + 1) * length,
        }
    }

    fn arrive(&mut self, until: Ticks) {
        while self.coming.last().is_some_and(|one| one.0 <= until) {
            self.waiting.extend(self.coming.pop());
        }
    }

    /// Serves until the program's request has been served; the end of its slot.
    fn run(&mut self) -> Ticks {
        loop {
            if self.waiting.is_empty() {
                let first = self.coming.last().expect("the program's").0;
                self.arrive(first);
            }
            let may = |one: &Ready| self.may(one.1, one.0.max(self.free_from));
            let at = self.waiting.iter().map(may).min().expect("somebody waits");
            if self.coming.last().is_some_and(|one| one.0 <= at) {
                self.arrive(at);
                continue;
            }
            let key = |(index, one): (usize, &Ready)| {
                let reserved = self.has_reserved(one.1, at);
                let start = match reserved {
                    true => 0,
                    false => self.next[one.1].max(self.now),
                };
                let last = self.served.iter().position(|who| *who == one.1);
                (!reserved, start, last, index)
            };
            let all = self.waiting.iter().enumerate();
            let ready = all.filter(|(_, one)| may(one) == at);
            let chosen = ready.map(key).min().expect("somebody may");
            let (free, start, _, index) = chosen;
            let (_, who, waits) = self.waiting.remove(index);
            let window = at / (self.shares.blocks * SLOT);
            if window != self.window {
                self.window = window;
                self.used.fill(0);
            }
            if free {
                self.now = start;
                self.next[who] = start + (1 << 24) / self.shares.all[who].weight;
            } else {
                self.used[who] += 1;
            }
            self.served.retain(|one| *one != who);
            self.served.push(who);
            self.free_from = at + SLOT;
            if waits {
                return self.free_from;
            }
        }
    }
}

/// What the program does from `begin` on: reads in sequence, with a pause before each of them, and with a write at the same moment as some.
struct Program {
    begin: Ticks,
    pauses: Vec<Ticks>,
    writes: Vec<bool>,
}

impl Program {
    fn random(random: &mut Random) -> Self {
        let reads = 1 + random.below(24) as usize;
        let longest = [1, 10, 40, 200][random.below(4) as usize];
        let (writes, begin) = (random.below(3) == 0, random.below(500));
        Self {
            begin,
            pauses: (0..reads).map(|_| random.below(longest)).collect(),
            writes: (0..reads).map(|_| writes && random.below(2) == 0).collect(),
        }
    }

    fn accesses(&self) -> u64 {
        let writes = self.writes.iter().filter(|one| **one).count();
        (self.pauses.len() + writes) as u64
    }

    /// How long it takes beside these requests.
    fn time(&self, shares: &Shares, mut coming: Vec<Ready>) -> Ticks {
        coming.sort_unstable_by(|one, other| other.cmp(one));
        let count = shares.all.len();
        let mut model = Model {
            shares,
            used: vec![0; count],
            window: 0,
            next: vec![0; count],
            now: 0,
            served: Vec::new(),
            free_from: 0,
            waiting: Vec::new(),
            coming,
        };
        // What came before it has had its slots, or waits.
        let mut now = self.begin;
        for (pause, write) in self.pauses.iter().zip(&self.writes) {
            let at = now + pause;
            if *write {
                model.coming.push((at, 0, false));
            }
            // In its place: later ones come first in the list.
            model.coming.push((at, 0, true));
            model
                .coming
                .sort_by_key(|one| (std::cmp::Reverse(one.0), one.2));
            now = model.run();
        }
        now - self.begin
    }
}

/// Requests of rivals: all the time, or bursts with a period.
fn rivals(random: &mut Random, count: usize) -> Vec<Ready> {
    let mut all = Vec::new();
    for who in 1..count {
        match random.below(4) {
            0 => {
                let phase = random.below(600);
                all.extend((0..300).map(|_| (phase, who, false)));
            }
            1 => {
                let (period, phase) = (10 + random.below(80), random.below(100));
                all.extend((0..200).map(|turn| (phase + turn * period, who, false)));
            }
            2 => {
                let (period, phase) = (40 + random.below(400), random.below(400));
                let burst = 1 + random.below(6);
                for turn in 0..30 {
                    all.extend((0..burst).map(|_| (phase + turn * period, who, false)));
                }
            }
            _ => all.extend((0..random.below(40)).map(|_| (random.below(3000), who, false))),
        }
    }
    all
}

fn random_shares(random: &mut Random) -> Shares {
    let count = 2 + random.below(3) as usize;
    let blocks = 4 + random.below(12);
    let mut left = blocks - 1;
    let mut all = Vec::new();
    for _ in 0..count {
        let reserved = match random.below(5) {
            0 => left,
            1 | 2 => 0,
            _ => random.below(left / 2 + 1),
        };
        left -= reserved;
        let weight = match reserved {
            0 => 1 + random.below(5),
            _ => [0, 1, 2, 9][random.below(4) as usize],
        };
        all.push(Share { reserved, weight });
    }
    Shares { blocks, all }
}

/// Random shares, programs and rivals: no program takes longer than what it took alone and either bound, and without any term some do.
#[test]
fn no_rival_exceeds_either_bound_and_all_terms_are_needed() {
    const NAMES: [&str; 4] = [
        "free slots",
        "reserved of others",
        "all windows",
        "first window",
    ];
    let random = &mut Random::new(5);
    let (mut nearest, mut judged) = ([f64::MAX; 2], [0u32; 2]);
    let mut needed = [false; 4];
    for _ in 0..12_000 {
        let shares = random_shares(random);
        let program = Program::random(random);
        let alone = program.time(&shares, Vec::new());
        let mut others = rivals(random, shares.all.len());
        let mut program = program;
        let earlier = shares.all[0].reserved;
        if random.below(2) == 0 && earlier > 0 {
            // Earlier work of the program has used up its slots of this window, and is over before the rivals begin.
            let window = (1 + random.below(3)) * shares.blocks * SLOT;
            program.begin = window + earlier * SLOT;
            for one in &mut others {
                one.0 += program.begin;
            }
            others.extend((0..earlier).map(|turn| (window + turn * SLOT, 0, false)));
        }
        let worst = program.time(&shares, others);
        let accesses = u128::from(program.accesses());
        // A read beside others waits for each own access that it did not wait for alone.
        let own = u128::from(program.writes.iter().filter(|one| **one).count() as u64)
            * 2
            * u128::from(SLOT);
        let bound = |number: usize, without: Option<usize>| {
            least_window(u128::MAX, |window| {
                let terms = shares.terms(0, accesses, window, SLOT);
                let terms = [terms.by_weight, terms.by_reservation][number];
                let mut terms = terms.unwrap_or([1 << 40; 2]);
                if let Some(without) = without {
                    terms[without] = 0;
                }
                u128::from(alone) + own + terms.iter().sum::<u128>()
            })
        };
        let own_share = shares.all[0];
        let has = [own_share.weight > 0, own_share.reserved > 0];
        for number in 0..2 {
            if !has[number] {
                continue;
            }
            // Reserved slots of others may take all the time.
            let Some(whole) = bound(number, None) else {
                continue;
            };
            judged[number] += 1;
            assert!(
                u128::from(worst) <= whole,
                "{worst} above {whole}, alone {alone}: bound {number}, {shares:?}"
            );
            nearest[number] = nearest[number].min(whole as f64 / worst as f64);
            for term in 0..2 {
                let without = bound(number, Some(term));
                needed[2 * number + term] |=
                    without.is_some_and(|without| u128::from(worst) > without);
            }
        }
    }
    println!("judged {judged:?}, nearest {nearest:.2?}");
    for (name, needed) in NAMES.iter().zip(needed) {
        println!("{name}: {needed}");
    }
    assert!(needed.iter().all(|one| *one), "{needed:?}");
    assert!(nearest.iter().all(|one| *one < 1.5), "{nearest:?}");
}
