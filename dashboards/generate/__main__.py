"""Writes the dashboards beside this directory: `python3 dashboards/generate [DIRECTORY]`.

They are kept in the repository as they are written, for whoever has no Python;
a test compares them with what this writes.
"""

import json
import pathlib
import sys

sys.dont_write_bytecode = True

import quota
import service
import spend


def main():
    default = pathlib.Path(__file__).resolve().parent.parent
    target = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else default
    for module in (spend, quota, service):
        made = module.build()
        text = json.dumps(made, indent=2, ensure_ascii=False) + "\n"
        (target / f"{made['uid']}.json").write_text(text, encoding="utf-8")


main()
