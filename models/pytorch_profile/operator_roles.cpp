#include <algorithm>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "models/pytorch_profile/operators.hpp"

namespace stepcast {
namespace {

using Pass = OperatorRole::Pass;
constexpr std::string_view kRange = "autograd::engine::evaluate_function";

/// The operator itself and the operators and ranges around it.
struct Context {
  std::optional<NonLayerWork> work;  ///< known from a range or an operator around it
  int root = -1;                     ///< outermost operator that is not an annotation
  int wrapper = -1;                  ///< "autograd::engine::evaluate_function: ..."
  int node = -1;                     ///< node of the backward pass
  bool recomputed = false;           ///< runs a layer of the forward pass again, inside a node
};

std::size_t at(int index) {
  return index;
}

bool starts(const std::string& text, std::string_view with) {
  return text.starts_with(with);
}

bool accumulates(const std::string& name) {
  return name.find("AccumulateGrad") != std::string::npos;
}

std::optional<NonLayerWork> non_layer_work_of_annotation(const std::string& name) {
  if (starts(name, "Optimizer.step")) return NonLayerWork::optimizer;
  if (starts(name, "Optimizer.zero_grad")) return NonLayerWork::zero_grad;
  if (starts(name, "nccl:")) return NonLayerWork::communication;
  if (is_sharding(name)) return NonLayerWork::sharding;
  return {};
}

std::optional<NonLayerWork> non_layer_work_of_operator(const std::string& name) {
  if (name.find("AccumulateGrad") != std::string::npos) return NonLayerWork::accumulation;
  if (starts(name, "torch.distributed.ddp")) return NonLayerWork::buckets;
  if (starts(name, "c10d::") || starts(name, "record_param_comms")) return NonLayerWork::communication;
  if (starts(name, "aten::_foreach_") || starts(name, "aten::_fused_adam") ||
      starts(name, "aten::_fused_sgd") || starts(name, "aten::_amp_"))
    return NonLayerWork::optimizer;
  if (is_sharding(name)) return NonLayerWork::sharding;
  return {};
}

/// Finds the role of every operator: its layer and pass, or its other part in the step.
class RoleFinder {
 public:
  RoleFinder(const Profile& profile, const std::vector<StepRange>& ranges)
      : profile_(profile), ranges_(ranges) {}
  OperatorRoles find(std::vector<ProfileStep>& steps);

 private:
  struct StepState {
    std::vector<std::pair<double, int>> roots;  ///< start and operator of the forward pass, later in order
    std::vector<int> operator_of_root;          ///< index into the step's operators, for each of `roots`
    std::vector<double> nodes;                  ///< starts of the nodes of the backward pass
    double backward_end = -1;
  };

  const std::string& name(int index) const { return profile_.name(profile_.operators[at(index)]); }
  int step_of(int index) const { return step_at(ranges_, profile_.operators[at(index)].start); }
  bool is_node(const ProfileOperator& one) const { return one.forward_thread > 0 && one.sequence >= 0; }
  void find_contexts();
  void list_forward();
  void join_nodes();
  int forward_operator(int node) const;
  bool is_of_sharding(int node) const;
  void list_operators(std::vector<ProfileStep>& steps);
  void assign(int index, OperatorRoles& roles);
  OperatorRole role_in_node(int index, const OperatorRoles& roles);
  OperatorRole role_of_loose(int index, const OperatorRoles& roles) const;
  bool scales(int root) const;
  int network_operator(int step, int root) const;
  void note_output(int node);
  void note_parameter(int index);

  const Profile& profile_;
  const std::vector<StepRange>& ranges_;
  std::vector<Context> contexts_;
  std::unordered_map<std::int64_t, std::vector<int>> forward_by_sequence_;
  std::unordered_map<std::int64_t, std::vector<int>> sharding_by_sequence_;  ///< views that FSDP takes
  std::unordered_set<int> sharding_nodes_;
  std::unordered_map<int, int> forward_root_;  ///< of each node of the backward pass
  std::vector<StepState> states_;
  std::vector<ProfileStep>* steps_ = nullptr;
  std::unordered_map<int, int> products_;   ///< products seen in each node
  std::unordered_map<int, int> last_node_;  ///< by thread
  bool optimizer_marked_ = false;
  bool pipelined_ = false;  ///< a backward pass ran in a later step than its forward pass
  bool wrapped_ = false;    ///< the profile has a range around each "AccumulateGrad"
};

void RoleFinder::find_contexts() {
  const std::set<int> recomputing = recomputing_nodes(profile_, ranges_);
  contexts_.resize(profile_.operators.size());
  for (std::size_t i = 0; i < contexts_.size(); ++i) {
    const ProfileOperator& one = profile_.operators[i];
    const int index = i;
    Context context = one.parent >= 0 ? contexts_[at(one.parent)] : Context{};
    const std::string& text = name(index);
    const auto work = one.annotation ? non_layer_work_of_annotation(text) : non_layer_work_of_operator(text);
    if (!context.work) context.work = work;
    if (work == NonLayerWork::optimizer && one.annotation) optimizer_marked_ = true;
    if (!one.annotation) {
      if (context.root < 0) context.root = index;
      const bool wrapper = starts(text, kRange);
      wrapped_ = wrapped_ || (wrapper && accumulates(text));
      if (wrapper && context.wrapper < 0) context.wrapper = index;
      if (!wrapper && is_node(one) && context.node < 0) context.node = index;
      const bool forward = !wrapper && !is_node(one) && (one.sequence >= 0 || is_forward_layer(text));
      if (forward && (recomputing.contains(context.node) || recomputing.contains(context.wrapper)))
        context.recomputed = true;
    }
    contexts_[i] = context;
  }
}

void RoleFinder::list_forward() {
  for (std::size_t i = 0; i < contexts_.size(); ++i) {
    const ProfileOperator& one = profile_.operators[i];
    const Context& context = contexts_[i];
    if (one.sequence < 0 || is_node(one) || context.wrapper >= 0 || context.node >= 0) continue;
    if (context.work == NonLayerWork::sharding) sharding_by_sequence_[one.sequence].push_back(i);
    if (!context.work) forward_by_sequence_[one.sequence].push_back(i);
  }
}

/// The operator of the forward pass whose gradient a node computes; -1 if there is none.
int RoleFinder::forward_operator(int node) const {
  const ProfileOperator& one = profile_.operators[at(node)];
  const auto found = forward_by_sequence_.find(one.sequence);
  if (found == forward_by_sequence_.end()) return -1;
  const std::string word = operator_word(name(node));
  int last = -1;
  for (const int candidate : found->second) {
    const ProfileOperator& forward = profile_.operators[at(candidate)];
    if (forward.start > one.start) continue;
    if (operator_word(name(candidate)) == word) return candidate;
    if (last < 0 || forward.start >= profile_.operators[at(last)].start) last = candidate;
  }
  return last;
}

/// True for the node of a view that FSDP took of its flat parameter: it gathers gradients.
bool RoleFinder::is_of_sharding(int node) const {
  const auto found = sharding_by_sequence_.find(profile_.operators[at(node)].sequence);
  if (found == sharding_by_sequence_.end()) return false;
  const std::string word = operator_word(name(node));
  return std::any_of(found->second.begin(), found->second.end(),
                     [&](int one) { return operator_word(name(one)) == word; });
}

void RoleFinder::join_nodes() {
  for (std::size_t i = 0; i < contexts_.size(); ++i) {
    const int index = i;
    const Context& context = contexts_[i];
    if (context.work || (context.node != index && context.wrapper != index)) continue;
    const int step = step_of(index);
    if (step < 0 || profile_.operators[i].sequence < 0) continue;
    if (is_of_sharding(index)) {
      sharding_nodes_.insert(index);
      continue;
    }
    const int forward = forward_operator(index);
    if (forward < 0) continue;
    const int root = contexts_[at(forward)].root;
    const int own = step_of(root);
    if (own < 0) continue;
    pipelined_ = pipelined_ || own != step;
    forward_root_[index] = root;
    states_[at(own)].roots.emplace_back(profile_.operators[at(root)].start, root);
    states_[at(own)].nodes.push_back(profile_.operators[i].start);
    states_[at(step)].backward_end = std::max(states_[at(step)].backward_end, profile_.operators[i].end);
  }
}

/// True for an operator that multiplies or divides one number, as GradScaler and micro-batches do with a
/// loss.
bool RoleFinder::scales(int root) const {
  const std::string word = operator_word(name(root));
  const std::vector<Shape>& shapes = profile_.shapes_of(profile_.operators[at(root)]);
  return (word == "mul" || word == "div") && (shapes.empty() || shapes.front().empty());
}

bool is_loss(const NetworkOperator& one) {
  return one.kind == "softmax_cross_entropy" || one.kind == "sigmoid_cross_entropy" ||
         one.kind == "mean_squared_error";
}

/// The operators of each step in forward order. Views have no layer of their own: their work belongs to the
/// operator before them. A forward pass after a backward pass is that of another micro-batch.
void RoleFinder::list_operators(std::vector<ProfileStep>& steps) {
  for (std::size_t s = 0; s < states_.size(); ++s) {
    auto& roots = states_[s].roots;
    std::sort(roots.begin(), roots.end());
    roots.erase(std::unique(roots.begin(), roots.end()), roots.end());
    std::vector<double>& nodes = states_[s].nodes;
    std::sort(nodes.begin(), nodes.end());
    std::ptrdiff_t before = 0;
    int round = 0;
    for (const auto& [start, root] : roots) {
      const auto now = std::lower_bound(nodes.begin(), nodes.end(), start) - nodes.begin();
      if (now > before) ++round;
      before = now;
      const std::string kind = operator_kind(name(root));
      if (kind != "view" &&
          !(scales(root) && !steps[s].operators.empty() && is_loss(steps[s].operators.back())))
        steps[s].operators.push_back({.name = name(root),
                                      .kind = kind,
                                      .shapes = profile_.shapes_of(profile_.operators[at(root)]),
                                      .times = {},
                                      .round = round,
                                      .region = starts(name(root), "CompiledFunction") ||
                                                starts(name(root), "Torch-Compiled Region")});
      states_[s].operator_of_root.push_back(std::max<int>(0, std::ssize(steps[s].operators) - 1));
    }
    if (steps[s].operators.empty()) states_[s].operator_of_root.assign(roots.size(), -1);
  }
}

/// Index of the network's operator that begins at a root, or else of the next one, or else of the last one.
int RoleFinder::network_operator(int step, int root) const {
  const StepState& state = states_[at(step)];
  if (state.roots.empty()) return -1;
  const auto next = std::lower_bound(state.roots.begin(), state.roots.end(),
                                     std::pair(profile_.operators[at(root)].start, root));
  if (next == state.roots.end()) return state.operator_of_root.back();
  return state.operator_of_root[next - state.roots.begin()];
}

bool is_product(const std::string& word) {
  return word == "mm" || word == "bmm" || word == "addmm" || word == "matmul" || word == "baddbmm" ||
         word == "linear";
}

OperatorRole RoleFinder::role_in_node(int index, const OperatorRoles& roles) {
  const Context& context = contexts_[at(index)];
  const int node = context.node >= 0 ? context.node : context.wrapper;
  if (context.recomputed) return {.work = NonLayerWork::recomputed};
  if (sharding_nodes_.contains(context.node) || sharding_nodes_.contains(context.wrapper))
    return {.work = NonLayerWork::sharding};
  auto joined = forward_root_.find(node);
  if (joined == forward_root_.end() && context.wrapper >= 0) joined = forward_root_.find(context.wrapper);
  if (joined == forward_root_.end()) return {.work = NonLayerWork::unknown, .outside = pipelined_};
  const int step = step_of(joined->second);
  OperatorRole role{
      .network_operator = network_operator(step, joined->second), .pass = Pass::backward_data, .step = step};
  if (role.network_operator < 0) return {.work = NonLayerWork::other};
  const std::string word = operator_word(name(index));
  if (context.node < 0 && index != context.wrapper && word == "add") {
    role.pass = Pass::gradient_sum;
    return role;
  }
  const std::string& kind = (*steps_)[at(step)].operators[at(role.network_operator)].kind;
  const int parent = profile_.operators[at(index)].parent;
  const bool inherits =
      parent >= 0 && index != node && roles.of[at(parent)].network_operator == role.network_operator;
  if (inherits) role.pass = roles.of[at(parent)].pass;
  if (kind == "embedding") role.pass = Pass::backward_weights;
  if (kind == "convolution") {
    if (role.pass == Pass::backward_data && index == node) role.pass = Pass::backward_both;
    if (word.find("backwardinput") != std::string::npos) role.pass = Pass::backward_data;
    if (word.find("backwardweight") != std::string::npos || word.find("backwardbias") != std::string::npos)
      role.pass = Pass::backward_weights;
  }
  if (kind == "dense") {
    const bool outermost = parent < 0 || !is_product(operator_word(name(parent))) || parent == node;
    if (is_product(word) && index != node && outermost && products_[node]++ > 0)
      role.pass = Pass::backward_weights;
    if (word == "sum") role.pass = Pass::backward_weights;
  }
  return role;
}

/// An operator that no range names and that has no node.
OperatorRole RoleFinder::role_of_loose(int index, const OperatorRoles&) const {
  const int root = contexts_[at(index)].root, step = step_of(root);
  if (step < 0) return {.work = NonLayerWork::other};
  const StepState& state = states_[at(step)];
  const ProfileOperator& one = profile_.operators[at(root)];
  const std::string word = operator_word(name(root));
  const std::pair here(one.start, root);
  if (std::binary_search(state.roots.begin(), state.roots.end(), here))
    return {network_operator(step, root), Pass::forward, NonLayerWork::other, step};
  const auto node = last_node_.find(one.thread);
  const auto next = std::lower_bound(state.roots.begin(), state.roots.end(), here);
  const bool again = node != last_node_.end() && next != state.roots.begin() &&
                     std::prev(next)->first > profile_.operators[at(node->second)].start;
  if (node != last_node_.end() && step_of(node->second) == step && one.start <= state.backward_end &&
      !again) {
    const auto joined = forward_root_.find(node->second);
    const int own = joined == forward_root_.end() ? -1 : step_of(joined->second);
    const int to = own < 0 ? -1 : network_operator(own, joined->second);
    const Pass pass = word == "add"   ? Pass::gradient_sum
                      : word == "sum" ? Pass::backward_weights
                                      : Pass::backward_data;
    return {to, pass, to < 0 ? NonLayerWork::unknown : NonLayerWork::other, own, to < 0 && pipelined_};
  }
  if (word == "zero" || word == "zeros") return {.work = NonLayerWork::zero_grad};
  if (state.roots.empty() || one.start < state.roots.front().first) return {.work = NonLayerWork::other};
  if (one.start > state.backward_end)
    return {.work = optimizer_marked_ ? NonLayerWork::other : NonLayerWork::optimizer};
  if (prepares_input(word)) return {.work = NonLayerWork::input};
  return {network_operator(step, root), Pass::forward, NonLayerWork::other, step};
}

/// The backward pass runs an operator's last node first, and that node reads the gradient of the output.
void RoleFinder::note_output(int node) {
  const auto joined = forward_root_.find(node);
  if (joined == forward_root_.end() || operator_kind(name(joined->second)) == "view") return;
  const int step = step_of(joined->second);
  const int index = network_operator(step, joined->second);
  if (index < 0) return;
  Shape& output = (*steps_)[at(step)].operators[at(index)].output;
  if (!output.empty()) return;
  const std::vector<Shape>& shapes = profile_.shapes_of(profile_.operators[at(node)]);
  if (shapes.empty()) return;
  const auto first =
      std::find_if(shapes.begin(), shapes.end(), [](const Shape& one) { return !one.empty(); });
  output = first == shapes.end() ? Shape{1} : *first;  // the gradient of a loss is one number
}

/// Autograd adds a gradient to `.grad` right after the node that computed it.
void RoleFinder::note_parameter(int index) {
  const ProfileOperator& one = profile_.operators[at(index)];
  const int step = step_of(index);
  const auto node = last_node_.find(one.thread);
  if (!accumulates(name(index)) || step < 0 || node == last_node_.end() || step_of(node->second) != step)
    return;
  const auto joined = forward_root_.find(node->second);
  const int own = joined == forward_root_.end() ? -1 : step_of(joined->second);
  const int owner = own < 0 ? -1 : network_operator(own, joined->second);
  if (owner < 0) return;
  std::vector<std::int64_t>& parameters = (*steps_)[at(own)].operators[at(owner)].parameters;
  // Where times are rounded, "AccumulateGrad" may end after the "evaluate_function: ..." that holds it.
  const bool inside = one.parent >= 0 && accumulates(name(one.parent));
  if (wrapped_ ? starts(name(index), kRange) : !inside) parameters.push_back(-1);
  const std::vector<Shape>& shapes = profile_.shapes_of(one);
  if (!shapes.empty() && !parameters.empty() && parameters.back() < 0)
    parameters.back() = recorded_elements(shapes.front());
}

void RoleFinder::assign(int index, OperatorRoles& roles) {
  const Context& context = contexts_[at(index)];
  OperatorRole& role = roles.of[at(index)];
  if (context.work) {
    role.work = *context.work;
    if (*context.work == NonLayerWork::optimizer && (name(index).find("_foreach_") != std::string::npos ||
                                                     name(index).find("_fused_") != std::string::npos))
      roles.foreach_optimizer = true;
    if (*context.work == NonLayerWork::accumulation) note_parameter(index);
  } else if (context.node >= 0 || context.wrapper >= 0) {
    if (context.node == index || context.wrapper == index)
      last_node_[profile_.operators[at(index)].thread] = index;
    if (context.node == index) note_output(index);
    role = role_in_node(index, roles);
  } else if (context.root >= 0) {
    role = role_of_loose(index, roles);
  } else {
    role.work = NonLayerWork::unknown;
  }
}

OperatorRoles RoleFinder::find(std::vector<ProfileStep>& steps) {
  states_.resize(ranges_.size());
  steps.resize(ranges_.size());
  steps_ = &steps;
  for (std::size_t s = 0; s < steps.size(); ++s) {
    steps[s].name = profile_.names[at(ranges_[s].name)];
    steps[s].wall = (ranges_[s].end - ranges_[s].start) * 1e-6;
  }
  find_contexts();
  list_forward();
  join_nodes();
  list_operators(steps);
  OperatorRoles roles;
  roles.of.resize(profile_.operators.size());
  for (std::size_t i = 0; i < roles.of.size(); ++i) assign(i, roles);
  return roles;
}

}  // namespace

OperatorRoles operator_roles(const Profile& profile, const std::vector<StepRange>& ranges,
                             std::vector<ProfileStep>& steps) {
  return RoleFinder(profile, ranges).find(steps);
}

}  // namespace stepcast
