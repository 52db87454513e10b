"""Forecasts by the ranges alone of the open figures of scenarios/published, from docs/notes/2026-11-open-published-figures.csv.

Renewed from the folder that `stepcast run scenarios/published/*.yaml --results-only --draws 64 --set uncertainty=none -o FOLDER` wrote.
"""
import json
import pathlib
import statistics

from tables.page import csv_text, markdown, percent, quantile, read_csv

PAGE = "docs/notes/2026-11-open-published-figures.md"
DATA = PAGE.replace(".md", ".csv")


def interval_score(low, high, value, alpha):
    """Gneiting and Raftery (2007), equation 43: the width and a penalty for what lies outside."""
    return (high - low) + 2 / alpha * (max(low - value, 0) + max(value - high, 0))


def draws_of(folder, points):
    """The throughputs of every point by draw."""
    draws = {point: {} for point in points}
    for line in (folder / "simulations.jsonl").read_text().splitlines():
        row = json.loads(line)
        parts = row["simulation"].split(" | ")
        if parts[-1] == "as it is" and parts[0] in draws:
            draws[parts[0]][parts[1]] = (row["samples_per_second"], row["workers"])
    return draws


def forecasts(folder):
    """The rows of published.csv, with the quartiles of the draws, in the order of the scenario."""
    rows = read_csv(folder / "published.csv")
    draws = draws_of(folder, {row["point"] for row in rows})
    first = draws[rows[0]["point"]]
    for row in rows:
        values = []
        for draw, (rate, workers) in draws[row["point"]].items():
            if row["column"] == "efficiency":
                base, fewest = first[draw]
                rate = rate / workers / (base / fewest)
            values.append(rate)
        values.sort()
        row["low_50"], row["high_50"] = quantile(values, 0.25), quantile(values, 0.75)
    return rows


def compared(figure, forecast):
    """A row: the figure, its forecast and the scores relative to the figure."""
    value, median = float(forecast["published"]), float(forecast["predicted"])
    low, high = float(forecast["low"]), float(forecast["high"])
    # Several partitions of a network on equally many devices have no ideal scaling.
    ideal = "" if "ways" in figure["layout"] else forecast["ideal_scaling_error"]
    row = {name: figure[name] for name in ("id", "experiment", "group", "part", "devices", "layout", "metric")}
    return row | {
        "published": value, "median": median, "low_90": low, "low_50": forecast["low_50"], "high_50": forecast["high_50"], "high_90": high,
        "error": median / value - 1, "ideal_error": float(ideal) if ideal else None, "inside_90": low <= value <= high,
        "inside_50": forecast["low_50"] <= value <= forecast["high_50"], "width_90": (high - low) / value,
        "score_90": interval_score(low, high, value, 0.1) / value,
        "score_50": interval_score(forecast["low_50"], forecast["high_50"], value, 0.5) / value}


def renewed(results):
    """The experiments that are in the table stay in it: later ones test the discrepancy term, which is fitted on it."""
    figures, rows = read_csv("scenarios/published/figures.csv"), []
    for experiment in dict.fromkeys(row["experiment"] for row in read_csv(DATA)):
        own = [figure for figure in figures if figure["experiment"] == experiment]
        folder = pathlib.Path(results).resolve() / experiment
        rows += [compared(figure, forecast) for figure, forecast in zip(own, forecasts(folder), strict=True) if figure["role"] == "figure"]
    return {DATA: csv_text(rows[0].keys(), rows)}


def scores(title, rows):
    def share_true(name):
        return statistics.mean(row[name] == "True" for row in rows)

    def numbers(name):
        return [float(row[name]) for row in rows if row[name]]
    errors, ideal = [abs(error) for error in numbers("error")], [abs(error) for error in numbers("ideal_error")]
    return (title, len(rows), len({row["experiment"] for row in rows}), percent(share_true("inside_90")), percent(share_true("inside_50")),
            percent(statistics.median(errors)), percent(statistics.mean(errors)), percent(max(errors)),
            percent(statistics.median(ideal)) if ideal else "", percent(statistics.median(numbers("width_90"))),
            *(f"{statistics.mean(numbers(name)):.3f}" for name in ("score_90", "score_50")))


def tables():
    rows = read_csv(DATA)
    hard = [row for row in rows if abs(float(row["ideal_error"] or 0)) > 0.06]
    groups = [("all", rows), ("ideal scaling off by more than 6 %", hard)]
    groups += [(f"part {part}", [row for row in rows if row["part"] == part]) for part in ("fit", "test")]
    heads = ("| rows | figures | experiments | in 90 % | in 50 % | median \\|error\\| | mean | largest | median of ideal scaling "
             "| median width of 90 % | score 90 % | score 50 % |")
    return {PAGE: {"scores": markdown(heads, [scores(title, own) for title, own in groups if own])}}
