//! A refused request changes nothing.

mod manager;
mod services;
