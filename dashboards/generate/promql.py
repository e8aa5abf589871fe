"""Expressions that more than one panel needs.

The words are those of docs/metrics.md. `$job` and the like are the variables of
the dashboards; every one of them is matched as a regular expression, because
Grafana escapes what it puts there.
"""

SPEND = ("home", "project", "model")


def series(metric, variables=(), **fixed):
    """A selector: the target's labels always, and what else is asked for."""
    matchers = [f'{name}=~"${name}"' for name in ("job", "instance", *variables)]
    for name, value in fixed.items():
        matchers.append(f"{name}{value}" if value[0] in "!=" else f'{name}="{value}"')
    return f"{metric}{{{', '.join(matchers)}}}"


def spend_of(metric, **fixed):
    return series(metric, SPEND, **fixed)


def grouped(by):
    return f"sum by ({', '.join(by)})" if by else "sum"


def spent(selector, by=(), window="$__range"):
    """What a counter gained in a window, exactly: right across restarts, births and
    instances that join within it. `increase()` would extrapolate to the edges."""
    return (
        f"{grouped(by)} (last_over_time({selector}[{window}])"
        f" - (last_over_time({selector}[{window}] offset {window})"
        f" or min_over_time({selector}[{window}])))"
    )


def per_hour(selector, by):
    return f"{grouped(by)} (rate({selector}[$__rate_interval])) * 3600"


def share(part, whole):
    return f"{part} / ({whole} > 0)"


def doubt(window="$__range", by=()):
    """Tokens and turns of a window that keep its figures from being exact: settled as a
    lower bound, not settled yet, or turns of which nothing was measured. Where nothing
    settles at all it is absent, and absent proves nothing: then figures stand as bounds."""
    tokens = spent(spend_of("gemgauge_tokens_total"), by, window)
    exact = spent(spend_of("gemgauge_settled_tokens_total", bound="exact"), by, window)
    at_least = spent(spend_of("gemgauge_settled_tokens_total", bound="at_least"), by, window)
    parts = [f"clamp_min({tokens} - {exact}, 0)", at_least]
    if "model" not in by:
        parts.append(spent(series("gemgauge_turns_total", ("home", "project"), bound="unmeasured"), by, window))
    return " + ".join(parts)


def unpriced(window="$__range", by=()):
    return spent(spend_of("gemgauge_unpriced_tokens_total"), by, window)


def estimated(window="$__range", by=()):
    return spent(spend_of("gemgauge_cost_estimated_usd_total"), by, window)


def claims(value, doubts, estimates=None):
    """The queries of a figure with its claim: A where it is exact, B where more may have
    been spent, C where a part is estimated. Never more than one of them has a value."""
    exact, bound = f"({value}) and on () ({doubts} == 0)", f"({value}) unless on () ({doubts} == 0)"
    if estimates is None:
        return [exact, bound]
    guess = f"on () ({estimates} > 0)"
    return [f"({exact}) unless {guess}", f"({bound}) unless {guess}", f"({value}) and {guess}"]


# Quota. An observation older than this says nothing about now.
FRESH_SECONDS = 900
BUCKET = ("account", "cloud_project", "model", "token_type")
SCRAPED = ("job", "instance")


def bucket(metric, **fixed):
    return series(metric, ("account", "model"), **fixed)


def of_home(expression):
    """What belongs to an account that one of the chosen homes uses."""
    info = series("gemgauge_quota_home_info", ("home", "account"))
    return f"{expression} and on (job, instance, account, cloud_project) {info}"


def fresh(metric):
    observed = series("gemgauge_quota_observed_timestamp_seconds", ("account",))
    recent = f"({observed} > time() - {FRESH_SECONDS})"
    return of_home(f"{bucket(metric)} and on (job, instance, account, cloud_project) {recent}")


def least(expression):
    """One value of a bucket that several instances observe: what is left only falls
    until a reset, so the least is the newest."""
    return f"min by ({', '.join(BUCKET)}) ({expression})"


def most(expression):
    return f"max by ({', '.join(BUCKET)}) ({expression})"


def seconds_to_reset():
    return f"({bucket('gemgauge_quota_reset_timestamp_seconds')} - time() > 0)"


def burn(window):
    """Share of the quota used in a second."""
    return f"rate({bucket('gemgauge_quota_consumed_ratio_total')}[{window}])"


def pace(window):
    """What will be used until the reset at this rate, as a share of what is left."""
    left = f"({fresh('gemgauge_quota_remaining_ratio')})"
    return f"{burn(window)} * {seconds_to_reset()} / ({left} > 0)"


def runs_out_first():
    """What is left, where both a short and a long window say that it will not last."""
    left = f"({fresh('gemgauge_quota_remaining_ratio')})"
    short, long = (f"{burn(window)} * {seconds_to_reset()}" for window in ("30m", "2h"))
    return f"({left} < {short}) and ({left} < {long})"
