#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"
#include "core/keys.hpp"
#include "core/text.hpp"

namespace stepcast {
namespace {

/// "got TEXT; did you mean ...?" for a text that is nearly a quantity or a word of the key; else empty.
std::string advice_of_types(const YamlValue& value, const Key& key) {
  if (!value.is(YamlNode::Kind::scalar)) return "";
  const std::string& text = value.node().text;
  std::string advice;
  for (const KeyType type : key.allowed.types()) {
    if (type == KeyType::time) advice = quantity_advice(text, Dimension::time);
    if (type == KeyType::bytes) advice = quantity_advice(text, Dimension::bytes);
    if (type == KeyType::bandwidth) advice = quantity_advice(text, Dimension::bytes_per_second);
  }
  if (advice.empty()) advice = word_advice(text, key.allowed.words());
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
    for (const KeyType type : key.allowed.types()) {
      const bool mapping = type == KeyType::mapping || type == KeyType::settings;
      if (mapping && value.is(YamlNode::Kind::mapping)) return check_inside(value, key, complete);
      if (is_list(type) && value.is(YamlNode::Kind::sequence)) return check_items(value, key, type);
    }
    std::vector<std::string> all;
    for (const KeyType type : key.allowed.types()) {
      try {
        return check_scalar(value, key, type);
      } catch (const InputError& error) {
        all.emplace_back(error.what());
      }
    }
    if (all.size() == 1) return errors.push_back(all.front());
    const std::string range = range_text(key.allowed);
    const std::string what =
        types_text(key.allowed, true) + (range.empty() ? "" : fmt::format(" ({})", range));
    const std::string advice = advice_of_types(value, key);
    note([&] {
      advice.empty() ? value.expected(what) : value.refuse(fmt::format("expected {}, {}", what, advice));
    });
  }

  void check_sourced(const YamlValue& value, const Key& key) {
    const std::string_view source = key.source == Key::Source::must ? "required" : "none";
    check_map(value,
              {{"value", key.allowed, "required", key.meaning, nullptr, nullptr, key.only_with},
               {"source", KeyType::text, source, "where the value comes from"}},
              true);
  }

  void check_inside(const YamlValue& value, const Key& key, bool complete) {
    if (key.inside != nullptr) return check_map(value, key.inside(), complete);
    if (key.by_kind == nullptr) return;
    const std::vector<std::string> kinds = kinds_of(key);
    note([&] {
      const auto kind = map_with_kind(value, kinds).maybe("kind");
      if (kind) check_map(value, key.by_kind()[kind->one_of(kinds)].keys, complete);
    });
  }

  void check_items(const YamlValue& value, const Key& key, KeyType list) {
    for (const YamlValue& item : value.list()) {
      const bool has_keys = key.inside != nullptr && list == KeyType::mappings;
      if (has_keys) check_map(item, key.inside(), true);
      if (!has_keys) note([&] { check_scalar(item, key, item_of(list)); });
    }
  }

  /// @throws InputError
  static void check_scalar(const YamlValue& value, const Key& key, KeyType type) {
    const NumberRange& range = key.allowed.numbers;
    const double low = std::max(range.low, -1e300), high = std::min(range.high, 1e300);
    const auto whole = [](double bound) { return static_cast<std::int64_t>(std::clamp(bound, -9e18, 9e18)); };
    if (type == KeyType::integer) {
      value.integer(whole(low), high >= 1e300 ? INT64_MAX : whole(high));
    } else if (type == KeyType::number) {
      const double number = value.number(low, high);
      if (range.without_high && number >= high)
        value.expected(fmt::format("a number {}", range_text(key.allowed)));
    } else if (type == KeyType::boolean) {
      value.boolean();
    } else if (type == KeyType::time) {
      value.seconds(std::max(0.0, low));
    } else if (type == KeyType::bytes) {
      value.bytes(std::max(0.0, low));
    } else if (type == KeyType::bandwidth) {
      value.bytes_per_second();
    } else if (type == KeyType::work_rate) {
      value.flops_per_second();
    } else if (type == KeyType::name && !key.allowed.words().empty()) {
      value.one_of(key.allowed.words());
    } else if (type == KeyType::mapping && key.by_kind != nullptr) {
      map_with_kind(value, kinds_of(key));
    } else if (type == KeyType::mapping && key.inside != nullptr) {
      read_map(value, key.inside());
    } else if (type == KeyType::mapping || type == KeyType::settings) {
      value.any_map();
    } else if (is_list(type)) {
      value.list();
    } else if (type != KeyType::value && type != KeyType::sweep) {
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
