//! All integration tests, in one binary.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a test owns its files, its clock and its time"
)]

#[cfg(target_os = "linux")]
mod acp_ends;
#[cfg(target_os = "linux")]
mod acp_proxy;
#[cfg(unix)]
mod acp_recordings;
mod architecture;
#[cfg(unix)]
mod assets;
#[cfg(unix)]
mod backfill;
#[cfg(unix)]
mod budget;
mod command_line;
#[cfg(unix)]
mod crash;
mod crash_doors;
mod cuts;
#[cfg(unix)]
mod dashboards;
mod demo_home;
mod discovery;
#[cfg(unix)]
mod events;
mod export;
mod exposition;
#[cfg(unix)]
mod ledger_faults;
mod lines;
#[cfg(target_os = "linux")]
mod live_acp;
#[cfg(unix)]
mod live_cli;
#[cfg(unix)]
mod live_figures;
#[cfg(unix)]
mod live_interactive;
mod live_quota;
#[cfg(unix)]
mod live_run;
#[cfg(unix)]
mod live_telemetry;
mod money;
#[cfg(unix)]
mod otlp_privacy;
#[cfg(unix)]
mod page;
mod prices;
#[cfg(unix)]
mod privacy;
#[cfg(unix)]
mod prometheus;
#[cfg(unix)]
mod quota;
mod quota_poll;
mod quota_schedule;
mod quota_secret;
#[cfg(unix)]
mod quota_serve;
mod recordings;
#[cfg(unix)]
mod run;
#[cfg(unix)]
mod serve;
mod support;
mod tail_cases;
mod tail_programs;
mod telemetry_outfile;
mod telemetry_records;
mod telemetry_routes;
mod traps;
#[cfg(unix)]
mod turns;
#[cfg(unix)]
mod web_config;
#[cfg(unix)]
mod web_config_verdicts;
