#!/usr/bin/env python3
"""Two measured layouts of a network are fed in: is the fastest layout of all among those that cannot be told apart, and how many are these?

For each network of vtrain.csv and each draw of two layouts, `stepcast run --measured` forecasts all of them. The layouts that cannot be told
apart are those of the highest probabilities to be the best (`best_probability`) that add up to 90 %. Prints a line for each run and the shares,
and fails if in fewer than nine tenths of the runs the fastest layout is among them, or if they are six tenths of the layouts or more.
Usage: tests/layouts/measured_layouts.py STEPCAST [PAIRS [DRAWS]]: 1 pair for each network, 8 draws
"""
import csv
import os
import pathlib
import random
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
SCENARIO = """name: layouts
model: {{name: gpt, source: vtrain.csv, sample: sequence of 2048 tokens, transformer_stack: {{layers: {layers}, width: {width}, heads: {heads}, sequence: 2048, vocabulary: 50257}}}}
trace: derived
kernels: {{precision: f16, optimizer: adam}}
platform: dgx-a100
strategy: {{kind: pipeline, like: megatron, stages: 1, tensor: 1, micro_batches: 8, precision: mixed, recompute: true, zero: 1}}
simulation: {{steps: 1}}
set: {{platform.nodes: {nodes}, platform.device: a100-80gb, platform.network.nics: 4}}
sweep:
{points}
"""
KEYS = ("strategy.micro_batches", "strategy.stages", "strategy.tensor")


NETWORKS = {  # by devices
    64: {"global_batch": 512, "width": 3072, "heads": 32, "layers": 30},
    256: {"global_batch": 1024, "width": 6144, "heads": 48, "layers": 40},
}


def networks():
    groups = {devices: [] for devices in NETWORKS}
    with open(HERE / "vtrain.csv", encoding="utf-8") as file:
        for row in csv.DictReader(line for line in file if not line.startswith("#")):
            key = tuple(int(row[name]) for name in ("micro_batches", "stages", "tensor"))
            groups[int(row["devices"])].append({"key": key, "step_seconds": float(row["step_seconds"])})
    return groups.items()


def scenario_of(devices, layouts):
    one = NETWORKS[devices]
    points = "\n".join(f"  - {{workers: [{devices}], global_batch: [{one['global_batch']}], "
                       + ", ".join(f"{key}: [{value}]" for key, value in zip(KEYS, row["key"])) + "}" for row in layouts)
    return SCENARIO.format(**one, nodes=devices // 8, points=points)


def not_told_apart(results):
    """The keys of the layouts of the highest probabilities that add up to 90 %."""
    chosen, sum_of_chosen = [], 0
    for row in sorted(results, key=lambda row: -float(row["best_probability"] or 0)):
        if sum_of_chosen < 0.9:
            chosen.append(tuple(int(row.get(key.split(".")[-1]) or row[key]) for key in KEYS))
            sum_of_chosen += float(row["best_probability"] or 0)
    return chosen


def run(stepcast, devices, layouts, fed_in, draws, folder):
    (folder / "s.yaml").write_text(scenario_of(devices, layouts), encoding="utf-8")
    lines = [",".join(("workers", *KEYS, "step_seconds"))]
    lines += [",".join(map(str, (devices, *row["key"], row["step_seconds"]))) for row in fed_in]
    (folder / "runs.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    subprocess.run([stepcast, "run", folder / "s.yaml", "--measured", folder / "runs.csv", "--draws", str(draws), "--results-only",
                    "--no-advice", "-o", folder / "out"], check=True, stdout=subprocess.DEVNULL, env=os.environ | {"STEPCAST_DATA": HERE.parents[1]})
    with open(folder / "out/results.csv", newline="", encoding="utf-8") as file:
        return not_told_apart(list(csv.DictReader(file)))


def main(stepcast, pairs=1, draws=8):
    found, shares = [], []
    with tempfile.TemporaryDirectory() as folder:
        for devices, layouts in networks():
            best = min(layouts, key=lambda row: row["step_seconds"])
            for pair in range(int(pairs)):
                fed_in = random.Random(1000 * pair + NETWORKS[devices]["width"]).sample(layouts, 2)
                chosen = run(stepcast, devices, layouts, fed_in, draws, pathlib.Path(folder))
                found.append(best["key"] in chosen)
                shares.append(len(chosen) / len(layouts))
                print(f"{devices} devices, fed in {' and '.join(str(row['key']) for row in fed_in)}{' (the fastest)' if best in fed_in else ''}: "
                      f"{len(chosen)} of {len(layouts)} cannot be told apart, {'with' if found[-1] else 'without'} the fastest", flush=True)
    print(f"{len(found)} runs: with the fastest {sum(found)}, under a third of the layouts {sum(share < 1 / 3 for share in shares)}")
    return 0 if sum(found) >= 0.9 * len(found) and max(shares) < 0.6 else 1


sys.exit(main(*sys.argv[1:]))
