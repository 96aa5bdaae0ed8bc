//! Converts the platform of a description to the machine's configuration.
//!
//! Why it exists: the machine must not know the description language. What it deliberately does not know: whether a value makes sense; the
//! model has checked that.

mod peripherals;

use crate::error::Error;
use bulkhead_machine::accelerator::{AcceleratorConfig, Operation};
use bulkhead_machine::cable::{CableConfig, Faults};
use bulkhead_machine::config::dram::{BandwidthConfig, InitialShare};
use bulkhead_machine::config::{
    CacheConfig, CapacityConfig, Channels, ClusterConfig, CoreConfig, DmaConfig, DoorbellsConfig,
    DramConfig, DtuConfig, EngineConfig, LocalMemoryConfig, MemoryConfig, NetworkConfig,
    PlatformConfig, PlatformKind, PrefetcherConfig, PrefetcherKind, Replacement, TileConfig,
    Topology, UnitPort,
};
use bulkhead_machine::device::network::NetworkCardConfig;
use bulkhead_machine::device::{Clock, ClockConfig};
use bulkhead_machine::dram::banks::Timing;
use bulkhead_machine::dram::controller::{ControllerConfig, Policy, Turns, WriteQueue};
use bulkhead_machine::dram::map::AddressMap;
use bulkhead_machine::hart::{HartConfig, IntervalConfig};
use bulkhead_model::System;
use bulkhead_model::platform::{self, Platform};
use bulkhead_model::system::{Cable, CableEnd};
use bulkhead_model::units::{Frequency, Time};

/// Seed of pseudo-random replacement. Any fixed number will do; it makes every run the same.
const SEED: u64 = 0x6275_6c6b_6865_6164;

/// The machine's configuration of a platform.
pub fn convert(platform: &Platform) -> PlatformConfig {
    let ticks = platform.ticks_per_second();
    let cycle = |clock: &platform::Clock| ticks / clock.frequency.0.max(1);
    PlatformConfig {
        name: platform.name.clone(),
        kind: match platform.kind {
            platform::PlatformKind::Tiled => PlatformKind::Tiled,
            platform::PlatformKind::Bare => PlatformKind::Bare,
            platform::PlatformKind::Mesh => PlatformKind::Mesh,
        },
        ticks_per_second: ticks,
        timebase_hz: platform.timebase.0,
        tiles: platform
            .tiles
            .iter()
            .map(|tile| {
                let core = cycle(&tile.pipeline.clock);
                TileConfig {
                    id: tile.id,
                    hart: hart(&tile.pipeline, line(tile), core),
                    l1i: tile.l1i.as_ref().map(|c| cache(c, core)),
                    l1d: tile.l1d.as_ref().map(|c| cache(c, core)),
                    l2: tile.l2.as_ref().map(|c| cache(c, core)),
                    cluster: tile.cluster.as_ref().map(|one| cluster(one, cycle)),
                    local_memory: tile
                        .local_memory
                        .as_ref()
                        .map(|memory| local_memory(memory, cycle(&memory.clock))),
                    tcm: tile
                        .tcm
                        .iter()
                        .map(|memory| local_memory(memory, cycle(&memory.clock)))
                        .collect(),
                    dma: tile.dma.as_ref().map(|part| dma(part, cycle(&part.clock))),
                    clock: clock_config(platform, tile),
                    dtu: tile.dtu.as_ref().map(|d| dtu(d, cycle(&d.clock))),
                    router: tile.router,
                    privileged: tile.privileged,
                    second_hart: tile.harts == 2,
                    accelerator: tile
                        .accelerator
                        .as_ref()
                        .map(|unit| accelerator(unit, cycle(&unit.clock), ticks)),
                    network_card: tile
                        .network_card
                        .as_ref()
                        .map(|card| network_card(card, 0, tile.id)),
                    exit: tile.exit,
                    uart: tile.uart,
                }
            })
            .collect(),
        memories: platform
            .memories
            .iter()
            .map(|memory| MemoryConfig {
                id: memory.id,
                dram: DramConfig {
                    shares: match bandwidth(platform, &memory.dram) {
                        Some(_) => shares(platform),
                        None => Vec::new(),
                    },
                    bandwidth: bandwidth(platform, &memory.dram),
                    controller: controller(&memory.dram, memory.size.0, cycle(&memory.dram.clock)),
                },
                size: memory.size.0,
                router: memory.router,
                second_port_of: memory.second_port_of.clone(),
                dropped: memory.dropped,
            })
            .collect(),
        network: network(&platform.network, cycle(&platform.network.clock)),
        cables: Vec::new(),
        seed: SEED,
        engines: platform
            .engines
            .iter()
            .map(|engine| EngineConfig {
                id: engine.id,
                router: engine.router,
                dma: dma(&engine.dma, cycle(&engine.dma.clock)),
                registers: engine.registers.into(),
                interrupts: engine.interrupts,
                coherent: engine.coherent,
            })
            .collect(),
        peripherals: platform
            .peripherals
            .iter()
            .map(|one| peripherals::peripheral(platform, one, ticks, cycle(&one.clock)))
            .collect(),
        doorbells: platform.doorbells.as_ref().map(|one| DoorbellsConfig {
            id: one.id,
            router: one.router,
            cycle: cycle(&one.clock),
            registers: one.registers.into(),
            users: None,
        }),
    }
}

/// The machine takes the chip of each run of a system. What it refuses depends on more than the description says, such as the length of
/// a slot, or the host's room for memories; everything else, the model has refused with its place.
///
/// # Errors
/// What the machine refuses.
pub fn accepted(system: &System) -> Result<(), Error> {
    for run in system.runs() {
        convert_system(run, None).check()?;
    }
    Ok(())
}

/// The machine's configuration of a system's chip, with its cables. With `first`, the chip is the peer of that system's chip.
pub fn convert_system(system: &System, first: Option<&System>) -> PlatformConfig {
    let mut config = convert(&system.platform);
    peripherals::give(system, &mut config);
    peripherals::give_doorbells(system, &mut config);
    let ticks = config.ticks_per_second;
    for (tile, of) in config.tiles.iter_mut().zip(&system.platform.tiles) {
        // The description of a one-shot system has no transfers, and its bounds count none. So the loader of the chip switches the engines
        // off: their registers do not answer, even on cores without tasks.
        if system.one_shot.is_some() {
            tile.dma = None;
        }
        let chip = u8::from(first.is_some());
        let card = of.network_card.as_ref();
        tile.network_card = card.map(|card| network_card(card, chip, of.id));
    }
    for one in &system.cables {
        let to = match one.to {
            CableEnd::Here(tile) => Some(tile),
            CableEnd::Peer(_) => None,
        };
        config.cables.push(cable(one, (one.from, to), 0, ticks));
    }
    // The other ends of the first chip's cables: each chip decides the fate of what it sends.
    for one in first.iter().flat_map(|first| &first.cables) {
        if let CableEnd::Peer(tile) = one.to {
            config.cables.push(cable(one, (tile, None), 1, ticks));
        }
    }
    config
}

/// How the clock of a tile differs from the timebase.
fn clock_config(platform: &Platform, tile: &platform::Tile) -> ClockConfig {
    ClockConfig {
        ahead: counts(tile.clock_offset, platform.timebase),
        drift: tile.clock_drift,
    }
}

/// The clock of a tile.
pub fn clock(platform: &Platform, tile: &platform::Tile) -> Clock {
    let config = clock_config(platform, tile);
    Clock::new(platform.ticks_per_second(), platform.timebase.0, config)
}

/// Whole counts of a timer in a time.
fn counts(time: Time, timebase: Frequency) -> u64 {
    let counts = u128::from(time.0) * u128::from(timebase.0) / 1_000_000_000_000;
    // Only an offset of centuries has more.
    u64::try_from(counts).unwrap_or(u64::MAX)
}

fn cable(cable: &Cable, (from, to): (u16, Option<u16>), number: u64, ticks: u64) -> CableConfig {
    let span = |time: Time| {
        let ticks = u128::from(time.0) * u128::from(ticks);
        u64::try_from(ticks.div_ceil(1_000_000_000_000)).unwrap_or(u64::MAX)
    };
    CableConfig {
        from,
        to,
        delay: span(cable.delay),
        faults: Faults {
            loss: cable.loss,
            duplicate: cable.duplicate,
            reorder: cable.reorder,
            late: span(cable.late),
        },
        seed: cable.seed.into(),
        number,
    }
}

/// A card with its own hardware address: locally administered, then the chip and the tile.
fn network_card(card: &platform::NetworkCard, chip: u8, tile: u16) -> NetworkCardConfig {
    let [low, high] = tile.to_le_bytes();
    NetworkCardConfig {
        rate: card.rate.0,
        mac: [2, 0, 0, chip, high, low],
        queue: card.queue.try_into().unwrap_or(1024),
        buffer: card.buffer,
        parallel: card.parallel,
    }
}

/// Bytes of a tile's lines, or of a fetch.
fn line(tile: &platform::Tile) -> u32 {
    let cache = tile.l1d.as_ref().or(tile.l1i.as_ref());
    let local = tile.local_memory.as_ref();
    cache
        .map(|cache| cache.line)
        .or(local.map(|memory| memory.fetch))
        .unwrap_or(64)
}

fn hart(p: &platform::Pipeline, line: u32, ticks_per_cycle: u64) -> HartConfig {
    HartConfig {
        ticks_per_cycle,
        line,
        load_to_use: p.load_to_use,
        multiply: p.multiply,
        divide: p.divide,
        fp_add: p.fp_add,
        fp_multiply: p.fp_multiply,
        fp_fma: p.fp_fma,
        fp_divide: p.fp_divide,
        fp_sqrt: p.fp_sqrt,
        branch_penalty: p.branch_penalty,
        jump_penalty: p.jump_penalty,
        predictor_entries: p.predictor_entries,
        return_stack: p.return_stack,
        store_buffer: p.store_buffer,
        load_buffer: p.load_buffer,
        trap_entry: p.trap_entry,
        mmio: p.mmio,
        tlb_entries: p.tlb_entries,
        l2_tlb_entries: p.l2_tlb_entries,
        l2_tlb_latency: p.l2_tlb_latency,
        hardware_ad: p.hardware_ad,
        interval: p.interval.map(|interval| IntervalConfig {
            width: interval.width,
            window: interval.window,
            load_queue: p.load_buffer,
            store_queue: interval.store_queue,
            alus: interval.alus,
            memory_ports: interval.memory_ports,
            float_units: interval.float_units,
        }),
    }
}

fn cache(cache: &platform::Cache, cycle: u64) -> CacheConfig {
    CacheConfig {
        size: cache.size.0,
        ways: cache.ways,
        line: cache.line,
        cycle,
        latency: cache.latency.into(),
        mshrs: cache.mshrs,
        replacement: match cache.replacement {
            platform::Replacement::Lru => Replacement::Lru,
            platform::Replacement::TreePlru => Replacement::TreePlru,
            platform::Replacement::Random => Replacement::Random,
            platform::Replacement::RandomAny => Replacement::RandomAny,
        },
        way_mask: 0,
        prefetcher: cache.prefetcher.as_ref().and_then(prefetcher),
    }
}

fn prefetcher(part: &platform::Prefetcher) -> Option<PrefetcherConfig> {
    let kind = match part.kind {
        platform::PrefetcherKind::Off => return None,
        platform::PrefetcherKind::Stream => PrefetcherKind::Stream {
            streams: part.streams,
            stride: part.stride,
            training: part.training,
            distance: part.distance,
        },
        platform::PrefetcherKind::Stride => PrefetcherKind::Stride {
            entries: part.entries,
            ways: part.ways,
            bits: part.confidence_bits,
            initial: part.confidence,
            threshold: part.threshold,
        },
    };
    Some(PrefetcherConfig {
        kind,
        degree: part.degree,
        page: part.page,
    })
}

fn cluster(cluster: &platform::Cluster, cycle: impl Fn(&platform::Clock) -> u64) -> ClusterConfig {
    let core = |port| {
        let core = cluster.core(port)?;
        let cycle = cycle(&core.pipeline.clock);
        Some(CoreConfig {
            hart: hart(&core.pipeline, core.l1d.line, cycle),
            l1i: cache(&core.l1i, cycle),
            l1d: cache(&core.l1d, cycle),
        })
    };
    let cores = match cluster.cores.is_empty() {
        true => Vec::new(),
        false => (0..cluster.harts).map(core).collect(),
    };
    ClusterConfig {
        harts: (0..8).take(cluster.harts as usize).collect(),
        up: cluster.up.into(),
        down: cluster.down.into(),
        banks: cluster.banks,
        occupancy: cluster.occupancy.into(),
        hold: cluster.hold.into(),
        divided_registers: cluster.miss_registers == platform::MissRegisters::Hart,
        fills: (0..cluster.harts).map(|hart| cluster.fills(hart)).collect(),
        coherent: cluster.coherent,
        capacity: cluster.capacity.map(|capacity| CapacityConfig {
            rcids: capacity.rcids as u16,
            mcids: capacity.mcids as u16,
            programmers: match capacity.programmer {
                Some(hart) => 1 << hart,
                None => u8::MAX >> (8 - cluster.harts),
            },
        }),
        cores,
    }
}

fn local_memory(memory: &platform::LocalMemory, cycle: u64) -> LocalMemoryConfig {
    LocalMemoryConfig {
        size: memory.size.0,
        cycle,
        banks: memory.banks,
        ports: memory.ports,
        width: memory.width,
        latency: memory.latency.into(),
        guard: memory.guard,
    }
}

fn dma(engine: &platform::Dma, cycle: u64) -> DmaConfig {
    DmaConfig {
        cycle,
        channels: engine.channels,
        outstanding: engine.outstanding,
        startup: engine.startup.into(),
        burst: engine.burst,
        width: engine.width,
    }
}

fn dtu(dtu: &platform::Dtu, cycle: u64) -> DtuConfig {
    DtuConfig {
        cycle,
        endpoints: dtu.endpoints.try_into().unwrap_or(u16::MAX),
        buckets: dtu.buckets.try_into().unwrap_or(u8::MAX),
        tlb_entries: dtu.tlb_entries.try_into().unwrap_or(u16::MAX),
        tlb_latency: dtu.tlb_latency.into(),
        block: dtu.block,
        parallel: dtu.parallel,
        refill: dtu.refill.into(),
        bucket_limit: dtu.bucket_limit.0,
        read: dtu.read.into(),
        write: dtu.write.into(),
        send: dtu.send.into(),
        reply: dtu.reply.into(),
        receive: dtu.receive.into(),
        fetch: dtu.fetch.into(),
        acknowledge: dtu.acknowledge.into(),
        outstanding: dtu.outstanding,
        port: match dtu.first_level {
            true => UnitPort::First,
            false => UnitPort::Second,
        },
    }
}

fn accelerator(unit: &platform::Accelerator, cycle: u64, ticks: u64) -> AcceleratorConfig {
    AcceleratorConfig {
        operation: match unit.operation {
            platform::Operation::Copy => Operation::Copy,
            platform::Operation::Checksum => Operation::Checksum,
            platform::Operation::Edge => Operation::Edge,
            platform::Operation::Rogue => Operation::Rogue,
        },
        cycle,
        nanosecond: ticks.div_ceil(1_000_000_000),
        bytes_per_cycle: unit.bytes_per_cycle,
        startup: unit.startup.into(),
        switch: unit.switch.into(),
        row: unit.row,
    }
}

/// The shares that the description gives to harts with ways of their own.
fn shares(platform: &Platform) -> Vec<InitialShare> {
    let clusters = platform
        .tiles
        .iter()
        .filter_map(|tile| tile.cluster.as_ref());
    let partitions = clusters.flat_map(|cluster| &cluster.partitions);
    let given = partitions.filter(|one| !one.share.is_default());
    let share = |one: &platform::Partition| InitialShare {
        rcid: ClusterConfig::rcid_of(one.hart as usize),
        reserved: one.share.reserved as u16,
        weight: one.share.weight as u8,
    };
    given.map(share).collect()
}

/// A bandwidth controller knows the identifiers of all clusters.
fn bandwidth(platform: &Platform, dram: &platform::Dram) -> Option<BandwidthConfig> {
    let blocks = dram.controller.bandwidth_blocks?;
    let clusters = platform
        .tiles
        .iter()
        .filter_map(|tile| tile.cluster.as_ref());
    let capacities = clusters.filter_map(|cluster| cluster.capacity);
    let (rcids, mcids) = capacities.fold((1, 1), |(rcids, mcids), one| {
        (rcids.max(one.rcids), mcids.max(one.mcids))
    });
    Some(BandwidthConfig {
        blocks: blocks as u16,
        rcids: rcids as u16,
        mcids: mcids as u16,
    })
}

fn controller(dram: &platform::Dram, size: u64, cycle: u64) -> ControllerConfig {
    let part = &dram.controller;
    let ticks = |cycles: u32| u64::from(cycles) * cycle;
    let spread = |spread| match spread {
        platform::Spread::Row => Some(dram.row.0),
        platform::Spread::Burst => Some(dram.burst.into()),
        platform::Spread::Block => None,
    };
    ControllerConfig {
        timing: Timing {
            cycle,
            burst: ticks(dram.burst.div_ceil(2 * dram.bus)),
            cas: ticks(dram.cas),
            write_cas: ticks(part.write_cas),
            activate: ticks(dram.activate),
            precharge: ticks(dram.precharge),
            row_active: ticks(part.row_active),
            read_to_precharge: ticks(part.read_to_precharge),
            write_recovery: ticks(dram.write_recovery),
            column: ticks(part.column_gap),
            activate_gap: ticks(part.activate_gap),
            four_activates: ticks(part.four_activates),
            write_to_read: ticks(part.write_to_read),
            read_to_write: ticks(part.read_to_write),
            refresh_interval: ticks(dram.refresh_interval),
            refresh: ticks(dram.refresh),
        },
        map: AddressMap {
            size,
            channels: part.channels,
            channel_interleave: spread(part.channel_map),
            banks: dram.banks,
            bank_interleave: spread(part.bank_map),
            row: dram.row.0,
            xor: part.xor,
        },
        burst_bytes: dram.burst.into(),
        frontend: ticks(dram.frontend),
        policy: match part.policy {
            platform::MemoryPolicy::Fcfs => Policy::Fcfs,
            platform::MemoryPolicy::FrFcfs { cap } => Policy::FirstReady { cap },
            platform::MemoryPolicy::Slots => Policy::Slots,
        },
        turns: match part.turns {
            platform::Turns::Tile => Turns::Tile,
            platform::Turns::Hart => Turns::Hart,
        },
        closed_page: part.closed_page,
        queue: part.queue,
        write_queue: part.write_queue.map(|queue| WriteQueue {
            size: queue.size,
            high: queue.high,
            low: queue.low,
        }),
    }
}

fn network(network: &platform::Network, cycle: u64) -> NetworkConfig {
    NetworkConfig {
        topology: match network.topology {
            platform::Topology::Crossbar => Topology::Crossbar,
            platform::Topology::StarMesh { columns, rows } => Topology::StarMesh { columns, rows },
            platform::Topology::Mesh { columns, rows } => Topology::Mesh { columns, rows },
        },
        cycle,
        width: network.width,
        link: network.link.into(),
        router: network.router.into(),
        interface: network.interface.into(),
        header: network.header,
        chunk: network.chunk,
        credits: network.credits,
        channels: match (network.split_channels, network.read_interval) {
            (_, Some(interval)) => Channels::Acknowledged {
                read_interval: interval.into(),
            },
            (true, None) => Channels::Split,
            (false, None) => Channels::Shared,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bulkhead_machine::hart::config::LATENCY_MAX;
    use bulkhead_model::grammar::Kind;
    use bulkhead_model::{LoadOptions, load_platform, platform_names};

    #[test]
    fn one_shot_systems_run_without_engines_that_their_bounds_do_not_count() {
        let options = LoadOptions::default();
        let system = bulkhead_model::load_system("oneshot/guarded", &options).expect("it is there");
        let has_engine = |config: &PlatformConfig| config.tiles.iter().any(|t| t.dma.is_some());
        assert!(has_engine(&convert(&system.platform)));
        assert!(!has_engine(&convert_system(&system, None)));
    }

    /// A prefetcher that is switched off does not exist, so no tick can differ.
    #[test]
    fn a_prefetcher_that_is_switched_off_is_none() {
        let options = LoadOptions::default();
        let mut platform = load_platform("imx6-solo", &options).expect("it is there");
        let with = convert(&platform);
        for cache in platform
            .tiles
            .iter_mut()
            .filter_map(|tile| tile.l1d.as_mut())
        {
            let prefetcher = cache.prefetcher.as_mut().expect("the core has one");
            prefetcher.kind = platform::PrefetcherKind::Off;
        }
        let off = convert(&platform);
        for tile in &mut platform.tiles {
            tile.l1d.as_mut().expect("it has one").prefetcher = None;
        }
        assert_ne!(with, off);
        assert_eq!(convert(&platform), off);
    }

    #[test]
    fn a_bandwidth_controller_knows_the_identifiers_of_all_clusters() {
        let platform = load_platform("virt-shares", &LoadOptions::default());
        let config = convert(&platform.expect("it is there"));
        let expected = BandwidthConfig {
            blocks: 64,
            rcids: 16,
            mcids: 16,
        };
        assert_eq!(config.memories[0].dram.bandwidth, Some(expected));
    }

    /// A program's share is that of the RCIDs of its harts, in each memory with a controller; whoever gives none has none in the list.
    #[test]
    fn a_bandwidth_controller_has_the_shares_of_programs() {
        let text = r#"<system name="s" paradigm="bare" platform="virt-shares"><domain name="d">
            <app name="a" harts="1-2" program="memory/measure" ways="2-3" reserved="8" weight="0"/>
            <app name="b" harts="3" program="memory/measure" ways="4-5"/>
        </domain></system>"#;
        let system = bulkhead_model::load_system_text("s", text, &LoadOptions::default());
        let config = convert_system(&system.expect("valid"), None);
        let share = |rcid| InitialShare {
            rcid,
            reserved: 8,
            weight: 0,
        };
        assert_eq!(config.memories[0].dram.shares, [share(2), share(3)]);
        assert!(config.validate().is_ok());
        let mut more = config;
        more.memories[0].dram.shares[0].reserved = 60;
        let refused = more.validate().expect_err("too many").to_string();
        assert!(
            refused.contains("68 slots of each window are reserved"),
            "{refused}"
        );
    }

    /// A program's ways are those of an RCID that only its hart has, and one hart reaches the controller.
    #[test]
    fn a_capacity_controller_has_its_programmer_and_the_ways_of_programs() {
        let text = r#"<system name="s" paradigm="bare" platform="virt-qos"><domain name="d">
            <app name="a" harts="1" program="memory/measure" ways="2-3"/>
        </domain></system>"#;
        let folder = tempfile::tempdir().expect("a folder can be made");
        let path = folder.path().join("system.xml");
        std::fs::write(&path, text).expect("it can be written");
        let path = path.to_str().expect("it is text");
        let system = bulkhead_model::load_system(path, &LoadOptions::default()).expect("valid");
        let config = convert_system(&system, None);
        let cluster = config.tiles[0].cluster.as_ref().expect("it has one");
        let expected = CapacityConfig {
            rcids: 16,
            mcids: 16,
            programmers: 1,
        };
        assert_eq!(cluster.capacity, Some(expected));
        assert_eq!(cluster.fills, [0, 0b1100, 0, 0]);
        let only = |port| cluster.qos(port).expect("they have the register").only;
        assert_eq!([0, 1, 2, 3].map(only), [None, Some(2), None, None]);
    }

    #[test]
    fn every_platform_of_the_catalog_converts() {
        let options = LoadOptions::default();
        for name in platform_names(&options) {
            let platform = load_platform(&name, &options).expect("the catalog is valid");
            let config = convert(&platform);
            assert_eq!(config.tiles.len(), platform.tiles.len(), "{name}");
            for (tile, model) in config.tiles.iter().zip(&platform.tiles) {
                // A cycle is exactly a whole number of ticks.
                let hertz = model.pipeline.clock.frequency.0;
                assert_eq!(
                    tile.hart.ticks_per_cycle * hertz,
                    config.ticks_per_second,
                    "{name}"
                );
            }
        }
    }

    /// The greatest latency of a description is the greatest of the machine, whose schedules hold no more.
    #[test]
    fn latencies_have_one_limit() {
        let pipeline = bulkhead_model::grammar::element("pipeline").expect("it is an element");
        for name in [
            "load-to-use",
            "multiply",
            "divide",
            "fp-add",
            "fp-multiply",
            "fp-fma",
            "fp-divide",
            "fp-sqrt",
        ] {
            let attribute = pipeline.attribute(name).expect("it is an attribute");
            let max = u64::from(LATENCY_MAX);
            assert_eq!(attribute.kind, Kind::Integer { min: 1, max }, "{name}");
            let load = |cycles: u64| {
                let options = LoadOptions {
                    overrides: vec![format!("pipeline@{name}={cycles}")],
                    ..LoadOptions::default()
                };
                load_platform("single", &options).map(|platform| convert(&platform).validate())
            };
            assert_eq!(load(max), Ok(Ok(())), "{name}");
            assert!(load(max + 1).is_err(), "{name}");
        }
    }

    /// A chip that no host can hold, by its size alone: `check` builds no machine.
    #[test]
    fn memories_without_room_are_refused_before_a_machine_is_built() {
        let text = r#"<system name="s" paradigm="bare" platform="epiphany3"><domain name="d"><app name="a" program="x"/></domain></system>"#;
        let system = bulkhead_model::load_system_text("s", text, &LoadOptions::default());
        let mut system = system.expect("valid");
        accepted(&system).expect("a host has as much");
        for memory in &mut system.platform.memories {
            memory.size.0 = 1 << 62;
        }
        let refused = accepted(&system).expect_err("no host has as much");
        assert_eq!(refused.code(), crate::error::exit::BAD_INPUT);
        let said = refused.to_string();
        assert!(
            said.contains("this computer has no room for them"),
            "{said}"
        );
    }
}
