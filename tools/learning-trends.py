#!/usr/bin/env python3
"""Prints the trends that `stepcast learn` judged as a Markdown table, and a line that counts the verdicts.
"""
import argparse
import csv
import math
import pathlib


def number(text, quantity):
    if text and math.isfinite(float(text)):
        return f"{float(text):.3g}"
    return "diverged" if quantity == "loss" else "never"


def short(point):
    parts = point.replace("strategy={kind: ", "").replace("learning.", "").replace("}", "")
    return parts.replace("|", "/")


def rows_of(folder):
    with open(pathlib.Path(folder) / "trends.csv", newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def main(folders):
    rows = [row for folder in folders for row in rows_of(folder)]
    print("| scenario | claim | quantity | point, over | medians | holds in | verdict |")
    print("|---|---|---|---|---|---|---|")
    for row in rows:
        relation = {"less than": "<", "more than": ">"}.get(row["relation"], f"is {row['relation']}")
        points = f"{short(row['point'])} {relation} {short(row['over'])}"
        medians = ", ".join(number(row[name], row["quantity"]) for name in ("median_point", "median_over"))
        print(f"| `{row['scenario']}` | {row['source']} | {row['quantity']} | {points} | {medians} "
              f"| {row['holds_in']} of {row['seeds']} | {row['verdict']} |")
    counts = {verdict: sum(row["verdict"] == verdict for row in rows) for verdict in ("yes", "open", "no")}
    print(f"\n{len(rows)} claims: {counts['yes']} hold in at least 90 % of the seeds, {counts['no']} in at most "
          f"10 %, {counts['open']} are open.")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="+", metavar="RESULTS-FOLDER", help="folder of results with trends.csv")
    main(parser.parse_args().folders)
