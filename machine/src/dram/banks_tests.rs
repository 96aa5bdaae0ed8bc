//! The banks against the standard's distances, pair by pair.

use super::*;

/// DDR3-1600 in cycles of 1 tick: tCL 11, tCWL 8, tRCD 11, tRP 11, tRAS 28, tRTP 6, tWR 12, tCCD 4, tRRD 5, tFAW 24, tWTR 6, gap 2.
pub fn ddr3() -> Timing {
    Timing {
        cycle: 1,
        burst: 4,
        cas: 11,
        write_cas: 8,
        activate: 11,
        precharge: 11,
        row_active: 28,
        read_to_precharge: 6,
        write_recovery: 12,
        column: 4,
        activate_gap: 5,
        four_activates: 24,
        write_to_read: 6,
        read_to_write: 2,
        refresh_interval: 0,
        refresh: 128,
    }
}

const A: Cause = Cause {
    owner: Owner::new(0, 0),
    request: 1,
};
const B: Cause = Cause {
    owner: Owner::new(1, 0),
    request: 2,
};

fn open(bank: u32) -> Command {
    Command::Activate { bank, row: 0 }
}

fn column(bank: u32, write: bool) -> Command {
    let close = false;
    Command::Column { bank, write, close }
}

/// The first moment for `second` if `first` was issued at 1000, with both banks' rows opened or closed long before.
fn distance(first: Command, second: Command) -> Tick {
    let mut banks = Banks::new(ddr3(), 8);
    let opened = |c: Command| match c {
        Command::Activate { .. } => None,
        Command::Precharge { bank } | Command::Column { bank, .. } => Some(bank),
    };
    let mut at = 0;
    for bank in [opened(first), opened(second)].into_iter().flatten() {
        // A bank that `first` opens is not opened beforehand.
        if first != open(bank) && banks.open(bank).is_none() {
            banks.issue(at, open(bank), B);
            at += 100;
        }
    }
    banks.issue(1000, first, A);
    let constraint = banks.constraint(second);
    if constraint.until > 1000 {
        assert_eq!(constraint.cause, Some(A));
    }
    constraint.until.saturating_sub(1000)
}

#[test]
fn distances_are_those_of_the_standard() {
    let close = |bank| Command::Precharge { bank };
    // Same bank.
    assert_eq!(distance(open(0), column(0, false)), 11, "tRCD");
    assert_eq!(distance(open(0), close(0)), 28, "tRAS");
    assert_eq!(distance(close(0), open(0)), 11, "tRP");
    assert_eq!(distance(column(0, false), close(0)), 6, "tRTP");
    assert_eq!(
        distance(column(0, true), close(0)),
        8 + 4 + 12,
        "tCWL + burst + tWR"
    );
    // Any bank.
    for bank in [0, 1] {
        assert_eq!(distance(column(0, false), column(bank, false)), 4, "tCCD");
        assert_eq!(distance(column(0, true), column(bank, true)), 4, "tCCD");
        assert_eq!(
            distance(column(0, true), column(bank, false)),
            8 + 4 + 6,
            "tCWL + burst + tWTR"
        );
        assert_eq!(
            distance(column(0, false), column(bank, true)),
            11 + 4 + 2 - 8,
            "tCL + burst + gap - tCWL"
        );
    }
    assert_eq!(distance(open(0), open(1)), 5, "tRRD");
    assert_eq!(
        distance(open(0), column(1, false)),
        1,
        "one command a cycle"
    );
}

#[test]
fn four_activates_fill_their_window() {
    let mut banks = Banks::new(ddr3(), 8);
    for bank in 0..4 {
        assert_eq!(banks.constraint(open(bank)).until, Tick::from(bank) * 5);
        banks.issue(Tick::from(bank) * 5, open(bank), A);
    }
    // tRRD alone would allow 20; the first of the four was at 0.
    let constraint = banks.constraint(open(4));
    assert_eq!((constraint.until, constraint.part), (24, Part::Activates));
}

#[test]
fn a_bank_that_closes_itself_waits_for_the_row_and_the_data() {
    let mut banks = Banks::new(ddr3(), 8);
    banks.issue(0, open(0), A);
    let close = true;
    let access = |write| Command::Column {
        bank: 0,
        write,
        close,
    };
    // Read at 11: tRTP until 17, tRAS until 28; closed at 39.
    assert_eq!(banks.issue(11, access(false), A), Some(11 + 11 + 4));
    assert_eq!(banks.constraint(open(0)).until, 28 + 11);
    banks.issue(39, open(0), A);
    // Write at 50: data until 62, tWR until 74; closed at 85.
    assert_eq!(banks.issue(50, access(true), A), Some(50 + 8 + 4));
    assert_eq!(banks.constraint(open(0)).until, 74 + 11);
}

#[test]
fn a_refresh_closes_all_banks_first() {
    let timing = Timing {
        refresh_interval: 1000,
        ..ddr3()
    };
    let mut banks = Banks::new(timing, 8);
    banks.issue(990, open(0), A);
    // Due at 1000; tRAS until 1018, closed at 1029, refreshed until 1157.
    assert_eq!(banks.refresh_at().until, 1018);
    assert_eq!(banks.refresh(1018), 1029 + 128);
    let constraint = banks.constraint(open(3));
    assert_eq!((constraint.until, constraint.cause), (1157, None));
    assert_eq!((banks.refresh_due(), banks.refreshes()), (2000, 1));
    assert_eq!(banks.open(0), None);
}

#[test]
#[should_panic(expected = "breaks")]
fn a_command_that_is_too_early_is_an_error_of_the_machine() {
    let mut banks = Banks::new(ddr3(), 8);
    banks.issue(0, open(0), A);
    banks.issue(10, column(0, false), A);
}
