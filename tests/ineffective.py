#!/usr/bin/env python3
"""Judges the cases that tests/ineffective.sh collects: each is a scenario whose sweep has two values of one key.

Usage: tests/ineffective.py STEPCAST CASES
A line of CASES: WANT, KEY, two values and settings such as strategy.bucket=tensor, separated by tabs.
"""

import json
import pathlib
import re
import subprocess
import sys

import yaml

BASE = """{name: base, model: small-cnn, trace: derived, platform: big-basin, workers: 16, batch_per_worker: 8,
           strategy: {kind: synchronous}, simulation: {steps: 2}, set: {platform.software: null}}"""
# How a point was simulated may follow a key that changes nothing.
HOW = {"folding", "fidelity", "link_sharing"}


def read(text):
    return yaml.load(text, yaml.BaseLoader)  # every scalar stays the string that stands there, `on` and `1e3` too


def flow(value):
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {flow(part)}" for key, part in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(flow, value)) + "]"
    return value if re.fullmatch(r"[\w.+-]+([ /][\w.+-]+)*", value) else json.dumps(value)


def scenario(name, key, values, settings):
    document = read(BASE)
    for setting in settings:
        path, text = setting.split("=", 1)
        *maps, last = path.split(".")
        place = document
        for part in maps:
            place = place.setdefault(part, {})
        place[last] = read(text)
    if key != "strategy.host_operation" and "like" not in document["strategy"]:
        document["strategy"].setdefault("host_operation", "0 s")  # a host that has work of its own hides what a device has
    document |= {"name": name, "sweep": {key: list(values)}}
    return flow(document) + "\n"


def results(file, key, want):
    """Of each point its results without what names the value, and whether they say that the key has no effect."""
    for line in file.read_text().splitlines():
        row = json.loads(line, parse_float=lambda digits: f"{float(digits):.9g}")  # orders of additions differ
        notes = row.pop("without_effect", "")
        left_out = {"scenario", "point", key} | (HOW if want == "idle" else set())
        yield {name: value for name, value in row.items() if name not in left_out}, f"{key}: has no effect" in notes


def main():
    stepcast, file = sys.argv[1:]
    cases = [line.split("\t") for line in pathlib.Path(file).read_text().splitlines()]
    names = [f"case-{number:03}" for number in range(len(cases))]
    for name, (_, key, first, second, *settings) in zip(names, cases):
        pathlib.Path(f"{name}.yaml").write_text(scenario(name, key, (first, second), settings))
    command = [stepcast, "run", "-q", "-j", "1", "--draws", "1", "--results-only", "-o", "out"]
    ended = subprocess.run(command + [f"{name}.yaml" for name in names], stderr=subprocess.PIPE, text=True)
    failures = 0
    for name, (want, key, *rest) in zip(names, cases):
        file = pathlib.Path("out", name, "results.jsonl")
        points = list(results(file, key, want)) if file.exists() else []
        alike = len(points) == 2 and points[0][0] == points[1][0]
        noted = [said for _, said in points]
        if (alike, noted) != ((True, [True, True]) if want == "idle" else (False, [False, False])):
            print(f"FAILED: {name}: {want} {key} {' '.join(rest)}: rows alike: {alike}, noted at {sum(noted)} of {len(points)} points")
            failures += 1
    if ended.returncode or failures:
        sys.exit(f"{ended.stderr}{failures} of {len(cases)} options are not as said; exit code {ended.returncode}")
    print(f"{len(cases)} options: each changes the forecast or is said to have no effect")


main()
