#!/bin/bash
# `stepcast validate --forecasts 2` captures, freezes a forecast and runs the points by turns, and compares the mean forecast with the mean of
# all runs.
# Usage: tests/forecasts.sh STEPCAST
stepcast=$(realpath "$1")
. "$(dirname "$0")/setup.sh"
set -eo pipefail
cp "$STEPCAST_DATA/tests/two-strategies.yaml" tiny.yaml
"$stepcast" validate tiny.yaml --ranks 2 --accept-disturbed --repeats 1 --forecasts 2 --set batch_per_worker=8 --set noise.jitter=trace -o both >out 2>&1 ||
  { cat out; exit 1; }
cd both
[ "$(wc -l <predicted.sha256)" = 4 ] || { echo "FAILED: both forecasts are not frozen"; cat predicted.sha256; exit 1; }
sha256sum --quiet --check predicted.sha256
python3 - <<'END'
import csv

def rows(file):
    with open(file) as lines:
        return list(csv.DictReader(line for line in lines if not line.startswith("#")))

def steps(file):
    return [float(row["step_seconds"]) for row in rows(file)]

first, second, mean = steps("forecast-1/predicted.csv"), steps("forecast-2/predicted.csv"), steps("predicted.csv")
assert all(abs((a + b) / 2 / m - 1) < 1e-12 for a, b, m in zip(first, second, mean, strict=True)), (first, second, mean)
samples, points = rows("samples.csv"), rows("measured.csv")
assert [row["forecast"] for row in samples] == ["1"] * 2 + ["2"] * 2, samples
assert [row["repeats"] for row in points] == ["2"] * 2, points
for row in points:
    own = sorted(float(one["step_seconds"]) for one in samples if one["point"] == row["point"])
    assert abs(sum(own) / 2 / float(row["measured_seconds"]) - 1) < 1e-12, (row, own)
END
cmp -s forecast-1/links.jsonl forecast-2/links.jsonl && { echo "FAILED: the second forecast has no captures of its own"; exit 1; }
grep -q '^forecast 2: |error| mean' ../out || { echo "FAILED: no line for each forecast"; cat ../out; exit 1; }
if "$stepcast" validate ../tiny.yaml --ranks 2 --sleep --forecasts 2 -o none 2>err; then echo "FAILED: --sleep with forecasts"; exit 1; fi
grep -q 'forecasts: expected 1 with --sleep, got 2' err || { cat err; exit 1; }
echo "two forecasts, each from captures of its own, one comparison"
