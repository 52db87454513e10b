#include "scenarios/experiment/software_stack.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "core/fields.hpp"
#include "platforms/software.hpp"
#include "scenarios/experiment/usual_kernels.hpp"
#include "scenarios/keys/scenario_keys.hpp"
#include "scenarios/reader/sweep.hpp"
#include "strategies/data_parallel/synchronous.hpp"
#include "strategies/mesh/mesh.hpp"
#include "strategies/registry.hpp"

namespace stepcast {
namespace {

constexpr std::string_view kStrategy = "strategy.";

const Fields<StackValue>& stack_value_fields() {
  static const Fields<StackValue> fields{
      field<StackValue>(
          {"key", KeyType::text, "required",
           "key of `strategy`, or a path such as `model.transformer_stack.dropout`"},
          [](const YamlValue& value, StackValue& one) {
            const std::string key = value.text();
            one.path = key.find('.') == std::string::npos ? std::string(kStrategy) + key : key;
          },
          "a key of strategy"),
      field<StackValue>(
          {"value", KeyType::value, "required", "its value in this stack"},
          [](const YamlValue& value, StackValue& one) { one.value = value.node(); }, "the stack's value"),
      field("source", &StackValue::source, text(), required("where the value is from"),
            "where the value is from"),
      field("without_nccl", &StackValue::without_nccl, boolean(),
            "the value holds only if the platform does not name NCCL, which makes its own choice"),
      field("without_peer_access", &StackValue::without_peer_access, boolean(),
            "the value holds only if the platform's devices do not reach each other's memory")};
  return fields;
}

const Fields<SoftwareStack>& stack_fields() {
  static const Fields<SoftwareStack> fields{
      field("name", &SoftwareStack::name, text(), required("a name"), "name of the software stack"),
      field("what", &SoftwareStack::what, text(), required("how the stack exchanges gradients"),
            "how the stack exchanges gradients"),
      field<SoftwareStack>({"kind", KeyType::name, "none", "strategy that takes the place of `synchronous`"},
                           [](const YamlValue& value, SoftwareStack& stack) { stack.kind = value.node(); }),
      field("values", &SoftwareStack::values, list_of<stack_value_fields>(), required("a list of values"),
            "values of keys of a scenario")};
  return fields;
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

/// Whether devices of the document's platform reach each other's memory, as platforms/ reads it.
bool reach_peers(const YamlNode& document, Library& library) {
  if (platform_value(document, "node.peer_link", library) != nullptr) return true;
  if (const YamlNode* given = platform_value(document, "node.peer_access", library))
    return YamlValue(*given, "platform.node.peer_access").boolean();
  const YamlNode* device = platform_value(document, "device", library);
  return device == nullptr || library.device(YamlValue(*device, "platform.device")).peer_access;
}

constexpr std::string_view kKernels = "kernels.";

/// True for a key of the strategy, or one in another mapping that the document has. The model may be a name:
/// then its file gives all.
bool takes(const YamlNode& document, const Strategy& strategy, const std::string& path) {
  if (path.starts_with(kStrategy)) return find_key(strategy.keys, path.substr(kStrategy.size())) != nullptr;
  return find_path(document, path.substr(0, path.rfind('.'))) != nullptr;
}

/// True for a stack that partitions parameters, as FSDP2 does, and so is always a mesh.
bool shards_all(const SoftwareStack& stack) {
  return std::ranges::any_of(stack.values, [](const StackValue& one) {
    return one.path == "strategy.shard" && one.value.text == "parameters";
  });
}

/// True if replicas with a stack are a mesh, which may take its `shard` from the stack. Keys that the short
/// word of the stack has too, such as `recompute` of zero, do not make them one.
bool over_mesh(const YamlNode& replicas, const SoftwareStack& stack) {
  if (replicas.find("mesh") != nullptr) return true;
  if (!stack.kind) return shards_all(stack) || names_mesh(replicas);
  const Strategy* short_word = find_strategy(stack.kind->text);
  return names_mesh(replicas) && std::ranges::any_of(replicas.entries, [&](const auto& entry) {
           return find_key(mesh_keys(), entry.first.text) != nullptr &&
                  find_key(short_word->keys, entry.first.text) == nullptr;
         });
}

}  // namespace

const Keys& stack_keys() {
  return stack_fields().keys();
}

SoftwareStack read_software_stack(const YamlValue& value) {
  SoftwareStack stack;
  read_mapping(value, stack_fields(), stack);
  return stack;
}

namespace {

SoftwareStack stack_named(const YamlNode& name, Library& library) {
  return read_software_stack(
      YamlValue(library.tree(YamlValue(name, "strategy.like"), "strategies/stacks"), ""));
}

/// Without a stack, the host issues operators as PyTorch does where layer times are derived. A factor on them
/// holds the host's time. @returns the paths that were set
std::vector<std::string> apply_usual_host(YamlNode& document, const Strategy& strategy, Library& library) {
  constexpr const char *kPath = "strategy.host_operation", *kUsualStack = "pytorch-ddp";
  const YamlNode* trace = document.find("trace");
  if (trace == nullptr || trace->text != "derived" || !takes(document, strategy, kPath)) return {};
  for (const char* key : {kPath, "strategy.host_work", "strategy.compute_factor"}) {
    if (find_path(document, key) != nullptr) return {};
  }
  const SoftwareStack stack = stack_named(command_line_name(kUsualStack), library);
  const auto value = std::ranges::find(stack.values, kPath, &StackValue::path);
  assign(document, {kPath, YamlNode(value->value)});
  return {kPath};
}

}  // namespace

std::optional<SoftwareStack> software_stack_of(const YamlNode& document, Library& library) {
  const YamlNode* like = find_path(document, "strategy.like");
  if (like == nullptr) return std::nullopt;
  return stack_named(*like, library);
}

std::optional<Assignment> nccl_of_year(const YamlNode& document, Library& library) {
  if (document.find("year") == nullptr || platform_value(document, "software.nccl", library) == nullptr)
    return std::nullopt;
  // Tags of the middle of each year (github.com/NVIDIA/nccl/tags).
  constexpr std::array kVersions{"2.0",  "2.3",  "2.4",  "2.7", "2.11",
                                 "2.14", "2.18", "2.22", "2.27"};  // from 2017 on
  const int newest = std::ssize(kVersions) - 1;
  const char* version =
      kVersions.at(static_cast<std::size_t>(std::clamp(year_of(document) - 2017, 0, newest)));
  return assignment("platform.software.nccl", version);
}

std::vector<std::string> apply_software_stack(YamlNode& document, Library& library) {
  const auto stack = software_stack_of(document, library);
  const YamlNode* kind = find_path(document, "strategy.kind");
  const Strategy* given = kind == nullptr ? nullptr : find_strategy(kind->text);
  if (!stack)
    return given == nullptr ? std::vector<std::string>{} : apply_usual_host(document, *given, library);
  if (kind == nullptr) return {};
  const bool mesh = kind->text == kPlainReplicas && over_mesh(*document.find("strategy"), *stack);
  if (stack->kind && kind->text == kPlainReplicas && !mesh) assign(document, {"strategy.kind", *stack->kind});
  const Strategy* strategy = find_strategy(find_path(document, "strategy.kind")->text);
  if (strategy == nullptr) return {};          // which the reader refuses
  Strategy replicas = synchronous_strategy();  // the keys of a mesh would make it one
  if (mesh) replicas.keys = keys_over_mesh();
  if (strategy->kind == replicas.kind) strategy = &replicas;
  const bool nccl = platform_value(document, "software.nccl", library) != nullptr ||
                    platform_value(document, "software.rccl", library) != nullptr;
  const bool peers = reach_peers(document, library);
  std::vector<std::string> set;
  for (const StackValue& one : stack->values) {
    // Layer times that are scaled to a measured step contain the host's.
    if (one.path == "strategy.host_operation" && find_path(document, "strategy.compute_factor") != nullptr)
      continue;
    if (one.path.starts_with(kKernels)) continue;
    if (!takes(document, *strategy, one.path)) continue;
    if ((one.without_nccl && nccl) || (one.without_peer_access && peers)) continue;
    if (find_path(document, one.path) != nullptr) continue;
    const bool nics = one.path == "strategy.channels" && one.value.text == "nics";
    const YamlNode* value = nics ? nics_of_nodes(document, library) : &one.value;
    if (value == nullptr) continue;
    assign(document, {one.path, YamlNode(*value)});
    set.push_back(one.path);
  }
  return set;
}

std::vector<std::string> apply_stack_kernels(YamlNode& document, const YamlNode& given, Library& library) {
  const auto stack = software_stack_of(document, library);
  if (!stack || document.find("kernels") == nullptr) return {};
  std::vector<std::string> set;
  for (const StackValue& one : stack->values) {
    if (!one.path.starts_with(kKernels)) continue;
    if (given.find(one.path.substr(kKernels.size())) != nullptr) continue;
    assign(document, {one.path, YamlNode(one.value)});
    set.push_back(one.path);
  }
  return set;
}

}  // namespace stepcast
