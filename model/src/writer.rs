//! XML as text: elements with indentation, attributes, quantities in one unit.
//!
//! Why it exists: platforms, systems and task systems are written back as descriptions. What it deliberately does not know: which elements
//! exist.

use crate::units::{Frequency, Rate, Size, Time};

/// Writes elements with indentation.
#[derive(Default)]
pub(crate) struct Writer {
    text: String,
    open: Vec<String>,
    /// The last start tag has no `>` yet.
    pending: bool,
}

impl Writer {
    /// The text.
    pub(crate) fn finish(self) -> String {
        self.text
    }

    pub(crate) fn start(&mut self, name: &str) -> &mut Self {
        if self.pending {
            self.text.push_str(">\n");
        }
        self.text.push_str(&"  ".repeat(self.open.len()));
        self.text.push('<');
        self.text.push_str(name);
        self.open.push(name.to_owned());
        self.pending = true;
        self
    }

    pub(crate) fn attribute(&mut self, name: &str, value: impl std::fmt::Display) -> &mut Self {
        self.text.push(' ');
        self.text.push_str(name);
        self.text.push_str("=\"");
        for character in value.to_string().chars() {
            match character {
                '&' => self.text.push_str("&amp;"),
                '<' => self.text.push_str("&lt;"),
                '"' => self.text.push_str("&quot;"),
                // A reader turns plain white space in attributes into blanks.
                '\n' | '\t' | '\r' => self.text.push_str(&format!("&#{};", u32::from(character))),
                other => self.text.push(other),
            }
        }
        self.text.push('"');
        self
    }

    pub(crate) fn optional(
        &mut self,
        name: &str,
        value: Option<impl std::fmt::Display>,
    ) -> &mut Self {
        match value {
            Some(value) => self.attribute(name, value),
            None => self,
        }
    }

    pub(crate) fn size(&mut self, name: &str, size: Size) -> &mut Self {
        self.attribute(name, format_args!("{}B", size.0))
    }

    pub(crate) fn optional_size(&mut self, name: &str, size: Option<Size>) -> &mut Self {
        match size {
            Some(size) => self.size(name, size),
            None => self,
        }
    }

    pub(crate) fn bytes(&mut self, name: &str, bytes: u32) -> &mut Self {
        self.size(name, Size(u64::from(bytes)))
    }

    pub(crate) fn rate(&mut self, name: &str, rate: Rate) -> &mut Self {
        self.attribute(name, format_args!("{}B/s", rate.0))
    }

    pub(crate) fn time(&mut self, name: &str, time: Time) -> &mut Self {
        self.attribute(name, format_args!("{}ns", time.nanoseconds()))
    }

    pub(crate) fn frequency(&mut self, name: &str, frequency: Frequency) -> &mut Self {
        self.attribute(name, format_args!("{}Hz", frequency.0))
    }

    pub(crate) fn end(&mut self) {
        let Some(name) = self.open.pop() else { return };
        if self.pending {
            self.text.push_str("/>\n");
        } else {
            self.text.push_str(&"  ".repeat(self.open.len()));
            self.text.push_str(&format!("</{name}>\n"));
        }
        self.pending = false;
    }
}
