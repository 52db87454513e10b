#include "validate/capture/captured_exchanges.hpp"

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <mutex>
#include <set>
#include <tuple>

#include "../../runtime/planned_parts.hpp"
#include "kernels/onednn/backend.hpp"

namespace stepcast::captured_exchanges_test {
namespace {

constexpr int kSteps = 3;
const std::string kMaps = R"(
name: maps
source: test
input: [3, 12, 16]
layers:
  - {name: conv1, kind: convolution, filters: 4, kernel: 3, pad: 1}
  - {name: relu1, kind: relu}
  - {name: conv2, kind: convolution, filters: 5, kernel: 5, pad: 2}
  - {name: pool, kind: max_pool, kernel: 3, stride: 2, pad: 1}
  - {name: conv3, kind: convolution, filters: 2, kernel: 3, pad: 1}
  - {name: loss, kind: mean_squared_error}
)";

const std::string kClasses = R"(
name: classes
source: test
input: [3, 12, 16]
layers:
  - {name: conv1, kind: convolution, filters: 4, kernel: 3, pad: 1}
  - {name: relu1, kind: relu}
  - {name: flatten, kind: reshape, shape: [768]}
  - {name: fc, kind: dense, units: 5}
  - {name: loss, kind: softmax_cross_entropy}
)";

struct ShardedNetwork {
  std::string text;
  std::set<std::size_t> forward_halos, backward_halos;  ///< nothing reads the input's error signal
  bool reshards;
};

// The maps are gathered before the second layer and before fc2; what fc1 reads goes back to weights alone.
const std::string kUnits = R"(
name: units
source: test
input: [12]
layers:
  - {name: fc1, kind: dense, units: 8}
  - {name: fc2, kind: dense, units: 6}
  - {name: relu, kind: relu}
  - {name: fc3, kind: dense, units: 4}
  - {name: loss, kind: softmax_cross_entropy}
)";

const std::string kLocal = R"(
name: local
source: test
input: [3, 12, 16]
layers:
  - {name: local1, kind: locally_connected, filters: 4, kernel: 3}
  - {name: relu1, kind: relu}
  - {name: flatten, kind: reshape, shape: [560]}
  - {name: fc1, kind: dense, units: 8}
  - {name: relu2, kind: relu}
  - {name: fc2, kind: dense, units: 4}
  - {name: loss, kind: softmax_cross_entropy}
)";

/// A parameter of the first layer after some steps, the rows of measured links on rank 0, and the time that
/// copies added to a trace.
struct Trained {
  double by_device = 0, in_captured_steps = 0;
  LinkMeasurements rows = {};
  double copies = 0;
};

void train_captured(const PlannedParts& planned, const ShardedNetwork& network, std::vector<Trained>& all,
                    Transport& transport, Network& shard) {
  PollingPolicy polling;
  InStepTimes times(transport, polling);
  const ModelPartition& partition = planned.plan.partition;
  const RankShard described = rank_shard(planned.model, partition, transport.rank());
  CapturedExchanges exchanges(planned.model, partition, described, transport, times);
  shard.reset();
  std::set<std::size_t> forward, backward;
  const StepExchange exchange{.before_pass =
                                  [&](Network& part, std::size_t layer, Pass pass) {
                                    exchanges.before_pass(part, layer, pass);
                                    if (pass != Pass::backward_weights && part.kernel(layer).has_halo(pass))
                                      (pass == Pass::forward ? forward : backward).insert(layer);
                                  },
                              .before_update =
                                  [&](Network& part) {
                                    if (described.tensor) return;  // no other rank has these parameters
                                    const ParameterView& parameters = part.all_parameters();
                                    times.all_reduce({parameters.gradient, parameters.elements});
                                  }};
  for (int step = 0; step < kSteps; ++step) {
    shard.step({}, exchange);
    times.accept_pending(step > 0);
  }
  CHECK(forward == network.forward_halos);
  CHECK(backward == network.backward_halos);
  Trained& own = all[transport.rank().index()];
  own.in_captured_steps = shard.all_parameters().value[0];
  own.rows = times.take_rows();
  CHECK(times.take_rows().empty());
  Trace trace = PlannedParts::even_trace(planned.model);
  const double before = step_time(trace).value;
  exchanges.take_copies(trace);
  own.copies = step_time(trace).value - before;
  exchanges.take_copies(trace);  // adds nothing a second time
  CHECK(step_time(trace).value == before + own.copies);
}

}  // namespace

TEST_CASE("captured steps of spatial shards exchange what real runs exchange", "[validate]") {
  const ShardedNetwork network = GENERATE(ShardedNetwork{kMaps, {0, 2, 3, 4}, {2, 3, 4}, false},
                                          ShardedNetwork{kClasses, {0}, {}, true});
  const char* const split = GENERATE("2", "[1, 2]", "[2, 2]");
  CAPTURE(split);
  const int ranks = std::string(split) == "[2, 2]" ? 4 : 2;
  const PlannedParts planned(
      ranks, network.text,
      "{kind: spatial, halo_overlap: false, bucket: model, split: " + std::string(split) + "}", 2 * ranks,
      kSteps);
  REQUIRE(planned.plan.partition.simulated_only == "");
  const auto backend = make_onednn_backend();
  std::vector<SpatialNetwork> shards(ranks);
  std::vector<Trained> all(ranks);
  run_parts(planned, [&](int rank, std::mutex& building, const auto& run) {
    SpatialNetwork& shard = shards[rank];
    {
      const std::lock_guard lock(building);
      shard = spatial_network(*backend, planned.model, planned.plan.partition, rank,
                              {.optimizer = {.learning_rate = 0.1}});
    }
    run(*spatial_device(shard, planned.model, planned.plan.partition, rank));
    all[rank].by_device = shard.network->all_parameters().value[0];
  });
  run_ranks("memory", ranks, [&](Transport& transport) {
    train_captured(planned, network, all, transport, *shards[transport.rank().index()].network);
  });
  for (const Trained& one : all) {
    CHECK(one.in_captured_steps == Approx(one.by_device).epsilon(1e-5));
    CHECK(one.in_captured_steps == all.front().in_captured_steps);
    CHECK((one.copies > 0) == network.reshards);
  }
  REQUIRE_FALSE(all.front().rows.empty());
  for (const LinkMeasurement& one : all.front().rows) {
    CHECK(one.in_step);
    CHECK(one.seconds > 0);
    CHECK(one.repeats >= kSteps - 1);  // the first step was not accepted
  }
}

TEST_CASE("captured steps of ranks that divide layers gather what real runs gather", "[validate]") {
  const auto [text, strategy, halos] = GENERATE(std::tuple(kUnits, "filter_parallel, ways: 2", false),
                                                std::tuple(kUnits, "model_parallel, machines: 2", false),
                                                std::tuple(kLocal, "model_parallel, machines: 2", true));
  CAPTURE(strategy);
  constexpr int kRanks = 2;
  const PlannedParts planned(kRanks, text, fmt::format("{{kind: {}, halo_overlap: false}}", strategy), 4,
                             kSteps);
  REQUIRE(planned.plan.partition.simulated_only == "");
  const auto backend = make_onednn_backend();
  std::vector<TensorParallelNetwork> shards(kRanks);
  std::vector<Trained> all(kRanks);
  DeviceLearning learning;
  learning.rate.base = 0.1;
  run_parts(planned, [&](int rank, std::mutex& building, const auto& run) {
    TensorParallelNetwork& shard = shards[static_cast<std::size_t>(rank)];
    {
      const std::lock_guard lock(building);
      shard = tensor_parallel_network(*backend, planned.model, planned.plan.partition, rank,
                                      {.optimizer = {.learning_rate = 0.1}});
    }
    run(*tensor_parallel_device(shard, learning));
    all[static_cast<std::size_t>(rank)].by_device = shard.network->all_parameters().value[0];
    shard.network->set_rate(0.1, 1);
  });
  const ShardedNetwork network{text, halos ? std::set<std::size_t>{0} : std::set<std::size_t>{}, {}, true};
  run_ranks("memory", kRanks, [&](Transport& transport) {
    train_captured(planned, network, all, transport, *shards[transport.rank().index()].network);
  });
  for (const Trained& one : all) {
    CHECK(one.in_captured_steps == Approx(one.by_device).epsilon(1e-5));
    CHECK(one.copies > 0);
  }
  CHECK_FALSE(all.front().rows.empty());
}

}  // namespace stepcast::captured_exchanges_test
