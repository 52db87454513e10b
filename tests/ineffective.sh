#!/bin/bash
# Every option of every strategy either changes what is forecast or is said to have no effect: each is run with two values,
# and `without_effect` in the results must name it exactly if both give the same results.
# Usage: tests/ineffective.sh STEPCAST (exit code 77: python3-yaml is not installed)
set -u
tests=$(realpath "$(dirname "$0")")
python3 -c 'import yaml' 2>/dev/null || { echo "ineffective: python3-yaml is not installed; no option was tried"; exit 77; }
stepcast=$(realpath "$1")
export STEPCAST_DATA=${tests%/tests}
# In memory, where that is possible: most of the wall time went into fsync.
work=$(mktemp -d -p /dev/shm 2>/dev/null || mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 2

# compare WANT KEY A B SETTINGS...: WANT is `works`, or `idle` for a key that changes nothing and says so. The cases are collected
# here and run by one process: starting stepcast takes longer than most of them.
compare() {
  local IFS=$'\t'
  printf '%s\n' "$*" >>cases
}
works() { compare works "$@"; }
idle() { compare idle "$@"; }

# How gradients are summed.
works strategy.channels 1 4 strategy.all_reduce=ring
idle strategy.channels 1 4 strategy.all_reduce=ring placement=spread workers=4
for algorithm in halving_doubling recursive_doubling binomial_tree double_tree hierarchical mpi; do
  idle strategy.channels 1 4 strategy.all_reduce=$algorithm
done
works strategy.tree_piece "4 KiB" "1 MiB" strategy.all_reduce=double_tree
for algorithm in ring halving_doubling recursive_doubling binomial_tree hierarchical mpi; do
  idle strategy.tree_piece "4 KiB" "1 MiB" strategy.all_reduce=$algorithm
done
works strategy.inside_node reduce_scatter leader strategy.all_reduce=hierarchical
works strategy.between_nodes ring binomial_tree strategy.all_reduce=hierarchical workers=32
idle strategy.inside_node reduce_scatter leader strategy.all_reduce=hierarchical placement=spread workers=4
works strategy.between_nodes ring binomial_tree strategy.all_reduce=hierarchical placement=spread workers=4
idle strategy.between_nodes ring binomial_tree strategy.all_reduce=hierarchical workers=8
for algorithm in automatic ring double_tree; do
  idle strategy.inside_node reduce_scatter leader strategy.all_reduce=$algorithm
  idle strategy.between_nodes ring binomial_tree strategy.all_reduce=$algorithm
done
works strategy.all_reduce ring binomial_tree
works strategy.all_reduce ring binomial_tree strategy.compression=one_bit
idle strategy.all_reduce ring binomial_tree strategy.compression=top_k
idle strategy.inside_node reduce_scatter leader strategy.compression=top_k
works strategy.channels 1 4 strategy.compression=top_k
works strategy.streams 1 4 strategy.bucket=tensor
works strategy.in_flight 1 2 strategy.bucket=tensor strategy.streams=2
idle strategy.in_flight 4 8 strategy.bucket=tensor strategy.streams=2
idle strategy.in_flight 2 3 strategy.bucket=tensor
idle strategy.streams 2 4 strategy.bucket=tensor strategy.in_flight=1
idle strategy.streams 1 4 strategy.bucket=model
works strategy.overlap true false strategy.bucket=tensor
idle strategy.overlap true false strategy.bucket=model
works strategy.bucket tensor model
works strategy.compute_slowdown 1 2 strategy.bucket=tensor
idle strategy.compute_slowdown 1 2 strategy.bucket=model
idle strategy.compute_slowdown 1 2 strategy.bucket=tensor strategy.overlap=false
works strategy.accumulation 1 2
works strategy.recompute true false
works strategy.host_swap "1 GB/s" "10 GB/s"
works strategy.host_synchronization "0 s" "1 ms"
works strategy.step_overhead "0 s" "1 ms"
works strategy.network_rate "0.1 GB/s" "1 GB/s" workers=16
idle strategy.network_rate "1 GB/s" "2 GB/s" workers=1
works strategy.connection_rate "0.1 GB/s" "1 GB/s" workers=16
idle strategy.connection_rate "1 GB/s" "2 GB/s" workers=1
idle strategy.network_rate "100 GB/s" "200 GB/s" workers=16
works strategy.host_operation "0 s" "1 ms"
idle strategy.host_operation "0 s" "1 ms" platform=ethernet-cpu "set={}"
idle strategy.host_operation "0 s" "1 ms" trace=small-cnn-b64-cpu
works strategy.host_work "0 s" "10 ms"
works strategy.host_turn "0 s" "10 ms"
works strategy.input_rate "1 GB/s" "10 GB/s"
works strategy.compute_factor 1 2
works strategy.precision f32 mixed
works strategy.threads 1 2
works strategy.serial_share 0.1 0.5 strategy.threads=2
idle strategy.serial_share 0.1 0.5 strategy.threads=1
works strategy.density 0.01 0.1 strategy.compression=top_k
works strategy.compression_factor 1 2 strategy.compression=fp16
idle strategy.compression_factor 1 2 strategy.compression=none
idle strategy.synchronized_batch_norm true false
works strategy.synchronized_batch_norm true false model=resnet50 workers=2

# Input.
data='data={sample_size: 110 kB, prefetch: 1}'
works data.prefetch 0 1 "$data"
works data.compute_slowdown 1 1.5 "$data"
idle data.compute_slowdown 1 1.5 "$data" data.prefetch=0

# ZeRO.
zero=('strategy={kind: zero, stage: 2}' strategy.bucket=tensor)
idle strategy.all_reduce ring binomial_tree "${zero[@]}"
idle strategy.inside_node reduce_scatter leader "${zero[@]}"
idle strategy.between_nodes ring binomial_tree "${zero[@]}"
idle strategy.tree_piece "4 KiB" "1 MiB" "${zero[@]}"
works strategy.channels 1 4 "${zero[@]}"
works strategy.streams 1 4 "${zero[@]}"
works strategy.in_flight 1 2 "${zero[@]}" strategy.streams=2
works strategy.overlap true false "${zero[@]}"
works strategy.compute_slowdown 1 20 "${zero[@]}"
idle strategy.compute_slowdown 1 2 "${zero[@]}" strategy.overlap=false
idle strategy.compute_slowdown 1 2 "${zero[@]}" strategy.overlap=false strategy.accumulation=2
works strategy.compute_slowdown 1 20 "${zero[@]}" strategy.overlap=false strategy.stage=3
works strategy.accumulation 1 2 "${zero[@]}"
works strategy.stage 1 3 "${zero[@]}"
works strategy.bucket tensor model "${zero[@]:0:1}"

# Devices that share a replica.
mesh=(model=small-mesh 'strategy={kind: spatial, split: 2}' strategy.bucket=tensor)
filters=('strategy={kind: filter_parallel, ways: 2}' strategy.bucket=tensor)
tensor=(model=small-transformer 'strategy={kind: tensor, ways: 2}' strategy.bucket=tensor)
experts=(model=small-transformer 'strategy={kind: mixture_of_experts, ways: 2, experts: 4, every: 1}' strategy.bucket=tensor)
machines=('strategy={kind: model_parallel, machines: 2}' strategy.bucket=tensor)
pipeline=(model=small-transformer 'strategy={kind: pipeline, stages: 2, micro_batches: 2, tensor: 2}' strategy.bucket=tensor)
for sharing in mesh filters tensor experts machines pipeline; do
  declare -n of=$sharing
  works strategy.all_reduce ring binomial_tree "${of[@]}"
  works strategy.channels 1 4 "${of[@]}" strategy.all_reduce=ring platform=dgx-h100-pod workers=32
  idle strategy.channels 1 4 "${of[@]}" strategy.all_reduce=binomial_tree
  idle strategy.inside_node reduce_scatter leader "${of[@]}"
  idle strategy.between_nodes ring binomial_tree "${of[@]}"
  idle strategy.tree_piece "4 KiB" "1 MiB" "${of[@]}" strategy.all_reduce=ring
  works strategy.streams 1 4 "${of[@]}"
  works strategy.in_flight 1 2 "${of[@]}" strategy.streams=2
  works strategy.overlap true false "${of[@]}"
  works strategy.bucket tensor model "${of[@]:0:${#of[@]}-1}"
  works strategy.compute_slowdown 1 2 "${of[@]}"
  works strategy.exchange_overhead "0 s" "1 ms" "${of[@]}"
  works strategy.halo_overlap true false "${of[@]}"
  works strategy.recompute true false "${of[@]}"
  works strategy.step_overhead "0 s" "1 ms" "${of[@]}"
  works strategy.compute_factor 1 2 "${of[@]}"
  works strategy.precision f32 mixed "${of[@]}"
  works strategy.threads 1 2 "${of[@]}"
done
works strategy.accumulation 1 2 "${mesh[@]}"
works strategy.batch_norm local all "${mesh[@]}"
works strategy.capacity_factor 1 2 "${experts[@]}"
works strategy.top 1 2 "${experts[@]}"
# One way: nothing is shared; all ways: nothing is summed.
idle strategy.halo_overlap true false "${tensor[@]}" strategy.ways=1
idle strategy.exchange_overhead "0 s" "1 ms" "${tensor[@]}" strategy.ways=1
idle strategy.halo_overlap true false "${pipeline[@]}" strategy.tensor=1
idle strategy.exchange_overhead "0 s" "1 ms" "${pipeline[@]}" strategy.tensor=1
alone=("${pipeline[@]:0:2}" workers=4)
for key in "all_reduce ring binomial_tree" "channels 1 4" "streams 1 4" "overlap true false" "bucket tensor model" "zero 0 1"; do
  idle strategy.$key "${alone[@]}"
done
idle strategy.compute_slowdown 1 2 "${alone[@]}" strategy.tensor=1 workers=2
works strategy.zero 0 1 "${pipeline[@]}"
idle strategy.all_reduce ring binomial_tree "${pipeline[@]}" strategy.zero=1
works strategy.channels 1 4 "${pipeline[@]}" strategy.zero=1
works strategy.schedule naive gpipe "${pipeline[@]}"
works strategy.micro_batches 2 4 "${pipeline[@]}"
sharded=(model=small-transformer 'strategy={kind: synchronous, mesh: {tensor: 2}, shard: parameters, precision: mixed, accumulation: 2}')
works strategy.shard optimizer parameters "${sharded[@]}"
works strategy.shard_within 2 4 "${sharded[@]}"
works strategy.reshard_after_forward true false "${sharded[@]}"
works strategy.fp32_gradients true false "${sharded[@]}"
idle strategy.fp32_gradients true false "${sharded[@]}" strategy.precision=f32
works strategy.schedule naive gpipe "${sharded[@]}" 'strategy.mesh={tensor: 2, pipeline: 2}'
tokens=(model=gpt2-small platform=dgx-h100-pod 'strategy={kind: synchronous, mesh: {context: 2, tensor: 2}}')
works strategy.sequence_parallel true false "${tokens[@]}"
idle strategy.sequence_parallel true false "${sharded[@]}" 'strategy.mesh={pipeline: 1}'
works strategy.context_exchange ring all_to_all "${tokens[@]}"
idle strategy.context_exchange ring all_to_all "${sharded[@]}"
idle strategy.capacity_factor 1 2 "${sharded[@]}"
positions=(model=small-mesh 'strategy={kind: synchronous, mesh: {spatial: 2}, shard: optimizer, bucket: tensor}')
works strategy.batch_norm local all "${positions[@]}"
works strategy.shard optimizer parameters "${positions[@]}"
works strategy.halo_overlap true false "${positions[@]}"
idle strategy.batch_norm local all "${positions[@]}" 'strategy.mesh={data: 16}'
replaced=(model=small-transformer 'strategy={kind: synchronous, mesh: {expert: 2}, experts: 4, every: 1}')
works strategy.top 1 2 "${replaced[@]}"
works strategy.experts 4 8 "${replaced[@]}"
works strategy.capacity_factor 1 2 "${replaced[@]}"
idle strategy.top 1 2 "${sharded[@]}"

# Blocks of local training.
for kind in model_averaging 'bmuf, block_momentum: 0.9' 'diloco, outer_momentum: 0.9, outer_learning_rate: 0.7'; do
  block=("strategy={kind: $kind, mini_batches: 2}")
  summed=("${block[@]}" strategy.aggregation=all_reduce)
  replicas=("${block[@]}" strategy.workers_per_replica=2 strategy.bucket=tensor)
  one=("${block[@]}" strategy.workers_per_replica=16)
  for aggregation in tree flat; do
    for key in "all_reduce ring binomial_tree" "channels 1 4" "inside_node reduce_scatter leader" "streams 1 4" "in_flight 1 2"; do
      idle strategy.$key "${block[@]}" strategy.aggregation=$aggregation
    done
  done
  works strategy.aggregation tree flat "${block[@]}"
  works strategy.all_reduce ring binomial_tree "${summed[@]}"
  works strategy.channels 1 4 "${summed[@]}" strategy.all_reduce=ring
  idle strategy.all_reduce ring binomial_tree "${summed[@]}" strategy.compression=top_k
  idle strategy.streams 1 4 "${summed[@]}"
  works strategy.density 0.01 0.1 "${summed[@]}" strategy.compression=top_k
  works strategy.compression_factor 1 2 "${summed[@]}" strategy.compression=fp16
  idle strategy.compression_factor 1 2 "${summed[@]}" strategy.compression=none
  idle strategy.bucket tensor model "${block[@]}"
  works strategy.bucket tensor model "${block[@]}" strategy.workers_per_replica=2
  idle strategy.compute_slowdown 1 2 "${block[@]}"
  works strategy.compute_slowdown 1 2 "${replicas[@]}"
  works strategy.streams 1 4 "${replicas[@]}"
  works strategy.all_reduce ring binomial_tree "${replicas[@]}"
  works strategy.aggregation_overhead "0 s" "1 ms" "${block[@]}"
  works strategy.imbalance 0 0.5 "${block[@]}"
  works strategy.mini_batches 2 4 "${block[@]}"
  works strategy.step_overhead "0 s" "1 ms" "${block[@]}"
  works strategy.compute_factor 1 2 "${block[@]}"
  works strategy.precision f32 mixed "${block[@]}" batch_per_worker=64  # memory of few samples fits one segment of the allocator
  idle strategy.aggregation tree flat "${one[@]}"
  idle strategy.aggregation_overhead "0 s" "1 ms" "${one[@]}"
  idle strategy.filter_bandwidth "1 GB/s" "2 GB/s" "${one[@]}"
  idle strategy.imbalance 0 0.5 "${one[@]}"
done
works strategy.filter_bandwidth "1 GB/s" "2 GB/s" 'strategy={kind: model_averaging, mini_batches: 2}'
works strategy.filter_bandwidth "1 GB/s" "2 GB/s" 'strategy={kind: bmuf, mini_batches: 2, block_momentum: 0.9}'
works strategy.load_balancing true false 'strategy={kind: model_averaging, mini_batches: 4}' 'noise={straggler_share: 0.3, straggler_factor: 3}'
idle strategy.load_balancing true false 'strategy={kind: model_averaging, mini_batches: 1}' 'noise={straggler_share: 0.3, straggler_factor: 3}'

# Servers.
for kind in parameter_server elastic_averaging gradient_energy_matching; do
  server=("strategy={kind: $kind}")
  for key in "all_reduce ring binomial_tree" "channels 1 4" "inside_node reduce_scatter leader" "streams 1 4" "in_flight 1 2"; do
    idle strategy.$key "${server[@]}"
    idle strategy.$key "${server[@]}" strategy.machines_per_replica=2 strategy.shards=2
  done
  works strategy.all_reduce ring binomial_tree "${server[@]}" strategy.group_size=4
  idle strategy.streams 1 4 "${server[@]}" strategy.group_size=4
  idle strategy.compute_slowdown 1 2 "${server[@]}"
  idle strategy.compute_slowdown 1 2 "${server[@]}" strategy.group_size=4
  works strategy.compute_slowdown 1 2 "${server[@]}" strategy.machines_per_replica=2 strategy.shards=2
  works strategy.exchange_overhead "0 s" "1 ms" "${server[@]}" strategy.machines_per_replica=2 strategy.shards=2
  idle strategy.exchange_overhead "0 s" "1 ms" "${server[@]}"
  works strategy.apply_arrays 3 30 "${server[@]}"
  idle strategy.apply_arrays 3 30 "${server[@]}" 'strategy.apply_time=10 ms'
  works strategy.apply_arrays 3 30 "${server[@]}" strategy.apply_trace=small-cnn-b64-cpu
  works strategy.apply_time "1 ms" "10 ms" "${server[@]}"
  works strategy.shards 1 2 "${server[@]}"
  works strategy.server own_host own_device "${server[@]}"
  works strategy.messages model array "${server[@]}"
  idle strategy.arrays 10 100 "${server[@]}" strategy.messages=model
  works strategy.arrays 10 100 "${server[@]}" strategy.messages=array
  works strategy.master concurrent serial "${server[@]}"
  works strategy.exchanged "1 MB" "100 MB" "${server[@]}"
  works strategy.validation_time "1 ms" "1 s" "${server[@]}" strategy.validate_every=4
  works strategy.step_overhead "0 s" "1 ms" "${server[@]}"
  works strategy.compute_factor 1 2 "${server[@]}"
  works strategy.precision f32 mixed "${server[@]}"
done
for kind in parameter_server elastic_averaging; do
  works strategy.sub_master_every 1 4 "strategy={kind: $kind, sub_masters: 2}" simulation.steps=8
  idle strategy.sub_master_every 1 4 "strategy={kind: $kind, sub_masters: 0}"
done
works strategy.apply_arrays 3 30 'strategy={kind: parameter_server, mode: synchronous, apply_time: 10 ms}'
works strategy.n_push 1 2 'strategy={kind: parameter_server}' simulation.steps=8
works strategy.n_fetch 1 2 'strategy={kind: parameter_server}' simulation.steps=8
works strategy.overlap true false 'strategy={kind: parameter_server}'
works strategy.message_slowdown 1 20 'strategy={kind: parameter_server, overlap: true}'
idle strategy.message_slowdown 1 20 'strategy={kind: parameter_server}'
array_rounds='mode: synchronous, messages: array, overlap: true'
works strategy.divide_arrays true false "strategy={kind: parameter_server, shards: 3, server: colocated, $array_rounds}"
idle strategy.divide_arrays true false "strategy={kind: parameter_server, $array_rounds}"
idle strategy.divide_arrays true false 'strategy={kind: parameter_server, shards: 3, server: colocated}'
works strategy.backup_workers 0 2 'strategy={kind: parameter_server, mode: synchronous}'
idle strategy.compression_factor 1 2 'strategy={kind: parameter_server, compression: none}'
works strategy.compression_factor 1 2 'strategy={kind: parameter_server, compression: fp16}'
works strategy.period 1 2 'strategy={kind: elastic_averaging}' simulation.steps=8
works strategy.local_arrays 3 30 'strategy={kind: elastic_averaging}'
sandblaster=('strategy={kind: sandblaster, tasks: 32}')
idle strategy.compute_slowdown 1 2 "${sandblaster[@]}"
works strategy.precision f32 mixed "${sandblaster[@]}"
works strategy.precision f32 mixed "${sandblaster[@]}" 'strategy.exchanged=1 MB' batch_per_worker=64
works strategy.history 5 20 "${sandblaster[@]}"
works strategy.send_every 1 2 "${sandblaster[@]}"
idle strategy.arrays 10 100 "${sandblaster[@]}" strategy.messages=model
works strategy.shards 1 2 "${sandblaster[@]}"
search=('strategy={kind: search, folds: 2, training_steps: 5}')
works strategy.folds 1 2 "${search[@]}"
works strategy.folds_at_once 1 2 "${search[@]}"
works strategy.ranks 1 2 "${search[@]}"
works strategy.training_steps 1 2 "${search[@]}"
works strategy.proposal_base "0 s" "1 s" "${search[@]}"
works strategy.proposal_cubic "0 s" "1 s" "${search[@]}"
works strategy.step_overhead "0 s" "1 ms" "${search[@]}"
idle strategy.all_reduce ring binomial_tree "${search[@]}"
works strategy.all_reduce ring binomial_tree "${search[@]}" strategy.ranks=4
idle strategy.compute_slowdown 1 2 "${search[@]}"

# Every strategy of the registry runs its example.
for kind in $("$stepcast" show strategies | awk '/^$/ { exit } { print $1 }'); do
  example=$("$stepcast" show strategies "$kind" | sed -n 's/^example, on \([^:]*\): /\1 /p')
  works strategy.compute_factor 1 2 "model=${example%% *}" "strategy=${example#* }"
done

# What stands beside the strategy.
works simulation.fidelity message coupled workers=24
idle simulation.fidelity message coupled 'strategy={kind: parameter_server}'
idle simulation.fold on off 'strategy={kind: parameter_server}'
idle noise.sigma 0.1 0.2 noise.jitter=none
works noise.sigma 0.1 0.2 noise.jitter=lognormal
idle noise.per worker node noise.jitter=none
works noise.per worker node noise.jitter=lognormal noise.sigma=0.1
idle noise.start_spread "0 s" "1 s" noise.jitter=none
works noise.start_spread "0 s" "1 s" 'strategy={kind: parameter_server}'
idle noise.straggler_factor 2 3 noise.straggler_share=0
works noise.straggler_factor 2 3 noise.straggler_share=0.5

"$tests/ineffective.py" "$stepcast" cases
