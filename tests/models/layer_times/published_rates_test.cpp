#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <sstream>

#include "models/cost/roofline.hpp"
#include "read_text.hpp"

using namespace stepcast;

namespace {

const std::string kSources = STEPCAST_SOURCE_DIR;

/// A row of the documented table, from a row of models/measured/rates.yaml.
std::string rate_row(const YamlMap& row) {
  KernelChoice choice;
  choice.precision = precision_words().read(row.at("precision", ""));
  choice.layout = layout_words().read(row.at("layout", ""));
  const std::string model = row.at("model", "").text(), device = row.at("device", "").text();
  const std::int64_t batch = row.at("batch", "").integer(1, 10'000);
  const Seconds step = roofline_step(shipped_model(model), batch,
                                     with_kernels(load_device(kSources + "/models", device), choice), 1);
  const double published = row.at("rate", "").number(0), rule = batch / step.value;
  return fmt::format("| `{}` | {} | `{}` | {} | `{}` | {:.1f} | {:.1f} | {:+.0f} % |", model, batch, device,
                     row.at("precision", "").text(), row.at("layout", "").text(), published, rule,
                     100 * (rule / published - 1));
}

}  // namespace

TEST_CASE("docs/notes/2026-11-derived-rule.md compares convolutions in groups with published rates",
          "[models]") {
  std::stringstream page;
  page << std::ifstream(kSources + "/docs/notes/2026-11-derived-rule.md").rdbuf();
  const YamlNode node = read_yaml(kSources + "/models/measured/rates.yaml");
  for (const YamlValue& value : YamlValue(node, "").map({"rows"}).at("rows", "").list()) {
    const std::string row =
        rate_row(value.map({"model", "batch", "precision", "layout", "device", "rate", "source"}));
    CAPTURE(row);
    CHECK(page.str().find(row) != std::string::npos);
  }
}
