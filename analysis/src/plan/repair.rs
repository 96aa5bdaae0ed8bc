//! The least changes that make a failing system pass.
//!
//! Why it exists: "not schedulable" helps nobody. What it deliberately does not know: how a verdict comes about; it changes
//! one number of the description, plans again, and looks for the least change by bisection.
