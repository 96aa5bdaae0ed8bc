//! A tile for the children of a hostile manager: the first one that it can use.

use crate::window::show;
use bulkhead_lib::println;

/// The first tile to which memory can be made visible; it is visible there afterwards. Prints a
/// line if there is none.
pub fn tile(window: u16) -> Option<u16> {
    let mut places = (0..16).flat_map(|tile| (0..16).map(move |memory| (tile, memory)));
    let found = places.find(|(tile, memory)| show(*tile, *memory, window));
    if found.is_none() {
        println!("no tile");
    }
    found.map(|(tile, _)| tile)
}
