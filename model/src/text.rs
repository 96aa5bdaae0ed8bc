//! Small pieces of English for messages: lists of alternatives and "did you mean".
//!
//! Why it exists: every message about an unknown name should offer the known ones, in one style. What it
//! deliberately does not know: what the names mean.

/// `a`, `a or b`, `a, b or c`.
pub fn alternatives(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [init @ .., last] => format!("{} or {last}", init.join(", ")),
    }
}

/// The known name most similar to `wrong`, if any is similar.
pub fn closest<'a>(wrong: &str, known: &[&'a str]) -> Option<&'a str> {
    // The comparison takes the product of both lengths. A similar name has at most 3 (n + 1) / 2 characters of up to 4 bytes, if the known
    // one has n.
    let longest = known.iter().map(|name| name.len()).max().unwrap_or(0);
    if wrong.len() > 16 * longest {
        return None;
    }
    known
        .iter()
        .map(|name| (strsim::damerau_levenshtein(wrong, name), *name))
        .filter(|(distance, name)| {
            *distance <= name.chars().count().max(wrong.chars().count()) / 3 + 1
                && *distance < name.chars().count()
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// Help for an unknown name: "did you mean `x`?", followed by the known names.
pub fn suggestion(wrong: &str, known: &[&str], noun: &str) -> String {
    const SHOWN: usize = 16;
    let mut help = String::new();
    if let Some(name) = closest(wrong, known) {
        help = format!("did you mean `{name}`? ");
    }
    if known.is_empty() {
        return format!("{help}there is no {noun} here");
    }
    let more = if known.len() > SHOWN {
        format!(" and {} more", known.len() - SHOWN)
    } else {
        String::new()
    };
    help + &format!(
        "known: {}{more}",
        known[..known.len().min(SHOWN)].join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offers_what_is_like_it() {
        assert_eq!(
            closest("contoller", &["sensor", "controller"]),
            Some("controller")
        );
        assert_eq!(closest("teh", &["the", "other"]), Some("the"));
        assert_eq!(closest("x", &["y", "controller"]), None);
        // This takes no time.
        assert_eq!(closest(&"e".repeat(10_000_000), &["the"; 1000]), None);
        assert_eq!(
            suggestion("hug", &["hog", "log"], "app"),
            "did you mean `hog`? known: hog, log"
        );
        assert_eq!(suggestion("q", &[], "app"), "there is no app here");
        assert_eq!(alternatives(&["a", "b", "c"]), "a, b or c");
    }
}
