#!/usr/bin/env python3
"""Times ResNet-50's training step in PyTorch the way stepcast-gpu times its own: synthetic data on the GPU, SGD with momentum,
median over steps. Prints CSV. TF32 is on or off for matrix products and convolutions together; bf16 uses autocast."""
import argparse
import contextlib
import statistics

import torch
import torchvision


def step_seconds(precision, layout, batch, steps, warm_up):
    tf32 = precision != "f32"
    torch.backends.cuda.matmul.allow_tf32 = tf32
    torch.backends.cudnn.allow_tf32 = tf32
    torch.backends.cudnn.benchmark = True
    order = torch.channels_last if layout == "nhwc" else torch.contiguous_format
    model = torchvision.models.resnet50().cuda().to(memory_format=order).train()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    images = torch.rand(batch, 3, 224, 224, device="cuda").contiguous(memory_format=order)
    classes = torch.randint(0, 1000, (batch,), device="cuda")
    half = torch.autocast("cuda", torch.bfloat16) if precision == "bf16" else contextlib.nullcontext()
    seconds = []
    for step in range(warm_up + steps):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        optimizer.zero_grad(set_to_none=True)
        with half:
            loss = torch.nn.functional.cross_entropy(model(images), classes)
        loss.backward()
        optimizer.step()
        end.record()
        torch.cuda.synchronize()
        if step >= warm_up:
            seconds.append(1e-3 * begin.elapsed_time(end))
    return statistics.median(seconds)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--warm-up", type=int, default=10)
    options = parser.parse_args()
    print("precision,layout,batch,step_seconds,images_per_second")
    for precision, layout in (("f32", "nchw"), ("tf32", "nhwc"), ("bf16", "nhwc")):
        seconds = step_seconds(precision, layout, options.batch, options.steps, options.warm_up)
        print(f"{precision},{layout},{options.batch},{seconds:.6g},{options.batch / seconds:.1f}", flush=True)


if __name__ == "__main__":
    main()
