//! The language of descriptions as tables: which elements and attributes exist, and what they hold.
//!
//! Why it exists: the reader, the defaults, the canonical output, overrides and the test of the XML schema files all
//! take the language from here, so it is written once. What it deliberately does not know: rules that involve
//! several elements; those are in `platform::check` and `system::check`.

mod bare;
mod cable;
mod cluster;
mod mesh;
mod one_shot;
mod peripheral;
mod pipeline;
mod platform;
mod prefetcher;
mod system;
pub(crate) mod tasks;

/// The kind of an attribute's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A name: a letter, then letters, digits, `-` or `_`; at most [`NAME_MAX`] characters.
    Name,
    /// Any text that is not blank.
    Text {
        /// Maximum bytes.
        max: usize,
    },
    /// A whole number.
    Integer {
        /// Least value.
        min: u64,
        /// Greatest value.
        max: u64,
    },
    /// `true` or `false`.
    Boolean,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// Bytes.
    Size {
        /// Least value.
        min: u64,
        /// Greatest value.
        max: u64,
    },
    /// Bytes per second, at least 1.
    Rate,
    /// The same, or `none`.
    RateOrNone,
    /// A time of at least one nanosecond, in whole nanoseconds.
    Time,
    /// A time in whole nanoseconds that may be 0.
    Span,
    /// Hertz, at least 1.
    Frequency,
    /// Parts per million with a sign, at most `max` in each direction.
    Drift {
        /// Maximum in each direction.
        max: i32,
    },
    /// A time, or cycles of the tile's clock.
    Cost,
    /// A time, or a percentage of the period.
    Quota,
    /// Outstanding messages, 1 to this many, or `unlimited`.
    Credits {
        /// Maximum that is counted.
        max: u64,
    },
}

/// Longest name.
pub const NAME_MAX: usize = 31;

/// An attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttributeRule {
    /// Name.
    pub name: &'static str,
    /// The kind of its value.
    pub kind: Kind,
    /// It must be given.
    pub required: bool,
    /// The value if it is not given; `None` with `required: false` means that it may be absent.
    pub default: Option<&'static str>,
    /// Its meaning, in one sentence.
    pub about: &'static str,
}

/// An element that may occur in another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChildRule {
    /// Name.
    pub name: &'static str,
    /// How often it must occur.
    pub min: usize,
    /// How often it may occur.
    pub max: usize,
}

/// An element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ElementRule {
    /// Name.
    pub name: &'static str,
    /// Its meaning, in one sentence.
    pub about: &'static str,
    /// Its attributes.
    pub attributes: &'static [AttributeRule],
    /// Elements inside.
    pub children: &'static [ChildRule],
}

impl ElementRule {
    /// The rule of an attribute.
    pub fn attribute(&self, name: &str) -> Option<&'static AttributeRule> {
        self.attributes.iter().find(|rule| rule.name == name)
    }

    /// The rule of an element inside.
    pub fn child(&self, name: &str) -> Option<&'static ChildRule> {
        self.children.iter().find(|rule| rule.name == name)
    }
}

/// Every element of platform descriptions; the root comes first.
pub const PLATFORM: &[ElementRule] = platform::ELEMENTS;
/// Every element of system descriptions except those of platforms; the root comes first.
pub const SYSTEM: &[ElementRule] = system::ELEMENTS;
/// Every element of task systems except those that systems also have; the root comes first.
pub const TASKS: &[ElementRule] = tasks::ELEMENTS;

/// The rule of an element. Names are unique over all tables.
pub fn element(name: &str) -> Option<&'static ElementRule> {
    SYSTEM
        .iter()
        .chain(PLATFORM)
        .chain(TASKS)
        .find(|rule| rule.name == name)
}

const fn required(name: &'static str, kind: Kind, about: &'static str) -> AttributeRule {
    AttributeRule {
        name,
        kind,
        required: true,
        default: None,
        about,
    }
}

const fn optional(name: &'static str, kind: Kind, about: &'static str) -> AttributeRule {
    AttributeRule {
        name,
        kind,
        required: false,
        default: None,
        about,
    }
}

const fn default(
    name: &'static str,
    kind: Kind,
    default: &'static str,
    about: &'static str,
) -> AttributeRule {
    AttributeRule {
        name,
        kind,
        required: false,
        default: Some(default),
        about,
    }
}

const fn any(name: &'static str) -> ChildRule {
    ChildRule {
        name,
        min: 0,
        max: usize::MAX,
    }
}

const fn some(name: &'static str) -> ChildRule {
    ChildRule {
        name,
        min: 1,
        max: usize::MAX,
    }
}

const fn maybe(name: &'static str) -> ChildRule {
    ChildRule {
        name,
        min: 0,
        max: 1,
    }
}

const fn once(name: &'static str) -> ChildRule {
    ChildRule {
        name,
        min: 1,
        max: 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_children_exist() {
        let all: Vec<_> = SYSTEM.iter().chain(PLATFORM).chain(TASKS).collect();
        for (index, rule) in all.iter().enumerate() {
            assert!(
                all[..index].iter().all(|other| other.name != rule.name),
                "{}",
                rule.name
            );
            for child in rule.children {
                assert!(
                    element(child.name).is_some(),
                    "{} in {}",
                    child.name,
                    rule.name
                );
            }
            for attribute in rule.attributes {
                assert!(!attribute.about.is_empty());
                assert!(
                    !(attribute.required && attribute.default.is_some()),
                    "{}",
                    attribute.name
                );
            }
        }
    }
}
