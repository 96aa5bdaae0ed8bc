//! A description as a tree that can be changed.
//!
//! Why it exists: includes, overrides and variants change a description before it is validated, and every value must
//! still know where it came from. What it deliberately does not know: which elements and attributes exist.

use std::sync::Arc;

use crate::error::{Diagnostic, Problem};
use crate::source::{Source, Span};

/// Maximum nesting of elements: far beyond any description, and safe for recursion.
pub const DEPTH_LIMIT: usize = 32;
/// Maximum elements of one file.
pub const ELEMENT_LIMIT: u32 = 100_000;

/// An attribute with its places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attribute {
    /// Name.
    pub name: String,
    /// Value.
    pub value: String,
    /// The place of the name.
    pub name_span: Span,
    /// The place of the value.
    pub value_span: Span,
}

/// An element with its places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Element {
    /// Name.
    pub name: String,
    /// The place of the name.
    pub span: Span,
    /// Attributes in file order.
    pub attributes: Vec<Attribute>,
    /// Elements inside, in file order.
    pub children: Vec<Element>,
    /// The place of text that is not white space.
    pub text: Option<Span>,
}

impl Element {
    /// The attribute with this name.
    pub fn attribute(&self, name: &str) -> Option<&Attribute> {
        self.attributes
            .iter()
            .find(|attribute| attribute.name == name)
    }

    /// The identity of the element among its siblings: its `name` or its `id`; for a multiplexer, its tile.
    pub fn identity(&self) -> Option<&str> {
        let tile = || self.attribute("tile").filter(|_| self.name == "tilemux");
        self.attribute("name")
            .or_else(|| self.attribute("id"))
            .or_else(tile)
            .map(|attribute| attribute.value.as_str())
    }
}

/// Reads a text.
pub fn parse(source: &Arc<Source>) -> Result<Element, Diagnostic> {
    let options = roxmltree::ParsingOptions {
        nodes_limit: ELEMENT_LIMIT,
        ..Default::default()
    };
    let document = roxmltree::Document::parse_with_options(&source.text, options)
        .map_err(|error| malformed(source, &error))?;
    convert(document.root_element(), source, 0)
}

fn convert(
    node: roxmltree::Node<'_, '_>,
    source: &Arc<Source>,
    depth: usize,
) -> Result<Element, Diagnostic> {
    let start = node.range().start + 1;
    let span = Span::new(source, start..start + node.tag_name().name().len());
    if depth >= DEPTH_LIMIT {
        return Err(Diagnostic::new(
            Problem::TooDeep { limit: DEPTH_LIMIT },
            &span,
            "a description needs a handful of levels; is an end tag missing?",
        ));
    }
    let attributes = node
        .attributes()
        .map(|attribute| Attribute {
            name: attribute.name().to_owned(),
            value: attribute.value().to_owned(),
            name_span: Span::new(source, attribute.range_qname()),
            value_span: Span::new(source, attribute.range_value()),
        })
        .collect();
    let text = node
        .children()
        .find(|child| child.is_text() && child.text().is_some_and(|text| !text.trim().is_empty()))
        .map(|child| {
            // The place of the first character, not of the preceding line break.
            let text = child.text().unwrap_or_default();
            let blank = text.len() - text.trim_start().len();
            let start = child.range().start + blank;
            Span::new(
                source,
                start..(start + text.trim().len()).min(source.text.len()),
            )
        });
    let children = node
        .children()
        .filter(roxmltree::Node::is_element)
        .map(|child| convert(child, source, depth + 1))
        .collect::<Result<_, _>>()?;
    Ok(Element {
        name: node.tag_name().name().to_owned(),
        span,
        attributes,
        children,
        text,
    })
}

fn malformed(source: &Arc<Source>, error: &roxmltree::Error) -> Diagnostic {
    use roxmltree::Error;
    let end = source.text.trim_end().len();
    let at_end = matches!(
        error,
        Error::NoRootNode | Error::UnclosedRootNode | Error::UnexpectedEndOfStream
    );
    let start = if at_end {
        end
    } else {
        offset_of(&source.text, error.pos())
    };
    let width = source.text[start..]
        .chars()
        .next()
        .map_or(0, char::len_utf8);
    let span = Span::new(source, start..start + width);
    // The library's messages end in " at line:column", which our place already gives.
    let message = error.to_string();
    let position = format!(" at {}", error.pos());
    let message = message.replacen(&position, "", 1);
    let help = match error {
        Error::UnexpectedCloseTag(expected, actual, _) => {
            format!("close <{expected}> with </{expected}> before </{actual}>")
        }
        Error::UnclosedRootNode | Error::UnexpectedEndOfStream => {
            "the file ends before every element is closed".to_owned()
        }
        Error::NoRootNode => "the file must hold one element, <system> or <platform>".to_owned(),
        Error::DuplicatedAttribute(name, _) => format!("keep one of the two `{name}`"),
        Error::MalformedEntityReference(_) | Error::UnknownEntityReference(..) => {
            "write `&` as `&amp;`".to_owned()
        }
        Error::InvalidChar(b'"' | b'\'', b'<', _) => {
            "a value before this place lacks its closing quote; inside quotes, write `<` as `&lt;`"
                .to_owned()
        }
        Error::InvalidAttributeValue(_) => "write `<` as `&lt;` inside quotes".to_owned(),
        Error::DtdDetected => "remove the <!DOCTYPE>; descriptions use none".to_owned(),
        Error::InvalidComment(_) => {
            "a comment begins with `<!--`, ends with the first `-->`, and has no `--` between them"
                .to_owned()
        }
        Error::UnknownToken(_) if !source.text.trim_start().starts_with('<') => {
            "this is not XML: a description begins with <system ...> or <platform ...>".to_owned()
        }
        Error::UnknownToken(_) if after_the_root(source, start) => {
            "a file holds one description: remove what follows it".to_owned()
        }
        Error::NodesLimitReached => {
            format!("a description has at most {ELEMENT_LIMIT} elements and texts")
        }
        _ => "attributes are written name=\"value\", elements <name .../> or <name>...</name>"
            .to_owned(),
    };
    Diagnostic::new(Problem::Malformed(message), &span, help)
}

/// Whether everything before an offset is a whole document.
fn after_the_root(source: &Source, offset: usize) -> bool {
    roxmltree::Document::parse(&source.text[..offset]).is_ok()
}

/// Byte offset of a line and column (both from 1, columns in characters).
fn offset_of(text: &str, position: roxmltree::TextPos) -> usize {
    let line_start: usize = text
        .split_inclusive('\n')
        .take((position.row as usize).saturating_sub(1))
        .map(str::len)
        .sum();
    let line = text.get(line_start..).unwrap_or_default();
    let column = (position.col as usize).saturating_sub(1);
    let within = line
        .char_indices()
        .nth(column)
        .map_or(line.len(), |(offset, _)| offset);
    (line_start + within).min(text.len())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(text: &str) -> Result<Element, Diagnostic> {
        parse(&Arc::new(Source {
            name: "t.xml".into(),
            text: text.into(),
        }))
    }

    #[test]
    fn places_are_those_of_the_file() {
        let root = read("<a>\n  <b name=\"x\" size = '4KiB'/>\n</a>").unwrap();
        let child = &root.children[0];
        assert_eq!(child.span.position(), (2, 4));
        assert_eq!(child.attributes[1].name_span.position(), (2, 15));
        assert_eq!(child.attributes[1].value_span.position(), (2, 23));
        assert_eq!(child.identity(), Some("x"));
    }

    #[test]
    fn malformed_texts_say_where() {
        let error = read("<a>\n  <b>\n</a>").unwrap_err();
        assert_eq!(error.position(), Some((3, 1)));
        assert!(error.help.contains("</b>"), "{error}");
        for (text, what) in [
            ("int main() {}", "not XML"),
            ("<a/>\n<b/>", "one description"),
            ("<a><!-- x -- y --></a>", "no `--`"),
            ("<a b=c/>", "attributes"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.help.contains(what), "{text}: {error}");
        }
        assert_eq!(read("").unwrap_err().position(), Some((1, 1)));
        assert_eq!(read("<a>\n").unwrap_err().position(), Some((1, 4)));
        assert_eq!(
            read("<a b='1' b='2'/>").unwrap_err().code(),
            "model::malformed-xml"
        );
        assert_eq!(
            read("<!DOCTYPE a [<!ENTITY x 'y'>]><a/>")
                .unwrap_err()
                .code(),
            "model::malformed-xml"
        );
    }

    #[test]
    fn a_tower_of_elements_is_an_error_and_no_stack_overflow() {
        let text = "<a>".repeat(50_000) + &"</a>".repeat(50_000);
        assert_eq!(read(&text).unwrap_err().code(), "model::too-deep");
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "\\PC*") {
            let _ = read(&text);
        }

        #[test]
        fn no_xml_like_text_panics(parts in prop::collection::vec(
            prop::sample::select(vec!["<a", ">", "/>", "</a>", " b='", "'", "é\n", "&amp;", "&x;", "<!--", "-->", "<?x", "]]>", "<![CDATA["]),
            0..24,
        )) {
            let _ = read(&parts.concat());
        }
    }
}
