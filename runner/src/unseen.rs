//! Tiles with more markers than are kept, and consoles with more text.
//!
//! Why it exists: from then on nothing is known about jobs and flows there, whichever program made the markers, and nothing unseen may
//! count as held. The kernel's console says which programs ended, and how. What it deliberately does not know: which promises are affected.

use crate::measure::{Lives, MarkerEvent};
use crate::names::Names;
use bulkhead_abi::dtu::IDLE_ACTIVITY;
use bulkhead_machine::types::Owner;
use bulkhead_report::result::{Incident, IncidentKind};
use std::collections::BTreeMap;

/// An incident for each tile that made markers without room. `unkept` has the tiles and the number of dropped markers of each. It names the
/// activity that made most of the kept markers; in a tie, the one with the greater number.
pub fn incidents(names: &Names, markers: &[MarkerEvent], unkept: &[(u16, u64)]) -> Vec<Incident> {
    let one = |&(tile, lost): &(u16, u64)| {
        let mut made: BTreeMap<u16, u64> = BTreeMap::new();
        let mut since = None;
        for marker in markers.iter().filter(|marker| marker.tile == tile) {
            *made.entry(marker.activity).or_default() += 1;
            since = Some(marker.at);
        }
        let most = made.iter().max_by_key(|(_, count)| **count);
        let (activity, count) = most.map_or((IDLE_ACTIVITY, 0), |(id, count)| (*id, *count));
        Incident {
            crash: None,
            kind: IncidentKind::Unseen,
            at: since,
            tile,
            application: names.owner(Owner::new(tile, activity)),
            what: format!(
                "made {count} of the markers that are kept of tile {tile}; {lost} more had no room, so jobs and flows there were not seen any more"
            ),
        }
    };
    unkept.iter().map(one).collect()
}

/// A console that says what happened on the chip printed more than the host keeps.
pub fn unread((tile, lost): (u16, u64)) -> Incident {
    Incident {
        crash: None,
        kind: IncidentKind::Unseen,
        at: None,
        tile,
        application: "console".to_owned(),
        what: format!(
            "{lost} bytes were printed after the host's room for this console was full, so what the kernel and programs said in them was not read"
        ),
    }
}

/// Treats whatever activities of these tiles ended after the last kept marker as not seen.
pub fn shorten(lives: &mut Lives, incidents: &[Incident]) {
    for incident in incidents {
        let unseen = incident.kind == IncidentKind::Unseen;
        if let Some(at) = incident.at.filter(|_| unseen) {
            lives.seen_until(incident.tile, at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tiled::names::{begin, of};
    use bulkhead_model::{LoadOptions, load_system};

    #[test]
    fn who_marked_most_is_named_and_no_other_tile_is_concerned() {
        let system = load_system("quickstart", &LoadOptions::default()).expect("valid");
        let mut markers = begin(&system, (1, 0), 1, "root");
        markers.extend(begin(&system, (2, 1), 2, "sensor"));
        markers.extend(begin(&system, (5, 1), 2, "flood"));
        let mark = |at, activity| MarkerEvent {
            at,
            tile: 2,
            activity,
            kind: 5,
            value: 0,
            pc: 0,
        };
        markers.extend([mark(10, 2), mark(20, 5), mark(30, 5)]);
        let names = of(&system, &markers);
        assert_eq!(incidents(&names, &markers, &[]), []);
        let found = incidents(&names, &markers, &[(2, 77)]);
        let told: Vec<_> = found
            .iter()
            .map(|one| (one.kind, one.at, one.tile, one.application.as_str()))
            .collect();
        assert_eq!(told, [(IncidentKind::Unseen, Some(30), 2, "root/flood")]);
        let cut = unread((1, 88));
        let told = (cut.kind, cut.at, cut.tile);
        assert_eq!(told, (IncidentKind::Unseen, None, 1));
        assert!(cut.what.starts_with("88 bytes"), "{}", cut.what);
        assert!(
            found[0].what.contains("made 2 of") && found[0].what.contains("77 more"),
            "{}",
            found[0].what
        );
    }
}
