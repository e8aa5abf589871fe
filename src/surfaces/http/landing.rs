//! The page at `/`: what this is and where things are. No script, no style.

/// The page. `metrics` is a validated path: nothing in it needs escaping.
pub(super) fn page(version: &str, metrics: &str) -> String {
    format!(
        r#"<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>gemgauge</title></head>
<body>
<h1>gemgauge {version}</h1>
<p>gemgauge reads the chat journals of Google's Gemini CLI on this machine and keeps a ledger of the tokens they billed: exact where nothing can be missing, a lower bound everywhere else. Nothing of what was said in a chat is kept or shown.</p>
<ul>
<li><a href="{metrics}">Metrics</a> for Prometheus</li>
<li><a href="/api/v1/state">State</a>: live sessions, totals and sources, as JSON</li>
<li><a href="/api/v1/report/daily">Report</a>: what was spent by day, as JSON</li>
<li><a href="/api/v1/quota">Quota</a>: what is left of each limit, as JSON</li>
<li><a href="/-/ready">Ready</a> and <a href="/-/healthy">healthy</a>: how the service is doing</li>
</ul>
</body>
</html>
"#
    )
}
