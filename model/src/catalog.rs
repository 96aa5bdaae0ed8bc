//! The descriptions that come with the program.
//!
//! Why it exists: `bulkhead` works without its source tree. What it deliberately does not know: what is in them. A test
//! compares these tables with the files of `catalog/`.

/// Names and texts of the platforms.
pub const PLATFORMS: &[(&str, &str)] = &[
    (
        "epiphany3",
        include_str!("../../catalog/platforms/epiphany3.xml"),
    ),
    (
        "epiphany3-clocks",
        include_str!("../../catalog/platforms/epiphany3-clocks.xml"),
    ),
    (
        "epiphany5",
        include_str!("../../catalog/platforms/epiphany5.xml"),
    ),
    ("imx6", include_str!("../../catalog/platforms/imx6.xml")),
    (
        "imx6-devices",
        include_str!("../../catalog/platforms/imx6-devices.xml"),
    ),
    (
        "imx6-ooo",
        include_str!("../../catalog/platforms/imx6-ooo.xml"),
    ),
    (
        "imx6-solo",
        include_str!("../../catalog/platforms/imx6-solo.xml"),
    ),
    (
        "linux-pair",
        include_str!("../../catalog/platforms/linux-pair.xml"),
    ),
    ("single", include_str!("../../catalog/platforms/single.xml")),
    (
        "single-ooo",
        include_str!("../../catalog/platforms/single-ooo.xml"),
    ),
    (
        "tiled-256",
        include_str!("../../catalog/platforms/tiled-256.xml"),
    ),
    (
        "tiled-2ghz",
        include_str!("../../catalog/platforms/tiled-2ghz.xml"),
    ),
    (
        "tiled-2ghz-ooo",
        include_str!("../../catalog/platforms/tiled-2ghz-ooo.xml"),
    ),
    (
        "tiled-64",
        include_str!("../../catalog/platforms/tiled-64.xml"),
    ),
    (
        "tiled-accelerated",
        include_str!("../../catalog/platforms/tiled-accelerated.xml"),
    ),
    (
        "tiled-ddr3",
        include_str!("../../catalog/platforms/tiled-ddr3.xml"),
    ),
    (
        "tiled-star",
        include_str!("../../catalog/platforms/tiled-star.xml"),
    ),
    (
        "tiled-star-ooo",
        include_str!("../../catalog/platforms/tiled-star-ooo.xml"),
    ),
    ("tx2", include_str!("../../catalog/platforms/tx2.xml")),
    (
        "tx2-coherent",
        include_str!("../../catalog/platforms/tx2-coherent.xml"),
    ),
    ("virt", include_str!("../../catalog/platforms/virt.xml")),
    (
        "virt-qos",
        include_str!("../../catalog/platforms/virt-qos.xml"),
    ),
    (
        "virt-shares",
        include_str!("../../catalog/platforms/virt-shares.xml"),
    ),
    ("zcu102", include_str!("../../catalog/platforms/zcu102.xml")),
    (
        "zcu102-colours",
        include_str!("../../catalog/platforms/zcu102-colours.xml"),
    ),
];

/// Former names of entries, which still work wherever a name is allowed: the old name, then the entry's.
const ALIASES: &[(&str, &str)] = &[("tiled-gem5", "tiled-2ghz"), ("tiled-fpga", "tiled-star")];

/// Names and texts of the systems.
pub const SYSTEMS: &[(&str, &str)] = &[
    (
        "accelerators",
        include_str!("../../catalog/systems/accelerators.xml"),
    ),
    (
        "accelerators-files",
        include_str!("../../catalog/systems/accelerators-files.xml"),
    ),
    (
        "bare/clusters",
        include_str!("../../catalog/systems/bare/clusters.xml"),
    ),
    (
        "bare/coherent",
        include_str!("../../catalog/systems/bare/coherent.xml"),
    ),
    (
        "bare/colours",
        include_str!("../../catalog/systems/bare/colours.xml"),
    ),
    (
        "bare/devices",
        include_str!("../../catalog/systems/bare/devices.xml"),
    ),
    (
        "bare/doorbells",
        include_str!("../../catalog/systems/bare/doorbells.xml"),
    ),
    (
        "bare/guarded",
        include_str!("../../catalog/systems/bare/guarded.xml"),
    ),
    (
        "bare/handover",
        include_str!("../../catalog/systems/bare/handover.xml"),
    ),
    (
        "bare/partitions",
        include_str!("../../catalog/systems/bare/partitions.xml"),
    ),
    (
        "bare/ports",
        include_str!("../../catalog/systems/bare/ports.xml"),
    ),
    (
        "bare/shares",
        include_str!("../../catalog/systems/bare/shares.xml"),
    ),
    (
        "bare/streams",
        include_str!("../../catalog/systems/bare/streams.xml"),
    ),
    (
        "bare/tcm",
        include_str!("../../catalog/systems/bare/tcm.xml"),
    ),
    (
        "m3/attack-buffers",
        include_str!("../../catalog/systems/m3/attack-buffers.xml"),
    ),
    (
        "m3/attack-endpoints",
        include_str!("../../catalog/systems/m3/attack-endpoints.xml"),
    ),
    (
        "m3/attack-kernel-memory",
        include_str!("../../catalog/systems/m3/attack-kernel-memory.xml"),
    ),
    (
        "m3/attack-slow",
        include_str!("../../catalog/systems/m3/attack-slow.xml"),
    ),
    (
        "m3/attack-storm",
        include_str!("../../catalog/systems/m3/attack-storm.xml"),
    ),
    (
        "m3/interference",
        include_str!("../../catalog/systems/m3/interference.xml"),
    ),
    (
        "m3/interference-messages",
        include_str!("../../catalog/systems/m3/interference-messages.xml"),
    ),
    (
        "m3/priorities",
        include_str!("../../catalog/systems/m3/priorities.xml"),
    ),
    (
        "m3/regulation",
        include_str!("../../catalog/systems/m3/regulation.xml"),
    ),
    (
        "m3/roundtrip",
        include_str!("../../catalog/systems/m3/roundtrip.xml"),
    ),
    (
        "m3/sleep",
        include_str!("../../catalog/systems/m3/sleep.xml"),
    ),
    (
        "m3/storm",
        include_str!("../../catalog/systems/m3/storm.xml"),
    ),
    (
        "m3/switch",
        include_str!("../../catalog/systems/m3/switch.xml"),
    ),
    (
        "memory-policies",
        include_str!("../../catalog/systems/memory-policies.xml"),
    ),
    (
        "network/far",
        include_str!("../../catalog/systems/network/far.xml"),
    ),
    (
        "network/two-chips",
        include_str!("../../catalog/systems/network/two-chips.xml"),
    ),
    (
        "oneshot/clocks",
        include_str!("../../catalog/systems/oneshot/clocks.xml"),
    ),
    (
        "oneshot/guarded",
        include_str!("../../catalog/systems/oneshot/guarded.xml"),
    ),
    (
        "oneshot/host",
        include_str!("../../catalog/systems/oneshot/host.xml"),
    ),
    (
        "oneshot/log",
        include_str!("../../catalog/systems/oneshot/log.xml"),
    ),
    (
        "oneshot/notify",
        include_str!("../../catalog/systems/oneshot/notify.xml"),
    ),
    (
        "oneshot/pair",
        include_str!("../../catalog/systems/oneshot/pair.xml"),
    ),
    (
        "oneshot/parallel",
        include_str!("../../catalog/systems/oneshot/parallel.xml"),
    ),
    (
        "oneshot/pipeline",
        include_str!("../../catalog/systems/oneshot/pipeline.xml"),
    ),
    (
        "oneshot/queue",
        include_str!("../../catalog/systems/oneshot/queue.xml"),
    ),
    ("pager", include_str!("../../catalog/systems/pager.xml")),
    (
        "quickstart",
        include_str!("../../catalog/systems/quickstart.xml"),
    ),
];

/// Names and texts of the task systems.
pub const TASKS: &[(&str, &str)] = &[
    ("audsley", include_str!("../../catalog/tasks/audsley.xml")),
    ("global", include_str!("../../catalog/tasks/global.xml")),
    ("mc2", include_str!("../../catalog/tasks/mc2.xml")),
    ("one-shot", include_str!("../../catalog/tasks/one-shot.xml")),
    ("prem", include_str!("../../catalog/tasks/prem.xml")),
    (
        "regulated",
        include_str!("../../catalog/tasks/regulated.xml"),
    ),
    (
        "six-tasks",
        include_str!("../../catalog/tasks/six-tasks.xml"),
    ),
    (
        "three-phase",
        include_str!("../../catalog/tasks/three-phase.xml"),
    ),
    (
        "time-triggered",
        include_str!("../../catalog/tasks/time-triggered.xml"),
    ),
];

/// The system that runs if none is named.
pub const DEFAULT_SYSTEM: &str = "quickstart";

/// Name and text of an entry, by its current or former name.
pub(crate) fn find(
    table: &[(&'static str, &'static str)],
    name: &str,
) -> Option<(&'static str, &'static str)> {
    let alias = ALIASES.iter().find(|alias| alias.0 == name);
    let name = alias.map_or(name, |alias| alias.1);
    table.iter().find(|entry| entry.0 == name).copied()
}
