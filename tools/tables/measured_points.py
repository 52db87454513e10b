"""Forecasts of the open figures that learn from measured points, and the two constants of their error model.

Renewed from docs/notes/2026-11-open-published-figures.csv without a run (SOURCE is ignored): for each figure, the term (discrepancy) and the
constants are chosen without its group; the smallest point of its experiment and the next ones are fed in. forecast/posterior.cpp has the
same rule; here, the draws of the ranges at all points of an experiment have equal ranks.
"""
import functools
import itertools
import math
import statistics

from tables import discrepancy
from tables.open_figures import DATA as FIGURES
from tables.open_figures import interval_score
from tables.page import csv_text, grouped, markdown, percent, quantile, read_csv

PAGE = "docs/notes/2026-11-measured-points.md"
DATA = PAGE.replace(".md", ".csv")
REPEATABILITY = 0.005
CANDIDATES = [dict(zip(("level", "own"), values)) for values in itertools.product((0.1, 0.2, 0.4), (0.01, 0.02, 0.03, 0.05))]
SAMPLES = discrepancy.SAMPLES


def normal_samples(stream):
    """Samples of a standard normal variable; forecast/posterior.cpp has the same."""
    return [discrepancy.NORMAL.inv_cdf(((k * (2 * stream + 77) + 29 * stream) % SAMPLES + 0.5) / SAMPLES) for k in range(SAMPLES)]


NORMALS = [normal_samples(stream) for stream in range(64)]


def covariance(a, b):
    mean_a, mean_b = sum(a) / SAMPLES, sum(b) / SAMPLES
    return sum((x - mean_a) * (y - mean_b) for x, y in zip(a, b)) / SAMPLES


def solved(matrix, right):
    """x with matrix x = right, by elimination."""
    rows = [row + [value] for row, value in zip(matrix, right)]
    for i, row in enumerate(rows):
        for below in rows[i + 1:]:
            share = below[i] / row[i]
            below[i:] = [x - share * y for x, y in zip(below[i:], row[i:])]
    x = [0.0] * len(rows)
    for i in reversed(range(len(rows))):
        x[i] = (rows[i][-1] - sum(rows[i][k] * x[k] for k in range(i + 1, len(rows)))) / rows[i][i]
    return x


def range_at(row, x):
    return x * row["high"] if x > 0 else -x * row["low"]


def forecast(row, fed, constants, terms):
    """Quantiles of rate / published rate where the points `fed` were measured, besides the smallest one. The middle has the error that
    the measurements leave likely, not the median of all."""
    level, own = constants.values()
    covariances = [[covariance(terms[a["id"]], terms[b["id"]]) + level ** 2 for b in fed] for a in [row, *fed]]
    for i, line in enumerate(covariances[1:]):
        line[i] += own ** 2 + REPEATABILITY ** 2
    gain = solved(covariances[1:], covariances[0])
    term = terms[row["id"]]
    values = []
    for k, (_, _, x) in enumerate(discrepancy.POINTS):
        common = level * NORMALS[1][k]
        wrong = term[k] + common + own * NORMALS[3][k]
        for i, one in enumerate(fed):
            sample = terms[one["id"]][k] + common + own * NORMALS[4 + i][k] + REPEATABILITY * NORMALS[20 + i][k]
            wrong += gain[i] * (one["z"] + range_at(one, x) - sample)
        values.append(math.exp(row["z"] + range_at(row, x) - discrepancy.bounded(row, wrong)))
    values.sort()
    learned = sum(share * one["z"] for share, one in zip(gain, fed))
    return [quantile(values, 0.05), math.exp(row["z"] - discrepancy.bounded(row, learned)), quantile(values, 0.95)]


@functools.cache
def experiments():
    rows = discrepancy.read_rows()
    for row, figure in zip(rows, read_csv(FIGURES), strict=True):
        row["id"] = figure["id"]
    return rows, list(grouped(rows, "experiment").values())


def scored(own, count, constants, terms):
    """The figures of an experiment beyond the `count` measured points, with their quantiles."""
    return [(row, forecast(row, own[:count], constants, terms)) for row in own[count:]]


def renewed(_):
    rows, all_own = experiments()
    results = {}  # by group and candidate
    terms_of_group = {}
    for group in dict.fromkeys(row["group"] for row in rows):
        term = discrepancy.fitted([row for row in rows if row["group"] != group])
        terms_of_group[group] = {row["id"]: discrepancy.errors_of(row, term) for row in rows if row["group"] == group}
        for i, constants in enumerate(CANDIDATES):
            results[group, i] = [one for own in all_own if own[0]["group"] == group
                                 for one in scored(own, 1, constants, terms_of_group[group])]

    def others(group, i):
        return [q for (other, j), own in results.items() if j == i and other != group for _, q in own]

    def best_without(group):
        """The least `own` with which a level holds 90 %, and of these levels that with the best interval score."""
        def holds(i):
            return statistics.mean(q[0] <= 1 <= q[2] for q in others(group, i)) >= 0.9

        def score(i):
            return statistics.mean(interval_score(q[0], q[2], 1, 0.1) for q in others(group, i))
        return CANDIDATES[min(range(len(CANDIDATES)), key=lambda i: (not holds(i), CANDIDATES[i]["own"], score(i)))]
    if best_without(None) != discrepancy.MEASURED:
        raise SystemExit(f"measured-points: discrepancy.py has other constants than {best_without(None)}")
    lines = []
    for own in all_own:
        group = own[0]["group"]
        constants = best_without(group)
        for row in own[1:]:
            term = discrepancy.forecast(row, discrepancy.fitted([one for one in rows if one["group"] != group]))
            lines.append(line_of(row, 1, {}, (term[0], term[2], term[4])))
        for count in (1, 2):
            lines += [line_of(row, count + 1, constants, q) for row, q in scored(own, count, constants, terms_of_group[group])]
    return {DATA: csv_text(lines[0].keys(), sorted(lines, key=lambda line: line["fed_in"]))}


def line_of(row, fed_in, constants, quantiles):
    low, median, high = quantiles
    return {"id": row["id"], "group": row["group"], "fed_in": fed_in, "level": constants.get("level"), "own": constants.get("own"), "low_90": low, "median": median, "high_90": high, "ideal_error": row["ideal_error"]}


def score_line(title, rows):
    hard = [row for row in rows if abs(float(row["ideal_error"] or 0)) > 0.06]

    def errors(some):
        return [abs(float(row["median"]) - 1) for row in some]

    def inside(some):
        return percent(statistics.mean(float(row["low_90"]) <= 1 <= float(row["high_90"]) for row in some))
    widths = [float(row["high_90"]) - float(row["low_90"]) for row in rows]
    return (title, len(rows), percent(statistics.median(errors(rows))), percent(statistics.mean(errors(rows))),
            percent(statistics.median(errors(hard))), inside(rows), inside(hard), percent(statistics.median(widths)))


def tables():
    rows = read_csv(DATA)
    third = {row["id"] for row in rows if row["fed_in"] == "3"}
    lines = [score_line("the smallest point", [row for row in rows if row["fed_in"] == "1"]),
             score_line("the smallest and the next", [row for row in rows if row["fed_in"] == "2"]),
             score_line("of these: beyond a third point", [row for row in rows if row["fed_in"] == "2" and row["id"] in third]),
             score_line("the three smallest", [row for row in rows if row["fed_in"] == "3"])]
    heads = ("| fed in | figures | median \\|error\\| | mean | median where ideal scaling is off by more than 6 % | in 90 % | of these "
             "| median width of 90 % |")
    return {PAGE: {"scores": markdown(heads, lines)}}
