//! Tasks that ask for channels that they do not have, or move items of another size: the run names task and channel.

use crate::one_shot_systems::{folder_with, run};
use bulkhead_report::result::IncidentKind;

/// A writer and a reader, each with wrong numbers and sizes beside right ones; and a section whose slices have another size, or are not aligned, and whose helper
/// gives its result to a channel that is not there.
const TASKS: &str = r#"#include "bulkhead_oneshot.h"
struct plain { bh_releases releases; uint64_t item[4]; bh_input input, absent; bh_output output, missing; };
static bh_done writer_job(struct plain *self, bh_job job)
{
    bh_put(&self->output, self->item, 12);
    bh_put(&self->output, self->item, 16);
    bh_put(&self->missing, self->item, 16);
    return bh_next(&self->releases, job);
}
BH_TASK(writer, struct plain, writer_job, {.output = BH_OUTPUT(0), .missing = BH_OUTPUT(1)})
static bh_done reader_job(struct plain *self, bh_job job)
{
    if (bh_take(&self->absent, self->item, 16) == BH_SIZE)
        bh_take(&self->input, self->item, 16);
    bh_take(&self->input, self->item, 24);
    return bh_next(&self->releases, job);
}
BH_TASK(reader, struct plain, reader_job, {.input = BH_INPUT(0), .absent = BH_INPUT(3)})
struct asker { bh_helper helpers[1]; uint64_t item[4]; };
static bh_done asker_job(struct asker *self, bh_job job)
{
    bh_section section;
    bh_begin(&section, self->helpers, 1);
    bh_hand(&section, 0, self->item, 8);
    bh_hand(&section, 0, (char *)self->item + 4, 16);
    bh_hand(&section, 0, self->item, 16);
    return bh_next_section(job);
}
BH_TASK(asker, struct asker, asker_job, {.helpers = {BH_HELPER(0, 0)}})
struct part { bh_help help; };
static bh_done part_job(struct part *self, bh_job job)
{
    uint64_t item[2];
    if (bh_slice(&self->help, item, sizeof item) > 0)
        bh_give(&self->help, item, 8);
    return bh_next_section(job);
}
BH_TASK(part, struct part, part_job, {.help = BH_HELP(0, 2)})
"#;

#[test]
fn a_wrong_channel_and_a_wrong_size_are_told_with_the_task() {
    let text = r#"<system name="wrong" paradigm="one-shot" platform="epiphany3" duration="20ms">
        <task name="writer" program="tasks.c::writer" core="0" priority="1" period="2ms" cost="20us"/>
        <task name="reader" program="tasks.c::reader" core="5" priority="1" period="1ms" cost="20us"/>
        <task name="asker" program="tasks.c::asker" core="6" priority="1" period="2ms" cost="50us" wait="500us"/>
        <task name="part" program="tasks.c::part" core="9" priority="1" period="2ms" cost="50us" wait="500us"/>
        <channel name="items" from="writer" to="reader" size="16B"/>
        <channel name="slices" from="asker" to="part" size="16B"/>
        <channel name="results" from="part" to="asker" size="8B" answers="slices"/></system>"#;
    let folder = folder_with(&[("s.xml", text), ("tasks.c", TASKS)]);
    let finished = run(&folder.path().join("s.xml"), &[]).expect("it runs");
    let variant = &finished.result.variants[0];
    let incidents = variant.incidents.iter();
    let mut told: Vec<(u16, &str, &str)> = incidents
        .inspect(|one| assert_eq!(one.kind, IncidentKind::Stopped))
        .map(|one| (one.tile, &*one.application, &*one.what))
        .collect();
    told.sort_unstable();
    let missing = "but the description gives it one";
    assert_eq!(
        told,
        [
            (
                0,
                "writer",
                &*format!(
                    "it asks for output 1, {missing} output, 0 (`items`); the operation fails"
                )
            ),
            (
                0,
                "writer",
                "it moves an item of 12 bytes through `items`, but the description says 16 bytes; the operation fails"
            ),
            (
                5,
                "reader",
                &*format!("it asks for input 3, {missing} input, 0 (`items`); the operation fails")
            ),
            (
                5,
                "reader",
                "it moves an item of 24 bytes through `items`, but the description says 16 bytes; the operation fails"
            ),
            (
                6,
                "asker",
                "an item for `slices` is not at a multiple of 8 bytes, or is moved outside of the parallel section to which the channel belongs; the operation fails"
            ),
            (
                6,
                "asker",
                "it moves an item of 8 bytes through `slices`, but the description says 16 bytes; the operation fails"
            ),
            (
                9,
                "part",
                &*format!(
                    "it asks for output 2, {missing} output, 0 (`results`); the operation fails"
                )
            ),
        ]
    );
    // What is right went on.
    let mut requests = variant.requests.iter();
    assert!(requests.any(|one| one.kind == "read" && one.application == "reader" && one.count > 3));
}
