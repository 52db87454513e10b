#include "forecast/noise_cost.hpp"

#include <algorithm>

namespace stepcast {
namespace {

/// Training time without the time lost to faults [s]; 0 if the scenario has no faults.
double training_seconds(const Row& row) {
  return 3600 * row.number("training_hours_with_faults").value_or(0) * row.number("useful_share").value_or(0);
}

}  // namespace

bool may_change(const Scenario& scenario, Without what) {
  if (what == Without::nothing) return false;
  const std::string key = what == Without::jitter ? "jitter" : "straggler";  // straggler_share, stragglers
  const auto gives = [&](const std::string& path) {
    return path == "noise" || path.starts_with("noise." + key);
  };
  const YamlNode* noise = scenario.document.find("noise");
  const auto has_key = [&](const auto& entry) { return entry.first.text.starts_with(key); };
  return (noise != nullptr && std::ranges::any_of(noise->entries, has_key)) ||
         std::ranges::any_of(scenario.settings, gives, &Assignment::path) ||
         std::ranges::any_of(scenario.assumptions, gives, &Assumption::key) ||
         std::ranges::any_of(scenario.sweep_keys, gives);
}

bool leave_out(Without what, Noise& noise) {
  if (what == Without::nothing) return false;
  const bool jitter = noise.jitter != Noise::Jitter::none, slow = noise.has_stragglers();
  noise.jitter = Noise::Jitter::none;
  if (what == Without::jitter) return jitter;
  noise.straggler_share = 0;
  noise.stragglers.clear();
  return slow;
}

void add_noise_losses(Row& row, const Row& with, const std::map<Without, Row>& without) {
  const double step = *with.number("step_seconds"), training = training_seconds(row);
  double before = step;
  const auto add = [&](Without what, const std::string& column, const std::string& of_training) {
    const auto found = without.find(what);
    if (found == without.end()) return;
    const double after = *found->second.number("step_seconds");
    row.set(column, before - after);
    if (training > 0) row.set(of_training, training * (before - after) / step);
    before = after;
  };
  add(Without::jitter, "jitter_seconds", "lost_to_jitter_seconds");
  add(Without::noise, "straggler_seconds", "lost_to_stragglers_seconds");
}

}  // namespace stepcast
