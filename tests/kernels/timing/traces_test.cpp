#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>

#include "models/layer_times/trace.hpp"
#include "models/loader.hpp"

using namespace stepcast;

TEST_CASE("every committed CPU trace fits its model, and its sum of medians fits the step or is flagged",
          "[kernels][traces]") {
  const std::filesystem::path models = std::filesystem::path(STEPCAST_SOURCE_DIR) / "models";
  int traces = 0;
  for (const auto& entry : std::filesystem::directory_iterator(models / "traces")) {
    const std::string stem = entry.path().stem().string();
    if (!stem.ends_with("-cpu")) continue;
    INFO(stem);
    const YamlNode node = read_yaml(entry.path());
    const Trace trace = read_trace(YamlValue(node, ""));
    CHECK(trace.name == stem);
    CHECK(trace.kind == Trace::Kind::captured);
    CHECK_NOTHROW(check_fits(trace, load_model(models, trace.model)));
    if (trace.step_seconds.empty()) {  // a joined trace has no step of its own
      CHECK(!trace.flags.empty());
      continue;
    }
    CHECK(trace.step_seconds.size() >= 8);
    const double ratio = step_time(trace) / median(trace.step_seconds);
    CHECK((std::abs(ratio - 1) <= 0.02 || !trace.flags.empty()));
    ++traces;
  }
  CHECK(traces >= 11);
}
