//! The one binary, `bulkhead`.
fn main() {}
