//! A platform as XML.
//!
//! Why it exists: a result records exactly what was run, and the chip's manager needs no other file. What it deliberately does not know:
//! the rules that the values obey.

use super::{
    Cache, Controller, Dram, Dtu, Memory, MemoryPolicy, MissRegisters, Network, Pipeline,
    PipelineModel, Platform, PlatformKind, Prefetcher, PrefetcherKind, Replacement, Spread, Tile,
    Topology, Turns,
};
use crate::units::Size;
use crate::writer::Writer;

/// Writes a platform.
pub(crate) fn write(writer: &mut Writer, platform: &Platform) {
    let kind = match platform.kind {
        PlatformKind::Tiled => "tiled",
        PlatformKind::Bare => "bare",
        PlatformKind::Mesh => "mesh",
    };
    writer
        .start("platform")
        .attribute("name", &platform.name)
        .attribute("kind", kind);
    if let Some(about) = &platform.about {
        writer.attribute("about", about);
    }
    write_source(writer, platform, &format!("platform[{}]", platform.name));
    for clock in &platform.clocks {
        writer
            .start("clock")
            .attribute("name", &clock.name)
            .frequency("frequency", clock.frequency);
        close(writer, platform, &format!("clock[{}]", clock.name));
    }
    writer
        .start("timebase")
        .frequency("frequency", platform.timebase);
    close(writer, platform, "timebase");
    platform
        .pipelines
        .iter()
        .for_each(|part| write_pipeline(writer, platform, part));
    platform
        .caches
        .iter()
        .for_each(|part| write_cache(writer, platform, part));
    write_clusters(writer, platform);
    for part in &platform.local_memories {
        writer
            .start("local-memory")
            .attribute("name", &part.name)
            .attribute("clock", &part.clock.name)
            .size("size", part.size)
            .attribute("banks", part.banks)
            .attribute("ports", part.ports)
            .bytes("width", part.width)
            .attribute("latency", part.latency)
            .bytes("fetch", part.fetch)
            .optional("guard", (part.guard > 0).then_some(part.guard));
        close(writer, platform, &format!("local-memory[{}]", part.name));
    }
    for part in &platform.dma_engines {
        writer
            .start("dma")
            .attribute("name", &part.name)
            .attribute("clock", &part.clock.name)
            .attribute("channels", part.channels)
            .attribute("outstanding", part.outstanding)
            .attribute("startup", part.startup)
            .optional("burst", (part.burst > 0).then(|| Size(part.burst.into())))
            .optional("width", (part.width != 8).then(|| Size(part.width.into())));
        close(writer, platform, &format!("dma[{}]", part.name));
    }
    platform
        .dtus
        .iter()
        .for_each(|part| write_dtu(writer, platform, part));
    for part in &platform.accelerators {
        writer
            .start("accelerator")
            .attribute("name", &part.name)
            .attribute("clock", &part.clock.name)
            .attribute("operation", part.operation.name())
            .attribute("bytes-per-cycle", part.bytes_per_cycle)
            .attribute("startup", part.startup)
            .attribute("switch", part.switch)
            .bytes("row", part.row);
        close(writer, platform, &format!("accelerator[{}]", part.name));
    }
    for part in &platform.network_cards {
        writer
            .start("network-card")
            .attribute("name", &part.name)
            .rate("rate", part.rate)
            .attribute("queue", part.queue)
            .bytes("buffer", part.buffer)
            .attribute("parallel", part.parallel);
        close(writer, platform, &format!("network-card[{}]", part.name));
    }
    platform
        .drams
        .iter()
        .for_each(|part| write_dram(writer, platform, part));
    write_network(writer, platform, &platform.network);
    for tile in &platform.tiles {
        let name = |cache: &Option<Cache>| cache.as_ref().map(|cache| cache.name.clone());
        let offset = tile.clock_offset.nanoseconds();
        let offset = (offset > 0).then(|| format!("{offset}ns"));
        let drift = (tile.clock_drift != 0).then(|| format!("{}ppm", tile.clock_drift));
        writer
            .start("tile")
            .attribute("id", tile.id)
            .attribute("pipeline", &tile.pipeline.name)
            .optional("l1i", name(&tile.l1i))
            .optional("l1d", name(&tile.l1d))
            .optional("l2", name(&tile.l2))
            .optional("cluster", tile.cluster.as_ref().map(|c| &c.name))
            .optional(
                "local-memory",
                tile.local_memory.as_ref().map(|memory| &memory.name),
            )
            .optional("tcm", tcm(tile))
            .optional("dma", tile.dma.as_ref().map(|dma| &dma.name))
            .optional("clock-offset", offset)
            .optional("clock-drift", drift)
            .optional("dtu", tile.dtu.as_ref().map(|dtu| &dtu.name))
            .optional(
                "accelerator",
                tile.accelerator.as_ref().map(|unit| &unit.name),
            )
            .optional(
                "network-card",
                tile.network_card.as_ref().map(|card| &card.name),
            )
            .attribute("router", tile.router)
            .attribute("privileged", tile.privileged)
            .attribute("harts", tile.harts)
            .attribute("shared", tile.shared)
            .attribute("exit", tile.exit)
            .attribute("uart", tile.uart);
        close(writer, platform, &format!("tile[{}]", tile.id));
    }
    for engine in &platform.engines {
        writer
            .start("engine")
            .attribute("id", engine.id)
            .attribute("dma", &engine.dma.name)
            .attribute("registers", engine.registers)
            .optional("interrupts", engine.interrupts)
            .attribute("router", engine.router)
            .optional("coherent", engine.coherent.then_some("true"));
        close(writer, platform, &format!("engine[{}]", engine.id));
    }
    for one in &platform.peripherals {
        super::peripherals::write(writer, one);
        close(writer, platform, &format!("peripheral[{}]", one.name));
    }
    if let Some(one) = &platform.doorbells {
        writer
            .start("doorbells")
            .attribute("id", one.id)
            .attribute("clock", &one.clock.name)
            .attribute("registers", one.registers)
            .attribute("router", one.router);
        close(writer, platform, "doorbells");
    }
    for memory in &platform.memories {
        writer
            .start("memory")
            .attribute("id", memory.id)
            .attribute("dram", &memory.dram.name)
            .size("size", memory.size)
            .attribute("router", memory.router)
            .optional("second-port-of", second_port(memory))
            .optional("dropped-bits", dropped(memory));
        close(writer, platform, &format!("memory[{}]", memory.id));
    }
    writer.end();
}

/// The bits that the translator in front of a memory drops.
fn dropped(memory: &Memory) -> Option<String> {
    let bits = (0..64).filter(|bit| memory.dropped >> bit & 1 != 0);
    let bits: Vec<String> = bits.map(|bit| bit.to_string()).collect();
    (!bits.is_empty()).then(|| bits.join(" "))
}

/// The names of a tile's tightly coupled memories.
fn tcm(tile: &Tile) -> Option<String> {
    let names = tile.tcm.iter().map(|memory| memory.name.clone());
    let names: Vec<String> = names.collect();
    (!names.is_empty()).then(|| names.join(" "))
}

/// The memories that a second port leads to.
fn second_port(memory: &Memory) -> Option<String> {
    let of = memory.second_port_of.iter().map(u16::to_string);
    let of: Vec<String> = of.collect();
    (!of.is_empty()).then(|| of.join(" "))
}

/// Writes the source of the whole element, if it has one.
fn write_source(writer: &mut Writer, platform: &Platform, element: &str) {
    let mut origins = platform
        .origins
        .iter()
        .filter(|origin| origin.element == element);
    let whole = origins.find(|origin| origin.attributes.is_empty());
    writer.optional("source", whole.map(|origin| &origin.source));
}

/// Writes where the values come from, and closes the element.
fn close(writer: &mut Writer, platform: &Platform, element: &str) {
    write_source(writer, platform, element);
    for origin in platform
        .origins
        .iter()
        .filter(|origin| origin.element == element)
    {
        if !origin.attributes.is_empty() {
            writer
                .start("origin")
                .attribute("of", origin.attributes.join(" "))
                .attribute("source", &origin.source)
                .end();
        }
    }
    writer.end();
}

fn write_pipeline(writer: &mut Writer, platform: &Platform, part: &Pipeline) {
    writer
        .start("pipeline")
        .attribute("name", &part.name)
        .attribute("clock", &part.clock.name)
        .attribute(
            "model",
            match part.model {
                PipelineModel::Inorder => "inorder",
                PipelineModel::Interval => "interval",
            },
        )
        .attribute("load-to-use", part.load_to_use)
        .attribute("multiply", part.multiply)
        .attribute("divide", part.divide)
        .attribute("fp-add", part.fp_add)
        .attribute("fp-multiply", part.fp_multiply)
        .attribute("fp-fma", part.fp_fma)
        .attribute("fp-divide", part.fp_divide)
        .attribute("fp-sqrt", part.fp_sqrt)
        .attribute("branch-penalty", part.branch_penalty)
        .attribute("jump-penalty", part.jump_penalty)
        .attribute("predictor-entries", part.predictor_entries)
        .attribute("return-stack", part.return_stack)
        .attribute("store-buffer", part.store_buffer)
        .attribute("load-buffer", part.load_buffer)
        .attribute("trap-entry", part.trap_entry)
        .attribute("mmio", part.mmio)
        .attribute("tlb-entries", part.tlb_entries)
        .attribute("l2-tlb-entries", part.l2_tlb_entries)
        .attribute("l2-tlb-latency", part.l2_tlb_latency)
        .attribute("page-walk", "timed")
        .attribute("hardware-ad", part.hardware_ad);
    if let Some(interval) = part.interval {
        writer
            .attribute("width", interval.width)
            .attribute("window", interval.window)
            .attribute("store-queue", interval.store_queue)
            .attribute("alus", interval.alus)
            .attribute("memory-ports", interval.memory_ports)
            .attribute("float-units", interval.float_units);
    }
    close(writer, platform, &format!("pipeline[{}]", part.name));
}

fn write_cache(writer: &mut Writer, platform: &Platform, part: &Cache) {
    let replacement = match part.replacement {
        Replacement::Lru => "lru",
        Replacement::TreePlru => "tree-plru",
        Replacement::Random => "random",
        Replacement::RandomAny => "random-any",
    };
    writer
        .start("cache")
        .attribute("name", &part.name)
        .size("size", part.size)
        .attribute("ways", part.ways)
        .bytes("line", part.line)
        .attribute("latency", part.latency)
        .attribute("mshrs", part.mshrs)
        .attribute("replacement", replacement);
    if let Some(prefetcher) = &part.prefetcher {
        write_prefetcher(writer, platform, &part.name, prefetcher);
    }
    close(writer, platform, &format!("cache[{}]", part.name));
}

fn write_prefetcher(writer: &mut Writer, platform: &Platform, cache: &str, part: &Prefetcher) {
    let kind = match part.kind {
        PrefetcherKind::Off => "off",
        PrefetcherKind::Stream => "stream",
        PrefetcherKind::Stride => "stride",
    };
    writer
        .start("prefetcher")
        .attribute("kind", kind)
        .attribute("degree", part.degree)
        .bytes("page", part.page)
        .attribute("streams", part.streams)
        .attribute("stride", part.stride)
        .attribute("training", part.training)
        .attribute("distance", part.distance)
        .attribute("entries", part.entries)
        .attribute("ways", part.ways)
        .attribute("confidence-bits", part.confidence_bits)
        .attribute("confidence", part.confidence)
        .attribute("threshold", part.threshold);
    close(writer, platform, &format!("cache[{cache}]/prefetcher"));
}

fn write_dtu(writer: &mut Writer, platform: &Platform, part: &Dtu) {
    writer
        .start("dtu")
        .attribute("name", &part.name)
        .attribute("clock", &part.clock.name)
        .attribute("endpoints", part.endpoints)
        .attribute("buckets", part.buckets)
        .attribute("tlb-entries", part.tlb_entries)
        .attribute("tlb-latency", part.tlb_latency)
        .bytes("block", part.block)
        .attribute("parallel", part.parallel)
        .attribute("refill", part.refill)
        .size("bucket-limit", part.bucket_limit)
        .attribute("read", part.read)
        .attribute("write", part.write)
        .attribute("send", part.send)
        .attribute("reply", part.reply)
        .attribute("receive", part.receive)
        .attribute("fetch", part.fetch)
        .attribute("acknowledge", part.acknowledge)
        .attribute("outstanding", part.outstanding)
        .attribute("cache", if part.first_level { "l1" } else { "l2" });
    close(writer, platform, &format!("dtu[{}]", part.name));
}

fn write_dram(writer: &mut Writer, platform: &Platform, part: &Dram) {
    writer
        .start("dram")
        .attribute("name", &part.name)
        .attribute("clock", &part.clock.name)
        .attribute("banks", part.banks)
        .size("row", part.row)
        .bytes("bus", part.bus)
        .bytes("burst", part.burst)
        .attribute("cas", part.cas)
        .attribute("activate", part.activate)
        .attribute("precharge", part.precharge)
        .attribute("write-recovery", part.write_recovery)
        .attribute("refresh-interval", part.refresh_interval)
        .attribute("refresh", part.refresh)
        .attribute("frontend", part.frontend);
    write_controller(writer, platform, &part.name, &part.controller);
    close(writer, platform, &format!("dram[{}]", part.name));
}

fn write_controller(writer: &mut Writer, platform: &Platform, dram: &str, part: &Controller) {
    let spread = |spread| match spread {
        Spread::Row => "row",
        Spread::Burst => "burst",
        Spread::Block => "block",
    };
    let (policy, cap) = match part.policy {
        MemoryPolicy::Fcfs => ("fcfs", None),
        MemoryPolicy::FrFcfs { cap } => ("fr-fcfs", Some(cap)),
        MemoryPolicy::Slots => ("slots", None),
    };
    let queue = part.write_queue;
    writer
        .start("controller")
        .attribute("policy", policy)
        .optional("cap", cap)
        .optional("turns", (part.turns == Turns::Hart).then_some("hart"))
        .optional("bandwidth-blocks", part.bandwidth_blocks)
        .attribute("queue", part.queue)
        .attribute("page", if part.closed_page { "closed" } else { "open" })
        .optional("write-queue", queue.map(|queue| queue.size))
        .optional("write-high", queue.map(|queue| queue.high))
        .optional("write-low", queue.map(|queue| queue.low))
        .attribute("channels", part.channels)
        .attribute("channel-map", spread(part.channel_map))
        .attribute("bank-map", spread(part.bank_map))
        .attribute("xor", part.xor)
        .attribute("write-cas", part.write_cas)
        .attribute("row-active", part.row_active)
        .attribute("read-to-precharge", part.read_to_precharge)
        .attribute("column-gap", part.column_gap)
        .attribute("activate-gap", part.activate_gap)
        .attribute("four-activates", part.four_activates)
        .attribute("write-to-read", part.write_to_read)
        .attribute("read-to-write", part.read_to_write);
    close(writer, platform, &format!("dram[{dram}]/controller"));
}

fn write_network(writer: &mut Writer, platform: &Platform, part: &Network) {
    let (topology, size) = match part.topology {
        Topology::Crossbar => ("crossbar", None),
        Topology::StarMesh { columns, rows } => ("star-mesh", Some((columns, rows))),
        Topology::Mesh { columns, rows } => ("mesh", Some((columns, rows))),
    };
    writer
        .start("network")
        .attribute("topology", topology)
        .optional("columns", size.map(|size| size.0))
        .optional("rows", size.map(|size| size.1))
        .attribute("clock", &part.clock.name)
        .bytes("width", part.width)
        .attribute("link", part.link)
        .attribute("router", part.router)
        .attribute("interface", part.interface)
        .bytes("header", part.header)
        .bytes("chunk", part.chunk)
        .attribute(
            "channels",
            match (part.split_channels, part.read_interval) {
                (_, Some(_)) => "acknowledged",
                (true, None) => "split",
                (false, None) => "shared",
            },
        )
        .optional("read-interval", part.read_interval)
        .optional("credits", part.credits);
    close(writer, platform, "network");
}

/// Writes every `<cluster>`.
fn write_clusters(writer: &mut Writer, platform: &Platform) {
    for part in &platform.clusters {
        writer
            .start("cluster")
            .attribute("name", &part.name)
            .attribute("harts", part.harts)
            .attribute("up", part.up)
            .attribute("down", part.down)
            .attribute("banks", part.banks)
            .attribute("occupancy", part.occupancy)
            .attribute("hold", part.hold)
            .optional(
                "miss-registers",
                (part.miss_registers == MissRegisters::Hart).then_some("hart"),
            )
            .optional("coherent", part.coherent.then_some("true"));
        for core in &part.cores {
            writer
                .start("core")
                .attribute("hart", core.hart)
                .attribute("pipeline", &core.pipeline.name)
                .attribute("l1i", &core.l1i.name)
                .attribute("l1d", &core.l1d.name)
                .end();
        }
        for partition in &part.partitions {
            writer
                .start("partition")
                .attribute("hart", partition.hart)
                .attribute("first", partition.first)
                .attribute("ways", partition.ways);
            partition.share.write(writer);
            writer.end();
        }
        if let Some(capacity) = &part.capacity {
            writer
                .start("capacity")
                .attribute("rcids", capacity.rcids)
                .attribute("mcids", capacity.mcids)
                .optional("programmer", capacity.programmer);
            let element = format!("cluster[{}]/capacity", part.name);
            close(writer, platform, &element);
        }
        close(writer, platform, &format!("cluster[{}]", part.name));
    }
}
