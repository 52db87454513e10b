#!/usr/bin/env python3
"""Runs PyTorch's DistributedDataParallel on 2 CPU ranks over gloo and forecasts its steps before they run.

In one start of both ranks: (1) DDP trains chains of dense layers, of which none is forecast; what it adds to their steps becomes
a platform file. (2) In turns, for each network and batch size, both ranks capture the network at once by tools/capture-torch.py, stepcast
forecasts its points from this capture, the forecasts are written with their SHA-256, and then DDP trains the points. The training loop is
PyTorch's own: nothing of stepcast runs in it. Before DDP, both ranks train the same network without it (without-ddp.csv).

The cores of a virtual machine change their speed within seconds. That is why captures and runs take turns, and why every turn counts: the
forecast of a point is the median of those of all turns (predicted.csv; forecasts.csv has each), and what it is compared with is the
median of all steps (measured.csv). Of a capture, those pairs of steps count whose elapsed and CPU time agree within 3 %.

Usage: torch_ddp.py STEPCAST -o FOLDER [--points NETWORK:BATCH:BUCKET_MIB ...]; then
  stepcast compare FOLDER/predicted.csv FOLDER/measured.csv --by point"""
import argparse
import copy
import csv
import hashlib
import importlib.util
import math
import os
import statistics
import subprocess
import sys
import time

import numpy
import torch
import torch.distributed as dist
import yaml

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
specification = importlib.util.spec_from_file_location("capture_torch", os.path.join(ROOT, "tools", "capture-torch.py"))
capture_torch = importlib.util.module_from_spec(specification)
specification.loader.exec_module(capture_torch)

POINTS = [f"{network}:{batch}:{bucket}"
          for network, batches, buckets in (("small-cnn", (8, 16), (0.5, 25)), ("small-mlp", (8, 16), (1, 25)),
                                            ("small-mesh", (2, 4), (0.1, 25)), ("small-transformer", (4, 8), (0.1, 25)))
          for batch in batches for bucket in buckets]
RANKS = 2
FIRST_BUCKET = dist._DEFAULT_FIRST_BUCKET_BYTES  # 1 MiB


def settings(network, batch, options):
    return argparse.Namespace(model=network, module=None, input=None, tokens=None, loss=None, write_model=None, batch=batch,
                              device="cpu", precision="f32", channels_last=False, optimizer="sgd", threads=1,
                              steps=options.steps, warm_up=2)


LAYERS = 8  # of the networks that DDP's cost is measured with, and parameter tensors of each


def benchmark_network(elements, norm):
    """A chain of dense layers with about so many parameters, `norm`: and batch norm. None of the networks that are forecast is one."""
    width = round(math.sqrt(elements / LAYERS))
    layers = [[torch.nn.Linear(width, width, bias=False), *[torch.nn.BatchNorm1d(width)] * norm, torch.nn.Tanh()] for _ in range(LAYERS)]
    return torch.nn.Sequential(*sum(layers, [])), width


def tensor_bytes(network):
    return [4 * one.numel() for one in network.parameters()]


def slowest(seconds):
    """The longest time of all ranks."""
    longest = torch.tensor(seconds)
    dist.all_reduce(longest, op=dist.ReduceOp.MAX)
    return float(longest)


def timed_step(network, optimizer, x):
    dist.barrier()
    begin = time.perf_counter()
    optimizer.zero_grad(set_to_none=True)
    network(x).sum().backward()
    optimizer.step()
    return slowest(time.perf_counter() - begin)


def bucket_bytes(tensors, cap):
    """The bytes of DDP's buckets, in the order in which they are summed: a bucket is full as soon as its tensors reach 1 MiB (the first
    bucket, whatever the cap) or the cap. `tensors`: bytes in the order in which the network runs."""
    buckets, full = [0], False
    for size in reversed(tensors):
        if full:
            buckets.append(0)
        buckets[-1] += size
        full = buckets[-1] >= (FIRST_BUCKET if len(buckets) == 1 else cap)
    return buckets


def ddp_seconds(elements, norm, caps, repeats=15):
    """What DDP adds to a step, in seconds, for each bucket size.

    Copies of a network take turns: one without DDP, and one for each bucket size. A step counts from a barrier to the end
    of the slower rank, so that the wait for the other rank, which the forecast has too, is in none of the differences."""
    def network_copy(cap):
        torch.manual_seed(1)
        network, width = benchmark_network(elements, norm)
        if cap:
            network = torch.nn.parallel.DistributedDataParallel(network, bucket_cap_mb=cap / 2**20)
        return network, torch.optim.SGD(network.parameters(), lr=1e-6, momentum=0.9), width

    copies = [network_copy(cap) for cap in (None, *caps)]
    x = torch.rand(64, copies[0][2])
    once = slowest(statistics.median(timed_step(*copies[0][:2], x) for _ in range(5)))  # the same batch on all ranks
    x = torch.rand(max(8, int(64 * 0.02 / once)), copies[0][2])  # steps of about 20 ms
    rounds = [[timed_step(network, optimizer, x) for network, optimizer, _ in copies] for _ in range(repeats + 3)][3:]
    return [statistics.median(one[i] - one[0] for one in rounds) for i in range(1, len(copies))]


def fitted(rows, seconds):
    """Coefficients of the least relative errors; a negative one counts as 0, and the others are fitted again."""
    rows, seconds = numpy.array(rows), numpy.maximum(seconds, 1e-5)
    kept, found = list(range(rows.shape[1])), numpy.zeros(rows.shape[1])
    while kept:
        found[:] = 0
        found[kept] = numpy.linalg.lstsq(rows[:, kept] / seconds[:, None], numpy.ones(len(seconds)), rcond=None)[0]
        if min(found) >= 0:
            break
        kept.remove(int(numpy.argmin(found)))
    return found


def measure_links(folder):
    """Measures what DDP adds to steps of networks of several sizes with several bucket sizes, in seconds: a + b x bytes of the last
    bucket, whose sum nothing follows, + c x number + d x bytes of all buckets before it, which are summed beside the backward
    pass, + e for the broadcast of batch norm's buffers, with which DDP begins a step. The first two are written as a platform, in
    which a ring of 2 ranks takes 2 (latency + half the bytes / bandwidth); returns c, d and e."""
    lines, rows, seconds = ["bytes,batch_norm,bucket_bytes,seconds\n"], [], []
    chains = [(elements, False) for elements in (10_000, 30_000, 100_000, 300_000, 600_000, 1_000_000, 2_000_000)]
    for elements, norm in chains + [(30_000, True), (100_000, True), (600_000, True)]:
        tensors = tensor_bytes(benchmark_network(elements, norm)[0])
        caps = [25 * 2**20, sum(tensors) / 4]
        for cap, one in zip(caps, ddp_seconds(elements, norm, caps)):
            *hidden, last = bucket_bytes(tensors, cap)
            rows.append([1, last, len(hidden), sum(hidden), norm])
            seconds.append(one)
            lines.append(f"{sum(tensors)},{norm:d},{cap:.0f},{one:.6g}\n")
    if dist.get_rank() > 0:
        return None
    a, b, *rest = fitted(rows, seconds)
    with open(os.path.join(folder, "ddp-costs.csv"), "w", encoding="utf-8") as file:
        file.writelines(lines)
    platform = {
        "name": "gloo-loopback", "source": "torch_ddp.py: what DDP over gloo adds to steps of 2 ranks",
        "device": "cpu-core", "nodes": RANKS, "max_nodes": {"value": RANKS, "source": "the run"},
        "node": {"kind": "single", "device_link": {"bandwidth": "1000 GB/s", "latency": "0 us", "source": "not used"},
                 "memory": {"bandwidth": "1000 GB/s", "latency": "0 us", "source": "not used"}},
        "network": {"kind": "switch", "bandwidth": f"{1e-9 / max(b, 1e-12):.4g} GB/s", "latency": f"{1e6 * max(a, 2e-6) / 2:.4g} us",
                    "source": "ddp-costs.csv"},
        "messages": {where: [{"overhead": "0 us", "bandwidth_factor": 1, "source": "stands at network"}]
                     for where in ("between_nodes", "inside_node")},
    }
    with open(os.path.join(folder, "platform.yaml"), "w", encoding="utf-8") as file:
        yaml.safe_dump(platform, file, sort_keys=False)
    return rest


def without_clocks(trace):
    """The factor from the sum over layers to the step that PyTorch runs by itself: reading a clock between small layers takes time."""
    samples = [layer[name]["seconds"] for layer in trace["layers"] for name in set(layer) - {"name", "notes"}]
    return statistics.median(trace["step_seconds"]) / statistics.median(map(sum, zip(*samples)))


def trace_file(options, network, batch, rank):
    return os.path.join(options.output, f"{network}-b{batch}-rank{rank}.yaml")


def capture(network, batch, options):
    """Both ranks capture at once."""
    one = settings(network, batch, options)
    capture_torch.ATTEMPTS = 1  # both ranks keep their first pairs: the runs, too, share the machine with whatever else runs
    one.output = trace_file(options, network, batch, dist.get_rank())
    dist.barrier()
    capture_torch.capture(one)
    dist.barrier()


def undisturbed(trace):
    """The indices of the pairs of steps whose elapsed and CPU time differ by at most 3 %, as capture-torch.py judges; all pairs if none does."""
    times = list(zip(trace["step_seconds"], trace["step_cpu_seconds"]))
    return [i for i, (wall, cpu) in enumerate(times) if float(wall) <= 1.03 * float(cpu)] or list(range(len(times)))


def join_captures(network, batch, options):
    """Joins the undisturbed samples in one trace: those of rank 0, then as many of rank 1."""
    ranks = []
    for rank in range(RANKS):
        with open(trace_file(options, network, batch, rank), encoding="utf-8") as text:
            trace = yaml.safe_load(text)
        ranks.append([(trace, pair) for pair in undisturbed(trace)])
    samples = [one for rank in ranks for one in rank[:min(map(len, ranks))]]
    flags = list(dict.fromkeys(flag for trace, _ in samples for flag in trace.get("flags", [])))
    first = copy.deepcopy(samples[0][0])
    first.update(name=f"{network}-b{batch}-2-ranks", ranks=RANKS, flags=flags)
    for key in ("step_seconds", "step_cpu_seconds"):
        first[key] = [float(trace[key][pair]) for trace, pair in samples]
    for i, layer in enumerate(first["layers"]):
        for name in set(layer) - {"name", "notes"}:
            for key in layer[name]:
                # PyYAML reads a number without a decimal point, such as 2e-05, as a text
                layer[name][key] = [float(trace["layers"][i][name][key][pair]) for trace, pair in samples]
    factor = without_clocks(first)
    for layer in first["layers"]:
        for name in set(layer) - {"name", "notes"}:
            for key in layer[name]:
                layer[name][key] = [float(f"{factor * one:.6g}") for one in layer[name][key]]
    first["notes"] = first.get("notes", []) + [f"layer times multiplied by {factor:.4f}: their sum is the step without clocks between layers"]
    with open(os.path.join(options.output, f"{network}-b{batch}.yaml"), "w", encoding="utf-8") as file:
        yaml.safe_dump(first, file, sort_keys=False, default_flow_style=None, width=10_000)


def beside_seconds(name, bucket, beside):
    """The seconds that DDP adds to a step beside the sum of the last bucket."""
    network = capture_torch.ModelFileNetwork(capture_torch.read_model(name))
    *hidden, _ = bucket_bytes(tensor_bytes(network), bucket * 2**20)
    return float(numpy.dot(beside, [len(hidden), sum(hidden), any(True for _ in network.buffers())]))


def forecast(point, beside, options):
    """The forecast of a point's step in seconds, from the trace that was captured just before. `beside`: as of measure_links."""
    network, batch, bucket = point.split(":")
    folder, scenario = os.path.join(options.output, "forecast"), os.path.join(options.output, "forecast.yaml")
    with open(scenario, "w", encoding="utf-8") as file:
        yaml.safe_dump({
            "name": "torch-ddp", "description": f"DistributedDataParallel over gloo: {point}",
            "model": network, "trace": os.path.join(options.output, f"{network}-b{batch}.yaml"),
            "platform": os.path.join(options.output, "platform.yaml"), "batch_per_worker": int(batch),
            "strategy": {"kind": "synchronous", "all_reduce": "ring", "bucket": f"{bucket} MiB", "first_bucket": "1 MiB",
                         "overlap": True, "step_overhead": f"{1e6 * beside_seconds(network, float(bucket), beside):.4g} us"},
            "noise": {"jitter": "trace"}, "uncertainty": "none", "simulation": {"steps": 40, "seed": 1},
            "sweep": {"workers": [RANKS]}}, file, sort_keys=False)
    subprocess.run([options.stepcast, "run", scenario, "--results-only", "-o", folder], check=True, stdout=subprocess.DEVNULL,
                   env={**os.environ, "STEPCAST_DATA": ROOT})
    with open(os.path.join(folder, "results.csv"), encoding="utf-8") as file:
        return float(next(csv.DictReader(line for line in file if not line.startswith("#")))["step_seconds"])


def train(point, steps, alone=False, warm_up=3):
    """The seconds of steps of DDP; `alone`: of the same steps without DDP, on both ranks at once."""
    network, batch, bucket = point.split(":")
    dist.barrier()
    torch.manual_seed(1)
    model = capture_torch.read_model(network)
    ddp = capture_torch.ModelFileNetwork(model)
    if not alone:
        ddp = torch.nn.parallel.DistributedDataParallel(ddp, bucket_cap_mb=float(bucket))
    optimizer = torch.optim.SGD(ddp.parameters(), lr=1e-3, momentum=0.9)
    x, seconds = torch.rand(int(batch), *model["input"]), []
    for step in range(steps + warm_up):
        begin = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        ddp(x).backward()
        optimizer.step()
        if step >= warm_up:  # DDP orders its buckets anew in the first steps
            seconds.append(time.perf_counter() - begin)
    return seconds


def step_lines(point, number, seconds):
    return "".join(f"{point},{number},{one:.6g}\n" for one in seconds)


def run_turn(turn, network, batch, beside, options):
    """Captures a network, forecasts its points from the capture and trains them. Returns the forecasts in seconds by point (on rank 0)."""
    points = [point for point in options.points if point.startswith(f"{network}:{batch}:")]
    capture(network, int(batch), options)
    forecasts, files = {}, dict.fromkeys(("without-ddp.csv", "measured.csv"), "")
    if dist.get_rank() == 0:
        join_captures(network, batch, options)
        forecasts = {point: forecast(point, beside, options) for point in points}
        text = "".join(step_lines(point, turn, [seconds]) for point, seconds in forecasts.items())
        append(options, "forecasts.csv", text)
        print(f"turn {turn}, {network}:{batch}: forecast frozen, SHA-256 {hashlib.sha256(text.encode()).hexdigest()}", flush=True)
    for point in points:
        for file in files:
            files[file] += step_lines(point, turn, train(point, options.run_steps, alone=file == "without-ddp.csv"))
    if dist.get_rank() == 0:
        for file, text in files.items():
            append(options, file, text)
    return forecasts


HEADERS = {"predicted.csv": "point,step_seconds\n",
           **dict.fromkeys(("forecasts.csv", "measured.csv", "without-ddp.csv"), "point,turn,step_seconds\n")}


def append(options, name, text):
    with open(os.path.join(options.output, name), "a", encoding="utf-8") as file:
        file.write(text)


def rank_main(options):
    rank = int(os.environ["RANK"])
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[rank % len(cores)]})
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    dist.init_process_group("gloo", init_method="env://", rank=rank, world_size=RANKS)
    beside = measure_links(options.output)
    captured, forecasts = list(dict.fromkeys(tuple(point.split(":")[:2]) for point in options.points)), {}
    for turn in range(options.turns):
        for network, batch in captured:
            for point, seconds in run_turn(turn, network, batch, beside, options).items():
                forecasts.setdefault(point, []).append(seconds)
    append(options, "predicted.csv", "".join(f"{point},{statistics.median(all_turns):.6g}\n" for point, all_turns in forecasts.items()))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stepcast", type=os.path.abspath)
    parser.add_argument("-o", "--output", required=True, type=os.path.abspath)
    parser.add_argument("--points", nargs="+", default=POINTS, help="NETWORK:BATCH:BUCKET_MIB")
    parser.add_argument("--steps", type=int, default=5, help="pairs of steps of a capture")
    parser.add_argument("--run-steps", type=int, default=12, help="steps of a run that count")
    parser.add_argument("--turns", type=int, default=7, help="captures and runs of each network")
    options = parser.parse_args()
    if "RANK" in os.environ:
        rank_main(options)
        return 0
    os.makedirs(options.output, exist_ok=True)
    for name, header in HEADERS.items():
        with open(os.path.join(options.output, name), "w", encoding="utf-8") as file:
            file.write(header)
    environment = {**os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(20_000 + os.getpid() % 20_000), "GLOO_SOCKET_IFNAME": "lo"}
    ranks = [subprocess.Popen([sys.executable, *sys.argv], env={**environment, "RANK": str(rank)}) for rank in range(RANKS)]
    codes = [rank.wait() for rank in ranks]
    return max(map(abs, codes))


if __name__ == "__main__":
    sys.exit(main())
