#!/usr/bin/env python3
"""Compares the rule for derived traces with layers that others measured, and prints Markdown tables.

Usage, from the root of the source tree: tools/rule-table.py build/release/stepcast
"""
import collections
import csv
import statistics
import subprocess
import sys
import tempfile

import yaml

OPT_LAYER = """
name: opt-350m-layer
source: "S. Zhang et al., OPT, arXiv:2205.01068, table 1: width 1,024, 16 heads, 2,048 tokens; one layer"
input: [2048, 1024]
layers:
  - {name: below, kind: dense, units: 1024}
  - {name: norm1, kind: layer_norm}
  - {name: qkv, kind: dense, units: 3072}
  - {name: attention, kind: attention, heads: 16}
  - {name: projection, kind: dense, units: 1024}
  - {name: norm2, kind: layer_norm}
  - {name: up, kind: dense, units: 4096}
  - {name: gelu, kind: gelu}
  - {name: down, kind: dense, units: 1024}
  - {name: loss, kind: mean_squared_error}
"""


def derived(stepcast, network, batch, device):
    """Microseconds of the rule by layer and pass."""
    with tempfile.TemporaryDirectory() as folder:
        if network == "opt-350m-layer":
            network = folder + "/opt-350m-layer.yaml"
            with open(network, "w", encoding="utf-8") as file:
                file.write(OPT_LAYER)
        trace = folder + "/trace.yaml"
        subprocess.run([stepcast, "derive", "--model", network, "--batch", batch, "--device", device, "-o", trace],
                       check=True, stdout=subprocess.DEVNULL)
        with open(trace, encoding="utf-8") as file:
            layers = yaml.safe_load(file)["layers"]
    times = {}
    for layer in layers:
        for part in ("forward", "backward_data", "backward_weights"):
            times[layer["name"], part] = 1e6 * sum(float(time) for time in layer.get(part, {}).get("seconds", []))
    return times


def rule_time(times, kinds, row):
    layers = [name for name, kind in kinds.items() if kind == row["kind"]] if row["layer"] == "*" else [row["layer"]]
    parts = ("backward_data", "backward_weights") if row["pass"] == "backward" else (row["pass"],)
    return sum(times[layer, part] for layer in layers for part in parts)


def main():
    stepcast = sys.argv[1]
    with open("models/measured/layers.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    groups = collections.defaultdict(list)
    for row in rows:
        groups[row["source"], row["device"], row["network"], row["batch"]].append(row)
    print("| source | device | batch | layers: median | weighted | sum | by kind |\n|---|---|---|---|---|---|---|")
    kinds = {row["layer"]: row["kind"] for row in rows if row["network"] == "resnet50" and row["layer"] != "*"}
    for (source, device, network, batch), group in groups.items():
        times = derived(stepcast, network, batch, device)
        pairs = [(row, rule_time(times, kinds, row), float(row["microseconds"])) for row in group]
        total = sum(measured for _, _, measured in pairs)
        median = statistics.median(abs(rule / measured - 1) for _, rule, measured in pairs)
        weighted = sum(abs(rule - measured) for _, rule, measured in pairs) / total
        sums = collections.defaultdict(lambda: [0, 0])
        for row, rule, measured in pairs:
            sums[row["kind"]][0] += rule
            sums[row["kind"]][1] += measured
        each = ", ".join(f"{kind} {100 * (rule / measured - 1):+.0f} %" for kind, (rule, measured) in sums.items()
                         if measured > 0.005 * total)
        step = sum(rule for _, rule, _ in pairs) / total - 1
        print(f"| {source} | `{device}` | {batch} | {100 * median:.0f} % | {100 * weighted:.0f} % | {100 * step:+.1f} % "
              f"| {each} |")


if __name__ == "__main__":
    main()
