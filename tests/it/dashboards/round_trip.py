"""Reads dashboards into Grafana's own types and writes them again: what does not come
back is a key that Grafana does not know, or a value of the wrong type. Prints one line
for each, by its path; exits with 1 if there is any."""

import json
import pathlib
import re
import sys

from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard


# What an annotation asks is the data source's own matter, which the types leave out.
OF_THE_SOURCE = re.compile(r"\.annotations\.list\[\d+\]\.(expr|step|titleFormat|textFormat)")


def lost(ours, theirs, path=""):
    if isinstance(ours, dict):
        if not isinstance(theirs, dict):
            yield f"{path}: {ours!r} became {theirs!r}"
            return
        for key, value in ours.items():
            if key in theirs:
                yield from lost(value, theirs[key], f"{path}.{key}")
            elif value is not None:
                yield f"{path}.{key}"
    elif isinstance(ours, list):
        if not isinstance(theirs, list) or len(ours) != len(theirs):
            yield f"{path}: {ours!r} became {theirs!r}"
            return
        for number, (one, other) in enumerate(zip(ours, theirs)):
            yield from lost(one, other, f"{path}[{number}]")
    elif ours != theirs:
        yield f"{path}: {ours!r} became {theirs!r}"


def main():
    register_default_plugins()
    found = []
    for file in map(pathlib.Path, sys.argv[1:]):
        ours = json.loads(file.read_text(encoding="utf-8"))
        theirs = json.loads(JSONEncoder().encode(Dashboard.from_json(ours)))
        found += [f"{file.name}{path}" for path in lost(ours, theirs) if not OF_THE_SOURCE.fullmatch(path)]
    print("\n".join(found), end="\n" if found else "")
    sys.exit(1 if found else 0)


main()
