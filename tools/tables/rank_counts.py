"""Forecasts of 4, 8 and 16 ranks from the measured step of two, without links that were measured: the page of rank counts that were never measured.

Renewed with the program in 10 s: each strategy of validate/data/rank-counts.csv is run on a platform of the network's data sheet with derived
layer times, its run of two ranks is fed in by --measured, and its runs of more ranks are compared with the forecast's interval.
"""
import os
import statistics
import subprocess
import tempfile

from tables.page import ROOT, csv_text, grouped, markdown, percent, quantile, read_csv

PAGE = "docs/notes/2026-11-rank-counts.md"
ROWS = "docs/notes/2026-11-rank-counts.csv"
COLUMNS = ("point", "ranks", "measured_seconds", "forecast_seconds", "low", "high")
SCENARIO = """name: rank-counts
model: small-mlp
trace: derived
platform: ethernet-cpu
set: {{platform.network.bandwidth: 100 Mbit/s}}
batch_per_worker: 128
{strategy}
noise: {{jitter: none}}
simulation: {{steps: 4, seed: 1}}
sweep: {{workers: {ranks}}}
"""


def forecasts(program, folder, point, measured):
    """The results of a point's strategy by ranks, with the run of the fewest ranks fed in."""
    ranks = sorted(measured)
    with open(f"{folder}/scenario.yaml", "w", encoding="utf-8") as file:
        file.write(SCENARIO.format(strategy=point.replace("strategy=", "strategy: "), ranks=ranks))
    with open(f"{folder}/runs.csv", "w", encoding="utf-8") as file:
        file.write(f"workers,step_seconds\n{ranks[0]},{measured[ranks[0]]}\n")
    command = (os.path.abspath(program), "run", "scenario.yaml", "--measured", "runs.csv", "--no-advice", "-o", "results")
    subprocess.run(command, cwd=folder, check=True, capture_output=True, env=os.environ | {"STEPCAST_DATA": str(ROOT)})
    return {int(row["workers"]): row for row in read_csv(f"{folder}/results/results.csv")}


def renewed(program):
    runs = [row for row in read_csv("validate/data/rank-counts.csv") if row["launch"].startswith("ranks-")]
    rows = []
    for point, own in grouped(runs, "point").items():
        measured = {int(row["ranks"]): float(row["measured_seconds"]) for row in own}
        with tempfile.TemporaryDirectory() as folder:
            found = forecasts(program, folder, point, measured)
        rows += [{"point": point, "ranks": ranks, "measured_seconds": seconds, "forecast_seconds": float(found[ranks]["step_seconds"]),
                  "low": float(found[ranks]["step_seconds_low"]), "high": float(found[ranks]["step_seconds_high"])}
                 for ranks, seconds in sorted(measured.items())]
    return {ROWS: csv_text(COLUMNS, rows)}


def score(rows):
    """Points, mean and largest error, share inside the interval and its median width."""
    values = [{name: float(row[name]) for name in COLUMNS[2:]} for row in rows]
    errors = [abs(one["forecast_seconds"] / one["measured_seconds"] - 1) for one in values]
    inside = [one["low"] <= one["measured_seconds"] <= one["high"] for one in values]
    width = quantile(sorted((one["high"] - one["low"]) / one["forecast_seconds"] for one in values), 0.5)
    return len(rows), percent(statistics.mean(errors)), percent(max(errors)), percent(statistics.mean(inside)), percent(width)


def tables():
    rows = [row for row in read_csv(ROWS) if row["ranks"] != "2"]
    by_ranks = [(ranks, *score(own)) for ranks, own in sorted(grouped(rows, "ranks").items(), key=lambda item: int(item[0]))]
    return {PAGE: {"learned": markdown("| ranks | points | mean error | largest | inside 90 % | median width |",
                                       [*by_ranks, ("4 to 16", *score(rows))])}}
