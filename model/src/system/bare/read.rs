//! From a `<system paradigm="bare">` to its programs.
//!
//! Why it exists and what it does not know: see the parent module. Rules are in `check` and `place`.

use super::{Bare, attach, check, place, rings};
use crate::error::{Diagnostic, Problem};
use crate::node::Node;
use crate::platform::Platform;
use crate::programs::Programs;
use crate::system::System;
use crate::system::read::{Applications, applications};
use crate::tree::Element;

/// Reads and checks the system. `None` if something is wrong; `errors` then says what.
pub(crate) fn read(
    element: &Element,
    node: &Node,
    mut platform: Platform,
    programs: Option<&dyn Programs>,
    errors: &mut Vec<Diagnostic>,
) -> Option<System> {
    let before = errors.len();
    check::elements(element, errors);
    if errors.len() > before {
        return None;
    }
    let Applications {
        domains,
        mut apps,
        flows,
        places,
    } = applications(node, &platform, programs, errors)?;
    if apps.is_empty() {
        errors.push(Diagnostic::new(
            Problem::MissingElement {
                element: "app".into(),
                parent: "system".into(),
            },
            &node.span,
            "add a <domain> with an <app>",
        ));
        return None;
    }
    for app in &places.apps {
        check::arguments(app, errors);
    }
    let attached = attach::attach(&platform, &places.apps, programs, errors);
    let rings = rings::rings(&platform, &places.apps, errors);
    let all = place::place(&platform, &mut apps, &places.apps, errors);
    for (app, node) in apps.iter_mut().zip(&places.apps) {
        let tile = platform.tile(app.tile);
        let (Some(tile), Some(task)) = (tile, node.child("task")) else {
            continue;
        };
        let clock = tile.pipeline.clock.frequency;
        let criticality = domains[app.domain].criticality;
        app.task = Some(crate::tasks::task(
            task,
            Some(clock),
            &app.name,
            criticality,
        ));
    }
    let mut all = all.filter(|_| errors.len() == before)?;
    for (placed, (attached, rings)) in all.iter_mut().zip(attached.into_iter().zip(rings)) {
        (placed.attached, placed.rings) = (attached, rings);
    }
    let given = platform.clone();
    place::partition(&mut platform, &apps, &all);
    if let Some(programs) = programs {
        check::places(programs, (&apps, &all), &places.apps, errors);
        // What the platform itself gives too much of has no place here.
        if programs.shares_refusal(&given).is_none()
            && let Some(why) = programs.shares_refusal(&platform)
        {
            check::reserved(why, (&apps, &all), &places.apps, errors);
        }
        if errors.len() > before {
            return None;
        }
    }
    Some(System {
        name: node.text("name"),
        about: node.maybe_text("about"),
        duration: node.time("duration"),
        // The tile that represents the chip.
        kernel_tile: platform.tiles.first().map_or(0, |tile| tile.id),
        platform,
        managers: Vec::new(),
        domains,
        apps,
        tilemux: Vec::new(),
        modules: Vec::new(),
        cables: Vec::new(),
        peer: None,
        flows,
        one_shot: None,
        bare: Some(Bare { programs: all }),
        variant: None,
        variant_about: None,
        misses_expected: false,
        variants: Vec::new(),
    })
}
