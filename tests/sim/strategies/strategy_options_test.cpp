#include <catch2/catch.hpp>

#include "tests/sim/planned_run.hpp"

namespace stepcast::strategy_options_test {

namespace {

const std::string kDense =
    "{name: dense, source: s, input: [8], layers: [{name: a, kind: dense, units: 8}, {name: l, kind: "
    "mean_squared_error}]}";
const std::string kMaps =
    "{name: maps, source: s, input: [4, 16, 16], layers: [{name: a, kind: convolution, filters: 8, kernel: "
    "3, "
    "pad: 1}, {name: l, kind: mean_squared_error}]}";
const std::string kBlocks =
    "{name: blocks, source: s, transformer_stack: {layers: 2, width: 64, heads: 4, sequence: 32, vocabulary: "
    "100}}";

struct Bad {
  std::string key, value, message;  ///< message: after the key
};

/// Checks that each value, given last in a strategy on four workers, is refused with its own place.
void refused(const std::string& model, const std::string& start, const std::vector<Bad>& all) {
  for (const Bad& bad : all) {
    const std::string text = "{" + start + ", " + bad.key + ": " + bad.value + "}";
    CAPTURE(text);
    const std::string column = std::to_string(text.size() - bad.value.size());
    CHECK_THROWS_WITH(PlannedRun(4, model, text),
                      "strategy.yaml:1:" + column + ": strategy." + bad.key + ": " + bad.message);
  }
}

/// "expected an integer from 1 to N, got ..."
std::string integer(const std::string& range, const std::string& got) {
  return "expected an integer from " + range + ", got \"" + got + "\"";
}
std::string number(const std::string& range, const std::string& got) {
  return "expected a number from " + range + ", got \"" + got + "\"";
}
const std::string kTime = "expected a value >= 0 with its unit, such as \"1.5 us\", got ";
const std::string kSize = "expected a value >= 1 with its unit, such as \"4 MiB\", got ";
const std::string kRate = "expected a value > 0 with its unit, such as \"25 GB/s\", got ";

}  // namespace

TEST_CASE("bad options that all strategies know are refused with place and reason", "[sim][errors]") {
  refused(kDense, "kind: synchronous",
          {{"compute_factor", "-1", number("1e-06 to 1000000", "-1")},
           {"step_overhead", "-1 ms", kTime + "\"-1 ms\""},
           {"compute_slowdown", "0.5", number("1 to 100", "0.5")},
           {"threads", "0", integer("1 to 4096", "0")},
           {"serial_share", "2", number("0 to 1", "2")},
           {"precision", "f61", "expected one of f32, mixed, got \"f61\"; did you mean \"f32\"?"}});
}

TEST_CASE("bad options of synchronous training are refused with place and reason", "[sim][errors]") {
  refused(kDense, "kind: synchronous",
          {{"bucket", "0 B", kSize + "\"0 B\""},
           {"accumulation", "0", integer("1 to 1000000", "0")},
           {"streams", "-2", integer("1 to 1024", "-2")},
           {"in_flight", "0", integer("1 to 1024", "0")},
           {"channels", "65", integer("1 to 64", "65")},
           {"tree_piece", "0 B", kSize + "\"0 B\""},
           {"overlap", "yes", "expected true or false, got \"yes\"; did you mean true?"},
           {"host_synchronization", "-1 us", kTime + "\"-1 us\""},
           {"host_swap", "0 GB/s", kRate + "\"0 GB/s\""},
           {"compression_factor", "-1", number("0 to 1000000", "-1")},
           {"inside_node", "leadr",
            "expected one of reduce_scatter, leader, flat, got \"leadr\"; did you mean \"leader\"?"}});
  refused(kDense, "kind: synchronous, recompute: true",
          {{"host_swap", "1 GB/s", "not valid with recompute: true; give only one of them"}});
  refused(kDense, "kind: synchronous, compression: top_k", {{"density", "0", number("1e-09 to 1", "0")}});
}

TEST_CASE("strategies that compress nothing say why, and take none", "[sim][errors]") {
  const Bad whole{"compression", "fp16", "not supported where devices share a network or its state"};
  refused(kMaps, "kind: spatial, split: 2", {whole});
  refused(kDense, "kind: filter_parallel, ways: 2", {whole});
  refused(kDense, "kind: model_parallel, machines: 2", {whole});
  refused(kDense, "kind: pipeline, stages: 2", {whole});
  refused(kBlocks, "kind: tensor, ways: 2", {whole});
  refused(kBlocks, "kind: mixture_of_experts, ways: 2, experts: 4", {whole});
  refused(kDense, "kind: zero, stage: 1", {whole});
  refused(kDense, "kind: elastic_averaging, server: colocated",
          {{"compression", "top_k",
            "not supported with kind: elastic_averaging, which sends parameters, not gradients"}});
  refused(
      kDense, "kind: gradient_energy_matching, server: colocated",
      {{"compression", "fp16",
        "not supported with kind: gradient_energy_matching, which has no error feedback between updates"}});
  refused(
      kDense, "kind: sandblaster, server: colocated, tasks: 8",
      {{"compression", "fp16", "not supported with kind: sandblaster, whose history needs whole gradients"}});
  refused(kDense, "kind: model_averaging, mini_batches: 4",
          {{"compression", "fp16",
            "only valid with aggregation: all_reduce; through a master, an update would be restored and "
            "quantized "
            "again at every hop"}});
  CHECK_NOTHROW(PlannedRun(4, kDense, "{kind: zero, stage: 1, compression: none}"));
}

TEST_CASE("bad options of servers are refused with place and reason", "[sim][errors]") {
  refused(kDense, "kind: parameter_server, server: colocated",
          {{"shards", "0", integer("1 to 100000", "0")},
           {"shards", "5", "5 shards on the hosts of 4 workers; give at most one for each worker"},
           {"n_push", "-1", integer("1 to 1000000", "-1")},
           {"n_fetch", "0", integer("1 to 1000000", "0")},
           {"apply_time", "-1 ms", kTime + "\"-1 ms\""},
           {"apply_arrays", "-5", number("0 to 1000", "-5")},
           {"exchanged", "0 MB", kSize + "\"0 MB\""},
           {"arrays", "0", integer("1 to 1000000", "0")},
           {"arrays", "10", "only valid with messages"},
           {"sub_masters", "-1", integer("0 to 1000000", "-1")},
           {"sub_master_every", "0", integer("1 to 1000000", "0")},
           {"group_size", "3", "4 devices cannot form workers of 3; give a divisor"},
           {"machines_per_replica", "3", "4 devices cannot form workers of 3; give a divisor"},
           {"sub_master_every", "4", "only valid with sub_masters"},
           {"validation_time", "1 s", "only valid with validate_every"},
           {"compression_factor", "2", "only valid with compression"},
           {"serial_share", "0.1", "only valid with threads"},
           {"staleness_bound", "3", "only valid with mode: bounded_staleness"},
           {"mode", "lazy", "expected one of asynchronous, synchronous, bounded_staleness, got \"lazy\""},
           {"master", "parallel", "expected one of concurrent, serial, got \"parallel\""},
           {"messages", "layer", "expected one of model, array, got \"layer\""}});
  refused(kDense, "kind: parameter_server, server: colocated, apply_time: 1 ms",
          {{"apply_trace", "any", "give either apply_time or apply_trace"},
           {"apply_arrays", "0", "expected more than 0, because apply_time is given"}});
  CHECK_THROWS_WITH(PlannedRun(4, kDense, "{kind: parameter_server, server: colocated, validate_every: 10}"),
                    "strategy.yaml:1:1: strategy.validation_time: missing (expected seconds of a validation "
                    "on the master)");
  CHECK_THROWS_WITH(
      PlannedRun(4, kDense, "{kind: parameter_server, server: colocated, mode: bounded_staleness}"),
      "strategy.yaml:1:1: strategy.staleness_bound: missing (expected updates that a worker may be ahead of "
      "the slowest)");
}

TEST_CASE("bad options of elastic averaging and energy matching are refused with place and reason",
          "[sim][errors]") {
  refused(kDense, "kind: elastic_averaging, server: colocated",
          {{"period", "-4", integer("1 to 1000000", "-4")},
           {"elastic_force", "1.5", number("0 to 1", "1.5")},
           {"elastic_force", "-1", number("0 to 1", "-1")},
           {"local_arrays", "-1", number("0 to 1000", "-1")}});
  refused(kDense, "kind: gradient_energy_matching, server: colocated",
          {{"period", "0", integer("1 to 1000000", "0")},
           {"sub_masters", "2", "not supported with kind: gradient_energy_matching"}});
}

TEST_CASE("bad options of Sandblaster are refused with place and reason", "[sim][errors]") {
  refused(kDense, "kind: sandblaster, server: colocated, tasks: 8",
          {{"send_every", "0", integer("1 to 1000000000", "0")},
           {"history", "-10", integer("1 to 1000000000", "-10")},
           {"shards", "9", "9 shards on the hosts of 4 workers; give at most one for each worker"}});
  refused(kDense, "kind: sandblaster, server: colocated", {{"tasks", "0", integer("1 to 10000000", "0")}});
}

TEST_CASE("bad options of blocks are refused with place and reason", "[sim][errors]") {
  refused(kDense, "kind: bmuf, block_momentum: 0.9, mini_batches: 4",
          {{"aggregation_overhead", "-1 s", kTime + "\"-1 s\""},
           {"imbalance", "-0.1", number("0 to 100", "-0.1")},
           {"filter_bandwidth", "0 GB/s", kRate + "\"0 GB/s\""},
           {"block_learning_rate", "0", number("1e-06 to 1000000", "0")},
           {"form", "newton", "expected one of classical, nesterov, got \"newton\""},
           {"workers_per_replica", "3", "4 workers cannot form replicas of 3; give a divisor"}});
  CHECK_THROWS_WITH(
      PlannedRun(4, kDense,
                 "{kind: bmuf, block_momentum: 0.9, mini_batches: 4, validation: {samples: 5, every: 0}}"),
      "strategy.yaml:1:84: strategy.validation.every: expected a number >= 1, got \"0\"");
  refused(kDense, "kind: bmuf, block_momentum: 0.9, mini_batches: 4, workers_per_replica: 2",
          {{"load_balancing", "true", "not supported with workers_per_replica above 1"}});
  refused(kDense, "kind: diloco, outer_learning_rate: 0.7, mini_batches: 4",
          {{"outer_momentum", "-0.1", number("0 to 1", "-0.1")}});
  refused(kDense, "kind: diloco, outer_momentum: 0.9, mini_batches: 4",
          {{"outer_learning_rate", "0", number("1e-06 to 1000000", "0")}});
}

TEST_CASE("bad options of shared layers are refused with place and reason", "[sim][errors]") {
  refused(kMaps, "kind: spatial",
          {{"split", "0", integer("1 to 100000", "0")},
           {"split", "32", "4 workers cannot form groups of 32; give a divisor"}});
  CHECK_THROWS_WITH(PlannedRun(4, kMaps, "{kind: spatial, split: [0, 4]}"),
                    "strategy.yaml:1:25: strategy.split[0]: expected an integer from 1 to 100000, got \"0\"");
  refused(kMaps, "kind: spatial, split: 2",
          {{"batch_norm", "globl", "expected one of group, local, all, got \"globl\""},
           {"exchange_overhead", "-1 us", kTime + "\"-1 us\""},
           {"halo_overlap", "1", "expected true or false, got \"1\""}});
  refused(kMaps, "kind: filter_parallel", {{"ways", "0", integer("1 to 100000", "0")}});
  refused(kBlocks, "kind: tensor", {{"ways", "-2", integer("1 to 100000", "-2")}});
  refused(kBlocks, "kind: mixture_of_experts, ways: 2, experts: 4",
          {{"top", "0", integer("1 to 1000", "0")},
           {"capacity_factor", "0.5", number("1 to 100", "0.5")},
           {"every", "0", integer("1 to 10000", "0")}});
  CHECK_THROWS_WITH(PlannedRun(2, kBlocks, "{kind: mixture_of_experts, ways: 2, experts: 4, top: 5}"),
                    "strategy.yaml:1:46: strategy.experts: a token cannot go to 5 of 4 experts");
  refused(kDense, "kind: model_parallel", {{"machines", "0", integer("1 to 100000", "0")}});
  refused(kDense, "kind: zero", {{"stage", "0", integer("1 to 3", "0")}});
  CHECK_THROWS_WITH(PlannedRun(4, kDense, "{kind: zero}"),
                    "strategy.yaml:1:1: strategy.stage: missing (expected 1, 2 or 3)");
}

}  // namespace stepcast::strategy_options_test
