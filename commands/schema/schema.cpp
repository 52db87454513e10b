#include "commands/schema/schema.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "commands/commands.hpp"
#include "core/error.hpp"
#include "core/text.hpp"
#include "models/cost/device.hpp"
#include "models/layer_times/trace.hpp"
#include "models/loader.hpp"
#include "models/network/layer.hpp"
#include "platforms/platform_keys.hpp"
#include "platforms/platform_table.hpp"
#include "report/results/results.hpp"
#include "report/schema/json_schema.hpp"
#include "scenarios/experiment/experiment.hpp"
#include "scenarios/experiment/software_stack.hpp"
#include "scenarios/keys/scenario_keys.hpp"
#include "scenarios/reader/library.hpp"
#include "scenarios/reader/scenario.hpp"
#include "scenarios/reader/scenario_documents.hpp"

namespace stepcast {

namespace {

FileKind file_kind(const std::string& name, const Keys& keys, Required required) {
  Keys all = keys;
  all.push_back({"version", Allowed(KeyType::integer, {1, 1}), "1", "version of the form of this file"});
  return {name, std::move(all), required};
}

const Key& key_named(const Keys& keys, const std::string& name) {
  if (const Key* found = find_key(keys, name)) return *found;
  throw InputError(
      fmt::format("--table: there is no key \"{}\"{}", printable(name), word_advice(name, names_of(keys))));
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
    for (Key& one : own) one.only_with = {};
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

namespace {

using Errors = std::vector<std::string>;

/// Calls `read` and adds its error, unless the same line is there already.
template <class Read>
void note(const Read& read, Errors& errors) {
  try {
    read();
  } catch (const InputError& error) {
    if (std::ranges::find(errors, error.what()) == errors.end()) errors.emplace_back(error.what());
  }
}

/// Unknown and wrong keys of a point that cannot be built, because `validate` gives it as many workers as
/// ranks.
void check_keys_of_point(const Scenario& scenario, std::vector<Assignment> values, Library& library,
                         Errors& errors) {
  YamlNode document = document_with(scenario.document, std::move(values), library);
  apply_software_stack(document, library);
  for (const std::string& error : key_errors(YamlValue(document, ""), run_keys(), Required::in_lists)) {
    if (std::ranges::find(errors, error) == errors.end()) errors.push_back(error);
  }
}

/// Errors of the points of a scenario whose keys are right.
void check_points(const std::filesystem::path& file, Errors& errors) {
  constexpr std::size_t kMostErrors = 20;  // the points of a sweep may all fail in ways of their own
  const Scenario scenario = read_scenario(file, {});
  check_keys(scenario.document);
  const bool for_validate = scenario.document.find("workers") == nullptr &&
                            std::ranges::find(scenario.sweep_keys, "workers") == scenario.sweep_keys.end();
  Library library;
  for (const Point& point : scenario.points) {
    if (errors.size() >= kMostErrors) return;
    std::vector<Assignment> values = middle_values(scenario, point);
    note(
        [&] {
          if (for_validate) return check_keys_of_point(scenario, std::move(values), library, errors);
          build_experiment(scenario.document, std::move(values), library);
        },
        errors);
  }
}

void read_with_reader(const std::filesystem::path& file, const std::string& kind, const YamlNode& root,
                      Errors& errors) {
  const YamlValue value(root, "");
  if (kind == "scenario") return check_points(file, errors);
  if (kind == "platform") {
    const std::string doubt = bandwidth_doubt(Library().platform(value));
    if (!doubt.empty()) fmt::print("{}: note: {}\n", file.string(), doubt);
    return;
  }
  if (kind == "model") return static_cast<void>(read_model(value));
  if (kind == "device") return static_cast<void>(Library().device(file.string()));
  if (kind == "stack") return static_cast<void>(read_software_stack(value));
  if (kind == "compression") return static_cast<void>(read_compression(value));
  const Trace trace = read_trace(value);
  const auto model = model_file(data_folder() / "models", trace.model);
  if (!std::filesystem::exists(model)) return;  // the trace of a network that stands elsewhere
  const YamlNode network = read_yaml(model);
  check_fits(trace, read_model(YamlValue(network, "")));
}

/// A software stack may set another strategy, whose keys the scenario may then have.
void set_kind_of_stack(YamlNode& root, Errors& errors) {
  Library library;
  note([&] { apply_software_stack(root, library); }, errors);
}

/// Whether a value below `key` comes from the sweep or from other settings of a scenario.
bool is_set_elsewhere(const YamlNode& root, const std::string& key) {
  const auto sets = [&](const std::string& name) {
    const YamlNode* node = root.find(name);
    return node != nullptr && std::ranges::any_of(node->entries, [&](const auto& entry) {
             return entry.first.text.starts_with(key + ".");
           });
  };
  return sets("set") || sets("sweep") || root.find("defaults") != nullptr;
}

/// Keys that a platform or network that stands in the scenario itself lacks.
void check_inline(const YamlNode& root, Errors& errors) {
  for (const auto& [key, keys] :
       {std::pair{"platform", &platform_keys()}, std::pair{"model", &model_keys()}}) {
    const YamlNode* node = root.find(key);
    if (node == nullptr || node->kind != YamlNode::Kind::mapping || is_set_elsewhere(root, key)) continue;
    for (const std::string& error : key_errors(YamlValue(*node, key), *keys, Required::all)) {
      if (std::ranges::find(errors, error) == errors.end()) errors.push_back(error);
    }
  }
}

/// The model and the platform, if there is no file of this name.
void check_names(const YamlNode& root, Errors& errors) {
  Library library;
  for (const std::string key : {"platform", "model"}) {
    const YamlNode* node = root.find(key);
    if (node != nullptr && node->kind == YamlNode::Kind::scalar)
      note([&] { library.tree(YamlValue(*node, key), key + "s"); }, errors);  // platforms/, models/
  }
}

/// All errors of a file. What keys say together is only looked at where each key alone is right.
Errors errors_of(const std::filesystem::path& file, std::string& kind) {
  Errors errors;
  note(
      [&] {
        YamlNode root = file_of(file) == file ? read_yaml(file) : read_with_defaults(file).root;
        const FileKind& found = kind_of(root);
        kind = found.name;
        if (kind == "scenario") set_kind_of_stack(root, errors);
        for (std::string& error : key_errors(YamlValue(root, ""), found.keys, found.required))
          errors.push_back(std::move(error));
        if (kind == "scenario") check_inline(root, errors);
        if (errors.empty()) return read_with_reader(file, kind, root, errors);
        if (kind == "scenario") check_names(root, errors);
      },
      errors);
  return errors;
}

/// The paths of all scenarios, for a file that holds several.
std::vector<std::string> paths_to_check(const std::vector<std::string>& files) {
  std::vector<std::string> paths;
  for (const std::string& file : files) {
    try {
      for (const auto& path : scenarios_in(file)) paths.push_back(path.string());
    } catch (const InputError&) {
      paths.push_back(file);  // the same error is reported with those of the other files
    }
  }
  return paths;
}

void check(const std::vector<std::string>& given) {
  const std::vector<std::string> files = paths_to_check(given);
  std::size_t wrong = 0, count = 0;
  for (const std::string& file : files) {
    std::string kind;
    const Errors errors = errors_of(file, kind);
    for (const std::string& error : errors) fmt::print("{}\n", error);
    Results rows;
    rows.rows.resize(std::max<std::size_t>(1, errors.size()));
    for (std::size_t i = 0; i < rows.rows.size(); ++i) {
      rows.rows[i].set("file", file);
      rows.rows[i].set("kind", kind);
      if (i < errors.size()) rows.rows[i].set("error", errors[i]);
    }
    add_json_rows("files", rows);
    if (errors.empty()) fmt::print("{}: {}, no errors\n", file, kind);
    wrong += errors.empty() ? 0 : 1;
    count += errors.size();
  }
  if (wrong > 0)
    throw InputError(fmt::format("{} error{} in {} of {} file{}", count, count == 1 ? "" : "s", wrong,
                                 files.size(), files.size() == 1 ? "" : "s"));
}

}  // namespace

void add_check(Command app) {
  const Command command = app.add_subcommand("check",
                                             "Report every error of scenarios, platforms, networks, traces, "
                                             "devices and software stacks; exit code 2 if there is one.");
  auto files = std::make_shared<std::vector<std::string>>();
  command.add_option("file", *files, "Files to check, or names in scenarios/; - reads standard input.")
      .required()
      .transform(scenario_file)
      .type_name("FILE.yaml");
  command.callback([=] { check(*files); }, Command::Json::yes);
  command.footer("Example: stepcast check my-scenario.yaml my-cluster.yaml");
}

}  // namespace stepcast
