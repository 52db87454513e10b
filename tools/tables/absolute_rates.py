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
CONVOLUTIONS = ("resnet", "vgg", "alexnet", "inception", "googlenet")
KINDS = {"kernels_single_precision": "single (fp32, tf32)", "kernels_half_precision": "half (fp16, bf16, mixed, fp8): convolutions",
         "kernels_of_transformers": "half: transformers"}


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


def kind_of(row):
    if row["precision"] in SINGLE:
        return "kernels_single_precision"
    return "kernels_half_precision" if row["network"].startswith(CONVOLUTIONS) else "kernels_of_transformers"


def shipped_ends(kind):
    """The ends of the middle 90 % of the kind's range in models/measured/input-ranges.yaml."""
    text = (ROOT / "models/measured/input-ranges.yaml").read_text(encoding="utf-8")
    ends = re.search(rf"kind: {kind}\n(?:.*\n)*?.*measured: \[([\d.]+), 1, ([\d.]+)\]", text).groups()
    return [math.exp(0.9 * math.log(float(end))) for end in ends]


def quantiles(rows, *shares):
    """Of the factors, every group with the same weight."""
    factors = shares_of_experiments([(row["group"], float(row["factor"])) for row in rows])
    return [weighted_quantile(factors, share) for share in shares]


def is_inside(row, rows):
    """Whether a factor is among the middle 90 % of those of other groups."""
    low, high = quantiles([one for one in rows if one["group"] != row["group"]], 0.05, 0.95)
    return low <= float(row["factor"]) <= high


def line_of(kind, rows):
    low, high = shipped_ends(kind)
    return (KINDS[kind], len(rows), len(collections.Counter(row["group"] for row in rows)),
            *(f"{one:.2f}" for one in quantiles(rows, 0.05, 0.5, 0.95)), percent(statistics.mean(is_inside(row, rows) for row in rows)),
            f"{low:.2f} to {high:.2f}")


def tables():
    kinds = grouped([row | {"kind": kind_of(row)} for row in read_csv(DATA)], "kind")
    return {PAGE: {"factors": markdown("| precision | experiments | groups | factor: 5 % | 50 % | 95 % | inside, group left out | 90 % of the shipped range |",
                                       [line_of(kind, kinds[kind]) for kind in KINDS])}}
