//! Bounds of programs on the harts of a cluster, beside what random systems with hostile neighbours do.
//!
//! The machine and the analysis read the same platform and know nothing of each other. Each system has a program with ways and memory
//! of its own, and one to three rivals that access the second level and memory as fast as they can, with hits, misses, write-backs and
//! cache management, in bursts or without a pause.

use bulkhead_random::Random;
use bulkhead_report::result::{FlowResult, RunResult, VariantResult};
use bulkhead_report::verdict::Judgement;
use bulkhead_runner::measure::jobs::worst_started;
use bulkhead_runner::progress::Silent;
use bulkhead_runner::run::{Options, run};

pub fn ran(text: &str, overrides: Vec<String>) -> RunResult {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let system = folder.path().join("system.xml");
    std::fs::write(&system, text).expect("it can be written");
    let options = Options {
        system,
        overrides,
        ..Options::default()
    };
    match run(&options, &Silent) {
        Ok(finished) => finished.result,
        Err(error) => panic!("{error}\n{text}"),
    }
}

fn flow(variant: &VariantResult) -> &FlowResult {
    &variant.flows[0]
}

/// An order in which memory serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    /// Of the platform: reads before writes, open rows first.
    Reorders,
    Arrival,
    Slots,
    /// Slots by hart.
    Turns,
    /// The same, with miss registers for each hart.
    Registers,
}

impl Order {
    fn overrides(self) -> Vec<String> {
        let policy = match self {
            Order::Reorders => return Vec::new(),
            Order::Arrival => "fcfs",
            Order::Slots | Order::Turns | Order::Registers => "slots",
        };
        let mut all = vec![
            format!("platform/dram/controller@policy={policy}"),
            "platform/dram/controller@write-queue=0".to_owned(),
        ];
        if matches!(self, Order::Turns | Order::Registers) {
            all.push("platform/dram/controller@turns=hart".to_owned());
        }
        if self == Order::Registers {
            all.push("platform/cluster@miss-registers=hart".to_owned());
        }
        all
    }
}

fn program(name: &str, hart: u64, ways: &str, memory: &str, arguments: &[(&str, u64)]) -> String {
    let mut text = format!(
        r#"<app name="{name}" harts="{hart}" program="{memory}" ways="{ways}" memory="2MiB">"#
    );
    for (name, value) in arguments {
        text += &format!(r#"<argument name="{name}" value="{value}"/>"#);
    }
    if hart > 0 {
        text += r#"<argument name="forever" value="true"/>"#;
    }
    text + "</app>"
}

/// One of `all`.
pub fn one<T: Copy>(random: &mut Random, all: &[T]) -> T {
    all[random.below(all.len() as u64) as usize]
}

/// A random system: its text, what it changes of the platform, and its order.
fn system(seed: u64) -> (String, Vec<String>, Order) {
    let random = &mut Random::new(seed + 1);
    let order = one(
        random,
        &[
            Order::Reorders,
            Order::Arrival,
            Order::Slots,
            Order::Turns,
            Order::Registers,
        ],
    );
    let mut overrides = order.overrides();
    let registers = match order {
        Order::Registers => &["4", "4", "8", "16"],
        _ => &["1", "2", "4", "8"],
    };
    for (name, values) in [
        ("cache[l2]@mshrs", &registers[..]),
        ("cluster@banks", &["1", "1", "2", "4"]),
        ("cache[l1]@mshrs", &["1", "2", "4"]),
        ("cache[l1]@replacement", &["random", "lru"]),
        ("cache[l2]@replacement", &["random", "lru", "tree-plru"]),
    ] {
        overrides.push(format!("platform/{name}={}", one(random, values)));
    }
    let ways = 1 + random.below(8);
    // A way has 64 KiB. Where memory reorders, what does not fit is not judged.
    let most = match order {
        Order::Reorders => ways << 15,
        _ => 1 << 18,
    };
    let bytes = (1 << (14 + random.below(5))).min(most);
    let own_ways = format!("0-{}", ways - 1);
    let others = format!("{ways}-15");
    let (mut apps, seed) = (String::new(), random.next() >> 1);
    let flushes = match order {
        Order::Reorders => 0,
        _ => one(random, &[0, 0, 10]),
    };
    apps += &match random.below(3) {
        0 => program(
            "own",
            0,
            &own_ways,
            "memory/measure",
            &[
                ("bytes", bytes),
                ("stride", 32),
                ("passes", 4),
                ("rounds", 1),
                ("chains", 1 + random.below(4)),
            ],
        ),
        _ => program(
            "own",
            0,
            &own_ways,
            "memory/mix",
            &[
                ("bytes", bytes),
                ("steps", 500),
                ("passes", 6),
                ("seed", seed),
                ("stores", one(random, &[0, 30, 80])),
                ("flushes", flushes),
            ],
        ),
    };
    for rival in 1..=1 + random.below(3) {
        // Hits of the second level, or misses.
        let bytes = ("bytes", one(random, &[1 << 16, 1 << 17, 1 << 20]));
        let name = format!("rival-{rival}");
        apps += &match random.below(3) {
            0 => {
                let role = one(random, &["read", "write", "copy"]);
                let role = format!(r#"<argument name="role" value="{role}"/></app>"#);
                program(&name, rival, &others, "memory/measure", &[bytes]).replace("</app>", &role)
            }
            _ => program(
                &name,
                rival,
                &others,
                "memory/mix",
                &[
                    bytes,
                    ("seed", seed ^ rival),
                    ("stores", one(random, &[0, 30, 100])),
                    ("flushes", one(random, &[0, 0, 10, 100])),
                    ("burst", one(random, &[1, 3, 10])),
                    ("pause", one(random, &[0, 0, 0, 20])),
                ],
            ),
        };
    }
    let text = format!(
        r#"<system name="s" paradigm="bare" platform="imx6" duration="200ms"><domain name="d">{apps}</domain><flow name="pass" from="own" to="own"/></system>"#
    );
    (text, overrides, order)
}

/// No sample of any system takes longer than its bound; and most systems have one. Prints the least ratio for each order of memory.
#[test]
fn no_random_system_exceeds_its_bound() {
    const SYSTEMS: u64 = 60;
    let mut judged = 0;
    let mut least: [Option<f64>; 5] = [None; 5];
    for seed in 0..SYSTEMS {
        let (text, overrides, order) = system(seed);
        let result = ran(&text, overrides.clone());
        let flow = flow(&result.variants[0]);
        assert!(flow.latency.count >= 4, "{seed}: {text} {overrides:?}");
        let alone = result.added.first().and_then(|added| added.worst);
        let Some(bound) = &flow.bound else {
            println!("{seed}: {order:?}: not judged: {:?}", flow.unbounded);
            continue;
        };
        judged += 1;
        // The first sample is the start of the program.
        let worst = worst_started(&flow.samples).expect("several samples");
        let ratio = bound.ticks as f64 / worst as f64;
        println!(
            "{seed}: {order:?}: alone {alone:?}, worst {worst}, bound {}, {ratio:.2} times",
            bound.ticks
        );
        assert!(
            worst <= bound.ticks,
            "{seed}: {worst} is above the bound of {}\n{text}\n{overrides:?}",
            bound.ticks
        );
        let place = &mut least[order as usize];
        *place = Some(place.map_or(ratio, |least| least.min(ratio)));
    }
    println!(
        "{judged} of {SYSTEMS} judged; least ratio of bound to worst where memory reorders, serves in order of arrival, in slots, in turns, and in turns with registers by hart: {least:?}"
    );
    assert!(judged * 2 > SYSTEMS, "{judged}");
}

/// On `imx6`, routers with room for four packets of each link are as good as those without a limit, to the tick and in bounds. With less, packets
/// wait for room, and no flow is judged whose program goes to memory.
#[test]
fn room_for_a_way_there_and_back_changes_nothing() {
    let (mut judged, mut waited) = (0, 0);
    for seed in 0..12 {
        let (text, overrides, _) = system(seed);
        let with = |credits: &str| {
            let credits = format!("platform/network@credits={credits}");
            ran(&text, [&overrides[..], &[credits]].concat())
        };
        let [wide, enough, narrow] = ["unlimited", "4", "1"].map(with);
        let [wide, enough, narrow] = [&wide, &enough, &narrow].map(|run| flow(&run.variants[0]));
        assert_eq!(wide.samples, enough.samples, "{text}");
        let bound = |flow: &FlowResult| flow.bound.as_ref().map(|bound| bound.ticks);
        assert_eq!(bound(wide), bound(enough), "{text}");
        waited += u32::from(narrow.samples != wide.samples);
        let Some(why) = &narrow.unbounded else {
            continue;
        };
        judged += u32::from(wide.bound.is_some());
        if wide.bound.is_some() {
            assert!(why.contains("room for 4 none would wait"), "{why}");
        }
    }
    assert!(judged > 2 && waited > 2, "{judged} {waited}");
}

/// Ways of its own give a program a bound, and the bound holds; shared ways do not, and the reason says what would.
#[test]
fn a_program_with_ways_of_its_own_has_a_bound() {
    let options = Options {
        system: "bare/partitions".into(),
        ..Options::default()
    };
    let result = run(&options, &Silent).expect("it runs").result;
    let variant = |name: &str| {
        let mut all = result.variants.iter();
        all.find(|one| one.name == name).expect("a variant")
    };
    for name in ["alone", "ways"] {
        let flow = flow(variant(name));
        let bound = flow.bound.as_ref();
        let bound = bound.unwrap_or_else(|| panic!("{name}: {:?}", flow.unbounded));
        println!("{name}: worst {}, bound {}", flow.latency.max, bound.ticks);
        assert!(flow.latency.max <= bound.ticks, "{name}");
    }
    for name in ["shared", "banks"] {
        let why = flow(variant(name)).unbounded.as_deref();
        assert!(why.is_some_and(|why| why.contains("`ways`")), "{why:?}");
    }
    // The variant's own run without the others serves, because the variant `alone` has other ways.
    let added: Vec<_> = result.added.iter().map(|one| &*one.about).collect();
    assert_eq!(added, ["variant ways, without the other programs"]);
    let within = |name: &str, what: &str| {
        let mut all = result.verdict.promises().iter();
        let found = all.find(|one| one.variant == name && one.what.contains(what));
        found.map(|one| one.judgement)
    };
    assert_eq!(within("ways", "within the bound of"), Some(Judgement::Held));
    assert_eq!(
        within("ways", "within the deadline of"),
        Some(Judgement::Held)
    );
}

/// The run ends before the program's first sample does. It was alone, so that is the reason, and not that it was never measured alone.
#[test]
fn a_program_without_a_sample_is_told_so() {
    let options = Options {
        system: "bare/partitions".into(),
        overrides: vec!["@duration=30us".to_owned()],
        variants: vec!["alone".to_owned()],
        ..Options::default()
    };
    let result = run(&options, &Silent).expect("it runs").result;
    let why = flow(&result.variants[0]).unbounded.as_deref();
    assert_eq!(why, Some("alone it had no sample"));
}
