//! Gates and regions that cross the borders of managers: their ends belong to different managers.
//!
//! Why it exists: the manager above both ends makes them, and the parts of the description that it passes down name them to the managers
//! below. What it deliberately does not know: system calls.

use super::*;

impl Subsystem {
    /// The send gate of an application; `inside` is the manager above that application.
    pub(super) fn send_gate(
        &mut self,
        got: &[Got],
        app: &str,
        node: &Node,
        inside: Option<usize>,
    ) -> Result<SendGate> {
        let name: String = attribute(node, "name")?.into();
        let (to, gate) = (attribute(node, "to")?, leads_to(node)?);
        let own = self.apps.iter().position(|a| a.name == to);
        let place = |app: &App| app.receive.iter().position(|g| g.name == gate);
        let (target, slot_size) = if let Some((_, _, selector, size)) = find(got, app, &name) {
            (Target::Import(*selector), *size)
        } else if let Some((app, index)) = own.and_then(|o| Some((o, place(&self.apps[o])?))) {
            let size = self.apps[app].receive[index].slot_size;
            let target = Target::App {
                app,
                gate: index,
                service: self.apps[app].service_of(&gate).unwrap_or(0),
            };
            (target, size)
        } else if let Some((below, inner, index)) =
            self.managers.iter().enumerate().find_map(|(m, manager)| {
                let inner = manager.inner.iter().position(|a| a.name == to)?;
                Some((m, inner, place(&manager.inner[inner])?))
            })
            && Some(below) != inside
        {
            let receive = self.managers[below].inner[inner].receive[index].clone();
            let size = receive.slot_size;
            (Target::Export(self.export(got, below, to, receive)), size)
        } else {
            return mistake(node, alloc::format!("there is no gate `{gate}` of `{to}`"));
        };
        Ok(SendGate {
            name,
            to: target,
            slot_size,
            credits: value(node, "credits", quantity::credits)?,
            label: value(node, "label", quantity::number)?,
            session: node.has_tag_name("session"),
            receiver: to.into(),
            service: node.attribute("service").map(Into::into),
            patience: value(node, "patience", quantity::time)?,
        })
    }

    /// Exports the receive gate below a manager: this manager makes the gate, unless it comes from above, and hands it down.
    fn export(&mut self, got: &[Got], below: usize, app: &str, mut gate: ReceiveGate) -> usize {
        let mut all = self.exports.iter();
        if let Some(known) = all.position(|e| e.app == app && e.gate.name == gate.name) {
            return known;
        }
        self.managers[below].imports.push(Import {
            app: app.into(),
            gate: gate.name.clone(),
            kind: ImportKind::Receive(self.exports.len()),
        });
        gate.import = find(got, app, &gate.name).map(|g| g.2);
        self.exports.push(Export {
            app: app.into(),
            gate,
        });
        self.exports.len() - 1
    }

    /// Regions that something below a manager shares with applications outside it.
    pub(super) fn shared(&mut self, got: &[Got], below: usize) {
        let inner = self.managers[below].inner.clone();
        let is_inside = |of: &str| inner.iter().any(|app| is_of(of, &app.name));
        let mut imports = Vec::new();
        for app in &inner {
            for gate in &app.memory_gates {
                let import = find(got, &app.name, &gate.name).map(|g| g.2);
                let own = alloc::format!("{}/{}", app.name, gate.name);
                let (of, part) = match &gate.of {
                    // Sharing inside the manager stays its own affair.
                    Some(of) if import.is_none() && is_inside(of) => continue,
                    Some(of) => (of.clone(), Some((gate.size, gate.rights))),
                    None if !gate.is_own() => continue,
                    None => {
                        let others = self.managers.iter().enumerate();
                        let others = others.filter(|(other, _)| *other != below);
                        let others = others.flat_map(|(_, other)| &other.inner);
                        let mut gates = self
                            .apps
                            .iter()
                            .chain(others)
                            .flat_map(|app| &app.memory_gates);
                        let is_shared = gates.any(|g| g.of.as_ref() == Some(&own));
                        if import.is_none() && !is_shared {
                            continue;
                        }
                        if import.is_none() {
                            self.regions.push(Region {
                                of: own.clone(),
                                below,
                                gate: gate.clone(),
                            });
                        }
                        (own, None)
                    }
                };
                imports.push(Import {
                    app: app.name.clone(),
                    gate: gate.name.clone(),
                    kind: ImportKind::Memory { of, import, part },
                });
            }
        }
        self.managers[below].imports.extend(imports);
    }

    /// What an application below a manager needs from outside that manager.
    pub(super) fn border(&mut self, got: &[Got], below: usize, node: &Node) -> Result<()> {
        let name = attribute(node, "name")?;
        let inner = self.managers[below].inner.iter();
        let gates = inner.filter(|a| a.name == name);
        let gates: Vec<ReceiveGate> = gates.flat_map(|a| a.receive.clone()).collect();
        for gate in gates {
            if find(got, name, &gate.name).is_some() {
                self.export(got, below, name, gate);
            }
        }
        for gate in node.children().filter(sends) {
            let to = attribute(&gate, "to")?;
            let is_inside = self.managers[below].inner.iter().any(|a| a.name == to);
            let gate_name = attribute(&gate, "name")?;
            if is_inside && find(got, name, gate_name).is_none() {
                continue;
            }
            let gate = self.send_gate(got, name, &gate, Some(below))?;
            self.managers[below].imports.push(Import {
                app: name.into(),
                gate: gate.name.clone(),
                kind: ImportKind::Send {
                    to: gate.to,
                    credits: gate.credits,
                    label: gate.label,
                    slot_size: gate.slot_size,
                    session: gate.session,
                },
            });
        }
        Ok(())
    }
}

/// Whether a region (`APP/GATE`) belongs to this application.
fn is_of(of: &str, app: &str) -> bool {
    of.rsplit_once('/').is_some_and(|(owner, _)| owner == app)
}

/// A value between quotation marks, so that the manager below reads the same value, and nothing else.
fn quoted(value: &str) -> String {
    let mut text = String::new();
    for one in value.chars() {
        match one {
            '&' | '<' | '"' | '\0'..' ' => text += &alloc::format!("&#{};", u32::from(one)),
            _ => text.push(one),
        }
    }
    text
}

/// The description for a subordinate manager: its part, and the selectors of its modules and imports, in their order.
pub fn part(manager: &Manager, modules: &[u16], selectors: &[u16]) -> String {
    let mut text = String::from("<part>");
    for (name, selector) in manager.modules.iter().zip(modules) {
        text += &alloc::format!(
            "<module name=\"{}\" selector=\"{selector}\"/>",
            quoted(name)
        );
    }
    for (import, selector) in manager.imports.iter().zip(selectors) {
        let slot_size = match import.kind {
            ImportKind::Send { slot_size, .. } => slot_size,
            _ => 0,
        };
        text += &alloc::format!(
            "<import app=\"{}\" gate=\"{}\" selector=\"{selector}\" slot-size=\"{slot_size}\"/>",
            quoted(&import.app),
            quoted(&import.gate),
        );
    }
    text += &manager.text;
    text += "</part>";
    text
}
