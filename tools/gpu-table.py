#!/usr/bin/env python3
"""Fills the table of forecast and measured steps on single GPUs in docs/notes/2026-11-first-gpu.md and the table that
sums it up, from the files measured-*.csv that `stepcast-gpu validate` writes after it has written its forecasts. Usage: tools/gpu-table.py [--check]
--check: changes nothing, and fails if a table is not what the files give."""
import csv
import pathlib
import re
import statistics
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/notes/2026-11-first-gpu.md"
DATA = PAGE.with_suffix("")
HEAD = "| network | precision | batch | forecast | measured | error | |\n|---|---|---|---|---|---|---|\n"


def points():
    rows = []
    for file in sorted(DATA.glob("measured-*.csv")):
        with file.open(encoding="utf-8") as text:
            rows += list(csv.DictReader(text))
    return rows


def row(point):
    forecast, measured = (1e3 * float(point[key]) for key in ("predicted_step_seconds", "measured_step_seconds"))
    flag = "flagged: the GPU waits for the host" if point["flagged"] == "1" else ""
    return (f"| `{point['model']}` | {point['precision']} | {point['batch']} | {forecast:.2f} ms | {measured:.2f} ms | "
            f"{100 * float(point['error']):+.1f} % | {flag} |\n")


def summary(rows):
    errors = [abs(100 * float(one["error"])) for one in rows if one["flagged"] == "0"]
    networks = len({one["model"] for one in rows if one["flagged"] == "0"})
    return (f"| {len(errors)} | {networks} | {statistics.mean(errors):.1f} % | {statistics.median(errors):.1f} % | {max(errors):.1f} % |\n")


def filled(text, name, table):
    pattern = re.compile(rf"(<!-- table: {name} -->\n).*?(<!-- /table -->)", re.DOTALL)
    assert pattern.search(text), f"no table {name}"
    return pattern.sub(lambda found: found[1] + table + found[2], text)


def main():
    rows = points()
    in_short = "| points | networks | mean error of the step time | median | largest |\n|---|---|---|---|---|\n" + summary(rows)
    old = PAGE.read_text(encoding="utf-8")
    new = filled(filled(old, "gpu steps", HEAD + "".join(map(row, rows))), "gpu", in_short)
    if "--check" in sys.argv and new != old:
        sys.exit(f"{PAGE.name}: a table is not what the files give: run tools/gpu-table.py")
    PAGE.write_text(new, encoding="utf-8")


if __name__ == "__main__":
    main()
