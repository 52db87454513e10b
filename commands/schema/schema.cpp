#include "commands/schema/schema.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "commands/commands.hpp"
#include "core/error.hpp"
#include "core/text.hpp"
#include "models/cost/device.hpp"
#include "models/layer_times/trace.hpp"
#include "models/network/network_keys.hpp"
#include "platforms/platform_keys.hpp"
#include "report/schema/json_schema.hpp"
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

void add_schema(Command app) {
  const Command command =
      app.add_subcommand("schema", "Print the keys of a kind of file as JSON Schema, for editors.");
  auto name = std::make_shared<std::string>();
  auto path = std::make_shared<std::string>();
  std::vector<std::string> names;
  for (const FileKind& kind : file_kinds()) names.push_back(kind.name);
  command.add_option("kind", *name, "Kind of file.").required().one_of(names);
  const Option table =
      command
          .add_option(
              "--table", *path,
              "Print a table of the keys below this key instead, in Markdown: . for the top level, noise, or "
              "network@torus for the keys of one kind.")
          .type_name("KEY");
  command.callback([=] {
    for (const FileKind& kind : file_kinds()) {
      if (kind.name != *name) continue;
      fmt::print("{}", table.given() ? key_table(table_at(kind, *path == "." ? "" : *path))
                                     : json_schema("stepcast " + kind.name, kind.keys, kind.required));
    }
  });
  command.footer("Example: stepcast schema scenario > scenario.json");
}

}  // namespace stepcast
