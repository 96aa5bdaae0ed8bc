//! The parts of the check that need no run.

use bulkhead_model::{LoadOptions, load_system};
use bulkhead_runner::tiled::attacked::Stand;

#[test]
fn adversaries_keep_what_the_others_had() {
    let system = load_system("quickstart", &LoadOptions::default()).expect("valid");
    let stand = Stand::new(&system, 0, 0);
    assert_eq!(stand.attackers.len(), 3);
    for place in &stand.attackers {
        let index = place.app;
        let (before, after) = (&system.apps[index], &stand.system().apps[index]);
        assert_eq!(after.program, bulkhead_runner::tiled::quiet::ADVERSARY);
        assert_eq!(
            (
                before.tile,
                before.memory,
                before.limit,
                &before.sgates,
                &before.mgates
            ),
            (
                after.tile,
                after.memory,
                after.limit,
                &after.sgates,
                &after.mgates
            )
        );
    }
    // The domain itself is unchanged, and so is its flow.
    assert_eq!(stand.system().apps[0], system.apps[0]);
    assert_eq!(stand.system().flows.len(), 1);
    assert_eq!(stand.tiles(), [2, 3, 4]);
    // Background hogs are waited for when they are checked; otherwise the system would end at once.
    let hogs = Stand::new(&system, 0, 1);
    assert!(hogs.system().flows.is_empty());
    assert!(hogs.system().apps.iter().any(|app| !app.background));
}

#[test]
fn adversaries_take_the_places_on_both_chips() {
    let system = load_system("network/two-chips", &LoadOptions::default()).expect("valid");
    let names = |stand: &Stand| -> Vec<String> {
        let attackers = stand.attackers.iter();
        attackers.map(|place| stand.name(*place)).collect()
    };
    // The first chip's network service: its clients, and everything on the other chip, including the
    // card's driver.
    let net = Stand::new(&system, 0, 0);
    assert_eq!(
        names(&net),
        ["ping", "source", "far/network", "far/echo", "far/sink"]
    );
    assert_eq!(net.cards(), [false, false, true, false, false]);
    assert_eq!(
        (net.label(), net.chip_name()),
        ("net".to_owned(), Some("two-chips"))
    );
    assert_eq!(net.neighbour(7), Some("far".to_owned()));
    assert_eq!(net.neighbour(2), None);
    let far = &net.whole.peer.as_ref().expect("a peer").system;
    let driver = &far.apps[0];
    assert_eq!(
        driver.program,
        bulkhead_runner::tiled::quiet::ADVERSARY_WITH_CARD
    );
    let known: Vec<_> = driver.arguments.iter().map(|a| a.name.as_str()).collect();
    assert_eq!(known, ["plan", "address", "neighbours"]);
    // No application there ends, so the chip does not end either.
    assert!(far.apps.iter().all(|app| !app.background));
    assert!(net.system().apps[1..].iter().all(|app| app.background));
    // The same from the other side.
    let servers = Stand::new(&system, 1, 1);
    assert_eq!(servers.label(), "far/servers");
    assert_eq!(servers.tiles(), [2, 3]);
    assert_eq!(
        names(&servers),
        [
            "two-chips/network",
            "two-chips/ping",
            "two-chips/source",
            "network"
        ]
    );
    assert_eq!(servers.system().name, "far");
    assert_eq!(servers.neighbour(7), Some("two-chips".to_owned()));
    let openings = super::compare::openings(&Stand::new(&system, 1, 0));
    let cable = "two-chips sends frames to the network card of network: ";
    assert!(
        openings.iter().any(|o| o.starts_with(cable)),
        "{openings:?}"
    );
    // Frames do not reach a domain without a card.
    let openings = super::compare::openings(&servers);
    assert!(
        openings.iter().all(|o| !o.contains("frames")),
        "{openings:?}"
    );
}
