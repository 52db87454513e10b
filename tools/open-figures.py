#!/usr/bin/env python3
"""Compares forecasts with the open figures of scenarios/published.

Run `stepcast run scenarios/published/*.yaml --results-only --draws 64 --set uncertainty=none -o RESULTS` first. Then `tools/open-figures.py RESULTS` writes
docs/notes/2026-11-open-published-figures.csv, a row a figure, and fills the tables of the page of the same name.
"""
import csv
import json
import pathlib
import statistics
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/notes/2026-11-open-published-figures.md"


def quantile(values, share):
    """The quantile of sorted values, linear between them, as report/statistics has it."""
    place = share * (len(values) - 1)
    below = int(place)
    above = min(below + 1, len(values) - 1)
    return values[below] + (place - below) * (values[above] - values[below])


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
    with open(folder / "published.csv", newline="") as file:
        rows = list(csv.DictReader(file))
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
    """A row of the table: the figure, its forecast and the scores relative to the figure."""
    value, median = float(forecast["published"]), float(forecast["predicted"])
    low, high = float(forecast["low"]), float(forecast["high"])
    row = {name: figure[name] for name in ("id", "experiment", "group", "part", "devices", "layout", "metric")}
    # Several partitions of a network on equally many devices have no ideal scaling.
    ideal = "" if "ways" in figure["layout"] else forecast["ideal_scaling_error"]
    return row | {
        "published": value,
        "median": median,
        "low_90": low,
        "low_50": forecast["low_50"],
        "high_50": forecast["high_50"],
        "high_90": high,
        "error": median / value - 1,
        "ideal_error": float(ideal) if ideal else None,
        "inside_90": low <= value <= high,
        "inside_50": forecast["low_50"] <= value <= forecast["high_50"],
        "width_90": (high - low) / value,
        "score_90": interval_score(low, high, value, 0.1) / value,
        "score_50": interval_score(forecast["low_50"], forecast["high_50"], value, 0.5) / value,
    }


def all_rows(results):
    with open(ROOT / "scenarios/published/figures.csv", newline="") as file:
        figures = list(csv.DictReader(file))
    rows = []
    for experiment in dict.fromkeys(figure["experiment"] for figure in figures):
        own = [figure for figure in figures if figure["experiment"] == experiment]
        for figure, forecast in zip(own, forecasts(results / experiment), strict=True):
            if figure["role"] == "figure":
                rows.append(compared(figure, forecast))
    return rows


def percent(value):
    return f"{100 * value:.1f} %"


def scores(title, rows):
    """One row of the table of scores."""
    errors = [abs(row["error"]) for row in rows]
    cells = [title, str(len(rows)), str(len({row["experiment"] for row in rows}))]
    cells += [percent(statistics.mean(row[name] for row in rows)) for name in ("inside_90", "inside_50")]
    cells += [percent(statistics.median(errors)), percent(statistics.mean(errors)), percent(max(errors))]
    ideal = [abs(row["ideal_error"]) for row in rows if row["ideal_error"] is not None]
    cells += [percent(statistics.median(ideal)) if ideal else ""]
    cells += [percent(statistics.median(row["width_90"] for row in rows))]
    cells += [f"{statistics.mean(row[name] for row in rows):.3f}" for name in ("score_90", "score_50")]
    return "| " + " | ".join(cells) + " |"


def table_of_scores(groups):
    lines = ["| rows | figures | experiments | in 90 % | in 50 % | median \\|error\\| | mean | largest | median of ideal scaling "
             "| median width of 90 % | score 90 % | score 50 % |", "|---|" + "---|" * 11]
    return lines + [scores(title, rows) for title, rows in groups if rows]


def table_of_experiments(rows):
    lines = ["| experiment | part | devices | error | interval of 90 % / figure | inside | error of ideal scaling |", "|---|" + "---|" * 6]
    for experiment in dict.fromkeys(row["experiment"] for row in rows):
        own = [row for row in rows if row["experiment"] == experiment]
        cell = lambda text: ", ".join(text(row) for row in own)
        lines.append("| " + " | ".join([
            f"`{experiment}`", own[0]["part"], cell(lambda row: row["layout"].replace(" ways", "w") if "ways" in row["layout"] else row["devices"]),
            cell(lambda row: f"{100 * row['error']:+.1f}") + " %",
            cell(lambda row: f"{row['low_90'] / row['published']:.2f}-{row['high_90'] / row['published']:.2f}"),
            f"{sum(row['inside_90'] for row in own)} of {len(own)}",
            cell(lambda row: "" if row["ideal_error"] is None else f"{100 * row['ideal_error']:+.0f} %")]) + " |")
    return lines


def fill(page, name, lines):
    """Puts lines between "<!-- table: NAME -->" and "<!-- /table -->"."""
    begin = f"<!-- table: {name} -->\n"
    start = page.index(begin) + len(begin)
    return page[:start] + "\n".join(lines) + "\n" + page[page.index("<!-- /table -->", start):]


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: tools/open-figures.py RESULTS_FOLDER")
    rows = all_rows(pathlib.Path(sys.argv[1]))
    with open(PAGE.with_suffix(".csv"), "w", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys(), lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow({name: f"{x:.6g}" if isinstance(x, float) else x for name, x in row.items()})
    hard = [row for row in rows if abs(row["ideal_error"] or 0) > 0.06]
    groups = [("all", rows), ("ideal scaling off by more than 6 %", hard)]
    groups += [(f"part {part}", [row for row in rows if row["part"] == part]) for part in ("fit", "test")]
    groups += [(f"part {part}, ideal off by more than 6 %", [row for row in hard if row["part"] == part]) for part in ("fit", "test")]
    by_group = [(f"`{name}`", [row for row in rows if row["group"] == name]) for name in sorted({row["group"] for row in rows})]
    page = fill(PAGE.read_text(), "scores", table_of_scores(groups))
    page = fill(page, "groups", table_of_scores(by_group))
    page = fill(page, "experiments", table_of_experiments(rows))
    PAGE.write_text(page)
    print("\n".join(table_of_scores(groups + by_group)))


main()
