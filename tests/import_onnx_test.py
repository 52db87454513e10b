#!/usr/bin/env python3
"""Imports a ResNet-18 that onnx.helper builds, and compares its parameters with the library's resnet18.

Usage: import_onnx_test.py STEPCAST
"""
import re
import subprocess
import sys
import tempfile

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


def main():
    stepcast = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/net.onnx"
        with open(path, "wb") as file:
            file.write(resnet18().SerializeToString())
        command = [stepcast, "import", path, "-o", f"{folder}/net.yaml"]
        printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        print(printed)
        expected, got = totals(stepcast, "resnet18"), totals(stepcast, f"{folder}/net.yaml")
        assert "11689512 parameters" in printed, printed
        assert expected and expected == got, (expected, got)


main()
