//! Prefetchers of caches.

use super::Kind::{Choice, Integer, Size};
use super::platform::SOURCE;
use super::{ElementRule, any, default, required};

pub(super) const PREFETCHER: ElementRule = ElementRule {
    name: "prefetcher",
    about: "Lines that a data cache or a second level fetches ahead by itself. Without it, or with `kind=\"off\"`, it fetches only requested lines.",
    attributes: &[
        required(
            "kind",
            Choice(&["off", "stream", "stride"]),
            "`stream`: follows requests for lines at equal distances, whichever instructions make them; `stride`: those of one instruction, as gem5's \
             `StridePrefetcher`; `off`: none, whatever the other attributes say.",
        ),
        required(
            "degree",
            Integer { min: 1, max: 64 },
            "Lines that one request may fetch.",
        ),
        default(
            "page",
            Size { min: 64, max: 4096 },
            "4KiB",
            "A power of two: nothing outside of the request's own block of this size is fetched.",
        ),
        default(
            "streams",
            Integer { min: 1, max: 64 },
            "8",
            "`stream`: how many it follows at once.",
        ),
        default(
            "stride",
            Integer { min: 1, max: 64 },
            "8",
            "`stream`: lines from one request to the next, at most, up or down.",
        ),
        default(
            "training",
            Integer { min: 2, max: 16 },
            "3",
            "`stream`: number of requests at equal distances that begin a stream.",
        ),
        default(
            "distance",
            Integer { min: 1, max: 64 },
            "4",
            "`stream`: how many strides ahead of the last request lines are fetched.",
        ),
        default(
            "entries",
            Integer { min: 1, max: 4096 },
            "64",
            "`stride`: entries of its table.",
        ),
        default(
            "ways",
            Integer { min: 1, max: 64 },
            "4",
            "`stride`: ways of a set of its table.",
        ),
        default(
            "confidence-bits",
            Integer { min: 1, max: 8 },
            "3",
            "`stride`: bits of an instruction's confidence.",
        ),
        default(
            "confidence",
            Integer { min: 0, max: 255 },
            "4",
            "`stride`: initial confidence of an instruction.",
        ),
        default(
            "threshold",
            Integer { min: 0, max: 100 },
            "50",
            "`stride`: lines are fetched when the confidence reaches this percentage of its maximum.",
        ),
        SOURCE,
    ],
    children: &[any("origin")],
};
