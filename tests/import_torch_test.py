"""Profiles real trainings of several networks with PyTorch on the CPU, and imports each.

Usage: python3 tests/import_torch_test.py STEPCAST (tests/with-module.sh runs it)

Each training is profiled twice: as PyTorch exports it, and as Kineto would write it on a GPU, with sequence numbers, shapes if
recorded, and a made-up kernel for each operator that computes. stepcast must find all parameters, attribute 98 % of the time, and
give a profile without shapes to the layers of the network that it wrote from a profile with shapes.
"""
import itertools
import json
import pathlib
import subprocess
import sys
import tempfile

import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile, schedule
from torch.utils.checkpoint import checkpoint

BATCH = 2  # operators take tens of microseconds, of which PyTorch 1.13 exports whole ones
STEPCAST = str(pathlib.Path(sys.argv[1]).resolve())
HIDDEN = ("view", "transpose", "expand", "as_strided", "empty", "reshape", "detach", "evaluate_function", "Backward", "AccumulateGrad",
          "aten::linear", "aten::matmul", "aten::conv2d", "aten::convolution", "aten::_convolution", "aten::t")
OWN_RANGES = ("ProfilerStep", "Optimizer.", "torch.distributed.ddp", "DistributedDataParallel", "gloo:")


class Attention(nn.Module):
    """A block of a transformer, written out."""

    def __init__(self, width):
        super().__init__()
        self.norm, self.qkv, self.out = nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down, self.drop = nn.Linear(width, 4 * width), nn.Linear(4 * width, width), nn.Dropout(0.1)

    def forward(self, x):
        query, key, value = self.qkv(self.norm(x)).chunk(3, -1)
        scores = (query @ key.transpose(-2, -1)).masked_fill(torch.ones(8, 8, dtype=torch.bool).triu(1), -1e9)
        x = x + self.out(self.drop(scores.softmax(-1)) @ value)
        return x + self.down(nn.functional.gelu(self.up(x)))


class Checkpointed(Attention):
    """Computes its activations again in the backward pass."""

    def forward(self, x):
        return checkpoint(super().forward, x, use_reentrant=False)


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.out = nn.LSTM(256, 256, 2, batch_first=True), nn.Linear(256, 5)

    def forward(self, x):
        return self.out(self.lstm(x)[0][:, -1])


class Dense(nn.Module):
    """A layer of DenseNet."""

    def __init__(self, channels):
        super().__init__()
        self.norm, self.conv = nn.BatchNorm2d(channels), nn.Conv2d(channels, 4, 3, padding=1, bias=False)

    def forward(self, x):
        return torch.cat([x, self.conv(torch.relu(self.norm(x)))], 1)


class Residual(nn.Module):
    """An inverted bottleneck of MobileNet, with a convolution of groups."""

    def __init__(self, channels):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(channels, 16, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU6(),
                                  nn.Conv2d(16, 16, 3, padding=1, groups=16, bias=False), nn.BatchNorm2d(16),
                                  nn.Conv2d(16, channels, 1, bias=False))

    def forward(self, x):
        return x + self.body(x)


def head(channels):
    return [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 5)]


def images():
    return torch.rand(BATCH, 3, 64, 64)


def words():
    return torch.randint(0, 50, (BATCH, 8))


NETWORKS = {
    "vgg": (lambda: nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(True), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(8192, 16),
                                  nn.ReLU(True), nn.Dropout(), nn.Linear(16, 5)), images),
    "densenet": (lambda: nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), Dense(4), Dense(8), *head(12)), images),
    "mobilenet": (lambda: nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), Residual(8), Residual(8), *head(8)), images),
    "lstm": (Recurrent, lambda: torch.rand(BATCH, 6, 256)),
    "transformer": (lambda: nn.Sequential(nn.Embedding(50, 512), Attention(512), Attention(512), nn.Flatten(), nn.Linear(4096, 5)), words),
    "recomputed": (lambda: nn.Sequential(nn.Embedding(50, 16), Checkpointed(16), Checkpointed(16), nn.Flatten(), nn.Linear(128, 5)), words),
}
RUNS = [(name, ()) for name in NETWORKS] + [("vgg", ("accumulate",)), ("mobilenet", ("evaluate",)), ("transformer", ("accumulate",)),
                                            ("vgg", ("ddp",)), ("mobilenet", ("ddp", "evaluate")), ("lstm", ("adam",)), ("vgg", ("autocast",))]


def kineto_text(profiler, shapes):
    """The profile as Kineto writes it on a GPU; each operator that computes has one kernel of its own time."""
    events, correlation = [], itertools.count(1)
    for number, event in enumerate(profiler.profiler.function_events, 1):
        name, own_range = event.trace_name or event.name, event.name.startswith(OWN_RANGES)
        args = {"External id": number}
        if event.sequence_nr is not None and event.sequence_nr >= 0:
            args |= {"Sequence number": event.sequence_nr, "Fwd thread id": event.fwd_thread or 0}
        if shapes and event.input_shapes:
            args["Input Dims"] = event.input_shapes
        start, length = event.time_range.start, event.time_range.end - event.time_range.start
        host = {"ph": "X", "pid": 1, "tid": event.thread, "ts": start}
        events.append(host | {"cat": "user_annotation" if own_range else "cpu_op", "name": name, "dur": length, "args": args})
        computes = name == "aten::convolution_backward" or not any(part in name for part in HIDDEN)
        if own_range or not computes:
            continue
        link = {"External id": number, "correlation": next(correlation)}
        events.append(host | {"cat": "cuda_runtime", "name": "cudaLaunchKernel", "dur": 0, "args": link})
        events.append({"ph": "X", "cat": "kernel", "name": "kernel_of_" + name, "pid": 0, "tid": 7, "ts": start + 1e5,
                       "dur": event.self_cpu_time_total + 1, "args": link | {"device": 0}})
    return json.dumps({"deviceProperties": [{"id": 0, "name": "Made-up GPU"}], "traceEvents": events})


def train(name, ways, folder, shapes, rank=0):
    torch.manual_seed(1)
    make, batch = NETWORKS[name]
    own = make()
    network = own
    if "ddp" in ways:
        torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2)
        network = nn.parallel.DistributedDataParallel(own)
    optimizer = torch.optim.Adam(own.parameters()) if "adam" in ways else torch.optim.SGD(own.parameters(), lr=1e-3, momentum=0.9)

    def save(done):
        if rank == 0:
            done.export_chrome_trace(f"{folder}/exported.json")
            (folder / "kineto.json").write_text(kineto_text(done, shapes), encoding="utf-8")

    with profile(activities=[ProfilerActivity.CPU], record_shapes=shapes, schedule=schedule(wait=1, warmup=1, active=3),
                 on_trace_ready=save) as profiler:
        for step in range(5):
            if "evaluate" in ways and step == 3:
                with torch.no_grad():
                    network.eval()(batch())
                network.train()
            optimizer.zero_grad()
            for _ in range(2 if "accumulate" in ways else 1):
                with torch.autocast("cpu", torch.bfloat16, enabled="autocast" in ways):
                    loss = nn.functional.cross_entropy(network(batch()), torch.randint(0, 5, (BATCH,)))
                (loss * 64 if "autocast" in ways else loss).backward()
            optimizer.step()
            profiler.step()
    counts = [parameter.numel() for parameter in own.parameters()]
    (folder / f"parameters{rank}.txt").write_text(" ".join(map(str, counts)), encoding="utf-8")


def profiled(name, ways, folder, shapes):
    """Trains in processes of its own, and returns the sizes of the parameters."""
    folder.mkdir()
    ranks = 2 if "ddp" in ways else 1
    workers = [torch.multiprocessing.get_context("fork").Process(target=train, args=(name, ways, folder, shapes, rank))
               for rank in range(ranks)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
        assert worker.exitcode == 0, f"training {name} {ways} failed"
    return sum(map(int, (folder / "parameters0.txt").read_text(encoding="utf-8").split()))


def imported(folder, file, *options):
    command = [STEPCAST, "import", str(folder / file), "--batch", str(BATCH), "-o", str(folder / "trace.yaml"), *map(str, options)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stderr}"
    share = float(done.stdout.split("attributed: ")[1].split(" %")[0])
    assert share >= 98, f"{folder}: only {share} % attributed"
    return done.stdout


def check(name, ways, folder):
    shaped, bare = folder / "shaped", folder / "bare"
    parameters = profiled(name, ways, shaped, True)
    profiled(name, ways, bare, False)
    network = shaped / "network.yaml"
    assert f" {parameters} parameters" in imported(shaped, "kineto.json", "--write-model", network), f"{name}: parameters"
    # The profile that PyTorch 1.13 exports has no sequence numbers, which tell what is computed again.
    for file in ("kineto.json",) if name == "recomputed" else ("exported.json", "kineto.json"):
        text = imported(bare, file, "--write-model", bare / "network.yaml", "--parameters", bare / "parameters0.txt")
        assert f" {parameters} parameters" in text, f"{name}: parameters of {file}"
    imported(bare, "kineto.json", "--model", network)
    if name == "recomputed":
        assert "activations computed again" in imported(shaped, "kineto.json", "--model", network)
    print(f"{name} {' '.join(ways)}: {parameters} parameters, imported with and without shapes")


def main():
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        for number, (name, ways) in enumerate(RUNS):
            run = pathlib.Path(folder) / f"{number}-{name}"
            run.mkdir()
            check(name, ways, run)


if __name__ == "__main__":
    main()
