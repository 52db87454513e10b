#include "strategies/parameter_server/update_policy.hpp"

#include <algorithm>
#include <utility>

namespace stepcast {

bool is_update(const Message& request) {
  return request.buffer.array != Array::none;
}

bool wants_answer(const Message& request) {
  return request.buffer.array != Array::gradients;
}

UpdatePolicy::UpdatePolicy(ServerRules rules) : rules_(std::move(rules)) {
  for (const int client : rules_.clients) clocks_[client] = 0;
}

const UpdatePolicy::Outcome& UpdatePolicy::arrived(const Message& request) {
  Outcome& outcome = outcome_;
  std::vector<int> answers = std::move(outcome.answers);
  answers.clear();
  outcome = {.answers = std::move(answers)};
  switch (rules_.mode) {
    case ServerRules::Mode::asynchronous:
      arrived_asynchronous(request, outcome);
      break;
    case ServerRules::Mode::synchronous:
      arrived_synchronous(request, outcome);
      break;
    case ServerRules::Mode::bounded_staleness:
      arrived_bounded(request, outcome);
      break;
  }
  return outcome;
}

void UpdatePolicy::arrived_asynchronous(const Message& request, Outcome& outcome) {
  if (is_update(request)) {
    outcome.accepted = outcome.applied = true;
    outcome.staleness = version_++ - request.value;
  }
  if (wants_answer(request)) outcome.answers.push_back(request.from);
}

void UpdatePolicy::arrived_synchronous(const Message& request, Outcome& outcome) {
  const bool late = request.value < version_;
  if (late || version_ >= rules_.versions) {
    outcome.dropped = is_update(request);
    outcome.answers.push_back(request.from);
    return;
  }
  outcome.accepted = true;
  waiting_.push_back(request.from);
  if (++taken_ < rules_.take) return;
  outcome.applied = true;
  outcome.answers = std::exchange(waiting_, {});
  taken_ = 0;
  ++version_;
}

void UpdatePolicy::arrived_bounded(const Message& request, Outcome& outcome) {
  if (is_update(request)) {
    outcome.accepted = outcome.applied = true;
    outcome.staleness = version_++ - request.value;
    ++clocks_.at(request.from);
  }
  if (wants_answer(request)) waiting_.push_back(request.from);
  const int slowest = std::min_element(clocks_.begin(), clocks_.end(), [](const auto& a, const auto& b) {
                        return a.second < b.second;
                      })->second;
  const auto may_go = [&](int client) { return clocks_.at(client) - slowest <= rules_.bound; };
  const auto held = std::stable_partition(waiting_.begin(), waiting_.end(), may_go);
  outcome.answers.assign(waiting_.begin(), held);
  waiting_.erase(waiting_.begin(), held);
  for (const int client : outcome.answers) lead_ = std::max(lead_, clocks_.at(client) - slowest);
}

}  // namespace stepcast
