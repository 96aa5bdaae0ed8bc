//! Named variants of the study's model: what it would find under other readings of mc2-rts20, and under its own earlier values.
//!
//! Why it exists: where ratios differ from the paper's, a modelling decision is the cause. Each decision that could be the cause is a
//! variant here, with the arguments for it in the paper or on the platform. None becomes the default because of its results: the default is
//! what [`super::open_parameters`] froze earlier.
//!
//! It deliberately contains no ratio.

use super::parameters::{
    DeviceReach, Interval, LevelCConflicts, MessageLimit, PackingFailure, ParameterError,
    PeriodHalf, PlainMessages, RandomRelief, StudyParameters, UtilisationLevel, interval,
};

/// The kind of question that a variant answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The values of an earlier version of this study, one or all.
    Earlier,
    /// Another reading of the paper.
    Reading,
}

/// A variant of the model.
#[derive(Clone, Copy, Debug)]
pub struct Variant {
    /// Its name on the command line.
    pub name: &'static str,
    /// Its kind.
    pub kind: Kind,
    /// The difference from the frozen model.
    pub what: &'static str,
    /// Arguments for and against it.
    pub grounds: &'static str,
    /// Makes the difference.
    pub change: fn(&mut StudyParameters),
}

const TENTH: Interval = interval(50_000, 150_000);
const SECOND_IO: Interval = interval(400_000, 600_000);
const SECOND_MESSAGES: Interval = interval(200_000, 400_000);
const SECOND_UNMANAGED: Interval = interval(50_000, 1_000_000);

/// All variants.
pub const VARIANTS: &[Variant] = &[
    Variant {
        name: "first",
        kind: Kind::Earlier,
        what: "all values of the first run, before any ratio was known",
        grounds: "None of its own: it shows what changed since.",
        change: |p| {
            p.unmanaged = interval(20_000, 150_000);
            (p.message_share, p.io_share) = (TENTH, TENTH);
            p.utilisation_points = p.utilisation_points * 2 / 3;
            p.readings.message_limit = MessageLimit::Half;
            p.readings.packing_failure = PackingFailure::Final;
            p.readings.period_half = PeriodHalf::IoTasks;
        },
    },
    Variant {
        name: "second",
        kind: Kind::Earlier,
        what: "all values published until 2026-11-22, set after the first run's ratios were known",
        grounds: "None of its own: it shows what those changes did.",
        change: |p| {
            p.unmanaged = SECOND_UNMANAGED;
            (p.message_share, p.io_share) = (SECOND_MESSAGES, SECOND_IO);
            p.readings.packing_failure = PackingFailure::Retry;
            p.readings.period_half = PeriodHalf::IoTasks;
        },
    },
    Variant {
        name: "io-share-40-60",
        kind: Kind::Earlier,
        what: "a job may copy device data for 40 % to 60 % of its cost",
        grounds: "For: 200 MB/s of Table 3, copied at the 210 MB/s of section 5.2, take most of a processor. Against: a relatively small \
                  proportion (section 6.2).",
        change: |p| p.io_share = SECOND_IO,
    },
    Variant {
        name: "message-share-20-40",
        kind: Kind::Earlier,
        what: "a job may pass messages for 20 % to 40 % of its cost",
        grounds: "For: with short jobs the calls alone take more than a tenth. Against: a relatively small proportion (section 6.2).",
        change: |p| p.message_share = SECOND_MESSAGES,
    },
    Variant {
        name: "unmanaged-5-100",
        kind: Kind::Earlier,
        what: "what nobody manages costs 5 % to 100 %",
        grounds: "For: three other processors that never leave the bus could each take it as long as the task does. Against: they need \
                  memory only for a small part of the time of an access.",
        change: |p| p.unmanaged = SECOND_UNMANAGED,
    },
    Variant {
        name: "halved-message-limit",
        kind: Kind::Earlier,
        what: "each message buffer has half of its job's limit, even if it is the only one",
        grounds: "For: nothing in the paper. Against: its sentence is on tasks, not on buffers.",
        change: |p| p.readings.message_limit = MessageLimit::Half,
    },
    Variant {
        name: "retry-packing",
        kind: Kind::Earlier,
        what: "if phase three finds no ways, chains are halved, then dissolved, and it tries again",
        grounds: "For: elimination never makes a system unschedulable then. Against: section 6.1 keeps the phases separate.",
        change: |p| p.readings.packing_failure = PackingFailure::Retry,
    },
    Variant {
        name: "half-of-io-tasks",
        kind: Kind::Earlier,
        what: "LP and SP take half of a level's tasks with I/O, not half of its tasks",
        grounds: "For: just half of the buffers move. Against: section 6.1 says half of the tasks.",
        change: |p| p.readings.period_half = PeriodHalf::IoTasks,
    },
    Variant {
        name: "axis-of-8",
        kind: Kind::Earlier,
        what: "the axis ends at two thirds (at 8 processors in the whole study)",
        grounds: "For: nothing in the paper. Against: curves are cut off.",
        change: |p| p.utilisation_points = p.utilisation_points * 2 / 3,
    },
    Variant {
        name: "own-level-utilisation",
        kind: Kind::Reading,
        what: "generated utilisations are of the task's own level, not all of level A",
        grounds: "For: footnote 14 (informal) and Table 3's columns. Against: the sentence on the method in section 6.1.",
        change: |p| p.utilisation_level = UtilisationLevel::Own,
    },
    Variant {
        name: "devices-disturb-all",
        kind: Kind::Reading,
        what: "devices that write into any bank of levels A and B disturb the tasks of all processors there",
        grounds: "For: the last example of section 6.1 takes the system's transfer rate and the share that goes to banks of levels A and B, not \
                  to the task's. Against: Table 1 and section 4.3.",
        change: |p| p.readings.device_reach = DeviceReach::System,
    },
    Variant {
        name: "level-c-always",
        kind: Kind::Reading,
        what: "level C suffers all of Observation 3 as soon as one I/O buffer of levels A or B lies in its banks",
        grounds: "For: Observation 3 measures just that, and a study that interpolates measurements has no other number; by Table 1 it ends \
                  only when no buffer lies there. Against: conflicts end with the copy.",
        change: |p| p.readings.level_c_conflicts = LevelCConflicts::Always,
    },
    Variant {
        name: "random-without-relief",
        kind: Kind::Reading,
        what: "random banks disturb level C as if everything lay in its banks",
        grounds: "For: section 6.1 names only what R|R adds (conflicts in banks of levels A and B). Against: Table 1.",
        change: |p| p.readings.random_relief = RandomRelief::Ignored,
    },
    Variant {
        name: "messages-expose-job",
        kind: Kind::Reading,
        what: "a task whose messages no technique confines suffers conflicts all the time, as beside one copying processor",
        grounds: "For: sections 4.2 and 4.4 say that only the techniques confine interference to the access, and C and R apply none. Against: the \
                  accounting of section 6.1 follows Figure 8.",
        change: |p| p.readings.plain_messages = PlainMessages::Job,
    },
    Variant {
        name: "hundred-messages",
        kind: Kind::Reading,
        what: "a job sends 100 messages through each buffer, not one",
        grounds: "For: the paper's Sender and Receiver do (section 5.1). Against: that is a measurement, and the study does not name a number.",
        change: |p| p.messages = 100,
    },
    Variant {
        name: "cached-messages",
        kind: Kind::Reading,
        what: "messages are copied at the speed of hits in the last-level cache",
        grounds: "For: elimination keeps buffers cacheable, and Figure 8's ratios fit. Against: the paper states one speed of copies.",
        change: |p| p.message_speed = 2_344,
    },
    Variant {
        name: "conflicts-of-figure-10",
        kind: Kind::Reading,
        what: "a copying processor in the bank costs a task 31 % to 81 % of its time without ways, not 2 % to 10 %",
        grounds: "For: section 6.1 says that inflation by processors follows Figure 10. Against: that figure measures the copy itself; for \
                  the bystander there is Observation 3.",
        change: |p| p.cpu_bank = interval(310_000, 810_000),
    },
    Variant {
        name: "devices-saturate",
        kind: Kind::Reading,
        what: "devices-disturb-all, and a few MB/s of devices in banks of levels A and B disturb nearly as much as 200 (constants of 2 to 10 MB/s)",
        grounds: "For: the growth with the bandwidth falls off (section 6.1), the paper gives no constant, and then LP and SP pay for devices as ALL \
                  does and gain half. Against: Observation 6 has the cost fall with each fifth that leaves the bank.",
        change: |p| {
            p.readings.device_reach = DeviceReach::System;
            p.dma_constant = interval(2, 10);
        },
    },
    Variant {
        name: "devices-saturate-io-share",
        kind: Kind::Reading,
        what: "devices-saturate and io-share-40-60 together",
        grounds: "As each; the first needs copies that are worth placing.",
        change: |p| {
            p.readings.device_reach = DeviceReach::System;
            p.dma_constant = interval(2, 10);
            p.io_share = SECOND_IO;
        },
    },
    Variant {
        name: "structure",
        kind: Kind::Reading,
        what: "devices-disturb-all, level-c-always, random-without-relief and messages-expose-job together",
        grounds: "All readings of who disturbs whom that differ from the frozen ones.",
        change: |p| {
            p.readings.device_reach = DeviceReach::System;
            p.readings.level_c_conflicts = LevelCConflicts::Always;
            p.readings.random_relief = RandomRelief::Ignored;
            p.readings.plain_messages = PlainMessages::Job;
        },
    },
];

/// The variant of a name.
///
/// # Errors
/// [`ParameterError::Pattern`] lists the names.
pub fn named(name: &str) -> Result<&'static Variant, ParameterError> {
    VARIANTS.iter().find(|v| v.name == name).ok_or_else(|| {
        let names: Vec<&str> = VARIANTS.iter().map(|v| v.name).collect();
        ParameterError::Pattern(format!(
            "`{name}` is not a variant of the study; variants: {}",
            names.join(", ")
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mc2::schemes::Scheme;
    use crate::mc2::study::run_cell;

    #[test]
    fn every_variant_is_valid_and_has_its_own_hash() {
        let mut hashes = vec![StudyParameters::default().hash()];
        for variant in VARIANTS {
            let mut parameters = StudyParameters::default();
            (variant.change)(&mut parameters);
            parameters.validate().expect(variant.name);
            assert!(!hashes.contains(&parameters.hash()), "{}", variant.name);
            hashes.push(parameters.hash());
            assert_eq!(named(variant.name).expect("is there").what, variant.what);
        }
        insta::assert_snapshot!(named("third").expect_err("none"), @"`third` is not a variant of the study; variants: first, second, io-share-40-60, message-share-20-40, unmanaged-5-100, halved-message-limit, retry-packing, half-of-io-tasks, axis-of-8, own-level-utilisation, devices-disturb-all, level-c-always, random-without-relief, messages-expose-job, hundred-messages, cached-messages, conflicts-of-figure-10, devices-saturate, devices-saturate-io-share, structure");
    }

    /// Published results can still be reproduced: these counts were in the tests of that version.
    #[test]
    fn the_second_version_can_be_repeated() {
        let mut parameters = StudyParameters::default();
        (named("second").expect("is there").change)(&mut parameters);
        for (scenario, point, counts) in [
            (0, 18, [35, 50, 59, 50, 50, 50, 59, 59, 59]),
            (100, 18, [6, 6, 11, 21, 14, 12, 24, 19, 16]),
            (321, 35, [0, 0, 0, 0, 0, 0, 1, 0, 0]),
            (647, 21, [5, 5, 5, 30, 12, 15, 31, 13, 16]),
        ] {
            let found =
                run_cell(&parameters, scenario, point, 0..64, &Scheme::ALL).expect("exists");
            assert_eq!(found.schedulable, counts);
        }
    }
}
