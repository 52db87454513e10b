#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

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

// Two workers that compute at once: which of them a server hears first differs from run to run, so a test
// allows each order of events, and only these.

namespace {

Floats sum_of(const Floats& a, const Floats& b) {
  Floats sum = a;
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += b[i];
  return sum;
}

/// The largest difference of two arrays.
double distance(const Floats& a, const Floats& b) {
  REQUIRE(a.size() == b.size());
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    most = std::max(most, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
  return most;
}

/// The results of two workers and their server after some order of events.
using Outcome = std::array<Floats, 3>;

void check_one_of(const std::vector<Outcome>& possible, const std::vector<Floats>& results) {
  REQUIRE(results.size() >= 3);
  double least = 1;
  for (const Outcome& one : possible) {
    double most = 0;
    for (std::size_t i = 0; i < one.size(); ++i) most = std::max(most, distance(one[i], results[i]));
    least = std::min(least, most);
  }
  CHECK(least < 1e-6);
}

/// What the server has after each of two pushes of three gradients of a worker that begins at `read`, which
/// are added to `before`.
std::vector<Floats> after_pushes(int index, const Floats& read, const Floats& before) {
  HandWorker hand(index, 2, kPlain);
  hand.set(read);
  std::vector<Floats> states{before};
  Floats server = before;
  for (int step = 1; step <= 6; ++step) {
    hand.step();
    const Floats gradient = hand.gradients();
    for (std::size_t i = 0; i < server.size(); ++i) server[i] -= 0.1F * gradient[i];
    if (step % 3 == 0) states.push_back(server);
  }
  return states;
}

}  // namespace

TEST_CASE("a server has all gradients of two workers that do not wait for each other",
          "[validate][training]") {
  const char* more = GENERATE("", ", sub_masters: 1", ", compression: fp16");
  CAPTURE(more);
  const Floats begin = HandWorker(0, 2, kPlain).parameters();
  std::vector<Floats>
      possible;  // the later worker reads the server after none, one or two pushes of the other
  for (const int first : {0, 1}) {
    const std::vector<Floats> states = after_pushes(first, begin, begin);
    for (const Floats& read : states) possible.push_back(after_pushes(1 - first, read, states.back()).back());
  }
  const std::string strategy =
      fmt::format("{{kind: parameter_server, server: own_device, n_push: 3, n_fetch: 6{}}}", more);
  const int servers = std::string_view(more).starts_with(", sub") ? 2 : 1;
  const auto results = trained(plan_of(strategy, 2, servers, 6), kPlain);
  double least = 1;
  for (const Floats& one : possible) least = std::min(least, distance(results[2], one));
  CHECK(least < (std::string_view(more).ends_with("fp16") ? 1e-4 : 2e-6));
}

TEST_CASE("two workers of elastic averaging are pulled to the center one after the other",
          "[validate][training]") {
  std::vector<Outcome> possible;
  for (const int first : {0, 1}) {
    Outcome outcome;
    outcome[2] = HandWorker(0, 2, kMomentum).parameters();
    for (const int index : {first, 1 - first}) {
      HandWorker hand(index, 2, kMomentum);
      for (int step = 0; step < 5; ++step) hand.step();
      Floats own = hand.parameters();
      const Floats read = outcome[2];
      elastic_move(0.3, own, outcome[2]);
      elastic_move(0.3, read, own);
      outcome[index] = own;
    }
    possible.push_back(outcome);
  }
  CHECK(distance(possible[0][2], possible[1][2]) > 1e-4);
  check_one_of(possible, trained(plan_of("{kind: elastic_averaging, server: own_device, elastic_force: 0.3, "
                                         "period: 5}",
                                         2, 1, 5),
                                 kMomentum));
}

TEST_CASE("two workers of energy matching add their updates to the center", "[validate][training]") {
  const Floats begin = HandWorker(0, 2, kPlain).parameters();
  const auto update_of = [&](int index, const Floats& center) {
    HandWorker hand(index, 2, kPlain);
    hand.step();
    Floats velocity(begin.size()), seen = begin, update(begin.size());
    match_energy({.learning_rate = kPlain.learning_rate}, hand.gradients(), center, {velocity, seen}, update);
    return update;
  };
  const Floats first[2] = {update_of(0, begin), update_of(1, begin)};
  std::vector<Outcome> possible{
      {sum_of(begin, first[0]), sum_of(begin, first[1]), sum_of(sum_of(begin, first[0]), first[1])}};
  for (const int late : {0, 1}) {  // it reads what the other has pushed
    const Floats read = sum_of(begin, first[1 - late]), all = sum_of(read, update_of(late, read));
    Outcome outcome{read, read, all};
    outcome[late] = all;
    possible.push_back(outcome);
  }
  check_one_of(possible,
               trained(plan_of("{kind: gradient_energy_matching, server: own_device}", 2, 1, 1), kPlain));
}

TEST_CASE("Sandblaster's L-BFGS over two replicas and two servers equals that of one of each, to rounding",
          "[validate][training]") {
  const char* more = GENERATE("", ", send_every: 2", ", backup_tasks: true");
  CAPTURE(more);
  const auto trained_by = [&](int replicas, int shards) {
    const std::string strategy = fmt::format(
        "{{kind: sandblaster, server: own_device, tasks: 6, history: 3, shards: {}{}}}", shards, more);
    return trained(plan_of(strategy, replicas, shards + 1, 6), kPlain);
  };
  const Floats begin = HandWorker(0, 1, kPlain).parameters(), one = trained_by(1, 1)[1];
  const auto two = trained_by(2, 2);
  Floats joined = two[2];  // each server has a part of the parameters
  for (std::size_t i = 0; i < joined.size(); ++i) {
    if (joined[i] == begin[i]) joined[i] = two[3][i];
  }
  CHECK(distance(one, joined) < 1e-4);
  CHECK(distance(one, begin) > 0.01);
}

}  // namespace stepcast::real_servers_test
