//! What can be wrong with a description.
//!
//! Why it exists: a user must learn file, line, column, cause and remedy, for several mistakes at once. What it
//! deliberately does not know: how a terminal shows it; the command line turns a [`Diagnostic`] into coloured text.

use std::fmt;
use std::ops::Range;

use crate::source::Span;
use crate::units::UnitError;

/// The cause of an error. The texts are complete sentences without the place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// The file cannot be read.
    #[error("cannot read `{name}`: {cause}")]
    Unreadable {
        /// The file or catalog name.
        name: String,
        /// The message of the operating system.
        cause: String,
    },
    /// Not well-formed XML.
    #[error("not well-formed XML: {0}")]
    Malformed(String),
    /// Elements nested deeper than any use.
    #[error("elements are nested more than {limit} deep")]
    TooDeep {
        /// Greatest depth.
        limit: usize,
    },
    /// An element that does not exist, or not in this place.
    #[error("unknown element <{element}> in {parent}")]
    UnknownElement {
        /// Its name.
        element: String,
        /// The enclosing element, or "the file".
        parent: String,
    },
    /// An attribute that does not exist, or not in this place.
    #[error("unknown attribute `{attribute}` of <{element}>")]
    UnknownAttribute {
        /// Its name.
        attribute: String,
        /// The element.
        element: String,
    },
    /// An attribute that must be given.
    #[error("<{element}> has no attribute `{attribute}`")]
    MissingAttribute {
        /// Its name.
        attribute: String,
        /// The element.
        element: String,
    },
    /// An element that must be given.
    #[error("<{parent}> has no <{element}>")]
    MissingElement {
        /// Its name.
        element: String,
        /// The enclosing element.
        parent: String,
    },
    /// An element that may occur only once.
    #[error("<{parent}> has more than one <{element}>")]
    RepeatedElement {
        /// Its name.
        element: String,
        /// The enclosing element.
        parent: String,
    },
    /// Text between elements.
    #[error("<{element}> contains text")]
    UnexpectedText {
        /// The enclosing element.
        element: String,
    },
    /// A quantity that cannot be read.
    #[error("{element}@{attribute}: {cause}")]
    Quantity {
        /// The element.
        element: String,
        /// The attribute.
        attribute: String,
        /// The cause.
        cause: UnitError,
    },
    /// A value that is not a number, boolean, name or word of a list.
    #[error("{element}@{attribute}: `{value}` is not {wanted}")]
    BadValue {
        /// The element.
        element: String,
        /// The attribute.
        attribute: String,
        /// The written value.
        value: String,
        /// The kind of value that was wanted.
        wanted: String,
    },
    /// A number beyond its range.
    #[error("{element}@{attribute}: {value} is out of range")]
    OutOfRange {
        /// The element.
        element: String,
        /// The attribute.
        attribute: String,
        /// The written value.
        value: String,
    },
    /// A reference to something that does not exist.
    #[error("there is no {kind} `{name}`")]
    Unknown {
        /// Tile, program, platform, clock, application and so on.
        kind: &'static str,
        /// The name that was used.
        name: String,
    },
    /// Two things with one name.
    #[error("two {kind}s are named `{name}`")]
    Duplicate {
        /// Their kind.
        kind: &'static str,
        /// Their name.
        name: String,
    },
    /// A name that results use for something else.
    #[error("no application or manager may be named `{name}`")]
    Reserved {
        /// The name.
        name: String,
    },
    /// Several applications on a tile meant for one.
    #[error("tile {tile} cannot be shared: `{first}` and `{second}` are both placed on it")]
    TileNotShared {
        /// The tile.
        tile: u64,
        /// The one that was there first.
        first: String,
        /// The second one.
        second: String,
    },
    /// An application on a tile that cannot run one.
    #[error("tile {tile} is {what}; it cannot run applications")]
    TileNotUsable {
        /// The tile.
        tile: u64,
        /// The kernel's tile or a memory tile.
        what: &'static str,
    },
    /// A program on a streaming unit, or a unit's client where there is no unit.
    #[error("tile {tile} has no {}, which `{name}` needs", if *.is_unit { "streaming unit" } else { "hart" })]
    Unit {
        /// The tile.
        tile: u64,
        /// It is a unit's client.
        is_unit: bool,
        /// Application or manager.
        name: String,
    },
    /// No tile is left for an application without a fixed place.
    #[error("no tile is free for `{name}`")]
    NoFreeTile {
        /// The application.
        name: String,
    },
    /// A send gate whose receiver does not exist.
    #[error("gate `{gate}` cannot be connected: {cause}")]
    GateToNobody {
        /// The gate.
        gate: String,
        /// The missing thing.
        cause: String,
    },
    /// A send gate that leads to something that cannot receive.
    #[error("gate `{gate}` leads to `{target}`, which is {found} and receives no messages")]
    GateType {
        /// The gate.
        gate: String,
        /// The gate that was named.
        target: String,
        /// The kind of that gate.
        found: &'static str,
    },
    /// More outstanding messages than slots.
    #[error("the senders to `{gate}` have {credits} credits in all, but it has {slots} slots")]
    Credits {
        /// The receive gate as `app/gate`.
        gate: String,
        /// Sum over all senders.
        credits: u64,
        /// Slots of the receive gate.
        slots: u64,
    },
    /// A message slot that the unit cannot handle.
    #[error("a slot of {size} is not possible")]
    SlotSize {
        /// As written.
        size: String,
    },
    /// More endpoints than exist.
    #[error("the gates on tile {tile} need {needed} endpoints, but its DTU has {endpoints}")]
    Endpoints {
        /// The tile.
        tile: u64,
        /// Sum over its applications and the system's own.
        needed: u64,
        /// Endpoints of the unit.
        endpoints: u64,
    },
    /// More memory than exists.
    #[error("memory tile {memory} has {available} for applications, but they ask for {needed}")]
    Memory {
        /// The memory tile.
        memory: u64,
        /// Bytes that may be given away.
        available: String,
        /// Bytes requested.
        needed: String,
    },
    /// A rate that the link cannot carry.
    #[error("a limit of {limit} is above the capacity of the tile's link, {capacity}")]
    LimitAboveLink {
        /// As written.
        limit: String,
        /// Width times frequency of the link.
        capacity: String,
    },
    /// More different limits than token buckets.
    #[error(
        "{limits} applications on tile {tile} have limits, but its DTU has {buckets} token buckets for them"
    )]
    Buckets {
        /// The tile.
        tile: u64,
        /// Applications with a limit.
        limits: u64,
        /// Token buckets that regulate.
        buckets: u64,
    },
    /// A file that includes itself.
    #[error("the file includes itself: {chain}")]
    Cycle {
        /// The files in order.
        chain: String,
    },
    /// A deadline after the next release.
    #[error("the deadline {deadline} is later than the period {period}")]
    DeadlineAfterPeriod {
        /// The deadline.
        deadline: String,
        /// The period.
        period: String,
    },
    /// Work that cannot be done in time even alone.
    #[error("the cost {cost} is more than the {bound_name} {bound}")]
    CostAboveBound {
        /// The cost.
        cost: String,
        /// "deadline" or "period".
        bound_name: &'static str,
        /// Its value.
        bound: String,
    },
    /// Values that contradict each other.
    #[error("{0}")]
    Inconsistent(String),
    /// No tile may run the kernel.
    #[error("the platform `{platform}` has no kernel tile")]
    NoKernelTile {
        /// Its name.
        platform: String,
    },
    /// A cache or memory whose parts do not fit together.
    #[error("{what}: {cause}")]
    Geometry {
        /// The element.
        what: String,
        /// The parts that do not fit.
        cause: String,
    },
    /// No tick divides every clock.
    #[error(
        "the clocks have no common tick: the least common multiple of {clocks} is above {limit}"
    )]
    NoCommonTick {
        /// All clocks.
        clocks: String,
        /// Greatest tick frequency.
        limit: String,
    },
    /// An override that is not of the form PATH=VALUE.
    #[error("`{text}` is not an override")]
    OverrideSyntax {
        /// As given.
        text: String,
    },
    /// A path that matches nothing.
    #[error("nothing matches `{segment}` of the path `{path}`")]
    PathUnmatched {
        /// The part that fails.
        segment: String,
        /// The whole path.
        path: String,
    },
}

impl Problem {
    /// A stable code for machines and for the book's list of errors.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unreadable { .. } => "model::unreadable",
            Self::Malformed(_) => "model::malformed-xml",
            Self::TooDeep { .. } => "model::too-deep",
            Self::UnknownElement { .. } => "model::unknown-element",
            Self::UnknownAttribute { .. } => "model::unknown-attribute",
            Self::MissingAttribute { .. } => "model::missing-attribute",
            Self::MissingElement { .. } => "model::missing-element",
            Self::RepeatedElement { .. } => "model::repeated-element",
            Self::UnexpectedText { .. } => "model::unexpected-text",
            Self::Quantity { cause, .. } => match cause {
                UnitError::Missing { .. } => "model::missing-unit",
                UnitError::Wrong { .. } => "model::wrong-unit",
                UnitError::Overflow { .. } => "model::overflow",
                UnitError::NotANumber { .. } | UnitError::NotWhole { .. } => "model::bad-number",
            },
            Self::BadValue { .. } => "model::bad-value",
            Self::OutOfRange { .. } => "model::out-of-range",
            Self::Unknown { .. } => "model::unknown-reference",
            Self::Duplicate { .. } => "model::duplicate-name",
            Self::Reserved { .. } => "model::reserved-name",
            Self::TileNotShared { .. } => "model::tile-not-shared",
            Self::TileNotUsable { .. } => "model::tile-not-usable",
            Self::Unit { .. } => "model::unit",
            Self::NoFreeTile { .. } => "model::no-free-tile",
            Self::GateToNobody { .. } => "model::gate-to-nobody",
            Self::GateType { .. } => "model::gate-type",
            Self::Credits { .. } => "model::credits",
            Self::SlotSize { .. } => "model::slot-size",
            Self::Endpoints { .. } => "model::endpoints",
            Self::Memory { .. } => "model::memory",
            Self::LimitAboveLink { .. } => "model::limit-above-link",
            Self::Buckets { .. } => "model::buckets",
            Self::Cycle { .. } => "model::cycle",
            Self::DeadlineAfterPeriod { .. } => "model::deadline-after-period",
            Self::CostAboveBound { .. } => "model::cost-above-bound",
            Self::Inconsistent(_) => "model::inconsistent",
            Self::NoKernelTile { .. } => "model::no-kernel-tile",
            Self::Geometry { .. } => "model::geometry",
            Self::NoCommonTick { .. } => "model::no-common-tick",
            Self::OverrideSyntax { .. } => "model::override-syntax",
            Self::PathUnmatched { .. } => "model::path-unmatched",
        }
    }
}

/// One error with its place and its remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The mistake. Boxed, because results carry it.
    pub problem: Box<Problem>,
    /// Where. `None` only if there is no text at all (an unreadable file).
    pub span: Option<Span>,
    /// The remedy.
    pub help: String,
    /// The variant in which it is wrong, if the system itself is right.
    pub variant: Option<String>,
}

impl Diagnostic {
    /// An error at a place.
    pub fn new(problem: Problem, span: &Span, help: impl Into<String>) -> Self {
        Self {
            problem: Box::new(problem),
            span: Some(span.clone()),
            help: help.into(),
            variant: None,
        }
    }

    /// An error without a text.
    pub fn without_place(problem: Problem, help: impl Into<String>) -> Self {
        Self {
            problem: Box::new(problem),
            span: None,
            help: help.into(),
            variant: None,
        }
    }

    /// Stable code, such as `model::missing-unit`.
    pub fn code(&self) -> &'static str {
        self.problem.code()
    }

    /// Name of the file.
    pub fn file(&self) -> Option<&str> {
        self.span.as_ref().map(|span| span.source.name.as_str())
    }

    /// Text of the file.
    pub fn text(&self) -> Option<&str> {
        self.span.as_ref().map(|span| span.source.text.as_str())
    }

    /// The bytes of the text that the error concerns.
    pub fn range(&self) -> Option<Range<usize>> {
        self.span.as_ref().map(|span| span.start..span.end)
    }

    /// Line and column, both from 1.
    pub fn position(&self) -> Option<(usize, usize)> {
        self.span.as_ref().map(Span::position)
    }

    /// The cause in one sentence, with the variant if it is wrong only there.
    pub fn message(&self) -> String {
        match &self.variant {
            Some(variant) => format!("{} (in variant `{variant}`)", self.problem),
            None => self.problem.to_string(),
        }
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(span) = &self.span {
            write!(f, "{}: ", span.place())?;
        }
        write!(f, "{}", self.message())?;
        if !self.help.is_empty() {
            write!(f, "\n  help: {}", self.help)?;
        }
        Ok(())
    }
}

/// Everything that is wrong, in the order of the files. Never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Errors {
    /// The errors.
    pub list: Vec<Diagnostic>,
}

impl Errors {
    /// Sorts errors by their places in each file and removes repetitions: a mistake shared by several variants is
    /// one mistake.
    pub fn new(mut list: Vec<Diagnostic>) -> Self {
        let mut seen: Vec<Diagnostic> = Vec::new();
        list.retain(|error| {
            let key = Diagnostic {
                variant: None,
                ..error.clone()
            };
            let new = !seen.contains(&key);
            if new {
                seen.push(key);
            }
            new
        });
        let mut files: Vec<String> = Vec::new();
        for error in &list {
            if let Some(file) = error.file().filter(|file| !files.iter().any(|f| f == file)) {
                files.push(file.to_owned());
            }
        }
        list.sort_by_key(|error| {
            let file = files
                .iter()
                .position(|file| Some(file.as_str()) == error.file());
            (file, error.range().map_or(0, |range| range.start))
        });
        Self { list }
    }
}

impl From<Diagnostic> for Errors {
    fn from(diagnostic: Diagnostic) -> Self {
        Self {
            list: vec![diagnostic],
        }
    }
}

impl fmt::Display for Errors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, diagnostic) in self.list.iter().enumerate() {
            if index > 0 {
                writeln!(f)?;
            }
            write!(f, "{diagnostic}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Errors {}
