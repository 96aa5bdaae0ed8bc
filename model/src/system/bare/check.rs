//! Rules about elements and attributes of systems without a kernel.
//!
//! Why it exists and what it does not know: see the parent module. Where programs go is in `place`.

use super::Placed;
use crate::error::{Diagnostic, Problem};
use crate::node::Node;
use crate::programs::Programs;
use crate::source::Span;
use crate::system::App;
use crate::tree::Element;

/// Elements that such a system has.
const ELEMENTS: &[&str] = &["platform", "domain", "flow", "variant"];
/// The attributes that an application here may specify. Everything else concerns the tiled OS and would have no effect.
const APP: &[&str] = &[
    "name",
    "tile",
    "harts",
    "program",
    "memory",
    "memory-tile",
    "at",
    "bank",
    "ways",
    "reserved",
    "weight",
    "tcm",
    "colour",
    "rings",
];
/// Elements that an application here may have.
const PARTS: &[&str] = &["argument", "attach", "task"];
/// The attributes that only applications here may specify.
const OWN: &[&str] = &[
    "harts", "at", "bank", "ways", "reserved", "weight", "tcm", "colour", "rings",
];

pub(super) fn wrong(what: impl Into<String>, place: &Span, help: impl Into<String>) -> Diagnostic {
    Diagnostic::new(Problem::Inconsistent(what.into()), place, help)
}

/// Applications of the tiled OS do not choose harts, addresses and ways.
pub(crate) fn tiled(root: &Node, errors: &mut Vec<Diagnostic>) {
    for child in &root.children {
        tiled(child, errors);
        if child.rule.name == "attach" {
            errors.push(wrong(
                "an application of the tiled OS cannot have <attach>",
                &child.span,
                "remove it, or write paradigm=\"bare\" at the <system>: only programs without a kernel use peripherals",
            ));
        }
        for attribute in OWN.iter().filter(|_| child.rule.name == "app") {
            if child.gives(attribute) {
                errors.push(wrong(
                    format!("an application of the tiled OS cannot have `{attribute}`"),
                    child.place(attribute),
                    "remove it, or write paradigm=\"bare\" at the <system>: only programs without a kernel have one",
                ));
            }
        }
    }
}

/// Elements and attributes of other paradigms.
pub(super) fn elements(element: &Element, errors: &mut Vec<Diagnostic>) {
    for child in &element.children {
        if !ELEMENTS.contains(&&*child.name) {
            errors.push(wrong(
                format!("a system without a kernel cannot contain <{}>", child.name),
                &child.span,
                "remove it: such a system has domains, applications and flows",
            ));
        }
    }
    for attribute in &element.attributes {
        if attribute.name == "host" {
            errors.push(wrong(
                "a system without a kernel cannot have `host`".to_owned(),
                &attribute.name_span,
                "remove it: the loader of the run starts everything",
            ));
        }
        if matches!(&*attribute.name, "manager-tile" | "manager-memory") {
            errors.push(wrong(
                format!("a system without a kernel cannot have `{}`", attribute.name),
                &attribute.name_span,
                "remove it: such a system has no resource manager",
            ));
        }
    }
    let domains = element.children.iter();
    let domains = domains.filter(|child| child.name == "domain");
    for app in domains.flat_map(|domain| &domain.children) {
        for attribute in &app.attributes {
            if !APP.contains(&&*attribute.name) {
                errors.push(wrong(
                    format!(
                        "a program without a kernel cannot have `{}`",
                        attribute.name
                    ),
                    &attribute.name_span,
                    "remove it: only the tiled OS uses it",
                ));
            }
        }
        for part in &app.children {
            if !PARTS.contains(&&*part.name) {
                errors.push(wrong(
                    format!("a program without a kernel cannot have <{}>", part.name),
                    &part.span,
                    "remove it: only the tiled OS uses it",
                ));
            }
        }
    }
}

/// Arguments travel in one line, as `name=value` separated by spaces.
pub(super) fn arguments(app: &Node, errors: &mut Vec<Diagnostic>) {
    for argument in app.all("argument") {
        let value = argument.text("value");
        if !value.chars().all(|c| c.is_ascii_graphic()) {
            errors.push(wrong(
                format!("the value `{value}` has a space or a character that is not ASCII"),
                argument.place("value"),
                "a program without a kernel finds its arguments in one line, with spaces between: write one without",
            ));
        }
    }
}

/// Finished programs must fit where the description puts them.
pub(super) fn places(
    programs: &dyn Programs,
    (apps, all): (&[App], &[Placed]),
    nodes: &[&Node],
    errors: &mut Vec<Diagnostic>,
) {
    for ((app, placed), node) in apps.iter().zip(all).zip(nodes) {
        if let Some((what, help)) = programs.misplaced(&app.program, placed.base, placed.size) {
            errors.push(wrong(what, node.place("program"), help));
        }
    }
}

/// The machine refuses the shares of programs together, for this reason. The largest has the place.
pub(super) fn reserved(
    why: String,
    (apps, all): (&[App], &[Placed]),
    nodes: &[&Node],
    errors: &mut Vec<Diagnostic>,
) {
    let slots = |placed: &Placed| {
        let share = placed.share.map_or(0, |share| share.reserved);
        u64::from(share) * placed.harts.len() as u64
    };
    let shares = apps.iter().zip(all).zip(nodes);
    let shares = shares.filter(|((_, placed), _)| placed.share.is_some());
    let shares: Vec<_> = shares.collect();
    let each = shares.iter().map(|((app, placed), _)| {
        let reserved = placed.share.map_or(0, |share| share.reserved);
        let harts = placed.harts.len();
        format!(
            "`{}` reserves {reserved} for each of its harts ({harts})",
            app.name
        )
    });
    let each: Vec<String> = each.collect();
    // The first of those that are as large.
    let largest = shares
        .iter()
        .rev()
        .max_by_key(|((_, placed), _)| slots(placed));
    let Some((_, node)) = largest else { return };
    let attribute = if node.gives("reserved") {
        "reserved"
    } else {
        "weight"
    };
    errors.push(wrong(
        format!("{why}: {}", each.join(", ")),
        node.place(attribute),
        "write less as `reserved` of these programs",
    ));
}
