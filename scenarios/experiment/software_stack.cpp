#include "scenarios/experiment/software_stack.hpp"

#include <algorithm>

#include "scenarios/keys/scenario_keys.hpp"
#include "strategies/registry.hpp"

namespace stepcast {
namespace {

StackValue read_stack_value(const YamlValue& value) {
  const YamlMap map = read_map(value, stack_value_keys());
  StackValue one;
  one.key = map.at("key", "a key of strategy").text();
  one.value = map.at("value", "the stack's value").node();
  one.source = map.at("source", "where the value is from").text();
  if (const auto yes = map.maybe("without_nccl")) one.without_nccl = yes->boolean();
  return one;
}

/// A value of the document's platform, whether it stands in the document or in a file; null: not given.
const YamlNode* platform_value(const YamlNode& document, const std::string& path, Library& library) {
  const YamlNode* platform = document.find("platform");
  if (platform == nullptr) return nullptr;
  const bool name = platform->kind == YamlNode::Kind::scalar;
  return find_path(name ? library.tree(YamlValue(*platform, "platform"), "platforms") : *platform, path);
}

/// The value `nics`: the NICs of a node if the workers need several nodes; null: one NIC, or one node.
const YamlNode* nics_of_nodes(const YamlNode& document, Library& library) {
  const YamlNode* nics = platform_value(document, "network.nics", library);
  const YamlNode* devices = platform_value(document, "node.devices", library);
  const YamlNode* workers = document.find("workers");
  if (nics == nullptr || workers == nullptr) return nullptr;
  const auto count = [](const YamlNode* node) { return YamlValue(*node, "strategy.like").integer(1); };
  const bool several = count(workers) > (devices == nullptr ? 1 : count(devices));
  return several && count(nics) > 1 ? nics : nullptr;
}

/// The keys of a strategy; none for an unknown kind, which the reader refuses.
const Keys* keys_of(const YamlNode& kind) {
  const auto found = std::ranges::find(strategies(), kind.text, &Strategy::kind);
  return found == strategies().end() ? nullptr : &found->keys;
}

/// Sets the dropout of a `transformer_stack` that gives none. The model may be a name: then it has its own.
void set_dropout(YamlNode& document, const YamlNode& value) {
  constexpr const char* kPath = "model.transformer_stack.dropout";
  if (find_path(document, "model.transformer_stack") != nullptr && find_path(document, kPath) == nullptr)
    assign(document, {kPath, value});
}

}  // namespace

SoftwareStack read_software_stack(const YamlValue& value) {
  const YamlMap map = read_map(value, stack_keys());
  SoftwareStack stack;
  stack.name = map.at("name", "a name").text();
  stack.what = map.at("what", "how the stack exchanges gradients").text();
  if (const auto framework = map.maybe("framework"))
    stack.framework = framework_names().at(framework->one_of(framework_names()));
  if (const auto kind = map.maybe("kind")) stack.kind = kind->node();
  for (const YamlValue& one : map.at("values", "a list of values").list())
    stack.values.push_back(read_stack_value(one));
  return stack;
}

std::optional<SoftwareStack> software_stack_of(const YamlNode& document, Library& library) {
  const YamlNode* like = find_path(document, "strategy.like");
  if (like == nullptr) return std::nullopt;
  return read_software_stack(
      YamlValue(library.tree(YamlValue(*like, "strategy.like"), "strategies/stacks"), ""));
}

std::vector<std::string> apply_software_stack(YamlNode& document, Library& library) {
  const auto stack = software_stack_of(document, library);
  const YamlNode* kind = find_path(document, "strategy.kind");
  if (!stack || kind == nullptr) return {};
  if (stack->kind && kind->text == "synchronous") assign(document, {"strategy.kind", *stack->kind});
  const Keys* keys = keys_of(*find_path(document, "strategy.kind"));
  if (keys == nullptr) return {};
  const bool nccl = platform_value(document, "software.nccl", library) != nullptr ||
                    platform_value(document, "software.rccl", library) != nullptr;
  std::vector<std::string> set;
  for (const StackValue& one : stack->values) {
    if (one.key == "dropout") {
      set_dropout(document, one.value);
      continue;
    }
    const std::string path = "strategy." + one.key;
    // Layer times that are scaled to a measured step contain the host's.
    if (one.key == "host_operation" && find_path(document, "strategy.compute_factor") != nullptr) continue;
    const bool known = std::ranges::find(*keys, one.key, &Key::name) != keys->end();
    if (!known || (one.without_nccl && nccl) || find_path(document, path) != nullptr) continue;
    const bool nics = one.key == "channels" && one.value.text == "nics";
    const YamlNode* value = nics ? nics_of_nodes(document, library) : &one.value;
    if (value == nullptr) continue;
    assign(document, {path, YamlNode(*value)});
    set.push_back(path);
  }
  return set;
}

}  // namespace stepcast
