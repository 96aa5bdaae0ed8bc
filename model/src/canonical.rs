//! Canonical XML: every default and every placement written out, every quantity in one unit.
//!
//! Why it exists: the resource manager on the chip reads the description with few lines of code, and a result can record
//! exactly what was run. What it deliberately does not know: how the original description looked.
//!
//! Sizes are in `B`, rates in `B/s`, times in `ns`, frequencies in `Hz`. The output is a valid description; reading it
//! gives the same model. Absent parts (a limit, a task) stay absent. Variants are left out because the output is one
//! run.

use crate::platform::{self, Platform};
use crate::system::{self, System};
use crate::tree::Element;
use crate::writer::Writer;

/// The description for the resource manager on the chip: without the platform's parameters.
pub fn for_chip(system: &System) -> String {
    let mut writer = Writer::default();
    system::write(&mut writer, system, false);
    writer.finish()
}

/// The whole description with the platform inside; it needs no other file.
pub fn complete(system: &System) -> String {
    let mut writer = Writer::default();
    system::write(&mut writer, system, true);
    writer.finish()
}

/// The description of a platform.
pub fn platform(platform: &Platform) -> String {
    let mut writer = Writer::default();
    platform::write(&mut writer, platform);
    writer.finish()
}

/// A description as it was written, changes included: elements and attributes in order, without comments.
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
    writer.finish()
}
