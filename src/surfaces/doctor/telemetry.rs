//! How to have Gemini CLI send its telemetry here, and what is in the way.

use std::path::Path;

use serde::Serialize;
use serde_json::{Value, json};

use super::findings::warning;
use super::{Facts, Finding, HomeFacts};
use crate::config::{Export, ListenAddress};

/// Where `serve` takes telemetry, the address to recommend first.
#[derive(Clone, Debug, Default)]
pub struct TelemetryFacts {
    pub addresses: Vec<ListenAddress>,
    /// Whether gRPC is built in.
    pub grpc: bool,
}

/// What switches telemetry on for our receiver.
#[derive(Clone, Debug, Serialize)]
pub struct TelemetryReport {
    /// Without a path: the CLI appends its own.
    pub endpoint: String,
    pub protocol: &'static str,
    /// For `.gemini/settings.json`.
    pub settings: Value,
    /// The same as variables of the CLI's process, which beat its settings.
    pub environment: Vec<String>,
}

impl TelemetryReport {
    /// `None` where no address is known beforehand.
    pub(super) fn of(facts: &TelemetryFacts) -> Option<Self> {
        let address = facts.addresses.iter().find(|address| address.port() != 0)?;
        let endpoint = format!("http://{}", reachable(address));
        // With nobody listening the CLI's HTTP exporter keeps it from exiting; gRPC does not.
        let protocol = if facts.grpc { "grpc" } else { "http" };
        let settings = json!({"telemetry": {
            "enabled": true,
            "target": "local",
            "otlpEndpoint": endpoint,
            "otlpProtocol": protocol,
            "logPrompts": false,
        }});
        let environment = [
            ("ENABLED", "true"),
            ("TARGET", "local"),
            ("OTLP_ENDPOINT", &endpoint),
            ("OTLP_PROTOCOL", protocol),
            ("LOG_PROMPTS", "false"),
        ];
        let environment =
            environment.map(|(name, value)| format!("GEMINI_TELEMETRY_{name}={value}")).to_vec();
        Some(Self { endpoint, protocol, settings, environment })
    }
}

/// As a program on this machine reaches it.
fn reachable(address: &ListenAddress) -> String {
    match address.host() {
        "::" | "0.0.0.0" => format!("127.0.0.1:{}", address.port()),
        _ => address.to_string(),
    }
}

/// What the settings of a home do with telemetry.
pub(super) fn of_home(home: &HomeFacts, facts: &Facts, findings: &mut Vec<Finding>) {
    let telemetry = home.retention.telemetry();
    let Some(export) = telemetry.export() else { return };
    let (name, path) = (&home.name, home.path.join(".gemini/settings.json"));
    let path = path.display();
    let here = TelemetryReport::of(&facts.telemetry).map_or_else(|| "here".to_owned(), |here| here.endpoint);
    match export {
        Export::Google => findings.push(elsewhere(name, "Google Cloud", &here)),
        Export::Otlp { endpoint, grpc } => match Endpoint::of(&endpoint, &facts.telemetry.addresses) {
            Endpoint::Elsewhere => findings.push(elsewhere(name, &endpoint, &here)),
            Endpoint::Ours { path: true } if !grpc => findings.push(warning(
                "telemetry_path",
                format!("{name}: Gemini CLI appends /v1/logs to {endpoint}, where nothing of ours is"),
                format!("telemetry.otlpEndpoint: \"{here}\" in {path}"),
            )),
            Endpoint::Ours { .. } if grpc && !facts.telemetry.grpc => findings.push(warning(
                "telemetry_grpc",
                format!("{name}: Gemini CLI sends telemetry by gRPC, which this gemgauge was built without"),
                format!("telemetry.otlpProtocol: \"http\" in {path}"),
            )),
            Endpoint::Ours { .. } if !grpc && facts.ledger.serve_pid.is_none() => findings.push(warning(
                "telemetry_stalls",
                format!(
                    "{name}: Gemini CLI sends telemetry to {endpoint} and no serve runs: each of its runs takes \
                     about 8.5 seconds longer to exit"
                ),
                format!("gemgauge serve, or telemetry.otlpProtocol: \"grpc\" in {path}"),
            )),
            Endpoint::Ours { .. } => {}
        },
        Export::Outfile(outfile) if !Path::new(&outfile).is_absolute() => findings.push(warning(
            "telemetry_outfile_relative",
            format!("{name}: telemetry.outfile is {outfile}, which is another file in each directory"),
            format!("an absolute path in {path}, or telemetry.outfiles in the configuration of gemgauge"),
        )),
        Export::Outfile(_) => {}
    }
    if telemetry.log_prompts {
        findings.push(warning(
            "telemetry_log_prompts",
            format!(
                "{name}: Gemini CLI puts prompts and answers into its telemetry; nobody needs them there"
            ),
            format!("telemetry.logPrompts: false in {path}"),
        ));
    }
}

fn elsewhere(name: &str, endpoint: &str, here: &str) -> Finding {
    warning(
        "telemetry_elsewhere",
        format!(
            "{name}: Gemini CLI sends its telemetry to {endpoint}, and a process sends to one place only"
        ),
        format!("have the collector there forward the logs to {here}"),
    )
}

/// Whose an endpoint is.
enum Endpoint {
    Ours {
        /// It names a path.
        path: bool,
    },
    Elsewhere,
}

impl Endpoint {
    fn of(endpoint: &str, addresses: &[ListenAddress]) -> Self {
        let rest = endpoint.split_once("://").map_or(endpoint, |(_, rest)| rest);
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let Ok(named) = authority.parse::<ListenAddress>() else { return Self::Elsewhere };
        let local =
            |address: &ListenAddress| address.is_loopback() || matches!(address.host(), "::" | "0.0.0.0");
        let same = |address: &ListenAddress| {
            address.port() == named.port() && (address == &named || (local(address) && named.is_loopback()))
        };
        if addresses.iter().any(same) { Self::Ours { path: !path.is_empty() } } else { Self::Elsewhere }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(addresses: &[&str]) -> Vec<ListenAddress> {
        addresses.iter().map(|address| address.parse().unwrap()).collect()
    }

    #[test]
    fn the_block_names_an_endpoint_without_a_path_and_no_prompts() {
        let facts = TelemetryFacts { addresses: addresses(&["localhost:0", "0.0.0.0:4318"]), grpc: true };
        let report = TelemetryReport::of(&facts).unwrap();
        assert_eq!((report.endpoint.as_str(), report.protocol), ("http://127.0.0.1:4318", "grpc"));
        assert_eq!(report.settings["telemetry"]["otlpEndpoint"], "http://127.0.0.1:4318");
        assert_eq!(report.settings["telemetry"]["logPrompts"], false);
        assert!(report.environment.contains(&"GEMINI_TELEMETRY_LOG_PROMPTS=false".to_owned()));
        let http = TelemetryReport::of(&TelemetryFacts { grpc: false, ..facts }).unwrap();
        assert_eq!(http.settings["telemetry"]["otlpProtocol"], "http");
        let unknown = TelemetryFacts { addresses: addresses(&["127.0.0.1:0"]), grpc: true };
        assert!(TelemetryReport::of(&unknown).is_none());
    }

    #[test]
    fn an_endpoint_is_ours_by_any_name_of_this_machine() {
        let ours = addresses(&["127.0.0.1:10436", "[::]:4317", "gauge.lan:9"]);
        for (endpoint, want) in [
            ("http://localhost:10436", Some(false)),
            ("http://127.0.0.1:10436/", Some(false)),
            ("http://[::1]:4317", Some(false)),
            ("localhost:4317", Some(false)),
            ("http://gauge.lan:9/otlp", Some(true)),
            ("http://localhost:10436/v1/logs", Some(true)),
            ("http://localhost:4318", None),
            ("http://collector:4317", None),
            ("http://localhost", None),
        ] {
            let got = match Endpoint::of(endpoint, &ours) {
                Endpoint::Ours { path } => Some(path),
                Endpoint::Elsewhere => None,
            };
            assert_eq!(got, want, "{endpoint}");
        }
    }
}
