//! Rivals of programs without a kernel: a library of their bursts, and bursts drawn at random.
//!
//! Why it exists: a check and a search for the worst case need the same hostile neighbours on every host. What it deliberately does not
//! know: the programs that they disturb.

use bulkhead_random::Random;

/// The program of the rivals.
pub const RIVAL: &str = "memory/bursts";

/// The actions of a rival in a burst: the arguments of `memory/bursts`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Burst {
    /// Loads of lines of the second level.
    pub hits: u64,
    /// Lines that are written back; they are stored to before the burst.
    pub cleans: u64,
    /// Stores to lines in memory.
    pub stores: u64,
    /// Loads of lines in memory.
    pub misses: u64,
    /// Cycles from one burst to the next; 0: without a pause.
    pub period: u64,
    /// Cycles by which it is later than a multiple of the period.
    pub phase: u64,
    /// Cycles that are added to the phase after each burst.
    pub shift: u64,
}

impl Burst {
    /// The arguments of the program that are not 0.
    pub fn arguments(self) -> Vec<(&'static str, u64)> {
        let all = [
            ("hits", self.hits),
            ("cleans", self.cleans),
            ("stores", self.stores),
            ("misses", self.misses),
            ("period", self.period),
            ("phase", self.phase),
            ("shift", self.shift),
        ];
        all.into_iter().filter(|(_, value)| *value > 0).collect()
    }

    /// The same as text: `hits=4 period=150`.
    pub fn text(self) -> String {
        let all = self.arguments().into_iter();
        let all: Vec<String> = all.map(|(name, value)| format!("{name}={value}")).collect();
        all.join(" ")
    }

    /// A random one with this period.
    pub fn random(random: &mut Random, period: u64) -> Self {
        let mut one = |all: [u64; 4]| all[random.below(4) as usize];
        Self {
            hits: one([0, 0, 2, 4]),
            cleans: one([0, 1, 2, 4]),
            stores: one([0, 0, 1, 2]),
            misses: one([0, 1, 1, 4]),
            shift: one([0, 0, 1, 7]),
            period,
            phase: random.below(period.max(1)),
        }
    }
}

/// Rivals of one kind without a pause, with a name for readers.
pub fn library() -> [(&'static str, Burst); 4] {
    let none = Burst::default();
    [
        ("hits of a shared cache", Burst { hits: 256, ..none }),
        ("misses", Burst { misses: 4, ..none }),
        ("stores", Burst { stores: 4, ..none }),
        ("lines written back", Burst { cleans: 4, ..none }),
    ]
}

/// Random rivals, number `number` of this seed; or the given ones with one of them changed. In half of the random cases, all rivals do the
/// same at the same moments, with any period: a victim that makes the same accesses again and again waits behind all of them, each time, if
/// its own period is near.
pub fn drawn(count: usize, (number, seed): (u32, u64), varied: Option<&[Burst]>) -> Vec<Burst> {
    let periods = [0, 150, 250, 350, 450, 550, 700, 1000];
    let mut random = Random::new(seed.wrapping_mul(1 << 32) + u64::from(number));
    let random = &mut random;
    let period = periods[random.below(periods.len() as u64) as usize];
    match varied {
        Some(all) if !all.is_empty() => {
            let mut all = all.to_vec();
            let at = random.below(all.len() as u64) as usize;
            all[at] = Burst::random(random, all[at].period);
            all
        }
        _ if random.below(2) == 0 => {
            let period = 40 + random.below(960);
            vec![Burst::random(random, period); count]
        }
        _ => (0..count).map(|_| Burst::random(random, period)).collect(),
    }
}
