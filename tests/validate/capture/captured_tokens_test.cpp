#include "validate/capture/captured_tokens.hpp"

#include <catch2/catch.hpp>
#include <mutex>
#include <string>

#include "../../runtime/planned_parts.hpp"
#include "kernels/onednn/backend.hpp"
#include "runtime/devices/pipeline_stage_chunk.hpp"
#include "validate/capture/captured_exchanges.hpp"

namespace stepcast::captured_tokens_test {
namespace {

constexpr int kSteps = 3, kRanks = 2;
const std::string kStack = R"(
name: stack
source: test
transformer_stack: {layers: 1, width: 16, heads: 4, sequence: 8, vocabulary: 10}
)";

std::vector<float> values_of(const Network& network) {
  const ParameterView& all = network.all_parameters();
  return {all.value, all.value + all.elements};
}

/// Trains a part in captured steps. @returns its parameters; the time that copies added to a trace
std::pair<std::vector<float>, double> train_captured(const PlannedParts& planned, Transport& transport,
                                                     Network& network) {
  PollingPolicy polling;
  InStepTimes times(transport, polling);
  const ModelPartition& partition = planned.plan.partition;
  const RankShard described = rank_shard(planned.model, partition, transport.rank());
  CapturedExchanges exchanges(planned.model, partition, described, transport, times);
  REQUIRE(exchanges.tokens() != nullptr);
  const StepExchange exchange{.within_pass = [&](std::span<float> sums) { times.all_reduce(sums); },
                              .before_pass = [&](Network& part, std::size_t layer,
                                                 Pass pass) { exchanges.before_pass(part, layer, pass); },
                              .before_update =
                                  [&](Network& part) {
                                    const ParameterView& all = part.all_parameters();
                                    if (partition.tokens.context > 1)
                                      times.all_reduce({all.gradient, all.elements});
                                    exchanges.tokens()->before_update(part);
                                  }};
  network.reset();
  for (int step = 0; step < kSteps; ++step) {
    network.step({}, exchange);
    times.accept_pending(true);
  }
  const LinkMeasurements rows = times.take_rows();
  if (transport.is_rank_0()) CHECK_FALSE(rows.empty());
  Trace trace = PlannedParts::even_trace(planned.model);
  const double before = step_time(trace).value;
  exchanges.take_copies(trace);
  return {values_of(network), step_time(trace).value - before};
}

}  // namespace

TEST_CASE("captured steps of ranks that divide tokens exchange what real runs exchange", "[validate]") {
  const std::string options = GENERATE("mesh: {tensor: 2}, sequence_parallel: true",
                                       "mesh: {context: 2}, context_exchange: all_to_all",
                                       "mesh: {context: 2}, context_exchange: all_gather");
  CAPTURE(options);
  const PlannedParts planned(kRanks, kStack, "{kind: synchronous, all_reduce: ring, " + options + "}", 4,
                             kSteps);
  const ModelPartition& partition = planned.plan.partition;
  REQUIRE(partition.simulated_only == "");
  const auto backend = make_onednn_backend();
  std::vector<PipelineStageNetworks> networks(kRanks);
  std::vector<std::vector<float>> by_device(kRanks), in_captured_steps(kRanks);
  run_parts(planned, [&](int rank, std::mutex& building, const auto& run) {
    PipelineStageNetworks& own = networks[rank];
    {
      const std::lock_guard lock(building);
      own = pipeline_stage_networks(*backend, planned.model, partition, {0, 1, rank},
                                    {.batch = 4, .optimizer = {.learning_rate = 0.1}});
    }
    run(*pipeline_stage_device(own, partition, 0));
    by_device[rank] = values_of(own.chunks.front().first());
  });
  run_ranks("memory", kRanks, [&](Transport& transport) {
    const int rank = transport.rank().value;
    const auto [values, copies] = train_captured(planned, transport, networks[rank].chunks.front().first());
    in_captured_steps[rank] = values;
    CHECK(copies > 0);
  });
  for (int rank = 0; rank < kRanks; ++rank) {
    REQUIRE(by_device[rank].size() == in_captured_steps[rank].size());
    for (std::size_t i = 0; i < by_device[rank].size(); ++i)
      CHECK(in_captured_steps[rank][i] == Approx(by_device[rank][i]).margin(1e-6));
  }
}

}  // namespace stepcast::captured_tokens_test
