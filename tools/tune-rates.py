#!/usr/bin/env python3
"""Searches for the learning rate with the lowest loss for each point of a scenario for `stepcast learn`, and writes it there.

Usage: tools/tune-rates.py STEPCAST [SCENARIO.yaml [RESULTS_FOLDER]]   (default: scenarios/learn/tuned-rates.yaml, results/tune-rates)

Every line of the scenario's sweep that sets the rate is one point, with one value for each key. The search trains it with the seeds 101, 102 and 103, in
which its seeds do not take part. Prints a Markdown table of the rates. A search that has been made before is not repeated.
"""
import csv
import json
import pathlib
import re
import subprocess
import sys

import yaml

LOW, HIGH, EVALUATIONS = 0.001, 3.0, 12
RATE = "learning.learning_rate"
OTHER_SEEDS = ["learning.seeds=3", "learning.seed=101", "learning.data.seed=101", "simulation.seed=101", "learning.evaluate_every=10000000"]


def evaluations(program, scenario, point, folder):
    """The (rate, loss) of all evaluations whose loss is finite, lowest loss first."""
    settings = [f"{key}={json.dumps(values[0])}" for key, values in point.items() if key != RATE]
    settings += ["sweep=null", "learning.trends=[]"] + OTHER_SEEDS
    command = [program, "search", str(scenario), "--minimise", "loss", "--over", f"{RATE}={LOW}..{HIGH}:log", "--evaluations",
               str(EVALUATIONS), "--resume", "-o", str(folder)]
    for setting in settings:
        command += ["--set", setting]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    with open(folder / "search.csv", newline="", encoding="utf-8") as file:
        rows = [(float(row["loss"]), float(row[RATE])) for row in csv.DictReader(file) if row.get("loss")]
    return [(rate, loss) for loss, rate in sorted(rows)]


def two_digits(rate):
    return float(f"{rate:.2g}")


def main(program, scenario="scenarios/learn/tuned-rates.yaml", results="results/tune-rates"):
    path = pathlib.Path(scenario)
    points = yaml.safe_load(path.read_text(encoding="utf-8"))["sweep"]
    points = [point for point in points if RATE in point]
    rates = []
    print("| point | rate | loss | loss at the next best rates |\n|---|---|---|---|")
    for number, point in enumerate(points, 1):
        found = evaluations(program, path, point, pathlib.Path(results) / str(number))
        rates.append(two_digits(found[0][0]))
        name = ", ".join(f"{key}: {json.dumps(values[0])}" for key, values in point.items() if key != RATE).replace('"', "")
        others = ", ".join(f"{loss:.3g} ({two_digits(rate):g})" for rate, loss in found[1:3])
        print(f"| {name} | {rates[-1]:g} | {found[0][1]:.3g} | {others} |", flush=True)
    left = iter(rates)
    text = re.sub(rf"(?<={re.escape(RATE)}: \[)[^\]]*", lambda _: f"{next(left):g}", path.read_text(encoding="utf-8"))
    path.write_text(text, encoding="utf-8")
    print(f"written: {path}")


if __name__ == "__main__":
    if not 2 <= len(sys.argv) <= 4:
        sys.exit(__doc__.strip())
    main(*sys.argv[1:])
