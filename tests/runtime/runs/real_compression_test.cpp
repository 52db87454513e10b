#include <fmt/format.h>

#include <cmath>

#include "core/random.hpp"
#include "hand_worker.hpp"
#include "kernels/onednn/backend.hpp"
#include "ranks.hpp"
#include "runtime/collectives/rank_collectives.hpp"
#include "strategies/arithmetic/compressed_values.hpp"

namespace stepcast::real_compression_test {
namespace {

constexpr int kLearningSteps = 500;
const double kLearned = 0.9 * std::log(4.0);  // loss over four classes; without learning it is log(4)

Floats random_gradient(std::size_t elements, int rank, int step) {
  Floats values(elements);
  for (std::size_t i = 0; i < elements; ++i) {
    values[i] = normal({1, Purpose::data, static_cast<std::uint32_t>(rank), static_cast<std::uint32_t>(step),
                        static_cast<std::uint32_t>(i)});
  }
  return values;
}

float rounded(float value) {
  return from_half(to_half(value));
}

void sum_over_ranks(Transport& transport, Compression kind, CompressedGradient& gradient) {
  const auto phases =
      compressed_all_reduce_rounds(gradient.layout(), kind, transport.ranks(), transport.rank().value);
  for (std::size_t phase = 0; phase < phases.size(); ++phase) {
    execute_rounds(transport, phases[phase], gradient.wire().data());
    if (phase == 0) gradient.sum_share();
  }
}

/// Adds up the gradients and residuals of a rank, and on rank 0 the restored sum.
struct Balance {
  std::vector<double> given, residual, restored;
  std::vector<Floats> last;  ///< restored, by rank
};

Balance balance_of(const std::string& transport_kind, const Codec& codec, std::size_t elements, int steps) {
  Balance balance{std::vector<double>(elements), std::vector<double>(elements), std::vector<double>(elements),
                  std::vector<Floats>(codec.owners)};
  std::mutex adding;
  run_ranks(transport_kind, codec.owners, [&](Transport& transport) {
    const int rank = transport.rank().value;
    CompressedGradient gradient(codec, elements, rank);
    Floats restored(elements);
    for (int step = 0; step < steps; ++step) {
      const Floats given = random_gradient(elements, rank, step);
      gradient.quantize(given);
      sum_over_ranks(transport, codec.kind, gradient);
      gradient.restore(restored);
      const std::lock_guard lock(adding);
      for (std::size_t i = 0; i < elements; ++i) {
        balance.given[i] += given[i];
        if (rank == 0) balance.restored[i] += restored[i];
      }
    }
    const std::lock_guard lock(adding);
    for (std::size_t i = 0; i < elements; ++i) balance.residual[i] += gradient.residual()[i];
    const std::size_t first = gradient.layout().elements(rank).begin;
    for (std::size_t i = 0; i < gradient.residual_of_sum().size(); ++i)
      balance.residual[first + i] += gradient.residual_of_sum()[i];
    balance.last[rank] = restored;
  });
  return balance;
}

/// Loss on the samples that this many workers train on repeatedly.
double loss_of(const Floats& parameters, int workers) {
  const auto backend = make_onednn_backend();
  Network network(*backend, small_model(), {.batch = workers * kBatch});
  set_parameters(network, parameters);
  fill_data(network, 0);
  for (std::size_t layer = 0; layer < network.model().layers.size(); ++layer) {
    if (network.has(layer, Pass::forward)) network.run(layer, Pass::forward);
  }
  return network.loss();
}

}  // namespace

TEST_CASE("the decompressed sum plus the residuals of all ranks equals the sum of all gradients",
          "[validate][compression]") {
  const auto kind = GENERATE(Compression::one_bit, Compression::fp16, Compression::top_k);
  const int ranks = GENERATE(1, 2, 3, 5, 8);
  const std::size_t elements = GENERATE(1, 37, 1000);
  const std::string transport = GENERATE(as<std::string>{}, "memory", "sockets");
  CAPTURE(ordinal(kind), ranks, elements, transport);
  const Balance balance =
      balance_of(transport, {.kind = kind, .rows = 16, .density = 0.1, .owners = ranks}, elements, 6);
  for (std::size_t i = 0; i < elements; ++i)
    CHECK(balance.restored[i] + balance.residual[i] == Approx(balance.given[i]).margin(1e-4));
  for (const Floats& own : balance.last) CHECK(own == balance.last[0]);
}

TEST_CASE("an fp16 all-reduce gives the rounded sum of rounded gradients", "[validate][compression]") {
  const int ranks = GENERATE(1, 2, 3, 4);
  CAPTURE(ranks);
  const std::size_t elements = 5001;
  const Balance balance = balance_of("memory", {.kind = Compression::fp16, .owners = ranks}, elements, 1);
  std::vector<Floats> given;
  for (int rank = 0; rank < ranks; ++rank) given.push_back(random_gradient(elements, rank, 0));
  for (std::size_t i = 0; i < elements; ++i) {
    float sum = 0;
    for (const Floats& one : given) sum += rounded(one[i]);
    REQUIRE(balance.last[0][i] == rounded(sum));
  }
}

TEST_CASE("a step with fp16 compression is plain SGD with the rounded sum", "[validate][compression]") {
  const int ranks = GENERATE(2, 3);
  const std::string bucket = GENERATE(as<std::string>{}, "tensor", "model");
  CAPTURE(ranks, bucket);
  const auto plan =
      plan_of(fmt::format("{{kind: synchronous, all_reduce: ring, compression: fp16, bucket: {}}}", bucket),
              ranks, 0, 1);
  std::vector<Floats> gradients;
  Floats expected;
  for (int rank = 0; rank < ranks; ++rank) {
    HandWorker hand(rank, ranks, kPlain);
    expected = hand.parameters();
    hand.step();
    gradients.push_back(hand.gradients());
  }
  for (std::size_t i = 0; i < expected.size(); ++i) {
    float sum = 0;
    for (const Floats& one : gradients) sum += rounded(one[i]);
    expected[i] -= 0.1F / static_cast<float>(ranks) * rounded(sum);
  }
  for (const Floats& own : trained(plan, kPlain)) check_equal(own, expected, 1e-7);
}

TEST_CASE("one worker compresses nothing", "[validate][compression]") {
  const auto plan = plan_of("{kind: synchronous, all_reduce: ring, compression: one_bit}", 1, 0, 5);
  CHECK(trained(plan, kMomentum)[0] == trained_alone(kBatch, 5, kMomentum));
}

TEST_CASE("compressed synchronous SGD learns, and all ranks keep the same parameters",
          "[validate][compression]") {
  const std::string kind = GENERATE(as<std::string>{}, "one_bit", "fp16", "top_k, density: 0.1");
  const std::string overlap = GENERATE(as<std::string>{}, "true", "false");
  CAPTURE(kind, overlap);
  const auto plan = plan_of(
      fmt::format("{{kind: synchronous, all_reduce: ring, compression: {}, overlap: {}, bucket: tensor}}",
                  kind, overlap),
      2, 0, kLearningSteps);
  const auto ranks = trained(plan, kPlain, {.again = 1});
  CHECK(ranks[0] == ranks[1]);
  CHECK(loss_of(ranks[0], 2) < kLearned);
}

TEST_CASE("a server that receives fp16 gradients steps with the rounded gradient",
          "[validate][compression]") {
  const int shards = GENERATE(1, 2);
  HandWorker hand(0, 1, kPlain);
  Floats server = hand.parameters(), residual(server.size());
  for (int step = 0; step < 4; ++step) {
    hand.step();
    const Floats gradient = hand.gradients();
    for (std::size_t i = 0; i < server.size(); ++i) {
      const float value = gradient[i] + residual[i];
      residual[i] = value - rounded(value);
      server[i] -= 0.1F * rounded(value);
    }
    hand.set(server);
  }
  const auto plan = plan_of(
      fmt::format("{{kind: parameter_server, server: own_device, compression: fp16, shards: {}}}", shards), 1,
      shards, 4);
  check_equal(trained(plan, kPlain)[0], hand.parameters(), 1e-6);
}

TEST_CASE("a server learns from compressed updates in every mode", "[validate][compression]") {
  const std::string kind = GENERATE(as<std::string>{}, "one_bit", "fp16", "top_k, density: 0.1");
  const std::string mode = GENERATE(as<std::string>{}, "mode: asynchronous", "mode: asynchronous, n_push: 2",
                                    "mode: asynchronous, overlap: true", "mode: synchronous",
                                    "mode: bounded_staleness, staleness_bound: 2");
  CAPTURE(kind, mode);
  const auto plan =
      plan_of(fmt::format("{{kind: parameter_server, server: own_device, compression: {}, {}}}", kind, mode),
              1, 1, kLearningSteps);
  CHECK(loss_of(trained(plan, kPlain, {.again = 1}).back(), 1) < kLearned);  // the server
}

}  // namespace stepcast::real_compression_test
