#include "campaigns/faults.hpp"

#include <catch2/catch.hpp>
#include <cmath>

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
