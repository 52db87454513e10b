#include <algorithm>

#include "strategies/data_parallel/synchronous.hpp"
#include "strategies/mesh/mesh.hpp"

namespace stepcast {
namespace {

void note_ineffective_axes(const YamlMap& map, const MeshOptions& options, IneffectiveKeys& found) {
  const Mesh& mesh = options.mesh;
  if (mesh.tensor == 1) note_ineffective(map, {"sequence_parallel"}, "without mesh.tensor", found);
  if (mesh.context == 1) note_ineffective(map, {"context_exchange"}, "without mesh.context", found);
  if (!options.divides_positions())
    note_ineffective(map, {"whole_from", "batch_norm"}, "without mesh.spatial", found);
  if (!options.has_experts)
    note_ineffective(map, {"top", "every", "capacity_factor", "imbalance"}, "without mesh.expert", found);
}

Plan read_over_mesh(const YamlValue& value, const Setting& setting) {
  const Strategy plain = synchronous_strategy();
  const YamlMap map = read_map(value, synchronous_over_mesh().keys);
  if (!names_mesh(value.node())) return plain.plan(value, setting);
  const MeshOptions options = read_mesh_options(map, setting);
  const YamlValue mesh = map.has("mesh") ? map.at("mesh") : map.value();
  const YamlMap axes = mesh.any_map();
  const auto axis = [&](const char* name) { return axes.has(name) ? axes.at(name) : mesh; };
  const MeshKeys keys{axis("pipeline"), axis(options.divides_positions() ? "spatial" : "context"),
                      axis(options.division == LayerDivision::filters ? "filter" : "tensor"), axis("expert")};
  Plan plan = plan_mesh(map, keys, setting, options);
  note_ineffective(map, {"first_bucket"}, "with a mesh of devices", plan.ineffective_keys);
  note_ineffective_axes(map, options, plan.ineffective_keys);
  if (!options.group.training.mixed)
    note_ineffective(map, {"fp32_gradients"}, "with precision: f32", plan.ineffective_keys);
  return plan;
}

}  // namespace

bool names_mesh(const YamlNode& strategy) {
  const YamlNode* again = strategy.find("recompute");
  if (again != nullptr && again->text != "true" && again->text != "false") return true;
  static const Keys plain = synchronous_strategy().keys;
  return std::ranges::any_of(mesh_keys(), [&](const Key& key) {
    return strategy.find(key.name) != nullptr && find_key(plain, key.name) == nullptr;
  });
}

Strategy synchronous_over_mesh() {
  Strategy strategy = synchronous_strategy();
  strategy.plan = read_over_mesh;
  std::erase_if(strategy.keys, [](const Key& key) { return find_key(mesh_keys(), key.name) != nullptr; });
  *std::ranges::find(strategy.keys, "recompute", &Key::name) = recompute_key();
  strategy.keys = joined_keys({strategy.keys, mesh_keys()});
  return strategy;
}

}  // namespace stepcast
