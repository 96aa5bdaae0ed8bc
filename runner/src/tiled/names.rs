//! Names of the tiled OS: activities, tiles, memories.
//!
//! Why it exists: activity numbers are internal to the kernel. The kernel states which activity begins where by markers on its own
//! tile, where nothing else runs. The name is the path from the root manager, which no program can choose. An activity of the
//! description has its name from the description. What it deliberately does not know: what was measured.

use crate::measure::MarkerEvent;
use crate::names::{Names, Naming};
use bulkhead_abi::dtu::{IDLE_ACTIVITY, TILEMUX_ACTIVITY};
use bulkhead_abi::marker::{Begins, MarkerKind};
use bulkhead_abi::tilemux::KERNEL_ACTIVITY;
use bulkhead_abi::words::{NAME_WORDS, Name};
use bulkhead_machine::types::Owner;
use bulkhead_model::System;
use std::collections::{BTreeMap, BTreeSet};

/// Names of a system's parts.
#[derive(Clone, Debug)]
pub struct TiledNames {
    kernel_tile: u16,
    /// Applications and managers of a tile, from the description.
    tiles: BTreeMap<u16, Vec<String>>,
    /// Names of the description by their paths.
    known: BTreeMap<String, String>,
    /// The start that the kernel is currently announcing, and the words of the name so far.
    open: Option<(Begins, Vec<u64>)>,
    /// The path of the most recent activity with each number.
    paths: BTreeMap<u16, String>,
    activities: BTreeMap<Owner, String>,
    /// All activities that began on a tile.
    begun: BTreeMap<u16, BTreeSet<String>>,
}

/// Names for `system`. `markers` are those of its run.
pub fn of(system: &System, markers: &[MarkerEvent]) -> Names {
    let mut names = TiledNames::new(system);
    for marker in markers {
        names.hear(marker.tile, marker.kind, marker.value);
    }
    Names::of(names)
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
    /// The notice: `stopped: exit 0`.
    pub what: String,
}

/// Reads `kernel: activity N (name) on tile T what`. Only the kernel can begin a line this way.
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

/// The kernel's output, with paths replaced by the names of the description. The kernel identifies activities by their path from the
/// root manager, which no program can choose; an activity that is not in the description keeps its path.
pub fn described(system: &System, console: &str) -> String {
    let known = known(system);
    let mut text = String::with_capacity(console.len());
    for line in console.split_inclusive('\n') {
        let parts = [
            ("[", "] "),
            ("kernel: activity ", ") on tile "),
            ("kernel: books: ", " has "),
        ];
        let found = parts.iter().find_map(|(before, behind)| {
            let rest = line.strip_prefix(before)?;
            // A notice begins with the number.
            let start = match *behind {
                ") on tile " => rest.find(" (")? + 2,
                _ => 0,
            };
            let end = start + rest[start..].find(behind)?;
            let name = known.get(&rest[start..end])?.as_str();
            let offset = before.len();
            Some((&line[..offset + start], name, &line[offset + end..]))
        });
        match found {
            Some((head, name, tail)) => text.extend([head, name, tail]),
            None => text.push_str(line),
        }
    }
    text
}

/// Names of the description by their paths from the root manager.
fn known(system: &System) -> BTreeMap<String, String> {
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
        known.insert(path(system.manager_of(index), &app.name), app.name.clone());
    }
    for manager in &system.managers {
        if let Some(parent) = manager.parent {
            known.insert(path(parent, &manager.name), manager.name.clone());
        }
    }
    known
}

impl TiledNames {
    /// Names for `system`, before any activity has begun.
    pub fn new(system: &System) -> Self {
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
            known: known(system),
            open: None,
            paths: BTreeMap::new(),
            activities: BTreeMap::new(),
            begun: BTreeMap::new(),
        }
    }

    /// An activity exists. Its path consists of its creator's path, which lives longer, and its name.
    fn begins(&mut self, begins: Begins, name: &Name) -> (Owner, String) {
        let mut path = name.as_str().to_owned();
        if begins.is_namesake {
            path = format!("{path}:{}", begins.activity);
        }
        if begins.creator != KERNEL_ACTIVITY {
            let creator = self.paths.get(&begins.creator);
            path = match creator {
                Some(creator) => format!("{creator}/{path}"),
                None => format!("activity {}/{path}", begins.creator),
            };
        }
        let name = self.known.get(&path).unwrap_or(&path).clone();
        self.paths.insert(begins.activity, path);
        let owner = Owner::new(begins.tile, begins.activity);
        let known = self.activities.entry(owner);
        // Numbers are reused once all others have been used. After that, a number no longer identifies one activity.
        known
            .and_modify(|other| {
                if *other != name {
                    *other = format!("several with number {}", owner.activity);
                }
            })
            .or_insert_with(|| name.clone());
        self.begun
            .entry(begins.tile)
            .or_default()
            .insert(name.clone());
        (owner, name)
    }
}

impl Naming for TiledNames {
    fn hear(&mut self, tile: u16, kind: u16, value: u64) -> Option<(Owner, String)> {
        if tile != self.kernel_tile {
            return None;
        }
        match MarkerKind::from_code(kind)? {
            MarkerKind::ActivityBegins => self.open = Some((Begins::unpack(value), Vec::new())),
            MarkerKind::ActivityName => {
                let (_, words) = self.open.as_mut()?;
                words.push(value);
                let words = <[u64; NAME_WORDS]>::try_from(words.as_slice()).ok()?;
                let (begins, _) = self.open.take()?;
                return Some(self.begins(begins, &Name::from_words(words)));
            }
            _ => {}
        }
        None
    }

    fn on_tile(&self, tile: u16) -> Vec<String> {
        if tile == self.kernel_tile {
            return vec!["kernel".to_owned()];
        }
        self.tiles.get(&tile).cloned().unwrap_or_default()
    }

    fn owner(&self, owner: Owner) -> String {
        let Owner { tile, activity } = owner;
        if tile == self.kernel_tile {
            return "kernel".to_owned();
        }
        if let Some(name) = self.activities.get(&owner) {
            return name.clone();
        }
        // The work of a tile for no particular activity belongs to the only one that has ever been there.
        let begun = self.begun.get(&tile);
        let only = begun
            .filter(|all| all.len() == 1)
            .and_then(|all| all.first());
        match (activity, only) {
            (TILEMUX_ACTIVITY, Some(one)) => format!("{one} (TileMux)"),
            (TILEMUX_ACTIVITY, None) => format!("TileMux of tile {tile}"),
            (IDLE_ACTIVITY, Some(one)) => one.clone(),
            (IDLE_ACTIVITY | KERNEL_ACTIVITY, _) => format!("tile {tile}"),
            _ => format!("activity {activity} on tile {tile}"),
        }
    }
}

/// Markers of a kernel that begins every application of the description as `activity` of its tile.
#[doc(hidden)]
pub fn all_as(system: &System, activity: u16) -> Vec<MarkerEvent> {
    let mut all = Vec::new();
    for (path, name) in known(system) {
        let Some(app) = system.apps.iter().find(|app| app.name == name) else {
            continue;
        };
        // Its creators began earlier, under other numbers.
        let (above, _) = path.rsplit_once('/').unwrap_or_default();
        for (depth, name) in above.split('/').enumerate() {
            let number = 100 + depth as u16;
            let creator = if depth == 0 {
                KERNEL_ACTIVITY
            } else {
                number - 1
            };
            all.extend(begin(system, (number, creator), 0, name));
        }
        let creator = 100 + above.matches('/').count() as u16;
        all.extend(begin(system, (activity, creator), app.tile, &name));
    }
    all
}

/// Markers of a kernel that announces a start: number, creator, place, name.
#[doc(hidden)]
pub fn begin(
    system: &System,
    (activity, creator): (u16, u16),
    tile: u16,
    name: &str,
) -> Vec<MarkerEvent> {
    let begins = Begins {
        activity,
        creator,
        tile,
        is_namesake: false,
    };
    let marker = |kind: MarkerKind, value| MarkerEvent {
        at: 0,
        tile: system.kernel_tile,
        activity: KERNEL_ACTIVITY,
        kind: kind as u16,
        value,
        pc: 0,
    };
    let words = Name::new(name).unwrap_or_default().to_words();
    let first = marker(MarkerKind::ActivityBegins, begins.pack());
    let words = words.map(|word| marker(MarkerKind::ActivityName, word));
    [first].into_iter().chain(words).collect()
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
    }

    #[test]
    fn who_is_who_is_what_the_kernel_says_when_they_begin() {
        let system = load_system("quickstart", &LoadOptions::default()).expect("valid");
        let mut said = begin(&system, (1, KERNEL_ACTIVITY), 1, "root");
        said.extend(begin(&system, (2, 1), 2, "sensor"));
        said.extend(begin(&system, (4, 1), 5, "hog-1"));
        // Its child has the name of an honest activity, and one more has the same name.
        said.extend(begin(&system, (5, 4), 5, "sensor"));
        let mut namesake = begin(&system, (6, 1), 6, "sensor");
        namesake[0].value |= 1 << 48;
        said.extend(namesake);
        // Markers of anything but the kernel are ignored.
        let mut forged = begin(&system, (7, 1), 3, "sensor");
        forged.iter_mut().for_each(|marker| marker.tile = 5);
        said.extend(forged);
        let names = of(&system, &said);
        let name = |tile, activity| names.owner(Owner::new(tile, activity));
        assert_eq!(name(0, 0), "kernel");
        assert_eq!(name(1, 1), "root");
        assert_eq!(name(2, 2), "sensor");
        assert_eq!(name(2, TILEMUX_ACTIVITY), "sensor (TileMux)");
        assert_eq!(name(5, 4), "hog-1");
        assert_eq!(name(5, 5), "root/hog-1/sensor");
        assert_eq!(name(5, TILEMUX_ACTIVITY), "TileMux of tile 5");
        assert_eq!(name(5, IDLE_ACTIVITY), "tile 5");
        assert_eq!(name(6, 6), "root/sensor:6");
        assert_eq!(name(3, 7), "activity 7 on tile 3");
        // A reused number no longer identifies an activity.
        said.extend(begin(&system, (4, 1), 5, "hog-2"));
        let names = of(&system, &said);
        assert_eq!(names.owner(Owner::new(5, 4)), "several with number 4");
    }
}
