//! From the raw tree to typed values, by the tables of the language.
//!
//! Why it exists: structure, units and ranges of all attributes are checked in one place, and all mistakes are collected.
//! What it deliberately does not know: rules that involve several elements.

use crate::error::{Diagnostic, Problem};
use crate::grammar::{self, AttributeRule, ElementRule, Kind, NAME_MAX};
use crate::source::Span;
use crate::text::{alternatives, suggestion};
use crate::tree::Element;
use crate::units::{self, Dimension, Frequency, Rate, Share, Size, Time};

/// A computing time: as time, or in cycles of the tile's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cost {
    /// As time.
    Time(Time),
    /// In cycles.
    Cycles(u64),
}

/// A part of a period: as time, or as a share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quota {
    /// As time.
    Time(Time),
    /// As a share of the period.
    Share(Share),
}

/// A value of an attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// [`Kind::Name`], [`Kind::Text`] and [`Kind::Choice`].
    Text(String),
    /// [`Kind::Integer`]; also [`Kind::Credits`], with 0 for `unlimited`.
    Integer(u64),
    /// [`Kind::Boolean`].
    Boolean(bool),
    /// [`Kind::Size`].
    Size(Size),
    /// [`Kind::Rate`] and [`Kind::RateOrNone`].
    Rate(Option<Rate>),
    /// [`Kind::Time`] and [`Kind::Span`].
    Time(Time),
    /// [`Kind::Frequency`].
    Frequency(Frequency),
    /// [`Kind::Drift`].
    Drift(i32),
    /// [`Kind::Cost`].
    Cost(Cost),
    /// [`Kind::Quota`].
    Quota(Quota),
}

/// An element whose attributes and children are all known and have the right types.
#[derive(Clone, Debug)]
pub struct Node {
    /// Its rule.
    pub rule: &'static ElementRule,
    /// The place of its name.
    pub span: Span,
    values: Vec<(&'static str, Value, Span)>,
    /// Elements inside.
    pub children: Vec<Node>,
}

/// A programming error: the code asks for an attribute that the tables do not have, or with the wrong type.
macro_rules! getter {
    ($(#[$doc:meta])* $name:ident, $maybe:ident, $variant:ident, $type:ty) => {
        $(#[$doc])*
        pub fn $name(&self, attribute: &str) -> $type {
            match self.$maybe(attribute) {
                Some(value) => value,
                None => unreachable!("{}@{attribute} is not required and has no default", self.rule.name),
            }
        }
        /// The same, if it is given.
        pub fn $maybe(&self, attribute: &str) -> Option<$type> {
            match self.value(attribute) {
                Some(Value::$variant(value)) => Some(value.clone()),
                Some(_) => unreachable!("{}@{attribute} has another type", self.rule.name),
                None => None,
            }
        }
    };
}

impl Node {
    fn value(&self, attribute: &str) -> Option<&Value> {
        debug_assert!(
            self.rule.attribute(attribute).is_some(),
            "{}@{attribute}",
            self.rule.name
        );
        self.values
            .iter()
            .find(|value| value.0 == attribute)
            .map(|value| &value.1)
    }

    /// The place of the attribute's value, or of the element's name if the value is a default.
    pub fn place(&self, attribute: &str) -> &Span {
        self.values
            .iter()
            .find(|value| value.0 == attribute)
            .map_or(&self.span, |value| &value.2)
    }

    /// Whether the description gives the attribute, rather than using its default.
    pub fn gives(&self, attribute: &str) -> bool {
        self.place(attribute) != &self.span
    }

    /// The children with this name.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Node> {
        self.children
            .iter()
            .filter(move |child| child.rule.name == name)
    }

    /// The first child with this name.
    pub fn child(&self, name: &str) -> Option<&Node> {
        self.children.iter().find(|child| child.rule.name == name)
    }

    getter!(/// A name, a text or a word of a list.
        text, maybe_text, Text, String);
    getter!(/// A whole number.
        integer, maybe_integer, Integer, u64);
    getter!(/// A truth value.
        boolean, maybe_boolean, Boolean, bool);
    getter!(/// Bytes.
        size, maybe_size, Size, Size);
    getter!(/// A rate; `None` inside means `none`.
        rate, maybe_rate, Rate, Option<Rate>);
    getter!(/// A time.
        time, maybe_time, Time, Time);
    getter!(/// A frequency.
        frequency, maybe_frequency, Frequency, Frequency);
    getter!(/// Parts per million.
        drift, maybe_drift, Drift, i32);
    /// A computing time, if it is given.
    pub fn maybe_cost(&self, attribute: &str) -> Option<Cost> {
        match self.value(attribute) {
            Some(Value::Cost(value)) => Some(*value),
            Some(_) => unreachable!("{}@{attribute} has another type", self.rule.name),
            None => None,
        }
    }

    getter!(/// A part of a period.
        quota, maybe_quota, Quota, Quota);

    /// The value if it is any kind of time.
    pub fn as_time(&self, attribute: &str) -> Option<Time> {
        match self.value(attribute) {
            Some(
                Value::Time(time) | Value::Cost(Cost::Time(time)) | Value::Quota(Quota::Time(time)),
            ) => Some(*time),
            _ => None,
        }
    }
}

/// Reads an element that must be named `wanted`. `None` if something is wrong; `errors` then says what.
pub fn read_root(element: &Element, wanted: &str, errors: &mut Vec<Diagnostic>) -> Option<Node> {
    let before = errors.len();
    if element.name != wanted {
        errors.push(Diagnostic::new(
            Problem::UnknownElement {
                element: element.name.clone(),
                parent: "the file".into(),
            },
            &element.span,
            format!("the outermost element must be <{wanted}>"),
        ));
        return None;
    }
    let node = read(element, grammar::element(wanted)?, errors);
    (errors.len() == before).then_some(node)
}

fn read(element: &Element, rule: &'static ElementRule, errors: &mut Vec<Diagnostic>) -> Node {
    if let Some(span) = &element.text {
        errors.push(Diagnostic::new(
            Problem::UnexpectedText {
                element: element.name.clone(),
            },
            span,
            "values belong in attributes; remove the text or make it a comment <!-- ... -->",
        ));
    }
    let values = read_attributes(element, rule, errors);
    let mut children = Vec::new();
    for child in &element.children {
        let Some(child_rule) = rule
            .child(&child.name)
            .and_then(|found| grammar::element(found.name))
        else {
            errors.push(unknown_element(child, rule));
            continue;
        };
        children.push(read(child, child_rule, errors));
    }
    for child_rule in rule.children {
        let mut found = element
            .children
            .iter()
            .filter(|child| child.name == child_rule.name);
        let count = found.clone().count();
        if count < child_rule.min {
            errors.push(Diagnostic::new(
                Problem::MissingElement {
                    element: child_rule.name.into(),
                    parent: rule.name.into(),
                },
                &element.span,
                format!(
                    "add a <{} .../>: {}",
                    child_rule.name,
                    grammar::element(child_rule.name).map_or("", |rule| rule.about)
                ),
            ));
        }
        if let Some(extra) = found.nth(child_rule.max) {
            errors.push(Diagnostic::new(
                Problem::RepeatedElement {
                    element: child_rule.name.into(),
                    parent: rule.name.into(),
                },
                &extra.span,
                "keep one of them",
            ));
        }
    }
    Node {
        rule,
        span: element.span.clone(),
        values,
        children,
    }
}

fn read_attributes(
    element: &Element,
    rule: &'static ElementRule,
    errors: &mut Vec<Diagnostic>,
) -> Vec<(&'static str, Value, Span)> {
    let mut values = Vec::new();
    for attribute in &element.attributes {
        let Some(known) = rule.attribute(&attribute.name) else {
            errors.push(unknown_attribute(
                &attribute.name,
                rule,
                &attribute.name_span,
            ));
            continue;
        };
        match value(&attribute.value, rule, known) {
            Ok(value) => values.push((known.name, value, attribute.value_span.clone())),
            Err((problem, help)) => {
                errors.push(Diagnostic::new(problem, &attribute.value_span, help));
            }
        }
    }
    for known in rule.attributes {
        if element.attribute(known.name).is_some() {
            continue;
        }
        if known.required {
            errors.push(Diagnostic::new(
                Problem::MissingAttribute {
                    attribute: known.name.into(),
                    element: rule.name.into(),
                },
                &element.span,
                format!(
                    "add {}=\"{}\": {}",
                    known.name,
                    example(known.kind),
                    known.about
                ),
            ));
        } else if let Some(Ok(value)) = known.default.map(|text| value(text, rule, known)) {
            values.push((known.name, value, element.span.clone()));
        }
    }
    values
}

fn unknown_element(child: &Element, rule: &ElementRule) -> Diagnostic {
    let known: Vec<&str> = rule.children.iter().map(|child| child.name).collect();
    let help = if known.is_empty() {
        format!("<{}> has no elements inside", rule.name)
    } else {
        suggestion(&child.name, &known, "element")
    };
    Diagnostic::new(
        Problem::UnknownElement {
            element: child.name.clone(),
            parent: format!("<{}>", rule.name),
        },
        &child.span,
        help,
    )
}

/// The error for an attribute that `rule` does not have.
pub fn unknown_attribute(name: &str, rule: &ElementRule, span: &Span) -> Diagnostic {
    let known: Vec<&str> = rule
        .attributes
        .iter()
        .map(|attribute| attribute.name)
        .collect();
    Diagnostic::new(
        Problem::UnknownAttribute {
            attribute: name.into(),
            element: rule.name.into(),
        },
        span,
        suggestion(name, &known, "attribute"),
    )
}

/// A value as it might appear in a file, for the help of a missing attribute.
fn example(kind: Kind) -> String {
    match kind {
        Kind::Integer { min, .. } => min.to_string(),
        Kind::Credits { .. } => "1".into(),
        Kind::Boolean => "true".into(),
        Kind::Choice(words) => words
            .first()
            .map_or_else(String::new, |word| (*word).to_owned()),
        Kind::Size { .. } => "4KiB".into(),
        Kind::Rate | Kind::RateOrNone => "8MiB/s".into(),
        Kind::Time | Kind::Span | Kind::Cost => "1ms".into(),
        Kind::Quota => "25%".into(),
        Kind::Frequency => "100MHz".into(),
        Kind::Drift { .. } => "20ppm".into(),
        Kind::Name | Kind::Text { .. } => "...".into(),
    }
}

type Wrong = (Problem, String);

/// Reads a value of an attribute.
fn value(text: &str, element: &ElementRule, rule: &AttributeRule) -> Result<Value, Wrong> {
    let bad = |wanted: &str, help: String| {
        let problem = Problem::BadValue {
            element: element.name.into(),
            attribute: rule.name.into(),
            value: text.into(),
            wanted: wanted.into(),
        };
        (problem, help)
    };
    let range = |value: String, least: String, most: String| {
        let problem = Problem::OutOfRange {
            element: element.name.into(),
            attribute: rule.name.into(),
            value,
        };
        (problem, format!("write {least} to {most}"))
    };
    let quantity = |dimension: Dimension| {
        units::parse(text, dimension).map_err(|cause| {
            let help = unit_help(&cause, dimension);
            let problem = Problem::Quantity {
                element: element.name.into(),
                attribute: rule.name.into(),
                cause,
            };
            (problem, help)
        })
    };
    let time = || {
        let picoseconds = quantity(Dimension::Time)?;
        if picoseconds == 0 {
            return Err(bad("a time above 0", "write at least 1ns".into()));
        }
        if !picoseconds.is_multiple_of(1000) {
            return Err(bad(
                "a time in whole nanoseconds",
                "write it without fractions of a nanosecond".into(),
            ));
        }
        Ok(Time(picoseconds))
    };
    Ok(match rule.kind {
        Kind::Text { max } if text.len() > max => {
            return Err(bad(
                &format!("a text of at most {max} bytes"),
                "write a shorter one".into(),
            ));
        }
        Kind::Text { .. } if text.trim().is_empty() => {
            return Err(bad("a text", format!("write something: {}", rule.about)));
        }
        Kind::Text { .. } => Value::Text(text.to_owned()),
        Kind::Name => {
            let mut characters = text.chars();
            let starts = characters
                .next()
                .is_some_and(|first| first.is_ascii_alphabetic());
            let rest = characters.all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
            if !starts || !rest || text.len() > NAME_MAX {
                return Err(bad(
                    "a name",
                    format!(
                        "a name is a letter and then letters, digits, `-` or `_`, at most {NAME_MAX} in all"
                    ),
                ));
            }
            Value::Text(text.to_owned())
        }
        Kind::Boolean => match text {
            "true" => Value::Boolean(true),
            "false" => Value::Boolean(false),
            _ => return Err(bad("true or false", "write `true` or `false`".into())),
        },
        Kind::Choice(words) => {
            if !words.contains(&text) {
                return Err(bad(&alternatives(words), suggestion(text, words, "word")));
            }
            Value::Text(text.to_owned())
        }
        Kind::Integer { min, max } => {
            if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
                return Err(bad(
                    "a whole number",
                    "write digits only, without a unit".into(),
                ));
            }
            match text.parse::<u64>() {
                Ok(number) if (min..=max).contains(&number) => Value::Integer(number),
                _ => return Err(range(text.into(), min.to_string(), max.to_string())),
            }
        }
        Kind::Size { min, max } => {
            let bytes = quantity(Dimension::Size)?;
            if !(min..=max).contains(&bytes) {
                return Err(range(
                    text.into(),
                    Size(min).to_string(),
                    Size(max).to_string(),
                ));
            }
            Value::Size(Size(bytes))
        }
        Kind::Credits { .. } if text == "unlimited" => Value::Integer(0),
        Kind::Credits { max } => match text.parse::<u64>() {
            Ok(number) if (1..=max).contains(&number) => Value::Integer(number),
            _ => {
                return Err(bad(
                    &format!("1 to {max}, or `unlimited`"),
                    "write how many messages may be under way".into(),
                ));
            }
        },
        Kind::RateOrNone if text == "none" => Value::Rate(None),
        Kind::RateOrNone => match quantity(Dimension::Rate)? {
            0 => return Err(bad("a rate above 0", "write `none` for no limit".into())),
            rate => Value::Rate(Some(Rate(rate))),
        },
        Kind::Rate => match quantity(Dimension::Rate)? {
            0 => return Err(bad("a rate above 0", "write 8MiB/s, for example".into())),
            rate => Value::Rate(Some(Rate(rate))),
        },
        Kind::Time => Value::Time(time()?),
        Kind::Span => match quantity(Dimension::Time)? {
            0 => Value::Time(Time(0)),
            _ => Value::Time(time()?),
        },
        Kind::Frequency => match quantity(Dimension::Frequency)? {
            0 => return Err(bad("a frequency above 0", "write at least 1Hz".into())),
            frequency => Value::Frequency(Frequency(frequency)),
        },
        Kind::Drift { max } => match text.trim().strip_suffix("ppm").map(str::parse::<i32>) {
            Some(Ok(drift)) if (-max..=max).contains(&drift) => Value::Drift(drift),
            Some(Ok(_)) => {
                return Err(range(
                    text.into(),
                    format!("-{max}ppm"),
                    format!("{max}ppm"),
                ));
            }
            _ => {
                return Err(bad(
                    "a whole number of parts per million",
                    "write it with its unit, such as 20ppm or -20ppm".into(),
                ));
            }
        },
        Kind::Cost if text.trim_end().ends_with("cycles") => {
            Value::Cost(Cost::Cycles(quantity(Dimension::Cycles)?))
        }
        Kind::Cost => {
            let time =
                time().map_err(|(problem, help)| (problem, help + "; or a number of cycles"));
            Value::Cost(Cost::Time(time?))
        }
        Kind::Quota if text.trim_end().ends_with('%') => {
            match u32::try_from(quantity(Dimension::Share)?) {
                Ok(share) if (1..=1_000_000).contains(&share) => {
                    Value::Quota(Quota::Share(Share(share)))
                }
                _ => return Err(range(text.into(), Share(1).to_string(), "100%".into())),
            }
        }
        Kind::Quota => {
            let time = time().map_err(|(problem, help)| (problem, help + "; or a percentage"));
            Value::Quota(Quota::Time(time?))
        }
    })
}

fn unit_help(cause: &units::UnitError, wanted: Dimension) -> String {
    use units::UnitError;
    match cause {
        UnitError::Missing { number } => {
            // The most common unit, so that the example looks realistic.
            let likely = match wanted {
                Dimension::Size => "B",
                Dimension::Rate => "B/s",
                Dimension::Time => "us",
                Dimension::Frequency => "MHz",
                Dimension::Share => "%",
                Dimension::Cycles => "cycles",
            };
            let list = wanted.unit_list();
            // A zero quantity is hardly ever intended.
            let is_zero = number.trim_matches(['0', '.']).is_empty();
            let number = if is_zero { "1" } else { number };
            format!("write a unit after it, such as {number}{likely}; the units are {list}")
        }
        UnitError::Wrong {
            belongs: Some(dimension),
            unit,
            ..
        } => format!(
            "`{unit}` is a unit of {}; this value is {}, in {}",
            dimension.noun(),
            wanted.noun(),
            wanted.unit_list()
        ),
        UnitError::Wrong {
            belongs: None,
            unit,
            ..
        } => {
            let near = wanted.unit_in_other_case(unit);
            let near = near.map(|near| format!("did you mean `{near}`? "));
            let near = near.unwrap_or_default();
            format!("{near}the units are {}", wanted.unit_list())
        }
        UnitError::NotANumber { .. } => {
            format!("write a number and one of the units {}", wanted.unit_list())
        }
        UnitError::Overflow { .. } => "write a smaller value".into(),
        UnitError::NotWhole { .. } => "write a value that is whole in the smallest unit".into(),
    }
}
