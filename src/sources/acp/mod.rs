//! The Agent Client Protocol as a front door.

pub mod result;
