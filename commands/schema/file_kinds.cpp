#include "commands/schema/file_kinds.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"
#include "core/text.hpp"
#include "models/cost/device_keys.hpp"
#include "models/layer_times/trace_keys.hpp"
#include "models/network/network_keys.hpp"
#include "platforms/platform_keys.hpp"
#include "scenarios/keys/scenario_keys.hpp"

namespace stepcast {
namespace {

FileKind file_kind(const std::string& name, const Keys& keys, Required required) {
  Keys all = keys;
  all.push_back({"version", "integer", "1 to 1", "1", "version of the form of this file"});
  return {name, std::move(all), required};
}

const Key& key_named(const Keys& keys, const std::string& name) {
  const auto found = std::ranges::find(keys, name, &Key::name);
  if (found != keys.end()) return *found;
  const std::string nearest = nearest_word(name, names_of(keys));
  throw InputError(fmt::format("--table: there is no key \"{}\"{}", printable(name),
                               nearest.empty() ? "" : "; did you mean \"" + nearest + "\"?"));
}

/// The keys that only a mapping of this kind has (of kind "all": those that no kind lacks), or those of a
/// strategy.
Keys own_keys(const Key& key, const std::string& kind) {
  Keys own;
  if (key.by_kind != nullptr) {
    for (const KindKeys& one : key.by_kind()) {
      if (one.kind == kind) own = one.keys;
    }
  } else if (key.inside != nullptr) {
    const bool all = kind == "all";
    own = all ? key.inside() : keys_of_kind(key.inside(), kind);
    std::erase_if(own, [all](const Key& one) { return one.only_with.empty() != all; });
    for (Key& one : own) one.only_with.clear();
  }
  if (own.empty()) throw InputError(fmt::format("--table: {} has no kind \"{}\"", key.name, printable(kind)));
  return own;
}

}  // namespace

const std::vector<FileKind>& file_kinds() {
  static const std::vector<FileKind> kinds{file_kind("scenario", scenario_keys(), Required::in_lists),
                                           file_kind("platform", platform_keys(), Required::all),
                                           file_kind("model", model_keys(), Required::all),
                                           file_kind("trace", trace_keys(), Required::all),
                                           file_kind("device", device_keys(), Required::all),
                                           file_kind("compression", compression_file_keys(), Required::all),
                                           file_kind("stack", stack_keys(), Required::all)};
  return kinds;
}

const FileKind& kind_of(const YamlNode& root) {
  const auto known = [&](const FileKind& kind) {
    return std::ranges::count_if(kind.keys, [&](const Key& key) { return root.find(key.name) != nullptr; });
  };
  return *std::ranges::max_element(file_kinds(), {}, known);
}

Keys table_at(const FileKind& file, const std::string& path) {
  Keys keys = file.keys;
  std::size_t at = 0;
  while (at < path.size()) {
    const std::size_t end = std::min(path.find('.', at), path.size());
    const std::string part = path.substr(at, end - at);
    const auto mark = part.find('@');
    const Key key = key_named(keys, part.substr(0, mark));
    if (mark != std::string::npos) {
      keys = own_keys(key, part.substr(mark + 1));
    } else if (key.inside != nullptr) {
      keys = key.inside();
    } else {
      throw InputError(fmt::format("--table: {} has no keys of its own", key.name));
    }
    at = end + 1;
  }
  return keys;
}

}  // namespace stepcast
