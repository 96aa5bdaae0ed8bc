//! From checked elements to the typed platform: resolves references.
//!
//! Why it exists and what it does not know: see the parent module. Rules on values are in `check`.

use super::check::check;
use super::{
    Accelerator, Cache, Capacity, Clock, Cluster, ClusterCore, Controller, Dma, Dram, Dtu, Engine,
    Interval, LocalMemory, Memory, MemoryPolicy, MissRegisters, Network, NetworkCard, Operation,
    Origin, Partition, Pipeline, PipelineModel, Platform, PlatformKind, Prefetcher, PrefetcherKind,
    Replacement, Share, Spread, Tile, Topology, Turns, WriteQueue,
};
use crate::error::{Diagnostic, Problem};
use crate::node::{self, Node};
use crate::text::suggestion;
use crate::tree::Element;

/// Reads and checks a `<platform>`. `None` if something is wrong; `errors` then says what.
pub fn read(element: &Element, errors: &mut Vec<Diagnostic>) -> Option<Platform> {
    let node = node::read_root(element, "platform", errors)?;
    let before = errors.len();
    let platform = Reader {
        root: &node,
        errors,
    }
    .platform()?;
    check(&platform, &node, errors);
    (errors.len() == before).then_some(platform)
}

/// The tables limit every integer that is read as 32 bits to below 2^32.
fn narrow(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

/// Number and router of each tile that an element describes. The tables limit all of them to below
/// 2^14.
pub(super) fn numbers(node: &Node) -> impl Iterator<Item = (u16, u16)> {
    let count = match node.rule.name {
        "tile" => node.integer("count"),
        _ => 1,
    };
    let (id, router) = (node.integer("id"), node.integer("router"));
    (0..count).map(move |i| ((id + i) as u16, (router + i) as u16))
}

struct Reader<'a> {
    root: &'a Node,
    errors: &'a mut Vec<Diagnostic>,
}

impl Reader<'_> {
    fn platform(&mut self) -> Option<Platform> {
        let root = self.root;
        let before = self.errors.len();
        self.duplicates();
        let clocks: Vec<Clock> = root
            .all("clock")
            .map(|clock| Clock {
                name: clock.text("name"),
                frequency: clock.frequency("frequency"),
            })
            .collect();
        let pipelines: Vec<_> = root
            .all("pipeline")
            .filter_map(|node| self.pipeline(node, &clocks))
            .collect();
        let caches: Vec<_> = root.all("cache").map(cache).collect();
        let clusters: Vec<_> = root
            .all("cluster")
            .filter_map(|node| self.cluster(node, &pipelines, &caches))
            .collect();
        let local_memories: Vec<_> = root
            .all("local-memory")
            .filter_map(|node| self.local_memory(node, &clocks))
            .collect();
        let dma_engines: Vec<_> = root
            .all("dma")
            .filter_map(|node| self.dma(node, &clocks))
            .collect();
        let dtus: Vec<_> = root
            .all("dtu")
            .filter_map(|node| self.dtu(node, &clocks))
            .collect();
        let accelerators: Vec<_> = root
            .all("accelerator")
            .filter_map(|node| self.accelerator(node, &clocks))
            .collect();
        let network_cards: Vec<_> = root.all("network-card").map(network_card).collect();
        let drams: Vec<_> = root
            .all("dram")
            .filter_map(|node| self.dram(node, &clocks))
            .collect();
        let network = root
            .child("network")
            .and_then(|node| self.network(node, &clocks));
        if self.errors.len() > before {
            return None;
        }
        let mut tiles = Vec::new();
        for node in root.all("tile") {
            let units = (&accelerators[..], &network_cards[..], &dma_engines[..]);
            let memories = (&caches[..], &clusters[..], &local_memories[..]);
            let Some(tile) = self.tile(node, &pipelines, memories, &dtus, units) else {
                continue;
            };
            for (id, router) in numbers(node) {
                tiles.push(Tile {
                    id,
                    router,
                    ..tile.clone()
                });
            }
        }
        let mut engines: Vec<_> = root
            .all("engine")
            .filter_map(|node| self.engine(node, &dma_engines))
            .collect();
        let mut peripherals = Vec::new();
        for node in root.all("peripheral") {
            if let Some(clock) = self.clock(node, &clocks) {
                peripherals.extend(super::peripherals::read(node, clock, self.errors));
            }
        }
        let doorbells = root.child("doorbells");
        let doorbells = doorbells.and_then(|node| {
            let clock = self.clock(node, &clocks)?;
            Some(super::doorbells::read(node, clock))
        });
        let mut memories: Vec<_> = root
            .all("memory")
            .filter_map(|node| self.memory(node, &drams))
            .collect();
        if self.errors.len() > before {
            return None;
        }
        tiles.sort_by_key(|tile| tile.id);
        memories.sort_by_key(|memory| memory.id);
        engines.sort_by_key(|engine| engine.id);
        peripherals.sort_by_key(|one| one.id);
        Some(Platform {
            name: root.text("name"),
            about: root.maybe_text("about"),
            kind: match root.text("kind").as_str() {
                "bare" => PlatformKind::Bare,
                "mesh" => PlatformKind::Mesh,
                _ => PlatformKind::Tiled,
            },
            clocks,
            timebase: root
                .child("timebase")
                .map(|node| node.frequency("frequency"))?,
            pipelines,
            caches,
            clusters,
            local_memories,
            dma_engines,
            dtus,
            accelerators,
            network_cards,
            drams,
            network: network?,
            tiles,
            memories,
            engines,
            peripherals,
            doorbells,
            origins: self.origins(),
        })
    }

    /// Names are unique among elements of a kind, and numbers among all tiles.
    fn duplicates(&mut self) {
        for (kind, attribute) in [
            ("clock", "name"),
            ("pipeline", "name"),
            ("cache", "name"),
            ("cluster", "name"),
            ("local-memory", "name"),
            ("dma", "name"),
            ("peripheral", "name"),
            ("dtu", "name"),
            ("accelerator", "name"),
            ("network-card", "name"),
            ("dram", "name"),
        ] {
            let mut seen: Vec<String> = Vec::new();
            for node in self.root.all(kind) {
                self.note_duplicate(kind, node.text(attribute), node, attribute, &mut seen);
            }
        }
        let mut seen = Vec::new();
        for node in &self.root.children {
            let name = node.rule.name;
            if matches!(
                name,
                "tile" | "engine" | "peripheral" | "doorbells" | "memory"
            ) {
                let before = self.errors.len();
                for (id, _) in numbers(node) {
                    self.note_duplicate("tile", id.to_string(), node, "id", &mut seen);
                    // One is enough to report that the numbers of several tiles overlap.
                    if self.errors.len() > before {
                        break;
                    }
                }
            }
        }
    }

    fn note_duplicate(
        &mut self,
        kind: &'static str,
        name: String,
        node: &Node,
        attribute: &str,
        seen: &mut Vec<String>,
    ) {
        if seen.contains(&name) {
            let help = if attribute == "id" {
                "give every tile, memory tiles included, a number of its own"
            } else {
                "give one of them another name"
            };
            self.errors.push(Diagnostic::new(
                Problem::Duplicate { kind, name },
                node.place(attribute),
                help,
            ));
        } else {
            seen.push(name);
        }
    }

    /// Finds what `attribute` of `node` refers to.
    fn find<'b, T>(
        &mut self,
        node: &Node,
        attribute: &str,
        kind: &'static str,
        list: &'b [T],
        name_of: impl Fn(&T) -> &str,
    ) -> Option<&'b T> {
        let name = node.maybe_text(attribute)?;
        let found = list.iter().find(|item| name_of(item) == name);
        if found.is_none() {
            let known: Vec<&str> = list.iter().map(&name_of).collect();
            let help = suggestion(&name, &known, kind);
            self.errors.push(Diagnostic::new(
                Problem::Unknown { kind, name },
                node.place(attribute),
                help,
            ));
        }
        found
    }

    fn clock(&mut self, node: &Node, clocks: &[Clock]) -> Option<Clock> {
        self.find(node, "clock", "clock", clocks, |clock| &clock.name)
            .cloned()
    }

    fn pipeline(&mut self, node: &Node, clocks: &[Clock]) -> Option<Pipeline> {
        let number = |attribute| narrow(node.integer(attribute));
        // `check` says which of these attributes are required.
        let bound = |attribute| node.maybe_integer(attribute).map_or(1, narrow);
        let interval = (node.text("model") == "interval").then(|| Interval {
            width: bound("width"),
            window: bound("window"),
            store_queue: bound("store-queue"),
            alus: bound("alus"),
            memory_ports: bound("memory-ports"),
            float_units: bound("float-units"),
        });
        Some(Pipeline {
            name: node.text("name"),
            clock: self.clock(node, clocks)?,
            model: match interval {
                Some(_) => PipelineModel::Interval,
                None => PipelineModel::Inorder,
            },
            load_to_use: number("load-to-use"),
            multiply: number("multiply"),
            divide: number("divide"),
            fp_add: number("fp-add"),
            fp_multiply: number("fp-multiply"),
            fp_fma: number("fp-fma"),
            fp_divide: number("fp-divide"),
            fp_sqrt: number("fp-sqrt"),
            branch_penalty: number("branch-penalty"),
            jump_penalty: number("jump-penalty"),
            predictor_entries: number("predictor-entries"),
            return_stack: number("return-stack"),
            store_buffer: number("store-buffer"),
            load_buffer: number("load-buffer"),
            trap_entry: number("trap-entry"),
            mmio: number("mmio"),
            tlb_entries: number("tlb-entries"),
            l2_tlb_entries: number("l2-tlb-entries"),
            l2_tlb_latency: number("l2-tlb-latency"),
            hardware_ad: node.boolean("hardware-ad"),
            interval,
        })
    }

    fn local_memory(&mut self, node: &Node, clocks: &[Clock]) -> Option<LocalMemory> {
        let number = |attribute| narrow(node.integer(attribute));
        Some(LocalMemory {
            name: node.text("name"),
            clock: self.clock(node, clocks)?,
            size: node.size("size"),
            banks: number("banks"),
            ports: number("ports"),
            width: narrow(node.size("width").0),
            latency: number("latency"),
            fetch: narrow(node.size("fetch").0),
            guard: number("guard"),
        })
    }

    /// The memories that a tile names.
    fn tcm(&mut self, node: &Node, local_memories: &[LocalMemory]) -> Vec<LocalMemory> {
        let kind = "local-memory";
        let names = node.maybe_text("tcm").unwrap_or_default();
        let mut all = Vec::new();
        for name in names.split_whitespace() {
            match local_memories.iter().find(|one| one.name == name) {
                Some(memory) => all.push(memory.clone()),
                None => {
                    let known: Vec<&str> =
                        local_memories.iter().map(|one| one.name.as_str()).collect();
                    let help = suggestion(name, &known, kind);
                    let name = name.to_owned();
                    let problem = Problem::Unknown { kind, name };
                    self.errors
                        .push(Diagnostic::new(problem, node.place("tcm"), help));
                }
            }
        }
        all
    }

    fn dma(&mut self, node: &Node, clocks: &[Clock]) -> Option<Dma> {
        let number = |attribute| narrow(node.integer(attribute));
        Some(Dma {
            name: node.text("name"),
            clock: self.clock(node, clocks)?,
            channels: number("channels"),
            outstanding: number("outstanding"),
            startup: number("startup"),
            burst: narrow(node.size("burst").0),
            width: narrow(node.size("width").0),
        })
    }

    fn engine(&mut self, node: &Node, kinds: &[Dma]) -> Option<Engine> {
        Some(Engine {
            id: node.integer("id") as u16,
            dma: self
                .find(node, "dma", "dma", kinds, |item| &item.name)?
                .clone(),
            registers: narrow(node.integer("registers")),
            interrupts: node.maybe_integer("interrupts").map(|tile| tile as u16),
            router: node.integer("router") as u16,
            coherent: node.boolean("coherent"),
        })
    }

    fn dtu(&mut self, node: &Node, clocks: &[Clock]) -> Option<Dtu> {
        let number = |attribute| narrow(node.integer(attribute));
        Some(Dtu {
            name: node.text("name"),
            clock: self.clock(node, clocks)?,
            endpoints: number("endpoints"),
            buckets: number("buckets"),
            tlb_entries: number("tlb-entries"),
            tlb_latency: number("tlb-latency"),
            block: narrow(node.size("block").0),
            parallel: number("parallel"),
            refill: number("refill"),
            bucket_limit: node.size("bucket-limit"),
            read: number("read"),
            write: number("write"),
            send: number("send"),
            reply: number("reply"),
            receive: number("receive"),
            fetch: number("fetch"),
            acknowledge: number("acknowledge"),
            outstanding: number("outstanding"),
            first_level: node.text("cache") == "l1",
        })
    }

    fn accelerator(&mut self, node: &Node, clocks: &[Clock]) -> Option<Accelerator> {
        let number = |attribute| narrow(node.integer(attribute));
        Some(Accelerator {
            name: node.text("name"),
            clock: self.clock(node, clocks)?,
            operation: match node.text("operation").as_str() {
                "copy" => Operation::Copy,
                "checksum" => Operation::Checksum,
                "edge" => Operation::Edge,
                _ => Operation::Rogue,
            },
            bytes_per_cycle: number("bytes-per-cycle"),
            startup: number("startup"),
            switch: number("switch"),
            row: narrow(node.size("row").0),
        })
    }

    fn dram(&mut self, node: &Node, clocks: &[Clock]) -> Option<Dram> {
        let number = |attribute| narrow(node.integer(attribute));
        Some(Dram {
            name: node.text("name"),
            clock: self.clock(node, clocks)?,
            banks: number("banks"),
            row: node.size("row"),
            bus: narrow(node.size("bus").0),
            burst: narrow(node.size("burst").0),
            cas: number("cas"),
            activate: number("activate"),
            precharge: number("precharge"),
            write_recovery: number("write-recovery"),
            refresh_interval: number("refresh-interval"),
            refresh: number("refresh"),
            frontend: number("frontend"),
            controller: controller(node.child("controller")?),
        })
    }

    fn network(&mut self, node: &Node, clocks: &[Clock]) -> Option<Network> {
        let number = |attribute| narrow(node.integer(attribute));
        // The tables limit both to below 2^16.
        let columns = node.integer("columns") as u16;
        let rows = node.integer("rows") as u16;
        Some(Network {
            topology: match node.text("topology").as_str() {
                "crossbar" => Topology::Crossbar,
                "star-mesh" => Topology::StarMesh { columns, rows },
                _ => Topology::Mesh { columns, rows },
            },
            clock: self.clock(node, clocks)?,
            width: narrow(node.size("width").0),
            link: number("link"),
            router: number("router"),
            interface: number("interface"),
            header: narrow(node.size("header").0),
            chunk: narrow(node.size("chunk").0),
            split_channels: node.text("channels") != "shared",
            read_interval: (node.text("channels") == "acknowledged")
                .then(|| number("read-interval")),
            credits: Some(number("credits")).filter(|credits| *credits > 0),
        })
    }

    fn tile(
        &mut self,
        node: &Node,
        pipelines: &[Pipeline],
        (caches, clusters, local_memories): (&[Cache], &[Cluster], &[LocalMemory]),
        dtus: &[Dtu],
        (accelerators, network_cards, dma_engines): (&[Accelerator], &[NetworkCard], &[Dma]),
    ) -> Option<Tile> {
        let before = self.errors.len();
        let pipeline = self.find(node, "pipeline", "pipeline", pipelines, |item| &item.name);
        let mut cache = |attribute| {
            self.find(node, attribute, "cache", caches, |item| &item.name)
                .cloned()
        };
        let (l1i, l1d, l2) = (cache("l1i"), cache("l1d"), cache("l2"));
        let cluster = self
            .find(node, "cluster", "cluster", clusters, |item| &item.name)
            .cloned();
        let local_memory = self
            .find(node, "local-memory", "local-memory", local_memories, |m| {
                &m.name
            })
            .cloned();
        let tcm = self.tcm(node, local_memories);
        let dma = self
            .find(node, "dma", "dma", dma_engines, |item| &item.name)
            .cloned();
        let dtu = self
            .find(node, "dtu", "dtu", dtus, |item| &item.name)
            .cloned();
        let accelerator = self
            .find(node, "accelerator", "accelerator", accelerators, |item| {
                &item.name
            })
            .cloned();
        let network_card = self
            .find(
                node,
                "network-card",
                "network-card",
                network_cards,
                |item| &item.name,
            )
            .cloned();
        if self.errors.len() > before {
            return None;
        }
        Some(Tile {
            id: node.integer("id") as u16,
            pipeline: pipeline?.clone(),
            l1i,
            l1d,
            l2,
            cluster,
            local_memory,
            tcm,
            dma,
            clock_offset: node.time("clock-offset"),
            clock_drift: node.drift("clock-drift"),
            dtu,
            accelerator,
            network_card,
            router: node.integer("router") as u16,
            privileged: node.boolean("privileged"),
            harts: node.integer("harts") as u32,
            shared: node.boolean("shared"),
            exit: node.boolean("exit"),
            uart: node.boolean("uart"),
        })
    }

    fn cluster(
        &mut self,
        node: &Node,
        pipelines: &[Pipeline],
        caches: &[Cache],
    ) -> Option<Cluster> {
        let number = |attribute| narrow(node.integer(attribute));
        let before = self.errors.len();
        let cores: Vec<ClusterCore> = node
            .all("core")
            .filter_map(|core| self.core(core, pipelines, caches))
            .collect();
        if self.errors.len() > before {
            return None;
        }
        Some(Cluster {
            name: node.text("name"),
            harts: number("harts"),
            up: number("up"),
            down: number("down"),
            banks: number("banks"),
            occupancy: number("occupancy"),
            hold: number("hold"),
            miss_registers: match node.text("miss-registers").as_str() {
                "hart" => MissRegisters::Hart,
                _ => MissRegisters::Shared,
            },
            coherent: node.boolean("coherent"),
            cores,
            partitions: node.all("partition").map(partition).collect(),
            capacity: node.child("capacity").map(capacity),
        })
    }

    fn core(
        &mut self,
        node: &Node,
        pipelines: &[Pipeline],
        caches: &[Cache],
    ) -> Option<ClusterCore> {
        let pipeline = self.find(node, "pipeline", "pipeline", pipelines, |item| &item.name);
        let mut cache = |attribute| {
            self.find(node, attribute, "cache", caches, |item| &item.name)
                .cloned()
        };
        let (l1i, l1d) = (cache("l1i"), cache("l1d"));
        Some(ClusterCore {
            hart: narrow(node.integer("hart")),
            pipeline: pipeline?.clone(),
            l1i: l1i?,
            l1d: l1d?,
        })
    }

    fn memory(&mut self, node: &Node, drams: &[Dram]) -> Option<Memory> {
        Some(Memory {
            id: node.integer("id") as u16,
            dram: self
                .find(node, "dram", "dram", drams, |item| &item.name)?
                .clone(),
            size: node.size("size"),
            router: node.integer("router") as u16,
            // `engines` reports the numbers of memories that do not exist.
            second_port_of: node
                .maybe_text("second-port-of")
                .map_or_else(Vec::new, |text| {
                    let numbers = text.split_whitespace();
                    numbers.filter_map(|one| one.parse().ok()).collect()
                }),
            dropped: super::translator::bits(node),
        })
    }

    /// Collects where values come from, and checks that `origin` names attributes that exist.
    fn origins(&mut self) -> Vec<Origin> {
        let mut origins = Vec::new();
        let top = std::iter::once(self.root).chain(&self.root.children);
        for node in top {
            let identity = match node.rule.name {
                "network" | "timebase" | "doorbells" => None,
                "tile" | "engine" | "memory" => Some(node.integer("id").to_string()),
                _ => Some(node.text("name")),
            };
            let element = match identity {
                Some(identity) => format!("{}[{identity}]", node.rule.name),
                None => node.rule.name.to_owned(),
            };
            for inner in ["controller", "prefetcher", "capacity"] {
                if let Some(part) = node.child(inner) {
                    self.origins_of(part, &format!("{element}/{inner}"), &mut origins);
                }
            }
            self.origins_of(node, &element, &mut origins);
        }
        origins
    }

    /// Where the values of one element come from.
    fn origins_of(&mut self, node: &Node, element: &str, origins: &mut Vec<Origin>) {
        for origin in node.all("origin") {
            let attributes: Vec<String> = origin
                .text("of")
                .split_whitespace()
                .map(str::to_owned)
                .collect();
            for attribute in &attributes {
                if node.rule.attribute(attribute).is_none() {
                    self.errors.push(node::unknown_attribute(
                        attribute,
                        node.rule,
                        origin.place("of"),
                    ));
                }
            }
            let source = origin.text("source");
            origins.push(Origin {
                element: element.to_owned(),
                attributes,
                source,
            });
        }
        if let Some(source) = node.maybe_text("source") {
            origins.push(Origin {
                element: element.to_owned(),
                attributes: Vec::new(),
                source,
            });
        }
    }
}

fn network_card(node: &Node) -> NetworkCard {
    NetworkCard {
        name: node.text("name"),
        rate: node.rate("rate").unwrap_or_default(),
        queue: narrow(node.integer("queue")),
        buffer: narrow(node.size("buffer").0),
        parallel: narrow(node.integer("parallel")),
    }
}

fn partition(node: &Node) -> Partition {
    let number = |attribute| narrow(node.integer(attribute));
    Partition {
        hart: number("hart"),
        first: number("first"),
        ways: number("ways"),
        share: share(node),
    }
}

/// The share that an element gives to harts.
pub(crate) fn share(node: &Node) -> Share {
    let number = |attribute| node.maybe_integer(attribute).map(narrow);
    let Share { reserved, weight } = Share::default();
    Share {
        reserved: number("reserved").unwrap_or(reserved),
        weight: number("weight").unwrap_or(weight),
    }
}

fn capacity(node: &Node) -> Capacity {
    Capacity {
        rcids: narrow(node.integer("rcids")),
        mcids: narrow(node.integer("mcids")),
        programmer: node.maybe_integer("programmer").map(narrow),
    }
}

fn cache(node: &Node) -> Cache {
    let number = |attribute| narrow(node.integer(attribute));
    Cache {
        name: node.text("name"),
        size: node.size("size"),
        ways: number("ways"),
        line: narrow(node.size("line").0),
        latency: number("latency"),
        mshrs: number("mshrs"),
        replacement: match node.text("replacement").as_str() {
            "tree-plru" => Replacement::TreePlru,
            "random" => Replacement::Random,
            "random-any" => Replacement::RandomAny,
            _ => Replacement::Lru,
        },
        prefetcher: node.child("prefetcher").map(prefetcher),
    }
}

fn prefetcher(node: &Node) -> Prefetcher {
    let number = |attribute| narrow(node.integer(attribute));
    Prefetcher {
        kind: match node.text("kind").as_str() {
            "stream" => PrefetcherKind::Stream,
            "stride" => PrefetcherKind::Stride,
            _ => PrefetcherKind::Off,
        },
        degree: number("degree"),
        page: narrow(node.size("page").0),
        streams: number("streams"),
        stride: number("stride"),
        training: number("training"),
        distance: number("distance"),
        entries: number("entries"),
        ways: number("ways"),
        confidence_bits: number("confidence-bits"),
        confidence: number("confidence"),
        threshold: number("threshold"),
    }
}

fn controller(node: &Node) -> Controller {
    let number = |attribute| narrow(node.integer(attribute));
    let spread = |attribute| match node.text(attribute).as_str() {
        "row" => Spread::Row,
        "burst" => Spread::Burst,
        _ => Spread::Block,
    };
    let size = number("write-queue");
    Controller {
        policy: match node.text("policy").as_str() {
            "fcfs" => MemoryPolicy::Fcfs,
            "slots" => MemoryPolicy::Slots,
            _ => MemoryPolicy::FrFcfs { cap: number("cap") },
        },
        turns: match node.text("turns").as_str() {
            "hart" => Turns::Hart,
            _ => Turns::Tile,
        },
        bandwidth_blocks: match number("bandwidth-blocks") {
            0 => None,
            blocks => Some(blocks),
        },
        queue: number("queue"),
        closed_page: node.text("page") == "closed",
        write_queue: (size > 0).then(|| WriteQueue {
            size,
            high: number("write-high"),
            low: number("write-low"),
        }),
        channels: number("channels"),
        channel_map: spread("channel-map"),
        bank_map: spread("bank-map"),
        xor: node.boolean("xor"),
        write_cas: number("write-cas"),
        row_active: number("row-active"),
        read_to_precharge: number("read-to-precharge"),
        column_gap: number("column-gap"),
        activate_gap: number("activate-gap"),
        four_activates: number("four-activates"),
        write_to_read: number("write-to-read"),
        read_to_write: number("read-to-write"),
    }
}
