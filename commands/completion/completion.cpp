#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "commands/commands.hpp"
#include "commands/completion/completions.hpp"
#include "core/keys.hpp"
#include "scenarios/keys/scenario_keys.hpp"
#include "strategies/registry.hpp"

namespace stepcast {
namespace {

/// The text between single quotes, as both shells read it.
std::string quoted(const std::string& text) {
  std::string all = "'";
  for (const char c : text) {
    if (c == '\'') {
      all += "'\\''";
    } else {
      all += c;
    }
  }
  return all + "'";
}

/// How the scripts name a kind of value: a list of words, or a word that begins with "@".
std::string source_of(const CompletionValue& value) {
  switch (value.from) {
    case CompletionValue::From::words:
      return fmt::format("{}", fmt::join(value.words, " "));
    case CompletionValue::From::show:
      return "@show " + value.what;
    case CompletionValue::From::keys:
      return "@keys";
    case CompletionValue::From::files:
      return "@files";
    case CompletionValue::From::folders:
      return "@folders";
    case CompletionValue::From::nothing:
      break;
  }
  return "@nothing";
}

/// An associative array with an entry for each pair.
template <class Pairs, class Text>
std::string array(const std::string& name, const Pairs& pairs, const Text& text) {
  std::string all = name + "=(\n";
  for (const auto& [key, value] : pairs)
    all += fmt::format("  [{}]={}\n", quoted("=" + key), quoted(text(value)));
  return all + ")\n";
}

std::string words_alone(const std::vector<CompletionWord>& words) {
  std::string all;
  for (const CompletionWord& one : words) all += (all.empty() ? "" : " ") + one.word;
  return all;
}

/// Lines "WORD:HELP", in which a colon of the word would be escaped; no option or command has one.
std::string words_with_help(const std::vector<CompletionWord>& words) {
  std::string all;
  for (const CompletionWord& one : words)
    all += fmt::format("{}{}{}{}", all.empty() ? "" : "\n", one.word, one.help.empty() ? "" : ":", one.help);
  return all;
}

std::string joined(const std::vector<std::string>& words) {
  return fmt::format("{}", fmt::join(words, " "));
}

// "=" begins every index, because an index may not be empty.
constexpr const char* kBash = R"sh(
_stepcast_values() {  # SOURCE CURRENT
  case $1 in
    @files) compopt -o default ;;
    @folders) mapfile -t COMPREPLY < <(compgen -d -- "$2") && compopt -o filenames ;;
    @keys)
      mapfile -t COMPREPLY < <(compgen -S = -W "${!_stepcast_keys[*]}" -- "=$2") && compopt -o nospace
      COMPREPLY=("${COMPREPLY[@]#=}")
      ;;
    "@show "*)
      mapfile -t COMPREPLY < <(compgen -W "$(stepcast show "${1#@show }" 2>/dev/null)" -- "$2")
      ((${#COMPREPLY[@]})) || compopt -o default
      ;;
    @nothing) ;;
    *) mapfile -t COMPREPLY < <(compgen -W "$1" -- "$2") ;;
  esac
}

_stepcast() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} command="" key="" inner i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; ++i)); do
    inner="${command:+$command }${COMP_WORDS[i]}"
    [[ -n ${_stepcast_words["=$inner"]:-} ]] && command=$inner
  done
  if [[ $previous == "=" ]]; then  # bash splits words at "="
    key=${COMP_WORDS[COMP_CWORD - 2]}
  elif [[ $current == "=" ]]; then
    key=$previous current=""
  fi
  local value=${_stepcast_arguments["=$command $previous"]:-} argument=${_stepcast_arguments["=$command"]:-}
  if [[ -n $key ]]; then
    _stepcast_values "${_stepcast_keys["=$key"]:-@nothing}" "$current"
  elif [[ -n $value ]]; then
    _stepcast_values "$value" "$current"
  elif [[ $current == -* || -z $argument ]]; then
    _stepcast_values "${_stepcast_words["=$command"]}" "$current"
  else
    _stepcast_values "$argument" "$current"
  fi
}

complete -F _stepcast stepcast
)sh";

constexpr const char* kZsh = R"sh(
_stepcast_values() {  # SOURCE
  local key
  local -a names
  case $1 in
    @files) _files ;;
    @folders) _files -/ ;;
    @keys)
      if compset -P 1 '*='; then
        key=${IPREFIX%=}
        names=(${=_stepcast_keys[=$key]})
        compadd -a names
      else
        names=(${${(k)_stepcast_keys}#=})
        compadd -S = -a names
      fi
      ;;
    '@show '*)
      names=(${(f)"$(stepcast show ${1#@show } 2>/dev/null)"})
      compadd -a names || _files
      ;;
    @nothing) ;;
    *)
      names=(${=1})
      compadd -a names
      ;;
  esac
}

_stepcast() {
  local chosen= inner word previous=${words[CURRENT-1]}
  local -a described
  for word in ${words[2,CURRENT-1]}; do
    inner="${chosen:+$chosen }$word"
    [[ -n ${_stepcast_words[=$inner]} ]] && chosen=$inner
  done
  local value=${_stepcast_arguments[=$chosen $previous]} argument=${_stepcast_arguments[=$chosen]}
  if [[ -n $value ]]; then
    _stepcast_values $value
  elif [[ ${words[CURRENT]} == -* || -z $argument ]]; then
    described=(${(f)_stepcast_words[=$chosen]})
    _describe stepcast described
  else
    _stepcast_values $argument
  fi
}

if [[ ${funcstack[1]:-} == _stepcast ]]; then
  _stepcast "$@"  # zsh has loaded this file as the function
else
  compdef _stepcast stepcast
fi
)sh";

/// A script that defines completion in bash.
std::string bash_completion(const Completions& completions) {
  return "# Completion of stepcast in bash: source this file, or put it where bash-completion finds it.\n"
         "declare -gA _stepcast_words _stepcast_arguments _stepcast_keys\n" +
         array("_stepcast_words", completions.words, words_alone) +
         array("_stepcast_arguments", completions.values, source_of) +
         array("_stepcast_keys", completions.keys, joined) + kBash;
}

/// A script that defines completion in zsh.
std::string zsh_completion(const Completions& completions) {
  return "#compdef stepcast\n"
         "# Completion of stepcast in zsh: put this file into a folder of $fpath as _stepcast, or source it "
         "after compinit.\n"
         "typeset -gA _stepcast_words _stepcast_arguments _stepcast_keys\n" +
         array("_stepcast_words", completions.words, words_with_help) +
         array("_stepcast_arguments", completions.values, source_of) +
         array("_stepcast_keys", completions.keys, joined) + kZsh;
}

using From = CompletionValue::From;

/// Options whose value is a name that `show` knows, and arguments of commands likewise.
const std::map<std::string, std::string>& shown_names() {
  static const std::map<std::string, std::string> names{
      {"--model", "model"},      {"--platform", "platform"},    {"--trace", "trace"},
      {"--device", "device"},    {"show model", "model"},       {"show trace", "trace"},
      {"show device", "device"}, {"show platform", "platform"}, {"show scenario", "scenario"}};
  return names;
}

CompletionValue value_of(const std::string& name, const CommandOption& option) {
  if (!option.words.empty()) return {From::words, option.words};
  if (const auto shown = shown_names().find(name); shown != shown_names().end())
    return {From::show, {}, shown->second};
  if (name == "--strategy" || name == "show strategies") return {From::words, strategy_names()};
  if (option.type.starts_with("KEY=")) return {From::keys};
  if (option.type.starts_with("DIR")) return {From::folders};
  if (option.type.starts_with("SCENARIO")) return {From::show, {}, "scenario"};
  const bool file = option.type.starts_with("FILE");
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
        key.allowed.is(KeyType::boolean) ? std::vector<std::string>{"true", "false"} : key.allowed.words();
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
  command.add_option("shell", *shell, "Shell.").required().one_of({"bash", "zsh", "fish"});
  command.callback([=] {
    Completions all;
    for (const CommandDescription& one : app.descriptions()) add_command(one, all);
    all.keys = settable_keys();
    fmt::print("{}", *shell == "bash"  ? bash_completion(all)
                     : *shell == "zsh" ? zsh_completion(all)
                                       : fish_completion(all));
  });
  command.footer("Example: source <(stepcast completion bash)");
}

}  // namespace stepcast
