#include <catch2/catch.hpp>
#include <cmath>

#include "campaigns/faults.hpp"
#include "core/random.hpp"

using namespace stepcast;

namespace {

/// The node seconds, for a mean of 1, until a draw's failure with this number.
double hazard(std::uint64_t seed, std::uint32_t draw, std::uint32_t number) {
  return -std::log1p(-uniform({seed, Purpose::failure, draw, number, 0}));
}

/// 1,000 s of training on 4 nodes; a checkpoint after every 300 s takes 7 s; a failed node is away for 30 s.
Faults trained(const Checkpoints& checkpoints = {{300}, {7}}) {
  Faults faults;
  faults.training = {1000};
  faults.nodes = 4;
  faults.repair = {20};
  faults.restart = {10};
  faults.checkpoints = checkpoints;
  return faults;
}

struct Failed {
  TrainingTime time;
  double next = 0;  ///< seconds from the first failure to the second
};

/// The training with one failure `at` this time, or with a second one at most `within` seconds after it.
/// Draws are tried until no further failure comes; the mean time between failures moves the first one.
Failed failed(Faults faults, double at, double within = 0) {
  for (std::uint32_t draw = 0; draw < 100'000; ++draw) {
    faults.node_mtbf = {faults.nodes * at / hazard(faults.seed, draw, 0)};
    const auto after = [&](std::uint32_t number) {
      return faults.node_mtbf.value * hazard(faults.seed, draw, number) / faults.nodes;
    };
    const double next = after(1);
    if (within > 0 ? next < within && after(2) > 4000 : next > 4000)
      return {training_time(faults, draw), next};
  }
  FAIL("no draw has failures at these times");
  return {};
}

TrainingTime with_failure(const Faults& faults, double at) {
  return failed(faults, at).time;
}

void check(const TrainingTime& time, double failures, double checkpoints, double rework, double restart) {
  CHECK(time.failures == failures);
  CHECK(time.checkpoints.value == Approx(checkpoints).margin(0.02));
  CHECK(time.rework.value == Approx(rework).margin(0.02));
  CHECK(time.restart.value == Approx(restart).margin(0.02));
  CHECK(time.total.value == Approx(1000 + checkpoints + rework + restart).margin(0.05));
}

}  // namespace

TEST_CASE("a node that fails at any kind of event costs what that event says", "[campaigns][faults]") {
  check(with_failure(trained(), 100), 1, 4 * 7, 100, 30);      // before any checkpoint
  check(with_failure(trained(), 303), 1, 4 * 7 + 3, 300, 30);  // while one is written: it counts for nothing
  check(with_failure(trained(), 400), 1, 4 * 7, 400 - 307, 30);             // after one
  check(with_failure(trained(), 1000 + 3 * 7 + 1), 1, 4 * 7 + 1, 100, 30);  // while the last one is written
  const Failed twice = failed(trained(), 100, 25);  // while all nodes wait for the first one
  check(twice.time, 2, 4 * 7, 100, twice.next + 30);
}

TEST_CASE("a node that fails while a checkpoint is written in the background loses that checkpoint",
          "[campaigns][faults]") {
  const Checkpoints background{{300}, {50}, true, {2}};
  const double whole = 4 * 2 + 50;  // snapshots, and the write of the last one
  check(with_failure(trained(background), 301), 1, whole + 1, 300, 30);        // in the snapshot
  check(with_failure(trained(background), 320), 1, whole + 2, 318, 30);        // in the write
  check(with_failure(trained(background), 360), 1, whole, 360 - 2 - 300, 30);  // after it
  // A store so slow that training waits for it at 602 s, until 702 s.
  const Checkpoints slow{{300}, {400}, true, {2}};
  const double waits = training_time(trained(slow), 0).checkpoints.value;
  check(with_failure(trained(slow), 650), 1, waits + 2 + 48, 600, 30);
}

TEST_CASE("training without the failed node goes on, whatever it does meanwhile", "[campaigns][faults]") {
  Faults faults = trained();
  faults.response = FailureResponse::shrink;
  faults.exchange = {8};
  const auto check_shrunk = [](const TrainingTime& time, double missing) {
    CHECK(time.failures == 1);
    CHECK(time.missing.value == Approx(missing).margin(0.01));
    CHECK(time.rework.value <= 8.0 / 4);
    CHECK(time.restart.value == 0);
    CHECK(time.total.value == Approx(1000 + 4 * 7 + time.missing.value + time.rework.value).margin(1e-6));
  };
  check_shrunk(with_failure(faults, 100), 30.0 / 4);        // a quarter of the work for 30 s
  check_shrunk(with_failure(faults, 303), (30.0 - 4) / 4);  // four of them while a checkpoint is written
  const TrainingTime saving = with_failure(faults, 303);
  CHECK(saving.rework.value == 0);  // all had sent their work
  faults.nodes = 1;                 // the last node takes the model with it
  const TrainingTime last = with_failure(faults, 400);
  CHECK(last.rework.value == Approx(400 - 307).margin(8.01));
  CHECK(last.missing.value == Approx(30).margin(0.01));
}
