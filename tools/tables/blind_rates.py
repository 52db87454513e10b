"""Forecasts of absolute training rates that were collected before any of them was forecast: one recipe for all rows of the CSV.

Each row is a scenario of one point. What the source says stands in the row (`kernels`, `layout`, `recompute`); the framework gives `strategy.like` where a
stack of that name exists; everything else has its default. The first forecasts of all rows stay in the file of results beside those of today's program.
"""
import concurrent.futures
import json
import os
import pathlib
import shlex
import statistics
import subprocess
import tempfile

from tables.page import ROOT, csv_text, grouped, markdown, percent, quantile, read_csv

ROWS = "docs/notes/2026-11-blind-rates.csv"
RESULTS = "docs/notes/2026-11-blind-rates-results.csv"
PAGE = "docs/notes/2026-11-absolute-rates.md"
TODAY = {"today": "forecast", "today_low": "low", "today_high": "high", "today_memory_gb": "forecast_memory_gb", "today_error": "error"}
DEVICES = {"V100": ("v100",), "A100": ("a100",), "H100, H200": ("h100", "h200"), "GB200": ("gb200",), "GeForce": ("rtx",), "MI300X": ("mi300x",), "Gaudi 2": ("gaudi",),
           "TPU": ("tpu",)}
COLUMNS = ("number", "source", "device", "devices", "network", "measured", "unit", "forecast", "low", "high", "memory_gb", "forecast_memory_gb", "error", *TODAY)
STACKS = ("pytorch-ddp", "pytorch-fsdp", "megatron-core")
PLATFORMS = {"v100-sxm2-16gb": "dgx1v", "a100-80gb": "dgx-a100", "a100-40gb": "dgx-a100", "h100-sxm": "dgx-h100-pod", "h200": "dgx-h100-pod"}
TIMEOUT = 400
# layers, width, heads, words; the sequence stands in the row
STACK_NETWORKS = {"gpt3-125m": (12, 768, 12, 50264), "gpt3-355m": (24, 1024, 16, 50264), "gpt3-760m": (24, 1536, 16, 50264),
                  "gpt3-1.3b": (24, 2048, 16, 50264), "gpt3-2.7b-h20": (32, 2560, 20, 50264), "gpt2-124m": (12, 768, 12, 50304),
                  "gpt2-350m": (24, 1024, 16, 50304), "gpt2-774m": (36, 1280, 20, 50304), "gpt2-1558m": (48, 1600, 25, 50304),
                  "gpt-126m": (12, 768, 12, 50304), "gpt-5b": (24, 4096, 32, 50304), "nemo-5b": (24, 4096, 32, 51200), "nemo-20b": (44, 6144, 48, 51200)}
# layers, width, heads, heads of keys, features of a head, hidden units, words, tied
LLAMA_NETWORKS = {"nanotron-1b": (24, 2048, 32, 32, 64, 4096, 50257, True), "llama-34b": (48, 8192, 64, 8, 128, 22016, 32000, False),
                  "tinyllama": (22, 2048, 32, 4, 64, 5632, 32000, False), "maxtext-16b": (32, 4096, 64, 64, 128, 28672, 32000, False),
                  "maxtext-32b": (32, 8192, 64, 64, 128, 28672, 32000, False), "maxtext-64b": (64, 8192, 64, 64, 128, 28672, 32000, False)}
# imported from Hugging Face configurations
BERT = {"model_type": "bert", "hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12, "num_attention_heads": 12, "vocab_size": 30522,
        "max_position_embeddings": 512, "type_vocab_size": 2, "hidden_act": "gelu", "hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1,
        "architectures": ["BertForQuestionAnswering"]}
VIT = {"model_type": "vit", "hidden_size": 384, "intermediate_size": 1536, "num_hidden_layers": 12, "num_attention_heads": 6, "image_size": 224, "patch_size": 16,
       "num_channels": 3, "hidden_act": "gelu", "qkv_bias": True, "num_labels": 1000, "architectures": ["ViTForImageClassification"]}
T5 = {"model_type": "t5", "vocab_size": 32128, "relative_attention_num_buckets": 32, "feed_forward_proj": "gated-gelu", "tie_word_embeddings": False,
      "dropout_rate": 0.0, "d_kv": 64, "architectures": ["T5ForConditionalGeneration"]}
QWEN = {"model_type": "qwen3_moe", "hidden_size": 2048, "intermediate_size": 6144, "moe_intermediate_size": 768, "num_hidden_layers": 48, "num_attention_heads": 32,
        "num_key_value_heads": 4, "head_dim": 128, "num_experts": 128, "num_experts_per_tok": 8, "vocab_size": 151936, "tie_word_embeddings": False,
        "norm_topk_prob": True, "decoder_sparse_step": 1, "mlp_only_layers": [], "hidden_act": "silu", "architectures": ["Qwen3MoeForCausalLM"]}
IMPORTED = {"bert-base-squad": BERT, "bert-large-squad": BERT | {"hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 24, "num_attention_heads": 16},
            "vit-s16": VIT, "qwen3-moe-30b": QWEN, "t5-1.1-small": T5 | {"d_model": 512, "d_ff": 1024, "num_layers": 8, "num_decoder_layers": 8, "num_heads": 6},
            "t5-1.1-large": T5 | {"d_model": 1024, "d_ff": 2816, "num_layers": 24, "num_decoder_layers": 24, "num_heads": 16},
            "t5-1.1-xl": T5 | {"d_model": 2048, "d_ff": 5120, "num_layers": 24, "num_decoder_layers": 24, "num_heads": 32}}
# options of `stepcast init --new-platform`: a user's way to a cluster that is not shipped
WRITTEN = {"desktop": "--nodes 1 --devices 1 --nics 1 --nic '10 Gbit/s' --nvlink none", "a100-400g": "--nodes 16 --devices 8 --nics 4 --nic '100 Gbit/s' --nvlink '240 GB/s'",
           "h100-800g": "--nodes 12 --devices 8 --nics 8 --nic '100 Gbit/s' --nvlink '370 GB/s'",
           "mi300x-box": "--nodes 1 --devices 8 --nics 8 --nic '400 Gbit/s' --nvlink-pairs '48 GB/s'",
           "a800-box": "--nodes 1 --devices 8 --nics 1 --nic '100 Gbit/s' --nvlink '160 GB/s'",
           "gaudi2-boxes": "--nodes 8 --devices 8 --nics 24 --nic '100 Gbit/s' --nvlink-pairs '37.5 GB/s'"}
# Google Cloud's pages: 1,600 and 4,800 Gbit/s between chips, over four and six links
TORUS = """name: {name}
source: "docs.cloud.google.com/tpu/docs, interchip bandwidth over the links of a chip"
device: {device}
nodes: {nodes}
max_nodes: {nodes}
node: {{kind: single, device_link: {{bandwidth: {all}, latency: 0 us}}, memory: {{bandwidth: 100 GB/s, latency: 0.1 us}}}}
network: {{kind: torus, nics: 1, bandwidth: {all}, latency: 1 us, nodes_per_router: 1, routers: {routers}, x_cable: {link}, y_cable: {link}, z_cable: {link}}}
messages: {{between_nodes: [{{overhead: 1 us, bandwidth_factor: 1}}], inside_node: [{{overhead: 1 us, bandwidth_factor: 1}}]}}
"""
TORI = {"tpu-v5e-torus": ("tpu-v5e", 256, "200 GB/s", "[16, 16, 1]", "{bandwidth: 50 GB/s, latency: 0.1 us}"),
        "tpu-v5p-torus": ("tpu-v5p", 64, "600 GB/s", "[4, 4, 4]", "{bandwidth: 100 GB/s, latency: 0.1 us}")}


def llama_text(name, sequence):
    layers, width, heads, keys, head, hidden, words, tied = LLAMA_NETWORKS[name]
    block = ["{name: norm1, kind: rms_norm}", f"{{name: qkv, kind: dense, units: {(heads + 2 * keys) * head}, bias: false}}",
             f"{{name: rotary, kind: rotary_embedding, heads: {heads}, kv_heads: {keys}}}",
             f"{{name: attention, kind: attention, heads: {heads}, kv_heads: {keys}, causal: true}}", f"{{name: projection, kind: dense, units: {width}, bias: false}}",
             "{name: add1, kind: add, inputs: [projection, previous]}", "{name: norm2, kind: rms_norm}", f"{{name: expand, kind: dense, units: {2 * hidden}, bias: false}}",
             "{name: swiglu, kind: swiglu}", f"{{name: contract, kind: dense, units: {width}, bias: false}}", "{name: add2, kind: add, inputs: [contract, add1]}"]
    lines = [f"name: {name}", 'source: "the row\'s source"', f"sample: sequence of {sequence} tokens", f"input: [{sequence}]", "layers:",
             f"  - {{name: tokens, kind: embedding, rows: {words}, columns: {width}}}", f"  - repeat: {layers}", "    name: block", "    layers:",
             *(f"      - {layer}" for layer in block), "  - {name: final_norm, kind: rms_norm}",
             f"  - {{name: vocabulary, kind: dense, units: {words}, bias: false{', weight_of: tokens' if tied else ''}}}", "  - {name: loss, kind: softmax_cross_entropy}"]
    return "\n".join(lines) + "\n"


class Refused(Exception):
    pass


def called(program, folder, *arguments):
    done = subprocess.run((program, *arguments), cwd=folder, capture_output=True, text=True, timeout=TIMEOUT, env=os.environ | {"STEPCAST_DATA": str(ROOT)})
    if done.returncode:
        raise Refused(f"{arguments[0]}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def model_of(program, folder, row):
    name = row["network"]
    if name in STACK_NETWORKS:
        layers, width, heads, words = STACK_NETWORKS[name]
        return (f'{{name: {name.replace(".", "-")}, source: "the row\'s source", sample: "sequence of {row["sequence"]} tokens", transformer_stack: '
                f'{{layers: {layers}, width: {width}, heads: {heads}, sequence: {row["sequence"]}, vocabulary: {words}}}}}')
    if name in LLAMA_NETWORKS:
        (folder / "net.yaml").write_text(llama_text(name, row["sequence"]), encoding="utf-8")
        return "net.yaml"
    if name in IMPORTED:
        (folder / "config.json").write_text(json.dumps(IMPORTED[name]), encoding="utf-8")
        sequence = () if name.startswith("vit") else ("--sequence", row["sequence"].split()[0])
        called(program, folder, "import", "config.json", *sequence, "-o", "net.yaml")
        if name.startswith("t5"):
            text = (folder / "net.yaml").read_text(encoding="utf-8")
            text = text.replace("input: [1024]", "input: [626]").replace("first: 512, count: 512", "first: 512, count: 114")
            (folder / "net.yaml").write_text(text, encoding="utf-8")
        return "net.yaml"
    return name


def platform_of(program, folder, row):
    name = row["platform"] or PLATFORMS.get(row["device"], "desktop")
    if name in TORI:
        device, nodes, everything, routers, link = TORI[name]
        (folder / "cluster.yaml").write_text(TORUS.format(name=name, device=device, nodes=nodes, all=everything, routers=routers, link=link), encoding="utf-8")
    elif name in WRITTEN:
        called(program, folder, "init", "cluster.yaml", "--new-platform", "--device", row["device"], *shlex.split(WRITTEN[name]), "-y")
    else:
        return name
    return "cluster.yaml"


def joined(*mappings):
    """Flow mappings of YAML put together."""
    parts = [mapping.strip()[1:-1].strip() for mapping in mappings]
    return "{" + ", ".join(part for part in parts if part) + "}"


def scenario_of(program, folder, row):
    if row["kernels"] == "not writable":
        raise Refused(f"cannot be written: {row['note']}")
    half = row["precision"] not in ("f32", "tf32")
    strategy = joined(row["layout"], f"{{like: {row['framework']}}}" if row["framework"] in STACKS else "{}", "{precision: mixed}" if half else "{}",
                      "{}" if row["recompute"] == "none" else f"{{recompute: {row['recompute']}}}")
    given = {"default": "{}", "nemo": "{optimizer: adam}"}.get(row["kernels"], row["kernels"])
    precision = f"{{precision: {row['precision']}}}"
    kernels = "" if row["kernels"] == "default" else f"kernels: {joined(precision, given)}\n"
    platform = platform_of(program, folder, row)
    nodes = "" if platform == "cluster.yaml" else f"set: {{platform.device: {row['device']}, platform.nodes: {-(-int(row['devices']) // 8)}}}\n"
    text = (f"name: blind-rates\nmodel: {model_of(program, folder, row)}\ntrace: derived\n{kernels}platform: {platform}\n{nodes}"
            f"global_batch: {row['batch']}\nstrategy: {strategy}\nsweep: {{workers: [{row['devices']}]}}\n")
    (folder / "scenario.yaml").write_text(text, encoding="utf-8")


def forecast(program, folder, row):
    try:
        scenario_of(program, folder, row)
        called(program, folder, "run", "scenario.yaml", "--results-only", "--no-advice", "-o", "results")
        found = read_csv(folder / "results/results.csv")[0]
        if found.get("failed"):
            raise Refused(f"failed: {found['failed']}")
        each = float(row["sequence"]) if row["unit"] == "tokens/s" else 1
        rate, low, high = (each * float(found[f"samples_per_second{end}"]) for end in ("", "_low", "_high"))
        return {"forecast": f"{rate:.5g}", "low": f"{low:.5g}", "high": f"{high:.5g}", "forecast_memory_gb": f"{float(found['memory_bytes']) / 1e9:.2f}",
                   "error": "" if found["fits"] == "true" else f"does not fit: {found['why_not']}"}
    except Refused as refused:
        return {"error": " ".join(str(refused).split())}
    except subprocess.TimeoutExpired:
        return {"error": f"no result in {TIMEOUT} s"}


def renewed(program):
    """The results with the forecasts of today's program in `today`, `today_low` and `today_high`; those of the first run stay."""
    program = os.path.abspath(program)
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(2) as workers:
        def one(row, first):
            own = pathlib.Path(folder) / row["number"]
            own.mkdir()
            found = forecast(program, own, row)
            return first | {name: found.get(old, "") for name, old in TODAY.items()}
        results = list(workers.map(one, read_csv(ROWS), read_csv(RESULTS)))
    return {RESULTS: csv_text(COLUMNS, results)}


def errors_of(rows, forecast, low, high):
    """Median ratio, median and mean error, and share inside the interval, of the rows that have a forecast."""
    done = [row for row in rows if row[forecast]]
    ratios = sorted(float(row[forecast]) / float(row["measured"]) for row in done)
    errors = sorted(abs(ratio - 1) for ratio in ratios)
    inside = [float(row[low]) <= float(row["measured"]) <= float(row[high]) for row in done]
    return len(done), quantile(ratios, 0.5), quantile(errors, 0.5), statistics.mean(errors), statistics.mean(inside)


def in_short():
    """Rows of the first run, and their median and mean error and share inside."""
    count, _, median, mean, inside = errors_of(read_csv(RESULTS), "forecast", "low", "high")
    return count, median, mean, inside


def line_of(name, rows):
    cells = [name, sum(bool(row["forecast"]) for row in rows)]
    for names in (("forecast", "low", "high"), tuple(TODAY)[:3]):
        _, ratio, _, mean, inside = errors_of(rows, *names)
        cells += [f"{ratio:.2f}", percent(mean, 0), percent(inside, 0)]
    return cells


def tables():
    rows = read_csv(RESULTS)
    lines = [line_of(name, [row for row in rows if row["device"].startswith(begins)]) for name, begins in DEVICES.items()]
    heads = "| device | blind rows | forecast / measured | mean error | inside | today | mean error | inside |"
    return {PAGE: {"blind": markdown(heads, [*lines, line_of("all", rows)])}}
