"""Absolute forecasts of MPT networks by FSDP on A100 and H100: tokens/s of a device without a rate that is fed in.

Renewed with the program in minutes: each row of the CSV, from the tables of mosaicml/llm-foundry (scripts/train/benchmarking/README.md at 061f2c7ce64e), is
a scenario of one point with the stack's keys, autocast, FlashAttention's first version and the table's micro-batch and recomputation.
"""
import os
import statistics
import subprocess
import tempfile

from tables.page import ROOT, csv_text, grouped, markdown, percent, quantile, read_csv

PAGE = "docs/notes/2026-11-absolute-rates.md"
ROWS = "docs/notes/2026-11-fsdp-rates.csv"
GIVEN = ("device", "network", "sequence", "devices", "micro_batch", "accumulation", "recompute", "published")
COLUMNS = (*GIVEN, "forecast", "low", "high")
NETWORKS = {"125m": (12, 768, 12), "350m": (24, 1024, 16), "760m": (24, 1536, 12), "1b": (24, 2048, 16), "3b": (32, 2560, 20), "7b": (32, 4096, 32),
            "13b": (40, 5120, 40), "30b": (48, 7168, 56), "70b": (80, 8192, 64)}
PLATFORMS = {"h100-sxm": "dgx-h100-pod", "a100-80gb": "dgx-a100", "a100-40gb": "dgx-a100"}
SCENARIO = """name: fsdp-rates
model: {{name: mpt, source: "llm-foundry, scripts/train/yamls", sample: "sequence of {sequence} tokens", transformer_stack: {{layers: {layers},
  width: {width}, heads: {heads}, sequence: {sequence}, vocabulary: 50368}}}}
trace: derived
kernels: {{attention: flash_1, autocast: true}}
platform: {platform}
set: {{platform.device: {device}, platform.nodes: 16}}
batch_per_worker: {batch}
strategy: {{kind: zero, like: pytorch-fsdp, bucket: {bucket} B, accumulation: {accumulation}, recompute: {recompute}}}
sweep: {{workers: [{devices}]}}
"""


def forecast(program, folder, row):
    layers, width, heads = NETWORKS[row["network"]]
    text = SCENARIO.format(**row, layers=layers, width=width, heads=heads, platform=PLATFORMS[row["device"]], bucket=24 * width * width,
                           batch=int(row["micro_batch"]) * int(row["accumulation"]))
    with open(f"{folder}/scenario.yaml", "w", encoding="utf-8") as file:
        file.write(text)
    command = (os.path.abspath(program), "run", "scenario.yaml", "--results-only", "--no-advice", "-o", f"results-{row['number']}")
    subprocess.run(command, cwd=folder, check=True, capture_output=True, env=os.environ | {"STEPCAST_DATA": str(ROOT)})
    return read_csv(f"{folder}/results-{row['number']}/results.csv")[0]


def renewed(program):
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for number, row in enumerate(read_csv(ROWS)):
            given = {name: row[name] for name in GIVEN}
            found = forecast(program, folder, given | {"number": number})
            rates = [int(row["sequence"]) / int(row["devices"]) * float(found[f"samples_per_second{end}"]) for end in ("", "_low", "_high")]
            rows.append(given | {name: f"{rate:.5g}" for name, rate in zip(COLUMNS[len(GIVEN):], rates)})
    return {ROWS: csv_text(COLUMNS, rows)}


def line_of(name, rows):
    ratios = sorted(float(row["forecast"]) / float(row["published"]) for row in rows)
    inside = [float(row["low"]) <= float(row["published"]) <= float(row["high"]) for row in rows]
    return (name, len(rows), *(f"{quantile(ratios, share):.2f}" for share in (0.05, 0.5, 0.95)),
            percent(statistics.mean(abs(ratio - 1) for ratio in ratios)), percent(statistics.mean(inside)))


def tables():
    rows = read_csv(ROWS)
    lines = [line_of(name, own) for name, own in grouped(rows, "device").items()]
    return {PAGE: {"fsdp": markdown("| device | rows | forecast / published: 5 % | 50 % | 95 % | mean error | inside 90 % |", [*lines, line_of("all", rows)])}}
