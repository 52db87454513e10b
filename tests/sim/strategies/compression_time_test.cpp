#include <catch2/catch.hpp>

#include "tests/sim/child.hpp"
#include "tests/sim/small_cluster.hpp"

namespace stepcast::compression_time_test {

namespace {

constexpr double kLatency = 1e-6, kBandwidth = 1e9, kGradient = 24e6;

double step_seconds(Compression kind, bool overlap) {
  return number_from_child([=] {
    Run run(switch_platform(4), 4, three_layers({overlap ? 1.0 : 1e9}));
    run.options.overlap = overlap;
    run.options.compression.kind = kind;
    run.options.compression.rows = 1000;
    run.options.compression.density = 0.01;
    run.options.compression.cost = {1e-9, 5e-10};
    run.communication.all_reduce.algorithm = Algorithm::ring;
    return run.result().steps.at(0).seconds;
  });
}

}  // namespace

TEST_CASE("a compressed step quantizes, sums what is left and restores", "[sim]") {
  const double computed = kCompute + kUpdate;
  const auto ring = [](double bytes) { return 6 * (kLatency + bytes / 4 / kBandwidth); };
  CHECK(step_seconds(Compression::none, false) == Approx(computed + ring(kGradient)).epsilon(1e-9));
  CHECK(step_seconds(Compression::fp16, false) ==
        Approx(computed + ring(kGradient / 2) + kGradient * (1.25e-9 + 1e-9)).epsilon(1e-9));
  const double bits = kGradient / 32 + 6000 * 8;  // 6,000 columns of 1,000: 32 words each, not 31.25
  CHECK(step_seconds(Compression::one_bit, false) ==
        Approx(computed + ring(bits + 6000 * 3) + kGradient * (1.25e-9 + 1e-9)).epsilon(1e-9));
}

TEST_CASE("top-k gathers eight bytes an element from everyone", "[sim]") {
  const double gather = 3 * (kLatency + 8 * 0.01 * kGradient / 4 / kBandwidth);
  const double codec = kGradient * (1e-9 + 5e-10 * (1 + 4 * 0.01));
  CHECK(step_seconds(Compression::top_k, false) == Approx(kCompute + kUpdate + gather + codec).epsilon(1e-9));
}

TEST_CASE("quantizing delays the backward pass that the sums overlap with", "[sim]") {
  // Each sum ends before the next layer's backward pass does; only the last one is seen.
  const double last = 6 * (kLatency + 4e6 / 2 / 4 / kBandwidth);
  CHECK(step_seconds(Compression::fp16, true) ==
        Approx(kCompute + kUpdate + kGradient * (1.25e-9 + 1e-9) + last).epsilon(1e-9));
}

}  // namespace stepcast::compression_time_test
