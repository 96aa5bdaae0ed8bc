//! Figure of a chain beside loads as heavy as those of hercules-18: all other harts copy, their caches fetch ahead, and an accelerator fills
//! memory.
//!
//! Why it exists: the paper's chip has prefetchers that are on, and an accelerator; the platform has them, but off and idle, so that other
//! figures stay those of before. What it deliberately does not know: see the parent module.
//!
//! Fixed before the first run. The load is that of the paper's Section III-C: all harts copy as in the figure `beside-all` (4 MiB on `tx2`), and
//! the last one also starts its accelerator, which fills as many bytes again and again, as the paper's memset does. Every prefetcher of the
//! platform is on, with the parameters of its file. The paper has two chains, random and in order; each is a figure.

use super::{Chip, Draft, KIB, Part, Run, Unit, chase};
use bulkhead_model::platform::{Cache, PeripheralKind, PrefetcherKind};
use bulkhead_report::measure::Figure;

/// The program that copies beside its accelerator.
const FILLER: &str = "devices/filler";

/// How a chain leads through its lines.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Order {
    Random,
    /// In the order of memory.
    Forward,
}

impl Chip<'_> {
    /// The settings that switch on each prefetcher of the platform that is off.
    pub(super) fn prefetchers(&self) -> Vec<String> {
        let tiles = self.platform.tiles.iter();
        let caches = tiles.flat_map(|tile| tile.l1d.iter().chain(&tile.l2));
        let is_off = |cache: &&Cache| {
            let kind = cache.prefetcher.as_ref().map(|one| one.kind);
            kind == Some(PrefetcherKind::Off)
        };
        let names = caches.filter(is_off).map(|cache| &*cache.name);
        // Several tiles may have the same cache.
        let names: std::collections::BTreeSet<&str> = names.collect();
        let setting = |name| format!("cache[{name}]/prefetcher@kind=stream");
        names.into_iter().map(setting).collect()
    }

    /// The last of some rivals also keeps the platform's accelerator busy, if there is one.
    fn with_accelerator(&self, mut rivals: Vec<Part>) -> Option<Vec<Part>> {
        let is_one = |kind| matches!(kind, PeripheralKind::Accelerator { .. });
        let all = self.platform.peripherals.iter();
        let accelerator = all.into_iter().find(|one| is_one(one.kind))?;
        let last = rivals.last_mut()?;
        last.program = Some(FILLER);
        last.arguments = vec![
            ("bytes", last.bytes.to_string()),
            ("fill", last.bytes.to_string()),
            ("device", accelerator.name.clone()),
        ];
        last.bytes *= 2;
        last.attached = Some(accelerator.name.clone());
        Some(rivals)
    }

    /// How much longer a load takes beside all other harts, without prefetchers, with them, and with an accelerator, too.
    pub(super) fn slowdown(&self, order: Order) -> Option<Draft> {
        let settings = self.prefetchers();
        if self.platform.tiles.len() < 2 || settings.is_empty() {
            return None;
        }
        let rivals = self.all_others();
        let most = (2 * self.last).min(self.largest);
        // Every other power of two, from below the first level to above the second one.
        let sizes = (0..20).map(|power| (4u64 << 10) << (2 * power));
        let sizes: Vec<u64> = sizes.take_while(|bytes| *bytes <= most).collect();
        let curve = |name: &str, others: &[Part], settings: &[String]| {
            let runs = sizes.iter().map(|&bytes| {
                let mut chain = chase(bytes, self.stride, self.loads);
                if order == Order::Forward {
                    chain.arguments.push(("order", "forward".to_owned()));
                }
                let alone = vec![chain];
                Run {
                    parts: [&alone[..], others].concat(),
                    against: alone,
                    settings: settings.to_vec(),
                    unit: Unit::Relative,
                    x: bytes as f64 / KIB,
                    closed: None,
                }
            });
            (name.to_owned(), runs.collect())
        };
        let mut curves = vec![
            curve("prefetchers off", &rivals, &[]),
            curve("prefetchers on", &rivals, &settings),
        ];
        if let Some(rivals) = self.with_accelerator(rivals.clone()) {
            curves.push(curve("and an accelerator", &rivals, &settings));
        }
        let (id, title, chain) = match order {
            Order::Random => (
                "slowdown",
                "Latency beside all other harts, prefetchers and an accelerator, relative to that alone",
                "in random order",
            ),
            Order::Forward => (
                "slowdown-in-order",
                "The same, in the order of memory",
                "in the order of memory",
            ),
        };
        Some(Draft {
            figure: Figure {
                id: id.to_owned(),
                title: title.to_owned(),
                about: format!(
                    "One chain of loads {chain} beside the {} other harts, each of which copies twice the last cache of its tile, divided by the same chain alone on the same platform. On: {}.",
                    rivals.len(),
                    settings.join(", ")
                ),
                x: "working set in KiB".to_owned(),
                y: "times as long as alone".to_owned(),
                log_x: true,
                sizes: self.caches(),
                ..Figure::default()
            },
            curves,
        })
    }
}
