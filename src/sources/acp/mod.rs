//! The Agent Client Protocol as a front door: a proxy between a client and its
//! agent that changes no byte, and an observer that listens to a copy
//! (accounting 3, D2).
//!
//! [`proxy`] moves the bytes, [`tee`] hands copies on, [`observer`] makes
//! [`crate::ledger::doors::DoorEvent`]s of them, [`result`] reads the answers.

mod frames;
mod json;
mod message;
pub mod observer;
pub mod proxy;
pub mod result;
pub mod tee;
