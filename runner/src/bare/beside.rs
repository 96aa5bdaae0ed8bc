//! What other programs have beside the program of a flow: harts, devices, DMA engines.
//!
//! Why it exists: a bound counts what others do on the program's way to memory, and devices do this without a hart. This says which of them the
//! description gives to others, which it gives to them in a way that the analysis does not count, and what a run shows about accesses past
//! the caches. What it deliberately does not know: how much these add (`bulkhead_analysis`).

use crate::paradigm::Ran;
use bulkhead_analysis::communication::Beside;
use bulkhead_machine::types::Owner;
use bulkhead_model::System;
use bulkhead_model::platform::Peripheral;
use bulkhead_model::system::bare::Placed;

/// All programs but that of a flow, by application.
fn others(system: &System, own: usize) -> impl Iterator<Item = &Placed> {
    let programs = system.bare.iter().flat_map(|bare| &bare.programs);
    let others = programs.enumerate().filter(move |(app, _)| *app != own);
    others.map(|(_, at)| at)
}

/// The peripherals of a program.
fn attached<'s>(system: &'s System, at: &'s Placed) -> impl Iterator<Item = &'s Peripheral> {
    let all = system.platform.peripherals.iter();
    all.filter(|one| at.attached.iter().any(|own| own.peripheral == one.id))
}

/// What the others have. Their harts are positions in the cluster of the flow's program, in which all of them are.
pub(super) fn beside(system: &System, own: usize) -> Beside {
    let all = || others(system, own);
    let harts: Vec<u16> = all().flat_map(|at| at.harts.clone()).collect();
    // Without other programs, nobody starts an engine.
    let engines: Vec<u16> = match harts.is_empty() {
        true => Vec::new(),
        false => system.platform.engines.iter().map(|one| one.id).collect(),
    };
    // Clusters have no such memories, and all programs are in one.
    let with_memories = system.platform.tiles.iter();
    let with_memories = with_memories.filter(|one| !one.tcm.is_empty() && !harts.is_empty());
    let coupled: Vec<u16> = with_memories.map(|one| one.id).collect();
    // Everybody reaches these and the registers of engines; those of a peripheral, only its program's harts.
    let all_reach = !engines.is_empty() || !coupled.is_empty();
    let reaches = |at: &&Placed| all_reach || !at.attached.is_empty();
    Beside {
        reaching: all()
            .filter(reaches)
            .flat_map(|at| at.harts.clone())
            .collect(),
        peripherals: all()
            .flat_map(|at| attached(system, at).map(|one| one.id))
            .collect(),
        harts,
        engines,
        coupled,
    }
}

/// Whether the analysis counts what the parts beside the tiles do to a program.
///
/// # Errors
/// Why it does not, and what would change that.
pub(super) fn counted(system: &System, own: usize) -> Result<(), String> {
    let name = &system.apps[own].name;
    let mut programs = system.bare.iter().flat_map(|bare| &bare.programs);
    let mut commanded = programs
        .nth(own)
        .into_iter()
        .flat_map(|at| attached(system, at));
    if let Some(one) = commanded.next() {
        return Err(format!(
            "`{name}` commands the peripheral `{}` by accesses to its registers, and what these wait for is not counted; without its <attach> it \
             would be judged",
            one.name
        ));
    }
    let mut programs = system.bare.iter().flat_map(|bare| &bare.programs);
    if let Some(place) = programs.position(|at| !at.rings.is_empty()) {
        return Err(format!(
            "`{}` rings other programs, and what rings wait for and cost others is not counted; without `rings` it would be judged",
            system.apps[place].name
        ));
    }
    let mut commanded = others(system, own).flat_map(|at| attached(system, at));
    if let Some(one) = commanded.find(|one| one.coherent) {
        return Err(format!(
            "the peripheral `{}` is coherent, so its accesses wait at the memory for answers of clusters, and these are not counted; without \
             `coherent` it would be judged",
            one.name
        ));
    }
    Ok(())
}

/// Refuses a run in which a hart of the program's cluster accessed memory past the caches (page types of Svpbmt) or registers of a memory, or the
/// program anything past the caches: such accesses take no miss register, and no count contains them. Accesses of others to registers of
/// devices and engines, and to memories of tiles, are counted.
pub(super) fn past_caches(ran: &Ran<'_>, own: Owner) -> Result<(), String> {
    let platform = &ran.system.platform;
    let here = |(owner, _): &(Owner, u16)| owner.tile == own.tile;
    for (owner, part) in ran.seen.ledger.reached().filter(here) {
        if platform.memory(part).is_some() {
            return Err(format!(
                "hart {} accessed memory past the caches or registers of a memory, and such accesses are not counted; without pages of the types \
                 NC and IO, and without a change of shares, it would be judged",
                owner.activity
            ));
        }
        if owner == own {
            return Err(format!(
                "its program accessed tile, device or engine {part} past the caches, and what these accesses wait for is not counted; without them \
                 it would be judged"
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use bulkhead_model::{LoadOptions, load_system_text};

    /// `own` on hart 0, and `rival` on hart 1 if it has any attributes, with what they attach.
    fn system(platform: &str, own: &str, rival: &str) -> System {
        let rival = match rival {
            "" => String::new(),
            rest => {
                format!(
                    "<app name='rival' harts='1' ways='4-7' program='p' memory='1MiB'>{rest}</app>"
                )
            }
        };
        let text = format!(
            "<system name='s' paradigm='bare' platform='{platform}'><domain name='d'>\
             <app name='own' harts='0' ways='0-3' program='p' memory='1MiB'>{own}</app>{rival}</domain></system>"
        );
        let found = load_system_text("s", &text, &LoadOptions::default());
        found.unwrap_or_else(|error| panic!("{error}"))
    }

    const DISK: &str = "<attach peripheral='disk'/>";
    const NOTHING: &str = "<argument name='a' value='1'/>";

    #[test]
    fn what_others_have_is_counted() {
        let with_disk = system("imx6-devices", "", DISK);
        assert_eq!(counted(&with_disk, 0), Ok(()));
        let disk = Beside {
            harts: vec![1],
            reaching: vec![1],
            peripherals: vec![3],
            ..Beside::default()
        };
        assert_eq!(beside(&with_disk, 0), disk);
        // What nobody attaches does nothing, and its registers have no users.
        let without = system("imx6-devices", "", NOTHING);
        assert_eq!(beside(&without, 0), Beside::harts(&[1]));
        // Everybody starts engines and reaches memories of tiles; alone, nobody does.
        let with_engine = system("zcu102", "", NOTHING);
        assert_eq!(counted(&with_engine, 0), Ok(()));
        let all = Beside {
            harts: vec![1],
            reaching: vec![1],
            engines: vec![3],
            coupled: vec![1, 2],
            ..Beside::default()
        };
        assert_eq!(beside(&with_engine, 0), all);
        assert_eq!(beside(&system("zcu102", "", ""), 0), Beside::default());
    }

    #[test]
    fn what_is_not_counted_is_refused() {
        let why = counted(&system("imx6-devices", DISK, ""), 0).expect_err("refused");
        assert!(
            why.starts_with("`own` commands the peripheral `disk`"),
            "{why}"
        );
        let mut coherent = system("imx6-devices", "", DISK);
        for one in &mut coherent.platform.peripherals {
            one.coherent = one.name == "disk";
        }
        let why = counted(&coherent, 0).expect_err("refused");
        assert!(
            why.starts_with("the peripheral `disk` is coherent"),
            "{why}"
        );
    }
}
