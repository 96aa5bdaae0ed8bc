//! Outcomes of requests: the first word of every reply.
//!
//! Why it exists: clients of all services read the same codes. What it deliberately does not know: services.

macro_rules! status {
    ($($(#[$about:meta])* $name:ident = $code:literal,)*) => {
        /// Why a request failed.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[repr(u64)]
        pub enum Status { $($(#[$about])* $name = $code,)* }

        impl Status {
            /// All of them, in the order of their codes.
            pub const ALL: &[Status] = &[$(Status::$name),*];

            /// The status of a code; none for 0, which means success, and for unknown codes.
            pub const fn from_code(code: u64) -> Option<Self> {
                match code {
                    $($code => Some(Status::$name),)*
                    _ => None,
                }
            }
        }
    };
}

status! {
    /// The service has no such operation.
    UnknownOperation = 1,
    /// The request is too short, or a field is out of its range.
    BadRequest = 2,
    /// The request cannot be finished within the client's limit or budget of processor time.
    TooLong = 3,
    /// The service serves no more clients of this kind, or the client holds too much.
    TooMany = 4,
    /// No such file, folder, pipe or timer.
    NotFound = 5,
    /// It exists already.
    Exists = 6,
    /// No room in the service's memory or image.
    NoSpace = 7,
    /// A folder is needed here.
    NotAFolder = 8,
    /// A file is needed here.
    IsAFolder = 9,
    /// The folder is not empty.
    NotEmpty = 10,
    /// The client has no such handle.
    InvalidHandle = 11,
    /// The client may not do this.
    NoRights = 12,
    /// The other side has gone.
    Closed = 13,
    /// The data are damaged.
    Corrupt = 14,
    /// It is in use.
    Busy = 15,
    /// The transfer itself failed; the unit's error is lost with the service.
    Transfer = 16,
    /// The answer is not an answer to the request.
    BadReply = 17,
    /// There was no answer in time.
    Timeout = 18,
    /// The message does not fit in the slots of the gate (`slot-size` of the description, 32 bytes of which are the header).
    TooBig = 19,
}

impl Status {
    /// Its code on the wire, never 0.
    pub const fn code(self) -> u64 {
        self as u64
    }
}

impl core::fmt::Display for Status {
    fn fmt(&self, f: &mut core::fmt::Formatter) -> core::fmt::Result {
        f.write_str(match self {
            Status::UnknownOperation => "unknown operation",
            Status::BadRequest => "bad request",
            Status::TooLong => "cannot be done within the limit of processor time",
            Status::TooMany => "too many",
            Status::NotFound => "not found",
            Status::Exists => "exists already",
            Status::NoSpace => "no space",
            Status::NotAFolder => "not a folder",
            Status::IsAFolder => "is a folder",
            Status::NotEmpty => "not empty",
            Status::InvalidHandle => "invalid handle",
            Status::NoRights => "no right",
            Status::Closed => "closed",
            Status::Corrupt => "corrupt",
            Status::Busy => "busy",
            Status::Transfer => "transfer failed",
            Status::BadReply => "bad reply",
            Status::Timeout => "no answer in time",
            Status::TooBig => "the message is larger than a slot of the gate",
        })
    }
}

impl core::error::Error for Status {}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use std::format;
    use std::string::String;
    use std::vec::Vec;

    #[test]
    fn codes_come_back() {
        for &status in Status::ALL {
            assert_eq!(Status::from_code(status.code()), Some(status));
        }
        assert_eq!(Status::from_code(0), None);
        assert_eq!(Status::from_code(u64::MAX), None);
    }

    /// The lines `PREFIX_NAME = code,` of the header, names in small letters.
    fn of_header(prefix: &str) -> Vec<(String, i64)> {
        let header = include_str!("../../c/include/bulkhead.h");
        let lines = header.lines().map(str::trim);
        let codes = lines.filter_map(|line| {
            let (name, code) = line.strip_prefix(prefix)?.split_once(" = ")?;
            let code = code.split(',').next()?.parse().ok()?;
            Some((name.replace('_', "").to_lowercase(), code))
        });
        codes.collect()
    }

    #[test]
    fn the_header_for_c_has_the_same_codes() {
        let ours = Status::ALL.iter();
        let ours: Vec<_> = ours
            .map(|status| (format!("{status:?}").to_lowercase(), status.code() as i64))
            .collect();
        assert_eq!(of_header("BH_STATUS_"), ours);
    }

    #[test]
    fn the_header_for_c_has_every_error_of_the_unit() {
        use bulkhead_abi::dtu::DtuError;
        let ours = DtuError::ALL.iter().skip(1);
        let ours: Vec<_> = ours
            .map(|error| (format!("{error:?}").to_lowercase(), -(*error as i64)))
            .collect();
        let all = of_header("BH_").into_iter();
        let found: Vec<_> = all.filter(|(_, code)| (-99..0).contains(code)).collect();
        assert_eq!(found, ours);
    }
}
