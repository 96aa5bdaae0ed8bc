//! Several threads of control on one loop: C functions that are called when a message has arrived or a moment has come.
//!
//! Why it exists: one hart serves several gates and timers. What it deliberately does not know: what the functions do. While one
//! runs, nothing is borrowed, so it may call any function, also of this module.

use super::{TABLES, with};
use crate::tables::{BAD_ARGUMENT, NOTHING, Result, Table};
use core::cell::RefCell;
use core::ffi::{c_int, c_void};

/// Called with a message, which the function must answer or drop.
type OnMessage = extern "C" fn(c_int, *mut c_void);
/// Called at a moment.
type OnTime = extern "C" fn(*mut c_void);

#[derive(Clone, Copy)]
struct Gate {
    gate: i32,
    call: OnMessage,
    context: *mut c_void,
}

#[derive(Clone, Copy)]
struct Timer {
    moment: u64,
    call: OnTime,
    context: *mut c_void,
}

struct Handlers {
    /// In the order in which they were named, which is their priority order.
    gates: Table<Gate>,
    timers: Table<Timer>,
    /// The loop must end with this result.
    stop: Option<c_int>,
}

/// For the one hart of the activity.
struct Local(RefCell<Handlers>);

// SAFETY: an activity has one hart and no interrupt handlers.
unsafe impl Sync for Local {}

static HANDLERS: Local = Local(RefCell::new(Handlers {
    gates: Table::new(),
    timers: Table::new(),
    stop: None,
}));

/// The function to call next.
enum Next {
    Stop(c_int),
    Message(OnMessage, c_int, *mut c_void),
    Time(OnTime, *mut c_void),
}

fn changed(action: impl FnOnce(&mut Handlers) -> Result<i32>) -> c_int {
    match action(&mut HANDLERS.0.borrow_mut()) {
        Ok(value) => value,
        Err(error) => error,
    }
}

/// Waits for the next thing to do.
fn next(handlers: &mut Handlers) -> Result<Next> {
    if let Some(code) = handlers.stop.take() {
        return Ok(Next::Stop(code));
    }
    let all = handlers.timers.all();
    let first = all.min_by_key(|(number, timer)| (timer.moment, *number));
    let first = first.map(|(number, timer)| (number, *timer));
    // A moment that has passed is due at once: 0 would be never.
    let until = first.map_or(0, |(_, timer)| timer.moment.max(1));
    let gates: alloc::vec::Vec<Gate> = handlers.gates.all().map(|(_, gate)| *gate).collect();
    let numbers: alloc::vec::Vec<i32> = gates.iter().map(|gate| gate.gate).collect();
    let waited = match (&numbers[..], first) {
        ([], None) => return Err(BAD_ARGUMENT),
        ([], Some(_)) => {
            bulkhead_lib::time::sleep_until(until);
            Err(NOTHING)
        }
        (gates, _) => TABLES.0.borrow_mut().wait(gates, until),
    };
    match (waited, first) {
        (Ok((message, index)), _) => {
            let Gate { call, context, .. } = gates[index as usize];
            Ok(Next::Message(call, message, context))
        }
        (Err(NOTHING), Some((number, _))) => {
            let Timer { call, context, .. } = handlers.timers.take(number)?;
            Ok(Next::Time(call, context))
        }
        (Err(error), _) => Err(error),
    }
}

functions! {
    fn bh_on_message(gate: c_int, call: Option<OnMessage>, context: *mut c_void) -> c_int {
        let known = with(|tables| tables.receive(gate).map(|_| 0));
        if known < 0 {
            return known;
        }
        changed(|handlers| {
            let place = handlers.gates.all().find(|(_, known)| known.gate == gate);
            let place = place.map(|(number, _)| number);
            match (place, call) {
                (Some(number), Some(call)) => {
                    *handlers.gates.get_mut(number)? = Gate { gate, call, context };
                    Ok(0)
                }
                (Some(number), None) => handlers.gates.take(number).map(|_| 0),
                (None, Some(call)) => handlers.gates.put(Gate { gate, call, context }).map(|_| 0),
                (None, None) => Ok(0),
            }
        })
    }

    fn bh_at(moment: u64, call: Option<OnTime>, context: *mut c_void) -> c_int {
        changed(|handlers| {
            let call = call.ok_or(BAD_ARGUMENT)?;
            handlers.timers.put(Timer { moment, call, context })
        })
    }

    fn bh_not_at(timer: c_int) -> c_int {
        changed(|handlers| handlers.timers.take(timer).map(|_| 0))
    }

    fn bh_run() -> c_int {
        loop {
            let next = next(&mut HANDLERS.0.borrow_mut());
            match next {
                Ok(Next::Stop(code)) => return code,
                Ok(Next::Message(call, message, context)) => call(message, context),
                Ok(Next::Time(call, context)) => call(context),
                Err(error) => return error,
            }
        }
    }

    fn bh_stop(code: c_int) {
        HANDLERS.0.borrow_mut().stop = Some(code);
    }
}
