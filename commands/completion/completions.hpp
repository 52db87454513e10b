#pragma once

#include <string>
#include <utility>
#include <vector>

namespace stepcast {

/// A word that can be typed, and what it does.
struct CompletionWord {
  std::string word, help = {};
};

/// The kind of a value, and the words or names that complete it.
struct CompletionValue {
  enum class From {
    nothing,
    words,  ///< `words`
    show,   ///< the names that `stepcast show WHAT` prints
    keys,   ///< KEY=VALUE
    files,
    folders
  };
  From from = From::nothing;
  std::vector<std::string> words = {};
  std::string what = {};
};

/// All that completion knows.
struct Completions {
  /// Options and subcommands, by command: "" for the program, "show platform".
  std::vector<std::pair<std::string, std::vector<CompletionWord>>> words;
  /// Values, by command and option: "run --draws"; or by command alone: its arguments.
  std::vector<std::pair<std::string, CompletionValue>> values;
  /// Keys of a scenario with the words that they allow, perhaps none.
  std::vector<std::pair<std::string, std::vector<std::string>>> keys;
};

/// A script that defines completion in fish.
std::string fish_completion(const Completions& completions);

}  // namespace stepcast
