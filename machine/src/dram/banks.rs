//! When each command may be issued to the banks of a channel, and which earlier command delays it.
//!
//! Why it exists: the standard defines the constraints between DRAM commands, whatever policy chooses among the commands. They are
//! written here, once. Each constraint is a moment and the command that set it, so a wait can be charged to its cause. What it
//! deliberately does not know: queues, policies, addresses, bytes.
//!
//! Constraints, after JEDEC JESD79-3F (DDR3) section 4 and JESD79-4 (DDR4) section 4; a column access is a read or a write:
//!
//! | command | not before |
//! |---|---|
//! | activate | precharge of the bank + tRP, any activate + tRRD, the fourth last activate + tFAW, end of a refresh |
//! | read | activate of the bank + tRCD, any read + max(tCCD, burst), any write + tCWL + burst + tWTR |
//! | write | activate of the bank + tRCD, any write + max(tCCD, burst), any read + tCL + burst + tRTW - tCWL |
//! | precharge | activate of the bank + tRAS, read of the bank + tRTP, write of the bank + tCWL + burst + tWR |
//! | refresh | precharge of every bank + tRP |
//! | any | one command per cycle |

pub use crate::config::dram::Timing;
use crate::types::{Owner, Tick};

impl Timing {
    /// Minimum distance between two reads, or between two writes.
    pub fn column_gap(&self) -> Tick {
        self.column.max(self.burst)
    }

    /// Write to read, in any banks.
    pub fn write_then_read(&self) -> Tick {
        self.write_cas + self.burst + self.write_to_read
    }

    /// Read to write, in any banks. If the write latency exceeds the sum, a write need not wait at all.
    pub fn read_then_write(&self) -> Tick {
        (self.cas + self.burst + self.read_to_write).saturating_sub(self.write_cas)
    }

    /// Column access to precharge of the same bank.
    pub fn column_to_precharge(&self, write: bool) -> Tick {
        if write {
            self.write_cas + self.burst + self.write_recovery
        } else {
            self.read_to_precharge
        }
    }
}

/// A command to the banks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Command {
    /// Opens `row` in `bank`.
    Activate {
        /// The bank.
        bank: u32,
        /// The row.
        row: u64,
    },
    /// Closes the row of `bank`.
    Precharge {
        /// The bank.
        bank: u32,
    },
    /// Moves one burst to or from the open row. With `close`, the bank itself closes the row as soon as possible.
    Column {
        /// The bank.
        bank: u32,
        /// Whether data goes to the memory.
        write: bool,
        /// Precharges by itself.
        close: bool,
    },
}

/// The cause of a command: an owner, and the request for which the controller issued it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cause {
    /// The owner that pays.
    pub owner: Owner,
    /// The request, by its number in the order of arrival.
    pub request: u64,
}

/// The part of the memory to which a constraint belongs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    /// The bank.
    Bank(u32),
    /// The data bus, with its gaps and turnarounds.
    Bus,
    /// The command bus.
    Commands,
    /// tRRD and tFAW, which limit the chips' supply current.
    Activates,
    /// A refresh.
    Refresh,
}

/// A constraint: the command may not be issued before `until`, because of `cause`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Constraint {
    /// The first moment at which it no longer applies.
    pub until: Tick,
    /// The command that set it; `None` for the start of time or a refresh.
    pub cause: Option<Cause>,
    /// The part of the memory.
    pub part: Part,
}

impl Constraint {
    /// No constraint.
    pub const FREE: Self = Self::none(Part::Commands);

    const fn none(part: Part) -> Self {
        Self {
            until: 0,
            cause: None,
            part,
        }
    }

    fn raise(&mut self, until: Tick, cause: Cause) {
        // If both end at the same time, the earlier one is the cause: the later one made nothing worse.
        if until > self.until {
            self.until = until;
            self.cause = Some(cause);
        }
    }

    /// The one that ends later; if they end at the same time, the first.
    fn latest(self, other: Self) -> Self {
        if other.until > self.until {
            other
        } else {
            self
        }
    }
}

#[derive(Clone, Debug)]
struct Bank {
    open: Option<Open>,
    activate: Constraint,
    column: Constraint,
    precharge: Constraint,
}

/// An open row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Open {
    /// Its number.
    pub row: u64,
    /// The owner that opened it.
    pub by: Owner,
}

/// The banks of a channel, its buses and its refresh.
#[derive(Clone, Debug)]
pub struct Banks {
    timing: Timing,
    banks: Vec<Bank>,
    read: Constraint,
    write: Constraint,
    activate: Constraint,
    /// The last four activates, the oldest first.
    activates: [Constraint; 4],
    command: Constraint,
    refreshed: Constraint,
    /// What the last refresh had to wait for before it could close the banks.
    before: Constraint,
    due: Tick,
    refreshes: u64,
    /// The commands issued. For tests.
    #[cfg(test)]
    log: Vec<(Tick, Command)>,
    /// When refreshes closed the banks. For tests.
    #[cfg(test)]
    refreshed_at: Vec<Tick>,
}

impl Banks {
    /// All closed; the first refresh is due after one interval.
    pub fn new(timing: Timing, banks: u32) -> Self {
        let bank = |index| Bank {
            open: None,
            activate: Constraint::none(Part::Bank(index)),
            column: Constraint::none(Part::Bank(index)),
            precharge: Constraint::none(Part::Bank(index)),
        };
        Self {
            timing,
            banks: (0..banks).map(bank).collect(),
            read: Constraint::none(Part::Bus),
            write: Constraint::none(Part::Bus),
            activate: Constraint::none(Part::Activates),
            activates: [Constraint::none(Part::Activates); 4],
            command: Constraint::none(Part::Commands),
            refreshed: Constraint::none(Part::Refresh),
            before: Constraint::none(Part::Refresh),
            due: match timing.refresh_interval {
                0 => Tick::MAX,
                interval => interval,
            },
            refreshes: 0,
            #[cfg(test)]
            log: Vec::new(),
            #[cfg(test)]
            refreshed_at: Vec::new(),
        }
    }

    /// The number of banks.
    pub fn count(&self) -> u32 {
        self.banks.len() as u32
    }

    /// The open row of a bank.
    pub fn open(&self, bank: u32) -> Option<Open> {
        self.banks[bank as usize].open
    }

    /// When the next refresh is due; [`Tick::MAX`] without refresh.
    pub fn refresh_due(&self) -> Tick {
        self.due
    }

    /// Refreshes so far.
    pub fn refreshes(&self) -> u64 {
        self.refreshes
    }

    /// What the last refresh had to wait for.
    pub fn before_refresh(&self) -> Constraint {
        self.before
    }

    /// The constraint that delays a command longest.
    pub fn constraint(&self, command: Command) -> Constraint {
        let [first, others @ ..] = self.of_bank(command);
        let others = others.into_iter().chain(self.of_buses(command));
        others.fold(*first, |latest, one| latest.latest(*one))
    }

    /// When the last constraint of a command ends.
    pub fn allows(&self, command: Command) -> Tick {
        let buses = self.of_buses(command).map(|one| one.until);
        buses.into_iter().fold(self.bank_allows(command), Tick::max)
    }

    /// From when on only the buses keep a command from being issued.
    pub fn bank_allows(&self, command: Command) -> Tick {
        let bank = self.of_bank(command).map(|one| one.until);
        bank.into_iter().fold(0, Tick::max)
    }

    /// The constraints of the buses.
    fn of_buses(&self, command: Command) -> [&Constraint; 2] {
        let data = match command {
            Command::Column { write: true, .. } => &self.write,
            Command::Column { write: false, .. } => &self.read,
            Command::Activate { .. } | Command::Precharge { .. } => &Constraint::FREE,
        };
        [data, &self.command]
    }

    /// The constraints that hold a command back, apart from the buses. (A command that has fewer has one of them again.)
    fn of_bank(&self, command: Command) -> [&Constraint; 4] {
        match command {
            Command::Activate { bank, .. } => [
                &self.banks[bank as usize].activate,
                &self.activate,
                &self.activates[0],
                &self.refreshed,
            ],
            Command::Precharge { bank } => [&self.banks[bank as usize].precharge; 4],
            Command::Column { bank, .. } => [&self.banks[bank as usize].column; 4],
        }
    }

    /// Issues a command at `at`. Returns the end of the data of a column access.
    ///
    /// # Panics
    /// If the command is not allowed at that moment, which is an error in the policy.
    pub fn issue(&mut self, at: Tick, command: Command, cause: Cause) -> Option<Tick> {
        let constraint = self.constraint(command);
        assert!(
            at >= constraint.until,
            "{command:?} at {at} breaks {constraint:?}: {self:?}"
        );
        #[cfg(test)]
        self.log.push((at, command));
        let t = self.timing;
        self.command.raise(at + t.cycle, cause);
        match command {
            Command::Activate { bank, row } => {
                let bank = &mut self.banks[bank as usize];
                assert!(bank.open.is_none(), "{command:?} at {at}: {bank:?}");
                bank.open = Some(Open {
                    row,
                    by: cause.owner,
                });
                bank.column.raise(at + t.activate, cause);
                bank.precharge.raise(at + t.row_active, cause);
                self.activate.raise(at + t.activate_gap, cause);
                self.activates.rotate_left(1);
                self.activates[3] = Constraint {
                    until: at + t.four_activates,
                    cause: Some(cause),
                    part: Part::Activates,
                };
                None
            }
            Command::Precharge { bank } => {
                let bank = &mut self.banks[bank as usize];
                assert!(bank.open.is_some(), "{command:?} at {at}: {bank:?}");
                bank.open = None;
                bank.activate.raise(at + t.precharge, cause);
                None
            }
            Command::Column { bank, write, close } => {
                let bank = &mut self.banks[bank as usize];
                assert!(bank.open.is_some(), "{command:?} at {at}: {bank:?}");
                bank.precharge
                    .raise(at + t.column_to_precharge(write), cause);
                if close {
                    bank.open = None;
                    let closed = bank.precharge.until + t.precharge;
                    bank.activate.raise(closed, cause);
                }
                let (read, write_at, latency) = if write {
                    (t.write_then_read(), t.column_gap(), t.write_cas)
                } else {
                    (t.column_gap(), t.read_then_write(), t.cas)
                };
                self.read.raise(at + read, cause);
                self.write.raise(at + write_at, cause);
                Some(at + latency + t.burst)
            }
        }
    }

    /// The first moment at which a due refresh can begin to close the banks, because all of them may be precharged, and the command that it waits
    /// for. Closing them is work of the refresh.
    pub fn refresh_at(&self) -> Constraint {
        let due = Constraint {
            until: self.due,
            ..Constraint::none(Part::Refresh)
        };
        let at = due.latest(self.command).latest(self.refreshed);
        let open = self.banks.iter().filter(|bank| bank.open.is_some());
        open.fold(at, |at, bank| at.latest(bank.precharge))
    }

    /// Refreshes at `at`: closes all banks at once, waits until each is closed, and refreshes. Returns the end.
    ///
    /// # Panics
    /// If the refresh is not due, or a bank may not be closed yet, which is an error in the policy.
    pub fn refresh(&mut self, at: Tick) -> Tick {
        self.before = self.refresh_at();
        assert!(at >= self.before.until, "a refresh at {at}: {self:?}");
        #[cfg(test)]
        self.refreshed_at.push(at);
        let t = self.timing;
        let mut start = at;
        for bank in &mut self.banks {
            if bank.open.take().is_some() {
                bank.activate.until = at + t.precharge;
                bank.activate.cause = None;
            }
            start = start.max(bank.activate.until);
        }
        self.refreshed.until = start + t.refresh;
        self.command.until = self.command.until.max(at + t.cycle);
        self.due += t.refresh_interval;
        self.refreshes += 1;
        self.refreshed.until
    }
}

#[cfg(test)]
impl Banks {
    /// The commands issued.
    pub fn log(&self) -> &[(Tick, Command)] {
        &self.log
    }

    /// When refreshes closed the banks.
    pub fn refreshed_at(&self) -> &[Tick] {
        &self.refreshed_at
    }
}

#[cfg(test)]
#[path = "banks_tests.rs"]
pub mod tests;
