#!/usr/bin/env python3
"""Imports a ResNet-18 that onnx.helper builds, and compares its parameters with the library's resnet18. Where PyTorch is installed,
imports networks that it exports, too: convolutions, LSTM and GRU, attention in several forms.

Usage: import_onnx_test.py STEPCAST
"""
import itertools
import re
import subprocess
import sys
import tempfile
import warnings

from onnx import TensorProto, helper

nodes, weights = [], []


def weight(name, *sizes):
    tensor = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=sizes)  # without values
    weights.append(tensor)
    return name


def node(kind, inputs, output, **attributes):
    nodes.append(helper.make_node(kind, inputs, [output], name=output + "_node", **attributes))
    return output


def convolution(x, name, channels, filters, kernel, stride):
    pad = kernel // 2
    y = node("Conv", [x, weight(name + ".w", filters, channels, kernel, kernel)], name, strides=[stride] * 2, pads=[pad] * 4)
    parts = [weight(f"{name}.{part}", filters) for part in ("scale", "shift", "mean", "variance")]
    return node("BatchNormalization", [y, *parts], name + "_norm")


def block(x, name, channels, filters, stride):
    y = node("Relu", [convolution(x, name + "_a", channels, filters, 3, stride)], name + "_relu")
    y = convolution(y, name + "_b", filters, filters, 3, 1)
    if stride > 1:
        x = convolution(x, name + "_shortcut", channels, filters, 1, stride)
    return node("Relu", [node("Add", [y, x], name + "_add")], name)


def resnet18():
    x = node("Relu", [convolution("x", "stem", 3, 64, 7, 2)], "stem_relu")
    x = node("MaxPool", [x], "pool", kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    channels = 64
    for stage, filters in enumerate((64, 128, 256, 512)):
        for i in range(2):
            x = block(x, f"stage{stage}_{i}", channels, filters, 2 if stage > 0 and i == 0 else 1)
            channels = filters
    x = node("Flatten", [node("GlobalAveragePool", [x], "averages")], "flat")
    node("Gemm", [x, weight("fc.w", 1000, 512), weight("fc.b", 1000)], "y", transB=1)
    images = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 3, 224, 224])
    scores = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 1000])
    graph = helper.make_graph(nodes, "resnet18", [images], [scores], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


def totals(stepcast, network):
    shown = subprocess.run([stepcast, "show", "model", network], check=True, capture_output=True, text=True).stdout
    return re.findall(r"^(?:parameters|work a sample).*", shown, re.M)


def imported(stepcast, folder):
    """What `stepcast import` prints, and the kinds of the layers that it writes."""
    run = subprocess.run([stepcast, "import", f"{folder}/net.onnx", "-o", f"{folder}/net.yaml"], check=False, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    printed = run.stdout
    with open(f"{folder}/net.yaml", encoding="utf-8") as file:
        text = file.read()
    print(printed)
    return printed, re.findall(r"kind: (\w+)", text), text


def exported_networks(torch):
    """Networks of PyTorch by name: the module, its input, the kinds of its layers, and the parameters that stepcast has not."""
    nn, functional = torch.nn, torch.nn.functional

    class Inverted(nn.Module):
        """A block of MobileNet v2, and a convolution in groups."""

        def __init__(self):
            super().__init__()
            self.body = nn.Sequential(nn.Conv2d(8, 32, 1, bias=False), nn.BatchNorm2d(32), nn.ReLU6(),
                                      nn.Conv2d(32, 32, 3, 1, 1, groups=32, bias=False), nn.BatchNorm2d(32), nn.SiLU(),
                                      nn.Conv2d(32, 8, 3, 1, 1, groups=4))
            self.head = nn.Linear(8, 10)

        def forward(self, x):
            return self.head((x + self.body(x)).mean([2, 3]))

    class Flat(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.head = nn.Conv2d(3, 4, 3), nn.Linear(144, 10)

        def forward(self, x):
            x = self.conv(x)
            return self.head(x.view(x.size(0), -1))

    class Words(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Embedding(50, 12)
            self.gru = nn.GRU(12, 8, batch_first=True, bidirectional=True)
            self.lstm = nn.LSTM(16, 6, num_layers=2, batch_first=True)
            self.head = nn.Linear(6, 3)

        def forward(self, x):
            return self.head(self.lstm(self.gru(self.table(x))[0])[0][:, -1])

    class Block(nn.Module):
        """A block of GPT-2 (fused projections, causal) or of BERT (three projections)."""

        def __init__(self, fused):
            super().__init__()
            self.fused = fused
            self.norm, self.norm2 = nn.LayerNorm(12), nn.LayerNorm(12)
            self.qkv = nn.Linear(12, 36) if fused else nn.ModuleList([nn.Linear(12, 12) for _ in range(3)])
            self.out, self.up, self.down = nn.Linear(12, 12), nn.Linear(12, 48), nn.Linear(48, 12)
            self.register_buffer("mask", torch.ones(1, 1, 5, 5).tril().bool())

        def attention(self, x):
            q, k, v = self.qkv(x).split(12, -1) if self.fused else [one(x) for one in self.qkv]
            q, k, v = (one.view(x.shape[0], 5, 3, 4).transpose(1, 2) for one in (q, k, v))
            scores = q @ k.transpose(-1, -2) / 2.0
            if self.fused:
                scores = scores.masked_fill(~self.mask, -1e9)
            weights = functional.dropout(scores.softmax(-1), 0.2, self.fused)
            return (weights @ v).transpose(1, 2).reshape(x.shape[0], 5, 12)

        def forward(self, x):
            x = x + self.out(self.attention(self.norm(x)))
            return x + self.down(functional.gelu(self.up(self.norm2(x))))

    block = "layer_norm dense attention dense add layer_norm dense gelu dense add"
    loss = " softmax_cross_entropy"
    return {
        "inverted": (Inverted(), torch.rand(2, 8, 8, 8),
                     "convolution batch_norm relu convolution batch_norm silu convolution add average_pool reshape dense" + loss, 0),
        "flat": (Flat(), torch.rand(2, 3, 8, 8), "convolution reshape dense" + loss, 0),
        "words": (Words(), torch.randint(0, 50, (2, 7)), "embedding gru lstm lstm dense" + loss, 2 * 24 + 2 * 24),
        "gpt": (Block(True), torch.rand(2, 5, 12), block + loss, 0),
        "bert": (Block(False), torch.rand(2, 5, 12), block + loss, 0),
    }


def check_exported(stepcast, folder, torch):
    for name, (module, example, kinds, second_biases) in exported_networks(torch).items():
        for opset, batch in itertools.product((13, 16), ({}, {"x": {0: "batch"}})):  # with a free batch, nodes compute shapes
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                torch.onnx.export(module.train(), example, f"{folder}/net.onnx", opset_version=opset, input_names=["x"],
                                  dynamic_axes=batch, training=torch.onnx.TrainingMode.TRAINING)
            printed, found, text = imported(stepcast, folder)
            parameters = sum(one.numel() for one in module.parameters()) - second_biases
            assert f"{parameters} parameters" in printed, (name, opset, parameters, printed)
            assert found == kinds.split(), (name, opset, found)
            assert ("causal: true, dropout: 0.2" in text) == (name == "gpt"), (name, text)


def main():
    stepcast = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/net.onnx"
        with open(path, "wb") as file:
            file.write(resnet18().SerializeToString())
        printed = imported(stepcast, folder)[0]
        expected, got = totals(stepcast, "resnet18"), totals(stepcast, f"{folder}/net.yaml")
        assert "11689512 parameters" in printed, printed
        assert expected and expected == got, (expected, got)
        try:
            import torch
        except ImportError:
            print("PyTorch is not installed: its exports are not tried")
            return
        check_exported(stepcast, folder, torch)


main()
