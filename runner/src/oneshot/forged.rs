//! Markers of a kernel that no code of a kernel made.
//!
//! Why it exists: jobs, releases and ports are read from markers, and any code of a core can execute such a hint. The machine knows the address of each hint, and the
//! debug information of the core's image says whose code is there. Such a marker counts for nothing. What it deliberately does not know: what markers mean.
//!
//! An address is the kernel's if its code comes from the kernel's sources in Rust. Tasks in C or Ada can name any file as their source, but not another language.
//! Code outside of the image's code is nobody's.

use super::alive::tasks;
use crate::measure::MarkerEvent;
use crate::programs::source;
use bulkhead_abi::one_shot::marker;
use bulkhead_machine::image::{Location, Resolver};
use bulkhead_model::system::OneShot;
use bulkhead_report::result::{Incident, IncidentKind};
use std::collections::BTreeMap;

/// Where the kernel makes all its markers; the place that asked for one is around it.
const HINTS: &str = "/software/hal/src/marker.rs";

/// The kernel, and its parts for C and Ada.
const KERNEL: &str = "/software/oneshot/";

/// Whether code that was inlined like this, the innermost first, is the kernel's.
fn is_of_kernel(frames: &[Location]) -> bool {
    // What is before these folders depends on where the program was built.
    let files = frames.iter().map(|frame| {
        let file = source(frame.file.as_deref().unwrap_or_default());
        format!("/{file}")
    });
    let mut asked = files.skip_while(|file| file.ends_with(HINTS));
    asked.next().is_some_and(|file| file.contains(KERNEL))
}

/// The places of an image at which hints are the kernel's.
pub struct Places {
    resolver: Resolver,
    known: BTreeMap<u64, bool>,
}

impl Places {
    /// Those of an image.
    pub fn of(image: &[u8]) -> Self {
        Self {
            resolver: Resolver::new(image),
            known: BTreeMap::new(),
        }
    }

    /// Whether the kernel makes markers at this address.
    pub fn are_kernels(&mut self, pc: u64) -> bool {
        let resolver = &self.resolver;
        let is_kernels = || resolver.is_rust(pc) && is_of_kernel(&resolver.inlined(pc));
        *self.known.entry(pc).or_insert_with(is_kernels)
    }
}

/// Takes away whatever only a kernel says and no kernel said, and tells it once for each core. `is_kernels`: whether an address of a core is its kernel's;
/// `locate`: where in the sources of a core an address is.
pub fn take(
    one_shot: &OneShot,
    markers: &mut Vec<MarkerEvent>,
    mut is_kernels: impl FnMut(u16, u64) -> bool,
    locate: impl Fn(u16, u64) -> Option<String>,
) -> Vec<Incident> {
    let mut forged: BTreeMap<u16, (MarkerEvent, u64)> = BTreeMap::new();
    markers.retain(|event| {
        let is_good = !marker::ALL.contains(&event.kind) || is_kernels(event.tile, event.pc);
        if !is_good {
            forged.entry(event.tile).or_insert((*event, 0)).1 += 1;
        }
        is_good
    });
    let told = forged.into_iter().map(|(core, (first, count))| {
        let place = locate(core, first.pc).unwrap_or_else(|| format!("{:#x}", first.pc));
        Incident {
            crash: None,
            kind: IncidentKind::Unseen,
            at: Some(first.at),
            tile: core,
            application: format!("core {core}"),
            what: format!(
                "code that is not its kernel's made {count} markers that only the kernel makes, the first in {place}; they do not count, and nothing of this core counts as held ({})",
                tasks(one_shot, core)
            ),
        }
    });
    told.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use bulkhead_model::load_system_text;

    /// By hand, from the debug information of an image: whose code asked for the hint.
    #[test]
    fn the_kernels_code_is_told_from_that_of_tasks() {
        let is_kernels = |files: &[&str]| {
            let frame = |file: &&str| Location {
                file: Some((*file).to_owned()),
                ..Location::default()
            };
            is_of_kernel(&files.iter().map(frame).collect::<Vec<_>>())
        };
        let hint = "./software/oneshot/./software/hal/src/marker.rs";
        assert!(is_kernels(&[hint, "./software/oneshot/src/kernel.rs"]));
        let of_c = [
            "./software/oneshot/c/./software/hal/src/marker.rs",
            "./software/oneshot/c/./software/oneshot/src/task.rs",
            "./software/oneshot/c/src/arch.rs",
        ];
        assert!(is_kernels(&of_c));
        let of_a_user = [
            "bulkhead/software/hal/src/marker.rs",
            "bulkhead/software/oneshot/src/task.rs",
            "./src/lib.rs",
        ];
        assert!(is_kernels(&of_a_user));
        // The compiler gets no other name for a folder that has a quotation mark.
        let unnamed = "/opt/o'b/software/hal/src/marker.rs";
        assert!(is_kernels(&[
            unnamed,
            "/opt/o'b/software/oneshot/src/task.rs"
        ]));
        // A task in Rust that asks for the hint itself, one that is the hint itself, and nothing that is known.
        assert!(!is_kernels(&[hint, "./workloads/one-shot/src/pipeline.rs"]));
        assert!(!is_kernels(&["././tasks.c"]));
        assert!(!is_kernels(&[hint]));
        assert!(!is_kernels(&[]));
    }

    /// A task that plays a whole life of its neighbour: nothing of it is left, the kernel's own markers and those that anybody makes are, and it is told once.
    #[test]
    fn what_no_kernel_said_does_not_count() {
        let text = r#"<system name="s" paradigm="one-shot" platform="epiphany3">
            <task name="odd" program="p::A" core="0" priority="1" period="1ms" cost="1us"/>
            <task name="other" program="p::A" core="0" priority="2" period="1ms" cost="1us"/></system>"#;
        let system = load_system_text("s", text, &Default::default()).expect("valid");
        let one_shot = system.one_shot.as_ref().expect("it is one");
        const GOOD: u64 = 0x8000_0000;
        const BAD: u64 = 0x8000_1000;
        let flow = bulkhead_abi::marker::MarkerKind::FlowBegin as u16;
        let events = [
            (marker::BEGIN, 0, GOOD),
            (marker::BEGIN, 1, BAD),
            (marker::RETIRED, 0, BAD),
            (marker::EVENT, 2, BAD),
            (flow, 7, BAD),
            (marker::END, 0, GOOD),
        ];
        let events = events.into_iter().enumerate();
        let events = events.map(|(at, (kind, value, pc))| MarkerEvent {
            at: at as u64,
            tile: 0,
            activity: 0,
            kind,
            value,
            pc,
        });
        let mut markers: Vec<MarkerEvent> = events.collect();
        let told = take(
            one_shot,
            &mut markers,
            |_, pc| pc == GOOD,
            |_, _| Some("odd (tasks.c:7)".to_owned()),
        );
        let kinds: Vec<u16> = markers.iter().map(|one| one.kind).collect();
        assert_eq!(kinds, [marker::BEGIN, flow, marker::END]);
        let [told] = &told[..] else {
            panic!("{told:#?}")
        };
        assert_eq!(
            (told.kind, told.at, told.tile),
            (IncidentKind::Unseen, Some(1), 0)
        );
        let words = ["`odd`, `other`", "3 markers", "odd (tasks.c:7)"];
        assert!(
            words.iter().all(|word| told.what.contains(word)),
            "{told:?}"
        );
    }
}
