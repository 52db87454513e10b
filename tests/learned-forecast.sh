#!/usr/bin/env bash
# The loop of docs/how-to/learn-from-small-runs.md with real ranks that sleep, in an emulated network: 1 and 2 ranks are measured, 4 and 8 are forecast from them and
# frozen, then run and compared. It checks the loop and prints the errors, which depend on what else the machine does.
# Needs root, iproute2 and Open MPI; exits 77, with the reason, without them. Usage: tests/learned-forecast.sh STEPCAST
set -euo pipefail
skip() { echo "skipped: $1"; exit 77; }
[ "$(id -u)" -eq 0 ] || skip "network namespaces need root"
command -v mpirun >/dev/null || skip "there is no mpirun"
ip netns add stepcast-probe-$$ 2>/dev/null || skip "no network namespace can be made"
ip netns del stepcast-probe-$$
root=$(cd "$(dirname "$0")/.." && pwd)
stepcast=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
export STEPCAST_DATA=$root
scenario=$root/scenarios/validate/loop.yaml
network=netcluster:200mbit,packet=6144

"$stepcast" validate "$scenario" --ranks 2 --cluster "$network" --sleep --repeats 2 --accept-disturbed --set 'sweep.workers=[1, 2]' -o small >log ||
  { cat log; exit 1; }
trace=(--set trace="$work/small/small-mlp-b512.yaml")
"$stepcast" run "$scenario" "${trace[@]}" --decide 2 -o before >log
grep -A1 'Measure next, for the step time at workers=8' log | grep -q 'workers=2: ' || { cat log; echo "two workers are not what to measure next"; exit 1; }
"$stepcast" run "$scenario" "${trace[@]}" --measured small/samples.csv -o after >log
grep -q 'measured: step_seconds = .* at workers=2' log || { cat log; exit 1; }
sha256sum before/results.csv after/results.csv >frozen
"$stepcast" validate "$scenario" --ranks 8 --cluster "$network" --sleep --repeats 2 --accept-disturbed --measured-in small \
  --set 'sweep.workers=[4, 8]' -o large >log || { cat log; exit 1; }
sha256sum --check --quiet frozen
for forecast in before after; do
  echo "$forecast the measurements:"
  "$stepcast" compare $forecast/results.csv large/samples.csv | tee compared
  [ "$(grep -c '^workers=[48] ' compared)" -eq 2 ]
done
