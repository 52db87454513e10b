#include "forecast/measured/measured_memory.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <map>

#include "core/os/files.hpp"
#include "report/results/results.hpp"
#include "scenarios/experiment/experiment.hpp"
#include "tests/scenarios/scenario_text.hpp"

using namespace stepcast;

namespace {

const std::string kBatches =
    "name: memory\nmodel: resnet50\ntrace: derived\nplatform: dgx1v\nset: {platform.nodes: 8}\n"
    "strategy: {kind: synchronous}\nsweep: {workers: [8, 64], batch_per_worker: [32, 64]}\n";

/// The rows of one draw as a simulation has them, with measured memory learned.
Simulations memory_learned(const Scenario& scenario) {
  Library library;
  Simulations all;
  all.inputs = {{}};
  all.rows = {{}};
  std::vector<std::size_t> points;
  for (const Point& point : scenario.points) {
    const Experiment one = build_experiment(scenario.document, middle_values(scenario, point), library);
    Row row;
    row.set("batch_per_worker", one.plan.batch_per_worker);
    row.set("memory_bytes", one.plan.memory.total().value);
    row.set("fits", one.plan.fits);
    points.push_back(all.rows[0].size());
    all.rows[0].push_back(std::move(row));
  }
  learn_memory(scenario, points, library, all);
  return all;
}

std::string of_bytes(double bytes) {
  return "measured: [{point: {workers: 8, batch_per_worker: 32}, column: memory_bytes, value: " +
         std::to_string(bytes) + "}]\n";
}

}  // namespace

TEST_CASE("measured memory is carried over: whole to the same batch, in part to another, and fits follows",
          "[forecast]") {
  const Simulations counted = memory_learned(scenario_of(kBatches));
  CHECK(counted.memory_factors.empty());
  const auto bytes = [](const Simulations& all, std::size_t point) {
    return *all.rows[0][point].number("memory_bytes");
  };
  const Scenario scenario = scenario_of(kBatches + of_bytes(1.2 * bytes(counted, 0)));
  const Simulations all = memory_learned(scenario);
  for (std::size_t point = 0; point < 4; ++point) {
    const bool same = point_name(scenario.points[point].values).ends_with("=32");
    const double share = std::log(bytes(all, point) / bytes(counted, point)) / std::log(1.2);
    CHECK(share == Approx(same ? 1 : 0.065 * 0.065 / (0.065 * 0.065 + 0.05 * 0.05)).margin(0.005));
    CHECK(all.rows[0][point].text("fits") == "true");
  }
  const auto lines = measured_memory_lines(scenario, all);
  REQUIRE(lines.size() == 2);
  CHECK(lines.back() == "measured: memory is forecast at 1.12 to 1.20 times what is counted");
  const Simulations large = memory_learned(scenario_of(kBatches + of_bytes(8 * bytes(counted, 0))));
  CHECK(large.rows[0][0].text("fits") == "false");
  CHECK(large.rows[0][0].text("why_not").find("; measured memory says 7.") != std::string::npos);
  const auto doubt =
      measured_memory_lines(scenario_of(kBatches + of_bytes(8 * bytes(counted, 0))), large).back();
  CHECK(doubt.starts_with("warning: measured memory is 8.00 times what is counted"));
}

TEST_CASE("the errors of counted memory are those of highest likelihood for measured peaks", "[forecast]") {
  const std::string file = std::string(STEPCAST_SOURCE_DIR) + "/docs/explanation/memory-measured.csv";
  std::map<std::string, std::vector<double>> programs;
  for (const Row& row : read_csv(read_file(file), file).rows)
    programs[row.text("network") + row.text("precision") + row.text("device")].push_back(
        std::log(*row.number("measured_gb") / *row.number("rule_gb")));
  const auto log_likelihood = [&](double level, double own) {
    double sum = 0;
    for (const auto& [name, errors] : programs) {
      const double count = errors.size(), of_sum = own * own + count * level * level;
      double total = 0, squares = 0;
      for (const double one : errors) total += one, squares += one * one;
      sum -= 0.5 * ((count - 1) * std::log(own * own) + std::log(of_sum) +
                    (squares - level * level / of_sum * total * total) / (own * own));
    }
    return sum;
  };
  const double best = log_likelihood(0.065, 0.05);
  for (const double change : {-0.005, 0.005}) {
    CHECK(log_likelihood(0.065 + change, 0.05) < best);
    CHECK(log_likelihood(0.065, 0.05 + change) < best);
  }
}
