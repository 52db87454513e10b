#include "kernels/timing/compression_timing.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstring>
#include <span>
#include <thread>
#include <vector>

#include "models/layer_times/compression_times.hpp"

using namespace stepcast;

namespace {

/// A device whose copies take some time.
class SlowCopies final : public DeviceMemory {
 public:
  static constexpr double kSeconds = 0.01;

  Event record_event() override { return std::make_shared<int>(); }
  void wait(const Event&) override {}
  double seconds(const Event&, const Event&) override { return 0; }
  std::shared_ptr<float> allocate(std::size_t elements) override {
    return {new float[elements], [](const float* made) { delete[] made; }};
  }
  void copy(const float* from, float* to, std::size_t elements) override { slowly(from, to, elements); }
  std::shared_ptr<float> host_memory(std::size_t elements) override { return allocate(elements); }
  void to_host(const Event&, const float* from, float* to, std::size_t elements) override {
    slowly(from, to, elements);
  }
  void to_device(const float* from, float* to, std::size_t elements) override { slowly(from, to, elements); }

 private:
  static void slowly(const float* from, float* to, std::size_t elements) {
    std::this_thread::sleep_for(std::chrono::duration<double>(kSeconds));
    std::memcpy(to, from, elements * sizeof(float));
  }
};

}  // namespace

TEST_CASE("a capture of compression has every kernel, every repeat and both clocks", "[kernels]") {
  const CompressionTrace trace = capture_compression(
      {.name = "t", .command = "c", .elements = 1000, .rows = 64, .density = 0.1, .repeats = 3});
  CHECK(trace.copy.seconds.size() == 3);
  REQUIRE(trace.codecs.size() == 3);
  for (const auto& codec : trace.codecs) {
    for (const PassSamples* pass : {&codec.quantize, &codec.restore}) {
      CHECK(pass->seconds.size() == 3);
      CHECK(pass->cpu_seconds.size() == 3);
      for (const double seconds : pass->seconds) CHECK(seconds > 0);
    }
  }
  CHECK(trace.gradient_bytes == 4000);
  CHECK_FALSE(is_beside_device(trace));
}

TEST_CASE("a capture of compression takes a new gradient for each kernel and restores into it", "[kernels]") {
  std::vector<float> gradient(1000);
  std::vector<float> restored;  // the largest element that the kernel before left
  int steps = 0;
  const auto next = [&] {
    restored.push_back(*std::max_element(gradient.begin(), gradient.end()));
    std::fill(gradient.begin(), gradient.end(), 0.0F);
    gradient[17] = ++steps;
    return std::span(gradient);
  };
  const CompressionTrace trace = capture_compression({.name = "t",
                                                      .command = "c",
                                                      .elements = gradient.size(),
                                                      .rows = 1,
                                                      .density = 0.001,
                                                      .repeats = 2,
                                                      .next_gradient = next});
  CHECK(steps == 3 * 4);  // two repetitions and one to warm up, each for the copy and three kernels
  // The kernels restore the gradient: one element is exact in 1 bit, a half and the top 0.1 %.
  for (std::size_t i = 1; i < restored.size(); ++i) CHECK(restored[i] == i);
  CHECK_THAT(trace.source, Catch::Contains("backward passes"));
}

TEST_CASE("times of compressing a device's gradient include its copies to the host and back", "[kernels]") {
  SlowCopies memory;
  const CompressionCapture capturing{.name = "t",
                                     .command = "c",
                                     .elements = 1000,
                                     .rows = 64,
                                     .density = 0.1,
                                     .repeats = 2,
                                     .device = {"a device", &memory}};
  const CompressionTrace trace = capture_compression(capturing);
  CHECK(is_beside_device(trace));
  CHECK_THAT(trace.device, Catch::EndsWith(" (1 used) beside a device"));
  for (const auto& codec : trace.codecs) {
    for (const PassSamples* pass : {&codec.quantize, &codec.restore}) {
      for (std::size_t i = 0; i < 2; ++i) {
        CHECK(pass->seconds[i] > 2 * SlowCopies::kSeconds / 4000);
        CHECK(pass->cpu_seconds[i] > 2 * SlowCopies::kSeconds / 4000);
      }
    }
  }
  for (const double seconds : trace.copy.seconds) CHECK(seconds < SlowCopies::kSeconds / 4000);
}
