"""Counts the bytes that PyTorch's autograd saves in a forward pass, and compares them with models/measured/saved-tensors.yaml.

Usage: saved_tensors_test.py [--write] [STEPCAST]. The networks are built from model files by tools/capture-torch.py. A test in C++ holds
the memory rule against the same file. Dropout is torch.native_dropout, as on a GPU. --write puts the counted bytes into the file.
"""
import importlib.util
import os
import re
import sys

import torch
from torch import nn

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ROWS = os.path.join(ROOT, "models", "measured", "saved-tensors.yaml")
FOLDERS = ("", "library/convolutional", "library/transformers")

specification = importlib.util.spec_from_file_location("capture_torch", os.path.join(ROOT, "tools", "capture-torch.py"))
capture_torch = importlib.util.module_from_spec(specification)
specification.loader.exec_module(capture_torch)
if hasattr(nn.functional, "scaled_dot_product_attention"):
    del nn.functional.scaled_dot_product_attention  # attention is eager


def rms_norm(module, x):
    """As capture_torch.RmsNorm; mean() of PyTorch before 2.0 saves its whole input, only for the number of its elements."""
    return x * torch.rsqrt(x.pow(2).sum(-1, keepdim=True) / x.shape[-1] + 1e-6) * module.weight


capture_torch.RmsNorm.forward = rms_norm


class GpuDropout(nn.Module):
    def __init__(self, rate):
        super().__init__()
        self.p = rate

    def forward(self, x):
        return torch.native_dropout(x, self.p, True)[0]


def with_gpu_dropout(module):
    for name, child in module.named_children():
        if isinstance(child, nn.Dropout) and child.p > 0:
            setattr(module, name, GpuDropout(child.p))
        with_gpu_dropout(child)


def storage(tensor):
    return tensor.untyped_storage() if hasattr(tensor, "untyped_storage") else tensor.storage()


def model_file(name):
    if name.endswith(".yaml"):
        return os.path.join(ROOT, name)
    files = [os.path.join(ROOT, "models", folder, name + ".yaml") for folder in FOLDERS]
    return next(file for file in files if os.path.exists(file))


def saved_bytes(name, batch):
    """Each memory once, however many tensors lie in it."""
    model = capture_torch.read_model(model_file(name))
    network = capture_torch.ModelFileNetwork(model).train()
    with_gpu_dropout(network)
    tokens = model["layers"][0]["kind"] == "embedding"
    x = torch.randint(0, 100, (batch, *model["input"])) if tokens else torch.rand(batch, *model["input"])
    kept, tensors = {}, []

    def keep(tensor):
        tensors.append(tensor)  # keeps the memory, so that no later tensor has the same address
        kept[storage(tensor).data_ptr()] = storage(tensor).nbytes()
        return tensor

    def keep_logits(_, inputs):
        keep(inputs[0])

    for module in network.layers:
        if isinstance(module, capture_torch.Loss):
            module.register_forward_pre_hook(keep_logits)
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        loss = network(x)
    own = {storage(one).data_ptr() for one in (x, *network.parameters(), *network.buffers())}
    del loss
    return sum(size for address, size in kept.items() if address not in own)


def main():
    torch.manual_seed(1)
    with open(ROWS, encoding="utf-8") as file:
        text = file.read()
    failures = 0
    for row in re.finditer(r"\{model: (\S+), batch: (\d+), bytes: (\d+)\}", text):
        name, batch, expected = row.group(1), int(row.group(2)), int(row.group(3))
        counted = saved_bytes(name, batch)
        print(f"{name}, batch {batch}: {counted} bytes counted, {expected} in the file")
        text = text.replace(row.group(0), f"{{model: {name}, batch: {batch}, bytes: {counted}}}")
        failures += abs(counted - expected) > 0.01 * expected
    if "--write" in sys.argv:
        with open(ROWS, "w", encoding="utf-8") as file:
            file.write(text)
    elif failures:
        sys.exit(f"{failures} counts differ by more than 1 %")


main()
