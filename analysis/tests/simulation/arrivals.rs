//! When jobs and interrupts arrive, and how much each job needs: legal patterns, most of them as dense, as coincident and as long as
//! permitted.

use bulkhead_model::tasks::TaskSystem;

use crate::random::Random;

/// A job arrives: when it counts from, and when it may first run.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    pub task: usize,
    pub arrival: u64,
    pub release: u64,
    /// Thousandths of its longest time that the job takes.
    pub part: u64,
}

impl Arrival {
    /// What the job needs of `longest`; at least one unit of anything.
    pub fn needs(&self, longest: u64) -> u64 {
        (longest * self.part).div_ceil(1000)
    }
}

/// How long jobs of a run are: in most runs as long as permitted; in others some end early. Where processors share something or jobs are
/// not preempted, a shorter job can delay others.
pub struct Lengths {
    early: bool,
}

impl Lengths {
    /// Of one run.
    pub fn of(random: &mut Random) -> Self {
        let early = random.one_in(3);
        Self { early }
    }

    /// Thousandths for the next job.
    pub fn part(&self, random: &mut Random) -> u64 {
        match self.early && random.one_in(2) {
            true => random.below(1000),
            false => 1000,
        }
    }
}

/// Nanoseconds.
pub fn ns(time: bulkhead_model::units::Time) -> u64 {
    time.nanoseconds()
}

/// The moment around which everything coincides, and where the simulation ends.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    pub together: u64,
    pub end: u64,
}

/// A span that fits the tasks.
pub fn span(system: &TaskSystem, random: &mut Random) -> Span {
    let longest = system
        .tasks
        .iter()
        .map(|t| ns(t.period) + ns(t.jitter))
        .max()
        .unwrap_or(1);
    let together = longest + random.below(longest);
    Span {
        together,
        end: together + 6 * longest,
    }
}

/// Moments at least `distance` apart: one at `together` or a few units before, others as dense as permitted, or not.
fn moments(distance: u64, span: Span, random: &mut Random) -> Vec<u64> {
    let mut all = Vec::new();
    let meet = span.together.saturating_sub(match random.below(4) {
        0 => random.below(4),
        1 => random.below(distance),
        _ => 0,
    });
    // Before the common moment.
    let mut at = meet;
    let sparse = random.one_in(5);
    while let Some(before) = at.checked_sub(distance + gap(distance, sparse, random)) {
        at = before;
        all.push(at);
    }
    all.reverse();
    at = meet;
    while at < span.end {
        all.push(at);
        at += distance + gap(distance, sparse, random);
    }
    all
}

fn gap(distance: u64, sparse: bool, random: &mut Random) -> u64 {
    if sparse && random.one_in(2) {
        random.below(distance)
    } else {
        0
    }
}

/// Interrupts at least `distance` apart.
pub fn interrupts(distance: u64, span: Span, random: &mut Random) -> Vec<u64> {
    moments(distance, span, random)
}

/// Arrivals of a task with slots in a table, before a moment: exactly a period apart if the system says so, else at any times at least that
/// far apart, half of them at the minimum distance.
pub fn beside_a_table(
    system: &TaskSystem,
    task: usize,
    first: u64,
    end: u64,
    random: &mut Random,
) -> Vec<u64> {
    let period = ns(system.tasks[task].period);
    let sparse = !system.periodic && random.one_in(2);
    let mut at = match system.periodic {
        true => first,
        false => random.below(2 * period),
    };
    let mut all = Vec::new();
    while at < end {
        all.push(at);
        at += period + gap(period, sparse, random);
    }
    all
}

/// All jobs of a system by release; strictly periodic ones from their offsets on if the system says so.
pub fn jobs(system: &TaskSystem, span: Span, random: &mut Random) -> Vec<Arrival> {
    let mut all = Vec::new();
    let lengths = Lengths::of(random);
    for (task, described) in system.tasks.iter().enumerate() {
        let (period, jitter) = (ns(described.period), ns(described.jitter));
        if system.periodic {
            let mut arrival = ns(described.offset);
            while arrival < span.end {
                all.push(Arrival {
                    task,
                    arrival,
                    release: arrival + jitter,
                    part: lengths.part(random),
                });
                arrival += period;
            }
            continue;
        }
        // The job released at the common moment is as late as permitted; those after it are on time.
        let late = if random.one_in(4) {
            random.below(jitter + 1)
        } else {
            jitter
        };
        let style = random.below(3);
        let mut last = 0;
        for release in moments(period, span, random) {
            let Some(arrival) = release.checked_sub(late) else {
                continue;
            };
            let own = match style {
                0 => random.below(jitter + 1),
                _ if arrival + late <= span.together && arrival + late + period > span.together => {
                    late
                }
                _ => 0,
            };
            last = (arrival + own).max(last);
            all.push(Arrival {
                task,
                arrival,
                release: last,
                part: lengths.part(random),
            });
        }
    }
    // Simultaneous arrivals in any order, except those of one task.
    let order = random.shuffled((0..system.tasks.len()).collect());
    all.sort_by_key(|job| (job.release, order[job.task], job.arrival));
    all
}
