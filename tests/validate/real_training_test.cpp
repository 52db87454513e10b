#include <fmt/format.h>

#include <algorithm>

#include "hand_worker.hpp"

namespace stepcast {
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
  for (const auto& own : trained(plan, optimizer)) check_equal(own, alone, 2e-5);
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
  // At stage 3 parameters are gathered when they are next used: after the last step each is right at its
  // owner.
  for (std::size_t i = 0; i < whole[0].size(); ++i) {
    CAPTURE(i);
    CHECK(std::ranges::any_of(sharded, [&](const auto& own) { return own[i] == whole[0][i]; }));
  }
}

}  // namespace stepcast
