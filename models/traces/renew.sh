#!/bin/sh
# Derives all committed traces again. Without --noise: what a CPU's steps differ by says nothing about a GPU's.
# Usage, from the root of the source tree: models/traces/renew.sh build/release/stepcast
set -eu
stepcast=$1
traces=models/traces

while read -r model batch device; do
  "$stepcast" derive --model "$model" --batch "$batch" --device "$device" -o "$traces/$model-b$batch-$device.yaml"
done <<END
seide-dnn 2880 k20x
resnet50 32 k20x
chen-huo-dnn 1024 k40
resnet50 32 k80
resnet50 32 p100-sxm2
resnet50 32 p100-pcie
resnet50 32 v100-sxm2-16gb
mesh-1k 1 v100-sxm2-16gb
mesh-2k 1 v100-sxm2-16gb
resnet50 32 a100-40gb
resnet50 64 h200
END
tools/modelines.sh "$stepcast"
