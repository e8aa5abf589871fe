"""What is left of the quota, how long it lasts, and whether the answer can be trusted."""

from panel import (
    BLUE, GREEN, ORANGE, RED, TARGET, YELLOW, annotation, bars, column, dashboard, gauges, lines, mapping, stat, states, table,
    thresholds, variable,
)
from promql import bucket, burn, fresh, least, most, of_home, pace, runs_out_first, seconds_to_reset, series, spent

BUCKET_LEGEND = "{{model}} {{token_type}}"
REMAINING = least(fresh("gemgauge_quota_remaining_ratio"))


def variables():
    target = 'job=~"$job", instance=~"$instance"'
    return [
        variable("home", "Home", f"label_values(gemgauge_home_info{{{target}}}, home)"),
        variable("account", "Account", f'label_values(gemgauge_quota_home_info{{{target}, home=~"$home"}}, account)'),
        variable("model", "Model", f'label_values(gemgauge_quota_reported{{{target}, account=~"$account"}}, model)'),
    ]


def left():
    count = "count({}) or vector(0)".format
    contradicted = most(of_home(bucket("gemgauge_quota_contradicted")))
    blocked = most(of_home(bucket("gemgauge_quota_blocked")))
    return [
        stat("Least left", "The bucket with the least left, of values observed within 15 minutes.", "percentunit",
             f"min({REMAINING})", steps=thresholds(RED, (0.1, ORANGE), (0.3, GREEN)), decimals=0),
        stat("Next reset", "Until the next reset of any bucket. A reset that has passed is due and not shown.",
             "dtdurations", f"min({of_home(seconds_to_reset())})"),
        stat("Run out before reset", "Buckets that will be empty before their reset, at the rate of the last 30 minutes "
             "and of the last 2 hours.", "short", count(least(runs_out_first())), steps=thresholds(GREEN, (1, RED))),
        stat("Blocked", "Buckets that are refused: the poll says empty, or a request met a 429 of the quota.", "short",
             count(f"{blocked} == 1"), steps=thresholds(GREEN, (1, RED))),
        stat("Contradicted", "Buckets with something left by the poll while requests were refused. The refusal is right.",
             "short", count(f"{contradicted} == 1"), steps=thresholds(GREEN, (1, ORANGE))),
        stat("Turns asleep", "Turns that wait for a retry after a 429 with a long delay.", "short",
             f"sum({series('gemgauge_turns_asleep', ('home', 'model'))})", steps=thresholds(GREEN, (1, ORANGE))),
        gauges("Left by model", "What is left of each bucket, observed within 15 minutes. A bucket that is not reported "
               "is not here.", REMAINING, BUCKET_LEGEND, size=(12, 8),
               steps=thresholds(RED, (0.1, ORANGE), (0.3, GREEN))),
        bars("Pace", "What will be used until the reset at the rate of the last 2 hours, by what is left. Above 100 % it "
             "runs out first.", "percentunit", f"sort_desc({most(pace('2h'))})", BUCKET_LEGEND, size=(12, 8), high=1,
             steps=thresholds(GREEN, (0.8, ORANGE), (1, RED))),
    ]


def details():
    def values(metric):
        return most(of_home(bucket(metric)))

    ratio = {"unit": "percentunit", "decimals": 1}
    flag = mapping({0: ("no", GREEN), 1: ("yes", RED)})
    reported = mapping({0: ("not reported", ORANGE), 1: ("yes", GREEN)})
    runway = f"({fresh('gemgauge_quota_remaining_ratio')}) / ({burn('2h')} > 0)"
    keys = {"model": "Model", "token_type": "Token type", "account": "Account", "cloud_project": "Cloud project"}
    used_by = series("gemgauge_quota_home_info", ("home", "account"))
    asleep = ("home", "model")
    until = f"max by (home, model) ({series('gemgauge_turn_asleep_until_timestamp_seconds', asleep)} - time() > 0)"
    return [
        table("Buckets", "Left: observed within 15 minutes. Runway: until empty at the rate of the last 2 hours; empty "
              "where nothing was used. Reported: whether Google states what is left. A bucket is one limit, shared by all "
              "homes of the account.", keys,
              {
                  "Left": (REMAINING, ratio),
                  "Resets in": (least(of_home(seconds_to_reset())), {"unit": "dtdurations"}),
                  "Used an hour": (most(of_home(f"({burn('2h')}) * 3600")), ratio),
                  "Runway": (least(runway), {"unit": "dtdurations"}),
                  "Blocked": (values("gemgauge_quota_blocked"), {"mappings": flag}),
                  "Contradicted": (values("gemgauge_quota_contradicted"), {"mappings": flag}),
                  "Reported": (values("gemgauge_quota_reported"), {"mappings": reported}),
              }, size=(24, 8), overrides=[column("Account", width=160)]),
        table("Blocked by", "What says that a bucket is refused: the poll, or a 429.",
              {"model": "Model", "token_type": "Token type", "evidence": "Evidence", "account": "Account"},
              {"Blocked": (f"max by (account, model, token_type, evidence) ({of_home(bucket('gemgauge_quota_blocked'))})"
                           " == 1", {"mappings": flag})}, size=(8, 8)),
        table("Asleep", "Turns that wait for a retry, and how long the last of them still waits.",
              {"home": "Home", "model": "Model"},
              {
                  "Turns": (f"sum by (home, model) ({series('gemgauge_turns_asleep', asleep)}) > 0", {}),
                  "Wakes in": (until, {"unit": "dtdurations"}),
              }, size=(8, 8)),
        table("Homes and accounts", "Which home is signed in with which account: homes of one account share its buckets.",
              {"home": "Home", "account": "Account", "cloud_project": "Cloud project"},
              {"Uses": (f"max by (home, account, cloud_project) ({used_by})", {"mappings": mapping({1: ("yes", GREEN)})})},
              size=(8, 8)),
    ]


def over_time():
    hourly = f"({burn('$__rate_interval')}) * 3600"
    return [
        lines("Left over time", "As polled; a step up is a reset. Gaps: not polled, or not reported.", "percentunit",
              [(least(of_home(bucket("gemgauge_quota_remaining_ratio"))), BUCKET_LEGEND)], high=1),
        lines("Used an hour", "Share of the quota used an hour, by drops between polls.", "percentunit",
              [(most(of_home(hourly)), BUCKET_LEGEND)]),
        lines("Pace over time", "What will be used until the reset by what is left: over 30 minutes and over 2 hours. "
              "Above 100 % with both, it runs out first.", "percentunit",
              [(most(pace("30m")), BUCKET_LEGEND + " 30 m"), (most(pace("2h")), BUCKET_LEGEND + " 2 h")],
              steps=thresholds(GREEN, (1, RED))),
        lines("Used in the selected range", "Whole quotas used up to each moment: 100 % is one full quota.", "percentunit",
              [(most(of_home(f"({bucket('gemgauge_quota_consumed_ratio_total')} - "
                             f"min_over_time({bucket('gemgauge_quota_consumed_ratio_total')}[$__range]))")),
                BUCKET_LEGEND)]),
    ]


def refusals():
    of = ("home", "model")
    increase = "sum by ({0}) (increase({1}[$__rate_interval]))"
    rejections, exhaustions, capacity = (
        series(f"gemgauge_{name}_total", of) for name in ("quota_rejections", "quota_exhaustions", "capacity_rejections")
    )
    return [
        stat("Refused for quota", "Requests of the selected range refused for the account's quota or rate limit.", "short",
             spent(rejections), steps=thresholds(GREEN, (1, ORANGE)), size=(4, 8)),
        stat("Exhaustions", "Refusals of the selected range that say the quota is used up.", "short", spent(exhaustions),
             steps=thresholds(GREEN, (1, RED)), size=(4, 8)),
        stat("Refused for capacity", "Google had no capacity: no matter of the quota.", "short", spent(capacity),
             steps=thresholds("text"), size=(4, 8)),
        lines("Refusals by reason", "For the quota or its rate, by the reason Google states.", "short",
              [(increase.format("model, reason", rejections), "{{model}} {{reason}}")], size=(12, 8), bars=True,
              stacked=True),
        lines("Exhaustions and capacity", "Quota used up, and Google without capacity: kept apart.", "short",
              [(increase.format("model", exhaustions), "{{model}} exhausted"),
               (increase.format("model", capacity), "{{model}} capacity")], size=(12, 8), bars=True),
        lines("Turns asleep over time", "Turns that wait for a retry.", "short",
              [(f"sum by (home, model) ({series('gemgauge_turns_asleep', of)})", "{{home}} {{model}}")], size=(12, 8)),
    ]


def polls():
    state = series("gemgauge_quota_state", ("home",))
    observed = "gemgauge_quota_observed_timestamp_seconds"
    by_home = series("gemgauge_quota_polls_total", ("home",))
    age = f"time() - max by (account, cloud_project) ({of_home(series(observed, ('account',)))})"
    maps = mapping({1: ("yes", BLUE)})
    return [
        stat("State", "What each home's quota source is in: off until it is switched on; docs/quota.md has the list.",
             "none", f"max by (home, state) ({state}) == 1", legend="{{home}}: {{state}}", names="only", size=(8, 6)),
        stat("Observed", "Age of the newest observation of an account. Nothing is polled while no session is live.",
             "dtdurations", age, legend="{{account}}", names=True, size=(8, 6),
             steps=thresholds(GREEN, (900, YELLOW), (3600, "text"))),
        stat("Not reported", "Buckets of which Google does not state what is left: unknown, neither 0 nor full.", "short",
             f"count(({most(of_home(bucket('gemgauge_quota_reported')))}) == 0) or vector(0)",
             steps=thresholds(GREEN, (1, YELLOW)), size=(4, 6)),
        stat("Odd answers", "Shares in answers of the selected range that were no number from 0 to 1.", "short",
             spent(series("gemgauge_quota_clamped_total")), steps=thresholds(GREEN, (1, YELLOW)), size=(4, 6)),
        states("States over time", "Which state each home was in.",
               [(f"max by (home, state) ({state}) == 1", "{{home}} {{state}}")], maps=maps),
        lines("Polls by result", "Within each step.", "short",
              [(f"sum by (result) (increase({by_home}[$__rate_interval]))", "{{result}}")], bars=True, stacked=True),
        table("Polls", "In the selected range, by home and result.", {"home": "Home", "result": "Result"},
              {"Polls": (f"{spent(by_home, ['home', 'result'])} > 0", {})}, sort="Polls"),
    ]


def build():
    return dashboard(
        "gemgauge-quota", "gemgauge / Quota",
        "What is left of the Gemini quota, whether it lasts until its reset, and what refused requests say.",
        [*TARGET, *variables()],
        [
            ("Now", left()),
            ("Buckets", details()),
            ("Over time", over_time()),
            ("Refused requests", refusals()),
            ("Polls", polls()),
        ],
        since="now-24h",
        # What is left rises only by a reset.
        annotations=[annotation("Resets", f"delta({bucket('gemgauge_quota_remaining_ratio')}[15m]) > 0.05",
                                "Reset of {{model}}")],
    )
