#include "campaigns/checkpoint_interval.hpp"

#include <catch2/catch.hpp>
#include <cmath>

#include "daly_training_time.hpp"

using namespace stepcast;

namespace {

/// Daly 2006, figures 3 to 5: T_s = 500 h, R = 10 min, delta = 5 min, for a mean time between failures.
Faults daly_2006(double mtbf_hours) {
  Faults faults;
  faults.training = {500 * 3600.0};
  faults.node_mtbf = {mtbf_hours * 3600};
  faults.restart = {600};
  faults.checkpoints.write = {300};
  return faults;
}

}  // namespace

TEST_CASE("Daly's formula gives the intervals of his paper", "[campaigns]") {
  // Figures 3, 4 and 5: 117 min, 57 min and 9.1 min.
  CHECK(daly_interval(checkpoint_problem(daly_2006(24))).value / 60 == Approx(117).margin(0.5));
  CHECK(daly_interval(checkpoint_problem(daly_2006(6))).value / 60 == Approx(57).margin(0.5));
  CHECK(daly_interval(checkpoint_problem(daly_2006(0.25))).value / 60 == Approx(9.1).margin(0.05));
  CHECK(daly_interval({{600}, {200}}).value == 200);  // delta >= 2M
  CHECK(young_interval({{300}, {86400}}).value == Approx(7200));
}

TEST_CASE("Daly's interval is where his expected time is least", "[campaigns]") {
  Faults faults = daly_2006(6);
  const double best = daly_interval(checkpoint_problem(faults)).value;
  const auto time = [&](double interval) {
    faults.checkpoints.interval = {interval};
    return daly_training_time(faults).value;
  };
  CHECK(time(best) < time(0.8 * best));
  CHECK(time(best) < time(1.25 * best));
}

TEST_CASE("the interval found by search is close to Daly's interval", "[campaigns]") {
  const double hours = GENERATE(24.0, 6.0);
  const Faults faults = daly_2006(hours);
  const double daly = daly_interval(checkpoint_problem(faults)).value;
  // The total is flat there: 10 % off costs less than 0.1 % of it.
  CHECK(best_interval(faults, 200).value == Approx(daly).epsilon(0.1));
}

TEST_CASE("without failures one checkpoint, at the end, is best", "[campaigns]") {
  Faults faults = daly_2006(0);
  CHECK(best_interval(faults, 4) == faults.training);
}

TEST_CASE("checkpoints in the background make shorter intervals optimal", "[campaigns]") {
  Faults faults = daly_2006(24);
  const Seconds blocking = best_interval(faults, 100);
  faults.checkpoints.background = true;
  faults.checkpoints.snapshot = {10};
  const Seconds background = best_interval(faults, 200);
  CHECK(background < blocking);
  // To first order only the snapshot counts: sqrt(2 x 10 s x 24 h), far from where the search begins. The
  // total is flat: a quarter off costs less than 0.05 % of it.
  CHECK(background.value == Approx(std::sqrt(2 * 10 * 86'400.0)).epsilon(0.25));
}
