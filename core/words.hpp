#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/yaml.hpp"

namespace stepcast {

/// The words of an enumeration in YAML files and on the command line. A value may have several words.
template <class E>
class Words {
 public:
  Words(std::initializer_list<std::pair<std::string_view, E>> words) {
    for (const auto& [word, value] : words) {
      names_.emplace_back(word);
      values_.push_back(value);
    }
  }

  const std::vector<std::string>& names() const { return names_; }

  /// @throws InputError for a text that is no word, with the nearest one
  E read(const YamlValue& value) const { return values_[value.one_of(names_)]; }

  /// The value of a word; empty for any other text.
  std::optional<E> find(std::string_view word) const {
    for (std::size_t i = 0; i < names_.size(); ++i)
      if (names_[i] == word) return values_[i];
    return std::nullopt;
  }

  /// The first word of the value. @throws std::out_of_range for a value without a word
  const std::string& of(E value) const {
    std::size_t i = 0;
    while (i < values_.size() && values_[i] != value) ++i;
    return names_.at(i);
  }

 private:
  std::vector<std::string> names_;
  std::vector<E> values_;
};

}  // namespace stepcast
