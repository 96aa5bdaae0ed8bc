//! Attacks that the user selects by name.
//!
//! Why it exists: a whole audit tries dozens of attacks, and a developer who works on one finding repeats the attack that found it. What it
//! deliberately does not know: paradigms, and what an attack does. A domain that was attacked by a selection is never called held.

use super::Options;
use bulkhead_runner::error::Error;

impl Options {
    /// Random attacks on each domain: none beside selected ones.
    pub(super) fn drawn(&self) -> u32 {
        match self.attacks.is_empty() {
            true => self.searches,
            false => 0,
        }
    }

    /// Keeps the attacks on a domain whose names contain a selected text, if there is a selection; then the answer says why the domain
    /// cannot be judged by them.
    ///
    /// # Errors
    /// No name contains one of the texts.
    pub(super) fn choose<T>(
        &self,
        domain: &str,
        attacks: &mut Vec<T>,
        name: impl Fn(&T) -> &str,
    ) -> Result<Option<String>, Error> {
        // A domain that nobody can attack has no attacks to select from: that is why it is not judged.
        if self.attacks.is_empty() || attacks.is_empty() {
            return Ok(None);
        }
        let all = attacks.len();
        let contains = |attack: &T, text: &String| name(attack).contains(text.as_str());
        for text in &self.attacks {
            if !attacks.iter().any(|attack| contains(attack, text)) {
                let mut names: Vec<&str> = attacks.iter().map(&name).collect();
                names.sort_unstable();
                names.dedup();
                return Err(Error::input(
                    format!("no attack on the domain {domain} has `{text}` in its name"),
                    format!("its attacks are {}", names.join(", ")),
                ));
            }
        }
        attacks.retain(|attack| self.attacks.iter().any(|text| contains(attack, text)));
        let tried = attacks.len();
        Ok((tried < all).then(|| format!("only {tried} of {all} attacks were tried, as selected")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selected(texts: &[&str]) -> Options {
        let mut options = Options::new("quickstart");
        options.attacks = texts.iter().map(|&text| text.to_owned()).collect();
        options
    }

    #[test]
    fn a_selection_keeps_names_in_their_order_and_says_what_is_missing() {
        let all = ["frames a", "memory writes", "frames b"];
        let mut attacks = all.to_vec();
        let options = selected(&["frames"]);
        let because = options.choose("control", &mut attacks, |name| name);
        assert_eq!(
            because.expect("two").as_deref(),
            Some("only 2 of 3 attacks were tried, as selected")
        );
        assert_eq!(attacks, ["frames a", "frames b"]);
        assert_eq!((options.drawn(), selected(&[]).drawn()), (0, 8));
    }

    #[test]
    fn without_a_selection_and_with_all_of_them_nothing_is_missing() {
        for texts in [&[][..], &["frames", "memory"]] {
            let mut attacks = vec!["frames a", "memory writes"];
            let because = selected(texts).choose("control", &mut attacks, |name| name);
            assert_eq!((because.expect("there"), attacks.len()), (None, 2));
        }
    }

    #[test]
    fn a_domain_without_attacks_is_not_refused() {
        let mut attacks: Vec<&str> = Vec::new();
        let because = selected(&["frames"]).choose("alone", &mut attacks, |name| name);
        assert_eq!(because.expect("nothing to select from"), None);
    }

    #[test]
    fn a_name_that_no_attack_has_is_refused_with_the_names_that_there_are() {
        let mut attacks = vec!["memory writes", "frames a"];
        let error = selected(&["frames", "cake"]).choose("control", &mut attacks, |name| name);
        let text = error.expect_err("no cake").to_string();
        assert!(
            text.contains("no attack on the domain control has `cake` in its name"),
            "{text}"
        );
    }
}
