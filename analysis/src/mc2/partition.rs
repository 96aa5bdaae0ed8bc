//! Phase one of the optimiser: which processor serves which tasks of levels A and B.
//!
//! Source: mc2-rts20, section 6.1: worst fit; with concurrency elimination, groups of tasks that share buffers are packed as one,
//! and split as soon as the remaining processor capacity is too small for them. (Its pseudocode is in earlier work that we do not
//! have; the splitting here is our own: into halves along the chain.)
//!
//! Phase one comes before the cache is divided, so it weighs tasks with the ways of a fair share. It refuses nothing: a single
//! task goes to the processor with the lowest load even if that is too much, and phase three decides with exact costs.

/// Weight of a task, in parts of [`super::ways::ONE`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Weight {
    /// At level A (0 for tasks of level B).
    pub a: u64,
    /// At level B.
    pub b: u64,
    /// Additional weight of both on processor 0: interrupts.
    pub interrupts: u64,
}

/// Load of the processors while they are packed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Packing {
    /// Level A.
    a: Vec<u64>,
    /// Levels A and B.
    b: Vec<u64>,
    /// Groups to place, heaviest first: weight, first task, number of tasks.
    groups: Vec<(u64, u32, u32)>,
    /// Processor of each task.
    pub processor: Vec<u8>,
}

const ONE: u64 = super::ways::ONE;

impl Packing {
    /// Packs tasks `0..weights.len()`. `chains` lists groups of neighbouring tasks (first, number) to keep together, in ascending
    /// order; empty to pack every task individually.
    pub fn pack(&mut self, processors: usize, weights: &[Weight], chains: &[(u32, u32)]) {
        self.a.clear();
        self.a.resize(processors, 0);
        self.b.clear();
        self.b.resize(processors, 0);
        self.processor.clear();
        self.processor.resize(weights.len(), 0);
        self.groups.clear();
        let mut chains = chains.iter().copied().peekable();
        let mut at = 0;
        while at < weights.len() as u32 {
            let count = chains.next_if(|c| c.0 == at).map_or(1, |c| c.1);
            self.groups.push((weight(weights, at, count), at, count));
            at += count;
        }
        // Heaviest first; in a tie, the first task.
        self.groups
            .sort_unstable_by_key(|&(weight, first, _)| (u64::MAX - weight, first));
        for index in 0..self.groups.len() {
            let (_, first, count) = self.groups[index];
            self.place(weights, first, count);
        }
    }

    fn place(&mut self, weights: &[Weight], first: u32, count: u32) {
        let target = self.lowest();
        let group = &weights[first as usize..(first + count) as usize];
        let (a, b) = group.iter().fold((0, 0), |(a, b), w| {
            let more = if target == 0 { w.interrupts } else { 0 };
            let a_more = if w.a > 0 { more } else { 0 };
            (a + w.a + a_more, b + w.b + more)
        });
        if count > 1 && (self.a[target] + a > ONE || self.b[target] + b > ONE) {
            let half = count / 2;
            self.place(weights, first, half);
            self.place(weights, first + half, count - half);
            return;
        }
        self.a[target] += a;
        self.b[target] += b;
        self.processor[first as usize..(first + count) as usize].fill(target as u8);
    }

    /// The processor with the most room; in a tie, the first.
    fn lowest(&self) -> usize {
        (0..self.b.len())
            .min_by_key(|&p| (self.b[p].max(self.a[p]), p))
            .unwrap_or(0)
    }
}

fn weight(weights: &[Weight], first: u32, count: u32) -> u64 {
    weights[first as usize..(first + count) as usize]
        .iter()
        .map(|w| w.b)
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn weights(percent: &[u64]) -> Vec<Weight> {
        percent
            .iter()
            .map(|p| Weight {
                a: 0,
                b: p * (ONE / 100),
                interrupts: 0,
            })
            .collect()
    }

    fn packed(processors: usize, percent: &[u64], chains: &[(u32, u32)]) -> Vec<u8> {
        let mut packing = Packing::default();
        packing.pack(processors, &weights(percent), chains);
        packing.processor
    }

    #[test]
    fn worst_fit_by_hand() {
        // 50 to 0, 40 to 1, 30 to 1 (70), 20 to 0 (70), 10 to 0.
        assert_eq!(packed(2, &[10, 20, 30, 40, 50], &[]), [0, 0, 1, 1, 0]);
    }

    #[test]
    fn groups_stay_together_until_they_do_not_fit() {
        assert_eq!(
            packed(2, &[30, 30, 30, 30], &[(0, 2), (2, 2)]),
            [0, 0, 1, 1]
        );
        // 60 + 60 do not fit on any processor: the group is split.
        assert_eq!(packed(2, &[60, 60], &[(0, 2)]), [0, 1]);
        // The second group finds 40 left on each: split; the first does not.
        assert_eq!(
            packed(2, &[30, 30, 60, 25, 25], &[(0, 2), (3, 2)]),
            [0, 0, 1, 0, 1]
        );
    }

    #[test]
    fn interrupts_weigh_on_the_first_processor() {
        let mut all = weights(&[20, 20, 20, 20]);
        for weight in &mut all {
            weight.interrupts = ONE / 2;
        }
        let mut packing = Packing::default();
        packing.pack(2, &all, &[]);
        assert_eq!(packing.processor, [0, 1, 1, 1]);
    }

    proptest! {
        /// Every task has a processor; heaviest first, no processor is above the least loaded one by more than one group.
        #[test]
        fn balanced(percent in prop::collection::vec(1u64..40, 1..30), processors in 1usize..5) {
            let processor = packed(processors, &percent, &[]);
            let mut loads = vec![0; processors];
            for (p, w) in processor.iter().zip(&percent) {
                loads[usize::from(*p)] += w;
            }
            let (low, high) = (loads.iter().min().unwrap(), loads.iter().max().unwrap());
            prop_assert!(high - low <= *percent.iter().max().unwrap());
        }

        /// If worst fit respects the capacity, so does an exhaustive search (the oracle).
        #[test]
        fn an_exhaustive_search_agrees(percent in prop::collection::vec(10u64..70, 1..7)) {
            let processor = packed(2, &percent, &[]);
            let mut loads = [0; 2];
            for (p, w) in processor.iter().zip(&percent) {
                loads[usize::from(*p)] += w;
            }
            let best = (0..1u32 << percent.len())
                .map(|set| {
                    let left: u64 = percent.iter().enumerate().filter(|(i, _)| set >> i & 1 == 1).map(|(_, w)| w).sum();
                    left.max(percent.iter().sum::<u64>() - left)
                })
                .min()
                .unwrap();
            let reached = loads[0].max(loads[1]);
            prop_assert!(reached >= best);
            // Heaviest first on m equal processors is within 4/3 - 1/(3 m) of the optimum (Graham 1969): 7/6 for two.
            prop_assert!(reached * 6 <= best * 7);
        }
    }
}
