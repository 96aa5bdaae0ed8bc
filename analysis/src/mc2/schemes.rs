//! The nine management schemes that mc2-rts20 compares (section 6.1).
//!
//! It deliberately does not know costs: a scheme only says where buffers go.

use super::parameters::ParameterError;
use serde::{Deserialize, Serialize};

/// Where message buffers go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Messages {
    /// Into random banks.
    Random,
    /// Into banks of level C.
    LevelC,
    /// By concurrency elimination, locking, or selective bypass.
    Optimised,
}

/// Where buffers of devices go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Devices {
    /// Into random banks.
    Random,
    /// Into banks of level C.
    LevelC,
    /// Those of levels A and B into the bank of their processor.
    Own,
    /// Only those of the half of each level with the longest periods.
    OwnLongPeriods,
    /// Only those of the half of each level with the shortest periods.
    OwnShortPeriods,
}

/// A scheme `x|y`: `x` for message buffers, `y` for buffers of devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Scheme {
    /// Everything at random.
    #[serde(rename = "R|R")]
    RR,
    /// Everything in banks of level C.
    #[serde(rename = "C|C")]
    CC,
    /// Optimised messages.
    #[serde(rename = "O|C")]
    OC,
    /// I/O buffers of levels A and B in their own banks.
    #[serde(rename = "C|C+A/B-ALL")]
    CAll,
    /// Those with long periods.
    #[serde(rename = "C|C+A/B-LP")]
    CLong,
    /// Those with short periods.
    #[serde(rename = "C|C+A/B-SP")]
    CShort,
    /// Optimised messages and I/O buffers in own banks.
    #[serde(rename = "O|C+A/B-ALL")]
    OAll,
    /// Those with long periods.
    #[serde(rename = "O|C+A/B-LP")]
    OLong,
    /// Those with short periods.
    #[serde(rename = "O|C+A/B-SP")]
    OShort,
}

impl Scheme {
    /// All, in the paper's order.
    pub const ALL: [Self; 9] = [
        Self::RR,
        Self::CC,
        Self::OC,
        Self::CAll,
        Self::CLong,
        Self::CShort,
        Self::OAll,
        Self::OLong,
        Self::OShort,
    ];

    /// The paper's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::RR => "R|R",
            Self::CC => "C|C",
            Self::OC => "O|C",
            Self::CAll => "C|C+A/B-ALL",
            Self::CLong => "C|C+A/B-LP",
            Self::CShort => "C|C+A/B-SP",
            Self::OAll => "O|C+A/B-ALL",
            Self::OLong => "O|C+A/B-LP",
            Self::OShort => "O|C+A/B-SP",
        }
    }

    /// The scheme of a name, in any case.
    ///
    /// # Errors
    /// [`ParameterError::Pattern`] lists the names.
    pub fn parse(name: &str) -> Result<Self, ParameterError> {
        Self::ALL
            .into_iter()
            .find(|s| s.name().eq_ignore_ascii_case(name.trim()))
            .ok_or_else(|| {
                ParameterError::Pattern(format!(
                    "`{name}` is not a scheme; schemes: {}",
                    Self::ALL.map(Self::name).join(", ")
                ))
            })
    }

    /// Its place in [`Self::ALL`].
    pub fn index(self) -> usize {
        self as usize
    }

    /// Where message buffers go.
    pub fn messages(self) -> Messages {
        match self {
            Self::RR => Messages::Random,
            Self::CC | Self::CAll | Self::CLong | Self::CShort => Messages::LevelC,
            Self::OC | Self::OAll | Self::OLong | Self::OShort => Messages::Optimised,
        }
    }

    /// Where buffers of devices go.
    pub fn devices(self) -> Devices {
        match self {
            Self::RR => Devices::Random,
            Self::CC | Self::OC => Devices::LevelC,
            Self::CAll | Self::OAll => Devices::Own,
            Self::CLong | Self::OLong => Devices::OwnLongPeriods,
            Self::CShort | Self::OShort => Devices::OwnShortPeriods,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_places() {
        for (index, scheme) in Scheme::ALL.into_iter().enumerate() {
            assert_eq!(scheme.index(), index);
            assert_eq!(Scheme::parse(&scheme.name().to_lowercase()), Ok(scheme));
            assert_eq!(
                scheme.name().starts_with('O'),
                scheme.messages() == Messages::Optimised
            );
        }
        insta::assert_snapshot!(Scheme::parse("X|Y").expect_err("none"), @"`X|Y` is not a scheme; schemes: R|R, C|C, O|C, C|C+A/B-ALL, C|C+A/B-LP, C|C+A/B-SP, O|C+A/B-ALL, O|C+A/B-LP, O|C+A/B-SP");
    }
}
