//! Attacking programs of the catalog, and which applications can run them.
//!
//! Why it exists: the catalog's adversaries and the rivals of the paper's experiments are attacks designed by people, so a user's system
//! meets each of them that its applications could run with the resources they were given. What it deliberately does not know: what the
//! programs do, to themselves or to others.
//!
//! Excluded are programs that need their own tile or partner (managers, pagers, programs that call each other), and programs whose actions
//! the adversary's own kinds cover.

use crate::tiled::attack::{Act, Attack};
use bulkhead_model::system::{App, Argument};

/// A gate that a program looks up by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Gate {
    Memory(&'static str),
    Send(&'static str),
}

/// An attacking program of the catalog.
#[derive(Debug, PartialEq, Eq)]
pub struct Catalogued {
    /// Its name in a description.
    pub program: &'static str,
    gate: Option<Gate>,
    arguments: &'static [(&'static str, &'static str)],
    /// Minimum bytes of memory that it needs.
    memory: u64,
}

const fn program(name: &'static str) -> Catalogued {
    Catalogued {
        program: name,
        gate: None,
        arguments: &[],
        memory: 0,
    }
}

impl Catalogued {
    const fn with(mut self, arguments: &'static [(&'static str, &'static str)]) -> Self {
        self.arguments = arguments;
        self
    }

    const fn through(mut self, gate: Gate) -> Self {
        self.gate = Some(gate);
        self
    }

    const fn in_memory(mut self, bytes: u64) -> Self {
        self.memory = bytes;
        self
    }

    fn fits(&self, can: &Can) -> bool {
        let gate = match self.gate {
            None => true,
            Some(Gate::Memory(_)) => can.regions,
            Some(Gate::Send(_)) => can.sends,
        };
        gate && can.memory >= self.memory
    }

    /// Replaces the program of an application. The application keeps what it has; its gate gets the name that the program looks up.
    pub fn put(&self, app: &mut App) {
        self.program.clone_into(&mut app.program);
        let argument = |&(name, value): &(&str, &str)| Argument {
            name: name.to_owned(),
            value: value.to_owned(),
        };
        app.arguments = self.arguments.iter().map(argument).collect();
        match self.gate {
            Some(Gate::Memory(name)) => {
                if let Some(gate) = app.mgates.first_mut() {
                    name.clone_into(&mut gate.name);
                }
            }
            Some(Gate::Send(name)) => {
                if let Some(gate) = app.sgates.first_mut() {
                    name.clone_into(&mut gate.name);
                }
            }
            None => {}
        }
    }
}

/// Runs forever, unmeasured: arguments of the rivals of the paper's experiments.
const FOR_EVER: &[(&str, &str)] = &[("runs", "0")];

/// The programs.
static CATALOG: [Catalogued; 19] = [
    program("adversary/memcpy").in_memory(256 << 10),
    program("bandwidth/memory")
        .with(&[("runs", "0"), ("size", "4096")])
        .in_memory(256 << 10),
    program("bandwidth/compute").with(FOR_EVER),
    program("adversary/transfer").through(Gate::Memory("region")),
    program("bandwidth/transfers")
        .with(FOR_EVER)
        .through(Gate::Memory("region")),
    program("adversary/message").through(Gate::Send("target")),
    program("attack/flood").through(Gate::Send("service")),
    program("attack/slow").through(Gate::Send("service")),
    program("attack/squatter").through(Gate::Send("files")),
    program("adversary/chatter"),
    program("adversary/exhaust"),
    program("adversary/stack"),
    program("adversary/random").with(&[("steps", "0")]),
    program("adversary/storm-syscalls").with(&[("rounds", "1000000000"), ("shared", "1")]),
    program("adversary/tree").with(&[("rounds", "1000000"), ("shared", "1")]),
    program("adversary/revoked").with(&[("rounds", "1000000")]),
    program("attack/heir"),
    program("attack/hoard"),
    program("attack/hoard").with(&[("what", "kernel-memory")]),
];

/// The resources given to an attacker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Can {
    /// It has a network card.
    pub card: bool,
    sends: bool,
    regions: bool,
    memory: u64,
}

impl Can {
    /// The resources given to this application.
    pub fn new(app: &App) -> Self {
        Self {
            card: app.device,
            sends: !app.sgates.is_empty(),
            regions: !app.mgates.is_empty(),
            memory: app.memory.0,
        }
    }
}

/// The attackers' own programs from the description, unchanged.
pub fn own(attackers: usize) -> Attack {
    Attack {
        name: OWN.to_owned(),
        acts: vec![Act::Own; attackers],
    }
}

/// Name of the attack by the programs of the description.
pub const OWN: &str = "the system's own programs";

/// An attack for each program that fits at least one application: it runs wherever it fits, and the others sleep.
pub fn attacks(attackers: &[Can]) -> Vec<Attack> {
    let attack = |program: &'static Catalogued| {
        let fits: Vec<bool> = attackers.iter().map(|can| program.fits(can)).collect();
        let act = |fits: &bool| match fits {
            true => Act::Program(program),
            false => Act::sleep(),
        };
        let arguments: Vec<&str> = program.arguments.iter().map(|one| one.1).collect();
        let name = match program.arguments.first() {
            Some(("what", _)) => format!("{} ({})", program.program, arguments.join(", ")),
            _ => program.program.to_owned(),
        };
        fits.contains(&true).then(|| Attack {
            name,
            acts: fits.iter().map(act).collect(),
        })
    };
    CATALOG.iter().filter_map(attack).collect()
}

/// Programs needed for attacks by these attackers.
pub fn programs(attackers: &[Can]) -> impl Iterator<Item = &'static str> {
    let fits = |program: &&Catalogued| attackers.iter().any(|can| program.fits(can));
    let fitting: Vec<_> = CATALOG.iter().filter(fits).collect();
    fitting.into_iter().map(|program| program.program)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tiled::attacked::Stand;
    use bulkhead_model::{LoadOptions, load_system};

    #[test]
    fn a_program_runs_where_it_fits() {
        let system = load_system("quickstart", &LoadOptions::default()).expect("valid");
        let names = |stand: &Stand| -> Vec<String> {
            let attacks = attacks(&stand.can()).into_iter();
            attacks.map(|attack| attack.name).collect()
        };
        // Hogs have memory and nothing else.
        let beside_control = names(&Stand::new(&system, 0, 0));
        assert!(beside_control.contains(&"adversary/memcpy".to_owned()));
        assert!(!beside_control.contains(&"adversary/transfer".to_owned()));
        // The control loop's applications have gates: the sensor sends and reads a region, the actuator sends nothing.
        let stand = Stand::new(&system, 0, 1);
        let all = attacks(&stand.can());
        let of = |name: &str| all.iter().find(|attack| attack.name == name).expect("fits");
        let runs = |name: &str| -> Vec<bool> {
            let acts = of(name).acts.iter();
            acts.map(|act| matches!(act, Act::Program(_))).collect()
        };
        assert_eq!(runs("adversary/message"), [true, true, false]);
        assert_eq!(runs("adversary/transfer"), [true, true, true]);
        assert!(all.iter().all(|attack| !attack.waits()));
        assert!(programs(&stand.can()).any(|name| name == "adversary/transfer"));
    }

    #[test]
    fn a_program_finds_its_gate() {
        let system = load_system("quickstart", &LoadOptions::default()).expect("valid");
        let mut sensor = system.apps[0].clone();
        let found = CATALOG
            .iter()
            .find(|one| one.program == "adversary/transfer");
        found.expect("there").put(&mut sensor);
        assert_eq!(sensor.mgates[0].name, "region");
        assert_eq!(sensor.sgates[0].name, "controller");
        assert!(sensor.arguments.is_empty());
    }
}
