//! Stacks that the build computes from compiled code: beside what jobs measure, and what it refuses.

use crate::one_shot_ada::has_gnat;
use crate::one_shot_systems::{folder_with, holds, run};
use bulkhead_model::{LoadOptions, load_system};
use bulkhead_runner::oneshot::OneShot;
use bulkhead_runner::oneshot::footprint::Footprint;
use bulkhead_runner::oneshot::stack::{Needs, needs};
use bulkhead_runner::paradigm::Paradigm as _;
use bulkhead_runner::programs::Library;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A folder with a file in C and a description of tasks in it, on core 0.
fn folder(source: &str, tasks: &[(&str, &str)]) -> (TempDir, PathBuf) {
    let tasks: Vec<String> = tasks
        .iter()
        .enumerate()
        .map(|(number, (name, more))| {
            format!(
                r#"<task name="{name}" program="deep.c::{name}" core="0" priority="{}" period="1ms" cost="20us" {more}/>"#,
                number + 1
            )
        })
        .collect();
    let source = format!("#include \"bulkhead_oneshot.h\"\n{source}");
    let description = format!(
        r#"<system name="deep" paradigm="one-shot" platform="epiphany3" duration="5ms">{}</system>"#,
        tasks.concat()
    );
    let folder = folder_with(&[("deep.c", &source), ("system.xml", &description)]);
    let system = folder.path().join("system.xml");
    (folder, system)
}

/// What each image of a description needs, and how much stack it has.
fn images(system: &Path) -> Vec<(Needs, u64)> {
    let root = bulkhead_runner::place::root().expect("the checkout is there");
    let folder = system.parent().expect("it is in a folder");
    let library = Library::new(&root, folder).expect("the checkout has programs");
    let system = load_system(system, &LoadOptions::default()).expect("valid");
    let images = OneShot.build(&library, &[&system]).expect("it builds");
    images
        .iter()
        .map(|image| {
            let needs = needs(&image.name, &image.elf, &[]).expect("it has a bound");
            let size = Footprint::of(&image.name, &image.elf).expect("an image");
            (needs, size.stack)
        })
        .collect()
}

/// Each job calls down through frames of different sizes, and its innermost function says how deep the stack's pointer is.
const DEEP: &str = r#"
extern char __stack_top[];
static __attribute__((noinline)) void bottom(volatile char *use)
{
    volatile char own[200];
    own[0] = use[0];
    uintptr_t sp;
    __asm__ volatile("mv %0, sp" : "=r"(sp));
    bh_print_number("depth ", (uintptr_t)__stack_top - sp);
    use[0] = own[0];
}
static __attribute__((noinline)) void middle(volatile char *use)
{
    volatile char own[BYTES];
    own[0] = use[0];
    bottom(own);
    use[0] = own[0];
}
struct deep { bh_releases releases; };
static bh_done go(struct deep *self, bh_job job)
{
    volatile char own[40];
    own[0] = 0;
    middle(own);
    return bh_next(&self->releases, job);
}
BH_TASK(deep, struct deep, go, {0})
"#;

#[test]
fn a_computed_stack_is_what_jobs_measure_and_the_image_has_it() {
    // The second one has a frame that one instruction cannot make.
    for bytes in ["100", "4096"] {
        let (_folder, system) = folder(&DEEP.replace("BYTES", bytes), &[("deep", "")]);
        let [(needs, has)] = &images(&system)[..] else {
            panic!("one image")
        };
        let finished = run(&system, &[]).expect("it runs");
        holds(&finished.result);
        let line = finished.consoles[0].lines().next().expect("a line");
        let measured = line.strip_prefix("core 0: depth ").expect("a depth");
        let measured: u64 = measured.parse().expect("a number");
        let job = &needs.jobs[0];
        println!("measured {measured}, job {}, {needs:?}", job.bytes);
        // Below the measurement there is only what prints.
        assert!(
            measured < job.bytes && job.bytes <= measured + 256,
            "{measured} {needs:?}"
        );
        // The compiler puts `go` into the task's own function.
        for name in ["middle", "bottom"] {
            assert!(job.way.iter().any(|one| one.contains(name)), "{job:?}");
        }
        assert!(*has >= needs.total(), "{has} {needs:?}");
        assert!(bytes == "100" || *has > 4096);
    }
}

fn refusal(source: &str, more: &str) -> String {
    let (_folder, system) = folder(source, &[("deep", more)]);
    run(&system, &[]).err().expect("it is refused").to_string()
}

#[test]
fn a_stated_stack_that_is_too_small_is_refused_with_its_parts() {
    let said = refusal(&DEEP.replace("BYTES", "400"), "stack=\"1000B\"");
    for part in [
        "its stack has 1000 bytes but needs ",
        "448 for an interrupt",
        "a job of deep.c::deep ",
        " > middle > bottom",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

#[test]
fn a_stack_without_bound_is_refused_unless_somebody_states_one() {
    let recursive = r#"
static __attribute__((noinline)) uint64_t odd(uint64_t n);
static __attribute__((noinline)) uint64_t even(uint64_t n) { volatile uint64_t own = n; return n == 0 ? own : odd(n - 1) + 1; }
static __attribute__((noinline)) uint64_t odd(uint64_t n) { volatile uint64_t own = n; return n == 0 ? own : even(n - 1) + 2; }
struct deep { bh_releases releases; };
static bh_done go(struct deep *self, bh_job job)
{
    bh_print_number("is ", even(bh_now() % 4));
    return bh_next(&self->releases, job);
}
BH_TASK(deep, struct deep, go, {0})
"#;
    let said = refusal(recursive, "");
    assert!(
        said.contains("recursion: ") && said.contains("even") && said.contains("odd"),
        "{said}"
    );
    let (_folder, system) = folder(recursive, &[("deep", "stack=\"1KiB\"")]);
    holds(&run(&system, &[]).expect("it runs").result);
    let runtime = r#"
struct deep { bh_releases releases; };
static bh_done go(struct deep *self, bh_job job)
{
    volatile char *own = __builtin_alloca(bh_now() % 64 + 1);
    own[0] = 1;
    return bh_next(&self->releases, job);
}
BH_TASK(deep, struct deep, go, {0})
"#;
    let said = refusal(runtime, "");
    assert!(
        said.contains("whose size is known only at run time"),
        "{said}"
    );
}

/// A function that a job calls by a pointer counts, and another task's job does not.
#[test]
fn calls_by_pointers_reach_all_that_they_may_and_no_jobs() {
    let source = r#"
static __attribute__((noinline)) void large(void) { volatile char own[700]; own[0] = 1; bh_print("large"); }
static __attribute__((noinline)) void small(void) { bh_print("small"); }
static void (*const steps[])(void) = {small, large};
struct deep { bh_releases releases; };
static bh_done go(struct deep *self, bh_job job)
{
    steps[bh_now() % 2]();
    return bh_next(&self->releases, job);
}
BH_TASK(deep, struct deep, go, {0})
BH_TASK(other, struct deep, go, {0})
"#;
    let (_folder, system) = folder(source, &[("deep", ""), ("other", "")]);
    let [(needs, has)] = &images(&system)[..] else {
        panic!("one image")
    };
    let bytes = needs.jobs[0].bytes;
    assert!((700..1000).contains(&bytes), "{needs:?}");
    assert_eq!(needs.jobs[1].bytes, bytes);
    assert!(*has >= bytes + 448, "{has}");
    holds(&run(&system, &[]).expect("it runs").result);
}

/// The systems of the catalog, and the buffer in three languages, have bounds.
#[test]
fn images_of_each_language_have_bounds() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("all.xml");
    let ada = match has_gnat() {
        true => {
            r#"<task name="a" program="one-shot/buffer.adb::Getter" core="3" priority="1" period="3ms" cost="20us"/>
              <task name="b" program="one-shot/buffer.adb::Putter" core="3" priority="2" period="14ms" cost="20us"/>
              <task name="c" program="one-shot/buffer.adb::Watcher" core="3" priority="3" period="7ms" cost="20us"/>"#
        }
        false => "",
    };
    let text = format!(
        r#"<system name="all" paradigm="one-shot" platform="epiphany3" duration="10ms">
          <task name="source" program="one-shot::pipeline::Source" core="0" priority="1" period="20ms" cost="10us"/>
          <task name="sink" program="one-shot::pipeline::Sink" core="5" priority="1" period="20ms" cost="10us"/>
          <task name="getter" program="one-shot::buffer::Getter" core="1" priority="1" period="3ms" cost="20us"/>
          <task name="putter" program="one-shot/buffer.c::putter" core="2" priority="2" period="14ms" cost="20us"/>
          <task name="told" program="one-shot/timing.c::told" core="4" priority="1" period="1ms" cost="10us"/>
          {ada}
          <channel name="events" from="source" to="sink" size="16B" notify="true"/></system>"#
    );
    std::fs::write(&path, text).expect("it is written");
    for (needs, has) in images(&path) {
        println!("{has}: {needs:?}");
        assert!(needs.total() <= has && needs.total() <= 1280, "{needs:?}");
    }
}
