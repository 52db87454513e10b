#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "models/pytorch_profile/operators.hpp"

namespace stepcast {
namespace {

/// Layers of the forward pass of each step, and those that ran in each node, in order of time.
class Runs {
 public:
  Runs(const Profile& profile, const std::vector<StepRange>& ranges) : profile_(profile), ranges_(ranges) {}
  std::set<int> nodes();

 private:
  /// Name and shapes of a layer.
  using LayerRun = std::pair<int, int>;

  const ProfileOperator& at(int index) const { return profile_.operators[index]; }
  int node_around(int index) const;
  bool is_part(int index) const;
  bool is_numbered(int index) const;
  void list();
  [[noreturn]] void refuse(int node, const std::string& layer, const std::string& why) const;

  const Profile& profile_;
  const std::vector<StepRange>& ranges_;
  std::map<int, std::vector<LayerRun>> forward_;  ///< by step
  std::map<int, std::vector<LayerRun>> again_;    ///< by node
};

/// The outermost node of the backward pass around an operator; -1 if there is none.
int Runs::node_around(int index) const {
  int node = -1;
  for (int above = at(index).parent; above >= 0; above = at(above).parent) {
    const std::string& name = profile_.name(at(above));
    if (name.starts_with("autograd::engine::evaluate_function") ||
        (at(above).forward_thread > 0 && at(above).sequence >= 0))
      node = above;
  }
  return node;
}

/// Autocast runs a layer in a layer of the same name.
bool Runs::is_part(int index) const {
  for (int above = at(index).parent; above >= 0; above = at(above).parent) {
    if (is_forward_layer(profile_.name(at(above)))) return true;
  }
  return false;
}

/// Under autocast it may be a part of the layer that has the number.
bool Runs::is_numbered(int index) const {
  const int end = profile_.operators.size();
  for (int i = index; i < end && at(i).thread == at(index).thread && at(i).start <= at(index).end; ++i) {
    if (at(i).sequence >= 0) return true;
  }
  return false;
}

void Runs::refuse(int node, const std::string& layer, const std::string& why) const {
  throw InputError(
      fmt::format("{}: its backward pass computes activations again ({} in {}), {}; profile without "
                  "torch.utils.checkpoint, "
                  "or with use_reentrant=False, and set `recompute: true` in the scenario's strategy",
                  profile_.file, layer, profile_.name(at(node)), why));
}

void Runs::list() {
  std::vector<std::pair<double, int>> layers;
  for (std::size_t i = 0; i < profile_.operators.size(); ++i) {
    const int index = i;
    const std::string& name = profile_.name(at(index));
    if (name == "CheckpointFunctionBackward")
      refuse(index, "CheckpointFunction", "in the reentrant form, whose layers cannot be told apart");
    if (is_forward_layer(name) && !is_part(index)) layers.emplace_back(at(index).start, index);
  }
  std::sort(layers.begin(), layers.end());
  for (const auto& [start, index] : layers) {
    const int step = step_at(ranges_, start), node = node_around(index);
    if (step < 0) continue;
    if (node >= 0 && !is_numbered(index))
      refuse(node, profile_.name(at(index)), "and has no numbers that tell what");
    (node < 0 ? forward_[step] : again_[node]).emplace_back(at(index).name, at(index).shapes);
  }
}

std::set<int> Runs::nodes() {
  list();
  std::set<int> found;
  for (const auto& [node, layers] : again_) {
    const std::vector<LayerRun>& forward = forward_[step_at(ranges_, at(node).start)];
    if (std::search(forward.begin(), forward.end(), layers.begin(), layers.end()) == forward.end())
      refuse(node, profile_.names[layers.front().first],
             "but not layers of the step's forward pass in their order");
    found.insert(node);
  }
  return found;
}

}  // namespace

bool is_forward_layer(const std::string& name) {
  constexpr std::array<std::string_view, 9> kLayers{
      "aten::linear",     "aten::conv1d",     "aten::conv2d",
      "aten::conv3d",     "aten::layer_norm", "aten::batch_norm",
      "aten::group_norm", "aten::embedding",  "aten::scaled_dot_product_attention"};
  return std::find(kLayers.begin(), kLayers.end(), name) != kLayers.end();
}

std::set<int> recomputing_nodes(const Profile& profile, const std::vector<StepRange>& ranges) {
  return Runs(profile, ranges).nodes();
}

}  // namespace stepcast
