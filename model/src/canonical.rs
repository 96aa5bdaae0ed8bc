//! Canonical XML: every default and every placement written out, every quantity in one unit.
//!
//! Why it exists: the resource manager on the chip reads the description with few lines of code, and a result can record
//! exactly what was run. What it deliberately does not know: how the description looked before.
//!
//! Sizes are in `B`, rates in `B/s`, times in `ns`, frequencies in `Hz`. The output is a valid description; reading it
//! gives the same model. What is absent (a limit, a task) stays absent; variants are left out, because the output is one
//! run.

mod cluster;

use crate::platform::{
    Cache, Controller, Dram, Dtu, MemoryPolicy, Network, Pipeline, Platform, PlatformKind,
    Replacement, Spread, Topology,
};
use crate::system::{App, ModuleSource, Quotas, Scope, System, TileLimit};
use crate::tree::Element;
use crate::units::{Frequency, Rate, Size, Time};

/// The description for the resource manager on the chip: without the platform's parameters.
pub fn for_chip(system: &System) -> String {
    let mut writer = Writer::default();
    write_system(&mut writer, system, false);
    writer.text
}

/// The whole description with the platform inside; it needs no other file.
pub fn complete(system: &System) -> String {
    let mut writer = Writer::default();
    write_system(&mut writer, system, true);
    writer.text
}

/// The description of a platform.
pub fn platform(platform: &Platform) -> String {
    let mut writer = Writer::default();
    write_platform(&mut writer, platform);
    writer.text
}

/// A description as it was written, changes included: elements and attributes in their order, without comments.
pub fn description(root: &Element) -> String {
    fn visit(writer: &mut Writer, element: &Element) {
        writer.start(&element.name);
        for attribute in &element.attributes {
            writer.attribute(&attribute.name, &attribute.value);
        }
        for child in &element.children {
            visit(writer, child);
        }
        writer.end();
    }
    let mut writer = Writer::default();
    visit(&mut writer, root);
    writer.text
}

/// Writes elements with indentation.
#[derive(Default)]
pub(crate) struct Writer {
    text: String,
    open: Vec<String>,
    /// The last start tag has no `>` yet.
    pending: bool,
}

impl Writer {
    /// The text.
    pub(crate) fn finish(self) -> String {
        self.text
    }

    pub(crate) fn start(&mut self, name: &str) -> &mut Self {
        if self.pending {
            self.text.push_str(">\n");
        }
        self.text.push_str(&"  ".repeat(self.open.len()));
        self.text.push('<');
        self.text.push_str(name);
        self.open.push(name.to_owned());
        self.pending = true;
        self
    }

    pub(crate) fn attribute(&mut self, name: &str, value: impl std::fmt::Display) -> &mut Self {
        self.text.push(' ');
        self.text.push_str(name);
        self.text.push_str("=\"");
        for character in value.to_string().chars() {
            match character {
                '&' => self.text.push_str("&amp;"),
                '<' => self.text.push_str("&lt;"),
                '"' => self.text.push_str("&quot;"),
                // A reader turns plain white space in attributes into blanks.
                '\n' | '\t' | '\r' => self.text.push_str(&format!("&#{};", u32::from(character))),
                other => self.text.push(other),
            }
        }
        self.text.push('"');
        self
    }

    pub(crate) fn optional(
        &mut self,
        name: &str,
        value: Option<impl std::fmt::Display>,
    ) -> &mut Self {
        match value {
            Some(value) => self.attribute(name, value),
            None => self,
        }
    }

    pub(crate) fn size(&mut self, name: &str, size: Size) -> &mut Self {
        self.attribute(name, format_args!("{}B", size.0))
    }

    fn optional_size(&mut self, name: &str, size: Option<Size>) -> &mut Self {
        match size {
            Some(size) => self.size(name, size),
            None => self,
        }
    }

    fn bytes(&mut self, name: &str, bytes: u32) -> &mut Self {
        self.size(name, Size(u64::from(bytes)))
    }

    fn rate(&mut self, name: &str, rate: Rate) -> &mut Self {
        self.attribute(name, format_args!("{}B/s", rate.0))
    }

    pub(crate) fn time(&mut self, name: &str, time: Time) -> &mut Self {
        self.attribute(name, format_args!("{}ns", time.nanoseconds()))
    }

    fn frequency(&mut self, name: &str, frequency: Frequency) -> &mut Self {
        self.attribute(name, format_args!("{}Hz", frequency.0))
    }

    pub(crate) fn end(&mut self) {
        let Some(name) = self.open.pop() else { return };
        if self.pending {
            self.text.push_str("/>\n");
        } else {
            self.text.push_str(&"  ".repeat(self.open.len()));
            self.text.push_str(&format!("</{name}>\n"));
        }
        self.pending = false;
    }
}

fn write_system(writer: &mut Writer, system: &System, complete: bool) {
    if let Some(one_shot) = &system.one_shot {
        return crate::system::oneshot::write(writer, system, one_shot);
    }
    let root = &system.managers[0];
    writer.start("system").attribute("name", &system.name);
    if !complete {
        writer.attribute("platform", &system.platform.name);
    }
    writer
        .time("duration", system.duration)
        .attribute("manager-tile", root.tile)
        .size("manager-memory", root.memory)
        .optional("about", system.about.as_ref());
    if complete {
        write_platform(writer, &system.platform);
    }
    write_subsystem(writer, system, 0, complete);
    for mux in &system.tilemux {
        writer
            .start("tilemux")
            .attribute("tile", mux.tile)
            .attribute("policy", mux.policy.name())
            .time("slice", mux.slice)
            .end();
    }
    for module in system.modules.iter().filter(|_| complete) {
        writer.start("module").attribute("name", &module.name);
        match &module.source {
            ModuleSource::File(file) => writer.attribute("file", file),
            ModuleSource::Folder(folder, size) => {
                writer.attribute("folder", folder).size("size", *size)
            }
        };
        writer.end();
    }
    // What joins chips is nothing for the manager of one.
    if complete {
        system
            .cables
            .iter()
            .for_each(|cable| crate::system::write_cable(writer, cable));
        if let Some(peer) = &system.peer {
            writer.start("peer").attribute("name", &peer.name);
            write_system(writer, &peer.system, true);
            writer.end();
        }
    }
    for flow in &system.flows {
        writer
            .start("flow")
            .attribute("name", &flow.name)
            .attribute("from", &system.apps[flow.from].name)
            .attribute("to", &system.apps[flow.to].name);
        if let Some(deadline) = flow.deadline {
            writer.time("deadline", deadline);
        }
        writer.end();
    }
    writer.end();
}

fn write_subsystem(writer: &mut Writer, system: &System, manager: usize, complete: bool) {
    for (index, domain) in system.domains.iter().enumerate() {
        if domain.manager != manager {
            continue;
        }
        writer
            .start("domain")
            .attribute(
                "name",
                if complete {
                    &domain.local
                } else {
                    &domain.name
                },
            )
            .attribute("criticality", domain.criticality);
        for app in system.apps.iter().filter(|app| app.domain == index) {
            write_app(writer, system, app, complete);
        }
        writer.end();
    }
    for (index, below) in system.managers.iter().enumerate() {
        if below.parent == Some(manager) {
            writer
                .start("manager")
                .attribute("name", &below.name)
                .attribute("tile", below.tile)
                .attribute("program", &below.program)
                .size("memory", below.memory);
            write_limits(writer, system, index, complete);
            write_subsystem(writer, system, index, complete);
            writer.end();
        }
    }
}

/// The bounds of what is below a manager. The chip's manager reads them for each tile, with what follows from the description
/// where it says nothing: memory, kernel memory, and endpoints and page tables on tiles that others use, too.
fn write_limits(writer: &mut Writer, system: &System, index: usize, complete: bool) {
    let manager = &system.managers[index];
    let mut limits = manager.limits.clone();
    let mut kernel_memory = manager.kernel_memory;
    let mut memory = manager.user_memory;
    if !complete {
        kernel_memory = Some(Size(system.kernel_memory_of(index)));
        memory = memory.or(Some(Size(system.memory_below(index))));
        limits = Vec::new();
        for tile in system.tiles_below(index) {
            let sum = system.on_tile(index, tile);
            let is_shared = system.on_tile(0, tile).activities > sum.activities
                || system.managers[0].tile == tile;
            let own = manager.limit(tile).copied();
            let usual = |needed: u64| is_shared.then_some(needed);
            limits.push(TileLimit {
                tile: Some(tile),
                noc: own.and_then(|own| own.noc),
                endpoints: own.and_then(|own| own.endpoints).or(usual(sum.endpoints)),
                page_tables: own.and_then(|own| own.page_tables).or(usual(sum.tables)),
                activities: Some(system.places_below(index, tile)),
            });
        }
        limits.push(TileLimit::default());
    }
    for limit in &limits {
        // Only the chip's manager is told: it follows from what is below.
        let tile = limit.tile.filter(|_| !complete);
        let windows = tile.map(|tile| system.windows_below(index, tile));
        writer.start("limit").optional("tile", limit.tile);
        if let Some(noc) = limit.noc {
            writer.rate("noc", noc.noc).size("burst", noc.burst);
        }
        writer
            .optional("endpoints", limit.endpoints)
            .optional("page-tables", limit.page_tables)
            .optional("activities", limit.activities)
            .optional("windows", windows);
        // Sums over all tiles stand in the element for all tiles, as they were read.
        if limit.tile.is_none() {
            writer.optional_size("kernel-memory", kernel_memory);
            writer.optional_size("memory", memory);
        }
        writer.end();
    }
    if let Some(cpu) = manager.cpu {
        writer
            .start("cpu")
            .time("quota", cpu.budget)
            .time("period", cpu.period);
        if cpu.priority > 0 {
            writer.attribute("priority", cpu.priority);
        }
        writer.end();
    }
}

fn write_app(writer: &mut Writer, system: &System, app: &App, complete: bool) {
    writer
        .start("app")
        .attribute("name", if complete { &app.local } else { &app.name })
        .attribute("tile", app.tile)
        .attribute("program", &app.program)
        .size("memory", app.memory)
        .optional_size("stack", app.stack)
        .attribute("memory-tile", app.memory_tile)
        .attribute("background", app.background);
    if app.device {
        writer.attribute("device", "network-card");
    }
    if app.lazy_heap {
        writer.attribute("heap", "lazy");
    }
    if let Some(pager) = app.pager.map(|index| &system.apps[index]) {
        let name = if complete { &pager.local } else { &pager.name };
        writer.attribute("pager", name);
    }
    for argument in &app.arguments {
        writer
            .start("argument")
            .attribute("name", &argument.name)
            .attribute("value", &argument.value)
            .end();
    }
    let mut quotas = app.quotas;
    // The manager on the chip does not know what services need.
    if !complete && app.clients() > 0 {
        quotas.kernel_memory = Some(Size(app.kernel_memory()));
    }
    // Nor what others leave.
    if !complete {
        quotas.activities = Some(system.places_of(app));
    }
    if app.limit.is_some() || quotas != Quotas::default() {
        writer.start("limit");
        if let Some(limit) = app.limit {
            writer.rate("noc", limit.noc).size("burst", limit.burst);
        }
        writer
            .optional("endpoints", quotas.endpoints)
            .optional("page-tables", quotas.page_tables)
            .optional("activities", quotas.activities)
            .optional_size("kernel-memory", quotas.kernel_memory)
            .end();
    }
    if let Some(cpu) = app.cpu {
        writer
            .start("cpu")
            .time("quota", cpu.budget)
            .time("period", cpu.period);
        // What the chip's manager reads is always there; 0 is no value of a description.
        if !complete || cpu.priority > 0 {
            writer.attribute("priority", cpu.priority);
        }
        writer.end();
    }
    if let Some(task) = &app.task {
        writer
            .start("task")
            .time("period", task.period)
            .time("deadline", task.deadline);
        if let Some(cost) = task.cost {
            writer.time("cost", cost);
        }
        writer.attribute("misses", task.misses);
        // The resource manager on the chip needs no more.
        if complete {
            if task.name != app.name {
                writer.attribute("name", &task.name);
            }
            if task.criticality != system.domains[app.domain].criticality {
                writer.attribute("criticality", task.criticality);
            }
            crate::tasks::write_details(writer, task);
        }
        writer.end();
    }
    for service in &app.services {
        writer
            .start("service")
            .optional("name", service.name.as_ref())
            .attribute("sessions", service.sessions)
            .attribute("scope", service.scope.name());
        if service.restarts > 0 {
            writer
                .attribute("restart", "on-failure")
                .attribute("restarts", service.restarts);
        }
        writer.end();
    }
    for gate in &app.rgates {
        writer
            .start("rgate")
            .attribute("name", &gate.name)
            .attribute("slots", gate.slots)
            .bytes("slot-size", gate.slot_size);
        if complete {
            writer.optional("global", gate.global.as_ref());
        }
        if complete && gate.scope != Scope::System {
            writer.attribute("scope", gate.scope.name());
        }
        writer.end();
    }
    for gate in &app.sgates {
        let to = &system.apps[gate.to];
        if let Some(priority) = gate.session {
            let service = to.service_of(&to.rgates[gate.gate].name);
            writer
                .start("session")
                .attribute("name", &gate.name)
                .attribute("to", &to.name)
                .optional("service", service.and_then(|service| service.name.as_ref()))
                .attribute("priority", priority)
                .attribute("credits", gate.credits)
                .attribute("label", gate.label)
                .time("patience", gate.patience)
                .end();
            continue;
        }
        writer
            .start("sgate")
            .attribute("name", &gate.name)
            .attribute("to", &to.name)
            .attribute("gate", &to.rgates[gate.gate].name)
            .attribute("credits", credits(gate.credits))
            .attribute("label", gate.label)
            .time("patience", gate.patience)
            .end();
    }
    for gate in &app.mgates {
        let rights = match (gate.read, gate.write) {
            (true, true) => "rw",
            (true, false) => "r",
            _ => "w",
        };
        writer
            .start("mgate")
            .attribute("name", &gate.name)
            .optional_size("size", (gate.size.0 > 0).then_some(gate.size))
            .attribute("rights", rights)
            .attribute("memory-tile", gate.memory_tile)
            .optional("module", gate.module.map(|m| &system.modules[m].name))
            .optional("fill", gate.fill.map(|m| &system.modules[m].name))
            .optional(
                "of",
                gate.of.map(|(app, gate)| {
                    let owner = &system.apps[app];
                    format!("{}/{}", owner.name, owner.mgates[gate].name)
                }),
            );
        if complete && gate.scope != Scope::Manager {
            writer.attribute("scope", gate.scope.name());
        }
        writer.end();
    }
    writer.end();
}

/// Credits as a description writes them.
fn credits(credits: u32) -> String {
    match credits {
        0 => "unlimited".to_owned(),
        counted => counted.to_string(),
    }
}

pub(crate) fn write_platform(writer: &mut Writer, platform: &Platform) {
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
    cluster::write(writer, platform);
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
    for memory in &platform.memories {
        writer
            .start("memory")
            .attribute("id", memory.id)
            .attribute("dram", &memory.dram.name)
            .size("size", memory.size)
            .attribute("router", memory.router);
        close(writer, platform, &format!("memory[{}]", memory.id));
    }
    writer.end();
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

/// Writes where the values come from, and ends the element.
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
        .attribute("model", "inorder")
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
    close(writer, platform, &format!("cache[{}]", part.name));
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
    if let Some(controller) = &part.controller {
        write_controller(writer, platform, &part.name, controller);
    }
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
        .optional("read-interval", part.read_interval);
    close(writer, platform, "network");
}
