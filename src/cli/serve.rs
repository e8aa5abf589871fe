use std::path::PathBuf;

use clap::Args;

use crate::config::{Flags, ListenAddress, QUOTA_RISK, QuotaLayer, TelemetryPath, WebLayer};

/// Watch the homes, keep the ledger up to date and serve metrics and figures.
///
/// One line says where the page and the metrics are. One `serve` runs per
/// ledger; a second one exits with 1 and names the first.
#[derive(Debug, Args)]
pub struct Serve {
    /// Where to listen, host:port. Repeatable
    /// [env: GEMGAUGE_WEB_LISTEN_ADDRESS, separated by commas] [default: 127.0.0.1:10436]
    #[arg(long = "web.listen-address", value_name = "ADDRESS")]
    pub listen_address: Vec<ListenAddress>,

    /// Where Prometheus scrapes [env: GEMGAUGE_WEB_TELEMETRY_PATH] [default: /metrics]
    #[arg(long = "web.telemetry-path", value_name = "PATH")]
    pub telemetry_path: Option<TelemetryPath>,

    /// Listen on addresses that other machines reach although nothing asks who
    /// reads there [env: GEMGAUGE_WEB_ALLOW_UNAUTHENTICATED]
    #[arg(long = "web.allow-unauthenticated")]
    pub allow_unauthenticated: bool,

    /// TLS, headers and passwords, in the format of Prometheus's exporters;
    /// read again when it changes [env: GEMGAUGE_WEB_CONFIG_FILE]
    #[arg(long = "web.config.file", value_name = "FILE")]
    pub config_file: Option<PathBuf>,

    /// Poll the quota of homes that are signed in with Google; read the risk in --help
    #[arg(long, long_help = quota_help())]
    pub quota: bool,
}

fn quota_help() -> String {
    format!(
        "Poll the quota of homes that are signed in with Google [env: {}]\n\n{QUOTA_RISK}",
        crate::config::keys::QUOTA_ENABLED.env
    )
}

impl Serve {
    /// Adds these flags to the common ones.
    pub fn apply(self, flags: &mut Flags) {
        flags.layer.web = Some(WebLayer {
            listen_address: (!self.listen_address.is_empty()).then_some(self.listen_address),
            telemetry_path: self.telemetry_path,
            allow_unauthenticated: self.allow_unauthenticated.then_some(true),
            config_file: self.config_file,
            ..WebLayer::default()
        });
        flags.layer.quota = Some(QuotaLayer { enabled: self.quota.then_some(true), ..QuotaLayer::default() });
    }
}
