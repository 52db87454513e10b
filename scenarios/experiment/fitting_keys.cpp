#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.hpp"
#include "scenarios/experiment/experiment.hpp"
#include "strategies/registry.hpp"

namespace stepcast {
namespace {

using Changes = std::vector<Assignment>;  ///< keys that are changed together

/// `key` with the halves of `batch`, the largest first.
std::vector<Changes> smaller_batches(const std::string& key, std::int64_t batch) {
  std::vector<Changes> all;
  for (batch /= 2; batch >= 1; batch /= 2) all.push_back({assignment(key, batch)});
  return all;
}

/// `key` with 2, 4, ... up to 64.
std::vector<Changes> powers_of_two(const std::string& key) {
  std::vector<Changes> all;
  for (int value = 2; value <= 64; value *= 2) all.push_back({assignment(key, value)});
  return all;
}

/// Lists of changes, the smallest change of each list first.
std::vector<std::vector<Changes>> candidates(const YamlNode& document, const std::vector<Assignment>& values,
                                             const Experiment& experiment) {
  const Plan& plan = experiment.plan;
  const bool global =
      find_path(document, "global_batch") != nullptr ||
      std::ranges::any_of(values, [](const Assignment& one) { return one.path == "global_batch"; });
  std::vector<std::vector<Changes>> all{
      global ? smaller_batches("global_batch", std::llround(plan.samples_a_step))
             : smaller_batches("batch_per_worker", plan.batch_per_worker),
      {{assignment("strategy.recompute", true)}},
      powers_of_two("strategy.accumulation"),
      powers_of_two("strategy.micro_batches"),
      {{assignment("strategy.precision", "mixed")}},
      {{assignment("strategy.zero", 1)}, {assignment("strategy.zero", 2)}},
      powers_of_two("strategy.split"),
      powers_of_two("strategy.ways"),
      powers_of_two("strategy.tensor"),
      powers_of_two("strategy.stages")};
  if (experiment.strategy == kPlainReplicas) {
    all.emplace_back();
    for (const int stage : {1, 2, 3})
      all.back().push_back({assignment("strategy.kind", "zero"), assignment("strategy.stage", stage)});
  }
  return all;
}

/// Values with those of `changed` in place of their own.
std::vector<Assignment> with(const Changes& changed, std::vector<Assignment> values) {
  for (const Assignment& one : changed) {
    std::erase_if(values, [&](const Assignment& other) { return other.path == one.path; });
    values.push_back(one);
  }
  return values;
}

bool fits_with(const Changes& changed, const YamlNode& document, std::vector<Assignment> values,
               Library& library) {
  try {
    return build_experiment(document, with(changed, std::move(values)), library).plan.fits;
  } catch (const InputError&) {
    return false;  // the strategy does not have this key, or refuses the value
  }
}

std::string text_of(const Changes& changed) {
  std::string text;
  for (const Assignment& one : changed)
    text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", one.path, one.value.text);
  return text;
}

}  // namespace

std::vector<std::string> fitting_keys(const YamlNode& document, const std::vector<Assignment>& values,
                                      const Experiment& experiment, Library& library) {
  std::vector<std::string> keys;
  for (const std::vector<Changes>& list : candidates(document, values, experiment)) {
    const auto first = std::ranges::find_if(
        list, [&](const Changes& changed) { return fits_with(changed, document, values, library); });
    if (first != list.end()) keys.push_back(text_of(*first));
  }
  return keys;
}

}  // namespace stepcast
