#include <algorithm>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "models/pytorch_profile/operators.hpp"

namespace stepcast {
namespace {

using Pass = OperatorRole::Pass;

/// What threads of the host do beside issuing layers: operators that compute activations again, calls that
/// wait for the device, and what launches take beyond twice the lower quartile of their name, as they do
/// while the device's queue is full.
class Waits {
 public:
  Waits(const Profile& profile, const OperatorRoles& roles);
  /// Seconds that a thread waited in [start, end) [us].
  double in(int thread, double start, double end) const;

 private:
  using Ranges = std::map<int, std::vector<std::pair<double, double>>>;  ///< start and length, by thread
  struct Wait {
    double start = 0, before = 0;  ///< [us]; `before`: all earlier waits of the thread
  };
  static Ranges recomputed(const Profile& profile, const OperatorRoles& roles);
  std::map<int, std::vector<Wait>> threads_;
};

bool waits_for_device(const std::string& call) {
  return call.find("Synchronize") != std::string::npos || call == "cudaMemcpy" || call == "hipMemcpy" ||
         call == "hipMemcpyWithStream";
}

Waits::Ranges Waits::recomputed(const Profile& profile, const OperatorRoles& roles) {
  const auto again = [&](int index) {
    return index >= 0 && roles.of[index].work == NonLayerWork::recomputed;
  };
  Ranges all;
  for (std::size_t i = 0; i < roles.of.size(); ++i) {
    const ProfileOperator& one = profile.operators[i];
    if (again(i) && !again(one.parent)) all[one.thread].emplace_back(one.start, one.end - one.start);
  }
  return all;
}

Waits::Waits(const Profile& profile, const OperatorRoles& roles) {
  std::map<int, std::vector<double>> lengths;
  for (const ProfileLaunch& call : profile.launches) lengths[call.name].push_back(call.length);
  for (auto& [name, all] : lengths) {
    const auto quarter = all.begin() + (all.size() / 4);
    std::nth_element(all.begin(), quarter, all.end());
    std::swap(all.front(), *quarter);
  }
  const Ranges again = recomputed(profile, roles);
  const auto runs_again = [&](const ProfileLaunch& call) {
    const auto found = again.find(call.thread);
    if (found == again.end()) return false;
    const auto after =
        std::upper_bound(found->second.begin(), found->second.end(), std::pair(call.start, 1e300));
    return after != found->second.begin() && call.start < std::prev(after)->first + std::prev(after)->second;
  };
  Ranges waits = again;
  for (const ProfileLaunch& call : profile.launches) {
    const bool all = waits_for_device(profile.names[call.name]);
    const double own = all ? 0 : std::min(call.length, 2 * lengths[call.name].front());
    if (call.length > own && !runs_again(call))
      waits[call.thread].emplace_back(call.start, call.length - own);
  }
  for (auto& [thread, all] : waits) {
    std::sort(all.begin(), all.end());
    double sum = 0;
    for (const auto& [start, length] : all) {
      threads_[thread].push_back({start, sum});
      sum += length;
    }
    threads_[thread].push_back({1e300, sum});
  }
}

double Waits::in(int thread, double start, double end) const {
  const auto found = threads_.find(thread);
  if (found == threads_.end()) return 0;
  const auto before = [&](double time) {
    return std::lower_bound(found->second.begin(), found->second.end(), time,
                            [](const Wait& one, double value) { return one.start < value; })
        ->before;
  };
  return 1e-6 * (before(end) - before(start));
}

/// The beginning of a layer's pass on the host.
struct Issue {
  int thread = 0, step = 0;
  double start = 0, end = 0;  ///< [us]
  int network_operator = 0;
  bool forward = false;
  bool operator<(const Issue& other) const {
    return std::pair(thread, start) < std::pair(other.thread, other.start);
  }
};

/// Operators of layers that no other operator of a layer holds.
std::vector<Issue> issues(const Profile& profile, const std::vector<StepRange>& ranges,
                          const OperatorRoles& roles) {
  std::vector<Issue> all;
  std::vector<bool> inside(roles.of.size());
  for (std::size_t i = 0; i < roles.of.size(); ++i) {
    const ProfileOperator& one = profile.operators[i];
    const OperatorRole& role = roles.of[i];
    const bool held = one.parent >= 0 && inside[one.parent];
    inside[i] = held || role.network_operator >= 0;
    const int step = step_at(ranges, one.start);
    if (held || role.network_operator < 0 || step < 0) continue;
    all.push_back({one.thread, role.step >= 0 ? role.step : step, one.start, one.end, role.network_operator,
                   role.pass == Pass::forward});
  }
  std::sort(all.begin(), all.end());
  return all;
}

}  // namespace

void add_host_times(const Profile& profile, const std::vector<StepRange>& ranges, const OperatorRoles& roles,
                    std::vector<ProfileStep>& steps) {
  const Waits waits(profile, roles);
  const std::vector<Issue> all = issues(profile, ranges, roles);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Issue& one = all[i];
    const bool goes_on = i + 1 < all.size() && all[i + 1].thread == one.thread &&
                         all[i + 1].step == one.step && all[i + 1].forward == one.forward;
    const double end = goes_on ? all[i + 1].start : one.end;
    const double seconds = std::max(0.0, 1e-6 * (end - one.start) - waits.in(one.thread, one.start, end));
    OperatorTimes& to = steps[one.step].operators[one.network_operator].times;
    (one.forward ? to.host_forward : to.host_backward) += seconds;
  }
  for (const ProfileOperator& one : profile.operators) {
    const int step = step_at(ranges, one.start);
    const bool nested =
        one.parent >= 0 && profile.name(profile.operators[one.parent]).starts_with("Optimizer.step");
    if (step < 0 || nested || !profile.name(one).starts_with("Optimizer.step")) continue;
    steps[step].host_update +=
        std::max(0.0, 1e-6 * (one.end - one.start) - waits.in(one.thread, one.start, one.end));
  }
}

}  // namespace stepcast
