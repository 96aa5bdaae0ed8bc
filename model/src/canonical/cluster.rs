//! The clusters of a platform in canonical form.
//!
//! Why it exists: partitions are the only parts of a platform's part with elements of their own, besides the controller of a memory. What it
//! deliberately does not know: which rules they keep.

use super::{Writer, close};
use crate::platform::Platform;

/// Writes every `<cluster>`.
pub(super) fn write(writer: &mut Writer, platform: &Platform) {
    for part in &platform.clusters {
        writer
            .start("cluster")
            .attribute("name", &part.name)
            .attribute("harts", part.harts)
            .attribute("up", part.up)
            .attribute("down", part.down)
            .attribute("banks", part.banks)
            .attribute("occupancy", part.occupancy)
            .attribute("hold", part.hold);
        for partition in &part.partitions {
            writer
                .start("partition")
                .attribute("hart", partition.hart)
                .attribute("first", partition.first)
                .attribute("ways", partition.ways)
                .end();
        }
        close(writer, platform, &format!("cluster[{}]", part.name));
    }
}
