"""How far derived layer times are off: the factor on them that gives the published rate of the smallest run of each open experiment.

Renewed from the text that `stepcast run scenarios/published/*.yaml --results-only --draws 64 --set uncertainty=none` printed.
"""
import collections
import math
import pathlib
import re
import statistics

from tables.discrepancy import shares_of_experiments, weighted_quantile
from tables.page import ROOT, csv_text, grouped, markdown, percent, read_csv

PAGE = "docs/notes/2026-11-absolute-rates.md"
DATA = PAGE.replace(".md", ".csv")
SINGLE = ("fp32", "tf32")


def renewed(printed):
    factors, name = {}, None
    for line in pathlib.Path(printed).read_text(encoding="utf-8").splitlines():
        if heading := re.match(r"([\w.-]+): .* on ", line):
            name = heading[1]
        if fitted := re.match(r"calibrated: strategy\.compute_factor = ([\d.]+) ", line):
            factors[name] = fitted[1]
    rows = []
    for figure in read_csv("scenarios/published/figures.csv"):
        if figure["role"] == "base" and figure["experiment"] in factors:
            row = {name: figure[name] for name in ("experiment", "group", "network", "device", "framework", "precision", "devices")}
            rows.append(row | {"batch_per_device": figure["batch_per_device"], "factor": factors.pop(figure["experiment"])})
    return {DATA: csv_text(rows[0].keys(), rows)}


def is_half(row):
    return row["precision"] not in SINGLE


def shipped_factor(kind):
    """The factor that holds the middle 90 % of the kind's range in models/measured/input-ranges.yaml."""
    text = (ROOT / "models/measured/input-ranges.yaml").read_text(encoding="utf-8")
    low, high = re.search(rf"kind: {kind}\n(?:.*\n)*?.*measured: \[([\d.]+), ([\d.]+)\]", text).groups()
    return math.exp(0.9 * min(-math.log(float(low)), math.log(float(high))))


def factor_of(rows):
    """The factor within which 90 % of the experiments are, every group with the same weight."""
    return math.exp(weighted_quantile(shares_of_experiments([(row["group"], abs(math.log(float(row["factor"])))) for row in rows]), 0.9))


def line_of(title, rows, shipped):
    factors = shares_of_experiments([(row["group"], float(row["factor"])) for row in rows])
    inside = [abs(math.log(float(row["factor"]))) <= math.log(factor_of([one for one in rows if one["group"] != row["group"]])) for row in rows]
    quantiles = (f"{weighted_quantile(factors, p):.2f}" for p in (0.05, 0.5, 0.95))
    return (title, len(rows), len(collections.Counter(row["group"] for row in rows)), *quantiles, f"{factor_of(rows):.2f}",
            percent(statistics.mean(inside)), f"{shipped:.2f}")


def tables():
    half = grouped([row | {"half": is_half(row)} for row in read_csv(DATA)], "half")
    kinds = ((False, "single (fp32, tf32)", "kernels_single_precision"), (True, "half (fp16, bf16, mixed, fp8)", "kernels_half_precision"))
    lines = [line_of(title, half[key], shipped_factor(kind)) for key, title, kind in kinds]
    return {PAGE: {"factors": markdown("| precision | experiments | groups | factor: 5 % | 50 % | 95 % | 90 % are within | inside, group left out "
                                       "| of the shipped range |", lines)}}
