//! One cache against the textbook's.

use super::*;
use proptest::prelude::*;

const A: Owner = Owner::new(0, 1);
const B: Owner = Owner::new(0, 2);

fn config(sets: u64, ways: u32, replacement: Replacement) -> CacheConfig {
    CacheConfig {
        size: sets * ways as u64 * 64,
        ways,
        line: 64,
        cycle: 1,
        latency: 2,
        mshrs: 4,
        replacement,
        way_mask: 0,
        prefetcher: None,
    }
}

/// The textbook's cache: for each set a list of lines, the most recently used last.
struct Naive {
    sets: Vec<Vec<(u64, bool)>>,
    ways: usize,
}

impl Naive {
    fn access(&mut self, address: u64, write: bool) -> (bool, Option<(u64, bool)>) {
        let line = address / 64;
        let count = self.sets.len() as u64;
        let set = &mut self.sets[(line % count) as usize];
        if let Some(i) = set.iter().position(|l| l.0 == line) {
            let (_, dirty) = set.remove(i);
            set.push((line, dirty | write));
            return (true, None);
        }
        let out = if set.len() == self.ways {
            Some(set.remove(0))
        } else {
            None
        };
        set.push((line, write));
        (false, out.map(|(l, d)| (l * 64, d)))
    }
}

/// A tree of booleans, built recursively.
enum Tree {
    Leaf(usize),
    Node(bool, Box<Tree>, Box<Tree>),
}

impl Tree {
    fn new(low: usize, high: usize) -> Self {
        if high - low == 1 {
            return Tree::Leaf(low);
        }
        let mid = (low + high) / 2;
        Tree::Node(
            false,
            Box::new(Tree::new(low, mid)),
            Box::new(Tree::new(mid, high)),
        )
    }
    fn touch(&mut self, way: usize) -> bool {
        match self {
            Tree::Leaf(w) => *w == way,
            Tree::Node(victim_high, low, high) => {
                if low.touch(way) {
                    *victim_high = true;
                    true
                } else if high.touch(way) {
                    *victim_high = false;
                    true
                } else {
                    false
                }
            }
        }
    }
    fn victim(&self) -> usize {
        match self {
            Tree::Leaf(w) => *w,
            Tree::Node(true, _, high) => high.victim(),
            Tree::Node(false, low, _) => low.victim(),
        }
    }
}

proptest! {
    #[test]
    fn lru_like_the_naive_cache(accesses in prop::collection::vec((0u64..64, any::<bool>()), 1..300), ways in 1u32..5) {
        let mut cache = Cache::new(&config(4, ways, Replacement::Lru), 1);
        let mut naive = Naive { sets: vec![Vec::new(); 4], ways: ways as usize };
        for (line, write) in accesses {
            let address = line * 64 + 8;
            let hit = cache.access(address, write);
            let evicted = if hit { None } else { cache.fill(address, write, A, &[0; 64]) };
            let (naive_hit, naive_out) = naive.access(address, write);
            prop_assert_eq!(hit, naive_hit);
            prop_assert_eq!(evicted.map(|e| (e.address, e.dirty)), naive_out);
        }
    }

    #[test]
    fn tree_plru_like_a_tree(accesses in prop::collection::vec(0u64..20, 1..300), log in 0u32..4) {
        let ways = 1usize << log;
        let mut cache = Cache::new(&config(1, ways as u32, Replacement::TreePlru), 1);
        let mut tree = Tree::new(0, ways);
        let mut lines: Vec<Option<u64>> = vec![None; ways];
        for line in accesses {
            let hit = cache.access(line * 64, false);
            let position = lines.iter().position(|l| *l == Some(line));
            prop_assert_eq!(hit, position.is_some());
            let way = position.unwrap_or_else(|| {
                lines.iter().position(|l| l.is_none()).unwrap_or_else(|| tree.victim())
            });
            if !hit {
                let evicted = cache.fill(line * 64, false, A, &[0; 64]);
                prop_assert_eq!(evicted.map(|e| e.address / 64), lines[way]);
                lines[way] = Some(line);
            }
            tree.touch(way);
        }
    }

    /// Fills stay within the mask, whatever the policy, so lines in other ways survive any number of fills.
    #[test]
    fn way_mask_protects(fills in prop::collection::vec(100u64..200, 1..200), mask in 1u64..255, kind in 0usize..3) {
        let replacement = [Replacement::Lru, Replacement::TreePlru, Replacement::Random][kind];
        let mut cache = Cache::new(&config(1, 8, replacement), 7);
        cache.set_way_mask(!mask);
        let kept: Vec<u64> = (0..8 - mask.count_ones() as u64).collect();
        for line in &kept {
            cache.fill(line * 64, false, A, &[0; 64]);
        }
        cache.set_way_mask(mask);
        for line in fills {
            if !cache.access(line * 64, false) {
                cache.fill(line * 64, false, B, &[0; 64]);
            }
        }
        for line in kept {
            prop_assert!(cache.contains(line * 64));
        }
    }
}

#[test]
fn evictions_have_culprits() {
    let mut cache = Cache::new(&config(1, 2, Replacement::Lru), 1);
    cache.fill(0, true, A, &[0; 64]);
    cache.fill(64, false, A, &[0; 64]);
    let evicted = cache.fill(128, false, B, &[0; 64]).unwrap();
    assert_eq!(
        evicted,
        Evicted {
            address: 0,
            dirty: true,
            owner: A
        }
    );
    assert!(!cache.access(0, false));
    assert_eq!(cache.culprit(0, A), Some(B));
    assert_eq!(cache.culprit(0, B), None);
    assert_eq!(cache.culprit(64, A), None);
    // A's own fill evicts line 64: no other owner is the cause.
    cache.fill(0, false, A, &[0; 64]);
    assert_eq!(cache.culprit(64, A), None);
    let all = cache.statistics();
    assert_eq!(all[0].1.misses_by_others, 1);
    assert_eq!((all[1].1.evictions, all[1].1.write_backs), (1, 1));
}

#[test]
fn the_order_survives_the_end_of_the_clock() {
    let mut cache = Cache::new(&config(1, 4, Replacement::Lru), 1);
    cache.clock = u32::MAX - 3;
    for line in [0u64, 1, 2, 3, 0, 2] {
        if !cache.access(line * 64, false) {
            cache.fill(line * 64, false, A, &[0; 64]);
        }
    }
    // Least recently used first: 1, 3, 0, 2.
    let out: Vec<_> = (10..14u64)
        .filter_map(|line| cache.fill(line * 64, false, A, &[0; 64]))
        .map(|e| e.address / 64)
        .collect();
    assert_eq!(out, [1, 3, 0, 2]);
}

#[test]
fn random_replacement_repeats_with_its_seed() {
    let run = |seed| {
        let mut cache = Cache::new(&config(1, 4, Replacement::Random), seed);
        (0..100u64)
            .filter_map(|i| cache.fill(i % 7 * 64, false, A, &[0; 64]))
            .map(|e| e.address)
            .collect::<Vec<_>>()
    };
    assert_eq!(run(3), run(3));
    assert_ne!(run(3), run(0x1234_5678_9ABC));
}

#[test]
fn random_takes_empty_ways_first_and_random_any_does_not() {
    let evictions = |replacement| {
        let mut cache = Cache::new(&config(64, 4, replacement), 7);
        let lines = (0..4 * 64).map(|line| line * 64);
        lines
            .filter(|line| cache.fill(*line, false, A, &[0; 64]).is_some())
            .count()
    };
    assert_eq!(evictions(Replacement::Random), 0);
    // Four draws of four ways leave 4 * (3/4)^4 = 1.27 ways of a set empty, and that many fills evict: 81 of 256, give or take four
    // standard deviations of 5.8.
    let any = evictions(Replacement::RandomAny);
    assert!((58..=104).contains(&any), "{any}");
}
