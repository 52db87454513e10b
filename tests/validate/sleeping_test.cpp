#include <catch2/catch.hpp>

#include "strategies/noise.hpp"
#include "validate/rank_device.hpp"
#include "validate/validation.hpp"

namespace stepcast {
namespace {

Workload millisecond_steps() {
  Workload workload;
  workload.median = {{0.0005, 0.001, 0.0001}, {0.0002, 0.0004, 0}};
  return workload;
}

/// What a device books for a forward pass over both layers in each of some steps.
std::vector<double> booked(const SleepNoise& noise, int steps) {
  const Workload workload = millisecond_steps();
  const auto device = sleeping_device(workload, 16, noise);
  device->begin();
  std::vector<double> seconds;
  for (int step = 0; step < steps; ++step) {
    const double before = device->worked().wall;
    device->compute(Work::forward, {0, 2});
    seconds.push_back(device->worked().wall - before);
    device->begin_step(step + 1);
  }
  return seconds;
}

}  // namespace

TEST_CASE("a rank that sleeps draws what its simulated worker draws", "[validate]") {
  SleepNoise noise{.noise = {}, .seed = 7, .worker = 3, .training = true};
  noise.noise.jitter = Noise::Jitter::lognormal;
  noise.noise.sigma = 0.5;
  const auto seconds = booked(noise, 3);
  for (std::uint32_t step = 0; step < 3; ++step)
    CHECK(seconds[step] == Approx(0.0007 * draw(noise.noise, 7, 3, step, {}).factor));
  CHECK(seconds[0] != Approx(seconds[1]));
}

TEST_CASE("a rank that sleeps draws for every layer where the scenario says so", "[validate]") {
  SleepNoise noise{.noise = {}, .seed = 7, .worker = 0, .training = true};
  noise.noise.jitter = Noise::Jitter::layers;
  noise.noise.sigma = 0.5;
  const Draw drawn = draw(noise.noise, 7, 0, 0, {});
  CHECK(booked(noise, 1)[0] == Approx(0.0005 * drawn.layer_factor(0, Work::forward) +
                                      0.0002 * drawn.layer_factor(1, Work::forward)));
}

TEST_CASE("a server that sleeps draws nothing", "[validate]") {
  SleepNoise noise{.noise = {}, .seed = 7, .worker = 0, .training = false};
  noise.noise.jitter = Noise::Jitter::lognormal;
  noise.noise.sigma = 0.5;
  CHECK(booked(noise, 1)[0] == Approx(0.0007));
}

TEST_CASE("noise that real ranks cannot have is refused with the reason", "[validate]") {
  Noise noise;
  CHECK(why_not_drawn(noise, true).empty());
  noise.jitter = Noise::Jitter::trace;
  CHECK(why_not_drawn(noise, false).empty());
  CHECK(why_not_drawn(noise, true) ==
        "noise.jitter trace: ranks that sleep replay no measured steps; give none, lognormal or layers");
  noise.jitter = Noise::Jitter::lognormal;
  CHECK(why_not_drawn(noise, true).empty());
  CHECK(why_not_drawn(noise, false) ==
        "noise that is drawn: only ranks that sleep draw it; leave it out, give noise.jitter trace, or "
        "--sleep");
}

}  // namespace stepcast
