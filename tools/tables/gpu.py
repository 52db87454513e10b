"""Forecast and measured steps on single GPUs, and the model of NCCL against tables of nccl-tests.

The first are in docs/notes/2026-11-first-gpu.csv, the joined files measured-*.csv of `stepcast-gpu validate`. The second, in
2026-11-nccl-tests.csv, are renewed from what `stepcast collectives --measured-tables` printed.
"""
import pathlib
import re
import statistics

from tables.page import csv_text, markdown, percent, read_csv, signed_percent

STEPS = "docs/notes/2026-11-first-gpu.md"
NCCL = "docs/notes/2026-11-nccl-tests.md"
COLUMNS = ("table", "use", "nccl", "ranks", "rows", "error_percent_from_1_mib", "bias_percent_from_1_mib", "error_percent_below",
           "bias_percent_below")


def renewed(source):
    """The rows of the printed tables, below the line and up to the next empty one, and of the geometric means below."""
    body, means = pathlib.Path(source).read_text(encoding="utf-8").split("---\n", 1)[1].split("\n\n", 1)
    rows = [dict(zip(COLUMNS, re.split(r"\s{2,}|(?<=\d) +(?=[-+\d])", line.strip()))) for line in body.splitlines()]
    for use, large, small in re.findall(r"^(.*?): +from 1 MiB on ([\d.]+) %.*; below ([\d.]+) %", means, re.M):
        rows.append({"table": "geometric mean", "use": use, "error_percent_from_1_mib": large, "error_percent_below": small})
    return {NCCL.replace(".md", ".csv"): csv_text(COLUMNS, [{name: "" if cell == "-" else cell for name, cell in row.items()} for row in rows])}


def step_row(point):
    forecast, measured = (1e3 * float(point[key]) for key in ("predicted_step_seconds", "measured_step_seconds"))
    return (f"`{point['model']}`", point["precision"], point["batch"], f"{forecast:.2f}", f"{measured:.2f}",
            signed_percent(float(point["error"])), "yes" if point["flagged"] == "1" else "")


def in_short():
    """(points, networks, mean error, median, largest) of the points without a flag."""
    rows = [row for row in read_csv(STEPS.replace(".md", ".csv")) if row["flagged"] == "0"]
    errors = [abs(float(row["error"])) for row in rows]
    return (len(rows), len({row["model"] for row in rows}), *map(percent, (statistics.mean(errors), statistics.median(errors), max(errors))))


def nccl_rows():
    lines = read_csv(NCCL.replace(".md", ".csv"))
    for mean in (row for row in lines if row["table"] == "geometric mean"):
        rows = [row for row in lines if row["table"] != "geometric mean" and row["use"] in mean["use"].split(" and ")]
        cells = [mean["use"], len(rows)]
        for column, aim in (("error_percent_from_1_mib", 10), ("error_percent_below", 20)):
            errors = [float(row[column]) for row in rows if row[column]]
            cells += [f"{mean[column]} %", f"{sum(error <= aim for error in errors)} of {len(errors)}"]
        yield cells


def tables():
    steps = [step_row(row) for row in read_csv(STEPS.replace(".md", ".csv"))]
    return {STEPS: {"gpu steps": markdown("| network | precision | batch | forecast, ms | measured, ms | error | flagged |", steps),
                    "gpu": markdown("| points | networks | mean error of the step time | median | largest |", [in_short()])},
            NCCL: {"tables": markdown("| use | tables | error from 1 MiB on | at most 10 % | error below | at most 20 % |", nccl_rows())}}
