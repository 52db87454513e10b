#include <algorithm>
#include <numeric>
#include <string_view>
#include <utility>

#include "models/pytorch_profile/operators.hpp"

namespace stepcast {
namespace {

constexpr int kMostMissed = 1000;  // nodes without an operator; each takes a look at the whole forward pass

bool is_wrapper(const std::string& name) {
  return name.starts_with("autograd::engine::evaluate_function");
}

bool is_node(const std::string& name) {
  return name.find("AccumulateGrad") == std::string::npos &&
         (is_wrapper(name) ||
          (name.find("::") == std::string::npos && name.find("Backward") != std::string::npos));
}

/// True if `whole` is the range in which autograd runs the node `one`: "autograd::engine::evaluate_function:
/// NODE".
bool runs_node(const Profile& profile, const ProfileOperator& whole, const ProfileOperator& one) {
  const std::string_view name = profile.name(whole);
  return is_wrapper(profile.name(whole)) && name.ends_with(": " + profile.name(one));
}

/// True if an operator that starts after another one is a part of it. In a profile of whole microseconds a
/// part may end just after the whole, an operator may start just before the one before it ends, and a node
/// that takes no microsecond may start when or just after its range ends.
bool is_part(const Profile& profile, const ProfileOperator& one, const ProfileOperator& whole) {
  if (one.thread != whole.thread) return false;
  if (one.start <= whole.end + 1 && runs_node(profile, whole, one)) return true;
  const std::string& name = profile.name(one);
  const bool of_dropout = name == "aten::mul" || name == "aten::div_" || name == "aten::bernoulli_";
  if (one.start <= whole.end + 1 && of_dropout && profile.name(whole) == "aten::dropout") return true;
  if (one.start >= whole.end) return false;
  return one.end <= whole.end || 2 * (whole.end - one.start) > one.end - one.start;
}

/// Operators of one step that an optimizer's range or a node of the backward pass does not hold, and the
/// outermost nodes, in order of time.
std::vector<std::vector<int>> operators_of_steps(const Profile& profile,
                                                 const std::vector<StepRange>& ranges) {
  std::vector<std::vector<int>> steps(ranges.size());
  std::vector<bool> hidden(profile.operators.size());  // what the operator holds
  for (std::size_t i = 0; i < hidden.size(); ++i) {
    const ProfileOperator& one = profile.operators[i];
    const bool inside = one.parent >= 0 && hidden[one.parent];
    const std::string& name = profile.name(one);
    const bool other = name.starts_with("Optimizer.") || name.find("AccumulateGrad") != std::string::npos;
    hidden[i] = inside || other || is_node(name);
    const int step = step_at(ranges, one.start);
    if (step >= 0 && !inside && !one.annotation && !other) steps[step].push_back(i);
  }
  for (std::vector<int>& step : steps) {
    std::stable_sort(step.begin(), step.end(),
                     [&](int a, int b) { return profile.operators[a].start < profile.operators[b].start; });
  }
  return steps;
}

/// A forward pass and its backward pass, in order of time.
struct StepOperators {
  std::vector<int> forward;
  std::vector<int> nodes;  ///< wrappers, or nodes without one
};

/// The passes of a step, one pair for each micro-batch. A few operators between nodes, such as a sum of
/// gradients, are no forward pass: all micro-batches have the same network.
std::vector<StepOperators> rounds_of(const Profile& profile, const std::vector<int>& step) {
  std::vector<StepOperators> rounds(1);
  std::vector<int> between;
  for (const int index : step) {
    if (!is_node(profile.name(profile.operators[index]))) {
      between.push_back(index);
      continue;
    }
    if (!rounds.back().nodes.empty() && 2 * between.size() > rounds.front().forward.size())
      rounds.emplace_back();
    if (rounds.back().nodes.empty()) {
      rounds.back().forward = between;
      std::sort(rounds.back().forward.begin(), rounds.back().forward.end());
    }
    rounds.back().nodes.push_back(index);
    between.clear();
  }
  return rounds;
}

class Numbering {
 public:
  explicit Numbering(Profile& profile) : profile_(profile) {}

  void number(const StepOperators& step) {
    auto end = step.forward.end();
    int missed = 0;
    for (const int node : step.nodes) {
      const std::string word = operator_word(profile_.name(at(node)));
      auto found = end;
      while (found != step.forward.begin() && operator_word(profile_.name(at(*std::prev(found)))) != word)
        --found;
      if (found == step.forward.begin()) {
        if (++missed > kMostMissed) return;
        continue;
      }
      const int forward = outermost(*std::prev(found), word);
      end = std::lower_bound(step.forward.begin(), step.forward.end(), forward);
      ++next_;
      at(forward).sequence = next_;
      at(forward).forward_thread = 0;
      mark(node);
    }
  }

 private:
  ProfileOperator& at(int index) { return profile_.operators[index]; }

  /// "aten::convolution" holds "aten::_convolution", which has the same word.
  int outermost(int index, const std::string& word) {
    int result = index;
    for (int parent = at(index).parent; parent >= 0; parent = at(parent).parent) {
      if (operator_word(profile_.name(at(parent))) == word) result = parent;
    }
    return result;
  }

  /// A node and the node inside its wrapper.
  void mark(int node) {
    for (const int index : {node, node + 1}) {
      if (index >= std::ssize(profile_.operators)) return;
      if (index != node && (at(index).parent != node || !is_node(profile_.name(at(index))))) return;
      at(index).sequence = next_;
      at(index).forward_thread = 1;
    }
  }

  Profile& profile_;
  std::int64_t next_ = 0;
};

/// Sorts by thread and start, an outer operator before its parts. The sort of indices takes little memory
/// beside the operators.
void sort_by_time(std::vector<ProfileOperator>& operators) {
  std::vector<int> order(operators.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int left, int right) {
    const ProfileOperator &a = operators[left], &b = operators[right];
    if (a.thread != b.thread) return a.thread < b.thread;
    if (a.start != b.start) return a.start < b.start;
    if (a.end != b.end) return a.end > b.end;
    if (a.annotation != b.annotation) return a.annotation;
    return a.external_id < b.external_id;
  });
  for (std::size_t i = 0; i < order.size(); ++i) {  // each cycle of the permutation once
    std::size_t to = i;
    while (static_cast<std::size_t>(order[to]) != i) {
      const std::size_t from = order[to];
      std::swap(operators[to], operators[from]);
      order[to] = to;
      to = from;
    }
    order[to] = to;
  }
}

}  // namespace

void find_parents(Profile& profile) {
  std::vector<ProfileOperator>& operators = profile.operators;
  sort_by_time(operators);
  std::vector<int> open;
  for (std::size_t i = 0; i < operators.size(); ++i) {
    ProfileOperator& one = operators[i];
    while (!open.empty() && !is_part(profile, one, operators[open.back()])) open.pop_back();
    if (!open.empty()) one.parent = open.back();
    open.push_back(i);
  }
}

void number_operators(Profile& profile) {
  const auto numbered = [](const ProfileOperator& one) { return one.sequence >= 0; };
  if (std::any_of(profile.operators.begin(), profile.operators.end(), numbered)) return;
  const std::vector<StepRange> ranges = step_ranges(profile);
  Numbering numbering(profile);
  for (const std::vector<int>& step : operators_of_steps(profile, ranges)) {
    for (const StepOperators& round : rounds_of(profile, step)) numbering.number(round);
  }
}

}  // namespace stepcast
