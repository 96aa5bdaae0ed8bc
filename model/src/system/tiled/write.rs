//! A system of the tiled OS as XML.
//!
//! Why it exists: the resource manager on the chip reads the description with few lines of code, and a result records exactly what was
//! run. What it deliberately does not know: how the original description looked.

use crate::platform;
use crate::system::{App, ModuleSource, Quotas, Scope, System, TileLimit, parts};
use crate::units::Size;
use crate::writer::Writer;

/// Writes a system of the tiled OS. `complete`: with the platform and with what the chip's manager does not need.
pub(in crate::system) fn write(writer: &mut Writer, system: &System, complete: bool) {
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
        platform::write(writer, &system.platform);
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
    // Connections between chips do not concern the manager of one chip.
    if complete {
        system
            .cables
            .iter()
            .for_each(|cable| crate::system::cable::write(writer, cable));
        if let Some(peer) = &system.peer {
            writer.start("peer").attribute("name", &peer.name);
            crate::system::write(writer, &peer.system, true);
            writer.end();
        }
    }
    parts::write_flows(writer, system);
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

/// The limits of what is below a manager. The chip's manager reads them for each tile, with derived values where the description gives
/// none: memory, kernel memory, and endpoints and page tables on tiles that others use, too.
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
        // Only for the chip's manager: it follows from what is below.
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
        // Sums over all tiles are in the element for all tiles, as they were read.
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
    parts::write_arguments(writer, app);
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
        // Values that the chip's manager reads are always present; 0 is not a value that a description can have.
        if !complete || cpu.priority > 0 {
            writer.attribute("priority", cpu.priority);
        }
        writer.end();
    }
    parts::write_task(writer, system, app, complete);
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

/// Credits in the form used by descriptions.
fn credits(credits: u32) -> String {
    match credits {
        0 => "unlimited".to_owned(),
        counted => counted.to_string(),
    }
}
