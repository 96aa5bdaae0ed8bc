//! What is known of a promise.
//!
//! Why it exists: plans, tiles and verdicts judge by the same three words. What it deliberately does not know: promises.

use serde::{Deserialize, Serialize, Serializer};

/// What is known of a promise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Judgement {
    /// It was judged and kept.
    Held,
    /// It was judged and did not hold.
    Failed,
    /// It was not judged; its reason is beside it.
    NotJudged,
}

impl Judgement {
    /// That of something that was judged.
    pub fn of(held: bool) -> Self {
        match held {
            true => Self::Held,
            false => Self::Failed,
        }
    }

    /// Whether it holds: neither true nor false if it was not judged.
    pub(crate) fn as_holds<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::NotJudged => serializer.serialize_none(),
            judged => serializer.serialize_bool(*judged == Self::Held),
        }
    }
}
