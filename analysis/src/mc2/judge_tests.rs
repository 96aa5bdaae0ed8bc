//! One system: the tables of phase three against sums computed differently, exact answers against enumeration, and the guarantees of
//! [`crate::schedulability::mc2`] for systems judged schedulable.

use super::*;
use crate::mc2::parameters::MILLION;
use crate::mc2::task_system::{Io, MessageBuffer, StudyTask};
use crate::schedulability::mc2 as guarantees;
use proptest::prelude::*;

fn plain(level: Level, period: u64, idle: u64) -> StudyTask {
    StudyTask {
        level,
        period,
        idle,
        average: 500_000,
        way_amplitude: 0,
        way_curve: 0,
        unmanaged: 0,
        dma_bus: 0,
        dma_bank: 0,
        dma_curve: 0,
        cpu_bank: 0,
        reload: 0,
        buffers: 0,
        message_share: 300_000,
        io_share: 500_000,
        io: None,
    }
}

/// Two processors and no overheads: the remaining arithmetic is easy to follow.
fn bare() -> StudyParameters {
    StudyParameters {
        processors: 2,
        interrupt: 0,
        schedule: 0,
        release: 0,
        reload_ways: 0,
        ..StudyParameters::default()
    }
}

fn judged(parameters: &StudyParameters, system: TaskSystem, scheme: Scheme) -> (bool, Judge) {
    let curves = Curves::new(parameters);
    let mut judge = Judge::new(parameters);
    judge.system = system;
    judge.prepare(parameters, &curves);
    let verdict = judge.judge(parameters, &curves, scheme);
    (verdict, judge)
}

fn percent(value: u64) -> u64 {
    (value * 100 + ONE / 2) / ONE
}

/// A task of level A with 6 of 10 ms at level A: 60 % there, 40 % at level B, 20 % on average; one of level C with 3 of 10 ms at level
/// A: 10 % on average, and tardiness requires 10 + 10 %.
#[test]
fn costs_of_the_levels_by_hand() {
    let ms = 1_000_000;
    let system = TaskSystem {
        tasks: vec![
            plain(Level::A, 10 * ms, 6 * ms),
            plain(Level::C, 10 * ms, 3 * ms),
        ],
        ..TaskSystem::default()
    };
    let (verdict, judge) = judged(&bare(), system, Scheme::CC);
    assert!(verdict);
    let table = &judge.problem.processors[0];
    assert_eq!(
        [table.a[0], table.ab_b[0], table.ab_c[0]].map(percent),
        [60, 40, 20]
    );
    assert_eq!(
        [judge.problem.c_total[0], judge.problem.c_largest[0]].map(percent),
        [10, 20]
    );
}

/// One task that takes twice as long without ways.
#[test]
fn ways_by_hand() {
    let ms = 1_000_000;
    let mut task = plain(Level::B, 12 * ms, 6 * ms);
    task.way_amplitude = MILLION;
    let parameters = StudyParameters {
        // Every curve falls to 1/e with each way.
        way_constant: crate::mc2::parameters::Interval {
            low: 1_000,
            high: 1_000,
        },
        ..bare()
    };
    let system = TaskSystem {
        tasks: vec![task],
        ..TaskSystem::default()
    };
    let (_, judge) = judged(&parameters, system, Scheme::CC);
    for (ways, demand) in judge.problem.processors[0].ab_b[..17].iter().enumerate() {
        let exact = (1.0 + (-(ways as f64)).exp() - (-16f64).exp()) * 4.0 / 12.0;
        let found = *demand as f64 / ONE as f64;
        assert!(
            found >= exact - 1e-12 && found < exact + 1e-5,
            "{ways}: {found} {exact}"
        );
    }
}

/// A copy of 210 000 bytes takes 1 ms (4762 ps per byte); its share of the job is not limiting. In a bank of level C it takes 81 %
/// longer. A camera copies twice; its first copy is always from a bank of level C.
#[test]
fn device_buffers_by_hand() {
    let ms = 1_000_000;
    let mut task = plain(Level::A, 100 * ms, 15 * ms);
    task.io = Some(Io {
        bytes: 210_000,
        direct: true,
        random_bank: 0,
    });
    let demand = |task: StudyTask, scheme| {
        let system = TaskSystem {
            tasks: vec![task],
            ..TaskSystem::default()
        };
        let (_, judge) = judged(&bare(), system, scheme);
        judge.problem.processors[0].ab_b[16] * 1_000 / (ONE / 100)
    };
    // In thousandths of a percent: 10 % idle, and 0.81 % for each copy from level C.
    assert_eq!(demand(task, Scheme::CAll), 10_000);
    assert_eq!(demand(task, Scheme::CC), 10_810);
    assert_eq!(demand(task, Scheme::RR), 10_000);
    task.io = Some(Io {
        bytes: 210_000,
        direct: false,
        random_bank: 1,
    });
    assert_eq!(demand(task, Scheme::CAll), 10_810);
    assert_eq!(demand(task, Scheme::CC), 11_620);
    assert_eq!(demand(task, Scheme::RR), 11_620);
}

/// Sender and receiver of 8192 bytes on one processor: elimination costs nothing; a bank of level C costs what Figure 8 says.
#[test]
fn messages_by_hand() {
    let ms = 1_000_000;
    let mut tasks = vec![
        plain(Level::B, 40 * ms, 6 * ms),
        plain(Level::B, 40 * ms, 6 * ms),
    ];
    for task in &mut tasks {
        task.buffers = 1;
    }
    let system = TaskSystem {
        tasks,
        buffers: vec![MessageBuffer {
            sender: 0,
            receiver: 1,
            bytes: 8_192,
            ce_send: 100_000,
            ce_receive: 400_000,
            cl_send: 50_000,
            cl_receive: 150_000,
            random_bank: 200,
        }],
        chains: vec![(0, 2)],
    };
    // 3 us and 8192 * 4.762 ns: 42.011 us.
    let copy = 3_000 + (8_192u64 * 4_762).div_ceil(1_000);
    let sum = |judge: &Judge, locked: usize| -> u64 {
        let at = judge.problem.index(locked, 0);
        let all: u64 = judge.problem.processors.iter().map(|p| p.ab_b[at]).sum();
        // In ns of 40 ms.
        (u128::from(all) * 40_000_000 / u128::from(ONE)) as u64
    };
    let (_, judge) = judged(&bare(), system.clone(), Scheme::OC);
    assert_eq!(judge.processors(), [0, 0]);
    assert_eq!(sum(&judge, 0), 8 * ms);
    let (_, judge) = judged(&bare(), system.clone(), Scheme::CC);
    assert_eq!(judge.processors(), [0, 1]);
    // Ten times for sending, two and a half times for receiving.
    assert!(sum(&judge, 0).abs_diff(8 * ms + 9 * copy + copy * 3 / 2) <= 4);
    // Apart and optimised: locked, with many ways close to 5 % of 10 times and 15 % of 2.5 times.
    let mut apart = system;
    for task in &mut apart.tasks {
        task.idle = 33 * ms;
    }
    let (_, judge) = judged(&bare(), apart, Scheme::OC);
    assert_eq!(judge.processors(), [0, 1]);
    let most = *judge.problem.locked.end();
    let gained = 2 * 22 * ms + 9 * copy + copy * 3 / 2 - sum(&judge, most);
    let whole = copy * 95 / 10 + copy * 5 / 2 * 85 / 100;
    assert!(
        gained <= whole && gained > whole * 99 / 100,
        "{gained} {whole}"
    );
}

/// Interrupts: each job on processor 0 pays for those of at least two periods; jobs elsewhere pay for none.
#[test]
fn interrupts_by_hand() {
    let ms = 1_000_000;
    let mut device = plain(Level::C, 20 * ms, ms);
    device.io = Some(Io {
        bytes: 409_600,
        direct: true,
        random_bank: 0,
    });
    let system = TaskSystem {
        tasks: vec![
            plain(Level::A, 20 * ms, 6 * ms),
            plain(Level::A, 20 * ms, 6 * ms),
            device,
        ],
        ..TaskSystem::default()
    };
    let parameters = StudyParameters {
        interrupt: 500_000,
        ..bare()
    };
    let (_, judge) = judged(&parameters, system, Scheme::CC);
    // 4 ms, and (20 / 20 + 1) interrupts of 0.5 ms: 5 of 20 ms. On average, level C loses 0.25 of 20 ms of processor 0.
    let tables = &judge.problem.processors;
    assert_eq!(
        [tables[0].ab_b[0], tables[1].ab_b[0]].map(percent),
        [25, 20]
    );
    assert_eq!((tables[0].ab_c[0] * 10_000).div_ceil(ONE), 1_126);
}

impl Judge {
    /// The system with each task's costs under the last plan, in the form in which the library describes systems.
    fn system_of_plan(&self, parameters: &StudyParameters, curves: &Curves) -> guarantees::System {
        let locked = self.decay_of_locked(parameters);
        let mut system = guarantees::System {
            processors: vec![guarantees::Processor::default(); parameters.processors as usize],
            ..guarantees::System::default()
        };
        for (index, task) in self.costs.tasks.iter().enumerate() {
            let intermediate = u64::from(task.intermediate);
            if task.level == Level::C {
                let banks = self.placement.level_c_devices / parameters.level_c_banks;
                let factor = task.factor(AVERAGE, curves, banks, self.placement.level_c_share);
                let buffers = (1 + intermediate) * task.copy[AVERAGE] + task.messages[AVERAGE];
                let cost = task.cost(
                    AVERAGE,
                    factor,
                    curves.way(task.way_curve)[self.plan.level_c],
                ) + portion(buffers, parameters.copy_inflation_average)
                    + task.kernel[AVERAGE]
                    + task.reload[AVERAGE];
                system.c.push(guarantees::LevelTask {
                    period: task.period,
                    costs: [0, 0, cost],
                });
                continue;
            }
            let p = self.processors()[index];
            let own = usize::from(p);
            let decay = curves.way(task.way_curve)[self.plan.processors[own]];
            let shortest = self
                .costs
                .tasks
                .iter()
                .zip(self.processors())
                .filter(|(_, q)| **q == p)
                .map(|(t, _)| t.period)
                .min()
                .unwrap_or(task.period);
            let preemptions = if task.level == Level::B {
                task.period / shortest - 1
            } else {
                0
            };
            let copies = intermediate + u64::from(self.placement.io[index] != p);
            let [fixed, saved] = self.message_ends[index];
            let cost = |which: usize, inflation: u64, foreign: u64, share: u64| {
                let factor = task.factor(which, curves, self.placement.bank_devices[own], foreign);
                let messages = |greatest: u64| (greatest * share).div_ceil(task.idle[GREATEST]);
                task.cost(which, factor, decay) - task.messages[which]
                    + copies * portion(task.copy[which], inflation)
                    + task.kernel[which]
                    + preemptions * task.reload[which]
                    + messages(fixed)
                    + scaled(messages(saved), locked[self.plan.locked])
            };
            let b = cost(
                GREATEST,
                parameters.copy_inflation,
                self.placement.foreign[own] * FIXED,
                task.idle[GREATEST],
            );
            let c = cost(
                AVERAGE,
                parameters.copy_inflation_average,
                self.placement.foreign_share[own],
                task.idle[AVERAGE],
            );
            let one = guarantees::LevelTask {
                period: task.period,
                costs: [portion(b, parameters.level_a_over_b), b, c],
            };
            let processor = &mut system.processors[own];
            if task.level == Level::A {
                &mut processor.a
            } else {
                &mut processor.b
            }
            .push(one);
        }
        system
    }

    fn decay_of_locked(&self, parameters: &StudyParameters) -> [u64; WAYS] {
        let apart = |b: &&MessageBuffer| {
            self.processors().get(b.sender as usize) != self.processors().get(b.receiver as usize)
        };
        let bytes = self
            .system
            .buffers
            .iter()
            .filter(apart)
            .map(|b| b.bytes)
            .sum();
        locking(parameters, bytes)
    }
}

fn small() -> (StudyParameters, Curves) {
    let parameters = StudyParameters::default();
    let curves = Curves::new(&parameters);
    (parameters, curves)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Every division of the ways, tried one by one: a plan is found exactly if one exists, and none is better.
    #[test]
    fn phase_three_is_exact(scenario in 0usize..648, utilisation in 10u64..60, sample in 0u64..50, which in 0usize..9) {
        let (parameters, curves) = small();
        let mut judge = Judge::new(&parameters);
        let chosen = Scenario::from_index(scenario).expect("exists");
        let mut stream = Stream::new(7, scenario, utilisation, sample);
        judge.generate(&parameters, &curves, chosen, utilisation * 100, &mut stream);
        let good = judge.judge(&parameters, &curves, Scheme::ALL[which]);
        prop_assume!(!judge.hopeless);
        let problem = &judge.problem;
        let all = 4 * ONE;
        let mut best = None;
        for locked in problem.locked.clone() {
            for w in 0..17usize.pow(4) {
                let own: [usize; 4] = std::array::from_fn(|p| w / 17usize.pow(p as u32) % 17);
                let used = locked + own.iter().sum::<usize>();
                if used >= 16 {
                    continue;
                }
                let (mut fits, mut taken) = (true, 0);
                for (table, &own) in problem.processors.iter().zip(&own) {
                    let at = locked * 17 + own;
                    fits &= table.a[at] <= ONE && table.ab_b[at] <= ONE && table.ab_c[at] <= ONE;
                    taken += table.ab_c[at];
                }
                // More ways never hurt level C here: it takes all remaining ways.
                let at = locked * 17 + 16 - used;
                let (total, largest) = (problem.c_total[at], problem.c_largest[at]);
                let rate = all.saturating_sub(taken);
                if fits && total <= rate && (largest == 0 || largest < rate) {
                    best = Some(best.map_or(total, |b: u64| b.min(total)));
                }
            }
        }
        prop_assert_eq!(good, best.is_some());
        if let Some(best) = best {
            prop_assert_eq!(judge.plan.objective, best);
        }
    }

    /// Whatever the study calls schedulable has the guarantees of the library, which knows neither ways nor schemes: each processor's
    /// levels and tardiness, by other methods (exact fractions, response times).
    #[test]
    fn verdicts_agree_with_the_library(scenario in 0usize..648, utilisation in 10u64..50, sample in 0u64..50, which in 0usize..9) {
        let (mut parameters, _) = small();
        // Without interrupts, which the library accounts for differently.
        parameters.interrupt = 0;
        let curves = Curves::new(&parameters);
        let mut judge = Judge::new(&parameters);
        let chosen = Scenario::from_index(scenario).expect("exists");
        let mut stream = Stream::new(7, scenario, utilisation, sample);
        judge.generate(&parameters, &curves, chosen, utilisation * 100, &mut stream);
        if !judge.judge(&parameters, &curves, Scheme::ALL[which]) {
            return Ok(());
        }
        let system = judge.system_of_plan(&parameters, &curves);
        let found = guarantees::analyse(&system).expect("valid");
        prop_assert!(found.a.iter().all(|&a| a));
        prop_assert!(found.c.is_some());
        prop_assert!(found.schedulable(&system));
    }

    /// More work never helps: a system with an additional task is schedulable only if the one without it is (with every task packed
    /// individually on one processor, where no packing can turn out better by chance).
    #[test]
    fn more_tasks_never_help(idles in prop::collection::vec(1u64..8, 1..8), more in 1u64..8, amplitude in 0u64..MILLION) {
        let parameters = StudyParameters { processors: 1, ..StudyParameters::default() };
        let ms = 1_000_000;
        let task = |idle: u64| {
            let level = [Level::A, Level::B, Level::C][(idle % 3) as usize];
            StudyTask { way_amplitude: amplitude, ..plain(level, 24 * ms, idle * ms) }
        };
        let system = |idles: &[u64]| {
            let mut tasks: Vec<StudyTask> = idles.iter().map(|&i| task(i)).collect();
            tasks.sort_by_key(|t| t.level);
            TaskSystem { tasks, ..TaskSystem::default() }
        };
        let (before, _) = judged(&parameters, system(&idles), Scheme::CC);
        let mut longer = idles;
        longer.push(more);
        let (after, _) = judged(&parameters, system(&longer), Scheme::CC);
        prop_assert!(before || !after);
    }
}
