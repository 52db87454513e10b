#!/usr/bin/env python3
"""Times a network's training steps in PyTorch, layer by layer and pass by pass, and writes a trace that stepcast replays.

The program needs PyTorch and this one file. The network comes from a model file of stepcast (--model), or it is your own
torch.nn.Module (--module), and then --write-model makes its model file too.

A step that is timed layer by layer is an ordinary training step: autograd runs it, and every layer's forward and backward
functions read the clock. The backward pass of a layer with parameters runs twice, once for the gradient of its input and
once for the gradients of its parameters, each by torch.autograd.grad on those tensors alone, so that a convolution computes
one of the two (output_mask of aten::convolution_backward). Norms, LSTM and GRU compute both at once: that time counts as
backward_data. Each such step is paired with a step that runs as PyTorch runs it, timed only from outside. If both differ by
more than 2 %, the trace is flagged, and every forecast that uses it repeats the flag.

On a GPU the times of layers are GPU time alone: in front of every pass the GPU spins until the host has launched the pass.
Their sum is compared with whole steps that were launched in this way. A flag of its own says by how much the step as PyTorch
runs it is longer, because the GPU waits for the host there."""
import argparse
import contextlib
import datetime
import functools
import importlib
import json
import math
import os
import platform
import random
import re
import shlex
import statistics
import sys
import tempfile
import time

try:
    import torch
    from torch import nn
    from torch.nn import functional
except ImportError:
    sys.exit("capture-torch: PyTorch is missing: install it (https://pytorch.org, or Debian's python3-torch)")

EXAMPLES = """examples:
  python3 capture-torch.py --model resnet50.yaml --batch 64 --precision tf32 -o resnet50-b64-mygpu.yaml
  python3 capture-torch.py --model small-cnn.yaml --batch 64 --device cpu -o small-cnn-b64-torch.yaml
  python3 capture-torch.py --module torchvision.models:resnet18 --input 3,224,224 --batch 32 \\
      --write-model resnet18.yaml -o resnet18-b32-mygpu.yaml
  python3 capture-torch.py --module my_net.py:make_net --input 128 --tokens 50257 --batch 8 \\
      --write-model my-net.yaml -o my-net-b8-mygpu.yaml

then, where stepcast is:
  stepcast show trace resnet50-b64-mygpu.yaml
  stepcast run SCENARIO.yaml --set trace=resnet50-b64-mygpu.yaml"""


class InputError(Exception):
    """The user's error: one line, exit code 2."""


# ---------------------------------------------------------------------------------------------- model files

# The subset of YAML that model files use: "key: value" lines, then "layers:" with one "  - {...}" line for each layer.
TOKEN = re.compile(r'\s*("(?:[^"\\]|\\.)*"|\'(?:[^\']|\'\')*\'|[\[\]{},:]|[^\[\]{},:#"\'\s][^\[\]{},:#]*)')


def scalar(text):
    text = text.strip()
    if text[:1] == '"':
        return json.loads(text)
    if text[:1] == "'":
        return text[1:-1].replace("''", "'")
    if text in ("true", "false"):
        return text == "true"
    for number in (int, float):
        with contextlib.suppress(ValueError):
            return number(text)
    return text


def flow_value(tokens):
    """Reads one value from the front of the list of tokens: {key: value}, [value] or a scalar."""
    first = tokens.pop(0)
    if first in "}],:":
        raise IndexError
    if first not in "{[":
        return scalar(first)
    mapping, result = first == "{", [] if first == "[" else {}
    while tokens[0] not in "]}":
        key = scalar(tokens.pop(0)) if mapping else None
        if mapping and tokens.pop(0) != ":":
            raise IndexError
        if mapping:
            result[key] = flow_value(tokens)
        else:
            result.append(flow_value(tokens))
        if tokens[0] == ",":
            tokens.pop(0)
    if tokens.pop(0) != ("}" if mapping else "]"):
        raise IndexError
    return result


def flow_text(text, place):
    tokens, at = [], 0
    while text[at:].strip() and not text[at:].lstrip().startswith("#"):
        match = TOKEN.match(text, at)
        if not match:
            raise InputError(f"{place}: expected a value such as {{name: conv1, kind: relu}}, got {text.strip()!r}")
        tokens.append(match.group(1))
        at = match.end()
    try:
        value = flow_value(tokens)
        if not tokens:
            return value
    except IndexError:
        pass
    raise InputError(f"{place}: expected one value on the line, got {text.strip()!r}; install PyYAML for other YAML")


def strict_yaml(text, file):
    """Reads a model file without PyYAML. Anything that model files do not use is refused with its line."""
    result, items = {}, None
    for number, line in enumerate(text.splitlines(), 1):
        place = f"{file}:{number}"
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        entry = re.match(r"([A-Za-z_]\w*):(?:\s+(.*))?$", line)
        item = re.match(r"( +)- (\{.*)$", line)
        block = re.match(r"  - repeat: (\d+)$", line)
        inner = re.match(r"    (name|layers):(?: +(\w+))?$", line)
        if entry and entry.group(1) in result:
            raise InputError(f"{place}: {entry.group(1)}: the key is there twice")
        if entry and entry.group(2):
            key, value = entry.groups()
            result[key] = flow_text(value, place) if value[0] in "\"'{[" else scalar(value.split(" #")[0])
            items = None
        elif entry:
            items = result[entry.group(1)] = []
        elif block and items is not None:
            items.append({"repeat": int(block.group(1))})
        elif inner and items and "repeat" in items[-1]:
            items[-1][inner.group(1)] = inner.group(2) or []
        elif item and items and len(item.group(1)) > 2 and "layers" in items[-1]:
            items[-1]["layers"].append(flow_text(item.group(2), place))
        elif item and items is not None and len(item.group(1)) == 2:
            items.append(flow_text(item.group(2), place))
        else:
            raise InputError(f"{place}: expected KEY: VALUE or - {{...}}, got {line.strip()!r}; install PyYAML for other YAML")
    return result


def read_yaml(file):
    try:
        with open(file, encoding="utf-8") as stream:
            text = stream.read(1 << 22)
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file}: {error.strerror if isinstance(error, OSError) else 'not a text file'}") from None
    try:
        import yaml
    except ImportError:
        return strict_yaml(text, file)
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise InputError(f"{file}: " + " ".join(str(error).split())) from None


def transformer_layers(stack):
    """The layers of `transformer_stack`, as stepcast expands them (docs/reference/networks.md)."""
    width, layers, last = stack["width"], [], "input"

    def add(name, kind, **keys):
        nonlocal last
        layers.append({"name": name, "kind": kind, "inputs": [last], **keys})
        last = name
        return layers[-1]

    for block in range(stack["layers"]):
        at, start = f"block{block}_", last
        add(at + "norm1", "layer_norm")
        add(at + "qkv", "dense", units=3 * width)
        add(at + "attention", "attention", heads=stack["heads"], causal=stack.get("causal", True))
        add(at + "projection", "dense", units=width)
        middle = add(at + "add1", "add")
        middle["inputs"].append(start)
        add(at + "norm2", "layer_norm")
        add(at + "expand", "dense", units=stack.get("expansion", 4) * width)
        add(at + "gelu", "gelu")
        add(at + "contract", "dense", units=width)
        add(at + "add2", "add")["inputs"].append(middle["name"])
    add("final_norm", "layer_norm")
    add("vocabulary", "dense", units=stack["vocabulary"], bias=False)
    add("loss", "softmax_cross_entropy")
    return layers


def repetitions(item, above, file):
    """The layers of a block `repeat: N`, whose repetition I is called nameI_LAYER; any other item is one layer."""
    if not isinstance(item, dict):
        raise InputError(f"{file}: layers: expected a mapping with name and kind, got {item!r}")
    if "repeat" not in item:
        return [item]
    if not isinstance(item.get("layers"), list) or "name" not in item or not isinstance(item["repeat"], int):
        raise InputError(f"{file}: layers: expected a block with repeat, name and layers")
    own, layers = {layer.get("name") for layer in item["layers"]}, []
    for repetition in range(item["repeat"]):
        at, previous = f"{item['name']}{repetition}_", layers[-1]["name"] if layers else above
        for layer in item["layers"]:
            copy = {**layer, "name": at + str(layer.get("name"))}
            if "inputs" in layer:
                copy["inputs"] = [at + one if one in own else previous if one == "previous" else one for one in layer["inputs"]]
            layers.append(copy)
    return layers


def read_model(name):
    """The model file as a mapping with `name`, `input` and `layers`, each layer with `inputs`."""
    beside = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "models", name + ".yaml")
    file = name if name.endswith(".yaml") else beside
    if not os.path.exists(file):
        raise InputError(f"--model: expected a model file of stepcast such as resnet50.yaml, and {name} is not there")
    model = read_yaml(file)
    if not isinstance(model, dict) or "name" not in model:
        raise InputError(f"{file}: expected a model file of stepcast, with name, input and layers")
    if "transformer_stack" in model:
        stack = model["transformer_stack"]
        missing = [key for key in ("layers", "width", "heads", "sequence", "vocabulary") if key not in stack]
        if missing:
            raise InputError(f"{file}: transformer_stack: {missing[0]} is missing")
        return {"name": model["name"], "input": [stack["sequence"], stack["width"]], "layers": transformer_layers(stack)}
    for key in ("input", "layers"):
        if not isinstance(model.get(key), list) or not model[key]:
            raise InputError(f"{file}: {key}: expected a list")
    above = "input"
    items, model["layers"] = model["layers"], []
    for item in items:
        model["layers"] += repetitions(item, model["layers"][-1].get("name") if model["layers"] else "input", file)
    for layer in model["layers"]:
        if not isinstance(layer, dict) or not {"name", "kind"} <= set(layer):
            raise InputError(f"{file}: layers: expected a mapping with name and kind, got {layer!r}")
        layer.setdefault("inputs", [above])
        above = layer["name"]
    return model


# ---------------------------------------------------------------------------------------------- layers of a model file


def sizes(value, count):
    """One integer for all dimensions, or a list with one for each."""
    result = list(value) if isinstance(value, list) else [value] * count
    if len(result) != count or not all(isinstance(one, int) and one >= 0 for one in result):
        raise ValueError(f"expected {count} integers, got {value!r}")
    return result


def window(layer, shape, default_stride):
    """Kernel, stride, padding before and after of convolutions and pools, and the sizes of the output."""
    count = len(shape) - 1
    kernel = sizes(layer["kernel"], count)
    stride = sizes(layer.get("stride", kernel if default_stride == "kernel" else 1), count)
    pad = layer.get("pad", 0)
    if pad == "same":
        total = [max(0, (-(-n // s) - 1) * s + k - n) for n, s, k in zip(shape[1:], stride, kernel)]
        before, after = [t // 2 for t in total], [t - t // 2 for t in total]
    elif isinstance(pad, dict):
        before, after = sizes(pad["before"], count), sizes(pad["after"], count)
    else:
        before = after = sizes(pad, count)
    positions = [(n + b + a - k) // s + 1 for n, b, a, k, s in zip(shape[1:], before, after, kernel, stride)]
    if min(positions) < 1:
        raise ValueError(f"a kernel of {kernel} does not fit into {shape}")
    return kernel, stride, before, after, positions


def padding_of(before, after):
    """torch.nn.functional.pad's order: the last dimension first."""
    return [size for pair in reversed(list(zip(before, after))) for size in pair]


class Padded(nn.Module):
    """A module behind padding that is not equal on both sides."""

    def __init__(self, module, before, after, value=0.0, scale=None):
        super().__init__()
        self.module, self.pad, self.value = module, padding_of(before, after), value
        self.register_buffer("scale", scale, persistent=False)

    def forward(self, x):
        x = self.module(functional.pad(x, self.pad, value=self.value))
        return x if self.scale is None else x * self.scale


class LocallyConnected(nn.Module):
    """A convolution with filters of its own at each position: PyTorch has none, so this unfolds and multiplies."""

    def __init__(self, channels, filters, kernel, stride, before, after, positions, bias):
        super().__init__()
        if len(kernel) != 2:
            raise ValueError("locally_connected is built for images of 2 dimensions only")
        self.pad, self.positions = padding_of(before, after), positions
        self.unfold = nn.Unfold(tuple(kernel), stride=tuple(stride))
        count, columns = math.prod(positions), channels * math.prod(kernel)
        self.weight = nn.Parameter(torch.randn(count, columns, filters) / math.sqrt(columns))
        self.bias = nn.Parameter(torch.zeros(count, filters)) if bias else None

    def forward(self, x):
        columns = self.unfold(functional.pad(x, self.pad)).permute(2, 0, 1)  # positions, batch, columns
        y = torch.bmm(columns, self.weight)
        if self.bias is not None:
            y = y + self.bias[:, None]
        return y.permute(1, 2, 0).reshape(x.shape[0], -1, *self.positions)


class Attention(nn.Module):
    """The core of attention: the heads of queries, keys and values lie side by side in the features of a token."""

    def __init__(self, heads, kv_heads, causal, dropout, tokens):
        super().__init__()
        self.heads, self.kv_heads, self.causal, self.dropout = heads, kv_heads, causal, nn.Dropout(dropout)
        mask = torch.ones(tokens, tokens, dtype=torch.bool).triu(1) if causal else None
        self.register_buffer("mask", mask, persistent=False)

    def forward(self, x):
        batch, tokens, width = x.shape
        size = width // (self.heads + 2 * self.kv_heads)
        parts = x.view(batch, tokens, -1, size).transpose(1, 2).split((self.heads, self.kv_heads, self.kv_heads), 1)
        query, (key, value) = parts[0], parts[1:]
        if self.kv_heads < self.heads:  # several heads of queries share one of keys and values
            key, value = (one.repeat_interleave(self.heads // self.kv_heads, 1) for one in (key, value))
        if hasattr(functional, "scaled_dot_product_attention"):
            rate = self.dropout.p if self.training else 0
            y = functional.scaled_dot_product_attention(query, key, value, dropout_p=rate, is_causal=self.causal)
        else:
            scores = query @ key.transpose(-2, -1) / math.sqrt(size)
            if self.causal:
                scores = scores.masked_fill(self.mask, -math.inf)
            y = self.dropout(scores.softmax(-1)) @ value
        return y.transpose(1, 2).reshape(batch, tokens, self.heads * size)


class RotaryEmbedding(nn.Module):
    """Rotates pairs of features of queries and keys by angles that grow with the token's position."""

    def __init__(self, heads, kv_heads, tokens, width):
        super().__init__()
        self.rotated, self.all = heads + kv_heads, heads + 2 * kv_heads
        half = width // self.all // 2
        angles = torch.arange(tokens)[:, None] * 10_000.0 ** (-torch.arange(half) / max(half, 1))
        self.register_buffer("cosine", angles.cos()[:, None], persistent=False)
        self.register_buffer("sine", angles.sin()[:, None], persistent=False)

    def forward(self, x):
        heads = x.view(*x.shape[:2], self.all, -1)
        first, second = heads[:, :, : self.rotated].chunk(2, -1)
        turned = torch.cat((first * self.cosine - second * self.sine, first * self.sine + second * self.cosine), -1)
        return torch.cat((turned, heads[:, :, self.rotated:]), 2).reshape(x.shape)


class RmsNorm(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(features))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight


class SwiGlu(nn.Module):
    def forward(self, x):
        gate, value = x.chunk(2, -1)
        return functional.silu(gate) * value


class Concatenate(nn.Module):
    def forward(self, *inputs):
        return torch.cat(inputs, 1)


class PositionEmbedding(nn.Module):
    def __init__(self, rows, features):
        super().__init__()
        self.weight = nn.Parameter(0.02 * torch.randn(rows, features))

    def forward(self, x):
        return x + self.weight[: x.shape[1]]


class ClassToken(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.weight = nn.Parameter(0.02 * torch.randn(features))

    def forward(self, x):
        return torch.cat((self.weight.expand(x.shape[0], 1, -1).to(x.dtype), x), 1)


class FirstToken(nn.Module):
    def forward(self, x):
        return x[:, 0]


class Recurrent(nn.Module):
    """LSTM or GRU with one bias for each gate: PyTorch's second bias stays zero and is not trained."""

    def __init__(self, kind, features, hidden, bidirectional, last):
        super().__init__()
        self.last = last
        self.cells = kind(features, hidden, batch_first=True, bidirectional=bidirectional)
        for name, parameter in self.cells.named_parameters():
            if name.startswith("bias_hh"):
                nn.init.zeros_(parameter)
                parameter.requires_grad_(False)

    def forward(self, x):
        sequence, state = self.cells(x)
        if not self.last:
            return sequence
        hidden = state[0] if isinstance(state, tuple) else state
        return hidden.transpose(0, 1).reshape(x.shape[0], -1)


class Add(nn.Module):
    def forward(self, *inputs):
        return functools.reduce(torch.add, inputs)


class Reshape(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.shape = shape

    def forward(self, x):
        return x.reshape(x.shape[0], *self.shape)


class Loss(nn.Module):
    """A loss against fixed random targets."""

    def __init__(self, kind):
        super().__init__()
        self.kind, self.target = kind, None

    def random_target(self, x):
        if self.kind == "softmax_cross_entropy":
            return torch.randint(0, x.shape[-1], (x.numel() // x.shape[-1],), device=x.device)
        return torch.randint(0, 2, x.shape, device=x.device).float()

    def forward(self, x):
        if self.target is None:
            self.target = self.random_target(x)
        if self.kind == "softmax_cross_entropy":
            return functional.cross_entropy(x.reshape(-1, x.shape[-1]), self.target)
        if self.kind == "sigmoid_cross_entropy":
            return functional.binary_cross_entropy_with_logits(x, self.target)
        return functional.mse_loss(x, self.target)


ATTEMPTS = 4  # largest number of pairs of steps, as a multiple of those that are wanted
LOSSES = ("softmax_cross_entropy", "sigmoid_cross_entropy", "mean_squared_error")


def convolution(layer, shape):
    kernel, stride, before, after, positions = window(layer, shape, "one")
    kind = (nn.Conv1d, nn.Conv2d, nn.Conv3d)[len(kernel) - 1]
    even = before == after
    module = kind(shape[0], layer["filters"], kernel, stride, before if even else 0, groups=layer.get("groups", 1),
                  bias=layer.get("bias", True))
    return module if even else Padded(module, before, after), [layer["filters"], *positions]


def locally_connected(layer, shape):
    kernel, stride, before, after, positions = window(layer, shape, "one")
    bias = layer.get("bias", True)
    module = LocallyConnected(shape[0], layer["filters"], kernel, stride, before, after, positions, bias)
    return module, [layer["filters"], *positions]


def pool(layer, shape):
    kernel, stride, before, after, positions = window(layer, shape, "kernel")
    largest = layer["kind"] == "max_pool"
    kinds = (nn.MaxPool1d, nn.MaxPool2d, nn.MaxPool3d) if largest else (nn.AvgPool1d, nn.AvgPool2d, nn.AvgPool3d)
    kind, output = kinds[len(kernel) - 1], [shape[0], *positions]
    if before == after and all(2 * b <= k for b, k in zip(before, kernel)):
        keys = {} if largest else {"count_include_pad": False}
        return kind(kernel, stride, before, **keys), output
    if largest:
        return Padded(kind(kernel, stride), before, after, -math.inf), output
    inside = functional.pad(torch.ones(1, 1, *shape[1:]), padding_of(before, after))  # the mean leaves out the padding
    return Padded(kind(kernel, stride), before, after, 0.0, 1 / kind(kernel, stride)(inside)), output


def recurrent(layer, shape):
    last, directions = layer.get("output", "sequence") == "last", 2 if layer.get("bidirectional", False) else 1
    kind = nn.LSTM if layer["kind"] == "lstm" else nn.GRU
    features = directions * layer["hidden"]
    return Recurrent(kind, shape[1], layer["hidden"], directions == 2, last), [features] if last else [shape[0], features]


def attention(layer, shape):
    heads = layer["heads"]
    kv_heads = layer.get("kv_heads", heads)
    if heads % kv_heads or shape[1] % (heads + 2 * kv_heads):
        raise ValueError(f"{heads} heads and {kv_heads} heads of keys do not fit into {shape[1]} features")
    module = Attention(heads, kv_heads, layer.get("causal", False), layer.get("dropout", 0.0), shape[0])
    return module, [shape[0], shape[1] // (heads + 2 * kv_heads) * heads]


def up_sample(layer, shape):
    factor = sizes(layer["factor"], len(shape) - 1)
    return nn.Upsample(scale_factor=tuple(map(float, factor))), [shape[0], *(n * f for n, f in zip(shape[1:], factor))]


def reshape(layer, shape):
    if math.prod(layer["shape"]) != math.prod(shape):
        raise ValueError(f"expected a shape of {math.prod(shape)} elements, got {layer['shape']}")
    return Reshape(layer["shape"]), layer["shape"]


def batch_norm(layer, shape):
    return (nn.BatchNorm1d, nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)[len(shape) - 1](shape[0]), shape


BUILDERS = {
    "convolution": convolution,
    "locally_connected": locally_connected,
    "max_pool": pool,
    "average_pool": pool,
    "dense": lambda l, s: (nn.Linear(s[-1], l["units"], bias=l.get("bias", True)), [*s[:-1], l["units"]]),
    "embedding": lambda l, s: (nn.Embedding(l["rows"], l["columns"]), [s[0], l["columns"]]),
    "batch_norm": batch_norm,
    "layer_norm": lambda l, s: (nn.LayerNorm(s[-1]), s),
    "relu": lambda l, s: (nn.ReLU(), s),
    "leaky_relu": lambda l, s: (nn.LeakyReLU(l.get("slope", 0.01)), s),
    "sigmoid": lambda l, s: (nn.Sigmoid(), s),
    "tanh": lambda l, s: (nn.Tanh(), s),
    "elu": lambda l, s: (nn.ELU(l.get("alpha", 1)), s),
    "gelu": lambda l, s: (nn.GELU(), s),
    "dropout": lambda l, s: (nn.Dropout(l["rate"]), s),
    "add": lambda l, s: (Add(), s),
    "up_sample": up_sample,
    "reshape": reshape,
    "lstm": recurrent,
    "gru": recurrent,
    "attention": attention,
    "rotary_embedding": lambda l, s: (RotaryEmbedding(l["heads"], l.get("kv_heads", l["heads"]), *s), s),
    "rms_norm": lambda l, s: (RmsNorm(s[-1]), s),
    "silu": lambda l, s: (nn.SiLU(), s),
    "swiglu": lambda l, s: (SwiGlu(), [*s[:-1], s[-1] // 2]),
    "concatenate": lambda l, s: (Concatenate(), s),  # the network adds the first sizes of all inputs up
    "position_embedding": lambda l, s: (PositionEmbedding(l["rows"], s[-1]), s),
    "class_token": lambda l, s: (ClassToken(s[-1]), [s[0] + 1, s[1]]),
    "first_token": lambda l, s: (FirstToken(), s[1:]),
    **{kind: lambda l, s: (Loss(l["kind"]), [1]) for kind in LOSSES},
}


class ModelFileNetwork(nn.Module):
    """The layers of a model file, run in its order. `forward` returns the sum of the losses."""

    def __init__(self, model):
        super().__init__()
        self.layers, self.names = nn.ModuleList(), []
        shapes = {"input": model["input"]}
        self.reads = []
        for layer in model["layers"]:
            name, kind = layer["name"], layer["kind"]
            if kind not in BUILDERS:
                raise InputError(f"{model['name']}: layer {name}: kind {kind} cannot be built; known: {', '.join(BUILDERS)}")
            unknown = [one for one in layer["inputs"] if one not in shapes]
            if unknown:
                raise InputError(f"{model['name']}: layer {name}: inputs: expected layers above, got {unknown[0]}")
            try:
                module, shapes[name] = BUILDERS[kind](layer, shapes[layer["inputs"][0]])
            except (KeyError, ValueError, TypeError, IndexError) as error:
                what = f"{error} is missing" if isinstance(error, KeyError) else error
                raise InputError(f"{model['name']}: layer {name} ({kind}): {what}") from None
            if kind == "concatenate":
                shapes[name] = [sum(shapes[one][0] for one in layer["inputs"]), *shapes[name][1:]]
            if "weight_of" in layer:
                self.tie(module, layer, name)
            self.layers.append(module)
            self.names.append(name)
            self.reads.append(layer["inputs"])
        self.last_reader = {name: i for i, names in enumerate(self.reads) for name in names}
        self.losses = [name for name, module in zip(self.names, self.layers) if isinstance(module, Loss)]

    def tie(self, module, layer, name):
        """Gives a dense layer the weight of the layer above that `weight_of` names."""
        owner = self.layers[self.names.index(layer["weight_of"])] if layer["weight_of"] in self.names else None
        if owner is None or getattr(owner, "weight", None) is None or owner.weight.shape != module.weight.shape:
            raise InputError(f"layer {name}: weight_of: expected a layer above with a weight of {list(module.weight.shape)}")
        module.weight = owner.weight

    def forward(self, x):
        outputs = {"input": x}
        for i, (name, module) in enumerate(zip(self.names, self.layers)):
            outputs[name] = module(*(outputs[read] for read in self.reads[i]))
            for read in self.reads[i]:
                if self.last_reader[read] == i:
                    outputs.pop(read, None)
        if self.losses:
            return sum(outputs[name] for name in self.losses[1:]) + outputs[self.losses[0]]
        return outputs[self.names[-1]].mean()  # a constant gradient at the output of a network without a loss


# ---------------------------------------------------------------------------------------------- timing a step


def flatten(value):
    """Tensors of nested tuples, lists and mappings, and a function that puts others in their place."""
    if isinstance(value, torch.Tensor):
        return [value], lambda tensors: tensors.pop(0)
    if isinstance(value, (tuple, list)):
        parts = [flatten(one) for one in value]

        def rebuild(tensors):
            items = [part[1](tensors) for part in parts]
            return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)

        return [tensor for part in parts for tensor in part[0]], rebuild
    if isinstance(value, dict):
        keys, (tensors, rebuild_values) = list(value), flatten(list(value.values()))

        def rebuild_mapping(new):
            copy = value.copy()
            copy.update(zip(keys, rebuild_values(new)))
            return copy

        return tensors, rebuild_mapping
    return [], lambda _: value


class ProcessorClock:
    """Wall and CPU time of this process."""

    def read(self):
        return time.perf_counter(), time.process_time()

    def between(self, readings):
        return [(b[0] - a[0], b[1] - a[1]) for a, b in zip(readings, readings[1:])]

    begin = cut = read  # of passes: the end of one is the begin of the next
    passes = between
    late = ()


class Leads:
    """How long the GPU spins in front of passes, so that the host has launched all of a pass when the GPU begins it [s]."""

    MARGIN, LEAST_AFTER_LATE = 50e-6, 1e-3

    def __init__(self, longest):
        self.longest, self.spins = longest, {}

    def learn(self, key, host):
        """`host`: seconds in which the host launched the pass."""
        self.spins[key] = min(max(self.spins.get(key, 0), 2 * host + self.MARGIN), self.longest)

    def longer(self, key):
        """The host was late."""
        self.spins[key] = min(max(2 * self.spins.get(key, 0), self.LEAST_AFTER_LATE), self.longest)

    def seconds(self, key):
        return self.spins.get(key, 0)


def busy_kernel():
    """A function that keeps the GPU busy for so many units of time, and a number of units that takes about a millisecond."""
    sleep = getattr(torch.cuda, "_sleep", None)
    if sleep is not None:  # private, but in PyTorch for many years: spins for so many cycles and touches no memory
        return sleep, 1 << 21
    x = torch.full((1 << 20,), 2.0, device="cuda")
    y = torch.empty_like(x)

    def repeat(units):
        for _ in range(math.ceil(units)):
            torch.special.zeta(x, x, out=y)

    return repeat, 16


def cost_of_events(one, many, count):
    """What two events add to the kernels between them, from the times of 1 and of `count` equal kernels between two events."""
    return max(0.0, (count * one - many) / (count - 1))


class CudaClock:
    """Events on the GPU's stream. In front of a pass the GPU spins until the host has launched all of it, so that the time
    between the pass's two events has no waits for the host. Until `calibrate` has run, the GPU does not spin."""

    def __init__(self):
        self.learning, self.pass_leads, self.step_leads = True, Leads(0.05), Leads(1.0)
        self.spin, self.unit, self.empty, self.cost = None, 0.0, 0.0, 0.0
        self.position, self.late = 0, []
        self.first, self.launching = None, 0.0

    def read(self):
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def between(self, readings):
        torch.cuda.synchronize()
        return [(1e-3 * a.elapsed_time(b), None) for a, b in zip(readings, readings[1:])]

    def start(self, leads, key):
        """Lets the GPU spin, and records the event behind that."""
        torch.cuda.synchronize()
        if not self.learning and leads.seconds(key) > 0:
            self.spin(max(1, int(leads.seconds(key) / self.unit)))
        self.first, self.launching = self.read(), time.perf_counter()
        return self.first

    def stop(self, leads, key):
        """The event at the end, and whether all was launched before the GPU began."""
        end = self.read()
        if self.learning:
            leads.learn(key, time.perf_counter() - self.launching)
            return end, True
        in_time = not self.first.query()
        if not in_time:
            leads.longer(key)
        return end, in_time

    def begin(self):
        """The begin of a step's first pass. Readings of passes are pairs: the end of one and the begin of the next."""
        self.position, self.late = 0, []
        return None, self.start(self.pass_leads, 0)

    def cut(self):
        end, in_time = self.stop(self.pass_leads, self.position)
        if not in_time:
            self.late.append(self.position)
        self.position += 1
        return end, self.start(self.pass_leads, self.position)

    def passes(self, readings):
        torch.cuda.synchronize()
        return [(self.without_events(a[1], b[0]), None) for a, b in zip(readings, readings[1:])]

    def without_events(self, begin, end):
        """The seconds of the kernels between two events that the GPU has passed; 0 if there are none."""
        seconds = 1e-3 * begin.elapsed_time(end)
        return 0.0 if seconds < self.empty + 0.5e-6 else max(0.0, seconds - self.cost)

    def calibrate(self, kernel, timed_step, whole_step):
        """Times the spin, what events cost next to a small `kernel`, and how long the host takes to launch each pass."""
        self.spin, units = busy_kernel()
        self.unit = min(self.between([self.read(), self.spin(units), self.read()][::2])[0][0] for _ in range(5)) / units
        self.empty, one, many = (statistics.median(self.small_kernels(kernel, count) for _ in range(20)) for count in (0, 1, 11))
        self.cost = cost_of_events(one, many, 11)
        self.pass_leads, self.step_leads = Leads(0.05), Leads(1.0)
        for _ in range(3):
            timed_step()
            whole_step()
        self.learning = False

    def small_kernels(self, kernel, count):
        torch.cuda.synchronize()
        self.spin(int(1e-3 / self.unit))
        readings = [self.read()]
        for _ in range(count):
            kernel()
        return self.between(readings + [self.read()])[0][0]


class Call:
    """One call of a leaf module within a step, which is one layer of the trace."""

    def __init__(self, name, module):
        self.name, self.module = name, module
        self.parameters = [p for p in module.parameters() if p.requires_grad]
        self.owned = []  # those of `parameters` that no call before this one has: their update is timed here
        self.glue = None  # name of the layer for operations between modules that make this call's input
        self.blanks = []  # tensors of the shapes of its inputs and outputs, without memory of their own

    def forget_values(self, tensors):
        if len(self.blanks) != len(tensors):
            self.blanks = [one.new_empty(()).expand(one.shape) for one in tensors]
        for tensor, blank in zip(tensors, self.blanks):
            tensor.data = blank

    def splits(self):
        """Whether the two gradients are computed by separate kernels."""
        kinds = (nn.modules.batchnorm._BatchNorm, nn.LayerNorm, nn.GroupNorm, nn.RNNBase, Recurrent)
        return not isinstance(self.module, kinds)


class Recorder:
    """Readings of the clock during a step: each interval belongs to the layer and pass that its end names."""

    def __init__(self, clock):
        self.clock, self.timing, self.probing = clock, False, False
        self.calls, self.position, self.owners, self.readings = [], 0, [], []
        self.producers, self.unread, self.kept = {}, [], []  # of the probing step: which layer made a tensor
        self.costs = {}  # what timing adds to a layer: measured by `costs_of_timing`, and subtracted

    def begin_step(self):
        self.position, self.owners, self.readings = 0, [], [self.clock.begin()]

    def mark(self, name, which):
        self.owners.append((name, which))
        self.readings.append(self.clock.cut())

    def seconds(self):
        """The seconds of each (layer, pass): (wall, CPU)."""
        result = {}
        for owner, (wall, cpu) in zip(self.owners, self.clock.passes(self.readings)):
            before = result.get(owner, (0.0, 0.0))
            result[owner] = (before[0] + wall, None if cpu is None else before[1] + cpu)
        for call in self.calls if self.costs else []:
            forward, backward = self.costs[bool(call.parameters)]
            subtract(result, [(call.name, "forward")], forward)
            subtract(result, [(call.name, "backward_data"), (call.name, "backward_weights")], backward)
        return result

    def late(self):
        """On a GPU: the (layer, pass) pairs of the step that the host did not launch in time."""
        return {self.owners[position] for position in self.clock.late}


def subtract(seconds, owners, cost):
    owners = [owner for owner in owners if owner in seconds]
    for owner in owners:
        wall, cpu = seconds[owner]
        seconds[owner] = (max(0.0, wall - cost / len(owners)), None if cpu is None else max(0.0, cpu - cost / len(owners)))


class TimedLayer(torch.autograd.Function):
    """A layer whose forward and backward read the clock. Its own small graph lets the two gradients be computed apart."""

    @staticmethod
    def forward(ctx, recorder, call, function, anchor, *tensors):
        ctx.set_materialize_grads(False)
        inputs = [tensor.detach().requires_grad_(tensor.requires_grad) for tensor in tensors]
        with torch.enable_grad():
            outputs = function([one.view_as(one) if one.requires_grad else one for one in inputs])
        results = tuple(output.detach() for output in outputs)
        # Only what autograd saved for the backward pass stays in memory, as in an ordinary step: the ends of the small
        # graph keep their place and shape, but not their values.
        call.forget_values([one for one in inputs if one.requires_grad] + outputs)
        recorder.mark(call.name, "forward")
        ctx.state = recorder, call, inputs, outputs
        ctx.mark_non_differentiable(*(r for r, output in zip(results, outputs) if not output.requires_grad))
        return results

    @staticmethod
    def backward(ctx, *gradients):
        recorder, call, inputs, outputs = ctx.state
        ctx.state = None
        before = recorder.glue_behind or call.name
        recorder.mark(before, "backward_data" if before != call.name or inputs_trained(inputs) else "backward_weights")
        pairs = [(o, g) for o, g in zip(outputs, gradients) if g is not None and o.requires_grad]
        made, starts = [o for o, _ in pairs], [g for _, g in pairs]
        wanted = [one for one in inputs if one.requires_grad]
        together = wanted + ([] if call.splits() and wanted else call.parameters)
        found = gradients_of(made, together, starts, keep=len(together) < len(wanted) + len(call.parameters))
        accumulate(call.parameters, found[len(wanted):])
        recorder.mark(call.name, "backward_data" if wanted else "backward_weights")
        if call.parameters and len(together) == len(wanted):
            accumulate(call.parameters, gradients_of(made, call.parameters, starts))
            recorder.mark(call.name, "backward_weights")
        recorder.glue_behind = call.glue
        by_input = dict(zip(map(id, wanted), found))
        return (None, None, None, None, *(by_input.get(id(one)) for one in inputs))


def inputs_trained(inputs):
    return any(one.requires_grad for one in inputs)


def gradients_of(outputs, inputs, starts, keep=False):
    if not inputs or not outputs:
        return [None] * len(inputs)
    return torch.autograd.grad(outputs, inputs, starts, retain_graph=keep, allow_unused=True)


def accumulate(parameters, gradients):
    for parameter, gradient in zip(parameters, gradients):
        if gradient is not None:
            parameter.grad = gradient if parameter.grad is None else parameter.grad + gradient


def timed_forward(recorder, name, module):
    """The forward function that replaces the module's own: it is the module's own while no step is timed."""
    plain = module.forward

    def forward(*args, **kwargs):
        if not recorder.timing:
            return plain(*args, **kwargs)
        tensors, rebuild = flatten((args, kwargs))
        call = next_call(recorder, name, module, tensors)
        result = {}

        def function(inputs):
            new_args, new_kwargs = rebuild(list(inputs))
            outputs, result["rebuild"] = flatten(plain(*new_args, **new_kwargs))
            return outputs

        differentiable = inputs_trained(tensors) or call.parameters
        before = call.glue or (recorder.calls[recorder.position - 2].name if recorder.position > 1 else call.name)
        recorder.mark(before, "forward")
        if differentiable and torch.is_grad_enabled():
            outputs = TimedLayer.apply(recorder, call, function, recorder.anchor, *tensors)
        else:
            outputs = function(tensors)
            recorder.mark(call.name, "forward")
        if recorder.probing:
            describe(recorder, call, tensors, outputs)
        return result["rebuild"](list(outputs))

    return forward


def next_call(recorder, name, module, tensors):
    if recorder.probing:
        again = sum(call.module is module for call in recorder.calls)
        call = Call(name if again == 0 else f"{name}_{again + 1}", module)
        known = {id(p) for other in recorder.calls for p in other.parameters}
        call.owned = [p for p in call.parameters if id(p) not in known]
        if recorder.calls and any((id(one), one._version) not in recorder.producers for one in tensors):
            call.glue = call.name + "_input"
        recorder.calls.append(call)
    elif recorder.position >= len(recorder.calls) or recorder.calls[recorder.position].module is not module:
        raise InputError(f"--module: layer {name} did not run at this place in the first step; all steps must run the same layers")
    recorder.position += 1
    return recorder.calls[recorder.position - 1]


def leaves(network):
    """Modules that are timed as layers: those without modules inside, and those whose inner modules only hold parameters."""
    whole = (nn.MultiheadAttention, Padded, LocallyConnected, Attention, Recurrent, Loss)
    inside = set()
    for name, module in network.named_modules():
        if module in inside:
            continue
        if isinstance(module, whole) or not any(True for _ in module.children()):
            inside.update(module.modules())
            yield name, module


# ---------------------------------------------------------------------------------------------- the model file of a module


def sample_shape(tensor, batch):
    """The shape of one sample: without the batch if that is the first dimension."""
    shape = list(tensor.shape)
    if len(shape) > 1 and shape[0] == batch:
        return shape[1:]
    return [max(1, tensor.numel() // batch)]


def same(values, *, zero=False):
    values = list(values) if isinstance(values, (tuple, list)) else [values]
    return values[0] if len(set(values)) == 1 else values


def window_keys(module, dimensions):
    return {"kernel": same(module.kernel_size), "stride": same(module.stride), "pad": same(module.padding)}


def convolution_entry(module, shape):
    plain = set(module.dilation) == {1} and module.padding_mode == "zeros"
    if not plain or isinstance(module.padding, str) or module.transposed:
        return None
    groups = {"groups": module.groups} if module.groups > 1 else {}
    return {"kind": "convolution", "filters": module.out_channels, **window_keys(module, len(shape) - 1), **groups,
            "bias": module.bias is not None}


def pool_entry(module, shape):
    if module.ceil_mode or getattr(module, "dilation", 1) not in (1, (1, 1), (1, 1, 1)):
        return None
    if "Avg" in type(module).__name__ and module.padding not in (0, (0, 0), (0, 0, 0)) and module.count_include_pad:
        return None
    return {"kind": "average_pool" if "Avg" in type(module).__name__ else "max_pool", **window_keys(module, len(shape) - 1)}


def adaptive_entry(module, shape):
    return {"kind": "average_pool", "kernel": same(shape[1:])} if set(flat(module.output_size)) == {1} else None


def flat(value):
    return list(value) if isinstance(value, (tuple, list)) else [value]


def norm_entry(module, shape):
    return {"kind": "batch_norm"} if module.affine and module.track_running_stats else None


ENTRIES = (
    ((nn.Conv1d, nn.Conv2d, nn.Conv3d), (2, 4), convolution_entry),
    ((nn.MaxPool1d, nn.MaxPool2d, nn.MaxPool3d, nn.AvgPool1d, nn.AvgPool2d, nn.AvgPool3d), (2, 4), pool_entry),
    ((nn.AdaptiveAvgPool1d, nn.AdaptiveAvgPool2d, nn.AdaptiveAvgPool3d), (2, 4), adaptive_entry),
    (nn.Linear, (1, 2), lambda m, s: {"kind": "dense", "units": m.out_features, "bias": m.bias is not None}),
    (nn.Embedding, (1, 1), lambda m, s: {"kind": "embedding", "rows": m.num_embeddings, "columns": m.embedding_dim}),
    ((nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d), (1, 4), norm_entry),
    (nn.LayerNorm, (1, 4), lambda m, s: {"kind": "layer_norm"} if m.weight is not None and len(m.normalized_shape) == 1 else None),
    (nn.ReLU, (1, 4), lambda m, s: {"kind": "relu"}),
    (nn.LeakyReLU, (1, 4), lambda m, s: {"kind": "leaky_relu", "slope": m.negative_slope}),
    (nn.Sigmoid, (1, 4), lambda m, s: {"kind": "sigmoid"}),
    (nn.Tanh, (1, 4), lambda m, s: {"kind": "tanh"}),
    (nn.ELU, (1, 4), lambda m, s: {"kind": "elu", "alpha": m.alpha}),
    (nn.GELU, (1, 4), lambda m, s: {"kind": "gelu"}),
    ((nn.Dropout, nn.Dropout2d, nn.Dropout3d), (1, 4), lambda m, s: {"kind": "dropout", "rate": m.p} if m.p < 0.999 else None),
    (nn.Flatten, (1, 4), lambda m, s: {"kind": "reshape", "shape": [math.prod(s)]} if m.start_dim == 1 and m.end_dim == -1 else None),
    (Loss, (1, 4), lambda m, s: {"kind": m.kind}),
)


def known_entry(module, shape):
    """The keys of the layer in a model file, or none for a layer that stepcast has no kind for."""
    for kinds, (low, high), entry in ENTRIES:
        if type(module) in flat(kinds) and low <= len(shape) <= high:
            return entry(module, shape)
    return None


def flow(value):
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {flow(one)}" for key, one in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(flow, value)) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) and re.fullmatch(r"[A-Za-z_][\w.-]*", value) else json.dumps(value)


def describe(recorder, call, inputs, outputs):
    """In the probing step: writes the layer's line of the model file, and notes who made which tensor."""
    entries, batch = recorder.entries, recorder.batch
    if call.glue:
        reads = list(dict.fromkeys(recorder.unread)) or ["input"]
        shape = sample_shape(inputs[0], batch)
        entries.append({"name": call.glue, "kind": "measured", "inputs": reads, "output": shape})
        recorder.unread = []
        reads = [call.glue]
    else:
        reads = [recorder.producers.get((id(tensor), tensor._version), "input") for tensor in inputs]
    shape = sample_shape(inputs[0], batch) if inputs else [1]
    keys = known_entry(call.module, shape) if call.owned == call.parameters and len(inputs) == 1 else None
    if keys is None:
        keys = {"kind": "measured", "output": sample_shape(outputs[0], batch)}
        if call.owned:
            keys["parameters"] = [p.numel() for p in call.owned]
    entries.append({"name": call.name, "kind": keys.pop("kind"), "inputs": reads[:1], **keys})
    recorder.unread = [name for name in recorder.unread if name not in reads] + [call.name]
    recorder.kept += [*inputs, *outputs]  # keeps their ids from being used again
    recorder.producers.update(((id(output), output._version), call.name) for output in outputs)


def model_text(options, recorder, name, shape):
    lines = [f"name: {flow(name)}",
             f"source: {json.dumps('capture-torch.py: layers of ' + options.module + ' as they ran')}",
             "sample: sample", f"input: {flow(shape)}", "layers:"]
    return "\n".join(lines + ["  - " + flow(entry) for entry in recorder.entries]) + "\n"


class ModuleNetwork(nn.Module):
    """A user's module with a loss behind it."""

    def __init__(self, module):
        super().__init__()
        self.module, self.loss = module, None

    def forward(self, x):
        tensors = [one for one in flatten(self.module(x))[0] if one.is_floating_point()]
        if not tensors:
            raise InputError("--module: expected an output that is a tensor of floating-point numbers")
        return self.loss(tensors[0])


# ---------------------------------------------------------------------------------------------- capture


OPTIMIZERS = {
    "sgd": lambda parameters: torch.optim.SGD(parameters, lr=1e-3, momentum=0.9),
    "adam": lambda parameters: torch.optim.Adam(parameters, lr=1e-4),
    "adamw": lambda parameters: torch.optim.AdamW(parameters, lr=1e-4),
}


class Trainer:
    """A network on a device, with its input and optimizers, and the steps that it trains."""

    def __init__(self, network, x, options, recorder):
        self.network, self.x, self.options, self.recorder = network, x, options, recorder
        self.on_gpu = x.is_cuda
        self.trained = [p for p in network.parameters() if p.requires_grad]
        if not self.trained:
            raise InputError("the network has no parameters to train")
        self.whole = OPTIMIZERS[options.optimizer](self.trained)
        self.by_layer = []
        self.notes = []
        self.late, self.ahead = [], []  # on a GPU, for each pair of steps: passes launched late, and `step_ahead`

    def autocast(self):
        types = {"bf16": torch.bfloat16, "f16": torch.float16}
        if self.options.precision not in types:
            return contextlib.nullcontext()
        return torch.autocast(self.x.device.type, types[self.options.precision])

    def forward_backward(self):
        for parameter in self.trained:
            parameter.grad = None
        with self.autocast():
            loss = self.network(self.x)
        loss.backward()

    def whole_step(self):
        """One step as PyTorch runs it, timed from outside."""
        clock = self.recorder.clock
        if self.on_gpu:
            torch.cuda.synchronize()
        readings = [clock.read()]
        self.forward_backward()
        self.whole.step()
        readings.append(clock.read())
        return clock.between(readings)[0]

    def step_ahead(self):
        """One whole step all of whose launches ran ahead of the GPU: its GPU seconds, or none if the host was late."""
        clock = self.recorder.clock
        begin = clock.start(clock.step_leads, 0)
        self.forward_backward()
        self.whole.step()
        end, in_time = clock.stop(clock.step_leads, 0)
        torch.cuda.synchronize()
        return clock.without_events(begin, end) if in_time else None

    def probe(self):
        """The first step: finds the layers in the order in which they run."""
        self.recorder.probing = True
        self.timed_step(update=False)
        self.recorder.probing = False
        self.recorder.kept, self.recorder.producers = [], {}
        for call in self.recorder.calls:
            if call.owned:
                one = OPTIMIZERS[self.options.optimizer](call.owned)
                one.state = self.whole.state
                self.by_layer.append((call, one))

    def timed_step(self, update=True):
        """One step with readings between the passes: the seconds of each (layer, pass)."""
        recorder = self.recorder
        recorder.begin_step()
        recorder.timing, recorder.glue_behind = True, None
        recorder.anchor = torch.zeros((), requires_grad=True)
        try:
            self.forward_backward()
        finally:
            recorder.timing = False
        if recorder.position < len(recorder.calls):
            raise InputError(f"--module: layer {recorder.calls[recorder.position].name} did not run in every step")
        if update:
            self.update()
        return recorder.seconds()

    def update(self):
        """Updates layer by layer on a CPU. GPUs update all layers by few kernels: `deal_out` shares their time out."""
        if self.on_gpu:
            self.whole.step()
            self.recorder.mark("", "update")
            return
        for call, optimizer in self.by_layer:
            optimizer.step()
            self.recorder.mark(call.name, "update")


def costs_of_timing():
    """Host seconds that timing adds to the forward and backward passes of a layer, without and with parameters."""
    layers, costs = 24, {}
    for parameters in (False, True):
        network = nn.Sequential(*(nn.Linear(1, 1) if parameters else nn.Tanh() for _ in range(layers)))
        recorder = Recorder(ProcessorClock())
        recorder.entries, recorder.batch, recorder.glue_behind = [], 1, None
        for name, module in list(leaves(network)):
            module.forward = timed_forward(recorder, name, module)
        x = torch.zeros(1, 1, requires_grad=not parameters)
        samples = {False: [], True: []}
        for repeat in range(30):
            recorder.probing = repeat == 0
            recorder.timing = repeat % 2 == 0
            recorder.anchor = torch.zeros((), requires_grad=True)
            readings = [time.perf_counter()]
            recorder.begin_step()
            y = network(x).sum()
            readings.append(time.perf_counter())
            y.backward()
            readings.append(time.perf_counter())
            if repeat > 5:
                samples[recorder.timing].append((readings[1] - readings[0], readings[2] - readings[1]))
        plain, timed = ([min(half) for half in zip(*samples[which])] for which in (False, True))
        costs[parameters] = [max(0.0, (b - a) / layers) for a, b in zip(plain, timed)]
    return costs


def replace_late(steps, late):
    """Puts the median of the other steps where the host launched a pass late. Gives the number of such times, and the passes
    that were late in more than half of the steps; one that was late in all keeps its times."""
    owners, count, mostly = list(dict.fromkeys(owner for one in late for owner in sorted(one))), 0, []
    for owner in owners:
        good = [step[owner][0] for step, one in zip(steps, late) if owner not in one]
        bad = [step for step, one in zip(steps, late) if owner in one]
        count += len(bad)
        if len(bad) > len(good):
            mostly.append(owner)
        for step in bad if good else []:
            step[owner] = (statistics.median(good), None)
    return count, mostly


def settle_gpu_steps(trainer, steps):
    """Replaces late times, shares out the updates and writes the notes. Gives a flag for passes that are mostly late."""
    times = sum(map(len, steps))
    late, mostly = replace_late(steps, trainer.late)
    for step in steps:
        deal_out(step, trainer.by_layer)
    trainer.notes = gpu_notes(trainer.recorder.clock, late, trainer.ahead, times)
    names = ", ".join(f"{name} {which}".strip() for name, which in mostly[:3])
    return [f"{len(mostly)} passes were launched late in most steps, and may hold waits for the host: {names}"] if mostly else []


def deal_out(seconds, by_layer):
    """Shares the time of an update of all layers out by their numbers of parameters."""
    if ("", "update") not in seconds:
        return seconds
    wall, cpu = seconds.pop(("", "update"))
    counts = {call.name: sum(p.numel() for p in call.owned) for call, _ in by_layer}
    total = sum(counts.values())
    seconds.update({(name, "update"): (wall * count / total, cpu) for name, count in counts.items()})
    return seconds


def disturbance(pair, threads):
    """The largest difference between wall time and CPU time per thread, relative to wall time; 0 on a GPU."""
    timed, whole = pair
    sums = (sum(wall for wall, _ in timed.values()), sum(cpu or 0 for _, cpu in timed.values()))
    times = [(wall, cpu) for wall, cpu in (sums, whole) if whole[1] is not None]
    return max((abs(wall - cpu / threads) / wall for wall, cpu in times), default=0.0)


class Progress:
    """One line on the terminal with the share that is done and the time left."""

    def __init__(self):
        self.begin, self.last = time.monotonic(), 0.0

    def show(self, share):
        now = time.monotonic()
        if now - self.last < (0.2 if sys.stderr.isatty() else 15) or share <= 0:
            return
        self.last = now
        left = (now - self.begin) * (1 - share) / share
        print(f"capture: {100 * share:.0f} %, {left:.0f} s left", end="\r" if sys.stderr.isatty() else "\n", file=sys.stderr, flush=True)


def capture_pairs(trainer, options):
    """Pairs of steps, one timed by layer and one from outside. On a CPU, pairs that another program disturbed are repeated."""
    progress, kept, disturbed = Progress(), [], []
    trainer.probe()
    if not trainer.on_gpu:  # on a GPU the host's time is hidden
        trainer.recorder.costs = costs_of_timing()
    for warm in range(options.warm_up):
        trainer.whole_step()
        trainer.timed_step()
        progress.show((warm + 1) / (options.warm_up + options.steps))
    if trainer.on_gpu:
        small = torch.zeros(1, device=trainer.x.device)
        trainer.recorder.clock.calibrate(lambda: small.add_(1), trainer.timed_step, trainer.step_ahead)
    for attempt in range(ATTEMPTS * options.steps):
        if len(kept) == options.steps:
            break
        first = trainer.whole_step() if attempt % 2 else None
        timed = trainer.timed_step()
        if trainer.on_gpu:
            trainer.late.append(trainer.recorder.late())
            trainer.ahead.append(trainer.step_ahead() if any(trainer.ahead) or len(trainer.ahead) < ATTEMPTS else None)
        pair = timed, first or trainer.whole_step()
        (disturbed if disturbance(pair, options.threads) > 0.03 else kept).append(pair)
        progress.show((options.warm_up + max(len(kept), (attempt + 1) / ATTEMPTS)) / (options.warm_up + options.steps))
    return kept, sorted(disturbed, key=lambda pair: disturbance(pair, options.threads))


def median_of_ratios(inside, outside):
    """The median of inside / outside with its 95 % interval, from 2,000 bootstrap resamples of the pairs."""
    ratios = [a / b for a, b in zip(inside, outside)]
    draw = random.Random(1)
    medians = sorted(statistics.median(draw.choices(ratios, k=len(ratios))) for _ in range(2000))
    return medians[49], statistics.median(ratios), medians[1949]


def sum_flags(timed_steps, outside, what):
    """Flags if the sum over layers differs from steps that were timed at once, by the rules of `stepcast capture`."""
    flags = []
    low, middle, high = percent_above([sum(wall for wall, _ in timed.values()) for timed in timed_steps], outside)
    if low < -2 or high > 2:
        flags.append(f"the sum over layers differs from steps {what} by {middle:+.1f} % (95 % interval {low:+.1f} to {high:+.1f} %)")
    owners = list(dict.fromkeys(owner for timed in timed_steps for owner in timed))
    medians = sum(statistics.median(timed.get(owner, (0,))[0] for timed in timed_steps) for owner in owners)
    difference = 100 * (medians / statistics.median(outside) - 1)
    if abs(difference) > 2:
        flags.append(f"the sum of the layers' medians differs from the median step {what} by {difference:+.1f} %")
    return flags


def percent_above(a, b):
    return [100 * (ratio - 1) for ratio in median_of_ratios(a, b)]


def gpu_flags(pairs, ahead):
    """Flags of a GPU's trace. `ahead`: GPU seconds of whole steps whose launches ran ahead; none where the host was late."""
    inside = [sum(wall for wall, _ in timed.values()) for timed, _ in pairs]
    low, middle, high = percent_above([whole[0] for _, whole in pairs], inside)
    flags = []
    compared = [(timed, seconds) for (timed, _), seconds in zip(pairs, ahead) if seconds]
    if len(compared) >= 3:
        flags += sum_flags(*zip(*compared), "launched ahead of the GPU")
    elif middle < -2:
        flags += sum_flags([timed for timed, _ in pairs], [whole[0] for _, whole in pairs], "without timers inside")
    if middle > 2:
        flags.append(f"the GPU waits for the host: steps as PyTorch runs them take {middle:.1f} % longer than the sum over "
                     f"layers (95 % interval {low:.1f} to {high:.1f} %), and forecasts from these times alone are too fast")
    return flags


def flags_of(pairs, added, ahead):
    """Reasons to doubt the trace. `ahead`: empty on a CPU, else as for `gpu_flags`."""
    flags = []
    if added:
        flags.append(f"{added} of {len(pairs)} pairs of steps were disturbed: wall and CPU time differ by more than 3 %")
    if ahead:
        return flags + gpu_flags(pairs, ahead)
    return flags + sum_flags([timed for timed, _ in pairs], [whole[0] for _, whole in pairs], "without timers inside")


def gpu_notes(clock, late, ahead, times):
    """Notes on how a GPU was timed. `late`: number of late times of `times` in all."""
    known = [seconds for seconds in ahead if seconds]
    return ["the update of all layers was timed at once and is divided among them in proportion to their parameters",
            "times of layers are GPU time: the GPU spun until the host had launched the pass, and the time of events "
            f"({1e6 * clock.cost:.1f} us a pass) is subtracted",
            f"{late} of {times} times of passes were launched late; the median of the pass's other steps stands there",
            f"whole steps launched ahead of the GPU: median {1e3 * statistics.median(known):.4g} ms of {len(known)}" if known else
            "no whole step was launched ahead of the GPU: it has too many launches for the queue, or waits inside"]


# ---------------------------------------------------------------------------------------------- the trace file


def numbers(values):
    return "[" + ", ".join(f"{value:.6g}" for value in values) + "]"


def device_name(options):
    if options.device != "cpu":
        return torch.cuda.get_device_name(options.device)
    name = platform.processor() or platform.machine()
    with contextlib.suppress(OSError), open("/proc/cpuinfo", encoding="utf-8") as lines:
        name = next((line.split(": ", 1)[1].strip() for line in lines if line.startswith("model name")), name)
    return f"{name}, {os.cpu_count()} cores ({options.threads} used)"


def library_name(options):
    parts = [f"PyTorch {torch.__version__}"]
    if options.device != "cpu":
        parts += [f"CUDA {torch.version.cuda}", f"cuDNN {torch.backends.cudnn.version()}"]
    elif torch.backends.mkldnn.is_available():
        found = re.search(r"MKL-DNN v([\d.]+)", torch.__config__.show())
        parts.append(f"oneDNN {found.group(1)}" if found else "oneDNN")
    return ", ".join(parts)


def notes_of(options, trainer):
    notes = [f"optimizer {options.optimizer}; activations are not computed in place; denormal numbers count as zero on a CPU"]
    notes += trainer.notes
    if any(isinstance(call.module, Attention) for call in trainer.recorder.calls):
        fused = hasattr(functional, "scaled_dot_product_attention")
        notes.append("attention: " + ("scaled_dot_product_attention" if fused else "products and softmax over the scores"))
    return notes


def layer_lines(name, pairs):
    lines = [f"  - name: {json.dumps(name)}"]
    for which in ("forward", "backward_data", "backward_weights", "update"):
        times = [timed.get((name, which)) for timed, _ in pairs]
        if not any(times):
            continue
        wall = numbers(one[0] if one else 0 for one in times)
        cpu = "" if times[0] is None or times[0][1] is None else ", cpu_seconds: " + numbers(max(0, one[1]) for one in times)
        lines.append(f"    {which}: {{seconds: {wall}{cpu}}}")
    return lines


def trace_text(options, trainer, model_name, pairs, flags):
    command = " ".join(map(shlex.quote, ["capture-torch.py", *sys.argv[1:]]))
    source = ("capture-torch.py: whole training steps of PyTorch on synthetic data, the clock read between the passes "
              + ("(CUDA events)" if options.device != "cpu" else "(wall: perf_counter, CPU: process_time)"))
    text = {"name": os.path.splitext(os.path.basename(options.output))[0], "model": model_name, "precision": options.precision,
            "device": device_name(options), "library": library_name(options), "command": command, "source": source,
            "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d")}
    lines = [f"{key}: {json.dumps(value)}" for key, value in text.items()]
    lines[1:1] = ["kind: captured", f"batch: {options.batch}", f"threads: {options.threads}"]
    for key, values in (("flags", flags), ("notes", notes_of(options, trainer))):
        lines += [f"{key}:"] * bool(values) + [f"  - {json.dumps(value)}" for value in values]
    lines.append("step_seconds: " + numbers(whole[0] for _, whole in pairs))
    if options.device == "cpu":
        lines.append("step_cpu_seconds: " + numbers(whole[1] for _, whole in pairs))
    lines.append("layers:")
    for call in trainer.recorder.calls:
        for name in [call.glue] * bool(call.glue) + [call.name]:
            lines += layer_lines(name, pairs)
    return "\n".join(lines) + "\n"


def write_atomically(file, text):
    handle, temporary = tempfile.mkstemp(dir=os.path.dirname(os.path.abspath(file)), prefix=".capture-")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(text)
        os.chmod(temporary, 0o644)
        os.replace(temporary, file)
    except BaseException:
        os.unlink(temporary)
        raise


# ---------------------------------------------------------------------------------------------- the command


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter)
    network = parser.add_mutually_exclusive_group(required=True)
    network.add_argument("--model", metavar="FILE", help="model file of stepcast, such as resnet50.yaml; in stepcast's tree, its name")
    network.add_argument("--module", metavar="PACKAGE:NAME",
                         help="your own network: a class or function without arguments in a package or FILE.py that gives a torch.nn.Module")
    parser.add_argument("--input", metavar="SIZES", help="with --module: shape of one sample, such as 3,224,224")
    parser.add_argument("--tokens", metavar="N", type=int, help="with --module: the input is integers below N, not real numbers")
    parser.add_argument("--loss", choices=LOSSES, help="with --module: the loss. Default: softmax_cross_entropy")
    parser.add_argument("--write-model", metavar="FILE", help="with --module: write the network as a model file for stepcast, too")
    parser.add_argument("--batch", type=int, required=True, help="samples of a step")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu",
                        help="cpu or cuda:NUMBER. Default: the first GPU, or the CPU if PyTorch finds no GPU")
    parser.add_argument("--precision", default="f32", choices=("f32", "tf32", "bf16", "f16"),
                        help="f32 (default), tf32 (products and convolutions), or autocast to bf16 or f16")
    parser.add_argument("--channels-last", action="store_true", help="memory layout of images (NHWC)")
    parser.add_argument("--optimizer", default="sgd", choices=tuple(OPTIMIZERS), help="sgd has momentum 0.9. Default: sgd")
    parser.add_argument("--threads", type=int, default=1, help="threads of a CPU. Default: 1, as one rank for each core")
    parser.add_argument("--steps", type=int, default=20, help="pairs of steps, one timed by layer and one from outside. Default: 20")
    parser.add_argument("--warm-up", type=int, default=5, help="pairs of steps before them that do not count. Default: 5")
    parser.add_argument("-o", "--output", metavar="FILE", required=True, help="trace file, ending in .yaml")
    return parser.parse_args()


def check_output(option, file):
    if not file.endswith(".yaml"):
        raise InputError(f"{option}: expected a name that ends in .yaml, got {file}")
    folder = os.path.dirname(os.path.abspath(file))
    if os.path.isdir(file) or not os.access(folder, os.W_OK):
        raise InputError(f"{option}: {file} cannot be written")


def check(options):
    for name, low, high in (("batch", 1, 1 << 20), ("threads", 1, 4096), ("steps", 3, 1000), ("warm_up", 0, 1000)):
        value = getattr(options, name)
        if not low <= value <= high:
            raise InputError(f"--{name.replace('_', '-')}: expected an integer from {low} to {high}, got {value}")
    check_output("--output", options.output)
    if options.write_model:
        check_output("--write-model", options.write_model)
    if options.module and not options.input:
        raise InputError("--module: needs --input, the shape of one sample, such as --input 3,224,224")
    if options.model and any((options.input, options.tokens, options.loss, options.write_model)):
        raise InputError("--input, --tokens, --loss and --write-model: only valid with --module; a model file has them")
    if not re.fullmatch(r"cpu|cuda(:\d+)?", options.device):
        raise InputError(f"--device: expected cpu or cuda:NUMBER, got {options.device}")
    if options.device != "cpu" and not torch.cuda.is_available():
        raise InputError(f"--device: PyTorch {torch.__version__} finds no GPU; it was built for CUDA {torch.version.cuda}")
    if options.device == "cpu" and options.precision in ("tf32", "f16"):
        raise InputError(f"--precision: {options.precision} needs a GPU; a CPU computes f32 or bf16")


def import_module(text):
    """The torch.nn.Module that PACKAGE:NAME or FILE.py:NAME makes."""
    package, colon, name = text.rpartition(":")
    if not colon or not package or not name:
        raise InputError(f"--module: expected PACKAGE:NAME or FILE.py:NAME, got {text}")
    folder, file = os.path.split(package) if package.endswith(".py") else ("", package)
    sys.path.insert(0, os.path.abspath(folder))
    try:
        made = getattr(importlib.import_module(file[:-3] if file.endswith(".py") else file), name)()
    except Exception as error:  # any error of the user's own code ends in one line
        raise InputError(f"--module: {text}: {type(error).__name__}: {' '.join(str(error).split())}") from None
    if not isinstance(made, nn.Module):
        raise InputError(f"--module: {text}: expected a torch.nn.Module, got {type(made).__name__}")
    return made


def input_of_model(model, options):
    """The input of a network from a model file: integers if an embedding reads it."""
    rows = [layer["rows"] for layer in model["layers"] if layer["kind"] == "embedding" and "input" in layer["inputs"]]
    if rows:
        return torch.randint(0, min(rows), (options.batch, *model["input"]))
    return torch.rand(options.batch, *model["input"])


def network_and_input(options):
    """The network, its input, and the network's name."""
    if options.model:
        model = read_model(options.model)
        return ModelFileNetwork(model), input_of_model(model, options), model["name"]
    network = ModuleNetwork(import_module(options.module))
    network.loss = Loss(options.loss or "softmax_cross_entropy")
    if not re.fullmatch(r"[1-9]\d*(,[1-9]\d*)*", options.input):
        raise InputError(f"--input: expected sizes such as 3,224,224, got {options.input}")
    shape = [options.batch, *map(int, options.input.split(","))]
    x = torch.randint(0, options.tokens, shape) if options.tokens else torch.rand(shape)
    name = os.path.splitext(os.path.basename(options.write_model))[0] if options.write_model else options.module.rpartition(":")[2]
    return network, x, name


def set_up(options):
    torch.manual_seed(1)
    torch.set_num_threads(options.threads)
    torch.set_flush_denormal(True)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = options.precision == "tf32"
    torch.backends.cudnn.benchmark = True
    if ":" in options.device:
        torch.cuda.set_device(options.device)  # events and spins are launched on the current GPU


def trainer_of(options, network, x):
    recorder = Recorder(CudaClock() if options.device != "cpu" else ProcessorClock())
    recorder.entries, recorder.batch = [], options.batch
    layout = {"memory_format": torch.channels_last} if options.channels_last and x.dim() == 4 else {}
    network.to(options.device, **layout).train()
    x = x.to(options.device, **layout)
    recorder.producers[id(x), x._version] = "input"
    for name, module in list(leaves(network)):
        if getattr(module, "inplace", False):
            module.inplace = False
        module.forward = timed_forward(recorder, layer_name(network, name), module)
    return Trainer(network, x, options, recorder)


def layer_name(network, name):
    if isinstance(network, ModelFileNetwork):
        return network.names[int(name.split(".")[1])]
    return "loss" if name == "loss" else name[len("module."):] or "module"


def capture(options):
    check(options)
    set_up(options)
    network, x, name = network_and_input(options)
    trainer = trainer_of(options, network, x)
    kept, disturbed = capture_pairs(trainer, options)
    added = options.steps - len(kept)
    pairs = kept + disturbed[:added]
    late_flags = settle_gpu_steps(trainer, [timed for timed, _ in pairs]) if trainer.on_gpu else []
    flags = late_flags + flags_of(pairs, added, trainer.ahead)
    write_atomically(options.output, trace_text(options, trainer, name, pairs, flags))
    if options.write_model:
        write_atomically(options.write_model, model_text(options, trainer.recorder, name, list(x.shape[1:])))
    step = statistics.median(whole[0] for _, whole in pairs)
    count = sum(p.numel() for p in trainer.trained)
    print(f"{name}: batch {options.batch}, {count:,} parameters, step {1e3 * step:.4g} ms, {options.batch / step:.4g} samples/s")
    for flag in flags:
        print(f"flag: {flag}")
    print("written: " + ", ".join([options.output] + [options.write_model] * bool(options.write_model)))


def main():
    options = arguments()
    try:
        capture(options)
    except InputError as error:
        print(f"capture-torch: {error}", file=sys.stderr)
        return 2
    except (RuntimeError, MemoryError) as error:
        text = " ".join(str(error).split())
        if isinstance(error, MemoryError) or "memory" in text:
            text = f"the network with batch {options.batch} does not fit into memory; take a smaller batch ({text[:120]})"
        print(f"capture-torch: {text}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("capture-torch: interrupted; nothing was written", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
