"""Whether gemgauge works, sees everything there is, and keeps up."""

from panel import (
    GREEN, ORANGE, RED, TARGET, YELLOW, bars, dashboard, lines, mapping, stat, states, table, thresholds,
)
from promql import grouped, series, spent

UP = mapping({0: ("down", RED), 1: ("up", GREEN)})
BLOCKED = mapping({0: ("no", GREEN), 1: ("blocked", RED)})


def total(metric, by=(), **fixed):
    return f"{grouped(by)} ({series(metric, **fixed)})"


def each_step(metric, by=(), **fixed):
    return f"{grouped(by)} (increase({series(metric, **fixed)}[$__rate_interval]))"


def per_second(metric, by=()):
    return f"{grouped(by)} (rate({series(metric)}[$__rate_interval]))"


def health():
    build = series("gemgauge_build_info")
    return [
        stat("Scraped", "Whether Prometheus reaches the instance.", "none",
             f"{series('up')} and on (job, instance) last_over_time({build}[1d])", legend="{{instance}}", names=True,
             maps=UP, steps=thresholds(RED, (1, GREEN))),
        stat("Ledger readable", "Whether the last scrape could read the ledger. Down with the instance up: the ledger is "
             "broken.", "none", series("gemgauge_up"), legend="{{instance}}", names=True, maps=UP,
             steps=thresholds(RED, (1, GREEN))),
        stat("Writer", "Whether the writer cannot commit: a full disk, a locked or damaged file.", "none",
             f"max({series('gemgauge_writer_blocked')})", maps=BLOCKED, steps=thresholds(GREEN, (1, RED))),
        stat("Not read yet", "Bytes noticed in journals and not read.", "bytes", f"sum({series('gemgauge_journal_lag_bytes')})",
             steps=thresholds(GREEN, (1_000_000, YELLOW))),
        stat("Journals lost", "Deleted before they were read to their end, in the selected range: what they held stays "
             "unknown.", "short", spent(series("gemgauge_journals_lost_total")), steps=thresholds(GREEN, (1, RED))),
        stat("Failed reads", "In the selected range.", "short", spent(series("gemgauge_journal_failed_reads_total")),
             steps=thresholds(GREEN, (1, ORANGE))),
        stat("Undecodable lines", "Of unknown content, in the selected range: they make their session a lower bound.",
             "short", spent(series("gemgauge_journal_undecodable_total")), steps=thresholds(GREEN, (1, ORANGE))),
        stat("File events", "Without file events journals are looked at by interval only: later, never less.", "none",
             f"max({series('gemgauge_watch_fallback')})",
             maps=mapping({0: ("had", GREEN), 1: ("none, by interval", YELLOW)})),
        stat("Label overflow", "Label sets beyond the limit of their home, counted under other, in the selected range.",
             "short", spent(series("gemgauge_label_overflow_total")), steps=thresholds(GREEN, (1, YELLOW))),
        stat("Runtime mismatch", "Sessions of the selected range whose command names another program than the agent itself does.",
             "short", spent(series("gemgauge_runtime_mismatch_total")), steps=thresholds(GREEN, (1, YELLOW))),
        stat("Same-minute loads", "Sessions of the selected range that were loaded in the minute they were made: the load fails, and they "
             "cannot be resumed.",
             "short", spent(series("gemgauge_same_minute_loads_total")), steps=thresholds(GREEN, (1, YELLOW))),
        stat("Notices given up", "Notices of budgets that the webhook never took, in the selected range.", "short",
             spent(series("gemgauge_webhook_deliveries_total", result="gave_up")), steps=thresholds(GREEN, (1, RED))),
        table("Instances", "What runs where, by version.",
              {"instance": "Instance", "version": "Version", "revision": "Revision", "rustc": "Compiler"},
              {"Up": (f"max by (instance, version, revision, rustc) ({build})", {"mappings": UP})}),
        table("Price tables", "The newest day of the price table in use.", {"instance": "Instance", "as_of": "As of"},
              {"In use": (f"max by (instance, as_of) ({series('gemgauge_prices_info')})",
                          {"mappings": mapping({1: ("yes", GREEN)})})}),
    ]


def journals():
    return [
        bars("Journals by state", "All journals ever noticed.", "short", total("gemgauge_journals", ["state"]), "{{state}}"),
        lines("Lines read by kind", "What journal lines held. Most are repeats and control lines.", "short",
              [(per_second("gemgauge_journal_lines_total", ["kind"]), "{{kind}}")], size=(8, 8), stacked=True),
        lines("Bytes read", "From journals.", "Bps", [(per_second("gemgauge_journal_bytes_total", ["instance"]), "{{instance}}")],
              size=(8, 8)),
        lines("Lag", "Bytes noticed and not read yet: back at 0 within seconds.", "bytes",
              [(total("gemgauge_journal_lag_bytes", ["instance"]), "{{instance}}")], size=(8, 8)),
        lines("Trouble with journals", "Failed reads and entries not opened, by reason; lost journals; journals that were "
              "rewritten and read again, which is harmless.", "short",
              [(each_step("gemgauge_journal_failed_reads_total", ["reason"]), "failed: {{reason}}"),
               (each_step("gemgauge_journal_skipped_total", ["reason"]), "skipped: {{reason}}"),
               (each_step("gemgauge_journals_lost_total"), "lost"),
               (each_step("gemgauge_journal_revisions_total"), "read again")], size=(8, 8), bars=True),
        lines("Odd content", "Lines that cannot be decoded and oddities of records that were read.", "short",
              [(each_step("gemgauge_journal_undecodable_total", ["reason"]), "undecodable: {{reason}}"),
               (each_step("gemgauge_journal_anomalies_total", ["kind"]), "{{kind}}")], size=(8, 8), bars=True),
    ]


def sources():
    last = series("gemgauge_source_last_event_timestamp_seconds")
    return [
        states("Sources", "Whether each source of evidence works.",
               [(f"min by (source) ({series('gemgauge_source_up')})", "{{source}}")], size=(12, 6), maps=UP),
        lines("Events by source", "What came through each door, by result.", "short",
              [(each_step("gemgauge_events_total", ["source", "result"]), "{{source}} {{result}}")], size=(12, 6),
              bars=True, stacked=True),
        stat("Last evidence", "Since each source last handed evidence over.", "dtdurations",
             f"time() - max by (source) ({last})", legend="{{source}}", names=True, size=(12, 5)),
        lines("Notices of budgets", "What became of them: taken, failed attempts, given up.", "short",
              [(each_step("gemgauge_webhook_deliveries_total", ["result"]), "{{result}}")], size=(12, 5), bars=True),
        lines("Odd events", "What front doors met that changes no figure, and telemetry that was refused.", "short",
              [(each_step("gemgauge_door_oddities_total", ["kind"]), "{{kind}}"),
               (each_step("gemgauge_otlp_refused_total", ["reason"]), "telemetry: {{reason}}")], size=(24, 5), bars=True),
    ]


def ledger():
    buckets = series("gemgauge_ledger_commit_duration_seconds_bucket")
    rate = f"sum by (le) (rate({buckets}[$__rate_interval]))"
    return [
        lines("Commits take", "Median and 99th percentile of the writer's transactions.", "s",
              [(f"histogram_quantile(0.5, {rate})", "median"), (f"histogram_quantile(0.99, {rate})", "99 %")], size=(8, 8)),
        lines("Commits", "Transactions a second.", "ops",
              [(per_second("gemgauge_ledger_commit_duration_seconds_count", ["instance"]), "{{instance}}")], size=(8, 8)),
        lines("Files", "The database and its write-ahead log.", "bytes",
              [(total("gemgauge_ledger_bytes", ["instance", "file"]), "{{instance}} {{file}}")], size=(8, 8)),
        lines("Waiting for the writer", "Steps in its queue; a full one holds the sources back.", "short",
              [(total("gemgauge_writer_queue_length", ["instance"]), "{{instance}}")], size=(8, 8)),
        lines("Collectors of a scrape take", "By part of the scrape.", "s",
              [(f"max by (instance, collector) ({series('gemgauge_scrape_collector_duration_seconds')})",
                "{{instance}} {{collector}}")], size=(8, 8)),
        states("Collectors", "Whether each part of the scrape worked.",
               [(f"min by (instance, collector) ({series('gemgauge_scrape_collector_success')})",
                 "{{instance}} {{collector}}")], size=(8, 8), maps=UP),
    ]


def process():
    ours = f"on (job, instance) {series('gemgauge_build_info')}"
    return [
        lines("Processor", "Seconds of processor time a second.", "percentunit",
              [(f"rate({series('process_cpu_seconds_total')}[$__rate_interval]) and {ours}", "{{instance}}")], size=(6, 7)),
        lines("Memory", "Resident memory.", "bytes",
              [(f"{series('process_resident_memory_bytes')} and {ours}", "{{instance}}")], size=(6, 7)),
        lines("File descriptors", "Open ones, by how many there may be.", "percentunit",
              [(f"{series('process_open_fds')} / {series('process_max_fds')} and {ours}", "{{instance}}")], size=(6, 7)),
        lines("Threads", "Of the process.", "short", [(f"{series('process_threads')} and {ours}", "{{instance}}")],
              size=(6, 7)),
        stat("Running for", "Since the process started.", "dtdurations",
             f"time() - {series('process_start_time_seconds')} and {ours}", legend="{{instance}}", names=True, size=(24, 4)),
    ]


def build():
    return dashboard(
        "gemgauge-service", "gemgauge / Service",
        "Whether gemgauge works, sees everything there is, and keeps up.",
        TARGET,
        [
            ("Health", health()),
            ("Journals", journals()),
            ("Sources", sources()),
            ("Ledger", ledger()),
            ("Process", process()),
        ],
        since="now-6h",
    )
