"""What was spent, on what, and how far the figures can be trusted."""

from panel import (
    ABOUT_USD, GREEN, ORANGE, RED, TARGET, YELLOW, bars, column, dashboard, figure, lines, link, mapping, override,
    spend_link, stat, table, thresholds, variable,
)
from promql import claims, doubt, estimated, per_hour, series, share, spend_of, spent, unpriced

COST = spend_of("gemgauge_cost_usd_total")
TOKENS = spend_of("gemgauge_tokens_total")
REQUESTS = spend_of("gemgauge_requests_total")
CACHED = spend_of("gemgauge_tokens_total", **{"class": "cached_input"})
PROMPT = spend_of("gemgauge_tokens_total", **{"class": '=~"cached_input|uncached_input"'})
SETTLED = spend_of("gemgauge_settled_tokens_total")
SETTLED_BOUND = spend_of("gemgauge_settled_tokens_total", bound='!="exact"')
UNMEASURED = series("gemgauge_turns_total", ("home", "project"), bound="unmeasured")

CLAIM = mapping({0: ("exact", GREEN), 1: ("≥", YELLOW)}, missing=("≥", YELLOW))
PROJECT_LINK = [link(
    "Spend of this project",
    "/d/gemgauge-spend?var-project=${__data.fields.Project:percentencode}&${__url_time_range}&${datasource:queryparam}",
)]
MODEL_LINK = [link(
    "Spend of this model",
    "/d/gemgauge-spend?var-model=${__data.fields.Model:percentencode}&${__url_time_range}&${datasource:queryparam}",
)]


def variables():
    target = 'job=~"$job", instance=~"$instance"'
    chain = []
    for name, label, metric in (
        ("home", "Home", "gemgauge_home_info"),
        ("project", "Project", "gemgauge_requests_total"),
        ("model", "Model", "gemgauge_requests_total"),
    ):
        matchers = ", ".join([target, *(f'{known}=~"${known}"' for known in chain)])
        yield variable(name, label, f"label_values({metric}{{{matchers}}}, {name})")
        chain.append(name)


def money(window):
    """Cost of a window: what is priced and not estimated, with its claim. Tokens without
    a price and estimates are spend that it leaves out."""
    return claims(spent(COST, window=window), f"({doubt(window)} + {unpriced(window)} + {estimated(window)})")


def calendar(metric, window):
    """A sum of the calendar. Its bounds are those of its label sets; turns that were not
    measured, tokens without a price and estimates are looked for in a window that is
    never shorter than the day or the month."""
    unmeasured = spent(UNMEASURED, window=window)
    bound = f'sum({spend_of(metric, bound="at_least")} or {spend_of(metric)} * 0)'
    return claims(f"sum({spend_of(metric)})", f"({bound} + {unmeasured} + {unpriced(window)})", estimated(window))


def now():
    return [
        figure("Today", "List-price cost since midnight, in gemgauge's time zone, as repriced.",
               calendar("gemgauge_today_cost_usd", "1d")),
        figure("This month", "List-price cost since the first of the month, in gemgauge's time zone, as repriced.",
               calendar("gemgauge_month_cost_usd", "31d")),
        figure("7 days", "List-price cost of the last 7 × 24 hours, at the first price of each request.", money("7d")),
        figure("30 days", "List-price cost of the last 30 × 24 hours, as far back as Prometheus keeps data.",
               money("30d")),
        figure("Selected range", "List-price cost of the selected range. Without estimates and what has no price, "
               "which stand under Money.", money("$__range")),
        figure("Tokens", "Tokens of the selected range, all classes.", claims(spent(TOKENS), f"({doubt()})"),
               money=False),
        figure("Requests", "Distinct billed requests found in the selected range.",
               claims(spent(REQUESTS), f"({doubt()})"), money=False, size=(3, 4)),
        stat("Turns", "Turns of the selected range, measured or not.", "short",
             spent(series("gemgauge_turns_total", ("home", "project"))), size=(3, 4)),
        stat("Unmeasured turns", "Turns of the selected range of which nothing was measured. No figure here holds them: "
             "unknown is not zero.", "short", spent(UNMEASURED), steps=thresholds(GREEN, (1, ORANGE)),
             maps=mapping({0: ("none", GREEN)}), size=(4, 4)),
        stat("Lower-bound share", "Share of the tokens settled in the selected range of which more may have been billed. "
             "Settled from journals alone, all of them are.", "percentunit",
             f"sum(increase({SETTLED_BOUND}[$__range])) / (sum(increase({SETTLED}[$__range])) > 0)",
             steps=thresholds(GREEN, (0.1, YELLOW), (0.5, ORANGE)), decimals=1, size=(4, 4)),
        stat("Prompt from the cache", "Cached input by all input of the selected range, of what was measured.",
             "percentunit", share(spent(CACHED), spent(PROMPT)), decimals=1, size=(4, 4)),
        stat("Cache savings", "What the cached tokens of the selected range would have cost more as uncached ones.",
             "currencyUSD", spent(spend_of("gemgauge_cache_savings_usd_total")), decimals=2, size=(3, 4)),
        stat("Long-context surcharge", "What prompts above 200,000 tokens cost more than at the low rates, in the "
             "selected range.", "currencyUSD", spent(spend_of("gemgauge_long_context_surcharge_usd_total")), decimals=2,
             steps=thresholds("text", (1, ORANGE)), size=(3, 4)),
    ]


def over_time():
    return [
        lines("Cost an hour by model", "List-price cost at the pace of each moment; rates do not add up to a bill.",
              "currencyUSD", [(per_hour(COST, ["model"]), "{{model}}")], stacked=True, links=[spend_link("model")]),
        lines("Cost an hour by project", "List-price cost at the pace of each moment.", "currencyUSD",
              [(per_hour(COST, ["project"]), "{{project}}")], stacked=True, links=[spend_link("project")]),
        lines("Tokens an hour by class", "Fresh and cached input, tool input, output and thoughts never overlap.",
              "short", [(per_hour(TOKENS, ["class"]), "{{class}}")], stacked=True),
        lines("Tokens an hour by role", "The main chat, its subagents, and what else the CLI asks models for.", "short",
              [(per_hour(TOKENS, ["role"]), "{{role}}")], stacked=True),
    ]


def breakdown():
    def by(label):
        return {
            "Cost": (spent(COST, [label]), {"unit": "currencyUSD", "decimals": 2}),
            "Claim": (f"({doubt(by=[label])}) > bool 0", {"mappings": CLAIM}),
            "Tokens": (spent(TOKENS, [label]), {}),
            "Requests": (spent(REQUESTS, [label]), {}),
            "Cost a request": (share(spent(COST, [label]), spent(REQUESTS, [label])),
                               {"unit": "currencyUSD", "decimals": 4}),
            "From the cache": (share(spent(CACHED, [label]), spent(PROMPT, [label])),
                               {"unit": "percentunit", "decimals": 1}),
            "Unpriced tokens": (unpriced(by=[label]), {}),
        }

    return [
        table("By model", "The selected range by model. Claim: whether all tokens are settled as exact; turns that were "
              "not measured belong to no model.", {"model": "Model"}, by("model"), sort="Cost",
              overrides=[column("Model", links=MODEL_LINK)]),
        table("By project", "The selected range by project. Claim: whether all its tokens are settled as exact and no turn "
              "of it is unmeasured.", {"project": "Project"}, by("project"), sort="Cost",
              overrides=[column("Project", links=PROJECT_LINK)]),
        bars("Dearest projects", "Cost of the selected range, the ten dearest projects.", "currencyUSD",
             f"sort_desc(topk(10, {spent(COST, ['project'])}))", "{{project}}", links=[spend_link("project")]),
        bars("By role", "Tokens of the selected range by the part that requests play.", "short",
             f"sort_desc({spent(TOKENS, ['role'])})", "{{role}}"),
        table("Homes", "The selected range by home, and how it pays. For a seat, cost is a list-price equivalent and not "
              "an invoice.",
              {"home": "Home", "instance": "Instance", "billing": "Billing", "price_list": "Price list", "team": "Team",
               "cost_center": "Cost center"},
              # Homes on two machines may have one name, and pay in two ways.
              {name: (f"{value} * on (instance, home) group_left (billing, price_list, team, cost_center) "
                      f"max by (instance, home, billing, price_list, team, cost_center) "
                      f"({series('gemgauge_home_info', ('home',))})", properties)
               for name, value, properties in (
                  ("Cost", spent(COST, ["instance", "home"]), {"unit": "currencyUSD", "decimals": 2}),
                  ("Tokens", spent(TOKENS, ["instance", "home"]), {}))},
              size=(8, 8), sort="Cost"),
    ]


def apart():
    adjustment = spend_of("gemgauge_cost_adjustment_usd")
    return [
        stat("Estimated cost", "Cost in the selected range of tokens whose source tells no cache or tool figures: no "
             "bound either way, and in no other figure of cost here but today's and this month's.", ABOUT_USD,
             estimated(), decimals=2, size=(4, 8)),
        stat("Unpriced tokens", "Tokens of the selected range without a list price: a gap in the cost, never $0.", "short",
             unpriced(), steps=thresholds(GREEN, (1, ORANGE)), size=(4, 8)),
        stat("Repriced", "What repricing changed so far, since the first price of each request: add it to figures of "
             "cost.", "currencyUSD", f"sum({adjustment})", decimals=2, size=(4, 8)),
        lines("Unpriced tokens by model", "Models to add to the price file.", "short",
              [(f"{spent(spend_of('gemgauge_unpriced_tokens_total'), ['model'], '$__rate_interval')} > 0", "{{model}}")],
              size=(6, 8), bars=True),
        lines("Estimated cost an hour", "By role: what the source tells too little of.", "currencyUSD",
              [(per_hour(spend_of("gemgauge_cost_estimated_usd_total"), ["role"]), "{{role}}")], size=(6, 8)),
    ]


def budgets():
    keys = "instance, budget"

    def of(metric):
        return f"max by ({keys}) ({series(metric)})"

    info = f"max by ({keys}, period, scope) ({series('gemgauge_budget_info')})"

    def row(expression, **properties):
        return (f"({expression}) * on ({keys}) group_left (period, scope) {info}", properties)

    limit, was, forecast = (of(f"gemgauge_budget_{name}_usd") for name in ("limit", "spent", "forecast"))
    start, end = (of(f"gemgauge_budget_period_{name}_timestamp_seconds") for name in ("start", "end"))
    usd = {"unit": "currencyUSD", "decimals": 2}
    lasts = f"({limit} - {was}) * (time() - {start}) / ({was} > 0)"
    return [
        table("Budgets", "Each budget in its period. Claim ≥: more may have been spent, so what is left is at most that. "
              "Pace above 100 %: it will not last. Lasts: until the limit at that pace, where that is before the period's end. No "
              "forecast before 3 % of the period.",
              {"budget": "Budget", "scope": "Scope", "period": "Period", "instance": "Instance"},
              {
                  "Limit": row(limit, **usd),
                  "Spent": row(was, **usd),
                  "Claim": row(f"1 - {of('gemgauge_budget_spent_exact')}", mappings=CLAIM),
                  "Used": row(f"{was} / {limit}", unit="percentunit", decimals=0,
                              thresholds=thresholds(GREEN, (0.8, ORANGE), (1, RED)), cell={"type": "color-text"}),
                  "Forecast": row(forecast, **usd),
                  "Pace": row(f"{was} / {limit} * ({end} - {start}) / (time() - {start} > 0.03 * ({end} - {start}))",
                              unit="percentunit", decimals=0,
                              thresholds=thresholds(GREEN, (1, ORANGE)), cell={"type": "color-text"}),
                  "Lasts": row(f"({lasts} >= 0) < {end} - time()", unit="dtdurations"),
                  "Ends in": row(f"{end} - time()", unit="dtdurations"),
              }, size=(16, 8), sort="Used"),
        bars("Budgets used", "Spent by limit. A bar may be too short where Claim is ≥, never too long, but for estimates.",
             "percentunit", f"sort_desc({was} / {limit})", "{{budget}}", high=1,
             steps=thresholds(GREEN, (0.8, ORANGE), (1, RED))),
        lines("Spent of each budget", "Falls to 0 where a new period begins. The dashed line is the limit.", "currencyUSD",
              [(was, "{{budget}}"), (limit, "{{budget}} limit")],
              overrides=[override("byFrameRefID", "B", **{
                  "custom.lineStyle": {"dash": [8, 6], "fill": "dash"}, "custom.fillOpacity": 0})]),
        lines("Forecast by limit", "Above 100 % a budget will be over at its period's end, at the pace so far.",
              "percentunit", [(f"{forecast} / {limit}", "{{budget}}")], steps=thresholds(GREEN, (1, RED))),
    ]


def evidence():
    turns = series("gemgauge_turns_total", ("home", "project"))
    increase = "sum by ({0}) (increase({1}[$__rate_interval]))"
    return [
        lines("Turns by claim", "Turns as they end: exact, at least, unmeasured.", "short",
              [(increase.format("bound", turns), "{{bound}}")], size=(8, 8), bars=True, stacked=True),
        lines("Settled tokens by claim", "Settled once, when nothing more is awaited for a turn.", "short",
              [(increase.format("bound", SETTLED), "{{bound}}")], size=(8, 8), bars=True, stacked=True),
        bars("Why figures are bounds", "Reasons of turns in the selected range; a turn may have several.", "short",
             f"sort_desc({spent(series('gemgauge_turn_reasons_total', ('home',)), ['reason'])} > 0)", "{{reason}}"),
        bars("How turns end", "Stop reasons in the selected range.", "short",
             f"sort_desc({spent(series('gemgauge_turn_endings_total', ('home',)), ['stop_reason'])})",
             "{{stop_reason}}"),
        stat("Settled cost by claim", "List-price cost settled in the selected range, exact and at least.", "currencyUSD",
             spent(spend_of("gemgauge_settled_cost_usd_total"), ["bound"]), legend="{{bound}}", names=True, size=(8, 8),
             decimals=2),
        stat("Changed after settling", "Turns of the selected range that evidence raised or demoted afterwards.", "short",
             spent(series("gemgauge_turn_revisions_total", ("home",)), ["change"]), legend="{{change}}", names=True,
             size=(4, 8)),
        stat("Late tokens", "Tokens of the selected range that came after their turn had settled.", "short",
             spent(series("gemgauge_late_tokens_total", ("home",))), size=(4, 8)),
        lines("Late tokens by class", "Tokens that came after their turn had settled.", "short",
              [(increase.format("class", series("gemgauge_late_tokens_total", ("home",))), "{{class}}")], size=(8, 8),
              bars=True),
        lines("Tokens today and this month", "As the ledger sums them, in gemgauge's time zone.", "short",
              [(f"sum({spend_of('gemgauge_today_tokens')})", "today"),
               (f"sum({spend_of('gemgauge_month_tokens')})", "this month")], size=(16, 8)),
    ]


def sessions():
    live = ("home", "project")
    keys = "session_id, home, project, instance"
    to_page = link("Explain this session", "${page}/#session=${__value.raw}", new_tab=True)
    return [
        stat("Live sessions", "Sessions with something going on within the last 5 minutes.", "short",
             f"sum({series('gemgauge_live_sessions', ('home',))})", size=(4, 8)),
        stat("Sessions started", "In the selected range.", "short",
             spent(series("gemgauge_sessions_started_total", live)), size=(4, 8)),
        table("Live sessions", "The live sessions that are exposed (metrics.max_sessions). The id leads to the page.",
              {"session_id": "Session", "project": "Project", "home": "Home", "instance": "Instance"},
              {
                  "Tokens": (f"max by ({keys}) ({series('gemgauge_session_tokens', live)})", {}),
                  "Cost": (f"max by ({keys}) ({series('gemgauge_session_cost_usd', live)})",
                           {"unit": "currencyUSD", "decimals": 4}),
              }, size=(16, 8), sort="Tokens", overrides=[column("Session", links=[to_page])]),
        lines("Live sessions by home", "Sessions with something going on.", "short",
              [(f"sum by (home) ({series('gemgauge_live_sessions', ('home',))})", "{{home}}")]),
        lines("Sessions started by project", "Within each step.", "short",
              [(f"sum by (project) (increase({series('gemgauge_sessions_started_total', live)}[$__rate_interval]))",
                "{{project}}")], bars=True, stacked=True),
    ]


def build():
    return dashboard(
        "gemgauge-spend", "gemgauge / Spend",
        "What Gemini CLI spent, by model, project and role, and what the figures claim.",
        [*TARGET, *variables()],
        [
            ("Spend", now()),
            ("By model, project, role and home", breakdown()),
            ("Over time", over_time()),
            ("Budgets", budgets()),
            ("Money apart", apart()),
            ("What the figures rest on", evidence()),
            ("Sessions", sessions()),
        ],
        since="now-7d",
        # A month of every counter is read for a figure of 30 days.
        refresh="5m",
    )
