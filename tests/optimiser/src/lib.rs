//! Random way problems in units that both methods represent exactly, and their exchange with the reference in Python.
//!
//! Why it exists: HiGHS computes in floating point. If all utilisations are small multiples of one unit, each constraint of the
//! mixed-integer program is a sum of small integers, so its verdicts are exact and the two methods must agree to the last digit.
//! The reference is HiGHS's own Python package, which is precompiled; building HiGHS from C++ would take minutes in every check.
//!
//! What it deliberately does not know: how either method works.

use bulkhead_analysis::mc2::ways::{ONE, ProcessorTable, WayPlan, WayProblem};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The version of HiGHS's package used for comparison.
pub const HIGHS: &str = "1.15.1";

/// Splitmix64: small, seeded, good enough for drawing problems.
#[derive(Clone, Debug)]
pub struct Random(pub u64);

impl Random {
    /// The next number, of 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.bits() % bound.max(1)
    }
}

/// A problem whose utilisations are multiples of `ONE / one`.
#[derive(Clone, Debug, Serialize)]
pub struct Instance {
    /// How it was drawn.
    pub kind: &'static str,
    /// Utilisation of a whole processor in these units: a power of two.
    pub one: u64,
    /// As in [`WayProblem`].
    pub ways: usize,
    /// As in [`WayProblem`].
    pub minimum_level_c: usize,
    /// Fewest and most locked ways.
    pub locked: (usize, usize),
    /// The three tables of each processor.
    pub processors: Vec<[Vec<u64>; 3]>,
    /// As in [`WayProblem`].
    pub c_total: Vec<u64>,
    /// As in [`WayProblem`].
    pub c_largest: Vec<u64>,
}

/// The result of a method: objective and slack in units, or no plan.
pub type Answer = Option<(u64, u64)>;

/// The output of the reference.
#[derive(Clone, Debug, Deserialize)]
pub struct Reference {
    /// One for each instance.
    pub answers: Vec<Answer>,
    /// Seconds inside HiGHS, for each instance.
    pub seconds: Vec<f64>,
}

impl Instance {
    /// Draws an instance of one of three kinds: entries without any order, tables that fall along both indices, and tables as in
    /// the study.
    pub fn draw(random: &mut Random) -> Self {
        match random.below(8) {
            0..=2 => Self::plain(random, false),
            3..=6 => Self::plain(random, true),
            _ => Self::decaying(random),
        }
    }

    fn plain(random: &mut Random, falling: bool) -> Self {
        let ways = 2 + random.below(7) as usize;
        let count = 1 + random.below(4);
        let (stride, one) = (ways + 1, 1 << (3 + random.below(6)));
        // The load: small tables are usually feasible, large ones usually not.
        let scale = one / 4 + random.below(one);
        let mut table = |scale: u64| {
            let mut values: Vec<u64> = (0..stride * stride)
                .map(|_| {
                    if random.below(12) == 0 {
                        3 * one
                    } else {
                        random.below(scale + 1)
                    }
                })
                .collect();
            for at in 0..values.len() {
                if falling && at >= stride {
                    values[at] = values[at].min(values[at - stride]);
                }
                if falling && at % stride > 0 {
                    values[at] = values[at].min(values[at - 1]);
                }
            }
            values
        };
        let processors = (0..count)
            .map(|_| [table(scale), table(scale), table(scale)])
            .collect();
        let (c_total, c_largest) = (table(count * scale), table(count * scale / 2));
        let locked = random.below(3) as usize;
        Self {
            kind: if falling { "falling" } else { "unordered" },
            one,
            ways,
            minimum_level_c: random.below(3) as usize,
            locked: (locked.min(random.below(3) as usize), locked),
            processors,
            c_total,
            c_largest,
        }
    }

    /// Four processors, sixteen ways, costs that decay exponentially with ways, as in the study.
    pub fn decaying(random: &mut Random) -> Self {
        let (ways, one) = (16, 1u64 << 14);
        let stride = ways + 1;
        let load = 500 + random.below(1400);
        // For some tasks each: least utilisation, the cost of too few ways, and how fast it decays.
        let mut tables = |tasks: u64, share: u64| -> Vec<Vec<u64>> {
            let tasks: Vec<(f64, f64, f64, f64)> = (0..tasks)
                .map(|_| {
                    let base = one as f64 * (share * load) as f64 / 1e6
                        * (0.5 + random.below(1000) as f64 / 1000.0);
                    let grow = 0.2 + random.below(2000) as f64 / 1000.0;
                    let fade = 0.1 + random.below(900) as f64 / 1000.0;
                    let lock = random.below(200) as f64 / 1000.0;
                    (base, grow, fade, lock)
                })
                .collect();
            (0..tasks.len())
                .map(|task| {
                    let (base, grow, fade, lock) = tasks[task];
                    (0..stride * stride)
                        .map(|at| {
                            let (locked, own) = ((at / stride) as f64, (at % stride) as f64);
                            let cost = base
                                * (1.0 + grow * (-fade * own).exp() + lock * (-0.5 * locked).exp());
                            cost.ceil() as u64
                        })
                        .collect()
                })
                .collect()
        };
        let sum = |tables: &[Vec<u64>]| -> Vec<u64> {
            (0..stride * stride)
                .map(|at| tables.iter().map(|t| t[at]).sum())
                .collect()
        };
        let scaled = |table: &[u64], tenths: u64| -> Vec<u64> {
            table.iter().map(|u| (u * tenths).div_ceil(10)).collect()
        };
        let processors = (0..4)
            .map(|_| {
                let (a, b) = (sum(&tables(3, 80)), sum(&tables(5, 80)));
                let both: Vec<u64> = a
                    .iter()
                    .zip(&b)
                    .map(|(a, b)| (a * 6).div_ceil(10) + b)
                    .collect();
                let c = scaled(&both, 6);
                [a, both, c]
            })
            .collect();
        let c = tables(20, 70);
        let c_largest = (0..stride * stride)
            .map(|at| {
                let mut shares: Vec<u64> = c.iter().map(|t| t[at]).collect();
                shares.sort_unstable_by(|a, b| b.cmp(a));
                shares[..3].iter().sum::<u64>() + 3 * shares[0]
            })
            .collect();
        let locked = random.below(4) as usize;
        Self {
            kind: "decaying",
            one,
            ways,
            minimum_level_c: 1 + random.below(2) as usize,
            locked: (0, locked),
            processors,
            c_total: sum(&c),
            c_largest,
        }
    }

    /// The same in parts of [`ONE`].
    pub fn problem(&self) -> WayProblem {
        let unit = ONE / self.one;
        let table = |t: &[u64]| -> Vec<u64> { t.iter().map(|u| u * unit).collect() };
        WayProblem {
            ways: self.ways,
            processors: self
                .processors
                .iter()
                .map(|[a, b, c]| ProcessorTable {
                    a: table(a),
                    ab_b: table(b),
                    ab_c: table(c),
                })
                .collect(),
            c_total: table(&self.c_total),
            c_largest: table(&self.c_largest),
            minimum_level_c: self.minimum_level_c,
            locked: self.locked.0..=self.locked.1,
        }
    }

    /// Our answer in units.
    pub fn answer(&self, plan: Option<WayPlan>) -> Answer {
        let unit = ONE / self.one;
        plan.map(|plan| (plan.objective / unit, plan.slack / unit))
    }
}

/// A Python with HiGHS, in a virtual environment below `target`; created if it is missing.
///
/// # Errors
/// What failed, and how to help.
pub fn python(target: &Path) -> Result<PathBuf, String> {
    let folder = target.join(format!("highs-{HIGHS}"));
    let python = folder.join("bin/python");
    let has_highs = |python: &Path| {
        Command::new(python)
            .args(["-c", "import highspy"])
            .output()
            .is_ok_and(|o| o.status.success())
    };
    if has_highs(&python) {
        return Ok(python);
    }
    let run = |command: &mut Command, help: &str| match command.output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(format!(
            "{help}: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        )),
        Err(error) => Err(format!("{help}: {error}")),
    };
    run(
        Command::new("python3").args(["-m", "venv"]).arg(&folder),
        "python3 with the module venv is missing: apt-get install python3-venv",
    )?;
    run(
        Command::new(&python).args([
            "-m",
            "pip",
            "install",
            "--quiet",
            &format!("highspy=={HIGHS}"),
        ]),
        "pip cannot install highspy",
    )?;
    if has_highs(&python) {
        Ok(python)
    } else {
        Err("highspy is installed but does not load".to_owned())
    }
}

/// Solves the instances with HiGHS, in as many processes as there are processors.
///
/// # Errors
/// What the reference printed when it failed.
pub fn reference(
    python: &Path,
    folder: &Path,
    instances: &[Instance],
) -> Result<Reference, String> {
    let input = folder.join("instances.json");
    let output = folder.join("answers.json");
    let text = serde_json::to_string(instances).map_err(|e| e.to_string())?;
    std::fs::write(&input, text).map_err(|e| e.to_string())?;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("reference/ways.py");
    let run = Command::new(python)
        .arg(script)
        .args([&input, &output])
        .output()
        .map_err(|e| e.to_string())?;
    if !run.status.success() {
        return Err(String::from_utf8_lossy(&run.stderr).into_owned());
    }
    let text = std::fs::read_to_string(&output).map_err(|e| e.to_string())?;
    serde_json::from_str(&text).map_err(|e| e.to_string())
}
