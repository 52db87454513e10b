"""The rule for derived traces against traces of PyTorch's transformers on an H200, from docs/notes/2026-11-derived-traces.csv.

Renewed with a program in 3 s. The file has a row for each kind of layer and one for the step; the page shows the steps.
"""
import collections
import subprocess
import tempfile

from tables.derived_rule import load_yaml, program_of, yaml
from tables.page import ROOT, csv_text, markdown, read_csv

PAGE = "docs/notes/2026-11-derived-rule.md"
DATA = "docs/notes/2026-11-derived-traces.csv"
COLUMNS = ("network", "precision", "kind", "measured_milliseconds", "two_bytes_everywhere_percent", "rule_percent", "rule_without_it_percent")
DEVICE = ROOT / "models/devices/h200.yaml"
PASSES = ("forward", "backward_data", "backward_weights")
SMALL = 0.02  # of the step: kinds below it are one line
# Each trace with the shares of its precision that kernels of the other traces give (the page says how). `cast` is the same without any.
# The factor of odd sizes is read off gpt2-lm: without it, 50,257 words are as 30,522, which is 0.33 in place of half of it.
TRACES = {"vit-b16-b64-h200-bf16-pt2026": {"flash": 0.179},
          "bert-base-masked-b16-h200-bf16-pt2026": {"flash": 0.151, "unaligned": 0.336},
          "gpt2-lm-b8-h200-bf16-pt2026": {"flash": 0.169, "unaligned": 0.66},
          "bert-base-masked-b16-h200-tf32-pt2026": {"flash": 0.165, "unaligned": 0.33}}  # those of f16


def kinds_of(network):
    """Kind of each layer, by name; blocks are repeated."""
    def expand(layers, before):
        for layer in layers:
            if "repeat" not in layer:
                yield before + layer["name"], layer["kind"]
                continue
            for number in range(layer["repeat"]):
                yield from expand(layer["layers"], f"{before}{layer['name']}{number}_")
    (file,) = (ROOT / "models").glob(f"**/{network}.yaml")
    return dict(expand(load_yaml(file)["layers"], ""))


def times_by_kind(trace, kinds):
    """Milliseconds of a step; "update" is that of all layers."""
    sums = collections.Counter()
    for layer in trace["layers"]:
        for part in (*PASSES, "update"):
            seconds = [float(one) for one in layer.get(part, {}).get("seconds", [])]
            if seconds:
                sums["update" if part == "update" else kinds[layer["name"]]] += 1e3 * sum(seconds) / len(seconds)
    return sums


def device_with(shares, precision, file):
    device = load_yaml(DEVICE)
    for share, value in shares.items():
        device["precisions"]["tf32" if precision == "tf32" else "f16"][share]["value"] = value
    with open(file, "w", encoding="utf-8") as stream:
        yaml.safe_dump(device, stream)


def rule(stepcast, trace, kinds, shares, autocast):
    """Milliseconds of a step by kind, by the device file with other shares."""
    gelu = "eager" if trace["model"] == "gpt2-lm" else "fused"  # Hugging Face's gelu_new is written out
    with tempfile.TemporaryDirectory() as folder:
        device, file = folder + "/h200.yaml", folder + "/trace.yaml"
        device_with(shares, trace["precision"], device)
        subprocess.run([stepcast, "derive", "--model", trace["model"], "--batch", str(trace["batch"]), "--device", device,
                        "--precision", trace["precision"], "--attention", "flash", "--gelu", gelu, "--optimizer", "adamw",
                        *(("--autocast",) if autocast else ()), "-o", file], check=True, stdout=subprocess.DEVNULL)
        return times_by_kind(load_yaml(file), kinds)


def rows_of(stepcast, name, shares):
    trace = load_yaml(ROOT / f"models/traces/{name}.yaml")
    kinds = kinds_of(trace["model"])
    half = trace["precision"] == "bf16"
    measured = times_by_kind(trace, kinds)
    rules = [rule(stepcast, trace, kinds, {}, False) if half else None, rule(stepcast, trace, kinds, {}, half),
             rule(stepcast, trace, kinds, shares, half)]
    step = sum(measured.values())
    shown = [kind for kind, time in measured.most_common() if time >= SMALL * step]

    def total(sums, kind):
        return sums[kind] if kind in shown else sum(sums.values()) - (kind == "other") * sum(sums[one] for one in shown)

    for kind in (*shown, "other", "step"):
        errors = [f"{100 * (total(sums, kind) / total(measured, kind) - 1):+.0f}" if sums else "" for sums in rules]
        yield dict(zip(COLUMNS, (trace["model"], trace["precision"], kind, f"{total(measured, kind):.2f}", *errors)))


def renewed(stepcast):
    program = program_of(stepcast)
    return {DATA: csv_text(COLUMNS, [row for name, shares in TRACES.items() for row in rows_of(program, name, shares)])}


def tables():
    lines = [(f"`{row['network']}`", row["precision"], row["measured_milliseconds"], *(row[name] and row[name] + " %" for name in COLUMNS[4:]))
             for row in read_csv(DATA) if row["kind"] == "step"]
    return {PAGE: {"rule and traces": markdown(
        "| network | precision | measured, ms a step | 2 bytes everywhere | rule | rule, shares without it |", lines)}}
