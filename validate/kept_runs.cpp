#include "validate/kept_runs.hpp"

#include <algorithm>
#include <map>

namespace stepcast {

std::vector<std::size_t> unfinished_points(const std::vector<MadeRun>& runs, std::size_t points,
                                           const Chances& chances) {
  std::vector<int> good(points, 0), undisturbed(points, 0), made(points, 0);
  for (const MadeRun& run : runs) {
    ++made[run.point];
    undisturbed[run.point] += run.disturbed ? 0 : 1;
    good[run.point] += !run.disturbed && run.off_pace <= kMostOffPace ? 1 : 0;
  }
  std::vector<std::size_t> unfinished;
  for (std::size_t i = 0; i < points; ++i) {
    if (good[i] < chances.wanted && undisturbed[i] < chances.most_undisturbed && made[i] < chances.most)
      unfinished.push_back(i);
  }
  return unfinished;
}

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
