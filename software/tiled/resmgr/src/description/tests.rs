//! Descriptions as the model writes them, whole and in parts.

use super::*;

const TEXT: &str = r#"<system name="x" platform="p" duration="50000000ns" manager-tile="1" manager-memory="2097152B">
  <domain name="control" criticality="A">
    <app name="sensor" tile="2" program="control/sensor" memory="262144B" memory-tile="8">
      <argument name="samples" value="50"/>
      <task period="1000000ns" deadline="400000ns" misses="0"/>
      <sgate name="controller" to="controller" gate="input" credits="2" label="7"/>
    </app>
    <app name="controller" tile="3" program="control/controller" memory="262144B" memory-tile="8">
      <rgate name="input" slots="4" slot-size="256B"/>
    </app>
  </domain>
  <manager name="sub" tile="4" program="tiled/resmgr" memory="2097152B"><limit kernel-memory="20480B"/>
    <domain name="logger" criticality="D">
      <app name="hog" tile="5" program="adversary/memcpy" memory="1048576B" memory-tile="8" background="true">
        <limit noc="8388608B/s" burst="4096B"/>
        <cpu quota="2500000ns" period="10000000ns" priority="3"/>
        <mgate name="buffer" size="8192B" rights="rw" memory-tile="8"/>
      </app>
    </domain>
  </manager>
  <flow name="loop" from="sensor" to="controller"/>
</system>"#;

#[test]
fn everything_is_found() {
    let system = read(TEXT).unwrap();
    let mut apps = system.apps;
    assert_eq!(apps.len(), 2);
    assert_eq!(system.managers.len(), 1);
    let below = &system.managers[0];
    assert_eq!(
        (below.name.as_str(), below.tile, below.foreground()),
        ("sub", 4, false)
    );
    apps.extend(below.inner.clone());
    assert_eq!(apps[0].task, Some((1_000_000, 400_000)));
    assert_eq!(
        apps[0].send[0],
        SendGate {
            name: "controller".into(),
            to: Target::App { app: 1, gate: 0 },
            slot_size: 256,
            credits: 2,
            label: 7,
            session: false,
        }
    );
    assert_eq!(
        apps[1].receive[0],
        ReceiveGate {
            name: "input".into(),
            slots: 4,
            slot_size: 256,
            import: None,
        }
    );
    assert_eq!(apps[2].limit, Some((8 << 20, 4096)));
    assert_eq!(apps[2].budget, Some((2_500_000, 10_000_000, 3)));
    assert_eq!(apps[2].memory_gates[0].rights, 3);
    let foreground: Vec<bool> = apps.iter().map(|a| a.foreground).collect();
    assert_eq!(foreground, [true, true, false]);
}

#[test]
fn mistakes_have_lines() {
    let error = |text: &str| read(text).unwrap_err().to_string();
    assert_eq!(
        error("<system>\n<domain><app/></domain></system>"),
        "system.xml, line 2: <app> lacks `name`"
    );
    let text = TEXT.replace("262144B", "256KiB");
    assert_eq!(
        error(&text),
        "system.xml, line 3: `memory=\"256KiB\"` is not canonical"
    );
    let text = TEXT.replace("to=\"controller\" gate", "to=\"nobody\" gate");
    assert_eq!(
        error(&text),
        "system.xml, line 6: there is no gate `input` of `nobody`"
    );
    assert!(error("<system>").starts_with("system.xml, line 1:"));
}

const NESTED: &str = r#"<system name="x">
  <domain name="d"><app name="a" tile="1" program="p" memory="4096B" memory-tile="8">
    <rgate name="in" slots="2" slot-size="64B"/>
    <sgate name="down" to="c" gate="in" credits="1" label="3"/>
  </app></domain>
  <manager name="m" tile="2" program="tiled/resmgr" memory="65536B"><limit kernel-memory="20480B"/>
    <domain name="e"><app name="b" tile="3" program="p" memory="4096B" memory-tile="8">
      <sgate name="up" to="a" gate="in" credits="2" label="9"/>
      <sgate name="near" to="c" gate="in" credits="1" label="0"/>
    </app></domain>
    <manager name="n" tile="4" program="tiled/resmgr" memory="65536B"><limit kernel-memory="20480B"/>
      <domain name="f"><app name="c" tile="5" program="p" memory="4096B" memory-tile="8">
        <rgate name="in" slots="4" slot-size="128B"/>
        <sgate name="top" to="a" gate="in" credits="1" label="1"/>
      </app></domain>
    </manager>
  </manager>
</system>"#;

#[test]
fn gates_across_borders_are_given_down_level_by_level() {
    let top = read(NESTED).unwrap();
    // The root makes c's gate, because a sends to it, and the sends of b and c to a.
    assert_eq!(top.exports.len(), 1);
    assert_eq!(
        (top.exports[0].app.as_str(), top.exports[0].gate.slot_size),
        ("c", 128)
    );
    assert_eq!(top.apps[0].send[0].to, Target::Export(0));
    let m = &top.managers[0];
    let kinds: Vec<(&str, &str)> = m
        .imports
        .iter()
        .map(|i| (i.app.as_str(), i.gate.as_str()))
        .collect();
    assert_eq!(kinds, [("c", "in"), ("b", "up"), ("c", "top")]);
    assert_eq!(m.managers, [(4, 65536)]);

    let middle = read(&part(m, &[20, 21, 22])).unwrap();
    assert_eq!(middle.apps[0].send[0].to, Target::Import(21));
    assert_eq!(middle.apps[0].send[0].slot_size, 64);
    // b sends to c, whose gate came from above; it goes down to n, and b's send is made from it.
    let n = &middle.managers[0];
    assert!(n.imports.iter().any(|i| i.gate == "in"));
    assert!(n.imports.iter().any(|i| matches!(
        i.kind,
        ImportKind::Send {
            to: Target::Import(22),
            ..
        }
    )));

    let selectors: Vec<u16> = (30..30 + n.imports.len() as u16).collect();
    let bottom = read(&part(n, &selectors)).unwrap();
    assert_eq!(bottom.apps.len(), 1);
    assert!(bottom.apps[0].receive[0].import.is_some());
    assert!(matches!(bottom.apps[0].send[0].to, Target::Import(_)));
}
