"""The scorecard: scenarios/claims.csv judged by docs/reference/scorecard.csv, the forecasts and trainings of the scenarios that it names.

A line of claims.csv picks rows of the scenario's published.csv or trends.csv (learn/NAME): those of its `quantity` whose points match the
regular expression `points`. `low` and `high` are the claim's range; one of them alone is an order, whose number is the first point divided by
the second. `within` is the claim's rounding, about the published figure. Without a scenario, `note` says why; a path in its place is a mechanism,
whose `verdict` is that of its test if it does not hold.

Renewed from the folder that tools/scorecard.py writes.
"""
import math
import pathlib
import re
import statistics

from tables.page import ROOT, csv_text, grouped, markdown, percent, read_csv

CLAIMS = "scenarios/claims.csv"
DATA = "docs/reference/scorecard.csv"
PAGE = "docs/reference/scorecard.md"
COLUMNS = ("item", "document", "line", "claim", "kind", "scenario", "points", "class", "forecast", "low", "high", "claim_low", "claim_high",
           "width", "ideal_scaling_error", "blind", "times", "verdict", "why")
VERDICTS = ("holds", "fails", "open", "cannot be judged")
CLASSES = {"figure yes": "figures, judged both ways, blind", "figure no": "figures, judged both ways, not blind",
           "order": "orders, judged one way", "loss": "trainings, by seeds",
           "mechanism": "mechanisms, formulas and inputs", "none": "without a scenario"}
FACTOR = 2       # a forecast that is as far off as this must not hold as well
MARGIN = 0.05    # an order that is nearer to equality than this is open


def number(text):
    return float(text) if text not in ("", None) else None


def overlaps(low, high, claim_low, claim_high):
    return (claim_low is None or high >= claim_low) and (claim_high is None or low <= claim_high)


def inside(low, high, claim_low, claim_high):
    return (claim_low is None or low >= claim_low) and (claim_high is None or high <= claim_high)


def judged(forecast, low, high, claim_low, claim_high):
    """Verdict and reason for a forecast with its interval, and a claim whose open end is None."""
    if not (low > 0 and math.isfinite(high)):
        return "cannot be judged", "the forecast is 0 or not a number"
    if high > FACTOR * low:
        return "cannot be judged", f"the interval spans a factor of {high / low:.3g}"
    if claim_low is not None and claim_high is not None:
        if not overlaps(low, high, claim_low, claim_high):
            return "fails", ""
        if any(overlaps(factor * low, factor * high, claim_low, claim_high) for factor in (1 / FACTOR, FACTOR)):
            return "cannot be judged", f"with a factor of {FACTOR} it would hold as well"
        return "holds", ""
    limit = claim_low if claim_high is None else claim_high
    if not limit / FACTOR <= forecast <= limit * FACTOR:
        return "cannot be judged", f"a factor of {FACTOR} would change nothing"
    if abs(forecast / limit - 1) < MARGIN:
        return "open", f"less than {percent(MARGIN, 0)} from the limit"
    if inside(low, high, claim_low, claim_high):
        return "holds", ""
    return ("open", "") if overlaps(low, high, claim_low, claim_high) else ("fails", "")


def claimed(claim, row):
    """The claim's range; about the published figure if it is given by its rounding."""
    if claim["within"]:
        value = number(row["published"])
        half = value * number(claim["within"][:-2]) / 100 if claim["within"].endswith(" %") else number(claim["within"])
        return value - half, value + half
    return number(claim["low"]), number(claim["high"])


def forecast_line(claim, row):
    low, high = claimed(claim, row)
    if claim["kind"] == "mechanism":
        holds = row["inside"] == "true"
        return {"class": "mechanism", "forecast": row["predicted"], "verdict": "holds" if holds else "fails", "why": claim["note"]}
    line = {"class": "order" if low is None or high is None else "figure", "claim_low": low, "claim_high": high,
            "blind": "no" if row["tuned"] else "yes", "ideal_scaling_error": number(row["ideal_scaling_error"])}
    if not row["predicted"]:
        return line | {"verdict": "cannot be judged", "why": "the forecast is 0 or not a number"}
    forecast = number(row["predicted"])
    ends = [number(row[name]) if row[name] else forecast for name in ("low", "high")]
    if row["kind"] == "fitted":
        verdict, why = "cannot be judged", "the figure was fed in"
    elif row["counted"] == "false":
        verdict, why = "cannot be judged", "the figure of another line"
    else:
        verdict, why = judged(forecast, *ends, low, high)
    limits = [end for end in (low, high) if end is not None]
    share = (ends[1] - ends[0]) / (sum(limits) / len(limits))
    return line | {"forecast": forecast, "low": ends[0], "high": ends[1], "width": share, "verdict": verdict, "why": why or claim["note"]}


def trained_line(claim, row):
    """By the seeds; with a range, what holds must also have the ratio of the medians of the errors (1 - accuracy) inside."""
    low, high = claimed(claim, row)
    medians = [number(row[name]) if low is None else 1 - number(row[name]) for name in ("median_point", "median_over")]
    ratio = medians[0] / medians[1] if all(value and math.isfinite(value) for value in medians) else None
    verdict = {"yes": "holds", "no": "fails", "open": "open"}[row["verdict"]]
    if low is not None and (ratio is None or not low <= ratio <= high):
        verdict = "fails"
    return {"class": "mechanism" if claim["kind"] == "mechanism" else "loss", "forecast": ratio, "low": None, "high": None,
            "claim_low": low, "claim_high": high, "verdict": verdict, "blind": claim["blind"],
            "times": "trained", "why": f"{row['holds_in']} of {row['seeds']} seeds" + (f"; {claim['note']}" if claim["note"] else "")}


def times_of(scenario):
    """Whether the layer times of a scenario were captured on its device, or derived."""
    trace = re.search(r"^trace: ([^\s#]+)", (ROOT / f"scenarios/{scenario}.yaml").read_text(encoding="utf-8"), re.MULTILINE)[1]
    file = ROOT / f"models/traces/{trace}.yaml"
    return "captured" if file.exists() and re.search("^kind: captured", file.read_text(encoding="utf-8"), re.MULTILINE) else "derived"


def rows_of(claim, folder):
    """The rows of results that a claim picks."""
    learned = claim["scenario"].startswith("learn/")
    found = [row for row in read_csv(folder / claim["scenario"] / ("trends.csv" if learned else "published.csv"))
             if row["quantity" if learned else "column"] == claim["quantity"]]
    if learned:
        for row in found:
            row["point"] = f"{row['point']} / {row['over']}"
    found = [row for row in found if re.search(claim["points"], row["point"]) and (row.get("published") or not claim["within"])]
    if not found:
        raise SystemExit(f"scorecard: {CLAIMS}: item {claim['item']}: no row of {claim['scenario']} with {claim['quantity']}: {claim['points']}")
    return found


def is_scenario(claim):
    return bool(claim["quantity"])


def lines_of(claim, folder):
    if not claim["scenario"]:
        yield claim | {"class": "none", "verdict": "cannot be judged", "why": claim["note"]}
    elif not is_scenario(claim):
        yield claim | {"class": "mechanism", "verdict": claim["verdict"] or "holds", "why": claim["note"]}
    else:
        for row in rows_of(claim, folder):
            if claim["scenario"].startswith("learn/"):
                yield claim | {"points": row["point"]} | trained_line(claim, row)
            else:
                yield claim | {"points": row["point"], "times": times_of(claim["scenario"])} | forecast_line(claim, row)


def renewed(results):
    folder = pathlib.Path(results).resolve()
    return {DATA: csv_text(COLUMNS, [line for claim in read_csv(CLAIMS) for line in lines_of(claim, folder)])}


def counted(title, rows):
    return (title, len({row["item"] for row in rows}), len(rows), *(sum(row["verdict"] == verdict for row in rows) for verdict in VERDICTS))


def in_short():
    """Of the figures that can be judged: how many are blind, how many there are, the share that holds, median and mean error."""
    rows = [row for row in read_csv(DATA) if row["class"] == "figure" and row["verdict"] != "cannot be judged"]
    errors = [abs(float(row["forecast"]) / statistics.mean((float(row["claim_low"]), float(row["claim_high"]))) - 1) for row in rows]
    holds = sum(row["verdict"] == "holds" for row in rows)
    return sum(row["blind"] == "yes" for row in rows), len(rows), holds / len(rows), statistics.median(errors), statistics.mean(errors)


def short(row):
    value = f"{float(row['forecast']):.3g}" if row["forecast"] else ""
    return value + (f" ({float(row['low']):.3g} to {float(row['high']):.3g})" if row["low"] else "")


def with_verdict(rows, wanted):
    """The claims with lines of this verdict; forecasts of one claim are in one row."""
    for (item, claim, verdict), own in grouped(rows, "item", "claim", "verdict").items():
        if verdict == wanted:
            yield f"{item}, {own[0]['document']}:{own[0]['line']}", claim, "; ".join(dict.fromkeys(map(short, own)))


def tables():
    if not (ROOT / DATA).exists():
        return {}
    rows = read_csv(DATA)
    heads = "| class | items | lines | hold | fail | open | cannot be judged |"
    classes = [counted(title, [row for row in rows if name in (row["class"], f"{row['class']} {row['blind']}")]) for name, title in CLASSES.items()]
    return {PAGE: {"classes": markdown(heads, classes),
                   "fails": markdown("| item | claim | forecast, or ratio of medians |", with_verdict(rows, "fails"))}}
