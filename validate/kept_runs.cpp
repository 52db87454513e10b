#include "validate/kept_runs.hpp"

#include <algorithm>
#include <map>

namespace stepcast {

std::vector<bool> kept_runs(const std::vector<MadeRun>& runs, int wanted) {
  std::map<std::size_t, std::vector<std::size_t>> of_point;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (!runs[i].disturbed) of_point[runs[i].point].push_back(i);
  }
  std::vector<bool> kept(runs.size(), false);
  for (auto& [point, own] : of_point) {
    std::ranges::stable_sort(own, {}, [&](std::size_t i) { return runs[i].off_pace; });
    for (std::size_t k = 0; k < own.size(); ++k)
      kept[own[k]] = k < static_cast<std::size_t>(wanted) || runs[own[k]].off_pace <= kMostOffPace;
  }
  return kept;
}

}  // namespace stepcast
