#include <fmt/format.h>
#include <fmt/ranges.h>

#include "commands/completion/completions.hpp"

namespace stepcast {
namespace {

using From = CompletionValue::From;

constexpr const char* kFunctions =
    R"fish(# Completion of stepcast in fish: put this file into ~/.config/fish/completions as stepcast.fish.
function __stepcast_is  # whether the commands on the line are these, such as "show platform"
  set -l chosen ''
  for word in (commandline -opc)[2..]
    set -l inner (string trim "$chosen $word")
    contains -- $inner $__stepcast_commands; and set chosen $inner
  end
  test "$chosen" = "$argv"
end
function __stepcast_settings  # KEY=, or KEY=WORD
  set -l typed (string split -m 1 = -- (commandline -ct))
  for line in $__stepcast_keys
    set -l key (string split ' ' -- $line)
    if test (count $typed) -lt 2
      echo $key[1]=
    else if test $key[1] = $typed[1]
      printf '%s\n' $key[1]=$key[2..]
    end
  end
end
complete -c stepcast -f
)fish";

/// The text between single quotes, as fish reads it.
std::string fish_quoted(const std::string& text) {
  std::string all = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') all += '\\';
    all += c;
  }
  return all + "'";
}

/// Options of `complete` for what a value may be.
std::string arguments(const CompletionValue& value) {
  switch (value.from) {
    case From::words:
      return fmt::format(" -x -a {}", fish_quoted(fmt::format("{}", fmt::join(value.words, " "))));
    case From::show:
      return fmt::format(" -r -F -a '(stepcast show {} 2>/dev/null)'", value.what);
    case From::keys:
      return " -x -a '(__stepcast_settings)'";
    case From::files:
      return " -r -F";
    case From::folders:
      return " -x -a '(__fish_complete_directories)'";
    case From::nothing:
      break;
  }
  return " -x";
}

/// What is typed: "--draws" is "-l draws", "-o" is "-s o", and a command is an argument.
std::string word_option(const std::string& word) {
  if (word.starts_with("--")) return "-l " + word.substr(2);
  if (word.starts_with("-")) return "-s " + word.substr(1);
  return "-a " + word;
}

}  // namespace

std::string fish_completion(const Completions& completions) {
  std::string all = kFunctions;
  for (const auto& [command, words] : completions.words) {
    if (!command.empty()) all += fmt::format("set -a __stepcast_commands {}\n", fish_quoted(command));
  }
  for (const auto& [key, words] : completions.keys)
    all += fmt::format("set -a __stepcast_keys {}\n",
                       fish_quoted(fmt::format("{} {}", key, fmt::join(words, " "))));
  const auto value_of = [&](const std::string& name) {
    for (const auto& [known, value] : completions.values) {
      if (known == name) return arguments(value);
    }
    return std::string();
  };
  for (const auto& [command, words] : completions.words) {
    const std::string here =
        fmt::format("complete -c stepcast -n {}", fish_quoted(fmt::format("__stepcast_is '{}'", command)));
    for (const CompletionWord& one : words)
      all += fmt::format("{} {}{} -d {}\n", here, word_option(one.word),
                         one.word.starts_with("-") ? value_of(command + " " + one.word) : "",
                         fish_quoted(one.help));
    if (const std::string argument = value_of(command); !argument.empty())
      all += here + argument.substr(3) + "\n";  // without -r or -x, which an option's value needs
  }
  return all;
}

}  // namespace stepcast
