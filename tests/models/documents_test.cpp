#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>
#include <sstream>

#include "models/cost/cost.hpp"
#include "models/cost/memory.hpp"
#include "read_text.hpp"

using namespace stepcast;

namespace {

/// Cells of a row of a Markdown table, without blanks and back-ticks; empty for other lines.
std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  if (line.empty() || line.front() != '|') return cells;
  std::istringstream stream(line.substr(1));
  for (std::string cell; std::getline(stream, cell, '|');) {
    std::erase_if(cell, [](char c) { return c == ' ' || c == '`'; });
    cells.push_back(cell);
  }
  return cells;
}

/// Rows of the tables in docs/reference/shipped-networks.md.
std::vector<std::vector<std::string>> documented() {
  std::ifstream in(std::string(STEPCAST_SOURCE_DIR) + "/docs/reference/shipped-networks.md");
  std::vector<std::vector<std::string>> rows;
  for (std::string line; std::getline(in, line);) {
    const auto cells = cells_of(line);
    if (cells.size() == 9 && cells[2].find_first_of("0123456789") == 0) rows.push_back(cells);
  }
  return rows;
}

std::int64_t count_in(std::string text) {
  std::erase(text, ',');
  return std::stoll(text);
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

TEST_CASE("docs/reference/shipped-networks.md gives the counted figures of every shipped network",
          "[models]") {
  const auto rows = documented();
  for (const auto& row : rows) {
    CAPTURE(row[0]);
    const Model model = shipped_model(row[0]);
    CHECK(trainable_parameters(model) == count_in(row[2]));
    CHECK(gradient_tensors(model) == count_in(row[3]));
    CHECK(all_parameters(model) == count_in(row[4]));
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
