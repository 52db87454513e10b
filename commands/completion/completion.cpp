#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "commands/commands.hpp"
#include "commands/completion/completion_scripts.hpp"
#include "core/key_check.hpp"
#include "scenarios/keys/scenario_keys.hpp"
#include "strategies/registry.hpp"

namespace stepcast {
namespace {

using From = CompletionValue::From;

/// Options whose value is a name that `show` knows, and arguments of commands likewise.
const std::map<std::string, std::string>& shown_names() {
  static const std::map<std::string, std::string> names{
      {"--model", "model"},      {"--platform", "platform"},   {"--trace", "trace"},
      {"--device", "device"},    {"show model", "model"},      {"show trace", "trace"},
      {"show device", "device"}, {"show platform", "platform"}};
  return names;
}

CompletionValue value_of(const std::string& name, const CommandOption& option) {
  if (!option.words.empty()) return {From::words, option.words};
  if (const auto shown = shown_names().find(name); shown != shown_names().end())
    return {From::show, {}, shown->second};
  if (name == "--strategy" || name == "show strategies") return {From::words, strategy_names()};
  if (option.type.starts_with("KEY=")) return {From::keys};
  if (option.type.starts_with("DIR")) return {From::folders};
  const bool file = option.type.starts_with("FILE") || option.type.starts_with("SCENARIO");
  return {file || option.type == "PATH" ? From::files : From::nothing};
}

void add_command(const CommandDescription& command, Completions& all) {
  std::vector<CompletionWord> words;
  for (const auto& [name, help] : command.subcommands) words.push_back({name, help});
  for (const CommandOption& option : command.options) {
    for (const std::string& name : option.names) {
      if (std::ranges::find(words, name, &CompletionWord::word) != words.end())
        continue;  // --help of a group
      words.push_back({name, option.help});
      if (!option.type.empty()) all.values.emplace_back(command.path + " " + name, value_of(name, option));
    }
    if (option.names.empty()) all.values.emplace_back(command.path, value_of(command.path, option));
  }
  all.words.emplace_back(command.path, std::move(words));
}

/// Keys that `--set` can give. Every part of `platform` and `model` is one, where they are written in place.
std::vector<std::pair<std::string, std::vector<std::string>>> settable_keys() {
  std::map<std::string, std::vector<std::string>> keys;
  for (const auto& [path, key] : keys_with_paths(scenario_keys())) {
    std::vector<std::string>& words = keys[path];
    const auto allowed =
        key.type == "boolean" ? std::vector<std::string>{"true", "false"} : allowed_words(key);
    for (const std::string& word : allowed) {
      if (std::ranges::find(words, word) == words.end()) words.push_back(word);
    }
  }
  keys["strategy.kind"] = strategy_names();
  return {keys.begin(), keys.end()};
}

}  // namespace

void add_completion(Command app) {
  const Command command = app.add_subcommand(
      "completion", "Print a script that completes commands, options and keys in a shell.");
  auto shell = std::make_shared<std::string>();
  command.add_option("shell", *shell, "Shell.").required().one_of({"bash", "zsh"});
  command.callback([=] {
    Completions all;
    for (const CommandDescription& one : app.descriptions()) add_command(one, all);
    all.keys = settable_keys();
    fmt::print("{}", *shell == "bash" ? bash_completion(all) : zsh_completion(all));
  });
  command.footer("Example: source <(stepcast completion bash)");
}

}  // namespace stepcast
