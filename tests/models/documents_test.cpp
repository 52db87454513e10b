#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>
#include <sstream>

#include "models/cost/cost.hpp"
#include "models/cost/memory.hpp"
#include "read_text.hpp"

using namespace stepcast;

namespace {

/// Rows of docs/reference/shipped-networks.csv, without its heads.
std::vector<std::vector<std::string>> documented() {
  std::ifstream in(std::string(STEPCAST_SOURCE_DIR) + "/docs/reference/shipped-networks.csv");
  std::vector<std::vector<std::string>> rows;
  std::string line;
  for (std::getline(in, line); std::getline(in, line);) {
    std::istringstream stream(line);
    std::vector<std::string> cells;
    for (std::string cell; std::getline(stream, cell, ',');) cells.push_back(cell);
    rows.push_back(cells);
  }
  return rows;
}

/// The number as written, and half of its last digit.
Approx figure_in(const std::string& text) {
  const auto point = text.find('.');
  const double digits = point == std::string::npos ? 0 : static_cast<double>(text.size() - point - 1);
  return Approx(std::stod(text)).margin(0.5001 * std::pow(10, -digits)).epsilon(0);
}

double gigabytes(const Model& model, MemoryOptions options) {
  return training_memory(model, options).total().value / 1e9;
}

}  // namespace

TEST_CASE("docs/reference/shipped-networks.csv gives the counted figures of every shipped network",
          "[models]") {
  const auto rows = documented();
  for (const auto& row : rows) {
    REQUIRE(row.size() == 9);
    CAPTURE(row[0]);
    const Model model = shipped_model(row[0]);
    CHECK(trainable_parameters(model) == std::stoll(row[2]));
    CHECK(gradient_tensors(model) == std::stoll(row[3]));
    CHECK(all_parameters(model) == std::stoll(row[4]));
    CHECK(forward_flops(model).value / 1e9 == figure_in(row[5]));
    CHECK(training_flops(model).value / 1e9 == figure_in(row[6]));
    CHECK(gigabytes(model, {}) == figure_in(row[7]));
    MemoryOptions lean;
    lean.activations = MemoryOptions::Activations::in_place;
    lean.error_signals = MemoryOptions::ErrorSignals::freed;
    CHECK(gigabytes(model, lean) == figure_in(row[8]));
  }
  for (const std::string& name : names_in(std::string(STEPCAST_SOURCE_DIR) + "/models")) {
    INFO(name);
    CHECK(std::any_of(rows.begin(), rows.end(), [&](const auto& row) { return row[0] == name; }));
  }
}
