#include "validate/step_seconds.hpp"

#include <catch2/catch.hpp>

#include "validate/outcome.hpp"

namespace stepcast {

TEST_CASE("a synchronous step lasts from last end to last end; the first does not count", "[validate]") {
  // The slower worker changes; a rank that does not train reports nothing.
  CHECK(synchronous_step_seconds({{5, 6, 8, 9}, {4, 7, 7.5, 10}, {}}) == Approx(2));  // 2, 1, 2
  CHECK_THROWS_WITH(synchronous_step_seconds({{1}}), "a real run needs two steps at least");
}

TEST_CASE("asynchronous steps are shared out over the time in which all were at work", "[validate]") {
  // From 4 to 10 the first worker makes 3 steps, the second one and a half: 6 s x 2 workers / 4.5.
  CHECK(asynchronous_step_seconds({{2, 4, 6, 8, 10}, {2, 6, 10, 14}}) == Approx(6.0 * 2 / 4.5));
  // Workers that end their steps nearly at once.
  CHECK(asynchronous_step_seconds({{1.01, 2.01, 3.01, 4.01}, {1, 2, 3, 4}, {}}) == Approx(1));
  // An exchange every second step, which then takes three times as long: two on average.
  CHECK(asynchronous_step_seconds({{1, 4, 5, 8, 9, 12, 13, 16}}) == Approx(2));
  CHECK_THROWS_WITH(asynchronous_step_seconds({{1}}),
                    "a real run of workers without a common pace needs more steps");
}

TEST_CASE("pairs whose intervals overlap say nothing about the order", "[validate]") {
  const auto outcome = [](double predicted, double measured, double spread) {
    Outcome one;
    one.predicted = predicted;
    one.measured = measured;
    one.low = measured - spread;
    one.high = measured + spread;
    return one;
  };
  const Order order = order_of({outcome(1, 1, 0.1), outcome(2, 1.15, 0.1), outcome(0.9, 2, 0.1)});
  CHECK(order.pairs == 2);
  CHECK(order.right == 0);
  CHECK(order_of({outcome(1, 1, 0.1), outcome(2, 3, 0.1)}).right == 1);
}

TEST_CASE("a point's measurement is the median of its kept samples", "[validate]") {
  Results predicted{"s", {}}, samples{"s", {}};
  Row row;
  row.set("point", std::string("a"));
  row.set("strategy", std::string("synchronous"));
  row.set("step_seconds", 1.1);
  predicted.rows.push_back(row);
  for (const double seconds : {1.0, 2.0, 0.5, 99.0}) {
    Row sample;
    sample.set("point", std::string("a"));
    sample.set("step_seconds", seconds);
    sample.set("kept", seconds < 50);
    samples.rows.push_back(sample);
  }
  const auto outcomes = outcomes_of(predicted, samples, 2);
  REQUIRE(outcomes.size() == 1);
  CHECK(outcomes[0].measured == 1);
  CHECK(outcomes[0].error() == Approx(0.1));
  CHECK(outcomes[0].repeats == 3);
  CHECK(outcomes[0].disturbed == 1);
}

}  // namespace stepcast
