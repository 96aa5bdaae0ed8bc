//! What a run left behind, for its readers.
//!
//! Why it exists: paradigms, results and experiments read the same observations. What it deliberately does not know: how a chip was
//! run, and what follows from what it saw.

use crate::measure::MarkerEvent;
use crate::watch::Log;
use bulkhead_machine::crash::{Crashed, Running};
use bulkhead_machine::device::network::CardCounters;
pub use bulkhead_machine::image::is_plain;
use bulkhead_machine::ledger::Ledger;
use bulkhead_machine::local_tile::{Prospect, Refusals, Started};
use bulkhead_machine::machine::{Machine, MachineError, Outcome};
use bulkhead_machine::noc::Transaction;
use bulkhead_machine::observe::Missing;
use bulkhead_machine::statistics::Statistics;
use bulkhead_machine::types::Owner;
use bulkhead_model::System;
use bulkhead_report::result::Incident;
use std::collections::BTreeMap;

/// What a console printed, as text. Programs may write anything: characters that do not print (separators of lines and paragraphs,
/// changes of direction, other controls and formats) are written as `\u{202e}`, so no text hides or moves its surroundings.
pub fn console_text(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for c in String::from_utf8_lossy(bytes).chars() {
        match c {
            ' '..='~' | '\n' | '\t' => text.push(c),
            // A combining mark prints with the letter before it, but not by itself.
            _ if c.is_control() || format!("a{c}").escape_debug().count() > 2 => {
                text.extend(c.escape_unicode());
            }
            _ => text.push(c),
        }
    }
    text
}

/// What a tile printed, as text. If the host did not keep all of it, the last line says so.
///
/// # Errors
/// If there is no such tile.
pub fn printed(machine: &Machine, tile: u16) -> Result<String, MachineError> {
    let kept = machine.console(tile)?;
    let text = console_text(kept);
    Ok(cut(text, kept.len(), machine.console_lost(tile)?))
}

fn cut(mut text: String, kept: usize, lost: u64) -> String {
    if lost > 0 {
        if !text.ends_with('\n') {
            text.push('\n');
        }
        text += &format!(
            "[the host keeps the first {kept} bytes of this console; {lost} more were printed]\n"
        );
    }
    text
}

/// The console of both chips.
pub fn console(system: &System, own: String, other: Option<&OtherSeen>) -> String {
    match (&system.peer, other) {
        (Some(peer), Some(seen)) => {
            format!("{own}--- {} ---\n{}", peer.name, seen.observed.console)
        }
        _ => own,
    }
}

/// Transactions of each owner in one slice of time.
pub type Counts = BTreeMap<(Owner, Transaction), u64>;

/// What happened.
pub struct Observed {
    /// Why the run ended.
    pub outcome: Outcome,
    /// The hart that ended the run, if one did: its tile, and its position there as the activity.
    pub ended_by: Option<Owner>,
    /// Registers and stack of the hart whose trap ended the run.
    pub trapped: Option<Crashed>,
    /// When it ended, in ticks.
    pub ticks: u64,
    /// Every marker that was kept.
    pub markers: Vec<MarkerEvent>,
    /// Markers that somebody forged are not among them; this tells of them.
    pub forged: Vec<Incident>,
    /// Tiles with more markers than are kept, and how many of each were dropped.
    pub unkept: Vec<(u16, u64)>,
    /// Registers and stacks of programs that crashed.
    pub crashes: Vec<Crashed>,
    /// The activities that were in user mode when the run ended.
    pub running: Vec<Running>,
    /// Victims and culprits of all waits.
    pub ledger: Ledger,
    /// Counters.
    pub statistics: Statistics,
    /// How often each hart of a cluster has reserved a line.
    pub reservations: Vec<(Owner, u64)>,
    /// Bytes that each link carried, by owner and number of the link.
    pub carried: Vec<Vec<(Owner, u64)>>,
    /// For each doorbell rung by another tile: the tile rung, the tile that rang, and how often.
    pub rings: Vec<(u16, u16, u64)>,
    /// Harts that a tile of the chip started by a write.
    pub starts: Vec<Started>,
    /// What may still happen on each hart of a mesh after the end of the run.
    pub prospects: Vec<Prospect>,
    /// SHA-256 over all of it.
    pub digest: String,
    /// What the kernel's tile printed.
    pub console: String,
    /// The tile of that console, and the bytes that it printed and the host did not keep, if the console says what happened on the chip.
    pub unread: Option<(u16, u64)>,
    /// The trace, if requested.
    pub trace: Option<Vec<u8>>,
    /// What had no room in the trace.
    pub missing: Missing,
    /// What the second chip has done, if there is one.
    pub other: Option<OtherSeen>,
    /// What the network cards of this chip counted, by tile.
    pub network_cards: Vec<(u16, CardCounters)>,
    /// What the guards of local memories refused: the tile with the guard, and what it refused to another tile.
    pub refused: Vec<(u16, Refusals)>,
    /// Transactions in each slice, if slices were requested: start of the slice in ticks, and counts.
    pub slices: Vec<(u64, Counts)>,
    /// When harts were awake, if transactions were kept.
    pub log: Option<Log>,
}

/// What a second chip has done.
pub struct OtherSeen {
    /// The same as for the first chip; `Limit` if it was still running.
    pub observed: Box<Observed>,
    /// How it ended; `None` if it was still running.
    pub outcome: Option<Outcome>,
}

/// Every marker of a run.
pub fn markers(machine: &Machine) -> Vec<MarkerEvent> {
    machine
        .markers()
        .into_iter()
        .map(|marker| MarkerEvent {
            at: marker.tick,
            tile: marker.tile,
            activity: marker.activity,
            kind: marker.kind,
            value: marker.value,
            pc: marker.pc,
        })
        .collect()
}

pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(crate) fn counts(ledger: &Ledger) -> Counts {
    ledger
        .latencies()
        .into_iter()
        .map(|latency| ((latency.owner, latency.transaction), latency.total.count()))
        .collect()
}

pub(crate) fn difference(before: &Counts, now: &Counts) -> Counts {
    now.iter()
        .map(|(key, count)| (*key, count - before.get(key).copied().unwrap_or(0)))
        .filter(|(_, count)| *count > 0)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_console_that_was_cut_says_so() {
        let said = |lost| cut("hel".to_owned(), 3, lost);
        assert_eq!(said(0), "hel");
        assert_eq!(
            said(2),
            "hel\n[the host keeps the first 3 bytes of this console; 2 more were printed]\n"
        );
    }

    #[test]
    fn slices_count_what_is_new() {
        let key = (Owner::new(1, 1), Transaction::CacheRead);
        let before = Counts::from([(key, 3)]);
        let now = Counts::from([(key, 5), ((Owner::new(2, 1), Transaction::Message), 1)]);
        let new = difference(&before, &now);
        assert_eq!(new.get(&key), Some(&2));
        assert_eq!(new.len(), 2);
    }

    #[test]
    fn what_does_not_print_is_escaped() {
        for plain in [
            "[a] x\n\t~",
            "Grüße, 400\u{b5}s, e\u{301}, \"\\'",
            "\u{65e5}\u{672c}",
        ] {
            assert_eq!(console_text(plain.as_bytes()), plain);
        }
        for (hostile, text) in [
            ("a\u{2028}b", "a\\u{2028}b"),
            ("\u{2029}", "\\u{2029}"),
            ("\u{202e}cba\u{2069}", "\\u{202e}cba\\u{2069}"),
            ("\u{200b}\u{feff}\u{ad}", "\\u{200b}\\u{feff}\\u{ad}"),
            ("\u{1b}[1m\r\u{85}", "\\u{1b}[1m\\u{d}\\u{85}"),
        ] {
            assert_eq!(console_text(hostile.as_bytes()), text);
        }
    }
}
