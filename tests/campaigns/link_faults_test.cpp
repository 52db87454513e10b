#include <catch2/catch.hpp>
#include <cmath>

#include "campaigns/faults.hpp"

namespace stepcast::link_faults_test {

namespace {

/// 1,000 s of training on 4 nodes; a checkpoint after every 300 s takes 7 s.
Faults trained(const LinkFault& link) {
  Faults faults;
  faults.training = {1000};
  faults.nodes = 4;
  faults.restart = {10};
  faults.checkpoints = {{300}, {7}};
  faults.links = {link};
  return faults;
}

double sum_of_parts(const Faults& faults, const TrainingTime& time) {
  return (faults.training + time.checkpoints + time.rework + time.restart + time.missing + time.slow +
          time.links)
      .value;
}

/// Time lost to links that keep half of the speed for 40 s from this time on.
double lost_from(double at, Checkpoints checkpoints = {{300}, {7}}) {
  Faults faults = trained({.at = {at}, .lasts = {40}, .speed = 0.5});
  faults.checkpoints = checkpoints;
  const TrainingTime time = training_time(faults, 0);
  CHECK(time.link_failures == 1);
  CHECK(time.failures == 0);
  CHECK(time.rework.value == 0);
  CHECK(time.total.value == Approx(sum_of_parts(faults, time)).epsilon(1e-12));
  return time.links.value;
}

/// Checks a training whose links cut a node off for 30 s at this time.
void check_cut(double at, double checkpoints, double rework, double restart = 40) {
  const TrainingTime time = training_time(trained({.at = {at}, .lasts = {30}, .cut_off = 1}), 0);
  CAPTURE(at);
  CHECK(time.checkpoints.value == Approx(checkpoints));
  CHECK(time.rework.value == Approx(rework));
  CHECK(time.restart.value == Approx(restart));
  CHECK(time.links.value == 0);
  CHECK(time.total.value == Approx(1000 + checkpoints + rework + restart));
}

}  // namespace

TEST_CASE("slow links cost their share of the time that they meet work, at any kind of event",
          "[campaigns][faults]") {
  CHECK(lost_from(100) == Approx(20));                // in the work
  CHECK(lost_from(0) == Approx(20));                  // at the start
  CHECK(lost_from(290) == Approx(0.5 * (40 - 7)));    // across a checkpoint, which starts 20 s later
  CHECK(lost_from(301) == Approx(0.5 * (40 - 6)));    // while one is written: 6 s of it are left
  CHECK(lost_from(1021) == Approx(0).margin(1e-12));  // while the last one is written
  const Checkpoints background{{300}, {50}, true, {2}};
  CHECK(lost_from(310, background) == Approx(20));  // beside a write: the store is no link of the training
  CHECK(lost_from(1008, background) == Approx(0).margin(1e-12));  // while training waits for the last write
  const TrainingTime after = training_time(trained({.at = {5000}, .lasts = {40}, .speed = 0.5}), 0);
  CHECK(after.link_failures == 0);
  CHECK(after.total.value == Approx(1000 + 4 * 7));
}

TEST_CASE("links that cut a node off stop a training as its failure does, at any kind of event",
          "[campaigns][faults]") {
  check_cut(100, 4 * 7, 100);
  check_cut(303, 4 * 7 + 3, 300);  // while a checkpoint is written: it counts for nothing
  check_cut(400, 4 * 7, 400 - 307);
  check_cut(1000 + 3 * 7 + 1, 4 * 7 + 1, 100);  // while the last one is written
  // A second cut while all wait for the first one: the later end counts.
  Faults twice = trained({.at = {100}, .lasts = {30}, .cut_off = 1});
  twice.links.push_back({.at = {110}, .lasts = {60}, .cut_off = 2});
  CHECK(training_time(twice, 0).restart.value == Approx(10 + 60 + 10));
  twice.links.back().lasts = {5};
  CHECK(training_time(twice, 0).restart.value == Approx(40));
  // Slow links beside the wait cost nothing until work goes on at 140 s.
  twice.links.back() = {.at = {110}, .lasts = {50}, .speed = 0.25};
  CHECK(training_time(twice, 0).links.value == Approx(20 * 0.75));
}

TEST_CASE("training without the nodes that links cut off goes on with the others", "[campaigns][faults]") {
  Faults faults = trained({.at = {100}, .lasts = {30}, .cut_off = 2});
  faults.response = FailureResponse::shrink;
  faults.exchange = {8};
  const TrainingTime time = training_time(faults, 0);
  CHECK(time.missing.value == Approx(30.0 * 2 / 4));  // half of the work for 30 s
  CHECK(time.rework.value > 0);
  CHECK(time.rework.value <= 2 * 8.0 / 4);
  CHECK(time.restart.value == 0);
  CHECK(time.total.value == Approx(sum_of_parts(faults, time)));
  faults.links.front().cut_off = 9;  // more than there are: the model goes back to the last checkpoint
  const TrainingTime all = training_time(faults, 0);
  CHECK(all.rework.value == Approx(100));
  CHECK(all.missing.value == Approx(30));
}

TEST_CASE("links that fail again and again slow a training by their share of the time",
          "[campaigns][faults]") {
  Faults faults;
  faults.training = {1e6};
  faults.links = {{.mtbf = {900}, .lasts = {100}, .speed = 0.5}};
  // 900 s at full speed and 100 s at half: 950 s of work in 1,000 s.
  const TrainingTime mean = mean_training_time(faults, 32);
  CHECK(mean.total.value == Approx(1e6 * 1000 / 950).epsilon(0.002));
  CHECK(mean.link_failures == Approx(mean.total.value / 1000).epsilon(0.02));
  CHECK(training_time(faults, 3).total == training_time(faults, 3).total);
  CHECK(training_time(faults, 3).total != training_time(faults, 4).total);
  // The slowest of the links that have failed at a time counts.
  faults.links = {{.at = {0}, .lasts = {1e9}, .speed = 0.5}, {.at = {0}, .lasts = {1e9}, .speed = 0.2}};
  CHECK(training_time(faults, 0).total.value == Approx(1e6 / 0.2));
}

/// Daly's expected time with a time D after each failure in which nothing fails:
/// T = (M + D) e^(R / M) (e^((tau + delta) / M) - 1) T_s / tau.
TEST_CASE("cuts at random times cost what Daly's formula says", "[campaigns][faults]") {
  Faults faults;
  faults.training = {200 * 600.0};
  faults.restart = {150};
  faults.checkpoints = {{600}, {45}};
  faults.links = {{.mtbf = {3000}, .lasts = {100}, .cut_off = 1}};
  const double expected = (3000 + 100) * std::exp(150.0 / 3000) * std::expm1(645.0 / 3000) * 200;
  CHECK(mean_training_time(faults, 1000).total.value == Approx(expected).epsilon(0.003));
}

TEST_CASE("losses of nodes, links and slow workers together add up", "[campaigns][faults]") {
  Faults faults = trained({.mtbf = {150}, .lasts = {20}, .speed = 0.5});
  faults.links.push_back({.mtbf = {700}, .lasts = {15}, .cut_off = 1});
  faults.node_mtbf = {4 * 500};
  faults.repair = {20};
  faults.slow = {0.25, 3, {60}, {400}};
  faults.response = GENERATE(FailureResponse::restart, FailureResponse::shrink);
  faults.exchange = {5};
  for (int draw = 0; draw < 50; ++draw) {
    const TrainingTime time = training_time(faults, draw);
    REQUIRE(time.finished);
    CHECK(time.total.value == Approx(sum_of_parts(faults, time)).epsilon(1e-10));
  }
}

TEST_CASE("a training that links cut off again and again before a checkpoint is given up",
          "[campaigns][faults]") {
  Faults faults = trained({.mtbf = {20}, .lasts = {1}, .cut_off = 1});
  faults.checkpoints = {{1000}, {7}};  // it would need e^50 attempts
  CHECK_FALSE(training_time(faults, 0).finished);
}

}  // namespace stepcast::link_faults_test
