//! The Agent Client Protocol as a front door.

mod frames;
mod json;
mod message;
pub mod observer;
pub mod result;
pub mod tee;
