#!/bin/bash
# `stepcast validate --launches 2` freezes a forecast in each launch of the ranks, and compares the means of both launches.
# Usage: tests/launches.sh STEPCAST
set -euo pipefail
stepcast=$(realpath "$1")
STEPCAST_DATA=$(realpath "$(dirname "$0")/..")
export STEPCAST_DATA
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
cp "$STEPCAST_DATA/tests/two-strategies.yaml" tiny.yaml
"$stepcast" validate tiny.yaml --ranks 2 --sleep --accept-disturbed --repeats 1 --launches 2 --set noise.jitter=none -o both >out 2>&1 ||
  { cat out; exit 1; }
cd both
[ "$(wc -l <predicted.sha256)" = 4 ] || { echo "FAILED: the forecasts of both launches are not frozen"; cat predicted.sha256; exit 1; }
sha256sum --quiet --check predicted.sha256
python3 - <<'END'
import csv

def rows(file):
    with open(file) as lines:
        return list(csv.DictReader(line for line in lines if not line.startswith("#")))

def steps(file):
    return [float(row["step_seconds"]) for row in rows(file)]

first, second, mean = steps("launch-1/predicted.csv"), steps("launch-2/predicted.csv"), steps("predicted.csv")
assert all(abs((a + b) / 2 / m - 1) < 1e-12 for a, b, m in zip(first, second, mean, strict=True)), (first, second, mean)
samples, points = rows("samples.csv"), rows("measured.csv")
assert [row["launch"] for row in samples] == ["1"] * 2 + ["2"] * 2, samples
assert [row["repeats"] for row in points] == ["2"] * 2, points
for row in points:
    own = sorted(float(one["step_seconds"]) for one in samples if one["point"] == row["point"])
    assert abs(sum(own) / 2 / float(row["measured_seconds"]) - 1) < 1e-12, (row, own)
END
echo "two launches, a forecast of each, one comparison"
