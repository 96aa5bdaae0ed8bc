//! What mc2-rts20 leaves open, and how this study decides it: value, reason, date, and every earlier value.
//!
//! Why it exists: knowing the paper's ratios, one could adjust a parameter until they come out. So each of these was decided only
//! from the paper's text and the platform, written down here, and frozen on [`FROZEN`], before any ratio was computed with it.
//! Two sets had been used before; their values are kept here ([`OpenParameter::earlier`]), and [`super::variants`] runs them
//! again. A value that changes from now on changes this table, its date, and the hash that every result carries.
//!
//! It deliberately contains no ratio.

use super::parameters::{
    DeviceReach, LevelCConflicts, MILLION, MessageLimit, PackingFailure, PeriodHalf, PlainMessages,
    RandomRelief, StudyParameters, UtilisationLevel, copy_speed, interval, io_sizes,
};

/// The day on which all values below were frozen.
pub const FROZEN: &str = "2026-11-22";

/// The values of the first run of the whole study.
pub const FIRST: &str = "first run, 2026-11-21";
/// The values set after the first run's ratios were known.
pub const SECOND: &str = "published until 2026-11-22, set after the first run";

/// A parameter that the paper leaves open.
#[derive(Clone, Copy, Debug)]
pub struct OpenParameter {
    /// Its field.
    pub name: &'static str,
    /// Its unit.
    pub unit: &'static str,
    /// Why it has its value.
    pub reason: &'static str,
    /// Earlier values: the value, and when it applied.
    pub earlier: &'static [(&'static str, &'static str)],
    /// The low variant of a sensitivity run.
    pub low: fn(&mut StudyParameters),
    /// The high variant.
    pub high: fn(&mut StudyParameters),
    /// Its value as text.
    pub value: fn(&StudyParameters) -> String,
}

macro_rules! open {
    ($name:ident, $unit:literal, interval $low:expr, $high:expr, [$($earlier:expr),*], $reason:literal) => {
        OpenParameter {
            name: stringify!($name),
            unit: $unit,
            reason: $reason,
            earlier: &[$($earlier),*],
            low: |p| p.$name = interval($low.0, $low.1),
            high: |p| p.$name = interval($high.0, $high.1),
            value: |p| format!("{} to {}", p.$name.low, p.$name.high),
        }
    };
    ($name:ident, $unit:literal, number $low:expr, $high:expr, $reason:literal) => {
        OpenParameter {
            name: stringify!($name),
            unit: $unit,
            reason: $reason,
            earlier: &[],
            low: |p| p.$name = $low,
            high: |p| p.$name = $high,
            value: |p| p.$name.to_string(),
        }
    };
    (reading $name:ident, $other:expr, [$($earlier:expr),*], $reason:literal) => {
        OpenParameter {
            name: stringify!($name),
            unit: "reading",
            reason: $reason,
            earlier: &[$($earlier),*],
            low: |p| p.readings.$name = $other,
            high: |p| p.readings.$name = $other,
            value: |p| format!("{:?}", p.readings.$name),
        }
    };
}

/// Everything that the paper leaves open. Entries with earlier values say so.
pub const OPEN: &[OpenParameter] = &[
    OpenParameter {
        name: "utilisation_level",
        unit: "level",
        reason: "Section 6.1 says that period times utilisation is the idle cost under Level-A pessimism; footnote 14 says, informally, \
                 that each level's column models that level's costs. The sentence on the method counts; `Own` is the other reading.",
        earlier: &[],
        low: |p| p.utilisation_level = UtilisationLevel::Own,
        high: |p| p.utilisation_level = UtilisationLevel::Own,
        value: |p| format!("{:?}", p.utilisation_level),
    },
    OpenParameter {
        name: "utilisation_points",
        unit: "points of 0.2 processors",
        reason: "An area is that under a whole curve: the axis ends where no scheme schedules anything any more. Every result says how many \
                 curves are above zero at its end.",
        earlier: &[("40", FIRST)],
        low: |p| p.utilisation_points = p.utilisation_points * 2 / 3,
        high: |p| p.utilisation_points = p.utilisation_points * 4 / 3,
        value: |p| p.utilisation_points.to_string(),
    },
    open!(
        average_cost,
        "millionths of the greatest cost",
        interval(300_000, 600_000),
        (700_000, 950_000),
        [],
        "Level C has average costs (section 2). Section 5.2 calls Matrix far more deterministic than the video programs: programs \
         between strongly varying and nearly constant."
    ),
    open!(
        way_amplitude,
        "millionths of the cost with all ways",
        interval(50_000, 500_000),
        (200_000, 2_000_000),
        [],
        "An LLC hit of the i.MX6 costs about 30 cycles, an access to memory about three times as much again: a program that spends \
         5 % to 50 % of its time on LLC hits takes 10 % to 100 % longer without the cache."
    ),
    open!(
        way_constant,
        "thousandths of ways",
        interval(500, 2_000),
        (2_000, 8_000),
        [],
        "Working sets of one way (64 KiB) to four (256 KiB, the paper's Synthetic) are cached in the main once they fit."
    ),
    open!(
        unmanaged,
        "millionths",
        interval(5_000, 75_000),
        (30_000, 300_000),
        [("20000 to 150000", FIRST), ("50000 to 1000000", SECOND)],
        "Figure 11 shows the gap between Idle and Managed without numbers. Arbiters serve the least recently served first (section \
         2), so a line waits for one line of each of three other processors at most. A line of 32 bytes takes four beats of a 64-bit bus, \
         some 10 of the 100 ns of an access to memory: three lines are 30 % of it. Programs that spend 5 % to 50 % of their time on \
         accesses to memory take 1.5 % to 15 % longer."
    ),
    open!(
        dma_bus,
        "millionths",
        interval(10_000, 60_000),
        (40_000, 240_000),
        [],
        "Observation 4: the bus is the main cause. Devices move at most 200 MB/s, about a tenth of what the memory sustains."
    ),
    open!(
        dma_bank,
        "millionths",
        interval(10_000, 60_000),
        (40_000, 240_000),
        [],
        "A copying processor moves about 210 MB/s and inflates Matrix by 6 % through row conflicts (Observation 3); a device moves \
         as much. From hardly any accesses to twice as many as Matrix."
    ),
    open!(
        dma_constant,
        "MB/s",
        interval(20, 60),
        (80, 240),
        [],
        "The increase falls off within the 0 to 200 MB/s of the figures (section 6.1)."
    ),
    open!(
        cpu_bank,
        "millionths",
        interval(10_000, 50_000),
        (40_000, 200_000),
        [],
        "6 % for Matrix beside one copying processor (Observation 3): the one measurement of a program that does no I/O itself. Tasks \
         touch memory less or more."
    ),
    open!(average_interference, "millionths", number 250_000, MILLION,
        "On average Matrix suffers 3 % where it suffers 6 % at most (Observation 3)."),
    open!(
        message_share,
        "millionths of the cost at level B",
        interval(25_000, 75_000),
        (100_000, 300_000),
        [("50000 to 150000", FIRST), ("200000 to 400000", SECOND)],
        "Tasks spend only a relatively small proportion of their time accessing IPC and I/O buffers (section 6.2), the one statement of \
         the paper on this: about a tenth. A limit: messages take what calls and bytes take, but not more."
    ),
    open!(
        io_share,
        "millionths of the cost at level B",
        interval(25_000, 75_000),
        (100_000, 300_000),
        [("50000 to 150000", FIRST), ("400000 to 600000", SECOND)],
        "As `message_share`: the same sentence names I/O buffers. It contradicts High of Table 3 (200 MB/s copied at 210 MB/s take most of \
         a processor) if every byte is copied at that speed; the sentence is about just this share, the product is our inference, so \
         the sentence counts."
    ),
    open!(
        communicating,
        "millionths",
        interval(125_000, 375_000),
        (500_000, 1_000_000),
        [],
        "The paper does not say how many tasks exchange messages: a quarter to three quarters of the chances to begin a chain."
    ),
    open!(
        chain,
        "tasks",
        interval(2, 2),
        (2, 8),
        [],
        "Tasks that communicate share a period (section 6.1): short pipelines."
    ),
    open!(messages, "messages", number 2, 4,
        "The paper does not say how many messages a job sends; its measurements send 100 in a run (section 5.1). One is the least."),
    open!(message_call, "ns", number 1_500, 6_000,
        "A Linux system call with System V queue handling at 800 MHz takes a few thousand cycles."),
    open!(message_speed, "ps a byte", number 2_344, 9_524,
        "The one speed of a copy that the paper states (section 5.2). Messages that stay in the last-level cache could be twice as fast: \
         30 cycles for each line read and for each line written are 2344 ps a byte."),
    open!(locking_constants, "thousandths", number 1_500, 6_000,
        "A region that holds all buffers keeps e^-3 = 5 % of the penalty; smaller regions lose exponentially (section 6.1)."),
    OpenParameter {
        name: "bytes_a_pixel",
        unit: "bytes",
        reason: "USB cameras deliver YUV 4:2:2, which is what Yuv2gray converts (Table 2): two bytes a pixel. The speed of a copy is 2925.67 us \
                 for 640 x 480 pixels (section 5.2), so fewer bytes are slower ones.",
        earlier: &[],
        low: |p| set_bytes_a_pixel(p, 1),
        high: |p| set_bytes_a_pixel(p, 4),
        value: |p| bytes_a_pixel(p).to_string(),
    },
    OpenParameter {
        name: "io_sizes",
        unit: "bytes",
        reason: "Frames of 160 x 120, 320 x 240 and 640 x 480 pixels (section 5.2 names the last and says that there were several), and reads of \
                 400 KiB (section 5.3), equally likely.",
        earlier: &[],
        low: |p| p.io_sizes = vec![38_400, 153_600],
        high: |p| p.io_sizes = vec![409_600, 614_400],
        value: |p| format!("{:?}", p.io_sizes),
    },
    open!(direct_bytes, "bytes", number 102_400, 1_638_400,
        "A disk interrupts once for a read, and the paper's reads are 400 KiB (section 5.3)."),
    open!(packet_bytes, "bytes", number 49_152, 196_608,
        "The Linux USB video driver asks for 32 packets of 3 KiB before an interrupt."),
    open!(interrupt, "ns", number 3_000, 12_000,
        "An interrupt entry with a short handler in Linux at 800 MHz."),
    open!(schedule, "ns", number 2_500, 10_000,
        "LITMUS^RT on processors of this speed decides and switches within a few microseconds."),
    open!(release, "ns", number 2_500, 10_000,
        "As `schedule`."),
    open!(reload_ways, "ways", number 1, 6,
        "A preemption can cost at most what lay in the processor's region: 16 ways over five regions."),
    open!(minimum_level_c, "ways", number 0, 2,
        "Level C and the operating system have a region of their own (Figure 3): one way is the least that is one."),
    open!(
        reading message_limit,
        MessageLimit::Half,
        [("Half", FIRST)],
        "The sentence of section 6.2 is on tasks, not on buffers: a job with one buffer may spend on it what one with two spends on both."
    ),
    open!(
        reading packing_failure,
        PackingFailure::Retry,
        [("Retry", SECOND)],
        "Section 6.1 keeps the phases separate, and splits groups when capacity runs out while it packs; it says nothing of a way back from \
         phase three."
    ),
    open!(
        reading period_half,
        PeriodHalf::IoTasks,
        [("IoTasks", FIRST), ("IoTasks", SECOND)],
        "Section 6.1: the buffers that belong to the half, within each level, of the tasks with the longest periods. It does not say of \
         the tasks with I/O."
    ),
    open!(
        reading device_reach,
        DeviceReach::System,
        [],
        "Table 1: a buffer in the bank of levels A and B causes interference by devices on its own processor, none on others; section 4.3 says \
         the same. The last example of section 6.1 can be read as all banks of the system together."
    ),
    open!(
        reading level_c_conflicts,
        LevelCConflicts::Always,
        [],
        "Section 6.1 reduces interference to the duration of the copy. Observation 3, which measures level C, has a processor that does \
         nothing but copy."
    ),
    open!(
        reading random_relief,
        RandomRelief::Ignored,
        [],
        "Section 6.1 puts random buffers into any bank, and what does not lie in a bank causes no conflicts there (Table 1)."
    ),
    open!(
        reading plain_messages,
        PlainMessages::Job,
        [],
        "Section 6.1 says that the increase for data in banks of level C follows Figure 8, whose slowest curve is selective bypass. Section \
         4.2 says that only its techniques confine the interference to the access."
    ),
];

fn bytes_a_pixel(parameters: &StudyParameters) -> u64 {
    (copy_speed(1) + parameters.copy_speed / 2) / parameters.copy_speed
}

fn set_bytes_a_pixel(parameters: &mut StudyParameters, bytes: u64) {
    parameters.copy_speed = copy_speed(bytes);
    parameters.message_speed = copy_speed(bytes);
    parameters.io_sizes = io_sizes(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_other_value_is_valid_and_differs() {
        let base = StudyParameters::default();
        base.validate().expect("the default is valid");
        for open in OPEN {
            for vary in [open.low, open.high] {
                let mut other = base.clone();
                vary(&mut other);
                other.validate().expect(open.name);
                assert_ne!(base.hash(), other.hash(), "{}", open.name);
                assert_ne!((open.value)(&base), (open.value)(&other), "{}", open.name);
            }
            assert!(
                open.earlier.iter().all(|(value, _)| !value.is_empty()) && !open.reason.is_empty()
            );
        }
    }

    /// Every field that is not a number of the paper or of the sampling is in the table.
    #[test]
    fn nothing_open_is_left_out() {
        let stated = [
            // Sampling.
            "seed",
            "utilisation_step",
            "batch",
            "most_samples",
            "half_width",
            // Section 2 and Figure 3.
            "processors",
            "ways",
            "way_bytes",
            "level_c_banks",
            "level_a_over_b",
            // Figure 8.
            "ce_send",
            "ce_receive",
            "cl_send",
            "cl_receive",
            // Observation 2.
            "copy_inflation",
            "copy_inflation_average",
            // By `bytes_a_pixel` and by its parts.
            "copy_speed",
            "readings",
        ];
        let text = serde_json::to_value(StudyParameters::default()).expect("serialises");
        let fields = text.as_object().expect("an object");
        let readings = fields["readings"].as_object().expect("an object");
        for name in fields.keys().chain(readings.keys()) {
            let open = OPEN.iter().any(|o| o.name == name);
            assert!(open != stated.contains(&name.as_str()), "{name}");
        }
    }

    /// The page says the same.
    #[test]
    fn the_page_has_every_row() {
        let base = StudyParameters::default();
        let page = include_str!("../../../docs/studies/mc2.md");
        let rows: Vec<String> = OPEN
            .iter()
            .map(|o| {
                let earlier: Vec<String> = o
                    .earlier
                    .iter()
                    .map(|(value, when)| format!("{value} ({when})"))
                    .collect();
                format!(
                    "| `{}` | {} | {} | {} | {} |",
                    o.name,
                    (o.value)(&base),
                    o.unit,
                    earlier.join("; "),
                    o.reason
                )
            })
            .filter(|row| !page.contains(row))
            .collect();
        assert!(
            rows.is_empty(),
            "docs/studies/mc2.md lacks:\n{}",
            rows.join("\n")
        );
        assert!(page.contains(&format!("frozen on {FROZEN}")));
    }

    /// The frozen values: change a value together with its date.
    #[test]
    fn frozen() {
        let base = StudyParameters::default();
        let all: Vec<String> = OPEN
            .iter()
            .map(|o| format!("{} = {}", o.name, (o.value)(&base)))
            .collect();
        insta::assert_snapshot!(format!("{FROZEN}\n{}", all.join("\n")));
    }
}
