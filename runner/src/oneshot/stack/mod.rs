//! How much stack an image needs at most, from its compiled code.
//!
//! Why it exists: all tasks of a core share one stack of some hundred bytes, and a stack that is too small would show only in the field.
//! What it deliberately does not know: languages and compilers; it reads instructions and symbols of the linked file.
//!
//! The depth of a function is that of its own frame, and below it that of the deepest function that it calls. A call through a register
//! reaches any function whose address is somewhere in the image, with these exceptions, which are the kernel's rules: only the kernel runs
//! jobs (functions whose addresses are in the tables of tasks only), a job runs no other task's job, and only the kernel calls its
//! handlers. The run time of Ada calls barriers and bodies of entries, and these are no protected procedures, which are handlers of timing
//! events. Functions that write values as text are not reached through registers if the part of Rust's library that calls them in this
//! way is not reached at all. Stacks without a bound are refused: recursion, and frames whose size is known only at run time.

mod code;

use crate::error::Error;
use crate::one_stack::ENDS;
use bulkhead_abi::one_shot::{ROOM_FOR_INTERRUPTS, STACK, system};
use bulkhead_machine::image::Resolver;
use code::{Base, Code, Target, Walk};
use object::{Object as _, ObjectSymbol as _};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Why there is no bound, with addresses of instructions or functions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Unbounded {
    /// The frame has no fixed size, or the target of this instruction is not known.
    Frame(u64),
    /// Functions that call each other, by their addresses.
    Recursion(Vec<u64>),
}

/// What an image needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Needs {
    /// Bytes of the deepest job of each task, the most urgent one first, and the functions on the way there.
    pub jobs: Vec<Deepest>,
    /// What the kernel needs itself, without a job.
    pub kernel: Deepest,
    /// What interrupts need on top of any of these.
    pub interrupts: u64,
}

/// A depth, and the functions on the way there, the outermost one first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Deepest {
    /// Bytes.
    pub bytes: u64,
    /// Names.
    pub way: Vec<String>,
}

impl Needs {
    /// Bytes of the stack.
    pub fn total(&self) -> u64 {
        let jobs = self.jobs.iter().map(|one| one.bytes);
        let deepest = jobs.max().unwrap_or(0).max(self.kernel.bytes);
        (deepest + self.interrupts).next_multiple_of(16).max(STACK)
    }
}

/// Who calls: it says what a register may lead to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Context {
    Kernel,
    /// A job, before a task in C has begun.
    Job,
    /// Below a task in C, or in another function of users.
    User,
}

/// What is known of a function in a context.
#[derive(Clone, Debug)]
enum Depth {
    Open,
    Done(u64, Option<usize>),
}

/// The place of the function that looks for due timing events, among handlers.
const DUE: usize = 5;

/// How names of functions of the run time of Ada begin that call barriers and bodies of entries.
const ENTRIES: &str = "system__tasking__protected_objects__";

/// How names of protected procedures in Ada end; those of barriers and bodies of entries do not.
const PROTECTED: char = 'P';

/// Bytes that [`code::EXCHANGES`] has below both frames that it exchanges.
const SERVE: u64 = 32;

struct Analysis<'c> {
    code: &'c Code,
    walks: Vec<Walk>,
    /// The possible targets of a call through a register, by caller.
    user: BTreeSet<usize>,
    jobs_in_c: BTreeSet<usize>,
    /// In the order of [`system::HANDLERS`], and the function that looks for due timing events.
    handlers: [Option<usize>; 6],
    /// The kernel's functions that call these, by the places of what they call.
    callers: Vec<(usize, Vec<usize>)>,
    /// The function that serves interrupts: it calls handlers, and actions of timing events.
    interrupt: usize,
    /// The action of each timing event in Ada.
    fires: Option<usize>,
    /// The deepest frame of a task's body in Ada.
    body: u64,
    known: BTreeMap<(usize, Context), Depth>,
    /// Functions that are called on a stack which begins anew.
    from_top: BTreeMap<(usize, Context), u64>,
    way: Vec<u64>,
}

impl Analysis<'_> {
    fn targets(&self, number: usize, context: Context) -> Vec<(usize, Context)> {
        let handlers = |places: &[usize]| -> Vec<(usize, Context)> {
            let all = places.iter().filter_map(|&place| self.handlers[place]);
            all.map(|one| (one, Context::User)).collect()
        };
        let of_callers = self.callers.iter().find(|one| one.0 == number);
        let own = of_callers.map(|one| handlers(&one.1));
        if let Some(own) = own.as_ref().filter(|_| number != self.interrupt) {
            return own.clone();
        }
        let of = |set: &BTreeSet<usize>, context| -> Vec<(usize, Context)> {
            set.iter().map(|&one| (one, context)).collect()
        };
        let mut all = of(&self.user, context.max(Context::Job));
        if self.handlers[DUE] == Some(number) {
            all.extend(self.fires.map(|one| (one, Context::User)));
        }
        let name = |number: usize| self.code.functions[number].name.as_str();
        if name(number).starts_with(ENTRIES) || name(number) == code::EXCHANGES {
            all.retain(|one| !name(one.0).ends_with(PROTECTED));
        }
        if name(number) == code::CALLS_HANDLER {
            all.retain(|one| name(one.0).ends_with(PROTECTED));
        }
        match context {
            Context::Kernel => all.extend(own.unwrap_or_else(|| handlers(&[0, 1, 2, 3, 4, DUE]))),
            Context::Job => all.extend(of(&self.jobs_in_c, Context::User)),
            Context::User => {}
        }
        all
    }

    /// The depth of a function below where it begins.
    fn depth(&mut self, number: usize, context: Context) -> Result<u64, Unbounded> {
        let start = self.code.functions[number].start;
        match self.known.get(&(number, context)) {
            Some(Depth::Done(depth, _)) => return Ok(*depth),
            Some(Depth::Open) => {
                let from = self.way.iter().position(|one| *one == start).unwrap_or(0);
                return Err(Unbounded::Recursion(self.way[from..].to_vec()));
            }
            None => {}
        }
        self.known.insert((number, context), Depth::Open);
        self.way.push(start);
        let walk = self.walks[number].clone();
        if let Some(wrong) = walk.wrong {
            return Err(wrong);
        }
        let (mut deepest, mut by) = (walk.depth, None);
        for call in &walk.calls {
            let targets = match call.target {
                Target::Known(known) => vec![(known, context)],
                Target::Unknown => self.targets(number, context),
            };
            for (target, context) in targets {
                if call.base == Base::Top {
                    let known = self.from_top.entry((target, context)).or_insert(0);
                    *known = call.depth.max(*known);
                    continue;
                }
                let depth = call.depth + self.depth(target, context)?;
                if depth > deepest {
                    (deepest, by) = (depth, Some(target));
                }
            }
        }
        self.way.pop();
        self.known
            .insert((number, context), Depth::Done(deepest, by));
        Ok(deepest)
    }

    /// The functions on a way from one function to one that ends a job.
    fn way_to_wait(&self, from: usize) -> Option<Vec<u64>> {
        let mut before = BTreeMap::from([((from, Context::User), None)]);
        let mut open = VecDeque::from([(from, Context::User)]);
        while let Some(at) = open.pop_front() {
            if ENDS.contains(&self.code.functions[at.0].name.as_str()) {
                let way = std::iter::successors(Some(at), |one| before[one]);
                let mut way: Vec<u64> = way.map(|one| self.code.functions[one.0].start).collect();
                way.reverse();
                return Some(way);
            }
            for call in &self.walks[at.0].calls {
                let next = match call.target {
                    _ if call.base == Base::Top => Vec::new(),
                    Target::Known(known) => vec![(known, at.1)],
                    Target::Unknown => self.targets(at.0, at.1),
                };
                for next in next {
                    before.entry(next).or_insert_with(|| {
                        open.push_back(next);
                        Some(at)
                    });
                }
            }
        }
        None
    }

    /// The functions on the way to the deepest place.
    fn way_of(
        &self,
        mut number: usize,
        context: Context,
        names: &dyn Fn(u64) -> String,
    ) -> Vec<String> {
        let mut all = Vec::new();
        loop {
            let name = names(self.code.functions[number].start);
            if all.last() != Some(&name) {
                all.push(name);
            }
            let next = [context, Context::Job, Context::User]
                .into_iter()
                .find_map(|context| match self.known.get(&(number, context)) {
                    Some(Depth::Done(_, next)) => Some(*next),
                    _ => None,
                });
            match next.flatten() {
                Some(next) if all.len() < 32 => number = next,
                _ => return all,
            }
        }
    }
}

/// Functions of Rust's library that call others to write values as text, and such others.
fn is_text(name: &str) -> bool {
    name.contains("core::fmt::") && name.ends_with("::fmt")
        || name.starts_with('<') && name.contains("as core::fmt::") && name.ends_with(">::fmt")
}

/// What an image needs; `bodies`: of tasks in Ada by their names in the file, with the number of their tasks.
///
/// # Errors
/// If it is not an image of the kernel, or there is no bound.
pub fn needs(name: &str, elf: &[u8], bodies: &[(usize, String)]) -> Result<Needs, Error> {
    let resolver = Resolver::new(elf);
    let names = |address: u64| resolver.resolve(address).to_string();
    let short = |address: u64| {
        let function = resolver.resolve(address).function;
        function.map_or_else(|| format!("{address:#x}"), |function| function.0)
    };
    let no_image = || {
        Error::input(
            format!("{name}: not an image of the one-shot RTOS, or its layout is another one"),
            "build it with the kernel in software/oneshot",
        )
    };
    let file = object::File::parse(elf).map_err(|_| no_image())?;
    let code = Code::of(&file).ok_or_else(no_image)?;
    let walks = walks(&code);
    let symbol = |name: &str| {
        let mut all = file.symbols();
        all.find(|one| one.name() == Ok(name))
            .map(|one| one.address())
    };
    let table = symbol("bulkhead_system").ok_or_else(no_image)?;
    let word = |address: u64| code.word(address).ok_or_else(no_image);
    let descriptors = word(table + system::TASKS)?;
    let count = word(table + system::TASKS + 8)?;
    let mut jobs = Vec::new();
    for number in 0..count.min(64) {
        let run = word(descriptors + number * system::DESCRIPTOR)?;
        jobs.push(code.at(run).ok_or_else(no_image)?);
    }
    let mut handlers = [None; 6];
    for (place, offset) in system::HANDLERS.into_iter().enumerate() {
        let handler = word(table + offset)?;
        if handler != 0 {
            handlers[place] = Some(code.at(handler).ok_or_else(no_image)?);
        }
    }
    // The kernel's own begin, the loop that runs jobs, and traps: the first function that each of these calls.
    let root = |name: &str| code.named(name).ok_or_else(no_image);
    let (start, restart, trap) = (
        root("_start")?,
        root("bulkhead_restart")?,
        root("bulkhead_trap")?,
    );
    let first = |number: usize, base: Base| {
        let calls = walks[number].calls.iter().filter(|call| call.base == base);
        let mut known = calls.filter_map(|call| match call.target {
            Target::Known(number) => Some(number),
            Target::Unknown => None,
        });
        known.next().ok_or_else(no_image)
    };
    let (starts, dispatch) = (first(start, Base::Top)?, first(restart, Base::Top)?);
    let interrupt = first(trap, Base::Entry)?;
    let in_kernel = |name: &str| {
        let is_it = |one: &usize| short(code.functions[*one].start).contains(name);
        (0..code.functions.len()).find(is_it)
    };
    // What tells that a task has stopped.
    let fail = in_kernel("bulkhead_oneshot::kernel::fail").ok_or_else(no_image)?;
    handlers[DUE] = in_kernel("bulkhead_oneshot::kernel::events::due");
    // Constants `bh_task_NAME` of files in C begin with the function of their jobs, and `bh_ending_NAME` with that of such an end: only the kernel's
    // function for a job in C calls either.
    let in_c: BTreeSet<u64> = file
        .symbols()
        .filter(|one| {
            let prefixes = ["bh_task_", "bh_ending_"];
            one.name()
                .is_ok_and(|name| prefixes.iter().any(|prefix| name.starts_with(prefix)))
        })
        .map(|one| one.address())
        .collect();
    let is_table = |at: u64| {
        (table..table + system::SIZE).contains(&at)
            || (descriptors..descriptors + count * system::DESCRIPTOR).contains(&at)
    };
    let fires = code.named(code::FIRES);
    let has_ada = symbol("bulkhead_ada_current").is_some();
    let is_body = |number: usize| has_ada && code.functions[number].name.ends_with("TKB");
    let pointers = code.pointers();
    let jobs_in_c = pointers.iter().filter(|(at, _)| in_c.contains(at));
    let jobs_in_c = jobs_in_c.map(|one| one.1).collect();
    let elsewhere = pointers
        .iter()
        .filter(|(at, _)| !is_table(*at) && !in_c.contains(at));
    let taken = walks.iter().flat_map(|walk| walk.taken.iter().copied());
    let user: BTreeSet<usize> = elsewhere
        .map(|one| one.1)
        .chain(taken)
        // The hart and assembly go to the kernel's entries, and no call does.
        .filter(|&one| !is_body(one) && ![start, restart, trap].contains(&one))
        .filter(|&one| handlers[DUE] != Some(one) && fires != Some(one))
        .collect();
    let body = (0..code.functions.len())
        .filter(|&one| is_body(one))
        .map(|one| walks[one].depth);
    let body = body.max().unwrap_or(0);
    let mut analysis = Analysis {
        code: &code,
        walks,
        user,
        jobs_in_c,
        handlers,
        callers: vec![
            (dispatch, vec![2]),
            (starts, vec![3]),
            (interrupt, vec![0, 1, DUE]),
            (fail, vec![2, 4]),
        ],
        interrupt,
        fires,
        body,
        known: BTreeMap::new(),
        from_top: BTreeMap::new(),
        way: Vec::new(),
    };
    analysis.without_text(&jobs, &short);
    if let Some(serve) = code.named(code::EXCHANGES) {
        analysis.serves(serve);
    }
    if let Some(way) = fires.and_then(|fires| analysis.way_to_wait(fires)) {
        let way: Vec<String> = way.into_iter().skip(2).map(short).collect();
        return Err(Error::input(
            format!(
                "{name}: a handler of a timing event waits: {}",
                way.join(", ")
            ),
            "it runs in an interrupt: let it open the barrier of an entry, or set a suspension object, where a task waits",
        ));
    }
    let failed = |unbounded: Unbounded| {
        let (what, help) = match unbounded {
            Unbounded::Frame(at) => (
                format!(
                    "a frame whose size is known only at run time, or a jump to an unknown place: {}",
                    names(at)
                ),
                "use arrays of a fixed length; or state stack=\"...\" for the task; it is then not verified",
            ),
            Unbounded::Recursion(way) => {
                let way: Vec<String> = way.into_iter().map(short).collect();
                (
                    format!("recursion: {} and so on", way.join(", ")),
                    "use a loop; or state stack=\"...\" for the task; it is then not verified",
                )
            }
        };
        Error::input(format!("{name} has a stack without a bound: {what}"), help)
    };
    let mut analyse = |number: usize, context: Context| {
        analysis.way.clear();
        analysis.depth(number, context)
    };
    for root in [start, restart] {
        analyse(root, Context::Kernel).map_err(failed)?;
    }
    let interrupts = analyse(trap, Context::Kernel).map_err(failed)?;
    // Where it calls jobs.
    let calls = analysis.walks[dispatch].calls.iter();
    let site = calls
        .filter(|call| call.target == Target::Unknown)
        .map(|call| call.depth);
    let site = site.max().ok_or_else(no_image)?;
    let mut of_jobs = Vec::new();
    for (number, run) in jobs.iter().enumerate() {
        analysis.way.clear();
        let mut bytes = site + analysis.depth(*run, Context::Job).map_err(failed)?;
        let mut way = analysis.way_of(*run, Context::Job, &short);
        if let Some((_, body)) = bodies.iter().find(|one| one.0 == number) {
            let body = code.named(body).ok_or_else(no_image)?;
            analysis.way.clear();
            let depth = analysis.depth(body, Context::User).map_err(failed)?;
            if depth > bytes {
                (bytes, way) = (depth, analysis.way_of(body, Context::User, &short));
            }
        }
        of_jobs.push(Deepest { bytes, way });
    }
    let kernel = analysis.kernel(&short).map_err(failed)?;
    Ok(Needs {
        jobs: of_jobs,
        kernel,
        interrupts: interrupts.max(ROOM_FOR_INTERRUPTS),
    })
}

/// Walks through all functions, until it is known which of them never return.
fn walks(code: &Code) -> Vec<Walk> {
    let mut returns = vec![false; code.functions.len()];
    loop {
        let walks: Vec<Walk> = (0..returns.len())
            .map(|one| code.walk(one, &returns))
            .collect();
        let now: Vec<bool> = walks.iter().map(|walk| walk.returns).collect();
        if now == returns {
            return walks;
        }
        returns = now;
    }
}

impl Analysis<'_> {
    /// The formatting library calls functions that write values as text through registers. If nothing calls that library, they are not
    /// targets of a register.
    fn without_text(&mut self, jobs: &[usize], name: &dyn Fn(u64) -> String) {
        let text: BTreeSet<usize> = (0..self.code.functions.len())
            .filter(|&one| is_text(&name(self.code.functions[one].start)))
            .collect();
        let named = |name: &str| self.code.named(name);
        let roots = ["_start", "bulkhead_restart", "bulkhead_trap"]
            .into_iter()
            .filter_map(named);
        let handlers = self.handlers.iter().chain([&self.fires]).flatten();
        let others = self.user.iter().chain(&self.jobs_in_c).chain(handlers);
        let bodies = (0..self.code.functions.len())
            .filter(|&one| self.code.functions[one].name.ends_with("TKB"));
        let mut open: Vec<usize> = roots
            .chain(jobs.iter().copied())
            .chain(others.copied().filter(|one| !text.contains(one)))
            .chain(bodies)
            .collect();
        let mut seen: BTreeSet<usize> = open.iter().copied().collect();
        while let Some(number) = open.pop() {
            for call in &self.walks[number].calls {
                if let Target::Known(next) = call.target
                    && seen.insert(next)
                {
                    open.push(next);
                }
            }
        }
        let formats = |one: &usize| name(self.code.functions[*one].start).contains("core::fmt::");
        if !seen.iter().any(formats) {
            self.user.retain(|one| !text.contains(one));
        }
    }

    /// The exchange of frames, whose stack's pointer no walk follows: below its caller's and below the frame of the task that it serves.
    fn serves(&mut self, number: usize) {
        let depth = SERVE + self.body;
        let walk = &mut self.walks[number];
        walk.wrong = None;
        walk.depth = depth;
        walk.calls = vec![code::Call {
            target: Target::Unknown,
            base: Base::Entry,
            depth,
        }];
    }

    /// The deepest of what begins on an empty stack, besides jobs.
    fn kernel(&mut self, names: &dyn Fn(u64) -> String) -> Result<Deepest, Unbounded> {
        let mut deepest = Deepest::default();
        let mut done = BTreeSet::new();
        loop {
            let next = self.from_top.iter().map(|(key, depth)| (*key, *depth));
            let Some((key, depth)) = next.clone().find(|one| !done.contains(one)) else {
                return Ok(deepest);
            };
            done.insert((key, depth));
            self.way.clear();
            let bytes = depth + self.depth(key.0, key.1)?;
            if bytes > deepest.bytes {
                deepest = Deepest {
                    bytes,
                    way: self.way_of(key.0, key.1, names),
                };
            }
        }
    }
}
