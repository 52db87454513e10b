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

/// True if the platform of the document names a version of NCCL.
bool names_nccl(const YamlNode& document, Library& library) {
  const YamlNode* platform = document.find("platform");
  if (platform == nullptr) return false;
  const bool name = platform->kind == YamlNode::Kind::scalar;
  return find_path(name ? library.tree(YamlValue(*platform, "platform"), "platforms") : *platform,
                   "software.nccl") != nullptr;
}

/// The keys of a strategy; none for an unknown kind, which the reader refuses.
const Keys* keys_of(const YamlNode& kind) {
  const auto found = std::ranges::find(strategies(), kind.text, &Strategy::kind);
  return found == strategies().end() ? nullptr : &found->keys;
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
  const bool nccl = names_nccl(document, library);
  std::vector<std::string> set;
  for (const StackValue& one : stack->values) {
    const std::string path = "strategy." + one.key;
    const bool known = std::ranges::find(*keys, one.key, &Key::name) != keys->end();
    if (!known || (one.without_nccl && nccl) || find_path(document, path) != nullptr) continue;
    assign(document, {path, one.value});
    set.push_back(path);
  }
  return set;
}

}  // namespace stepcast
