#!/bin/bash
# Runs three sweeps on a Slurm of one machine: the merged results are those of whole runs, byte for byte. Starts munged, slurmctld and
# slurmd of Debian's slurm-wlm on their own ports and stops them. Needs root; exits 77, with the reason, where it cannot run.
# Usage: tests/slurm.sh STEPCAST
set -u
stepcast=$(realpath "$1")
source_folder=$(realpath "$(dirname "$0")/..")
skip() { echo "skipped: $1"; exit 77; }
[ "$(id -u)" -eq 0 ] || skip "Slurm's daemons need root"
for program in munged slurmctld slurmd sbatch; do
  command -v $program >/dev/null || skip "no $program: apt-get install slurm-wlm munge"
done

work=$(mktemp -d)
chmod 755 "$work"
pids=()
finish() {
  for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null; done
  wait 2>/dev/null
  rm -rf "$work"
}
trap finish EXIT
cd "$work" || exit 2

mkdir state spool
dd if=/dev/urandom of=munge.key bs=1 count=1024 status=none
chmod 600 munge.key
munged --foreground --force --key-file="$work/munge.key" --socket="$work/munge.socket" --pid-file="$work/munge.pid" \
  --log-file="$work/munge.log" --seed-file="$work/munge.seed" >munge.out 2>&1 &
pids+=($!)
host=$(hostname -s)
cat >slurm.conf <<END
ClusterName=onebox
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=17817
SlurmdPort=17818
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$work/munge.socket
CredType=cred/munge
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/spool
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=batch_sched_delay=0,sched_interval=1
ReturnToService=2
MpiDefault=none
NodeName=$host NodeAddr=127.0.0.1 CPUs=$(nproc) State=UNKNOWN
PartitionName=all Nodes=$host Default=YES MaxTime=10 State=UP
END
export SLURM_CONF=$work/slurm.conf
slurmctld -D -c >slurmctld.out 2>&1 &
pids+=($!)
slurmd -D -N "$host" >slurmd.out 2>&1 &
pids+=($!)
for ((try = 0; try < 60; ++try)); do
  [ "$(sinfo -h -o %T 2>/dev/null)" = idle ] && break
  sleep 0.5
done
[ "$(sinfo -h -o %T 2>/dev/null)" = idle ] || {
  tail -n 5 munge.out slurmctld.out slurmd.out
  skip "Slurm's daemons do not start here"
}

export STEPCAST_DATA=$source_folder
cat >tiny.yaml <<'END'
name: tiny
model: small-cnn
trace: small-cnn-b64-cpu
platform: ethernet-cpu
strategy: {kind: synchronous}
noise: {jitter: trace}
simulation: {steps: 3}
global_batch: 64
sweep: {workers: [1, 2, 3, 4, 8, 16], strategy.all_reduce: [ring, halving_doubling]}
END
cat >drawn.yaml <<'END'
defaults: tiny.yaml
name: drawn
sweep: {workers: [1, 2, 4]}
assumed: [{key: platform.network.latency, range: [1 us, 100 us], law: log-uniform, why: unknown}]
published: [{point: {workers: 4}, column: step_seconds, kind: predicted, value: 0.1 s, source: made up}]
END

wait_for_jobs() {
  for ((try = 0; try < 240; ++try)); do
    [ -z "$(squeue -h)" ] && return
    sleep 0.5
  done
}

# All result files but the date, the command line, and the order of endings.
same_results() {
  diff -r -x 'simulations.*' -x manifest.json -x parts -x slurm "$1" "$2" && return
  echo "FAILED: the results in $2 differ from those of a whole run in $1"
  tail -n 5 "$2"/slurm/*.log
  exit 1
}

# as_array SCENARIO OPTIONS...: the sweeps take less than a minute, so each would be one task: three tasks are written into the scripts.
as_array() {
  local name
  name=$(basename "$1" .yaml)
  "$stepcast" run "$@" -j 1 -o "whole-$name" >out 2>&1
  "$stepcast" run "$@" --slurm 3 --dry-run -o "merged-$name" >out 2>&1 || [ $? -eq 4 ] || { cat out; exit 1; }  # 4: points fail, as in the run
  sed -i 's/--array=0-0/--array=0-2/; s|SLURM_ARRAY_TASK_ID/1"|SLURM_ARRAY_TASK_ID/3"|; s/{0..0}/{0..2}/' "merged-$name"/slurm/*.sh
  bash "merged-$name/slurm/submit.sh" || { echo "FAILED: the jobs were not submitted"; exit 1; }
  wait_for_jobs
  same_results "whole-$name" "merged-$name"
}

as_array tiny.yaml
as_array drawn.yaml --draws 9
as_array "$source_folder/scenarios/quickstart.yaml" --draws 4
"$stepcast" run tiny.yaml --slurm 3 -o submitted >out 2>&1 && grep -q '^submitted: job array [0-9]*, then the merge [0-9]*;' out ||
  { cat out; echo "FAILED: --slurm does not submit"; exit 1; }
wait_for_jobs
same_results whole-tiny submitted
echo "Slurm's merged parts are the whole run"
