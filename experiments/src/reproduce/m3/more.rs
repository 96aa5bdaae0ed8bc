//! Figures 3 and 6 as text and as parts of the page.
//!
//! What it deliberately does not know: how they were measured.

use super::Reproduced;
use super::beside::Beside;
use super::defences::footnote;
use super::pipelines::ALL;
use super::priorities::Priorities;
use super::waiting::{METHODS, Waiting};
use bulkhead_report::page::picture;
use bulkhead_report::plot::{Axes, Bar, Mark, Series, bars, chart};
use bulkhead_report::table::{plain, render};
use bulkhead_runner::error::Error;
use maud::{Markup, html};
use std::fmt::Write;

fn milliseconds(microseconds: f64) -> String {
    format!("{:.3}", microseconds / 1000.0)
}

fn low(one: &Priorities) -> String {
    one.low.map_or("-".to_owned(), milliseconds)
}

fn bound(one: &Beside) -> String {
    one.most().map_or("none".to_owned(), milliseconds)
}

fn bounds<'a>(all: &[&'a Priorities]) -> impl Iterator<Item = &'a Beside> {
    // A single client has no low-priority clients beside it.
    let low = |one: &Priorities| one.low.is_some();
    let lows = all
        .iter()
        .filter(move |one| low(one))
        .map(|one| &one.low_bound);
    let others = all
        .iter()
        .flat_map(|one| [&one.plain_bound, &one.high_bound]);
    others.chain(lows)
}

/// Figure 3 by platform.
fn by_platform(all: &Reproduced) -> Vec<(&'static str, Vec<&Priorities>)> {
    let of = |platform| {
        let list = all.priorities.iter();
        list.filter(move |one| one.platform == platform).collect()
    };
    let platforms = ALL.map(|platform| (platform, of(platform)));
    let platforms = platforms.into_iter();
    platforms
        .filter(|(_, list): &(_, Vec<_>)| !list.is_empty())
        .collect()
}

fn low_bound(one: &Priorities) -> String {
    one.low.map_or("-".to_owned(), |_| bound(&one.low_bound))
}

fn way(method: &str) -> &str {
    match method {
        "sleep" => "sleep command",
        "syscall" => "system call and wfi",
        "poll" => "polling",
        other => other,
    }
}

fn suspend(one: &Waiting) -> String {
    one.suspend
        .map_or("never".to_owned(), |cycles| format!("{cycles:.0}"))
}

/// For the terminal.
pub fn summary(all: &Reproduced) -> String {
    let mut out = String::new();
    for (platform, list) in by_platform(all) {
        let mut table = plain(&[
            "clients",
            "without priorities",
            "bound",
            "low",
            "bound",
            "high",
            "bound",
        ]);
        for one in &list {
            table.add_row(vec![
                one.clients.to_string(),
                milliseconds(one.plain),
                bound(&one.plain_bound),
                low(one),
                low_bound(one),
                milliseconds(one.high),
                bound(&one.high_bound),
            ]);
        }
        let _ = writeln!(
            out,
            "Figure 3, {platform}: worst request latency in ms; the server needs 1 ms for each request\n{}",
            render(&table)
        );
        if let Some(note) = footnote(bounds(&list)) {
            let _ = writeln!(out, "{note}\n");
        }
    }
    if !all.waiting.is_empty() {
        let mut table = plain(&[
            "name", "way", "suspend", "wake", "worst", "bound", "clocked",
        ]);
        for one in &all.waiting {
            table.add_row(vec![
                one.platform.clone(),
                way(&one.method).to_owned(),
                suspend(one),
                format!("{:.0}", one.wake),
                one.wake_worst.to_string(),
                one.bound.text(0),
                format!("{:.2} %", one.clocked),
            ]);
        }
        let _ = writeln!(
            out,
            "Figure 6: waiting for a message, mean cycles until asleep and from its arrival until it is in hand; \
             clocked cycles while waiting\n{}",
            render(&table)
        );
        if let Some(note) = footnote(all.waiting.iter().map(|one| &one.bound)) {
            let _ = writeln!(out, "{note}\n");
        }
    }
    out
}

/// For the page.
pub fn sections(all: &Reproduced) -> Result<Vec<Markup>, Error> {
    let mut sections = Vec::new();
    for (platform, list) in by_platform(all) {
        sections.push(priorities(platform, &list)?);
    }
    for platform in ALL {
        let list: Vec<&Waiting> = all
            .waiting
            .iter()
            .filter(|w| w.platform == platform)
            .collect();
        if !list.is_empty() {
            sections.push(waiting(platform, &list)?);
        }
    }
    Ok(sections)
}

fn priorities(platform: &str, all: &[&Priorities]) -> Result<Markup, Error> {
    let series = |name: &str, value: &dyn Fn(&Priorities) -> Option<f64>| Series {
        name: name.to_owned(),
        points: all
            .iter()
            .filter_map(|&one| Some((one.clients as f64, value(one)? / 1000.0)))
            .collect(),
    };
    let lines = [
        series("without priorities", &|one| Some(one.plain)),
        series("low priority", &|one| one.low),
        series("high priority", &|one| Some(one.high)),
    ];
    let axes = Axes {
        x: "clients",
        y: "worst request latency in ms",
        levels: vec![("paper, high priority".to_owned(), 2.0)],
        ..Axes::default()
    };
    Ok(html! {
        h2 { "Figure 3, " (platform) ": a receive gate for each priority" }
        div.scroll { table {
            tr { th { "clients" } th { "without priorities" } th { "bound" } th { "low" } th { "bound" } th { "high" } th { "bound" } }
            @for one in all {
                tr { td { (one.clients) } td { (milliseconds(one.plain)) } td.soft { (bound(&one.plain_bound)) } td { (low(one)) } td.soft { (low_bound(one)) } td { (milliseconds(one.high)) } td.soft { (bound(&one.high_bound)) } }
            }
        } }
        p.soft { "Worst request latency in ms on " (platform) ". The server needs 1 ms for each request and looks at the gate of the \
            first client first; a request that it has begun is not interrupted. " (footnote(bounds(all)).unwrap_or_default()) }
        (picture(chart(&axes, &lines, Mark::Line)?))
    })
}

fn waiting(platform: &str, list: &[&Waiting]) -> Result<Markup, Error> {
    let parts = ["until asleep".to_owned(), "from message to hand".to_owned()];
    let rows: Vec<Bar> = METHODS
        .iter()
        .filter_map(|method| list.iter().find(|one| one.method == *method))
        .map(|one| Bar {
            name: way(&one.method).to_owned(),
            parts: vec![one.suspend.unwrap_or(f64::NAN), one.wake],
        })
        .collect();
    let svg = bars("cycles", &parts, &rows, false)?;
    Ok(html! {
        h2 { "Figure 6: falling asleep and waking up, " (platform) }
        div.scroll { table {
            tr { th.text { "way" } th { "until asleep" } th { "from message to hand" } th { "worst" } th { "bound" } th { "clocked while waiting" } }
            @for one in list {
                tr { td.text { (way(&one.method)) } td { (suspend(one)) } td { (format!("{:.0}", one.wake)) } td { (one.wake_worst) } td.soft { (one.bound.text(0)) } td { (format!("{:.2} %", one.clocked)) } }
            }
        } }
        p.soft { "Mean cycles of 100 runs after 20 warm-up runs. A message comes 100 µs after the last answer. " (footnote(list.iter().map(|one| &one.bound)).unwrap_or_default()) }
        (picture(svg))
    })
}

/// Nothing reproduced yet, for tests.
#[cfg(test)]
pub fn empty() -> Reproduced {
    Reproduced {
        source: "the paper".to_owned(),
        round_trips: vec![],
        others: vec![],
        priorities: vec![],
        unregulated: vec![],
        regulated: vec![],
        sweep: vec![],
        waiting: vec![],
        attacks: vec![],
        regulation: vec![],
        claims: vec![],
        explanations: vec![],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reproduce::m3::{priorities, waiting};

    fn sample() -> Reproduced {
        let one = |clients, plain, low, high| Priorities {
            platform: "tiled-star".to_owned(),
            clients,
            published: clients as f64,
            plain,
            high,
            low,
            plain_bound: Beside::AtMost(1100.0 * clients as f64),
            high_bound: Beside::AtMost(2200.0),
            low_bound: Beside::None("a client may keep it out".to_owned()),
        };
        let way = |method: &str, suspend, wake, clocked| Waiting {
            platform: "tiled-2ghz".to_owned(),
            method: method.to_owned(),
            suspend,
            wake,
            wake_worst: 70,
            bound: Beside::None("no execution time is known".to_owned()),
            clocked,
        };
        let priorities = vec![
            one(1, 1000.0, None, 1000.0),
            one(2, 2000.0, Some(2000.0), 2000.0),
            one(3, 3000.0, Some(4000.0), 2011.0),
        ];
        let waiting = vec![
            way("sleep", Some(17.0), 35.0, 0.03),
            way("syscall", Some(565.0), 691.0, 0.63),
            way("poll", None, 67.0, 100.0),
        ];
        let mut claims = priorities::claims(&priorities, 1000.0, 2000.0);
        claims.extend(waiting::claims(&waiting));
        Reproduced {
            priorities,
            waiting,
            claims,
            ..empty()
        }
    }

    #[test]
    fn the_text_says_what_was_measured() {
        insta::assert_snapshot!(summary(&sample()));
    }

    #[test]
    fn claims_are_judged() {
        let sample = sample();
        let failed: Vec<&str> = sample
            .claims
            .iter()
            .filter(|claim| !claim.held)
            .map(|claim| claim.what.as_str())
            .collect();
        assert_eq!(
            failed,
            ["high priority beside 2 others: 2.011 ms at worst, at most 2 ms in the paper"]
        );
        assert_eq!(sections(&sample).expect("draws").len(), 2);
    }
}
