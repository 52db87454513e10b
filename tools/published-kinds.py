#!/usr/bin/env python3
"""Prints, as a Markdown table, how many figures of each kind docs/reference/published-figures.csv holds, and how many of them hold.
Usage: tools/published-kinds.py"""
import collections
import csv
import pathlib

CSV = pathlib.Path(__file__).resolve().parent.parent / "docs" / "reference" / "published-figures.csv"


def main():
    counts = collections.defaultdict(collections.Counter)
    with open(CSV, newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if "not counted" not in row["inside"]:
                counts[row["kind"]][row["inside"].split(" ")[0].rstrip(",")] += 1
    print("| kind | figures | yes | open | no |\n|---|---|---|---|---|")
    for kind, of in counts.items():
        print(f"| `{kind}` | {sum(of.values())} | {of['yes']} | {of['open']} | {of['no']} |")


if __name__ == "__main__":
    main()
