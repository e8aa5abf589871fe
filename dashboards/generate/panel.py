"""Panels, variables and dashboards of Grafana's classic model, as plain dictionaries."""

SOURCE = {"type": "prometheus", "uid": "${datasource}"}
GRID_WIDTH = 24

# What stands before a figure that is no exact one.
AT_LEAST_USD, ABOUT_USD, AT_LEAST = "currency:≥ $", "currency:~ $", "currency:≥ "

GREEN, YELLOW, ORANGE, RED, BLUE = "green", "yellow", "orange", "red", "blue"


def thresholds(first, *steps):
    """`thresholds("green", (0.8, "red"))`: green below 0.8, red from there."""
    return {
        "mode": "absolute",
        "steps": [{"color": first, "value": None}]
        + [{"color": color, "value": value} for value, color in steps],
    }


def mapping(values, missing=None):
    """Words in place of values; `missing` is the word where there is no value."""
    options = {
        str(value): {"text": text, "color": color, "index": index}
        for index, (value, (text, color)) in enumerate(values.items())
    }
    mappings = [{"type": "value", "options": options}]
    if missing:
        text, color = missing
        result = {"text": text, "color": color, "index": len(options)}
        mappings.append({"type": "special", "options": {"match": "null", "result": result}})
    return mappings


def override(matcher, options, **properties):
    names = {"display_name": "displayName", "width": "custom.width", "cell": "custom.cellOptions"}
    return {
        "matcher": {"id": matcher, "options": options},
        "properties": [
            {"id": names.get(name, name), "value": value} for name, value in properties.items()
        ],
    }


def column(name, **properties):
    return override("byName", name, **properties)


def query(expr, ref="A", legend="", instant=True, table=False):
    return {
        "datasource": SOURCE,
        "editorMode": "code",
        "expr": expr,
        "format": "table" if table else "time_series",
        "instant": instant,
        "legendFormat": legend or "__auto",
        "range": not instant,
        "refId": ref,
    }


def link(title, url, new_tab=False):
    return {"title": title, "url": url, "targetBlank": new_tab}


def spend_link(label):
    """The spend dashboard, for one project or model."""
    value = "${__field.labels.%s:percentencode}" % label
    return link(
        f"Spend of this {label}",
        f"/d/gemgauge-spend?var-{label}={value}&" + "${__url_time_range}&${datasource:queryparam}",
    )


def panel(kind, title, description, unit, targets, size, options, defaults=None, overrides=(), **more):
    return {
        "type": kind,
        "title": title,
        "description": description,
        "datasource": SOURCE,
        "targets": targets,
        "gridPos": {"w": size[0], "h": size[1]},
        "options": options,
        "fieldConfig": {
            "defaults": {"unit": unit, **(defaults or {})},
            "overrides": list(overrides),
        },
        **more,
    }


def reduced():
    return {"calcs": ["lastNotNull"], "fields": "", "values": False}


def stat(title, description, unit, expr, *, size=(4, 4), legend="", steps=None, decimals=None,
         maps=None, missing="—", names=False, overrides=(), links=()):
    """One number. Several expressions are alternatives, or one series each."""
    exprs = [expr] if isinstance(expr, str) else expr
    targets = [query(each, ref, legend) for each, ref in zip(exprs, "ABCD")]
    defaults = {"noValue": missing, "color": {"mode": "thresholds" if steps else "fixed"}}
    if steps:
        defaults["thresholds"] = steps
    else:
        defaults["color"]["fixedColor"] = "text"
    if decimals is not None:
        defaults["decimals"] = decimals
    if maps:
        defaults["mappings"] = maps
    if links:
        defaults["links"] = list(links)
    options = {
        "colorMode": "value",
        "graphMode": "none",
        "justifyMode": "auto",
        "orientation": "auto",
        "reduceOptions": reduced(),
        "textMode": {False: "value", True: "value_and_name", "only": "name"}[names],
    }
    return panel("stat", title, description, unit, targets, size, options, defaults, overrides)


def figure(title, description, claims, *, money=True, size=(4, 4)):
    """A figure with its claim in front: see `promql.claims`."""
    at_least = AT_LEAST_USD if money else AT_LEAST
    overrides = [override("byFrameRefID", "B", unit=at_least)]
    if len(claims) > 2:
        overrides.append(override("byFrameRefID", "C", unit=ABOUT_USD))
    description += " ≥: more may have been spent."
    if len(claims) > 2:
        description += " ~: a part is estimated."
    unit = "currencyUSD" if money else "short"
    # Counts are whole: 97 requests are not 97.00.
    return stat(title, description, unit, claims, size=size, overrides=overrides, decimals=2 if money else None)


def lines(title, description, unit, exprs, *, size=(12, 8), stacked=False, bars=False, low=0, high=None,
          overrides=(), links=(), steps=None):
    """Curves; `exprs` are pairs of expression and legend."""
    targets = [query(expr, ref, legend, instant=False) for (expr, legend), ref in zip(exprs, "ABCDEFGH")]
    custom = {
        "drawStyle": "bars" if bars else "line",
        "fillOpacity": 60 if bars else (25 if stacked else 8),
        "lineInterpolation": "linear",
        "lineWidth": 1,
        "showPoints": "never",
        "spanNulls": False,
        "stacking": {"mode": "normal" if stacked else "none", "group": "A"},
    }
    defaults = {"color": {"mode": "palette-classic"}, "custom": custom}
    if low is not None:
        defaults["min"] = low
    if high is not None:
        defaults["max"] = high
    if links:
        defaults["links"] = list(links)
    if steps:
        defaults["thresholds"] = steps
        custom["thresholdsStyle"] = {"mode": "line"}
    options = {
        "legend": {"calcs": ["lastNotNull", "max"], "displayMode": "table", "placement": "bottom", "showLegend": True},
        "tooltip": {"mode": "multi", "sort": "desc"},
    }
    return panel("timeseries", title, description, unit, targets, size, options, defaults, overrides)


def bars(title, description, unit, expr, legend, *, size=(8, 8), low=0, high=None, steps=None,
         overrides=(), links=()):
    defaults = {
        "min": low,
        "noValue": "—",
        "color": {"mode": "thresholds"},
        "thresholds": steps or thresholds(BLUE),
    }
    if high is not None:
        defaults["max"] = high
    if links:
        defaults["links"] = list(links)
    options = {
        "displayMode": "basic",
        "orientation": "horizontal",
        "reduceOptions": reduced(),
        "showUnfilled": True,
        "valueMode": "text",
    }
    return panel("bargauge", title, description, unit, [query(expr, legend=legend)], size, options, defaults,
                 overrides)


def gauges(title, description, expr, legend, *, size=(8, 8), steps=None):
    """Ratios from 0 to 1."""
    defaults = {"min": 0, "max": 1, "noValue": "—", "color": {"mode": "thresholds"}, "thresholds": steps}
    options = {
        "orientation": "auto",
        "reduceOptions": reduced(),
        "showThresholdLabels": False,
        "showThresholdMarkers": True,
    }
    return panel("gauge", title, description, "percentunit", [query(expr, legend=legend)], size, options, defaults)


def states(title, description, exprs, *, size=(24, 6), maps):
    """What held when."""
    targets = [query(expr, ref, legend, instant=False) for (expr, legend), ref in zip(exprs, "ABCDEFGH")]
    defaults = {
        "mappings": maps,
        "color": {"mode": "thresholds"},
        "thresholds": thresholds(GREEN),
        "custom": {"fillOpacity": 70, "lineWidth": 0},
    }
    options = {
        "alignValue": "left",
        "legend": {"displayMode": "list", "placement": "bottom", "showLegend": False},
        "mergeValues": True,
        "rowHeight": 0.8,
        "showValue": "auto",
        "tooltip": {"mode": "single", "sort": "none"},
    }
    return panel("state-timeline", title, description, "none", targets, size, options, defaults)


def table(title, description, keys, columns, *, unit="short", size=(12, 8), sort=None, overrides=()):
    """Rows by `keys` (label → heading); `columns` are headings with their expressions
    and properties. The queries keep no other labels, so their rows merge."""
    targets, rename, order, own = [], {}, {}, []
    for label, heading in keys.items():
        rename[label] = heading
        order[label] = len(order)
    for ref, (heading, (expr, properties)) in zip("ABCDEFGHIJ", columns.items()):
        targets.append(query(expr, ref, table=True))
        value = f"Value #{ref}" if len(columns) > 1 else "Value"
        rename[value] = heading
        order[value] = len(order)
        if properties:
            own.append(column(heading, **properties))
    transformations = [
        {"id": "merge", "options": {}},
        {
            "id": "organize",
            "options": {"excludeByName": {"Time": True}, "indexByName": order, "renameByName": rename},
        },
    ]
    defaults = {"noValue": "—", "custom": {"align": "auto", "filterable": True}}
    options = {"cellHeight": "sm", "showHeader": True}
    if sort:
        options["sortBy"] = [{"displayName": sort, "desc": True}]
    return panel("table", title, description, unit, targets, size, options, defaults, [*overrides, *own],
                 transformations=transformations)


def laid_out(rows):
    """Numbers the panels and puts them side by side, under the rows' titles."""
    panels, y = [], 0
    for title, members in rows:
        panels.append({
            "type": "row", "title": title, "collapsed": False, "panels": [],
            "gridPos": {"x": 0, "y": y, "w": GRID_WIDTH, "h": 1},
        })
        y, x, height = y + 1, 0, 0
        for member in members:
            position = member["gridPos"]
            if x + position["w"] > GRID_WIDTH:
                x, y, height = 0, y + height, 0
            panels.append({**member, "gridPos": {"x": x, "y": y, **position}})
            x, height = x + position["w"], max(height, position["h"])
        y += height
    return [{"id": number, **member} for number, member in enumerate(panels, 1)]


def variable(name, label, values):
    """A label's values, several or all of them at a time."""
    return {
        "type": "query",
        "name": name,
        "label": label,
        "datasource": SOURCE,
        "query": {"query": values, "refId": name},
        "refresh": 2,
        "sort": 1,
        "multi": True,
        "includeAll": True,
        "allValue": ".+",
        "current": {"selected": True, "text": ["All"], "value": ["$__all"]},
        "options": [],
        "regex": "",
        "hide": 0,
        "skipUrlSync": False,
    }


TARGET = [
    variable("job", "Job", "label_values(gemgauge_build_info, job)"),
    variable("instance", "Instance", 'label_values(gemgauge_build_info{job=~"$job"}, instance)'),
]


def data_source():
    return {
        "type": "datasource",
        "name": "datasource",
        "label": "Data source",
        "query": "prometheus",
        "current": {},
        "refresh": 1,
        "regex": "",
        "options": [],
        "multi": False,
        "includeAll": False,
        "hide": 0,
        "skipUrlSync": False,
    }


def page():
    """Where the page of gemgauge is: Prometheus may know it by another address than a browser does."""
    url = "http://localhost:10436"
    option = {"selected": True, "text": url, "value": url}
    return {
        "type": "textbox",
        "name": "page",
        "label": "Page",
        "description": "Address of gemgauge's own page, which links lead to",
        "query": url,
        "current": option,
        "options": [option],
        "hide": 0,
        "skipUrlSync": False,
    }


def annotation(name, expr, text):
    """A mark on every curve wherever the expression has a value."""
    return {
        "name": name, "datasource": SOURCE, "enable": True, "iconColor": BLUE,
        "expr": expr, "step": "60s", "titleFormat": name, "textFormat": text,
    }


def dashboard(uid, title, description, variables, rows, *, since, refresh="1m", annotations=()):
    tags = ["gemgauge", "gemini-cli"]
    return {
        "id": None,
        "uid": uid,
        "title": title,
        "description": description,
        "tags": tags,
        "editable": False,
        "graphTooltip": 1,
        "schemaVersion": 39,
        "version": 1,
        "timezone": "browser",
        "refresh": refresh,
        "time": {"from": since, "to": "now"},
        "annotations": {"list": list(annotations)},
        "links": [
            {
                "type": "dashboards", "title": "gemgauge", "tags": tags[:1], "asDropdown": False,
                "icon": "external link", "includeVars": True, "keepTime": True, "targetBlank": False,
                "tooltip": "", "url": "",
            },
            {
                "type": "link", "title": "Page", "tags": [], "asDropdown": False,
                "icon": "external link", "includeVars": False, "keepTime": False, "targetBlank": True,
                "tooltip": "gemgauge's own page", "url": "${page}/",
            },
        ],
        "templating": {"list": [data_source(), *variables, page()]},
        "panels": laid_out(rows),
    }
