"""The discrepancy term, what the model itself gets wrong, fitted on the open figures, and its scores.

Fitted on docs/notes/2026-11-open-published-figures.csv, all of it, and written to models/measured/discrepancy.yaml. Scores leave out the
experiment (or the group) that is forecast, or are those of the part `test` by a term that is fitted on the part `fit`.
"""
import collections
import functools
import math
import re
import statistics

from tables.open_figures import DATA, interval_score
from tables.page import ROOT, markdown, percent, quantile, read_csv

PAGE = "docs/notes/2026-11-discrepancy.md"
TERM = "models/measured/discrepancy.yaml"
PROBABILITIES = [0.01, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.99]
SAMPLES = 256
MEASURED = {"level": 0.4, "own": 0.02, "doubling": 0.05, "walk": 0.2, "misfit": 0.07}  # chosen by measured_points.py
# Of layouts on equally many devices (docs/notes/2026-11-measured-points.md), and of their details (docs/notes/2026-11-pytorch-ddp.csv: buckets).
ALTERNATIVE = {"alternative": 0.1, "detail": 0.01}


def weights(devices, per_server):
    """Scales of the term: inside a server, 1 for eight devices, and between servers, 0.8 for two. forecast/discrepancy.cpp has the same rule."""
    servers = math.ceil(devices / per_server)
    return math.log2(min(devices, per_server)) / 3, 0.7 + math.log2(servers) / 10 if servers > 1 else 0


def devices_per_server(platform):
    return int(re.search(r"^  devices: (\d+)", (ROOT / f"platforms/{platform}.yaml").read_text(), re.M).group(1))


def texts_of_scenarios():
    """The text of each scenario of scenarios/published by its name; a file holds several."""
    texts = [text for file in sorted((ROOT / "scenarios/published").glob("*.yaml")) for text in file.read_text().split("\n---\n")]
    return {re.search(r"^name: (\S+)", text, re.M).group(1): text for text in texts}


def read_rows():
    """A row a figure: z = log(published step / forecast step), and the scales of the term relative to the figure that was fed in."""
    figures = {row["id"]: row for row in read_csv("scenarios/published/figures.csv")}
    fed_in = {row["experiment"]: row for row in figures.values() if row["role"] == "base"}
    rows, scenarios = [], texts_of_scenarios()
    for row in read_csv(DATA):
        figure = figures[row["id"]]
        per_server = devices_per_server(figure["platform"])
        median = float(row["median"])
        inside, between = (own - fed for own, fed in zip(weights(int(figure["devices"]), per_server),
                                                         weights(int(fed_in[row["experiment"]]["devices"]), per_server)))
        rows.append({
            "experiment": row["experiment"], "group": row["group"], "part": row["part"],
            "ideal_error": float(row["ideal_error"]) if row["ideal_error"] else None,
            "changed": "tuned:" in scenarios[row["experiment"]],
            "doublings": math.log2(int(figure["devices"]) / int(fed_in[row["experiment"]]["devices"])),
            "z": math.log(median / float(row["published"])), "inside": inside, "between": between,
            "low": math.log(float(row["low_90"]) / median), "high": math.log(float(row["high_90"]) / median)})
    return rows


def weighted_quantile(pairs, probability):
    """Quantile of (value, weight) pairs, linear between the middles of the steps of their distribution."""
    pairs = sorted(pairs)
    total = sum(weight for _, weight in pairs)
    below, before = 0, None
    for value, weight in pairs:
        middle = (below + weight / 2) / total
        if probability <= middle:
            if before is None:
                return value
            return before[0] + (probability - before[1]) / (middle - before[1]) * (value - before[0])
        before = (value, middle)
        below += weight
    return pairs[-1][0]


def shares_of_experiments(scored):
    """(score, weight) pairs from (experiment, score) pairs: every experiment weighs as much as any other."""
    counts = collections.Counter(name for name, _ in scored)
    return [(score, 1 / counts[name]) for name, score in scored]


def fitted(rows):
    """The quantiles of the errors per unit of scale at PROBABILITIES. Their median is set to 0: a forecast is the simulation's. Errors
    inside and between servers are independent."""
    errors = shares_of_experiments([(row["experiment"], row["z"] / max(0.003, math.hypot(row["inside"], row["between"]))) for row in rows])
    quantiles = [weighted_quantile(errors, p) for p in PROBABILITIES]
    return [0 if p == 0.5 else min(0, x) if p < 0.5 else max(0, x) for p, x in zip(PROBABILITIES, quantiles)]


def at(quantiles, u):
    """The inverse distribution at u, linear between PROBABILITIES and constant beyond them."""
    if u <= PROBABILITIES[0]:
        return quantiles[0]
    for i in range(1, len(PROBABILITIES)):
        if u <= PROBABILITIES[i]:
            share = (u - PROBABILITIES[i - 1]) / (PROBABILITIES[i] - PROBABILITIES[i - 1])
            return quantiles[i - 1] + share * (quantiles[i] - quantiles[i - 1])
    return quantiles[-1]


def radical_inverse(index, base):
    value, place = 0, 1 / base
    while index:
        value += place * (index % base)
        index //= base
        place /= base
    return value


NORMAL = statistics.NormalDist()
POINTS = [((k + 0.5) / SAMPLES, radical_inverse(k, 2) + 0.5 / SAMPLES, NORMAL.inv_cdf(radical_inverse(k, 3) + 0.5 / SAMPLES) / 1.645)
          for k in range(SAMPLES)]


def scaled_errors(first, second, term):
    return [first * at(term, u) + second * at(term, v) for u, v, _ in POINTS]


def errors_of(row, term):
    """Samples of the error at a row."""
    return scaled_errors(row["inside"], row["between"], term)


def bounded(row, wrong):
    """No faster than ideal scaling: a step is never shorter than its computation."""
    return wrong if row["ideal_error"] is None else max(wrong, min(0, row["z"] - math.log(1 + row["ideal_error"])))


def forecast(row, term):
    """Quantiles of rate / published rate: the simulation's median, and around it the interval of the ranges, a normal law of two halves, and the
    term."""
    values = sorted(math.exp(row["z"] + (x * row["high"] if x > 0 else -x * row["low"]) - bounded(row, wrong))
                    for wrong, (_, _, x) in zip(errors_of(row, term), POINTS))
    low, quarter, _, three_quarters, high = (quantile(values, p) for p in (0.05, 0.25, 0.5, 0.75, 0.95))
    return [low, quarter, math.exp(row["z"]), three_quarters, high]


def left_out(rows, key):
    """Forecasts of all rows, each with a term that was fitted without its experiment or group."""
    results = []
    for name in dict.fromkeys(row[key] for row in rows):
        term = fitted([row for row in rows if row[key] != name])
        results += [(row, forecast(row, term)) for row in rows if row[key] == name]
    return results


def score_row(title, results):
    mean = statistics.mean
    errors = [abs(q[2] - 1) for _, q in results]
    hard = [abs(q[2] - 1) for row, q in results if abs(row["ideal_error"] or 0) > 0.06]
    shares = (mean(q[0] <= 1 <= q[4] for _, q in results), mean(q[1] <= 1 <= q[3] for _, q in results), statistics.median(errors),
              mean(errors), statistics.median(hard), statistics.median(q[4] - q[0] for _, q in results))
    scores = (mean(interval_score(q[0], q[4], 1, 0.1) for _, q in results), mean(interval_score(q[1], q[3], 1, 0.5) for _, q in results))
    return (title, len(results), len({row["experiment"] for row, _ in results}), *map(percent, shares), *(f"{score:.3f}" for score in scores))


@functools.cache
def all_left_out():
    return left_out(read_rows(), "experiment")


def left_out_row():
    return score_row("all, leaving one experiment out", all_left_out())


def score_table(rows):
    fit = [row for row in rows if row["part"] == "fit"]
    term = fitted(fit)
    kinds = [("fit, leaving one experiment out", left_out(fit, "experiment")),
             ("fit, leaving one group out", left_out(fit, "group")),
             ("test, fitted on the part fit", [(row, forecast(row, term)) for row in rows if row["part"] == "test"])]
    changed = [(f"of these: {what}", [(row, q) for row, q in all_left_out() if row["changed"] == changed])
               for what, changed in (("of experiments without a tuned figure", False), ("of experiments with one", True))]
    lines = [score_row(*kind) for kind in kinds] + [left_out_row()] + [score_row(*kind) for kind in changed]
    return markdown("| rows | figures | experiments | in 90 % | in 50 % | median \\|error\\| | mean | median where ideal scaling is off by "
                    "more than 6 % | median width of 90 % | score 90 % | score 50 % |",
                    lines + [score_row("all, leaving one group out", left_out(rows, "group"))])


def text_of(rows):
    lines = ["# What the model itself gets wrong: log(published step / forecast step), fitted by `tools/documents.py discrepancy`, which",
             "# docs/notes/2026-11-discrepancy.md describes. Do not edit: run the tool.",
             "# quantiles: for eight devices of a server. measured: constants of the error where other points were measured",
             "# (docs/notes/2026-11-measured-points.md).",
             'source: "open published figures (scenarios/published/figures.csv)"',
             f"figures: {{figures: {len(rows)}, experiments: {len({row['experiment'] for row in rows})}}}",
             f"probabilities: [{', '.join(f'{p:g}' for p in PROBABILITIES)}]",
             f"quantiles: [{', '.join(f'{x:.4f}' for x in fitted(rows))}]",
             f"measured: {{{', '.join(f'{name}: {x:g}' for name, x in (MEASURED | ALTERNATIVE).items())}}}"]
    return "\n".join(lines) + "\n"


def files():
    """The term as the program reads it."""
    return {TERM: text_of(read_rows())}


def tables():
    return {PAGE: {"scores": score_table(read_rows())}}
