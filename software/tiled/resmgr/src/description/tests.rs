//! Descriptions as the model writes them, whole and in parts.

use super::*;

pub(super) const TEXT: &str = r#"<system name="x" platform="p" duration="50000000ns" manager-tile="1" manager-memory="2097152B">
  <domain name="control" criticality="A">
    <app name="sensor" tile="2" program="control/sensor" memory="262144B" memory-tile="8">
      <argument name="samples" value="50"/>
      <task period="1000000ns" deadline="400000ns" misses="0"/>
      <sgate name="controller" to="controller" gate="input" credits="2" label="7" patience="50000000ns"/>
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
            to: Target::App {
                app: 1,
                gate: 0,
                service: 0
            },
            slot_size: 256,
            credits: 2,
            label: 7,
            session: false,
            service: None,
            patience: 50_000_000,
            receiver: "controller".into(),
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
    <sgate name="down" to="c" gate="in" credits="1" label="3" patience="50000000ns"/>
  </app></domain>
  <manager name="m" tile="2" program="tiled/resmgr" memory="65536B"><limit kernel-memory="20480B"/>
    <domain name="e"><app name="b" tile="3" program="p" memory="4096B" memory-tile="8">
      <sgate name="up" to="a" gate="in" credits="2" label="9" patience="50000000ns"/>
      <sgate name="near" to="c" gate="in" credits="1" label="0" patience="50000000ns"/>
    </app></domain>
    <manager name="n" tile="4" program="tiled/resmgr" memory="65536B"><limit kernel-memory="20480B"/>
      <domain name="f"><app name="c" tile="5" program="p" memory="4096B" memory-tile="8">
        <rgate name="in" slots="4" slot-size="128B"/>
        <sgate name="top" to="a" gate="in" credits="1" label="1" patience="50000000ns"/>
      </app></domain>
    </manager>
  </manager>
</system>"#;

#[test]
fn gates_across_borders_are_given_down_level_by_level() {
    let top = read(NESTED).unwrap();
    // The root makes c's gate, because a sends to it, and also the gates of b and c that send to a.
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

    let middle = read(&part(m, &[16, 17], &[20, 21, 22])).unwrap();
    assert_eq!(middle.apps[0].send[0].to, Target::Import(21));
    assert_eq!(middle.apps[0].send[0].slot_size, 64);
    // b sends to c, whose gate came from above. The gate goes down to n, and b's send gate is made
    // from it.
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
    assert_eq!(m.modules, ["p", "tiled/resmgr"]);
    assert_eq!(
        middle.modules,
        [("p".into(), 16), ("tiled/resmgr".into(), 17)]
    );
    let bottom = read(&part(n, &[16], &selectors)).unwrap();
    assert_eq!(bottom.apps.len(), 1);
    assert!(bottom.apps[0].receive[0].import.is_some());
    assert!(matches!(bottom.apps[0].send[0].to, Target::Import(_)));
}

/// Names of any kind go down as they are. An `&amp;` in the name of a program once made the part unreadable, and a quotation mark would have
/// let a name bring attributes and elements with it.
#[test]
fn names_bring_nothing_with_them() {
    let (app, program) = (
        "c&quot;/&gt;&lt;module name=&quot;q",
        "p &amp;&lt;&#10;&apos;",
    );
    let text = NESTED
        .replace("=\"c\"", &std::format!("=\"{app}\""))
        .replace(
            "\"b\" tile=\"3\" program=\"p\"",
            &std::format!("\"b\" tile=\"3\" program=\"{program}\""),
        );
    let (app, program) = ("c\"/><module name=\"q", "p &<\n'");
    let top = read(&text).unwrap();
    let m = &top.managers[0];
    assert_eq!(m.modules, ["p", program, "tiled/resmgr"]);
    assert_eq!(m.imports[0].app, app);
    let middle = read(&part(m, &[16, 17, 18], &[20, 21, 22])).unwrap();
    let modules = ["p", program, "tiled/resmgr"].map(String::from);
    assert_eq!(
        middle.modules,
        std::vec::Vec::from_iter(modules.into_iter().zip(16..))
    );
    assert_eq!(middle.apps[0].program, program);
    assert_eq!(middle.managers[0].inner[0].name, app);
    assert!(middle.managers[0].imports.iter().any(|i| i.app == app));
}

const SERVICES: &str = r#"<system name="x">
  <domain name="d"><app name="a" tile="1" program="p" memory="4096B" memory-tile="8">
    <service sessions="4" scope="system"/><service name="log" sessions="4" scope="system" restart="on-failure" restarts="2"/>
    <rgate name="priority-0" slots="2" slot-size="64B"/><rgate name="log-priority-1" slots="2" slot-size="64B"/>
    <rgate name="input" slots="2" slot-size="64B"/>
  </app></domain>
  <manager name="m" tile="2" program="tiled/resmgr" memory="65536B"><limit kernel-memory="20480B"/>
    <domain name="e"><app name="b" tile="3" program="p" memory="4096B" memory-tile="8">
      <session name="s" to="a" service="log" priority="1" credits="1" label="0" patience="50000000ns"/>
      <session name="t" to="a" priority="0" credits="1" label="0" patience="50000000ns"/>
    </app></domain>
  </manager>
</system>"#;

#[test]
fn gates_belong_to_the_services_of_an_application() {
    let top = read(SERVICES).unwrap();
    let app = &top.apps[0];
    assert_eq!((app.services.len(), app.restarts), (2, 2));
    let of = |gate: &str| app.service_of(gate);
    assert_eq!(
        [
            of("priority-0"),
            of("log-priority-1"),
            of("input"),
            of("log-priority-x")
        ],
        [Some(0), Some(1), None, None]
    );
    let sources: Vec<Source> = top.managers[0]
        .imports
        .iter()
        .map(|import| match import.kind {
            ImportKind::Send { to, .. } => Source::from(to),
            _ => unreachable!("it receives nothing"),
        })
        .collect();
    assert_eq!(
        sources,
        [1, 0].map(|service| Source::App { app: 0, service })
    );
}

const REGIONS: &str = r#"<system name="x">
  <domain name="d"><app name="top" tile="1" program="p" memory="4096B" memory-tile="8">
    <mgate name="own" size="4096B" rights="rw" memory-tile="8"/>
    <mgate name="deep" size="64B" rights="r" memory-tile="8" of="c/frame"/>
  </app></domain>
  <manager name="m" tile="2" program="tiled/resmgr" memory="65536B"><limit kernel-memory="20480B"/>
    <domain name="e"><app name="b" tile="3" program="p" memory="4096B" memory-tile="8">
      <mgate name="up" size="128B" rights="r" memory-tile="8" of="top/own"/>
      <mgate name="down" size="256B" rights="rw" memory-tile="8" of="c/frame"/>
      <mgate name="alone" size="4096B" rights="rw" memory-tile="8"/>
    </app></domain>
    <manager name="n" tile="4" program="tiled/resmgr" memory="65536B"><limit kernel-memory="20480B"/>
      <domain name="f"><app name="c" tile="5" program="p" memory="4096B" memory-tile="8">
        <mgate name="frame" size="8192B" rights="rw" memory-tile="8" fill="map"/>
      </app></domain>
    </manager>
  </manager>
</system>"#;

#[test]
fn shared_regions_are_made_by_the_manager_above_all_who_share_them() {
    let top = read(REGIONS).unwrap();
    // `c/frame` belongs below `m`, and `m` pays for it.
    assert_eq!(top.regions.len(), 1);
    assert_eq!(
        (top.regions[0].of.as_str(), top.regions[0].below),
        ("c/frame", 0)
    );
    let m = &top.managers[0];
    assert_eq!(m.modules, ["data:map", "p", "tiled/resmgr"]);
    let memory = |import: &Import| match &import.kind {
        ImportKind::Memory { of, import, part } => (of.clone(), *import, *part),
        other => panic!("{other:?}"),
    };
    let imports: Vec<_> = m.imports.iter().map(memory).collect();
    assert_eq!(
        imports,
        [
            ("top/own".into(), None, Some((128, 1))),
            ("c/frame".into(), None, None),
        ],
        "what is shared inside of m is its own affair"
    );
    let middle = read(&part(m, &[16, 17, 18], &[20, 21])).unwrap();
    assert_eq!(middle.apps[0].memory_gates[0].import, Some(20));
    // It got the region from above and passes it on; its own application takes a part of it.
    assert!(middle.regions.is_empty());
    let n: Vec<_> = middle.managers[0].imports.iter().map(memory).collect();
    assert_eq!(n, [("c/frame".into(), Some(21), None)]);
}
