//! A system without a kernel as canonical XML.
//!
//! Why it exists: a result records exactly what was run. What it deliberately does not know: see the parent module.

use super::{Bare, Coupled};
use crate::platform::{self, PlatformKind};
use crate::system::{System, parts};
use crate::writer::Writer;

/// Writes the whole description; it needs no other file.
pub(crate) fn write(writer: &mut Writer, system: &System, bare: &Bare) {
    writer
        .start("system")
        .attribute("name", &system.name)
        .attribute("paradigm", "bare")
        .time("duration", system.duration)
        .optional("about", system.about.as_ref());
    platform::write(writer, &system.platform);
    for (index, domain) in system.domains.iter().enumerate() {
        writer
            .start("domain")
            .attribute("name", &domain.name)
            .attribute("criticality", domain.criticality);
        let apps = system.apps.iter().zip(&bare.programs);
        for (app, placed) in apps.filter(|(app, _)| app.domain == index) {
            let harts: Vec<String> = placed.harts.iter().map(u16::to_string).collect();
            writer
                .start("app")
                .attribute("name", &app.name)
                .attribute("tile", app.tile)
                .attribute("harts", harts.join(","))
                .attribute("program", &app.program);
            let kind = system.platform.kind;
            let coupled = placed.tcm == Some(Coupled::Program);
            if kind != PlatformKind::Mesh && !coupled {
                writer.size("memory", app.memory);
                let first = system.platform.memories.first();
                if first.is_none_or(|memory| memory.id != app.memory_tile) {
                    writer.attribute("memory-tile", app.memory_tile);
                }
            }
            if kind == PlatformKind::Bare && !coupled {
                writer.attribute("at", format_args!("{:#x}", placed.base));
            }
            if let Some((first, ways)) = placed.ways {
                writer.attribute("ways", format_args!("{first}-{}", first + ways - 1));
            }
            if let Some(share) = placed.share {
                share.write(writer);
            }
            let tcm = placed.tcm.map(|what| match what {
                Coupled::Program => "program",
                Coupled::Stack { .. } => "stack",
            });
            writer.optional("tcm", tcm);
            let rings = placed.rings.iter();
            let rings: Vec<&str> = rings.map(|app| &*system.apps[*app].name).collect();
            writer.optional("rings", (!rings.is_empty()).then(|| rings.join(" ")));
            parts::write_arguments(writer, app);
            for attached in &placed.attached {
                let id = attached.peripheral;
                let mut peripherals = system.platform.peripherals.iter();
                let Some(peripheral) = peripherals.find(|one| one.id == id) else {
                    continue;
                };
                writer
                    .start("attach")
                    .attribute("peripheral", &peripheral.name)
                    .optional("file", attached.file.as_ref());
                writer.end();
            }
            parts::write_task(writer, system, app, true);
            writer.end();
        }
        writer.end();
    }
    parts::write_flows(writer, system);
    writer.end();
}
