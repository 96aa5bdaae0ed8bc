//! The tiled OS on chips with many tiles: every system that `check` accepts boots, with an application on every tile.
//!
//! `BULKHEAD_CASES=N` tries this many random platforms of up to 256 tiles instead of a few small ones, `BULKHEAD_CASES_SEED=S` others (a case that
//! failed names the seed that repeats it alone); `BULKHEAD_LONG=1` boots 900 applications with sessions, too.

use bulkhead_abi::boot::kernel_endpoints;
use bulkhead_runner::{place, run};
use bulkhead_system_tests::{Report, boot_booked, boot_text, boot_with};
use std::collections::BTreeMap;

/// A system with an application on each tile of a platform except the kernel's and the manager's.
fn everywhere(platform: &str, tiles: u16) -> String {
    let apps: String = (2..tiles).map(|tile| app(tile, 0)).collect();
    format!(
        r#"<system name="everywhere" platform="{platform}" duration="2s" manager-tile="1"><domain name="d">{apps}</domain></system>"#
    )
}

fn app(tile: u16, number: u16) -> String {
    format!(
        r#"<app name="a{tile}-{number}" tile="{tile}" program="adversary/witness" memory="128KiB"><argument name="rounds" value="1"/></app>"#
    )
}

/// All applications have ended well, and so has the root manager. Subordinate managers stay alive.
fn is_well(report: &Report, apps: usize) {
    assert_eq!(report.code, Some(0), "{}", report.console);
    let ended = report.console.matches(" stopped: exit 0").count();
    assert_eq!(ended, apps + 1, "{}", report.console);
}

/// A mesh of this many tiles, the last ones memory, with units of this many endpoints; made of the parts of `tiled-gem5`.
fn mesh(tiles: u16, memories: u16, endpoints: u16) -> String {
    let root = place::root().expect("the checkout is there");
    let text = std::fs::read_to_string(root.join("catalog/platforms/tiled-2ghz.xml"));
    let text = text.expect("the platform is there");
    let parts = &text[text.find("  <clock").unwrap()..text.find("  <network topology").unwrap()];
    let parts = parts.replace("endpoints=\"192\"", &format!("endpoints=\"{endpoints}\""));
    let columns = 1 + (tiles - 1).isqrt();
    let rows = tiles.div_ceil(columns);
    let own = |tile| match tile {
        0 => r#"privileged="true" exit="true" uart="true""#,
        _ => r#"shared="true""#,
    };
    let all: String = (0..tiles - memories)
        .map(|t| {
            let own = own(t);
            format!(
                r#"<tile id="{t}" router="{t}" pipeline="app" l1i="l1" l1d="l1" l2="l2" dtu="dtu" {own}/>"#
            )
        })
        .collect();
    let memories: String = (tiles - memories..tiles)
        .map(|m| {
            format!(r#"<memory id="{m}" router="{m}" dram="ddr3" size="1GiB" source="a test"/>"#)
        })
        .collect();
    format!(
        r#"<platform name="p" kind="tiled" source="a test">{parts}<network topology="mesh" columns="{columns}" rows="{rows}"
        clock="noc" width="16B" link="1" router="2" interface="1" header="16B" chunk="512B" channels="shared" source="a test"/>
        {all}{memories}</platform>"#
    )
}

/// Boots a mesh with an application everywhere if it is accepted; otherwise returns what is wrong with it.
fn boot_mesh(tiles: u16, endpoints: u16) -> Result<Report, String> {
    boot_on(
        &mesh(tiles, 1, endpoints),
        &everywhere("./p.xml", tiles - 1),
    )
}

/// Boots a system on its platform if it is accepted; otherwise returns what is wrong with it. The root manager has exactly the memory that
/// it must have.
fn boot_on(platform: &str, text: &str) -> Result<Report, String> {
    let root = place::root().expect("the checkout is there");
    let folder = tempfile::tempdir().expect("a folder can be made");
    let path = folder.path().join("system.xml");
    std::fs::write(folder.path().join("p.xml"), platform).expect("a file can be written");
    std::fs::write(&path, text).expect("a file can be written");
    let (system, _) = run::load(&path, &[], &root).map_err(|error| error.to_string())?;
    let least = format!("system@manager-memory={}B", system.manager_memory(0));
    let write = |folder: &std::path::Path| {
        std::fs::write(folder.join("p.xml"), platform).expect("a file can be written");
    };
    Ok(boot_with(text, &[&least], write).remove(0))
}

#[test]
fn twenty_tiles_boot() {
    let report = boot_mesh(22, 192).expect("it is accepted");
    is_well(&report, 19);
}

#[test]
fn an_application_runs_on_every_tile_of_64() {
    let report = boot_text(&everywhere("tiled-64", 62), &[]).remove(0);
    is_well(&report, 60);
}

/// The kernel lights the root manager's tile with page tables for that manager alone; the manager adds those for everything below other
/// managers.
#[test]
fn a_manager_has_an_application_beside_the_root_manager() {
    let apps = format!("{}{}", app(1, 0), app(2, 0));
    let text = format!(
        r#"<system name="beside" platform="tiled-2ghz" duration="1s" manager-tile="1"><tilemux tile="1"/><tilemux tile="2"/><manager name="m" tile="2"><domain name="d">{apps}</domain></manager></system>"#
    );
    is_well(&boot_text(&text, &[]).remove(0), 2);
}

/// Clients of each service in a crowd.
const CLIENTS: usize = 14;

/// Fifteen managers with four tiles each; on every tile a service, and clients with sessions that last until a moment.
fn crowd() -> String {
    let mut managers = String::new();
    for number in 0..15 {
        let first = 2 + 4 * number;
        let apps: String = (first..first + 4)
            .map(|tile| crowded(tile, "1500ms"))
            .collect();
        managers += &format!(
            r#"<manager name="m{number}" tile="{first}"><domain name="d{number}">{apps}</domain></manager>"#
        );
    }
    format!(
        r#"<system name="crowd" platform="tiled-64" duration="4s" manager-tile="1">{managers}</system>"#
    )
}

/// A service and its clients on a tile.
fn crowded(tile: usize, until: &str) -> String {
    let mut apps = format!(
        r#"<app name="s{tile}" tile="{tile}" program="service/fragile" memory="128KiB" background="true"><service/>
        <rgate name="priority-0" slots="{CLIENTS}"/></app>"#
    );
    for client in 0..CLIENTS {
        apps += &format!(
            r#"<app name="c{tile}-{client}" tile="{tile}" program="service/persistent" memory="128KiB">
            <argument name="runs" value="2"/><argument name="until" value="{until}"/><session name="service" to="s{tile}"/></app>"#
        );
    }
    apps
}

/// Sixty applications of one manager, four of them services: each finds its own service. Before the fix, services of an application after
/// the 31st were never found.
#[test]
fn every_application_of_a_manager_can_serve() {
    let apps: String = (2..6).map(|tile| crowded(tile, "300ms")).collect();
    let text = format!(
        r#"<system name="sixty" platform="tiled-64" duration="1s" manager-tile="1"><domain name="d">{apps}</domain></system>"#
    );
    let report = boot_text(&text, &[]).remove(0);
    is_well(&report, 4 * CLIENTS);
    assert_eq!(report.alive_at_once(), 4 * CLIENTS);
}

/// The crowd is a valid system in every test; `BULKHEAD_LONG=1` boots it.
#[test]
fn nine_hundred_activities_are_alive_at_once() {
    if std::env::var_os("BULKHEAD_LONG").is_none() {
        return is_accepted(&crowd());
    }
    let report = boot_booked(&crowd());
    let (managers, services) = (15, 60);
    assert_eq!(report.code, Some(0), "{}", report.console);
    let ended = report.console.matches(" stopped: exit 0").count();
    assert_eq!(ended, services * CLIENTS + 1);
    // Managers and services are alive until the end, when the kernel closes its books and ends them.
    let lines = report.console.lines();
    let rest = lines.filter(|line| {
        line.starts_with("kernel: books: m") || line.starts_with("kernel: books: s")
    });
    let rest = rest.count();
    assert_eq!(rest, managers + services);
    let closed = "books: all is there that was there at boot";
    assert!(report.console.contains(closed));
    let alive = report.alive_at_once() + rest;
    assert_eq!(alive, services * (CLIENTS + 1) + managers);
    // Calls take as long as on small chips.
    let mut longest: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    for (what, cycles) in report.work(0x100, 0x101, 0) {
        let of = longest.entry(what).or_default();
        *of = (of.0 + 1, of.1.max(cycles));
    }
    for (what, (times, cycles)) in longest {
        println!("| {what} | {times} | {cycles} |");
    }
}

fn is_accepted(text: &str) {
    let root = place::root().expect("the checkout is there");
    let folder = tempfile::tempdir().expect("a folder can be made");
    let path = folder.path().join("system.xml");
    std::fs::write(&path, text).expect("a file can be written");
    if let Err(error) = run::load(&path, &[], &root) {
        panic!("{error}");
    }
}

#[test]
fn an_application_runs_on_every_tile_of_256() {
    // A manager can name what some sixty applications need, so four of them divide the tiles.
    let managers: String = (0..4)
        .map(|number| {
            let first = 2 + 63 * number;
            let apps: String = (first..first + 63).map(|tile| app(tile, 0)).collect();
            format!(
                r#"<manager name="m{number}" tile="{first}"><domain name="d{number}">{apps}</domain></manager>"#
            )
        })
        .collect();
    let text = format!(
        r#"<system name="everywhere" platform="tiled-256" duration="4s" manager-tile="1">{managers}</system>"#
    );
    let report = boot_text(&text, &[]).remove(0);
    is_well(&report, 252);
}

#[test]
fn what_does_not_fit_the_unit_of_the_kernel_is_refused() {
    let said = boot_mesh(130, 192).err().expect("it is refused");
    assert!(
        said.contains("the kernel needs 198 endpoints for 129 tiles, 6 more"),
        "{said}"
    );
}

/// Random numbers below a bound, the same for the same seed.
fn numbers(seed: u64) -> impl FnMut(u64) -> u64 {
    let mut seed = 0x2545_f491_4f6c_dd1d_u64.wrapping_add(seed << 32 | seed);
    let mut next = move |below| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed % below
    };
    // Neighbouring seeds begin alike.
    for _ in 0..20 {
        next(2);
    }
    next
}

/// A number from the environment.
fn given(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    let number = text.parse();
    Some(number.unwrap_or_else(|_| panic!("{name} is `{text}`, and must be a number")))
}

/// The seeds of the random cases (a few by default), and the most tiles of each.
fn cases(few: u64, small: u64) -> (impl Iterator<Item = u64>, u64) {
    let wanted = given("BULKHEAD_CASES");
    let first = given("BULKHEAD_CASES_SEED").unwrap_or(0);
    let seeds = first..first + wanted.unwrap_or(few);
    let said = seeds.inspect(move |seed| match wanted {
        Some(_) => println!("BULKHEAD_CASES=1 BULKHEAD_CASES_SEED={seed}"),
        None => println!("case {seed} of those that are always tried"),
    });
    (said, if wanted.is_some() { 257 } else { small })
}

#[test]
fn what_is_accepted_boots() {
    let (seeds, most) = cases(3, 43);
    for seed in seeds {
        let mut next = numbers(seed);
        // A chip has a tile for the kernel, one for the manager, one for an application, and a memory.
        let (tiles, endpoints) = (4 + next(most - 3) as u16, 64 + next(300) as u16);
        let (users, apps) = (usize::from(tiles) - 2, usize::from(tiles) - 3);
        let fits = kernel_endpoints(users) <= usize::from(endpoints);
        match boot_mesh(tiles, endpoints) {
            Ok(report) => {
                assert!(fits, "{tiles} tiles, {endpoints} endpoints");
                is_well(&report, apps);
            }
            Err(said) if !fits => assert!(said.contains("the kernel needs"), "{said}"),
            // One manager cannot name more, or cut more windows.
            Err(said) => {
                let is_known = said.contains("more than it can name") || said.contains("pieces");
                assert!(is_known && apps > 60, "{tiles} tiles: {said}");
            }
        }
    }
}

/// A random system and its number of applications: one to four applications on each tile, of the root manager or of managers that divide
/// the tiles, some of them below another one, with a few limits, and memory in one tile or another.
fn random_system(
    users: u16,
    memories: &[u16],
    next: &mut impl FnMut(u64) -> u64,
) -> (String, usize) {
    let (mut inside, mut apps) = (String::new(), 0);
    // The root manager may have its tile for itself, if there is another one.
    let mut tile = if users > 2 { 1 + next(2) as u16 } else { 1 };
    let mut number = 0;
    while tile < users {
        let end = (tile + 1 + next(30) as u16).min(users);
        let mut domain = String::new();
        for at in tile..end {
            for which in 0..1 + next(4) as u16 {
                let limit = match next(6) {
                    0 => format!(r#"<limit activities="{}"/>"#, 1 + next(8)),
                    1 => format!(r#"<limit endpoints="{}"/>"#, 2 + next(30)),
                    2 => format!(r#"<limit page-tables="{}"/>"#, 5 + next(40)),
                    _ => String::new(),
                };
                let memory = memories[next(memories.len() as u64) as usize];
                let size = [128, 256, 5000][next(3) as usize];
                let place = format!(r#"memory="{size}KiB" memory-tile="{memory}""#);
                let app = app(at, which).replace(r#"memory="128KiB""#, &place);
                domain += &app.replace("</app>", &format!("{limit}</app>"));
                apps += 1;
            }
        }
        let domain = format!(r#"<domain name="d{number}">{domain}</domain>"#);
        let manager = |name: &str, tile: u16, inner: &str| {
            format!(r#"<manager name="{name}{number}" tile="{tile}">{inner}</manager>"#)
        };
        inside += &match next(5) {
            0 => domain,
            1 => manager("above", 1, &manager("m", tile, &domain)),
            2 => manager("m", 1, &domain),
            3 => manager("m", end - 1, &domain),
            // A chain of managers anywhere, including tiles where nothing else is.
            _ => (0..1 + next(9)).fold(domain, |inner, depth| {
                let tile = 1 + next(u64::from(users) - 1) as u16;
                manager(&format!("m{depth}-"), tile, &inner)
            }),
        };
        (tile, number) = (end, number + 1);
    }
    let text = format!(
        r#"<system name="random" platform="./p.xml" duration="4s" manager-tile="1">{inside}</system>"#
    );
    (text, apps)
}

/// As [`what_is_accepted_boots`], of systems with several managers, several applications on a tile, one memory tile or two, and limits.
#[test]
fn random_systems_that_are_accepted_boot() {
    let (seeds, most) = cases(4, 20);
    let (mut accepted, mut refused) = (0, 0);
    for seed in seeds {
        let mut next = numbers(seed);
        // Until one is accepted.
        for _ in 0..50 {
            let (users, memories) = (2 + next(most - 2) as u16, 1 + next(2) as u16);
            let ids: Vec<u16> = (users..users + memories).collect();
            let (text, apps) = random_system(users, &ids, &mut next);
            match boot_on(&mesh(users + memories, memories, 400), &text) {
                Ok(report) => {
                    is_well(&report, apps);
                    accepted += 1;
                    break;
                }
                Err(_) => refused += 1,
            }
        }
    }
    println!("{accepted} booted, {refused} were refused");
    assert!(
        refused <= 20 * accepted,
        "{refused} refused, {accepted} booted"
    );
}
