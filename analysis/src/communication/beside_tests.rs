//! A model of the links, the memory and everything beside a program, tick by tick: whatever others do, no program takes longer than the bound,
//! and without any part of it some do.

use super::super::cluster::ClusterJob;
use super::super::turns::{Order, PARTS, Rivals, Times, UnderWay};
use super::*;
use bulkhead_random::Random;
use std::collections::VecDeque;

/// From one link to the next, and from memory to a link.
const HOP: Ticks = 2;
const SLOT: Ticks = 50;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Read,
    Write,
    Register,
}

/// A packet of a requester: 0 is the program, then the other harts, then the devices.
#[derive(Clone, Copy, Debug)]
struct Packet {
    who: usize,
    what: What,
    length: Ticks,
    /// Slots that are left of it.
    slots: u64,
    /// The program waits for it.
    waits: bool,
}

/// A link that takes its inputs in turn.
struct Link {
    inputs: Vec<VecDeque<(Ticks, Packet)>>,
    free: Ticks,
    next: usize,
}

impl Link {
    fn new(inputs: usize) -> Self {
        Self {
            inputs: vec![VecDeque::new(); inputs],
            free: 0,
            next: 0,
        }
    }

    /// The packet that begins now.
    fn take(&mut self, now: Ticks) -> Option<Packet> {
        if self.free > now {
            return None;
        }
        let count = self.inputs.len();
        let mut order = (0..count).map(|one| (self.next + one) % count);
        let input = order.find(|one| self.inputs[*one].front().is_some_and(|it| it.0 <= now))?;
        let (_, packet) = self.inputs[input].pop_front()?;
        self.next = (input + 1) % count;
        self.free = now + packet.length;
        Some(packet)
    }
}

/// How eagerly somebody acts: never, whenever possible, or with pauses up to this many ticks.
#[derive(Clone, Copy, Debug)]
enum Zeal {
    Never,
    Always,
    Pauses(u64),
}

impl Zeal {
    fn random(random: &mut Random) -> Self {
        match random.below(4) {
            0 => Self::Never,
            1 => Self::Pauses(1 + random.below(400)),
            _ => Self::Always,
        }
    }

    /// The next moment, after something was done.
    fn after(self, now: Ticks, random: &mut Random) -> Ticks {
        match self {
            Self::Never => Ticks::MAX,
            Self::Always => now,
            Self::Pauses(most) => now + random.below(most),
        }
    }
}

/// Somebody beside the program: what is under way, and what it does.
struct Rival {
    reads: (Zeal, Ticks, u64),
    writes: (Zeal, Ticks, u64),
    registers: (Zeal, Ticks, u64),
    /// Bytes that it may write, times the ticks of a second, if it is a device with a rate.
    level: u128,
    /// Slots of its longest packet.
    slots: u64,
}

impl Rival {
    fn random(random: &mut Random) -> Self {
        let mut one = || {
            let zeal = Zeal::random(random);
            let begin = match zeal {
                Zeal::Never => Ticks::MAX,
                _ => random.below(300),
            };
            (zeal, begin, 0)
        };
        Self {
            reads: one(),
            writes: one(),
            registers: one(),
            level: 0,
            slots: 1,
        }
    }
}

/// What the program does: reads in sequence, each after a pause, and with a write for which it does not wait.
#[derive(Clone, Debug)]
struct Program {
    pauses: Vec<Ticks>,
    writes: bool,
}

struct Model<'a> {
    rivals: &'a Rivals,
    random: &'a mut Random,
    now: Ticks,
    to_router: Link,
    to_memory: Link,
    to_cluster: Link,
    memory: Vec<(Ticks, Packet)>,
    slot: Ticks,
    served: Vec<usize>,
    others: Vec<Rival>,
    /// Accesses of devices that end then.
    ends: Vec<(Ticks, usize, What)>,
}

impl Model<'_> {
    fn is_device(&self, who: usize) -> bool {
        who > self.rivals.others.len()
    }

    /// The longest packet and the pace of a device.
    fn accesses(&self, who: usize) -> Accesses {
        let part = self.rivals.beside[who - 1 - self.rivals.others.len()];
        part.accesses.unwrap_or(NOTHING)
    }

    fn send(&mut self, packet: Packet) {
        let at = self.now;
        match self.is_device(packet.who) {
            true => {
                let input = packet.who - self.rivals.others.len();
                self.to_memory.inputs[input].push_back((at, packet));
            }
            false => self.to_router.inputs[0].push_back((at, packet)),
        }
    }

    /// Everybody beside the program does what it may.
    fn act(&mut self) {
        let now = self.now;
        let [read, write] = self.rivals.times.packets;
        for who in 1..=self.others.len() {
            let (device, harts) = (self.is_device(who), self.rivals.others.len());
            loop {
                let one = &self.others[who - 1];
                let (what, length, slots) = match device {
                    false => {
                        let own = self.rivals.others[who - 1];
                        let reads = one.reads.1 <= now && one.reads.2 < own.registers;
                        let most = 2 * own.registers + own.data;
                        let writes = one.writes.1 <= now && one.writes.2 < most;
                        let reaching = self.rivals.reaching / harts as u64;
                        let registers = one.registers.1 <= now && one.registers.2 < reaching;
                        if registers {
                            (What::Register, self.rivals.times.register, 0)
                        } else if writes {
                            (What::Write, write, 1)
                        } else if reads {
                            (What::Read, read, 1)
                        } else {
                            break;
                        }
                    }
                    true => {
                        let accesses = self.accesses(who);
                        if one.reads.2 + one.writes.2 >= accesses.under_way {
                            break;
                        }
                        let pays = accesses.pace.is_none_or(|pace| {
                            one.level >= u128::from(pace.line + 1) * u128::from(pace.second)
                        });
                        if one.writes.1 <= now && pays {
                            (What::Write, accesses.longest, one.slots)
                        } else if one.reads.1 <= now {
                            (What::Read, read, 1)
                        } else {
                            break;
                        }
                    }
                };
                if device
                    && what == What::Write
                    && let Some(pace) = self.accesses(who).pace
                {
                    self.others[who - 1].level -=
                        u128::from(pace.line + 1) * u128::from(pace.second);
                }
                let one = &mut self.others[who - 1];
                let entry = match what {
                    What::Read => &mut one.reads,
                    What::Write => &mut one.writes,
                    What::Register => &mut one.registers,
                };
                entry.1 = entry.0.after(now, self.random);
                entry.2 += 1;
                self.send(Packet {
                    who,
                    what,
                    length,
                    slots,
                    waits: false,
                });
            }
            if device {
                let accesses = self.accesses(who);
                if let Some(pace) = accesses.pace {
                    let one = &mut self.others[who - 1];
                    let full = u128::from(pace.bucket) * u128::from(pace.second);
                    one.level = (one.level + u128::from(pace.rate)).min(full);
                }
                // Interrupts and answers, as many as the link takes.
                let one = &mut self.others[who - 1];
                let (input, back) = (who - harts, self.rivals.beside[who - 1 - harts].back);
                if one.registers.1 <= now && self.to_cluster.inputs[input].is_empty() {
                    one.registers.1 = one.registers.0.after(now, self.random);
                    let packet = Packet {
                        who,
                        what: What::Register,
                        length: back,
                        slots: 0,
                        waits: false,
                    };
                    self.to_cluster.inputs[input].push_back((now, packet));
                }
            }
        }
    }

    fn ended(&mut self, who: usize, what: What) {
        let Some(one) = who.checked_sub(1).and_then(|one| self.others.get_mut(one)) else {
            return;
        };
        match what {
            What::Read => one.reads.2 -= 1,
            What::Write => one.writes.2 -= 1,
            What::Register => one.registers.2 -= 1,
        }
    }

    /// One tick, in which the program sends a read, and a write with it if so. Returns the end of the answer for which it waits.
    fn tick(&mut self, sends: Option<bool>) -> Option<Ticks> {
        let now = self.now;
        let over = self.ends.iter().filter(|one| one.0 <= now).copied();
        for (_, who, what) in over.collect::<Vec<_>>() {
            self.ended(who, what);
        }
        self.ends.retain(|one| one.0 > now);
        // The others are ahead of what comes at the same time.
        self.act();
        for what in [What::Write, What::Read] {
            if sends.is_none() || sends == Some(false) && what == What::Write {
                continue;
            }
            self.send(Packet {
                who: 0,
                what,
                length: self.rivals.times.packets[usize::from(what == What::Write)],
                slots: 1,
                waits: what == What::Read,
            });
        }
        if let Some(packet) = self.to_router.take(now) {
            match packet.what {
                What::Register => self
                    .ends
                    .push((now + 2 * HOP + 10, packet.who, packet.what)),
                _ => self.to_memory.inputs[0].push_back((now + HOP, packet)),
            }
        }
        if let Some(packet) = self.to_memory.take(now) {
            self.memory.push((now + packet.length, packet));
        }
        if self.slot <= now {
            let ready = self
                .memory
                .iter()
                .enumerate()
                .filter(|(_, one)| one.0 <= now);
            let turn = |who: usize| self.served.iter().position(|one| *one == who);
            let chosen = ready.min_by_key(|(index, one)| (turn(one.1.who), *index));
            if let Some((index, &(_, packet))) = chosen {
                self.slot = now + SLOT;
                self.served.retain(|one| *one != packet.who);
                self.served.push(packet.who);
                match packet.slots {
                    0 | 1 => self.answer(index, packet),
                    _ => self.memory[index].1.slots -= 1,
                }
            }
        }
        let done = self.to_cluster.take(now)?;
        match done.what {
            What::Register => None,
            what => {
                self.ended(done.who, what);
                done.waits.then_some(now + done.length)
            }
        }
    }

    fn answer(&mut self, index: usize, packet: Packet) {
        self.memory.remove(index);
        let at = self.now + SLOT;
        if self.is_device(packet.who) {
            return self.ends.push((at + HOP, packet.who, packet.what));
        }
        let length = match packet.what {
            What::Read => ANSWER,
            _ => 1,
        };
        let answer = Packet { length, ..packet };
        self.to_cluster.inputs[0].push_back((at + HOP, answer));
    }
}

/// Ticks of a line on the link from memory.
const ANSWER: Ticks = 12;

/// How long the program takes beside these others, which begin `ahead` ticks before it.
fn time(
    rivals: &Rivals,
    program: &Program,
    others: Vec<Rival>,
    (ahead, random): (Ticks, &mut Random),
) -> Ticks {
    let inputs = 1 + rivals.beside.len();
    let mut model = Model {
        rivals,
        random,
        now: 0,
        to_router: Link::new(1),
        to_memory: Link::new(inputs),
        to_cluster: Link::new(inputs),
        memory: Vec::new(),
        slot: 0,
        served: Vec::new(),
        others,
        ends: Vec::new(),
    };
    let mut begin = ahead;
    for pause in &program.pauses {
        let at = begin + pause;
        begin = loop {
            let sends = (model.now == at).then_some(program.writes);
            let done = model.tick(sends);
            model.now += 1;
            if let Some(end) = done {
                break end;
            }
        };
        while model.now < begin {
            model.tick(None);
            model.now += 1;
        }
    }
    begin - ahead
}

/// A cluster with random others: harts, devices with a rate, and engines without one.
fn random_rivals(random: &mut Random) -> Rivals {
    let way = UnderWay {
        data: random.below(3),
        all: 4,
        registers: 1 + random.below(2),
        recall: 0,
    };
    let count = random.below(3) as usize;
    let mut left = SLOT - ANSWER;
    let mut parts = Vec::new();
    for _ in 0..random.below(3) {
        let back = 1 + random.below(left);
        left = (left - back).max(1);
        let paced = random.below(2) == 0;
        let longest = match paced {
            true => 1 + random.below(300),
            false => 1 + random.below(20),
        };
        // No more than the link can take: a sixth of the time.
        let pace = Pace {
            bucket: 100 * (1 + random.below(20)),
            rate: 100,
            second: 6 * longest,
            line: 99,
        };
        parts.push(Part {
            accesses: (random.below(6) > 0).then_some(Accesses {
                under_way: 1 + random.below(4),
                longest,
                answered: 10,
                pace: paced.then_some(pace),
            }),
            back,
        });
    }
    // Both fit between two answers.
    if parts.iter().map(|one| one.back).sum::<Ticks>() > SLOT - ANSWER {
        parts.pop();
    }
    Rivals {
        own: way,
        others: vec![way; count],
        shared: None,
        order: Order::Turns,
        reaching: match parts.is_empty() {
            true => 0,
            false => count as u64 * random.below(5),
        },
        beside: parts,
        ways: 16,
        times: Times {
            bank: 0,
            slot: SLOT,
            bursts: 1,
            packets: [[1, 4], [1, 1], [3, 15]][random.below(3) as usize],
            register: 1 + random.below(12),
            excess: [0; 3],
            read: 0,
            write: 0,
            hold: 0,
            refresh: None,
        },
    }
}

/// Whatever others do, no program takes longer than the bound; without turns, packets of devices, accesses to registers or packets to the
/// cluster, some do.
#[test]
fn no_device_exceeds_the_bound_and_its_parts_are_needed() {
    let random = &mut Random::new(3);
    let (mut exceeded, mut nearest) = ([false; PARTS.len()], f64::MAX);
    let mut judged = 0;
    for _ in 0..TRIALS {
        let rivals = random_rivals(random);
        let reads = 1 + random.below(8);
        let longest = [1, 60, 200][random.below(3) as usize];
        let program = Program {
            pauses: (0..reads).map(|_| random.below(longest)).collect(),
            writes: random.below(3) == 0,
        };
        let count = rivals.others.len() + rivals.beside.len();
        let never = || Rival {
            reads: (Zeal::Never, Ticks::MAX, 0),
            writes: (Zeal::Never, Ticks::MAX, 0),
            registers: (Zeal::Never, Ticks::MAX, 0),
            level: 0,
            slots: 1,
        };
        let nobody = (0..count).map(|_| never()).collect();
        let alone = time(&rivals, &program, nobody, (0, &mut *random));
        let mut others: Vec<Rival> = (0..count).map(|_| Rival::random(random)).collect();
        for (one, part) in others[rivals.others.len()..].iter_mut().zip(&rivals.beside) {
            one.slots = 1 + random.below(3);
            let pace = part.accesses.and_then(|accesses| accesses.pace);
            let bucket = pace.map_or(0, |pace| u128::from(pace.bucket) * u128::from(pace.second));
            one.level = bucket;
        }
        let ahead = random.below(400);
        let worst = time(&rivals, &program, others, (ahead, &mut *random));
        let job = ClusterJob {
            time: alone,
            reads,
            writes: if program.writes { reads } else { 0 },
            // Its accesses have one order in this model.
            ordered: judged % 2 == 0,
            reads_ordered: true,
            ..ClusterJob::default()
        };
        let Ok(bound) = rivals.job(&job) else {
            continue;
        };
        let bound = bound.path;
        judged += 1;
        assert!(
            worst <= bound,
            "{worst} above {bound}, alone {alone}: {program:?} {rivals:?}"
        );
        nearest = nearest.min(bound as f64 / worst as f64);
        for (part, exceeded) in exceeded.iter_mut().enumerate() {
            let without = rivals.without(&job, Some(part)).expect("finite").path;
            *exceeded |= worst > without;
        }
    }
    println!("judged {judged}, nearest {nearest:.2}, exceeded without: {exceeded:?}");
    for part in [2, 9, 10, 11] {
        assert!(exceeded[part], "{} are not needed", PARTS[part]);
    }
    assert!(judged > TRIALS / 2 && nearest < 1.5, "{judged} {nearest}");
}

/// A tile whose memories others access.
const NOTHING: Accesses = Accesses {
    under_way: 0,
    longest: 0,
    answered: 0,
    pace: None,
};

/// Random systems.
const TRIALS: u32 = 4000;

/// By hand: a bucket of 1000 bytes and 100 a tick admit 20 packets that are longer than a line of 99 bytes in ten ticks, and four were under way.
#[test]
fn a_pace_bounds_long_packets() {
    let accesses = Accesses {
        under_way: 4,
        longest: 30,
        answered: 30,
        pace: Some(Pace {
            bucket: 1000,
            rate: 1000,
            second: 10,
            line: 99,
        }),
    };
    assert_eq!(accesses.long(10), Some(4 + 20));
    let unlimited = Accesses {
        pace: None,
        ..accesses
    };
    assert_eq!(unlimited.long(10), None);
}
