#!/bin/bash
# Runs a sweep on a Slurm of one machine: the merged results are those of a whole run, byte for byte. Starts munged, slurmctld and
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
"$stepcast" run tiny.yaml -j 1 -o whole >out 2>&1
# The sweep takes less than a minute, so it would be one task: three tasks are written into the scripts.
"$stepcast" run tiny.yaml --slurm 3 --dry-run -o merged >out 2>&1 || { cat out; exit 1; }
sed -i 's/--array=0-0/--array=0-2/; s|SLURM_ARRAY_TASK_ID/1"|SLURM_ARRAY_TASK_ID/3"|; s/{0..0}/{0..2}/' merged/slurm/*.sh
bash merged/slurm/submit.sh || { echo "FAILED: the jobs were not submitted"; exit 1; }
for ((try = 0; try < 120; ++try)); do
  [ -z "$(squeue -h)" ] && break
  sleep 0.5
done
for file in results.csv results.jsonl report.html scaling.gp; do
  cmp whole/$file merged/$file && continue
  echo "FAILED: $file of the job array differs from that of a whole run"
  tail -n 5 merged/slurm/*.log
  exit 1
done
"$stepcast" run tiny.yaml --slurm 3 -o submitted >out 2>&1 && grep -q '^submitted: job array [0-9]*, then the merge [0-9]*;' out ||
  { cat out; echo "FAILED: --slurm does not submit"; exit 1; }
for ((try = 0; try < 120; ++try)); do
  [ -z "$(squeue -h)" ] && break
  sleep 0.5
done
cmp whole/results.csv submitted/results.csv || { echo "FAILED: the submitted run differs"; exit 1; }
echo "Slurm's merged parts are the whole run"
