//! What people and machines look at.
//!
//! - **In**: snapshots of the store, the configuration, the health of the sources.
//! - **Out**: reports, metrics, HTTP answers.
//! - **Never**: write to the ledger, or decide what a figure claims.
//! - **Look first** at `report::build` (rows of a report) and `metrics` (families of a scrape).

pub mod backfill;
pub mod bill;
pub mod budget;
pub mod doctor;
pub mod export;
pub mod http;
pub mod kit;
pub mod metrics;
pub mod money;
pub mod page;
pub mod prices;
pub mod pricing;
pub mod quota;
pub mod report;
pub mod reprice;
pub mod status;
