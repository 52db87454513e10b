"""Tests of tools/capture-torch.py with real PyTorch on the CPU. Usage: capture_torch_test.py STEPCAST"""
import argparse
import importlib.util
import os
import re
import statistics
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest
from unittest import mock

import torch
import yaml

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PROGRAM = os.path.join(ROOT, "tools", "capture-torch.py")
STEPCAST = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 else os.path.join(ROOT, "build/release/stepcast")
PASSES = ("forward", "backward_data", "backward_weights", "update")

specification = importlib.util.spec_from_file_location("capture_torch", PROGRAM)
capture_torch = importlib.util.module_from_spec(specification)
specification.loader.exec_module(capture_torch)

# Kinds that the small networks lack, in one: uneven padding, 3 dimensions, recurrent layers, branches, two losses. No GELU in
# front of the GRU: PyTorch 1.13 computes GELU's gradient wrongly, from run to run differently, if the gradient it gets is
# transposed in memory, as a GRU's is.
EVERY_KIND = """
name: every-kind
source: "made up"
input: [2, 5, 6, 7]
layers:
  - {name: conv, kind: convolution, filters: 4, kernel: [2, 3, 2], pad: same, bias: false}  # a comment
  - {name: bn, kind: batch_norm}
  - {name: leaky, kind: leaky_relu, slope: 0.3}
  - {name: sum, kind: add, inputs: [leaky, conv]}
  - {name: pool, kind: average_pool, kernel: 2, stride: 1, pad: same}
  - {name: most, kind: max_pool, kernel: 2, pad: {before: [1, 0, 1], after: [0, 0, 0]}}
  - {name: up, kind: up_sample, factor: 2}
  - {name: flat, kind: reshape, shape: [8, 144]}
  - {name: lstm, kind: lstm, hidden: 6, bidirectional: true}
  - {name: qkv, kind: dense, units: 24}
  - {name: attention, kind: attention, heads: 2, causal: true}
  - {name: gelu, kind: gelu}
  - {name: norm, kind: layer_norm}
  - {name: gru, kind: gru, hidden: 5, output: last}
  - {name: elu, kind: elu}
  - {name: tanh, kind: tanh}
  - {name: one, kind: dense, units: 3}
  - {name: first_loss, kind: softmax_cross_entropy}
  - {name: two, kind: dense, inputs: [tanh], units: 2}
  - {name: sigmoid, kind: sigmoid}
  - {name: second_loss, kind: mean_squared_error}
"""

TRANSFORMER = """
name: grouped-queries
source: "made up"
input: [6]
layers:
  - {name: words, kind: embedding, rows: 11, columns: 8}
  - {name: class, kind: class_token}
  - {name: positions, kind: position_embedding, rows: 7}
  - repeat: 2
    name: block
    layers:
      - {name: norm, kind: rms_norm}
      - {name: qkv, kind: dense, units: 16, bias: false}
      - {name: rotary, kind: rotary_embedding, heads: 4, kv_heads: 2}
      - {name: attention, kind: attention, heads: 4, kv_heads: 2, causal: true}
      - {name: projection, kind: dense, units: 8}
      - {name: sum, kind: add, inputs: [projection, previous]}
      - {name: expand, kind: dense, units: 12}
      - {name: swiglu, kind: swiglu}
      - {name: contract, kind: dense, units: 8}
      - {name: silu, kind: silu}
  - {name: both, kind: concatenate, inputs: [block1_silu, positions]}
  - {name: tied, kind: dense, units: 11, bias: false, weight_of: words}
  - {name: first, kind: first_token}
  - {name: loss, kind: softmax_cross_entropy}
"""

MODULE = """
from torch import nn
import torch


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1)
        self.norm = nn.BatchNorm2d(8)
        self.relu = nn.ReLU(inplace=True)
        self.again = nn.Conv2d(8, 8, 3, padding=1, bias=False)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.flat = nn.Flatten()
        self.fc = nn.Linear(8, 10)

    def forward(self, x):
        x = self.relu(self.norm(self.conv(x)))
        return self.fc(self.flat(self.pool(self.relu(self.again(x)))))


class Glue(Net):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(8, 8, batch_first=True)

    def forward(self, x):
        x = self.relu(self.norm(self.conv(x)))
        y = self.again(x)
        y += x
        y, _ = self.lstm(torch.flatten(self.pool(self.relu(y)), 1)[:, None])
        return self.fc(y[:, -1])


def broken():
    raise ValueError("a mistake\\nof two lines")
"""


class PretendedGpu:
    """Stands in for torch.cuda: a host and a GPU with clocks of their own, which launch and run kernels of given lengths [s]."""

    CYCLE, LAUNCH, EVENT = 1e-9, 4e-6, 1.5e-6

    def __init__(self):
        self.host, self.free, self.spins = 0.0, 0.0, []

    def __getattr__(self, name):
        return getattr(REAL_CUDA, name)

    def get_device_name(self, _):
        return "fake GPU"

    def launch(self, seconds):
        self.host += self.LAUNCH
        self.free = max(self.free, self.host) + seconds

    def _sleep(self, cycles):
        self.spins.append(cycles)
        self.launch(cycles * self.CYCLE)

    def synchronize(self):
        self.host = max(self.host, self.free)

    def Event(self, enable_timing):
        gpu = self

        class Event:
            def record(self):
                gpu.launch(gpu.EVENT)
                self.at = gpu.free

            def query(self):
                return self.at <= gpu.host

            def elapsed_time(self, other):
                return 1e3 * (other.at - self.at)

        return Event()


class Kernels(torch.nn.Module):
    """A layer that keeps the host and the fake GPU busy in its forward pass."""

    def __init__(self, gpu, host, kernel):
        super().__init__()
        self.gpu, self.host, self.kernel = gpu, host, kernel
        self.weight = torch.nn.Parameter(torch.ones(1))

    def forward(self, x):
        self.gpu.host += self.host
        self.gpu.launch(self.kernel)
        return x * self.weight


REAL_CUDA = torch.cuda


def run(*arguments):
    return subprocess.run(arguments, capture_output=True, text=True, timeout=600, check=False)


def capture(*arguments):
    return run(sys.executable, PROGRAM, *arguments, "--device", "cpu")


def trainer(model, batch):
    options = argparse.Namespace(model=model, module=None, batch=batch, device="cpu", precision="f32", channels_last=False,
                                 optimizer="sgd", threads=1)
    capture_torch.set_up(options)
    network, x, _ = capture_torch.network_and_input(options)
    return capture_torch.trainer_of(options, network, x)


class CaptureTorch(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.write("my_net.py", MODULE)
        os.environ["STEPCAST_DATA"] = ROOT

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(textwrap.dedent(text))
        return self.path(name)

    def stepcast(self, *arguments):
        result = run(STEPCAST, *arguments)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        return result.stdout

    def parameters(self, model):
        """The number of trained parameters that stepcast counts."""
        return int(re.search(r"^parameters +(\d+) trainable", self.stepcast("show", "model", model), re.M).group(1))

    def forecast(self, model, trace, batch):
        """The step of one worker that stepcast forecasts from the trace [s]."""
        self.stepcast("run", os.path.join(ROOT, "scenarios/quickstart.yaml"), "--set", f"model={model}", "--set",
                      f"trace={trace}", "--set", f"batch_per_worker={batch}", "--set", "sweep.workers=[1, 2]", "--set",
                      "noise.jitter=none", "-o", self.path("forecast"))
        with open(self.path("forecast/results.csv"), encoding="utf-8") as file:
            heading, first = (next(line for line in file if not line.startswith("#")).strip().split(","),
                              next(file).strip().split(","))
        return float(dict(zip(heading, first))["step_seconds"])

    def test_a_captured_trace_is_read_and_its_forecast_for_one_worker_is_the_sum_of_its_layers(self):
        for model, batch in (("small-cnn", 16), ("small-mlp", 16)):
            trace = self.path(f"{model}-torch.yaml")
            result = capture("--model", model, "--batch", str(batch), "--steps", "5", "--warm-up", "1", "-o", trace)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn(model, self.stepcast("show", "trace", trace))
            with open(trace, encoding="utf-8") as file:
                written = yaml.safe_load(file)
            medians = sum(sorted(layer[one]["seconds"])[2] for layer in written["layers"] for one in PASSES if one in layer)
            self.assertAlmostEqual(self.forecast(model, trace, batch) / medians, 1, delta=0.01)
            self.assertNotIn("backward_data", written["layers"][0])
            self.assertIn("backward_weights", written["layers"][0])
            self.assertNotIn("update", written["layers"][1])

    def test_networks_have_as_many_parameters_as_stepcast_counts(self):
        for model in ("small-cnn", "small-mlp", "small-mesh", "small-transformer", "nnlo-gru", "gan-discriminator", "gan-generator",
                      "3dgan", "chen-huo-dblstm", "resnet50", "mesh-2k"):
            network = capture_torch.ModelFileNetwork(capture_torch.read_model(model))
            trained = sum(p.numel() for p in network.parameters() if p.requires_grad)
            self.assertEqual(trained, self.parameters(model), model)

    def test_the_timed_step_computes_the_gradients_of_an_ordinary_step(self):
        one = trainer(self.write("every-kind.yaml", EVERY_KIND), 4)
        one.probe()
        one.forward_backward()
        ordinary = [p.grad.clone() for p in one.trained]
        self.assertTrue(all(gradient.abs().sum() > 0 for gradient in ordinary))
        seconds = one.timed_step(update=False)
        for gradient, parameter in zip(ordinary, one.trained):
            scale = gradient.abs().max()
            self.assertLess(((gradient - parameter.grad).abs().max() / scale).item(), 1e-5)  # fp32 sums in another order
        layers = {name for name, _ in seconds}
        self.assertEqual(layers, set(one.network.names))

    def test_a_transformer_with_grouped_queries_and_tied_weights_trains_as_in_an_ordinary_step(self):
        file = self.write("transformer.yaml", TRANSFORMER)
        self.assertEqual(capture_torch.strict_yaml(TRANSFORMER, file), yaml.safe_load(TRANSFORMER))
        one = trainer(file, 3)
        block = 8 + 16 * 8 + (8 * 8 + 8) + (12 * 8 + 12) + (8 * 6 + 8)
        self.assertEqual(sum(p.numel() for p in one.trained), 11 * 8 + 8 + 7 * 8 + 2 * block)
        one.probe()
        one.forward_backward()
        ordinary = [p.grad.clone() for p in one.trained]
        one.timed_step(update=False)
        for gradient, parameter in zip(ordinary, one.trained):
            self.assertLess(((gradient - parameter.grad).abs().max() / gradient.abs().max()).item(), 1e-5)
        self.assertEqual(one.network.reads[one.network.names.index("block1_sum")], ["block1_projection", "block0_silu"])

    def test_a_network_of_every_kind_has_the_parameters_that_stepcast_counts(self):
        file = self.write("every-kind.yaml", EVERY_KIND)
        network = capture_torch.ModelFileNetwork(capture_torch.read_model(file))
        self.assertEqual(sum(p.numel() for p in network.parameters() if p.requires_grad), self.parameters(file))

    def test_a_convolution_computes_one_gradient_a_pass(self):
        """Each half costs less than both halves together."""
        calls = []
        plain = torch.autograd.grad

        def counted(outputs, inputs, *rest, **keys):
            calls.append(len(list(inputs)))
            return plain(outputs, inputs, *rest, **keys)

        one = trainer("small-cnn", 2)
        one.probe()
        torch.autograd.grad = counted
        try:
            one.timed_step(update=False)
        finally:
            torch.autograd.grad = plain
        # Four layers with weight and bias; all layers but the first convolution have an input with a gradient.
        self.assertEqual(sorted(calls), [1] * 11 + [2] * 4)

    def test_both_readers_of_yaml_agree_on_all_model_files(self):
        for name in sorted(os.listdir(os.path.join(ROOT, "models"))):
            if name.endswith(".yaml"):
                with open(os.path.join(ROOT, "models", name), encoding="utf-8") as file:
                    text = file.read()
                self.assertEqual(capture_torch.strict_yaml(text, name), yaml.safe_load(text), name)

    def test_a_module_becomes_a_model_file_and_a_trace_that_stepcast_forecasts_with(self):
        net, trace = self.path("net.yaml"), self.path("net-b4.yaml")
        result = capture("--module", self.path("my_net.py") + ":Net", "--input", "3,16,16", "--batch", "4", "--steps", "3",
                         "--warm-up", "1", "--write-model", net, "-o", trace)
        self.assertEqual(result.returncode, 0, result.stderr)
        with open(net, encoding="utf-8") as file:
            layers = {layer["name"]: layer for layer in yaml.safe_load(file)["layers"]}
        self.assertEqual(list(layers), ["conv", "norm", "relu", "again", "relu_2", "pool", "flat", "fc", "loss"])
        self.assertEqual(layers["again"], {"name": "again", "kind": "convolution", "inputs": ["relu"], "filters": 8, "kernel": 3,
                                           "stride": 1, "pad": 1, "bias": False})
        self.assertEqual(self.parameters(net), sum(p.numel() for p in capture_torch.import_module(
            self.path("my_net.py") + ":Net").parameters()))
        self.assertGreater(self.forecast(net, trace, 4), 0)

    def test_work_between_modules_and_unknown_modules_become_measured_layers(self):
        net, trace = self.path("glue.yaml"), self.path("glue-b4.yaml")
        result = capture("--module", self.path("my_net.py") + ":Glue", "--input", "3,16,16", "--batch", "4", "--steps", "3",
                         "--warm-up", "1", "--write-model", net, "-o", trace)
        self.assertEqual(result.returncode, 0, result.stderr)
        with open(net, encoding="utf-8") as file:
            layers = {layer["name"]: layer for layer in yaml.safe_load(file)["layers"]}
        with open(trace, encoding="utf-8") as file:
            times = yaml.safe_load(file)["layers"]
        self.assertEqual([one["name"] for one in times], list(layers))
        for name in ("relu_2_input", "lstm_input", "lstm", "fc_input"):
            self.assertEqual(layers[name]["kind"], "measured")
        self.assertEqual(layers["relu_2_input"]["output"], [8, 16, 16])
        self.assertEqual(self.parameters(net), sum(p.numel() for p in capture_torch.import_module(
            self.path("my_net.py") + ":Glue").parameters()))
        seconds = sum(statistics.median(map(float, one[part]["seconds"])) for one in times
                      for part in ("forward", "backward_data", "backward_weights", "update") if part in one)
        self.assertAlmostEqual(self.forecast(net, trace, 4), seconds, delta=0.01 * seconds)

    def trainer_on_fake_gpu(self, host, kernel):
        """Four layers on a fake GPU, and that GPU, which stands in for torch.cuda to the end of the test."""
        gpu = PretendedGpu()
        for patch in (mock.patch.object(torch, "cuda", gpu), mock.patch.object(time, "perf_counter", lambda: gpu.host)):
            patch.start()
            self.addCleanup(patch.stop)
        options = argparse.Namespace(optimizer="sgd", precision="f32", batch=2, device="cpu", channels_last=False)
        network = torch.nn.Sequential(*(Kernels(gpu, host, kernel) for _ in range(4)))
        with mock.patch.object(capture_torch, "ProcessorClock", capture_torch.CudaClock):
            one = capture_torch.trainer_of(options, capture_torch.ModuleNetwork(network), torch.ones(2, 3))
        one.network.loss = torch.mean
        return one, gpu

    def test_on_a_gpu_that_is_faster_than_the_host_times_of_layers_are_gpu_time(self):
        one, gpu = self.trainer_on_fake_gpu(host=400e-6, kernel=30e-6)
        one.probe()
        clock = one.recorder.clock
        before = one.timed_step()
        self.assertGreater(before["0", "forward"][0], 400e-6)  # not calibrated: the GPU waits for the host
        clock.calibrate(lambda: gpu.launch(2e-6), one.timed_step, one.step_ahead)
        self.assertAlmostEqual(clock.cost, gpu.EVENT, delta=1e-9)
        seconds = one.timed_step()
        self.assertEqual(one.recorder.late(), set())
        for layer in "0123":
            self.assertAlmostEqual(seconds[layer, "forward"][0], 30e-6, delta=1e-9)
            self.assertEqual(seconds[layer, "backward_data"][0] if layer != "0" else 0, 0)  # no kernels: no time of the events
        self.assertAlmostEqual(one.step_ahead(), 120e-6, delta=1e-9)
        self.assertGreater(one.whole_step()[0], 1.6e-3)

    def test_a_pass_that_the_host_launches_late_is_noticed_and_its_next_spin_is_longer(self):
        one, gpu = self.trainer_on_fake_gpu(host=100e-6, kernel=30e-6)
        one.probe()
        one.recorder.clock.calibrate(lambda: gpu.launch(2e-6), one.timed_step, one.step_ahead)
        slow = one.network.module[2]
        slow.host = 900e-6
        steps, late = [], []
        for _ in range(4):
            steps.append(one.timed_step())
            late.append(one.recorder.late())
        self.assertEqual(late, [{("2", "forward")}, set(), set(), set()])
        self.assertEqual(capture_torch.replace_late(steps, late), (1, []))
        self.assertAlmostEqual(steps[0]["2", "forward"][0], 30e-6, delta=1e-9)
        slow.host = 2.0  # longer than any spin
        self.assertIsNone(one.step_ahead())

    def test_a_gpu_s_trace_says_that_the_gpu_waits_for_the_host(self):
        one, _ = self.trainer_on_fake_gpu(host=400e-6, kernel=30e-6)
        one.on_gpu = True
        options = argparse.Namespace(**{**vars(one.options), "device": "cuda"}, steps=5, warm_up=1, threads=1, output="net-b2.yaml")
        pairs, disturbed = capture_torch.capture_pairs(one, options)
        self.assertEqual((len(pairs), disturbed), (5, []))
        flags = capture_torch.settle_gpu_steps(one, [timed for timed, _ in pairs])
        self.assertEqual(flags, [])
        flags = capture_torch.flags_of(pairs, 0, one.ahead)
        self.assertEqual([flag[:30] for flag in flags], ["the GPU waits for the host: st"])
        self.assertTrue(any("median 0.12 ms of 5" in note for note in one.notes), one.notes)
        trace = self.write("net-b2.yaml", capture_torch.trace_text(options, one, "net", pairs, flags))
        self.assertIn("the GPU waits for the host", self.stepcast("show", "trace", trace))

    def test_late_times_of_a_pass_become_the_median_of_the_others(self):
        conv, relu = ("conv", "forward"), ("relu", "forward")
        steps = [{conv: (x, None), relu: (1.0, None)} for x in (1.0, 9.0, 3.0)]
        self.assertEqual(capture_torch.replace_late(steps, [{relu}, {conv, relu}, {relu}]), (4, [relu]))
        self.assertEqual([step[conv][0] for step in steps], [1.0, 2.0, 3.0])

    def test_without_the_private_spin_kernels_keep_the_gpu_busy(self):
        with mock.patch.object(torch, "cuda", object()), mock.patch.object(torch, "full", lambda *_, **__: torch.ones(4).mul_(2)):
            repeat, units = capture_torch.busy_kernel()
            repeat(units)
        self.assertGreater(units, 1)

    def test_flags_tell_a_wrong_sum_from_a_gpu_that_waits_for_the_host(self):
        def flags(inside, outside, ahead):
            pairs = [({("a", "forward"): (inside + 1e-5 * i, None)}, (outside, None)) for i in range(5)]
            return capture_torch.flags_of(pairs, 0, [ahead] * 5)

        self.assertEqual(flags(0.01, 0.01, 0.01), [])
        waits, = flags(0.01, 0.016, 0.01)
        self.assertRegex(waits, r"^the GPU waits for the host: .* take 59\.\d % longer")
        wrong = flags(0.013, 0.01, 0.01)
        self.assertTrue(all("launched ahead of the GPU" in flag for flag in wrong) and len(wrong) == 2, wrong)
        self.assertEqual(len(flags(0.013, 0.016, 0.01)), 3)
        self.assertEqual(len(flags(0.01, 0.016, None)), 1)
        self.assertTrue(all("without timers inside" in flag for flag in flags(0.013, 0.01, None)))

    def test_errors_are_one_line(self):
        output = ("--batch", "2", "-o", self.path("out.yaml"))
        module = ("--module", self.path("my_net.py"))
        cases = [
            (("--model", "no-such", *output), "expected a model file of stepcast such as resnet50.yaml"),
            (("--model", self.write("bad.yaml", "name: x\ninput: [3]\nlayers:\n  - {name: a, kind: conv}\n"), *output),
             "layer a: kind conv cannot be built"),
            (("--model", self.write("key.yaml", "name: x\ninput: [3]\nlayers:\n  - {name: a, kind: dense}\n"), *output),
             "layer a (dense): 'units' is missing"),
            (("--model", "small-cnn", "--precision", "tf32", *output), "--precision: tf32 needs a GPU"),
            (("--model", "small-cnn", "--batch", "2", "-o", "out.txt"), "--output: expected a name that ends in .yaml"),
            (("--model", "small-cnn", "--batch", "0", "-o", "out.yaml"), "--batch: expected an integer from 1"),
            ((*module, "--input", "3", *output), "expected PACKAGE:NAME"),
            (("--module", self.path("my_net.py") + ":Net", *output), "--module: needs --input"),
            (("--module", self.path("my_net.py") + ":broken", "--input", "3", *output), "ValueError: a mistake of two lines"),
        ]
        for arguments, text in cases:
            result = capture(*arguments)
            self.assertEqual(result.returncode, 2, f"{arguments}: {result.stderr}")
            self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
            self.assertIn(text, result.stderr)
        self.assertFalse(os.path.exists(self.path("out.yaml")))

    def test_without_pyyaml_what_model_files_do_not_use_is_refused_with_its_line(self):
        for text in ("name: x\nlayers:\n  - name: a\n", "name: x\ninput: [1, 2\n", "name: x\nname: y\n", "name: &anchor x\n  more: 1\n"):
            with self.assertRaisesRegex(capture_torch.InputError, r"^net.yaml:\d+: "):
                capture_torch.strict_yaml(text, "net.yaml")

    def test_every_option_is_in_the_how_to_page(self):
        help_text = capture("--help").stdout
        with open(os.path.join(ROOT, "docs/how-to/capture-with-pytorch.md"), encoding="utf-8") as file:
            page = file.read()
        for option in set(re.findall(r"--[a-z][a-z-]+", help_text)) - {"--help", "--set"}:
            self.assertIn(f"`{option}", page)


if __name__ == "__main__":
    unittest.main()
