//! Finds where jobs that return leave addresses of their stack.
//!
//! Why it exists: a task in C whose field or variable keeps the address of a local variable needs its stack in its next job. The compiler's own warning ends at
//! the last call of a function, so it sees almost no such task. What it deliberately does not know: what the address is used for. So a variable that keeps an
//! address only until the end of the same job is refused, too.
//!
//! The analysis follows each function over all its paths, with the addresses that it gets as arguments, reads from memory that an argument points to, or takes of
//! its own frame. A function's summary says what it stores, where, and what it returns. Its callers use the summary, and the analysis repeats until no summary
//! changes. A jump by a table may go to every label that is in a table or whose address is used. A call by an address may call each function of the file whose
//! address is used.
//!
//! Not seen: what functions of other files do, except those of the header that keep an argument; addresses that a function reads over two structures of
//! different layouts; and addresses that were split, for example into two halves.

use super::addresses::{
    ANYWHERE, ARGUMENTS, Address, Base, FIRST, State, Stored, either, reach, told_apart,
};
use super::{CHANGED, Next, Procedure, Refusal, SP, procedures, register};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The prefix of functions whose results say what a task waits for: the first register has a kind, the second may have an address.
const RUNS: &str = "bh_run_";

/// Functions of the header that keep their first argument: an event is in the kernel's list until it has happened.
const KEEPS: [&str; 1] = ["bh_set_event"];

/// The header's function that calls another one. Its second argument is that function. It passes the object's data, to which the object's first word points,
/// and then its own third argument.
const UPDATE: &str = "bh_update";

/// The header's function that begins a section: the section's first word has the address of the helpers.
const BEGIN: &str = "bh_begin_at";

/// Functions that the compiler itself calls to copy bytes. The arguments are the destination, the source and the number of bytes.
const COPIES: [&str; 2] = ["memcpy", "memmove"];

/// The prefix of the header's functions.
const HEADER: &str = "bh_";

/// The file of the header.
const HEADER_FILE: &str = "bulkhead_oneshot.h";

/// The name of a call by an address.
const BY_ADDRESS: &str = "";

/// How a function passes addresses on; bases are those of its arguments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Summary {
    /// What it stores outside of frames and outside of what arguments point to.
    kept: BTreeSet<Base>,
    /// What it stores in what arguments point to.
    stored: BTreeMap<(Base, i64), Address>,
    /// What a0 and a1 may have when it returns. `Base::Own`: its own frame, which is gone.
    returned: [Option<Address>; 2],
}

impl Summary {
    fn add(&mut self, other: Self) {
        self.kept.extend(other.kept);
        for (to, what) in other.stored {
            self.store(to, what);
        }
        for (known, other) in self.returned.iter_mut().zip(other.returned) {
            *known = either(known.take(), other);
        }
    }

    fn store(&mut self, (base, place): (Base, i64), what: Address) {
        let to = (base, told_apart(place));
        let both = either(self.stored.remove(&to), Some(what));
        self.stored.extend(both.map(|both| (to, both)));
    }
}

/// Maximum number of rounds over a file. Each round finds what one more call in a row passes on, and each word of what an argument points to may need a
/// round.
const ROUNDS: usize = 1000;

/// What is known of the functions of a file.
struct File<'a> {
    summaries: BTreeMap<&'a str, Summary>,
    /// Functions whose address is used.
    by_address: Vec<&'a str>,
}

/// A place that keeps an address of the own frame.
#[derive(Clone, Debug)]
struct Leak {
    at: usize,
    /// The function that keeps it, if another function does.
    by: Option<String>,
}

/// Each place in a file of assembly at which a function may keep the address of a local variable for longer than the job.
pub fn kept(assembly: &str) -> Vec<Refusal> {
    let found = procedures(assembly);
    let all = &found.procedures;
    let by_address = all.iter().map(|one| one.0.as_str());
    let mut file = File {
        summaries: BTreeMap::new(),
        by_address: by_address
            .filter(|name| found.named.contains(*name))
            .collect(),
    };
    let mut leaks: BTreeMap<&str, Vec<Leak>> = BTreeMap::new();
    let mut rounds = 0;
    loop {
        let mut is_more = false;
        for (name, procedure) in all {
            let mut flow = Flow {
                procedure,
                file: &file,
                targets: procedure.targets(&found.named),
                summary: Summary::default(),
                leaks: Vec::new(),
            };
            flow.follow();
            let (summary, leaking) = (flow.summary, flow.leaks);
            leaks.insert(name.as_str(), leaking);
            let known = file.summaries.entry(name.as_str()).or_default();
            let before = known.clone();
            known.add(summary);
            is_more |= before != *known;
        }
        if !is_more {
            break;
        }
        rounds += 1;
        if rounds == ROUNDS {
            let place = all.first().and_then(|one| one.1.instructions.first());
            let place = place.map(|it| format!("{}:{}", it.place.0, it.place.1));
            return vec![Refusal {
                place: place.unwrap_or_default(),
                what: format!(
                    "functions of this file pass addresses to each other in more ways than {ROUNDS} rounds of the analysis find: divide the file"
                ),
            }];
        }
    }
    let mut refused: Vec<Refusal> = Vec::new();
    for (name, procedure) in all {
        let first = leaks.remove(name.as_str()).into_iter().flatten();
        let first = first.min_by_key(|leak| leak.at);
        refused.extend(first.map(|leak| procedure.refuse(&leak)));
    }
    // Summaries of what jobs return; the reported place is in the function that made the address.
    let mut open: Vec<&str> = all.iter().map(|one| one.0.as_str()).collect();
    open.retain(|name| name.starts_with(RUNS));
    let mut seen = BTreeSet::new();
    while let Some(name) = open.pop() {
        if !file.returns_own(name) || !seen.insert(name) {
            continue;
        }
        for (_, procedure) in all.iter().filter(|one| one.0 == name) {
            let mut called: Vec<&str> = file.summaries.keys().copied().collect();
            called
                .retain(|one| procedure.calls(one) && file.returns_own(one) && !seen.contains(one));
            if called.is_empty() {
                let mut makes = procedure.instructions.iter();
                let at = makes.position(|it| it.makes_address).unwrap_or(0);
                refused.push(procedure.refuse(&Leak { at, by: None }));
            }
            open.extend(called);
        }
    }
    refused.sort_by(|one, other| one.place.cmp(&other.place));
    refused.dedup();
    refused
}

impl Procedure {
    fn refuse(&self, leak: &Leak) -> Refusal {
        // If a function of the header is inlined here, the reported place is its call.
        let around = self.instructions[..leak.at].iter().rev();
        let mut around = self.instructions[leak.at..].iter().take(1).chain(around);
        let own = around.find(|it| !it.place.0.ends_with(HEADER_FILE));
        let place = &own.unwrap_or(&self.instructions[leak.at]).place;
        let by = leak.by.as_ref().map(|name| match name.as_str() {
            BY_ADDRESS => " by a function that is called by its address".to_owned(),
            name => format!(" by `{name}`"),
        });
        Refusal {
            place: format!("{}:{}", place.0, place.1),
            what: format!(
                "the address of a local variable is kept{} for longer than the job, and nothing on the stack is there afterwards",
                by.unwrap_or_default()
            ),
        }
    }

    fn calls(&self, name: &str) -> bool {
        let mut all = self.instructions.iter();
        all.any(|it| it.calls.as_deref() == Some(name))
    }

    /// Where a jump by a table may go.
    fn targets(&self, named: &BTreeSet<String>) -> Vec<usize> {
        let labels = self.labels.iter();
        let labels = labels.filter(|(label, _)| named.contains(*label));
        labels.map(|(_, at)| *at).collect()
    }
}

impl File<'_> {
    fn returns_own(&self, name: &str) -> bool {
        let summary = self.summaries.get(name);
        summary.is_some_and(|one| one.returned.iter().flatten().any(Address::is_own))
    }

    /// Whether the function is in this file or in the header.
    fn knows(&self, name: &str) -> bool {
        self.summaries.contains_key(name) || name.starts_with(HEADER)
    }

    /// The summary of all functions that may be called by address.
    fn by_address(&self) -> Summary {
        let mut all = Summary::default();
        for name in &self.by_address {
            let summary = self.summaries.get(name);
            all.add(summary.cloned().unwrap_or_default());
        }
        all
    }

    /// The summary of the header's function that calls this action, or any action, with the data of an object and an argument.
    fn update(&self, action: Option<&str>) -> Summary {
        let called = match action {
            Some(name) => self.summary(name),
            None => self.by_address(),
        };
        let seen = |base: Base| match base {
            Base::Given(0) => Base::Loaded(0, 0),
            Base::Given(1) => Base::Given(2),
            Base::Loaded(1, place) => Base::Loaded(2, place),
            // Read over two structures.
            other => other,
        };
        let mut summary = Summary {
            kept: called.kept.into_iter().map(seen).collect(),
            ..Summary::default()
        };
        for ((to, _), what) in called.stored {
            let what = what
                .places()
                .map(|(base, _)| Address::at(seen(base), ANYWHERE));
            for what in what {
                summary.store((seen(to), ANYWHERE), what);
            }
        }
        summary
    }

    fn summary(&self, name: &str) -> Summary {
        let (first, second) = (Base::Given(0), Base::Given(1));
        let mut summary = Summary::default();
        match name {
            BY_ADDRESS => return self.by_address(),
            BEGIN => summary.store((first, 0), Address::at(second, 0)),
            name if KEEPS.contains(&name) => {
                summary.kept.insert(first);
            }
            name => return self.summaries.get(name).cloned().unwrap_or_default(),
        }
        summary
    }
}

/// One function.
struct Flow<'a> {
    procedure: &'a Procedure,
    file: &'a File<'a>,
    targets: Vec<usize>,
    summary: Summary,
    leaks: Vec<Leak>,
}

impl Flow<'_> {
    fn follow(&mut self) {
        let procedure = self.procedure;
        // If the frame has no fixed size, no place in it is known.
        let is_fixed = procedure
            .instructions
            .iter()
            .all(|it| it.writes & SP == 0 || it.moves != 0);
        let depths = procedure
            .depths_with(&self.targets)
            .ok()
            .filter(|_| is_fixed);
        let mut before: Vec<Option<State>> = vec![None; procedure.instructions.len()];
        reach(&mut before, 0, &State::with_arguments());
        let mut open = VecDeque::from([0]);
        while let Some(at) = open.pop_front() {
            let Some(mut state) = before.get(at).cloned().flatten() else {
                continue;
            };
            let it = &procedure.instructions[at];
            let depth = depths.as_ref().and_then(|all| all.get(at).copied());
            match &it.calls {
                Some(name) => self.call(&mut state, at, name, depth),
                None => {
                    if let Some(stored) = state.step(&it.effect, depth) {
                        self.stored(at, stored, None);
                    }
                }
            }
            let mut next = procedure.next(at);
            if it.next == Next::Out {
                let mut out = state.clone();
                let is_computed = it.jumps_by_register();
                if is_computed {
                    next.extend(&self.targets);
                }
                // A tail call comes after the end of the frame.
                if !is_computed || self.targets.is_empty() || depth.is_none_or(|depth| depth == 0) {
                    if is_computed {
                        self.call(&mut out, at, BY_ADDRESS, depth);
                    }
                    self.leave(&out);
                }
            }
            for next in next {
                if reach(&mut before, next, &state) {
                    open.push_back(next);
                }
            }
        }
    }

    fn leave(&mut self, state: &State) {
        for (number, known) in self.summary.returned.iter_mut().enumerate() {
            let result = state.registers.get(&(1 << (FIRST as usize + number)));
            *known = either(known.take(), result.cloned());
        }
    }

    fn leak(&mut self, at: usize, by: Option<&str>) {
        let by = by.map(str::to_owned);
        self.leaks.push(Leak { at, by });
    }

    /// Records that an address goes elsewhere than into the own frame.
    fn stored(&mut self, at: usize, stored: Stored, by: Option<&str>) {
        let Stored { to, what } = stored;
        let Some(to) = to else {
            if what.is_own() {
                self.leak(at, by);
            }
            let given = what.places().map(|one| one.0);
            self.summary
                .kept
                .extend(given.filter(|one| *one != Base::Own));
            return;
        };
        for key in to.places().filter(|key| key.0 != Base::Own) {
            match what.is_own() {
                true => self.leak(at, by),
                false => self.summary.store(key, what.clone()),
            }
        }
    }

    fn call(&mut self, state: &mut State, at: usize, name: &str, depth: Option<i64>) {
        let summary = match name {
            UPDATE => self
                .file
                .update(register("a1").and_then(|action| self.procedure.loaded(at, action))),
            name => self.file.summary(name),
        };
        let given = Arguments {
            state: &*state,
            depth,
        };
        let mut stores = Vec::new();
        for base in &summary.kept {
            let what = given.resolve(&Address::at(*base, 0));
            stores.extend(what.map(|what| Stored { to: None, what }));
        }
        for ((base, place), what) in &summary.stored {
            let what = given.resolve(what);
            // Without an object, nothing is stored.
            if given.is_null(*base) {
                continue;
            }
            let to = given.resolve(&Address::at(*base, 0));
            let to = to.map(|to| to.further(*place));
            stores.extend(what.map(|what| Stored { to, what }));
        }
        if COPIES.contains(&name) {
            let count = register("a2").and_then(|count| self.procedure.constant(at, count));
            let what = given
                .value(1)
                .and_then(|from| state.load_bytes(&from, count));
            let to = given.value(0).map(|to| to.further(ANYWHERE));
            stores.extend(what.map(|what| Stored { to, what }));
        }
        let mut returned = summary.returned.map(|one| given.resolve(&one?));
        if COPIES.contains(&name) {
            returned[0] = given.value(0);
        }
        let is_own = |argument| given.value(argument).is_some_and(|one| one.is_own());
        if !self.file.knows(name) && (0..ARGUMENTS).any(is_own) {
            state.forget_zeros();
        }
        for stored in stores {
            if let Some(to) = &stored.to {
                state.lend(to, &stored.what);
            }
            self.stored(at, stored, Some(name));
        }
        state.registers.retain(|one, _| one & CHANGED == 0);
        for (number, result) in returned.into_iter().enumerate() {
            state.set(1 << (FIRST as usize + number), result);
        }
    }
}

/// What a call passes.
struct Arguments<'a> {
    state: &'a State,
    depth: Option<i64>,
}

impl Arguments<'_> {
    /// An argument; the one after the registers is the caller's frame from the stack's pointer on.
    fn value(&self, argument: u32) -> Option<Address> {
        if argument == ARGUMENTS {
            let place = self.depth.map(|depth| Address::at(Base::Own, depth));
            return Some(place.unwrap_or_else(Address::own));
        }
        self.state
            .registers
            .get(&(1 << (FIRST + argument)))
            .cloned()
    }

    /// Whether there is no such object: the word that would point to it is 0.
    fn is_null(&self, base: Base) -> bool {
        let Base::Loaded(argument, place) = base else {
            return false;
        };
        let at = self.value(argument).map(|at| at.further(place));
        at.is_some_and(|at| self.state.is_zero(&at))
    }

    /// Translates an address of the called function into one of its caller.
    fn resolve(&self, address: &Address) -> Option<Address> {
        let of = |base: Base| match base {
            Base::Given(argument) => self.value(argument),
            Base::Loaded(argument, place) => {
                let from = self.value(argument)?.further(place);
                self.state.load(&from)
            }
            Base::Own => Some(Address::own()),
        };
        let all = address.places();
        let all = all.filter_map(|(base, place)| Some(of(base)?.further(place)));
        all.fold(None, |all, one| either(all, Some(one)))
    }
}
