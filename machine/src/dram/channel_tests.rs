//! The plain choice of a command, with which every choice of a channel in this crate's tests is compared.

use super::*;

/// The command that can be issued first, columns before rows, and the oldest of those, among all visible segments.
pub(super) fn choose_plainly(
    channel: &Channel,
    config: &ControllerConfig,
) -> Option<(Tick, Choice)> {
    let active = channel.active(config);
    let passed = channel.passed[usize::from(channel.draining)];
    // From here on, only the data bus holds the oldest segment back.
    let free = active.first().map(|first| {
        let command = next_command(&channel.banks, first, false);
        (
            first.bank,
            channel.banks.bank_allows(command).max(first.ready),
        )
    });
    let mut best: Option<((Tick, bool, usize), Choice)> = None;
    for (k, segment) in active.iter().enumerate() {
        let oldest = active[..k].iter().all(|s| s.bank != segment.bank);
        let open = channel.banks.open(segment.bank).map(|open| open.row);
        let hits = |s: &&Segment| s.bank == segment.bank && open == Some(s.row);
        let wanted = active.iter().filter(hits).count();
        let close = config.closed_page && segment.bursts == 1 && wanted == 1;
        let command = next_command(&channel.banks, segment, close);
        let column = matches!(command, Command::Column { .. });
        let until = channel.banks.constraint(command).until;
        let at = until.max(segment.ready).max(channel.floor);
        let passes =
            column && k > 0 && free.is_some_and(|(bank, from)| segment.bank == bank || at >= from);
        let allowed = match config.policy {
            Policy::FirstReady { cap } => {
                let spent = passed >= cap;
                match command {
                    Command::Column { .. } => !(passes && spent),
                    Command::Activate { .. } => oldest,
                    Command::Precharge { .. } => oldest && (wanted == 0 || (k == 0 && spent)),
                }
            }
            Policy::Fcfs | Policy::Slots => oldest && (k == 0 || !column),
        };
        if !allowed {
            continue;
        }
        let key = (at, !column, k);
        if best.is_none_or(|(least, _)| key < least) {
            let choice = Choice::Command {
                segment: k,
                command,
                passes,
            };
            best = Some((key, choice));
        }
    }
    best.map(|((at, ..), choice)| (at, choice))
}
