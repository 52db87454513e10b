#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <exception>

#include "validate/launch/launcher.hpp"

namespace stepcast {
namespace {

/// Prints why a point failed, in place of the line of progress on a terminal.
void print_failure(const std::string& point, const char* why, const RankJob& job) {
  if (isatty(2) != 0) fmt::print(stderr, "\r{:100}\r", "");
  fmt::print(stderr, "{}: {} (output of the ranks: {})\n", point, why, (job.folder / job.log).string());
}

}  // namespace

std::vector<std::string> run_points_apart(const RankJob& job, const Validation& validation,
                                          const ValidationOptions& options,
                                          const std::function<void(std::size_t index)>& before_runs) {
  std::vector<std::string> failed;
  for (std::size_t i = 0; i < validation.points.size(); ++i) {
    ValidationOptions of_point = options;
    of_point.point = validation.points[i];
    RankJob own = job;
    own.log = fmt::format("point-{}.log", validation.points[i] + 1);
    own.arguments = rank_arguments(of_point);
    own.before_stage = [&](const std::function<void()>&) {
      if (before_runs) before_runs(i);
    };
    try {
      run_ranks(own);
    } catch (const InputError&) {
      throw;
    } catch (const Interrupted&) {
      throw;
    } catch (const std::exception& error) {
      failed.push_back(validation.point(i).name);
      print_failure(failed.back(), error.what(), own);
    }
  }
  return failed;
}

RankLost points_lost(const std::vector<std::string>& failed, std::size_t points) {
  return RankLost(fmt::format("{} of {} points failed: {}", failed.size(), points, fmt::join(failed, "; ")));
}

}  // namespace stepcast
