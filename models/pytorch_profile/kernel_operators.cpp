#include <algorithm>
#include <iterator>
#include <utility>

#include "models/pytorch_profile/operators.hpp"

namespace stepcast {
namespace {

/// The innermost operator of a thread at a time; -1 if there is none.
int operator_at(const std::vector<ProfileOperator>& operators, int thread, double time) {
  const auto after = std::upper_bound(operators.begin(), operators.end(), std::pair(thread, time),
                                      [](const std::pair<int, double>& at, const ProfileOperator& one) {
                                        return at < std::pair(one.thread, one.start);
                                      });
  int index = (after - operators.begin()) - 1;
  if (index >= 0 && operators[index].thread != thread) return -1;
  while (index >= 0 && operators[index].end < time) index = operators[index].parent;
  return index;
}

/// None: nothing has the correlation of the kernel. Of several, the last one in the file.
const ProfileLaunch* launch_of(const ProfileKernel& kernel, const std::vector<ProfileLaunch>& launches) {
  const auto after =
      std::upper_bound(launches.begin(), launches.end(), kernel.correlation,
                       [](std::int64_t id, const ProfileLaunch& one) { return id < one.correlation; });
  if (after == launches.begin() || std::prev(after)->correlation != kernel.correlation) return nullptr;
  return &*std::prev(after);
}

bool is_graph_launch(const std::string& call) {
  return call.starts_with("cudaGraphLaunch") || call.starts_with("cuGraphLaunch") ||
         call.starts_with("hipGraphLaunch");
}

}  // namespace

void add_cpu_work(Profile& profile) {
  profile.cpu_only = true;
  std::vector<double> own(profile.operators.size());
  for (std::size_t i = 0; i < own.size(); ++i) {
    const ProfileOperator& one = profile.operators[i];
    own[i] += one.end - one.start;
    if (one.parent >= 0) own[one.parent] -= one.end - one.start;
  }
  for (std::size_t i = 0; i < own.size(); ++i) {
    const ProfileOperator& one = profile.operators[i];
    if (one.annotation || own[i] <= 0) continue;
    profile.kernels.push_back({.name = one.name,
                               .kind = ProfileKernel::Kind::kernel,
                               .seconds = own[i] * 1e-6,
                               .host_operator = static_cast<int>(i),
                               .launched = one.start});
  }
}

void join_kernels(Profile& profile) {
  std::vector<std::pair<std::int64_t, int>> by_id;  // sorted: the first operator with an id counts
  for (std::size_t i = 0; i < profile.operators.size(); ++i) {
    const ProfileOperator& one = profile.operators[i];
    if (one.external_id > 0) by_id.emplace_back(one.external_id, i);
  }
  std::sort(by_id.begin(), by_id.end());
  for (ProfileKernel& kernel : profile.kernels) {
    const auto found = std::lower_bound(by_id.begin(), by_id.end(), std::pair(kernel.external_id, -1));
    if (found != by_id.end() && found->first == kernel.external_id) kernel.host_operator = found->second;
    if (const ProfileLaunch* launch = launch_of(kernel, profile.launches)) {
      kernel.launched = launch->start;
      kernel.in_graph = is_graph_launch(profile.names[launch->name]);
      if (kernel.host_operator < 0)
        kernel.host_operator = operator_at(profile.operators, launch->thread, launch->start);
    } else if (kernel.host_operator >= 0) {
      kernel.launched = profile.operators[kernel.host_operator].start;
    }
  }
}

}  // namespace stepcast
