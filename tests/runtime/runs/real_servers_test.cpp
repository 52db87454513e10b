#include <fmt/format.h>

#include <algorithm>

#include "hand_worker.hpp"
#include "strategies/arithmetic/model_updates.hpp"

namespace stepcast::real_servers_test {

TEST_CASE("elastic averaging follows its formula, worked out by hand", "[validate][training]") {
  const int shards = GENERATE(1, 2);
  HandWorker hand(0, 1, kMomentum);
  Floats center = hand.parameters();
  for (int step = 1; step <= 6; ++step) {
    hand.step();
    if (step % 2 != 0) continue;
    Floats own = hand.parameters();
    const Floats read = center;
    elastic_move(0.3, own, center);
    elastic_move(0.3, read, own);
    hand.set(own);
  }
  const std::string strategy = fmt::format(
      "{{kind: elastic_averaging, server: own_device, elastic_force: 0.3, period: 2, shards: {}}}", shards);
  CHECK(trained(plan_of(strategy, 1, shards, 6), kMomentum)[0] == hand.parameters());
}

TEST_CASE("a sub-master of elastic averaging is pulled both ways, worked out by hand",
          "[validate][training]") {
  const int every = GENERATE(1, 2);
  HandWorker hand(0, 1, kMomentum);
  Floats center = hand.parameters(), top = center;
  for (int step = 1; step <= 6; ++step) {
    hand.step();
    if (step % every == 0) {  // it answers its worker after this, and takes the worker's parameters then
      const Floats read = top;
      elastic_move(0.3, center, top);
      elastic_move(0.3, read, center);
    }
    Floats own = hand.parameters();
    const Floats answer = center;
    elastic_move(0.3, own, center);
    elastic_move(0.3, answer, own);
    hand.set(own);
  }
  const std::string strategy = fmt::format(
      "{{kind: elastic_averaging, server: own_device, elastic_force: 0.3, sub_masters: 1, sub_master_every: "
      "{}}}",
      every);
  const auto results = trained(plan_of(strategy, 1, 2, 6), kMomentum);
  CHECK(results[0] == hand.parameters());
  CHECK(results[1] == top);     // the server
  CHECK(results[2] == center);  // the sub-master
}

TEST_CASE("energy matching follows its formula, worked out by hand", "[validate][training]") {
  HandWorker hand(0, 1, kPlain);
  Floats center = hand.parameters(), seen = center, velocity(center.size()), update(center.size());
  const EnergyMatching options{.learning_rate = kPlain.learning_rate};
  for (int step = 0; step < 5; ++step) {
    hand.step();
    match_energy(options, hand.gradients(), center, {velocity, seen}, update);
    for (std::size_t i = 0; i < center.size(); ++i) center[i] += update[i];
    hand.set(center);
  }
  const auto results =
      trained(plan_of("{kind: gradient_energy_matching, server: own_device}", 1, 1, 5), kPlain);
  CHECK(results[0] == hand.parameters());
}

TEST_CASE("Downpour pushes the sum of its gradients and steps by itself between reads",
          "[validate][training]") {
  HandWorker hand(0, 1, kPlain);
  Floats server = hand.parameters();
  for (int step = 1; step <= 6; ++step) {
    hand.step();
    const Floats gradient = hand.gradients();
    for (std::size_t i = 0; i < server.size(); ++i) server[i] -= 0.1F * gradient[i];
    if (step % 3 == 0) hand.set(server);
  }
  const auto results = trained(
      plan_of("{kind: parameter_server, server: own_device, n_push: 3, n_fetch: 3}", 1, 1, 6), kPlain);
  check_equal(results[0], hand.parameters(), 2e-6);
}

TEST_CASE("a worker that reads more often than it pushes goes back to what the server has",
          "[validate][training]") {
  HandWorker hand(0, 1, kPlain);
  Floats server = hand.parameters(), sum(server.size());
  for (int step = 0; step < 6; ++step) {
    hand.set(server);
    hand.step();
    const Floats gradient = hand.gradients();
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += gradient[i];
    if (step % 2 == 0) continue;
    for (std::size_t i = 0; i < sum.size(); ++i) server[i] -= 0.1F * sum[i];
    std::ranges::fill(sum, 0.0F);
  }
  const auto results = trained(
      plan_of("{kind: parameter_server, server: own_device, n_push: 2, n_fetch: 1}", 1, 1, 6), kPlain);
  check_equal(results[0], hand.parameters(), 2e-6);
}

}  // namespace stepcast::real_servers_test
