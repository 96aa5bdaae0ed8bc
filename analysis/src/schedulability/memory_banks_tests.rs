//! The bank bounds by hand and against a memory that is simulated unit by unit and shares no formula with them.

use super::*;
use proptest::prelude::*;

fn memory(banks: usize, overtaking: u64) -> Memory {
    Memory {
        banks,
        open: 7,
        transfer: 3,
        overtaking,
    }
}

fn core(banks: &[usize], tasks: &[(Time, Time, u64)]) -> Core {
    Core {
        banks: banks.to_vec(),
        tasks: tasks
            .iter()
            .map(|&(cost, period, accesses)| MemoryTask {
                task: Task::new(cost, period),
                accesses,
            })
            .collect(),
    }
}

/// Private banks: three transfers in front. A shared bank: one request (7 + 3, and two transfers of the other two cores), then the
/// bus. Two overtaking row hits: another 2 * (3 + 2 * 3).
#[test]
fn requests_by_hand() {
    let task = [(20, 1000, 2)];
    let private: Vec<Core> = (0..4).map(|i| core(&[i], &task)).collect();
    assert_eq!(request_delay(&memory(8, 2), &private, 0), Ok(9));
    assert_eq!(request_delay(&memory(4, 2), &private, 0), Ok(9));
    let mut shared = private.clone();
    shared[3].banks = vec![0];
    assert_eq!(request_delay(&memory(8, 0), &shared, 0), Ok(10 + 6 + 9));
    assert_eq!(
        request_delay(&memory(8, 2), &shared, 0),
        Ok(10 + 6 + 9 + 18)
    );
    assert_eq!(request_delay(&memory(8, 2), &shared, 1), Ok(9));
    // One bank, two cores: the other's request, no bus to wait for.
    let two = [core(&[0], &task), core(&[0], &task)];
    assert_eq!(request_delay(&memory(1, 0), &two, 0), Ok(10));
}

/// Two cores with private banks. The first: cost 100 with 8 accesses; the second: one access each 50, deadline 50. Requests: 8 * 3.
/// Jobs: R = 100 + 3 * ceil((R + 50) / 50): 109, 112 -> 100 + 3 * 4 = 112: the lesser.
#[test]
fn job_driven_is_less_for_few_others() {
    let cores = [core(&[0], &[(100, 500, 8)]), core(&[1], &[(20, 50, 1)])];
    let memory = memory(2, 0);
    assert_eq!(
        response_times(&memory, &cores, 0, Driven::Request),
        Ok(vec![Some(124)])
    );
    assert_eq!(
        analyse(&memory, &cores),
        Ok(vec![vec![Some(112)], vec![Some(23)]])
    );
    assert_eq!(window_delay(&memory, &cores, 0, 112), Ok(12));
    assert_eq!(window_delay(&memory, &cores, 1, 23), Ok(2 * 8 * 3));
}

/// The core waits for a lower-priority request in progress: 10 alone and 3 on the bus, before 20 + 2 * 3.
#[test]
fn pending_request_by_hand() {
    let cores = [
        core(&[0], &[(20, 100, 2), (30, 500, 1)]),
        core(&[1], &[(500, 1000, 50)]),
    ];
    let alone = response_times(&memory(2, 0), &cores, 0, Driven::Request).unwrap();
    assert_eq!(alone, [Some(20 + 10 + 3 * 3), Some(20 + 30 + 3 * 3)]);
}

#[test]
fn refuses_nonsense() {
    let cores = [core(&[0], &[(20, 100, 2)])];
    assert_eq!(request_delay(&memory(1, 0), &cores, 0), Ok(0), "alone");
    assert!(request_delay(&memory(0, 0), &cores, 0).is_err());
    assert!(request_delay(&memory(1, 0), &cores, 1).is_err());
    assert!(request_delay(&memory(1, 0), &[core(&[3], &[(20, 100, 2)])], 0).is_err());
    assert!(request_delay(&memory(1, 0), &[core(&[], &[(20, 100, 2)])], 0).is_err());
    let huge = [
        core(&[0], &[(20, 100, u64::MAX)]),
        core(&[0], &[(20, 100, u64::MAX)]),
    ];
    let memory = Memory {
        banks: 1,
        open: u64::MAX,
        transfer: u64::MAX,
        overtaking: u64::MAX,
    };
    assert_eq!(analyse(&memory, &huge), Ok(vec![vec![None], vec![None]]));
}

/// An access: computation before it, its bank, its row.
type Access = (u64, usize, u64);

#[derive(Clone, Copy)]
struct Pending {
    core: usize,
    row: u64,
    arrived: u64,
    overtaken: u64,
}

#[derive(Clone, Copy)]
enum Stage {
    Opening(u64),
    Ready(u64),
    Transfer(u64),
}

/// Each core runs its program once from its offset on. For each core the waits of its accesses (from request to the end of the transfer)
/// and the moment at which it is done.
fn simulate(memory: &Memory, programs: &[Vec<Access>], offsets: &[u64]) -> Vec<(Vec<u64>, u64)> {
    let mut queues: Vec<Vec<Pending>> = vec![Vec::new(); memory.banks];
    let mut serving: Vec<Option<(Pending, Stage)>> = vec![None; memory.banks];
    let mut rows = vec![u64::MAX; memory.banks];
    let mut next = vec![0usize; programs.len()];
    let mut due: Vec<Option<u64>> = programs
        .iter()
        .zip(offsets)
        .map(|(p, o)| p.first().map(|a| a.0 + o))
        .collect();
    let mut out: Vec<(Vec<u64>, u64)> = offsets.iter().map(|&o| (Vec::new(), o)).collect();
    for now in 0..100_000 {
        // Ends first: a core continues when its data arrives.
        for bank in serving.iter_mut() {
            if let Some((request, Stage::Transfer(end))) = *bank
                && end == now
            {
                let c = request.core;
                out[c].0.push(now - request.arrived);
                out[c].1 = now;
                next[c] += 1;
                due[c] = programs[c].get(next[c]).map(|a| now + a.0);
                *bank = None;
            }
        }
        for c in 0..programs.len() {
            if due[c] == Some(now) {
                let (_, bank, row) = programs[c][next[c]];
                due[c] = None;
                queues[bank].push(Pending {
                    core: c,
                    row,
                    arrived: now,
                    overtaken: 0,
                });
            }
        }
        for b in 0..memory.banks {
            if let Some((request, Stage::Opening(end))) = serving[b]
                && end == now
            {
                serving[b] = Some((request, Stage::Ready(now)));
            }
            if serving[b].is_none() && !queues[b].is_empty() {
                // A row hit overtakes if nobody in front has been overtaken too often.
                let hit = queues[b].iter().position(|r| r.row == rows[b]);
                let chosen = match hit {
                    Some(i)
                        if queues[b][..i]
                            .iter()
                            .all(|r| r.overtaken < memory.overtaking) =>
                    {
                        i
                    }
                    _ => 0,
                };
                for r in &mut queues[b][..chosen] {
                    r.overtaken += 1;
                }
                let request = queues[b].remove(chosen);
                let stage = if request.row == rows[b] || memory.open == 0 {
                    Stage::Ready(now)
                } else {
                    Stage::Opening(now + memory.open)
                };
                rows[b] = request.row;
                serving[b] = Some((request, stage));
            }
        }
        let busy = serving
            .iter()
            .flatten()
            .any(|(_, s)| matches!(s, Stage::Transfer(_)));
        if !busy {
            let first = (0..memory.banks)
                .filter_map(|b| match serving[b] {
                    Some((r, Stage::Ready(since))) => Some((since, r.core, b)),
                    _ => None,
                })
                .min();
            if let Some((_, _, b)) = first
                && let Some((request, _)) = serving[b]
            {
                serving[b] = Some((request, Stage::Transfer(now + memory.transfer)));
            }
        }
        let idle = serving.iter().all(Option::is_none) && queues.iter().all(Vec::is_empty);
        if idle && due.iter().all(Option::is_none) {
            break;
        }
    }
    out
}

fn programs(banks: usize) -> impl Strategy<Value = Vec<Vec<Access>>> {
    prop::collection::vec(
        prop::collection::vec((0u64..12, 0..banks, 0u64..3), 0..12),
        1..5,
    )
}

/// The cores' banks and accesses as the analysis sees them; deadlines are what the simulation showed.
fn described(
    memory: &Memory,
    programs: &[Vec<Access>],
    offsets: &[u64],
    seen: &[(Vec<u64>, u64)],
) -> Vec<Core> {
    programs
        .iter()
        .zip(offsets)
        .zip(seen)
        .map(|((program, offset), seen)| {
            let accesses = program.len() as u64;
            let cost: u64 = program.iter().map(|a| a.0).sum::<u64>()
                + accesses * (memory.open + memory.transfer);
            let mut task = Task::new(cost.max(1), 1 << 40);
            task.deadline = (seen.1 - offset).max(1);
            Core {
                banks: program.iter().map(|a| a.1).collect(),
                tasks: vec![MemoryTask { task, accesses }],
            }
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn no_simulated_request_or_job_is_later(
        (banks, programs) in (1usize..5).prop_flat_map(|b| (Just(b), programs(b))),
        offsets in prop::collection::vec(0u64..40, 5),
        overtaking in 0u64..4,
        private: bool,
        open in 0u64..9,
        transfer in 1u64..5,
    ) {
        let mut programs = programs;
        let banks = if private { programs.len() } else { banks };
        if private {
            for (c, program) in programs.iter_mut().enumerate() {
                for access in program { access.1 = c; }
            }
        }
        let memory = Memory { banks, open, transfer, overtaking };
        let seen = simulate(&memory, &programs, &offsets);
        let cores = described(&memory, &programs, &offsets, &seen);
        for c in 0..programs.len() {
            let each = request_delay(&memory, &cores, c).unwrap();
            for &wait in &seen[c].0 {
                prop_assert!(wait <= open + transfer + each, "core {}: {} > {} + {}", c, wait, open + transfer, each);
            }
            // Deadlines are what was seen, so the job-driven bound may rely on them.
            let took = seen[c].1 - offsets[c];
            let task = cores[c].tasks[0].task;
            let delay = window_delay(&memory, &cores, c, took).unwrap();
            prop_assert!(took <= task.cost + delay, "core {}: {} > {} + {}", c, took, task.cost, delay);
        }
    }

    /// More accesses, cores, sharing or overtaking are never better.
    #[test]
    fn monotone(
        parts in prop::collection::vec((20u64..60, 300u64..900, 0u64..4, 0usize..4), 2..5),
        which in any::<prop::sample::Index>(),
        overtaking in 0u64..3,
    ) {
        let memory = memory(4, overtaking);
        let cores: Vec<Core> = parts.iter().map(|&(c, t, n, b)| core(&[b], &[(c, t, n), (c, 2 * t, n)])).collect();
        let base = analyse(&memory, &cores).unwrap();
        let index = which.index(cores.len());
        let mut heavier = cores.clone();
        heavier[index].tasks[0].accesses += 1;
        let mut longer = cores.clone();
        longer[index].tasks[1].task.cost += 1;
        let mut faster = cores.clone();
        // Its deadline stays: the period alone gets shorter.
        faster[index].tasks[0].task.deadline -= 20;
        let deadlines = analyse(&memory, &faster).unwrap();
        faster[index].tasks[0].task.period -= 20;
        let mut wider = cores.clone();
        wider[index].banks = vec![0, 1, 2, 3];
        let mut more = cores.clone();
        more.push(core(&[0], &[(10, 400, 1)]));
        let more_overtaking = Memory { overtaking: overtaking + 1, ..memory };
        let compare = |base: &[Vec<Option<u64>>], worse: &[Vec<Option<u64>>]| base.iter().zip(worse).all(|(b, w)| {
            b.iter().zip(w).all(|(b, w)| w.is_none() || b.is_some_and(|b| b <= w.unwrap()))
        });
        for worse in [&heavier, &longer, &wider, &more] {
            prop_assert!(compare(&base, &analyse(&memory, worse).unwrap()));
        }
        prop_assert!(compare(&deadlines, &analyse(&memory, &faster).unwrap()));
        prop_assert!(compare(&base, &analyse(&more_overtaking, &cores).unwrap()));
    }
}

/// The bounds are reached: three cores on private banks are ready for the bus at once, and the last one waits for the others; on one bank
/// the second waits for the first.
#[test]
fn bounds_are_tight() {
    let private = memory(3, 0);
    let programs: Vec<Vec<Access>> = (0..3).map(|b| vec![(0, b, 0)]).collect();
    let seen = simulate(&private, &programs, &[0, 0, 0]);
    let cores: Vec<Core> = (0..3).map(|b| core(&[b], &[(10, 100, 1)])).collect();
    assert_eq!(
        seen[2].0,
        [10 + request_delay(&private, &cores, 2).unwrap()]
    );
    let shared = memory(1, 0);
    let programs = vec![vec![(0, 0, 0)], vec![(0, 0, 1)]];
    let cores = [core(&[0], &[(10, 100, 1)]), core(&[0], &[(10, 100, 1)])];
    let seen = simulate(&shared, &programs, &[0, 0]);
    assert_eq!(seen[1].0, [10 + request_delay(&shared, &cores, 1).unwrap()]);
}
