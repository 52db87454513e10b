#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/yaml.hpp"

namespace stepcast {

struct Key;
struct KindKeys;
using Keys = std::vector<Key>;

/// One key of a YAML mapping. The readers (read_map), `stepcast check`, `stepcast schema`, `stepcast show
/// strategies KIND`, shell completion and the tables of the reference pages all use these tables.
struct Key {
  std::string name;
  /// Alternatives, joined by "or" or commas: text, name, path, integer, number, boolean, time, bytes,
  /// bandwidth, work, work rate, mapping, "list of ..." or value (anything).
  std::string type;
  std::string range;                  ///< "1 to 64", ">= 0", "f32, mixed"; empty where the type says all
  std::string default_value;          ///< YAML text; "required" or "none" where there is no default value
  std::string meaning;                ///< one plain line
  const Keys& (*inside)() = nullptr;  ///< keys of the mapping, or of each mapping of the list
  /// For a mapping whose key `kind` decides which other keys there are. Used in place of `inside`.
  const std::vector<KindKeys>& (*by_kind)() = nullptr;
  /// The kinds of the mapping that have this key, separated by commas; empty: all of them.
  std::string only_with = {};
  enum class Source { no, may, must };
  Source source = Source::no;    ///< whether the value may or must be `{value: ..., source: ...}`
  std::string former_name = {};  ///< an earlier name of the key, which is refused with the present one
};

/// The keys of a mapping of one kind.
struct KindKeys {
  std::string kind;
  Keys keys;
};

std::vector<std::string> names_of(const Keys& keys);

/// All lists in one, in order.
Keys joined_keys(const std::vector<Keys>& lists);

/// The keys among `keys` that have these names, in this order.
/// @throws std::out_of_range for a name that is not there
Keys keys_named(const Keys& keys, const std::vector<std::string>& names);

/// The keys among `keys` that a mapping of this kind has.
Keys keys_of_kind(const Keys& keys, std::string_view kind);

/// The same key, which had this name before.
Key renamed(Key key, const std::string& former_name);

/// The same keys, valid only in a mapping of one of these kinds (separated by commas).
Keys only_with(const std::string& kinds, Keys keys);

/// The same keys; those with a number or a quantity may, or must, be `{value: ..., source: ...}`.
Keys with_sources(Keys keys, Key::Source source);

/// The words of a list such as "ring, leader".
std::vector<std::string> words_of(std::string_view list);

/// The alternatives of a type such as "name, path or mapping".
std::vector<std::string> types_of(const Key& key);

/// The mapping, which may have these keys and no others. @throws InputError
YamlMap read_map(const YamlValue& value, const Keys& keys);

/// The same for a mapping of this kind.
YamlMap read_map(const YamlValue& value, const Keys& keys, std::string_view kind);

/// Every key that is a path from the top, such as "strategy.bucket". Keys inside lists have no path.
std::vector<std::string> key_paths(const Keys& keys);

}  // namespace stepcast
