//! Changes of a description: `--set PATH=VALUE` and `<set path value>`.
//!
//! Why it exists: sweeps and variants change a few values of a system without a second file. It works on the tree, before
//! validation, so that every rule also holds for the changed system. What it deliberately does not know: types and units.
//!
//! A path is a list of segments, separated by `/`, and an attribute: `hog/limit@noc`. A segment matches elements by their `name` or `id` (a
//! `<tilemux>` by its tile), or by their tag (`app`), or by both (`app[hog]`); `*` matches any characters. The first segment may match
//! anywhere; each further segment matches elements inside the previous one. The root's attributes are `@duration`. An element that may
//! occur only once, such as `<limit>`, is added if it is missing. Every match is changed; a path without a match is an error.

use std::sync::Arc;

use crate::error::{Diagnostic, Problem};
use crate::grammar;
use crate::node::unknown_attribute;
use crate::source::{Source, Span};
use crate::text::suggestion;
use crate::tree::{Attribute, Element};

/// Name of the source of command-line values.
pub const COMMAND_LINE: &str = "--set";

/// One change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Override {
    /// The path.
    pub path: String,
    /// Its place.
    pub path_span: Span,
    /// The new value.
    pub value: String,
    /// Its place.
    pub value_span: Span,
}

impl Override {
    /// Reads `PATH=VALUE`, as written on the command line.
    pub fn parse(text: &str) -> Result<Self, Diagnostic> {
        let source = Arc::new(Source {
            name: COMMAND_LINE.into(),
            text: text.into(),
        });
        let (path, value) = text
            .split_once('=')
            .filter(|(path, _)| path.contains('@'))
            .ok_or_else(|| syntax(text, &Span::new(&source, 0..text.len())))?;
        Ok(Self {
            path: path.into(),
            path_span: Span::new(&source, 0..path.len()),
            value: value.into(),
            value_span: Span::new(&source, path.len() + 1..text.len()),
        })
    }

    /// Whether this sets the platform of the system, which must happen before paths into the platform are followed.
    pub(crate) fn selects_platform(&self, root: &Element) -> bool {
        self.path
            .split_once('@')
            .is_some_and(|(element, attribute)| {
                attribute == "platform" && (element.is_empty() || matches(root, element))
            })
    }
}

fn syntax(text: &str, span: &Span) -> Diagnostic {
    Diagnostic::new(
        Problem::OverrideSyntax { text: text.into() },
        span,
        "write PATH@ATTRIBUTE=VALUE, such as hog/limit@noc=8MiB/s or platform/clock[core]@frequency=1GHz",
    )
}

/// Applies the changes to a description, in order.
pub fn apply_overrides(root: &mut Element, overrides: &[Override]) -> Result<(), Diagnostic> {
    overrides.iter().try_for_each(|change| apply(root, change))
}

/// Indices of children, from the root.
type Path = Vec<usize>;

fn apply(root: &mut Element, change: &Override) -> Result<(), Diagnostic> {
    let Some((elements, attribute)) = change.path.split_once('@') else {
        return Err(syntax(&change.path, &change.path_span));
    };
    let segments: Vec<&str> = if elements.is_empty() {
        Vec::new()
    } else {
        elements.split('/').collect()
    };
    if attribute.is_empty() || segments.iter().any(|segment| segment.is_empty()) {
        return Err(syntax(&change.path, &change.path_span));
    }
    let mut found: Vec<Path> = vec![Vec::new()];
    for (index, segment) in segments.iter().enumerate() {
        let mut next = Vec::new();
        for path in &found {
            let Some(element) = at(root, path) else {
                continue;
            };
            let mut matching = Vec::new();
            if index == 0 {
                anywhere(element, segment, &mut Vec::new(), &mut matching);
            } else {
                let children = element.children.iter().enumerate();
                matching.extend(
                    children
                        .filter(|child| matches(child.1, segment))
                        .map(|child| vec![child.0]),
                );
            }
            if matching.is_empty() && index > 0 && index + 1 == segments.len() {
                matching.extend(insert(root, path, segment, change).map(|child| vec![child]));
            }
            next.extend(
                matching
                    .into_iter()
                    .map(|below| [path.as_slice(), &below].concat()),
            );
        }
        if next.is_empty() {
            return Err(unmatched(root, &found, index == 0, segment, change));
        }
        found = next;
    }
    // A segment may match elements of several kinds; those that have the attribute are meant.
    let has = |path: &&Path| {
        at(root, path)
            .and_then(|element| grammar::element(&element.name))
            .is_none_or(|rule| rule.attribute(attribute).is_some())
    };
    let meant: Vec<Path> = found.iter().filter(has).cloned().collect();
    for path in if meant.is_empty() { &found } else { &meant } {
        if let Some(element) = at_mut(root, path) {
            set(element, attribute, change)?;
        }
    }
    Ok(())
}

fn at<'e>(root: &'e Element, path: &[usize]) -> Option<&'e Element> {
    path.iter()
        .try_fold(root, |element, &index| element.children.get(index))
}

fn at_mut<'e>(root: &'e mut Element, path: &[usize]) -> Option<&'e mut Element> {
    path.iter()
        .try_fold(root, |element, &index| element.children.get_mut(index))
}

fn anywhere(element: &Element, segment: &str, path: &mut Path, found: &mut Vec<Path>) {
    if matches(element, segment) {
        found.push(path.clone());
    }
    for (index, child) in element.children.iter().enumerate() {
        path.push(index);
        anywhere(child, segment, path, found);
        path.pop();
    }
}

/// Whether `segment` matches `element`.
fn matches(element: &Element, segment: &str) -> bool {
    match segment
        .strip_suffix(']')
        .and_then(|rest| rest.split_once('['))
    {
        Some((tag, identity)) => {
            glob(tag, &element.name) && element.identity().is_some_and(|name| glob(identity, name))
        }
        None => {
            glob(segment, &element.name)
                || element.identity().is_some_and(|name| glob(segment, name))
        }
    }
}

/// Whether `pattern`, in which `*` matches any characters, matches the whole `text`.
fn glob(pattern: &str, text: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else {
        return pattern == text;
    };
    let Some(mut text) = text.strip_prefix(start) else {
        return false;
    };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let end = parts.pop().unwrap_or_default();
    for part in parts {
        match text.find(part) {
            Some(position) => text = &text[position + part.len()..],
            None => return false,
        }
    }
    text.ends_with(end)
}

/// Adds an element that may occur once. Returns its index.
fn insert(root: &mut Element, path: &[usize], tag: &str, change: &Override) -> Option<usize> {
    let parent = at_mut(root, path)?;
    let child = grammar::element(&parent.name)?
        .child(tag)
        .filter(|child| child.max == 1)?;
    parent.children.push(Element {
        name: child.name.into(),
        span: change.path_span.clone(),
        attributes: Vec::new(),
        children: Vec::new(),
        text: None,
    });
    Some(parent.children.len() - 1)
}

fn set(element: &mut Element, name: &str, change: &Override) -> Result<(), Diagnostic> {
    if let Some(attribute) = element
        .attributes
        .iter_mut()
        .find(|found| found.name == name)
    {
        attribute.value.clone_from(&change.value);
        attribute.value_span = change.value_span.clone();
        return Ok(());
    }
    if let Some(rule) = grammar::element(&element.name)
        && rule.attribute(name).is_none()
    {
        return Err(unknown_attribute(name, rule, &change.path_span));
    }
    element.attributes.push(Attribute {
        name: name.into(),
        value: change.value.clone(),
        name_span: change.path_span.clone(),
        value_span: change.value_span.clone(),
    });
    Ok(())
}

fn unmatched(
    root: &Element,
    parents: &[Path],
    deep: bool,
    segment: &str,
    change: &Override,
) -> Diagnostic {
    fn names<'e>(element: &'e Element, deep: bool, known: &mut Vec<&'e str>) {
        for child in &element.children {
            let name = child.identity().unwrap_or(&child.name);
            if !known.contains(&name) {
                known.push(name);
            }
            if deep && child.name != "platform" {
                names(child, deep, known);
            }
        }
    }
    let mut known = Vec::new();
    for parent in parents.iter().filter_map(|path| at(root, path)) {
        names(parent, deep, &mut known);
    }
    Diagnostic::new(
        Problem::PathUnmatched {
            segment: segment.into(),
            path: change.path.clone(),
        },
        &change.path_span,
        suggestion(segment, &known, "element"),
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TEXT: &str = r#"<system name="s" duration="1ms">
  <domain name="logger"><app name="hog-1" tile="5"><limit noc="8MiB/s"/></app><app name="hog-2" tile="6"/></domain>
  <domain name="control"><app name="sensor" tile="2"/></domain>
</system>"#;

    fn tree() -> Element {
        crate::tree::parse(&Arc::new(Source {
            name: "t".into(),
            text: TEXT.into(),
        }))
        .unwrap()
    }

    fn changed(text: &str) -> Result<Element, Diagnostic> {
        let mut root = tree();
        apply_overrides(&mut root, &[Override::parse(text)?])?;
        Ok(root)
    }

    fn noc(root: &Element, domain: usize, app: usize) -> Option<&str> {
        let limit = root.children[domain].children[app].children.first()?;
        Some(&limit.attribute("noc")?.value)
    }

    #[test]
    fn paths_reach_what_they_name() {
        let root = changed("hog-1/limit@noc=none").unwrap();
        assert_eq!((noc(&root, 0, 0), noc(&root, 0, 1)), (Some("none"), None));
        let root = changed("logger/*/limit@noc=1MiB/s").unwrap();
        assert_eq!(
            (noc(&root, 0, 0), noc(&root, 0, 1)),
            (Some("1MiB/s"), Some("1MiB/s"))
        );
        assert_eq!(noc(&root, 1, 0), None);
        let root = changed("hog-*@tile=3").unwrap();
        assert_eq!(
            root.children[0].children[1]
                .attribute("tile")
                .unwrap()
                .value,
            "3"
        );
        let root = changed("app[sensor]@tile=4").unwrap();
        assert_eq!(
            root.children[1].children[0]
                .attribute("tile")
                .unwrap()
                .value,
            "4"
        );
        assert_eq!(
            changed("@duration=5ms")
                .unwrap()
                .attribute("duration")
                .unwrap()
                .value,
            "5ms"
        );
        assert_eq!(
            changed("system@about=x")
                .unwrap()
                .attribute("about")
                .unwrap()
                .value,
            "x"
        );
    }

    #[test]
    fn changed_values_say_where_they_come_from() {
        let root = changed("hog-1/limit@noc=none").unwrap();
        let limit = &root.children[0].children[0].children[0];
        assert_eq!(
            limit.attribute("noc").unwrap().value_span.place(),
            "--set:1:17"
        );
    }

    #[test]
    fn mistakes_are_explained() {
        let message = |text| changed(text).unwrap_err().to_string();
        insta::assert_snapshot!(message("hgo-1/limit@noc=none"), @r"
        --set:1:1: nothing matches `hgo-1` of the path `hgo-1/limit@noc`
          help: did you mean `hog-1`? known: logger, hog-1, limit, hog-2, control, sensor
        ");
        insta::assert_snapshot!(message("hog-1/limit@nox=none"), @r"
        --set:1:1: unknown attribute `nox` of <limit>
          help: did you mean `noc`? known: noc, burst, endpoints, page-tables, activities, kernel-memory, memory, tile
        ");
        insta::assert_snapshot!(message("hog-1/limt@noc=none"), @r"
        --set:1:1: nothing matches `limt` of the path `hog-1/limt@noc`
          help: did you mean `limit`? known: limit
        ");
        insta::assert_snapshot!(message("hog-1"), @r"
        --set:1:1: `hog-1` is not an override
          help: write PATH@ATTRIBUTE=VALUE, such as hog/limit@noc=8MiB/s or platform/clock[core]@frequency=1GHz
        ");
        assert_eq!(
            changed("a//b@c=1").unwrap_err().code(),
            "model::override-syntax"
        );
        assert_eq!(
            changed("a@=1").unwrap_err().code(),
            "model::override-syntax"
        );
    }

    #[test]
    fn globs() {
        assert!(glob("*", "") && glob("a*", "abc") && glob("*c", "abc") && glob("a*b*c", "a-b-c"));
        assert!(
            !glob("a*b", "a") && !glob("ab*ab", "ab") && !glob("", "a") && glob("ab*ab", "abab")
        );
    }

    proptest! {
        #[test]
        fn no_override_panics(text in "[a-z@/=*\\[\\]é-]{0,20}") {
            let _ = changed(&text);
        }
    }
}
