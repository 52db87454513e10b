#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/yaml.hpp"

namespace stepcast {

struct Key;
struct KindKeys;
using Keys = std::vector<Key>;

/// What the value of a key is. Lists stand last; items of the first three are anything.
enum class KeyType : std::uint8_t {
  text,
  name,
  layer,  ///< the name of a layer
  path,
  integer,
  number,
  boolean,
  time,
  bytes,
  bandwidth,
  work_rate,
  mapping,
  settings,  ///< a mapping of paths and values
  sweep,
  value,  ///< anything
  list,
  lists,
  values,
  texts,
  names,
  layers,
  integers,
  numbers,
  mappings
};

bool is_list(KeyType type);
KeyType item_of(KeyType list);

/// The numbers that a key allows, in SI units; by default all.
struct NumberRange {
  double low = -std::numeric_limits<double>::infinity(), high = std::numeric_limits<double>::infinity();
  bool without_low = false, without_high = false;  ///< the end itself is not allowed
};

/// The values that a key allows. Its lists are kept as long as the program runs.
class Allowed {
 public:
  /// @param types     in the order in which texts name them
  /// @param in_words  what else holds: "a divisor of the workers"
  Allowed(const std::vector<KeyType>& types, NumberRange range = {},
          const std::vector<std::string>& words = {}, std::string_view in_words = {});
  Allowed(KeyType only, NumberRange range = {}, const std::vector<std::string>& words = {},
          std::string_view in_words = {})
      : Allowed(std::vector{only}, range, words, in_words) {}

  const std::vector<KeyType>& types() const { return *types_; }
  bool is(KeyType only) const { return types() == std::vector{only}; }
  const std::vector<std::string>& words() const { return *words_; }  ///< empty: any text, or none

  NumberRange numbers;  ///< of a number or a quantity
  std::string_view rule;

 private:
  const std::vector<KeyType>* types_;
  const std::vector<std::string>* words_;
};

/// One key of a YAML mapping. The readers (read_map), `stepcast check`, `stepcast schema`, `stepcast show
/// strategies KIND`, shell completion and the tables of the reference pages all use these tables. Its texts
/// are literals or live as long as the program, because tables of views compile faster than those of strings.
struct Key {
  std::string_view name;
  Allowed allowed;
  std::string_view default_value;     ///< YAML text; "required" or "none" where there is no default value
  std::string_view meaning;           ///< one plain line
  const Keys& (*inside)() = nullptr;  ///< keys of the mapping, or of each mapping of the list
  /// For a mapping whose key `kind` decides which other keys there are. Used in place of `inside`.
  const std::vector<KindKeys>& (*by_kind)() = nullptr;
  /// The kinds of the mapping that have this key, separated by commas; empty: all of them.
  std::string_view only_with = {};
  enum class Source { no, may, must };
  Source source = Source::no;         ///< whether the value may or must be `{value: ..., source: ...}`
  std::string_view former_name = {};  ///< an earlier name of the key, which is refused with the present one
  /// Whether runs that differ in it alone are of one layout, whose steps the model gets wrong by nearly as
  /// much (forecast/draws/alternatives.hpp).
  bool detail = false;
};

/// The keys of a mapping of one kind.
struct KindKeys {
  std::string kind;
  Keys keys;
};

std::vector<std::string> names_of(const Keys& keys);
const Key* find_key(const Keys& keys, std::string_view name);  ///< null: there is none

/// All lists in one, in order.
Keys joined_keys(const std::vector<Keys>& lists);

/// The keys among `keys` that have these names, in this order.
/// @throws std::out_of_range for a name that is not there
Keys keys_named(const Keys& keys, const std::vector<std::string>& names);

bool is_of_kind(const Key& key, std::string_view kind);  ///< whether a mapping of this kind has it

/// The keys among `keys` that a mapping of this kind has.
Keys keys_of_kind(const Keys& keys, std::string_view kind);

/// The same key, which had this name before.
Key renamed(Key key, std::string_view former_name);

/// The same keys, valid only in a mapping of one of these kinds (separated by commas).
Keys only_with(std::string_view kinds, Keys keys);

/// The same keys; those with a number or a quantity may, or must, be `{value: ..., source: ...}`.
Keys with_sources(Keys keys, Key::Source source);

/// The same text for as long as the program runs, as the texts of a Key have to be.
std::string_view lasting(const std::string& text);

/// The words of a list such as "ring, leader".
std::vector<std::string> words_of(std::string_view list);

/// The values that the key `kind` of a mapping may have. @param key  with `by_kind`
std::vector<std::string> kinds_of(const Key& key);

/// The mapping, which may have these keys and no others. @throws InputError
YamlMap read_map(const YamlValue& value, const Keys& keys);

/// The same for a mapping of this kind.
YamlMap read_map(const YamlValue& value, const Keys& keys, std::string_view kind);

/// A mapping whose key `kind` decides which other keys there are. @throws InputError with an example
YamlMap map_with_kind(const YamlValue& value, const std::vector<std::string>& kinds);

/// Every key that is a path from the top, such as "strategy.bucket". Keys inside lists have no path.
std::vector<std::string> key_paths(const Keys& keys);

/// A number as people write it in YAML, a quantity with its unit: 0.5, 1e-8, 25 MiB.
std::string value_text(KeyType type, double value);

/// The types in words, such as "name, path or mapping". @param articles  "a name, a path or a mapping"
std::string types_text(const Allowed& allowed, bool articles = false);

/// What is allowed of these types, such as "1 to 64", ">= 1 B, tensor" or "f32, mixed"; empty: anything.
/// @param mark  before and after each word
std::string range_text(const Allowed& allowed, std::string_view mark = "");

/// The types and what is allowed of them, such as "integer: 1 to 64".
std::string allowed_text(const Allowed& allowed);

/// Every key with its path from the top, such as "strategy.bucket". Keys inside lists have no path. Kinds of
/// a mapping may have different keys of one path.
std::vector<std::pair<std::string, Key>> keys_with_paths(const Keys& keys);

/// Whether a mapping has to have all keys whose default is `required`. Those of a scenario may come from its
/// sweep.
enum class Required { all, in_lists };

/// All errors of a mapping by its table of keys, in file order: unknown and missing keys, wrong types,
/// numbers out of range, unknown words. The readers check rules that concern several keys.
std::vector<std::string> key_errors(const YamlValue& value, const Keys& keys, Required required);

}  // namespace stepcast
