//! Rules about what exists once in a system: the kernel, its memory and its unit.
//!
//! Why it exists: everything on a chip shares these, so they grow with the chip, and every accepted system must boot. What it deliberately
//! does not know: tiles and quotas.

use super::needs::{BORDER, PIECES, SELECTORS};
use super::tree::Tree;
use super::{MANAGER_PROGRAM, TILE_MEMORY};
use crate::units::Size;

impl Tree<'_, '_> {
    /// Checks the things that exist once in a system.
    pub(super) fn kernel(&mut self) {
        let system = self.system;
        self.spare();
        let kernel_tile = system
            .platform
            .tiles
            .iter()
            .find(|tile| tile.id == system.kernel_tile);
        let unit = kernel_tile.and_then(|tile| tile.dtu.as_ref());
        let there = unit.map_or(0, |unit| unit.endpoints as usize);
        let needed = system.kernel_endpoints();
        if there < needed {
            let what = format!(
                "the kernel needs {needed} endpoints for {} tiles, {} more than the unit of tile {} has",
                system.platform.tiles.len(),
                needed - there,
                system.kernel_tile
            );
            let help =
                format!("give that unit endpoints=\"{needed}\", or the platform fewer tiles");
            self.error(what, &self.places.managers[0].span, help);
        }
        let kernel = system.kernel_memory_below(0);
        let total = system.kernel_memory_most();
        if kernel > total {
            let what = format!(
                "applications and managers get {} of kernel memory, {} more than there is",
                Size(kernel),
                Size(kernel - total)
            );
            let mut nodes = self.places.managers.iter().chain(&self.places.apps);
            let largest = nodes.find_map(|node| {
                let mut limits = node
                    .children
                    .iter()
                    .filter(|child| child.rule.name == "limit");
                limits.find(|limit| limit.maybe_size("kernel-memory").is_some())
            });
            let root = &self.places.managers[0].span;
            let place = largest.map_or(root, |limit| limit.place("kernel-memory"));
            let help = format!(
                "lower kernel-memory, or leave something out: there is {}",
                Size(total)
            );
            self.error(what, place, help);
        }
        for manager in 1..system.managers.len() {
            let gates = system.border_gates(manager);
            let help = "put applications that talk to each other below the same manager";
            self.at_most(manager, (gates, BORDER), help, |name, more| {
                format!("{gates} gates lead across the border of manager `{name}`, {more} more than possible")
            });
        }
        for manager in 0..system.managers.len() {
            self.manager(manager);
            let needed = system.selectors_of(manager);
            let help = "put some of its applications below a manager of their own, or give them fewer gates";
            self.at_most(manager, (needed, SELECTORS), help, |name, more| {
                format!(
                    "manager `{name}` makes {needed} capabilities, {more} more than it can name"
                )
            });
        }
    }

    /// A manager can have only this many of something; otherwise `what` says by how many it exceeds that.
    fn at_most(
        &mut self,
        manager: usize,
        (count, most): (u64, u64),
        help: &str,
        what: impl Fn(&str, u64) -> String,
    ) {
        if count > most {
            let what = what(&self.system.managers[manager].name, count - most);
            self.error(what, &self.places.managers[manager].span, help);
        }
    }

    /// Checks what a manager makes itself and what it needs to know.
    fn manager(&mut self, manager: usize) {
        let system = self.system;
        let (own, node) = (&system.managers[manager], self.places.managers[manager]);
        let needed = system.manager_memory(manager);
        // Other programs must know themselves what they need.
        if own.program == MANAGER_PROGRAM && own.memory.0 < needed {
            let what = format!(
                "manager `{}` needs {} of memory to read its part of the description and to start what is in it, {} more than it has",
                own.name,
                Size(needed),
                Size(needed - own.memory.0)
            );
            let attribute = if manager == 0 {
                "manager-memory"
            } else {
                "memory"
            };
            let help = format!(
                "write {attribute}=\"{}\" or more, or leave it out",
                Size(needed)
            );
            self.error(what, node.place(attribute), help);
        }
        for memory in &system.platform.memories {
            let pieces = system.pieces_of(manager, memory.id);
            let help = "put some of its applications below a manager of their own, or give them memory of another tile";
            self.at_most(manager, (pieces, PIECES), help, |name, more| {
                format!(
                    "manager `{name}` cuts {pieces} pieces out of memory tile {}, {more} more than possible: one for each tile, region and manager below it",
                    memory.id
                )
            });
        }
    }

    /// Memory that managers' limits allow beyond the needs must also exist; it comes from the first memory.
    fn spare(&mut self) {
        let system = self.system;
        let Some(memory) = system.platform.memories.first() else {
            return;
        };
        let mut tiles = system.tiles_below(0);
        tiles.push(system.managers[0].tile);
        tiles.sort_unstable();
        tiles.dedup();
        let managers = system.managers.iter();
        let mut used = system
            .kernel_keeps()
            .saturating_add(TILE_MEMORY * tiles.len() as u64);
        used = managers.fold(used, |sum, manager| sum.saturating_add(manager.memory.0));
        for app in &system.apps {
            if app.memory_tile == memory.id {
                used = used.saturating_add(app.memory.0);
            }
            for gate in &app.mgates {
                let own = gate.of.is_none() && gate.module.is_none();
                if own && gate.memory_tile == memory.id {
                    used = used.saturating_add(gate.size.0);
                }
            }
        }
        for manager in 1..system.managers.len() {
            let spare = system.spare_memory(manager);
            let before = used;
            used = used.saturating_add(spare);
            if spare > 0 && before <= memory.size.0 && used > memory.size.0 {
                let node = self.places.managers[manager];
                let element = node.all("limit").find(|l| l.maybe_size("memory").is_some());
                let what = format!(
                    "the limit of manager `{}` allows {} beyond what is below it, {} more than memory tile {} has left",
                    system.managers[manager].name,
                    Size(spare),
                    Size(used - memory.size.0),
                    memory.id
                );
                let most = system.memory_below(manager) + (memory.size.0 - before);
                let place = element.map_or(&node.span, |element| element.place("memory"));
                self.error(what, place, format!("write at most memory=\"{most}B\""));
            }
        }
    }
}
