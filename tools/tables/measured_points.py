"""Forecasts of the open figures that learn from measured points, and the constants of their error model.

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
from tables.page import csv_text, grouped, markdown, percent, quantile, read_csv, signed_percent

PAGE = "docs/notes/2026-11-measured-points.md"
DATA = PAGE.replace(".md", ".csv")
REPEATABILITY = 0.005
NAMES = ("level", "own", "doubling", "walk", "misfit")
CANDIDATES = [dict(zip(NAMES, values)) for values in
              itertools.product((0.4,), (0.01, 0.02, 0.03), (0.05, 0.1), (0.1, 0.2, 0.3), (0.05, 0.07, 0.1))]
SAMPLES = discrepancy.SAMPLES


def mixed_hash(z, value):
    """The finalizer of splitmix64; core/random.hpp has the same."""
    z = (z * 0x9E3779B97F4A7C15 + value) % 2 ** 64
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 % 2 ** 64
    z = (z ^ z >> 27) * 0x94D049BB133111EB % 2 ** 64
    return z ^ z >> 31


def uniform_samples(stream):
    """Samples of a uniform variable; forecast/discrepancy.cpp has the same."""
    keys = [mixed_hash(stream, 0) >> shift for shift in (0, 16, 32, 48)]
    samples = []
    for k in range(SAMPLES):
        for key in keys:
            k = (k * (key % 256 | 1) + key // 256) % 256
            k ^= k >> 4
        samples.append((k + 0.5) / SAMPLES)
    return samples


NORMALS = [[discrepancy.NORMAL.inv_cdf(u) for u in uniform_samples(stream)] for stream in range(64)]
FIRST, *WALK = ([u for u, _, _ in discrepancy.POINTS], *(uniform_samples(112 + stretch) for stretch in range(8)))


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


@functools.cache
def quantiles_of(term):
    """Samples of the term that all doublings have in common, and those of each stretch of its random walk."""
    return [[discrepancy.at(term, u) for u in stream] for stream in (FIRST, *WALK)]


def grown_errors(row, fed, constants, term):
    """Samples of the term at a row, relative to the fed-in point; forecast/discrepancy.cpp has the same rule."""
    first, *stretches = quantiles_of(tuple(term))
    scales, begin = [constants["doubling"] * row["doublings"]], 0
    for end in sorted({one["doublings"] for one in fed if 0 < one["doublings"] < row["doublings"]} | {max(0, row["doublings"])}):
        scales.append(constants["walk"] * math.sqrt(end - begin))
        begin = end
    return [sum(scale * sample for scale, sample in zip(scales, samples)) for samples in zip(first, *stretches[:len(scales) - 1])]


def scaled(constants, fed):
    """Errors of points and of what grows are larger where the measured points miss the simulation; forecast/posterior.cpp has the same rule."""
    factor = 1 + math.sqrt(statistics.mean(one["z"] ** 2 for one in fed)) / constants["misfit"]
    return constants | {name: factor * constants[name] for name in ("own", "doubling", "walk")}


def forecast(row, fed, constants, term):
    """Quantiles of rate / published rate where the points `fed` were measured, besides the smallest one. The middle has the error that
    the measurements leave likely, not the median of all."""
    constants = scaled(constants, fed)
    level = constants["level"]
    own = constants["own"]
    errors, *of_fed = (grown_errors(one, fed, constants, term) for one in [row, *fed])
    covariances = [[covariance(a, b) + level ** 2 for b in of_fed] for a in [errors, *of_fed]]
    for i, line in enumerate(covariances[1:]):
        line[i] += own ** 2 + REPEATABILITY ** 2
    gain = solved(covariances[1:], covariances[0])
    values = []
    for k, (_, _, x) in enumerate(discrepancy.POINTS):
        common = level * NORMALS[1][k]
        wrong = errors[k] + common + own * NORMALS[3][k]
        for i, one in enumerate(fed):
            sample = of_fed[i][k] + common + own * NORMALS[4 + i][k] + REPEATABILITY * NORMALS[20 + i][k]
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


def scored(own, count, constants, term):
    """The figures of an experiment beyond the `count` measured points, with their quantiles."""
    return [(row, forecast(row, own[:count], constants, term)) for row in own[count:]]


def renewed(_):
    rows, all_own = experiments()
    results = {}  # by group and candidate
    term_without = {group: discrepancy.fitted([row for row in rows if row["group"] != group])
                    for group in dict.fromkeys(row["group"] for row in rows)}
    for group, term in term_without.items():
        for i, constants in enumerate(CANDIDATES):
            results[group, i] = [one for own in all_own if own[0]["group"] == group for count in (1, 2)
                                 for one in scored(own, count, constants, term)]

    def others(group, i):
        return [q for (other, j), own in results.items() if j == i and other != group for _, q in own]

    def best_without(group):
        """The candidate with the least interval score of the figures of other groups, with one and two points beside the smallest."""
        def score(i):
            return statistics.mean(interval_score(q[0], q[2], 1, 0.1) for q in others(group, i))
        return CANDIDATES[min(range(len(CANDIDATES)), key=score)]
    if best_without(None) != discrepancy.MEASURED:
        raise SystemExit(f"measured-points: discrepancy.py has other constants than {best_without(None)}")
    lines = []
    for own in all_own:
        group = own[0]["group"]
        constants = best_without(group)
        for row in own[1:]:
            low, _, median, _, high = discrepancy.forecast(row, term_without[group])
            lines.append(line_of(row, 1, {}, (low, median, high)))
        for count in (1, 2):
            lines += [line_of(row, count + 1, constants, q) for row, q in scored(own, count, constants, term_without[group])]
    return {DATA: csv_text(lines[0].keys(), sorted(lines, key=lambda line: line["fed_in"]))}


def line_of(row, fed_in, constants, quantiles):
    low, median, high = quantiles
    return {"id": row["id"], "group": row["group"], "fed_in": fed_in, **{name: constants.get(name) for name in NAMES},
            "low_90": low, "median": median, "high_90": high, "ideal_error": row["ideal_error"]}


def score_line(title, rows):
    hard = [row for row in rows if abs(float(row["ideal_error"] or 0)) > 0.06]

    def errors(some):
        return [abs(float(row["median"]) - 1) for row in some]

    def inside(some):
        return percent(statistics.mean(float(row["low_90"]) <= 1 <= float(row["high_90"]) for row in some))
    widths = [float(row["high_90"]) - float(row["low_90"]) for row in rows]
    score = statistics.mean(interval_score(float(row["low_90"]), float(row["high_90"]), 1, 0.1) for row in rows)
    return (title, len(rows), percent(statistics.median(errors(rows))), percent(statistics.mean(errors(rows))),
            percent(statistics.median(errors(hard))), inside(rows), inside(hard), percent(statistics.median(widths)), f"{score:.3f}")


def ends(errors):
    return [quantile(sorted(errors), p) for p in (0.05, 0.95)]


def carried_errors():
    """(group, doublings, log(measured step / forecast step)) beyond the second measured point, whose error is carried over."""
    for own in experiments()[1]:
        for row in own[1:]:
            doublings = round(row["doublings"] - own[0]["doublings"])
            if doublings > 0:
                yield row["group"], min(doublings, 4), row["z"] - own[0]["z"]


def carried_table():
    left = sorted(carried_errors(), key=lambda one: one[1])
    lines = []
    for doublings in (1, 2, 3, 4):
        errors = [error for _, own, error in left if own == doublings]
        title = "4 or more" if doublings == 4 else doublings
        lines.append((title, len(errors), percent(statistics.median(map(abs, errors))), *map(signed_percent, ends(errors))))
    by_group = {group: ends([error for own, _, error in left if own == group]) for group, *_ in left}
    width = statistics.median(math.exp(high) - math.exp(low) for low, high in (by_group[group] for group, *_ in left))
    lines.append(("all, by the quantiles of their own group", len(left), "", f"median width {percent(width)}", ""))
    return markdown("| doublings beyond the second measured point | figures | median \\|error\\| | 5 % quantile | 95 % quantile |", lines)


def tables():
    rows = read_csv(DATA)
    third = {row["id"] for row in rows if row["fed_in"] == "3"}
    lines = [score_line("the smallest point", [row for row in rows if row["fed_in"] == "1"]),
             score_line("the smallest and the next", [row for row in rows if row["fed_in"] == "2"]),
             score_line("of these: beyond a third point", [row for row in rows if row["fed_in"] == "2" and row["id"] in third]),
             score_line("the three smallest", [row for row in rows if row["fed_in"] == "3"])]
    heads = ("| fed in | figures | median \\|error\\| | mean | median where ideal scaling is off by more than 6 % | in 90 % | of these "
             "| median width of 90 % | score 90 % |")
    return {PAGE: {"scores": markdown(heads, lines), "carried over": carried_table()}}
