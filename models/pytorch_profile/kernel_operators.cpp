#include <algorithm>

#include "models/pytorch_profile/operators.hpp"

namespace stepcast {
namespace {

/// The innermost operator of a thread at a time; -1 if there is none.
int operator_at(const std::vector<ProfileOperator>& operators, int thread, double time) {
  const auto after = std::upper_bound(operators.begin(), operators.end(), std::pair(thread, time),
                                      [](const std::pair<int, double>& at, const ProfileOperator& one) {
                                        return at < std::pair(one.thread, one.start);
                                      });
  int index = static_cast<int>(after - operators.begin()) - 1;
  if (index >= 0 && operators[static_cast<std::size_t>(index)].thread != thread) return -1;
  while (index >= 0 && operators[static_cast<std::size_t>(index)].end < time)
    index = operators[static_cast<std::size_t>(index)].parent;
  return index;
}

}  // namespace

void add_cpu_work(Profile& profile) {
  profile.cpu_only = true;
  std::vector<double> own(profile.operators.size());
  for (std::size_t i = 0; i < own.size(); ++i) {
    const ProfileOperator& one = profile.operators[i];
    own[i] += one.end - one.start;
    if (one.parent >= 0) own[static_cast<std::size_t>(one.parent)] -= one.end - one.start;
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
  std::unordered_map<std::int64_t, int> by_id;
  for (std::size_t i = 0; i < profile.operators.size(); ++i) {
    const ProfileOperator& one = profile.operators[i];
    if (one.external_id > 0) by_id.try_emplace(one.external_id, static_cast<int>(i));
  }
  for (ProfileKernel& kernel : profile.kernels) {
    const auto found = by_id.find(kernel.external_id);
    if (found != by_id.end()) kernel.host_operator = found->second;
    const auto launch = profile.launches.find(kernel.correlation);
    if (launch != profile.launches.end()) {
      kernel.launched = launch->second.start;
      if (kernel.host_operator < 0)
        kernel.host_operator = operator_at(profile.operators, launch->second.thread, launch->second.start);
    } else if (kernel.host_operator >= 0) {
      kernel.launched = profile.operators[static_cast<std::size_t>(kernel.host_operator)].start;
    }
  }
}

}  // namespace stepcast
