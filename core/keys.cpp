#include "core/keys.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <stdexcept>

#include "core/error.hpp"
#include "core/text.hpp"

namespace stepcast {

std::vector<std::string> names_of(const Keys& keys) {
  std::vector<std::string> names;
  for (const Key& key : keys) names.emplace_back(key.name);
  return names;
}

const Key* find_key(const Keys& keys, std::string_view name) {
  const auto found = std::ranges::find(keys, name, &Key::name);
  return found == keys.end() ? nullptr : &*found;
}

Keys joined_keys(const std::vector<Keys>& lists) {
  Keys all;
  for (const Keys& list : lists) all.insert(all.end(), list.begin(), list.end());
  return all;
}

Keys keys_named(const Keys& keys, const std::vector<std::string>& names) {
  Keys named;
  for (const std::string& name : names) {
    const Key* found = find_key(keys, name);
    if (found == nullptr) throw std::out_of_range("keys_named: no key " + name);
    named.push_back(*found);
  }
  return named;
}

std::vector<std::string> words_of(std::string_view list) {
  std::vector<std::string> words;
  while (!list.empty()) {
    const auto comma = list.find(", ");
    words.emplace_back(list.substr(0, comma));
    list = comma == std::string_view::npos ? "" : list.substr(comma + 2);
  }
  return words;
}

std::vector<std::string> types_of(const Key& key) {
  std::vector<std::string> types = words_of(key.type);
  if (types.empty()) return types;
  const auto last = types.back().find(" or ");
  if (last == std::string::npos) return types;
  const std::string other = types.back().substr(last + 4);
  types.back().resize(last);
  types.push_back(other);
  return types;
}

Keys keys_of_kind(const Keys& keys, std::string_view kind) {
  Keys chosen;
  for (const Key& key : keys) {
    const auto kinds = words_of(key.only_with);
    if (kinds.empty() || std::ranges::find(kinds, kind) != kinds.end()) chosen.push_back(key);
  }
  return chosen;
}

Key renamed(Key key, std::string_view former_name) {
  key.former_name = former_name;
  return key;
}

Keys only_with(std::string_view kinds, Keys keys) {
  for (Key& key : keys) key.only_with = kinds;
  return keys;
}

Keys with_sources(Keys keys, Key::Source source) {
  static constexpr std::array<std::string_view, 6> kSourced{"integer", "number",    "time",
                                                            "bytes",   "bandwidth", "work rate"};
  for (Key& key : keys) {
    if (std::ranges::find(kSourced, key.type) != kSourced.end()) key.source = source;
  }
  return keys;
}

namespace {

void refuse_former_names(const YamlValue& value, const Keys& keys) {
  if (!value.is(YamlNode::Kind::mapping)) return;
  for (const auto& [name, child] : value.any_map().entries()) {
    const auto key = std::ranges::find(keys, name, &Key::former_name);
    if (key != keys.end()) child.refuse(fmt::format("unknown key; did you mean \"{}\"?", key->name));
  }
}

}  // namespace

YamlMap read_map(const YamlValue& value, const Keys& keys) {
  refuse_former_names(value, keys);
  return value.map(names_of(keys));
}

YamlMap read_map(const YamlValue& value, const Keys& keys, std::string_view kind) {
  return read_map(value, keys_of_kind(keys, kind));
}

std::vector<std::string> kinds_of(const Key& key) {
  std::vector<std::string> kinds;
  for (const KindKeys& one : key.by_kind()) kinds.push_back(one.kind);
  return kinds;
}

YamlMap map_with_kind(const YamlValue& value, const std::vector<std::string>& kinds) {
  const std::string nearest = nearest_word(value.node().text, kinds);
  return value.any_map(fmt::format("{{kind: {}}}", nearest.empty() ? kinds.front() : nearest));
}

namespace {

void add_paths(const Keys& keys, const std::string& prefix, std::vector<std::string>& paths) {
  for (const Key& key : keys) {
    const std::string path = prefix + std::string(key.name);
    if (std::ranges::find(paths, path) == paths.end()) paths.push_back(path);
    if (key.type.starts_with("list")) continue;
    if (key.inside != nullptr) add_paths(key.inside(), path + ".", paths);
    if (key.by_kind == nullptr) continue;
    for (const KindKeys& one : key.by_kind()) add_paths(one.keys, path + ".", paths);
  }
}

}  // namespace

std::vector<std::string> key_paths(const Keys& keys) {
  std::vector<std::string> paths;
  add_paths(keys, "", paths);
  return paths;
}

namespace {

/// The number at the beginning of a text such as "10,000" or "1 ms".
std::optional<double> bound_of(std::string text) {
  std::erase(text, ',');
  if (const auto number = parse_number(text)) return number;
  for (const Dimension dimension : {Dimension::time, Dimension::bytes, Dimension::bytes_per_second}) {
    if (const auto quantity = parse_quantity(text, dimension)) return quantity;
  }
  return std::nullopt;
}

std::optional<NumberRange> range_of(const std::string& text) {
  NumberRange range;
  std::optional<double> low, high;
  if (text.starts_with(">= ")) {
    low = bound_of(text.substr(3));
  } else if (text.starts_with("> ")) {
    low = bound_of(text.substr(2));
    range.without_low = true;
  } else if (const auto to = text.find(" to "); to != std::string::npos) {
    std::string end = text.substr(to + 4);
    range.without_high = end.starts_with("below ");
    if (range.without_high) end = end.substr(6);
    low = bound_of(text.substr(0, to));
    high = bound_of(end);
    if (!high) return std::nullopt;
    range.high = *high;
  }
  if (!low) return std::nullopt;
  range.low = *low;
  return range;
}

bool is_word(const std::string& text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
}

}  // namespace

std::optional<NumberRange> number_range(const Key& key) {
  for (const std::string& part : words_of(key.range)) {
    if (const auto range = range_of(part)) return range;
  }
  return std::nullopt;
}

std::vector<std::string> allowed_words(const Key& key) {
  std::vector<std::string> words;
  for (const std::string& part : words_of(key.range)) {
    if (range_of(part)) continue;
    if (!is_word(part)) return {};
    words.push_back(part);
  }
  return words;
}

namespace {

void add_keys(const Keys& keys, const std::string& prefix, std::vector<std::pair<std::string, Key>>& all) {
  for (const Key& key : keys) {
    const std::string path = prefix + std::string(key.name);
    all.emplace_back(path, key);
    if (key.type.starts_with("list")) continue;
    if (key.inside != nullptr) add_keys(key.inside(), path + ".", all);
    if (key.by_kind == nullptr) continue;
    for (const KindKeys& one : key.by_kind()) add_keys(one.keys, path + ".", all);
  }
}

}  // namespace

std::vector<std::pair<std::string, Key>> keys_with_paths(const Keys& keys) {
  std::vector<std::pair<std::string, Key>> all;
  add_keys(keys, "", all);
  return all;
}

namespace {

/// Types as words of a sentence: "bytes or a name", "a name, a path or a mapping".
std::string with_articles(const std::vector<std::string>& types) {
  std::string text;
  for (const std::string& type : types) {
    if (!text.empty()) text += type == types.back() ? " or " : ", ";
    if (type != "bytes" && type != "text") text += type.starts_with('i') ? "an " : "a ";
    text += type;
  }
  return text;
}

/// "got TEXT; did you mean ...?" for a text that is nearly a quantity or a word of the key; else empty.
std::string advice_of_types(const YamlValue& value, const Key& key, const std::vector<std::string>& types) {
  if (!value.is(YamlNode::Kind::scalar)) return "";
  const std::string& text = value.node().text;
  std::string advice;
  for (const auto& [type, dimension] :
       {std::pair{"time", Dimension::time}, std::pair{"bytes", Dimension::bytes},
        std::pair{"bandwidth", Dimension::bytes_per_second}}) {
    if (advice.empty() && std::ranges::find(types, type) != types.end())
      advice = quantity_advice(text, dimension);
  }
  if (advice.empty()) advice = word_advice(text, allowed_words(key));
  return advice.empty() ? "" : fmt::format("got \"{}\"{}", printable(text), advice);
}

class KeyChecker {
 public:
  void check_map(const YamlValue& value, const Keys& keys, bool complete) {
    if (!value.is(YamlNode::Kind::mapping)) return note([&] { read_map(value, keys); });
    const YamlNode* kind = value.node().find("kind");
    const Keys known =
        kind != nullptr && kind->kind == YamlNode::Kind::scalar ? keys_of_kind(keys, kind->text) : keys;
    for (const auto& [name, child] : value.any_map().entries()) {
      const Key* key = find_key(known, name);
      key == nullptr ? note_unknown(value, name, known) : check_key(child, *key, complete);
    }
    if (!complete) return;
    const Keys always = kind != nullptr ? known : keys_of_kind(keys, "");  // what every kind requires
    for (const Key& key : always) {
      if (key.default_value == "required") note([&] { value.any_map().at(key.name, key.meaning); });
    }
  }

  std::vector<std::string> errors;

 private:
  template <class Read>
  void note(const Read& read) {
    try {
      read();
    } catch (const InputError& error) {
      errors.emplace_back(error.what());
    }
  }

  void note_unknown(const YamlValue& value, const std::string& name, const Keys& known) {
    YamlNode alone;
    alone.kind = YamlNode::Kind::mapping;
    for (const auto& entry : value.node().entries) {
      if (entry.first.text == name) alone.entries.push_back(entry);
    }
    note([&] { read_map(YamlValue(alone, value.path()), known); });
  }

  void check_key(const YamlValue& value, const Key& key, bool complete) {
    if (key.source != Key::Source::no && value.is(YamlNode::Kind::mapping)) return check_sourced(value, key);
    if (key.source == Key::Source::must) return note([&] { value.expected("{value: ..., source: ...}"); });
    const auto types = types_of(key);
    for (const std::string& type : types) {
      if (type.starts_with("mapping") && value.is(YamlNode::Kind::mapping))
        return check_inside(value, key, complete);
      if (type.starts_with("list") && value.is(YamlNode::Kind::sequence))
        return check_items(value, key, type);
    }
    std::vector<std::string> all;
    for (const std::string& type : types) {
      try {
        return check_scalar(value, key, type);
      } catch (const InputError& error) {
        all.emplace_back(error.what());
      }
    }
    if (all.size() == 1) return errors.push_back(all.front());
    const std::string what =
        with_articles(types) + (key.range.empty() ? "" : fmt::format(" ({})", key.range));
    const std::string advice = advice_of_types(value, key, types);
    note([&] {
      advice.empty() ? value.expected(what) : value.refuse(fmt::format("expected {}, {}", what, advice));
    });
  }

  void check_sourced(const YamlValue& value, const Key& key) {
    Keys keys{key, {"source", "text", "", "none", "where the value comes from"}};
    keys.front().name = "value";
    keys.front().source = Key::Source::no;
    keys.front().default_value = "required";
    if (key.source == Key::Source::must) keys.back().default_value = "required";
    check_map(value, keys, true);
  }

  void check_inside(const YamlValue& value, const Key& key, bool complete) {
    if (key.inside != nullptr) return check_map(value, key.inside(), complete);
    if (key.by_kind == nullptr) return;
    const std::vector<std::string> kinds = kinds_of(key);
    note([&] {
      const auto kind = map_with_kind(value, kinds).maybe("kind");
      if (!kind) return;
      check_map(value, key.by_kind()[kind->one_of(kinds)].keys, complete);
    });
  }

  void check_items(const YamlValue& value, const Key& key, const std::string& type) {
    for (const YamlValue& item : value.list()) {
      if (key.inside != nullptr && type == "list of mappings") {
        check_map(item, key.inside(), true);
      } else if (type != "list" && type != "list of lists") {
        const std::string of = type.substr(type.rfind(' ') + 1);
        note([&] { check_scalar(item, key, of.substr(0, of.size() - 1)); });  // "numbers" are each a number
      }
    }
  }

  /// @throws InputError
  static void check_scalar(const YamlValue& value, const Key& key, const std::string& type) {
    const NumberRange range = number_range(key).value_or(NumberRange{});
    const double low = std::max(range.low, -1e300), high = std::min(range.high, 1e300);
    const auto whole = [](double bound) { return static_cast<std::int64_t>(std::clamp(bound, -9e18, 9e18)); };
    if (type == "integer") {
      value.integer(whole(low), high >= 1e300 ? INT64_MAX : whole(high));
    } else if (type == "number") {
      const double number = value.number(low, high);
      if (range.without_high && number >= high) value.expected(fmt::format("a number {}", key.range));
    } else if (type == "boolean") {
      value.boolean();
    } else if (type == "time") {
      value.seconds(std::max(0.0, low));
    } else if (type == "bytes") {
      value.bytes(std::max(0.0, low));
    } else if (type == "bandwidth") {
      value.bytes_per_second();
    } else if (type == "work rate") {
      value.flops_per_second();
    } else if (type == "name" && !allowed_words(key).empty()) {
      value.one_of(allowed_words(key));
    } else if (type.starts_with("mapping") && key.by_kind != nullptr) {
      map_with_kind(value, kinds_of(key));
    } else if (type.starts_with("mapping")) {
      key.inside != nullptr ? static_cast<void>(read_map(value, key.inside()))
                            : static_cast<void>(value.any_map());
    } else if (type.starts_with("list")) {
      value.list();
    } else if (type != "value" && type != "sweep") {
      value.text();
    }
  }
};

}  // namespace

std::vector<std::string> key_errors(const YamlValue& value, const Keys& keys, Required required) {
  KeyChecker checker;
  checker.check_map(value, keys, required == Required::all);
  return std::move(checker.errors);
}

}  // namespace stepcast
