//! Whether the tick of an image is a millisecond on a platform.
//!
//! Why it exists: an image contains the counts of the timer in a tick, and no instruction tells a kernel how fast the timer counts; on the
//! wrong platform everything is too fast or too slow. The host knows both. What it deliberately does not know: the reason for another tick.

use bulkhead_abi::one_shot::system;
use bulkhead_model::platform::Platform;
use bulkhead_model::system::oneshot::TICK;
use bulkhead_model::units::Time;
use object::{Object as _, ObjectSection as _, ObjectSymbol as _};

/// The counts of the timer in a tick of an image of this kernel; none of another program.
pub fn counts(elf: &[u8]) -> Option<u64> {
    let file = object::File::parse(elf).ok()?;
    let mut symbols = file.symbols();
    let at = symbols.find(|one| one.name() == Ok("bulkhead_system"))?;
    // The first word of the constant.
    let mut sections = file.sections();
    let word = sections.find_map(|section| {
        section
            .data_range(at.address() + system::TIMER, 8)
            .ok()
            .flatten()
    })?;
    Some(u64::from_le_bytes(word.try_into().ok()?))
}

/// What is unusual about the tick of an image on a platform, in a sentence; nothing if it is a millisecond, or if the program is not an image of this kernel.
pub fn unusual(elf: &[u8], platform: &Platform) -> Option<String> {
    told(counts(elf)?, platform)
}

fn told(counts: u64, platform: &Platform) -> Option<String> {
    let timebase = u128::from(platform.timebase.0.max(1));
    let tick = (u128::from(counts) * 1_000_000_000_000).div_ceil(timebase);
    let tick = Time(u64::try_from(tick).unwrap_or(u64::MAX));
    let usual = (u128::from(TICK.0) * timebase) / 1_000_000_000_000;
    (tick != TICK).then(|| {
        format!(
            "a tick of this image has {counts} counts of the timer: {tick} on {}, where a tick of {TICK} has {usual}; all its times are in ticks, so it may have \
             been built for another platform",
            platform.name
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use bulkhead_model::{LoadOptions, load_platform};

    #[test]
    fn a_tick_of_another_platform_is_told() {
        let options = LoadOptions::default();
        let [single, mesh] = ["single", "epiphany3"]
            .map(|name| load_platform(name, &options).expect("it is in the catalog"));
        assert_eq!((told(10_000, &single), told(600_000, &mesh)), (None, None));
        let text = told(10_000, &mesh).expect("it is unusual");
        assert!(
            text.contains("10000 counts of the timer") && text.contains("on epiphany3"),
            "{text}"
        );
        assert!(text.contains("a tick of 1ms has 600000"), "{text}");
        assert_eq!(counts(b"no program"), None);
    }
}
