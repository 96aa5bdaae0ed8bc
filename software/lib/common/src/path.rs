//! Paths: to which of several places a name belongs.
//!
//! Why it exists: it is pure and tested on the host. What it deliberately does not know: the places' contents.

/// The longest of `places` (without slashes at their ends) that `name` begins with, by whole parts: its index, and the rest of the name.
pub fn longest<'p, 'n>(
    places: impl Iterator<Item = &'p str>,
    name: &'n str,
) -> Option<(usize, &'n str)> {
    let name = name.trim_start_matches('/');
    let rest = |place: &str| match (place, name.strip_prefix(place)?) {
        ("", rest) => Some(rest),
        (_, "") => Some(""),
        (_, rest) => rest.strip_prefix('/'),
    };
    let found = places.enumerate().filter_map(|(index, place)| {
        let rest = rest(place)?;
        Some((place.len(), index, rest))
    });
    let (_, index, rest) = found.max_by_key(|(length, ..)| *length)?;
    Some((index, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_parts_and_the_longest() {
        let places = ["", "maps", "maps/old"];
        let find = |name| longest(places.into_iter(), name);
        assert_eq!(find("/maps/town"), Some((1, "town")));
        assert_eq!(find("maps/old/town/a"), Some((2, "town/a")));
        assert_eq!(find("/mapsize"), Some((0, "mapsize")));
        assert_eq!(find("/maps"), Some((1, "")));
        assert_eq!(find("/maps/older"), Some((1, "older")));
        assert_eq!(find("/"), Some((0, "")));
        assert_eq!(longest(["maps"].into_iter(), "/other"), None);
        assert_eq!(longest([].into_iter(), "/other"), None);
    }
}
