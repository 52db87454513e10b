#include "models/layer_times/compression_times.hpp"

#include <catch2/catch.hpp>

#include "models/cost/device.hpp"
#include "models/cost/roofline.hpp"
#include "read_text.hpp"

using namespace stepcast;

namespace {

CompressionTrace compressed_trace() {
  CompressionTrace trace{
      "here", "cpu", "2026-11-21", "stepcast capture-compression", "measured", 1, 4096, 64, 0.01, {}, {}};
  trace.copy = {{0.5, 0.5, 0.5}, {1e-10, 2e-10, 3e-10}};
  for (const auto kind : {Compression::one_bit, Compression::fp16, Compression::top_k}) {
    const auto factor = static_cast<double>(kind);
    trace.codecs.push_back(
        {kind, {{0.5, 0.5, 0.5}, {factor * 1e-9, factor * 1e-9, 1}}, {{0.25}, {factor * 1e-10}}});
  }
  return trace;
}

CompressionTrace read_text(const std::string& text) {
  const YamlNode node = parse_yaml(text, "c.yaml");
  return read_compression(YamlValue(node, ""));
}

}  // namespace

TEST_CASE("times of compression survive writing and reading", "[models]") {
  const std::string text = to_yaml(compressed_trace());
  CHECK(to_yaml(read_text(text)) == text);
}

TEST_CASE("the cost of compression is the median of the CPU times", "[models]") {
  const CompressionCost cost = cost_of(compressed_trace(), Compression::fp16);
  CHECK(cost.quantize == Approx(2e-9));
  CHECK(cost.restore == Approx(2e-10));
  CHECK(cost_of(compressed_trace(), Compression::none).quantize == 0);
}

TEST_CASE("a derived cost of compression keeps its ratio to a copy", "[models]") {
  Device device;
  device.memory_bandwidth = {500e9};
  const CompressionCost cost = derived_cost(compressed_trace(), Compression::one_bit, device);
  const double copy = 2 / (kStreamingShare * 500e9);
  CHECK(cost.quantize / copy == Approx(1e-9 / 2e-10));
  CHECK(cost.restore / copy == Approx(1e-10 / 2e-10));
}

TEST_CASE("a file of compression times must have every kernel", "[models][errors]") {
  std::string text = to_yaml(compressed_trace());
  const std::string last = "  - name: top_k";
  std::string unknown = text;
  unknown.replace(unknown.find("top_k"), 5, "top_q");
  CHECK_THROWS_WITH(read_text(unknown),
                    Catch::Contains("codecs[2].name: expected one of one_bit, fp16, top_k, got \"top_q\""));
  text.erase(text.find(last));
  CHECK_THROWS_WITH(read_text(text), Catch::Contains("codecs: expected one_bit, fp16 and top_k"));
}

TEST_CASE("the committed times of compression can be read", "[models]") {
  const YamlNode node = read_yaml(STEPCAST_SOURCE_DIR "/models/compression/cpu.yaml");
  const CompressionTrace trace = read_compression(YamlValue(node, ""));
  for (const auto kind : {Compression::one_bit, Compression::fp16, Compression::top_k}) {
    CHECK(cost_of(trace, kind).quantize > 0);
    CHECK(cost_of(trace, kind).restore > 0);
  }
}
