#include "kernels/cudnn/capture/kernel_probes.hpp"

#include <catch2/catch.hpp>
#include <map>
#include <memory>
#include <string>

namespace stepcast::test {

TEST_CASE("every kernel that is probed runs at every precision, and its bytes are those of its arrays",
          "[pretended][probes][long]") {
  const auto precision = GENERATE(GpuPrecision::f32, GpuPrecision::f16, GpuPrecision::bf16);
  const auto device = std::make_shared<cudnn::Device>(GpuOptions{.precision = precision});
  constexpr std::int64_t kElements = 65536;
  const double each = kElements * static_cast<double>(cudnn::bytes_of(device->element()));
  std::map<std::string, double> bytes;
  for (const cudnn::KernelProbe& one : cudnn::kernel_probes(device, kElements)) {
    CAPTURE(one.name);
    CHECK_NOTHROW(one.call());
    CHECK(bytes.emplace(one.name, one.bytes).second);  // a name of its own
  }
  REQUIRE(cudaStreamSynchronize(device->stream.get()) == cudaSuccess);
  CHECK(bytes.size() == 34);
  CHECK(bytes.at("relu, backward") == 3 * each);                       // x, dy and dx
  CHECK(bytes.at("batch norm, NHWC") == 3 * each);                     // x twice, y
  CHECK(bytes.at("batch norm, backward, NCHW") == 5 * each);           // x and dy twice, dx
  CHECK(bytes.at("batch norm and ReLU, NCHW") == 3 * each);            // as without the ReLU
  CHECK(bytes.at("batch norm and ReLU, backward, NHWC") == 5 * each);  // the mask follows from x
  CHECK(bytes.at("batch norm, sum and ReLU, NHWC") == 4 * each);       // x twice, the term, y
  CHECK(bytes.at("batch norm, sum and ReLU, backward, NCHW") ==
        7 * each);  // x twice, dy, y; dy's mask twice, dx
  CHECK(bytes.at("fp32 to the precision") == 4.0 * kElements + each);
  CHECK(bytes.at("max pool, NHWC") == 1.25 * each + 0.5 * kElements);  // x, a quarter of y and taps
  CHECK(bytes.at("max pool, backward, NCHW") == bytes.at("max pool, NHWC"));
  CHECK(bytes.at("embedding, backward") == 8.0 * kElements + each);  // dy; sums, read and written
  CHECK(bytes.at("Adam") == 7 * 4.0 * kElements);  // gradient; value and two states, read and written
}

TEST_CASE("the bandwidth of a GPU's memory follows from its clock and its bus", "[pretended][probes]") {
  CHECK(cudnn::memory_bandwidth(0) == Approx(1.024e12));
}

}  // namespace stepcast::test
