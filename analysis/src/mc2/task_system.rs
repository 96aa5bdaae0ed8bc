//! Task systems of the study, and its scenarios.
//!
//! Why it exists: the generator creates them and the cost model reads them; this plain data is their common interface.
//! What it deliberately does not know: where the numbers come from and what they lead to.

use super::parameters::ParameterError;
use serde::{Deserialize, Serialize};

/// Criticality levels of the study. (Level D has no guarantee and is not in it.)
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Level {
    /// Cyclic table.
    A,
    /// Rate monotonic.
    B,
    /// Global earliest deadline first.
    C,
}

/// I/O of a task: each job takes one buffer of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Io {
    /// Bytes a job.
    pub bytes: u64,
    /// The device writes directly into the buffer (disk); otherwise the kernel copies from its own buffers (camera).
    pub direct: bool,
    /// Bank used by schemes with random placement: first the banks of the processors, then those of level C.
    pub random_bank: u8,
}

/// One task. Shares are in millionths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StudyTask {
    /// Its level.
    pub level: Level,
    /// Period and deadline in ns.
    pub period: u64,
    /// Cost in ns in an idle system with all ways, as level A estimates it.
    pub idle: u64,
    /// Average over greatest cost.
    pub average: u64,
    /// Inflation without ways.
    pub way_amplitude: u64,
    /// Which decay curve over the ways.
    pub way_curve: u8,
    /// Interference through unmanaged resources.
    pub unmanaged: u64,
    /// Maximum interference of devices through the bus.
    pub dma_bus: u64,
    /// Maximum interference of devices through the bank.
    pub dma_bank: u64,
    /// Which curve over the bandwidth.
    pub dma_curve: u8,
    /// Interference of one other processor in the bank.
    pub cpu_bank: u64,
    /// Cost of loading the cache again after a preemption, over the idle cost.
    pub reload: u64,
    /// Message buffers that it sends to or receives from; they divide its share for messages.
    pub buffers: u8,
    /// Share of a job for messages.
    pub message_share: u64,
    /// Share of a job for device data.
    pub io_share: u64,
    /// Its I/O.
    pub io: Option<Io>,
}

/// A message buffer between two tasks of one level and period. Shares are in millionths of the time with selective bypass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessageBuffer {
    /// Index of the sender.
    pub sender: u32,
    /// Index of the receiver.
    pub receiver: u32,
    /// Bytes of a message; one message per job.
    pub bytes: u64,
    /// Sending with concurrency elimination.
    pub ce_send: u64,
    /// Receiving with concurrency elimination.
    pub ce_receive: u64,
    /// Sending with the buffer locked in the cache.
    pub cl_send: u64,
    /// Receiving with the buffer locked in the cache.
    pub cl_receive: u64,
    /// Bank that schemes with random placement take.
    pub random_bank: u8,
}

/// A generated system. Tasks are in the order of levels; tasks of a chain follow each other.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskSystem {
    /// Tasks.
    pub tasks: Vec<StudyTask>,
    /// Message buffers, sorted by sender.
    pub buffers: Vec<MessageBuffer>,
    /// Chains: first task and number of tasks, only of levels A and B.
    pub chains: Vec<(u32, u32)>,
}

/// The seven categories of Table 3 with the paper's names of their choices.
pub const CATEGORIES: [(&str, &[&str]); 7] = [
    ("criticality", &["C-Light", "C-Heavy", "All-Mod."]),
    ("period", &["Short", "Moderate", "Long"]),
    ("task-utilisation", &["Light", "Medium", "Heavy"]),
    ("reload", &["Quick", "Slow"]),
    ("message", &["Small", "Large"]),
    ("bandwidth", &["Low", "Medium", "High"]),
    ("direct", &["Few", "Many"]),
];

/// Number of scenarios: 3 x 3 x 3 x 2 x 2 x 3 x 2.
pub const SCENARIOS: usize = 648;

/// One choice of each category.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Scenario(pub [u8; 7]);

impl Scenario {
    /// The scenario with this number: the last category changes fastest.
    ///
    /// # Errors
    /// [`ParameterError::Missing`] from [`SCENARIOS`] on.
    pub fn from_index(index: usize) -> Result<Self, ParameterError> {
        if index >= SCENARIOS {
            return Err(ParameterError::Missing {
                what: "scenario",
                found: index as u64,
                count: SCENARIOS as u64,
            });
        }
        let mut rest = index;
        let mut choices = [0; 7];
        for (choice, (_, names)) in choices.iter_mut().zip(CATEGORIES).rev() {
            *choice = (rest % names.len()) as u8;
            rest /= names.len();
        }
        Ok(Self(choices))
    }

    /// Its number.
    pub fn index(&self) -> usize {
        self.0
            .iter()
            .zip(CATEGORIES)
            .fold(0, |index, (&choice, (_, names))| {
                index * names.len() + usize::from(choice)
            })
    }

    /// The paper's tuple, for example `(C-Light, Long, Light, Quick, Small, High, Many)`.
    pub fn name(&self) -> String {
        let names: Vec<&str> = self
            .0
            .iter()
            .zip(CATEGORIES)
            .map(|(&choice, (_, names))| names.get(usize::from(choice)).copied().unwrap_or("?"))
            .collect();
        format!("({})", names.join(", "))
    }

    /// The name for files: lower case, joined by underscores.
    pub fn file_name(&self) -> String {
        self.name()
            .to_lowercase()
            .chars()
            .filter(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | ','))
            .map(|c| if c == ',' { '_' } else { c })
            .collect()
    }
}

/// The scenarios that a pattern in the paper's tuple notation matches, for example `C-Light,*,Heavy,*,Lar.,High,*`.
///
/// A field holds `*` (or `...`, `…`), or the beginning of a choice's name, in any case and with or without a full stop;
/// alternatives are joined by `|`. The whole pattern may be in brackets. Fields left out at the end match everything.
///
/// # Errors
/// [`ParameterError::Pattern`] says which field is wrong and what it may hold.
pub fn matching(pattern: &str) -> Result<Vec<Scenario>, ParameterError> {
    let inner = pattern.trim().trim_start_matches('(').trim_end_matches(')');
    let places: Vec<&str> = if inner.trim().is_empty() {
        Vec::new()
    } else {
        inner.split(',').map(str::trim).collect()
    };
    if places.len() > CATEGORIES.len() {
        return Err(ParameterError::Pattern(format!(
            "`{pattern}` has {} places; a scenario has {}: {}",
            places.len(),
            CATEGORIES.len(),
            CATEGORIES.map(|(name, _)| name).join(", ")
        )));
    }
    let mut allowed = [[true; 3]; 7];
    for (place, (&text, (name, choices))) in places.iter().zip(CATEGORIES).enumerate() {
        if matches!(text, "*" | "..." | "…" | ". . .") {
            continue;
        }
        allowed[place] = [false; 3];
        for one in text.split('|').map(str::trim) {
            if one == "*" {
                allowed[place] = [true; 3];
                continue;
            }
            let wanted = one.trim_end_matches(['.', '*']).to_lowercase();
            let found: Vec<usize> = (0..choices.len())
                .filter(|&i| !wanted.is_empty() && short(choices[i]).starts_with(&wanted))
                .collect();
            // `Sm.` is the paper's abbreviation of Small, which begins with it; `Mod.` begins only Moderate.
            match found[..] {
                [only] => allowed[place][only] = true,
                _ => {
                    return Err(ParameterError::Pattern(format!(
                        "`{one}` at place {} ({name}) {}; choices: {}, or * for all",
                        place + 1,
                        if found.is_empty() {
                            "is none of its choices"
                        } else {
                            "can mean several choices"
                        },
                        choices.join(", ")
                    )));
                }
            }
        }
    }
    Ok((0..SCENARIOS)
        .filter_map(|index| Scenario::from_index(index).ok())
        .filter(|s| {
            s.0.iter()
                .zip(&allowed)
                .all(|(&choice, allowed)| allowed[usize::from(choice)])
        })
        .collect())
}

fn short(name: &str) -> String {
    name.trim_end_matches('.').to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_scenarios_correspond() {
        for index in 0..SCENARIOS {
            assert_eq!(Scenario::from_index(index).map(|s| s.index()), Ok(index));
        }
        assert!(Scenario::from_index(SCENARIOS).is_err());
        let counted: usize = CATEGORIES.iter().map(|(_, names)| names.len()).product();
        assert_eq!(counted, SCENARIOS);
    }

    #[test]
    fn patterns_of_the_paper_match() {
        let count = |pattern| matching(pattern).map(|s| s.len());
        assert_eq!(count("*"), Ok(648));
        assert_eq!(count(""), Ok(648));
        assert_eq!(
            count("(C-Light, Long, Light, Quick, Sm., High, Many)"),
            Ok(1)
        );
        assert_eq!(count("c-light,short,med.,slow,lar.,HIGH,many"), Ok(1));
        assert_eq!(count("C-Light,*,Heavy,*,Lar.,High,*"), Ok(12));
        assert_eq!(count("C-Light, Moderate, Heavy, ..."), Ok(24));
        assert_eq!(count("*,*,*,*,*,Low|High"), Ok(432));
        assert_eq!(count("C-L*,L*|*,Hea*"), Ok(72));
        assert_eq!(
            matching("All-Mod.,Mod,H,S,L,M,F").map(|s| s[0].name()),
            Ok("(All-Mod., Moderate, Heavy, Slow, Large, Medium, Few)".to_owned())
        );
    }

    #[test]
    fn wrong_patterns_name_the_choices() {
        let error = |pattern| matching(pattern).expect_err("wrong").to_string();
        insta::assert_snapshot!(error("C-Light,Tiny"), @"`Tiny` at place 2 (period) is none of its choices; choices: Short, Moderate, Long, or * for all");
        insta::assert_snapshot!(error("C"), @"`C` at place 1 (criticality) can mean several choices; choices: C-Light, C-Heavy, All-Mod., or * for all");
        insta::assert_snapshot!(error("*,*,*,*,*,*,*,*"), @"`*,*,*,*,*,*,*,*` has 8 places; a scenario has 7: criticality, period, task-utilisation, reload, message, bandwidth, direct");
    }
}
