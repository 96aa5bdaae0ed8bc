//! What a program on a hart of a coherent cluster waits for because of programs on the other harts.
//!
//! Why it exists: harts of a cluster meet at the banks of the second level, at its miss registers, and behind it on links and in memory. The
//! steps of their requests, and how many each hart can have under way, follow from the platform alone; the waits are those of
//! [`super::interference`], as for tiles. What it deliberately does not know: programs, and how an alone run was made.
//!
//! # For which programs it holds
//! For a program on one hart that has ways of its own in the second level, and memory of its own. Nobody else fills these ways, so nobody
//! evicts its lines; nobody else asks for them, so nobody probes them: its first level has every line exclusively, and a request waits in the
//! directory only for transactions of its own hart, and for a miss register. Everything else about its requests is as it was alone, except
//! - **banks**: a request occupies its bank for a while, in the order of arrival. The others ahead are at most what the first levels of the other
//!   harts can have under way: the miss registers of the data cache (loads, stores, walks, cache management), and two fetches, because an
//!   instruction lies in at most two lines. They may all be at the bank of the request, so one resource represents all banks.
//! - **miss registers**: all harts share them. A request takes a free register if it is the oldest that can use one, so before it at most all
//!   others that are under way take one. If `n` requests must give up theirs before it gets one and there are `r` registers, all of which are
//!   taken as long as it waits, it waits at most `ceil(n / r)` times as long as one can be held: until memory has answered,
//!   beside everything else, and until the first levels have given up the line that is replaced.
//! - **links and memory**: others have at most as many reads as there are other registers. Beside these, there are write-backs, which hold
//!   no register.
//!
//! # How many write-backs are under way
//! This holds where a memory serves in order of arrival (and so do the links before it, which have one input from a tile's caches). Let `W` be
//! the oldest write-back that is not served and whose fill is over. When `W` left the second level, its fill still held a register. A fill
//! that began later has its read behind `W`, so it is not over. So all write-backs whose fills are over belong to fills that held a register
//! at that moment: at most `r`. The others belong to fills that hold one now: at most `r`. Besides, each operation of cache management writes at
//! most one line, and is under way until that is done. A controller that lets reads pass writes has no such bound, so
//! programs that access such a memory are not judged ([`ClusterError::Reorders`]).
//!
//! # What else a request may take longer
//! Its own service may differ from what it was alone: by the edges of the clocks that it crosses, by its row in memory, and, if a line of its
//! own first level must go, by that level's reservation. As for measured work in general ([`super`]), each request counts with the most
//! that its service can exceed the least, and the hart's own requests with their service once.

use super::beside::{self, Beside};
use super::bound::{Bound, Stage, Work, flow_bound, transaction_bound};
use super::chip::{Chip, ChipError};
use super::memory::MemoryTiming;
use super::scenario::{
    Arbitration, CommunicationError, NetworkScenario, Pool, Resource, Source, Step, Ticks,
    TransactionClass, TransactionId,
};
use super::shares::{Share, Shares};
use super::turns::{Order, Rivals, Times, UnderWay};
use bulkhead_model::platform::{
    Cache, Cluster, Memory, MissRegisters, Network, Pipeline, Platform, Tile, Topology,
};
use thiserror::Error;

/// Maximum fetches that a hart has under way at once: an instruction lies in at most two lines.
const FETCHES: u32 = 2;

/// The largest weight of a share (`Mweight`).
const MOST_WEIGHT: u64 = 255;

/// Classes of each hart.
const REQUEST: usize = 0;
const READ: usize = 1;
const WRITE: usize = 2;

/// Why there is no bound.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ClusterError {
    /// The tile or the memory does not exist.
    #[error(transparent)]
    Chip(#[from] ChipError),
    /// The bound is not finite.
    #[error(transparent)]
    Communication(#[from] CommunicationError),
    /// The tile has no harts that share a second level.
    #[error("tile {0} has no cluster")]
    NoCluster(u16),
    /// The hart does not exist.
    #[error("the cluster of tile {tile} has no hart {hart}")]
    NoHart {
        /// The tile.
        tile: u16,
        /// The position.
        hart: u16,
    },
    /// The memory does not serve reads and writes in the order of their arrival.
    #[error(
        "memory {0} serves reads before writes or open rows first, so nothing bounds how many write-backs of others are under way there; \
         with the policy `slots` or `fcfs` and without a write queue it would be judged"
    )]
    Reorders(u16),
    /// Something between the cluster and the memory does not keep the order of packets, or their distance.
    #[error(
        "{what}, so nothing bounds how many accesses of others are ahead; with {instead} it would be judged"
    )]
    Network {
        /// The cause.
        what: &'static str,
        /// What would work instead.
        instead: &'static str,
    },
    /// Packets may wait for room in routers.
    #[error(
        "routers have room for {room} packets of each link, so packets wait for room, which nothing counts; with room for {needed} none would \
         wait, and it would be judged"
    )]
    Room {
        /// The packets that have room.
        room: u32,
        /// How many would need it.
        needed: u64,
    },
    /// The hart may choose whose share it uses.
    #[error(
        "hart {hart} of tile {tile} has no ways of its own, so it may use the share of any RCID of memory {memory}; with ways of its own (`ways`) \
         it has one RCID, and would be judged"
    )]
    NoShare {
        /// The tile.
        tile: u16,
        /// The hart.
        hart: u16,
        /// The memory.
        memory: u16,
    },
    /// Others may have all slots.
    #[error(
        "the slots reserved for others, and what passes the links meanwhile, may take all the time; with fewer reserved slots, or with some for \
         this program, it would be judged"
    )]
    NoTimeLeft,
    /// Packets pile up at the links.
    #[error(
        "a line, or what a device or an engine moves at once, takes longer on the links than a slot of the memory, so packets of others pile up at \
         the links; with faster links or shorter bursts it would be judged"
    )]
    Links,
    /// A device, or something that is reached past the caches, is beside a memory that does not serve harts in turn.
    #[error(
        "{part} puts packets on its way to memory {memory}, which does not serve harts in turn, so nothing bounds how many are ahead; with the \
         policy `slots` and turns=\"hart\" it would be judged"
    )]
    NoTurns {
        /// The device or engine, in words.
        part: String,
        /// The memory.
        memory: u16,
    },
    /// A hart with another program that reaches registers works out of order.
    #[error(
        "hart {hart} of tile {tile} works out of order, so nothing bounds how many accesses to registers of devices and engines it has under \
         way; with a pipeline of the model `inorder` it would be judged"
    )]
    OutOfOrder {
        /// The tile.
        tile: u16,
        /// The hart.
        hart: u16,
    },
}

/// The work of a program in one job, alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClusterJob {
    /// Ticks.
    pub time: Ticks,
    /// Requests that left the first level.
    pub requests: u64,
    /// Maximum of those that went to memory.
    pub reads: u64,
    /// How many of these may have their slot in memory outside the job, such as those that were under way when it began or ended.
    pub outside: u64,
    /// Lines that went to memory because of it.
    pub writes: u64,
    /// Load-reserved instructions.
    pub reservations: u64,
    /// Requests of which each came to its bank after some request had been answered since the one before it.
    pub apart: u64,
    /// Whether its accesses to memory left the second level in the order of the run alone.
    pub ordered: bool,
    /// Whether its reads did so, wherever writes left among them.
    pub reads_ordered: bool,
    /// Whether its requests came to the banks of the second level in the order of the run alone.
    pub came_ordered: bool,
    /// Maximum operations of cache management.
    pub managed: u64,
}

/// A cluster, and the memory in which its programs are.
#[derive(Clone, Debug)]
pub struct ClusterBounds<'a> {
    platform: &'a Platform,
    chip: Chip<'a>,
    tile: &'a Tile,
    cluster: &'a Cluster,
    second: &'a Cache,
    memory: u16,
    network: &'a Network,
    target: &'a Memory,
}

impl<'a> ClusterBounds<'a> {
    /// The cluster of a tile.
    ///
    /// # Errors
    /// If there is none.
    pub fn new(platform: &'a Platform, tile: u16, memory: u16) -> Result<Self, ClusterError> {
        let chip = Chip::new(platform);
        let tile = chip.tile(tile)?;
        let (Some(cluster), Some(second)) = (&tile.cluster, &tile.l2) else {
            return Err(ClusterError::NoCluster(tile.id));
        };
        let target = platform.memory(memory).ok_or(ChipError::NoTile {
            kind: "memory",
            id: memory,
        })?;
        Ok(Self {
            platform,
            network: &platform.network,
            target,
            chip,
            tile,
            cluster,
            second,
            memory,
        })
    }

    /// Least ticks of a request that goes to memory, from the access of the hart to the arrival of the line. One that took less found its line
    /// in the second level.
    ///
    /// # Errors
    /// If there is no such memory.
    pub fn least_from_memory(&self) -> Result<Ticks, ClusterError> {
        let read = self.chip.line_read(self.tile.id, self.memory)?;
        Ok(self.hit() + read.least_round_trip)
    }

    /// Accesses that a hart can have under way when a job begins. Alone they may be over by then, and beside others they may not, so they count
    /// for the job: loads and stores that missed, and fetches.
    ///
    /// # Errors
    /// If there is no such hart.
    pub fn left_over(&self, hart: u16) -> Result<u64, ClusterError> {
        let (pipeline, _) = self.core(hart)?;
        Ok(u64::from(pipeline.load_buffer) + u64::from(pipeline.store_buffer) + u64::from(FETCHES))
    }

    /// The longest time of a job of the program on `hart`, beside other programs with their devices. `job` is what it did alone.
    ///
    /// # Errors
    /// [`ClusterError`].
    pub fn job(&self, hart: u16, beside: &Beside, job: &ClusterJob) -> Result<Bound, ClusterError> {
        let from_memory = job.reads + job.writes > 0;
        if from_memory && self.network.split_channels {
            return Err(ClusterError::Network {
                what: "reads and writes travel on networks of their own",
                instead: "channels=\"shared\"",
            });
        }
        if from_memory {
            self.has_room(beside)?;
        }
        if let Some((slot, apart)) = self.timing().slots_of_harts() {
            return self.rivals(hart, beside, (slot, apart))?.job(job);
        }
        // A program that stays in the second level meets no device.
        if let Some(part) = beside.part(self.platform).filter(|_| from_memory) {
            let memory = self.memory;
            return Err(ClusterError::NoTurns { part, memory });
        }
        if from_memory && !self.is_in_order() {
            return Err(ClusterError::Reorders(self.memory));
        }
        let all: Vec<u16> = std::iter::once(hart)
            .chain(beside.harts.iter().copied())
            .collect();
        let mut scenario = self.scenario(&all, from_memory, job.writes > 0)?;
        if from_memory && self.cluster.miss_registers == MissRegisters::Shared {
            let wait = self.longest_without_register(&all, &scenario)?;
            self.add_registers(&mut scenario, wait);
        }
        let class = |class| TransactionId { source: 0, class };
        let mut transactions = vec![(class(REQUEST), job.requests)];
        if from_memory {
            transactions.extend([(class(READ), job.reads), (class(WRITE), job.writes)]);
        }
        let stage = Stage {
            name: format!("hart {hart}"),
            compute: job.time,
            transactions,
            measured: true,
        };
        let work = Work {
            stages: vec![stage],
            covers_sources: true,
        };
        Ok(flow_bound(&scenario, &work)?.bound)
    }

    /// Refuses routers in which packets may wait for room. Without devices, the cluster's packets to its memory are the only ones on their links, and
    /// the answers on theirs. A packet keeps its place while its head passes a link and a router and its tail leaves; its credit passes a link back. So a
    /// packet finds room if those that may have followed in this time do: as many as the shortest ones of a way there and back, and one.
    fn has_room(&self, beside: &Beside) -> Result<(), ClusterError> {
        let Some(room) = self.network.credits else {
            return Ok(());
        };
        if beside.part(self.platform).is_some() {
            return Err(ClusterError::Network {
                what: "routers have limited buffers, and packets of devices and engines fill them, too",
                instead: "credits=\"unlimited\"",
            });
        }
        let [link, router] = [self.network.link, self.network.router].map(u64::from);
        let there_and_back = (2 * link + router) * self.chip.cycle(self.network.clock.frequency.0);
        let needed = 1 + there_and_back.div_ceil(self.chip.wire(0));
        match u64::from(room) >= needed {
            true => Ok(()),
            false => Err(ClusterError::Room { room, needed }),
        }
    }

    fn timing(&self) -> MemoryTiming<'a> {
        let dram = &self.target.dram;
        MemoryTiming::new(dram, self.chip.cycle(dram.clock.frequency.0))
    }

    /// What [`super::turns`] counts, for slots of this length and answers so far apart.
    pub(super) fn rivals(
        &self,
        hart: u16,
        beside: &Beside,
        (slot, apart): (Ticks, Ticks),
    ) -> Result<Rivals, ClusterError> {
        let others = &beside.harts;
        let refuse = |what, instead| Err(ClusterError::Network { what, instead });
        let parts = beside::parts(self.platform, &self.chip, beside, self.second.line.into())?;
        if !parts.is_empty() && self.network.topology != Topology::Crossbar {
            return refuse(
                "packets of devices and engines meet at several routers",
                "topology=\"crossbar\"",
            );
        }
        self.has_room(beside)?;
        if self.target.dram.channels() > 1 {
            return refuse(
                "memory has several channels, whose answers come at the same time",
                "channels=\"1\"",
            );
        }
        let (tile, memory) = (self.tile.id, self.memory);
        let read = self.chip.line_read(tile, memory)?;
        let write = self.chip.line_write(tile, memory)?;
        let packet = |step: Option<&Step>| step.map_or(0, |step| step.occupancy);
        let shared = |step: &&Step| step.resource.is_some();
        let asked = packet(read.steps.iter().find(shared));
        let written = packet(write.steps.iter().find(shared));
        let answered = packet(read.steps.iter().rev().find(shared));
        // Answers of memory never wait for each other, and one packet of each part fits between two of them.
        let back: Ticks = parts.iter().map(|part| part.back).sum();
        let answers = parts
            .iter()
            .filter_map(|part| Some(part.accesses?.answered));
        if answered + back > apart || answers.max().is_some_and(|longest| longest > apart) {
            return Err(ClusterError::Links);
        }
        let mut reaching = 0;
        for &hart in beside.reaching.iter().filter(|_| !parts.is_empty()) {
            reaching += beside::reaching(self.core(hart)?.0, self.tile.id, hart)?;
        }
        let excess = |class: &TransactionClass| {
            let more = class.uncontended() - u128::from(class.least_round_trip);
            Ticks::try_from(more).map_err(|_| CommunicationError::TooLarge)
        };
        let cycle = self.cycle(self.core(hart)?.0);
        let edges = self.cycle(&self.tile.pipeline) - 1 + cycle - 1;
        // A recall of a line of its own crosses two edges more.
        let excess = [edges, excess(&read)? + 2 * (cycle - 1), excess(&write)?];
        let line = u64::from(self.second.line);
        let fit = |ticks: u128| Ticks::try_from(ticks).map_err(|_| CommunicationError::TooLarge);
        let all = self.second.mshrs.max(1);
        let registers = u64::from(self.cluster.registers(all).max(1));
        let under_way = |hart: u16| -> Result<UnderWay, ClusterError> {
            let (data, all) = self.under_way(hart)?;
            Ok(UnderWay {
                data: data.into(),
                all: all.into(),
                registers: registers.min(all.into()),
                recall: self.recall(hart)?,
            })
        };
        let order = match self.timing().blocks() {
            None => Order::Turns,
            Some(blocks) => {
                let mut shares = self.shares(blocks, hart, others)?;
                if parts.iter().any(|part| part.accesses.is_some()) {
                    shares.all.push(self.share_of_devices()?);
                }
                Order::Shares(shares)
            }
        };
        Ok(Rivals {
            order,
            own: under_way(hart)?,
            ways: self.ways(hart),
            others: others
                .iter()
                .map(|hart| under_way(*hart))
                .collect::<Result<_, _>>()?,
            shared: (self.cluster.miss_registers == MissRegisters::Shared).then_some(all.into()),
            beside: parts,
            reaching,
            times: Times {
                bank: self.ticks(self.cluster.occupancy),
                slot,
                bursts: line.div_ceil(u64::from(self.target.dram.burst).max(1)),
                packets: [asked, written],
                register: self.chip.wire(beside::WORD),
                excess,
                read: fit(read.uncontended())?,
                write: fit(write.uncontended())?,
                hold: u64::from(self.cluster.hold) * cycle,
                refresh: self.timing().refresh(),
            },
        })
    }

    /// The shares of harts when the machine starts: a hart with ways of its own has an RCID of its own.
    fn shares(&self, blocks: u32, hart: u16, others: &[u16]) -> Result<Shares, ClusterError> {
        let share = |hart: &u16| -> Result<Share, ClusterError> {
            let mut all = self.cluster.partitions.iter();
            all.find(|one| one.hart == u32::from(*hart))
                .map(|one| Share {
                    reserved: one.share.reserved.into(),
                    weight: one.share.weight.into(),
                })
                .ok_or(ClusterError::NoShare {
                    tile: self.tile.id,
                    hart: *hart,
                    memory: self.memory,
                })
        };
        let all = std::iter::once(&hart).chain(others).map(share);
        Ok(Shares {
            blocks: blocks.into(),
            all: all.collect::<Result<_, _>>()?,
        })
    }

    /// The share of RCID 0 when the machine starts: everything that can be reserved and is not, and the largest weight.
    fn share_of_devices(&self) -> Result<Share, ClusterError> {
        let clusters = self.platform.tiles.iter();
        let clusters = clusters.filter_map(|tile| tile.cluster.as_ref());
        let partitions = clusters.flat_map(|cluster| &cluster.partitions);
        let given: u64 = partitions.map(|one| u64::from(one.share.reserved)).sum();
        let all = self.timing().reservable();
        let left = all.and_then(|all| all.checked_sub(given));
        Ok(Share {
            reserved: left.ok_or(ClusterError::NoTimeLeft)?,
            weight: MOST_WEIGHT,
        })
    }

    /// Whether the memory serves everything that comes from the tile in the order of arrival.
    fn is_in_order(&self) -> bool {
        let name = format!("memory {}", self.memory);
        let mut all = self.chip.resources().iter();
        all.find(|resource| resource.name == name)
            .is_some_and(|memory| {
                matches!(
                    memory.arbitration,
                    Arbitration::ArrivalOrder | Arbitration::RoundRobin
                )
            })
    }

    /// Ticks of this many cycles of the second level.
    fn ticks(&self, cycles: u32) -> Ticks {
        u64::from(cycles) * self.cycle(&self.tile.pipeline)
    }

    fn cycle(&self, pipeline: &Pipeline) -> Ticks {
        self.chip.cycle(pipeline.clock.frequency.0)
    }

    /// A request that finds its line in the second level and waits for nobody.
    fn hit(&self) -> Ticks {
        self.ticks(self.cluster.up + self.second.latency + self.cluster.down)
    }

    /// The number of ways that a hart fills.
    fn ways(&self, hart: u16) -> u64 {
        let all = u64::from(self.second.ways);
        match u64::from(self.cluster.fills(hart.into()).count_ones()) {
            0 => all,
            some => some.min(all),
        }
    }

    /// Pipeline and data cache of a hart.
    fn core(&self, hart: u16) -> Result<(&'a Pipeline, &'a Cache), ClusterError> {
        let missing = ClusterError::NoHart {
            tile: self.tile.id,
            hart,
        };
        if u32::from(hart) >= self.cluster.harts {
            return Err(missing);
        }
        match (self.cluster.core(hart.into()), &self.tile.l1d) {
            (Some(core), _) => Ok((&core.pipeline, &core.l1d)),
            (None, Some(l1d)) => Ok((&self.tile.pipeline, l1d)),
            (None, None) => Err(missing),
        }
    }

    /// Data requests that a hart can have under way, and all its requests.
    fn under_way(&self, hart: u16) -> Result<(u32, u32), ClusterError> {
        let data = self.core(hart)?.1.mshrs.max(1);
        Ok((data, data + FETCHES))
    }

    /// The banks and, with `from_memory`, links and memory. The bound is for the first of `harts`; with `writes`, also for its write-backs.
    fn scenario(
        &self,
        harts: &[u16],
        from_memory: bool,
        writes: bool,
    ) -> Result<NetworkScenario, ClusterError> {
        let mut resources = self.chip.resources().to_vec();
        let bank = resources.len();
        resources.push(Resource {
            name: format!("banks of the second level of tile {}", self.tile.id),
            arbitration: Arbitration::ArrivalOrder,
            outage: None,
            backlog: 0,
        });
        let registers = self.second.mshrs.max(1);
        let mut managed = 0u32;
        for &hart in harts {
            managed += self.under_way(hart)?.0;
        }
        let mut sources = Vec::new();
        for &hart in harts {
            let mut classes = vec![self.request(hart, bank)?];
            if from_memory {
                let mut read = self.chip.line_read(self.tile.id, self.memory)?;
                // A read that is bounded has one register itself; a write-back has none.
                let others = registers - u32::from(!writes);
                read.outstanding = others.max(1);
                read.pool = Some(Pool::Reads);
                read.steps.insert(0, Step::fixed(self.own_recall(hart)?));
                let mut write = self.chip.line_write(self.tile.id, self.memory)?;
                write.outstanding = 2 * registers + managed;
                write.pool = Some(Pool::WriteBacks);
                classes.extend([read, write]);
            }
            sources.push(Source {
                name: format!("hart {hart} of tile {}", self.tile.id),
                tile: self.tile.id,
                regulator: None,
                classes,
            });
        }
        Ok(NetworkScenario {
            ticks_per_second: self.chip.ticks_per_second(),
            resources,
            sources,
            tandems: self.chip.tandems().to_vec(),
        })
    }

    /// A request of a first level that finds its line.
    fn request(&self, hart: u16, bank: usize) -> Result<TransactionClass, ClusterError> {
        let (pipeline, _) = self.core(hart)?;
        let edges = (
            self.cycle(&self.tile.pipeline) - 1,
            self.cycle(pipeline) - 1,
        );
        let (lookup, down) = (
            self.ticks(self.second.latency),
            self.ticks(self.cluster.down),
        );
        let occupancy = self.ticks(self.cluster.occupancy);
        let at_bank = Step {
            resource: Some(bank),
            occupancy,
            tail: occupancy.saturating_sub(lookup + down),
            ..Step::fixed(lookup)
        };
        Ok(TransactionClass {
            name: "request of a first level".into(),
            charge: self.second.line.into(),
            charge_most: self.second.line.into(),
            outstanding: self.under_way(hart)?.1,
            least_round_trip: self.hit(),
            pool: None,
            demand: None,
            steps: vec![
                Step::fixed(self.ticks(self.cluster.up) + edges.0),
                at_bank,
                Step::fixed(down + edges.1),
            ],
        })
    }

    /// The longest time in which a first level gives up a line: it may have a reservation for it.
    fn recall(&self, hart: u16) -> Result<Ticks, ClusterError> {
        let cycle = self.cycle(self.core(hart)?.0);
        let legs = self.ticks(self.cluster.up + self.cluster.down);
        Ok(legs + 2 * (cycle - 1) + u64::from(self.cluster.hold) * cycle)
    }

    /// How much longer than alone a recall of one of the hart's own lines can make its request.
    fn own_recall(&self, hart: u16) -> Result<Ticks, ClusterError> {
        let legs = self.ticks(self.cluster.up + self.cluster.down);
        Ok(self.recall(hart)? - legs)
    }

    /// The longest wait for a miss register of the second level.
    fn longest_without_register(
        &self,
        harts: &[u16],
        scenario: &NetworkScenario,
    ) -> Result<Ticks, ClusterError> {
        let (mut others, mut held) = (0u64, 0);
        for (source, &hart) in harts.iter().enumerate() {
            others += u64::from(self.under_way(hart)?.1);
            let read = TransactionId {
                source,
                class: READ,
            };
            let answered = transaction_bound(scenario, read)?.path;
            held = held.max(answered).max(self.recall(hart)?);
        }
        // Without the request itself.
        others -= 1;
        let registers = u64::from(self.second.mshrs.max(1));
        let given_up = (others + 1).saturating_sub(registers);
        let rounds = given_up.div_ceil(registers);
        let wait = u128::from(rounds) * u128::from(held);
        Ticks::try_from(wait).map_err(|_| CommunicationError::TooLarge.into())
    }

    /// Adds the miss registers, as something that others have for up to `wait` before each read.
    fn add_registers(&self, scenario: &mut NetworkScenario, wait: Ticks) {
        let resource = Some(scenario.resources.len());
        scenario.resources.push(Resource {
            name: format!(
                "miss registers of the second level of tile {}",
                self.tile.id
            ),
            arbitration: Arbitration::ArrivalOrder,
            outage: None,
            backlog: 0,
        });
        let step = Step {
            resource,
            ..Step::fixed(0)
        };
        scenario.sources[0].classes[READ].steps.insert(0, step);
        let busy = Step {
            occupancy: wait,
            ..step
        };
        scenario.sources.push(Source {
            name: "requests of others with a miss register".into(),
            tile: self.tile.id,
            regulator: None,
            classes: vec![TransactionClass {
                name: "miss register".into(),
                charge: 0,
                charge_most: 0,
                outstanding: 1,
                least_round_trip: 0,
                pool: None,
                demand: None,
                steps: vec![busy],
            }],
        });
    }
}

#[cfg(test)]
#[path = "cluster_tests.rs"]
mod tests;
