#!/usr/bin/env python3
"""Compares the rule for derived traces with layers that others measured, and prints Markdown tables.

Usage, from the root of the source tree: tools/rule-table.py build/release/stepcast [--leave-out]

With --leave-out it fits the shares of each profiled device again, on all stages of ResNet-50 but one, and compares the rule with the
layers of that stage. The fit makes the sums of each kind equal to the measured ones.
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


def errors(times, kinds, rows):
    """Median, weighted error and error of the sum of the rule against rows."""
    pairs = [(rule_time(times, kinds, row), float(row["microseconds"])) for row in rows]
    total = sum(measured for _, measured in pairs)
    return (statistics.median(abs(rule / measured - 1) for rule, measured in pairs),
            sum(abs(rule - measured) for rule, measured in pairs) / total, sum(rule for rule, _ in pairs) / total - 1)


def share_of(row):
    """The share of the device file that a row determines, or none."""
    if row["kind"] == "batch_norm":
        return "batch_norm"
    if row["kind"] in ("relu", "add"):
        return "streaming"
    if row["kind"] == "convolution" and row["pass"] == "forward":
        return "window" if "3x3" in row["layer"] or row["layer"] == "conv1" else "pointwise"
    return None


def refitted(stepcast, name, kinds, rows, folder):
    """A device file whose shares are fitted on the rows, and the times of its rule."""
    with open(f"models/devices/{name}.yaml", encoding="utf-8") as file:
        device = yaml.safe_load(file)
    file_name = f"{folder}/{name}.yaml"
    for last in (False, False, False, True):
        with open(file_name, "w", encoding="utf-8") as file:
            yaml.safe_dump(device, file)
        times = derived(stepcast, "resnet50", "32", file_name)
        if last:
            return times
        sums = collections.defaultdict(lambda: [0, 0])
        for row in rows:
            if share_of(row):
                sums[share_of(row)][0] += rule_time(times, kinds, row)
                sums[share_of(row)][1] += float(row["microseconds"])
        backward = [row for row in rows if row["kind"] == "convolution" and row["pass"] != "forward"]
        left = sum(float(row["microseconds"]) - rule_time(times, kinds, row) for row in backward)
        filters = sum(times[row["layer"], "backward_weights"] for row in backward if row["pass"] != "backward_data")
        kernels = device["kernels"]
        if "weights" in kernels:
            kernels["weights"]["value"] = min(1.0, kernels["weights"]["value"] * filters / (filters + left))
        for share, (rule, measured) in sums.items():
            kernels[share]["value"] = min(1.0, kernels[share]["value"] * rule / measured)


def leave_out(stepcast, rows, kinds):
    print("| source | device | left out | layers: median | weighted | sum |\n|---|---|---|---|---|---|")
    for source, device in (("kineto-2021", "v100-sxm2-16gb"), ("hta-2024", "a100-40gb-tf32")):
        own = [row for row in rows if row["source"] == source]
        for stage in ("res2", "res3", "res4", "res5"):
            held = [row for row in own if row["layer"].startswith(stage)]
            with tempfile.TemporaryDirectory() as folder:
                times = refitted(stepcast, device, kinds, [row for row in own if row not in held], folder)
            median, weighted, step = errors(times, kinds, held)
            print(f"| {source} | `{device}` | `{stage}` | {100 * median:.0f} % | {100 * weighted:.0f} % | {100 * step:+.1f} % |")


def main():
    stepcast = sys.argv[1]
    with open("models/measured/layers.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    if "--leave-out" in sys.argv:
        kinds = {row["layer"]: row["kind"] for row in rows if row["network"] == "resnet50" and row["layer"] != "*"}
        return leave_out(stepcast, rows, kinds)
    groups = collections.defaultdict(list)
    for row in rows:
        groups[row["source"], row["device"], row["network"], row["batch"]].append(row)
    print("| source | device | batch | layers: median | weighted | sum | by kind |\n|---|---|---|---|---|---|---|")
    kinds = {row["layer"]: row["kind"] for row in rows if row["network"] == "resnet50" and row["layer"] != "*"}
    for (source, device, network, batch), group in groups.items():
        times = derived(stepcast, network, batch, device)
        pairs = [(row, rule_time(times, kinds, row), float(row["microseconds"])) for row in group]
        total = sum(measured for _, _, measured in pairs)
        median, weighted, step = errors(times, kinds, group)
        sums = collections.defaultdict(lambda: [0, 0])
        for row, rule, measured in pairs:
            sums[row["kind"]][0] += rule
            sums[row["kind"]][1] += measured
        each = ", ".join(f"{kind} {100 * (rule / measured - 1):+.0f} %" for kind, (rule, measured) in sums.items()
                         if measured > 0.005 * total)
        print(f"| {source} | `{device}` | {batch} | {100 * median:.0f} % | {100 * weighted:.0f} % | {100 * step:+.1f} % "
              f"| {each} |")


if __name__ == "__main__":
    sys.exit(main())
