//! The kernel of the tiled OS on its own tile, in machine mode.
//!
//! Why it exists: boots the system and then answers messages: system calls, notifications of TileMux, text. What it
//! deliberately does not know: decisions (they are in the library) and registers (they are in `arch`).
#![no_std]
#![no_main]

extern crate alloc;

mod arch;
mod unit;

use alloc::vec::Vec;
use arch::Calls;
use bulkhead_abi::boot::{BootTile, TILE_MEMORY, TILE_PROCESSING, kernel_purses};
use bulkhead_abi::syscall::{PRIORITIES, StopCause, module_key};
use bulkhead_abi::words::{self, Aligned};
use bulkhead_hal::marker;
use bulkhead_kernel::activity::Path;
use bulkhead_kernel::books::{self, Books};
use bulkhead_kernel::bounds::{
    ANSWER, NOTIFICATION, REPLY, STEP, TEXT, TILE_ANSWER, WORK_BEGINS, WORK_ENDS,
};
use bulkhead_kernel::hardware::{Hardware, Region};
use bulkhead_kernel::pending::{Ticket, label_caller};
use bulkhead_kernel::root::{self, Place};
use bulkhead_kernel::system::{KernelEndpoints, MemoryTile, Module, NUMBERS_END, Reply, System};
use bulkhead_kernel::tile::Tile;
use unit::Unit;

/// Most nanoseconds for closing the books, long enough for several tiles that do not answer.
const CLOSING: u64 = 1_000_000_000;

/// Most pieces of text that are written before the line about a stopped activity, but at least as many as there are slots for
/// texts. Text that comes later was not printed before the stop, or is far too long.
const PIECES: usize = 48;

/// Called by `arch` with the boot ROM's arguments.
fn boot(own_tile: u16, table: &arch::BootTable) -> ! {
    let header = table.header;
    let (tiles, modules) = (&table.tiles, &table.modules);
    let tile_of = |t: &BootTile| t.id as u16;
    let mut memories: Vec<MemoryTile> = tiles
        .iter()
        .filter(|t| t.kind == TILE_MEMORY)
        .map(|t| MemoryTile {
            free: whole_pages(tile_of(t), 0, t.memory),
        })
        .collect();
    let Some(first) = memories.first_mut() else {
        panic!("the platform has no memory")
    };
    let memory_tile = first.free.tile;
    first.free = whole_pages(memory_tile, header.free_start, header.free_end);
    let users: Vec<Tile> = tiles
        .iter()
        .filter(|t| t.kind == TILE_PROCESSING && tile_of(t) != own_tile)
        .map(|t| {
            let tile = Tile::new(tile_of(t), t.frequency, t.endpoints as u16);
            tile.built((t.policy, t.slice), t.harts, t.line)
        })
        .collect();
    let modules = modules
        .iter()
        .map(|m| Module {
            key: module_key(words::text(&m.name).as_bytes()),
            region: Region {
                tile: memory_tile,
                base: m.offset,
                size: m.size,
            },
        })
        .collect();
    let Some(default_tile) = users.first().map(|t| t.id) else {
        panic!("the platform has no tile for activities")
    };
    let own = tiles.iter().find(|t| tile_of(t) == own_tile);
    let endpoints = own.map_or(0, |t| t.endpoints);
    let (mut unit, calls) = Unit::new(endpoints, users.iter().map(|t| t.id));
    let kernel = KernelEndpoints {
        tile: own_tile,
        syscalls: unit::SYSCALLS,
        notifications: unit::NOTIFICATIONS,
        prints: unit::PRINTS,
    };
    let purses = kernel_purses(users.len() as u64, header.heap);
    let terms = (header.timebase, purses);
    let line = users.iter().map(|t| t.line).min().unwrap_or(0);
    let mut system = System::new(kernel, memories, users, modules, terms);
    let wanted = system.module(&[books::MODULE]).is_some();
    let books = wanted.then(|| system.books());
    let place = Place {
        tile: match header.manager_tile as u16 {
            0 => default_tile,
            tile => tile,
        },
        memory: header.manager_memory.max(1 << 20),
        memory_tile,
        line: line as u16,
    };
    let manager = match root::start(&mut system, &mut unit, place) {
        Ok(manager) => manager,
        Err(error) => panic!("the root manager cannot be started: {error:?}"),
    };
    serve(&mut system, &mut unit, &calls, (manager, books))
}

/// The whole pages between two bytes of a memory tile.
fn whole_pages(tile: u16, start: u64, end: u64) -> Region {
    let page = arch::PAGE as u64;
    let base = start.next_multiple_of(page);
    Region {
        tile,
        base,
        size: (end / page * page).saturating_sub(base),
    }
}

/// Answers messages until the root manager has ended.
///
/// The kernel does one piece of work at a time, that of the highest priority first: a step of a job or a call, in turn if there are
/// both. It prints text when there is no other work, or only work of the lowest priority. Between two pieces of work it takes one
/// message of a tile or server. So a caller waits for one piece in progress and one such message, and no tile or server can keep
/// the kernel from the callers.
///
/// Usually there is only a call, or nothing at all. Two checks find that out, and work that the reply does not need comes after it.
fn serve(system: &mut System, unit: &mut Unit, calls: &Calls, end: (u16, Option<Books>)) -> ! {
    // The priority of the job that took a step last, if that was the last thing done.
    let mut stepped = None;
    // The kind of message that the kernel takes next.
    let mut ear = 0;
    let mut reply = Aligned(Reply::new());
    loop {
        // The unit first: the rest is checked while its registers are read.
        let (unread, waiting) = unit.look();
        let is_busy = system.is_busy() || unit.is_printing();
        let (mut level, of_level) = match waiting {
            [lowest, 0, 0] => (0, lowest),
            [_, middle, 0] => (1, middle),
            [_, _, highest] => (2, highest),
        };
        if unread == 0 && !is_busy {
            unit.sleep(None);
            continue;
        }
        // There are only calls of one priority.
        let is_plain = of_level != 0 && (unread == 1 || of_level.count_ones() == unread);
        if is_busy || !is_plain {
            // Usually the kernel is asleep when an awaited answer arrives, and takes it at once.
            let only_waits = unread == 0 && !unit.is_printing() && system.only_waits();
            if only_waits && unit.sleep(system.next_moment()) {
                continue;
            }
            match prepare(system, unit, stepped, &mut ear) {
                Work::Call(chosen) => level = chosen,
                Work::Step(done) => {
                    stepped = done;
                    conclude(system, unit, &end, done);
                    continue;
                }
            }
        }
        answer(system, unit, calls, level, &mut reply);
        stepped = None;
        if is_busy || !is_plain || system.is_busy() {
            conclude(system, unit, &end, Some(level));
        }
    }
}

/// The work to do next.
enum Work {
    /// A call of this priority.
    Call(usize),
    /// A step of a job of this priority, which has been done; `None` if there was none.
    Step(Option<usize>),
}

/// Takes a message of a tile or server and finds the most important work; a step of a job is done at once.
#[inline(never)]
fn prepare(system: &mut System, unit: &mut Unit, stepped: Option<usize>, ear: &mut usize) -> Work {
    // Each of the three kinds has its turn, but what is for less important callers comes after the steps of more important ones. A
    // notification does not say whom it concerns; when no more of them fit, TileMuxes would wait.
    let arrived = unit.arrived();
    let step = system.step_level();
    for _ in 0..EARS {
        *ear = (*ear + 1) % EARS;
        let level = match *ear {
            _ if step.is_none() || arrived[*ear] == u32::MAX => PRIORITIES,
            0 => 0,
            1 => system.asked_level(),
            _ => system.awaited_level(),
        };
        if arrived[*ear] != 0 && Some(level) >= step {
            hear(system, unit, *ear);
            break;
        }
    }
    if system.has_impatient() {
        system.expire(unit.time());
    }
    // A TileMux whose answer has arrived, but was not heard yet, is not late.
    if system.is_asking() && arrived[2] == 0 {
        system.expire_tiles(unit);
    }
    choose(system, unit, stepped)
}

/// Kinds of messages that the kernel takes: notifications of TileMuxes, answers of servers, answers of TileMuxes.
const EARS: usize = 3;

/// Takes one message of a kind, if there is one.
fn hear(system: &mut System, unit: &mut Unit, ear: usize) -> Option<()> {
    match ear {
        0 => {
            let (tile, stopped) = unit.notification()?;
            // A malformed message names an activity that cannot exist.
            let (activity, cause) = stopped.unwrap_or((NUMBERS_END, StopCause::Panic));
            measured(NOTIFICATION, || {
                system.notified(unit, tile as u16, activity, cause)
            });
        }
        1 => {
            let (number, words) = unit.server_answer()?;
            measured(ANSWER, || system.answered(unit, number, words.as_slice()));
        }
        _ => {
            let (number, answer) = unit.answer()?;
            measured(TILE_ANSWER, || system.tile_answered(unit, number, answer));
        }
    }
    Some(())
}

/// Chooses the next work. A priority that has just taken a step of a job serves a call before its next step.
fn choose(system: &mut System, unit: &mut Unit, stepped: Option<usize>) -> Work {
    let calls = unit.calls();
    for level in (0..PRIORITIES).rev() {
        let has_step = system.has_step(level);
        let is_first = has_step && stepped != Some(level);
        if !is_first && calls[level] != 0 {
            return Work::Call(level);
        }
        if has_step {
            measured(STEP, || system.step(unit, level));
            return Work::Step(Some(level));
        }
    }
    Work::Step(None)
}

/// Carries out the next call of a priority and answers it, now or later.
#[inline(always)]
fn answer(
    system: &mut System,
    unit: &mut Unit,
    calls: &Calls,
    level: usize,
    reply: &mut Aligned<Reply>,
) {
    let Some(offset) = unit.call(level) else {
        return;
    };
    let (label, words) = calls.message(level, offset);
    let (caller, generation) = label_caller(label);
    let ticket = Ticket {
        caller,
        generation,
        level,
        offset,
    };
    measured(words.first().copied().unwrap_or(0), || {
        if system.call_words(unit, ticket, words, &mut reply.0) {
            unit.reply(ticket, reply);
        }
    });
}

/// What follows after work of a priority, or after none: lines on the console, late replies, the end of the system, texts, sleep
/// until something is due.
#[cold]
#[inline(never)]
fn conclude(
    system: &mut System,
    unit: &mut Unit,
    (root, books): &(u16, Option<Books>),
    worked: Option<usize>,
) {
    // Each is a piece of its own: a call of a higher priority comes in between.
    while let Some(level) = system.reply_level()
        && system.step_level() <= Some(level)
        && !is_wanted_above(unit, worked)
    {
        measured(REPLY, || {
            system.send_reply(unit);
        });
    }
    if let Some(cause) = system.root_cause(*root) {
        while report(system, unit) {}
        unit.flush(system);
        let code = match cause {
            StopCause::Exit(code) => code as u16,
            _ => 1,
        };
        match books {
            None => arch::exit(code),
            Some(then) => arch::exit(if close(system, unit, then) { code } else { 2 }),
        }
    }
    // Text is the least important work, unless somebody more important has ended, and at most one piece of it is written.
    let said = system.report_level();
    if worked.is_none_or(|level| level <= said.unwrap_or(0)) && !is_wanted_above(unit, worked) {
        if report(system, unit) {
            return;
        }
        match unit.has_text() {
            true => measured(TEXT, || unit.write(system)),
            // Jobs wait, too.
            false if worked.is_none() => {
                unit.sleep(system.next_moment());
            }
            false => {}
        }
    }
}

/// Whether there is a call of a higher priority than the work just done.
fn is_wanted_above(unit: &Unit, worked: Option<usize>) -> bool {
    let calls = unit.calls();
    calls[worked.map_or(0, |level| level + 1)..]
        .iter()
        .any(|calls| *calls != 0)
}

/// Prints what every remaining activity holds, ends them all, and returns whether everything that existed at boot is back.
fn close(system: &mut System, unit: &mut Unit, then: &Books) -> bool {
    let all: Vec<u16> = system.numbers_in_use().collect();
    for id in all {
        if let Some(holder) = system.activity(id).map(|a| a.holder) {
            let holding = system.space().holding(holder);
            let mut path = Path::NONE;
            while !system.add_path(&mut path, id) {}
            unit.line(system, format_args!("books: {path} has {holding:?}"));
        }
    }
    root::take_back(system, unit);
    while system.take_reply().is_some() {}
    let until = unit.time() + CLOSING;
    while unit.time() < until && (system.has_jobs() || system.is_asking() || system.has_questions())
    {
        while (0..EARS).any(|ear| hear(system, unit, ear).is_some()) {}
        system.expire(unit.time());
        system.expire_tiles(unit);
        for level in 0..PRIORITIES {
            if system.has_step(level) {
                system.step(unit, level);
            }
        }
        // No activity is left to which an answer would matter.
        while system.take_reply().is_some() {}
        while report(system, unit) {}
        unit.flush(system);
    }
    let now = system.books();
    match now == *then {
        true => unit.line(system, "books: all is there that was there at boot"),
        false => unit.line(system, format_args!("books: now {now:?}, at boot {then:?}")),
    }
    now == *then
}

/// Does a piece of work between two markers, which cost a no-op each.
#[inline(always)]
fn measured(what: u64, work: impl FnOnce()) {
    marker::custom::<WORK_BEGINS>(what);
    work();
    marker::custom::<WORK_ENDS>(what);
}

/// Prints which activity stopped, after its last text: at most one text of each tile is waiting. Writes one piece of a text or of a
/// line; returns false if there is nothing to print.
fn report(system: &mut System, unit: &mut Unit) -> bool {
    let Some(level) = system.report_level() else {
        return false;
    };
    // A pending line comes before texts.
    let can_say = unit.can_say();
    let may_wait = unit.said < unit.texts().max(PIECES);
    unit.said += usize::from(can_say);
    if !can_say || may_wait && unit.has_text_of(level) {
        measured(TEXT, || unit.write(system));
        return true;
    }
    measured(TEXT, || unit.report(system));
    true
}
