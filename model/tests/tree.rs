//! The rules of the whole tree: random trees that obey them are accepted, and each single violation is refused.
//!
//! The trees have exactly what they need (limits of managers are the sums of what is below), so a rule that counts differently
//! anywhere refuses one of them; one less anywhere must be refused.

use bulkhead_model::system::{APP_KERNEL_MEMORY, System, TILE_ENDPOINTS, table_pages};
use bulkhead_model::{LoadOptions, canonical, load_system_text};
use proptest::prelude::*;

/// A manager, or the root: applications, and managers below.
#[derive(Clone, Debug)]
struct Tree {
    apps: Vec<App>,
    below: Vec<Tree>,
}

#[derive(Clone, Debug)]
struct App {
    tile: u16,
    pages: u64,
    slots: u32,
    region: Option<u64>,
    /// MiB a second.
    limit: Option<u64>,
    /// Percent.
    cpu: u64,
    kernel: Option<u64>,
}

fn app() -> impl Strategy<Value = App> {
    (
        2u16..6,
        4u64..600,
        1u32..5,
        prop::option::weighted(0.3, 1u64..20),
        prop::option::weighted(0.3, 1u64..100),
        1u64..6,
        prop::option::weighted(0.3, 1u64..8),
    )
        .prop_map(|(tile, pages, slots, region, limit, cpu, kernel)| App {
            tile,
            pages,
            slots,
            region,
            limit,
            cpu,
            kernel,
        })
}

fn tree() -> impl Strategy<Value = Tree> {
    let leaf = prop::collection::vec(app(), 1..3).prop_map(|apps| Tree {
        apps,
        below: Vec::new(),
    });
    leaf.prop_recursive(2, 8, 2, |inner| {
        (
            prop::collection::vec(app(), 0..3),
            prop::collection::vec(inner, 1..3),
        )
            .prop_map(|(apps, below)| Tree { apps, below })
    })
}

/// Writes a tree; `limits` gives the contents of each manager by its name.
struct Writer<'a> {
    text: String,
    number: usize,
    limits: &'a dyn Fn(&str) -> String,
}

impl Writer<'_> {
    fn inside(&mut self, tree: &Tree) {
        self.number += 1;
        let domain = self.number;
        self.text += &format!("<domain name='d{domain}'>");
        for app in &tree.apps {
            self.number += 1;
            let (number, tile) = (self.number, app.tile);
            let bytes = app.pages * 4096;
            self.text +=
                &format!("<app name='a{number}' tile='{tile}' program='p/q' memory='{bytes}B'>");
            let noc = app
                .limit
                .map_or(String::new(), |rate| format!(" noc='{rate}MiB/s'"));
            let kernel = app
                .kernel
                .map_or(String::new(), |size| format!(" kernel-memory='{size}KiB'"));
            self.text += &format!("<limit{noc}{kernel}/><cpu quota='{}%'/>", app.cpu);
            self.text += &format!("<rgate name='in' slots='{}'/>", app.slots);
            if let Some(pages) = app.region {
                self.text += &format!("<mgate name='m' size='{}B'/>", pages * 4096);
            }
            self.text += "</app>";
        }
        self.text += "</domain>";
        for below in &tree.below {
            self.number += 1;
            let name = format!("m{}", self.number);
            self.text += &format!("<manager name='{name}' tile='6'>{}", (self.limits)(&name));
            self.inside(below);
            self.text += "</manager>";
        }
    }
}

fn text(tree: &Tree, limits: &dyn Fn(&str) -> String) -> String {
    let mut writer = Writer {
        text: String::from("<system name='r' platform='tiled-gem5' manager-tile='1'>"),
        number: 0,
        limits,
    };
    writer.inside(tree);
    for tile in 2..7 {
        writer.text += &format!("<tilemux tile='{tile}'/>");
    }
    writer.text + "</system>"
}

fn load(text: &str) -> Result<System, bulkhead_model::Errors> {
    load_system_text("r", text, &LoadOptions::default())
}

/// Limits that are exactly what is needed, minus `less` of the quota with this number.
fn exact(system: &System, manager: usize, quota: usize, less: u64) -> String {
    let mut text = String::new();
    for tile in system.tiles_below(manager) {
        let sum = system.on_tile(manager, tile);
        let [endpoints, tables] = [(0, sum.endpoints), (1, sum.tables)]
            .map(|(number, needed)| needed - if number == quota { less } else { 0 });
        text += &format!("<limit tile='{tile}' endpoints='{endpoints}' page-tables='{tables}'");
        let rest = u128::from(sum.without_limit > 0);
        let rate = sum.rate + rest - if quota == 2 { u128::from(less) } else { 0 };
        let burst = sum.burst + rest * 512 - if quota == 3 { u128::from(less) } else { 0 };
        text += &format!(" noc='{}B/s' burst='{}B'/>", rate.max(1), burst.max(512));
    }
    let [kernel, memory] = [
        (4, system.kernel_memory_below(manager)),
        (5, system.memory_below(manager)),
    ]
    .map(|(number, needed)| needed - if number == quota { less } else { 0 });
    text + &format!("<limit kernel-memory='{kernel}B' memory='{memory}B'/>")
}

/// Whether the tree fits the chip, counted here from the tree alone.
fn fits(tree: &Tree) -> bool {
    fn visit<'t>(tree: &'t Tree, apps: &mut Vec<(usize, &'t App)>, managers: &mut usize) {
        let own = *managers;
        apps.extend(tree.apps.iter().map(|app| (own, app)));
        for below in &tree.below {
            *managers += 1;
            visit(below, apps, managers);
        }
    }
    let (mut apps, mut managers) = (Vec::new(), 0);
    visit(tree, &mut apps, &mut managers);
    let kernel: u64 = apps
        .iter()
        .map(|(_, app)| app.kernel.map_or(APP_KERNEL_MEMORY, |k| k << 10) + (8 << 10))
        .sum();
    // What is given away exists, unless it exceeds the memory tile: the kernel's heap takes two and a half times as much.
    let fits_kernel = kernel + managers as u64 * (14 << 10) <= 64 << 20;
    let fits_tiles = (2..6u16).all(|tile| {
        let here: Vec<_> = apps.iter().filter(|(_, app)| app.tile == tile).collect();
        let mut owners: Vec<usize> = here.iter().map(|(manager, _)| *manager).collect();
        owners.dedup();
        let limited = here.iter().filter(|(_, app)| app.limit.is_some()).count();
        let endpoints: u64 = here
            .iter()
            .map(|(_, app)| 9 + u64::from(app.slots) + u64::from(app.region.is_some()))
            .sum();
        // A window for each manager, and one for the manager that starts the tile.
        owners.len() + managers < 4 && limited <= 3 && endpoints + TILE_ENDPOINTS <= 192
    });
    fits_kernel && fits_tiles && managers < 4
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// A tree that obeys every rule is accepted, with limits that are exactly enough, and what is written from it means the
    /// same.
    #[test]
    fn trees_that_fit_are_accepted_and_one_less_is_refused(tree in tree(), quota in 0usize..6) {
        prop_assume!(fits(&tree));
        let plain = text(&tree, &|_| String::new());
        let system = load(&plain).map_err(|errors| TestCaseError::fail(format!("{errors}\n{plain}")))?;
        let number = |name: &str| system.managers.iter().position(|m| m.name == name);
        let limited = text(&tree, &|name| number(name).map_or(String::new(), |m| exact(&system, m, 9, 0)));
        let bounded = load(&limited).map_err(|errors| TestCaseError::fail(format!("{errors}\n{limited}")))?;
        prop_assert_eq!(bounded.apps.len(), system.apps.len());
        // The managers' memory is counted as no less than what they read, and not many times more.
        let (read, counted) = (canonical::for_chip(&bounded).len() as u64, bounded.description_bytes(0));
        prop_assert!((read..4 * read).contains(&counted), "{} bytes, {} counted", read, counted);
        let written = canonical::complete(&bounded);
        let again = load(&written);
        prop_assert_eq!(again.as_ref().ok(), Some(&bounded), "{}", written);

        // One less of one quota of one manager: exactly that is reported.
        let Some(victim) = (1..system.managers.len()).next_back() else { return Ok(()) };
        let bad = text(&tree, &|name| number(name).map_or(String::new(), |m| {
            if m == victim { exact(&system, m, quota, 1) } else { String::new() }
        }));
        let sums: Vec<_> = system.tiles_below(victim).iter().map(|t| system.on_tile(victim, *t)).collect();
        let is_violation = match quota {
            // A rate of zero and a burst below a chunk cannot be written.
            2 => sums.iter().any(|sum| sum.rate + u128::from(sum.without_limit > 0) > 1),
            3 => sums.iter().any(|sum| sum.burst > 0),
            _ => true,
        };
        match load(&bad) {
            Ok(_) => prop_assert!(!is_violation, "{}", bad),
            Err(errors) => {
                prop_assert!(is_violation, "{}\n{}", errors, bad);
                for error in &errors.list {
                    let word = ["endpoints", "page tables", "traffic", "traffic", "kernel memory", "of memory"][quota];
                    prop_assert!(error.message().contains(word), "{}", error);
                    prop_assert!(error.message().contains(&system.managers[victim].name), "{}", error);
                }
            }
        }
    }
}

/// The kernel counts page tables by the same formula; see `abi::tilemux::table_pages`.
#[test]
fn page_tables_are_counted_by_hand() {
    // One page: 1 root, 2 of the last level (1 and one more), 2 of the middle, 2 for the registers.
    assert_eq!(table_pages(4096), 7);
    // 16 MiB are 4096 pages in eight tables of the last level; with guard pages, ten.
    assert_eq!(table_pages(16 << 20), 15);
    assert_eq!(table_pages(1 << 30), 1 + 514 + 3 + 2);
}
