//! What is refused changes nothing.

mod manager;
mod services;
