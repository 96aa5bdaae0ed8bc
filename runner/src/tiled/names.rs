//! Names of the tiled OS: activities, tiles, memories.
//!
//! Why it exists: numbers of activities are the kernel's own; its console
//! tells them when it matters, and a tile with a single application needs no telling. What it deliberately does not know:
//! what was measured.

use crate::names::{Names, Naming};
use bulkhead_abi::dtu::{IDLE_ACTIVITY, TILEMUX_ACTIVITY};
use bulkhead_abi::tilemux::KERNEL_ACTIVITY;
use bulkhead_machine::types::Owner;
use bulkhead_model::System;
use std::collections::BTreeMap;

/// The first activity that the kernel makes: the root manager.
const MANAGER: usize = KERNEL_ACTIVITY as usize + 1;
/// Activities that the kernel can have.
const ACTIVITIES: u16 = 32;

/// Names of a system's parts.
#[derive(Clone, Debug, Default)]
pub struct TiledNames {
    kernel_tile: u16,
    /// Applications and managers of a tile.
    tiles: BTreeMap<u16, Vec<String>>,
    activities: BTreeMap<u16, String>,
    /// Tile and name of each application, in the order in which a single manager creates them.
    order: Vec<(u16, String)>,
}

/// Names for `system`; `console` is what its kernel printed.
pub fn of(system: &System, console: &str) -> Names {
    Names::of(TiledNames::new(system, console))
}

/// Something that the kernel said about an activity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// Number.
    pub activity: u16,
    /// Name.
    pub name: String,
    /// Tile.
    pub tile: u16,
    /// What: `stopped: exit 0`.
    pub what: String,
}

/// Reads `kernel: activity N (name) on tile T what`. Only the kernel can begin a line so.
pub fn notice(line: &str) -> Option<Notice> {
    let rest = line.strip_prefix("kernel: activity ")?;
    let (number, rest) = rest.split_once(" (")?;
    let (name, rest) = rest.split_once(") on tile ")?;
    let (tile, what) = rest.split_once(' ')?;
    Some(Notice {
        activity: number.parse().ok()?,
        name: name.to_owned(),
        tile: tile.parse().ok()?,
        what: what.trim().to_owned(),
    })
}

/// What a kernel printed, with the names of the description in the place of their paths. The kernel says who is who by the path
/// from the root manager, which nobody can choose; whoever is not in the description keeps it.
pub fn described(system: &System, console: &str) -> String {
    let path = |manager: usize, name: &str| {
        let mut path = name.to_owned();
        let mut at = Some(manager);
        while let Some(index) = at {
            let manager = &system.managers[index];
            path = format!("{}/{path}", manager.name);
            at = manager.parent;
        }
        path
    };
    let mut known = BTreeMap::new();
    for (index, app) in system.apps.iter().enumerate() {
        known.insert(path(system.manager_of(index), &app.name), app.name.as_str());
    }
    for manager in &system.managers {
        if let Some(parent) = manager.parent {
            known.insert(path(parent, &manager.name), manager.name.as_str());
        }
    }
    let mut text = String::with_capacity(console.len());
    for line in console.split_inclusive('\n') {
        let parts = [
            ("[", "] "),
            ("kernel: activity ", ") on tile "),
            ("kernel: books: ", " has "),
        ];
        let found = parts.iter().find_map(|(before, behind)| {
            let rest = line.strip_prefix(before)?;
            // A notice has the number first.
            let start = match *behind {
                ") on tile " => rest.find(" (")? + 2,
                _ => 0,
            };
            let end = start + rest[start..].find(behind)?;
            let name = known.get(&rest[start..end])?;
            let offset = before.len();
            Some((&line[..offset + start], *name, &line[offset + end..]))
        });
        match found {
            Some((head, name, tail)) => text.extend([head, name, tail]),
            None => text.push_str(line),
        }
    }
    text
}

impl TiledNames {
    /// Names for `system`; `console` is what its kernel printed.
    pub fn new(system: &System, console: &str) -> Self {
        let mut tiles: BTreeMap<u16, Vec<String>> = BTreeMap::new();
        for app in &system.apps {
            tiles.entry(app.tile).or_default().push(app.name.clone());
        }
        for manager in &system.managers {
            tiles
                .entry(manager.tile)
                .or_default()
                .push(manager.name.clone());
        }
        Self {
            kernel_tile: system.kernel_tile,
            tiles,
            order: if system.managers.len() == 1 {
                let apps = system.apps.iter();
                apps.map(|app| (app.tile, app.name.clone())).collect()
            } else {
                Vec::new()
            },
            activities: console
                .lines()
                .filter_map(notice)
                .map(|notice| (notice.activity, notice.name))
                .collect(),
        }
    }
}

impl Naming for TiledNames {
    fn on_tile(&self, tile: u16) -> Vec<String> {
        if tile == self.kernel_tile {
            return vec!["kernel".to_owned()];
        }
        self.tiles.get(&tile).cloned().unwrap_or_default()
    }

    fn all(&self) -> Vec<(Owner, String)> {
        let mut all = Vec::new();
        for &tile in self.tiles.keys() {
            for activity in KERNEL_ACTIVITY + 1..ACTIVITIES {
                let owner = Owner::new(tile, activity);
                all.push((owner, self.owner(owner)));
            }
        }
        all
    }

    fn owner(&self, owner: Owner) -> String {
        let Owner { tile, activity } = owner;
        if tile == self.kernel_tile {
            return "kernel".to_owned();
        }
        if let Some(name) = self.activities.get(&activity) {
            return name.clone();
        }
        let here = self.tiles.get(&tile).map_or(&[][..], Vec::as_slice);
        match (activity, here) {
            (TILEMUX_ACTIVITY, [one]) => format!("{one} (TileMux)"),
            (TILEMUX_ACTIVITY, _) => format!("TileMux of tile {tile}"),
            (IDLE_ACTIVITY, [one]) => one.clone(),
            (IDLE_ACTIVITY, _) => format!("tile {tile}"),
            (KERNEL_ACTIVITY, []) => format!("tile {tile}"),
            (_, [one]) => one.clone(),
            // The kernel counts activities from the manager on.
            (_, _) => match self
                .order
                .get(usize::from(activity).wrapping_sub(MANAGER + 1))
            {
                Some((its_tile, name)) if *its_tile == tile => name.clone(),
                _ if usize::from(activity) == MANAGER => "root".to_owned(),
                _ => format!("activity {activity} on tile {tile}"),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bulkhead_model::{LoadOptions, load_system};

    #[test]
    fn the_kernels_notices_are_read() {
        let line = "kernel: activity 7 (hog-1) on tile 5 stopped: load page fault at 0x10000040, value 0x0";
        let got = notice(line).expect("a notice");
        assert_eq!((got.activity, got.name.as_str(), got.tile), (7, "hog-1", 5));
        assert!(got.what.starts_with("stopped: load page fault"));
        for odd in [
            "",
            "kernel: activity",
            "kernel: activity x (a) on tile 1 b",
            "[sensor] activity 1 (a) on tile 1 b",
            "[sensor] kernel: activity 1 (a) on tile 1 b",
        ] {
            assert_eq!(notice(odd), None, "{odd}");
        }
    }

    #[test]
    fn only_the_kernels_paths_become_names_of_the_description() {
        let system = load_system("quickstart", &LoadOptions::default()).expect("valid");
        let said = "[root] begins\n[root/sensor] [root/hog-1] x\n[root/hog-1/sensor] I am the sensor\n[root/sensor:9] me too\n\
                    kernel: activity 4 (root/hog-1) on tile 5 stopped: exit 0\n\
                    kernel: activity 5 (root/hog-1/sensor) on tile 5 stopped: exit 0\nkernel: books: root/sensor has 1";
        assert_eq!(
            described(&system, said),
            "[root] begins\n[sensor] [root/hog-1] x\n[root/hog-1/sensor] I am the sensor\n[root/sensor:9] me too\n\
             kernel: activity 4 (hog-1) on tile 5 stopped: exit 0\n\
             kernel: activity 5 (root/hog-1/sensor) on tile 5 stopped: exit 0\nkernel: books: sensor has 1"
        );
        let names = of(&system, &described(&system, said));
        let name = |activity| names.owner(Owner::new(5, activity));
        assert_eq!(
            (name(4), name(5)),
            ("hog-1".to_owned(), "root/hog-1/sensor".to_owned())
        );
    }

    #[test]
    fn owners_have_names() {
        let system = load_system("quickstart", &LoadOptions::default()).expect("valid");
        let names = TiledNames::new(
            &system,
            "kernel: activity 9 (other) on tile 6 stopped: exit 0\n",
        );
        let name = |tile, activity| names.owner(Owner::new(tile, activity));
        assert_eq!(name(0, 0), "kernel");
        assert_eq!(name(5, 3), "hog-1");
        assert_eq!(name(5, TILEMUX_ACTIVITY), "hog-1 (TileMux)");
        assert_eq!(name(6, 9), "other");
        assert!(
            names
                .all()
                .contains(&(Owner::new(2, 2), "sensor".to_owned()))
        );
    }
}
