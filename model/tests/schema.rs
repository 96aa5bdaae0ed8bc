//! The XML schema files: generated from the tables of the language, read back independently, and accepting the catalog.
//!
//! `BLESS=1 cargo test -p bulkhead-model --test schema` rewrites the files after a change of the tables.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use bulkhead_model::grammar::{self, AttributeRule, ElementRule, Kind, NAME_MAX};
use bulkhead_model::units::Dimension;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("schema")
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('"', "&quot;")
}

const NUMBER: &str = r"\d+(\.\d+)? ?";

fn units(dimension: Dimension) -> String {
    let list = dimension.unit_list();
    let names: Vec<&str> = list
        .split(", ")
        .flat_map(|part| part.split(" or "))
        .collect();
    format!("({})", names.join("|"))
}

fn pattern(value: &str) -> String {
    format!("<xs:restriction base=\"xs:string\"><xs:pattern value=\"{value}\"/></xs:restriction>")
}

fn quantity(dimension: Dimension) -> String {
    pattern(&format!("{NUMBER}{}", units(dimension)))
}

fn words(list: &[&str]) -> String {
    let words: String = list
        .iter()
        .map(|word| format!("<xs:enumeration value=\"{word}\"/>"))
        .collect();
    format!("<xs:restriction base=\"xs:string\">{words}</xs:restriction>")
}

fn restriction(kind: Kind) -> String {
    match kind {
        Kind::Name => pattern(&format!(r"[A-Za-z][A-Za-z0-9_\-]{{0,{}}}", NAME_MAX - 1)),
        Kind::Text { max } => format!(
            "<xs:restriction base=\"xs:string\"><xs:minLength value=\"1\"/><xs:maxLength value=\"{max}\"/></xs:restriction>"
        ),
        Kind::Integer { min, max } => format!(
            "<xs:restriction base=\"xs:unsignedLong\"><xs:minInclusive value=\"{min}\"/><xs:maxInclusive value=\"{max}\"/></xs:restriction>"
        ),
        Kind::Boolean => words(&["true", "false"]),
        Kind::Choice(list) => words(list),
        Kind::Size { .. } => quantity(Dimension::Size),
        Kind::Rate => pattern(&format!("{NUMBER}{}", units(Dimension::Rate))),
        Kind::RateOrNone => pattern(&format!("none|{NUMBER}{}", units(Dimension::Rate))),
        Kind::Time | Kind::Span => quantity(Dimension::Time),
        Kind::Frequency => quantity(Dimension::Frequency),
        Kind::Drift { .. } => pattern("-?[0-9]{1,5}ppm"),
        Kind::Cost => pattern(&format!(
            "{NUMBER}{}|{NUMBER}{}",
            units(Dimension::Time),
            units(Dimension::Cycles)
        )),
        Kind::Credits { .. } => pattern("unlimited|[1-9][0-9]?"),
        Kind::Quota => pattern(&format!(
            "{NUMBER}{}|{NUMBER}{}",
            units(Dimension::Time),
            units(Dimension::Share)
        )),
    }
}

fn annotation(about: &str, indent: &str) -> String {
    format!(
        "{indent}<xs:annotation><xs:documentation>{}</xs:documentation></xs:annotation>\n",
        escape(about)
    )
}

fn attribute(rule: &AttributeRule, out: &mut String) {
    write!(out, "      <xs:attribute name=\"{}\"", rule.name).unwrap();
    if rule.required {
        out.push_str(" use=\"required\"");
    }
    if let Some(default) = rule.default {
        write!(out, " default=\"{default}\"").unwrap();
    }
    out.push_str(">\n");
    out.push_str(&annotation(rule.about, "        "));
    writeln!(
        out,
        "        <xs:simpleType>{}</xs:simpleType>",
        restriction(rule.kind)
    )
    .unwrap();
    out.push_str("      </xs:attribute>\n");
}

fn schema(rules: &[ElementRule], title: &str, include: Option<&str>) -> String {
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    writeln!(
        out,
        "<!-- {title} Generated from model/src/grammar; see model/tests/schema.rs. -->"
    )
    .unwrap();
    out.push_str("<xs:schema xmlns:xs=\"http://www.w3.org/2001/XMLSchema\">\n");
    if let Some(file) = include {
        writeln!(out, "  <xs:include schemaLocation=\"{file}\"/>").unwrap();
    }
    for rule in rules {
        writeln!(out, "  <xs:element name=\"{}\">", rule.name).unwrap();
        out.push_str(&annotation(rule.about, "    "));
        out.push_str("    <xs:complexType>\n");
        if !rule.children.is_empty() {
            out.push_str("      <xs:choice minOccurs=\"0\" maxOccurs=\"unbounded\">\n");
            for child in rule.children {
                writeln!(out, "        <xs:element ref=\"{}\"/>", child.name).unwrap();
            }
            out.push_str("      </xs:choice>\n");
        }
        rule.attributes
            .iter()
            .for_each(|rule| attribute(rule, &mut out));
        out.push_str("    </xs:complexType>\n  </xs:element>\n");
    }
    out.push_str("</xs:schema>\n");
    out
}

const FILES: [(&str, &[ElementRule]); 3] = [
    ("platform.xsd", grammar::PLATFORM),
    ("system.xsd", grammar::SYSTEM),
    ("tasks.xsd", grammar::TASKS),
];

#[test]
fn the_files_are_those_of_the_tables() {
    let texts = [
        schema(grammar::PLATFORM, "Platforms of Bulkhead.", None),
        schema(
            grammar::SYSTEM,
            "Systems of Bulkhead.",
            Some("platform.xsd"),
        ),
        schema(
            grammar::TASKS,
            "Task systems of Bulkhead.",
            Some("system.xsd"),
        ),
    ];
    for ((name, _), text) in FILES.iter().zip(texts) {
        let path = folder().join(name);
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(&path, &text).unwrap();
        }
        assert_eq!(
            std::fs::read_to_string(&path).unwrap(),
            text,
            "BLESS=1 writes {name} anew"
        );
    }
}

/// What the file says about an element: attributes (with `!` if required) and children, read without the generator.
fn declared(text: &str) -> BTreeMap<String, (Vec<String>, Vec<String>)> {
    let document = roxmltree::Document::parse(text).unwrap();
    let named = |node: &roxmltree::Node<'_, '_>, tag: &str| {
        node.is_element() && node.tag_name().name() == tag
    };
    let elements = document
        .root_element()
        .children()
        .filter(|node| named(node, "element"));
    elements
        .map(|element| {
            let attributes = element
                .descendants()
                .filter(|node| named(node, "attribute"));
            let attributes = attributes.map(|node| {
                let mark = if node.attribute("use") == Some("required") {
                    "!"
                } else {
                    ""
                };
                let words: Vec<&str> = node
                    .descendants()
                    .filter(|node| named(node, "enumeration"))
                    .filter_map(|node| node.attribute("value"))
                    .collect();
                let default = node.attribute("default").unwrap_or("");
                format!(
                    "{}{mark}={default}:{}",
                    node.attribute("name").unwrap(),
                    words.join("|")
                )
            });
            let children = element
                .descendants()
                .filter(|node| named(node, "element"))
                .filter_map(|node| node.attribute("ref").map(str::to_owned));
            let name = element.attribute("name").unwrap().to_owned();
            (name, (attributes.collect(), children.collect()))
        })
        .collect()
}

#[test]
fn elements_and_attributes_are_those_of_the_parser() {
    for (name, rules) in FILES {
        let found = declared(&std::fs::read_to_string(folder().join(name)).unwrap());
        let expected: BTreeMap<_, _> = rules
            .iter()
            .map(|rule| {
                let attributes = rule.attributes.iter().map(|rule| {
                    let mark = if rule.required { "!" } else { "" };
                    let words = match rule.kind {
                        Kind::Choice(words) => words.join("|"),
                        Kind::Boolean => "true|false".into(),
                        _ => String::new(),
                    };
                    format!("{}{mark}={}:{words}", rule.name, rule.default.unwrap_or(""))
                });
                let children = rule.children.iter().map(|child| child.name.to_owned());
                (
                    rule.name.to_owned(),
                    (attributes.collect(), children.collect()),
                )
            })
            .collect();
        assert_eq!(found, expected);
    }
}

fn xml_files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(xml_files(&path));
        } else {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Runs xmllint; `None` if it is not installed.
fn xmllint(schema: &str, files: &[PathBuf]) -> Option<(bool, String)> {
    let output = Command::new("xmllint")
        .args(["--noout", "--nonet", "--schema"])
        .arg(folder().join(schema))
        .args(files)
        .output()
        .ok()?;
    Some((
        output.status.success(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    ))
}

#[test]
fn the_schemas_accept_the_whole_catalog() {
    let catalog = Path::new(env!("CARGO_MANIFEST_DIR")).join("../catalog");
    for (schema, files) in [
        ("platform.xsd", xml_files(&catalog.join("platforms"))),
        ("system.xsd", xml_files(&catalog.join("systems"))),
        ("tasks.xsd", xml_files(&catalog.join("tasks"))),
    ] {
        assert!(!files.is_empty());
        match xmllint(schema, &files) {
            None => eprintln!("skipped: xmllint is missing (Debian package libxml2-utils)"),
            Some((good, messages)) => assert!(good, "{messages}"),
        }
    }
}

#[test]
fn the_schemas_refuse_what_the_parser_refuses() {
    let folder = tempfile::tempdir().unwrap();
    let bad = [
        "<system/>",
        "<system name=\"x\" colour=\"red\"/>",
        "<system name=\"x\" duration=\"50\"/>",
        "<system name=\"x\"><tile id=\"1\" pipeline=\"p\"/></system>",
        "<system name=\"1x\"/>",
    ];
    for (index, text) in bad.iter().enumerate() {
        let file = folder.path().join(format!("{index}.xml"));
        std::fs::write(&file, text).unwrap();
        if let Some((good, _)) = xmllint("system.xsd", &[file]) {
            assert!(!good, "{text}");
        }
    }
}
