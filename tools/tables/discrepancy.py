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
CLASSES = ["inside_server", "between_servers", "between_servers_slow_messages"]
SLOW_MESSAGE = 15e-6  # overhead of a large message between servers [s]: sockets of virtual machines have 20 us, verbs 6 us
PROBABILITIES = [0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9,
                 0.95, 0.975, 0.99]
SAMPLES = 256
PRIOR_EXPERIMENTS = 1
MEASURED = {"drift": 0.5, "level": 0.4, "own": 0.02}  # chosen by measured_points.py


def inside_weight(devices):
    """Weight of the term of a server: 0 for one device, 1 for eight. forecast/discrepancy.cpp has the same rule."""
    return math.log2(devices) / 3


def between_weight(servers):
    """Weight of the term between servers: 0 for one, 1 for two. forecast/discrepancy.cpp has the same rule."""
    return math.log2(servers)


def devices_per_server(platform):
    return int(re.search(r"^  devices: (\d+)", (ROOT / f"platforms/{platform}.yaml").read_text(), re.M).group(1))


def has_slow_messages(platform):
    """Whether the last row of messages between nodes has an overhead of SLOW_MESSAGE or more."""
    text = (ROOT / f"platforms/{platform}.yaml").read_text()
    rows = re.search(r"^  between_nodes:\n((?:    - .*\n)+)", text, re.M).group(1)
    return float(re.findall(r"overhead: ([\d.]+) us", rows)[-1]) * 1e-6 >= SLOW_MESSAGE


def framework_of(scenario):
    """The framework that a scenario names, or that of its stack; forecast/discrepancy.cpp has the same rule."""
    stack = re.search(r"like: ([\w.-]+)", scenario)
    texts = [scenario] + ([(ROOT / f"strategies/stacks/{stack.group(1)}.yaml").read_text()] if stack else [])
    found = [named.group(1) for named in (re.search(r"^framework: (\w+)", text, re.M) for text in texts) if named]
    return found[0] if found else ""


def weights(devices, per_server):
    return inside_weight(min(devices, per_server)), between_weight(math.ceil(devices / per_server))


def read_rows():
    """A row a figure: z = log(published step / forecast step), its weights relative to the figure that was fed in, and its network."""
    figures = {row["id"]: row for row in read_csv("scenarios/published/figures.csv")}
    fed_in = {row["experiment"]: row for row in figures.values() if row["role"] == "base"}
    rows = []
    for row in read_csv(DATA):
        figure = figures[row["id"]]
        per_server = devices_per_server(figure["platform"])
        inside, between = weights(int(figure["devices"]), per_server)
        inside_fed, between_fed = weights(int(fed_in[row["experiment"]]["devices"]), per_server)
        scenario = (ROOT / f"scenarios/published/{row['experiment']}.yaml").read_text()
        median = float(row["median"])
        ideal = float(row["ideal_error"]) if row["ideal_error"] else None
        rows.append({
            "experiment": row["experiment"], "group": row["group"], "part": row["part"], "ideal_error": ideal,
            "network": CLASSES[2] if has_slow_messages(figure["platform"]) else CLASSES[1],
            "changed": "tuned:" in scenario, "framework": framework_of(scenario),
            "z": math.log(median / float(row["published"])),
            "inside": inside - inside_fed, "between": between - between_fed,
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


def scores_by_class(rows):
    """The errors per unit of weight. Between servers, the experiment's own error inside a full server is taken off first, or the
    median of all experiments where it is not published."""
    scored = {name: [] for name in CLASSES}
    of_full_server = {}
    for row in rows:
        if row["between"] == 0 and row["inside"] > 0:
            scored[CLASSES[0]].append((row["experiment"], row["z"] / row["inside"]))
            of_full_server[row["experiment"]] = row["z"] / row["inside"]
    typical = weighted_quantile(shares_of_experiments(scored[CLASSES[0]]), 0.5)
    for row in rows:
        if row["between"] > 0:
            own = of_full_server.get(row["experiment"], typical)
            scored[row["network"]].append((row["experiment"], (row["z"] - own * row["inside"]) / row["between"]))
    return scored


def mean_distance(scored, middle):
    """Mean of |score - middle|, every experiment with the same weight."""
    pairs = shares_of_experiments(scored)
    return sum(abs(score - middle) * weight for score, weight in pairs) / sum(weight for _, weight in pairs)


def spreads_by_framework(rows):
    """How far the scores of a framework lie from the median in a server, against those of all. Partial pooling: one experiment of
    prior knowledge says that it is as all, by geometric means."""
    frameworks = {row["experiment"]: row["framework"] for row in rows}
    scored = scores_by_class(rows)[CLASSES[0]]
    middle = weighted_quantile(shares_of_experiments(scored), 0.5)
    spreads = {}
    for framework in sorted({frameworks[name] for name, _ in scored} - {""}):
        own = [(name, score) for name, score in scored if frameworks[name] == framework]
        count = len({name for name, _ in own})
        ratio = max(mean_distance(own, middle) / mean_distance(scored, middle), 0.01)
        spreads[framework] = ratio ** (count / (count + PRIOR_EXPERIMENTS))
    return spreads


def fitted(rows):
    """The quantiles of every class at PROBABILITIES, and the spreads. In a server, scores are normalized by their framework's spread
    (normalized conformal prediction: H. Papadopoulos, Normalized nonconformity measures, 2008)."""
    scored, spreads = scores_by_class(rows), spreads_by_framework(rows)
    frameworks = {row["experiment"]: row["framework"] for row in rows}
    middle = weighted_quantile(shares_of_experiments(scored[CLASSES[0]]), 0.5)
    scored[CLASSES[0]] = [(name, middle + (score - middle) / spreads.get(frameworks[name], 1)) for name, score in scored[CLASSES[0]]]
    pairs = {name: shares_of_experiments(scored[name]) or [(0, 1)] for name in CLASSES}
    term = {name: [weighted_quantile(pairs[name], p) for p in PROBABILITIES] for name in CLASSES}
    return term | {"spreads": spreads}


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


def forecast(row, term):
    """Quantiles of rate / published rate: the interval of the ranges, a normal law of two halves, and the term."""
    values = []
    middle, spread = at(term[CLASSES[0]], 0.5), term["spreads"].get(row["framework"], 1)
    for u, v, x in POINTS:
        wrong = (middle + spread * (at(term[CLASSES[0]], u) - middle)) * row["inside"] + at(term[row["network"]], v) * row["between"]
        if row["ideal_error"] is not None:  # no faster than ideal scaling: a step is never shorter than its computation
            wrong = max(wrong, min(0, row["z"] - math.log(1 + row["ideal_error"])))
        values.append(math.exp(row["z"] + (x * row["high"] if x > 0 else -x * row["low"]) - wrong))
    values.sort()
    return [quantile(values, p) for p in (0.05, 0.25, 0.5, 0.75, 0.95)]


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
               for what, changed in (("never changed after a result", False), ("changed after a first result", True))]
    lines = [score_row(*kind) for kind in kinds] + [left_out_row()] + [score_row(*kind) for kind in changed]
    return markdown("| rows | figures | experiments | in 90 % | in 50 % | median \\|error\\| | mean | median where ideal scaling is off by "
                    "more than 6 % | median width of 90 % | score 90 % | score 50 % |",
                    lines + [score_row("all, leaving one group out", left_out(rows, "group"))])


def text_of(rows):
    term, scored = fitted(rows), scores_by_class(rows)
    lines = ["# What the model itself gets wrong: log(published step / forecast step), fitted by `tools/documents.py discrepancy`, which",
             "# docs/notes/2026-11-discrepancy.md describes. Do not edit: run the tool.",
             "# inside_server: for eight devices of a server. between_servers: for two servers. spreads: factor on the distance of",
             "# inside_server from its median. measured: the error where other points were measured (docs/notes/2026-11-measured-points.md).",
             'source: "open published figures (scenarios/published/figures.csv)"', "figures:"]
    lines += [f"  {name}: {{figures: {len(scored[name])}, experiments: {len({one for one, _ in scored[name]})}}}" for name in CLASSES]
    lines += [f"probabilities: [{', '.join(f'{p:g}' for p in PROBABILITIES)}]", "quantiles:"]
    lines += [f"  {name}: [{', '.join(f'{x:.4f}' for x in term[name])}]" for name in CLASSES]
    lines.append(f"spreads: {{{', '.join(f'{name}: {x:.3f}' for name, x in term['spreads'].items())}}}")
    lines.append(f"measured: {{{', '.join(f'{name}: {x:g}' for name, x in MEASURED.items())}}}")
    return "\n".join(lines) + "\n"


def files():
    """The term as the program reads it."""
    return {TERM: text_of(read_rows())}


def tables():
    return {PAGE: {"scores": score_table(read_rows())}}
