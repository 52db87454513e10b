#include <fmt/format.h>

#include <algorithm>
#include <atomic>

#include "hand_worker.hpp"
#include "kernels/onednn/backend.hpp"
#include "runtime/collectives/schedule_executor.hpp"
#include "strategies/arithmetic/model_updates.hpp"
#include "strategies/collectives/schedule.hpp"

namespace stepcast::real_strategies_test {
namespace {

/// Mean of the replicas' parameters, summed in double precision and rounded once.
Floats mean_of(const std::vector<Floats>& replicas) {
  Floats mean(replicas.front().size());
  for (std::size_t i = 0; i < mean.size(); ++i) {
    double sum = 0;
    for (const Floats& replica : replicas) sum += replica[i];
    mean[i] = sum / replicas.size();
  }
  return mean;
}

}  // namespace

TEST_CASE("one worker of any strategy is plain SGD, to the bit", "[validate][training]") {
  struct Case {
    const char* strategy;
    int servers, mini_batches;  ///< mini_batches: of a step
  };
  const auto one = GENERATE(values<Case>({
      {"{kind: synchronous}", 0, 1},
      {"{kind: zero, stage: 1}", 0, 1},
      {"{kind: zero, stage: 3}", 0, 1},
      {"{kind: model_averaging, mini_batches: 3}", 0, 3},
      {"{kind: bmuf, mini_batches: 3, block_momentum: 0.9}", 0, 3},
      {"{kind: diloco, mini_batches: 2, outer_momentum: 0.9, outer_learning_rate: 0.7}", 0, 2},
      {"{kind: parameter_server, server: own_device}", 1, 1},
      {"{kind: parameter_server, server: own_device, master: serial}", 1, 1},
      {"{kind: parameter_server, server: own_device, shards: 3}", 3, 1},
      {"{kind: parameter_server, server: own_device, mode: synchronous}", 1, 1},
      {"{kind: parameter_server, server: own_device, mode: bounded_staleness, staleness_bound: 1}", 1, 1},
      {"{kind: elastic_averaging, server: own_device, elastic_force: 0}", 1, 1},
  }));
  CAPTURE(one.strategy);
  const int steps = 4;
  const auto results = trained(plan_of(one.strategy, 1, one.servers, steps), kMomentum);
  CHECK(results[0] == trained_alone(kBatch, steps * one.mini_batches, kMomentum));
}

TEST_CASE("a synchronous parameter server equals one rank with N times the batch, to rounding",
          "[validate][training]") {
  const int workers = GENERATE(2, 3);
  const int shards = GENERATE(1, 2);
  CAPTURE(workers, shards);
  const std::string strategy =
      fmt::format("{{kind: parameter_server, server: own_device, mode: synchronous, shards: {}}}", shards);
  const auto results = trained(plan_of(strategy, workers, shards, 5), kMomentum);
  const auto alone = trained_alone(workers * kBatch, 5, kMomentum);
  for (int worker = 0; worker < workers; ++worker) check_equal(results[worker], alone, 2e-6);
}

TEST_CASE("block momentum 0 and block learning rate 1 are model averaging, to the bit",
          "[validate][training]") {
  const int workers = GENERATE(2, 3);
  const std::string aggregation = GENERATE(as<std::string>{}, "tree", "flat", "all_reduce");
  const std::string form = GENERATE(as<std::string>{}, "classical", "nesterov");
  CAPTURE(workers, aggregation, form);
  const auto average =
      trained(plan_of(fmt::format("{{kind: model_averaging, mini_batches: 3, aggregation: {}}}", aggregation),
                      workers, 0, 4),
              kMomentum);
  const auto filtered = trained(
      plan_of(fmt::format("{{kind: bmuf, mini_batches: 3, aggregation: {}, block_momentum: 0, form: {}}}",
                          aggregation, form),
              workers, 0, 4),
      kMomentum);
  CHECK(filtered == average);
  for (const Floats& other : average) CHECK(other == average[0]);
  CHECK(average[0] != trained_alone(kBatch, 12, kMomentum));
}

TEST_CASE("block training follows its formula, worked out by hand", "[validate][training]") {
  const int workers = GENERATE(2, 4);
  const auto form = GENERATE(BlockFilter::Form::classical, BlockFilter::Form::nesterov);
  const bool by_workers = GENERATE(false, true);
  const BlockFilter filter{by_workers ? 1 - 0.8 / (1.1 * workers) : 0.6, 0.8, form};
  CAPTURE(workers, ordinal(form), by_workers);
  std::vector<std::unique_ptr<HandWorker>> hands;
  for (int i = 0; i < workers; ++i) hands.push_back(std::make_unique<HandWorker>(i, workers, kMomentum));
  Floats global = hands[0]->parameters(), model = global, change(global.size());
  for (int block = 0; block < 3; ++block) {
    std::vector<Floats> own;
    for (const auto& hand : hands) {
      for (int i = 0; i < 2; ++i) hand->step();
      own.push_back(hand->parameters());
    }
    const BlockFilter first{0, 0.8, form};
    filter_block_update(by_workers && block == 0 ? first : filter, mean_of(own), {model, change}, global);
    for (const auto& hand : hands) hand->set(global);
  }
  const std::string strategy = fmt::format(
      "{{kind: bmuf, mini_batches: 2, aggregation: flat, block_momentum: {}, block_learning_rate: 0.8, "
      "form: {}}}",
      by_workers ? "by_workers, block_momentum_after: 1" : "0.6", block_form_words().of(form));
  for (const Floats& own : trained(plan_of(strategy, workers, 0, 3), kMomentum))
    check_equal(own, global, 2e-6);
}

TEST_CASE("replicas of two workers each average as replicas of one with twice the batch",
          "[validate][training]") {
  const std::string aggregation = GENERATE(as<std::string>{}, "tree", "all_reduce");
  CAPTURE(aggregation);
  const auto plan = plan_of(
      fmt::format(
          "{{kind: bmuf, mini_batches: 2, workers_per_replica: 2, block_momentum: 0.5, aggregation: {}, "
          "all_reduce: ring}}",
          aggregation),
      4, 0, 3);
  const auto results = trained(plan, kPlain);
  for (const Floats& own : results) check_equal(own, results[0], 0);
  std::vector<Floats> pairs(2);
  const BlockFilter filter{0.5, 1, BlockFilter::Form::classical};
  const auto backend = make_onednn_backend();
  Network network(*backend, small_model(), {.batch = 2 * kBatch, .optimizer = kPlain});
  Floats global = parameters_of(network), model = global, change(global.size());
  for (std::int64_t block = 0; block < 3; ++block) {
    for (std::int64_t pair = 0; pair < 2; ++pair) {
      set_parameters(network, global);
      for (std::int64_t i = 2 * block; i < 2 * block + 2; ++i) {
        fill_data(network, (i * 4 + 2 * pair) * kBatch);
        network.step();
      }
      pairs[pair] = parameters_of(network);
    }
    filter_block_update(filter, mean_of(pairs), {model, change}, global);
  }
  check_equal(results[0], global, 2e-6);
}

TEST_CASE("a search trains all folds of its points, and ranks of a training sum their gradients",
          "[validate][training]") {
  const std::string search = "{kind: search, folds: 3, training_steps: 2, ";
  const auto one = trained(plan_of(search + "proposal_base: 1 ms}", 1, 1, 2), kMomentum);
  CHECK(one[0] == trained_alone(kBatch, 12, kMomentum));

  const auto pair = trained(plan_of(search + "ranks: 2, all_reduce: ring}", 2, 1, 2), kMomentum);
  const Floats both = trained_alone(2 * kBatch, 12, kMomentum);
  for (const std::size_t rank : {0u, 1u}) check_equal(pair[rank], both, 2e-6);

  // The first slot has folds 0 and 2 of each point, the second has fold 1.
  const auto slots = trained(plan_of(search + "folds_at_once: 2}", 2, 1, 2), kMomentum);
  for (const int rank : {0, 1}) {
    HandWorker hand(rank, 2, kMomentum);
    for (int step = 0; step < (rank == 0 ? 8 : 4); ++step) hand.step();
    CHECK(slots[rank] == hand.parameters());
  }
}

TEST_CASE("all ranks of a group begin a point of a search together, when its first rank has got it",
          "[validate][training]") {
  std::vector<std::vector<double>> ends(3);
  TrainedOptions options;
  options.on_step_end = [&ends](RankId rank, double seconds) { ends[rank.index()].push_back(seconds); };
  const char* search = "{kind: search, folds: 2, folds_at_once: 2, training_steps: 1, proposal_base: 30 ms}";
  trained(plan_of(search, 2, 1, 2), kMomentum, options);
  for (const std::size_t rank : {0u, 1u}) {
    CAPTURE(rank);
    REQUIRE(ends[rank].size() == 2);
    CHECK(ends[rank][0] >= 0.03);
    CHECK(ends[rank][1] >= 0.06);
  }
}

TEST_CASE("N ranks of synchronous SGD equal one rank with N times the batch, to rounding",
          "[validate][training]") {
  const int ranks = GENERATE(1, 2, 3, 4);
  const std::string overlap = GENERATE(as<std::string>{}, "true", "false");
  const std::string bucket = GENERATE(as<std::string>{}, "tensor", "100 B", "model");
  CAPTURE(ranks, overlap, bucket);
  const auto plan = plan_of(
      fmt::format("{{kind: synchronous, all_reduce: ring, overlap: {}, bucket: {}}}", overlap, bucket), ranks,
      0, 5);
  const auto alone = trained_alone(ranks * kBatch, 5, kMomentum);
  for (const auto& own : trained(plan, kMomentum)) check_equal(own, alone, 2e-6);
}

TEST_CASE("the optimizers take the mean over all ranks' gradients", "[validate][training]") {
  const auto kind = GENERATE(Optimizer::Kind::adagrad, Optimizer::Kind::rmsprop, Optimizer::Kind::adam);
  const Optimizer optimizer{.kind = kind, .learning_rate = 0.01};
  const auto plan = plan_of("{kind: synchronous, all_reduce: ring}", 2, 0, 5);
  const auto alone = trained_alone(2 * kBatch, 5, optimizer);
  // These optimizers divide by the gradient's own size, so that the rounding of a small gradient moves a
  // parameter by a share of the learning rate: with oneDNN's AVX2 kernels by 2.7e-5, with AVX-512 by less
  // than 2e-5.
  for (const auto& own : trained(plan, optimizer)) check_equal(own, alone, 1e-2 * optimizer.learning_rate);
}

TEST_CASE("gradients accumulated over k mini-batches equal a k times larger batch, to rounding",
          "[validate][training]") {
  const int ranks = GENERATE(1, 2);
  const int times = GENERATE(2, 3);
  const std::string bucket = GENERATE(as<std::string>{}, "tensor", "model");
  CAPTURE(ranks, times, bucket);
  const auto plan = plan_of(
      fmt::format("{{kind: synchronous, all_reduce: ring, accumulation: {}, bucket: {}}}", times, bucket),
      ranks, 0, 5, times * kBatch);
  const auto alone = trained_alone(times * ranks * kBatch, 5, kMomentum);
  for (const auto& own : trained(plan, kMomentum)) check_equal(own, alone, 2e-6);
}

TEST_CASE("computing activations again changes no bit", "[validate][training]") {
  const auto plain =
      trained(plan_of("{kind: synchronous, all_reduce: ring, bucket: tensor}", 2, 0, 4), kMomentum);
  const auto again = trained(
      plan_of("{kind: synchronous, all_reduce: ring, bucket: tensor, recompute: true}", 2, 0, 4), kMomentum);
  CHECK(plain == again);
}

TEST_CASE("sharded optimizer state changes no bit of synchronous SGD", "[validate][training]") {
  const int ranks = GENERATE(2, 3);
  const int stage = GENERATE(1, 2, 3);
  const std::string bucket = GENERATE(as<std::string>{}, "200 B", "model");
  CAPTURE(ranks, stage, bucket);
  const auto whole = trained(
      plan_of(fmt::format("{{kind: synchronous, all_reduce: ring, bucket: {}}}", bucket), ranks, 0, 5),
      kMomentum);
  const auto sharded = trained(
      plan_of(fmt::format("{{kind: zero, stage: {}, bucket: {}}}", stage, bucket), ranks, 0, 5), kMomentum);
  if (stage < 3) {
    CHECK(sharded == whole);
    return;
  }
  // At stage 3 parameters are gathered when they are next used, so after the last step only the owner of each
  // has its value.
  for (std::size_t i = 0; i < whole[0].size(); ++i) {
    CAPTURE(i);
    CHECK(std::ranges::any_of(sharded, [&](const auto& own) { return own[i] == whole[0][i]; }));
  }
}

TEST_CASE("sharded state with accumulation equals one rank with all samples, to rounding",
          "[validate][training]") {
  const int ranks = GENERATE(1, 2, 3);
  const int stage = GENERATE(1, 2, 3);
  const std::string overlap = GENERATE(as<std::string>{}, "true", "false");
  CAPTURE(ranks, stage, overlap);
  const auto sharded =
      trained(plan_of(fmt::format("{{kind: zero, stage: {}, bucket: 200 B, accumulation: 3, overlap: {}}}",
                                  stage, overlap),
                      ranks, 0, 4, 3 * kBatch),
              kMomentum);
  const auto alone = trained_alone(3 * ranks * kBatch, 4, kMomentum);
  for (std::size_t i = 0; i < alone.size(); ++i) {
    CAPTURE(i);
    const auto right = [&](const auto& own) { return own[i] == Approx(alone[i]).margin(2e-6); };
    CHECK((stage < 3 ? std::ranges::all_of(sharded, right) : std::ranges::any_of(sharded, right)));
  }
}

TEST_CASE("all_reduce: mpi asks the library for each bucket's sum", "[validate][training]") {
  const int ranks = GENERATE(2, 3);
  std::atomic<int> calls = 0;
  const auto library = [&](Transport& transport, float* sum, std::int64_t elements) {
    ++calls;
    execute_rounds(transport, rounds_of(binomial_all_reduce({ranks, 1}), transport.rank().value, elements),
                   sum);
  };
  const auto plan = plan_of("{kind: synchronous, all_reduce: mpi, bucket: tensor}", ranks, 0, 5);
  const auto alone = trained_alone(ranks * kBatch, 5, kMomentum);
  for (const auto& own : trained(plan, kMomentum, {.library = library})) check_equal(own, alone, 2e-6);
  CHECK(calls == ranks * 5 * 4);
}
}  // namespace stepcast::real_strategies_test
