#!/bin/bash
# A simulation process that is killed in the middle of a sweep costs its point alone: the point is a row with the reason, the
# other points are simulated, and run exits with 4. Usage: tests/dead-process.sh STEPCAST
stepcast=$(realpath "$1")
. "$(dirname "$0")/setup.sh"

cat >sweep.yaml <<'END'
name: sweep
model: small-cnn
trace: small-cnn-b64-cpu
platform: ethernet-cpu
set: {platform.nodes: 4096}
batch_per_worker: 64
strategy: {kind: synchronous, all_reduce: ring, bucket: 100 kB}
simulation: {steps: 3, fidelity: message}
uncertainty: none
sweep: {workers: [1024, 8, 16]}
END
"$stepcast" run sweep.yaml --results-only -j 1 -o results >out 2>err &
run=$!
# The first point takes long enough to be met: every message of rings of 1,024 workers.
until child=$(pgrep -P $run) || ! kill -0 $run 2>/dev/null; do sleep 0.02; done
kill -KILL $child
wait $run
code=$?

check() {
  "$@" || { echo "FAILED: $*"; cat err; cat results/results.csv; failures=1; }
}
check [ $code -eq 4 ]
check grep -q '^sweep,workers=1024,.*a simulation process was killed by signal 9' results/results.csv
check [ "$(grep -c 'killed by signal' results/results.csv)" -eq 1 ]
check grep -q '^sweep,workers=8,8,,synchronous,8,' results/results.csv
check grep -q '^sweep,workers=16,16,,synchronous,16,' results/results.csv
[ $failures -eq 0 ] && echo "a process that dies costs its point alone"
exit $failures
