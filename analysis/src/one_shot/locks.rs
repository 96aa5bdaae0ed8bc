//! Waits of operations on ports: for the lock, and on the network.
//!
//! Why it exists: a lock is not fair, so an operation may wait for the operations of all others that use its port, and whoever waits keeps asking over the
//! network. What it deliberately does not know: responses; its caller says how many operations of each task may fall within one operation of another.
//!
//! - *While one has the lock, the other writers of its queue have nothing under way but one question each.* So their items do not delay it, only their questions do.
//! - *Questions.* A core that waits has one question or answer under way; of all that wait for a core's ports with one writer, two at once ([`crate::one_shot_rivals`]).
//!   How often they ask does not matter then: a packet that finds k packets ahead of it in its input
//!   port of a link, with p other ports in use, lets at most k + (k + 1) p packets pass, as for rivals ([`crate::one_shot_rivals`]). Packets of items that are ahead of it
//!   let others pass, too, once each.
//! - *Waiting for the lock.* An operation waits for all operations of the port's other cores that may fall within it, each with its waits on the network and the way of
//!   the store that gives the lock back, and for the interrupts of those cores. Between two of them the lock is free, but an interrupt may keep this side from asking then.
//! - *Sections.* Where all cores have one timer, a slice or result of a section is not written before the last one is read: all jobs of a section end within the period of
//!   their release. So nobody finds the lock taken. The reader may see an item before the writer's last acknowledgement and the lock have completed.
//! - *Attempts.* Nobody asks for ever. If the others may have the lock for longer than somebody asks for it, an operation may fail, and nothing says when an item is read
//!   ([`Waits::fails`]).
//! - All this holds for operations that are shorter than a tick, because every period has a tick at least.

use super::attempts::fails;
use crate::one_shot::{Interrupts, Port, QUESTIONS, WORDS, moves, reads, writes};
use crate::one_shot_mesh::{BEHIND, Load, Mesh};
use crate::one_shot_rivals::{Asker, Asking};
use bulkhead_model::system::OneShot;
use bulkhead_model::system::oneshot::TICK;
use bulkhead_model::tasks::Unbounded;
use std::collections::BTreeMap;

/// For each channel, in cycles of a core.
#[derive(Clone, Debug, Default)]
pub(crate) struct Waits {
    /// Of a write, for the lock and on the network.
    pub write: Vec<u64>,
    /// Of a read, for the lock and for accesses of others to the reader's memory.
    pub read: Vec<u64>,
    /// Of a write, on the network alone.
    pub network: Vec<u64>,
    /// Requests at the reader's memory while another core performs one operation.
    pub requests: Vec<u64>,
    /// Why no bound of the chip holds, if so.
    pub unbounded: Option<String>,
    /// Why an operation may fail, if so.
    pub fails: Vec<Option<String>>,
}

/// What all waits follow from.
pub(crate) struct Ports<'a> {
    pub mesh: &'a Mesh<'a>,
    pub system: &'a OneShot,
    /// Operations alone.
    pub ports: &'a [Port],
    /// For each task: the maximum number of its jobs whose operations may fall within one operation of another task.
    pub turns: &'a [u64],
    /// Loads of a host core.
    pub looks: &'a Load,
    /// Cycles of the shortest tick.
    pub tick: u64,
    /// All cores have one timer.
    pub is_aligned: bool,
    /// For each task, why nothing bounds it, if so.
    pub lost: &'a [Option<Unbounded>],
}

impl Ports<'_> {
    fn core(&self, task: usize) -> u16 {
        self.system.core(task)
    }

    fn ends(&self, channel: usize) -> (u16, u16) {
        let channel = &self.system.tasks.channels[channel];
        (self.core(channel.from), self.core(channel.to))
    }

    /// Whether the writer of a channel may find its port's lock taken, and asks again.
    fn asks(&self, channel: usize) -> bool {
        self.ports[channel].hops > 0 && !self.is_section(channel)
    }

    /// Whether a channel belongs to a section of cores with one timer: nobody finds its lock taken.
    fn is_section(&self, channel: usize) -> bool {
        self.is_aligned && self.system.tasks.channels[channel].parallel.is_some()
    }

    fn interrupt(&self, task: usize) -> u64 {
        Interrupts::of(self.system, self.mesh.platform, self.core(task)).operation()
    }

    /// The other channels of the same queue whose writers are on other cores.
    fn others(&self, channel: usize) -> Vec<usize> {
        let own = self.ends(channel).0;
        let sharing = self.system.tasks.sharing(channel).into_iter();
        sharing.filter(|&one| self.ends(one).0 != own).collect()
    }

    /// How long the questions, items and answers of a write wait on the network and at the memory: for the items and the questions of other channels, and for the
    /// questions that may be under way at once ([`Asking`]). `loads`: of each channel, without questions of those who wait for a lock.
    fn network(
        &self,
        channel: usize,
        (loads, all, own_core): (&[Load], &Load, &Load),
        asking: &Asking,
    ) -> u64 {
        let (mesh, (from, to)) = (self.mesh, self.ends(channel));
        let others = self.others(channel);
        let mut apart = own_core.clone();
        for &other in &others {
            apart.add(&loads[other]);
        }
        let own = &loads[channel];
        let counted = mesh.wait(all, &apart, own);
        // The store with which another writer of the queue gave the lock back, and its acknowledgement.
        let behind = others.len() as u64 * BEHIND * mesh.packet(8) * own.links.len() as u64;
        let questions = asking.beside(own, (from, to));
        let buffer = mesh.platform.tile(from);
        let buffer = buffer.map_or(1, |tile| tile.pipeline.store_buffer);
        let words = WORDS + moves(self.system, channel);
        let passing = questions.waits(mesh, (from, to), &Load::default()).write(
            QUESTIONS + 2,
            words,
            buffer.into(),
        );
        let ahead = questions.beside(mesh, own, |link| all.links.get(link).copied().unwrap_or(0));
        // Each of its accesses may find one of each of the others at the memory.
        let accesses = (QUESTIONS + 2 + words) * questions.loads() * mesh.access;
        counted + mesh.core_cycles(behind + ahead) + passing + accesses
    }

    /// How much longer an operation on the reader's own core takes because others access its memory meanwhile.
    fn visited(&self, port: usize, alone: u64, all: &Load, loads: &[Load]) -> u64 {
        let core = self.ends(port).1;
        let sharing = self.system.tasks.sharing(port);
        // Whoever waits for this lock does not move items.
        let own: u64 = sharing.iter().map(|&one| loads[one].requests).sum();
        let visits = all.memories.get(&core).copied().unwrap_or(0);
        let items = visits - own;
        let channels = 0..self.ports.len();
        let asking = channels.filter(|&one| self.asks(one) && self.ends(one).1 == core);
        // The core has one operation at a time, so nobody finds the lock of another port with one writer taken.
        let tasks = &self.system.tasks;
        let asking = asking.filter(|&one| sharing.contains(&one) || tasks.sharing(one).len() > 1);
        let rounds: Vec<u64> = asking
            .map(|one| self.mesh.shortest_round(self.ports[one].hops))
            .collect();
        let mut longer = 0;
        loop {
            let asked: u64 = rounds
                .iter()
                .map(|round| 1 + (alone + longer) / round)
                .sum();
            let next = (items + asked) * self.mesh.access;
            if next == longer || next > self.tick {
                return next;
            }
            longer = next;
        }
    }

    /// All waits.
    pub(crate) fn waits(&self) -> Waits {
        let (mesh, tasks) = (self.mesh, &self.system.tasks);
        let channels = 0..self.ports.len();
        let loads: Vec<Load> = channels
            .clone()
            .map(|one| mesh.load_asking(self.system, one, &self.ports[one], 0, self.turns))
            .collect();
        let mut all = self.looks.clone();
        let mut of_core: BTreeMap<u16, Load> = BTreeMap::new();
        for (index, load) in loads.iter().enumerate() {
            all.add(load);
            of_core.entry(self.ends(index).0).or_default().add(load);
        }
        let asking = channels.clone().filter(|&one| self.asks(one));
        let asking = asking.map(|one| {
            let (from, to) = self.ends(one);
            let alone = tasks.sharing(one).len() == 1;
            Asker { from, to, alone }
        });
        let asking = Asking::new(mesh, asking.collect());
        let network: Vec<u64> = channels
            .clone()
            .map(|one| match self.ports[one].hops {
                0 => 0,
                _ => {
                    let own_core = &of_core[&self.ends(one).0];
                    self.network(one, (&loads, &all, own_core), &asking)
                }
            })
            .collect();
        let mut waits = Waits {
            network,
            ..Waits::default()
        };
        for one in channels.clone() {
            let port = tasks.port_of(one);
            let (from, to) = self.ends(one);
            let reader = tasks.channels[port].to;
            let sharing = tasks.sharing(port);
            let is_remote = |channel: &usize| self.ports[*channel].hops > 0;
            // Tasks of one core never disturb each other, and those of a section wait for each other.
            let is_section = self.is_section(one);
            let is_alone = !sharing.iter().any(is_remote);
            let visited = |task: usize, alone: u64| {
                let alone = alone + self.interrupt(task);
                self.visited(port, alone, &all, &loads)
            };
            // With the lock: from the memory's answer until the lock is given back there.
            let holds = |channel: usize| {
                let (port, task) = (&self.ports[channel], tasks.channels[channel].from);
                let once = match port.hops {
                    0 => port.write + visited(task, port.write),
                    hops => port.write + waits.network[channel] + mesh.round(hops),
                };
                self.turns[task] * once + self.interrupt(task)
            };
            let read_alone = self.ports[port].read;
            let longer = visited(reader, read_alone);
            let reads = reads(&tasks.channels[port], self.turns);
            let by_reader = reads * (read_alone + longer) + self.interrupt(reader);
            let others = sharing.iter().copied();
            let by_writers = |own: u16| -> u64 {
                let others = others.clone().filter(|&other| self.ends(other).0 != own);
                others.map(holds).sum()
            };
            let hops = self.ports[one].hops;
            let locked = match hops {
                _ if is_alone || is_section => 0,
                0 => by_writers(from),
                _ => by_reader + by_writers(from),
            };
            let write = match hops {
                _ if is_alone => 0,
                0 => locked + visited(tasks.channels[one].from, self.ports[one].write),
                hops => locked + waits.network[one] + mesh.round(hops),
            };
            let read = match hops {
                _ if is_alone || tasks.channels[one].joins.is_some() => 0,
                hops if is_section => {
                    waits.network[one] + self.interrupt(tasks.channels[one].from) + mesh.round(hops)
                }
                _ => by_writers(to) + longer,
            };
            let asks = locked / mesh.shortest_round(hops) + 1;
            waits.write.push(write);
            waits.read.push(read);
            waits.requests.push(match hops {
                0 => 0,
                _ => loads[one].requests + writes(tasks, one, self.turns) * asks,
            });
            let (by_reader, by_writers) = match is_alone || is_section {
                true => (0, 0),
                false => (locked, by_writers(to)),
            };
            let at = (one, hops);
            let fails = fails((self.system, mesh), at, by_reader, by_writers);
            waits.fails.push(fails);
        }
        if waits.unbounded.is_none() {
            waits.unbounded = channels
                .flat_map(|one| {
                    let (port, channel) = (&self.ports[one], &tasks.channels[one]);
                    [
                        (one, channel.from, port.write + waits.write[one]),
                        (one, channel.to, port.read + waits.read[one]),
                    ]
                })
                // Whatever is on these cores, and whoever shares a port with them, has no bound anyway.
                .filter(|one| self.lost[one.1].is_none())
                .find_map(|(one, task, length)| self.is_long(one, task, length));
        }
        waits
    }

    /// Why an operation may touch more jobs of others than are counted.
    fn is_long(&self, channel: usize, task: usize, length: u64) -> Option<String> {
        let length = length + self.interrupt(task);
        let tasks = &self.system.tasks;
        (length > self.tick).then(|| {
            format!(
                "an operation of `{}` on `{}` may take {length} cycles, longer than a tick of {TICK}, and bounds hold for shorter ones only",
                tasks.tasks[task].name, tasks.channels[channel].name
            )
        })
    }
}

/// For each task, the longest operation on a port that it writes or reads, by whomever, with all its waits, in cycles.
pub(super) fn longest(system: &OneShot, mesh: &Mesh<'_>, ports: &[Port]) -> Vec<u64> {
    let tasks = &system.tasks;
    let interrupt =
        |task: usize| Interrupts::of(system, mesh.platform, system.core(task)).operation();
    let mut of_port = vec![0; ports.len()];
    for (index, channel) in tasks.channels.iter().enumerate() {
        let port = &ports[index];
        let write = port.write + port.write_wait + interrupt(channel.from);
        let read = port.read + port.read_wait + interrupt(channel.to);
        let all = &mut of_port[tasks.port_of(index)];
        *all = write.max(read).max(*all);
    }
    let mut of_task = vec![0; tasks.tasks.len()];
    for (index, channel) in tasks.channels.iter().enumerate() {
        for task in [channel.from, channel.to] {
            of_task[task] = of_port[tasks.port_of(index)].max(of_task[task]);
        }
    }
    of_task
}

/// The load of a channel's writes on others that perform one operation meanwhile, with all questions of the writer while its reader has the lock.
pub(super) fn load(
    system: &OneShot,
    mesh: &Mesh<'_>,
    (index, port): (usize, &Port),
    turns: &[u64],
) -> Load {
    let channel = &system.tasks.channels[index];
    let held = match channel.parallel {
        Some(_) if system.master(mesh.platform).is_none() => 0,
        _ => {
            let interrupts = Interrupts::of(system, mesh.platform, system.core(channel.to));
            reads(channel, turns) * port.read + interrupts.operation()
        }
    };
    let asked = held / mesh.round(port.hops).max(1);
    mesh.load_asking(system, index, port, asked, turns)
}

/// How many operations of a task may fall within one of this many nanoseconds: those of its jobs that far apart, each of which ends within its response.
pub(crate) fn turns(length: u64, response: u64, (period, jitter): (u64, u64)) -> u64 {
    let window = length.saturating_add(response).saturating_add(jitter);
    window.div_ceil(period.max(1)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::one_shot::Bounds;
    use crate::plan::one_shot::bounds;
    use crate::plan::{Constraint, Judgement, Kind};

    /// A reader on core 5 that takes an item in each millisecond, and writers, each with its core, period and cost.
    fn of(writers: &[(u16, u64, u64)]) -> Bounds {
        sized(8, writers)
    }

    /// The same with items of this many bytes.
    fn sized(size: u64, writers: &[(u16, u64, u64)]) -> Bounds {
        let mut text = String::from(
            r#"<system name="s" paradigm="one-shot" platform="epiphany3">
            <task name="reader" program="p::R" core="5" priority="99" period="1ms" cost="9us"/>"#,
        );
        let mut channels = String::new();
        for (number, (core, period, cost)) in writers.iter().enumerate() {
            let of_queue = match number {
                0 => format!(r#"size="{size}B" kind="queue" slots="20""#),
                _ => r#"joins="c0""#.to_owned(),
            };
            text += &format!(
                r#"<task name="w{number}" program="p::W" core="{core}" priority="{}" period="{period}ms" cost="{cost}us"/>"#,
                number + 1
            );
            channels +=
                &format!(r#"<channel name="c{number}" from="w{number}" to="reader" {of_queue}/>"#);
        }
        let text = text + &channels + "</system>";
        let system = bulkhead_model::load_system_text("s", &text, &Default::default());
        let system = system.expect("valid");
        bounds(
            system.one_shot.as_ref().expect("it is one"),
            &system.platform,
        )
    }

    #[test]
    fn as_many_operations_count_as_fit_into_one() {
        // Jobs of 100 that end after 60 at the latest: two of them are 40 apart at least, three 140.
        let of = |length| turns(length, 60, (100, 0));
        assert_eq!([of(0), of(40), of(41), of(140), of(141)], [1, 1, 2, 2, 3]);
        assert_eq!(turns(40, 60, (100, 1)), 2);
    }

    /// Each writer waits for the operation of each other core, and the reader for all; tasks of one core never meet.
    #[test]
    fn an_operation_waits_for_those_of_all_other_cores() {
        let two = of(&[(4, 8, 9), (6, 8, 9)]);
        let three = of(&[(4, 8, 9), (6, 8, 9), (1, 8, 9)]);
        let neighbours = of(&[(4, 8, 9), (4, 8, 9)]);
        assert_eq!((&two.unbounded, &three.unbounded), (&None, &None));
        let own = |bounds: &Bounds| bounds.ports[0].write;
        let wait = |bounds: &Bounds| bounds.ports[0].write_wait;
        let interrupt = 350 + 40;
        assert!(wait(&three) >= wait(&two) + own(&two) + interrupt);
        assert!(wait(&neighbours) + own(&two) + interrupt <= wait(&two));
        assert!(three.ports[0].read_wait >= two.ports[0].read_wait + own(&two) + interrupt);
        // A writer beside the reader has no way, but waits, too.
        let beside = of(&[(5, 8, 9), (6, 8, 9)]);
        assert_eq!(beside.ports[0].hops, 0);
        assert!(beside.ports[0].write_wait >= own(&beside) + interrupt);
        assert!(beside.ports[1].write_wait >= own(&beside) + interrupt);
    }

    /// Two jobs of a writer may fall within an operation of another one only if the first may end as late as the second one begins: here, because a neighbour may keep it
    /// waiting for nearly a period.
    #[test]
    fn a_late_writer_counts_twice() {
        let beside = |neighbour: u64| of(&[(4, 8, 9), (6, 8, 9), (6, 80, neighbour)]);
        let (early, late) = (beside(9), beside(7990));
        assert_eq!((&early.unbounded, &late.unbounded), (&None, &None));
        let more = late.ports[0].write_wait - early.ports[0].write_wait;
        assert!(more >= early.ports[1].write, "{more}");
    }

    /// Then nothing says when an item arrives. All else of the chip keeps its bounds.
    #[test]
    fn where_nothing_bounds_the_lock_it_is_said() {
        let many: Vec<_> = [0, 1, 2, 4, 6].map(|core| (core, 16, 9)).into();
        assert_eq!(of(&many).fails[0], None);
        let bounds = sized(64, &many);
        let why = bounds.fails[0].clone().expect("a reason");
        assert!(why.contains("the lock of the queue c0"), "{why}");
        let each = bounds.fails.iter().flatten();
        for why in each {
            assert!(bounds.beside().contains(why), "{}", bounds.beside());
        }
        assert_eq!(
            (bounds.fails_on(&[0]), &bounds.unbounded),
            (Some(&why), &None)
        );
        let plan = crate::plan::plan(&bounds.tasks).expect("it can be judged");
        let of = |kind| plan.constraints.iter().filter(move |one| one.kind == kind);
        assert!(of(Kind::Response).all(|one| one.bound.is_some()));
        for one in of(Kind::Queue) {
            assert_eq!((one.bound, one.judgement), (None, Judgement::NotJudged));
            assert_eq!(one.note.as_ref(), Some(&why));
        }
        assert_eq!(of(Kind::Channel).count(), 0, "nothing is required of them");
    }

    #[test]
    fn where_nothing_bounds_a_response_it_is_said() {
        let bounds = of(&[(4, 8, 9), (6, 8, 9000)]);
        let why = bounds.unbounded.clone().expect("a reason");
        assert!(
            why.contains("`w1` shares a queue of several writers"),
            "{why}"
        );
        assert_eq!(bounds.beside(), format!("no bound holds: {why}"));
        // The one without time fails, and nobody knows more of the others.
        let plan = crate::plan::plan(&bounds.tasks).expect("it can be judged");
        let responses = plan
            .constraints
            .iter()
            .filter(|one| one.kind == Kind::Response);
        for one in responses {
            let late = one.subject == "w1";
            let expected = if late {
                Judgement::Failed
            } else {
                Judgement::NotJudged
            };
            assert_eq!(
                (one.bound, one.judgement),
                (None, expected),
                "{}",
                one.subject
            );
            assert_eq!(one.note.as_ref(), Some(&why).filter(|_| !late));
        }
        // Its items never come; that the others' do is not known.
        let queue = plan.constraints.iter().find(|one| one.kind == Kind::Queue);
        assert!(queue.is_some_and(Constraint::fails));
        // Kernels watch jobs without bounds, too: a budget has 32 bits.
        assert!(
            bounds.jobs.iter().all(|one| *one < 1 << 32),
            "{:?}",
            bounds.jobs
        );
    }
}
