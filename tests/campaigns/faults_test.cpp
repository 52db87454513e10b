#include "campaigns/faults.hpp"

#include <catch2/catch.hpp>
#include <cmath>

#include "core/random.hpp"
#include "daly_training_time.hpp"

using namespace stepcast;

namespace {

double sum_of_parts(const Faults& faults, const TrainingTime& time) {
  return (faults.training + time.checkpoints + time.rework + time.restart + time.missing + time.slow).value;
}

/// 16 nodes, 100 h of training, a failure about every 2 h.
Faults troubled(FailureResponse response) {
  Faults faults;
  faults.training = {360'000};
  faults.nodes = 16;
  faults.node_mtbf = {16 * 7200};
  faults.repair = {300};
  faults.restart = {120};
  faults.response = response;
  faults.exchange = {200};
  faults.checkpoints = {{1800}, {60}};
  faults.slow = {0.25, 3, {600}, {4000}};
  return faults;
}

}  // namespace

TEST_CASE("without faults a training takes its time and its checkpoints", "[campaigns]") {
  Faults faults;
  faults.training = {1000};
  CHECK(training_time(faults, 0).total.value == 1000);
  faults.checkpoints = {{300}, {7}};  // after 300, 600, 900 and at the end
  const TrainingTime blocking = training_time(faults, 0);
  CHECK(blocking.total.value == Approx(1000 + 4 * 7));
  CHECK(blocking.checkpoints.value == Approx(4 * 7));
  faults.checkpoints.interval = {250};  // the fourth is the last
  CHECK(training_time(faults, 0).total.value == Approx(1000 + 4 * 7));
}

TEST_CASE("a checkpoint in the background costs its snapshot, and the last one its write too",
          "[campaigns]") {
  Faults faults;
  faults.training = {1000};
  faults.checkpoints = {{300}, {50}, true, {2}};
  CHECK(training_time(faults, 0).total.value == Approx(1000 + 4 * 2 + 50));
  // A store that takes longer than the interval is waited for: snapshots end 400 apart but for 300 of
  // training.
  faults.checkpoints.write = {400};
  const TrainingTime slow_store = training_time(faults, 0);
  CHECK(slow_store.total.value == Approx(300 + 2 + 3 * (400 + 2) + 400));
  CHECK(slow_store.checkpoints.value == Approx(slow_store.total.value - 1000));
}

TEST_CASE("the mean over failures is Daly's expected time", "[campaigns]") {
  Faults faults;
  faults.training = {200 * 600.0};
  faults.nodes = 8;
  faults.node_mtbf = {8 * 3000.0};
  faults.repair = {100};
  faults.restart = {150};
  faults.checkpoints = {{600}, {45}};
  constexpr int kDraws = 2000;
  std::vector<double> totals;
  const TrainingTime mean = mean_training_time(faults, kDraws, &totals);
  double square = 0;
  for (const double total : totals) square += (total - mean.total.value) * (total - mean.total.value);
  const double error = std::sqrt(square / kDraws / kDraws);
  CHECK(mean.total.value == Approx(daly_training_time(faults).value).margin(4 * error));
  CHECK(error < 0.005 * mean.total.value);  // else the line above would say little
  CHECK(mean.failures == Approx(mean.total.value / 3000).epsilon(0.01));  // nodes die at all times
}

TEST_CASE("the losses of a training add up to its time", "[campaigns]") {
  const FailureResponse response = GENERATE(FailureResponse::restart, FailureResponse::shrink);
  const bool background = GENERATE(false, true);
  Faults faults = troubled(response);
  faults.checkpoints.background = background;
  faults.checkpoints.snapshot = {5};
  for (int draw = 0; draw < 20; ++draw) {
    const TrainingTime time = training_time(faults, draw);
    REQUIRE(time.finished);
    CHECK(time.failures > 20);
    CHECK(time.total.value == Approx(sum_of_parts(faults, time)).epsilon(1e-10));
    for (const Seconds part : {time.checkpoints, time.rework, time.slow}) CHECK(part.value > 0);
    CHECK((response == FailureResponse::restart ? time.restart : time.missing).value > 0);
    CHECK((response == FailureResponse::restart ? time.missing : time.restart).value == 0);
  }
}

TEST_CASE("workers that are always slow lengthen a training by a closed form", "[campaigns]") {
  Faults faults;
  faults.training = {1000};
  faults.slow = {0.25, 3};
  CHECK(training_time(faults, 0).total.value == Approx(3000));  // all workers wait for the slow ones
  CHECK(training_time(faults, 0).slow.value == Approx(2000));
  faults.response = FailureResponse::shrink;  // a quarter runs at a third of the speed: 1 - 1/4 x 2/3
  CHECK(training_time(faults, 0).total.value == Approx(1000 / (1 - 0.25 * 2 / 3)));
}

TEST_CASE("slow periods have their share of the time", "[campaigns]") {
  Faults faults;
  faults.training = {1e7};
  faults.slow = {1, 2, {100}, {300}};
  // 300 s at full speed, then 100 s at half: 350 s of training in 400 s.
  const TrainingTime mean = mean_training_time(faults, 16);
  CHECK(mean.total.value ==
        Approx(1e7 * 400 / 350).epsilon(0.005));  // about 450,000 slow periods: 0.2 % at most
}

TEST_CASE("a training that shrinks loses the time for which failed nodes are missing", "[campaigns]") {
  Faults faults;
  faults.training = {1e6};
  faults.nodes = 64;
  faults.node_mtbf = {64 * 5000.0};
  faults.repair = {2000};
  faults.restart = {500};
  faults.response = FailureResponse::shrink;
  // A node is missing 2500 s for every 320,000 s that it is live.
  const TrainingTime mean = mean_training_time(faults, 32);
  CHECK(mean.total.value == Approx(1e6 * (1 + 2500.0 / 320'000)).epsilon(0.001));
  CHECK(mean.rework.value == 0);
  CHECK(mean.failures == Approx(1e6 / 5000).epsilon(0.05));
  faults.response = FailureResponse::restart;
  faults.checkpoints = {{1000}, {10}};
  CHECK(mean_training_time(faults, 32).total > mean.total);
}

TEST_CASE("after the failure of the last node the training continues from the last checkpoint",
          "[campaigns]") {
  Faults faults = troubled(FailureResponse::shrink);
  faults.nodes = 1;
  faults.node_mtbf = {7200};
  faults.slow = {};
  const TrainingTime time = mean_training_time(faults, 50);
  CHECK(time.rework.value > 0);
  CHECK(time.missing.value ==
        Approx(time.failures * 420).epsilon(1e-6));  // repair and restart, without live nodes
}

TEST_CASE("a training that almost never reaches its next checkpoint is given up", "[campaigns]") {
  Faults faults = troubled(FailureResponse::restart);
  faults.checkpoints = {{360'000}, {60}};
  faults.node_mtbf = {16 * 1000};  // it would need e^360 attempts
  CHECK_FALSE(training_time(faults, 0).finished);
}

TEST_CASE("a draw determines the failures, bit by bit", "[campaigns]") {
  const Faults faults = troubled(FailureResponse::restart);
  CHECK(training_time(faults, 3).total == training_time(faults, 3).total);
  CHECK(training_time(faults, 3).total != training_time(faults, 4).total);
}

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
