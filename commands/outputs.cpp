#include "commands/outputs.hpp"

#include "report/atomic_file.hpp"
#include "report/csv.hpp"
#include "report/json_lines.hpp"
#include "report/results_plots.hpp"

namespace stepcast {

namespace {

/// What an earlier run may have left in the folder and this one need not make: it would belong to other
/// results.
std::vector<std::string> left_by_others() {
  std::vector<std::string> left{"published.csv", "sensitivity.csv", "timeline.json"};
  for (const std::string plot : {"scaling", "breakdown", "training", "campaign", "sensitivity"}) {
    for (const char* type : {".gp", ".svg", ".png"}) left.push_back(plot + type);
  }
  return left;
}

}  // namespace

std::vector<std::string> write_outputs(const std::filesystem::path& folder, const Outputs& outputs,
                                       const Manifest& manifest, bool plots) {
  const std::string& scenario = outputs.results.scenario;
  std::error_code error;
  for (const std::string& left : left_by_others()) std::filesystem::remove(folder / left, error);
  write_atomically(folder / "results.csv", to_csv(outputs.results));
  write_atomically(folder / "results.jsonl", to_json_lines(outputs.results));
  if (!outputs.published.empty()) {
    write_atomically(folder / "published.csv", to_csv(to_results(scenario, outputs.published)));
  }
  if (!outputs.sensitivity.empty()) {
    const auto rows =
        sensitivity_results(scenario, outputs.sensitive_point, outputs.sensitive_column, outputs.sensitivity);
    write_atomically(folder / "sensitivity.csv", to_csv(rows));
  }
  write_atomically(folder / "manifest.json", to_json(manifest));
  return plots ? draw_results(folder) : std::vector<std::string>{};
}

}  // namespace stepcast
