#include <catch2/catch.hpp>

#include "runtime/devices/rank_device.hpp"
#include "runtime/scenario_points/validation_plan.hpp"
#include "strategies/plan/run_conditions.hpp"

namespace stepcast::sleeping_device_test {
namespace {

Workload millisecond_steps() {
  Workload workload;
  workload.median = {{0.0005, 0.001, 0.0001}, {0.0002, 0.0004, 0}};
  return workload;
}

/// The work time of a forward pass over both layers in each of some steps.
std::vector<double> booked(const SleepNoise& noise, int steps) {
  const Workload workload = millisecond_steps();
  const auto device = sleeping_device(workload, 16, noise);
  device->begin();
  std::vector<double> seconds;
  for (int step = 0; step < steps; ++step) {
    const double before = device->work_time().wall;
    device->compute(Work::forward, {0, 2});
    seconds.push_back(device->work_time().wall - before);
    device->begin_step(step + 1);
  }
  return seconds;
}

}  // namespace

TEST_CASE("a sleeping rank draws the noise of its simulated worker", "[validate]") {
  SleepNoise noise{.noise = {}, .seed = 7, .worker = 3, .training = true};
  noise.noise.jitter = Noise::Jitter::lognormal;
  noise.noise.sigma = 0.5;
  const auto seconds = booked(noise, 3);
  for (std::uint32_t step = 0; step < 3; ++step)
    CHECK(seconds[step] == Approx(0.0007 * draw(noise.noise, 7, 3, step, {}).factor));
  CHECK(seconds[0] != Approx(seconds[1]));
}

TEST_CASE("a sleeping rank draws noise for every layer if the scenario says so", "[validate]") {
  SleepNoise noise{.noise = {}, .seed = 7, .worker = 0, .training = true};
  noise.noise.jitter = Noise::Jitter::layers;
  noise.noise.sigma = 0.5;
  const Draw drawn = draw(noise.noise, 7, 0, 0, {});
  CHECK(booked(noise, 1)[0] == Approx(0.0005 * drawn.layer_factor(0, Work::forward) +
                                      0.0002 * drawn.layer_factor(1, Work::forward)));
}

TEST_CASE("a sleeping server draws no noise", "[validate]") {
  SleepNoise noise{.noise = {}, .seed = 7, .worker = 0, .training = false};
  noise.noise.jitter = Noise::Jitter::lognormal;
  noise.noise.sigma = 0.5;
  CHECK(booked(noise, 1)[0] == Approx(0.0007));
}

TEST_CASE("noise that real ranks cannot have is refused with the reason", "[validate]") {
  Noise noise;
  CHECK(unsupported_noise(noise, true).empty());
  noise.jitter = Noise::Jitter::trace;
  CHECK(unsupported_noise(noise, false).empty());
  CHECK(unsupported_noise(noise, true) ==
        "noise.jitter: ranks with --sleep cannot replay measured steps; give none, lognormal or layers");
  noise.jitter = Noise::Jitter::lognormal;
  CHECK(unsupported_noise(noise, true).empty());
  CHECK(unsupported_noise(noise, false) ==
        "noise: random noise needs --sleep, because ranks that compute have noise of their own; leave noise "
        "out or give noise.jitter: trace");
}

}  // namespace stepcast::sleeping_device_test
