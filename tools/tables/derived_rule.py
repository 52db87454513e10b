"""The rule for derived traces against layers and kernels that others measured, from docs/notes/2026-11-derived-rule.csv.

Each source is compared twice: with the device files as shipped, some of whose shares were fitted on it, and with shares fitted again
without any row of that source. Renewed with a program in 75 s. A check computes every 30th kernel of DeepBench and all other rows by the
shipped device files, in 4 s, and holds the kinds of transformers to their limit.
"""
import collections
import itertools
import os
import subprocess
import sys
import tempfile

try:
    import yaml
except ImportError:  # needed with a program only
    yaml = None

from tables.page import ROOT, csv_text, grouped, markdown, read_csv

PAGE = "docs/notes/2026-11-derived-rule.md"
ROWS = "docs/notes/2026-11-derived-rule.csv"
SOURCES = "docs/notes/2026-11-derived-rule-sources.csv"
COLUMNS = ("source", "device", "precision", "batch", "layer", "kind", "pass", "measured_us", "rule_us", "rule_without_source_us")
DEVICES = str(ROOT / "models/devices/{}.yaml")
PASSES = ("forward", "backward_data", "backward_weights")
# What is taken for a share that no other source of the device determines: that of this device, and of convolutions that of the second.
RELATIVE = {"v100-sxm2-16gb": ("a100-40gb", "a100-40gb"), "a100-40gb": ("v100-sxm2-16gb", "h200"),
            "gh200": ("a100-40gb", "a100-40gb"), "h200": ("a100-40gb", "a100-40gb")}
CONVOLUTIONS = ("pointwise", "window", "weights")
CHANNELS_LAST = ("stepcast-2026",)  # sources
FITTED = ("streaming", "max_pool", "batch_norm", "layer_norm", "dense", "pointwise", "window", "weights")
MISSED = 0.20
TRANSFORMERS = ("dense", "attention", "layer_norm")
# Covers what the host's time varies: norms of sailor at batch 1 on a V100, which the host bounds, take 49.5 to 72.5 us.
HOST_SPREAD = 1.5

OPT_LAYER = """
name: opt-350m-layer
source: "S. Zhang et al., OPT, arXiv:2205.01068, table 1: width 1,024, 16 heads, 2,048 tokens; one layer"
input: [2048, 1024]
layers:
  - {name: below, kind: dense, units: 1024}
  - {name: norm1, kind: layer_norm}
  - {name: qkv, kind: dense, units: 3072}
  - {name: attention, kind: attention, heads: 16, causal: true}
  - {name: projection, kind: dense, units: 1024}
  - {name: norm2, kind: layer_norm}
  - {name: up, kind: dense, units: 4096, bias: BIAS}
  - {name: gelu, kind: gelu}
  - {name: down, kind: dense, units: 1024}
  - {name: loss, kind: mean_squared_error}
"""


def load_yaml(file):
    with open(file, encoding="utf-8") as stream:
        return yaml.load(stream, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def program_of(name):
    if yaml is None:
        print("documents: python3-yaml is not installed")
        sys.exit(77)
    os.environ.setdefault("STEPCAST_DATA", str(ROOT))
    return os.path.abspath(name)


# ---------------------------------------------------------------- measured rows

def operator_of(row):
    """What the profiler of sailor called. Operators of one kind launch alike, but qkv also splits its output."""
    return (row["device"], row["layer"] if row["layer"] == "qkv" else row["kind"], row["pass"])


def drop_host_bound(rows):
    """Rows without those of sailor that the host may bound.

    Its profiler is Aceso's, which reads the host's clock around a series of calls that ends with one synchronization. So a time is
    the larger one of the GPU's and of the host's to issue a call, and the shortest time of an operator at any precision and batch is
    at least the host's.
    """
    sailor = [row for row in rows if row["source"] == "sailor"]
    least = {operator: min(float(row["microseconds"]) for row in own) for operator, own in
             itertools.groupby(sorted(sailor, key=operator_of), operator_of) for own in [list(own)]}
    return [row for row in rows if row["source"] != "sailor" or float(row["microseconds"]) > HOST_SPREAD * least[operator_of(row)]]


def kernel_network(row):
    """One layer behind another with parameters, so that it has all passes."""
    shape = row["input"].split()
    keys = ", ".join(row["keys"].replace(": ", ":").split()).replace(":", ": ")
    below = "{name: below, kind: dense, units: %s}" % shape[-1]
    if row["kind"] == "convolution":
        words = row["keys"].replace("stride", "| stride").replace("kernel", "| kernel").replace("pad", "| pad").split("|")
        keys = ", ".join(f"{key}: [{', '.join(values)}]" if key != "filters" else f"filters: {values[0]}"
                         for key, *values in (word.replace(":", "").split() for word in words)) + ", bias: false"
        below = "{name: below, kind: convolution, filters: %s, kernel: 1}" % shape[0]
    elif row["kind"] == "dense":
        keys += ", bias: false"
    return (f"name: one\nsource: DeepBench\ninput: [{', '.join(shape)}]\nlayers:\n  - {below}\n"
            f"  - {{name: a, kind: {row['kind']}, {keys}}}\n  - {{name: loss, kind: mean_squared_error}}\n")


def deepbench_rows():
    """DeepBench's kernels in the form of layers.csv."""
    for kernel in read_csv("models/measured/deepbench-v100.csv"):
        times = {part: float(kernel[part + "_us"] or 0) for part in PASSES}
        if kernel["kind"] in ("lstm", "gru"):  # one call computes both gradients
            times["backward"] = times.pop("backward_data") + times.pop("backward_weights")
        few = kernel["kind"] == "convolution" and int(kernel["input"].split()[0]) < 8
        shared = {"source": "deepbench", "device": "v100-sxm2-16gb", "precision": kernel["precision"], "batch": kernel["batch"],
                  "network": kernel_network(kernel), "layer": "a", "kind": kernel["kind"] + few * " of 1 or 3 channels",
                  "shape": f"{kernel['kind']} [{kernel['input']}] {kernel['keys']}", "pointwise": "kernel: 1 1" in kernel["keys"]}
        for part, time in times.items():
            if time > 0:
                yield dict(shared, **{"pass": part, "microseconds": time})


def measured_rows():
    rows = drop_host_bound(read_csv("models/measured/layers.csv"))
    for row in rows:
        row["pointwise"] = not ("3x3" in row["layer"] or row["layer"] == "conv1")
    return rows + list(deepbench_rows())


# ---------------------------------------------------------------- the rule

class Rule:
    """Times of `stepcast derive`, each network once for each device file."""

    def __init__(self, stepcast, rows):
        self.stepcast, self.known = stepcast, {}
        # Sums by kind (layer "*") are over the layers that the profiles name.
        self.kinds = {row["layer"]: row["kind"] for row in rows if row["network"] == "resnet50" and row["layer"] != "*"}

    def derive(self, network, batch, device, precision, layout):
        """Microseconds by layer and pass. fp16 in the measured transformers is Megatron's, with a fused softmax; bf16 is autocast."""
        half = {"f16": ("--attention", "fused_softmax"), "bf16": ("--autocast",)}.get(precision, ())
        with tempfile.TemporaryDirectory() as folder:
            if "\n" in network:
                with open(folder + "/network.yaml", "w", encoding="utf-8") as file:
                    file.write(network)
                network = folder + "/network.yaml"
            trace = folder + "/trace.yaml"
            subprocess.run([self.stepcast, "derive", "--model", network, "--batch", batch, "--device", device,
                            "--precision", precision, "--layout", layout, *half, "-o", trace], check=True, stdout=subprocess.DEVNULL)
            layers = load_yaml(trace)["layers"]
        return {(layer["name"], part): 1e6 * sum(float(time) for time in layer.get(part, {}).get("seconds", []))
                for layer in layers for part in PASSES}

    def network_times(self, device, network, batch, precision, layout):
        if network != "opt-350m-layer":
            return self.derive(network, batch, device, precision, layout)
        times = self.derive(OPT_LAYER.replace("BIAS", "true"), batch, device, precision, layout)
        plain = self.derive(OPT_LAYER.replace("BIAS", "false"), batch, device, precision, layout)
        if precision != "f16":
            # Without its fused softmax, Megatron masks scores with masked_fill_, whose gradient is a copy that is filled afterwards: two
            # passes over the scores more than the rule has. They are 8 times the elements of GELU, whose backward pass makes 3.
            times["attention", "backward_data"] += 2 / 3 * 8 * times["gelu", "backward_data"]
        # Megatron's GELU adds the bias of the layer below, so its backward pass sums the gradient of that bias.
        times["gelu", "backward_data"] += times["up", "backward_weights"] - plain["up", "backward_weights"]
        # Aceso's operator "qkv" splits its output into three contiguous tensors, and joins their derivatives (Megatron-LM's
        # split_tensor_along_last_dim with contiguous_split_chunks). GELU reads and writes 4 x the width, this copy 3 x.
        for part in ("forward", "backward_data"):
            times["qkv", part] += 3 / 4 * times["gelu", "forward"]
        return times

    def time(self, device, row):
        """Microseconds of the rule for what the row measured."""
        layout = "nhwc" if row["source"] in CHANNELS_LAST else "nchw"
        key = device, row["network"], row["batch"], row["precision"], layout
        if key not in self.known:
            self.known[key] = self.network_times(*key)
        layers = [name for name, kind in self.kinds.items() if kind == row["kind"]] if row["layer"] == "*" else [row["layer"]]
        parts = PASSES[1:] if row["pass"] == "backward" else (row["pass"],)
        return sum(self.known[key][layer, part] for layer in layers for part in parts)

    def forget(self, device):
        self.known = {key: value for key, value in self.known.items() if key[0] != device}


# ---------------------------------------------------------------- shares fitted without one source

def share_of(row):
    """The share of the device file that a row determines, or none."""
    if row["layer"] in ("fc1000", "*"):
        return None
    if row["kind"] in ("batch_norm", "layer_norm", "dense", "max_pool"):
        return row["kind"]
    if row["kind"] in ("relu", "add"):
        return "streaming"
    if row["kind"] != "convolution" or row["pass"] == "backward_data":
        return None
    return "weights" if row["pass"] != "forward" else "pointwise" if row["pointwise"] else "window"


def place_of(device, share, precision):
    """Where a device file holds a share in use for the precision: a key of `precisions`, or `kernels`. bf16 has those of f16, too."""
    for place in ("bf16", "f16") if precision == "bf16" else (precision,):
        if share in device.get("precisions", {}).get(place, {}):
            return place
    return "kernels"


def mapping_at(device, place):
    return device["kernels"] if place == "kernels" else device["precisions"][place]


def borrowed(relative, share, place):
    """The share of another device, of the same precision or another of tensor cores."""
    others = relative.get("precisions", {})
    for precision in () if place == "kernels" else (place, *(("f16",) if place == "bf16" else ()), "tf32", "f16"):
        if share in others.get(precision, {}):
            return others[precision][share]["value"]
    neutral = {"weights": 1, "max_pool": relative["kernels"]["streaming"]["value"]}
    return relative["kernels"].get(share, {"value": neutral.get(share)})["value"]


def sums_of_rows(rule, file, device, rows):
    """Seconds of the rule and measured, by place and share."""
    sums = collections.defaultdict(lambda: [0, 0])
    for row in rows:
        share = share_of(row)
        place = place_of(device, share, row["precision"])
        if not share or share not in mapping_at(device, place):
            continue
        part = dict(row, **{"pass": "backward_weights"}) if share == "weights" else row
        ours = rule.time(file, part)
        # The measured time of the weights' part is all less the rule's data part.
        sums[place, share][0] += ours
        sums[place, share][1] += float(row["microseconds"]) - (rule.time(file, row) - ours)
    return sums


def write_device(device, file):
    with open(file, "w", encoding="utf-8") as stream:
        yaml.safe_dump(device, stream)


def read_device(name):
    return load_yaml(DEVICES.format(name))


def fitted_without(rule, name, rows, folder):
    """The device file with shares fitted on the rows; shares that no row determines are those of a relative."""
    device, file = read_device(name), f"{folder}/{name}.yaml"
    relative, of_convolutions = (read_device(one) for one in RELATIVE[name])
    for _ in range(3):
        write_device(device, file)
        rule.forget(file)
        sums = sums_of_rows(rule, file, device, rows)
        for (place, share), (ours, measured) in sums.items():
            one = mapping_at(device, place)[share]
            one["value"] = round(min(1.0, max(0.02, one["value"] * ours / measured)), 4)
    for place in ("kernels", *device.get("precisions", {})):
        for share, one in mapping_at(device, place).items():
            if share in FITTED and (place, share) not in sums:
                one["value"] = borrowed(of_convolutions if share in CONVOLUTIONS else relative, share, place)
    write_device(device, file)
    rule.forget(file)
    return file


def add_left_out(rule, rows):
    """Adds to each row the rule's time, and the time by shares fitted without the row's source."""
    for device, source in {(row["device"], row["source"]): 0 for row in rows}:
        own = [row for row in rows if row["device"] == device]
        fit = [row for row in own if row["source"] != source]
        with tempfile.TemporaryDirectory() as folder:
            file = fitted_without(rule, device, fit, folder)
            for row in own:
                if row["source"] == source:
                    row["rule"], row["left_out"] = rule.time(device, row), rule.time(file, row)


# ---------------------------------------------------------------- tables

def rounded_percent(value, sign="+"):
    text = f"{100 * value:{sign}.0f} %"
    return "0 %" if text in ("+0 %", "-0 %") else text


def errors(rows, column):
    """Error weighted by time, and error of the sum."""
    pairs = [(float(row[column]), float(row["measured_us"])) for row in rows]
    total = sum(measured for _, measured in pairs)
    return (rounded_percent(sum(abs(ours - measured) for ours, measured in pairs) / total, ""),
            rounded_percent(sum(ours for ours, _ in pairs) / total - 1))


def errors_by_kind(rows, column):
    """Error of the sum of each kind that takes at least 0.5 % of the time."""
    sums = {kind: [sum(float(row[column]) for row in own), sum(float(row["measured_us"]) for row in own)]
            for kind, own in grouped(rows, "kind").items()}
    total = sum(measured for _, measured in sums.values())
    return {kind: ours / measured - 1 for kind, (ours, measured) in sums.items() if measured > 0.005 * total}


def cases(rows):
    """Rows of one line of the tables, by source, device, precision and batch; those of DeepBench have many batches."""
    rows = [row | {"batch": "any"} if row["source"] == "deepbench" else row for row in rows]
    return grouped(rows, "source", "device", "precision", "batch")


def source_lines(rows):
    """Errors in percent of each source, device, precision and batch."""
    columns = ("source", "device", "precision", "batch", "rows", "shipped_weighted", "shipped_sum", "without_source_weighted", "without_source_sum")
    lines = [(*case, len(own), *errors(own, "rule_us"), *errors(own, "rule_without_source_us")) for case, own in cases(rows).items()]
    return csv_text(columns, [dict(zip(columns, (str(cell).removesuffix(" %") for cell in line))) for line in lines])


def case_name(source, device, precision, batch):
    return f"{source}, `{device}`, {precision}, {batch}"


def missed_kinds(rows):
    for case, own in cases(rows).items():
        shipped = errors_by_kind(own, "rule_us")
        for kind, error in errors_by_kind(own, "rule_without_source_us").items():
            if max(abs(shipped[kind]), abs(error)) > MISSED:
                yield case_name(*case), kind, rounded_percent(shipped[kind]), rounded_percent(error)


def files():
    return {SOURCES: source_lines(read_csv(ROWS))}


def tables():
    heads = "| source, device, precision, batch | kind missed by more than 20 % | shipped | without it |"
    return {PAGE: {"rule by kind": markdown(heads, missed_kinds(read_csv(ROWS)))}}


# ---------------------------------------------------------------- with a program

def renewed(stepcast):
    rows = measured_rows()
    add_left_out(Rule(program_of(stepcast), rows), rows)
    return {ROWS: csv_text(COLUMNS, [row | {"layer": row.get("shape", row["layer"]), "measured_us": str(row["microseconds"]),
                                            "rule_us": f"{row['rule']:.4g}", "rule_without_source_us": f"{row['left_out']:.4g}"} for row in rows])}


QUICK = 30  # of DeepBench's kernels, each has a network of its own


def fault(stepcast):
    """What a program gives that the file does not have; none: nothing."""
    rows, lines = measured_rows(), read_csv(ROWS)
    known = ("source", "device", "precision", "batch", "kind", "pass")
    if len(lines) != len(rows):
        return f"{ROWS} has {len(lines)} rows, models/measured gives {len(rows)}"
    rule = Rule(program_of(stepcast), rows)
    for number, (row, line) in enumerate(zip(rows, lines)):
        if any(row[key] != line[key] for key in known) or float(line["measured_us"]) != float(row["microseconds"]):
            return f"{ROWS}:{number + 2}: is not a row of models/measured"
        if row["source"] == "deepbench" and number % QUICK != 0:
            continue
        ours = rule.time(row["device"], row)
        if f"{ours:.4g}" != f"{float(line['rule_us']):.4g}":
            return f"{ROWS}:{number + 2}: expected {ours:.4g}, got {line['rule_us']}; run tools/documents.py derived-rule PROGRAM"
    for case, own in cases(lines).items():
        for kind, error in errors_by_kind(own, "rule_us").items():
            if kind in TRANSFORMERS and abs(error) > MISSED:
                return f"{' '.join(case)}: {kind} is off by {rounded_percent(error)}, more than {rounded_percent(MISSED, '')}"
    return None
