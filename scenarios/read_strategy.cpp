#include "scenarios/read_strategy.hpp"

namespace stepcast {
namespace {

void read_all_reduce(const YamlMap& map, AllReduceChoice& choice) {
  if (const auto value = map.maybe("all_reduce"))
    choice.algorithm = static_cast<Algorithm>(value->one_of(algorithm_names()));
  if (const auto value = map.maybe("channels")) choice.channels = static_cast<int>(value->integer(1, 64));
  if (const auto value = map.maybe("inside_node"))
    choice.local = static_cast<LocalPart>(value->one_of(local_part_names()));
  if (const auto value = map.maybe("between_nodes")) {
    choice.network = static_cast<NetworkPart>(value->one_of(network_part_names()));
  }
  if (const auto value = map.maybe("tree_piece")) choice.tree_piece = value->bytes(1);
}

void read_communication(const YamlMap& map, Communication& communication) {
  read_all_reduce(map, communication.all_reduce);
  if (const auto value = map.maybe("streams"))
    communication.streams = static_cast<int>(value->integer(1, 1024));
  communication.in_flight = communication.streams;
  if (const auto value = map.maybe("in_flight"))
    communication.in_flight = static_cast<int>(value->integer(1, 1024));
  if (const auto value = map.maybe("compute_slowdown"))
    communication.compute_slowdown = value->number(1, 100);
}

Bytes read_bucket(const YamlValue& value) {
  if (value.node().text == "tensor") return {0};
  if (value.node().text == "model") return {1e300};
  return value.bytes(1);
}

}  // namespace

StrategyOptions read_strategy(const YamlValue& value) {
  value.any_map().at("kind", "synchronous").one_of({"synchronous"});
  const YamlMap map = value.map({"kind", "all_reduce", "channels", "inside_node", "between_nodes",
                                 "tree_piece", "streams", "in_flight", "compute_slowdown", "bucket",
                                 "overlap", "accumulation", "synchronized_batch_norm", "recompute",
                                 "host_synchronization", "step_overhead", "compute_factor", "precision"});
  StrategyOptions options;
  read_communication(map, options.communication);
  Synchronous& run = options.synchronous;
  if (const auto bucket = map.maybe("bucket")) options.bucket = read_bucket(*bucket);
  if (const auto overlap = map.maybe("overlap")) run.overlap = overlap->boolean();
  if (const auto times = map.maybe("accumulation"))
    run.micro_batches = static_cast<int>(times->integer(1, 1'000'000));
  if (const auto sync = map.maybe("synchronized_batch_norm")) run.synchronized_batch_norm = sync->boolean();
  if (const auto again = map.maybe("recompute")) run.recompute = again->boolean();
  if (const auto wait = map.maybe("host_synchronization")) run.host_synchronization = wait->seconds();
  if (const auto overhead = map.maybe("step_overhead")) run.step_overhead = overhead->seconds();
  if (const auto factor = map.maybe("compute_factor")) options.compute_factor = factor->number(1e-6, 1e6);
  if (const auto precision = map.maybe("precision"))
    options.half_gradients = precision->one_of({"f32", "mixed"}) == 1;
  return options;
}

Noise read_noise(const YamlValue& value) {
  const YamlMap map = value.map({"jitter", "sigma", "per", "straggler_share", "straggler_factor"});
  Noise noise;
  if (const auto jitter = map.maybe("jitter"))
    noise.jitter = static_cast<Noise::Jitter>(jitter->one_of(jitter_names()));
  if (const auto sigma = map.maybe("sigma")) noise.sigma = sigma->number(0, 10);
  if (const auto per = map.maybe("per")) noise.per_node = per->one_of({"worker", "node"}) == 1;
  if (const auto share = map.maybe("straggler_share")) noise.straggler_share = share->number(0, 1);
  if (const auto factor = map.maybe("straggler_factor")) noise.straggler_factor = factor->number(1, 1000);
  return noise;
}

}  // namespace stepcast
